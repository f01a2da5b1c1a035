/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The model by itself: cases that the specification spells out, so that the property tests compare the library with the
 * right thing.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "tests/property/model.h"

#define BASE   0x100000u /* of the arenas */
#define EVENTS (PTL_MD_OP_PUT | PTL_MD_OP_GET | AUTO_UNLINK_EVENT)

static struct model m;
static struct model_ni *target;
static struct model_ni *source;
static int target_eq, source_eq;
static ptl_handle_any_t next_handle;

static const ptl_process_id_t anybody = { PTL_NID_ANY, PTL_PID_ANY };

static int open_both(void **state)
{
    (void)state;
    model_init(&m);
    target = model_ni_add(&m, (ptl_process_id_t){ 1, 10 }, 5, 6, BASE);
    source = model_ni_add(&m, (ptl_process_id_t){ 2, 20 }, 5, 7, BASE);
    model_eq_alloc(target, &target_eq);
    model_eq_alloc(source, &source_eq);
    return 0;
}

static int new_md(struct model_ni *ni, int me, int eq, unsigned options, int threshold, uint64_t length,
                  uint64_t max_size, bool unlinks)
{
    ptl_md_t md = { .start = (void *)(uintptr_t)BASE,
                    .length = length,
                    .threshold = threshold,
                    .max_size = max_size,
                    .options = options };
    int place = MODEL_NONE;

    assert_int_equal(model_md_create(ni, me, &md, eq, unlinks, &place), PTL_OK);
    ni->mds[place].handle = ++next_handle;
    return place;
}

static int new_me(ptl_match_bits_t bits, ptl_match_bits_t ignore, bool unlinks)
{
    int me = MODEL_NONE;

    assert_int_equal(model_me_attach(target, 4, anybody, bits, ignore, unlinks, PTL_INS_AFTER, &me), PTL_OK);
    return me;
}

static int put(int md, uint64_t length, ptl_match_bits_t bits, uint64_t remote_offset)
{
    struct model_call c = { .kind = MODEL_PUT,
                            .md = md,
                            .length = length,
                            .pt = 4,
                            .bits = bits,
                            .remote_offset = remote_offset,
                            .wants_ack = true };

    return model_move(&m, source, &c);
}

/* The queue has exactly these, oldest first; takes them. */
static void expect_events(struct model_ni *ni, int eq, unsigned n, ...)
{
    va_list kinds;

    assert_int_equal(ni->eqs[eq].n_events, n);
    va_start(kinds, n);
    for (unsigned i = 0; i < n; i++)
        assert_int_equal(ni->eqs[eq].events[i].event.type, va_arg(kinds, int));
    va_end(kinds);
    ni->eqs[eq].n_events = 0;
}

static void test_threshold_one_with_unlink_takes_one_put_and_goes(void **state)
{
    int first = new_me(7, 0, true);
    int second = new_me(7, 0, true);
    int md = new_md(target, first, target_eq, EVENTS, 1, 100, 0, true);
    int from = new_md(source, MODEL_NONE, source_eq, 0, PTL_MD_THRESH_INF, 10, 0, false);

    (void)state;
    new_md(target, second, target_eq, EVENTS, 1, 100, 0, false);
    assert_int_equal(put(from, 10, 7, 0), PTL_OK);
    expect_events(target, target_eq, 3, PTL_EVENT_PUT_START, PTL_EVENT_PUT_END, PTL_EVENT_UNLINK);
    expect_events(source, source_eq, 3, PTL_EVENT_SEND_START, PTL_EVENT_SEND_END, PTL_EVENT_ACK);
    assert_false(target->mes[first].in_use || target->mds[md].in_use);
    assert_int_equal(put(from, 10, 7, 0), PTL_OK);
    expect_events(target, target_eq, 2, PTL_EVENT_PUT_START, PTL_EVENT_PUT_END);
    assert_true(target->mes[second].in_use); /* its descriptor was to be kept: used up, but there */
    assert_int_equal(put(from, 10, 7, 0), PTL_OK);
    assert_int_equal(target->drops, 1);
}

static void test_entry_to_be_retained_stays_without_its_descriptor(void **state)
{
    int me = new_me(7, 0, false);
    int md = new_md(target, me, target_eq, EVENTS, 1, 100, 0, true);
    int from = new_md(source, MODEL_NONE, MODEL_NONE, 0, PTL_MD_THRESH_INF, 10, 0, false);

    (void)state;
    assert_int_equal(put(from, 10, 7, 0), PTL_OK);
    assert_false(target->mds[md].in_use);
    assert_true(target->mes[me].in_use);
    assert_int_equal(target->mes[me].md, MODEL_NONE);
    assert_int_equal(model_me_unlink(&m, target, me), PTL_OK);
    assert_int_equal(model_me_unlink(&m, target, me), PTL_ME_INVALID);
}

