/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Connections of short messages: messages that come early, mailboxes that are used again, ends of connections, errors,
 * floods. Specification: spec/ugni.md 4.10, 4.4.
 */
#include "tests/conformance/smsg.h"

static struct gx_side third;

/* ---- messages before GNI_SmsgInit ---- */

static void test_messages_before_our_init_are_delivered(void **state)
{
    (void)state;
    open_boxes(GNI_SMSG_TYPE_MBOX_AUTO_RETRANSMIT, CREDITS, 64);
    init_a();
    for (uint32_t n = 0; n < CREDITS; n++)
        assert_int_equal(send_number(a.ep, n), GNI_RC_SUCCESS);
    assert_int_equal(send_number(a.ep, CREDITS), GNI_RC_NOT_DONE);
    expect_sent(&a, CREDITS);
    init_b();
    for (uint32_t n = 0; n < CREDITS; n++)
        expect_number(b.ep, n);
    assert_int_equal(mb_send(a.ep, a.src_cq, &(uint32_t){ 50 }, 4, NULL, 0, 50, 0), GNI_RC_SUCCESS);
    expect_number(b.ep, 50);
}

static void test_early_message_has_an_entry_after_our_init(void **state)
{
    gni_cq_entry_t entry;

    (void)state;
    open_boxes(GNI_SMSG_TYPE_MBOX_AUTO_RETRANSMIT, CREDITS, 64);
    init_a();
    assert_int_equal(GNI_EpSetEventData(a.ep, 0, 0x777), GNI_RC_SUCCESS);
    assert_int_equal(send_number(a.ep, 1), GNI_RC_SUCCESS);
    expect_sent(&a, 1);
    assert_int_equal(gx_next(b.dst_cq, &entry), GNI_RC_SUCCESS); /* too early: nobody can fetch */
    init_b();
    assert_int_equal(gx_next(b.dst_cq, &entry), GNI_RC_SUCCESS);
    assert_int_equal(GNI_CQ_GET_TYPE(entry), GNI_CQ_EVENT_TYPE_SMSG);
    assert_int_equal(GNI_CQ_GET_INST_ID(entry), 0x777);
    expect_number(b.ep, 1);
}

/* Takes all entries of messages that b has, up to that of a put to itself: all that was raised before. */
static unsigned count_entries(uint32_t event)
{
    gni_post_descriptor_t d = gx_put(&b, &b, 0, 8, GNI_CQMODE_GLOBAL_EVENT | GNI_CQMODE_REMOTE_EVENT);
    gni_post_descriptor_t *done;
    gni_ep_handle_t self;
    gni_cq_entry_t entry;
    unsigned n = 0;

    assert_int_equal(GNI_EpCreate(b.nic, b.src_cq, &self), GNI_RC_SUCCESS);
    assert_int_equal(GNI_EpBind(self, b.nic_addr, b.inst_id), GNI_RC_SUCCESS);
    assert_int_equal(GNI_PostFma(self, &d), GNI_RC_SUCCESS);
    assert_int_equal(gx_complete(b.src_cq, &done), GNI_RC_SUCCESS);
    for (;;) {
        assert_int_equal(gx_next(b.dst_cq, &entry), GNI_RC_SUCCESS);
        if (GNI_CQ_GET_TYPE(entry) == GNI_CQ_EVENT_TYPE_POST)
            break;
        assert_int_equal(GNI_CQ_GET_TYPE(entry), GNI_CQ_EVENT_TYPE_SMSG);
        assert_int_equal(GNI_CQ_GET_DATA(entry), event); /* nothing of ours above it */
        assert_int_equal(GNI_CQ_GET_REM_INST_ID(entry), event);
        n++;
    }
    assert_int_equal(GNI_EpDestroy(self), GNI_RC_SUCCESS);
    return n;
}

static void send_early(unsigned first, unsigned n)
{
    assert_int_equal(GNI_EpSetEventData(a.ep, 0, 0x777), GNI_RC_SUCCESS);
    for (unsigned i = 0; i < n; i++)
        assert_int_equal(send_number(a.ep, first + i), GNI_RC_SUCCESS);
    expect_sent(&a, n);
}

static void take_entries(unsigned n)
{
    gni_cq_entry_t entry;

    for (unsigned i = 0; i < n; i++) {
        assert_int_equal(gx_next(b.dst_cq, &entry), GNI_RC_SUCCESS);
        assert_int_equal(GNI_CQ_GET_DATA(entry), 0x777);
    }
}

/* Whoever counts entries finds as many as messages. */
static void test_early_message_whose_entry_waits_gets_no_other(void **state)
{
    (void)state;
    for (unsigned n = 1; n <= CREDITS; n++) {
        open_boxes(GNI_SMSG_TYPE_MBOX_AUTO_RETRANSMIT, 2 * CREDITS, 64);
        init_a();
        send_early(100, n);
        init_b();
        send_early(100 + n, CREDITS - n);
        assert_int_equal(count_entries(0x777), CREDITS);
        for (unsigned i = 0; i < CREDITS; i++)
            expect_number(b.ep, 100 + i);
        expect_nothing(b.ep);
        assert_int_equal(count_entries(0x777), 0);
        renew_ep(&a, &b);
        renew_ep(&b, &a);
        mb_close(&box_a);
        mb_close(&box_b);
    }
    open_boxes(GNI_SMSG_TYPE_MBOX_AUTO_RETRANSMIT, CREDITS, 64);
}

