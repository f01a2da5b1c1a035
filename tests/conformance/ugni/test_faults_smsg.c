/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Short messages that an injected fault hits: those that are sent again, unseen or by the program, and those that are
 * not. Specification: spec/ugni.md 4.10, 7.3; the rules: docs/man/emunic-fault.1.
 */
#include "tests/conformance/faults.h"
#include "tests/conformance/mailbox.h"

static struct mailbox box_a;
static struct mailbox box_b;

#define CREDITS 8u

static void open_boxes(gni_smsg_type_t type)
{
    mb_open(&box_a, a.nic, a.dst_cq, type, CREDITS, 2000, 0);
    mb_open(&box_b, b.nic, b.dst_cq, type, CREDITS, 2000, 0);
    assert_int_equal(GNI_SmsgInit(a.ep, &box_a.attr, &box_b.attr), GNI_RC_SUCCESS);
    assert_int_equal(GNI_SmsgInit(b.ep, &box_b.attr, &box_a.attr), GNI_RC_SUCCESS);
}

static int open_auto(void **state)
{
    open_pair(state);
    open_boxes(GNI_SMSG_TYPE_MBOX_AUTO_RETRANSMIT);
    return 0;
}

static int open_plain(void **state)
{
    open_pair(state);
    open_boxes(GNI_SMSG_TYPE_MBOX);
    return 0;
}

static int close_boxes(void **state)
{
    fx_clear_faults(&fx);
    mb_close(&box_a);
    mb_close(&box_b);
    return close_pair(state);
}

#define auto_test(name)  cmocka_unit_test_setup_teardown(name, open_auto, close_boxes)
#define plain_test(name) cmocka_unit_test_setup_teardown(name, open_plain, close_boxes)

static void send_number(uint32_t number, uint32_t bytes)
{
    uint8_t data[2000];

    fill(data, sizeof(data), number);
    assert_int_equal(GNI_SmsgSendWTag(a.ep, &number, sizeof(number), data, bytes, 100 + number, 3), GNI_RC_SUCCESS);
}

static void receive_number(uint32_t number, uint32_t bytes)
{
    uint8_t data[2000];
    uint8_t tag = GNI_SMSG_ANY_TAG;
    void *message = NULL;
    uint32_t got;

    assert_int_equal(mb_next(b.ep, &message, &tag), GNI_RC_SUCCESS);
    assert_int_equal(tag, 3);
    memcpy(&got, message, sizeof(got));
    assert_int_equal(got, number);
    fill(data, sizeof(data), number);
    assert_memory_equal((uint8_t *)message + sizeof(got), data, bytes);
    assert_int_equal(GNI_SmsgRelease(b.ep), GNI_RC_SUCCESS);
}

static void expect_sent(uint32_t number, enum status status)
{
    gni_cq_entry_t entry = 0;

    assert_int_equal(gx_next(a.src_cq, &entry), status == STATUS_OK ? GNI_RC_SUCCESS : GNI_RC_TRANSACTION_ERROR);
    assert_int_equal(GNI_CQ_GET_TYPE(entry), GNI_CQ_EVENT_TYPE_SMSG);
    assert_int_equal(GNI_CQ_GET_MSG_ID(entry), 100 + number);
    assert_int_equal(GNI_CQ_GET_STATUS(entry), status);
}

static void expect_nothing(void)
{
    uint8_t tag = GNI_SMSG_ANY_TAG;
    void *message;

    assert_int_equal(GNI_SmsgGetNextWTag(b.ep, &message, &tag), GNI_RC_NOT_DONE);
}

static uint32_t retransmissions(void)
{
    uint32_t value = 77;

    assert_int_equal(GNI_GetNicStat(a.nic, GNI_STAT_SMSG_RETRANS_COUNT, &value), GNI_RC_SUCCESS);
    return value;
}

