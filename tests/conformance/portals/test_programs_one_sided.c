/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What libraries of one-sided communication depend on, a test for each: the calls in the order in which the library
 * makes them.
 */
#include "tests/conformance/portals/programs.h"

enum { GASNET_SEGMENT = 1 << 20, GASNET_OPS = 200, GASNET_REQUESTS = 100 };

/* Many puts and gets at a time; the operation's number comes back with each of its events. */
static void gasnet_move(ptl_handle_eq_t eq, ptl_handle_md_t local_md)
{
    uint64_t seen[3] = { 0, 0, 0 };

    for (uint64_t i = 0; i < GASNET_OPS; i++)
        assert_int_equal(
            PtlPutRegion(local_md, i * 512, 512, PTL_ACK_REQ, px_next, 39, 0, (i + 1) << 4 | 3, i * 512, 0), PTL_OK);
    for (unsigned i = 0; i < 2 * GASNET_OPS; i++) {
        ptl_event_t event = px_take(eq);
        uint64_t op = (event.match_bits >> 4) - 1;

        assert_int_equal(event.match_bits & 0xf, 3);
        assert_true(event.type == PTL_EVENT_SEND_END || event.type == PTL_EVENT_ACK);
        if (event.type == PTL_EVENT_SEND_END)
            assert_true(event.offset == op * 512);
        seen[event.type == PTL_EVENT_ACK] += op;
    }
    for (uint64_t i = 0; i < GASNET_OPS; i++)
        assert_int_equal(
            PtlGetRegion(local_md, GASNET_SEGMENT / 2 + i * 512, 512, px_next, 39, 0, (i + 1) << 4 | 3, i * 512),
            PTL_OK);
    for (unsigned i = 0; i < (PX_CRAY ? 2 : 1) * GASNET_OPS; i++) {
        ptl_event_t event = px_take(eq);

        if (event.type == PTL_EVENT_REPLY_END)
            seen[2] += (event.match_bits >> 4) - 1;
        else
            assert_int_equal(event.type, PTL_EVENT_SEND_END);
    }
    for (int i = 0; i < 3; i++)
        assert_true(seen[i] == (uint64_t)GASNET_OPS * (GASNET_OPS - 1) / 2);
}

/* Sends request i and handles events until one has come in. How many buffers were full meanwhile. */
static unsigned gasnet_request(unsigned i, ptl_handle_eq_t eq, ptl_handle_md_t local_md, ptl_handle_me_t catch_all)
{
    bool was_received = false;
    unsigned n_unlinked = 0;

    assert_int_equal(PtlPutRegion(local_md, 0, 256, PX_NO_ACK, px_next, 38, 0, 0xff0 | 1, 0, i), PTL_OK);
    while (!was_received) {
        ptl_event_t event = px_take(eq);

        if (event.type == PTL_EVENT_PUT_END) {
            was_received = true;
            assert_true(event.hdr_data == i);
        } else if (event.type == PTL_EVENT_UNLINK) {
            n_unlinked++;
            assert_int_equal(PtlMDUnlink(event.md_handle), PTL_MD_INVALID);
            equip(insert(catch_all, 1, ~0xfull, PTL_UNLINK), event.md, PTL_UNLINK);
        } else {
            assert_int_equal(event.type, PTL_EVENT_SEND_END);
        }
    }
    return n_unlinked;
}

/* Two buffers, kept before the catch-all, which it returns. */
static ptl_handle_me_t gasnet_exchange_requests(ptl_handle_eq_t eq, ptl_handle_eq_t sys_eq, ptl_handle_md_t local_md)
{
    static uint8_t buffers[2][2048];
    ptl_handle_me_t catch_all = attach(38, 0, ~0ull, PTL_RETAIN, PTL_INS_AFTER);
    unsigned n_unlinked = 0;

    equip(catch_all, px_md(NULL, 0, PTL_MD_OP_PUT | PTL_MD_TRUNCATE | START_OFF, PTL_MD_THRESH_INF, sys_eq),
          PTL_RETAIN);
    for (int i = 0; i < 2; i++) {
        ptl_md_t md = px_md(buffers[i], sizeof(buffers[i]), PTL_MD_OP_PUT | PTL_MD_MAX_SIZE | START_OFF | PX_UNLINK,
                            PTL_MD_THRESH_INF, eq);

        md.max_size = 256;
        md.user_ptr = buffers[i];
        equip(insert(catch_all, 1, ~0xfull, PTL_UNLINK), md, PTL_UNLINK);
    }
    px_barrier();
    for (unsigned i = 0; i < GASNET_REQUESTS; i++)
        n_unlinked += gasnet_request(i, eq, local_md, catch_all);
    assert_true(n_unlinked >= GASNET_REQUESTS * 256 / 2048 - 2);
    return catch_all;
}

/*
 * GASNet: a whole segment for everybody, used by many PutRegion and GetRegion at a time; message type in the low four
 * bits that match, the rest carries an operation's address that comes back in SEND_END, ACK and REPLY_END; SEND_END
 * tells the local offset; request buffers that are re-attached before a catch-all when their UNLINK arrives.
 */
