/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Figures over several runs or nodes: mean with its confidence interval, fairness, and the search for saturation.
 * Pure functions, any thread.
 */
#ifndef EMUNIC_EXPERIMENTS_STATISTICS_H
#define EMUNIC_EXPERIMENTS_STATISTICS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Of independent values, such as one figure with several seeds. All 0 if there are none. */
struct emu_sample {
    size_t n;
    double mean;
    double half_95; /* half of the 95 % confidence interval of the mean (Student's t); 0 with fewer than two values */
    double min;
    double max;
};

struct emu_sample emu_sample_of(const double *values, size_t n);

/* Jain's fairness index, (sum x)^2 / (n sum x^2): 1 if all are equal, 1/n if one has everything. 1 if all are 0.
 * Source: R. Jain, D. Chiu, W. Hawe, DEC TR-301, 1984. */
double emu_jain_index(const double *values, size_t n);

/* ---- saturation ---- */

/* A load is followed if this part of what is offered is accepted. */
#define EMU_SATURATION_SHARE 0.95
/* The search ends when the two loads are this close, as a part of the higher one. */
#define EMU_SATURATION_WIDTH 0.01
#define EMU_SATURATION_MAX   4.0    /* no load above this is tried */
#define EMU_SATURATION_MIN   0.0001 /* and none below this */

/*
 * Bisection for the load at which accepted throughput stops following the offered load. It begins at load 1, doubles or
 * halves until one load is followed and another is not, then takes the middle. It rests on one assumption: a network
 * that follows a load follows each lower one. The caller runs what _next() asks for:
 *
 *   struct emu_saturation s = { 0 };
 *   while (emu_saturation_next(&s, &load))
 *       emu_saturation_tell(&s, load, accepted_of(load) / offered_of(load));
 */
struct emu_saturation {
    double followed; /* highest load that was followed; 0: none */
    double refused;  /* lowest load that was not; 0: none */
    uint32_t n_loads;
};

/* False: done. */
bool emu_saturation_next(const struct emu_saturation *s, double *load_out);
void emu_saturation_tell(struct emu_saturation *s, double load, double accepted_share);

#endif
