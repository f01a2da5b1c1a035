/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Descriptors: what is refused, thresholds, the size rule, automatic unlinking and its event, looking at and replacing
 * their contents.
 */
#include "tests/common/portals.h"

#include <sys/mman.h>

#define PT 8

static ptl_handle_eq_t eq, local_eq;
static ptl_handle_md_t source; /* 1000 bytes, silent */
static uint8_t memory[4096], bytes[1000];

static int open_queues(void **state)
{
    (void)state;
    eq = px_eq(256);
    local_eq = px_eq(256);
    px_fill(bytes, sizeof(bytes), 3);
    memset(memory, 0xee, sizeof(memory));
    source = px_bind(px_md(bytes, sizeof(bytes), 0, PTL_MD_THRESH_INF, PTL_EQ_NONE), PTL_RETAIN);
    px_barrier();
    return 0;
}

static int close_queues(void **state)
{
    (void)state;
    px_settle();
    px_nothing(eq);
    px_nothing(local_eq);
    assert_int_equal(PtlMDUnlink(source), PTL_OK);
    assert_int_equal(PtlEQFree(eq), PTL_OK);
    assert_int_equal(PtlEQFree(local_eq), PTL_OK);
    return 0;
}

static void put(ptl_size_t length, ptl_hdr_data_t number)
{
    assert_int_equal(PtlPutRegion(source, 0, length, PX_NO_ACK, px_next, PT, 0, 0, 0, number), PTL_OK);
}

static int threshold_of(ptl_handle_md_t mdh)
{
    ptl_md_t now = { 0 };

    assert_int_equal(PtlMDUpdate(mdh, &now, NULL, PTL_EQ_NONE), PTL_OK);
    return now.threshold;
}

/* ---- what is refused ---- */

/* Everything that takes contents refuses these with `rc`. */
static void contents_are_refused(ptl_handle_me_t me, ptl_handle_md_t bound, ptl_md_t md, int rc)
{
    ptl_handle_md_t out = 5;
    ptl_handle_me_t new_me = 6;

    assert_int_equal(PtlMDAttach(me, md, PTL_RETAIN, &out), rc);
    assert_int_equal(PtlMDBind(px_ni, md, PTL_RETAIN, &out), rc);
    assert_int_equal(PtlMDUpdate(bound, NULL, &md, PTL_EQ_NONE), rc);
    assert_int_equal(
        PtlMEMDPost(px_ni, me, px_anybody, 0, 0, PTL_RETAIN, PTL_INS_AFTER, md, PTL_RETAIN, &new_me, &out, PTL_EQ_NONE),
        rc);
#if PX_CRAY
    assert_int_equal(
        PtlMEMDAttach(px_ni, PT, px_anybody, 0, 0, PTL_RETAIN, PTL_INS_AFTER, md, PTL_RETAIN, &new_me, &out), rc);
    assert_int_equal(PtlMEMDInsert(me, px_anybody, 0, 0, PTL_RETAIN, PTL_INS_AFTER, md, PTL_RETAIN, &new_me, &out), rc);
#endif
    assert_int_equal(out, 5);
    assert_int_equal(new_me, 6);
}

/* covers: PtlMDAttach, PtlMDBind, PtlMDUpdate, PtlMEMDPost: PTL_MD_ILLEGAL, PTL_EQ_INVALID */
/* covers: PtlMEMDAttach, PtlMEMDInsert: PTL_MD_ILLEGAL, PTL_EQ_INVALID */
static void test_contents_that_cannot_be(void **state)
{
    ptl_md_iovec_t parts[2] = { { memory, 10 }, { NULL, 10 } }, around[2] = { { memory, 16 }, { (void *)~0xful, 64 } };
    const ptl_md_t bad[] = {
        px_md(NULL, 1, PTL_MD_OP_PUT, 1, PTL_EQ_NONE),
        px_md(memory, ~0ull, PTL_MD_OP_PUT, 1, PTL_EQ_NONE),
        px_md((void *)~0xful, 64, PTL_MD_OP_PUT, 1, PTL_EQ_NONE),
        px_md(NULL, 1, PTL_MD_OP_PUT | PTL_MD_IOVEC, 1, PTL_EQ_NONE),
        px_md(parts, 2, PTL_MD_OP_PUT | PTL_MD_IOVEC, 1, PTL_EQ_NONE),
        px_md(around, 2, PTL_MD_OP_PUT | PTL_MD_IOVEC, 1, PTL_EQ_NONE),
        px_md(parts, (ptl_size_t)px_limits.max_md_iovecs + 1, PTL_MD_OP_PUT | PTL_MD_IOVEC, 1, PTL_EQ_NONE),
        px_md(memory, 1, PTL_MD_OP_PUT | 1u << 31, 1, PTL_EQ_NONE),
#if PX_CRAY
        px_md(memory, 1, PTL_MD_OP_PUT | PTL_MD_PHYS, 1, PTL_EQ_NONE),
        px_md(memory, 1, PTL_MD_OP_PUT | PTL_MD_KIOV, 1, PTL_EQ_NONE),
#endif
    };
    const ptl_md_t good = px_md(memory, 8, PTL_MD_OP_PUT, 1, PTL_EQ_NONE);
    const ptl_handle_eq_t no_queues[] = { PTL_INVALID_HANDLE, PTL_HANDLE_NONE, eq ^ 0x100 };
    ptl_handle_md_t bound = px_bind(good, PTL_RETAIN), out = 5;
    ptl_handle_me_t me;

    (void)state;
    assert_int_equal(PtlMEAttach(px_ni, PT, px_anybody, 0, 0, PTL_RETAIN, PTL_INS_AFTER, &me), PTL_OK);
    for (size_t i = 0; i < COUNT_OF(bad); i++)
        contents_are_refused(me, bound, bad[i], PTL_MD_ILLEGAL);
    for (size_t i = 0; i < COUNT_OF(no_queues); i++) {
        ptl_md_t md = good;

        md.eq_handle = no_queues[i];
        contents_are_refused(me, bound, md, PTL_EQ_INVALID);
    }
    assert_int_equal(PtlMDAttach(PTL_INVALID_HANDLE, good, PTL_RETAIN, &out), PTL_ME_INVALID);
    assert_int_equal(PtlMDBind(PTL_INVALID_HANDLE, good, PTL_RETAIN, &out), PTL_NI_INVALID);
    assert_int_equal(PtlMDAttach(me, good, PTL_RETAIN, NULL), PTL_SEGV);
    assert_int_equal(PtlMDBind(px_ni, good, PTL_RETAIN, NULL), PTL_SEGV);
    assert_int_equal(PtlMDUnlink(PTL_INVALID_HANDLE), PTL_MD_INVALID);
    assert_int_equal(PtlMDUpdate(PTL_INVALID_HANDLE, NULL, NULL, PTL_EQ_NONE), PTL_MD_INVALID);
    assert_int_equal(PtlMDUpdate(bound, NULL, NULL, PTL_INVALID_HANDLE), PTL_EQ_INVALID);
    assert_int_equal(out, 5);
    assert_int_equal(px_register(PTL_SR_MLIST_LEN(PT)), 1);
    assert_int_equal(PtlMDAttach(me, good, PTL_RETAIN, &out), PTL_OK);
    assert_int_equal(PtlMDAttach(me, good, PTL_RETAIN, &out), PTL_ME_IN_USE);
    assert_int_equal(PtlMEUnlink(me), PTL_OK);
    assert_int_equal(PtlMDAttach(me, good, PTL_RETAIN, &out), PTL_ME_INVALID);
    assert_int_equal(PtlMDUnlink(bound), PTL_OK);
    assert_int_equal(PtlMDUnlink(bound), PTL_MD_INVALID);
}

