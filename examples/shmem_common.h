/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the SHMEM examples share: facts that have to hold, time. A fact that does not ends the whole job.
 */
#ifndef EXAMPLES_SHMEM_COMMON_H
#define EXAMPLES_SHMEM_COMMON_H

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <shmem.h>

#define EX_EXPECT(condition)                                                                                           \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            fprintf(stderr, "%s:%d: PE %d: %s: not so\n", __FILE__, __LINE__, shmem_my_pe(), #condition);              \
            shmem_global_exit(1);                                                                                      \
        }                                                                                                              \
    } while (0)

static inline double ex_seconds(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

/* Numbers as good as random, different for each start. */
static inline uint64_t ex_random(uint64_t *state)
{
    uint64_t x = *state += 0x9e3779b97f4a7c15u;

    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
    x = (x ^ x >> 27) * 0x94d049bb133111ebu;
    return x ^ x >> 31;
}

#endif