/* Some entries were taken too early, others wait: afterwards each message has one again. */
static void test_early_messages_get_back_the_entries_that_were_taken(void **state)
{
    (void)state;
    for (unsigned n_taken = 0; n_taken <= CREDITS; n_taken++) {
        open_boxes(GNI_SMSG_TYPE_MBOX_AUTO_RETRANSMIT, CREDITS, 64);
        init_a();
        send_early(100, CREDITS);
        take_entries(n_taken);
        init_b();
        assert_int_equal(count_entries(0x777), CREDITS);
        for (unsigned i = 0; i < CREDITS; i++)
            expect_number(b.ep, 100 + i);
        renew_ep(&a, &b);
        renew_ep(&b, &a);
        mb_close(&box_a);
        mb_close(&box_b);
    }
    open_boxes(GNI_SMSG_TYPE_MBOX_AUTO_RETRANSMIT, CREDITS, 64);
}

/* Messages of which one is fetched already, an entry of none: the next connection knows nothing of that. */
static void test_early_entries_of_an_earlier_connection_do_not_count(void **state)
{
    (void)state;
    open_boxes(GNI_SMSG_TYPE_MBOX_AUTO_RETRANSMIT, CREDITS, 64);
    init_a();
    send_early(100, CREDITS);
    take_entries(CREDITS);
    /* b never makes this connection. */
    renew_ep(&a, &b);
    init_a();
    send_early(200, 2);
    init_b();
    assert_int_equal(count_entries(0x777), 2);
    expect_number(b.ep, 200);
    expect_number(b.ep, 201);
    expect_nothing(b.ep);
}

/* Two connections with the same event data: the entry of one was taken, that of the other one waits. */
static void test_early_entry_of_one_connection_is_not_taken_for_another_ones(void **state)
{
    struct mailbox other_a;
    struct mailbox other_b;
    gni_ep_handle_t from;
    gni_ep_handle_t to;

    (void)state;
    open_boxes(GNI_SMSG_TYPE_MBOX_AUTO_RETRANSMIT, CREDITS, 64);
    mb_open(&other_a, a.nic, a.dst_cq, GNI_SMSG_TYPE_MBOX_AUTO_RETRANSMIT, CREDITS, 64, 0);
    mb_open(&other_b, b.nic, b.dst_cq, GNI_SMSG_TYPE_MBOX_AUTO_RETRANSMIT, CREDITS, 64, 0);
    assert_int_equal(GNI_EpCreate(a.nic, a.src_cq, &from), GNI_RC_SUCCESS);
    assert_int_equal(GNI_EpBind(from, b.nic_addr, b.inst_id), GNI_RC_SUCCESS);
    assert_int_equal(GNI_EpCreate(b.nic, b.src_cq, &to), GNI_RC_SUCCESS);
    assert_int_equal(GNI_EpBind(to, a.nic_addr, a.inst_id), GNI_RC_SUCCESS);
    assert_int_equal(GNI_EpSetEventData(from, 0, 0x777), GNI_RC_SUCCESS);
    init_a();
    send_early(100, 1);
    take_entries(1);
    assert_int_equal(GNI_SmsgInit(from, &other_a.attr, &other_b.attr), GNI_RC_SUCCESS);
    assert_int_equal(send_number(from, 200), GNI_RC_SUCCESS);
    expect_sent(&a, 1);
    assert_int_equal(GNI_SmsgInit(to, &other_b.attr, &other_a.attr), GNI_RC_SUCCESS);
    assert_int_equal(count_entries(0x777), 1);
    init_b();
    assert_int_equal(count_entries(0x777), 1);
    expect_number(b.ep, 100);
    expect_number(to, 200);
    assert_int_equal(GNI_EpDestroy(from), GNI_RC_SUCCESS);
    assert_int_equal(GNI_EpDestroy(to), GNI_RC_SUCCESS);
    mb_close(&other_a);
    mb_close(&other_b);
}

/* Entries that the queue has lost come with GNI_SmsgInit, as nobody has had them. */
static void test_early_messages_whose_entries_were_lost_get_them(void **state)
{
    gni_cq_handle_t usual = b.dst_cq;
    gni_cq_entry_t entry;

    (void)state;
    setenv("EMUNIC_CQ_FLOOR", "0", 1);
    gx_open(&third, &fx, 1, 12, 0);
    unsetenv("EMUNIC_CQ_FLOOR");
    assert_int_equal(GNI_CqCreate(third.nic, 2, 0, GNI_CQ_NOBLOCK, NULL, NULL, &b.dst_cq), GNI_RC_SUCCESS);
    mb_open(&box_a, a.nic, a.dst_cq, GNI_SMSG_TYPE_MBOX_AUTO_RETRANSMIT, CREDITS, 64, 0);
    mb_open(&box_b, third.nic, b.dst_cq, GNI_SMSG_TYPE_MBOX_AUTO_RETRANSMIT, CREDITS, 64, 0);
    assert_int_equal(GNI_EpUnbind(a.ep), GNI_RC_SUCCESS);
    assert_int_equal(GNI_EpBind(a.ep, third.nic_addr, third.inst_id), GNI_RC_SUCCESS);
    init_a();
    send_early(100, CREDITS);
    take_entries(2);
    for (unsigned i = 2; i < CREDITS; i++)
        assert_int_equal(gx_next(b.dst_cq, &entry), GNI_RC_ERROR_RESOURCE);
    assert_int_equal(GNI_EpCreate(third.nic, third.src_cq, &third.ep), GNI_RC_SUCCESS);
    assert_int_equal(GNI_EpBind(third.ep, a.nic_addr, a.inst_id), GNI_RC_SUCCESS);
    assert_int_equal(GNI_SmsgInit(third.ep, &box_b.attr, &box_a.attr), GNI_RC_SUCCESS);
    /* Four, of which the queue holds two; it tells of those that came before there was room. */
    for (unsigned i = 0; i < CREDITS; i++) {
        gni_return_t rc = gx_next(b.dst_cq, &entry);

        assert_true(rc == GNI_RC_SUCCESS || (rc == GNI_RC_ERROR_RESOURCE && GNI_CQ_OVERRUN(entry)));
    }
    for (unsigned i = 0; i < CREDITS; i++)
        expect_number(third.ep, 100 + i);
    mb_close(&box_b);
    box_b = (struct mailbox){ .nic = a.nic };
    assert_int_equal(GNI_CqDestroy(b.dst_cq), GNI_RC_SUCCESS);
    gx_close(&third);
    b.dst_cq = usual;
}

