/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Machines that are given as a list of cables.
 *
 * Shape. Routers 0 .. n_leaves - 1 have the same number of nodes each, the others none: nid = leaf * nodes + node. The
 * topology lists the cables, in an order that depends on its parameters alone. Links by ascending id:
 *
 *   processor-in   nid
 *   processor-out  nid
 *   others         cable * 2, and + 1 the way back
 *
 * What is kept: 16 bytes for each cable, and a byte for each pair of a leaf and a router, their distance in hops
 * (breadth-first search when the machine is loaded).
 *
 * Places. A group of leaves is a cabinet, a leaf in it a cage, a node a slot: such machines have no names of their own,
 * ours look like the other machines'. A router without nodes has the name of a leaf and a chip of its own.
 *
 * Minimal routes. At each router any link that leads nearer to the destination's leaf; with is_in_order only those of
 * the lowest rank (dimension order). The path hash is a number of mixed radix: a digit for each router's choice.
 */
#include "emunic/fabric/graph.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define FAR 0xff /* not reached yet */

/* ---- building ---- */

int emu_graph_check_size(uint64_t n_leaves, uint64_t n_routers, uint64_t nodes, char *text, size_t text_len)
{
    /* The first two keep the products below 2^64. */
    if (n_leaves <= EMU_GRAPH_PAIRS_MAX && n_routers <= EMU_GRAPH_PAIRS_MAX &&
        n_leaves * n_routers <= EMU_GRAPH_PAIRS_MAX && n_leaves * nodes <= EMU_GRAPH_NODES_MAX)
        return 0;
    (void)emu_text(text, text_len, "%llu routers with nodes are too many: at most %u nodes, and %u pairs of routers",
                   (unsigned long long)n_leaves, EMU_GRAPH_NODES_MAX, EMU_GRAPH_PAIRS_MAX);
    return -EINVAL;
}

void emu_graph_destroy(struct emu_machine *m)
{
    struct emu_graph *g = m->state;

    if (!g)
        return;
    free(g->cables);
    free(g->hosts);
    free(g->tiers);
    free(g->first_out);
    free(g->outs);
    free(g->distances);
    free(g);
    m->state = NULL;
}

int emu_graph_create(struct emu_machine *m, const struct emu_graph *like, struct emu_graph **g_out)
{
    struct emu_graph *g = malloc(sizeof(*g));

    if (!g)
        return -ENOMEM;
    *g = *like;
    g->n_cables = 0; /* counted while they are added */
    m->state = g;
    m->n_routers = g->n_routers;
    m->n_nodes = g->n_leaves * g->nodes;
    m->n_links = 2 * m->n_nodes + 2 * like->n_cables;
    g->first_link = 2 * m->n_nodes;
    g->cables = calloc(like->n_cables + 1u, sizeof(*g->cables));
    g->hosts = calloc(g->n_routers, sizeof(*g->hosts));
    g->tiers = calloc(g->n_routers, sizeof(*g->tiers));
    g->first_out = calloc(g->n_routers + 1u, sizeof(*g->first_out));
    g->outs = calloc(2 * (size_t)like->n_cables + 1, sizeof(*g->outs));
    g->distances = malloc((size_t)g->n_leaves * g->n_routers);
    if (!g->cables || !g->hosts || !g->tiers || !g->first_out || !g->outs || !g->distances) {
        emu_graph_destroy(m);
        return -ENOMEM;
    }
    for (uint32_t i = 0; i < g->n_leaves; i++)
        g->hosts[i] = i;
    *g_out = g;
    return 0;
}

void emu_graph_join(struct emu_graph *g, struct emu_graph_cable cable)
{
    g->cables[g->n_cables++] = cable;
}

/* outs, router by router, by rising id. */
static void sort_links(struct emu_graph *g)
{
    for (uint32_t c = 0; c < g->n_cables; c++) {
        g->first_out[g->cables[c].ends[0]]++;
        g->first_out[g->cables[c].ends[1]]++;
    }
    for (uint32_t i = 1; i <= g->n_routers; i++)
        g->first_out[i] += g->first_out[i - 1];
    for (uint32_t c = g->n_cables; c-- > 0;) {
        g->outs[--g->first_out[g->cables[c].ends[1]]] = g->first_link + 2 * c + 1;
        g->outs[--g->first_out[g->cables[c].ends[0]]] = g->first_link + 2 * c;
    }
}

/* Hops from every router to a leaf. How many were reached. */
static uint32_t measure(const struct emu_graph *g, uint32_t leaf, uint32_t *queue)
{
    uint8_t *distances = &g->distances[(size_t)leaf * g->n_routers];
    uint32_t n = 0;

    memset(distances, FAR, g->n_routers);
    distances[leaf] = 0;
    queue[n++] = leaf;
    for (uint32_t i = 0; i < n; i++) {
        uint32_t router = queue[i];

        for (uint32_t k = g->first_out[router]; k < g->first_out[router + 1]; k++) {
            uint32_t to = emu_graph_to(g, g->outs[k]);

            if (distances[to] != FAR || distances[router] == FAR - 1)
                continue;
            distances[to] = (uint8_t)(distances[router] + 1);
            queue[n++] = to;
        }
    }
    return n;
}

