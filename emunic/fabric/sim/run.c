/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Time passes.
 *
 * One partition: take the next slot that has events, apply them all, then let every NIC and router that something
 * changed for decide, once. Applying is commutative between routers and decisions touch one router only, so neither
 * order matters; what is put for later goes at least one slot ahead.
 *
 * Several partitions: windows. The shortest time in which one partition can affect another is that of
 * a head, or of a credit, over a link between them; a window is as long. All agree on its start (the first event of
 * all), run through it alone, meet, take what the others sent, say when their next event is, meet again. The two
 * meetings are all the synchronisation there is, and the exchange of outboxes all the communication. With other
 * processes the first thread of each sends and receives between the two meetings (world.c).
 *
 * Each partition has a thread (crew.c). In simulations whose windows may be small one thread goes through all of them
 * instead while a window has few events: a meeting costs as much as some tens of these, and far more on a busy host.
 * The results are the same.
 * Source: D. Nicol, "The Cost of Conservative Synchronization in Parallel Discrete Event Simulations", JACM 40(2), 1993
 * (YAWNS), as in the simulator of BGL.
 */
#include <stdatomic.h>

#include "emunic/fabric/sim/state.h"

/* ---- one partition ---- */

static void apply(struct part *part, const struct emu_event *event)
{
    switch ((enum emu_event_kind)event->kind) {
    case EMU_EVENT_PATH:
        sim_router_path(part, event);
        return;
    case EMU_EVENT_NIC_FREE:
        sim_nic_free(part, event);
        return;
    case EMU_EVENT_INJECT:
        sim_list_nic(part, event->index);
        return;
    case EMU_EVENT_DELIVER:
    case EMU_EVENT_LOST:
        sim_nic_report(part, event);
        return;
    case EMU_EVENT_ARRIVE:
    case EMU_EVENT_CREDIT:
    case EMU_EVENT_LOOK:
        break; /* have lists of their own */
    }
    assert(!"an event has a kind");
}

static void apply_others(struct part *part, const struct emu_wheel_list *list)
{
    for (struct emu_wheel_chunk *chunk = emu_wheel_newest(list); chunk; chunk = emu_wheel_done(&part->wheel, chunk)) {
        size_t n = emu_wheel_count(list, chunk);

        part->totals.events += n;
        if (part->sim->is_large) {
            sim_fetch_chunk(chunk->next);
            for (size_t i = 0; i < n; i++) {
                if (chunk->events[i].kind == EMU_EVENT_DELIVER)
                    __builtin_prefetch(&part->cells[chunk->events[i].payload], 1);
            }
        }
        for (size_t i = 0; i < n; i++)
            apply(part, &chunk->events[i]);
    }
}

static void apply_all(struct part *part)
{
    struct emu_wheel_bucket bucket = emu_wheel_take(&part->wheel);

    if (part->sim->options.count_unblocking)
        sim_count_unblocking(part, &bucket.lists[EMU_WHEEL_CREDITS]);
    sim_credit_links(part, &bucket.lists[EMU_WHEEL_CREDITS]);
    if (part->sim->is_plain) {
        sim_plain_arrive(part, &bucket.lists[EMU_WHEEL_ARRIVALS]);
        sim_plain_look(part, &bucket.lists[EMU_WHEEL_LOOKS]);
    } else {
        sim_routers_arrive(part, &bucket.lists[EMU_WHEEL_ARRIVALS]);
        sim_routers_look(part, &bucket.lists[EMU_WHEEL_LOOKS]);
    }
    apply_others(part, &bucket.lists[EMU_WHEEL_OTHERS]);
    sim_nics_tell(part);
}

static void run_slot(struct part *part, uint64_t slot)
{
    emu_wheel_advance(&part->wheel, slot);
    part->slot = slot;
    part->slot_ps = slot * part->sim->clock_ps;

    part->is_applying = true;
    sim_timers(part);
    apply_all(part);
    part->is_applying = false;

    sim_nics_decide(part);
    if (part->sim->is_plain)
        sim_plain_decide(part);
    else
        sim_routers_decide(part);
}

static uint64_t next_slot(const struct part *part)
{
    uint64_t event = emu_wheel_next(&part->wheel);
    uint64_t timer = sim_timer_slot(part);

    return event < timer ? event : timer;
}

static void run_window(struct part *part, uint64_t end_slot)
{
    uint64_t slot;

    while ((slot = next_slot(part)) < end_slot)
        run_slot(part, slot);
}

/* The only partition. */
static void run_until_ended(struct part *part, uint64_t end_slot)
{
    uint64_t slot;

    while (!part->has_ended && (slot = next_slot(part)) < end_slot)
        run_slot(part, slot);
}

/* ---- all of them ---- */

