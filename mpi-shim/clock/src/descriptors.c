/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Waits for descriptors (wait.c). Each look is the original call with a limit of 0: so it refuses what the original
 * refuses, and takes a signal mask as the original does. A call without descriptors is a sleep.
 */
#include <errno.h>
#include <poll.h>
#include <stddef.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/select.h>

#include "mpi-shim/clock/src/program_clock.h"
#include "mpi-shim/clock/src/wait.h"

#define NS_PER_MS 1000000ull

static uint64_t length_of_ms(int ms)
{
    return ms < 0 ? CLOCK_FOR_EVER : (uint64_t)ms * NS_PER_MS;
}

static uint64_t length_of(const struct timespec *t)
{
    return t ? clock_ns_of(t) : CLOCK_FOR_EVER;
}

/* A time-out of the original is a result of 0. */
static bool keep(struct clock_wait *w, int result)
{
    w->result = result;
    w->error = errno;
    return result != 0;
}

/* Signals of timers end these calls as other signals do. */
static int result_of(const struct clock_wait *w, enum clock_wait_end end)
{
    if (end == CLOCK_WAIT_ENDED)
        return w->result;
    if (end == CLOCK_WAIT_TIMED_OUT)
        return 0;
    errno = EINTR;
    return -1;
}

/* ---- poll ---- */

struct poll_wait {
    struct clock_wait wait; /* first */
    struct pollfd *fds;
    nfds_t n;
    const sigset_t *mask;
};

static int host_ppoll(struct pollfd *fds, nfds_t n, const struct timespec *limit, const sigset_t *mask)
{
    static void *found;
    __typeof__(ppoll) *next = (__typeof__(ppoll) *)program_clock_next(&found, "ppoll");

    return next(fds, n, limit, mask);
}

static bool call_ppoll(struct clock_wait *w, const struct timespec *limit)
{
    const struct poll_wait *p = (const struct poll_wait *)w;

    return keep(w, host_ppoll(p->fds, p->n, limit, p->mask));
}

static int poll_as(const void *caller, struct poll_wait *p, uint64_t length_ns)
{
    p->wait.call = call_ppoll;
    p->wait.length_ns = length_ns;
    p->wait.is_sleep = p->n == 0;
    return result_of(&p->wait, clock_wait(&p->wait, caller));
}

CLOCK_EXPORT int poll(struct pollfd *fds, nfds_t n, int timeout_ms)
{
    struct poll_wait p = { .fds = fds, .n = n };

    return poll_as(CLOCK_CALLER, &p, length_of_ms(timeout_ms));
}

CLOCK_EXPORT int ppoll(struct pollfd *fds, nfds_t n, const struct timespec *timeout, const sigset_t *mask)
{
    struct poll_wait p = { .fds = fds, .n = n, .mask = mask };

    if (timeout && !clock_is_valid(timeout))
        return host_ppoll(fds, n, timeout, mask);
    return poll_as(CLOCK_CALLER, &p, length_of(timeout));
}

/* What _FORTIFY_SOURCE calls. libc ends the program if the array is too short; so does its own call here. */
int __poll_chk(struct pollfd *fds, nfds_t n, int timeout_ms, size_t room);
int __ppoll_chk(struct pollfd *fds, nfds_t n, const struct timespec *timeout, const sigset_t *mask, size_t room);

CLOCK_EXPORT int __poll_chk(struct pollfd *fds, nfds_t n, int timeout_ms, size_t room)
{
    static void *found;
    struct poll_wait p = { .fds = fds, .n = n };

    if (room / sizeof(*fds) < n) {
        __typeof__(__poll_chk) *next = (__typeof__(__poll_chk) *)program_clock_next(&found, "__poll_chk");

        return next(fds, n, timeout_ms, room);
    }
    return poll_as(CLOCK_CALLER, &p, length_of_ms(timeout_ms));
}

CLOCK_EXPORT int __ppoll_chk(struct pollfd *fds, nfds_t n, const struct timespec *timeout, const sigset_t *mask,
                             size_t room)
{
    static void *found;
    struct poll_wait p = { .fds = fds, .n = n, .mask = mask };

    if (room / sizeof(*fds) < n || (timeout && !clock_is_valid(timeout))) {
        __typeof__(__ppoll_chk) *next = (__typeof__(__ppoll_chk) *)program_clock_next(&found, "__ppoll_chk");

        return next(fds, n, timeout, mask, room);
    }
    return poll_as(CLOCK_CALLER, &p, length_of(timeout));
}

/* ---- epoll ---- */

struct epoll_wait_call {
    struct clock_wait wait; /* first */
    int fd;
    int n;
    struct epoll_event *events;
    const sigset_t *mask;
};

/* Rounded up: epoll_pwait() counts ms, and not every kernel has epoll_pwait2(). */
static int ms_of(const struct timespec *limit)
{
    uint64_t ms = limit ? (clock_ns_of(limit) + NS_PER_MS - 1) / NS_PER_MS : 0;

    if (!limit)
        return -1;
    return ms > INT32_MAX ? INT32_MAX : (int)ms;
}

static bool call_epoll(struct clock_wait *w, const struct timespec *limit)
{
    static void *found;
    __typeof__(epoll_pwait) *next = (__typeof__(epoll_pwait) *)program_clock_next(&found, "epoll_pwait");
    const struct epoll_wait_call *e = (const struct epoll_wait_call *)w;

    return keep(w, next(e->fd, e->events, e->n, ms_of(limit), e->mask));
}

