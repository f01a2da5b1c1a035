/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Packet routing of the fat-tree XD1.
 *
 * Ways. Up to the chassis switch of the flow's fabric; if the chassis differ, up to the spine that the destination's
 * nid gives, down to its chassis; down to the node. Hashed modes spread over the fabrics by their order key.
 *
 * Faults. The source is silent; ours, in this order: another link of the same step; the next spine that both chassis
 * still reach; the other fabric. A packet that is not yet on its way up to a spine can still change it.
 *
 * Virtual channels. The four of a class on every link: up*, then down*, so nothing waits in a circle (Leiserson).
 * route_state: fabric, and in bits 8 and up the spine.
 * Source: spec/machines.md 7.2 ([OUR]).
 */
#include "emunic/fabric/chassis_routing.h"
#include "emunic/fabric/fat_tree.h"

#define NO_SPINE UINT32_MAX

enum { SPINE_SHIFT = 8, FABRIC_MASK = 0xff };

static struct emu_fat_tree_way up_way(uint32_t chassis, uint32_t fabric, uint32_t spine)
{
    return (struct emu_fat_tree_way){ .chassis = chassis, .fabric = fabric, .spine = spine };
}

static struct emu_fat_tree_way down_way(uint32_t chassis, uint32_t fabric, uint32_t spine)
{
    return (struct emu_fat_tree_way){ .chassis = chassis, .fabric = fabric, .spine = spine, .goes_down = true };
}

/* Links between a chassis switch and a spine that are up. */
static uint32_t live_spine_links(const struct emu_chassis *c, const struct emu_fault_map *faults,
                                 struct emu_fat_tree_way way, uint32_t links_out[EMU_CHASSIS_LINKS_MAX])
{
    uint32_t n = c->spine_links < EMU_CHASSIS_LINKS_MAX ? c->spine_links : EMU_CHASSIS_LINKS_MAX;

    for (uint32_t i = 0; i < n; i++)
        links_out[i] = emu_fat_tree_link(c, &way, i);
    return emu_chassis_live(faults, links_out, n);
}

/* The first spine, from the wanted one on, by which the chassis reach each other; NO_SPINE: there is none. */
static uint32_t find_spine(const struct emu_chassis *c, const struct emu_fault_map *faults, uint32_t from, uint32_t to,
                           uint32_t fabric, uint32_t wanted)
{
    uint32_t links[EMU_CHASSIS_LINKS_MAX];

    for (uint32_t i = 0; i < c->spines; i++) {
        uint32_t spine = (wanted + i) % c->spines;

        if (live_spine_links(c, faults, up_way(from, fabric, spine), links) > 0 &&
            live_spine_links(c, faults, down_way(to, fabric, spine), links) > 0)
            return spine;
    }
    return NO_SPINE;
}

static bool start_packet(const struct emu_route_view *view, struct emu_packet *p, uint32_t router)
{
    const struct emu_chassis *c = emu_chassis_of(view->machine);
    const struct emu_fault_map *faults = view->faults;
    uint32_t wanted = emu_chassis_fabric(c, p->src_nid, p->dst_nid, emu_chassis_key(p));
    uint32_t spine = emu_fat_tree_spine(c, p->dst_nid);
    uint32_t from = p->src_nid / c->nodes;
    uint32_t to = p->dst_nid / c->nodes;

    (void)router;
    p->route_state = wanted | (uint64_t)spine << SPINE_SHIFT;
    if (emu_fault_map_is_clean(faults))
        return true;
    if (!emu_fault_map_link_up(faults, c->n_nodes + p->dst_nid))
        return false;
    if (p->src_nid == p->dst_nid)
        return true;
    for (uint32_t i = 0; i < c->fabrics; i++) {
        uint32_t fabric = (wanted + i) % c->fabrics;
        uint32_t links[EMU_CHASSIS_LINKS_MAX];
        uint32_t found = spine;

        if (emu_chassis_live_node_links(c, faults, p->src_nid, fabric, false, links) == 0 ||
            emu_chassis_live_node_links(c, faults, p->dst_nid, fabric, true, links) == 0)
            continue;
        if (from != to)
            found = find_spine(c, faults, from, to, fabric, spine);
        if (found == NO_SPINE)
            continue;
        if (fabric != wanted || found != spine)
            p->flags |= EMU_PACKET_DETOUR;
        p->route_state = fabric | (uint64_t)found << SPINE_SHIFT;
        return true;
    }
    return false;
}