/* ---- mailboxes used again ---- */

/* Sends from a until the credits are gone, none of it fetched by b. */
static void leave_messages(uint32_t first)
{
    for (uint32_t n = 0; n < CREDITS; n++)
        assert_int_equal(send_number(a.ep, first + n), GNI_RC_SUCCESS);
    expect_sent(&a, CREDITS);
}

static void expect_fresh_connection(void)
{
    expect_nothing(a.ep);
    expect_nothing(b.ep);
    for (uint32_t n = 0; n < 3 * CREDITS; n++) {
        assert_int_equal(mb_send(a.ep, a.src_cq, &(uint32_t){ 1000 + n }, 4, NULL, 0, n, 0), GNI_RC_SUCCESS);
        expect_number(b.ep, 1000 + n);
        expect_nothing(b.ep);
        assert_int_equal(mb_send(b.ep, b.src_cq, &(uint32_t){ 2000 + n }, 4, NULL, 0, n, 0), GNI_RC_SUCCESS);
        expect_number(a.ep, 2000 + n);
        expect_nothing(a.ep);
    }
    settle(&a, &b);
    settle(&b, &a);
    for (uint32_t n = 0; n < CREDITS; n++)
        assert_int_equal(mb_send(a.ep, a.src_cq, &(uint32_t){ 3000 + n }, 4, NULL, 0, n, 0), GNI_RC_SUCCESS);
    assert_int_equal(send_number(a.ep, 9), GNI_RC_NOT_DONE); /* no credit too many */
    for (uint32_t n = 0; n < CREDITS; n++)
        expect_number(b.ep, 3000 + n);
    expect_nothing(b.ep);
    settle(&b, &a); /* all credits are back */
    settle(&a, &b); /* no completion is left */
}

static void test_reregistered_memory_shows_nothing_old(void **state)
{
    (void)state;
    for (unsigned round = 0; round < 5; round++) {
        leave_messages(10 * round);
        /* As UCX closes: registration first, memory recycled without clearing. */
        assert_int_equal(GNI_MemDeregister(a.nic, &box_a.attr.mem_hndl), GNI_RC_SUCCESS);
        assert_int_equal(GNI_MemDeregister(b.nic, &box_b.attr.mem_hndl), GNI_RC_SUCCESS);
        renew_ep(&a, &b);
        renew_ep(&b, &a);
        mb_register(&box_a, a.dst_cq);
        mb_register(&box_b, b.dst_cq);
        init_a();
        init_b();
        expect_fresh_connection();
    }
}

static void test_same_registration_shows_nothing_old(void **state)
{
    (void)state;
    for (unsigned round = 0; round < 5; round++) {
        leave_messages(10 * round);
        renew_ep(&a, &b);
        renew_ep(&b, &a);
        init_a();
        init_b();
        expect_fresh_connection();
    }
}

static void test_unbound_and_bound_again_shows_nothing_old(void **state)
{
    (void)state;
    for (unsigned round = 0; round < 5; round++) {
        leave_messages(10 * round);
        settle(&a, &b);
        settle(&b, &a);
        assert_int_equal(GNI_EpUnbind(a.ep), GNI_RC_SUCCESS);
        assert_int_equal(GNI_EpUnbind(b.ep), GNI_RC_SUCCESS);
        assert_int_equal(GNI_EpBind(a.ep, b.nic_addr, b.inst_id), GNI_RC_SUCCESS);
        assert_int_equal(GNI_EpBind(b.ep, a.nic_addr, a.inst_id), GNI_RC_SUCCESS);
        init_a();
        init_b();
        expect_fresh_connection();
    }
}

static void test_message_that_comes_after_our_close_is_not_seen_later(void **state)
{
    (void)state;
    for (unsigned round = 0; round < 5; round++) {
        assert_int_equal(send_number(a.ep, 1), GNI_RC_SUCCESS);
        expect_number(b.ep, 1);
        renew_ep(&b, &a);
        /* a does not know yet and goes on, into the same mailbox. */
        assert_int_equal(send_number(a.ep, 2), GNI_RC_SUCCESS);
        assert_int_equal(send_number(a.ep, 3), GNI_RC_SUCCESS);
        expect_sent(&a, 3);
        renew_ep(&a, &b);
        init_b();
        expect_nothing(b.ep);
        init_a();
        expect_fresh_connection();
    }
}

static void test_credits_that_come_after_our_close_are_not_counted(void **state)
{
    uint8_t tag = GNI_SMSG_ANY_TAG;
    void *message;

    (void)state;
    for (unsigned round = 0; round < 5; round++) {
        leave_messages(0);
        renew_ep(&a, &b);
        init_a();
        settle(&a, &b); /* it has arrived */
        /* b still works on the old connection and gives all its slots back. */
        for (uint32_t n = 0; n < CREDITS; n++) {
            assert_int_equal(mb_next(b.ep, &message, &tag), GNI_RC_SUCCESS);
            assert_int_equal(GNI_SmsgRelease(b.ep), GNI_RC_SUCCESS);
        }
        settle(&b, &a);
        leave_messages(100);
        assert_int_equal(send_number(a.ep, 9), GNI_RC_NOT_DONE);
        renew_ep(&b, &a);
        init_b();
        for (uint32_t n = 0; n < CREDITS; n++)
            expect_number(b.ep, 100 + n);
        renew_ep(&a, &b);
        renew_ep(&b, &a);
        init_a();
        init_b();
        expect_fresh_connection();
    }
}

