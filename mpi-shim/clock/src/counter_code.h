/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Is there code in the process that reads the time-stamp counter (counter_code.c)? Any thread. errno is left alone.
 */
#ifndef EMUNIC_MPI_SHIM_CLOCK_COUNTER_CODE_H
#define EMUNIC_MPI_SHIM_CLOCK_COUNTER_CODE_H

#include <stdbool.h>
#include <stdint.h>

/*
 * In all that may be executed now, but for what reads the host's counter (counter.c) and this library. True also where
 * that cannot be told. Takes some milliseconds for each 100 MB of code.
 */
bool clock_code_reads_counter(void);

/* The same for readable memory. */
bool clock_code_reads_counter_in(uintptr_t first, uintptr_t end);

#endif
