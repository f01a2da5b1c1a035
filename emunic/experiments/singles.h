/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Measurements of the experiments OWN- that are too different from each other for rows of a table: how many links of a
 * switch carry packets, where a packet to a published name arrives, how often routers tell their loads, how many
 * packets and reductions are under way. Each reports one figure of kind S and returns what emu_exp_machine() returns.
 */
#ifndef EMUNIC_EXPERIMENTS_SINGLES_H
#define EMUNIC_EXPERIMENTS_SINGLES_H

#include "emunic/experiments/experiment.h"

/* On the largest machine, by this key, that its switches suffice for: those of the busiest switch. */
int single_ports(struct emu_exp *x, const char *machine, const char *key);

int single_named_node(struct emu_exp *x);  /* of a Cray XC with twelve columns of cabinets */
int single_load_period(struct emu_exp *x); /* of Aries, in clocks */
int single_reductions(struct emu_exp *x);  /* of Aries: by the collective engines of a NIC */
int single_under_way(struct emu_exp *x);   /* of Blue Gene/L: packets of one node without answer */

#endif