/* ---- thresholds ---- */

static void test_negative_thresholds_other_than_infinite_are_zero(void **state)
{
    static const int thresholds[] = { 0, -2, INT_MIN };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(thresholds); i++) {
        ptl_handle_md_t mdh = px_bind(px_md(memory, 8, 0, thresholds[i], PTL_EQ_NONE), PTL_RETAIN);

        assert_int_equal(PtlPut(mdh, PX_NO_ACK, px_next, PT, 0, 0, 0, 0), PTL_MD_INVALID);
        assert_int_equal(PtlMDUnlink(mdh), PTL_OK);
    }
}

/* A descriptor that stays is passed over when it is used up, and works again when it is given a threshold. */
static void test_used_up_descriptors_are_skipped_and_can_be_revived(void **state)
{
    unsigned options = PTL_MD_OP_PUT | PTL_MD_EVENT_START_DISABLE;
    struct px_entry first = px_entry(PT, 0, 0, PTL_RETAIN, px_md(memory, 100, options, 2, eq), PTL_RETAIN);
    struct px_entry second =
        px_entry(PT, 0, 0, PTL_RETAIN, px_md(memory + 100, 100, options, PTL_MD_THRESH_INF, eq), PTL_RETAIN);

    (void)state;
    px_barrier();
    for (int i = 0; i < 3; i++)
        put(10, 0);
    for (int i = 0; i < 3; i++)
        assert_int_equal(px_take_kind(eq, PTL_EVENT_PUT_END).md_handle, i < 2 ? first.mdh : second.mdh);
    assert_int_equal(threshold_of(first.mdh), 0);
    first.md.threshold = 1;
    assert_int_equal(PtlMDUpdate(first.mdh, NULL, &first.md, PTL_EQ_NONE), PTL_OK);
    px_settle();
    put(10, 0);
    put(10, 0);
    assert_int_equal(px_take_kind(eq, PTL_EVENT_PUT_END).md_handle, first.mdh);
    assert_int_equal(px_take_kind(eq, PTL_EVENT_PUT_END).md_handle, second.mdh);
    px_settle();
    assert_int_equal(PtlMEUnlink(first.me), PTL_OK);
    assert_int_equal(PtlMEUnlink(second.me), PTL_OK);
}

/* Put and acknowledgement, put and reply and so on, on one descriptor. */
static void test_all_operations_count_on_one_descriptor(void **state)
{
    ptl_handle_md_t mdh = px_bind(px_md(memory, 16, PTL_MD_EVENT_START_DISABLE, 20, local_eq), PTL_RETAIN);
    struct px_entry e = px_entry(
        PT, 5, 0, PTL_RETAIN,
        px_md(memory + 64, 16, PTL_MD_OP_PUT | PTL_MD_OP_GET | PTL_MD_MANAGE_REMOTE, 10, PTL_EQ_NONE), PTL_RETAIN);

    (void)state;
    px_barrier();
    assert_int_equal(PtlPut(mdh, PTL_ACK_REQ, px_next, PT, 0, 5, 0, 0), PTL_OK); /* 2 */
    assert_int_equal(PtlPut(mdh, PX_NO_ACK, px_next, PT, 0, 5, 0, 0), PTL_OK);   /* 1 */
    assert_int_equal(PtlGet(mdh, px_next, PT, 0, 5, 0), PTL_OK);                 /* CRAY 2, REF 1 */
    assert_int_equal(PtlGetPut(mdh, mdh, px_next, PT, 0, 5, 0, 0), PTL_OK);      /* 2 */
    for (int i = 0; i < 6 + PX_CRAY; i++)
        px_take(local_eq);
    px_settle();
    assert_int_equal(threshold_of(mdh), 20 - 6 - PX_CRAY);
    assert_int_equal(threshold_of(e.mdh), 10 - 4);
    assert_int_equal(PtlMDUnlink(mdh), PTL_OK);
    assert_int_equal(PtlMEUnlink(e.me), PTL_OK);
}

