/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Completion queues as programs see them.
 *
 * A queue is used as source queue (completions of our posts and sends) or as destination queue (events that peers
 * cause). On a source queue the library keeps room for every post and send before it starts them (in_use never exceeds
 * capacity), so it cannot overrun. A post's room is free again at its last GNI_GetCompleted, a send's when its entry
 * is taken. Entries of destroyed end points and of silent posts are swallowed here.
 *
 * Room: as many entries as were asked for, and not less than EMUNIC_CQ_FLOOR: that is as the original was seen to do,
 * and lets programs live that have no flow control. As transfer slots nobody misses the difference. But whoever asks
 * for a single entry (EMUNIC_CQ_LITERAL) and lets peers cause more events wants the overrun, so these get no more. The
 * owner's completions and this library's own events, of credits that come back, use the room all the same.
 *
 * Overrun of a destination queue: entries that were in it come first, then an ERROR_RESOURCE with the overrun bit for
 * each entry that was lost, so that whoever waits for a number of entries gets as many answers. Between two of them a
 * call says NOT_DONE: programs drain the queue after the first and take its end for the end of the overrun. New entries
 * are kept and come before what is left to be told.
 *
 * Loss of the NIC: entries already published come first, then every post and send still on its way fails with
 * status "network", then each call says TRANSACTION_ERROR, because nothing will ever come again.
 *
 * Polling makes no system call but a look at the connection every few thousand empty polls and, when processes
 * outnumber cores, a yield or a short rest (emunic/client/port.h). Blocking calls poll spin_polls times, then sleep on
 * the queues' futex words without a lock; they count the queues, which therefore stay until the last waiter has seen
 * that they were destroyed.
 * Source: spec/ugni.md 4.9.
 */
#include <errno.h>
#include <stdlib.h>

#include "emunic/base/clock.h"
#include "libugni/src/parked.h"
#include "libugni/src/rc.h"
#include "libugni/src/ugni.h"

#define ENTRIES_MAX   (1u << 20)
#define NEVER         UINT64_MAX
#define WORDS_MAX     128u     /* that a thread can sleep on */
#define MANY_SLICE_NS 1000000u /* with more queues it looks so often */

/* ---- objects ---- */

gni_return_t GNI_CqCreate(gni_nic_handle_t nic_hndl, uint32_t entry_count, uint32_t delay_count, gni_cq_mode_t mode,
                          void (*handler)(gni_cq_entry_t *, void *), void *context, gni_cq_handle_t *cq_hndl)
{
    struct gnii_nic *nic = gnii_nic_find(nic_hndl);
    struct gnii_cq *cq;
    uint32_t for_peers;
    void *handle;
    int r;

    if (!nic || !cq_hndl || entry_count == 0 || entry_count > ENTRIES_MAX || GNI_CQ_IS_INVALID_EMULATED(mode))
        return GNI_RC_INVALID_PARAM;
    cq = calloc(1, sizeof(*cq));
    if (!cq)
        return GNI_RC_ERROR_NOMEM;
    cq->refs = 1;
    cq->nic = nic;
    cq->mode = mode;
    cq->handler = handler;
    cq->context = context;
    cq->capacity =
        entry_count > nic->port.settings.cq_floor_entries ? entry_count : (uint32_t)nic->port.settings.cq_floor_entries;
    cq->posts_max = (nic->modes & GNI_CDM_MODE_DUAL_EVENTS) ? cq->capacity / 2 : cq->capacity;
    for_peers = entry_count > nic->port.settings.cq_literal_entries ? cq->capacity : entry_count;
    r = emu_port_cq_create_roomy(&nic->port, for_peers, cq->capacity, GNI_CQ_IS_BLOCKING(mode), &cq->index,
                                 &cq->consumer);
    if (r < 0)
        goto err_cq;
    r = gnii_object_add(GNII_KIND_CQ, cq, &handle);
    if (r < 0)
        goto err_port;
    cq->handle = handle;
    if (GNI_CQ_IS_BLOCKING(mode))
        atomic_store(&cq->consumer.shm->wake_after, delay_count < for_peers ? delay_count : for_peers);
    else
        emu_cq_add_own(&cq->consumer); /* without it there is the shared ring */
    atomic_fetch_add(&nic->refs, 1);
    emu_biased_lock(&nic->lock);
    LIST_INSERT_HEAD(&nic->cqs, cq, link);
    emu_biased_unlock(&nic->lock);
    *cq_hndl = handle;
    return GNI_RC_SUCCESS;

err_port:
    emu_port_cq_destroy(&nic->port, cq->index);
err_cq:
    free(cq);
    return gnii_rc(GNII_CALL_CREATE, r);
}

