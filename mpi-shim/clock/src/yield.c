/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A thread that gives the core away waits for something, mostly for memory that another rank writes. So it is an empty
 * poll: it goes on when the next thing happens to its process, at the time at which a loop of such polls would have
 * found it.
 *
 * The API libraries give it away to the host's other processes: theirs are the host's.
 *
 * The progress engine of Open MPI yields behind each round in vain. Where its messages go over our component, the
 * round has polled an API library, and has waited there. Else the time would depend on whether the host has a core for
 * each rank: Open MPI yields only where it has not.
 *
 * It may wait for what is not in the model, too, such as another thread's word. So it also looks after steps of virtual
 * time, a quarter of what has passed since the first yield in a row, one millisecond at most.
 */
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <threads.h>

#include "emunic/client/virtual_clock.h"
#include "mpi-shim/clock/src/program_clock.h"
#include "mpi-shim/clock/src/timers.h"

#define STEP_MAX_PS 1000000000ull

static _Thread_local struct {
    uint64_t began_ps;
    uint64_t last_ps; /* where the clock stood behind the last yield: in a row, if it still does */
} row;

static void wait_for_news(const struct emu_vclock_page *page)
{
    uint64_t now_ps = emu_vclock_enter();
    uint64_t step_ps;

    if (now_ps != row.last_ps || now_ps == 0)
        row.began_ps = now_ps;
    emu_vclock_spend(page->poll_ps);
    now_ps = emu_vclock_spend(0);
    step_ps = (now_ps - row.began_ps) / 4;
    if (step_ps < page->poll_ps)
        step_ps = page->poll_ps;
    if (step_ps > STEP_MAX_PS)
        step_ps = STEP_MAX_PS;
    emu_vclock_wait(EMU_VCLOCK_CALL_POLL, now_ps + step_ps, page->poll_ps);
    emu_vclock_leave();
    row.last_ps = emu_vclock_spend(0);
    program_clock_fire_timers();
}

/* Do messages of MPI go over an API library? As the launcher has chosen (emunic run --mpi). */
static bool is_over_api(void)
{
    static atomic_int known; /* 1 no, 2 yes */
    int answer = atomic_load_explicit(&known, memory_order_relaxed);

    if (answer == 0) {
        answer = getenv("OMPI_MCA_hook_emunic_layer") ? 2 : 1;
        atomic_store_explicit(&known, answer, memory_order_relaxed);
    }
    return answer == 2;
}

static bool is_of_program(const void *caller)
{
    if (program_clock_is_of_progress(caller))
        return program_clock_kind(NULL) == PROGRAM_CLOCK_VIRTUAL;
    return program_clock_kind(caller) == PROGRAM_CLOCK_VIRTUAL && !program_clock_is_of_api(caller);
}

static int yield_as(const void *caller)
{
    static void *found;
    __typeof__(sched_yield) *next = (__typeof__(sched_yield) *)program_clock_next(&found, "sched_yield");
    const struct emu_vclock_page *page = emu_vclock_page();

    if (!page || !is_of_program(caller))
        return next();
    if (program_clock_is_of_progress(caller) && is_over_api())
        return 0;
    wait_for_news(page);
    return 0;
}

CLOCK_EXPORT int sched_yield(void)
{
    return yield_as(CLOCK_CALLER);
}

CLOCK_EXPORT void thrd_yield(void)
{
    yield_as(CLOCK_CALLER);
}
