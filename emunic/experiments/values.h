/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Values of machine files that no figure of a source feels (values.c), and the experiments that hold them against their
 * arithmetic (key_experiments.c).
 *
 *     const struct emu_value emu_values[] = {
 *         { "aries", "ce_engines", "1", 4, "nic.ce_engines" },
 *         { 0 },
 *     };
 *     r = emu_values_report(x, "aries", "");
 */
#ifndef EMUNIC_EXPERIMENTS_VALUES_H
#define EMUNIC_EXPERIMENTS_VALUES_H

#include "emunic/experiments/experiment.h"

struct emu_value {
    const char *machines; /* names of files */
    const char *name;     /* of the figure */
    const char *unit;
    double src;
    const char *formula;
};

extern const struct emu_value emu_values[]; /* the last one has no name */

/* Reports those of a machine, of kind A. What emu_exp_machine() returns. */
int emu_values_report(struct emu_exp *x, const char *machine, const char *prefix);

int emu_values_xc(struct emu_exp *x);  /* KEY-XC */
int emu_values_bgl(struct emu_exp *x); /* KEY-BGL */
int emu_values_xd1(struct emu_exp *x); /* KEY-XD1 */

#endif
