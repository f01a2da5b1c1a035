/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One router, one slot of its clock: which waiting heads go on, and where to.
 *
 * First everything that happens in the slot has been applied (arrivals, credits, links that end their packet); then each
 * router for which something changed decides, once. So the order of events within a slot changes nothing.
 *
 *   look     A head is asked for its ways on when it comes to the front of its channel, and looked at again when a link
 *            that it could take becomes available or gets room. Of its available ways the lowest rank counts, among those
 *            the machine's choice decides. A head without an available way leaves word: a link that is busy will send an
 *            event when it is free, a channel without room will when enough tokens are back.
 *   receive  Each input port may ask for router.requests outputs and have router.paths transfers to other routers at
 *            once. A NIC's channels have a way of their own each, and packets for the NIC take none (BG/L: a receiver feeds
 *            the reception FIFOs and two senders).
 *   send     Each output takes one of those who ask. Losers look again in the next slot if they have another way then; else
 *            they leave word like a head without a way.
 *   go       The packet starts (link.c), the head behind it comes to the front when its tail is out.
 *
 * Room: on a plain channel the packet's size, or that of a full one (router.room), of its own buffer and what the channels of
 * the port share; on a bubble channel a full packet, or two for one that enters the ring. Charged: its size, or on a bubble channel that of a full one (router.bubble_charge).
 * A link takes at most one packet per slot.
 * Source: machines.md 1.3, 1.4, 5.2.
 */
#include <string.h>

#include "emunic/fabric/sim/link.h"

/* What the functions of one decision share. */
struct decision {
    struct part *part;
    struct router *router;
    uint32_t id;
    uint64_t start_ps;       /* of the slot */
    uint64_t end_ps;         /* not in it any more */
    uint64_t gap_ps;         /* router.arb_gap_clocks */
    uint32_t full_tokens;    /* sim->full_tokens */
    uint32_t least_tokens;   /* room for so many is needed, however small the packet */
    uint32_t n_requests;
    uint32_t n_scratch;      /* heads whose ways are in the scratch */
};

static inline void occupied(struct emu_sim *sim, uint32_t channel, uint64_t units, uint64_t at_ps)
{
    if (sim->occupancy != NULL)
        sim->occupancy[channel] += units * at_ps; /* modulo 2^64: arrivals are subtracted, departures added */
}

/* --- Events --------------------------------------------------------------------------------------------------------- */

void sim_await_free(struct part *part, uint32_t link, uint64_t at_ps)
{
    struct out_link *out = &part->sim->outs[link];

    if ((out->flags & OUT_FREE_EVENT) != 0)
        return;
    out->flags |= OUT_FREE_EVENT;
    sim_put(part, at_ps, (struct emu_event){ .kind = EMU_EVENT_FREE, .index = link });
}

void sim_await_tokens(const struct emu_sim *sim, struct out_link *out, uint32_t link, uint32_t vc, uint32_t needed,
                      uint64_t since_ps)
{
    uint16_t *wanted = &sim->wanted[out->first_vc + vc];

    if ((out->wanted_vcs >> vc & 1) == 0 || *wanted > needed)
        *wanted = (uint16_t)needed;
    out->wanted_vcs |= (uint8_t)(1u << vc);
    if ((out->flags & OUT_STALLED) == 0) {
        out->flags |= OUT_STALLED;
        sim->stalls[link].since_ps = since_ps;
    }
}

static void link_changed(struct part *part, uint32_t link)
{
    struct out_link *out = &part->sim->outs[link];

    if ((out->flags & OUT_FROM_NIC) != 0) {
        sim_list_nic(part, out->from);
        return;
    }
    part->sim->routers[out->from].look |= out->waiters;
    out->waiters = 0;
    sim_list_router(part, out->from);
}

void sim_router_free(struct part *part, const struct emu_event *event)
{
    part->sim->outs[event->index].flags &= (uint8_t)~OUT_FREE_EVENT;
    link_changed(part, event->index);
}

void sim_router_path(struct part *part, const struct emu_event *event)
{
    struct in_link *in = &part->sim->ins[event->index];

    in->flags &= (uint8_t)~IN_PATH_EVENT;
    for (uint32_t i = 0; i < part->sim->kinds[in->kind].n_vcs; i++) {
        uint32_t index = sim_vc_index(part->sim, in->first_vc + i);

        if (index != SIM_NONE && part->vcs[index].is_held)
            sim_look(part, in->router, part->vcs[index].local);
    }
}

