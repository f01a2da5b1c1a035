/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * SEASTAR-13: the rules of Portals (spec/machines.md 4.3), one test each. Every rank puts to the next one and takes
 * from the previous one, on nodes of a Red Storm. tests/conformance/portals has the details and the other dialect.
 */
#include "tests/common/portals.h"

#define PT    8
#define BYTES 1000

static ptl_handle_eq_t eq, source_eq;
static uint8_t memory[4 * BYTES], bytes[BYTES];
static ptl_handle_md_t silent; /* a source without events */

static int open_queues(void **state)
{
    (void)state;
    eq = px_eq(256);
    source_eq = px_eq(256);
    px_fill(bytes, BYTES, 13);
    memset(memory, 0xee, sizeof(memory));
    silent = px_bind(px_md(bytes, BYTES, 0, PTL_MD_THRESH_INF, PTL_EQ_NONE), PTL_RETAIN);
    px_barrier();
    return 0;
}

static int close_queues(void **state)
{
    (void)state;
    px_settle();
    px_nothing(eq);
    px_nothing(source_eq);
    assert_int_equal(PtlMDUnlink(silent), PTL_OK);
    assert_int_equal(PtlEQFree(eq), PTL_OK);
    assert_int_equal(PtlEQFree(source_eq), PTL_OK);
    return 0;
}

#define rule(name) cmocka_unit_test_setup_teardown(name, open_queues, close_queues)

/* An entry for puts of the bits 7, with END events only. */
static struct px_entry taker(unsigned options, int threshold, ptl_size_t length)
{
    return px_entry(PT, 7, 0, PTL_RETAIN,
                    px_md(memory, length, PTL_MD_OP_PUT | PTL_MD_EVENT_START_DISABLE | options, threshold, eq),
                    PTL_RETAIN);
}

static void put(ptl_match_bits_t bits, ptl_size_t length, ptl_size_t offset, ptl_hdr_data_t number)
{
    assert_int_equal(PtlPutRegion(silent, 0, length, PX_NO_ACK, px_next, PT, 0, bits, offset, number), PTL_OK);
}

static ptl_event_t taken(ptl_hdr_data_t number)
{
    ptl_event_t event = px_take_kind(eq, PTL_EVENT_PUT_END);

    assert_true(event.hdr_data == number);
    return event;
}

static void unlink_entry(const struct px_entry *e)
{
    px_settle();
    assert_int_equal(PtlMEUnlink(e->me), PTL_OK);
}

static struct px_entry entry_for(ptl_process_id_t who, ptl_match_bits_t bits, ptl_match_bits_t ignore)
{
    struct px_entry e = { .md = px_md(memory, BYTES, PTL_MD_OP_PUT | PTL_MD_EVENT_START_DISABLE, -1, eq) };

    assert_int_equal(PtlMEAttach(px_ni, PT, who, bits, ignore, PTL_RETAIN, PTL_INS_AFTER, &e.me), PTL_OK);
    assert_int_equal(PtlMDAttach(e.me, e.md, PTL_RETAIN, &e.mdh), PTL_OK);
    return e;
}

static void test_source_node_and_process_match_or_are_wild(void **state)
{
    const ptl_process_id_t who[] = {
        { (ptl_nid_t)(px_previous.nid + 1000), PTL_PID_ANY }, /* another node */
        { PTL_NID_ANY, (ptl_pid_t)(px_previous.pid ^ 1) },    /* another process */
        { px_previous.nid, px_previous.pid },                 /* exactly */
        { PTL_NID_ANY, PTL_PID_ANY },
    };
    struct px_entry e[COUNT_OF(who)];

    (void)state;
    for (size_t i = 0; i < COUNT_OF(who); i++)
        e[i] = entry_for(who[i], 7, 0);
    px_barrier();
    put(7, 10, 0, 1);
    assert_int_equal(taken(1).md_handle, e[2].mdh);
    px_settle();
    assert_int_equal(PtlMEUnlink(e[2].me), PTL_OK);
    px_barrier();
    put(7, 10, 0, 2);
    assert_int_equal(taken(2).md_handle, e[3].mdh);
    px_settle();
    for (size_t i = 0; i < COUNT_OF(who); i++)
        assert_int_equal(PtlMEUnlink(e[i].me), i == 2 ? PTL_ME_INVALID : PTL_OK);
}

