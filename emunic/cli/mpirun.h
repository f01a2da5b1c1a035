/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Command lines for mpirun: the job's ranks, and with several hosts also the emunics.
 */
#ifndef EMUNIC_CLI_MPIRUN_H
#define EMUNIC_CLI_MPIRUN_H

#include <stdint.h>

#include "emunic/cli/job_run.h"

/* What the command lines tell of a job beyond its plan. All borrowed. */
struct emu_mpirun_job {
    const struct emu_job_plan *plan;
    const char *server;
    const char *folder; /* there; made on the other hosts by mpirun */
    uint32_t cookie;
    int output_fd; /* where mpirun of the ranks writes what it says itself, see mpirun_output.h */
};

/*
 * Each gives words that end with NULL and live as long as the process, or NULL: out of memory, or a file in the folder
 * cannot be written. For the process that becomes mpirun: with several hosts the variables of its environment are
 * named, and settings that mpirun alone shall have are added to it.
 */
char **emu_mpirun_ranks(const struct emu_mpirun_job *job);
char **emu_mpirun_hosts(const struct emu_mpirun_job *job);

#endif
