/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Where a datagram is found. No look-up depends on how many datagrams are pending: each has a key or a list of its own.
 *
 *   by_ep       port, end point                       until its end point goes
 *   by_peer     FACING: port, target                  a directed one while it is pending
 *               ANSWERED: port, peer                  a wildcard that has claimed an offer, or has paired
 *   by_target   domain, target                        a directed one while it is pending, and at its target
 *   by_number   number in the domain                  on a machine of several hosts (datagram_hosts.c)
 *   wildcard    a port's wildcards that nobody has    in the order of posting
 *   finished    a port's final ones                   in the order in which they became final
 *
 * A delayed datagram keeps its places; who looks for a partner skips it. The port of a key is its address in memory: a
 * port that goes drops its datagrams first.
 */
#include "emunic/daemon/datagrams/datagram_hosts.h"
#include "emunic/daemon/datagrams/datagram_inner.h"
#include "emunic/daemon/world/port_end.h"

enum { EP, FACING, ANSWERED, TARGET };

static struct emu_index *index_of(const struct emu_port_end *port)
{
    return &emu_datagrams_in(port->server)->index;
}

static struct emu_key key_of(uint64_t kind, const void *whose, uint64_t word)
{
    return (struct emu_key){ { kind, (uintptr_t)whose, word } };
}

static uint64_t address(uint32_t nid, uint32_t instance_id)
{
    return (uint64_t)nid << 32 | instance_id;
}

/* ---- changes ---- */

static void join_wildcards(struct emu_datagram *d)
{
    struct emu_datagram_list *list = &emu_datagrams_of(d->port)->wildcards;
    struct emu_datagram *next = TAILQ_LAST(list, emu_datagram_list);

    d->places.is_among_wildcards = true;
    if (!next || next->order < d->order) {
        TAILQ_INSERT_TAIL(list, d, places.wildcard);
        return;
    }
    /* One whose claim has failed was among the oldest. */
    next = TAILQ_FIRST(list);
    while (next->order < d->order)
        next = TAILQ_NEXT(next, places.wildcard);
    TAILQ_INSERT_BEFORE(next, d, places.wildcard);
}

static void leave_wildcards(struct emu_datagram *d)
{
    if (d->places.is_among_wildcards)
        TAILQ_REMOVE(&emu_datagrams_of(d->port)->wildcards, d, places.wildcard);
    d->places.is_among_wildcards = false;
}

void emu_datagram_place(struct emu_port_end *port, struct emu_datagram *d)
{
    struct emu_datagram_port *datagrams = emu_datagrams_of(port);
    uint64_t remote = address(d->remote_nid, d->remote_instance);

    d->port = port;
    d->order = ++emu_datagrams_in(port->server)->n_posted;
    TAILQ_INSERT_TAIL(&datagrams->list, d, link);
    datagrams->n++;
    emu_index_add(index_of(port), key_of(EP, port, d->ep), &d->places.by_ep);
    if (emu_datagram_is_wildcard(d)) {
        join_wildcards(d);
    } else {
        emu_index_add(index_of(port), key_of(FACING, port, remote), &d->places.by_peer);
        if (d->way.is_there)
            emu_datagram_place_there(d);
    }
}

void emu_datagram_place_there(struct emu_datagram *d)
{
    emu_index_add(index_of(d->port), key_of(TARGET, d->port->domain, address(d->remote_nid, d->remote_instance)),
                  &d->places.by_target);
}

void emu_datagram_place_claim(struct emu_datagram *d)
{
    if (!emu_datagram_is_wildcard(d))
        return;
    leave_wildcards(d);
    emu_index_add(index_of(d->port), key_of(ANSWERED, d->port, address(d->claimed->nid, d->claimed->instance_id)),
                  &d->places.by_peer);
}

