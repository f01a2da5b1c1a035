/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Inside the simulator, links: a packet starts, its head arrives, its tokens come back.
 *
 * A packet of u units takes (u + overhead) x unit time, frames of the link layer included, to the picosecond; so a link
 * that always has something to send carries exactly its bandwidth. Its start is the latest of: the end of the packet
 * before, the decision, and the start that lets the tail leave when the tail has come in over a slower link
 * (cut-through does not stop and go; with router.slow_input the decision waits for that time, so that the link is free
 * for others until then). Its head can be decided on at the far end head_ps later. Tokens are taken at the
 * start and come back wire_ps after the tail has left the far buffer. Towards a NIC there are none, it
 * takes what arrives; or there are those of its reception buffer, which come back when it has taken the packet (nic.c).
 *
 * Inline: every hop comes through here.
 * Source: spec/machines.md 1.2, 1.3.
 */
#ifndef EMUNIC_FABRIC_SIM_TRANSMIT_H
#define EMUNIC_FABRIC_SIM_TRANSMIT_H

#include "emunic/fabric/sim/state.h"

/* The same for another partition: into its outbox. The cell of an arriving packet is gone afterwards. */
void sim_post_arrival(struct part *part, uint32_t to, uint64_t at_ps, struct emu_event event);
void sim_post_credit(struct part *part, uint32_t to, uint64_t at_ps, struct emu_event event);

static inline uint32_t sim_number(const struct part *part)
{
    return part->number;
}

/* A packet starts on a link that was idle for lack of tokens. */
static inline void sim_end_stall(struct emu_sim *sim, uint32_t link, uint64_t start_ps)
{
    struct out_link *out = &sim->outs[link];

    if (start_ps > sim->stalled_ps[link])
        out->stall_ps += start_ps - sim->stalled_ps[link];
    out->flags &= (uint8_t)~OUT_STALLED;
}

/* A packet and the channel that it starts on. */
struct sim_start {
    uint32_t link;
    uint32_t vc;
    uint32_t cell;
    uint32_t charge; /* tokens that it takes */
};

/* nic.c: a packet on its way into a reception buffer; returns when its tail leaves. */
uint64_t sim_receive(struct part *part, struct sim_start start, uint64_t start_ps, uint64_t length_ps);

/* Puts a packet on its way: not before at_ps, and its tail not before it is here at tail_ps. All else allows it.
 * Returns when its tail leaves. The cell is the far end's from here on. */
SIM_INLINE uint64_t sim_transmit(struct part *part, struct sim_start start, uint64_t at_ps, uint64_t tail_ps)
{
    uint32_t link = start.link;
    uint32_t vc = start.vc;
    uint32_t cell = start.cell;
    struct emu_sim *sim = part->sim;
    struct out_link *out = &sim->outs[link];
    const struct link_kind *kind = &sim->kinds[out->kind];
    struct emu_packet *p = &part->cells[cell].packet;
    uint64_t length_ps = sim_length_ps(kind, p->units);
    uint64_t start_ps = sim_later(sim_later(at_ps, sim->free_ps[link]), tail_ps > length_ps ? tail_ps - length_ps : 0);
    uint32_t flags = out->flags;
    struct emu_event *event;

    if (__builtin_expect((flags & (OUT_STALLED | OUT_UNRELIABLE | OUT_NOTED)) != 0, 0)) {
        if ((flags & OUT_NOTED) != 0)
            sim_note_step(part, link, cell);
        if ((flags & OUT_STALLED) != 0)
            sim_end_stall(sim, link, start_ps);
        if ((flags & OUT_UNRELIABLE) != 0)
            start_ps += sim_retry_ps(sim, link, p, length_ps);
    }
    sim->free_ps[link] = start_ps + length_ps;
    out->units += p->units;
    sim->sent[sim_out_vc(sim, link, vc)]++;

    if ((flags & OUT_TO_NIC) != 0) {
        if (sim->drained_ps)
            return sim_receive(part, start, start_ps, length_ps);
        event = sim_place(part, start_ps + length_ps + kind->wire_ps, EMU_EVENT_DELIVER);
        event->index = out->to;
        event->payload = cell;
        return start_ps + length_ps;
    }
    sim_take_tokens(out, vc, start.charge);
    if (__builtin_expect(out->part == sim_number(part), 1)) {
        part->cells[cell].next = link;
        event = sim_place(part, start_ps + kind->head_ps, EMU_EVENT_ARRIVE);
        event->index = out->to + vc;
        event->payload = cell;
        event->length_ps = (uint32_t)length_ps;
        event->vc = (uint8_t)vc;
    } else {
        sim_post_arrival(part, out->part, start_ps + kind->head_ps,
                         (struct emu_event){ .kind = EMU_EVENT_ARRIVE,
                                             .index = link,
                                             .payload = cell,
                                             .length_ps = (uint32_t)length_ps,
                                             .vc = (uint8_t)vc });
    }
    return start_ps + length_ps;
}

/* Tokens go back over the link of a channel whose packet has left the buffer. */
static inline void sim_credit(struct part *part, const struct in_vc *v, uint32_t tokens, uint64_t at_ps)
{
    at_ps += part->sim->kinds[v->kind].wire_ps;
    if (__builtin_expect(v->part == sim_number(part), 1)) {
        struct emu_event *event = sim_place(part, at_ps, EMU_EVENT_CREDIT);

        event->index = v->at.in_link;
        event->payload = tokens;
        event->vc = v->at.in_vc;
    } else {
        sim_post_credit(part, v->part, at_ps,
                        (struct emu_event){
                            .kind = EMU_EVENT_CREDIT, .index = v->at.in_link, .payload = tokens, .vc = v->at.in_vc });
    }
}

#endif
