/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Flows of puts between nodes in the packet simulator, as TopoBW makes them: each node sends full packets to its
 * destinations in turn, as fast as its NIC makes them and as long as not too many are without response; each packet is
 * answered. What arrives is counted per flow, and whether it arrives in order.
 */
#ifndef EMUNIC_EXPERIMENTS_PUT_FLOWS_H
#define EMUNIC_EXPERIMENTS_PUT_FLOWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "emunic/fabric/machine.h"
#include "emunic/fabric/sim/sim.h"

#define EMU_FLOWS_PER_NODE 8 /* that one node sends */

struct emu_flow_spec {
    uint32_t src_nid;
    uint32_t dst_nid;
};

struct emu_flows_options {
    uint64_t gap_ps; /* a NIC sends a packet so often */
    uint32_t window; /* packets of a node without response; 0: the machine's nic.outstanding_packets */
    enum emu_route_mode mode;
    uint64_t seed;
    uint32_t n_threads;
};

struct emu_flows;

/* -EINVAL: a nid that does not exist, or more flows from one node than EMU_FLOWS_PER_NODE; what emu_sim_create()
 * returns. */
int emu_flows_create(const struct emu_machine *m, const struct emu_fault_map *faults, const struct emu_flow_spec *flows,
                     size_t n_flows, const struct emu_flows_options *options, struct emu_flows **f_out);
void emu_flows_destroy(struct emu_flows *f); /* NULL is fine */

struct emu_sim *emu_flows_sim(struct emu_flows *f);

/* Lets time pass. -EIO: packets in the network that can never move. */
int emu_flows_run(struct emu_flows *f, uint64_t duration_ps);

/* Counts to zero, from now on. */
void emu_flows_reset(struct emu_flows *f);

/* Payload that arrived since the last reset, bytes per second. */
double emu_flows_rate(const struct emu_flows *f, size_t flow);
double emu_flows_total_rate(const struct emu_flows *f);

/* A node sends a packet so often from now on. */
void emu_flows_set_gap(struct emu_flows *f, uint32_t nid, uint64_t gap_ps);

/* Quiesce: no node makes a packet any more; responses go on. And release. */
void emu_flows_pause(struct emu_flows *f, bool is_paused);

struct emu_flows_counts {
    uint64_t sent; /* since the start, responses left out */
    uint64_t arrived;
    uint64_t answered;
    uint64_t lost;
    uint64_t reordered; /* arrived behind a later one of the same flow */
};

void emu_flows_counts(const struct emu_flows *f, struct emu_flows_counts *counts_out);

#endif
