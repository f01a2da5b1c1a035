/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Plain machines (sim->is_plain): their decisions need packets, channels and links, but nothing that a router knows.
 * No input port limits its channels, no load is advertised, no link counts as optical, no ring has a bubble, channels
 * share no buffer, none belongs to an output, a head takes the way with most free tokens, and an output takes turns.
 *
 * So the heads of a slot are gone through together, in whatever order their events came, and never by router:
 *
 *   look    Every head that something happened to finds its best way, as links and tokens are at the start of the slot,
 *           and asks for its link; or it waits, for the first of its links to be free and for tokens (router.c). Where
 *           several heads ask for one link, one after another, the link keeps the one that its turn comes to first.
 *   go      Those packets start. Only then the others see what the next slot leaves to them.
 *
 * Neither step depends on the order, and neither do random numbers: each is made of the seed, the slot and what it is
 * drawn for. The rest of the model is that of router.c: room, ranks, tokens, tails. What is chosen where and when
 * differs from one head to the next, and no processor foresees it: a branch on what has yet to come from a cache costs
 * as much as fifty instructions. So the loops that most heads go through have few branches, and a loop without any
 * divides the heads into those with an idle link and those without first.
 */
#include "emunic/fabric/sim/head.h"

#define GOLDEN UINT64_C(0x9e3779b97f4a7c15) /* steps of a counter behind emu_random_mix() */

/* Places of bits in the merit of a channel, which is the lowest of them. */
#define MERIT_TOKENS 16
#define MERIT_CHANCE 8
#define MERIT_WAY    3
static_assert(EMU_VCS_MAX <= 1 << MERIT_WAY && EMU_ROUTE_OPTIONS_MAX <= 1 << (MERIT_CHANCE - MERIT_WAY), "bits");

/* What is the same for all heads of a slot. */
struct slot {
    struct part *part;
    const struct emu_sim *sim;
    uint64_t start_ps;
    uint64_t end_ps;       /* not in it any more */
    uint32_t least_tokens; /* room for so many is needed, however small the packet */
    bool is_stored;        /* router.slow_input: a packet that does not keep up waits */
    uint64_t dice;         /* start of its random numbers */
};

/* ---- heads that are looked at ---- */

static __attribute__((noinline)) void grow(struct part *part, uint32_t n)
{
    while (part->looks_max < n)
        part->looks_max *= 2;
    part->looks = sim_grown(part->looks, part->looks_max * sizeof(*part->looks));
    part->requests = sim_grown(part->requests, part->looks_max * sizeof(*part->requests));
    part->losers = sim_grown(part->losers, part->looks_max * sizeof(struct in_vc *));
}

/* Room for so many calls of list_head(). */
static inline void reserve(struct part *part, size_t n)
{
    if (__builtin_expect(part->n_looks + n >= part->looks_max, 0))
        grow(part, part->n_looks + (uint32_t)n + 1);
}

/* Unless it is in the list already. */
static inline void list_head(struct part *part, struct in_vc *v, uint32_t channel)
{
    part->looks[part->n_looks] = channel;
    part->n_looks += !v->is_listed;
    v->is_listed = true;
}

/* Likewise if the channel has a head, and that can be decided on in this slot. */
static inline void list_head_if_due(struct part *part, struct in_vc *v, uint32_t channel)
{
    uint32_t is_due = (v->first != SIM_NONE) & (v->ready_ps < part->slot_ps + part->clock_ps);

    part->looks[part->n_looks] = channel;
    part->n_looks += is_due & !v->is_listed;
    v->is_listed |= is_due;
}

/* ---- events ---- */

static inline void arrive(struct part *part, const struct emu_event *event)
{
    struct cell *cell = &part->cells[event->payload];
    struct in_vc *v = &part->vcs[event->index];
    uint64_t at_ps = part->slot_ps + event->offset_ps;

    if (__builtin_expect(!v->is_made, 0))
        (void)sim_vc_make(part, cell->next, event->vc);
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
    if (!part->sim->is_large)
        sim_ask_routing(part, v);
    list_head(part, v, event->index);
}

/* What the next events touch. */
SIM_INLINE void fetch_looks(const struct part *part, const struct emu_wheel_chunk *chunk, size_t n)
{
    sim_fetch_chunk(chunk->next);
    for (size_t i = 0; i < n; i++)
        __builtin_prefetch(&part->vcs[chunk->events[i].index], 1);
}

