/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Cray XC: what the network carries, in the packet simulator. Puts of 64 B (14 flits) with their responses (1 flit).
 *
 * The quick machine is the full one in small: 8 groups of 16 routers with 2 cables per bundle have as much global
 * bandwidth per node (14 cables for 64 nodes) as 8 groups of 96 routers with 12 (84 for 384), so the bounds are the
 * same.
 */
#include "emunic/experiments/xc_traffic.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "emunic/abi/flow.h"
#include "emunic/experiments/xc.h"
#include "emunic/fabric/dragonfly.h"
#include "emunic/fabric/link.h"

const char *emu_xc_eight_groups(const struct emu_exp *x)
{
    return emu_exp_context(x)->is_full ? "aries:groups=8,cables_per_bundle=12" :
                                         "aries:groups=8,chassis=1,blades=16,cables_per_bundle=2";
}

/* ---- watching ---- */

static bool is_counted(const struct emu_xc_watch *w, uint32_t src_nid)
{
    return !w->has_dead_router || src_nid / 4 != w->dead_router;
}

static bool watch_next(void *ctx, struct emu_sim *sim, uint32_t nid, enum emu_traffic_class traffic_class,
                       uint64_t now_ps, struct emu_packet *packet_out)
{
    struct emu_xc_watch *w = ctx;

    if (!w->inner->next(w->inner->ctx, sim, nid, traffic_class, now_ps, packet_out))
        return false;
    if (traffic_class == EMU_TRAFFIC_REQUEST && packet_out->created_ps >= w->pause_from_ps &&
        packet_out->created_ps < w->pause_to_ps)
        packet_out->created_ps = w->pause_to_ps;
    w->made += is_counted(w, nid);
    return true;
}

static void watch_delivered(void *ctx, struct emu_sim *sim, uint32_t nid, const struct emu_packet *packet,
                            uint64_t now_ps)
{
    struct emu_xc_watch *w = ctx;

    w->delivered += is_counted(w, packet->src_nid);
    w->corrupt += (packet->flags & EMU_PACKET_CORRUPT) != 0;
    if (w->last_created_ps && packet->traffic_class == EMU_TRAFFIC_REQUEST) {
        w->inversions += packet->created_ps < w->last_created_ps[nid];
        w->last_created_ps[nid] = packet->created_ps;
    }
    w->inner->delivered(w->inner->ctx, sim, nid, packet, now_ps);
}

static void watch_lost(void *ctx, struct emu_sim *sim, uint32_t nid, const struct emu_packet *packet, uint64_t now_ps)
{
    struct emu_xc_watch *w = ctx;

    w->lost += is_counted(w, packet->src_nid);
    w->last_lost_ps = now_ps;
    if (w->inner->lost)
        w->inner->lost(w->inner->ctx, sim, nid, packet, now_ps);
}

static void watch_timer(void *ctx, struct emu_sim *sim, uint32_t nid, uint64_t cookie, uint64_t now_ps)
{
    struct emu_xc_watch *w = ctx;

    if (w->inner->timer)
        w->inner->timer(w->inner->ctx, sim, nid, cookie, now_ps);
}

struct emu_traffic emu_xc_watched(struct emu_xc_watch *watch)
{
    return (struct emu_traffic){
        .ctx = watch,
        .next = watch_next,
        .delivered = watch_delivered,
        .lost = watch_lost,
        .timer = watch_timer,
    };
}

/* ---- one run ---- */

static void add_link_stats(const struct emu_machine *m, const struct emu_sim *sim, struct emu_xc_result *result)
{
    uint64_t blue = 0;
    uint64_t flits = 0;
    uint64_t packets = 0;

    for (uint32_t id = 0; id < emu_machine_n_links(m); id++) {
        struct emu_sim_link_stats stats;
        struct emu_link l;

        (void)emu_link_get(m, id, &l);
        emu_sim_link_stats(sim, id, &stats);
        result->crc_errors += stats.crc_errors;
        result->retransmissions += stats.retransmissions;
        blue += l.link_class == EMU_LINK_BLUE ? stats.packets : 0;
        packets += l.link_class == EMU_LINK_PROCESSOR_IN ? stats.packets : 0;
        flits += l.link_class == EMU_LINK_PROCESSOR_IN ? stats.units : 0;
    }
    result->optical_hops = result->totals.delivered > 0 ? (double)blue / (double)result->totals.delivered : 0;
    result->flits_per_packet = packets > 0 ? (double)flits / (double)packets : 0;
}

