/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Puts: data, events with all their fields, acknowledgements, options of either side. Each rank puts to the next one,
 * takes what the previous one puts.
 *
 * `events:` comments say which cells of the table of events a test shows (tests/tools/portals_events.txt).
 */
#include "tests/common/portals.h"

#define PT    6
#define BYTES 5000

static ptl_handle_eq_t source_eq, target_eq;
static uint8_t source[BYTES], target[BYTES + 64];

static int open_both(void **state)
{
    (void)state;
    source_eq = px_eq(256);
    target_eq = px_eq(256);
    px_fill(source, BYTES, (uint64_t)px_rank);
    memset(target, 0xee, sizeof(target));
    return 0;
}

static int close_both(void **state)
{
    (void)state;
    px_settle();
    px_nothing(source_eq);
    px_nothing(target_eq);
    assert_int_equal(PtlEQFree(source_eq), PTL_OK);
    assert_int_equal(PtlEQFree(target_eq), PTL_OK);
    return 0;
}

static uint64_t seed_of_previous(void)
{
    return (uint64_t)((px_rank + px_size - 1) % px_size);
}

static struct px_entry accept(unsigned options, int threshold)
{
    return px_entry(PT, PX_BITS, 0, PTL_RETAIN, px_md(target, BYTES, PTL_MD_OP_PUT | options, threshold, target_eq),
                    PTL_RETAIN);
}

/* events: put with ack: SEND_START, SEND_END, ACK, PUT_START, PUT_END */
static void test_a_put_with_ack_has_five_events(void **state)
{
    struct px_entry e = accept(0, 5);
    ptl_md_t md = px_md(source, BYTES, 0, 7, source_eq);
    ptl_handle_md_t mdh = px_bind(md, PTL_RETAIN);
    ptl_event_t ack;

    (void)state;
    px_barrier();
    assert_int_equal(PtlPut(mdh, PTL_ACK_REQ, px_next, PT, 0, PX_BITS, 4711, PX_HDR), PTL_OK);
    px_expect_both(source_eq,
                   (struct px_want){ PTL_EVENT_SEND_START, px_self, PT, PX_BITS, BYTES, BYTES, 0, PX_HDR, mdh, md, 7 });
    px_expect_both(target_eq, (struct px_want){ PTL_EVENT_PUT_START, px_previous, PT, PX_BITS, BYTES, BYTES, 0, PX_HDR,
                                                e.mdh, e.md, 5 });
    ack = px_take(source_eq);
    px_expect(&ack, &(struct px_want){ PTL_EVENT_ACK, px_next, PT, PX_BITS, BYTES, BYTES, 4711, PX_HDR, mdh, md, 6 });
    px_same(target, BYTES, seed_of_previous());
    px_all(target + BYTES, 64, 0xee);
    px_settle();
    assert_int_equal(PtlMDUnlink(mdh), PTL_OK);
    assert_int_equal(PtlMEUnlink(e.me), PTL_OK);
}

/* events: put without ack: SEND_START, SEND_END, PUT_START, PUT_END, no ACK */
static void test_without_request_there_is_no_ack(void **state)
{
    struct px_entry e = accept(0, PTL_MD_THRESH_INF);
    ptl_md_t md = px_md(source, 100, 0, PTL_MD_THRESH_INF, source_eq);
    ptl_handle_md_t mdh = px_bind(md, PTL_RETAIN);

    (void)state;
    px_barrier();
    assert_int_equal(PtlPut(mdh, PX_NO_ACK, px_next, PT, 0, PX_BITS, 0, 1), PTL_OK);
    px_expect_both(source_eq,
                   (struct px_want){ PTL_EVENT_SEND_START, px_self, PT, PX_BITS, 100, 100, 0, 1, mdh, md, -1 });
    px_expect_both(target_eq,
                   (struct px_want){ PTL_EVENT_PUT_START, px_previous, PT, PX_BITS, 100, 100, 0, 1, e.mdh, e.md, -1 });
    px_settle();
    px_nothing(source_eq);
    assert_int_equal(PtlMDUnlink(mdh), PTL_OK);
    assert_int_equal(PtlMEUnlink(e.me), PTL_OK);
}

