/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Inside the component: machines that are given as a list of cables, for topologies of the literature (k-ary n-tree,
 * HyperX, Slim Fly, Dragonfly+). A topology's file lists its cables and says how channels follow each other; graph.c
 * and graph_routing.c do the rest.
 */
#ifndef EMUNIC_FABRIC_GRAPH_H
#define EMUNIC_FABRIC_GRAPH_H

#include <stdbool.h>
#include <stdint.h>

#include "emunic/fabric/topology.h"

#define EMU_GRAPH_PHASES_MAX 4
#define EMU_GRAPH_CLASS_VCS  4          /* virtual channels of a class of traffic on each link */
#define EMU_GRAPH_PAIRS_MAX  (1u << 26) /* leaf x router: a byte each */
#define EMU_GRAPH_NODES_MAX  (1u << 20)

struct emu_graph;

/* What a topology says once, for all its machines. */
struct emu_graph_kind {
    /* A packet's channel is of a phase. It keeps its phase as long as the ranks of its links rise, and else enters the
     * next one. first_vc[i] .. first_vc[i + 1] - 1 of its class are phase i's; the last entry is
     * EMU_GRAPH_CLASS_VCS. */
    uint8_t n_phases;
    uint8_t first_vc[EMU_GRAPH_PHASES_MAX + 1];
    bool is_in_order;  /* of the minimal ways only those over a link of the lowest rank are taken (dimension order) */
    bool has_roots;    /* non-minimal ways go by a random router with nodes */
    bool chooses_late; /* the adaptive modes choose behind the first hop, at a router without nodes */
    /* Mesh coordinates of a router with nodes. */
    void (*coordinates)(const struct emu_graph *g, uint32_t leaf, uint32_t xyz_out[3]);
};

/* Both directions between two routers. */
struct emu_graph_cable {
    uint32_t ends[2];
    uint8_t ranks[2]; /* of the link from ends[0], and of the one from ends[1] */
    uint8_t link_class;
    uint16_t number; /* tells parallel cables apart */
};

struct emu_graph {
    const struct emu_graph_kind *kind;
    uint32_t n_routers;
    uint32_t n_leaves; /* routers with nodes: the first ones */
    uint32_t nodes;    /* of a leaf */
    uint32_t leaves_per_group;
    uint32_t n_cables;
    uint32_t first_link;            /* id; before it the NICs' */
    uint32_t shape[4];              /* belongs to the topology */
    struct emu_graph_cable *cables; /* owned */
    uint32_t *hosts;                /* owned; by router: the leaf that its name comes from */
    uint8_t *tiers;                 /* owned; by router: its number at that leaf, 0 for the leaf itself */
    uint32_t *first_out;            /* owned; by router, into outs */
    uint32_t *outs;                 /* owned; link ids */
    uint8_t *distances;             /* owned; [leaf][router] hops */
};

static inline const struct emu_graph *emu_graph_of(const struct emu_machine *m)
{
    return m->state;
}

/* ---- for a topology's build() ---- */

/* From n_routers, n_leaves, nodes, leaves_per_group, n_cables and kind of `like`. 0 or -ENOMEM. */
int emu_graph_create(struct emu_machine *m, const struct emu_graph *like, struct emu_graph **g_out);
/* The next cable. */
void emu_graph_join(struct emu_graph *g, struct emu_graph_cable cable);
/* When all n_cables are there. 0; -ENOMEM and -EINVAL (not connected) leave nothing behind. */
int emu_graph_finish(struct emu_machine *m);
/* For check(): -EINVAL with a text if tables would be too large. */
int emu_graph_check_size(uint64_t n_leaves, uint64_t n_routers, uint64_t nodes, char *text, size_t text_len);

/* ---- links and ways ---- */

static inline const struct emu_graph_cable *emu_graph_cable_of(const struct emu_graph *g, uint32_t link)
{
    return &g->cables[(link - g->first_link) / 2];
}

static inline uint32_t emu_graph_to(const struct emu_graph *g, uint32_t link)
{
    return emu_graph_cable_of(g, link)->ends[1 - (link - g->first_link) % 2];
}

static inline uint32_t emu_graph_rank(const struct emu_graph *g, uint32_t link)
{
    return emu_graph_cable_of(g, link)->ranks[(link - g->first_link) % 2];
}

static inline uint32_t emu_graph_distance(const struct emu_graph *g, uint32_t router, uint32_t leaf)
{
    return g->distances[(size_t)leaf * g->n_routers + router];
}

/* The links of minimal ways from a router to a leaf that is another one: one after another, first with *next 0. False:
 * no more. */
bool emu_graph_next(const struct emu_graph *g, uint32_t router, uint32_t leaf, uint32_t *next, uint32_t *link_out);

/* Slots of struct emu_topology that are the same for all. */
void emu_graph_destroy(struct emu_machine *m);
void emu_graph_place(const struct emu_machine *m, uint32_t nid, struct emu_place *place_out);
int emu_graph_nid_at(const struct emu_machine *m, const struct emu_place *at, uint32_t *nid_out);
int emu_graph_nid_in_cabinet(const struct emu_machine *m, const struct emu_place *at, uint32_t *nid_out);
uint32_t emu_graph_first_nid(const struct emu_machine *m, uint32_t router);
const char *emu_graph_chip(const struct emu_machine *m, uint32_t router);
uint32_t emu_graph_levels(const struct emu_machine *m, uint32_t sizes_out[EMU_TOPOLOGY_LEVELS_MAX]);
void emu_graph_link(const struct emu_machine *m, uint32_t id, struct emu_link *link_out);
uint32_t emu_graph_link_reverse(const struct emu_machine *m, uint32_t id);
void emu_graph_route_minimal(const struct emu_machine *m, uint32_t src_nid, uint32_t dst_nid, uint64_t path_hash,
                             struct emu_route *route_out);
void emu_graph_spread_minimal(const struct emu_machine *m, uint32_t src_nid, uint32_t dst_nid, uint64_t path_hash,
                              struct emu_share share, const struct emu_share_visit *visit);
int emu_graph_check_rules(const struct emu_machine *m, void (*note)(void *ctx, uint32_t rule, const char *text),
                          void *ctx);
extern const struct emu_routing emu_routing_graph;

#define EMU_GRAPH_SLOTS                                                                                                \
    .destroy = emu_graph_destroy, .place = emu_graph_place, .nid_at = emu_graph_nid_at,                                \
    .nid_in_cabinet = emu_graph_nid_in_cabinet, .first_nid = emu_graph_first_nid, .chip = emu_graph_chip,              \
    .levels = emu_graph_levels, .link = emu_graph_link, .link_reverse = emu_graph_link_reverse,                        \
    .route_minimal = emu_graph_route_minimal, .spread_minimal = emu_graph_spread_minimal,                              \
    .check_rules = emu_graph_check_rules, .routing = &emu_routing_graph

#define EMU_GRAPH_KEY(name, field) "topology." name, EMU_PARAM_COUNT, offsetof(struct emu_machine_params, graph.field)
#define EMU_GRAPH_THRESHOLD                                                                                            \
    {                                                                                                                  \
        "routing.threshold_units", EMU_PARAM_COUNT, offsetof(struct emu_machine_params, graph.threshold_units), 0,     \
            65535                                                                                                      \
    }

#endif
