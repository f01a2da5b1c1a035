/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Titan: jobs that share the torus, throttled nodes, and links that fail under traffic.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "emunic/experiments/put_flows.h"
#include "emunic/experiments/titan.h"
#include "emunic/fabric/gemini.h"
#include "emunic/fabric/torus.h"

#define US        1000000u /* in ps */
#define FLOWS_MAX 2048

/* Flows of an experiment under construction. */
struct flow_list {
    struct emu_flow_spec flows[FLOWS_MAX];
    size_t n;
};

static void add_flow(struct flow_list *list, uint32_t src_nid, uint32_t dst_nid)
{
    if (list->n < FLOWS_MAX)
        list->flows[list->n++] = (struct emu_flow_spec){ src_nid, dst_nid };
}

static uint32_t nid_of(const struct emu_machine *m, uint32_t x, uint32_t y, uint32_t z, uint32_t node)
{
    return 2 * emu_torus_router(emu_torus_of(m), x, y, z) + node;
}

static int create(struct emu_exp *x, const struct emu_machine *m, const struct flow_list *list,
                  enum emu_route_mode mode, struct emu_flows **f_out)
{
    const struct emu_flows_options options = {
        .gap_ps = emu_titan_gap_ps(m),
        .mode = mode,
        .seed = emu_exp_context(x)->seed,
        .n_threads = emu_exp_context(x)->n_threads,
    };

    return emu_flows_create(m, NULL, list->flows, list->n, &options, f_out);
}

static uint64_t measured_us(const struct emu_exp *x)
{
    return emu_exp_context(x)->is_full ? 200 : 30;
}

/* Rate of all flows from now on, in GB/s, for some microseconds. */
static int measure_for(struct emu_flows *f, uint64_t us, double *gbs_out)
{
    int r;

    emu_flows_reset(f);
    r = emu_flows_run(f, us * US);
    *gbs_out = emu_flows_total_rate(f) * 1e-9;
    return r;
}

/* ---- TITAN-12: a link is taken out under traffic ---- */

static bool network_is_empty(struct emu_flows *f)
{
    struct emu_flows_counts counts;

    emu_flows_counts(f, &counts);
    return counts.answered + counts.lost == counts.sent;
}

/* Nobody sends until the network is empty, or has not become so in 1 ms. */
static int drain(struct emu_flows *f)
{
    int r = 0;

    emu_flows_pause(f, true);
    for (int i = 0; i < 10000 && r == 0 && !network_is_empty(f); i++)
        r = emu_flows_run(f, US / 10);
    return r;
}

/* Quiesce: no new packets, wait until all are answered; new routes; release. Returns how long it took, in us. */
static int quiesce_and_reroute(struct emu_flows *f, const struct emu_fault_map *faults, double *pause_us_out)
{
    struct emu_sim *sim = emu_flows_sim(f);
    uint64_t start_ps = emu_sim_now(sim);
    int r = drain(f);

    if (r == 0 && !network_is_empty(f))
        r = -EIO;
    emu_sim_set_faults(sim, faults);
    *pause_us_out = (double)(emu_sim_now(sim) - start_ps) / US;
    emu_flows_pause(f, false);
    return r;
}

/* Both ways of the links from (2, 0, 0) to its neighbour along X are down. */
static int break_ring(const struct emu_machine *m, struct emu_fault_map *faults)
{
    const struct emu_torus *t = emu_torus_of(m);
    uint32_t router = emu_torus_router(t, 2, 0, 0);
    uint32_t reverse;
    int r = 0;

    for (uint32_t number = 0; number < t->parallel[0] && r == 0; number++) {
        uint32_t link = emu_torus_link(t, router, emu_torus_direction(0, true), number);

        r = emu_link_reverse(m, link, &reverse);
        if (r == 0)
            r = emu_fault_map_set_link(faults, link, false);
        if (r == 0)
            r = emu_fault_map_set_link(faults, reverse, false);
    }
    return r;
}

/* What a run around the broken links gave. */
struct reroute {
    double after; /* GB/s */
    double pause_us;
    struct emu_flows_counts counts;
};

static int measure_reroute(struct emu_exp *x, struct emu_flows *f, const struct emu_fault_map *faults,
                           struct reroute *result)
{
    double before = 0;
    int r = emu_flows_run(f, 20 * US);

