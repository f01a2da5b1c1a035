/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Cray X1 (spec/machines.md 6.5).
 *
 * A node has four processors; processes 0 .. 3 of a nid are those. "Intra" is between two of one node, "inter" between
 * two nodes of neighbouring vertices. Sizes: 1 MB is 10^6 bytes, the others powers of two.
 *
 * Fitted (K, spec/machines.md 9): host.send_ns = host.recv_ns (X1-1 MPI between nodes), host.local_ns (within),
 * host.shmem_ns, host.caf_ns; host.interface_mbs and host.local_mbs (X1-2 one way); host.duplex_percent (X1-2 both ways
 * between nodes); host.send_end_ns, paid behind a send of host.send_end_bytes_min to max (X1-4 at 1 024, and the
 * source's window of 512 to 2 048). links.edge is our default
 * (6.6). All else is predicted with these.
 */
#include "emunic/experiments/cug.h"

#include <math.h>
#include <stdio.h>

#include "emunic/experiments/loaded.h"
#include "emunic/experiments/tables.h"
#include "emunic/experiments/probe.h"
#include "emunic/fabric/hypercube.h"
#include "emunic/fabric/route.h"

enum { PAIRS_MAX = 64, MSPS = EMU_X1_MSPS_PER_NODE };

static const struct emu_nic_proc here = { 0, 0 };
static const struct emu_nic_proc same_node = { 0, 1 };
static const struct emu_nic_proc next_vertex = { 8, 0 };

/* Each of a node's processors moves its data itself. */
static int open_x1(struct emu_exp *x, const char *spec, struct cug *c)
{
    int r = cug_open(x, spec, c);

    c->setup.interface_per_core = true;
    return r;
}

static int run_x1_1(struct emu_exp *x)
{
    struct cug c;
    int r = open_x1(x, "x1", &c);

    if (r < 0)
        return r;
    emu_exp_fitted(x, "mpi_inter_8B", "us", 7.3, cug_one_way_us(&c, CUG_MPI, here, next_vertex, 8),
                   emu_exp_param("host.send_ns+host.recv_ns", emu_node_param_value(&c.setup.host, "send_ns") +
                                                                  emu_node_param_value(&c.setup.host, "recv_ns")));
    emu_exp_fitted(x, "mpi_intra_8B", "us", 7.3, cug_one_way_us(&c, CUG_MPI, here, same_node, 8),
                   emu_exp_param("host.local_ns", emu_node_param_value(&c.setup.host, "local_ns")));
    emu_exp_fitted(x, "shmem_inter_8B", "us", 3.8, cug_one_way_us(&c, CUG_SHMEM, here, next_vertex, 8),
                   emu_exp_param("host.shmem_ns", emu_node_param_value(&c.setup.host, "shmem_ns")));
    emu_exp_fitted(x, "caf_inter_8B", "us", 3.9, cug_one_way_us(&c, CUG_CAF, here, next_vertex, 8),
                   emu_exp_param("host.caf_ns", emu_node_param_value(&c.setup.host, "caf_ns")));
    emu_exp_detail(x, "the specification sheet gives 5 us for MPI; 7.3 is measured (spec/machines.md 10.7)");
    cug_close(&c);
    return c.error;
}

static int run_x1_2(struct emu_exp *x)
{
    struct cug c;
    int r = open_x1(x, "x1", &c);

    if (r < 0)
        return r;
    emu_exp_fitted(x, "uni_inter_1MB", "MB/s", 9364, cug_uni(&c, here, next_vertex, CUG_MB),
                   emu_exp_param("host.interface_mbs", emu_node_param_value(&c.setup.host, "interface_mbs")));
    emu_exp_fitted(x, "uni_intra_1MB", "MB/s", 9503, cug_uni(&c, here, same_node, CUG_MB),
                   emu_exp_param("host.local_mbs", emu_node_param_value(&c.setup.host, "local_mbs")));
    emu_exp_fitted(x, "bi_inter_1MB", "MB/s", 16936, cug_bi(&c, here, next_vertex, CUG_MB),
                   emu_exp_param("host.duplex_percent", emu_node_param_value(&c.setup.host, "duplex_percent")));
    emu_exp_class(x, EMU_CLASS_FORMULA);
    emu_exp_figure(x, 'P', "bi_intra_1MB", "MB/s", emu_exp_within(17145, 0.02), cug_bi(&c, here, same_node, CUG_MB));
    cug_close(&c);
    return c.error;
}

/* From node 0 to nodes whose vertex differs in 0 .. 4 bits. */
static int run_x1_3(struct emu_exp *x)
{
    static const uint32_t sizes[] = { 8, 1024, 64 * CUG_KIB, CUG_MB };
    static const uint32_t vertices[] = { 0, 1, 3, 7, 15 };
    struct cug c;
    int r = open_x1(x, "x1", &c);

    if (r < 0)
        return r;
    for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++) {
        double low = INFINITY;
        double high = 0;
        char name[40];

        for (size_t d = 0; d < sizeof(vertices) / sizeof(vertices[0]); d++) {
            const struct emu_nic_proc there = { vertices[d] * 8 + 1, 0 };
            double rate = cug_uni(&c, here, there, sizes[s]);

            low = fmin(low, rate);
            high = fmax(high, rate);
            emu_exp_detail(x, "%u bytes over %zu dimensions: %.6g MB/s", sizes[s], d, rate);
        }
        snprintf(name, sizeof(name), "spread_%uB", sizes[s]);
        emu_exp_at_most(x, 'P', name, "1", 0.03, (high - low) / high);
    }
    cug_close(&c);
    return c.error;
}

