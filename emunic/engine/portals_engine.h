/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Portals: matching, delivery and events over a mapped interface (abi/portals.h). Functions without state of their own,
 * for whoever runs the engine: emunic, or on the direct path the initiating process.
 *
 * All of them expect the lock of the interface that they are given to be held, except where they say otherwise. What
 * stands in the interface may be anything: each index and length is checked where it is used, and each walk ends.
 */
#ifndef EMUNIC_ENGINE_PORTALS_ENGINE_H
#define EMUNIC_ENGINE_PORTALS_ENGINE_H

#include <stdbool.h>
#include <stdint.h>

#include "emunic/abi/event.h"
#include "emunic/abi/portals.h"
#include "emunic/engine/memory.h"

/* ---- lock; any thread ---- */

static inline bool emu_ptl_try_lock(struct emu_ptl_ni *ni, uint64_t holder)
{
    uint64_t nobody = 0;

    /* Pairs with the release in emu_ptl_unlock(). */
    return atomic_load_explicit(&ni->lock, memory_order_relaxed) == 0 &&
           atomic_compare_exchange_strong_explicit(&ni->lock, &nobody, holder, memory_order_acquire,
                                                   memory_order_relaxed);
}

void emu_ptl_wake(struct emu_ptl_ni *ni);

#define EMU_PTL_SLEEPS 1u /* `waiting`: the owner sleeps, or is about to */
#define EMU_PTL_NEWS   2u /* and there has been an event since */

static inline void emu_ptl_unlock(struct emu_ptl_ni *ni)
{
    bool has_news = atomic_load_explicit(&ni->waiting, memory_order_relaxed) == EMU_PTL_NEWS;

    if (has_news)
        atomic_store_explicit(&ni->waiting, 0, memory_order_relaxed);
    atomic_store_explicit(&ni->lock, 0, memory_order_release);
    if (has_news)
        emu_ptl_wake(ni);
}

/* ---- the target's side ---- */

enum emu_ptl_request_kind { EMU_PTL_PUT, EMU_PTL_GET, EMU_PTL_GETPUT };

/* A request as it arrives. The initiator's identity is known to whoever runs the engine. */
struct emu_ptl_request {
    enum emu_ptl_request_kind kind;
    bool wants_ack;
    uint32_t nid;
    uint32_t pid;
    uint32_t uid;
    uint32_t jid;
    uint32_t pt;
    uint32_t ac;
    uint64_t bits;
    uint64_t offset;
    uint64_t length_bytes;
    uint64_t hdr_data;
};

/* What takes a request: a copy of the descriptor as it was, and what it does with it. */
struct emu_ptl_taker {
    struct emu_ptl_md md;
    uint32_t index;
    bool acks;
    uint64_t mlength;
    uint64_t offset;
};

enum emu_ptl_result {
    EMU_PTL_TAKEN = 0,
    EMU_PTL_DROPPED, /* counted by the interface */
    EMU_PTL_LOST,    /* the interface is told to be cut off from that node */
};

/* Translates a request (spec/portals3.md 1.7). Changes nothing but counters. */
enum emu_ptl_result emu_ptl_match(struct emu_ptl_ni *ni, const struct emu_ptl_request *request,
                                  struct emu_ptl_taker *taker_out);

/* What would take a request, if anything; nothing is counted, and no node is cut off. */
bool emu_ptl_find(struct emu_ptl_ni *ni, const struct emu_ptl_request *request, struct emu_ptl_taker *taker_out);

/*
 * Commits: the descriptor's words, START. The flight is kept by whoever carries the operation out, until emu_ptl_end():
 * in the interface if the process may die before (ni->flights), else where it likes.
 */
void emu_ptl_begin(struct emu_ptl_ni *ni, const struct emu_ptl_request *request, const struct emu_ptl_taker *taker,
                   uint32_t port_generation, struct emu_ptl_flight *flight);

/* Before its end: END is lost, as if the queue had been full. */
void emu_ptl_lose(struct emu_ptl_flight *flight);

/* Completes: END, UNLINK if the descriptor is used up. fail: 0 or enum emu_status. */
void emu_ptl_end(struct emu_ptl_ni *ni, struct emu_ptl_flight *flight, unsigned fail);

/*
 * The same for an operation that begins and ends under one hold of the lock: nobody sees it in between, so it is not
 * pending, no event is promised, and START is posted with END.
 */
void emu_ptl_begin_brief(struct emu_ptl_ni *ni, const struct emu_ptl_taker *taker, uint32_t port_generation,
                         struct emu_ptl_flight *flight);
/* Between the two: the lock is to be let go of, and emu_ptl_end() comes later. START is posted. */
void emu_ptl_prolong(struct emu_ptl_ni *ni, const struct emu_ptl_request *request, const struct emu_ptl_taker *taker,
                     uint32_t port_generation, struct emu_ptl_flight *flight);
void emu_ptl_end_brief(struct emu_ptl_ni *ni, const struct emu_ptl_request *request, const struct emu_ptl_taker *taker,
                       struct emu_ptl_flight *flight, unsigned fail);

/* Ends the flight of a process that has died. held: the lock was its own. */
void emu_ptl_repair(struct emu_ptl_ni *ni, struct emu_ptl_flight *flight, bool held);

/* Is the interface cut off from that node for its next message? Counts it. */
bool emu_ptl_is_cut_off(struct emu_ptl_ni *ni, uint32_t nid);

