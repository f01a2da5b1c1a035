/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Events, and what they lead to.
 *
 * Under the lock events only change requests; Open MPI's callbacks, which may send and receive again, are made after it
 * has been released, in the order in which the requests were done. One call looks at the inboxes and at all queues,
 * that of receives first. A process tells a peer what it has taken when that is half of what the peer may have under
 * way.
 */
#include "mpi-shim/openmpi/mtl.h"

#include <opal/runtime/opal_progress.h>

#include "emunic/client/message_cost.h"
#include "libportals/src/message_layer.h"

#define EVENTS_MAX      256 /* at a time: callbacks are made in between */
#define ROUNDS_PER_LOOK 4u  /* at the event queues, while none is expected */
#define SKIPS_MAX       16u /* polls in a row that leave events alone, because short messages have ended requests */

void mp3_done(struct mp3_request *request)
{
    request->next = NULL;
    *mp3.done_end = request;
    mp3.done_end = &request->next;
}

int mp3_call_back(void)
{
    int n = 0;

    for (;;) {
        struct mp3_request *request;

        mp3_lock();
        request = mp3.done;
        if (request) {
            mp3.done = request->next;
            if (!mp3.done)
                mp3.done_end = &mp3.done;
        }
        mp3_unlock();
        if (!request)
            return n;
        if (request->super.ompi_req)
            request->super.completion_callback(&request->super);
        else
            request->is_done = true;
        n++;
    }
}

/* ---- credits ---- */

/* Only differences since the last time count, so they are told as absolute numbers. */
static void tell(struct mp3_peer *peer)
{
    ptl_hdr_data_t taken = (ptl_hdr_data_t)peer->taken_messages << 32 | peer->taken_bytes;
    const struct p3_message message = { peer->id, MP3_PT_CREDIT, 0, taken };
    bool is_over = false;

    peer->told_messages = peer->taken_messages;
    peer->told_bytes = peer->taken_bytes;
    if (p3_put_now(mp3.silent_memory, 0, 0, &message, &is_over) == PTL_OK && is_over)
        return;
    if (PtlPutRegion(mp3.memory, 0, 0, PTL_NOACK_REQ, peer->id, MP3_PT_CREDIT, 0, 0, 0, taken) != PTL_OK)
        mp3_fail("cannot give credit to %u:%u", peer->id.nid, peer->id.pid);
}

static void tell_owed(void)
{
    while (mp3.owed) {
        struct mp3_peer *peer = mp3.owed;

        mp3.owed = peer->next_owed;
        peer->is_owed = false;
        tell(peer);
    }
}

/* A message of a peer has been taken. bytes: those that its sender has counted. */
static void count(ptl_process_id_t source, uint32_t bytes)
{
    struct mp3_peer *peer = mp3_peer_of(source);

    if (!peer)
        mp3_fail("a message of %u:%u, which is not in this job", source.nid, source.pid);
    peer->taken_messages++;
    peer->taken_bytes += bytes;
    if (peer->is_owed || (peer->taken_messages - peer->told_messages < (mp3.window_messages + 1) / 2 &&
                          peer->taken_bytes - peer->told_bytes < (mp3.window_bytes + 1) / 2))
        return;
    peer->is_owed = true;
    peer->next_owed = mp3.owed;
    mp3.owed = peer;
}

static void count_event(const ptl_event_t *event)
{
    /* Those of short messages, wherever they were to land. */
    count(event->initiator, event->match_bits & MP3_BIT_FETCH ? 0 : (uint32_t)event->rlength);
}

static void take_credit(ptl_process_id_t source, ptl_hdr_data_t taken)
{
    struct mp3_peer *peer = mp3_peer_of(source);

    if (!peer)
        return;
    /* One that was left to be taken may come behind a later one. */
    if ((int32_t)((uint32_t)(taken >> 32) - peer->granted_messages) < 0)
        return;
    peer->granted_messages = (uint32_t)(taken >> 32);
    peer->granted_bytes = (uint32_t)taken;
}

/* ---- short messages ---- */

/*
 * No call of libportals here. Messages for which there is no receive stay in their inbox but for the first, because
 * receives for them may be yet to come.
 */
