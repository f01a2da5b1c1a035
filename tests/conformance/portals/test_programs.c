/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What real programs depend on, a test for each: the calls in the order in which the program makes them. Source:
 * spec/portals3.md 7.3 and 8. Written from its descriptions; no code of the programs.
 */
#include "tests/common/portals.h"

#define START_OFF PTL_MD_EVENT_START_DISABLE
#define END_OFF   PTL_MD_EVENT_END_DISABLE

static ptl_handle_me_t attach(ptl_pt_index_t pt, ptl_match_bits_t bits, ptl_match_bits_t ignore, ptl_unlink_t unlink,
                              ptl_ins_pos_t pos)
{
    ptl_handle_me_t me;

    assert_int_equal(PtlMEAttach(px_ni, pt, px_anybody, bits, ignore, unlink, pos, &me), PTL_OK);
    return me;
}

static ptl_handle_me_t insert(ptl_handle_me_t base, ptl_match_bits_t bits, ptl_match_bits_t ignore, ptl_unlink_t unlink)
{
    ptl_handle_me_t me;

    assert_int_equal(PtlMEInsert(base, px_anybody, bits, ignore, unlink, PTL_INS_BEFORE, &me), PTL_OK);
    return me;
}

static ptl_handle_md_t equip(ptl_handle_me_t me, ptl_md_t md, ptl_unlink_t unlink)
{
    ptl_handle_md_t mdh;

    assert_int_equal(PtlMDAttach(me, md, unlink, &mdh), PTL_OK);
    return mdh;
}

struct btl {
    ptl_handle_eq_t recv_eq, send_eq;
    ptl_handle_me_t reject; /* receive blocks stand before it */
    ptl_handle_md_t send_md;
    ptl_handle_me_t block_me[2];
    bool is_posted[2];
    unsigned n_sent, n_acked, n_received, n_posted;
};

enum { BTL_BLOCK = 4096, BTL_MESSAGE = 1000, BTL_MESSAGES = 20 };
static uint8_t btl_blocks[2][BTL_BLOCK], btl_message[BTL_MESSAGE];

static void btl_put(const struct btl *b, ptl_hdr_data_t number)
{
    assert_int_equal(PtlPut(b->send_md, PTL_ACK_REQ, px_next, 30, 0, 0, 0, number), PTL_OK);
}

static void btl_post_blocks(struct btl *b)
{
    for (int i = 0; i < 2; i++) {
        ptl_md_t block = px_md(btl_blocks[i], BTL_BLOCK, PTL_MD_OP_PUT | PTL_MD_MAX_SIZE | START_OFF, 8, b->recv_eq);

        if (b->is_posted[i])
            continue;
        block.max_size = BTL_MESSAGE;
        block.user_ptr = (void *)(uintptr_t)i;
        b->block_me[i] = insert(b->reject, 0, 0, PTL_UNLINK);
        equip(b->block_me[i], block, PTL_UNLINK);
        b->is_posted[i] = true;
        b->n_posted++;
    }
}

static void btl_handle(struct btl *b, const ptl_event_t *event)
{
    if (event->type == PTL_EVENT_ACK) {
        assert_true(event->rlength == BTL_MESSAGE);
        if (event->mlength == 0) {
            btl_put(b, event->hdr_data);
        } else {
            assert_true(event->mlength == BTL_MESSAGE);
            b->n_acked++;
        }
    } else if (event->type == PTL_EVENT_PUT_END) {
        assert_true(event->hdr_data == b->n_received);
        px_all((uint8_t *)event->md.start + event->offset, BTL_MESSAGE, (uint8_t)b->n_received);
        b->n_received++;
        if (event->md.length - event->offset - event->mlength < event->md.max_size || event->md.threshold == PX_CRAY)
            b->is_posted[(uintptr_t)event->md.user_ptr] = false;
    } else {
        assert_int_equal(event->type, PTL_EVENT_UNLINK);
        assert_int_equal(PX_CRAY, 0);
    }
}

