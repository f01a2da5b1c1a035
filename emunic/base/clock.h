/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef EMUNIC_BASE_CLOCK_H
#define EMUNIC_BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

/* Monotonic host time. About 18 ns a call. */
static inline uint64_t emu_clock_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000000000ull + (uint64_t)t.tv_nsec;
}

/* Lets the other hardware thread of the core run while we spin. */
static inline void emu_cpu_pause(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#else
    __asm__ volatile("" ::: "memory");
#endif
}

#endif
