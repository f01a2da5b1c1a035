/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a topology tells the packet simulator: virtual channels, the ways a packet may go on, and the dependencies
 * between channels for the audit. One row of functions per kind of topology, reached through struct emu_topology.
 *
 * All functions are pure: they read the machine, the packet and the view and write only what they are given. They are
 * called on the thread that owns the router, and the same arguments give the same answer.
 */
#ifndef EMUNIC_FABRIC_SIM_ROUTING_H
#define EMUNIC_FABRIC_SIM_ROUTING_H

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>

#include "emunic/fabric/fault_map.h"
#include "emunic/fabric/link.h"
#include "emunic/fabric/machine.h"
#include "emunic/fabric/random.h"

#define EMU_VCS_MAX           8  /* of one link */
#define EMU_ROUTE_OPTIONS_MAX 16 /* ways on that one call may offer */
#define EMU_VC_ANY            0xff

enum emu_traffic_class {
    EMU_TRAFFIC_REQUEST = 0, /* BG/L: normal; SeaStar: data */
    EMU_TRAFFIC_RESPONSE,    /* BG/L: high priority; SeaStar: control */
    EMU_TRAFFIC_CLASSES,
};

/* Routing control: what the sender asks for. Machines without the choice treat all alike. */
enum emu_route_mode {
    EMU_MODE_ADAPTIVE_0 = 0, /* no bias */
    EMU_MODE_ADAPTIVE_1,     /* bias toward minimal that grows along the path */
    EMU_MODE_ADAPTIVE_2,     /* small constant bias */
    EMU_MODE_ADAPTIVE_3,     /* large bias */
    EMU_MODE_MIN_HASH,       /* minimal, by hash: in order to one destination cache line */
    EMU_MODE_NMIN_HASH,      /* non-minimal, by hash */
    EMU_MODE_IN_ORDER,       /* minimal, one path for the pair */
    EMU_MODE_MINIMAL,        /* minimal, free choice among equals */
    EMU_MODE_VALIANT,        /* always by a random intermediate router */
    EMU_MODE_DETERMINISTIC,  /* BG/L: dimension order on the escape channel */
    EMU_MODES,
};

enum emu_packet_flag {
    EMU_PACKET_NONMINIMAL = 1 << 0,
    EMU_PACKET_BROADCAST = 1 << 1, /* BG/L: deposited at every node of one line */
    EMU_PACKET_CORRUPT = 1 << 2,   /* an error that the link's check did not see */
    EMU_PACKET_DETOUR = 1 << 3,    /* sent around a fault */
};

/* A packet, as routing, arbitration and traffic see it. */
struct emu_packet {
    uint32_t src_nid;
    uint32_t dst_nid;
    uint16_t units; /* on the wire, header included: flits, phits or bytes as the machine counts */
    uint8_t traffic_class;
    uint8_t mode;
    uint8_t flags;
    uint8_t hops;         /* router to router, so far */
    uint16_t n_optical;   /* of those, between groups (Dragonfly) */
    uint64_t order_key;   /* of the hashed modes: destination address / 64 */
    uint64_t route_state; /* belongs to the routing row: intermediate router, phase, hint bits, spent turns */
    uint64_t created_ps;  /* when the traffic made it */
    uint64_t entered_ps;  /* when its head entered the network */
    uint64_t tag;         /* belongs to the traffic */
};

/* One virtual channel of a class of links. */
struct emu_vc_info {
    uint32_t capacity_units; /* of its buffer at the far end */
    uint8_t traffic_class;   /* that uses it; EMU_VC_ANY: all */
    bool is_escape;          /* in the sub-network that the audit checks */
    bool is_bubble;          /* entered only with room for two full packets (BG/L 5.2) */
};

/* Where a packet's head stands. */
struct emu_route_at {
    uint32_t router;
    uint32_t in_link; /* id; the NIC's own link for a packet that enters */
    uint8_t in_vc;
    bool is_entering;
};

