/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Datagrams: the rendezvous of two end points, decided here alone.
 *
 * A posted datagram is pending until it pairs. A directed one pairs, in this order, with a directed one that the
 * target has outstanding towards us, then with the target's oldest wildcard; a wildcard pairs with the directed one
 * that has waited for its port longest. Both sides complete in one step, so crossing posts can only pair with each
 * other. A port may be its own peer; a datagram never pairs with itself.
 *
 *   pending -> completed -> (collected by test) gone
 *   pending -> terminated (cancel, end point dropped) -> gone
 *   pending -> error, timeout (an injected fault) -> gone
 *
 * A terminated datagram whose end point is gone stays visible to one probe and then goes; of those that nobody
 * probes a port keeps the newest ORPHANS_PER_PORT. Ports learn of changes through the datagram line of their
 * segment: how many are finished, and a futex word that changes with each.
 * Source: spec ugni.md 4.5 and 7.4.
 */
#include "emunic/daemon/datagram.h"

#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "emunic/abi/control.h"
#include "emunic/abi/segment.h"
#include "emunic/base/clock.h"
#include "emunic/daemon/domain.h"
#include "emunic/daemon/fault.h"
#include "emunic/daemon/network.h"
#include "emunic/daemon/port.h"
#include "emunic/daemon/server.h"
#include "emunic/engine/cq.h"
#include "emunic/engine/rest.h"

#define DATAGRAMS_PER_PORT 65536u
#define ORPHANS_PER_PORT     256u

struct emu_datagram {
    TAILQ_ENTRY(emu_datagram) link;      /* in its port's list, oldest first */
    uint32_t ep;
    uint32_t flags;
    uint64_t id;
    uint64_t posted_ns;
    uint64_t not_before_ns;              /* an injected fault: cannot pair before; UINT64_MAX never; 0 at once */
    uint32_t remote_nid;                 /* target, or peer when completed */
    uint32_t remote_instance;
    uint32_t state;
    bool has_no_ep;                      /* its end point was destroyed */
    uint16_t in_bytes;                   /* ours */
    uint16_t room_bytes;
    uint16_t out_bytes;                  /* the peer's, once completed */
    uint8_t in[EMU_DATAGRAM_MAX];
    uint8_t out[EMU_DATAGRAM_MAX];
};

static bool is_final(const struct emu_datagram *d)
{
    return d->state != EMU_DATAGRAM_PENDING && d->state != EMU_DATAGRAM_REMOTE_DATA;
}

