/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Waits for other threads and for messages, until a time of a clock (wait.c).
 *
 * The program has computed the time from what its clock shows. The original gets one that is as far away on the host's
 * clock. A time that is no time, and one of a thread that has the host's clock, is the original's as it is.
 *
 * A condition variable's clock is in its own words (glibc since 2.25: bit 1 of __wrefs). A wait for it may end early
 * when a timer of the program has its time, as such waits may.
 */
#include <errno.h>
#include <mqueue.h>
#include <pthread.h>
#include <semaphore.h>
#include <stddef.h>
#include <threads.h>

#include "mpi-shim/clock/src/program_clock.h"
#include "mpi-shim/clock/src/wait.h"

#define COND_IS_MONOTONIC 2u

enum thread_call {
    COND_TIMED,
    COND_CLOCK,
    CND,
    MUTEX_TIMED,
    MUTEX_CLOCK,
    MTX,
    READ_TIMED,
    READ_CLOCK,
    WRITE_TIMED,
    WRITE_CLOCK,
    SEM_TIMED,
    SEM_CLOCK,
    RECEIVE,
    SEND,
    N_CALLS
};

/* dlsym() alone may find the condition variables of old programs. */
static const struct {
    const char *name;
    const char *version;
} originals[N_CALLS] = {
    [COND_TIMED] = { "pthread_cond_timedwait", "GLIBC_2.3.2" },
    [COND_CLOCK] = { "pthread_cond_clockwait", NULL },
    [CND] = { "cnd_timedwait", NULL },
    [MUTEX_TIMED] = { "pthread_mutex_timedlock", NULL },
    [MUTEX_CLOCK] = { "pthread_mutex_clocklock", NULL },
    [MTX] = { "mtx_timedlock", NULL },
    [READ_TIMED] = { "pthread_rwlock_timedrdlock", NULL },
    [READ_CLOCK] = { "pthread_rwlock_clockrdlock", NULL },
    [WRITE_TIMED] = { "pthread_rwlock_timedwrlock", NULL },
    [WRITE_CLOCK] = { "pthread_rwlock_clockwrlock", NULL },
    [SEM_TIMED] = { "sem_timedwait", NULL },
    [SEM_CLOCK] = { "sem_clockwait", NULL },
    [RECEIVE] = { "mq_timedreceive", NULL },
    [SEND] = { "mq_timedsend", NULL },
};

/* One call. Each original takes some of this. */
struct thread_wait {
    struct clock_wait wait; /* first */
    enum thread_call what;
    clockid_t clock;
    void *object;
    void *mutex; /* of a condition variable */
    mqd_t queue;
    char *text;
    const char *text_to_send;
    size_t length_bytes;
    unsigned *priority_out;
    unsigned priority;
    ssize_t received;
};

/* ---- the originals ---- */

static int call_lock(const struct thread_wait *t, void *next, const struct timespec *until)
{
    switch (t->what) {
    case COND_TIMED:
        return ((__typeof__(pthread_cond_timedwait) *)next)(t->object, t->mutex, until);
    case COND_CLOCK:
        return ((__typeof__(pthread_cond_clockwait) *)next)(t->object, t->mutex, t->clock, until);
    case CND:
        return ((__typeof__(cnd_timedwait) *)next)(t->object, t->mutex, until);
    case MUTEX_TIMED:
        return ((__typeof__(pthread_mutex_timedlock) *)next)(t->object, until);
    case MUTEX_CLOCK:
        return ((__typeof__(pthread_mutex_clocklock) *)next)(t->object, t->clock, until);
    case MTX:
        return ((__typeof__(mtx_timedlock) *)next)(t->object, until);
    case READ_TIMED:
        return ((__typeof__(pthread_rwlock_timedrdlock) *)next)(t->object, until);
    case READ_CLOCK:
        return ((__typeof__(pthread_rwlock_clockrdlock) *)next)(t->object, t->clock, until);
    case WRITE_TIMED:
        return ((__typeof__(pthread_rwlock_timedwrlock) *)next)(t->object, until);
    default:
        return ((__typeof__(pthread_rwlock_clockwrlock) *)next)(t->object, t->clock, until);
    }
}

static int call_original(struct thread_wait *t, const struct timespec *until)
{
    static void *found[N_CALLS];
    void *next = program_clock_next_version(&found[t->what], originals[t->what].name, originals[t->what].version);

    switch (t->what) {
    case SEM_TIMED:
        return ((__typeof__(sem_timedwait) *)next)(t->object, until);
    case SEM_CLOCK:
        return ((__typeof__(sem_clockwait) *)next)(t->object, t->clock, until);
    case RECEIVE:
        t->received = ((__typeof__(mq_timedreceive) *)next)(t->queue, t->text, t->length_bytes, t->priority_out, until);
        return t->received < 0 ? -1 : 0;
    case SEND:
        return ((__typeof__(mq_timedsend) *)next)(t->queue, t->text_to_send, t->length_bytes, t->priority, until);
    default:
        return call_lock(t, next, until);
    }
}

