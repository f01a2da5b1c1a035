/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the Portals examples share: start, everybody's process id, end, errors, time, events. Errors end the whole job.
 */
#ifndef EXAMPLES_PORTALS_COMMON_H
#define EXAMPLES_PORTALS_COMMON_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <pmi.h>
#include <portals/portals3.h>

struct ex_job {
    int rank;
    int n_ranks;
    ptl_handle_ni_t ni;
    ptl_process_id_t *ids; /* of all ranks, owned */
};

static inline _Noreturn void ex_end(const char *file, int line, const char *what, const char *why)
{
    fprintf(stderr, "%s:%d: %s: %s\n", file, line, what, why);
    PMI_Abort(1, "example failed");
    exit(1);
}

/* A call that has to succeed: else say where, which and why, and end the job. */
#define EX_PTL(call)                                                                                                   \
    do {                                                                                                               \
        int ex_rc_ = (call);                                                                                           \
        if (ex_rc_ != PTL_OK)                                                                                          \
            ex_end(__FILE__, __LINE__, #call, ptl_err_str[ex_rc_]);                                                    \
    } while (0)

/* A fact that has to hold. */
#define EX_EXPECT(condition)                                                                                           \
    do {                                                                                                               \
        if (!(condition))                                                                                              \
            ex_end(__FILE__, __LINE__, #condition, "not so");                                                          \
    } while (0)

static inline void ex_barrier(void)
{
    EX_EXPECT(PMI_Barrier() == PMI_SUCCESS);
}

static inline void ex_start(struct ex_job *job)
{
    struct ex_place {
        int rank;
        ptl_process_id_t id;
    } mine, *all;
    int spawned, n_interfaces, rc;

    EX_EXPECT(PMI_Init(&spawned) == PMI_SUCCESS && PMI_Get_size(&job->n_ranks) == PMI_SUCCESS);
    EX_EXPECT(PMI_Get_rank(&job->rank) == PMI_SUCCESS);
    EX_PTL(PtlInit(&n_interfaces));
    rc = PtlNIInit(PTL_IFACE_DEFAULT, PTL_PID_ANY, NULL, NULL, &job->ni);
    EX_EXPECT(rc == PTL_OK || rc == PTL_IFACE_DUP); /* on a Cray the launcher's library may have opened it */
    memset(&mine, 0, sizeof(mine));
    mine.rank = job->rank;
    EX_PTL(PtlGetId(job->ni, &mine.id));
    all = calloc((size_t)job->n_ranks, sizeof(*all));
    job->ids = calloc((size_t)job->n_ranks, sizeof(*job->ids));
    EX_EXPECT(all && job->ids && PMI_Allgather(&mine, all, sizeof(mine)) == PMI_SUCCESS);
    for (int i = 0; i < job->n_ranks; i++)
        job->ids[all[i].rank] = all[i].id;
    free(all);
}

static inline void ex_stop(struct ex_job *job)
{
    ex_barrier();
    EX_PTL(PtlNIFini(job->ni));
    PtlFini();
    free(job->ids);
    PMI_Finalize();
}

/* The queue's next event; whatever it is, the operation has not failed and no event was lost. */
static inline ptl_event_t ex_next(ptl_handle_eq_t eq)
{
    ptl_event_t event;
    int rc;

    while ((rc = PtlEQGet(eq, &event)) == PTL_EQ_EMPTY)
        ;
    EX_PTL(rc);
    EX_EXPECT(event.ni_fail_type == PTL_NI_OK);
    return event;
}

/* The same, passing over the others (SEND events of gets, for one, which not every Portals has). */
static inline ptl_event_t ex_wait_for(ptl_handle_eq_t eq, ptl_event_kind_t type)
{
    ptl_event_t event;

    do
        event = ex_next(eq);
    while (event.type != type);
    return event;
}

static inline double ex_time_us(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e6 + (double)now.tv_nsec * 1e-3;
}

/* A byte that depends on position and seed, so that misplaced and stale bytes show. */
static inline uint8_t ex_byte(uint32_t seed, size_t i)
{
    return (uint8_t)(seed * 37 + i * 11 + (i >> 8));
}

static inline void ex_fill(void *buffer, size_t len_bytes, uint32_t seed)
{
    for (size_t i = 0; i < len_bytes; i++)
        ((uint8_t *)buffer)[i] = ex_byte(seed, i);
}

static inline int ex_is_filled(const void *buffer, size_t len_bytes, uint32_t seed)
{
    for (size_t i = 0; i < len_bytes; i++) {
        if (((const uint8_t *)buffer)[i] != ex_byte(seed, i))
            return 0;
    }
    return 1;
}

#endif
