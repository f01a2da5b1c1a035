/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Pairs of processes on the machines of CUG05.
 *
 * Swaps of many pairs. Each process sends its partner a message and waits until its own is sent and the partner's has
 * come, again and again; nobody waits for other pairs. Rates are read while all are at it: a pair's rate is counted
 * from its first swap that ends behind the warm-up to its last one before the end of the run, so it has whole swaps
 * only. Pairs start at random moments of a first swap: with one start for all they would collide in every swap, since
 * nothing here ever drifts, and no machine was measured like that. The length of the run follows from the time that a
 * swap takes when the pair is alone, and it goes on until every pair has done enough of them.
 *
 * A message shorter than host.duplex_bytes_min does not pay the host's duplex cost: the source sees the ratio of one-
 * way to swap bandwidth step from 50 % to 60 % at 32 KB on the XD1 (spec/machines.md XD1-4), which a cost that all
 * messages pay cannot give. We take the step as the change from eager copies to the NIC's own transfers. The NIC model
 * asks each operation for its size.
 */
#include "emunic/experiments/cug.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "emunic/fabric/random.h"

enum {
    SWAPS_MIN = 4,    /* that are measured, of each pair */
    WARMUP_SWAPS = 3, /* in times of a swap alone */
    STEP_SWAPS = 4,   /* the same */
    STEPS_MAX = 1000, /* until a pair that does not get through is given up */
};

int cug_open(struct emu_exp *x, const char *spec, struct cug *c_out)
{
    const struct emu_node_params *host;
    int r;

    *c_out = (struct cug){ .x = x };
    r = emu_exp_machine(x, spec, &c_out->m);
    if (r < 0)
        return r;
    host = emu_machine_node_params(c_out->m);
    if (!host) {
        emu_exp_detail(x, "%s has no host section", spec);
        cug_close(c_out);
        return -EINVAL;
    }
    c_out->setup = (struct emu_nic_setup){
        .machine = c_out->m,
        .host = *host,
        .mode = EMU_MODE_ADAPTIVE_0,
        .seed = emu_exp_context(x)->seed,
        .n_threads = 1,
    };
    return 0;
}

void cug_close(struct cug *c)
{
    emu_machine_destroy(c->m);
    c->m = NULL;
}

static bool has_failed(struct cug *c, int r)
{
    if (r < 0 && c->error == 0) {
        c->error = r;
        emu_exp_detail(c->x, "%s: a run failed: %s", emu_machine_name(c->m), strerror(-r));
    }
    return c->error != 0;
}

/* ---- one pair ---- */

static struct emu_nic_pingpong pingpong_of(enum cug_api api, struct emu_nic_proc a, struct emu_nic_proc b,
                                           uint32_t bytes)
{
    return (struct emu_nic_pingpong){
        .kind = api == CUG_MPI ? EMU_NIC_MESSAGE : EMU_NIC_PUT,
        .api = api == CUG_SHMEM ? EMU_NIC_API_SHMEM :
               api == CUG_CAF   ? EMU_NIC_API_CAF :
                                  EMU_NIC_API_NONE,
        .a = a,
        .b = b,
        .bytes = bytes,
    };
}

double cug_one_way_us(struct cug *c, enum cug_api api, struct emu_nic_proc a, struct emu_nic_proc b, uint32_t bytes)
{
    const struct emu_nic_pingpong p = pingpong_of(api, a, b, bytes);
    struct emu_nic_pingpong_result result;

    if (c->error != 0 || has_failed(c, emu_nic_pingpong(&c->setup, &p, &result)))
        return NAN;
    return (double)result.latency_ps * 1e-6;
}

double cug_uni(struct cug *c, struct emu_nic_proc a, struct emu_nic_proc b, uint32_t bytes)
{
    return bytes / cug_one_way_us(c, CUG_MPI, a, b, bytes);
}

double cug_bi(struct cug *c, struct emu_nic_proc a, struct emu_nic_proc b, uint32_t bytes)
{
    const struct emu_nic_pingpong p = pingpong_of(CUG_MPI, a, b, bytes);
    struct emu_nic_exchange_result result;

    if (c->error != 0 || has_failed(c, emu_nic_exchange(&c->setup, &p, &result)))
        return NAN;
    return result.mbytes_per_s;
}

/* ---- many pairs ---- */

/* One process in its swaps. */
struct swapper {
    struct emu_nic_proc partner;
    uint32_t sends_open; /* 1: its message is not sent yet */
    uint32_t waiting;    /* messages that came, less those waited for */
    uint64_t n_done;     /* swaps behind the warm-up, the first not counted */
    uint64_t first_ps;   /* end of the first swap behind the warm-up; 0: none yet */
    uint64_t last_ps;
};

struct swap_run {
    struct swapper *swappers; /* owned; [nid][proc] */
    uint32_t bytes;
    uint64_t warmup_ps;
    _Atomic int error;
};

static struct swapper *swapper_at(struct swap_run *run, struct emu_nic_proc at)
{
    return &run->swappers[(size_t)at.nid * EMU_NIC_PROCS_MAX + at.proc];
}

static int post_swap(struct swap_run *run, struct emu_nic_model *nm, struct emu_nic_proc at, uint64_t at_ps)
{
    struct swapper *s = swapper_at(run, at);
    const struct emu_nic_op op = { .kind = EMU_NIC_MESSAGE, .to = s->partner, .bytes = run->bytes };

    s->sends_open = 1;
    return emu_nic_post(nm, at, &op, at_ps);
}

