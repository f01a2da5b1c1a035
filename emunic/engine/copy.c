/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Copies between places whose addresses differ by little within a page.
 *
 * The C library copies from some hundred bytes on by one string instruction. That instruction is slow where the
 * destination's offset in its page is ahead of the source's by less than a line: each of its stores then looks to the
 * processor like one that a later load depends on. Measured: 1.8 GB/s for 37 (Zen 3, 64 KiB). A message behind a short
 * header, or a buffer of malloc() and a page's start, are such places. The loop of plain loads and stores below has
 * nothing to wait for.
 */
#include "emunic/engine/copy.h"

#include <stdbool.h>

#define PAGE_BYTES  4096
#define BLOCK_BYTES 64

/* A block is loaded whole before it is stored, so its two places may overlap. */
static inline void copy_block(uint8_t *to, const uint8_t *from)
{
    uint8_t block[BLOCK_BYTES];

    memcpy(block, from, BLOCK_BYTES); /* four registers, no call */
    memcpy(to, block, BLOCK_BYTES);
}

static void copy_upwards(uint8_t *to, const uint8_t *from, uint64_t len_bytes)
{
    uint64_t at = 0;

    for (; len_bytes - at >= BLOCK_BYTES; at += BLOCK_BYTES)
        copy_block(to + at, from + at);
    memmove(to + at, from + at, len_bytes - at);
}

static void copy_downwards(uint8_t *to, const uint8_t *from, uint64_t len_bytes)
{
    uint64_t left = len_bytes;

    for (; left >= BLOCK_BYTES; left -= BLOCK_BYTES)
        copy_block(to + left - BLOCK_BYTES, from + left - BLOCK_BYTES);
    memmove(to, from, left);
}

void emu_copy_long(void *to, const void *from, uint64_t len_bytes)
{
    uint64_t ahead_bytes = (uintptr_t)to - (uintptr_t)from;
    bool is_slow = ahead_bytes % PAGE_BYTES > 0 && ahead_bytes % PAGE_BYTES < BLOCK_BYTES;

    if (!is_slow)
        memmove(to, from, len_bytes);
    else if (ahead_bytes < len_bytes) /* upwards would overwrite what is still to be read */
        copy_downwards(to, from, len_bytes);
    else
        copy_upwards(to, from, len_bytes);
}
