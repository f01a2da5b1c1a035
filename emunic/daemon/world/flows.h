/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What went between the nodes of domains, and which links that loaded.
 */
#ifndef EMUNIC_DAEMON_WORLD_FLOWS_H
#define EMUNIC_DAEMON_WORLD_FLOWS_H

#include <stdbool.h>
#include <stdint.h>

#include "emunic/abi/flow.h"
#include "emunic/fabric/load.h"

struct emu_domain;
struct emu_server;

/* What went from one node of a domain to another (indices), ports that have gone included. */
typedef void emu_flow_fn(void *ctx, const struct emu_domain *domain, uint32_t src, uint32_t dst,
                         const struct emu_flow_counts *flow);

/*
 * Calls visit() for all that has anything, by source, then target. Costs a line for each port and node of the domain,
 * and a page for each 64 nodes that a port which has gone had sent to. -ENOMEM: for none.
 */
int emu_flows_visit(const struct emu_domain *domain, emu_flow_fn *visit, void *ctx);

/* Counters live in memory that the port's owner can write: a nonsense count must not break the report. */
bool emu_flow_is_plausible(const struct emu_flow_counts *flow);

/* Adds what has been sent since the network changed last, over the routes of today. Indexed by link id. -ENOMEM. */
int emu_flows_add_loads(const struct emu_server *server, struct emu_link_load *loads);

/*
 * The network is about to change: what has been sent since the last time is added to `loads` and marked. -ENOMEM: not
 * done.
 */
int emu_flows_mark(struct emu_server *server, struct emu_link_load *loads);

#endif
