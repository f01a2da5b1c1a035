/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Virtual time as a part of emunic: its life, its requests, what it does before a sleep.
 */
#include <errno.h>
#include <stdlib.h>

#include "emunic/base/clock.h"
#include "emunic/daemon/virtual/inner.h"

#define LOOK_AGAIN_NS 1000000u /* whether the processes that hold time up do run */

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
    emu_lag_end(v);
    server->slots[EMU_SERVER_TIME] = NULL;
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
    server->slots[EMU_SERVER_TIME] = &v->time;
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
