/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Timers of threads that compute without a call.
 *
 * Such a thread does not come to a timer by itself, and may wait for its signal. So while a timer is armed, a thread of
 * ours looks at the clocks of the process, every 10 ms of the host while they compute and else more and more seldom,
 * because emunic takes a process that uses no processor for blocked. Where computing is measured, a clock that runs is
 * as far as its thread's processor time. Where computing costs nothing, a thread that has computed for half a second
 * without moving its clock is taken to wait for the signal: its processor time is its time then, which its clock does
 * not show. A timer that is behind that happens.
 *
 * A thread that was let go on at a timer's time makes it happen itself, and its sleep ends by that. So a thread counts
 * from COMPUTES_NS of processor time on after its clock was seen to move.
 *
 * The thread is started by the first timer that is not set in a signal handler, has all signals blocked, and stays.
 */
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "emunic/client/virtual_clock.h"
#include "mpi-shim/clock/src/create.h"
#include "mpi-shim/clock/src/timers.h"

#define LOOK_NS     10000000l
#define LOOK_MAX_NS 320000000l
#define COMPUTES_NS 1000000u
#define SPIN_NS     500000000u /* computing that costs nothing: what is shorter is no time */

/* A clock when it was seen to move last. */
struct seen {
    uint32_t tid;
    uint64_t now_ps;
    uint64_t cpu_ns;
    uint64_t last_cpu_ns; /* when it was looked at last */
};

static atomic_uint is_armed; /* futex */

static bool processor_ns(uint32_t tid, uint64_t *ns_out)
{
    /* The kernel's number of a thread's processor clock (pthread_getcpuclockid(3)). */
    clockid_t clock = (clockid_t)((~tid << 3) | 6);
    struct timespec t;

    if (syscall(SYS_clock_gettime, clock, &t) < 0)
        return false;
    *ns_out = (uint64_t)t.tv_sec * 1000000000ull + (uint64_t)t.tv_nsec;
    return true;
}

/* How far the clock of a thread that computes is, ns; 0: it does not. *computes_out: it has used the processor. */
static uint64_t time_of(const struct emu_vclock_page *page, const struct emu_vclock *c, struct seen *seen,
                        bool *computes_out)
{
    uint64_t now_ps = atomic_load(&c->now_ps);
    uint32_t tid = atomic_load(&c->tid);
    uint64_t cpu_ns;

    if (atomic_load(&c->state) != EMU_VCLOCK_RUNS || !processor_ns(tid, &cpu_ns)) {
        seen->tid = 0;
        return 0;
    }
    if (seen->tid != tid || seen->now_ps != now_ps)
        *seen = (struct seen){ .tid = tid, .now_ps = now_ps, .cpu_ns = cpu_ns };
    *computes_out = *computes_out || cpu_ns > seen->last_cpu_ns;
    seen->last_cpu_ns = cpu_ns;
    if (cpu_ns - seen->cpu_ns < COMPUTES_NS)
        return 0;
    if (page->compute == EMU_VCLOCK_COMPUTE_MEASURED)
        return now_ps / 1000 + (cpu_ns - atomic_load(&c->cpu_ns)) / 1000 * page->factor_ppm / 1000;
    return now_ps / 1000 + (cpu_ns - seen->cpu_ns >= SPIN_NS ? cpu_ns - seen->cpu_ns : 0);
}

/* True: some clock's thread computes. */
static bool look(struct seen seen[EMU_VCLOCKS])
{
    const struct emu_vclock_page *page = emu_vclock_page();
    uint64_t latest_ns = 0;
    bool computes = false;

    for (uint32_t i = 0; page && i < EMU_VCLOCKS; i++) {
        uint64_t ns = time_of(page, &page->clocks[i], &seen[i], &computes);

        if (ns > latest_ns)
            latest_ns = ns;
    }
    clock_timers_fire(latest_ns);
    return computes;
}

static void *watch(void *unused)
{
    struct seen seen[EMU_VCLOCKS] = { { 0 } };
    struct timespec pause = { .tv_nsec = LOOK_NS };

    for (;;) {
        while (program_clock_next_timer_ns() == CLOCK_TIMER_OFF) {
            atomic_store(&is_armed, 0);
            pause.tv_nsec = LOOK_NS;
            if (program_clock_next_timer_ns() == CLOCK_TIMER_OFF)
                syscall(SYS_futex, &is_armed, FUTEX_WAIT, 0, NULL, NULL, 0);
        }
        syscall(SYS_clock_nanosleep, CLOCK_MONOTONIC, 0, &pause, NULL);
        if (look(seen))
            pause.tv_nsec = LOOK_NS;
        else if (pause.tv_nsec < LOOK_MAX_NS)
            pause.tv_nsec *= 2;
    }
    return unused;
}

static void start(void)
{
    pthread_t thread;
    sigset_t all, before;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    if (clock_create_thread(&thread, NULL, watch, NULL) == 0)
        pthread_detach(thread);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

void clock_timers_watch(void)
{
    static pthread_once_t is_started = PTHREAD_ONCE_INIT;

    if (emu_vclock_runs())
        pthread_once(&is_started, start);
    if (atomic_exchange(&is_armed, 1) == 0)
        syscall(SYS_futex, &is_armed, FUTEX_WAKE, 1, NULL, NULL, 0);
}