static double ratio(struct cug *c, struct emu_nic_proc there, uint32_t bytes)
{
    return cug_uni(c, here, there, bytes) / cug_bi(c, here, there, bytes);
}

static int run_x1_4(struct emu_exp *x)
{
    static const struct {
        const char *band;
        uint32_t bytes;
        double low, high; /* with the 5 points of tolerance */
    } points[] = {
        { "small", 8, 0.45, 0.65 },     { "small", 64, 0.45, 0.65 },     { "small", 256, 0.45, 0.65 },
        { "middle", 512, 0.70, 0.80 },  { "middle", 1024, 0.70, 0.80 },  { "middle", 2048, 0.70, 0.80 },
        { "large", 32768, 0.45, 0.55 }, { "large", 131072, 0.45, 0.55 }, { "large", 524288, 0.45, 0.55 },
    };
    double least = INFINITY; /* intra over inter, bandwidth of the large sizes */
    struct cug c;
    int r = open_x1(x, "x1", &c);

    if (r < 0)
        return r;
    emu_exp_fitted(x, "uni_over_bi_1024B", "1", 0.75, ratio(&c, next_vertex, 1024),
                   emu_exp_param("host.send_end_ns", emu_node_param_value(&c.setup.host, "send_end_ns")));
    for (size_t i = 0; i < sizeof(points) / sizeof(points[0]); i++) {
        double inter = ratio(&c, next_vertex, points[i].bytes);
        double intra = ratio(&c, same_node, points[i].bytes);
        char name[60];

        emu_exp_detail(x, "%u bytes: intra %.4f inter %.4f", points[i].bytes, intra, inter);
        if (points[i].bytes >= 32768)
            least = fmin(least, cug_uni(&c, here, same_node, points[i].bytes) /
                                    cug_uni(&c, here, next_vertex, points[i].bytes));
        if (points[i].bytes == 1024)
            continue; /* fitted */
        snprintf(name, sizeof(name), "uni_over_bi_%s_%uB", points[i].band, points[i].bytes);
        if (points[i].bytes == 512 || points[i].bytes == 2048) {
            /* The ends of the window in which host.send_end_ns is paid: taken from the figure. */
            emu_exp_report(x, &(struct emu_metric){ .kind = 'K',
                                                    .name = name,
                                                    .unit = "1",
                                                    .tolerance = EMU_TOL_RANGE,
                                                    .src = points[i].low,
                                                    .src_high = points[i].high,
                                                    .got = inter,
                                                    .param_name = "host.send_end_bytes_min+host.send_end_bytes_max",
                                                    .param_value = points[i].bytes });
            continue;
        }
        emu_exp_figure(x, 'P', name, "1", emu_exp_range(points[i].low, points[i].high), inter);
    }
    emu_exp_above(x, 'P', "intra_over_inter_bandwidth", "1", 1, least);
    emu_exp_detail(x, "\"intra-node higher than inter\" is read as bandwidth; of the ratios above intra is the lower "
                      "one");
    emu_exp_detail(x, "at 1 MB the source's own table gives 9364 / 16936 = 0.553, more than its 50 %% + 5 points");
    cug_close(&c);
    return c.error;
}

