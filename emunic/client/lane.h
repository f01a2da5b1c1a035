/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Lanes: small operations on a peer's memory without a command.
 *
 * A lane remembers the meaning of one memory handle of a peer: node, memory domain, owner, window, destination queue.
 * The engine finds these out for each command anew (engine/transaction.c) and stays the only judge of errors. A lane
 * serves only operations that cannot fail. It refuses everything else, and a refused operation has not happened: the
 * caller hands it over as a command. After a refusal the lane is looked for anew, unless only the path was closed.
 *
 * An operation is a put, a put with a flag word, a get or an atomic. When it returns true, data and event are in place
 * and its packets are counted. The event of a small put is early: its place in the peer's queue is reserved before the
 * data are stored. All other events are late. Memory that is not mapped here (method cma) takes puts and gets only, one
 * system call each (lane.c).
 *
 * At each use the lane is compared with the domain table, while our mark is up (gate): with the line of the memory
 * domain and with the owner's port. Both lines stay in the cache until emunic changes them. The gate also refuses while
 * the domain is switched to the routed path, or commands of ours are still in emunic's hands. Of memory that its owner
 * parks (park.h) a third line is compared, that of the owner's rest, which the operation looks at in its end anyway.
 *
 * Pages of a file that a program has mapped itself can go while they are written. Then the stored data are nowhere, and
 * emu_lane_is_broken() tells so afterwards. Such a lane (`broken` is set) is looked at before any event, and the engine
 * does the operation again from the beginning.
 *
 * The gate's mark costs one plain store. emunic orders it against its own changes with membarrier
 * (daemon/core/quiesce.c); where that is not to be had (EMU_TABLE_FENCED, or this process could not register for it),
 * with an exchange.
 *
 * Thread rule: as emu_port_command(), one thread at a time per port. No thread may be cancelled in between.
 */
#ifndef EMUNIC_CLIENT_LANE_H
#define EMUNIC_CLIENT_LANE_H

#include <assert.h>
#include <emmintrin.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/types.h>

#include "emunic/abi/flow.h"
#include "emunic/abi/segment.h"
#include "emunic/abi/table.h"
#include "emunic/client/direct.h"
#include "emunic/engine/amo_arithmetic.h"
#include "emunic/engine/completion_queue.h"
#include "emunic/engine/rest.h"
#include "emunic/engine/word.h"

/*
 * Bytes that may be stored between reserving the place of the event that tells of them and publishing it. Reserving
 * first is faster, because its locked instruction waits for all stores before it; but others' events wait behind the
 * place.
 */
#define EMU_LANE_EARLY_MAX 256u

#define EMU_LIKELY(x)   __builtin_expect(!!(x), 1)
#define EMU_UNLIKELY(x) __builtin_expect(!!(x), 0)

#define EMU_LANE_PIECES    3u  /* of a message */
#define EMU_GATE_SMALL_MAX 64u /* bytes whose packets and flits are computed once */

/* What an operation of so many bytes adds to its flow. */
struct emu_small_counts {
    struct emu_flow_counts puts[EMU_GATE_SMALL_MAX + 1];
    struct emu_flow_counts gets[EMU_GATE_SMALL_MAX + 1];
    uint16_t operand_flits[EMU_GATE_SMALL_MAX + 1];
};

/* A port's way in and out of the shared state. One per port, in emu_direct. */
struct emu_gate {
    const struct emu_table *table; /* borrowed */
    struct emu_segment *segment;   /* borrowed: our own */
    const uint64_t *tail;          /* borrowed: commands that we published */
    const _Atomic bool *is_lost;   /* borrowed */
    uint64_t inside;               /* our mark as last written */
    uint64_t epoch;                /* grows when a mapping of a peer goes away: lanes before it are void */
    uint32_t files_gone;           /* of the table, as last seen: files that went later are to be unmapped */
    bool fences;
    bool is_for_ordered;            /* around operations that must not overtake transfers which emunic moves */
    struct emu_small_counts *small; /* owned */
};