int emu_graph_finish(struct emu_machine *m)
{
    struct emu_graph *g = m->state;
    uint32_t *queue = malloc(g->n_routers * sizeof(*queue));
    int r = queue ? 0 : -ENOMEM;

    assert(m->n_links == g->first_link + 2 * g->n_cables);
    sort_links(g);
    for (uint32_t leaf = 0; r == 0 && leaf < g->n_leaves; leaf++)
        r = measure(g, leaf, queue) == g->n_routers ? 0 : -EINVAL;
    free(queue);
    if (r < 0)
        emu_graph_destroy(m);
    return r;
}

/* ---- nodes and routers ---- */

void emu_graph_place(const struct emu_machine *m, uint32_t nid, struct emu_place *place_out)
{
    const struct emu_graph *g = emu_graph_of(m);
    uint32_t leaf = nid / g->nodes;
    uint32_t xyz[3] = { 0 };

    g->kind->coordinates(g, leaf, xyz);
    *place_out = (struct emu_place){
        .group = leaf / g->leaves_per_group,
        .chassis = leaf % g->leaves_per_group,
        .blade = nid % g->nodes,
        .cabinet_column = leaf / g->leaves_per_group,
        .cage = leaf % g->leaves_per_group,
        .router = leaf,
        .mesh_x = xyz[0],
        .mesh_y = xyz[1],
        .mesh_z = xyz[2],
    };
}

static int nid_of_parts(const struct emu_graph *g, uint32_t group, uint32_t leaf, uint32_t slot, uint32_t *nid_out)
{
    if (group >= g->n_leaves / g->leaves_per_group || leaf >= g->leaves_per_group || slot >= g->nodes)
        return -ERANGE;
    *nid_out = (group * g->leaves_per_group + leaf) * g->nodes + slot;
    return 0;
}

int emu_graph_nid_at(const struct emu_machine *m, const struct emu_place *at, uint32_t *nid_out)
{
    return at->node != 0 ? -ERANGE : nid_of_parts(emu_graph_of(m), at->group, at->chassis, at->blade, nid_out);
}

int emu_graph_nid_in_cabinet(const struct emu_machine *m, const struct emu_place *at, uint32_t *nid_out)
{
    if (at->node != 0 || at->cabinet_row != 0)
        return -ERANGE;
    return nid_of_parts(emu_graph_of(m), at->cabinet_column, at->cage, at->blade, nid_out);
}

uint32_t emu_graph_first_nid(const struct emu_machine *m, uint32_t router)
{
    const struct emu_graph *g = emu_graph_of(m);

    return g->hosts[router] * g->nodes;
}

const char *emu_graph_chip(const struct emu_machine *m, uint32_t router)
{
    static const char *const chips[] = { "r0",  "r1",  "r2",  "r3",  "r4",  "r5",  "r6",  "r7",  "r8",  "r9",  "r10",
                                         "r11", "r12", "r13", "r14", "r15", "r16", "r17", "r18", "r19", "r20", "r21",
                                         "r22", "r23", "r24", "r25", "r26", "r27", "r28", "r29", "r30", "r31", "r32" };

    assert(emu_graph_of(m)->tiers[router] < sizeof(chips) / sizeof(chips[0]));
    return chips[emu_graph_of(m)->tiers[router]];
}

uint32_t emu_graph_levels(const struct emu_machine *m, uint32_t sizes_out[EMU_TOPOLOGY_LEVELS_MAX])
{
    const struct emu_graph *g = emu_graph_of(m);

    sizes_out[0] = g->n_leaves / g->leaves_per_group;
    sizes_out[1] = g->leaves_per_group;
    sizes_out[2] = g->nodes;
    return 3;
}

int emu_graph_check_rules(const struct emu_machine *m, void (*note)(void *ctx, uint32_t rule, const char *text),
                          void *ctx)
{
    (void)m; /* nobody sold them */
    (void)note;
    (void)ctx;
    return 0;
}

/* ---- links ---- */

void emu_graph_link(const struct emu_machine *m, uint32_t id, struct emu_link *link_out)
{
    const struct emu_graph *g = emu_graph_of(m);

    *link_out = (struct emu_link){ .id = id };
    if (id < g->first_link) {
        uint32_t nid = id % m->n_nodes;
        const struct emu_link_end nic = { EMU_END_NIC, nid };
        const struct emu_link_end router = { EMU_END_ROUTER, nid / g->nodes };

        link_out->link_class = id < m->n_nodes ? EMU_LINK_PROCESSOR_IN : EMU_LINK_PROCESSOR_OUT;
        link_out->from = id < m->n_nodes ? nic : router;
        link_out->to = id < m->n_nodes ? router : nic;
    } else {
        const struct emu_graph_cable *cable = emu_graph_cable_of(g, id);
        uint32_t to = emu_graph_to(g, id);

        link_out->link_class = (enum emu_link_class)cable->link_class;
        link_out->number = cable->number;
        link_out->from = (struct emu_link_end){ EMU_END_ROUTER, cable->ends[0] + cable->ends[1] - to };
        link_out->to = (struct emu_link_end){ EMU_END_ROUTER, to };
    }
}