static void put_cq(struct gnii_cq *cq)
{
    struct gnii_nic *nic = cq->nic;

    if (atomic_fetch_sub(&cq->refs, 1) > 1)
        return;
    emu_cq_consumer_fini(&cq->consumer);
    free(cq->sends);
    free(cq);
    gnii_nic_put(nic);
}

void gnii_cq_wake(struct gnii_cq *cq)
{
    atomic_store(&cq->consumer.shm->sleepers, 0);
    emu_port_wake(&cq->consumer.shm->sleepers);
}

void gnii_cq_free(struct gnii_cq *cq)
{
    gnii_object_remove(cq->handle);
    gnii_chan_forget(cq);
    LIST_REMOVE(cq, link);
    atomic_store(&cq->is_dead, true);
    put_cq(cq);
}

gni_return_t GNI_CqDestroy(gni_cq_handle_t cq_hndl)
{
    struct gnii_cq *cq = gnii_cq_find(cq_hndl);
    struct gnii_nic *nic;
    gni_return_t rc = GNI_RC_SUCCESS;

    if (!cq)
        return GNI_RC_INVALID_PARAM;
    nic = cq->nic;
    emu_biased_lock(&nic->lock);
    if (cq->n_eps > 0) {
        rc = GNI_RC_ERROR_RESOURCE;
    } else {
        /* The next queue may get this one's place: nothing under way may name it any more. */
        gnii_tx_wait(nic, NULL, cq);
        atomic_store(&cq->is_dead, true);
        gnii_cq_wake(cq);
        gnii_parked_queue_ends(nic, cq->index);
        emu_port_cq_destroy(&nic->port, cq->index);
        for (uint32_t tid = 0; tid < nic->n_tx; tid++) {
            if (nic->tx[tid].cq == cq)
                gnii_tx_give(nic, tid); /* nobody can ask for them */
        }
        for (; cq->sends_head != cq->sends_tail; cq->sends_head++) {
            const struct gnii_send *send = &cq->sends[cq->sends_head & cq->sends_mask];

            gnii_msgq_settle(send->is_settled ? NULL : send->msgq);
        }
        gnii_cq_free(cq);
    }
    emu_biased_unlock(&nic->lock);
    return rc;
}

/* ---- taking entries; NIC lock held ---- */

bool gnii_cq_make_sends(struct gnii_cq *cq)
{
    uint64_t n = cq->consumer.ring_entries; /* a power of two, at least the capacity */

    if (cq->sends)
        return false;
    cq->sends = calloc(n, sizeof(*cq->sends));
    if (!cq->sends)
        return false;
    cq->sends_mask = n - 1;
    cq->sends_max = n < GNII_CQE_SENDS ? n : GNII_CQE_SENDS;
    return true;
}

/* The send that an entry belongs to. NULL: emunic made it up. */
static struct gnii_send *find_send(const struct gnii_cq *cq, uint64_t event)
{
    uint64_t ahead = (gnii_cqe_number(event) - cq->sends_head) & (GNII_CQE_SENDS - 1);
    struct gnii_send *send;

    if (ahead >= cq->sends_tail - cq->sends_head)
        return NULL;
    send = &cq->sends[(cq->sends_head + ahead) & cq->sends_mask];
    return send->is_settled ? NULL : send;
}

/* A send's entry: true if the program shall see it. One that emunic made up is shown rather than hidden. */
static bool settle_send(struct gnii_cq *cq, struct gnii_send *send)
{
    if (!send)
        return true;
    cq->in_use--;
    gnii_msgq_settle(send->msgq);
    if (send->ep)
        send->ep->outstanding--;
    send->is_settled = true;
    cq->sends_settled++;
    while (cq->sends_head != cq->sends_tail && cq->sends[cq->sends_head & cq->sends_mask].is_settled) {
        cq->sends_head++;
        cq->sends_settled--;
    }
    return send->ep;
}

/* Before settle_send() of a message that got lost. */
static void note_lost_send(const struct gnii_send *send, unsigned status)
{
    if (send && send->is_msgq)
        gnii_msgq_note_lost(send->msgq, send->stamp, status);
    else if (send && send->ep)
        gnii_smsg_fill_hole(send->ep, send->stamp);
}

/* The post that an entry belongs to; NULL none. */
static inline __attribute__((always_inline)) struct gnii_tx *find_post(const struct gnii_cq *cq, uint64_t event)
{
    uint32_t tid = gnii_cqe_tid(event);
    struct gnii_tx *tx = tid < cq->nic->n_tx ? &cq->nic->tx[tid] : NULL;

    return tx && tx->descr && tx->cq == cq && tx->events_due > 0 ? tx : NULL;
}

