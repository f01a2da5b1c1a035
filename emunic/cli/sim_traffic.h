/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Inside `emunic sim traffic`: what is asked for, what one run gave, and how it is shown.
 */
#ifndef EMUNIC_CLI_SIM_TRAFFIC_H
#define EMUNIC_CLI_SIM_TRAFFIC_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "emunic/cli/sim_jobs.h"
#include "emunic/experiments/statistics.h"
#include "emunic/experiments/traffic.h"

#define EMU_CLI_LOADS_MAX 64
#define EMU_CLI_MODES_MAX EMU_MODES

enum emu_cli_record {
    EMU_CLI_RECORD_LATENCY = 1 << 0,
    EMU_CLI_RECORD_LINKS = 1 << 1,
    EMU_CLI_RECORD_VCS = 1 << 2,
};

/* What each node got, of those that send: requests, in GB/s on the wire. */
struct emu_cli_nodes {
    uint32_t n_senders; /* nodes that have sent anything at all */
    double follows;     /* accepted from all senders / offered by them; 0 without a rate */
    double jain;        /* fairness among senders */
    double min_gb_s;    /* of a sender */
    double max_gb_s;
    double *sent_gb_s; /* owned; by nid; NULL unless asked for */
    double *received_gb_s;
};

/* One load with one mode and one seed. */
struct emu_cli_traffic_run {
    enum emu_route_mode mode;
    uint64_t seed;
    double load;      /* share of the capacity for uniform traffic; 0: as fast as it goes */
    double gap_ps;    /* between packets of a node; 0 with load 0 */
    const char *kind; /* "steady", "unsteady", "time", "complete", "stalled", "deadlock" */
    uint64_t measured_ps;
    uint64_t last_ps;             /* of a trace: when its last message arrived */
    struct emu_sim_totals totals; /* of the measured time */
    struct emu_histogram latency; /* created to delivered */
    struct emu_histogram network; /* entered to delivered */
    struct emu_histogram round_trip;
    uint64_t received;          /* packets, responses left out ... */
    uint64_t received_hops;     /* ... and the links between routers that they crossed */
    uint64_t trace_hash;        /* of all deliveries, warm-up included */
    uint64_t memory_bytes;      /* of all processes */
    uint64_t memory_bytes_most; /* of the one that has most */
    struct emu_cli_nodes nodes;
    struct emu_cli_job_figures jobs[EMU_CLI_JOBS_MAX];
    double seconds;     /* of the host, for the measured time */
    double cpu_seconds; /* of all threads together: what counts on a busy host */
};

struct emu_cli_traffic {
    const char *spec;
    const struct emu_machine *machine;
    struct emu_generator_options options; /* all but mode and gap */
    double mean_units;                    /* of a packet */
    const char *trace_path;               /* NULL: a pattern */
    unsigned record;
    const char *output;                /* folder; NULL: none */
    uint64_t n_threads;                /* of each process */
    uint64_t n_processes;              /* that simulate together */
    const struct emu_sim_world *world; /* of them; NULL: one */
    uint64_t n_seeds;                  /* counted up from that of the options */
    bool finds_saturation;
    bool has_per_node;                      /* the object has throughput node by node */
    struct emu_cli_saturation *saturations; /* owned; finds_saturation: one for each mode and seed done */
    size_t n_saturations;
    struct emu_cli_jobs jobs; /* none: one pattern for all nodes */
};

/* What a search gave. */
struct emu_cli_saturation {
    enum emu_route_mode mode;
    uint64_t seed;
    struct emu_saturation search;
    double accepted_gb_s; /* at the highest load that was followed */
    double most_gb_s;     /* at any load of the search */
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

/* ---- sim_means.c ---- */

/* On the wire, headers and responses included, per node. */
double emu_cli_accepted_gb_s(const struct emu_cli_traffic *t, const struct emu_cli_traffic_run *run);

/* Fills run->nodes from the generator's figures. 0 or -ENOMEM. */
int emu_cli_take_nodes(const struct emu_cli_traffic *t, const struct emu_generator *gen,
                       struct emu_cli_traffic_run *run);

/* Tables of jobs, of means over seeds and of saturation, if they were asked for. 0 or negative errno. */
int emu_cli_print_means(const struct emu_cli_traffic *t, const struct emu_cli_traffic_run *runs, size_t n);

/* The same as members of the object; and a run's "nodes". NULL: out of memory. */
json_t *emu_cli_means_json(const struct emu_cli_traffic *t, const struct emu_cli_traffic_run *runs, size_t n);
json_t *emu_cli_saturation_json(const struct emu_cli_traffic *t);
json_t *emu_cli_nodes_json(const struct emu_cli_traffic *t, const struct emu_cli_traffic_run *run);

/* What was recorded of the last run, into files in t->output. 0 or negative errno after a message. */
int emu_cli_sim_write(const struct emu_cli_traffic *t, const struct emu_cli_traffic_run *run,
                      const struct emu_sim *sim);

#endif
