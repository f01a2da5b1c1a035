/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The experiments of Titan (spec/machines.md 3.5), one function each; the table is in titan.c. And the thirty nodes of
 * the source's test system, which several of them use.
 */
#ifndef EMUNIC_EXPERIMENTS_TITAN_H
#define EMUNIC_EXPERIMENTS_TITAN_H

#include "emunic/experiments/experiment.h"

#define EMU_TITAN_SPEC "gemini:x=25,y=16,z=24"

/* A row of spec/machines.md Appendix A: what the program printed of a node. */
struct emu_titan_node {
    const char *cname;
    uint32_t nid;
    uint32_t at[3];    /* x, y, z */
    int neighbours[6]; /* ranks; X-, X+, Y-, Y+, Z-, Z+; -1: not one of the thirty */
    int partner;       /* rank of the other node of the Gemini; -1: absent */
};

#define EMU_TITAN_NODES 30

/* titan_nodes.c */
extern const struct emu_titan_node emu_titan_nodes[EMU_TITAN_NODES];

/* titan_counts.c: counted on the built machine. */
int emu_titan_links(struct emu_exp *x);   /* TITAN-1 */
int emu_titan_headers(struct emu_exp *x); /* TITAN-4 */
int emu_titan_tiles(struct emu_exp *x);   /* TITAN-5 */
int emu_titan_system(struct emu_exp *x);  /* TITAN-6 */

/* titan_faults.c: routing around what is missing. */
int emu_titan_audit(struct emu_exp *x);      /* AUD-TITAN */
int emu_titan_turns(struct emu_exp *x);      /* TITAN-10 */
int emu_titan_unroutable(struct emu_exp *x); /* TITAN-11 */

/* titan_topobw.c: pairs of neighbours. */
int emu_titan_rows(struct emu_exp *x);      /* TITAN-2 */
int emu_titan_summaries(struct emu_exp *x); /* TITAN-3 */
int emu_titan_lanes(struct emu_exp *x);     /* TITAN-7 */
int emu_titan_hidden(struct emu_exp *x);    /* TITAN-9 */

/* titan_jobs.c: jobs, throttles, failing links. */
int emu_titan_reroute(struct emu_exp *x);   /* TITAN-12 */
int emu_titan_throttle(struct emu_exp *x);  /* TITAN-13 */
int emu_titan_balanced(struct emu_exp *x);  /* TITAN-14 */
int emu_titan_placement(struct emu_exp *x); /* TITAN-15 */

/* titan_mpi.c */
int emu_titan_mpi(struct emu_exp *x); /* TITAN-17 */

uint64_t emu_titan_gap_ps(const struct emu_machine *m); /* time of a packet in a NIC; 0: its file has none */

#endif
