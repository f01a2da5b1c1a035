/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which datagrams pair: the rendezvous of two end points, decided here alone.
 *
 * A posted datagram is pending until it pairs. A directed one pairs, in this order, with a directed one that the
 * target has outstanding towards us, then with the target's oldest wildcard; a wildcard pairs with the directed one
 * that has waited for its port longest. Both sides complete in one step, so crossing posts can only pair with each
 * other. A port may be its own peer; a datagram never pairs with itself.
 *
 * In virtual time a directed one is on its way to its target first, and whoever meets there pairs (datagram_virtual.c).
 *
 * Those of other hosts come as offers and pair in the same order (hosts/datagram_hosts.h): a pending datagram of ours
 * that has claimed one waits for the answer and pairs with nobody meanwhile. One that an injected fault delays, or that
 * the network has no way for, waits too: it is looked at again when its time has come, or the network has changed.
 * Source: spec/ugni.md 4.5 and 7.4.
 */
#include "emunic/daemon/datagrams/datagram_life.h"

#include "emunic/daemon/datagrams/datagram_hosts.h"
#include "emunic/daemon/datagrams/datagram_inner.h"
#include "emunic/daemon/peers/sessions.h"
#include "emunic/daemon/world/domain.h"
#include "emunic/daemon/world/lookups.h"
#include "emunic/daemon/world/port_end.h"
#include "emunic/daemon/world/server.h"
#include "emunic/daemon/world/server_time.h"
#include "emunic/daemon/world/ways.h"

/* A datagram is a packet: it waits while the network has no way for it. */
static bool is_in_reach(const struct emu_port_end *port, uint32_t nid)
{
    return !port->domain->paths.is_routed_around ||
           (!emu_network_is_quiesced(port->server) && emu_network_reaches(port->server, port->nid, nid));
}

/* The oldest datagram of `peer` that `mine`, a directed one from the port (nid, instance_id), may pair with. */
static struct emu_datagram *find_partner(struct emu_port_end *peer, uint32_t nid, uint32_t instance_id,
                                         const struct emu_datagram *mine)
{
    struct emu_datagram *d = emu_datagram_facing(peer, nid, instance_id);

    while (d && (!emu_datagram_is_free(d) || d == mine || (mine && !emu_datagram_meets(d, mine))))
        d = emu_datagram_facing_next(d);
    if (d || (mine && !mine->way.is_there))
        return d;
    d = TAILQ_FIRST(&emu_datagrams_of(peer)->wildcards);
    while (d && !emu_datagram_is_free(d))
        d = TAILQ_NEXT(d, places.wildcard);
    return d;
}

static void pair(struct emu_port_end *port, struct emu_datagram *d, struct emu_port_end *peer,
                 struct emu_datagram *other)
{
    if (emu_server_is_virtual(port->server)) {
        emu_datagram_bring_pair(d, other);
        return;
    }
    emu_datagram_complete(port, d, peer->nid, peer->instance_id, other->in, other->in_bytes);
    emu_datagram_complete(peer, other, port->nid, port->instance_id, d->in, d->in_bytes);
}

/* Newest port wins where several share node and instance id (spec/ugni.md 7.5). */
static void match_near(struct emu_port_end *port, struct emu_datagram *d)
{
    struct emu_port_end *peer =
        is_in_reach(port, d->remote_nid) ? emu_port_end_at(port->domain, d->remote_nid, d->remote_instance) : NULL;

    for (; peer; peer = emu_port_end_at_older(peer)) {
        struct emu_datagram *other = find_partner(peer, port->nid, port->instance_id, d);

        if (other) {
            pair(port, d, peer, other);
            return;
        }
    }
    if (emu_server_is_virtual(port->server) && is_in_reach(port, d->remote_nid))
        emu_datagram_set_out(d);
}

