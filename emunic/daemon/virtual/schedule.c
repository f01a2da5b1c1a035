/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Whose turn it is: conservative, in the order of virtual time.
 *
 * The next thing is the earliest of: the first command of a port, a clock that wants to look, a clock whose waiting
 * ends. The model goes on up to it, and effects that it has on the way come first: they make lookers of those who
 * wait. Nothing passes a clock that runs, because its thread may still post something at its time, but for looks before
 * the horizon: what is posted then reaches nobody before. Among equal times looks come before commands. Of these, and
 * of ends of waits, that of the process with the lower rank comes first (of several jobs, the one on the lower node).
 * So the order does not tell who has looked beside whom. An effect at a process that runs waits for the next request
 * of that process (operations.c).
 *
 * The network's own times (a schedule of faults, the end of a rest) come before all else at their time: there
 * emu_virtual_next() lets the loop go round. While the network rests, commands wait.
 *
 * When all wait and nothing is under way, time moves in growing steps for those who poll, so that time-outs of programs
 * end. While somebody is outside the model it moves every QUIET_NS of the host's time, and no faster than that. A time
 * that has moved so for long, and blocking calls without a time-out, are told as a deadlock, once. Polls go on even
 * then: a program may poll a number of times and do something else. So they do, with nothing under way, when the sleeps
 * and time-outs of others have moved time for long enough.
 * Source: R. M. Fujimoto, "Parallel Discrete Event Simulation", CACM 33(10), 1990 (conservative order).
 */
#include "emunic/base/clock.h"
#include "emunic/daemon/virtual/inner.h"
#include "emunic/daemon/world/ways.h"

#define STEP_FIRST_PS  1000000u         /* 1 us */
#define STEP_MAX_PS    1000000000000ull /* 1 s */
#define QUIET_NS       100000000u
#define LOOK_MAX_NS    2000000u
#define STUCK_AFTER_PS 3600000000000000ull /* an hour */

struct next_command {
    uint64_t at_ps;
    struct emu_port_end *port; /* NULL: none */
};

static uint64_t order_of(const struct emu_port_end *port)
{
    const struct emu_virtual_process *p = port->member->virtual_process;

    return p ? p->order : UINT64_MAX;
}

/* When its thread posted the command, as the thread says. */
static uint64_t posted_ps(const struct emu_port_end *port, uint64_t place)
{
    const _Atomic uint64_t *times = (const _Atomic uint64_t *)((const char *)port->segment + port->ring.times_off);
    uint64_t at_ps = atomic_load_explicit(&times[place & (EMU_RING_SLOTS - 1)], memory_order_relaxed);

    return at_ps < TIME_MAX_PS ? at_ps : TIME_MAX_PS;
}

/* When the first command of the port is due. NEVER: there is none, or it waits. */
static uint64_t command_ps(const struct emu_port_end *port)
{
    uint64_t at_ps;

    /* Pairs with the release in emu_port_publish(). */
    if (port->ring.is_held || port->domain->job.suspension != EMU_RUNS ||
        atomic_load_explicit(&port->segment->tail, memory_order_acquire) == port->ring.head)
        return NEVER;
    at_ps = posted_ps(port, port->ring.head);
    return at_ps > port->ring.held_until_ps ? at_ps : port->ring.held_until_ps;
}

static bool comes_before(const struct emu_port_end *port, uint64_t at_ps, const struct next_command *than)
{
    if (at_ps != than->at_ps)
        return at_ps < than->at_ps;
    if (!than->port || order_of(port) != order_of(than->port))
        return !than->port || order_of(port) < order_of(than->port);
    return port->index < than->port->index;
}

/* Who runs posts: of the others what was seen last is true, unless all are to be read. */
static void look_at_ring(struct emu_port_end *port, bool all)
{
    const struct emu_virtual_process *p = port->member->virtual_process;

    if (!all && p && port->ring.seen_takes == p->n_takes)
        return;
    port->ring.due_ps = command_ps(port);
    if (p)
        port->ring.seen_takes = p->n_takes;
}

