/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Jobs of `emunic sim traffic`.
 *
 * A job is a list of nodes; a node's place in it is its rank, and patterns are among ranks. Jobs take nodes in the
 * order of the command line: packed, the lowest free ones; random, by the seed; group, the lowest of groups in which
 * nobody has a node. Nodes without a job are silent. A packet never leaves its job, so that the packets that a job's
 * nodes receive are the job's.
 */
#include "emunic/cli/sim_jobs.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "emunic/cli/cli.h"
#include "emunic/experiments/statistics.h"
#include "emunic/fabric/placement.h"

#define HOT_SHARE 0.25 /* of a hot job's packets, to its rank 0 */

static const char *const place_names[] = { "packed", "random", "group" };

const char *emu_cli_job_place_name(enum emu_cli_job_place place)
{
    return place_names[place];
}

/* ---- command line ---- */

static bool parse_place(const char *text, enum emu_cli_job_place *place_out)
{
    for (int i = 0; i < 3; i++) {
        if (strcmp(text, place_names[i]) == 0) {
            *place_out = (enum emu_cli_job_place)i;
            return true;
        }
    }
    return false;
}

/* Patterns that make sense among ranks. */
static bool parse_pattern(const char *text, enum emu_pattern *pattern_out)
{
    return emu_pattern_of_name(text, pattern_out) == 0 && *pattern_out != EMU_PATTERN_ALL_TO_ALL;
}

bool emu_cli_jobs_add(struct emu_cli_jobs *jobs, const char *text, const char **why_out)
{
    struct emu_cli_job job = { .load = 1 };
    char pattern[16] = "";
    char place[16] = "packed";
    int len = 0;
    int n;

    *why_out = "is not PATTERN:NODES[:PLACE[:LOAD]]";
    n = sscanf(text, "%15[a-z-]:%7u%n:%15[a-z]%n", pattern, &job.n_nodes, &len, place, &len);
    if (n < 2)
        return false;
    if (text[len] == ':') {
        char *end;

        job.load = strtod(text + len + 1, &end);
        if (end == text + len + 1 || *end != '\0' || !(job.load >= 0.0001 && job.load <= 100))
            return false;
    } else if (text[len] != '\0') {
        return false;
    }
    *why_out = "has a pattern that is none for a job";
    if (!parse_pattern(pattern, &job.pattern))
        return false;
    *why_out = "has a place that is none of packed, random, group";
    if (!parse_place(place, &job.place))
        return false;
    *why_out = "has fewer than two nodes";
    if (job.n_nodes < 2)
        return false;
    *why_out = "is one too many";
    if (jobs->n == EMU_CLI_JOBS_MAX)
        return false;
    jobs->jobs[jobs->n++] = job;
    return true;
}

/* ---- places ---- */

static uint32_t group_of(const struct emu_machine *m, uint32_t nid)
{
    struct emu_place place = { 0 };

    (void)emu_machine_place(m, nid, &place);
    return place.group;
}

/* Has a job before this one a node in the group? */
static bool is_group_taken(const struct emu_cli_jobs *jobs, const struct emu_machine *m, uint32_t group, uint32_t job)
{
    for (uint32_t nid = 0; nid < jobs->n_nodes; nid++) {
        if (jobs->job_of[nid] != EMU_NOBODY && jobs->job_of[nid] != job && group_of(m, nid) == group)
            return true;
    }
    return false;
}

static bool may_take(const struct emu_cli_jobs *jobs, const struct emu_machine *m, uint32_t nid, uint32_t job)
{
    return jobs->job_of[nid] == EMU_NOBODY &&
           (jobs->jobs[job].place != EMU_CLI_JOB_GROUP || !is_group_taken(jobs, m, group_of(m, nid), job));
}

static int place_job(struct emu_cli_jobs *jobs, const struct emu_machine *m, uint32_t index, const uint32_t *order)
{
    struct emu_cli_job *job = &jobs->jobs[index];
    uint32_t rank = 0;

    job->nids = calloc(job->n_nodes, sizeof(*job->nids));
    if (!job->nids)
        return emu_cli_fail("sim", "traffic: out of memory");
    for (uint32_t i = 0; i < jobs->n_nodes && rank < job->n_nodes; i++) {
        uint32_t nid = order[i];

        if (!may_take(jobs, m, nid, index))
            continue;
        jobs->job_of[nid] = index;
        jobs->rank_of[nid] = rank;
        jobs->senders[nid] = true;
        jobs->rates[nid] = job->load;
        job->nids[rank++] = nid;
    }
    if (rank == job->n_nodes)
        return EMU_EXIT_DONE;
    return emu_cli_fail("sim", "--job: number %u gets %u of its %u nodes: the machine has no more for it", index + 1,
                        rank, job->n_nodes);
}

/* ---- destinations ---- */

/* The most nearly square matrix: (row, column) to (column, row). */
static uint32_t transposed(uint32_t n, uint32_t rank)
{
    uint32_t rows = 1;

    for (uint32_t r = 1; r * r <= n; r++) {
        if (n % r == 0)
            rows = r;
    }
    return rank % (n / rows) * rows + rank / (n / rows);
}

/* Of a rank, another one or itself. */
static uint32_t pick_rank(const struct emu_cli_job *job, struct emu_random *random, uint32_t rank)
{
    uint32_t n = job->n_nodes;
    uint32_t other = (uint32_t)((rank + 1 + emu_random_below(random, n - 1)) % n);

    switch (job->pattern) {
    case EMU_PATTERN_HOT:
        return rank != 0 && (double)emu_random_below(random, 1000000) < HOT_SHARE * 1e6 ? 0 : other;
    case EMU_PATTERN_SHIFT:
        return (rank + n / 2) % n;
    case EMU_PATTERN_TRANSPOSE:
        return transposed(n, rank);
    case EMU_PATTERN_TORNADO:
        return (rank + (n + 1) / 2 - 1) % n;
    case EMU_PATTERN_NEIGHBOUR:
        return (rank + (emu_random_below(random, 2) == 0 ? 1 : n - 1)) % n;
    case EMU_PATTERN_COMPLEMENT:
        return n - 1 - rank;
    default:
        return other;
    }
}

