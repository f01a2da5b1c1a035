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
 *   pending -> error, timeout (an injected fault, a lost host) -> gone
 *
 * Those of other hosts come as offers and pair in the same order (datagram_hosts.h): a pending datagram of ours that
 * has claimed one waits for the answer and pairs with nobody meanwhile.
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
#include "emunic/base/log.h"
#include "emunic/daemon/connection.h"
#include "emunic/daemon/domain.h"
#include "emunic/daemon/fault.h"
#include "emunic/daemon/hosts/datagram_hosts.h"
#include "emunic/daemon/hosts/hosts.h"
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
    bool is_offered;                     /* to the host of its target */
    uint32_t host;                       /* of its target; our own for a wildcard */
    uint64_t number;                     /* what other hosts call it; 0: there are none */
    struct emu_far_datagram *claimed;    /* owned: waits for the answer; or NULL */
    struct emu_far_datagram *claimer;    /* owned: has claimed it meanwhile, and waits; or NULL */
    struct emu_msg *cancel;              /* owned: a request that waits for the answer as well; or NULL */
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

static bool is_several(const struct emu_port_end *port)
{
    return emu_hosts_are_several(port->server);
}

static bool is_wildcard(const struct emu_datagram *d)
{
    return (d->flags & EMU_DATAGRAM_WILDCARD) != 0;
}

/* Is there nothing that keeps it from pairing at once? */
static bool is_free(const struct emu_datagram *d)
{
    return d->state == EMU_DATAGRAM_PENDING && d->not_before_ns == 0 && !d->claimed;
}

static bool points_to(const struct emu_datagram *d, uint32_t nid, uint32_t instance_id)
{
    return !is_wildcard(d) && d->remote_nid == nid && d->remote_instance == instance_id;
}

static bool points_at(const struct emu_datagram *d, const struct emu_port_end *port)
{
    return points_to(d, port->nid, port->instance_id);
}

static void complete(struct emu_port_end *port, struct emu_datagram *d, uint32_t nid, uint32_t instance_id,
                     const uint8_t *data, uint16_t bytes)
{
    d->state = EMU_DATAGRAM_COMPLETED;
    d->remote_nid = nid;
    d->remote_instance = instance_id;
    d->out_bytes = bytes;
    memcpy(d->out, data, bytes);
    tell(port, 1);
}

static void pair(struct emu_port_end *port, struct emu_datagram *d, struct emu_port_end *peer,
                 struct emu_datagram *other)
{
    complete(port, d, peer->nid, peer->instance_id, other->in, other->in_bytes);
    complete(peer, other, port->nid, port->instance_id, d->in, d->in_bytes);
}

/* The oldest datagram of `peer` that `mine`, a directed one from the port (nid, instance_id), may pair with. */
static struct emu_datagram *find_partner(struct emu_port_end *peer, uint32_t nid, uint32_t instance_id,
                                         const struct emu_datagram *mine)
{
    struct emu_datagram *wildcard = NULL;
    struct emu_datagram *d;

    TAILQ_FOREACH(d, &peer->datagrams, link) {
        if (!is_free(d) || d == mine)
            continue;
        if (points_to(d, nid, instance_id))
            return d;
        if (!wildcard && is_wildcard(d))
            wildcard = d;
    }
    return wildcard;
}

/* A datagram is a packet: it waits while the network has no way for it. */
static bool is_in_reach(const struct emu_port_end *port, uint32_t nid)
{
    return !port->domain->is_routed_around ||
           (!emu_network_is_quiesced(port->server) && emu_network_reaches(port->server, port->nid, nid));
}

/* ---- with other hosts ---- */

static int tell_host(const struct emu_port_end *port, uint32_t host, enum emu_host_datagram_word word, uint64_t number,
                     uint64_t claimer, uint32_t nid, uint32_t instance_id, const struct emu_datagram *d)
{
    const struct emu_host_datagram message = { .word = word, .bytes = d ? d->in_bytes : 0, .number = number,
                                               .claimer = claimer, .nid = port->nid, .instance_id = port->instance_id,
                                               .to_nid = nid, .to_instance = instance_id, .data = d ? d->in : NULL };

    return emu_datagram_tell_host(port->server, port->domain, host, &message);
}

