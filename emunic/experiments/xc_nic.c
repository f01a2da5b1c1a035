/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Cray XC: what programs measure on NICs and hosts, in virtual time. The values of the host section of aries.yaml are
 * fixed by the K rows here (spec/machines.md 9) and by nothing else; the P rows use them as they are.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "emunic/experiments/xc.h"
#include "emunic/fabric/dragonfly.h"
#include "emunic/fabric/link.h"
#include "emunic/fabric/node_params.h"
#include "emunic/fabric/route.h"
#include "emunic/model/nic_rates.h"
#include "emunic/model/nic_scenario.h"

enum { NODES_PER_ROUTER = 4, LONG_BYTES = 4096 };

static const char one_group[] = "aries:groups=1";

static struct emu_nic_setup setup_of(const struct emu_exp *x, const struct emu_machine *m)
{
    return (struct emu_nic_setup){
        .machine = m,
        .host = *emu_machine_node_params(m),
        .mode = EMU_MODE_ADAPTIVE_0,
        .seed = emu_exp_context(x)->seed,
        .n_threads = emu_exp_context(x)->n_threads,
    };
}

static int latency_us(const struct emu_nic_setup *setup, enum emu_nic_kind kind, uint32_t to_nid, uint32_t bytes,
                      double *us_out)
{
    const struct emu_nic_pingpong p = { .kind = kind, .a = { 0, 0 }, .b = { to_nid, 0 }, .bytes = bytes };
    struct emu_nic_pingpong_result result;
    int r = emu_nic_pingpong(setup, &p, &result);

    *us_out = r == 0 ? (double)result.latency_ps * 1e-6 : NAN;
    return r;
}

/* ---- XC-1 to XC-4: latencies, H = 1 ---- */

static int report_latency(struct emu_exp *x, enum emu_nic_kind kind, const char *name, double src, const char *key)
{
    struct emu_nic_setup setup;
    struct emu_machine *m;
    double us, value;
    char param[64];
    int r = emu_exp_machine(x, one_group, &m);

    if (r < 0)
        return r;
    setup = setup_of(x, m);
    r = latency_us(&setup, kind, NODES_PER_ROUTER, 8, &us);
    value = emu_node_param_value(emu_machine_node_params(m), key);
    if (strcmp(key, "issue_ns") == 0) /* t_issue + t_hostwrite, half each */
        value += emu_node_param_value(emu_machine_node_params(m), "write_ns");
    if (strcmp(key, "send_ns") == 0) /* o_mpi, half each */
        value += emu_node_param_value(emu_machine_node_params(m), "recv_ns");
    snprintf(param, sizeof(param), "host.%s%s", key,
             strcmp(key, "issue_ns") == 0 ? "+host.write_ns" :
             strcmp(key, "send_ns") == 0  ? "+host.recv_ns" :
                                            "");
    if (r == 0)
        emu_exp_fitted(x, name, "us", src, us, emu_exp_param(param, value));
    emu_machine_destroy(m);
    return r;
}

int emu_xc_put_latency(struct emu_exp *x)
{
    return report_latency(x, EMU_NIC_PUT, "put8_latency", 0.8, "issue_ns");
}

int emu_xc_get_latency(struct emu_exp *x)
{
    return report_latency(x, EMU_NIC_GET, "get8_latency", 1.6, "read_ns");
}

int emu_xc_mpi_latency(struct emu_exp *x)
{
    return report_latency(x, EMU_NIC_MESSAGE, "mpi8_latency", 1.3, "send_ns");
}

int emu_xc_small_latencies(struct emu_exp *x)
{
    static const enum emu_nic_kind kinds[] = { EMU_NIC_PUT, EMU_NIC_GET, EMU_NIC_MESSAGE };
    static const char *const names[] = { "put", "get", "mpi" };
    struct emu_nic_setup setup;
    struct emu_machine *m;
    int r = emu_exp_machine(x, one_group, &m);

    if (r < 0)
        return r;
    setup = setup_of(x, m);
    for (int i = 0; i < 3 && r == 0; i++) {
        double us8, us128;
        double us64 = 0;
        char name[64];

        r = latency_us(&setup, kinds[i], NODES_PER_ROUTER, 8, &us8);
        if (r == 0)
            r = latency_us(&setup, kinds[i], NODES_PER_ROUTER, 64, &us64);
        if (r == 0)
            r = latency_us(&setup, kinds[i], NODES_PER_ROUTER, 128, &us128);
        if (r < 0)
            break;
        snprintf(name, sizeof(name), "%s_128_over_8", names[i]);
        emu_exp_at_most(x, 'P', name, "1", 0.1, (us128 - us8) / us8);
        emu_exp_detail(x, "%s: 8 B %.3f us, 64 B %.3f us, 128 B %.3f us", names[i], us8, us64, us128);
    }
    emu_machine_destroy(m);
    return r;
}

