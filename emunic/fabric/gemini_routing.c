/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Packet routing of Gemini machines: dimension order around faults.
 *
 * Paths. A packet goes in one or two passes. Each pass is dimension order X, Y, Z, with one direction per dimension;
 * the first ends at a middle router, the second at the destination. Without faults there is one pass, the short way
 * round in each dimension, ties to + [OUR]. start() looks for the first healthy path in this order (spec/machines.md
 * 3.2):
 *
 *   base   X, Y, Z, short ways
 *   (a)    X, Y, Z, the long way round in one dimension, then in two, then in all three
 *   (b)    one routing turn: one step aside before X, Y, Z, or X, Y, Z to a neighbour of the destination and one
 *          step from there, so that all else happens in the neighbour plane. The one with the fewest hops; first with
 *          short ways, then with long ones
 *   (c)    with order_retry the other orders, in the order XZY, YXZ, YZX, ZXY, ZYX, each with short and long ways. An
 *          order is two passes if it descends once; ZYX descends twice if it moves in all three dimensions and is then
 *          left out, because a third pass would need a third pair of channels
 *   (d)    otherwise the pair is unroutable
 *
 * Route state: the middle router, directions of both passes, present pass and dimension.
 *
 * Channels. Eight per link: traffic class x pass x dateline (Dally and Seitz). In a ring a packet takes the first
 * channel of the pair up to the cable between the last coordinate and 0, the second across it and behind it. Within a
 * pass dimensions only rise and within a dimension the direction stays, within a ring the pair cuts the cycle, and a
 * packet never goes back from the second pass: no cycle. Requests and responses have channels of their own.
 *
 * Tiles. The parallel links of a direction are equivalent. Adaptive modes are offered all that are up; which one is the
 * arbiter's choice (router.choice: most credits). Ordered modes get one by hash: of the pair (in-order) or of pair and
 * order key (hashed).
 * Source: spec/machines.md 3.2; W. Dally, C. Seitz, IEEE ToC C-36(5), 1987.
 */
#include "emunic/fabric/torus_routing.h"

enum {
    VCS = 8,
    VC_CLASS = 4, /* vc = class * 4 + pass * 2 + behind the dateline */
    VC_PASS = 2,
    X_BIT = 1,
    Y_BIT = 2,
    Z_BIT = 4,
    NO_DIM = 3,
};

/* Where a packet goes, as its route state holds it. */
struct plan {
    uint32_t middle;    /* end of the first pass; EMU_TORUS_NONE: there is one pass only */
    uint32_t rising[2]; /* per pass: bit per dimension, set: rising coordinates */
    uint32_t pass;
    uint32_t dim; /* of the link that the packet is on; NO_DIM: of the NIC */
};

static uint64_t pack(const struct plan *plan)
{
    return plan->middle | (uint64_t)plan->rising[0] << 32 | (uint64_t)plan->rising[1] << 35 |
           (uint64_t)plan->pass << 38 | (uint64_t)plan->dim << 40;
}

static struct plan unpack(uint64_t state)
{
    return (struct plan){
        .middle = (uint32_t)state,
        .rising = { state >> 32 & 7, state >> 35 & 7 },
        .pass = state >> 38 & 1,
        .dim = state >> 40 & 3,
    };
}

/* ---- finding a path ---- */

/* Directions of the short ways. */
static uint32_t short_ways(const struct emu_torus *t, uint32_t from, uint32_t to)
{
    uint32_t rising = 0;

    for (uint32_t dim = 0; dim < EMU_TORUS_DIMS; dim++) {
        bool is_plus;

        (void)emu_torus_way(t, dim, emu_torus_coord(t, from)[dim], emu_torus_coord(t, to)[dim], &is_plus);
        rising |= (uint32_t)is_plus << dim;
    }
    return rising;
}

/* Dimensions in which two routers differ. */
static uint32_t moved_dims(const struct emu_torus *t, uint32_t from, uint32_t to)
{
    uint32_t moved = 0;

    for (uint32_t dim = 0; dim < EMU_TORUS_DIMS; dim++)
        moved |= (uint32_t)(emu_torus_coord(t, from)[dim] != emu_torus_coord(t, to)[dim]) << dim;
    return moved;
}

/* Walks one pass. False: something on it is down. Adds its hops. */
static bool pass_is_open(const struct emu_torus *t, const struct emu_fault_map *faults, uint32_t from, uint32_t to,
                         uint32_t rising, uint32_t *hops)
{
    const uint8_t *target = emu_torus_coord(t, to);
    uint32_t router = from;

    for (uint32_t dim = 0; dim < EMU_TORUS_DIMS; dim++) {
        uint32_t direction = emu_torus_direction(dim, rising >> dim & 1);

        while (emu_torus_coord(t, router)[dim] != target[dim]) {
            if (!emu_torus_is_open(t, faults, router, direction))
                return false;
            router = emu_torus_neighbour(t, router, direction);
            (*hops)++;
        }
    }
    return true;
}

