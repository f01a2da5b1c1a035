/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Calls that set timers. In virtual time they go into the table of timers (timers.c); timers of processor time, those
 * that were set before virtual time began, and what the original refuses, are the host's.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "mpi-shim/clock/src/program_clock.h"
#include "mpi-shim/clock/src/timers.h"
#include "mpi-shim/clock/src/wait.h"

#define NS_PER_S  1000000000ull
#define NS_PER_US 1000ull

static bool is_virtual(const void *caller)
{
    return program_clock_kind(caller) >= PROGRAM_CLOCK_READ;
}

/* As the clock shows it, or from now on. 0 ns: never. */
static uint64_t expiry_of(clockid_t clock, bool is_absolute, const struct timespec *value)
{
    uint64_t ns = clock_ns_of(value);
    uint64_t base_ns = program_clock_base_ns(clock);

    if (ns == 0 || ns == CLOCK_FOR_EVER)
        return CLOCK_TIMER_OFF;
    if (is_absolute)
        return ns > base_ns ? ns - base_ns : 0;
    return clock_after(program_clock_elapsed_ns(), ns);
}

static void arm(int number, bool is_absolute, const struct itimerspec *value)
{
    clock_timer_arm(number, expiry_of(clock_timer_clock(number), is_absolute, &value->it_value),
                    clock_ns_of(&value->it_interval));
    program_clock_fire_timers();
}

static void tell_left(int number, struct itimerspec *out)
{
    struct clock_timer_left left = clock_timer_left(number);

    out->it_value = clock_timespec_of(left.value_ns);
    out->it_interval = clock_timespec_of(left.interval_ns);
}

static bool are_valid(const struct itimerspec *value)
{
    return clock_is_valid(&value->it_value) && clock_is_valid(&value->it_interval);
}

/* ---- alarm, setitimer ---- */

static struct timeval timeval_of(uint64_t ns)
{
    return (struct timeval){ .tv_sec = (time_t)(ns / NS_PER_S), .tv_usec = (long)(ns % NS_PER_S / NS_PER_US) };
}

static struct timespec timespec_of(const struct timeval *t)
{
    return (struct timespec){ .tv_sec = t->tv_sec, .tv_nsec = t->tv_usec * (long)NS_PER_US };
}

static int host_setitimer(__itimer_which_t which, const struct itimerval *value, struct itimerval *old)
{
    static void *found;
    __typeof__(setitimer) *next = (__typeof__(setitimer) *)program_clock_next(&found, "setitimer");

    return next(which, value, old);
}

static void tell_itimer(struct itimerval *out)
{
    struct clock_timer_left left = clock_timer_left(CLOCK_TIMER_REAL);

    out->it_value = timeval_of(left.value_ns);
    out->it_interval = timeval_of(left.interval_ns);
    if (left.value_ns > 0 && left.value_ns < NS_PER_US)
        out->it_value.tv_usec = 1;
}

/* One that was set before virtual time began ends. */
static int set_itimer(const struct itimerval *value, struct itimerval *old)
{
    struct itimerval none = { 0 }, before = { 0 };
    struct itimerspec ns;

    if (value->it_value.tv_usec < 0 || value->it_value.tv_usec > 999999 || value->it_interval.tv_usec < 0 ||
        value->it_interval.tv_usec > 999999 || value->it_value.tv_sec < 0 || value->it_interval.tv_sec < 0) {
        errno = EINVAL;
        return -1;
    }
    host_setitimer(ITIMER_REAL, &none, &before);
    if (old && clock_timer_left(CLOCK_TIMER_REAL).value_ns > 0)
        tell_itimer(old);
    else if (old)
        *old = before;
    ns.it_value = timespec_of(&value->it_value);
    ns.it_interval = timespec_of(&value->it_interval);
    arm(CLOCK_TIMER_REAL, false, &ns);
    return 0;
}

CLOCK_EXPORT int setitimer(__itimer_which_t which, const struct itimerval *restrict value,
                           struct itimerval *restrict old)
{
    if (which != ITIMER_REAL || !value || !is_virtual(CLOCK_CALLER))
        return host_setitimer(which, value, old);
    return set_itimer(value, old);
}

CLOCK_EXPORT int getitimer(__itimer_which_t which, struct itimerval *value)
{
    static void *found;
    __typeof__(getitimer) *next = (__typeof__(getitimer) *)program_clock_next(&found, "getitimer");

    if (which != ITIMER_REAL || !value || !is_virtual(CLOCK_CALLER) || clock_timer_left(CLOCK_TIMER_REAL).value_ns == 0)
        return next(which, value);
    tell_itimer(value);
    return 0;
}

