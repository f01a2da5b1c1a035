/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Words lie in a list without order, which each access walks: a NIC has 64 of them. The least recently used one goes.
 *
 * A word's window is that of the memory through which it came first. Other ways to the same memory find it by process
 * and address.
 */
#include "emunic/engine/amo_cache.h"

#include <assert.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#define WORD_BYTES 8u
#define BOTH       3u /* halves */

struct word {
    pid_t pid; /* 0: the place is free */
    uint64_t addr;
    _Atomic uint64_t *host;
    uint64_t value;
    uint64_t used;  /* time of the last use */
    unsigned dirty; /* halves that host memory does not have: 1 the low one, 2 the high one */
};

struct emu_amo_cache {
    struct emu_amo_cache_counts counts;
    bool is_lazy;
    uint64_t now;
    uint32_t n_words;
    uint32_t n_used; /* 0: nothing to look for */
    struct word words[];
};

struct emu_amo_cache *emu_amo_cache_create(bool is_lazy, uint32_t n_words)
{
    struct emu_amo_cache *cache = calloc(1, sizeof(*cache) + n_words * sizeof(cache->words[0]));

    assert(n_words > 0);
    if (!cache)
        return NULL;
    cache->is_lazy = is_lazy;
    cache->n_words = n_words;
    return cache;
}

void emu_amo_cache_destroy(struct emu_amo_cache *cache)
{
    free(cache);
}

const struct emu_amo_cache_counts *emu_amo_cache_counts(const struct emu_amo_cache *cache)
{
    return &cache->counts;
}

/* ---- words ---- */

static void write_back(struct emu_amo_cache *cache, struct word *w)
{
    _Atomic uint32_t *halves = (_Atomic uint32_t *)(void *)w->host; /* little endian: the low one first */

    if (w->dirty == 0)
        return;
    if (w->dirty == BOTH)
        atomic_store_explicit(w->host, w->value, memory_order_release);
    else if (w->dirty == 1)
        atomic_store_explicit(&halves[0], (uint32_t)w->value, memory_order_release);
    else
        atomic_store_explicit(&halves[1], (uint32_t)(w->value >> 32), memory_order_release);
    w->dirty = 0;
    cache->counts.host_writes++;
}

static void drop(struct emu_amo_cache *cache, struct word *w)
{
    write_back(cache, w);
    w->pid = 0;
    cache->n_used--;
}

/* Words of [addr, addr + len) are in memory afterwards; keeps says whether they stay here, too. */
static void flush(struct emu_amo_cache *cache, pid_t pid, uint64_t addr, uint64_t len_bytes, bool keeps)
{
    for (uint32_t i = 0; i < cache->n_words && cache->n_used > 0 && len_bytes > 0; i++) {
        struct word *w = &cache->words[i];

        if (w->pid != pid || w->addr + WORD_BYTES <= addr || w->addr >= addr + len_bytes)
            continue;
        if (keeps)
            write_back(cache, w);
        else
            drop(cache, w);
    }
}

/* The word, read if it is not here. */
static struct word *get_word(struct emu_amo_cache *cache, pid_t pid, uint64_t addr, _Atomic uint64_t *host)
{
    struct word *place = &cache->words[0];

    for (uint32_t i = 0; i < cache->n_words; i++) {
        struct word *w = &cache->words[i];

        if (w->pid == pid && w->addr == addr) {
            cache->counts.hits++;
            return w;
        }
        if (place->pid != 0 && (w->pid == 0 || w->used < place->used))
            place = w;
    }
    if (place->pid != 0)
        drop(cache, place);
    cache->n_used++;
    cache->counts.host_reads++;
    *place = (struct word){
        .pid = pid, .addr = addr, .host = host, .value = atomic_load_explicit(host, memory_order_acquire)
    };
    return place;
}

/* Answers the operand's old value. */
static uint64_t update(struct emu_amo_cache *cache, struct word *w, const struct emu_amo *amo, bool is_high)
{
    unsigned shift = is_high ? 32 : 0;
    uint64_t old = w->value;

    if (amo->flags & EMU_AMO_32BIT) {
        old = (uint32_t)(w->value >> shift);
        w->value = (w->value & ~((uint64_t)UINT32_MAX << shift)) | emu_amo_apply(amo, old) << shift;
        w->dirty |= is_high ? 2u : 1u;
    } else {
        w->value = emu_amo_apply(amo, old);
        w->dirty = BOTH;
    }
    w->used = ++cache->now;
    if (!cache->is_lazy)
        write_back(cache, w);
    return old;
}

/* ---- the memory method ---- */

static struct emu_amo_cache *cache_of(const struct emu_memory *mem)
{
    return mem->mover;
}

static struct emu_memory inner_of(const struct emu_memory *mem)
{
    return mem->base ? emu_memory_map(mem->base, mem->owner_addr, mem->len_bytes) : emu_memory_cma(mem->pid);
}

static int cached_read(const struct emu_memory *mem, uint64_t addr, void *dst, size_t len_bytes)
{
    struct emu_memory inner = inner_of(mem);

    flush(cache_of(mem), mem->pid, addr, len_bytes, true);
    return inner.ops->read(&inner, addr, dst, len_bytes);
}

static int cached_write(const struct emu_memory *mem, uint64_t addr, const void *src, size_t len_bytes,
                        const struct emu_flag *flag)
{
    struct emu_memory inner = inner_of(mem);

    flush(cache_of(mem), mem->pid, addr, len_bytes, false);
    if (flag)
        flush(cache_of(mem), mem->pid, flag->addr, sizeof(flag->value), false);
    return inner.ops->write(&inner, addr, src, len_bytes, flag);
}

static int cached_atomic(const struct emu_memory *mem, uint64_t addr, const struct emu_amo *amo, uint64_t *old_out)
{
    struct emu_amo_cache *cache = cache_of(mem);
    struct emu_memory inner = inner_of(mem);
    uint64_t word_addr = addr & ~(uint64_t)(WORD_BYTES - 1);
    bool is_cached = (amo->flags & EMU_AMO_CACHED) != 0;
    void *host = is_cached && inner.ops->window ? inner.ops->window(&inner, word_addr, WORD_BYTES) : NULL;
    int r;

    if (host) {
        cache->counts.commands++;
        *old_out = update(cache, get_word(cache, mem->pid, word_addr, host), amo, addr != word_addr);
        return 0;
    }
    flush(cache, mem->pid, addr, emu_amo_word_bytes(amo), false);
    r = inner.ops->atomic(&inner, addr, amo, old_out);
    if (r == 0 && is_cached) {
        cache->counts.commands++;
        cache->counts.host_reads++;
        cache->counts.host_writes++;
    }
    return r;
}

static const struct emu_memory_ops cached_ops = {
    .name = "cached",
    .read = cached_read,
    .write = cached_write,
    .atomic = cached_atomic,
};

struct emu_memory emu_memory_cached(struct emu_amo_cache *cache, const struct emu_memory *inner, pid_t pid)
{
    struct emu_memory mem = *inner;

    assert(!inner->broken && !inner->segments && !inner->mover && pid != 0);
    mem.ops = &cached_ops;
    mem.pid = pid;
    mem.mover = cache;
    return mem;
}

void emu_amo_cache_forget(struct emu_amo_cache *cache, pid_t pid)
{
    flush(cache, pid, 0, UINT64_MAX, false);
}
