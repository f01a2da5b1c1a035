/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Inside `emunic sim traffic`: what is asked for, what one run gave, and how it is shown.
 */
#ifndef EMUNIC_CLI_SIM_TRAFFIC_H
#define EMUNIC_CLI_SIM_TRAFFIC_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "emunic/experiments/traffic.h"

#define EMU_CLI_LOADS_MAX 64
#define EMU_CLI_MODES_MAX EMU_MODES

enum emu_cli_record {
    EMU_CLI_RECORD_LATENCY = 1 << 0,
    EMU_CLI_RECORD_LINKS = 1 << 1,
    EMU_CLI_RECORD_VCS = 1 << 2,
};

/* One load with one mode. */
struct emu_cli_traffic_run {
    enum emu_route_mode mode;
    double load;      /* share of the capacity for uniform traffic; 0: as fast as it goes */
    double gap_ps;    /* between packets of a node; 0 with load 0 */
    const char *kind; /* "steady", "unsteady", "time", "complete", "deadlock" */
    uint64_t measured_ps;
    struct emu_sim_totals totals; /* of the measured time */
    struct emu_histogram latency; /* created to delivered */
    struct emu_histogram network; /* entered to delivered */
    struct emu_histogram round_trip;
    uint64_t received;      /* packets, responses left out ... */
    uint64_t received_hops; /* ... and the links between routers that they crossed */
    uint64_t trace_hash;    /* of all deliveries, warm-up included */
    uint64_t memory_bytes;
    double seconds;     /* of the host, for the measured time */
    double cpu_seconds; /* of all threads together: what counts on a busy host */
};

struct emu_cli_traffic {
    const char *spec;
    const struct emu_machine *machine;
    struct emu_generator_options options; /* all but mode and gap */
    const char *trace_path;               /* NULL: a pattern */
    unsigned record;
    const char *output; /* folder; NULL: none */
    uint64_t n_threads;
};

/* "adaptive-0" ... "deterministic". False: no such mode. */
bool emu_cli_parse_mode(const char *text, enum emu_route_mode *mode_out);

/* The word of a mode, as emu_cli_parse_mode() takes it. */
const char *emu_cli_mode_name(enum emu_route_mode mode);

/* "0.6", "max": a load in a table or in the name of a file. */
void emu_cli_load_text(double load, char text_out[32]);

/* The table of all runs on stdout, with a line of speed each. 0 or negative errno. */
int emu_cli_sim_print(const struct emu_cli_traffic *t, const struct emu_cli_traffic_run *runs, size_t n);

/* The same as one object; NULL: out of memory. */
json_t *emu_cli_sim_json(const struct emu_cli_traffic *t, const struct emu_cli_traffic_run *runs, size_t n);

/* What was recorded of the last run, into files in t->output. 0 or negative errno after a message. */
int emu_cli_sim_write(const struct emu_cli_traffic *t, const struct emu_cli_traffic_run *run,
                      const struct emu_sim *sim);

#endif