static void find_command(struct emu_server *server, bool all, uint64_t now_ps, struct next_command *out)
{
    struct emu_port_end *port;

    *out = (struct next_command){ .at_ps = NEVER };
    virtual_of(server)->command_ps = 0;
    if (emu_network_is_quiesced(server))
        return;
    LIST_FOREACH(port, &server->ports, link) {
        uint64_t at_ps;

        look_at_ring(port, all);
        at_ps = port->ring.due_ps;
        if (at_ps == NEVER)
            continue;
        if (at_ps < now_ps)
            at_ps = now_ps;
        if (comes_before(port, at_ps, out))
            *out = (struct next_command){ at_ps, port };
    }
    virtual_of(server)->command_ps = out->at_ps;
}

static void tell_deadlock(struct emu_virtual *v)
{
    static const char *const calls[EMU_VCLOCK_CALLS] = {
        "nothing", "an empty poll",        "a blocking call",       "a sleep",
        "a fence", "a call of the system", "a call of the runtime", "a request"
    };
    struct emu_virtual_process *p;

    v->is_stuck = true;
    emu_log(EMU_LOG_ERROR, "virtual time %.6f s: nothing can happen any more", (double)v->time.now_ps * 1e-12);
    LIST_FOREACH(p, &v->processes, link) {
        for (uint32_t i = 0; i < p->n_used; i++) {
            uint32_t call = atomic_load(&p->page->clocks[i].call);

            if (p->clocks[i].state != EMU_VCLOCK_FREE)
                emu_log(EMU_LOG_ERROR, "  rank %d pid %d: in %s since %.6f s", (int)p->rank, (int)p->member->pid,
                        call < EMU_VCLOCK_CALLS ? calls[call] : "?", (double)p->clocks[i].now_ps * 1e-12);
        }
    }
}

/*
 * Who is outside the model may come back, so time moves without it only when that has not happened for quiet_ns. A long
 * pause between two looks counts little: others have not run either.
 */
static bool is_quiet(struct emu_virtual *v, bool has_others, uint64_t quiet_ns)
{
    struct emu_virtual_idle *idle = &v->idle;
    uint64_t now_ns = emu_clock_ns();
    uint64_t passed_ns = now_ns - idle->looked_ns;

    if (!has_others)
        return true;
    if (idle->looked_ns == 0)
        idle->quiet_ns = 0;
    else
        idle->quiet_ns += passed_ns < LOOK_MAX_NS ? passed_ns : LOOK_MAX_NS;
    idle->looked_ns = now_ns;
    if (idle->quiet_ns < quiet_ns)
        return false;
    idle->quiet_ns = 0;
    return true;
}

/* When something becomes of the network, or of what a fault has delayed, by itself. */
static uint64_t network_ps(const struct emu_server *server)
{
    uint64_t next_ns = emu_network_next_ns(server);
    uint64_t alarm_ns = virtual_of(server)->time.alarm_ns;

    if (alarm_ns != 0 && alarm_ns < next_ns)
        next_ns = alarm_ns;
    return next_ns > NEVER / 2000 ? NEVER : next_ns * 1000;
}

/*
 * Everybody waits, and nothing is under way. True: time has moved, at most up to limit_ps. While somebody is outside it
 * moves no faster than the host's: a time-out of the others would else end because the host is slow.
 */
