/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Operations in the model.
 *
 * Each operation is told twice: when it has reached the memory of its target, where its owner moves the data, and when
 * it is complete at its initiator. Machines without answers complete an operation when it is sent, so the later of both
 * is its end. The model stops at each, because those who waited for it may have to go on then.
 *
 * Broken parts of the network: the model takes them over when the network is released. It is empty then, so no packet
 * is lost.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "emunic/daemon/virtual/inner.h"
#include "emunic/daemon/world/ways.h"

static void note_effect(struct emu_virtual *v, struct emu_nic_model *nm, const struct emu_nic_event *event,
                        enum emu_virtual_effect_kind kind)
{
    struct emu_virtual_effect *effect = malloc(sizeof(*effect));

    if (!effect)
        abort(); /* as in the simulator: an operation that never ends is worse */
    *effect = (struct emu_virtual_effect){ .op = (struct emu_virtual_op *)(uintptr_t)event->user,
                                           .at_ps = event->at_ps,
                                           .kind = kind };
    STAILQ_INSERT_TAIL(&v->due, effect, link);
    emu_nic_stop(nm);
}

static void begun(void *ctx, struct emu_nic_model *nm, const struct emu_nic_event *event)
{
    note_effect(ctx, nm, event, EFFECT_BEGUN);
}

static void arrived(void *ctx, struct emu_nic_model *nm, const struct emu_nic_event *event)
{
    note_effect(ctx, nm, event, EFFECT_ARRIVED);
}

static void completed(void *ctx, struct emu_nic_model *nm, const struct emu_nic_event *event)
{
    note_effect(ctx, nm, event, EFFECT_ENDED);
}

/* Does a thread of the process run, so that it could see half of what happens? */
static bool runs(const struct emu_virtual *v, const struct emu_virtual_process *p)
{
    if (!p || v->options.compute == EMU_VCLOCK_COMPUTE_MEASURED)
        return false;
    for (uint32_t i = 0; i < p->n_used; i++) {
        const struct clock_end *end = &p->clocks[i];

        if (end->state == EMU_VCLOCK_RUNS && !end->is_absent && !end->is_moved_by_cpu)
            return true;
    }
    return false;
}

/* One operation more, or less, that does not reach its end before reach_ps. */
static void count_one(uint32_t *n_ops, uint64_t *earliest_ps, uint32_t by, uint64_t reach_ps)
{
    *n_ops += by;
    if (*n_ops == 0)
        *earliest_ps = NEVER;
    else if (reach_ps < *earliest_ps)
        *earliest_ps = reach_ps;
}

/* Counts it at those whom its effects may reach. */
static void count(struct emu_virtual *v, const struct emu_virtual_op *op, uint32_t by, uint64_t reach_ps)
{
    if (op->from)
        count_one(&op->from->n_ops, &op->from->reach_ps, by, reach_ps);
    if (op->to && op->to != op->from)
        count_one(&op->to->n_ops, &op->to->reach_ps, by, reach_ps);
    if (op->is_unaddressed)
        count_one(&v->n_unaddressed, &v->reach_ps, by, reach_ps);
}

/* What is posted now has no effect on anybody before that. */
static uint64_t reach_of(const struct emu_virtual *v, const struct emu_virtual_move *move, uint32_t from_nid)
{
    if (move->kind == EMU_VIRTUAL_ANSWER)
        return v->time.now_ps;
    return v->time.now_ps + (move->to_nid == from_nid ? v->lookahead.local_ps : remote_lookahead_ps(v));
}

static void note_time(struct emu_virtual_trace_row *row, const struct emu_virtual_effect *effect)
{
    if (!row)
        return;
    if (effect->kind == EFFECT_BEGUN)
        row->begun_ps = effect->at_ps;
    else if (effect->kind == EFFECT_ENDED)
        row->ended_ps = effect->at_ps;
    else
        row->arrived_ps = effect->at_ps;
}

/* Whoever is told of an effect goes on by its time, not by that of another effect which is taken with it. */
static void note_news(struct emu_virtual_process *p, uint64_t at_ps)
{
    if (p && p->member->has_news && p->news_ps == NEVER)
        p->news_ps = at_ps;
}

/* False: a lock is not free; the effect stays due. */
static bool apply(struct emu_virtual *v, const struct emu_virtual_effect *effect)
{
    struct emu_virtual_op *op = effect->op;

    if (effect->at_ps > v->time.now_ps)
        v->time.now_ps = effect->at_ps;
    if (effect->at_ps > v->idle.effect_ps)
        v->idle.effect_ps = effect->at_ps;
    note_time(op->row, effect);
    if (effect->kind == EFFECT_BEGUN)
        return op->begun(op);
    if (effect->kind == EFFECT_ENDED) {
        if (op->ended && !op->ended(op))
            return false;
        op->has_ended = true;
    } else if (!op->has_arrived) {
        if (!op->arrived(op))
            return false;
        op->has_arrived = true;
    }
    if (op->has_arrived && op->has_ended) {
        LIST_REMOVE(op, link);
        count(v, op, -1u, NEVER);
        v->time.n_under_way--;
        emu_virtual_trace_end(v->files.trace, op->row);
        op->row = NULL;
        op->completed(op);
    }
    return true;
}

