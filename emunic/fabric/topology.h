/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Inside the component: a machine's parameters, and what a topology provides. The rest of the component asks a
 * topology through its row of functions and never by name.
 */
#ifndef EMUNIC_FABRIC_TOPOLOGY_H
#define EMUNIC_FABRIC_TOPOLOGY_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "emunic/fabric/link.h"
#include "emunic/fabric/load.h"
#include "emunic/fabric/machine.h"
#include "emunic/fabric/node_params.h"
#include "emunic/fabric/route.h"

#define EMU_TOPOLOGY_LEVELS_MAX 4
#define EMU_PARAM_AUTO          0          /* value of a COUNT_OR_AUTO parameter that says "auto" */
#define EMU_PARAM_NONE          UINT32_MAX /* of a MILLI_OR_NONE one that says "none" */

enum emu_param_type {
    EMU_PARAM_COUNT,         /* uint32_t, whole number */
    EMU_PARAM_COUNT_OR_AUTO, /* the same, or the word "auto" */
    EMU_PARAM_MILLI,         /* uint32_t in thousandths, written with up to three decimals; limits in thousandths */
    EMU_PARAM_MILLI_OR_NONE, /* the same, or the word "none" */
    EMU_PARAM_CHOICE,        /* uint32_t, index of the word in `choices` */
    EMU_PARAM_NAME,          /* char[EMU_MACHINE_NAME_MAX]: lower case letters, digits, '-' and '_' */
};

/* One key of a machine file. */
struct emu_param {
    const char *key; /* whole path: "topology.groups" */
    enum emu_param_type type;
    size_t offset; /* in struct emu_machine_params */
    uint64_t min;
    uint64_t max;
    const char *const *choices; /* of a CHOICE, ends with NULL */
};

#define EMU_LOST_SHARE_ONE 100000

struct emu_link_params {
    uint32_t lanes;
    uint32_t mbps_per_lane;
    uint32_t wire_ps;
    uint32_t lost_share; /* of the rate, in hundred-thousandths: what a class never reaches; most have no key */
};

/* An adaptive mode's: the minimal way wins if its weight <= (the other's << shift) + add. */
struct emu_dragonfly_bias {
    uint32_t shift;
    uint32_t add_flits;
    uint32_t add_flits_per_hop; /* for each hop that the packet has made */
};

struct emu_dragonfly_params {
    uint32_t groups;
    uint32_t chassis;      /* per group */
    uint32_t last_chassis; /* in the last group, or EMU_PARAM_AUTO: as in the others */
    uint32_t blades;       /* per chassis */
    uint32_t nodes_per_blade;
    uint32_t cables_per_bundle;        /* between each two groups, or EMU_PARAM_AUTO */
    uint32_t cabinet_columns;          /* in one row of the floor */
    uint32_t far_percent;              /* of the load of a neighbour's output, that counts in the choice */
    uint32_t threshold_flits;          /* that the minimal way to another group may weigh more */
    struct emu_dragonfly_bias bias[4]; /* of EMU_MODE_ADAPTIVE_0 .. 3 */
};

struct emu_hypercube_params {
    uint32_t dimensions; /* 2^dimensions vertices */
    uint32_t nodes_per_vertex;
};

/* Both shapes of the XD1; spines: fat tree only. */
struct emu_chassis_params {
    uint32_t chassis;
    uint32_t nodes;          /* per chassis */
    uint32_t fabrics;        /* 1: main; 2: main and expansion */
    uint32_t links_per_node; /* per fabric */
    uint32_t switch_ports;
    uint32_t external_ports; /* of a chassis switch: those that leave the chassis */
    uint32_t flow_links;     /* external links that one flow spreads over */
    uint32_t spines;         /* per fabric */
};

/* Topologies that are lists of cables (graph.h): each has some of these. */
struct emu_graph_params {
    uint32_t arity; /* k-ary n-tree */
    uint32_t levels;
    uint32_t size[3]; /* HyperX: routers along x, y, z */
    uint32_t parallel;
    uint32_t q;      /* Slim Fly: of the field */
    uint32_t groups; /* Dragonfly+ */
    uint32_t leaves; /* of a group */
    uint32_t spines;
    uint32_t global_links;    /* of a spine */
    uint32_t nodes;           /* of a router or leaf */
    uint32_t threshold_units; /* that the minimal way may weigh more, in EMU_MODE_ADAPTIVE_0 */
};

#define EMU_TORUS_DIMS 3

