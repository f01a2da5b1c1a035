/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Blue Gene/L with a hot region: BGL-3, BGL-5, BGL-7.
 *
 * A quarter of the packets goes to a sub-mesh at (0,0,0) with half the length in each dimension, an eighth of the
 * nodes; the others are uniform over all nodes. Injection FIFOs are never empty. The links into the region become the
 * bottleneck, packets for it fill the network from there outward, and throughput rises, falls and levels. Throughput is
 * taken in intervals of 10 000 cycles.
 *
 * Reduced runs have 512 instead of 4 096 nodes, half the length of everything (BGL-3, BGL-5: intervals of 2 000). They
 * fill sooner and are calmer: the links into the region are always busy, and dateline pairs make no waves. So what the
 * source says of either is asked of full runs only, and of reduced ones that the links are no less busy.
 *
 * The fall is measured on the mean of three intervals in a row, between the highest and the mean of the last quarter:
 * its onset is the first after the highest that has lost a quarter of the difference, half-way the first that has lost
 * half.
 * Source: machines.md 5.5 (BGL).
 */
#include "emunic/experiments/bgl_experiments.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "emunic/experiments/bgl_run.h"
#include "emunic/fabric/link.h"
#include "emunic/fabric/torus.h"

#define INTERVALS_MAX 400

#define RANDOM_POLICIES "choice=random,arbitration=random"

struct series {
    uint32_t n;
    double interval;                        /* cycles */
    double throughput[INTERVALS_MAX];       /* packets per cycle */
    double unblocking[INTERVALS_MAX];
    double escape_share;                    /* of packets on links, last quarter */
    double entering;                        /* utilisation of the links into the region, last quarter */
    double peak;
    double plateau;
    double onset;                           /* cycles; not a number: it never falls */
    double half_way;
    bool is_deadlock;
};

static bool is_in_region(const struct bgl_run *run, uint32_t nid)
{
    const uint8_t *at = emu_torus_coord(emu_torus_of(run->m), nid);

    return at[0] < run->size[0] / 2 && at[1] < run->size[1] / 2 && at[2] < run->size[2] / 2;
}

static double entering_utilisation(const struct bgl_run *run, double cycles)
{
    double bytes = 0;
    double links = 0;

    for (uint32_t id = 2 * emu_machine_n_nodes(run->m); id < emu_machine_n_links(run->m); id++) {
        struct emu_sim_link_stats stats;
        struct emu_link link;

        emu_link_get(run->m, id, &link);
        if (is_in_region(run, link.from.index) || !is_in_region(run, link.to.index))
            continue;
        emu_sim_link_stats(run->sim, id, &stats);
        bytes += (double)stats.units + (double)stats.packets * (run->wire_units - run->full_units);
        links++;
    }
    return bytes / links / cycles;
}

/* Mean of an interval and its two neighbours. */
static double smooth(const struct series *s, uint32_t i)
{
    uint32_t from = i > 0 ? i - 1 : i;
    uint32_t end = i + 2 < s->n ? i + 2 : s->n;
    double sum = 0;

    for (uint32_t k = from; k < end; k++)
        sum += s->throughput[k];
    return sum / (end - from);
}

static void judge_series(struct series *s)
{
    uint32_t top = 0;

    s->plateau = 0;
    for (uint32_t i = s->n - s->n / 4; i < s->n; i++)
        s->plateau += s->throughput[i] / (s->n / 4);
    for (uint32_t i = 1; i < s->n; i++) {
        if (smooth(s, i) > smooth(s, top))
            top = i;
    }
    s->peak = smooth(s, top);
    s->onset = NAN;
    s->half_way = NAN;
    for (uint32_t i = top + 1; i < s->n; i++) {
        double lost = (s->peak - smooth(s, i)) / (s->peak - s->plateau);

        if (isnan(s->onset) && lost >= 0.25)
            s->onset = i * s->interval;
        if (isnan(s->half_way) && lost >= 0.5)
            s->half_way = i * s->interval;
    }
}

/* Runs one machine for n intervals of so many cycles; progress between from and to. */
static int run_series(struct emu_exp *x, const char *spec, uint32_t n, double interval, double from, double to,
                      struct series *s)
{
    struct emu_generator_options options = { .pattern = EMU_PATTERN_HOT, .hot_share = 0.25 };
    struct emu_sim_totals last = { 0 };
    struct bgl_figures f;
    struct bgl_run run;
    int r = bgl_machine(x, &run, spec);