bool emu_virtual_apply_effects(struct emu_virtual *v, bool *waits_out)
{
    struct emu_virtual_effect *effect;
    bool has_applied = false;

    *waits_out = false;
    while ((effect = STAILQ_FIRST(&v->due))) {
        struct emu_virtual_process *from = effect->op->from, *to = effect->op->to;

        /* The data of a get, and a fetched word, are at the initiator early. */
        if (runs(v, from) || (effect->kind != EFFECT_ENDED && runs(v, to))) {
            *waits_out = true;
            return has_applied;
        }
        if (!apply(v, effect)) {
            v->is_blocked = true; /* nobody rings when he unlocks: the loop looks again soon */
            *waits_out = true;
            return has_applied;
        }
        note_news(from, effect->at_ps);
        note_news(to, effect->at_ps);
        STAILQ_REMOVE_HEAD(&v->due, link);
        free(effect);
        has_applied = true;
    }
    return has_applied;
}

void emu_virtual_forget_process(struct emu_virtual *v, const struct emu_virtual_process *p)
{
    struct emu_virtual_op *op;

    LIST_FOREACH(op, &v->ops, link) {
        op->from = op->from == p ? NULL : op->from;
        op->to = op->to == p ? NULL : op->to;
    }
}

int emu_virtual_create_model(struct emu_server *server, struct emu_complaint *why)
{
    struct emu_virtual *v = virtual_of(server);
    const struct emu_node_params *host = emu_machine_node_params(server->machine);
    const struct emu_nic_program program = { .ctx = v, .completed = completed, .begun = begun, .arrived = arrived };
    struct emu_nic_setup setup = {
        .machine = server->machine,
        .seed = v->options.seed,
        .n_threads = v->options.n_threads,
        .is_live = true,
        .shared_events = (uint32_t)server->settings.sim_shared_events,
    };
    int r;

    if (!host) {
        snprintf(why->text, why->bytes,
                 "machine '%s' has no host parameters (section host:), so there is no virtual time",
                 emu_machine_name(server->machine));
        return -EINVAL;
    }
    setup.host = *host;
    v->clock_ps = emu_machine_router(server->machine)->clock_ps;
    r = emu_nic_model_create(&setup, &program, &v->model);
    if (r < 0)
        snprintf(why->text, why->bytes, "machine '%s' cannot be simulated: %s", emu_machine_name(server->machine),
                 strerror(-r));
    else
        v->lookahead = emu_nic_lookahead(v->model);
    if (r == 0 && v->options.bit_error_rate > 0)
        emu_sim_set_bit_error_rate(emu_nic_model_sim(v->model), EMU_SIM_ALL_LINKS, v->options.bit_error_rate);
    return r == 0 && v->options.keeps_paths ? emu_sim_keep_paths(emu_nic_model_sim(v->model)) : r;
}

/* Stops at each end of a window up to until_ps, for its lines. True: or at an effect before. */
static bool run_windows(struct emu_virtual *v, struct emu_sim *sim, uint64_t until_ps)
{
    struct emu_link_windows_list *windows = &v->files.link_windows;
    uint64_t end_ps;

    for (;;) {
        emu_link_windows_pass(windows, sim, until_ps);
        end_ps = emu_link_windows_end_ps(windows);
        if (emu_sim_next_ps(sim) == UINT64_MAX || end_ps >= until_ps)
            return false;
        (void)emu_nic_run(v->model, end_ps);
        if (!STAILQ_EMPTY(&v->due))
            return true;
        emu_link_windows_take(windows, sim, end_ps);
    }
}

/* True: something has happened to somebody. */
static bool run_until(struct emu_virtual *v, uint64_t until_ps)
{
    struct emu_sim *sim = emu_nic_model_sim(v->model);

    if (!LIST_EMPTY(&v->files.link_windows) && run_windows(v, sim, until_ps))
        return true;
    (void)emu_nic_run(v->model, until_ps);
    return !STAILQ_EMPTY(&v->due);
}

bool emu_virtual_run_model(struct emu_virtual *v, uint64_t limit_ps)
{
    /* Answers on their way concern nobody, and who posts next does so at the present time. */
    if (limit_ps == NEVER && emu_virtual_model_is_empty(v))
        return false;
    /*
     * The slot of the clock in which the limit lies is done as a whole. An effect in it may have moved time beyond the
     * limit; the next slot waits all the same, or time would creep on from effect to effect while somebody runs.
     */
    if (run_until(v, limit_ps > NEVER / 2 ? NEVER / 2 : limit_ps + v->clock_ps))
        return true;
    if (limit_ps != NEVER && limit_ps > v->time.now_ps)
        v->time.now_ps = limit_ps;
    return false;
}

