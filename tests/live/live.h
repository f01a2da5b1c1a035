/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the rows of uGNI share beside tests/conformance/pair.h: subscriptions to error events, and one domain more. Each
 * program includes this once.
 */
#ifndef TESTS_LIVE_LIVE_H
#define TESTS_LIVE_LIVE_H

#include "tests/conformance/pair.h"

static inline gni_err_handle_t subscribe(const struct gx_side *side)
{
    gni_err_handle_t err = NULL;

    assert_int_equal(GNI_SubscribeErrors(side->nic, 0, 0xff, 64, &err), GNI_RC_SUCCESS);
    return err;
}

static inline gni_error_event_t next_error(gni_err_handle_t err)
{
    uint64_t end_ns = emu_clock_ns() + PATIENCE_NS;
    gni_error_event_t event = { 0 };
    gni_return_t rc;

    while ((rc = GNI_GetErrorEvent(err, &event)) == GNI_RC_NOT_DONE && emu_clock_ns() < end_ns)
        ;
    assert_int_equal(rc, GNI_RC_SUCCESS);
    return event;
}

#endif
