/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Collective engines, in virtual time on an Aries with a PE on each node: small collectives take the time of a
 * reduction in the network, and not that of messages, whichever team calls; and they have its results.
 */
#include "tests/conformance/shmem/cases.h"

#include <time.h>

#define ROUNDS  4
#define WARM_UP 4 /* calls of a group before it has engines */

/*
 * By messages 16 PEs take 4.4 puts for a sum and 3.2 for a barrier, by engines 2.1 for either.
 */
#define PUTS_OF_A_SUM     3.0
#define PUTS_OF_A_BARRIER 2.6

static long word;
static long in;
static long out;

static double seconds(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* A put that is known to be complete. */
static double put_time(void)
{
    double begin = seconds();

    for (int i = 0; i < ROUNDS; i++) {
        shmem_long_p(&word, i, next_pe());
        shmem_quiet();
    }
    return (seconds() - begin) / ROUNDS;
}

static double sum_time(shmem_team_t team)
{
    double begin;

    in = shmem_team_my_pe(team);
    shmem_team_sync(team);
    begin = seconds();
    for (int i = 0; i < ROUNDS; i++)
        assert_int_equal(shmem_long_sum_reduce(team, &out, &in, 1), 0);
    return (seconds() - begin) / ROUNDS;
}

static void warm_up(shmem_team_t team)
{
    for (int i = 0; i < WARM_UP; i++)
        shmem_team_sync(team);
}

static bool has_engines(shmem_team_t team)
{
    long n = shmem_team_n_pes(team);
    double time;

    warm_up(team);
    time = sum_time(team);
    assert_int_equal(out, n * (n - 1) / 2);
    return time < PUTS_OF_A_SUM * put_time();
}

static void test_the_world_has_engines(void **state)
{
    double begin;

    (void)state;
    assert_true(has_engines(SHMEM_TEAM_WORLD));
    begin = seconds();
    for (int i = 0; i < ROUNDS; i++)
        shmem_barrier_all();
    assert_true((seconds() - begin) / ROUNDS < PUTS_OF_A_BARRIER * put_time());
}

/* Puts before a barrier are there behind it, though no message of it follows them. */
static void test_a_barrier_completes_puts(void **state)
{
    (void)state;
    for (int i = 1; i <= ROUNDS; i++) {
        shmem_long_p(&word, 1000 * i + me, next_pe());
        shmem_barrier_all();
        assert_int_equal(word, 1000 * i + previous_pe());
        shmem_barrier_all();
    }
}

/* Values of both signs; the last bit of each word counts. */
#define SIGNED(T, pe)   ((T)((pe) % 2 ? -(pe)*7 : (pe)*5))
#define UNSIGNED(T, pe) ((T)(~(T)0 - (T)((pe)*3)))

#define LESS(a, b)    ((a) < (b) ? (a) : (b))
#define GREATER(a, b) ((a) > (b) ? (a) : (b))
#define PLUS(a, b)    ((a) + (b))
#define AND(a, b)     ((a) & (b))
#define OR(a, b)      ((a) | (b))
#define XOR(a, b)     ((a) ^ (b))

#define CHECK(NAME, T, OP, COMBINE, VALUE_OF, N)                                                                       \
    do {                                                                                                               \
        static T source[2];                                                                                            \
        static T dest[2];                                                                                              \
                                                                                                                       \
        source[0] = VALUE_OF(T, me);                                                                                   \
        source[1] = VALUE_OF(T, me + 1);                                                                               \
        shmem_##NAME##_##OP##_reduce(SHMEM_TEAM_WORLD, dest, source, N);                                               \
        for (int i = 0; i < (N); i++) {                                                                                \
            T expected = VALUE_OF(T, i);                                                                               \
                                                                                                                       \
            for (int pe = 1; pe < n_pes; pe++)                                                                         \
                expected = (T)COMBINE(expected, VALUE_OF(T, pe + i));                                                  \
            assert_true(dest[i] == expected);                                                                          \
        }                                                                                                              \
    } while (0)

#define CHECK_ORDERED(NAME, T)                                                                                         \
    CHECK(NAME, T, min, LESS, SIGNED, 1);                                                                              \
    CHECK(NAME, T, max, GREATER, SIGNED, 1);                                                                           \
    CHECK(NAME, T, sum, PLUS, SIGNED, 1);                                                                              \
    CHECK(NAME, T, sum, PLUS, SIGNED, 2)
#define CHECK_BITS(NAME, T)                                                                                            \
    CHECK(NAME, T, sum, PLUS, UNSIGNED, 2);                                                                            \
    CHECK(NAME, T, and, AND, UNSIGNED, 2);                                                                             \
    CHECK(NAME, T, or, OR, UNSIGNED, 1);                                                                               \
    CHECK(NAME, T, xor, XOR, UNSIGNED, 2)

static void test_results_are_those_of_the_operation(void **state)
{
    (void)state;
    CHECK_ORDERED(int, int);
    CHECK_ORDERED(long, long);
    CHECK_ORDERED(int32, int32_t);
    CHECK_ORDERED(ptrdiff, ptrdiff_t);
    CHECK_ORDERED(float, float);
    CHECK_ORDERED(double, double);
    CHECK_BITS(uint, unsigned int);
    CHECK_BITS(ulonglong, unsigned long long);
    CHECK_BITS(uint32, uint32_t);
    CHECK_BITS(size, size_t);
}

/* A NIC has four engines, one of which is the world's. */
static void test_teams_without_engines_go_by_messages(void **state)
{
    shmem_team_t teams[5];
    int n_with = 0;

    (void)state;
    for (int i = 0; i < 5; i++) {
        assert_int_equal(shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, n_pes, NULL, 0, &teams[i]), 0);
        n_with += has_engines(teams[i]);
    }
    assert_int_equal(n_with, 3);
    for (int i = 0; i < 5; i++)
        shmem_team_destroy(teams[i]);
}

static void test_a_destroyed_team_gives_its_engine_back(void **state)
{
    (void)state;
    for (int i = 0; i < 6; i++) {
        shmem_team_t team;

        assert_int_equal(shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, n_pes, NULL, 0, &team), 0);
        assert_true(has_engines(team));
        shmem_team_destroy(team);
    }
}

static void test_active_sets_have_engines(void **state)
{
    static long psync[SHMEM_REDUCE_SYNC_SIZE];
    static long work[SHMEM_REDUCE_MIN_WRKDATA_SIZE];
    double begin;

    (void)state;
    in = me;
    for (int i = 0; i < WARM_UP; i++)
        shmem_sync(0, 0, n_pes, psync);
    begin = seconds();
    for (int i = 0; i < ROUNDS; i++)
        shmem_long_sum_to_all(&out, &in, 1, 0, 0, n_pes, work, psync);
    assert_true((seconds() - begin) / ROUNDS < PUTS_OF_A_SUM * put_time());
    assert_int_equal(out, (long)n_pes * (n_pes - 1) / 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_world_has_engines),
        cmocka_unit_test(test_a_barrier_completes_puts),
        cmocka_unit_test(test_results_are_those_of_the_operation),
        cmocka_unit_test(test_teams_without_engines_go_by_messages),
        cmocka_unit_test(test_a_destroyed_team_gives_its_engine_back),
        cmocka_unit_test(test_active_sets_have_engines),
    };

    return run(tests);
}