/* ---- XC-20: hops ---- */

/* A node so many minimal hops from node 0; UINT32_MAX: none. */
static uint32_t node_at(const struct emu_machine *m, uint32_t hops)
{
    for (uint32_t nid = 0; nid < emu_machine_n_nodes(m); nid += NODES_PER_ROUTER) {
        struct emu_route route;

        if (emu_route_minimal(m, 0, nid, 0, &route) == 0 && route.n_hops == hops)
            return nid;
    }
    return UINT32_MAX;
}

/* The longest minimal path of the machine, all pairs of routers: one blue link of each bundle, whichever is best. */
static uint32_t longest_minimal(const struct emu_machine *m)
{
    struct emu_dragonfly_shape shape;
    uint32_t most = 0;

    (void)emu_dragonfly_shape(m, &shape);
    for (uint32_t g = 0; g < shape.groups; g++) {
        for (uint32_t h = 0; h < g; h++) {
            struct emu_cable_end near, far;
            uint32_t ends = 0;

            /* With one cable a bundle: two gateways at each end, joined in pairs. A router may be far from both. */
            (void)emu_dragonfly_cable(m, g, h, 0, &near, &far);
            for (uint32_t from = 0; from < shape.chassis * shape.blades; from++) {
                for (uint32_t to = 0; to < shape.chassis * shape.blades; to++) {
                    uint32_t best = UINT32_MAX;

                    for (uint32_t link = 0; link < 2; link++) {
                        uint32_t hops = 1 + (from / shape.blades != near.chassis) +
                                        (from % shape.blades != near.pair * 2 + link) +
                                        (to / shape.blades != far.chassis) + (to % shape.blades != far.pair * 2 + link);

                        best = hops < best ? hops : best;
                    }
                    ends = best > ends ? best : ends;
                }
            }
            most = ends > most ? ends : most;
        }
    }
    return most;
}

int emu_xc_hop_latency(struct emu_exp *x)
{
    /* The largest machine has one cable per bundle, as has this one of 20 groups, where the same five hops occur. */
    const char *spec = emu_exp_context(x)->is_full ? "aries:groups=241" : "aries:groups=20,cables_per_bundle=1";
    struct emu_machine *largest, *m;
    struct emu_nic_setup setup;
    double us[6] = { 0 };
    int r = emu_exp_machine(x, "aries:groups=241", &largest);

    if (r < 0)
        return r;
    emu_exp_exact(x, 'A', "minimal_hops_max", "hops", 5, longest_minimal(largest));
    emu_machine_destroy(largest);
    r = emu_exp_machine(x, spec, &m);
    if (r < 0)
        return r;
    setup = setup_of(x, m);
    setup.mode = EMU_MODE_MINIMAL;
    for (uint32_t hops = 1; hops <= 5 && r == 0; hops++) {
        uint32_t nid = node_at(m, hops);

        r = nid == UINT32_MAX ? -ENOENT : latency_us(&setup, EMU_NIC_PUT, nid, 8, &us[hops]);
        emu_exp_detail(x, "%u hops: %.4f us", hops, us[hops]);
        emu_exp_progress(x, hops / 5.0);
    }
    if (r == 0) {
        emu_exp_figure(x, 'P', "hop_slope", "ns", emu_exp_within(100, 0.01), (us[5] - us[1]) / 4 * 1000);
        emu_exp_at_most(x, 'P', "extra_of_minimal_paths", "ns", 500, (us[5] - us[1]) * 1000);
        emu_exp_below(x, 'P', "put8_farthest_pair", "us", 2.0, us[5]);
    }
    emu_machine_destroy(m);
    return r;
}

/* ---- streams ---- */

static uint32_t larger(uint32_t a, uint32_t b)
{
    return a > b ? a : b;
}

/* n processes of node 0 to as many of another. */
struct stream_load {
    enum emu_nic_kind kind;
    uint32_t to;
    uint32_t n_procs;
    uint32_t bytes;
    bool is_bidirectional;
};