/* Sets of long ways, fewest first: bit per dimension. */
static const uint8_t long_ways[8] = {
    0, X_BIT, Y_BIT, Z_BIT, X_BIT | Y_BIT, X_BIT | Z_BIT, Y_BIT | Z_BIT, X_BIT | Y_BIT | Z_BIT
};

/* One pass with short ways but for `turned`, a set of dimensions. */
static bool try_direct(const struct emu_torus *t, const struct emu_fault_map *faults, uint32_t src, uint32_t dst,
                       uint32_t turned, struct plan *plan_out)
{
    uint32_t hops = 0;

    if ((turned & ~moved_dims(t, src, dst)) != 0)
        return false;
    *plan_out = (struct plan){
        .middle = EMU_TORUS_NONE,
        .rising = { short_ways(t, src, dst) ^ turned },
        .dim = NO_DIM,
    };
    return pass_is_open(t, faults, src, dst, plan_out->rising[0], &hops);
}

/* Two passes, to a router in the middle and on; in each some dimensions go the long way. */
struct passes {
    uint32_t middle;
    uint32_t turned[2]; /* the dimensions that do, by pass */
};

/* A pass goes the long way only in dimensions that it moves in. Returns hops; 0: no way. */
static uint32_t try_passes(const struct emu_torus *t, const struct emu_fault_map *faults, uint32_t src, uint32_t dst,
                           struct passes passes, struct plan *plan_out)
{
    uint32_t middle = passes.middle;
    uint32_t hops = 0;

    if ((passes.turned[0] & ~moved_dims(t, src, middle)) != 0 || (passes.turned[1] & ~moved_dims(t, middle, dst)) != 0)
        return 0;
    *plan_out = (struct plan){
        .middle = middle,
        .rising = { short_ways(t, src, middle) ^ passes.turned[0], short_ways(t, middle, dst) ^ passes.turned[1] },
        .dim = NO_DIM,
    };
    if (!pass_is_open(t, faults, src, middle, plan_out->rising[0], &hops) ||
        !pass_is_open(t, faults, middle, dst, plan_out->rising[1], &hops))
        return 0;
    return hops;
}

/* (b) with one set of long ways: of all turns the one with the fewest hops. */
static bool try_turns(const struct emu_torus *t, const struct emu_fault_map *faults, uint32_t src, uint32_t dst,
                      uint32_t turned, struct plan *plan_out)
{
    uint32_t best = UINT32_MAX;

    for (uint32_t direction = 0; direction < EMU_TORUS_DIRECTIONS; direction++) {
        uint32_t aside = emu_torus_neighbour(t, src, direction);
        uint32_t before = emu_torus_neighbour(t, dst, direction);
        struct plan plan;
        uint32_t hops;

        hops = aside == EMU_TORUS_NONE ?
                   0 :
                   try_passes(t, faults, src, dst, (struct passes){ aside, { 0, turned } }, &plan);
        if (hops != 0 && hops < best) {
            best = hops;
            *plan_out = plan;
        }
        hops = before == EMU_TORUS_NONE ?
                   0 :
                   try_passes(t, faults, src, dst, (struct passes){ before, { turned, 0 } }, &plan);
        if (hops != 0 && hops < best) {
            best = hops;
            *plan_out = plan;
        }
    }
    return best != UINT32_MAX;
}

/* (c): the dimensions of `first` before all others, each set in rising order; no plan if that is X, Y, Z again. */
static bool try_order(const struct emu_torus *t, const struct emu_fault_map *faults, uint32_t src, uint32_t dst,
                      uint32_t first, struct plan *plan_out)
{
    const uint8_t *from = emu_torus_coord(t, src);
    const uint8_t *to = emu_torus_coord(t, dst);
    uint32_t middle = emu_torus_router(t, first & X_BIT ? to[0] : from[0], first & Y_BIT ? to[1] : from[1],
                                       first & Z_BIT ? to[2] : from[2]);

    if (middle == src || middle == dst)
        return false;
    for (uint32_t i = 0; i < 8; i++) {
        const struct passes passes = { middle, { long_ways[i] & first, long_ways[i] & ~first } };

        if (try_passes(t, faults, src, dst, passes, plan_out) != 0)
            return true;
    }
    return false;
}

static bool try_orders(const struct emu_torus *t, const struct emu_fault_map *faults, uint32_t src, uint32_t dst,
                       struct plan *plan_out)
{
    static const uint8_t firsts[] = { X_BIT | Z_BIT, Y_BIT, Y_BIT | Z_BIT, Z_BIT }; /* XZY YXZ YZX ZXY */
    uint32_t moved = moved_dims(t, src, dst);