    if (r == 0)
        r = measure_for(f, measured_us(x), &before);
    if (r == 0)
        r = quiesce_and_reroute(f, faults, &result->pause_us);
    for (uint32_t i = 0; i < 8 && r == 0; i++) {
        r = measure_for(f, measured_us(x) / 8 + 1, &result->after);
        emu_exp_detail(x, "%.1f us after the release: %.2f GB/s (before: %.2f)",
                       (i + 1) * (double)(measured_us(x) / 8 + 1), result->after, before);
    }
    if (r == 0)
        r = measure_for(f, measured_us(x), &result->after);
    if (r == 0)
        r = drain(f);
    emu_flows_counts(f, &result->counts);
    return r;
}

/* What the same traffic gets on a machine that never had the links. */
static int measure_without(struct emu_exp *x, struct emu_flows *fresh, const struct emu_fault_map *faults,
                           double *rate_out)
{
    int r;

    emu_sim_set_faults(emu_flows_sim(fresh), faults);
    r = emu_flows_run(fresh, 20 * US);
    return r < 0 ? r : measure_for(fresh, measured_us(x), rate_out);
}

int emu_titan_reroute(struct emu_exp *x)
{
    struct flow_list *list = calloc(1, sizeof(*list));
    struct emu_fault_map *faults = NULL;
    struct emu_flows *f = NULL;
    struct emu_flows *fresh = NULL;
    struct emu_machine *m = NULL;
    struct reroute got = { 0 };
    double expected = 0;
    int r = list ? emu_exp_machine(x, "gemini:x=5,y=2,z=8,layout=floor", &m) : -ENOMEM;

    if (r < 0)
        goto out;
    /* A ring along X whose nodes send two on; each pair keeps its order. */
    for (uint32_t ring_x = 0; ring_x < 5; ring_x++) {
        for (uint32_t node = 0; node < 2; node++)
            add_flow(list, nid_of(m, ring_x, 0, 0, node), nid_of(m, (ring_x + 2) % 5, 0, 0, node));
    }
    r = create(x, m, list, EMU_MODE_IN_ORDER, &f);
    if (r == 0)
        r = emu_fault_map_create(m, &faults);
    if (r == 0)
        r = break_ring(m, faults);
    if (r == 0)
        r = measure_reroute(x, f, faults, &got);
    if (r == 0)
        r = create(x, m, list, EMU_MODE_IN_ORDER, &fresh);
    if (r == 0)
        r = measure_without(x, fresh, faults, &expected);
    if (r == 0) {
        emu_exp_exact(x, 'S', "lost", "packets", 0, (double)got.counts.lost);
        emu_exp_exact(x, 'S', "arrived", "packets", (double)got.counts.sent, (double)got.counts.arrived);
        emu_exp_exact(x, 'S', "reordered", "packets", 0, (double)got.counts.reordered);
        emu_exp_figure(x, 'S', "rate_after", "GB/s", emu_exp_within(expected, 0.02), got.after);
        emu_exp_detail(x, "paused for %.1f us; %llu packets in all", got.pause_us, (unsigned long long)got.counts.sent);
    }
out:
    emu_flows_destroy(fresh);
    emu_flows_destroy(f);
    emu_fault_map_destroy(faults);
    emu_machine_destroy(m);
    free(list);
    return r;
}

/* ---- TITAN-13: throttled nodes ---- */

