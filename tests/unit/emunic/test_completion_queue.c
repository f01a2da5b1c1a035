/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The completion queue of the engine keeps an order: events come out as they went in, over many laps, of one producer
 * or of several, looked at ahead or not, and with those of its owner. Elsewhere: overrun (test_queue_overrun.c), what
 * others leave in it (test_queue_damage.c), who is woken (test_queue_wake.c).
 */
#include "tests/unit/emunic/queue_arena.h"

#include <pthread.h>
#include <sched.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/common/seed.h"

/* ---- one producer, one consumer ---- */

static void test_new_queue_is_empty_and_not_in_overrun(void **state)
{
    (void)state;
    expect_empty();
    assert_false(emu_cq_has_overrun(&consumer));
    assert_int_equal(emu_cq_take_overrun(&consumer), 0);
}

static void test_events_come_out_in_the_order_they_went_in(void **state)
{
    (void)state;
    for (uint64_t i = 1; i <= RING; i++)
        assert_int_equal(emu_cq_push(&producer, i), EMU_CQ_OK);
    for (uint64_t i = 1; i <= RING; i++) {
        assert_false(emu_cq_is_empty(&consumer));
        expect_pop(i);
    }
    expect_empty();
}

static void test_event_of_zero_is_an_event(void **state)
{
    (void)state;
    for (unsigned lap = 0; lap < 3 * RING; lap++) {
        assert_int_equal(emu_cq_push(&producer, 0), EMU_CQ_OK);
        expect_pop(0);
        expect_empty();
    }
}

static void test_top_bit_belongs_to_the_queue(void **state)
{
    (void)state;
    for (unsigned lap = 0; lap < 3 * RING; lap++) {
        assert_int_equal(emu_cq_push(&producer, UINT64_MAX), EMU_CQ_OK);
        expect_pop(UINT64_MAX & ~EMU_EVENT_LAP);
        expect_empty();
    }
}

static void test_order_survives_many_laps_at_every_fill_level(void **state)
{
    struct emu_random random = seeded(11);
    uint64_t pushed = 0;
    uint64_t popped = 0;

    (void)state;
    for (unsigned i = 0; i < 20000; i++) {
        uint64_t n_push = emu_random_below(&random, RING - (pushed - popped) + 1);
        uint64_t n_pop;

        for (uint64_t j = 0; j < n_push; j++)
            assert_int_equal(emu_cq_push(&producer, pushed++), EMU_CQ_OK);
        n_pop = emu_random_below(&random, pushed - popped + 1);
        for (uint64_t j = 0; j < n_pop; j++)
            expect_pop(popped++);
        if (pushed == popped)
            expect_empty();
    }
    assert_true(popped > 1000 * RING);
    assert_guards_untouched(RING);
}

static void test_ring_of_one_entry_works(void **state)
{
    (void)state;
    make(1, 1, false);
    for (uint64_t i = 0; i < 9; i++) {
        assert_int_equal(emu_cq_push(&producer, i), EMU_CQ_OK);
        assert_int_equal(emu_cq_push(&producer, 99), EMU_CQ_FULL);
        expect_pop(i);
        expect_empty();
    }
    assert_guards_untouched(1);
}

static void test_capacity_below_the_ring_is_the_limit(void **state)
{
    uint64_t next = 0;

    (void)state;
    make(64, 5, false);
    for (unsigned lap = 0; lap < 100; lap++) {
        for (unsigned i = 0; i < 5; i++)
            assert_int_equal(emu_cq_push(&producer, next + i), EMU_CQ_OK);
        assert_int_equal(emu_cq_push(&producer, 99), EMU_CQ_FULL);
        expect_pop(next);
        assert_int_equal(emu_cq_push(&producer, next + 5), EMU_CQ_OK);
        assert_int_equal(emu_cq_push(&producer, 99), EMU_CQ_FULL);
        for (unsigned i = 1; i <= 5; i++)
            expect_pop(next + i);
        expect_empty();
        next += 6;
    }
}

/* ---- several producers ---- */

