/* SPDX-License-Identifier: BSD-3-Clause */
/* Floating-point numbers as the bits that travel, and back. A float is the low half of its 64 bits. */
#ifndef EMUNIC_ENGINE_BITS_H
#define EMUNIC_ENGINE_BITS_H

#include <stdint.h>
#include <string.h>

static inline double emu_as_double(uint64_t bits)
{
    double value;

    memcpy(&value, &bits, sizeof(value));
    return value;
}

static inline uint64_t emu_double_bits(double value)
{
    uint64_t bits;

    memcpy(&bits, &value, sizeof(bits));
    return bits;
}

static inline float emu_as_float(uint64_t bits)
{
    uint32_t low = (uint32_t)bits;
    float value;

    memcpy(&value, &low, sizeof(value));
    return value;
}

static inline uint64_t emu_float_bits(float value)
{
    uint32_t bits;

    memcpy(&bits, &value, sizeof(bits));
    return bits;
}

#endif
