/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What other processes can leave in a completion queue: hostile ones, wrong words, which lead nowhere outside it; those
 * that have died, places that nobody fills, which emunic repairs while the queue is in use.
 */
#include "tests/unit/emunic/queue_arena.h"

#include <pthread.h>

#include "tests/common/seed.h"

/* ---- a hostile other side ---- */

static void test_wrong_counters_never_lead_outside_the_queue(void **state)
{
    struct emu_random random = seeded(12);
    static const uint64_t edges[] = { 0, 1, RING - 1, RING, RING + 1, 1ull << 31, 1ull << 32, 1ull << 63, UINT64_MAX };

    (void)state;
    for (unsigned i = 0; i < 20000; i++) {
        uint64_t event;

        atomic_store(&shm->tail,
                     emu_random_below(&random, 2) ? edges[emu_random_below(&random, 9)] : emu_random_next(&random));
        atomic_store(&shm->head,
                     emu_random_below(&random, 2) ? edges[emu_random_below(&random, 9)] : emu_random_next(&random));
        emu_cq_push(&producer, emu_random_next(&random));
        emu_cq_pop(&consumer, &event);
    }
    assert_guards_untouched(RING);
}

static void test_geometry_in_shared_memory_is_not_read_again(void **state)
{
    (void)state;
    shm->ring_entries = 1u << 20;
    shm->capacity = 1u << 20;
    for (uint64_t i = 0; i < RING; i++)
        assert_int_equal(emu_cq_push(&producer, i), EMU_CQ_OK);
    assert_int_equal(emu_cq_push(&producer, 99), EMU_CQ_FULL);
    for (uint64_t i = 0; i < RING; i++)
        expect_pop(i);
    assert_guards_untouched(RING);
}

static void test_wrong_head_makes_the_queue_look_full(void **state)
{
    (void)state;
    for (unsigned i = 0; i < RING; i++)
        assert_int_equal(emu_cq_push(&producer, i), EMU_CQ_OK);
    atomic_store(&shm->head, 100); /* more taken than was ever published */
    assert_int_equal(emu_cq_push(&producer, 99), EMU_CQ_FULL);
    for (uint64_t i = 0; i < RING; i++)
        expect_pop(i);
}

static void test_forged_entries_are_only_the_owners_trouble(void **state)
{
    struct emu_random random = seeded(13);

    (void)state;
    for (unsigned i = 0; i < 10000; i++) {
        uint64_t event;

        for (unsigned j = 0; j < RING; j++)
            atomic_store(&shm->entries[j], emu_random_next(&random));
        emu_cq_pop(&consumer, &event);
        emu_cq_push(&producer, i);
    }
    assert_guards_untouched(RING);
}

/* ---- repair ---- */

static void test_places_that_were_never_filled_get_the_event(void **state)
{
    (void)state;
    for (uint64_t lap = 0; lap < 5; lap++) {
        emu_cq_push(&producer, 1);
        atomic_fetch_add(&shm->tail, 1); /* a producer that died between reserve and publish */
        emu_cq_push(&producer, 3);
        atomic_fetch_add(&shm->tail, 1);
        expect_pop(1);
        expect_empty();
        assert_int_equal(emu_cq_fill_gaps(&producer, atomic_load(&shm->tail), 99), 2);
        expect_pop(99);
        expect_pop(3);
        expect_pop(99);
        expect_empty();
    }
    assert_guards_untouched(RING);
}

static void test_repair_fills_nothing_in_a_sound_queue(void **state)
{
    (void)state;
    assert_int_equal(emu_cq_fill_gaps(&producer, atomic_load(&shm->tail), 99), 0);
    for (uint64_t lap = 0; lap < 5; lap++) {
        for (uint64_t i = 0; i < RING; i++)
            emu_cq_push(&producer, i);
        assert_int_equal(emu_cq_fill_gaps(&producer, atomic_load(&shm->tail), 99), 0);
        for (uint64_t i = 0; i < RING; i++)
            expect_pop(i);
    }
}