static void test_block_ends_when_less_than_max_size_is_left(void **state)
{
    int block = new_me(0, ~0ull, true);
    int catcher = new_me(0, ~0ull, false);
    int md = new_md(target, block, target_eq, EVENTS | PTL_MD_MAX_SIZE, PTL_MD_THRESH_INF, 100, 40, true);
    int from = new_md(source, MODEL_NONE, source_eq, 0, PTL_MD_THRESH_INF, 50, 0, false);

    (void)state;
    new_md(target, catcher, target_eq, EVENTS | PTL_MD_TRUNCATE, PTL_MD_THRESH_INF, 0, 0, false);
    assert_int_equal(put(from, 30, 1, 0), PTL_OK); /* 70 left */
    assert_int_equal(put(from, 50, 1, 0), PTL_OK); /* over max_size: the catcher's, with nothing kept */
    assert_int_equal(target->eqs[target_eq].events[2].event.mlength, 0);
    assert_int_equal(target->eqs[target_eq].events[2].event.rlength, 50);
    assert_true(target->mds[md].in_use);
    target->eqs[target_eq].n_events = 0;
    assert_int_equal(put(from, 35, 1, 0), PTL_OK); /* 35 left: that was the last */
    assert_int_equal(target->eqs[target_eq].events[0].event.offset, 30);
    expect_events(target, target_eq, 3, PTL_EVENT_PUT_START, PTL_EVENT_PUT_END, PTL_EVENT_UNLINK);
    assert_int_equal(target->drops, 0);
}

static void test_offset_beyond_the_memory_is_refused_even_with_truncate(void **state)
{
    int me = new_me(0, ~0ull, false);
    int from = new_md(source, MODEL_NONE, source_eq, 0, PTL_MD_THRESH_INF, 50, 0, false);

    (void)state;
    new_md(target, me, target_eq, EVENTS | PTL_MD_TRUNCATE | PTL_MD_MANAGE_REMOTE, PTL_MD_THRESH_INF, 100, 0, false);
    assert_int_equal(put(from, 50, 0, 100), PTL_OK);
    assert_int_equal(target->drops, 0);
    expect_events(target, target_eq, 2, PTL_EVENT_PUT_START, PTL_EVENT_PUT_END);
    assert_int_equal(put(from, 50, 0, 101), PTL_OK);
    assert_int_equal(target->drops, 1);
    expect_events(target, target_eq, 0);
}

static void test_update_waits_for_an_empty_queue(void **state)
{
    int me = new_me(0, ~0ull, false);
    int md = new_md(target, me, target_eq, EVENTS, PTL_MD_THRESH_INF, 100, 0, false);
    int from = new_md(source, MODEL_NONE, source_eq, 0, PTL_MD_THRESH_INF, 50, 0, false);
    ptl_md_t new_contents = { .start = (void *)(uintptr_t)BASE, .length = 50, .threshold = 0 };

    (void)state;
    assert_int_equal(put(from, 50, 0, 0), PTL_OK);
    assert_int_equal(model_md_update(target, md, &new_contents, MODEL_NONE, target_eq), PTL_MD_NO_UPDATE);
    expect_events(target, target_eq, 2, PTL_EVENT_PUT_START, PTL_EVENT_PUT_END);
    assert_int_equal(model_md_update(target, md, &new_contents, MODEL_NONE, target_eq), PTL_OK);
    assert_int_equal(put(from, 50, 0, 0), PTL_OK);
    assert_int_equal(target->drops, 1);
}

static void test_get_costs_its_descriptor_what_the_profile_says(void **state)
{
    int me = new_me(0, ~0ull, false);
    int to = new_md(source, MODEL_NONE, source_eq, AUTO_UNLINK_EVENT, IS_CRAY ? 2 : 1, 50, 0, true);
    struct model_call c = { .kind = MODEL_GET, .md = to, .length = 50, .pt = 4 };

    (void)state;
    new_md(target, me, target_eq, EVENTS, PTL_MD_THRESH_INF, 100, 0, false);
    memset(target->arena, 0x5a, 50);
    assert_int_equal(model_move(&m, source, &c), PTL_OK);
    if (IS_CRAY)
        expect_events(source, source_eq, 5, PTL_EVENT_SEND_START, PTL_EVENT_SEND_END, PTL_EVENT_REPLY_START,
                      PTL_EVENT_REPLY_END, PTL_EVENT_UNLINK);
    else
        expect_events(source, source_eq, 3, PTL_EVENT_REPLY_START, PTL_EVENT_REPLY_END, PTL_EVENT_UNLINK);
    expect_events(target, target_eq, 2, PTL_EVENT_GET_START, PTL_EVENT_GET_END);
    assert_false(source->mds[to].in_use);
    assert_memory_equal(source->arena, target->arena, 50);
}

static void test_acknowledgement_of_a_used_up_descriptor_is_lost(void **state)
{
    int me = new_me(0, ~0ull, false);
    int from = new_md(source, MODEL_NONE, source_eq, 0, 1, 50, 0, false);

    (void)state;
    new_md(target, me, target_eq, EVENTS, PTL_MD_THRESH_INF, 100, 0, false);
    assert_int_equal(put(from, 50, 0, 0), PTL_OK);
    expect_events(source, source_eq, 2, PTL_EVENT_SEND_START, PTL_EVENT_SEND_END);
    assert_int_equal(source->drops, 0);
    assert_int_equal(put(from, 50, 0, 0), PTL_MD_INVALID);
}

#define CASE(name) cmocka_unit_test_setup(name, open_both)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(test_threshold_one_with_unlink_takes_one_put_and_goes),
        CASE(test_entry_to_be_retained_stays_without_its_descriptor),
        CASE(test_block_ends_when_less_than_max_size_is_left),
        CASE(test_offset_beyond_the_memory_is_refused_even_with_truncate),
        CASE(test_update_waits_for_an_empty_queue),
        CASE(test_get_costs_its_descriptor_what_the_profile_says),
        CASE(test_acknowledgement_of_a_used_up_descriptor_is_lost),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