/* One stream's payload, 10^9 bytes/s. */
static int stream_gb_per_s(const struct emu_nic_setup *setup, const struct stream_load *load, double *gb_out)
{
    struct emu_nic_pair pairs[EMU_NIC_PROCS_MAX];
    /* Each takes longer than the time that is measured. */
    bool is_long = load->kind == EMU_NIC_MESSAGE && load->bytes > LONG_BYTES;
    const struct emu_nic_stream s = {
        .kind = load->kind,
        .pairs = pairs,
        .n_pairs = load->n_procs,
        .bytes = load->bytes,
        .is_bidirectional = load->is_bidirectional,
        .warmup_ps = 20000000,
        .measure_ps = 40000000,
        .window = is_long ? 4 : 0,
        /* 4 MiB in all, or two of each. */
        .operations = is_long ? larger(2, (4u << 20) / load->bytes / load->n_procs) : 0,
    };
    struct emu_nic_stream_result result;
    int r;

    emu_nic_pairs_between(0, load->to, load->n_procs, pairs);
    r = emu_nic_stream(setup, &s, NULL, &result);
    *gb_out = r == 0 ? result.mbytes_per_s / 1000 : NAN;
    if (r == 0 && s.operations > 0) /* all of it, over the time of the slowest */
        *gb_out = (double)(s.operations * load->n_procs * (load->is_bidirectional ? 2u : 1u)) * load->bytes * 1000 /
                  (double)result.elapsed_ps;
    return r;
}

/* ---- XC-8: put bandwidth ---- */

static int put_curves(struct emu_exp *x, const struct emu_nic_setup *setup, uint32_t to, double plateau[2])
{
    FILE *data = emu_exp_data(x, "put", "Puts between two nodes", "bytes of a put", "GB/s");
    int r = 0;

    for (int both = 0; both < 2 && r == 0; both++) {
        for (uint32_t bytes = 8; bytes <= 65536 && r == 0; bytes *= emu_exp_context(x)->is_full ? 2 : 8) {
            double gb;

            r = stream_gb_per_s(setup, &(struct stream_load){ EMU_NIC_PUT, to, 1, bytes, both != 0 }, &gb);
            if (data)
                fprintf(data, "%s\t%u\t%g\n", both ? "both ways" : "one way", bytes, gb);
        }
        if (r == 0)
            r = stream_gb_per_s(setup, &(struct stream_load){ EMU_NIC_PUT, to, 1, 65536, both != 0 }, &plateau[both]);
    }
    if (data)
        fclose(data);
    return r;
}

int emu_xc_put_bandwidth(struct emu_exp *x)
{
    struct emu_nic_pair pairs[NODES_PER_ROUTER];
    const struct emu_nic_stream all_nics = {
        .kind = EMU_NIC_PUT,
        .pairs = pairs,
        .n_pairs = NODES_PER_ROUTER,
        .bytes = 65536,
        .is_bidirectional = true,
        .warmup_ps = 30000000,
        .measure_ps = 60000000,
    };
    struct emu_nic_stream_result result;
    struct emu_nic_setup setup;
    struct emu_machine *m;
    double plateau[2];
    int r = emu_exp_machine(x, one_group, &m);

    if (r < 0)
        return r;
    setup = setup_of(x, m);
    /* A node of another chassis and slot: no single link between the two routers limits them. */
    r = put_curves(x, &setup, 17 * NODES_PER_ROUTER, plateau);
    if (r < 0)
        goto out;
    emu_exp_figure(x, 'P', "put_one_way", "GB/s", emu_exp_within(10, 0.05), plateau[0]);
    emu_exp_fitted(
        x, "put_both_ways", "GB/s", 15, plateau[1],
        emu_exp_param("host.duplex_percent", emu_node_param_value(emu_machine_node_params(m), "duplex_percent")));
    for (uint32_t nic = 0; nic < NODES_PER_ROUTER; nic++)
        pairs[nic] = (struct emu_nic_pair){ { nic, 0 }, { (17 + 16 * nic + nic) * NODES_PER_ROUTER, 0 } };
    r = emu_nic_stream(&setup, &all_nics, NULL, &result);
    if (r == 0) {
        emu_exp_figure(x, 'P', "each_way_with_4_nics", "GB/s", emu_exp_within(7.5, 0.05),
                       result.mbytes_per_s / 1000 / 2 / NODES_PER_ROUTER);
        emu_exp_detail(x, "4 NICs: slowest pair %.2f, fastest %.2f GB/s both ways", result.pair_min_mbytes_per_s / 1000,
                       result.pair_max_mbytes_per_s / 1000);
    }
out:
    emu_machine_destroy(m);
    return r;
}

/* ---- XC-9: size at half of the peak ---- */