/* b has called GNI_SmsgInit and does not look before a has closed and connected again. */
static void test_messages_of_a_peer_that_connects_again_are_not_lost(void **state)
{
    (void)state;
    for (unsigned is_b_first = 0; is_b_first < 2; is_b_first++) {
        open_boxes(GNI_SMSG_TYPE_MBOX_AUTO_RETRANSMIT, CREDITS, 64);
        if (is_b_first) {
            init_b();
            init_a();
        } else {
            init_a();
            settle(&a, &b);
            init_b();
        }
        leave_messages(0);
        renew_ep(&a, &b);
        init_a();
        settle(&a, &b);
        for (uint32_t n = 0; n < CREDITS; n++)
            expect_number(b.ep, n);
        expect_nothing(b.ep);
        renew_ep(&b, &a);
        init_b();
        expect_fresh_connection();
        renew_ep(&a, &b);
        renew_ep(&b, &a);
        mb_close(&box_a);
        mb_close(&box_b);
    }
    open_boxes(GNI_SMSG_TYPE_MBOX_AUTO_RETRANSMIT, CREDITS, 64);
}

static void test_early_message_of_the_next_connection_survives_our_close(void **state)
{
    (void)state;
    for (unsigned round = 0; round < 5; round++) {
        assert_int_equal(send_number(a.ep, 1), GNI_RC_SUCCESS);
        expect_number(b.ep, 1);
        expect_sent(&a, 1);
        /* a is a whole connection ahead. */
        renew_ep(&a, &b);
        init_a();
        assert_int_equal(send_number(a.ep, 2), GNI_RC_SUCCESS);
        expect_sent(&a, 1);
        renew_ep(&b, &a);
        init_b();
        expect_number(b.ep, 2);
        renew_ep(&a, &b);
        renew_ep(&b, &a);
        init_a();
        init_b();
        expect_fresh_connection();
    }
}

/* ---- to oneself ---- */

static void test_end_point_connected_to_itself_gets_its_own_messages(void **state)
{
    (void)state;
    assert_int_equal(GNI_EpUnbind(a.ep), GNI_RC_SUCCESS);
    assert_int_equal(GNI_EpBind(a.ep, a.nic_addr, a.inst_id), GNI_RC_SUCCESS);
    mb_open(&box_a, a.nic, a.dst_cq, GNI_SMSG_TYPE_MBOX, CREDITS, 64, 0);
    assert_int_equal(GNI_SmsgInit(a.ep, &box_a.attr, &box_a.attr), GNI_RC_SUCCESS);
    for (uint32_t n = 0; n < 10 * CREDITS; n++) {
        assert_int_equal(mb_send(a.ep, a.src_cq, &n, sizeof(n), NULL, 0, n, 0), GNI_RC_SUCCESS);
        expect_number(a.ep, n);
    }
    for (uint32_t n = 0; n < CREDITS; n++)
        assert_int_equal(mb_send(a.ep, a.src_cq, &n, sizeof(n), NULL, 0, n, 0), GNI_RC_SUCCESS);
    assert_int_equal(send_number(a.ep, 9), GNI_RC_NOT_DONE);
}

static void test_two_end_points_of_one_nic_exchange_messages(void **state)
{
    gni_ep_handle_t ends[2];
    struct mailbox boxes[2];

    (void)state;
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(GNI_EpCreate(a.nic, a.src_cq, &ends[i]), GNI_RC_SUCCESS);
        assert_int_equal(GNI_EpBind(ends[i], a.nic_addr, a.inst_id), GNI_RC_SUCCESS);
        mb_open(&boxes[i], a.nic, a.dst_cq, GNI_SMSG_TYPE_MBOX, CREDITS, 64, 0);
    }
    for (unsigned i = 0; i < 2; i++)
        assert_int_equal(GNI_SmsgInit(ends[i], &boxes[i].attr, &boxes[1 - i].attr), GNI_RC_SUCCESS);
    for (uint32_t n = 0; n < 10 * CREDITS; n++) {
        for (unsigned i = 0; i < 2; i++)
            assert_int_equal(mb_send(ends[i], a.src_cq, &(uint32_t){ 100 * i + n }, 4, NULL, 0, n, 0), GNI_RC_SUCCESS);
        for (unsigned i = 0; i < 2; i++)
            expect_number(ends[1 - i], 100 * i + n);
    }
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(GNI_EpDestroy(ends[i]), GNI_RC_SUCCESS);
        mb_close(&boxes[i]);
    }
}

/* ---- end points ---- */

static void test_unbind_waits_for_the_completions_of_sends(void **state)
{
    (void)state;
    assert_int_equal(send_number(a.ep, 1), GNI_RC_SUCCESS);
    assert_int_equal(send_number(a.ep, 2), GNI_RC_SUCCESS);
    assert_int_equal(GNI_EpIdle(a.ep), GNI_RC_NOT_DONE);
    assert_int_equal(GNI_EpUnbind(a.ep), GNI_RC_NOT_DONE);
    expect_sent(&a, 1);
    assert_int_equal(GNI_EpUnbind(a.ep), GNI_RC_NOT_DONE);
    expect_sent(&a, 1);
    assert_int_equal(GNI_EpIdle(a.ep), GNI_RC_SUCCESS);
    assert_int_equal(GNI_EpUnbind(a.ep), GNI_RC_SUCCESS);
    expect_number(b.ep, 1);
    expect_number(b.ep, 2);
}

