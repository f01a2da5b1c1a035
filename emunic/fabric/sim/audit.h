/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The deadlock audit: what a routing row says about waiting, held against the theory.
 *
 * The static part builds the channel dependency graph of one machine with its faults: a vertex per (link, virtual
 * channel), an edge where a packet that holds the one may wait for the other. With virtual cut-through a blocked packet
 * sits in one buffer, so the network is free of deadlock if the escape channels alone have no cycle and every other
 * channel can go on to an escape channel. A bubble ring is a cycle that is allowed, as long as it is a plain ring and
 * each packet that enters it leaves room for another.
 *
 * The second part takes packets through the routing, step by step, without time: does the relation name every step
 * that is really offered, is an escape always among them, do rings keep their rule, does every pair arrive.
 *
 * An audit belongs to the caller; one thread at a time. No part of it changes the machine.
 */
#ifndef EMUNIC_FABRIC_SIM_AUDIT_H
#define EMUNIC_FABRIC_SIM_AUDIT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "emunic/fabric/fault_map.h"
#include "emunic/fabric/machine.h"
#include "emunic/fabric/sim/routing.h"

struct emu_audit;

struct emu_audit_channel {
    uint32_t link;
    uint32_t vc;
};

struct emu_audit_result {
    uint64_t n_channels;            /* of links that are up, those of the NICs included */
    uint64_t n_escape_channels;     /* of these */
    uint64_t n_dependencies;        /* between two different channels, each counted once */
    uint64_t n_escape_dependencies; /* from an escape channel to an escape channel */
    uint64_t n_cyclic_channels;     /* escape channels that lie on some cycle */
    uint32_t n_rings;               /* cycles that are plain rings of bubble channels */
    uint32_t n_other_cycles;        /* strongly connected parts that are not */
    uint64_t n_stranded;            /* channels that packets leave again, but never for an escape channel or a NIC */
    uint64_t n_impossible;          /* dependencies on channels that do not exist, are down, or are not adjacent */
    uint32_t escape_vcs[EMU_TRAFFIC_CLASSES];   /* most escape channels of one link that a class of traffic uses */
    bool is_acyclic;                            /* the escape channels have no cycle at all */
    bool class_is_acyclic[EMU_TRAFFIC_CLASSES]; /* those that the class of traffic uses have none */
    bool is_free; /* of deadlock: no cycle but bubble rings, nothing stranded or impossible.
                                        With rings this rests on what emu_audit_walk() finds of the ring rule. */
};

/**
 * Build the graph and judge it. XC with 92 544 nodes, 455 million dependencies: 9.5 s and 310 MB; 19 200 nodes of Titan
 * 0.8 s, 65 536 of BG/L 1.5 s (emu_audit_create() alone, gcc 12 -O2, one core of a busy machine).
 *
 * @param[in] m, routing, faults  Must outlive the audit. faults may be NULL.
 * @retval 0       Done, whatever the verdict.
 * @retval -ENOMEM Out of memory.
 */
int emu_audit_create(const struct emu_machine *m, const struct emu_routing *routing, const struct emu_fault_map *faults,
                     struct emu_audit **audit_out);
void emu_audit_destroy(struct emu_audit *audit); /* NULL is fine */

const struct emu_audit_result *emu_audit_result(const struct emu_audit *audit);

/* A cycle that is no bubble ring, or if there is none a bubble ring; its channels in order, the last waits for the
 * first. Returns its length, 0 if there is no cycle. Lives as long as the audit. */
size_t emu_audit_cycle(const struct emu_audit *audit, const struct emu_audit_channel **channels_out);

struct emu_audit_walk_options {
    enum emu_route_mode mode;
    enum emu_traffic_class traffic_class;
    uint64_t n_pairs;          /* random pairs of nodes; 0: every pair */
    uint32_t walks_per_pair;   /* with other loads and other choices each; 0: one */
    uint32_t max_hops;         /* a packet that is not there by then is lost; 0: 1024 */
    uint32_t packet_units_max; /* largest packet, for the two that a ring's buffer must hold; 0: not checked */
    uint64_t seed;
};

struct emu_audit_walks {
    uint64_t n_walks;
    uint64_t n_arrived;
    uint64_t n_unroutable;     /* refused by start() */
    uint64_t n_dead_ends;      /* accepted, and then no way on */
    uint64_t n_lost;           /* did not arrive within max_hops, or at a wrong node */
    uint64_t n_undeclared;     /* steps offered that dependencies() does not name */
    uint64_t n_no_escape;      /* places where no escape channel and no NIC was among the ways on */
    uint64_t n_unguarded;      /* ways into a bubble ring that do not ask for room for two packets */
    uint64_t n_ring_too_small; /* ring channels whose buffer does not hold two packets */
    uint64_t sum_hops;         /* router to router */
    uint32_t longest_hops;
    uint32_t vcs_used;    /* bit i: some way on used channel i of a link between routers */
    uint32_t bad_src_nid; /* of the first walk that met trouble; both 0 if none did */
    uint32_t bad_dst_nid;
    bool is_clean; /* none of the above but arrivals and unroutable pairs */
};

/**
 * Take packets through the routing, by random choice among all the ways offered.
 *
 * @param[in] unroutable  Called once per pair that start() refuses; may be NULL.
 * @retval 0       Done, whatever was found.
 * @retval -EINVAL A mode or class that does not exist.
 */
int emu_audit_walk(struct emu_audit *audit, const struct emu_audit_walk_options *options,
                   void (*unroutable)(void *ctx, uint32_t src_nid, uint32_t dst_nid), void *ctx,
                   struct emu_audit_walks *walks_out);

/* Says the result in lines of text: counts first, then the cycle by the names of its links, max_links at most. */
void emu_audit_print(const struct emu_audit *audit, size_t max_links, void (*line)(void *ctx, const char *text),
                     void *ctx);

#endif
