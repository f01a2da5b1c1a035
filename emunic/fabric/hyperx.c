/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * HyperX: a router for each point of a box of up to three dimensions, joined to all routers that differ from it in one
 * coordinate. A flattened butterfly is one with as many nodes on a router as a dimension has points; a full mesh has
 * one dimension.
 *
 * Numbers. router = (z * y size + y) * x size + x. Parallel cables: the same number in every dimension.
 *
 * Ways. Minimal: each coordinate that differs is mended in one hop, x first. Non-minimal: so to a random router, and so
 * on from there. Ranks are dimensions: a leg's rise, so there is at most one fall, and two phases of two channels.
 *
 * Source: J. H. Ahn et al., "HyperX: Topology, Routing, and Packaging of Efficient Large-Scale Networks", SC 2009;
 * dimension order and Valiant by it as there.
 */
#include <errno.h>

#include "emunic/fabric/graph.h"

enum { SIZE_MAX_OF_A_DIMENSION = 256, PARALLEL_MAX = 16, NODES_MAX = 256 };

static void coordinates(const struct emu_graph *g, uint32_t leaf, uint32_t xyz_out[3])
{
    for (uint32_t d = 0; d < 3; d++) {
        xyz_out[d] = leaf % g->shape[d];
        leaf /= g->shape[d];
    }
}

static const struct emu_graph_kind hyperx_kind = {
    .n_phases = 2,
    .first_vc = { 0, 2, EMU_GRAPH_CLASS_VCS },
    .is_in_order = true,
    .has_roots = true,
    .coordinates = coordinates,
};

static int check_params(const struct emu_machine_params *params, const char **key_out, char *text, size_t text_len)
{
    const struct emu_graph_params *p = &params->graph;
    uint64_t routers = (uint64_t)p->size[0] * p->size[1] * p->size[2];

    *key_out = "topology.x";
    return emu_graph_check_size(routers, routers, p->nodes, text, text_len);
}

static int build_hyperx(struct emu_machine *m)
{
    const struct emu_graph_params *p = &m->params.graph;
    uint32_t routers = p->size[0] * p->size[1] * p->size[2];
    uint32_t others = p->size[0] + p->size[1] + p->size[2] - 3;
    const struct emu_graph like = {
        .kind = &hyperx_kind,
        .n_routers = routers,
        .n_leaves = routers,
        .nodes = p->nodes,
        .leaves_per_group = p->size[0],
        .n_cables = routers * others * p->parallel / 2,
        .shape = { p->size[0], p->size[1], p->size[2] },
    };
    struct emu_graph *g;
    uint32_t step = 1;
    int r = emu_graph_create(m, &like, &g);

    if (r < 0)
        return r;
    for (uint32_t d = 0; d < 3; step *= p->size[d], d++) {
        for (uint32_t from = 0; from < routers; from++) {
            uint32_t at = from / step % p->size[d];

            for (uint32_t i = 1; at + i < p->size[d]; i++) {
                for (uint32_t number = 0; number < p->parallel; number++)
                    emu_graph_join(g, (struct emu_graph_cable){ .ends = { from, from + i * step },
                                                                .ranks = { (uint8_t)d, (uint8_t)d },
                                                                .link_class = EMU_LINK_EDGE,
                                                                .number = (uint16_t)number });
            }
        }
    }
    return emu_graph_finish(m);
}

static const struct emu_param hyperx_params[] = {
    { EMU_GRAPH_KEY("x", size[0]), 1, SIZE_MAX_OF_A_DIMENSION },
    { EMU_GRAPH_KEY("y", size[1]), 1, SIZE_MAX_OF_A_DIMENSION },
    { EMU_GRAPH_KEY("z", size[2]), 1, SIZE_MAX_OF_A_DIMENSION },
    { EMU_GRAPH_KEY("parallel", parallel), 1, PARALLEL_MAX },
    { EMU_GRAPH_KEY("nodes_per_router", nodes), 1, NODES_MAX },
    EMU_GRAPH_THRESHOLD,
    EMU_LINK_KEYS("edge", EMU_LINK_EDGE, 64),
};

const struct emu_topology emu_topology_hyperx = {
    EMU_GRAPH_SLOTS,         .kind = "hyperx",
    .params = hyperx_params, .n_params = sizeof(hyperx_params) / sizeof(hyperx_params[0]),
    .check = check_params,   .build = build_hyperx,
};
