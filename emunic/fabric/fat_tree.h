/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What only the fat-tree XD1 has: spine switches.
 */
#ifndef EMUNIC_FABRIC_FAT_TREE_H
#define EMUNIC_FABRIC_FAT_TREE_H

#include <stdbool.h>
#include <stdint.h>

#include "emunic/fabric/machine.h"

struct emu_fat_tree_shape {
    uint32_t chassis;
    uint32_t fabrics;
    uint32_t spines;      /* of a fabric */
    uint32_t spine_links; /* between a chassis switch and a spine switch */
};

/* -EINVAL: not a fat tree. */
int emu_fat_tree_shape(const struct emu_machine *m, struct emu_fat_tree_shape *shape_out);

/* Inside the component. */
struct emu_chassis;
uint32_t emu_fat_tree_spine(const struct emu_chassis *c, uint32_t dst_nid); /* that a packet for a node goes by */
/* The parallel links between a chassis switch and a spine switch, one way. */
struct emu_fat_tree_way {
    uint32_t chassis;
    uint32_t fabric;
    uint32_t spine;
    bool goes_down;
};
uint32_t emu_fat_tree_link(const struct emu_chassis *c, const struct emu_fat_tree_way *way, uint32_t number);

#endif
