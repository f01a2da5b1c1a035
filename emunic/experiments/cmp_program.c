/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Programs of many processes, step by step.
 *
 * A step of a process: it computes, sends to its partners, and goes on when all of that is sent and as many messages
 * have come from each partner as it has waited for in all. A fast partner may be steps ahead: messages of a pair keep
 * their order here, so counting them is enough.
 *
 * CAF. A process's first put of a step pays host.caf_ns, the others follow gap_us apart, as stores do that nobody waits
 * for. A put is told to its target, which polls.
 *
 * The simulation has one thread, so what processes share needs no care.
 */
#include "emunic/experiments/cmp_program.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { WORD = 8 };

struct process {
    uint32_t step; /* of all iterations together */
    uint32_t n_unsent;
    uint64_t first_ps, last_ps; /* ends of the first and of the latest iteration */
    uint32_t waited[CMP_PROCS_MAX], came[CMP_PROCS_MAX];
};

struct run {
    const struct cmp_program *program;
    const struct emu_node_params *host;
    uint32_t n;
    struct process *procs; /* owned */
    int error;
};

void cmp_add(struct cmp_program *p, const struct cmp_step *step)
{
    if (p->n_steps < CMP_STEPS_MAX)
        p->steps[p->n_steps++] = *step;
}

void cmp_add_allreduce(struct cmp_program *p)
{
    if (p->is_caf) {
        cmp_add(p, &(struct cmp_step){ .partners = CMP_ALL, .bytes = WORD });
        return;
    }
    for (uint32_t mask = 1; mask < p->px * p->py; mask *= 2)
        cmp_add(p, &(struct cmp_step){ .partners = CMP_ACROSS, .mask = mask, .bytes = WORD });
}

/* Partners of a process in a step, each as often as it gets a message. */
static uint32_t partners_of(const struct run *run, uint32_t rank, const struct cmp_step *s, uint32_t *partners,
                            uint32_t *bytes)
{
    uint32_t px = run->program->px, py = run->program->py;
    uint32_t x = rank % px, y = rank / px;
    uint32_t n = 0;

    switch (s->partners) {
    case CMP_HALO:
        partners[0] = y * px + (x + 1) % px;
        partners[1] = y * px + (x + px - 1) % px;
        partners[2] = (y + 1) % py * px + x;
        partners[3] = (y + py - 1) % py * px + x;
        bytes[0] = bytes[1] = s->bytes;
        bytes[2] = bytes[3] = s->bytes_across;
        return 4;
    case CMP_ACROSS:
        partners[0] = rank ^ s->mask;
        bytes[0] = s->bytes;
        return 1;
    case CMP_ALL:
        for (uint32_t k = 1; k < run->n; k++) {
            partners[n] = (rank + k) % run->n;
            bytes[n++] = s->bytes;
        }
        return n;
    default:
        return 0;
    }
}

static const struct cmp_step *step_of(const struct run *run, const struct process *p)
{
    return &run->program->steps[p->step % run->program->n_steps];
}

static bool is_over(const struct run *run, uint32_t rank)
{
    const struct process *p = &run->procs[rank];
    uint32_t partners[CMP_PROCS_MAX], bytes[CMP_PROCS_MAX];
    uint32_t n = partners_of(run, rank, step_of(run, p), partners, bytes);

    if (p->n_unsent > 0)
        return false;
    for (uint32_t i = 0; i < n; i++) {
        if (p->came[partners[i]] < p->waited[partners[i]])
            return false;
    }
    return true;
}

