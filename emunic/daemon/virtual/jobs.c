/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Several jobs in one virtual time.
 *
 * Hosts start jobs at any time, so jobs that are to disturb each other alike in each run begin together: at the end of
 * the first fence of each, when as many jobs as wanted have come to theirs. All are at the next whole millisecond then:
 * what a job has needed up to its fence, and which job came first, does not move the begin as long as that is less. A
 * job that ends without a fence has come, too: nobody waits for it any more.
 *
 * Behind the begin the jobs are as one for the order of time, to the bit. When the host ends a fence must not matter to
 * other jobs then. Time does not pass a fence that all of its job have come into, and its end is a look of each of them
 * at the latest of their times (end_fence() in clocks.c). A job that has ended holds nobody up: its last clocks stand
 * where nothing more is posted, so time may pass them whenever that is seen.
 */
#include <errno.h>
#include <stdlib.h>

#include "emunic/daemon/virtual/inner.h"

#define BEGIN_GRID_PS 1000000000u /* 1 ms */

int emu_virtual_begin_job(struct emu_server *server, struct emu_domain *domain)
{
    struct emu_virtual *v = virtual_of(server);
    struct emu_virtual_job *job;

    if (!v)
        return 0;
    job = calloc(1, sizeof(*job));
    if (!job)
        return -ENOMEM;
    job->domain = domain;
    domain->slots[EMU_DOMAIN_VIRTUAL] = job;
    LIST_INSERT_HEAD(&v->jobs.all, job, link);
    return 0;
}

static bool is_open(const struct emu_virtual *v)
{
    return v->jobs.n_missing == 0;
}

static void count_job(struct emu_virtual *v, const struct emu_virtual_job *job, const char *what)
{
    if (is_open(v))
        return;
    v->jobs.n_missing--;
    v->jobs.has_opened = is_open(v);
    emu_log(EMU_LOG_INFO, "virtual time: the job with ptag %u %s; %u more jobs are awaited", job->domain->ptag, what,
            v->jobs.n_missing);
}

void emu_virtual_end_job(struct emu_server *server, struct emu_domain *domain)
{
    struct emu_virtual_job *job = domain->slots[EMU_DOMAIN_VIRTUAL];

    if (!job)
        return;
    if (!job->has_come)
        count_job(virtual_of(server), job, "has ended before its first fence");
    LIST_REMOVE(job, link);
    free(job);
    domain->slots[EMU_DOMAIN_VIRTUAL] = NULL;
}

bool emu_virtual_waits_for_jobs(const struct emu_virtual *v)
{
    return !is_open(v);
}

/* The latest time of those who are in fences. */
static uint64_t latest_in_fences_ps(const struct emu_virtual *v)
{
    const struct emu_virtual_process *p;
    uint64_t latest_ps = v->time.now_ps;

    LIST_FOREACH(p, &v->processes, link) {
        for (uint32_t i = 0; i < p->n_used; i++) {
            bool is_in = p->clocks[i].state == EMU_VCLOCK_FENCED || p->clocks[i].state == EMU_VCLOCK_UNFENCED;

            if (is_in && p->clocks[i].now_ps > latest_ps)
                latest_ps = p->clocks[i].now_ps;
        }
    }
    return latest_ps;
}

void emu_virtual_note_fence(struct emu_virtual *v, struct emu_virtual_job *job)
{
    if (job->has_come)
        return;
    job->has_come = true;
    count_job(v, job, "is at its first fence");
}

void emu_virtual_open_jobs(struct emu_virtual *v)
{
    if (!v->jobs.has_opened)
        return;
    v->jobs.has_opened = false;
    v->jobs.begin_ps = (latest_in_fences_ps(v) / BEGIN_GRID_PS + 1) * BEGIN_GRID_PS;
}

bool emu_virtual_leaves_fence(struct emu_virtual *v, struct emu_virtual_job *job, uint64_t *at_ps)
{
    if (job->has_begun)
        return true;
    if (!is_open(v))
        return false;
    job->has_begun = true;
    if (*at_ps < v->jobs.begin_ps)
        *at_ps = v->jobs.begin_ps;
    *at_ps += job->domain->job.begin_after_ps;
    return true;
}

/* ---- fences that hold time ---- */

void emu_virtual_forget_fences(struct emu_virtual *v)
{
    struct emu_virtual_job *job;

    LIST_FOREACH(job, &v->jobs.all, link) {
        job->n_processes = job->n_unfenced = 0;
        job->fence_ps = 0;
    }
}

uint64_t emu_virtual_held_ps(const struct emu_virtual *v)
{
    const struct emu_virtual_job *job;
    uint64_t held_ps = NEVER;

    LIST_FOREACH(job, &v->jobs.all, link) {
        bool is_held = job->n_processes > 0 && job->n_unfenced == 0 && (job->has_begun || is_open(v));

        if (is_held && job->fence_ps < held_ps)
            held_ps = job->fence_ps;
    }
    return held_ps;
}
