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

#define EMU_YIELD_SKIPS_MAX 511u

/* Of a thread that yields for a moment before it sleeps: behind long yields it sleeps at once, more and more often. */
struct emu_yield_backoff {
    uint32_t n_left; /* so often more */
    uint32_t length;
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
    if (ns <= EMU_YIELD_LONG_NS) {
        backoff->length /= 2;
        return;
    }
    backoff->length = backoff->length < EMU_YIELD_SKIPS_MAX ? 2 * backoff->length + 1 : EMU_YIELD_SKIPS_MAX;
    backoff->n_left = backoff->length;
}

#endif
