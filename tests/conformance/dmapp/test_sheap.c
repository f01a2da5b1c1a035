/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The symmetric heap: blocks that do not overlap, the same addresses in every PE for the same calls, realloc as C
 * has it, statistics that add up.
 */
#include "tests/conformance/dmapp/cases.h"

static dmapp_sheap_stats_t stats_now(void)
{
    dmapp_sheap_stats_t stats;

    memset(&stats, 0xff, sizeof(stats));
    assert_int_equal(dmapp_sheap_stats(&stats), DMAPP_RC_SUCCESS);
    assert_true(stats.in_use + stats.free == stats.size);
    assert_true(stats.largest_free <= stats.free);
    assert_true(stats.size <= stats.max_size);
    for (unsigned i = 0; i < COUNT_OF(stats.spare); i++)
        assert_int_equal(stats.spare[i], 0);
    return stats;
}

static void test_blocks_are_aligned_and_inside_the_segment(void **state)
{
    static const size_t sizes[] = { 0, 1, 63, 64, 65, 4096, 1u << 20 };
    uint8_t *first = dx_job.sheap_seg.addr;

    (void)state;
    for (unsigned i = 0; i < COUNT_OF(sizes); i++) {
        uint8_t *block = dmapp_sheap_malloc(sizes[i]);

        assert_non_null(block);
        assert_int_equal((uintptr_t)block % 64, 0);
        assert_true(block >= first && block + sizes[i] <= first + dx_job.sheap_seg.len);
        memset(block, 0xab, sizes[i]);
        dmapp_sheap_free(block);
    }
    dx_barrier();
}

/* Hundreds of live blocks, each with its own content, in random order. */
static void test_random_calls_keep_every_block_intact(void **state)
{
    enum { LIVE = 200, STEPS = 20000 };
    struct emu_random random = seeded(3);
    dmapp_sheap_stats_t before = stats_now();
    struct {
        uint8_t *at;
        size_t size;
        uint64_t seed;
    } live[LIVE] = { { NULL, 0, 0 } };

    (void)state;
    for (unsigned step = 0; step < STEPS; step++) {
        unsigned i = (unsigned)emu_random_below(&random, LIVE);
        size_t size = (size_t)emu_random_below(&random, 1ull << emu_random_below(&random, 15)) + 1;

        if (live[i].at && (live[i].at[0] != pattern(0, live[i].seed) ||
                           live[i].at[live[i].size - 1] != pattern(live[i].size - 1, live[i].seed)))
            fail_msg("step %u: block %u was written over", step, i);
        if (!live[i].at) {
            live[i].at = dmapp_sheap_malloc(size);
        } else if (emu_random_below(&random, 3) == 0) {
            size_t kept = size < live[i].size ? size : live[i].size;
            uint8_t *moved = dmapp_sheap_realloc(live[i].at, size);

            assert_non_null(moved);
            expect(moved, kept, live[i].seed);
            live[i].at = moved;
        } else {
            expect(live[i].at, live[i].size, live[i].seed);
            dmapp_sheap_free(live[i].at);
            live[i].at = NULL;
            continue;
        }
        assert_non_null(live[i].at);
        live[i].size = size;
        live[i].seed = step;
        fill(live[i].at, size, step);
    }
    for (unsigned i = 0; i < LIVE; i++) {
        if (live[i].at)
            expect(live[i].at, live[i].size, live[i].seed);
        dmapp_sheap_free(live[i].at);
    }
    assert_true(stats_now().in_use == before.in_use);
    assert_true(stats_now().nallocs == before.nallocs);
    assert_true(stats_now().largest_free == before.largest_free);
    dx_barrier();
}

/* All PEs make the same calls and compare each address. */
static void test_same_calls_give_the_same_addresses(void **state)
{
    enum { LIVE = 40 };
    uint64_t *seen = dx_alloc(8 * (size_t)dx_job.npes);
    struct emu_random random = seeded(4);
    uint64_t sum = 0;
    void *live[LIVE] = { NULL };

    (void)state;
    for (unsigned step = 0; step < 2000; step++) {
        unsigned i = (unsigned)emu_random_below(&random, LIVE);

        if (live[i]) {
            dmapp_sheap_free(live[i]);
            live[i] = NULL;
        } else {
            live[i] = dmapp_sheap_malloc((size_t)emu_random_below(&random, 100000));
            sum = sum * 31 + (uint64_t)(uintptr_t)live[i];
        }
    }
    for (unsigned i = 0; i < LIVE; i++)
        dmapp_sheap_free(live[i]);
    for (dmapp_pe_t pe = 0; pe < dx_job.npes; pe++)
        dx_put_word(&seen[dx_job.pe], &dx_job.sheap_seg, pe, sum);
    dx_barrier();
    for (dmapp_pe_t pe = 0; pe < dx_job.npes; pe++)
        assert_true(seen[pe] == sum);
    dx_free(seen);
}

