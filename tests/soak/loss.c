/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A host that is lost in the middle: its emunic is killed. soak.c does that, and starts it again if it is to come back.
 *
 *   rank of another host                         rank of the lost host
 *   something to a lost rank fails: gone,        something fails: cut off, nothing new
 *   nothing new goes there
 *   nothing is under way there: given up         nothing is under way: closes everything, is down
 *                                                the host is back: opens everything anew, compares its lanes
 *                                                elsewhere with what its first life knew: second life
 *   connects to the second life: met
 *
 * What was under way ends with success, and then it has happened, or with an error. At a lost rank nobody can look any
 * more. What a lost rank had under way elsewhere may have happened or not, and nothing else may: its second life looks
 * at its lanes, the other ranks allow for it in what they count.
 */
#include <sched.h>
#include <string.h>

#include "emunic/base/clock.h"
#include "tests/soak/soak.h"

static bool is_of_lost_host(const struct soak_rank *r, unsigned rank)
{
    unsigned lost = atomic_load(&r->board->lost_host);

    return lost != 0 && r->board->host_of[rank] == lost;
}

bool soak_may_fail(const struct soak_rank *r, unsigned target)
{
    return (is_of_lost_host(r, target) && r->lives[target] == 0) ||
           (is_of_lost_host(r, r->rank) && r->lives[r->rank] == 0);
}

void soak_note_loss(struct soak_rank *r, unsigned target)
{
    atomic_fetch_add(&r->told->lost, 1);
    atomic_store(&r->told->last_lost_ns, emu_clock_ns());
    if (is_of_lost_host(r, r->rank))
        r->is_cut_off = true;
    else
        r->is_gone[target] = true;
}

/* What we tell of our posts to a rank begins anew: so does what it counts. */
static void forget_target(struct soak_rank *r, unsigned target)
{
    struct soak_told *told = r->told;

    atomic_store(&told->events_to[target], 0);
    atomic_store(&told->written_to[target], 0);
    atomic_store(&told->written_sum_to[target], 0);
    for (unsigned w = 0; w < COMMON_WORDS; w++)
        atomic_store(&told->added_to[target][w], 0);
    memset(&r->shadows[target], 0, sizeof(r->shadows[target]));
}

/* The same for messages in both directions. */
static void forget_messages(struct soak_rank *r, unsigned peer)
{
    atomic_store(&r->told->messages_to[peer], 0);
    r->sent_to[peer] = 0;
    r->taken_from[peer] = 0;
}

static void meet(struct soak_rank *r, unsigned peer)
{
    soak_must(r, GNI_EpDestroy(r->eps[peer]), "GNI_EpDestroy");
    forget_target(r, peer);
    forget_messages(r, peer);
    soak_connect(r, peer);
    r->lives[peer] = 1;
    r->is_gone[peer] = false;
    atomic_fetch_add(&r->told->n_met, 1);
}

void soak_meet(struct soak_rank *r)
{
    if (atomic_load_explicit(&r->board->lost_host, memory_order_relaxed) == 0 || is_of_lost_host(r, r->rank))
        return;
    for (unsigned peer = 0; peer < SOAK_RANKS; peer++) {
        if (!r->is_gone[peer] || r->sends_to[peer] > 0 || soak_posts_to(r, peer))
            continue;
        if (!r->has_given_up[peer]) {
            r->has_given_up[peer] = true;
            atomic_fetch_add(&r->told->n_given_up, 1);
        }
        if (atomic_load(&r->board->ranks[peer].life) == 1)
            meet(r, peer);
    }
}

void soak_go_down(struct soak_rank *r)
{
    while (soak_posts_under_way(r) || r->sends_under_way > 0)
        soak_take_completions(r);
    soak_close(r);
    atomic_store(&r->told->is_down, 1);
}

/* Endpoints need the memory of all. */
static void await_neighbours(struct soak_rank *r)
{
    unsigned n = 0;

    for (unsigned i = 0; i < SOAK_RANKS; i++)
        n += is_of_lost_host(r, i);
    atomic_fetch_add(&r->board->n_open, 1);
    while (atomic_load(&r->board->n_open) < n)
        sched_yield();
}

void soak_come_back(struct soak_rank *r)
{
    while (!atomic_load(&r->board->is_back))
        sched_yield();
    for (unsigned i = 0; i < SOAK_RANKS; i++) {
        r->events_from[i] = r->written_from[i] = r->written_sum_from[i] = 0;
        r->sends_to[i] = 0;
        forget_messages(r, i);
        if (is_of_lost_host(r, i)) {
            forget_target(r, i);
            r->lives[i] = 1;
        }
    }
    r->is_cut_off = false;
    soak_open(r);
    await_neighbours(r);
    for (unsigned i = 0; i < SOAK_RANKS; i++)
        soak_connect(r, i);
    soak_check_lanes(r);
    atomic_store(&r->told->life, 1);
}