void sim_router_credit(struct part *part, const struct emu_event *event)
{
    struct out_link *out = &part->sim->outs[event->index];
    uint32_t unblocked = 0;

    sim_return_tokens(out, event->vc, event->payload);
    assert(out->tokens[event->vc] <= part->sim->kinds[out->kind].capacity_tokens[event->vc]);
    /* Shared tokens may be what another channel waits for. */
    for (uint32_t wanted = out->wanted_vcs; __builtin_expect(wanted != 0, 0); wanted &= wanted - 1) {
        uint32_t vc = (uint32_t)__builtin_ctz(wanted);

        if (sim_free_tokens(out, vc) >= part->sim->wanted[out->first_vc + vc])
            unblocked |= 1u << vc;
    }
    if (unblocked == 0)
        return;
    out->wanted_vcs &= (uint8_t)~unblocked;
    part->totals.credits_unblocking++;
    link_changed(part, event->index);
}

/* A broadcast leaves a copy at each router that it passes. */
static void deposit(struct part *part, uint32_t router, uint32_t cell, uint64_t tail_ps)
{
    uint32_t nid = part->sim->routers[router].first_nid;
    uint32_t copy;

    if (part->sim->nic_router[part->cells[cell].packet.dst_nid] == router)
        return;
    copy = sim_cell_take(part);
    part->cells[copy].packet = part->cells[cell].packet;
    part->cells[copy].is_copy = true;
    sim_put(part, tail_ps, (struct emu_event){ .kind = EMU_EVENT_DELIVER, .index = nid, .payload = copy });
}

static inline uint64_t *heads_word(struct emu_sim *sim, struct router *r, uint32_t local)
{
    return r->n_vcs <= 64 ? &r->heads : &sim->heads[r->first_word + local / 64];
}

void sim_router_arrive(struct part *part, const struct emu_event *event)
{
    struct emu_sim *sim = part->sim;
    struct cell *cell = &part->cells[event->payload];
    uint64_t at_ps = part->slot_ps + event->offset_ps;
    uint32_t channel = event->index;
    uint32_t index = sim_vc_index(sim, channel);
    struct router *r;
    struct in_vc *v;

    if (__builtin_expect(index == SIM_NONE, 0))
        index = sim_vc_make(part, cell->next, event->vc);
    v = &part->vcs[index];
    r = &sim->routers[v->router];
    v->tail_ps = at_ps + event->length_ps;
    v->units = (uint16_t)(v->units + cell->packet.units);
    occupied(sim, channel, cell->packet.units, -at_ps);
    cell->next = SIM_NONE;
    if (!v->is_entering) {
        r->units += cell->packet.units;
        if (sim->loads != NULL)
            sim_load_changed(part, v->router);
        if (__builtin_expect((cell->packet.flags & EMU_PACKET_BROADCAST) != 0, 0))
            deposit(part, v->router, event->payload, v->tail_ps);
    }
    if (v->first != SIM_NONE) {
        part->cells[v->last].next = event->payload;
        v->last = event->payload;
        return;
    }
    v->first = event->payload;
    v->last = event->payload;
    *heads_word(sim, r, v->local) |= UINT64_C(1) << (v->local % 64);
    if (v->ready_ps >= part->slot_ps + part->clock_ps) { /* the packet before is still going out */
        sim_put(part, v->ready_ps,
                (struct emu_event){ .kind = EMU_EVENT_LOOK, .index = v->router, .payload = v->local });
        return;
    }
    if (v->ready_ps < at_ps)
        v->ready_ps = at_ps;
    sim_look(part, v->router, v->local);
}

/* --- The options of a waiting head ---------------------------------------------------------------------------------- */

void sim_forget_options(struct part *part, struct in_vc *v)
{
    struct option_line *line;
    struct out_link *out;
    uint32_t units;

    if (v->options == SIM_NONE)
        return;
    line = &part->options[v->options];
    out = &part->sim->outs[line->first[0].link];
    units = part->cells[v->first].packet.units;
    out->waiting_units = (uint16_t)(out->waiting_units > units ? out->waiting_units - units : 0);
    sim_options_free(part, v->options);
    v->options = SIM_NONE;
}

static void keep_options(struct part *part, struct in_vc *v, const struct way *ways, uint32_t n)
{
    uint32_t first = sim_options_take(part, sim_option_lines(n));
    struct option_line *line = &part->options[first];
    struct out_link *out = &part->sim->outs[ways[0].link];
    uint32_t units = out->waiting_units + part->cells[v->first].packet.units;

    line->n = n;
    memcpy(sim_options_of(line), ways, n * sizeof(*ways));
    out->waiting_units = (uint16_t)(units < UINT16_MAX ? units : UINT16_MAX);
    v->options = first;
}

/* --- Looking at one head -------------------------------------------------------------------------------------------- */

/* The front packet of a channel is gone, the one behind it comes to the front when the tail is out; in a port from another
 * router arb_gap_clocks later, so that an injection can take the link that just became free (BG/L). */
