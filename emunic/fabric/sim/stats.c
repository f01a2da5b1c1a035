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
    uint32_t index = sim_vc_index(sim, channel);

    return index == SIM_NONE ? 0 : sim->parts[sim->routers[router].part].vcs[index].units;
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
    const struct link_kind *kind = &sim->kinds[out->kind];

    assert(link < sim->m->n_links);
    *stats_out = (struct emu_sim_link_stats){
        .units = out->units,
        .packets = sim_packets(sim, link),
        .busy_ps = sim_busy_ps(sim, link),
        .stall_ps = sim->stalls[link].sum_ps,
        .lanes_up = (out->flags & OUT_IS_UP) != 0 ? kind->lanes_up : 0,
    };
    if ((out->flags & OUT_STALLED) != 0 && sim->now_ps > sim->stalls[link].since_ps)
        stats_out->stall_ps += sim->now_ps - sim->stalls[link].since_ps;
    for (uint32_t vc = 0; vc < kind->n_vcs; vc++) {
        stats_out->vc_packets[vc] = sim->sent[sim_out_vc(sim, link, vc)];
        if (sim->occupancy && (out->flags & OUT_TO_NIC) == 0)
            stats_out->vc_occupancy[vc] =
                sim->occupancy[in->first_vc + vc] + units_in(sim, in->first_vc + vc, in->router) * sim->now_ps;
    }
    if (sim->errors) {
        stats_out->crc_errors = sim->errors[link].crc_errors;
        stats_out->retransmissions = sim->errors[link].retransmissions;
    }
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
    *totals_out = sum;
}

void emu_sim_reset_stats(struct emu_sim *sim)
{
    for (uint32_t i = 0; i < sim->n_parts; i++) {
        struct emu_sim_totals *t = &sim->parts[i].totals;

        *t = (struct emu_sim_totals){ .in_network = t->in_network, .trace_hash = t->trace_hash };
    }
    for (uint32_t id = 0; id < sim->m->n_links; id++) {
        sim->outs[id].units = 0;
        sim->stalls[id] = (struct link_stall){ .since_ps = sim->now_ps };
        if (sim->errors) {
            sim->errors[id].crc_errors = 0;
            sim->errors[id].retransmissions = 0;
        }
    }
    for (size_t i = 0; i < sim_out_vc(sim, sim->m->n_links, 0); i++)
        sim->sent[i] = 0;
    free(sim->epochs);
    sim->epochs = NULL;
    for (uint32_t i = 0; sim->occupancy && i < sim->m->n_routers; i++) {
        const struct router *r = &sim->routers[i];

        for (uint32_t j = r->first_vc; j < r->first_vc + r->n_vcs; j++)
            sim->occupancy[j] = -(units_in(sim, j, i) * sim->now_ps);
    }
}

size_t emu_sim_memory(const struct emu_sim *sim)
{
    const struct emu_machine *m = sim->m;
    size_t bytes =
        sizeof(*sim) + sim->n_kinds * sizeof(*sim->kinds) +
        m->n_links * (sizeof(*sim->outs) + sizeof(*sim->free_ps) + sizeof(*sim->ins) + sizeof(*sim->stalls)) +
        sim->n_vcs * (sim->vcs ? sizeof(*sim->vcs) : sizeof(*sim->vc_index)) +
        sim_out_vc(sim, m->n_links, 0) * (sizeof(*sim->sent) + sizeof(*sim->wanted)) +
        (sim->n_words + 64 * (size_t)sim->mark_words) * sizeof(*sim->heads) + m->n_routers * sizeof(*sim->routers) +
        m->n_nodes * (sizeof(*sim->nics) + sizeof(*sim->nic_router) + (sim->drained_ps ? sizeof(*sim->drained_ps) : 0));

    if (sim->loads)
        bytes += sim_load_index(m->n_links, 0) * sizeof(*sim->loads);
    if (sim->occupancy)
        bytes += sim->n_vcs * sizeof(*sim->occupancy);
    if (sim->ports)
        bytes += m->n_links * sizeof(*sim->ports);
    if (sim->errors)
        bytes += m->n_links * sizeof(*sim->errors);
    if (sim->epochs)
        bytes += m->n_links * sizeof(*sim->epochs);
    for (uint32_t i = 0; i < sim->n_parts; i++) {
        const struct part *part = &sim->parts[i];

        bytes += sizeof(*part) + emu_wheel_memory(&part->wheel) + part->cell_capacity * sizeof(*part->cells) +
                 part->option_capacity * sizeof(*part->options) + part->vc_capacity * sizeof(*part->vcs) +
                 part->timer_capacity * sizeof(*part->timers) +
                 (part->end_router - part->first_router) * sizeof(*part->routers) +
                 sim->vcs_of_router_max * (sizeof(*part->candidates) + sizeof(*part->winners)) +
                 part->looks_max * (sizeof(*part->looks) + sizeof(*part->requests) + sizeof(struct in_vc *)) +
                 part->report_capacity * sizeof(*part->reports);
        for (uint32_t j = 0; j < sim->n_parts; j++)
            bytes += sizeof(part->out[j]) + part->out[j].arrival_capacity * sizeof(*part->out[j].arrivals) +
                     part->out[j].credit_capacity * sizeof(*part->out[j].credits);
    }
    return bytes + m->n_nodes * sizeof(*sim->parts[0].nics);
}