static struct emu_generator_options generator_options(const struct emu_exp *x, const struct emu_machine *m,
                                                      const struct emu_xc_run *run)
{
    const struct emu_nic_params *nic = emu_machine_nic(m);

    return (struct emu_generator_options){
        .pattern = run->pattern,
        .seed = emu_exp_context(x)->seed,
        .gap_ps = run->gap_ps,
        .units = run->units > 0 ? run->units : emu_packet_units(m, nic->format.payload_bytes_max),
        .response_units = run->response_units > 0 ? run->response_units : (uint16_t)nic->format.response_header_flits,
        .window = nic->outstanding_packets,
        .mode = (uint8_t)run->mode,
        .senders = run->senders,
        .pick = run->pick,
        .pick_ctx = run->pick_ctx,
    };
}

static struct emu_steady_options steady_options(const struct emu_exp *x, const struct emu_machine *m,
                                                const struct emu_xc_run *run)
{
    bool is_full = emu_exp_context(x)->is_full;

    return (struct emu_steady_options){
        .window_ps = run->window_ps > 0 ? run->window_ps : emu_link_cycle_ps(m) * (is_full ? 10000 : 1500),
        .warmup_max = is_full ? 6 : 3,
        .windows = is_full ? 5 : 2,
    };
}

/* Figures of a run that was steady or not, but for those of links. */
static void add_figures(const struct emu_generator *gen, const struct emu_machine *m, const struct emu_xc_run *run,
                        const struct emu_steady_result *s, struct emu_xc_result *result)
{
    double payload = emu_machine_nic(m)->format.payload_bytes_max;
    struct emu_histogram latency;
    uint64_t received = 0;

    for (uint32_t nid = 0; nid < emu_machine_n_nodes(m); nid++) {
        struct emu_node_figures figures;

        emu_generator_node(gen, nid, &figures);
        received += figures.received;
        if (run->received_out)
            run->received_out[nid] = (double)figures.received * payload * 1000 / (double)s->measured_ps;
    }
    emu_generator_latency(gen, EMU_LATENCY_CREATED, &latency);
    result->gb_per_s = (double)received * payload * 1000 / (double)s->measured_ps;
    result->gb_per_s_per_node = result->gb_per_s / emu_machine_n_nodes(m);
    /* Responses are as many as requests and go the same way about it. */
    result->nonminimal = s->totals.delivered > 0 ? (double)s->totals.nonminimal / (double)s->totals.delivered : 0;
    result->latency_ps = emu_histogram_mean_ps(&latency);
    result->hops = s->totals.delivered > 0 ? (double)s->totals.packet_hops / (double)s->totals.delivered : 0;
    result->totals = s->totals;
    result->measured_ps = s->measured_ps;
    result->is_steady = s->is_steady;
}

int emu_xc_saturate(struct emu_exp *x, const struct emu_machine *m, const struct emu_xc_run *run,
                    struct emu_xc_result *result_out)
{
    const struct emu_exp_context *context = emu_exp_context(x);
    const struct emu_generator_options options = generator_options(x, m, run);
    const struct emu_steady_options steady = steady_options(x, m, run);
    const struct emu_sim_options sim_options = { .seed = context->seed, .n_threads = context->n_threads };
    struct emu_xc_watch watch = { 0 };
    struct emu_steady_result s;
    struct emu_traffic traffic;
    struct emu_generator *gen;
    struct emu_sim *sim;
    uint32_t reverse;
    char err[200];
    int r;

