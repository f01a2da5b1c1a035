/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tokens that come back, and who waits for them.
 *
 * A head, or a NIC, that finds too few tokens in a channel leaves word there: how many let it go on (the fewest that
 * any needs), and who it is. A credit that makes it so many wakes all who wait for the link. Meanwhile the link
 * stalls.
 */
#include "emunic/fabric/sim/head.h"

void sim_await_tokens(const struct emu_sim *sim, struct out_link *out, uint32_t link, uint32_t vc, uint32_t needed,
                      uint64_t since_ps)
{
    uint16_t *wanted = &sim->wanted[sim_out_vc(sim, link, vc)];

    if ((out->wanted_vcs >> vc & 1) == 0 || *wanted > needed)
        *wanted = (uint16_t)needed;
    out->wanted_vcs |= (uint8_t)(1u << vc);
    if ((out->flags & OUT_STALLED) == 0) {
        out->flags |= OUT_STALLED;
        sim->stalled_ps[link] = since_ps;
    }
}

static void link_changed(struct part *part, uint32_t link)
{
    struct out_link *out = &part->sim->outs[link];

    if ((out->flags & OUT_FROM_NIC) != 0) {
        sim_list_nic(part, out->from);
        return;
    }
    if (part->sim->is_plain) {
        sim_plain_wake(part, out);
        return;
    }
    part->sim->routers[out->from].look |= out->waiters;
    out->waiters = 0;
    sim_list_router(part, out->from);
}

SIM_INLINE void credit(struct part *part, const struct emu_event *event, bool has_loads)
{
    struct out_link *out = &part->sim->outs[event->index];
    uint32_t unblocked = 0;

    sim_return_tokens(out, event->vc, event->payload);
    if (has_loads)
        sim_load_credited(part, event->index, event->vc, event->payload);
    /* Shared tokens may be what another channel waits for. */
    for (uint32_t wanted = out->wanted_vcs; __builtin_expect(wanted != 0, 0); wanted &= wanted - 1) {
        uint32_t vc = (uint32_t)__builtin_ctz(wanted);

        if (sim_free_tokens(out, vc) >= part->sim->wanted[sim_out_vc(part->sim, event->index, vc)])
            unblocked |= 1u << vc;
    }
    if (unblocked == 0)
        return;
    out->wanted_vcs &= (uint8_t)~unblocked;
    link_changed(part, event->index);
}

SIM_INLINE void credit_links(struct part *part, const struct emu_wheel_list *list, bool has_loads)
{
    for (struct emu_wheel_chunk *chunk = emu_wheel_newest(list); chunk; chunk = emu_wheel_done(&part->wheel, chunk)) {
        size_t n = emu_wheel_count(list, chunk);

        part->totals.events += n;
        if (part->sim->is_large)
            sim_fetch_chunk(chunk->next);
        for (size_t i = 0; part->sim->is_large && i < n; i++)
            __builtin_prefetch(&part->sim->outs[chunk->events[i].index], 1);
        for (size_t i = 0; i < n; i++)
            credit(part, &chunk->events[i], has_loads);
    }
}

void sim_credit_links(struct part *part, const struct emu_wheel_list *list)
{
    if (part->sim->loads)
        credit_links(part, list, true);
    else
        credit_links(part, list, false);
}
