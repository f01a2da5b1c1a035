/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Polling in vain.
 *
 * Each empty poll comes here, where it returns at once, yields, waits, or rests until there may be news. Programs give
 * up after a number of empty polls in a row (and sleep for a second), so these have to last longer than an idle fabric
 * takes to answer, wherever that takes long:
 *
 *   core is ours, no other host   returns; every 1024th yields. News come from another core within some looks
 *   core is shared, or crowded    yields; after FREE_POLLS in a row, or where yields come back slowly, waits or rests
 *   other hosts                   returns; after FREE_POLLS in a row waits
 *   program has slept lately      the same, because what it waits for may sleep in turn
 *
 * A wait is a third of the time for which polling has been in vain, so k polls last 1.33^k yields, up to WAIT_MAX_NS,
 * and from then on a 64th of that time. It is so late at most for what cannot end it (a word that a neighbour
 * writes into memory of its own, say). A program that computed since the last poll, which its processor time tells
 * from one whose core others had, waits for an eighth of that at most. Short waits stay awake and yield; longer
 * ones sleep.
 *
 * Every wait ends with news for the port, and the caller looks again. docs/architecture.md, "Waiting" and "Resting",
 * has the numbers; engine/rest.c tells how a port is woken.
 */
#include "emunic/client/idle.h"

#include <sched.h>
#include <stdbool.h>
#include <sys/resource.h>
#include <time.h>

#include "emunic/base/clock.h"
#include "emunic/base/processors.h"
#include "emunic/base/yield_cost.h"
#include "emunic/client/direct.h"
#include "emunic/client/port.h"
#include "emunic/client/virtual_port.h"
#include "emunic/engine/rest.h"

#define POLLS_PER_LOSS_CHECK 4096u /* one system call each: under 0.1 ns per poll */
#define POLLS_PER_YIELD      1024u /* 0.2 us each when nobody waits, about every 20 us */
#define SPINS_PER_SLOW_YIELD 64u
#define YIELDS_AFTER_SLOW    64u /* quick ones in turn until a core counts as ours alone again */
#define FREE_POLLS           16u /* in a row: what another core of this host sends comes within so many */
#define REST_MIN_NS          200000u
#define WAIT_MAX_NS          1000000u /* of the first 64 ms in vain */
#define LONG_WAIT_MAX_NS     20000000u
#define WAITS_PER_VAIN       3u
#define LONG_WAITS_PER_VAIN  64u
#define LOOK_POLLS           32u /* in a row: then it is looked whether the program sleeps */
#define NAP_MIN_NS           1000000u
#define NAPS_KEPT            4u /* for so many times as long a sleep is remembered */
#define WAITS_PER_WORK       8u
#define REST_PER_IDLE        8u /* a rest lasts so many times as long as nothing has come */
#define REST_POLLS           4u /* between two rests */
#define REST_QUEUES_MAX      64u
#define ASIDE_PER_TURN       8u      /* calls beside polls in vain, in virtual time */
#define UNREAD_NS            100000u /* events that nobody has fetched for so long nobody wants */

/* Ports of this process. With several of them a program polls one while another gets news. */
static _Atomic uint32_t n_ports;

static uint64_t cpu_time_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * 1000000000ull + (uint64_t)t.tv_nsec;
}

static bool has_other_hosts(const struct emu_table *table)
{
    for (uint32_t i = 0; i < table->n_nodes; i++) {
        if (emu_table_nodes(table)[i].host != EMU_NODE_HERE)
            return true;
    }
    return false;
}

void emu_idle_open(struct emu_port *port)
{
    struct emu_idle *idle = &port->idle;

    idle->n_cpus = emu_processors_allowed();
    idle->is_far = has_other_hosts(port->table);
    atomic_fetch_add(&n_ports, 1);
    port->idle.is_counted = true;
}

void emu_idle_close(struct emu_port *port)
{
    if (port->idle.is_counted)
        atomic_fetch_sub(&n_ports, 1);
    port->idle.is_counted = false;
}

