/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Seeds of random tests: EMU_TEST_SEED, or the test's own; printed as a TAP comment so that a run can be repeated.
 */
#ifndef TESTS_COMMON_SEED_H
#define TESTS_COMMON_SEED_H

#include <stdio.h>
#include <stdlib.h>

#include "emunic/fabric/random.h"

static inline struct emu_random seeded(uint64_t own_seed)
{
    const char *text = getenv("EMU_TEST_SEED");
    struct emu_random random = { .state = text ? strtoull(text, NULL, 0) : own_seed };

    printf("# EMU_TEST_SEED=%llu\n", (unsigned long long)random.state);
    fflush(stdout);
    return random;
}

#endif