static void test_bits_match_but_for_the_ignored(void **state)
{
    struct px_entry e = entry_for(px_anybody, 0xff00ff00ff00ff00ull, 0xffull);
    ptl_sr_value_t before = px_register(PTL_SR_DROP_COUNT);

    (void)state;
    px_barrier();
    put(0xff00ff00ff00ff00ull, 1, 0, 1);
    put(0xff00ff00ff00ff5aull, 1, 0, 2); /* ignored bits */
    put(0xff00ff00ff00fe00ull, 1, 0, 3); /* one that is not */
    put(0x7f00ff00ff00ff00ull, 1, 0, 4);
    taken(1);
    taken(2);
    px_settle();
    assert_true(px_register(PTL_SR_DROP_COUNT) == before + 2);
    unlink_entry(&e);
}

static void test_the_first_entry_of_the_list_takes_it(void **state)
{
    struct px_entry e[3];

    (void)state;
    for (int i = 0; i < 3; i++)
        e[i] = taker(0, 1, BYTES);
    px_barrier();
    for (unsigned i = 0; i < 3; i++)
        put(7, 1, 0, i);
    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(taken(i).md_handle, e[i].mdh);
    for (int i = 0; i < 3; i++)
        unlink_entry(&e[i]);
}

static void test_a_threshold_counts_down_and_unlinks(void **state)
{
    struct px_entry e =
        px_entry(PT, 7, 0, PTL_UNLINK,
                 px_md(memory, BYTES, PTL_MD_OP_PUT | PTL_MD_EVENT_START_DISABLE | PX_UNLINK, 2, eq), PTL_UNLINK);
    struct px_entry infinite = taker(0, PTL_MD_THRESH_INF, BYTES);

    (void)state;
    px_barrier();
    for (unsigned i = 0; i < 4; i++)
        put(7, 1, 0, i);
    assert_int_equal(taken(0).md_handle, e.mdh);
    assert_int_equal(taken(1).md_handle, e.mdh);
    px_take_kind(eq, PTL_EVENT_UNLINK);
    assert_int_equal(taken(2).md_handle, infinite.mdh);
    assert_int_equal(taken(3).md_handle, infinite.mdh);
    px_settle();
    assert_int_equal(PtlMEUnlink(e.me), PTL_ME_INVALID); /* gone with its descriptor */
    unlink_entry(&infinite);
}

static void test_too_long_is_rejected_unless_it_may_be_truncated(void **state)
{
    struct px_entry strict = taker(0, PTL_MD_THRESH_INF, 100);
    struct px_entry cutting = taker(PTL_MD_TRUNCATE, PTL_MD_THRESH_INF, 100);
    ptl_event_t event;

    (void)state;
    px_barrier();
    put(7, 101, 0, 1);
    event = taken(1);
    assert_int_equal(event.md_handle, cutting.mdh);
    assert_true(event.rlength == 101 && event.mlength == 100);
    px_same(memory, 100, 13);
    assert_int_equal(memory[100], 0xee);
    put(7, 100, 0, 2);
    assert_int_equal(taken(2).md_handle, strict.mdh);
    unlink_entry(&strict);
    unlink_entry(&cutting);
}

static void test_too_little_room_makes_a_local_descriptor_inactive(void **state)
{
    ptl_md_t md = px_md(memory, 100, PTL_MD_OP_PUT | PTL_MD_MAX_SIZE | PTL_MD_EVENT_START_DISABLE, -1, eq);
    struct px_entry first;
    struct px_entry next;

    (void)state;
    md.max_size = 30;
    first = px_entry(PT, 7, 0, PTL_RETAIN, md, PTL_RETAIN);
    next = taker(0, PTL_MD_THRESH_INF, BYTES);
    px_barrier();
    put(7, 30, 0, 1);
    put(7, 30, 0, 2);
    put(7, 20, 0, 3); /* 20 are left now, fewer than 30 */
    put(7, 1, 0, 4);
    for (unsigned i = 1; i <= 4; i++)
        assert_int_equal(taken(i).md_handle, i < 4 ? first.mdh : next.mdh);
    unlink_entry(&first);
    unlink_entry(&next);
}

static void test_offsets_are_the_senders_or_follow_each_other(void **state)
{
    struct px_entry remote = taker(PTL_MD_MANAGE_REMOTE, 1, BYTES);
    struct px_entry local = taker(0, 2, BYTES);

    (void)state;
    px_barrier();
    for (unsigned i = 0; i < 3; i++)
        put(7, 10, 500, i);
    assert_true(taken(0).offset == 500);
    assert_true(taken(1).offset == 0);
    assert_true(taken(2).offset == 10);
    px_same(memory + 500, 10, 13);
    px_same(memory, 10, 13);
    px_same(memory + 10, 10, 13);
    unlink_entry(&remote);
    unlink_entry(&local);
}