/* A post's entry: true if the program shall see it. */
static bool settle_post(struct gnii_cq *cq, uint64_t event)
{
    struct gnii_nic *nic = cq->nic;
    struct gnii_tx *tx = find_post(cq, event);

    if (!tx)
        return false;
    if (--tx->events_due == 0 && tx->ep)
        tx->ep->outstanding--;
    if (gnii_cqe_status(event) != GNII_CQE_OK)
        tx->status = (uint8_t)gnii_cqe_status(event);
    if (!tx->ep || gnii_cqe_engine(event) == GNII_CQE_ENGINE_LIBRARY) {
        /* Of a destroyed end point, or a silent post that went well. */
        if (--tx->events_left == 0)
            gnii_tx_give(nic, gnii_cqe_tid(event));
        return false;
    }
    return true;
}

/* Of an event of a peer: mostly of a message in the mailbox used last, whose line comes while the program decides. */
static inline void prefetch_next_message(const struct gnii_cq *cq)
{
    __builtin_prefetch(atomic_load_explicit(&cq->nic->next_slot, memory_order_relaxed));
}

static __attribute__((noinline)) bool shall_be_seen(struct gnii_cq *cq, uint64_t event)
{
    switch (gnii_cqe_engine(event)) {
    case GNII_CQE_ENGINE_REMOTE:
        prefetch_next_message(cq);
        return true;
    case GNII_CQE_ENGINE_CQ_WRITE:
    case GNII_CQE_ENGINE_CE:
        return true;
    case GNII_CQE_ENGINE_SMSG:
        if (gnii_cqe_status(event) != GNII_CQE_OK)
            note_lost_send(find_send(cq, event), gnii_cqe_status(event));
        return settle_send(cq, find_send(cq, event));
    default:
        return settle_post(cq, event);
    }
}

/* The next failure to report after the NIC has gone; true if there was one of ours. */
static bool fail_next(struct gnii_cq *cq, uint64_t *event_out)
{
    struct gnii_nic *nic = cq->nic;

    while (cq->sends_head != cq->sends_tail) {
        struct gnii_send *send = &cq->sends[cq->sends_head & cq->sends_mask];
        uint64_t event = gnii_cqe_send(send->is_msgq ? GNI_CQ_EVENT_TYPE_MSGQ : GNI_CQ_EVENT_TYPE_SMSG, send->msg_id,
                                       GNII_CQE_NETWORK);

        if (settle_send(cq, send)) {
            *event_out = event;
            return true;
        }
    }
    for (uint32_t tid = 0; tid < nic->n_tx; tid++) {
        struct gnii_tx *tx = &nic->tx[tid];

        if (!tx->descr || tx->cq != cq || tx->events_due == 0)
            continue;
        *event_out = gnii_cqe_post(GNII_CQE_ENGINE_FMA, tid, tx->ep ? tx->ep->local_event : 0, GNII_CQE_NETWORK);
        if (settle_post(cq, *event_out))
            return true;
    }
    return false;
}

/* A post's entry on a Gemini has room for all of the event data. Its slot is there until GNI_GetCompleted(). */
static gni_cq_entry_t for_program(const struct gnii_cq *cq, uint64_t event)
{
    uint32_t tid = gnii_cqe_tid(event);

    switch (gnii_cqe_engine(event)) {
    case GNII_CQE_ENGINE_SMSG:
    case GNII_CQE_ENGINE_REMOTE:
        return gnii_cqe_unnumbered(event);
    case GNII_CQE_ENGINE_FMA:
    case GNII_CQE_ENGINE_BTE:
        return cq->nic->is_gemini ? gnii_cqe_widened(event, cq->nic->tx[tid].local_event) : event;
    default:
        return event;
    }
}

static gni_return_t report_loss(struct gnii_cq *cq, gni_cq_entry_t *event_data)
{
    gnii_nic_tell_loss(cq->nic);
    /* Behind the last of ours comes a word with a tid that no post has. */
    if (fail_next(cq, event_data))
        *event_data = for_program(cq, *event_data);
    else
        *event_data = gnii_cqe_make(GNI_CQ_EVENT_TYPE_POST, GNII_CQE_ENGINE_LIBRARY, GNII_CQE_NETWORK,
                                    GNII_CQE_TID_MASK << GNII_CQE_TID_SHIFT);
    return GNI_RC_TRANSACTION_ERROR;
}