/* Who has claimed one of `port` hears that it has it, or that there is no such datagram any more. */
static void answer_claim(const struct emu_port_end *port, uint64_t number, const struct emu_far_datagram *claimer,
                         bool is_taken)
{
    tell_host(port, claimer->host, is_taken ? EMU_DATAGRAM_ACCEPT : EMU_DATAGRAM_REFUSE, number, claimer->number,
              claimer->nid, claimer->instance_id, NULL);
}

static bool is_lower_than(const struct emu_port_end *port, uint32_t host)
{
    return emu_hosts_own(port->server) < host;
}

/* Is there a way, and does whoever faces `offer` leave it to us? */
static bool may_claim(const struct emu_port_end *port, const struct emu_datagram *d,
                      const struct emu_far_datagram *offer)
{
    return is_in_reach(port, offer->nid) && (is_wildcard(d) || is_lower_than(port, offer->host));
}

static void claim(struct emu_port_end *port, struct emu_datagram *d, struct emu_far_datagram *offer)
{
    emu_offer_take(port->domain, offer);
    if (tell_host(port, offer->host, EMU_DATAGRAM_CLAIM, offer->number, d->number, offer->nid, offer->instance_id,
                  d) < 0) {
        free(offer);            /* its host is going down */
        return;
    }
    d->claimed = offer;
}

/* Tells the host of its target, once it may pair. */
static void offer(struct emu_port_end *port, struct emu_datagram *d)
{
    int r;

    if (d->is_offered || !emu_hosts_is_up(port->server, d->host))
        return;
    r = tell_host(port, d->host, EMU_DATAGRAM_OFFER, d->number, 0, d->remote_nid, d->remote_instance, d);
    if (r == 0) {
        d->is_offered = true;
        emu_offers_count(port->domain, d->host, 1);
    } else if (r != -ENOTCONN) {
        port->server->has_unoffered_datagrams = true;
    }
}

/* Does one of ours face an offer, perhaps without having been offered yet? Wildcards then keep away from it. */
static bool is_faced(const struct emu_port_end *port, const struct emu_far_datagram *offered)
{
    const struct emu_port_end *p;
    const struct emu_datagram *d;

    LIST_FOREACH(p, &port->server->ports, link) {
        if (p->domain != port->domain || p->nid != port->nid || p->instance_id != port->instance_id)
            continue;
        TAILQ_FOREACH(d, &p->datagrams, link) {
            if (d->state == EMU_DATAGRAM_PENDING && d->not_before_ns == 0 &&
                points_to(d, offered->nid, offered->instance_id))
                return true;
        }
    }
    return false;
}

/* Finds one of ours for an offer; in the same order as match_directed(), which asks from the other side. */
static void match_offer(struct emu_server *server, struct emu_domain *domain, struct emu_far_datagram *offered)
{
    struct emu_port_end *port;

    LIST_FOREACH(port, &server->ports, link) {
        struct emu_datagram *d;

        if (port->domain != domain || port->nid != offered->to_nid || port->instance_id != offered->to_instance ||
            !is_in_reach(port, offered->nid))
            continue;
        d = find_partner(port, offered->nid, offered->instance_id, NULL);
        if (!d)
            continue;
        /* Else it waits to be claimed by that host. */
        if (may_claim(port, d, offered))
            claim(port, d, offered);
        return;
    }
}

/* A directed one of `port` does not face offers of its target any more: they are free for wildcards. */
static void match_offers_of(struct emu_port_end *port, uint32_t nid, uint32_t instance_id)
{
    struct emu_far_datagram *offered = emu_offer_next(port->domain, NULL, port->nid, port->instance_id);

    while (offered) {
        struct emu_far_datagram *next = emu_offer_next(port->domain, offered, port->nid, port->instance_id);

        if (offered->nid == nid && offered->instance_id == instance_id)
            match_offer(port->server, port->domain, offered);
        offered = next;
    }
}

