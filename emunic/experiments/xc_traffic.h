/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Traffic on a Dragonfly until it is steady, in one call.
 */
#ifndef EMUNIC_EXPERIMENTS_XC_TRAFFIC_H
#define EMUNIC_EXPERIMENTS_XC_TRAFFIC_H

#include <stdbool.h>
#include <stdint.h>

#include "emunic/experiments/experiment.h"
#include "emunic/experiments/traffic.h"
#include "emunic/fabric/fault_map.h"
#include "emunic/fabric/sim/sim.h"

/* Puts of a full packet with their responses, as many under way as a NIC can keep. */
struct emu_xc_run {
    enum emu_pattern pattern;
    enum emu_route_mode mode;
    double gap_ps;           /* 0: saturation */
    uint16_t units;          /* 0: a put of 64 B */
    uint16_t response_units; /* 0: its answer */
    uint64_t window_ps;      /* 0: as long as spec/machines.md 0.6 says, less in quick mode */
    bool is_until_steady;    /* windows until two in a row agree, in quick mode too; window_ps does not count */
    double ber;              /* of the lanes of ber_link and of its reverse */
    uint32_t ber_link;
    const struct emu_fault_map *faults;
    const bool *senders;                                                      /* NULL: all */
    uint32_t (*pick)(void *ctx, struct emu_random *random, uint32_t src_nid); /* EMU_PATTERN_CUSTOM */
    void *pick_ctx;
    double *received_out; /* payload at each node, 10^9 bytes/s; NULL: nobody asks */
};

struct emu_xc_result {
    double gb_per_s; /* payload of all nodes, 10^9 */
    double gb_per_s_per_node;
    double nonminimal; /* share of all packets, responses too */
    double hops;       /* of a packet, mean */
    double latency_ps;
    uint64_t measured_ps;
    uint64_t crc_errors;
    uint64_t retransmissions;
    uint64_t corrupt;        /* packets delivered with an error that no check saw */
    double optical_hops;     /* blue links crossed, per packet delivered */
    double flits_per_packet; /* counted on the NICs' links into the network */
    struct emu_sim_totals totals;
    bool is_steady;
};

int emu_xc_saturate(struct emu_exp *x, const struct emu_machine *m, const struct emu_xc_run *run,
                    struct emu_xc_result *result_out);

/*
 * A generator's traffic, watched: what it made, what arrived, what was lost. Counts of all nodes and threads together.
 */
struct emu_xc_watch {
    const struct emu_traffic *inner;
    uint64_t pause_from_ps; /* requests made from here on ... */
    uint64_t pause_to_ps;   /* ... wait until then */
    bool has_dead_router;   /* what its nodes send is not counted: they are gone */
    uint32_t dead_router;
    uint64_t *last_created_ps; /* by nid: of the last request that arrived; NULL: order is not watched */
    _Atomic uint64_t made;
    _Atomic uint64_t delivered;
    _Atomic uint64_t lost; /* calls of lost() */
    _Atomic uint64_t last_lost_ps;
    _Atomic uint64_t corrupt;
    _Atomic uint64_t inversions; /* requests that arrived before an older one */
};

/* For emu_sim_create(); the watch and its inner traffic must outlive the simulation. */
struct emu_traffic emu_xc_watched(struct emu_xc_watch *watch);

/* Payload per wire byte of a put and its response, frames included: 64 % (XC-6). */
double emu_xc_efficiency(const struct emu_machine *m);

/* Spec of the machine of 8 groups: 3 072 nodes, in quick mode 512 with the same bounds. */
const char *emu_xc_eight_groups(const struct emu_exp *x);

#endif
