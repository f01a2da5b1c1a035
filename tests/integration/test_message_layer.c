/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What libportals has for message layers of this project (libportals/src/message_layer.h): puts that are over at once,
 * and inboxes, whose owner matches them, by lists or by a taker of its own. A launched job; on the direct path
 * SHORT_STAYS is set, and a message has to wait for its owner's poll. On the routed path no put is over at once, and
 * all else is the same.
 */
#include "tests/common/portals.h"

#include "emunic/abi/portals.h"
#include "libportals/src/message_layer.h"

#define PT       14
#define MESSAGES 400
#define BYTES    (EMU_PTL_INBOX_BYTES + 32u)

static uint8_t memory[MESSAGES][BYTES];
static uint8_t source[BYTES];

static bool is_direct(void)
{
    return getenv("SHORT_STAYS") != NULL;
}

/* Without events and threshold, as a message layer sends from. */
static ptl_handle_md_t silent(void)
{
    return px_bind(px_md(source, sizeof(source), 0, PTL_MD_THRESH_INF, PTL_EQ_NONE), PTL_RETAIN);
}

static bool put_now(ptl_handle_md_t mdh, ptl_process_id_t to, ptl_match_bits_t bits, ptl_size_t bytes)
{
    const struct p3_message message = { to, PT, bits, bits + 7 };
    bool is_over = false;

    assert_int_equal(p3_put_now(mdh, 0, bytes, &message, &is_over), PTL_OK);
    return is_over;
}

/* As a message layer does: what cannot be left waits until all before it is taken, and takes the usual way. */
static void send(ptl_handle_md_t mdh, ptl_handle_eq_t eq, ptl_match_bits_t bits, ptl_size_t bytes)
{
    ptl_event_t event;

    px_fill(source, bytes, bits);
    while (!put_now(mdh, px_next, bits, bytes)) {
        if (p3_has_taken(px_ni, px_next)) {
            assert_int_equal(PtlPutRegion(mdh, 0, bytes, PX_NO_ACK, px_next, PT, 0, bits, 0, bits + 7), PTL_OK);
            return;
        }
        /* Our own neighbour may be waiting for us in the same way. */
        (void)PtlEQGet(eq, &event);
    }
}

/* Where entries of their own take messages: number `bits` lands at its place. */
static struct px_entry receive(ptl_match_bits_t bits, ptl_handle_eq_t eq)
{
    return px_entry(PT, bits, 0, PTL_UNLINK,
                    px_md(memory[bits], BYTES, PTL_MD_OP_PUT | PTL_MD_EVENT_START_DISABLE, 1, eq), PTL_UNLINK);
}

static void has_come(const ptl_event_t *event, ptl_match_bits_t bits, ptl_size_t bytes)
{
    assert_int_equal(event->match_bits, bits);
    assert_int_equal(event->hdr_data, bits + 7);
    assert_int_equal(event->initiator.nid, px_previous.nid);
    assert_int_equal(event->initiator.pid, px_previous.pid);
    assert_int_equal(event->rlength, bytes);
    assert_int_equal(event->mlength, bytes);
    assert_int_equal(event->ni_fail_type, PTL_NI_OK);
    px_same(memory[bits], bytes, bits);
}

static void test_a_put_is_over_at_once_without_inboxes(void **state)
{
    ptl_handle_eq_t eq = px_eq(8);
    ptl_handle_md_t mdh = silent();
    ptl_event_t event;

    (void)state;
    receive(1, eq);
    px_barrier();
    send(mdh, eq, 1, 8);
    px_barrier();
    if (is_direct())
        px_same(memory[1], 8, 1); /* before any poll */
    event = px_take_kind(eq, PTL_EVENT_PUT_END);
    has_come(&event, 1, 8);
    assert_int_equal(PtlMDUnlink(mdh), PTL_OK);
    assert_int_equal(PtlEQFree(eq), PTL_OK);
}