/* Runs for the entry of a message whose sender did not know yet whether we were there. */
static __attribute__((noinline)) void note_early(struct gnii_cq *cq, uint64_t event)
{
    struct gnii_job *job = cq->nic->job;

    if (gnii_cqe_type(event) != GNI_CQ_EVENT_TYPE_SMSG)
        return;
    pthread_mutex_lock(&job->lock);
    gnii_early_taken(&job->early, gnii_cqe_event(event), (uint16_t)gnii_cqe_number(event));
    pthread_mutex_unlock(&job->lock);
}

static __attribute__((noinline)) gni_return_t deliver(struct gnii_cq *cq, uint64_t event, gni_cq_entry_t *event_data)
{
    if (gnii_cqe_engine(event) == GNII_CQE_ENGINE_REMOTE && gnii_cqe_number(event) != 0)
        note_early(cq, event);
    *event_data = for_program(cq, event);
    if (gnii_cqe_status(event) == GNII_CQE_OK)
        return GNI_RC_SUCCESS;
    gnii_nic_note_error(cq->nic, gnii_cqe_status(event));
    return GNI_RC_TRANSACTION_ERROR;
}

/* ---- the short way of what is taken most: shown as it is, and settled. False: nothing has happened ---- */

static inline __attribute__((always_inline)) bool take_post(struct gnii_cq *cq, uint64_t event)
{
    struct gnii_tx *tx = find_post(cq, event);

    if (!tx || !tx->ep || cq->nic->is_gemini)
        return false;
    if (--tx->events_due == 0)
        tx->ep->outstanding--;
    return true;
}

/* The oldest send, and none behind it was settled before. */
static inline __attribute__((always_inline)) bool take_send(struct gnii_cq *cq, uint64_t event)
{
    struct gnii_send *send;

    if (cq->sends_head == cq->sends_tail || cq->sends_settled != 0 ||
        gnii_cqe_number(event) != (cq->sends_head & (GNII_CQE_SENDS - 1)))
        return false;
    send = &cq->sends[cq->sends_head & cq->sends_mask];
    if (send->msgq || !send->ep)
        return false;
    cq->sends_head++;
    cq->in_use--;
    send->ep->outstanding--;
    send->is_settled = true;
    return true;
}

static inline __attribute__((always_inline)) bool take_plain(struct gnii_cq *cq, uint64_t event,
                                                             gni_cq_entry_t *event_data)
{
    uint64_t head = gnii_cqe_head(event);

    if (head == GNII_CQE_HEAD_SENT) {
        *event_data = gnii_cqe_unnumbered(event);
        return take_send(cq, event);
    }
    *event_data = event;
    if (gnii_cqe_is_plain_post(event))
        return take_post(cq, event);
    if ((head != GNII_CQE_HEAD_OF_SMSG && head != GNII_CQE_HEAD_OF_POST) || gnii_cqe_number(event) != 0)
        return false;
    prefetch_next_message(cq);
    return true;
}

/* ---- the long way ---- */

/* No entry is there. */
static __attribute__((noinline)) gni_return_t tell_what_else(struct gnii_cq *cq, gni_cq_entry_t *event_data)
{
    if (!atomic_load_explicit(&cq->loss_was_told, memory_order_relaxed) && emu_cq_take_loss(&cq->consumer)) {
        cq->has_lost = true;
        atomic_store_explicit(&cq->loss_was_told, true, memory_order_relaxed);
        *event_data = gnii_cqe_overrun_word();
        return GNI_RC_ERROR_RESOURCE;
    }
    if (gnii_nic_is_lost(cq->nic))
        return report_loss(cq, event_data);
    atomic_store_explicit(&cq->loss_was_told, false, memory_order_relaxed);
    *event_data = 0;
    return GNI_RC_NOT_DONE;
}

/* The long way, from an entry on that was taken off the queue and is not plain. */
static __attribute__((noinline)) gni_return_t take_from(struct gnii_cq *cq, uint64_t event, gni_cq_entry_t *event_data)
{
    do {
        if (shall_be_seen(cq, event))
            return deliver(cq, event, event_data);
    } while (emu_cq_pop(&cq->consumer, &event) == EMU_CQ_OK);
    return tell_what_else(cq, event_data);
}

static inline gni_return_t take_event(struct gnii_cq *cq, gni_cq_entry_t *event_data)
{
    uint64_t event;

    if (emu_cq_pop(&cq->consumer, &event) != EMU_CQ_OK)
        return tell_what_else(cq, event_data);
    return take_plain(cq, event, event_data) ? GNI_RC_SUCCESS : take_from(cq, event, event_data);
}

