/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Plain machines (sim->is_plain): their decisions need packets, channels and links, but nothing that a router knows.
 * No input port limits its channels, no load is advertised, no link counts as optical, no ring has a bubble, channels
 * share no buffer, none belongs to an output, and a head takes the way with most free tokens.
 *
 * So the heads of a slot are gone through together, in whatever order their events came, and never by router:
 *
 *   look    Every head that something happened to finds its best way, as links and tokens are at the start of the slot,
 *           and asks for its link; or it waits, for the first of its links to be free and for tokens (router.c).
 *   choose  Where several heads ask for one link, the link takes one.
 *   go      Those packets start. Only then the others see what the next slot leaves to them.
 *
 * Neither step depends on the order, and neither do random numbers: each is made of the seed, the slot and what it is
 * drawn for. The rest of the model is that of router.c: room, ranks, tokens, tails. What is chosen where and when
 * differs from one head to the next, and no processor foresees it; so the loops that most heads go through have few
 * branches.
 */
#include "emunic/fabric/sim/head.h"

#define GOLDEN UINT64_C(0x9e3779b97f4a7c15)   /* steps of a counter behind emu_random_mix() */

/* Places of bits in the merit of a channel. */
#define MERIT_TOKENS 16
#define MERIT_CHANCE 8

/* What is the same for all heads of a slot. */
struct slot {
    struct part *part;
    const struct emu_sim *sim;
    uint64_t start_ps;
    uint64_t end_ps;         /* not in it any more */
    uint64_t gap_ps;         /* router.arb_gap_clocks */
    uint32_t least_tokens;   /* room for so many is needed, however small the packet */
    uint64_t dice;           /* start of its random numbers */
};

/* --- Heads that are looked at ------------------------------------------------------------------------------------- */

static __attribute__((noinline)) void grow(struct part *part, uint32_t n)
{
    while (part->looks_max < n)
        part->looks_max *= 2;
    part->looks = sim_grown(part->looks, part->looks_max * sizeof(*part->looks));
    part->requests = sim_grown(part->requests, part->looks_max * sizeof(*part->requests));
}

/* Room for so many calls of list_head(). */
static inline void reserve(struct part *part, size_t n)
{
    if (__builtin_expect(part->n_looks + n >= part->looks_max, 0))
        grow(part, part->n_looks + (uint32_t)n + 1);
}

static inline void list_head(struct part *part, struct in_vc *v, uint32_t channel)
{
    part->looks[part->n_looks] = channel;
    part->n_looks += !v->is_listed;
    v->is_listed = true;
}

/* The head is here in this slot. What it will look at comes while others arrive; in a large machine it would be gone
 * again until it is needed. */
static inline void comes_first(struct part *part, struct in_vc *v, uint32_t channel)
{
    if (!part->sim->is_large)
        sim_ask_routing(part, v);
    list_head(part, v, channel);
}

/* --- Events ------------------------------------------------------------------------------------------------------- */

static inline void arrive(struct part *part, const struct emu_event *event)
{
    struct cell *cell = &part->cells[event->payload];
    struct in_vc *v = &part->vcs[event->index];
    uint64_t at_ps = part->slot_ps + event->offset_ps;

    v->tail_ps = at_ps + event->length_ps;
    v->units = (uint16_t)(v->units + cell->packet.units);
    cell->next = SIM_NONE;
    if (__builtin_expect((cell->packet.flags & EMU_PACKET_BROADCAST) != 0, 0) && !v->at.is_entering)
        sim_deposit(part, v->at.router, event->payload, v->tail_ps);
    if (v->first != SIM_NONE) {
        part->cells[v->last].next = event->payload;
        v->last = event->payload;
        return;
    }
    v->first = event->payload;
    v->last = event->payload;
    if (v->ready_ps >= part->slot_ps + part->clock_ps) { /* the packet before is still going out */
        sim_look_at(part, event->index, v->ready_ps);
        return;
    }
    v->ready_ps = sim_later(v->ready_ps, at_ps);
    comes_first(part, v, event->index);
}

