/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the experiments on the machines of CUG05 (X1, XD1, XT3) share: opening a machine with its host, latency and
 * bandwidth of one pair, simultaneous swaps of many pairs, lists of pairs, and the audit.
 *
 * Terms of the source. One way, or "uni": half a ping-pong. Swap, or "bi": both ends send at once and go on when both
 * messages are there; its rate counts both directions.
 */
#ifndef EMUNIC_EXPERIMENTS_CUG_H
#define EMUNIC_EXPERIMENTS_CUG_H

#include <stddef.h>
#include <stdint.h>

#include "emunic/experiments/experiment.h"
#include "emunic/model/nic_scenario.h"

enum cug_api {
    CUG_MPI = 0,
    CUG_SHMEM,
    CUG_CAF,
};

#define CUG_KIB 1024u
#define CUG_MB  1000000u /* spec/machines.md 0.4 */

/* One machine and its host, for as many runs as wanted. */
struct cug {
    struct emu_exp *x;     /* borrowed */
    struct emu_machine *m; /* owned */
    struct emu_nic_setup setup;
    int error; /* of the first run that failed; all later ones do nothing */
};

/* The machine must have a host section: -EINVAL. */
int cug_open(struct emu_exp *x, const char *spec, struct cug *c_out);
void cug_close(struct cug *c); /* of one that was opened, or all zero */

/* Half a ping-pong, us. NAN after a failure. */
double cug_one_way_us(struct cug *c, enum cug_api api, struct emu_nic_proc a, struct emu_nic_proc b, uint32_t bytes);
/* The same as bandwidth, 10^6 bytes/s. */
double cug_uni(struct cug *c, struct emu_nic_proc a, struct emu_nic_proc b, uint32_t bytes);
/* A swap of one pair: both directions, 10^6 bytes/s. */
double cug_bi(struct cug *c, struct emu_nic_proc a, struct emu_nic_proc b, uint32_t bytes);

struct cug_rates {
    double min; /* of one pair, both directions, 10^6 bytes/s */
    double max;
    double sum;
};

/* Swaps of all pairs at the same time, measured while all are at it. rates: n_pairs entries, or NULL. */
struct cug_rates cug_swaps(struct cug *c, const struct emu_nic_pair *pairs, size_t n_pairs, uint32_t bytes,
                           double *rates);

/* Process `rank` when nodes are filled one after another with `ppn` processes. */
struct emu_nic_proc cug_proc(uint32_t rank, uint32_t ppn);
/* Pairs i <-> i + apart, i = 0 .. n - 1. */
void cug_pairs(uint32_t n, uint32_t apart, uint32_t ppn, struct emu_nic_pair *pairs_out);

/* One metric per audit of a machine: channels and dependencies as detail, acyclic=1 as the verdict. With faults: so
 * many cables are cut at random, by the experiment's seed. */
int cug_audit(struct emu_exp *x, const char *spec, uint32_t n_faults);

#endif
