/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Routes as the outside sees them: check the arguments, ask the topology. The rules of a machine's routing are in its
 * topology's file (dragonfly.c).
 */
#include "emunic/fabric/route.h"

#include <errno.h>

#include "emunic/fabric/random.h"
#include "emunic/fabric/topology.h"

int emu_route_minimal(const struct emu_machine *m, uint32_t src_nid, uint32_t dst_nid, uint64_t path_hash,
                      struct emu_route *route_out)
{
    if (src_nid >= m->n_nodes || dst_nid >= m->n_nodes)
        return -ERANGE;
    m->topology->route_minimal(m, src_nid, dst_nid, path_hash, route_out);
    return 0;
}

uint64_t emu_route_hash(uint32_t src_nid, uint32_t dst_nid, uint64_t salt)
{
    return emu_random_mix(emu_random_mix((uint64_t)src_nid << 32 | dst_nid) ^ emu_random_mix(salt + 1));
}