#define THREADS    3
#define PER_THREAD 20000u

struct feeder {
    struct emu_random random;
    uint64_t id;
    uint64_t lost;
};

static void *feed(void *arg)
{
    struct feeder *feeder = arg;
    struct emu_cq_producer own;

    emu_cq_producer_init(&own, shm, 64, 48, true, NULL);
    for (uint64_t i = 0; i < PER_THREAD; i++) {
        if (emu_cq_push(&own, feeder->id << 32 | i) == EMU_CQ_FULL) {
            feeder->lost++;
            sched_yield();
        }
        if (emu_random_below(&feeder->random, 50) == 0)
            sched_yield();
    }
    return NULL;
}

static void test_threads_lose_nothing_but_what_is_counted(void **state)
{
    struct emu_random random = seeded(14);
    struct feeder feeders[THREADS];
    pthread_t threads[THREADS];
    uint64_t next[THREADS] = { 0 };
    uint64_t taken = 0;
    uint64_t lost = 0;
    uint64_t overrun = 0;

    (void)state;
    make(64, 48, true);
    for (unsigned i = 0; i < THREADS; i++) {
        feeders[i] = (struct feeder){ .random = { emu_random_next(&random) }, .id = i };
        assert_int_equal(pthread_create(&threads[i], NULL, feed, &feeders[i]), 0);
    }
    while (taken + overrun < THREADS * PER_THREAD) {
        uint64_t event;

        overrun += emu_cq_take_overrun(&consumer);
        if (emu_cq_pop(&consumer, &event) != EMU_CQ_OK) {
            sched_yield();
            continue;
        }
        assert_true(event >> 32 < THREADS);
        assert_true((event & UINT32_MAX) >= next[event >> 32]); /* order of each producer */
        next[event >> 32] = (event & UINT32_MAX) + 1;
        taken++;
    }
    for (unsigned i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        lost += feeders[i].lost;
    }
    expect_empty();
    assert_int_equal(lost, overrun);
    assert_int_equal(taken, THREADS * PER_THREAD - lost);
    assert_guards_untouched(64);
}

static void test_two_producers_see_each_others_places(void **state)
{
    struct emu_cq_producer other;

    (void)state;
    emu_cq_producer_init(&other, shm, RING, RING, false, NULL);
    for (uint64_t i = 0; i < RING; i++)
        assert_int_equal(emu_cq_push(i % 2 ? &producer : &other, i), EMU_CQ_OK);
    assert_int_equal(emu_cq_push(&producer, 99), EMU_CQ_FULL);
    assert_int_equal(emu_cq_push(&other, 99), EMU_CQ_FULL);
    for (uint64_t i = 0; i < RING; i++)
        expect_pop(i);
}