static void take_messages(struct part *part)
{
    struct emu_sim *sim = part->sim;
    uint32_t me = part->number;

    for (uint32_t from = 0; from < sim->n_parts; from++) {
        struct outbox *box = &sim->parts[from].out[me];

        for (size_t i = 0; i < box->n_credits; i++)
            emu_wheel_put(&part->wheel, box->credits[i].slot, box->credits[i].event);
        for (size_t i = 0; i < box->n_arrivals; i++)
            sim_take_arrival(part, &box->arrivals[i]);
        box->first_slot = UINT64_MAX;
        box->n_credits = 0;
        box->n_arrivals = 0;
    }
}

/* A run of several partitions. */
struct stretch {
    struct emu_sim *sim;
    uint64_t until_slot;
    uint64_t start_slot; /* with other processes: of the window; in the end, of what comes behind the run */
    uint64_t first_slot; /* of the first window */
    uint64_t n_windows;
};

/* What the others have to know before a window. */
static void publish(struct part *part)
{
    part->is_last = part->has_ended;
    part->next_slot = next_slot(part);
    part->ending_slot = sim_ending_slot(part);
    part->n_done = part->totals.events;
}

static uint64_t count_done(const struct emu_sim *sim)
{
    uint64_t n = 0;

    for (uint32_t i = 0; i < sim->n_parts; i++)
        n += sim->parts[i].n_done;
    return n;
}

/*
 * Where the window ends that begins now; 0: the run is over. A timer that ends the run is known before its window, so
 * the window ends behind its slot.
 */
static uint64_t window_end(const struct stretch *run)
{
    const struct emu_sim *sim = run->sim;
    uint64_t start = UINT64_MAX, ending = UINT64_MAX;
    bool is_over = false;
    uint64_t end;

    for (uint32_t i = 0; i < sim->n_parts; i++) {
        is_over = is_over || sim->parts[i].is_last;
        if (sim->parts[i].next_slot < start)
            start = sim->parts[i].next_slot;
        if (sim->parts[i].ending_slot < ending)
            ending = sim->parts[i].ending_slot;
    }
    if (start >= run->until_slot || is_over)
        return 0;
    end = start + sim->window_slots;
    if (end > ending)
        end = ending + 1;
    return end > run->until_slot ? run->until_slot : end;
}

/* On its own thread, until the run is over or windows are not worth it. */
static void run_shared(void *ctx, struct part *part)
{
    const struct stretch *run = ctx;
    struct emu_sim *sim = run->sim;
    uint64_t n_before = UINT64_MAX;
    uint64_t end, n;

    for (;;) {
        publish(part);
        sim_crew_meet(sim);
        end = window_end(run);
        n = count_done(sim);
        if (part->number == 0 && n_before != UINT64_MAX)
            sim->n_window_events = n - n_before;
        if (end == 0 || (n_before != UINT64_MAX && n - n_before < sim->options.shared_events / 2))
            return;
        n_before = n;
        run_window(part, end);
        sim_crew_meet(sim);
        take_messages(part);
    }
}

/* One after another, until the run is over or a window is worth several threads. */
static bool run_in_turn(const struct stretch *run)
{
    struct emu_sim *sim = run->sim;

    for (;;) {
        uint64_t n_before, end;

        for (uint32_t i = 0; i < sim->n_parts; i++)
            publish(&sim->parts[i]);
        n_before = count_done(sim);
        end = window_end(run);
        if (end == 0)
            return true;
        if (sim->n_window_events >= sim->options.shared_events)
            return false;
        for (uint32_t i = 0; i < sim->n_parts; i++)
            run_window(&sim->parts[i], end);
        for (uint32_t i = 0; i < sim->n_parts; i++) {
            take_messages(&sim->parts[i]);
            publish(&sim->parts[i]);
        }
        sim->n_window_events = count_done(sim) - n_before;
    }
}

/* The first slot in which the partition has something to do, or has sent something to do to others. */
static uint64_t first_slot_around(const struct part *part)
{
    uint64_t first = next_slot(part);

    for (uint32_t i = 0; i < sim_n_outboxes(part->sim); i++)
        first = part->out[i].first_slot < first ? part->out[i].first_slot : first;
    return first;
}

/* The same with other processes: while the first thread exchanges with them, the others take what is from here. What
 * is under way counts for the start of the next window, so nobody has to take it first. */
static void run_world_member(void *ctx, struct part *part)
{
    struct stretch *run = ctx;
    struct emu_sim *sim = run->sim;

    for (;;) {
        uint64_t end;

        part->next_slot = first_slot_around(part);
        sim_crew_meet(sim);
        if (part->number == 0) {
            run->start_slot = sim_world_meet(sim);
            if (run->n_windows++ == 0)
                run->first_slot = run->start_slot;
            if (run->start_slot < run->until_slot)
                sim_world_tell_loads(sim, run->start_slot);
        }
        take_messages(part);
        sim_crew_meet(sim);
        sim_world_take(part);
        if (run->start_slot >= run->until_slot)
            return;
        end = run->start_slot + sim->window_slots;
        if (end > run->until_slot)
            end = run->until_slot;
        run_window(part, end);
    }
}