static void test_what_is_no_block_is_left_alone(void **state)
{
    uint8_t *block = dmapp_sheap_malloc(1000);
    dmapp_sheap_stats_t before = stats_now();
    uint64_t on_stack;

    (void)state;
    assert_non_null(block);
    dmapp_sheap_free(NULL);
    dmapp_sheap_free(&on_stack);
    dmapp_sheap_free(block + 8);
    dmapp_sheap_free(block + 64);
    dmapp_sheap_free(block + 960);
    dmapp_sheap_free((uint8_t *)dx_job.sheap_seg.addr + dx_job.sheap_seg.len);
    assert_null(dmapp_sheap_realloc(&on_stack, 8));
    assert_null(dmapp_sheap_realloc(block + 64, 8));
    assert_null(dmapp_sheap_realloc(block + 960, 8));
    assert_true(stats_now().nallocs == before.nallocs);
    dmapp_sheap_free(block);
    dmapp_sheap_free(block);
    assert_null(dmapp_sheap_realloc(block, 8));
    assert_true(stats_now().nallocs == before.nallocs - 1);
    dx_barrier();
}

static void test_realloc_of_nothing_and_to_nothing(void **state)
{
    dmapp_sheap_stats_t before = stats_now();
    void *block = dmapp_sheap_realloc(NULL, 100);

    (void)state;
    assert_non_null(block);
    assert_true(stats_now().nallocs == before.nallocs + 1);
    assert_null(dmapp_sheap_realloc(block, 0));
    assert_true(stats_now().nallocs == before.nallocs);
    dx_barrier();
}

static void test_too_much_is_refused_and_changes_nothing(void **state)
{
    dmapp_sheap_stats_t before = stats_now();
    uint8_t *block = dmapp_sheap_malloc(64);
    void *rest;

    (void)state;
    block[63] = 7;
    assert_null(dmapp_sheap_malloc(dx_job.sheap_seg.len + 1));
    assert_null(dmapp_sheap_malloc(SIZE_MAX));
    assert_null(dmapp_sheap_realloc(block, SIZE_MAX - 63));
    assert_null(dmapp_sheap_realloc(block, dx_job.sheap_seg.len + 1));
    assert_int_equal(block[63], 7);
    rest = dmapp_sheap_malloc(stats_now().largest_free);
    assert_non_null(rest);
    dmapp_sheap_free(rest);
    dmapp_sheap_free(block);
    assert_true(stats_now().largest_free == before.largest_free);
    assert_int_equal(dmapp_sheap_stats(NULL), DMAPP_RC_INVALID_PARAM);
    dx_barrier();
}

/* The descriptor that was copied at the start serves blocks that are made later. */
static void test_early_copies_of_the_descriptor_stay_good(void **state)
{
    uint64_t *block = dx_alloc(200u << 20);
    uint64_t word = 1234;

    (void)state;
    assert_int_equal(dmapp_put(block + (200u << 17) - 1, &dx_job.sheap_seg, next_pe(), &word, 1, DMAPP_QW),
                     DMAPP_RC_SUCCESS);
    dx_barrier();
    assert_int_equal(block[(200u << 17) - 1], 1234);
    dx_free(block);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_blocks_are_aligned_and_inside_the_segment),
        cmocka_unit_test(test_random_calls_keep_every_block_intact),
        cmocka_unit_test(test_same_calls_give_the_same_addresses),
        cmocka_unit_test(test_what_is_no_block_is_left_alone),
        cmocka_unit_test(test_realloc_of_nothing_and_to_nothing),
        cmocka_unit_test(test_too_much_is_refused_and_changes_nothing),
        cmocka_unit_test(test_early_copies_of_the_descriptor_stay_good),
    };

    return dx_run(tests, NULL);
}
