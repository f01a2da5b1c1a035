/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Fences of the whole job: nobody leaves before all have come, so in virtual time all leave at the latest of their
 * times.
 *
 * Each process counts its fences of the whole job, from its start on, whether it has a clock already or not: so the
 * numbers agree. Fences of a part of the job are left alone.
 *
 * A library of the runtime (Open MPI's, in MPI_Init and MPI_Finalize) begins a fence and then sleeps and polls until
 * its callback has run. How often is the host's choice, so its fence is one that waits: the callback runs before
 * PMIx_Fence_nb() returns. Behind MPI_Init somebody may come into the fence only when the caller has sent on what waits
 * for its progress: it goes on after N_SLICES slices of the host's time, of which one counts the same however long the
 * process was stopped in it. Fences that others begin, such as those of PMI's split barrier, are left alone: they have
 * work meanwhile.
 */
#include "mpi-shim/clock/src/program_clock.h"

#include <errno.h>
#include <pmix.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>

#include "emunic/client/virtual_clock.h"

#define SLICE_NS 250000000l
#define N_SLICES 20u

static unsigned next_key(void)
{
    static atomic_uint number;

    return atomic_fetch_add(&number, 1);
}

static bool is_of_whole_job(const pmix_proc_t *procs, size_t n_procs)
{
    return !procs || n_procs == 0 || (n_procs == 1 && procs[0].rank == PMIX_RANK_WILDCARD);
}

CLOCK_EXPORT pmix_status_t PMIx_Fence(const pmix_proc_t procs[], size_t n_procs, const pmix_info_t info[],
                                      size_t n_info)
{
    static void *found;
    pmix_status_t (*next)(const pmix_proc_t[], size_t, const pmix_info_t[], size_t) =
        (__typeof__(next))program_clock_next(&found, "PMIx_Fence");
    bool is_whole = is_of_whole_job(procs, n_procs);
    bool is_timed = is_whole && program_clock_kind(NULL) == PROGRAM_CLOCK_VIRTUAL;
    unsigned key = is_whole ? next_key() : 0;
    pmix_status_t status;

    if (!next)
        return PMIX_ERR_NOT_SUPPORTED;
    if (is_timed)
        emu_vclock_fence_begin(key);
    program_clock_enter_runtime();
    status = next(procs, n_procs, info, n_info);
    program_clock_leave_runtime();
    if (is_timed)
        emu_vclock_fence_end();
    return status;
}

/* ---- without waiting ---- */

enum fence_state { FENCE_WAITS, FENCE_IS_LEFT, FENCE_IS_DONE };

struct fence {
    pmix_op_cbfunc_t callback;
    void *its_data;
    pmix_status_t status;
    sem_t done;
    _Atomic int state; /* enum fence_state: who changes it first decides who tells the caller, and frees it */
};

static void forget(struct fence *fence)
{
    sem_destroy(&fence->done);
    free(fence);
}

static void tell(struct fence *fence)
{
    if (fence->callback)
        fence->callback(fence->status, fence->its_data);
    forget(fence);
}

static bool becomes(struct fence *fence, enum fence_state state)
{
    int waits = FENCE_WAITS;

    return atomic_compare_exchange_strong(&fence->state, &waits, state);
}

/* On PMIx's thread. */
static void completed(pmix_status_t status, void *data)
{
    struct fence *fence = data;

    fence->status = status;
    if (becomes(fence, FENCE_IS_DONE))
        sem_post(&fence->done);
    else
        tell(fence);
}

/* Messages of the program may wait for progress that this thread makes. */
static bool has_messages(void)
{
    static void *found;
    int (*next)(int *) = (__typeof__(next))program_clock_next(&found, "PMPI_Initialized");
    int is_initialized = 1;

    if (next)
        next(&is_initialized);
    return is_initialized;
}

static struct timespec end_of_slice(void)
{
    struct timespec end;

    program_clock_host(CLOCK_REALTIME, &end);
    end.tv_nsec += SLICE_NS;
    end.tv_sec += end.tv_nsec / 1000000000l;
    end.tv_nsec %= 1000000000l;
    return end;
}

/* In the host's time. False: somebody has not come. */
static bool await(struct fence *fence)
{
    bool is_limited = has_messages();
    struct timespec end = end_of_slice();
    unsigned n_slices = 0;

    while (sem_timedwait(&fence->done, &end) < 0) {
        if (errno != ETIMEDOUT)
            continue;
        if (is_limited && ++n_slices >= N_SLICES)
            return !becomes(fence, FENCE_IS_LEFT);
        end = end_of_slice();
    }
    return true;
}

CLOCK_EXPORT pmix_status_t PMIx_Fence_nb(const pmix_proc_t procs[], size_t n_procs, const pmix_info_t info[],
                                         size_t n_info, pmix_op_cbfunc_t callback, void *its_data)
{
    static void *found;
    pmix_status_t (*next)(const pmix_proc_t[], size_t, const pmix_info_t[], size_t, pmix_op_cbfunc_t, void *) =
        (__typeof__(next))program_clock_next(&found, "PMIx_Fence_nb");
    bool is_whole = is_of_whole_job(procs, n_procs);
    unsigned key = is_whole ? next_key() : 0;
    struct fence *fence = NULL;
    pmix_status_t status;
    bool is_over;

    if (!next)
        return PMIX_ERR_NOT_SUPPORTED;
    if (is_whole && program_clock_is_of_runtime(CLOCK_CALLER) && emu_vclock_runs())
        fence = calloc(1, sizeof(*fence));
    if (!fence)
        return next(procs, n_procs, info, n_info, callback, its_data);
    *fence = (struct fence){ .callback = callback, .its_data = its_data };
    sem_init(&fence->done, 0, 0);
    emu_vclock_fence_begin(key);
    program_clock_enter_runtime();
    status = next(procs, n_procs, info, n_info, completed, fence);
    is_over = status == PMIX_OPERATION_SUCCEEDED || (status == PMIX_SUCCESS && await(fence));
    program_clock_leave_runtime();
    if (is_over)
        emu_vclock_fence_end();
    else
        emu_vclock_return();
    if (status == PMIX_SUCCESS && is_over)
        tell(fence);
    else if (status != PMIX_SUCCESS) /* no callback follows */
        forget(fence);
    return status;
}
