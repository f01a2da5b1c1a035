/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which ways the network has. Whether a pair can be reached is the machine's routing to say (fabric/detour.c); the
 * answer is kept until the next change.
 */
#include "emunic/daemon/world/ways.h"

#include "emunic/daemon/world/server.h"
#include "emunic/daemon/world/server_time.h"
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

uint64_t emu_network_changes(const struct emu_server *server)
{
    return ways_of(server) ? ways_of(server)->changes : 0;
}

uint64_t emu_network_next_ns(const struct emu_server *server)
{
    const struct emu_server_time *time = emu_server_virtual_time(server);
    const struct emu_ways *ways = ways_of(server);
    uint64_t next_ns = ways ? ways->schedule_ns : UINT64_MAX;
    uint64_t release_ns;

    if (!emu_network_is_quiesced(server))
        return next_ns;
    release_ns = ways->quiesced_at_ns + server->settings.quiesce_ns;
    if (time && time->n_under_way > 0 && release_ns <= emu_server_now_ns(server))
        return next_ns;
    return release_ns < next_ns ? release_ns : next_ns;
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
