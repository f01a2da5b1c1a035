/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory of several segments under one handle: addresses are offsets in their concatenation.
 */
#ifndef EMUNIC_ENGINE_MEMORY_SEGMENTS_H
#define EMUNIC_ENGINE_MEMORY_SEGMENTS_H

#include <stdint.h>

#include "emunic/engine/memory.h"

struct emu_segment_part {
    uint64_t offset; /* of its first byte in the region */
    uint64_t addr;   /* owner's */
    uint64_t len_bytes;
    struct emu_memory memory; /* how that part is reached */
};

/* Parts follow each other without a hole, from offset 0. Lives as long as the memory domain. */
struct emu_segment_list {
    uint32_t n;
    uint64_t total_bytes;
    struct emu_segment_part parts[];
};

/* The whole as one memory; `list` is borrowed. */
struct emu_memory emu_memory_segments(const struct emu_segment_list *list);

#endif