static bool pass_idle_time(struct emu_virtual *v, const struct clock_scan *scan, uint64_t limit_ps)
{
    bool has_others = scan->n_outside > 0;
    uint64_t step_ps = has_others ? earliest(v->idle.step_ps, QUIET_NS * 1000ull) : v->idle.step_ps;
    uint64_t latest_ps;
    bool moves;

    if (scan->n_waiting == 0 || !is_quiet(v, has_others, QUIET_NS))
        return false;
    /* Not from where the model stands: how far it has gone for the polls of others is the host's choice. */
    latest_ps = emu_virtual_latest_ps(v);
    if (latest_ps < limit_ps)
        v->time.now_ps = latest_ps;
    moves = v->time.now_ps < NEVER / 2 && v->time.now_ps + step_ps < limit_ps && emu_virtual_move_pollers(v, step_ps);
    if (!moves && limit_ps != NEVER) {
        v->time.now_ps = limit_ps;
        return true;
    }
    if ((!moves || v->idle.passed_ps > STUCK_AFTER_PS) && !v->is_stuck)
        tell_deadlock(v);
    if (!moves)
        return false;
    v->idle.passed_ps += step_ps;
    if (v->idle.step_ps < STEP_MAX_PS)
        v->idle.step_ps *= 2;
    return true;
}

static void leave_idle(struct emu_virtual *v)
{
    v->idle.step_ps = STEP_FIRST_PS;
    v->idle.passed_ps = 0;
    v->idle.looked_ns = 0;
    v->is_stuck = false;
}

/* Looks and ends of waits at at_ps, if it is nobody's turn before. */
static void let_go(struct emu_virtual *v, const struct clock_scan *scan)
{
    if (scan->until_ps < scan->look_ps) {
        if (emu_virtual_model_is_empty(v))
            emu_virtual_let_pollers_look(v, scan->until_ps);
        emu_virtual_go_on(v, scan->waiter, scan->waiter->sum.wait_index, scan->until_ps);
        return;
    }
    v->idle.looked_ns = 0; /* somebody has asked for something: it is not quiet */
    emu_virtual_go_on(v, scan->looker, scan->looker->sum.look_index, scan->look_ps);
}

/*
 * A poll that looks again after a while is no event, nor is the end of a time-out: where nothing else is under way, who
 * is outside gets its chance. A time-out waits for that no longer than was asked.
 */
static bool may_pass(struct emu_virtual *v, const struct clock_scan *scan)
{
    uint64_t left_ns = scan->until_ps > v->time.now_ps ? (scan->until_ps - v->time.now_ps) / 1000 : 0;

    if (scan->look_ps <= scan->until_ps || !emu_virtual_model_is_empty(v))
        return true;
    switch (atomic_load(&scan->waiter->page->clocks[scan->waiter->sum.wait_index].call)) {
    case EMU_VCLOCK_CALL_POLL:
        return is_quiet(v, scan->n_outside > 0, QUIET_NS);
    case EMU_VCLOCK_CALL_WAIT:
        return is_quiet(v, scan->n_outside > 0, left_ns < QUIET_NS ? left_ns : QUIET_NS);
    default:
        return true;
    }
}

/*
 * Somebody runs at an earlier time, or at the same. What is posted there reaches nobody before the horizon, so who
 * looks before that goes on beside it: its look would find the same later.
 */
static bool may_look_beside(const struct emu_virtual *v, const struct clock_scan *scan, uint64_t next_ps)
{
    return scan->looker && scan->look_ps <= scan->until_ps && scan->look_ps < next_ps &&
           scan->look_ps < emu_virtual_horizon_ps(v, scan->looker);
}

/*
 * Is it the command's turn, not that of who wants to go on? Who looks at its time goes first: it may come to a fence,
 * and another one out of it, all at that time. So all commands of one time are there when the first is taken, in
 * whatever order their processes have come so far.
 */
static bool is_first(const struct next_command *command, const struct clock_scan *scan)
{
    bool is_end = scan->until_ps < scan->look_ps;
    uint64_t at_ps = is_end ? scan->until_ps : scan->look_ps;

    if (command->at_ps != at_ps)
        return command->at_ps < at_ps;
    return is_end && order_of(command->port) <= scan->waiter->order;
}

/* How far the model may go. With nothing to do it goes nowhere: time passes as pass_idle_time() says. */
static uint64_t limit_of(const struct emu_virtual *v, uint64_t others_ps, uint64_t alarm_ps)
{
    return others_ps == NEVER && emu_virtual_model_is_empty(v) ? NEVER : earliest(others_ps, alarm_ps);
}

