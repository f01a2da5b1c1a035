/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Shared message queues: every call with every code, what messages and entries look like, credits, pools, order, and
 * the death of an instance. Specification: ugni.md 2.17, 3.11, 4.11.
 *
 * Most tests are two nodes with two instances each in this process: a0, a1 on node 0, b0, b1 on node 1. The traffic
 * tests are real processes, two on each of three nodes.
 */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/common/gni.h"
#include "tests/common/proc.h"
#include "tests/common/seed.h"

#define PATIENCE_NS 20000000000ull
#define DO_NOT_BLOCK ((uint32_t)-1)
#define CREDITS 8u
#define POOLED  4u
#define INBOX   256u

static struct fx fx;

/* A message as the callback saw it. */
struct got {
    uint32_t snd_id;
    uint32_t snd_pe;
    uint8_t tag;
    uint8_t bytes[GNI_MSGQ_MSG_SZ_MAX];
};

struct inst {
    struct gx_side side;
    gni_msgq_handle_t msgq;
    gni_ep_handle_t ep[4];      /* by number of the peer in all[] */
    struct got got[INBOX];
    unsigned n_got;
    int answer;                 /* of the callback */
};

static struct inst a0, a1, b0, b1;
static struct inst *const all[4] = { &a0, &a1, &b0, &b1 };
static const uint32_t node_of[4] = { 0, 0, 1, 1 };

static unsigned number_of(const struct inst *i)
{
    unsigned n = 0;

    while (all[n] != i)
        n++;
    return n;
}

static int receive(uint32_t snd_id, uint32_t snd_pe, void *msg, uint8_t msg_tag, void *cb_data)
{
    struct inst *i = cb_data;
    struct got *got = &i->got[i->n_got++ % INBOX];

    *got = (struct got){ .snd_id = snd_id, .snd_pe = snd_pe, .tag = msg_tag };
    memcpy(got->bytes, msg, sizeof(got->bytes));
    return i->answer;
}

static gni_msgq_attr_t usual_attrs(void)
{
    return (gni_msgq_attr_t){ .max_msg_sz = GNI_MSGQ_MSG_SZ_MAX, .smsg_q_sz = CREDITS, .rcv_pool_sz = POOLED,
                              .num_msgq_eps = 2, .nloc_insts = 2, .modes = 0, .rcv_cq_sz = 64 };
}

/* answers: GNI_MsgqInit */
static gni_return_t init(struct inst *i, gni_msgq_attr_t attrs)
{
    return GNI_MsgqInit(i->side.nic, receive, i, i->side.src_cq, &attrs, &i->msgq);
}

static void open_inst(struct inst *i)
{
    unsigned n = number_of(i);

    memset(i, 0, sizeof(*i));
    i->answer = 1;
    gx_open(&i->side, &fx, node_of[n], 10 + n, 0);
}

/* Takes everything down, whatever is outstanding. */
static void close_inst(struct inst *i)
{
    if (!i->side.cdm)
        return;
    for (unsigned n = 0; n < 4; n++) {
        if (i->ep[n])
            GNI_EpDestroy(i->ep[n]);
    }
    gx_close(&i->side);
    memset(i, 0, sizeof(*i));
}

static int open_nodes(void **state)
{
    (void)state;
    for (unsigned n = 0; n < 4; n++)
        open_inst(all[n]);
    return 0;
}

static int close_nodes(void **state)
{
    (void)state;
    for (unsigned n = 0; n < 4; n++)
        close_inst(all[n]);
    unsetenv("EMUNIC_CQ_FLOOR");
    return 0;
}

static void init_all(gni_msgq_attr_t attrs)
{
    for (unsigned n = 0; n < 4; n++)
        assert_int_equal(init(all[n], attrs), GNI_RC_SUCCESS);
}

static void connect_nodes(struct inst *x, struct inst *y)
{
    gni_msgq_ep_attr_t of_x, of_y;

    assert_int_equal(GNI_MsgqGetConnAttrs(x->msgq, y->side.nic_addr, &of_x, NULL), GNI_RC_SUCCESS);
    assert_int_equal(GNI_MsgqGetConnAttrs(y->msgq, x->side.nic_addr, &of_y, NULL), GNI_RC_SUCCESS);
    assert_int_equal(GNI_MsgqConnect(x->msgq, y->side.nic_addr, &of_y), GNI_RC_SUCCESS);
    assert_int_equal(GNI_MsgqConnect(y->msgq, x->side.nic_addr, &of_x), GNI_RC_SUCCESS);
}

static int open_connected_with(gni_msgq_attr_t attrs)
{
    open_nodes(NULL);
    init_all(attrs);
    connect_nodes(&a0, &b0);
    return 0;
}

static int open_connected(void **state)
{
    (void)state;
    return open_connected_with(usual_attrs());
}

static gni_ep_handle_t ep_to(struct inst *from, struct inst *to)
{
    gni_ep_handle_t *ep = &from->ep[number_of(to)];

    if (!*ep) {
        assert_int_equal(GNI_EpCreate(from->side.nic, from->side.src_cq, ep), GNI_RC_SUCCESS);
        assert_int_equal(GNI_EpBind(*ep, to->side.nic_addr, to->side.inst_id), GNI_RC_SUCCESS);
    }
    return *ep;
}

/* A message whose data are one number. answers: GNI_MsgqSend */
static gni_return_t send_number(struct inst *from, struct inst *to, uint32_t number)
{
    return GNI_MsgqSend(from->msgq, ep_to(from, to), NULL, 0, &number, sizeof(number), number, (uint8_t)number);
}

static uint32_t number_in(const struct got *got)
{
    uint32_t number;

    memcpy(&number, got->bytes, sizeof(number));
    return number;
}

/* answers: GNI_MsgqProgress */
static gni_return_t progress(struct inst *i)
{
    return GNI_MsgqProgress(i->msgq, DO_NOT_BLOCK);
}

/* Until so many messages have come in all. */
static void progress_until(struct inst *i, unsigned n_got)
{
    uint64_t end_ns = emu_clock_ns() + PATIENCE_NS;

    while (i->n_got < n_got && emu_clock_ns() < end_ns) {
        gni_return_t rc = progress(i);

        assert_true(rc == GNI_RC_SUCCESS || rc == GNI_RC_NOT_DONE);
    }
    assert_int_equal(i->n_got, n_got);
}

/* Takes the completion entries of so many sends. */
static void complete(struct inst *i, unsigned n)
{
    gni_cq_entry_t entry;

    while (n-- > 0)
        assert_int_equal(gx_next(i->side.src_cq, &entry), GNI_RC_SUCCESS);
}

/* Sends with patience: credits may be on their way back. `helper` looks after the queue of the other node. */
static void send_surely(struct inst *from, struct inst *to, uint32_t number, struct inst *helper)
{
    uint64_t end_ns = emu_clock_ns() + PATIENCE_NS;
    gni_return_t rc;

    while ((rc = send_number(from, to, number)) == GNI_RC_NOT_DONE && emu_clock_ns() < end_ns)
        progress(helper);
    assert_int_equal(rc, GNI_RC_SUCCESS);
    complete(from, 1);
}

/* ---- init, release, size ---- */

