/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Inboxes: short messages that the owner of an interface matches.
 *
 * Where the sender matches, it takes a dozen lines of the interface from the owner's core, one after the other (lock,
 * list, entry, descriptor, queue, event, data), and the owner takes them back for its next receive. An inbox has one
 * sender and one reader: a message is one line that goes across, and all the rest stays where the owner is. No locked
 * instruction at the sender, and the owner's lock is nobody else's then.
 *
 *   sender   second line, then the first, its number last
 *   owner    looks for the number that is next; matches, stores, posts events; then says how many it has taken
 *
 * Where the owner is a message layer with receives of its own, a message that meets one of them goes past all lists,
 * descriptors, locks and events of the interface (emu_portals_hand_short()).
 *
 * The sender asks for that count only when it knows of no free place, so its line stays with the owner as a rule.
 *
 * A sender that dies leaves whole messages or none. An inbox stays its sender's until the interface ends; where all
 * are taken, others send as usual. Words of others are looked at once, and mean no more than what those could have
 * sent.
 */
#include "emunic/client/portals_inbox.h"

#include <string.h>

#include "emunic/client/direct.h"
#include "emunic/client/portals_port_inner.h"
#include "emunic/engine/rest.h"

#define AHEAD        3u  /* messages that are fetched before they are looked at */
#define TOLD_AT_ONCE 16u /* messages that are handed over before their sender may see that: it may be waiting */

/* ---- the owner ---- */

void emu_portals_open_inboxes(struct emu_portals *p, emu_short_taker taker)
{
    p->takes_short = true;
    p->taker = taker;
    atomic_store_explicit(&p->ni->takes_short, 1, memory_order_release);
}

static int store(struct emu_portals *p, const struct emu_ptl_taker *taker, const uint8_t *data)
{
    struct emu_memory self = emu_memory_self();
    struct emu_ptl_span from = { .n = 1, .one = { (uint64_t)(uintptr_t)data, EMU_PTL_INBOX_BYTES } };
    struct emu_ptl_span to;
    int fault;

    emu_ptl_span_of(p->ni, &taker->md, &to);
    return emu_ptl_move((struct emu_ptl_at){ &self, &to, taker->offset }, (struct emu_ptl_at){ &self, &from, 0 },
                        taker->mlength, (struct emu_bounce){ p, 1 }, &fault);
}

static const struct emu_ptl_short *place_of(const struct emu_ptl_inbox *inbox, uint64_t number)
{
    return &inbox->places[(number - 1) % EMU_PTL_INBOX_PLACES];
}

static bool is_there(const struct emu_ptl_inbox *inbox, uint64_t number)
{
    /* Pairs with the release in emu_portals_leave_short(). */
    return atomic_load_explicit(&place_of(inbox, number)->number, memory_order_acquire) == number;
}

static struct emu_ptl_request request_of(const struct emu_ptl_inbox *inbox, const struct emu_ptl_short *place)
{
    return (struct emu_ptl_request){
        .kind = EMU_PTL_PUT,
        .nid = inbox->nid,
        .pid = inbox->pid,
        .uid = inbox->uid,
        .jid = inbox->jid,
        .pt = place->pt,
        .bits = place->bits,
        .length_bytes = place->length_bytes,
        .hdr_data = place->hdr_data,
    };
}

/* Its flight is our own: who dies here takes the interface with it. */
static void deliver(struct emu_portals *p, const struct emu_ptl_request *request, const struct emu_ptl_taker *taker,
                    const uint8_t *data)
{
    struct emu_ptl_flight flight;
    unsigned fail = 0;

    emu_ptl_begin_brief(p->ni, taker, p->generation, &flight);
    if (taker->mlength > 0 && store(p, taker, data) < 0)
        fail = EMU_STATUS_REMOTE_RANGE;
    emu_ptl_end_brief(p->ni, request, taker, &flight, fail);
    /* At once, or the next search walks past it. */
    if (emu_ptl_has_dead(&p->owner))
        emu_ptl_reap(&p->owner);
}

/*
 * False: nothing has happened, because the message would only go where unexpected ones are kept. The interface is held.
 */
static bool take_one(struct emu_portals *p, const struct emu_ptl_inbox *inbox, const struct emu_ptl_short *place,
                     bool only_expected)
{
    const struct emu_ptl_request request = request_of(inbox, place);
    struct emu_ptl_taker taker;

    if (request.length_bytes > EMU_PTL_INBOX_BYTES || emu_ptl_match(p->ni, &request, &taker) != EMU_PTL_TAKEN)
        return true;
    if (only_expected && taker.md.threshold != 1)
        return false;
    deliver(p, &request, &taker, place->data);
    return true;
}

