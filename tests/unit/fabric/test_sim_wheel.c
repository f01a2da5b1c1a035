/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The timing wheel: slots come in order, and all the events of each, however far away.
 */
#include <stdlib.h>

#include "emunic/fabric/sim/wheel.h"
#include "tests/unit/fabric/fixture.h"

static struct emu_wheel wheel_of(uint64_t n_slots)
{
    struct emu_wheel w;

    assert_int_equal(emu_wheel_init(&w, n_slots), 0);
    return w;
}

static void put(struct emu_wheel *w, uint64_t slot, uint32_t payload)
{
    emu_wheel_put(w, slot, (struct emu_event){ .kind = EMU_EVENT_INJECT, .index = (uint32_t)slot, .payload = payload });
}

static int compare(const void *a, const void *b)
{
    uint32_t p = *(const uint32_t *)a;
    uint32_t q = *(const uint32_t *)b;

    return (p > q) - (p < q);
}

/* Goes to the next slot and takes its events: their payloads, up to `max`, sorted. */
static size_t take(struct emu_wheel *w, uint32_t *payloads_out, size_t max)
{
    uint64_t slot = emu_wheel_next(w);
    struct emu_wheel_bucket bucket;
    const struct emu_wheel_list *list = &bucket.lists[EMU_WHEEL_OTHERS];
    size_t n = 0;

    if (slot == UINT64_MAX)
        return 0;
    emu_wheel_advance(w, slot);
    bucket = emu_wheel_take(w);
    for (struct emu_wheel_chunk *chunk = emu_wheel_newest(list); chunk; chunk = emu_wheel_done(w, chunk)) {
        for (size_t i = 0; i < emu_wheel_count(list, chunk); i++) {
            assert_int_equal(chunk->events[i].index, slot);
            assert_true(n < max);
            payloads_out[n++] = chunk->events[i].payload;
        }
    }
    qsort(payloads_out, n, sizeof(*payloads_out), compare);
    return n;
}

static void test_empty_wheel_has_no_next_slot(void **state)
{
    struct emu_wheel w = wheel_of(64);

    (void)state;
    assert_true(emu_wheel_next(&w) == UINT64_MAX);
    emu_wheel_fini(&w);
}

static void test_all_events_of_a_slot_come(void **state)
{
    struct emu_wheel w = wheel_of(64);
    uint32_t payloads[100];

    (void)state;
    for (uint32_t i = 0; i < 100; i++) /* more than a chunk holds */
        put(&w, 7, i);
    assert_int_equal(take(&w, payloads, 100), 100);
    for (uint32_t i = 0; i < 100; i++)
        assert_int_equal(payloads[i], i);
    assert_true(emu_wheel_next(&w) == UINT64_MAX);
    emu_wheel_fini(&w);
}

/* Packets of a link that arrive in one slot stay in order. */
static void test_events_of_a_slot_come_in_order_from_the_oldest_chunk(void **state)
{
    struct emu_wheel w = wheel_of(64);
    struct emu_wheel_bucket bucket;
    uint32_t n_taken = 0;

    (void)state;
    for (uint32_t i = 0; i < 100; i++)
        put(&w, 7, i);
    emu_wheel_advance(&w, 7);
    bucket = emu_wheel_take(&w);
    for (unsigned number = 0; number < EMU_WHEEL_LISTS; number++) {
        const struct emu_wheel_list *list = &bucket.lists[number];

        for (struct emu_wheel_chunk *chunk = emu_wheel_oldest(list); chunk; chunk = emu_wheel_done(&w, chunk)) {
            for (size_t i = 0; i < emu_wheel_count(list, chunk); i++)
                assert_int_equal(chunk->events[i].payload, n_taken++);
        }
    }
    assert_int_equal(n_taken, 100);
    emu_wheel_fini(&w);
}

static void test_far_events_come_with_later_ones_of_their_slot(void **state)
{
    struct emu_wheel w = wheel_of(64);
    uint32_t payloads[4];

    (void)state;
    put(&w, 1000, 1); /* beyond the ring */
    put(&w, 1000, 2);
    put(&w, 990, 3);
    assert_int_equal(take(&w, payloads, 4), 1);
    assert_int_equal(w.now, 990);
    put(&w, 1000, 4); /* in it */
    assert_int_equal(take(&w, payloads, 4), 3);
    assert_int_equal(payloads[0], 1);
    assert_int_equal(payloads[1], 2);
    assert_int_equal(payloads[2], 4);
    emu_wheel_fini(&w);
}

static void test_random_events_come_in_order_of_time(void **state)
{
    struct emu_random random = seeded(11);
    struct emu_wheel w = wheel_of(256);
    uint32_t payloads[64];
    uint32_t n_put = 0;
    uint32_t n_taken = 0;
    uint64_t last = 0;

    (void)state;
    while (n_taken < 20000) {
        for (uint64_t n = emu_random_below(&random, 4); n > 0 && n_put < 20000; n--)
            put(&w, w.now + 1 + emu_random_below(&random, emu_random_below(&random, 8) == 0 ? 5000 : 200), n_put++);
        n_taken += (uint32_t)take(&w, payloads, 64);
        assert_true(w.now >= last);
        last = w.now;
    }
    assert_int_equal(n_taken, n_put);
    emu_wheel_fini(&w);
}

static bool keeps_even(void *ctx, const struct emu_event *event)
{
    (*(uint32_t *)ctx)++;
    return event->payload % 2 == 0;
}

static void test_filter_drops_near_and_far_events(void **state)
{
    struct emu_wheel w = wheel_of(64);
    uint32_t payloads[40];
    uint32_t n_seen = 0;

    (void)state;
    for (uint32_t i = 0; i < 40; i++) {
        put(&w, 5, i);
        put(&w, 500, i);
    }
    emu_wheel_filter(&w, keeps_even, &n_seen);
    assert_int_equal(n_seen, 80);
    for (uint32_t slot = 0; slot < 2; slot++) {
        assert_int_equal(take(&w, payloads, 40), 20);
        for (uint32_t i = 0; i < 20; i++)
            assert_int_equal(payloads[i], 2 * i);
    }
    assert_int_equal(take(&w, payloads, 40), 0);
    emu_wheel_fini(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_empty_wheel_has_no_next_slot),
        cmocka_unit_test(test_all_events_of_a_slot_come),
        cmocka_unit_test(test_events_of_a_slot_come_in_order_from_the_oldest_chunk),
        cmocka_unit_test(test_far_events_come_with_later_ones_of_their_slot),
        cmocka_unit_test(test_random_events_come_in_order_of_time),
        cmocka_unit_test(test_filter_drops_near_and_far_events),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