static void test_init_refuses_bad_arguments(void **state)
{
    static const struct {
        size_t offset;
        uint32_t value;
    } bad[] = {
        { offsetof(gni_msgq_attr_t, max_msg_sz), 0 },
        { offsetof(gni_msgq_attr_t, max_msg_sz), GNI_MSGQ_MSG_SZ_MAX + 1 },
        { offsetof(gni_msgq_attr_t, smsg_q_sz), 0 }, { offsetof(gni_msgq_attr_t, smsg_q_sz), 3 },
        { offsetof(gni_msgq_attr_t, num_msgq_eps), 0 }, { offsetof(gni_msgq_attr_t, nloc_insts), 0 },
        { offsetof(gni_msgq_attr_t, nloc_insts), GNI_MSGQ_NODE_INSTS_MAX + 1 },
        { offsetof(gni_msgq_attr_t, rcv_cq_sz), 0 }, { offsetof(gni_msgq_attr_t, rcv_cq_sz), UINT32_MAX },
        { offsetof(gni_msgq_attr_t, smsg_q_sz), UINT32_MAX - 1 }, { offsetof(gni_msgq_attr_t, modes), 2 },
    };
    gni_msgq_attr_t attrs = usual_attrs();
    gni_msgq_handle_t msgq = (gni_msgq_handle_t)0x77;

    (void)state;
    assert_int_equal(GNI_MsgqInit(NULL, receive, NULL, a0.side.src_cq, &attrs, &msgq), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_MsgqInit(a0.side.nic, NULL, NULL, a0.side.src_cq, &attrs, &msgq), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_MsgqInit(a0.side.nic, receive, NULL, NULL, &attrs, &msgq), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_MsgqInit(a0.side.nic, receive, NULL, a1.side.src_cq, &attrs, &msgq), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_MsgqInit(a0.side.nic, receive, NULL, a0.side.src_cq, NULL, &msgq), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_MsgqInit(a0.side.nic, receive, NULL, a0.side.src_cq, &attrs, NULL), GNI_RC_INVALID_PARAM);
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        attrs = usual_attrs();
        if (bad[i].offset == offsetof(gni_msgq_attr_t, modes))
            attrs.modes = (uint8_t)bad[i].value;
        else
            memcpy((char *)&attrs + bad[i].offset, &bad[i].value, sizeof(bad[i].value));
        assert_int_equal(GNI_MsgqInit(a0.side.nic, receive, NULL, a0.side.src_cq, &attrs, &msgq), GNI_RC_INVALID_PARAM);
    }
    assert_ptr_equal(msgq, (void *)0x77);
}

static void test_instances_must_agree_and_be_few_enough(void **state)
{
    gni_msgq_attr_t attrs = usual_attrs();
    gni_msgq_handle_t msgq;
    struct gx_side third;
    struct gx_side same;

    (void)state;
    assert_int_equal(init(&a0, usual_attrs()), GNI_RC_SUCCESS);
    assert_int_equal(init(&a0, usual_attrs()), GNI_RC_INVALID_STATE);   /* one queue per NIC handle */
    attrs.smsg_q_sz *= 2;
    assert_int_equal(init(&a1, attrs), GNI_RC_INVALID_STATE);
    attrs = usual_attrs();
    attrs.rcv_cq_sz++;
    assert_int_equal(init(&a1, attrs), GNI_RC_INVALID_STATE);
    attrs = usual_attrs();
    attrs.modes = GNI_MSGQ_MODE_BLOCKING;
    assert_int_equal(init(&a1, attrs), GNI_RC_INVALID_STATE);
    assert_int_equal(init(&b0, attrs), GNI_RC_SUCCESS);                 /* another node, another queue */
    gx_open(&same, &fx, 0, a0.side.inst_id, 0);                         /* sends could not tell them apart */
    attrs = usual_attrs();
    assert_int_equal(GNI_MsgqInit(same.nic, receive, NULL, same.src_cq, &attrs, &msgq), GNI_RC_INVALID_STATE);
    gx_close(&same);
    assert_int_equal(init(&a1, attrs), GNI_RC_SUCCESS);
    gx_open(&third, &fx, 0, 30, 0);
    assert_int_equal(GNI_MsgqInit(third.nic, receive, NULL, third.src_cq, &attrs, &msgq), GNI_RC_INVALID_STATE);
    gx_close(&third);
}

static void test_init_without_room_for_its_queue_says_so(void **state)
{
    gni_msgq_attr_t attrs = usual_attrs();
    gni_cq_handle_t cq[4];
    unsigned n = 0;

    (void)state;
    while (n < 4 && GNI_CqCreate(a0.side.nic, 1u << 20, 0, GNI_CQ_NOBLOCK, NULL, NULL, &cq[n]) == GNI_RC_SUCCESS)
        n++;
    attrs.rcv_cq_sz = 1u << 20;
    assert_int_equal(init(&a0, attrs), GNI_RC_ERROR_NOMEM);
    while (n > 0)
        assert_int_equal(GNI_CqDestroy(cq[--n]), GNI_RC_SUCCESS);
    assert_int_equal(init(&a0, attrs), GNI_RC_SUCCESS);     /* the failure has left nothing behind */
}

static void test_all_must_have_left_before_a_new_queue_is_made(void **state)
{
    gni_msgq_attr_t other = usual_attrs();

    (void)state;
    init_all(usual_attrs());
    assert_int_equal(GNI_MsgqRelease(a0.msgq), GNI_RC_SUCCESS);
    assert_int_equal(GNI_MsgqRelease(a0.msgq), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_MsgqIdle(a0.msgq), GNI_RC_INVALID_PARAM);
    assert_int_equal(progress(&a0), GNI_RC_INVALID_PARAM);
    assert_int_equal(init(&a0, usual_attrs()), GNI_RC_INVALID_STATE);
    assert_int_equal(GNI_MsgqRelease(a1.msgq), GNI_RC_SUCCESS);
    other.smsg_q_sz = 2;
    assert_int_equal(init(&a0, other), GNI_RC_SUCCESS);
}

static void test_size_is_whole_huge_pages_and_grows_with_the_attributes(void **state)
{
    gni_msgq_attr_t attrs = usual_attrs();
    uint32_t small = 0;
    uint32_t large = 0;

    (void)state;
    assert_int_equal(GNI_MsgqSize(&attrs, &small), GNI_RC_SUCCESS);
    assert_int_equal(small % (2u << 20), 0);
    assert_true(small > 0);
    attrs.num_msgq_eps = 2000;
    assert_int_equal(GNI_MsgqSize(&attrs, &large), GNI_RC_SUCCESS);
    assert_true(large > small && large % (2u << 20) == 0);
    attrs.num_msgq_eps = UINT32_MAX;
    assert_int_equal(GNI_MsgqSize(&attrs, &large), GNI_RC_INVALID_PARAM);
    attrs = usual_attrs();
    attrs.smsg_q_sz = 5;
    assert_int_equal(GNI_MsgqSize(&attrs, &large), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_MsgqSize(NULL, &large), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_MsgqSize(&attrs, NULL), GNI_RC_INVALID_PARAM);
}

static void test_release_and_idle_wait_for_entries_and_messages(void **state)
{
    (void)state;
    assert_int_equal(send_number(&a0, &b0, 1), GNI_RC_SUCCESS);
    assert_int_equal(GNI_MsgqIdle(a0.msgq), GNI_RC_NOT_DONE);
    assert_int_equal(GNI_MsgqRelease(a0.msgq), GNI_RC_NOT_DONE);
    complete(&a0, 1);
    assert_int_equal(GNI_MsgqIdle(a0.msgq), GNI_RC_SUCCESS);
    assert_int_equal(GNI_MsgqIdle(b0.msgq), GNI_RC_NOT_DONE);
    assert_int_equal(GNI_MsgqRelease(b0.msgq), GNI_RC_NOT_DONE);
    assert_int_equal(GNI_MsgqIdle(b1.msgq), GNI_RC_SUCCESS);            /* not its message */
    progress_until(&b0, 1);
    assert_int_equal(number_in(&b0.got[0]), 1);
    assert_int_equal(GNI_MsgqIdle(b0.msgq), GNI_RC_SUCCESS);
    for (unsigned n = 0; n < 4; n++)
        assert_int_equal(GNI_MsgqRelease(all[n]->msgq), GNI_RC_SUCCESS);
}

static void test_queue_outlives_the_cq_of_a_send_that_nobody_looked_at(void **state)
{
    (void)state;
    assert_int_equal(send_number(&a0, &b0, 1), GNI_RC_SUCCESS);
    assert_int_equal(GNI_EpDestroy(ep_to(&a0, &b0)), GNI_RC_SUCCESS);
    a0.ep[number_of(&b0)] = NULL;
    assert_int_equal(GNI_MsgqIdle(a0.msgq), GNI_RC_NOT_DONE);
    assert_int_equal(GNI_CqDestroy(a0.side.src_cq), GNI_RC_SUCCESS);
    assert_int_equal(GNI_MsgqRelease(a0.msgq), GNI_RC_SUCCESS);
    progress_until(&b0, 1);
}

/* ---- connections ---- */

static void test_attributes_describe_every_instance_of_the_node(void **state)
{
    gni_msgq_ep_attr_t attrs;
    uint32_t size = 0;

    (void)state;
    init_all(usual_attrs());
    assert_int_equal(GNI_MsgqGetConnAttrs(a1.msgq, b0.side.nic_addr, &attrs, &size), GNI_RC_SUCCESS);
    assert_int_equal(attrs.num_insts, 2);
    assert_int_equal(size, 16 + 2 * 32);
    assert_int_equal(attrs.pe_addr, a0.side.nic_addr);
    assert_int_equal(attrs.max_msg_sz, GNI_MSGQ_MSG_SZ_MAX);
    assert_int_equal(attrs.smsg_q_sz, CREDITS);
    assert_int_equal(attrs.insts[0].id + attrs.insts[1].id, a0.side.inst_id + a1.side.inst_id);
    assert_int_not_equal(attrs.insts[0].id, attrs.insts[1].id);
}