void sim_plain_arrive(struct part *part, const struct emu_wheel_list *list)
{
    for (const struct emu_wheel_chunk *chunk = emu_wheel_newest(list); chunk != NULL; chunk = chunk->older) {
        size_t n = emu_wheel_count(list, chunk);

        part->totals.events += n;
        reserve(part, n);
        sim_fetch_chunk(chunk->older);
        for (size_t i = 0; i < n; i++) {
            __builtin_prefetch(&part->vcs[chunk->events[i].index], 1);
            __builtin_prefetch(&part->cells[chunk->events[i].payload], 1);
        }
        for (size_t i = 0; i < n; i++)
            arrive(part, &chunk->events[i]);
    }
}

static inline void look(struct part *part, struct in_vc *v, uint32_t channel)
{
    if (v->first == SIM_NONE || v->ready_ps >= part->slot_ps + part->clock_ps)
        return; /* not any more */
    if (v->options == SIM_NONE)
        comes_first(part, v, channel);
    else
        list_head(part, v, channel);
}

void sim_plain_look(struct part *part, const struct emu_wheel_list *list)
{
    for (const struct emu_wheel_chunk *chunk = emu_wheel_newest(list); chunk != NULL; chunk = chunk->older) {
        size_t n = emu_wheel_count(list, chunk);

        part->totals.events += n;
        reserve(part, n);
        sim_fetch_chunk(chunk->older);
        for (size_t i = 0; i < n; i++)
            __builtin_prefetch(&part->vcs[chunk->events[i].index], 1);
        for (size_t i = 0; i < n; i++) {
            struct in_vc *v = &part->vcs[chunk->events[i].index];

            v->look_slot = 0;
            look(part, v, chunk->events[i].index);
        }
    }
}

void sim_plain_wake(struct part *part, struct out_link *out)
{
    uint32_t first_vc = part->sim->routers[out->from].first_vc;

    reserve(part, 64);
    for (uint64_t waiters = out->waiters; waiters != 0; waiters &= waiters - 1) {
        uint32_t channel = first_vc + (uint32_t)__builtin_ctzll(waiters);

        look(part, &part->vcs[channel], channel);
    }
    out->waiters = 0;
}

/* --- Looking at one head ------------------------------------------------------------------------------------------ */

/* How much a channel is liked, 0 if it has no room: by its tokens, then chance; and, below these, which it is. */
static inline uint64_t merit(const struct out_link *out, uint32_t vc, uint32_t needed, uint64_t chance, uint32_t way)
{
    uint32_t tokens = (uint32_t)out->tokens[vc];

    return tokens >= needed ? (uint64_t)tokens << MERIT_TOKENS | (chance & 0xff) << MERIT_CHANCE | (way | vc) : 0;
}

/* The best channel of these ways whose links are idle. */
SIM_INLINE uint64_t best_of(const struct slot *s, const struct emu_route_option *ways, uint32_t mask, uint32_t needed,
                            uint64_t chance)
{
    uint64_t best = 0;

    for (; mask != 0; mask &= mask - 1) {
        uint32_t i = (uint32_t)__builtin_ctz(mask);
        const struct out_link *out = &s->sim->outs[ways[i].link];
        uint32_t more = ways[i].more_vcs;
        uint64_t m;

        if (__builtin_expect((out->flags & OUT_IS_UP) == 0, 0))
            continue;
        m = merit(out, ways[i].vc, needed, chance, i * EMU_VCS_MAX);
        best = m > best ? m : best;
        for (; more != 0; more &= more - 1) {
            chance = chance >> 8 | chance << 56;
            m = merit(out, (uint32_t)__builtin_ctz(more), needed, chance, i * EMU_VCS_MAX);
            best = m > best ? m : best;
        }
        chance = chance >> 8 | chance << 56;
    }
    return best;
}

