/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef EMUNIC_ENGINE_COMPLETION_QUEUE_H
#define EMUNIC_ENGINE_COMPLETION_QUEUE_H

#include <stdbool.h>
#include <stdint.h>

#include "emunic/abi/event.h"
#include "emunic/abi/segment.h"

enum emu_cq_result {
    EMU_CQ_OK = 0,
    EMU_CQ_EMPTY, /* nothing published at the head */
    EMU_CQ_FULL,  /* the event is lost and the overrun counter has moved */
};

/* Whom a producer tells that it has disarmed a queue: a completion channel hears of it. Embedded in its owner. */
struct emu_cq_alarm {
    /* `queue` is what the owner of the queue has written, reduced to an index. As the producer: it may be inside. */
    void (*ring)(struct emu_cq_alarm *alarm, uint32_t queue);
};

/* One producer's private view. Not to be shared between threads; any number of producers may feed one queue. */
struct emu_cq_producer {
    struct emu_cq_shm *shm;     /* borrowed from a mapped segment */
    uint64_t ring_entries;      /* private copies: what the segment says is never read again */
    uint64_t capacity;          /* for events of peers */
    uint64_t seen_head;         /* last look at the consumer's line */
    struct emu_cq_alarm *alarm; /* borrowed; NULL: the queue stays armed */
    bool wakes;                 /* the queue may have sleepers, or be armed */
};

/* The owner's private view. One thread at a time takes events; others may look whether there are any. */
struct emu_cq_consumer {
    struct emu_cq_shm *shm; /* borrowed */
    uint64_t ring_entries;
    _Atomic uint64_t head; /* events taken so far from the shared ring */
    uint64_t *own;         /* owned: a second ring as large, for the owner's own events; NULL until it is wanted */
    _Atomic uint64_t own_head;
    _Atomic uint64_t own_tail;
};

/* Writes the constant part of a queue into zeroed memory. capacity <= ring_entries, which is a power of two. */
void emu_cq_format(struct emu_cq_shm *shm, uint64_t ring_entries, uint64_t capacity);

void emu_cq_producer_init(struct emu_cq_producer *p, struct emu_cq_shm *shm, uint64_t ring_entries, uint64_t capacity,
                          bool wakes, struct emu_cq_alarm *alarm);
void emu_cq_consumer_init(struct emu_cq_consumer *c, struct emu_cq_shm *shm, uint64_t ring_entries);

/*
 * Appends an event of a peer (its top bit is ignored) in two halves: reserve a place, publish it. Between them nothing
 * may fail or take long: events of others behind that place wait for it. emu_cq_reserve() gives EMU_CQ_OK, or
 * EMU_CQ_FULL when the event is lost. Any thread or process, lock-free.
 */
static inline int emu_cq_reserve(struct emu_cq_producer *p, uint64_t *place_out);
static inline void emu_cq_publish(struct emu_cq_producer *p, uint64_t place, uint64_t event);

/* Both halves in one. */
static inline int emu_cq_push(struct emu_cq_producer *p, uint64_t event);

/*
 * The same for what is not a peer's to lose, completions of the owner and hints of the library: it may use all of the
 * ring, which can have more places than peers are given. And with so many places (emu_cq_places()).
 */
static inline int emu_cq_push_all(struct emu_cq_producer *p, uint64_t event);
static inline int emu_cq_push_of(struct emu_cq_producer *p, uint64_t places, uint64_t event);

static inline uint64_t emu_cq_places(const struct emu_cq_producer *p, bool is_a_peers)
{
    return is_a_peers ? p->capacity : p->ring_entries;
}

/* The overflow of a full queue without an event or a full queue: the overrun counter moves, sleepers wake. */
void emu_cq_lose(struct emu_cq_producer *p);

/*
 * Repair: puts the event into each place before `tail` that was reserved and never filled. Only when no producer can be
 * about to fill one of them. Number of places filled.
 */
unsigned emu_cq_fill_gaps(struct emu_cq_producer *p, uint64_t tail, uint64_t event);

/*
 * The owner's own event, by the thread that takes events: it stays in the process. False: take emu_cq_push(), because
 * the shared ring holds events already, which this one may not overtake, or there is no room. Not for queues with
 * sleepers.
 *
 * No locked instruction: one would wait until the stores before it, which go to a peer's cache lines, are done.
 */
static inline bool emu_cq_push_own(struct emu_cq_consumer *c, uint64_t event);

/* Makes room for them, without which emu_cq_push_own() says no. -ENOMEM. */
int emu_cq_add_own(struct emu_cq_consumer *c);