static void test_getting_attributes_has_its_codes(void **state)
{
    gni_msgq_attr_t one_node = usual_attrs();
    gni_msgq_ep_attr_t attrs;

    (void)state;
    one_node.num_msgq_eps = 1;
    assert_int_equal(init(&a0, one_node), GNI_RC_SUCCESS);
    assert_int_equal(GNI_MsgqGetConnAttrs(a0.msgq, 1, &attrs, NULL), GNI_RC_PERMISSION_ERROR); /* a1 is not in yet */
    assert_int_equal(init(&a1, one_node), GNI_RC_SUCCESS);
    assert_int_equal(GNI_MsgqGetConnAttrs(NULL, 1, &attrs, NULL), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_MsgqGetConnAttrs(a0.msgq, 1, NULL, NULL), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_MsgqGetConnAttrs(a0.msgq, 0, &attrs, NULL), GNI_RC_INVALID_PARAM);    /* its own node */
    assert_int_equal(GNI_MsgqGetConnAttrs(a0.msgq, 5000, &attrs, NULL), GNI_RC_INVALID_PARAM); /* no node of the job */
    assert_int_equal(GNI_MsgqGetConnAttrs(a0.msgq, 1, &attrs, NULL), GNI_RC_SUCCESS);
    assert_int_equal(GNI_MsgqGetConnAttrs(a1.msgq, 1, &attrs, NULL), GNI_RC_INVALID_STATE);
    assert_int_equal(GNI_MsgqGetConnAttrs(a1.msgq, 2, &attrs, NULL), GNI_RC_ERROR_RESOURCE);
    assert_int_equal(GNI_MsgqConnRelease(a1.msgq, 1), GNI_RC_SUCCESS);
    assert_int_equal(GNI_MsgqGetConnAttrs(a1.msgq, 2, &attrs, NULL), GNI_RC_SUCCESS);
    assert_int_equal(GNI_MsgqRelease(a0.msgq), GNI_RC_SUCCESS);
    assert_int_equal(GNI_MsgqGetConnAttrs(a1.msgq, 1, &attrs, NULL), GNI_RC_PERMISSION_ERROR); /* being torn down */
}

static void test_connecting_has_its_codes(void **state)
{
    gni_msgq_ep_attr_t of_a, of_b, bad;

    (void)state;
    init_all(usual_attrs());
    assert_int_equal(GNI_MsgqGetConnAttrs(b0.msgq, 0, &of_b, NULL), GNI_RC_SUCCESS);
    assert_int_equal(GNI_MsgqConnect(a0.msgq, 1, &of_b), GNI_RC_NO_MATCH);      /* nothing assigned here */
    assert_int_equal(GNI_MsgqGetConnAttrs(a0.msgq, 1, &of_a, NULL), GNI_RC_SUCCESS);
    assert_int_equal(GNI_MsgqConnect(NULL, 1, &of_b), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_MsgqConnect(a0.msgq, 1, NULL), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_MsgqConnect(a0.msgq, 1, &of_a), GNI_RC_INVALID_PARAM); /* its own */
    bad = of_b;
    bad.num_insts = GNI_MSGQ_NODE_INSTS_MAX + 1;
    assert_int_equal(GNI_MsgqConnect(a0.msgq, 1, &bad), GNI_RC_INVALID_PARAM);
    bad = of_b;
    bad.max_msg_sz = GNI_MSGQ_MSG_SZ_MAX + 1;
    assert_int_equal(GNI_MsgqConnect(a0.msgq, 1, &bad), GNI_RC_INVALID_PARAM);
    bad = of_b;
    memset(&bad.insts[1].mdh, 0, sizeof(bad.insts[1].mdh));
    assert_int_equal(GNI_MsgqConnect(a0.msgq, 1, &bad), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_MsgqConnect(a1.msgq, 1, &of_b), GNI_RC_SUCCESS);
    assert_int_equal(GNI_MsgqConnect(a0.msgq, 1, &of_b), GNI_RC_INVALID_STATE); /* by the other instance */
    assert_int_equal(GNI_MsgqRelease(b1.msgq), GNI_RC_SUCCESS);
    assert_int_equal(GNI_MsgqConnect(b0.msgq, 0, &of_a), GNI_RC_PERMISSION_ERROR);
}

static void test_releasing_a_connection_has_its_codes(void **state)
{
    (void)state;
    assert_int_equal(GNI_MsgqConnRelease(NULL, 1), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_MsgqConnRelease(a0.msgq, 2), GNI_RC_NO_MATCH);
    /* More than the pool takes: some stay in the mailbox. */
    for (uint32_t i = 0; i < POOLED + 1; i++)
        send_surely(&a0, &b1, i, &b0);
    assert_int_equal(GNI_MsgqConnRelease(b0.msgq, 0), GNI_RC_NOT_DONE);
    progress_until(&b1, POOLED + 1);
    assert_int_equal(GNI_MsgqConnRelease(b0.msgq, 0), GNI_RC_SUCCESS);
    assert_int_equal(GNI_MsgqConnRelease(b1.msgq, 0), GNI_RC_NO_MATCH);
}

static bool send_is_refused(void *arg)
{
    (void)arg;
    return send_number(&a1, &b0, 2) == GNI_RC_INVALID_STATE;
}

static void test_released_connection_is_told_and_can_be_made_again(void **state)
{
    (void)state;
    send_surely(&a0, &b0, 1, &b0);
    progress_until(&b0, 1);
    assert_int_equal(GNI_MsgqConnRelease(b1.msgq, 0), GNI_RC_SUCCESS);
    assert_true(eventually(send_is_refused, NULL, PATIENCE_NS));
    assert_int_equal(send_number(&b0, &a0, 1), GNI_RC_NO_MATCH);
    assert_int_equal(GNI_MsgqConnRelease(a0.msgq, 1), GNI_RC_SUCCESS);
    assert_int_equal(send_number(&a0, &b0, 1), GNI_RC_NO_MATCH);
    for (unsigned round = 0; round < 5; round++) {
        unsigned before = b0.n_got;

        connect_nodes(&a1, &b1);
        for (uint32_t i = 0; i < 3 * CREDITS; i++)
            send_surely(&a0, &b0, 100 * round + i, &b0);
        progress_until(&b0, before + 3 * CREDITS);
        for (uint32_t i = 0; i < 3 * CREDITS; i++)
            assert_int_equal(number_in(&b0.got[before + i]), 100 * round + i);
        assert_int_equal(GNI_MsgqConnRelease(a0.msgq, 1), GNI_RC_SUCCESS);
        assert_int_equal(GNI_MsgqConnRelease(b0.msgq, 0), GNI_RC_SUCCESS);
    }
}

static void test_messages_may_come_before_the_receiver_connects(void **state)
{
    gni_msgq_ep_attr_t of_a, of_b;

    (void)state;
    init_all(usual_attrs());
    assert_int_equal(GNI_MsgqGetConnAttrs(a0.msgq, 1, &of_a, NULL), GNI_RC_SUCCESS);
    assert_int_equal(GNI_MsgqGetConnAttrs(b0.msgq, 0, &of_b, NULL), GNI_RC_SUCCESS);
    assert_int_equal(send_number(&a0, &b1, 5), GNI_RC_INVALID_STATE);
    assert_int_equal(GNI_MsgqConnect(a0.msgq, 1, &of_b), GNI_RC_SUCCESS);
    for (uint32_t i = 0; i < CREDITS; i++)
        assert_int_equal(send_number(&a0, &b1, i), GNI_RC_SUCCESS);
    complete(&a0, CREDITS);
    progress_until(&b1, CREDITS);                   /* taken, but credits cannot be returned yet */
    assert_int_equal(send_number(&a0, &b1, 99), GNI_RC_NOT_DONE);
    assert_int_equal(GNI_MsgqConnect(b0.msgq, 0, &of_a), GNI_RC_SUCCESS);
    send_surely(&a0, &b1, 99, &b0);
    progress_until(&b1, CREDITS + 1);
}

/* ---- sending ---- */