int emu_titan_throttle(struct emu_exp *x)
{
    const uint64_t factor = 10; /* [OUR]: "strongly" in the source */
    struct flow_list *list = calloc(1, sizeof(*list));
    double before = 0, throttled = 0, after = 0;
    struct emu_flows *f = NULL;
    struct emu_machine *m = NULL;
    int r = list ? emu_exp_machine(x, "gemini", &m) : -ENOMEM;

    if (r < 0)
        goto out;
    /* A bad job: all nodes of a cage send to one node. */
    for (uint32_t z = 0; z < 8; z++) {
        for (uint32_t node = 0; node < 4; node++) {
            uint32_t src = nid_of(m, 0, node / 2, z, node % 2);

            if (src != nid_of(m, 0, 0, 0, 0))
                add_flow(list, src, nid_of(m, 0, 0, 0, 0));
        }
    }
    r = create(x, m, list, EMU_MODE_ADAPTIVE_0, &f);
    if (r == 0)
        r = emu_flows_run(f, 20 * US);
    if (r == 0)
        r = measure_for(f, measured_us(x), &before);
    for (uint32_t nid = 0; nid < emu_machine_n_nodes(m) && r == 0; nid++) /* what one node may offer, shared by all */
        emu_flows_set_gap(f, nid, emu_titan_gap_ps(m) * list->n * factor);
    if (r == 0)
        r = emu_flows_run(f, 40 * US);
    if (r == 0)
        r = measure_for(f, 4 * measured_us(x), &throttled);
    for (uint32_t nid = 0; nid < emu_machine_n_nodes(m) && r == 0; nid++)
        emu_flows_set_gap(f, nid, emu_titan_gap_ps(m));
    if (r == 0)
        r = emu_flows_run(f, 60 * US);
    if (r == 0)
        r = measure_for(f, measured_us(x), &after);
    if (r == 0) {
        emu_exp_at_least(x, 'S', "rate_drop", "1", 5, before / throttled);
        emu_exp_figure(x, 'S', "rate_after_release", "GB/s", emu_exp_within(before, 0.02), after);
        emu_exp_detail(
            x,
            "injected %.2f GB/s; throttled to a share of 1/%llu of a NIC: %.2f GB/s; released: %.2f GB/s. What the "
            "management side is told is part of the live emulation",
            before, (unsigned long long)factor, throttled, after);
    }
out:
    emu_flows_destroy(f);
    if (m)
        emu_machine_destroy(m);
    free(list);
    return r;
}

/* ---- TITAN-14: balanced injection ---- */

/* A program that synchronises its nodes, as the source's S3D does, goes at the pace of its slowest flow: that is what
 * the limit is judged by.
 *
 * Aggressors: twelve nodes of cage 0 send to one node there, more than it takes. Victims: nodes of the other cages go
 * along X and then along the Z links that the aggressors fill. All share one limit of injection. */
static void make_congestion(const struct emu_machine *m, struct flow_list *list, size_t *n_aggressors_out)
{
    for (uint32_t z = 2; z < 8; z++) {
        for (uint32_t node = 0; node < 2; node++)
            add_flow(list, nid_of(m, 0, 0, z, node), nid_of(m, 0, 0, 0, 0));
    }
    *n_aggressors_out = list->n;
    for (uint32_t cage = 1; cage < 3; cage++) { /* X first, then along the Z that the aggressors fill */
        for (uint32_t z = 2; z < 8; z++)
            add_flow(list, nid_of(m, cage, 0, z, cage - 1), nid_of(m, 0, 0, z < 5 ? z - 1 : (z + 1) % 8, 1));
    }
}

