/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Cray XC: adaptive routing beside minimal and Valiant's, at saturation and below: XC-22, XC-24, XC-25.
 *
 * The specification's machine has 8 groups of 96 routers with 12 cables per bundle. Its quick form is the same in
 * small: 8 groups of 16 routers with 2 cables have as much global bandwidth per node (14 cables for 64 nodes as 84 for
 * 384), so the bounds are the same. xc_shapes.c takes other shapes.
 *
 * All windows are steady ones: two in a row agree before any counts. Before that, quick runs measured from the third
 * window of 2 us on, a transient: shift_adaptive_over_better was 0.922 there, and 0.88 once steady.
 */
#include "emunic/experiments/xc_adaptive.h"

#include <stdio.h>
#include <stdlib.h>

#include "emunic/experiments/xc.h"
#include "emunic/fabric/dragonfly.h"
#include "emunic/fabric/link.h"

const char *emu_xc_eight_groups(const struct emu_exp *x)
{
    return emu_exp_context(x)->is_full ? "aries:groups=8,cables_per_bundle=12" :
                                         "aries:groups=8,chassis=1,blades=16,cables_per_bundle=2";
}

/* ---- bounds ---- */

/* Payload per node, 10^9 bytes/s, if each node had its share of so many cables. */
static double cable_share(const struct emu_machine *m, double cables)
{
    struct emu_dragonfly_shape shape;
    struct emu_link blue;

    (void)emu_dragonfly_shape(m, &shape);
    (void)emu_link_get(m, emu_machine_n_links(m) - 1, &blue);
    return cables * EMU_XC_LINKS_PER_CABLE * (double)blue.bytes_per_s / 1e9 /
           (shape.chassis * shape.blades * shape.nodes_per_blade) * emu_xc_efficiency(m);
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
    raw = cable_share(m, cables_of_group(m)) / emu_xc_efficiency(m);
    emu_exp_figure(x, 'A', "global_raw_per_node", "GB/s", emu_exp_rounded(11.72, 2), raw);
    emu_exp_figure(x, 'A', "global_payload_per_node", "GB/s", emu_exp_rounded(7.5, 1), raw * emu_xc_efficiency(m));
    all = 2.0 * shape.n_cables * EMU_XC_LINKS_PER_CABLE * (double)blue.bytes_per_s / 1e9;
    /* Bisection, both directions, by the formula that XC-5 holds against the count. */
    bisection = EMU_XC_LINKS_PER_CABLE * (double)blue.bytes_per_s / 1e9 * shape.groups * cables_of_group(m) *
                shape.groups / (2.0 * (shape.groups - 1));
    emu_exp_figure(x, 'A', "global_over_bisection_of_241_groups", "1", emu_exp_rounded(2, 1), all / bisection);
    emu_machine_destroy(m);
    return 0;
}

const struct emu_xc_run emu_xc_uniform_adaptive = {
    .pattern = EMU_PATTERN_UNIFORM,
    .mode = EMU_MODE_ADAPTIVE_0,
    .is_until_steady = true,
};

int emu_xc_global_bandwidth(struct emu_exp *x)
{
    struct emu_xc_result result;
    struct emu_machine *m;
    int r = report_global_share(x);

    if (r == 0)
        r = emu_exp_machine(x, emu_xc_eight_groups(x), &m);
    if (r < 0)
        return r;
    r = emu_xc_saturate(x, m, &emu_xc_uniform_adaptive, &result);
    if (r == 0) {
        emu_exp_at_least(x, 'S', "uniform_saturation_over_bound", "1", 0.9,
                         result.gb_per_s_per_node / uniform_bound(m));
        emu_exp_detail(x, "%.3f of %.3f GB/s per node, %.1f %% non-minimal, %.2f hops, %s", result.gb_per_s_per_node,
                       uniform_bound(m), 100 * result.nonminimal, result.hops, emu_xc_state_of(&result));
    }
    emu_machine_destroy(m);
    return r;
}

/* ---- XC-24: minimal, Valiant, adaptive ---- */

static const enum emu_route_mode three_modes[] = { EMU_MODE_MINIMAL, EMU_MODE_VALIANT, EMU_MODE_ADAPTIVE_0 };
static const char *const three_names[] = { "minimal", "valiant", "adaptive" };

int emu_xc_saturate_three(struct emu_exp *x, const struct emu_machine *m, enum emu_pattern pattern, double got[3],
                          FILE *data)
{
    for (int i = 0; i < 3; i++) {
        const struct emu_xc_run run = { .pattern = pattern, .mode = three_modes[i], .is_until_steady = true };
        struct emu_xc_result result;
        int r = emu_xc_saturate(x, m, &run, &result);

        if (r < 0)
            return r;
        got[i] = result.gb_per_s_per_node;
        emu_exp_detail(x, "%s %s: %.3f GB/s per node, %.1f %% non-minimal, %.2f hops, latency %.1f us, %s",
                       emu_pattern_name(pattern), three_names[i], got[i], 100 * result.nonminimal, result.hops,
                       result.latency_ps / 1e6, emu_xc_state_of(&result));
        if (data)
            fprintf(data, "%s\t%d\t%g\n", three_names[i], (int)pattern, got[i]);
    }
    return 0;
}