/* Nobody receives: the message is rejected, acknowledged with nothing kept, and not dropped. */
static void btl_put_without_blocks(const struct btl *b)
{
    ptl_sr_value_t n_dropped = px_register(PTL_SR_DROP_COUNT);
    ptl_event_t event;

    btl_put(b, 0);
    event = px_take_kind(b->send_eq, PTL_EVENT_ACK);
    assert_true(event.mlength == 0 && event.rlength == BTL_MESSAGE);
    px_settle();
    assert_true(px_register(PTL_SR_DROP_COUNT) == n_dropped);
}

/*
 * Open MPI's BTL: receive blocks before a rejecting entry that keeps nothing; the sender sees mlength 0 with rlength >
 * 0 and sends again. The block's last message shows by md.threshold or by the room that is left. Acknowledgements with
 * START and END disabled.
 */
static void test_open_mpi_btl(void **state)
{
    struct btl b = { .recv_eq = px_eq(256), .send_eq = px_eq(256) };
    ptl_handle_eq_t eqs[2] = { b.recv_eq, b.send_eq };
    unsigned long distance;

    (void)state;
    b.reject = attach(30, 0, 0, PTL_RETAIN, PTL_INS_BEFORE);
    b.send_md = px_bind(px_md(btl_message, BTL_MESSAGE, START_OFF | END_OFF, PTL_MD_THRESH_INF, b.send_eq), PTL_RETAIN);
    equip(b.reject, px_md(NULL, 0, PTL_MD_OP_PUT | PTL_MD_TRUNCATE, PTL_MD_THRESH_INF, PTL_EQ_NONE), PTL_RETAIN);
    assert_int_equal(PtlNIDist(px_ni, px_next, &distance), PTL_OK); /* reachable */
    px_barrier();
    while (b.n_acked < BTL_MESSAGES || b.n_received < BTL_MESSAGES) {
        ptl_event_t event;
        int which, rc;

        /* One message at a time, so that what was rejected can be sent again in order. */
        if (b.n_sent == b.n_acked && b.n_sent < BTL_MESSAGES) {
            memset(btl_message, (int)b.n_sent, BTL_MESSAGE);
            btl_put(&b, b.n_sent++);
        }
        btl_post_blocks(&b);
        rc = PtlEQPoll(eqs, 2, 0, &event, &which);
        if (rc == PTL_EQ_EMPTY)
            continue;
        assert_int_equal(rc, PTL_OK);
        btl_handle(&b, &event);
    }
    assert_true(b.n_posted >= BTL_MESSAGES / 4);
    px_settle();
    for (int i = 0; i < 2; i++) {
        int rc = PtlMEUnlink(b.block_me[i]);

        assert_true(rc == PTL_OK || rc == PTL_ME_INVALID);
    }
    px_barrier();
    btl_put_without_blocks(&b);
    for (ptl_event_t event; PtlEQGet(b.recv_eq, &event) == PTL_OK;)
        assert_int_equal(event.type, PTL_EVENT_UNLINK);
    assert_int_equal(PtlMEUnlink(b.reject), PTL_OK);
    assert_int_equal(PtlMDUnlink(b.send_md), PTL_OK);
}

enum { MTL_LONG = 200000 };
#define MTL_LONG_BIT  (2ull << 60)
#define MTL_SHORT_BIT (1ull << 60)
#define MTL_BODY      (MTL_LONG_BIT | 77)
static uint8_t mtl_unexpected[65536], mtl_out[MTL_LONG], mtl_in[MTL_LONG];

struct mtl {
    ptl_handle_eq_t expected_eq, unexpected_eq;
    ptl_handle_me_t catcher, blocks;
};

static uint64_t previous_rank(void)
{
    return (uint64_t)((px_rank + px_size - 1) % px_size);
}

/* The list of receives: (posted here) short blocks, long catcher. */
static void mtl_open(struct mtl *m)
{
    ptl_md_t md = px_md(mtl_unexpected, sizeof(mtl_unexpected), PTL_MD_OP_PUT | PTL_MD_MAX_SIZE | PTL_MD_ACK_DISABLE,
                        PTL_MD_THRESH_INF, m->unexpected_eq);

    px_fill(mtl_out, MTL_LONG, (uint64_t)px_rank);
    md.max_size = 8192;
    m->blocks = attach(32, MTL_SHORT_BIT, MTL_SHORT_BIT - 1, PTL_UNLINK, PTL_INS_AFTER);
    equip(m->blocks, md, PTL_UNLINK);
    m->catcher = attach(32, MTL_LONG_BIT, MTL_LONG_BIT - 1, PTL_RETAIN, PTL_INS_AFTER);
    equip(m->catcher,
          px_md(NULL, 0, PTL_MD_OP_PUT | PTL_MD_TRUNCATE | PTL_MD_ACK_DISABLE, PTL_MD_THRESH_INF, m->unexpected_eq),
          PTL_RETAIN);
    px_barrier();
}

