/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Cray XD1 (spec/machines.md 7.5).
 *
 * A node has two processors; processes 0 and 1 of a nid are those. "2 ppn" uses both, "1 ppn" one. Distances are in
 * processor numbers as in the source: 1 is within a node, 2 to 11 within a chassis, 12 to 59 in another chassis. n
 * pairs are i <-> i + n, i = 0 .. n - 1, on nodes 0, 1, 2 ... filled one after another (the source does not give its
 * pattern).
 *
 * Fitted (K, spec/machines.md 9): host.send_ns = host.recv_ns (XD1-1 between nodes), host.local_ns (within);
 * host.interface_mbs, host.local_mbs (XD1-2 one way); host.duplex_percent (XD1-2 swap between nodes);
 * host.duplex_bytes_min (XD1-4, where the ratio steps). All else is predicted with these. The expansion fabric (XD1-6)
 * is there for all processes alike: no rule keeps those of a full node off it.
 */
#include "emunic/experiments/cug.h"

#include <math.h>
#include <stdio.h>

#include "emunic/experiments/loaded.h"
#include "emunic/experiments/tables.h"
#include "emunic/experiments/probe.h"
#include "emunic/fabric/direct_connect.h"
#include "emunic/fabric/fat_tree.h"

enum { PAIRS_MAX = 30 };

#define MAIN_ONLY "xd1"
#define EXPANDED  "xd1:fabrics=2"

static const struct emu_nic_proc here = { 0, 0 };
static const struct emu_nic_proc same_node = { 0, 1 };
static const struct emu_nic_proc same_chassis = { 3, 0 };

static int run_xd1_1(struct emu_exp *x)
{
    struct cug c;
    int r = cug_open(x, MAIN_ONLY, &c);

    if (r < 0)
        return r;
    emu_exp_fitted(x, "mpi_inter_8B", "us", 1.7, cug_one_way_us(&c, CUG_MPI, here, same_chassis, 8),
                   emu_exp_param("host.send_ns+host.recv_ns", emu_node_param_value(&c.setup.host, "send_ns") +
                                                                  emu_node_param_value(&c.setup.host, "recv_ns")));
    emu_exp_fitted(x, "mpi_intra_8B", "us", 1.7, cug_one_way_us(&c, CUG_MPI, here, same_node, 8),
                   emu_exp_param("host.local_ns", emu_node_param_value(&c.setup.host, "local_ns")));
    cug_close(&c);
    return c.error;
}

static int run_xd1_2(struct emu_exp *x)
{
    struct cug c;
    int r = cug_open(x, MAIN_ONLY, &c);

    if (r < 0)
        return r;
    emu_exp_fitted(x, "uni_inter_1MB", "MB/s", 1342, cug_uni(&c, here, same_chassis, CUG_MB),
                   emu_exp_param("host.interface_mbs", emu_node_param_value(&c.setup.host, "interface_mbs")));
    emu_exp_fitted(x, "uni_intra_1MB", "MB/s", 1087, cug_uni(&c, here, same_node, CUG_MB),
                   emu_exp_param("host.local_mbs", emu_node_param_value(&c.setup.host, "local_mbs")));
    emu_exp_fitted(x, "bi_inter_1MB", "MB/s", 2173, cug_bi(&c, here, same_chassis, CUG_MB),
                   emu_exp_param("host.duplex_percent", emu_node_param_value(&c.setup.host, "duplex_percent")));
    emu_exp_class(x, EMU_CLASS_FORMULA);
    emu_exp_figure(x, 'P', "bi_intra_1MB", "MB/s", emu_exp_within(1095, 0.02), cug_bi(&c, here, same_node, CUG_MB));
    cug_close(&c);
    return c.error;
}