static inline void next_head(struct decision *d, struct in_vc *v, uint32_t units, uint32_t tokens, uint32_t next,
                             uint64_t tail_ps)
{
    struct part *part = d->part;
    struct emu_sim *sim = part->sim;

    v->units = (uint16_t)(v->units - units);
    occupied(sim, d->router->first_vc + v->local, units, tail_ps);
    v->ready_ps = tail_ps;
    if (!v->is_entering) {
        d->router->units -= units;
        if (sim->loads != NULL)
            sim_load_changed(part, d->id);
        v->ready_ps += d->gap_ps;
    }
    sim_credit(part, v, v->is_charged_full ? sim->full_tokens : tokens, tail_ps);
    v->first = next;
    if (sim->p.paths != 0 && !v->to_nic) {
        uint16_t offset;
        uint32_t end_slot = (uint32_t)sim_slot_of(part, tail_ps, &offset);

        if ((int32_t)(end_slot - sim->ports[v->link].busy_slot) > 0)
            sim->ports[v->link].busy_slot = end_slot;
    }
    if (next != SIM_NONE) {
        sim_put(part, v->ready_ps, (struct emu_event){ .kind = EMU_EVENT_LOOK, .index = d->id, .payload = v->local });
        return;
    }
    v->last = SIM_NONE;
    *heads_word(sim, d->router, v->local) &= ~(UINT64_C(1) << (v->local % 64));
}

/* Has a packet come on another channel of the link since this one's last? */
static bool is_overtaken(const struct decision *d, const struct in_vc *v)
{
    const struct emu_sim *sim = d->part->sim;
    const struct in_link *in = &sim->ins[v->link];

    for (uint32_t vc = 0; vc < sim->kinds[in->kind].n_vcs; vc++) {
        uint32_t index = sim_vc_index(sim, in->first_vc + vc);

        if (index != SIM_NONE && d->part->vcs[index].tail_ps > v->tail_ps)
            return true;
    }
    return false;
}

/* When the tail of a channel's head is here; 0: it is, because a packet came behind it or because that was before now. */
static inline uint64_t tail_of_head(const struct decision *d, const struct in_vc *v)
{
    if (v->first != v->last || v->tail_ps <= d->start_ps)
        return 0;
    if (__builtin_expect(v->tail_ps < d->end_ps, 0) && is_overtaken(d, v))
        return 0;
    return v->tail_ps;
}

/* A head without any way on: no route at its source, or a fault came between. */
static void drop_head(struct decision *d, struct in_vc *v)
{
    struct part *part = d->part;
    uint32_t cell = v->first;
    uint32_t units = part->cells[cell].packet.units;
    uint64_t tail_ps = d->start_ps + part->sim->unit_ps; /* no credit comes sooner than a window allows */
    uint64_t here_ps = tail_of_head(d, v);

    if (here_ps > tail_ps)
        tail_ps = here_ps;
    if (v->is_entering)
        part->totals.unroutable++;
    else
        part->totals.lost++;
    sim_forget_options(part, v);
    next_head(d, v, units, sim_tokens(part->sim, units), part->cells[cell].next, tail_ps);
    sim_lose(part, cell);
}

/* Joins ways that differ in the channel only, as long as that keeps their order. Returns how many are left. */
static inline uint32_t join_ways(const struct emu_route_option *options, uint32_t n, struct way *ways_out)
{
    struct way *way = ways_out;

    memcpy(way, options, sizeof(*way));
    way->vcs = (uint8_t)(1u << options->vc);
    for (const struct emu_route_option *o = options + 1; o < options + n; o++) {
        if (o->link == way->link && way->vcs >> o->vc == 0 && o->rank == way->rank && o->route_state == way->route_state &&
            o->flags == way->flags && o->is_entry == way->is_entry) {
            way->vcs |= (uint8_t)(1u << o->vc);
        } else {
            memcpy(++way, o, sizeof(*way));
            way->vcs = (uint8_t)(1u << o->vc);
        }
    }
    return (uint32_t)(way - ways_out) + 1;
}

/* Asks the routing; false: there is no way. */
static inline bool ask_routing(struct decision *d, struct in_vc *v, struct way *ways, uint32_t *n_out)
{
    struct part *part = d->part;
    const struct emu_sim *sim = part->sim;
    struct cell *cell = &part->cells[v->first];
    struct emu_route_option options[EMU_ROUTE_OPTIONS_MAX];
    struct emu_route_at at = {
        .router = d->id,
        .in_link = v->link,
        .in_vc = v->vc,
        .is_entering = v->is_entering,
    };
    uint32_t n;

    part->view.random = &d->router->random;
    if (at.is_entering && !cell->is_started) {
        if (!sim->routing->start(&part->view, &cell->packet, d->id))
            return false;
        cell->is_started = true;
    }
    n = sim->routing->options(&part->view, &cell->packet, &at, options);
    if (n == 0)
        return false;
    *n_out = join_ways(options, n, ways);
    return true;
}

