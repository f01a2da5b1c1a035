/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Portals: matching and delivery.
 *
 *   request -> match -> begin (threshold, offset, pending; START) -> data -> end (END, pending; dead, UNLINK)
 *
 * Matching walks the packed list of its portal index: two entries to a cache line, in the order of the list, holes where
 * entries have gone. Only an entry whose criteria fit leads to its descriptor. A descriptor that does not accept lets the
 * search go on.
 *
 * Queues overwrite their oldest event when they are full, so nobody who posts ever looks at the consumer. An event's `seq` is
 * taken away before it is overwritten and given back after; a consumer that meets it in between looks again. Queues begin at
 * different places (in steps of 2^32), so an event of an earlier queue in the same memory is never taken for a new one.
 *
 * What costs time between two processes are the lines of an interface that go from one core to the other. A put writes the
 * lock's line, its flight's, the queue's and the two of the event, and the descriptor's only if its words change; the owner
 * that polls reads the event's two alone, and when it sends itself none of those that others write. So a put that answers
 * a put waits for two lines, both under way at the same time. The poll reads the first one, so the second is written before,
 * with a number of its own, and then the first in one go: a poll in between would take the line away once more.
 *
 * Whoever runs the engine may die anywhere. A flight says how far it has come; emu_ptl_repair() ends it: what is not visible
 * yet is put back, what is visible becomes a failed operation. Each stage is stored before its first change.
 *
 * A brief operation (a small put) is done under one hold of the lock. Its flight keeps no event, unless UNLINK is to come: if
 * none of its events is in the queue, it never was; if START is there, END is made of it.
 *
 * Where the two dialects differ, the interface's `behaviour` decides: that of the library whose descriptor it is.
 * Source: spec portals3.md 1.4 to 1.10, 5.
 */
#include "emunic/engine/portals.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define TAKE_TRIES 64

/* ---- waking ---- */

