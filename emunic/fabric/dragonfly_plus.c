/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Dragonfly+: groups that are trees of two levels, all joined to each other by their spines.
 *
 * Shape. A group has leaves, each with the same number of nodes and a cable to each spine of the group, and spines,
 * each with global_links cables to spines of other groups. Port t = spine * global_links + i of a group leads to the
 * group t % (groups - 1) + 1 further on, so each two groups have the same number of cables.
 *
 * Numbers. Leaves first: group * leaves + leaf; then spines: groups * leaves + group * spines + spine.
 *
 * Ways. Minimal: up, down within a group; up, global, down between groups, over any spine that has a cable to the other
 * group. Non-minimal: by a random leaf of the machine. Ranks are up, global, down: one fall at most (at the root), and
 * two phases of two channels. The adaptive modes choose at the first spine: it owns the global links, while all ways
 * share the links up of a leaf, whose loads tell nothing.
 *
 * Source: A. Shpiner et al., "Dragonfly+: Low Cost Topology for Scaling Datacenters", HiPINEB 2017. There a non-minimal
 * packet may turn at a spine of the group between; here it always goes down to a leaf, as Valiant's does.
 */
#include <errno.h>

#include "emunic/fabric/graph.h"

enum { GROUPS_MAX = 1024, LEAVES_MAX = 64, SPINES_MAX = 32, GLOBAL_MAX = 64, NODES_MAX = 64 };
enum { RANK_UP, RANK_GLOBAL, RANK_DOWN };

static void coordinates(const struct emu_graph *g, uint32_t leaf, uint32_t xyz_out[3])
{
    xyz_out[0] = leaf / g->leaves_per_group;
    xyz_out[1] = leaf % g->leaves_per_group;
}

static const struct emu_graph_kind plus_kind = {
    .n_phases = 2,
    .first_vc = { 0, 2, EMU_GRAPH_CLASS_VCS },
    .has_roots = true,
    .chooses_late = true,
    .coordinates = coordinates,
};

static int check_params(const struct emu_machine_params *params, const char **key_out, char *text, size_t text_len)
{
    const struct emu_graph_params *p = &params->graph;
    uint32_t ports = p->spines * p->global_links;
    uint32_t others = p->groups - 1;

    if (others > 0 && ports % others != 0) {
        *key_out = "topology.global_links";
        (void)emu_text(text, text_len,
                       "%u global cables of a group are not the same number for each of %u other groups", ports,
                       others);
        return -EINVAL;
    }
    *key_out = "topology.groups";
    return emu_graph_check_size((uint64_t)p->groups * p->leaves, (uint64_t)p->groups * (p->leaves + p->spines),
                                p->nodes, text, text_len);
}

static void join_groups(struct emu_graph *g, const struct emu_graph_params *p)
{
    uint32_t others = p->groups - 1;
    uint32_t parallel = others > 0 ? p->spines * p->global_links / others : 0;
    uint32_t first_spine = p->groups * p->leaves;

    for (uint32_t a = 0; a < p->groups; a++) {
        for (uint32_t b = a + 1; b < p->groups; b++) {
            for (uint32_t number = 0; number < parallel; number++) {
                uint32_t port_a = number * others + (b - a - 1);
                uint32_t port_b = number * others + (p->groups + a - b - 1);

                emu_graph_join(g, (struct emu_graph_cable){
                                      .ends = { first_spine + a * p->spines + port_a / p->global_links,
                                                first_spine + b * p->spines + port_b / p->global_links },
                                      .ranks = { RANK_GLOBAL, RANK_GLOBAL },
                                      .link_class = EMU_LINK_GLOBAL,
                                      .number = (uint16_t)number,
                                  });
            }
        }
    }
}

static int build_plus(struct emu_machine *m)
{
    const struct emu_graph_params *p = &m->params.graph;
    uint32_t leaves = p->groups * p->leaves;
    uint32_t global = p->groups > 1 ? p->groups * p->spines * p->global_links / 2 : 0;
    const struct emu_graph like = {
        .kind = &plus_kind,
        .n_routers = leaves + p->groups * p->spines,
        .n_leaves = leaves,
        .nodes = p->nodes,
        .leaves_per_group = p->leaves,
        .n_cables = leaves * p->spines + global,
    };
    struct emu_graph *g;
    int r = emu_graph_create(m, &like, &g);

    if (r < 0)
        return r;
    for (uint32_t leaf = 0; leaf < leaves; leaf++) {
        for (uint32_t spine = 0; spine < p->spines; spine++)
            emu_graph_join(g, (struct emu_graph_cable){
                                  .ends = { leaf, leaves + leaf / p->leaves * p->spines + spine },
                                  .ranks = { RANK_UP, RANK_DOWN },
                                  .link_class = EMU_LINK_LOCAL,
                              });
    }
    for (uint32_t i = 0; i < p->groups * p->spines; i++) {
        g->hosts[leaves + i] = i / p->spines * p->leaves;
        g->tiers[leaves + i] = (uint8_t)(1 + i % p->spines);
    }
    join_groups(g, p);
    return emu_graph_finish(m);
}

static const struct emu_param plus_params[] = {
    { EMU_GRAPH_KEY("groups", groups), 1, GROUPS_MAX },
    { EMU_GRAPH_KEY("leaves", leaves), 1, LEAVES_MAX },
    { EMU_GRAPH_KEY("spines", spines), 1, SPINES_MAX },
    { EMU_GRAPH_KEY("global_links", global_links), 1, GLOBAL_MAX },
    { EMU_GRAPH_KEY("nodes_per_leaf", nodes), 1, NODES_MAX },
    EMU_GRAPH_THRESHOLD,
    EMU_LINK_KEYS("local", EMU_LINK_LOCAL, 64),
    EMU_LINK_KEYS("global", EMU_LINK_GLOBAL, 64),
};

const struct emu_topology emu_topology_dragonfly_plus = {
    EMU_GRAPH_SLOTS,       .kind = "dragonfly-plus",
    .params = plus_params, .n_params = sizeof(plus_params) / sizeof(plus_params[0]),
    .check = check_params, .build = build_plus,
};