static int run_xd1_3(struct emu_exp *x)
{
    static const uint32_t distances[] = { 1, 2, 6, 10, 12, 24, 30, 42, 58 }; /* even: the same processor of a node */
    double low = INFINITY;
    double high = 0;
    double intra = NAN;
    struct cug c;
    int r = cug_open(x, MAIN_ONLY, &c);

    if (r < 0)
        return r;
    for (size_t i = 0; i < sizeof(distances) / sizeof(distances[0]); i++) {
        double rate = cug_bi(&c, here, cug_proc(distances[i], 2), CUG_MB);

        emu_exp_detail(x, "distance %u: swap of 1 MB at %.6g MB/s", distances[i], rate);
        if (distances[i] == 1) {
            intra = rate;
            continue;
        }
        low = fmin(low, rate);
        high = fmax(high, rate);
    }
    emu_exp_figure(x, 'P', "intra_over_inter", "1", emu_exp_points(0.50, 0.03), intra / high);
    emu_exp_at_most(x, 'P', "spread_2_to_59", "1", 0.03, (high - low) / high);
    cug_close(&c);
    return c.error;
}

static double uni_over_bi(struct cug *c, uint32_t bytes)
{
    return cug_uni(c, here, same_chassis, bytes) / cug_bi(c, here, same_chassis, bytes);
}

/* Below the step a swap costs what one way costs, because host.duplex_bytes_min says so: the figure nearest to it is
 * fitted, those of smaller sizes are no figures. */
static int run_xd1_4(struct emu_exp *x)
{
    static const uint32_t small[] = { 8, 64, 512, 2048, 8192 };
    static const uint32_t large[] = { 32768, 65536, 262144, CUG_MB };
    struct cug c;
    int r = cug_open(x, MAIN_ONLY, &c);

    if (r < 0)
        return r;
    emu_exp_report(x, &(struct emu_metric){ .kind = 'K',
                                            .name = "uni_over_bi_16384B",
                                            .unit = "1",
                                            .tolerance = EMU_TOL_ABSOLUTE,
                                            .src = 0.50,
                                            .got = uni_over_bi(&c, 16384),
                                            .tol = 0.05,
                                            .param_name = "host.duplex_bytes_min",
                                            .param_value = emu_node_param_value(&c.setup.host, "duplex_bytes_min") });
    for (size_t i = 0; i < sizeof(small) / sizeof(small[0]); i++)
        emu_exp_detail(x, "%u bytes: %.4f", small[i], uni_over_bi(&c, small[i]));
    for (size_t i = 0; i < sizeof(large) / sizeof(large[0]); i++) {
        char name[40];

        snprintf(name, sizeof(name), "uni_over_bi_%uB", large[i]);
        emu_exp_figure(x, 'P', name, "1", emu_exp_points(0.60, 0.04), uni_over_bi(&c, large[i]));
    }
    cug_close(&c);
    return c.error;
}

/* n pairs i <-> i + n. The machine is opened and closed. */
static int swap_pairs(struct emu_exp *x, const char *spec, uint32_t n, uint32_t ppn, uint32_t bytes,
                      struct cug_rates *rates_out)
{
    struct emu_nic_pair pairs[PAIRS_MAX];
    struct cug c;
    int r = cug_open(x, spec, &c);

    if (r < 0)
        return r;
    cug_pairs(n, n, ppn, pairs);
    *rates_out = cug_swaps(&c, pairs, n, bytes, NULL);
    emu_exp_detail(x, "%s, %u pairs, %u ppn, %u bytes: worst %.6g, best %.6g, sum %.6g MB/s", spec, n, ppn, bytes,
                   rates_out->min, rates_out->max, rates_out->sum);
    cug_close(&c);
    return c.error;
}

/* Is there both a rise and a fall along the curve? */
static bool goes_up_and_down(const double *values, size_t n)
{
    bool rises = false;
    bool falls = false;

    for (size_t i = 1; i < n; i++) {
        rises = rises || values[i] > values[i - 1] * 1.01;
        falls = falls || values[i] < values[i - 1] * 0.99;
    }
    return rises && falls;
}

