/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Packets within a chassis of the XD1, and the choice among parallel links: see chassis_routing.h.
 */
#include "emunic/fabric/chassis_routing.h"

#include "emunic/fabric/route.h"

uint32_t emu_chassis_live(const struct emu_fault_map *faults, uint32_t *links, uint32_t n_links)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < n_links; i++) {
        if (emu_fault_map_link_up(faults, links[i]))
            links[n++] = links[i];
    }
    return n;
}

uint32_t emu_chassis_live_node_links(const struct emu_chassis *c, const struct emu_fault_map *faults, uint32_t nid,
                                     uint32_t fabric, bool goes_down, uint32_t links_out[EMU_CHASSIS_LINKS_MAX])
{
    return emu_chassis_live(faults, links_out, emu_chassis_node_links(c, nid, fabric, goes_down, links_out));
}

static bool is_ordered(const struct emu_packet *p)
{
    switch (p->mode) {
    case EMU_MODE_MIN_HASH:
    case EMU_MODE_NMIN_HASH:
    case EMU_MODE_IN_ORDER:
    case EMU_MODE_DETERMINISTIC:
        return true;
    default:
        return false;
    }
}

static bool is_hashed(const struct emu_packet *p)
{
    return p->mode == EMU_MODE_MIN_HASH || p->mode == EMU_MODE_NMIN_HASH;
}

uint64_t emu_chassis_key(const struct emu_packet *p)
{
    return is_hashed(p) ? p->order_key : 0;
}

uint32_t emu_chassis_n_vcs(const struct emu_machine *m, enum emu_link_class link_class)
{
    (void)m;
    (void)link_class;
    return EMU_CHASSIS_VCS * EMU_TRAFFIC_CLASSES;
}

void emu_chassis_vc(const struct emu_machine *m, enum emu_link_class link_class, uint32_t vc,
                    struct emu_vc_info *info_out)
{
    (void)link_class;
    *info_out = (struct emu_vc_info){
        .capacity_units = m->params.router.vc_units,
        .traffic_class = (uint8_t)(vc / EMU_CHASSIS_VCS),
        .is_escape = true,
    };
}

uint32_t emu_chassis_offer(const struct emu_packet *p, const uint32_t *links, uint32_t n_links,
                           struct emu_chassis_vcs vcs, struct emu_route_option option,
                           struct emu_route_option options_out[EMU_ROUTE_OPTIONS_MAX])
{
    uint32_t n = 0;

    if (n_links > 0 && is_ordered(p)) {
        uint64_t hash = emu_route_hash(p->src_nid, p->dst_nid, emu_chassis_key(p));

        option.link = links[hash % n_links];
        option.vc = (uint8_t)(vcs.first + (hash >> 32) % vcs.n);
        options_out[0] = option;
        return 1;
    }
    for (uint32_t v = 0; v < vcs.n; v++) {
        for (uint32_t i = 0; i < n_links && n < EMU_ROUTE_OPTIONS_MAX; i++) {
            option.link = links[i];
            option.vc = (uint8_t)(vcs.first + v);
            options_out[n++] = option;
        }
    }
    return n;
}

uint32_t emu_chassis_offer_at_node(const struct emu_route_view *view, const struct emu_packet *p,
                                   const struct emu_route_at *at, uint32_t fabric,
                                   struct emu_route_option options_out[EMU_ROUTE_OPTIONS_MAX])
{
    const struct emu_chassis *c = emu_chassis_of(view->machine);
    uint32_t links[EMU_CHASSIS_LINKS_MAX];
    uint32_t n;

    if (at->router == p->dst_nid) {
        links[0] = c->n_nodes + p->dst_nid;
        n = emu_chassis_live(view->faults, links, 1);
    } else {
        n = emu_chassis_live_node_links(c, view->faults, at->router, fabric, false, links);
    }
    return emu_chassis_offer(p, links, n, emu_chassis_class_vcs(p->traffic_class),
                             (struct emu_route_option){ .route_state = p->route_state }, options_out);
}

