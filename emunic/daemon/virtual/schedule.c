/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Whose turn it is: conservative, in the order of virtual time.
 *
 * The next thing is the earliest of: the first command of a port, a clock that wants to look, a clock whose waiting
 * ends. The model goes on up to it, and effects that it has on the way come first: they make lookers of those who
 * wait. Nothing passes a clock that runs, because its thread may still post something at its time. Among equal times
 * commands come before looks, and the process with the lower rank first; so the order does not depend on the host. An
 * effect at a process that runs waits for the next request of that process (operations.c).
 *
 * The network's own times (a schedule of faults, the end of a rest) come before all else at their time: there
 * emu_virtual_next() lets the loop go round. While the network rests, commands wait.
 *
 * When all wait and nothing is under way, time moves in growing steps for those who poll, so that time-outs of programs
 * end. While somebody is outside the model it moves every QUIET_NS of the host's time, and no faster than that. A time
 * that has moved so for long, and blocking calls without a time-out, are told as a deadlock, once. Polls go on even
 * then: a program may poll a number of times and do something else.
 * Source: R. M. Fujimoto, "Parallel Discrete Event Simulation", CACM 33(10), 1990 (conservative order).
 */
#include "emunic/base/clock.h"
#include "emunic/daemon/virtual/inner.h"
#include "emunic/daemon/world/ways.h"

#define STEP_FIRST_PS  1000000u         /* 1 us */
#define STEP_MAX_PS    1000000000000ull /* 1 s */
#define QUIET_NS       100000000u
#define STUCK_AFTER_PS 3600000000000000ull /* an hour */

struct next_command {
    uint64_t at_ps;
    struct emu_port_end *port; /* NULL: none */
};

static uint32_t order_of(const struct emu_port_end *port)
{
    const struct emu_virtual_process *p = port->member->virtual_process;

    return p ? p->order : UINT32_MAX;
}

/* When the first command of the port is due. NEVER: there is none, or it waits. */
static uint64_t command_ps(const struct emu_port_end *port)
{
    const _Atomic uint64_t *times = (const _Atomic uint64_t *)((const char *)port->segment + port->ring.times_off);

    /* Pairs with the release in emu_port_publish(). */
    if (port->ring.is_held || port->domain->job.suspension != EMU_RUNS ||
        atomic_load_explicit(&port->segment->tail, memory_order_acquire) == port->ring.head)
        return NEVER;
    return atomic_load_explicit(&times[port->ring.head & (EMU_RING_SLOTS - 1)], memory_order_relaxed);
}

static bool comes_before(const struct emu_port_end *port, uint64_t at_ps, const struct next_command *than)
{
    if (at_ps != than->at_ps)
        return at_ps < than->at_ps;
    if (!than->port || order_of(port) != order_of(than->port))
        return !than->port || order_of(port) < order_of(than->port);
    return port->index < than->port->index;
}

static void find_command(const struct emu_server *server, uint64_t now_ps, struct next_command *out)
{
    struct emu_port_end *port;

    *out = (struct next_command){ .at_ps = NEVER };
    if (emu_network_is_quiesced(server))
        return;
    LIST_FOREACH(port, &server->ports, link) {
        uint64_t at_ps = command_ps(port);

        if (at_ps == NEVER)
            continue;
        if (at_ps < now_ps)
            at_ps = now_ps;
        if (comes_before(port, at_ps, out))
            *out = (struct next_command){ at_ps, port };
    }
}

static void tell_deadlock(struct emu_virtual *v)
{
    static const char *const calls[EMU_VCLOCK_CALLS] = { "nothing", "an empty poll", "a blocking call",
                                                         "a sleep", "a fence",       "a call of the system" };
    struct emu_virtual_process *p;

    v->is_stuck = true;
    emu_log(EMU_LOG_ERROR, "virtual time %.6f s: nothing can happen any more", (double)v->time.now_ps * 1e-12);
    LIST_FOREACH(p, &v->processes, link) {
        for (uint32_t i = 0; i < EMU_VCLOCKS; i++) {
            uint32_t call = atomic_load(&p->page->clocks[i].call);

            if (p->clocks[i].state != EMU_VCLOCK_FREE)
                emu_log(EMU_LOG_ERROR, "  rank %d pid %d: in %s since %.6f s", (int)p->member->rank,
                        (int)p->member->pid, call < EMU_VCLOCK_CALLS ? calls[call] : "?",
                        (double)p->clocks[i].now_ps * 1e-12);
        }
    }
}

static uint64_t earliest(uint64_t a_ps, uint64_t b_ps)
{
    return a_ps < b_ps ? a_ps : b_ps;
}

/* Who is outside the model may come back, so time moves without it only when that has not happened for quiet_ns. */
static bool is_quiet(struct emu_virtual *v, bool has_others, uint64_t quiet_ns)
{
    uint64_t now_ns = emu_clock_ns();

    if (!has_others)
        return true;
    if (v->idle_since_ns == 0)
        v->idle_since_ns = now_ns;
    if (now_ns - v->idle_since_ns < quiet_ns)
        return false;
    v->idle_since_ns = now_ns;
    return true;
}

/* When something becomes of the network by itself. */
static uint64_t network_ps(const struct emu_server *server)
{
    uint64_t next_ns = emu_network_next_ns(server);

    return next_ns > NEVER / 2000 ? NEVER : next_ns * 1000;
}

/*
 * Everybody waits, and nothing is under way. True: time has moved, at most up to limit_ps. While somebody is outside it
 * moves no faster than the host's: a time-out of the others would else end because the host is slow.
 */