/* ---- automatic unlinking ---- */

/* The UNLINK event: everything of the event that caused it. */
/* events: auto-unlink by puts: PUT_START, PUT_END, UNLINK */
static void test_the_last_operation_unlinks(void **state)
{
    struct px_entry e =
        px_entry(PT, 0, 0, PTL_UNLINK, px_md(memory, 100, PTL_MD_OP_PUT | PX_UNLINK, 2, eq), PTL_UNLINK);
    struct px_entry behind = px_entry(
        PT, 0, 0, PTL_RETAIN, px_md(memory, 100, PTL_MD_OP_PUT | PTL_MD_EVENT_START_DISABLE, -1, eq), PTL_RETAIN);
    ptl_event_t end, event;

    (void)state;
    px_barrier();
    put(10, 1);
    px_expect_both(eq, (struct px_want){ PTL_EVENT_PUT_START, px_previous, PT, 0, 10, 10, 0, 1, e.mdh, e.md, 2 });
    put(20, 2);
    end =
        px_expect_both(eq, (struct px_want){ PTL_EVENT_PUT_START, px_previous, PT, 0, 20, 20, 10, 2, e.mdh, e.md, 1 });
    event = px_take(eq);
    px_expect(&event, &(struct px_want){ PTL_EVENT_UNLINK, px_previous, PT, 0, 20, 20, 10, 2, e.mdh, e.md, 1 });
    assert_int_equal(event.link, end.link);
    assert_int_equal(event.sequence, end.sequence + 1);
    assert_int_equal(PtlMDUnlink(e.mdh), PTL_MD_INVALID);
    assert_int_equal(PtlMEUnlink(e.me), PTL_ME_INVALID);
    put(5, 3);
    assert_int_equal(px_take_kind(eq, PTL_EVENT_PUT_END).md_handle, behind.mdh);
    px_settle();
    assert_int_equal(PtlMEUnlink(behind.me), PTL_OK);
}

/* An entry that is retained stays in its place, empty. */
static void test_a_retained_entry_outlives_its_descriptor(void **state)
{
    struct px_entry e =
        px_entry(PT, 0, 0, PTL_RETAIN,
                 px_md(memory, 100, PTL_MD_OP_PUT | PTL_MD_EVENT_START_DISABLE | PX_UNLINK, 1, eq), PTL_UNLINK);
    ptl_handle_md_t again;

    (void)state;
    px_barrier();
    for (int i = 0; i < 3; i++) {
        put(10, 0);
        px_take_kind(eq, PTL_EVENT_PUT_END);
        px_take_kind(eq, PTL_EVENT_UNLINK);
        px_settle();
        assert_int_equal(PtlMDAttach(e.me, e.md, PTL_UNLINK, &again), PTL_OK);
        assert_int_not_equal(again, e.mdh);
        px_barrier();
    }
    assert_int_equal(PtlMEUnlink(e.me), PTL_OK);
    assert_int_equal(PtlMDUnlink(again), PTL_MD_INVALID);
}

/* events: auto-unlink of a put's source: SEND_START, SEND_END, ACK, UNLINK */
/* events: auto-unlink of a get's destination: SEND_START, SEND_END, REPLY_START, REPLY_END, UNLINK */
/* events: auto-unlink by gets: GET_START, GET_END, UNLINK */
static void test_local_descriptors_unlink_too(void **state)
{
    const unsigned options = PTL_MD_OP_PUT | PTL_MD_OP_GET | PTL_MD_MANAGE_REMOTE | PX_UNLINK;
    struct px_entry e = px_entry(PT, 1, 0, PTL_UNLINK, px_md(memory, 100, options, 2, eq), PTL_UNLINK);
    ptl_handle_md_t sent = px_bind(px_md(bytes, 100, PX_UNLINK, 2, local_eq), PTL_UNLINK), got;
    ptl_event_t event;

    (void)state;
    px_barrier();
    assert_int_equal(PtlPut(sent, PTL_ACK_REQ, px_next, PT, 0, 1, 0, 0), PTL_OK);
    px_take_kind(local_eq, PTL_EVENT_SEND_START);
    px_take_kind(local_eq, PTL_EVENT_SEND_END);
    px_take_kind(local_eq, PTL_EVENT_ACK);
    event = px_take_kind(local_eq, PTL_EVENT_UNLINK);
    assert_int_equal(event.md_handle, sent);
    assert_int_equal(event.initiator.pid, px_next.pid);
    assert_int_equal(PtlMDUnlink(sent), PTL_MD_INVALID);

    got = px_bind(px_md(bytes, 100, PX_UNLINK, PX_CRAY ? 2 : 1, local_eq), PTL_UNLINK);
    assert_int_equal(PtlGet(got, px_next, PT, 0, 1, 0), PTL_OK);
    if (PX_CRAY) {
        px_take_kind(local_eq, PTL_EVENT_SEND_START);
        px_take_kind(local_eq, PTL_EVENT_SEND_END);
    }
    px_take_kind(local_eq, PTL_EVENT_REPLY_START);
    px_take_kind(local_eq, PTL_EVENT_REPLY_END);
    assert_int_equal(px_take_kind(local_eq, PTL_EVENT_UNLINK).md_handle, got);
    assert_int_equal(PtlMDUnlink(got), PTL_MD_INVALID);

    px_take_kind(eq, PTL_EVENT_PUT_START);
    px_take_kind(eq, PTL_EVENT_PUT_END);
    px_take_kind(eq, PTL_EVENT_GET_START);
    px_take_kind(eq, PTL_EVENT_GET_END);
    px_take_kind(eq, PTL_EVENT_UNLINK);
    assert_int_equal(PtlMEUnlink(e.me), PTL_ME_INVALID);
}