/* The part that is sent is told as SEND's offset. */
/* events: put of a region: SEND_START, SEND_END, ACK, PUT_START, PUT_END */
static void test_a_region_is_told_by_its_local_offset(void **state)
{
    struct px_entry e = accept(0, PTL_MD_THRESH_INF);
    ptl_md_t md = px_md(source, BYTES, 0, PTL_MD_THRESH_INF, source_eq);
    ptl_handle_md_t mdh = px_bind(md, PTL_RETAIN);
    ptl_event_t ack;

    (void)state;
    px_barrier();
    assert_int_equal(PtlPutRegion(mdh, 1000, 777, PTL_ACK_REQ, px_next, PT, 0, PX_BITS, 8, PX_HDR), PTL_OK);
    px_expect_both(source_eq,
                   (struct px_want){ PTL_EVENT_SEND_START, px_self, PT, PX_BITS, 777, 777, 1000, PX_HDR, mdh, md, -1 });
    px_expect_both(target_eq, (struct px_want){ PTL_EVENT_PUT_START, px_previous, PT, PX_BITS, 777, 777, 0, PX_HDR,
                                                e.mdh, e.md, -1 });
    ack = px_take(source_eq);
    px_expect(&ack, &(struct px_want){ PTL_EVENT_ACK, px_next, PT, PX_BITS, 777, 777, 8, PX_HDR, mdh, md, -1 });
    px_fill(source, BYTES, seed_of_previous());
    assert_memory_equal(target, source + 1000, 777);
    px_all(target + 777, BYTES - 777, 0xee);
    /* Of no length, at the very end; and the whole. */
    assert_int_equal(PtlPutRegion(mdh, BYTES, 0, PX_NO_ACK, px_next, PT, 0, 0, 0, 0), PTL_OK);
    px_expect_both(source_eq, (struct px_want){ PTL_EVENT_SEND_START, px_self, PT, 0, 0, 0, BYTES, 0, mdh, md, -1 });
    px_settle();
    assert_int_equal(PtlMDUnlink(mdh), PTL_OK);
    assert_int_equal(PtlMEUnlink(e.me), PTL_OK);
}

/* What each side's disable options leave; ACK stays in every case. */
/* events: put + source START_DISABLE: no SEND_START, SEND_END, ACK */
/* events: put + source END_DISABLE: SEND_START, no SEND_END, ACK */
/* events: put + source both disabled: no SEND_START, no SEND_END, ACK */
/* events: put + target START_DISABLE: no PUT_START, PUT_END, ACK */
/* events: put + target END_DISABLE: PUT_START, no PUT_END, ACK */
/* events: put + target both disabled: no PUT_START, no PUT_END, ACK */
static void test_start_and_end_can_be_disabled(void **state)
{
    (void)state;
    for (unsigned which = 0; which < 16; which++) {
        unsigned on_source = (which & 1 ? PTL_MD_EVENT_START_DISABLE : 0) | (which & 2 ? PTL_MD_EVENT_END_DISABLE : 0);
        unsigned on_target = (which & 4 ? PTL_MD_EVENT_START_DISABLE : 0) | (which & 8 ? PTL_MD_EVENT_END_DISABLE : 0);
        struct px_entry e = accept(on_target, PTL_MD_THRESH_INF);
        ptl_handle_md_t mdh = px_bind(px_md(source, 16, on_source, PTL_MD_THRESH_INF, source_eq), PTL_RETAIN);

        px_barrier();
        assert_int_equal(PtlPut(mdh, PTL_ACK_REQ, px_next, PT, 0, PX_BITS, 0, 0), PTL_OK);
        if (!(which & 1))
            px_take_kind(source_eq, PTL_EVENT_SEND_START);
        if (!(which & 2))
            px_take_kind(source_eq, PTL_EVENT_SEND_END);
        px_take_kind(source_eq, PTL_EVENT_ACK);
        px_settle();
        if (!(which & 4))
            px_take_kind(target_eq, PTL_EVENT_PUT_START);
        if (!(which & 8))
            px_take_kind(target_eq, PTL_EVENT_PUT_END);
        px_nothing(source_eq);
        px_nothing(target_eq);
        px_same(target, 16, seed_of_previous());
        assert_int_equal(PtlMDUnlink(mdh), PTL_OK);
        assert_int_equal(PtlMEUnlink(e.me), PTL_OK);
    }
}

