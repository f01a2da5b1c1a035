/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * X1, XD1 and XT3 held against each other (spec/machines.md 8). Nothing is fitted here: hosts and networks are those of
 * the machines' own rows.
 *
 * CMP-6 and CMP-7 are programs of processes that compute for stated times and exchange real messages on the simulated
 * machines (cmp_program.c). POP's solver: a halo of four neighbours, and an allreduce of a word by swaps with processes
 * 1, 2, 4 ... away; with co-array Fortran a word put to all others. A few steps of its 200 are simulated. GYRO's
 * transpose: swaps with each other process in turn. Times of computation are in the ledger, counts of iterations
 * below; the source has plots only.
 */
#include "emunic/experiments/cmp_program.h"

#include <math.h>
#include <stdio.h>

#include "emunic/experiments/ledger.h"
#include "emunic/experiments/tables.h"

enum { X1 = 0, XD1, XT3, MACHINES, PAIRS_MAX = 64 };

static const struct {
    const char *name;
    const char *spec;
    uint32_t ppn;
    struct emu_nic_proc a, b; /* a pair of neighbours on two nodes */
    double spec_us;           /* of the specification table */
    double spec_gbs;
} machines[MACHINES] = {
    /* 51 GB/s per node (6.1); 8 with expansion fabric (7.1); 7.6 both ways per link (4.1). */
    [X1] = { "x1", "x1", 4, { 0, 0 }, { 8, 0 }, 5, 51 },
    [XD1] = { "xd1", "xd1", 2, { 0, 0 }, { 3, 0 }, 1.6, 8 },
    [XT3] = { "xt3", "xt3", 1, { 0, 0 }, { 1, 0 }, 29, 7.6 },
};

struct all {
    struct cug c[MACHINES];
};

static void close_all(struct all *all)
{
    for (uint32_t i = 0; i < MACHINES; i++)
        cug_close(&all->c[i]);
}

static int open_all(struct emu_exp *x, struct all *all)
{
    *all = (struct all){ 0 };
    for (uint32_t i = 0; i < MACHINES; i++) {
        int r = cug_open(x, machines[i].spec, &all->c[i]);

        if (r < 0) {
            close_all(all);
            return r;
        }
        all->c[i].setup.interface_per_core = i == X1;
    }
    return 0;
}

/* After the last run. */
static int finish(struct all *all)
{
    int r = 0;

    for (uint32_t i = 0; i < MACHINES && r == 0; i++)
        r = all->c[i].error;
    close_all(all);
    return r;
}

static double one_way_us(struct all *all, uint32_t i, uint32_t bytes)
{
    return cug_one_way_us(&all->c[i], CUG_MPI, machines[i].a, machines[i].b, bytes);
}

static double uni(struct all *all, uint32_t i, uint32_t bytes)
{
    return cug_uni(&all->c[i], machines[i].a, machines[i].b, bytes);
}

static double bi(struct all *all, uint32_t i, uint32_t bytes)
{
    return cug_bi(&all->c[i], machines[i].a, machines[i].b, bytes);
}

/* ---- one pair ---- */

static int run_cmp_1(struct emu_exp *x)
{
    static const struct {
        double us, uni, bi;
    } source[MACHINES] = { [X1] = { 7.3, 9364, 16936 }, [XD1] = { 1.7, 1342, 2173 }, [XT3] = { 29, 1111, 2150 } };
    struct all all;
    int r = open_all(x, &all);

    if (r < 0)
        return r;
    for (uint32_t i = 0; i < MACHINES; i++) {
        const struct emu_node_params *host = &all.c[i].setup.host;
        const char *rate = i == XT3 ? "packet_gap_ns" : "interface_mbs";
        char name[40], param[64];

        snprintf(name, sizeof(name), "%s_mpi_8B", machines[i].name);
        snprintf(param, sizeof(param), "%s:host.send_ns+host.recv_ns", machines[i].name);
        emu_exp_fitted(
            x, name, "us", source[i].us, one_way_us(&all, i, 8),
            emu_exp_param(param, emu_node_param_value(host, "send_ns") + emu_node_param_value(host, "recv_ns")));
        snprintf(name, sizeof(name), "%s_uni_1MB", machines[i].name);
        snprintf(param, sizeof(param), "%s:host.%s", machines[i].name, rate);
        emu_exp_fitted(x, name, "MB/s", source[i].uni, uni(&all, i, CUG_MB),
                       emu_exp_param(param, emu_node_param_value(host, rate)));
        snprintf(name, sizeof(name), "%s_bi_1MB", machines[i].name);
        snprintf(param, sizeof(param), "%s:host.duplex_percent", machines[i].name);
        if (i == XT3)
            emu_exp_figure(x, 'P', name, "MB/s", emu_exp_within(source[i].bi, 0.04), bi(&all, i, CUG_MB));
        else
            emu_exp_fitted(x, name, "MB/s", source[i].bi, bi(&all, i, CUG_MB),
                           emu_exp_param(param, emu_node_param_value(host, "duplex_percent")));
    }
    return finish(&all);
}