    for (uint32_t i = 0; i < sizeof(firsts); i++) {
        if (try_order(t, faults, src, dst, firsts[i], plan_out))
            return true;
    }
    /* ZYX with one dimension to leave out: the higher of the two comes first. */
    if (moved == (X_BIT | Y_BIT))
        return try_order(t, faults, src, dst, Y_BIT, plan_out);
    return moved != (X_BIT | Y_BIT | Z_BIT) && try_order(t, faults, src, dst, Z_BIT, plan_out);
}

static bool find_plan(const struct emu_machine *m, const struct emu_fault_map *faults, uint32_t src, uint32_t dst,
                      struct plan *plan_out, bool *is_detour_out)
{
    const struct emu_torus *t = emu_torus_of(m);

    *is_detour_out = false;
    if (emu_fault_map_is_clean(faults)) {
        *plan_out = (struct plan){ .middle = EMU_TORUS_NONE, .rising = { short_ways(t, src, dst) }, .dim = NO_DIM };
        return true;
    }
    if (!emu_fault_map_router_up(faults, src) || !emu_fault_map_router_up(faults, dst))
        return false;
    if (try_direct(t, faults, src, dst, 0, plan_out))
        return true;
    *is_detour_out = true;
    for (uint32_t i = 1; i < 8; i++) {
        if (try_direct(t, faults, src, dst, long_ways[i], plan_out))
            return true;
    }
    for (uint32_t i = 0; i < 8; i++) {
        if (try_turns(t, faults, src, dst, long_ways[i], plan_out))
            return true;
    }
    return m->params.torus.order_retry && try_orders(t, faults, src, dst, plan_out);
}

static bool start_packet(const struct emu_route_view *view, struct emu_packet *p, uint32_t router)
{
    const struct emu_torus *t = emu_torus_of(view->machine);
    struct plan plan;
    bool is_detour;

    if (!emu_fault_map_node_up(view->faults, p->dst_nid) ||
        !find_plan(view->machine, view->faults, router, p->dst_nid / t->kind->nodes_per_router, &plan, &is_detour))
        return false;
    p->route_state = pack(&plan);
    if (is_detour)
        p->flags |= EMU_PACKET_DETOUR;
    return true;
}

/* ---- ways on ---- */

/* The one tile of an ordered packet, as a number below the count of those that are up. */
static uint32_t tile_of_hash(const struct emu_packet *p, uint32_t n_up)
{
    uint64_t key = p->mode == EMU_MODE_MIN_HASH || p->mode == EMU_MODE_NMIN_HASH ? p->order_key + 1 : 0;

    return (uint32_t)(emu_route_hash(p->src_nid, p->dst_nid, key) % n_up);
}

static bool is_ordered(const struct emu_packet *p)
{
    return p->mode == EMU_MODE_MIN_HASH || p->mode == EMU_MODE_NMIN_HASH || p->mode == EMU_MODE_IN_ORDER ||
           p->mode == EMU_MODE_DETERMINISTIC;
}

static uint32_t ways_on(const struct emu_route_view *view, const struct emu_packet *p, const struct emu_route_at *at,
                        struct emu_route_option options_out[EMU_ROUTE_OPTIONS_MAX])
{
    const struct emu_torus *t = emu_torus_of(view->machine);
    uint32_t dst = p->dst_nid / t->kind->nodes_per_router;
    struct plan plan = unpack(p->route_state);
    bool has_middle = plan.middle != EMU_TORUS_NONE;
    uint32_t in_dim = plan.dim;
    uint32_t target, dim, direction, first, vc, n;