/* For an entry just taken. Without the lock: the handler may use the NIC. */
static inline void call_handler(const struct gnii_cq *cq, gni_return_t rc, gni_cq_entry_t *event_data)
{
    if (cq->handler && (rc == GNI_RC_SUCCESS || rc == GNI_RC_TRANSACTION_ERROR))
        cq->handler(event_data, cq->context);
}

/* Will the oldest entry be shown? What shall_be_seen() will say, without taking it. */
static bool is_for_program(const struct gnii_cq *cq, uint64_t event)
{
    const struct gnii_send *send;
    const struct gnii_tx *tx;

    switch (gnii_cqe_engine(event)) {
    case GNII_CQE_ENGINE_REMOTE:
    case GNII_CQE_ENGINE_CQ_WRITE:
    case GNII_CQE_ENGINE_CE:
        return true;
    case GNII_CQE_ENGINE_SMSG:
        send = find_send(cq, event);
        return !send || send->ep;
    case GNII_CQE_ENGINE_LIBRARY:
        return false;
    default:
        tx = find_post(cq, event);
        return tx && tx->ep;
    }
}

bool gnii_cq_reclaim(struct gnii_cq *cq)
{
    uint64_t event;

    while (emu_cq_peek(&cq->consumer, 0, &event) == EMU_CQ_OK) {
        if (is_for_program(cq, event))
            return true;
        if (emu_cq_pop(&cq->consumer, &event) == EMU_CQ_OK)
            shall_be_seen(cq, event);
    }
    return false;
}

void gnii_cq_reclaim_all(struct gnii_nic *nic)
{
    struct gnii_cq *cq;

    LIST_FOREACH(cq, &nic->cqs, link)
        gnii_cq_reclaim(cq);
}

/* ---- polling ---- */

/* Nothing to take, to report or to tell: what a poll finds most of the time. Without the lock; may be out of date. */
static inline bool has_no_news(const struct gnii_cq *cq)
{
    return emu_cq_is_empty(&cq->consumer) && !emu_cq_has_overrun(&cq->consumer) && !gnii_nic_is_lost(cq->nic) &&
           !atomic_load_explicit(&cq->loss_was_told, memory_order_relaxed);
}

static inline gni_return_t poll_once(struct gnii_cq *cq, gni_cq_entry_t *event_data)
{
    gni_return_t rc;

    if (has_no_news(cq)) {
        prefetch_next_message(cq);
        *event_data = 0;
        return GNI_RC_NOT_DONE;
    }
    emu_biased_lock(&cq->nic->lock);
    rc = take_event(cq, event_data);
    emu_biased_unlock(&cq->nic->lock);
    return rc;
}

/* Moves a part of what the program may wait for. False: there was nothing to move. */
static bool help_emunic(struct gnii_cq *cq)
{
    bool has_helped;

    if (!emu_handed_is_any(&cq->nic->port.handed))
        return false;
    emu_biased_lock(&cq->nic->lock);
    has_helped = !atomic_load(&cq->is_dead) && emu_port_help(&cq->nic->port);
    emu_biased_unlock(&cq->nic->lock);
    return has_helped;
}

/* Nothing was found. True: look again. */
static bool pass_time(struct gnii_cq *cq)
{
    return help_emunic(cq) || emu_port_relax(&cq->nic->port, (uintptr_t)cq);
}

gni_return_t GNI_CqGetEvent(gni_cq_handle_t cq_hndl, gni_cq_entry_t *event_data)
{
    struct gnii_cq *cq = gnii_cq_find(cq_hndl);
    gni_return_t rc;

    if (!cq || !event_data)
        return GNI_RC_INVALID_PARAM;
    rc = poll_once(cq, event_data);
    /* Where losses are still to be told this NOT_DONE is the one between two of them. */
    if (rc == GNI_RC_NOT_DONE && pass_time(cq) && !emu_cq_has_lost(&cq->consumer))
        rc = poll_once(cq, event_data);
    if (rc == GNI_RC_NOT_DONE)
        return rc;
    emu_port_found(&cq->nic->port);
    call_handler(cq, rc, event_data);
    return rc;
}

/* Without the lock, as programs call it: may be out of date. */
static gni_return_t look_past_entries(struct gnii_cq *cq)
{
    if (emu_cq_has_overrun(&cq->consumer))
        return GNI_RC_ERROR_RESOURCE;
    if (gnii_nic_is_lost(cq->nic))
        return GNI_RC_SUCCESS; /* GNI_CqGetEvent has something to say */
    return GNI_RC_NOT_DONE;
}