static void test_unbound_end_point_has_no_connection(void **state)
{
    void *message;

    (void)state;
    assert_int_equal(GNI_EpUnbind(a.ep), GNI_RC_SUCCESS);
    assert_int_equal(send_number(a.ep, 1), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_SmsgGetNext(a.ep, &message), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_SmsgRelease(a.ep), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_SmsgInit(a.ep, &box_a.attr, &box_b.attr), GNI_RC_INVALID_STATE);
}

static void test_destroyed_end_point_delivers_but_completes_nothing(void **state)
{
    gni_ep_handle_t other;
    gni_cq_entry_t entry;

    (void)state;
    assert_int_equal(GNI_EpCreate(a.nic, a.src_cq, &other), GNI_RC_SUCCESS);
    assert_int_equal(GNI_EpBind(other, b.nic_addr, b.inst_id), GNI_RC_SUCCESS);
    assert_int_equal(send_number(a.ep, 1), GNI_RC_SUCCESS);
    assert_int_equal(send_number(a.ep, 2), GNI_RC_SUCCESS);
    assert_int_equal(GNI_EpDestroy(a.ep), GNI_RC_SUCCESS);
    a.ep = other;
    settle(&a, &b);
    assert_int_equal(GNI_CqGetEvent(a.src_cq, &entry), GNI_RC_NOT_DONE);
    expect_number(b.ep, 1);
    expect_number(b.ep, 2);
}

/* ---- errors ---- */

static void test_too_long_a_message_is_refused_without_side_effect(void **state)
{
    uint8_t out[MAXSIZE + 1] = { 0 };
    gni_cq_entry_t entry;

    (void)state;
    assert_int_equal(GNI_SmsgSend(a.ep, out, MAXSIZE + 1, NULL, 0, 0), GNI_RC_ERROR_RESOURCE);
    assert_int_equal(GNI_SmsgSend(a.ep, NULL, 0, out, MAXSIZE + 1, 0), GNI_RC_ERROR_RESOURCE);
    assert_int_equal(GNI_SmsgSendWTag(a.ep, out, 1, out, MAXSIZE, 0, 1), GNI_RC_ERROR_RESOURCE);
    assert_int_equal(GNI_SmsgSend(a.ep, out, UINT32_MAX, out, 2, 0), GNI_RC_ERROR_RESOURCE); /* no 32-bit sum */
    assert_int_equal(GNI_EpIdle(a.ep), GNI_RC_SUCCESS);
    assert_int_equal(GNI_CqGetEvent(a.src_cq, &entry), GNI_RC_NOT_DONE);
    for (uint32_t n = 0; n < CREDITS; n++)
        assert_int_equal(send_number(a.ep, n), GNI_RC_SUCCESS);
    for (uint32_t n = 0; n < CREDITS; n++)
        expect_number(b.ep, n);
}

static void test_deregistered_mailbox_fails_the_send_with_its_msg_id(void **state)
{
    uint32_t recoverable = 1;
    gni_cq_entry_t entry = 0;

    (void)state;
    assert_int_equal(GNI_MemDeregister(b.nic, &box_b.attr.mem_hndl), GNI_RC_SUCCESS);
    assert_int_equal(GNI_SmsgSend(a.ep, "abc", 4, NULL, 0, 0xdeadbeef), GNI_RC_SUCCESS);
    assert_int_equal(gx_next(a.src_cq, &entry), GNI_RC_TRANSACTION_ERROR);
    assert_int_equal(GNI_CQ_GET_TYPE(entry), GNI_CQ_EVENT_TYPE_SMSG);
    assert_int_equal(GNI_CQ_GET_MSG_ID(entry), 0xdeadbeef);
    assert_false(GNI_CQ_STATUS_OK(entry));
    assert_int_equal(GNI_CqErrorRecoverable(entry, &recoverable), GNI_RC_SUCCESS);
    assert_int_equal(recoverable, 0);
    assert_int_equal(GNI_EpUnbind(a.ep), GNI_RC_SUCCESS); /* the failed send is finished too */
    mb_register(&box_b, b.dst_cq);
}

static void test_release_to_a_peer_that_has_gone_succeeds(void **state)
{
    uint8_t tag = GNI_SMSG_ANY_TAG;
    gni_cq_entry_t entry;
    void *message;

    (void)state;
    leave_messages(0);
    assert_int_equal(GNI_MemDeregister(a.nic, &box_a.attr.mem_hndl), GNI_RC_SUCCESS);
    for (uint32_t n = 0; n < CREDITS; n++) {
        assert_int_equal(mb_next(b.ep, &message, &tag), GNI_RC_SUCCESS);
        assert_int_equal(GNI_SmsgRelease(b.ep), GNI_RC_SUCCESS);
    }
    settle(&b, &a);
    assert_int_equal(GNI_CqGetEvent(b.src_cq, &entry), GNI_RC_NOT_DONE); /* and says nothing to anybody */
    mb_register(&box_a, a.dst_cq);
}

static void test_calls_before_init_are_refused(void **state)
{
    void *message = NULL;
    uint8_t tag = 0;

    (void)state;
    assert_int_equal(send_number(a.ep, 1), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_SmsgGetNext(a.ep, &message), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_SmsgGetNextWTag(a.ep, &message, &tag), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_SmsgRelease(a.ep), GNI_RC_INVALID_PARAM);
}