#define EMU_LANE_SEEN_BYTES offsetof(struct emu_table_md, file_offset) /* of the memory domain's line */
static_assert(EMU_LANE_SEEN_BYTES == 48, "three vectors");

struct emu_lane {
    struct emu_gate *gate;             /* borrowed */
    uint64_t epoch;                    /* 0: there is none */
    const struct emu_table_md *md;     /* borrowed, in the table */
    const struct emu_table_port *port; /* borrowed, in the table */
    struct emu_flow_counts *flow;      /* borrowed: our counters towards that node */
    uint8_t *window;                   /* where `first` is mapped here; NULL: nowhere, */
    pid_t pid;                         /* then it is this process's private memory */
    uint64_t first;                    /* the owner's addresses that may be reached */
    uint64_t end;
    uint64_t shift; /* of the caller's addresses: not 0 for a virtual handle */
    uint32_t port_generation;
    bool is_read_only;
    bool has_destination;
    const _Atomic uint32_t *broken; /* the window's mark; NULL: its pages cannot go */
    uint32_t file;                  /* that the window shows, or 0 */
    uint32_t retry;                 /* epoch 0: so many operations are refused before the next look for the lane */
    struct emu_cq_producer destination;
    struct emu_segment *owner;                      /* the peer's segment, or NULL: whom to wake */
    const _Atomic uint16_t *park;                   /* where its owner parks the memory; a word that never changes */
    uint16_t generation;                            /* that stood there */
    _Alignas(16) uint8_t seen[EMU_LANE_SEEN_BYTES]; /* the table's line when it was found: live, and all that matters */
};

/* What names a peer's memory in a command. */
struct emu_lane_target {
    uint32_t nid;
    uint16_t mdh;
    uint16_t generation;
    uint8_t handle_flags;
    uint64_t remote_base;
};

/* An event for the queue of the target's memory. */
struct emu_lane_event {
    uint64_t event; /* 0: none */
    bool is_hint;   /* it may take all places of the queue, also those that peers' events leave free */
};

#define EMU_LANE_NO_EVENT ((struct emu_lane_event){ .event = 0 })

/* Of what a message is put together. */
struct emu_lane_piece {
    const void *data;
    uint64_t len_bytes;
};

/* Pieces in a row behind a flag word. */
struct emu_lane_message {
    uint64_t flag;
    const struct emu_lane_piece *pieces; /* EMU_LANE_PIECES, or NULL: none */
};

/* Finds a lane. False: there is none for this memory (now), and the lane is as it was or empty. May ask emunic. */
bool emu_lane_find(struct emu_direct *direct, const struct emu_lane_target *target, struct emu_lane *lane_out);

/*
 * Looks for a lane that is empty (epoch 0). False: there is none, or it is not the time to look: the direct path is
 * closed, or the last look failed and a few operations more go as commands first.
 */
bool emu_lane_look_for(struct emu_port *port, const struct emu_lane_target *target, struct emu_lane *lane);

/* Finds a lane by the number of a memory domain; addresses will be the owner's. To be called inside. */
bool emu_lane_find_domain(struct emu_direct *direct, uint32_t node_index, uint16_t mdh, uint16_t generation,
                          struct emu_lane *lane_out);

/* ---- gate ---- */

static inline void emu_gate_enter(struct emu_gate *gate)
{
    _Atomic uint64_t *inside = &gate->segment->inside;

    /* Pairs with emunic's membarrier or fence: either emunic sees our mark, or we see what it has taken away. */
    if (EMU_UNLIKELY(gate->fences)) {
        atomic_exchange_explicit(inside, ++gate->inside, memory_order_seq_cst);
    } else {
        atomic_store_explicit(inside, ++gate->inside, memory_order_relaxed);
        atomic_signal_fence(memory_order_seq_cst);
    }
}

static inline void emu_gate_leave(struct emu_gate *gate)
{
    /* All our accesses before the mark is gone. */
    atomic_store_explicit(&gate->segment->inside, ++gate->inside, memory_order_release);
    /* Another thread of ours may rest and wait for what we did. */
    emu_rest_disturb(gate->segment);
}

