/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the tests of domains share. Each program includes this once.
 */
#ifndef TESTS_INTEGRATION_DOMAIN_H
#define TESTS_INTEGRATION_DOMAIN_H

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "emunic/abi/fault.h"
#include "tests/common/gni.h"
#include "tests/common/raw.h"

/* Ranks 0 to 4 of the fixture's domain. */
static const uint32_t rank_nids[] = { 5, 5, 2, 5, 2 };
#define N_RANKS 5u

static struct fx fx;

static inline int start(void **state)
{
    struct fx_options options = { .n_ranks = N_RANKS, .nids = rank_nids };

    (void)state;
    fx_start(&fx, &options);
    return 0;
}

static inline int stop(void **state)
{
    (void)state;
    return fx_stop(&fx);
}

static inline int open_own(struct raw *raw, uint32_t instance_id, uint32_t nid)
{
    return raw_open(raw, fx.server, fx.ptag, fx.cookie, instance_id, nid);
}

/* Ends a domain that this process may be a member of: without a signal to its members. */
static inline void end_domain(struct emu_session *admin)
{
    struct emu_msg msg = { .type = EMU_MSG_DOMAIN_END };

    emu_session_request(admin, &msg, NULL, 0, NULL);
    emu_session_close(admin);
}

/* ---- two domains ---- */

#define OTHER_PTAG   78u
#define OTHER_COOKIE 0x5678u

static struct fx other; /* the same server, another domain */
static struct emu_session other_admin;
static struct gx_side a[2]; /* instances 10 and 11 on nodes 2 and 5 of the first domain */
static struct gx_side b[2]; /* instances 10 and 11 on nodes 2 and 5 of the second one */

static inline int open_two_domains(void **state)
{
    (void)state;
    if (fx_add_domain(&fx, OTHER_PTAG, OTHER_COOKIE, geteuid(), 0, &other_admin) < 0)
        return -1;
    other = fx;
    other.ptag = OTHER_PTAG;
    other.cookie = OTHER_COOKIE;
    for (unsigned i = 0; i < 2; i++) {
        gx_open(&a[i], &fx, i ? 5 : 2, 10 + i, 0);
        gx_open(&b[i], &other, i ? 5 : 2, 10 + i, 0);
    }
    gx_connect(&a[0], &a[1]);
    gx_connect(&b[0], &b[1]);
    return 0;
}

static inline int close_two_domains(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 2; i++) {
        gx_close(&a[i]);
        gx_close(&b[i]);
    }
    end_domain(&other_admin);
    return 0;
}

static inline void expect_put(struct gx_side *from, const struct gx_side *to, gni_return_t expected)
{
    gni_post_descriptor_t d = gx_put(from, to, 128, 32, GNI_CQMODE_GLOBAL_EVENT | GNI_CQMODE_REMOTE_EVENT);
    gni_post_descriptor_t *done = NULL;

    memset(from->mem + 128, 0x11, 32);
    assert_int_equal(GNI_PostFma(from->ep, &d), GNI_RC_SUCCESS);
    assert_int_equal(gx_complete(from->src_cq, &done), expected);
    assert_ptr_equal(done, &d);
}

/* ---- protocol ---- */

#define UNIT(name) cmocka_unit_test(name)
#define TWO(name)  cmocka_unit_test_setup_teardown(name, open_two_domains, close_two_domains)

#endif
