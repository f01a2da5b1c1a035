/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Expanding flows into link loads.
 *
 * Model: in a quiet machine adaptive routing takes minimal paths only and prefers none of them, so SPREAD divides a
 * flow's packets evenly over the choices that the hardware has at each point: first over the equivalent ways
 * between groups, then over the parallel links of each local hop. HASHED is the in-order mode: one path for all.
 *
 * Guarantee: packets are whole and keep their flits. A share is divided by counting: part i of n gets the packets
 * from cut i to cut i + 1, where the cuts differ by one packet at most; the flits are dealt to the packets in turn, so
 * the parts sum to the share exactly. Remainders start at a part that depends on the flow's hash, or the first link
 * of each bundle would collect the odd packets of every flow.
 */
#include "emunic/fabric/load.h"

#include <errno.h>

#include "emunic/fabric/route.h"
#include "emunic/fabric/topology.h"

static uint64_t smaller(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

struct emu_share emu_share_part(struct emu_share share, uint32_t index, uint32_t parts)
{
    uint64_t each = share.packets / parts;
    uint64_t odd = share.packets % parts;
    uint64_t first = index * each + smaller(index, odd);
    struct emu_share part = { .packets = each + (index < odd) };

    if (part.packets > 0) {
        uint64_t odd_flits = share.flits % share.packets;

        part.flits = part.packets * (share.flits / share.packets) + smaller(first + part.packets, odd_flits) -
                     smaller(first, odd_flits);
    }
    return part;
}

static void add_share(void *ctx, uint32_t link, struct emu_share share)
{
    struct emu_link_load *loads = ctx;

    loads[link].packets += share.packets;
    loads[link].flits += share.flits;
}

int emu_load_check(const struct emu_machine *m, const struct emu_flow *flow)
{
    if (flow->flow_class != EMU_FLOW_REQUEST && flow->flow_class != EMU_FLOW_RESPONSE)
        return -EINVAL;
    if (flow->src_nid >= m->n_nodes || flow->dst_nid >= m->n_nodes)
        return -ERANGE;
    return flow->packets == 0 && flow->flits > 0 ? -EINVAL : 0;
}

static void add_on_hashed_route(const struct emu_machine *m, const struct emu_flow *flow, uint64_t hash,
                                struct emu_share share, struct emu_link_load *loads)
{
    struct emu_route route;

    m->topology->route_minimal(m, flow->src_nid, flow->dst_nid, hash, &route);
    for (uint32_t i = 0; i < route.n_links; i++)
        add_share(loads, route.links[i], share);
}

int emu_load_add(const struct emu_machine *m, const struct emu_flow *flows, size_t n_flows, enum emu_load_mode mode,
                 struct emu_link_load *loads)
{
    if (mode != EMU_LOAD_SPREAD && mode != EMU_LOAD_HASHED)
        return -EINVAL;
    for (size_t i = 0; i < n_flows; i++) {
        int r = emu_load_check(m, &flows[i]);

        if (r < 0)
            return r;
    }
    for (size_t i = 0; i < n_flows; i++) {
        const struct emu_share_visit visit = { .call = add_share, .ctx = loads };
        const struct emu_flow *flow = &flows[i];
        const struct emu_share share = { .packets = flow->packets, .flits = flow->flits };
        uint64_t hash = emu_route_hash(flow->src_nid, flow->dst_nid, (uint64_t)flow->flow_class);

        if (share.packets == 0)
            continue;
        if (mode == EMU_LOAD_HASHED)
            add_on_hashed_route(m, flow, hash, share, loads);
        else
            m->topology->spread_minimal(m, flow->src_nid, flow->dst_nid, hash, share, &visit);
    }
    return 0;
}