/* Likewise when those of the lowest rank cannot be taken. */
static __attribute__((noinline)) uint64_t best_of_others(const struct slot *s, const struct emu_route_option *ways,
                                                         uint32_t mask, uint32_t needed, uint64_t chance)
{
    for (uint32_t rank = 1; rank < 1u << 7 && mask != 0; rank++) {
        uint32_t these = 0;
        uint64_t best;

        for (uint32_t rest = mask; rest != 0; rest &= rest - 1)
            these |= ways[__builtin_ctz(rest)].rank == rank ? rest & -rest : 0;
        best = best_of(s, ways, these, needed, chance);
        if (best != 0)
            return best;
        mask &= ~these;
    }
    return 0;
}

/* The best available way; false: there is none. */
SIM_INLINE bool find_way(const struct slot *s, const struct in_vc *v, uint32_t channel, struct request *q_out,
                         uint32_t *idle_out)
{
    const struct emu_route_option *ways = &s->part->options[v->options];
    uint32_t needed = v->tokens > s->least_tokens ? v->tokens : s->least_tokens;
    uint64_t chance = (s->dice + channel) * GOLDEN;
    uint32_t idle = sim_idle_ways(s->sim->outs, ways, v->n_ways, s->end_ps);
    uint32_t first = (1u << v->n_first_ways) - 1;
    uint64_t best;
    uint32_t way;

    chance ^= chance >> 32;
    best = best_of(s, ways, idle & first, needed, chance);
    if (best == 0 && (idle & ~first) != 0)
        best = best_of_others(s, ways, idle & ~first, needed, chance);
    *idle_out = idle;
    way = (uint32_t)best % (EMU_VCS_MAX * EMU_ROUTE_OPTIONS_MAX) / EMU_VCS_MAX;
    q_out->link = ways[way].link;
    q_out->way = (uint8_t)way;
    q_out->vc = best % EMU_VCS_MAX;
    return best != 0;
}

/* Leaves word with links that are idle in the slot that begins at start_ps and have no room. False: one has. */
static __attribute__((noinline)) bool await_tokens(const struct slot *s, const struct in_vc *v, uint64_t start_ps,
                                                   uint32_t idle)
{
    const struct emu_sim *sim = s->sim;
    const struct emu_route_option *ways = &s->part->options[v->options];
    uint32_t needed = v->tokens > s->least_tokens ? v->tokens : s->least_tokens;

    for (uint32_t mask = idle; mask != 0; mask &= mask - 1) {
        const struct emu_route_option *way = &ways[__builtin_ctz(mask)];
        const struct out_link *out = &sim->outs[way->link];

        for (uint32_t vcs = emu_route_vcs(way); (out->flags & OUT_IS_UP) != 0 && vcs != 0; vcs &= vcs - 1) {
            if ((uint32_t)out->tokens[__builtin_ctz(vcs)] >= needed)
                return false;
        }
    }
    for (uint32_t mask = idle; mask != 0; mask &= mask - 1) {
        const struct emu_route_option *way = &ways[__builtin_ctz(mask)];
        struct out_link *out = &sim->outs[way->link];

        out->waiters |= UINT64_C(1) << v->local;
        for (uint32_t vcs = emu_route_vcs(way); vcs != 0; vcs &= vcs - 1) {
            uint32_t vc = (uint32_t)__builtin_ctz(vcs);

            if ((uint32_t)out->tokens[vc] < needed)
                sim_await_tokens(sim, out, way->link, vc, needed, start_ps);
        }
    }
    return true;
}

/* No way can be taken before the slot that begins at start_ps, in which these are idle; perhaps then. */
static __attribute__((noinline)) void wait_for_way(const struct slot *s, struct in_vc *v, uint64_t start_ps,
                                                   uint32_t idle)
{
    const struct out_link *outs = s->sim->outs;
    const struct emu_route_option *ways = &s->part->options[v->options];
    uint64_t end_ps = start_ps + s->part->clock_ps;
    uint64_t later_ps = UINT64_MAX; /* beyond end_ps */
    uint32_t n = v->n_ways;

    for (uint32_t i = 0; i < SIM_WAYS_MOSTLY || i < n; i++) { /* without a branch that could not be predicted */
        uint64_t ps = (outs[ways[i].link].free_ps - end_ps) | -(uint64_t)(i >= n); /* of idle ones: wraps, far away */

        later_ps = ps < later_ps ? ps : later_ps;
    }
    if (__builtin_expect(idle != 0, 0) && !await_tokens(s, v, start_ps, idle))
        sim_look_again(s->part, v, (uint32_t)(v - s->part->vcs), start_ps);
    else if (later_ps <= INT64_MAX)
        sim_look_again(s->part, v, (uint32_t)(v - s->part->vcs), end_ps + later_ps);
}