static uint32_t count_runnable(const struct emu_port *port)
{
    uint32_t runnable = atomic_load_explicit(&port->table->live_processes, memory_order_relaxed);

    /* On the routed path emunic is one more that wants to run. The ring is not looked at: we hold no lock. */
    if (!port->direct || (atomic_load_explicit(&port->table->flags, memory_order_relaxed) & EMU_TABLE_NOT_DIRECT))
        runnable++;
    return runnable;
}

static bool is_crowded(const struct emu_port *port)
{
    return count_runnable(port) > port->idle.n_cpus;
}

/*
 * A yield that takes longer has let others run. emunic may have measured on a busy processor; then one of our own
 * yields soon knows better.
 */
static uint64_t slow_yield_ns(const struct emu_port *port)
{
    uint32_t of_table_ns = port->table->yield_ns;
    uint32_t shortest_ns = atomic_load_explicit(&port->idle.yield_ns, memory_order_relaxed);

    if (shortest_ns == 0 || (of_table_ns != 0 && of_table_ns < shortest_ns))
        shortest_ns = of_table_ns;
    return (uint64_t)EMU_YIELD_SLOW_FACTOR * shortest_ns;
}

/*
 * Has this thread lost its core since the last call? A system call of 0.2 us. Yields also take long where a processor
 * is slow for a while: its other half is busy, or its host has taken it. Then nobody here waits for the core, and
 * whoever yields at each poll is slower still.
 */
static bool has_switched(void)
{
    static _Thread_local long seen;
    struct rusage usage;
    long switches;

    if (getrusage(RUSAGE_THREAD, &usage) != 0)
        return true;
    switches = usage.ru_nvcsw + usage.ru_nivcsw;
    if (switches == seen)
        return false;
    seen = switches;
    return true;
}

/*
 * Gives the core away once. True if others used it. Threads of a process may count at once and lose some: it does not
 * matter.
 */
static bool yield_is_slow(struct emu_port *port, uint64_t now_ns)
{
    uint32_t shared = atomic_load_explicit(&port->idle.shared, memory_order_relaxed);
    uint32_t shortest_ns = atomic_load_explicit(&port->idle.yield_ns, memory_order_relaxed);
    uint64_t took_ns;

    sched_yield();
    took_ns = emu_clock_ns() - now_ns;
    if (shortest_ns == 0 || took_ns < shortest_ns)
        atomic_store_explicit(&port->idle.yield_ns, took_ns < UINT32_MAX ? (uint32_t)took_ns : UINT32_MAX,
                              memory_order_relaxed);
    /* Where each yield is slow there is no doubt. */
    if (took_ns > slow_yield_ns(port) && (shared == YIELDS_AFTER_SLOW || has_switched())) {
        atomic_store_explicit(&port->idle.shared, YIELDS_AFTER_SLOW, memory_order_relaxed);
        return true;
    }
    if (shared > 0)
        atomic_store_explicit(&port->idle.shared, shared - 1, memory_order_relaxed);
    return false;
}

/*
 * Does somebody else want this core? Surely where processes outnumber the cores; where they just fill them the
 * scheduler may still put two on one, and whoever spins there holds up all others: then the last yields tell, which
 * were slow because the thread lost its core.
 */
static bool is_core_shared(const struct emu_port *port)
{
    return atomic_load_explicit(&port->idle.shared, memory_order_relaxed) > 0 || is_crowded(port);
}

/*
 * A number that changes when the port does anything or gets an event; and whether events wait. Words of our own segment
 * that others write only with news.
 */
static uint64_t sum_activity(struct emu_port *port, bool *has_unread_out)
{
    uint64_t sum = atomic_load_explicit(&port->segment->inside, memory_order_relaxed) +
                   atomic_load_explicit(&port->segment->tail, memory_order_relaxed) +
                   atomic_load_explicit(&port->segment->datagram_news, memory_order_relaxed);
    uint32_t n_queues = atomic_load_explicit(&port->n_queues, memory_order_relaxed);

    *has_unread_out = false;
    for (uint32_t i = 0; i < n_queues; i++) {
        struct emu_cq_shm *shm = atomic_load_explicit(&port->queues[i], memory_order_relaxed);
        uint64_t head, tail;

        if (!shm)
            continue;
        head = atomic_load_explicit(&shm->head, memory_order_relaxed);
        tail = atomic_load_explicit(&shm->tail, memory_order_relaxed);
        sum += head + tail;
        *has_unread_out = *has_unread_out || head != tail;
    }
    return sum;
}

