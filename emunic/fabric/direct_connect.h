/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What only a direct-connect XD1 has: links between chassis switches.
 */
#ifndef EMUNIC_FABRIC_DIRECT_CONNECT_H
#define EMUNIC_FABRIC_DIRECT_CONNECT_H

#include <stdint.h>

#include "emunic/fabric/machine.h"

#define EMU_XD1_PROCESSORS_PER_NODE 2 /* the machine counts nodes */

/* Links between two chassis of one fabric, 0 for a chassis and itself. -EINVAL: not direct connect; -ERANGE. */
int emu_direct_pair_links(const struct emu_machine *m, uint32_t chassis, uint32_t peer, uint32_t *n_links_out);

/* ---- inside the component ---- */

struct emu_chassis;

/* How many links go from a chassis switch to a peer's. */
uint32_t emu_direct_external_links(const struct emu_chassis *c, uint32_t chassis, uint32_t peer);

/* One of them; `number` counts from 0. */
uint32_t emu_direct_external_link(const struct emu_chassis *c, uint32_t chassis, uint32_t fabric, uint32_t peer,
                                  uint32_t number);

#define EMU_DIRECT_FLOW_LINKS_MAX 8

/* Those that a flow may use. Returns how many. */
uint32_t emu_direct_flow_links(const struct emu_chassis *c, uint32_t src_nid, uint32_t dst_nid, uint32_t fabric,
                               uint32_t links_out[EMU_DIRECT_FLOW_LINKS_MAX]);

#endif