/* The next one, and those behind it for which there are receives. At most as many as there is room for. */
static void take_some_of(struct emu_portals *p, uint32_t i)
{
    struct emu_ptl_inbox *inbox = &p->ni->inboxes[i];
    uint64_t first = p->taken[i] + 1;
    uint64_t number = first;

    for (; number < first + EMU_PTL_INBOX_PLACES && is_there(inbox, number); number++) {
        __builtin_prefetch(place_of(inbox, number + AHEAD));
        if (!take_one(p, inbox, place_of(inbox, number), number > first))
            break;
    }
    if (number == first)
        return;
    p->taken[i] = number - 1;
    /* Pairs with the acquire in emu_portals_peer_has_taken(). */
    atomic_store_explicit(&inbox->taken, number - 1, memory_order_release);
}

void emu_portals_take_short(struct emu_portals *p)
{
    uint32_t n = atomic_load_explicit(&p->ni->n_inboxes, memory_order_relaxed);

    emu_portals_hold(p);
    for (uint32_t i = 0; i < n && i < EMU_PTL_INBOXES; i++)
        take_some_of(p, i);
    emu_portals_release(p);
}

/* False: no entry for one message takes it. The interface is held. */
static bool meets_entry(struct emu_portals *p, const struct emu_ptl_inbox *inbox, const struct emu_ptl_short *place)
{
    const struct emu_ptl_request request = request_of(inbox, place);
    struct emu_ptl_taker taker;

    if (request.length_bytes > EMU_PTL_INBOX_BYTES || !emu_ptl_find(p->ni, &request, &taker) || taker.md.threshold != 1)
        return false;
    deliver(p, &request, &taker, place->data);
    return true;
}

/* The message of that number is there. False: it stays. With has_entries the interface is held. */
static bool hand_one(struct emu_portals *p, const struct emu_ptl_inbox *inbox, uint64_t number, bool is_first,
                     bool has_entries)
{
    const struct emu_ptl_short *place = place_of(inbox, number);
    const struct emu_short_message message = {
        .nid = inbox->nid,
        .pid = inbox->pid,
        .pt = place->pt,
        .length_bytes = place->length_bytes,
        .bits = place->bits,
        .hdr_data = place->hdr_data,
        .data = place->data,
        .is_first = is_first,
    };

    if (message.length_bytes > EMU_PTL_INBOX_BYTES || (has_entries && meets_entry(p, inbox, place)))
        return true;
    if (!p->taker(&message))
        return false;
    p->n_handed++;
    p->handed_bytes += message.length_bytes;
    return true;
}

static uint32_t hand_some_of(struct emu_portals *p, uint32_t i, uint64_t end, bool has_entries)
{
    struct emu_ptl_inbox *inbox = &p->ni->inboxes[i];
    uint64_t first = p->taken[i] + 1;
    uint64_t number = first;

    while (number < end && hand_one(p, inbox, number, number == first, has_entries)) {
        p->taken[i] = number++;
        if (number % TOLD_AT_ONCE == 0)
            atomic_store_explicit(&inbox->taken, number - 1, memory_order_release);
    }
    if (number > first)
        atomic_store_explicit(&inbox->taken, number - 1, memory_order_release);
    return (uint32_t)(number - first);
}

/* Behind the last message that is there. */
static uint64_t end_of(const struct emu_portals *p, uint32_t i)
{
    uint64_t first = p->taken[i] + 1;
    uint64_t number = first;

    while (number < first + EMU_PTL_INBOX_PLACES && is_there(&p->ni->inboxes[i], number))
        number++;
    return number;
}

uint32_t emu_portals_hand_short(struct emu_portals *p, uint32_t quiet, bool has_entries)
{
    uint32_t n = atomic_load_explicit(&p->ni->n_inboxes, memory_order_relaxed);
    uint64_t ends[EMU_PTL_INBOXES];
    uint32_t n_handed = 0;

    n = n < EMU_PTL_INBOXES ? n : EMU_PTL_INBOXES;
    for (uint32_t i = 0; i < n; i++)
        ends[i] = end_of(p, i);
    /* After the messages were seen: what their senders had sent before by other ways stands in the queue then. */
    if (emu_ptl_eq_holds_event(&p->owner, quiet))
        return 0;
    if (has_entries)
        emu_portals_hold(p);
    for (uint32_t i = 0; i < n; i++)
        n_handed += hand_some_of(p, i, ends[i], has_entries);
    if (has_entries)
        emu_portals_release(p);
    return n_handed;
}

/* ---- the sender ---- */

static void make_known(struct emu_ptl_ni *ni, uint32_t n)
{
    uint32_t known = atomic_load_explicit(&ni->n_inboxes, memory_order_relaxed);

    while (known < n && !atomic_compare_exchange_weak_explicit(&ni->n_inboxes, &known, n, memory_order_release,
                                                               memory_order_relaxed))
        ;
}