static void test_a_short_message_waits_for_the_next_poll(void **state)
{
    ptl_handle_eq_t eq = px_eq(8);
    ptl_handle_md_t mdh = silent();
    ptl_event_t event;

    (void)state;
    p3_inboxes_open(px_ni, NULL);
    memset(memory[2], 0, BYTES);
    px_barrier();
    if (is_direct()) {
        px_fill(source, EMU_PTL_INBOX_BYTES, 2);
        assert_true(put_now(mdh, px_next, 2, EMU_PTL_INBOX_BYTES));
        assert_true(!p3_has_taken(px_ni, px_next));
        /* What is too long to be left may not overtake it. */
        assert_true(!put_now(mdh, px_next, 2, EMU_PTL_INBOX_BYTES + 1));
        px_barrier();
        px_all(memory[2], BYTES, 0);
        /* The entry that it meets may come after it. */
        receive(2, eq);
        event = px_take_kind(eq, PTL_EVENT_PUT_END);
        has_come(&event, 2, EMU_PTL_INBOX_BYTES);
        px_barrier();
        assert_true(p3_has_taken(px_ni, px_next));
    }
    assert_int_equal(PtlMDUnlink(mdh), PTL_OK);
    assert_int_equal(PtlEQFree(eq), PTL_OK);
}

static void test_an_inbox_has_an_end(void **state)
{
    ptl_handle_eq_t eq = px_eq(2 * EMU_PTL_INBOX_PLACES);
    ptl_handle_md_t mdh = silent();

    (void)state;
    for (unsigned i = 0; is_direct() && i < EMU_PTL_INBOX_PLACES; i++)
        receive(i, eq);
    px_barrier();
    for (unsigned i = 0; is_direct() && i < EMU_PTL_INBOX_PLACES; i++) {
        px_fill(source, 8, i);
        assert_true(put_now(mdh, px_next, i, 8));
    }
    if (is_direct())
        assert_true(!put_now(mdh, px_next, EMU_PTL_INBOX_PLACES, 8));
    px_barrier();
    for (unsigned i = 0; is_direct() && i < EMU_PTL_INBOX_PLACES; i++) {
        ptl_event_t event = px_take_kind(eq, PTL_EVENT_PUT_END);

        has_come(&event, i, 8);
    }
    px_barrier();
    assert_true(p3_has_taken(px_ni, px_next));
    assert_int_equal(PtlMDUnlink(mdh), PTL_OK);
    assert_int_equal(PtlEQFree(eq), PTL_OK);
}

/* Lengths of which some are left in the inbox and some are not; receives for half of them, the rest is unexpected. */
static void test_all_come_in_order(void **state)
{
    static uint8_t block[MESSAGES * BYTES];
    ptl_handle_eq_t eq = px_eq(2 * MESSAGES);
    ptl_handle_md_t mdh = silent();
    struct px_entry others;

    (void)state;
    others = px_entry(PT, 0, UINT64_MAX, PTL_UNLINK,
                      px_md(block, sizeof(block), PTL_MD_OP_PUT | PTL_MD_EVENT_START_DISABLE, PTL_MD_THRESH_INF, eq),
                      PTL_UNLINK);
    for (unsigned i = 0; i < MESSAGES; i += 2) {
        ptl_handle_me_t me;
        ptl_handle_md_t receive_md;

        assert_int_equal(PtlMEInsert(others.me, px_anybody, i, 0, PTL_UNLINK, PTL_INS_BEFORE, &me), PTL_OK);
        assert_int_equal(PtlMDAttach(me, px_md(memory[i], BYTES, PTL_MD_OP_PUT | PTL_MD_EVENT_START_DISABLE, 1, eq),
                                     PTL_UNLINK, &receive_md),
                         PTL_OK);
    }
    px_barrier();
    for (unsigned i = 0, taken = 0; i < MESSAGES || taken < MESSAGES;) {
        ptl_event_t event;

        if (i < MESSAGES) {
            px_fill(source, i % BYTES, i);
            if (put_now(mdh, px_next, i, i % BYTES)) {
                i++;
            } else if (p3_has_taken(px_ni, px_next)) {
                assert_int_equal(PtlPutRegion(mdh, 0, i % BYTES, PX_NO_ACK, px_next, PT, 0, i, 0, i + 7), PTL_OK);
                i++;
            }
        }
        if (taken < MESSAGES && PtlEQGet(eq, &event) == PTL_OK) {
            if (event.md.start == block)
                memcpy(memory[taken], block + event.offset, event.mlength);
            has_come(&event, taken, taken % BYTES);
            taken++;
        }
    }
    px_settle();
    assert_int_equal(PtlMEUnlink(others.me), PTL_OK);
    assert_int_equal(PtlMDUnlink(mdh), PTL_OK);
    assert_int_equal(PtlEQFree(eq), PTL_OK);
}