static int run_cmp_2(struct emu_exp *x)
{
    static const uint32_t sizes[] = { 8, CUG_KIB, 64 * CUG_KIB, CUG_MB };
    struct all all;
    FILE *data;
    int r = open_all(x, &all);

    if (r < 0)
        return r;
    data = emu_exp_data(x, "swap", "Swap of one pair", "bytes", "MB/s");
    for (size_t s = 0; s < sizeof(sizes) / sizeof(sizes[0]); s++) {
        double swap[MACHINES], way[MACHINES];
        char name[48];

        for (uint32_t i = 0; i < MACHINES; i++) {
            swap[i] = bi(&all, i, sizes[s]);
            way[i] = uni(&all, i, sizes[s]);
            if (data)
                fprintf(data, "%s\t%u\t%g\n", machines[i].name, sizes[s], swap[i]);
        }
        emu_exp_detail(x, "%u bytes: swap x1 %.6g xd1 %.6g xt3 %.6g, one way x1 %.6g xd1 %.6g xt3 %.6g MB/s", sizes[s],
                       swap[X1], swap[XD1], swap[XT3], way[X1], way[XD1], way[XT3]);
        if (sizes[s] <= CUG_KIB) {
            snprintf(name, sizeof(name), "xd1_best_at_%uB", sizes[s]);
            emu_exp_holds(x, 'Q', name, swap[XD1] > swap[X1] && swap[XD1] > swap[XT3]);
        } else {
            snprintf(name, sizeof(name), "x1_far_above_at_%uB", sizes[s]);
            emu_exp_holds(x, 'Q', name, swap[X1] > 3 * swap[XD1] && swap[X1] > 3 * swap[XT3]);
        }
        snprintf(name, sizeof(name), "uni_xd1_above_xt3_at_%uB", sizes[s]);
        emu_exp_holds(x, 'P', name, way[XD1] > way[XT3]);
        if (sizes[s] == CUG_MB)
            emu_exp_figure(x, 'Q', "xd1_over_xt3_swap_1MB", "1", emu_exp_points(1.0, 0.1), swap[XD1] / swap[XT3]);
    }
    if (data)
        fclose(data);
    return finish(&all);
}

/* 1 - 6 sum d^2 / (n (n^2 - 1)) over ranks. */
static double rank_correlation(const double *a, const double *b)
{
    double sum = 0;

    for (uint32_t i = 0; i < MACHINES; i++) {
        int rank = 0;

        for (uint32_t j = 0; j < MACHINES; j++)
            rank += (a[j] < a[i]) - (b[j] < b[i]);
        sum += rank * rank;
    }
    return 1 - 6 * sum / (MACHINES * (MACHINES * MACHINES - 1));
}

