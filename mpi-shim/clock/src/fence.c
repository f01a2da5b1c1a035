/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Fences of the whole job: nobody leaves before all have come, so in virtual time all leave at the latest of their
 * times.
 *
 * Each process counts its fences of the whole job, from its start on, whether it has a clock already or not: so the
 * numbers agree. Fences of a part of the job are left alone.
 */
#include "mpi-shim/clock/src/program_clock.h"

#include <pmix.h>
#include <stdatomic.h>
#include <stddef.h>

#include "emunic/client/virtual_clock.h"

CLOCK_EXPORT pmix_status_t PMIx_Fence(const pmix_proc_t procs[], size_t n_procs, const pmix_info_t info[],
                                      size_t n_info)
{
    static void *found;
    static atomic_uint number;
    pmix_status_t (*next)(const pmix_proc_t[], size_t, const pmix_info_t[], size_t) =
        (pmix_status_t(*)(const pmix_proc_t[], size_t, const pmix_info_t[], size_t))program_clock_next(&found,
                                                                                                       "PMIx_Fence");
    bool is_whole = !procs || n_procs == 0 || (n_procs == 1 && procs[0].rank == PMIX_RANK_WILDCARD);
    bool is_timed = is_whole && program_clock_kind(NULL) == PROGRAM_CLOCK_VIRTUAL;
    unsigned key = is_whole ? atomic_fetch_add(&number, 1) : 0;
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
