/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * SeaStar: what two nodes measure, in generic mode unless said. Neighbours along X of the XT3.
 *
 * The source's two programs disagree (spec/machines.md 10): NetPIPE pays for the interrupt at the end of the data, the
 * 100 KB figures of PortalPerf fit without it. So "PortalPerf" below is the model without host.end_interrupt_ns,
 * "NetPIPE" with it.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "emunic/experiments/ledger.h"
#include "emunic/experiments/seastar_experiments.h"
#include "emunic/fabric/torus.h"
#include "emunic/model/nic_rates.h"
#include "emunic/model/nic_scenario.h"

#define MB 1e6

enum program { PORTAL_PERF, NETPIPE };

struct bench {
    struct emu_machine *m; /* owned */
    struct emu_nic_setup setup;
    struct emu_nic_proc a;
    struct emu_nic_proc b;
};

static int open_bench(struct emu_exp *x, const char *spec, enum program program, struct bench *b_out)
{
    const struct emu_torus *t;
    int r = emu_exp_machine(x, spec, &b_out->m);

    if (r < 0)
        return r;
    t = emu_torus_of(b_out->m);
    b_out->setup = (struct emu_nic_setup){
        .machine = b_out->m,
        .host = *emu_machine_node_params(b_out->m),
        .mode = EMU_MODE_IN_ORDER,
        .seed = emu_exp_context(x)->seed,
    };
    if (program == PORTAL_PERF)
        b_out->setup.host.end_interrupt_ps = 0;
    b_out->a = (struct emu_nic_proc){ .nid = emu_torus_router(t, 0, 0, 0) };
    b_out->b = (struct emu_nic_proc){ .nid = emu_torus_router(t, 1, 0, 0) };
    return 0;
}

static void close_bench(struct bench *b)
{
    emu_machine_destroy(b->m);
}

/* Half a round trip in us (gets: post to data); negative: it did not work. */
static double one_way_us(const struct bench *b, enum emu_nic_kind kind, uint32_t bytes)
{
    const struct emu_nic_pingpong p = { .kind = kind, .a = b->a, .b = b->b, .bytes = bytes, .rounds = 4 };
    struct emu_nic_pingpong_result result;

    return emu_nic_pingpong(&b->setup, &p, &result) == 0 ? (double)result.latency_ps * 1e-6 : NAN;
}

/* Both send `bytes` at once: us per exchange. */
static double both_ways_us(const struct bench *b, uint32_t bytes)
{
    const struct emu_nic_pingpong p = { .kind = EMU_NIC_PUT, .a = b->a, .b = b->b, .bytes = bytes, .rounds = 4 };
    struct emu_nic_exchange_result result;

    return emu_nic_exchange(&b->setup, &p, &result) == 0 ? (double)result.round_ps * 1e-6 : NAN;
}

/* ---- SEASTAR-1 to 5 ---- */

int emu_seastar_latency(struct emu_exp *x)
{
    struct bench b;
    int r = open_bench(x, EMU_XT3_SPEC, PORTAL_PERF, &b);

    if (r < 0)
        return r;
    emu_exp_part(x, "a");
    emu_exp_fitted(x, "put0", "us", 4.89, one_way_us(&b, EMU_NIC_PUT, 0),
                   emu_exp_param("host.interrupt_ns", b.setup.host.interrupt_ps * 1e-3));
    emu_exp_part(x, "b");
    emu_exp_fitted(x, "get0", "us", 6.09, one_way_us(&b, EMU_NIC_GET, 0),
                   emu_exp_param("host.reply_ns", b.setup.host.reply_ps * 1e-3));
    emu_exp_part(x, "c");
    emu_exp_fitted(x, "biput0", "us", 8.39, both_ways_us(&b, 0),
                   emu_exp_param("host.put_gap_ns", b.setup.host.put_gap_ps * 1e-3));
    close_bench(&b);
    return 0;
}

int emu_seastar_asymptote(struct emu_exp *x)
{
    struct bench b;
    int r = open_bench(x, EMU_XT3_SPEC, PORTAL_PERF, &b);

    if (r < 0)
        return r;
    emu_exp_fitted(x, "put_2MB", "MB/s", 1108, 2 * MB / one_way_us(&b, EMU_NIC_PUT, 2000000),
                   emu_exp_param("host.packet_gap_ns", b.setup.host.packet_gap_ps * 1e-3));
    close_bench(&b);
    return 0;
}

