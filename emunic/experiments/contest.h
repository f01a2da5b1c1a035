/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Packets that contend for an output of a router, a row of a table each. A few flows are in the network at once and
 * send as fast as their link lets them, or with one packet under way. How many of each arrive tells how the router
 * chooses, and follows from its parameters by arithmetic, as in probe.h.
 */
#ifndef EMUNIC_EXPERIMENTS_CONTEST_H
#define EMUNIC_EXPERIMENTS_CONTEST_H

#include "emunic/experiments/experiment.h"
#include "emunic/fabric/sim/routing.h"

#define CONTEST_FLOWS 4

enum contest_figure {
    CONTEST_PASSING = 0, /* packets of the other flows, per one of those that are passed */
    CONTEST_PASSED,      /* packets of those that are passed */
    CONTEST_AT_ONCE,     /* links that are busy on average, if a packet keeps one busy for packet_ns */
};

struct contest_flow {
    uint32_t src, dst; /* nids */
    uint32_t units;    /* of a packet; 0: no flow */
    enum emu_traffic_class traffic_class;
    uint32_t most;  /* packets under way; 0: no limit */
    bool is_passed; /* by packets of the other flows */
};

struct contest_row {
    const char *name;
    enum contest_figure figure;
    const char *with; /* overrides */
    uint32_t n;       /* packets that are counted, of all flows */
    enum emu_route_mode mode;
    struct contest_flow flows[CONTEST_FLOWS]; /* of one node and class at most one */
    double packet_ns;
    double src;
    double tol; /* a fraction; 0: exact */
};

/* Reports them, of kind S; the last one has no name. What emu_exp_machine() returns. */
int contest_report(struct emu_exp *x, const char *machine, const struct contest_row *rows);

/* ---- of OWN-XC and OWN-BGL ---- */

int contest_xc(struct emu_exp *x);
int contest_bgl(struct emu_exp *x);

#endif