CLOCK_EXPORT unsigned alarm(unsigned seconds)
{
    static void *found;
    __typeof__(alarm) *next = (__typeof__(alarm) *)program_clock_next(&found, "alarm");
    struct itimerval value = { .it_value.tv_sec = (time_t)seconds }, old = { 0 };

    if (!is_virtual(CLOCK_CALLER))
        return next(seconds);
    set_itimer(&value, &old);
    /* Rounded as the kernel does: never 0 when there was one. */
    if (old.it_value.tv_sec == 0 && old.it_value.tv_usec > 0)
        return 1;
    return (unsigned)old.it_value.tv_sec + (old.it_value.tv_usec >= 500000);
}

CLOCK_EXPORT useconds_t ualarm(useconds_t value_us, useconds_t interval_us)
{
    static void *found;
    __typeof__(ualarm) *next = (__typeof__(ualarm) *)program_clock_next(&found, "ualarm");
    struct itimerval value = { .it_value = timeval_of(value_us * NS_PER_US),
                               .it_interval = timeval_of(interval_us * NS_PER_US) };
    struct itimerval old = { 0 };

    if (!is_virtual(CLOCK_CALLER))
        return next(value_us, interval_us);
    set_itimer(&value, &old);
    return (useconds_t)(old.it_value.tv_sec * 1000000 + old.it_value.tv_usec);
}

/* ---- timers of POSIX ---- */

/* Of a timer that we made: its number and a mark, where the original has a small number or an address. */
#define OUR_TIMER 0x5454000000000000ull

static timer_t id_of(int number)
{
    return (timer_t)(uintptr_t)(OUR_TIMER | (unsigned)number);
}

/* -1: not ours. */
static int number_of(timer_t id)
{
    uintptr_t bits = (uintptr_t)id;
    int number = (bits & ~(uintptr_t)UINT16_MAX) == OUR_TIMER ? (int)(bits & UINT16_MAX) : -1;

    return clock_timer_exists(number) ? number : -1;
}

static bool can_time(clockid_t clock)
{
    return clock == CLOCK_REALTIME || clock == CLOCK_MONOTONIC || clock == CLOCK_BOOTTIME || clock == CLOCK_TAI;
}

static bool is_known_event(const struct sigevent *event)
{
    switch (event->sigev_notify) {
    case SIGEV_NONE:
    case SIGEV_THREAD:
        return true;
    case SIGEV_SIGNAL:
    case SIGEV_THREAD_ID:
        return event->sigev_signo > 0 && event->sigev_signo < _NSIG;
    default:
        return false;
    }
}

CLOCK_EXPORT int timer_create(clockid_t clock, struct sigevent *restrict event, timer_t *restrict id_out)
{
    static void *found;
    __typeof__(timer_create) *next =
        (__typeof__(timer_create) *)program_clock_next_version(&found, "timer_create", "GLIBC_2.3.3");
    struct clock_timer_action action = { .event = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGALRM } };
    int number;

    if (!id_out || !can_time(clock) || !is_virtual(CLOCK_CALLER) || (event && !is_known_event(event)))
        return next(clock, event, id_out);
    if (event)
        action.event = *event;
    number = clock_timer_add(clock, &action);
    if (number < 0) {
        errno = EAGAIN;
        return -1;
    }
    *id_out = id_of(number);
    return 0;
}

CLOCK_EXPORT int timer_delete(timer_t id)
{
    static void *found;
    __typeof__(timer_delete) *next =
        (__typeof__(timer_delete) *)program_clock_next_version(&found, "timer_delete", "GLIBC_2.3.3");

    if (number_of(id) < 0)
        return next(id);
    clock_timer_remove(number_of(id));
    return 0;
}

CLOCK_EXPORT int timer_settime(timer_t id, int flags, const struct itimerspec *restrict value,
                               struct itimerspec *restrict old)
{
    static void *found;
    __typeof__(timer_settime) *next =
        (__typeof__(timer_settime) *)program_clock_next_version(&found, "timer_settime", "GLIBC_2.3.3");
    int number = number_of(id);

    if (number < 0)
        return next(id, flags, value, old);
    if (!value || !are_valid(value)) {
        errno = EINVAL;
        return -1;
    }
    if (old)
        tell_left(number, old);
    arm(number, (flags & TIMER_ABSTIME) != 0, value);
    return 0;
}

CLOCK_EXPORT int timer_gettime(timer_t id, struct itimerspec *value)
{
    static void *found;
    __typeof__(timer_gettime) *next =
        (__typeof__(timer_gettime) *)program_clock_next_version(&found, "timer_gettime", "GLIBC_2.3.3");

    if (number_of(id) < 0)
        return next(id, value);
    tell_left(number_of(id), value);
    return 0;
}