/* Is there a way, and does whoever faces `offer` leave it to us? */
static bool may_claim(const struct emu_port_end *port, const struct emu_datagram *d,
                      const struct emu_far_datagram *offer)
{
    return is_in_reach(port, offer->nid) && (emu_datagram_is_wildcard(d) || emu_hosts_own(port->server) < offer->host);
}

/* Directed at a node of another host: only one that faces it can be here. */
static void match_far(struct emu_port_end *port, struct emu_datagram *d)
{
    struct emu_far_datagram *offered = emu_offer_between(port, d->remote_nid, d->remote_instance);

    while (offered && !may_claim(port, d, offered))
        offered = emu_offer_between_next(offered);
    if (offered)
        emu_datagram_claim(port, d, offered);
    else
        emu_datagram_offer(port, d);
}

static void match_directed(struct emu_port_end *port, struct emu_datagram *d)
{
    if (d->host == emu_hosts_own(port->server))
        match_near(port, d);
    else
        match_far(port, d);
}

/* Does one of ours face an offer, perhaps without having been offered yet? Wildcards then keep away from it. */
static bool is_faced(const struct emu_port_end *port, const struct emu_far_datagram *offered)
{
    const struct emu_port_end *p;

    for (p = emu_port_end_at(port->domain, port->nid, port->instance_id); p; p = emu_port_end_at_older(p)) {
        const struct emu_datagram *d = emu_datagram_facing(p, offered->nid, offered->instance_id);

        while (d && d->not_before_ns != 0)
            d = emu_datagram_facing_next(d);
        if (d)
            return true;
    }
    return false;
}

/*
 * The offer that has waited for the port longest, and longer than since `before_ns`. Those that are passed over are
 * faced by one of ours and pair with it within a message to their host and back, unless a fault delays that one or the
 * network has no way: without these they are as many as are under way, and are no longer there for a later wildcard.
 */
static struct emu_far_datagram *find_offer(struct emu_port_end *port, uint64_t before_ns)
{
    struct emu_far_datagram *offered = emu_offer_to(port);

    for (; offered; offered = emu_offer_to_next(offered)) {
        if (offered->arrived_ns > before_ns)
            return NULL;
        if (is_in_reach(port, offered->nid) && !is_faced(port, offered))
            return offered;
    }
    return NULL;
}

static void match_wildcard(struct emu_port_end *port, struct emu_datagram *d)
{
    struct emu_datagram *first = emu_datagram_waiting_for(port);
    struct emu_far_datagram *offered = NULL;

    while (first && (!emu_datagram_is_free(first) || !is_in_reach(port, first->port->nid)))
        first = emu_datagram_waiting_next(first);
    if (emu_hosts_are_several(port->server))
        offered = find_offer(port, first ? first->posted_ns : UINT64_MAX);
    if (offered)
        emu_datagram_claim(port, d, offered);
    else if (first)
        pair(port, d, first->port, first);
}

void emu_datagram_match(struct emu_port_end *port, struct emu_datagram *d)
{
    if (emu_datagram_is_wildcard(d))
        match_wildcard(port, d);
    else
        match_directed(port, d);
}

/* In the same order as match_directed(), which asks from the other side. */
void emu_datagram_match_offer(struct emu_domain *domain, struct emu_far_datagram *offered)
{
    struct emu_port_end *port;

    for (port = emu_port_end_at(domain, offered->to_nid, offered->to_instance); port;
         port = emu_port_end_at_older(port)) {
        struct emu_datagram *d = find_partner(port, offered->nid, offered->instance_id, NULL);

        if (!d || !is_in_reach(port, offered->nid))
            continue;
        /* Else it waits to be claimed by that host. */
        if (may_claim(port, d, offered))
            emu_datagram_claim(port, d, offered);
        return;
    }
}

void emu_datagram_match_offers_of(struct emu_port_end *port, uint32_t nid, uint32_t instance_id)
{
    struct emu_far_datagram *offered = emu_offer_between(port, nid, instance_id);

    while (offered) {
        struct emu_far_datagram *next = emu_offer_between_next(offered);

        emu_datagram_match_offer(port->domain, offered);
        offered = next;
    }
}

