/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Blue Gene/L: what is counted or computed on the built machine. BGL-1, BGL-16, BGL-18, AUD-BGL; and the table of all
 * experiments of the machine.
 * Source: spec/machines.md 1.4, 5.5 (BGL).
 */
#include "emunic/experiments/bgl_experiments.h"

#include <stdlib.h>

#include "emunic/experiments/bgl_run.h"
#include "emunic/experiments/probe.h"
#include "emunic/fabric/bgl_routing.h"
#include "emunic/fabric/fault_map.h"
#include "emunic/fabric/link.h"
#include "emunic/fabric/sim/audit.h"
#include "emunic/fabric/torus.h"

/* ---- BGL-1: rates ---- */

static int run_rates(struct emu_exp *x)
{
    uint64_t out_of_0 = 0;
    uint64_t into_0 = 0;
    uint64_t per_link = 0;
    struct bgl_run run;
    struct emu_link link;
    int r = bgl_machine(x, &run, "bluegene-l");

    if (r < 0)
        return r;
    for (uint32_t id = 0; id < emu_machine_n_links(run.m); id++) {
        emu_link_get(run.m, id, &link);
        if (link.from.kind != EMU_END_ROUTER || link.to.kind != EMU_END_ROUTER)
            continue;
        per_link = link.bytes_per_s;
        out_of_0 += link.from.index == 0 ? link.bytes_per_s : 0;
        into_0 += link.to.index == 0 ? link.bytes_per_s : 0;
    }
    emu_exp_class(x, EMU_CLASS_FORMULA);
    emu_exp_exact(x, 'A', "link_rate", "MB/s", 175, (double)per_link / 1e6);
    emu_exp_exact(x, 'A', "node_out_rate", "GB/s", 1.05, (double)out_of_0 / 1e9);
    emu_exp_exact(x, 'A', "node_in_rate", "GB/s", 1.05, (double)into_0 / 1e9);
    emu_exp_class(x, EMU_CLASS_FORMULA);
    emu_exp_exact(x, 'A', "full_packet", "byte_times", 270, run.wire_units);
    emu_exp_class(x, EMU_CLASS_FORMULA);
    emu_exp_exact(x, 'A', "smallest_packet", "byte_times", 46, 32 + run.wire_units - run.full_units);
    emu_exp_class(x, EMU_CLASS_FORMULA);
    emu_exp_figure(x, 'A', "cycle", "ns", emu_exp_rounded(5.714, 3), run.cycle_ps / 1000);
    emu_exp_class(x, EMU_CLASS_FORMULA);
    emu_exp_figure(x, 'A', "payload_at_98_percent", "%", emu_exp_rounded(87, 0),
                   98.0 * emu_machine_nic(run.m)->format.payload_bytes_max / run.wire_units);
    bgl_end(&run);
    return 0;
}

/* ---- BGL-16: hint bits around dead nodes ---- */

struct around {
    uint64_t triples;
    uint64_t pairs;
    uint64_t delivered;
    uint64_t by_way[EMU_BGL_WAY_LOOSE + 1];
};

/* Do all pairs of live nodes (or a sample of them) find hint bits, and do deterministic or dynamic packets arrive? */
static int try_triple(const struct emu_machine *m, const uint32_t dead[3], struct emu_random *sample, uint32_t n_sample,
                      struct around *a)
{
    uint32_t n_nodes = emu_machine_n_nodes(m);
    struct emu_fault_map *faults;
    int r = emu_fault_map_create(m, &faults);

    if (r < 0)
        return r;
    for (uint32_t i = 0; i < 3; i++)
        emu_fault_map_set_router(faults, dead[i], false);
    a->triples++;
    for (uint64_t i = 0; i < (n_sample != 0 ? n_sample : (uint64_t)n_nodes * n_nodes); i++) {
        uint32_t src = (uint32_t)(n_sample != 0 ? emu_random_below(sample, n_nodes) : i / n_nodes);
        uint32_t dst = (uint32_t)(n_sample != 0 ? emu_random_below(sample, n_nodes) : i % n_nodes);
        uint32_t hints;
        enum emu_bgl_way way;

        if (src == dst || !emu_fault_map_router_up(faults, src) || !emu_fault_map_router_up(faults, dst))
            continue;
        way = emu_bgl_hints_around(m, faults, src, dst, &hints);
        a->by_way[way]++;
        a->pairs++;
        a->delivered += way != EMU_BGL_WAY_NONE;
    }
    emu_fault_map_destroy(faults);
    return 0;
}

