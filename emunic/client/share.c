/* SPDX-License-Identifier: BSD-3-Clause */
#include "emunic/client/share.h"

#include <string.h>

#include "emunic/abi/segment.h"
#include "emunic/client/direct.h"
#include "emunic/client/lane.h"
#include "emunic/client/port.h"
#include "emunic/engine/pages.h"
#include "emunic/engine/share.h"

void emu_handed_add(struct emu_port *port)
{
    const struct emu_cmd *cmd = &port->slots[port->tail & (EMU_RING_SLOTS - 1)];
    struct emu_handed *handed = &port->handed;
    uint32_t n = atomic_load_explicit(&handed->n, memory_order_relaxed);

    if (!port->gate || cmd->length_bytes <= port->settings.direct_limit_bytes || cmd->chain != EMU_CHAIN_NONE ||
        (cmd->op != EMU_OP_PUT && cmd->op != EMU_OP_GET))
        return;
    if (!handed->last)
        handed->last = emu_pages_take(EMU_HANDED_MAX * sizeof(*handed->last));
    if (!handed->last) /* emunic does it alone */
        return;
    handed->last[n % EMU_HANDED_MAX].number = port->tail;
    handed->last[n % EMU_HANDED_MAX].cmd = *cmd;
    atomic_store_explicit(&handed->n, n + 1, memory_order_relaxed);
}

void emu_handed_close(struct emu_handed *handed)
{
    emu_pages_give(handed->last, EMU_HANDED_MAX * sizeof(*handed->last));
    handed->last = NULL;
}

static const struct emu_cmd *find(const struct emu_port *port, uint64_t number)
{
    uint32_t n = atomic_load_explicit(&port->handed.n, memory_order_relaxed);

    for (uint32_t i = 0; i < n && i < EMU_HANDED_MAX; i++) {
        if (port->handed.last[i].number == number)
            return &port->handed.last[i].cmd;
    }
    return NULL;
}

/* The data of one slice and nothing else: emunic counts the whole, and delivers its events. */
static struct emu_cmd part_of(const struct emu_cmd *cmd, uint32_t slice, uint64_t slice_bytes)
{
    struct emu_cmd part = *cmd;
    uint64_t at = slice * slice_bytes;

    part.flags = 0;
    part.events = 0;
    part.local_addr += at;
    part.remote_addr += at;
    part.length_bytes = cmd->length_bytes - at < slice_bytes ? cmd->length_bytes - at : slice_bytes;
    return part;
}

static bool is_all_over(const struct emu_port *port)
{
    return atomic_load_explicit(&port->segment->head, memory_order_acquire) == port->tail &&
           atomic_load_explicit(&port->segment->unfinished, memory_order_relaxed) == 0;
}

/* Behind the last slice that is ours emunic has to deliver the events. It may have gone to sleep. */
static void call_emunic(struct emu_port *port)
{
    struct emu_share seen;

    /* Pairs with the fence in emunic between announcing sleep and its last look at transfers. */
    atomic_thread_fence(memory_order_seq_cst);
    seen = emu_share_of(atomic_load_explicit(&port->segment->share, memory_order_relaxed));
    if (seen.first == seen.end && atomic_load_explicit(&port->table->emunic_sleeps, memory_order_relaxed))
        emu_port_ring(port);
}

static void move(struct emu_port *port, const struct emu_cmd *cmd, uint32_t slice)
{
    struct emu_handed *handed = &port->handed;
    struct emu_cmd part = part_of(cmd, slice, port->segment->share_slice_bytes);

    if (emu_direct_move(port->direct, &part))
        handed->n_moved++;
    else
        handed->is_left = true;
    /* The data before their count. */
    atomic_store_explicit(&port->segment->share_moved,
                          emu_share_moved(handed->serial, handed->n_moved, handed->is_left), memory_order_release);
    call_emunic(port);
}

bool emu_port_help(struct emu_port *port)
{
    struct emu_handed *handed = &port->handed;
    uint64_t word = atomic_load_explicit(&port->segment->share, memory_order_acquire);
    struct emu_share seen = emu_share_of(word);
    struct emu_share rest = { seen.first, seen.end - 1, seen.serial };
    const struct emu_cmd *cmd;

    if (word == 0) {
        if (is_all_over(port))
            atomic_store_explicit(&handed->n, 0, memory_order_relaxed);
        return false;
    }
    cmd = seen.first < seen.end ? find(port, port->segment->share_command) : NULL;
    if (!cmd || !emu_gate_is_open(port->gate))
        return false;
    if (seen.serial != handed->serial) {
        handed->serial = seen.serial;
        handed->n_moved = 0;
        handed->is_left = false;
    }
    if (handed->is_left || !emu_share_swap(&port->segment->share, seen, rest))
        return false;
    move(port, cmd, rest.end);
    return true;
}