static bool may_rest(const struct emu_port *port)
{
    return port->settings.rest_after_ns > 0 && atomic_load_explicit(&n_ports, memory_order_relaxed) == 1 &&
           atomic_load_explicit(&port->n_queues, memory_order_relaxed) <= REST_QUEUES_MAX;
}

/* Has anything come, or has the program done anything, since the last call? Announces that polls may wait. */
static bool has_news(struct emu_port *port, uint64_t now_ns, bool *has_unread_out)
{
    struct emu_idle *idle = &port->idle;
    bool was_disturbed = emu_rest_announce(port->segment);
    uint64_t activity = sum_activity(port, has_unread_out);

    if (!was_disturbed && activity == atomic_load_explicit(&idle->activity, memory_order_relaxed))
        return false;
    atomic_store_explicit(&idle->activity, activity, memory_order_relaxed);
    atomic_store_explicit(&idle->since_ns, now_ns, memory_order_relaxed);
    atomic_store_explicit(&idle->polls, 0, memory_order_relaxed);
    return true;
}

/* ---- what the program does ---- */

static void note_leave(struct emu_idle *idle)
{
    atomic_store_explicit(&idle->left_cpu_ns, cpu_time_ns(), memory_order_relaxed);
    atomic_store_explicit(&idle->left_ns, emu_clock_ns(), memory_order_relaxed);
}

/*
 * For how long the program has computed since it left the last poll; 0: it only polls, or others had the core, or it
 * slept, which is remembered for a while.
 */
static uint64_t computed_ns(struct emu_port *port, uint64_t now_ns)
{
    struct emu_idle *idle = &port->idle;
    uint64_t left_ns = atomic_load_explicit(&idle->left_ns, memory_order_relaxed);
    uint64_t absent_ns = now_ns - left_ns;
    uint64_t used_ns;

    /* Who is away for no longer only polls, perhaps with a yield of its own. */
    if (left_ns == 0 || absent_ns <= slow_yield_ns(port))
        return 0;
    used_ns = cpu_time_ns() - atomic_load_explicit(&idle->left_cpu_ns, memory_order_relaxed);
    if (used_ns > absent_ns / 2)
        return used_ns < absent_ns ? used_ns : absent_ns; /* more: of several threads */
    if (absent_ns >= NAP_MIN_NS)
        atomic_store_explicit(&idle->nap_until_ns, now_ns + NAPS_KEPT * absent_ns, memory_order_relaxed);
    return 0;
}

/* Runs now and then on a core that is ours. */
static void look_for_nap(struct emu_port *port)
{
    struct emu_idle *idle = &port->idle;
    uint64_t now_ns = emu_clock_ns();

    if (now_ns - atomic_load_explicit(&idle->left_ns, memory_order_relaxed) < NAP_MIN_NS)
        return;
    computed_ns(port, now_ns);
    note_leave(idle);
}

/* ---- waits and rests ---- */

/* For how long this poll may wait, whatever it waits for. */
static uint64_t longest_wait_ns(struct emu_port *port, uint64_t now_ns)
{
    struct emu_idle *idle = &port->idle;
    uint64_t vain_ns = now_ns - atomic_load_explicit(&idle->since_ns, memory_order_relaxed);
    uint64_t work_ns = computed_ns(port, now_ns);
    uint64_t limit_ns = vain_ns / LONG_WAITS_PER_VAIN;

    if (work_ns > 0)
        return work_ns / WAITS_PER_WORK;
    if (limit_ns < WAIT_MAX_NS)
        return WAIT_MAX_NS;
    return limit_ns < LONG_WAIT_MAX_NS ? limit_ns : LONG_WAIT_MAX_NS;
}