    r = emu_generator_create(m, &options, &gen, err, sizeof(err));
    if (r < 0) {
        emu_exp_detail(x, "traffic: %s", err);
        return r;
    }
    watch.inner = emu_generator_traffic(gen);
    traffic = emu_xc_watched(&watch);
    r = emu_sim_create(m, run->faults, &traffic, &sim_options, &sim);
    if (r < 0)
        goto out_generator;
    if (run->ber > 0) {
        (void)emu_link_reverse(m, run->ber_link, &reverse);
        emu_sim_set_bit_error_rate(sim, run->ber_link, run->ber);
        emu_sim_set_bit_error_rate(sim, reverse, run->ber);
    }
    memset(result_out, 0, sizeof(*result_out));
    emu_generator_steady(gen, sim, &steady, &s);
    add_figures(gen, m, run, &s, result_out);
    if (s.is_deadlock) {
        emu_exp_detail(x, "the network is deadlocked");
        r = -EDEADLK;
    }
    add_link_stats(m, sim, result_out);
    result_out->corrupt = watch.corrupt;
    emu_sim_destroy(sim);
out_generator:
    emu_generator_destroy(gen);
    return r;
}

/* ---- bounds ---- */

/* Payload per wire byte of a put and its response, frames included: 64 % (XC-6). */
static double efficiency(const struct emu_machine *m)
{
    const struct emu_packet_format *f = &emu_machine_nic(m)->format;
    const struct emu_router_params *r = emu_machine_router(m);
    double flits = (double)emu_packet_units(m, f->payload_bytes_max) + f->response_header_flits;

    return f->payload_bytes_max / (flits * f->flit_bits / 8) * (r->frame_flits - r->frame_overhead_flits) /
           r->frame_flits;
}

/* Payload per node, 10^9 bytes/s, if each node had its share of so many cables. */
static double cable_share(const struct emu_machine *m, double cables)
{
    struct emu_dragonfly_shape shape;
    struct emu_link blue;

    (void)emu_dragonfly_shape(m, &shape);
    (void)emu_link_get(m, emu_machine_n_links(m) - 1, &blue);
    return cables * EMU_XC_LINKS_PER_CABLE * (double)blue.bytes_per_s / 1e9 /
           (shape.chassis * shape.blades * shape.nodes_per_blade) * efficiency(m);
}

static double cables_of_group(const struct emu_machine *m)
{
    struct emu_dragonfly_shape shape;

    (void)emu_dragonfly_shape(m, &shape);
    return (double)shape.cables_per_bundle * (shape.groups - 1);
}

/* Uniform traffic, all minimal: a node's packets go to another group in (groups - 1) of groups cases. */
static double uniform_bound(const struct emu_machine *m)
{
    struct emu_dragonfly_shape shape;

    (void)emu_dragonfly_shape(m, &shape);
    return cable_share(m, cables_of_group(m)) * shape.groups / (shape.groups - 1);
}

/* ---- XC-22: global bandwidth ---- */

static int report_global_share(struct emu_exp *x)
{
    struct emu_dragonfly_shape shape;
    struct emu_link blue;
    struct emu_machine *m;
    double raw, all, bisection;
    int r = emu_exp_machine(x, "aries:groups=241", &m);

    if (r < 0)
        return r;
    (void)emu_dragonfly_shape(m, &shape);
    (void)emu_link_get(m, emu_machine_n_links(m) - 1, &blue);
    raw = cable_share(m, cables_of_group(m)) / efficiency(m);
    emu_exp_figure(x, 'A', "global_raw_per_node", "GB/s", emu_exp_rounded(11.72, 2), raw);
    emu_exp_figure(x, 'A', "global_payload_per_node", "GB/s", emu_exp_rounded(7.5, 1), raw * efficiency(m));
    all = 2.0 * shape.n_cables * EMU_XC_LINKS_PER_CABLE * (double)blue.bytes_per_s / 1e9;
    /* Bisection, both directions, by the formula that XC-5 holds against the count. */
    bisection = EMU_XC_LINKS_PER_CABLE * (double)blue.bytes_per_s / 1e9 * shape.groups * cables_of_group(m) *
                shape.groups / (2.0 * (shape.groups - 1));
    emu_exp_figure(x, 'A', "global_over_bisection_of_241_groups", "1", emu_exp_rounded(2, 1), all / bisection);
    emu_machine_destroy(m);
    return 0;
}

