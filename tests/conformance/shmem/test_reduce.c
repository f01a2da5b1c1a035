/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reductions of every type and operation on the world, a split team and active sets: few bytes and many, in place and
 * not, against the same arithmetic done here.
 */
#include "tests/conformance/shmem/cases.h"

#define FEW  2
#define MANY 300

static shmem_team_t half;
static long psync[SHMEM_REDUCE_SYNC_SIZE];

/* Products stay small enough for signed char: all but a few factors are 1. */
#define FACTOR(T, k, pe) ((T)((pe) == (k) % 3 ? 3 : 1))

#define OP_and(a, b)  ((a) & (b))
#define OP_or(a, b)   ((a) | (b))
#define OP_xor(a, b)  ((a) ^ (b))
#define OP_max(a, b)  ((a) > (b) ? (a) : (b))
#define OP_min(a, b)  ((a) < (b) ? (a) : (b))
#define OP_sum(a, b)  ((a) + (b))
#define OP_prod(a, b) ((a) * (b))

#define ELEMENT_and(T, k, pe)  VALUE(T, k, pe)
#define ELEMENT_or(T, k, pe)   VALUE(T, k, pe)
#define ELEMENT_xor(T, k, pe)  VALUE(T, k, pe)
#define ELEMENT_max(T, k, pe)  VALUE(T, k, pe)
#define ELEMENT_min(T, k, pe)  VALUE(T, k, pe)
#define ELEMENT_sum(T, k, pe)  ((T)(((k) + (pe)) % 7))
#define ELEMENT_prod(T, k, pe) FACTOR(T, k, pe)

#define EXPECT(T, OP, at, count, n)                                                                                    \
    for (int k = 0; k < (count); k++) {                                                                                \
        T expected = ELEMENT_##OP(T, k, 0);                                                                            \
                                                                                                                       \
        for (int pe = 1; pe < (n); pe++)                                                                               \
            expected = (T)OP_##OP(expected, ELEMENT_##OP(T, k, pe));                                                   \
        assert_true((at)[k] == expected);                                                                              \
    }

#define FILL(T, OP, count, mine)                                                                                       \
    for (int k = 0; k < (count); k++)                                                                                  \
    source[k] = ELEMENT_##OP(T, k, mine)

