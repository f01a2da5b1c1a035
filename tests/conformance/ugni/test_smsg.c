/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Short messages: content and order, tags, completions, credits; connections are in test_smsg_connection.c.
 * Specification: spec/ugni.md 4.10, 4.4, 7.13-7.15.
 */
#include "tests/conformance/smsg.h"

/* ---- content and order ---- */

static void test_messages_of_every_length_and_split_arrive_whole_and_in_order(void **state)
{
    uint8_t out[MAXSIZE];

    (void)state;
    for (uint32_t length = 0; length <= MAXSIZE; length++) {
        uint32_t header_bytes = length ? (length * 37) % (length + 1) : 0;
        uint8_t tag = GNI_SMSG_ANY_TAG;
        void *message = NULL;

        for (uint32_t i = 0; i < length; i++)
            out[i] = (uint8_t)(i * 13 + length);
        assert_int_equal(mb_send(a.ep, a.src_cq, header_bytes ? out : NULL, header_bytes,
                                 length > header_bytes ? out + header_bytes : NULL, length - header_bytes, length,
                                 (uint8_t)(length % 255)),
                         GNI_RC_SUCCESS);
        assert_int_equal(mb_next(b.ep, &message, &tag), GNI_RC_SUCCESS);
        assert_int_equal(tag, length % 255);
        assert_int_equal((uintptr_t)message % 8, 0);
        assert_memory_equal(message, out, length);
        assert_int_equal(GNI_SmsgRelease(b.ep), GNI_RC_SUCCESS);
    }
}

static void test_empty_message_is_a_message(void **state)
{
    uint8_t tag = GNI_SMSG_ANY_TAG;
    void *message = NULL;

    (void)state;
    assert_int_equal(GNI_SmsgSendWTag(a.ep, NULL, 0, NULL, 0, UINT32_MAX, 3), GNI_RC_SUCCESS);
    assert_int_equal(mb_next(b.ep, &message, &tag), GNI_RC_SUCCESS);
    assert_int_equal(tag, 3);
    assert_int_equal(GNI_SmsgRelease(b.ep), GNI_RC_SUCCESS);
    expect_nothing(b.ep);
}

static void test_message_of_the_largest_size_arrives_whole(void **state)
{
    uint8_t tag = GNI_SMSG_ANY_TAG;
    void *message = NULL;
    uint8_t *out = malloc(GNI_SMSG_MAX_SIZE + 1);

    (void)state;
    open_boxes(GNI_SMSG_TYPE_MBOX, 3, GNI_SMSG_MAX_SIZE);
    init_a();
    init_b();
    for (uint32_t round = 0; round < 12; round++) {
        for (uint32_t i = 0; i < GNI_SMSG_MAX_SIZE; i++)
            out[i] = (uint8_t)(i * 7 + i / 251 + round);
        assert_int_equal(mb_send(a.ep, a.src_cq, out, 1000, out + 1000, GNI_SMSG_MAX_SIZE - 1000, round, 0),
                         GNI_RC_SUCCESS);
        assert_int_equal(mb_next(b.ep, &message, &tag), GNI_RC_SUCCESS);
        assert_memory_equal(message, out, GNI_SMSG_MAX_SIZE);
        assert_int_equal(GNI_SmsgRelease(b.ep), GNI_RC_SUCCESS);
    }
    mb_drain(a.src_cq);
    assert_int_equal(GNI_SmsgSend(a.ep, out, GNI_SMSG_MAX_SIZE, out, 1, 0), GNI_RC_ERROR_RESOURCE);
    free(out);
}

static void test_buffers_are_free_when_the_send_returns(void **state)
{
    static const uint32_t sizes[] = { 4, 40, 900 };
    uint8_t tag = GNI_SMSG_ANY_TAG;
    void *message = NULL;
    uint8_t out[900];
    uint8_t want[900];

    (void)state;
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        memset(out, 0x11, sizeof(out));
        memset(want, 0x11, sizeof(want));
        assert_int_equal(GNI_SmsgSend(a.ep, out, 2, out + 2, sizes[i] - 2, 0), GNI_RC_SUCCESS);
        memset(out, 0x22, sizeof(out));
        assert_int_equal(mb_next(b.ep, &message, &tag), GNI_RC_SUCCESS);
        assert_memory_equal(message, want, sizes[i]);
        assert_int_equal(GNI_SmsgRelease(b.ep), GNI_RC_SUCCESS);
    }
}

