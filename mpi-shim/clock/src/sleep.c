/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sleeps. In virtual time they last exactly as long as asked, and the host's time does not pass. The signal of a timer
 * in virtual time ends them at its time. Another one is handled when it comes, and does not end them: there is no time
 * at which it would have come.
 */
#include <errno.h>
#include <stddef.h>
#include <threads.h>
#include <unistd.h>

#include "mpi-shim/clock/src/program_clock.h"
#include "mpi-shim/clock/src/wait.h"

#define NS_PER_S 1000000000ull

static int host_sleep(clockid_t clock, int flags, const struct timespec *want, struct timespec *left)
{
    static void *found;
    int (*next)(clockid_t, int, const struct timespec *, struct timespec *) =
        (int (*)(clockid_t, int, const struct timespec *, struct timespec *))program_clock_next(&found,
                                                                                                "clock_nanosleep");

    return next ? next(clock, flags, want, left) : ENOSYS;
}

/* Of the runtime: it holds nobody up. */
static int sleep_away(clockid_t clock, int flags, const struct timespec *want, struct timespec *left)
{
    int r;

    program_clock_away();
    r = host_sleep(clock, flags, want, left);
    program_clock_return();
    return r;
}

/* In virtual time, to that time. 0 or EINTR. */
static int sleep_until(uint64_t until_ns, struct timespec *left)
{
    enum program_clock_slept slept = program_clock_sleep_until(until_ns);
    uint64_t now_ns = program_clock_elapsed_ns();

    if (left)
        *left = clock_timespec_of(slept == PROGRAM_CLOCK_INTERRUPTED && until_ns > now_ns ? until_ns - now_ns : 0);
    return slept == PROGRAM_CLOCK_INTERRUPTED ? EINTR : 0;
}

static bool can_sleep(clockid_t clock)
{
    return clock == CLOCK_REALTIME || clock == CLOCK_MONOTONIC || clock == CLOCK_BOOTTIME || clock == CLOCK_TAI;
}

static int sleep_as(const void *caller, clockid_t clock, int flags, const struct timespec *want, struct timespec *left)
{
    enum program_clock_kind kind = program_clock_kind(caller);
    uint64_t base_ns = program_clock_base_ns(clock);

    if (kind == PROGRAM_CLOCK_RUNTIME)
        return sleep_away(clock, flags, want, left);
    if (!want || !clock_is_valid(want) || kind != PROGRAM_CLOCK_VIRTUAL || !can_sleep(clock))
        return host_sleep(clock, flags, want, left);
    if (flags & TIMER_ABSTIME)
        return sleep_until(clock_ns_of(want) > base_ns ? clock_ns_of(want) - base_ns : 0, NULL);
    return sleep_until(clock_after(program_clock_elapsed_ns(), clock_ns_of(want)), left);
}

CLOCK_EXPORT int clock_nanosleep(clockid_t clock, int flags, const struct timespec *want, struct timespec *left)
{
    return sleep_as(CLOCK_CALLER, clock, flags, want, left);
}

static int nanosleep_as(const void *caller, const struct timespec *want, struct timespec *left)
{
    int r = sleep_as(caller, CLOCK_REALTIME, 0, want, left);

    if (r == 0)
        return 0;
    errno = r;
    return -1;
}

CLOCK_EXPORT int nanosleep(const struct timespec *want, struct timespec *left)
{
    return nanosleep_as(CLOCK_CALLER, want, left);
}

CLOCK_EXPORT int usleep(useconds_t us)
{
    const struct timespec want = { .tv_sec = us / 1000000, .tv_nsec = (long)(us % 1000000) * 1000 };

    return nanosleep_as(CLOCK_CALLER, &want, NULL);
}

CLOCK_EXPORT unsigned int sleep(unsigned int seconds)
{
    struct timespec left = { 0 };

    if (nanosleep_as(CLOCK_CALLER, &(struct timespec){ .tv_sec = seconds }, &left) == 0)
        return 0;
    return (unsigned int)left.tv_sec + (left.tv_nsec >= (long)NS_PER_S / 2);
}

CLOCK_EXPORT int thrd_sleep(const struct timespec *want, struct timespec *left)
{
    switch (sleep_as(CLOCK_CALLER, CLOCK_REALTIME, 0, want, left)) {
    case 0:
        return 0;
    case EINTR:
        return -1;
    default:
        return -2;
    }
}