/* A look that does not wait, as the calls with a time end when theirs is over. */
static int look(struct thread_wait *t)
{
    static const struct timespec long_ago = { 0 };
    int r;

    switch (t->what) {
    case MUTEX_TIMED:
    case MUTEX_CLOCK:
        r = pthread_mutex_trylock(t->object);
        return r == EBUSY ? ETIMEDOUT : r;
    case READ_TIMED:
    case READ_CLOCK:
        r = pthread_rwlock_tryrdlock(t->object);
        return r == EBUSY ? ETIMEDOUT : r;
    case WRITE_TIMED:
    case WRITE_CLOCK:
        r = pthread_rwlock_trywrlock(t->object);
        return r == EBUSY ? ETIMEDOUT : r;
    case MTX:
        r = mtx_trylock(t->object);
        return r == thrd_busy ? thrd_timedout : r;
    default:
        return call_original(t, &long_ago);
    }
}

static bool has_errno(enum thread_call what)
{
    return what >= SEM_TIMED;
}

static bool is_c11(enum thread_call what)
{
    return what == CND || what == MTX;
}

static bool is_over(const struct thread_wait *t, int result)
{
    if (has_errno(t->what))
        return result < 0 && errno == ETIMEDOUT;
    return result == (is_c11(t->what) ? (int)thrd_timedout : ETIMEDOUT);
}

static bool call_thread(struct clock_wait *w, const struct timespec *limit)
{
    struct thread_wait *t = (struct thread_wait *)w;
    struct timespec until = { .tv_sec = INT32_MAX };
    uint64_t ns;

    if (limit && clock_ns_of(limit) == 0) {
        w->result = look(t);
    } else {
        program_clock_host(t->clock, &until);
        ns = clock_ns_of(&until);
        if (limit && clock_ns_of(limit) < INT64_MAX - ns)
            until = clock_timespec_of(ns + clock_ns_of(limit));
        else
            until.tv_sec = INT64_MAX / 2;
        w->result = call_original(t, &until);
    }
    w->error = errno;
    return !is_over(t, w->result);
}

/* ---- common ---- */

static int timed_out(const struct thread_wait *t)
{
    if (is_c11(t->what))
        return thrd_timedout;
    if (!has_errno(t->what))
        return ETIMEDOUT;
    errno = ETIMEDOUT;
    return -1;
}

static bool is_cond(enum thread_call what)
{
    return what <= CND;
}

static bool may_be_interrupted(struct thread_wait *t, int *result_out)
{
    if (!is_cond(t->what) && !has_errno(t->what))
        return false;
    *result_out = is_cond(t->what) ? 0 : -1;
    if (has_errno(t->what))
        errno = EINTR;
    return true;
}

/* In virtual time. */
static int wait_until(const void *caller, struct thread_wait *t, uint64_t until_ns)
{
    int result = 0;

    for (;;) {
        uint64_t now_ns = program_clock_base_ns(t->clock) + program_clock_elapsed_ns();

        t->wait.length_ns = until_ns > now_ns ? until_ns - now_ns : 0;
        switch (clock_wait(&t->wait, caller)) {
        case CLOCK_WAIT_ENDED:
            return t->wait.result;
        case CLOCK_WAIT_TIMED_OUT:
            return timed_out(t);
        default:
            if (may_be_interrupted(t, &result))
                return result;
        }
    }
}

static bool is_shown(clockid_t clock)
{
    return clock == CLOCK_REALTIME || clock == CLOCK_MONOTONIC;
}

static int wait_as(const void *caller, struct thread_wait *t, const struct timespec *deadline)
{
    enum program_clock_kind kind = program_clock_kind(caller);
    int result;

    t->wait.call = call_thread;
    t->wait.cannot_look = is_cond(t->what);
    if (kind == PROGRAM_CLOCK_VIRTUAL && deadline && clock_is_valid(deadline) && is_shown(t->clock))
        return wait_until(caller, t, clock_ns_of(deadline));
    if (kind != PROGRAM_CLOCK_RUNTIME)
        return call_original(t, deadline);
    program_clock_away();
    result = call_original(t, deadline);
    program_clock_return();
    return result;
}

/* ---- calls ---- */

static clockid_t clock_of(const pthread_cond_t *cond)
{
    return cond->__data.__wrefs & COND_IS_MONOTONIC ? CLOCK_MONOTONIC : CLOCK_REALTIME;
}

CLOCK_EXPORT int pthread_cond_timedwait(pthread_cond_t *restrict cond, pthread_mutex_t *restrict mutex,
                                        const struct timespec *restrict deadline)
{
    struct thread_wait t = { .what = COND_TIMED, .clock = clock_of(cond), .object = cond, .mutex = mutex };

    return wait_as(CLOCK_CALLER, &t, deadline);
}

