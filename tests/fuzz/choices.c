/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/fuzz/choices.h"

#include <string.h>

#include "emunic/fabric/random.h"

static struct emu_random generator;

void choices_begin(uint64_t seed)
{
    generator = (struct emu_random){ seed };
}

uint64_t next_random(void)
{
    return emu_random_next(&generator);
}

uint64_t below(uint64_t bound)
{
    return emu_random_below(&generator, bound);
}

bool one_in(unsigned n)
{
    return below(n) == 0;
}

void fill_random(void *place, uint64_t len_bytes)
{
    uint8_t *bytes = place;

    while (len_bytes >= 8) {
        uint64_t word = next_random();

        memcpy(bytes, &word, 8);
        bytes += 8;
        len_bytes -= 8;
    }
    for (; len_bytes > 0; len_bytes--)
        *bytes++ = (uint8_t)next_random();
}

uint64_t odd_number(void)
{
    static const uint64_t numbers[] = { 0,          1,          2,          7,
                                        8,          63,         64,         65,
                                        4095,       4096,       4097,       65535,
                                        65536,      1u << 20,   INT32_MAX,  1ull << 31,
                                        UINT32_MAX, 1ull << 32, 1ull << 40, (1ull << 47) - 4096,
                                        1ull << 47, INT64_MAX,  1ull << 63, UINT64_MAX - 4095,
                                        UINT64_MAX };
    uint64_t n = numbers[below(sizeof(numbers) / sizeof(numbers[0]))];

    switch (below(4)) {
    case 0:
        return next_random();
    case 1:
        return next_random() >> below(64);
    case 2:
        return n + below(17) - 8;
    default:
        return n;
    }
}

void flip_bits(void *place, uint64_t len_bytes, unsigned n)
{
    uint8_t *bytes = place;

    while (n-- > 0)
        bytes[below(len_bytes)] ^= (uint8_t)(1u << below(8));
}
