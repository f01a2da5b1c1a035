/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A network under a load that lasts.
 */
#include "emunic/experiments/loaded.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

static uint32_t pick(void *ctx, struct emu_random *random, uint32_t src_nid)
{
    const struct loaded *l = ctx;
    uint32_t nid = l->to[src_nid];

    if (nid != LOADED_ANY)
        return nid;
    do {
        nid = (uint32_t)emu_random_below(random, emu_machine_n_nodes(l->m));
    } while (nid == src_nid || l->is_probed[nid]);
    return nid;
}

int loaded_open(struct emu_exp *x, const char *machine, struct loaded *l_out)
{
    int r;

    *l_out = (struct loaded){ .x = x };
    r = emu_exp_machine(x, machine, &l_out->m);
    if (r < 0)
        return r;
    l_out->to = calloc(emu_machine_n_nodes(l_out->m), sizeof(*l_out->to));
    l_out->is_probed = calloc(emu_machine_n_nodes(l_out->m), sizeof(*l_out->is_probed));
    r = l_out->to && l_out->is_probed ? emu_fault_map_create(l_out->m, &l_out->faults) : -ENOMEM;
    if (r < 0) {
        loaded_close(l_out);
        return r;
    }
    loaded_silence(l_out);
    return 0;
}

static void end_run(struct loaded *l)
{
    emu_sim_destroy(l->sim);
    emu_generator_destroy(l->gen);
    l->sim = NULL;
    l->gen = NULL;
}

void loaded_close(struct loaded *l)
{
    end_run(l);
    emu_fault_map_destroy(l->faults);
    free(l->to);
    free(l->is_probed);
    emu_machine_destroy(l->m);
    l->m = NULL;
}

void loaded_silence(struct loaded *l)
{
    for (uint32_t nid = 0; nid < emu_machine_n_nodes(l->m); nid++) {
        l->to[nid] = EMU_NOBODY;
        l->is_probed[nid] = false;
    }
}

void loaded_send(struct loaded *l, uint32_t src_nid, uint32_t dst_nid)
{
    l->to[src_nid] = dst_nid;
}

void loaded_uniform(struct loaded *l)
{
    for (uint32_t nid = 0; nid < emu_machine_n_nodes(l->m); nid++) {
        l->to[nid] = LOADED_ANY;
        l->is_probed[nid] = false;
    }
}

void loaded_probe(struct loaded *l, uint32_t src_nid, uint32_t dst_nid)
{
    l->to[src_nid] = dst_nid;
    l->is_probed[dst_nid] = true;
}

static double gap_ns(const struct loaded *l, const struct loaded_spec *spec)
{
    const struct emu_packet_format *format = &emu_machine_nic(l->m)->format;

    if (spec->payload_gbs > 0)
        return format->payload_bytes_max / spec->payload_gbs;
    return spec->wire_gbs > 0 ?
               emu_packet_units(l->m, format->payload_bytes_max) * format->flit_bits / 8.0 / spec->wire_gbs :
               0;
}

void loaded_run(struct loaded *l, const struct loaded_spec *spec)
{
    const struct emu_exp_context *context = emu_exp_context(l->x);
    const struct emu_generator_options options = {
        .pattern = EMU_PATTERN_CUSTOM,
        .pick = pick,
        .pick_ctx = l,
        .seed = context->seed,
        .gap_ps = gap_ns(l, spec) * 1e3,
        .response_units = spec->is_answered ? emu_machine_nic(l->m)->format.response_header_flits : 0,
        .window = spec->window,
        .mode = (uint8_t)spec->mode,
    };
    const struct emu_sim_options sim_options = { .seed = context->seed,
                                                 .n_threads = context->n_threads,
                                                 .has_ends = spec->has_ends };
    char err[200] = "";

    end_run(l);
    if (l->error < 0)
        return;
    l->error = emu_generator_create(l->m, &options, &l->gen, err, sizeof(err));
    if (l->error < 0)
        emu_exp_detail(l->x, "%s", err);
    if (l->error == 0)
        l->error = emu_sim_create(l->m, l->faults, emu_generator_traffic(l->gen), &sim_options, &l->sim);
    if (l->error < 0)
        return;
    if (emu_sim_run(l->sim, spec->warm_ns * UINT64_C(1000)) == EMU_SIM_DEADLOCK)
        l->error = -EIO;
    emu_sim_reset_stats(l->sim);
    emu_generator_reset(l->gen);
    if (emu_sim_run(l->sim, (spec->warm_ns + UINT64_C(1) * spec->measure_ns) * 1000) == EMU_SIM_DEADLOCK)
        l->error = -EIO;
    if (l->error == 0)
        l->error = emu_generator_status(l->gen);
    l->measured_ns = spec->measure_ns;
}

double loaded_payload(const struct loaded *l, uint32_t first, uint32_t n)
{
    uint64_t packets = 0;

    if (l->error < 0 || !l->gen)
        return NAN;
    for (uint32_t nid = first; nid < first + n; nid++) {
        struct emu_node_figures figures;

        emu_generator_node(l->gen, nid, &figures);
        packets += figures.received;
    }
    return (double)packets * emu_machine_nic(l->m)->format.payload_bytes_max / l->measured_ns;
}

double loaded_wire(const struct loaded *l, uint32_t first, uint32_t n)
{
    const struct emu_packet_format *format = &emu_machine_nic(l->m)->format;
    double units = emu_packet_units(l->m, format->payload_bytes_max);

    return loaded_payload(l, first, n) * units * format->flit_bits / 8 / format->payload_bytes_max;
}

double loaded_latency_ns(const struct loaded *l, uint32_t nid)
{
    struct emu_node_figures figures;

    if (l->error < 0 || !l->gen)
        return NAN;
    emu_generator_node(l->gen, nid, &figures);
    return figures.received == 0 ? NAN : 1e-3 * (double)figures.received_latency_ps / (double)figures.received;
}

double loaded_busy(const struct loaded *l, bool (*has)(const struct emu_machine *m, const struct emu_link *link))
{
    double busy_ns = 0;
    uint32_t n = 0;

    if (l->error < 0 || !l->sim)
        return NAN;
    for (uint32_t id = 0; id < emu_machine_n_links(l->m); id++) {
        struct emu_sim_link_stats stats;
        struct emu_link link;

        if (emu_link_get(l->m, id, &link) < 0 || !has(l->m, &link))
            continue;
        emu_sim_link_stats(l->sim, id, &stats);
        busy_ns += 1e-3 * (double)stats.busy_ps;
        n++;
    }
    return busy_ns / n / l->measured_ns;
}