/* Thresholds count what is not told, and those events that were disabled unlink as well. */
static void test_disabled_events_count(void **state)
{
    unsigned both = PTL_MD_EVENT_START_DISABLE | PTL_MD_EVENT_END_DISABLE;
    struct px_entry e = accept(both, 2);
    ptl_handle_md_t mdh = px_bind(px_md(source, 16, both, 3, PTL_EQ_NONE), PTL_RETAIN);
    ptl_md_t now = { 0 };

    (void)state;
    px_barrier();
    assert_int_equal(PtlPut(mdh, PTL_ACK_REQ, px_next, PT, 0, PX_BITS, 0, 0), PTL_OK);
    px_settle();
    assert_int_equal(PtlMDUpdate(mdh, &now, NULL, PTL_EQ_NONE), PTL_OK);
    assert_int_equal(now.threshold, 1); /* sent, acknowledged: without a queue as well */
    assert_int_equal(PtlMDUpdate(e.mdh, &now, NULL, PTL_EQ_NONE), PTL_OK);
    assert_int_equal(now.threshold, 1);
    assert_int_equal(PtlMDUnlink(mdh), PTL_OK);
    assert_int_equal(PtlMEUnlink(e.me), PTL_OK);
}

/* events: put + target ACK_DISABLE: PUT_START, PUT_END, no ACK */
static void test_a_target_can_refuse_to_acknowledge(void **state)
{
    struct px_entry e = accept(PTL_MD_ACK_DISABLE, PTL_MD_THRESH_INF);
    ptl_handle_md_t mdh = px_bind(px_md(source, 16, PTL_MD_EVENT_START_DISABLE, 2, source_eq), PTL_RETAIN);
    ptl_md_t now = { 0 };

    (void)state;
    px_barrier();
    assert_int_equal(PtlPut(mdh, PTL_ACK_REQ, px_next, PT, 0, PX_BITS, 0, 0), PTL_OK);
    px_take_kind(source_eq, PTL_EVENT_SEND_END);
    px_take_kind(target_eq, PTL_EVENT_PUT_START);
    px_take_kind(target_eq, PTL_EVENT_PUT_END);
    px_settle();
    px_nothing(source_eq);
    assert_int_equal(PtlMDUpdate(mdh, &now, NULL, PTL_EQ_NONE), PTL_OK);
    assert_int_equal(now.threshold, 1);
    assert_int_equal(PtlMDUnlink(mdh), PTL_OK);
    assert_int_equal(PtlMEUnlink(e.me), PTL_OK);
}

/* events: put + target EQ_NONE: ACK, no PUT_START, no PUT_END */
static void test_acks_need_no_queue_at_the_target(void **state)
{
    struct px_entry e =
        px_entry(PT, PX_BITS, 0, PTL_RETAIN, px_md(target, 64, PTL_MD_OP_PUT, 1, PTL_EQ_NONE), PTL_RETAIN);
    ptl_handle_md_t mdh = px_bind(px_md(source, 16, PTL_MD_EVENT_START_DISABLE, 2, source_eq), PTL_RETAIN);

    (void)state;
    px_barrier();
    assert_int_equal(PtlPut(mdh, PTL_ACK_REQ, px_next, PT, 0, PX_BITS, 0, 0), PTL_OK);
    px_take_kind(source_eq, PTL_EVENT_SEND_END);
    px_take_kind(source_eq, PTL_EVENT_ACK);
    px_settle();
    px_same(target, 16, seed_of_previous());
    assert_int_equal(PtlMDUnlink(mdh), PTL_OK);
    assert_int_equal(PtlMEUnlink(e.me), PTL_OK);
}