int emu_xc_report_beyond(struct emu_exp *x, const struct emu_machine *m, const char *name, const double shift[3])
{
    double offered = emu_xc_larger(shift[2], emu_xc_larger(shift[0], shift[1]));
    const struct emu_xc_run run = {
        .pattern = EMU_PATTERN_SHIFT,
        .mode = EMU_MODE_ADAPTIVE_0,
        .is_until_steady = true,
        .gap_ps = emu_machine_nic(m)->format.payload_bytes_max / offered * 1000, /* 10^9 bytes/s are bytes per ns */
    };
    struct emu_xc_result result;
    int r = emu_xc_saturate(x, m, &run, &result);

    if (r == 0)
        emu_exp_at_least(x, 'S', name, "1", 0.9, shift[2] / emu_xc_larger(shift[2], result.gb_per_s_per_node));
    return r;
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
    data =
        emu_exp_data(x, "saturation", "Saturation of 8 groups", "pattern (0 uniform, 2 group shift)", "GB/s per node");
    (void)emu_dragonfly_shape(m, &shape);
    shift_bound = cable_share(m, shape.cables_per_bundle);
    global = cable_share(m, cables_of_group(m));
    r = emu_xc_saturate_three(x, m, EMU_PATTERN_UNIFORM, uniform, data);
    if (r == 0)
        r = emu_xc_saturate_three(x, m, EMU_PATTERN_SHIFT, shift, data);
    if (data)
        fclose(data);
    if (r < 0)
        goto out;
    emu_exp_figure(x, 'S', "uniform_minimal", "GB/s", emu_exp_within(uniform_bound(m), 0.1), uniform[0]);
    emu_exp_figure(x, 'S', "shift_minimal", "GB/s", emu_exp_within(shift_bound, 0.1), shift[0]);
    /* Two blue links, or one if the root is in an end group: 2 groups of 8. */
    emu_exp_at_least(x, 'S', "shift_valiant_over_bound", "1", 0.8, shift[1] / (global / (2 - 2.0 / shape.groups)));
    emu_exp_at_least(x, 'S', "uniform_adaptive_over_better", "1", 0.9,
                     uniform[2] / emu_xc_larger(uniform[0], uniform[1]));
    emu_exp_at_least(x, 'S', "shift_adaptive_over_better", "1", 0.9, shift[2] / emu_xc_larger(shift[0], shift[1]));
    emu_exp_holds(x, 'S', "minimal_best_on_uniform", uniform[0] > uniform[1]);
    emu_exp_holds(x, 'S', "valiant_best_on_shift", shift[1] > shift[0]);
    emu_exp_detail(x, "bounds: uniform minimal %.3f, shift minimal %.3f, Valiant %.3f to %.3f GB/s per node",
                   uniform_bound(m), shift_bound, global / 2, global / (2 - 2.0 / shape.groups));
    r = emu_xc_report_beyond(x, m, "shift_kept_beyond_saturation", shift);
out:
    emu_machine_destroy(m);
    return r;
}

/* ---- XC-25: non-minimal share over load ---- */

static const double share_loads[] = { 0.01, 0.05, 0.2, 0.5, 0.7, 0.9 };
_Static_assert(sizeof(share_loads) / sizeof(share_loads[0]) == EMU_XC_LOADS, "one share for each load");

int emu_xc_shares_over_load(struct emu_exp *x, const struct emu_machine *m, double bound, double share[EMU_XC_LOADS],
                            FILE *data)
{
    for (int i = 0; i < EMU_XC_LOADS; i++) {
        struct emu_xc_run run = emu_xc_uniform_adaptive;
        struct emu_xc_result result;
        int r;

        /* A node's payload in 10^9 bytes/s is bytes per ns. */
        run.gap_ps = emu_machine_nic(m)->format.payload_bytes_max / (share_loads[i] * bound) * 1000;
        r = emu_xc_saturate(x, m, &run, &result);
        if (r < 0)
            return r;
        share[i] = result.nonminimal;
        emu_exp_detail(x, "load %.0f %%: %.3f GB/s per node, %.4f %% non-minimal, %.2f hops, latency %.2f us",
                       100 * share_loads[i], result.gb_per_s_per_node, 100 * share[i], result.hops,
                       result.latency_ps / 1e6);
        if (data)
            fprintf(data, "adaptive 0\t%g\t%g\n", share_loads[i], share[i]);
    }
    return 0;
}

bool emu_xc_is_rising(const double share[EMU_XC_LOADS])
{
    for (int i = 1; i < EMU_XC_LOADS; i++) {
        if (share[i] < share[i - 1])
            return false;
    }
    return true;
}

int emu_xc_nonminimal_share(struct emu_exp *x)
{
    struct emu_xc_run shift = emu_xc_uniform_adaptive;
    struct emu_xc_result result;
    struct emu_machine *m;
    double share[EMU_XC_LOADS];
    FILE *data;
    int r = emu_exp_machine(x, emu_xc_eight_groups(x), &m);

    if (r < 0)
        return r;
    data = emu_exp_data(x, "share", "Adaptive choice, uniform traffic on 8 groups", "load, share of the global bound",
                        "non-minimal packets, share");
    r = emu_xc_shares_over_load(x, m, uniform_bound(m), share, data);
    if (data)
        fclose(data);
    shift.pattern = EMU_PATTERN_SHIFT;
    if (r == 0)
        r = emu_xc_saturate(x, m, &shift, &result);
    if (r == 0) {
        emu_exp_below(x, 'S', "nonminimal_at_5_percent_load", "1", 0.01, share[1]);
        emu_exp_holds(x, 'Q', "nonminimal_rises_with_load", emu_xc_is_rising(share));
        emu_exp_above(x, 'S', "nonminimal_at_saturation_of_group_shift", "1", 0.3, result.nonminimal);
    }
    emu_machine_destroy(m);
    return r;
}
