/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Loads: what a router sees of its own outputs, and what its neighbours tell it of theirs.
 *
 * Near: of a link out of a router and a class of traffic, the units that are on the link or in the far buffer and not
 * yet credited, and those of heads here that would like this link first. The other class has buffers of its own. The
 * number is kept up to date whenever it changes, so reading it costs nothing. Far: the same number of a neighbour's
 * output, as it was at the end of a period of load_period_clocks, and one (the longest) hop time later.
 *
 * A router of another thread may be anywhere in the same window, before or behind. So each number comes with its values
 * at the ends of the last SIM_LOAD_ENTRIES periods. They are written when the number changes for the first time in a
 * later period: entries first, the number after (release). A reader looks at the number (acquire): if that is of the
 * period that it asks for or before, it has not changed since; else the entry is there, and stays until the ring comes
 * round. The delay is at least a window, so the owner has done all of that period. Readers therefore get the same
 * answer whatever the threads do.
 */
#include "emunic/fabric/sim/state.h"

uint32_t sim_near_load(const struct emu_route_view *view, uint32_t link, uint8_t traffic_class)
{
    const struct part *part = view->ctx;
    const struct emu_sim *sim = part->sim;

    return (uint32_t)(sim->loads[sim_load_index(sim, link, traffic_class)] & SIM_LOAD_MASK);
}

uint32_t sim_far_load(const struct emu_route_view *view, uint32_t link, uint8_t traffic_class)
{
    struct part *part = view->ctx;
    const struct emu_sim *sim = part->sim;
    size_t index = sim_load_index(sim, link, traffic_class);
    uint64_t latest;

    if (part->far_slot != part->slot) {
        uint64_t least_ps = sim->far_ps + sim->load_period_ps;

        part->far_slot = part->slot;
        part->far_period = part->slot_ps < least_ps ? 0 : (part->slot_ps - sim->far_ps) / sim->load_period_ps;
    }
    if (part->far_period == 0)
        return 0; /* nothing was advertised so far */
    if (sim->world && sim->world->ghosts[link] != 0)
        return sim->world
            ->values[sim_ghost_index(sim->world, part->far_period, sim->world->ghosts[link] - 1) + traffic_class];
    latest = __atomic_load_n(&sim->loads[index], __ATOMIC_ACQUIRE);
    if (latest >> SIM_LOAD_BITS <= part->far_period)
        return (uint32_t)(latest & SIM_LOAD_MASK);
    return __atomic_load_n(&sim->past_loads[index].units[part->far_period % SIM_LOAD_ENTRIES], __ATOMIC_RELAXED);
}

void sim_load_next_period(struct part *part)
{
    const struct emu_sim *sim = part->sim;

    part->load_period = part->slot_ps / sim->load_period_ps + 1; /* 0: before all time */
    part->load_end_ps = part->load_period * sim->load_period_ps;
}

void sim_load_keep(const struct emu_sim *sim, size_t index, uint64_t period)
{
    uint16_t *past = sim->past_loads[index].units;
    uint64_t units = sim->loads[index] & SIM_LOAD_MASK;
    uint64_t old = sim->loads[index] >> SIM_LOAD_BITS;
    uint64_t entry;

    if (units > UINT16_MAX)
        units = UINT16_MAX;
    if (period - old > SIM_LOAD_ENTRIES)
        old = period - SIM_LOAD_ENTRIES;
    entry = old % SIM_LOAD_ENTRIES;
    for (; old < period; old++) {
        __atomic_store_n(&past[entry], (uint16_t)units, __ATOMIC_RELAXED);
        entry = entry + 1 == SIM_LOAD_ENTRIES ? 0 : entry + 1;
    }
}