static void test_a_mailbox_may_start_at_any_address(void **state)
{
    static const size_t skews[] = { 1, 3, 7, 8, 63, 64, 65, 80, 4095 };

    (void)state;
    for (size_t i = 0; i < sizeof(skews) / sizeof(skews[0]); i++) {
        mb_open(&box_a, a.nic, a.dst_cq, GNI_SMSG_TYPE_MBOX, CREDITS, 100, skews[i]);
        mb_open(&box_b, b.nic, b.dst_cq, GNI_SMSG_TYPE_MBOX, CREDITS, 100, 0);
        /* Its first byte is given by buffer and offset together. */
        box_a.attr.msg_buffer = box_a.mem;
        box_a.attr.mbox_offset = (uint32_t)skews[i];
        init_a();
        init_b();
        for (uint32_t n = 0; n < 3 * CREDITS; n++) {
            assert_int_equal(send_number_soon(a.ep, n), GNI_RC_SUCCESS);
            expect_number(b.ep, n);
            assert_int_equal(send_number_soon(b.ep, ~n), GNI_RC_SUCCESS);
            expect_number(a.ep, ~n);
        }
        for (size_t at = 0; at < skews[i]; at++)
            assert_int_equal(box_a.mem[at], 0xa5); /* nothing is written before it ... */
        for (size_t at = skews[i] + box_a.attr.buff_size; at < box_a.bytes; at++)
            assert_int_equal(box_a.mem[at], 0xa5); /* ... or behind it */
        mb_drain(a.src_cq);
        mb_drain(b.src_cq);
        renew_ep(&a, &b);
        renew_ep(&b, &a);
        mb_close(&box_a);
        mb_close(&box_b);
    }
}

static void test_neighbouring_mailboxes_do_not_disturb_each_other(void **state)
{
    gni_smsg_attr_t attr_a[3];
    gni_smsg_attr_t attr_b[3];
    gni_ep_handle_t ep_a[3];
    gni_ep_handle_t ep_b[3];

    (void)state;
    mb_open(&box_a, a.nic, a.dst_cq, GNI_SMSG_TYPE_MBOX, 3 * CREDITS, 48, 0);
    mb_open(&box_b, b.nic, b.dst_cq, GNI_SMSG_TYPE_MBOX, 3 * CREDITS, 48, 0);
    for (unsigned i = 0; i < 3; i++) {
        unsigned int needed = 0;

        attr_a[i] = box_a.attr;
        attr_b[i] = box_b.attr;
        attr_a[i].mbox_maxcredit = attr_b[i].mbox_maxcredit = 2;
        assert_int_equal(GNI_SmsgBufferSizeNeeded(&attr_a[i], &needed), GNI_RC_SUCCESS);
        attr_a[i].mbox_offset = attr_b[i].mbox_offset = i * needed; /* back to back */
        assert_int_equal(GNI_EpCreate(a.nic, a.src_cq, &ep_a[i]), GNI_RC_SUCCESS);
        assert_int_equal(GNI_EpCreate(b.nic, b.src_cq, &ep_b[i]), GNI_RC_SUCCESS);
        assert_int_equal(GNI_EpBind(ep_a[i], b.nic_addr, b.inst_id), GNI_RC_SUCCESS);
        assert_int_equal(GNI_EpBind(ep_b[i], a.nic_addr, a.inst_id), GNI_RC_SUCCESS);
        assert_int_equal(GNI_SmsgInit(ep_a[i], &attr_a[i], &attr_b[i]), GNI_RC_SUCCESS);
        assert_int_equal(GNI_SmsgInit(ep_b[i], &attr_b[i], &attr_a[i]), GNI_RC_SUCCESS);
    }
    for (uint32_t n = 0; n < 20; n++) {
        for (unsigned i = 0; i < 3; i++)
            assert_int_equal(mb_send(ep_a[i], a.src_cq, &(uint32_t){ 100 * i + n }, 4, NULL, 0, n, 0), GNI_RC_SUCCESS);
        for (unsigned i = 0; i < 3; i++)
            expect_number(ep_b[i], 100 * i + n);
    }
    for (unsigned i = 0; i < 3; i++) {
        assert_int_equal(GNI_EpDestroy(ep_a[i]), GNI_RC_SUCCESS);
        assert_int_equal(GNI_EpDestroy(ep_b[i]), GNI_RC_SUCCESS);
    }
}