uint32_t emu_graph_link_reverse(const struct emu_machine *m, uint32_t id)
{
    const struct emu_graph *g = emu_graph_of(m);

    if (id < m->n_nodes)
        return id + m->n_nodes;
    if (id < g->first_link)
        return id - m->n_nodes;
    return g->first_link + ((id - g->first_link) ^ 1);
}

/* ---- minimal routes ---- */

static bool is_nearer(const struct emu_graph *g, uint32_t router, uint32_t leaf, uint32_t link)
{
    return emu_graph_distance(g, emu_graph_to(g, link), leaf) + 1 == emu_graph_distance(g, router, leaf);
}

/* The lowest rank of a link that leads nearer. */
static uint32_t lowest_rank(const struct emu_graph *g, uint32_t router, uint32_t leaf)
{
    uint32_t lowest = UINT32_MAX;

    for (uint32_t k = g->first_out[router]; k < g->first_out[router + 1]; k++) {
        uint32_t rank = emu_graph_rank(g, g->outs[k]);

        if (rank < lowest && is_nearer(g, router, leaf, g->outs[k]))
            lowest = rank;
    }
    return lowest;
}

bool emu_graph_next(const struct emu_graph *g, uint32_t router, uint32_t leaf, uint32_t *next, uint32_t *link_out)
{
    uint32_t rank = g->kind->is_in_order ? lowest_rank(g, router, leaf) : 0;

    for (uint32_t k = g->first_out[router] + *next; k < g->first_out[router + 1]; k++) {
        uint32_t link = g->outs[k];

        if (!is_nearer(g, router, leaf, link) || (g->kind->is_in_order && emu_graph_rank(g, link) != rank))
            continue;
        *next = k + 1 - g->first_out[router];
        *link_out = link;
        return true;
    }
    return false;
}

static uint32_t count_next(const struct emu_graph *g, uint32_t router, uint32_t leaf)
{
    uint32_t next = 0;
    uint32_t link;
    uint32_t n = 0;

    while (emu_graph_next(g, router, leaf, &next, &link))
        n++;
    return n;
}

void emu_graph_route_minimal(const struct emu_machine *m, uint32_t src_nid, uint32_t dst_nid, uint64_t path_hash,
                             struct emu_route *route_out)
{
    const struct emu_graph *g = emu_graph_of(m);
    uint32_t router = src_nid / g->nodes;
    uint32_t leaf = dst_nid / g->nodes;

    route_out->n_links = 0;
    route_out->links[route_out->n_links++] = src_nid;
    while (router != leaf) {
        uint32_t n = count_next(g, router, leaf);
        uint32_t wanted = (uint32_t)(path_hash % n);
        uint32_t next = 0;
        uint32_t link = 0;

        path_hash /= n;
        for (uint32_t i = 0; i <= wanted; i++)
            (void)emu_graph_next(g, router, leaf, &next, &link);
        assert(route_out->n_links < EMU_ROUTE_LINKS_MAX - 1);
        route_out->links[route_out->n_links++] = link;
        router = emu_graph_to(g, link);
    }
    route_out->links[route_out->n_links++] = m->n_nodes + dst_nid;
    route_out->n_hops = route_out->n_links - 2;
}

/* From a router on; as deep as there are hops. */
static void spread(const struct emu_graph *g, uint32_t router, uint32_t leaf, uint64_t path_hash,
                   struct emu_share share, const struct emu_share_visit *visit)
{
    uint32_t n = router == leaf ? 0 : count_next(g, router, leaf);
    uint32_t next = 0;
    uint32_t link;

    for (uint32_t i = 0; i < n && emu_graph_next(g, router, leaf, &next, &link); i++) {
        struct emu_share part = emu_share_part(share, (uint32_t)((i + path_hash) % n), n);

        if (part.packets == 0)
            continue;
        visit->call(visit->ctx, link, part);
        spread(g, emu_graph_to(g, link), leaf, path_hash / n, part, visit);
    }
}

void emu_graph_spread_minimal(const struct emu_machine *m, uint32_t src_nid, uint32_t dst_nid, uint64_t path_hash,
                              struct emu_share share, const struct emu_share_visit *visit)
{
    const struct emu_graph *g = emu_graph_of(m);

    if (share.packets == 0)
        return;
    visit->call(visit->ctx, src_nid, share);
    spread(g, src_nid / g->nodes, dst_nid / g->nodes, path_hash >> 32, share, visit);
    visit->call(visit->ctx, m->n_nodes + dst_nid, share);
}