CLOCK_EXPORT int timer_getoverrun(timer_t id)
{
    static void *found;
    __typeof__(timer_getoverrun) *next =
        (__typeof__(timer_getoverrun) *)program_clock_next_version(&found, "timer_getoverrun", "GLIBC_2.3.3");

    return number_of(id) < 0 ? next(id) : clock_timer_overrun(number_of(id));
}

/* ---- descriptors ---- */

static int host_timerfd_settime(int fd, int flags, const struct itimerspec *value, struct itimerspec *old)
{
    static void *found;
    __typeof__(timerfd_settime) *next = (__typeof__(timerfd_settime) *)program_clock_next(&found, "timerfd_settime");

    return next(fd, flags, value, old);
}

/* The kernel tells which clock a descriptor has. */
static clockid_t clock_of_descriptor(int fd)
{
    char path[64], text[512];
    const char *at;
    ssize_t len;
    int clock = CLOCK_MONOTONIC;
    int info;

    snprintf(path, sizeof(path), "/proc/self/fdinfo/%d", fd);
    info = open(path, O_RDONLY | O_CLOEXEC);
    if (info < 0)
        return clock;
    len = read(info, text, sizeof(text) - 1);
    close(info);
    text[len > 0 ? len : 0] = '\0';
    at = strstr(text, "clockid:");
    if (at)
        sscanf(at, "clockid: %d", &clock);
    return clock;
}

/* The timer of the table that is the descriptor's. -1: there are too many. */
static int timer_for(int fd)
{
    const struct clock_timer_action action = { .is_descriptor = true, .fd = fd };
    int number = clock_timer_of_descriptor(fd);

    return number >= 0 ? number : clock_timer_add(clock_of_descriptor(fd), &action);
}

/* The original sees the arguments first, and keeps a timer that is not armed. */
CLOCK_EXPORT int timerfd_settime(int fd, int flags, const struct itimerspec *value, struct itimerspec *old)
{
    static const struct itimerspec none;
    int number = is_virtual(CLOCK_CALLER) ? clock_timer_of_descriptor(fd) : -1;
    int r;

    if (number >= 0 && old)
        tell_left(number, old);
    r = host_timerfd_settime(fd, flags, value, number >= 0 ? NULL : old);
    if (r < 0 || !is_virtual(CLOCK_CALLER))
        return r;
    number = timer_for(fd);
    if (number < 0)
        return r;
    host_timerfd_settime(fd, 0, &none, NULL);
    arm(number, (flags & TFD_TIMER_ABSTIME) != 0, value);
    return 0;
}

CLOCK_EXPORT int timerfd_gettime(int fd, struct itimerspec *value)
{
    static void *found;
    __typeof__(timerfd_gettime) *next = (__typeof__(timerfd_gettime) *)program_clock_next(&found, "timerfd_gettime");
    int number = is_virtual(CLOCK_CALLER) ? clock_timer_of_descriptor(fd) : -1;

    if (number < 0)
        return next(fd, value);
    tell_left(number, value);
    return 0;
}

/*
 * One that is read before its time waits for it first. Other descriptors cost a look at a word. False: a signal has
 * come.
 */
static bool wait_for_expiry(const void *caller, int fd)
{
    struct pollfd p = { .fd = fd, .events = POLLIN };

    return program_clock_next_timer_ns() == CLOCK_TIMER_OFF || !is_virtual(caller) ||
           clock_timer_of_descriptor(fd) < 0 || (fcntl(fd, F_GETFL) & O_NONBLOCK) != 0 || poll(&p, 1, -1) >= 0;
}

CLOCK_EXPORT ssize_t read(int fd, void *buffer, size_t n_bytes)
{
    static void *found;
    __typeof__(read) *next = (__typeof__(read) *)program_clock_next(&found, "read");

    return wait_for_expiry(CLOCK_CALLER, fd) ? next(fd, buffer, n_bytes) : -1;
}

/* What _FORTIFY_SOURCE calls. */
ssize_t __read_chk(int fd, void *buffer, size_t n_bytes, size_t room);

CLOCK_EXPORT ssize_t __read_chk(int fd, void *buffer, size_t n_bytes, size_t room)
{
    static void *found;
    __typeof__(__read_chk) *next = (__typeof__(__read_chk) *)program_clock_next(&found, "__read_chk");

    return wait_for_expiry(CLOCK_CALLER, fd) ? next(fd, buffer, n_bytes, room) : -1;
}