int emu_xc_global_bandwidth(struct emu_exp *x)
{
    const struct emu_xc_run run = { .pattern = EMU_PATTERN_UNIFORM, .mode = EMU_MODE_ADAPTIVE_0 };
    struct emu_xc_result result;
    struct emu_machine *m;
    int r = report_global_share(x);

    if (r == 0)
        r = emu_exp_machine(x, emu_xc_eight_groups(x), &m);
    if (r < 0)
        return r;
    r = emu_xc_saturate(x, m, &run, &result);
    if (r == 0) {
        emu_exp_at_least(x, 'S', "uniform_saturation_over_bound", "1", 0.9,
                         result.gb_per_s_per_node / uniform_bound(m));
        emu_exp_detail(x, "%.3f of %.3f GB/s per node, %.1f %% non-minimal, %.2f hops, %s", result.gb_per_s_per_node,
                       uniform_bound(m), 100 * result.nonminimal, result.hops,
                       result.is_steady ? "steady" : "not steady");
    }
    emu_machine_destroy(m);
    return r;
}

/* ---- XC-24: minimal, Valiant, adaptive ---- */

static const enum emu_route_mode three_modes[] = { EMU_MODE_MINIMAL, EMU_MODE_VALIANT, EMU_MODE_ADAPTIVE_0 };
static const char *const three_names[] = { "minimal", "valiant", "adaptive" };

static int saturate_three(struct emu_exp *x, const struct emu_machine *m, enum emu_pattern pattern, double got[3],
                          FILE *data)
{
    for (int i = 0; i < 3; i++) {
        const struct emu_xc_run run = { .pattern = pattern, .mode = three_modes[i] };
        struct emu_xc_result result;
        int r = emu_xc_saturate(x, m, &run, &result);

        if (r < 0)
            return r;
        got[i] = result.gb_per_s_per_node;
        emu_exp_detail(x, "%s %s: %.3f GB/s per node, %.1f %% non-minimal, %.2f hops, latency %.1f us, %s",
                       emu_pattern_name(pattern), three_names[i], got[i], 100 * result.nonminimal, result.hops,
                       result.latency_ps / 1e6, result.is_steady ? "steady" : "not steady");
        if (data)
            fprintf(data, "%s\t%d\t%g\n", three_names[i], (int)pattern, got[i]);
    }
    return 0;
}

static double larger(double a, double b)
{
    return a > b ? a : b;
}

int emu_xc_three_policies(struct emu_exp *x)
{
    double uniform[3], shift[3];
    double shift_bound, global;
    struct emu_dragonfly_shape shape;
    struct emu_machine *m;
    FILE *data;
    int r = emu_exp_machine(x, emu_xc_eight_groups(x), &m);

    if (r < 0)
        return r;
    data = emu_exp_data(x, "saturation", "Saturation of 8 groups", "pattern (0 uniform, 2 group shift)",
                        "GB/s per "
                        "node");
    (void)emu_dragonfly_shape(m, &shape);
    shift_bound = cable_share(m, shape.cables_per_bundle);
    global = cable_share(m, cables_of_group(m));
    r = saturate_three(x, m, EMU_PATTERN_UNIFORM, uniform, data);
    emu_exp_progress(x, 0.6);
    if (r == 0)
        r = saturate_three(x, m, EMU_PATTERN_SHIFT, shift, data);
    if (data)
        fclose(data);
    if (r < 0)
        goto out;
    emu_exp_figure(x, 'S', "uniform_minimal", "GB/s", emu_exp_within(uniform_bound(m), 0.1), uniform[0]);
    emu_exp_figure(x, 'S', "shift_minimal", "GB/s", emu_exp_within(shift_bound, 0.1), shift[0]);
    /* Two blue links, or one if the root is in an end group: 2 groups of 8. */
    emu_exp_at_least(x, 'S', "shift_valiant_over_bound", "1", 0.8, shift[1] / (global / (2 - 2.0 / shape.groups)));
    emu_exp_at_least(x, 'S', "uniform_adaptive_over_better", "1", 0.9, uniform[2] / larger(uniform[0], uniform[1]));
    emu_exp_at_least(x, 'S', "shift_adaptive_over_better", "1", 0.9, shift[2] / larger(shift[0], shift[1]));
    emu_exp_holds(x, 'S', "minimal_best_on_uniform", uniform[0] > uniform[1]);
    emu_exp_holds(x, 'S', "valiant_best_on_shift", shift[1] > shift[0]);
    emu_exp_detail(x, "bounds: uniform minimal %.3f, shift minimal %.3f, Valiant %.3f to %.3f GB/s per node",
                   uniform_bound(m), shift_bound, global / 2, global / (2 - 2.0 / shape.groups));
out:
    emu_machine_destroy(m);
    return r;
}