CLOCK_EXPORT int pthread_cond_clockwait(pthread_cond_t *restrict cond, pthread_mutex_t *restrict mutex, clockid_t clock,
                                        const struct timespec *restrict deadline)
{
    struct thread_wait t = { .what = COND_CLOCK, .clock = clock, .object = cond, .mutex = mutex };

    return wait_as(CLOCK_CALLER, &t, deadline);
}

CLOCK_EXPORT int cnd_timedwait(cnd_t *restrict cond, mtx_t *restrict mutex, const struct timespec *restrict deadline)
{
    struct thread_wait t = { .what = CND, .clock = CLOCK_REALTIME, .object = cond, .mutex = mutex };

    return wait_as(CLOCK_CALLER, &t, deadline);
}

CLOCK_EXPORT int pthread_mutex_timedlock(pthread_mutex_t *restrict mutex, const struct timespec *restrict deadline)
{
    struct thread_wait t = { .what = MUTEX_TIMED, .clock = CLOCK_REALTIME, .object = mutex };

    return wait_as(CLOCK_CALLER, &t, deadline);
}

CLOCK_EXPORT int pthread_mutex_clocklock(pthread_mutex_t *restrict mutex, clockid_t clock,
                                         const struct timespec *restrict deadline)
{
    struct thread_wait t = { .what = MUTEX_CLOCK, .clock = clock, .object = mutex };

    return wait_as(CLOCK_CALLER, &t, deadline);
}

CLOCK_EXPORT int mtx_timedlock(mtx_t *restrict mutex, const struct timespec *restrict deadline)
{
    struct thread_wait t = { .what = MTX, .clock = CLOCK_REALTIME, .object = mutex };

    return wait_as(CLOCK_CALLER, &t, deadline);
}

CLOCK_EXPORT int pthread_rwlock_timedrdlock(pthread_rwlock_t *restrict lock, const struct timespec *restrict deadline)
{
    struct thread_wait t = { .what = READ_TIMED, .clock = CLOCK_REALTIME, .object = lock };

    return wait_as(CLOCK_CALLER, &t, deadline);
}

CLOCK_EXPORT int pthread_rwlock_clockrdlock(pthread_rwlock_t *restrict lock, clockid_t clock,
                                            const struct timespec *restrict deadline)
{
    struct thread_wait t = { .what = READ_CLOCK, .clock = clock, .object = lock };

    return wait_as(CLOCK_CALLER, &t, deadline);
}

CLOCK_EXPORT int pthread_rwlock_timedwrlock(pthread_rwlock_t *restrict lock, const struct timespec *restrict deadline)
{
    struct thread_wait t = { .what = WRITE_TIMED, .clock = CLOCK_REALTIME, .object = lock };

    return wait_as(CLOCK_CALLER, &t, deadline);
}

CLOCK_EXPORT int pthread_rwlock_clockwrlock(pthread_rwlock_t *restrict lock, clockid_t clock,
                                            const struct timespec *restrict deadline)
{
    struct thread_wait t = { .what = WRITE_CLOCK, .clock = clock, .object = lock };

    return wait_as(CLOCK_CALLER, &t, deadline);
}

CLOCK_EXPORT int sem_timedwait(sem_t *restrict sem, const struct timespec *restrict deadline)
{
    struct thread_wait t = { .what = SEM_TIMED, .clock = CLOCK_REALTIME, .object = sem };

    return wait_as(CLOCK_CALLER, &t, deadline);
}

CLOCK_EXPORT int sem_clockwait(sem_t *restrict sem, clockid_t clock, const struct timespec *restrict deadline)
{
    struct thread_wait t = { .what = SEM_CLOCK, .clock = clock, .object = sem };

    return wait_as(CLOCK_CALLER, &t, deadline);
}

CLOCK_EXPORT ssize_t mq_timedreceive(mqd_t queue, char *restrict text, size_t length_bytes, unsigned *restrict priority,
                                     const struct timespec *restrict deadline)
{
    struct thread_wait t = { .what = RECEIVE, .clock = CLOCK_REALTIME, .queue = queue, .text = text };

    t.length_bytes = length_bytes;
    t.priority_out = priority;
    return wait_as(CLOCK_CALLER, &t, deadline) == 0 ? t.received : -1;
}

CLOCK_EXPORT int mq_timedsend(mqd_t queue, const char *text, size_t length_bytes, unsigned priority,
                              const struct timespec *deadline)
{
    struct thread_wait t = { .what = SEND, .clock = CLOCK_REALTIME, .queue = queue, .text_to_send = text };

    t.length_bytes = length_bytes;
    t.priority = priority;
    return wait_as(CLOCK_CALLER, &t, deadline);
}