/* Complete at SEND_END. */
static void mtl_send_short(const struct mtl *m)
{
    ptl_handle_md_t short_md = px_bind(px_md(mtl_out, 4096, START_OFF, 1, m->expected_eq), PTL_RETAIN);
    ptl_event_t event;
    ptl_seq_t link;

    assert_int_equal(PtlPut(short_md, PX_NO_ACK, px_next, 32, 0, MTL_SHORT_BIT | 5, 0, 0), PTL_OK);
    px_take_kind(m->expected_eq, PTL_EVENT_SEND_END);
    event = px_take_kind(m->unexpected_eq, PTL_EVENT_PUT_START);
    link = event.link;
    assert_true(event.rlength == 4096 && event.match_bits == (MTL_SHORT_BIT | 5));
    event = px_take_kind(m->unexpected_eq, PTL_EVENT_PUT_END);
    assert_int_equal(event.link, link);
    px_same((uint8_t *)event.md.start + event.offset, 4096, previous_rank());
    assert_int_equal(PtlMDUnlink(short_md), PTL_OK);
}

/* The whole message is put from a descriptor that its reader can get, too. */
static ptl_handle_md_t mtl_put_long(const struct mtl *m, ptl_match_bits_t read_bits, ptl_handle_me_t *read_me)
{
    ptl_handle_md_t long_md;

    assert_int_equal(PtlMEAttach(px_ni, 33, px_next, read_bits, 0, PTL_UNLINK, PTL_INS_AFTER, read_me), PTL_OK);
    long_md = equip(*read_me, px_md(mtl_out, MTL_LONG, PTL_MD_OP_GET | START_OFF, 2, m->expected_eq), PTL_UNLINK);
    assert_int_equal(PtlPut(long_md, PTL_ACK_REQ, px_next, 32, 0, MTL_BODY, 0, read_bits), PTL_OK);
    return long_md;
}

/* Nothing is kept, no acknowledgement; the receiver pulls. */
static void mtl_send_long_unexpected(const struct mtl *m)
{
    ptl_handle_me_t read_me;
    ptl_handle_md_t long_md = mtl_put_long(m, 0xabc, &read_me), get_md;
    ptl_event_t event;

    px_take_kind(m->unexpected_eq, PTL_EVENT_PUT_START);
    event = px_take_kind(m->unexpected_eq, PTL_EVENT_PUT_END);
    assert_true(event.mlength == 0 && event.rlength == MTL_LONG && event.hdr_data == 0xabc);
    get_md = px_bind(px_md(mtl_in, MTL_LONG, START_OFF, PX_CRAY ? 2 : 1, m->expected_eq), PTL_RETAIN);
    assert_int_equal(PtlGet(get_md, event.initiator, 33, 0, event.hdr_data, 0), PTL_OK);
    for (int left = 3 + PX_CRAY + !PX_CRAY; left > 0; left--) {
        event = px_take(m->expected_eq);
        assert_int_equal(event.ni_fail_type, PTL_NI_OK);
        switch (event.type) {
        case PTL_EVENT_SEND_END:
        case PTL_EVENT_REPLY_END:
        case PTL_EVENT_GET_END:
            break;
        default:
            assert_int_equal(event.type, PTL_EVENT_UNLINK);
            assert_ptr_equal(event.md.start, mtl_out); /* intact */
            assert_true(event.md.length == MTL_LONG);
            assert_int_equal(PX_CRAY, 0);
        }
    }
    px_same(mtl_in, MTL_LONG, previous_rank());
    px_settle();
    px_nothing(m->expected_eq);
    assert_int_equal(PtlMDUnlink(long_md), PTL_MD_INVALID);
    assert_int_equal(PtlMDUnlink(get_md), PTL_OK);
}