/* Swaps of so many pairs at once, each number after another. */
struct pair_counts {
    const uint32_t *ns;
    size_t n;
    uint32_t bytes;
};

/* Pairs i <-> i + 64 on 32 nodes, four processors each; and on the XT3 nodes in the order of their numbers. */
static int swaps_of(struct emu_exp *x, const char *spec, uint32_t ppn, const struct pair_counts *counts,
                    struct cug_rates *rates_out)
{
    struct emu_nic_pair pairs[PAIRS_MAX];
    struct cug c;
    int r = cug_open(x, spec, &c);

    if (r < 0)
        return r;
    c.setup.interface_per_core = ppn > 1;
    for (size_t i = 0; i < counts->n; i++) {
        cug_pairs(counts->ns[i], PAIRS_MAX, ppn, pairs);
        rates_out[i] = cug_swaps(&c, pairs, counts->ns[i], counts->bytes, NULL);
        emu_exp_detail(x, "%s, %u pairs of %u bytes: worst %.6g, best %.6g, sum %.6g MB/s", spec, counts->ns[i],
                       counts->bytes, rates_out[i].min, rates_out[i].max, rates_out[i].sum);
    }
    cug_close(&c);
    return c.error;
}

static int run_x1_5(struct emu_exp *x)
{
    static const uint32_t quick_ns[] = { 1, 16, 32, 64 };
    static const uint32_t full_ns[] = { 1, 2, 4, 8, 16, 24, 32, 40, 48, 56, 64 };
    bool is_full = emu_exp_context(x)->is_full;
    const uint32_t *ns = is_full ? full_ns : quick_ns;
    size_t n = is_full ? sizeof(full_ns) / sizeof(full_ns[0]) : sizeof(quick_ns) / sizeof(quick_ns[0]);
    uint32_t bytes = is_full ? CUG_MB : 64 * CUG_KIB;
    const struct pair_counts counts = { ns, n, bytes };
    struct cug_rates x1[16], xt3[16];
    bool is_above = true;
    FILE *data;
    int r;

    r = swaps_of(x, "x1", MSPS, &counts, x1);
    if (r == 0)
        r = swaps_of(x, "xt3", 1, &counts, xt3);
    if (r < 0)
        return r;
    data = emu_exp_data(x, "pairs", "Worst of n pairs, swap", "pairs", "MB/s");
    for (size_t i = 0; i < n; i++) {
        is_above = is_above && x1[i].min > xt3[i].min && x1[i].sum > xt3[i].sum;
        if (data)
            fprintf(data, "X1\t%u\t%g\nXT3\t%u\t%g\n", ns[i], x1[i].min, ns[i], xt3[i].min);
    }
    if (data)
        fclose(data);
    emu_exp_above(x, 'Q', "loss_per_pair_against_xt3", "MB/s", (xt3[0].min - xt3[n - 1].min) / (ns[n - 1] - 1),
                  (x1[0].min - x1[n - 1].min) / (ns[n - 1] - 1));
    emu_exp_holds(x, 'Q', "x1_above_xt3_at_every_n", is_above);
    emu_exp_above(x, 'Q', "sum_of_64_pairs_above_half_as_many", "MB/s", x1[is_full ? 6 : 2].sum, x1[n - 1].sum);
    emu_exp_detail(x, "shares: worst of 64 pairs keeps %.3f of a pair alone on the X1, %.3f on the XT3",
                   x1[n - 1].min / x1[0].min, xt3[n - 1].min / xt3[0].min);
    if (is_full) {
        static const char *const specs[] = { "x1:links.edge.gbps_per_lane=12.5", "x1:links.edge.gbps_per_lane=25.6",
                                             "x1:links.edge.gbps_per_lane=102.5" };
        static const uint32_t all = PAIRS_MAX;

        for (size_t i = 0; i < sizeof(specs) / sizeof(specs[0]) && r == 0; i++)
            r = swaps_of(x, specs[i], MSPS, &(struct pair_counts){ &all, 1, bytes }, x1);
    }
    return r;
}