/* events: auto-unlink by getputs: GETPUT_START, GETPUT_END, UNLINK */
/* events: auto-unlink of a getput's descriptors: SEND_START, SEND_END, REPLY_START, REPLY_END, UNLINK */
static void test_swaps_unlink_on_both_sides(void **state)
{
    struct px_entry e =
        px_entry(PT, 1, 0, PTL_UNLINK, px_md(memory, 8, PTL_MD_OP_PUT | PTL_MD_OP_GET | PX_UNLINK, 1, eq), PTL_UNLINK);
    ptl_handle_md_t put_md = px_bind(px_md(bytes, 8, PX_UNLINK, 1, local_eq), PTL_UNLINK);
    ptl_handle_md_t get_md = px_bind(px_md(bytes + 8, 8, PX_UNLINK, 1, local_eq), PTL_UNLINK);

    (void)state;
    px_barrier();
    assert_int_equal(PtlGetPut(get_md, put_md, px_next, PT, 0, 1, 0, 0), PTL_OK);
    px_take_kind(local_eq, PTL_EVENT_SEND_START);
    px_take_kind(local_eq, PTL_EVENT_SEND_END);
    assert_int_equal(px_take_kind(local_eq, PTL_EVENT_UNLINK).md_handle, put_md);
    px_take_kind(local_eq, PTL_EVENT_REPLY_START);
    px_take_kind(local_eq, PTL_EVENT_REPLY_END);
    assert_int_equal(px_take_kind(local_eq, PTL_EVENT_UNLINK).md_handle, get_md);
    px_take_kind(eq, PTL_EVENT_GETPUT_START);
    px_take_kind(eq, PTL_EVENT_GETPUT_END);
    px_take_kind(eq, PTL_EVENT_UNLINK);
    assert_int_equal(PtlMDUnlink(put_md), PTL_MD_INVALID);
    assert_int_equal(PtlMDUnlink(get_md), PTL_MD_INVALID);
    assert_int_equal(PtlMEUnlink(e.me), PTL_ME_INVALID);
}

/* A put that waits for its acknowledgement is not unlinked by the sending. */
static void test_a_source_waits_for_its_acknowledgement(void **state)
{
    ptl_handle_md_t mdh = px_bind(px_md(bytes, 100, PTL_MD_EVENT_START_DISABLE | PX_UNLINK, 2, local_eq), PTL_UNLINK);

    (void)state;
    assert_int_equal(PtlPut(mdh, PTL_ACK_REQ, px_next, PT, 0, 99, 0, 0), PTL_OK); /* dropped there */
    px_take_kind(local_eq, PTL_EVENT_SEND_END);
    px_settle();
    px_nothing(local_eq);
    assert_int_equal(threshold_of(mdh), 1);
    assert_int_equal(PtlMDUnlink(mdh), PTL_OK); /* waiting is not pending */
}

/* Who has the UNLINK event, dialect by dialect. */
/* events: auto-unlink without the option, REF: UNLINK */
/* events: auto-unlink without the option, CRAY: no UNLINK */
/* events: auto-unlink + both disabled, REF: no PUT_START, no PUT_END, no UNLINK */
/* events: auto-unlink + both disabled + option, CRAY: no PUT_START, no PUT_END, UNLINK */
static void test_who_gets_an_unlink_event(void **state)
{
    unsigned both = PTL_MD_EVENT_START_DISABLE | PTL_MD_EVENT_END_DISABLE;
    const struct {
        unsigned options;
        bool is_told;
    } cases[] = {
        { 0, !PX_CRAY },
        { PTL_MD_EVENT_START_DISABLE, !PX_CRAY },
        { PTL_MD_EVENT_END_DISABLE, !PX_CRAY },
        { both, false },
        { PX_UNLINK, true },
        { both | PX_UNLINK, PX_CRAY },
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct px_entry e =
            px_entry(PT, 0, 0, PTL_UNLINK, px_md(memory, 100, PTL_MD_OP_PUT | cases[i].options, 1, eq), PTL_UNLINK);

        px_barrier();
        put(10, 0);
        px_settle();
        if (!(cases[i].options & PTL_MD_EVENT_START_DISABLE))
            px_take_kind(eq, PTL_EVENT_PUT_START);
        if (!(cases[i].options & PTL_MD_EVENT_END_DISABLE))
            px_take_kind(eq, PTL_EVENT_PUT_END);
        if (cases[i].is_told)
            px_take_kind(eq, PTL_EVENT_UNLINK);
        px_nothing(eq);
        assert_int_equal(PtlMDUnlink(e.mdh), PTL_MD_INVALID);
        assert_int_equal(PtlMEUnlink(e.me), PTL_ME_INVALID);
    }
}

