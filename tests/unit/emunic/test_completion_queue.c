/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The completion queue of the engine: order, laps, capacity, overrun, several producers, sleepers, and what a hostile
 * other side can do with the shared words (nothing outside the queue). Model: the top comment of
 * emunic/engine/completion_queue.c.
 */
#include "emunic/engine/completion_queue.h"

#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/common/seed.h"

#define RING        8u
#define RING_MAX    1024u
#define GUARD_BYTES 4096u
#define GUARD_BYTE  0xa5

/* A queue between two guards, in memory that a forked child shares. */
struct arena {
    uint8_t before[GUARD_BYTES];
    _Alignas(64) uint8_t queue[sizeof(struct emu_cq_shm) + RING_MAX * sizeof(uint64_t)];
    uint8_t after[GUARD_BYTES];
};

static struct arena *arena;
static struct emu_cq_shm *shm;
static struct emu_cq_producer producer;
static struct emu_cq_consumer consumer;

static void make(uint64_t ring_entries, uint64_t capacity, bool wakes)
{
    memset(arena->before, GUARD_BYTE, GUARD_BYTES);
    memset(arena->queue, 0, sizeof(arena->queue));
    memset(arena->queue + sizeof(*shm) + ring_entries * 8, GUARD_BYTE, (RING_MAX - ring_entries) * 8);
    memset(arena->after, GUARD_BYTE, GUARD_BYTES);
    emu_cq_format(shm, ring_entries, capacity);
    emu_cq_producer_init(&producer, shm, ring_entries, capacity, wakes, NULL);
    emu_cq_consumer_init(&consumer, shm, ring_entries);
}

static int make_small(void **state)
{
    (void)state;
    make(RING, RING, false);
    return 0;
}

static void assert_guards_untouched(uint64_t ring_entries)
{
    for (size_t i = 0; i < GUARD_BYTES; i++) {
        assert_int_equal(arena->before[i], GUARD_BYTE);
        assert_int_equal(arena->after[i], GUARD_BYTE);
    }
    for (size_t i = sizeof(*shm) + ring_entries * 8; i < sizeof(arena->queue); i++)
        assert_int_equal(arena->queue[i], GUARD_BYTE);
}

static void expect_pop(uint64_t expected)
{
    uint64_t event = ~expected;

    assert_int_equal(emu_cq_pop(&consumer, &event), EMU_CQ_OK);
    assert_int_equal(event, expected);
}

static void expect_empty(void)
{
    uint64_t event = 77;

    assert_true(emu_cq_is_empty(&consumer));
    assert_int_equal(emu_cq_pop(&consumer, &event), EMU_CQ_EMPTY);
    assert_int_equal(event, 77);
}

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

/* ---- overrun ---- */

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

/* ---- sleepers ---- */

/* As a blocking call does it: announce, look again, sleep on the word. */
static void *sleep_for_event(void *arg)
{
    uint64_t *event_out = arg;

    for (;;) {
        atomic_store(&shm->sleepers, 1);
        atomic_thread_fence(memory_order_seq_cst);
        if (emu_cq_pop(&consumer, event_out) == EMU_CQ_OK)
            return NULL;
        syscall(SYS_futex, &shm->sleepers, FUTEX_WAIT, 1, NULL, NULL, 0);
    }
}

static void test_no_wake_is_missed(void **state)
{
    (void)state;
    make(RING, RING, true);
    for (uint64_t i = 1; i <= 300; i++) {
        uint64_t event = 0;
        pthread_t thread;

        assert_int_equal(pthread_create(&thread, NULL, sleep_for_event, &event), 0);
        if (i % 3 == 0) { /* sometimes only after the sleeper has announced itself */
            while (atomic_load(&shm->sleepers) == 0)
                sched_yield();
        }
        assert_int_equal(emu_cq_push(&producer, i), EMU_CQ_OK);
        pthread_join(thread, NULL);
        assert_int_equal(event, i);
        atomic_store(&shm->sleepers, 0);
    }
}

