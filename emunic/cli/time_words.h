/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Virtual time on the command line: options that `run` and `serve` have, and their words.
 */
#ifndef EMUNIC_CLI_TIME_WORDS_H
#define EMUNIC_CLI_TIME_WORDS_H

#include <stdbool.h>

#include "emunic/cli/options.h"
#include "emunic/daemon/core/part.h"
#include "emunic/fabric/machine.h"

/* "functional", "virtual" */
extern const char *const emu_cli_times[];
/* "virtual", "real" */
extern const char *const emu_cli_clocks[];

/* The options of a command that starts a server. */
struct emu_cli_time {
    bool is_virtual;
    const char *compute; /* as given, or NULL; likewise the others */
    const char *max_lag;
    const char *trace;
    const char *link_trace;
    const char *every;
    const char *bit_errors;
    uint64_t n_threads;              /* of the simulator; 0: not given */
    struct emu_time_options options; /* what they mean */
    char *trace_path;                /* owned, as is the next: the words of argv are overwritten */
    char *link_trace_path;
};

/* Their rows, for a target with such a member. */
#define EMU_CLI_TIME_ROWS(type, member)                                                                                \
    { "time", 0, "TIME", "virtual: programs see the modelled machine's time; functional (default)",                    \
      EMU_OPTION_WORD(type, member.is_virtual, emu_cli_times) },                                                       \
        { "compute",                                                                                                   \
          0,                                                                                                           \
          "COST",                                                                                                      \
          "what computing costs in virtual time: none (default), measured[:FACTOR] of its processor time, fixed:NS a " \
          "call",                                                                                                      \
          EMU_OPTION_TEXT(type, member.compute),                                                                       \
          .is_valid = emu_time_compute_is_valid,                                                                       \
          .refusal = "none of none, measured[:FACTOR], fixed:NS" },                                                    \
        { "max-lag",                                                                                                   \
          0,                                                                                                           \
          "PERCENT",                                                                                                   \
          "lag of a run in virtual time that makes its figures wrong, in percent of its time (1)",                     \
          EMU_OPTION_TEXT(type, member.max_lag),                                                                       \
          .is_valid = emu_time_max_lag_is_valid,                                                                       \
          .refusal = "no percentage" },                                                                                \
        { "bit-errors",                                                                                                \
          0,                                                                                                           \
          "RATE",                                                                                                      \
          "in virtual time: bit error rate of all links, 0 to 1e-4; what a link's check sees is sent again (0)",       \
          EMU_OPTION_TEXT(type, member.bit_errors),                                                                    \
          .is_valid = emu_time_bit_errors_is_valid,                                                                    \
          .refusal = "no rate from 0 to 1e-4" },                                                                       \
        { "threads", 0, "N", "in virtual time: threads of the simulator (default: 1); results do not depend on it",    \
          EMU_OPTION_NUMBER(type, member.n_threads, 1, EMU_CLI_THREADS_MAX) },                                         \
        { "trace", 0, "FILE", "lines of all operations with their virtual times (CSV)",                                \
          EMU_OPTION_TEXT(type, member.trace) },                                                                       \
        { "link-trace", 0, "FILE", "packets and stalls of each link in each window of virtual time (CSV)",             \
          EMU_OPTION_TEXT(type, member.link_trace) },                                                                  \
    {                                                                                                                  \
        "every", 0, "LENGTH", "length of a window of --link-trace, as 500ns, 10us (default), 2ms, 1s",                 \
            EMU_OPTION_TEXT(type, member.every), .is_valid = emu_time_length_is_valid,                                 \
                                                 .refusal = EMU_CLI_LENGTH_REFUSAL                                     \
    }

#define EMU_CLI_THREADS_MAX 255 /* EMU_SIM_PARTS_MAX */

/* For a text that emu_time_length_is_valid() refuses. */
#define EMU_CLI_LENGTH_REFUSAL "no length from 1ns to 3600s with a unit"

/* Is this a value of --compute: none, measured, measured:FACTOR, fixed:NS? */
bool emu_time_compute_is_valid(const char *text);

/* Is this a value of --max-lag: a percentage? */
bool emu_time_max_lag_is_valid(const char *text);

/* Is this a value of --bit-errors? */
bool emu_time_bit_errors_is_valid(const char *text);

/* The first option that was given and needs virtual time. NULL: there is none. */
const char *emu_cli_time_option(const struct emu_cli_time *time);

/*
 * What the options mean; files are made, so that one that cannot be written is found before anything is started.
 * EMU_EXIT_DONE or, after a message, another exit status. To be freed in any case.
 */
int emu_cli_time_read(const char *verb, struct emu_cli_time *time);
/* Has the machine what the options need? Likewise. */
int emu_cli_time_check(const char *verb, const struct emu_cli_time *time, const struct emu_machine *machine);
void emu_cli_time_free(struct emu_cli_time *time);

/* A length of virtual time: a number with ns, us, ms or s behind it, from 1 ns to an hour. 0: it is none. */
uint64_t emu_time_length_ps(const char *text);
bool emu_time_length_is_valid(const char *text);

#endif