/* Two messages to 60 bytes: the second is cut, the third keeps nothing and is acknowledged all the same. */
/* events: put + target TRUNCATE: PUT_START, PUT_END, ACK */
static void test_truncation_is_told_to_both(void **state)
{
    static const ptl_size_t kept[] = { 40, 20, 0 }, offset[] = { 0, 40, 60 };
    struct px_entry e =
        px_entry(PT, PX_BITS, 0, PTL_RETAIN,
                 px_md(target, 60, PTL_MD_OP_PUT | PTL_MD_TRUNCATE, PTL_MD_THRESH_INF, target_eq), PTL_RETAIN);
    ptl_md_t md =
        px_md(source, 40, PTL_MD_EVENT_START_DISABLE | PTL_MD_EVENT_END_DISABLE, PTL_MD_THRESH_INF, source_eq);
    ptl_handle_md_t mdh = px_bind(md, PTL_RETAIN);

    (void)state;
    px_barrier();
    for (int i = 0; i < 3; i++) {
        ptl_event_t ack;

        assert_int_equal(PtlPut(mdh, PTL_ACK_REQ, px_next, PT, 0, PX_BITS, 0, 0), PTL_OK);
        px_expect_both(target_eq, (struct px_want){ PTL_EVENT_PUT_START, px_previous, PT, PX_BITS, 40, kept[i],
                                                    offset[i], 0, e.mdh, e.md, -1 });
        ack = px_take(source_eq);
        px_expect(&ack, &(struct px_want){ PTL_EVENT_ACK, px_next, PT, PX_BITS, 40, kept[i], 0, 0, mdh, md, -1 });
    }
    px_same(target, 40, seed_of_previous());
    px_same(target + 40, 20, seed_of_previous());
    px_all(target + 60, 40, 0xee);
    px_settle();
    assert_int_equal(PtlMDUnlink(mdh), PTL_OK);
    assert_int_equal(PtlMEUnlink(e.me), PTL_OK);
}

/* events: put + target MANAGE_REMOTE: PUT_START, PUT_END, ACK */
static void test_the_remote_offset_is_used_where_it_is_wanted(void **state)
{
    struct px_entry e = accept(PTL_MD_MANAGE_REMOTE, PTL_MD_THRESH_INF);
    ptl_md_t md =
        px_md(source, 16, PTL_MD_EVENT_START_DISABLE | PTL_MD_EVENT_END_DISABLE, PTL_MD_THRESH_INF, source_eq);
    ptl_handle_md_t mdh = px_bind(md, PTL_RETAIN);
    static const ptl_size_t offsets[] = { 100, 0, BYTES - 16, 100 };

    (void)state;
    px_barrier();
    for (size_t i = 0; i < COUNT_OF(offsets); i++) {
        ptl_event_t ack;

        assert_int_equal(PtlPut(mdh, PTL_ACK_REQ, px_next, PT, 0, PX_BITS, offsets[i], i), PTL_OK);
        px_expect_both(target_eq, (struct px_want){ PTL_EVENT_PUT_START, px_previous, PT, PX_BITS, 16, 16, offsets[i],
                                                    i, e.mdh, e.md, -1 });
        ack = px_take(source_eq);
        px_expect(&ack, &(struct px_want){ PTL_EVENT_ACK, px_next, PT, PX_BITS, 16, 16, offsets[i], i, mdh, md, -1 });
        px_same(target + offsets[i], 16, seed_of_previous());
    }
    px_all(target + 16, 84, 0xee);
    px_all(target + BYTES, 64, 0xee);
    px_settle();
    assert_int_equal(PtlMDUnlink(mdh), PTL_OK);
    assert_int_equal(PtlMEUnlink(e.me), PTL_OK);
}

/* Without it, messages lie one behind the other, whatever they say. */
static void test_local_offsets_follow_each_other(void **state)
{
    struct px_entry e = accept(PTL_MD_EVENT_START_DISABLE, PTL_MD_THRESH_INF);
    ptl_handle_md_t mdh = px_bind(px_md(source, 200, 0, PTL_MD_THRESH_INF, PTL_EQ_NONE), PTL_RETAIN);
    ptl_size_t at = 0;

    (void)state;
    px_barrier();
    for (ptl_size_t n = 0; n < 20; n++)
        assert_int_equal(PtlPutRegion(mdh, n, n * 3, PX_NO_ACK, px_next, PT, 0, PX_BITS, 4000, n), PTL_OK);
    for (ptl_size_t n = 0; n < 20; n++) {
        ptl_event_t event = px_take_kind(target_eq, PTL_EVENT_PUT_END);

        assert_true(event.offset == at && event.mlength == n * 3 && event.hdr_data == n);
        at += n * 3;
    }
    px_fill(source, BYTES, seed_of_previous());
    at = 0;
    for (ptl_size_t n = 0; n < 20; n++) {
        assert_memory_equal(target + at, source + n, n * 3);
        at += n * 3;
    }
    px_settle();
    assert_int_equal(PtlMDUnlink(mdh), PTL_OK);
    assert_int_equal(PtlMEUnlink(e.me), PTL_OK);
}

