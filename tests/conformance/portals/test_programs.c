/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What message layers depend on, of file systems for the most part, a test for each: the calls in the order in which
 * the program makes them. Elsewhere: Open MPI (test_programs_mpi.c), one-sided communication
 * (test_programs_one_sided.c).
 */
#include "tests/conformance/portals/programs.h"

/*
 * CCI: pools sized by the limits, indices from 32 up, PTL_OK or PTL_ME_INVALID from PtlMEUnlink(), remote offset in
 * ACK.
 */
static void test_cci(void **state)
{
    ptl_handle_eq_t eq = px_eq(3 * 100);
    ptl_handle_me_t me[4];
    ptl_handle_md_t mdh;
    static uint8_t in[4096], out[64];
    ptl_event_t event;

    (void)state;
    assert_true(px_limits.max_mes > 0 && px_limits.max_mds > 0 && px_limits.max_eqs > 0 &&
                px_limits.max_pt_index >= 40);
    for (unsigned i = 0; i < 4; i++) {
        ptl_md_t md = px_md(in + i * 1024, 1024, PTL_MD_OP_PUT | PTL_MD_MANAGE_REMOTE | START_OFF,
                            i < 2 ? 1 : PTL_MD_THRESH_INF, eq);
#if PX_CRAY
        assert_int_equal(
            PtlMEMDAttach(px_ni, 32 + i, px_anybody, i, 0, PTL_UNLINK, PTL_INS_AFTER, md, PTL_UNLINK, &me[i], &mdh),
            PTL_OK);
#else
        me[i] = attach(32 + i, i, 0, PTL_UNLINK, PTL_INS_AFTER);
        equip(me[i], md, PTL_UNLINK);
#endif
    }
    mdh = px_bind(px_md(out, 64, START_OFF | END_OFF, PTL_MD_THRESH_INF, eq), PTL_RETAIN);
    px_barrier();
    assert_int_equal(PtlPut(mdh, PTL_ACK_REQ, px_next, 32, 0, 0, 640, 7), PTL_OK);
    for (int i = 0; i < 2 + !PX_CRAY; i++) {
        event = px_take(eq);
        if (event.type == PTL_EVENT_ACK) {
            assert_true(event.offset == 640 && event.rlength == 64 && event.mlength == 64);
            assert_int_equal(event.initiator.pid, px_next.pid);
        }
    }
    px_settle();
    for (int i = 0; i < 4; i++) {
        int rc = PtlMEUnlink(me[i]);

        assert_true(rc == (i == 0 ? PTL_ME_INVALID : PTL_OK));
    }
    assert_int_equal(PtlMDUnlink(mdh), PTL_OK);
    assert_int_equal(PtlEQFree(eq), PTL_OK);
}

enum { BMI_ROUNDS = 100, BMI_BYTES = 5000 };
static uint8_t bmi_out[BMI_BYTES], bmi_in[BMI_BYTES];

/* One send and one receive, until both have ended. */
struct bmi {
    ptl_handle_eq_t eq;
    ptl_match_bits_t tag;
    ptl_handle_me_t send_me, recv_me;
    ptl_handle_md_t send_md, recv_md, get_md;
    bool is_arrived, is_caught, is_sent, is_acked, is_read;
    unsigned n_pulled, n_direct;
};

/* An unexpected message came before its receive was active: cancelled, and pulled. */
static void bmi_pull(struct bmi *b, const ptl_event_t *event)
{
    b->is_caught = true;
    assert_true(event->hdr_data == b->tag && event->mlength == 0);
    assert_int_equal(PtlMEUnlink(b->recv_me), PTL_OK); /* never was active */
    b->get_md = px_bind(px_md(bmi_in, BMI_BYTES, START_OFF, PX_CRAY ? 2 : 1, b->eq), PTL_RETAIN);
    assert_int_equal(PtlGet(b->get_md, event->initiator, 36, 0, b->tag, 0), PTL_OK);
    b->n_pulled++;
}

static void bmi_handle(struct bmi *b, const ptl_event_t *event)
{
    assert_int_equal(event->ni_fail_type, PTL_NI_OK);
    if (event->type == PTL_EVENT_PUT_END && event->md_handle != b->recv_md) {
        bmi_pull(b, event);
    } else if (event->type == PTL_EVENT_PUT_END) {
        b->is_arrived = true;
        b->n_direct++;
    } else if (event->type == PTL_EVENT_REPLY_END) {
        b->is_arrived = true;
    } else if (event->type == PTL_EVENT_GET_END) {
        b->is_read = true;
    } else if (event->type == PTL_EVENT_ACK) {
        b->is_acked = true;
        assert_true(event->rlength == event->mlength);
    } else if (event->type == PTL_EVENT_SEND_END && event->md_handle == b->send_md) {
        b->is_sent = true;
    }
}

