/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the tests of losses share. Each program includes this once; the objects are its own.
 */
#ifndef TESTS_CONFORMANCE_LOSS_H
#define TESTS_CONFORMANCE_LOSS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "tests/conformance/mailbox.h"

#define LIMIT_NS 5000000000ull
#define CREDITS  4

static struct fx fx;
static struct gx_side a;
static struct gx_side b;
static struct mailbox box_a;
static struct mailbox box_b;

/* ---- fixture ---- */

static inline int start(void **state)
{
    (void)state;
    fx_start(&fx, NULL);
    gx_open(&a, &fx, 0, 10, 0);
    gx_open(&b, &fx, 1, 11, 0);
    gx_connect(&a, &b);
    mb_open(&box_a, a.nic, a.dst_cq, GNI_SMSG_TYPE_MBOX_AUTO_RETRANSMIT, CREDITS, 64, 0);
    mb_open(&box_b, b.nic, b.dst_cq, GNI_SMSG_TYPE_MBOX_AUTO_RETRANSMIT, CREDITS, 64, 0);
    assert_int_equal(GNI_SmsgInit(a.ep, &box_a.attr, &box_b.attr), GNI_RC_SUCCESS);
    assert_int_equal(GNI_SmsgInit(b.ep, &box_b.attr, &box_a.attr), GNI_RC_SUCCESS);
    return 0;
}

static inline int stop(void **state)
{
    (void)state;
    mb_close(&box_a);
    mb_close(&box_b);
    gx_close(&a);
    gx_close(&b);
    fx_stop(&fx); /* whatever is left of it */
    return 0;
}

/*
 * Polls until the queue answers something else than NOT_DONE; NOT_DONE when the limit is over.
 * answers: GNI_CqGetEvent
 */
static inline gni_return_t next_within_limit(gni_cq_handle_t cq, gni_cq_entry_t *entry)
{
    uint64_t end_ns = emu_clock_ns() + LIMIT_NS;
    gni_return_t rc;

    do {
        rc = GNI_CqGetEvent(cq, entry);
    } while (rc == GNI_RC_NOT_DONE && emu_clock_ns() < end_ns);
    return rc;
}

#define ALONE(test) cmocka_unit_test_setup_teardown(test, start, stop)

#endif