void emu_virtual_drain(struct emu_virtual *v)
{
    struct emu_virtual_effect *effect;

    do {
        while ((effect = STAILQ_FIRST(&v->due))) {
            struct emu_virtual_op *op = effect->op;

            note_time(op->row, effect);
            op->has_arrived = op->has_arrived || effect->kind == EFFECT_ARRIVED;
            op->has_ended = op->has_ended || effect->kind == EFFECT_ENDED;
            if (op->has_arrived && op->has_ended) {
                emu_virtual_trace_end(v->files.trace, op->row);
                op->row = NULL;
            }
            STAILQ_REMOVE_HEAD(&v->due, link);
            free(effect);
        }
    } while (run_until(v, NEVER / 2));
}

/* No process is left: what is under way goes on to its end. */
static void settle(struct emu_virtual *v)
{
    bool waits;

    do {
        emu_virtual_apply_effects(v, &waits);
    } while (!waits && run_until(v, NEVER / 2));
}

bool emu_virtual_link_stats(const struct emu_server *server, uint32_t link, struct emu_sim_link_stats *stats_out)
{
    struct emu_virtual *v = virtual_of(server);

    if (!v)
        return false;
    if (LIST_EMPTY(&v->processes))
        settle(v);
    emu_sim_link_stats(emu_nic_model_sim(v->model), link, stats_out);
    return true;
}

bool emu_virtual_keeps_paths(const struct emu_server *server)
{
    const struct emu_virtual *v = virtual_of(server);

    return v && v->options.keeps_paths;
}

bool emu_virtual_next_path(const struct emu_server *server, uint32_t *place, struct emu_sim_path *path_out)
{
    struct emu_virtual *v = virtual_of(server);

    if (!v)
        return false;
    if (*place == 0 && LIST_EMPTY(&v->processes))
        settle(v);
    return emu_sim_next_path(emu_nic_model_sim(v->model), place, path_out);
}

bool emu_virtual_model_is_empty(const struct emu_virtual *v)
{
    return LIST_EMPTY(&v->ops);
}

void emu_virtual_follow_network(struct emu_server *server)
{
    struct emu_virtual *v = virtual_of(server);

    if (v->network.changes == emu_network_changes(server) || emu_network_is_quiesced(server))
        return;
    v->network.changes = emu_network_changes(server);
    v->network.released_ps = v->time.now_ps;
    emu_sim_set_faults(emu_nic_model_sim(v->model), emu_network_faults(server));
}

static enum emu_nic_kind kind_of(enum emu_virtual_kind kind)
{
    static const enum emu_nic_kind kinds[] = {
        [EMU_VIRTUAL_PUT] = EMU_NIC_PUT,           [EMU_VIRTUAL_GET] = EMU_NIC_GET,
        [EMU_VIRTUAL_AMO] = EMU_NIC_AMO,           [EMU_VIRTUAL_AMO_FETCH] = EMU_NIC_AMO_FETCH,
        [EMU_VIRTUAL_BLOCK_PUT] = EMU_NIC_BTE_PUT, [EMU_VIRTUAL_BLOCK_GET] = EMU_NIC_BTE_GET,
        [EMU_VIRTUAL_LAUNCH] = EMU_NIC_LAUNCH,     [EMU_VIRTUAL_ANSWER] = EMU_NIC_PUT,
    };

    return kinds[kind];
}

int emu_virtual_post(struct emu_port_end *port, struct emu_virtual_op *op, const struct emu_virtual_move *move)
{
    struct emu_virtual *v = virtual_of(port->server);
    struct emu_virtual_process *from = port->member->virtual_process;
    struct emu_virtual_process *to = move->to ? move->to->virtual_process : NULL;
    const struct emu_nic_op spec = {
        .kind = kind_of(move->kind),
        .to = { .nid = move->to_nid, .proc = to ? to->proc : 0 },
        .bytes = move->bytes > UINT32_MAX ? UINT32_MAX : (uint32_t)move->bytes,
        .is_told = true,
        .is_begun = op->begun,
        .is_launched = move->is_launched,
        .changes_mdh = move->changes_mdh,
        .is_answer = move->kind == EMU_VIRTUAL_ANSWER,
        .has_mode = true,
        .mode = move->mode,
        .user = (uint64_t)(uintptr_t)op,
    };
    const struct emu_nic_proc at = { .nid = port->nid, .proc = from ? from->proc : 0 };
    int r = emu_nic_post(v->model, at, &spec, v->time.now_ps);

    if (r < 0)
        return r;
    op->has_arrived = op->has_ended = false;
    op->from = from;
    op->to = to;
    op->is_unaddressed = !to;
    op->row = emu_virtual_trace_begin(v->files.trace, at, &spec, v->time.now_ps);
    count(v, op, 1, reach_of(v, move, port->nid));
    LIST_INSERT_HEAD(&v->ops, op, link);
    v->time.n_under_way++;
    return 0;
}
