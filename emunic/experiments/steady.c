/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Steady state: windows of time until two in a row deliver the same, then the ones that count (spec/machines.md 0.6).
 */
#include "emunic/experiments/traffic.h"

#include <math.h>
#include <time.h>

#include "emunic/base/clock.h"

#define WINDOW_CYCLES 10000
#define AGREEMENT     0.02
#define WARMUP_MAX    40
#define WINDOWS       5

double emu_cpu_seconds(void)
{
    struct timespec t;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

struct run {
    struct emu_sim *sim;
    struct emu_steady_options options;
    struct emu_steady_result *result;
    uint32_t n_run; /* windows, warm-up included */
    bool is_ended;
};

/* One more window. Its delivered units. */
static double run_window(struct run *run)
{
    struct emu_sim_totals before;
    struct emu_sim_totals after;
    enum emu_sim_stop stop;
    uint32_t most = run->options.warmup_max + run->options.windows;

    emu_sim_totals(run->sim, &before);
    stop = emu_sim_run(run->sim, emu_sim_now(run->sim) + run->options.window_ps);
    emu_sim_totals(run->sim, &after);
    run->n_run++;
    run->result->is_empty = stop == EMU_SIM_EMPTY;
    run->result->is_deadlock = stop == EMU_SIM_DEADLOCK;
    run->is_ended = stop != EMU_SIM_REACHED || (run->options.stop && run->options.stop(run->options.progress_ctx));
    if (run->options.progress)
        run->options.progress(run->options.progress_ctx, (double)run->n_run / most);
    return (double)(after.delivered_units - before.delivered_units);
}

static void warm_up(struct run *run)
{
    double before = run_window(run);

    run->result->warmup_windows = 1;
    while (!run->is_ended && run->result->warmup_windows < run->options.warmup_max) {
        double now = run_window(run);

        run->result->warmup_windows++;
        if (fabs(now - before) <= run->options.agreement * fmax(now, before) && now > 0) {
            run->result->is_steady = true;
            return;
        }
        before = now;
    }
}

static void measure(struct run *run)
{
    struct emu_steady_result *result = run->result;
    uint64_t start_ps = emu_sim_now(run->sim);
    uint64_t start_ns = emu_clock_ns();
    double start_cpu = emu_cpu_seconds();
    double smallest = INFINITY;
    double largest = 0;
    double sum = 0;

    while (result->windows < run->options.windows && !run->is_ended) {
        double units = run_window(run);

        result->windows++;
        smallest = fmin(smallest, units);
        largest = fmax(largest, units);
        sum += units;
    }
    result->seconds = (double)(emu_clock_ns() - start_ns) / 1e9;
    result->cpu_seconds = emu_cpu_seconds() - start_cpu;
    result->measured_ps = emu_sim_now(run->sim) - start_ps;
    emu_sim_totals(run->sim, &result->totals);
    if (result->measured_ps > 0)
        result->units_per_ns = sum / ((double)result->measured_ps / 1000);
    if (sum > 0)
        result->spread = (largest - smallest) / (sum / result->windows);
}

void emu_generator_steady(struct emu_generator *gen, struct emu_sim *sim, const struct emu_steady_options *options,
                          struct emu_steady_result *result_out)
{
    struct run run = { .sim = sim, .options = *options, .result = result_out };

    *result_out = (struct emu_steady_result){ 0 };
    if (run.options.agreement <= 0)
        run.options.agreement = AGREEMENT;
    if (run.options.warmup_max == 0)
        run.options.warmup_max = WARMUP_MAX;
    if (run.options.windows == 0)
        run.options.windows = WINDOWS;
    if (run.options.window_ps == 0)
        run.options.window_ps = WINDOW_CYCLES * emu_generator_cycle_ps(gen);
    warm_up(&run);
    emu_sim_reset_stats(sim);
    emu_generator_reset(gen);
    if (!run.is_ended)
        measure(&run);
    if (run.is_ended)
        result_out->is_steady = false;
}