    if (r < 0)
        return r;
    for (uint32_t dim = 0; dim < BGL_DIMS; dim++)
        options.hot_size[dim] = run.size[dim] / 2;
    bgl_end(&run);
    r = bgl_start(x, &run, spec, &options, false);
    if (r < 0)
        return r;
    *s = (struct series){ .n = n, .interval = interval };
    for (uint32_t i = 0; i < n; i++) {
        struct emu_sim_totals t;

        if (i == n - n / 4) {
            bgl_reset(&run);
            last = (struct emu_sim_totals){ 0 };
        }
        s->is_deadlock = s->is_deadlock || bgl_advance(&run, s->interval) == EMU_SIM_DEADLOCK;
        emu_sim_totals(run.sim, &t);
        s->throughput[i] = (double)(t.delivered - last.delivered) / s->interval;
        if (t.credits_returned > last.credits_returned)
            s->unblocking[i] = (double)(t.credits_unblocking - last.credits_unblocking) /
                               (double)(t.credits_returned - last.credits_returned);
        last = t;
        emu_exp_progress(x, from + (to - from) * (i + 1) / n);
    }
    s->entering = entering_utilisation(&run, n / 4 * s->interval);
    bgl_figures(&run, n / 4 * s->interval, &f);
    s->escape_share = f.escape_share;
    judge_series(s);
    bgl_end(&run);
    return 0;
}

static void plot_series(FILE *data, const char *name, const struct series *s)
{
    for (uint32_t i = 0; data != NULL && i < s->n; i++)
        fprintf(data, "%s\t%g\t%g\n", name, (i + 1) * s->interval, s->throughput[i]);
}

static void tell_series(struct emu_exp *x, const char *name, const struct series *s)
{
    emu_exp_detail(x, "%s: highest %.3f packets/cycle, plateau %.3f, onset of the fall %.0f, half-way %.0f cycles, "
                   "links into the region %.1f %%, on escape channels %.1f %%%s", name, s->peak, s->plateau, s->onset,
                   s->half_way, 100 * s->entering, 100 * s->escape_share, s->is_deadlock ? ", DEADLOCK" : "");
}

/* Throughput if the links into the region have this utilisation: packets for it come from 7/8 of the nodes, and are a
 * quarter and an eighth of the rest of what these send. 4.49 for 16 x 16 x 16 at 0.95. */
static double bound(const struct bgl_run *run, double utilisation)
{
    double links = 2.0 * (run->size[0] / 2 * (run->size[1] / 2) + run->size[0] / 2 * (run->size[2] / 2) +
                          run->size[1] / 2 * (run->size[2] / 2));

    return links * utilisation / (0.875 * (0.25 + 0.75 * 0.125) * run->wire_units);
}

static const char *size_of(const struct emu_exp *x)
{
    return emu_exp_context(x)->is_full ? "x=16,y=16,z=16" : "x=8,y=8,z=8";
}

static double interval_of(const struct emu_exp *x)
{
    return emu_exp_context(x)->is_full ? 10000 : 2000;
}

static double spread_of(const struct series *s, uint32_t n)
{
    double low = INFINITY;
    double high = 0;

    for (uint32_t i = 0; i < n; i++) {
        low = fmin(low, s[i].plateau);
        high = fmax(high, s[i].plateau);
    }
    return high / low - 1;
}

/* --- BGL-3 -------------------------------------------------------------------------------------------------------- */