int emu_titan_balanced(struct emu_exp *x)
{
    static const double limits[] = { 1, 0.5, 0.35, 0.25, 0.18, 0.12, 0.08, 0.04, 0.02 }; /* of what a NIC makes */
    enum { LIMITS = sizeof(limits) / sizeof(limits[0]) };
    struct flow_list *list = calloc(1, sizeof(*list));
    double slowest[LIMITS] = { 0 };
    size_t n_aggressors = 0;
    size_t best = 0;
    FILE *data = emu_exp_data(x, "limit", "Balanced injection", "limit, share of a NIC's rate", "GB/s");
    struct emu_machine *m = NULL;
    int r = list ? emu_exp_machine(x, "gemini", &m) : -ENOMEM;

    if (r < 0)
        goto out;
    make_congestion(m, list, &n_aggressors);
    for (size_t i = 0; i < LIMITS && r == 0; i++) {
        double aggressors = 0, victims = 0, total = 0;
        struct emu_flows *f = NULL;

        r = create(x, m, list, EMU_MODE_ADAPTIVE_0, &f);
        for (uint32_t nid = 0; nid < emu_machine_n_nodes(m) && r == 0; nid++)
            emu_flows_set_gap(f, nid, (uint64_t)((double)emu_titan_gap_ps(m) / limits[i]));
        if (r == 0)
            r = emu_flows_run(f, 40 * US);
        if (r == 0)
            r = measure_for(f, measured_us(x), &total);
        for (size_t k = 0; k < list->n && r == 0; k++) {
            double rate = emu_flows_rate(f, k) * 1e-9;

            *(k < n_aggressors ? &aggressors : &victims) += rate;
            slowest[i] = k == 0 || rate < slowest[i] ? rate : slowest[i];
        }
        emu_flows_destroy(f);
        emu_exp_detail(x, "limit %.2f: aggressors %.2f, victims %.2f, together %.2f GB/s; slowest flow %.3f GB/s",
                       limits[i], aggressors, victims, total, slowest[i]);
        if (data)
            fprintf(data, "victims\t%g\t%g\naggressors\t%g\t%g\n", limits[i], victims, limits[i], aggressors);
        best = slowest[i] > slowest[best] ? i : best;
        emu_exp_progress(x, (i + 1.0) / LIMITS);
    }
    if (r == 0) {
        emu_exp_above(x, 'Q', "best_limit_over_unlimited", "GB/s", slowest[0], slowest[best]);
        emu_exp_above(x, 'Q', "best_limit_over_smallest", "GB/s", slowest[LIMITS - 1], slowest[best]);
        emu_exp_holds(x, 'Q', "optimum_is_inside", best > 0 && best < LIMITS - 1);
        emu_exp_detail(x, "best limit: %.2f", limits[best]);
    }
out:
    if (data)
        fclose(data);
    if (m)
        emu_machine_destroy(m);
    free(list);
    return r;
}

/* ---- TITAN-15: a foreign job crosses ---- */

/* Our job has the nodes with x = 2, 3, 6, 7 and runs TopoBW in X+; the other has x = 0, 1, 4, 5 and sends 1 -> 4 and
 * 5 -> 0 in the rows with y = 0, across our links. */
int emu_titan_placement(struct emu_exp *x)
{
    static double alone[FLOWS_MAX];
    struct flow_list *list = calloc(1, sizeof(*list));
    double shared_drop_min = INFINITY;
    double other_change_max = 0;
    struct emu_machine *m = NULL;
    size_t n_ours = 0;
    int r = list ? emu_exp_machine(x, "gemini:x=8,y=2,z=4,layout=floor", &m) : -ENOMEM;

    if (r < 0)
        goto out;
    for (uint32_t row = 0; row < 2 * 4 * 2 * 2; row++)
        add_flow(list, nid_of(m, row & 1 ? 2 : 6, row >> 1 & 1, row >> 2 & 3, row >> 4),
                 nid_of(m, row & 1 ? 3 : 7, row >> 1 & 1, row >> 2 & 3, row >> 4));
    n_ours = list->n;
    for (uint32_t with_other = 0; with_other < 2 && r == 0; with_other++) {
        struct emu_flows *f = NULL;

        for (uint32_t z = 0; with_other && z < 4; z++) {
            add_flow(list, nid_of(m, 1, 0, z, 0), nid_of(m, 4, 0, z, 0));
            add_flow(list, nid_of(m, 5, 0, z, 0), nid_of(m, 0, 0, z, 0));
        }
        r = create(x, m, list, EMU_MODE_ADAPTIVE_0, &f);
        if (r == 0)
            r = emu_flows_run(f, 20 * US);
        if (r == 0) {
            emu_flows_reset(f);
            r = emu_flows_run(f, measured_us(x) * US);
        }
        for (size_t i = 0; i < n_ours && r == 0; i++) {
            double rate = emu_flows_rate(f, i);
            struct emu_place place;

            if (!with_other) {
                alone[i] = rate;
                continue;
            }
            (void)emu_machine_place(m, list->flows[i].src_nid, &place);
            if (place.mesh_y == 0)
                shared_drop_min = fmin(shared_drop_min, 100 * (1 - rate / alone[i]));
            else
                other_change_max = fmax(other_change_max, 100 * fabs(rate / alone[i] - 1));
        }
        emu_flows_destroy(f);
    }
    if (r == 0) {
        emu_exp_at_least(x, 'S', "drop_on_shared_links", "%", 10, shared_drop_min);
        emu_exp_at_most(x, 'S', "change_elsewhere", "%", 1, other_change_max);
    }
out:
    if (m)
        emu_machine_destroy(m);
    free(list);
    return r;
}