static void bmi_exchange(struct bmi *b, ptl_handle_me_t markme)
{
    static ptl_md_iovec_t out_parts[2] = { { bmi_out, 1000 }, { bmi_out + 1000, BMI_BYTES - 1000 } };
    static ptl_md_iovec_t in_parts[2] = { { bmi_in, 4000 }, { bmi_in + 4000, BMI_BYTES - 4000 } };
    ptl_md_t md = px_md(in_parts, 2, PTL_MD_OP_PUT | PTL_MD_IOVEC | START_OFF, 0, b->eq);
    int rc = PTL_MD_NO_UPDATE;

    b->send_me = attach(36, b->tag, 0, PTL_UNLINK, PTL_INS_AFTER);
    b->recv_me = insert(markme, b->tag, 0, PTL_UNLINK);
    b->send_md = equip(b->send_me, px_md(out_parts, 2, PTL_MD_OP_GET | PTL_MD_IOVEC | START_OFF, 3, b->eq), PTL_UNLINK);
    memset(bmi_in, 0, BMI_BYTES);
    assert_int_equal(PtlPut(b->send_md, PTL_ACK_REQ, px_next, 37, 0, b->tag, 0, b->tag), PTL_OK);
    b->recv_md = equip(b->recv_me, md, PTL_UNLINK);
    md.threshold = 1;
    while (!(b->is_arrived && b->is_sent && (b->is_acked || b->is_read))) {
        ptl_event_t event;
        int which;

        if (rc == PTL_MD_NO_UPDATE && !b->is_caught) {
            rc = PtlMDUpdate(b->recv_md, NULL, &md, b->eq);
            if (rc == PTL_OK)
                continue;
            assert_int_equal(rc, PTL_MD_NO_UPDATE);
        }
        assert_int_equal(PtlEQPoll(&b->eq, 1, PTL_TIME_FOREVER, &event, &which), PTL_OK);
        bmi_handle(b, &event);
    }
}

/*
 * BMI: a mark in the middle of the list; receives are posted inactive before it and then updated with its only queue as
 * predicate, and after PTL_MD_NO_UPDATE it blocks for the event that must come; unexpected messages go to a catch-all
 * that keeps nothing, and are pulled; at cancel the entries go with their descriptors. Thresholds 2 and 3; scattered
 * memory.
 */
static void test_bmi(void **state)
{
    ptl_handle_eq_t eq = px_eq(512);
    ptl_handle_me_t markme = attach(37, 0, 0, PTL_RETAIN, PTL_INS_AFTER), catcher;
    unsigned n_ended = 0;

    (void)state;
    px_fill(bmi_out, BMI_BYTES, (uint64_t)px_rank);
    catcher = attach(37, 0, ~0ull, PTL_RETAIN, PTL_INS_AFTER);
    equip(catcher,
          px_md(NULL, 0, PTL_MD_OP_PUT | PTL_MD_TRUNCATE | PTL_MD_ACK_DISABLE | START_OFF, PTL_MD_THRESH_INF, eq),
          PTL_RETAIN);
    px_barrier();
    for (unsigned round = 0; round < BMI_ROUNDS; round++) {
        struct bmi b = { .eq = eq, .tag = 1000 + round, .get_md = PTL_INVALID_HANDLE };

        bmi_exchange(&b, markme);
        n_ended += b.n_pulled + b.n_direct;
        px_same(bmi_in, BMI_BYTES, previous_rank());
        assert_int_equal(PtlMEUnlink(b.send_me), PTL_OK); /* threshold 3: not used up */
        if (b.get_md != PTL_INVALID_HANDLE)
            assert_int_equal(PtlMDUnlink(b.get_md), PTL_OK);
        px_settle();
        for (ptl_event_t event; PtlEQGet(eq, &event) == PTL_OK;)
            assert_true(event.type == PTL_EVENT_UNLINK || event.type == PTL_EVENT_SEND_END);
        px_barrier();
    }
    assert_int_equal(n_ended, BMI_ROUNDS);
    assert_int_equal(PtlMEUnlink(markme), PTL_OK);
    assert_int_equal(PtlMEUnlink(catcher), PTL_OK);
    assert_int_equal(PtlEQFree(eq), PTL_OK);
}