void emu_datagram_place_again(struct emu_datagram *d)
{
    if (!emu_datagram_is_wildcard(d))
        return;
    emu_index_remove(index_of(d->port), &d->places.by_peer);
    join_wildcards(d);
}

static void end_pending(struct emu_datagram *d)
{
    leave_wildcards(d);
    emu_index_remove(index_of(d->port), &d->places.by_peer);
    emu_index_remove(index_of(d->port), &d->places.by_target);
    if (d->places.is_unoffered)
        emu_offers_end_waiting(d);
}

void emu_datagram_place_finished(struct emu_datagram *d)
{
    struct emu_datagram_port *datagrams = emu_datagrams_of(d->port);

    end_pending(d);
    TAILQ_INSERT_TAIL(&datagrams->finished, d, places.finished);
    if (d->flags & EMU_DATAGRAM_HAS_ID)
        TAILQ_INSERT_TAIL(&datagrams->with_id, d, places.with_id);
    if (d->state == EMU_DATAGRAM_COMPLETED && emu_datagram_is_wildcard(d))
        emu_index_add(index_of(d->port), key_of(ANSWERED, d->port, address(d->remote_nid, d->remote_instance)),
                      &d->places.by_peer);
}

void emu_datagram_place_orphan(struct emu_datagram *d)
{
    d->has_no_ep = true;
    emu_index_remove(index_of(d->port), &d->places.by_ep);
    TAILQ_INSERT_TAIL(&emu_datagrams_of(d->port)->orphans, d, places.orphan);
    emu_datagrams_of(d->port)->n_orphans++;
}

void emu_datagram_displace(struct emu_datagram *d)
{
    struct emu_datagram_port *datagrams = emu_datagrams_of(d->port);

    end_pending(d);
    emu_index_remove(index_of(d->port), &d->places.by_ep);
    if (d->number != 0)
        emu_offers_forget_number(d);
    if (d->has_no_ep) {
        TAILQ_REMOVE(&datagrams->orphans, d, places.orphan);
        datagrams->n_orphans--;
    }
    if (emu_datagram_is_final(d)) {
        TAILQ_REMOVE(&datagrams->finished, d, places.finished);
        if (d->flags & EMU_DATAGRAM_HAS_ID)
            TAILQ_REMOVE(&datagrams->with_id, d, places.with_id);
    }
    TAILQ_REMOVE(&datagrams->list, d, link);
    datagrams->n--;
}

/* ---- looking ---- */

struct emu_datagram *emu_datagram_of_ep(const struct emu_port_end *port, uint32_t ep)
{
    return EMU_INDEXED(emu_index_oldest(index_of(port), key_of(EP, port, ep)), struct emu_datagram, places.by_ep);
}

struct emu_datagram *emu_datagram_facing(const struct emu_port_end *port, uint32_t nid, uint32_t instance_id)
{
    return EMU_INDEXED(emu_index_oldest(index_of(port), key_of(FACING, port, address(nid, instance_id))),
                       struct emu_datagram, places.by_peer);
}

struct emu_datagram *emu_datagram_facing_next(const struct emu_datagram *d)
{
    return EMU_INDEXED(emu_index_newer(&d->places.by_peer), struct emu_datagram, places.by_peer);
}

bool emu_datagram_is_answered(const struct emu_port_end *port, uint32_t nid, uint32_t instance_id)
{
    return emu_index_oldest(index_of(port), key_of(ANSWERED, port, address(nid, instance_id)));
}

struct emu_datagram *emu_datagram_waiting_for(const struct emu_port_end *target)
{
    struct emu_key key = key_of(TARGET, target->domain, address(target->nid, target->instance_id));

    return EMU_INDEXED(emu_index_oldest(index_of(target), key), struct emu_datagram, places.by_target);
}

struct emu_datagram *emu_datagram_waiting_next(const struct emu_datagram *d)
{
    return EMU_INDEXED(emu_index_newer(&d->places.by_target), struct emu_datagram, places.by_target);
}
