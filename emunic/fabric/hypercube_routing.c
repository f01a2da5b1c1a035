/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Packet routing of the hypercube (Cray X1).
 *
 * Ways. E-cube: the dimensions in which a packet's vertex differs from its destination's, lowest first: one way for
 * each pair. On edges the destination tells the channel, so packets of a pair keep their order. A NIC link takes any of
 * a few channels, but one by a hash of the pair for the modes that promise an order.
 *
 * Faults. The source is silent; ours: a packet whose e-cube way crosses something dead goes by another vertex, e-cube
 * to it and e-cube on from it, the vertex that makes the way shortest, the lowest among equals. One dead edge or vertex
 * is always got around (if the cube has more than one dimension). A packet on its way that finds its next edge dead
 * chooses such a vertex from where it is, if it has none yet, and keeps to rising dimensions until there; else it has
 * no way on.
 *
 * Virtual channels of an edge: four for requests and two for responses, and one of each behind the other vertex. There
 * are several because a channel gives one packet at a time to one output: an edge carries as much as four nodes take,
 * and the vertex is non-blocking for its nodes (spec/machines.md 6.2). So a packet that waits for a busy node may hold
 * up none for an idle one, as far as channels reach: a node's packets come on one channel, which it shares with at most
 * every fourth of the vertex. On each group of channels dimensions only rise, and no packet comes back from behind, so
 * nothing waits in a circle (Dally and Seitz). NIC links have four for each class.
 * route_state: the other vertex + 1, or 0.
 * Source: spec/machines.md 6.2 ([OUR]).
 */
#include "emunic/fabric/route.h"
#include "emunic/fabric/sim/routing.h"
#include "emunic/fabric/topology.h"

#include "emunic/fabric/hypercube_inner.h"

/* Channels of a link, one as good as the other. */
struct vcs {
    uint8_t first;
    uint8_t n;
};

static struct vcs nic_vcs(uint32_t traffic_class)
{
    return (struct vcs){ (uint8_t)(traffic_class * 4), 4 };
}

static struct vcs edge_vcs(uint32_t traffic_class, bool is_behind)
{
    static const struct vcs table[EMU_TRAFFIC_CLASSES][2] = {
        [EMU_TRAFFIC_REQUEST] = { { 0, 4 }, { 4, 1 } },
        [EMU_TRAFFIC_RESPONSE] = { { 5, 2 }, { 7, 1 } },
    };

    return table[traffic_class][is_behind];
}

static uint32_t n_vcs_of(const struct emu_machine *m, enum emu_link_class link_class)
{
    (void)m;
    (void)link_class;
    return EMU_VCS_MAX;
}

static void describe_vc(const struct emu_machine *m, enum emu_link_class link_class, uint32_t vc,
                        struct emu_vc_info *info_out)
{
    uint32_t first_response =
        link_class == EMU_LINK_EDGE ? edge_vcs(EMU_TRAFFIC_RESPONSE, false).first : nic_vcs(EMU_TRAFFIC_RESPONSE).first;

    *info_out = (struct emu_vc_info){
        .capacity_units = m->params.router.vc_units,
        .traffic_class = vc < first_response ? EMU_TRAFFIC_REQUEST : EMU_TRAFFIC_RESPONSE,
        .is_escape = true,
    };
}

/* Is each edge of the e-cube way up, and does it use no dimension below `lowest`? */
static bool is_open(const struct hypercube *h, const struct emu_fault_map *faults, uint32_t from, uint32_t to,
                    uint32_t lowest)
{
    if (((from ^ to) & ((1u << lowest) - 1)) != 0)
        return false;
    for (uint32_t d = lowest; d < h->dimensions; d++) {
        if (((from ^ to) >> d & 1) == 0)
            continue;
        if (!emu_fault_map_link_up(faults, edge_link(h, from, d)))
            return false;
        from ^= 1u << d;
    }
    return true;
}

