/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Packet routing of SeaStar machines: one path per pair.
 *
 * Paths. Dimension order X, Y, Z, one direction per dimension, as the tables of the routers would give it: the short
 * way, and where that way has a broken link the way in the other direction, if the dimension is a ring. Of two equal
 * ways + from even coordinates and - from odd ones, so that such pairs share all links of the ring; the sources say
 * nothing of ties [OUR]. The source names two cases of the rule for broken links, y- when y+ is absent and the long way
 * z+ when the path z- is broken anywhere; we check the whole way in each dimension and both directions [OUR]. At the
 * end of a mesh there is no other way: such a pair is unroutable, as is one whose turning point is down. The path
 * depends on pair and faults alone, so order is kept.
 *
 * Channels. Four per link: traffic class x dateline. A ring takes the first channel of the pair up to the cable between
 * the last coordinate and 0, the second across it and behind it; a mesh uses the first only. Dimensions rise, so there
 * is no cycle (Dally and Seitz). Output arbitration is by age: the machine file's router.arbitration.
 * Source: spec/machines.md 4.2 [R:Abts11], [OUR]; W. Dally, C. Seitz, IEEE ToC C-36(5), 1987.
 */
#include "emunic/fabric/torus_routing.h"

enum {
    VCS = 4,
    VC_CLASS = 2, /* vc = class * 2 + behind the dateline */
    NO_DIM = 3,
};

/* Route state: bit per dimension that rises, and from bit 4 on the dimension of the link that the packet is on. */
static uint64_t pack(uint32_t rising, uint32_t dim)
{
    return rising | dim << 4;
}

/* ---- finding a path ---- */

/* The direction in one dimension. False: neither leads there. */
static bool find_way(const struct emu_torus *t, const struct emu_fault_map *faults, uint32_t router, uint32_t dim,
                     uint32_t to, bool *is_plus_out)
{
    uint32_t from = emu_torus_coord(t, router)[dim];
    uint32_t steps = emu_torus_way(t, dim, from, to, is_plus_out);

    if (emu_fault_map_is_clean(faults) ||
        emu_torus_is_open_for(t, faults, router, emu_torus_direction(dim, *is_plus_out), steps))
        return true;
    *is_plus_out = !*is_plus_out;
    steps = emu_torus_steps(t, dim, *is_plus_out, from, to);
    return steps != EMU_TORUS_NONE &&
           emu_torus_is_open_for(t, faults, router, emu_torus_direction(dim, *is_plus_out), steps);
}

static bool start_packet(const struct emu_route_view *view, struct emu_packet *p, uint32_t router)
{
    const struct emu_torus *t = emu_torus_of(view->machine);
    uint32_t dst = p->dst_nid / t->kind->nodes_per_router;
    const uint8_t *target = emu_torus_coord(t, dst);
    uint32_t at[EMU_TORUS_DIMS];
    uint32_t rising = 0;

    if (!emu_fault_map_node_up(view->faults, p->dst_nid) || !emu_fault_map_router_up(view->faults, dst))
        return false;
    for (uint32_t dim = 0; dim < EMU_TORUS_DIMS; dim++)
        at[dim] = emu_torus_coord(t, router)[dim];
    for (uint32_t dim = 0; dim < EMU_TORUS_DIMS; dim++) {
        bool is_short_plus;
        bool is_plus;

        if (!find_way(t, view->faults, emu_torus_router(t, at[0], at[1], at[2]), dim, target[dim], &is_plus))
            return false;
        rising |= (uint32_t)is_plus << dim;
        (void)emu_torus_way(t, dim, at[dim], target[dim], &is_short_plus);
        if (at[dim] != target[dim] && is_plus != is_short_plus)
            p->flags |= EMU_PACKET_DETOUR;
        at[dim] = target[dim];
    }
    p->route_state = pack(rising, NO_DIM);
    return true;
}

/* ---- ways on ---- */

static uint32_t ways_on(const struct emu_route_view *view, const struct emu_packet *p, const struct emu_route_at *at,
                        struct emu_route_option options_out[EMU_ROUTE_OPTIONS_MAX])
{
    const struct emu_torus *t = emu_torus_of(view->machine);
    uint32_t dst = p->dst_nid / t->kind->nodes_per_router;
    uint32_t rising = p->route_state & 7;
    uint32_t in_dim = p->route_state >> 4 & 3;
    uint32_t dim, direction;
    bool is_behind;

