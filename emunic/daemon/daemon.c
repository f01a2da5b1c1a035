/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The parts of emunic, in the order of their beginnings and rounds; ends go from last to first (core/part.h).
 *
 * Connections come first, because they bring the users, to whom everything is charged. Then come the sessions with
 * other hosts, because parts ask how many hosts there are, and the links last: nobody is heard before all parts are
 * there. What a port or a process has under way ends before what it is under way with: so commands come late. Errors
 * come last of what is told, so that an end is told before what follows from it.
 */
#include "emunic/daemon/daemon.h"

#include <assert.h>

#include "emunic/daemon/bind/bind.h"
#include "emunic/daemon/ce/ce_trees.h"
#include "emunic/daemon/commands/datapath.h"
#include "emunic/daemon/core/connection.h"
#include "emunic/daemon/core/domain_life.h"
#include "emunic/daemon/core/loop.h"
#include "emunic/daemon/core/port_life.h"
#include "emunic/daemon/datagrams/datagram_life.h"
#include "emunic/daemon/errors/error_stream.h"
#include "emunic/daemon/faults/fault_rules.h"
#include "emunic/daemon/injection/injection.h"
#include "emunic/daemon/jobs/host_domains.h"
#include "emunic/daemon/jobs/job_control.h"
#include "emunic/daemon/memory/memory_domain.h"
#include "emunic/daemon/movers/movers.h"
#include "emunic/daemon/msgq/msgq_members.h"
#include "emunic/daemon/network/network.h"
#include "emunic/daemon/orders/orders.h"
#include "emunic/daemon/peers/lists.h"
#include "emunic/daemon/peers/sessions.h"
#include "emunic/daemon/places/machine_places.h"
#include "emunic/daemon/portals/portals_end.h"
#include "emunic/daemon/reports/gather.h"
#include "emunic/daemon/resources/resources.h"
#include "emunic/daemon/virtual/virtual.h"

static const struct emu_part *const parts[] = {
    &emu_connections_part, &emu_server_part,   &emu_sessions_part,  &emu_movers_part,       &emu_virtual_part,
    &emu_bind_part,        &emu_places_part,   &emu_resources_part, &emu_domains_part,      &emu_lists_part,
    &emu_orders_part,      &emu_network_part,  &emu_jobs_part,      &emu_host_domains_part, &emu_injection_part,
    &emu_faults_part,      &emu_ce_part,       &emu_msgq_part,      &emu_datagrams_part,    &emu_memory_part,
    &emu_portals_part,     &emu_commands_part, &emu_reports_part,   &emu_errors_part,       &emu_ports_part,
    &emu_links_part,
};
static_assert(EMU_ROWS(parts) <= EMU_PARTS_MAX, "a table of all parts has room");

int emu_daemon_create(const struct emu_server_options *options, struct emu_server **server_out, char *err,
                      size_t err_len)
{
    struct emu_complaint why = { err, err_len };

    return emu_server_create(options, parts, EMU_ROWS(parts), &why, server_out);
}