/* Tokens that a packet needs to find free in a channel. */
static inline uint32_t room_needed(const struct decision *d, const struct out_link *out, uint32_t vc, bool is_entry,
                                   uint32_t tokens)
{
    if (__builtin_expect((out->bubble_vcs >> vc & 1) != 0, 0))
        return d->full_tokens << is_entry;
    return tokens > d->least_tokens ? tokens : d->least_tokens;
}

static inline bool has_room(const struct decision *d, const struct out_link *out, uint32_t vc, bool is_entry, uint32_t tokens)
{
    return sim_free_tokens(out, vc) >= room_needed(d, out, vc, is_entry, tokens) || (out->flags & OUT_TO_NIC) != 0;
}

/* Could a packet start on a link before that time, if there is room? */
static inline bool is_free_before(const struct out_link *out, uint64_t ps)
{
    return out->free_ps < ps && (out->flags & OUT_IS_UP) != 0;
}

/* Two bits: full quarters, and the fourth as the third. */
static inline uint32_t quarters(uint32_t count, uint32_t quarter)
{
    return (count >= quarter) + (count >= 2 * quarter) + (count >= 3 * quarter);
}

/* How much the machine likes an available channel; higher is better. */
static inline uint32_t merit(const struct emu_sim *sim, const struct out_link *out, uint32_t vc)
{
    if (sim->p.choice < EMU_CHOICE_CREDITS)
        return 0;
    if ((out->flags & OUT_TO_NIC) != 0)
        return UINT32_MAX;
    if (sim->p.choice == EMU_CHOICE_CREDITS)
        return (uint32_t)(INT16_MAX + 1 + out->tokens[vc]); /* a channel that took shared ones is fuller, not freer */
    return quarters(sim_free_tokens(out, vc), sim->kinds[out->kind].quarter_tokens[vc]);
}

/* The best available way and its channel; NULL: none. */
static inline const struct way *best_way(struct decision *d, const struct way *ways, uint32_t n, uint32_t tokens,
                                         uint32_t *vc_out)
{
    const struct emu_sim *sim = d->part->sim;
    const struct out_link *outs = sim->outs;
    const struct way *best = NULL;
    uint32_t best_rank = UINT32_MAX;
    uint32_t best_merit = 0;
    uint32_t n_equal = 0;

    for (const struct way *way = ways; way < ways + n; way++) {
        const struct out_link *out = &outs[way->link];

        if (way->rank > best_rank || !is_free_before(out, d->end_ps))
            continue;
        for (uint32_t vcs = way->vcs; vcs != 0; vcs &= vcs - 1) {
            uint32_t vc = (uint32_t)__builtin_ctz(vcs);
            uint32_t m;

            if (!has_room(d, out, vc, way->is_entry, tokens))
                continue;
            m = merit(sim, out, vc);
            if (way->rank < best_rank || m > best_merit) {
                best_rank = way->rank;
                best_merit = m;
                n_equal = 1;
            } else if (m < best_merit || sim->p.choice == EMU_CHOICE_FIRST ||
                       sim_draw(&d->router->random, ++n_equal) != 0) {
                continue;
            }
            best = way;
            *vc_out = vc;
        }
    }
    return best;
}

/* Leaves word with everything that could make one of the ways available, in this slot or one that begins later_ps later. */
static void await_ways(struct decision *d, uint32_t local, const struct way *ways, uint32_t n, uint32_t tokens,
                       uint32_t later_ps)
{
    const struct emu_sim *sim = d->part->sim;
    struct out_link *outs = sim->outs;
    uint64_t waiter = sim_mark(d->router, local);

    for (const struct way *way = ways; way < ways + n; way++) {
        struct out_link *out = &outs[way->link];

        out->waiters |= waiter;
        if (out->free_ps >= d->end_ps + later_ps) {
            if ((out->flags & OUT_FREE_EVENT) == 0)
                sim_await_free(d->part, way->link, out->free_ps);
            continue;
        }
        for (uint32_t vcs = way->vcs; vcs != 0; vcs &= vcs - 1) {
            uint32_t vc = (uint32_t)__builtin_ctz(vcs);

            if (!has_room(d, out, vc, way->is_entry, tokens))
                sim_await_tokens(sim, out, way->link, vc, room_needed(d, out, vc, way->is_entry, tokens),
                                 d->start_ps + later_ps);
        }
    }
}