/* Has the program polled everything in vain for long, while others want the core? */
static bool is_time_to_rest(const struct emu_port *port, uint64_t now_ns, bool has_unread)
{
    const struct emu_idle *idle = &port->idle;
    uint32_t cycle = atomic_load_explicit(&idle->cycle, memory_order_relaxed);
    uint64_t idle_ns = now_ns - atomic_load_explicit(&idle->since_ns, memory_order_relaxed);

    /* While yields are quick nobody is in want of room. */
    return atomic_load_explicit(&idle->shared, memory_order_relaxed) == YIELDS_AFTER_SLOW &&
           idle_ns >= (has_unread ? UNREAD_NS : 0) + port->settings.rest_after_ns &&
           atomic_load_explicit(&idle->polls, memory_order_relaxed) >= (cycle > REST_POLLS ? cycle : REST_POLLS);
}

/* Yields at least once, also where there is nothing to wait for. */
static void wait_awake(struct emu_port *port, uint64_t now_ns, uint64_t wait_ns)
{
    uint64_t until_ns = now_ns + wait_ns;

    do {
        yield_is_slow(port, now_ns);
        now_ns = emu_clock_ns();
    } while (now_ns < until_ns && atomic_load_explicit(&port->segment->rests, memory_order_relaxed) != EMU_REST_NONE);
}

/* Short waits stay awake, because a core that sleeps takes its time to wake up. */
static void wait_for(struct emu_port *port, uint64_t now_ns, uint64_t wait_ns)
{
    if (wait_ns < REST_MIN_NS) {
        wait_awake(port, now_ns, wait_ns);
        return;
    }
    if (!emu_rest_sleep(port->segment, wait_ns) ||
        (atomic_load_explicit(&port->table->flags, memory_order_relaxed) & EMU_TABLE_CLOSED))
        emu_port_is_lost(port);
}

/* Makes room for others. The longer nothing has come, the longer. */
static uint64_t rest_ns(struct emu_idle *idle, uint64_t vain_ns)
{
    uint64_t wait_ns = vain_ns * REST_PER_IDLE;

    atomic_store_explicit(&idle->polls, 0, memory_order_relaxed);
    return wait_ns > REST_MIN_NS ? wait_ns : REST_MIN_NS;
}

/* Nothing has come since the last call. in_a_row: empty polls since something was found. */
static void wait_for_news(struct emu_port *port, uint64_t now_ns, uint32_t in_a_row, bool has_unread)
{
    struct emu_idle *idle = &port->idle;
    uint64_t vain_ns = now_ns - atomic_load_explicit(&idle->since_ns, memory_order_relaxed);
    uint64_t longest_ns = longest_wait_ns(port, now_ns);
    uint64_t wait_ns = in_a_row > FREE_POLLS ? vain_ns / WAITS_PER_VAIN : 0;

    if (is_time_to_rest(port, now_ns, has_unread))
        wait_ns = rest_ns(idle, vain_ns);
    wait_for(port, now_ns, wait_ns < longest_ns ? wait_ns : longest_ns);
    /* Before that its waits are too short to keep a program from anything. */
    if (vain_ns >= port->settings.rest_after_ns)
        note_leave(idle);
}

static void make_room(struct emu_port *port, uint32_t in_a_row)
{
    struct emu_idle *idle = &port->idle;
    uint64_t now_ns = emu_clock_ns();
    bool is_early =
        in_a_row <= FREE_POLLS && atomic_load_explicit(&idle->shared, memory_order_relaxed) != YIELDS_AFTER_SLOW;
    bool has_unread;

    if (is_early || !may_rest(port)) {
        yield_is_slow(port, now_ns);
    } else if (has_news(port, now_ns, &has_unread)) {
        atomic_store_explicit(&idle->left_ns, 0, memory_order_relaxed);
        yield_is_slow(port, now_ns);
    } else {
        wait_for_news(port, now_ns, in_a_row, has_unread);
    }
    atomic_fetch_add_explicit(&idle->polls, 1, memory_order_relaxed);
    if (now_ns > atomic_load_explicit(&idle->nap_until_ns, memory_order_relaxed))
        atomic_store_explicit(&idle->nap_until_ns, 0, memory_order_relaxed);
}

