/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The experiments of SeaStar machines (spec/machines.md 4.5), one function each; the table is in seastar_experiments.c.
 */
#ifndef EMUNIC_EXPERIMENTS_SEASTAR_EXPERIMENTS_H
#define EMUNIC_EXPERIMENTS_SEASTAR_EXPERIMENTS_H

#include "emunic/experiments/experiment.h"

#define EMU_XT3_SPEC      "seastar"
#define EMU_REDSTORM_SPEC "seastar:x=27,wrap_x=0"

/* seastar_nic.c: latency and bandwidth between two nodes. */
int emu_seastar_latency(struct emu_exp *x);   /* SEASTAR-1 */
int emu_seastar_asymptote(struct emu_exp *x); /* SEASTAR-2 */
int emu_seastar_put_100k(struct emu_exp *x);  /* SEASTAR-3 */
int emu_seastar_get_100k(struct emu_exp *x);  /* SEASTAR-4 */
int emu_seastar_both_ways(struct emu_exp *x); /* SEASTAR-5 */
int emu_seastar_half_peak(struct emu_exp *x); /* SEASTAR-6 */
int emu_seastar_step(struct emu_exp *x);      /* SEASTAR-7 */
int emu_seastar_stream(struct emu_exp *x);    /* SEASTAR-8 */
int emu_seastar_offload(struct emu_exp *x);   /* SEASTAR-9 */
int emu_seastar_ceilings(struct emu_exp *x);  /* SEASTAR-10 */
int emu_seastar_duplex(struct emu_exp *x);    /* SEASTAR-12 */

/* seastar_errors.c */
int emu_seastar_errors(struct emu_exp *x); /* SEASTAR-11 */

/* seastar_counts.c: counted on the built machine. */
int emu_seastar_xt3(struct emu_exp *x);   /* XT3-1 */
int emu_seastar_audit(struct emu_exp *x); /* AUD-XT3 */

#endif