/* Transfers under way from an input port to other routers; *first_ps is when the first of them ends. */
static uint32_t busy_paths(const struct decision *d, const struct in_link *in, uint64_t *first_ps)
{
    const struct emu_sim *sim = d->part->sim;
    uint32_t n = 0;

    *first_ps = UINT64_MAX;
    for (uint32_t i = 0; i < sim->kinds[in->kind].n_vcs; i++) {
        uint32_t index = sim_vc_index(sim, in->first_vc + i);

        if (index == SIM_NONE || d->part->vcs[index].ready_ps < d->end_ps || d->part->vcs[index].to_nic)
            continue;
        if (d->part->vcs[index].ready_ps < *first_ps)
            *first_ps = d->part->vcs[index].ready_ps;
        n++;
    }
    return n;
}

/* None of them, for sure. */
static inline bool is_idle(const struct decision *d, uint32_t link)
{
    return (int32_t)(d->part->sim->ports[link].busy_slot - (uint32_t)d->part->slot) <= 0;
}

static bool has_path(struct decision *d, struct in_vc *v)
{
    struct in_link *in = &d->part->sim->ins[v->link];
    uint64_t first_ps;

    if (busy_paths(d, in, &first_ps) < d->part->sim->p.paths)
        return true;
    v->is_held = true;
    if ((in->flags & IN_PATH_EVENT) == 0) {
        in->flags |= IN_PATH_EVENT;
        sim_put(d->part, first_ps, (struct emu_event){ .kind = EMU_EVENT_PATH, .index = v->link });
    }
    return false;
}

/* With column buffers an output does not wait for a packet that comes in more slowly than it would go out: it takes others
 * until the rest of the packet keeps up. */
static bool comes_too_slowly(struct decision *d, const struct in_vc *v, uint32_t link)
{
    const struct emu_sim *sim = d->part->sim;
    uint64_t length_ps;

    if (v->last != v->first || v->tail_ps < d->end_ps)
        return false;
    length_ps = sim_length_ps(&sim->kinds[sim->outs[link].kind], d->part->cells[v->first].packet.units);
    if (v->tail_ps < d->end_ps + length_ps)
        return false;
    sim_put(d->part, v->tail_ps - length_ps, (struct emu_event){ .kind = EMU_EVENT_LOOK, .index = d->id, .payload = v->local });
    return true;
}

static inline void look_at(struct decision *d, uint32_t index)
{
    struct part *part = d->part;
    struct emu_sim *sim = part->sim;
    struct in_vc *v = &part->vcs[index];
    const struct emu_packet *packet;
    const struct way *way = NULL;
    struct way *ways;
    struct request *q;
    bool is_new = v->options == SIM_NONE;
    bool is_held = false;
    uint32_t vc = 0;
    uint32_t tokens;
    uint32_t n;

    if (v->ready_ps >= d->end_ps)
        return; /* an event will come */
    if (is_new) {
        ways = &part->scratch[(size_t)d->n_scratch * EMU_ROUTE_OPTIONS_MAX];
        if (!ask_routing(d, v, ways, &n)) {
            drop_head(d, v);
            return;
        }
    } else {
        n = part->options[v->options].n;
        ways = sim_options_of(&part->options[v->options]);
    }
    packet = &part->cells[v->first].packet;
    tokens = sim_tokens(sim, packet->units);
    v->is_held = false;
    if (sim->p.paths != 0 && !v->is_entering && !is_idle(d, v->link) && (sim->outs[ways[0].link].flags & OUT_TO_NIC) == 0)
        is_held = !has_path(d, v);
    if (!is_held)
        way = best_way(d, ways, n, tokens, &vc);
    if (way == NULL) {
        if (!is_held)
            await_ways(d, v->local, ways, n, tokens, 0);
        if (is_new)
            keep_options(part, v, ways, n);
        return;
    }
    if (sim->p.column_buffers != 0 && comes_too_slowly(d, v, way->link)) {
        if (is_new)
            keep_options(part, v, ways, n);
        return;
    }
    d->n_scratch += is_new;
    q = &part->requests[d->n_requests++];
    *q = (struct request){
        .v = v,
        .ways = is_new ? ways : NULL,
        .route_state = way->route_state,
        .link = way->link,
        .n_ways = n,
        .packet = v->first,
        .link_in = v->link,
        .tokens = tokens,
        .local = v->local,
        .vc = (uint8_t)vc,
        .flags = way->flags,
        .traffic_class = packet->traffic_class,
        .is_entering = v->is_entering,
    };
}

/* --- Arbitration ---------------------------------------------------------------------------------------------------- */

static uint32_t fullness(const struct part *part, const struct request *q)
{
    const struct in_vc *v = q->v;
    const struct emu_sim *sim = part->sim;
    const struct link_kind *kind = &sim->kinds[v->kind];

    return quarters(v->units, kind->quarter_tokens[v->vc] * sim->p.token_units);
}

/* The winner among candidates[0 .. n - 1], numbers of requests in rising order of channels. `turn` is the local number of
 * the channel that won last. */