void emu_ptl_wake(struct emu_ptl_ni *ni)
{
    syscall(SYS_futex, &ni->waiting, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
}

/* ---- queues ---- */

static struct emu_ptl_eq *eq_of(struct emu_ptl_ni *ni, uint32_t eq, uint32_t generation)
{
    struct emu_ptl_eq *e = eq < EMU_PTL_EQS ? &ni->eqs[eq] : NULL;

    return e && e->state == EMU_PTL_LIVE && e->generation == generation ? e : NULL;
}

static uint64_t tail_of(struct emu_ptl_ni *ni, uint32_t eq, uint32_t generation)
{
    const struct emu_ptl_eq *e = eq_of(ni, eq, generation);

    return e ? atomic_load_explicit(&e->tail, memory_order_relaxed) : 0;
}

#define EVENT_WORDS (sizeof(struct emu_ptl_event) / 8)
#define FIRST_LINE  (EMU_CACHE_LINE / 8)    /* words in it */

/*
 * Event number `seq` into its place, word by word, because the consumer may be reading what is overwritten. words[0] means
 * nothing. Who reads any of the new words does not find the old numbers behind them.
 */
static void store_event(struct emu_ptl_event *slot, uint64_t seq, const uint64_t *words)
{
    _Atomic uint64_t *to = (_Atomic uint64_t *)slot;

    /* The second line. Pairs with the first fence in load_event(). */
    atomic_store_explicit(&to[EVENT_WORDS - 1], (words[EVENT_WORDS - 1] & UINT32_MAX) | seq << 32, memory_order_relaxed);
    atomic_thread_fence(memory_order_release);
    for (unsigned i = FIRST_LINE; i < EVENT_WORDS - 1; i++)
        atomic_store_explicit(&to[i], words[i], memory_order_relaxed);
    /* The first one. Pairs with the second fence. */
    atomic_store_explicit(&slot->seq, EMU_PTL_SEQ_WRITTEN, memory_order_relaxed);
    atomic_thread_fence(memory_order_release);
    for (unsigned i = 1; i < FIRST_LINE; i++)
        atomic_store_explicit(&to[i], words[i], memory_order_relaxed);
    /* Pairs with the acquire in emu_ptl_take(): the event, and the data that it tells of, before its number. */
    atomic_store_explicit(&slot->seq, seq, memory_order_release);
}

/* False: it was overwritten meanwhile. */
static bool load_event(const struct emu_ptl_event *slot, uint64_t seq, struct emu_ptl_event *to)
{
    _Atomic uint64_t *from = (_Atomic uint64_t *)(uintptr_t)slot;
    uint64_t words[EVENT_WORDS];

    words[0] = seq;
    for (unsigned i = 1; i < EVENT_WORDS - 1; i++)
        words[i] = atomic_load_explicit(&from[i], memory_order_relaxed);
    atomic_thread_fence(memory_order_acquire);
    words[EVENT_WORDS - 1] = atomic_load_explicit(&from[EVENT_WORDS - 1], memory_order_relaxed);
    if ((uint32_t)(words[EVENT_WORDS - 1] >> 32) != (uint32_t)seq)
        return false;
    memcpy(to, words, sizeof(words));
    atomic_thread_fence(memory_order_acquire);
    return atomic_load_explicit(&slot->seq, memory_order_relaxed) == seq;
}

/* Has the processor get a line for writing. Any address may be named. */
static void prefetch_for_write(const void *addr)
{
    __asm__ volatile("prefetchw %0" : : "m"(*(const char *)addr));
}

/* A queue's places, its words looked at once. */
struct ring {
    struct emu_ptl_event *slots;
    uint64_t tail;
    uint32_t mask;
};

static bool open_ring(struct emu_ptl_ni *ni, struct emu_ptl_eq *e, struct ring *ring)
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

static void append(struct emu_ptl_eq *e, struct ring *ring, const uint64_t *words)
{
    store_event(&ring->slots[ring->tail & ring->mask], ring->tail + 1, words);
    ring->tail++;
    atomic_store_explicit(&e->tail, ring->tail, memory_order_release);
}

/* After events. */
static void note_news(struct emu_ptl_ni *ni)
{
    if (atomic_load_explicit(&ni->waiting, memory_order_relaxed) != 0)
        atomic_store_explicit(&ni->waiting, EMU_PTL_NEWS, memory_order_relaxed);
}

void emu_ptl_expect(struct emu_ptl_ni *ni, const struct emu_ptl_taker *taker)
{
    struct emu_ptl_eq *e = taker->md.eq < EMU_PTL_EQS ? &ni->eqs[taker->md.eq] : NULL;
    const uint8_t *slot;
    struct ring ring;

    if (!e || !open_ring(ni, e, &ring))
        return;
    slot = (const uint8_t *)&ring.slots[ring.tail & ring.mask];
    prefetch_for_write(slot + EMU_CACHE_LINE);
    prefetch_for_write(slot);
}

void emu_ptl_post(struct emu_ptl_ni *ni, uint32_t eq, uint32_t eq_generation, const struct emu_ptl_event *event)
{
    struct emu_ptl_eq *e = eq_of(ni, eq, eq_generation);
    uint64_t words[EVENT_WORDS];
    struct ring ring;

    if (!e || !open_ring(ni, e, &ring))
        return;
    memcpy(words, event, sizeof(words));
    append(e, &ring, words);
    note_news(ni);
}

/* Moves the head to the oldest event that is still there. False: nothing was lost. */
static bool skip_lost(const struct emu_ptl_eq *eq, uint32_t capacity, struct emu_ptl_head *head)
{
    uint64_t tail = atomic_load_explicit(&eq->tail, memory_order_acquire);

    if (tail - head->at <= capacity || tail < head->at)
        return false;
    *head = (struct emu_ptl_head){ tail - capacity, true };
    return true;
}

enum emu_ptl_take emu_ptl_take(const struct emu_ptl_eq *eq, const struct emu_ptl_event *ring, uint32_t capacity,
                               struct emu_ptl_head *head, bool stays, struct emu_ptl_event *event_out)
{
    struct emu_ptl_head after;

    for (int tries = 0; tries < TAKE_TRIES; tries++) {
        const struct emu_ptl_event *slot = &ring[head->at & (capacity - 1)];
        uint64_t seq = atomic_load_explicit(&slot->seq, memory_order_acquire);
        enum emu_ptl_take taken = head->has_lost ? EMU_PTL_EVENT_AFTER_LOSS : EMU_PTL_EVENT;

        /* Who polls has the second line as soon as the first. */
        __builtin_prefetch((const uint8_t *)slot + EMU_CACHE_LINE);
        if (seq == head->at + 1) {
            if (load_event(slot, seq, event_out)) {
                after = (struct emu_ptl_head){ head->at + 1, event_out->kind == EMU_PTL_EVENT_LOST };
                if (after.has_lost || !stays)
                    *head = after;
                if (after.has_lost)
                    continue;
                return taken;
            }
        } else if (seq != EMU_PTL_SEQ_WRITTEN && seq < head->at + 1) {
            break;              /* of an earlier lap, or of an earlier queue, or never used */
        }
        if (!skip_lost(eq, capacity, head))
            break;              /* being written */
    }
    return EMU_PTL_NO_EVENT;
}

/* ---- descriptors ---- */

static struct emu_ptl_md *live_md(struct emu_ptl_ni *ni, uint32_t index, uint32_t generation)
{
    struct emu_ptl_md *md = index < EMU_PTL_MDS ? &ni->mds[index] : NULL;

    return md && md->state == EMU_PTL_LIVE && md->generation == generation ? md : NULL;
}

static bool is_active(const struct emu_ptl_md *md)
{
    return md->threshold != 0 && (md->flags & (EMU_PTL_MD_INACTIVE | EMU_PTL_MD_WAS_ENDED)) == 0;
}

static bool has_unlink_event(const struct emu_ptl_ni *ni, const struct emu_ptl_md *md)
{
    if (md->flags & EMU_PTL_MD_WAS_ENDED)       /* the last END says it */
        return (md->options & EMU_PTL_MD_END_DISABLE) != 0;
    if (ni->behaviour & EMU_PTL_UNLINK_ON_DEMAND)
        return (md->options & EMU_PTL_MD_AUTO_UNLINK_EVENT) != 0;
    return (~md->options & (EMU_PTL_MD_START_DISABLE | EMU_PTL_MD_END_DISABLE)) != 0;
}

/* Has its last operation ended? */
static bool is_used_up(const struct emu_ptl_md *md)
{
    if (md->pending != 0)
        return false;
    if (md->flags & EMU_PTL_MD_WAS_ENDED)
        return true;
    return (md->flags & EMU_PTL_MD_UNLINKS) != 0 && md->awaits == 0 && !is_active(md);
}

/* The owner takes it away when it next comes by. To be done twice does no harm. */
static void mark_dead(struct emu_ptl_ni *ni, uint32_t index)
{
    ni->dead[ni->n_dead % EMU_PTL_MDS] = index;
    ni->n_dead++;
    ni->mds[index].state = EMU_PTL_DEAD;
}

/* What all events of a descriptor say about it. */
static void describe(struct emu_ptl_event *event, const struct emu_ptl_md *md, int32_t threshold)
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
 * Is the END event of the operation that is ending the descriptor's last word? It was unlinked by the program meanwhile; or it
 * is used up, and kernel programs are told so by that event where there is no UNLINK event.
 */
static bool goes_with_this(const struct emu_ptl_md *md)
{
    if (md->pending != 1)
        return false;
    if ((md->flags & EMU_PTL_MD_WAS_ENDED) != 0)
        return true;
    return (md->options & (EMU_PTL_MD_LUSTRE | EMU_PTL_MD_AUTO_UNLINK_EVENT)) == EMU_PTL_MD_LUSTRE &&
           (md->flags & EMU_PTL_MD_UNLINKS) != 0 && md->awaits == 0 && !is_active(md);
}

/* One operation less. The threshold to be shown. */
static int32_t count_down(const struct emu_ptl_ni *ni, struct emu_ptl_md *md)
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
static void count_open(struct emu_ptl_ni *ni, bool is_new)
{
    if (!is_new) {
        ni->n_open -= ni->n_open > 0;
        return;
    }
    ni->n_open++;
    if (ni->n_open_max < ni->n_open)
        ni->n_open_max = ni->n_open;
}

static void promise(struct emu_ptl_ni *ni, uint32_t eq, uint32_t generation, int change)
{
    struct emu_ptl_eq *e = eq_of(ni, eq, generation);

    if (e && (change > 0 || e->promised > 0))
        e->promised += (uint32_t)change;
}

static void post_unlink(struct emu_ptl_ni *ni, uint32_t eq, uint32_t generation, const struct emu_ptl_event *last)
{
    struct emu_ptl_event event = *last;

    event.kind = EMU_PTL_EVENT_UNLINK;
    event.fail = 0;
    event.unlinked = (event.options & EMU_PTL_MD_LUSTRE) != 0;
    emu_ptl_post(ni, eq, generation, &event);
}

/* After an operation of the initiator's side has ended. */
static void unlink_if_used_up(struct emu_ptl_ni *ni, uint32_t index, const struct emu_ptl_event *last)
{
    struct emu_ptl_md *md = &ni->mds[index];

    if (!is_used_up(md))
        return;
    mark_dead(ni, index);
    if (has_unlink_event(ni, md))
        post_unlink(ni, md->eq, md->eq_generation, last);
}

/* ---- matching ---- */

static uint64_t align_up(uint64_t n, uint64_t to)
{
    return (n + to - 1) & ~(to - 1);
}

static bool accepts(struct emu_ptl_ni *ni, uint32_t index, const struct emu_ptl_request *rq, struct emu_ptl_taker *taker)
{
    static const uint32_t needed[] = {
        [EMU_PTL_PUT] = EMU_PTL_MD_OP_PUT,
        [EMU_PTL_GET] = EMU_PTL_MD_OP_GET,
        [EMU_PTL_GETPUT] = EMU_PTL_MD_OP_PUT | EMU_PTL_MD_OP_GET,
    };
    struct emu_ptl_md *md = &taker->md;
    uint64_t room;

    if (index >= EMU_PTL_MDS)
        return false;
    *md = ni->mds[index];
    if (md->state != EMU_PTL_LIVE || !is_active(md) || (~md->options & needed[rq->kind]) != 0)
        return false;
    taker->offset = (md->options & EMU_PTL_MD_MANAGE_REMOTE) ? rq->offset : md->local_offset;
    if (taker->offset > md->length_bytes)
        return false;
    room = md->length_bytes - taker->offset;
    if (rq->length_bytes > room && (md->options & EMU_PTL_MD_TRUNCATE) == 0)
        return false;
    if ((md->options & (EMU_PTL_MD_MAX_SIZE | EMU_PTL_MD_MANAGE_REMOTE | EMU_PTL_MD_TRUNCATE)) == EMU_PTL_MD_MAX_SIZE &&
        rq->length_bytes > md->max_size)
        return false;
    if (rq->kind == EMU_PTL_GETPUT && rq->length_bytes > ni->max_getput)
        return false;
    taker->index = index;
    taker->mlength = rq->length_bytes < room ? rq->length_bytes : room;
    taker->acks = rq->kind == EMU_PTL_PUT && rq->wants_ack && (md->options & EMU_PTL_MD_ACK_DISABLE) == 0;
    return true;
}

static bool find_taker(struct emu_ptl_ni *ni, const struct emu_ptl_request *rq, struct emu_ptl_taker *taker)
{
    const struct emu_ptl_place *places = ni->places[rq->pt];
    uint32_t first = ni->lists[rq->pt].first;
    uint32_t end = ni->lists[rq->pt].end;
    const uint64_t bits = rq->bits;

    if (first > end || end > EMU_PTL_PLACES)
        return false;
    for (uint32_t i = first; i < end; i++) {
        const struct emu_ptl_place *place = &places[i];

        if (((place->bits ^ bits) & ~place->ignore) != 0)
            continue;
        if (place->md != EMU_PTL_NONE && (place->nid == EMU_PTL_NID_ANY || place->nid == rq->nid) &&
            (place->pid == EMU_PTL_PID_ANY || place->pid == rq->pid) && accepts(ni, place->md, rq, taker))
            return true;
    }
    return false;
}

static bool is_any_or(uint32_t wanted, uint32_t value)
{
    return wanted == UINT32_MAX || wanted == value;
}

static bool is_admitted(const struct emu_ptl_ni *ni, const struct emu_ptl_request *rq)
{
    const struct emu_ptl_ace *ace = &ni->aces[rq->ac];

    return (ni->behaviour & EMU_PTL_ACCESS_CONTROL) == 0 ||
           (is_any_or(ace->nid, rq->nid) && is_any_or(ace->pid, rq->pid) && is_any_or(ace->uid, rq->uid) &&
            is_any_or(ace->jid, rq->jid) && is_any_or(ace->pt, rq->pt));
}

bool emu_ptl_is_cut_off(struct emu_ptl_ni *ni, uint32_t nid)
{
    uint32_t n = ni->n_fails < EMU_PTL_FAILS ? ni->n_fails : EMU_PTL_FAILS;

    for (uint32_t i = 0; i < n; i++) {
        struct emu_ptl_fail *fail = &ni->fails[i];

        if (fail->count == 0 || (fail->nid != EMU_PTL_NID_ANY && fail->nid != nid))
            continue;
        if (fail->count > 0)
            fail->count--;
        return true;
    }
    return false;
}

enum emu_ptl_result emu_ptl_match(struct emu_ptl_ni *ni, const struct emu_ptl_request *rq, struct emu_ptl_taker *taker_out)
{
    if (ni->n_fails > 0 && emu_ptl_is_cut_off(ni, rq->nid))
        return EMU_PTL_LOST;
    if (ni->is_up && rq->pt <= ni->max_pt && rq->pt < EMU_PTL_PTS && rq->ac <= ni->max_ac && rq->ac < EMU_PTL_ACES &&
        is_admitted(ni, rq) && find_taker(ni, rq, taker_out))
        return EMU_PTL_TAKEN;
    ni->drops++;
    ni->dropped_bytes += rq->length_bytes;
    return EMU_PTL_DROPPED;
}

/* ---- begin and end ---- */

static const uint8_t end_kinds[] = {
    [EMU_PTL_PUT] = EMU_PTL_EVENT_PUT_END,
    [EMU_PTL_GET] = EMU_PTL_EVENT_GET_END,
    [EMU_PTL_GETPUT] = EMU_PTL_EVENT_GETPUT_END,
};

static void set_stage(struct emu_ptl_flight *flight, enum emu_ptl_stage stage)
{
    /* Who repairs reads it after the death: the order in which this processor's stores become visible is enough. */
    atomic_store_explicit(&flight->stage, stage, memory_order_release);
    atomic_signal_fence(memory_order_seq_cst);
}

/* Before `eq_tail` says something else: who repairs must not post it once more. */
static void has_posted(struct emu_ptl_flight *flight, uint32_t what)
{
    atomic_signal_fence(memory_order_seq_cst);
    flight->flags &= ~what;
    atomic_signal_fence(memory_order_seq_cst);
}

static void post_start(struct emu_ptl_ni *ni, const struct emu_ptl_flight *flight)
{
    struct emu_ptl_event start = flight->event;

    start.kind--;       /* each START stands before its END */
    emu_ptl_post(ni, flight->eq, flight->eq_generation, &start);
}

/* The words of a descriptor that has taken a request. The threshold to be shown. */
static int32_t take(const struct emu_ptl_ni *ni, struct emu_ptl_md *md, uint64_t mlength)
{
    int32_t shown;

    if ((md->options & EMU_PTL_MD_MANAGE_REMOTE) == 0)
        md->local_offset += (md->options & EMU_PTL_MD_LOCAL_ALIGN8) ? align_up(mlength, 8) : mlength;
    shown = count_down(ni, md);
    if ((md->options & (EMU_PTL_MD_MAX_SIZE | EMU_PTL_MD_MANAGE_REMOTE)) == EMU_PTL_MD_MAX_SIZE &&
        (md->local_offset > md->length_bytes || md->length_bytes - md->local_offset < md->max_size))
        md->flags |= EMU_PTL_MD_INACTIVE;
    return shown;
}

void emu_ptl_begin(struct emu_ptl_ni *ni, const struct emu_ptl_request *rq, const struct emu_ptl_taker *taker,
                   uint32_t port_generation, struct emu_ptl_flight *flight)
{
    struct emu_ptl_md *md = &ni->mds[taker->index];
    struct emu_ptl_eq *e = eq_of(ni, taker->md.eq, taker->md.eq_generation);
    int32_t shown;

    flight->generation = port_generation;
    flight->md = taker->index;
    flight->md_generation = taker->md.generation;
    flight->eq = e ? taker->md.eq : EMU_PTL_NONE;
    flight->eq_generation = taker->md.eq_generation;
    flight->eq_tail = e ? atomic_load_explicit(&e->tail, memory_order_relaxed) : 0;
    flight->old_offset = taker->md.local_offset;
    flight->old_threshold = taker->md.threshold;
    flight->old_pending = taker->md.pending;
    flight->old_flags = taker->md.flags;
    flight->old_promised = e ? e->promised : 0;
    flight->flags = (taker->acks ? EMU_PTL_FLIGHT_ACKS : 0);
    if (e && (taker->md.options & EMU_PTL_MD_START_DISABLE) == 0)
        flight->flags |= EMU_PTL_FLIGHT_START;
    if (e && (taker->md.options & EMU_PTL_MD_END_DISABLE) == 0)
        flight->flags |= EMU_PTL_FLIGHT_END | EMU_PTL_FLIGHT_PROMISED;
    set_stage(flight, EMU_PTL_PREPARED);
    md->pending++;
    shown = take(ni, md, taker->mlength);
    if (e && (flight->flags & EMU_PTL_FLIGHT_PROMISED) == 0 && !is_active(md) && (md->flags & EMU_PTL_MD_UNLINKS) != 0 &&
        has_unlink_event(ni, md))
        flight->flags |= EMU_PTL_FLIGHT_PROMISED;       /* UNLINK will come */
    if (flight->flags & EMU_PTL_FLIGHT_PROMISED)
        e->promised++;
    flight->event = (struct emu_ptl_event){
        .kind = end_kinds[rq->kind],
        .link = ni->next_link++,
        .nid = rq->nid,
        .pid = rq->pid,
        .uid = rq->uid,
        .jid = rq->jid,
        .pt = rq->pt,
        .bits = rq->bits,
        .rlength = rq->length_bytes,
        .mlength = taker->mlength,
        .offset = taker->offset,
        .hdr_data = rq->kind == EMU_PTL_GET ? 0 : rq->hdr_data,
    };
    describe(&flight->event, &taker->md, shown);
    ni->received++;
    ni->received_bytes += taker->mlength;
    count_open(ni, true);
    set_stage(flight, EMU_PTL_BEGUN);
    if (flight->flags & EMU_PTL_FLIGHT_START) {
        post_start(ni, flight);
        has_posted(flight, EMU_PTL_FLIGHT_START);
    }
}

/* ---- brief operations ---- */

void emu_ptl_begin_brief(struct emu_ptl_ni *ni, const struct emu_ptl_taker *taker, uint32_t port_generation,
                         struct emu_ptl_flight *flight)
{
    struct emu_ptl_eq *e = eq_of(ni, taker->md.eq, taker->md.eq_generation);

    flight->generation = port_generation;
    flight->md = taker->index;
    flight->md_generation = taker->md.generation;
    flight->eq = e ? taker->md.eq : EMU_PTL_NONE;
    flight->eq_generation = taker->md.eq_generation;
    flight->eq_tail = e ? atomic_load_explicit(&e->tail, memory_order_relaxed) : 0;
    flight->old_offset = taker->md.local_offset;
    flight->old_threshold = taker->md.threshold;
    flight->old_flags = taker->md.flags;
    set_stage(flight, EMU_PTL_BRIEF);
    take(ni, &ni->mds[taker->index], taker->mlength);
    ni->received++;
    ni->received_bytes += taker->mlength;
    if (ni->n_open_max <= ni->n_open)
        ni->n_open_max = ni->n_open + 1;
}

static uint64_t pair(uint32_t low, uint32_t high)
{
    return low | (uint64_t)high << 32;
}

/* The words of END as they lie in struct emu_ptl_event: made in registers, because they are stored at once. */
static void make_words(uint64_t *words, const struct emu_ptl_ni *ni, const struct emu_ptl_request *rq,
                       const struct emu_ptl_taker *taker, uint32_t link)
{
    const struct emu_ptl_md *md = &taker->md;
    bool shows_before = (ni->behaviour & EMU_PTL_THRESHOLD_BEFORE) != 0 || md->threshold < 0;

    words[1] = pair(end_kinds[rq->kind], link);
    words[2] = pair(rq->nid, rq->pid);
    words[3] = pair(rq->uid, rq->jid);
    words[4] = pair(rq->pt, md->handle);
    words[5] = pair((uint32_t)md->threshold - !shows_before, md->options);
    words[6] = rq->bits;
    words[7] = rq->length_bytes;
    words[8] = taker->mlength;
    words[9] = taker->offset;
    words[10] = rq->kind == EMU_PTL_GET ? 0 : rq->hdr_data;
    words[11] = md->start;
    words[12] = md->length;
    words[13] = md->max_size;
    words[14] = md->user_ptr;
    words[15] = md->eq_handle;
}
static_assert(offsetof(struct emu_ptl_event, kind) == 8 && offsetof(struct emu_ptl_event, fail) == 9 &&
              offsetof(struct emu_ptl_event, link) == 12 && offsetof(struct emu_ptl_event, nid) == 16 &&
              offsetof(struct emu_ptl_event, uid) == 24 && offsetof(struct emu_ptl_event, pt) == 32 &&
              offsetof(struct emu_ptl_event, md_handle) == 36 && offsetof(struct emu_ptl_event, threshold) == 40 &&
              offsetof(struct emu_ptl_event, bits) == 48 && offsetof(struct emu_ptl_event, hdr_data) == 80 &&
              offsetof(struct emu_ptl_event, start) == 88 && offsetof(struct emu_ptl_event, user_ptr) == 112 &&
              offsetof(struct emu_ptl_event, eq_handle) == 120, "the words that make_words() makes");

/* The words of END, which says that the descriptor goes where there is no UNLINK event to say it. */
static void finish_words(uint64_t *words, const struct emu_ptl_md *md, bool goes, unsigned fail)
{
    bool says_so = goes && (md->options & (EMU_PTL_MD_LUSTRE | EMU_PTL_MD_AUTO_UNLINK_EVENT)) == EMU_PTL_MD_LUSTRE;

    words[1] |= (uint64_t)(uint8_t)fail << 8 | (uint64_t)says_so << 16;
}

/* The descriptor of a brief operation is used up by it. words: of END. */
static void retire(struct emu_ptl_ni *ni, const struct emu_ptl_taker *taker, struct emu_ptl_flight *flight,
                   const uint64_t *words)
{
    bool tells = flight->eq != EMU_PTL_NONE && has_unlink_event(ni, &taker->md);

    if (tells) {
        memcpy(&flight->event, words, sizeof(flight->event));
        set_stage(flight, EMU_PTL_RETIRING);    /* eq_tail may change now */
        flight->eq_tail = tail_of(ni, taker->md.eq, taker->md.eq_generation);
        set_stage(flight, EMU_PTL_UNLINKING);
    }
    mark_dead(ni, taker->index);
    if (tells)
        post_unlink(ni, taker->md.eq, taker->md.eq_generation, &flight->event);
}

void emu_ptl_end_brief(struct emu_ptl_ni *ni, const struct emu_ptl_request *rq, const struct emu_ptl_taker *taker,
                       struct emu_ptl_flight *flight, unsigned fail)
{
    struct emu_ptl_eq *e = eq_of(ni, taker->md.eq, taker->md.eq_generation);
    bool goes = is_used_up(&ni->mds[taker->index]);
    bool has_start = (taker->md.options & EMU_PTL_MD_START_DISABLE) == 0;
    bool has_end = (taker->md.options & EMU_PTL_MD_END_DISABLE) == 0;
    uint32_t link = ni->next_link++;
    uint64_t words[EVENT_WORDS] = { 0 };
    struct ring ring;

    if (e && (has_start || has_end || goes) && open_ring(ni, e, &ring)) {
        make_words(words, ni, rq, taker, link);
        if (has_start) {
            words[1]--;         /* each START stands before its END */
            append(e, &ring, words);
            words[1]++;
        }
        finish_words(words, &taker->md, goes, fail);
        if (has_end)
            append(e, &ring, words);
        note_news(ni);
        if (goes)
            retire(ni, taker, flight, words);
    } else if (goes) {
        mark_dead(ni, taker->index);
    }
    set_stage(flight, EMU_PTL_IDLE);
}

/* ---- ends ---- */

/* The second half of an end: the descriptor's words, from the values before. */
static void settle(struct emu_ptl_ni *ni, struct emu_ptl_flight *flight)
{
    struct emu_ptl_md *md = live_md(ni, flight->md, flight->md_generation);
    struct emu_ptl_eq *e = eq_of(ni, flight->eq, flight->eq_generation);

    if (e && (flight->flags & EMU_PTL_FLIGHT_PROMISED) && flight->old_promised > 0)
        e->promised = flight->old_promised - 1;
    if (md) {
        md->pending = flight->old_pending > 0 ? flight->old_pending - 1 : 0;
        if (is_used_up(md)) {
            bool tells = has_unlink_event(ni, md) && flight->eq != EMU_PTL_NONE;

            if (tells) {
                has_posted(flight, EMU_PTL_FLIGHT_END);
                flight->eq_tail = tail_of(ni, flight->eq, flight->eq_generation);
                set_stage(flight, EMU_PTL_UNLINKING);
            }
            mark_dead(ni, flight->md);
            if (tells)
                post_unlink(ni, flight->eq, flight->eq_generation, &flight->event);
        }
    }
    set_stage(flight, EMU_PTL_IDLE);
}

void emu_ptl_lose(struct emu_ptl_flight *flight)
{
    flight->event.kind = EMU_PTL_EVENT_LOST;
}

void emu_ptl_end(struct emu_ptl_ni *ni, struct emu_ptl_flight *flight, unsigned fail)
{
    const struct emu_ptl_md *md = live_md(ni, flight->md, flight->md_generation);
    const struct emu_ptl_eq *e = eq_of(ni, flight->eq, flight->eq_generation);

    count_open(ni, false);
    flight->event.fail = (uint8_t)fail;
    flight->event.unlinked = md && goes_with_this(md);
    flight->eq_tail = tail_of(ni, flight->eq, flight->eq_generation);
    flight->old_pending = md ? md->pending : 0;
    flight->old_promised = e ? e->promised : 0;
    set_stage(flight, EMU_PTL_ENDING);
    if (flight->flags & EMU_PTL_FLIGHT_END)
        emu_ptl_post(ni, flight->eq, flight->eq_generation, &flight->event);
    settle(ni, flight);
}

/* ---- repair ---- */

static bool is_unposted(struct emu_ptl_ni *ni, const struct emu_ptl_flight *flight)
{
    return tail_of(ni, flight->eq, flight->eq_generation) == flight->eq_tail;
}

static void put_words_back(struct emu_ptl_md *md, const struct emu_ptl_flight *flight)
{
    md->local_offset = flight->old_offset;
    md->threshold = flight->old_threshold;
    md->flags = flight->old_flags;
}

static void put_back(struct emu_ptl_ni *ni, const struct emu_ptl_flight *flight)
{
    struct emu_ptl_md *md = live_md(ni, flight->md, flight->md_generation);
    struct emu_ptl_eq *e = eq_of(ni, flight->eq, flight->eq_generation);

    if (e)
        e->promised = flight->old_promised;
    if (!md)
        return;
    put_words_back(md, flight);
    md->pending = flight->old_pending;
}

/* A brief operation: the events that it has put in tell how far it came. The last of them may not have been counted. */
static void repair_brief(struct emu_ptl_ni *ni, const struct emu_ptl_flight *flight)
{
    struct emu_ptl_md *md = live_md(ni, flight->md, flight->md_generation);
    struct emu_ptl_eq *e = eq_of(ni, flight->eq, flight->eq_generation);
    struct emu_ptl_event last = { .kind = 0 };
    struct ring ring;

    if (e && open_ring(ni, e, &ring)) {
        if (atomic_load_explicit(&ring.slots[ring.tail & ring.mask].seq, memory_order_acquire) == ring.tail + 1)
            atomic_store_explicit(&e->tail, ++ring.tail, memory_order_release);
        if (ring.tail != flight->eq_tail &&
            load_event(&ring.slots[(ring.tail - 1) & ring.mask], ring.tail, &last)) {
            note_news(ni);
            if (last.kind % 2 == EMU_PTL_EVENT_GET_START % 2 && (last.options & EMU_PTL_MD_END_DISABLE) == 0) {
                last.kind++;    /* START without END */
                last.fail = EMU_STATUS_PEER_GONE;
                emu_ptl_post(ni, flight->eq, flight->eq_generation, &last);
            }
            if (md)
                unlink_if_used_up(ni, flight->md, &last);
            return;
        }
    }
    if (md)
        put_words_back(md, flight);
}

void emu_ptl_repair(struct emu_ptl_ni *ni, struct emu_ptl_flight *flight, bool held)
{
    switch (atomic_load_explicit(&flight->stage, memory_order_acquire)) {
    case EMU_PTL_PREPARED:
        put_back(ni, flight);
        break;
    case EMU_PTL_BEGUN:
        /* Who has let go of the lock has posted it. */
        if (held && (flight->flags & EMU_PTL_FLIGHT_START) && is_unposted(ni, flight))
            post_start(ni, flight);
        emu_ptl_end(ni, flight, EMU_STATUS_PEER_GONE);
        break;
    case EMU_PTL_ENDING:
        if ((flight->flags & EMU_PTL_FLIGHT_END) && is_unposted(ni, flight))
            emu_ptl_post(ni, flight->eq, flight->eq_generation, &flight->event);
        settle(ni, flight);
        break;
    case EMU_PTL_UNLINKING:
        if (flight->md < EMU_PTL_MDS && live_md(ni, flight->md, flight->md_generation))
            mark_dead(ni, flight->md);
        if (is_unposted(ni, flight))
            post_unlink(ni, flight->eq, flight->eq_generation, &flight->event);
        break;
    case EMU_PTL_BRIEF:
        repair_brief(ni, flight);
        break;
    case EMU_PTL_RETIRING:
        if (live_md(ni, flight->md, flight->md_generation))
            mark_dead(ni, flight->md);
        post_unlink(ni, flight->eq, flight->eq_generation, &flight->event);
        break;
    default:
        break;
    }
    set_stage(flight, EMU_PTL_IDLE);
}

/* ---- the initiator's side ---- */

static void echo(struct emu_ptl_event *event, const struct emu_ptl_ni *ni, const struct emu_ptl_send *send)
{
    *event = (struct emu_ptl_event){
        .link = send->link,
        .nid = ni->nid,
        .pid = ni->pid,
        .uid = ni->uid,
        .jid = ni->jid,
        .pt = send->pt,
        .bits = send->bits,
        .rlength = send->length_bytes,
        .mlength = send->length_bytes,
        .offset = send->kind == EMU_PTL_GETPUT ? send->put_offset : send->local_offset,
        .hdr_data = send->kind == EMU_PTL_GET ? 0 : send->hdr_data,
    };
}

static void name_peer(struct emu_ptl_event *event, const struct emu_ptl_peer *peer)
{
    event->nid = peer->nid;
    event->pid = peer->pid;
    event->uid = peer->uid;
    event->jid = peer->jid;
}

static bool sends(const struct emu_ptl_ni *ni, const struct emu_ptl_send *send)
{
    return send->kind != EMU_PTL_GET || (ni->behaviour & EMU_PTL_GET_SENDS) != 0;
}

static bool has_queue(struct emu_ptl_ni *ni, const struct emu_ptl_md *md)
{
    return md->eq != EMU_PTL_NONE && eq_of(ni, md->eq, md->eq_generation) != NULL;
}

int emu_ptl_send_begin(struct emu_ptl_ni *ni, struct emu_ptl_send *send)
{
    struct emu_ptl_md *get = live_md(ni, send->md, send->md_generation);
    struct emu_ptl_md *put = send->kind == EMU_PTL_GETPUT ? live_md(ni, send->put_md, send->put_md_generation) : get;
    struct emu_ptl_event event;

    if (!get || !put || !is_active(get) || !is_active(put))
        return -ENOENT;
    if (send->kind != EMU_PTL_GETPUT) {
        send->put_md = send->md;
        send->put_md_generation = send->md_generation;
    }
    send->link = ni->next_link++;
    send->eq = EMU_PTL_NONE;
    send->eq_generation = 0;
    send->threshold = put->threshold;
    ni->registers[EMU_PTL_SR_SEND_COUNT]++;
    ni->registers[EMU_PTL_SR_SEND_LENGTH] += send->kind == EMU_PTL_GET ? 0 : send->length_bytes;
    if (send->kind != EMU_PTL_PUT && (ni->behaviour & EMU_PTL_LENIENT_REPLY))
        get->awaits++;
    if (!sends(ni, send))
        return 0;
    put->pending++;
    count_open(ni, true);
    send->threshold = count_down(ni, put);
    if (!has_queue(ni, put))
        return 0;
    if ((put->options & EMU_PTL_MD_END_DISABLE) == 0) {
        send->eq = put->eq;
        send->eq_generation = put->eq_generation;
        promise(ni, send->eq, send->eq_generation, 1);
    }
    if ((put->options & EMU_PTL_MD_START_DISABLE) == 0) {
        echo(&event, ni, send);
        describe(&event, put, send->threshold);
        event.kind = EMU_PTL_EVENT_SEND_START;
        emu_ptl_post(ni, put->eq, put->eq_generation, &event);
    }
    return 0;
}

void emu_ptl_send_end(struct emu_ptl_ni *ni, const struct emu_ptl_send *send, unsigned fail)
{
    struct emu_ptl_md *md = live_md(ni, send->put_md, send->put_md_generation);
    struct emu_ptl_event event;

    if (!sends(ni, send))
        return;
    promise(ni, send->eq, send->eq_generation, -1);
    count_open(ni, false);
    if (!md)
        return;
    echo(&event, ni, send);
    describe(&event, md, send->threshold);
    event.kind = EMU_PTL_EVENT_SEND_END;
    event.fail = (uint8_t)fail;
    event.unlinked = goes_with_this(md);
    if (send->eq != EMU_PTL_NONE)
        emu_ptl_post(ni, send->eq, send->eq_generation, &event);
    if (md->pending > 0)
        md->pending--;
    unlink_if_used_up(ni, send->put_md, &event);
}

void emu_ptl_ack(struct emu_ptl_ni *ni, const struct emu_ptl_send *send, const struct emu_ptl_peer *peer, uint64_t mlength,
                 unsigned fail)
{
    struct emu_ptl_md *md = live_md(ni, send->md, send->md_generation);
    struct emu_ptl_event event;

    if (!md || !is_active(md))
        return;
    echo(&event, ni, send);
    name_peer(&event, peer);
    describe(&event, md, count_down(ni, md));
    event.kind = EMU_PTL_EVENT_ACK;
    event.fail = (uint8_t)fail;
    event.link = ni->next_link++;
    event.mlength = mlength;
    event.offset = send->offset;
    emu_ptl_post(ni, md->eq, md->eq_generation, &event);
    unlink_if_used_up(ni, send->md, &event);
}

bool emu_ptl_reply_begin(struct emu_ptl_ni *ni, const struct emu_ptl_send *send, const struct emu_ptl_peer *peer,
                         uint64_t mlength, struct emu_ptl_reply *reply)
{
    struct emu_ptl_md *md = live_md(ni, send->md, send->md_generation);
    bool is_lenient = (ni->behaviour & EMU_PTL_LENIENT_REPLY) != 0;
    uint64_t room;

    if (!md || (!is_active(md) && !(is_lenient && md->awaits > 0))) {
        ni->drops++;
        ni->dropped_bytes += mlength;
        return false;
    }
    if (md->awaits > 0)
        md->awaits--;
    room = md->length_bytes > send->local_offset ? md->length_bytes - send->local_offset : 0;
    reply->mlength = mlength < room ? mlength : room;
    echo(&reply->event, ni, send);
    name_peer(&reply->event, peer);
    describe(&reply->event, md, count_down(ni, md));
    reply->event.kind = EMU_PTL_EVENT_REPLY_START;
    reply->event.link = ni->next_link++;
    reply->event.mlength = reply->mlength;
    reply->event.offset = send->local_offset;
    md->pending++;
    reply->eq = has_queue(ni, md) ? md->eq : EMU_PTL_NONE;
    reply->eq_generation = md->eq_generation;
    reply->has_end = reply->eq != EMU_PTL_NONE && (md->options & EMU_PTL_MD_END_DISABLE) == 0;
    reply->md = *md;
    if (reply->has_end)
        promise(ni, reply->eq, reply->eq_generation, 1);
    if ((md->options & EMU_PTL_MD_START_DISABLE) == 0)
        emu_ptl_post(ni, reply->eq, reply->eq_generation, &reply->event);
    ni->received++;
    ni->received_bytes += reply->mlength;
    count_open(ni, true);
    return true;
}

void emu_ptl_reply_end(struct emu_ptl_ni *ni, const struct emu_ptl_send *send, struct emu_ptl_reply *reply, unsigned fail)
{
    struct emu_ptl_md *md = live_md(ni, send->md, send->md_generation);

    count_open(ni, false);
    reply->event.kind = EMU_PTL_EVENT_REPLY_END;
    reply->event.fail = (uint8_t)fail;
    reply->event.unlinked = md && goes_with_this(md);
    if (reply->has_end) {
        promise(ni, reply->eq, reply->eq_generation, -1);
        emu_ptl_post(ni, reply->eq, reply->eq_generation, &reply->event);
    }
    if (!md)
        return;
    if (md->pending > 0)
        md->pending--;
    unlink_if_used_up(ni, send->md, &reply->event);
}

/* ---- memory ---- */

void emu_ptl_span_of(struct emu_ptl_ni *ni, const struct emu_ptl_md *md, struct emu_ptl_span *span_out)
{
    *span_out = (struct emu_ptl_span){ .n = 1, .one = { md->start, md->length_bytes } };
    if ((md->options & EMU_PTL_MD_IOVEC) == 0)
        return;
    span_out->n = 0;
    if (md->iov_count <= EMU_PTL_IOVEC_MAX && md->iov_first <= EMU_PTL_IOVECS - md->iov_count) {
        span_out->iovs = &ni->iovs[md->iov_first];
        span_out->n = md->iov_count;
    }
}

struct cursor {
    const struct emu_ptl_span *span;
    uint32_t at;
    struct emu_ptl_iov here;            /* what is left of the segment at `at` */
};

/* To the first byte that is not passed yet. False: there is none. */
static bool settle_cursor(struct cursor *c)
{
    while (c->here.length_bytes == 0) {
        if (++c->at >= c->span->n)
            return false;
        c->here = c->span->iovs ? c->span->iovs[c->at] : c->span->one;
    }
    return true;
}

static bool start_cursor(struct cursor *c, const struct emu_ptl_span *span, uint64_t offset)
{
    *c = (struct cursor){ .span = span, .at = UINT32_MAX };
    while (settle_cursor(c)) {
        uint64_t skip = offset < c->here.length_bytes ? offset : c->here.length_bytes;

        c->here.addr += skip;
        c->here.length_bytes -= skip;
        offset -= skip;
        if (offset == 0 && c->here.length_bytes > 0)
            return true;
    }
    return false;
}

static void pass(struct cursor *c, uint64_t bytes)
{
    c->here.addr += bytes;
    c->here.length_bytes -= bytes;
}

int emu_ptl_move(const struct emu_memory *dst, const struct emu_ptl_span *dst_span, uint64_t dst_off,
                 const struct emu_memory *src, const struct emu_ptl_span *src_span, uint64_t src_off, uint64_t len_bytes,
                 void *bounce, uint64_t bounce_bytes, int *fault_out)
{
    struct cursor to;
    struct cursor from;

    *fault_out = 0;
    if (len_bytes == 0)
        return 0;
    if (!start_cursor(&from, src_span, src_off))
        return -EFAULT;
    *fault_out = 1;
    if (!start_cursor(&to, dst_span, dst_off))
        return -EFAULT;
    for (;;) {
        uint64_t part = len_bytes;
        int r;

        if (part > to.here.length_bytes)
            part = to.here.length_bytes;
        if (part > from.here.length_bytes)
            part = from.here.length_bytes;
        r = emu_memory_copy(dst, to.here.addr, src, from.here.addr, part, NULL, bounce, bounce_bytes, fault_out);
        len_bytes -= part;
        if (r < 0 || len_bytes == 0)
            return r;
        pass(&to, part);
        pass(&from, part);
        *fault_out = 0;
        if (!settle_cursor(&from))
            return -EFAULT;
        *fault_out = 1;
        if (!settle_cursor(&to))
            return -EFAULT;
    }
}