/* ---- XC-25: non-minimal share over load ---- */

int emu_xc_nonminimal_share(struct emu_exp *x)
{
    static const double loads[] = { 0.01, 0.05, 0.2, 0.5, 0.7, 0.9 };
    enum { N = sizeof(loads) / sizeof(loads[0]) };
    struct emu_xc_run run = { .pattern = EMU_PATTERN_UNIFORM, .mode = EMU_MODE_ADAPTIVE_0 };
    struct emu_xc_result result;
    struct emu_machine *m;
    double share[N];
    bool is_monotone = true;
    FILE *data;
    int r = emu_exp_machine(x, emu_xc_eight_groups(x), &m);

    if (r < 0)
        return r;
    data = emu_exp_data(x, "share", "Adaptive choice, uniform traffic on 8 groups", "load, share of the global bound",
                        "non-minimal packets, share");
    for (int i = 0; i < N && r == 0; i++) {
        /* A node's payload in 10^9 bytes/s is bytes per ns. */
        run.gap_ps = emu_machine_nic(m)->format.payload_bytes_max / (loads[i] * uniform_bound(m)) * 1000;
        run.window_ps = emu_link_cycle_ps(m) * (emu_exp_context(x)->is_full ? 5000 : 1000);
        r = emu_xc_saturate(x, m, &run, &result);
        share[i] = r == 0 ? result.nonminimal : 0;
        is_monotone = is_monotone && (i == 0 || share[i] >= share[i - 1]);
        emu_exp_progress(x, (double)i / N);
        if (r < 0)
            break;
        emu_exp_detail(x, "load %.0f %%: %.3f GB/s per node, %.2f %% non-minimal, %.2f hops, latency %.2f us",
                       100 * loads[i], result.gb_per_s_per_node, 100 * share[i], result.hops, result.latency_ps / 1e6);
        if (data)
            fprintf(data, "adaptive 0\t%g\t%g\n", loads[i], share[i]);
    }
    if (data)
        fclose(data);
    run = (struct emu_xc_run){ .pattern = EMU_PATTERN_SHIFT, .mode = EMU_MODE_ADAPTIVE_0 };
    if (r == 0)
        r = emu_xc_saturate(x, m, &run, &result);
    if (r == 0) {
        emu_exp_below(x, 'S', "nonminimal_at_5_percent_load", "1", 0.01, share[1]);
        emu_exp_holds(x, 'Q', "nonminimal_rises_with_load", is_monotone);
        emu_exp_above(x, 'S', "nonminimal_at_saturation_of_group_shift", "1", 0.3, result.nonminimal);
    }
    emu_machine_destroy(m);
    return r;
}

/* ---- XC-30: lanes, XC-29: bit errors: four NICs over one green link ---- */

static uint32_t pick_first_node(void *ctx, struct emu_random *random, uint32_t src_nid)
{
    (void)ctx;
    return src_nid < 4 ? 4 + (uint32_t)emu_random_below(random, 4) : EMU_NOBODY;
}

static uint32_t green_between(const struct emu_machine *m, uint32_t from, uint32_t to)
{
    for (uint32_t id = 0; id < emu_machine_n_links(m); id++) {
        struct emu_link l;

        (void)emu_link_get(m, id, &l);
        if (l.link_class == EMU_LINK_GREEN && l.from.index == from && l.to.index == to)
            return id;
    }
    return UINT32_MAX;
}

/* Payload of puts from one router to its only neighbour, with some lanes of the link, or some bit errors. */
static int saturate_one_link(struct emu_exp *x, const struct emu_machine *m, uint32_t lanes, double ber,
                             struct emu_xc_result *result_out)
{
    struct emu_xc_run run = {
        .pattern = EMU_PATTERN_CUSTOM,
        .pick = pick_first_node,
        .mode = EMU_MODE_MINIMAL,
        .ber = ber,
        .window_ps = emu_exp_context(x)->is_full ? 200000000 : 40000000,
    };
    struct emu_fault_map *faults;
    uint32_t link = green_between(m, 0, 1);
    uint32_t reverse;
    int r = emu_fault_map_create(m, &faults);

