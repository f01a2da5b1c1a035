/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Cray XC: what the network carries, in the packet simulator. Puts of 64 B (14 flits) with their responses (1 flit).
 */
#include "emunic/experiments/xc_traffic.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "emunic/abi/flow.h"
#include "emunic/experiments/xc.h"
#include "emunic/fabric/link.h"

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

    if (run->is_until_steady)
        return (struct emu_steady_options){
            .window_ps = emu_link_cycle_ps(m) * (is_full ? 10000 : 2500),
            .warmup_max = 12,
            .windows = is_full ? 5 : 2,
        };
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

double emu_xc_efficiency(const struct emu_machine *m)
{
    const struct emu_packet_format *f = &emu_machine_nic(m)->format;
    const struct emu_router_params *r = emu_machine_router(m);
    double flits = (double)emu_packet_units(m, f->payload_bytes_max) + f->response_header_flits;

    return f->payload_bytes_max / (flits * f->flit_bits / 8) * (r->frame_flits - r->frame_overhead_flits) /
           r->frame_flits;
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
    emu_exp_class(x, EMU_CLASS_FORMULA);
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
    options.messages.list = list;
    options.messages.n = n;
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
    needed = 4 * 8 / ((double)green.bytes_per_s / 1e9 * emu_xc_efficiency(m));
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
