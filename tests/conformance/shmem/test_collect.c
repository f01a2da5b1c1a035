/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Broadcast, collect and all-to-all of every type on the world, a split team and active sets; barriers.
 */
#include "tests/conformance/shmem/cases.h"

#define COUNT   3
#define PES_MAX 64

static shmem_team_t odd; /* every second PE, from the last one down */
static long psync[SHMEM_SYNC_SIZE];

/* Of a team with so many PEs, this one being number `mine`. */
#define TEAM_CASES(NAME, T, team)                                                                                      \
    do {                                                                                                               \
        static T source[COUNT * 2 * PES_MAX];                                                                          \
        static T dest[COUNT * 2 * PES_MAX];                                                                            \
        int n = shmem_team_n_pes(team);                                                                                \
        int mine = shmem_team_my_pe(team);                                                                             \
        int at = 0;                                                                                                    \
                                                                                                                       \
        for (int k = 0; k < COUNT * 2 * n; k++)                                                                        \
            source[k] = VALUE(T, k, mine);                                                                             \
        memset((void *)dest, 0, sizeof(dest));                                                                         \
        shmem_team_sync(team);                                                                                         \
        assert_int_equal(shmem_##NAME##_broadcast(team, dest, source, COUNT, n - 1), 0);                               \
        for (int k = 0; k < COUNT; k++)                                                                                \
            assert_true(dest[k] == VALUE(T, k, n - 1));                                                                \
        shmem_team_sync(team);                                                                                         \
        assert_int_equal(shmem_##NAME##_fcollect(team, dest, source, COUNT), 0);                                       \
        for (int k = 0; k < COUNT * n; k++)                                                                            \
            assert_true(dest[k] == VALUE(T, k % COUNT, k / COUNT));                                                    \
        shmem_team_sync(team);                                                                                         \
        assert_int_equal(shmem_##NAME##_collect(team, dest, source, (size_t)(mine % 3)), 0);                           \
        for (int pe = 0; pe < n; pe++) {                                                                               \
            for (int k = 0; k < pe % 3; k++)                                                                           \
                assert_true(dest[at++] == VALUE(T, k, pe));                                                            \
        }                                                                                                              \
        shmem_team_sync(team);                                                                                         \
        assert_int_equal(shmem_##NAME##_alltoall(team, dest, source, COUNT), 0);                                       \
        for (int k = 0; k < COUNT * n; k++)                                                                            \
            assert_true(dest[k] == VALUE(T, mine * COUNT + k % COUNT, k / COUNT));                                     \
        shmem_team_sync(team);                                                                                         \
        memset((void *)dest, 0, sizeof(dest));                                                                         \
        shmem_team_sync(team);                                                                                         \
        assert_int_equal(shmem_##NAME##_alltoalls(team, dest, source, 2, 1, COUNT), 0);                                \
        for (int k = 0; k < COUNT * n; k++)                                                                            \
            assert_true(dest[2 * k] == VALUE(T, mine * COUNT + k % COUNT, k / COUNT) && dest[2 * k + 1] == (T)0);      \
        shmem_team_sync(team);                                                                                         \
    } while (0)

#define TEAM_TEST(NAME, T)                                                                                             \
    static void team_##NAME(shmem_team_t team)                                                                         \
    {                                                                                                                  \
        TEAM_CASES(NAME, T, team);                                                                                     \
    }
SMA_RMA_TYPES(TEAM_TEST)

static void split_odd(void)
{
    int size = (n_pes + 1) / 2;

    assert_int_equal(shmem_team_split_strided(SHMEM_TEAM_WORLD, n_pes - 1, -2, size, NULL, 0, &odd), 0);
}

static void test_teams_move_every_type(void **state)
{
    (void)state;
    assert_true(n_pes <= PES_MAX);
    split_odd();
#define CALL_TEAM_TEST(NAME, T)                                                                                        \
    team_##NAME(SHMEM_TEAM_WORLD);                                                                                     \
    if (odd != SHMEM_TEAM_INVALID)                                                                                     \
        team_##NAME(odd);
    SMA_RMA_TYPES(CALL_TEAM_TEST)
    shmem_team_destroy(odd);
}

static void test_teams_move_bytes(void **state)
{
    static uint8_t source[COUNT * 2 * PES_MAX];
    static uint8_t dest[COUNT * 2 * PES_MAX];

    (void)state;
    for (int k = 0; k < COUNT * 2 * n_pes; k++)
        source[k] = VALUE(uint8_t, k, me);
    shmem_barrier_all();
    assert_int_equal(shmem_broadcastmem(SHMEM_TEAM_WORLD, dest, source, COUNT, 0), 0);
    assert_int_equal(dest[COUNT - 1], VALUE(uint8_t, COUNT - 1, 0));
    shmem_barrier_all();
    assert_int_equal(shmem_collectmem(SHMEM_TEAM_WORLD, dest, source, 2), 0);
    assert_int_equal(dest[2 * n_pes - 1], VALUE(uint8_t, 1, n_pes - 1));
    shmem_barrier_all();
    assert_int_equal(shmem_fcollectmem(SHMEM_TEAM_WORLD, dest, source, COUNT), 0);
    assert_int_equal(dest[COUNT * n_pes - 1], VALUE(uint8_t, COUNT - 1, n_pes - 1));
    shmem_barrier_all();
    assert_int_equal(shmem_alltoallmem(SHMEM_TEAM_WORLD, dest, source, COUNT), 0);
    assert_int_equal(dest[0], VALUE(uint8_t, me * COUNT, 0));
    shmem_barrier_all();
    assert_int_equal(shmem_alltoallsmem(SHMEM_TEAM_WORLD, dest, source, 1, 2, COUNT), 0);
    assert_int_equal(dest[1], VALUE(uint8_t, 2 * (me * COUNT + 1), 0));
    shmem_barrier_all();
}

/* Of the set: the world, or PEs 0, 2, 4, ... */
#define SET_CASES(BITS, T, log_stride, size)                                                                           \
    do {                                                                                                               \
        static T source[COUNT * 2 * PES_MAX];                                                                          \
        static T dest[COUNT * 2 * PES_MAX];                                                                            \
        int mine = me >> (log_stride);                                                                                 \
        int root = (size)-1;                                                                                           \
        int at = 0;                                                                                                    \
                                                                                                                       \
        for (int k = 0; k < COUNT * 2 * (size); k++)                                                                   \
            source[k] = VALUE(T, k, mine);                                                                             \
        memset(dest, 0, sizeof(dest));                                                                                 \
        shmem_barrier(0, log_stride, size, psync);                                                                     \
        shmem_broadcast##BITS(dest, source, COUNT, root, 0, log_stride, size, psync);                                  \
        for (int k = 0; k < COUNT; k++)                                                                                \
            assert_true(dest[k] == (mine == root ? 0 : VALUE(T, k, root)));                                            \
        shmem_barrier(0, log_stride, size, psync);                                                                     \
        shmem_fcollect##BITS(dest, source, COUNT, 0, log_stride, size, psync);                                         \
        for (int k = 0; k < COUNT * (size); k++)                                                                       \
            assert_true(dest[k] == VALUE(T, k % COUNT, k / COUNT));                                                    \
        (shmem_sync)(0, log_stride, size, psync);                                                                      \
        shmem_collect##BITS(dest, source, (size_t)(mine % 3), 0, log_stride, size, psync);                             \
        for (int pe = 0; pe < (size); pe++) {                                                                          \
            for (int k = 0; k < pe % 3; k++)                                                                           \
                assert_true(dest[at++] == VALUE(T, k, pe));                                                            \
        }                                                                                                              \
        shmem_barrier(0, log_stride, size, psync);                                                                     \
        shmem_alltoall##BITS(dest, source, COUNT, 0, log_stride, size, psync);                                         \
        for (int k = 0; k < COUNT * (size); k++)                                                                       \
            assert_true(dest[k] == VALUE(T, mine * COUNT + k % COUNT, k / COUNT));                                     \
        shmem_barrier(0, log_stride, size, psync);                                                                     \
        shmem_alltoalls##BITS(dest, source, 1, 2, COUNT, 0, log_stride, size, psync);                                  \
        for (int k = 0; k < COUNT * (size); k++)                                                                       \
            assert_true(dest[k] == VALUE(T, 2 * (mine * COUNT + k % COUNT), k / COUNT));                               \
        shmem_barrier(0, log_stride, size, psync);                                                                     \
    } while (0)

static void test_active_sets_move_words(void **state)
{
    int half = (n_pes + 1) / 2;

    (void)state;
    SET_CASES(32, uint32_t, 0, n_pes);
    SET_CASES(64, uint64_t, 0, n_pes);
    if (me % 2 == 0) {
        SET_CASES(32, uint32_t, 1, half);
        SET_CASES(64, uint64_t, 1, half);
    }
    for (int i = 0; i < SHMEM_SYNC_SIZE; i++)
        assert_int_equal(psync[i], SHMEM_SYNC_VALUE);
    shmem_barrier_all();
}

static void test_long_blocks_arrive_whole(void **state)
{
    size_t count = 40000;
    long *source = shmem_malloc(count * sizeof(long));
    long *dest = shmem_malloc(count * (size_t)n_pes * sizeof(long));

    (void)state;
    for (size_t k = 0; k < count; k++)
        source[k] = (long)k * 1000 + me;
    shmem_barrier_all();
    shmem_fcollect(SHMEM_TEAM_WORLD, dest, source, count);
    for (size_t k = 0; k < count * (size_t)n_pes; k++)
        assert_true(dest[k] == (long)(k % count) * 1000 + (long)(k / count));
    shmem_barrier_all();
    shmem_broadcast(SHMEM_TEAM_WORLD, dest, source, count, n_pes / 2);
    for (size_t k = 0; k < count; k++)
        assert_true(dest[k] == (long)k * 1000 + n_pes / 2);
    shmem_barrier_all();
    shmem_free(dest);
    shmem_free(source);
}

static void test_many_broadcasts_in_a_row_keep_their_order(void **state)
{
    static long dest[64];
    static long source[64];

    (void)state;
    for (int round = 0; round < 50; round++) {
        source[round] = round * 100 + me;
        shmem_long_broadcast(SHMEM_TEAM_WORLD, &dest[round], &source[round], 1, round % n_pes);
    }
    for (int round = 0; round < 50; round++)
        assert_int_equal(dest[round], round * 100 + round % n_pes);
    shmem_barrier_all();
}

static void test_nobody_leaves_a_barrier_before_all_have_come(void **state)
{
    static long count;

    (void)state;
    shmem_barrier_all();
    for (long round = 1; round <= 100; round++) {
        shmem_long_atomic_inc(&count, 0);
        switch (round % 4) {
        case 0:
            shmem_barrier_all();
            break;
        case 1:
            shmem_quiet();
            shmem_sync_all();
            break;
        case 2:
            shmem_quiet();
            shmem_sync(SHMEM_TEAM_WORLD);
            break;
        default:
            shmem_barrier(0, 0, n_pes, psync);
        }
        assert_int_equal(shmem_long_atomic_fetch(&count, 0), round * n_pes);
        shmem_sync_all();
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_teams_move_every_type),
        cmocka_unit_test(test_teams_move_bytes),
        cmocka_unit_test(test_active_sets_move_words),
        cmocka_unit_test(test_long_blocks_arrive_whole),
        cmocka_unit_test(test_many_broadcasts_in_a_row_keep_their_order),
        cmocka_unit_test(test_nobody_leaves_a_barrier_before_all_have_come),
    };

    return run(tests);
}
