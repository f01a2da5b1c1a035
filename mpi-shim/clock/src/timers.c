/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Timers in virtual time.
 *
 * A timer is an expiry in a table. The thread whose clock has come to it makes it happen, when it
 * asks for the time, behind each request to emunic, and in sleeps and waits, which go no further than the next expiry
 * at a time. So a signal comes at the first such moment behind its time: a sleep and a wait end exactly at it, a loop
 * of polls ends at the poll that finds it passed. For a thread that computes without a call another one looks
 * (timer_watch.c).
 *
 * The signal goes to the thread itself unless it blocks it; then to the process. An interval goes on from the expiry;
 * expiries that were passed at once are one signal, and the others its overrun.
 *
 * A descriptor becomes readable by the kernel's own timer, which is set to a time that is long over.
 */
#include "mpi-shim/clock/src/timers.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "emunic/client/virtual_clock.h"
#include "mpi-shim/clock/src/counter.h"
#include "mpi-shim/clock/src/create.h"
#include "mpi-shim/clock/src/program_clock.h"

#define TIMERS_MAX   64
#define READABLE_MS  1000 /* the kernel's timer needs microseconds */
#define OVERRUNS_MAX INT32_MAX

struct timer {
    bool is_used;
    clockid_t clock;
    uint64_t at_ns;
    uint64_t interval_ns;
    int overrun;
    struct clock_timer_action action;
};

static atomic_flag is_locked = ATOMIC_FLAG_INIT;
static _Atomic uint64_t next_ns = CLOCK_TIMER_OFF;
static struct timer timers[TIMERS_MAX] = {
    [CLOCK_TIMER_REAL] = { .is_used = true,
                           .clock = CLOCK_MONOTONIC,
                           .at_ns = CLOCK_TIMER_OFF,
                           .action = { .event = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGALRM },
                                       .is_itimer = true } },
};
static _Thread_local unsigned n_handled;

/* ---- the table ---- */

/* A handler that came in between would wait for itself. */
static sigset_t lock(void)
{
    sigset_t all, before;

    sigfillset(&all);
    sigemptyset(&before);
    syscall(SYS_rt_sigprocmask, SIG_SETMASK, &all, &before, _NSIG / 8);
    while (atomic_flag_test_and_set_explicit(&is_locked, memory_order_acquire))
        syscall(SYS_sched_yield);
    return before;
}

static void unlock(const sigset_t *before)
{
    atomic_flag_clear_explicit(&is_locked, memory_order_release);
    syscall(SYS_rt_sigprocmask, SIG_SETMASK, before, NULL, _NSIG / 8);
}

static void find_next(void)
{
    uint64_t ns = CLOCK_TIMER_OFF;

    for (int i = 0; i < TIMERS_MAX; i++) {
        if (timers[i].is_used && timers[i].at_ns < ns)
            ns = timers[i].at_ns;
    }
    atomic_store_explicit(&next_ns, ns, memory_order_release);
}

int clock_timer_add(clockid_t clock, const struct clock_timer_action *action)
{
    sigset_t before = lock();
    int number = -1;

    for (int i = 0; i < TIMERS_MAX && number < 0; i++) {
        if (!timers[i].is_used)
            number = i;
    }
    if (number >= 0)
        timers[number] = (struct timer){ .is_used = true, .clock = clock, .at_ns = CLOCK_TIMER_OFF, .action = *action };
    unlock(&before);
    return number;
}

void clock_timer_remove(int number)
{
    sigset_t before = lock();

    timers[number].is_used = false;
    find_next();
    unlock(&before);
}

int clock_timer_of_descriptor(int fd)
{
    sigset_t before = lock();
    int number = -1;

    for (int i = 0; i < TIMERS_MAX; i++) {
        if (timers[i].is_used && timers[i].action.is_descriptor && timers[i].action.fd == fd)
            number = i;
    }
    unlock(&before);
    return number;
}

bool clock_timer_exists(int number)
{
    return number >= 0 && number < TIMERS_MAX && timers[number].is_used;
}

clockid_t clock_timer_clock(int number)
{
    return timers[number].clock;
}

static uint64_t now_ns(void)
{
    return emu_vclock_spend(0) / 1000;
}

/* A timer that is due and has not happened yet has a nanosecond left: 0 would tell that it is not armed. */
struct clock_timer_left clock_timer_left(int number)
{
    sigset_t before = lock();
    struct clock_timer_left left = { .interval_ns = timers[number].interval_ns };
    uint64_t at_ns = timers[number].at_ns;
    uint64_t now = now_ns();

    unlock(&before);
    if (at_ns != CLOCK_TIMER_OFF)
        left.value_ns = at_ns > now ? at_ns - now : 1;
    return left;
}

void clock_timer_arm(int number, uint64_t at_ns, uint64_t interval_ns)
{
    sigset_t before = lock();

    timers[number].at_ns = at_ns;
    timers[number].interval_ns = interval_ns;
    timers[number].overrun = 0;
    find_next();
    unlock(&before);
    if (at_ns != CLOCK_TIMER_OFF)
        clock_timers_watch();
}

int clock_timer_overrun(int number)
{
    return timers[number].overrun;
}

uint64_t program_clock_next_timer_ns(void)
{
    return atomic_load_explicit(&next_ns, memory_order_acquire);
}

