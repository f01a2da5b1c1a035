/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reductions in virtual time: what trees and leaves tell each other crosses the model's network.
 *
 *   contribution   a put of the leaf's, to the node of the engine; taken or refused there
 *   up, down       a message that the engine's NIC sends by itself; the other engine goes on when it arrives
 *   result         likewise, from the engine to the node of the leaf, where it is written
 *
 * Messages of one pair keep their order, so the n-th contribution of a child stays in its n-th round. A tree is decided
 * or broken at once, as always; only what is delivered waits (`is_up_late`, `is_down_late`). Whoever breaks or goes is
 * waited for no more: its messages count as arrived.
 *
 * Not modelled: the engine's own time, and breaking.
 */
#include <stdlib.h>

#include "emunic/abi/command.h"
#include "emunic/daemon/ce/ce_inner.h"
#include "emunic/daemon/virtual/virtual.h"
#include "emunic/engine/transaction.h"

enum trip_kind { TRIP_POST, TRIP_UP, TRIP_DOWN, TRIP_RESULT };

/* A message under way. It belongs to its operation in the model. */
struct emu_ce_trip {
    struct emu_virtual_op op; /* first */
    LIST_ENTRY(emu_ce_trip) link;
    struct emu_server *server; /* NULL: the server ends, and the trip is in no list any more */
    enum trip_kind kind;
    unsigned fault;                          /* POST */
    struct emu_port_end *port;               /* POST: whose; RESULT: for whom. Borrowed; NULL: it has gone */
    struct emu_ce_end *engine;               /* UP: from where; DOWN: to where. Borrowed; NULL: it goes on by itself */
    struct emu_cmd cmd;                      /* POST */
    struct emu_ce_contribution contribution; /* RESULT */
    struct emu_ce_value value;               /* RESULT */
};

/* All that follows happens at this time. */
static void settle(struct emu_server *server)
{
    while (emu_ce_round(server) > 0)
        ;
}

static bool arrived(struct emu_virtual_op *op)
{
    struct emu_ce_trip *t = (struct emu_ce_trip *)op;
    struct emu_ce_end *e = t->engine;

    switch (t->kind) {
    case TRIP_POST:
        if (t->port) {
            emu_ce_contribute(t->port, &t->cmd, t->fault);
            emu_port_end_disturb(t->port);
        }
        break;
    case TRIP_RESULT:
        if (t->port)
            emu_ce_write_result(t->port, &t->contribution, &t->value);
        break;
    default:
        t->engine = NULL;
        if (e)
            emu_ce_trip_ended(e);
        break;
    }
    settle(t->server);
    return true;
}

static void drop(struct emu_virtual_op *op)
{
    struct emu_ce_trip *t = (struct emu_ce_trip *)op;

    if (t->engine)
        t->engine->told.trip = NULL;
    if (t->server)
        LIST_REMOVE(t, link);
    free(t);
}

/* Who sends it, and where it goes. */
struct leg {
    struct emu_port_end *from;
    uint32_t to_nid;
    const struct emu_member *to; /* whose memory changes; NULL: nobody's */
};

/* False: it cannot travel, and happens at once. */
static bool set_out(struct emu_ce_trip *what, const struct leg *leg)
{
    struct emu_server *server = leg->from->server;
    struct emu_ce_trip *t = malloc(sizeof(*t));
    const struct emu_virtual_move move = {
        .kind = what->kind == TRIP_POST ? EMU_VIRTUAL_PUT : EMU_VIRTUAL_ANSWER,
        .to_nid = leg->to_nid,
        .to = leg->to,
        .bytes = sizeof(struct emu_ce_result),
        .mode = EMU_MODE_IN_ORDER,
    };

    if (!t)
        return false;
    *t = *what;
    t->server = server;
    t->op = (struct emu_virtual_op){ .arrived = arrived, .completed = drop, .drop = drop };
    LIST_INSERT_HEAD(&emu_ce_engines_of(server)->trips, t, link);
    if (emu_virtual_post(leg->from, &t->op, &move) < 0) {
        LIST_REMOVE(t, link);
        free(t);
        return false;
    }
    if (t->engine)
        t->engine->told.trip = t;
    return true;
}

bool emu_ce_send_post(struct emu_port_end *port, const struct emu_cmd *cmd, unsigned fault)
{
    uint32_t nid = emu_domain_nid_at(port->domain, cmd->remote_nid);
    struct emu_ce_trip t = { .kind = TRIP_POST, .fault = fault, .port = port, .cmd = *cmd };

    return emu_server_is_virtual(port->server) && nid != EMU_NID_NONE &&
           set_out(&t, &(struct leg){ .from = port, .to_nid = nid });
}

bool emu_ce_send_result(const struct emu_ce_end *e, struct emu_port_end *port, const struct emu_ce_contribution *c,
                        const struct emu_ce_value *result)
{
    struct emu_ce_trip t = { .kind = TRIP_RESULT, .port = port, .contribution = *c, .value = *result };

    return emu_server_is_virtual(e->server) && e->port &&
           set_out(&t, &(struct leg){ .from = e->port, .to_nid = port->nid, .to = port->member });
}

bool emu_ce_send_up(struct emu_ce_end *e)
{
    struct emu_ce_trip t = { .kind = TRIP_UP, .engine = e };

    return emu_server_is_virtual(e->server) && e->port &&
           set_out(&t, &(struct leg){ .from = e->port, .to_nid = e->shape.parent.nid });
}

bool emu_ce_send_down(const struct emu_ce_end *e, struct emu_ce_end *below)
{
    struct emu_ce_trip t = { .kind = TRIP_DOWN, .engine = below };

    return e->port && set_out(&t, &(struct leg){ .from = e->port, .to_nid = below->nid });
}

void emu_ce_forget_trip(struct emu_ce_end *e)
{
    if (e->told.trip)
        e->told.trip->engine = NULL;
    e->told.trip = NULL;
}

void emu_ce_trips_leave(const struct emu_port_end *port)
{
    struct emu_ce_trip *t;

    LIST_FOREACH(t, &emu_ce_engines_of(port->server)->trips, link) {
        if (t->port == port)
            t->port = NULL;
    }
}

void emu_ce_trips_end(const struct emu_server *server)
{
    struct emu_ce_trip *t;

    while ((t = LIST_FIRST(&emu_ce_engines_of(server)->trips))) {
        LIST_REMOVE(t, link);
        t->server = NULL;
    }
}
