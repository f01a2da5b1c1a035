/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What is done for a Portals command, place by place.
 *
 *   home      SEND_END, the reply's events, ACK; the data of a put come from here, those of a reply go here
 *   target    matching, START, the exchange of a getput
 *
 * A step takes one lock at most, or none where its caller holds it.
 */
#include "emunic/daemon/portals/portals_work.h"

#include <errno.h>
#include <string.h>

#include "emunic/daemon/world/domain.h"
#include "emunic/daemon/world/port_end.h"
#include "emunic/daemon/world/server.h"
#include "emunic/engine/portals_engine.h"

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

unsigned emu_portals_fail_of(int result)
{
    return result == 0 ? 0 : result == -ESRCH ? EMU_STATUS_PEER_GONE : EMU_STATUS_REMOTE_RANGE;
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

/* The descriptor is looked at now: it may go with the message. A get is a header alone. */
static uint64_t commands_of(struct emu_port_end *port, struct emu_portals_work *work)
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

void emu_portals_work_start(struct emu_port_end *port, struct emu_portals_work *work, const struct emu_cmd *cmd)
{
    work->is_taken = work->has_reply = work->acks = false;
    work->kept = NULL;
    work->fail = 0;
    work->mlength = work->done_bytes = work->waits_since_ns = 0;
    memcpy(&work->cmd, cmd, sizeof(work->cmd));
    work->send = emu_portals_send_of(&work->cmd);
    work->n_commands = commands_of(port, work);
    work->is_sent = (work->cmd.ptl_flags & EMU_PTL_CMD_SENT) != 0;
    work->peer = (struct emu_ptl_peer){ work->send.nid, work->send.pid, 0, 0 };
}

struct emu_port_end *emu_portals_work_target(const struct emu_port_end *port, const struct emu_portals_work *work)
{
    struct emu_port_end *target = port->domain->ports[work->target];

    return target && emu_portals_end_is_open(target) &&
                   emu_portals_generation(port->domain, work->target) == work->target_generation ?
               target :
               NULL;
}

bool emu_portals_work_look_at_cut(struct emu_port_end *port, struct emu_portals_work *work, bool *is_cut_out)
{
    *is_cut_out = false;
    if (emu_portals_end_ni(port)->n_fails == 0) /* a look without the lock: it matters to this domain only */
        return true;
    if (!emu_portals_end_lock(port, &work->waits_since_ns))
        return false;
    *is_cut_out = emu_ptl_is_cut_off(emu_portals_end_ni(port), work->send.nid);
    emu_portals_end_unlock(port);
    return true;
}

/* ---- data ---- */

void emu_portals_work_open_source(struct emu_port_end *port, struct emu_portals_work *work)
{
    struct emu_ptl_ni *ni = emu_portals_end_ni(port);
    struct emu_ptl_md md = { .length_bytes = 0 };

    work->source_off = 0; /* what was staged begins there */
    if (work->cmd.flags & EMU_CMD_STAGED) {
        work->near = port->view.staging;
        work->near_span = (struct emu_ptl_span){ .n = 1, .one = { work->cmd.staging_off, work->cmd.length_bytes } };
        return;
    }
    if (work->send.put_md < EMU_PTL_MDS)
        md = ni->mds[work->send.put_md];
    if (md.generation != work->send.put_md_generation)
        md = (struct emu_ptl_md){ .length_bytes = 0 };
    work->source_off = work->send.kind == EMU_PTL_GETPUT ? work->send.put_offset : work->send.local_offset;
    work->near = emu_portals_end_reach(port, &md);
    keep_span(ni, &md, &work->near_span, work->near_iovs);
}

bool emu_portals_work_move(struct emu_port_end *port, struct emu_portals_work *work, uint64_t bytes_max)
{
    bool is_put = work->send.kind == EMU_PTL_PUT;
    uint64_t length = is_put ? work->mlength : work->reply.mlength;
    uint64_t left = length - work->done_bytes;
    uint64_t part = left < bytes_max ? left : bytes_max;
    const struct emu_bounce bounce = { port->view.bounce, port->view.bounce_bytes };
    struct emu_memory self = emu_memory_self();
    struct emu_ptl_span kept = { .n = 1, .one = { (uint64_t)(uintptr_t)work->kept, length } };
    struct emu_ptl_at near = { &work->near, &work->near_span,
                               (is_put ? work->source_off : work->send.local_offset) + work->done_bytes };
    struct emu_ptl_at far = { &work->far, &work->far_span, work->taker.offset + work->done_bytes };
    int fault;
    int r;

    if (!is_put && work->kept)
        far = (struct emu_ptl_at){ &self, &kept, work->done_bytes };
    r = is_put ? emu_ptl_move(far, near, part, bounce, &fault) : emu_ptl_move(near, far, part, bounce, &fault);
    work->done_bytes += part;
    if (r < 0)
        work->fail = emu_portals_fail_of(r);
    return r == 0 && work->done_bytes < length;
}

unsigned emu_portals_work_swap(struct emu_port_end *port, struct emu_portals_work *work)
{
    struct emu_memory self = emu_memory_self();
    struct emu_ptl_span buffer = { .n = 1, .one = { (uint64_t)(uintptr_t)work->swapped, sizeof(work->swapped) } };
    int fault;
    int r;

    work->kept = work->swapped;
    if (work->mlength > sizeof(work->swapped))
        return EMU_STATUS_BAD_COMMAND;
    r = emu_ptl_move((struct emu_ptl_at){ &self, &buffer, 0 },
                     (struct emu_ptl_at){ &work->far, &work->far_span, work->taker.offset }, work->mlength,
                     (struct emu_bounce){ port->view.bounce, port->view.bounce_bytes }, &fault);
    if (r == 0)
        r = emu_ptl_move((struct emu_ptl_at){ &work->far, &work->far_span, work->taker.offset },
                         (struct emu_ptl_at){ &work->near, &work->near_span, work->source_off }, work->mlength,
                         (struct emu_bounce){ port->view.bounce, port->view.bounce_bytes }, &fault);
    return emu_portals_fail_of(r);
}

/* ---- the target ---- */

bool emu_portals_work_match(struct emu_port_end *port, struct emu_portals_work *work, struct emu_port_end *target,
                            struct emu_ptl_request *request_out)
{
    struct emu_ptl_ni *ni = emu_portals_end_ni(target);
    struct emu_ptl_peer self = { port->domain->addresses[port->node_index], emu_portals_end_pid(port),
                                 (uint32_t)port->member->uid, emu_portals_end_ni(port)->jid };

    *request_out = emu_ptl_request_of(&work->send, self);
    work->is_taken = emu_ptl_match(ni, request_out, &work->taker) == EMU_PTL_TAKEN;
    if (!work->is_taken) {
        emu_portals_host_takes(target, NULL, 0, 0);
        return false;
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
    return true;
}

static void count(struct emu_port_end *port, const struct emu_portals_work *work, const struct emu_port_end *target)
{
    struct emu_flow_counts *flow = &port->view.flows[target->node_index];
    const struct emu_packet_format *format = &port->domain->table->format;

    if (work->send.kind == EMU_PTL_PUT)
        emu_flow_add_put(flow, format, work->mlength);
    else
        emu_flow_add_get(flow, format, work->mlength, work->send.kind == EMU_PTL_GETPUT ? work->mlength : 0);
}

void emu_portals_work_begin(struct emu_port_end *port, struct emu_portals_work *work, struct emu_port_end *target,
                            const struct emu_ptl_request *request, struct emu_ptl_flight *flight)
{
    emu_ptl_begin(emu_portals_end_ni(target), request, &work->taker, emu_portals_generation(port->domain, port->index),
                  flight);
    if (work->cmd.events & EMU_EV_LOSE)
        emu_ptl_lose(flight);
    count(port, work, target);
}

/* ---- home ---- */

/* SEND_END; a getput's says nothing of what comes after. */
void emu_portals_work_post_sent(struct emu_ptl_ni *ni, struct emu_portals_work *work)
{
    if (!work->is_sent)
        emu_ptl_send_end(ni, &work->send, work->send.kind == EMU_PTL_PUT || !work->is_taken ? work->fail : 0);
    work->is_sent = true;
}

bool emu_portals_work_tell_sent(struct emu_port_end *port, struct emu_portals_work *work)
{
    if (!emu_portals_end_lock(port, &work->waits_since_ns))
        return false;
    emu_portals_work_post_sent(emu_portals_end_ni(port), work);
    emu_portals_end_unlock(port);
    return true;
}

bool emu_portals_work_begin_reply(struct emu_port_end *port, struct emu_portals_work *work)
{
    struct emu_ptl_ni *ni = emu_portals_end_ni(port);

    if (!emu_portals_end_lock(port, &work->waits_since_ns))
        return false;
    emu_portals_work_post_sent(ni, work);
    work->has_reply = emu_ptl_reply_begin(ni, &work->send, &work->peer, work->mlength, &work->reply);
    if (work->has_reply) {
        work->near = emu_portals_end_reach(port, &work->reply.md);
        keep_span(ni, &work->reply.md, &work->near_span, work->near_iovs);
        emu_portals_host_takes(port, &work->near_span, work->send.local_offset, work->reply.mlength);
    }
    emu_portals_end_unlock(port);
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

bool emu_portals_work_come_home(struct emu_port_end *port, struct emu_portals_work *work)
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
        emu_portals_work_post_sent(ni, work);
        emu_portals_end_ack(ni, &work->send, &work->peer, work->acks, work->mlength, work->fail);
    }
    emu_portals_end_unlock(port);
    return true;
}
