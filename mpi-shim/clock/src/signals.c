/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Waits for signals (wait.c). Signals of timers in virtual time come inside them.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <unistd.h>

#include "mpi-shim/clock/src/program_clock.h"
#include "mpi-shim/clock/src/wait.h"

struct signal_wait {
    struct clock_wait wait; /* first */
    const sigset_t *set;    /* pause() and sigsuspend(): the mask, or NULL */
    siginfo_t *info;
};

static bool call_suspend(struct clock_wait *w, const struct timespec *limit)
{
    static void *found;
    __typeof__(ppoll) *next = (__typeof__(ppoll) *)program_clock_next(&found, "ppoll");
    const struct signal_wait *s = (const struct signal_wait *)w;

    w->result = next(NULL, 0, limit, s->set);
    w->error = errno;
    return w->result != 0;
}

/* Always -1 and EINTR. */
static int suspend(const void *caller, const sigset_t *mask)
{
    struct signal_wait s = { .wait = { .call = call_suspend, .length_ns = CLOCK_FOR_EVER }, .set = mask };

    clock_wait(&s.wait, caller);
    errno = EINTR;
    return -1;
}

CLOCK_EXPORT int pause(void)
{
    return suspend(CLOCK_CALLER, NULL);
}

CLOCK_EXPORT int sigsuspend(const sigset_t *mask)
{
    return suspend(CLOCK_CALLER, mask);
}

static int host_sigtimedwait(const sigset_t *set, siginfo_t *info, const struct timespec *limit)
{
    static void *found;
    __typeof__(sigtimedwait) *next = (__typeof__(sigtimedwait) *)program_clock_next(&found, "sigtimedwait");

    return next(set, info, limit);
}

static bool call_sigwait(struct clock_wait *w, const struct timespec *limit)
{
    const struct signal_wait *s = (const struct signal_wait *)w;

    w->result = host_sigtimedwait(s->set, s->info, limit);
    w->error = errno;
    return w->result >= 0 || w->error != EAGAIN;
}

static int wait_for_signal(const void *caller, const sigset_t *set, siginfo_t *info, uint64_t length_ns)
{
    struct signal_wait s = { .wait = { .call = call_sigwait, .length_ns = length_ns }, .set = set, .info = info };

    switch (clock_wait(&s.wait, caller)) {
    case CLOCK_WAIT_ENDED:
        return s.wait.result;
    case CLOCK_WAIT_TIMED_OUT:
        errno = EAGAIN;
        return -1;
    default:
        errno = EINTR;
        return -1;
    }
}

CLOCK_EXPORT int sigtimedwait(const sigset_t *restrict set, siginfo_t *restrict info,
                              const struct timespec *restrict timeout)
{
    if (timeout && !clock_is_valid(timeout))
        return host_sigtimedwait(set, info, timeout);
    return wait_for_signal(CLOCK_CALLER, set, info, timeout ? clock_ns_of(timeout) : CLOCK_FOR_EVER);
}

CLOCK_EXPORT int sigwaitinfo(const sigset_t *restrict set, siginfo_t *restrict info)
{
    return wait_for_signal(CLOCK_CALLER, set, info, CLOCK_FOR_EVER);
}

CLOCK_EXPORT int sigwait(const sigset_t *restrict set, int *restrict number_out)
{
    int number;

    do {
        number = wait_for_signal(CLOCK_CALLER, set, NULL, CLOCK_FOR_EVER);
    } while (number < 0 && errno == EINTR);
    if (number < 0)
        return errno;
    *number_out = number;
    return 0;
}
