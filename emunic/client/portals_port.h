/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A Portals interface as its owner sees it: a port with a Portals part.
 *
 * Thread rule: every function but emu_portals_wait() under the caller's lock, one per interface.
 */
#ifndef EMUNIC_CLIENT_PORTALS_PORT_H
#define EMUNIC_CLIENT_PORTALS_PORT_H

#include <stdbool.h>
#include <stdint.h>

#include "emunic/client/port.h"
#include "emunic/client/regions.h"
#include "emunic/client/short_message.h"
#include "emunic/engine/portals_engine.h"
#include "emunic/engine/portals_owner.h"

struct emu_gate;
struct emu_portals_peer;

#define EMU_PORTALS_KNOWN 64u

/* A process that we have sent to. */
struct emu_portals_known {
    uint32_t nid;
    uint32_t pid;
    uint32_t port;
    uint32_t generation; /* of the port; 0: nothing here */
    uint32_t node_index;
};

struct emu_portals {
    struct emu_port port;
    struct emu_ptl_ni *ni; /* mapped */
    struct emu_ptl_owner owner;
    struct emu_regions regions;
    uint64_t holder; /* how our lock is called */
    uint32_t pid;
    uint32_t generation;            /* of the port */
    bool is_broken;                 /* the interface holds what it cannot hold, or emunic has gone */
    struct emu_gate *gate;          /* borrowed: of the direct path; NULL: there is none */
    struct emu_portals_peer *peers; /* owned, one per port slot */
    struct emu_portals_known known[EMU_PORTALS_KNOWN];
    bool takes_short;                /* its inboxes are open */
    emu_short_taker taker;           /* borrowed: who takes short messages; NULL: the match lists alone */
    uint64_t taken[EMU_PTL_INBOXES]; /* short messages, of each inbox */
    uint64_t n_handed;               /* of these, by the taker; the interface does not count them */
    uint64_t handed_bytes;
};

struct emu_portals_options {
    uint32_t ptag;
    uint32_t cookie;
    uint32_t pid; /* wanted, or EMU_PTL_PID_ANY */
    uint32_t jid;
    uint32_t behaviour; /* EMU_PTL_* */
    uint32_t max_pt;
    uint32_t max_ac;
    uint32_t max_getput;
    uint32_t number; /* for handles */
    uint32_t salt;   /* likewise */
    struct emu_ptl_limits limits;
};

/* As emu_port_attach(). Also -EADDRINUSE: the pid is taken; -EADDRNOTAVAIL: there is no free one. */
int emu_portals_open(struct emu_portals *p, const struct emu_portals_options *options);

/* Ends the interface and detaches its port. */
void emu_portals_close(struct emu_portals *p);

/* Around everything that needs the lock of the own interface. Not nested. Frees what others have marked dead. */
void emu_portals_hold(struct emu_portals *p);
void emu_portals_release(struct emu_portals *p);

/*
 * One data movement call, already checked: on the direct path it is over when this returns, else it is in emunic's
 * hands. -ENOENT: a descriptor is gone or inactive.
 */
int emu_portals_send(struct emu_portals *p, struct emu_ptl_send *send);

/*
 * The same for a put without an acknowledgement, if it can be over at once: a short one to a process that can be
 * reached here, and that has taken what was left for it before (portals_inbox.h). False: it cannot, and nothing has
 * happened. fail_out: EMU_STATUS_*, 0: none, of data that could not be moved.
 */
bool emu_portals_send_at_once(struct emu_portals *p, struct emu_ptl_send *send, unsigned *fail_out);

/* With the interface held and all queues looked at: from now on news end a sleep. */
static inline void emu_portals_announce_sleep(struct emu_portals *p)
{
    atomic_store_explicit(&p->ni->waiting, EMU_PTL_SLEEPS, memory_order_relaxed);
}

/* Sleeps until there is news, emunic has gone (-ENETDOWN) or the deadline (-ETIMEDOUT). Without any lock. */
int emu_portals_wait(struct emu_portals *p, uint64_t deadline_ns);

/* Distance to a node as PtlNIDist tells it. -EHOSTUNREACH: the job has no such node. */
int emu_portals_distance(struct emu_portals *p, uint32_t nid, uint32_t *distance_out);

#endif