static int run_cmp_5(struct emu_exp *x)
{
    double spec_us[MACHINES], spec_gbs[MACHINES], us[MACHINES], rate[MACHINES];
    struct all all;
    int r = open_all(x, &all);

    if (r < 0)
        return r;
    for (uint32_t i = 0; i < MACHINES; i++) {
        spec_us[i] = machines[i].spec_us;
        spec_gbs[i] = machines[i].spec_gbs;
        us[i] = one_way_us(&all, i, 8);
        rate[i] = uni(&all, i, CUG_MB);
    }
    /* What is ranked are figures of CMP-1, all fitted: so these are, too. */
    emu_exp_fitted(x, "latency_rank_correlation", "1", 1, rank_correlation(spec_us, us), emu_exp_param("CMP-1", 0));
    emu_exp_fitted(x, "bandwidth_rank_correlation", "1", 1, rank_correlation(spec_gbs, rate),
                   emu_exp_param("CMP-1", 0));
    emu_exp_detail(x, "specified: 5, 1.6 and 29 us; 51 GB/s per X1 node, 8 per XD1 node with both fabrics, 7.6 per XT3 "
                      "link");
    return finish(&all);
}

/* ---- many pairs ---- */

static int aggregates(struct emu_exp *x, uint32_t n_pairs, uint32_t n_machines_mask, uint32_t bytes, double *sums_out)
{
    struct emu_nic_pair pairs[PAIRS_MAX];
    struct all all;
    int r = open_all(x, &all);

    if (r < 0)
        return r;
    for (uint32_t i = 0; i < MACHINES; i++) {
        uint32_t n = i == XD1 && n_pairs > 30 ? 30 : n_pairs;
        struct cug_rates rates;

        sums_out[i] = NAN;
        if ((n_machines_mask >> i & 1) == 0)
            continue;
        cug_pairs(n, n, machines[i].ppn, pairs);
        rates = cug_swaps(&all.c[i], pairs, n, bytes, NULL);
        sums_out[i] = rates.min * n;
        emu_exp_detail(x, "%s: %u pairs of %u bytes: worst %.6g, %u times that %.6g MB/s", machines[i].name, n, bytes,
                       rates.min, n, sums_out[i]);
    }
    return finish(&all);
}

static int run_cmp_3(struct emu_exp *x)
{
    static const uint32_t sizes[] = { 64 * CUG_KIB, CUG_MB };
    uint32_t n_sizes = emu_exp_context(x)->is_full ? 2 : 1;

    for (uint32_t s = 0; s < n_sizes; s++) {
        double sums[MACHINES];
        char name[40];
        int r = aggregates(x, 32, 1u << X1 | 1u << XD1 | 1u << XT3, sizes[s], sums);

        if (r < 0)
            return r;
        snprintf(name, sizeof(name), "xt3_above_xd1_%uB", sizes[s]);
        emu_exp_above(x, 'Q', name, "MB/s", sums[XD1], sums[XT3]);
        snprintf(name, sizeof(name), "x1_highest_%uB", sizes[s]);
        emu_exp_above(x, 'Q', name, "MB/s", fmax(sums[XD1], sums[XT3]), sums[X1]);
    }
    return 0;
}

static int run_cmp_4(struct emu_exp *x)
{
    double sums[MACHINES];
    int r = aggregates(x, 64, 1u << X1 | 1u << XT3, emu_exp_context(x)->is_full ? CUG_MB : 64 * CUG_KIB, sums);

    if (r < 0)
        return r;
    emu_exp_above(x, 'Q', "x1_above_xt3_64_pairs", "MB/s", sums[XT3], sums[X1]);
    return 0;
}

/* ---- skeletons ---- */

/* POP, 320 x 384 x 40. Times per point are in the ledger, counts are ours. */
enum { POP_X = 320, POP_Y = 384, POP_LEVELS = 40, POP_SOLVER_STEPS = 200, POP_FIELDS = 3, WORD = 8 };

enum { SOLVER_ITERATIONS = 5, OTHER_ITERATIONS = 2 }; /* that are simulated; the first does not count */

static double parameter_of(uint32_t i, const char *name)
{
    return emu_ledger_value(machines[i].name, name);
}

struct pop {
    double barotropic_us;
    double baroclinic_us;
};

static struct cmp_step halo(uint32_t nx, uint32_t ny, uint32_t levels, double compute_us)
{
    return (struct cmp_step){
        .compute_us = compute_us, .partners = CMP_HALO, .bytes = ny * levels * WORD, .bytes_across = nx * levels * WORD
    };
}