static uint32_t pick(void *ctx, struct emu_random *random, uint32_t src_nid)
{
    const struct emu_cli_jobs *jobs = ctx;
    const struct emu_cli_job *job = &jobs->jobs[jobs->job_of[src_nid]];
    uint32_t rank = jobs->rank_of[src_nid];
    uint32_t to = pick_rank(job, random, rank);

    return to == rank ? EMU_NOBODY : job->nids[to];
}

/* ---- life ---- */

int emu_cli_jobs_place(struct emu_cli_jobs *jobs, const struct emu_machine *m, struct emu_generator_options *options)
{
    uint32_t n = emu_machine_n_nodes(m);
    uint32_t *order = calloc(n, sizeof(*order));
    int status = EMU_EXIT_DONE;

    jobs->n_nodes = n;
    jobs->senders = calloc(n, sizeof(*jobs->senders));
    jobs->rates = calloc(n, sizeof(*jobs->rates));
    jobs->job_of = calloc(n, sizeof(*jobs->job_of));
    jobs->rank_of = calloc(n, sizeof(*jobs->rank_of));
    if (!order || !jobs->senders || !jobs->rates || !jobs->job_of || !jobs->rank_of) {
        free(order);
        return emu_cli_fail("sim", "traffic: out of memory");
    }
    for (uint32_t nid = 0; nid < n; nid++) {
        jobs->job_of[nid] = EMU_NOBODY;
        jobs->rates[nid] = 1;
    }
    for (uint32_t i = 0; i < jobs->n && status == EMU_EXIT_DONE; i++) {
        char policy[40] = "linear";

        if (jobs->jobs[i].place == EMU_CLI_JOB_RANDOM)
            snprintf(policy, sizeof(policy), "random:%llu", (unsigned long long)(options->seed + i));
        if (emu_machine_placement(m, policy, n, order) < 0)
            status = emu_cli_fail("sim", "traffic: out of memory");
        else
            status = place_job(jobs, m, i, order);
    }
    free(order);
    options->pattern = EMU_PATTERN_CUSTOM;
    options->pick = pick;
    options->pick_ctx = jobs;
    options->senders = jobs->senders;
    options->rates = jobs->rates;
    return status;
}

void emu_cli_jobs_fini(struct emu_cli_jobs *jobs)
{
    for (size_t i = 0; i < jobs->n; i++)
        free(jobs->jobs[i].nids);
    free(jobs->senders);
    free(jobs->rates);
    free(jobs->job_of);
    free(jobs->rank_of);
}

/* ---- figures ---- */

int emu_cli_jobs_measure(const struct emu_cli_jobs *jobs, const struct emu_generator *gen, double scale, double offered,
                         struct emu_cli_job_figures figures_out[EMU_CLI_JOBS_MAX])
{
    double *sent = calloc(jobs->n_nodes, sizeof(*sent));

    if (!sent)
        return -ENOMEM;
    for (size_t i = 0; i < jobs->n; i++) {
        const struct emu_cli_job *job = &jobs->jobs[i];
        struct emu_cli_job_figures *f = &figures_out[i];
        uint64_t packets = 0;
        uint64_t units = 0;
        uint64_t latency_ps = 0;
        size_t n = 0;

        for (uint32_t rank = 0; rank < job->n_nodes; rank++) {
            struct emu_node_figures node;

            emu_generator_node(gen, job->nids[rank], &node);
            packets += node.received;
            units += node.received_units;
            latency_ps += node.received_latency_ps;
            if (emu_generator_is_active(gen, job->nids[rank]))
                sent[n++] = (double)node.sent_units * scale;
        }
        *f = (struct emu_cli_job_figures){
            .offered_gb_s = offered * job->load * (double)n / job->n_nodes,
            .accepted_gb_s = (double)units * scale / job->n_nodes,
            .min_gb_s = emu_sample_of(sent, n).min,
            .max_gb_s = emu_sample_of(sent, n).max,
            .jain = emu_jain_index(sent, n),
            .mean_ns = packets > 0 ? (double)latency_ps / (double)packets / 1e3 : 0,
        };
    }
    free(sent);
    return 0;
}

json_t *emu_cli_jobs_json(const struct emu_cli_jobs *jobs, const struct emu_cli_job_figures *figures)
{
    json_t *rows = json_array();

    for (size_t i = 0; i < jobs->n; i++) {
        const struct emu_cli_job *job = &jobs->jobs[i];
        const struct emu_cli_job_figures *f = &figures[i];
        json_t *nids = json_array();

        for (uint32_t rank = 0; rank < job->n_nodes; rank++)
            (void)json_array_append_new(nids, json_integer(job->nids[rank]));
        (void)json_array_append_new(rows,
                                    json_pack("{s:s, s:s, s:f, s:f, s:f, s:f, s:f, s:f, s:f, s:o}", "pattern",
                                              emu_pattern_name(job->pattern), "place", place_names[job->place], "load",
                                              job->load, "offered_gb_per_s", f->offered_gb_s, "accepted_gb_per_s",
                                              f->accepted_gb_s, "min_gb_per_s", f->min_gb_s, "max_gb_per_s",
                                              f->max_gb_s, "jain_index", f->jain, "mean_ns", f->mean_ns, "nids", nids));
    }
    return rows;
}
