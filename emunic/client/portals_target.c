/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Targets of Portals requests: where a process is, and how its interface and its memory are reached from here.
 *
 * What was found out about a target (its window, segment, port) is kept per peer, until another port has its slot. A
 * target whose interface or memory we cannot reach is left to emunic.
 */
#include "emunic/client/portals_port.h"

#include <sys/mman.h>

#include "emunic/client/direct.h"
#include "emunic/client/portals_port_inner.h"
#include "emunic/engine/transaction.h"

void emu_portals_forget_peer(struct emu_portals_peer *peer)
{
    if (peer->ni)
        munmap(peer->ni, sizeof(*peer->ni));
    *peer = (struct emu_portals_peer){ .generation = 0 };
}

static bool is_that(const struct emu_portals *p, uint32_t port, uint32_t nid, uint32_t pid)
{
    const struct emu_table_port *entry = &emu_table_ports(p->port.table)[port];

    return atomic_load_explicit(&entry->state, memory_order_acquire) == EMU_PORT_LIVE &&
           atomic_load_explicit(&entry->ptl_id, memory_order_acquire) == pid + 1 && entry->nid == nid;
}

/* Slot of the port with that address, or EMU_PTL_NONE. */
static uint32_t find_port(struct emu_portals *p, uint32_t address, uint32_t pid, uint32_t *node_index_out)
{
    struct emu_portals_known *known = &p->known[(address * 31 + pid) % EMU_PORTALS_KNOWN];
    uint32_t node;
    uint32_t nid;

    if (known->generation != 0 && known->nid == address && known->pid == pid &&
        emu_portals_is_live(p, known->port, known->generation)) {
        *node_index_out = known->node_index;
        return known->port;
    }
    node = emu_table_node_index(p->port.table, address);
    if (node >= p->port.table->n_nodes)
        return EMU_PTL_NONE;
    *node_index_out = node;
    if (emu_table_nodes(p->port.table)[node].host != EMU_NODE_HERE)
        return EMU_PTL_NONE;
    nid = emu_table_nodes(p->port.table)[node].nid;
    for (uint32_t i = 0; i < p->port.table->n_ports; i++) {
        if (is_that(p, i, nid, pid)) {
            *known = (struct emu_portals_known){ address, pid, i, emu_table_ports(p->port.table)[i].generation, node };
            return i;
        }
    }
    return EMU_PTL_NONE;
}

/* Runs once per peer. */
static void map_peer(struct emu_portals *p, struct emu_portals_peer *peer, uint32_t port)
{
    struct emu_msg msg = { .type = EMU_MSG_PORTALS_PEER, .portals = { .port = port } };
    struct emu_fds fds;

    peer->has_none = true;
    if (emu_session_request(&p->port.session, &msg, NULL, 0, &fds) < 0)
        return;
    if (msg.result == 0 && msg.portals.generation == peer->generation &&
        emu_portals_map_part(&fds, msg.portals.length_bytes, &peer->ni) == 0)
        peer->has_none = false;
    emu_fds_close(&fds);
}

static bool is_elsewhere(const struct emu_portals *p, uint32_t address)
{
    uint32_t node = emu_table_node_index(p->port.table, address);

    return node < p->port.table->n_nodes && emu_table_nodes(p->port.table)[node].host != EMU_NODE_HERE;
}

enum emu_portals_found emu_portals_find_target(struct emu_portals *p, const struct emu_ptl_send *send,
                                               struct emu_portals_target *t)
{
    struct emu_portals_peer *peer;

    t->port = find_port(p, send->nid, send->pid, &t->node_index);
    if (t->port == EMU_PTL_NONE)
        return is_elsewhere(p, send->nid) ? EMU_PORTALS_NOT_REACHED : EMU_PORTALS_NOWHERE;
    t->generation = emu_table_ports(p->port.table)[t->port].generation;
    t->peer = NULL;
    if (t->port == p->port.index) {
        t->ni = p->ni;
        return EMU_PORTALS_HERE;
    }
    t->peer = peer = &p->peers[t->port];
    if (peer->generation != t->generation) {
        emu_portals_forget_peer(peer);
        peer->generation = t->generation;
    }
    if (!peer->ni && !peer->has_none)
        map_peer(p, peer, t->port);
    t->ni = peer->ni;
    return t->ni ? EMU_PORTALS_HERE : EMU_PORTALS_NOT_REACHED;
}

struct emu_segment *emu_portals_segment_of(struct emu_portals *p, const struct emu_portals_target *t)
{
    if (!t->peer)
        return p->port.segment;
    if (!t->peer->segment)
        t->peer->segment = emu_direct_segment_of(p->port.direct, t->port);
    return t->peer->segment;
}

/* The memory domain of a peer's descriptor, remembered from the last time. False: it is not mapped here. */
static bool has_lane(struct emu_portals *p, const struct emu_portals_target *t, const struct emu_ptl_md *md)
{
    struct emu_portals_peer *peer = t->peer;

    if (peer->mdh == md->mdh && peer->mdh_generation == md->mdh_generation && emu_lane_is_of_now(&peer->lane) &&
        emu_lane_is_whole(&peer->lane))
        return true;
    peer->mdh = 0;
    if (md->mdh >= EMU_MD_COUNT || md->mdh_generation > EMU_MD_GENERATION_MAX ||
        !emu_lane_find_domain(p->port.direct, t->node_index, (uint16_t)md->mdh, (uint16_t)md->mdh_generation,
                              &peer->lane) ||
        !peer->lane.window || peer->lane.is_read_only || peer->lane.port != &emu_table_ports(p->port.table)[t->port] ||
        !emu_lane_is_of_now(&peer->lane) || !emu_lane_is_whole(&peer->lane))
        return false;
    peer->mdh = md->mdh;
    peer->mdh_generation = md->mdh_generation;
    return true;
}

int emu_portals_reach(struct emu_portals *p, const struct emu_portals_target *t, const struct emu_ptl_md *md,
                      struct emu_memory *mem_out)
{
    if (!t->peer) {
        *mem_out = emu_memory_self();
        return EMU_STATUS_OK;
    }
    if (md->mdh != 0 && has_lane(p, t, md)) {
        const struct emu_lane *lane = &t->peer->lane;

        *mem_out = emu_memory_map(lane->window, lane->first, lane->end - lane->first);
        mem_out->broken = lane->broken;
        return EMU_STATUS_OK;
    }
    if (md->mdh != 0 && md->mdh < EMU_MD_COUNT) {
        const struct emu_table_md *entry = &emu_table_mds(p->port.table, t->node_index)[md->mdh];

        if (atomic_load_explicit(&entry->state, memory_order_acquire) != 0 && entry->port == t->port &&
            entry->generation == md->mdh_generation &&
            emu_direct_reach(p->port.direct, entry, mem_out) == EMU_STATUS_OK)
            return EMU_STATUS_OK;
    }
    return emu_direct_reach_private(p->port.direct, t->port, mem_out);
}