/* More senders than there are inboxes. */
static void test_all_may_send_to_one(void **state)
{
    ptl_handle_eq_t eq = px_eq(64);
    ptl_handle_md_t mdh = silent();
    struct px_entry e = { 0 };

    (void)state;
    if (px_rank == 0)
        e = px_entry(PT, 0, UINT64_MAX, PTL_UNLINK,
                     px_md(memory, BYTES, PTL_MD_OP_PUT | PTL_MD_EVENT_START_DISABLE | PTL_MD_MANAGE_REMOTE,
                           PTL_MD_THRESH_INF, eq),
                     PTL_UNLINK);
    px_barrier();
    if (px_rank != 0 && !put_now(mdh, px_id_of(0), (ptl_match_bits_t)px_rank, 8))
        assert_int_equal(PtlPutRegion(mdh, 0, 8, PX_NO_ACK, px_id_of(0), PT, 0, (ptl_match_bits_t)px_rank, 0, 0),
                         PTL_OK);
    for (int i = 1, seen = 0; px_rank == 0 && i < px_size; i++) {
        ptl_event_t event = px_take_kind(eq, PTL_EVENT_PUT_END);

        assert_in_range(event.match_bits, 1, px_size - 1);
        assert_int_equal(seen & 1 << event.match_bits, 0);
        seen |= 1 << event.match_bits;
    }
    px_settle();
    if (px_rank == 0)
        assert_int_equal(PtlMEUnlink(e.me), PTL_OK);
    assert_int_equal(PtlMDUnlink(mdh), PTL_OK);
    assert_int_equal(PtlEQFree(eq), PTL_OK);
}

/* ---- a taker ---- */

#define LEFT_ALONE 1000u /* bits of messages that the taker does not want */

static ptl_match_bits_t taken[MESSAGES];
static unsigned n_taken;
static bool wants_all;

static bool take(const struct emu_short_message *message)
{
    if (message->bits >= LEFT_ALONE && !wants_all)
        return false;
    assert_int_equal(message->nid, px_previous.nid);
    assert_int_equal(message->pid, px_previous.pid);
    assert_int_equal(message->pt, PT);
    assert_int_equal(message->hdr_data, message->bits + 7);
    px_same(message->data, message->length_bytes, message->bits);
    taken[n_taken++] = message->bits;
    return true;
}

static void leave(ptl_handle_md_t mdh, ptl_match_bits_t bits, ptl_size_t bytes)
{
    px_fill(source, bytes, bits);
    assert_true(put_now(mdh, px_next, bits, bytes));
}

static uint64_t n_received(void)
{
    ptl_sr_value_t n;

    assert_int_equal(PtlNIStatus(px_ni, PTL_SR_RECV_COUNT, &n), PTL_OK);
    return n;
}