/* px x py processes. */
static struct pop pop_step(struct all *all, uint32_t i, uint32_t px, uint32_t py, bool by_caf)
{
    struct cmp_program solver = { .px = px, .py = py, .ppn = machines[i].ppn, .n_iterations = SOLVER_ITERATIONS };
    struct cmp_program levels = solver;
    uint32_t nx = POP_X / px;
    uint32_t ny = POP_Y / py;
    struct cmp_step rows = halo(nx, ny, 1, nx * ny * parameter_of(i, "pop.point_2d_us"));

    solver.is_caf = by_caf;
    solver.gap_us = by_caf ? parameter_of(i, "pop.caf_gap_us") : 0;
    cmp_add(&solver, &rows);
    cmp_add_allreduce(&solver);
    levels.n_iterations = OTHER_ITERATIONS;
    for (uint32_t field = 0; field < POP_FIELDS; field++) {
        struct cmp_step walls =
            halo(nx, ny, POP_LEVELS, nx * ny * POP_LEVELS * parameter_of(i, "pop.point_3d_us") / POP_FIELDS);

        cmp_add(&levels, &walls);
    }
    return (struct pop){
        .barotropic_us = POP_SOLVER_STEPS * cmp_run(&all->c[i], &solver),
        .baroclinic_us = cmp_run(&all->c[i], &levels),
    };
}

static bool has_processors(const struct all *all, uint32_t i, uint32_t n)
{
    return n <= emu_machine_n_nodes(all->c[i].m) * machines[i].ppn;
}

static int run_cmp_6(struct emu_exp *x)
{
    static const uint32_t shapes[][2] = { { 4, 4 }, { 8, 4 }, { 8, 8 }, { 16, 8 }, { 16, 16 } };
    bool xd1_is_below = true;
    double crossed_at = NAN;
    struct pop mpi, caf, xd1, xt3;
    struct all all;
    int r = open_all(x, &all);

    if (r < 0)
        return r;
    for (size_t s = 0; s < sizeof(shapes) / sizeof(shapes[0]); s++) {
        uint32_t p = shapes[s][0] * shapes[s][1];

        mpi = pop_step(&all, X1, shapes[s][0], shapes[s][1], false);
        caf = pop_step(&all, X1, shapes[s][0], shapes[s][1], true);
        if (has_processors(&all, XD1, p))
            xd1 = pop_step(&all, XD1, shapes[s][0], shapes[s][1], false);
        else
            xd1 = (struct pop){ NAN, NAN };
        xt3 = pop_step(&all, XT3, shapes[s][0], shapes[s][1], false);
        emu_exp_detail(x,
                       "%u processes, ms per step, barotropic/baroclinic: x1 %.4g/%.4g, x1 caf %.4g, xd1 %.4g/%.4g, "
                       "xt3 %.4g/%.4g",
                       p, mpi.barotropic_us * 1e-3, mpi.baroclinic_us * 1e-3, caf.barotropic_us * 1e-3,
                       xd1.barotropic_us * 1e-3, xd1.baroclinic_us * 1e-3, xt3.barotropic_us * 1e-3,
                       xt3.baroclinic_us * 1e-3);
        xd1_is_below = xd1_is_below && !(xd1.barotropic_us >= xt3.barotropic_us);
        if (isnan(crossed_at) && xt3.barotropic_us > xt3.baroclinic_us)
            crossed_at = p;
        if (p == 64)
            emu_exp_at_least(x, 'Q', "x1_mpi_over_caf_barotropic_64", "1", 3, mpi.barotropic_us / caf.barotropic_us);
        if (p >= 128) {
            char name[48];

            snprintf(name, sizeof(name), "xt3_barotropic_over_baroclinic_%u", p);
            emu_exp_above(x, 'Q', name, "1", 1, xt3.barotropic_us / xt3.baroclinic_us);
        }
    }
    emu_exp_at_most(x, 'Q', "xt3_communication_bound_from", "processes", 128, crossed_at);
    emu_exp_holds(x, 'Q', "xd1_barotropic_below_xt3", xd1_is_below);
    return finish(&all);
}

/* GYRO: bytes of the array that is transposed (16 x 140 x 8 x 8 x 20 points of 16 bytes, two species; 64 x 400 x 8 x 8
 * x 20 points, one species [OUR], as the two cases are usually given), and the ledger's name of the computation between
 * two transposes in us x processes. */
