/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Direct connect of the Cray XD1: every chassis switch is joined to every other of its fabric.
 *
 * Shape. chassis.c has the chassis. The external ports of a switch are divided evenly over the other chassis; what
 * remains goes in equal parts to the next and to the previous chassis of the ring 0, 1, 2 ... 0 (six chassis, twelve
 * ports: two links to each of the five others and a third to both neighbours, 36 cables). A port that fits nobody
 * stays empty. The numbers of links are the source's; who gets the third link is ours, and makes chassis pairs unequal.
 *
 * Links. ((chassis * fabrics + fabric) * ports + port), ports in use; first pair_links for each other chassis in rising
 * order, then ring_links to the next and ring_links to the previous one. Link l of one end is link l of the other.
 *
 * Minimal routes. Up one of the node's links, across if the chassis differ, down one of the other node's links; never
 * through a third chassis. A flow keeps to one fabric and, across, to flow_links of the links of its chassis pair:
 * those from number (src + dst) mod links on. spec/machines.md 7.2 has one link per flow; but one link (1 GB/s) cannot
 * carry the 1 342 MB/s that the source measures between chassis, so the machine file spreads flows over three, all
 * there are, as at the nodes. The path hash is read as a number whose digits choose up, external and down link.
 * Source: spec/machines.md 7.1, 7.2 (CUG05, wiring and rules [OUR]).
 */
#include "emunic/fabric/direct_connect.h"

#include <assert.h>
#include <errno.h>

#include "emunic/fabric/chassis.h"
#include "emunic/fabric/chassis_routing.h"

/* Number of `other` in a list of all but `self`, and back. */
static uint32_t peer_number(uint32_t self, uint32_t other)
{
    return other < self ? other : other - 1;
}

static uint32_t peer_of_number(uint32_t self, uint32_t number)
{
    return number < self ? number : number + 1;
}

static bool is_next(const struct emu_chassis *c, uint32_t chassis, uint32_t peer)
{
    return (chassis + 1) % c->chassis == peer;
}

/* Ports of a switch that have a link. */
static uint32_t used_ports(const struct emu_chassis *c)
{
    return c->pair_links * (c->chassis - 1) + 2 * c->ring_links;
}

uint32_t emu_direct_external_links(const struct emu_chassis *c, uint32_t chassis, uint32_t peer)
{
    if (chassis == peer)
        return 0;
    return c->pair_links + (is_next(c, chassis, peer) || is_next(c, peer, chassis) ? c->ring_links : 0);
}

uint32_t emu_direct_external_link(const struct emu_chassis *c, uint32_t chassis, uint32_t fabric, uint32_t peer,
                                  uint32_t number)
{
    uint32_t port;

    if (number < c->pair_links)
        port = peer_number(chassis, peer) * c->pair_links + number;
    else
        port =
            c->pair_links * (c->chassis - 1) + (is_next(c, chassis, peer) ? 0 : c->ring_links) + number - c->pair_links;
    return c->first_outer_link + (chassis * c->fabrics + fabric) * used_ports(c) + port;
}

uint32_t emu_direct_flow_links(const struct emu_chassis *c, uint32_t src_nid, uint32_t dst_nid, uint32_t fabric,
                               uint32_t links_out[EMU_DIRECT_FLOW_LINKS_MAX])
{
    uint32_t chassis = src_nid / c->nodes;
    uint32_t peer = dst_nid / c->nodes;
    uint32_t n_links = emu_direct_external_links(c, chassis, peer);
    uint32_t n = c->flow_links < n_links ? c->flow_links : n_links;

    for (uint32_t i = 0; i < n; i++)
        links_out[i] = emu_direct_external_link(c, chassis, fabric, peer, (src_nid + dst_nid + i) % n_links);
    return n;
}

/* ---- building ---- */

static int check_params(const struct emu_machine_params *params, const char **key_out, char *text, size_t text_len)
{
    const struct emu_chassis_params *p = &params->chassis;

    if (p->external_ports < p->chassis - 1) {
        *key_out = "topology.external_ports";
        (void)emu_text(text, text_len, "%u external links of a switch do not reach %u other chassis", p->external_ports,
                       p->chassis - 1);
        return -EINVAL;
    }
    return emu_chassis_check(p, key_out, text, text_len);
}

static int build_direct(struct emu_machine *m)
{
    const struct emu_chassis_params *p = &m->params.chassis;
    struct emu_chassis *c;
    int r;

    r = emu_chassis_create(p, &c);
    if (r < 0)
        return r;
    if (c->chassis > 1) {
        c->pair_links = p->external_ports / (c->chassis - 1);
        c->ring_links = c->chassis > 2 ? p->external_ports % (c->chassis - 1) / 2 : 0;
    }
    c->flow_links = p->flow_links;
    m->n_nodes = c->n_nodes;
    m->n_routers = c->n_nodes + c->n_switches;
    m->n_links = c->first_outer_link + c->n_switches * used_ports(c);
    m->state = c;
    return 0;
}

/* ---- links ---- */

/* An external link's id, taken apart. */
static void external_parts(const struct emu_chassis *c, uint32_t id, uint32_t *chassis_out, uint32_t *fabric_out,
                           uint32_t *peer_out, uint32_t *number_out)
{
    uint32_t index = id - c->first_outer_link;
    uint32_t port = index % used_ports(c);
    uint32_t chassis = index / used_ports(c) / c->fabrics;
    uint32_t n_even = c->pair_links * (c->chassis - 1);

    *fabric_out = index / used_ports(c) % c->fabrics;
    *chassis_out = chassis;
    if (port < n_even) {
        *peer_out = peer_of_number(chassis, port / c->pair_links);
        *number_out = port % c->pair_links;
    } else {
        bool goes_on = port - n_even < c->ring_links;

        *peer_out = (goes_on ? chassis + 1 : chassis + c->chassis - 1) % c->chassis;
        *number_out = c->pair_links + (port - n_even) % c->ring_links;
    }
}