/* It will pair no more, and is not pending: others give it up. */
static void let_go(struct emu_port_end *port, struct emu_datagram *d, uint32_t nid, uint32_t instance_id,
                   bool is_known_there)
{
    if (d->claimer)
        answer_claim(port, d->number, d->claimer, false);
    free(d->claimer);
    free(d->claimed);
    d->claimer = NULL;
    d->claimed = NULL;
    if (d->is_offered) {
        if (!is_known_there)
            tell_host(port, d->host, EMU_DATAGRAM_WITHDRAW, d->number, 0, nid, instance_id, NULL);
        d->is_offered = false;
        emu_offers_count(port->domain, d->host, -1);
    }
    if (d->number != 0 && !is_wildcard(d))
        match_offers_of(port, nid, instance_id);
}

static void complete_far(struct emu_port_end *port, struct emu_datagram *d, const struct emu_far_datagram *far)
{
    complete(port, d, far->nid, far->instance_id, far->data, far->bytes);
}

/* ---- matching ---- */

/* Newest port wins where several share node and instance id (spec 7.5). */
static void match_near(struct emu_port_end *port, struct emu_datagram *d)
{
    struct emu_port_end *peer;

    LIST_FOREACH(peer, &port->server->ports, link) {
        struct emu_datagram *other;

        if (peer->domain != port->domain || !points_at(d, peer) || !is_in_reach(port, peer->nid))
            continue;
        other = find_partner(peer, port->nid, port->instance_id, d);
        if (other) {
            pair(port, d, peer, other);
            return;
        }
    }
}

/* Directed at a node of another host: only one that faces it can be here. */
static void match_far(struct emu_port_end *port, struct emu_datagram *d)
{
    struct emu_far_datagram *offered = NULL;

    while ((offered = emu_offer_next(port->domain, offered, port->nid, port->instance_id))) {
        if (points_to(d, offered->nid, offered->instance_id) && may_claim(port, d, offered)) {
            claim(port, d, offered);
            return;
        }
    }
    offer(port, d);
}

static void match_directed(struct emu_port_end *port, struct emu_datagram *d)
{
    if (d->host == emu_hosts_own(port->server))
        match_near(port, d);
    else
        match_far(port, d);
}

/* The offer that has waited for the port longest, and longer than since `before_ns`. */
static struct emu_far_datagram *find_offer(struct emu_port_end *port, uint64_t before_ns)
{
    struct emu_far_datagram *offered = NULL;

    while ((offered = emu_offer_next(port->domain, offered, port->nid, port->instance_id))) {
        if (offered->arrived_ns > before_ns)
            return NULL;
        if (is_in_reach(port, offered->nid) && !is_faced(port, offered))
            return offered;
    }
    return NULL;
}

static void match_wildcard(struct emu_port_end *port, struct emu_datagram *d)
{
    struct emu_port_end *first_peer = NULL;
    struct emu_far_datagram *offered = NULL;
    struct emu_datagram *first = NULL;
    struct emu_port_end *peer;

    LIST_FOREACH(peer, &port->server->ports, link) {
        struct emu_datagram *other;

        if (peer->domain != port->domain || !is_in_reach(port, peer->nid))
            continue;
        TAILQ_FOREACH(other, &peer->datagrams, link) {
            if (!is_free(other) || !points_at(other, port))
                continue;
            if (!first || other->posted_ns < first->posted_ns) {
                first = other;
                first_peer = peer;
            }
            break;      /* a port's list is in order of age */
        }
    }
    if (is_several(port))
        offered = find_offer(port, first ? first->posted_ns : UINT64_MAX);
    if (offered)
        claim(port, d, offered);
    else if (first)
        pair(port, d, first_peer, first);
}