static bool share_line(const struct emu_machine *m, uint32_t a, uint32_t b)
{
    const uint8_t *p = emu_torus_coord(emu_torus_of(m), a);
    const uint8_t *q = emu_torus_coord(emu_torus_of(m), b);

    return (p[0] != q[0]) + (p[1] != q[1]) + (p[2] != q[2]) < 2;
}

static bool is_collinear(const struct emu_machine *m, const uint32_t dead[3])
{
    return share_line(m, dead[0], dead[1]) || share_line(m, dead[0], dead[2]) || share_line(m, dead[1], dead[2]);
}

/* All triples with one dead node at 0 (a torus looks alike from everywhere), or every stride-th of them. */
static int try_triples_of_4(struct emu_exp *x, uint32_t stride, struct around a[2])
{
    struct emu_machine *m;
    uint32_t number = 0;
    int r = emu_exp_machine(x, "bluegene-l:x=4,y=4,z=4", &m);

    for (uint32_t b = 1; r == 0 && b < 64; b++) {
        for (uint32_t c = b + 1; r == 0 && c < 64; c++) {
            const uint32_t dead[3] = { 0, b, c };

            if (number++ % stride == 0)
                r = try_triple(m, dead, NULL, 0, &a[is_collinear(m, dead)]);
        }
        emu_exp_progress(x, b / 64.0 * 0.8);
    }
    emu_machine_destroy(m);
    return r;
}

static int try_triples_of_8(struct emu_exp *x, uint32_t n_triples, struct around a[2])
{
    struct emu_random random = { .state = emu_exp_context(x)->seed };
    struct emu_machine *m;
    int r = emu_exp_machine(x, "bluegene-l", &m);

    for (uint32_t i = 0; r == 0 && i < n_triples; i++) {
        uint32_t dead[3];

        for (uint32_t k = 0; k < 3; k++)
            dead[k] = (uint32_t)emu_random_below(&random, 512);
        if (dead[0] != dead[1] && dead[0] != dead[2] && dead[1] != dead[2])
            r = try_triple(m, dead, &random, 500, &a[is_collinear(m, dead)]);
        emu_exp_progress(x, 0.8 + 0.2 * i / n_triples);
    }
    emu_machine_destroy(m);
    return r;
}

static void report_around(struct emu_exp *x, const char *metric, const char *size, const struct around a[2])
{
    for (uint32_t collinear = 0; collinear < 2; collinear++) {
        const struct around *t = &a[collinear];

        if (!collinear)
            emu_exp_exact(x, 'A', metric, "%", 100, 100.0 * (double)t->delivered / (double)t->pairs);
        emu_exp_detail(
            x,
            "%s, %s: %llu triples, %llu pairs; whole box alive %llu, escape's way alive %llu, first hop "
            "dynamic %llu, two hops without escape %llu, none %llu",
            size, collinear ? "two on a line" : "no two on a line", (unsigned long long)t->triples,
            (unsigned long long)t->pairs, (unsigned long long)t->by_way[EMU_BGL_WAY_ANY],
            (unsigned long long)t->by_way[EMU_BGL_WAY_ORDERED], (unsigned long long)t->by_way[EMU_BGL_WAY_DYNAMIC],
            (unsigned long long)t->by_way[EMU_BGL_WAY_LOOSE], (unsigned long long)t->by_way[EMU_BGL_WAY_NONE]);
    }
}

