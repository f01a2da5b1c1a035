/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Runs of Blue Gene/L machines: see bgl_run.h.
 *
 * Utilisation is bytes on the wire per byte time, acknowledgements and gaps included (270 of a full packet), as the
 * source counts; it is computed from packets and units, so it does not depend on how the simulator accounts a
 * transmission that a window's end cuts.
 * Source: spec/machines.md 5.5 (BGL).
 */
#include "emunic/experiments/bgl_run.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "emunic/fabric/link.h"
#include "emunic/fabric/topology.h"

double bgl_packet_start_ns(const struct emu_machine *m)
{
    return m->params.torus.bgl.packet_start_ps * 1e-3;
}

/* ---- bounds ---- */

/* Hops of all ways from one place of a ring to all, itself included. */
static double ring_hops(uint32_t size)
{
    double sum = 0;

    for (uint32_t i = 0; i < size; i++)
        sum += i < size - i ? i : size - i;
    return sum;
}

/* To a random other node. */
static double mean_hops(const uint32_t size[BGL_DIMS])
{
    double nodes = (double)size[0] * size[1] * size[2];
    double mean = 0;

    for (uint32_t dim = 0; dim < BGL_DIMS; dim++)
        mean += ring_hops(size[dim]) / size[dim];
    return mean * nodes / (nodes - 1);
}

void bgl_exchange_bound(const uint32_t size[BGL_DIMS], double *all_out, double of_out[BGL_DIMS])
{
    uint32_t longest = 1;
    double links = 0;

    *all_out = 0;
    for (uint32_t dim = 0; dim < BGL_DIMS; dim++)
        longest = size[dim] > longest ? size[dim] : longest;
    for (uint32_t dim = 0; dim < BGL_DIMS; dim++) {
        of_out[dim] = (double)size[dim] / longest;
        if (size[dim] > 1) {
            *all_out += of_out[dim];
            links++;
        } else {
            of_out[dim] = 0;
        }
    }
    *all_out /= links;
}

double bgl_exchange_cycles(const uint32_t size[BGL_DIMS], double wire_units)
{
    double nodes = (double)size[0] * size[1] * size[2];
    double longest = fmax(size[0], fmax(size[1], size[2]));

    return nodes * longest / 8 * wire_units;
}

/* ---- A run ---- */

int bgl_machine(struct emu_exp *x, struct bgl_run *run, const char *spec)
{
    int r;

    *run = (struct bgl_run){ 0 };
    r = emu_exp_machine(x, spec, &run->m);
    if (r < 0)
        return r;
    run->cycle_ps = 8e6 / run->m->params.link[EMU_LINK_X].mbps_per_lane;
    memcpy(run->size, run->m->params.torus.size, sizeof(run->size));
    run->full_units = run->m->params.router.packet_units_max;
    run->wire_units = run->full_units + run->m->params.router.packet_overhead_flits;
    run->vcs = run->m->topology->routing->n_vcs(run->m, EMU_LINK_X);
    run->dynamic_vcs = run->m->params.torus.bgl.dynamic_vcs;
    return 0;
}

int bgl_start_traffic(struct emu_exp *x, struct bgl_run *run, const struct emu_traffic *traffic,
                      const struct emu_fault_map *faults, enum bgl_counts counts)
{
    const struct emu_exp_context *context = emu_exp_context(x);
    const struct emu_sim_options options = {
        .seed = context->seed,
        .n_threads = context->n_threads,
        .has_ends = (counts & BGL_HAS_ENDS) != 0,
        .count_occupancy = (counts & BGL_COUNT_OCCUPANCY) != 0,
        .count_unblocking = (counts & BGL_COUNT_UNBLOCKING) != 0,
    };

    return emu_sim_create(run->m, faults, traffic, &options, &run->sim);
}

/* ---- A generator's traffic, with the time of the last delivery of each node ---- */

static bool on_next(void *ctx, struct emu_sim *sim, uint32_t nid, enum emu_traffic_class traffic_class, uint64_t now_ps,
                    struct emu_packet *packet_out)
{
    const struct emu_traffic *inner = emu_generator_traffic(((struct bgl_run *)ctx)->gen);

    return inner->next(inner->ctx, sim, nid, traffic_class, now_ps, packet_out);
}

static void on_delivered(void *ctx, struct emu_sim *sim, uint32_t nid, const struct emu_packet *packet, uint64_t now_ps)
{
    struct bgl_run *run = ctx;
    const struct emu_traffic *inner = emu_generator_traffic(run->gen);

    run->last_ps[nid] = now_ps;
    inner->delivered(inner->ctx, sim, nid, packet, now_ps);
}

static void on_lost(void *ctx, struct emu_sim *sim, uint32_t nid, const struct emu_packet *packet, uint64_t now_ps)
{
    const struct emu_traffic *inner = emu_generator_traffic(((struct bgl_run *)ctx)->gen);

    inner->lost(inner->ctx, sim, nid, packet, now_ps);
}

double bgl_last_delivery(const struct bgl_run *run)
{
    uint64_t last_ps = 0;

    for (uint32_t nid = 0; nid < emu_machine_n_nodes(run->m); nid++)
        last_ps = run->last_ps[nid] > last_ps ? run->last_ps[nid] : last_ps;
    return (double)last_ps / run->cycle_ps;
}