/*
 * NNTI: every event on; receive buffers with MAX_SIZE, recycled by unlinking and attaching; remote offset in ACK, local
 * one in REPLY.
 */
static void test_nnti(void **state)
{
    static uint8_t queue[3000], out[1000], in[1000];
    ptl_handle_eq_t eq = px_eq(256);
    ptl_handle_me_t me, bulk = attach(3, 0, 0, PTL_RETAIN, PTL_INS_AFTER);
    ptl_handle_md_t send_md = px_bind(px_md(out, 1000, 0, PTL_MD_THRESH_INF, eq), PTL_RETAIN), old = PTL_INVALID_HANDLE;
    ptl_md_t md = px_md(queue, sizeof(queue), PTL_MD_OP_PUT | PTL_MD_MAX_SIZE, PTL_MD_THRESH_INF, eq);

    (void)state;
    md.max_size = 1000;
    equip(bulk, px_md(in, 1000, PTL_MD_OP_PUT | PTL_MD_OP_GET | PTL_MD_MANAGE_REMOTE, PTL_MD_THRESH_INF, eq),
          PTL_RETAIN);
    for (int round = 0; round < 4; round++) {
        ptl_handle_md_t mdh;

        me = attach(4, 0, 0, PTL_RETAIN, PTL_INS_AFTER);
        mdh = equip(me, md, PTL_RETAIN);
        assert_int_not_equal(mdh, old);
        old = mdh;
        px_barrier();
        for (int i = 0; i < 3; i++)
            assert_int_equal(PtlPutRegion(send_md, 0, 1000, PX_NO_ACK, px_next, 4, 0, 0, 0, 0), PTL_OK);
        for (int i = 0; i < 12; i++)
            px_take(eq);
        px_settle();
        assert_int_equal(PtlMEUnlink(me), PTL_OK); /* full, and with it its descriptor */
        assert_int_equal(PtlMDUnlink(mdh), PTL_MD_INVALID);
    }
    px_barrier();
    assert_int_equal(PtlPutRegion(send_md, 100, 50, PTL_ACK_REQ, px_next, 3, 0, 0, 700, 0), PTL_OK);
    assert_int_equal(PtlGetRegion(send_md, 300, 50, px_next, 3, 0, 0, 200), PTL_OK);
    for (int i = 0; i < 9 + 2 * PX_CRAY; i++) {
        ptl_event_t event = px_take(eq);

        if (event.type == PTL_EVENT_ACK)
            assert_true(event.offset == 700);
        if (event.type == PTL_EVENT_REPLY_START || event.type == PTL_EVENT_REPLY_END)
            assert_true(event.offset == 300);
    }
    px_settle();
    px_nothing(eq);
    assert_int_equal(PtlMEUnlink(bulk), PTL_OK);
    assert_int_equal(PtlMDUnlink(send_md), PTL_OK);
    assert_int_equal(PtlEQFree(eq), PTL_OK);
}

/*
 * LWFS: a queue for each operation, made and freed at a high rate; gets with one operation more under Cray; codes
 * printed by table.
 */
static void test_lwfs(void **state)
{
    static uint8_t bulk[4096], local[4096];
    ptl_handle_me_t me = attach(5, 1, 0, PTL_RETAIN, PTL_INS_AFTER);

    (void)state;
    equip(
        me,
        px_md(bulk, sizeof(bulk), PTL_MD_OP_PUT | PTL_MD_OP_GET | PTL_MD_MANAGE_REMOTE, PTL_MD_THRESH_INF, PTL_EQ_NONE),
        PTL_RETAIN);
    px_fill(bulk, sizeof(bulk), (uint64_t)px_rank);
    px_barrier();
    for (int i = 0; i < 100; i++) {
        ptl_handle_eq_t eq = px_eq(10);
        ptl_handle_md_t mdh = px_bind(px_md(local, sizeof(local), 0, 1 + PX_CRAY, eq), PTL_UNLINK);
        ptl_event_t event;

        assert_int_equal(PtlGet(mdh, px_next, 5, 0, 1, 0), PTL_OK);
        do {
            assert_int_equal(PtlEQWait(eq, &event), PTL_OK);
        } while (event.type != PTL_EVENT_REPLY_END);
        assert_int_equal(PtlEQFree(eq), PTL_OK);
    }
    px_same(local, sizeof(local), (uint64_t)((px_rank + 1) % px_size));
    px_settle();
    assert_int_equal(PtlMEUnlink(me), PTL_OK);
    assert_string_equal(ptl_err_str[PTL_EQ_DROPPED], "PTL_EQ_DROPPED");
}