/* Longest minimal route, router to router. */
static uint32_t diameter(const struct emu_machine *m)
{
    uint32_t longest = 0;

    for (uint32_t dst = 0; dst < emu_machine_n_nodes(m); dst++) {
        struct emu_route route;

        if (emu_route_minimal(m, 0, dst, 0, &route) == 0 && route.n_hops > longest)
            longest = route.n_hops;
    }
    return longest;
}

static int run_x1_6(struct emu_exp *x)
{
    struct emu_machine *m;
    uint32_t n_edge_links = 0;
    uint32_t n_across = 0;
    int r = emu_exp_machine(x, "x1", &m);

    if (r < 0)
        return r;
    for (uint32_t id = 0; id < emu_machine_n_links(m); id++) {
        struct emu_link link;

        if (emu_link_get(m, id, &link) < 0 || link.link_class != EMU_LINK_EDGE)
            continue;
        n_edge_links++;
        n_across += link.from.index < 8 && link.to.index >= 8;
    }
    emu_exp_exact(x, 'A', "vertices", "1", 16, emu_machine_n_routers(m));
    emu_exp_exact(x, 'A', "edges", "1", 32, n_edge_links / 2);
    emu_exp_exact(x, 'A', "diameter", "hops", 4, diameter(m));
    emu_exp_exact(x, 'A', "bisection_edges", "1", 8, n_across);
    emu_exp_exact(x, 'A', "nodes", "1", 128, emu_machine_n_nodes(m));
    emu_exp_exact(x, 'A', "msps", "1", 512, emu_machine_n_nodes(m) * MSPS);
    emu_machine_destroy(m);
    return 0;
}

static int run_aud_x1(struct emu_exp *x)
{
    int r = cug_audit(x, "x1", 0);

    for (uint32_t n = 1; n <= 4 && r == 0; n++)
        r = cug_audit(x, "x1", n);
    return r;
}

const struct emu_experiment emu_x1_experiments[] = {
    { "X1-1", "x1", "K", "K", EMU_EXP_PACKETS, "8 bytes one way: MPI 7.3 us, SHMEM 3.8, CAF 3.9", run_x1_1 },
    { "X1-2", "x1", "KP", "KM", EMU_EXP_PACKETS, "1 MB by MPI, one way and swap, within and between nodes", run_x1_2 },
    { "X1-3", "x1", "P", "M", EMU_EXP_PACKETS, "no effect of distance over the hypercube", run_x1_3 },
    { "X1-4", "x1", "KP", "KM", EMU_EXP_PACKETS, "one way over swap: 50-60 % small, 75 % middle, 50 % large",
      run_x1_4 },
    { "X1-5", "x1", "Q", "M", EMU_EXP_PACKETS, "1 to 64 pairs at once: steeper than on the XT3, and still above it",
      run_x1_5 },
    { "X1-6", "x1", "A", "C", EMU_EXP_ANALYTIC, "16 vertices, 32 edges, diameter 4, bisection 8 edges", run_x1_6 },
    { "LOAD-1", "x1", "S", "M", EMU_EXP_PACKETS, "full edges, complement, exchange of dimensions, incast (ours)",
      emu_x1_saturated },
    { "LOAD-2", "x1", "S", "M", EMU_EXP_PACKETS, "uniform traffic: edges busy, latency per hop, saturation (ours)",
      emu_x1_half },
    { "AUD-X1", "x1", "A", "C", EMU_EXP_ANALYTIC, "deadlock audit of the hypercube, with and without faults",
      run_aud_x1 },
    { "OWN-X1", "x1", "S", "M", EMU_EXP_PACKETS, "times, rates and buffers by arithmetic on the machine file (ours)",
      emu_probe_x1 },
    { 0 },
};
