/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One router, one slot of its clock: which waiting heads go on, and where to.
 *
 * First everything that happens in the slot has been applied (arrivals, credits, links that end their packet); then
 * each router for which something changed decides, once. So the order of events within a slot changes nothing.
 *
 *   look     The routing is asked for a head's ways on when it comes to the front of its channel. The head is looked at
 *            then, and again when a link that it could take becomes available or gets room. Of its available ways the
 *            lowest rank counts, among those the machine's choice decides. A head without an available way will be
 *            looked at again when the first of its busy links is free, and when a channel without room has enough
 *            tokens back.
 *   receive  Each input port may ask for router.requests outputs and have router.paths transfers to other routers at
 *            once. A NIC's channels have a way of their own each, and packets for the NIC take none (BG/L: a receiver
 *            feeds the reception FIFOs and two senders).
 *   send     Each output takes one of those who ask. Losers look again in the next slot if they have another way
 *   then; else
 *            they leave word like a head without a way.
 *   go       The packet starts (transmit.h), the head behind it comes to the front when its tail is out.
 *
 * Room: on a plain channel the packet's size, or that of a full one (router.room), of its own buffer and what the
 * channels of the port share; on a bubble channel a full packet, or two for one that enters the ring. Charged: its
 * size, or on a bubble channel that of a full one (router.bubble_charge). A link takes at most one packet per slot.
 *
 * Where the routing's answer depends on the packet and the place alone, it is asked while arrivals are applied: the
 * links that the decision will look at are on their way from memory by then. Machines that fit in no cache
 * (sim->is_large) are gone through some routers at a time, level by level: channels, packets and ways, links.
 * Source: spec/machines.md 1.3, 1.4, 5.2.
 */
#include "emunic/fabric/sim/head.h"

/* What the functions of one decision share. */
struct decision {
    struct part *part;
    uint64_t start_ps;     /* of the slot */
    uint64_t end_ps;       /* not in it any more */
    uint64_t gap_ps;       /* router.arb_gap_clocks */
    uint32_t full_tokens;  /* sim->full_tokens */
    uint32_t least_tokens; /* room for so many is needed, however small the packet */
    uint32_t choice;       /* router.choice */
    struct router *router; /* and what is below: one after another */
    uint32_t n_requests;
};

/* What a buffer holds changes while a packet comes in or goes out: by its units, at the middle of that time. */
static inline void occupied(struct emu_sim *sim, uint32_t channel, uint64_t units, uint64_t middle_ps)
{
    if (sim->occupancy)
        sim->occupancy[channel] += units * middle_ps; /* modulo 2^64: arrivals are subtracted, departures added */
}

/* ---- the options of a head ---- */

/* The head is here in this slot. If the answer depends on nothing that other heads may change, it can as well be asked
 * about before its router's turn; of a large machine not so long before, or what was fetched is gone again. */
static inline void comes_first(struct part *part, struct in_vc *v)
{
    if (!part->sim->routing->reads_router && !part->sim->is_large)
        sim_ask_routing(part, v);
    sim_look(part, v->at.router, v->local);
}

static inline void look(struct part *part, const struct emu_event *event)
{
    struct in_vc *v = &part->vcs[sim_vc_index(part->sim, event->index)];

    v->look_slot = 0;
    if (v->first == SIM_NONE || v->ready_ps >= part->slot_ps + part->clock_ps)
        return; /* not any more */
    if (v->options == SIM_NONE)
        comes_first(part, v);
    else
        sim_look(part, v->at.router, v->local);
}

void sim_forget_options(struct part *part, struct in_vc *v)
{
    if (v->options == SIM_NONE)
        return;
    if (v->is_counted) {
        const struct emu_packet *p = &part->cells[v->first].packet;

        sim_load_add(part, part->options[v->options].link, p->traffic_class, -(int32_t)p->units);
    }
    sim_options_free(part, v->options);
    v->options = SIM_NONE;
}

/* The head waits for the link that it would like first. */
static inline void count_waiting(struct part *part, struct in_vc *v)
{
    const struct emu_packet *p = &part->cells[v->first].packet;

    if (v->is_counted || !part->sim->loads)
        return;
    v->is_counted = true;
    sim_load_add(part, part->options[v->options].link, p->traffic_class, p->units);
}

/* ---- events ---- */