static void test_invalid_handles_and_pointers_are_refused(void **state)
{
    gni_ep_handle_t stale = a.ep;
    void *message = NULL;
    uint8_t tag = 0;

    (void)state;
    assert_int_equal(GNI_SmsgSendWTag(NULL, NULL, 0, NULL, 0, 0, 0), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_SmsgSend((gni_ep_handle_t)a.nic, NULL, 0, NULL, 0, 0), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_SmsgSend(a.ep, NULL, 1, NULL, 0, 0), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_SmsgSend(a.ep, NULL, 0, NULL, 1, 0), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_SmsgGetNext(NULL, &message), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_SmsgGetNext(a.ep, NULL), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_SmsgGetNextWTag(a.ep, NULL, &tag), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_SmsgGetNextWTag(a.ep, &message, NULL), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_SmsgRelease(NULL), GNI_RC_INVALID_PARAM);
    renew_ep(&a, &b);
    assert_int_equal(GNI_SmsgSend(stale, NULL, 0, NULL, 0, 0), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_SmsgGetNext(stale, &message), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_SmsgRelease(stale), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_SmsgInit(stale, &box_a.attr, &box_b.attr), GNI_RC_INVALID_PARAM);
}

static void test_init_refuses_attributes_that_cannot_work(void **state)
{
    gni_smsg_attr_t no_type, no_credit, no_size, no_memory_a, no_memory_b, behind, too_long;
    const struct {
        const char *name;
        gni_smsg_attr_t *local, *remote;
    } rows[] = {
        { "no local attributes", NULL, &box_b.attr },
        { "no remote attributes", &box_a.attr, NULL },
        { "no type", &no_type, &box_b.attr },
        { "no credit", &no_credit, &box_b.attr },
        { "no size", &box_a.attr, &no_size },
        { "no remote memory", &box_a.attr, &no_memory_b },
        { "no local memory", &no_memory_a, &box_b.attr },
        { "behind the registered memory", &behind, &box_b.attr },
        { "longer than the registered memory", &too_long, &box_b.attr },
    };

    (void)state;
    open_boxes(GNI_SMSG_TYPE_MBOX, CREDITS, 64);
    no_type = no_credit = no_memory_a = behind = too_long = box_a.attr;
    no_size = no_memory_b = box_b.attr;
    no_type.msg_type = GNI_SMSG_TYPE_INVALID;
    no_credit.mbox_maxcredit = 0;
    no_size.msg_maxsize = 0;
    memset(&no_memory_a.mem_hndl, 0, sizeof(no_memory_a.mem_hndl));
    memset(&no_memory_b.mem_hndl, 0, sizeof(no_memory_b.mem_hndl));
    behind.mbox_offset = (uint32_t)box_a.bytes;
    too_long.mbox_maxcredit = 1000;

    for (size_t i = 0; i < COUNT_OF(rows); i++)
        assert_row_equal(rows[i].name, GNI_SmsgInit(a.ep, rows[i].local, rows[i].remote), GNI_RC_INVALID_PARAM);
    assert_int_equal(send_number(a.ep, 1), GNI_RC_INVALID_PARAM);
    init_a();
}

static void test_init_needs_a_bound_end_point(void **state)
{
    (void)state;
    open_boxes(GNI_SMSG_TYPE_MBOX, CREDITS, 64);
    assert_int_equal(GNI_EpUnbind(a.ep), GNI_RC_SUCCESS);
    assert_int_equal(GNI_SmsgInit(a.ep, &box_a.attr, &box_b.attr), GNI_RC_INVALID_STATE);
    assert_int_equal(GNI_EpBind(a.ep, b.nic_addr, b.inst_id), GNI_RC_SUCCESS);
    init_a();
}

static void test_buffer_size_depends_on_type_credits_and_size_only(void **state)
{
    gni_smsg_attr_t attr;
    unsigned int size = 0;
    unsigned int again = 1;
    unsigned int longer = 0;

    (void)state;
    memset(&attr, 0xee, sizeof(attr));
    attr.msg_type = GNI_SMSG_TYPE_MBOX_AUTO_RETRANSMIT;
    attr.mbox_maxcredit = 8;
    attr.msg_maxsize = 2048;
    assert_int_equal(GNI_SmsgBufferSizeNeeded(&attr, &size), GNI_RC_SUCCESS);
    memset(&attr, 0, sizeof(attr));
    attr.msg_type = GNI_SMSG_TYPE_MBOX_AUTO_RETRANSMIT;
    attr.mbox_maxcredit = 8;
    attr.msg_maxsize = 2048;
    assert_int_equal(GNI_SmsgBufferSizeNeeded(&attr, &again), GNI_RC_SUCCESS);
    assert_int_equal(size, again);
    assert_true(size >= 8 * 2048);
    assert_true(size <= 8 * (2048 + 64) + 256); /* programs allocate thousands */
    attr.mbox_maxcredit = 9;
    assert_int_equal(GNI_SmsgBufferSizeNeeded(&attr, &longer), GNI_RC_SUCCESS);
    assert_true(longer > size);
}

