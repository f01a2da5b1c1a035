/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Portals commands of a port to interfaces on this host.
 *
 * The command at the head of a ring is worked off in steps, each of which wants one lock at most:
 *
 *   put      begin (target: match, START) -> move -> sent (initiator: SEND_END) -> end (target: END) -> home (ACK)
 *   get      begin (initiator: SEND_END; target) -> reply (initiator: REPLY_START) -> move -> end -> home (REPLY_END)
 *   getput   begin (with the swap) -> sent -> end -> reply -> move -> home
 *   none     begin (nobody takes it) -> home (SEND_END)
 *
 * SEND_END stands in the initiator's queue before END does in the target's, whatever it may cause there. Data of one
 * slice are moved in the first step, and where the initiator's lock is free then, "sent" and "end" are part of it.
 * A get's is posted first of all, if the initiator has not done it (EMU_PTL_CMD_SENT).
 *
 * A lock that is not free, or data longer than a slice, end the step; the next round goes on. The command stays at the
 * ring's head meanwhile, so the port's later requests wait for it: each is delivered before the next is matched. A
 * command that an injected fault or a broken network ends goes to "home" alone; it has left the ring then
 * (is_detached).
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "emunic/daemon/portals/portals_end_inner.h"
#include "emunic/daemon/world/domain.h"
#include "emunic/daemon/world/port_end.h"
#include "emunic/daemon/world/server.h"
#include "emunic/engine/portals_engine.h"

enum phase { IDLE, BEGIN, REPLY, MOVE, SENT, END, HOME };

/* A command that is being worked off. */
struct work {
    enum phase phase;
    bool is_detached; /* it has left the ring */
    struct emu_ptl_send send;
    struct emu_ptl_cmd cmd;
    uint64_t waits_since_ns; /* for a lock; 0: not */
    uint32_t target;         /* slot of the target's port */
    uint32_t target_generation;
    bool is_taken;
    bool is_sent; /* SEND_END is posted */
    bool has_reply;
    bool acks;
    unsigned fail;
    uint64_t mlength;
    uint64_t done_bytes;
    uint64_t n_commands; /* that its host gave the NIC to send it */
    struct emu_ptl_peer peer;
    struct emu_ptl_taker taker;
    struct emu_ptl_reply reply;
    struct emu_memory near; /* the initiator's memory */
    struct emu_memory far;  /* the target's */
    struct emu_ptl_span near_span;
    struct emu_ptl_span far_span;
    struct emu_ptl_iov near_iovs[EMU_PTL_IOVEC_MAX];
    struct emu_ptl_iov far_iovs[EMU_PTL_IOVEC_MAX];
    uint8_t swapped[EMU_PTL_GETPUT_MAX];
};

/* NULL while the port is no interface. */
static struct work *work_of(const struct emu_port_end *port)
{
    return port->slots[EMU_PORT_PORTALS_WORK];
}

/* ---- steps ---- */

/* The target, if it is still the one that the command was begun at. */
static struct emu_port_end *target_of(const struct emu_port_end *port, const struct work *work)
{
    struct emu_port_end *target = port->domain->ports[work->target];

    return target && emu_portals_end_is_open(target) &&
                   emu_portals_generation(port->domain, work->target) == work->target_generation ?
               target :
               NULL;
}

/* A copy: the owner may change its segments meanwhile. */
static void keep_span(struct emu_ptl_ni *ni, const struct emu_ptl_md *md, struct emu_ptl_span *span,
                      struct emu_ptl_iov *iovs)
{
    emu_ptl_span_of(ni, md, span);
    if (!span->iovs)
        return;
    memcpy(iovs, span->iovs, span->n * sizeof(*iovs));
    span->iovs = iovs;
}

struct emu_ptl_send emu_portals_send_of(const struct emu_ptl_cmd *c)
{
    return (struct emu_ptl_send){
        .kind = (enum emu_ptl_request_kind)(c->op - EMU_OP_PTL_PUT),
        .wants_ack = (c->ptl_flags & EMU_PTL_CMD_ACK) != 0,
        .md = c->md,
        .md_generation = c->md_generation,
        .put_md = c->put_md,
        .put_md_generation = c->put_md_generation,
        .local_offset = c->local_offset,
        .put_offset = c->put_offset,
        .nid = c->nid,
        .pid = c->pid,
        .pt = c->pt,
        .ac = c->ac,
        .bits = c->bits,
        .offset = c->remote_offset,
        .length_bytes = c->length_bytes,
        .hdr_data = c->hdr_data,
        .link = c->link,
        .threshold = c->threshold,
        .eq = c->eq,
        .eq_generation = c->eq_generation,
    };
}