static void test_more_messages_than_16_bits_count_arrive_in_order(void **state)
{
    uint64_t end_ns = emu_clock_ns() + 3 * MB_PATIENCE_NS;
    uint32_t received = 0;
    uint32_t sent = 0;

    (void)state;
    while (received < 70000 && emu_clock_ns() < end_ns) {
        void *message = NULL;
        uint32_t got;

        while (sent < 70000 && send_number(a.ep, sent) == GNI_RC_SUCCESS)
            sent++;
        mb_drain(a.src_cq);
        while (GNI_SmsgGetNext(b.ep, &message) == GNI_RC_SUCCESS) {
            memcpy(&got, message, sizeof(got));
            assert_int_equal(got, received++);
            assert_int_equal(GNI_SmsgRelease(b.ep), GNI_RC_SUCCESS);
            end_ns = emu_clock_ns() + 3 * MB_PATIENCE_NS; /* they may be slow, but not stand still */
        }
        mb_drain(b.dst_cq);
    }
    assert_int_equal(received, 70000);
    expect_nothing(b.ep);
}

/* ---- tags ---- */

static void test_any_tag_takes_every_message_and_tells_its_tag(void **state)
{
    uint32_t number = 5;

    (void)state;
    for (unsigned tag = 0; tag < GNI_SMSG_ANY_TAG; tag++) {
        uint8_t got = GNI_SMSG_ANY_TAG;
        void *message = NULL;

        assert_int_equal(mb_send(a.ep, a.src_cq, NULL, 0, &number, sizeof(number), tag, (uint8_t)tag), GNI_RC_SUCCESS);
        assert_int_equal(mb_next(b.ep, &message, &got), GNI_RC_SUCCESS);
        assert_int_equal(got, tag);
        assert_int_equal(GNI_SmsgRelease(b.ep), GNI_RC_SUCCESS);
    }
}

static void test_other_tag_is_no_match_and_changes_nothing(void **state)
{
    uint8_t tag = GNI_SMSG_ANY_TAG;
    void *message = NULL;
    void *other = &message;

    (void)state;
    assert_int_equal(GNI_SmsgSendWTag(a.ep, "abc", 4, NULL, 0, 0, 7), GNI_RC_SUCCESS);
    assert_int_equal(mb_next(b.ep, &message, &tag), GNI_RC_SUCCESS);
    assert_int_equal(GNI_SmsgRelease(b.ep), GNI_RC_SUCCESS);
    assert_int_equal(GNI_SmsgSendWTag(a.ep, "def", 4, NULL, 0, 1, 7), GNI_RC_SUCCESS);
    expect_sent(&a, 2);
    tag = 6;
    assert_int_equal(GNI_SmsgGetNextWTag(b.ep, &other, &tag), GNI_RC_NO_MATCH);
    assert_int_equal(tag, 6);
    assert_ptr_equal(other, &message);
    assert_int_equal(GNI_SmsgRelease(b.ep), GNI_RC_NOT_DONE); /* it did not become current */
    tag = 7;
    assert_int_equal(GNI_SmsgGetNextWTag(b.ep, &message, &tag), GNI_RC_SUCCESS);
    assert_string_equal(message, "def");
    tag = 8;
    assert_int_equal(GNI_SmsgGetNextWTag(b.ep, &other, &tag), GNI_RC_NO_MATCH);
    assert_int_equal(tag, 8);
    assert_int_equal(GNI_SmsgRelease(b.ep), GNI_RC_SUCCESS); /* the current one still is */
}

static void test_send_without_tag_has_tag_0(void **state)
{
    uint8_t tag = 0;
    void *message = NULL;

    (void)state;
    assert_int_equal(GNI_SmsgSend(a.ep, "x", 2, NULL, 0, 0), GNI_RC_SUCCESS);
    assert_int_equal(mb_next(b.ep, &message, &tag), GNI_RC_SUCCESS);
    assert_int_equal(tag, 0);
}

static void test_any_tag_cannot_be_sent(void **state)
{
    (void)state;
    assert_int_equal(GNI_SmsgSendWTag(a.ep, "x", 2, NULL, 0, 0, GNI_SMSG_ANY_TAG), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_EpIdle(a.ep), GNI_RC_SUCCESS);
}