/* In the next slot, or later. */
static void wait_for_next(const struct slot *s, struct in_vc *v)
{
    const struct emu_route_option *ways = &s->part->options[v->options];

    wait_for_way(s, v, s->end_ps, sim_idle_ways(s->sim->outs, ways, v->n_ways, s->end_ps + s->part->clock_ps));
}

/* --- Going on ----------------------------------------------------------------------------------------------------- */

/* The packet in front is gone when its tail is out. */
SIM_INLINE void next_head(const struct slot *s, struct in_vc *v, uint32_t units, uint32_t next, uint64_t tail_ps)
{
    v->units = (uint16_t)(v->units - units);
    v->ready_ps = tail_ps + s->gap_ps * !v->at.is_entering;
    v->first = next;
    v->options = SIM_NONE;
    sim_credit(s->part, v, v->tokens, tail_ps);
    if (next != SIM_NONE)
        sim_look_at(s->part, (uint32_t)(v - s->part->vcs), v->ready_ps);
}

/* A head without any way on: no route at its source, or a fault came between. */
static __attribute__((noinline)) void drop(const struct slot *s, struct in_vc *v)
{
    struct part *part = s->part;
    uint32_t cell = v->first;
    /* Its credit comes no sooner than a window allows. */
    uint64_t tail_ps = sim_later(s->start_ps + s->sim->unit_ps, sim_tail_of_head(part, v));

    if (v->at.is_entering)
        part->totals.unroutable++;
    else
        part->totals.lost++;
    sim_options_free(part, v->options);
    next_head(s, v, part->cells[cell].packet.units, part->cells[cell].next, tail_ps);
    sim_lose(part, cell);
}

SIM_INLINE void go(const struct slot *s, const struct request *q)
{
    struct part *part = s->part;
    struct in_vc *v = q->v;
    struct out_link *out = &s->sim->outs[q->link];
    const struct emu_route_option *way = &part->options[v->options + q->way];
    uint32_t number = v->first;
    struct cell *cell = &part->cells[number];
    uint32_t next = cell->next; /* the cell may be gone afterwards */
    uint32_t units = cell->packet.units;
    uint64_t at_ps = sim_later(sim_later(v->ready_ps, s->start_ps), out->free_ps);
    uint32_t is_hop = (out->flags & OUT_TO_NIC) == 0;

    cell->packet.flags |= way->flags;
    cell->packet.route_state = way->route_state;
    cell->packet.hops = (uint8_t)(cell->packet.hops + is_hop);
    part->totals.packet_hops += is_hop;
    out->asker = 0;
    out->turn = v->local;
    sim_options_free(part, v->options);
    next_head(s, v, units, next,
              sim_transmit(part, q->link, q->vc, number, at_ps, sim_tail_of_head(part, v), v->tokens));
}

/* A link that several heads ask for takes one; the others are added to the list of losers. */
static __attribute__((noinline)) uint32_t choose(const struct slot *s, uint32_t last, uint32_t losers)
{
    struct part *part = s->part;
    struct request *requests = part->requests;
    uint32_t *candidates = part->candidates;
    uint32_t link = requests[last - 1].link;
    struct emu_random random = { .state = s->dice ^ emu_random_mix(link + 1) };
    uint32_t n = 0;
    uint32_t winner;

    for (uint32_t i = last; i != 0; i = requests[i - 1].next) {
        uint32_t at = n++;

        for (; at > 0 && requests[candidates[at - 1]].v->local > requests[i - 1].v->local; at--)
            candidates[at] = candidates[at - 1];
        candidates[at] = i - 1;
    }
    winner = sim_choose_sender(part, link, candidates, n, &random);
    for (uint32_t i = last, next; i != 0; i = next) {
        next = requests[i - 1].next;
        if (i - 1 == winner)
            continue;
        requests[i - 1].is_loser = true;
        requests[i - 1].next = losers;
        losers = i;
    }
    return losers;
}