    if (at->router == dst) {
        options_out[0] = (struct emu_route_option){
            .link = view->machine->n_nodes + p->dst_nid,
            .vc = p->traffic_class,
            .route_state = p->route_state,
        };
        return emu_fault_map_link_up(view->faults, options_out[0].link);
    }
    for (dim = 0; emu_torus_coord(t, at->router)[dim] == emu_torus_coord(t, dst)[dim]; dim++)
        ;
    direction = emu_torus_direction(dim, rising >> dim & 1);
    is_behind = emu_torus_crosses(t, at->router, direction) || (in_dim == dim && (at->in_vc & 1));
    options_out[0] = (struct emu_route_option){
        .link = emu_torus_link(t, at->router, direction, 0),
        .vc = (uint8_t)(p->traffic_class * VC_CLASS + is_behind),
        .route_state = pack(rising, dim),
    };
    return options_out[0].link != EMU_TORUS_NONE && emu_fault_map_link_up(view->faults, options_out[0].link);
}

/* ---- channels ---- */

static uint32_t count_vcs(const struct emu_machine *m, enum emu_link_class link_class)
{
    (void)m;
    return emu_torus_n_vcs(link_class, VCS);
}

static void describe_vc(const struct emu_machine *m, enum emu_link_class link_class, uint32_t vc,
                        struct emu_vc_info *info_out)
{
    emu_torus_describe_vc(m, link_class, vc, VC_CLASS, info_out);
}

static void visit_step(const struct emu_torus_relation *r, uint32_t link, uint32_t vc, uint32_t router,
                       uint32_t direction, uint32_t next_vc)
{
    uint32_t next = emu_torus_link(r->torus, router, direction, 0);

    if (next != EMU_TORUS_NONE && emu_torus_steps_max(r, direction) > 0 && emu_fault_map_link_up(r->faults, next))
        r->visit(r->ctx, link, vc, next, next_vc);
}

/* Into a dimension, at `router`, for all dimensions from `dim` on; and out to the node. */
static void visit_turns(const struct emu_torus_relation *r, uint32_t link, uint32_t vc, uint32_t router, uint32_t dim,
                        uint32_t c)
{
    for (uint32_t direction = 2 * dim; direction < EMU_TORUS_DIRECTIONS; direction++) {
        bool is_behind = emu_torus_has(r->torus, router, direction) && emu_torus_crosses(r->torus, router, direction);

        visit_step(r, link, vc, router, direction, c * VC_CLASS + is_behind);
    }
    if (emu_fault_map_link_up(r->faults, r->n_nodes + router))
        r->visit(r->ctx, link, vc, r->n_nodes + router, c);
}

static void visit_channel(const struct emu_torus_relation *r, uint32_t link, uint32_t router, uint32_t direction,
                          uint32_t vc)
{
    const struct emu_torus *t = r->torus;
    uint32_t next = emu_torus_neighbour(t, router, direction);
    bool is_behind = vc & 1;

    if (!emu_torus_is_used(r, router, direction, is_behind))
        return;
    if (emu_torus_goes_on(r, next, direction, is_behind, &is_behind))
        visit_step(r, link, vc, next, direction, vc / VC_CLASS * VC_CLASS + is_behind);
    visit_turns(r, link, vc, next, direction / 2 + 1, vc / VC_CLASS);
}

static void visit_dependencies(const struct emu_machine *m, const struct emu_fault_map *faults,
                               void (*visit)(void *ctx, uint32_t link, uint32_t vc, uint32_t next_link,
                                             uint32_t next_vc),
                               void *ctx)
{
    const struct emu_torus *t = emu_torus_of(m);
    const struct emu_torus_relation r = { t, faults, m->n_nodes, !emu_fault_map_is_clean(faults), visit, ctx };

    for (uint32_t nid = 0; nid < m->n_nodes; nid++) {
        for (uint32_t c = 0; emu_fault_map_link_up(faults, nid) && c < EMU_TRAFFIC_CLASSES; c++)
            visit_turns(&r, nid, c, nid, 0, c);
    }
    for (uint32_t link = t->first_link; link < m->n_links; link++) {
        uint32_t router, direction, number;

        if (!emu_fault_map_link_up(faults, link))
            continue;
        emu_torus_link_parts(t, link, &router, &direction, &number);
        for (uint32_t vc = 0; vc < VCS; vc++)
            visit_channel(&r, link, router, direction, vc);
    }
}

const struct emu_routing emu_seastar_routing = {
    .n_vcs = count_vcs,
    .vc = describe_vc,
    .start = start_packet,
    .options = ways_on,
    .dependencies = visit_dependencies,
    .options_max = 1,
};
