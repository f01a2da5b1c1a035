/* SPDX-License-Identifier: BSD-3-Clause */
/* Tables of the machines of CUG05, for registry.c and the tests. */
#ifndef EMUNIC_EXPERIMENTS_TABLES_H
#define EMUNIC_EXPERIMENTS_TABLES_H

#include "emunic/experiments/experiment.h"

extern const struct emu_experiment emu_x1_experiments[];
extern const struct emu_experiment emu_xd1_experiments[];
extern const struct emu_experiment emu_xt3_experiments[];
extern const struct emu_experiment emu_cmp_experiments[];

#endif
