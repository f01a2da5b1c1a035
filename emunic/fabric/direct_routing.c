/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Packet routing of the direct-connect XD1.
 *
 * Ways. Up to the chassis switch of the flow's fabric, across one external link if the chassis differ, down. Fabric and
 * external links of a flow are chosen as direct_connect.c says; hashed modes spread over the fabrics by their order
 * key.
 *
 * Faults. The source is silent; ours, in this order: another link of the same step; another external link of the same
 * pair of chassis; the other fabric; a third chassis in between, the first in rising order that is open. A packet on
 * its way can no longer change the fabric.
 *
 * Virtual channels, of the four of a class: node and NIC links use all, external links two, and the two others behind a
 * third chassis. Up, external, external behind, down: nothing waits in a circle.
 * route_state: fabric, and in bits 8 and up the third chassis + 1, or 0.
 * Source: spec/machines.md 7.2 ([OUR]).
 */
#include "emunic/fabric/chassis_routing.h"
#include "emunic/fabric/direct_connect.h"

enum { VIA_SHIFT = 8, FABRIC_MASK = 0xff };

/* Of an external link, before and behind a third chassis. */
static struct emu_chassis_vcs external_vcs(uint32_t traffic_class, bool is_behind)
{
    return (struct emu_chassis_vcs){ (uint8_t)(traffic_class * EMU_CHASSIS_VCS + is_behind * EMU_CHASSIS_VCS / 2),
                                     EMU_CHASSIS_VCS / 2 };
}

/* All links of a pair of chassis that are up. */
static uint32_t live_pair_links(const struct emu_chassis *c, const struct emu_fault_map *faults, uint32_t chassis,
                                uint32_t peer, uint32_t fabric, uint32_t links_out[EMU_CHASSIS_LINKS_MAX])
{
    uint32_t n = emu_direct_external_links(c, chassis, peer);

    if (n > EMU_CHASSIS_LINKS_MAX)
        n = EMU_CHASSIS_LINKS_MAX;
    for (uint32_t i = 0; i < n; i++)
        links_out[i] = emu_direct_external_link(c, chassis, fabric, peer, i);
    return emu_chassis_live(faults, links_out, n);
}

/* The links that a flow takes to a chassis: its own, or any if these are all dead. */
static uint32_t live_flow_links(const struct emu_chassis *c, const struct emu_fault_map *faults,
                                const struct emu_packet *p, uint32_t chassis, uint32_t peer,
                                uint32_t links_out[EMU_CHASSIS_LINKS_MAX])
{
    uint32_t fabric = p->route_state & FABRIC_MASK;
    uint32_t n = 0;

    if (chassis == p->src_nid / c->nodes && peer == p->dst_nid / c->nodes) {
        n = emu_direct_flow_links(c, p->src_nid, p->dst_nid, fabric, links_out);
        n = emu_chassis_live(faults, links_out, n);
    }
    return n > 0 ? n : live_pair_links(c, faults, chassis, peer, fabric, links_out);
}

static bool is_joined(const struct emu_chassis *c, const struct emu_fault_map *faults, uint32_t chassis, uint32_t peer,
                      uint32_t fabric)
{
    uint32_t links[EMU_CHASSIS_LINKS_MAX];

    return chassis == peer || live_pair_links(c, faults, chassis, peer, fabric, links) > 0;
}

/* Do both nodes still have a link into the fabric? */
static bool is_attached(const struct emu_chassis *c, const struct emu_fault_map *faults, const struct emu_packet *p,
                        uint32_t fabric)
{
    uint32_t links[EMU_CHASSIS_LINKS_MAX];

    return emu_chassis_live_node_links(c, faults, p->src_nid, fabric, false, links) > 0 &&
           emu_chassis_live_node_links(c, faults, p->dst_nid, fabric, true, links) > 0;
}

/* The chassis to go by between two that are not joined; false: there is none. */
static bool find_via(const struct emu_chassis *c, const struct emu_fault_map *faults, uint32_t chassis, uint32_t peer,
                     uint32_t fabric, uint32_t *via_out)
{
    for (uint32_t via = 0; via < c->chassis; via++) {
        if (via != chassis && via != peer && is_joined(c, faults, chassis, via, fabric) &&
            is_joined(c, faults, via, peer, fabric)) {
            *via_out = via;
            return true;
        }
    }
    return false;
}

static bool start_packet(const struct emu_route_view *view, struct emu_packet *p, uint32_t router)
{
    const struct emu_chassis *c = emu_chassis_of(view->machine);
    const struct emu_fault_map *faults = view->faults;
    uint32_t wanted = emu_chassis_fabric(c, p->src_nid, p->dst_nid, emu_chassis_key(p));
    uint32_t from = p->src_nid / c->nodes;
    uint32_t to = p->dst_nid / c->nodes;

    (void)router;
    p->route_state = wanted;
    if (emu_fault_map_is_clean(faults))
        return true;
    if (!emu_fault_map_link_up(faults, c->n_nodes + p->dst_nid))
        return false;
    if (p->src_nid == p->dst_nid)
        return true;
    for (uint32_t i = 0; i < c->fabrics; i++) {
        uint32_t fabric = (wanted + i) % c->fabrics;

        if (is_attached(c, faults, p, fabric) && is_joined(c, faults, from, to, fabric)) {
            p->route_state = fabric;
            return true;
        }
    }
    for (uint32_t i = 0; i < c->fabrics; i++) {
        uint32_t fabric = (wanted + i) % c->fabrics;
        uint32_t via;

        if (is_attached(c, faults, p, fabric) && find_via(c, faults, from, to, fabric, &via)) {
            p->route_state = fabric | (uint64_t)(via + 1) << VIA_SHIFT;
            p->flags |= EMU_PACKET_DETOUR;
            return true;
        }
    }
    return false;
}