/* ---- the initiator's side, on its own interface ---- */

/* One data movement call. */
struct emu_ptl_send {
    enum emu_ptl_request_kind kind;
    bool wants_ack;
    uint32_t md; /* put: source. get, getput: where the reply goes */
    uint32_t md_generation;
    uint32_t put_md; /* whose SEND events there are: `md` but for a getput */
    uint32_t put_md_generation;
    uint64_t local_offset; /* in md */
    uint64_t put_offset;   /* getput: in put_md */
    uint32_t nid;
    uint32_t pid;
    uint32_t pt;
    uint32_t ac;
    uint64_t bits;
    uint64_t offset;
    uint64_t length_bytes;
    uint64_t hdr_data;
    /* Made by emu_ptl_send_begin(): */
    uint32_t link;
    int32_t threshold; /* that SEND events show */
    uint32_t eq;       /* that SEND_END is promised to, or EMU_PTL_NONE */
    uint32_t eq_generation;
};

/* Who asks, or answers. */
struct emu_ptl_peer {
    uint32_t nid;
    uint32_t pid;
    uint32_t uid;
    uint32_t jid;
};

/* What arrives at the target. */
static inline struct emu_ptl_request emu_ptl_request_of(const struct emu_ptl_send *send, struct emu_ptl_peer from)
{
    return (struct emu_ptl_request){
        .kind = send->kind,
        .wants_ack = send->wants_ack,
        .nid = from.nid,
        .pid = from.pid,
        .uid = from.uid,
        .jid = from.jid,
        .pt = send->pt,
        .ac = send->ac,
        .bits = send->bits,
        .offset = send->offset,
        .length_bytes = send->length_bytes,
        .hdr_data = send->hdr_data,
    };
}

/*
 * Takes charge of the data: pending, threshold, SEND_START. -ENOENT: a descriptor is gone or inactive; nothing has
 * changed.
 */
int emu_ptl_send_begin(struct emu_ptl_ni *ni, struct emu_ptl_send *send);
/* The source memory is free again: SEND_END. */
void emu_ptl_send_end(struct emu_ptl_ni *ni, const struct emu_ptl_send *send, unsigned fail);
void emu_ptl_ack(struct emu_ptl_ni *ni, const struct emu_ptl_send *send, const struct emu_ptl_peer *peer,
                 uint64_t mlength, unsigned fail);

/* A reply that is being stored. */
struct emu_ptl_reply {
    struct emu_ptl_md md;       /* a copy: where the data go */
    struct emu_ptl_event event; /* what END will say */
    uint64_t mlength;
    uint32_t eq;
    uint32_t eq_generation;
    bool has_end;
};

/* True: the reply is taken, START is posted. False: nobody wants it, which is counted. */
bool emu_ptl_reply_begin(struct emu_ptl_ni *ni, const struct emu_ptl_send *send, const struct emu_ptl_peer *peer,
                         uint64_t mlength, struct emu_ptl_reply *reply);
void emu_ptl_reply_end(struct emu_ptl_ni *ni, const struct emu_ptl_send *send, struct emu_ptl_reply *reply,
                       unsigned fail);

/* ---- events ---- */

/* Puts an event into a queue, in place of the oldest if it is full. A queue that is gone takes nothing. */
void emu_ptl_post(struct emu_ptl_ni *ni, uint32_t eq, uint32_t eq_generation, const struct emu_ptl_event *event);

enum emu_ptl_take { EMU_PTL_EVENT, EMU_PTL_EVENT_AFTER_LOSS, EMU_PTL_NO_EVENT };

/* Where the consumer of a queue is. */
struct emu_ptl_head {
    uint64_t at;   /* events taken or lost, from where the queue began */
    bool has_lost; /* some were lost, which the next event tells */
};

/*
 * The next event; the head moves behind it unless it is to stay. Owner only, one thread at a time; needs no lock.
 * capacity and ring are the owner's own knowledge of the queue.
 */
enum emu_ptl_take emu_ptl_take(const struct emu_ptl_eq *eq, const struct emu_ptl_event *ring, uint32_t capacity,
                               struct emu_ptl_head *head, bool stays, struct emu_ptl_event *event_out);

/* A request will be taken: gets the lines of its event on their way, while there is other work to do. */
void emu_ptl_expect(struct emu_ptl_ni *ni, const struct emu_ptl_taker *taker);

/* ---- memory of a descriptor ---- */

struct emu_ptl_span {
    const struct emu_ptl_iov *iovs; /* borrowed from the interface; NULL: `one` */
    uint32_t n;
    struct emu_ptl_iov one;
};

void emu_ptl_span_of(struct emu_ptl_ni *ni, const struct emu_ptl_md *md, struct emu_ptl_span *span_out);

/* A byte of a descriptor's memory. All borrowed. */
struct emu_ptl_at {
    const struct emu_memory *memory;
    const struct emu_ptl_span *span;
    uint64_t offset; /* in the span */
};

/*
 * Copies len_bytes between two descriptors' memories, from two places on. 0, or as emu_memory_copy();
 * fault_out: 0 the source, 1 the destination. No lock needed.
 */
int emu_ptl_move(struct emu_ptl_at dst, struct emu_ptl_at src, uint64_t len_bytes, struct emu_bounce bounce,
                 int *fault_out);

#endif