/* Of Blue Gene/L (bluegene_l.c, bgl_routing.c). */
enum emu_bgl_escape {
    EMU_BGL_ESCAPE_BUBBLE = 0,
    EMU_BGL_ESCAPE_DATELINE,
};
enum emu_bgl_order {
    EMU_BGL_ORDER_DIMENSION = 0,
    EMU_BGL_ORDER_DIRECTION,
};
/* Which injection FIFO a packet takes. */
enum emu_bgl_injection {
    EMU_BGL_INJECT_EMPTIEST = 0,
    EMU_BGL_INJECT_DIRECTION, /* that of its direction, if it has one only */
};

struct emu_bgl_params {
    uint32_t dynamic_vcs;
    uint32_t escape;          /* enum emu_bgl_escape */
    uint32_t order;           /* enum emu_bgl_order: of the escape channel */
    uint32_t midplane_ps;     /* wire between midplanes, beyond that of its class */
    uint32_t fifo_bytes;      /* of an injection or reception FIFO */
    uint32_t packet_start_ps; /* a processor's time to make or take a packet; for generators of traffic */
    uint32_t injection;       /* enum emu_bgl_injection */
};

struct emu_torus_params {
    uint32_t size[EMU_TORUS_DIMS];     /* routers along x, y, z */
    uint32_t wraps[EMU_TORUS_DIMS];    /* 1: a ring; 0: a mesh */
    uint32_t parallel[EMU_TORUS_DIMS]; /* links between neighbours, each way */
    char layout[EMU_MACHINE_NAME_MAX]; /* Gemini: cabinet, floor or auto */
    uint32_t order_retry;              /* Gemini: 1: other dimension orders if X, Y, Z has no way */
    struct emu_bgl_params bgl;
};

/* Of a NIC, where packets leave the network. */
struct emu_ends_params {
    uint32_t drain_cycles;    /* NIC clocks to take a full packet out of a reception buffer; 0: as fast as they come */
    uint32_t reception_units; /* of the buffer of each reception channel; 0: without end */
};

struct emu_machine_params {
    uint32_t schema;
    char name[EMU_MACHINE_NAME_MAX];
    char kind[EMU_MACHINE_NAME_MAX];
    struct emu_nic_params nic;
    struct emu_ends_params ends;
    struct emu_router_params router;
    bool has_host; /* the file has a host section */
    struct emu_node_params host;
    struct emu_link_params link[EMU_LINK_CLASSES];
    union {
        struct emu_dragonfly_params dragonfly;
        struct emu_hypercube_params hypercube;
        struct emu_chassis_params chassis;
        struct emu_torus_params torus;
        struct emu_graph_params graph;
    };
};

struct emu_machine;
struct emu_routing;

/* Packets and flits that travel together. */
struct emu_share {
    uint64_t packets;
    uint64_t flits;
};

/* Who is told which link carries which share. */
struct emu_share_visit {
    void (*call)(void *ctx, uint32_t link, struct emu_share share);
    void *ctx;
};

/*
 * One kind of topology. All functions but check() and build() take a built machine, are pure, may be called on any
 * thread, and get arguments that the caller has checked. No slot but routing may be NULL.
 */
struct emu_topology {
    const char *kind;               /* value of topology.kind */
    const struct emu_param *params; /* keys of the file that only this kind has */
    size_t n_params;

    /* Called by the loader: do the values fit together? 0, or -EINVAL with the key to blame (whole path) and a text. */
    int (*check)(const struct emu_machine_params *params, const char **key_out, char *text, size_t text_len);

    /* Called once by emu_machine_load(): sets n_nodes, n_routers, n_links and state. -ENOMEM leaves nothing behind. */
    int (*build)(struct emu_machine *m);
    void (*destroy)(struct emu_machine *m);

    void (*place)(const struct emu_machine *m, uint32_t nid, struct emu_place *place_out);
    /* From group, chassis, blade, node. -ERANGE. */
    int (*nid_at)(const struct emu_machine *m, const struct emu_place *place, uint32_t *nid_out);
    /* From cabinet_column, cabinet_row, cage, blade, node, any of which may not exist. -ERANGE. */
    int (*nid_in_cabinet)(const struct emu_machine *m, const struct emu_place *place, uint32_t *nid_out);
    uint32_t (*first_nid)(const struct emu_machine *m, uint32_t router); /* lowest nid on a router */
    const char *(*chip)(const struct emu_machine *m, uint32_t router);   /* its part of a router's name: "a0" */

    /* Sizes of the levels that a nid counts through, outermost first; their product is n_nodes. Returns how many. */
    uint32_t (*levels)(const struct emu_machine *m, uint32_t sizes_out[EMU_TOPOLOGY_LEVELS_MAX]);