int emu_xc_half_peak(struct emu_exp *x)
{
    struct emu_nic_setup setup;
    struct emu_machine *m;
    double half, below, above, low = 16, high = 1024;
    int r = emu_exp_machine(x, one_group, &m);

    if (r < 0)
        return r;
    setup = setup_of(x, m);
    half = emu_nic_packet_mbytes_per_s(&setup) / 1000 / 2;
    while (high - low > 8 && r == 0) { /* the rate rises with the size */
        double middle = floor((low + high) / 2);
        double gb;

        r = stream_gb_per_s(
            &setup, &(struct stream_load){ EMU_NIC_PUT, 17 * NODES_PER_ROUTER, 16, (uint32_t)middle, false }, &gb);
        if (gb >= half)
            high = middle;
        else
            low = middle;
    }
    if (r == 0)
        r = stream_gb_per_s(&setup, &(struct stream_load){ EMU_NIC_PUT, 17 * NODES_PER_ROUTER, 16, 64, false }, &below);
    if (r == 0)
        r = stream_gb_per_s(&setup, &(struct stream_load){ EMU_NIC_PUT, 17 * NODES_PER_ROUTER, 16, 192, false },
                            &above);
    if (r == 0) {
        emu_exp_report(
            x, &(struct emu_metric){ .kind = 'K',
                                     .name = "half_peak_size_16_processes",
                                     .unit = "B",
                                     .tolerance = EMU_TOL_RANGE,
                                     .src = 64,
                                     .src_high = 160,
                                     .got = high,
                                     .param_name = "host.put_gap_ns",
                                     .param_value = emu_node_param_value(emu_machine_node_params(m), "put_gap_ns") });
        emu_exp_detail(x, "half of the peak is %.2f GB/s; 64 B %.2f, 192 B %.2f GB/s", half, below, above);
    }
    emu_machine_destroy(m);
    return r;
}

/* ---- XC-11: FMA launch ---- */

static int launches_per_s(const struct emu_nic_setup *setup, uint32_t n_procs, bool changes_mdh, double *rate_out)
{
    struct emu_nic_pair pairs[EMU_NIC_PROCS_MAX];
    const struct emu_nic_stream s = {
        .kind = EMU_NIC_LAUNCH,
        .pairs = pairs,
        .n_pairs = n_procs,
        .bytes = 8,
        .changes_mdh = changes_mdh,
        .warmup_ps = 10000000,
        .measure_ps = 20000000,
    };
    struct emu_nic_stream_result result;
    int r;

    emu_nic_pairs_between(0, 17 * NODES_PER_ROUTER, n_procs, pairs);
    /* "any PE": each process to a node of its own. */
    for (uint32_t i = 0; i < n_procs; i++)
        pairs[i].to.nid = (1 + i) * NODES_PER_ROUTER;
    r = emu_nic_stream(setup, &s, NULL, &result);
    *rate_out = r == 0 ? result.operations_per_s : NAN;
    return r;
}

int emu_xc_launch_rate(struct emu_exp *x)
{
    static const uint32_t procs[] = { 1, 2, 4, 8, 12, 16, 20, 26 };
    enum { N = sizeof(procs) / sizeof(procs[0]) };
    struct emu_nic_setup setup;
    struct emu_machine *m;
    double rate[2][N];
    bool is_linear = true;
    FILE *data;
    int r = emu_exp_machine(x, one_group, &m);

    if (r < 0)
        return r;
    setup = setup_of(x, m);
    data = emu_exp_data(x, "launch", "FMA launches of one node", "processes", "10^6 puts/s");
    for (int mdh = 0; mdh < 2 && r == 0; mdh++) {
        for (int i = 0; i < N && r == 0; i++) {
            r = launches_per_s(&setup, procs[i], mdh != 0, &rate[mdh][i]);
            if (data)
                fprintf(data, "%s\t%u\t%g\n", mdh ? "other handle each time" : "same handle", procs[i],
                        rate[mdh][i] / 1e6);
            if (r == 0 && rate[mdh][i] < 0.97 * rate[mdh][N - 1])
                is_linear = is_linear && fabs(rate[mdh][i] / procs[i] / rate[mdh][0] - 1) < 0.03;
            emu_exp_progress(x, (mdh * N + i + 1) / (2.0 * N));
        }
    }
    if (data)
        fclose(data);
    if (r == 0) {
        emu_exp_fitted(
            x, "launches_per_core", "M/s", 7.5, rate[0][0] / 1e6,
            emu_exp_param("host.launch_gap_ns", emu_node_param_value(emu_machine_node_params(m), "launch_gap_ns")));
        emu_exp_fitted(x, "launches_per_node", "M/s", 120, rate[0][N - 1] / 1e6,
                       emu_exp_param("host.launch_node_gap_ns",
                                     emu_node_param_value(emu_machine_node_params(m), "launch_node_gap_ns")));
        emu_exp_figure(x, 'P', "launches_per_node_other_handles", "M/s", emu_exp_within(80, 0.05),
                       rate[1][N - 1] / 1e6);
        emu_exp_holds(x, 'P', "linear_up_to_the_cap", is_linear);
    }
    emu_machine_destroy(m);
    return r;
}

/* ---- XC-12, XC-13: messages ---- */