/* ---- calls ---- */

/* Several threads may count at once and lose some: it does not matter. */
static uint32_t count_poll(struct emu_port *port)
{
    uint32_t polls = atomic_load_explicit(&port->idle.empty_polls, memory_order_relaxed) + 1;

    if (polls % POLLS_PER_LOSS_CHECK == 0)
        emu_port_is_lost(port);
    atomic_store_explicit(&port->idle.empty_polls, polls, memory_order_relaxed);
    return polls;
}

static bool is_patient(const struct emu_idle *idle)
{
    return idle->is_far || atomic_load_explicit(&idle->nap_until_ns, memory_order_relaxed) != 0;
}

/* In functional time. */
static bool relax(struct emu_port *port, uint32_t polls, uint32_t in_a_row)
{
    struct emu_idle *idle = &port->idle;

    /* Others than our job may want the core as well: never spin for long without asking. */
    if (is_core_shared(port) || (in_a_row > FREE_POLLS && is_patient(idle))) {
        make_room(port, in_a_row);
        return true;
    }
    if (in_a_row % LOOK_POLLS == 0)
        look_for_nap(port);
    /* No pause instruction: on some processors it takes as long as the news that it would wait for. */
    if (polls % POLLS_PER_YIELD != 0)
        return false;
    yield_is_slow(port, emu_clock_ns());
    return true;
}

bool emu_port_relax(struct emu_port *port, uintptr_t polled)
{
    uint32_t polls, in_a_row;

    if (!port->times && atomic_load_explicit(&port->idle.is_in_rounds, memory_order_relaxed))
        return false;
    polls = count_poll(port);
    in_a_row = polls - atomic_load_explicit(&port->idle.found_at, memory_order_relaxed);
    if (port->times)
        return emu_virtual_port_relax(port, in_a_row, polled);
    return relax(port, polls, in_a_row);
}

static bool is_turn_aside(struct emu_idle *idle)
{
    uint32_t polls = atomic_load_explicit(&idle->empty_polls, memory_order_relaxed);
    uint32_t in_a_row = 1;

    if (polls == atomic_load_explicit(&idle->aside_at, memory_order_relaxed))
        in_a_row += atomic_load_explicit(&idle->aside_in_a_row, memory_order_relaxed);
    atomic_store_explicit(&idle->aside_at, polls, memory_order_relaxed);
    atomic_store_explicit(&idle->aside_in_a_row, in_a_row, memory_order_relaxed);
    return in_a_row % ASIDE_PER_TURN == 0;
}

bool emu_port_relax_aside(struct emu_port *port, uintptr_t tried)
{
    if (port->times && !is_turn_aside(&port->idle))
        return false;
    return emu_port_relax(port, tried);
}

void emu_port_poll_in_rounds(struct emu_port *port)
{
    atomic_store_explicit(&port->idle.is_in_rounds, true, memory_order_relaxed);
}

void emu_port_end_round(struct emu_port *port, bool may_yield)
{
    uint32_t polls;

    if (port->times)
        return;
    polls = count_poll(port);
    if (may_yield)
        relax(port, polls, polls - atomic_load_explicit(&port->idle.found_at, memory_order_relaxed));
}

void emu_port_stir(struct emu_port *port)
{
    emu_rest_disturb(port->segment);
}

bool emu_port_relax_among(struct emu_port *port, uintptr_t polled, uint32_t n_things)
{
    atomic_store_explicit(&port->idle.cycle, n_things, memory_order_relaxed);
    return emu_port_relax(port, polled);
}

uint32_t emu_port_spin(struct emu_port *port)
{
    uint32_t polls = count_poll(port);

    if (port->times)
        return port->settings.spin_polls + 1; /* the blocking call sleeps: that is a request to emunic */
    if (is_core_shared(port) || polls % POLLS_PER_YIELD == 0)
        return yield_is_slow(port, emu_clock_ns()) ? SPINS_PER_SLOW_YIELD : 1;
    return 1;
}