/* Is there already an exchange with that peer which the program has not finished? */
static bool exchange_is_open(struct emu_port_end *port, const struct emu_msg_datagram *wanted)
{
    bool is_self = wanted->remote_nid == port->nid && wanted->remote_instance == port->instance_id;
    struct emu_datagram *d;

    TAILQ_FOREACH(d, &port->datagrams, link) {
        /* A wildcard of ours that an offer of this peer waits to be claimed for. */
        if (is_wildcard(d) && d->claimed && d->claimed->nid == wanted->remote_nid &&
            d->claimed->instance_id == wanted->remote_instance)
            return true;
        if (d->has_no_ep || d->remote_nid != wanted->remote_nid || d->remote_instance != wanted->remote_instance)
            continue;
        /* To oneself the waiting one is the partner. */
        if (d->state == EMU_DATAGRAM_PENDING && !is_wildcard(d) && !is_self)
            return true;
        /* A wildcard of ours that this peer has answered and nobody has collected. */
        if (d->state == EMU_DATAGRAM_COMPLETED && is_wildcard(d))
            return true;
    }
    return false;
}

static void match(struct emu_port_end *port, struct emu_datagram *d)
{
    if (is_wildcard(d))
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
            if (is_free(d))
                match(port, d);
        } else if (port->fault.datagram_at_ns == 0 || d->not_before_ns < port->fault.datagram_at_ns) {
            port->fault.datagram_at_ns = d->not_before_ns;
        }
    }
}

/* Those that the queue to their host had no room for. */
static void offer_again(struct emu_server *server)
{
    struct emu_port_end *port;
    struct emu_datagram *d;

    server->has_unoffered_datagrams = false;
    LIST_FOREACH(port, &server->ports, link) {
        TAILQ_FOREACH(d, &port->datagrams, link) {
            if (is_free(d) && !is_wildcard(d) && d->host != emu_hosts_own(server))
                offer(port, d);
        }
    }
}

void emu_datagram_look_at_delayed(struct emu_server *server)
{
    struct emu_port_end *port;
    uint64_t now_ns;

    if (server->has_unoffered_datagrams)
        offer_again(server);
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

    /* A wildcard pairs when the one that points at it is looked at, unless that is on another host. */
    LIST_FOREACH(port, &server->ports, link) {
        TAILQ_FOREACH(d, &port->datagrams, link) {
            if (is_free(d) && (is_several(port) || !is_wildcard(d)))
                match(port, d);
        }
    }
}

static void end_with(struct emu_port_end *port, struct emu_datagram *d, uint32_t state)
{
    d->state = state;
    tell(port, 1);
    let_go(port, d, d->remote_nid, d->remote_instance, false);
}

/* What other hosts need to know of a new datagram. */
static void introduce(struct emu_port_end *port, struct emu_datagram *d)
{
    d->number = emu_offers_number(port->domain);
    d->host = is_wildcard(d) ? emu_hosts_own(port->server)
                             : emu_datagram_host_of(port->server, port->domain, d->remote_nid);
    if (d->state == EMU_DATAGRAM_PENDING && emu_datagram_host_is_lost(port->domain, d->host))
        end_with(port, d, EMU_DATAGRAM_ERROR);
}

