/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Portals interfaces: what portals_port.c (life, locks), portals_target.c (where requests go) and portals_send.c (data
 * movement calls) share. Under the caller's lock, as in portals_port.h.
 */
#ifndef EMUNIC_CLIENT_PORTALS_PORT_INNER_H
#define EMUNIC_CLIENT_PORTALS_PORT_INNER_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "emunic/client/lane.h"
#include "emunic/client/portals_port.h"
#include "emunic/engine/portals_engine.h"

/* A process that we send to: half a KiB in pages that are taken when it is met. */
struct emu_portals_peer {
    uint32_t generation;         /* of the port that this is about; 0: nothing yet */
    bool has_none;               /* emunic said no */
    struct emu_ptl_ni *ni;       /* mapped */
    struct emu_segment *segment; /* borrowed from the direct path: for waking its owner; NULL: not yet known */
    uint32_t mdh;                /* memory domain that `lane` leads to; 0: there is none */
    uint32_t mdh_generation;
    struct emu_lane lane;        /* to the memory of the descriptor that was hit last */
    struct emu_ptl_inbox *inbox; /* ours there; NULL: not yet, or */
    bool has_no_inbox;           /* never */
    uint64_t n_put;              /* messages that we have left there */
    uint64_t n_taken;            /* of these, at least so many are taken */
};

/* A target that is reached from here. */
struct emu_portals_target {
    uint32_t port;
    uint32_t generation;
    uint32_t node_index;
    struct emu_ptl_ni *ni;
    struct emu_portals_peer *peer; /* NULL: ourselves */
};

enum emu_portals_found {
    EMU_PORTALS_HERE,
    EMU_PORTALS_NOWHERE,     /* there is no such process */
    EMU_PORTALS_NOT_REACHED, /* not from here: emunic has to do it */
};

/* Is it still the same port that has the slot? */
static inline bool emu_portals_is_live(const struct emu_portals *p, uint32_t port, uint32_t generation)
{
    const struct emu_table_port *entry = &emu_table_ports(p->port.table)[port];

    return atomic_load_explicit(&entry->state, memory_order_acquire) == EMU_PORT_LIVE &&
           entry->generation == generation;
}

/* ---- portals_port.c ---- */

/* Maps the interface that a reply of emunic brings. -EPROTO; or why not. */
int emu_portals_map_part(const struct emu_fds *fds, uint64_t bytes, struct emu_ptl_ni **ni_out);
/* Runs when the lock is not free. False: the interface's owner has gone, or emunic. */
bool emu_portals_wait_for_lock(struct emu_portals *p, struct emu_ptl_ni *ni, uint32_t port, uint32_t generation);
/* Our own interface; we are inside. */
void emu_portals_lock_own(struct emu_portals *p);

/* The interface of that port; we are inside. False: its owner has gone, or emunic. */
static inline bool emu_portals_lock(struct emu_portals *p, struct emu_ptl_ni *ni, uint32_t port, uint32_t generation)
{
    return emu_ptl_try_lock(ni, p->holder) || emu_portals_wait_for_lock(p, ni, port, generation);
}

/* Puts our mark up: emunic takes nothing away under us. */
static inline void emu_portals_enter(struct emu_portals *p)
{
    if (p->gate)
        emu_gate_enter(p->gate);
    else
        atomic_fetch_add_explicit(&p->port.segment->inside, 1, memory_order_seq_cst);
}

/* Takes it down. */
static inline void emu_portals_leave(struct emu_portals *p)
{
    if (p->gate)
        emu_gate_leave(p->gate);
    else
        atomic_fetch_add_explicit(&p->port.segment->inside, 1, memory_order_release);
}

/* ---- portals_target.c ---- */

/* Unmaps it. */
void emu_portals_forget_peer(struct emu_portals_peer *peer);
/* Where a request goes. */
enum emu_portals_found emu_portals_find_target(struct emu_portals *p, const struct emu_ptl_send *send,
                                               struct emu_portals_target *t);
/* Whose port rests, perhaps, and is to be woken; or NULL. */
struct emu_segment *emu_portals_segment_of(struct emu_portals *p, const struct emu_portals_target *t);
/* How to reach the memory of a descriptor of the target. An enum emu_status, or EMU_REACH_NOT_HERE. */
int emu_portals_reach(struct emu_portals *p, const struct emu_portals_target *t, const struct emu_ptl_md *md,
                      struct emu_memory *mem_out);

#endif
