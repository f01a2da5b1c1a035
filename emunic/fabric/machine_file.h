/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Inside the component: reading a machine file and its overrides.
 */
#ifndef EMUNIC_FABRIC_MACHINE_FILE_H
#define EMUNIC_FABRIC_MACHINE_FILE_H

#include <stddef.h>

#include "emunic/fabric/topology.h"

/* Arguments and results as emu_machine_load(). The parameters have passed the topology's check. */
int emu_machine_file_read(const char *spec, const char *machine_dir, struct emu_machine_params *params_out,
                          const struct emu_topology **topology_out, char *err, size_t err_len);

#endif
