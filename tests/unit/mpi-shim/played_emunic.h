/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A program under the program's clock, and a thread that plays emunic: it moves each clock that waits to the time that
 * it waits for. The test's own virtual clocks are those of the API library that attaches.
 */
#ifndef TESTS_UNIT_PLAYED_EMUNIC_H
#define TESTS_UNIT_PLAYED_EMUNIC_H

#include <stdint.h>

#include "emunic/client/virtual_clock.h"

#define PLAYED_POLL_PS 10000u /* cost of an empty poll */

/* Starts the program again with the library argv[1] before its libc. Returns if that fails: its exit status. */
int played_start_again(char **argv);

/* Set-up and tear-down of the group: virtual time begins for the calling thread. */
int played_attach(void **state);
int played_end(void **state);

/* The thread's time, without a question that costs something. */
int64_t played_now_ns(void);

/* How often a thread has gone away from the model, at least. */
unsigned played_times_away(void);
void played_forget_away(void);

#endif