static uint32_t pick(struct decision *d, const uint32_t *candidates, uint32_t n, uint32_t turn)
{
    const struct request *requests = d->part->requests;
    const struct emu_sim *sim = d->part->sim;
    uint32_t policy = sim->p.arbitration;
    uint32_t winner = candidates[0];
    uint32_t n_equal = 1;

    if (n == 1)
        return winner;
    if (policy == EMU_ARBITRATE_FULLEST && sim_draw(&d->router->random, 100) >= sim->p.fullest_percent)
        policy = EMU_ARBITRATE_RANDOM;
    switch (policy) {
    case EMU_ARBITRATE_RANDOM:
        return candidates[sim_draw(&d->router->random, n)];
    case EMU_ARBITRATE_AGE:
        for (uint32_t i = 1; i < n; i++) {
            if (d->part->cells[requests[candidates[i]].packet].packet.created_ps <
                d->part->cells[requests[winner].packet].packet.created_ps)
                winner = candidates[i];
        }
        return winner;
    case EMU_ARBITRATE_FULLEST:
        for (uint32_t i = 1; i < n; i++) {
            uint32_t best = fullness(d->part, &requests[winner]);
            uint32_t full = fullness(d->part, &requests[candidates[i]]);

            if (full > best) {
                winner = candidates[i];
                n_equal = 1;
            } else if (full == best && sim_draw(&d->router->random, ++n_equal) == 0) {
                winner = candidates[i];
            }
        }
        return winner;
    default:
        for (uint32_t i = 0; i < n; i++) {
            if (requests[candidates[i]].local > turn)
                return candidates[i];
        }
        return winner;
    }
}

/* Keeps only candidates of the kind that goes first, if there are any. */
static uint32_t prefer(const struct decision *d, uint32_t *candidates, uint32_t n,
                       bool (*goes_first)(const struct request *q))
{
    uint32_t n_first = 0;

    for (uint32_t i = 0; i < n; i++)
        n_first += goes_first(&d->part->requests[candidates[i]]);
    if (n_first == 0 || n_first == n)
        return n;
    n_first = 0;
    for (uint32_t i = 0; i < n; i++) {
        if (goes_first(&d->part->requests[candidates[i]]))
            candidates[n_first++] = candidates[i];
    }
    return n_first;
}

static bool is_response(const struct request *q)
{
    return q->traffic_class == EMU_TRAFFIC_RESPONSE;
}

static bool is_from_network(const struct request *q)
{
    return !q->is_entering;
}

static bool is_to_nic(const struct emu_sim *sim, const struct request *q)
{
    return (sim->outs[q->link].flags & OUT_TO_NIC) != 0;
}

/* The input ports choose: requests of a port beyond what it may ask for are out. */
static void receive(struct decision *d)
{
    struct emu_sim *sim = d->part->sim;
    struct request *requests = d->part->requests;
    uint32_t end;

    if (sim->p.requests == 0 && sim->p.paths == 0)
        return;
    for (uint32_t i = 0; i < d->n_requests; i = end) {
        const struct in_link *in = &sim->ins[requests[i].link_in];
        struct in_port *port = &sim->ports[requests[i].link_in];
        uint32_t limit = sim->p.requests == 0 ? UINT32_MAX : sim->p.requests;
        uint32_t candidates[EMU_VCS_MAX];
        uint32_t paths;
        uint64_t first_ps;

        for (end = i + 1; end < d->n_requests && requests[end].link_in == requests[i].link_in; end++)
            ;
        if (end - i == 1 || (in->flags & IN_IS_ENTERING) != 0)
            continue; /* a lone one has a path, or it would not ask */
        paths = sim->p.paths > 0 ? sim->p.paths - busy_paths(d, in, &first_ps) : UINT32_MAX;
        if (end - i <= limit && end - i <= paths)
            continue;
        for (uint32_t j = i; j < end; j++)
            requests[j].is_out = true;
        for (uint32_t k = 0; k < limit; k++) {
            uint32_t n = 0;
            uint32_t winner;

            for (uint32_t j = i; j < end; j++) {
                if (requests[j].is_out && (paths > 0 || is_to_nic(sim, &requests[j])))
                    candidates[n++] = j;
            }
            if (n == 0)
                break;
            if (sim->p.response_first != 0)
                n = prefer(d, candidates, n, is_response);
            winner = pick(d, candidates, n, port->turn);
            port->turn = requests[winner].local;
            requests[winner].is_out = false;
            if (!is_to_nic(sim, &requests[winner]))
                paths--;
        }
    }
}