bool gnii_cq_has_news(struct gnii_cq *cq)
{
    return !emu_cq_is_empty(&cq->consumer) || look_past_entries(cq) != GNI_RC_NOT_DONE;
}

/*
 * Would GNI_CqGetEvent() return something? Entries that the program shall not see, also those that come just now, do
 * not count.
 */
static gni_return_t look(struct gnii_cq *cq)
{
    bool has_entry = false;

    if (!emu_cq_is_empty(&cq->consumer)) {
        emu_biased_lock(&cq->nic->lock);
        if (!atomic_load(&cq->is_dead)) /* else the place may be another queue's by now */
            has_entry = gnii_cq_reclaim(cq);
        emu_biased_unlock(&cq->nic->lock);
    }
    return has_entry ? GNI_RC_SUCCESS : look_past_entries(cq);
}

gni_return_t GNI_CqTestEvent(gni_cq_handle_t cq_hndl)
{
    struct gnii_cq *cq = gnii_cq_find(cq_hndl);
    gni_return_t rc;

    if (!cq)
        return GNI_RC_INVALID_PARAM;
    rc = look(cq);
    if (rc == GNI_RC_NOT_DONE && pass_time(cq))
        rc = look(cq);
    return rc;
}

/* ---- blocking ---- */

/* One blocking call. The queues may belong to several NIC handles. */
struct vector {
    struct gnii_wait wait;
    struct gnii_cq **cqs;           /* counted */
    struct gnii_cq *few[WORDS_MAX]; /* where they are, but for larger vectors */
    uint32_t n_cqs;
    uint64_t deadline_ns;
    gni_cq_entry_t *event_data; /* NULL: only look */
    uint32_t *which;
};

static uint64_t deadline_of(uint64_t timeout_ms)
{
    uint64_t now_ns = emu_clock_ns();

    if (timeout_ms == (uint64_t)-1 || timeout_ms > (UINT64_MAX - now_ns) / 1000000)
        return NEVER;
    return now_ns + timeout_ms * 1000000;
}

/* Index of a queue with something in it, or -1. */
static int find_ready(const struct vector *v)
{
    for (uint32_t i = 0; i < v->n_cqs; i++) {
        if (look(v->cqs[i]) != GNI_RC_NOT_DONE)
            return (int)i;
    }
    return -1;
}

/* May a call sleep on these queues? SUCCESS, NOT_DONE when one is masked, or what has happened to them. */
static gni_return_t check_state(const struct vector *v)
{
    gni_return_t rc = GNI_RC_SUCCESS;

    for (uint32_t i = 0; i < v->n_cqs; i++) {
        if (atomic_load(&v->cqs[i]->nic->is_closing))
            return GNI_RC_INVALID_STATE;
        if (atomic_load(&v->cqs[i]->is_dead))
            return GNI_RC_INVALID_PARAM;
        if (atomic_load(&v->cqs[i]->interrupt_mask) > 0)
            rc = GNI_RC_NOT_DONE;
    }
    return rc;
}

static void look_for_loss(const struct vector *v)
{
    /* The first one's NIC is looked at by emu_port_wait(). */
    for (uint32_t i = 1; i < v->n_cqs; i++) {
        if (v->cqs[i]->nic != v->cqs[i - 1]->nic)
            emu_port_is_lost(&v->cqs[i]->nic->port);
    }
}

/* Sleeps until one of the queues may have something to say. */
static int sleep_on(const struct vector *v)
{
    uint32_t n_words = v->n_cqs < WORDS_MAX ? v->n_cqs : WORDS_MAX;
    uint64_t until_ns = v->n_cqs > WORDS_MAX ? emu_clock_ns() + MANY_SLICE_NS : NEVER;
    _Atomic uint32_t *words[WORDS_MAX];
    uint32_t seen[WORDS_MAX];
    int r;

    look_for_loss(v);
    for (uint32_t i = 0; i < n_words; i++) {
        words[i] = &v->cqs[i]->consumer.shm->sleepers;
        seen[i] = 1;
        atomic_store_explicit(words[i], 1, memory_order_relaxed);
    }
    /* Pairs with the fence in emu_cq_push() and with gnii_cq_wake(): we see the news, or our mark is seen. */
    atomic_thread_fence(memory_order_seq_cst);
    if (find_ready(v) >= 0 || check_state(v) != GNI_RC_SUCCESS)
        return 0;
    if (until_ns > v->deadline_ns)
        until_ns = v->deadline_ns;
    r = gnii_wait_sleep(&v->wait, v->cqs[0]->nic, words, seen, n_words, until_ns);
    return r == -ETIMEDOUT && until_ns < v->deadline_ns ? 0 : r;
}