static int small_message_loss(struct emu_exp *x)
{
    static const uint32_t sizes[] = { 8, 256, 2048 };
    double largest = 0;

    for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
        struct emu_nic_pair pairs[PAIRS_MAX];
        struct cug_rates all;
        double alone, loss;
        struct cug c;
        int r = cug_open(x, MAIN_ONLY, &c);

        if (r < 0)
            return r;
        cug_pairs(PAIRS_MAX, PAIRS_MAX, 2, pairs);
        alone = cug_bi(&c, pairs[0].from, pairs[0].to, sizes[i]);
        all = cug_swaps(&c, pairs, PAIRS_MAX, sizes[i], NULL);
        loss = 1 - all.min / alone;
        emu_exp_detail(x, "30 pairs, 2 ppn, %u bytes: worst %.6g of %.6g MB/s alone, loss %.3f", sizes[i], all.min,
                       alone, loss);
        largest = fmax(largest, loss);
        cug_close(&c);
        if (c.error < 0)
            return c.error;
    }
    emu_exp_at_least(x, 'P', "loss_up_to_2KB_30_pairs", "1", 0.05, largest);
    return 0;
}

static int run_xd1_5(struct emu_exp *x)
{
    static const uint32_t quick_nodes[] = { 12, 16, 30 };
    static const uint32_t full_nodes[] = { 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30 };
    bool is_full = emu_exp_context(x)->is_full;
    const uint32_t *nodes = is_full ? full_nodes : quick_nodes;
    size_t n = is_full ? sizeof(full_nodes) / sizeof(full_nodes[0]) : sizeof(quick_nodes) / sizeof(quick_nodes[0]);
    uint32_t bytes = is_full ? CUG_MB : 128 * CUG_KIB;
    double worst_2ppn[16], worst_1ppn[16];
    FILE *data;
    int r = 0;

    for (size_t i = 0; i < n && r == 0; i++) {
        struct cug_rates one, two;
        char name[48];

        r = swap_pairs(x, MAIN_ONLY, nodes[i], 2, bytes, &two);
        if (r == 0)
            r = swap_pairs(x, MAIN_ONLY, nodes[i] / 2, 1, bytes, &one);
        if (r < 0)
            return r;
        worst_2ppn[i] = two.min;
        worst_1ppn[i] = one.min;
        snprintf(name, sizeof(name), "one_over_two_ppn_%u_nodes", nodes[i]);
        emu_exp_figure(x, 'P', name, "1", emu_exp_points(2.0, 0.2), one.min / two.min);
    }
    data = emu_exp_data(x, "pairs", "Worst of n pairs on the XD1, swap", "nodes", "MB/s");
    for (size_t i = 0; i < n && data; i++)
        fprintf(data, "1 process per node\t%u\t%g\n2 processes per node\t%u\t%g\n", nodes[i], worst_1ppn[i], nodes[i],
                worst_2ppn[i]);
    if (data)
        fclose(data);
    r = small_message_loss(x);
    emu_exp_holds(x, 'Q', "worst_pair_rises_and_falls_with_n", goes_up_and_down(worst_2ppn, n));
    return r;
}

/* Worst pair with the expansion fabric over that without it. */
static int gain(struct emu_exp *x, uint32_t n, uint32_t ppn, uint32_t bytes, double *gain_out)
{
    struct cug_rates plain, more;
    int r = swap_pairs(x, MAIN_ONLY, n, ppn, bytes, &plain);

    if (r == 0)
        r = swap_pairs(x, EXPANDED, n, ppn, bytes, &more);
    if (r == 0)
        *gain_out = more.min / plain.min;
    return r;
}

static int run_xd1_6(struct emu_exp *x)
{
    static const struct {
        const char *name;
        uint32_t n, ppn, bytes; /* 0: large */
        double gain, distance;
    } cases[] = {
        { "gain_8_pairs_1_ppn", 8, 1, 0, 2.0, 0.2 },
        { "gain_1_pair", 1, 1, 0, 1.0, 0.05 },
        { "gain_8_pairs_1_ppn_256B", 8, 1, 256, 1.0, 0.05 },
        { "gain_16_pairs_2_ppn", 16, 2, 0, 1.0, 0.05 },
    };
    uint32_t large = emu_exp_context(x)->is_full ? CUG_MB : 128 * CUG_KIB;

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        double got = NAN;
        int r = gain(x, cases[i].n, cases[i].ppn, cases[i].bytes == 0 ? large : cases[i].bytes, &got);

        if (r < 0)
            return r;
        emu_exp_figure(x, 'Q', cases[i].name, "1", emu_exp_points(cases[i].gain, cases[i].distance), got);
    }
    emu_exp_why(x,
                "with the expansion fabric both processes of a node send over twice the links, and so the model gains "
                "for two processes what it gains for one. The source sees no gain there and does not say what holds "
                "it back; the model lacks that constraint. Before, a rule of ours kept full nodes off the fabric, "
                "and the same machine was run twice");
    return 0;
}

