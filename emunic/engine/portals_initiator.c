/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Portals: the initiator's side, on its own interface.
 *
 *   call -> send begin (pending, threshold; SEND_START) -> data -> send end (SEND_END) -> ACK, or REPLY_START ..
 *   REPLY_END
 *
 * The interface's owner does this itself, or emunic for it. When the owner dies its interface goes too, so no flight is
 * kept here and nothing is repaired.
 * Source: spec/portals3.md 1.7.4, 1.10.
 */
#include <errno.h>

#include "emunic/engine/portals_engine_inner.h"

static void promise(struct emu_ptl_ni *ni, uint32_t eq, uint32_t generation, int change)
{
    struct emu_ptl_eq *e = eq_of(ni, eq, generation);

    if (e && (change > 0 || e->promised > 0))
        e->promised += (uint32_t)change;
}

static void echo(struct emu_ptl_event *event, const struct emu_ptl_ni *ni, const struct emu_ptl_send *send)
{
    *event = (struct emu_ptl_event){
        .link = send->link,
        .nid = ni->nid,
        .pid = ni->pid,
        .uid = ni->uid,
        .jid = ni->jid,
        .pt = send->pt,
        .bits = send->bits,
        .rlength = send->length_bytes,
        .mlength = send->length_bytes,
        .offset = send->kind == EMU_PTL_GETPUT ? send->put_offset : send->local_offset,
        .hdr_data = send->kind == EMU_PTL_GET ? 0 : send->hdr_data,
    };
}

static void name_peer(struct emu_ptl_event *event, const struct emu_ptl_peer *peer)
{
    event->nid = peer->nid;
    event->pid = peer->pid;
    event->uid = peer->uid;
    event->jid = peer->jid;
}

static bool sends(const struct emu_ptl_ni *ni, const struct emu_ptl_send *send)
{
    return send->kind != EMU_PTL_GET || (ni->behaviour & EMU_PTL_GET_SENDS) != 0;
}

static bool has_queue(struct emu_ptl_ni *ni, const struct emu_ptl_md *md)
{
    return md->eq != EMU_PTL_NONE && eq_of(ni, md->eq, md->eq_generation);
}

int emu_ptl_send_begin(struct emu_ptl_ni *ni, struct emu_ptl_send *send)
{
    struct emu_ptl_md *get = live_md(ni, send->md, send->md_generation);
    struct emu_ptl_md *put = send->kind == EMU_PTL_GETPUT ? live_md(ni, send->put_md, send->put_md_generation) : get;
    struct emu_ptl_event event;

    if (!get || !put || !is_active(get) || !is_active(put))
        return -ENOENT;
    if (send->kind != EMU_PTL_GETPUT) {
        send->put_md = send->md;
        send->put_md_generation = send->md_generation;
    }
    send->link = ni->next_link++;
    send->eq = EMU_PTL_NONE;
    send->eq_generation = 0;
    send->threshold = put->threshold;
    ni->registers[EMU_PTL_SR_SEND_COUNT]++;
    ni->registers[EMU_PTL_SR_SEND_LENGTH] += send->kind == EMU_PTL_GET ? 0 : send->length_bytes;
    if (send->kind != EMU_PTL_PUT && (ni->behaviour & EMU_PTL_LENIENT_REPLY))
        get->awaits++;
    if (!sends(ni, send))
        return 0;
    put->pending++;
    count_open(ni, true);
    send->threshold = count_down(ni, put);
    if (!has_queue(ni, put))
        return 0;
    if ((put->options & EMU_PTL_MD_END_DISABLE) == 0) {
        send->eq = put->eq;
        send->eq_generation = put->eq_generation;
        promise(ni, send->eq, send->eq_generation, 1);
    }
    if ((put->options & EMU_PTL_MD_START_DISABLE) == 0) {
        echo(&event, ni, send);
        describe(&event, put, send->threshold);
        event.kind = EMU_PTL_EVENT_SEND_START;
        emu_ptl_post(ni, put->eq, put->eq_generation, &event);
    }
    return 0;
}

