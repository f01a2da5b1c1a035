/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * `emunic sim traffic` as one of several processes.
 */
#ifndef EMUNIC_CLI_SIM_WORLD_H
#define EMUNIC_CLI_SIM_WORLD_H

#include <stdint.h>

#include "emunic/fabric/sim/sim.h"

struct emu_cli_world {
    struct emu_sim_world calls;
    /* The worst status of all processes, for all; one of them says why. All call it. */
    int (*agree)(const struct emu_sim_world *world, int status);
    uint64_t arguments_hash;
};

/* Exit status, the same in all processes. argv[0] is not looked at. Only process 0 prints results. */
int emu_cli_sim_traffic_of_many(int argc, char **argv, const struct emu_cli_world *world);

/* Becomes emunic-sim-mpi, if the command line asks for it. EMU_PROCEED: it does not. */
int emu_cli_sim_become_mpi(int argc, char **argv);

#endif
