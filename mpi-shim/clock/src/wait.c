/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Waits with a time-out.
 *
 * What they wait for comes from threads and ranks in virtual time, or from outside: nobody can tell. So a wait first
 * looks without waiting. Then it looks again after each step of virtual time, a quarter of what has passed, for the
 * first 10 ms: what another rank does meanwhile is found at a time that does not depend on the host. Then it waits in
 * the host's time for as long as asked, because what comes from outside has no virtual time and needs its chance. A
 * longer wait holds nobody up then, and behind it the thread is at the time that the others have reached, at its
 * time-out at least. So a time-out never takes longer than on the host.
 *
 * Where a look would lose something (a condition variable's signal), and where there is no time-out, the thread waits
 * in the host's time alone and holds nobody up. A wait for nothing is a sleep, and takes no time of the host.
 *
 * Timers of the program (timers.c) end waits at their time.
 */
#include "mpi-shim/clock/src/wait.h"

#include <errno.h>

#include "mpi-shim/clock/src/program_clock.h"
#include "mpi-shim/clock/src/timers.h"

#define NS_PER_S   1000000000ull
#define LOOK_NS    10000000ull /* how long a wait looks in steps */
#define LEAST_STEP 1000ull

uint64_t clock_ns_of(const struct timespec *t)
{
    return (uint64_t)t->tv_sec > UINT64_MAX / NS_PER_S / 2 ? CLOCK_FOR_EVER :
                                                             (uint64_t)t->tv_sec * NS_PER_S + (uint64_t)t->tv_nsec;
}

struct timespec clock_timespec_of(uint64_t ns)
{
    return (struct timespec){ .tv_sec = (time_t)(ns / NS_PER_S), .tv_nsec = (long)(ns % NS_PER_S) };
}

uint64_t clock_after(uint64_t now_ns, uint64_t ns)
{
    return ns < CLOCK_FOR_EVER - now_ns ? now_ns + ns : CLOCK_FOR_EVER;
}

bool clock_is_valid(const struct timespec *t)
{
    return t->tv_sec >= 0 && t->tv_nsec >= 0 && t->tv_nsec < (long)NS_PER_S;
}

static uint64_t host_ns(void)
{
    struct timespec now = { 0 };

    program_clock_host(CLOCK_MONOTONIC, &now);
    return clock_ns_of(&now);
}

static bool call_for(struct clock_wait *w, uint64_t ns)
{
    const struct timespec limit = clock_timespec_of(ns);

    return w->call(w, ns == CLOCK_FOR_EVER ? NULL : &limit);
}

static bool call_away(struct clock_wait *w, uint64_t ns)
{
    bool has_ended;

    program_clock_away();
    has_ended = call_for(w, ns);
    program_clock_return();
    return has_ended;
}

/* A wait up to until_ns, whose length on the host is rest_ns. */
struct stretch {
    uint64_t began_ns;
    uint64_t until_ns;
    uint64_t host_began_ns;
};

static uint64_t earlier(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* Looks in steps. ENDED, INTERRUPTED, or TIMED_OUT: nothing was there. */
static enum clock_wait_end look_in_steps(struct clock_wait *w, const struct stretch *s)
{
    uint64_t end_ns = earlier(s->until_ns, s->began_ns + LOOK_NS);
    uint64_t now_ns = program_clock_elapsed_ns();
    uint64_t step_ns;

    while (now_ns < end_ns) {
        step_ns = (now_ns - s->began_ns) / 4 > LEAST_STEP ? (now_ns - s->began_ns) / 4 : LEAST_STEP;
        if (program_clock_sleep_until(earlier(end_ns, now_ns + step_ns)) == PROGRAM_CLOCK_INTERRUPTED)
            return CLOCK_WAIT_INTERRUPTED;
        if (w->call(w, &(struct timespec){ 0 }))
            return CLOCK_WAIT_ENDED;
        now_ns = program_clock_elapsed_ns();
        if (program_clock_kind(NULL) != PROGRAM_CLOCK_VIRTUAL)
            break; /* virtual time has ended */
    }
    return CLOCK_WAIT_TIMED_OUT;
}

/* What is left of its length on the host. */
static bool wait_on_host(struct clock_wait *w, const struct stretch *s)
{
    uint64_t length_ns = s->until_ns - s->began_ns;
    uint64_t passed_ns = host_ns() - s->host_began_ns;

    if (passed_ns >= length_ns)
        return false;
    return length_ns <= LOOK_NS && !w->cannot_look ? call_for(w, length_ns - passed_ns) :
                                                     call_away(w, length_ns - passed_ns);
}

static enum clock_wait_end wait_until(struct clock_wait *w, uint64_t until_ns)
{
    struct stretch s = { .began_ns = program_clock_elapsed_ns(), .until_ns = until_ns, .host_began_ns = host_ns() };
    enum clock_wait_end end = CLOCK_WAIT_TIMED_OUT;

    if (until_ns <= s.began_ns)
        return CLOCK_WAIT_TIMED_OUT;
    if (!w->is_sleep && !w->cannot_look)
        end = look_in_steps(w, &s);
    if (end != CLOCK_WAIT_TIMED_OUT)
        return end;
    if (!w->is_sleep && wait_on_host(w, &s))
        return CLOCK_WAIT_ENDED;
    return program_clock_sleep_until(until_ns) == PROGRAM_CLOCK_INTERRUPTED ? CLOCK_WAIT_INTERRUPTED :
                                                                              CLOCK_WAIT_TIMED_OUT;
}

/* It has ended before, or lasts up to a timer or to its end. */
static enum clock_wait_end wait_virtually(struct clock_wait *w)
{
    uint64_t began_ns = program_clock_elapsed_ns();
    uint64_t until_ns = clock_after(began_ns, w->length_ns);
    enum clock_wait_end end;
    uint64_t limit_ns;

    for (;;) {
        if (!w->cannot_look && w->call(w, &(struct timespec){ 0 }))
            return CLOCK_WAIT_ENDED;
        if (program_clock_kind(NULL) != PROGRAM_CLOCK_VIRTUAL)
            return call_for(w, w->length_ns) ? CLOCK_WAIT_ENDED : CLOCK_WAIT_TIMED_OUT;
        if (program_clock_elapsed_ns() >= until_ns)
            return CLOCK_WAIT_TIMED_OUT;
        limit_ns = earlier(until_ns, program_clock_next_timer_ns());
        if (limit_ns == CLOCK_FOR_EVER)
            return call_away(w, CLOCK_FOR_EVER) ? CLOCK_WAIT_ENDED : CLOCK_WAIT_TIMED_OUT;
        end = wait_until(w, limit_ns);
        if (end != CLOCK_WAIT_TIMED_OUT)
            return end;
    }
}

static enum clock_wait_end wait_as(struct clock_wait *w, const void *caller)
{
    switch (program_clock_kind(caller)) {
    case PROGRAM_CLOCK_RUNTIME:
        return (w->length_ns == 0 ? call_for(w, 0) : call_away(w, w->length_ns)) ? CLOCK_WAIT_ENDED :
                                                                                   CLOCK_WAIT_TIMED_OUT;
    case PROGRAM_CLOCK_VIRTUAL:
        if (w->length_ns > 0)
            return wait_virtually(w);
        if (w->call(w, &(struct timespec){ 0 }))
            return CLOCK_WAIT_ENDED;
        program_clock_charge();
        return CLOCK_WAIT_TIMED_OUT;
    default:
        return call_for(w, w->length_ns) ? CLOCK_WAIT_ENDED : CLOCK_WAIT_TIMED_OUT;
    }
}

enum clock_wait_end clock_wait(struct clock_wait *w, const void *caller)
{
    int error = errno;
    enum clock_wait_end end = wait_as(w, caller);

    errno = end == CLOCK_WAIT_ENDED ? w->error : error;
    return end;
}
