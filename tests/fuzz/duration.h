/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How long a fuzz test goes on: EMU_FUZZ_SECONDS, or 60.
 */
#ifndef TESTS_FUZZ_DURATION_H
#define TESTS_FUZZ_DURATION_H

#include <stdint.h>
#include <stdlib.h>

static inline uint64_t fuzz_duration_ns(void)
{
    const char *text = getenv("EMU_FUZZ_SECONDS");

    return (uint64_t)((text ? strtod(text, NULL) : 60) * 1e9);
}

#endif