static ptl_handle_me_t mtl_post(const struct mtl *m, ptl_handle_eq_t predicate)
{
    ptl_md_t md = px_md(mtl_in, MTL_LONG, PTL_MD_OP_PUT | PTL_MD_TRUNCATE | START_OFF, 1, m->expected_eq);
    ptl_handle_me_t me;
    ptl_handle_md_t mdh;

    assert_int_equal(PtlMEMDPost(px_ni, m->blocks, px_previous, MTL_BODY, 15ull << 60, PTL_UNLINK, PTL_INS_BEFORE, md,
                                 PTL_UNLINK, &me, &mdh, predicate),
                     PTL_OK);
    return me;
}

/* The acknowledgement completes the send; nobody pulls. */
static void mtl_send_long_expected(const struct mtl *m, ptl_handle_me_t posted)
{
    ptl_handle_me_t read_me;
    ptl_event_t event;

    mtl_put_long(m, 0xabd, &read_me);
    for (int left = 3 + 2 * !PX_CRAY; left > 0; left--) {
        event = px_take(m->expected_eq);
        assert_true(event.type == PTL_EVENT_SEND_END || event.type == PTL_EVENT_ACK ||
                    event.type == PTL_EVENT_PUT_END || (event.type == PTL_EVENT_UNLINK && !PX_CRAY));
        if (event.type == PTL_EVENT_PUT_END)
            assert_true(event.mlength == MTL_LONG && event.md.length == MTL_LONG && event.md.start == mtl_in);
    }
    px_same(mtl_in, MTL_LONG, previous_rank());
    px_settle();
    px_nothing(m->unexpected_eq);
    assert_int_equal(PtlMEUnlink(posted), PTL_ME_INVALID); /* too late to cancel */
    assert_int_equal(PtlMEUnlink(read_me), PTL_ME_INVALID);
}

/*
 * Open MPI's MTL: short messages into managed blocks, whose START events order them; a long message with a descriptor
 * for the reader that is its source as well and ends with SEND_END and GET_END or ACK; posting by PtlMEMDPost() with a
 * predicate.
 */
static void test_open_mpi_mtl(void **state)
{
    struct mtl m = { .expected_eq = px_eq(1024), .unexpected_eq = px_eq(1024) };
    ptl_handle_eq_t empty_eq = px_eq(1);
    ptl_handle_me_t posted;

    (void)state;
    mtl_open(&m);
    mtl_send_short(&m);
    mtl_send_long_unexpected(&m);

    /* Posting: by a predicate that is always true, and by the real one. */
    memset(mtl_in, 0, MTL_LONG);
    assert_int_equal(PtlMEUnlink(mtl_post(&m, empty_eq)), PTL_OK); /* cancelled */
    posted = mtl_post(&m, m.unexpected_eq);
    px_barrier();
    mtl_send_long_expected(&m, posted);
    assert_int_equal(PtlMEUnlink(m.blocks), PTL_OK);
    assert_int_equal(PtlMEUnlink(m.catcher), PTL_OK);
}

/*
 * Open MPI 1.2's MTL: PtlMDUnlink() of an inactive descriptor removes its PTL_UNLINK entry, so that they do not pile
 * up.
 */
static void test_open_mpi_1_2_mtl(void **state)
{
    ptl_handle_eq_t eq = px_eq(16);

    (void)state;
    for (int i = 0; i < 100; i++) {
        ptl_handle_me_t me = attach(2, 1, 0, PTL_UNLINK, PTL_INS_AFTER);

        assert_int_equal(PtlMDUnlink(equip(me, px_md(NULL, 0, PTL_MD_OP_PUT, 0, eq), PTL_UNLINK)), PTL_OK);
    }
    assert_int_equal(px_register(PTL_SR_MLIST_LEN(2)), 0);
    assert_int_equal(PtlEQFree(eq), PTL_OK);
}

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
        cmocka_unit_test(test_open_mpi_btl),
        cmocka_unit_test(test_open_mpi_mtl),
        cmocka_unit_test(test_open_mpi_1_2_mtl),
        cmocka_unit_test(test_gasnet),
        cmocka_unit_test(test_armci),
        cmocka_unit_test(test_armci_ds),
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