/* The same cut in other pieces on both sides; also parts of no length. */
/* events: put + IOVEC: SEND_START, SEND_END, ACK, PUT_START, PUT_END */
static void test_scattered_memory_on_both_sides(void **state)
{
    ptl_md_iovec_t out[5] = {
        { source, 100 }, { NULL, 0 }, { source + 300, 1 }, { source + 500, 999 }, { source + 2000, 400 }
    };
    ptl_md_iovec_t in[4] = { { target + 7, 3 }, { target + 1000, 1200 }, { target + 50, 0 }, { target + 3000, 297 } };
    uint8_t flat_out[1500], flat_in[1500];
    ptl_md_t md = px_md(out, 5, PTL_MD_IOVEC, PTL_MD_THRESH_INF, source_eq);
    struct px_entry e = px_entry(PT, PX_BITS, 0, PTL_RETAIN,
                                 px_md(in, 4, PTL_MD_OP_PUT | PTL_MD_IOVEC, PTL_MD_THRESH_INF, target_eq), PTL_RETAIN);
    ptl_handle_md_t mdh = px_bind(md, PTL_RETAIN);
    ptl_event_t ack;

    (void)state;
    /* The arrays were copied; events give the caller's pointer. */
    memset(in, 0, sizeof(in));
    memset(out, 0, sizeof(out));
    px_barrier();
    assert_int_equal(PtlPut(mdh, PTL_ACK_REQ, px_next, PT, 0, PX_BITS, 0, 3), PTL_OK);
    px_expect_both(source_eq,
                   (struct px_want){ PTL_EVENT_SEND_START, px_self, PT, PX_BITS, 1500, 1500, 0, 3, mdh, md, -1 });
    px_expect_both(target_eq, (struct px_want){ PTL_EVENT_PUT_START, px_previous, PT, PX_BITS, 1500, 1500, 0, 3, e.mdh,
                                                e.md, -1 });
    ack = px_take(source_eq);
    px_expect(&ack, &(struct px_want){ PTL_EVENT_ACK, px_next, PT, PX_BITS, 1500, 1500, 0, 3, mdh, md, -1 });
    px_fill(source, BYTES, seed_of_previous());
    memcpy(flat_out, source, 100);
    memcpy(flat_out + 100, source + 300, 1);
    memcpy(flat_out + 101, source + 500, 999);
    memcpy(flat_out + 1100, source + 2000, 400);
    memcpy(flat_in, target + 7, 3);
    memcpy(flat_in + 3, target + 1000, 1200);
    memcpy(flat_in + 1203, target + 3000, 297);
    assert_memory_equal(flat_in, flat_out, 1500);
    px_all(target, 7, 0xee);
    px_all(target + 10, 990, 0xee);
    px_all(target + 2200, 800, 0xee);
    /* A part across the pieces. */
    px_settle();
    assert_int_equal(PtlPutRegion(mdh, 90, 30, PX_NO_ACK, px_next, PT, 0, PX_BITS, 0, 0), PTL_OK);
    px_take_kind(source_eq, PTL_EVENT_SEND_START);
    assert_true(px_take_kind(source_eq, PTL_EVENT_SEND_END).offset == 90);
    px_settle();
    px_nothing(target_eq); /* full: dropped */
    assert_int_equal(PtlMDUnlink(mdh), PTL_OK);
    assert_int_equal(PtlMEUnlink(e.me), PTL_OK);
}

