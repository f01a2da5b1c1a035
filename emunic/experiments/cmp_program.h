/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Programs of many processes on a simulated machine: they compute for stated times and exchange messages, step by step.
 * All messages of all processes are in the network together, so they share its links and their hosts.
 */
#ifndef EMUNIC_EXPERIMENTS_CMP_PROGRAM_H
#define EMUNIC_EXPERIMENTS_CMP_PROGRAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "emunic/experiments/cug.h"

enum {
    CMP_PROCS_MAX = 256,
    CMP_STEPS_MAX = 64,
};

/* To whom a process sends in a step, and from whom it waits for as many. */
enum cmp_partners {
    CMP_NONE = 0,
    CMP_HALO,   /* the four neighbours on a torus of px x py processes */
    CMP_ACROSS, /* the process with number (own number XOR mask) */
    CMP_ALL,    /* all others */
};

struct cmp_step {
    double compute_us; /* before the messages */
    enum cmp_partners partners;
    uint32_t mask;         /* CMP_ACROSS */
    uint32_t bytes;        /* of a message; CMP_HALO: to west and east */
    uint32_t bytes_across; /* CMP_HALO: to north and south */
};

struct cmp_program {
    uint32_t px, py; /* px * py processes, at most CMP_PROCS_MAX */
    uint32_t ppn;    /* of a node */
    bool is_caf;     /* puts that the target polls for, not messages */
    double gap_us;   /* CAF: between a process's puts of one step behind the first */
    struct cmp_step steps[CMP_STEPS_MAX];
    uint32_t n_steps; /* of an iteration */
    uint32_t n_iterations;
};

/* One step more. Programs here have fewer than CMP_STEPS_MAX. */
void cmp_add(struct cmp_program *p, const struct cmp_step *step);
/* An allreduce of one word: swaps with processes 1, 2, 4 ... away; by CAF a word to all others. */
void cmp_add_allreduce(struct cmp_program *p);

/*
 * Time of an iteration, us: the end of the last process in the last iteration less that in the first, over the
 * iterations between. NAN after a failure, which the machine's `error` tells; -EINVAL there: too many processes for it.
 */
double cmp_run(struct cug *c, const struct cmp_program *program);

#endif