static void go(struct decision *d, const struct request *q)
{
    struct part *part = d->part;
    struct emu_sim *sim = part->sim;
    struct in_vc *v = q->v;
    struct out_link *out = &sim->outs[q->link];
    struct emu_packet *p = &part->cells[q->packet].packet;
    uint32_t next = part->cells[q->packet].next; /* the cell may be gone afterwards */
    uint32_t units = p->units;
    uint32_t charge = q->tokens;
    uint64_t at_ps = v->ready_ps > d->start_ps ? v->ready_ps : d->start_ps;
    uint64_t tail_ps = tail_of_head(d, v);
    uint64_t out_ps;

    if (at_ps < out->free_ps)
        at_ps = out->free_ps;
    sim_forget_options(part, v);
    p->flags |= q->flags;
    p->route_state = q->route_state;
    out->turn = q->local;
    v->to_nic = (out->flags & OUT_TO_NIC) != 0;
    if (!v->to_nic) {
        p->hops++;
        p->n_optical += sim->kinds[out->kind].is_optical;
        part->totals.packet_hops++;
        if ((out->bubble_vcs >> q->vc & 1) != 0 && sim->p.bubble_charge == EMU_CHARGE_FULL)
            charge = sim->full_tokens;
    }
    out_ps = sim_transmit(part, q->link, q->vc, q->packet, at_ps, tail_ps, charge);
    if (sim->p.column_buffers == 0)
        tail_ps = out_ps;
    else if (tail_ps < at_ps)
        tail_ps = at_ps; /* the output holds it from here on */
    next_head(d, v, units, q->tokens, next, tail_ps);
}

/* Could one of the ways be taken in the next slot, as things stand? */
static bool may_go_next(const struct decision *d, const struct way *ways, uint32_t n, uint32_t tokens)
{
    const struct out_link *outs = d->part->sim->outs;
    uint64_t end_ps = d->end_ps + d->part->sim->clock_ps;

    for (const struct way *way = ways; way < ways + n; way++) {
        const struct out_link *out = &outs[way->link];

        if (!is_free_before(out, end_ps))
            continue;
        for (uint32_t vcs = way->vcs; vcs != 0; vcs &= vcs - 1) {
            if (has_room(d, out, (uint32_t)__builtin_ctz(vcs), way->is_entry, tokens))
                return true;
        }
    }
    return false;
}

/* Whoever did not get an output: has another way in the next slot, or waits as it would then. */
static void lose(struct decision *d, const struct request *q)
{
    struct part *part = d->part;
    struct option_line *line;

    if (q->ways != NULL)
        keep_options(part, q->v, q->ways, q->n_ways);
    line = &part->options[q->v->options];
    if (may_go_next(d, sim_options_of(line), line->n, q->tokens))
        emu_wheel_put(&part->wheel, part->slot + 1,
                      (struct emu_event){ .kind = EMU_EVENT_LOOK, .index = d->id, .payload = q->local });
    else
        await_ways(d, q->local, sim_options_of(line), line->n, q->tokens, part->sim->clock_ps);
}

/* The outputs choose, and the winners go. */
static void send(struct decision *d)
{
    const struct emu_router_params *p = &d->part->sim->p;
    struct request *requests = d->part->requests;
    uint32_t *candidates = d->part->candidates;

    for (uint32_t i = 0; i < d->n_requests; i++) {
        uint32_t link = requests[i].link;
        uint32_t n = 0;
        uint32_t winner;

        if (requests[i].is_out)
            continue;
        for (uint32_t j = i; j < d->n_requests; j++) {
            if (!requests[j].is_out && requests[j].link == link) {
                requests[j].is_out = true;
                candidates[n++] = j;
            }
        }
        for (uint32_t j = 0; j < n; j++)
            requests[candidates[j]].is_loser = true;
        if (n > 1 && p->response_first != 0)
            n = prefer(d, candidates, n, is_response);
        if (n > 1 && p->network_first_percent > 0 &&
            (p->network_first_percent == 100 ||
             sim_draw(&d->router->random, 100) < p->network_first_percent))
            n = prefer(d, candidates, n, is_from_network);
        winner = pick(d, candidates, n, d->part->sim->outs[link].turn);
        requests[winner].is_loser = false;
        go(d, &requests[winner]);
    }
}

/* Channels share marks, and which ones do is the same in each router. */
static uint32_t large_heads_to_look_at(const struct part *part, const struct router *r, uint32_t *looks)
{
    const struct emu_sim *sim = part->sim;
    const uint64_t *heads = &sim->heads[r->first_word];
    const uint64_t *members = sim->mark_members;
    uint32_t n = 0;

    for (uint32_t first = 0; first < r->n_vcs; first += 64, members++) {
        uint64_t bits = 0;

        if (*heads++ == 0)
            continue;
        for (uint64_t marks = r->look; marks != 0; marks &= marks - 1)
            bits |= members[(uint32_t)__builtin_ctzll(marks) * sim->mark_words];
        for (bits &= heads[-1]; bits != 0; bits &= bits - 1)
            looks[n++] = sim_vc_index(sim, r->first_vc + first + (uint32_t)__builtin_ctzll(bits));
    }
    return n;
}