int bgl_run_hot_buffers(struct emu_exp *x)
{
    static const uint32_t bytes[] = { 512, 1024, 2048 };
    uint32_t n = emu_exp_context(x)->is_full ? 150 : 50;
    FILE *data = emu_exp_data(x, "throughput", "Hot region: buffers", "cycles", "packets per cycle");
    struct series *s = calloc(3, sizeof(*s));
    struct bgl_run run;
    char spec[160];
    int r = s == NULL ? -ENOMEM : 0;

    for (uint32_t i = 0; r == 0 && i < 3; i++) {
        char name[20];

        snprintf(spec, sizeof(spec), "bluegene-l:%s,%s,vc_units=%u", size_of(x), RANDOM_POLICIES, bytes[i]);
        r = run_series(x, spec, n, interval_of(x), i / 3.0, (i + 1) / 3.0, &s[i]);
        if (r < 0)
            break;
        snprintf(name, sizeof(name), "%u B", bytes[i]);
        tell_series(x, name, &s[i]);
        plot_series(data, name, &s[i]);
        snprintf(name, sizeof(name), "entering_links_%u", bytes[i]);
        if (emu_exp_context(x)->is_full)
            emu_exp_points(x, 'S', name, "%", 95, 100 * s[i].entering, 2);
        else
            emu_exp_at_least(x, 'S', name, "%", 93, 100 * s[i].entering);
    }
    if (r == 0)
        r = bgl_machine(x, &run, spec);
    if (r == 0) {
        emu_exp_at_most(x, 'S', "plateau_spread", "ratio", 0.03, spread_of(s, 3));
        emu_exp_holds(x, 'S', "decline_sooner_with_smaller_buffers",
                      s[0].half_way < s[1].half_way && s[1].half_way < s[2].half_way);
        emu_exp_detail(x, "bound with links into the region at 95 %%: %.3f packets/cycle; uniform traffic: %.3f",
                       bound(&run, 0.95), 6.0 * emu_machine_n_nodes(run.m) / (3 * run.size[0] / 4.0 * run.wire_units));
        bgl_end(&run);
    }
    if (data != NULL)
        fclose(data);
    free(s);
    return r;
}

/* --- BGL-5 -------------------------------------------------------------------------------------------------------- */

int bgl_run_hot_policies(struct emu_exp *x)
{
    static const struct {
        const char *name;
        const char *overrides;
    } policies[] = {
        { "base", "choice=random,arbitration=random" },
        { "SLQ", "choice=random,arbitration=fullest" },
        { "JSQ", "choice=tokens,arbitration=random" },
        { "both", "choice=tokens,arbitration=fullest" },
    };
    uint32_t n = emu_exp_context(x)->is_full ? 150 : 50;
    FILE *data = emu_exp_data(x, "throughput", "Hot region: policies", "cycles", "packets per cycle");
    struct series *s = calloc(4, sizeof(*s));
    int r = s == NULL ? -ENOMEM : 0;

    for (uint32_t i = 0; r == 0 && i < 4; i++) {
        char spec[160];

        snprintf(spec, sizeof(spec), "bluegene-l:%s,%s", size_of(x), policies[i].overrides);
        r = run_series(x, spec, n, interval_of(x), i / 4.0, (i + 1) / 4.0, &s[i]);
        if (r < 0)
            break;
        tell_series(x, policies[i].name, &s[i]);
        plot_series(data, policies[i].name, &s[i]);
    }
    if (r == 0) {
        double with = fmax(s[1].half_way, s[3].half_way);
        double without = fmax(s[0].half_way, s[2].half_way);

        emu_exp_at_most(x, 'S', "plateau_spread", "ratio", 0.03, spread_of(s, 4));
        emu_exp_at_least(x, 'Q', "fall_with_slq_to_without", "ratio", 1.1, with / without);
    }
    if (data != NULL)
        fclose(data);
    free(s);
    return r;
}

/* --- BGL-7 -------------------------------------------------------------------------------------------------------- */

enum { BUBBLE_DIM = 0, BUBBLE_DIR, DATELINE_DIM, DATELINE_DIR, SCHEMES };

/* Mean, and standard deviation to it, from an interval on. */
static double mean_from(const double *values, uint32_t from, uint32_t n, double *variation_out)
{
    double sum = 0;
    double squares = 0;
    double mean;

    for (uint32_t i = from; i < n; i++)
        sum += values[i];
    mean = sum / (n - from);
    for (uint32_t i = from; i < n; i++)
        squares += (values[i] - mean) * (values[i] - mean);
    *variation_out = sqrt(squares / (n - from)) / mean;
    return mean;
}

static double pearson(const double *a, const double *b, uint32_t from, uint32_t n)
{
    double mean_a, mean_b, unused;
    double ab = 0;
    double aa = 0;
    double bb = 0;

    mean_a = mean_from(a, from, n, &unused);
    mean_b = mean_from(b, from, n, &unused);
    for (uint32_t i = from; i < n; i++) {
        ab += (a[i] - mean_a) * (b[i] - mean_b);
        aa += (a[i] - mean_a) * (a[i] - mean_a);
        bb += (b[i] - mean_b) * (b[i] - mean_b);
    }
    return ab / sqrt(aa * bb);
}

