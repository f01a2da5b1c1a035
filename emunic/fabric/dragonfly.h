/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What only a dragonfly machine has: its shape and its global cables.
 */
#ifndef EMUNIC_FABRIC_DRAGONFLY_H
#define EMUNIC_FABRIC_DRAGONFLY_H

#include <stdint.h>

#include "emunic/fabric/machine.h"

#define EMU_XC_LINKS_PER_CABLE 4

struct emu_dragonfly_shape {
    uint32_t groups;
    uint32_t chassis;      /* per group, but the last */
    uint32_t last_chassis; /* in the last group */
    uint32_t blades;       /* per chassis */
    uint32_t nodes_per_blade;
    uint32_t cables_per_bundle;    /* between each two groups; 0 with one group */
    uint32_t connectors_per_group; /* places for global cables; in the last group perhaps fewer */
    uint32_t n_cables;             /* global cables of the machine */
    uint32_t cabinet_columns;
};

/* Where one end of a global cable is plugged in. */
struct emu_cable_end {
    uint32_t group;
    uint32_t chassis;
    uint32_t pair;      /* blades 2 x pair and 2 x pair + 1 */
    uint32_t connector; /* of the pair */
};

/* -EINVAL: not a dragonfly. */
int emu_dragonfly_shape(const struct emu_machine *m, struct emu_dragonfly_shape *shape_out);

/* Cable 0 .. cables_per_bundle - 1 of a bundle; near_out is in `group`. -EINVAL: not a dragonfly; -ERANGE. */
int emu_dragonfly_cable(const struct emu_machine *m, uint32_t group, uint32_t peer, uint32_t cable,
                        struct emu_cable_end *near_out, struct emu_cable_end *far_out);

#endif
