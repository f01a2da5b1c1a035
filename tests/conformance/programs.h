/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the tests of programs' habits share: atomics on a word, connections of short messages. Includes pair.h; each
 * program includes this once.
 */
#ifndef TESTS_CONFORMANCE_PROGRAMS_H
#define TESTS_CONFORMANCE_PROGRAMS_H

#include "tests/conformance/mailbox.h"
#include "tests/conformance/pair.h"

/* An atomic on the word at b.mem; a result goes to a.mem + 64. */
static inline gni_post_descriptor_t amo_on_word(gni_fma_cmd_type_t cmd, uint64_t length, uint64_t first,
                                                uint64_t second)
{
    gni_post_descriptor_t d = word_post(GNI_POST_AMO, 0);

    d.amo_cmd = cmd;
    d.length = length;
    d.first_operand = first;
    d.second_operand = second;
    d.local_addr = ADDR(a.mem) + 64;
    return d;
}

/* What one atomic makes of a word, and what it brings back. */
struct amo_row {
    gni_fma_cmd_type_t cmd;
    uint64_t length;
    uint64_t before;
    uint64_t first;
    uint64_t second;
    uint64_t after;
    bool has_result; /* the word as it was */
};

static inline void check_amos(const struct amo_row *rows, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const struct amo_row *r = &rows[i];
        gni_post_descriptor_t d = amo_on_word(r->cmd, r->length, r->first, r->second);
        uint64_t word = 0;
        uint64_t result = 0;

        if (!r->has_result)
            d.local_mem_hndl = (gni_mem_handle_t){ 0, 0 };
        memset(b.mem, 0, 8);
        memcpy(b.mem, &r->before, r->length);
        memset(a.mem + 64, 0xee, 16);
        assert_int_equal(run(&d), STATUS_OK);
        memcpy(&word, b.mem, r->length);
        assert_true(word == r->after);
        if (r->has_result) {
            memcpy(&result, a.mem + 64, r->length);
            assert_true(result == r->before);
        }
        assert_true(all_bytes_are(a.mem + 64 + (r->has_result ? r->length : 0), 0xee, 8));
    }
}

/* Both sides' mailboxes of a connection, and where messages come from. */
struct channel {
    gni_ep_handle_t ep[2]; /* of a, of b */
    struct mailbox mb[2];
};

static inline void open_channel_with(struct channel *c, uint16_t credits, uint32_t maxsize, gni_cq_handle_t a_cq,
                                     gni_cq_handle_t b_cq)
{
    assert_int_equal(GNI_EpCreate(a.nic, a.src_cq, &c->ep[0]), GNI_RC_SUCCESS);
    assert_int_equal(GNI_EpCreate(b.nic, b.src_cq, &c->ep[1]), GNI_RC_SUCCESS);
    assert_int_equal(GNI_EpBind(c->ep[0], b.nic_addr, b.inst_id), GNI_RC_SUCCESS);
    assert_int_equal(GNI_EpBind(c->ep[1], a.nic_addr, a.inst_id), GNI_RC_SUCCESS);
    mb_open(&c->mb[0], a.nic, a_cq, GNI_SMSG_TYPE_MBOX_AUTO_RETRANSMIT, credits, maxsize, 0);
    mb_open(&c->mb[1], b.nic, b_cq, GNI_SMSG_TYPE_MBOX_AUTO_RETRANSMIT, credits, maxsize, 0);
    assert_int_equal(GNI_SmsgInit(c->ep[0], &c->mb[0].attr, &c->mb[1].attr), GNI_RC_SUCCESS);
    assert_int_equal(GNI_SmsgInit(c->ep[1], &c->mb[1].attr, &c->mb[0].attr), GNI_RC_SUCCESS);
}

static inline void open_channel(struct channel *c, uint16_t credits, uint32_t maxsize)
{
    open_channel_with(c, credits, maxsize, a.dst_cq, b.dst_cq);
}

static inline void close_channel(struct channel *c)
{
    assert_int_equal(GNI_EpDestroy(c->ep[0]), GNI_RC_SUCCESS);
    assert_int_equal(GNI_EpDestroy(c->ep[1]), GNI_RC_SUCCESS);
    mb_close(&c->mb[0]);
    mb_close(&c->mb[1]);
}

/* A message that is one number. answers: GNI_SmsgSendWTag */
static inline gni_return_t send_number(gni_ep_handle_t ep, uint32_t number)
{
    return GNI_SmsgSendWTag(ep, &number, sizeof(number), NULL, 0, number, 7);
}

/* Takes the next message, which must be that number. */
static inline void expect_number(gni_ep_handle_t ep, uint32_t number)
{
    void *message = NULL;
    uint8_t tag = GNI_SMSG_ANY_TAG;
    uint32_t got;

    assert_int_equal(mb_next(ep, &message, &tag), GNI_RC_SUCCESS);
    memcpy(&got, message, sizeof(got));
    assert_int_equal(got, number);
    assert_int_equal(GNI_SmsgRelease(ep), GNI_RC_SUCCESS);
}

#endif
