/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the tests of datagrams share. Each program includes this once; the objects are its own.
 */
#ifndef TESTS_CONFORMANCE_DATAGRAM_H
#define TESTS_CONFORMANCE_DATAGRAM_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "emunic/base/clock.h"
#include "tests/common/gni.h"

#define FOR_EVER ((uint32_t)-1)
#define PATIENCE 30000u /* ms */

static struct fx fx;
static struct gx_side a;
static struct gx_side b;
static struct gx_side c;

/* ---- fixture ---- */

static inline int open_sides(void **state)
{
    (void)state;
    gx_open(&a, &fx, 0, 10, GNI_CDM_MODE_FAST_DATAGRAM_POLL);
    gx_open(&b, &fx, 1, 11, 0);
    gx_open(&c, &fx, 2, 12, 0);
    gx_connect(&a, &b);
    return 0;
}

static inline int close_sides(void **state)
{
    (void)state;
    gx_close(&a);
    gx_close(&b);
    gx_close(&c);
    return 0;
}

/* An end point for datagrams only; unbound without a peer. */
static inline gni_ep_handle_t make_ep(const struct gx_side *side, const struct gx_side *peer)
{
    gni_ep_handle_t ep = NULL;

    assert_int_equal(GNI_EpCreate(side->nic, NULL, &ep), GNI_RC_SUCCESS);
    if (peer)
        assert_int_equal(GNI_EpBind(ep, peer->nic_addr, peer->inst_id), GNI_RC_SUCCESS);
    return ep;
}

/* ---- short hands ---- */

/* answers: GNI_EpPostDataWId */
static inline gni_return_t post_text(gni_ep_handle_t ep, const char *text, char *in, uint64_t id)
{
    return GNI_EpPostDataWId(ep, (void *)(uintptr_t)text, (uint16_t)(strlen(text) + 1), in, GNI_DATAGRAM_MAXSIZE, id);
}

/* The datagram is complete, came from `peer` and carries `text`; collects it. */
static inline void expect_text(gni_ep_handle_t ep, uint64_t id, const struct gx_side *peer, const char *in,
                               const char *text)
{
    gni_post_state_t post_state = GNI_POST_PENDING;
    uint32_t addr = 0;
    uint32_t inst = 0;

    assert_int_equal(GNI_EpPostDataWaitById(ep, id, PATIENCE, &post_state, &addr, &inst), GNI_RC_SUCCESS);
    assert_int_equal(post_state, GNI_POST_COMPLETED);
    assert_int_equal(addr, peer->nic_addr);
    assert_int_equal(inst, peer->inst_id);
    assert_string_equal(in, text);
}

/* answers: GNI_EpPostDataTestById */
static inline gni_return_t test_id(gni_ep_handle_t ep, uint64_t id, gni_post_state_t *post_state)
{
    uint32_t addr;
    uint32_t inst;

    return GNI_EpPostDataTestById(ep, id, post_state, &addr, &inst);
}

static inline void expect_pending(gni_ep_handle_t ep, uint64_t id)
{
    gni_post_state_t post_state = GNI_POST_ERROR;

    assert_int_equal(test_id(ep, id, &post_state), GNI_RC_SUCCESS);
    assert_int_equal(post_state, GNI_POST_PENDING);
}

static inline void expect_terminated(gni_ep_handle_t ep, uint64_t id)
{
    gni_post_state_t post_state = GNI_POST_ERROR;

    assert_int_equal(test_id(ep, id, &post_state), GNI_RC_SUCCESS);
    assert_int_equal(post_state, GNI_POST_TERMINATED);
    assert_int_equal(test_id(ep, id, &post_state), GNI_RC_NO_MATCH);
}

/* ---- a second thread ---- */

struct waiter {
    pthread_t thread;
    gni_nic_handle_t nic;
    gni_ep_handle_t ep; /* NULL: probes */
    uint64_t id;        /* in: of the end point; out: what the probe found */
    uint32_t timeout;
    gni_post_state_t post_state;
    gni_return_t rc;
};

static inline void *wait_in_thread(void *arg)
{
    struct waiter *w = arg;

    if (w->ep)
        w->rc = GNI_EpPostDataWaitById(w->ep, w->id, w->timeout, &w->post_state, NULL, NULL);
    else
        w->rc = GNI_PostdataProbeWaitById(w->nic, w->timeout, &w->id);
    return NULL;
}

static inline void start_waiter(struct waiter *w)
{
    assert_int_equal(pthread_create(&w->thread, NULL, wait_in_thread, w), 0);
}

/* ---- crossing posts between processes ---- */

static inline int start(void **state)
{
    (void)state;
    fx_start(&fx, NULL);
    return 0;
}

static inline int stop(void **state)
{
    (void)state;
    return fx_stop(&fx);
}

#define WITH_SIDES(test) cmocka_unit_test_setup_teardown(test, open_sides, close_sides)

#endif
