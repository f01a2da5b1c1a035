/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What it costs to offer the processor to others when nobody wants it.
 *
 * Whoever waits by sched_yield() can tell from its duration whether others ran meanwhile, but only beside this cost: it
 * is 0.2 us on one machine, and more than 1 us on a virtual one whose system calls are expensive.
 */
#ifndef EMUNIC_BASE_YIELD_COST_H
#define EMUNIC_BASE_YIELD_COST_H

#include <stdint.h>

/* A yield that took so many times as long as a bare one has let others run. Between: interrupts and cold caches. */
#define EMU_YIELD_SLOW_FACTOR 3u

/* The shortest of some yields in a row, in nanoseconds, at least 1. Takes 10 to 100 us, longer on a busy processor. */
uint32_t emu_yield_measure_ns(void);

#endif