static void test_an_acknowledgement_is_asked_for_and_allowed(void **state)
{
    struct px_entry allows = taker(0, 2, BYTES);
    struct px_entry refuses = taker(PTL_MD_ACK_DISABLE, 1, BYTES);
    ptl_handle_md_t mdh =
        px_bind(px_md(bytes, 8, PTL_MD_EVENT_START_DISABLE | PTL_MD_EVENT_END_DISABLE, -1, source_eq), PTL_RETAIN);

    (void)state;
    px_barrier();
    for (unsigned i = 1; i <= 3; i++) /* asked and allowed; not asked; asked and refused */
        assert_int_equal(PtlPut(mdh, i == 2 ? PX_NO_ACK : PTL_ACK_REQ, px_next, PT, 0, 7, 0, i), PTL_OK);
    for (unsigned i = 1; i <= 3; i++)
        taken(i);
    px_settle();
    assert_true(px_take_kind(source_eq, PTL_EVENT_ACK).hdr_data == 1);
    px_nothing(source_eq);
    assert_int_equal(PtlMDUnlink(mdh), PTL_OK);
    unlink_entry(&allows);
    unlink_entry(&refuses);
}

/* Of puts it is the source, of gets the local side; requests do not find it. */
static void test_a_free_descriptor_is_never_a_target(void **state)
{
    ptl_handle_md_t mdh = px_bind(
        px_md(memory + 2 * BYTES, 100, PTL_MD_OP_PUT | PTL_MD_OP_GET | PTL_MD_EVENT_START_DISABLE, -1, source_eq),
        PTL_RETAIN);
    struct px_entry e = px_entry(PT, 7, 0, PTL_RETAIN,
                                 px_md(bytes, BYTES, PTL_MD_OP_GET | PTL_MD_TRUNCATE, -1, PTL_EQ_NONE), PTL_RETAIN);
    ptl_sr_value_t before = px_register(PTL_SR_DROP_COUNT);

    (void)state;
    px_barrier();
    put(99, 10, 0, 1); /* no entry: dropped */
    px_settle();
    assert_true(px_register(PTL_SR_DROP_COUNT) == before + 1);
    px_all(memory + 2 * BYTES, 100, 0xee);
    assert_int_equal(PtlGet(mdh, px_next, PT, 0, 7, 0), PTL_OK);
    for (ptl_event_t event = px_take(source_eq); event.type != PTL_EVENT_REPLY_END;)
        event = px_take(source_eq);
    px_same(memory + 2 * BYTES, 100, 13);
    px_settle();
    assert_int_equal(PtlMDUnlink(mdh), PTL_OK);
    unlink_entry(&e);
}

static void test_get_only_and_put_only(void **state)
{
    struct px_entry gets = px_entry(
        PT, 7, 0, PTL_RETAIN, px_md(memory, BYTES, PTL_MD_OP_GET | PTL_MD_EVENT_START_DISABLE, -1, eq), PTL_RETAIN);
    struct px_entry puts = taker(0, PTL_MD_THRESH_INF, BYTES);
    ptl_handle_md_t mdh = px_bind(px_md(memory + 2 * BYTES, 10, 0, -1, PTL_EQ_NONE), PTL_RETAIN);

    (void)state;
    px_barrier();
    put(7, 10, 0, 1); /* passes the first entry by */
    assert_int_equal(taken(1).md_handle, puts.mdh);
    assert_int_equal(PtlGet(mdh, px_next, PT, 0, 7, 0), PTL_OK);
    assert_int_equal(px_take_kind(eq, PTL_EVENT_GET_END).md_handle, gets.mdh);
    px_settle();
    assert_int_equal(PtlMDUnlink(mdh), PTL_OK);
    unlink_entry(&gets);
    unlink_entry(&puts);
}

static void test_events_come_in_pairs_and_in_order(void **state)
{
    ptl_md_t md = px_md(bytes, 64, 0, PTL_MD_THRESH_INF, source_eq);
    ptl_handle_md_t mdh = px_bind(md, PTL_RETAIN);
    struct px_entry e =
        px_entry(PT, 7, 0, PTL_RETAIN,
                 px_md(memory, BYTES, PTL_MD_OP_PUT | PTL_MD_OP_GET | PTL_MD_MANAGE_REMOTE, -1, eq), PTL_RETAIN);
    static const ptl_event_kind_t at_source[] = { PTL_EVENT_SEND_START, PTL_EVENT_SEND_END, PTL_EVENT_ACK };
    static const ptl_event_kind_t of_get[] = { PTL_EVENT_SEND_START, PTL_EVENT_SEND_END, PTL_EVENT_REPLY_START,
                                               PTL_EVENT_REPLY_END };

    (void)state;
    px_barrier();
    assert_int_equal(PtlPut(mdh, PTL_ACK_REQ, px_next, PT, 0, 7, 0, 1), PTL_OK);
    px_expect_both(eq, (struct px_want){ PTL_EVENT_PUT_START, px_previous, PT, 7, 64, 64, 0, 1, e.mdh, e.md, -1 });
    for (size_t i = 0; i < COUNT_OF(at_source); i++)
        px_take_kind(source_eq, at_source[i]);
    px_settle();
    assert_int_equal(PtlGet(mdh, px_next, PT, 0, 7, 0), PTL_OK);
    px_expect_both(eq, (struct px_want){ PTL_EVENT_GET_START, px_previous, PT, 7, 64, 64, 0, 0, e.mdh, e.md, -1 });
    for (size_t i = 0; i < COUNT_OF(of_get); i++)
        px_take_kind(source_eq, of_get[i]);
    px_settle();
    assert_int_equal(PtlMDUnlink(mdh), PTL_OK);
    unlink_entry(&e);
}