static void test_gasnet(void **state)
{
    uint8_t *segment = calloc(1, GASNET_SEGMENT), *local = calloc(1, GASNET_SEGMENT);
    ptl_handle_eq_t eq = px_eq(1024), sys_eq = px_eq(1024);
    ptl_handle_me_t rar = attach(39, 3, ~0xfull, PTL_RETAIN, PTL_INS_AFTER), catch_all;
    ptl_handle_md_t local_md;

    (void)state;
    assert_non_null(segment);
    assert_non_null(local);
    equip(rar,
          px_md(segment, GASNET_SEGMENT, PTL_MD_OP_PUT | PTL_MD_OP_GET | PTL_MD_MANAGE_REMOTE | START_OFF | END_OFF,
                PTL_MD_THRESH_INF, PTL_EQ_NONE),
          PTL_RETAIN);
    local_md = px_bind(px_md(local, GASNET_SEGMENT, START_OFF, PTL_MD_THRESH_INF, eq), PTL_RETAIN);
    px_fill(local, GASNET_SEGMENT / 2, (uint64_t)px_rank);
    px_barrier();
    gasnet_move(eq, local_md);
    assert_memory_equal(local, local + GASNET_SEGMENT / 2, GASNET_OPS * 512);
    catch_all = gasnet_exchange_requests(eq, sys_eq, local_md);
    px_settle();
    px_nothing(sys_eq);
    assert_int_equal(px_register(PTL_SR_MLIST_LEN(38)) <= 3, 1);
    assert_int_equal(PtlMEUnlink(rar), PTL_OK);
    while (PtlMDUnlink(local_md) == PTL_MD_IN_USE)
        ;
    px_settle();
    PtlMEUnlink(catch_all);
    free(segment);
    free(local);
}

/* ARMCI: loops on PtlMDUnlink() and PtlMDUpdate() without looking at the queue; SEND_END before ACK and REPLY_END. */
static void test_armci(void **state)
{
    static uint8_t out[100000], in[100000];
    ptl_handle_eq_t eq = px_eq(64), armed_eq = px_eq(64);
    ptl_handle_me_t me = attach(37, 1, 0, PTL_RETAIN, PTL_INS_AFTER);
    ptl_handle_md_t mdh;
    ptl_md_t fresh;

    (void)state;
    equip(me,
          px_md(in, sizeof(in), PTL_MD_OP_PUT | PTL_MD_OP_GET | PTL_MD_MANAGE_REMOTE | START_OFF | END_OFF,
                PTL_MD_THRESH_INF, PTL_EQ_NONE),
          PTL_RETAIN);
    px_barrier();
    for (int i = 0; i < 20; i++) {
        mdh = px_bind(px_md(out, sizeof(out), START_OFF, 2, eq), PTL_RETAIN);
        assert_int_equal(PtlPut(mdh, PTL_ACK_REQ, px_next, 37, 0, 1, 0, 0), PTL_OK);
        px_take_kind(eq, PTL_EVENT_SEND_END);
        px_take_kind(eq, PTL_EVENT_ACK);
        fresh = px_md(out, sizeof(out), START_OFF, PX_CRAY ? 2 : 1, eq);
        while (PtlMDUpdate(mdh, NULL, &fresh, armed_eq) == PTL_MD_NO_UPDATE)
            ;
        assert_int_equal(PtlGet(mdh, px_next, 37, 0, 1, 0), PTL_OK);
        while (PtlMDUnlink(mdh) == PTL_MD_IN_USE) /* without an event having been taken */
            ;
        for (ptl_event_t event; PtlEQGet(eq, &event) == PTL_OK;)
            ;
    }
    px_settle();
    for (ptl_event_t event; PtlEQGet(eq, &event) == PTL_OK;)
        ;
    assert_int_equal(PtlMEUnlink(me), PTL_OK);
    assert_int_equal(PtlEQFree(eq), PTL_OK);
    assert_int_equal(PtlEQFree(armed_eq), PTL_OK);
}

/*
 * ARMCI-ds: threshold = number of puts that are expected, all events off; UNLINK means all done. With REF the END
 * events are on.
 */
static void test_armci_ds(void **state)
{
    enum { PUTS = 12 };
    static uint8_t in[PUTS * 64], out[64];
    ptl_handle_eq_t eq = px_eq(64);
    ptl_handle_md_t mdh = px_bind(px_md(out, 64, START_OFF | END_OFF, PTL_MD_THRESH_INF, PTL_EQ_NONE), PTL_RETAIN);

    (void)state;
    equip(attach(1, 9, 0, PTL_UNLINK, PTL_INS_AFTER),
          px_md(in, sizeof(in), PTL_MD_OP_PUT | PX_UNLINK | START_OFF | (PX_CRAY ? END_OFF : 0), PUTS, eq), PTL_UNLINK);
    px_barrier();
    for (int i = 0; i < PUTS; i++)
        assert_int_equal(PtlPut(mdh, PX_NO_ACK, px_next, 1, 0, 9, 0, 0), PTL_OK);
    for (int i = 0; !PX_CRAY && i < PUTS; i++)
        px_take_kind(eq, PTL_EVENT_PUT_END);
    px_take_kind(eq, PTL_EVENT_UNLINK);
    px_nothing(eq);
    assert_int_equal(px_register(PTL_SR_MLIST_LEN(1)), 0);
    px_settle();
    assert_int_equal(PtlMDUnlink(mdh), PTL_OK);
    assert_int_equal(PtlEQFree(eq), PTL_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gasnet),
        cmocka_unit_test(test_armci),
        cmocka_unit_test(test_armci_ds),
    };

    return px_run(tests, NULL);
}