static void note_send(struct work *work, const struct emu_cmd *cmd)
{
    memcpy(&work->cmd, cmd, sizeof(work->cmd));
    work->send = emu_portals_send_of(&work->cmd);
}

/* Where the data of a put or getput come from. */
static void open_source(struct emu_port_end *port, struct work *work)
{
    struct emu_ptl_ni *ni = emu_portals_end_ni(port);
    struct emu_ptl_md md = { .length_bytes = 0 };

    if (work->cmd.flags & EMU_CMD_STAGED) {
        work->near = port->view.staging;
        work->near_span = (struct emu_ptl_span){ .n = 1, .one = { work->cmd.staging_off, work->cmd.length_bytes } };
        work->send.put_offset = work->send.kind == EMU_PTL_GETPUT ? work->send.put_offset : 0;
        return;
    }
    if (work->send.put_md < EMU_PTL_MDS)
        md = ni->mds[work->send.put_md];
    if (md.generation != work->send.put_md_generation)
        md = (struct emu_ptl_md){ .length_bytes = 0 };
    work->near = emu_portals_end_reach(port, &md);
    keep_span(ni, &md, &work->near_span, work->near_iovs);
}

unsigned emu_portals_fail_of(int result)
{
    return result == 0 ? 0 : result == -ESRCH ? EMU_STATUS_PEER_GONE : EMU_STATUS_REMOTE_RANGE;
}

/* From which offset of the source a put's data are: what was staged begins at 0. */
static uint64_t source_off(const struct work *work)
{
    if (work->cmd.flags & EMU_CMD_STAGED)
        return 0;
    return work->send.kind == EMU_PTL_GETPUT ? work->send.put_offset : work->send.local_offset;
}

static unsigned swap(struct emu_port_end *port, struct work *work)
{
    struct emu_memory self = emu_memory_self();
    struct emu_ptl_span buffer = { .n = 1, .one = { (uint64_t)(uintptr_t)work->swapped, sizeof(work->swapped) } };
    int fault;
    int r;

    if (work->mlength > sizeof(work->swapped))
        return EMU_STATUS_BAD_COMMAND;
    r = emu_ptl_move((struct emu_ptl_at){ &self, &buffer, 0 },
                     (struct emu_ptl_at){ &work->far, &work->far_span, work->taker.offset }, work->mlength,
                     (struct emu_bounce){ port->view.bounce, port->view.bounce_bytes }, &fault);
    if (r == 0)
        r = emu_ptl_move((struct emu_ptl_at){ &work->far, &work->far_span, work->taker.offset },
                         (struct emu_ptl_at){ &work->near, &work->near_span, source_off(work) }, work->mlength,
                         (struct emu_bounce){ port->view.bounce, port->view.bounce_bytes }, &fault);
    return emu_portals_fail_of(r);
}

/* Moves a slice. True: there is more. */
static bool move(struct emu_port_end *port, struct work *work)
{
    uint64_t length = work->send.kind == EMU_PTL_PUT ? work->mlength : work->reply.mlength;
    uint64_t left = length - work->done_bytes;
    uint64_t part = left < port->server->settings.slice_bytes ? left : port->server->settings.slice_bytes;
    struct emu_memory self = emu_memory_self();
    struct emu_ptl_span swapped = { .n = 1, .one = { (uint64_t)(uintptr_t)work->swapped, sizeof(work->swapped) } };
    bool is_put = work->send.kind == EMU_PTL_PUT;
    bool is_swap = work->send.kind == EMU_PTL_GETPUT;
    uint64_t near_off = (is_put ? source_off(work) : work->send.local_offset) + work->done_bytes;
    uint64_t far_off = (is_swap ? 0 : work->taker.offset) + work->done_bytes;
    const struct emu_memory *far = is_swap ? &self : &work->far;
    const struct emu_ptl_span *far_span = is_swap ? &swapped : &work->far_span;
    int fault;
    int r;

    if (is_put)
        r = emu_ptl_move((struct emu_ptl_at){ far, far_span, far_off },
                         (struct emu_ptl_at){ &work->near, &work->near_span, near_off }, part,
                         (struct emu_bounce){ port->view.bounce, port->view.bounce_bytes }, &fault);
    else
        r = emu_ptl_move((struct emu_ptl_at){ &work->near, &work->near_span, near_off },
                         (struct emu_ptl_at){ far, far_span, far_off }, part,
                         (struct emu_bounce){ port->view.bounce, port->view.bounce_bytes }, &fault);
    work->done_bytes += part;
    if (r < 0)
        work->fail = emu_portals_fail_of(r);
    return r == 0 && work->done_bytes < length;
}

