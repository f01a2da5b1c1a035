/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Polling in vain.
 *
 * The library is told of each empty poll and decides how to be polite: to return at once, to yield, or to rest until
 * there may be news. docs/architecture.md, "Waiting" and "Resting", has the rules and why; engine/rest.c how a port is
 * woken.
 */
#include "emunic/client/idle.h"

#include <sched.h>
#include <stdbool.h>

#include "emunic/base/clock.h"
#include "emunic/client/direct.h"
#include "emunic/client/port.h"
#include "emunic/engine/rest.h"

#define POLLS_PER_LOSS_CHECK 4096u       /* one system call each: under 0.1 ns per poll */
#define POLLS_PER_YIELD      1024u       /* 0.2 us each when nobody waits, about every 20 us */
#define SPINS_PER_SLOW_YIELD 64u
#define SLOW_YIELD_NS        700u        /* alone on a core it takes 200 to 400, and 1000 and more for each process that ran */
#define YIELDS_AFTER_SLOW    64u         /* quick ones in turn until a core counts as ours alone again */
#define REST_MIN_NS          200000u
#define REST_MAX_NS          1000000u    /* what cannot wake us is seen so late at most */
#define REST_PER_IDLE        8u          /* a rest lasts so many times as long as nothing has come */
#define REST_POLLS           4u          /* between two rests */
#define REST_QUEUES_MAX      64u
#define UNREAD_NS            100000u     /* events that nobody has fetched for so long nobody wants */

/* Ports of this process. With several of them a program polls one while another gets news. */
static _Atomic uint32_t n_ports;

static uint32_t count_cpus(void)
{
    cpu_set_t set;

    if (sched_getaffinity(0, sizeof(set), &set) < 0)
        return 1;
    return (uint32_t)CPU_COUNT(&set);
}

void emu_idle_open(struct emu_port *port)
{
    port->idle.n_cpus = count_cpus();
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
 * Gives the core away once. True if others used it. Threads of a process may count at once and lose some: it does not
 * matter.
 */
static bool yield_is_slow(struct emu_port *port, uint64_t now_ns)
{
    uint32_t shared = atomic_load_explicit(&port->idle.shared, memory_order_relaxed);

    sched_yield();
    if (emu_clock_ns() - now_ns > SLOW_YIELD_NS) {
        atomic_store_explicit(&port->idle.shared, YIELDS_AFTER_SLOW, memory_order_relaxed);
        return true;
    }
    if (shared > 0)
        atomic_store_explicit(&port->idle.shared, shared - 1, memory_order_relaxed);
    return false;
}

/*
 * Does somebody else want this core? Surely where processes outnumber the cores; where they just fill them the
 * scheduler may still put two on one, and whoever spins there holds up all others: then what the last yields took
 * tells.
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

/* Has the program polled everything in vain for long? Announces that it will rest. */
static bool is_time_to_rest(struct emu_port *port, uint64_t now_ns)
{
    struct emu_idle *idle = &port->idle;
    uint32_t cycle = atomic_load_explicit(&idle->cycle, memory_order_relaxed);
    bool has_news = emu_rest_announce(port->segment);
    uint64_t idle_ns;
    bool has_unread;
    uint64_t activity = sum_activity(port, &has_unread);

    if (has_news || activity != atomic_load_explicit(&idle->activity, memory_order_relaxed)) {
        atomic_store_explicit(&idle->activity, activity, memory_order_relaxed);
        atomic_store_explicit(&idle->since_ns, now_ns, memory_order_relaxed);
        atomic_store_explicit(&idle->polls, 0, memory_order_relaxed);
        return false;
    }
    idle_ns = now_ns - atomic_load_explicit(&idle->since_ns, memory_order_relaxed);
    return idle_ns >= (has_unread ? UNREAD_NS : 0) + port->settings.rest_after_ns &&
           atomic_load_explicit(&idle->polls, memory_order_relaxed) >= (cycle > REST_POLLS ? cycle : REST_POLLS);
}

/*
 * The longer nothing has come, the longer the rest: what cannot wake us (a word that a neighbour writes into memory of
 * its own, say) is late by some part of what it has been late already.
 */
static void rest(struct emu_port *port, uint64_t now_ns)
{
    uint64_t limit_ns = (now_ns - atomic_load_explicit(&port->idle.since_ns, memory_order_relaxed)) * REST_PER_IDLE;

    atomic_store_explicit(&port->idle.polls, 0, memory_order_relaxed);
    if (limit_ns < REST_MIN_NS)
        limit_ns = REST_MIN_NS;
    if (limit_ns > REST_MAX_NS)
        limit_ns = REST_MAX_NS;
    if (!emu_rest_sleep(port->segment, limit_ns) ||
        (atomic_load_explicit(&port->table->flags, memory_order_relaxed) & EMU_TABLE_CLOSED))
        emu_port_is_lost(port);
}

static void make_room(struct emu_port *port)
{
    uint64_t now_ns = emu_clock_ns();

    /* While yields are quick nobody is in want of room. */
    if (atomic_load_explicit(&port->idle.shared, memory_order_relaxed) == YIELDS_AFTER_SLOW && may_rest(port) &&
        is_time_to_rest(port, now_ns)) {
        rest(port, now_ns);
        return;
    }
    yield_is_slow(port, now_ns);
    atomic_fetch_add_explicit(&port->idle.polls, 1, memory_order_relaxed);
}

/* Several threads may count at once and lose some: it does not matter. */
static uint32_t count_poll(struct emu_port *port)
{
    uint32_t polls = atomic_load_explicit(&port->idle.empty_polls, memory_order_relaxed) + 1;

    if (polls >= POLLS_PER_LOSS_CHECK) {
        polls = 0;
        emu_port_is_lost(port);
    }
    atomic_store_explicit(&port->idle.empty_polls, polls, memory_order_relaxed);
    return polls;
}

void emu_port_relax(struct emu_port *port)
{
    uint32_t polls = count_poll(port);

    /* Others than our job may want the core as well: never spin for long without asking. */
    if (is_core_shared(port))
        make_room(port);
    else if (polls % POLLS_PER_YIELD == 0)
        yield_is_slow(port, emu_clock_ns());
    /* No pause instruction: on some processors it takes as long as the news that it would wait for. */
}

void emu_port_relax_among(struct emu_port *port, uint32_t n_things)
{
    atomic_store_explicit(&port->idle.cycle, n_things, memory_order_relaxed);
    emu_port_relax(port);
}

uint32_t emu_port_spin(struct emu_port *port)
{
    uint32_t polls = count_poll(port);

    if (is_core_shared(port) || polls % POLLS_PER_YIELD == 0)
        return yield_is_slow(port, emu_clock_ns()) ? SPINS_PER_SLOW_YIELD : 1;
    return 1;
}
