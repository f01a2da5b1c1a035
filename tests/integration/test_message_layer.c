/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What libportals has for message layers of this project (libportals/src/message_layer.h): puts that are over at once,
 * inboxes, whose owner matches them, by lists or by a taker of its own, and exposed memory. A launched job; on the
 * direct path SHORT_STAYS is set, and a message has to wait for its owner's poll. On the routed path no put is over at
 * once, and all else is the same.
 */
#include "tests/common/portals.h"

#include <gni_pub.h>
#include <sys/mman.h>

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

static bool leave_on(struct p3_way *way, ptl_match_bits_t bits, ptl_size_t bytes)
{
    const struct p3_message message = { px_next, PT, bits, bits + 7 };

    px_fill(source, bytes, bits);
    return p3_way_leave(way, source, bytes, &message);
}

/* In order with those of puts, until the inbox is full. */
static void test_a_way_leaves_messages_among_others(void **state)
{
    struct p3_way *way = p3_way_open(px_ni, px_next);
    ptl_handle_eq_t eq = px_eq(8);
    ptl_handle_md_t mdh = silent();
    ptl_match_bits_t n = 0;

    (void)state;
    assert_non_null(way);
    assert_null(p3_way_open(px_ni + 1, px_next));
    n_taken = 0;
    wants_all = true;
    px_barrier();
    assert_true(!leave_on(way, 1, P3_SHORT_BYTES + 1));
    if (is_direct()) {
        for (; n < 6; n++) {
            if (n % 2 == 0)
                assert_true(leave_on(way, n, 8 * n));
            else
                leave(mdh, n, 8 * n);
        }
        while (leave_on(way, n, n % (P3_SHORT_BYTES + 1)))
            n++;
        assert_int_equal(n, EMU_PTL_INBOX_PLACES);
        px_barrier();
        assert_int_equal(p3_inboxes_take(px_ni, eq, false), n);
        for (ptl_match_bits_t i = 0; i < n; i++)
            assert_int_equal(taken[i], i);
        px_barrier();
        assert_true(leave_on(way, 1, 1));
        px_barrier();
        assert_int_equal(p3_inboxes_take(px_ni, eq, false), 1);
    } else {
        assert_true(!leave_on(way, 1, 1));
    }
    px_barrier();
    p3_way_close(way);
    assert_int_equal(PtlMDUnlink(mdh), PTL_OK);
    assert_int_equal(PtlEQFree(eq), PTL_OK);
}

/* ---- exposed memory ---- */

#define ROOM (1u << 20)

