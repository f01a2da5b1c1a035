/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Virtual time as a part of emunic: its life, its requests, what it does before a sleep.
 */
#include <errno.h>
#include <stdlib.h>

#include "emunic/base/clock.h"
#include "emunic/daemon/virtual/inner.h"

#define LOOK_AGAIN_NS 1000000u /* whether the processes that hold time up do run */

/* What the model could not have exactly: never silently wrong. */
void emu_virtual_tell_lag(const struct emu_virtual *v, const struct emu_lag *lag, const char *who)
{
    if (lag->n[LAG_SPIN] > 0)
        emu_log(EMU_LOG_WARN, "virtual time: %s%llu times computed for long without a call, and others went on", who,
                (unsigned long long)lag->n[LAG_SPIN]);
    if (lag->n[LAG_LATE_COMMAND] > 0)
        emu_log(EMU_LOG_WARN, "virtual time: %s%llu operations came late, by %.3f us in all, of %.3f us", who,
                (unsigned long long)lag->n[LAG_LATE_COMMAND], (double)lag->late_ps * 1e-6, (double)v->now_ps * 1e-6);
}

static void tell_whole_lag(const struct emu_virtual *v)
{
    double limit_ps = (double)v->now_ps * v->options.max_lag_ppm * 1e-6;

    emu_virtual_tell_lag(v, &v->lag, "in all, ");
    if (v->lag.n[LAG_LATE_COMMAND] > 0 && (double)v->lag.late_ps > limit_ps)
        emu_log(EMU_LOG_ERROR,
                "virtual time: THE FIGURES OF THIS RUN ARE NOT THE MODEL'S: its lag is %.3g %% of it, %.3g %% at most",
                (double)v->lag.late_ps / (double)v->now_ps * 100, (double)v->options.max_lag_ppm * 1e-4);
}

static void destroy(struct emu_server *server)
{
    struct emu_virtual *v = virtual_of(server);
    struct emu_virtual_effect *effect;
    struct emu_virtual_op *op;

    if (!v)
        return;
    while ((effect = STAILQ_FIRST(&v->due))) {
        STAILQ_REMOVE_HEAD(&v->due, link);
        free(effect);
    }
    while ((op = LIST_FIRST(&v->ops))) {
        LIST_REMOVE(op, link);
        op->drop(op);
    }
    tell_whole_lag(v);
    emu_nic_model_destroy(v->model);
    free(v);
    server->slots[EMU_SERVER_VIRTUAL] = NULL;
}

static int create(struct emu_server *server, const struct emu_server_options *options, struct emu_complaint *why)
{
    struct emu_virtual *v;

    if (!options->time)
        return 0;
    v = calloc(1, sizeof(*v));
    if (!v)
        return -ENOMEM;
    server->slots[EMU_SERVER_VIRTUAL] = v;
    v->options = *options->time;
    v->idle_step_ps = 1000000;
    LIST_INIT(&v->processes);
    LIST_INIT(&v->ops);
    STAILQ_INIT(&v->due);
    return emu_virtual_create_model(server, why);
}

static unsigned run_round(struct emu_server *server)
{
    struct emu_virtual *v = virtual_of(server);

    if (!v)
        return 0;
    emu_virtual_announce_sleep(v, false);
    if (v->is_blocked)
        emu_virtual_look_at_processes(v, emu_clock_ns());
    return 0;
}

/* Before a sleep. */
static uint64_t next_ns(const struct emu_server *server)
{
    const struct emu_virtual *v = virtual_of(server);

    if (!v)
        return UINT64_MAX;
    emu_virtual_announce_sleep(v, true);
    return v->is_blocked || v->idle_since_ns != 0 ? emu_clock_ns() + LOOK_AGAIN_NS : UINT64_MAX;
}

static const struct emu_request_row requests[] = {
    { EMU_MSG_VIRTUAL_CLOCK, EMU_MSG_VIRTUAL_CLOCK, EMU_NEEDS_PORT, emu_virtual_answer_page },
};

const struct emu_part emu_virtual_part = {
    .name = "virtual",
    .create = create,
    .destroy = destroy,
    .requests = requests,
    .n_requests = EMU_ROWS(requests),
    .loop = { .round = run_round, .next_ns = next_ns },
    .members = { .end = emu_virtual_end_process },
};
