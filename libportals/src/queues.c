/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Event queues.
 *
 * Taking an event needs no lock but the interface's own of this process: whoever posts never looks at the consumer. A
 * call that waits polls EMUNIC_SPIN times, then announces its sleep with the interface held, so that everybody who
 * posts after that sees it, and sleeps without any lock. No call says that there is nothing before it has looked again
 * after it gave the core away.
 * Source: spec/portals3.md 4.6, 5.6.
 */
#include <errno.h>

#include "emunic/base/clock.h"
#include "emunic/base/log.h"
#include "emunic/client/portals_inbox.h"
#include "libportals/src/interface.h"

enum p3_code p3_eq_alloc(uint32_t handle, uint64_t count, void (*handler)(void), uint32_t *eq)
{
    struct p3_ni *ni = p3_lock_ni(handle);
    uint32_t index;
    int r = 0;

    if (!ni)
        return P3_NI_INVALID;
    if (count == 0) {
        *eq = P3_EQ_NONE;
    } else {
        emu_portals_hold(&ni->p);
        r = emu_ptl_eq_create(&ni->p.owner, count, &index);
        emu_portals_release(&ni->p);
        if (r == 0) {
            ni->handlers[index] = handler;
            *eq = ni->p.ni->eqs[index].handle;
            p3_trace(ni, P3_DEBUG_EQ, "eq 0x%08x for %llu events", *eq, (unsigned long long)count);
        }
    }
    p3_unlock_ni(ni);
    return r == 0 ? P3_OK : P3_NO_SPACE;
}

enum p3_code p3_eq_free(uint32_t handle)
{
    struct p3_ni *ni = p3_lock_ni_of(handle);
    uint32_t index;

    if (!ni)
        return P3_EQ_INVALID;
    index = emu_ptl_find_eq(&ni->p.owner, handle);
    if (index != EMU_PTL_NONE) {
        emu_portals_hold(&ni->p);
        emu_ptl_eq_destroy(&ni->p.owner, index);
        emu_portals_release(&ni->p);
        ni->handlers[index] = NULL;
        p3_trace(ni, P3_DEBUG_EQ, "eq 0x%08x freed", handle);
    }
    p3_unlock_ni(ni);
    return index != EMU_PTL_NONE ? P3_OK : P3_EQ_INVALID;
}

/* ---- taking ---- */

/* All queues in their order. P3_EQ_EMPTY: none has an event. The interface is locked. */
static enum p3_code take_any(struct p3_ni *ni, const uint32_t *eqs, int n, struct p3_taken *taken)
{
    for (int i = 0; i < n; i++) {
        uint32_t index = emu_ptl_find_eq(&ni->p.owner, eqs[i]);
        enum emu_ptl_take r;

        taken->which = i;
        if (index == EMU_PTL_NONE)
            return P3_EQ_INVALID;
        r = emu_ptl_eq_take(&ni->p.owner, index, false, &taken->event);
        if (r == EMU_PTL_NO_EVENT)
            continue;
        taken->handler = ni->handlers[index];
        p3_trace(ni, P3_DEBUG_EVENT, "event kind %u link %u bytes %llu fail %u", taken->event.kind, taken->event.link,
                 (unsigned long long)taken->event.mlength, taken->event.fail);
        return r == EMU_PTL_EVENT ? P3_OK : P3_EQ_DROPPED;
    }
    return P3_EQ_EMPTY;
}

/* The same, and what was empty is known to be watched from now on. */
static enum p3_code take_or_announce(struct p3_ni *ni, const uint32_t *eqs, int n, struct p3_taken *taken)
{
    enum p3_code code;

    emu_portals_hold(&ni->p);
    code = take_any(ni, eqs, n, taken);
    if (code == P3_EQ_EMPTY)
        emu_portals_announce_sleep(&ni->p);
    emu_portals_release(&ni->p);
    return code;
}