static void test_send_has_its_codes(void **state)
{
    char bytes[GNI_MSGQ_MSG_SZ_MAX + 1] = { 0 };
    gni_ep_handle_t unbound, without_cq, nobody, nowhere;

    (void)state;
    assert_int_equal(GNI_EpCreate(a0.side.nic, a0.side.src_cq, &unbound), GNI_RC_SUCCESS);
    assert_int_equal(GNI_EpCreate(a0.side.nic, NULL, &without_cq), GNI_RC_SUCCESS);
    assert_int_equal(GNI_EpBind(without_cq, 1, b0.side.inst_id), GNI_RC_SUCCESS);
    assert_int_equal(GNI_EpCreate(a0.side.nic, a0.side.src_cq, &nobody), GNI_RC_SUCCESS);
    assert_int_equal(GNI_EpBind(nobody, 1, 9999), GNI_RC_SUCCESS);
    assert_int_equal(GNI_EpCreate(a0.side.nic, a0.side.src_cq, &nowhere), GNI_RC_SUCCESS);
    assert_int_equal(GNI_EpBind(nowhere, 2, b0.side.inst_id), GNI_RC_SUCCESS);
    assert_int_equal(GNI_MsgqSend(NULL, ep_to(&a0, &b0), bytes, 1, NULL, 0, 0, 0), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_MsgqSend(a0.msgq, NULL, bytes, 1, NULL, 0, 0, 0), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_MsgqSend(a0.msgq, ep_to(&a1, &b0), bytes, 1, NULL, 0, 0, 0), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_MsgqSend(a0.msgq, ep_to(&a0, &b0), NULL, 1, NULL, 0, 0, 0), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_MsgqSend(a0.msgq, ep_to(&a0, &b0), NULL, 0, NULL, 1, 0, 0), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_MsgqSend(a0.msgq, unbound, bytes, 1, NULL, 0, 0, 0), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_MsgqSend(a0.msgq, without_cq, bytes, 1, NULL, 0, 0, 0), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_MsgqSend(a0.msgq, nowhere, bytes, 1, NULL, 0, 0, 0), GNI_RC_NO_MATCH);
    assert_int_equal(GNI_MsgqSend(a0.msgq, nobody, bytes, 1, NULL, 0, 0, 0), GNI_RC_NO_MATCH);
    assert_int_equal(GNI_MsgqSend(a0.msgq, ep_to(&a0, &b0), bytes, 1, bytes, GNI_MSGQ_MSG_SZ_MAX, 0, 0),
                     GNI_RC_SIZE_ERROR);
    assert_int_equal(GNI_MsgqSend(a0.msgq, ep_to(&a0, &b0), bytes, UINT32_MAX, bytes, 1, 0, 0), GNI_RC_SIZE_ERROR);
    GNI_EpDestroy(unbound);
    GNI_EpDestroy(without_cq);
    GNI_EpDestroy(nobody);
    GNI_EpDestroy(nowhere);
    /* Nothing of that went anywhere. */
    assert_int_equal(progress(&b0), GNI_RC_SUCCESS);
    assert_int_equal(b0.n_got, 0);
    assert_int_equal(GNI_MsgqIdle(a0.msgq), GNI_RC_SUCCESS);
}

static void test_every_send_has_an_entry_with_its_msg_id(void **state)
{
    gni_cq_entry_t entry;

    (void)state;
    for (uint32_t i = 0; i < CREDITS; i++)
        assert_int_equal(GNI_MsgqSend(a1.msgq, ep_to(&a1, &b0), NULL, 0, NULL, 0, 0xfffffff0u + i, 0), GNI_RC_SUCCESS);
    assert_int_equal(GNI_EpUnbind(ep_to(&a1, &b0)), GNI_RC_NOT_DONE);
    for (uint32_t i = 0; i < CREDITS; i++) {
        assert_int_equal(gx_next(a1.side.src_cq, &entry), GNI_RC_SUCCESS);
        assert_int_equal(GNI_CQ_GET_TYPE(entry), GNI_CQ_EVENT_TYPE_MSGQ);
        assert_int_equal(GNI_CQ_GET_MSG_ID(entry), 0xfffffff0u + i);
        assert_true(GNI_CQ_STATUS_OK(entry));
    }
    assert_int_equal(GNI_CqGetEvent(a1.side.src_cq, &entry), GNI_RC_NOT_DONE);
    assert_int_equal(GNI_EpUnbind(ep_to(&a1, &b0)), GNI_RC_SUCCESS);
    assert_int_equal(GNI_CqGetEvent(b0.side.dst_cq, &entry), GNI_RC_NOT_DONE);  /* the program's queues see nothing */
    progress_until(&b0, CREDITS);
}

static void test_credits_are_the_nodes_and_come_back(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < CREDITS; i++)
        assert_int_equal(send_number(i % 2 ? &a0 : &a1, &b0, i), GNI_RC_SUCCESS);
    assert_int_equal(send_number(&a0, &b0, 77), GNI_RC_NOT_DONE);
    assert_int_equal(send_number(&a1, &b1, 77), GNI_RC_NOT_DONE);
    complete(&a0, CREDITS / 2);
    complete(&a1, CREDITS / 2);
    progress_until(&b0, CREDITS);
    for (uint32_t i = 0; i < CREDITS; i++) {
        assert_int_equal(number_in(&b0.got[i]), i);
        assert_int_equal(b0.got[i].tag, i);
        assert_int_equal(b0.got[i].snd_pe, 0);
        assert_int_equal(b0.got[i].snd_id, i % 2 ? a0.side.inst_id : a1.side.inst_id);
    }
    for (uint32_t i = 0; i < 10 * CREDITS; i++)
        send_surely(&a0, i % 2 ? &b0 : &b1, i, i % 2 ? &b0 : &b1);
    progress_until(&b0, CREDITS + 5 * CREDITS);
    progress_until(&b1, 5 * CREDITS);
}

static int open_connected_with_one_credit(void **state)
{
    gni_msgq_attr_t attrs = usual_attrs();

    (void)state;
    attrs.smsg_q_sz = 1;
    attrs.rcv_pool_sz = 0;
    attrs.max_msg_sz = 4;
    return open_connected_with(attrs);
}

static void test_one_credit_and_no_pool_are_enough(void **state)
{
    (void)state;
    assert_int_equal(GNI_MsgqSend(a0.msgq, ep_to(&a0, &b0), "12345", 5, NULL, 0, 0, 0), GNI_RC_SIZE_ERROR);
    for (uint32_t i = 0; i < 20; i++) {
        struct inst *to = i % 2 ? &b0 : &b1;

        send_surely(&a0, to, i, i % 2 ? &b1 : &b0);
        assert_int_equal(send_number(&a1, to, 99), GNI_RC_NOT_DONE);
        progress_until(to, i / 2 + 1);
        assert_int_equal(number_in(&to->got[i / 2]), i);
    }
}

static int open_connected_exact(void **state)
{
    setenv("EMUNIC_CQ_FLOOR", "0", 1);
    return open_connected(state);
}

static void test_send_needs_room_in_its_queue(void **state)
{
    gni_cq_entry_t entry;
    gni_cq_handle_t cq;
    gni_ep_handle_t ep;

    (void)state;
    assert_int_equal(GNI_CqCreate(a0.side.nic, 2, 0, GNI_CQ_NOBLOCK, NULL, NULL, &cq), GNI_RC_SUCCESS);
    assert_int_equal(GNI_EpCreate(a0.side.nic, cq, &ep), GNI_RC_SUCCESS);
    assert_int_equal(GNI_EpBind(ep, 1, b0.side.inst_id), GNI_RC_SUCCESS);
    for (uint32_t i = 0; i < 2; i++)
        assert_int_equal(GNI_MsgqSend(a0.msgq, ep, NULL, 0, NULL, 0, i, 0), GNI_RC_SUCCESS);
    assert_int_equal(GNI_MsgqSend(a0.msgq, ep, NULL, 0, NULL, 0, 2, 0), GNI_RC_NOT_DONE);
    assert_int_equal(gx_next(cq, &entry), GNI_RC_SUCCESS);
    assert_int_equal(GNI_MsgqSend(a0.msgq, ep, NULL, 0, NULL, 0, 2, 0), GNI_RC_SUCCESS);
    progress_until(&b0, 3);
    assert_int_equal(GNI_EpDestroy(ep), GNI_RC_SUCCESS);
    assert_int_equal(GNI_CqDestroy(cq), GNI_RC_SUCCESS);
}

