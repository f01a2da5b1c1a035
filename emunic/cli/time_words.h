/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Virtual time on the command line.
 */
#ifndef EMUNIC_CLI_TIME_WORDS_H
#define EMUNIC_CLI_TIME_WORDS_H

#include <stdbool.h>

#include "emunic/daemon/core/part.h"

/* "functional", "virtual" */
extern const char *const emu_cli_times[];
/* "virtual", "real" */
extern const char *const emu_cli_clocks[];

/* Is this a value of --compute: none, measured, measured:FACTOR, fixed:NS? */
bool emu_time_compute_is_valid(const char *text);

/* Is this a value of --max-lag: a percentage? */
bool emu_time_max_lag_is_valid(const char *text);

/* The options of a server in virtual time. Both NULL for their defaults, none and 1, else valid values. */
void emu_time_read(const char *compute, const char *max_lag, struct emu_time_options *options_out);

/* A length of virtual time: a number with ns, us, ms or s behind it, from 1 ns to an hour. 0: it is none. */
uint64_t emu_time_length_ps(const char *text);
bool emu_time_length_is_valid(const char *text);

#endif