unsigned program_clock_handled(void)
{
    return n_handled;
}

/* ---- what happens ---- */

static bool has_handler(int number)
{
    struct sigaction action;

    return sigaction(number, NULL, &action) == 0 &&
           ((action.sa_flags & SA_SIGINFO) || (action.sa_handler != SIG_DFL && action.sa_handler != SIG_IGN));
}

static void send_signal(int number, const struct timer *timer)
{
    const struct sigevent *event = &timer->action.event;
    pid_t pid = getpid();
    pid_t tid = (pid_t)syscall(SYS_gettid);
    siginfo_t info;
    sigset_t blocked;

    memset(&info, 0, sizeof(info));
    info.si_signo = event->sigev_signo;
    info.si_code = timer->action.is_itimer ? SI_KERNEL : SI_TIMER;
    if (!timer->action.is_itimer) {
        info.si_timerid = number;
        info.si_overrun = timer->overrun;
        info.si_value = event->sigev_value;
    }
    sigemptyset(&blocked);
    pthread_sigmask(SIG_SETMASK, NULL, &blocked);
    if (event->sigev_notify == SIGEV_THREAD_ID && event->_sigev_un._tid != tid) {
        syscall(SYS_rt_tgsigqueueinfo, pid, event->_sigev_un._tid, event->sigev_signo, &info);
    } else if (sigismember(&blocked, event->sigev_signo)) {
        /* The kernel lets the first thread alone say that it is the kernel's. */
        if (syscall(SYS_rt_sigqueueinfo, pid, event->sigev_signo, &info) < 0)
            kill(pid, event->sigev_signo);
    } else {
        n_handled += has_handler(event->sigev_signo);
        syscall(SYS_rt_tgsigqueueinfo, pid, tid, event->sigev_signo, &info);
    }
}

struct thread_start {
    void (*function)(union sigval);
    union sigval value;
};

/* The value travels in the pointer: it is as large. */
static void *run_thread(void *start)
{
    struct thread_start s = *(struct thread_start *)start;

    free(start);
    s.function(s.value);
    return NULL;
}

static void start_thread(const struct sigevent *event)
{
    struct thread_start *start = malloc(sizeof(*start));
    pthread_t thread;

    if (!start)
        return;
    *start = (struct thread_start){ event->sigev_notify_function, event->sigev_value };
    if (clock_create_thread(&thread, event->sigev_notify_attributes, run_thread, start) != 0)
        free(start);
    else
        pthread_detach(thread);
}

/* False: the descriptor is no timer any more. */
static bool make_readable(int fd)
{
    static const struct itimerspec long_ago = { .it_value.tv_nsec = 1 };
    static const struct timespec limit = { .tv_sec = READABLE_MS / 1000 };
    struct pollfd p = { .fd = fd, .events = POLLIN };

    if (syscall(SYS_timerfd_settime, fd, TFD_TIMER_ABSTIME, &long_ago, NULL) < 0)
        return false;
    syscall(SYS_ppoll, &p, 1, &limit, NULL, 0);
    return true;
}

static void happen(int number, const struct timer *timer)
{
    if (timer->action.is_descriptor) {
        if (!make_readable(timer->action.fd))
            clock_timer_remove(number);
        return;
    }
    switch (timer->action.event.sigev_notify) {
    case SIGEV_NONE:
        return;
    case SIGEV_THREAD:
        start_thread(&timer->action.event);
        return;
    default:
        send_signal(number, timer);
    }
}

/* Takes one that is due at `now` out; its next expiry is behind that. */
static int take_due(uint64_t now, struct timer *out)
{
    sigset_t before = lock();
    int number = -1;

    for (int i = 0; i < TIMERS_MAX; i++) {
        if (timers[i].is_used && timers[i].at_ns <= now && (number < 0 || timers[i].at_ns < timers[number].at_ns))
            number = i;
    }
    if (number >= 0) {
        struct timer *t = &timers[number];
        uint64_t passed = t->interval_ns > 0 ? (now - t->at_ns) / t->interval_ns : 0;

        t->overrun = passed < OVERRUNS_MAX ? (int)passed : OVERRUNS_MAX;
        t->at_ns = t->interval_ns > 0 ? t->at_ns + (passed + 1) * t->interval_ns : CLOCK_TIMER_OFF;
        *out = *t;
        find_next();
    }
    unlock(&before);
    return number;
}

void clock_timers_fire(uint64_t at_ns)
{
    int error = errno;
    struct timer due;
    int number;

    while (at_ns >= program_clock_next_timer_ns()) {
        number = take_due(at_ns, &due);
        if (number < 0)
            break;
        happen(number, &due);
    }
    errno = error;
}

void program_clock_fire_timers(void)
{
    if (now_ns() >= program_clock_next_timer_ns())
        clock_timers_fire(now_ns());
}

/* ---- for the libraries that wait for emunic ---- */

CLOCK_EXPORT void emunic_clock_moved(void)
{
    clock_counter_trap_thread();
    program_clock_fire_timers();
}

CLOCK_EXPORT uint64_t emunic_clock_limit_ps(void)
{
    uint64_t ns = program_clock_next_timer_ns();

    return ns < EMU_VCLOCK_NEVER / 1000 ? ns * 1000 : EMU_VCLOCK_NEVER;
}