static void set_running(struct emu_sim *sim, bool is_running)
{
    for (uint32_t i = 0; i < sim->n_parts; i++) {
        sim->parts[i].is_running = is_running;
        sim->parts[i].has_ended = sim->parts[i].has_ended && !is_running;
    }
}

/* Everybody stands before the same slot, with all before it done. */
static void line_up(struct emu_sim *sim, uint64_t slot)
{
    for (uint32_t i = 0; i < sim->n_parts; i++) {
        struct part *part = &sim->parts[i];

        emu_wheel_advance(&part->wheel, slot);
        part->slot = slot;
        part->slot_ps = slot * sim->clock_ps;
    }
}

/* The proof that something was simulated: an experiment's figures are checked against it. */
static _Atomic uint64_t packets_of_process;

uint64_t emu_sim_packets_of_process(void)
{
    return atomic_load_explicit(&packets_of_process, memory_order_relaxed);
}

static uint64_t delivered_by(const struct emu_sim *sim)
{
    uint64_t sum = 0;

    for (uint32_t i = 0; i < sim->n_parts; i++)
        sum += sim->parts[i].totals.delivered + sim->parts[i].totals.deposited;
    return sum;
}

static uint64_t first_slot(const struct emu_sim *sim)
{
    uint64_t first = UINT64_MAX;

    for (uint32_t i = 0; i < sim->n_parts; i++) {
        uint64_t next = next_slot(&sim->parts[i]);

        if (next < first)
            first = next;
    }
    return first;
}

/* Runs all partitions. Whether there was nothing to do, and when something is again: of all processes. */
static bool run_parts(struct emu_sim *sim, uint64_t until_slot, uint64_t *next_slot_out)
{
    struct stretch run = { .sim = sim, .until_slot = until_slot };
    bool is_idle = first_slot(sim) == UINT64_MAX;

    set_running(sim, true);
    if (sim->world) {
        sim_crew_work(sim, run_world_member, &run);
        is_idle = run.first_slot == UINT64_MAX;
    } else if (sim->n_parts == 1) {
        run_until_ended(&sim->parts[0], until_slot);
    } else {
        while (!run_in_turn(&run))
            sim_crew_work(sim, run_shared, &run);
    }
    set_running(sim, false);
    *next_slot_out = !sim->world ? first_slot(sim) : run.start_slot;
    return is_idle;
}

/* The last slot in which anything happened. What is asked of other processes matters only when nothing comes any more:
 * before that, all slots are before the end of the run. */
static uint64_t last_slot(const struct emu_sim *sim, bool is_over)
{
    uint64_t last = 0;

    for (uint32_t i = 0; i < sim->n_parts; i++) {
        if (sim->parts[i].slot > last)
            last = sim->parts[i].slot;
    }
    return is_over ? sim_world_most(sim, last) : last;
}

static bool has_ended(const struct emu_sim *sim)
{
    bool has_ended = false;

    for (uint32_t i = 0; i < sim->n_parts; i++)
        has_ended = has_ended || sim->parts[i].has_ended;
    return has_ended;
}

static uint64_t in_network(const struct emu_sim *sim)
{
    uint64_t n = 0;

    for (uint32_t i = 0; i < sim->n_parts; i++)
        n += sim->parts[i].totals.in_network;
    sim_world_sum(sim, &n, 1);
    return n;
}

enum emu_sim_stop emu_sim_run(struct emu_sim *sim, uint64_t until_ps)
{
    uint64_t delivered_before = delivered_by(sim);
    uint64_t until_slot = until_ps / sim->clock_ps;
    uint64_t first, last;
    bool is_idle = run_parts(sim, until_slot, &first);

    if (has_ended(sim)) { /* with other processes nobody ends a run */
        until_slot = last_slot(sim, false) + 1;
        until_ps = until_slot * sim->clock_ps;
    }
    atomic_fetch_add_explicit(&packets_of_process, delivered_by(sim) - delivered_before, memory_order_relaxed);

    last = last_slot(sim, first == UINT64_MAX);
    if (first == UINT64_MAX) { /* the end came before: time stands behind the last event, however often we come here */
        uint64_t end_slot = is_idle ? last : last + 1;

        if (until_slot > end_slot)
            until_slot = end_slot;
        until_ps = until_slot * sim->clock_ps;
    }
    if (until_ps > sim->now_ps)
        sim->now_ps = until_ps;
    if (until_slot > last)
        line_up(sim, until_slot);
    if (first != UINT64_MAX)
        return EMU_SIM_REACHED;
    return in_network(sim) == 0 ? EMU_SIM_EMPTY : EMU_SIM_DEADLOCK;
}

uint64_t emu_sim_now(const struct emu_sim *sim)
{
    return sim->now_ps;
}

uint64_t emu_sim_next_ps(const struct emu_sim *sim)
{
    uint64_t first = sim_world_least(sim, first_slot(sim));

    return first == UINT64_MAX ? UINT64_MAX : first * sim->clock_ps;
}
