/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * All experiments: the tables of the machines, in the order of spec/machines.md.
 */
#include "emunic/experiments/experiment.h"

/* A machine's table: `extern const struct emu_experiment emu_xc_experiments[];` here and its name in the list. */

extern const struct emu_experiment emu_bgl_experiments[];
extern const struct emu_experiment emu_cmp_experiments[];
extern const struct emu_experiment emu_seastar_experiments[];
extern const struct emu_experiment emu_titan_experiments[];
extern const struct emu_experiment emu_x1_experiments[];
extern const struct emu_experiment emu_xc_experiments[];
extern const struct emu_experiment emu_xd1_experiments[];
extern const struct emu_experiment emu_xt3_experiments[];

const struct emu_experiment *const emu_experiment_tables[] = {
    emu_bgl_experiments,     emu_xc_experiments,  emu_titan_experiments,
    emu_seastar_experiments, emu_xt3_experiments, emu_x1_experiments,
    emu_xd1_experiments,     emu_cmp_experiments, NULL,
};