int emu_seastar_put_100k(struct emu_exp *x)
{
    struct bench b;
    int r = open_bench(x, EMU_XT3_SPEC, PORTAL_PERF, &b);

    if (r < 0)
        return r;
    emu_exp_figure(x, 'P', "put_100KB", "MB/s", emu_exp_within(1051.43, 0.03),
                   1e5 / one_way_us(&b, EMU_NIC_PUT, 100000));
    close_bench(&b);
    return 0;
}

int emu_seastar_get_100k(struct emu_exp *x)
{
    struct bench b;
    int r = open_bench(x, EMU_XT3_SPEC, PORTAL_PERF, &b);

    if (r < 0)
        return r;
    emu_exp_figure(x, 'P', "get_100KB", "MB/s", emu_exp_within(1012.17, 0.04),
                   1e5 / one_way_us(&b, EMU_NIC_GET, 100000));
    close_bench(&b);
    return 0;
}

int emu_seastar_both_ways(struct emu_exp *x)
{
    double one, both;
    struct bench b;
    int r = open_bench(x, EMU_XT3_SPEC, PORTAL_PERF, &b);

    if (r < 0)
        return r;
    one = 2 * MB / one_way_us(&b, EMU_NIC_PUT, 2000000);
    both = 4 * MB / both_ways_us(&b, 2000000);
    emu_exp_figure(x, 'P', "biput_peak_over_put_peak", "1", emu_exp_within(2, 0.03), both / one);
    emu_exp_above(x, 'P', "biput_peak", "MB/s", 2200, both);
    emu_exp_detail(x, "shared by both ways: HyperTransport, whose read requests go against the data they ask for "
                      "(host.duplex_percent), and the host's core");
    close_bench(&b);
    return 0;
}

/* ---- SEASTAR-6: half of the peak ---- */

/* Smallest size per direction that gets half of what 2 MB get. Bytes. */
static double half_peak_bytes(const struct bench *b, bool is_both_ways)
{
    uint32_t low = 64;
    uint32_t high = 200000;
    double peak = 2 * MB / (is_both_ways ? both_ways_us(b, 2000000) : one_way_us(b, EMU_NIC_PUT, 2000000));

    while (high - low > 16) {
        uint32_t middle = low + (high - low) / 2;
        double rate = middle / (is_both_ways ? both_ways_us(b, middle) : one_way_us(b, EMU_NIC_PUT, middle));

        if (rate < peak / 2)
            low = middle;
        else
            high = middle;
    }
    return high;
}

int emu_seastar_half_peak(struct emu_exp *x)
{
    struct emu_metric metric = {
        .kind = 'K',
        .name = "netpipe_half_peak",
        .unit = "bytes",
        .tolerance = EMU_TOL_RELATIVE,
        .src = 8192,
        .tol = 0.05,
        .param_name = "host.end_interrupt_ns",
    };
    struct bench b;
    int r = open_bench(x, EMU_XT3_SPEC, NETPIPE, &b);

    if (r < 0)
        return r;
    metric.got = half_peak_bytes(&b, false);
    metric.param_value = b.setup.host.end_interrupt_ps * 1e-3;
    emu_exp_part(x, "a");
    (void)emu_exp_report(x, &metric);
    emu_exp_part(x, "b");
    emu_exp_figure(x, 'P', "netpipe_half_peak_both_ways_total", "bytes", emu_exp_within(24576, 0.1),
                   2 * half_peak_bytes(&b, true));
    close_bench(&b);
    r = open_bench(x, EMU_XT3_SPEC, PORTAL_PERF, &b);
    if (r < 0)
        return r;
    emu_exp_part(x, "c");
    emu_exp_figure(x, 'P', "portalperf_half_peak", "bytes", emu_exp_within(6144, 0.35), half_peak_bytes(&b, false));
    close_bench(&b);
    return 0;
}

/* ---- SEASTAR-7 and 8: interrupts ---- */

