/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Waits with a time-out, in virtual time (wait.c). Any thread; errno is that of the original call.
 */
#ifndef EMUNIC_MPI_SHIM_CLOCK_WAIT_H
#define EMUNIC_MPI_SHIM_CLOCK_WAIT_H

#include <stdbool.h>
#include <stdint.h>
#include <time.h>

#define CLOCK_FOR_EVER UINT64_MAX

/*
 * One wait. `call` makes the original call: with that limit instead of its own, a limit of 0 for a look that does not
 * wait, or NULL for no limit. True: it has ended other than by the limit, and keeps its result and errno in the wait.
 */
struct clock_wait {
    bool (*call)(struct clock_wait *w, const struct timespec *limit);
    uint64_t length_ns; /* CLOCK_FOR_EVER */
    bool is_sleep;      /* nothing but time and signals can end it */
    bool cannot_look;   /* a call with limit 0 would lose something */
    int result;         /* of `call`, and errno */
    int error;
};

enum clock_wait_end {
    CLOCK_WAIT_ENDED = 0,   /* as the original: w->result */
    CLOCK_WAIT_TIMED_OUT,   /* so has its length */
    CLOCK_WAIT_INTERRUPTED, /* by the signal of a timer */
};

/* Waits, in the time of a call that returns to `caller`. */
enum clock_wait_end clock_wait(struct clock_wait *w, const void *caller);

/* A time as a number of ns. Too long: CLOCK_FOR_EVER. t is valid. */
uint64_t clock_ns_of(const struct timespec *t);
struct timespec clock_timespec_of(uint64_t ns);
/* now_ns and ns behind it; CLOCK_FOR_EVER where that is too far away. */
uint64_t clock_after(uint64_t now_ns, uint64_t ns);

/* Is it a length that system calls take? */
bool clock_is_valid(const struct timespec *t);

#endif