/* Heads of one router to be looked at, in the order of channels; returns how many. */
static uint32_t heads_to_look_at(const struct part *part, const struct router *r, uint32_t *looks)
{
    const struct emu_sim *sim = part->sim;
    uint32_t n = 0;

    if (r->n_vcs > 64)
        return large_heads_to_look_at(part, r, looks);
    for (uint64_t bits = r->heads & r->look; bits != 0; bits &= bits - 1)
        looks[n++] = sim_vc_index(sim, r->first_vc + (uint32_t)__builtin_ctzll(bits));
    return n;
}

static uint32_t gather(struct part *part, const uint32_t *routers, uint32_t n, uint32_t *n_looks)
{
    const struct emu_sim *sim = part->sim;
    uint32_t n_all = 0;

    for (uint32_t i = 0; i < n; i++) {
        const struct router *r = &sim->routers[routers[i]];

        if (r->n_vcs > 64)
            __builtin_prefetch(&sim->heads[r->first_word], 1);
        if (sim->vc_index != NULL)
            __builtin_prefetch(&sim->vc_index[r->first_vc], 0);
        for (const struct out_link *out = &sim->outs[r->first_out], *end = out + r->n_near_outs; out < end; out++)
            __builtin_prefetch(out, 1);
    }
    for (uint32_t i = 0; i < n; i++) {
        n_looks[i] = heads_to_look_at(part, &sim->routers[routers[i]], part->looks + n_all);
        for (uint32_t j = 0; j < n_looks[i]; j++)
            __builtin_prefetch(&part->vcs[part->looks[n_all + j]], 1);
        n_all += n_looks[i];
    }
    return n_all;
}

static void fetch_heads(const struct part *part, uint32_t n)
{
    const struct emu_sim *sim = part->sim;

    for (uint32_t i = 0; i < n; i++) {
        const struct in_vc *v = &part->vcs[part->looks[i]];

        __builtin_prefetch(&part->cells[v->first], 1);
        if (v->options != SIM_NONE)
            __builtin_prefetch(&part->options[v->options], 1);
    }
    for (uint32_t i = 0; i < n; i++) {
        const struct in_vc *v = &part->vcs[part->looks[i]];

        if (v->options != SIM_NONE) {
            const struct option_line *line = &part->options[v->options];

            for (uint32_t j = 0; j < line->n && j < 3; j++)
                __builtin_prefetch(&sim->outs[line->first[j].link], 1);
        }
    }
}

static void decide(struct part *part, uint32_t router, const uint32_t *looks, uint32_t n_looks)
{
    struct emu_sim *sim = part->sim;
    struct router *r = &sim->routers[router];
    struct decision d = {
        .part = part,
        .router = r,
        .id = router,
        .start_ps = part->slot_ps,
        .end_ps = part->slot_ps + sim->clock_ps,
        .gap_ps = (uint64_t)sim->p.arb_gap_clocks * sim->clock_ps,
        .full_tokens = sim->full_tokens,
        .least_tokens = sim->p.room == EMU_CHARGE_FULL ? sim->full_tokens : 0,
    };

    r->look = 0;
    r->is_listed = false;
    for (uint32_t i = 0; i < n_looks; i++)
        look_at(&d, looks[i]);
    if (d.n_requests == 0)
        return;
    if (d.n_requests == 1) {
        go(&d, &part->requests[0]);
        return;
    }
    receive(&d);
    for (uint32_t i = 0; i < d.n_requests; i++)
        part->requests[i].is_loser = part->requests[i].is_out;
    send(&d);
    for (uint32_t i = 0; i < d.n_requests; i++) {
        if (part->requests[i].is_loser)
            lose(&d, &part->requests[i]);
    }
}

/* A head's channel, packet, options and links lie far from each other, and in a large machine none of them is in a cache.
 * So they are fetched level by level for some routers at once, before the first of these decides. */
void sim_routers_decide(struct part *part)
{
    uint32_t n_looks[SIM_ROUTER_BATCH];

    for (uint32_t first = 0; first < part->n_routers; first += SIM_ROUTER_BATCH) {
        const uint32_t *routers = part->routers + first;
        uint32_t n = part->n_routers - first < SIM_ROUTER_BATCH ? part->n_routers - first : SIM_ROUTER_BATCH;
        const uint32_t *looks = part->looks;

        fetch_heads(part, gather(part, routers, n, n_looks));
        for (uint32_t i = 0; i < n; i++) {
            decide(part, routers[i], looks, n_looks[i]);
            looks += n_looks[i];
        }
    }
    part->n_routers = 0;
}
