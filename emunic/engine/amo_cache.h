/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The cache of atomics of one NIC, as a memory method: words that cached commands (EMU_AMO_CACHED) change stay in it.
 *
 * eager  a changed word is written to host memory at once
 * lazy   it is written when its place is wanted, when a get or put touches it, or an atomic that is not cached does
 *
 * Whatever goes through the NIC sees one memory; no update is lost. The processor is not told: it may find an old
 * value, and what it stores into a word that is in the cache is overwritten by the next update. That is so in both
 * modes. A word is 8 bytes; of two operands of 4 bytes in it only those that have changed are written.
 * Source: spec/machines.md 2.3 (atomics, XC-42); what flushes is our choice.
 *
 * All memory that may be the same has to go through the same cache. One thread at a time.
 */
#ifndef EMUNIC_ENGINE_AMO_CACHE_H
#define EMUNIC_ENGINE_AMO_CACHE_H

#include <stdint.h>
#include <sys/types.h>

#include "emunic/engine/memory.h"

struct emu_amo_cache;

struct emu_amo_cache_counts {
    uint64_t commands;    /* words that cached commands were done on */
    uint64_t hits;        /* of them, whose word was there */
    uint64_t host_reads;  /* words read from memory for them */
    uint64_t host_writes; /* words written to memory for them */
};

/* NULL: no memory. n_words > 0. */
struct emu_amo_cache *emu_amo_cache_create(bool is_lazy, uint32_t n_words);

/* NULL is fine. What was not written is lost: forget first. */
void emu_amo_cache_destroy(struct emu_amo_cache *cache);

/*
 * Memory of process `pid`, a window or that process by system calls, behind the cache. Words of a window alone are
 * kept; the window has to stay until they are forgotten. It has no window of its own: nobody can go past the cache.
 */
struct emu_memory emu_memory_cached(struct emu_amo_cache *cache, const struct emu_memory *inner, pid_t pid);

/* Writes what a process's words have in them, and drops them: before any of its memory goes. */
void emu_amo_cache_forget(struct emu_amo_cache *cache, pid_t pid);

const struct emu_amo_cache_counts *emu_amo_cache_counts(const struct emu_amo_cache *cache);

#endif
