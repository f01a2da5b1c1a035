/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The timing wheel.
 *
 * A bucket is four lists of chunks of 14 events, 256 bytes each; a slot's events are therefore read and written in
 * the order of memory. Chunks come from slabs and go back to a free list, so in the steady state nothing is
 * allocated. A byte per bucket finds the next slot that has events.
 *
 * The heap holds what lies beyond the ring: packets that traffic announces long before, repetitions after long
 * time-outs. Invariant: no event in the heap lies within the ring. Source: G. Varghese, T. Lauck, "Hashed and
 * Hierarchical Timing Wheels", SOSP 1987 (scheme 4 with an overflow list).
 */
#include "emunic/fabric/sim/wheel.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define SLAB_CHUNKS      256
#define LARGE_SLAB_BYTES ((size_t)2 << 20) /* a large page */
#define LARGE_SLABS_FROM 16 /* slabs, of a wheel that would else take more time for addresses than for events */

static const struct emu_wheel_bucket no_events;

void emu_wheel_no_memory(void)
{
    fprintf(stderr, "emunic: out of memory in the packet simulator\n");
    abort();
}

static void *grown(void *memory, size_t bytes)
{
    void *bigger = realloc(memory, bytes);

    if (!bigger)
        emu_wheel_no_memory();
    return bigger;
}

int emu_wheel_init(struct emu_wheel *w, uint64_t n_slots)
{
    uint32_t n = 64;

    while (n < n_slots && n < 1u << 16)
        n *= 2;
    *w = (struct emu_wheel){ .n_slots = n };
    w->buckets = aligned_alloc(sizeof(*w->buckets), n * sizeof(*w->buckets));
    w->busy = calloc(n, sizeof(*w->busy));
    if (!w->buckets || !w->busy) {
        emu_wheel_fini(w);
        return -ENOMEM;
    }
    for (uint32_t i = 0; i < n; i++)
        w->buckets[i] = no_events;
    emu_wheel_add_slab(w);
    return 0;
}

void emu_wheel_fini(struct emu_wheel *w)
{
    for (size_t i = 0; i < w->n_slabs; i++)
        free(w->slabs[i]);
    free(w->slabs);
    free(w->far);
    free(w->busy);
    free(w->buckets);
    *w = (struct emu_wheel){ 0 };
}

size_t emu_wheel_memory(const struct emu_wheel *w)
{
    return w->n_slots * (sizeof(*w->buckets) + sizeof(*w->busy)) + w->slab_bytes + w->far_capacity * sizeof(*w->far);
}

void emu_wheel_add_slab(struct emu_wheel *w)
{
    bool is_large = w->n_slabs >= LARGE_SLABS_FROM;
    size_t bytes = is_large ? LARGE_SLAB_BYTES : SLAB_CHUNKS * sizeof(struct emu_wheel_chunk);
    struct emu_wheel_chunk *slab = aligned_alloc(is_large ? bytes : sizeof(*slab), bytes);

    if (!slab)
        emu_wheel_no_memory();
    if (is_large)
        (void)madvise(slab, bytes, MADV_HUGEPAGE); /* a wish */
    w->slabs = grown(w->slabs, (w->n_slabs + 1) * sizeof(struct emu_wheel_chunk *));
    w->slabs[w->n_slabs++] = slab;
    w->slab_bytes += bytes;
    for (size_t i = bytes / sizeof(*slab); i-- > 0;) {
        slab[i].next = w->free_chunks;
        w->free_chunks = &slab[i];
    }
}

static bool far_before(const struct emu_far_event *a, const struct emu_far_event *b)
{
    return a->slot < b->slot;
}

static void far_swap(struct emu_far_event *a, struct emu_far_event *b)
{
    struct emu_far_event t = *a;

    *a = *b;
    *b = t;
}

static void far_sink(struct emu_wheel *w, size_t i)
{
    for (;;) {
        size_t least = i;

        for (size_t child = 2 * i + 1; child <= 2 * i + 2 && child < w->n_far; child++) {
            if (far_before(&w->far[child], &w->far[least]))
                least = child;
        }
        if (least == i)
            return;
        far_swap(&w->far[i], &w->far[least]);
        i = least;
    }
}

