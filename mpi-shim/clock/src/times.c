/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Questions for the time. Threads in virtual time get it, others the host's. A NULL and an unknown clock are answered
 * as the host answers them. A question costs as much as an empty poll, so a program that asks until some time comes,
 * ends.
 *
 * Processor time is virtual time, too: a core of the modelled machine has computed, or polled, all the time. It goes on
 * from the host's.
 */
#include <stddef.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/timeb.h>
#include <sys/times.h>
#include <unistd.h>

#include "mpi-shim/clock/src/program_clock.h"

#define NS_PER_S 1000000000ull

static bool is_shown(const void *caller, clockid_t clock)
{
    switch (clock) {
    case CLOCK_REALTIME:
    case CLOCK_REALTIME_COARSE:
    case CLOCK_MONOTONIC:
    case CLOCK_MONOTONIC_COARSE:
    case CLOCK_MONOTONIC_RAW:
    case CLOCK_BOOTTIME:
    case CLOCK_TAI:
    case CLOCK_PROCESS_CPUTIME_ID:
    case CLOCK_THREAD_CPUTIME_ID:
        return program_clock_kind(caller) >= PROGRAM_CLOCK_READ;
    default:
        return false;
    }
}

static uint64_t now_ns(clockid_t clock)
{
    return program_clock_base_ns(clock) + program_clock_elapsed_ns();
}

static int get(const void *caller, clockid_t clock, struct timespec *now)
{
    uint64_t ns;

    if (!now || !is_shown(caller, clock))
        return program_clock_host(clock, now);
    ns = now_ns(clock);
    program_clock_charge();
    *now = (struct timespec){ .tv_sec = (time_t)(ns / NS_PER_S), .tv_nsec = (long)(ns % NS_PER_S) };
    return 0;
}

CLOCK_EXPORT int clock_gettime(clockid_t clock, struct timespec *now)
{
    return get(CLOCK_CALLER, clock, now);
}

CLOCK_EXPORT int gettimeofday(struct timeval *restrict now, void *restrict zone)
{
    struct timespec t;

    if (zone)
        *(struct timezone *)zone = (struct timezone){ 0 };
    if (!now)
        return 0;
    if (get(CLOCK_CALLER, CLOCK_REALTIME, &t) < 0)
        return -1;
    *now = (struct timeval){ .tv_sec = t.tv_sec, .tv_usec = t.tv_nsec / 1000 };
    return 0;
}

CLOCK_EXPORT time_t time(time_t *now)
{
    struct timespec t = { 0 };

    get(CLOCK_CALLER, CLOCK_REALTIME, &t);
    if (now)
        *now = t.tv_sec;
    return t.tv_sec;
}

CLOCK_EXPORT int timespec_get(struct timespec *now, int base)
{
    return base == TIME_UTC && get(CLOCK_CALLER, CLOCK_REALTIME, now) == 0 ? base : 0;
}

CLOCK_EXPORT int ftime(struct timeb *now)
{
    struct timespec t = { 0 };

    get(CLOCK_CALLER, CLOCK_REALTIME, &t);
    *now = (struct timeb){ .time = t.tv_sec, .millitm = (unsigned short)(t.tv_nsec / 1000000) };
    return 0;
}

/* ---- processor time ---- */

CLOCK_EXPORT clock_t clock(void)
{
    struct timespec t;

    if (get(CLOCK_CALLER, CLOCK_PROCESS_CPUTIME_ID, &t) < 0)
        return (clock_t)-1;
    return t.tv_sec * CLOCKS_PER_SEC + t.tv_nsec / (long)(NS_PER_S / CLOCKS_PER_SEC);
}

/* The children's are the host's. */
CLOCK_EXPORT clock_t times(struct tms *buffer)
{
    static void *found;
    __typeof__(times) *next = (__typeof__(times) *)program_clock_next(&found, "times");
    uint64_t tick_ns = NS_PER_S / (uint64_t)sysconf(_SC_CLK_TCK);
    clock_t now = next(buffer);

    if (now == (clock_t)-1 || program_clock_kind(CLOCK_CALLER) < PROGRAM_CLOCK_READ)
        return now;
    if (buffer) {
        buffer->tms_utime = (clock_t)(now_ns(CLOCK_PROCESS_CPUTIME_ID) / tick_ns);
        buffer->tms_stime = 0;
    }
    now = (clock_t)(now_ns(CLOCK_MONOTONIC) / tick_ns);
    program_clock_charge();
    return now;
}

CLOCK_EXPORT int getrusage(__rusage_who_t who, struct rusage *usage)
{
    static void *found;
    __typeof__(getrusage) *next = (__typeof__(getrusage) *)program_clock_next(&found, "getrusage");
    int r = next(who, usage);
    uint64_t ns;

    if (r < 0 || who == RUSAGE_CHILDREN || program_clock_kind(CLOCK_CALLER) < PROGRAM_CLOCK_READ)
        return r;
    ns = now_ns(CLOCK_PROCESS_CPUTIME_ID);
    usage->ru_utime = (struct timeval){ .tv_sec = (time_t)(ns / NS_PER_S), .tv_usec = (long)(ns % NS_PER_S) / 1000 };
    usage->ru_stime = (struct timeval){ 0 };
    program_clock_charge();
    return r;
}
