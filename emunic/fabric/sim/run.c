/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Time passes.
 *
 * One partition: take the next slot that has events, apply them all, then let every NIC and router that something
 * changed for decide, once. Applying is commutative between routers and decisions touch one router only, so neither
 * order matters; what is put for later goes at least one slot ahead.
 *
 * Several partitions, one thread each: windows. The shortest time in which one partition can affect another is that of
 * a head, or of a credit, over a link between them; a window is as long. All agree on its start (the first event of
 * all), run through it alone, meet, take what the others sent, say when their next event is, meet again. The two
 * meetings are all the synchronisation there is, and the exchange of outboxes all the communication. With other
 * processes the first thread of each sends and receives between the two meetings (world.c).
 * Source: D. Nicol, "The Cost of Conservative Synchronization in Parallel Discrete Event Simulations", JACM 40(2), 1993
 * (YAWNS), as in the simulator of BGL.
 */
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "emunic/base/clock.h"
#include "emunic/fabric/sim/state.h"

#define MEET_SPINS 4000

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

/* The only partition, whose traffic may end the run. */
static void run_until_stopped(struct emu_sim *sim, uint64_t end_slot)
{
    struct part *part = &sim->parts[0];
    uint64_t slot;

    sim->is_stopped = false;
    while (!sim->is_stopped && (slot = next_slot(part)) < end_slot)
        run_slot(part, slot);
}

void emu_sim_stop(struct emu_sim *sim)
{
    sim->is_stopped = true;
}

/* ---- all of them ---- */

struct crew {
    struct emu_sim *sim;
    uint64_t until_slot;
    uint64_t start_slot; /* with other processes: of the window; in the end, of what comes behind the run */
    uint64_t first_slot; /* of the first window */
    uint64_t n_windows;
    unsigned n_spins;
    atomic_uint n_waiting;
    atomic_uint meeting; /* number of the meeting that is held next */
    atomic_uint n_asleep;
};

struct member {
    struct crew *crew;
    struct part *part;
    pthread_t thread;
};

/* The others are in the same window and end it about now: spin for some tens of microseconds, then sleep. With more
 * threads than processors sleep at once. */
static void meet(struct crew *crew)
{
    unsigned meeting = atomic_load_explicit(&crew->meeting, memory_order_relaxed);

    if (atomic_fetch_add_explicit(&crew->n_waiting, 1, memory_order_acq_rel) + 1 == crew->sim->n_parts) {
        atomic_store_explicit(&crew->n_waiting, 0, memory_order_relaxed);
        /* Pairs with the acquires below: what everybody did before the meeting is seen after it. Sequentially
         * consistent, as is the count of sleepers: either we see the sleeper or it sees the new number. */
        atomic_store(&crew->meeting, meeting + 1);
        if (atomic_load(&crew->n_asleep) > 0)
            syscall(SYS_futex, &crew->meeting, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
        return;
    }
    for (unsigned tries = 0; tries < crew->n_spins; tries++) {
        if (atomic_load_explicit(&crew->meeting, memory_order_acquire) != meeting)
            return;
        emu_cpu_pause();
    }
    atomic_fetch_add(&crew->n_asleep, 1);
    while (atomic_load(&crew->meeting) == meeting)
        syscall(SYS_futex, &crew->meeting, FUTEX_WAIT_PRIVATE, meeting, NULL, NULL, 0);
    atomic_fetch_sub(&crew->n_asleep, 1);
}

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

static void *run_member(void *arg)
{
    struct member *member = arg;
    struct crew *crew = member->crew;
    struct emu_sim *sim = crew->sim;
    struct part *part = member->part;

    for (;;) {
        uint64_t start = UINT64_MAX;
        uint64_t end;

        part->next_slot = next_slot(part);
        meet(crew);
        for (uint32_t i = 0; i < sim->n_parts; i++) {
            if (sim->parts[i].next_slot < start)
                start = sim->parts[i].next_slot;
        }
        if (start >= crew->until_slot)
            return NULL;
        end = start + sim->window_slots;
        if (end > crew->until_slot)
            end = crew->until_slot;
        run_window(part, end);
        meet(crew);
        take_messages(part);
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
static void *run_world_member(void *arg)
{
    struct member *member = arg;
    struct crew *crew = member->crew;
    struct emu_sim *sim = crew->sim;
    struct part *part = member->part;

    for (;;) {
        uint64_t end;

        part->next_slot = first_slot_around(part);
        meet(crew);
        if (part->number == 0) {
            crew->start_slot = sim_world_meet(sim);
            if (crew->n_windows++ == 0)
                crew->first_slot = crew->start_slot;
            if (crew->start_slot < crew->until_slot)
                sim_world_tell_loads(sim, crew->start_slot);
        }
        take_messages(part);
        meet(crew);
        sim_world_take(part);
        if (crew->start_slot >= crew->until_slot)
            return NULL;
        end = crew->start_slot + sim->window_slots;
        if (end > crew->until_slot)
            end = crew->until_slot;
        run_window(part, end);
    }
}

/* Answers the crew as it was in the end. */
static struct crew run_crew(struct emu_sim *sim, uint64_t until_slot)
{
    void *(*run)(void *) = !sim->world ? run_member : run_world_member;
    struct crew crew = {
        .sim = sim,
        .until_slot = until_slot,
        .n_spins = sysconf(_SC_NPROCESSORS_ONLN) >= (long)sim->n_parts ? MEET_SPINS : 0,
    };
    struct member *members = sim_grown(NULL, sim->n_parts * sizeof(*members));

    for (uint32_t i = 0; i < sim->n_parts; i++)
        members[i] = (struct member){ .crew = &crew, .part = &sim->parts[i] };
    for (uint32_t i = 1; i < sim->n_parts; i++) {
        if (pthread_create(&members[i].thread, NULL, run, &members[i]) != 0)
            abort(); /* as with memory: half a crew cannot go on */
    }
    (void)run(&members[0]);
    for (uint32_t i = 1; i < sim->n_parts; i++)
        pthread_join(members[i].thread, NULL);
    free(members);
    return crew;
}

static void set_running(struct emu_sim *sim, bool is_running)
{
    for (uint32_t i = 0; i < sim->n_parts; i++)
        sim->parts[i].is_running = is_running;
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
    bool is_idle = first_slot(sim) == UINT64_MAX;
    struct crew crew;

    set_running(sim, true);
    if (sim->n_parts == 1 && !sim->world) {
        run_until_stopped(sim, until_slot);
    } else {
        crew = run_crew(sim, until_slot);
        is_idle = !sim->world ? is_idle : crew.first_slot == UINT64_MAX;
    }
    set_running(sim, false);
    *next_slot_out = !sim->world ? first_slot(sim) : crew.start_slot;
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

    if (sim->is_stopped && sim->n_parts == 1 && !sim->world) {
        until_slot = sim->parts[0].slot + 1;
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