static const struct {
    const char *name;
    double bytes;
    const char *compute_us;
} gyro[] = {
    { "b1_std", 92e6, "gyro.b1_compute_us" },
    { "b3_gtc", 524e6, "gyro.b3_compute_us" },
};

/* Time of a transpose with its computation, us, and the share that is not computation. */
static double transpose_us(struct all *all, uint32_t i, uint32_t p, size_t g, double *share_out)
{
    struct cmp_program program = { .px = p, .py = 1, .ppn = machines[i].ppn, .n_iterations = OTHER_ITERATIONS };
    double compute = parameter_of(i, gyro[g].compute_us) / p;
    double total;

    for (uint32_t mask = 1; mask < p; mask++)
        cmp_add(&program, &(struct cmp_step){ .compute_us = mask == 1 ? compute : 0,
                                              .partners = CMP_ACROSS,
                                              .mask = mask,
                                              .bytes = (uint32_t)(gyro[g].bytes / p / p) });
    total = cmp_run(&all->c[i], &program);
    *share_out = (total - compute) / total;
    return total;
}

static int run_cmp_7(struct emu_exp *x)
{
    static const uint32_t counts[] = { 16, 32 };
    size_t n_cases = emu_exp_context(x)->is_full ? sizeof(gyro) / sizeof(gyro[0]) : 1;
    struct all all;
    int r = open_all(x, &all);

    if (r < 0)
        return r;
    for (size_t g = 0; g < n_cases; g++) {
        for (size_t k = 0; k < sizeof(counts) / sizeof(counts[0]); k++) {
            uint32_t p = counts[k];
            double share[MACHINES], total[MACHINES];
            char name[48];

            for (uint32_t i = 0; i < MACHINES; i++)
                total[i] = transpose_us(&all, i, p, g, &share[i]);
            emu_exp_detail(x,
                           "%s, %u processes, messages of %u bytes: share of communication x1 %.3f xd1 %.3f xt3 "
                           "%.3f",
                           gyro[g].name, p, (uint32_t)(gyro[g].bytes / p / p), share[X1], share[XD1], share[XT3]);
            snprintf(name, sizeof(name), "%s_xd1_over_xt3_share_%u", gyro[g].name, p);
            emu_exp_figure(x, 'Q', name, "1", emu_exp_points(1.0, 0.25), share[XD1] / share[XT3]);
            emu_exp_why(x,
                        "two processes of an XD1 node share one interface, so each has half of its 1.35 GB/s; a pair "
                        "alone has all of it. The source tells neither the times of computation nor processes per "
                        "node");
            snprintf(name, sizeof(name), "%s_x1_best_%u", gyro[g].name, p);
            emu_exp_holds(x, 'Q', name, total[X1] < total[XD1] && total[X1] < total[XT3]);
            emu_exp_progress(x, (double)(g * 2 + k + 1) / (2.0 * (double)n_cases));
        }
    }
    return finish(&all);
}

const struct emu_experiment emu_cmp_experiments[] = {
    { "CMP-1", "all", "KP", "KM", EMU_EXP_PACKETS, "latency and bandwidth of X1, XD1 and XT3 in one table", run_cmp_1 },
    { "CMP-2", "all", "PQ", "MM", EMU_EXP_PACKETS, "swap of one pair: X1 far above for large messages, XD1 for small",
      run_cmp_2 },
    { "CMP-3", "all", "Q", "M", EMU_EXP_PACKETS, "32 pairs at once: XT3 above XD1, X1 highest", run_cmp_3 },
    { "CMP-4", "all", "Q", "M", EMU_EXP_PACKETS, "64 pairs at once: X1 above XT3", run_cmp_4 },
    { "CMP-5", "all", "K", "K", EMU_EXP_PACKETS, "simple specifications predict relative performance", run_cmp_5 },
    { "CMP-6", "all", "Q", "M", EMU_EXP_PACKETS, "POP: latency bound solver, CAF on the X1 three times faster",
      run_cmp_6 },
    { "CMP-7", "all", "Q", "M", EMU_EXP_PACKETS, "GYRO: transposes with like shares of communication", run_cmp_7 },
    { 0 },
};