/* The swap is over once both events are in. */
static void go_on(struct swap_run *run, struct emu_nic_model *nm, const struct emu_nic_event *event)
{
    struct swapper *s = swapper_at(run, event->at);
    int r;

    if (s->sends_open != 0 || s->waiting == 0)
        return;
    s->waiting--;
    if (event->at_ps >= run->warmup_ps) {
        if (s->first_ps == 0)
            s->first_ps = event->at_ps;
        else
            s->n_done++;
        s->last_ps = event->at_ps;
    }
    r = post_swap(run, nm, event->at, event->at_ps);
    if (r < 0)
        run->error = r;
}

static void note_completed(void *ctx, struct emu_nic_model *nm, const struct emu_nic_event *event)
{
    struct swap_run *run = ctx;

    swapper_at(run, event->at)->sends_open = 0;
    go_on(run, nm, event);
}

static void note_arrived(void *ctx, struct emu_nic_model *nm, const struct emu_nic_event *event)
{
    struct swap_run *run = ctx;

    swapper_at(run, event->at)->waiting++;
    go_on(run, nm, event);
}

static double rate_of(const struct swap_run *run, const struct swapper *s)
{
    if (s->n_done == 0)
        return 0;
    return 2.0 * run->bytes * (double)s->n_done / ((double)(s->last_ps - s->first_ps) * 1e-6);
}

static bool has_done_enough(struct swap_run *run, const struct emu_nic_pair *pairs, size_t n_pairs)
{
    for (size_t i = 0; i < n_pairs; i++) {
        if (swapper_at(run, pairs[i].from)->n_done < SWAPS_MIN)
            return false;
    }
    return true;
}

static int run_swaps(const struct emu_nic_setup *setup, struct swap_run *run, const struct emu_nic_pair *pairs,
                     size_t n_pairs, uint64_t alone_ps, double *rates)
{
    const struct emu_nic_program program = { .ctx = run, .completed = note_completed, .arrived = note_arrived };
    struct emu_random random = { .state = setup->seed };
    struct emu_nic_model *nm = NULL;
    int r = emu_nic_model_create(setup, &program, &nm);

    if (r < 0)
        return r;
    run->warmup_ps = alone_ps * WARMUP_SWAPS;
    for (size_t i = 0; i < n_pairs; i++) {
        *swapper_at(run, pairs[i].from) = (struct swapper){ .partner = pairs[i].to };
        *swapper_at(run, pairs[i].to) = (struct swapper){ .partner = pairs[i].from };
    }
    for (size_t i = 0; i < n_pairs && r == 0; i++) {
        uint64_t start_ps = emu_random_below(&random, alone_ps);

        r = post_swap(run, nm, pairs[i].from, start_ps);
        if (r == 0)
            r = post_swap(run, nm, pairs[i].to, start_ps);
    }
    for (uint64_t step = 1; r == 0 && !has_done_enough(run, pairs, n_pairs); step++) {
        if (step > STEPS_MAX)
            r = -ETIMEDOUT;
        else if (emu_sim_run(emu_nic_model_sim(nm), run->warmup_ps + step * STEP_SWAPS * alone_ps) != EMU_SIM_REACHED)
            r = -EIO;
        else
            r = run->error;
    }
    emu_nic_model_destroy(nm);
    for (size_t i = 0; i < n_pairs && r == 0; i++)
        rates[i] = rate_of(run, swapper_at(run, pairs[i].from));
    return r;
}

struct cug_rates cug_swaps(struct cug *c, const struct emu_nic_pair *pairs, size_t n_pairs, uint32_t bytes,
                           double *rates)
{
    struct cug_rates result = { .min = NAN, .max = NAN, .sum = NAN };
    double *own_rates = calloc(n_pairs, sizeof(*own_rates));
    struct swap_run run = { .bytes = bytes };
    double alone_ps = 2.0 * bytes / cug_bi(c, pairs[0].from, pairs[0].to, bytes) * 1e6;
    int r = -ENOMEM;

    run.swappers = calloc((size_t)emu_machine_n_nodes(c->m) * EMU_NIC_PROCS_MAX, sizeof(*run.swappers));
    if (c->error != 0)
        goto out;
    if (own_rates && run.swappers)
        r = run_swaps(&c->setup, &run, pairs, n_pairs, (uint64_t)alone_ps, own_rates);
    if (has_failed(c, r))
        goto out;
    result = (struct cug_rates){ .min = own_rates[0], .max = own_rates[0] };
    for (size_t i = 0; i < n_pairs; i++) {
        result.min = fmin(result.min, own_rates[i]);
        result.max = fmax(result.max, own_rates[i]);
        result.sum += own_rates[i];
    }
    if (rates)
        memcpy(rates, own_rates, n_pairs * sizeof(*rates));
out:
    free(run.swappers);
    free(own_rates);
    return result;
}

/* ---- processes ---- */

struct emu_nic_proc cug_proc(uint32_t rank, uint32_t ppn)
{
    return (struct emu_nic_proc){ .nid = rank / ppn, .proc = rank % ppn };
}

void cug_pairs(uint32_t n, uint32_t apart, uint32_t ppn, struct emu_nic_pair *pairs_out)
{
    for (uint32_t i = 0; i < n; i++)
        pairs_out[i] = (struct emu_nic_pair){ cug_proc(i, ppn), cug_proc(i + apart, ppn) };
}
