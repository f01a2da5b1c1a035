/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Requests that nobody takes: each reason, what the initiator sees, what the target counts. Access control. Simulated
 * node failures. The reasons D1 to D8 are those of the specification's section 1.9.
 */
#include "tests/common/portals.h"

#define PT    11
#define BYTES 24

static ptl_handle_eq_t eq;
static ptl_handle_md_t source;
static uint8_t memory[64], bytes[64];

static int open_source(void **state)
{
    (void)state;
    eq = px_eq(64);
    source = px_bind(px_md(bytes, BYTES, PTL_MD_EVENT_START_DISABLE, PTL_MD_THRESH_INF, eq), PTL_RETAIN);
    px_settle();
    return 0;
}

static int close_source(void **state)
{
    (void)state;
    px_settle();
    px_nothing(eq);
    assert_int_equal(PtlMDUnlink(source), PTL_OK);
    assert_int_equal(PtlEQFree(eq), PTL_OK);
    return 0;
}

/* A put, a get and a swap, all dropped: SEND events at most, three drops at the previous rank's. */
static void all_are_dropped(ptl_pt_index_t pt, ptl_ac_index_t ac, ptl_match_bits_t bits)
{
    ptl_sr_value_t before = px_register(PTL_SR_DROP_COUNT), length = px_register(PTL_SR_DROP_LENGTH);

    px_barrier();
    assert_int_equal(PtlPut(source, PTL_ACK_REQ, px_next, pt, ac, bits, 0, 0), PTL_OK);
    assert_int_equal(PtlGet(source, px_next, pt, ac, bits, 0), PTL_OK);
    assert_int_equal(PtlGetPut(source, source, px_next, pt, ac, bits, 0, 0), PTL_OK);
    px_settle();
    for (int i = 0; i < 2 + PX_CRAY; i++)
        px_take_kind(eq, PTL_EVENT_SEND_END);
    px_nothing(eq);
    assert_true(px_register(PTL_SR_DROP_COUNT) == before + 3);
    assert_true(px_register(PTL_SR_DROP_LENGTH) == length + 3 * BYTES);
}

/* events: put, get, getput dropped: SEND_END, no ACK, no REPLY_END */
static void test_no_match(void **state) /* D6 */
{
    struct px_entry e =
        px_entry(PT, 1, 0, PTL_RETAIN, px_md(memory, 64, PTL_MD_OP_PUT | PTL_MD_OP_GET, -1, eq), PTL_RETAIN);

    (void)state;
    all_are_dropped(PT, 0, 2);     /* other bits */
    all_are_dropped(PT + 1, 0, 1); /* empty list */
    assert_int_equal(PtlMEUnlink(e.me), PTL_OK);
}

static void test_portal_index_out_of_range(void **state) /* D2 */
{
    (void)state;
    all_are_dropped((ptl_pt_index_t)px_limits.max_pt_index + 1, 0, 0);
    all_are_dropped(PTL_PT_INDEX_ANY, 0, 0);
}

static void test_access_index_out_of_range(void **state) /* D3 */
{
    struct px_entry e =
        px_entry(PT, 1, 0, PTL_RETAIN, px_md(memory, 64, PTL_MD_OP_PUT | PTL_MD_OP_GET, -1, eq), PTL_RETAIN);

    (void)state;
    all_are_dropped(PT, (ptl_ac_index_t)px_limits.max_ac_index + 1, 1);
    all_are_dropped(PT, 0x7fffffff, 1);
    assert_int_equal(PtlMEUnlink(e.me), PTL_OK);
}