static void *pages(void)
{
    void *room = mmap(NULL, ROOM, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

    assert_true(room != MAP_FAILED);
    return room;
}

/* What the next rank has exposed, and where it has it. All ranks. */
static struct p3_exposed exchange(const struct p3_exposed *mine, const void *place, uint64_t *address_out)
{
    uint64_t words[64], addresses[64];
    int next = (px_rank + 1) % px_size;

    px_exchange((uint64_t)mine->nid << 32 | (uint64_t)mine->domain << 16 | mine->generation, words);
    px_exchange((uint64_t)(uintptr_t)place, addresses);
    *address_out = addresses[next];
    return (struct p3_exposed){ (ptl_nid_t)(words[next] >> 32), (uint16_t)(words[next] >> 16), (uint16_t)words[next] };
}

static void test_exposed_memory_is_put_to_and_got_from(void **state)
{
    static const ptl_size_t lengths[] = { 1, 8, 64, 100, 4097, P3_REACH_BYTES };
    uint8_t *exposed_memory = pages(), *in = pages(), *out = pages();
    struct p3_exposed exposed, theirs;
    struct p3_reach *reach;
    uint64_t address;

    (void)state;
    assert_true(p3_expose(px_ni, exposed_memory, ROOM, &exposed));
    theirs = exchange(&exposed, exposed_memory, &address);
    reach = p3_reach_open(px_ni, &theirs);
    assert_non_null(reach);
    for (unsigned i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
        px_fill(out, lengths[i], (uint64_t)px_rank * 100 + i);
        assert_int_equal(p3_reach_put(reach, address + i, out, lengths[i]), is_direct());
        memset(in, 0, ROOM);
        assert_int_equal(p3_reach_get(reach, address + i, in, lengths[i]), is_direct());
        if (is_direct())
            px_same(in, lengths[i], (uint64_t)px_rank * 100 + i);
        px_barrier();
        if (is_direct())
            px_same(exposed_memory + i, lengths[i], (uint64_t)((px_rank + px_size - 1) % px_size) * 100 + i);
        px_barrier();
    }
    assert_true(!p3_reach_put(reach, address, out, P3_REACH_BYTES + 1));
    p3_reach_close(reach);
    assert_null(p3_reach_open(px_ni + 1, &theirs));
}

/* What lies behind the memory's region, and what was given back since, is out of reach. */
static void test_what_is_not_exposed_is_not_reached(void **state)
{
    struct p3_exposed exposed, theirs;
    uint8_t *exposed_memory = pages();
    struct p3_reach *reach;
    uint64_t address;

    (void)state;
    assert_true(p3_expose(px_ni, exposed_memory, ROOM, &exposed));
    theirs = exchange(&exposed, exposed_memory, &address);
    reach = p3_reach_open(px_ni, &theirs);
    assert_true(!p3_reach_put(reach, address + (64u << 20), source, 8));
    assert_true(!p3_reach_get(reach, 4096, source, 8));
    p3_reach_close(reach);
    theirs.generation ^= 1;
    reach = p3_reach_open(px_ni, &theirs);
    assert_true(!p3_reach_put(reach, address, source, 8));
    p3_reach_close(reach);
    px_barrier();
}

/* Others write it by system calls, for all that we know: no page may move meanwhile. Not what peers have mapped. */
static void test_private_registrations_of_another_port_keep_memory_where_it_is(void **state)
{
    uint32_t ptag = (uint32_t)strtoul(getenv("PMI_GNI_PTAG"), NULL, 10);
    uint32_t cookie = (uint32_t)strtoul(getenv("PMI_GNI_COOKIE"), NULL, 10);
    uint8_t on_stack[64], *mapped = pages();
    struct p3_exposed exposed;
    gni_mem_handle_t handle, mapped_handle;
    gni_nic_handle_t nic;
    gni_cdm_handle_t cdm;
    uint32_t address;

    (void)state;
    assert_int_equal(GNI_CdmCreate((uint32_t)px_rank + 7000, (uint8_t)ptag, cookie, 0, &cdm), GNI_RC_SUCCESS);
    assert_int_equal(GNI_CdmAttach(cdm, 0, &address, &nic), GNI_RC_SUCCESS);
    assert_int_equal(
        GNI_MemRegister(nic, (uint64_t)(uintptr_t)mapped, ROOM, NULL, GNI_MEM_READWRITE, (uint32_t)-1, &mapped_handle),
        GNI_RC_SUCCESS);
    assert_true(p3_expose(px_ni, pages(), ROOM, &exposed));
    assert_int_equal(GNI_MemRegister(nic, (uint64_t)(uintptr_t)on_stack, sizeof(on_stack), NULL, GNI_MEM_READWRITE,
                                     (uint32_t)-1, &handle),
                     GNI_RC_SUCCESS);
    assert_true(!p3_expose(px_ni, pages(), ROOM, &exposed));
    assert_int_equal(GNI_MemDeregister(nic, &handle), GNI_RC_SUCCESS);
    assert_int_equal(GNI_MemDeregister(nic, &mapped_handle), GNI_RC_SUCCESS);
    assert_int_equal(GNI_CdmDestroy(cdm), GNI_RC_SUCCESS);
    assert_true(p3_expose(px_ni, pages(), ROOM, &exposed));
    px_barrier();
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
        cmocka_unit_test(test_a_way_leaves_messages_among_others),
        cmocka_unit_test(test_exposed_memory_is_put_to_and_got_from),
        cmocka_unit_test(test_what_is_not_exposed_is_not_reached),
        cmocka_unit_test(test_private_registrations_of_another_port_keep_memory_where_it_is),
    };

    return px_run(tests, NULL);
}