/* Large machines: channels, packets and ways, links of the next heads, level by level. */
static void fetch(struct part *part, const uint32_t *looks, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        __builtin_prefetch(&part->vcs[looks[i]], 1);
    for (uint32_t i = 0; i < n; i++) {
        const struct in_vc *v = &part->vcs[looks[i]];

        __builtin_prefetch(&part->cells[v->first], 1);
        if (v->options != SIM_NONE)
            __builtin_prefetch(&part->options[v->options], 1);
    }
    for (uint32_t i = 0; i < n; i++) {
        struct in_vc *v = &part->vcs[looks[i]];

        if (v->options != SIM_NONE)
            sim_fetch_links(part, v);
        else
            sim_ask_routing(part, v);
    }
}

/* The requests of those of some heads that have a way, behind the n that there are; the others wait. Returns how many
 * there are then. */
static __attribute__((noinline)) uint32_t look_at(const struct slot *s, const uint32_t *looks, uint32_t n_looks,
                                                  uint32_t n, uint32_t *contended)
{
    struct out_link *outs = s->sim->outs;
    struct in_vc *vcs = s->part->vcs;
    struct request *q = &s->part->requests[n];

    for (const uint32_t *end = looks + n_looks; looks < end; looks++) {
        struct in_vc *v = &vcs[*looks];
        uint32_t before, idle;

        v->is_listed = false;
        if (__builtin_expect(v->n_ways == 0, 0)) {
            drop(s, v);
            continue;
        }
        if (!find_way(s, v, *looks, q, &idle)) {
            wait_for_way(s, v, s->start_ps, idle);
            continue;
        }
        before = outs[q->link].asker;
        outs[q->link].asker = ++n;
        q->v = v;
        q->is_loser = false;
        q->next = before;
        q->contended = *contended;
        *contended = before != 0 ? n : *contended;
        q++;
    }
    return n;
}

void sim_plain_decide(struct part *part)
{
    struct emu_sim *sim = part->sim;
    const struct slot s = {
        .part = part,
        .sim = sim,
        .start_ps = part->slot_ps,
        .end_ps = part->slot_ps + part->clock_ps,
        .gap_ps = (uint64_t)sim->p.arb_gap_clocks * part->clock_ps,
        .least_tokens = sim->p.room == EMU_CHARGE_FULL ? sim->full_tokens : 0,
        .dice = emu_random_mix(sim->options.seed + part->slot * GOLDEN),
    };
    const struct request *requests = part->requests;
    uint32_t contended = 0; /* lists of requests, 1 added, 0: empty */
    uint32_t losers = 0;
    uint32_t n = 0;

    for (uint32_t i = 0, batch; i < part->n_looks; i += batch) {
        batch = part->n_looks - i < SIM_LOOK_BATCH ? part->n_looks - i : SIM_LOOK_BATCH;
        if (sim->is_large)
            fetch(part, &part->looks[i], batch);
        n = look_at(&s, &part->looks[i], batch, n, &contended);
    }
    part->n_looks = 0;
    for (uint32_t i = contended; i != 0; i = requests[i - 1].contended) {
        if (sim->outs[requests[i - 1].link].asker == i)
            losers = choose(&s, i, losers);
    }
    for (uint32_t i = 0; i < n; i++) {
        if (!requests[i].is_loser)
            go(&s, &requests[i]);
    }
    for (uint32_t i = losers; i != 0; i = requests[i - 1].next)
        wait_for_next(&s, requests[i - 1].v);
}