static void describe_link(const struct emu_machine *m, uint32_t id, struct emu_link *link_out)
{
    const struct emu_chassis *c = emu_chassis_of(m);
    uint32_t chassis, fabric, peer, number;

    if (id < c->first_outer_link) {
        emu_chassis_link(m, id, link_out);
        return;
    }
    external_parts(c, id, &chassis, &fabric, &peer, &number);
    *link_out = (struct emu_link){
        .id = id,
        .link_class = EMU_LINK_EXTERNAL,
        .from = { EMU_END_ROUTER, emu_chassis_switch(c, chassis, fabric) },
        .to = { EMU_END_ROUTER, emu_chassis_switch(c, peer, fabric) },
        .number = number,
    };
}

static uint32_t reverse_of_link(const struct emu_machine *m, uint32_t id)
{
    const struct emu_chassis *c = emu_chassis_of(m);
    uint32_t chassis, fabric, peer, number;

    if (id < c->first_outer_link)
        return emu_chassis_link_reverse(m, id);
    external_parts(c, id, &chassis, &fabric, &peer, &number);
    return emu_direct_external_link(c, peer, fabric, chassis, number);
}

/* ---- minimal routes ---- */

static void route_minimally(const struct emu_machine *m, uint32_t src_nid, uint32_t dst_nid, uint64_t path_hash,
                            struct emu_route *route_out)
{
    const struct emu_chassis *c = emu_chassis_of(m);
    uint32_t fabric = emu_chassis_fabric(c, src_nid, dst_nid, 0);
    uint32_t links[EMU_DIRECT_FLOW_LINKS_MAX];

    route_out->n_links = 0;
    emu_chassis_append(route_out, src_nid);
    if (src_nid != dst_nid) {
        emu_chassis_append(route_out,
                           emu_chassis_up_link(c, src_nid, fabric, emu_chassis_digit(&path_hash, c->links_per_node)));
        if (src_nid / c->nodes != dst_nid / c->nodes) {
            uint32_t n = emu_direct_flow_links(c, src_nid, dst_nid, fabric, links);

            emu_chassis_append(route_out, links[emu_chassis_digit(&path_hash, n)]);
        }
        emu_chassis_append(route_out,
                           emu_chassis_down_link(c, dst_nid, fabric, emu_chassis_digit(&path_hash, c->links_per_node)));
    }
    emu_chassis_append(route_out, c->n_nodes + dst_nid);
    route_out->n_hops = route_out->n_links - 2;
}

static void spread_minimally(const struct emu_machine *m, uint32_t src_nid, uint32_t dst_nid, uint64_t path_hash,
                             struct emu_share share, const struct emu_share_visit *visit)
{
    const struct emu_chassis *c = emu_chassis_of(m);
    uint32_t fabric = emu_chassis_fabric(c, src_nid, dst_nid, 0);
    uint32_t links[EMU_DIRECT_FLOW_LINKS_MAX];
    uint32_t node_links[EMU_CHASSIS_NODE_LINKS_MAX];
    uint32_t out = c->n_nodes + dst_nid;
    uint32_t n;

    emu_chassis_spread(visit, share, &src_nid, 1, 0);
    if (src_nid != dst_nid) {
        n = emu_chassis_node_links(c, src_nid, fabric, false, node_links);
        emu_chassis_spread(visit, share, node_links, n, emu_chassis_digit(&path_hash, n));
        if (src_nid / c->nodes != dst_nid / c->nodes) {
            n = emu_direct_flow_links(c, src_nid, dst_nid, fabric, links);
            emu_chassis_spread(visit, share, links, n, emu_chassis_digit(&path_hash, n));
        }
        n = emu_chassis_node_links(c, dst_nid, fabric, true, node_links);
        emu_chassis_spread(visit, share, node_links, n, emu_chassis_digit(&path_hash, n));
    }
    emu_chassis_spread(visit, share, &out, 1, 0);
}

int emu_direct_pair_links(const struct emu_machine *m, uint32_t chassis, uint32_t peer, uint32_t *n_links_out)
{
    const struct emu_chassis *c = emu_chassis_of(m);

    if (m->topology != &emu_topology_direct)
        return -EINVAL;
    if (chassis >= c->chassis || peer >= c->chassis)
        return -ERANGE;
    *n_links_out = emu_direct_external_links(c, chassis, peer);
    return 0;
}

static const struct emu_param direct_params[] = {
    EMU_CHASSIS_COMMON_KEYS,
    { EMU_CHASSIS_KEY(flow_links), 1, EMU_DIRECT_FLOW_LINKS_MAX },
    EMU_LINK_KEYS("external", EMU_LINK_EXTERNAL, 31),
};

const struct emu_topology emu_topology_direct = {
    EMU_CHASSIS_COMMON_SLOTS,
    .kind = "direct",
    .params = direct_params,
    .n_params = sizeof(direct_params) / sizeof(direct_params[0]),
    .check = check_params,
    .build = build_direct,
    .link = describe_link,
    .link_reverse = reverse_of_link,
    .route_minimal = route_minimally,
    .spread_minimal = spread_minimally,
    .routing = &emu_routing_direct,
};