static void test_buffer_size_refuses_nonsense(void **state)
{
    gni_smsg_attr_t good = { .msg_type = GNI_SMSG_TYPE_MBOX, .mbox_maxcredit = 1, .msg_maxsize = GNI_SMSG_MAX_SIZE };
    gni_smsg_attr_t no_type = good, no_credit = good, no_size = good, too_long = good;
    unsigned int size = 12345;
    const struct {
        const char *name;
        gni_smsg_attr_t *attr;
        unsigned int *out;
    } rows[] = {
        { "no type", &no_type, &size },   { "no credit", &no_credit, &size }, { "no size", &no_size, &size },
        { "too long", &too_long, &size }, { "no attributes", NULL, &size },   { "no result", &good, NULL },
    };

    (void)state;
    no_type.msg_type = GNI_SMSG_TYPE_INVALID;
    no_credit.mbox_maxcredit = 0;
    no_size.msg_maxsize = 0;
    too_long.msg_maxsize = GNI_SMSG_MAX_SIZE + 1;
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        assert_row_equal(rows[i].name, GNI_SmsgBufferSizeNeeded(rows[i].attr, rows[i].out), GNI_RC_INVALID_PARAM);
    assert_int_equal(size, 12345);
    assert_int_equal(GNI_SmsgBufferSizeNeeded(&good, &size), GNI_RC_SUCCESS);
}

static void test_nic_wide_settings_are_checked(void **state)
{
    (void)state;
    assert_int_equal(GNI_SmsgSetMaxRetrans(a.nic, 16), GNI_RC_SUCCESS);
    assert_int_equal(GNI_SmsgSetMaxRetrans(a.nic, 4096), GNI_RC_SUCCESS);
    assert_int_equal(GNI_SmsgSetMaxRetrans(NULL, 16), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_SmsgSetDeliveryMode(a.nic, GNI_DLVMODE_PERFORMANCE), GNI_RC_SUCCESS);
    assert_int_equal(GNI_SmsgSetDeliveryMode(a.nic, GNI_DLVMODE_IN_ORDER), GNI_RC_SUCCESS);
    assert_int_equal(GNI_SmsgSetDeliveryMode(a.nic, 0xffff), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_SmsgSetDeliveryMode(NULL, GNI_DLVMODE_PERFORMANCE), GNI_RC_INVALID_PARAM);
}

/* ---- flood ---- */

#define FLOOD_RANKS    3
#define FLOOD_MESSAGES 6000 /* to each other rank */
#define FLOOD_CREDITS  6
#define FLOOD_MAXSIZE  1500

struct flood_peer {
    gni_ep_handle_t ep;
    struct mailbox box;
    uint32_t sent;
    uint32_t received;
};

/* What rank `from` sends to `to` as its n-th message follows from the seed alone. */
static uint64_t flood_mix(uint64_t seed, uint64_t from, uint64_t to, uint64_t n)
{
    uint64_t x = seed ^ (from << 56) ^ (to << 48) ^ n * 0x9e3779b97f4a7c15ull;

    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
    x = (x ^ x >> 27) * 0x94d049bb133111ebull;
    return x ^ x >> 31;
}

static uint32_t flood_make(uint64_t seed, unsigned from, unsigned to, uint32_t n, uint8_t *out)
{
    uint64_t word = flood_mix(seed, from, to, n);
    uint32_t length = (uint32_t)(word % 16 < 12 ? word / 16 % 60 : word / 16 % (FLOOD_MAXSIZE + 1));

    for (uint32_t i = 0; i < length; i++)
        out[i] = (uint8_t)(word >> (i % 8 * 8)) ^ (uint8_t)(i >> 3);
    return length;
}

static void flood_receive(struct fx_rank *r, struct flood_peer *peer, unsigned from, uint64_t seed)
{
    uint8_t want[FLOOD_MAXSIZE];
    void *message;

    for (;;) {
        uint32_t length = flood_make(seed, from, r->rank, peer->received, want);
        uint8_t tag = GNI_SMSG_ANY_TAG;
        gni_return_t rc = GNI_SmsgGetNextWTag(peer->ep, &message, &tag);

        if (rc == GNI_RC_NOT_DONE)
            return;
        FX_CHECK(rc == GNI_RC_SUCCESS);
        FX_CHECK(peer->received < FLOOD_MESSAGES);
        FX_CHECK(tag == (uint8_t)(peer->received % 255));
        FX_CHECK(memcmp(message, want, length) == 0);
        FX_CHECK(GNI_SmsgRelease(peer->ep) == GNI_RC_SUCCESS);
        peer->received++;
    }
}

static void flood_send(struct fx_rank *r, struct flood_peer *peer, unsigned to, uint64_t seed)
{
    uint8_t out[FLOOD_MAXSIZE];

    while (peer->sent < FLOOD_MESSAGES) {
        uint32_t length = flood_make(seed, r->rank, to, peer->sent, out);
        uint32_t header_bytes = length / 3;
        gni_return_t rc = GNI_SmsgSendWTag(peer->ep, out, header_bytes, out + header_bytes, length - header_bytes,
                                           to << 24 | peer->sent, (uint8_t)(peer->sent % 255));

        if (rc == GNI_RC_NOT_DONE)
            return;
        FX_CHECK(rc == GNI_RC_SUCCESS);
        peer->sent++;
    }
}

/* Completions come in the order of the sends to one peer. */
static void flood_collect(const struct gx_side *side, uint32_t *completed)
{
    gni_cq_entry_t entry;
    gni_return_t rc;

    while ((rc = GNI_CqGetEvent(side->src_cq, &entry)) == GNI_RC_SUCCESS) {
        uint32_t id = (uint32_t)GNI_CQ_GET_MSG_ID(entry);

        FX_CHECK(id >> 24 < FLOOD_RANKS);
        FX_CHECK((id & 0xffffff) == completed[id >> 24]);
        completed[id >> 24]++;
    }
    FX_CHECK(rc == GNI_RC_NOT_DONE);
}

/* Entries are hints, and this queue is small: an overrun is nothing but another hint. */
static void flood_take_hints(gni_cq_handle_t cq)
{
    gni_cq_entry_t entry;
    gni_return_t rc;

    while ((rc = GNI_CqGetEvent(cq, &entry)) != GNI_RC_NOT_DONE)
        FX_CHECK(rc == GNI_RC_SUCCESS || (rc == GNI_RC_ERROR_RESOURCE && GNI_CQ_OVERRUN(entry)));
}

