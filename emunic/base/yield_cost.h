/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What it costs to offer the processor to others when nobody wants it.
 *
 * Whoever waits by sched_yield() can tell from its duration whether others ran meanwhile, but only beside this cost: it
 * is 0.2 us on one machine, and more than 1 us on a virtual one whose system calls are expensive.
 */
#ifndef EMUNIC_BASE_YIELD_COST_H
#define EMUNIC_BASE_YIELD_COST_H

#include <stdbool.h>
#include <stdint.h>

/* A yield that took so many times as long as a bare one has let others run. Between: interrupts and cold caches. */
#define EMU_YIELD_SLOW_FACTOR 3u

/* The shortest of some yields in a row, in nanoseconds, at least 1. Takes 10 to 100 us, and
 * on a busy processor 1 ms and the yield in which that ends. */
uint32_t emu_yield_measure_ns(void);

/* A yield that took so long has given the core to somebody who computes, not to one who hands on a message. */
#define EMU_YIELD_LONG_NS 100000u

/* What sleeping instead costs about: a thread is woken, and who wakes it makes a system call. */
#define EMU_YIELD_SLEEP_NS 10000u

#define EMU_YIELD_SKIPS_MAX 1000u

/*
 * Of a thread that yields for a moment before it sleeps: behind a long yield it sleeps at once, as often as that costs
 * what the yield did. So trying again and again costs no more than sleeping always, however long the others compute.
 */
struct emu_yield_backoff {
    uint32_t n_left; /* so often more */
};

static inline bool emu_yield_is_skipped(struct emu_yield_backoff *backoff)
{
    if (backoff->n_left == 0)
        return false;
    backoff->n_left--;
    return true;
}

static inline void emu_yield_took(struct emu_yield_backoff *backoff, uint64_t ns)
{
    uint64_t n = ns / EMU_YIELD_SLEEP_NS;

    if (ns > EMU_YIELD_LONG_NS)
        backoff->n_left = n < EMU_YIELD_SKIPS_MAX ? (uint32_t)n : EMU_YIELD_SKIPS_MAX;
}

#endif
