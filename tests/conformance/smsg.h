/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the tests of short messages share. Each program includes this once; the objects are its own.
 */
#ifndef TESTS_CONFORMANCE_SMSG_H
#define TESTS_CONFORMANCE_SMSG_H

#include <sched.h>

#include "emunic/base/clock.h"
#include "tests/common/seed.h"
#include "tests/conformance/mailbox.h"
#include "tests/conformance/pair.h"

#define CREDITS 4
#define MAXSIZE 1008 /* fills its slot exactly: nothing longer fits */

static struct mailbox box_a;
static struct mailbox box_b;

/* ---- fixture ---- */

static inline void open_boxes(gni_smsg_type_t type, uint16_t credits, uint32_t maxsize)
{
    mb_open(&box_a, a.nic, a.dst_cq, type, credits, maxsize, 0);
    mb_open(&box_b, b.nic, b.dst_cq, type, credits, maxsize, 0);
}

static inline void init_a(void)
{
    assert_int_equal(GNI_SmsgInit(a.ep, &box_a.attr, &box_b.attr), GNI_RC_SUCCESS);
}

static inline void init_b(void)
{
    assert_int_equal(GNI_SmsgInit(b.ep, &box_b.attr, &box_a.attr), GNI_RC_SUCCESS);
}

static inline int open_connection(void **state)
{
    open_pair(state);
    open_boxes(GNI_SMSG_TYPE_MBOX_AUTO_RETRANSMIT, CREDITS, MAXSIZE);
    init_a();
    init_b();
    return 0;
}

static inline int close_connection(void **state)
{
    mb_close(&box_a);
    mb_close(&box_b);
    return close_pair(state);
}

/* ---- short hands ---- */

/* answers: GNI_SmsgSend */
static inline gni_return_t send_number(gni_ep_handle_t ep, uint32_t number)
{
    return GNI_SmsgSend(ep, &number, sizeof(number), NULL, 0, number);
}

/* The same after releases: a credit may still be on its way back from another host. */
static inline gni_return_t send_number_soon(gni_ep_handle_t ep, uint32_t number)
{
    uint64_t end_ns = emu_clock_ns() + 20000000000ull;
    gni_return_t rc;

    while ((rc = send_number(ep, number)) == GNI_RC_NOT_DONE && emu_clock_ns() < end_ns)
        sched_yield();
    return rc;
}

/* The next message is `number`; takes it. */
static inline void expect_number(gni_ep_handle_t ep, uint32_t number)
{
    uint8_t tag = GNI_SMSG_ANY_TAG;
    void *message = NULL;
    uint32_t got;

    assert_int_equal(mb_next(ep, &message, &tag), GNI_RC_SUCCESS);
    memcpy(&got, message, sizeof(got));
    assert_int_equal(got, number);
    assert_int_equal(GNI_SmsgRelease(ep), GNI_RC_SUCCESS);
}

static inline void expect_nothing(gni_ep_handle_t ep)
{
    void *message = NULL;

    assert_int_equal(GNI_SmsgGetNext(ep, &message), GNI_RC_NOT_DONE);
}

/* The completions of `count` sends; everything the side has asked of its NIC before is done then. */
static inline void expect_sent(const struct gx_side *side, unsigned count)
{
    gni_cq_entry_t entry;

    while (count-- > 0)
        assert_int_equal(gx_next(side->src_cq, &entry), GNI_RC_SUCCESS);
}

/* Waits until the NIC has done all that the side has asked of it, silent work included. Takes completions of sends. */
static inline void settle(const struct gx_side *side, const struct gx_side *peer)
{
    gni_post_descriptor_t d = gx_put(side, peer, 0, 8, GNI_CQMODE_GLOBAL_EVENT);
    gni_post_descriptor_t *done;
    gni_cq_entry_t entry;

    assert_int_equal(GNI_PostFma(side->ep, &d), GNI_RC_SUCCESS);
    do {
        assert_int_equal(gx_next(side->src_cq, &entry), GNI_RC_SUCCESS);
    } while (GNI_CQ_GET_TYPE(entry) == GNI_CQ_EVENT_TYPE_SMSG);
    assert_int_equal(GNI_GetCompleted(side->src_cq, entry, &done), GNI_RC_SUCCESS);
}

/* A new end point on the same queue towards the same peer. */
static inline void renew_ep(struct gx_side *side, const struct gx_side *peer)
{
    if (side->ep)
        assert_int_equal(GNI_EpDestroy(side->ep), GNI_RC_SUCCESS);
    assert_int_equal(GNI_EpCreate(side->nic, side->src_cq, &side->ep), GNI_RC_SUCCESS);
    assert_int_equal(GNI_EpBind(side->ep, peer->nic_addr, peer->inst_id), GNI_RC_SUCCESS);
}

/* ---- flood ---- */

#define CONNECTED(test)  cmocka_unit_test_setup_teardown(test, open_connection, close_connection)
#define WITH_BOXES(test) cmocka_unit_test_setup_teardown(test, open_pair, close_connection)
#define BOUND(test)      cmocka_unit_test_setup_teardown(test, open_pair, close_pair)

#endif
