/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The program's timers in virtual time: a table of expiries, and what happens then (timers.c). Any thread, signal-safe.
 */
#ifndef EMUNIC_MPI_SHIM_CLOCK_TIMERS_H
#define EMUNIC_MPI_SHIM_CLOCK_TIMERS_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

/* What a timer does. */
struct clock_timer_action {
    struct sigevent event; /* SIGEV_SIGNAL, SIGEV_THREAD_ID, SIGEV_THREAD or SIGEV_NONE */
    bool is_itimer;        /* of setitimer(): its signal tells no timer */
    bool is_descriptor;    /* event counts for nothing: `fd` becomes readable */
    int fd;
};

#define CLOCK_TIMER_REAL 0 /* the number of setitimer()'s */

/* A new timer, not armed. Its number, or -1: there are too many. */
int clock_timer_add(clockid_t clock, const struct clock_timer_action *action);
void clock_timer_remove(int number);
/* The number of the timer of that descriptor; -1: none. */
int clock_timer_of_descriptor(int fd);
bool clock_timer_exists(int number);
clockid_t clock_timer_clock(int number);

/* What is left of a timer, and its interval. 0 ns: not armed. */
struct clock_timer_left {
    uint64_t value_ns;
    uint64_t interval_ns;
};

struct clock_timer_left clock_timer_left(int number);
/* Arms it for that virtual time, ns. CLOCK_TIMER_OFF: disarms it. */
void clock_timer_arm(int number, uint64_t at_ns, uint64_t interval_ns);
#define CLOCK_TIMER_OFF UINT64_MAX
/* Expiries that the last one stands for, besides itself. */
int clock_timer_overrun(int number);

/* The earliest expiry of all, ns; CLOCK_TIMER_OFF: none. */
uint64_t program_clock_next_timer_ns(void);
/* Lets happen what is due at the thread's time. */
void program_clock_fire_timers(void);
/* The same, at that time, ns. */
void clock_timers_fire(uint64_t at_ns);
/* A timer is armed: threads that compute without a call are watched (timer_watch.c). */
void clock_timers_watch(void);
/* Signals of timers that the calling thread has handled so far. */
unsigned program_clock_handled(void);

/* For all libraries with virtual clocks (emunic/client/virtual_clock.c): the next expiry, and the clock has moved. */
uint64_t emunic_clock_limit_ps(void);
void emunic_clock_moved(void);

#endif