/*
 * May the next command take the direct path? No while the domain is switched to routed, and no while commands of this
 * port are still in emunic's hands: so switching loses no operation and changes no order. An ordered operation also
 * waits for transfers that emunic has taken out of the ring and not finished; only behind the look at the ring can
 * their number be believed.
 */
static inline bool emu_gate_is_open(const struct emu_gate *gate)
{
    if (EMU_UNLIKELY(atomic_load_explicit(&gate->table->flags, memory_order_acquire) & EMU_TABLE_NOT_DIRECT))
        return false;
    /* Pairs with the release in serve_ring(): what was taken out is counted before. */
    return atomic_load_explicit(&gate->segment->head, memory_order_acquire) == *gate->tail &&
           !(gate->is_for_ordered && atomic_load_explicit(&gate->segment->unfinished, memory_order_acquire) != 0);
}

/* ---- lanes ---- */

static inline bool emu_lane_is_current(const struct emu_lane *lane)
{
    const __m128i *md = (const __m128i *)lane->md;
    const __m128i *seen = (const __m128i *)lane->seen;
    __m128i same;

    /* Nothing of the line may be read before our mark is up. Pairs with emunic's barrier. */
    atomic_signal_fence(memory_order_acquire);
    same = _mm_and_si128(_mm_cmpeq_epi32(_mm_load_si128(&md[0]), _mm_load_si128(&seen[0])),
                         _mm_and_si128(_mm_cmpeq_epi32(_mm_load_si128(&md[1]), _mm_load_si128(&seen[1])),
                                       _mm_cmpeq_epi32(_mm_load_si128(&md[2]), _mm_load_si128(&seen[2]))));
    return _mm_movemask_epi8(same) == 0xffff && lane->port->generation == lane->port_generation &&
           atomic_load_explicit(lane->park, memory_order_acquire) == lane->generation;
}

/*
 * Has the processor get a line for writing. Any address may be named; where the instruction is unknown nothing happens.
 */
static inline void emu_prefetch_for_write(const void *addr)
{
    __asm__ volatile("prefetchw %0" : : "m"(*(const char *)addr));
}

/*
 * Something will be written to `addr` at once, and perhaps an event after it: gets both lines on their way while the
 * caller still checks what it has to check. Both come from the peer's cache, and together take as long as one.
 */
static inline void emu_lane_expect(const struct emu_lane *lane, uint64_t addr, bool has_event)
{
    const struct emu_cq_producer *cq = &lane->destination;

    if (lane->epoch != lane->gate->epoch || !lane->window)
        return;
    emu_prefetch_for_write(lane->window + (addr + lane->shift - lane->first));
    if (has_event && lane->has_destination)
        emu_prefetch_for_write(
            &cq->shm->entries[atomic_load_explicit(&cq->shm->tail, memory_order_relaxed) & (cq->ring_entries - 1)]);
}

/* Were pages missing when the caller worked on them? */
static inline bool emu_lane_is_broken(const struct emu_lane *lane)
{
    /* The mark is set by a signal handler on this thread. */
    atomic_signal_fence(memory_order_seq_cst);
    return EMU_UNLIKELY(lane->broken) && atomic_load_explicit(lane->broken, memory_order_relaxed) != 0;
}

/* Does the lane still mean what it did? Both halves have to hold; the second one only while our mark is up. */
static inline bool emu_lane_is_of_now(const struct emu_lane *lane)
{
    const struct emu_gate *gate = lane->gate;

    return lane->epoch == gate->epoch &&
           atomic_load_explicit(&gate->table->files_gone, memory_order_relaxed) == gate->files_gone;
}

static inline bool emu_lane_is_whole(const struct emu_lane *lane)
{
    return emu_lane_is_current(lane) && lane->md->file == lane->file && !emu_lane_is_broken(lane);
}

