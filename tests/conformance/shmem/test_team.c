/* SPDX-License-Identifier: BSD-3-Clause */
/* Teams, and contexts of teams. */
#include "tests/conformance/shmem/cases.h"

static void test_predefined_teams_know_their_pes(void **state)
{
    (void)state;
    assert_int_equal(shmem_team_my_pe(SHMEM_TEAM_WORLD), me);
    assert_int_equal(shmem_team_n_pes(SHMEM_TEAM_WORLD), n_pes);
    assert_int_equal(shmem_team_my_pe(SHMEM_TEAM_INVALID), -1);
    assert_int_equal(shmem_team_n_pes(SHMEM_TEAM_INVALID), -1);
    for (int pe = 0; pe < n_pes; pe++) {
        void *there = shmem_malloc(8);

        assert_int_equal(!shmem_ptr(there, pe), shmem_team_translate_pe(SHMEM_TEAM_WORLD, pe, SHMEM_TEAM_SHARED) == -1);
        shmem_free(there);
    }
    assert_int_equal(shmem_team_sync(SHMEM_TEAM_SHARED), 0);
}

static void test_a_strided_team_numbers_its_pes(void **state)
{
    int size = (n_pes + 1) / 2;
    shmem_team_t team;

    (void)state;
    for (int stride = -2; stride <= 2; stride += 4) {
        int start = stride > 0 ? 0 : (size - 1) * 2;
        int mine = stride > 0 ? me / 2 : (start - me) / 2;

        assert_int_equal(shmem_team_split_strided(SHMEM_TEAM_WORLD, start, stride, size, NULL, 0, &team), 0);
        assert_int_equal(team != SHMEM_TEAM_INVALID, me % 2 == 0);
        if (me % 2 == 0) {
            assert_int_equal(shmem_team_my_pe(team), mine);
            assert_int_equal(shmem_team_n_pes(team), size);
            assert_int_equal(shmem_team_translate_pe(team, mine, SHMEM_TEAM_WORLD), me);
            assert_int_equal(shmem_team_translate_pe(SHMEM_TEAM_WORLD, 1, team), -1);
            assert_int_equal(shmem_team_sync(team), 0);
        }
        shmem_team_destroy(team);
    }
}

static void test_rows_and_columns_cover_the_parent(void **state)
{
    (void)state;
    for (int range = 1; range <= n_pes + 1; range++) {
        int width = range < n_pes ? range : n_pes;
        shmem_team_t row;
        shmem_team_t column;

        assert_int_equal(shmem_team_split_2d(SHMEM_TEAM_WORLD, range, NULL, 0, &row, NULL, 0, &column), 0);
        assert_int_equal(shmem_team_my_pe(row), me % width);
        assert_int_equal(shmem_team_my_pe(column), me / width);
        assert_int_equal(shmem_team_translate_pe(row, 0, SHMEM_TEAM_WORLD), me / width * width);
        assert_int_equal(shmem_team_translate_pe(column, 0, SHMEM_TEAM_WORLD), me % width);
        shmem_team_sync(row);
        shmem_team_sync(column);
        shmem_team_destroy(row);
        shmem_team_destroy(column);
    }
}

static void test_a_pointer_is_to_a_pe_of_the_team(void **state)
{
    long *block = shmem_malloc(sizeof(*block));
    shmem_team_t team;

    (void)state;
    shmem_team_split_strided(SHMEM_TEAM_WORLD, n_pes - 1, -1, n_pes, NULL, 0, &team);
    for (int pe = 0; pe < n_pes; pe++)
        assert_ptr_equal(shmem_team_ptr(team, block, pe), shmem_ptr(block, n_pes - 1 - pe));
    assert_null(shmem_team_ptr(team, block, n_pes));
    assert_null(shmem_team_ptr(team, block, -1));
    assert_null(shmem_team_ptr(SHMEM_TEAM_INVALID, block, 0));
    shmem_team_destroy(team);
    shmem_free(block);
}

static void test_splits_that_cannot_be_give_no_team(void **state)
{
    shmem_team_t other = SHMEM_TEAM_WORLD;
    shmem_team_t team = SHMEM_TEAM_WORLD;

    (void)state;
    assert_true(shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, n_pes + 1, NULL, 0, &team) != 0);
    assert_ptr_equal(team, SHMEM_TEAM_INVALID);
    assert_true(shmem_team_split_strided(SHMEM_TEAM_WORLD, -1, 1, 1, NULL, 0, &team) != 0);
    assert_true(shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, 0, NULL, 0, &team) != 0);
    assert_true(shmem_team_split_strided(SHMEM_TEAM_INVALID, 0, 1, 1, NULL, 0, &team) != 0);
    assert_true(shmem_team_split_2d(SHMEM_TEAM_WORLD, 0, NULL, 0, &team, NULL, 0, &other) != 0);
    assert_ptr_equal(other, SHMEM_TEAM_INVALID);
}

