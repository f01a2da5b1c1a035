/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Virtual time as a part of emunic: its life, its requests, what it does before a sleep.
 */
#include <errno.h>
#include <stdlib.h>

#include "emunic/base/clock.h"
#include "emunic/base/processors.h"
#include "emunic/daemon/core/connection.h"
#include "emunic/daemon/virtual/inner.h"

#define LOOK_AGAIN_NS 1000000u /* whether the processes that hold time up do run */

static void destroy(struct emu_server *server)
{
    struct emu_virtual *v = virtual_of(server);
    struct emu_virtual_effect *effect;
    struct emu_virtual_op *op;

    if (!v)
        return;
    if (v->model)
        emu_virtual_drain(v);
    if (v->model)
        emu_link_windows_take(&v->files.link_windows, emu_nic_model_sim(v->model), UINT64_MAX);
    while ((effect = STAILQ_FIRST(&v->due))) {
        STAILQ_REMOVE_HEAD(&v->due, link);
        free(effect);
    }
    while ((op = LIST_FIRST(&v->ops))) {
        LIST_REMOVE(op, link);
        free(op->row);
        op->drop(op);
    }
    emu_lag_end(v);
    emu_virtual_trace_close(v->files.trace);
    emu_link_windows_close(&v->files.link_windows);
    server->slots[EMU_SERVER_TIME] = NULL;
    emu_nic_model_destroy(v->model);
    free(v);
    server->slots[EMU_SERVER_VIRTUAL] = NULL;
}

static int create(struct emu_server *server, const struct emu_server_options *options, struct emu_complaint *why)
{
    struct emu_virtual *v;
    int r;

    if (!options->time)
        return 0;
    v = calloc(1, sizeof(*v));
    if (!v)
        return -ENOMEM;
    server->slots[EMU_SERVER_VIRTUAL] = v;
    server->slots[EMU_SERVER_TIME] = &v->time;
    v->options = *options->time;
    v->reach_ps = NEVER;
    v->idle.step_ps = 1000000;
    v->awake.n = emu_processors_allowed();
    if (v->awake.n > AWAKE_MAX)
        v->awake.n = AWAKE_MAX;
    LIST_INIT(&v->processes);
    LIST_INIT(&v->jobs.all);
    v->jobs.n_missing = v->options.n_jobs;
    LIST_INIT(&v->ops);
    LIST_INIT(&v->files.link_windows);
    STAILQ_INIT(&v->due);
    r = v->options.trace ? emu_virtual_trace_open(v->options.trace, &v->files.trace, why) : 0;
    if (r == 0 && v->options.links)
        r = emu_link_windows_open(&v->options, server->machine, &v->files.link_windows, why);
    return r < 0 ? r : emu_virtual_create_model(server, why);
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
    struct emu_virtual *v = virtual_of(server);
    bool is_left;

    if (!v)
        return UINT64_MAX;
    emu_virtual_announce_sleep(v, true);
    is_left = emu_link_windows_flush(&v->files.link_windows);
    return is_left || v->is_blocked || v->idle.looked_ns != 0 ? emu_clock_ns() + LOOK_AGAIN_NS : UINT64_MAX;
}

/* Whose turn it is will ask for something at once, as a rule. */
static bool stays_awake(const struct emu_server *server)
{
    const struct emu_virtual *v = virtual_of(server);

    return v && v->is_blocked && emu_clock_ns() - v->awake.went_on_ns < EMU_VCLOCK_AWAKE_NS;
}

/* Lines are in the pipe before emunic sleeps. */
static int answer_links_read(struct emu_request *request)
{
    const struct emu_server *server = request->connection->server;
    struct emu_virtual *v = virtual_of(server);

    if (!v)
        return -EOPNOTSUPP;
    return emu_request_pass(request,
                            emu_link_windows_add_reader(&v->files.link_windows, server->machine,
                                                        emu_nic_model_sim(v->model), request->msg->windows.every_ps,
                                                        v->time.now_ps),
                            true);
}

static const struct emu_request_row requests[] = {
    { EMU_MSG_LINKS_READ, EMU_MSG_LINKS_READ, EMU_NEEDS_ADMIN, answer_links_read },
    { EMU_MSG_VIRTUAL_CLOCK, EMU_MSG_VIRTUAL_CLOCK, EMU_NEEDS_PORT, emu_virtual_answer_page },
};

const struct emu_part emu_virtual_part = {
    .name = "virtual",
    .create = create,
    .destroy = destroy,
    .requests = requests,
    .n_requests = EMU_ROWS(requests),
    .loop = { .round = run_round, .next_ns = next_ns, .stays_awake = stays_awake },
    .domains = { .begin = emu_virtual_begin_job, .end = emu_virtual_end_job },
    .members = { .end = emu_virtual_end_process },
};
