/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Threads, one per partition; the caller's is the first.
 *
 * They meet: a meeting is over when all have come, and what each did before is seen by all behind it. They stay from
 * the first run on, because a run may be as short as a window, and making a thread takes longer. Between two runs they
 * wait in the meeting that begins the next one.
 */
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "emunic/base/clock.h"
#include "emunic/base/processors.h"
#include "emunic/fabric/sim/state.h"

#define MEET_SPINS 4000

struct sim_crew {
    struct emu_sim *sim;
    void (*work)(void *ctx, struct part *part); /* NULL: all go home */
    void *ctx;
    unsigned n_spins;
    atomic_uint n_waiting;
    atomic_uint meeting; /* number of the meeting that is held next */
    atomic_uint n_asleep;
    struct member *members; /* owned; the first is not used */
};

struct member {
    struct sim_crew *crew;
    struct part *part;
    pthread_t thread;
};

/* The others are in the same window and end it about now: spin for some tens of microseconds, then sleep. With more
 * threads than processors sleep at once. */
static void meet(struct sim_crew *crew)
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

static void *be_member(void *arg)
{
    struct member *member = arg;
    struct sim_crew *crew = member->crew;

    for (;;) {
        meet(crew);
        if (!crew->work)
            return NULL;
        crew->work(crew->ctx, member->part);
        meet(crew);
    }
}

static struct sim_crew *make(struct emu_sim *sim)
{
    struct sim_crew *crew = sim_grown(NULL, sizeof(*crew));

    *crew = (struct sim_crew){
        .sim = sim,
        .n_spins = emu_processors_allowed() >= sim->n_parts ? MEET_SPINS : 0,
        .members = sim_grown(NULL, sim->n_parts * sizeof(*crew->members)),
    };
    for (uint32_t i = 1; i < sim->n_parts; i++) {
        crew->members[i] = (struct member){ .crew = crew, .part = &sim->parts[i] };
        if (pthread_create(&crew->members[i].thread, NULL, be_member, &crew->members[i]) != 0)
            abort(); /* as with memory: half a crew cannot go on */
    }
    return crew;
}

void sim_crew_work(struct emu_sim *sim, void (*work)(void *ctx, struct part *part), void *ctx)
{
    struct sim_crew *crew;

    if (!sim->crew)
        sim->crew = make(sim);
    crew = sim->crew;
    crew->work = work;
    crew->ctx = ctx;
    meet(crew);
    work(ctx, &sim->parts[0]);
    meet(crew);
}

void sim_crew_meet(struct emu_sim *sim)
{
    meet(sim->crew);
}

void sim_crew_destroy(struct sim_crew *crew)
{
    if (!crew)
        return;
    crew->work = NULL;
    meet(crew);
    for (uint32_t i = 1; i < crew->sim->n_parts; i++)
        pthread_join(crew->members[i].thread, NULL);
    free(crew->members);
    free(crew);
}