/* Interrupts per message of one direction. */
static double interrupts_per_message(const struct bench *b, uint32_t bytes)
{
    const struct emu_nic_pair pair = { b->a, b->b };
    const struct emu_nic_stream s = {
        .kind = EMU_NIC_PUT, .pairs = &pair, .n_pairs = 1, .bytes = bytes, .operations = 100
    };
    struct emu_nic_stream_result result;

    return emu_nic_stream(&b->setup, &s, NULL, &result) == 0 ? (double)result.interrupts / 100 : NAN;
}

int emu_seastar_step(struct emu_exp *x)
{
    static const uint32_t sizes[] = { 0, 1, 12, 13, 16 };
    static const uint32_t both_sizes[] = { 11, 12, 13 };
    double one[5], both[3], t_int;
    struct bench b;
    int r = open_bench(x, EMU_XT3_SPEC, NETPIPE, &b);

    if (r < 0)
        return r;
    t_int = b.setup.host.end_interrupt_ps * 1e-6;
    for (size_t i = 0; i < 5; i++) {
        one[i] = one_way_us(&b, EMU_NIC_PUT, sizes[i]);
        emu_exp_detail(x, "%u bytes: %.3f us", sizes[i], one[i]);
    }
    for (size_t i = 0; i < 3; i++) {
        both[i] = both_ways_us(&b, both_sizes[i]);
        emu_exp_detail(x, "%u bytes in all, both ways: %.3f us", 2 * both_sizes[i], both[i]);
    }
    emu_exp_holds(x, 'S', "step_is_at_12_to_13_bytes",
                  one[2] - one[0] < 0.1 * t_int && one[4] - one[3] < 0.1 * t_int && one[3] - one[2] > 0.9 * t_int);
    emu_exp_figure(x, 'S', "step_height", "us", emu_exp_within(t_int, 0.05), one[3] - one[2]);
    emu_exp_holds(x, 'S', "step_both_ways_is_at_24_to_26_bytes",
                  both[1] - both[0] < 0.1 * t_int && both[2] - both[1] > 0.9 * t_int);
    emu_exp_figure(x, 'S', "step_height_both_ways", "us", emu_exp_within(t_int, 0.05), both[2] - both[1]);
    emu_exp_exact(x, 'S', "interrupts_at_12_bytes", "interrupts", 1, interrupts_per_message(&b, 12));
    emu_exp_exact(x, 'S', "interrupts_at_13_bytes", "interrupts", 2, interrupts_per_message(&b, 13));
    close_bench(&b);
    return 0;
}

int emu_seastar_stream(struct emu_exp *x)
{
    static const uint32_t sizes[] = { 8, 12, 64, 512 };
    struct bench b;
    int r = open_bench(x, EMU_XT3_SPEC, NETPIPE, &b);

    if (r < 0)
        return r;
    /* Each put asks for its acknowledgement, so a sender never runs ahead of the target's host. */
    b.setup.host.has_acks = 1;
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        const struct emu_nic_pair pair = { b.a, b.b };
        const struct emu_nic_stream s = {
            .kind = EMU_NIC_PUT,
            .pairs = &pair,
            .n_pairs = 1,
            .bytes = sizes[i],
            .window = 4,
            .warmup_ps = UINT64_C(200000000),
            .measure_ps = UINT64_C(2000000000),
        };
        struct emu_nic_stream_result result;
        double occupancy =
            b.setup.host.interrupt_ps + (sizes[i] > b.setup.host.inline_bytes) * (double)b.setup.host.end_interrupt_ps;
        char name[64];

        r = emu_nic_stream(&b.setup, &s, NULL, &result);
        if (r < 0)
            break;
        snprintf(name, sizeof(name), "period_%u_bytes", sizes[i]);
        emu_exp_figure(x, 'P', name, "us", emu_exp_within(occupancy * 1e-6, 0.1),
                       1e6 * (double)sizes[i] / (result.mbytes_per_s * MB));
    }
    close_bench(&b);
    return r;
}

/* ---- SEASTAR-9 and 10: what was to come ---- */

