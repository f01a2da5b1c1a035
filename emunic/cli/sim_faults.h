/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A file that tells what is broken in a simulated machine (emunic-sim(1)).
 */
#ifndef EMUNIC_CLI_SIM_FAULTS_H
#define EMUNIC_CLI_SIM_FAULTS_H

#include <stddef.h>

#include "emunic/fabric/fault_map.h"

/* 0, or negative errno with one line in err. */
int emu_cli_read_faults(const char *path, const struct emu_machine *m, struct emu_fault_map **map_out, char *err,
                        size_t err_len);

#endif