#if PX_CRAY
/* events: unlink by a call + MANUAL_UNLINK_ENABLE: UNLINK */
static void test_unlinking_by_hand_can_be_told(void **state)
{
    unsigned options = PTL_MD_OP_PUT | PTL_MD_EVENT_MANUAL_UNLINK_ENABLE;
    struct px_entry e = px_entry(PT, 0, 0, PTL_RETAIN, px_md(memory, 100, options, 1, eq), PTL_RETAIN);
    ptl_handle_md_t bound = px_bind(px_md(memory, 100, options, 1, eq), PTL_RETAIN), plain;
    ptl_event_t event;

    (void)state;
    assert_int_equal(PtlMDUnlink(bound), PTL_OK);
    event = px_take_kind(eq, PTL_EVENT_UNLINK);
    assert_int_equal(event.md_handle, bound);
    assert_ptr_equal(event.md.start, memory);
    assert_int_equal(PtlMEUnlink(e.me), PTL_OK);
    event = px_take_kind(eq, PTL_EVENT_UNLINK);
    assert_int_equal(event.md_handle, e.mdh);
    assert_ptr_equal(event.md.user_ptr, e.md.user_ptr);
    /* Automatic unlinking is another option's. */
    e = px_entry(PT, 0, 0, PTL_UNLINK, px_md(memory, 100, options | PTL_MD_EVENT_START_DISABLE, 1, eq), PTL_UNLINK);
    px_barrier();
    put(10, 0);
    px_take_kind(eq, PTL_EVENT_PUT_END);
    px_settle();
    px_nothing(eq);
    plain = px_bind(px_md(memory, 100, PTL_MD_EVENT_AUTO_UNLINK_ENABLE, 1, eq), PTL_RETAIN);
    assert_int_equal(PtlMDUnlink(plain), PTL_OK);
    px_nothing(eq);
}

/* PTL_MD_FLAG_AUTO_UNLINK is PTL_UNLINK in another place. */
static void test_the_flag_among_the_options_unlinks(void **state)
{
    struct px_entry e =
        px_entry(PT, 0, 0, PTL_UNLINK,
                 px_md(memory, 100, PTL_MD_OP_PUT | PTL_MD_FLAG_AUTO_UNLINK | PTL_MD_EVENT_AUTO_UNLINK_ENABLE, 1, eq),
                 PTL_RETAIN);

    (void)state;
    px_barrier();
    put(10, 0);
    px_take_kind(eq, PTL_EVENT_PUT_START);
    px_take_kind(eq, PTL_EVENT_PUT_END);
    px_take_kind(eq, PTL_EVENT_UNLINK);
    assert_int_equal(PtlMEUnlink(e.me), PTL_ME_INVALID);
}

/* The offset of the next message is a multiple of 8. */
static void test_offsets_can_be_kept_aligned(void **state)
{
    struct px_entry e = px_entry(
        PT, 0, 0, PTL_RETAIN,
        px_md(memory, 1000, PTL_MD_OP_PUT | PTL_MD_LOCAL_ALIGN8 | PTL_MD_EVENT_START_DISABLE, -1, eq), PTL_RETAIN);
    static const ptl_size_t lengths[] = { 1, 8, 13, 0, 16 }, offsets[] = { 0, 8, 16, 32, 32 };

    (void)state;
    px_barrier();
    for (size_t i = 0; i < COUNT_OF(lengths); i++) {
        put(lengths[i], 0);
        assert_true(px_take_kind(eq, PTL_EVENT_PUT_END).offset == offsets[i]);
    }
    px_settle();
    assert_int_equal(PtlMEUnlink(e.me), PTL_OK);
}
#endif

/* By the call that takes it out, nothing is said. */
/* events: unlink by a call: no UNLINK */
static void test_unlinking_by_hand_is_silent(void **state)
{
    struct px_entry e =
        px_entry(PT, 0, 0, PTL_UNLINK, px_md(memory, 100, PTL_MD_OP_PUT | PX_UNLINK, 1, eq), PTL_UNLINK);
    ptl_handle_md_t bound = px_bind(px_md(memory, 100, PX_UNLINK, 1, eq), PTL_UNLINK);

    (void)state;
    assert_int_equal(PtlMDUnlink(bound), PTL_OK);
    assert_int_equal(PtlMDUnlink(e.mdh), PTL_OK);
    assert_int_equal(PtlMEUnlink(e.me), PTL_ME_INVALID);
    px_nothing(eq);
}

/* Zero by the program's own hand: inactive, not unlinked, even with PTL_UNLINK. */
static void test_a_threshold_set_to_zero_does_not_unlink(void **state)
{
    struct px_entry e =
        px_entry(PT, 0, 0, PTL_UNLINK,
                 px_md(memory, 100, PTL_MD_OP_PUT | PTL_MD_EVENT_START_DISABLE | PX_UNLINK, 0, eq), PTL_UNLINK);

    (void)state;
    px_barrier();
    put(10, 1);
    px_settle(); /* dropped */
    px_nothing(eq);
    e.md.threshold = 1;
    assert_int_equal(PtlMDUpdate(e.mdh, NULL, &e.md, PTL_EQ_NONE), PTL_OK);
    e.md.threshold = 0;
    assert_int_equal(PtlMDUpdate(e.mdh, NULL, &e.md, PTL_EQ_NONE), PTL_OK);
    assert_int_equal(threshold_of(e.mdh), 0);
    e.md.threshold = 1;
    assert_int_equal(PtlMDUpdate(e.mdh, NULL, &e.md, PTL_EQ_NONE), PTL_OK);
    px_settle();
    put(10, 2);
    assert_true(px_take_kind(eq, PTL_EVENT_PUT_END).hdr_data == 2);
    px_take_kind(eq, PTL_EVENT_UNLINK);
    assert_int_equal(PtlMEUnlink(e.me), PTL_ME_INVALID);
}

