/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The bits of floating-point numbers, as operands of atomics and reductions are given.
 */
#ifndef TESTS_COMMON_FLOAT_BITS_H
#define TESTS_COMMON_FLOAT_BITS_H

#include <stdint.h>
#include <string.h>

static inline uint64_t bits64(double value)
{
    uint64_t bits;

    memcpy(&bits, &value, sizeof(bits));
    return bits;
}

static inline uint64_t bits32(float value)
{
    uint32_t bits;

    memcpy(&bits, &value, sizeof(bits));
    return bits;
}

#endif