static void test_events_can_be_suppressed(void **state)
{
    struct px_entry quiet = taker(PTL_MD_EVENT_END_DISABLE, 1, BYTES);
    struct px_entry without =
        px_entry(PT, 7, 0, PTL_RETAIN, px_md(memory, BYTES, PTL_MD_OP_PUT, 1, PTL_EQ_NONE), PTL_RETAIN);
    struct px_entry loud = taker(0, 1, BYTES);

    (void)state;
    px_barrier();
    for (unsigned i = 0; i < 3; i++)
        put(7, 10, 0, i);
    taken(2);
    px_settle();
    px_nothing(eq);
    unlink_entry(&quiet);
    unlink_entry(&without);
    unlink_entry(&loud);
}

/* One descriptor of several regions, of any length and alignment. */
static void test_a_descriptor_can_be_a_list_of_regions(void **state)
{
    ptl_md_iovec_t parts[3] = { { memory + 3, 7 }, { memory + 101, 1 }, { memory + 1003, 92 } };
    struct px_entry e =
        px_entry(PT, 7, 0, PTL_RETAIN,
                 px_md(parts, 3, PTL_MD_OP_PUT | PTL_MD_IOVEC | PTL_MD_EVENT_START_DISABLE, -1, eq), PTL_RETAIN);

    (void)state;
    px_barrier();
    put(7, 100, 0, 1);
    taken(1);
    assert_memory_equal(memory + 3, bytes, 7);
    assert_memory_equal(memory + 101, bytes + 7, 1);
    assert_memory_equal(memory + 1003, bytes + 8, 92);
    px_all(memory, 3, 0xee);
    px_all(memory + 10, 91, 0xee);
    unlink_entry(&e);
}

/* One queue for several descriptors; its events say whose they are and what became of the descriptor. */
static void test_a_queue_is_shared_and_events_carry_the_descriptor(void **state)
{
    struct px_entry one = taker(0, 5, BYTES);
    struct px_entry other = px_entry(
        PT, 8, 0, PTL_RETAIN, px_md(memory, BYTES, PTL_MD_OP_PUT | PTL_MD_EVENT_START_DISABLE, 9, eq), PTL_RETAIN);
    ptl_event_t event;

    (void)state;
    px_barrier();
    put(8, 1, 0, 1);
    put(7, 1, 0, 2);
    event = taken(1);
    assert_int_equal(event.md_handle, other.mdh);
    assert_int_equal(event.md.threshold, PX_CRAY ? 9 : 8);
    assert_ptr_equal(event.md.user_ptr, other.md.user_ptr);
    event = taken(2);
    assert_int_equal(event.md_handle, one.mdh);
    assert_int_equal(event.md.threshold, PX_CRAY ? 5 : 4);
    unlink_entry(&one);
    unlink_entry(&other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        rule(test_source_node_and_process_match_or_are_wild),
        rule(test_bits_match_but_for_the_ignored),
        rule(test_the_first_entry_of_the_list_takes_it),
        rule(test_a_threshold_counts_down_and_unlinks),
        rule(test_too_long_is_rejected_unless_it_may_be_truncated),
        rule(test_too_little_room_makes_a_local_descriptor_inactive),
        rule(test_offsets_are_the_senders_or_follow_each_other),
        rule(test_an_acknowledgement_is_asked_for_and_allowed),
        rule(test_a_free_descriptor_is_never_a_target),
        rule(test_get_only_and_put_only),
        rule(test_events_come_in_pairs_and_in_order),
        rule(test_events_can_be_suppressed),
        rule(test_a_descriptor_can_be_a_list_of_regions),
        rule(test_a_queue_is_shared_and_events_carry_the_descriptor),
    };

    return px_run(tests, NULL);
}
