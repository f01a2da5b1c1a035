/* SPDX-License-Identifier: BSD-3-Clause */
#include "emunic/base/yield_cost.h"

#include <sched.h>

#include "emunic/base/clock.h"

#define YIELDS 64

/* Enough for any machine that is quiet; on a busy one each yield may take a turn of the scheduler. */
#define LIMIT_NS 1000000u

uint32_t emu_yield_measure_ns(void)
{
    uint64_t shortest_ns = UINT32_MAX;
    uint64_t before_ns = emu_clock_ns();
    uint64_t end_ns = before_ns + LIMIT_NS;

    for (int i = 0; i < YIELDS && before_ns < end_ns; i++) {
        uint64_t now_ns;

        sched_yield();
        now_ns = emu_clock_ns();
        if (now_ns - before_ns < shortest_ns)
            shortest_ns = now_ns - before_ns;
        before_ns = now_ns;
    }
    return shortest_ns > 0 ? (uint32_t)shortest_ns : 1;
}
