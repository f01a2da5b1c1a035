/* SPDX-License-Identifier: BSD-3-Clause */
/* The time-stamp counter in virtual time (counter.c). Any thread. */
#ifndef EMUNIC_MPI_SHIM_CLOCK_COUNTER_H
#define EMUNIC_MPI_SHIM_CLOCK_COUNTER_H

#include <stdbool.h>

/* Virtual time begins: the calling thread's reads of the counter are trapped, and those of threads that it creates. */
void clock_counter_begin(void);

/* The same for a thread that is in virtual time, once. Cheap when that is so already. */
void clock_counter_trap_thread(void);

/*
 * Around what starts another program in this thread, or in a child of vfork(): the program would end at its first read.
 * True: it was trapped, and clock_counter_trap() traps it again.
 */
bool clock_counter_release(void);
void clock_counter_trap(bool was_trapped);

#endif