/* Its own options and offset mean nothing for the local side. */
static void test_an_attached_descriptor_can_be_the_source(void **state)
{
    struct px_entry e = accept(PTL_MD_EVENT_START_DISABLE, PTL_MD_THRESH_INF);
    ptl_md_t md =
        px_md(source, 64, PTL_MD_OP_GET | PTL_MD_MANAGE_REMOTE | PTL_MD_TRUNCATE | PTL_MD_MAX_SIZE, 3, source_eq);
    struct px_entry from;

    (void)state;
    md.max_size = 1;
    from = px_entry(PT + 1, 0, 0, PTL_RETAIN, md, PTL_RETAIN);
    px_barrier();
    for (int i = 0; i < 2; i++) {
        assert_int_equal(PtlPut(from.mdh, PX_NO_ACK, px_next, PT, 0, PX_BITS, 5, 0), PTL_OK);
        px_expect_both(source_eq, (struct px_want){ PTL_EVENT_SEND_START, px_self, PT, PX_BITS, 64, 64, 0, 0, from.mdh,
                                                    from.md, 3 - i });
        assert_true(px_take_kind(target_eq, PTL_EVENT_PUT_END).offset == (ptl_size_t)(i * 64));
    }
    px_settle();
    assert_int_equal(PtlMEUnlink(from.me), PTL_OK);
    assert_int_equal(PtlMEUnlink(e.me), PTL_OK);
}

static void test_empty_messages_match_empty_descriptors(void **state)
{
    struct px_entry e = px_entry(PT, PX_BITS, 0, PTL_RETAIN, px_md(NULL, 0, PTL_MD_OP_PUT, 1, target_eq), PTL_RETAIN);
    ptl_handle_md_t mdh = px_bind(px_md(NULL, 0, 0, 2, source_eq), PTL_RETAIN);

    (void)state;
    px_barrier();
    assert_int_equal(PtlPut(mdh, PTL_ACK_REQ, px_next, PT, 0, PX_BITS, 0, PX_HDR), PTL_OK);
    px_take_kind(source_eq, PTL_EVENT_SEND_START);
    px_take_kind(source_eq, PTL_EVENT_SEND_END);
    px_take_kind(source_eq, PTL_EVENT_ACK);
    px_take_kind(target_eq, PTL_EVENT_PUT_START);
    assert_true(px_take_kind(target_eq, PTL_EVENT_PUT_END).hdr_data == PX_HDR);
    px_settle();
    assert_int_equal(PtlMDUnlink(mdh), PTL_OK);
    assert_int_equal(PtlMEUnlink(e.me), PTL_OK);
}

/* Sizes around every limit that a path may have; source and target not aligned. */
static void test_every_size_arrives(void **state)
{
    static const size_t sizes[] = { 1,    7,     8,     9,     12,     13,      63,     64,   65,
                                    255,  256,   1023,  1024,  1025,   4095,    4096,   4097, 8191,
                                    8193, 32768, 65535, 65537, 262144, 1048583, 4194301 };
    size_t most = sizes[COUNT_OF(sizes) - 1];
    uint8_t *from = malloc(most + 3), *to = malloc(most + 5 + 64);

    (void)state;
    assert_non_null(from);
    assert_non_null(to);
    px_fill(from + 3, most, (uint64_t)px_rank + 99);
    for (size_t i = 0; i < COUNT_OF(sizes); i++) {
        ptl_handle_md_t mdh = px_bind(px_md(from + 3, sizes[i], PTL_MD_EVENT_START_DISABLE, 2, source_eq), PTL_RETAIN);
        struct px_entry e;

        memset(to, 0xdd, sizes[i] + 5 + 64);
        e = px_entry(PT, 0, 0, PTL_UNLINK,
                     px_md(to + 5, sizes[i], PTL_MD_OP_PUT | PTL_MD_EVENT_START_DISABLE, 1, target_eq), PTL_RETAIN);
        px_barrier();
        assert_int_equal(PtlPut(mdh, PTL_ACK_REQ, px_next, PT, 0, 0, 0, sizes[i]), PTL_OK);
        px_take_kind(source_eq, PTL_EVENT_SEND_END);
        px_take_kind(source_eq, PTL_EVENT_ACK);
        assert_true(px_take_kind(target_eq, PTL_EVENT_PUT_END).mlength == sizes[i]);
        px_same(to + 5, sizes[i], seed_of_previous() + 99);
        px_all(to, 5, 0xdd);
        px_all(to + 5 + sizes[i], 64, 0xdd);
        assert_int_equal(PtlMDUnlink(mdh), PTL_OK);
        assert_int_equal(PtlMDUnlink(e.mdh), PTL_OK);
        px_barrier();
    }
    free(from);
    free(to);
}