/* Puts the mark up if [target, target + len), in the owner's addresses, may be reached. */
static inline __attribute__((always_inline)) bool emu_lane_may_enter(struct emu_lane *lane, uint64_t target,
                                                                     uint64_t len_bytes, bool is_written)
{
    struct emu_gate *gate = lane->gate;

    if (EMU_UNLIKELY(target < lane->first || target > lane->end || len_bytes > lane->end - target ||
                     (is_written && lane->is_read_only) || atomic_load_explicit(gate->is_lost, memory_order_relaxed) ||
                     !emu_lane_is_of_now(lane)))
        return false;
    /* The line comes from the peer's cache while the rest is checked. */
    if (is_written && lane->window)
        emu_prefetch_for_write(lane->window + (target - lane->first));
    emu_gate_enter(gate);
    if (EMU_LIKELY(emu_gate_is_open(gate) && emu_lane_is_whole(lane)))
        return true;
    emu_gate_leave(gate);
    return false;
}

/*
 * Where [addr, addr + len) of the peer lies here, and the mark is up; or NULL, and nothing has happened. The caller's
 * address as it would go into a command.
 */
static inline __attribute__((always_inline)) uint8_t *emu_lane_enter(struct emu_lane *lane, uint64_t addr,
                                                                     uint64_t len_bytes, bool is_written)
{
    uint64_t target = addr + lane->shift;

    if (EMU_UNLIKELY(!lane->window || !emu_lane_may_enter(lane, target, len_bytes, is_written)))
        return NULL;
    return lane->window + (target - lane->first);
}

static inline void emu_lane_leave(struct emu_lane *lane)
{
    emu_gate_leave(lane->gate);
    if (lane->owner)
        emu_rest_disturb(lane->owner);
}

/*
 * The first six counts, and flits of operands; those of errors are the engine's. Always 16 bytes at a time: a store of
 * eight of them would not be forwarded to the next operation's load of all.
 */
static inline __attribute__((always_inline)) void emu_gate_add_row(struct emu_flow_counts *flow,
                                                                   const struct emu_flow_counts *row,
                                                                   uint64_t operand_flits)
{
    __m128i *to = (__m128i *)flow;
    const __m128i *by = (const __m128i *)row;

#pragma GCC unroll 3
    for (unsigned i = 0; i < 3; i++) {
        __m128i sum = _mm_add_epi64(_mm_loadu_si128(&to[i]), _mm_loadu_si128(&by[i]));

        if (i == offsetof(struct emu_flow_counts, request_packets) / sizeof(*to))
            sum = _mm_add_epi64(sum, _mm_set_epi64x((long long)operand_flits, 0));
        _mm_storeu_si128(&to[i], sum);
    }
}
static_assert(offsetof(struct emu_flow_counts, request_packets) == 16 &&
                  offsetof(struct emu_flow_counts, request_flits) == 24 &&
                  offsetof(struct emu_flow_counts, errors) == 48,
              "three vectors, the flits in the upper half of the second one");

/* As emu_flow_add_put(), whose divisions cost more than all the rest of a small operation: so those are looked up. */
static inline void emu_gate_count_put(const struct emu_gate *gate, struct emu_flow_counts *flow, uint64_t bytes)
{
    if (EMU_LIKELY(bytes <= EMU_GATE_SMALL_MAX))
        emu_gate_add_row(flow, &gate->small->puts[bytes], 0);
    else
        emu_flow_add_put(flow, &gate->table->format, bytes);
}

static inline void emu_lane_count_put(struct emu_lane *lane, uint64_t bytes)
{
    emu_gate_count_put(lane->gate, lane->flow, bytes);
}

/* As emu_flow_add_get(), of an operation that brings operands along. */
static inline void emu_lane_count_get(struct emu_lane *lane, uint64_t bytes, uint64_t operand_bytes)
{
    const struct emu_gate *gate = lane->gate;

    if (EMU_LIKELY(bytes <= EMU_GATE_SMALL_MAX && operand_bytes <= EMU_GATE_SMALL_MAX)) {
        emu_gate_add_row(lane->flow, &gate->small->gets[bytes], gate->small->operand_flits[operand_bytes]);
    } else {
        emu_flow_add_get(lane->flow, &gate->table->format, bytes, operand_bytes);
    }
}

