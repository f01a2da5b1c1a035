/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Finding a way around what is broken.
 *
 * Three steps, the first that succeeds counts. The minimal routes of the pair are tried one after another, from the one
 * that the hash chooses: most faults leave one whole. Then the machine's own packet routing is asked as if a packet
 * were sent through an empty network, first in order, then adaptively, then by random intermediate routers. So what
 * cannot be routed here could not be on the machine either, even where wires are left (Gemini's dimension order, say).
 *
 * A packet takes the first way on that is up, with random choices seeded by the hash. A walk that has not arrived after
 * EMU_ROUTE_LINKS_MAX links is given up.
 * Source: spec/machines.md 2.2, 3.2, 4.2.
 */
#include "emunic/fabric/detour.h"

#include <errno.h>
#include <stdbool.h>

#include "emunic/fabric/link.h"
#include "emunic/fabric/sim/routing.h"
#include "emunic/fabric/topology.h"

#define MINIMAL_TRIES 64u
#define WALKS         8u  /* of each mode */
#define LOAD_PARTS    16u /* routes that a flow is divided over */

static bool is_whole(const struct emu_fault_map *faults, const struct emu_route *route)
{
    for (uint32_t i = 0; i < route->n_links; i++) {
        if (!emu_fault_map_link_up(faults, route->links[i]))
            return false;
    }
    return true;
}

/* One more link; false: there is none. `at` and the packet move on. */
static bool step(const struct emu_route_view *view, struct emu_packet *p, struct emu_route_at *at,
                 struct emu_route *route, bool *has_arrived_out)
{
    struct emu_route_option options[EMU_ROUTE_OPTIONS_MAX];
    uint32_t n = view->machine->topology->routing->options(view, p, at, options);
    const struct emu_route_option *best = NULL;
    struct emu_link link;

    for (uint32_t i = 0; i < n; i++) {
        if ((!best || options[i].rank < best->rank) && emu_fault_map_link_up(view->faults, options[i].link))
            best = &options[i];
    }
    if (!best || route->n_links == EMU_ROUTE_LINKS_MAX || emu_link_get(view->machine, best->link, &link) < 0)
        return false;
    route->links[route->n_links++] = best->link;
    p->route_state = best->route_state;
    p->flags |= best->flags;
    p->hops++;
    *at = (struct emu_route_at){ .router = link.to.index, .in_link = best->link, .in_vc = best->vc };
    *has_arrived_out = link.to.kind == EMU_END_NIC;
    return true;
}

/* The way of a packet, whose order key is the seed of all choices. */
static bool walk(const struct emu_machine *m, const struct emu_fault_map *faults, struct emu_packet p,
                 struct emu_route *route)
{
    struct emu_random random = { .state = p.order_key };
    const struct emu_route_view view = {
        .machine = m, .faults = faults, .random = &random, .near_load = emu_route_no_load, .far_load = emu_route_no_load
    };
    struct emu_route_at at = { .in_link = route->links[0], .is_entering = true };
    struct emu_link first;
    bool has_arrived = false;

    emu_link_get(m, route->links[0], &first);
    at.router = first.to.index;
    route->n_links = 1;
    if (m->topology->routing->start && !m->topology->routing->start(&view, &p, at.router))
        return false;
    while (!has_arrived) {
        if (!step(&view, &p, &at, route, &has_arrived))
            return false;
    }
    route->n_hops = route->n_links - 2;
    return true;
}

static bool find_detour(const struct emu_machine *m, const struct emu_fault_map *faults, uint32_t src_nid,
                        uint32_t dst_nid, uint64_t path_hash, struct emu_route *route)
{
    static const enum emu_route_mode modes[] = { EMU_MODE_IN_ORDER, EMU_MODE_ADAPTIVE_0, EMU_MODE_VALIANT };

    if (!m->topology->routing)
        return false;
    for (unsigned i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
        for (uint64_t k = 0; k < WALKS; k++) {
            const struct emu_packet p = { .src_nid = src_nid,
                                          .dst_nid = dst_nid,
                                          .units = 1,
                                          .mode = (uint8_t)modes[i],
                                          .order_key = path_hash + k };

            if (walk(m, faults, p, route))
                return true;
        }
    }
    return false;
}

int emu_detour_route(const struct emu_machine *m, const struct emu_fault_map *faults, uint32_t src_nid,
                     uint32_t dst_nid, uint64_t path_hash, struct emu_route *route_out)
{
    int r = emu_route_minimal(m, src_nid, dst_nid, path_hash, route_out);

    if (r < 0 || emu_fault_map_is_clean(faults))
        return r;
    /* The first link is the one's NIC, the last the other's: they are all that reaches it. */
    if (!emu_fault_map_link_up(faults, route_out->links[0]) ||
        !emu_fault_map_link_up(faults, route_out->links[route_out->n_links - 1]))
        return -EHOSTUNREACH;
    for (uint64_t i = 1; i < MINIMAL_TRIES && !is_whole(faults, route_out); i++)
        emu_route_minimal(m, src_nid, dst_nid, path_hash + i, route_out);
    if (is_whole(faults, route_out) || find_detour(m, faults, src_nid, dst_nid, path_hash, route_out))
        return 0;
    return -ENETUNREACH;
}

static void add_flow(const struct emu_machine *m, const struct emu_fault_map *faults, const struct emu_flow *flow,
                     uint32_t n_parts, struct emu_link_load *loads)
{
    const struct emu_share share = { .packets = flow->packets, .flits = flow->flits };
    uint64_t hash = emu_route_hash(flow->src_nid, flow->dst_nid, (uint64_t)flow->flow_class);
    struct emu_route route;

    for (uint32_t i = 0; i < n_parts; i++) {
        struct emu_share part = emu_share_part(share, i, n_parts);

        if (part.packets == 0 || emu_detour_route(m, faults, flow->src_nid, flow->dst_nid, hash + i, &route) < 0)
            continue;
        for (uint32_t k = 0; k < route.n_links; k++) {
            loads[route.links[k]].packets += part.packets;
            loads[route.links[k]].flits += part.flits;
        }
    }
}

int emu_detour_load_add(const struct emu_machine *m, const struct emu_fault_map *faults, const struct emu_flow *flows,
                        size_t n_flows, enum emu_load_mode mode, struct emu_link_load *loads)
{
    if (emu_fault_map_is_clean(faults))
        return emu_load_add(m, flows, n_flows, mode, loads);
    if (mode != EMU_LOAD_SPREAD && mode != EMU_LOAD_HASHED)
        return -EINVAL;
    for (size_t i = 0; i < n_flows; i++) {
        int r = emu_load_check(m, &flows[i]);

        if (r < 0)
            return r;
    }
    for (size_t i = 0; i < n_flows; i++)
        add_flow(m, faults, &flows[i], mode == EMU_LOAD_SPREAD ? LOAD_PARTS : 1, loads);
    return 0;
}