/* The patterns that leave the chassis: every pair between two chassis, one process per node. */
static int run_xd1_7(struct emu_exp *x)
{
    static const uint32_t quick_ns[] = { 8, 12, 15 };
    static const uint32_t full_ns[] = { 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18 };
    bool is_full = emu_exp_context(x)->is_full;
    const uint32_t *ns = is_full ? full_ns : quick_ns;
    size_t n = is_full ? sizeof(full_ns) / sizeof(full_ns[0]) : sizeof(quick_ns) / sizeof(quick_ns[0]);
    uint32_t bytes = is_full ? CUG_MB : 128 * CUG_KIB;
    double lowest = INFINITY;
    int r = 0;

    for (size_t i = 0; i < n; i++) {
        struct cug_rates direct, tree;

        r = swap_pairs(x, MAIN_ONLY, ns[i], 1, bytes, &direct);
        if (r == 0)
            r = swap_pairs(x, "xd1-fat-tree", ns[i], 1, bytes, &tree);
        if (r < 0)
            return r;
        lowest = fmin(lowest, tree.min / direct.min);
    }
    /* To a hundredth: a pair that shares nothing has one more hop in the tree, a thousandth of its time. */
    emu_exp_at_least(x, 'P', "fat_tree_over_direct_worst", "1", 1.0, floor(lowest * 100 + 0.5) / 100);
    return 0;
}

static int run_xd1_8(struct emu_exp *x)
{
    struct emu_machine *direct, *tree;
    struct emu_fat_tree_shape shape;
    uint64_t fabric_bytes = 0;
    uint64_t external_bytes = 0;
    uint32_t n_cables = 0;
    uint32_t pairs[4] = { 0 };
    int r;

    r = emu_exp_machine(x, MAIN_ONLY, &direct);
    if (r < 0)
        return r;
    r = emu_exp_machine(x, "xd1-fat-tree", &tree);
    if (r < 0) {
        emu_machine_destroy(direct);
        return r;
    }
    for (uint32_t id = 0; id < emu_machine_n_links(direct); id++) {
        uint32_t first_switch = emu_machine_n_nodes(direct);
        struct emu_link link;
        bool is_at_first;

        if (emu_link_get(direct, id, &link) < 0 || link.from.kind == EMU_END_NIC || link.to.kind == EMU_END_NIC)
            continue;
        n_cables += link.link_class == EMU_LINK_EXTERNAL;
        is_at_first = link.from.index == first_switch || link.to.index == first_switch;
        fabric_bytes += is_at_first ? link.bytes_per_s : 0;
        external_bytes += is_at_first && link.link_class == EMU_LINK_EXTERNAL ? link.bytes_per_s : 0;
    }
    for (uint32_t a = 0; a < 6; a++) {
        for (uint32_t b = a + 1; b < 6; b++) {
            uint32_t links = 0;

            (void)emu_direct_pair_links(direct, a, b, &links);
            pairs[links < 4 ? links : 3]++;
        }
    }
    (void)emu_fat_tree_shape(tree, &shape);
    emu_exp_exact(x, 'A', "chassis", "1", 12, shape.chassis);
    emu_exp_exact(x, 'A', "processors", "1", 144, emu_machine_n_nodes(tree) * EMU_XD1_PROCESSORS_PER_NODE);
    emu_exp_exact(x, 'A', "processors_of_six_chassis", "1", 72,
                  emu_machine_n_nodes(direct) * EMU_XD1_PROCESSORS_PER_NODE);
    emu_exp_exact(x, 'A', "switch_bandwidth", "GB/s", 48, (double)fabric_bytes * 1e-9);
    emu_exp_exact(x, 'A', "external_bandwidth", "GB/s", 24, (double)external_bytes * 1e-9);
    emu_exp_exact(x, 'A', "cables", "1", 36, n_cables / 2);
    emu_exp_exact(x, 'A', "chassis_pairs_with_2_links", "1", 9, pairs[2]);
    emu_exp_exact(x, 'A', "chassis_pairs_with_3_links", "1", 6, pairs[3]);
    emu_exp_exact(x, 'A', "spines", "1", 6, shape.spines);
    emu_exp_exact(x, 'A', "links_per_spine_and_chassis", "1", 2, shape.spine_links);
    emu_machine_destroy(tree);
    emu_machine_destroy(direct);
    return 0;
}