/* ---- operations: true, or refused and nothing has happened that matters ---- */

/* Refuses; where the path is open the lane itself was the reason, and is empty afterwards. */
bool emu_lane_refuse(struct emu_lane *lane);
/* What the operations do where the memory is not mapped here, or the lane refuses. */
bool emu_lane_put_far(struct emu_lane *lane, uint64_t addr, const void *data, uint64_t len_bytes,
                      struct emu_lane_event event);
bool emu_lane_get_far(struct emu_lane *lane, uint64_t addr, void *data, uint64_t len_bytes,
                      struct emu_lane_event event);

static inline bool emu_lane_has_queue(const struct emu_lane *lane, struct emu_lane_event event)
{
    return event.event != 0 && lane->has_destination;
}

/* Delivers an event late: what it tells of is in place. A full queue counts the loss. */
static inline __attribute__((always_inline)) void emu_lane_tell(struct emu_lane *lane, struct emu_lane_event event)
{
    if (emu_lane_has_queue(lane, event))
        emu_cq_push_of(&lane->destination, emu_cq_places(&lane->destination, !event.is_hint), event.event);
}

/* Are the data where they belong? If not the mark is down again, and the operation refused. */
static inline bool emu_lane_has_moved(struct emu_lane *lane)
{
    if (__builtin_expect(!emu_lane_is_broken(lane), 1))
        return true;
    emu_lane_leave(lane);
    return emu_lane_refuse(lane);
}

/* Stores `what` at `to` by `store`, and tells of it early or late. The mark is up; it is down again with false. */
static inline __attribute__((always_inline)) bool emu_lane_deliver(struct emu_lane *lane, uint8_t *to,
                                                                   uint64_t len_bytes, struct emu_lane_event event,
                                                                   void (*store)(uint8_t *, const void *),
                                                                   const void *what)
{
    struct emu_cq_producer *queue = &lane->destination;
    uint64_t places = emu_cq_places(queue, !event.is_hint);
    uint64_t place;

    if (!emu_lane_has_queue(lane, event)) {
        store(to, what);
        return emu_lane_has_moved(lane);
    }
    if (len_bytes <= EMU_LANE_EARLY_MAX && !lane->broken) {
        bool has_place = emu_cq_reserve_of(queue, places, &place) == EMU_CQ_OK;

        store(to, what);
        if (has_place)
            emu_cq_publish(queue, place, event.event);
        return true;
    }
    store(to, what);
    if (!emu_lane_has_moved(lane))
        return false;
    emu_cq_push_of(queue, places, event.event);
    return true;
}

static inline void emu_lane_store_data(uint8_t *to, const void *what)
{
    const struct emu_lane_piece *data = what;

    emu_word_store(to, data->data, data->len_bytes);
}

static inline __attribute__((always_inline)) bool emu_lane_put(struct emu_lane *lane, uint64_t addr, const void *data,
                                                               uint64_t len_bytes, struct emu_lane_event event)
{
    const struct emu_lane_piece what = { data, len_bytes };
    uint8_t *to = emu_lane_enter(lane, addr, len_bytes, true);

    if (EMU_UNLIKELY(!to))
        return emu_lane_put_far(lane, addr, data, len_bytes, event);
    if (!emu_lane_deliver(lane, to, len_bytes, event, emu_lane_store_data, &what))
        return false;
    emu_lane_count_put(lane, len_bytes);
    emu_lane_leave(lane);
    return true;
}

/* A word as a word. Returns the end. */
static inline uint8_t *emu_lane_append(uint8_t *to, const struct emu_lane_piece *piece)
{
    if (piece->len_bytes == 8)
        memcpy(to, piece->data, 8);
    else
        emu_copy_few(to, piece->data, piece->len_bytes);
    return to + piece->len_bytes;
}