static bool pass_idle_time(struct emu_virtual *v, const struct clock_scan *scan, uint64_t limit_ps)
{
    bool has_others = scan->n_outside > 0;
    uint64_t step_ps = has_others ? earliest(v->idle_step_ps, QUIET_NS * 1000ull) : v->idle_step_ps;
    bool moves;

    if (scan->n_waiting == 0 || !is_quiet(v, has_others, QUIET_NS))
        return false;
    moves = v->time.now_ps < NEVER / 2 && v->time.now_ps + step_ps < limit_ps && emu_virtual_move_pollers(v, step_ps);
    if (!moves && limit_ps != NEVER) {
        v->time.now_ps = limit_ps;
        return true;
    }
    if ((!moves || v->idle_ps > STUCK_AFTER_PS) && !v->is_stuck)
        tell_deadlock(v);
    if (!moves)
        return false;
    v->idle_ps += step_ps;
    if (v->idle_step_ps < STEP_MAX_PS)
        v->idle_step_ps *= 2;
    return true;
}

static void leave_idle(struct emu_virtual *v)
{
    v->idle_step_ps = STEP_FIRST_PS;
    v->idle_ps = 0;
    v->idle_since_ns = 0;
    v->is_stuck = false;
}

/* Looks and ends of waits at at_ps, if it is nobody's turn before. */
static void let_go(struct emu_virtual *v, const struct clock_scan *scan)
{
    if (scan->until_ps < scan->look_ps) {
        emu_virtual_go_on(v, scan->waiter, scan->wait_index, scan->until_ps);
        return;
    }
    v->idle_since_ns = 0; /* somebody has asked for something: it is not quiet */
    emu_virtual_go_on(v, scan->looker, scan->look_index, scan->look_ps);
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
    switch (atomic_load(&scan->waiter->page->clocks[scan->wait_index].call)) {
    case EMU_VCLOCK_CALL_POLL:
        return is_quiet(v, scan->n_outside > 0, QUIET_NS);
    case EMU_VCLOCK_CALL_WAIT:
        return is_quiet(v, scan->n_outside > 0, left_ns < QUIET_NS ? left_ns : QUIET_NS);
    default:
        return true;
    }
}

/* How far the model may go. With nothing to do it goes nowhere: time passes as pass_idle_time() says. */
static uint64_t limit_of(const struct emu_virtual *v, uint64_t others_ps, uint64_t alarm_ps)
{
    return others_ps == NEVER && emu_virtual_model_is_empty(v) ? NEVER : earliest(others_ps, alarm_ps);
}

struct emu_port_end *emu_virtual_next(struct emu_server *server)
{
    struct emu_virtual *v = virtual_of(server);
    struct clock_scan scan;
    struct next_command command;
    uint64_t due_ps, others_ps, alarm_ps;
    bool waits;

    for (;;) {
        emu_virtual_follow_network(server);
        emu_virtual_scan(server, &scan);
        v->is_blocked = scan.run_ps != NEVER;
        if (emu_virtual_apply_effects(v, &waits)) {
            leave_idle(v);
            continue;
        }
        if (waits)
            return NULL;
        find_command(server, v->time.now_ps, &command);
        others_ps = earliest(scan.look_ps, scan.until_ps);
        due_ps = earliest(command.at_ps, others_ps);
        alarm_ps = network_ps(server);
        if (others_ps < earliest(command.at_ps, earliest(scan.run_ps, alarm_ps)) && !may_pass(v, &scan))
            return NULL; /* time stays where it is: who comes back must not find it passed */
        if (emu_virtual_run_model(v, limit_of(v, earliest(due_ps, scan.run_ps), alarm_ps)))
            continue;
        if (alarm_ps <= v->time.now_ps)
            return NULL;
        if (scan.run_ps != NEVER && scan.run_ps <= due_ps)
            return NULL;
        if (due_ps == NEVER) {
            if (!emu_virtual_model_is_empty(v) || !pass_idle_time(v, &scan, alarm_ps))
                return NULL;
            continue;
        }
        if (command.at_ps <= others_ps) {
            leave_idle(v);
            return command.port;
        }
        let_go(v, &scan);
    }
}

void emu_virtual_hold(struct emu_port_end *port)
{
    port->ring.is_held = true;
}

void emu_virtual_let_go(struct emu_port_end *port)
{
    port->ring.was_held = port->ring.was_held || port->ring.is_held;
    port->ring.is_held = false;
}

void emu_virtual_served(struct emu_port_end *port)
{
    struct emu_virtual *v = virtual_of(port->server);
    const _Atomic uint64_t *times = (const _Atomic uint64_t *)((const char *)port->segment + port->ring.times_off);
    uint64_t at_ps = atomic_load_explicit(&times[port->ring.head & (EMU_RING_SLOTS - 1)], memory_order_relaxed);

    if (at_ps + v->clock_ps < v->time.now_ps && !port->ring.was_held && at_ps >= v->released_ps)
        emu_lag_note_late(v, port->member->virtual_process, v->time.now_ps - at_ps);
    port->ring.was_held = false;
}

bool emu_virtual_has_work(struct emu_server *server)
{
    struct emu_virtual *v = virtual_of(server);
    struct emu_port_end *port;

    if (emu_virtual_is_asked(v) || network_ps(server) <= v->time.now_ps)
        return true;
    LIST_FOREACH(port, &server->ports, link) {
        if (port->member->has_news)
            return true;
    }
    return false;
}
