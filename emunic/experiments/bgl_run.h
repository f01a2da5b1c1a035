/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Inside the component: one simulated run of a Blue Gene/L machine, and its figures as the source gives them. Time is
 * in network cycles: one byte on a link, 40/7 ns.
 */
#ifndef EMUNIC_EXPERIMENTS_BGL_RUN_H
#define EMUNIC_EXPERIMENTS_BGL_RUN_H

#include "emunic/experiments/experiment.h"
#include "emunic/experiments/traffic.h"
#include "emunic/fabric/sim/sim.h"

#define BGL_DIMS 3

struct bgl_run {
    struct emu_machine *m;      /* owned */
    struct emu_generator *gen;  /* owned; NULL: traffic of the experiment's own */
    struct emu_sim *sim;        /* owned */
    struct emu_traffic traffic; /* the generator's, with a look at each delivery */
    uint64_t *last_ps;          /* owned; by nid: its last delivery */
    double cycle_ps;
    uint32_t size[BGL_DIMS];
    uint32_t full_units; /* of a full packet in a buffer: 256 */
    uint32_t wire_units; /* on the wire: 270 */
    uint32_t vcs;        /* of a link */
    uint32_t dynamic_vcs;
};

/* What a simulation counts besides packets and bytes, which costs time; and how nodes end it. */
enum bgl_counts {
    BGL_COUNT_NOTHING = 0,
    BGL_COUNT_OCCUPANCY = 1 << 0,  /* for the figures' occupancy */
    BGL_COUNT_UNBLOCKING = 1 << 1, /* credits that free a blocked packet, in emu_sim_totals() */
    BGL_HAS_ENDS = 1 << 2,         /* finite reception FIFOs that processors empty, injection FIFOs by direction */
};

/* What happened in a stretch of time. */
struct bgl_figures {
    double cycles;
    double utilisation;              /* of all links, 0 .. 1 */
    double utilisation_of[BGL_DIMS]; /* of the links along x, y, z */
    double packets_per_cycle;        /* delivered */
    double payload;                  /* utilisation x 240 / 270 for full packets */
    double response;                 /* cycles, created to delivered, mean */
    double network;                  /* cycles, entered to delivered, mean */
    double escape_share;             /* of the packets on links, those on escape channels; high priority left out */
    double occupancy;                /* mean fill of the normal channels, 0 .. 1 (needs BGL_COUNT_OCCUPANCY) */
    double escape_occupancy;
    uint64_t delivered;
};

/* The machine, without a simulation. */
int bgl_machine(struct emu_exp *x, struct bgl_run *run, const char *spec);

/* Machine, generator and simulation. The generator's seed is the experiment's. Negative errno: nothing to end. */
int bgl_start(struct emu_exp *x, struct bgl_run *run, const char *spec, const struct emu_generator_options *options,
              enum bgl_counts counts);
/* The same with traffic of the experiment's own, after bgl_machine(). On failure the machine is still there. */
int bgl_start_traffic(struct emu_exp *x, struct bgl_run *run, const struct emu_traffic *traffic,
                      const struct emu_fault_map *faults, enum bgl_counts counts);
void bgl_end(struct bgl_run *run);

/* Lets so many cycles pass. */
enum emu_sim_stop bgl_advance(struct bgl_run *run, double cycles);

/* Runs until everything is delivered, in steps that report progress between from and to. */
enum emu_sim_stop bgl_finish(struct emu_exp *x, struct bgl_run *run, uint64_t packets, double from, double to);

/* Of a generator's packets: when the last one arrived, in cycles. */
double bgl_last_delivery(const struct bgl_run *run);

/* Statistics start anew. */
void bgl_reset(struct bgl_run *run);

/* Of the last `cycles` cycles, which are those since the last reset. */
void bgl_figures(const struct bgl_run *run, double cycles, struct bgl_figures *figures_out);

/* Mean gap of a node's full packets to random destinations, so that links are used to this share. */
double bgl_gap_ps(const struct bgl_run *run, double utilisation);

/* Share of the links' time that an exchange of everybody with everybody can use at most, in each dimension:
 * the longest dimension is the bottleneck. */
void bgl_exchange_bound(const uint32_t size[BGL_DIMS], double *all_out, double of_out[BGL_DIMS]);

/* A processor's time to make or take a packet, ns. For runs that stand for measurements of hardware. */
double bgl_packet_start_ns(const struct emu_machine *m);

/* Shortest time of an all-to-all of so many units on the wire per pair, in cycles: N x Lmax / 8 x units. */
double bgl_exchange_cycles(const uint32_t size[BGL_DIMS], double wire_units);

#endif