/* Packets with those hints, in the simulator: everybody to everybody once, three nodes dead. */
static int deliver_around(struct emu_exp *x)
{
    const uint32_t dead[3] = { 0, 1 + 8 + 64, 2 + 3 * 8 };
    const struct emu_generator_options options = { .pattern = EMU_PATTERN_ALL_TO_ALL,
                                                   .units = 32,
                                                   .seed = emu_exp_context(x)->seed };
    struct emu_fault_map *faults = NULL;
    struct emu_sim_totals totals;
    struct bgl_run run;
    enum emu_sim_stop stop;
    int r = bgl_machine(x, &run, "bluegene-l");

    if (r < 0)
        return r;
    r = emu_generator_create(run.m, &options, &run.gen, NULL, 0);
    if (r == 0)
        r = emu_fault_map_create(run.m, &faults);
    for (uint32_t i = 0; r == 0 && i < 3; i++)
        r = emu_fault_map_set_router(faults, dead[i], false);
    if (r == 0)
        r = bgl_start_traffic(x, &run, emu_generator_traffic(run.gen), faults, BGL_COUNT_NOTHING);
    if (r == 0) {
        stop = emu_sim_run(run.sim, UINT64_MAX / 2);
        emu_sim_totals(run.sim, &totals);
        emu_exp_class(x, EMU_CLASS_MEASURED);
        emu_exp_holds(x, 'A', "simulated_8_ends", stop == EMU_SIM_EMPTY);
        emu_exp_class(x, EMU_CLASS_MEASURED);
        emu_exp_exact(x, 'A', "simulated_8_delivered", "packets", 509 * 508, (double)totals.delivered);
        emu_exp_detail(x,
                       "8 x 8 x 8, nodes 0, 73 and 26 dead, all-to-all of one chunk: %llu delivered, %llu "
                       "unroutable (to the dead), %llu lost, %.2f hops each",
                       (unsigned long long)totals.delivered, (unsigned long long)totals.unroutable,
                       (unsigned long long)totals.lost, (double)totals.packet_hops / (double)totals.delivered);
    }
    emu_fault_map_destroy(faults);
    bgl_end(&run);
    return r;
}

static int run_around(struct emu_exp *x)
{
    bool is_full = emu_exp_context(x)->is_full;
    struct around four[2] = { { 0 } };
    struct around eight[2] = { { 0 } };
    int r = try_triples_of_4(x, is_full ? 1 : 97, four);

    if (r == 0)
        r = try_triples_of_8(x, is_full ? 2000 : 30, eight);
    if (r < 0)
        return r;
    report_around(x, "delivered_4", "4 x 4 x 4", four);
    report_around(x, "delivered_8", "8 x 8 x 8", eight);
    return deliver_around(x);
}

/* ---- BGL-18: asymmetry ---- */

/* Bytes per second across the plane that halves the machine in a dimension, both cuts of the rings, one direction. */
static double bisection(const struct emu_machine *m, uint32_t dim)
{
    const struct emu_torus *t = emu_torus_of(m);
    double sum = 0;

    for (uint32_t id = t->first_link; id < emu_machine_n_links(m); id++) {
        struct emu_link link;

        emu_link_get(m, id, &link);
        if (emu_torus_coord(t, link.from.index)[dim] < t->size[dim] / 2 &&
            emu_torus_coord(t, link.to.index)[dim] >= t->size[dim] / 2)
            sum += (double)link.bytes_per_s;
    }
    return sum;
}

/* Mean hops in a dimension from node 0 to all, itself included, as hint bits say. */
static double mean_hops_in(const struct emu_machine *m, uint32_t dim)
{
    const struct emu_torus *t = emu_torus_of(m);
    uint64_t sum = 0;

    for (uint32_t dst = 0; dst < emu_machine_n_nodes(m); dst++) {
        uint32_t hints = emu_bgl_hints(m, 0, dst) >> (2 * dim) & 3;

        if (hints != 0)
            sum += emu_torus_steps(t, dim, hints == 2, emu_torus_coord(t, 0)[dim], emu_torus_coord(t, dst)[dim]);
    }
    return (double)sum / emu_machine_n_nodes(m);
}

static int run_asymmetry(struct emu_exp *x)
{
    struct emu_machine *full = NULL;
    struct emu_machine *cube = NULL;
    int r = emu_exp_machine(x, "bluegene-l:x=64,y=32,z=32", &full);

    if (r == 0)
        r = emu_exp_machine(x, "bluegene-l:x=32,y=32,z=32", &cube);
    if (r == 0) {
        emu_exp_exact(x, 'A', "mean_hops_x", "hops", 16, mean_hops_in(full, 0));
        emu_exp_exact(x, 'A', "mean_hops_y", "hops", 8, mean_hops_in(full, 1));
        emu_exp_exact(x, 'A', "mean_hops_z", "hops", 8, mean_hops_in(full, 2));
        emu_exp_exact(x, 'A', "bisection_64_32_32", "GB/s", bisection(cube, 0) / 1e9, bisection(full, 0) / 1e9);
        emu_exp_detail(x, "bisection of 64 x 32 x 32 and of 32 x 32 x 32, one direction: %.1f GB/s",
                       bisection(full, 0) / 1e9);
    }
    emu_machine_destroy(full);
    emu_machine_destroy(cube);
    return r;
}

/* ---- AUD-BGL ---- */

struct audit_case {
    const char *name; /* of the metrics */
    const char *spec;
    uint64_t n_pairs; /* for the walks; 0: all */
    bool is_full_only;
};