    if (r < 0)
        return r;
    (void)emu_link_reverse(m, link, &reverse);
    (void)emu_fault_map_set_lanes(faults, link, (1u << lanes) - 1);
    (void)emu_fault_map_set_lanes(faults, reverse, (1u << lanes) - 1);
    run.faults = faults;
    run.ber_link = link;
    if (ber > 0)
        run.window_ps *= 10; /* errors are rare */
    r = emu_xc_saturate(x, m, &run, result_out);
    emu_fault_map_destroy(faults);
    return r;
}

int emu_xc_lanes(struct emu_exp *x)
{
    static const double raw[] = { 1.75, 3.5, 5.25 };
    const struct emu_packet_format *f;
    const struct emu_router_params *p;
    struct emu_machine *m;
    int r = emu_exp_machine(x, "aries:groups=1,chassis=1,blades=2", &m);

    if (r < 0)
        return r;
    f = &emu_machine_nic(m)->format;
    p = emu_machine_router(m);
    for (uint32_t lanes = 3; lanes > 0 && r == 0; lanes--) {
        struct emu_xc_result result;
        struct emu_link l;
        double bound;
        char name[64];

        (void)emu_link_get(m, green_between(m, 0, 1), &l);
        snprintf(name, sizeof(name), "link_of_%u_lanes", lanes);
        emu_exp_exact(x, 'A', name, "GB/s", raw[lanes - 1], (double)l.bytes_per_s / 1e9 * lanes / l.lanes);
        r = saturate_one_link(x, m, lanes, 0, &result);
        if (r < 0)
            break;
        /* Puts one way only: 14 flits each on this link. */
        bound = raw[lanes - 1] * (p->frame_flits - p->frame_overhead_flits) / p->frame_flits * f->payload_bytes_max /
                ((double)emu_packet_units(m, f->payload_bytes_max) * f->flit_bits / 8);
        snprintf(name, sizeof(name), "puts_over_%u_lanes", lanes);
        emu_exp_figure(x, 'S', name, "GB/s", emu_exp_within(bound, 0.03), result.gb_per_s);
    }
    emu_machine_destroy(m);
    return r;
}

/*
 * An error costs the packet's own time and a round trip until it is repeated, in which the link carries nothing that
 * counts: so many packet times, the go-back window. A packet's frames hold its flits and the link layer's.
 */
static double goodput_model(const struct emu_machine *m, const struct emu_link *l, double ber, double *window_out)
{
    const struct emu_router_params *p = emu_machine_router(m);
    const struct emu_packet_format *f = &emu_machine_nic(m)->format;
    double frame_bits = (double)p->frame_flits * f->flit_bits;
    double frames = (double)emu_packet_units(m, f->payload_bytes_max) / (p->frame_flits - p->frame_overhead_flits);
    double length_ps = frames * frame_bits / 8 / (double)l->bytes_per_s * 1e12;
    double good = pow(pow(1 - ber, frame_bits), frames);

    *window_out = (length_ps + p->hop_ps + l->wire_ps) / length_ps;
    return 1 / (1 + (1 - good) / good * *window_out);
}

