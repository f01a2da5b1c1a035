/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The order between the initiator's copies and the events of the transfer: it counts a slice with release behind its
 * copy, and the count is read here with acquire before the events are delivered.
 *
 * The word may say anything. What emunic took itself is known here, in the transaction; the end may only go down. After
 * any other value, and after the initiator has given up, the word is closed and emunic moves the rest itself, those
 * slices too that the initiator may have moved before.
 */
#include "emunic/daemon/commands/shared_transfer.h"

#include "emunic/abi/segment.h"
#include "emunic/daemon/commands/datapath.h"
#include "emunic/daemon/world/domain.h"
#include "emunic/daemon/world/port_end.h"
#include "emunic/engine/share.h"

#define SLICES_MIN 8u /* fewer are moved before the initiator comes by */

static uint64_t slice_of(const struct emu_port_end *port)
{
    return port->server->settings.slice_bytes;
}

/* A flag word is stored with the last slice, and segments are walked in order: those stay emunic's. */
static bool is_plain(const struct emu_transaction *t)
{
    const struct emu_cmd *cmd = &t->cmd;

    return (cmd->op == EMU_OP_PUT || cmd->op == EMU_OP_GET) && !t->segments.segments &&
           (cmd->flags & (EMU_CMD_INLINE | EMU_CMD_STAGED | EMU_CMD_FLAG | EMU_CMD_GET_FLAG)) == 0;
}

void emu_shared_open(struct emu_port_end *port, struct emu_transfer *transfer)
{
    const struct emu_transaction *t = &transfer->transaction;
    uint64_t n_slices = t->cmd.length_bytes / slice_of(port) + (t->cmd.length_bytes % slice_of(port) != 0);
    uint64_t first = t->done_bytes / slice_of(port);

    if (port->transfers.shared || !is_plain(t) || n_slices > EMU_SHARE_SLICES_MAX || first + SLICES_MIN > n_slices ||
        t->done_bytes % slice_of(port) != 0)
        return;
    port->transfers.shared = transfer;
    if (++port->transfers.share_serial == 0)
        port->transfers.share_serial = 1;
    transfer->n_slices = (uint32_t)n_slices;
    transfer->free = (struct emu_share){
        .first = (uint32_t)first,
        .end = (uint32_t)n_slices,
        .serial = port->transfers.share_serial,
    };
    port->segment->share_command = transfer->number;
    port->segment->share_slice_bytes = slice_of(port);
    atomic_store_explicit(&port->segment->share, emu_share_word(transfer->free), memory_order_release);
}

void emu_shared_close(struct emu_port_end *port, const struct emu_transfer *transfer)
{
    if (port->transfers.shared != transfer)
        return;
    port->transfers.shared = NULL;
    atomic_store_explicit(&port->segment->share, 0, memory_order_relaxed);
}

static struct emu_share look(const struct emu_port_end *port)
{
    return emu_share_of(atomic_load_explicit(&port->segment->share, memory_order_relaxed));
}

static bool is_sound(const struct emu_transfer *transfer, struct emu_share seen)
{
    return seen.serial == transfer->free.serial && seen.first == transfer->free.first && seen.first <= seen.end &&
           seen.end <= transfer->free.end;
}

/* Nothing is free. Has the initiator moved what it took? */
static enum emu_shared_turn look_at_moved(const struct emu_port_end *port, const struct emu_transfer *transfer,
                                          uint32_t end)
{
    uint64_t moved = atomic_load_explicit(&port->segment->share_moved, memory_order_acquire);
    uint32_t n_taken = transfer->n_slices - end;

    if (moved == emu_share_moved(transfer->free.serial, n_taken, false))
        return EMU_SHARED_ENDS;
    if (moved >> 48 == transfer->free.serial && (moved & EMU_SHARE_IS_LEFT))
        return EMU_SHARED_STEP;
    return EMU_SHARED_WAITS;
}

bool emu_shared_waits(const struct emu_port_end *port, const struct emu_transfer *transfer)
{
    struct emu_share seen = look(port);

    return port->transfers.shared == transfer && is_sound(transfer, seen) && seen.first == seen.end &&
           transfer->transaction.done_bytes >= (uint64_t)seen.first * slice_of(port) &&
           look_at_moved(port, transfer, seen.end) == EMU_SHARED_WAITS;
}

enum emu_shared_turn emu_shared_turn(struct emu_port_end *port, struct emu_transfer *transfer)
{
    struct emu_transaction *t = &transfer->transaction;
    enum emu_shared_turn turn;
    struct emu_share seen;

    emu_shared_open(port, transfer);
    /* A slice that was begun goes on: its memory was not there yet. */
    if (port->transfers.shared != transfer || t->done_bytes < (uint64_t)transfer->free.first * slice_of(port))
        return EMU_SHARED_STEP;
    while ((seen = look(port), is_sound(transfer, seen)) && seen.first < seen.end) {
        struct emu_share rest = { seen.first + 1, seen.end, seen.serial };

        if (emu_share_swap(&port->segment->share, seen, rest)) {
            transfer->free = rest;
            return EMU_SHARED_STEP;
        }
    }
    turn = is_sound(transfer, seen) ? look_at_moved(port, transfer, seen.end) : EMU_SHARED_STEP;
    if (turn == EMU_SHARED_ENDS)
        t->done_bytes = t->cmd.length_bytes;
    else if (turn == EMU_SHARED_STEP)
        emu_shared_close(port, transfer);
    return turn;
}
