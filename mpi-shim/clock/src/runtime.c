/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Calls of the runtime, which live in the host's time.
 *
 * PMIx has a thread of its own, whose clock is the host's. A call of PMIx starts a timer in the caller's thread, and
 * that thread waits for it: were the timer set by a clock that stands behind the host's, it would be over at once.
 * PMIx_Finalize() then left before mpirun had heard of it, and mpirun took the rank for one that had died.
 */
#include <pmix.h>
#include <stddef.h>

#include "mpi-shim/clock/src/program_clock.h"

#define NEXT(name) ((__typeof__(&name))program_clock_next(&found, #name))

CLOCK_EXPORT pmix_status_t PMIx_Init(pmix_proc_t *proc, pmix_info_t info[], size_t n_info)
{
    static void *found;
    pmix_status_t status;

    program_clock_enter_runtime();
    status = NEXT(PMIx_Init)(proc, info, n_info);
    program_clock_leave_runtime();
    return status;
}

CLOCK_EXPORT pmix_status_t PMIx_Finalize(const pmix_info_t info[], size_t n_info)
{
    static void *found;
    pmix_status_t status;

    program_clock_enter_runtime();
    status = NEXT(PMIx_Finalize)(info, n_info);
    program_clock_leave_runtime();
    return status;
}

CLOCK_EXPORT pmix_status_t PMIx_Abort(int status, const char text[], pmix_proc_t procs[], size_t n_procs)
{
    static void *found;
    pmix_status_t result;

    program_clock_enter_runtime();
    result = NEXT(PMIx_Abort)(status, text, procs, n_procs);
    program_clock_leave_runtime();
    return result;
}

CLOCK_EXPORT pmix_status_t PMIx_Get(const pmix_proc_t *proc, const char key[], const pmix_info_t info[], size_t n_info,
                                    pmix_value_t **value)
{
    static void *found;
    pmix_status_t status;

    program_clock_enter_runtime();
    status = NEXT(PMIx_Get)(proc, key, info, n_info, value);
    program_clock_leave_runtime();
    return status;
}