int emu_xc_bit_errors(struct emu_exp *x)
{
    static const double rates[] = { 1e-12, 1e-9, 1e-7, 1e-6, 1e-5 };
    struct emu_xc_result clean, result;
    struct emu_machine *m;
    struct emu_link l;
    uint64_t corrupt = 0;
    double window = 0;
    FILE *data;
    int r = emu_exp_machine(x, "aries:groups=1,chassis=1,blades=2", &m);

    if (r < 0)
        return r;
    (void)emu_link_get(m, green_between(m, 0, 1), &l);
    data = emu_exp_data(x, "goodput", "Goodput of one link over its bit error rate", "bit error rate",
                        "of the clean "
                        "link's");
    r = saturate_one_link(x, m, l.lanes, 0, &clean);
    for (size_t i = 0; i < sizeof(rates) / sizeof(rates[0]) && r == 0; i++) {
        double model = goodput_model(m, &l, rates[i], &window);
        char name[64];

        r = saturate_one_link(x, m, l.lanes, rates[i], &result);
        if (r < 0)
            break;
        corrupt += result.corrupt;
        snprintf(name, sizeof(name), "goodput_at_%.0e", rates[i]);
        emu_exp_figure(x, 'S', name, "1", emu_exp_within(model, 0.01), result.gb_per_s / clean.gb_per_s);
        emu_exp_detail(x, "bit error rate %.0e: %llu errors, %llu retransmissions, %llu packets", rates[i],
                       (unsigned long long)result.crc_errors, (unsigned long long)result.retransmissions,
                       (unsigned long long)result.totals.delivered);
        if (data)
            fprintf(data, "simulated\t%g\t%g\nmodel\t%g\t%g\n", rates[i], result.gb_per_s / clean.gb_per_s, rates[i],
                    model);
    }
    if (data)
        fclose(data);
    if (r == 0) {
        emu_exp_exact(x, 'S', "corrupt_deliveries", "packets", 0, (double)corrupt);
        emu_exp_detail(x, "go-back window: an error costs %.2f packet times", window);
    }
    emu_machine_destroy(m);
    return r;
}

/* ---- XC-6: flits ---- */

int emu_xc_flits(struct emu_exp *x)
{
    struct emu_flow_counts put = { 0 };
    struct emu_flow_counts get = { 0 };
    const struct emu_packet_format *f;
    const struct emu_router_params *p;
    struct emu_xc_run run = { .pattern = EMU_PATTERN_CUSTOM, .pick = pick_first_node, .mode = EMU_MODE_MINIMAL };
    struct emu_xc_result result;
    struct emu_machine *m;
    double per_put, counted, wire_bytes;
    int r = emu_exp_machine(x, "aries:groups=1,chassis=1,blades=2", &m);

    if (r < 0)
        return r;
    f = &emu_machine_nic(m)->format;
    p = emu_machine_router(m);
    for (int i = 0; i < 1000000; i++) {
        emu_flow_add_put(&put, f, 64);
        emu_flow_add_get(&get, f, 64, 0);
    }
    emu_exp_exact(x, 'A', "put_request_flits", "flits", 14, (double)put.request_flits / (double)put.operations);
    emu_exp_exact(x, 'A', "put_response_flits", "flits", 1, (double)put.response_flits / (double)put.operations);
    emu_exp_exact(x, 'A', "get_request_flits", "flits", 3, (double)get.request_flits / (double)get.operations);
    emu_exp_exact(x, 'A', "get_response_flits", "flits", 12, (double)get.response_flits / (double)get.operations);
    per_put = (double)(put.request_flits + put.response_flits) / (double)put.operations;
    wire_bytes = per_put * f->flit_bits / 8 * p->frame_flits / (p->frame_flits - p->frame_overhead_flits);
    emu_exp_figure(x, 'A', "put_efficiency", "percent", emu_exp_points(64.0, 0.1), 100 * 64 / wire_bytes);

    run.window_ps = emu_exp_context(x)->is_full ? 1000000000 : 100000000;
    r = emu_xc_saturate(x, m, &run, &result);
    if (r == 0) {
        counted = result.flits_per_packet * 2; /* a request and a response; as many of each */
        emu_exp_figure(x, 'S', "flits_on_the_wire_per_put", "flits", emu_exp_within(15, 0.001), counted);
        wire_bytes = counted * f->flit_bits / 8 * p->frame_flits / (p->frame_flits - p->frame_overhead_flits);
        emu_exp_figure(x, 'S', "put_efficiency_on_the_wire", "percent", emu_exp_points(64.0, 0.1),
                       100 * 64 / wire_bytes);
        run.units = 3;
        run.response_units = 12;
        r = emu_xc_saturate(x, m, &run, &result);
    }
    if (r == 0)
        emu_exp_figure(x, 'S', "flits_on_the_wire_per_get", "flits", emu_exp_within(15, 0.001),
                       result.flits_per_packet * 2);
    emu_machine_destroy(m);
    return r;
}

/* ---- XC-10: how many network ports four NICs need ---- */

/*
 * The first router's four NICs send to and receive from as many other routers as it has ports, 8 GB/s each and each
 * way, evenly over the ports: a list of puts with their times.
 */