/*
 * DART: all information in hdr_data; puts without START and END; operations are freed at UNLINK; the array of queues
 * stays as it is.
 */
static void test_dart(void **state)
{
    static uint8_t in[64], out[64];
    ptl_handle_eq_t eqs[2] = { px_eq(64), px_eq(64) }, copy[2];
    ptl_handle_me_t me = attach(0, 0, 0, PTL_RETAIN, PTL_INS_AFTER);
    unsigned short pid;
    char text[16];
    ptl_event_t event;
    int which = -1;

    (void)state;
    snprintf(text, sizeof(text), "%hu", (unsigned short)px_self.pid);
    assert_int_equal(sscanf(text, "%hu", &pid), 1);
    assert_int_equal(pid, px_self.pid);
    equip(me, px_md(in, 64, PTL_MD_OP_PUT | PTL_MD_MANAGE_REMOTE | START_OFF, PTL_MD_THRESH_INF, eqs[0]), PTL_RETAIN);
    memcpy(copy, eqs, sizeof(eqs));
    px_barrier();
    for (uintptr_t i = 0; i < 20; i++) {
        ptl_md_t md = px_md(out, 64, START_OFF | (PX_CRAY ? END_OFF : 0) | PX_UNLINK, 1, eqs[1]);

        md.user_ptr = (void *)i;
        assert_int_equal(PtlPut(px_bind(md, PTL_UNLINK), PX_NO_ACK, px_next, 0, 0, 0, 0, i), PTL_OK);
    }
    for (uintptr_t i = 0, freed = 0, got = 0; freed < 20 || got < 20; i++) {
        assert_int_equal(PtlEQPoll(eqs, 2, PX_PATIENCE_MS, &event, &which), PTL_OK);
        assert_memory_equal(eqs, copy, sizeof(eqs));
        if (event.type == PTL_EVENT_UNLINK)
            assert_ptr_equal(event.md.user_ptr, (void *)freed++);
        else if (event.type == PTL_EVENT_PUT_END)
            assert_true(event.hdr_data == got++);
        else
            assert_int_equal(event.type, PTL_EVENT_SEND_END);
    }
    px_settle();
    assert_int_equal(PtlMEUnlink(me), PTL_OK);
    assert_int_equal(PtlEQFree(eqs[0]), PTL_OK);
    assert_int_equal(PtlEQFree(eqs[1]), PTL_OK);
}

/* usik: bound descriptors with PTL_MD_OP_PUT, regions of them. */
static void test_usik(void **state)
{
    static uint8_t in[256], out[256];
    ptl_handle_eq_t eq = px_eq(64);
    ptl_handle_me_t me = attach(7, 0, 0, PTL_RETAIN, PTL_INS_AFTER);
    ptl_handle_md_t mdh = px_bind(px_md(out, 256, PTL_MD_OP_PUT, PTL_MD_THRESH_INF, PTL_EQ_NONE), PTL_RETAIN);
    ptl_event_t event;

    (void)state;
    px_fill(out, 256, 1);
    equip(me, px_md(in, 256, PTL_MD_OP_PUT | START_OFF, PTL_MD_THRESH_INF, eq), PTL_RETAIN);
    px_barrier();
    assert_int_equal(PtlPutRegion(mdh, 16, 32, PX_NO_ACK, px_next, 7, 0, 0, 0, 0), PTL_OK);
    assert_int_equal(PtlEQWait(eq, &event), PTL_OK);
    assert_memory_equal(in, out + 16, 32);
    px_settle();
    assert_int_equal(PtlMDUnlink(mdh), PTL_OK);
    assert_int_equal(PtlMEUnlink(me), PTL_OK);
    assert_int_equal(PtlEQFree(eq), PTL_OK);
}