static void count(struct emu_port_end *port, const struct work *work, const struct emu_port_end *target)
{
    struct emu_flow_counts *flow = &port->view.flows[target->node_index];
    const struct emu_packet_format *format = &port->domain->table->format;

    if (work->send.kind == EMU_PTL_PUT)
        emu_flow_add_put(flow, format, work->mlength);
    else
        emu_flow_add_get(flow, format, work->mlength, work->send.kind == EMU_PTL_GETPUT ? work->mlength : 0);
}

/* SEND_END; a getput's says nothing of what comes after. The initiator is locked. */
static void post_sent(struct emu_ptl_ni *ni, struct work *work)
{
    if (!work->is_sent)
        emu_ptl_send_end(ni, &work->send, work->send.kind == EMU_PTL_PUT || !work->is_taken ? work->fail : 0);
    work->is_sent = true;
}

/* The data have been moved and the target is locked. True: SEND_END is posted, its END may be. */
static bool try_sent(struct emu_port_end *port, struct work *work, const struct emu_port_end *target)
{
    if (port != target && !emu_portals_end_lock(port, &work->waits_since_ns))
        return false;
    post_sent(emu_portals_end_ni(port), work);
    if (port != target)
        emu_portals_end_unlock(port);
    return true;
}

/* The target is locked. */
static enum phase begin_at(struct emu_port_end *port, struct work *work, struct emu_port_end *target)
{
    struct emu_ptl_ni *ni = emu_portals_end_ni(target);
    struct emu_ptl_peer self = { port->domain->addresses[port->node_index], emu_portals_end_pid(port),
                                 (uint32_t)port->member->uid, emu_portals_end_ni(port)->jid };
    struct emu_ptl_request request = emu_ptl_request_of(&work->send, self);
    struct emu_ptl_flight *flight = &ni->flights[port->index];

    work->is_taken = emu_ptl_match(ni, &request, &work->taker) == EMU_PTL_TAKEN;
    if (!work->is_taken) {
        emu_portals_host_takes(target, NULL, 0, 0);
        return HOME;
    }
    work->target = target->index;
    work->target_generation = emu_portals_generation(port->domain, target->index);
    work->peer = (struct emu_ptl_peer){ work->send.nid, work->send.pid, (uint32_t)target->member->uid, ni->jid };
    work->mlength = work->taker.mlength;
    work->acks = work->taker.acks;
    work->far = emu_portals_end_reach(target, &work->taker.md);
    keep_span(ni, &work->taker.md, &work->far_span, work->far_iovs);
    emu_portals_host_takes(target, work->send.kind == EMU_PTL_GET ? NULL : &work->far_span, work->taker.offset,
                           work->mlength);
    if (work->send.kind != EMU_PTL_PUT) /* and it answers */
        emu_portals_host_answers(target, &work->far_span, work->taker.offset, work->mlength);
    if (work->send.kind != EMU_PTL_GET)
        open_source(port, work);
    emu_ptl_begin(ni, &request, &work->taker, emu_portals_generation(port->domain, port->index), flight);
    if (work->cmd.events & EMU_EV_LOSE)
        emu_ptl_lose(flight);
    count(port, work, target);
    if (work->send.kind == EMU_PTL_GETPUT)
        work->fail = swap(port, work);
    else if (work->send.kind == EMU_PTL_PUT && move(port, work))
        return MOVE;
    if (work->send.kind == EMU_PTL_GET)
        return REPLY;
    if (!try_sent(port, work, target))
        return SENT;
    emu_ptl_end(ni, flight, work->fail);
    return work->send.kind == EMU_PTL_GETPUT ? REPLY : HOME;
}

/* With nothing locked. False: the initiator's lock is not free. */
static bool tell_sent(struct emu_port_end *port, struct work *work)
{
    if (!emu_portals_end_lock(port, &work->waits_since_ns))
        return false;
    post_sent(emu_portals_end_ni(port), work);
    emu_portals_end_unlock(port);
    return true;
}