static void test_header_and_data_of_every_size_arrive_together(void **state)
{
    struct emu_random random = seeded(11);
    uint8_t bytes[GNI_MSGQ_MSG_SZ_MAX];

    (void)state;
    for (uint32_t size = 0; size <= GNI_MSGQ_MSG_SZ_MAX; size++) {
        uint32_t hdr_len = size ? (uint32_t)(emu_random_next(&random) % (size + 1)) : 0;
        uint64_t end_ns = emu_clock_ns() + PATIENCE_NS;
        gni_return_t rc;

        for (uint32_t i = 0; i < size; i++)
            bytes[i] = (uint8_t)emu_random_next(&random);
        do {
            rc = GNI_MsgqSend(a0.msgq, ep_to(&a0, &b0), bytes, hdr_len, bytes + hdr_len, size - hdr_len, size,
                              (uint8_t)(255 - size));
        } while (rc == GNI_RC_NOT_DONE && emu_clock_ns() < end_ns);
        assert_int_equal(rc, GNI_RC_SUCCESS);
        complete(&a0, 1);
        progress_until(&b0, size + 1);
        assert_memory_equal(b0.got[size].bytes, bytes, size);
        assert_int_equal(b0.got[size].tag, (uint8_t)(255 - size));
    }
}

/* ---- progress ---- */

static void test_only_a_blocking_queue_takes_a_timeout(void **state)
{
    (void)state;
    assert_int_equal(GNI_MsgqProgress(a0.msgq, 0), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_MsgqProgress(a0.msgq, 10), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_MsgqProgress(NULL, DO_NOT_BLOCK), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_MsgqProgress((gni_msgq_handle_t)a0.side.nic, DO_NOT_BLOCK), GNI_RC_INVALID_PARAM);
    assert_int_equal(progress(&a0), GNI_RC_SUCCESS);
}

static void test_callback_ends_the_call_with_zero(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < 4; i++)
        send_surely(&a0, &b0, i, &b1);
    b0.answer = 0;
    for (unsigned i = 1; i <= 4; i++) {
        assert_int_equal(progress(&b0), GNI_RC_NOT_DONE);
        assert_int_equal(b0.n_got, i);
    }
    assert_int_equal(progress(&b0), GNI_RC_SUCCESS);
    b0.answer = 1;
    for (uint32_t i = 4; i < 8; i++)
        send_surely(&a0, &b0, i, &b1);
    assert_int_equal(progress(&b0), GNI_RC_SUCCESS);
    assert_int_equal(b0.n_got, 8);
    for (uint32_t i = 0; i < 8; i++)
        assert_int_equal(number_in(&b0.got[i]), i);
}

static int answer_at_once(uint32_t snd_id, uint32_t snd_pe, void *msg, uint8_t msg_tag, void *cb_data)
{
    uint32_t number;

    memcpy(&number, msg, sizeof(number));
    if (send_number(&b0, &a0, number + 1) != GNI_RC_SUCCESS)
        return 0;
    GNI_MsgqProgress(b0.msgq, DO_NOT_BLOCK);        /* allowed as well */
    return receive(snd_id, snd_pe, msg, msg_tag, cb_data);
}

static void test_callback_may_send(void **state)
{
    gni_msgq_attr_t attrs = usual_attrs();

    (void)state;
    assert_int_equal(init(&a0, attrs), GNI_RC_SUCCESS);
    assert_int_equal(init(&a1, attrs), GNI_RC_SUCCESS);
    assert_int_equal(init(&b1, attrs), GNI_RC_SUCCESS);
    assert_int_equal(GNI_MsgqInit(b0.side.nic, answer_at_once, &b0, b0.side.src_cq, &attrs, &b0.msgq), GNI_RC_SUCCESS);
    connect_nodes(&a0, &b0);
    for (uint32_t i = 0; i < 4; i++)
        send_surely(&a0, &b0, 10 * i, &b1);
    progress_until(&b0, 4);
    complete(&b0, 4);
    progress_until(&a0, 4);
    for (uint32_t i = 0; i < 4; i++)
        assert_int_equal(number_in(&a0.got[i]) % 10, 1);
}

static void test_foreign_event_in_the_receive_queue_is_told_once(void **state)
{
    gni_msgq_ep_attr_t of_b;
    gni_post_descriptor_t write = { .type = GNI_POST_CQWRITE, .cq_mode = GNI_CQMODE_GLOBAL_EVENT,
                                    .cqwrite_value = 0xabcdef };
    gni_post_descriptor_t *done;

    (void)state;
    init_all(usual_attrs());
    assert_int_equal(GNI_MsgqGetConnAttrs(b0.msgq, 0, &of_b, NULL), GNI_RC_SUCCESS);
    assert_int_equal(GNI_MsgqConnRelease(b0.msgq, 0), GNI_RC_SUCCESS);
    connect_nodes(&a0, &b0);
    for (uint32_t i = 0; i < of_b.num_insts; i++) {
        if (of_b.insts[i].id == b0.side.inst_id)
            write.remote_mem_hndl = of_b.insts[i].mdh;
    }
    send_surely(&a0, &b0, 1, &b1);
    assert_int_equal(GNI_PostCqWrite(ep_to(&a0, &b0), &write), GNI_RC_SUCCESS);
    assert_int_equal(gx_complete(a0.side.src_cq, &done), GNI_RC_SUCCESS);
    assert_int_equal(progress(&b0), GNI_RC_INVALID_STATE);
    assert_int_equal(b0.n_got, 1);                  /* no message is lost over it */
    assert_int_equal(progress(&b0), GNI_RC_SUCCESS);
}

static int open_connected_with_small_queue(void **state)
{
    gni_msgq_attr_t attrs = usual_attrs();

    (void)state;
    attrs.rcv_cq_sz = 1;
    attrs.smsg_q_sz = 64;
    return open_connected_with(attrs);
}

static void test_overrun_of_the_receive_queue_loses_nothing(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < 64; i++)
        assert_int_equal(send_number(&a0, &b0, i), GNI_RC_SUCCESS);
    complete(&a0, 64);
    progress_until(&b0, 64);
    for (uint32_t i = 0; i < 64; i++)
        assert_int_equal(number_in(&b0.got[i]), i);
    send_surely(&a0, &b0, 64, &b1);
    progress_until(&b0, 65);
}

/* ---- pools ---- */

static void test_instance_that_does_not_look_holds_up_the_others_late(void **state)
{
    unsigned for_b1 = 0;
    unsigned for_b0 = 0;

    (void)state;
    /* Its pool and all but one slot of the mailbox are full before anybody else notices. */
    while (for_b1 < POOLED + CREDITS - 1)
        send_surely(&a0, &b1, for_b1++, &b0);
    while (for_b0 < 3 && send_number(&a1, &b0, for_b0) == GNI_RC_SUCCESS)
        progress_until(&b0, ++for_b0);
    assert_true(for_b0 >= 1);
    progress_until(&b1, for_b1);
    for (uint32_t i = 0; i < for_b1; i++)
        assert_int_equal(number_in(&b1.got[i]), i);     /* in order through pool and mailbox */
    while (for_b0 < 3 * CREDITS)
        send_surely(&a0, &b0, for_b0++, &b0);
    progress_until(&b0, for_b0);
}

/* ---- blocking; leaving; dying ---- */

static int open_connected_blocking(void **state)
{
    gni_msgq_attr_t attrs = usual_attrs();

    (void)state;
    attrs.modes = GNI_MSGQ_MODE_BLOCKING;
    return open_connected_with(attrs);
}

static void test_blocking_progress_waits_its_time(void **state)
{
    uint64_t start_ns = emu_clock_ns();

    (void)state;
    assert_int_equal(GNI_MsgqProgress(b0.msgq, 30), GNI_RC_SUCCESS);
    assert_true(emu_clock_ns() - start_ns >= 30000000);
    assert_int_equal(GNI_MsgqProgress(b0.msgq, 0), GNI_RC_SUCCESS);
    assert_int_equal(progress(&b0), GNI_RC_SUCCESS);        /* -1: does not block here either */
    send_surely(&a0, &b0, 3, &b1);
    b0.answer = 0;
    assert_int_equal(GNI_MsgqProgress(b0.msgq, 1000000), GNI_RC_NOT_DONE);
    assert_int_equal(b0.n_got, 1);
}

