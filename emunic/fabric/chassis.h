/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Inside the component: what the two shapes of the Cray XD1 share. Chassis of nodes, each node with a router of its own
 * (RapidArray processor), each chassis with one switch per fabric; direct_connect.c and fat_tree.c join the switches.
 */
#ifndef EMUNIC_FABRIC_CHASSIS_H
#define EMUNIC_FABRIC_CHASSIS_H

#include <stdbool.h>
#include <stdint.h>

#include "emunic/fabric/topology.h"

#define EMU_CHASSIS_SPINES_MAX     12
#define EMU_CHASSIS_FABRICS_MAX    2
#define EMU_CHASSIS_NODE_LINKS_MAX 4 /* of a fabric */

/* The state of a machine of either shape. */
struct emu_chassis {
    uint32_t chassis;
    uint32_t nodes; /* of a chassis */
    uint32_t fabrics;
    uint32_t links_per_node; /* of a fabric */
    uint32_t n_nodes;
    uint32_t n_switches;       /* in the chassis */
    uint32_t first_node_link;  /* id */
    uint32_t first_outer_link; /* id of the first one that leaves a chassis */

    uint32_t pair_links; /* direct: between each two switches of a fabric */
    uint32_t ring_links; /* direct: more of them to the next and to the previous chassis */
    uint32_t flow_links; /* direct: those that one flow spreads over */

    uint32_t spines;      /* fat tree: of a fabric */
    uint32_t spine_links; /* fat tree: between a chassis switch and a spine switch */
};

static inline const struct emu_chassis *emu_chassis_of(const struct emu_machine *m)
{
    return m->state;
}

/* Fills what does not depend on the shape. -ENOMEM. */
int emu_chassis_create(const struct emu_chassis_params *p, struct emu_chassis **c_out);

/* Do the ports of a chassis switch suffice? As struct emu_topology's check(). */
int emu_chassis_check(const struct emu_chassis_params *p, const char **key_out, char *text, size_t text_len);

/* The switch of a chassis in a fabric: a router. */
static inline uint32_t emu_chassis_switch(const struct emu_chassis *c, uint32_t chassis, uint32_t fabric)
{
    return c->n_nodes + chassis * c->fabrics + fabric;
}

static inline uint32_t emu_chassis_of_switch(const struct emu_chassis *c, uint32_t router)
{
    return (router - c->n_nodes) / c->fabrics;
}

static inline uint32_t emu_fabric_of_switch(const struct emu_chassis *c, uint32_t router)
{
    return (router - c->n_nodes) % c->fabrics;
}

/* Links between a node's router and its switch. */
static inline uint32_t emu_chassis_up_link(const struct emu_chassis *c, uint32_t nid, uint32_t fabric, uint32_t number)
{
    return c->first_node_link + ((nid * c->fabrics + fabric) * c->links_per_node + number) * 2;
}

static inline uint32_t emu_chassis_down_link(const struct emu_chassis *c, uint32_t nid, uint32_t fabric,
                                             uint32_t number)
{
    return emu_chassis_up_link(c, nid, fabric, number) + 1;
}

/*
 * The fabric of a flow: both directions of a pair of nodes on the one that the parity of the lower nid says. A sender
 * that hashes by address (a key other than 0) spreads over the fabrics.
 */
static inline uint32_t emu_chassis_fabric(const struct emu_chassis *c, uint32_t src_nid, uint32_t dst_nid, uint64_t key)
{
    if (key != 0)
        return (uint32_t)(key % c->fabrics);
    return (src_nid < dst_nid ? src_nid : dst_nid) % c->fabrics;
}

/* ---- rows of struct emu_topology that do not depend on the shape ---- */

void emu_chassis_destroy(struct emu_machine *m);
void emu_chassis_place(const struct emu_machine *m, uint32_t nid, struct emu_place *place_out);
int emu_chassis_nid_at(const struct emu_machine *m, const struct emu_place *at, uint32_t *nid_out);
int emu_chassis_nid_in_cabinet(const struct emu_machine *m, const struct emu_place *at, uint32_t *nid_out);
uint32_t emu_chassis_first_nid(const struct emu_machine *m, uint32_t router);
const char *emu_chassis_chip(const struct emu_machine *m, uint32_t router);
uint32_t emu_chassis_levels(const struct emu_machine *m, uint32_t sizes_out[EMU_TOPOLOGY_LEVELS_MAX]);
int emu_chassis_check_rules(const struct emu_machine *m, void (*note)(void *ctx, uint32_t rule, const char *text),
                            void *ctx);

/* All of them, for a row. */
#define EMU_CHASSIS_COMMON_SLOTS                                                                                       \
    .destroy = emu_chassis_destroy, .place = emu_chassis_place, .nid_at = emu_chassis_nid_at,                          \
    .nid_in_cabinet = emu_chassis_nid_in_cabinet, .first_nid = emu_chassis_first_nid, .chip = emu_chassis_chip,        \
    .levels = emu_chassis_levels, .check_rules = emu_chassis_check_rules

/* Below first_outer_link only. */
void emu_chassis_link(const struct emu_machine *m, uint32_t id, struct emu_link *link_out);
uint32_t emu_chassis_link_reverse(const struct emu_machine *m, uint32_t id);

/* ---- routes ---- */

/* A node's links of a fabric, up or down; returns how many. */
static inline uint32_t emu_chassis_node_links(const struct emu_chassis *c, uint32_t nid, uint32_t fabric,
                                              bool goes_down, uint32_t links_out[EMU_CHASSIS_NODE_LINKS_MAX])
{
    for (uint32_t i = 0; i < c->links_per_node; i++)
        links_out[i] = emu_chassis_up_link(c, nid, fabric, i) + goes_down;
    return c->links_per_node;
}

/* Divides a share over parallel links, the `first` of which comes first. */
void emu_chassis_spread(const struct emu_share_visit *v, struct emu_share share, const uint32_t *links,
                        uint32_t n_links, uint32_t first);

static inline void emu_chassis_append(struct emu_route *route, uint32_t link)
{
    route->links[route->n_links++] = link;
}

static inline uint32_t emu_chassis_digit(uint64_t *hash, uint32_t base)
{
    uint32_t digit = (uint32_t)(*hash % base);

    *hash /= base;
    return digit;
}

#define EMU_CHASSIS_KEY(name) "topology." #name, EMU_PARAM_COUNT, offsetof(struct emu_machine_params, chassis.name)
#define EMU_CHASSIS_COMMON_KEYS                                                                                        \
    { EMU_CHASSIS_KEY(chassis), 1, 64 }, { EMU_CHASSIS_KEY(nodes), 1, 64 },                                            \
        { EMU_CHASSIS_KEY(fabrics), 1, EMU_CHASSIS_FABRICS_MAX },                                                      \
        { EMU_CHASSIS_KEY(links_per_node), 1, EMU_CHASSIS_NODE_LINKS_MAX }, { EMU_CHASSIS_KEY(switch_ports), 1, 256 }, \
        { EMU_CHASSIS_KEY(external_ports), 0, 256 }, EMU_LINK_KEYS("node", EMU_LINK_NODE, 31)

#endif
