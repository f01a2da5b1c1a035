/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One packet through the Dragonfly's routing on a quiet network, without time.
 */
#ifndef EMUNIC_EXPERIMENTS_XC_WALK_H
#define EMUNIC_EXPERIMENTS_XC_WALK_H

#include <stdbool.h>
#include <stdint.h>

#include "emunic/fabric/machine.h"
#include "emunic/fabric/sim/routing.h"

#define EMU_XC_HOPS_MAX 10

struct emu_xc_trip {
    uint32_t hops;
    uint32_t optical;
    bool has_arrived;
};

struct emu_xc_trip emu_xc_walk(const struct emu_machine *m, uint32_t src_nid, uint32_t dst_nid,
                               enum emu_route_mode mode, struct emu_random *random);

#endif
