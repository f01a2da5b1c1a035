/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Inside the component: what the packet routings of both shapes of the XD1 share.
 *
 * Parallel links and channels are offered with equal rank, all links that are up, and the router takes the one with
 * most room; packets of a flow may pass each other there. The modes that promise an order (in order, hashed) get one of
 * them, by a hash of the pair and, hashed modes, of the order key.
 *
 * Each class of traffic has four channels on every link: a channel gives one packet at a time to one output, and a
 * chassis switch is non-blocking (spec/machines.md 7.1).
 */
#ifndef EMUNIC_FABRIC_CHASSIS_ROUTING_H
#define EMUNIC_FABRIC_CHASSIS_ROUTING_H

#include "emunic/fabric/chassis.h"
#include "emunic/fabric/sim/routing.h"

#define EMU_CHASSIS_LINKS_MAX EMU_ROUTE_OPTIONS_MAX               /* parallel links that are offered */
#define EMU_CHASSIS_VCS       (EMU_VCS_MAX / EMU_TRAFFIC_CLASSES) /* of a class */

/* Channels of a link, one as good as the other. */
struct emu_chassis_vcs {
    uint8_t first;
    uint8_t n;
};

static inline struct emu_chassis_vcs emu_chassis_class_vcs(uint32_t traffic_class)
{
    return (struct emu_chassis_vcs){ (uint8_t)(traffic_class * EMU_CHASSIS_VCS), EMU_CHASSIS_VCS };
}

/* Rows of struct emu_routing. */
uint32_t emu_chassis_n_vcs(const struct emu_machine *m, enum emu_link_class link_class);
void emu_chassis_vc(const struct emu_machine *m, enum emu_link_class link_class, uint32_t vc,
                    struct emu_vc_info *info_out);

/* The key of a packet for emu_chassis_fabric(). */
uint64_t emu_chassis_key(const struct emu_packet *p);

extern const struct emu_routing emu_routing_direct;
extern const struct emu_routing emu_routing_fat_tree;

typedef void emu_dependency_visit(void *ctx, uint32_t link, uint32_t vc, uint32_t next_link, uint32_t next_vc);

/* Leaves those that are up; returns how many. */
uint32_t emu_chassis_live(const struct emu_fault_map *faults, uint32_t *links, uint32_t n_links);

/* A node's links of a fabric that are up. */
uint32_t emu_chassis_live_node_links(const struct emu_chassis *c, const struct emu_fault_map *faults, uint32_t nid,
                                     uint32_t fabric, bool goes_down, uint32_t links_out[EMU_CHASSIS_LINKS_MAX]);

/* Offers links that are up, all of them or the packet's own, with flags and route_state of `option`. Returns how many
 * options. */
uint32_t emu_chassis_offer(const struct emu_packet *p, const uint32_t *links, uint32_t n_links,
                           struct emu_chassis_vcs vcs, struct emu_route_option option,
                           struct emu_route_option options_out[EMU_ROUTE_OPTIONS_MAX]);

/* At a node's router: out to its NIC, or up into the fabric. */
uint32_t emu_chassis_offer_at_node(const struct emu_route_view *view, const struct emu_packet *p,
                                   const struct emu_route_at *at, uint32_t fabric,
                                   struct emu_route_option options_out[EMU_ROUTE_OPTIONS_MAX]);

/* At the destination's chassis switch: down to its node. */
uint32_t emu_chassis_offer_down(const struct emu_route_view *view, const struct emu_packet *p, uint32_t fabric,
                                struct emu_route_option options_out[EMU_ROUTE_OPTIONS_MAX]);

/* A walk over the dependencies of a traffic class: it stands at one chassis switch. */
struct emu_chassis_walk {
    const struct emu_chassis *c;
    const struct emu_fault_map *faults;
    uint32_t chassis;
    uint32_t fabric;
    uint32_t traffic_class;
    emu_dependency_visit *visit;
    void *ctx;
};

/* All channels of the one on all of the other. */
void emu_chassis_visit(const struct emu_chassis_walk *w, uint32_t link, struct emu_chassis_vcs vcs, uint32_t next,
                       struct emu_chassis_vcs next_vcs);

/* The dependencies of the links into the chassis switch. */
typedef void emu_chassis_visit_switch(const struct emu_chassis_walk *w);
/* All dependencies: of NIC links and links down to nodes, and what visit_switch tells of each chassis switch. */
void emu_chassis_list_dependencies(const struct emu_machine *m, const struct emu_fault_map *faults,
                                   emu_chassis_visit_switch *visit_switch, emu_dependency_visit *visit, void *ctx);
/* Of a link into the chassis switch, on the links down to the nodes of its chassis. */
void emu_chassis_visit_down(const struct emu_chassis_walk *w, uint32_t link, struct emu_chassis_vcs vcs);

#endif
