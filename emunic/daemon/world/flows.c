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
#include <string.h>

#include "emunic/base/log.h"
#include "emunic/daemon/world/domain.h"
#include "emunic/daemon/world/port_end.h"
#include "emunic/daemon/world/ways.h"
#include "emunic/fabric/detour.h"

static bool is_empty(const struct emu_flow_counts *flow)
{
    return (flow->operations | flow->payload_bytes | flow->request_packets | flow->request_flits |
            flow->response_packets | flow->response_flits | flow->errors) == 0;
}

/* The flows from a node to all. False: no port has been there. */
static bool take_row(const struct emu_domain *domain, uint32_t src, struct emu_flow_counts *row)
{
    const size_t bytes = domain->n_nodes * sizeof(*row);
    bool is_used = domain->flows.past[src];
    const struct emu_member *member;
    const struct emu_port_end *port;

    if (is_used)
        memcpy(row, domain->flows.past[src], bytes);
    LIST_FOREACH(member, &domain->members, link) {
        LIST_FOREACH(port, &member->ports, member_link) {
            if (port->node_index != src)
                continue;
            if (!is_used)
                memset(row, 0, bytes);
            is_used = true;
            for (uint32_t dst = 0; dst < domain->n_nodes; dst++)
                emu_port_end_add_flow(port, dst, &row[dst]);
        }
    }
    return is_used;
}

int emu_flows_visit(const struct emu_domain *domain, emu_flow_fn *visit, void *ctx)
{
    struct emu_flow_counts *row = calloc(domain->n_nodes, sizeof(*row));

    if (!row)
        return -ENOMEM;
    for (uint32_t src = 0; src < domain->n_nodes; src++) {
        if (!take_row(domain, src, row))
            continue;
        for (uint32_t dst = 0; dst < domain->n_nodes; dst++) {
            if (!is_empty(&row[dst]))
                visit(ctx, domain, src, dst, &row[dst]);
        }
    }
    free(row);
    return 0;
}

bool emu_flow_is_plausible(const struct emu_flow_counts *flow)
{
    return (flow->request_packets != 0 || flow->request_flits == 0) &&
           (flow->response_packets != 0 || flow->response_flits == 0);
}

/* What came since the mark. A client that winds its counters back has sent nothing. */
static struct emu_flow_counts since_mark(const struct emu_domain *domain, uint32_t src, uint32_t dst,
                                         struct emu_flow_counts flow)
{
    const struct emu_flow_counts *mark;

    if (!domain->flows.marked || !domain->flows.marked[src])
        return flow;
    mark = &domain->flows.marked[src][dst];
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

struct loading {
    const struct emu_server *server;
    struct emu_link_load *loads;
};

static void load(void *ctx, const struct emu_domain *domain, uint32_t src, uint32_t dst,
                 const struct emu_flow_counts *whole)
{
    const struct loading *l = ctx;
    struct emu_flow_counts flow = since_mark(domain, src, dst, *whole);

    if ((flow.request_packets > 0 || flow.response_packets > 0) && emu_flow_is_plausible(&flow))
        load_flow(l->server, emu_table_nodes(domain->table)[src].nid, emu_table_nodes(domain->table)[dst].nid, &flow,
                  l->loads);
}

int emu_flows_add_loads(const struct emu_server *server, struct emu_link_load *loads)
{
    struct loading loading = { server, loads };
    const struct emu_domain *domain;
    int r = 0;

    LIST_FOREACH(domain, &server->domains, link) {
        if (r == 0)
            r = emu_flows_visit(domain, load, &loading);
    }
    return r;
}

/* Room for the marks of a source. */
static void make_room(void *ctx, const struct emu_domain *domain, uint32_t src, uint32_t dst,
                      const struct emu_flow_counts *flow)
{
    struct emu_flow_counts **row = &domain->flows.marked[src];
    int *r = ctx;

    (void)dst;
    (void)flow;
    if (!*row)
        *row = calloc(domain->n_nodes, sizeof(**row));
    if (!*row)
        *r = -ENOMEM;
}

/* Clients count meanwhile: what is added is what is marked. A source that has begun since room was made waits. */
static void load_and_mark(void *ctx, const struct emu_domain *domain, uint32_t src, uint32_t dst,
                          const struct emu_flow_counts *flow)
{
    if (!domain->flows.marked[src])
        return;
    load(ctx, domain, src, dst, flow);
    domain->flows.marked[src][dst] = *flow;
}

static int make_rooms(struct emu_domain *domain)
{
    int outcome = 0;
    int r;

    if (!domain->flows.marked)
        domain->flows.marked = calloc(domain->n_nodes, sizeof(*domain->flows.marked));
    if (!domain->flows.marked)
        return -ENOMEM;
    r = emu_flows_visit(domain, make_room, &outcome);
    return r < 0 ? r : outcome;
}

int emu_flows_mark(struct emu_server *server, struct emu_link_load *loads)
{
    struct loading loading = { server, loads };
    struct emu_domain *domain;
    int r = 0;

    LIST_FOREACH(domain, &server->domains, link) {
        if (r == 0)
            r = make_rooms(domain);
    }
    LIST_FOREACH(domain, &server->domains, link) {
        if (r == 0)
            r = emu_flows_visit(domain, load_and_mark, &loading);
    }
    return r;
}