int bgl_start(struct emu_exp *x, struct bgl_run *run, const char *spec, const struct emu_generator_options *options,
              enum bgl_counts counts)
{
    struct emu_generator_options seeded = *options;
    char err[200] = "";
    int r;

    r = bgl_machine(x, run, spec);
    if (r < 0)
        return r;
    seeded.seed = emu_exp_context(x)->seed;
    r = emu_generator_create(run->m, &seeded, &run->gen, err, sizeof(err));
    if (r < 0) {
        emu_exp_detail(x, "%s: %s", spec, err);
        bgl_end(run);
        return r;
    }
    run->last_ps = calloc(emu_machine_n_nodes(run->m), sizeof(*run->last_ps));
    run->traffic = (struct emu_traffic){ .ctx = run, .next = on_next, .delivered = on_delivered, .lost = on_lost };
    r = !run->last_ps ? -ENOMEM : bgl_start_traffic(x, run, &run->traffic, NULL, counts);
    if (r < 0)
        bgl_end(run);
    return r;
}

void bgl_end(struct bgl_run *run)
{
    emu_sim_destroy(run->sim);
    emu_generator_destroy(run->gen);
    emu_machine_destroy(run->m);
    free(run->last_ps);
    *run = (struct bgl_run){ 0 };
}

enum emu_sim_stop bgl_advance(struct bgl_run *run, double cycles)
{
    return emu_sim_run(run->sim, emu_sim_now(run->sim) + (uint64_t)(cycles * run->cycle_ps));
}

enum emu_sim_stop bgl_finish(struct emu_exp *x, struct bgl_run *run, uint64_t packets, double from, double to)
{
    enum emu_sim_stop stop;
    struct emu_sim_totals totals;

    do {
        stop = bgl_advance(run, 20000);
        emu_sim_totals(run->sim, &totals);
        emu_exp_progress(x, from + (to - from) * fmin(1, (double)totals.delivered / (double)packets));
    } while (stop == EMU_SIM_REACHED);
    return stop;
}

void bgl_reset(struct bgl_run *run)
{
    emu_sim_reset_stats(run->sim);
    if (run->gen)
        emu_generator_reset(run->gen);
}

double bgl_gap_ps(const struct bgl_run *run, double utilisation)
{
    uint32_t links = 0;

    for (uint32_t dim = 0; dim < BGL_DIMS; dim++)
        links += run->size[dim] > 1 ? 2 : 0;
    return mean_hops(run->size) * run->wire_units / (links * utilisation) * run->cycle_ps;
}

void bgl_figures(const struct bgl_run *run, double cycles, struct bgl_figures *figures_out)
{
    double duration_ps = cycles * run->cycle_ps;
    double bytes[BGL_DIMS] = { 0 };
    double links[BGL_DIMS] = { 0 };
    double packets = 0;
    double escape = 0;
    double occupancy = 0;
    double escape_occupancy = 0;
    uint32_t overhead = run->wire_units - run->full_units;
    uint32_t capacity = run->m->params.router.vc_units;
    uint32_t escape_vcs = run->vcs - 1 - run->dynamic_vcs;
    struct emu_sim_totals totals;

    *figures_out = (struct bgl_figures){ .cycles = cycles };
    for (uint32_t id = 2 * emu_machine_n_nodes(run->m); id < emu_machine_n_links(run->m); id++) {
        struct emu_sim_link_stats stats;
        struct emu_link link;
        uint32_t dim;

        emu_link_get(run->m, id, &link);
        emu_sim_link_stats(run->sim, id, &stats);
        dim = link.link_class == EMU_LINK_X ? 0 : link.link_class == EMU_LINK_Y ? 1 : 2;
        bytes[dim] += (double)stats.units + (double)stats.packets * overhead;
        links[dim]++;
        for (uint32_t vc = 0; vc + 1 < run->vcs; vc++) {
            packets += (double)stats.vc_packets[vc];
            if (vc < run->dynamic_vcs) {
                occupancy += (double)stats.vc_occupancy[vc];
            } else {
                escape += (double)stats.vc_packets[vc];
                escape_occupancy += (double)stats.vc_occupancy[vc];
            }
        }
    }
    for (uint32_t dim = 0; dim < BGL_DIMS; dim++) {
        if (links[dim] > 0)
            figures_out->utilisation_of[dim] = bytes[dim] / links[dim] / cycles;
    }
    figures_out->utilisation = (bytes[0] + bytes[1] + bytes[2]) / (links[0] + links[1] + links[2]) / cycles;
    figures_out->payload =
        figures_out->utilisation * emu_machine_nic(run->m)->format.payload_bytes_max / run->wire_units;
    figures_out->escape_share = packets > 0 ? escape / packets : 0;
    links[0] += links[1] + links[2];
    if (run->dynamic_vcs > 0)
        figures_out->occupancy = occupancy / duration_ps / links[0] / run->dynamic_vcs / capacity;
    figures_out->escape_occupancy = escape_occupancy / duration_ps / links[0] / escape_vcs / capacity;
    emu_sim_totals(run->sim, &totals);
    figures_out->delivered = totals.delivered;
    figures_out->packets_per_cycle = (double)totals.delivered / cycles;
    if (totals.delivered > 0) {
        figures_out->response = (double)totals.latency_sum_ps / (double)totals.delivered / run->cycle_ps;
        figures_out->network = (double)totals.network_latency_sum_ps / (double)totals.delivered / run->cycle_ps;
    }
}