/* Gives that room back. */
void emu_cq_consumer_fini(struct emu_cq_consumer *c);

/* Takes the oldest event. EMU_CQ_OK or EMU_CQ_EMPTY. */
static inline int emu_cq_pop(struct emu_cq_consumer *c, uint64_t *event_out);

/* The event `ahead` places behind the oldest, which stays there. EMU_CQ_OK or EMU_CQ_EMPTY. Owner only. */
int emu_cq_peek(const struct emu_cq_consumer *c, uint64_t ahead, uint64_t *event_out);

/* News for sleepers, if there are enough of them, and for a completion channel: runs when there is either. */
void emu_cq_tell(struct emu_cq_producer *p);

/*
 * Arming: the next producer with news disarms the queue and rings its alarm, once. The owner writes the index that the
 * alarm shall tell. Then it must look at the queue: news from before do not count. Owner only, one thread at a time.
 */
static inline void emu_cq_arm(struct emu_cq_consumer *c, uint32_t queue);
/* True: nobody else has disarmed it. */
static inline bool emu_cq_disarm(struct emu_cq_consumer *c);
static inline bool emu_cq_is_armed(const struct emu_cq_consumer *c);

/* Is there an event? Any thread; may be out of date when it returns. */
static inline bool emu_cq_is_empty(const struct emu_cq_consumer *c);

/*
 * Number of events lost since the last call; clears it. Owner only. Events before them come first: 0 (and false) while
 * some wait, or are on their way from a producer that is slow or dead.
 */
static inline uint32_t emu_cq_take_overrun(struct emu_cq_consumer *c);
/* One of them. False: there is none. */
static inline bool emu_cq_take_loss(struct emu_cq_consumer *c);
static inline bool emu_cq_has_overrun(const struct emu_cq_consumer *c);
/* The same whatever waits before. */
static inline bool emu_cq_has_lost(const struct emu_cq_consumer *c);

/* ---- the short functions that every operation runs ---- */

static inline uint64_t emu_cq_lap_bit(uint64_t place, uint64_t ring_entries)
{
    return (place & ring_entries) ? 0 : EMU_EVENT_LAP;
}

static inline void emu_cq_look_for_sleepers(struct emu_cq_producer *p)
{
    if (!p->wakes)
        return;
    /* Pairs with the fence of a waiter between its store to `sleepers`, or `armed`, and its last look at the queue. */
    atomic_thread_fence(memory_order_seq_cst);
    if ((atomic_load_explicit(&p->shm->sleepers, memory_order_relaxed) |
         atomic_load_explicit(&p->shm->armed, memory_order_relaxed)) != 0)
        emu_cq_tell(p);
}

static inline void emu_cq_arm(struct emu_cq_consumer *c, uint32_t queue)
{
    atomic_store_explicit(&c->shm->armed, queue + 1, memory_order_relaxed);
    /* Pairs with the fence in emu_cq_look_for_sleepers(): we see the news, or their producer sees us armed. */
    atomic_thread_fence(memory_order_seq_cst);
}

static inline bool emu_cq_disarm(struct emu_cq_consumer *c)
{
    return atomic_exchange_explicit(&c->shm->armed, 0, memory_order_acquire) != 0;
}

static inline bool emu_cq_is_armed(const struct emu_cq_consumer *c)
{
    return atomic_load_explicit(&c->shm->armed, memory_order_acquire) != 0;
}

static inline int emu_cq_reserve_of(struct emu_cq_producer *p, uint64_t places, uint64_t *place_out)
{
    struct emu_cq_shm *shm = p->shm;
    uint64_t tail = atomic_load_explicit(&shm->tail, memory_order_relaxed);

    do {
        if (tail - p->seen_head >= places) { /* looks full: only now touch the consumer's line */
            p->seen_head = atomic_load_explicit(&shm->head, memory_order_acquire);
            if (tail - p->seen_head >= places) {
                atomic_fetch_add_explicit(&shm->overrun, 1, memory_order_release);
                emu_cq_look_for_sleepers(p);
                return EMU_CQ_FULL;
            }
        }
    } while (!atomic_compare_exchange_weak_explicit(&shm->tail, &tail, tail + 1, memory_order_relaxed,
                                                    memory_order_relaxed));
    *place_out = tail;
    return EMU_CQ_OK;
}

static inline int emu_cq_reserve(struct emu_cq_producer *p, uint64_t *place_out)
{
    return emu_cq_reserve_of(p, p->capacity, place_out);
}

