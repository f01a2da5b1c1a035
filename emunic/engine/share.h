/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A block transfer that emunic and its initiator move together, slice by slice.
 *
 * emunic takes slices from the front, in the course of its rounds. The initiator takes them from the back, one at each
 * poll that finds nothing. A word in the initiator's segment tells which slices nobody has taken:
 *
 *   bits  0 to 23   first: emunic has taken those before it
 *   bits 24 to 47   end: the initiator has taken it and those behind it
 *   bits 48 to 63   serial of the transfer. The whole word is 0 while there is none
 *
 * Either takes a slice by a compare and swap of the word. The initiator counts what it has moved in a second word:
 *
 *   bits  0 to 23   slices moved
 *   bit  47         the initiator takes no more, and may have left out some that it had taken
 *   bits 48 to 63   serial
 *
 * emunic opens and ends a transfer, and delivers its events. It believes neither word: with any content the worst is
 * that the initiator's own transfer has wrong data or does not end.
 */
#ifndef EMUNIC_ENGINE_SHARE_H
#define EMUNIC_ENGINE_SHARE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define EMU_SHARE_SLICES_MAX ((1u << 24) - 1)
#define EMU_SHARE_IS_LEFT    (1ull << 47)

/* The slices that nobody has taken: [first, end). */
struct emu_share {
    uint32_t first;
    uint32_t end;
    uint16_t serial; /* never 0 */
};

static inline struct emu_share emu_share_of(uint64_t word)
{
    return (struct emu_share){
        .first = word & EMU_SHARE_SLICES_MAX,
        .end = (word >> 24) & EMU_SHARE_SLICES_MAX,
        .serial = (uint16_t)(word >> 48),
    };
}

static inline uint64_t emu_share_word(struct emu_share share)
{
    return (uint64_t)share.serial << 48 | (uint64_t)share.end << 24 | share.first;
}

/* Puts `to` in the place of `from`. False: the word is another by now, and nothing has happened. */
static inline bool emu_share_swap(_Atomic uint64_t *word, struct emu_share from, struct emu_share to)
{
    uint64_t seen = emu_share_word(from);

    return atomic_compare_exchange_strong_explicit(word, &seen, emu_share_word(to), memory_order_acq_rel,
                                                   memory_order_relaxed);
}

/* The second word. */
static inline uint64_t emu_share_moved(uint16_t serial, uint32_t n_slices, bool is_left)
{
    return (uint64_t)serial << 48 | (is_left ? EMU_SHARE_IS_LEFT : 0) | n_slices;
}

#endif
