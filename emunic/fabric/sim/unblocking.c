/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Credits that free a blocked packet (sim->options.count_unblocking), by channel, on links between routers.
 *
 * A head is blocked if none of its ways has room for it: in flow control's sense, so that a link that is busy does
 * not count, because its packet ends by itself. A credit frees it if it gives room to one of its ways. All credits of
 * a slot are judged by what was before the first of them, so their order changes nothing.
 * Source: spec/machines.md 5.5, BGL-7 ("fraction of token-acks that free a blocked packet").
 */
#include "emunic/fabric/sim/head.h"

/* A credit. */
struct gain {
    uint32_t link;
    uint32_t vc;
    uint32_t tokens; /* free in the channel, with it */
};

static uint32_t room_needed(const struct emu_sim *sim, const struct out_link *out, uint32_t vc,
                            const struct emu_route_option *way, uint32_t tokens)
{
    if ((out->bubble_vcs >> vc & 1) != 0)
        return sim->full_tokens << way->is_entry;
    return sim->p.room == EMU_CHARGE_FULL && tokens < sim->full_tokens ? sim->full_tokens : tokens;
}

/* Has the head no room on any way, and does the credit give it some? */
static bool frees(const struct part *part, const struct in_vc *v, const struct gain *g)
{
    const struct emu_sim *sim = part->sim;
    const struct emu_route_option *ways = &part->options[v->options];
    bool is_freed = false;

    for (uint32_t i = 0; i < v->n_ways; i++) {
        const struct out_link *out = &sim->outs[ways[i].link];

        if ((out->flags & OUT_IS_UP) == 0)
            continue;
        for (uint32_t vcs = emu_route_vcs(&ways[i]); vcs != 0; vcs &= vcs - 1) {
            uint32_t vc = (uint32_t)__builtin_ctz(vcs);
            uint32_t needed = room_needed(sim, out, vc, &ways[i], v->tokens);

            if (sim_free_tokens(out, vc) >= needed)
                return false;
            is_freed = is_freed || (ways[i].link == g->link && vc == g->vc && g->tokens >= needed);
        }
    }
    return is_freed;
}

static bool frees_any(const struct part *part, const struct router *r, const struct gain *g)
{
    for (uint32_t local = 0; local < r->n_vcs; local++) {
        const struct in_vc *v = sim_vc_find(part, r->first_vc + local);

        /* With options it has been looked at before, and is still here. */
        if (v && v->first != SIM_NONE && v->options != SIM_NONE && frees(part, v, g))
            return true;
    }
    return false;
}

static void count(struct part *part, const struct emu_event *event)
{
    const struct emu_sim *sim = part->sim;
    const struct out_link *out = &sim->outs[event->index];
    struct gain g = { .link = event->index, .vc = event->vc };
    struct out_link after = *out;

    if ((out->flags & (OUT_FROM_NIC | OUT_TO_NIC)) != 0)
        return;
    sim_return_tokens(&after, g.vc, event->payload);
    g.tokens = sim_free_tokens(&after, g.vc);
    part->totals.credits_returned[g.vc]++;
    if (sim_free_tokens(out, g.vc) < 2 * sim->full_tokens) /* nobody needs more */
        part->totals.credits_unblocking[g.vc] += frees_any(part, &sim->routers[out->from], &g);
}

void sim_count_unblocking(struct part *part, const struct emu_wheel_list *list)
{
    for (const struct emu_wheel_chunk *chunk = emu_wheel_newest(list); chunk; chunk = chunk->next) {
        size_t n = emu_wheel_count(list, chunk);

        for (size_t i = 0; i < n; i++)
            count(part, &chunk->events[i]);
    }
}