static bool help_with_any(const struct vector *v)
{
    bool has_helped = false;

    for (uint32_t i = 0; i < v->n_cqs && !has_helped; i++)
        has_helped = help_emunic(v->cqs[i]);
    return has_helped;
}

/* Waits for one of the queues. SUCCESS with *which_out, or the code to answer. */
static gni_return_t wait_for(const struct vector *v, uint32_t *which_out)
{
    struct emu_port *port = &v->cqs[0]->nic->port;
    int r = 0;

    for (uint64_t polls = 0;; polls++) {
        int ready = find_ready(v);
        gni_return_t rc = check_state(v);

        if (ready >= 0 && (rc == GNI_RC_SUCCESS || rc == GNI_RC_NOT_DONE)) {
            *which_out = (uint32_t)ready;
            return GNI_RC_SUCCESS;
        }
        if (rc != GNI_RC_SUCCESS)
            return rc;
        /* Events that were too few to wake us came first. */
        if (r < 0 && r != -ENETDOWN)
            return gnii_rc(GNII_CALL_PLAIN, r);
        if (help_with_any(v)) {
            if (emu_clock_ns() >= v->deadline_ns)
                return GNI_RC_TIMEOUT;
            polls = 0;
            continue;
        }
        if (polls < port->settings.spin_polls) {
            uint32_t counts_for = emu_port_spin(port);

            if ((counts_for > 1 || polls % 64 == 63) && emu_clock_ns() >= v->deadline_ns)
                return GNI_RC_TIMEOUT;
            polls += counts_for - 1;
            continue;
        }
        r = sleep_on(v);
    }
}

/* Takes the event as well if the call wants it; another thread may have been faster, then it waits again. */
static gni_return_t wait_and_take(const struct vector *v)
{
    gni_return_t rc;

    do {
        struct gnii_cq *cq;
        uint32_t which = 0;

        rc = wait_for(v, &which);
        if (rc != GNI_RC_SUCCESS)
            return rc;
        *v->which = which;
        if (!v->event_data)
            return GNI_RC_SUCCESS;
        cq = v->cqs[which];
        emu_biased_lock(&cq->nic->lock);
        rc = check_state(v);
        if (rc == GNI_RC_SUCCESS || rc == GNI_RC_NOT_DONE)
            rc = take_event(cq, v->event_data);
        emu_biased_unlock(&cq->nic->lock);
        call_handler(cq, rc, v->event_data);
    } while (rc == GNI_RC_NOT_DONE);
    return rc;
}

static void give_back(void *arg)
{
    struct vector *v = arg;

    while (v->n_cqs > 0)
        put_cq(v->cqs[--v->n_cqs]);
    if (v->cqs != v->few)
        free(v->cqs);
}

static gni_return_t count_queues(struct vector *v, const gni_cq_handle_t *handles, uint32_t n_cqs)
{
    bool all_block = true;

    if (n_cqs > WORDS_MAX)
        v->cqs = calloc(n_cqs, sizeof(*v->cqs));
    if (!v->cqs)
        return GNI_RC_ERROR_NOMEM;
    for (v->n_cqs = 0; v->n_cqs < n_cqs; v->n_cqs++) {
        struct gnii_cq *cq = gnii_object_get(GNII_KIND_CQ, handles[v->n_cqs]);

        if (!cq)
            return GNI_RC_INVALID_PARAM;
        v->cqs[v->n_cqs] = cq;
        all_block = all_block && GNI_CQ_IS_BLOCKING(cq->mode);
    }
    return all_block ? GNI_RC_SUCCESS : GNI_RC_ERROR_RESOURCE;
}

static gni_return_t wait_on(struct vector *v, const gni_cq_handle_t *handles, uint32_t n_cqs, uint64_t timeout_ms)
{
    gni_return_t rc;

    v->cqs = v->few;
    v->deadline_ns = deadline_of(timeout_ms);
    gnii_wait_begin(&v->wait, give_back, v);
    rc = count_queues(v, handles, n_cqs);
    if (rc == GNI_RC_SUCCESS)
        rc = wait_and_take(v);
    else if (rc == GNI_RC_ERROR_RESOURCE && v->event_data)
        *v->event_data = 0;
    gnii_wait_end(&v->wait);
    return rc;
}

gni_return_t GNI_CqWaitEvent(gni_cq_handle_t cq_hndl, uint64_t timeout, gni_cq_entry_t *event_data)
{
    uint32_t which;
    struct vector v = { .event_data = event_data, .which = &which };

    return event_data ? wait_on(&v, &cq_hndl, 1, timeout) : GNI_RC_INVALID_PARAM;
}