/* The vertex to go by, from a vertex on in dimensions from `lowest` up. False: there is none. */
static bool find_other(const struct hypercube *h, const struct emu_fault_map *faults, uint32_t from, uint32_t to,
                       uint32_t lowest, uint32_t *other_out)
{
    int fewest = 0;

    for (uint32_t other = 0; other < h->vertices; other++) {
        int hops = __builtin_popcount(from ^ other) + __builtin_popcount(other ^ to);

        if ((fewest == 0 || hops < fewest) && is_open(h, faults, from, other, lowest) &&
            is_open(h, faults, other, to, 0)) {
            fewest = hops;
            *other_out = other;
        }
    }
    return fewest != 0;
}

static bool start_packet(const struct emu_route_view *view, struct emu_packet *p, uint32_t router)
{
    const struct hypercube *h = hypercube_of(view->machine);
    uint32_t to = p->dst_nid / h->nodes;
    uint32_t other;

    p->route_state = 0;
    if (emu_fault_map_is_clean(view->faults))
        return true;
    if (!emu_fault_map_link_up(view->faults, view->machine->n_nodes + p->dst_nid))
        return false;
    if (is_open(h, view->faults, router, to, 0))
        return true;
    if (!find_other(h, view->faults, router, to, 0, &other))
        return false;
    p->route_state = other + 1;
    p->flags |= EMU_PACKET_DETOUR;
    return true;
}

static uint32_t lowest_bit(uint32_t bits)
{
    return (uint32_t)__builtin_ctz(bits);
}

static bool is_ordered(const struct emu_packet *p)
{
    return p->mode == EMU_MODE_MIN_HASH || p->mode == EMU_MODE_NMIN_HASH || p->mode == EMU_MODE_IN_ORDER ||
           p->mode == EMU_MODE_DETERMINISTIC;
}

/* The link to the destination, on any of its channels, or on the pair's own. */
static uint32_t offer_node(const struct emu_packet *p, uint32_t link,
                           struct emu_route_option options_out[EMU_ROUTE_OPTIONS_MAX])
{
    const struct vcs vcs = nic_vcs(p->traffic_class);
    bool is_one = is_ordered(p);
    uint32_t first = is_one ? (uint32_t)(emu_route_hash(p->src_nid, p->dst_nid, 0) % vcs.n) : 0;
    uint32_t n = is_one ? 1 : vcs.n;

    for (uint32_t i = 0; i < n; i++)
        options_out[i] = (struct emu_route_option){ .link = link,
                                                    .vc = (uint8_t)(vcs.first + first + i),
                                                    .route_state = p->route_state };
    return n;
}

static uint32_t offer_ways(const struct emu_route_view *view, const struct emu_packet *p, const struct emu_route_at *at,
                           struct emu_route_option options_out[EMU_ROUTE_OPTIONS_MAX])
{
    const struct hypercube *h = hypercube_of(view->machine);
    uint32_t to = p->dst_nid / h->nodes;
    uint64_t state = p->route_state;
    bool is_behind = !at->is_entering && at->in_vc == edge_vcs(p->traffic_class, true).first; /* the other vertex */
    uint32_t target, link;
    struct vcs vcs;

    if (at->router == to)
        return offer_node(p, view->machine->n_nodes + p->dst_nid, options_out);
    if (state != 0 && at->router == state - 1)
        is_behind = true;
    target = state == 0 || is_behind ? to : (uint32_t)state - 1;
    link = edge_link(h, at->router, lowest_bit(at->router ^ target));
    if (!emu_fault_map_link_up(view->faults, link)) {
        uint32_t lowest = at->is_entering ? 0 : (at->in_link - h->first_edge) % h->dimensions + 1;
        uint32_t other;

        if (is_behind || !find_other(h, view->faults, at->router, to, lowest, &other))
            return 0;
        state = other + 1;
        is_behind = other == at->router;
        target = is_behind ? to : other;
        link = edge_link(h, at->router, lowest_bit(at->router ^ target));
    }
    vcs = edge_vcs(p->traffic_class, is_behind);
    options_out[0] = (struct emu_route_option){
        .link = link,
        .vc = (uint8_t)(vcs.first + p->dst_nid % vcs.n),
        .flags = state != 0 ? EMU_PACKET_DETOUR : 0,
        .route_state = state,
    };
    return 1;
}