bool mp3_take_short(const struct emu_short_message *message)
{
    ptl_process_id_t source = { .nid = message->nid, .pid = (ptl_pid_t)message->pid };

    mp3.has_inboxes = true;
    if (message->pt == MP3_PT_CREDIT) {
        take_credit(source, message->hdr_data);
        return true;
    }
    if (!mp3_receive_short(message)) {
        if (!message->is_first)
            return false;
        mp3_keep_short(message);
    }
    count(source, message->length_bytes);
    return true;
}

/* ---- events ---- */

static void take_unexpected(const ptl_event_t *event)
{
    if (event->type == PTL_EVENT_UNLINK) {
        mp3_attach_block(event->md.user_ptr);
    } else if (event->type == PTL_EVENT_PUT_START) {
        mp3_begin_unexpected(event);
    } else if (event->type == PTL_EVENT_PUT_END) {
        mp3_keep(event);
        count_event(event);
    }
}

static void take_put(const ptl_event_t *event)
{
    if (event->pt_index == MP3_PT_CREDIT) {
        take_credit(event->initiator, event->hdr_data);
        return;
    }
    mp3_receive_event(event);
    count_event(event);
}

static void take(const ptl_event_t *event)
{
    uint32_t number = (uint32_t)(event->hdr_data >> 48);
    bool has_failed = event->ni_fail_type != PTL_NI_OK;

    switch (event->type) {
    case PTL_EVENT_PUT_END:
        take_put(event);
        break;
    case PTL_EVENT_SEND_END:
        if (event->pt_index == MP3_PT_MESSAGE)
            mp3_send_event(number, MP3_SENT, has_failed);
        break;
    case PTL_EVENT_ACK:
        mp3_send_event(number, event->mlength > 0 ? MP3_KEPT : MP3_REFUSED, has_failed);
        break;
    case PTL_EVENT_GET_END:
        mp3_send_event((uint32_t)(event->match_bits >> 48), MP3_FETCHED, has_failed);
        break;
    case PTL_EVENT_REPLY_END:
        mp3_fetch_event(event);
        break;
    default:
        break;
    }
}

/* One at least if there is any, until there are none or a callback is due. Returns how many. */
static int poll_events(void)
{
    ptl_event_t event;
    int which;
    int i = 0;

    for (; i < EVENTS_MAX && (i == 0 || !mp3.done); i++) {
        int r = PtlEQPoll(mp3.queues, 3, 0, &event, &which);

        if (r == PTL_EQ_EMPTY)
            break;
        if (r != PTL_OK)
            mp3_fail("event queue %d: %s", which, ptl_err_str[r]);
        if (which == 1)
            take_unexpected(&event);
        else
            take(&event);
    }
    return i;
}

/*
 * Are events due? Where messages come by inboxes, and nothing of our own is under way, an event is a long message of
 * somebody else. A look at the inboxes alone takes a fifth of the instructions, and so sees a short message sooner. In
 * virtual time each look at the queues is a poll.
 */
static bool expects_events(void)
{
    return !mp3.has_inboxes || mp3.n_flights > 0 || mp3.n_posted > 0 || mp3.n_free_fetches < MP3_FETCHES ||
           mp3.n_free_sends < MP3_SENDS || p3_message_costs();
}

int mp3_poll(bool of_all)
{
    static uint32_t skipped;
    static uint32_t rounds;
    int n = (int)p3_inboxes_take(mp3.ni, mp3.queues[1], mp3.n_posted > 0);

    /* Who waits for a request shall not wait for one more look as well. */
    if (n == 0 ? of_all || expects_events() || ++rounds % ROUNDS_PER_LOOK == 0 :
                 !mp3.done || ++skipped % SKIPS_MAX == 0)
        n += poll_events();
    if (mp3.owed)
        tell_owed();
    if (mp3.first_waiting)
        mp3_send_waiting();
    mp3_fetch_waiting();
    return n;
}

int mp3_end_round(bool has_found)
{
    if (mp3.done)
        return mp3_call_back();
    if (!has_found)
        p3_rounds_end_one(mp3.ni, !opal_progress_yield_when_idle); /* or opal_progress() yields */
    return 0;
}

int mp3_progress(void)
{
    int n;

    if (opal_using_threads() && opal_mutex_trylock(&mp3.mutex) != 0)
        return 0;
    n = mp3_poll(false);
    mp3_unlock();
    return mp3_end_round(n > 0);
}
