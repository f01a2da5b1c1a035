/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Inside `emunic sim traffic`: jobs that share a machine, each with a pattern among its own nodes.
 */
#ifndef EMUNIC_CLI_SIM_JOBS_H
#define EMUNIC_CLI_SIM_JOBS_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "emunic/experiments/traffic.h"

#define EMU_CLI_JOBS_MAX 16

enum emu_cli_job_place {
    EMU_CLI_JOB_PACKED = 0, /* the lowest free nids */
    EMU_CLI_JOB_RANDOM,     /* free nodes, by the seed */
    EMU_CLI_JOB_GROUP,      /* the lowest nids of groups that no other job has */
};

struct emu_cli_job {
    enum emu_pattern pattern;
    enum emu_cli_job_place place;
    uint32_t n_nodes;
    double load;    /* share of --load */
    uint32_t *nids; /* owned; by rank */
};

struct emu_cli_jobs {
    struct emu_cli_job jobs[EMU_CLI_JOBS_MAX];
    size_t n;
    uint32_t n_nodes; /* of the machine */
    bool *senders;    /* owned; by nid, as all below */
    double *rates;    /* owned */
    uint32_t *job_of; /* owned; EMU_NOBODY: none */
    uint32_t *rank_of;
};

/* What a job had of a run. GB/s per node of the job, requests on the wire. */
struct emu_cli_job_figures {
    double offered_gb_s; /* 0: no rate */
    double accepted_gb_s;
    double min_gb_s; /* least of a node */
    double max_gb_s;
    double jain;
    double mean_ns; /* latency, created to delivered */
};

/* "PATTERN:NODES[:PLACE[:LOAD]]" as one more job. False: no such job, with a word in why_out. */
bool emu_cli_jobs_add(struct emu_cli_jobs *jobs, const char *text, const char **why_out);

/* Gives the jobs their nodes, and the generator its senders, rates and destinations. EMU_EXIT_DONE, or EMU_EXIT_FAILED
 * after a message. */
int emu_cli_jobs_place(struct emu_cli_jobs *jobs, const struct emu_machine *m, struct emu_generator_options *options);
void emu_cli_jobs_fini(struct emu_cli_jobs *jobs);

/* Of each job; nodes' sums of a generator. scale: GB/s of a unit in the measured time; offered: of a node with load 1
 * of the run, or 0. -ENOMEM. */
int emu_cli_jobs_measure(const struct emu_cli_jobs *jobs, const struct emu_generator *gen, double scale, double offered,
                         struct emu_cli_job_figures figures_out[EMU_CLI_JOBS_MAX]);

const char *emu_cli_job_place_name(enum emu_cli_job_place place);

/* A row for each job of a run. NULL: out of memory. */
json_t *emu_cli_jobs_json(const struct emu_cli_jobs *jobs, const struct emu_cli_job_figures *figures);

#endif
