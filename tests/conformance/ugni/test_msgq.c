/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Shared message queues: every call with every code, what messages and entries look like, credits, pools, order.
 * Specification: spec/ugni.md 2.17, 3.11, 4.11.
 */
#include "tests/conformance/msgq.h"

/* ---- init, release, size ---- */

static void test_init_refuses_bad_arguments(void **state)
{
    static const struct {
        size_t offset;
        uint32_t value;
    } bad[] = {
        { offsetof(gni_msgq_attr_t, max_msg_sz), 0 },
        { offsetof(gni_msgq_attr_t, max_msg_sz), GNI_MSGQ_MSG_SZ_MAX + 1 },
        { offsetof(gni_msgq_attr_t, smsg_q_sz), 0 },
        { offsetof(gni_msgq_attr_t, smsg_q_sz), 3 },
        { offsetof(gni_msgq_attr_t, num_msgq_eps), 0 },
        { offsetof(gni_msgq_attr_t, nloc_insts), 0 },
        { offsetof(gni_msgq_attr_t, nloc_insts), GNI_MSGQ_NODE_INSTS_MAX + 1 },
        { offsetof(gni_msgq_attr_t, rcv_cq_sz), 0 },
        { offsetof(gni_msgq_attr_t, rcv_cq_sz), UINT32_MAX },
        { offsetof(gni_msgq_attr_t, smsg_q_sz), UINT32_MAX - 1 },
        { offsetof(gni_msgq_attr_t, modes), 2 },
    };
    gni_msgq_attr_t attrs = usual_attrs();
    gni_msgq_handle_t msgq = (gni_msgq_handle_t)0x77;
    const struct {
        const char *name;
        gni_nic_handle_t nic;
        gni_msgq_rcv_cb_func *receive;
        gni_cq_handle_t cq;
        gni_msgq_attr_t *attrs;
        gni_msgq_handle_t *out;
    } rows[] = {
        { "no NIC", NULL, receive, a0.side.src_cq, &attrs, &msgq },
        { "no callback", a0.side.nic, NULL, a0.side.src_cq, &attrs, &msgq },
        { "no queue", a0.side.nic, receive, NULL, &attrs, &msgq },
        { "queue of another NIC", a0.side.nic, receive, a1.side.src_cq, &attrs, &msgq },
        { "no attributes", a0.side.nic, receive, a0.side.src_cq, NULL, &msgq },
        { "no handle", a0.side.nic, receive, a0.side.src_cq, &attrs, NULL },
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        assert_row_equal(rows[i].name,
                         GNI_MsgqInit(rows[i].nic, rows[i].receive, NULL, rows[i].cq, rows[i].attrs, rows[i].out),
                         GNI_RC_INVALID_PARAM);
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
    assert_int_equal(init(&a0, usual_attrs()), GNI_RC_INVALID_STATE); /* one queue per NIC handle */
    attrs.smsg_q_sz *= 2;
    assert_int_equal(init(&a1, attrs), GNI_RC_INVALID_STATE);
    attrs = usual_attrs();
    attrs.rcv_cq_sz++;
    assert_int_equal(init(&a1, attrs), GNI_RC_INVALID_STATE);
    attrs = usual_attrs();
    attrs.modes = GNI_MSGQ_MODE_BLOCKING;
    assert_int_equal(init(&a1, attrs), GNI_RC_INVALID_STATE);
    assert_int_equal(init(&b0, attrs), GNI_RC_SUCCESS); /* another node, another queue */
    gx_open(&same, &fx, 0, a0.side.inst_id, 0);         /* sends could not tell them apart */
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
    assert_int_equal(init(&a0, attrs), GNI_RC_SUCCESS); /* the failure has left nothing behind */
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
    assert_int_equal(GNI_MsgqIdle(b1.msgq), GNI_RC_SUCCESS); /* not its message */
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
    assert_int_equal(GNI_MsgqConnect(a0.msgq, 1, &of_b), GNI_RC_NO_MATCH); /* nothing assigned here */
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
    progress_until(&b1, CREDITS); /* taken, but credits cannot be returned yet */
    assert_int_equal(send_number(&a0, &b1, 99), GNI_RC_NOT_DONE);
    assert_int_equal(GNI_MsgqConnect(b0.msgq, 0, &of_a), GNI_RC_SUCCESS);
    send_surely(&a0, &b1, 99, &b0);
    progress_until(&b1, CREDITS + 1);
}

/* ---- sending ---- */

static void sends_are_refused(gni_ep_handle_t unbound, gni_ep_handle_t without_cq, gni_ep_handle_t nowhere,
                              gni_ep_handle_t nobody)
{
    char bytes[GNI_MSGQ_MSG_SZ_MAX + 1] = { 0 };
    gni_ep_handle_t good = ep_to(&a0, &b0);
    const struct {
        const char *name;
        gni_msgq_handle_t msgq;
        gni_ep_handle_t ep;
        void *header;
        uint32_t header_bytes;
        void *message;
        uint32_t message_bytes;
        gni_return_t rc;
    } rows[] = {
        { "no queue", NULL, good, bytes, 1, NULL, 0, GNI_RC_INVALID_PARAM },
        { "no end point", a0.msgq, NULL, bytes, 1, NULL, 0, GNI_RC_INVALID_PARAM },
        { "end point of another NIC", a0.msgq, ep_to(&a1, &b0), bytes, 1, NULL, 0, GNI_RC_INVALID_PARAM },
        { "no header", a0.msgq, good, NULL, 1, NULL, 0, GNI_RC_INVALID_PARAM },
        { "no message", a0.msgq, good, NULL, 0, NULL, 1, GNI_RC_INVALID_PARAM },
        { "unbound", a0.msgq, unbound, bytes, 1, NULL, 0, GNI_RC_INVALID_PARAM },
        { "without a queue", a0.msgq, without_cq, bytes, 1, NULL, 0, GNI_RC_INVALID_PARAM },
        { "nowhere", a0.msgq, nowhere, bytes, 1, NULL, 0, GNI_RC_NO_MATCH },
        { "nobody", a0.msgq, nobody, bytes, 1, NULL, 0, GNI_RC_NO_MATCH },
        { "too long", a0.msgq, good, bytes, 1, bytes, GNI_MSGQ_MSG_SZ_MAX, GNI_RC_SIZE_ERROR },
        { "too long by far", a0.msgq, good, bytes, UINT32_MAX, bytes, 1, GNI_RC_SIZE_ERROR },
    };

    for (size_t i = 0; i < COUNT_OF(rows); i++)
        assert_row_equal(rows[i].name,
                         GNI_MsgqSend(rows[i].msgq, rows[i].ep, rows[i].header, rows[i].header_bytes, rows[i].message,
                                      rows[i].message_bytes, 0, 0),
                         rows[i].rc);
}

/* covers: GNI_MsgqSend: GNI_RC_INVALID_PARAM, GNI_RC_NO_MATCH, GNI_RC_SIZE_ERROR */
static void test_send_has_its_codes(void **state)
{
    gni_ep_handle_t unbound, without_cq, nobody, nowhere;

    (void)state;
    assert_int_equal(GNI_EpCreate(a0.side.nic, a0.side.src_cq, &unbound), GNI_RC_SUCCESS);
    assert_int_equal(GNI_EpCreate(a0.side.nic, NULL, &without_cq), GNI_RC_SUCCESS);
    assert_int_equal(GNI_EpBind(without_cq, 1, b0.side.inst_id), GNI_RC_SUCCESS);
    assert_int_equal(GNI_EpCreate(a0.side.nic, a0.side.src_cq, &nobody), GNI_RC_SUCCESS);
    assert_int_equal(GNI_EpBind(nobody, 1, 9999), GNI_RC_SUCCESS);
    assert_int_equal(GNI_EpCreate(a0.side.nic, a0.side.src_cq, &nowhere), GNI_RC_SUCCESS);
    assert_int_equal(GNI_EpBind(nowhere, 2, b0.side.inst_id), GNI_RC_SUCCESS);
    sends_are_refused(unbound, without_cq, nowhere, nobody);
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
    assert_int_equal(GNI_CqGetEvent(b0.side.dst_cq, &entry), GNI_RC_NOT_DONE); /* the program's queues see nothing */
    progress_until(&b0, CREDITS);
}

/* Each lost one is told once, with its msg_id; nobody waits for it, and its credit comes back. */
static void test_lost_messages_are_told_and_hold_up_nobody(void **state)
{
    const uint32_t n = 20 * CREDITS;
    unsigned n_lost = 0;
    unsigned n_came = 0;

    (void)state;
    fx_add_fault(&fx, "class=any action=drop every=3");
    for (uint32_t i = 0; i < n; i++) {
        uint64_t end_ns = emu_clock_ns() + PATIENCE_NS;
        gni_cq_entry_t entry;
        gni_return_t rc;

        while ((rc = send_number(&a0, &b1, i)) == GNI_RC_NOT_DONE && emu_clock_ns() < end_ns) {
            progress(&b1);
            progress(&a0);
        }
        assert_int_equal(rc, GNI_RC_SUCCESS);
        rc = gx_next(a0.side.src_cq, &entry);
        assert_int_equal(GNI_CQ_GET_MSG_ID(entry), i);
        assert_int_equal(rc, (i + 1) % 3 == 0 ? GNI_RC_TRANSACTION_ERROR : GNI_RC_SUCCESS);
        n_lost += rc != GNI_RC_SUCCESS;
    }
    fx_clear_faults(&fx);
    progress_until(&b1, n - n_lost);
    for (uint32_t i = 0; i < n; i++) {
        if ((i + 1) % 3 != 0)
            assert_int_equal(number_in(&b1.got[n_came++ % INBOX]), i);
    }
    progress(&a0);
    progress(&b0);
    progress_until(&b1, n - n_lost);
    assert_int_equal(GNI_MsgqIdle(a0.msgq), GNI_RC_SUCCESS);
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
    GNI_MsgqProgress(b0.msgq, DO_NOT_BLOCK); /* allowed as well */
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
    gni_post_descriptor_t write = { .type = GNI_POST_CQWRITE,
                                    .cq_mode = GNI_CQMODE_GLOBAL_EVENT,
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
    assert_int_equal(b0.n_got, 1); /* no message is lost over it */
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
        assert_int_equal(number_in(&b1.got[i]), i); /* in order through pool and mailbox */
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
    assert_int_equal(progress(&b0), GNI_RC_SUCCESS); /* -1: does not block here either */
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

/* ---- groups ---- */

#define plain_test(name) cmocka_unit_test_setup_teardown(name, open_nodes, close_nodes)

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
        connected_test(test_lost_messages_are_told_and_hold_up_nobody),
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
    };

    return cmocka_run_group_tests(tests, start_emunic, stop_emunic);
}
