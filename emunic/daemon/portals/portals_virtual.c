/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Portals commands in virtual time. Each is an operation of the model, and many of a port are under way at once.
 *
 *   put      start (data copied) -> begun (match, START) -> ended (SEND_END) -> arrived (data, END) -> an answer (ACK)
 *   get      start -> arrived (SEND_END, match, START, data copied, END) -> ended (REPLY_START, data, REPLY_END)
 *   getput   start (data copied) -> arrived (SEND_END, match, START, exchange, END) -> ended (as a get's)
 *
 * SEND_END stands in the initiator's queue before END does in the target's, so an arrival posts it if the NIC has not
 * told yet. An acknowledgement is a message of its own, without data, which the target's NIC sends. A message that
 * nobody takes costs its way. Between two processes packets keep their order, as Portals promises.
 *
 * A step wants one lock at a time; where it is not free the operation's effect stays due (daemon/virtual). A command
 * whose port has ended goes on through the network and does nothing at its ends.
 *
 * A put of one packet begins and arrives at once.
 *
 * Deviation: a get that is cut short by its target travels in its whole length.
 */
#include <errno.h>
#include <sched.h>
#include <stddef.h>
#include <stdlib.h>

#include "emunic/daemon/portals/portals_work.h"
#include "emunic/daemon/virtual/virtual.h"
#include "emunic/daemon/world/domain.h"
#include "emunic/daemon/world/port_end.h"

#define UNDER_WAY_MAX 4096u  /* of one port: the rest waits in its ring */
#define LOCK_TRIES    10000u /* its owner holds it for microseconds, unless it is stopped */

struct emu_portals_virtual {
    struct emu_virtual_op op; /* first */
    struct emu_virtual_op answer;
    LIST_ENTRY(emu_portals_virtual) link; /* of its port's */
    struct emu_port_end *port;            /* borrowed; NULL: it has ended */
    uint8_t *data;                        /* owned; of a put on its way, or of a reply */
    bool is_matched;                      /* by whoever takes it, or by nobody */
    bool is_delivered;
    bool has_looked; /* whether it is cut off: once for each message */
    bool is_cut;
    bool is_answered;             /* `answer` is under way */
    bool is_replied;              /* REPLY_START is posted, and the data are stored */
    struct emu_ptl_flight flight; /* between START and END */
    struct emu_portals_work w;
};

/* The commands of a port that are under way. */
struct under_way {
    LIST_HEAD(, emu_portals_virtual) list; /* each belongs to its operation in the model */
    uint32_t n;
};

static struct under_way *under_way_of(const struct emu_port_end *port)
{
    return port->slots[EMU_PORT_PORTALS_VIRTUAL];
}

static void leave_port(struct emu_portals_virtual *v)
{
    if (!v->port)
        return;
    LIST_REMOVE(v, link);
    under_way_of(v->port)->n--;
    emu_virtual_let_go(v->port);
    v->port = NULL;
}

static void release(struct emu_portals_virtual *v)
{
    leave_port(v);
    free(v->data);
    free(v);
}

/* Both of its operations may name it. */
static void release_if_over(struct emu_portals_virtual *v)
{
    if (!v->is_answered && v->op.has_arrived && v->op.has_ended)
        release(v);
}

/* ---- data in between ---- */

static struct emu_ptl_span span_of(const struct emu_portals_virtual *v, uint64_t length)
{
    return (struct emu_ptl_span){ .n = 1, .one = { (uint64_t)(uintptr_t)v->data, length } };
}

/* 0 or enum emu_status. */
static unsigned copy_out(struct emu_portals_virtual *v, const struct emu_ptl_at *from, uint64_t length)
{
    const struct emu_bounce bounce = { v->port->view.bounce, v->port->view.bounce_bytes };
    struct emu_memory self = emu_memory_self();
    struct emu_ptl_span to;
    uint64_t held = 0;
    int fault;

    for (uint32_t i = 0; i < from->span->n; i++)
        held += (from->span->iovs ? from->span->iovs : &from->span->one)[i].length_bytes;
    if (from->offset > held || length > held - from->offset)
        return EMU_STATUS_REMOTE_RANGE;
    v->data = malloc(length + 1);
    if (!v->data)
        return EMU_STATUS_NETWORK;
    to = span_of(v, length);
    return emu_portals_fail_of(emu_ptl_move((struct emu_ptl_at){ &self, &to, 0 }, *from, length, bounce, &fault));
}

/* A put's data may change from SEND_END on, and the message comes later. */
static unsigned take_data(struct emu_portals_virtual *v)
{
    struct emu_portals_work *w = &v->w;
    unsigned status;

    emu_portals_work_open_source(v->port, w);
    status = copy_out(v, &(struct emu_ptl_at){ &w->near, &w->near_span, w->source_off }, w->send.length_bytes);
    w->near = emu_memory_self();
    w->near_span = span_of(v, w->send.length_bytes);
    w->source_off = 0;
    return status;
}

/* ---- acknowledgements ---- */

static struct emu_portals_virtual *of_answer(struct emu_virtual_op *op)
{
    return (struct emu_portals_virtual *)((char *)op - offsetof(struct emu_portals_virtual, answer));
}

static bool come_home(struct emu_portals_virtual *v)
{
    if (!v->port)
        return true;
    if (!emu_portals_work_come_home(v->port, &v->w))
        return false;
    emu_port_end_disturb(v->port);
    return true;
}

static bool answer_arrived(struct emu_virtual_op *op)
{
    return come_home(of_answer(op));
}

static void answer_is_over(struct emu_virtual_op *op)
{
    of_answer(op)->is_answered = false;
    release_if_over(of_answer(op));
}

static void send_answer(struct emu_portals_virtual *v, struct emu_port_end *target)
{
    const struct emu_virtual_move move = {
        .kind = EMU_VIRTUAL_ANSWER, .to_nid = v->port->nid, .to = v->port->member, .mode = EMU_MODE_IN_ORDER
    };

    v->answer =
        (struct emu_virtual_op){ .arrived = answer_arrived, .completed = answer_is_over, .drop = answer_is_over };
    v->is_answered = emu_virtual_post(target, &v->answer, &move) == 0;
}

/* ---- the target ---- */

/* The target is locked. */
static void end_at(struct emu_portals_virtual *v, struct emu_port_end *target)
{
    struct emu_portals_work *w = &v->w;

    if (w->send.kind == EMU_PTL_GET) {
        w->fail = copy_out(v, &(struct emu_ptl_at){ &w->far, &w->far_span, w->taker.offset }, w->mlength);
        w->kept = v->data;
    } else if (w->send.kind == EMU_PTL_GETPUT) {
        w->fail = emu_portals_work_swap(v->port, w);
    } else {
        emu_portals_work_move(v->port, w, UINT64_MAX);
    }
    emu_ptl_end(emu_portals_end_ni(target), &v->flight, w->fail);
}

/* Its header is there: START. True: matched, or nobody takes it. False: a lock is not free. */
static bool match(struct emu_portals_virtual *v)
{
    struct emu_port_end *target = emu_portals_end_find(v->port, v->w.send.nid, v->w.send.pid);
    struct emu_ptl_request request;

    if (v->is_matched || v->w.fail != 0) /* its data could not be read: it was never sent */
        return true;
    if (!v->has_looked && !emu_portals_work_look_at_cut(v->port, &v->w, &v->is_cut))
        return false;
    v->has_looked = true;
    if (!v->is_cut && target) {
        if (!emu_portals_end_lock(target, &v->w.waits_since_ns))
            return false;
        if (emu_portals_work_match(v->port, &v->w, target, &request))
            emu_portals_work_begin(v->port, &v->w, target, &request, &v->flight);
        /* Whoever has asked for no START does not hear of it: it would be a turn for nothing. */
        if (v->w.is_taken && (v->w.taker.md.options & EMU_PTL_MD_START_DISABLE) == 0)
            emu_portals_end_unlock(target);
        else
            emu_ptl_unlock(emu_portals_end_ni(target));
    }
    v->is_matched = true;
    return true;
}

/* All of it is there: END. True: delivered, or there is nobody. False: a lock is not free. */
static bool deliver(struct emu_portals_virtual *v)
{
    struct emu_port_end *target;

    if (!match(v))
        return false;
    if (!v->w.is_taken)
        return true;
    target = emu_portals_work_target(v->port, &v->w);
    if (!target) {
        v->w.fail = EMU_STATUS_PEER_GONE;
        return true;
    }
    if (!emu_portals_end_lock(target, &v->w.waits_since_ns))
        return false;
    end_at(v, target);
    emu_portals_end_unlock(target);
    emu_port_end_disturb(target);
    if (v->w.send.kind == EMU_PTL_PUT && v->w.acks && v->w.fail == 0)
        send_answer(v, target);
    return true;
}

/* The initiator has gone in between: its target hears that no more comes. */
static void give_up(struct emu_portals_virtual *v)
{
    struct emu_port_end *target = NULL;

    if (v->is_matched && !v->is_delivered && v->w.is_taken)
        target = emu_portals_work_target(v->port, &v->w);
    for (unsigned tries = 0; target && tries < LOCK_TRIES; tries++) {
        if (emu_portals_end_lock(target, &v->w.waits_since_ns)) {
            emu_ptl_end(emu_portals_end_ni(target), &v->flight, EMU_STATUS_PEER_GONE);
            emu_portals_end_unlock(target);
            emu_port_end_disturb(target);
            return;
        }
        sched_yield();
    }
    if (target)
        emu_log(EMU_LOG_WARN, "pid %d: the lock of its Portals interface is not free, a transfer to it stays open",
                (int)target->member->pid);
}

/* ---- the operation ---- */

static bool tell_sent(struct emu_portals_virtual *v)
{
    if (v->w.is_sent)
        return true;
    if (!emu_portals_work_tell_sent(v->port, &v->w))
        return false;
    emu_port_end_disturb(v->port);
    return true;
}

/* Takes its lock twice, and may have to come back in between. */
static bool reply(struct emu_portals_virtual *v)
{
    struct emu_portals_work *w = &v->w;

    if (w->is_taken && !v->is_replied) {
        if (!emu_portals_work_begin_reply(v->port, w))
            return false;
        if (w->has_reply && w->fail == 0)
            emu_portals_work_move(v->port, w, UINT64_MAX);
        v->is_replied = true;
    }
    return come_home(v);
}

static bool begun(struct emu_virtual_op *op)
{
    struct emu_portals_virtual *v = (struct emu_portals_virtual *)op;

    return !v->port || match(v);
}

static bool arrived(struct emu_virtual_op *op)
{
    struct emu_portals_virtual *v = (struct emu_portals_virtual *)op;

    if (!v->port)
        return true;
    if (!tell_sent(v))
        return false;
    if (!v->is_delivered && !deliver(v))
        return false;
    v->is_delivered = true;
    if (v->w.send.kind != EMU_PTL_PUT)
        return !op->has_ended || reply(v); /* within a node both happen at once */
    /* No acknowledgement comes: what waited for it is over. */
    return !v->w.send.wants_ack || v->is_answered || come_home(v);
}

static bool ended(struct emu_virtual_op *op)
{
    struct emu_portals_virtual *v = (struct emu_portals_virtual *)op;

    if (!v->port)
        return true;
    if (v->w.send.kind != EMU_PTL_PUT)
        return !op->has_arrived || reply(v);
    return v->w.send.wants_ack ? tell_sent(v) : come_home(v);
}

static void completed(struct emu_virtual_op *op)
{
    release_if_over((struct emu_portals_virtual *)op);
}

static void drop(struct emu_virtual_op *op)
{
    op->has_arrived = op->has_ended = true;
    release_if_over((struct emu_portals_virtual *)op);
}

static int post(struct emu_portals_virtual *v)
{
    const struct emu_port_end *target = emu_portals_end_find(v->port, v->w.send.nid, v->w.send.pid);
    const struct emu_virtual_move move = { .kind = v->w.send.kind == EMU_PTL_PUT ? EMU_VIRTUAL_PUT : EMU_VIRTUAL_GET,
                                           .to_nid = emu_domain_nid_at(v->port->domain, v->w.send.nid),
                                           .to = target ? target->member : NULL,
                                           .bytes = v->w.fail == 0 ? v->w.send.length_bytes : 0,
                                           .mode = EMU_MODE_IN_ORDER };

    return emu_virtual_post(v->port, &v->op, &move);
}

bool emu_portals_virtual_start(struct emu_port_end *port, const struct emu_cmd *cmd)
{
    struct under_way *under_way = under_way_of(port);
    struct emu_portals_virtual *v = under_way->n < UNDER_WAY_MAX ? calloc(1, sizeof(*v)) : NULL;
    int r;

    if (!v && under_way->n > 0)
        return false; /* goes on when one of them is over */
    if (!v) {
        emu_portals_end_fail(port, cmd, EMU_STATUS_NETWORK);
        return true;
    }
    if (emu_domain_nid_at(port->domain, cmd->remote_nid) == EMU_NID_NONE) {
        free(v);
        return emu_portals_end_serve(port, cmd); /* there is no way to nobody */
    }
    v->op = (struct emu_virtual_op){
        .begun = begun, .arrived = arrived, .ended = ended, .completed = completed, .drop = drop
    };
    v->port = port;
    LIST_INSERT_HEAD(&under_way->list, v, link);
    under_way->n++;
    emu_portals_work_start(port, &v->w, cmd);
    if (v->w.send.kind != EMU_PTL_GET)
        v->w.fail = take_data(v);
    r = post(v);
    if (r == 0)
        return true;
    release(v);
    if (under_way->n > 0)
        return false;
    emu_portals_end_fail(port, cmd, EMU_STATUS_NETWORK);
    return true;
}

int emu_portals_virtual_open(struct emu_port_end *port)
{
    if (!under_way_of(port))
        port->slots[EMU_PORT_PORTALS_VIRTUAL] = calloc(1, sizeof(struct under_way)); /* an empty list */
    return under_way_of(port) ? 0 : -ENOMEM;
}

void emu_portals_virtual_close(struct emu_port_end *port)
{
    struct under_way *under_way = under_way_of(port);

    while (under_way && LIST_FIRST(&under_way->list)) {
        give_up(LIST_FIRST(&under_way->list));
        leave_port(LIST_FIRST(&under_way->list));
    }
    free(under_way);
    port->slots[EMU_PORT_PORTALS_VIRTUAL] = NULL;
}