/* May it be offered, if it is for another host? */
static bool has_room(struct emu_port_end *port, const struct emu_msg_datagram *wanted)
{
    uint32_t host;

    if (emu_offers_begin(port->server, port->domain) < 0)
        return false;
    host = emu_datagram_host_of(port->server, port->domain, wanted->remote_nid);
    return host == emu_hosts_own(port->server) || emu_offers_has_room(port->domain, host);
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
    bool may_pair;

    if (wanted->length_bytes > EMU_DATAGRAM_MAX || wanted->room_bytes > EMU_DATAGRAM_MAX)
        return -EMSGSIZE;
    if (find_by_ep(port, wanted->ep))
        return EMU_OUTCOME_BUSY;
    if ((wanted->flags & EMU_DATAGRAM_WILDCARD) == 0 && exchange_is_open(port, wanted))
        return EMU_OUTCOME_BUSY;
    if (port->n_datagrams >= DATAGRAMS_PER_PORT || (is_several(port) && !has_room(port, wanted)))
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
    may_pair = suffer(port, d, &fault);
    if (is_several(port))
        introduce(port, d);
    if (may_pair && is_free(d))
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

int emu_datagram_cancel(struct emu_port_end *port, const struct emu_msg *request)
{
    const struct emu_msg_datagram *asked = &request->datagram;
    struct emu_datagram *d = find_by_ep(port, asked->ep);

    if (!d || is_final(d))
        return EMU_OUTCOME_NO_MATCH;
    if ((asked->flags & EMU_DATAGRAM_ANY_ID) == 0 && ((d->flags & EMU_DATAGRAM_HAS_ID) == 0 || d->id != asked->id))
        return EMU_OUTCOME_NO_MATCH;
    if (d->claimed) {
        d->cancel = malloc(sizeof(*d->cancel));
        if (!d->cancel)
            return -ENOMEM;
        *d->cancel = *request;
        return EMU_DEFERRED;
    }
    end_with(port, d, EMU_DATAGRAM_TERMINATED);
    return 0;
}

/* A datagram that was to be cancelled has its answer. */
static void answer_cancel(struct emu_port_end *port, struct emu_datagram *d, int result)
{
    struct emu_msg *reply = d->cancel;

    d->cancel = NULL;
    emu_connection_answer_with(port->connection, reply, result, -1);
    free(reply);
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
    end_with(port, d, EMU_DATAGRAM_TERMINATED);
    limit_orphans(port);
}

void emu_datagram_drop_all(struct emu_port_end *port)
{
    TAILQ_HEAD(, emu_datagram) dropped = TAILQ_HEAD_INITIALIZER(dropped);
    struct emu_datagram *d;

    /* None pairs with what another one lets go. */
    TAILQ_CONCAT(&dropped, &port->datagrams, link);
    while ((d = TAILQ_FIRST(&dropped))) {
        TAILQ_REMOVE(&dropped, d, link);
        end_delay(port, d);
        if (!is_final(d))
            let_go(port, d, d->remote_nid, d->remote_instance, false);
        free(d->cancel);        /* its connection ends as well */
        free(d);
    }
    port->n_datagrams = 0;
}

/* ---- what other hosts say ---- */

/* One that is kept here and not claimed, or NULL. */
static struct emu_far_datagram *find_kept(const struct emu_domain *domain, uint32_t host, uint64_t number,
                                          uint32_t to_nid, uint32_t to_instance)
{
    struct emu_far_datagram *offered = NULL;

    while ((offered = emu_offer_next(domain, offered, to_nid, to_instance))) {
        if (offered->host == host && offered->number == number)
            return offered;
    }
    return NULL;
}

static void forget_offer(struct emu_domain *domain, uint32_t host, uint64_t number, uint32_t to_nid,
                         uint32_t to_instance)
{
    struct emu_far_datagram *offered = find_kept(domain, host, number, to_nid, to_instance);

    if (offered)
        emu_offer_take(domain, offered);
    free(offered);
}

static bool is_claimed(const struct emu_server *server, const struct emu_domain *domain, uint32_t host,
                       const struct emu_host_datagram *said)
{
    const struct emu_port_end *port;
    const struct emu_datagram *d;

    LIST_FOREACH(port, &server->ports, link) {
        if (port->domain != domain || port->nid != said->to_nid || port->instance_id != said->to_instance)
            continue;
        TAILQ_FOREACH(d, &port->datagrams, link) {
            if (d->claimed && d->claimed->host == host && d->claimed->number == said->number)
                return true;
        }
    }
    return false;
}

static void hear_offer(struct emu_server *server, struct emu_domain *domain, uint32_t host,
                       const struct emu_host_datagram *said)
{
    struct emu_far_datagram *offered;

    /* Again, because a host began anew? */
    if (find_kept(domain, host, said->number, said->to_nid, said->to_instance) ||
        is_claimed(server, domain, host, said))
        return;
    offered = emu_far_datagram_create(host, said);
    if (!offered)
        return;
    if (emu_offer_keep(domain, offered) < 0) {
        emu_hosts_refuse(server, host, "an offer of a datagram, beyond all that it may have");
        free(offered);
        return;
    }
    match_offer(server, domain, offered);
}

/* The datagram of a port (nid, instance_id) with this number, or NULL. */
static struct emu_datagram *find_by_number(struct emu_server *server, const struct emu_domain *domain, uint32_t nid,
                                           uint32_t instance_id, uint64_t number, struct emu_port_end **port_out)
{
    struct emu_port_end *port;
    struct emu_datagram *d;

    LIST_FOREACH(port, &server->ports, link) {
        if (port->domain != domain || port->nid != nid || port->instance_id != instance_id)
            continue;
        TAILQ_FOREACH(d, &port->datagrams, link) {
            if (d->number == number) {
                *port_out = port;
                return d;
            }
        }
    }
    return NULL;
}

/* One of ours pairs with who has claimed it. */
static void accept_claim(struct emu_port_end *port, struct emu_datagram *d, const struct emu_far_datagram *claimer)
{
    complete_far(port, d, claimer);
    answer_claim(port, d->number, claimer, true);
    forget_offer(port->domain, claimer->host, claimer->number, port->nid, port->instance_id);
    let_go(port, d, claimer->nid, claimer->instance_id, true);
}

static void hear_claim(struct emu_server *server, struct emu_domain *domain, uint32_t host,
                       const struct emu_host_datagram *said)
{
    struct emu_far_datagram *claimer = emu_far_datagram_create(host, said);
    struct emu_port_end *port;
    struct emu_datagram *d;

    if (!claimer)
        return;
    d = find_by_number(server, domain, said->to_nid, said->to_instance, said->number, &port);
    if (d && d->state == EMU_DATAGRAM_PENDING && d->is_offered && points_to(d, said->nid, said->instance_id) &&
        !d->claimer) {
        if (d->claimed) {
            d->claimer = claimer;
            return;
        }
        accept_claim(port, d, claimer);
    } else {
        const struct emu_host_datagram answer = { .word = EMU_DATAGRAM_REFUSE, .number = said->number,
                                                  .claimer = said->claimer, .nid = said->to_nid,
                                                  .instance_id = said->to_instance, .to_nid = said->nid,
                                                  .to_instance = said->instance_id };

        emu_datagram_tell_host(server, domain, host, &answer);
    }
    free(claimer);
}

/* Its claim has come to nothing. */
static void go_on(struct emu_port_end *port, struct emu_datagram *d)
{
    struct emu_far_datagram *claimer = d->claimer;

    free(d->claimed);
    d->claimed = NULL;
    if (d->cancel) {
        end_with(port, d, EMU_DATAGRAM_TERMINATED);
        answer_cancel(port, d, 0);
    } else if (claimer) {
        d->claimer = NULL;
        accept_claim(port, d, claimer);
        free(claimer);
    } else {
        match(port, d);
    }
}

static void hear_answer(struct emu_server *server, struct emu_domain *domain, uint32_t host,
                        const struct emu_host_datagram *said)
{
    struct emu_port_end *port;
    struct emu_datagram *d = find_by_number(server, domain, said->to_nid, said->to_instance, said->claimer, &port);

    if (!d || !d->claimed || d->claimed->host != host || d->claimed->number != said->number) {
        /* Who asked has gone. The offer is over, even if it was made again. */
        forget_offer(domain, host, said->number, said->to_nid, said->to_instance);
        return;
    }
    if (said->word == EMU_DATAGRAM_REFUSE) {
        go_on(port, d);
        return;
    }
    complete_far(port, d, d->claimed);
    let_go(port, d, d->remote_nid, d->remote_instance, true);
    if (d->cancel)
        answer_cancel(port, d, EMU_OUTCOME_NO_MATCH);
}

/* What we and that host have told each other of the domain counts no more. */
static void start_anew(struct emu_server *server, struct emu_domain *domain, uint32_t host)
{
    struct emu_port_end *port;
    struct emu_datagram *d;

    emu_offers_forget(domain, host);
    LIST_FOREACH(port, &server->ports, link) {
        if (port->domain != domain)
            continue;
        TAILQ_FOREACH(d, &port->datagrams, link) {
            if (d->state != EMU_DATAGRAM_PENDING)
                continue;
            if (d->is_offered && d->host == host) {
                d->is_offered = false;
                emu_offers_count(domain, host, -1);
                free(d->claimer);
                d->claimer = NULL;
            }
            if (d->claimed && d->claimed->host == host)
                go_on(port, d);
            else if (is_free(d) && !is_wildcard(d) && d->host == host)
                offer(port, d);
        }
    }
}

void emu_datagram_domain_begins(struct emu_server *server, struct emu_domain *domain)
{
    const struct emu_host_datagram begin = { .word = EMU_DATAGRAM_BEGIN };

    if (!emu_hosts_are_several(server) || emu_offers_begin(server, domain) < 0)
        return;
    for (uint32_t i = 0; i < emu_hosts_count(server); i++) {
        if (i == emu_hosts_own(server))
            continue;
        emu_datagram_tell_host(server, domain, i, &begin);
        start_anew(server, domain, i);
    }
}

void emu_datagram_hear(struct emu_server *server, struct emu_domain *domain, uint32_t host,
                       const struct emu_host_datagram *said)
{
    switch (said->word) {
    case EMU_DATAGRAM_BEGIN:
        start_anew(server, domain, host);
        break;
    case EMU_DATAGRAM_OFFER:
        hear_offer(server, domain, host, said);
        break;
    case EMU_DATAGRAM_WITHDRAW:
        forget_offer(domain, host, said->number, said->to_nid, said->to_instance);
        break;
    case EMU_DATAGRAM_CLAIM:
        hear_claim(server, domain, host, said);
        break;
    default:
        hear_answer(server, domain, host, said);
    }
}

void emu_datagram_host_up(struct emu_server *server, uint32_t host)
{
    struct emu_domain *domain;
    struct emu_port_end *port;
    struct emu_datagram *d;

    LIST_FOREACH(domain, &server->domains, link) {
        if (domain->offers)
            emu_offers_set_lost(domain, host, false);
    }
    LIST_FOREACH(port, &server->ports, link) {
        TAILQ_FOREACH(d, &port->datagrams, link) {
            if (is_free(d) && !is_wildcard(d) && d->number != 0 && d->host == host)
                offer(port, d);
        }
    }
}

void emu_datagram_host_down(struct emu_server *server, uint32_t host)
{
    struct emu_domain *domain;
    struct emu_port_end *port;
    struct emu_datagram *d;

    LIST_FOREACH(domain, &server->domains, link) {
        if (emu_offers_begin(server, domain) < 0)
            continue;
        emu_offers_forget(domain, host);
        emu_offers_set_lost(domain, host, true);
    }
    LIST_FOREACH(port, &server->ports, link) {
        TAILQ_FOREACH(d, &port->datagrams, link) {
            if (d->state != EMU_DATAGRAM_PENDING || d->number == 0)
                continue;
            if (!is_wildcard(d) && d->host == host) {
                end_with(port, d, EMU_DATAGRAM_ERROR);
                if (d->cancel)
                    answer_cancel(port, d, EMU_OUTCOME_NO_MATCH);
            } else if (d->claimed && d->claimed->host == host) {
                go_on(port, d);
            }
        }
    }
}