/* ---- the current message ---- */

static void test_second_get_returns_the_same_message(void **state)
{
    uint8_t tag = GNI_SMSG_ANY_TAG;
    void *first = NULL;
    void *second = NULL;

    (void)state;
    assert_int_equal(send_number(a.ep, 1), GNI_RC_SUCCESS);
    assert_int_equal(send_number(a.ep, 2), GNI_RC_SUCCESS);
    expect_sent(&a, 2);
    assert_int_equal(GNI_SmsgGetNextWTag(b.ep, &first, &tag), GNI_RC_SUCCESS);
    assert_int_equal(GNI_SmsgGetNext(b.ep, &second), GNI_RC_SUCCESS);
    assert_ptr_equal(first, second);
    assert_int_equal(*(uint32_t *)second, 1);
    assert_int_equal(GNI_SmsgRelease(b.ep), GNI_RC_SUCCESS);
    expect_number(b.ep, 2);
}

static void test_message_stays_readable_until_its_release(void **state)
{
    uint8_t tag = GNI_SMSG_ANY_TAG;
    uint8_t out[500];
    void *message = NULL;

    (void)state;
    memset(out, 0x3c, sizeof(out));
    assert_int_equal(GNI_SmsgSend(a.ep, out, sizeof(out), NULL, 0, 0), GNI_RC_SUCCESS);
    assert_int_equal(mb_next(b.ep, &message, &tag), GNI_RC_SUCCESS);
    for (uint32_t n = 1; n < CREDITS; n++)
        assert_int_equal(send_number(a.ep, n), GNI_RC_SUCCESS);
    assert_int_equal(send_number(a.ep, CREDITS), GNI_RC_NOT_DONE);
    assert_int_equal(GNI_SmsgSendWTag(a.ep, NULL, 0, NULL, 0, CREDITS, 1), GNI_RC_NOT_DONE);
    expect_sent(&a, CREDITS);
    assert_memory_equal(message, out, sizeof(out));
    assert_int_equal(GNI_SmsgRelease(b.ep), GNI_RC_SUCCESS);
    for (uint32_t n = 1; n < CREDITS; n++)
        expect_number(b.ep, n);
}

static void test_release_without_a_current_message_is_not_done(void **state)
{
    (void)state;
    assert_int_equal(GNI_SmsgRelease(b.ep), GNI_RC_NOT_DONE);
    assert_int_equal(send_number(a.ep, 1), GNI_RC_SUCCESS);
    expect_sent(&a, 1);
    assert_int_equal(GNI_SmsgRelease(b.ep), GNI_RC_NOT_DONE); /* there, but not fetched */
    expect_number(b.ep, 1);
    assert_int_equal(GNI_SmsgRelease(b.ep), GNI_RC_NOT_DONE);
}

static void test_empty_mailbox_is_not_done_and_touches_no_output(void **state)
{
    uint8_t tag = 9;
    void *message = &tag;

    (void)state;
    assert_int_equal(GNI_SmsgGetNextWTag(b.ep, &message, &tag), GNI_RC_NOT_DONE);
    assert_ptr_equal(message, &tag);
    assert_int_equal(tag, 9);
}

/* ---- completions and entries ---- */

static void test_send_completes_once_with_its_msg_id_for_both_types(void **state)
{
    static const gni_smsg_type_t types[] = { GNI_SMSG_TYPE_MBOX, GNI_SMSG_TYPE_MBOX_AUTO_RETRANSMIT };
    static const uint32_t ids[] = { 0, 1, 0xffffffffu, 0x80000001u };
    gni_cq_entry_t entry = 0;

    (void)state;
    for (unsigned t = 0; t < 2; t++) {
        open_boxes(types[t], CREDITS, 64);
        init_a();
        init_b();
        for (unsigned i = 0; i < 4; i++)
            assert_int_equal(GNI_SmsgSend(a.ep, "x", 2, NULL, 0, ids[i]), GNI_RC_SUCCESS);
        for (unsigned i = 0; i < 4; i++) {
            assert_int_equal(gx_next(a.src_cq, &entry), GNI_RC_SUCCESS);
            assert_int_equal(GNI_CQ_GET_TYPE(entry), GNI_CQ_EVENT_TYPE_SMSG);
            assert_int_equal(GNI_CQ_GET_MSG_ID(entry), ids[i]);
            assert_true(GNI_CQ_STATUS_OK(entry));
        }
        assert_int_equal(GNI_CqGetEvent(a.src_cq, &entry), GNI_RC_NOT_DONE);
        renew_ep(&a, &b);
        renew_ep(&b, &a);
        mb_close(&box_a);
        mb_close(&box_b);
    }
}