/* ---- delays, and changes of the network ---- */

static uint64_t first_delayed_ns(const struct emu_server *server)
{
    uint64_t next_ns = UINT64_MAX;
    const struct emu_port_end *port;

    if (emu_datagrams_in(server)->n_delayed == 0)
        return next_ns;
    LIST_FOREACH(port, &server->ports, link) {
        uint64_t until_ns = emu_datagrams_of(port)->delayed_until_ns;

        if (until_ns != 0 && until_ns < next_ns)
            next_ns = until_ns;
    }
    return next_ns;
}

void emu_datagram_delay(struct emu_port_end *port, struct emu_datagram *d, uint64_t not_before_ns)
{
    d->not_before_ns = not_before_ns;
    if (not_before_ns == 0 || not_before_ns == UINT64_MAX)
        return;
    emu_datagrams_in(port->server)->n_delayed++;
    if (emu_datagrams_of(port)->delayed_until_ns == 0 || not_before_ns < emu_datagrams_of(port)->delayed_until_ns)
        emu_datagrams_of(port)->delayed_until_ns = not_before_ns;
    emu_server_set_alarm(port->server, first_delayed_ns(port->server));
}

void emu_datagram_end_delay(struct emu_port_end *port, struct emu_datagram *d)
{
    if (d->not_before_ns != 0 && d->not_before_ns != UINT64_MAX)
        emu_datagrams_in(port->server)->n_delayed--;
    d->not_before_ns = 0;
}

/* Runs only while some are delayed. */
static void look_at_port(struct emu_port_end *port, uint64_t now_ns)
{
    struct emu_datagram *d;

    emu_datagrams_of(port)->delayed_until_ns = 0;
    TAILQ_FOREACH(d, &emu_datagrams_of(port)->list, link) {
        if (d->not_before_ns == 0 || d->not_before_ns == UINT64_MAX)
            continue;
        if (d->not_before_ns <= now_ns) {
            emu_datagram_end_delay(port, d);
            if (emu_datagram_is_free(d))
                emu_datagram_match(port, d);
        } else if (emu_datagrams_of(port)->delayed_until_ns == 0 ||
                   d->not_before_ns < emu_datagrams_of(port)->delayed_until_ns) {
            emu_datagrams_of(port)->delayed_until_ns = d->not_before_ns;
        }
    }
}

unsigned emu_datagram_look_at_delayed(struct emu_server *server)
{
    struct emu_port_end *port;
    uint64_t now_ns;

    if (emu_datagrams_in(server)->has_unoffered)
        emu_datagram_offer_again(server);
    if (emu_datagrams_in(server)->n_delayed == 0)
        return 0;
    now_ns = emu_server_now_ns(server);
    LIST_FOREACH(port, &server->ports, link) {
        if (emu_datagrams_of(port)->delayed_until_ns != 0 && emu_datagrams_of(port)->delayed_until_ns <= now_ns)
            look_at_port(port, now_ns);
    }
    emu_server_set_alarm(server, first_delayed_ns(server));
    return 0;
}

uint64_t emu_datagram_next_ns(const struct emu_server *server)
{
    return emu_server_is_virtual(server) ? UINT64_MAX : first_delayed_ns(server);
}

void emu_datagram_look_at_all(struct emu_server *server)
{
    struct emu_port_end *port;
    struct emu_datagram *d;

    /* A wildcard pairs when the one that points at it is looked at, unless that is on another host. */
    LIST_FOREACH(port, &server->ports, link) {
        TAILQ_FOREACH(d, &emu_datagrams_of(port)->list, link) {
            if (emu_datagram_is_free(d) && (emu_hosts_are_several(server) || !emu_datagram_is_wildcard(d)))
                emu_datagram_match(port, d);
        }
    }
}
