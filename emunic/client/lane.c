/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Lanes: finding them, and what an operation does away from its short path.
 *
 * A lane is found once for a memory handle and then used until the table says otherwise. Finding one may ask emunic for
 * descriptors of the owner and wait for them. So nobody looks for a lane while the direct path is closed, and after a
 * look in vain RETRY_AFTER operations go as commands before the next.
 */
#include "emunic/client/lane.h"

#include "emunic/abi/abi.h"
#include "emunic/client/port.h"
#include "emunic/engine/park.h"
#include "emunic/engine/transaction.h"

#define RETRY_AFTER 64u

static const _Atomic uint16_t never_parked = 1;

/* Where the owner of the memory parks it, or a word that never changes. NULL: out of reach. Our mark is up. */
static const _Atomic uint16_t *park_of(struct emu_direct *d, const struct emu_table_md *md)
{
    uint32_t state = atomic_load_explicit(&md->state, memory_order_acquire);
    const struct emu_segment *owner = state > EMU_MD_LIVE ? emu_direct_segment_of(d, md->port) : NULL;

    if (state <= EMU_MD_LIVE)
        return &never_parked;
    return owner ? emu_park_of(state, owner) : NULL;
}

static uint16_t generation_of(const struct emu_table_md *md, const _Atomic uint16_t *park)
{
    return park == &never_parked ? md->generation : atomic_load_explicit(park, memory_order_acquire);
}

static bool is_this_memory(const struct emu_table_md *md, const _Atomic uint16_t *park,
                           const struct emu_lane_target *target)
{
    uint16_t generation = generation_of(md, park);

    return atomic_load_explicit(&md->state, memory_order_acquire) != EMU_MD_GONE && generation != 0 &&
           (target->generation == 0 || target->generation == generation) &&
           ((target->handle_flags & (EMU_HANDLE_OFFSET | EMU_HANDLE_VIRTUAL)) != 0 ||
            target->remote_base == emu_page_down(md->base));
}

/* The memory domain that a handle names, or NULL. */
static const struct emu_table_md *md_of(const struct emu_table *table, const struct emu_lane_target *target,
                                        uint32_t node_index)
{
    struct emu_md_name name = { target->remote_base, target->mdh, target->generation, target->handle_flags };
    uint32_t number = emu_transaction_find_md(table, node_index, &name);

    return number < EMU_MD_COUNT ? &emu_table_mds(table, node_index)[number] : NULL;
}

/* What brings an address in a command to the owner's, as the engine does it (translate). */
static uint64_t shift_of(const struct emu_table_md *md, const struct emu_lane_target *target)
{
    if (target->handle_flags & EMU_HANDLE_OFFSET)
        return md->base - target->remote_base;
    return (target->handle_flags & EMU_HANDLE_VIRTUAL) ? emu_page_down(md->base) - target->remote_base : 0;
}

/* Whom to wake; ourselves leaving the gate wakes. */
static struct emu_segment *owner_of(struct emu_direct *d, const struct emu_table_md *md)
{
    struct emu_segment *segment = emu_direct_segment_of(d, md->port);

    return segment == emu_direct_gate(d)->segment ? NULL : segment;
}

/* Our mark is up. */
static bool find_lane(struct emu_direct *d, const struct emu_lane_target *target, uint32_t node_index,
                      struct emu_lane *lane)
{
    struct emu_gate *gate = emu_direct_gate(d);
    const struct emu_table_md *md = md_of(gate->table, target, node_index);
    const _Atomic uint16_t *park = md ? park_of(d, md) : NULL;
    struct emu_cq_producer *destination = NULL;
    struct emu_memory memory;
    uint64_t first;
    uint64_t end;
    void *window;

