/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Inside the component: a machine's parameters, and what a topology provides. The rest of the component asks a
 * topology through its row of functions and never by name.
 */
#ifndef EMUNIC_FABRIC_TOPOLOGY_H
#define EMUNIC_FABRIC_TOPOLOGY_H

#include <stddef.h>
#include <stdint.h>

#include "emunic/fabric/link.h"
#include "emunic/fabric/load.h"
#include "emunic/fabric/machine.h"
#include "emunic/fabric/route.h"

#define EMU_TOPOLOGY_LEVELS_MAX 4
#define EMU_PARAM_AUTO 0 /* value of a COUNT_OR_AUTO parameter that says "auto" */

enum emu_param_type {
    EMU_PARAM_COUNT,         /* uint32_t, whole number */
    EMU_PARAM_COUNT_OR_AUTO, /* the same, or the word "auto" */
    EMU_PARAM_BYTES,         /* uint64_t, whole number */
    EMU_PARAM_MILLI,         /* uint32_t in thousandths, written with up to three decimals; limits in thousandths */
    EMU_PARAM_NAME,          /* char[EMU_MACHINE_NAME_MAX]: lower case letters, digits, '-' and '_' */
};

/* One key of a machine file. */
struct emu_param {
    const char *key;         /* whole path: "topology.groups" */
    enum emu_param_type type;
    size_t offset;           /* in struct emu_machine_params */
    uint64_t min;
    uint64_t max;
};

struct emu_link_params {
    uint32_t lanes;
    uint32_t mbps_per_lane;
    uint32_t wire_ns;
};

struct emu_dragonfly_params {
    uint32_t groups;
    uint32_t chassis;            /* per group */
    uint32_t blades;             /* per chassis */
    uint32_t nodes_per_blade;
    uint32_t cables_per_bundle;  /* between each two groups, or EMU_PARAM_AUTO */
    uint32_t cabinet_columns;    /* in one row of the floor */
};

struct emu_machine_params {
    uint32_t schema;
    char name[EMU_MACHINE_NAME_MAX];
    char kind[EMU_MACHINE_NAME_MAX];
    struct emu_nic_params nic;
    struct emu_router_params router;
    struct emu_link_params link[EMU_LINK_CLASSES];
    union {
        struct emu_dragonfly_params dragonfly;
    };
};

struct emu_machine;

/* Packets and flits that travel together. */
struct emu_share {
    uint64_t packets;
    uint64_t flits;
};

/*
 * One kind of topology. All functions but check() and build() take a built machine, are pure, may be called on any
 * thread, and get arguments that the caller has checked. No slot may be NULL.
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

    /* Sets id, link_class, from, to and number. */
    void (*link)(const struct emu_machine *m, uint32_t link, struct emu_link *link_out);
    uint32_t (*link_reverse)(const struct emu_machine *m, uint32_t link);

    void (*route_minimal)(const struct emu_machine *m, uint32_t src_nid, uint32_t dst_nid, uint64_t path_hash,
                          struct emu_route *route_out);
    /* Divides a share over all minimal routes and visits each link part by part; path_hash turns the rounding. */
    void (*spread_minimal)(const struct emu_machine *m, uint32_t src_nid, uint32_t dst_nid, uint64_t path_hash,
                           struct emu_share share, void (*visit)(void *ctx, uint32_t link, struct emu_share share),
                           void *ctx);

    int (*check_rules)(const struct emu_machine *m, void (*note)(void *ctx, uint32_t rule, const char *text),
                       void *ctx);
};

struct emu_machine {
    const struct emu_topology *topology; /* static */
    struct emu_machine_params params;
    uint32_t n_nodes;
    uint32_t n_routers;
    uint32_t n_links;
    void *state;                         /* owned by the topology */
};

extern const struct emu_topology emu_topology_dragonfly;

/* By the value of topology.kind; NULL: no such kind. */
const struct emu_topology *emu_topology_find(const char *kind);

/* Part `index` of `parts` of a share. The parts sum to the share; whole packets, each with its own flits. */
struct emu_share emu_share_part(struct emu_share share, uint32_t index, uint32_t parts);

/* printf into a buffer, all or nothing: 0 or -ENOSPC with the buffer untouched. */
int emu_text(char *buf, size_t len, const char *format, ...) __attribute__((format(printf, 3, 4)));

#endif