void sim_routers_look(struct part *part, const struct emu_wheel_list *list)
{
    const struct emu_sim *sim = part->sim;

    for (struct emu_wheel_chunk *chunk = emu_wheel_newest(list); chunk; chunk = emu_wheel_done(&part->wheel, chunk)) {
        size_t n = emu_wheel_count(list, chunk);

        part->totals.events += n;
        if (sim->is_large) {
            sim_fetch_chunk(chunk->next);
            for (size_t i = 0; i < n; i++)
                __builtin_prefetch(&part->vcs[sim_vc_index(sim, chunk->events[i].index)], 1);
            for (size_t i = 0; i < n; i++)
                __builtin_prefetch(&sim->routers[part->vcs[sim_vc_index(sim, chunk->events[i].index)].at.router], 1);
        }
        for (size_t i = 0; i < n; i++)
            look(part, &chunk->events[i]);
    }
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

void sim_deposit(struct part *part, uint32_t router, uint32_t cell, uint64_t tail_ps)
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

static inline void arrive(struct part *part, const struct emu_event *event)
{
    struct emu_sim *sim = part->sim;
    struct cell *cell = &part->cells[event->payload];
    uint64_t at_ps = part->slot_ps + event->offset_ps;
    uint32_t channel = event->index;
    uint32_t index = sim_vc_index(sim, channel);
    struct router *r;
    struct in_vc *v;

    if (__builtin_expect(index == SIM_NONE || !part->vcs[index].is_made, 0))
        index = sim_vc_make(part, cell->next, event->vc);
    v = &part->vcs[index];
    r = &sim->routers[v->at.router];
    v->tail_ps = at_ps + event->length_ps;
    v->units = (uint16_t)(v->units + cell->packet.units);
    occupied(sim, channel, cell->packet.units, -(at_ps + event->length_ps / 2));
    cell->next = SIM_NONE;
    if (!v->at.is_entering && __builtin_expect((cell->packet.flags & EMU_PACKET_BROADCAST) != 0, 0))
        sim_deposit(part, v->at.router, event->payload, v->tail_ps);
    if (v->first != SIM_NONE) {
        part->cells[v->last].next = event->payload;
        v->last = event->payload;
        return;
    }
    v->first = event->payload;
    v->last = event->payload;
    *heads_word(sim, r, v->local) |= UINT64_C(1) << (v->local % 64);
    if (v->ready_ps >= part->slot_ps + part->clock_ps) { /* the packet before is still going out */
        sim_look_at(part, channel, v->ready_ps);
        return;
    }
    if (v->ready_ps < at_ps)
        v->ready_ps = at_ps;
    comes_first(part, v);
}

/* Brings in what arrivals will touch, level by level. */
SIM_INLINE void fetch_arrivals(const struct part *part, const struct emu_event *events, size_t n)
{
    const struct emu_sim *sim = part->sim;

    for (size_t i = 0; i < n; i++) {
        uint32_t index = sim_vc_index(sim, events[i].index);

        if (index != SIM_NONE)
            __builtin_prefetch(&part->vcs[index], 1);
        __builtin_prefetch(&part->cells[events[i].payload], 1);
    }
    for (size_t i = 0; i < n; i++) {
        uint32_t index = sim_vc_index(sim, events[i].index);

        if (index != SIM_NONE)
            __builtin_prefetch(&sim->routers[part->vcs[index].at.router], 1);
    }
}

/* In the order of their sending: short packets of a fast link arrive several in a slot. */
void sim_routers_arrive(struct part *part, const struct emu_wheel_list *list)
{
    for (struct emu_wheel_chunk *chunk = emu_wheel_oldest(list); chunk; chunk = emu_wheel_done(&part->wheel, chunk)) {
        size_t n = emu_wheel_count(list, chunk);

        part->totals.events += n;
        if (part->sim->is_large) {
            sim_fetch_chunk(chunk->next);
            fetch_arrivals(part, chunk->events, n);
        }
        for (size_t i = 0; i < n; i++)
            arrive(part, &chunk->events[i]);
    }
}

/* ---- looking at one head ---- */

/*
 * router.arb_gap_clocks: an input port from another router that has begun or ended a transfer asks for nothing for so
 * long, and an injection can take the link that just became free (BG/L). 0: it may ask in this slot; else when it may.
 */
static uint64_t gap_ends_ps(const struct decision *d, const struct in_vc *v)
{
    const struct emu_sim *sim = d->part->sim;
    const struct in_link *in = &sim->ins[v->at.in_link];
    uint64_t ends_ps = sim->ports[v->at.in_link].gap_ends_ps;

    for (uint32_t i = 0; i < sim->kinds[in->kind].n_vcs; i++) {
        uint32_t index = sim_vc_index(sim, in->first_vc + i);
        uint64_t ready_ps = index == SIM_NONE ? 0 : d->part->vcs[index].ready_ps;

        if (ready_ps > ends_ps && ready_ps - d->gap_ps < d->end_ps)
            ends_ps = ready_ps;
    }
    return ends_ps < d->end_ps ? 0 : ends_ps;
}

/* The front packet of a channel leaves. */
struct departure {
    uint32_t units;
    uint32_t tokens;
    uint32_t next; /* cell of the packet behind it; SIM_NONE: nobody */
    uint64_t at_ps;
    uint64_t tail_ps;
};

/* The front packet of a channel is gone, and the one behind it comes to the front. */
SIM_INLINE void next_head(struct decision *d, struct in_vc *v, struct departure gone)
{
    uint32_t units = gone.units;
    uint32_t tokens = gone.tokens;
    uint32_t next = gone.next;
    uint64_t at_ps = gone.at_ps;
    uint64_t tail_ps = gone.tail_ps;
    struct part *part = d->part;
    struct emu_sim *sim = part->sim;

    v->units = (uint16_t)(v->units - units);
    v->ready_ps = tail_ps + (v->at.is_entering ? 0 : d->gap_ps);
    occupied(sim, d->router->first_vc + v->local, units, (at_ps + tail_ps) / 2);
    if (v->is_charged_full)
        tokens = sim->full_tokens;
    sim_credit(part, v, tokens, tail_ps);
    v->first = next;
    if (sim->p.paths != 0 && !v->to_nic) {
        uint16_t offset;
        uint32_t end_slot = (uint32_t)sim_slot_of(part, tail_ps, &offset);

        if ((int32_t)(end_slot - sim->ports[v->at.in_link].busy_slot) > 0)
            sim->ports[v->at.in_link].busy_slot = end_slot;
    }
    if (next != SIM_NONE)
        sim_look_at(part, d->router->first_vc + v->local, v->ready_ps);
    else
        *heads_word(sim, d->router, v->local) &= ~(UINT64_C(1) << (v->local % 64));
}

/* A head without any way on: no route at its source, or a fault came between. */
static __attribute__((noinline)) void drop_head(struct decision *d, struct in_vc *v)
{
    struct part *part = d->part;
    uint32_t cell = v->first;
    uint32_t units = part->cells[cell].packet.units;
    uint64_t tail_ps = d->start_ps + part->sim->unit_ps; /* no credit comes sooner than a window allows */
    uint64_t here_ps = sim_tail_of_head(d->part, v);

    if (here_ps > tail_ps)
        tail_ps = here_ps;
    if (v->at.is_entering)
        part->totals.unroutable++;
    else
        part->totals.lost++;
    sim_forget_options(part, v);
    next_head(d, v,
              (struct departure){ units, sim_tokens(part->sim, units), part->cells[cell].next, tail_ps, tail_ps });
    sim_lose(part, cell);
}

/* Tokens that a packet needs to find free in a channel. */
SIM_INLINE uint32_t room_needed(const struct decision *d, const struct out_link *out, uint32_t vc, bool is_entry,
                                uint32_t tokens)
{
    if ((out->bubble_vcs >> vc & 1) != 0)
        return d->full_tokens << is_entry;
    return tokens > d->least_tokens ? tokens : d->least_tokens;
}

SIM_INLINE bool has_room(const struct decision *d, const struct out_link *out, uint32_t vc, bool is_entry,
                         uint32_t tokens)
{
    return sim_free_tokens(out, vc) >= room_needed(d, out, vc, is_entry, tokens);
}

/* Could a packet start on a link before that time, if there is room? */
static inline bool is_free_before(const struct emu_sim *sim, uint32_t link, uint64_t ps)
{
    return sim->free_ps[link] < ps && (sim->outs[link].flags & OUT_IS_UP) != 0;
}

/* How much the machine likes an available channel; higher is better. */
SIM_INLINE uint32_t merit(const struct decision *d, const struct out_link *out, uint32_t vc)
{
    if (d->choice < EMU_CHOICE_CREDITS)
        return 0;
    if ((out->flags & OUT_TO_NIC) != 0)
        return UINT32_MAX;
    if (d->choice == EMU_CHOICE_CREDITS)
        return (uint32_t)(INT16_MAX + 1 + out->tokens[vc]); /* a channel that took shared ones is fuller, not freer */
    return sim_quarters(sim_free_tokens(out, vc), d->part->sim->kinds[out->kind].quarter_tokens[vc]);
}

/* The best available way and its channel; NULL: none. */
SIM_INLINE const struct emu_route_option *best_way(struct decision *d, const struct emu_route_option *ways, uint32_t n,
                                                   uint32_t tokens, uint32_t *vc_out)
{
    const struct out_link *outs = d->part->sim->outs;
    const struct emu_route_option *best = NULL;
    uint32_t best_rank = UINT32_MAX;
    uint32_t best_merit = 0;
    uint32_t best_vc = 0;
    uint32_t n_equal = 0;
    uint32_t mask = sim_idle_ways(d->part->sim->free_ps, ways, n, d->end_ps) & ((1u << n) - 1);

    for (; mask != 0; mask &= mask - 1) {
        const struct emu_route_option *way = &ways[__builtin_ctz(mask)];
        const struct out_link *out = &outs[way->link];

        if (way->rank > best_rank || (out->flags & OUT_IS_UP) == 0)
            continue;
        for (uint32_t vcs = emu_route_vcs(way); vcs != 0; vcs &= vcs - 1) {
            uint32_t vc = (uint32_t)__builtin_ctz(vcs);
            uint32_t m;

            if (!has_room(d, out, vc, way->is_entry, tokens))
                continue;
            m = merit(d, out, vc);
            if (way->rank < best_rank || m > best_merit) {
                best_rank = way->rank;
                best_merit = m;
                n_equal = 1;
            } else if (m < best_merit || d->choice == EMU_CHOICE_FIRST ||
                       sim_draw(&d->router->random, ++n_equal) != 0) {
                continue;
            }
            best = way;
            best_vc = vc;
        }
    }
    *vc_out = best_vc;
    return best;
}

/* The head has no way in this slot, or one that begins later_ps later. It is looked at again when the first of its busy
 * links is free, and leaves word where there is no room. */
static void await_ways(struct decision *d, struct in_vc *v, uint32_t tokens, uint32_t later_ps)
{
    const struct emu_sim *sim = d->part->sim;
    const struct emu_route_option *ways = &d->part->options[v->options];
    struct out_link *outs = sim->outs;
    uint64_t end_ps = d->end_ps + later_ps;
    uint64_t free_ps = UINT64_MAX;
    uint32_t n = v->n_ways;

    for (const struct emu_route_option *way = ways; way < ways + n; way++) {
        struct out_link *out = &outs[way->link];

        if (sim->free_ps[way->link] >= end_ps) {
            free_ps = sim->free_ps[way->link] < free_ps ? sim->free_ps[way->link] : free_ps;
            continue;
        }
        out->waiters |= sim_mark(d->router, v->local);
        for (uint32_t vcs = emu_route_vcs(way); vcs != 0; vcs &= vcs - 1) {
            uint32_t vc = (uint32_t)__builtin_ctz(vcs);

            if (!has_room(d, out, vc, way->is_entry, tokens))
                sim_await_tokens(sim, out, way->link, vc, room_needed(d, out, vc, way->is_entry, tokens),
                                 d->start_ps + later_ps);
        }
    }
    if (free_ps != UINT64_MAX)
        sim_look_again(d->part, v, d->router->first_vc + v->local, free_ps);
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
    struct in_link *in = &d->part->sim->ins[v->at.in_link];
    uint64_t first_ps;

    if (busy_paths(d, in, &first_ps) < d->part->sim->p.paths)
        return true;
    v->is_held = true;
    if ((in->flags & IN_PATH_EVENT) == 0) {
        in->flags |= IN_PATH_EVENT;
        sim_put(d->part, first_ps, (struct emu_event){ .kind = EMU_EVENT_PATH, .index = v->at.in_link });
    }
    return false;
}

static bool comes_too_slowly(struct decision *d, const struct in_vc *v, uint32_t link)
{
    uint64_t at_ps = sim_keeps_up_at(d->part, v, link);

    if (at_ps == 0)
        return false;
    sim_look_at(d->part, d->router->first_vc + v->local, at_ps);
    return true;
}

/* Finds a way on; false: none now, and the head has left word or is gone. */
SIM_INLINE bool look_at(struct decision *d, uint32_t index, struct request *q_out)
{
    struct part *part = d->part;
    struct emu_sim *sim = part->sim;
    struct in_vc *v = &part->vcs[index];
    const struct emu_route_option *way = NULL;
    const struct emu_route_option *ways;
    bool is_held = false;
    uint32_t vc = 0;
    uint32_t tokens;

    if (v->ready_ps >= d->end_ps)
        return false; /* an event will come */
    if (d->gap_ps > 0 && !v->at.is_entering) {
        uint64_t ends_ps = gap_ends_ps(d, v);

        if (ends_ps > 0) {
            sim_look_at(part, d->router->first_vc + v->local, ends_ps);
            return false;
        }
    }
    if (v->options == SIM_NONE)
        sim_ask_routing(part, v);
    assert(v->options != SIM_NONE);
    if (__builtin_expect(v->n_ways == 0, 0)) {
        drop_head(d, v);
        return false;
    }
    ways = &part->options[v->options];
    tokens = sim_tokens(sim, part->cells[v->first].packet.units);
    if (sim->p.paths != 0) {
        if (!v->at.is_entering && !is_idle(d, v->at.in_link) && (sim->outs[ways[0].link].flags & OUT_TO_NIC) == 0)
            is_held = !has_path(d, v);
        v->is_held = is_held;
    }
    if (!is_held)
        way = best_way(d, ways, v->n_ways, tokens, &vc);
    if (!way) {
        if (!is_held)
            await_ways(d, v, tokens, 0);
        count_waiting(part, v);
        return false;
    }
    if (sim->p.slow_input == EMU_SLOW_STORE && comes_too_slowly(d, v, way->link)) {
        count_waiting(part, v);
        return false;
    }
    *q_out = (struct request){
        .v = v,
        .link = way->link,
        .tokens = (uint16_t)tokens,
        .way = (uint8_t)(way - ways),
        .vc = (uint8_t)vc,
    };
    return true;
}

/* ---- arbitration ---- */

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
        const struct in_link *in = &sim->ins[requests[i].v->at.in_link];
        struct in_port *port = &sim->ports[requests[i].v->at.in_link];
        uint32_t limit = sim->p.requests == 0 ? UINT32_MAX : sim->p.requests;
        uint32_t candidates[EMU_VCS_MAX];
        uint32_t paths;
        uint64_t first_ps;

        for (end = i + 1; end < d->n_requests && requests[end].v->at.in_link == requests[i].v->at.in_link; end++)
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
                n = sim_prefer_responses(d->part, candidates, n);
            winner = sim_pick(d->part, candidates, n, port->turn, &d->router->random);
            port->turn = requests[winner].v->local;
            requests[winner].is_out = false;
            if (!is_to_nic(sim, &requests[winner]))
                paths--;
        }
    }
}