struct emu_event *emu_wheel_place_far(struct emu_wheel *w, uint64_t slot)
{
    size_t i = w->n_far;

    if (w->n_far == w->far_capacity) {
        w->far_capacity = w->far_capacity == 0 ? 256 : w->far_capacity * 2;
        w->far = grown(w->far, w->far_capacity * sizeof(*w->far));
    }
    w->far[w->n_far++] = (struct emu_far_event){ .slot = slot };
    while (i > 0 && far_before(&w->far[i], &w->far[(i - 1) / 2])) {
        far_swap(&w->far[i], &w->far[(i - 1) / 2]);
        i = (i - 1) / 2;
    }
    return &w->far[i].event;
}

/* Are there no events in the slots whose numbers in the ring differ from this one in the last six bits only? */
static bool are_empty(const struct emu_wheel *w, uint32_t index)
{
    uint64_t eight[8];
    uint64_t any = 0;

    memcpy(eight, &w->busy[index & ~63u], sizeof(eight));
    for (uint32_t i = 0; i < 8; i++)
        any |= eight[i];
    return any == 0;
}

uint64_t emu_wheel_next(const struct emu_wheel *w)
{
    uint32_t start = (uint32_t)(w->now & (w->n_slots - 1));

    for (uint32_t i = 0; i < w->n_slots;) {
        uint32_t index = (start + i) & (w->n_slots - 1);

        if (w->busy[index] != 0)
            return w->now + i;
        i += index % 64 == 0 && are_empty(w, index) ? 64 : 1;
    }
    return w->n_far > 0 ? w->far[0].slot : UINT64_MAX;
}

void emu_wheel_advance(struct emu_wheel *w, uint64_t slot)
{
    w->now = slot;
    while (w->n_far > 0 && w->far[0].slot - w->now < w->n_slots) {
        struct emu_far_event first = w->far[0];

        w->far[0] = w->far[--w->n_far];
        far_sink(w, 0);
        emu_wheel_put(w, first.slot, first.event);
    }
}

struct emu_wheel_bucket emu_wheel_take(struct emu_wheel *w)
{
    uint32_t index = (uint32_t)(w->now & (w->n_slots - 1));
    struct emu_wheel_bucket bucket = w->buckets[index];
    const struct emu_wheel_bucket *next = &w->buckets[(index + 1) & (w->n_slots - 1)];

    for (size_t i = 0; i < EMU_WHEEL_LISTS; i++) { /* events that come next, from the last on */
        __builtin_prefetch(next->lists[i].cursor);
        __builtin_prefetch((const void *)((uintptr_t)next->lists[i].cursor - 64));
    }
    w->buckets[index] = no_events;
    w->busy[index] = 0;
    return bucket;
}

static void filter_list(struct emu_wheel *w, const struct emu_wheel_list *list, uint64_t slot,
                        bool (*keep)(void *ctx, const struct emu_event *event), void *ctx)
{
    for (struct emu_wheel_chunk *chunk = emu_wheel_newest(list); chunk; chunk = emu_wheel_done(w, chunk)) {
        size_t n = emu_wheel_count(list, chunk);

        for (size_t j = 0; j < n; j++) {
            if (keep(ctx, &chunk->events[j]))
                emu_wheel_put(w, slot, chunk->events[j]);
        }
    }
}

void emu_wheel_filter(struct emu_wheel *w, bool (*keep)(void *ctx, const struct emu_event *event), void *ctx)
{
    size_t n_kept = 0;

    for (uint32_t i = 0; i < w->n_slots; i++) {
        struct emu_wheel_bucket old = w->buckets[i];
        uint64_t slot = w->now + ((i - (uint32_t)w->now) & (w->n_slots - 1));

        w->buckets[i] = no_events;
        w->busy[i] = 0;
        for (size_t j = 0; j < EMU_WHEEL_LISTS; j++)
            filter_list(w, &old.lists[j], slot, keep, ctx);
    }
    for (size_t i = 0; i < w->n_far; i++) {
        if (keep(ctx, &w->far[i].event))
            w->far[n_kept++] = w->far[i];
    }
    w->n_far = n_kept;
    for (size_t i = n_kept / 2; i-- > 0;)
        far_sink(w, i);
}