static void *wait_for_message(void *arg)
{
    struct inst *i = arg;

    return (void *)(uintptr_t)GNI_MsgqProgress(i->msgq, 1000000);
}

static void test_message_wakes_a_sleeper(void **state)
{
    pthread_t thread;
    void *rc;

    (void)state;
    setenv("EMUNIC_SPIN", "0", 1);
    b0.answer = 0;
    for (uint32_t i = 0; i < 20; i++) {
        assert_int_equal(pthread_create(&thread, NULL, wait_for_message, &b0), 0);
        send_surely(&a0, &b0, i, &b1);
        assert_int_equal(pthread_join(thread, &rc), 0);
        assert_int_equal((uintptr_t)rc, GNI_RC_NOT_DONE);
        assert_int_equal(b0.n_got, i + 1);
    }
    unsetenv("EMUNIC_SPIN");
}

static void test_destroyed_domain_ends_a_sleeper(void **state)
{
    pthread_t thread;
    void *rc;

    (void)state;
    assert_int_equal(pthread_create(&thread, NULL, wait_for_message, &b0), 0);
    close_inst(&b0);
    assert_int_equal(pthread_join(thread, &rc), 0);
    /* It may not have got as far as finding the queue. */
    assert_true((uintptr_t)rc == GNI_RC_INVALID_STATE || (uintptr_t)rc == GNI_RC_INVALID_PARAM);
}

static void test_instance_that_goes_leaves_the_others_their_queue(void **state)
{
    unsigned sent = 0;

    (void)state;
    for (; sent < POOLED + 2; sent++)
        send_surely(&a0, &b1, sent, &b0);           /* some in its pool, some in the mailbox */
    close_inst(&b1);                                /* without a release, as if it had died */
    assert_int_equal(GNI_MsgqSend(a0.msgq, a0.ep[3], NULL, 0, NULL, 0, 0, 0), GNI_RC_INVALID_STATE);
    for (uint32_t i = 0; i < 5 * CREDITS; i++)
        send_surely(i % 2 ? &a0 : &a1, &b0, i, &b0);
    progress_until(&b0, 5 * CREDITS);
    for (uint32_t i = 0; i < 5 * CREDITS; i++) {
        assert_int_equal(number_in(&b0.got[i]), i);
        send_surely(&b0, i % 2 ? &a0 : &a1, i, i % 2 ? &a0 : &a1);
    }
    progress_until(&a0, 5 * CREDITS / 2);
    progress_until(&a1, 5 * CREDITS / 2);
    /* Another one may take the place; its node tells the others by a new connection. */
    open_inst(&b1);
    assert_int_equal(init(&b1, usual_attrs()), GNI_RC_SUCCESS);
    assert_int_equal(GNI_MsgqConnRelease(a0.msgq, 1), GNI_RC_SUCCESS);
    assert_int_equal(GNI_MsgqConnRelease(b0.msgq, 0), GNI_RC_SUCCESS);
    connect_nodes(&a0, &b1);
    send_surely(&a0, &b1, 4711, &b1);
    progress_until(&b1, 1);
    assert_int_equal(number_in(&b1.got[0]), 4711);
}

static void test_leader_may_go(void **state)
{
    (void)state;
    close_inst(&a0);                                /* it had made the connection */
    close_inst(&b0);
    for (uint32_t i = 0; i < 3 * CREDITS; i++)
        send_surely(&a1, &b1, i, &b1);
    progress_until(&b1, 3 * CREDITS);
    assert_int_equal(GNI_MsgqConnRelease(a1.msgq, 1), GNI_RC_SUCCESS);
    assert_int_equal(GNI_MsgqConnRelease(b1.msgq, 0), GNI_RC_SUCCESS);
    assert_int_equal(GNI_MsgqRelease(a1.msgq), GNI_RC_SUCCESS);
    assert_int_equal(GNI_MsgqRelease(b1.msgq), GNI_RC_SUCCESS);
}

static void test_node_without_instances_refuses_sends(void **state)
{
    (void)state;
    close_inst(&b0);
    ep_to(&a0, &b1);
    close_inst(&b1);
    assert_int_equal(GNI_MsgqSend(a0.msgq, a0.ep[3], NULL, 0, NULL, 0, 0, 0), GNI_RC_INVALID_STATE);
    assert_int_equal(progress(&a0), GNI_RC_SUCCESS);
    assert_int_equal(GNI_MsgqConnRelease(a0.msgq, 1), GNI_RC_SUCCESS);
    assert_int_equal(GNI_MsgqRelease(a0.msgq), GNI_RC_SUCCESS);
}

static void test_lost_nic_ends_the_queue(void **state)
{
    gni_cq_entry_t entry;
    uint64_t end_ns = emu_clock_ns() + PATIENCE_NS;

    (void)state;
    fx_set_routed(&fx, true);
    assert_int_equal(kill(fx.daemon, SIGSTOP), 0);
    assert_int_equal(send_number(&a0, &b0, 321), GNI_RC_SUCCESS);
    assert_int_equal(kill(fx.daemon, SIGKILL), 0);
    assert_int_equal(gx_next(a0.side.src_cq, &entry), GNI_RC_TRANSACTION_ERROR);
    assert_int_equal(GNI_CQ_GET_TYPE(entry), GNI_CQ_EVENT_TYPE_MSGQ);
    assert_int_equal(GNI_CQ_GET_MSG_ID(entry), 321);
    assert_false(GNI_CQ_STATUS_OK(entry));
    assert_int_equal(send_number(&a0, &b0, 1), GNI_RC_INVALID_STATE);
    while (progress(&b0) == GNI_RC_SUCCESS && emu_clock_ns() < end_ns)
        ;
    assert_int_equal(progress(&b0), GNI_RC_INVALID_STATE);
    assert_int_equal(GNI_MsgqRelease(a0.msgq), GNI_RC_SUCCESS);
}

/* ---- garbage ---- */

/* This process's mappings of a node's region. */
static unsigned find_regions(uint8_t *regions[8])
{
    FILE *maps = fopen("/proc/self/maps", "re");
    unsigned n = 0;
    char line[512];

    assert_non_null(maps);
    while (fgets(line, sizeof(line), maps)) {
        unsigned long long first;

        if (strstr(line, "memfd:emunic-msgq") && sscanf(line, "%llx-", &first) == 1 && n < 8)
            regions[n++] = (uint8_t *)(uintptr_t)first;
    }
    fclose(maps);
    return n;
}

static bool is_documented(gni_return_t rc)
{
    return rc == GNI_RC_SUCCESS || rc == GNI_RC_NOT_DONE || rc == GNI_RC_NO_MATCH || rc == GNI_RC_INVALID_STATE ||
           rc == GNI_RC_SIZE_ERROR || rc == GNI_RC_ERROR_RESOURCE || rc == GNI_RC_PERMISSION_ERROR ||
           rc == GNI_RC_INVALID_PARAM;
}

/* Sends and looks while words of the regions change. */
static void work_with_garbage(struct emu_random *random, uint8_t *const *regions, unsigned n_regions)
{
    struct inst *from = all[emu_random_below(random, 4)];
    struct inst *to = all[(number_of(from) < 2 ? 2 : 0) + emu_random_below(random, 2)];
    uint32_t *words = (uint32_t *)regions[emu_random_below(random, n_regions)];
    uint32_t pe = 1 - node_of[number_of(from)];
    gni_msgq_ep_attr_t attrs = { .pe_addr = 1 };
    gni_cq_entry_t entry;

    words[emu_random_below(random, 6000)] = (uint32_t)(emu_random_next(random) >> emu_random_below(random, 64));
    assert_true(is_documented(send_number(from, to, 1)));
    assert_true(is_documented(progress(to)));
    while (GNI_CqGetEvent(from->side.src_cq, &entry) != GNI_RC_NOT_DONE)
        ;
    if (emu_random_below(random, 16) > 0)
        return;
    assert_true(is_documented(GNI_MsgqConnRelease(from->msgq, pe)));
    assert_true(is_documented(GNI_MsgqGetConnAttrs(from->msgq, pe, &attrs, NULL)));
    assert_true(is_documented(GNI_MsgqConnect(to->msgq, 1 - pe, &attrs)));
    assert_true(is_documented(GNI_MsgqIdle(from->msgq)));
}