/* To itself: the same algorithm, the same events. */
/* events: put to oneself: SEND_START, SEND_END, ACK, PUT_START, PUT_END */
static void test_messages_to_oneself(void **state)
{
    struct px_entry e = accept(0, 1);
    ptl_handle_md_t mdh = px_bind(px_md(source, 100, 0, 2, source_eq), PTL_RETAIN);

    (void)state;
    assert_int_equal(PtlPut(mdh, PTL_ACK_REQ, px_self, PT, 0, PX_BITS, 0, 2), PTL_OK);
    px_take_kind(source_eq, PTL_EVENT_SEND_START);
    px_take_kind(source_eq, PTL_EVENT_SEND_END);
    assert_int_equal(px_take_kind(source_eq, PTL_EVENT_ACK).initiator.pid, px_self.pid);
    px_take_kind(target_eq, PTL_EVENT_PUT_START);
    assert_int_equal(px_take_kind(target_eq, PTL_EVENT_PUT_END).initiator.pid, px_self.pid);
    px_same(target, 100, (uint64_t)px_rank);
    assert_int_equal(PtlMDUnlink(mdh), PTL_OK);
    assert_int_equal(PtlMEUnlink(e.me), PTL_OK);
}

/* Puts of all sizes from one source keep their order at START, over all portal indices. */
static void test_requests_are_matched_in_the_order_of_the_calls(void **state)
{
    enum { N = 200 };
    static uint8_t wide[65536];
    uint64_t sequence = 0;
    struct px_entry e[2];
    ptl_handle_md_t mdh = px_bind(px_md(wide, sizeof(wide), 0, PTL_MD_THRESH_INF, PTL_EQ_NONE), PTL_RETAIN);
    ptl_handle_eq_t eq = px_eq(2 * N);

    (void)state;
    for (unsigned i = 0; i < 2; i++)
        e[i] = px_entry(PT + i, 0, 0, PTL_RETAIN,
                        px_md(target, 0, PTL_MD_OP_PUT | PTL_MD_TRUNCATE, PTL_MD_THRESH_INF, eq), PTL_RETAIN);
    px_barrier();
    for (unsigned i = 0; i < N; i++)
        assert_int_equal(PtlPutRegion(mdh, 0, i % 3 ? i : 40000, PX_NO_ACK, px_next, PT + i % 2, 0, 0, 0, i), PTL_OK);
    for (unsigned i = 0; i < 2 * N; i++) {
        ptl_event_t event = px_take(eq);

        if (event.type == PTL_EVENT_PUT_START)
            assert_true(event.hdr_data == sequence++);
    }
    px_settle();
    for (int i = 0; i < 2; i++)
        assert_int_equal(PtlMEUnlink(e[i].me), PTL_OK);
    assert_int_equal(PtlMDUnlink(mdh), PTL_OK);
    assert_int_equal(PtlEQFree(eq), PTL_OK);
}

