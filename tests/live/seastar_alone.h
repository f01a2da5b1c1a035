/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One process on a private emunic of a SeaStar, which carries its messages out: what a message cost the host is read
 * from the registers of its interface. Each program includes this once.
 */
#ifndef TESTS_LIVE_SEASTAR_ALONE_H
#define TESTS_LIVE_SEASTAR_ALONE_H

#include "tests/common/portals.h"

#include "tests/common/fixture.h"

#define PT    15
#define BYTES (1u << 20)

static struct fx fx;
static ptl_handle_eq_t eq;
static uint8_t *memory, *target; /* BYTES each, on page boundaries */

static inline void start_seastar(const char *machine)
{
    char text[16];
    int n;

    fx_start(&fx, &(struct fx_options){ .machine = machine, .n_ranks = 1 });
    fx_set_node(fx.nids[0]);
    snprintf(text, sizeof(text), "%u", fx.ptag);
    setenv("EMUNIC_PTAG", text, 1);
    snprintf(text, sizeof(text), "%u", fx.cookie);
    setenv("EMUNIC_COOKIE", text, 1);
    fx_set_routed(&fx, true);
    memory = aligned_alloc(4096, BYTES);
    target = aligned_alloc(4096, BYTES);
    assert_non_null(memory);
    assert_non_null(target);
    px_fill(memory, BYTES, 15);
    assert_int_equal(PtlInit(&n), PTL_OK);
    assert_int_equal(PtlNIInit(PTL_IFACE_DEFAULT, PTL_PID_ANY, NULL, &px_limits, &px_ni), PTL_OK);
    assert_int_equal(PtlGetId(px_ni, &px_self), PTL_OK);
    eq = px_eq(64);
    px_entry(PT + 1, 0, 0, PTL_RETAIN, px_md(NULL, 0, PTL_MD_OP_PUT, PTL_MD_THRESH_INF, PTL_EQ_NONE), PTL_RETAIN);
}

static inline int stop_seastar(void **state)
{
    (void)state;
    PtlFini();
    free(memory);
    free(target);
    fx_stop(&fx);
    return 0;
}

/* Takes puts and gets of any length, at the offset that they say, as far as `length` reaches. */
static inline struct px_entry open_target(ptl_size_t length)
{
    unsigned options = PTL_MD_OP_PUT | PTL_MD_OP_GET | PTL_MD_MANAGE_REMOTE | PTL_MD_TRUNCATE |
                       PTL_MD_EVENT_START_DISABLE | PTL_MD_EVENT_END_DISABLE;

    return px_entry(PT, 0, 0, PTL_RETAIN, px_md(target, length, options, PTL_MD_THRESH_INF, PTL_EQ_NONE), PTL_RETAIN);
}

struct host_work {
    uint64_t interrupts;
    uint64_t commands;
};

static inline struct host_work difference(struct host_work a, struct host_work b)
{
    return (struct host_work){ a.interrupts - b.interrupts, a.commands - b.commands };
}

/* The registers, when all messages before have been carried out: behind an acknowledged one without data. */
static inline struct host_work host_work(void)
{
    ptl_handle_md_t mdh = px_bind(
        px_md(NULL, 0, PTL_MD_EVENT_START_DISABLE | PTL_MD_EVENT_END_DISABLE, PTL_MD_THRESH_INF, eq), PTL_RETAIN);

    assert_int_equal(PtlPut(mdh, PTL_ACK_REQ, px_self, PT + 1, 0, 0, 0, 0), PTL_OK);
    px_take_kind(eq, PTL_EVENT_ACK);
    while (PtlMDUnlink(mdh) == PTL_MD_IN_USE)
        ;
    return (struct host_work){ px_register(PTL_SR_NAL_INTERRUPTS), px_register(PTL_SR_NAL_COMMANDS) };
}

/* What that operation costs, this process being at both its ends. */
static inline struct host_work cost_of(bool is_get, ptl_size_t length, bool is_acknowledged)
{
    ptl_handle_md_t mdh = px_bind(px_md(memory, length, PTL_MD_EVENT_START_DISABLE, PTL_MD_THRESH_INF, eq), PTL_RETAIN);
    ptl_event_kind_t last = is_get ? PTL_EVENT_REPLY_END : is_acknowledged ? PTL_EVENT_ACK : PTL_EVENT_SEND_END;
    struct host_work first = host_work();
    struct host_work before = host_work();
    struct host_work after;

    if (is_get)
        assert_int_equal(PtlGet(mdh, px_self, PT, 0, 0, 0), PTL_OK);
    else
        assert_int_equal(PtlPut(mdh, is_acknowledged ? PTL_ACK_REQ : PX_NO_ACK, px_self, PT, 0, 0, 0, 0), PTL_OK);
    while (px_take(eq).type != last)
        ;
    after = host_work();
    while (PtlMDUnlink(mdh) == PTL_MD_IN_USE)
        ;
    return difference(difference(after, before), difference(before, first)); /* without the look itself */
}

#endif
