/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Waits for other threads without a time-out: the thread is outside of virtual time meanwhile, so it holds nobody up,
 * and goes on at the time that the others have reached. What needs no waiting costs nothing.
 *
 * emunic sees by itself when a thread sleeps in a call that is not here (a futex, a pipe), but only after 20 ms.
 */
#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <stddef.h>
#include <threads.h>

#include "emunic/client/virtual_clock.h"
#include "mpi-shim/clock/src/program_clock.h"

enum blocking_call { JOIN, THRD_JOIN, MUTEX, MTX, READ_LOCK, WRITE_LOCK, COND, CND, SEM, BARRIER, N_CALLS };

/* dlsym() alone may find the condition variables of old programs. */
static const struct {
    const char *name;
    const char *version;
} originals[N_CALLS] = {
    [JOIN] = { "pthread_join", NULL },
    [THRD_JOIN] = { "thrd_join", NULL },
    [MUTEX] = { "pthread_mutex_lock", NULL },
    [MTX] = { "mtx_lock", NULL },
    [READ_LOCK] = { "pthread_rwlock_rdlock", NULL },
    [WRITE_LOCK] = { "pthread_rwlock_wrlock", NULL },
    [COND] = { "pthread_cond_wait", "GLIBC_2.3.2" },
    [CND] = { "cnd_wait", NULL },
    [SEM] = { "sem_wait", NULL },
    [BARRIER] = { "pthread_barrier_wait", NULL },
};

static void *original(enum blocking_call what)
{
    static void *found[N_CALLS];

    return program_clock_next_version(&found[what], originals[what].name, originals[what].version);
}

struct absence {
    enum program_clock_kind kind;
    enum emu_vclock_call before; /* RUNTIME: what the thread was in */
};

/*
 * Is the calling thread in virtual time? Then it leaves. Not inside the runtime, which waits shortly for threads of its
 * own and for mpirun: others could pass by, differently in each run.
 */
static struct absence leave(const void *caller)
{
    struct absence a = { .kind = program_clock_kind(caller) };

    if (a.kind == PROGRAM_CLOCK_VIRTUAL)
        program_clock_away();
    else if (a.kind == PROGRAM_CLOCK_RUNTIME)
        a.before = emu_vclock_note_call(EMU_VCLOCK_CALL_SERVED);
    return a;
}

static int come_back(struct absence a, int result)
{
    if (a.kind == PROGRAM_CLOCK_VIRTUAL)
        program_clock_return();
    else if (a.kind == PROGRAM_CLOCK_RUNTIME)
        emu_vclock_note_call(a.before);
    return result;
}

CLOCK_EXPORT int pthread_join(pthread_t thread, void **value_out)
{
    int r = pthread_tryjoin_np(thread, value_out);
    struct absence absence;

    if (r != EBUSY)
        return r;
    absence = leave(CLOCK_CALLER);
    return come_back(absence, ((__typeof__(pthread_join) *)original(JOIN))(thread, value_out));
}

CLOCK_EXPORT int thrd_join(thrd_t thread, int *value_out)
{
    struct absence absence = leave(CLOCK_CALLER);

    return come_back(absence, ((__typeof__(thrd_join) *)original(THRD_JOIN))(thread, value_out));
}

CLOCK_EXPORT int pthread_mutex_lock(pthread_mutex_t *mutex)
{
    int r = pthread_mutex_trylock(mutex);
    struct absence absence;

    if (r != EBUSY)
        return r;
    absence = leave(CLOCK_CALLER);
    return come_back(absence, ((__typeof__(pthread_mutex_lock) *)original(MUTEX))(mutex));
}

CLOCK_EXPORT int mtx_lock(mtx_t *mutex)
{
    int r = mtx_trylock(mutex);
    struct absence absence;

    if (r != thrd_busy)
        return r;
    absence = leave(CLOCK_CALLER);
    return come_back(absence, ((__typeof__(mtx_lock) *)original(MTX))(mutex));
}

CLOCK_EXPORT int pthread_rwlock_rdlock(pthread_rwlock_t *lock)
{
    int r = pthread_rwlock_tryrdlock(lock);
    struct absence absence;

    if (r != EBUSY)
        return r;
    absence = leave(CLOCK_CALLER);
    return come_back(absence, ((__typeof__(pthread_rwlock_rdlock) *)original(READ_LOCK))(lock));
}

CLOCK_EXPORT int pthread_rwlock_wrlock(pthread_rwlock_t *lock)
{
    int r = pthread_rwlock_trywrlock(lock);
    struct absence absence;

    if (r != EBUSY)
        return r;
    absence = leave(CLOCK_CALLER);
    return come_back(absence, ((__typeof__(pthread_rwlock_wrlock) *)original(WRITE_LOCK))(lock));
}

/* A thread that is cancelled here stays outside: it ends, and its clock with it. */
CLOCK_EXPORT int pthread_cond_wait(pthread_cond_t *restrict cond, pthread_mutex_t *restrict mutex)
{
    struct absence absence = leave(CLOCK_CALLER);

    return come_back(absence, ((__typeof__(pthread_cond_wait) *)original(COND))(cond, mutex));
}

CLOCK_EXPORT int cnd_wait(cnd_t *cond, mtx_t *mutex)
{
    struct absence absence = leave(CLOCK_CALLER);

    return come_back(absence, ((__typeof__(cnd_wait) *)original(CND))(cond, mutex));
}

CLOCK_EXPORT int sem_wait(sem_t *sem)
{
    int error = errno;
    struct absence absence;

    if (sem_trywait(sem) == 0)
        return 0;
    if (errno != EAGAIN)
        return -1;
    errno = error;
    absence = leave(CLOCK_CALLER);
    return come_back(absence, ((__typeof__(sem_wait) *)original(SEM))(sem));
}

CLOCK_EXPORT int pthread_barrier_wait(pthread_barrier_t *barrier)
{
    struct absence absence = leave(CLOCK_CALLER);

    return come_back(absence, ((__typeof__(pthread_barrier_wait) *)original(BARRIER))(barrier));
}