static bool step_begin(struct emu_port_end *port, struct work *work)
{
    struct emu_port_end *target = emu_portals_end_find(port, work->send.nid, work->send.pid);

    if (emu_portals_end_ni(port)->n_fails > 0) { /* a look without the lock: what it says matters to this domain only */
        if (!emu_portals_end_lock(port, &work->waits_since_ns))
            return false;
        if (emu_ptl_is_cut_off(emu_portals_end_ni(port), work->send.nid))
            target = NULL;
        emu_portals_end_unlock(port);
    }
    if (work->send.kind == EMU_PTL_GET && !work->is_sent && !tell_sent(port, work))
        return false;
    if (!target) {
        work->phase = HOME;
        return true;
    }
    if (!emu_portals_end_lock(target, &work->waits_since_ns))
        return false;
    work->phase = begin_at(port, work, target);
    emu_portals_end_unlock(target);
    return true;
}

/* The reply comes home: REPLY_START. */
static bool step_reply(struct emu_port_end *port, struct work *work)
{
    struct emu_ptl_ni *ni = emu_portals_end_ni(port);

    if (!emu_portals_end_lock(port, &work->waits_since_ns))
        return false;
    post_sent(ni, work);
    work->has_reply = emu_ptl_reply_begin(ni, &work->send, &work->peer, work->mlength, &work->reply);
    if (work->has_reply) {
        work->near = emu_portals_end_reach(port, &work->reply.md);
        keep_span(ni, &work->reply.md, &work->near_span, work->near_iovs);
        emu_portals_host_takes(port, &work->near_span, work->send.local_offset, work->reply.mlength);
    }
    emu_portals_end_unlock(port);
    work->phase = work->has_reply && work->fail == 0               ? MOVE :
                  work->send.kind == EMU_PTL_GET && work->is_taken ? END :
                                                                     HOME;
    return true;
}

static bool step_move(struct emu_port_end *port, struct work *work)
{
    if (work->send.kind != EMU_PTL_GETPUT && !target_of(port, work)) {
        work->fail = EMU_STATUS_PEER_GONE;
        work->phase = HOME;
        return true;
    }
    if (move(port, work))
        return false; /* the others first */
    work->phase = work->send.kind == EMU_PTL_GETPUT ? HOME : work->send.kind == EMU_PTL_PUT ? SENT : END;
    return true;
}

static bool step_sent(struct emu_port_end *port, struct work *work)
{
    if (!tell_sent(port, work))
        return false;
    work->phase = END;
    return true;
}

static bool step_end(struct emu_port_end *port, struct work *work)
{
    struct emu_port_end *target = target_of(port, work);

    if (!target) {
        work->fail = EMU_STATUS_PEER_GONE;
    } else {
        if (!emu_portals_end_lock(target, &work->waits_since_ns))
            return false;
        emu_ptl_end(emu_portals_end_ni(target), &emu_portals_end_ni(target)->flights[port->index], work->fail);
        emu_portals_end_unlock(target);
    }
    work->phase = work->send.kind == EMU_PTL_GETPUT ? REPLY : HOME;
    return true;
}

/* Who waits for an ACK alone, because END is disabled, has to hear of a failure by it. */
static bool needs_failed_ack(const struct emu_ptl_ni *ni, const struct emu_ptl_send *send)
{
    return send->wants_ack && send->md < EMU_PTL_MDS && (ni->mds[send->md].options & EMU_PTL_MD_END_DISABLE) != 0;
}

void emu_portals_end_ack(struct emu_ptl_ni *ni, const struct emu_ptl_send *send, const struct emu_ptl_peer *peer,
                         bool acks, uint64_t mlength, unsigned fail)
{
    if (acks && fail == 0)
        emu_ptl_ack(ni, send, peer, mlength, 0);
    else if (fail != 0 && needs_failed_ack(ni, send))
        emu_ptl_ack(ni, send, peer, 0, fail);
}

static bool step_home(struct emu_port_end *port, struct work *work)
{
    struct emu_ptl_ni *ni = emu_portals_end_ni(port);

    if (!emu_portals_end_lock(port, &work->waits_since_ns))
        return false;
    ni->registers[EMU_PTL_SR_COMMANDS] += work->n_commands;
    if (work->acks && work->fail == 0)
        emu_portals_host_takes(port, NULL, 0, 0);
    if (work->has_reply) {
        emu_ptl_reply_end(ni, &work->send, &work->reply, work->fail);
    } else {
        post_sent(ni, work);
        emu_portals_end_ack(ni, &work->send, &work->peer, work->acks, work->mlength, work->fail);
    }
    emu_portals_end_unlock(port);
    work->phase = IDLE;
    return true;
}

