/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Binary hypercube of the Cray X1.
 *
 * Shape. 2^d vertices; a vertex is one router that serves the same number of nodes (X1: eight) and is joined to the d
 * vertices whose number differs from its own in one bit. The X1 has no NIC and no router chip of that kind: memory
 * ports of a node reach the network in 16 address slices, each a hypercube of its own and statistically like the
 * others. They are modelled as one network whose links have 16 lanes, one per slice; a slice that fails is a lane that
 * fails.
 *
 * Numbers. nid = vertex * nodes + node and router = vertex, dense. Links by ascending id:
 *
 *   processor-in   nid
 *   processor-out  nid
 *   edge           vertex * d + dimension, to the vertex with that bit turned
 *
 * Places. A liquid-cooled cabinet holds 16 nodes, here two vertices: cage 0 and 1 of it, and the node's slot counts
 * within the vertex. The source has no such names: they are ours, so that each node has one that looks like the other
 * machines'. Mesh coordinates are (vertex, node, 0).
 *
 * Minimal routes. Dimension order, lowest bit first (e-cube): one route for each pair, as long as the number of bits in
 * which the vertices differ. The path hash has nothing to choose.
 * Source: spec/machines.md 6.1, 6.2 (CUG05; routing and names [OUR]).
 */
#include "emunic/fabric/hypercube.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "emunic/fabric/hypercube_inner.h"
#include "emunic/fabric/topology.h"

enum {
    DIMENSIONS_MAX = 10,
    NODES_MAX = 64, /* of a vertex */
    VERTICES_PER_CABINET = 2,
    X1_DIMENSIONS_MAX = 4, /* larger machines are a torus */
};

/* ---- building ---- */

static int check_params(const struct emu_machine_params *params, const char **key_out, char *text, size_t text_len)
{
    /* Any number of dimensions goes with any number of nodes. */
    (void)params;
    (void)key_out;
    (void)text;
    (void)text_len;
    return 0;
}

static int build_hypercube(struct emu_machine *m)
{
    const struct emu_hypercube_params *p = &m->params.hypercube;
    struct hypercube *h;

    h = calloc(1, sizeof(*h));
    if (!h)
        return -ENOMEM;
    h->dimensions = p->dimensions;
    h->vertices = 1u << p->dimensions;
    h->nodes = p->nodes_per_vertex;

    m->n_routers = h->vertices;
    m->n_nodes = h->vertices * h->nodes;
    h->first_edge = 2 * m->n_nodes;
    m->n_links = h->first_edge + h->vertices * h->dimensions;
    m->state = h;
    return 0;
}

static void destroy_hypercube(struct emu_machine *m)
{
    free(m->state);
    m->state = NULL;
}

/* ---- nodes and routers ---- */

static void place_of_nid(const struct emu_machine *m, uint32_t nid, struct emu_place *place_out)
{
    const struct hypercube *h = hypercube_of(m);
    uint32_t vertex = nid / h->nodes;

    *place_out = (struct emu_place){
        .group = vertex,
        .blade = nid % h->nodes,
        .cabinet_column = vertex / VERTICES_PER_CABINET,
        .cage = vertex % VERTICES_PER_CABINET,
        .router = vertex,
        .mesh_x = vertex,
        .mesh_y = nid % h->nodes,
    };
}

static int nid_of_vertex_place(const struct emu_machine *m, const struct emu_place *at, uint32_t *nid_out)
{
    const struct hypercube *h = hypercube_of(m);

    if (at->group >= h->vertices || at->chassis != 0 || at->blade >= h->nodes || at->node != 0)
        return -ERANGE;
    *nid_out = at->group * h->nodes + at->blade;
    return 0;
}

static int nid_of_cabinet_place(const struct emu_machine *m, const struct emu_place *at, uint32_t *nid_out)
{
    struct emu_place in_vertex = { .blade = at->blade, .node = at->node };

    if (at->cabinet_row != 0 || at->cabinet_column >= hypercube_of(m)->vertices || at->cage >= VERTICES_PER_CABINET)
        return -ERANGE;
    in_vertex.group = at->cabinet_column * VERTICES_PER_CABINET + at->cage;
    return nid_of_vertex_place(m, &in_vertex, nid_out);
}

static uint32_t first_nid_of_router(const struct emu_machine *m, uint32_t router)
{
    return router * hypercube_of(m)->nodes;
}

static const char *chip_name(const struct emu_machine *m, uint32_t router)
{
    (void)m;
    (void)router;
    return "v0";
}

static uint32_t nid_levels(const struct emu_machine *m, uint32_t sizes_out[EMU_TOPOLOGY_LEVELS_MAX])
{
    const struct hypercube *h = hypercube_of(m);

    sizes_out[0] = h->vertices;
    sizes_out[1] = h->nodes;
    return 2;
}