static void test_send_completes_before_the_receiver_looks(void **state)
{
    (void)state;
    for (uint32_t n = 0; n < CREDITS; n++)
        assert_int_equal(send_number(a.ep, n), GNI_RC_SUCCESS);
    expect_sent(&a, CREDITS);
    for (uint32_t n = 0; n < CREDITS; n++)
        expect_number(b.ep, n);
}

static void test_arrival_entry_carries_the_senders_remote_event(void **state)
{
    gni_cq_entry_t entry = 0;

    (void)state;
    assert_int_equal(send_number(a.ep, 1), GNI_RC_SUCCESS);
    assert_int_equal(gx_next(b.dst_cq, &entry), GNI_RC_SUCCESS);
    assert_int_equal(GNI_CQ_GET_TYPE(entry), GNI_CQ_EVENT_TYPE_SMSG);
    assert_int_equal(GNI_CQ_GET_REM_INST_ID(entry), a.inst_id); /* as long as nothing was set */
    expect_number(b.ep, 1);                                     /* the message is there when its entry is */
    assert_int_equal(GNI_EpSetEventData(a.ep, 0x1234, 0x89abcdef), GNI_RC_SUCCESS);
    assert_int_equal(send_number(a.ep, 2), GNI_RC_SUCCESS);
    assert_int_equal(gx_next(b.dst_cq, &entry), GNI_RC_SUCCESS);
    assert_int_equal(GNI_CQ_GET_REM_INST_ID(entry), 0x89abcdef);
    assert_int_equal(GNI_CQ_GET_INST_ID(entry), 0xabcdef);
    expect_number(b.ep, 2);
}

static void test_each_arrival_has_an_entry(void **state)
{
    gni_cq_entry_t entry;

    (void)state;
    for (uint32_t n = 0; n < 50; n++) {
        assert_int_equal(send_number_soon(a.ep, n), GNI_RC_SUCCESS);
        assert_int_equal(gx_next(b.dst_cq, &entry), GNI_RC_SUCCESS);
        expect_number(b.ep, n);
        expect_nothing(b.ep);
    }
}

static void test_mailbox_without_queue_delivers_without_entries(void **state)
{
    gni_cq_entry_t entry;

    (void)state;
    mb_open(&box_a, a.nic, NULL, GNI_SMSG_TYPE_MBOX, CREDITS, 64, 0);
    mb_open(&box_b, b.nic, NULL, GNI_SMSG_TYPE_MBOX, CREDITS, 64, 0);
    init_a();
    init_b();
    for (uint32_t n = 0; n < 3 * CREDITS; n++) {
        assert_int_equal(send_number_soon(a.ep, n), GNI_RC_SUCCESS);
        expect_number(b.ep, n);
    }
    expect_sent(&a, 3 * CREDITS);
    settle(&b, &a);
    assert_int_equal(GNI_CqGetEvent(a.dst_cq, &entry), GNI_RC_NOT_DONE);
    assert_int_equal(GNI_CqGetEvent(b.dst_cq, &entry), GNI_RC_NOT_DONE);
}

/* ---- credits ---- */

static void test_sender_without_credit_must_wait_for_releases(void **state)
{
    (void)state;
    for (uint32_t n = 0; n < CREDITS; n++)
        assert_int_equal(send_number(a.ep, n), GNI_RC_SUCCESS);
    assert_int_equal(send_number(a.ep, CREDITS), GNI_RC_NOT_DONE);
    expect_sent(&a, CREDITS);
    assert_int_equal(send_number(a.ep, CREDITS), GNI_RC_NOT_DONE); /* completion is not a credit */
    for (uint32_t n = 0; n < CREDITS; n++)
        expect_number(b.ep, n);
    settle(&b, &a);
    for (uint32_t n = 0; n < CREDITS; n++)
        assert_int_equal(send_number(a.ep, n), GNI_RC_SUCCESS); /* all of them have come back */
    assert_int_equal(send_number(a.ep, CREDITS), GNI_RC_NOT_DONE);
}

