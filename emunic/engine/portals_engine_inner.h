/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Inside the engine's Portals modules: how events get into a queue and out of it, and what is counted of a descriptor.
 * For portals_engine.c (the target's side), portals_initiator.c and portals_queue.c. All of it expects the lock of the
 * interface to be held, but for load_event().
 */
#ifndef EMUNIC_ENGINE_PORTALS_ENGINE_INNER_H
#define EMUNIC_ENGINE_PORTALS_ENGINE_INNER_H

#include <string.h>

#include "emunic/engine/portals_engine.h"

/* ---- queues ---- */

static inline struct emu_ptl_eq *eq_of(struct emu_ptl_ni *ni, uint32_t eq, uint32_t generation)
{
    struct emu_ptl_eq *e = eq < EMU_PTL_EQS ? &ni->eqs[eq] : NULL;

    return e && e->state == EMU_PTL_LIVE && e->generation == generation ? e : NULL;
}

#define EVENT_WORDS (sizeof(struct emu_ptl_event) / 8)
#define FIRST_LINE  (EMU_CACHE_LINE / 8) /* words in it */

/* A loop over the words of a line: without its counters it has a third of the instructions. */
#ifdef __clang__
#define EACH_WORD _Pragma("clang loop unroll(full)")
#else
#define EACH_WORD _Pragma("GCC unroll 16")
#endif

/*
 * Event number `seq` into its place, word by word, because the consumer may be reading what is overwritten. words[0]
 * means nothing. Who reads any of the new words does not find the old numbers behind them.
 */
static inline void store_event(struct emu_ptl_event *slot, uint64_t seq, const uint64_t *words)
{
    _Atomic uint64_t *to = (_Atomic uint64_t *)slot;

    /* The second line. Pairs with the first fence in load_event(). */
    atomic_store_explicit(&to[EVENT_WORDS - 1], (words[EVENT_WORDS - 1] & UINT32_MAX) | seq << 32,
                          memory_order_relaxed);
    atomic_thread_fence(memory_order_release);
    EACH_WORD
    for (unsigned i = FIRST_LINE; i < EVENT_WORDS - 1; i++)
        atomic_store_explicit(&to[i], words[i], memory_order_relaxed);
    /* The first one. Pairs with the second fence. */
    atomic_store_explicit(&slot->seq, EMU_PTL_SEQ_WRITTEN, memory_order_relaxed);
    atomic_thread_fence(memory_order_release);
    EACH_WORD
    for (unsigned i = 1; i < FIRST_LINE; i++)
        atomic_store_explicit(&to[i], words[i], memory_order_relaxed);
    /* Pairs with the acquire in emu_ptl_take(): the event, and the data that it tells of, before its number. */
    atomic_store_explicit(&slot->seq, seq, memory_order_release);
}

/* False: it was overwritten meanwhile. */
static inline bool load_event(const struct emu_ptl_event *slot, uint64_t seq, struct emu_ptl_event *to)
{
    _Atomic uint64_t *from = (_Atomic uint64_t *)(uintptr_t)slot;
    uint64_t word = seq;

    /* Straight to where it is read: copied as a whole, it would wait until the words had left the store buffer. */
    memcpy(to, &word, sizeof(word));
    EACH_WORD
    for (unsigned i = 1; i < EVENT_WORDS - 1; i++) {
        word = atomic_load_explicit(&from[i], memory_order_relaxed);
        memcpy((uint8_t *)to + i * sizeof(word), &word, sizeof(word));
    }
    atomic_thread_fence(memory_order_acquire);
    word = atomic_load_explicit(&from[EVENT_WORDS - 1], memory_order_relaxed);
    memcpy((uint8_t *)to + (EVENT_WORDS - 1) * sizeof(word), &word, sizeof(word));
    if ((uint32_t)(word >> 32) != (uint32_t)seq)
        return false;
    atomic_thread_fence(memory_order_acquire);
    return atomic_load_explicit(&slot->seq, memory_order_relaxed) == seq;
}

/* A queue's places, its words looked at once. */
struct ring {
    struct emu_ptl_event *slots;
    uint64_t tail;
    uint32_t mask;
};

static inline bool open_ring(struct emu_ptl_ni *ni, struct emu_ptl_eq *e, struct ring *ring)
{
    uint32_t capacity = e->capacity;
    uint64_t ring_off = e->ring_off;

    if (capacity == 0 || (capacity & (capacity - 1)) != 0 || ring_off % sizeof(struct emu_ptl_event) != 0 ||
        ring_off > EMU_PTL_ARENA_BYTES ||
        (uint64_t)capacity * sizeof(struct emu_ptl_event) > EMU_PTL_ARENA_BYTES - ring_off)
        return false;
    *ring = (struct ring){ (struct emu_ptl_event *)(ni->arena + ring_off),
                           atomic_load_explicit(&e->tail, memory_order_relaxed), capacity - 1 };
    return true;
}

static inline void append(struct emu_ptl_eq *e, struct ring *ring, const uint64_t *words)
{
    store_event(&ring->slots[ring->tail & ring->mask], ring->tail + 1, words);
    ring->tail++;
    atomic_store_explicit(&e->tail, ring->tail, memory_order_release);
}

/* After events. */
static inline void note_news(struct emu_ptl_ni *ni)
{
    if (atomic_load_explicit(&ni->waiting, memory_order_relaxed) != 0)
        atomic_store_explicit(&ni->waiting, EMU_PTL_NEWS, memory_order_relaxed);
}

/* ---- descriptors ---- */

static inline struct emu_ptl_md *live_md(struct emu_ptl_ni *ni, uint32_t index, uint32_t generation)
{
    struct emu_ptl_md *md = index < EMU_PTL_MDS ? &ni->mds[index] : NULL;

    return md && md->state == EMU_PTL_LIVE && md->generation == generation ? md : NULL;
}

static inline bool is_active(const struct emu_ptl_md *md)
{
    return md->threshold != 0 && (md->flags & (EMU_PTL_MD_INACTIVE | EMU_PTL_MD_WAS_ENDED)) == 0;
}

static inline bool has_unlink_event(const struct emu_ptl_ni *ni, const struct emu_ptl_md *md)
{
    if (md->flags & EMU_PTL_MD_WAS_ENDED) /* the last END says it */
        return (md->options & EMU_PTL_MD_END_DISABLE) != 0;
    if (ni->behaviour & EMU_PTL_UNLINK_ON_DEMAND)
        return (md->options & EMU_PTL_MD_AUTO_UNLINK_EVENT) != 0;
    return (~md->options & (EMU_PTL_MD_START_DISABLE | EMU_PTL_MD_END_DISABLE)) != 0;
}

/* Has its last operation ended? */
static inline bool is_used_up(const struct emu_ptl_md *md)
{
    if (md->pending != 0)
        return false;
    if (md->flags & EMU_PTL_MD_WAS_ENDED)
        return true;
    return (md->flags & EMU_PTL_MD_UNLINKS) != 0 && md->awaits == 0 && !is_active(md);
}

/* The owner takes it away when it next comes by. To be done twice does no harm. */
static inline void mark_dead(struct emu_ptl_ni *ni, uint32_t index)
{
    ni->dead[ni->n_dead % EMU_PTL_MDS] = index;
    ni->n_dead++;
    ni->mds[index].state = EMU_PTL_DEAD;
}

/* What all events of a descriptor say about it. */
static inline void describe(struct emu_ptl_event *event, const struct emu_ptl_md *md, int32_t threshold)
{
    event->md_handle = md->handle;
    event->threshold = threshold;
    event->options = md->options;
    event->start = md->start;
    event->length = md->length;
    event->max_size = md->max_size;
    event->user_ptr = md->user_ptr;
    event->eq_handle = md->eq_handle;
}

/*
 * Is the END event of the operation that is ending the descriptor's last word? It was unlinked by the program
 * meanwhile; or it is used up, and kernel programs are told so by that event where there is no UNLINK event.
 */
static inline bool goes_with_this(const struct emu_ptl_md *md)
{
    if (md->pending != 1)
        return false;
    if ((md->flags & EMU_PTL_MD_WAS_ENDED) != 0)
        return true;
    return (md->options & (EMU_PTL_MD_LUSTRE | EMU_PTL_MD_AUTO_UNLINK_EVENT)) == EMU_PTL_MD_LUSTRE &&
           (md->flags & EMU_PTL_MD_UNLINKS) != 0 && md->awaits == 0 && !is_active(md);
}

/* One operation less. The threshold to be shown. */
static inline int32_t count_down(const struct emu_ptl_ni *ni, struct emu_ptl_md *md)
{
    int32_t before = md->threshold;

    if (before > 0) {
        md->threshold = before - 1;
        if (md->threshold == 0)
            md->flags |= EMU_PTL_MD_INACTIVE;
    }
    return (ni->behaviour & EMU_PTL_THRESHOLD_BEFORE) ? before : md->threshold;
}

/* An operation more, or one less, is going on. */
static inline void count_open(struct emu_ptl_ni *ni, bool is_new)
{
    if (!is_new) {
        ni->n_open -= ni->n_open > 0;
        return;
    }
    ni->n_open++;
    if (ni->n_open_max < ni->n_open)
        ni->n_open_max = ni->n_open;
}

static inline void post_unlink(struct emu_ptl_ni *ni, uint32_t eq, uint32_t generation,
                               const struct emu_ptl_event *last)
{
    struct emu_ptl_event event = *last;

    event.kind = EMU_PTL_EVENT_UNLINK;
    event.fail = 0;
    event.unlinked = (event.options & EMU_PTL_MD_LUSTRE) != 0;
    emu_ptl_post(ni, eq, generation, &event);
}

/* After an operation of the initiator's side has ended, or a dead process's brief one. */
static inline void unlink_if_used_up(struct emu_ptl_ni *ni, uint32_t index, const struct emu_ptl_event *last)
{
    struct emu_ptl_md *md = &ni->mds[index];

    if (!is_used_up(md))
        return;
    mark_dead(ni, index);
    if (has_unlink_event(ni, md))
        post_unlink(ni, md->eq, md->eq_generation, last);
}

#endif