static uint32_t offer_across(const struct emu_route_view *view, const struct emu_packet *p, uint32_t chassis,
                             uint32_t fabric, struct emu_route_option options_out[EMU_ROUTE_OPTIONS_MAX])
{
    const struct emu_chassis *c = emu_chassis_of(view->machine);
    uint32_t to = p->dst_nid / c->nodes;
    uint32_t via = (uint32_t)(p->route_state >> VIA_SHIFT);
    bool is_first = chassis == p->src_nid / c->nodes;
    uint32_t target = is_first && via != 0 ? via - 1 : to;
    uint64_t state = p->route_state;
    uint32_t links[EMU_CHASSIS_LINKS_MAX];
    uint32_t n = live_flow_links(c, view->faults, p, chassis, target, links);

    if (n == 0 && is_first && find_via(c, view->faults, chassis, to, fabric, &via)) {
        state = fabric | (uint64_t)(via + 1) << VIA_SHIFT;
        n = live_flow_links(c, view->faults, p, chassis, via, links);
    }
    return emu_chassis_offer(
        p, links, n, external_vcs(p->traffic_class, !is_first),
        (struct emu_route_option){ .flags = state >> VIA_SHIFT != 0 ? EMU_PACKET_DETOUR : 0, .route_state = state },
        options_out);
}

static uint32_t offer_ways(const struct emu_route_view *view, const struct emu_packet *p, const struct emu_route_at *at,
                           struct emu_route_option options_out[EMU_ROUTE_OPTIONS_MAX])
{
    const struct emu_chassis *c = emu_chassis_of(view->machine);
    uint32_t fabric = p->route_state & FABRIC_MASK;
    uint32_t chassis;

    if (at->router < c->n_nodes)
        return emu_chassis_offer_at_node(view, p, at, fabric, options_out);
    chassis = emu_chassis_of_switch(c, at->router);
    if (chassis == p->dst_nid / c->nodes)
        return emu_chassis_offer_down(view, p, fabric, options_out);
    return offer_across(view, p, chassis, fabric, options_out);
}

/* ---- dependencies ---- */

/* A packet in the chassis switch may ask for these external links, except those back to `not_to`. */
static void visit_external(const struct emu_chassis_walk *w, uint32_t link, struct emu_chassis_vcs vcs, uint32_t not_to,
                           struct emu_chassis_vcs next_vcs)
{
    uint32_t links[EMU_CHASSIS_LINKS_MAX];

    for (uint32_t peer = 0; peer < w->c->chassis; peer++) {
        uint32_t n;

        if (peer == w->chassis || peer == not_to)
            continue;
        n = live_pair_links(w->c, w->faults, w->chassis, peer, w->fabric, links);
        for (uint32_t i = 0; i < n; i++)
            emu_chassis_visit(w, link, vcs, links[i], next_vcs);
    }
}

static void visit_chassis(const struct emu_chassis_walk *w)
{
    const struct emu_chassis *c = w->c;
    const struct emu_chassis_vcs node_vcs = emu_chassis_class_vcs(w->traffic_class);
    const struct emu_chassis_vcs before = external_vcs(w->traffic_class, false);
    const struct emu_chassis_vcs behind = external_vcs(w->traffic_class, true);
    bool has_detours = !emu_fault_map_is_clean(w->faults);
    uint32_t links[EMU_CHASSIS_LINKS_MAX];
    uint32_t n;

    for (uint32_t i = 0; i < c->nodes; i++) {
        n = emu_chassis_live_node_links(c, w->faults, w->chassis * c->nodes + i, w->fabric, false, links);
        for (uint32_t j = 0; j < n; j++) {
            emu_chassis_visit_down(w, links[j], node_vcs);
            visit_external(w, links[j], node_vcs, w->chassis, before);
        }
    }
    for (uint32_t peer = 0; peer < c->chassis; peer++) {
        n = peer == w->chassis ? 0 : live_pair_links(c, w->faults, peer, w->chassis, w->fabric, links);
        for (uint32_t j = 0; j < n; j++) {
            emu_chassis_visit_down(w, links[j], before);
            if (!has_detours)
                continue;
            visit_external(w, links[j], before, peer, behind);
            emu_chassis_visit_down(w, links[j], behind);
        }
    }
}

static void list_dependencies(const struct emu_machine *m, const struct emu_fault_map *faults,
                              emu_dependency_visit *visit, void *ctx)
{
    emu_chassis_list_dependencies(m, faults, visit_chassis, visit, ctx);
}

const struct emu_routing emu_routing_direct = {
    .n_vcs = emu_chassis_n_vcs,
    .vc = emu_chassis_vc,
    .start = start_packet,
    .options = offer_ways,
    .dependencies = list_dependencies,
};
