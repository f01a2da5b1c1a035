/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Who waits for a completion queue is told: an owner that sleeps in a call is woken, an armed queue rings once.
 */
#include "tests/unit/emunic/queue_arena.h"

#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

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

static void test_producer_of_a_polled_queue_leaves_sleepers_alone(void **state)
{
    (void)state;
    atomic_store(&shm->sleepers, 1);
    assert_int_equal(emu_cq_push(&producer, 1), EMU_CQ_OK);
    assert_int_equal(atomic_load(&shm->sleepers), 1);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
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