/* ---- the size rule ---- */

/* Full when less than max_size is left, however many operations the threshold still allows. */
/* events: auto-unlink by max_size: PUT_START, PUT_END, UNLINK */
static void test_too_little_room_ends_a_descriptor(void **state)
{
    ptl_md_t md = px_md(memory, 100, PTL_MD_OP_PUT | PTL_MD_MAX_SIZE | PX_UNLINK, PTL_MD_THRESH_INF, eq);
    struct px_entry e;

    (void)state;
    md.max_size = 30;
    e = px_entry(PT, 0, 0, PTL_UNLINK, md, PTL_UNLINK);
    px_barrier();
    put(30, 0);
    px_expect_both(eq, (struct px_want){ PTL_EVENT_PUT_START, px_previous, PT, 0, 30, 30, 0, 0, e.mdh, e.md, -1 });
    put(10, 1);
    px_expect_both(eq, (struct px_want){ PTL_EVENT_PUT_START, px_previous, PT, 0, 10, 10, 30, 1, e.mdh, e.md, -1 });
    put(30, 2); /* 30 left: not less */
    px_expect_both(eq, (struct px_want){ PTL_EVENT_PUT_START, px_previous, PT, 0, 30, 30, 40, 2, e.mdh, e.md, -1 });
    put(1, 3);
    px_take_kind(eq, PTL_EVENT_PUT_START);
    px_take_kind(eq, PTL_EVENT_PUT_END);
    px_take_kind(eq, PTL_EVENT_UNLINK);
    put(1, 4);
    px_settle();
    px_nothing(eq);
    assert_int_equal(PtlMEUnlink(e.me), PTL_ME_INVALID);
}

/*
 * Longer requests are refused; with TRUNCATE they are taken, and cut only by the end. With MANAGE_REMOTE the rule is
 * void.
 */
static void test_longer_requests_than_max_size(void **state)
{
    ptl_md_t md = px_md(memory, 1000, PTL_MD_OP_PUT | PTL_MD_MAX_SIZE | PTL_MD_EVENT_START_DISABLE, -1, eq);
    struct px_entry e[3];

    (void)state;
    md.max_size = 30;
    e[0] = px_entry(PT, 0, 0, PTL_RETAIN, md, PTL_RETAIN);
    md.options |= PTL_MD_MANAGE_REMOTE;
    md.length = 90;
    e[1] = px_entry(PT, 0, 0, PTL_RETAIN, md, PTL_RETAIN);
    md.options = (md.options & ~(unsigned)PTL_MD_MANAGE_REMOTE) | PTL_MD_TRUNCATE;
    md.length = 1000;
    e[2] = px_entry(PT, 0, 0, PTL_RETAIN, md, PTL_RETAIN);
    px_barrier();
    put(31, 0);
    put(30, 0);
    put(91, 0);
    put(85, 0);
    assert_int_equal(px_take_kind(eq, PTL_EVENT_PUT_END).md_handle, e[1].mdh);
    assert_int_equal(px_take_kind(eq, PTL_EVENT_PUT_END).md_handle, e[0].mdh);
    assert_int_equal(px_take_kind(eq, PTL_EVENT_PUT_END).md_handle, e[2].mdh);
    assert_int_equal(px_take_kind(eq, PTL_EVENT_PUT_END).md_handle, e[1].mdh); /* 5 left, still there */
    px_settle();
    for (int i = 0; i < 3; i++)
        assert_int_equal(PtlMEUnlink(e[i].me), PTL_OK);
}

/* ---- ptlMDUpdate() ---- */

static void test_looking_at_a_descriptor(void **state)
{
    ptl_md_iovec_t parts[3] = { { memory, 10 }, { memory + 100, 20 }, { memory + 300, 30 } }, seen[2];
    ptl_md_t md = px_md(parts, 3, PTL_MD_OP_PUT | PTL_MD_IOVEC, 7, eq);
    struct px_entry e = px_entry(PT, 0, 0, PTL_RETAIN, md, PTL_RETAIN);
    ptl_md_t now = { .start = seen, .length = 2, .options = PTL_MD_IOVEC };

    (void)state;
    px_barrier();
    put(15, 0);
    px_take_kind(eq, PTL_EVENT_PUT_START);
    px_take_kind(eq, PTL_EVENT_PUT_END);
    px_settle();
    memset(seen, 0, sizeof(seen));
    assert_int_equal(PtlMDUpdate(e.mdh, &now, NULL, eq), PTL_OK);
    assert_int_equal(now.threshold, 6);
    assert_ptr_equal(now.start, parts);
    assert_true(now.length == 3 && now.max_size == md.max_size && now.options == md.options);
    assert_ptr_equal(now.user_ptr, md.user_ptr);
    assert_int_equal(now.eq_handle, eq);
    assert_ptr_equal(seen[0].iov_base, memory);
    assert_true(seen[0].iov_len == 10 && seen[1].iov_len == 20);
    assert_ptr_equal(seen[1].iov_base, memory + 100);
    /* Unprepared: the rest all the same. */
    now = (ptl_md_t){ 0 };
    assert_int_equal(PtlMDUpdate(e.mdh, &now, NULL, PTL_EQ_NONE), PTL_OK);
    assert_int_equal(now.threshold, 6);
    assert_int_equal(PtlMDUpdate(e.mdh, NULL, NULL, PTL_EQ_NONE), PTL_OK);
    assert_int_equal(PtlMEUnlink(e.me), PTL_OK);
}