static void test_refused_send_leaves_no_trace(void **state)
{
    gni_cq_entry_t entry;

    (void)state;
    for (uint32_t n = 0; n < CREDITS; n++)
        assert_int_equal(send_number(a.ep, n), GNI_RC_SUCCESS);
    for (unsigned i = 0; i < 100; i++)
        assert_int_equal(send_number(a.ep, 1000 + i), GNI_RC_NOT_DONE);
    expect_sent(&a, CREDITS);
    assert_int_equal(GNI_CqGetEvent(a.src_cq, &entry), GNI_RC_NOT_DONE);
    for (uint32_t n = 0; n < CREDITS; n++)
        expect_number(b.ep, n);
    expect_nothing(b.ep);
}

static void test_one_credit_is_enough(void **state)
{
    (void)state;
    open_boxes(GNI_SMSG_TYPE_MBOX_AUTO_RETRANSMIT, 1, 64);
    init_a();
    init_b();
    for (uint32_t n = 0; n < 200; n++) {
        assert_int_equal(mb_send(a.ep, a.src_cq, &n, sizeof(n), NULL, 0, n, 0), GNI_RC_SUCCESS);
        assert_int_equal(send_number(a.ep, n), GNI_RC_NOT_DONE);
        expect_number(b.ep, n);
        assert_int_equal(mb_send(b.ep, b.src_cq, &n, sizeof(n), NULL, 0, n, 0), GNI_RC_SUCCESS);
        expect_number(a.ep, n);
        mb_drain(a.dst_cq);
        mb_drain(b.dst_cq);
    }
}

static void test_sender_obeys_the_receivers_credits_and_size(void **state)
{
    uint8_t out[4080] = { 0 };

    (void)state;
    mb_open(&box_a, a.nic, a.dst_cq, GNI_SMSG_TYPE_MBOX, 2, 4080, 0);
    mb_open(&box_b, b.nic, b.dst_cq, GNI_SMSG_TYPE_MBOX, 9, 112, 0);
    init_a();
    init_b();
    for (uint32_t round = 0; round < 20; round++) {
        for (uint32_t n = 0; n < 9; n++)
            assert_int_equal(mb_send(a.ep, a.src_cq, &n, sizeof(n), out, 108, n, 0), GNI_RC_SUCCESS);
        assert_int_equal(send_number(a.ep, 9), GNI_RC_NOT_DONE);
        for (uint32_t n = 0; n < 2; n++)
            assert_int_equal(mb_send(b.ep, b.src_cq, &n, sizeof(n), out, 4076, n, 0), GNI_RC_SUCCESS);
        assert_int_equal(send_number(b.ep, 2), GNI_RC_NOT_DONE);
        for (uint32_t n = 0; n < 9; n++)
            expect_number(b.ep, n);
        for (uint32_t n = 0; n < 2; n++)
            expect_number(a.ep, n);
        mb_drain(a.dst_cq);
        mb_drain(b.dst_cq);
    }
    settle(&a, &b);
    settle(&b, &a);
    assert_int_equal(GNI_SmsgSend(a.ep, out, 113, NULL, 0, 0), GNI_RC_ERROR_RESOURCE);
    assert_int_equal(GNI_SmsgSend(b.ep, out, 4080, out, 1, 0), GNI_RC_ERROR_RESOURCE);
}

struct releaser {
    pthread_t thread;
    gni_ep_handle_t ep;
    uint32_t last; /* stops behind the message with this number */
    gni_return_t rc;
};

static void *release_messages(void *arg)
{
    struct releaser *r = arg;
    uint32_t got = ~r->last;

    do {
        uint8_t tag = GNI_SMSG_ANY_TAG;
        void *message;

        r->rc = mb_next(r->ep, &message, &tag);
        if (r->rc != GNI_RC_SUCCESS)
            break;
        memcpy(&got, message, sizeof(got));
        r->rc = GNI_SmsgRelease(r->ep);
    } while (got != r->last && r->rc == GNI_RC_SUCCESS);
    return NULL;
}