int emu_xc_mpi_bandwidth(struct emu_exp *x)
{
    struct emu_nic_pingpong p = {
        .kind = EMU_NIC_MESSAGE,
        .a = { 0, 0 },
        .b = { 17 * NODES_PER_ROUTER, 0 },
        .bytes = 1u << 20,
        .rounds = 4,
    };
    uint32_t step = emu_exp_context(x)->is_full ? 2 : 8;
    struct emu_nic_pingpong_result pingpong;
    struct emu_nic_setup setup;
    struct emu_machine *m;
    double streaming = 0, many = 0, both = 0;
    FILE *data;
    int r = emu_exp_machine(x, one_group, &m);

    if (r < 0)
        return r;
    setup = setup_of(x, m);
    data = emu_exp_data(x, "mpi", "Messages between two nodes", "bytes", "GB/s");
    for (uint32_t bytes = 64; bytes <= 1u << 20 && r == 0;
         bytes = bytes * step > 1u << 20 && bytes < 1u << 20 ? 1u << 20 : bytes * step) {
        p.bytes = bytes;
        r = emu_nic_pingpong(&setup, &p, &pingpong);
        if (r == 0)
            r = stream_gb_per_s(&setup, &(struct stream_load){ EMU_NIC_MESSAGE, p.b.nid, 1, bytes, false }, &streaming);
        if (r == 0)
            r = stream_gb_per_s(&setup, &(struct stream_load){ EMU_NIC_MESSAGE, p.b.nid, 8, bytes, false }, &many);
        if (r == 0)
            r = stream_gb_per_s(&setup, &(struct stream_load){ EMU_NIC_MESSAGE, p.b.nid, 1, bytes, true }, &both);
        if (data && r == 0)
            fprintf(data, "ping-pong\t%u\t%g\nstreaming\t%u\t%g\n8 processes\t%u\t%g\nboth ways\t%u\t%g\n", bytes,
                    pingpong.mbytes_per_s / 1000, bytes, streaming, bytes, many, bytes, both);
        emu_exp_detail(x, "%u B: ping-pong %.2f, streaming %.2f, 8 processes %.2f, both ways %.2f GB/s", bytes,
                       pingpong.mbytes_per_s / 1000, streaming, many, both);
    }
    if (data)
        fclose(data);
    if (r == 0) {
        emu_exp_fitted(x, "pingpong_1_MiB", "GB/s", 8.5, pingpong.mbytes_per_s / 1000,
                       emu_exp_param("host.bte_mbs", setup.host.bte_kbs / 1000.0));
        emu_exp_figure(x, 'P', "streaming_1_MiB", "GB/s", emu_exp_within(9.7, 0.05), streaming);
        emu_exp_figure(x, 'P', "8_processes_1_MiB", "GB/s", emu_exp_within(9.7, 0.05), many);
        emu_exp_why(x, "the NIC's peak of 10.24 GB/s (XC-7) less 0.3 %%: the model has no loss in the block engine");
        emu_exp_at_most(x, 'P', "streaming_under_the_put_plateau", "GB/s", 10.5, streaming);
    }
    emu_machine_destroy(m);
    return r;
}

enum { EXCHANGES = 9 }; /* of 1 KiB to 256 KiB */

/* MB/s of exchanges with one threshold. */
static int exchange_curve(const struct emu_nic_setup *setup, uint32_t threshold, double curve_out[EXCHANGES])
{
    struct emu_nic_setup adjusted = *setup;

    adjusted.host.eager_bytes_max = threshold;
    for (uint32_t i = 0; i < EXCHANGES; i++) {
        const struct emu_nic_pingpong p = {
            .kind = EMU_NIC_MESSAGE,
            .a = { 0, 0 },
            .b = { 17 * NODES_PER_ROUTER, 0 },
            .bytes = 1024u << i,
            .rounds = 4,
        };
        struct emu_nic_exchange_result result;
        int r = emu_nic_exchange(&adjusted, &p, &result);

        if (r < 0)
            return r;
        curve_out[i] = result.mbytes_per_s;
    }
    return 0;
}

/* Least and largest of the ratios to the standard curve, the latter up to 64 KiB. */
static void compare_curves(const double *standard, const double *curve, double *least_out, double *gain_out)
{
    *least_out = INFINITY;
    *gain_out = 0;
    for (uint32_t i = 0; i < EXCHANGES; i++) {
        *least_out = fmin(*least_out, curve[i] / standard[i]);
        if (1024u << i <= 65536)
            *gain_out = fmax(*gain_out, curve[i] / standard[i]);
    }
}

