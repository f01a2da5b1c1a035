/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Datagrams in virtual time: data cross the model's network as a message of their size, each once.
 *
 *   directed    sets out when its command is served, and waits at its target's node
 *   wildcard    may pair from its command on; its data set out when it has paired
 *
 * Two meet where one of them is at the other's node: where a directed one arrives at its target, or where somebody
 * posts what one that has arrived waited for. From then on they are a pair, and each is complete when the other's data
 * are at its node. So a program that posts to a waiting wildcard has its answer after a message there and one back, and
 * two that point at each other after a message each. What waited at the node already is copied within it.
 *
 * The core of who posts sends; a wildcard's data that answer what arrives are sent by the NIC itself. Who cancels one
 * that has paired comes too late, and has it complete.
 *
 * The cost is this project's choice: the original exchanges datagrams in the kernel, and no source has figures.
 */
#include "emunic/daemon/datagrams/datagram_virtual.h"

#include <stdlib.h>

#include "emunic/abi/command.h"
#include "emunic/daemon/datagrams/datagram_inner.h"
#include "emunic/daemon/virtual/virtual.h"
#include "emunic/daemon/world/domain.h"
#include "emunic/daemon/world/lookups.h"

#define BYTES_MIN 8u

/* Data under way. It belongs to its operation in the model. */
struct emu_datagram_trip {
    struct emu_virtual_op op; /* first */
    LIST_ENTRY(emu_datagram_trip) link;
    struct emu_datagrams *datagrams; /* borrowed; NULL: the server ends, and the trip is in no list any more */
    struct emu_datagram *carried;    /* borrowed: whose data; NULL: it has gone, or this is a copy within the node */
    struct emu_datagram *awaited_by; /* borrowed: has paired with that one; NULL */
};

static bool arrived(struct emu_virtual_op *op)
{
    struct emu_datagram_trip *t = (struct emu_datagram_trip *)op;
    struct emu_datagram *d = t->carried, *other = t->awaited_by;

    t->carried = t->awaited_by = NULL;
    if (other) {
        other->way.awaited = NULL;
        emu_datagram_finish_pair(other);
    }
    if (!d)
        return true;
    d->way.outward = NULL;
    if (emu_datagram_is_wildcard(d))
        return true;
    d->way.is_there = true;
    if (d->state != EMU_DATAGRAM_PENDING || d->way.is_paired)
        return true;
    emu_datagram_place_there(d);
    /* Else nobody knew at its post whom it would reach, and it would be seen by who runs. */
    t->datagrams->arriving = t->op.to ? d : NULL;
    if (emu_datagram_is_free(d))
        emu_datagram_match(d->port, d);
    t->datagrams->arriving = NULL;
    return true;
}

static void drop(struct emu_virtual_op *op)
{
    struct emu_datagram_trip *t = (struct emu_datagram_trip *)op;

    if (t->datagrams)
        LIST_REMOVE(t, link);
    free(t);
}

/* NULL: it cannot travel. */
static struct emu_datagram_trip *begin_trip(struct emu_port_end *from, const struct emu_virtual_move *move)
{
    struct emu_datagram_trip *t = calloc(1, sizeof(*t));

    if (!t)
        return NULL;
    t->op = (struct emu_virtual_op){ .arrived = arrived, .completed = drop, .drop = drop };
    if (emu_virtual_post(from, &t->op, move) < 0) {
        free(t);
        return NULL;
    }
    t->datagrams = emu_datagrams_in(from->server);
    LIST_INSERT_HEAD(&t->datagrams->trips, t, link);
    return t;
}

/* False: it cannot travel. */
static bool send_out(struct emu_datagram *d)
{
    const struct emu_port_end *target = emu_port_end_at(d->port->domain, d->remote_nid, d->remote_instance);
    const struct emu_virtual_move move = {
        .kind = emu_datagrams_in(d->port->server)->posting == d ? EMU_VIRTUAL_PUT : EMU_VIRTUAL_ANSWER,
        .to_nid = d->remote_nid,
        .to = target ? target->member : NULL,
        .bytes = d->in_bytes > BYTES_MIN ? d->in_bytes : BYTES_MIN,
        .mode = EMU_MODE_IN_ORDER,
    };

    d->way.outward = begin_trip(d->port, &move);
    if (d->way.outward)
        d->way.outward->carried = d;
    return d->way.outward;
}

void emu_datagram_set_out(struct emu_datagram *d)
{
    if (!d->way.outward && !d->way.is_there && !send_out(d))
        emu_datagram_end(d->port, d, EMU_DATAGRAM_ERROR);
}

/* What it waits for is at its node already. NULL: that happens at once. */
static struct emu_datagram_trip *copy_within_node(const struct emu_datagram *d)
{
    const struct emu_virtual_move move = {
        .kind = EMU_VIRTUAL_ANSWER,
        .to_nid = d->port->nid,
        .to = d->port->member,
        .bytes = d->out_bytes > BYTES_MIN ? d->out_bytes : BYTES_MIN,
        .mode = EMU_MODE_IN_ORDER,
    };

    return begin_trip(d->port, &move);
}

/* The data of one that has paired come to its partner. */
static void bring(struct emu_datagram *from, struct emu_datagram *to)
{
    struct emu_datagram_trip *t = NULL;

    if (from->way.is_there) {
        if (emu_datagrams_in(from->port->server)->arriving != from)
            t = copy_within_node(to);
    } else if (from->way.outward || send_out(from)) {
        t = from->way.outward;
    }
    to->way.awaited = t;
    if (t)
        t->awaited_by = to;
    else
        emu_datagram_finish_pair(to);
}

void emu_datagram_bring_pair(struct emu_datagram *a, struct emu_datagram *b)
{
    emu_datagram_note_pair(a, b);
    emu_datagram_note_pair(b, a);
    bring(a, b);
    bring(b, a);
}

void emu_datagram_send(struct emu_port_end *port, const struct emu_cmd *cmd)
{
    struct emu_datagrams *datagrams = emu_datagrams_in(port->server);
    struct emu_datagram *d = emu_datagram_of_ep(port, (uint32_t)cmd->operand1);

    if (!d || !d->way.is_held)
        return;
    d->way.is_held = false;
    datagrams->posting = d;
    if (emu_datagram_is_free(d))
        emu_datagram_match(port, d);
    datagrams->posting = NULL;
}

void emu_datagram_leave_way(struct emu_datagram *d, bool goes)
{
    struct emu_datagram_way *way = &d->way;

    if (way->awaited)
        way->awaited->awaited_by = NULL;
    way->awaited = NULL;
    if (goes && way->outward)
        way->outward->carried = NULL;
    if (goes)
        way->outward = NULL;
}

void emu_datagram_end_trips(struct emu_datagrams *datagrams)
{
    struct emu_datagram_trip *t;

    while ((t = LIST_FIRST(&datagrams->trips))) {
        LIST_REMOVE(t, link);
        t->datagrams = NULL;
    }
}