#define TEAM_CASE(NAME, T, OP, team)                                                                                   \
    do {                                                                                                               \
        static T source[MANY];                                                                                         \
        static T dest[MANY];                                                                                           \
        int n = shmem_team_n_pes(team);                                                                                \
                                                                                                                       \
        FILL(T, OP, MANY, shmem_team_my_pe(team));                                                                     \
        shmem_team_sync(team);                                                                                         \
        assert_int_equal(shmem_##NAME##_##OP##_reduce(team, dest, source, 1), 0);                                      \
        EXPECT(T, OP, dest, 1, n);                                                                                     \
        shmem_team_sync(team);                                                                                         \
        assert_int_equal(shmem_##NAME##_##OP##_reduce(team, dest, source, FEW), 0);                                    \
        EXPECT(T, OP, dest, FEW, n);                                                                                   \
        shmem_team_sync(team);                                                                                         \
        assert_int_equal(shmem_##NAME##_##OP##_reduce(team, dest, source, MANY), 0);                                   \
        EXPECT(T, OP, dest, MANY, n);                                                                                  \
        shmem_team_sync(team);                                                                                         \
        assert_int_equal(shmem_##NAME##_##OP##_reduce(team, source, source, MANY), 0);                                 \
        EXPECT(T, OP, source, MANY, n);                                                                                \
        shmem_team_sync(team);                                                                                         \
    } while (0)

#define TEAM_TEST(NAME, T, OP)                                                                                         \
    static void team_##OP##_##NAME(void)                                                                               \
    {                                                                                                                  \
        TEAM_CASE(NAME, T, OP, SHMEM_TEAM_WORLD);                                                                      \
        if (half != SHMEM_TEAM_INVALID)                                                                                \
            TEAM_CASE(NAME, T, OP, half);                                                                              \
    }
#define BITWISE_TEST(NAME, T) TEAM_TEST(NAME, T, and) TEAM_TEST(NAME, T, or) TEAM_TEST(NAME, T, xor)
#define ORDER_TEST(NAME, T)   TEAM_TEST(NAME, T, max) TEAM_TEST(NAME, T, min)
#define SUM_TEST(NAME, T)     TEAM_TEST(NAME, T, sum) TEAM_TEST(NAME, T, prod)
SMA_REDUCE_BITWISE_TYPES(BITWISE_TEST)
SMA_REDUCE_ORDER_TYPES(ORDER_TEST)
SMA_REDUCE_SUM_TYPES(SUM_TEST)

static void test_teams_reduce_bits(void **state)
{
    (void)state;
    assert_int_equal(shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 2, (n_pes + 1) / 2, NULL, 0, &half), 0);
#define CALL_BITWISE(NAME, T) team_and_##NAME(), team_or_##NAME(), team_xor_##NAME();
    SMA_REDUCE_BITWISE_TYPES(CALL_BITWISE)
}

static void test_teams_reduce_order(void **state)
{
    (void)state;
#define CALL_ORDER(NAME, T) team_max_##NAME(), team_min_##NAME();
    SMA_REDUCE_ORDER_TYPES(CALL_ORDER)
}

static void test_teams_reduce_sums(void **state)
{
    (void)state;
#define CALL_SUM(NAME, T) team_sum_##NAME(), team_prod_##NAME();
    SMA_REDUCE_SUM_TYPES(CALL_SUM)
    shmem_team_destroy(half);
}

#define SET_CASE(NAME, T, OP)                                                                                          \
    do {                                                                                                               \
        static T source[MANY];                                                                                         \
        static T dest[MANY];                                                                                           \
        static T work[MANY];                                                                                           \
                                                                                                                       \
        FILL(T, OP, MANY, me);                                                                                         \
        shmem_barrier_all();                                                                                           \
        shmem_##NAME##_##OP##_to_all(dest, source, FEW, 0, 0, n_pes, work, psync);                                     \
        EXPECT(T, OP, dest, FEW, n_pes);                                                                               \
        shmem_barrier_all();                                                                                           \
        shmem_##NAME##_##OP##_to_all(dest, source, MANY, 0, 0, n_pes, work, psync);                                    \
        EXPECT(T, OP, dest, MANY, n_pes);                                                                              \
        shmem_barrier_all();                                                                                           \
    } while (0);
#define OLD_BITWISE(NAME, T) SET_CASE(NAME, T, and) SET_CASE(NAME, T, or) SET_CASE(NAME, T, xor)
#define OLD_ORDER(NAME, T)   SET_CASE(NAME, T, max) SET_CASE(NAME, T, min)
#define OLD_SUM(NAME, T)     SET_CASE(NAME, T, sum) SET_CASE(NAME, T, prod)

static void test_active_sets_reduce_bits(void **state)
{
    (void)state;
    SMA_OLD_BITWISE_TYPES(OLD_BITWISE)
}

static void test_active_sets_reduce_order(void **state)
{
    (void)state;
    SMA_OLD_ORDER_TYPES(OLD_ORDER)
}

static void test_active_sets_reduce_sums(void **state)
{
    (void)state;
    SMA_OLD_SUM_TYPES(OLD_SUM)
}

static void test_all_pes_get_the_same_bits(void **state)
{
    static double source[1000];
    static double dest[1000];
    static double first[1000];

    (void)state;
    for (int count = 1; count <= 1000; count += 999) {
        for (int k = 0; k < 1000; k++)
            source[k] = 1.0 / (3 + k + me * 7);
        shmem_barrier_all();
        shmem_sum_reduce(SHMEM_TEAM_WORLD, dest, source, (size_t)count);
        shmem_barrier_all();
        shmem_double_get(first, dest, (size_t)count, 0);
        assert_memory_equal(first, dest, (size_t)count * sizeof(double));
        shmem_barrier_all();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_teams_reduce_bits),         cmocka_unit_test(test_teams_reduce_order),
        cmocka_unit_test(test_teams_reduce_sums),         cmocka_unit_test(test_active_sets_reduce_bits),
        cmocka_unit_test(test_active_sets_reduce_order),  cmocka_unit_test(test_active_sets_reduce_sums),
        cmocka_unit_test(test_all_pes_get_the_same_bits),
    };

    return run(tests);
}