static double lowest_from(const double *values, uint32_t from, uint32_t n)
{
    double low = INFINITY;

    for (uint32_t i = from; i < n; i++)
        low = fmin(low, values[i]);
    return low;
}

/* The waves of the dimension-ordered dateline pair, which the others do not have. */
static void judge_waves(struct emu_exp *x, const struct series s[SCHEMES], const double cv[SCHEMES], uint32_t calm)
{
    const struct series *d = &s[DATELINE_DIM];

    emu_exp_at_least(x, 'S', "variation_dateline_to_bubble", "ratio", 3, cv[DATELINE_DIM] / cv[BUBBLE_DIM]);
    emu_exp_at_most(x, 'S', "lowest_dateline_to_plateau", "ratio", 0.7,
                    lowest_from(d->throughput, calm, d->n) / s[BUBBLE_DIM].plateau);
    emu_exp_at_least(x, 'S', "dateline_correlation", "r", 0.7, pearson(d->throughput, d->unblocking, calm, d->n));
    emu_exp_holds(x, 'Q', "others_calmer", cv[DATELINE_DIR] < cv[DATELINE_DIM] && cv[BUBBLE_DIR] < cv[DATELINE_DIM]);
}

int bgl_run_escapes(struct emu_exp *x)
{
    static const struct {
        const char *name;
        const char *overrides;
    } schemes[SCHEMES] = {
        [BUBBLE_DIM] = { "bubble, dimension order", "escape=bubble,order=dimension" },
        [BUBBLE_DIR] = { "bubble, direction order", "escape=bubble,order=direction" },
        [DATELINE_DIM] = { "dateline, dimension order", "escape=dateline,order=dimension" },
        [DATELINE_DIR] = { "dateline, direction order", "escape=dateline,order=direction" },
    };
    const uint32_t calm = 20; /* 200 K cycles */
    uint32_t n = emu_exp_context(x)->is_full ? 200 : 30;
    FILE *data = emu_exp_data(x, "throughput", "Hot region: escape channels", "cycles", "packets per cycle");
    struct series *s = calloc(SCHEMES, sizeof(*s));
    double cv[SCHEMES], unblocking_cv[SCHEMES], mean[SCHEMES];
    int r = s == NULL ? -ENOMEM : 0;

    for (uint32_t i = 0; r == 0 && i < SCHEMES; i++) {
        double unblocking;
        char spec[160];

        snprintf(spec, sizeof(spec), "bluegene-l:%s,%s", size_of(x), schemes[i].overrides);
        r = run_series(x, spec, n, 10000, (double)i / SCHEMES, (i + 1.0) / SCHEMES, &s[i]);
        if (r < 0)
            break;
        mean[i] = mean_from(s[i].throughput, calm, n, &cv[i]);
        unblocking = mean_from(s[i].unblocking, calm, n, &unblocking_cv[i]);
        tell_series(x, schemes[i].name, &s[i]);
        emu_exp_detail(x, "%s after %.0f cycles: throughput %.3f, variation %.4f, lowest %.3f; unblocking probability "
                       "%.4f, variation %.4f, correlation %.3f", schemes[i].name, calm * s[i].interval, mean[i], cv[i],
                       lowest_from(s[i].throughput, calm, n), unblocking, unblocking_cv[i],
                       pearson(s[i].throughput, s[i].unblocking, calm, n));
        plot_series(data, schemes[i].name, &s[i]);
    }
    if (r == 0) {
        emu_exp_at_most(x, 'S', "bubble_unblocking_variation", "ratio", 0.1, unblocking_cv[BUBBLE_DIM]);
        emu_exp_holds(x, 'Q', "no_deadlock",
                      !s[0].is_deadlock && !s[1].is_deadlock && !s[2].is_deadlock && !s[3].is_deadlock);
        if (emu_exp_context(x)->is_full)
            judge_waves(x, s, cv, calm);
    }
    if (data != NULL)
        fclose(data);
    free(s);
    return r;
}
