/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Inside the simulator, heads of channels: what the two ways to decide on them (router.c, plain.c) have in common. A
 * head asks the routing for its ways on when it comes to the front of its channel, and keeps the answer until it has
 * left.
 */
#ifndef EMUNIC_FABRIC_SIM_HEAD_H
#define EMUNIC_FABRIC_SIM_HEAD_H

#include "emunic/fabric/sim/transmit.h"

/* What the head of a channel will look at. */
SIM_INLINE void sim_fetch_links(const struct part *part, const struct in_vc *v)
{
    const struct emu_sim *sim = part->sim;
    const struct emu_route_option *ways = &part->options[v->options];

    for (uint32_t i = 0; i < SIM_WAYS_MOSTLY; i++)
        __builtin_prefetch(&sim->outs[ways[i].link], 1);
    for (uint32_t i = 0; sim->is_large && i < 2; i++) /* often on the same lines as those of the others */
        __builtin_prefetch(&sim->sent[sim_out_vc(sim, ways[i].link, 0)], 1);
}

/* Mask of the ways that have the lowest rank. Most often that is all, or all but the escape. */
static inline uint32_t sim_first_ways(const struct emu_route_option *ways, uint32_t n)
{
    n -= ways[n - 1].rank != ways[0].rank;
    while (__builtin_expect(ways[n - 1].rank != ways[0].rank, 0))
        n--;
    return (1u << n) - 1;
}

/* Asks the routing about a head that could go on now, and fetches what it will look at. */
static inline void sim_ask_routing(struct part *part, struct in_vc *v)
{
    const struct emu_sim *sim = part->sim;
    struct cell *cell = &part->cells[v->first];
    uint32_t options = sim_options_take(part);
    struct emu_route_option *ways = &part->options[options];

    v->options = options;
    v->tokens = (uint16_t)sim_tokens(sim, cell->packet.units);
    v->is_counted = false;
    v->n_ways = 0;
    v->first_ways = 0;
    ways[0].link = part->own_link; /* there is one to look at if there is no way */
    if (sim->routing->start && v->at.is_entering && !cell->is_started) {
        if (!sim->routing->start(&part->view, &cell->packet, v->at.router))
            return;
        cell->is_started = true;
    }
    v->n_ways = (uint8_t)sim->routing->options(&part->view, &cell->packet, &v->at, ways);
    if (__builtin_expect(v->n_ways == 0, 0))
        return;
    v->first_ways = (uint16_t)sim_first_ways(ways, v->n_ways);
    if (sim->is_large)
        sim_fetch_links(part, v);
}

/* Mask of the ways whose links have nothing to send at end_ps; bits beyond n mean nothing. Not one branch: none could
 * be predicted. */
static inline uint64_t sim_idle_ways(const uint64_t *free_ps, const struct emu_route_option *ways, uint32_t n,
                                     uint64_t end_ps)
{
    uint64_t mask = 0;

    for (uint32_t i = n; __builtin_expect(i > SIM_WAYS_MOSTLY, 0); i--)
        mask = mask << 1 | (free_ps[ways[i - 1].link] - end_ps) >> 63;
    for (uint32_t i = SIM_WAYS_MOSTLY; i > 0; i--) /* beyond n, too: there are links as well */
        mask = mask << 1 | (free_ps[ways[i - 1].link] - end_ps) >> 63;
    return mask;
}

/* A head that waits for its links is looked at again when the first of them is free; once, however often it is looked
 * at in the meantime. */
static inline void sim_look_again(struct part *part, struct in_vc *v, uint32_t channel, uint64_t at_ps)
{
    uint16_t offset;
    uint64_t slot = sim_slot_of(part, at_ps, &offset);

    if (v->look_slot == (uint32_t)slot)
        return;
    v->look_slot = (uint32_t)slot;
    emu_wheel_put(&part->wheel, slot, (struct emu_event){ .kind = EMU_EVENT_LOOK, .index = channel });
}

/* Has a packet come on another channel of the link since this one's last? */
static inline bool sim_is_overtaken(const struct part *part, const struct in_vc *v)
{
    const struct emu_sim *sim = part->sim;
    const struct in_link *in = &sim->ins[v->at.in_link];

    for (uint32_t vc = 0; vc < sim->kinds[in->kind].n_vcs; vc++) {
        uint32_t index = sim_vc_index(sim, in->first_vc + vc);

        if (index != SIM_NONE && part->vcs[index].tail_ps > v->tail_ps)
            return true;
    }
    return false;
}

/* When the tail of a channel's head is, or was, here; 0: before now, because a packet came behind it. */
static inline uint64_t sim_tail_of_head(const struct part *part, const struct in_vc *v)
{
    uint64_t tail_ps = v->first == v->last ? v->tail_ps : 0;

    if (__builtin_expect(tail_ps - part->slot_ps < part->clock_ps, 0) && sim_is_overtaken(part, v))
        return 0;
    return tail_ps;
}

/* router.slow_input: an output does not wait for a packet that comes in more slowly than it would go out, but takes
 * others until the rest of the packet keeps up. Tells when to look again; 0: it keeps up, as it always does where links
 * have one speed. */
static inline uint64_t sim_keeps_up_at(const struct part *part, const struct in_vc *v, uint32_t link)
{
    const struct emu_sim *sim = part->sim;
    uint64_t end_ps = part->slot_ps + part->clock_ps;
    uint64_t length_ps;

    if (v->last != v->first || v->tail_ps < end_ps)
        return 0;
    length_ps = sim_length_ps(&sim->kinds[sim->outs[link].kind], part->cells[v->first].packet.units);
    return v->tail_ps < end_ps + length_ps ? 0 : v->tail_ps - length_ps;
}

/* A broadcast leaves a copy at each router that it passes. */
void sim_deposit(struct part *part, uint32_t router, uint32_t cell, uint64_t tail_ps);

/* The sender that an output takes: of candidates[0 .. n - 1], numbers of requests in rising order of channels. */
uint32_t sim_choose_sender(struct part *part, uint32_t link, uint32_t *candidates, uint32_t n,
                           struct emu_random *random);
/* Likewise by the machine's arbitration alone; `turn` is the local number of the channel that won last. */
uint32_t sim_pick(struct part *part, const uint32_t *candidates, uint32_t n, uint32_t turn, struct emu_random *random);
/* Keeps the responses among candidates, if there are any; returns how many are left. */
uint32_t sim_prefer_responses(const struct part *part, uint32_t *candidates, uint32_t n);

#endif