/* One way on, or several over one link that differ in the channel only. The arbiter takes an available one: the first
 * with the lowest rank, or by its policy among equal ranks. */
struct emu_route_option {
    uint32_t link; /* out; the NIC's link at the destination */
    uint8_t vc;
    uint8_t more_vcs;     /* mask of higher channels that would do as well, each like an option behind this one */
    uint8_t flags;        /* enum emu_packet_flag bits that taking it sets */
    uint8_t rank : 7;     /* 0 is asked first; a higher one only when no lower one is available */
    uint8_t is_entry : 1; /* enters a bubble ring, so needs room for two full packets */
    uint64_t route_state; /* of the packet once it has taken this way */
};
static_assert(sizeof(struct emu_route_option) == 16, "a router keeps those of each head that waits");

/* Mask of an option's channels. */
static inline uint32_t emu_route_vcs(const struct emu_route_option *option)
{
    return 1u << option->vc | option->more_vcs;
}

/* What a router knows while it decides. */
struct emu_route_view {
    const struct emu_machine *machine;
    const struct emu_fault_map *faults;
    struct emu_random *random; /* of this router; only if the row says reads_router */
    /* Units that wait for this router's own output link, or are on it in the class's channels and not yet credited. */
    uint32_t (*near_load)(const struct emu_route_view *view, uint32_t link, uint8_t traffic_class);
    /* The same of an output of a neighbour, as that router last advertised it: old by the machine's update period. */
    uint32_t (*far_load)(const struct emu_route_view *view, uint32_t link, uint8_t traffic_class);
    void *ctx; /* of the two */
};

/* Of a view on a network without traffic. */
static inline uint32_t emu_route_no_load(const struct emu_route_view *view, uint32_t link, uint8_t traffic_class)
{
    (void)view;
    (void)link;
    (void)traffic_class;
    return 0;
}

struct emu_routing {
    /* Virtual channels of the links of a class: 1 .. EMU_VCS_MAX; their properties. */
    uint32_t (*n_vcs)(const struct emu_machine *m, enum emu_link_class link_class);
    void (*vc)(const struct emu_machine *m, enum emu_link_class link_class, uint32_t vc, struct emu_vc_info *info_out);

    /* Called once, when a packet's head is first looked at in its source router: chooses its way (adaptive, Valiant,
     * hint bits) and sets route_state. False: there is no way; the packet is refused and counted as unroutable. NULL: a
     * packet comes with nothing to choose, and options() finds that there is no way. */
    bool (*start)(const struct emu_route_view *view, struct emu_packet *p, uint32_t router);

    /* The ways on from here, asked once per packet and router, when its head comes to the front of its channel (and
     * again after faults changed), in rising order of their ranks: an answer from loads stands until the packet has
     * left. At least one for a packet that start() accepted, unless a fault came between. */
    uint32_t (*options)(const struct emu_route_view *view, const struct emu_packet *p, const struct emu_route_at *at,
                        struct emu_route_option options_out[EMU_ROUTE_OPTIONS_MAX]);

    /* The complete relation "a packet that holds (link, vc) may wait for (next link, next vc)", for the audit. */
    void (*dependencies)(const struct emu_machine *m, const struct emu_fault_map *faults,
                         void (*visit)(void *ctx, uint32_t link, uint32_t vc, uint32_t next_link, uint32_t next_vc),
                         void *ctx);

    uint32_t options_max; /* that options() may write; 0: EMU_ROUTE_OPTIONS_MAX */

    /* start() or options() draw random numbers or read loads, so a head is asked about when its router decides. Else it
     * may be earlier in the slot. */
    bool reads_router;
    bool reads_loads;     /* they ask for near_load or far_load */
    bool reads_far_loads; /* for far_load, of links out of the routers next to theirs */

    /* The injection channel that a packet has to take; EMU_VCS_MAX: any that has room. NULL: always any. */
    uint32_t (*injection_vc)(const struct emu_machine *m, const struct emu_packet *p);
};

#endif