/* Before anything is taken: all handles have to be good. */
static enum p3_code check_all(const struct p3_ni *ni, const uint32_t *eqs, int n, int *which)
{
    for (int i = 0; i < n; i++) {
        if (emu_ptl_find_eq(&ni->p.owner, eqs[i]) == EMU_PTL_NONE) {
            *which = i;
            return P3_EQ_INVALID;
        }
    }
    return P3_OK;
}

/* Nothing will come any more: said once. */
static enum p3_code tell_of_end(struct p3_ni *ni)
{
    if (!ni->told_of_end)
        emu_log(EMU_LOG_ERROR, "the emulated NIC has gone: no event will come");
    ni->told_of_end = true;
    return P3_EQ_INVALID;
}

/* Polls look whether emunic is there now and then (emunic/client/idle.c). */
static bool is_lost(const struct p3_ni *ni)
{
    return atomic_load_explicit(&ni->p.port.session.is_lost, memory_order_relaxed);
}

enum p3_code p3_eq_poll(const uint32_t *eqs, int n, uint32_t timeout_ms, struct p3_taken *taken)
{
    uint64_t deadline_ns =
        timeout_ms == P3_FOREVER || timeout_ms == 0 ? UINT64_MAX : emu_clock_ns() + timeout_ms * 1000000ull;
    bool is_late = false;
    uint32_t polls = 0;

    taken->which = -1;
    if (n < 1)
        return P3_EQ_INVALID;
    for (bool is_first = true;; is_first = false) {
        struct p3_ni *ni = p3_lock_ni_of(eqs[0]);
        enum p3_code code = P3_OK;
        bool sleeps = !is_late && polls >= 1 && polls >= (ni ? ni->p.port.settings.spin_polls : 0);
        int r = 0;

        taken->which = 0;
        if (!ni)
            return P3_EQ_INVALID;
        if (is_first)
            code = check_all(ni, eqs, n, &taken->which);
        /* Who leaves a short message wakes nobody that sleeps here. */
        sleeps = sleeps && !ni->p.takes_short;
        if (code == P3_OK)
            code = sleeps ? take_or_announce(ni, eqs, n, taken) : take_any(ni, eqs, n, taken);
        if (code == P3_EQ_EMPTY && ni->p.takes_short && !ni->p.taker && emu_portals_has_short(&ni->p)) {
            emu_portals_take_short(&ni->p);
            code = take_any(ni, eqs, n, taken);
        }
        if (code == P3_EQ_EMPTY && timeout_ms == 0 && emu_port_relax_among(&ni->p.port, eqs[0], (uint32_t)n))
            code = take_any(ni, eqs, n, taken);
        if (code == P3_EQ_EMPTY && timeout_ms == 0 && is_lost(ni))
            code = tell_of_end(ni);
        if (code == P3_OK)
            emu_port_found(&ni->p.port);
        p3_unlock_ni(ni);
        if (code != P3_EQ_EMPTY || timeout_ms == 0 || is_late)
            return code;
        if (sleeps)
            r = emu_portals_wait(&ni->p, deadline_ns);
        else
            polls += emu_port_spin(&ni->p.port);
        if (r == -ENETDOWN)
            return tell_of_end(ni);
        is_late = r == -ETIMEDOUT || (!sleeps && deadline_ns != UINT64_MAX && emu_clock_ns() >= deadline_ns);
    }
}

enum p3_code p3_eq_peek(uint32_t handle, struct p3_taken *taken)
{
    struct p3_ni *ni = p3_lock_ni_of(handle);
    enum emu_ptl_take r = EMU_PTL_NO_EVENT;
    uint32_t index;

    taken->handler = NULL;
    if (!ni)
        return P3_EQ_INVALID;
    index = emu_ptl_find_eq(&ni->p.owner, handle);
    if (index != EMU_PTL_NONE)
        r = emu_ptl_eq_take(&ni->p.owner, index, true, &taken->event);
    p3_unlock_ni(ni);
    if (index == EMU_PTL_NONE)
        return P3_EQ_INVALID;
    return r == EMU_PTL_EVENT ? P3_OK : r == EMU_PTL_EVENT_AFTER_LOSS ? P3_EQ_DROPPED : P3_EQ_EMPTY;
}