#define BUSY_EVENTS 200000u

/* Keeps a small queue full, in order. */
static void *keep_full(void *arg)
{
    struct emu_cq_producer own;

    (void)arg;
    emu_cq_producer_init(&own, shm, RING, RING, false, NULL);
    for (uint64_t i = 0; i < BUSY_EVENTS;)
        i += emu_cq_push(&own, i) == EMU_CQ_OK;
    return NULL;
}

static void *take_in_order(void *arg)
{
    uint64_t *bad_out = arg;

    for (uint64_t i = 0; i < BUSY_EVENTS;) {
        uint64_t event;

        if (emu_cq_pop(&consumer, &event) != EMU_CQ_OK)
            continue;
        if (event != i && *bad_out == 0)
            *bad_out = event + 1;
        i++;
    }
    return NULL;
}

/*
 * Places up to the tail are published when emunic repairs a queue. While it does, they are taken and used again: the
 * new ones are none of its business.
 */
static void test_repair_of_a_busy_queue_harms_no_event(void **state)
{
    pthread_t threads[2];
    uint64_t bad = 0;
    uint64_t tail;

    (void)state;
    assert_int_equal(pthread_create(&threads[0], NULL, keep_full, NULL), 0);
    assert_int_equal(pthread_create(&threads[1], NULL, take_in_order, &bad), 0);
    do {
        tail = atomic_load(&shm->tail);
        if (tail > 0) /* the one producer is at most busy with the newest place */
            emu_cq_fill_gaps(&producer, tail - 1, 99);
    } while (tail < BUSY_EVENTS);
    pthread_join(threads[0], NULL);
    pthread_join(threads[1], NULL);
    assert_int_equal(bad, 0);
}

static void test_repair_stops_at_the_tail_it_was_told(void **state)
{
    (void)state;
    atomic_fetch_add(&shm->tail, 2);
    assert_int_equal(emu_cq_fill_gaps(&producer, 1, 99), 1);
    expect_pop(99);
    expect_empty();
}

static void test_repair_wakes_who_sleeps(void **state)
{
    (void)state;
    make(RING, RING, true);
    atomic_fetch_add(&shm->tail, 1);
    atomic_store(&shm->sleepers, 1);
    assert_int_equal(emu_cq_fill_gaps(&producer, 1, 99), 1);
    assert_int_equal(atomic_load(&shm->sleepers), 0);
}

static void test_repair_of_nonsense_stays_inside_the_queue(void **state)
{
    struct emu_random random = seeded(15);

    (void)state;
    for (unsigned i = 0; i < 20000; i++) {
        uint64_t head = emu_random_next(&random) >> emu_random_below(&random, 64);

        atomic_store(&shm->head, head);
        emu_cq_fill_gaps(&producer, head + emu_random_below(&random, 4 * RING) - RING, emu_random_next(&random));
        emu_cq_fill_gaps(&producer, emu_random_next(&random), emu_random_next(&random));
    }
    assert_guards_untouched(RING);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        UNIT(test_wrong_counters_never_lead_outside_the_queue),
        UNIT(test_geometry_in_shared_memory_is_not_read_again),
        UNIT(test_wrong_head_makes_the_queue_look_full),
        UNIT(test_forged_entries_are_only_the_owners_trouble),
        UNIT(test_places_that_were_never_filled_get_the_event),
        UNIT(test_repair_fills_nothing_in_a_sound_queue),
        UNIT(test_repair_of_a_busy_queue_harms_no_event),
        UNIT(test_repair_stops_at_the_tail_it_was_told),
        UNIT(test_repair_wakes_who_sleeps),
        UNIT(test_repair_of_nonsense_stays_inside_the_queue),
    };

    return cmocka_run_group_tests(tests, map_arena, unmap_arena);
}
