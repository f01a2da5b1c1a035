/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The word by which a port's owner rests and others wake it (struct emu_segment.rests, rest.c).
 */
#ifndef EMUNIC_ENGINE_REST_H
#define EMUNIC_ENGINE_REST_H

#include <stdbool.h>
#include <stdint.h>

#include "emunic/abi/segment.h"

/* Something has happened that the owner may be polling for: called after it, by whoever did it. One load, usually. */
static inline void emu_rest_disturb(struct emu_segment *segment);

/* The owner's side; any of its threads. */

/* Before the polls that may find news. True: the mark was not up, so there may have been news since the last call. */
bool emu_rest_announce(struct emu_segment *segment);

/*
 * Sleeps until disturbed, at most limit_ns. False: the time is up. Returns at once when there were news since the last
 * emu_rest_announce(), and for a signal.
 */
bool emu_rest_sleep(struct emu_segment *segment, uint64_t limit_ns);

void emu_rest_disturb_marked(struct emu_segment *segment);

static inline void emu_rest_disturb(struct emu_segment *segment)
{
    if (__builtin_expect(atomic_load_explicit(&segment->rests, memory_order_relaxed) != EMU_REST_NONE, 0))
        emu_rest_disturb_marked(segment);
}

#endif
