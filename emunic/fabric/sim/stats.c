/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What was counted. Sums over partitions are plain sums, so they do not depend on how routers were split; counts of
 * packets in the network may be negative in one partition and are right together.
 */
#include <stdlib.h>

#include "emunic/fabric/sim/state.h"

uint64_t sim_packets(const struct emu_sim *sim, uint32_t link)
{
    const struct out_link *out = &sim->outs[link];
    uint64_t packets = 0;

    for (uint32_t vc = 0; vc < sim->kinds[out->kind].n_vcs; vc++)
        packets += sim->sent[sim_out_vc(sim, link, vc)];
    return packets;
}

/* Units in the buffer of a channel of a router. */
static uint64_t units_in(const struct emu_sim *sim, uint32_t channel, uint32_t router)
{
    const struct in_vc *v = sim_vc_find(&sim->parts[sim->routers[router].part], channel);

    return !v ? 0 : v->units;
}

/* From what was sent since the lanes changed last; rounded once, where transmissions are rounded each. */
uint64_t sim_busy_ps(const struct emu_sim *sim, uint32_t link)
{
    struct link_epoch epoch = !sim->epochs ? (struct link_epoch){ 0 } : sim->epochs[link];
    const struct link_kind *kind = &sim->kinds[sim->outs[link].kind];
    uint64_t units =
        sim->outs[link].units - epoch.units + (sim_packets(sim, link) - epoch.packets) * kind->overhead_units;

    return epoch.busy_ps + (uint64_t)((unsigned __int128)units * kind->unit_ps >> SIM_RATE_SHIFT);
}

void emu_sim_link_stats(const struct emu_sim *sim, uint32_t link, struct emu_sim_link_stats *stats_out)
{
    const struct out_link *out = &sim->outs[link];
    const struct in_link *in = &sim->ins[link];
    const struct link_kind *kind = &sim->kinds[(in->flags & IN_IS_OWN) != 0 ? in->kind : out->kind];
    bool is_unused = (in->flags & IN_IS_OWN) != 0 && in->part < sim->n_parts && out->flags == 0; /* not made yet */

    assert(link < sim->m->n_links);
    *stats_out = (struct emu_sim_link_stats){
        .units = out->units,
        .packets = sim_packets(sim, link),
        .busy_ps = sim_busy_ps(sim, link),
        .stall_ps = out->stall_ps,
        .lanes_up = (out->flags & OUT_IS_UP) != 0 || is_unused ? kind->lanes_up : 0,
    };
    if ((out->flags & OUT_STALLED) != 0 && sim->now_ps > sim->stalled_ps[link])
        stats_out->stall_ps += sim->now_ps - sim->stalled_ps[link];
    for (uint32_t vc = 0; vc < kind->n_vcs; vc++) {
        stats_out->vc_packets[vc] = sim->sent[sim_out_vc(sim, link, vc)];
        if (sim->occupancy && (in->flags & IN_IS_OWN) != 0)
            stats_out->vc_occupancy[vc] =
                sim->occupancy[in->first_vc + vc] + units_in(sim, in->first_vc + vc, in->router) * sim->now_ps;
    }
    if (sim->errors) {
        stats_out->crc_errors = sim->errors[link].crc_errors;
        stats_out->retransmissions = sim->errors[link].retransmissions;
    }
}

/* Sums of all processes, but for the one figure that is none. */
static void add_others(const struct emu_sim *sim, struct emu_sim_totals *sum)
{
    uint64_t latency_max_ps = sim_world_most(sim, sum->latency_max_ps);

    static_assert(sizeof(*sum) % sizeof(uint64_t) == 0, "all of them are counts");
    sim_world_sum(sim, (uint64_t *)sum, sizeof(*sum) / sizeof(uint64_t));
    sum->latency_max_ps = latency_max_ps;
}

void emu_sim_totals(const struct emu_sim *sim, struct emu_sim_totals *totals_out)
{
    struct emu_sim_totals sum = { 0 };

    for (uint32_t i = 0; i < sim->n_parts; i++) {
        const struct emu_sim_totals *t = &sim->parts[i].totals;

        sum.entered += t->entered;
        sum.delivered += t->delivered;
        sum.deposited += t->deposited;
        sum.delivered_units += t->delivered_units;
        sum.lost += t->lost;
        sum.unroutable += t->unroutable;
        sum.in_network += t->in_network;
        sum.packet_hops += t->packet_hops;
        sum.events += t->events;
        sum.nonminimal += t->nonminimal;
        sum.latency_sum_ps += t->latency_sum_ps;
        sum.network_latency_sum_ps += t->network_latency_sum_ps;
        if (t->latency_max_ps > sum.latency_max_ps)
            sum.latency_max_ps = t->latency_max_ps;
        for (uint32_t vc = 0; vc < EMU_VCS_MAX; vc++) {
            sum.credits_returned[vc] += t->credits_returned[vc];
            sum.credits_unblocking[vc] += t->credits_unblocking[vc];
        }
        sum.trace_hash += t->trace_hash;
    }
    if (sim->world)
        add_others(sim, &sum);
    *totals_out = sum;
}

