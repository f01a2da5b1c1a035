/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Routes and loads in a machine of which something is broken.
 */
#ifndef EMUNIC_FABRIC_DETOUR_H
#define EMUNIC_FABRIC_DETOUR_H

#include <stddef.h>
#include <stdint.h>

#include "emunic/fabric/fault_map.h"
#include "emunic/fabric/load.h"
#include "emunic/fabric/machine.h"
#include "emunic/fabric/route.h"

/**
 * A route that avoids what is down: a minimal one if any is whole, else one that the machine's own routing takes.
 *
 * @param[in] faults     NULL: nothing is down.
 * @param[in] path_hash  As emu_route_minimal(). The same arguments give the same route.
 * @retval 0             Found.
 * @retval -EHOSTUNREACH A node is down, or its router.
 * @retval -ENETUNREACH  Both ends are up, but the routing of this machine finds no way between them.
 * @retval -ERANGE       No such nid.
 */
int emu_detour_route(const struct emu_machine *m, const struct emu_fault_map *faults, uint32_t src_nid,
                     uint32_t dst_nid, uint64_t path_hash, struct emu_route *route_out);

/*
 * As emu_load_add(), over what is left of the machine. A flow without a way is left out: what it carried went before,
 * and the caller has counted that with the faults of that time.
 */
int emu_detour_load_add(const struct emu_machine *m, const struct emu_fault_map *faults, const struct emu_flow *flows,
                        size_t n_flows, enum emu_load_mode mode, struct emu_link_load *loads);

#endif
