/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A job inside the job of an mpirun that has started `emunic run` once per slot: its hosts and slots are those of that
 * mpirun. Rank 0 runs the job, the others wait for it (emunic-allocation.c).
 */
#ifndef EMUNIC_CLI_ALLOCATION_H
#define EMUNIC_CLI_ALLOCATION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* The leader's. */
struct emu_allocation {
    FILE *hosts;   /* owned: lines of emu_cli_hosts_read_lines(); NULL: there is none */
    int status_fd; /* owned */
};

/* Has an mpirun, or what else speaks PMIx, started this process? */
bool emu_allocation_is_there(void);

/**
 * Enter. Comes back with rank 0 alone: with another one the process becomes that which waits.
 *
 * @param[in] program  Path of emunic-allocation.
 * @return 0 or negative errno: it could not be started.
 */
int emu_allocation_enter(const char *program, struct emu_allocation *allocation_out);

/* The others end with this status. Waits for them. Without an allocation nothing happens. */
void emu_allocation_leave(struct emu_allocation *allocation, int status);

/* For a child that starts an mpirun of its own: takes what the outer one has left out of the environment. */
void emu_allocation_forget(void);

#endif
