/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Minimal, Valiant's and adaptive routing on one Dragonfly; for the specification's machine and for other shapes.
 */
#ifndef EMUNIC_EXPERIMENTS_XC_ADAPTIVE_H
#define EMUNIC_EXPERIMENTS_XC_ADAPTIVE_H

#include <stdbool.h>
#include <stdio.h>

#include "emunic/experiments/xc_traffic.h"

enum { EMU_XC_LOADS = 6 }; /* 1 to 90 % of a bound */

/* Uniform traffic, adaptive-0, all that NICs can send. */
extern const struct emu_xc_run emu_xc_uniform_adaptive;

static inline const char *emu_xc_state_of(const struct emu_xc_result *result)
{
    return result->is_steady ? "steady" : "not steady";
}

static inline double emu_xc_larger(double a, double b)
{
    return a > b ? a : b;
}

/*
 * Payload per node at saturation, 10^9 bytes/s, of minimal, Valiant's and adaptive routing; one line each into data
 * unless that is NULL.
 */
int emu_xc_saturate_three(struct emu_exp *x, const struct emu_machine *m, enum emu_pattern pattern, double got[3],
                          FILE *data);

/*
 * Reports, under that name, the throughput of group shift with all that NICs can send over that with as much as the
 * best policy takes; shift: as of emu_xc_saturate_three(). The bound of 0.9 is ours.
 */
int emu_xc_report_beyond(struct emu_exp *x, const struct emu_machine *m, const char *name, const double shift[3]);

/* Share of non-minimal packets at shares of what minimal routes can carry: bound, 10^9 bytes/s per node. */
int emu_xc_shares_over_load(struct emu_exp *x, const struct emu_machine *m, double bound, double share[EMU_XC_LOADS],
                            FILE *data);

bool emu_xc_is_rising(const double share[EMU_XC_LOADS]);

#endif