/* ptllnd, user level: waits with time-outs in ms; UNLINK ignored; ni_fail_type compared with PTL_OK. */
static void test_user_ptllnd(void **state)
{
    static uint8_t in[128], out[128];
    ptl_handle_eq_t eq = px_eq(64);
    ptl_handle_md_t mdh = px_bind(px_md(out, 128, START_OFF, 1, eq), PTL_UNLINK);
    ptl_event_t event;
    int which = -1;
    bool is_received = false, is_sent = false;

    (void)state;
    equip(attach(9, 4, 0, PTL_UNLINK, PTL_INS_AFTER), px_md(in, 128, PTL_MD_OP_PUT | START_OFF, 1, eq), PTL_UNLINK);
    assert_int_equal(PtlEQPoll(&eq, 1, 1, &event, &which), PTL_EQ_EMPTY);
    px_barrier();
    assert_int_equal(PtlPut(mdh, PX_NO_ACK, px_next, 9, 0, 4, 0, 0), PTL_OK);
    while (!is_received || !is_sent) {
        assert_int_equal(PtlEQPoll(&eq, 1, PX_PATIENCE_MS, &event, &which), PTL_OK);
        assert_true(event.ni_fail_type == PTL_OK);
        is_received = is_received || event.type == PTL_EVENT_PUT_END;
        is_sent = is_sent || event.type == PTL_EVENT_SEND_END;
    }
    px_settle();
    assert_int_equal(PtlEQFree(eq), PTL_OK);
}

#if PX_CRAY
static struct {
    unsigned n_received;
    unsigned n_unlinked;
    uint8_t memory[64];
    ptl_md_t md;
} lnd;

/* ptllnd, kernel: the handler is the only consumer, reuses the descriptor at once; `unlinked` says when it has gone. */
static void lnd_handler(ptl_event_t *event)
{
    if (event->type == PTL_EVENT_PUT_END)
        lnd.n_received++;
    if (event->unlinked || event->type == PTL_EVENT_UNLINK) {
        ptl_handle_me_t me;
        ptl_handle_md_t mdh;

        lnd.n_unlinked++;
        assert_int_equal(PtlMEAttach(px_ni, 9, px_anybody, 6, 0, PTL_UNLINK, PTL_INS_AFTER, &me), PTL_OK);
        assert_int_equal(PtlMDAttach(me, lnd.md, PTL_UNLINK, &mdh), PTL_OK);
    }
}

static void test_kernel_ptllnd(void **state)
{
    ptl_handle_eq_t eq;
    ptl_handle_me_t me;
    ptl_handle_md_t source = px_bind(px_md(NULL, 0, START_OFF | END_OFF, PTL_MD_THRESH_INF, PTL_EQ_NONE), PTL_RETAIN),
                    mdh;
    ptl_event_t event;

    (void)state;
    memset(&lnd, 0, sizeof(lnd));
    assert_int_equal(PtlEQAlloc(px_ni, 8, lnd_handler, &eq), PTL_OK);
    lnd.md = px_md(lnd.memory, 64, PTL_MD_OP_PUT | START_OFF | PTL_MD_LUSTRE_COMPLETION_SEMANTICS, 1, eq);
    me = attach(9, 6, 0, PTL_UNLINK, PTL_INS_AFTER);
    equip(me, lnd.md, PTL_UNLINK);
    for (unsigned i = 0; i < 20; i++) {
        assert_int_equal(PtlPut(source, PX_NO_ACK, px_self, 9, 0, 6, 0, 0), PTL_OK);
        while (lnd.n_unlinked <= i)
            assert_true(PtlEQGet(eq, &event) != PTL_EQ_DROPPED);
    }
    assert_int_equal(lnd.n_received, 20);
    assert_int_equal(lnd.n_unlinked, 20);
    /* By hand: UNLINK, with `unlinked`. */
    mdh = px_bind(lnd.md, PTL_RETAIN);
    assert_int_equal(PtlMDUnlink(mdh), PTL_OK);
    while (lnd.n_unlinked <= 20)
        assert_true(PtlEQGet(eq, &event) != PTL_EQ_DROPPED);
    assert_int_equal(event.type, PTL_EVENT_UNLINK);
    assert_int_equal(event.unlinked, 1);
    assert_int_equal(PtlMDUnlink(source), PTL_OK);
    assert_int_equal(PtlEQFree(eq), PTL_OK);
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cci),
        cmocka_unit_test(test_bmi),
        cmocka_unit_test(test_nnti),
        cmocka_unit_test(test_lwfs),
        cmocka_unit_test(test_dart),
        cmocka_unit_test(test_usik),
        cmocka_unit_test(test_user_ptllnd),
#if PX_CRAY
        cmocka_unit_test(test_kernel_ptllnd),
#endif
    };

    return px_run(tests, NULL);
}