static int run_aud_xd1(struct emu_exp *x)
{
    static const char *const specs[] = { "xd1:chassis=2", "xd1:chassis=3", "xd1:chassis=4", "xd1:chassis=5",
                                         "xd1",           EXPANDED,        "xd1-fat-tree",  "xd1-fat-tree:fabrics=2" };
    int r = 0;

    for (size_t i = 0; i < sizeof(specs) / sizeof(specs[0]) && r == 0; i++)
        r = cug_audit(x, specs[i], 0);
    for (uint32_t n = 2; n <= 8 && r == 0; n *= 2) {
        r = cug_audit(x, EXPANDED, n);
        if (r == 0)
            r = cug_audit(x, "xd1-fat-tree", n);
    }
    return r;
}

const struct emu_experiment emu_xd1_experiments[] = {
    { "XD1-1", "xd1", "K", "K", EMU_EXP_PACKETS, "8 bytes by MPI in 1.7 us, within and between nodes", run_xd1_1 },
    { "XD1-2", "xd1", "KP", "KM", EMU_EXP_PACKETS, "1 MB by MPI, one way and swap, within and between nodes",
      run_xd1_2 },
    { "XD1-3", "xd1", "P", "M", EMU_EXP_PACKETS, "swap within a node half of that between nodes, no other distance",
      run_xd1_3 },
    { "XD1-4", "xd1", "KP", "KM", EMU_EXP_PACKETS, "one way over swap: 60 % from 32 KB on, 50 % below", run_xd1_4 },
    { "XD1-5", "xd1", "PQ", "MM", EMU_EXP_PACKETS, "1 to 30 pairs at once, one and two processes per node", run_xd1_5 },
    { "XD1-6", "xd1", "Q", "M", EMU_EXP_PACKETS, "the expansion fabric doubles 8 pairs with 1 ppn and nothing else",
      run_xd1_6 },
    { "XD1-7", "xd1", "P", "M", EMU_EXP_PACKETS, "a fat tree is never worse than direct connect", run_xd1_7 },
    { "XD1-8", "xd1", "A", "C", EMU_EXP_ANALYTIC, "12 chassis, 144 processors, the fabric's numbers", run_xd1_8 },
    { "LOAD-3", "xd1", "S", "M", EMU_EXP_PACKETS, "full switches and links between chassis, two fabrics, incast (ours)",
      emu_xd1_saturated },
    { "LOAD-4", "xd1", "S", "M", EMU_EXP_PACKETS, "uniform traffic: RapidArray links busy, saturation (ours)",
      emu_xd1_half },
    { "LOAD-11", "xd1-fat-tree", "S", "M", EMU_EXP_PACKETS, "fat tree: full switches, uplinks, incast (ours)",
      emu_xd1_tree },
    { "AUD-XD1", "xd1", "A", "C", EMU_EXP_ANALYTIC, "deadlock audit of direct connect and fat tree, with faults",
      run_aud_xd1 },
    { "OWN-XD1", "xd1", "S", "M", EMU_EXP_PACKETS, "times, rates and buffers by arithmetic on the machine file (ours)",
      emu_probe_xd1 },
    { "OWN-TREE", "xd1-fat-tree", "S", "M", EMU_EXP_PACKETS, "the same of the fat tree (ours)", emu_probe_xd1_tree },
    { 0 },
};