SIM_INLINE void go(struct decision *d, const struct request *q)
{
    struct part *part = d->part;
    struct emu_sim *sim = part->sim;
    struct in_vc *v = q->v;
    struct out_link *out = &sim->outs[q->link];
    const struct emu_route_option *way = &part->options[v->options + q->way];
    struct cell *cell = &part->cells[v->first];
    struct emu_packet *p = &cell->packet;
    uint32_t next = cell->next; /* the cell may be gone afterwards */
    uint32_t units = p->units;
    uint32_t charge = q->tokens;
    uint64_t at_ps = v->ready_ps > d->start_ps ? v->ready_ps : d->start_ps;
    uint64_t tail_ps = sim_tail_of_head(d->part, v);
    uint64_t out_ps;

    if (at_ps < sim->free_ps[q->link])
        at_ps = sim->free_ps[q->link];
    p->flags |= way->flags;
    p->route_state = way->route_state;
    sim_forget_options(part, v);
    out->turn = v->local;
    v->to_nic = (out->flags & OUT_TO_NIC) != 0;
    if (!v->to_nic) {
        p->hops++;
        p->n_optical += sim->kinds[out->kind].is_optical;
        part->totals.packet_hops++;
        if ((out->bubble_vcs >> q->vc & 1) != 0 && sim->p.bubble_charge == EMU_CHARGE_FULL)
            charge = sim->full_tokens;
        if (sim->loads)
            sim_load_add(part, q->link, p->traffic_class, (int32_t)(charge * sim->p.token_units));
    }
    out_ps = sim_transmit(part, (struct sim_start){ q->link, q->vc, v->first, charge }, at_ps, tail_ps);
    if (sim->p.column_buffers == 0)
        tail_ps = out_ps;
    else if (tail_ps < at_ps)
        tail_ps = at_ps; /* the output holds it from here on */
    next_head(d, v, (struct departure){ units, q->tokens, next, at_ps, tail_ps });
    if (d->gap_ps > 0 && !v->at.is_entering)
        sim->ports[v->at.in_link].gap_ends_ps = d->end_ps + d->gap_ps;
}