/* What is zero is not written: it may take no memory so far. */
static void reset_links(struct emu_sim *sim, struct sim_links links)
{
    for (uint32_t id = links.first; id < links.end; id++) {
        if ((sim->outs[id].flags & OUT_IS_OWN) == 0)
            continue; /* or not made yet */
        sim->outs[id].units = 0;
        sim->outs[id].stall_ps = 0;
        if ((sim->outs[id].flags & OUT_STALLED) != 0)
            sim->stalled_ps[id] = sim->now_ps;
        for (uint32_t vc = 0; vc < sim->vcs_of_link_max; vc++) {
            if (sim->sent[sim_out_vc(sim, id, vc)] != 0)
                sim->sent[sim_out_vc(sim, id, vc)] = 0;
        }
        if (sim->errors) {
            sim->errors[id].crc_errors = 0;
            sim->errors[id].retransmissions = 0;
        }
    }
}

void emu_sim_reset_stats(struct emu_sim *sim)
{
    for (uint32_t i = 0; i < sim->n_parts; i++) {
        struct emu_sim_totals *t = &sim->parts[i].totals;

        *t = (struct emu_sim_totals){ .in_network = t->in_network, .trace_hash = t->trace_hash };
    }
    for (uint32_t i = 0; i < sim->n_held; i++)
        reset_links(sim, sim->held[i]);
    free(sim->epochs);
    sim->epochs = NULL;
    for (uint32_t i = sim->first_router; sim->occupancy && sim_is_own(sim, i); i++) {
        const struct router *r = &sim->routers[i];

        for (uint32_t j = r->first_vc; j < r->first_vc + r->n_vcs; j++)
            sim->occupancy[j] = -(units_in(sim, j, i) * sim->now_ps);
    }
}

/* Of the parts, with what grows. */
static size_t parts_memory(const struct emu_sim *sim)
{
    size_t bytes = 0;

    for (uint32_t i = 0; i < sim->n_parts; i++) {
        const struct part *part = &sim->parts[i];

        bytes += sizeof(*part) + emu_wheel_memory(&part->wheel) + part->cell_capacity * sizeof(*part->cells) +
                 part->option_capacity * sizeof(*part->options) + part->vc_capacity * sizeof(*part->vcs) +
                 (part->timers[TIMERS].capacity + part->timers[ENDING_TIMERS].capacity) * sizeof(struct timer) +
                 (part->end_router - part->first_router) * sizeof(*part->routers) +
                 sim->vcs_of_router_max * (sizeof(*part->candidates) + sizeof(*part->winners)) +
                 part->looks_max * (sizeof(*part->looks) + sizeof(*part->requests) + sizeof(struct in_vc *)) +
                 part->report_capacity * sizeof(*part->reports);
        for (uint32_t j = 0; j < sim_n_outboxes(sim); j++)
            bytes += sizeof(part->out[j]) + part->out[j].arrival_capacity * sizeof(*part->out[j].arrivals) +
                     part->out[j].credit_capacity * sizeof(*part->out[j].credits);
    }
    return bytes;
}

/* What is kept for each link, of those that are held. */
static size_t links_memory(const struct emu_sim *sim)
{
    size_t each = sizeof(*sim->outs) + sizeof(*sim->next_out) + sizeof(*sim->free_ps) + sizeof(*sim->ins) +
                  sizeof(*sim->stalled_ps) + sim->vcs_of_link_max * (sizeof(*sim->sent) + sizeof(*sim->wanted));
    size_t n = 0;

    if (sim->loads)
        each += EMU_TRAFFIC_CLASSES * (sizeof(*sim->loads) + sizeof(*sim->past_loads));
    if (sim->ports)
        each += sizeof(*sim->ports);
    if (sim->errors)
        each += sizeof(*sim->errors);
    if (sim->epochs)
        each += sizeof(*sim->epochs);
    for (uint32_t i = 0; i < sim->n_held; i++)
        n += sim->held[i].end - sim->held[i].first;
    return n * each + sim->n_held * sizeof(*sim->held);
}

size_t emu_sim_memory(const struct emu_sim *sim)
{
    const struct emu_machine *m = sim->m;
    size_t n_nodes = 0;
    size_t each_node = sizeof(*sim->nics) + sizeof(*sim->parts[0].nics);
    size_t each_vc = sim->vcs ? sizeof(*sim->vcs) : sizeof(*sim->vc_index);

    for (uint32_t nid = 0; nid < m->n_nodes; nid++)
        n_nodes += emu_sim_owns(sim, nid);
    if (sim->drained_ps)
        each_node += sizeof(*sim->drained_ps);
    if (sim->occupancy)
        each_vc += sizeof(*sim->occupancy);
    return sizeof(*sim) + sim->n_kinds * sizeof(*sim->kinds) + links_memory(sim) + sim->n_own_vcs * each_vc +
           (sim->n_words + 64 * (size_t)sim->mark_words) * sizeof(*sim->heads) +
           sim->n_own_routers * sizeof(*sim->routers) + n_nodes * each_node + m->n_nodes * sizeof(*sim->nic_router) +
           parts_memory(sim) + (!sim->world ? 0 : sim_world_memory(sim));
}
