/* SPDX-License-Identifier: BSD-3-Clause */
/* A library that reads the time-stamp counter, for counter_load. */
#include <stdint.h>

__attribute__((visibility("default"))) uint64_t read_counter(void);

uint64_t read_counter(void)
{
    uint32_t low, high;

    __asm__ volatile("rdtsc" : "=a"(low), "=d"(high));
    return (uint64_t)high << 32 | low;
}