/* Could one of the ways be taken in the next slot, as things stand? */
static bool may_go_next(const struct decision *d, const struct in_vc *v, uint32_t tokens)
{
    const struct out_link *outs = d->part->sim->outs;
    const struct emu_route_option *ways = &d->part->options[v->options];
    uint64_t end_ps = d->end_ps + d->part->sim->clock_ps;
    uint32_t n = v->n_ways;

    for (const struct emu_route_option *way = ways; way < ways + n; way++) {
        const struct out_link *out = &outs[way->link];

        if (!is_free_before(d->part->sim, way->link, end_ps))
            continue;
        for (uint32_t vcs = emu_route_vcs(way); vcs != 0; vcs &= vcs - 1) {
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

    count_waiting(part, q->v);
    if (may_go_next(d, q->v, q->tokens))
        emu_wheel_put(&part->wheel, part->slot + 1,
                      (struct emu_event){ .kind = EMU_EVENT_LOOK, .index = d->router->first_vc + q->v->local });
    else
        await_ways(d, q->v, q->tokens, part->sim->clock_ps);
}

/* The outputs choose. Numbers of the winning requests, in the order in which they go; returns how many. */
static uint32_t send(struct decision *d, uint32_t *winners)
{
    struct request *requests = d->part->requests;
    uint32_t *candidates = d->part->candidates;
    uint32_t n_winners = 0;

    for (uint32_t i = 0; i < d->n_requests; i++)
        requests[i].is_loser = requests[i].is_out;
    for (uint32_t i = 0; i < d->n_requests; i++) {
        uint32_t link = requests[i].link;
        uint32_t n = 0;
        uint32_t winner;

        if (requests[i].is_out)
            continue;
        for (uint32_t j = i; j < d->n_requests; j++) {
            if (!requests[j].is_out && requests[j].link == link) {
                requests[j].is_out = true;
                requests[j].is_loser = true;
                candidates[n++] = j;
            }
        }
        winner = sim_choose_sender(d->part, link, candidates, n, &d->router->random);
        requests[winner].is_loser = false;
        winners[n_winners++] = winner;
    }
    return n_winners;
}

/* Heads of one router to be looked at: those in the channels from 64 * word on. Channels of a large router share marks,
 * and which ones do is the same in each. */
static inline uint64_t heads_to_look_at(const struct part *part, const struct router *r, uint64_t look, uint32_t word)
{
    const struct emu_sim *sim = part->sim;
    uint64_t heads, bits = 0;

    if (r->n_vcs <= 64)
        return r->heads & look;
    heads = sim->heads[r->first_word + word];
    if (heads == 0)
        return 0;
    for (; look != 0; look &= look - 1)
        bits |= sim->mark_members[(uint32_t)__builtin_ctzll(look) * sim->mark_words + word];
    return heads & bits;
}

/*
 * Lists the heads that are looked at in the first of these routers, as many as there is room for; returns how many
 * routers.
 */
static uint32_t gather(struct part *part, const uint32_t *routers, uint32_t n, uint32_t *n_looks_out)
{
    const struct emu_sim *sim = part->sim;
    uint32_t n_looks = 0;
    uint32_t i;

    for (i = 0; i < n; i++) {
        const struct router *r = &sim->routers[routers[i]];

        if (r->n_vcs > 64)
            __builtin_prefetch(&sim->heads[r->first_word], 1);
        if (sim->vc_index)
            __builtin_prefetch(&sim->vc_index[r->first_vc], 0);
    }
    for (i = 0; i < n; i++) {
        const struct router *r = &sim->routers[routers[i]];

        if (n_looks + r->n_vcs > part->looks_max)
            break;
        for (uint32_t first = 0; first < r->n_vcs; first += 64) {
            for (uint64_t bits = heads_to_look_at(part, r, r->look, first / 64); bits != 0; bits &= bits - 1) {
                uint32_t index = sim_vc_index(sim, r->first_vc + first + (uint32_t)__builtin_ctzll(bits));

                part->looks[n_looks++] = index;
                __builtin_prefetch(&part->vcs[index], 1);
            }
        }
    }
    *n_looks_out = n_looks;
    return i;
}

/* A head's channel, packet, options and links lie far from each other, and in a large machine none of them is in a
 * cache. So they are fetched level by level for some routers at once, before the first of these decides. */
static uint32_t fetch_routers(const struct decision *d, const uint32_t *routers, uint32_t n)
{
    struct part *part = d->part;
    const struct emu_sim *sim = part->sim;
    uint32_t n_looks;

    n = gather(part, routers, n < SIM_ROUTER_BATCH ? n : SIM_ROUTER_BATCH, &n_looks);
    for (uint32_t i = 0; i < n_looks; i++) {
        const struct in_vc *v = &part->vcs[part->looks[i]];

        __builtin_prefetch(&part->cells[v->first], 1);
        if (v->options != SIM_NONE)
            __builtin_prefetch(&part->options[v->options], 1);
    }
    for (uint32_t i = 0; i < n_looks; i++) {
        struct in_vc *v = &part->vcs[part->looks[i]];

        if (v->options != SIM_NONE)
            sim_fetch_links(part, v);
        else if (v->ready_ps < d->end_ps && !sim->routing->reads_router)
            sim_ask_routing(part, v);
    }
    return n;
}

/* ---- the router ---- */

static __attribute__((noinline)) void decide_many(struct decision *d, uint64_t look)
{
    struct part *part = d->part;
    const struct router *r = d->router;
    struct request *requests = part->requests;
    uint32_t *winners = part->winners;
    uint32_t n_winners = 1;

    d->n_requests = 0;
    for (uint32_t first = 0; first < r->n_vcs; first += 64) {
        for (uint64_t bits = heads_to_look_at(part, r, look, first / 64); bits != 0; bits &= bits - 1) {
            uint32_t channel = r->first_vc + first + (uint32_t)__builtin_ctzll(bits);

            d->n_requests += look_at(d, sim_vc_index(part->sim, channel), &requests[d->n_requests]);
        }
    }
    if (d->n_requests == 0)
        return;
    winners[0] = 0;
    if (d->n_requests > 1) {
        receive(d);
        n_winners = send(d, winners);
    }
    for (uint32_t i = 0; i < n_winners; i++)
        go(d, &requests[winners[i]]);
    for (uint32_t i = 0; n_winners < d->n_requests && i < d->n_requests; i++) {
        if (requests[i].is_loser)
            lose(d, &requests[i]);
    }
}

/* Most of the time there is one head to look at. */
static inline void decide(struct decision *d, uint32_t router)
{
    struct part *part = d->part;
    struct router *r = &part->sim->routers[router];
    uint64_t look = r->look;
    uint64_t bits = r->heads & look;
    struct request q;

    d->router = r;
    r->look = 0;
    r->is_listed = false;
    part->view.random = &r->random;
    if (r->n_vcs > 64 || (bits & (bits - 1)) != 0)
        decide_many(d, look);
    else if (bits != 0 && look_at(d, sim_vc_index(part->sim, r->first_vc + (uint32_t)__builtin_ctzll(bits)), &q))
        go(d, &q);
}

void sim_routers_decide(struct part *part)
{
    const struct emu_sim *sim = part->sim;
    struct decision d = {
        .part = part,
        .start_ps = part->slot_ps,
        .end_ps = part->slot_ps + sim->clock_ps,
        .gap_ps = (uint64_t)sim->p.arb_gap_clocks * sim->clock_ps,
        .full_tokens = sim->full_tokens,
        .least_tokens = sim->p.room == EMU_CHARGE_FULL ? sim->full_tokens : 0,
        .choice = sim->p.choice,
    };
    uint32_t n;

    for (uint32_t first = 0; first < part->n_routers; first += n) {
        const uint32_t *routers = part->routers + first;

        n = part->n_routers - first;
        if (sim->is_large)
            n = fetch_routers(&d, routers, n);
        for (uint32_t i = 0; i < n; i++)
            decide(&d, routers[i]);
    }
    part->n_routers = 0;
}
