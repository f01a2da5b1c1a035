/* SPDX-License-Identifier: BSD-3-Clause */
/* The time-stamp counter in virtual time (counter.c). Any thread. */
#ifndef EMUNIC_MPI_SHIM_CLOCK_COUNTER_H
#define EMUNIC_MPI_SHIM_CLOCK_COUNTER_H

#include <stdbool.h>
#include <stdint.h>

/* Virtual time begins: from now on reads of the counter are trapped where the process has code that reads it. */
void clock_counter_begin(void);

/*
 * A thread that is in virtual time has its reads trapped, and those of threads that it creates, or not any more. Cheap
 * when that is so already.
 */
void clock_counter_trap_thread(void);

/*
 * The calling thread loads code: its reads are trapped at once, those of others from their next request on. Until
 * clock_counter_trap_thread() has looked at that code.
 */
void clock_counter_note_load(void);
/* The process has code that nobody can look at. From now on for good, likewise. */
void clock_counter_note_code(void);

/* Is that place in a library that reads the host's counter: libc, the loader, the kernel's page? */
bool clock_counter_is_of_host(uintptr_t at);

/*
 * Around what starts another program in this thread, or in a child of vfork(): the program would end at its first read.
 * True: it was trapped, and clock_counter_trap() traps it again.
 */
bool clock_counter_release(void);
void clock_counter_trap(bool was_trapped);

#endif