enum { NICS = 4, PACKET_PS = 8000 /* 64 bytes at 8 GB/s */ };

static void list_puts(struct emu_message *list, uint32_t ports, uint32_t per_nic)
{
    for (uint32_t nic = 0; nic < NICS; nic++) {
        for (uint32_t i = 0; i < per_nic; i++) {
            uint32_t turn = i * NICS + nic;

            *list++ = (struct emu_message){
                .start_ps = (uint64_t)i * PACKET_PS + nic * PACKET_PS / NICS,
                .src_nid = nic,
                .dst_nid = (1 + turn % ports) * NICS + turn / ports % NICS,
                .bytes = 64,
            };
            *list++ = (struct emu_message){
                .start_ps = (uint64_t)i * PACKET_PS + nic * PACKET_PS / NICS,
                .src_nid = (1 + turn % ports) * NICS + turn / ports % NICS,
                .dst_nid = nic,
                .bytes = 64,
            };
        }
    }
}

/* How far the network is behind when the last put of the list has arrived. */
static int lag_with_ports(struct emu_exp *x, uint32_t ports, double *lag_us_out)
{
    const uint32_t per_nic = emu_exp_context(x)->is_full ? 25000 : 5000;
    const size_t n = (size_t)2 * NICS * per_nic;
    struct emu_generator_options options = {
        .pattern = EMU_PATTERN_MESSAGES,
        .seed = emu_exp_context(x)->seed,
        .response_units = 1,
        .mode = EMU_MODE_MINIMAL,
    };
    const struct emu_sim_options sim_options = { .seed = emu_exp_context(x)->seed };
    struct emu_message *list = calloc(n, sizeof(*list));
    struct emu_generator *gen = NULL;
    struct emu_sim *sim = NULL;
    struct emu_machine *m = NULL;
    uint64_t last_ps = 0;
    char text[200];
    int r = -ENOMEM;

    if (!list)
        return r;
    snprintf(text, sizeof(text), "aries:groups=1,chassis=1,blades=%u", ports + 1);
    r = emu_exp_machine(x, text, &m);
    if (r < 0)
        goto out;
    list_puts(list, ports, per_nic);
    options.messages = list;
    options.n_messages = n;
    r = emu_generator_create(m, &options, &gen, text, sizeof(text));
    if (r == 0)
        r = emu_sim_create(m, NULL, emu_generator_traffic(gen), &sim_options, &sim);
    if (r < 0)
        goto out;
    if (emu_sim_run(sim, UINT64_MAX / 2) != EMU_SIM_EMPTY)
        r = -EIO;
    for (size_t i = 0; i < n; i++) {
        uint64_t done_ps = emu_generator_message_done_ps(gen, i);

        last_ps = done_ps > last_ps ? done_ps : last_ps;
    }
    *lag_us_out = ((double)last_ps - (double)per_nic * PACKET_PS) / 1e6;
out:
    emu_sim_destroy(sim);
    emu_generator_destroy(gen);
    emu_machine_destroy(m);
    free(list);
    return r;
}

int emu_xc_ports(struct emu_exp *x)
{
    struct emu_machine *m;
    double nine = 0, ten = 0;
    struct emu_link green;
    double needed;
    int r = emu_exp_machine(x, "aries:groups=1", &m);

    if (r < 0)
        return r;
    (void)emu_link_get(m, 2 * emu_machine_n_nodes(m), &green);
    needed = 4 * 8 / ((double)green.bytes_per_s / 1e9 * efficiency(m));
    emu_exp_figure(x, 'A', "ports_needed", "ports", emu_exp_rounded(9.5, 1), needed);
    emu_exp_exact(x, 'A', "whole_ports_needed", "ports", 10, ceil(needed));
    emu_machine_destroy(m);
    r = lag_with_ports(x, 9, &nine);
    if (r == 0)
        r = lag_with_ports(x, 10, &ten);
    if (r == 0) { /* 9 ports carry 7.56 GB/s per NIC, so the network falls behind by a twentieth of the time */
        emu_exp_above(x, 'S', "behind_with_9_ports", "us", 1, nine);
        emu_exp_below(x, 'S', "behind_with_10_ports", "us", 1, ten);
    }
    return r;
}