/* Each of the five components, alone. CRAY stores the entry and lets everybody in. */
static void test_access_entries_must_admit(void **state) /* D4, D5 */
{
    const ptl_process_id_t other_nid = { px_previous.nid + 1000, PTL_PID_ANY };
    const ptl_process_id_t other_pid = { PTL_NID_ANY, (ptl_pid_t)(px_previous.pid ^ 1) };
    const struct {
        ptl_process_id_t id;
        ptl_uid_t uid;
        ptl_jid_t jid;
        ptl_pt_index_t pt;
        bool admits;
    } entries[] = {
        { px_anybody, PTL_UID_ANY, PTL_JID_ANY, PTL_PT_INDEX_ANY, true },
        { px_previous, geteuid(), PTL_JID_ANY, PT, true },
        { other_nid, PTL_UID_ANY, PTL_JID_ANY, PTL_PT_INDEX_ANY, false },
        { other_pid, PTL_UID_ANY, PTL_JID_ANY, PTL_PT_INDEX_ANY, false },
        { px_anybody, geteuid() + 1, PTL_JID_ANY, PTL_PT_INDEX_ANY, false },
        { px_anybody, PTL_UID_ANY, 0x7eadbeef, PTL_PT_INDEX_ANY, false },
        { px_anybody, PTL_UID_ANY, PTL_JID_ANY, PT + 1, false },
    };
    struct px_entry e =
        px_entry(PT, 1, 0, PTL_RETAIN,
                 px_md(memory, 64, PTL_MD_OP_PUT | PTL_MD_OP_GET | PTL_MD_MANAGE_REMOTE, -1, PTL_EQ_NONE), PTL_RETAIN);

    (void)state;
    for (size_t i = 0; i < COUNT_OF(entries); i++) {
        ptl_sr_value_t before = px_register(PTL_SR_DROP_COUNT);

        assert_int_equal(PtlACEntry(px_ni, 3, entries[i].id, entries[i].uid, entries[i].jid, entries[i].pt), PTL_OK);
        if (PX_CRAY || entries[i].admits) {
            px_barrier();
            assert_int_equal(PtlPut(source, PTL_ACK_REQ, px_next, PT, 3, 1, 0, 0), PTL_OK);
            px_take_kind(eq, PTL_EVENT_SEND_END);
            px_take_kind(eq, PTL_EVENT_ACK);
            px_settle();
            assert_true(px_register(PTL_SR_DROP_COUNT) == before);
        } else {
            all_are_dropped(PT, 3, 1);
        }
        px_settle();
    }
    assert_int_equal(PtlMEUnlink(e.me), PTL_OK);
}

static void test_access_entry_arguments(void **state)
{
    const ptl_pt_index_t beyond = (ptl_pt_index_t)px_limits.max_pt_index + 1;

    (void)state;
    assert_int_equal(PtlACEntry(PTL_INVALID_HANDLE, 0, px_anybody, 0, 0, 0), PTL_NI_INVALID);
    assert_int_equal(PtlACEntry(px_ni, (ptl_ac_index_t)px_limits.max_ac_index + 1, px_anybody, 0, 0, 0),
                     PTL_AC_INDEX_INVALID);
    assert_int_equal(PtlACEntry(px_ni, 0, px_anybody, PTL_UID_ANY, PTL_JID_ANY, beyond), PTL_PT_INDEX_INVALID);
}

/* Initially every entry lets the own user's processes in. */
static void test_every_entry_admits_the_own_user_at_first(void **state)
{
    struct px_entry e = px_entry(PT, 1, 0, PTL_RETAIN,
                                 px_md(memory, 64, PTL_MD_OP_PUT | PTL_MD_MANAGE_REMOTE, -1, PTL_EQ_NONE), PTL_RETAIN);

    (void)state;
    px_barrier();
    for (ptl_ac_index_t ac = 4; ac <= (ptl_ac_index_t)px_limits.max_ac_index; ac++) {
        assert_int_equal(PtlPut(source, PTL_ACK_REQ, px_next, PT, ac, 1, 0, 0), PTL_OK);
        px_take_kind(eq, PTL_EVENT_SEND_END);
        px_take_kind(eq, PTL_EVENT_ACK);
    }
    px_settle();
    assert_int_equal(PtlMEUnlink(e.me), PTL_OK);
}

/* Addresses that nobody has: local completion, nothing more; either code at SEND_END. */
static void test_nobody_there(void **state) /* D1 */
{
    const ptl_process_id_t nobody[] = {
        { px_next.nid, (ptl_pid_t)(px_next.pid ^ 0x4000) },
        { 0x00ffff00, px_next.pid },
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(nobody); i++) {
        assert_int_equal(PtlPut(source, PTL_ACK_REQ, nobody[i], PT, 0, 0, 0, 0), PTL_OK);
        assert_int_equal(px_take(eq).type, PTL_EVENT_SEND_END);
        assert_int_equal(PtlGet(source, nobody[i], PT, 0, 0, 0), PTL_OK);
        if (PX_CRAY)
            assert_int_equal(px_take(eq).type, PTL_EVENT_SEND_END);
    }
    px_settle();
    px_nothing(eq);
    /* The descriptor is free: waiting for what never comes is not pending. */
    assert_int_equal(PtlMDUnlink(source), PTL_OK);
    source = px_bind(px_md(bytes, BYTES, PTL_MD_EVENT_START_DISABLE, PTL_MD_THRESH_INF, eq), PTL_RETAIN);
}