    /* Sets id, link_class, from, to and number, and wire_ps to what this link has beyond its class. */
    void (*link)(const struct emu_machine *m, uint32_t link, struct emu_link *link_out);
    uint32_t (*link_reverse)(const struct emu_machine *m, uint32_t link);

    void (*route_minimal)(const struct emu_machine *m, uint32_t src_nid, uint32_t dst_nid, uint64_t path_hash,
                          struct emu_route *route_out);
    /* Divides a share over all minimal routes and visits each link part by part; path_hash turns the rounding. */
    void (*spread_minimal)(const struct emu_machine *m, uint32_t src_nid, uint32_t dst_nid, uint64_t path_hash,
                           struct emu_share share, const struct emu_share_visit *visit);

    int (*check_rules)(const struct emu_machine *m, void (*note)(void *ctx, uint32_t rule, const char *text),
                       void *ctx);

    const struct emu_routing *routing; /* of packets, for the simulator (sim/routing.h); NULL: none */
};

struct emu_machine {
    const struct emu_topology *topology; /* static */
    struct emu_machine_params params;
    uint32_t n_nodes;
    uint32_t n_routers;
    uint32_t n_links;
    void *state; /* owned by the topology */
};

/* The rows of the host section (node_params.c). */
extern const struct emu_param emu_node_param_rows[];
extern const size_t emu_node_param_n_rows;

extern const struct emu_topology emu_topology_dragonfly;
extern const struct emu_topology emu_topology_hypercube;
extern const struct emu_topology emu_topology_direct;
extern const struct emu_topology emu_topology_fat_tree;
extern const struct emu_topology emu_topology_bluegene_l;
extern const struct emu_topology emu_topology_gemini;
extern const struct emu_topology emu_topology_seastar;
extern const struct emu_topology emu_topology_tree;
extern const struct emu_topology emu_topology_hyperx;
extern const struct emu_topology emu_topology_slim_fly;
extern const struct emu_topology emu_topology_dragonfly_plus;
extern const struct emu_routing emu_gemini_routing;
extern const struct emu_routing emu_seastar_routing;

/*
 * Rate of a link: mbps (10^6 bits/s) raw, of which payload / frame carries flits of packets. The fraction stays one, so
 * that each user rounds once.
 */
struct emu_link_rate {
    uint64_t mbps;
    uint64_t payload;
    uint64_t frame;
};

/* Of a link of the class with so many lanes up. */
struct emu_link_rate emu_link_rate(const struct emu_machine_params *params, enum emu_link_class link_class,
                                   uint32_t lanes);

/* By the value of topology.kind; NULL: no such kind. */
const struct emu_topology *emu_topology_find(const char *kind);

/* 0, -EINVAL or -ERANGE: may this flow be expanded? */
int emu_load_check(const struct emu_machine *m, const struct emu_flow *flow);

/* Part `index` of `parts` of a share. The parts sum to the share; whole packets, each with its own flits. */
struct emu_share emu_share_part(struct emu_share share, uint32_t index, uint32_t parts);

/* Rows of a topology's table for one class of links: EMU_LINK_KEYS("green", EMU_LINK_GREEN, 3). */
#define EMU_LINK_KEYS(name, link_class, lanes_max)                                                                     \
    { "links." name ".lanes", EMU_PARAM_COUNT, offsetof(struct emu_machine_params, link[link_class].lanes), 1,         \
      lanes_max },                                                                                                     \
        { "links." name ".gbps_per_lane", EMU_PARAM_MILLI,                                                             \
          offsetof(struct emu_machine_params, link[link_class].mbps_per_lane), 1, 1000000 },                           \
    {                                                                                                                  \
        "links." name ".wire_ns", EMU_PARAM_MILLI, offsetof(struct emu_machine_params, link[link_class].wire_ps), 0,   \
            1000000000                                                                                                 \
    }

/* Row of the topologies whose NICs had a cache of atomics that programs could use: enum emu_amo_cache_use. */
extern const char *const emu_amo_cache_choices[];
#define EMU_AMO_CACHE_KEY                                                                                              \
    {                                                                                                                  \
        "nic.amo_cache", EMU_PARAM_CHOICE, offsetof(struct emu_machine_params, nic.amo_cache), 0, 0,                   \
            emu_amo_cache_choices                                                                                      \
    }

/* printf into a buffer, all or nothing: 0 or -ENOSPC with the buffer untouched. */
int emu_text(char *buf, size_t len, const char *format, ...) __attribute__((format(printf, 3, 4)));

#endif