static void write_curves(struct emu_exp *x, const double *standard, const double *best)
{
    FILE *data =
        emu_exp_data(x, "thresholds", "Exchanges with two thresholds of eager messages", "bytes", "GB/s both ways");

    if (!data)
        return;
    for (uint32_t i = 0; i < EXCHANGES; i++)
        fprintf(data, "default\t%u\t%g\nadjusted\t%u\t%g\n", 1024u << i, standard[i] / 1000, 1024u << i,
                best[i] / 1000);
    fclose(data);
}

/*
 * The source says neither the thresholds nor whether they were raised or lowered. The adjusted one is the best of the
 * powers of two, as a user finds it who tries them: of those that are nowhere less the one with the largest gain.
 */
int emu_xc_thresholds(struct emu_exp *x)
{
    double standard[EXCHANGES], curve[EXCHANGES], best[EXCHANGES];
    double best_least = 0, best_gain = 0;
    uint32_t best_threshold = 0;
    struct emu_nic_setup setup;
    struct emu_machine *m;
    int r = emu_exp_machine(x, one_group, &m);

    if (r < 0)
        return r;
    setup = setup_of(x, m);
    r = exchange_curve(&setup, setup.host.eager_bytes_max, standard);
    for (uint32_t threshold = 512; threshold <= 65536 && r == 0; threshold *= 2) {
        double least, gain;

        r = exchange_curve(&setup, threshold, curve);
        if (r < 0)
            break;
        compare_curves(standard, curve, &least, &gain);
        emu_exp_detail(x, "threshold %u: least %.3f, largest gain up to 64 KB %.3f of the default", threshold, least,
                       gain);
        if (best_threshold == 0 || (least >= 1 - 1e-9 && (best_least < 1 - 1e-9 || gain > best_gain))) {
            best_threshold = threshold;
            best_least = least;
            best_gain = gain;
            memcpy(best, curve, sizeof(best));
        }
    }
    if (r == 0) {
        write_curves(x, standard, best);
        emu_exp_holds(x, 'Q', "adjusted_never_less", best_least >= 1 - 1e-9);
        emu_exp_at_least(x, 'Q', "largest_gain_1_to_64_KB", "1", 1.1, best_gain);
        emu_exp_why(x, "the default is the best: copies cost more than the handshake. The source tells neither its "
                       "default nor its copies nor its buffers (host.eager_buffer_bytes)");
        emu_exp_detail(x, "default %u, adjusted %u bytes", setup.host.eager_bytes_max, best_threshold);
    }
    emu_machine_destroy(m);
    return r;
}

/* ---- XC-14: outstanding packets ---- */

/* One NIC, as many packets under way as it keeps track of. */
static int window_gb_per_s(const struct emu_nic_setup *setup, double *gb_out)
{
    /* The last node: in the other group. */
    const struct emu_nic_pair pair = { { 0, 0 }, { emu_machine_n_nodes(setup->machine) - 1, 0 } };
    bool is_single = emu_machine_nic(setup->machine)->outstanding_packets == 1;
    const struct emu_nic_stream s = {
        .kind = EMU_NIC_BTE_PUT,
        .pairs = &pair,
        .n_pairs = 1,
        .bytes = is_single ? 1024 : 32768,
        .window = 8,
        .warmup_ps = 40000000,
        .measure_ps = is_single ? 500000000 : 100000000,
    };
    struct emu_nic_stream_result result;
    int r = emu_nic_stream(setup, &s, NULL, &result);

    *gb_out = r == 0 ? result.mbytes_per_s / 1000 : NAN;
    return r;
}

/* Lengthens the NIC's pipeline until a packet and its answer take so long. */
static int set_round_trip(struct emu_exp *x, struct emu_nic_setup *setup, double us, double *us_out)
{
    struct emu_machine *single;
    struct emu_nic_setup one;
    double gb;
    int r = emu_exp_machine(x, "aries:groups=2,outstanding_packets=1", &single);

    for (int i = 0; i < 3 && r == 0; i++) {
        one = *setup;
        one.machine = single;
        r = window_gb_per_s(&one, &gb);
        if (r == 0) {
            *us_out = 64 / gb / 1000;
            if (i < 2) {
                double add_ps = (us - *us_out) * 1e6 / 2; /* the request and the answer pass it */

                if (add_ps < -(double)setup->host.out_ps)
                    add_ps = -(double)setup->host.out_ps;
                setup->host.out_ps = (uint32_t)((double)setup->host.out_ps + add_ps);
            }
        }
    }
    if (r == 0 || single)
        emu_machine_destroy(single);
    return r;
}