    if (has_middle && plan.pass == 0 && at->router == plan.middle) {
        plan.pass = 1;
        in_dim = NO_DIM;
    }
    target = has_middle && plan.pass == 0 ? plan.middle : dst;
    if (at->router == target) {
        options_out[0] = (struct emu_route_option){
            .link = view->machine->n_nodes + p->dst_nid,
            .vc = p->traffic_class,
            .route_state = p->route_state,
        };
        return emu_fault_map_link_up(view->faults, options_out[0].link);
    }
    for (dim = 0; emu_torus_coord(t, at->router)[dim] == emu_torus_coord(t, target)[dim]; dim++)
        ;
    direction = emu_torus_direction(dim, plan.rising[plan.pass] >> dim & 1);
    vc = p->traffic_class * VC_CLASS + plan.pass * VC_PASS;
    if (emu_torus_crosses(t, at->router, direction) || (in_dim == dim && (at->in_vc & 1)))
        vc++;
    plan.dim = dim;
    first = emu_torus_link(t, at->router, direction, 0);
    n = 0;
    for (uint32_t number = 0; number < t->parallel[dim]; number++) {
        if (!emu_fault_map_link_up(view->faults, first + number))
            continue;
        options_out[n++] = (struct emu_route_option){
            .link = first + number,
            .vc = (uint8_t)vc,
            .route_state = pack(&plan),
        };
    }
    if (n > 1 && is_ordered(p)) {
        options_out[0] = options_out[tile_of_hash(p, n)];
        n = 1;
    }
    return n;
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

/* From one channel to all the tiles of a direction. */
static void visit_tiles(const struct emu_torus_relation *r, uint32_t link, uint32_t vc, uint32_t router,
                        uint32_t direction, uint32_t next_vc)
{
    uint32_t first = emu_torus_link(r->torus, router, direction, 0);

    for (uint32_t number = 0; number < r->torus->parallel[direction / 2]; number++) {
        if (emu_fault_map_link_up(r->faults, first + number))
            r->visit(r->ctx, link, vc, first + number, next_vc);
    }
}

/* Into a ring, at `router`, for all dimensions from `dim` on. `next_vc` is the first channel of the pair. */
static void visit_entries(const struct emu_torus_relation *r, uint32_t link, uint32_t vc, uint32_t router, uint32_t dim,
                          uint32_t next_vc)
{
    for (uint32_t direction = 2 * dim; direction < EMU_TORUS_DIRECTIONS; direction++) {
        if (emu_torus_has(r->torus, router, direction) && emu_torus_steps_max(r, direction) > 0)
            visit_tiles(r, link, vc, router, direction, next_vc + emu_torus_crosses(r->torus, router, direction));
    }
}

static void visit_exits(const struct emu_torus_relation *r, uint32_t link, uint32_t vc, uint32_t router,
                        uint32_t next_vc)
{
    uint32_t per_router = r->torus->kind->nodes_per_router;

    for (uint32_t i = 0; i < per_router; i++) {
        uint32_t out = r->n_nodes + router * per_router + i;

        if (emu_fault_map_link_up(r->faults, out))
            r->visit(r->ctx, link, vc, out, next_vc);
    }
}

/* All that a packet on this link, in this channel of its class, may wait for next. */
static void visit_channel(const struct emu_torus_relation *r, uint32_t link, uint32_t router, uint32_t direction,
                          uint32_t vc)
{
    const struct emu_torus *t = r->torus;
    uint32_t next = emu_torus_neighbour(t, router, direction);
    uint32_t base = vc / VC_CLASS * VC_CLASS;
    uint32_t pass = vc % VC_CLASS / VC_PASS;
    bool is_behind = vc & 1;

    if (!emu_torus_is_used(r, router, direction, is_behind))
        return;
    if (emu_torus_goes_on(r, next, direction, is_behind, &is_behind))
        visit_tiles(r, link, vc, next, direction, base + pass * VC_PASS + is_behind);
    visit_entries(r, link, vc, next, direction / 2 + 1, base + pass * VC_PASS);
    if (r->has_detours && pass == 0)
        visit_entries(r, link, vc, next, 0, base + VC_PASS);
    visit_exits(r, link, vc, next, vc / VC_CLASS);
}

static void visit_dependencies(const struct emu_machine *m, const struct emu_fault_map *faults,
                               void (*visit)(void *ctx, uint32_t link, uint32_t vc, uint32_t next_link,
                                             uint32_t next_vc),
                               void *ctx)
{
    const struct emu_torus *t = emu_torus_of(m);
    const struct emu_torus_relation r = { t, faults, m->n_nodes, !emu_fault_map_is_clean(faults), visit, ctx };
    uint32_t n_vcs = r.has_detours ? VC_CLASS : VC_PASS;

    for (uint32_t nid = 0; nid < m->n_nodes; nid++) {
        uint32_t router = nid / t->kind->nodes_per_router;

        for (uint32_t c = 0; emu_fault_map_link_up(faults, nid) && c < EMU_TRAFFIC_CLASSES; c++) {
            visit_entries(&r, nid, c, router, 0, c * VC_CLASS);
            visit_exits(&r, nid, c, router, c);
        }
    }
    for (uint32_t link = t->first_link; link < m->n_links; link++) {
        uint32_t router, direction, number;

        if (!emu_fault_map_link_up(faults, link))
            continue;
        emu_torus_link_parts(t, link, &router, &direction, &number);
        for (uint32_t c = 0; c < EMU_TRAFFIC_CLASSES; c++) {
            for (uint32_t vc = 0; vc < n_vcs; vc++)
                visit_channel(&r, link, router, direction, c * VC_CLASS + vc);
        }
    }
}

const struct emu_routing emu_gemini_routing = {
    .n_vcs = count_vcs,
    .vc = describe_vc,
    .start = start_packet,
    .options = ways_on,
    .dependencies = visit_dependencies,
};