static void test_another_process_can_produce(void **state)
{
    pid_t child;
    int status = -1;

    (void)state;
    child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        for (uint64_t i = 0; i < 1000;) {
            if (emu_cq_push(&producer, i) == EMU_CQ_OK)
                i++;
            else
                sched_yield();
        }
        _exit(0);
    }
    for (uint64_t i = 0; i < 1000;) {
        uint64_t event;

        if (emu_cq_pop(&consumer, &event) == EMU_CQ_OK)
            assert_int_equal(event, i++);
        else
            sched_yield();
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

/* ---- looking ahead ---- */

static void test_peek_sees_what_waits_and_leaves_it(void **state)
{
    uint64_t event = 77;

    (void)state;
    for (unsigned lap = 0; lap < 5; lap++) {
        for (uint64_t i = 0; i < 3; i++)
            emu_cq_push(&producer, 10 * lap + i);
        for (uint64_t i = 0; i < 3; i++) {
            assert_int_equal(emu_cq_peek(&consumer, i, &event), EMU_CQ_OK);
            assert_int_equal(event, 10 * lap + i);
        }
        event = 77;
        for (uint64_t i = 3; i <= RING; i++)
            assert_int_equal(emu_cq_peek(&consumer, i, &event), EMU_CQ_EMPTY);
        assert_int_equal(event, 77);
        for (uint64_t i = 0; i < 3; i++)
            expect_pop(10 * lap + i);
        expect_empty();
    }
}

static void test_peek_sees_a_full_ring_and_not_beyond(void **state)
{
    uint64_t event = 0;

    (void)state;
    for (uint64_t i = 0; i < RING; i++)
        emu_cq_push(&producer, i);
    for (uint64_t i = 0; i < RING; i++) {
        assert_int_equal(emu_cq_peek(&consumer, i, &event), EMU_CQ_OK);
        assert_int_equal(event, i);
    }
    assert_int_equal(emu_cq_peek(&consumer, RING, &event), EMU_CQ_EMPTY);
}

/* ---- the owner's own events ---- */

static void test_own_events_and_others_keep_one_order(void **state)
{
    uint64_t next_in = 1;
    uint64_t next_out = 1;
    uint64_t seed = 7;
    uint64_t event;

    (void)state;
    assert_false(emu_cq_push_own(&consumer, 1)); /* no room was made for any */
    assert_int_equal(emu_cq_add_own(&consumer), 0);
    for (int step = 0; step < 2000; step++) {
        seed = seed * 6364136223846793005ull + 1442695040888963407ull;
        switch (seed >> 62) {
        case 0:
            if (emu_cq_push_own(&consumer, next_in) || emu_cq_push(&producer, next_in) == EMU_CQ_OK)
                next_in++;
            break;
        case 1:
            if (emu_cq_push(&producer, next_in) == EMU_CQ_OK)
                next_in++;
            break;
        default:
            if (emu_cq_pop(&consumer, &event) == EMU_CQ_OK)
                assert_int_equal(event, next_out++);
            else
                assert_int_equal(next_out, next_in);
        }
        assert_int_equal(emu_cq_is_empty(&consumer), next_out == next_in);
        for (uint64_t ahead = 0; ahead < next_in - next_out; ahead++) {
            assert_int_equal(emu_cq_peek(&consumer, ahead, &event), EMU_CQ_OK);
            assert_int_equal(event, next_out + ahead);
        }
        assert_int_equal(emu_cq_peek(&consumer, next_in - next_out, &event), EMU_CQ_EMPTY);
    }
    emu_cq_take_overrun(&consumer);
    emu_cq_consumer_fini(&consumer);
}

static void test_own_events_need_room_and_an_empty_shared_ring(void **state)
{
    (void)state;
    assert_int_equal(emu_cq_add_own(&consumer), 0);
    assert_int_equal(emu_cq_push(&producer, 1), EMU_CQ_OK);
    assert_false(emu_cq_push_own(&consumer, 2)); /* it would overtake the other */
    expect_pop(1);
    for (uint64_t i = 0; i < RING; i++)
        assert_true(emu_cq_push_own(&consumer, i));
    assert_false(emu_cq_push_own(&consumer, RING));
    for (uint64_t i = 0; i < RING; i++)
        expect_pop(i);
    assert_true(emu_cq_is_empty(&consumer));
    emu_cq_consumer_fini(&consumer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        UNIT(test_new_queue_is_empty_and_not_in_overrun),
        UNIT(test_events_come_out_in_the_order_they_went_in),
        UNIT(test_event_of_zero_is_an_event),
        UNIT(test_top_bit_belongs_to_the_queue),
        UNIT(test_order_survives_many_laps_at_every_fill_level),
        UNIT(test_ring_of_one_entry_works),
        UNIT(test_capacity_below_the_ring_is_the_limit),
        UNIT(test_threads_lose_nothing_but_what_is_counted),
        UNIT(test_two_producers_see_each_others_places),
        UNIT(test_another_process_can_produce),
        UNIT(test_peek_sees_what_waits_and_leaves_it),
        UNIT(test_peek_sees_a_full_ring_and_not_beyond),
        UNIT(test_own_events_and_others_keep_one_order),
        UNIT(test_own_events_need_room_and_an_empty_shared_ring),
    };

    return cmocka_run_group_tests(tests, map_arena, unmap_arena);
}