/* Any word at any time: calls may say anything, but they return, and touch nothing else (sanitizers look). */
static void test_garbage_in_the_region_breaks_messages_only(void **state)
{
    struct emu_random random = seeded(1234);
    uint8_t *regions[8];

    for (unsigned round = 0; round < 40; round++) {
        unsigned n_regions = find_regions(regions);

        assert_int_equal(n_regions, 4);
        for (unsigned i = 0; i < 300; i++)
            work_with_garbage(&random, regions, n_regions);
        close_nodes(state);
        open_connected(state);
    }
    /* A new queue is as good as any. */
    send_surely(&a0, &b0, 1, &b0);
    progress_until(&b0, 1);
}

/* ---- traffic between processes ---- */

#define RANKS     6u
#define NODES     3u
#define PER_NODE  (RANKS / NODES)
#define NOBODY    UINT32_MAX

struct board {                          /* what the ranks share */
    gni_msgq_ep_attr_t attrs[NODES][NODES];
    _Atomic uint32_t pid[RANKS];
    _Atomic uint32_t n_done;
};
_Static_assert(sizeof(struct board) <= FX_SHARED_BYTES, "the fixture's memory");

struct traffic {
    uint32_t messages;                  /* to each instance of another node */
    uint32_t victim;                    /* rank that dies, or NOBODY */
    uint32_t victim_steps;              /* after so many of its own steps; 0: killed by the last rank ... */
    uint32_t victim_messages;           /* ... when that has so many messages of it */
    bool blocks;
    gni_msgq_attr_t attrs;
    uint64_t seed;
};

struct rank {
    struct fx_rank *fr;
    const struct traffic *t;
    struct board *board;
    gni_cdm_handle_t cdm;
    gni_nic_handle_t nic;
    gni_cq_handle_t cq;
    gni_msgq_handle_t msgq;
    gni_ep_handle_t ep[RANKS];
    uint32_t sent[RANKS];
    uint32_t received[RANKS];
    bool is_gone[RANKS];
};

/* The first words of a message; the rest follows from them. */
struct head {
    uint32_t from;
    uint32_t to;
    uint32_t number;
    uint32_t size;
};

static uint8_t byte_at(const struct head *h, uint32_t i)
{
    return (uint8_t)((h->from * 2654435761u + h->to * 40503u + h->number * 2246822519u + i * 3266489917u) >> 11);
}

static uint32_t size_of(const struct traffic *t, uint32_t from, uint32_t to, uint32_t number)
{
    struct emu_random random = { .state = t->seed + from * 131u + to * 17u + number };

    return (uint32_t)(sizeof(struct head) + emu_random_next(&random) % (GNI_MSGQ_MSG_SZ_MAX - sizeof(struct head) + 1));
}

static int check_message(uint32_t snd_id, uint32_t snd_pe, void *msg, uint8_t msg_tag, void *cb_data)
{
    struct rank *r = cb_data;
    const uint8_t *bytes = (const uint8_t *)msg + sizeof(struct head);
    struct head h;

    memcpy(&h, msg, sizeof(h));
    FX_CHECK(h.from < RANKS && h.to == r->fr->rank);
    FX_CHECK(snd_id == 100 + h.from && snd_pe == r->fr->fx->nids[h.from] && msg_tag == (uint8_t)h.number);
    FX_CHECK(h.number == r->received[h.from]);          /* in order, none lost, none twice */
    FX_CHECK(h.size == size_of(r->t, h.from, h.to, h.number));
    for (uint32_t i = 0; i < h.size - sizeof(h); i++)
        FX_CHECK(bytes[i] == byte_at(&h, i));
    r->received[h.from]++;
    return 1;
}

static uint32_t node_of_rank(uint32_t rank)
{
    return rank / PER_NODE;
}

static void open_rank(struct rank *r)
{
    struct fx_rank *fr = r->fr;
    gni_msgq_attr_t attrs = r->t->attrs;
    uint32_t addr;

    FX_CHECK(GNI_CdmCreate(100 + fr->rank, (uint8_t)fr->fx->ptag, fr->fx->cookie, GNI_CDM_MODE_ERR_NO_KILL, &r->cdm) ==
             GNI_RC_SUCCESS);
    FX_CHECK(GNI_CdmAttach(r->cdm, 0, &addr, &r->nic) == GNI_RC_SUCCESS);
    FX_CHECK(GNI_CqCreate(r->nic, 256, 0, GNI_CQ_NOBLOCK, NULL, NULL, &r->cq) == GNI_RC_SUCCESS);
    FX_CHECK(GNI_MsgqInit(r->nic, check_message, r, r->cq, &attrs, &r->msgq) == GNI_RC_SUCCESS);
    for (uint32_t peer = 0; peer < RANKS; peer++) {
        if (node_of_rank(peer) == node_of_rank(fr->rank))
            continue;
        FX_CHECK(GNI_EpCreate(r->nic, r->cq, &r->ep[peer]) == GNI_RC_SUCCESS);
        FX_CHECK(GNI_EpBind(r->ep[peer], fr->fx->nids[peer], 100 + peer) == GNI_RC_SUCCESS);
    }
    r->board->pid[fr->rank] = (uint32_t)getpid();
}

/* As the specification tells: one leader per node. */
static void connect_rank(struct rank *r)
{
    uint32_t own = node_of_rank(r->fr->rank);
    bool leads = r->fr->rank % PER_NODE == 0;

    pthread_barrier_wait(r->fr->barrier);
    for (uint32_t node = 0; leads && node < NODES; node++) {
        uint32_t size;

        if (node == own)
            continue;
        FX_CHECK(GNI_MsgqGetConnAttrs(r->msgq, r->fr->fx->nids[node * PER_NODE], &r->board->attrs[own][node], &size) ==
                 GNI_RC_SUCCESS);
        FX_CHECK(size == 16 + 32 * PER_NODE);
    }
    pthread_barrier_wait(r->fr->barrier);
    for (uint32_t node = 0; leads && node < NODES; node++) {
        if (node != own)
            FX_CHECK(GNI_MsgqConnect(r->msgq, r->fr->fx->nids[node * PER_NODE], &r->board->attrs[node][own]) ==
                     GNI_RC_SUCCESS);
    }
    pthread_barrier_wait(r->fr->barrier);
}

static void send_next(struct rank *r, uint32_t peer)
{
    struct head h = { .from = r->fr->rank, .to = peer, .number = r->sent[peer] };
    uint8_t bytes[GNI_MSGQ_MSG_SZ_MAX];
    gni_return_t rc;

    h.size = size_of(r->t, h.from, h.to, h.number);
    for (uint32_t i = 0; i < h.size - sizeof(h); i++)
        bytes[i] = byte_at(&h, i);
    rc = GNI_MsgqSend(r->msgq, r->ep[peer], &h, sizeof(h), bytes, h.size - (uint32_t)sizeof(h), h.number,
                      (uint8_t)h.number);
    if (rc == GNI_RC_SUCCESS)
        r->sent[peer]++;
    else if (rc == GNI_RC_INVALID_STATE && peer == r->t->victim)
        r->is_gone[peer] = true;
    else
        FX_CHECK(rc == GNI_RC_NOT_DONE);
}

static void take_entries(struct rank *r)
{
    gni_cq_entry_t entry;
    gni_return_t rc;

    while ((rc = GNI_CqGetEvent(r->cq, &entry)) != GNI_RC_NOT_DONE) {
        FX_CHECK(rc == GNI_RC_SUCCESS || (rc == GNI_RC_TRANSACTION_ERROR && r->t->victim != NOBODY));
        FX_CHECK(GNI_CQ_GET_TYPE(entry) == GNI_CQ_EVENT_TYPE_MSGQ);
    }
}

static bool has_finished(const struct rank *r)
{
    for (uint32_t peer = 0; peer < RANKS; peer++) {
        if (!r->ep[peer] || peer == r->t->victim)
            continue;
        if (r->sent[peer] < r->t->messages || r->received[peer] < r->t->messages)
            return false;
    }
    return true;
}

/* What the test does with the victim. */
static void maybe_die(struct rank *r, uint32_t step)
{
    const struct traffic *t = r->t;

    if (t->victim == NOBODY)
        return;
    if (r->fr->rank == t->victim && t->victim_steps != 0 && step >= t->victim_steps)
        kill(getpid(), SIGKILL);
    if (r->fr->rank == RANKS - 1 && t->victim_steps == 0 && r->received[t->victim] >= t->victim_messages)
        kill((pid_t)r->board->pid[t->victim], SIGKILL);
}