/* covers: PtlPutRegion: PTL_MD_INVALID, PTL_MD_ILLEGAL */
static void test_bad_arguments(void **state)
{
    ptl_handle_md_t mdh = px_bind(px_md(source, 64, 0, PTL_MD_THRESH_INF, source_eq), PTL_RETAIN);
    ptl_handle_md_t inactive = px_bind(px_md(source, 64, 0, 0, source_eq), PTL_RETAIN);
    const ptl_process_id_t bad[] = { { PTL_NID_ANY, px_next.pid }, { px_next.nid, PTL_PID_ANY }, px_anybody };
    const struct {
        const char *name;
        ptl_handle_md_t mdh;
        ptl_size_t offset;
        ptl_size_t length;
        int rc;
    } rows[] = {
        { "no descriptor", PTL_INVALID_HANDLE, 0, 0, PTL_MD_INVALID },
        { "inactive", inactive, 0, 1, PTL_MD_INVALID },
        { "inactive before the range", inactive, 65, 1, PTL_MD_INVALID },
        { "offset behind the end", mdh, 65, 0, PTL_MD_ILLEGAL },
        { "end behind the end", mdh, 1, 64, PTL_MD_ILLEGAL },
        { "offset that overflows", mdh, ~0ull, 2, PTL_MD_ILLEGAL },
        { "length that overflows", mdh, 8, ~0ull, PTL_MD_ILLEGAL },
    };

    (void)state;
    assert_int_equal(PtlPut(PTL_INVALID_HANDLE, PTL_ACK_REQ, px_next, PT, 0, 0, 0, 0), PTL_MD_INVALID);
    assert_int_equal(PtlPut(inactive, PTL_ACK_REQ, px_next, PT, 0, 0, 0, 0), PTL_MD_INVALID);
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        assert_row_equal(
            rows[i].name,
            PtlPutRegion(rows[i].mdh, rows[i].offset, rows[i].length, PTL_ACK_REQ, px_next, PT, 0, 0, 0, 0),
            rows[i].rc);
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        assert_int_equal(PtlPut(mdh, PTL_ACK_REQ, bad[i], PT, 0, 0, 0, 0), PTL_PROCESS_INVALID);
        assert_int_equal(PtlPutRegion(mdh, 0, 1, PTL_ACK_REQ, bad[i], PT, 0, 0, 0, 0), PTL_PROCESS_INVALID);
    }
    px_nothing(source_eq);
    assert_int_equal(PtlMDUnlink(mdh), PTL_OK);
    assert_int_equal(PtlMDUnlink(inactive), PTL_OK);
    assert_int_equal(PtlPut(mdh, PTL_ACK_REQ, px_next, PT, 0, 0, 0, 0), PTL_MD_INVALID);
}

/* A descriptor that used up its threshold cannot send any more. */
static void test_thresholds_bound_what_is_sent(void **state)
{
    struct px_entry e = accept(PTL_MD_EVENT_START_DISABLE, PTL_MD_THRESH_INF);
    ptl_handle_md_t mdh = px_bind(px_md(source, 8, PTL_MD_EVENT_START_DISABLE, 2, source_eq), PTL_RETAIN);

    (void)state;
    px_barrier();
    for (int i = 0; i < 2; i++) {
        assert_int_equal(PtlPut(mdh, PX_NO_ACK, px_next, PT, 0, PX_BITS, 0, 0), PTL_OK);
        px_take_kind(source_eq, PTL_EVENT_SEND_END);
        px_take_kind(target_eq, PTL_EVENT_PUT_END);
    }
    assert_int_equal(PtlPut(mdh, PX_NO_ACK, px_next, PT, 0, PX_BITS, 0, 0), PTL_MD_INVALID);
    px_settle();
    assert_int_equal(PtlMDUnlink(mdh), PTL_OK);
    assert_int_equal(PtlMEUnlink(e.me), PTL_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define both_test(name) cmocka_unit_test_setup_teardown(name, open_both, close_both)
        both_test(test_a_put_with_ack_has_five_events),
        both_test(test_without_request_there_is_no_ack),
        both_test(test_a_region_is_told_by_its_local_offset),
        both_test(test_start_and_end_can_be_disabled),
        both_test(test_disabled_events_count),
        both_test(test_a_target_can_refuse_to_acknowledge),
        both_test(test_acks_need_no_queue_at_the_target),
        both_test(test_truncation_is_told_to_both),
        both_test(test_the_remote_offset_is_used_where_it_is_wanted),
        both_test(test_local_offsets_follow_each_other),
        both_test(test_scattered_memory_on_both_sides),
        both_test(test_an_attached_descriptor_can_be_the_source),
        both_test(test_empty_messages_match_empty_descriptors),
        both_test(test_every_size_arrives),
        both_test(test_messages_to_oneself),
        both_test(test_requests_are_matched_in_the_order_of_the_calls),
        both_test(test_bad_arguments),
        both_test(test_thresholds_bound_what_is_sent),
    };

    return px_run(tests, NULL);
}
