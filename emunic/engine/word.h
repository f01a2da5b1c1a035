/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Copies to and from memory that others change at the same time: an aligned word of 8 or 4 bytes goes in one piece,
 * also against atomics (Chapel reads atomically by gets of such words). Longer ones have no order within. The two may
 * overlap, as a process sends to itself. Any thread.
 */
#ifndef EMUNIC_ENGINE_WORD_H
#define EMUNIC_ENGINE_WORD_H

#include <stdatomic.h>
#include <stdint.h>
#include <string.h>

#include "emunic/engine/copy.h"

static inline void emu_word_store(void *to, const void *from, uint64_t len_bytes)
{
    if (__builtin_expect(len_bytes == 8 && (uintptr_t)to % 8 == 0, 1)) {
        uint64_t word;

        memcpy(&word, from, 8);
        atomic_store_explicit((_Atomic uint64_t *)to, word, memory_order_relaxed);
    } else if (len_bytes == 4 && (uintptr_t)to % 4 == 0) {
        uint32_t word;

        memcpy(&word, from, 4);
        atomic_store_explicit((_Atomic uint32_t *)to, word, memory_order_relaxed);
    } else {
        emu_copy(to, from, len_bytes);
    }
}

static inline void emu_word_load(void *to, const void *from, uint64_t len_bytes)
{
    if (__builtin_expect(len_bytes == 8 && (uintptr_t)from % 8 == 0, 1)) {
        uint64_t word = atomic_load_explicit((_Atomic uint64_t *)(uintptr_t)from, memory_order_relaxed);

        memcpy(to, &word, 8);
    } else if (len_bytes == 4 && (uintptr_t)from % 4 == 0) {
        uint32_t word = atomic_load_explicit((_Atomic uint32_t *)(uintptr_t)from, memory_order_relaxed);

        memcpy(to, &word, 4);
    } else {
        emu_copy(to, from, len_bytes);
    }
}

#endif