static void test_replacing_the_contents(void **state)
{
    struct px_entry e = px_entry(PT, 0, 0, PTL_RETAIN, px_md(memory, 100, PTL_MD_OP_PUT, 3, eq), PTL_RETAIN);
    ptl_md_t new_md = px_md(memory + 500, 60, PTL_MD_OP_PUT | PTL_MD_EVENT_START_DISABLE, 2, local_eq), old = { 0 };

    (void)state;
    px_barrier();
    put(40, 0);
    px_take_kind(eq, PTL_EVENT_PUT_START);
    px_take_kind(eq, PTL_EVENT_PUT_END);
    px_settle();
    assert_int_equal(PtlMDUpdate(e.mdh, &old, &new_md, eq), PTL_OK);
    assert_int_equal(old.threshold, 2);
    assert_ptr_equal(old.start, memory);
    px_barrier();
    put(50, 9);
    {
        ptl_event_t event = px_take_kind(local_eq, PTL_EVENT_PUT_END);

        px_expect(&event, &(struct px_want){ PTL_EVENT_PUT_END, px_previous, PT, 0, 50, 50, 0, 9, e.mdh, new_md, 2 });
    }
    assert_memory_equal(memory + 500, bytes, 50);
    px_settle();
    assert_int_equal(PtlMEUnlink(e.me), PTL_OK);
}

static void test_an_unread_event_prevents_the_update(void **state)
{
    struct px_entry e = px_entry(PT, 0, 0, PTL_RETAIN,
                                 px_md(memory, 100, PTL_MD_OP_PUT | PTL_MD_EVENT_START_DISABLE, -1, eq), PTL_RETAIN);
    ptl_handle_md_t receive = px_bind(px_md(memory + 200, 100, PTL_MD_OP_PUT, 0, local_eq), PTL_RETAIN);
    ptl_md_t active = px_md(memory + 300, 100, PTL_MD_OP_PUT, 1, local_eq), old = { 0 };
    ptl_handle_eq_t always_empty = px_eq(1);

    (void)state;
    px_barrier();
    put(10, 0);
    px_settle();
    /* Another's events count, not the descriptor's own queue. */
    assert_int_equal(PtlMDUpdate(receive, &old, &active, eq), PTL_MD_NO_UPDATE);
    assert_ptr_equal(old.start, memory + 200); /* stored all the same */
    assert_int_equal(threshold_of(receive), 0);
    assert_int_equal(PtlMDUpdate(receive, &old, NULL, eq), PTL_OK); /* only looking */
    px_take_kind(eq, PTL_EVENT_PUT_END);
    assert_int_equal(PtlMDUpdate(receive, NULL, &active, eq), PTL_OK);
    assert_int_equal(threshold_of(receive), 1);
    px_barrier();

    /* Without a queue to test, and with one that never has anything: always. */
    put(10, 0);
    px_settle();
    active.threshold = 4;
    assert_int_equal(PtlMDUpdate(receive, NULL, &active, PTL_EQ_NONE), PTL_OK);
    assert_int_equal(threshold_of(receive), 4);
    active.threshold = 5;
    assert_int_equal(PtlMDUpdate(receive, NULL, &active, always_empty), PTL_OK);
    assert_int_equal(threshold_of(receive), 5);
    assert_int_equal(PtlMDUpdate(receive, NULL, &active, eq), PTL_MD_NO_UPDATE);
    px_take_kind(eq, PTL_EVENT_PUT_END);
    assert_int_equal(PtlMDUpdate(receive, NULL, &active, eq), PTL_OK);

    px_settle();
    assert_int_equal(PtlEQFree(always_empty), PTL_OK);
    assert_int_equal(PtlMDUnlink(receive), PTL_OK);
    assert_int_equal(PtlMEUnlink(e.me), PTL_OK);
}

/*
 * Messages are taken either by what was posted before they came or by the catch-all, whose event then defeats the
 * posting: never by the catch-all behind the back of a posting that was granted.
 */
static void test_no_message_slips_behind_a_granted_update(void **state)
{
    enum { ROUNDS = 200 };
    struct px_entry catcher =
        px_entry(PT, 0, ~0ull, PTL_RETAIN, px_md(memory, 0, PTL_MD_OP_PUT | PTL_MD_TRUNCATE, -1, eq), PTL_RETAIN);
    unsigned n_posted = 0, n_caught = 0;

    (void)state;
    px_barrier();
    for (unsigned i = 0; i < ROUNDS; i++) {
        ptl_md_t md = px_md(memory + 1024, 64, PTL_MD_OP_PUT | PTL_MD_EVENT_START_DISABLE, 0, local_eq);
        bool is_caught = false;
        ptl_handle_me_t me;
        ptl_handle_md_t mdh;
        int rc;

        put(32, i);
        assert_int_equal(PtlMEInsert(catcher.me, px_anybody, 0, 0, PTL_UNLINK, PTL_INS_BEFORE, &me), PTL_OK);
        assert_int_equal(PtlMDAttach(me, md, PTL_UNLINK, &mdh), PTL_OK);
        md.threshold = 1;
        do {
            ptl_event_t event;

            rc = PtlMDUpdate(mdh, NULL, &md, eq);
            if (rc == PTL_MD_NO_UPDATE) { /* there is an event, or there will be one */
                event = px_take(eq);
                assert_true(event.hdr_data == i);
                is_caught = is_caught || event.type == PTL_EVENT_PUT_END;
            }
        } while (rc == PTL_MD_NO_UPDATE && !is_caught);
        if (is_caught) {
            n_caught++;
            assert_int_equal(PtlMDUnlink(mdh), PTL_OK);
            px_nothing(local_eq);
        } else {
            assert_int_equal(rc, PTL_OK);
            n_posted++;
            assert_true(px_take_kind(local_eq, PTL_EVENT_PUT_END).hdr_data == i);
            if (!PX_CRAY)
                px_take_kind(local_eq, PTL_EVENT_UNLINK);
        }
    }
    assert_int_equal(n_posted + n_caught, ROUNDS);
    px_settle();
    assert_int_equal(PtlMEUnlink(catcher.me), PTL_OK);
}

