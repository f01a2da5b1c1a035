/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which ways the network has: what is broken in it, and whether traffic rests. The network part changes it.
 */
#ifndef EMUNIC_DAEMON_WORLD_WAYS_H
#define EMUNIC_DAEMON_WORLD_WAYS_H

#include <stdbool.h>
#include <stdint.h>

#include "emunic/daemon/world/server.h"
#include "emunic/fabric/fault_map.h"
#include "emunic/fabric/load.h"

#define EMU_WAYS_KEPT 4096u /* verdicts kept; others are found again */

struct emu_way {
    uint32_t src_nid;
    uint32_t dst_nid;
    uint64_t changes; /* when it was found; 0 never */
    bool reaches;
};

struct emu_ways {
    struct emu_fault_map *faults; /* owned by the network part */
    uint64_t changes;             /* counts from 1 */
    uint64_t quiesces;
    uint64_t quiesced_at_ns; /* in the machine's time (server_time.h); 0: released */
    uint64_t schedule_ns;    /* when the next change of the schedule is due, likewise; UINT64_MAX: none */
    struct emu_way kept[EMU_WAYS_KEPT];
};

/* NULL: everything is whole, and always was. */
const struct emu_fault_map *emu_network_faults(const struct emu_server *server);
/* Is every domain routed for the network's sake? */
bool emu_network_is_disturbed(const struct emu_server *server);
/* Does a packet get from one node to the other, and its answer back? Nids. */
bool emu_network_reaches(struct emu_server *server, uint32_t src_nid, uint32_t dst_nid);
/* No new request may start. */
static inline bool emu_network_is_quiesced(const struct emu_server *server)
{
    const struct emu_ways *ways = server->slots[EMU_SERVER_WAYS];

    return ways && ways->quiesced_at_ns != 0;
}
/* Counts changes; 0: none yet. */
uint64_t emu_network_changes(const struct emu_server *server);
/*
 * When it may be released, or a change of the schedule is due, in the machine's time. A time that has passed: now.
 * UINT64_MAX: nothing by itself; in virtual time, nothing before what is under way has ended.
 */
uint64_t emu_network_next_ns(const struct emu_server *server);
/* How often it was. */
uint64_t emu_network_quiesces(const struct emu_server *server);

#endif