/* Posts the messages of a process's step. */
static void enter_step(struct run *run, struct emu_nic_model *nm, uint32_t rank, uint64_t at_ps)
{
    const struct cmp_program *program = run->program;
    struct process *p = &run->procs[rank];
    const struct cmp_step *s = step_of(run, p);
    uint32_t partners[CMP_PROCS_MAX], bytes[CMP_PROCS_MAX];
    uint32_t n = partners_of(run, rank, s, partners, bytes);
    struct emu_nic_proc from = cug_proc(rank, program->ppn);

    at_ps += (uint64_t)(s->compute_us * 1e6);
    p->n_unsent = n;
    for (uint32_t i = 0; i < n && run->error == 0; i++) {
        bool is_first = i == 0;
        const struct emu_nic_op op = {
            .kind = program->is_caf ? EMU_NIC_PUT : EMU_NIC_MESSAGE,
            .api = program->is_caf && is_first ? EMU_NIC_API_CAF : EMU_NIC_API_NONE,
            .to = cug_proc(partners[i], program->ppn),
            .bytes = bytes[i],
            .is_told = true,
        };

        p->waited[partners[i]]++;
        if (program->is_caf && i == 1)
            at_ps += run->host->caf_ps;
        if (program->is_caf && !is_first)
            at_ps += (uint64_t)(program->gap_us * 1e6);
        run->error = emu_nic_post(nm, from, &op, at_ps);
    }
}

/* Goes on as far as the process can. */
static void go_on(struct run *run, struct emu_nic_model *nm, uint32_t rank, uint64_t at_ps)
{
    uint32_t n_steps = run->program->n_steps;
    struct process *p = &run->procs[rank];

    if (p->step == n_steps * run->program->n_iterations || !is_over(run, rank))
        return;
    p->step++;
    if (p->step % n_steps == 0) {
        if (p->step == n_steps)
            p->first_ps = at_ps;
        p->last_ps = at_ps;
    }
    if (p->step < n_steps * run->program->n_iterations)
        enter_step(run, nm, rank, at_ps);
}

static uint32_t rank_of(const struct run *run, struct emu_nic_proc at)
{
    return at.nid * run->program->ppn + at.proc;
}

static void completed(void *ctx, struct emu_nic_model *nm, const struct emu_nic_event *e)
{
    struct run *run = ctx;
    uint32_t rank = rank_of(run, e->at);

    run->procs[rank].n_unsent--;
    go_on(run, nm, rank, e->at_ps);
}

static void arrived(void *ctx, struct emu_nic_model *nm, const struct emu_nic_event *e)
{
    struct run *run = ctx;
    uint32_t rank = rank_of(run, e->at);

    run->procs[rank].came[rank_of(run, e->peer)]++;
    go_on(run, nm, rank, e->at_ps);
}

static int run_all(struct cug *c, struct run *run)
{
    const struct emu_nic_program callbacks = { run, completed, arrived };
    struct emu_nic_model *nm;
    int r = emu_nic_model_create(&c->setup, &callbacks, &nm);

    if (r < 0)
        return r;
    run->host = &c->setup.host;
    for (uint32_t rank = 0; rank < run->n; rank++)
        enter_step(run, nm, rank, 0);
    if (run->error == 0)
        (void)emu_sim_run(emu_nic_model_sim(nm), UINT64_MAX);
    emu_nic_model_destroy(nm);
    for (uint32_t rank = 0; rank < run->n && run->error == 0; rank++) {
        if (run->procs[rank].step < run->program->n_steps * run->program->n_iterations)
            return -EIO; /* messages lost, or a program whose partners do not match */
    }
    return run->error;
}

double cmp_run(struct cug *c, const struct cmp_program *program)
{
    struct run run = { .program = program, .n = program->px * program->py };
    uint64_t first_ps = 0, last_ps = 0;
    int r = -ENOMEM;

    if (c->error != 0)
        return NAN;
    if (run.n > CMP_PROCS_MAX || run.n > emu_machine_n_nodes(c->m) * program->ppn || program->n_iterations < 2) {
        c->error = -EINVAL;
        return NAN;
    }
    run.procs = calloc(run.n, sizeof(*run.procs));
    if (run.procs)
        r = run_all(c, &run);
    for (uint32_t rank = 0; rank < run.n && r == 0; rank++) {
        if (run.procs[rank].first_ps > first_ps)
            first_ps = run.procs[rank].first_ps;
        if (run.procs[rank].last_ps > last_ps)
            last_ps = run.procs[rank].last_ps;
    }
    free(run.procs);
    if (r < 0) {
        c->error = r;
        emu_exp_detail(c->x, "%s: a program failed: %s", emu_machine_name(c->m), strerror(-r));
        return NAN;
    }
    return (double)(last_ps - first_ps) * 1e-6 / (program->n_iterations - 1);
}