/* Runs once per peer that takes short messages. */
static __attribute__((noinline)) void claim(struct emu_portals *p, const struct emu_portals_target *t)
{
    for (uint32_t i = 0; i < EMU_PTL_INBOXES; i++) {
        struct emu_ptl_inbox *inbox = &t->ni->inboxes[i];
        uint64_t nobody = 0;

        if (!atomic_compare_exchange_strong_explicit(&inbox->sender, &nobody, p->holder, memory_order_acq_rel,
                                                     memory_order_relaxed))
            continue;
        inbox->nid = p->port.nid;
        inbox->pid = p->pid;
        inbox->uid = p->ni->uid;
        inbox->jid = p->ni->jid;
        make_known(t->ni, i + 1);
        t->peer->inbox = inbox;
        return;
    }
    t->peer->has_no_inbox = true;
}

bool emu_portals_peer_has_taken(struct emu_portals_peer *peer)
{
    if (!peer->inbox || peer->n_taken == peer->n_put)
        return true;
    peer->n_taken = atomic_load_explicit(&peer->inbox->taken, memory_order_acquire);
    return peer->n_taken == peer->n_put;
}

bool emu_portals_has_taken(struct emu_portals *p, uint32_t nid, uint32_t pid)
{
    const struct emu_ptl_send send = { .nid = nid, .pid = pid };
    struct emu_portals_target t;

    return emu_portals_find_target(p, &send, &t) != EMU_PORTALS_HERE || !t.peer || emu_portals_peer_has_taken(t.peer);
}

bool emu_portals_leave_short(struct emu_portals *p, const struct emu_portals_target *t,
                             const struct emu_portals_short *message)
{
    struct emu_portals_peer *peer = t->peer;
    struct emu_ptl_short *place;

    if (!peer->inbox) {
        if (peer->has_no_inbox || atomic_load_explicit(&t->ni->takes_short, memory_order_acquire) == 0)
            return false;
        claim(p, t);
        if (!peer->inbox)
            return false;
    }
    if (peer->n_put - peer->n_taken >= EMU_PTL_INBOX_PLACES && !emu_portals_peer_has_taken(peer) &&
        peer->n_put - peer->n_taken >= EMU_PTL_INBOX_PLACES)
        return false;
    place = &peer->inbox->places[peer->n_put % EMU_PTL_INBOX_PLACES];
    if (message->length_bytes == 8)
        memcpy(place->data, message->data, 8); /* one instruction each */
    else if (message->length_bytes > 0)
        memcpy(place->data, message->data, message->length_bytes);
    place->bits = message->bits;
    place->hdr_data = message->hdr_data;
    place->pt = message->pt;
    place->length_bytes = message->length_bytes;
    atomic_store_explicit(&place->number, ++peer->n_put, memory_order_release);
    /* The store of the next message shall not wait for its line, nor what is stored behind it. */
    emu_prefetch_for_write(&peer->inbox->places[peer->n_put % EMU_PTL_INBOX_PLACES]);
    emu_prefetch_for_write(&peer->inbox->places[(peer->n_put + 1) % EMU_PTL_INBOX_PLACES]);
    return true;
}

/* Runs when nothing is known of the process, or what is known is of one that has gone. We are inside. */
static __attribute__((noinline)) bool find_way(struct emu_portals *p, struct emu_portals_way *way)
{
    const struct emu_ptl_send send = { .nid = way->nid, .pid = way->pid };
    struct emu_portals_target *t = &way->target;

    if (emu_portals_find_target(p, &send, t) != EMU_PORTALS_HERE || !t->peer) {
        t->peer = NULL;
        return false;
    }
    way->segment = emu_portals_segment_of(p, t);
    way->flow = emu_direct_flow(p->port.direct, t->node_index);
    return true;
}

static bool has_way(struct emu_portals *p, struct emu_portals_way *way)
{
    const struct emu_portals_target *t = &way->target;

    return (t->peer && t->peer->generation == t->generation && emu_portals_is_live(p, t->port, t->generation)) ||
           find_way(p, way);
}

bool emu_portals_leave_on(struct emu_portals *p, struct emu_portals_way *way, const struct emu_portals_short *message)
{
    bool is_left;

    if (!p->gate || p->ni->n_fails > 0 || message->length_bytes > EMU_PTL_INBOX_BYTES ||
        message->length_bytes > p->port.settings.direct_limit_bytes)
        return false;
    if (atomic_load_explicit(&p->gate->table->files_gone, memory_order_relaxed) != p->gate->files_gone)
        emu_direct_trim(p->port.direct);
    emu_gate_enter(p->gate);
    is_left = emu_gate_is_open(p->gate) && !atomic_load_explicit(&p->port.session.is_lost, memory_order_relaxed) &&
              has_way(p, way) && emu_portals_leave_short(p, &way->target, message);
    if (is_left) {
        p->ni->registers[EMU_PTL_SR_SEND_COUNT]++;
        p->ni->registers[EMU_PTL_SR_SEND_LENGTH] += message->length_bytes;
        emu_gate_count_put(p->gate, way->flow, message->length_bytes);
        if (way->segment)
            emu_rest_disturb(way->segment);
    }
    emu_gate_leave(p->gate);
    return is_left;
}
