/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Flows are counters per source port and target node; links are loaded only when somebody asks. While nothing is broken
 * one set of routes holds for all of a flow. When the network changes, what was counted until then is expanded over the
 * routes of that time and kept per link (network.c), and each flow's count of that moment (`domain->flows.marked`) is
 * taken off from then on.
 */
#include "emunic/daemon/world/flows.h"

#include <errno.h>
#include <stdlib.h>

#include "emunic/base/log.h"
#include "emunic/daemon/world/domain.h"
#include "emunic/daemon/world/port_end.h"
#include "emunic/daemon/world/ways.h"
#include "emunic/fabric/detour.h"

struct emu_flow_counts emu_flow_between(const struct emu_domain *domain, uint32_t src, uint32_t dst)
{
    struct emu_flow_counts sum = domain->flows.past[src] ? domain->flows.past[src][dst] : (struct emu_flow_counts){ 0 };
    const struct emu_member *member;
    const struct emu_port_end *port;

    LIST_FOREACH(member, &domain->members, link) {
        LIST_FOREACH(port, &member->ports, member_link) {
            if (port->node_index == src)
                emu_port_end_add_flow(port, dst, &sum);
        }
    }
    return sum;
}

bool emu_flow_is_plausible(const struct emu_flow_counts *flow)
{
    return (flow->request_packets != 0 || flow->request_flits == 0) &&
           (flow->response_packets != 0 || flow->response_flits == 0);
}

/* What came since the mark. A client that winds its counters back has sent nothing. */
static struct emu_flow_counts since_mark(const struct emu_domain *domain, uint32_t src, uint32_t dst)
{
    struct emu_flow_counts flow = emu_flow_between(domain, src, dst);
    const struct emu_flow_counts *mark;

    if (!domain->flows.marked)
        return flow;
    mark = &domain->flows.marked[(size_t)src * domain->n_nodes + dst];
    if (flow.request_packets < mark->request_packets || flow.request_flits < mark->request_flits ||
        flow.response_packets < mark->response_packets || flow.response_flits < mark->response_flits)
        return (struct emu_flow_counts){ 0 };
    flow.request_packets -= mark->request_packets;
    flow.request_flits -= mark->request_flits;
    flow.response_packets -= mark->response_packets;
    flow.response_flits -= mark->response_flits;
    return flow;
}

static void load_flow(const struct emu_server *server, uint32_t src, uint32_t dst, const struct emu_flow_counts *flow,
                      struct emu_link_load *loads)
{
    const struct emu_flow both[2] = {
        { src, dst, EMU_FLOW_REQUEST, flow->request_packets, flow->request_flits },
        { dst, src, EMU_FLOW_RESPONSE, flow->response_packets, flow->response_flits },
    };

    if (emu_detour_load_add(server->machine, emu_network_faults(server), both, 2, EMU_LOAD_SPREAD, loads) < 0)
        emu_log(EMU_LOG_WARN, "flow nid %u to nid %u: counters make no sense, left out", src, dst);
}

static void load_domain(const struct emu_server *server, const struct emu_domain *domain, struct emu_link_load *loads)
{
    for (uint32_t s = 0; s < domain->n_nodes; s++) {
        for (uint32_t d = 0; d < domain->n_nodes; d++) {
            struct emu_flow_counts flow = since_mark(domain, s, d);

            if ((flow.request_packets > 0 || flow.response_packets > 0) && emu_flow_is_plausible(&flow))
                load_flow(server, emu_table_nodes(domain->table)[s].nid, emu_table_nodes(domain->table)[d].nid, &flow,
                          loads);
        }
    }
}

void emu_flows_add_loads(const struct emu_server *server, struct emu_link_load *loads)
{
    const struct emu_domain *domain;

    LIST_FOREACH(domain, &server->domains, link)
        load_domain(server, domain, loads);
}

int emu_flows_mark(struct emu_server *server, struct emu_link_load *loads)
{
    struct emu_domain *domain;

    LIST_FOREACH(domain, &server->domains, link) {
        if (!domain->flows.marked)
            domain->flows.marked = calloc((size_t)domain->n_nodes * domain->n_nodes, sizeof(*domain->flows.marked));
        if (!domain->flows.marked)
            return -ENOMEM;
    }
    emu_flows_add_loads(server, loads);
    LIST_FOREACH(domain, &server->domains, link) {
        for (uint32_t s = 0; s < domain->n_nodes; s++) {
            for (uint32_t d = 0; d < domain->n_nodes; d++)
                domain->flows.marked[(size_t)s * domain->n_nodes + d] = emu_flow_between(domain, s, d);
        }
    }
    return 0;
}