int emu_xc_outstanding(struct emu_exp *x)
{
    static const uint32_t windows[] = { 64, 256, 1024 };
    static const uint32_t trips_us[] = { 1, 2, 4, 6 };
    double peak = 0;
    int r = 0;

    for (int w = 0; w < 3 && r == 0; w++) {
        struct emu_machine *m = NULL;
        char spec[80];

        snprintf(spec, sizeof(spec), "aries:groups=2");
        if (w < 2) /* the largest is the machine file's own */
            snprintf(spec, sizeof(spec), "aries:groups=2,outstanding_packets=%u", windows[w]);
        r = emu_exp_machine(x, spec, &m);
        for (int t = 0; t < 4 && r == 0; t++) {
            struct emu_nic_setup setup = setup_of(x, m);
            double us = 0;
            double gb, expected;
            char name[64];

            setup.mode = EMU_MODE_MINIMAL; /* paths of one length, so that the round trip is one figure */
            r = set_round_trip(x, &setup, trips_us[t], &us);
            if (r == 0)
                r = window_gb_per_s(&setup, &gb);
            if (r < 0)
                break;
            peak = emu_nic_packet_mbytes_per_s(&setup) / 1000;
            expected = fmin(peak, windows[w] * 64 / us / 1000);
            snprintf(name, sizeof(name), "window_%u_round_trip_%u_us", windows[w], trips_us[t]);
            emu_exp_figure(x, 'S', name, "GB/s", emu_exp_within(expected, 0.03), gb);
            emu_exp_detail(x, "window %u: round trip %.3f us, %.3f GB/s", windows[w], us, gb);
            emu_exp_progress(x, (w * 4 + t + 1) / 12.0);
        }
        emu_machine_destroy(m);
    }
    return r;
}

/* ---- XC-16: atomics ---- */

int emu_xc_atomics(struct emu_exp *x)
{
    const uint64_t n = emu_exp_context(x)->is_full ? 4000000 : 400000;
    struct emu_nic_setup setup;
    struct emu_machine *m;
    bool is_in_band = true;
    bool is_below = true;
    double hot, at_64, at_65, low = INFINITY, high = 0;
    FILE *data;
    int r = emu_exp_machine(x, one_group, &m);

    if (r < 0)
        return r;
    setup = setup_of(x, m);
    data = emu_exp_data(x, "amo", "Random atomics on an array", "bytes of the array", "10^6/s");
    hot = emu_nic_amo_rate(&setup, 1, 4096, false, n) / 1e6;
    at_64 = emu_nic_amo_rate(&setup, 64, 4096, false, n) / 1e6;
    at_65 = emu_nic_amo_rate(&setup, 65, 4096, false, n) / 1e6;
    for (uint64_t bytes = 1u << 20; bytes <= UINT64_C(1) << 34; bytes *= 4) {
        double small = emu_nic_amo_rate(&setup, bytes / 8, 4096, true, n) / 1e6;
        double huge = emu_nic_amo_rate(&setup, bytes / 8, UINT64_C(1) << 30, true, n) / 1e6;

        low = fmin(low, fmin(small, huge));
        high = fmax(high, fmax(small, huge));
        is_in_band = is_in_band && small >= 50 && huge <= 120;
        if (bytes > (uint64_t)setup.host.pte_entries * 4096)
            is_below = is_below && small < huge;
        if (data)
            fprintf(data, "4 KB pages\t%llu\t%g\nhuge pages\t%llu\t%g\n", (unsigned long long)bytes, small,
                    (unsigned long long)bytes, huge);
    }
    if (data)
        fclose(data);
    emu_exp_figure(x, 'A', "one_hot_word", "M/s", emu_exp_within(400, 0.01), hot);
    emu_exp_figure(x, 'A', "64_words", "M/s", emu_exp_within(400, 0.01), at_64);
    emu_exp_class(x, EMU_CLASS_FORMULA);
    emu_exp_below(x, 'S', "65_words_over_64", "1", 0.5, at_65 / at_64);
    emu_exp_report(
        x, &(struct emu_metric){ .kind = 'K',
                                 .name = "random_slowest",
                                 .unit = "M/s",
                                 .tolerance = EMU_TOL_AT_LEAST,
                                 .src = 50,
                                 .got = low,
                                 .param_name = "host.pte_miss_ns",
                                 .param_value = emu_node_param_value(emu_machine_node_params(m), "pte_miss_ns") });
    emu_exp_report(
        x, &(struct emu_metric){ .kind = 'K',
                                 .name = "random_fastest",
                                 .unit = "M/s",
                                 .tolerance = EMU_TOL_AT_MOST,
                                 .src = 120,
                                 .got = high,
                                 .param_name = "host.amo_miss_ns",
                                 .param_value = emu_node_param_value(emu_machine_node_params(m), "amo_miss_ns") });
    emu_exp_class(x, EMU_CLASS_FORMULA);
    emu_exp_holds(x, 'S', "small_pages_below_huge_ones_beyond_their_reach", is_below);
    emu_machine_destroy(m);
    return 0;
}

