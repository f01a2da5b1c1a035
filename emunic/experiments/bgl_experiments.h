/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Inside the component: the functions of Blue Gene/L's experiments, for their table (bgl_analytic.c).
 */
#ifndef EMUNIC_EXPERIMENTS_BGL_EXPERIMENTS_H
#define EMUNIC_EXPERIMENTS_BGL_EXPERIMENTS_H

#include "emunic/experiments/experiment.h"

/* bgl_load.c */
int bgl_run_response(struct emu_exp *x); /* BGL-2 */
int bgl_run_policies(struct emu_exp *x); /* BGL-4 */
int bgl_run_threads(struct emu_exp *x);  /* BGL-17 */
int bgl_run_priority(struct emu_exp *x); /* BGL-19 */

/* bgl_hot.c */
int bgl_run_hot_buffers(struct emu_exp *x);  /* BGL-3 */
int bgl_run_hot_policies(struct emu_exp *x); /* BGL-5 */
int bgl_run_escapes(struct emu_exp *x);      /* BGL-7 */

/* bgl_exchange.c */
int bgl_run_exchange(struct emu_exp *x);          /* BGL-6, BGL-6b */
int bgl_run_hardware_exchange(struct emu_exp *x); /* BGL-10 */
int bgl_run_hot_spot(struct emu_exp *x);          /* BGL-11 */
int bgl_run_gap(struct emu_exp *x);               /* BGL-14 */
int bgl_run_subsets(struct emu_exp *x);           /* BGL-15 */

/* bgl_deadlock.c */
int bgl_run_deadlock(struct emu_exp *x); /* BGL-8 */

/* bgl_messages.c */
int bgl_run_ping_pong(struct emu_exp *x); /* BGL-9 */
int bgl_run_errors(struct emu_exp *x);    /* BGL-12 */
int bgl_run_broadcast(struct emu_exp *x); /* BGL-13 */

#endif