/* True: the command is over. */
static bool go_on(struct emu_port_end *port, struct work *work)
{
    static bool (*const steps[])(struct emu_port_end *, struct work *) = {
        [BEGIN] = step_begin, [REPLY] = step_reply, [MOVE] = step_move,
        [SENT] = step_sent,   [END] = step_end,     [HOME] = step_home,
    };

    while (work->phase != IDLE) {
        if (!steps[work->phase](port, work))
            return false;
    }
    return true;
}

/* The descriptor is looked at now: it may go with the message. A get is a header alone. */
static uint64_t commands_of(struct emu_port_end *port, struct work *work)
{
    struct emu_ptl_ni *ni = emu_portals_end_ni(port);
    const struct emu_ptl_send *send = &work->send;
    bool is_put = send->kind == EMU_PTL_PUT;
    uint32_t index = is_put ? send->md : send->put_md;
    struct emu_ptl_md md;

    if (send->kind == EMU_PTL_GET || index >= EMU_PTL_MDS)
        return 1;
    md = ni->mds[index];
    if (md.generation != (is_put ? send->md_generation : send->put_md_generation))
        return 1;
    keep_span(ni, &md, &work->near_span, work->near_iovs);
    return emu_portals_host_commands(port, &work->near_span, is_put ? send->local_offset : send->put_offset,
                                     send->length_bytes);
}

static void start(struct emu_port_end *port, const struct emu_cmd *cmd, enum phase phase)
{
    struct work *work = work_of(port);

    work->phase = phase;
    work->is_detached = work->is_taken = work->has_reply = work->acks = false;
    work->fail = 0;
    work->mlength = work->done_bytes = work->waits_since_ns = 0;
    note_send(work, cmd);
    work->n_commands = commands_of(port, work);
    work->is_sent = (work->cmd.ptl_flags & EMU_PTL_CMD_SENT) != 0;
    work->peer = (struct emu_ptl_peer){ work->send.nid, work->send.pid, 0, 0 };
}

/* ---- commands ---- */

static bool finish_detached(struct emu_port_end *port, struct work *work)
{
    if (!go_on(port, work))
        return false;
    work->is_detached = false;
    emu_portals_of(port->server)->n_waits--;
    return true;
}

bool emu_portals_end_is_busy(struct emu_port_end *port)
{
    struct work *work = work_of(port);

    if (work->phase != IDLE && work->is_detached)
        finish_detached(port, work);
    return work->phase != IDLE;
}

bool emu_portals_end_serve(struct emu_port_end *port, const struct emu_cmd *cmd)
{
    struct work *work;

    if (!emu_portals_end_is_open(port))
        return true; /* a client that has no interface */
    work = work_of(port);
    if (work->phase != IDLE && work->is_detached)
        return false;
    if (work->phase == IDLE)
        start(port, cmd, BEGIN);
    return go_on(port, work);
}

/* A reply for the initiator that says that there is none. */
void emu_portals_end_fail(struct emu_port_end *port, const struct emu_cmd *cmd, unsigned status)
{
    struct work *work;

    if (!emu_portals_end_is_open(port))
        return;
    work = work_of(port);
    if (work->phase != IDLE)
        return; /* cannot be: it is asked about before it begins */
    start(port, cmd, HOME);
    work->phase = work->send.kind == EMU_PTL_PUT ? HOME : REPLY;
    work->fail = status;
    work->is_detached = true;
    emu_portals_of(port->server)->n_waits++;
    finish_detached(port, work);
}

void emu_portals_command_round(struct emu_server *server)
{
    struct emu_port_end *port;

    LIST_FOREACH(port, &server->ports, link) {
        if (emu_portals_end_is_open(port))
            emu_portals_end_is_busy(port);
    }
}

/* ---- life ---- */

int emu_portals_command_open(struct emu_port_end *port)
{
    if (!work_of(port))
        port->slots[EMU_PORT_PORTALS_WORK] = calloc(1, sizeof(*work_of(port)));
    return work_of(port) ? 0 : -ENOMEM;
}

void emu_portals_command_close(struct emu_port_end *port)
{
    if (work_of(port) && work_of(port)->phase != IDLE && work_of(port)->is_detached)
        emu_portals_of(port->server)->n_waits--;
    free(work_of(port));
    port->slots[EMU_PORT_PORTALS_WORK] = NULL;
}