/* ---- XC-32: one NIC and the tiles of four ---- */

int emu_xc_netlink(struct emu_exp *x)
{
    struct emu_nic_pair pairs[NODES_PER_ROUTER];
    struct emu_nic_stream s = {
        .kind = EMU_NIC_BTE_PUT,
        .pairs = pairs,
        .n_pairs = 1,
        .bytes = 16384,
        .window = 8,
        .warmup_ps = 20000000,
        .measure_ps = 40000000,
    };
    const struct emu_packet_format *f;
    struct emu_nic_stream_result alone, all;
    struct emu_nic_setup setup;
    struct emu_machine *m;
    struct emu_link in;
    double share;
    int r = emu_exp_machine(x, one_group, &m);

    if (r < 0)
        return r;
    f = &emu_machine_nic(m)->format;
    setup = setup_of(x, m);
    for (uint32_t nic = 0; nic < NODES_PER_ROUTER; nic++)
        pairs[nic] = (struct emu_nic_pair){ { nic, 0 }, { (17 + 16 * nic + nic) * NODES_PER_ROUTER, 0 } };
    r = emu_nic_stream(&setup, &s, NULL, &alone);
    s.n_pairs = NODES_PER_ROUTER;
    if (r == 0)
        r = emu_nic_stream(&setup, &s, NULL, &all);
    if (r == 0) {
        (void)emu_link_get(m, 0, &in);
        /* A set of tiles for tile_nics NICs; 15 flits for 64 B as in XC-8. */
        share = setup.host.tile_kbs / 1e6 / setup.host.tile_nics * f->payload_bytes_max / (15.0 * f->flit_bits / 8);
        emu_exp_at_least(x, 'S', "alone_over_its_share", "1", 1.3, alone.mbytes_per_s / 1000 / share);
        emu_exp_detail(x, "alone %.2f GB/s, each of four %.2f GB/s, share %.2f GB/s", alone.mbytes_per_s / 1000,
                       all.mbytes_per_s / 1000 / NODES_PER_ROUTER, share);
    }
    emu_machine_destroy(m);
    return r;
}

/* ---- XC-34: one pair by placement ---- */

int emu_xc_placement(struct emu_exp *x)
{
    static const char *const names[] = { "same_router", "same_chassis", "same_group", "other_group" };
    static const uint32_t places[][4] = { { 0, 0, 0, 1 }, { 0, 0, 1, 0 }, { 0, 1, 1, 0 }, { 1, 1, 1, 0 } };
    struct emu_machine *m;
    double got[2][4];
    double one_link;
    struct emu_link l;
    int r = emu_exp_machine(x, "aries:groups=3,cables_per_bundle=12", &m);

    if (r < 0)
        return r;
    for (int adaptive = 0; adaptive < 2 && r == 0; adaptive++) {
        for (int i = 0; i < 4 && r == 0; i++) {
            struct emu_nic_setup setup = setup_of(x, m);
            uint32_t to;

            setup.mode = adaptive ? EMU_MODE_ADAPTIVE_0 : EMU_MODE_MINIMAL;
            (void)emu_machine_nid_at(m, places[i][0], places[i][1], places[i][2], places[i][3], &to);
            r = stream_gb_per_s(&setup, &(struct stream_load){ EMU_NIC_BTE_PUT, to, 1, 16384, false },
                                &got[adaptive][i]);
            if (r == 0)
                emu_exp_detail(x, "%s %s: %.2f GB/s", names[i], adaptive ? "adaptive" : "minimal", got[adaptive][i]);
            emu_exp_progress(x, (adaptive * 4 + i + 1) / 8.0);
        }
    }
    if (r == 0) {
        const struct emu_packet_format *f = &emu_machine_nic(m)->format;

        (void)emu_link_get(m, 2 * emu_machine_n_nodes(m), &l); /* the first green one */
        one_link = (double)l.data_bytes_per_s / 1e9 * f->payload_bytes_max / (14.0 * f->flit_bits / 8);
        emu_exp_figure(x, 'S', "same_chassis_minimal", "GB/s", emu_exp_within(one_link, 0.03), got[0][1]);
        emu_exp_at_least(x, 'S', "same_chassis_adaptive", "GB/s", 9, got[1][1]);
        for (int i = 0; i < 4; i++) {
            char name[64];

            snprintf(name, sizeof(name), "%s_adaptive_over_minimal", names[i]);
            emu_exp_at_least(x, 'S', name, "1", 0.97, got[1][i] / got[0][i]);
        }
    }
    emu_machine_destroy(m);
    return r;
}
