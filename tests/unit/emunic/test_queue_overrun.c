/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Events for which a completion queue has no place: what waits stays, those that are lost are counted, and the count
 * comes after all that was there before.
 */
#include "tests/unit/emunic/queue_arena.h"

static void test_push_into_a_full_queue_keeps_what_waits(void **state)
{
    (void)state;
    for (uint64_t i = 0; i < RING; i++)
        assert_int_equal(emu_cq_push(&producer, i), EMU_CQ_OK);
    for (unsigned i = 0; i < 3 * RING; i++)
        assert_int_equal(emu_cq_push(&producer, 1000 + i), EMU_CQ_FULL);
    for (uint64_t i = 0; i < RING; i++)
        expect_pop(i);
    expect_empty();
}

static void test_lost_events_are_counted_until_taken(void **state)
{
    (void)state;
    for (unsigned i = 0; i < RING + 3; i++)
        emu_cq_push(&producer, i);
    assert_int_equal(emu_cq_take_overrun(&consumer), 0); /* what came before comes first */
    for (uint64_t i = 0; i < RING; i++)
        expect_pop(i);
    assert_true(emu_cq_has_overrun(&consumer));
    assert_int_equal(emu_cq_take_overrun(&consumer), 3);
    assert_false(emu_cq_has_overrun(&consumer));
    assert_int_equal(emu_cq_take_overrun(&consumer), 0);
}

static void test_lost_events_can_be_taken_one_by_one(void **state)
{
    (void)state;
    for (unsigned i = 0; i < RING + 3; i++)
        emu_cq_push(&producer, i);
    assert_false(emu_cq_take_loss(&consumer));
    assert_true(emu_cq_has_lost(&consumer));
    for (uint64_t i = 0; i < RING; i++)
        expect_pop(i);
    assert_true(emu_cq_take_loss(&consumer));
    emu_cq_push(&producer, 50);
    assert_false(emu_cq_take_loss(&consumer)); /* what came since comes before the rest */
    expect_pop(50);
    assert_true(emu_cq_take_loss(&consumer));
    assert_true(emu_cq_take_loss(&consumer));
    assert_false(emu_cq_take_loss(&consumer));
    assert_false(emu_cq_has_lost(&consumer));
}

static void test_places_that_peers_have_not_are_for_others(void **state)
{
    (void)state;
    make(RING, 1, false);
    assert_int_equal(emu_cq_places(&producer, true), 1);
    assert_int_equal(emu_cq_places(&producer, false), RING);
    assert_int_equal(emu_cq_push(&producer, 0), EMU_CQ_OK);
    assert_int_equal(emu_cq_push(&producer, 1), EMU_CQ_FULL);
    for (uint64_t i = 1; i < RING; i++)
        assert_int_equal(emu_cq_push_all(&producer, i), EMU_CQ_OK);
    assert_int_equal(emu_cq_push_all(&producer, RING), EMU_CQ_FULL);
    for (uint64_t i = 0; i < RING; i++)
        expect_pop(i);
    assert_int_equal(emu_cq_take_overrun(&consumer), 2);
    assert_int_equal(emu_cq_push(&producer, 5), EMU_CQ_OK);
    expect_pop(5);
    assert_guards_untouched(RING);
}

/* A producer that is slow, or has died: what was reserved before the loss is reported before it. */
static void test_overrun_comes_after_events_that_are_on_their_way(void **state)
{
    (void)state;
    for (unsigned lap = 0; lap < 3; lap++) {
        atomic_fetch_add(&shm->tail, 1);
        for (unsigned i = 1; i < RING + 2; i++)
            emu_cq_push(&producer, i);
        assert_false(emu_cq_has_overrun(&consumer));
        assert_int_equal(emu_cq_take_overrun(&consumer), 0);
        assert_int_equal(emu_cq_fill_gaps(&producer, atomic_load(&shm->tail), 99), 1);
        expect_pop(99);
        for (unsigned i = 1; i < RING; i++)
            expect_pop(i);
        assert_true(emu_cq_has_overrun(&consumer));
        assert_int_equal(emu_cq_take_overrun(&consumer), 2);
    }
}

static void test_queue_goes_on_after_an_overrun(void **state)
{
    (void)state;
    for (unsigned i = 0; i < RING + 1; i++)
        emu_cq_push(&producer, i);
    for (uint64_t i = 0; i < RING; i++)
        expect_pop(i);
    for (uint64_t i = 0; i < 5 * RING; i++) {
        assert_int_equal(emu_cq_push(&producer, i), EMU_CQ_OK);
        expect_pop(i);
    }
    assert_int_equal(emu_cq_take_overrun(&consumer), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        UNIT(test_push_into_a_full_queue_keeps_what_waits),
        UNIT(test_lost_events_are_counted_until_taken),
        UNIT(test_lost_events_can_be_taken_one_by_one),
        UNIT(test_places_that_peers_have_not_are_for_others),
        UNIT(test_overrun_comes_after_events_that_are_on_their_way),
        UNIT(test_queue_goes_on_after_an_overrun),
    };

    return cmocka_run_group_tests(tests, map_arena, unmap_arena);
}
