/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What is broken in the network of a running machine, and what that does to traffic. What others ask about it is in
 * world/ways.h.
 */
#ifndef EMUNIC_DAEMON_NETWORK_NETWORK_H
#define EMUNIC_DAEMON_NETWORK_NETWORK_H

#include <stdint.h>

#include "emunic/abi/control.h"
#include "emunic/daemon/core/part.h"
#include "emunic/fabric/load.h"

extern const struct emu_part emu_network_part;

/*
 * Breaks or mends something, now or later, on this host alone: for a server that begins so. -EINVAL; -ERANGE no such
 * thing; -ENOSPC too many wait; -ENOMEM.
 */
int emu_network_change(struct emu_server *server, const struct emu_msg_network *change);
/* What links carried before the last change (by id), or NULL. */
const struct emu_link_load *emu_network_past_loads(const struct emu_server *server);
/* Faults that a link has had. */
uint32_t emu_network_link_errors(const struct emu_server *server, uint32_t link);

#endif