static void test_sleeper_learns_of_an_overrun_too(void **state)
{
    (void)state;
    make(RING, RING, true);
    for (unsigned i = 0; i < RING; i++)
        emu_cq_push(&producer, i);
    atomic_store(&shm->sleepers, 1);
    assert_int_equal(emu_cq_push(&producer, 99), EMU_CQ_FULL);
    assert_int_equal(atomic_load(&shm->sleepers), 0);
}

static void test_sleeper_may_ask_for_several_events_at_a_time(void **state)
{
    (void)state;
    make(RING, RING, true);
    atomic_store(&shm->wake_after, 3);
    atomic_store(&shm->sleepers, 1);
    assert_int_equal(emu_cq_push(&producer, 1), EMU_CQ_OK);
    assert_int_equal(emu_cq_push(&producer, 2), EMU_CQ_OK);
    assert_int_equal(atomic_load(&shm->sleepers), 1);
    assert_int_equal(emu_cq_push(&producer, 3), EMU_CQ_OK);
    assert_int_equal(atomic_load(&shm->sleepers), 0);
    expect_pop(1);
    expect_pop(2);
    atomic_store(&shm->sleepers, 1);
    assert_int_equal(emu_cq_push(&producer, 4), EMU_CQ_OK); /* two wait */
    assert_int_equal(atomic_load(&shm->sleepers), 1);
    assert_int_equal(emu_cq_push(&producer, 5), EMU_CQ_OK);
    assert_int_equal(atomic_load(&shm->sleepers), 0);
}

/* ---- arming ---- */

struct bell {
    struct emu_cq_alarm alarm;
    unsigned rings;
    uint32_t queue;
};

static void count_ring(struct emu_cq_alarm *alarm, uint32_t queue)
{
    struct bell *bell = (struct bell *)alarm;

    bell->rings++;
    bell->queue = queue;
}

static struct bell make_armed(uint64_t capacity)
{
    make(RING, capacity, true);
    return (struct bell){ .alarm.ring = count_ring };
}

static void test_armed_queue_rings_once(void **state)
{
    struct bell bell = make_armed(RING);

    (void)state;
    producer.alarm = &bell.alarm;
    assert_int_equal(emu_cq_push(&producer, 1), EMU_CQ_OK);
    assert_int_equal(bell.rings, 0);
    emu_cq_arm(&consumer, 17);
    assert_true(emu_cq_is_armed(&consumer));
    assert_int_equal(emu_cq_push(&producer, 2), EMU_CQ_OK);
    assert_int_equal(bell.rings, 1);
    assert_int_equal(bell.queue, 17);
    assert_false(emu_cq_is_armed(&consumer));
    assert_int_equal(emu_cq_push(&producer, 3), EMU_CQ_OK);
    assert_int_equal(bell.rings, 1);
    emu_cq_arm(&consumer, 0);
    assert_int_equal(emu_cq_push(&producer, 4), EMU_CQ_OK);
    assert_int_equal(bell.rings, 2);
    assert_int_equal(bell.queue, 0);
}

static void test_owner_or_producer_disarms_not_both(void **state)
{
    struct bell bell = make_armed(RING);

    (void)state;
    producer.alarm = &bell.alarm;
    emu_cq_arm(&consumer, 5);
    assert_true(emu_cq_disarm(&consumer));
    assert_false(emu_cq_disarm(&consumer));
    assert_int_equal(emu_cq_push(&producer, 1), EMU_CQ_OK);
    assert_int_equal(bell.rings, 0);
    emu_cq_arm(&consumer, 5);
    assert_int_equal(emu_cq_push(&producer, 2), EMU_CQ_OK);
    assert_false(emu_cq_disarm(&consumer));
    assert_int_equal(bell.rings, 1);
}

static void test_overrun_and_repair_ring(void **state)
{
    struct bell bell = make_armed(1);
    uint64_t place = 0;

    (void)state;
    producer.alarm = &bell.alarm;
    assert_int_equal(emu_cq_push(&producer, 1), EMU_CQ_OK);
    emu_cq_arm(&consumer, 1);
    assert_int_equal(emu_cq_push(&producer, 2), EMU_CQ_FULL);
    assert_int_equal(bell.rings, 1);
    expect_pop(1);
    assert_int_equal(emu_cq_take_overrun(&consumer), 1);
    assert_int_equal(emu_cq_reserve(&producer, &place), EMU_CQ_OK);
    emu_cq_arm(&consumer, 1);
    assert_int_equal(emu_cq_fill_gaps(&producer, place + 1, 9), 1);
    assert_int_equal(bell.rings, 2);
}