struct emu_port_end *emu_virtual_next(struct emu_server *server, bool all)
{
    struct emu_virtual *v = virtual_of(server);
    struct clock_scan scan;
    struct next_command command;
    uint64_t due_ps, others_ps, alarm_ps;
    bool waits;

    for (;;) {
        emu_virtual_follow_network(server);
        emu_virtual_scan(server, all, &scan);
        v->is_blocked = scan.run_ps != NEVER;
        if (emu_virtual_apply_effects(v, &waits)) {
            leave_idle(v);
            continue;
        }
        if (waits)
            return NULL;
        find_command(server, all, v->time.now_ps, &command);
        all = false;
        others_ps = earliest(scan.look_ps, scan.until_ps);
        due_ps = earliest(command.at_ps, others_ps);
        alarm_ps = network_ps(server);
        if (others_ps < earliest(command.at_ps, earliest(scan.run_ps, alarm_ps)) && !may_pass(v, &scan))
            return NULL; /* time stays where it is: who comes back must not find it passed */
        if (emu_virtual_run_model(v, limit_of(v, earliest(due_ps, scan.run_ps), alarm_ps)))
            continue;
        if (alarm_ps <= v->time.now_ps)
            return NULL;
        if (scan.run_ps != NEVER && scan.run_ps <= due_ps) {
            if (!may_look_beside(v, &scan, earliest(command.at_ps, alarm_ps)))
                return NULL;
            let_go(v, &scan);
            continue;
        }
        if (due_ps == NEVER) {
            if (!emu_virtual_model_is_empty(v) || !pass_idle_time(v, &scan, alarm_ps))
                return NULL;
            continue;
        }
        if (is_first(&command, &scan)) {
            leave_idle(v);
            return command.port;
        }
        let_go(v, &scan);
    }
}

void emu_virtual_hold(struct emu_port_end *port)
{
    port->ring.is_held = true;
    port->ring.due_ps = NEVER;
}

void emu_virtual_hold_until(struct emu_port_end *port, uint64_t until_ns)
{
    uint64_t until_ps = until_ns < NEVER / 2000 ? until_ns * 1000 : NEVER / 2;
    uint64_t now_ps = virtual_of(port->server)->time.now_ps;

    /* Later than now, or it would be asked for ever. */
    port->ring.held_until_ps = until_ps > now_ps ? until_ps : now_ps + 1000;
    port->ring.let_go_ps = port->ring.held_until_ps;
    port->ring.due_ps = command_ps(port);
}

uint64_t emu_virtual_retry_ns(const struct emu_server *server)
{
    const struct emu_virtual *v = virtual_of(server);

    return (v->lookahead.remote_ps + v->lookahead.own_ps) / 1000 + 1;
}

void emu_virtual_let_go(struct emu_port_end *port)
{
    if (port->ring.is_held)
        port->ring.let_go_ps = virtual_of(port->server)->time.now_ps;
    port->ring.is_held = false;
    port->ring.due_ps = command_ps(port);
}

void emu_virtual_served(struct emu_port_end *port)
{
    struct emu_virtual *v = virtual_of(port->server);
    uint64_t at_ps = posted_ps(port, port->ring.head - 1);

    if (at_ps + v->clock_ps < v->time.now_ps && at_ps >= port->ring.let_go_ps && at_ps >= v->network.released_ps)
        emu_lag_note_late(v, port->member->virtual_process, v->time.now_ps - at_ps);
    port->ring.due_ps = command_ps(port);
}

bool emu_virtual_has_work(struct emu_server *server)
{
    struct emu_virtual *v = virtual_of(server);
    struct emu_port_end *port;

    if (emu_virtual_is_asked(v) || v->jobs.has_opened || network_ps(server) <= v->time.now_ps)
        return true;
    LIST_FOREACH(port, &server->ports, link) {
        if (port->member->has_news)
            return true;
    }
    return false;
}
