/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the DMAPP examples share: start, end, errors, time. Errors end the whole job.
 */
#ifndef EXAMPLES_DMAPP_COMMON_H
#define EXAMPLES_DMAPP_COMMON_H

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <dmapp.h>
#include <pmi.h>

/* A call that has to succeed: else say where, which and why, and end the job. */
#define EX_DMAPP(call)                                                                                                 \
    do {                                                                                                               \
        dmapp_return_t ex_rc_ = (call);                                                                                \
        if (ex_rc_ != DMAPP_RC_SUCCESS)                                                                                \
            ex_end(__FILE__, __LINE__, #call, dmapp_err_str[ex_rc_]);                                                  \
    } while (0)

/* A fact that has to hold. */
#define EX_EXPECT(condition)                                                                                           \
    do {                                                                                                               \
        if (!(condition))                                                                                              \
            ex_end(__FILE__, __LINE__, #condition, "not so");                                                          \
    } while (0)

static inline _Noreturn void ex_end(const char *file, int line, const char *what, const char *why)
{
    fprintf(stderr, "%s:%d: %s: %s\n", file, line, what, why);
    PMI_Abort(1, "example failed");
    exit(1);
}

static inline void ex_barrier(void)
{
    EX_EXPECT(PMI_Barrier() == PMI_SUCCESS);
}

static inline double ex_seconds(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

#endif