SIM_INLINE void fetch_arrivals(const struct part *part, const struct emu_wheel_chunk *chunk, size_t n)
{
    fetch_looks(part, chunk, n);
    for (size_t i = 0; i < n; i++)
        __builtin_prefetch(&part->cells[chunk->events[i].payload], 1);
}

/* In the order of their sending, as sim_routers_arrive(). */
void sim_plain_arrive(struct part *part, const struct emu_wheel_list *list)
{
    for (struct emu_wheel_chunk *chunk = emu_wheel_oldest(list); chunk; chunk = emu_wheel_done(&part->wheel, chunk)) {
        size_t n = emu_wheel_count(list, chunk);

        part->totals.events += n;
        reserve(part, n);
        if (part->sim->is_large)
            fetch_arrivals(part, chunk, n);
        for (size_t i = 0; i < n; i++)
            arrive(part, &chunk->events[i]);
    }
}

void sim_plain_look(struct part *part, const struct emu_wheel_list *list)
{
    for (struct emu_wheel_chunk *chunk = emu_wheel_newest(list); chunk; chunk = emu_wheel_done(&part->wheel, chunk)) {
        size_t n = emu_wheel_count(list, chunk);

        part->totals.events += n;
        reserve(part, n);
        if (part->sim->is_large)
            fetch_looks(part, chunk, n);
        for (size_t i = 0; i < n; i++) {
            struct in_vc *v = &part->vcs[chunk->events[i].index];

            v->look_slot = 0;
            list_head_if_due(part, v, chunk->events[i].index);
            if (v->is_listed && v->options == SIM_NONE && !part->sim->is_large)
                sim_ask_routing(part, v); /* else fetch() does */
        }
    }
}

void sim_plain_wake(struct part *part, struct out_link *out)
{
    uint32_t first_vc = part->sim->routers[out->from].first_vc;

    reserve(part, 64);
    for (uint64_t waiters = out->waiters; waiters != 0; waiters &= waiters - 1) {
        uint32_t channel = first_vc + (uint32_t)__builtin_ctzll(waiters);

        list_head_if_due(part, &part->vcs[channel], channel);
    }
    out->waiters = 0;
}

/* ---- looking at one head ---- */

/* How much a channel is liked: by its tokens, then chance; and, below these, which it is. One without the room that a
 * head needs is liked less than least_merit(). */
static inline uint32_t merit(const struct out_link *out, uint32_t vc, uint64_t chance, uint32_t way)
{
    return (uint32_t)out->tokens[vc] << MERIT_TOKENS | ((uint32_t)chance & 0xff << MERIT_CHANCE) | way << MERIT_WAY |
           vc;
}

static inline uint32_t least_merit(const struct slot *s, const struct in_vc *v)
{
    return (v->tokens > s->least_tokens ? v->tokens : s->least_tokens) << MERIT_TOKENS;
}

/* The merit of the best channel of these ways, whose links are idle; 0: all links are down. */
SIM_INLINE uint32_t best_of(const struct out_link *outs, const struct emu_route_option *ways, uint32_t mask,
                            uint64_t chance)
{
    uint32_t best = 0;

    for (; mask != 0; mask &= mask - 1) {
        uint32_t i = (uint32_t)__builtin_ctz(mask);
        const struct out_link *out = &outs[ways[i].link];
        uint32_t more = ways[i].more_vcs;
        uint32_t m;

        if (__builtin_expect((out->flags & OUT_IS_UP) == 0, 0))
            continue;
        m = merit(out, ways[i].vc, chance, i);
        best = m > best ? m : best;
        for (; more != 0; more &= more - 1) {
            chance = chance >> 8 | chance << 56;
            m = merit(out, (uint32_t)__builtin_ctz(more), chance, i);
            best = m > best ? m : best;
        }
        chance = chance >> 8 | chance << 56;
    }
    return best;
}

/* Random bits of a head: a byte at MERIT_CHANCE, and others that come there when they are rotated. */
static inline uint64_t chance_of(const struct slot *s, uint32_t channel)
{
    uint64_t chance = (s->dice + channel) * GOLDEN;

    chance ^= chance >> 32;
    return chance << MERIT_CHANCE | chance >> (64 - MERIT_CHANCE);
}