static void test_lost_message_is_sent_again_unseen(void **state)
{
    (void)state;
    fx_add_fault(&fx, "class=smsg action=drop every=2");
    for (uint32_t i = 0; i < 5; i++) {
        uint32_t bytes = i % 2 ? 10 : 1500;

        send_number(i, bytes);
        expect_sent(i, STATUS_OK);
        receive_number(i, bytes);
    }
    assert_int_equal(poll_once(a.src_cq), GNI_RC_NOT_DONE);
    expect_nothing();
    /* Attempts 2, 4, 6 and 8 were lost: each message after the first needed two. */
    assert_int_equal(retransmissions(), 4);
    assert_int_equal(GNI_ResetNicStat(a.nic, GNI_STAT_SMSG_RETRANS_COUNT), GNI_RC_SUCCESS);
    assert_int_equal(retransmissions(), 0);
    send_number(5, 0);
    expect_sent(5, STATUS_OK);
    receive_number(5, 0);
    assert_int_equal(retransmissions(), 1);
}

static void test_retransmissions_end_at_the_limit(void **state)
{
    static const struct outcome limit = { "limit", STATUS_RETRANSMIT_LIMIT, 1, "retransmission limit" };
    gni_cq_entry_t entry = 0;

    (void)state;
    assert_int_equal(GNI_SmsgSetMaxRetrans(a.nic, 3), GNI_RC_SUCCESS);
    fx_add_fault(&fx, "class=smsg action=drop after=1 count=4");
    for (uint32_t i = 0; i < 3; i++)
        send_number(i, 100);
    expect_sent(0, STATUS_OK);
    assert_int_equal(gx_next(a.src_cq, &entry), GNI_RC_TRANSACTION_ERROR);
    assert_int_equal(GNI_CQ_GET_MSG_ID(entry), 101);
    expect_entry(entry, &limit);
    expect_sent(2, STATUS_OK);
    assert_int_equal(poll_once(a.src_cq), GNI_RC_NOT_DONE);
    assert_int_equal(retransmissions(), 3);
    /* The connection goes on: without the lost one, and with it when it is sent again. */
    receive_number(0, 100);
    receive_number(2, 100);
    expect_nothing();
    send_number(1, 100);
    expect_sent(1, STATUS_OK);
    receive_number(1, 100);
}

static void test_no_retransmission_is_a_limit_too(void **state)
{
    (void)state;
    assert_int_equal(GNI_SmsgSetMaxRetrans(a.nic, 0), GNI_RC_SUCCESS);
    fx_add_fault(&fx, "class=smsg action=corrupt nth=1");
    send_number(0, 1);
    expect_sent(0, STATUS_RETRANSMIT_LIMIT);
    send_number(1, 1);
    expect_sent(1, STATUS_OK);
    receive_number(1, 1);
    assert_int_equal(retransmissions(), 0);
}

static void test_default_limit_is_ten(void **state)
{
    (void)state;
    fx_add_fault(&fx, "class=smsg action=drop count=10");
    send_number(0, 1);
    expect_sent(0, STATUS_OK);
    receive_number(0, 1);
    assert_int_equal(retransmissions(), 10);
    fx_clear_faults(&fx);
    fx_add_fault(&fx, "class=smsg action=drop count=11");
    send_number(1, 1);
    expect_sent(1, STATUS_RETRANSMIT_LIMIT);
    assert_int_equal(retransmissions(), 20);
}

static void test_plain_mailbox_shows_the_loss_and_the_program_sends_again(void **state)
{
    static const struct outcome lost = { "drop", STATUS_NETWORK, 1, "network" };
    gni_cq_entry_t entry = 0;

    (void)state;
    fx_add_fault(&fx, "class=smsg action=drop nth=2");
    for (uint32_t i = 0; i < 4; i++)
        send_number(i, 50);
    expect_sent(0, STATUS_OK);
    receive_number(0, 50);
    expect_nothing(); /* the others wait behind the hole */
    assert_int_equal(gx_next(a.src_cq, &entry), GNI_RC_TRANSACTION_ERROR);
    assert_int_equal(GNI_CQ_GET_MSG_ID(entry), 101);
    expect_entry(entry, &lost);
    send_number(1, 50);
    expect_sent(2, STATUS_OK);
    expect_sent(3, STATUS_OK);
    expect_sent(1, STATUS_OK);
    receive_number(2, 50);
    receive_number(3, 50);
    receive_number(1, 50);
    expect_nothing();
    assert_int_equal(retransmissions(), 0);
}

