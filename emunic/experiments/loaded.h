/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A machine's network under a load that lasts: each node sends to one destination, or to all; what arrives and how busy
 * links are is measured over a span behind a warm-up. And the experiments that use it.
 *
 *     struct loaded_spec spec = { .warm_ns = 5000, .measure_ns = 20000 };
 *     struct loaded load;
 *     int r = loaded_open(x, "x1", &load);
 *
 *     if (r < 0)
 *         return r;
 *     loaded_send(&load, 0, 8);
 *     loaded_run(&load, &spec);
 *     rate = loaded_payload(&load, 8, 1);
 *     loaded_close(&load);
 */
#ifndef EMUNIC_EXPERIMENTS_LOADED_H
#define EMUNIC_EXPERIMENTS_LOADED_H

#include <stdbool.h>
#include <stdint.h>

#include "emunic/experiments/experiment.h"
#include "emunic/experiments/traffic.h"

#define LOADED_ANY (EMU_NOBODY - 1) /* as a destination: every other node equally likely, those of probes left out */

struct loaded_spec {
    double payload_gbs; /* of a sender, mean, at random times; 0: as fast as it can */
    double wire_gbs;    /* the same with headers; used if the one before is 0 */
    bool has_ends;      /* NICs have their rates; else they are as fast as the processor's link */
    bool is_answered;   /* each packet by a header */
    uint32_t window;    /* packets of a node without answer; needs is_answered; 0: no limit */
    enum emu_route_mode mode;
    uint32_t warm_ns;
    uint32_t measure_ns;
};

struct loaded {
    struct emu_exp *x;            /* borrowed */
    struct emu_machine *m;        /* owned */
    struct emu_fault_map *faults; /* owned */
    uint32_t *to;                 /* owned; by nid: destination, EMU_NOBODY or LOADED_ANY */
    bool *is_probed;              /* owned; by nid: gets packets of its probe alone */
    struct emu_generator *gen;    /* owned */
    struct emu_sim *sim;          /* owned; both of the last run */
    double measured_ns;
    int error; /* of the first run that failed; all later ones do nothing */
};

/* What emu_exp_machine() returns; -ENOMEM. */
int loaded_open(struct emu_exp *x, const char *machine, struct loaded *l_out);
void loaded_close(struct loaded *l);

void loaded_silence(struct loaded *l); /* nobody sends */
void loaded_send(struct loaded *l, uint32_t src_nid, uint32_t dst_nid);
void loaded_uniform(struct loaded *l);                                   /* all send to all */
void loaded_probe(struct loaded *l, uint32_t src_nid, uint32_t dst_nid); /* from one to a node that no other sends to */

/* Simulates. A failure is kept in `error`, and all figures are NAN then. */
void loaded_run(struct loaded *l, const struct loaded_spec *spec);

/* Of packets that arrived at `n` nodes from `first` on: 10^9 bytes/s of payload, or with headers. */
double loaded_payload(const struct loaded *l, uint32_t first, uint32_t n);
double loaded_wire(const struct loaded *l, uint32_t first, uint32_t n);

/* Mean of the packets that arrived at a node, created to delivered. */
double loaded_latency_ns(const struct loaded *l, uint32_t nid);

/* Mean share of the time in which links were busy: those that `has` says yes to. */
double loaded_busy(const struct loaded *l, bool (*has)(const struct emu_machine *m, const struct emu_link *link));

/* ---- experiments ---- */

int emu_x1_saturated(struct emu_exp *x);       /* LOAD-1 */
int emu_x1_half(struct emu_exp *x);            /* LOAD-2 */
int emu_xd1_saturated(struct emu_exp *x);      /* LOAD-3 */
int emu_xd1_half(struct emu_exp *x);           /* LOAD-4 */
int emu_xt3_saturated(struct emu_exp *x);      /* LOAD-5 */
int emu_xt3_half(struct emu_exp *x);           /* LOAD-6 */
int emu_redstorm_saturated(struct emu_exp *x); /* LOAD-7 */
int emu_redstorm_half(struct emu_exp *x);      /* LOAD-8 */
int emu_gemini_nics(struct emu_exp *x);        /* LOAD-9 */
int emu_aries_nics(struct emu_exp *x);         /* LOAD-10 */
int emu_xd1_tree(struct emu_exp *x);           /* LOAD-11 */

#endif
