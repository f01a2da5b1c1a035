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
#include "emunic/daemon/world/flow_row.h"
#include "emunic/daemon/world/port_end.h"
#include "emunic/daemon/world/ways.h"
#include "emunic/fabric/detour.h"

/* What the ports of a node count, by target. False, `row` untouched: no port is there. */
static bool take_ports(const struct emu_domain *domain, uint32_t src, struct emu_flow_counts *row)
{
    const struct emu_member *member;
    const struct emu_port_end *port;
    bool is_used = false;

    LIST_FOREACH(member, &domain->members, link) {
        LIST_FOREACH(port, &member->ports, member_link) {
            if (port->node_index != src)
                continue;
            if (!is_used)
                memset(row, 0, domain->n_nodes * sizeof(*row));
            is_used = true;
            for (uint32_t dst = 0; dst < domain->n_nodes; dst++)
                emu_port_end_add_flow(port, dst, &row[dst]);
        }
    }
    return is_used;
}

/* To the targets of one page: the sum of both parts, which begin at the first of them. NULL: nothing there. */
static void visit_page(const struct emu_domain *domain, uint32_t src, uint32_t first,
                       const struct emu_flow_counts *const parts[2], emu_flow_fn *visit, void *ctx)
{
    for (uint32_t i = 0; i < EMU_FLOW_PAGE && first + i < domain->n_nodes; i++) {
        struct emu_flow_counts flow = { 0 };

        for (uint32_t k = 0; k < 2; k++) {
            if (parts[k])
                emu_flow_add(&flow, &parts[k][i]);
        }
        if (!emu_flow_is_empty(&flow))
            visit(ctx, domain, src, first + i, &flow);
    }
}

int emu_flows_visit(const struct emu_domain *domain, emu_flow_fn *visit, void *ctx)
{
    struct emu_flow_counts *row = calloc(domain->n_nodes, sizeof(*row));

    if (!row)
        return -ENOMEM;
    for (uint32_t src = 0; src < domain->n_nodes; src++) {
        bool has_ports = take_ports(domain, src, row);

        for (uint32_t dst = 0; dst < domain->n_nodes; dst += EMU_FLOW_PAGE) {
            const struct emu_flow_counts *const parts[2] = {
                has_ports ? &row[dst] : NULL,
                emu_flow_row_page(&domain->flows.past[src], dst),
            };

            if (parts[0] || parts[1])
                visit_page(domain, src, dst, parts, visit, ctx);
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
    const struct emu_flow_counts *mark =
        domain->flows.marked ? emu_flow_row_page(&domain->flows.marked[src], dst) : NULL;

    if (!mark)
        return flow;
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

/* Room for the mark of a flow. */
static void make_room(void *ctx, const struct emu_domain *domain, uint32_t src, uint32_t dst,
                      const struct emu_flow_counts *flow)
{
    int *r = ctx;

    (void)flow;
    if (!emu_flow_row_at(&domain->flows.marked[src], domain->n_nodes, dst, true))
        *r = -ENOMEM;
}

/* Clients count meanwhile: what is added is what is marked. A flow that has begun since room was made may wait. */
static void load_and_mark(void *ctx, const struct emu_domain *domain, uint32_t src, uint32_t dst,
                          const struct emu_flow_counts *flow)
{
    struct emu_flow_counts *mark = emu_flow_row_at(&domain->flows.marked[src], domain->n_nodes, dst, false);

    if (!mark)
        return;
    load(ctx, domain, src, dst, flow);
    *mark = *flow;
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
