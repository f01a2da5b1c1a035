/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The experiments of Cray XC (spec/machines.md 2.5), one function each; the table is in xc.c.
 */
#ifndef EMUNIC_EXPERIMENTS_XC_H
#define EMUNIC_EXPERIMENTS_XC_H

#include "emunic/experiments/experiment.h"

/* xc_counts.c: counted on the built machine. */
int emu_xc_bisection(struct emu_exp *x);       /* XC-5 */
int emu_xc_group_bisection(struct emu_exp *x); /* XC-17 */
int emu_xc_components(struct emu_exp *x);      /* XC-18 */
int emu_xc_optical_cables(struct emu_exp *x);  /* XC-19 */
int emu_xc_largest(struct emu_exp *x);         /* XC-21 */
int emu_xc_fat_tree(struct emu_exp *x);        /* XC-26 */
int emu_xc_upgrade(struct emu_exp *x);         /* XC-33 */
int emu_xc_rule_table(struct emu_exp *x);      /* XC-51 */

/* xc_paths.c: ways of packets, without time. */
int emu_xc_hops(struct emu_exp *x);         /* XC-23 */
int emu_xc_optical_hops(struct emu_exp *x); /* XC-27 */
int emu_xc_audit(struct emu_exp *x);        /* AUD-XC */

/* xc_links.c: arithmetic of links and NIC. */
int emu_xc_peaks(struct emu_exp *x);      /* XC-7 */
int emu_xc_undetected(struct emu_exp *x); /* XC-28 */

/* xc_traffic.c: what the network carries, simulated. */
int emu_xc_flits(struct emu_exp *x);      /* XC-6 */
int emu_xc_ports(struct emu_exp *x);      /* XC-10 */
int emu_xc_bit_errors(struct emu_exp *x); /* XC-29 */
int emu_xc_lanes(struct emu_exp *x);      /* XC-30 */

/* xc_adaptive.c: adaptive routing, simulated. */
int emu_xc_global_bandwidth(struct emu_exp *x); /* XC-22 */
int emu_xc_three_policies(struct emu_exp *x);   /* XC-24 */
int emu_xc_nonminimal_share(struct emu_exp *x); /* XC-25 */

/* xc_shapes.c: the same on six shapes. */
int emu_xc_shapes_bound(struct emu_exp *x);    /* LOAD-12 */
int emu_xc_shapes_policies(struct emu_exp *x); /* LOAD-13 */
int emu_xc_shapes_share(struct emu_exp *x);    /* LOAD-14 */

/* xc_nic.c: what programs measure, on the model of NICs and hosts. */
int emu_xc_put_latency(struct emu_exp *x);     /* XC-1 */
int emu_xc_get_latency(struct emu_exp *x);     /* XC-2 */
int emu_xc_mpi_latency(struct emu_exp *x);     /* XC-3 */
int emu_xc_small_latencies(struct emu_exp *x); /* XC-4 */
int emu_xc_put_bandwidth(struct emu_exp *x);   /* XC-8 */
int emu_xc_half_peak(struct emu_exp *x);       /* XC-9 */
int emu_xc_launch_rate(struct emu_exp *x);     /* XC-11 */
int emu_xc_mpi_bandwidth(struct emu_exp *x);   /* XC-12 */
int emu_xc_thresholds(struct emu_exp *x);      /* XC-13 */
int emu_xc_outstanding(struct emu_exp *x);     /* XC-14 */
int emu_xc_atomics(struct emu_exp *x);         /* XC-16 */
int emu_xc_hop_latency(struct emu_exp *x);     /* XC-20 */
int emu_xc_netlink(struct emu_exp *x);         /* XC-32 */
int emu_xc_placement(struct emu_exp *x);       /* XC-34 */

/* xc_faults.c */
int emu_xc_failures(struct emu_exp *x); /* XC-31 */
int emu_xc_clock(struct emu_exp *x);    /* XC-46 */

/* xc_allreduce.c */
int emu_xc_allreduce(struct emu_exp *x); /* XC-15 */

#endif
