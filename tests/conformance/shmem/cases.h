/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Test programs of OpenSHMEM. Every PE of a launched job runs the same program and goes through its tests in step; PE 0
 * prints the TAP. An assertion that fails in any PE ends that PE, and with it the job.
 *
 * Functions of a type are called through PLAIN and WITH_CTX, so that one text tests those with and without a context.
 */
#ifndef TESTS_CONFORMANCE_SHMEM_CASES_H
#define TESTS_CONFORMANCE_SHMEM_CASES_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <shmem.h>

#include "sma_types.h"

static int me;
static int n_pes;
static shmem_ctx_t context;

static inline int next_pe(void)
{
    return (me + 1) % n_pes;
}

static inline int previous_pe(void)
{
    return (me + n_pes - 1) % n_pes;
}

/* Element k of a PE: fits into every type. */
#define VALUE(T, k, pe) ((T)(((k)*5 + (pe)*3 + 1) % 100))

#define PLAIN(NAME, WHAT, ...)    shmem_##NAME##_##WHAT(__VA_ARGS__)
#define WITH_CTX(NAME, WHAT, ...) shmem_ctx_##NAME##_##WHAT(context, __VA_ARGS__)
#define PLAIN_SIZED(WHAT, ...)    shmem_##WHAT(__VA_ARGS__)
#define WITH_CTX_SIZED(WHAT, ...) shmem_ctx_##WHAT(context, __VA_ARGS__)

static int set_up(void **state)
{
    int provided;

    (void)state;
    if (shmem_init_thread(SHMEM_THREAD_MULTIPLE, &provided) != 0 || provided != SHMEM_THREAD_MULTIPLE)
        return -1;
    me = shmem_my_pe();
    n_pes = shmem_n_pes();
    return shmem_ctx_create(SHMEM_CTX_SERIALIZED, &context);
}

static int tear_down(void **state)
{
    (void)state;
    shmem_ctx_destroy(context);
    shmem_finalize();
    return 0;
}

static int run_group(const char *name, const struct CMUnitTest *tests, size_t n_tests)
{
    const char *rank = getenv("EMUNIC_RANK");

    setvbuf(stdout, NULL, _IOLBF, 0);
    if (rank && strcmp(rank, "0") != 0 && !freopen("/dev/null", "w", stdout))
        return 1;
    setenv("CMOCKA_TEST_ABORT", "1", 1);
    return _cmocka_run_group_tests(name, tests, n_tests, set_up, tear_down) == 0 ? 0 : 1;
}
#define run(tests) run_group(#tests, tests, sizeof(tests) / sizeof((tests)[0]))

#endif