static void test_producer_without_an_alarm_leaves_the_queue_armed(void **state)
{
    (void)state;
    make(RING, RING, true);
    emu_cq_arm(&consumer, 3);
    assert_int_equal(emu_cq_push(&producer, 1), EMU_CQ_OK);
    assert_true(emu_cq_is_armed(&consumer));
}

/* Whatever members of the domain write there. */
static void test_number_of_an_armed_queue_is_an_index(void **state)
{
    struct bell bell = make_armed(RING);

    (void)state;
    producer.alarm = &bell.alarm;
    atomic_store(&shm->armed, UINT32_MAX);
    assert_int_equal(emu_cq_push(&producer, 1), EMU_CQ_OK);
    assert_int_equal(bell.rings, 1);
    assert_true(bell.queue < EMU_CQS_MAX);
}

static void test_producer_of_a_polled_queue_leaves_sleepers_alone(void **state)
{
    (void)state;
    atomic_store(&shm->sleepers, 1);
    assert_int_equal(emu_cq_push(&producer, 1), EMU_CQ_OK);
    assert_int_equal(atomic_load(&shm->sleepers), 1);
}

static int map_arena(void **state)
{
    (void)state;
    arena = mmap(NULL, sizeof(*arena), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (arena == MAP_FAILED)
        return -1;
    shm = (struct emu_cq_shm *)arena->queue;
    return 0;
}

static int unmap_arena(void **state)
{
    (void)state;
    return munmap(arena, sizeof(*arena));
}

#define UNIT(name) cmocka_unit_test_setup(name, make_small)

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
        UNIT(test_push_into_a_full_queue_keeps_what_waits),
        UNIT(test_lost_events_are_counted_until_taken),
        UNIT(test_lost_events_can_be_taken_one_by_one),
        UNIT(test_places_that_peers_have_not_are_for_others),
        UNIT(test_overrun_comes_after_events_that_are_on_their_way),
        UNIT(test_queue_goes_on_after_an_overrun),
        UNIT(test_wrong_counters_never_lead_outside_the_queue),
        UNIT(test_geometry_in_shared_memory_is_not_read_again),
        UNIT(test_wrong_head_makes_the_queue_look_full),
        UNIT(test_forged_entries_are_only_the_owners_trouble),
        UNIT(test_threads_lose_nothing_but_what_is_counted),
        UNIT(test_two_producers_see_each_others_places),
        UNIT(test_another_process_can_produce),
        UNIT(test_peek_sees_what_waits_and_leaves_it),
        UNIT(test_peek_sees_a_full_ring_and_not_beyond),
        UNIT(test_own_events_and_others_keep_one_order),
        UNIT(test_own_events_need_room_and_an_empty_shared_ring),
        UNIT(test_places_that_were_never_filled_get_the_event),
        UNIT(test_repair_fills_nothing_in_a_sound_queue),
        UNIT(test_repair_of_a_busy_queue_harms_no_event),
        UNIT(test_repair_stops_at_the_tail_it_was_told),
        UNIT(test_repair_wakes_who_sleeps),
        UNIT(test_repair_of_nonsense_stays_inside_the_queue),
        UNIT(test_no_wake_is_missed),
        UNIT(test_sleeper_learns_of_an_overrun_too),
        UNIT(test_sleeper_may_ask_for_several_events_at_a_time),
        UNIT(test_armed_queue_rings_once),
        UNIT(test_owner_or_producer_disarms_not_both),
        UNIT(test_overrun_and_repair_ring),
        UNIT(test_producer_without_an_alarm_leaves_the_queue_armed),
        UNIT(test_number_of_an_armed_queue_is_an_index),
        UNIT(test_producer_of_a_polled_queue_leaves_sleepers_alone),
    };

    return cmocka_run_group_tests(tests, map_arena, unmap_arena);
}