    if (!park || !is_this_memory(md, park, target) || emu_direct_reach(d, md, &memory) != EMU_STATUS_OK)
        return false;
    first = emu_page_down(md->base);
    end = emu_page_up(md->base + md->length_bytes);
    window = memory.ops->window ? memory.ops->window(&memory, first, end - first) : NULL;
    if (md->cq != EMU_CQ_NONE)
        destination = emu_direct_destination(d, md);
    if ((!window && memory.ops->window) || (md->cq != EMU_CQ_NONE && !destination))
        return false;
    *lane = (struct emu_lane){
        .gate = gate,
        .epoch = gate->epoch,
        .md = md,
        .port = &emu_table_ports(gate->table)[md->port],
        .flow = emu_direct_flow(d, node_index),
        .window = window,
        .pid = memory.pid,
        .first = first,
        .end = end,
        .shift = shift_of(md, target),
        .port_generation = emu_table_ports(gate->table)[md->port].generation,
        .is_read_only = (md->flags & EMU_MD_READ_ONLY) != 0,
        .has_destination = destination,
        .broken = memory.broken,
        .file = md->file,
        .owner = owner_of(d, md),
        .park = park,
        .generation = atomic_load_explicit(park, memory_order_acquire),
    };
    memcpy(lane->seen, (const void *)md, sizeof(lane->seen));
    /* The memory may have gone while we asked about its owner; then every later look would find the line as it is now,
     * dead. Alive in the copy, it was so all the time: emunic gives the number away only when it has seen us
     * outside. */
    if (!is_this_memory((const struct emu_table_md *)(const void *)lane->seen, park, target)) {
        *lane = (struct emu_lane){ 0 };
        return false;
    }
    if (destination)
        lane->destination = *destination;
    return true;
}

bool emu_lane_find(struct emu_direct *d, const struct emu_lane_target *target, struct emu_lane *lane_out)
{
    struct emu_gate *gate = emu_direct_gate(d);
    uint32_t node_index = emu_table_node_index(gate->table, target->nid);
    bool is_found;

    if (node_index >= gate->table->n_nodes)
        return false;
    emu_gate_enter(gate);
    is_found = find_lane(d, target, node_index, lane_out);
    emu_gate_leave(gate);
    return is_found;
}

bool emu_lane_find_domain(struct emu_direct *d, uint32_t node_index, uint16_t mdh, uint16_t generation,
                          struct emu_lane *lane_out)
{
    /* With its generation the number is enough. */
    struct emu_lane_target target = { .mdh = mdh, .generation = generation, .handle_flags = EMU_HANDLE_OFFSET };

    return generation != 0 && find_lane(d, &target, node_index, lane_out);
}

bool emu_lane_look_for(struct emu_port *port, const struct emu_lane_target *target, struct emu_lane *lane)
{
    if (!port->gate || !emu_gate_is_open(port->gate) || atomic_load_explicit(port->gate->is_lost, memory_order_relaxed))
        return false;
    if (lane->retry > 0) {
        lane->retry--;
        return false;
    }
    if (emu_lane_find(port->direct, target, lane))
        return true;
    lane->epoch = 0;
    lane->retry = RETRY_AFTER;
    return false;
}

/* ---- operations ---- */

static bool refuse_now(struct emu_lane *lane)
{
    if (emu_gate_is_open(lane->gate))
        lane->epoch = 0;
    return false;
}

bool emu_lane_refuse(struct emu_lane *lane)
{
    /* Without a window it refuses always, and is still good for puts and gets. */
    return lane->window && refuse_now(lane);
}

bool emu_lane_put_far(struct emu_lane *lane, uint64_t addr, const void *data, uint64_t len_bytes,
                      struct emu_lane_event event)
{
    struct emu_memory memory = emu_memory_cma(lane->pid);
    uint64_t target = addr + lane->shift;

    if (lane->window || !emu_lane_may_enter(lane, target, len_bytes, true))
        return refuse_now(lane);
    if (memory.ops->write(&memory, target, data, len_bytes, NULL) != 0) {
        emu_gate_leave(lane->gate);
        return refuse_now(lane);
    }
    emu_lane_tell(lane, event);
    emu_lane_count_put(lane, len_bytes);
    emu_lane_leave(lane);
    return true;
}

bool emu_lane_get_far(struct emu_lane *lane, uint64_t addr, void *data, uint64_t len_bytes, struct emu_lane_event event)
{
    struct emu_memory memory = emu_memory_cma(lane->pid);
    uint64_t target = addr + lane->shift;

    if (lane->window || !emu_lane_may_enter(lane, target, len_bytes, false))
        return refuse_now(lane);
    if (memory.ops->read(&memory, target, data, len_bytes) != 0) {
        emu_gate_leave(lane->gate);
        return refuse_now(lane);
    }
    emu_lane_tell(lane, event);
    emu_lane_count_get(lane, len_bytes, 0);
    emu_lane_leave(lane);
    return true;
}