static void report_audit(struct emu_exp *x, const struct audit_case *c, const struct emu_audit_result *r,
                         const struct emu_audit_walks *walks, bool is_dateline, uint32_t bubble_rings)
{
    char name[80];

    snprintf(name, sizeof(name), "%s_free", c->name);
    emu_exp_holds(x, 'A', name, r->is_free);
    /* High priority is a bubble ring always; of the normal class, datelines must leave none. */
    snprintf(name, sizeof(name), "%s_%s", c->name, is_dateline ? "acyclic" : "rings");
    emu_exp_exact(x, 'A', name, is_dateline ? "normal_rings" : "rings", is_dateline ? 0 : 2 * bubble_rings,
                  is_dateline ? (double)r->n_rings - bubble_rings : r->n_rings);
    snprintf(name, sizeof(name), "%s_walks", c->name);
    emu_exp_holds(x, 'A', name, walks->is_clean);
    emu_exp_detail(x,
                   "%s: channels=%llu dependencies=%llu escape=%llu rings=%u other_cycles=%u; walks %llu, without "
                   "escape %llu, unguarded entries %llu, longest %u hops",
                   c->spec, (unsigned long long)r->n_channels, (unsigned long long)r->n_dependencies,
                   (unsigned long long)r->n_escape_channels, r->n_rings, r->n_other_cycles,
                   (unsigned long long)walks->n_walks, (unsigned long long)walks->n_no_escape,
                   (unsigned long long)walks->n_unguarded, walks->longest_hops);
}

static void add_walks(struct emu_audit_walks *sum, const struct emu_audit_walks *more)
{
    sum->n_walks += more->n_walks;
    sum->n_no_escape += more->n_no_escape;
    sum->n_unguarded += more->n_unguarded;
    sum->is_clean = sum->is_clean && more->is_clean && more->n_arrived == more->n_walks;
    if (more->longest_hops > sum->longest_hops)
        sum->longest_hops = more->longest_hops;
}

static int audit_one(struct emu_exp *x, const struct audit_case *c)
{
    struct emu_audit_walks sum = { .is_clean = true };
    struct emu_audit *audit = NULL;
    struct emu_machine *m;
    uint32_t rings = 0;
    bool is_dateline;
    int r = emu_exp_machine(x, c->spec, &m);

    if (r < 0)
        return r;
    is_dateline = m->params.torus.bgl.escape == EMU_BGL_ESCAPE_DATELINE;
    for (uint32_t dim = 0; dim < EMU_TORUS_DIMS; dim++) /* one each way on each line of more than one node */
        rings += m->params.torus.size[dim] > 1 ? 2 * emu_machine_n_nodes(m) / m->params.torus.size[dim] : 0;
    r = emu_audit_create(m, m->topology->routing, NULL, &audit);
    for (uint32_t turn = 0; r == 0 && turn < 3; turn++) {
        const struct emu_audit_walk_options options = {
            .mode = turn == 0 ? EMU_MODE_DETERMINISTIC : EMU_MODE_ADAPTIVE_0,
            .traffic_class = turn == 2 ? EMU_TRAFFIC_RESPONSE : EMU_TRAFFIC_REQUEST,
            .n_pairs = c->n_pairs,
            .packet_units_max = m->params.router.packet_units_max,
            .seed = emu_exp_context(x)->seed,
        };
        struct emu_audit_walks walks;

        r = emu_audit_walk(audit, &options, NULL, NULL, &walks);
        if (r == 0)
            add_walks(&sum, &walks);
    }
    if (r == 0)
        report_audit(x, c, emu_audit_result(audit), &sum, is_dateline, rings);
    emu_audit_destroy(audit);
    emu_machine_destroy(m);
    return r;
}

#define AUDITS(name, size, pairs, full)                                                                                \
    { name "_bubble_dim", "bluegene-l:" size, pairs, full },                                                           \
        { name "_bubble_dir", "bluegene-l:" size ",order=direction", pairs, full },                                    \
        { name "_dateline_dim", "bluegene-l:" size ",escape=dateline", pairs, full },                                  \
    {                                                                                                                  \
        name "_dateline_dir", "bluegene-l:" size ",escape=dateline,order=direction", pairs, full                       \
    }