static inline void emu_lane_store_message(uint8_t *to, const void *what)
{
    const struct emu_lane_message *message = what;
    uint8_t *end = to + sizeof(message->flag);

    if (message->pieces) {
#pragma GCC unroll 3
        for (unsigned i = 0; i < EMU_LANE_PIECES; i++)
            end = emu_lane_append(end, &message->pieces[i]);
    }
    /* Pairs with the acquire of whoever looks at the flag: the message is there when its flag is. */
    atomic_store_explicit((_Atomic uint64_t *)(void *)to, message->flag, memory_order_release);
}

/* Puts a message of so many bytes, its flag word included, which is aligned. */
static inline __attribute__((always_inline)) bool emu_lane_put_message(struct emu_lane *lane, uint64_t addr,
                                                                       const struct emu_lane_message *message,
                                                                       uint64_t len_bytes, struct emu_lane_event event)
{
    uint8_t *to = emu_lane_enter(lane, addr, len_bytes, true);

    if (EMU_UNLIKELY(!to)) /* a system call's store has no order that we know of */
        return emu_lane_refuse(lane);
    if (!emu_lane_deliver(lane, to, len_bytes, event, emu_lane_store_message, message))
        return false;
    emu_lane_count_put(lane, len_bytes);
    emu_lane_leave(lane);
    return true;
}

static inline __attribute__((always_inline)) bool emu_lane_get(struct emu_lane *lane, uint64_t addr, void *data,
                                                               uint64_t len_bytes, struct emu_lane_event event)
{
    const uint8_t *from = emu_lane_enter(lane, addr, len_bytes, false);

    if (EMU_UNLIKELY(!from))
        return emu_lane_get_far(lane, addr, data, len_bytes, event);
    emu_word_load(data, from, len_bytes);
    if (!emu_lane_has_moved(lane))
        return false;
    emu_lane_tell(lane, event);
    emu_lane_count_get(lane, len_bytes, 0);
    emu_lane_leave(lane);
    return true;
}

/* An atomic whose old value nobody wants: the processor's instruction where there is one without it. */
static inline void emu_lane_change(const struct emu_amo *amo, void *word)
{
    _Atomic uint64_t *w = word;

    if (amo->flags & EMU_AMO_32BIT) {
        emu_amo_apply_shared(amo, word);
        return;
    }
    switch (amo->op) {
    case EMU_AMO_ADD:
        atomic_fetch_add(w, amo->operand1);
        break;
    case EMU_AMO_AND:
        atomic_fetch_and(w, amo->operand1);
        break;
    case EMU_AMO_OR:
        atomic_fetch_or(w, amo->operand1);
        break;
    case EMU_AMO_XOR:
        atomic_fetch_xor(w, amo->operand1);
        break;
    default:
        emu_amo_apply_shared(amo, word);
    }
}

/* One word, aligned. *old_out gets the old value; NULL: nobody wants it. */
static inline __attribute__((always_inline)) bool emu_lane_amo(struct emu_lane *lane, uint64_t addr,
                                                               const struct emu_amo *amo, uint64_t *old_out,
                                                               struct emu_lane_event event)
{
    uint64_t width_bytes = emu_amo_word_bytes(amo);
    uint8_t *word = emu_lane_enter(lane, addr, width_bytes, true);
    uint64_t old = 0;

    if (EMU_UNLIKELY(!word))
        return emu_lane_refuse(lane);
    if (old_out)
        old = emu_amo_apply_shared(amo, word);
    else
        emu_lane_change(amo, word);
    if (!emu_lane_has_moved(lane))
        return false;
    if (old_out) {
        *old_out = old;
        emu_lane_count_get(lane, width_bytes, emu_amo_operand_bytes(amo));
    } else {
        emu_lane_count_put(lane, width_bytes);
    }
    emu_lane_tell(lane, event);
    emu_lane_leave(lane);
    return true;
}

/* ---- at home ---- */

/* Puts a completion into our own queue; by the thread that takes events from it. */
static inline void emu_lane_complete(struct emu_direct *direct, uint32_t index, struct emu_cq_consumer *queue,
                                     uint64_t event)
{
    if (!emu_cq_push_own(queue, event))
        emu_cq_push_all(emu_direct_own_queue(direct, index), event);
}

#endif