/* ---- memory that comes and goes ---- */

/* A failed transfer is told in END; START says nothing of it. No acknowledgement. */
/* events: put + target memory gone: PUT_START, PUT_END, no ACK */
static void test_memory_that_is_not_there_fails_the_operation(void **state)
{
    void *gone = mmap(NULL, 65536, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ptl_handle_md_t mdh = px_bind(px_md(bytes, 1000, PTL_MD_EVENT_START_DISABLE, 2, local_eq), PTL_RETAIN);
    struct px_entry e;
    ptl_event_t event;

    (void)state;
    assert_ptr_not_equal(gone, MAP_FAILED);
    e = px_entry(PT, 0, 0, PTL_RETAIN, px_md(gone, 65536, PTL_MD_OP_PUT, -1, eq), PTL_RETAIN);
    px_barrier();
    assert_int_equal(PtlPut(mdh, PTL_ACK_REQ, px_next, PT, 0, 0, 0, 0), PTL_OK);
    event = px_take(local_eq);
    assert_int_equal(event.type, PTL_EVENT_SEND_END);
    px_take_kind(eq, PTL_EVENT_PUT_START);
    event = px_take(eq);
    assert_int_equal(event.type, PTL_EVENT_PUT_END);
    assert_int_not_equal(event.ni_fail_type, PTL_NI_OK);
    px_settle();
    px_nothing(local_eq);
    assert_int_equal(PtlMDUnlink(mdh), PTL_OK);
    assert_int_equal(PtlMEUnlink(e.me), PTL_OK);
    assert_int_equal(munmap(gone, 65536), 0);
}

/* An address that was freed and is used again: messages go to what is there now. */
static void test_addresses_are_used_again(void **state)
{
    const size_t length = 65536;
    uint8_t *at = mmap(NULL, length, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    (void)state;
    assert_ptr_not_equal(at, MAP_FAILED);
    for (int round = 0; round < 20; round++) {
        struct px_entry e;

        assert_ptr_equal(mmap(at, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0), at);
        memset(at, 0x11 + round, length);
        e = px_entry(PT, 0, 0, PTL_RETAIN, px_md(at, length, PTL_MD_OP_PUT | PTL_MD_EVENT_START_DISABLE, -1, eq),
                     PTL_RETAIN);
        px_barrier();
        put(round % 2 ? 8 : 1000, 0);
        assert_true(px_take_kind(eq, PTL_EVENT_PUT_END).mlength == (round % 2 ? 8 : 1000));
        assert_memory_equal(at, bytes, round % 2 ? 8 : 1000);
        px_all(at + 1000, 1000, (uint8_t)(0x11 + round));
        px_settle();
        assert_int_equal(PtlMEUnlink(e.me), PTL_OK);
        assert_int_equal(munmap(at, length), 0);
    }
    /* The heap, which grows and shrinks at both ends. */
    for (size_t i = 0; i < 60; i++) {
        size_t n = 1000 + i * 7919 % 300000;
        uint8_t *block = malloc(n);
        struct px_entry e;

        assert_non_null(block);
        e = px_entry(PT, 0, 0, PTL_RETAIN, px_md(block, n, PTL_MD_OP_PUT | PTL_MD_EVENT_START_DISABLE, -1, eq),
                     PTL_RETAIN);
        px_barrier();
        put(900, 0);
        px_take_kind(eq, PTL_EVENT_PUT_END);
        assert_memory_equal(block, bytes, 900);
        px_settle();
        assert_int_equal(PtlMEUnlink(e.me), PTL_OK);
        free(block);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define md_test(name) cmocka_unit_test_setup_teardown(name, open_queues, close_queues)
        md_test(test_contents_that_cannot_be),
        md_test(test_negative_thresholds_other_than_infinite_are_zero),
        md_test(test_used_up_descriptors_are_skipped_and_can_be_revived),
        md_test(test_all_operations_count_on_one_descriptor),
        md_test(test_the_last_operation_unlinks),
        md_test(test_a_retained_entry_outlives_its_descriptor),
        md_test(test_local_descriptors_unlink_too),
        md_test(test_swaps_unlink_on_both_sides),
        md_test(test_a_source_waits_for_its_acknowledgement),
        md_test(test_who_gets_an_unlink_event),
#if PX_CRAY
        md_test(test_unlinking_by_hand_can_be_told),
        md_test(test_the_flag_among_the_options_unlinks),
        md_test(test_offsets_can_be_kept_aligned),
#endif
        md_test(test_unlinking_by_hand_is_silent),
        md_test(test_a_threshold_set_to_zero_does_not_unlink),
        md_test(test_too_little_room_ends_a_descriptor),
        md_test(test_longer_requests_than_max_size),
        md_test(test_looking_at_a_descriptor),
        md_test(test_replacing_the_contents),
        md_test(test_an_unread_event_prevents_the_update),
        md_test(test_no_message_slips_behind_a_granted_update),
        md_test(test_memory_that_is_not_there_fails_the_operation),
        md_test(test_addresses_are_used_again),
    };

    return px_run(tests, NULL);
}