/* The NIC matches and writes events itself: no interrupts, and no host work to start with but a command. */
static void accelerate(struct bench *b)
{
    b->setup.host.is_generic = 0;
    b->setup.host.put_gap_ps = 0;
    b->setup.host.interrupt_ps = 0;
    b->setup.host.end_interrupt_ps = 0;
    b->setup.host.reply_ps = 0;
    b->setup.host.send_ps = (uint32_t)(emu_ledger_value("seastar", "accelerated.software_ns") * 1000);
    b->setup.host.recv_ps = b->setup.host.send_ps;
    b->setup.host.packet_gap_ps = (uint32_t)(emu_ledger_value("seastar", "accelerated.packet_gap_ns") * 1000);
}

int emu_seastar_offload(struct emu_exp *x)
{
    const struct emu_torus *t;
    struct emu_route route;
    struct bench b;
    int r = open_bench(x, EMU_REDSTORM_SPEC, PORTAL_PERF, &b);

    if (r < 0)
        return r;
    accelerate(&b);
    t = emu_torus_of(b.m);
    emu_exp_at_most(x, 'P', "nearest", "us", 2.0, one_way_us(&b, EMU_NIC_MESSAGE, 0));
    b.b.nid = emu_torus_router(t, t->size[0] - 1, t->size[1] - 1, t->size[2] / 2);
    r = emu_route_minimal(b.m, b.a.nid, b.b.nid, 0, &route);
    if (r == 0) {
        emu_exp_at_most(x, 'P', "farthest", "us", 5.0, one_way_us(&b, EMU_NIC_MESSAGE, 0));
        emu_exp_class(x, EMU_CLASS_COUNTED);
        emu_exp_exact(x, 'P', "farthest_hops", "hops", 53, route.n_hops);
        emu_exp_class(x, EMU_CLASS_FORMULA);
        emu_exp_at_most(x, 'P', "t_hop", "ns", 56.6, b.m->params.router.hop_ps * 1e-3);
        emu_exp_detail(x, "0.5 us of software at each end [OUR]");
    }
    close_bench(&b);
    return r;
}

int emu_seastar_ceilings(struct emu_exp *x)
{
    struct emu_link processor, link;
    const struct emu_packet_format *format;
    double units;
    struct bench b;
    int r = open_bench(x, EMU_XT3_SPEC, PORTAL_PERF, &b);

    if (r < 0)
        return r;
    format = &emu_machine_nic(b.m)->format;
    units = format->request_header_flits + (double)emu_data_flits(format, format->payload_bytes_max);
    (void)emu_link_get(b.m, 0, &processor);
    (void)emu_link_get(b.m, emu_torus_of(b.m)->first_link, &link);
    emu_exp_figure(x, 'A', "hypertransport", "GB/s", emu_exp_rounded(3.2, 1), (double)processor.bytes_per_s * 1e-9);
    emu_exp_figure(x, 'A', "hypertransport_payload", "GB/s", emu_exp_rounded(2.8, 1),
                   emu_nic_interface_mbytes_per_s(&b.setup, format->payload_bytes_max, false) * 1e-3);
    emu_exp_figure(x, 'A', "link_payload", "GB/s", emu_exp_rounded(2.5, 1),
                   (double)link.data_bytes_per_s * 1e-9 * format->payload_bytes_max * 8 / (units * format->flit_bits));
    accelerate(&b);
    emu_exp_at_least(x, 'P', "accelerated_put", "MB/s", 1500, 2 * MB / one_way_us(&b, EMU_NIC_PUT, 2000000));
    close_bench(&b);
    return 0;
}

/* ---- SEASTAR-12 ---- */

int emu_seastar_duplex(struct emu_exp *x)
{
    static const uint32_t sizes[] = { 100000, 500000, 2000000 };
    struct bench b;
    int r = open_bench(x, EMU_XT3_SPEC, PORTAL_PERF, &b);

    if (r < 0)
        return r;
    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        double one = sizes[i] / one_way_us(&b, EMU_NIC_PUT, sizes[i]);
        double each = sizes[i] / both_ways_us(&b, sizes[i]);
        char name[64];

        snprintf(name, sizeof(name), "loss_per_direction_%u_bytes", sizes[i]);
        emu_exp_at_most(x, 'P', name, "%", 5, 100 * (1 - each / one));
    }
    close_bench(&b);
    return 0;
}