static inline void emu_cq_publish(struct emu_cq_producer *p, uint64_t place, uint64_t event)
{
    event = (event & ~EMU_EVENT_LAP) | emu_cq_lap_bit(place, p->ring_entries);
    /* Pairs with the acquire in emu_cq_pop(): whoever sees the event sees the data it announces. */
    atomic_store_explicit(&p->shm->entries[place & (p->ring_entries - 1)], event, memory_order_release);
    emu_cq_look_for_sleepers(p);
}

static inline int emu_cq_push_of(struct emu_cq_producer *p, uint64_t places, uint64_t event)
{
    uint64_t place;
    int r = emu_cq_reserve_of(p, places, &place);

    if (r == EMU_CQ_OK)
        emu_cq_publish(p, place, event);
    return r;
}

static inline int emu_cq_push(struct emu_cq_producer *p, uint64_t event)
{
    return emu_cq_push_of(p, p->capacity, event);
}

static inline int emu_cq_push_all(struct emu_cq_producer *p, uint64_t event)
{
    return emu_cq_push_of(p, p->ring_entries, event);
}

/* Events in the second ring are older than any in the shared one: none is added there while that one holds any. */
static inline bool emu_cq_has_own(const struct emu_cq_consumer *c)
{
    return atomic_load_explicit(&c->own_head, memory_order_relaxed) !=
           atomic_load_explicit(&c->own_tail, memory_order_relaxed);
}

static inline bool emu_cq_shared_is_empty(const struct emu_cq_consumer *c)
{
    uint64_t head = atomic_load_explicit(&c->head, memory_order_relaxed);
    uint64_t event = atomic_load_explicit(&c->shm->entries[head & (c->ring_entries - 1)], memory_order_acquire);

    return (event & EMU_EVENT_LAP) != emu_cq_lap_bit(head, c->ring_entries);
}

static inline bool emu_cq_is_empty(const struct emu_cq_consumer *c)
{
    return !emu_cq_has_own(c) && emu_cq_shared_is_empty(c);
}

static inline bool emu_cq_push_own(struct emu_cq_consumer *c, uint64_t event)
{
    uint64_t tail = atomic_load_explicit(&c->own_tail, memory_order_relaxed);

    if (!c->own || tail - atomic_load_explicit(&c->own_head, memory_order_relaxed) >= c->ring_entries ||
        !emu_cq_shared_is_empty(c))
        return false;
    c->own[tail & (c->ring_entries - 1)] = event & ~EMU_EVENT_LAP;
    atomic_store_explicit(&c->own_tail, tail + 1, memory_order_relaxed);
    return true;
}

static inline bool emu_cq_has_lost(const struct emu_cq_consumer *c)
{
    return atomic_load_explicit(&c->shm->overrun, memory_order_relaxed) != 0;
}

static inline bool emu_cq_has_overrun(const struct emu_cq_consumer *c)
{
    return emu_cq_has_lost(c) && atomic_load_explicit(&c->shm->tail, memory_order_acquire) ==
                                     atomic_load_explicit(&c->head, memory_order_relaxed);
}

static inline uint32_t emu_cq_take_overrun(struct emu_cq_consumer *c)
{
    if (!emu_cq_has_overrun(c))
        return 0;
    return atomic_exchange_explicit(&c->shm->overrun, 0, memory_order_acquire);
}

static inline bool emu_cq_take_loss(struct emu_cq_consumer *c)
{
    if (!emu_cq_has_overrun(c))
        return false;
    atomic_fetch_sub_explicit(&c->shm->overrun, 1, memory_order_acquire);
    return true;
}

static inline int emu_cq_pop(struct emu_cq_consumer *c, uint64_t *event_out)
{
    uint64_t head;
    uint64_t event;

    if (emu_cq_has_own(c)) {
        head = atomic_load_explicit(&c->own_head, memory_order_relaxed);
        *event_out = c->own[head & (c->ring_entries - 1)];
        atomic_store_explicit(&c->own_head, head + 1, memory_order_relaxed);
        return EMU_CQ_OK;
    }
    head = atomic_load_explicit(&c->head, memory_order_relaxed);
    event = atomic_load_explicit(&c->shm->entries[head & (c->ring_entries - 1)], memory_order_acquire);
    if ((event & EMU_EVENT_LAP) != emu_cq_lap_bit(head, c->ring_entries))
        return EMU_CQ_EMPTY;
    atomic_store_explicit(&c->head, head + 1, memory_order_relaxed);
    /* Pairs with the acquire in emu_cq_reserve(): the place is free once we have read it. */
    atomic_store_explicit(&c->shm->head, head + 1, memory_order_release);
    *event_out = event & ~EMU_EVENT_LAP;
    return EMU_CQ_OK;
}

#endif