static void test_a_taker_gets_what_no_entry_takes(void **state)
{
    ptl_handle_eq_t eq = px_eq(8);
    ptl_handle_md_t mdh = silent();
    uint64_t before = n_received();
    ptl_event_t event;

    (void)state;
    p3_inboxes_open(px_ni, take);
    n_taken = 0;
    if (is_direct())
        receive(5, eq);
    px_barrier();
    if (is_direct()) {
        for (ptl_match_bits_t bits = 4; bits <= 7; bits++)
            leave(mdh, bits, 8 * (bits - 4));
        px_barrier();
        assert_int_equal(PtlEQGet(eq, &event), PTL_EQ_EMPTY); /* a poll takes none */
        assert_int_equal(p3_inboxes_take(px_ni, eq, true), 4);
        assert_int_equal(n_taken, 3);
        assert_int_equal(taken[0], 4);
        assert_int_equal(taken[1], 6);
        assert_int_equal(taken[2], 7);
        event = px_take_kind(eq, PTL_EVENT_PUT_END);
        has_come(&event, 5, 8);
        assert_int_equal(n_received() - before, 4);
        px_barrier();
        assert_true(p3_has_taken(px_ni, px_next));
    }
    assert_int_equal(PtlMDUnlink(mdh), PTL_OK);
    assert_int_equal(PtlEQFree(eq), PTL_OK);
}

static void test_what_a_taker_leaves_stays_in_order(void **state)
{
    ptl_handle_eq_t eq = px_eq(8);
    ptl_handle_md_t mdh = silent();

    (void)state;
    n_taken = 0;
    wants_all = false;
    px_barrier();
    if (is_direct()) {
        leave(mdh, 1, 8);
        leave(mdh, LEFT_ALONE, 96);
        leave(mdh, 2, 8);
        px_barrier();
        assert_int_equal(p3_inboxes_take(px_ni, eq, false), 1);
        assert_int_equal(p3_inboxes_take(px_ni, eq, false), 0);
        assert_int_equal(n_taken, 1);
        px_barrier();
        assert_true(!p3_has_taken(px_ni, px_next));
        px_barrier();
        wants_all = true;
        assert_int_equal(p3_inboxes_take(px_ni, eq, false), 2);
        assert_int_equal(taken[1], LEFT_ALONE);
        assert_int_equal(taken[2], 2);
        px_barrier();
        assert_true(p3_has_taken(px_ni, px_next));
    }
    assert_int_equal(PtlMDUnlink(mdh), PTL_OK);
    assert_int_equal(PtlEQFree(eq), PTL_OK);
}

static void test_nothing_is_handed_over_before_events_are_taken(void **state)
{
    ptl_handle_eq_t eq = px_eq(8);
    ptl_handle_md_t mdh = silent();
    ptl_event_t event;

    (void)state;
    n_taken = 0;
    receive(8, eq);
    px_barrier();
    px_fill(source, BYTES, 8);
    assert_int_equal(PtlPutRegion(mdh, 0, BYTES, PX_NO_ACK, px_next, PT, 0, 8, 0, 8 + 7), PTL_OK);
    px_settle();
    if (is_direct()) {
        leave(mdh, 9, 8);
        px_barrier();
        assert_int_equal(p3_inboxes_take(px_ni, eq, false), 0);
    }
    event = px_take_kind(eq, PTL_EVENT_PUT_END);
    has_come(&event, 8, BYTES);
    if (is_direct()) {
        assert_int_equal(p3_inboxes_take(px_ni, eq, false), 1);
        assert_int_equal(taken[0], 9);
    }
    assert_int_equal(PtlMDUnlink(mdh), PTL_OK);
    assert_int_equal(PtlEQFree(eq), PTL_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_put_is_over_at_once_without_inboxes),
        cmocka_unit_test(test_a_short_message_waits_for_the_next_poll),
        cmocka_unit_test(test_an_inbox_has_an_end),
        cmocka_unit_test(test_all_come_in_order),
        cmocka_unit_test(test_all_may_send_to_one),
        cmocka_unit_test(test_a_taker_gets_what_no_entry_takes),
        cmocka_unit_test(test_what_a_taker_leaves_stays_in_order),
        cmocka_unit_test(test_nothing_is_handed_over_before_events_are_taken),
    };

    return px_run(tests, NULL);
}
