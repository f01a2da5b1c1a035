/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The cost of something in instructions: a child prepares itself, and is led through it. Include after cmocka.h.
 */
#ifndef TESTS_COMMON_COST_H
#define TESTS_COMMON_COST_H

#include <stdint.h>

#include "tests/common/trace.h"

#define COST_TRIES 2u /* the first one meets a cold allocator */

/* Prepares itself for a cost beside `n` others. */
typedef void (*cost_prepare)(unsigned what, uint32_t n);
/* False: something was not as it should be. */
typedef bool (*cost_once)(void);

/* Instructions of the cheapest try. */
static inline unsigned long cost_of(cost_prepare prepare, unsigned what, uint32_t n, cost_once once)
{
    unsigned long least = 0;
    pid_t pid = fork();

    if (pid == 0) {
        prepare(what, n);
        for (unsigned i = 0; i < COST_TRIES; i++) {
            trace_here();
            if (!once())
                _exit(1);
        }
        trace_here();
        _exit(0);
    }
    assert_true(pid > 0 && trace_begin(pid));
    for (unsigned i = 0; i < COST_TRIES; i++) {
        unsigned long steps = 0;

        while (trace_step(pid))
            steps++;
        least = i == 0 || steps < least ? steps : least;
    }
    assert_true(trace_kill(pid)); /* it has not ended by itself */
    return least;
}

#endif