static uint32_t offer_up(const struct emu_route_view *view, const struct emu_packet *p, uint32_t chassis,
                         uint32_t fabric, struct emu_route_option options_out[EMU_ROUTE_OPTIONS_MAX])
{
    const struct emu_chassis *c = emu_chassis_of(view->machine);
    uint32_t wanted = (uint32_t)(p->route_state >> SPINE_SHIFT);
    uint32_t spine = find_spine(c, view->faults, chassis, p->dst_nid / c->nodes, fabric, wanted);
    uint32_t links[EMU_CHASSIS_LINKS_MAX];
    uint32_t n;

    if (spine == NO_SPINE)
        return 0;
    n = live_spine_links(c, view->faults, up_way(chassis, fabric, spine), links);
    return emu_chassis_offer(p, links, n, emu_chassis_class_vcs(p->traffic_class),
                             (struct emu_route_option){ .flags = spine != wanted ? EMU_PACKET_DETOUR : 0,
                                                        .route_state = fabric | (uint64_t)spine << SPINE_SHIFT },
                             options_out);
}

static uint32_t offer_ways(const struct emu_route_view *view, const struct emu_packet *p, const struct emu_route_at *at,
                           struct emu_route_option options_out[EMU_ROUTE_OPTIONS_MAX])
{
    const struct emu_chassis *c = emu_chassis_of(view->machine);
    uint32_t fabric = p->route_state & FABRIC_MASK;
    uint32_t to = p->dst_nid / c->nodes;
    uint32_t links[EMU_CHASSIS_LINKS_MAX];
    uint32_t n;

    if (at->router < c->n_nodes)
        return emu_chassis_offer_at_node(view, p, at, fabric, options_out);
    if (at->router >= c->n_nodes + c->n_switches) {
        uint32_t spine = (at->router - c->n_nodes - c->n_switches) / c->fabrics;

        n = live_spine_links(c, view->faults, down_way(to, fabric, spine), links);
        return emu_chassis_offer(p, links, n, emu_chassis_class_vcs(p->traffic_class),
                                 (struct emu_route_option){ .route_state = p->route_state }, options_out);
    }
    if (emu_chassis_of_switch(c, at->router) == to)
        return emu_chassis_offer_down(view, p, fabric, options_out);
    return offer_up(view, p, emu_chassis_of_switch(c, at->router), fabric, options_out);
}

/* ---- dependencies ---- */

static void visit_leaf(const struct emu_chassis_walk *w)
{
    const struct emu_chassis *c = w->c;
    const struct emu_chassis_vcs vcs = emu_chassis_class_vcs(w->traffic_class);
    uint32_t from_nodes[EMU_CHASSIS_LINKS_MAX];
    uint32_t up[EMU_CHASSIS_LINKS_MAX];
    uint32_t down[EMU_CHASSIS_LINKS_MAX];

    for (uint32_t i = 0; i < c->nodes; i++) {
        uint32_t nid = w->chassis * c->nodes + i;
        uint32_t n = emu_chassis_live_node_links(c, w->faults, nid, w->fabric, false, from_nodes);

        for (uint32_t j = 0; j < n; j++) {
            emu_chassis_visit_down(w, from_nodes[j], vcs);
            for (uint32_t spine = 0; spine < c->spines; spine++) {
                uint32_t n_up = live_spine_links(c, w->faults, up_way(w->chassis, w->fabric, spine), up);

                for (uint32_t l = 0; l < n_up; l++)
                    emu_chassis_visit(w, from_nodes[j], vcs, up[l], vcs);
            }
        }
    }
    for (uint32_t spine = 0; spine < c->spines; spine++) {
        uint32_t n_up = live_spine_links(c, w->faults, up_way(w->chassis, w->fabric, spine), up);
        uint32_t n_down = live_spine_links(c, w->faults, down_way(w->chassis, w->fabric, spine), down);

        for (uint32_t j = 0; j < n_down; j++)
            emu_chassis_visit_down(w, down[j], vcs);
        for (uint32_t to = 0; to < c->chassis; to++) {
            uint32_t n_over =
                to == w->chassis ? 0 : live_spine_links(c, w->faults, down_way(to, w->fabric, spine), down);

            for (uint32_t j = 0; j < n_up; j++) {
                for (uint32_t l = 0; l < n_over; l++)
                    emu_chassis_visit(w, up[j], vcs, down[l], vcs);
            }
        }
    }
}

static void list_dependencies(const struct emu_machine *m, const struct emu_fault_map *faults,
                              emu_dependency_visit *visit, void *ctx)
{
    emu_chassis_list_dependencies(m, faults, visit_leaf, visit, ctx);
}

const struct emu_routing emu_routing_fat_tree = {
    .n_vcs = emu_chassis_n_vcs,
    .vc = emu_chassis_vc,
    .start = start_packet,
    .options = offer_ways,
    .dependencies = list_dependencies,
};
