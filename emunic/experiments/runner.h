/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Inside the component and for the command: running one experiment and what it reported.
 *
 * A report is one JSON object, so that it can cross from the process that ran the experiment to the one that prints:
 *   {"id": "XC-20", "machine": "aries", "seed": 1, "seconds": 0.4, "cpu_seconds": 0.4, "passed": 3, "failed": 0,
 *    "lines": [
 *     {"id": "XC-20", "metric": "hop_slope", "src": 100, "got": 100.2, "unit": "ns", "tol": "1%", "kind": "P",
 *      "seed": 1, "verdict": "PASS", "class": "measured", "packets": 4711},
 *     {"detail": "free text"}]}
 * "packets" are those that were simulated for a measured metric. One that was judged otherwise before has "before".
 * A fitted metric has "param": {"name": "t_issue_ns", "value": 512}; a failed one may have "why".
 */
#ifndef EMUNIC_EXPERIMENTS_RUNNER_H
#define EMUNIC_EXPERIMENTS_RUNNER_H

#include <jansson.h>

#include "emunic/experiments/experiment.h"

/* Runs it to its end. `progress` may be NULL. NULL: out of memory. */
json_t *emu_exp_run(const struct emu_experiment *experiment, const struct emu_exp_context *context,
                    void (*progress)(void *ctx, double fraction), void *ctx);

/* A report of an experiment that could not be run to its end: one failed line "completed". NULL: out of memory. */
json_t *emu_exp_aborted(const struct emu_experiment *experiment, uint64_t seed, const char *reason);

/* The lines as text. Negative errno of the stream. */
int emu_exp_print(const json_t *report, FILE *out);

#endif
