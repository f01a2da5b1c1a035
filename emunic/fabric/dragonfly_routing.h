/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What only the packet routing of a dragonfly has: where a packet is on its way, for experiments and tests.
 */
#ifndef EMUNIC_FABRIC_DRAGONFLY_ROUTING_H
#define EMUNIC_FABRIC_DRAGONFLY_ROUTING_H

#include <stdbool.h>
#include <stdint.h>

#include "emunic/fabric/sim/routing.h"

#define EMU_DRAGONFLY_CLASS_VCS 4 /* virtual channels of a class of traffic; the second class has the next four */

extern const struct emu_routing emu_routing_dragonfly;

/* A packet that start() has sent by an intermediate router, and which; false: it goes directly, or has been there. */
bool emu_dragonfly_has_root(const struct emu_packet *p, uint32_t *router_out);

#endif