static int run_traffic(struct fx_rank *fr)
{
    struct rank *r = calloc(1, sizeof(*r));
    struct emu_random random;
    uint64_t end_ns;
    bool is_done = false;
    uint32_t survivors;
    gni_return_t rc;

    FX_CHECK(r);
    r->fr = fr;
    r->t = fr->arg;
    r->board = fr->shared;
    survivors = RANKS - (r->t->victim != NOBODY);
    random.state = r->t->seed * 977 + fr->rank;
    open_rank(r);
    connect_rank(r);
    end_ns = emu_clock_ns() + 2 * PATIENCE_NS;
    for (uint32_t step = 1; r->board->n_done < survivors; step++) {
        uint32_t peer = (uint32_t)(emu_random_next(&random) % RANKS);

        if (emu_clock_ns() > end_ns)
            fprintf(stderr, "rank %u: sent %u %u %u %u %u %u received %u %u %u %u %u %u\n", fr->rank, r->sent[0],
                    r->sent[1], r->sent[2], r->sent[3], r->sent[4], r->sent[5], r->received[0], r->received[1],
                    r->received[2], r->received[3], r->received[4], r->received[5]);
        FX_CHECK(emu_clock_ns() < end_ns);
        if (r->ep[peer] && !r->is_gone[peer] && r->sent[peer] < r->t->messages)
            send_next(r, peer);
        take_entries(r);
        rc = GNI_MsgqProgress(r->msgq, r->t->blocks ? (uint32_t)(emu_random_next(&random) % 2) : DO_NOT_BLOCK);
        FX_CHECK(rc == GNI_RC_SUCCESS || rc == GNI_RC_NOT_DONE);
        maybe_die(r, step);
        if (!is_done && fr->rank != r->t->victim && has_finished(r)) {
            is_done = true;
            atomic_fetch_add(&r->board->n_done, 1);
        }
    }
    if (fr->rank == r->t->victim) {
        /* Too slow to be killed in the middle. */
        kill(getpid(), SIGKILL);
    }
    while ((rc = GNI_MsgqRelease(r->msgq)) == GNI_RC_NOT_DONE && emu_clock_ns() < end_ns) {
        take_entries(r);
        GNI_MsgqProgress(r->msgq, DO_NOT_BLOCK);
    }
    FX_CHECK(rc == GNI_RC_SUCCESS);
    FX_CHECK(GNI_CdmDestroy(r->cdm) == GNI_RC_SUCCESS);
    free(r);
    return 0;
}

static struct traffic usual_traffic(uint64_t seed)
{
    struct traffic t = { .messages = 60, .victim = NOBODY, .seed = seed, .attrs = usual_attrs() };

    t.attrs.nloc_insts = PER_NODE;
    t.attrs.num_msgq_eps = NODES - 1;
    return t;
}

static void test_all_to_all_traffic_arrives_whole_and_in_order(void **state)
{
    struct emu_random random = seeded(2024);
    struct traffic t = usual_traffic(emu_random_next(&random));

    (void)state;
    t.messages = 200;
    assert_int_equal(fx_run(&fx, RANKS, run_traffic, &t), 0);
}

static void test_all_to_all_traffic_of_blocking_queues(void **state)
{
    struct emu_random random = seeded(7);
    struct traffic t = usual_traffic(emu_random_next(&random));

    (void)state;
    t.attrs.modes = GNI_MSGQ_MODE_BLOCKING;
    t.blocks = true;
    t.messages = 40;
    assert_int_equal(fx_run(&fx, RANKS, run_traffic, &t), 0);
}

static void test_all_to_all_traffic_through_one_slot(void **state)
{
    struct emu_random random = seeded(8);
    struct traffic t = usual_traffic(emu_random_next(&random));

    (void)state;
    t.attrs.smsg_q_sz = 1;
    t.attrs.rcv_pool_sz = 1;
    t.attrs.rcv_cq_sz = 1;
    t.messages = 40;
    assert_int_equal(fx_run(&fx, RANKS, run_traffic, &t), 0);
}

static void test_survivors_of_a_killed_instance_lose_nothing(void **state)
{
    struct emu_random random = seeded(99);

    (void)state;
    for (unsigned round = 0; round < 6; round++) {
        struct traffic t = usual_traffic(emu_random_next(&random));

        t.attrs.smsg_q_sz = round % 2 ? 4 : 16;
        t.victim = (uint32_t)(emu_random_next(&random) % (RANKS - 1));
        if (round % 4 < 2)
            t.victim_steps = 1 + (uint32_t)(emu_random_next(&random) % 200);
        else
            t.victim_messages = 1 + (uint32_t)(emu_random_next(&random) % 50);
        assert_int_equal(fx_run(&fx, RANKS, run_traffic, &t), 1);
    }
}

/* ---- groups ---- */

static int start_emunic(void **state)
{
    static const uint32_t nids[RANKS] = { 0, 0, 1, 1, 2, 2 };
    struct fx_options options = { .n_ranks = RANKS, .nids = nids };

    (void)state;
    fx_start(&fx, &options);
    return 0;
}

static int stop_emunic(void **state)
{
    (void)state;
    fx_stop(&fx);
    return 0;
}

#define plain_test(name)     cmocka_unit_test_setup_teardown(name, open_nodes, close_nodes)
#define connected_test(name) cmocka_unit_test_setup_teardown(name, open_connected, close_nodes)

int main(void)
{
    const struct CMUnitTest tests[] = {
        plain_test(test_init_refuses_bad_arguments),
        plain_test(test_instances_must_agree_and_be_few_enough),
        plain_test(test_init_without_room_for_its_queue_says_so),
        plain_test(test_all_must_have_left_before_a_new_queue_is_made),
        cmocka_unit_test(test_size_is_whole_huge_pages_and_grows_with_the_attributes),
        connected_test(test_release_and_idle_wait_for_entries_and_messages),
        connected_test(test_queue_outlives_the_cq_of_a_send_that_nobody_looked_at),
        plain_test(test_attributes_describe_every_instance_of_the_node),
        plain_test(test_getting_attributes_has_its_codes),
        plain_test(test_connecting_has_its_codes),
        connected_test(test_releasing_a_connection_has_its_codes),
        connected_test(test_released_connection_is_told_and_can_be_made_again),
        plain_test(test_messages_may_come_before_the_receiver_connects),
        connected_test(test_send_has_its_codes),
        connected_test(test_every_send_has_an_entry_with_its_msg_id),
        connected_test(test_credits_are_the_nodes_and_come_back),
        cmocka_unit_test_setup_teardown(test_one_credit_and_no_pool_are_enough, open_connected_with_one_credit,
                                        close_nodes),
        cmocka_unit_test_setup_teardown(test_send_needs_room_in_its_queue, open_connected_exact, close_nodes),
        connected_test(test_header_and_data_of_every_size_arrive_together),
        connected_test(test_only_a_blocking_queue_takes_a_timeout),
        connected_test(test_callback_ends_the_call_with_zero),
        plain_test(test_callback_may_send),
        plain_test(test_foreign_event_in_the_receive_queue_is_told_once),
        cmocka_unit_test_setup_teardown(test_overrun_of_the_receive_queue_loses_nothing,
                                        open_connected_with_small_queue, close_nodes),
        connected_test(test_instance_that_does_not_look_holds_up_the_others_late),
        cmocka_unit_test_setup_teardown(test_blocking_progress_waits_its_time, open_connected_blocking, close_nodes),
        cmocka_unit_test_setup_teardown(test_message_wakes_a_sleeper, open_connected_blocking, close_nodes),
        cmocka_unit_test_setup_teardown(test_destroyed_domain_ends_a_sleeper, open_connected_blocking, close_nodes),
        connected_test(test_instance_that_goes_leaves_the_others_their_queue),
        connected_test(test_leader_may_go),
        connected_test(test_node_without_instances_refuses_sends),
        connected_test(test_garbage_in_the_region_breaks_messages_only),
        cmocka_unit_test(test_all_to_all_traffic_arrives_whole_and_in_order),
        cmocka_unit_test(test_all_to_all_traffic_of_blocking_queues),
        cmocka_unit_test(test_all_to_all_traffic_through_one_slot),
        cmocka_unit_test(test_survivors_of_a_killed_instance_lose_nothing),
        connected_test(test_lost_nic_ends_the_queue), /* the last one: it kills emunic */
    };

    return cmocka_run_group_tests(tests, start_emunic, stop_emunic);
}
