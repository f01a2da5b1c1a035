/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Portals: indices of long match lists (struct emu_ptl_index), the owner's part. Searches are in portals_match.c.
 *
 * The owner's thread, with the lock held. What stands in the interface may be anything.
 */
#ifndef EMUNIC_ENGINE_PORTALS_INDEX_H
#define EMUNIC_ENGINE_PORTALS_INDEX_H

#include <stdint.h>

#include "emunic/abi/portals.h"

#define EMU_PTL_SHORT_LIST 64u /* places that are walked without an index */
#define EMU_PTL_FEW        16u /* with fewer entries than that an index goes; most lists stay so short */

static inline uint32_t emu_ptl_hash(uint64_t bits, uint64_t ignore, uint32_t nid, uint32_t pid)
{
    uint64_t x =
        (bits & ~ignore) ^ ignore * 0xd6e8feb86659fd93ull ^ ((uint64_t)nid << 32 | pid) * 0x9e3779b97f4a7c15ull;

    x = (x ^ x >> 32) * 0xbf58476d1ce4e5b9ull;
    return (uint32_t)(x >> 32 ^ x);
}

void emu_ptl_index_take_in(struct emu_ptl_ni *ni, uint32_t me, uint32_t base);
void emu_ptl_index_let_go(struct emu_ptl_ni *ni, uint32_t me);

/* An entry has come into that list. base: the one beside which it was inserted, or EMU_PTL_NONE. */
static inline void emu_ptl_index_add(struct emu_ptl_ni *ni, const struct emu_ptl_list *list, uint32_t me, uint32_t base)
{
    if (list->n_live > EMU_PTL_FEW)
        emu_ptl_index_take_in(ni, me, base);
}

/* It is about to leave it. */
static inline void emu_ptl_index_remove(struct emu_ptl_ni *ni, const struct emu_ptl_list *list, uint32_t me)
{
    if (list->n_live >= EMU_PTL_FEW)
        emu_ptl_index_let_go(ni, me);
}

#endif
