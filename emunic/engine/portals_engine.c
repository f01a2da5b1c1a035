/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Portals: delivery, the target's side.
 *
 *   request -> match -> begin (threshold, offset, pending; START) -> data -> end (END, pending; dead, UNLINK)
 *
 * portals_match.c matches.
 *
 * Whoever runs the engine may die anywhere. A flight says how far it has come; emu_ptl_repair() ends it: what is not
 * visible yet is put back, what is visible becomes a failed operation. Each stage is stored before its first change.
 *
 * A brief operation (a small put) is done under one hold of the lock. Its flight keeps no event, unless UNLINK is to
 * come: if none of its events is in the queue, it never was; if START is there, END is made of it. One that has to let
 * go of the lock after all is begun once more, as one that is not brief.
 *
 * Where the two dialects differ, the interface's `behaviour` decides: that of the library whose descriptor it is.
 * Source: spec/portals3.md 1.4 to 1.9.
 */
#include "emunic/engine/portals_engine_inner.h"

/* ---- begin and end ---- */

static uint64_t align_up(uint64_t n, uint64_t to)
{
    return (n + to - 1) & ~(to - 1);
}

static uint64_t tail_of(struct emu_ptl_ni *ni, uint32_t eq, uint32_t generation)
{
    const struct emu_ptl_eq *e = eq_of(ni, eq, generation);

    return e ? atomic_load_explicit(&e->tail, memory_order_relaxed) : 0;
}

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

    start.kind--; /* each START stands before its END */
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

/* What every flight says of its descriptor and queue. e: the queue, or NULL. */
static inline void describe_flight(struct emu_ptl_flight *flight, const struct emu_ptl_taker *taker,
                                   const struct emu_ptl_eq *e, uint32_t port_generation)
{
    flight->generation = port_generation;
    flight->md = taker->index;
    flight->md_generation = taker->md.generation;
    flight->eq = e ? taker->md.eq : EMU_PTL_NONE;
    flight->eq_generation = taker->md.eq_generation;
    flight->eq_tail = e ? atomic_load_explicit(&e->tail, memory_order_relaxed) : 0;
    flight->old_offset = taker->md.local_offset;
    flight->old_threshold = taker->md.threshold;
    flight->old_flags = taker->md.flags;
}

void emu_ptl_begin(struct emu_ptl_ni *ni, const struct emu_ptl_request *rq, const struct emu_ptl_taker *taker,
                   uint32_t port_generation, struct emu_ptl_flight *flight)
{
    struct emu_ptl_md *md = &ni->mds[taker->index];
    struct emu_ptl_eq *e = eq_of(ni, taker->md.eq, taker->md.eq_generation);
    int32_t shown;

    describe_flight(flight, taker, e, port_generation);
    flight->old_pending = taker->md.pending;
    flight->old_promised = e ? e->promised : 0;
    flight->flags = (taker->acks ? EMU_PTL_FLIGHT_ACKS : 0);
    if (e && (taker->md.options & EMU_PTL_MD_START_DISABLE) == 0)
        flight->flags |= EMU_PTL_FLIGHT_START;
    if (e && (taker->md.options & EMU_PTL_MD_END_DISABLE) == 0)
        flight->flags |= EMU_PTL_FLIGHT_END | EMU_PTL_FLIGHT_PROMISED;
    set_stage(flight, EMU_PTL_PREPARED);
    md->pending++;
    shown = take(ni, md, taker->mlength);
    if (e && (flight->flags & EMU_PTL_FLIGHT_PROMISED) == 0 && !is_active(md) &&
        (md->flags & EMU_PTL_MD_UNLINKS) != 0 && has_unlink_event(ni, md))
        flight->flags |= EMU_PTL_FLIGHT_PROMISED; /* UNLINK will come */
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

    describe_flight(flight, taker, e, port_generation);
    set_stage(flight, EMU_PTL_BRIEF);
    take(ni, &ni->mds[taker->index], taker->mlength);
    ni->received++;
    ni->received_bytes += taker->mlength;
    if (ni->n_open_max <= ni->n_open)
        ni->n_open_max = ni->n_open + 1;
}

static void put_words_back(struct emu_ptl_md *md, const struct emu_ptl_flight *flight)
{
    md->local_offset = flight->old_offset;
    md->threshold = flight->old_threshold;
    md->flags = flight->old_flags;
}

void emu_ptl_prolong(struct emu_ptl_ni *ni, const struct emu_ptl_request *rq, const struct emu_ptl_taker *taker,
                     uint32_t port_generation, struct emu_ptl_flight *flight)
{
    put_words_back(&ni->mds[taker->index], flight);
    ni->received--;
    ni->received_bytes -= taker->mlength;
    /* The flight's old values are written once more as they are: who dies until PREPARED has done nothing. */
    emu_ptl_begin(ni, rq, taker, port_generation, flight);
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

    words[0] = 0;
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
                  offsetof(struct emu_ptl_event, eq_handle) == 120,
              "the words that make_words() makes");

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
        set_stage(flight, EMU_PTL_RETIRING); /* eq_tail may change now */
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
    uint64_t words[EVENT_WORDS];
    struct ring ring;

    if (e && (has_start || has_end || goes) && open_ring(ni, e, &ring)) {
        make_words(words, ni, rq, taker, link);
        if (has_start) {
            words[1]--; /* each START stands before its END */
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
        if (ring.tail != flight->eq_tail && load_event(&ring.slots[(ring.tail - 1) & ring.mask], ring.tail, &last)) {
            note_news(ni);
            if (last.kind % 2 == EMU_PTL_EVENT_GET_START % 2 && (last.options & EMU_PTL_MD_END_DISABLE) == 0) {
                last.kind++; /* START without END */
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