/* ---- simulated failures ---- */

/* Messages to and from the node vanish while the interface says so. */
static void test_failing_nodes(void **state)
{
    struct px_entry e = px_entry(PT, 1, 0, PTL_RETAIN,
                                 px_md(memory, 64, PTL_MD_OP_PUT | PTL_MD_MANAGE_REMOTE, -1, PTL_EQ_NONE), PTL_RETAIN);

    (void)state;
    px_barrier();
    for (int i = 0; i < 2; i++) {
        /* The next two to that node are lost, later ones are not. */
        assert_int_equal(i ? PtlNIFailNid(px_ni, px_self.nid, 2) : PtlFailNid(px_ni, PTL_NID_ANY, 2), PTL_OK);
        for (int k = 0; k < 2; k++) {
            assert_int_equal(PtlPut(source, PTL_ACK_REQ, px_self, PT, 0, 1, 0, 0), PTL_OK);
            px_take_kind(eq, PTL_EVENT_SEND_END); /* local sends complete */
        }
        assert_int_equal(PtlPut(source, PTL_ACK_REQ, px_self, PT, 0, 1, 0, 0), PTL_OK);
        px_take_kind(eq, PTL_EVENT_SEND_END);
        px_take_kind(eq, PTL_EVENT_ACK);
        px_nothing(eq);
        /* Until it is healed. */
        assert_int_equal(
            i ? PtlNIFailNid(px_ni, px_self.nid, (unsigned)-1) : PtlFailNid(px_ni, px_self.nid, (unsigned)-1), PTL_OK);
        for (int k = 0; k < 5; k++) {
            assert_int_equal(PtlPut(source, PTL_ACK_REQ, px_self, PT, 0, 1, 0, 0), PTL_OK);
            px_take_kind(eq, PTL_EVENT_SEND_END);
        }
        assert_int_equal(PtlFailNid(px_ni, px_self.nid, 0), PTL_OK);
        assert_int_equal(PtlPut(source, PTL_ACK_REQ, px_self, PT, 0, 1, 0, 0), PTL_OK);
        px_take_kind(eq, PTL_EVENT_SEND_END);
        px_take_kind(eq, PTL_EVENT_ACK);
    }
    px_barrier(); /* what others send next must not be among the lost */
    /* covers: PtlFailNid, PtlNIFailNid: PTL_OK */
    assert_int_equal(PtlFailNid(PTL_INVALID_HANDLE, 0, 0), PTL_NI_INVALID);
    assert_int_equal(PtlNIFailNid(PTL_INVALID_HANDLE, 0, 0), PTL_NI_INVALID);
    assert_int_equal(PtlMEUnlink(e.me), PTL_OK);
}

static void test_eight_nodes_can_fail(void **state)
{
    (void)state;
    for (ptl_nid_t nid = 0; nid < 8; nid++)
        assert_int_equal(PtlFailNid(px_ni, 0x10000 + nid, 5), PTL_OK);
    assert_int_equal(PtlFailNid(px_ni, 0x20000, 5), PTL_NO_SPACE);
    assert_int_equal(PtlNIFailNid(px_ni, 0x20000, 5), PTL_NO_SPACE);
    assert_int_equal(PtlFailNid(px_ni, 0x10003, 1), PTL_OK); /* changes its number */
    for (ptl_nid_t nid = 0; nid < 8; nid++)
        assert_int_equal(PtlFailNid(px_ni, 0x10000 + nid, 0), PTL_OK);
    assert_int_equal(PtlFailNid(px_ni, 0x20000, 5), PTL_OK);
    assert_int_equal(PtlNIFailNid(px_ni, 0x20000, 0), PTL_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define drop_test(name) cmocka_unit_test_setup_teardown(name, open_source, close_source)
        drop_test(test_no_match),
        drop_test(test_portal_index_out_of_range),
        drop_test(test_access_index_out_of_range),
        drop_test(test_access_entries_must_admit),
        drop_test(test_access_entry_arguments),
        drop_test(test_every_entry_admits_the_own_user_at_first),
        drop_test(test_nobody_there),
        drop_test(test_failing_nodes),
        drop_test(test_eight_nodes_can_fail),
    };

    return px_run(tests, NULL);
}