/* Likewise when those of the lowest rank cannot be taken; 0: there is none. */
static __attribute__((noinline)) uint32_t best_of_others(const struct slot *s, const struct in_vc *v, uint32_t channel,
                                                         uint32_t mask)
{
    const struct emu_route_option *ways = &s->part->options[v->options];

    for (uint32_t rank = 1; rank < 1u << 7 && mask != 0; rank++) {
        uint32_t these = 0;
        uint32_t best;

        for (uint32_t rest = mask; rest != 0; rest &= rest - 1)
            these |= ways[__builtin_ctz(rest)].rank == rank ? rest & -rest : 0;
        best = best_of(s->sim->outs, ways, these, chance_of(s, channel));
        if (best >= least_merit(s, v))
            return best;
        mask &= ~these;
    }
    return 0;
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
SIM_INLINE void wait_for_way(const struct slot *s, struct in_vc *v, uint64_t start_ps, uint32_t idle)
{
    const uint64_t *free_ps = s->sim->free_ps;
    const struct emu_route_option *ways = &s->part->options[v->options];
    uint64_t end_ps = start_ps + s->part->clock_ps;
    uint64_t later_ps = UINT64_MAX; /* beyond end_ps */
    uint32_t n = v->n_ways;

    for (uint32_t i = 0; i < SIM_WAYS_MOSTLY; i++) { /* of idle ones: wraps, far away */
        uint64_t ps = (free_ps[ways[i].link] - end_ps) | -(uint64_t)(i >= n);

        later_ps = ps < later_ps ? ps : later_ps;
    }
    for (uint32_t i = SIM_WAYS_MOSTLY; __builtin_expect(i < n, 0); i++)
        later_ps = free_ps[ways[i].link] - end_ps < later_ps ? free_ps[ways[i].link] - end_ps : later_ps;
    if (__builtin_expect(idle != 0, 0) && !await_tokens(s, v, start_ps, idle))
        sim_look_again(s->part, v, (uint32_t)(v - s->part->vcs), start_ps);
    else if (later_ps <= INT64_MAX)
        sim_look_again(s->part, v, (uint32_t)(v - s->part->vcs), end_ps + later_ps);
}

/* ---- going on ---- */

/* The packet in front is gone when its tail is out. */
SIM_INLINE void next_head(const struct slot *s, struct in_vc *v, uint32_t units, uint32_t next, uint64_t tail_ps)
{
    v->units = (uint16_t)(v->units - units);
    v->ready_ps = tail_ps;
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
    uint64_t at_ps = sim_later(v->ready_ps, s->start_ps);
    uint32_t is_hop = (out->flags & OUT_TO_NIC) == 0;

    cell->packet.flags |= way->flags;
    cell->packet.route_state = way->route_state;
    cell->packet.hops = (uint8_t)(cell->packet.hops + is_hop);
    part->totals.packet_hops += is_hop;
    out->asker = 0;
    out->turn = v->local;
    sim_options_free(part, v->options);
    next_head(
        s, v, units, next,
        sim_transmit(part, (struct sim_start){ q->link, q->vc, number, v->tokens }, at_ps, sim_tail_of_head(part, v)));
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

static __attribute__((noinline)) bool comes_too_slowly(struct part *part, struct in_vc *v, uint32_t link)
{
    uint64_t at_ps = sim_keeps_up_at(part, v, link);

    if (at_ps == 0)
        return false;
    sim_look_again(part, v, (uint32_t)(v - part->vcs), at_ps);
    return true;
}

/* A head asks for the link of its best channel. If another has done so in this slot, the link takes the one whose
 * channel comes first behind that which it served last; the other loses. */
SIM_INLINE void ask(const struct slot *s, struct in_vc *v, uint32_t best)
{
    struct part *part = s->part;
    uint32_t way = best >> MERIT_WAY & (EMU_ROUTE_OPTIONS_MAX - 1);
    struct request q = {
        .v = v, .way = (uint8_t)way, .vc = best % (1u << MERIT_WAY), .link = part->options[v->options + way].link
    };
    struct out_link *out = &s->sim->outs[q.link];
    struct request *other = &part->requests[out->asker - 1];

    if (s->is_stored && comes_too_slowly(part, v, q.link))
        return;
    if (__builtin_expect(out->asker == 0, 1)) {
        part->requests[part->n_requests] = q;
        out->asker = ++part->n_requests;
        return;
    }
    if ((uint16_t)(v->local - out->turn - 1) < (uint16_t)(other->v->local - out->turn - 1)) {
        part->losers[part->n_losers++] = other->v;
        *other = q;
    } else {
        part->losers[part->n_losers++] = v;
    }
}

/* None of its ways of the lowest rank can be taken. */
static __attribute__((noinline)) void look_further(const struct slot *s, struct in_vc *v, uint32_t channel,
                                                   uint32_t idle)
{
    uint32_t best = best_of_others(s, v, channel, idle & ~v->first_ways);

    if (best != 0)
        ask(s, v, best);
    else
        wait_for_way(s, v, s->start_ps, idle);
}

/* Each of some heads, SIM_LOOK_BATCH at most, asks for a link or waits. */
static __attribute__((noinline)) void look_at(const struct slot *s, const uint32_t *looks, uint32_t n)
{
    struct part *part = s->part;
    const struct emu_route_option *options = part->options;
    struct look {
        uint32_t channel;
        uint32_t idle; /* mask of its ways */
    } can[SIM_LOOK_BATCH], cannot[SIM_LOOK_BATCH];
    uint32_t n_can = 0;
    uint32_t n_cannot = 0;

    /* Nobody foresees whose links are idle, so that this is told from what memory has, without a branch. */
    for (uint32_t i = 0; i < n; i++) {
        struct in_vc *v = &part->vcs[looks[i]];
        uint32_t idle =
            sim_idle_ways(s->sim->free_ps, &options[v->options], v->n_ways, s->end_ps) & ((1u << v->n_ways) - 1);
        uint32_t has_idle = (idle & v->first_ways) != 0;

        v->is_listed = false;
        can[n_can] = cannot[n_cannot] = (struct look){ .channel = looks[i], .idle = idle };
        n_can += has_idle;
        n_cannot += !has_idle;
    }
    for (uint32_t i = 0; i < n_can; i++) {
        struct in_vc *v = &part->vcs[can[i].channel];
        uint32_t best =
            best_of(s->sim->outs, &options[v->options], can[i].idle & v->first_ways, chance_of(s, can[i].channel));

        if (__builtin_expect(best >= least_merit(s, v), 1))
            ask(s, v, best);
        else
            look_further(s, v, can[i].channel, can[i].idle);
    }
    for (uint32_t i = 0; i < n_cannot; i++) {
        struct in_vc *v = &part->vcs[cannot[i].channel];

        if (__builtin_expect(v->n_ways == 0, 0))
            drop(s, v);
        else if (__builtin_expect(cannot[i].idle != 0, 0))
            look_further(s, v, cannot[i].channel, cannot[i].idle);
        else
            wait_for_way(s, v, s->start_ps, 0);
    }
}

/* In the next slot, or later. */
static void lose(const struct slot *s, struct in_vc *v)
{
    const struct emu_route_option *ways = &s->part->options[v->options];
    uint32_t idle = sim_idle_ways(s->sim->free_ps, ways, v->n_ways, s->end_ps + s->part->clock_ps);

    wait_for_way(s, v, s->end_ps, idle & ((1u << v->n_ways) - 1));
}

void sim_plain_decide(struct part *part)
{
    struct emu_sim *sim = part->sim;
    const struct slot s = {
        .part = part,
        .sim = sim,
        .start_ps = part->slot_ps,
        .end_ps = part->slot_ps + part->clock_ps,
        .least_tokens = sim->p.room == EMU_CHARGE_FULL ? sim->full_tokens : 0,
        .is_stored = sim->p.slow_input == EMU_SLOW_STORE,
        .dice = emu_random_mix(sim->options.seed + part->slot * GOLDEN),
    };

    for (uint32_t i = 0, batch; i < part->n_looks; i += batch) {
        batch = part->n_looks - i < SIM_LOOK_BATCH ? part->n_looks - i : SIM_LOOK_BATCH;
        if (sim->is_large)
            fetch(part, &part->looks[i], batch);
        look_at(&s, &part->looks[i], batch);
    }
    for (uint32_t i = 0; i < part->n_requests; i++)
        go(&s, &part->requests[i]);
    for (uint32_t i = 0; i < part->n_losers; i++)
        lose(&s, part->losers[i]);
    part->n_looks = 0;
    part->n_requests = 0;
    part->n_losers = 0;
}
