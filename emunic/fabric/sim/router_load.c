/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Loads: what a router sees of its own links, and what its neighbours told it.
 *
 * Near: units of the asking packet's class that are on the link or in the far buffer and not yet credited, because the
 * other class has buffers of its own; and those of heads here that would like to take this link first. Far: a router's
 * own load is the units in its input buffers divided by its links to other routers, rounded up; its neighbours know it
 * as it was at the end of a period of load_period_clocks, and one (the longest) hop time later.
 *
 * A router of another thread may be anywhere in the same window, before or behind. So each router keeps its load at the
 * end of the last SIM_LOAD_ENTRIES periods; an entry whose period has passed never changes until the ring comes round,
 * and the delay is at least a window. Readers therefore get the same answer whatever the threads do. An owner that had
 * no changes for some periods fills them in when the next change comes: entries first, `latest` after (release); a
 * reader that misses the entry looks at `latest` (acquire), and if that is too new the entry is there.
 */
#include "emunic/fabric/sim/state.h"

#define STRIDE       (SIM_LOAD_ENTRIES + 1)
#define PERIOD_SHIFT 24
#define UNITS_MASK   ((UINT64_C(1) << PERIOD_SHIFT) - 1)

uint32_t sim_near_load(const struct emu_route_view *view, uint32_t link, uint8_t traffic_class)
{
    const struct part *part = view->ctx;
    const struct emu_sim *sim = part->sim;
    const struct out_link *out = &sim->outs[link];
    const struct link_kind *kind = &sim->kinds[out->kind];
    uint32_t tokens = 0;

    if ((out->flags & OUT_TO_NIC) == 0) {
        for (uint32_t vc = 0; vc < kind->n_vcs; vc++) {
            if (kind->class_of_vc[vc] == traffic_class || kind->class_of_vc[vc] == EMU_VC_ANY)
                tokens += (uint32_t)(kind->capacity_tokens[vc] - out->tokens[vc]);
        }
    }
    return tokens * sim->p.token_units + out->waiting_units;
}

uint32_t sim_far_load(const struct emu_route_view *view, uint32_t link)
{
    const struct part *part = view->ctx;
    const struct emu_sim *sim = part->sim;
    const struct out_link *out = &sim->outs[link];
    const uint64_t *entries;
    uint64_t period, value;

    if (!sim->loads || (out->flags & OUT_TO_NIC) != 0 || part->slot_ps < sim->far_ps + sim->load_period_ps)
        return 0;
    period = (part->slot_ps - sim->far_ps) / sim->load_period_ps; /* stored + 1, so this is the one before */
    entries = &sim->loads[(size_t)sim->ins[link].router * STRIDE];
    value = __atomic_load_n(&entries[period % SIM_LOAD_ENTRIES], __ATOMIC_RELAXED);
    if (value >> PERIOD_SHIFT != period) {
        value = __atomic_load_n(&entries[SIM_LOAD_ENTRIES], __ATOMIC_ACQUIRE);
        if (value >> PERIOD_SHIFT > period)
            value = __atomic_load_n(&entries[period % SIM_LOAD_ENTRIES], __ATOMIC_RELAXED);
    }
    return (uint32_t)(value & UNITS_MASK);
}

void sim_load_changed(struct part *part, uint32_t router)
{
    struct emu_sim *sim = part->sim;
    struct router *r = &sim->routers[router];
    uint64_t *entries = &sim->loads[(size_t)router * STRIDE];
    uint64_t period = part->slot_ps / sim->load_period_ps + 1;
    uint64_t old_period = r->load >> PERIOD_SHIFT;
    uint64_t value = r->n_outputs == 0 ? r->units : (r->units + r->n_outputs - 1) / r->n_outputs;

    if (value > UNITS_MASK)
        value = UNITS_MASK;
    if (period - old_period > SIM_LOAD_ENTRIES)
        old_period = period - SIM_LOAD_ENTRIES;
    while (++old_period < period) {
        __atomic_store_n(&entries[old_period % SIM_LOAD_ENTRIES], old_period << PERIOD_SHIFT | (r->load & UNITS_MASK),
                         __ATOMIC_RELAXED);
    }
    r->load = period << PERIOD_SHIFT | value;
    __atomic_store_n(&entries[period % SIM_LOAD_ENTRIES], r->load, __ATOMIC_RELAXED);
    __atomic_store_n(&entries[SIM_LOAD_ENTRIES], r->load, __ATOMIC_RELEASE);
}