static void test_a_team_keeps_its_configuration(void **state)
{
    shmem_team_config_t config = { .num_contexts = 3 };
    shmem_team_config_t seen = { 0 };
    shmem_team_t team;

    (void)state;
    assert_int_equal(shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, n_pes, &config, SHMEM_TEAM_NUM_CONTEXTS, &team),
                     0);
    assert_int_equal(shmem_team_get_config(team, SHMEM_TEAM_NUM_CONTEXTS, &seen), 0);
    assert_int_equal(seen.num_contexts, 3);
    assert_true(shmem_team_get_config(SHMEM_TEAM_INVALID, 0, &seen) != 0);
    assert_int_equal(shmem_team_get_config(SHMEM_TEAM_WORLD, 0, NULL), 0);
    shmem_team_destroy(team);
}

static void test_slots_of_destroyed_teams_serve_again(void **state)
{
    static long out;
    static long in;

    (void)state;
    for (int round = 0; round < 150; round++) {
        shmem_team_t team;

        assert_int_equal(shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, n_pes, NULL, 0, &team), 0);
        in = round;
        shmem_sum_reduce(team, &out, &in, 1);
        assert_int_equal(out, (long)round * n_pes);
        shmem_team_destroy(team);
    }
}

static void test_too_many_teams_are_refused_by_all(void **state)
{
    shmem_team_t teams[80];
    int n = 0;

    (void)state;
    while (n < 80 && shmem_team_split_strided(SHMEM_TEAM_WORLD, 0, 1, n_pes, NULL, 0, &teams[n]) == 0)
        n++;
    assert_int_equal(n, 61);
    assert_ptr_equal(teams[n], SHMEM_TEAM_INVALID);
    while (n > 0)
        shmem_team_destroy(teams[--n]);
}

static void test_a_context_counts_pes_of_its_team(void **state)
{
    static long word;
    shmem_team_t reverse;
    shmem_team_t seen;
    shmem_ctx_t ctx;

    (void)state;
    assert_int_equal(shmem_team_split_strided(SHMEM_TEAM_WORLD, n_pes - 1, -1, n_pes, NULL, 0, &reverse), 0);
    assert_int_equal(shmem_team_create_ctx(reverse, SHMEM_CTX_PRIVATE | SHMEM_CTX_NOSTORE, &ctx), 0);
    assert_int_equal(shmem_ctx_get_team(ctx, &seen), 0);
    assert_ptr_equal(seen, reverse);
    shmem_ctx_long_p(ctx, &word, me + 1, me); /* our mirror image */
    shmem_ctx_quiet(ctx);
    shmem_barrier_all();
    assert_int_equal(word, n_pes - me);
    shmem_ctx_destroy(ctx);
    shmem_team_destroy(reverse);
}

static void test_contexts_of_nothing_are_refused(void **state)
{
    shmem_team_t team = SHMEM_TEAM_WORLD;
    shmem_ctx_t ctx = SHMEM_CTX_DEFAULT;

    (void)state;
    assert_true(shmem_team_create_ctx(SHMEM_TEAM_INVALID, 0, &ctx) != 0);
    assert_ptr_equal(ctx, SHMEM_CTX_INVALID);
    assert_true(shmem_ctx_create(1L << 20, &ctx) != 0);
    assert_true(shmem_ctx_get_team(SHMEM_CTX_INVALID, &team) != 0);
    assert_ptr_equal(team, SHMEM_TEAM_INVALID);
    assert_int_equal(shmem_ctx_get_team(SHMEM_CTX_DEFAULT, &team), 0);
    assert_ptr_equal(team, SHMEM_TEAM_WORLD);
    shmem_ctx_destroy(SHMEM_CTX_INVALID);
    shmem_ctx_fence(SHMEM_CTX_INVALID);
    shmem_ctx_quiet(SHMEM_CTX_INVALID);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_predefined_teams_know_their_pes),
        cmocka_unit_test(test_a_strided_team_numbers_its_pes),
        cmocka_unit_test(test_rows_and_columns_cover_the_parent),
        cmocka_unit_test(test_a_pointer_is_to_a_pe_of_the_team),
        cmocka_unit_test(test_splits_that_cannot_be_give_no_team),
        cmocka_unit_test(test_a_team_keeps_its_configuration),
        cmocka_unit_test(test_slots_of_destroyed_teams_serve_again),
        cmocka_unit_test(test_too_many_teams_are_refused_by_all),
        cmocka_unit_test(test_a_context_counts_pes_of_its_team),
        cmocka_unit_test(test_contexts_of_nothing_are_refused),
    };

    return run(tests);
}