static int epoll_as(const void *caller, struct epoll_wait_call *e, uint64_t length_ns)
{
    e->wait.call = call_epoll;
    e->wait.length_ns = length_ns;
    return result_of(&e->wait, clock_wait(&e->wait, caller));
}

CLOCK_EXPORT int epoll_wait(int fd, struct epoll_event *events, int n, int timeout_ms)
{
    struct epoll_wait_call e = { .fd = fd, .n = n, .events = events };

    return epoll_as(CLOCK_CALLER, &e, length_of_ms(timeout_ms));
}

CLOCK_EXPORT int epoll_pwait(int fd, struct epoll_event *events, int n, int timeout_ms, const sigset_t *mask)
{
    struct epoll_wait_call e = { .fd = fd, .n = n, .events = events, .mask = mask };

    return epoll_as(CLOCK_CALLER, &e, length_of_ms(timeout_ms));
}

CLOCK_EXPORT int epoll_pwait2(int fd, struct epoll_event *events, int n, const struct timespec *timeout,
                              const sigset_t *mask)
{
    struct epoll_wait_call e = { .fd = fd, .n = n, .events = events, .mask = mask };

    if (timeout && !clock_is_valid(timeout)) {
        errno = EINVAL;
        return -1;
    }
    return epoll_as(CLOCK_CALLER, &e, length_of(timeout));
}

/* ---- select ---- */

/* A look empties the sets if nothing is there: it works on copies, which take their place if the call ends so. */
struct select_wait {
    struct clock_wait wait; /* first */
    int n;
    fd_set *sets[3];
    const sigset_t *mask;
};

static size_t bytes_of_sets(int n)
{
    return n > 0 ? (size_t)(n + 63) / 64 * 8 : 0;
}

static int host_pselect(int n, fd_set *const sets[3], const struct timespec *limit, const sigset_t *mask)
{
    static void *found;
    __typeof__(pselect) *next = (__typeof__(pselect) *)program_clock_next(&found, "pselect");

    return next(n, sets[0], sets[1], sets[2], limit, mask);
}

static bool call_select(struct clock_wait *w, const struct timespec *limit)
{
    const struct select_wait *s = (const struct select_wait *)w;
    size_t bytes = bytes_of_sets(s->n);
    fd_set copies[3];
    fd_set *in_use[3] = { NULL };

    for (int i = 0; i < 3; i++) {
        if (!s->sets[i])
            continue;
        memcpy(&copies[i], s->sets[i], bytes);
        in_use[i] = &copies[i];
    }
    if (!keep(w, host_pselect(s->n, in_use, limit, s->mask)))
        return false;
    for (int i = 0; w->result > 0 && i < 3; i++) {
        if (s->sets[i])
            memcpy(s->sets[i], &copies[i], bytes);
    }
    return true;
}

/* The copies have room for a set of the usual size; a larger one waits as the host does. */
static int select_as(const void *caller, struct select_wait *s, const struct timespec *limit)
{
    enum clock_wait_end end;

    if (s->n > FD_SETSIZE || (limit && !clock_is_valid(limit)))
        return host_pselect(s->n, s->sets, limit, s->mask);
    s->wait.call = call_select;
    s->wait.length_ns = length_of(limit);
    s->wait.is_sleep = s->n == 0 || (!s->sets[0] && !s->sets[1] && !s->sets[2]);
    end = clock_wait(&s->wait, caller);
    for (int i = 0; end == CLOCK_WAIT_TIMED_OUT && i < 3; i++) {
        if (s->sets[i])
            memset(s->sets[i], 0, bytes_of_sets(s->n));
    }
    return result_of(&s->wait, end);
}

CLOCK_EXPORT int pselect(int n, fd_set *restrict in, fd_set *restrict out, fd_set *restrict rest,
                         const struct timespec *restrict timeout, const sigset_t *restrict mask)
{
    struct select_wait s = { .n = n, .sets = { in, out, rest }, .mask = mask };

    return select_as(CLOCK_CALLER, &s, timeout);
}

/* As on Linux, the time-out becomes what is left of it. */
CLOCK_EXPORT int select(int n, fd_set *restrict in, fd_set *restrict out, fd_set *restrict rest,
                        struct timeval *restrict timeout)
{
    struct select_wait s = { .n = n, .sets = { in, out, rest } };
    struct timespec limit, left;
    uint64_t began_ns, length_ns, passed_ns;
    int r;

    if (!timeout)
        return select_as(CLOCK_CALLER, &s, NULL);
    if (timeout->tv_sec < 0 || timeout->tv_usec < 0) {
        errno = EINVAL;
        return -1;
    }
    limit.tv_sec = timeout->tv_sec + timeout->tv_usec / 1000000;
    limit.tv_nsec = timeout->tv_usec % 1000000 * 1000;
    began_ns = program_clock_now_ns(CLOCK_CALLER);
    r = select_as(CLOCK_CALLER, &s, &limit);
    passed_ns = program_clock_now_ns(CLOCK_CALLER) - began_ns;
    length_ns = clock_ns_of(&limit);
    left = clock_timespec_of(passed_ns < length_ns ? length_ns - passed_ns : 0);
    *timeout = (struct timeval){ .tv_sec = left.tv_sec, .tv_usec = left.tv_nsec / 1000 };
    return r;
}