void emu_ptl_send_end(struct emu_ptl_ni *ni, const struct emu_ptl_send *send, unsigned fail)
{
    struct emu_ptl_md *md = live_md(ni, send->put_md, send->put_md_generation);
    struct emu_ptl_event event;

    if (!sends(ni, send))
        return;
    promise(ni, send->eq, send->eq_generation, -1);
    count_open(ni, false);
    if (!md)
        return;
    echo(&event, ni, send);
    describe(&event, md, send->threshold);
    event.kind = EMU_PTL_EVENT_SEND_END;
    event.fail = (uint8_t)fail;
    event.unlinked = goes_with_this(md);
    if (send->eq != EMU_PTL_NONE)
        emu_ptl_post(ni, send->eq, send->eq_generation, &event);
    if (md->pending > 0)
        md->pending--;
    unlink_if_used_up(ni, send->put_md, &event);
}

void emu_ptl_ack(struct emu_ptl_ni *ni, const struct emu_ptl_send *send, const struct emu_ptl_peer *peer,
                 uint64_t mlength, unsigned fail)
{
    struct emu_ptl_md *md = live_md(ni, send->md, send->md_generation);
    struct emu_ptl_event event;

    if (!md || !is_active(md))
        return;
    echo(&event, ni, send);
    name_peer(&event, peer);
    describe(&event, md, count_down(ni, md));
    event.kind = EMU_PTL_EVENT_ACK;
    event.fail = (uint8_t)fail;
    event.link = ni->next_link++;
    event.mlength = mlength;
    event.offset = send->offset;
    emu_ptl_post(ni, md->eq, md->eq_generation, &event);
    unlink_if_used_up(ni, send->md, &event);
}

bool emu_ptl_reply_begin(struct emu_ptl_ni *ni, const struct emu_ptl_send *send, const struct emu_ptl_peer *peer,
                         uint64_t mlength, struct emu_ptl_reply *reply)
{
    struct emu_ptl_md *md = live_md(ni, send->md, send->md_generation);
    bool is_lenient = (ni->behaviour & EMU_PTL_LENIENT_REPLY) != 0;
    uint64_t room;

    if (!md || (!is_active(md) && !(is_lenient && md->awaits > 0))) {
        ni->drops++;
        ni->dropped_bytes += mlength;
        return false;
    }
    if (md->awaits > 0)
        md->awaits--;
    room = md->length_bytes > send->local_offset ? md->length_bytes - send->local_offset : 0;
    reply->mlength = mlength < room ? mlength : room;
    echo(&reply->event, ni, send);
    name_peer(&reply->event, peer);
    describe(&reply->event, md, count_down(ni, md));
    reply->event.kind = EMU_PTL_EVENT_REPLY_START;
    reply->event.link = ni->next_link++;
    reply->event.mlength = reply->mlength;
    reply->event.offset = send->local_offset;
    md->pending++;
    reply->eq = has_queue(ni, md) ? md->eq : EMU_PTL_NONE;
    reply->eq_generation = md->eq_generation;
    reply->has_end = reply->eq != EMU_PTL_NONE && (md->options & EMU_PTL_MD_END_DISABLE) == 0;
    reply->md = *md;
    if (reply->has_end)
        promise(ni, reply->eq, reply->eq_generation, 1);
    if ((md->options & EMU_PTL_MD_START_DISABLE) == 0)
        emu_ptl_post(ni, reply->eq, reply->eq_generation, &reply->event);
    ni->received++;
    ni->received_bytes += reply->mlength;
    count_open(ni, true);
    return true;
}

void emu_ptl_reply_end(struct emu_ptl_ni *ni, const struct emu_ptl_send *send, struct emu_ptl_reply *reply,
                       unsigned fail)
{
    struct emu_ptl_md *md = live_md(ni, send->md, send->md_generation);

    count_open(ni, false);
    reply->event.kind = EMU_PTL_EVENT_REPLY_END;
    reply->event.fail = (uint8_t)fail;
    reply->event.unlinked = md && goes_with_this(md);
    if (reply->has_end) {
        promise(ni, reply->eq, reply->eq_generation, -1);
        emu_ptl_post(ni, reply->eq, reply->eq_generation, &reply->event);
    }
    if (!md)
        return;
    if (md->pending > 0)
        md->pending--;
    unlink_if_used_up(ni, send->md, &reply->event);
}