gni_return_t GNI_CqVectorWaitEvent(gni_cq_handle_t *cq_hndls, uint32_t num_cqs, uint64_t timeout,
                                   gni_cq_entry_t *event_data, uint32_t *which)
{
    struct vector v = { .event_data = event_data, .which = which };

    if (!cq_hndls || num_cqs == 0 || !event_data || !which)
        return GNI_RC_INVALID_PARAM;
    return wait_on(&v, cq_hndls, num_cqs, timeout);
}

gni_return_t GNI_CqVectorMonitor(gni_cq_handle_t *cq_hndls, uint32_t num_cqs, uint64_t timeout, uint32_t *which)
{
    struct vector v = { .which = which };

    if (!cq_hndls || num_cqs == 0 || !which)
        return GNI_RC_INVALID_PARAM;
    return wait_on(&v, cq_hndls, num_cqs, timeout);
}

/* One more or one less; not past the end of the count. */
static gni_return_t count_mask(struct gnii_cq *cq, uint32_t end, uint32_t step)
{
    uint32_t count = atomic_load(&cq->interrupt_mask);

    do {
        if (count == end)
            return GNI_RC_NOT_DONE;
    } while (!atomic_compare_exchange_weak(&cq->interrupt_mask, &count, count + step));
    return GNI_RC_SUCCESS;
}

gni_return_t GNI_CqInterruptMask(gni_cq_handle_t cq_hndl)
{
    struct gnii_cq *cq = gnii_cq_find(cq_hndl);
    gni_return_t rc;

    if (!cq || !GNI_CQ_IS_BLOCKING(cq->mode))
        return GNI_RC_INVALID_PARAM;
    rc = count_mask(cq, UINT32_MAX, 1);
    gnii_cq_wake(cq);
    return rc;
}

gni_return_t GNI_CqInterruptUnmask(gni_cq_handle_t cq_hndl)
{
    struct gnii_cq *cq = gnii_cq_find(cq_hndl);

    if (!cq || !GNI_CQ_IS_BLOCKING(cq->mode))
        return GNI_RC_INVALID_PARAM;
    return count_mask(cq, 0, UINT32_MAX);
}

/* ---- descriptors ---- */

/* Gives a descriptor back, of an entry of a post with that tid. */
static inline gni_return_t complete(struct gnii_cq *cq, uint32_t tid, unsigned status,
                                    gni_post_descriptor_t **descr_out)
{
    struct gnii_nic *nic = cq->nic;
    struct gnii_tx *tx = tid < nic->n_tx ? &nic->tx[tid] : NULL;

    if (!tx || !tx->descr || tx->cq != cq || tx->events_left <= tx->events_due) {
        *descr_out = NULL;
        return GNI_RC_DESCRIPTOR_ERROR;
    }
    *descr_out = tx->descr;
    tx->descr->status = status;
    /* LOCAL comes before GLOBAL. */
    tx->descr->cq_mode_complete = tx->events_left > 1 ? GNI_CQMODE_LOCAL_EVENT : tx->cq_mode;
    if (--tx->events_left == 0)
        gnii_tx_give(nic, tid);
    return status == GNII_CQE_OK ? GNI_RC_SUCCESS : GNI_RC_TRANSACTION_ERROR;
}

/* Of any word that a program hands in. */
static __attribute__((noinline)) gni_return_t complete_any(struct gnii_cq *cq, gni_cq_entry_t entry,
                                                           gni_post_descriptor_t **descr_out)
{
    if (gnii_cqe_type(entry) == GNI_CQ_EVENT_TYPE_POST && gnii_cqe_engine(entry) != GNII_CQE_ENGINE_CE)
        return complete(cq, gnii_cqe_tid_of_program(entry), gnii_cqe_status(entry), descr_out);
    *descr_out = NULL;
    return GNI_RC_DESCRIPTOR_ERROR;
}

gni_return_t GNI_GetCompleted(gni_cq_handle_t cq_hndl, gni_cq_entry_t event_data, gni_post_descriptor_t **post_descr)
{
    struct gnii_cq *cq = gnii_cq_find(cq_hndl);
    gni_return_t rc;

    if (!cq || !post_descr)
        return GNI_RC_INVALID_PARAM;
    emu_biased_lock(&cq->nic->lock);
    if (gnii_cqe_is_plain_post(event_data))
        rc = complete(cq, gnii_cqe_tid(event_data), GNII_CQE_OK, post_descr);
    else
        rc = complete_any(cq, event_data, post_descr);
    emu_biased_unlock(&cq->nic->lock);
    return rc;
}