/* Tells the port's owner that something has changed. A system call only if a thread sleeps. */
static void tell(struct emu_port_end *port, int ready_change)
{
    struct emu_segment *s = port->segment;

    /* The owner may scribble over this line; it fools only itself. */
    atomic_fetch_add_explicit(&s->datagram_ready, (uint32_t)ready_change, memory_order_release);
    atomic_fetch_add_explicit(&s->datagram_news, 1, memory_order_seq_cst);
    if (atomic_exchange_explicit(&s->datagram_waits, 0, memory_order_seq_cst) != 0)
        syscall(SYS_futex, &s->datagram_news, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
    emu_rest_disturb(s);
}

/* A delayed datagram's time has come, or it goes. */
static void end_delay(struct emu_port_end *port, struct emu_datagram *d)
{
    if (d->not_before_ns != 0 && d->not_before_ns != UINT64_MAX)
        port->server->n_delayed_datagrams--;
    d->not_before_ns = 0;
}

static void forget(struct emu_port_end *port, struct emu_datagram *d)
{
    bool was_ready = is_final(d);

    end_delay(port, d);
    TAILQ_REMOVE(&port->datagrams, d, link);
    port->n_datagrams--;
    free(d);
    if (was_ready)
        tell(port, -1);
}

static struct emu_datagram *find_by_ep(struct emu_port_end *port, uint32_t ep)
{
    struct emu_datagram *d;

    TAILQ_FOREACH(d, &port->datagrams, link) {
        if (d->ep == ep && !d->has_no_ep)
            return d;
    }
    return NULL;
}

static bool points_at(const struct emu_datagram *d, const struct emu_port_end *port)
{
    return (d->flags & EMU_DATAGRAM_WILDCARD) == 0 && d->remote_nid == port->nid &&
           d->remote_instance == port->instance_id;
}

static void complete(struct emu_port_end *port, struct emu_datagram *d, const struct emu_port_end *peer,
                     const struct emu_datagram *from)
{
    d->state = EMU_DATAGRAM_COMPLETED;
    d->remote_nid = peer->nid;
    d->remote_instance = peer->instance_id;
    d->out_bytes = from->in_bytes;
    memcpy(d->out, from->in, from->in_bytes);
    tell(port, 1);
}

static void pair(struct emu_port_end *port, struct emu_datagram *d, struct emu_port_end *peer,
                 struct emu_datagram *other)
{
    complete(port, d, peer, other);
    complete(peer, other, port, d);
}

/* The oldest pending datagram of `peer` that `mine`, a directed one from `port`, may pair with. */
static struct emu_datagram *find_partner(struct emu_port_end *peer, const struct emu_port_end *port,
                                         const struct emu_datagram *mine)
{
    struct emu_datagram *wildcard = NULL;
    struct emu_datagram *d;

    TAILQ_FOREACH(d, &peer->datagrams, link) {
        if (d->state != EMU_DATAGRAM_PENDING || d->not_before_ns != 0 || d == mine)
            continue;
        if (points_at(d, port))
            return d;
        if (!wildcard && (d->flags & EMU_DATAGRAM_WILDCARD))
            wildcard = d;
    }
    return wildcard;
}

/* A datagram is a packet: it waits while the network has no way for it. */
static bool is_in_reach(const struct emu_port_end *port, const struct emu_port_end *peer)
{
    return !port->domain->is_routed_around ||
           (!emu_network_is_quiesced(port->server) && emu_network_reaches(port->server, port->nid, peer->nid));
}

/* Newest port wins where several share node and instance id (spec 7.5). */
static bool match_directed(struct emu_port_end *port, struct emu_datagram *d)
{
    struct emu_port_end *peer;

    LIST_FOREACH(peer, &port->server->ports, link) {
        struct emu_datagram *other;

        if (peer->domain != port->domain || !points_at(d, peer) || !is_in_reach(port, peer))
            continue;
        other = find_partner(peer, port, d);
        if (other) {
            pair(port, d, peer, other);
            return true;
        }
    }
    return false;
}

static void match_wildcard(struct emu_port_end *port, struct emu_datagram *d)
{
    struct emu_port_end *first_peer = NULL;
    struct emu_datagram *first = NULL;
    struct emu_port_end *peer;

    LIST_FOREACH(peer, &port->server->ports, link) {
        struct emu_datagram *other;

        if (peer->domain != port->domain || !is_in_reach(port, peer))
            continue;
        TAILQ_FOREACH(other, &peer->datagrams, link) {
            if (other->state != EMU_DATAGRAM_PENDING || other->not_before_ns != 0 || !points_at(other, port))
                continue;
            if (!first || other->posted_ns < first->posted_ns) {
                first = other;
                first_peer = peer;
            }
            break;      /* a port's list is in order of age */
        }
    }
    if (first)
        pair(port, d, first_peer, first);
}

/* Is there already an exchange with that peer which the program has not finished? */
static bool exchange_is_open(struct emu_port_end *port, const struct emu_msg_datagram *wanted)
{
    bool is_self = wanted->remote_nid == port->nid && wanted->remote_instance == port->instance_id;
    struct emu_datagram *d;

    TAILQ_FOREACH(d, &port->datagrams, link) {
        if (d->has_no_ep || d->remote_nid != wanted->remote_nid || d->remote_instance != wanted->remote_instance)
            continue;
        /* To oneself the waiting one is the partner. */
        if (d->state == EMU_DATAGRAM_PENDING && (d->flags & EMU_DATAGRAM_WILDCARD) == 0 && !is_self)
            return true;
        /* A wildcard of ours that this peer has answered and nobody has collected. */
        if (d->state == EMU_DATAGRAM_COMPLETED && (d->flags & EMU_DATAGRAM_WILDCARD))
            return true;
    }
    return false;
}

static void match(struct emu_port_end *port, struct emu_datagram *d)
{
    if (d->flags & EMU_DATAGRAM_WILDCARD)
        match_wildcard(port, d);
    else
        match_directed(port, d);
}

/* Runs only while some are delayed. */
static void look_at_port(struct emu_port_end *port, uint64_t now_ns)
{
    struct emu_datagram *d;

    port->fault.datagram_at_ns = 0;
    TAILQ_FOREACH(d, &port->datagrams, link) {
        if (d->not_before_ns == 0 || d->not_before_ns == UINT64_MAX)
            continue;
        if (d->not_before_ns <= now_ns) {
            end_delay(port, d);
            if (d->state == EMU_DATAGRAM_PENDING)
                match(port, d);
        } else if (port->fault.datagram_at_ns == 0 || d->not_before_ns < port->fault.datagram_at_ns) {
            port->fault.datagram_at_ns = d->not_before_ns;
        }
    }
}

void emu_datagram_look_at_delayed(struct emu_server *server)
{
    struct emu_port_end *port;
    uint64_t now_ns;

    if (server->n_delayed_datagrams == 0)
        return;
    now_ns = emu_clock_ns();
    LIST_FOREACH(port, &server->ports, link) {
        if (port->fault.datagram_at_ns != 0 && port->fault.datagram_at_ns <= now_ns)
            look_at_port(port, now_ns);
    }
}

void emu_datagram_look_at_all(struct emu_server *server)
{
    struct emu_port_end *port;
    struct emu_datagram *d;

    /* A wildcard pairs when the one that points at it is looked at. */
    LIST_FOREACH(port, &server->ports, link) {
        TAILQ_FOREACH(d, &port->datagrams, link) {
            if (d->state == EMU_DATAGRAM_PENDING && d->not_before_ns == 0 && (d->flags & EMU_DATAGRAM_WILDCARD) == 0)
                match_directed(port, d);
        }
    }
}

/* What an injected fault does to a new datagram. True: it may pair now. */
static bool suffer(struct emu_port_end *port, struct emu_datagram *d, const struct emu_fault_datagram *fault)
{
    d->not_before_ns = fault->not_before_ns;
    if (fault->not_before_ns != 0 && fault->not_before_ns != UINT64_MAX) {
        port->server->n_delayed_datagrams++;
        if (port->fault.datagram_at_ns == 0 || fault->not_before_ns < port->fault.datagram_at_ns)
            port->fault.datagram_at_ns = fault->not_before_ns;
    }
    if (fault->state == EMU_DATAGRAM_PENDING)
        return fault->not_before_ns == 0;
    d->state = fault->state;
    tell(port, 1);
    return false;
}

int emu_datagram_post(struct emu_port_end *port, const struct emu_msg_datagram *wanted)
{
    struct emu_fault_datagram fault = { .state = EMU_DATAGRAM_PENDING };
    struct emu_datagram *d;

    if (wanted->length_bytes > EMU_DATAGRAM_MAX || wanted->room_bytes > EMU_DATAGRAM_MAX)
        return -EMSGSIZE;
    if (find_by_ep(port, wanted->ep))
        return EMU_OUTCOME_BUSY;
    if ((wanted->flags & EMU_DATAGRAM_WILDCARD) == 0 && exchange_is_open(port, wanted))
        return EMU_OUTCOME_BUSY;
    if (port->n_datagrams >= DATAGRAMS_PER_PORT)
        return -ENOMEM;
    if (port->domain->faults)
        fault = emu_fault_datagram(port, wanted);
    if (fault.is_refused)
        return EMU_OUTCOME_BUSY;
    d = calloc(1, sizeof(*d));
    if (!d)
        return -ENOMEM;
    d->ep = wanted->ep;
    d->flags = wanted->flags & (EMU_DATAGRAM_WILDCARD | EMU_DATAGRAM_HAS_ID);
    d->id = wanted->id;
    d->posted_ns = emu_clock_ns();
    d->remote_nid = (d->flags & EMU_DATAGRAM_WILDCARD) ? EMU_NID_NONE : wanted->remote_nid;
    d->remote_instance = wanted->remote_instance;
    d->in_bytes = wanted->length_bytes;
    d->room_bytes = wanted->room_bytes;
    memcpy(d->in, wanted->data, wanted->length_bytes);
    TAILQ_INSERT_TAIL(&port->datagrams, d, link);
    port->n_datagrams++;
    if (suffer(port, d, &fault))
        match(port, d);
    return 0;
}

int emu_datagram_test(struct emu_port_end *port, struct emu_msg_datagram *asked)
{
    struct emu_datagram *d = find_by_ep(port, asked->ep);
    bool asks_id = (asked->flags & EMU_DATAGRAM_HAS_ID) != 0;
    int r = 0;

    if (!d || asks_id != ((d->flags & EMU_DATAGRAM_HAS_ID) != 0) || (asks_id && d->id != asked->id))
        return EMU_OUTCOME_NO_MATCH;
    asked->state = d->state;
    asked->length_bytes = 0;
    if (!is_final(d))
        return 0;
    if (d->state == EMU_DATAGRAM_COMPLETED) {
        asked->remote_nid = d->remote_nid;
        asked->remote_instance = d->remote_instance;
        if (d->out_bytes > d->room_bytes) {
            r = EMU_OUTCOME_TOO_SMALL;
        } else {
            asked->length_bytes = d->out_bytes;
            memcpy(asked->data, d->out, d->out_bytes);
        }
    }
    forget(port, d);
    return r;
}

int emu_datagram_probe(struct emu_port_end *port, struct emu_msg_datagram *asked)
{
    bool asks_id = (asked->flags & EMU_DATAGRAM_HAS_ID) != 0;
    struct emu_datagram *d;

    TAILQ_FOREACH(d, &port->datagrams, link) {
        if (!is_final(d) || (asks_id && (d->flags & EMU_DATAGRAM_HAS_ID) == 0))
            continue;
        asked->id = d->id;
        asked->ep = d->ep;
        asked->state = d->state;
        asked->remote_nid = d->remote_nid;
        asked->remote_instance = d->remote_instance;
        if (d->has_no_ep)
            forget(port, d);
        return 0;
    }
    return EMU_OUTCOME_NO_MATCH;
}

static void terminate(struct emu_port_end *port, struct emu_datagram *d)
{
    d->state = EMU_DATAGRAM_TERMINATED;
    tell(port, 1);
}

int emu_datagram_cancel(struct emu_port_end *port, const struct emu_msg_datagram *asked)
{
    struct emu_datagram *d = find_by_ep(port, asked->ep);

    if (!d || is_final(d))
        return EMU_OUTCOME_NO_MATCH;
    if ((asked->flags & EMU_DATAGRAM_ANY_ID) == 0 && ((d->flags & EMU_DATAGRAM_HAS_ID) == 0 || d->id != asked->id))
        return EMU_OUTCOME_NO_MATCH;
    terminate(port, d);
    return 0;
}

/* A program that never probes must not collect records for ever. */
static void limit_orphans(struct emu_port_end *port)
{
    struct emu_datagram *oldest = NULL;
    struct emu_datagram *d;
    unsigned n = 0;

    TAILQ_FOREACH(d, &port->datagrams, link) {
        if (!d->has_no_ep)
            continue;
        if (!oldest)
            oldest = d;
        n++;
    }
    if (n > ORPHANS_PER_PORT)
        forget(port, oldest);
}

void emu_datagram_drop_ep(struct emu_port_end *port, uint32_t ep)
{
    struct emu_datagram *d = find_by_ep(port, ep);

    if (!d)
        return;
    if (is_final(d)) {
        forget(port, d);
        return;
    }
    d->has_no_ep = true;
    terminate(port, d);
    limit_orphans(port);
}

void emu_datagram_drop_all(struct emu_port_end *port)
{
    struct emu_datagram *d;

    while ((d = TAILQ_FIRST(&port->datagrams))) {
        TAILQ_REMOVE(&port->datagrams, d, link);
        end_delay(port, d);
        free(d);
    }
    port->n_datagrams = 0;
}