static int run_audits(struct emu_exp *x)
{
    static const struct audit_case cases[] = {
        AUDITS("4x4x2", "x=4,y=4,z=2", 0, false),          AUDITS("8x8x1", "x=8,y=8,z=1", 0, false),
        AUDITS("8x8x8", "x=8,y=8,z=8", 20000, false),      AUDITS("32x16x16", "x=32,y=16,z=16", 20000, true),
        AUDITS("64x32x32", "x=64,y=32,z=32", 20000, true),
    };
    size_t n = sizeof(cases) / sizeof(cases[0]);

    for (size_t i = 0; i < n; i++) {
        int r = cases[i].is_full_only && !emu_exp_context(x)->is_full ? 0 : audit_one(x, &cases[i]);

        if (r < 0)
            return r;
        emu_exp_progress(x, (double)(i + 1) / (double)n);
    }
    return 0;
}

/* ---- the table ---- */

const struct emu_experiment emu_bgl_experiments[] = {
    { "BGL-1", "bluegene-l", "A", "C", EMU_EXP_ANALYTIC, "175 MB/s, 1.05 GB/s, 270 byte times, 87 % payload",
      run_rates },
    { "BGL-2", "bluegene-l", "Q", "M", EMU_EXP_PACKETS, "response time and load: channels and paths",
      bgl_run_response },
    { "BGL-3", "bluegene-l", "S", "M", EMU_EXP_PACKETS, "hot region: buffers of 512 B, 1 KB, 2 KB",
      bgl_run_hot_buffers },
    { "BGL-4", "bluegene-l", "S", "M", EMU_EXP_PACKETS, "response time with SLQ and JSQ", bgl_run_policies },
    { "BGL-5", "bluegene-l", "SQ", "MM", EMU_EXP_PACKETS, "hot region: SLQ and JSQ", bgl_run_hot_policies },
    { "BGL-6", "bluegene-l", "AS", "CM", EMU_EXP_PACKETS, "all-to-all on symmetric and asymmetric tori",
      bgl_run_exchange },
    { "BGL-7", "bluegene-l", "SQ", "MM", EMU_EXP_PACKETS, "hot region: four escape channels over millions of cycles",
      bgl_run_escapes },
    { "BGL-8", "bluegene-l", "S", "M", EMU_EXP_PACKETS, "packets of all sizes deadlock the published bubble rule",
      bgl_run_deadlock },
    { "BGL-9", "bluegene-l", "KQ", "KM", EMU_EXP_PACKETS, "one-way latency and message size, 1 to 3 hops",
      bgl_run_ping_pong },
    { "BGL-10", "bluegene-l", "KPS", "KMM", EMU_EXP_PACKETS, "all-to-all as measured on hardware",
      bgl_run_hardware_exchange },
    { "BGL-11", "bluegene-l", "KPS", "KMM", EMU_EXP_PACKETS, "hot spot: everybody sends to a cube", bgl_run_hot_spot },
    { "BGL-12", "bluegene-l", "S", "M", EMU_EXP_PACKETS, "bit errors: resent by time-out, CRC at both ends",
      bgl_run_errors },
    { "BGL-13", "bluegene-l", "AS", "CM", EMU_EXP_PACKETS, "line broadcast and plane fill", bgl_run_broadcast },
    { "BGL-14", "bluegene-l", "QS", "MM", EMU_EXP_PACKETS, "a one-cycle gap in arbitration fills channels",
      bgl_run_gap },
    { "BGL-15", "bluegene-l", "S", "M", EMU_EXP_PACKETS, "all-to-all within planes and lines", bgl_run_subsets },
    { "BGL-16", "bluegene-l", "A", "C", EMU_EXP_PACKETS, "hint bits around three dead nodes", run_around },
    { "BGL-17", "bluegene-l", "S", "M", EMU_EXP_PACKETS, "the same results for any number of threads",
      bgl_run_threads },
    { "BGL-18", "bluegene-l", "A", "C", EMU_EXP_ANALYTIC, "hops and bisection of 64 x 32 x 32", run_asymmetry },
    { "BGL-19", "bluegene-l", "S", "M", EMU_EXP_PACKETS, "high priority overtakes; network before injection",
      bgl_run_priority },
    { "BGL-20", "bluegene-l", "F", "-", EMU_EXP_LIVE, "FIFOs, watermarks, checksums of the processor interface", NULL },
    { "AUD-BGL", "bluegene-l", "A", "C", EMU_EXP_ANALYTIC, "deadlock audit of four escape channels", run_audits },
    { "OWN-BGL", "bluegene-l", "S", "M", EMU_EXP_PACKETS,
      "times, rates and buffers by arithmetic on the machine file (ours)", emu_probe_bgl },
    { 0 },
};
