/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Helping emunic with block transfers of our own (engine/share.h).
 *
 * A transfer above EMUNIC_DIRECT_LIMIT is emunic's, so that the post returns at once and the data move while the
 * program computes. A program that waits for it instead moves slices itself, each in a poll that finds nothing: emunic
 * may share its processor with others, and has to go through a buffer where both sides are private memory.
 *
 * Cost of a poll while nothing is in emunic's hands: one load. Thread rule: as emu_port_command().
 */
#ifndef EMUNIC_CLIENT_SHARE_H
#define EMUNIC_CLIENT_SHARE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "emunic/abi/command.h"

struct emu_port;

#define EMU_HANDED_MAX 8u /* the last ones: emunic takes them in this order */

struct emu_handed_command {
    uint64_t number; /* as counted by the ring's tail */
    struct emu_cmd cmd;
};

/* Block transfers in emunic's hands. Zero is a valid beginning. */
struct emu_handed {
    _Atomic uint32_t n; /* 0: none of them can be helped with */
    uint32_t n_moved;   /* slices of the one with that serial */
    uint16_t serial;
    bool is_left;                    /* we could not move one of its slices, and take no more */
    struct emu_handed_command *last; /* owned, EMU_HANDED_MAX; NULL: there was none yet */
};

/* The slot of the last emu_port_command() is about to be published. */
void emu_handed_add(struct emu_port *port);
/* Ends what emu_handed_add() began. */
void emu_handed_close(struct emu_handed *handed);

/* Moves a slice of a transfer. False: there was none to move. */
bool emu_port_help(struct emu_port *port);

/* May there be one? Any thread. */
static inline bool emu_handed_is_any(const struct emu_handed *handed)
{
    return atomic_load_explicit(&handed->n, memory_order_relaxed) != 0;
}

#endif
