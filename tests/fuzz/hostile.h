/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Clients that mean harm: what they may do is decided by the kernel and by emunic, not by them.
 */
#ifndef TESTS_FUZZ_HOSTILE_H
#define TESTS_FUZZ_HOSTILE_H

#include <stdatomic.h>
#include <stdint.h>

/* Exit status of a member that could do what no seal should allow. */
#define HOSTILE_BROKE_A_SEAL 111

/* What happened, counted by all workers in memory that they share with the test. */
struct hostile_counts {
    _Atomic uint64_t workers; /* processes that were started */
    _Atomic uint64_t attaches;
    _Atomic uint64_t thrown_out;     /* connections that emunic ended */
    _Atomic uint64_t scribbles;      /* strokes of random bytes over shared memory */
    _Atomic uint64_t commands;       /* commands published through a sound ring */
    _Atomic uint64_t commands_taken; /* of those, seen taken */
    _Atomic uint64_t messages;
    _Atomic uint64_t replies;
    _Atomic uint64_t replies_good; /* requests that emunic granted */
    _Atomic uint64_t admin_messages;
    _Atomic uint64_t admin_good;
};

/* Where the hostile clients are members. */
struct hostile_target {
    const char *server;
    uint32_t ptag;
    uint32_t cookie;
    const uint32_t *nids;
    uint32_t n_nids;
    uint32_t domain_id; /* fault rules go there: other jobs must end correctly */
    struct hostile_counts *counts;
};

/* Writes random bytes over its segment, sends random and mutated requests and commands, until it is killed. */
_Noreturn void hostile_member(const struct hostile_target *target, uint64_t seed);

/* Emunic's own user with a bad memory: random and mutated messages on the admin socket, all but a shutdown. */
_Noreturn void hostile_admin(const struct hostile_target *target, uint64_t seed);

#endif