static void test_returned_credit_wakes_a_sender_that_sleeps(void **state)
{
    struct releaser r = { .ep = b.ep, .last = 77 };

    (void)state;
    for (unsigned round = 0; round < 200; round++) {
        uint32_t n = 1000;
        uint32_t which;

        while (send_number(a.ep, n) == GNI_RC_SUCCESS)
            n++;
        mb_drain(a.src_cq);
        mb_drain(a.dst_cq);
        assert_int_equal(pthread_create(&r.thread, NULL, release_messages, &r), 0);
        while (send_number(a.ep, 77) == GNI_RC_NOT_DONE) {
            assert_int_equal(GNI_CqVectorMonitor(&a.dst_cq, 1, 10000, &which), GNI_RC_SUCCESS);
            mb_drain(a.dst_cq);
        }
        assert_int_equal(pthread_join(r.thread, NULL), 0);
        assert_int_equal(r.rc, GNI_RC_SUCCESS);
        mb_drain(b.dst_cq);
    }
}

static void test_credits_come_back_by_polling_either_side(void **state)
{
    void *message;

    (void)state;
    /* The sender only asks for messages; its next sends find their credits. */
    for (uint32_t n = 0; n < CREDITS; n++)
        assert_int_equal(send_number(a.ep, n), GNI_RC_SUCCESS);
    for (uint32_t n = 0; n < CREDITS; n++)
        expect_number(b.ep, n);
    settle(&b, &a);
    assert_int_equal(GNI_SmsgGetNext(a.ep, &message), GNI_RC_NOT_DONE);
    for (uint32_t n = 0; n < CREDITS; n++)
        assert_int_equal(send_number(a.ep, n), GNI_RC_SUCCESS);
}

static void test_full_source_queue_refuses_a_send(void **state)
{
    gni_cq_entry_t entry;

    setenv("EMUNIC_CQ_FLOOR", "0", 1);
    gx_open(&a, &fx, 0, 10, 0);
    unsetenv("EMUNIC_CQ_FLOOR");
    gx_open(&b, &fx, 1, 11, 0);
    assert_int_equal(GNI_CqDestroy(a.src_cq), GNI_RC_SUCCESS);
    assert_int_equal(GNI_CqCreate(a.nic, 2, 0, GNI_CQ_NOBLOCK, NULL, NULL, &a.src_cq), GNI_RC_SUCCESS);
    gx_connect(&a, &b);
    open_boxes(GNI_SMSG_TYPE_MBOX, 8, 64);
    init_a();
    init_b();
    assert_int_equal(send_number(a.ep, 0), GNI_RC_SUCCESS);
    assert_int_equal(send_number(a.ep, 1), GNI_RC_SUCCESS);
    assert_int_equal(send_number(a.ep, 2), GNI_RC_NOT_DONE);
    expect_number(b.ep, 0);
    expect_number(b.ep, 1);
    assert_int_equal(send_number(a.ep, 2), GNI_RC_NOT_DONE); /* a credit is not room */
    assert_int_equal(gx_next(a.src_cq, &entry), GNI_RC_SUCCESS);
    assert_int_equal(GNI_CQ_GET_MSG_ID(entry), 0);
    assert_int_equal(send_number(a.ep, 2), GNI_RC_SUCCESS);
    assert_int_equal(send_number(a.ep, 3), GNI_RC_NOT_DONE);
    expect_number(b.ep, 2);
    close_connection(state);
}

/* ---- flood ---- */

/* A sender without credits, whose own queue has one entry: credits that come back are no events of peers. */
static void test_credits_that_come_back_do_not_overrun_a_queue_of_one_entry(void **state)
{
    gni_cq_handle_t tiny;
    gni_cq_entry_t entry;
    gni_return_t rc;
    unsigned n = 0;

    (void)state;
    assert_int_equal(GNI_CqCreate(a.nic, 1, 0, GNI_CQ_NOBLOCK, NULL, NULL, &tiny), GNI_RC_SUCCESS);
    mb_open(&box_a, a.nic, tiny, GNI_SMSG_TYPE_MBOX_AUTO_RETRANSMIT, 1, 64, 0);
    mb_open(&box_b, b.nic, b.dst_cq, GNI_SMSG_TYPE_MBOX_AUTO_RETRANSMIT, 1, 64, 0);
    init_a();
    init_b();
    for (uint32_t i = 0; i < 50; i++) {
        assert_int_equal(send_number_soon(a.ep, i), GNI_RC_SUCCESS);
        expect_sent(&a, 1);
        expect_number(b.ep, i);
    }
    settle(&b, &a);
    while ((rc = GNI_CqGetEvent(tiny, &entry)) == GNI_RC_SUCCESS)
        n++;
    assert_int_equal(rc, GNI_RC_NOT_DONE);
    assert_int_equal(n, 50);
    mb_close(&box_a);
    box_a = (struct mailbox){ .nic = a.nic };
    assert_int_equal(GNI_CqDestroy(tiny), GNI_RC_SUCCESS);
}