/* ---- links ---- */

static void describe_link(const struct emu_machine *m, uint32_t id, struct emu_link *link_out)
{
    const struct hypercube *h = hypercube_of(m);

    *link_out = (struct emu_link){ .id = id };
    if (id < h->first_edge) {
        uint32_t nid = id % m->n_nodes;
        const struct emu_link_end nic = { EMU_END_NIC, nid };
        const struct emu_link_end router = { EMU_END_ROUTER, nid / h->nodes };

        link_out->link_class = id < m->n_nodes ? EMU_LINK_PROCESSOR_IN : EMU_LINK_PROCESSOR_OUT;
        link_out->from = id < m->n_nodes ? nic : router;
        link_out->to = id < m->n_nodes ? router : nic;
    } else {
        uint32_t vertex = (id - h->first_edge) / h->dimensions;
        uint32_t dimension = (id - h->first_edge) % h->dimensions;

        link_out->link_class = EMU_LINK_EDGE;
        link_out->from = (struct emu_link_end){ EMU_END_ROUTER, vertex };
        link_out->to = (struct emu_link_end){ EMU_END_ROUTER, vertex ^ 1u << dimension };
    }
}

static uint32_t reverse_of_link(const struct emu_machine *m, uint32_t id)
{
    const struct hypercube *h = hypercube_of(m);
    uint32_t index = id - h->first_edge;

    if (id < m->n_nodes)
        return id + m->n_nodes;
    if (id < h->first_edge)
        return id - m->n_nodes;
    return edge_link(h, index / h->dimensions ^ 1u << index % h->dimensions, index % h->dimensions);
}

/* ---- minimal routes ---- */

static void route_minimally(const struct emu_machine *m, uint32_t src_nid, uint32_t dst_nid, uint64_t path_hash,
                            struct emu_route *route_out)
{
    const struct hypercube *h = hypercube_of(m);
    uint32_t vertex = src_nid / h->nodes;
    uint32_t differs = vertex ^ dst_nid / h->nodes;

    (void)path_hash;
    route_out->n_links = 0;
    route_out->links[route_out->n_links++] = src_nid;
    for (uint32_t d = 0; d < h->dimensions; d++) {
        if ((differs >> d & 1) == 0)
            continue;
        route_out->links[route_out->n_links++] = edge_link(h, vertex, d);
        vertex ^= 1u << d;
    }
    route_out->links[route_out->n_links++] = m->n_nodes + dst_nid;
    assert(route_out->n_links <= EMU_ROUTE_LINKS_MAX);
    route_out->n_hops = route_out->n_links - 2;
}

static void spread_minimally(const struct emu_machine *m, uint32_t src_nid, uint32_t dst_nid, uint64_t path_hash,
                             struct emu_share share, const struct emu_share_visit *visit)
{
    struct emu_route route;

    if (share.packets == 0)
        return;
    route_minimally(m, src_nid, dst_nid, path_hash, &route);
    for (uint32_t i = 0; i < route.n_links; i++)
        visit->call(visit->ctx, route.links[i], share);
}

/* ---- rules and shape ---- */

static int check_x1_rules(const struct emu_machine *m, void (*note)(void *ctx, uint32_t rule, const char *text),
                          void *ctx)
{
    if (hypercube_of(m)->dimensions <= X1_DIMENSIONS_MAX)
        return 0;
    if (note)
        note(ctx, 1, "hypercubes of the Cray X1 end at four dimensions, 512 processors; larger machines are a torus");
    return 1;
}

#define KEY(name) "topology." #name, EMU_PARAM_COUNT, offsetof(struct emu_machine_params, hypercube.name)

static const struct emu_param hypercube_params[] = {
    { KEY(dimensions), 0, DIMENSIONS_MAX },
    { KEY(nodes_per_vertex), 1, NODES_MAX },
    EMU_LINK_KEYS("edge", EMU_LINK_EDGE, 31),
    { "router.column_buffers", EMU_PARAM_COUNT, offsetof(struct emu_machine_params, router.column_buffers), 0, 1 },
};

const struct emu_topology emu_topology_hypercube = {
    .kind = "hypercube",
    .params = hypercube_params,
    .n_params = sizeof(hypercube_params) / sizeof(hypercube_params[0]),
    .check = check_params,
    .build = build_hypercube,
    .destroy = destroy_hypercube,
    .place = place_of_nid,
    .nid_at = nid_of_vertex_place,
    .nid_in_cabinet = nid_of_cabinet_place,
    .first_nid = first_nid_of_router,
    .chip = chip_name,
    .levels = nid_levels,
    .link = describe_link,
    .link_reverse = reverse_of_link,
    .route_minimal = route_minimally,
    .spread_minimal = spread_minimally,
    .check_rules = check_x1_rules,
    .routing = &emu_routing_hypercube,
};
