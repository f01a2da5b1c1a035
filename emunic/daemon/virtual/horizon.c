/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Up to when nothing happens to a process.
 *
 * What is under way reaches those alone who are at its ends: not before the lookahead behind its post, and then not
 * before the simulation's next event. What others may post from now on needs the machine's lookahead, and others post
 * nothing before they go on: one that waits does so when something reaches it, or when its wait ends. What the thread
 * itself posts is its own business: it draws its horizon in (client/virtual_port.c).
 *
 * Somebody outside of time may come back now. So may who comes newly; one that has gone far ahead would hear of that
 * late, so the horizon is near in any case.
 *
 * Where commands may fail at once there is none.
 */
#include "emunic/daemon/virtual/inner.h"

#define LOOKAHEADS_MAX 16u /* from now to the horizon */

/* When operations reach their ends, none of which does so before reach_ps. */
static uint64_t stirs_ps(const struct emu_virtual *v, uint64_t reach_ps)
{
    if (reach_ps > v->time.now_ps)
        return reach_ps;
    return STAILQ_EMPTY(&v->due) ? emu_sim_next_ps(emu_nic_model_sim(v->model)) : 0;
}

/* A thread of it may come into time. */
static bool has_no_clock(const struct process_scan *sum)
{
    return !sum->runs && sum->look_ps == NEVER && sum->n_waiting == 0 && !sum->is_fenced;
}

/* When the process may post something next: not before now. `stirred_ps`: when what is under way reaches it. */
static uint64_t acts_ps(const struct emu_virtual *v, const struct emu_virtual_process *p, uint64_t stirred_ps)
{
    const struct process_scan *sum = &p->sum;

    if (sum->n_outside > 0 || has_no_clock(sum))
        return v->time.now_ps;
    return earliest(earliest(sum->run_ps, stirred_ps), earliest(sum->look_ps, sum->until_ps));
}

/* When somebody else may post something next, or has. */
static uint64_t others_act_ps(const struct emu_virtual *v, const struct emu_virtual_process *p)
{
    uint64_t all_ps = stirs_ps(v, v->reach_ps);
    uint64_t at_ps = earliest(v->command_ps, all_ps);
    const struct emu_virtual_process *other;

    if (v->n_clockless > 0 || emu_virtual_waits_for_jobs(v))
        return v->time.now_ps;
    LIST_FOREACH(other, &v->processes, link) {
        if (other == p)
            continue;
        if (other->sum.is_fenced && other->job != p->job) /* it leaves the fence when the host likes */
            return v->time.now_ps;
        at_ps = earliest(at_ps, acts_ps(v, other, stirs_ps(v, other->reach_ps)));
    }
    return at_ps > v->time.now_ps ? at_ps : v->time.now_ps;
}

/* What may be posted from now on reaches the process not before that. */
static uint64_t posts_reach_ps(const struct emu_virtual *v, const struct emu_virtual_process *p)
{
    uint64_t ahead_ps = v->lookahead.remote_ps;

    if (!p->is_alone || p->n_used != 1 || v->n_rankless > 0)
        return v->time.now_ps + earliest(v->lookahead.local_ps, remote_lookahead_ps(v));
    return earliest(others_act_ps(v, p), v->time.now_ps + (LOOKAHEADS_MAX - 1) * ahead_ps) + ahead_ps;
}

uint64_t emu_virtual_horizon_ps(const struct emu_virtual *v, const struct emu_virtual_process *p)
{
    if (p->member->domain->paths.has_faults || p->member->domain->paths.is_routed_around)
        return 0;
    return earliest(stirs_ps(v, earliest(p->reach_ps, v->reach_ps)), posts_reach_ps(v, p));
}