/* Its messages do, and none of them is lost. */
static void test_messages_overrun_a_queue_of_one_entry(void **state)
{
    gni_cq_handle_t tiny;
    gni_cq_entry_t entry;

    (void)state;
    assert_int_equal(GNI_CqCreate(b.nic, 1, 0, GNI_CQ_NOBLOCK, NULL, NULL, &tiny), GNI_RC_SUCCESS);
    mb_open(&box_a, a.nic, a.dst_cq, GNI_SMSG_TYPE_MBOX_AUTO_RETRANSMIT, 20, 64, 0);
    mb_open(&box_b, b.nic, tiny, GNI_SMSG_TYPE_MBOX_AUTO_RETRANSMIT, 20, 64, 0);
    init_a();
    init_b();
    for (uint32_t i = 0; i < 20; i++)
        assert_int_equal(send_number(a.ep, i), GNI_RC_SUCCESS);
    expect_sent(&a, 20);
    assert_int_equal(gx_next(tiny, &entry), GNI_RC_SUCCESS);
    for (uint32_t i = 1; i < 20; i++)
        assert_int_equal(gx_next(tiny, &entry), GNI_RC_ERROR_RESOURCE);
    for (uint32_t i = 0; i < 20; i++)
        expect_number(b.ep, i);
    expect_nothing(b.ep);
    mb_close(&box_b);
    box_b = (struct mailbox){ .nic = b.nic };
    assert_int_equal(GNI_CqDestroy(tiny), GNI_RC_SUCCESS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        CONNECTED(test_messages_of_every_length_and_split_arrive_whole_and_in_order),
        CONNECTED(test_empty_message_is_a_message),
        WITH_BOXES(test_message_of_the_largest_size_arrives_whole),
        CONNECTED(test_buffers_are_free_when_the_send_returns),
        BOUND(test_a_mailbox_may_start_at_any_address),
        WITH_BOXES(test_neighbouring_mailboxes_do_not_disturb_each_other),
        CONNECTED(test_more_messages_than_16_bits_count_arrive_in_order),
        CONNECTED(test_any_tag_takes_every_message_and_tells_its_tag),
        CONNECTED(test_other_tag_is_no_match_and_changes_nothing),
        CONNECTED(test_send_without_tag_has_tag_0),
        CONNECTED(test_any_tag_cannot_be_sent),
        CONNECTED(test_second_get_returns_the_same_message),
        CONNECTED(test_message_stays_readable_until_its_release),
        CONNECTED(test_release_without_a_current_message_is_not_done),
        CONNECTED(test_empty_mailbox_is_not_done_and_touches_no_output),
        BOUND(test_send_completes_once_with_its_msg_id_for_both_types),
        CONNECTED(test_send_completes_before_the_receiver_looks),
        WITH_BOXES(test_credits_that_come_back_do_not_overrun_a_queue_of_one_entry),
        WITH_BOXES(test_messages_overrun_a_queue_of_one_entry),
        CONNECTED(test_arrival_entry_carries_the_senders_remote_event),
        CONNECTED(test_each_arrival_has_an_entry),
        WITH_BOXES(test_mailbox_without_queue_delivers_without_entries),
        CONNECTED(test_sender_without_credit_must_wait_for_releases),
        CONNECTED(test_refused_send_leaves_no_trace),
        WITH_BOXES(test_one_credit_is_enough),
        WITH_BOXES(test_sender_obeys_the_receivers_credits_and_size),
        CONNECTED(test_returned_credit_wakes_a_sender_that_sleeps),
        CONNECTED(test_credits_come_back_by_polling_either_side),
        cmocka_unit_test(test_full_source_queue_refuses_a_send),
    };

    return cmocka_run_group_tests(tests, start_emunic, stop_emunic);
}