uint32_t emu_chassis_offer_down(const struct emu_route_view *view, const struct emu_packet *p, uint32_t fabric,
                                struct emu_route_option options_out[EMU_ROUTE_OPTIONS_MAX])
{
    const struct emu_chassis *c = emu_chassis_of(view->machine);
    uint32_t links[EMU_CHASSIS_LINKS_MAX];
    uint32_t n = emu_chassis_live_node_links(c, view->faults, p->dst_nid, fabric, true, links);

    return emu_chassis_offer(p, links, n, emu_chassis_class_vcs(p->traffic_class),
                             (struct emu_route_option){ .route_state = p->route_state }, options_out);
}

/* ---- dependencies ---- */

void emu_chassis_visit(const struct emu_chassis_walk *w, uint32_t link, struct emu_chassis_vcs vcs, uint32_t next,
                       struct emu_chassis_vcs next_vcs)
{
    for (uint32_t i = 0; i < vcs.n; i++) {
        for (uint32_t j = 0; j < next_vcs.n; j++)
            w->visit(w->ctx, link, vcs.first + i, next, next_vcs.first + j);
    }
}

/* Of NIC links, and of links down to nodes. */
static void visit_ends(const struct emu_chassis_walk *w)
{
    const struct emu_chassis *c = w->c;
    const struct emu_chassis_vcs vcs = emu_chassis_class_vcs(w->traffic_class);
    uint32_t links[EMU_CHASSIS_LINKS_MAX];

    for (uint32_t nid = 0; nid < c->n_nodes; nid++) {
        uint32_t out = c->n_nodes + nid;
        bool is_out_up = emu_fault_map_link_up(w->faults, out);

        if (!emu_fault_map_link_up(w->faults, nid))
            continue; /* then nobody is there to receive, either */
        if (is_out_up)
            emu_chassis_visit(w, nid, vcs, out, vcs);
        for (uint32_t fabric = 0; fabric < c->fabrics; fabric++) {
            uint32_t n = emu_chassis_live_node_links(c, w->faults, nid, fabric, false, links);

            for (uint32_t i = 0; i < n; i++)
                emu_chassis_visit(w, nid, vcs, links[i], vcs);
            n = emu_chassis_live_node_links(c, w->faults, nid, fabric, true, links);
            for (uint32_t i = 0; i < n && is_out_up; i++)
                emu_chassis_visit(w, links[i], vcs, out, vcs);
        }
    }
}

void emu_chassis_list_dependencies(const struct emu_machine *m, const struct emu_fault_map *faults,
                                   emu_chassis_visit_switch *visit_switch, emu_dependency_visit *visit, void *ctx)
{
    struct emu_chassis_walk w = { .c = emu_chassis_of(m), .faults = faults, .visit = visit, .ctx = ctx };

    for (w.traffic_class = 0; w.traffic_class < EMU_TRAFFIC_CLASSES; w.traffic_class++) {
        visit_ends(&w);
        for (w.chassis = 0; w.chassis < w.c->chassis; w.chassis++) {
            for (w.fabric = 0; w.fabric < w.c->fabrics; w.fabric++)
                visit_switch(&w);
        }
    }
}

void emu_chassis_visit_down(const struct emu_chassis_walk *w, uint32_t link, struct emu_chassis_vcs vcs)
{
    uint32_t links[EMU_CHASSIS_LINKS_MAX];

    for (uint32_t i = 0; i < w->c->nodes; i++) {
        uint32_t nid = w->chassis * w->c->nodes + i;
        uint32_t n = emu_chassis_live_node_links(w->c, w->faults, nid, w->fabric, true, links);

        for (uint32_t j = 0; j < n; j++)
            emu_chassis_visit(w, link, vcs, links[j], emu_chassis_class_vcs(w->traffic_class));
    }
}
