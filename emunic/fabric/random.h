/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The fabric's random numbers: splitmix64, a 64-bit counter behind a mixing function. Small, seeded by one number,
 * the same everywhere. Source: G. Steele, D. Lea, C. Flood, "Fast Splittable Pseudorandom Number Generators",
 * OOPSLA 2014; the mixing constants are D. Stafford's variant 13 of the MurmurHash3 finaliser.
 */
#ifndef EMUNIC_FABRIC_RANDOM_H
#define EMUNIC_FABRIC_RANDOM_H

#include <stdint.h>

struct emu_random {
    uint64_t state; /* start with the seed */
};

/* A one to one mix of 64 bits: close inputs give unrelated outputs. */
static inline uint64_t emu_random_mix(uint64_t z)
{
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

static inline uint64_t emu_random_next(struct emu_random *r)
{
    r->state += UINT64_C(0x9e3779b97f4a7c15);
    return emu_random_mix(r->state);
}

/* Uniform in 0 .. bound - 1, without the bias of a bare remainder. bound > 0. */
static inline uint64_t emu_random_below(struct emu_random *r, uint64_t bound)
{
    uint64_t rest = -bound % bound; /* 2^64 mod bound: values below it would make the low results too frequent */
    uint64_t value;

    do
        value = emu_random_next(r);
    while (value < rest);
    return value % bound;
}

#endif