/* Losses use credits up as messages do, and give them back. */
static void test_losses_cost_no_credit_for_good(void **state)
{
    (void)state;
    fx_add_fault(&fx, "class=smsg action=drop every=2");
    for (uint32_t i = 0; i < 20 * CREDITS; i++) {
        uint32_t number = i;
        enum status status = i % 2 ? STATUS_NETWORK : STATUS_OK;

        assert_int_equal(mb_send(a.ep, a.src_cq, &number, sizeof(number), NULL, 0, 100 + number, 3), GNI_RC_SUCCESS);
        expect_sent(i, status);
        if (status == STATUS_OK)
            receive_number(i, 0);
        else
            expect_nothing();
    }
}

static void test_hole_wakes_a_receiver_that_sleeps_before_it(void **state)
{
    gni_cq_entry_t entry;
    uint32_t which;

    (void)state;
    fx_add_fault(&fx, "class=smsg action=drop nth=1");
    send_number(0, 4);
    send_number(1, 4);
    /* The second one's event comes and shows nothing yet. */
    assert_int_equal(gx_next(b.dst_cq, &entry), GNI_RC_SUCCESS);
    expect_nothing();
    expect_sent(0, STATUS_NETWORK);
    assert_int_equal(GNI_CqVectorMonitor(&b.dst_cq, 1, 10000, &which), GNI_RC_SUCCESS);
    receive_number(1, 4);
    expect_sent(1, STATUS_OK);
}

static void test_permanent_failures_are_not_sent_again(void **state)
{
    (void)state;
    fx_add_fault(&fx, "class=smsg action=fail status=remote-permission nth=1");
    send_number(0, 4);
    expect_sent(0, STATUS_REMOTE_PERMISSION);
    send_number(1, 4);
    expect_sent(1, STATUS_OK);
    receive_number(1, 4);
    assert_int_equal(retransmissions(), 0);
}

static void test_many_messages_through_a_lossy_network_arrive_in_order(void **state)
{
    uint32_t next = 0;

    (void)state;
    fx_add_fault(&fx, "class=smsg action=drop rate=0.2 seed=5");
    fx_add_fault(&fx, "class=smsg action=corrupt rate=0.1 seed=6");
    for (uint32_t number = 0; number < 500; number++) {
        uint8_t data[2000];
        uint64_t end_ns = emu_clock_ns() + PATIENCE_NS;
        gni_return_t rc;

        fill(data, sizeof(data), number);
        while ((rc = GNI_SmsgSendWTag(a.ep, &number, 4, data, number, 100 + number, 3)) == GNI_RC_NOT_DONE &&
               emu_clock_ns() < end_ns) {
            mb_drain(a.src_cq);
            if (next < number) {
                receive_number(next, next);
                next++;
            }
        }
        assert_int_equal(rc, GNI_RC_SUCCESS);
    }
    while (next < 500) {
        receive_number(next, next);
        next++;
    }
    expect_nothing();
    assert_in_range(retransmissions(), 100, 300);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        auto_test(test_lost_message_is_sent_again_unseen),
        auto_test(test_retransmissions_end_at_the_limit),
        auto_test(test_no_retransmission_is_a_limit_too),
        auto_test(test_default_limit_is_ten),
        plain_test(test_plain_mailbox_shows_the_loss_and_the_program_sends_again),
        plain_test(test_losses_cost_no_credit_for_good),
        plain_test(test_hole_wakes_a_receiver_that_sleeps_before_it),
        auto_test(test_permanent_failures_are_not_sent_again),
        auto_test(test_many_messages_through_a_lossy_network_arrive_in_order),
    };

    return cmocka_run_group_tests(tests, start_emunic, stop_emunic);
}
