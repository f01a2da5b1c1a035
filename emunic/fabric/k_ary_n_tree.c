/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * k-ary n-tree: a fat tree of switches that are all alike, with as much capacity at its top as at its nodes.
 *
 * Shape. n levels of k^(n-1) switches; the lowest level has k nodes on each switch, k^n together. A switch has a number
 * w of n - 1 digits base k; from level l, cables lead to the k switches of level l + 1 whose numbers differ in digit l
 * at most. Router numbers: level * k^(n-1) + w.
 *
 * Ways. Up over any link until a common ancestor, then down over the only ones that lead there: k^j minimal routes if
 * the ancestor is j levels up. Ranks rise on the way up and further on the way down, so a packet stays in phase 0 with
 * three channels; phase 1 has one, for packets that go round a fault by another leaf (up, down, up, down: one fall).
 *
 * Source: F. Petrini, M. Vanneschi, "k-ary n-trees: High Performance Networks for Massively Parallel Architectures",
 * IPPS 1997.
 */
#include <errno.h>

#include "emunic/fabric/graph.h"

enum { ARITY_MAX = 64, LEVELS_MAX = 8 };

/* Both digits of a leaf's number and its nodes': the lowest, the next, the rest. */
static void coordinates(const struct emu_graph *g, uint32_t leaf, uint32_t xyz_out[3])
{
    uint32_t arity = g->nodes;

    xyz_out[0] = leaf / arity;
    xyz_out[1] = leaf % arity;
}

static const struct emu_graph_kind tree_kind = {
    .n_phases = 2,
    .first_vc = { 0, 3, EMU_GRAPH_CLASS_VCS },
    .coordinates = coordinates,
};

static uint64_t power(uint64_t base, uint32_t exponent)
{
    uint64_t value = 1;

    while (exponent-- > 0)
        value *= base;
    return value;
}

static int check_params(const struct emu_machine_params *params, const char **key_out, char *text, size_t text_len)
{
    const struct emu_graph_params *p = &params->graph;
    uint64_t leaves = power(p->arity, p->levels - 1); /* at most 64^7 */

    *key_out = "topology.levels";
    return emu_graph_check_size(leaves, leaves * p->levels, p->arity, text, text_len);
}

static int build_tree(struct emu_machine *m)
{
    const struct emu_graph_params *p = &m->params.graph;
    uint32_t width = (uint32_t)power(p->arity, p->levels - 1);
    const struct emu_graph like = {
        .kind = &tree_kind,
        .n_routers = width * p->levels,
        .n_leaves = width,
        .nodes = p->arity,
        .leaves_per_group = p->levels > 1 ? p->arity : 1,
        .n_cables = width * p->arity * (p->levels - 1),
    };
    struct emu_graph *g;
    uint32_t step = 1; /* what digit l counts */
    int r = emu_graph_create(m, &like, &g);

    if (r < 0)
        return r;
    for (uint32_t level = 0; level + 1 < p->levels; level++, step *= p->arity) {
        for (uint32_t w = 0; w < width; w++) {
            uint32_t own = w / step % p->arity;

            g->hosts[(level + 1) * width + w] = w;
            g->tiers[(level + 1) * width + w] = (uint8_t)(level + 1);
            for (uint32_t digit = 0; digit < p->arity; digit++)
                emu_graph_join(g,
                               (struct emu_graph_cable){
                                   .ends = { level * width + w, (level + 1) * width + w - own * step + digit * step },
                                   .ranks = { (uint8_t)level, (uint8_t)(2 * p->levels - level) },
                                   .link_class = EMU_LINK_EDGE,
                               });
        }
    }
    return emu_graph_finish(m);
}

static const struct emu_param tree_params[] = {
    { EMU_GRAPH_KEY("arity", arity), 2, ARITY_MAX },
    { EMU_GRAPH_KEY("levels", levels), 1, LEVELS_MAX },
    EMU_LINK_KEYS("edge", EMU_LINK_EDGE, 64),
};

const struct emu_topology emu_topology_tree = {
    EMU_GRAPH_SLOTS,       .kind = "k-ary-n-tree",
    .params = tree_params, .n_params = sizeof(tree_params) / sizeof(tree_params[0]),
    .check = check_params, .build = build_tree,
};
