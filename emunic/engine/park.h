/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Parked memory domains, as whoever runs the engine sees them: state in the domain table, generation in the segment of
 * the owner (abi/segment.h). A parked one has no generation, so no handle names it.
 */
#ifndef EMUNIC_ENGINE_PARK_H
#define EMUNIC_ENGINE_PARK_H

#include <stdatomic.h>
#include <stdint.h>

#include "emunic/abi/segment.h"
#include "emunic/abi/table.h"

/* Where the generation stands of a memory domain whose state is neither gone nor EMU_MD_LIVE. */
static inline const _Atomic uint16_t *emu_park_of(uint32_t state, const struct emu_segment *owner)
{
    return &owner->parks[(state - EMU_MD_LIVE - 1) % EMU_PARKS];
}

/* The generation that a handle must have, or 0: nobody reaches the memory. `owner` is needed for those with a park. */
static inline uint16_t emu_park_generation(const struct emu_table_md *md, const struct emu_segment *owner)
{
    uint32_t state = atomic_load_explicit(&md->state, memory_order_acquire);

    if (state == EMU_MD_GONE)
        return 0;
    /* Pairs with the release in emu_park_leave(). */
    return state == EMU_MD_LIVE ? md->generation :
                                  atomic_load_explicit(emu_park_of(state, owner), memory_order_acquire);
}

#endif
