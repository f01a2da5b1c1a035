/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Where virtual time begins for a program.
 *
 * The API library that attaches first hands the page of clocks over. From then on the clocks of threads that call API
 * libraries go on from what the host's clocks said, rounded up to a whole second: so they do not go back, and
 * differences of times as floating-point numbers are the same in each run.
 */
#include "mpi-shim/clock/src/program_clock.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "emunic/client/virtual_clock.h"
#include "mpi-shim/clock/src/counter.h"
#include "mpi-shim/clock/src/timers.h"

#define NS_PER_S           1000000000ull
#define QUESTIONS_IN_A_ROW 4u

static uint64_t realtime_base_ns, monotonic_base_ns, processor_base_ns;
static atomic_bool has_begun;
static _Thread_local unsigned runtime_calls; /* of PMIx, that the thread is in */

int program_clock_host(clockid_t clock, struct timespec *now_out)
{
    return (int)syscall(SYS_clock_gettime, clock, now_out);
}

static uint64_t next_second_ns(clockid_t clock)
{
    struct timespec now = { 0 };

    program_clock_host(clock, &now);
    return ((uint64_t)now.tv_sec + 1) * NS_PER_S;
}

void emunic_clock_attach(struct emu_vclock_page *page, int doorbell);

CLOCK_EXPORT void emunic_clock_attach(struct emu_vclock_page *page, int doorbell)
{
    if (!emu_vclock_adopt(page, doorbell))
        return;
    program_clock_note_runtime();
    realtime_base_ns = next_second_ns(CLOCK_REALTIME);
    monotonic_base_ns = next_second_ns(CLOCK_MONOTONIC);
    processor_base_ns = next_second_ns(CLOCK_PROCESS_CPUTIME_ID);
    atomic_store_explicit(&has_begun, true, memory_order_release);
    clock_counter_begin();
    clock_counter_trap_thread();
}

enum program_clock_kind program_clock_kind(const void *caller)
{
    if (!atomic_load_explicit(&has_begun, memory_order_acquire) || !emu_vclock_has_own())
        return PROGRAM_CLOCK_HOST;
    if (runtime_calls > 0 || program_clock_is_of_runtime(caller))
        return emu_vclock_runs() ? PROGRAM_CLOCK_RUNTIME : PROGRAM_CLOCK_HOST;
    return emu_vclock_runs() ? PROGRAM_CLOCK_VIRTUAL : PROGRAM_CLOCK_READ;
}

void program_clock_enter_runtime(void)
{
    runtime_calls++;
}

void program_clock_leave_runtime(void)
{
    runtime_calls--;
}

uint64_t program_clock_elapsed_ns(void)
{
    uint64_t now_ps;

    if (!emu_vclock_runs())
        return emu_vclock_spend(0) / 1000;
    now_ps = emu_vclock_enter();
    emu_vclock_leave();
    return now_ps / 1000;
}

/*
 * A program that asks for the time again and again waits for it, or looks at its memory meanwhile: then a question is a
 * look, behind the horizon.
 */
static void look_if_in_a_row(void)
{
    static _Thread_local uint64_t behind_ps; /* where the clock stood behind the last question */
    static _Thread_local unsigned in_a_row;
    const struct emu_vclock_page *page = emu_vclock_page();

    in_a_row = emu_vclock_spend(page->poll_ps) == behind_ps ? in_a_row + 1 : 0;
    if (in_a_row >= QUESTIONS_IN_A_ROW && !emu_vclock_is_before_horizon())
        emu_vclock_look(EMU_VCLOCK_CALL_POLL);
    behind_ps = emu_vclock_spend(0);
}

void program_clock_charge(void)
{
    if (!emu_vclock_page() || !emu_vclock_runs())
        return;
    look_if_in_a_row();
    program_clock_fire_timers();
}

uint64_t program_clock_base_ns(clockid_t clock)
{
    switch (clock) {
    case CLOCK_REALTIME:
    case CLOCK_REALTIME_COARSE:
    case CLOCK_TAI:
        return realtime_base_ns;
    case CLOCK_PROCESS_CPUTIME_ID:
    case CLOCK_THREAD_CPUTIME_ID:
        return processor_base_ns;
    default:
        return monotonic_base_ns;
    }
}

uint64_t program_clock_now_ns(const void *caller)
{
    struct timespec now = { 0 };

    if (program_clock_kind(caller) >= PROGRAM_CLOCK_READ)
        return monotonic_base_ns + program_clock_elapsed_ns();
    program_clock_host(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * NS_PER_S + (uint64_t)now.tv_nsec;
}

/* What happens to the process meanwhile ends a wait for emunic, but not a sleep. False: virtual time has ended. */
static bool wait_until(uint64_t until_ps)
{
    bool is_on = true;

    while (is_on && emu_vclock_enter() < until_ps)
        is_on = emu_vclock_wait(EMU_VCLOCK_CALL_SLEEP, until_ps, 0) == EMU_VCLOCK_WENT_ON;
    emu_vclock_leave();
    return is_on;
}

enum program_clock_slept program_clock_sleep_until(uint64_t elapsed_ns)
{
    uint64_t until_ps = elapsed_ns > EMU_VCLOCK_NEVER / 1000 - 1 ? EMU_VCLOCK_NEVER - 1 : elapsed_ns * 1000;
    unsigned before = program_clock_handled();
    int error = errno;
    bool is_on = true;
    uint64_t timer_ps;

    do {
        timer_ps = emunic_clock_limit_ps();
        is_on = wait_until(timer_ps < until_ps ? timer_ps : until_ps);
        program_clock_fire_timers();
    } while (is_on && program_clock_handled() == before && emu_vclock_spend(0) < until_ps);
    errno = error;
    if (!is_on)
        return PROGRAM_CLOCK_ENDED;
    return program_clock_handled() != before ? PROGRAM_CLOCK_INTERRUPTED : PROGRAM_CLOCK_SLEPT;
}

void program_clock_away(void)
{
    int error = errno;

    emu_vclock_away();
    errno = error;
}

void program_clock_return(void)
{
    int error = errno;

    emu_vclock_return();
    errno = error;
}

void *program_clock_next_version(void **found, const char *name, const char *version)
{
    /* Two threads may look at once: they find the same. */
    void *next = __atomic_load_n(found, __ATOMIC_RELAXED);

    if (next)
        return next;
    if (version)
        next = dlvsym(RTLD_NEXT, name, version);
    if (!next)
        next = dlsym(RTLD_NEXT, name);
    __atomic_store_n(found, next, __ATOMIC_RELAXED);
    return next;
}

void *program_clock_next(void **found, const char *name)
{
    return program_clock_next_version(found, name, NULL);
}