/* Who is told of dependencies, and what is up. */
struct audit {
    const struct emu_machine *m;
    const struct emu_fault_map *faults;
    void (*visit)(void *ctx, uint32_t link, uint32_t vc, uint32_t next_link, uint32_t next_vc);
    void *ctx;
};

static void visit_all(const struct audit *a, uint32_t link, struct vcs vcs, uint32_t next, struct vcs next_vcs)
{
    if (!emu_fault_map_link_up(a->faults, next))
        return;
    for (uint32_t i = 0; i < vcs.n; i++) {
        for (uint32_t j = 0; j < next_vcs.n; j++)
            a->visit(a->ctx, link, vcs.first + i, next, next_vcs.first + j);
    }
}

/* A packet that came into a vertex by a link may ask for its nodes, */
static void visit_nodes(const struct audit *a, uint32_t link, struct vcs vcs, uint32_t vertex, uint32_t traffic_class)
{
    const struct hypercube *h = hypercube_of(a->m);

    for (uint32_t i = 0; i < h->nodes; i++)
        visit_all(a, link, vcs, a->m->n_nodes + vertex * h->nodes + i, nic_vcs(traffic_class));
}

/* and for edges, from a dimension up. */
static void visit_edges(const struct audit *a, uint32_t link, struct vcs vcs, uint32_t vertex, uint32_t lowest,
                        struct vcs next_vcs)
{
    const struct hypercube *h = hypercube_of(a->m);

    for (uint32_t d = lowest; d < h->dimensions; d++)
        visit_all(a, link, vcs, edge_link(h, vertex, d), next_vcs);
}

static void list_class(const struct audit *a, uint32_t k)
{
    const struct hypercube *h = hypercube_of(a->m);
    const struct vcs before = edge_vcs(k, false);
    const struct vcs behind = edge_vcs(k, true);
    bool has_detours = !emu_fault_map_is_clean(a->faults);

    for (uint32_t nid = 0; nid < a->m->n_nodes; nid++) {
        if (!emu_fault_map_link_up(a->faults, nid))
            continue;
        visit_nodes(a, nid, nic_vcs(k), nid / h->nodes, k);
        visit_edges(a, nid, nic_vcs(k), nid / h->nodes, 0, before);
        if (has_detours)
            visit_edges(a, nid, nic_vcs(k), nid / h->nodes, 0, behind);
    }
    for (uint32_t i = 0; i < h->vertices * h->dimensions; i++) {
        uint32_t link = h->first_edge + i;
        uint32_t d = i % h->dimensions;
        uint32_t to = i / h->dimensions ^ 1u << d;

        if (!emu_fault_map_link_up(a->faults, link))
            continue;
        visit_nodes(a, link, before, to, k);
        visit_edges(a, link, before, to, d + 1, before);
        if (!has_detours)
            continue;
        visit_edges(a, link, before, to, 0, behind);
        visit_nodes(a, link, behind, to, k);
        visit_edges(a, link, behind, to, d + 1, behind);
    }
}

static void list_dependencies(const struct emu_machine *m, const struct emu_fault_map *faults,
                              void (*visit)(void *ctx, uint32_t link, uint32_t vc, uint32_t next_link,
                                            uint32_t next_vc),
                              void *ctx)
{
    const struct audit a = { .m = m, .faults = faults, .visit = visit, .ctx = ctx };

    for (uint32_t k = 0; k < EMU_TRAFFIC_CLASSES; k++)
        list_class(&a, k);
}

const struct emu_routing emu_routing_hypercube = {
    .n_vcs = n_vcs_of,
    .vc = describe_vc,
    .start = start_packet,
    .options = offer_ways,
    .dependencies = list_dependencies,
};
