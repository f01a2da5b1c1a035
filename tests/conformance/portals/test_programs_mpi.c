/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What Open MPI depends on, a test for each of its components: the calls in the order in which the component makes
 * them.
 */
#include "tests/conformance/portals/programs.h"

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_open_mpi_btl),
        cmocka_unit_test(test_open_mpi_mtl),
        cmocka_unit_test(test_open_mpi_1_2_mtl),
    };

    return px_run(tests, NULL);
}
