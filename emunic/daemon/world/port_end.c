/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Look-ups about ports.
 */
#include "emunic/daemon/world/port_end.h"

#include "emunic/daemon/world/domain.h"

void emu_port_end_add_flow(const struct emu_port_end *port, uint32_t node, struct emu_flow_counts *sum)
{
    /* What emunic did for the port, and what the port did itself. */
    for (uint32_t half = 0; half < 2; half++) {
        const struct emu_flow_counts *flow = &port->view.flows[half * port->domain->n_nodes + node];

        sum->operations += flow->operations;
        sum->payload_bytes += flow->payload_bytes;
        sum->request_packets += flow->request_packets;
        sum->request_flits += flow->request_flits;
        sum->response_packets += flow->response_packets;
        sum->response_flits += flow->response_flits;
        sum->errors += flow->errors;
    }
}
