/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Look-ups about ports.
 */
#include "emunic/daemon/world/port_end.h"

#include "emunic/daemon/world/domain.h"
#include "emunic/daemon/world/flow_row.h"

void emu_port_end_add_flow(const struct emu_port_end *port, uint32_t node, struct emu_flow_counts *sum)
{
    /* What emunic did for the port, and what the port did itself. */
    for (uint32_t half = 0; half < 2; half++)
        emu_flow_add(sum, &port->view.flows[half * port->domain->n_nodes + node]);
}
