/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Parked memory domains: registrations that their owner takes away from everybody, and gives back, without emunic.
 *
 * Registering and deregistering cost two wake-ups of emunic each. Programs register the same buffers again and again.
 * So emunic gives a registration a park, a word of the owner's segment that holds its generation (engine/park.h). The
 * owner stores 0 there, waits until nobody is inside who may have seen another value, and the memory is as if it had
 * been deregistered, but for its number. Storing a new generation brings it back, under a handle that is new: stale
 * ones go on to fail.
 *
 * Cost: one membarrier() to take away, a store to give back; no wake-up. Members and emunic mark when they are inside.
 * Where somebody stays there, or too many ports have to be looked at, nothing is parked and emunic deregisters as ever.
 *
 * Thread rule: as emu_port_command(), one at a time per port.
 */
#ifndef EMUNIC_CLIENT_PARK_H
#define EMUNIC_CLIENT_PARK_H

#include <stdbool.h>
#include <stdint.h>

struct emu_port;

#define EMU_PARK_PORTS_MAX 64u /* of the domain: each is looked at */

/* May memory of this port be taken away and given back without emunic, now? */
bool emu_park_is_open(const struct emu_port *port);

/*
 * Nobody reaches the memory any more when this returns true. False: emunic has to deregister it; until then nobody
 * new reaches it.
 */
bool emu_park_take_away(struct emu_port *port, uint32_t park);

/* Whoever has a handle of that generation reaches the memory. What is to be seen there is in place. */
void emu_park_give(struct emu_port *port, uint32_t park, uint16_t generation);

#endif
