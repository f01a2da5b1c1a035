/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a process needs to be a Portals process of a private emunic's domain (tests/common/fixture.h): the environment
 * that `emunic run` would give it. For children of fx_spawn(), which know their node already.
 */
#ifndef TESTS_COMMON_PORTALS_JOB_H
#define TESTS_COMMON_PORTALS_JOB_H

#include <stdio.h>
#include <stdlib.h>

#include "emunic/base/clock.h"
#include "tests/common/fixture.h"
#include "tests/common/portals_profile.h"

#define PJ_PATIENCE_NS 20000000000ull

static inline void pj_use_domain(uint32_t ptag, uint32_t cookie)
{
    char text[16];

    snprintf(text, sizeof(text), "%u", ptag);
    setenv("EMUNIC_PTAG", text, 1);
    snprintf(text, sizeof(text), "%u", cookie);
    setenv("EMUNIC_COOKIE", text, 1);
}

static inline void pj_use(const struct fx *fx)
{
    pj_use_domain(fx->ptag, fx->cookie);
}

/* For processes that report by their exit status: a call that has to succeed. */
static inline void pj_must(int rc, const char *what)
{
    if (rc == PTL_OK)
        return;
    fprintf(stderr, "pid %d: %s: code %d\n", (int)getpid(), what, rc);
    _exit(1);
}
#define PJ(call) pj_must((call), #call)

/* Opens the default interface with a pid of the test's choice. */
static inline ptl_handle_ni_t pj_open(const struct fx *fx, ptl_pid_t pid, ptl_process_id_t *id_out)
{
    ptl_handle_ni_t ni = PTL_INVALID_HANDLE;
    int n_interfaces;

    pj_use(fx);
    PJ(PtlInit(&n_interfaces));
    PJ(PtlNIInit(PTL_IFACE_DEFAULT, pid, NULL, NULL, &ni));
    PJ(PtlGetId(ni, id_out));
    return ni;
}

/* The next event; after PJ_PATIENCE_NS without one the process ends. */
static inline int pj_next(ptl_handle_eq_t eq, ptl_event_t *event_out)
{
    uint64_t end_ns = emu_clock_ns() + PJ_PATIENCE_NS;
    int rc;

    while ((rc = PtlEQGet(eq, event_out)) == PTL_EQ_EMPTY) {
        if (emu_clock_ns() > end_ns)
            pj_must(rc, "no event comes");
    }
    return rc;
}

static inline ptl_event_t pj_expect(ptl_handle_eq_t eq, ptl_event_kind_t type)
{
    ptl_event_t event;

    pj_must(pj_next(eq, &event), "PtlEQGet");
    if (event.type != type || event.ni_fail_type != PTL_NI_OK) {
        fprintf(stderr, "pid %d: event %d (fail type %d) instead of %d\n", (int)getpid(), (int)event.type,
                (int)event.ni_fail_type, (int)type);
        _exit(1);
    }
    return event;
}

static inline ptl_process_id_t pj_anybody(void)
{
    return (ptl_process_id_t){ .nid = PTL_NID_ANY, .pid = PTL_PID_ANY };
}

#endif
