/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What is broken in a machine: links, lanes, routers and nodes that are down. A value beside the constant machine;
 * routing and the simulator read it, emunic and experiments change it.
 *
 * Ordinary memory, no locks: one writer, and readers only while nobody writes.
 */
#ifndef EMUNIC_FABRIC_FAULT_MAP_H
#define EMUNIC_FABRIC_FAULT_MAP_H

#include <stdbool.h>
#include <stdint.h>

#include "emunic/fabric/machine.h"

struct emu_fault_map;

/* A machine without faults; it must outlive the map. -ENOMEM. */
int emu_fault_map_create(const struct emu_machine *m, struct emu_fault_map **map_out);
void emu_fault_map_destroy(struct emu_fault_map *map); /* NULL is fine */
int emu_fault_map_copy(const struct emu_fault_map *map, struct emu_fault_map **copy_out);

/* -ERANGE: no such thing in this machine; -ENOMEM. Nothing has changed then. A link is one direction; fail both for a
 * cable. */
int emu_fault_map_set_link(struct emu_fault_map *map, uint32_t link, bool is_up);
int emu_fault_map_set_router(struct emu_fault_map *map, uint32_t router, bool is_up);
int emu_fault_map_set_node(struct emu_fault_map *map, uint32_t nid, bool is_up);
/* Bit i set: lane i works; at least one. -EINVAL: a bit for a lane the link has not, or none. */
int emu_fault_map_set_lanes(struct emu_fault_map *map, uint32_t link, uint32_t lane_mask);

/* Itself, whatever its ends are: what emu_fault_map_set_link() said last. */
bool emu_fault_map_link_itself_up(const struct emu_fault_map *map, uint32_t link);

/* A link is up if it, both its routers, and for a NIC's link the node are up. NULL map: everything is up. */
bool emu_fault_map_link_up(const struct emu_fault_map *map, uint32_t link);
bool emu_fault_map_router_up(const struct emu_fault_map *map, uint32_t router);
bool emu_fault_map_node_up(const struct emu_fault_map *map, uint32_t nid);
/* All lanes: (1 << lanes) - 1; all bits for 32 lanes and more, and for a NULL map, which knows no machine. */
uint32_t emu_fault_map_lane_mask(const struct emu_fault_map *map, uint32_t link);

/* Nothing is down and every lane works: routing may take its short way. NULL: true. */
bool emu_fault_map_is_clean(const struct emu_fault_map *map);

#endif
