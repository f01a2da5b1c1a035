/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Threads that a thread in virtual time creates are in virtual time from their creation on, at their creator's time.
 * Otherwise the time-outs of others would pass before the host has started the thread. One that never calls an API
 * library is found to sleep, or to compute for long, as any other.
 */
#include "mpi-shim/clock/src/create.h"

#include <stdlib.h>
#include <threads.h>

#include "emunic/client/virtual_clock.h"
#include "mpi-shim/clock/src/program_clock.h"

struct start {
    struct emu_vclock *clock; /* reserved */
    void *(*run)(void *);     /* one of both */
    int (*run_c11)(void *);
    void *arg;
};

static struct start take(struct start *start)
{
    struct start copy = *start;

    free(start);
    emu_vclock_take_reserved(copy.clock);
    return copy;
}

static void *run(void *arg)
{
    struct start start = take(arg);

    return start.run(start.arg);
}

static int run_c11(void *arg)
{
    struct start start = take(arg);

    return start.run_c11(start.arg);
}

/* NULL: the new thread is the host's. */
static struct start *prepare(const void *caller, const struct start *what)
{
    struct start *start;

    if (program_clock_kind(caller) != PROGRAM_CLOCK_VIRTUAL)
        return NULL;
    start = malloc(sizeof(*start));
    if (!start)
        return NULL;
    *start = *what;
    start->clock = emu_vclock_reserve();
    if (start->clock)
        return start;
    free(start);
    return NULL;
}

static void give_up(struct start *start)
{
    if (!start)
        return;
    emu_vclock_give_back(start->clock);
    free(start);
}

int clock_create_thread(pthread_t *thread_out, const pthread_attr_t *attributes, void *(*function)(void *), void *arg)
{
    static void *found;

    return ((__typeof__(pthread_create) *)program_clock_next(&found, "pthread_create"))(thread_out, attributes,
                                                                                        function, arg);
}

CLOCK_EXPORT int pthread_create(pthread_t *restrict thread_out, const pthread_attr_t *restrict attributes,
                                void *(*function)(void *), void *restrict arg)
{
    struct start *start = prepare(CLOCK_CALLER, &(struct start){ .run = function, .arg = arg });
    int r = clock_create_thread(thread_out, attributes, start ? run : function, start ? start : arg);

    if (r != 0)
        give_up(start);
    return r;
}

CLOCK_EXPORT int thrd_create(thrd_t *thread_out, thrd_start_t function, void *arg)
{
    static void *found;
    struct start *start = prepare(CLOCK_CALLER, &(struct start){ .run_c11 = function, .arg = arg });
    int r = ((__typeof__(thrd_create) *)program_clock_next(&found, "thrd_create"))(
        thread_out, start ? run_c11 : function, start ? start : arg);

    if (r != thrd_success)
        give_up(start);
    return r;
}
