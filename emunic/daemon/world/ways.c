/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which ways the network has. Whether a pair can be reached is the machine's routing to say (fabric/detour.c); the
 * answer is kept until the next change.
 */
#include "emunic/daemon/world/ways.h"

#include "emunic/daemon/world/server.h"
#include "emunic/fabric/detour.h"

static struct emu_ways *ways_of(const struct emu_server *server)
{
    return server->slots[EMU_SERVER_WAYS];
}

const struct emu_fault_map *emu_network_faults(const struct emu_server *server)
{
    return ways_of(server) ? ways_of(server)->faults : NULL;
}

bool emu_network_is_disturbed(const struct emu_server *server)
{
    return emu_network_is_quiesced(server) || !emu_fault_map_is_clean(emu_network_faults(server));
}

uint64_t emu_network_quiesces(const struct emu_server *server)
{
    return ways_of(server) ? ways_of(server)->quiesces : 0;
}

static bool has_way(const struct emu_server *server, uint32_t src_nid, uint32_t dst_nid)
{
    struct emu_route route;

    return emu_detour_route(server->machine, emu_network_faults(server), src_nid, dst_nid,
                            emu_route_hash(src_nid, dst_nid, 0), &route) == 0;
}

bool emu_network_reaches(struct emu_server *server, uint32_t src_nid, uint32_t dst_nid)
{
    struct emu_ways *ways = ways_of(server);
    struct emu_way *way;

    if (!ways || emu_fault_map_is_clean(ways->faults))
        return true;
    way = &ways->kept[emu_route_hash(src_nid, dst_nid, 0) % EMU_WAYS_KEPT];
    if (way->changes != ways->changes || way->src_nid != src_nid || way->dst_nid != dst_nid)
        *way = (struct emu_way){ .src_nid = src_nid,
                                 .dst_nid = dst_nid,
                                 .changes = ways->changes,
                                 .reaches = has_way(server, src_nid, dst_nid) && has_way(server, dst_nid, src_nid) };
    return way->reaches;
}