static int flood(struct fx_rank *r)
{
    gni_smsg_attr_t(*attrs)[FLOOD_RANKS] = r->shared; /* [owner][peer] */
    uint64_t seed = *(uint64_t *)r->arg;
    struct flood_peer peers[FLOOD_RANKS] = { 0 };
    uint32_t completed[FLOOD_RANKS] = { 0 };
    struct gx_side side;
    unsigned open = FLOOD_RANKS - 1;
    uint64_t end_ns = emu_clock_ns() + 30 * 1000000000ull;

    gx_open(&side, r->fx, r->fx->nids[r->rank], r->rank, 0);
    for (unsigned p = 0; p < FLOOD_RANKS; p++) {
        if (p == r->rank)
            continue;
        mb_open(&peers[p].box, side.nic, side.dst_cq, GNI_SMSG_TYPE_MBOX_AUTO_RETRANSMIT, FLOOD_CREDITS, FLOOD_MAXSIZE,
                64 * p);
        attrs[r->rank][p] = peers[p].box.attr;
    }
    pthread_barrier_wait(r->barrier);
    /* No barrier from here on: a peer may send before we are ready. */
    for (unsigned p = 0; p < FLOOD_RANKS; p++) {
        if (p == r->rank)
            continue;
        FX_CHECK(GNI_EpCreate(side.nic, side.src_cq, &peers[p].ep) == GNI_RC_SUCCESS);
        FX_CHECK(GNI_EpBind(peers[p].ep, r->fx->nids[p], p) == GNI_RC_SUCCESS);
        FX_CHECK(GNI_SmsgInit(peers[p].ep, &peers[p].box.attr, &attrs[p][r->rank]) == GNI_RC_SUCCESS);
    }
    while (open > 0) {
        open = 0;
        for (unsigned p = 0; p < FLOOD_RANKS; p++) {
            if (p == r->rank)
                continue;
            flood_send(r, &peers[p], p, seed);
            flood_receive(r, &peers[p], p, seed);
            open += peers[p].received < FLOOD_MESSAGES || completed[p] < FLOOD_MESSAGES;
        }
        flood_collect(&side, completed);
        flood_take_hints(side.dst_cq);
        FX_CHECK(emu_clock_ns() < end_ns);
    }
    pthread_barrier_wait(r->barrier);
    for (unsigned p = 0; p < FLOOD_RANKS; p++) {
        if (p == r->rank)
            continue;
        flood_receive(r, &peers[p], p, seed);
        FX_CHECK(GNI_EpUnbind(peers[p].ep) == GNI_RC_SUCCESS);
        FX_CHECK(GNI_EpDestroy(peers[p].ep) == GNI_RC_SUCCESS);
        mb_close(&peers[p].box);
    }
    gx_close(&side);
    return 0;
}

static void test_flood_between_processes_keeps_content_and_order(void **state)
{
    uint64_t seed = seeded(emu_clock_ns()).state;

    (void)state;
    assert_int_equal(fx_run(&fx, FLOOD_RANKS, flood, &seed), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        WITH_BOXES(test_messages_before_our_init_are_delivered),
        WITH_BOXES(test_early_message_has_an_entry_after_our_init),
        WITH_BOXES(test_early_message_whose_entry_waits_gets_no_other),
        WITH_BOXES(test_early_messages_get_back_the_entries_that_were_taken),
        WITH_BOXES(test_early_entries_of_an_earlier_connection_do_not_count),
        WITH_BOXES(test_early_entry_of_one_connection_is_not_taken_for_another_ones),
        WITH_BOXES(test_early_messages_whose_entries_were_lost_get_them),
        CONNECTED(test_reregistered_memory_shows_nothing_old),
        CONNECTED(test_same_registration_shows_nothing_old),
        CONNECTED(test_unbound_and_bound_again_shows_nothing_old),
        CONNECTED(test_message_that_comes_after_our_close_is_not_seen_later),
        CONNECTED(test_credits_that_come_after_our_close_are_not_counted),
        WITH_BOXES(test_messages_of_a_peer_that_connects_again_are_not_lost),
        CONNECTED(test_early_message_of_the_next_connection_survives_our_close),
        WITH_BOXES(test_end_point_connected_to_itself_gets_its_own_messages),
        BOUND(test_two_end_points_of_one_nic_exchange_messages),
        CONNECTED(test_unbind_waits_for_the_completions_of_sends),
        CONNECTED(test_unbound_end_point_has_no_connection),
        CONNECTED(test_destroyed_end_point_delivers_but_completes_nothing),
        CONNECTED(test_too_long_a_message_is_refused_without_side_effect),
        CONNECTED(test_deregistered_mailbox_fails_the_send_with_its_msg_id),
        CONNECTED(test_release_to_a_peer_that_has_gone_succeeds),
        BOUND(test_calls_before_init_are_refused),
        CONNECTED(test_invalid_handles_and_pointers_are_refused),
        WITH_BOXES(test_init_refuses_attributes_that_cannot_work),
        WITH_BOXES(test_init_needs_a_bound_end_point),
        cmocka_unit_test(test_buffer_size_depends_on_type_credits_and_size_only),
        cmocka_unit_test(test_buffer_size_refuses_nonsense),
        BOUND(test_nic_wide_settings_are_checked),
        cmocka_unit_test(test_flood_between_processes_keeps_content_and_order),
    };

    return cmocka_run_group_tests(tests, start_emunic, stop_emunic);
}
