/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Jobs that must end correctly, beside processes that mean harm. One emunic: the jobs run in its first domain, the
 * hostile processes are members of a second one on the same nodes. A process of its own, the keeper, keeps them coming.
 */
#ifndef TESTS_FUZZ_BESIDE_H
#define TESTS_FUZZ_BESIDE_H

#include <stddef.h>
#include <stdint.h>

#include "emunic/fabric/random.h"
#include "tests/common/fixture.h"

#define HOSTILE_PTAG   99u
#define HOSTILE_COOKIE 0x666u
#define HOSTILES_MAX   8u
#define JOB_RANKS      3u

struct beside {
    struct fx fx;
    struct emu_session hostile_domain;
    struct emu_random seed;
    uint64_t n_jobs; /* that have ended */
    int fds;         /* of emunic, before there was anybody */
    int memfd_maps;
};

/* Who comes again and again, each time with another seed: one process at a time for each number from 0 to n - 1. */
struct hostiles {
    unsigned n;        /* HOSTILES_MAX at most */
    unsigned n_ending; /* the first of them end by themselves; the run fails when one does not */
    uint64_t life_ms;  /* the others are killed, between 100 ms and so much later */
    void (*body)(unsigned number, uint64_t seed); /* does not return */
    void (*ended)(unsigned number, int status);   /* in the keeper; may end the run with _exit() */
};

/*
 * Starts emunic with both domains. Returns zeroed memory for counts, shared with all processes; NULL: it did not work.
 */
void *beside_start(struct beside *b, uint64_t own_seed, size_t counts_bytes);

/* As fx_stop(). */
int beside_stop(struct beside *b);

/* Asserts that jobs of JOB_RANKS processes, each with a seed behind `arg`, all end well, for EMU_FUZZ_SECONDS. */
void beside_run_jobs(struct beside *b, const struct hostiles *hostiles, int (*body)(struct fx_rank *rank));

/* Asserts that emunic is alive and has let go of everything. */
void beside_assert_nothing_left(struct beside *b);

/* What rank `rank` of a job has at byte i of its memory in a round. */
static inline uint8_t beside_pattern(unsigned rank, unsigned round, uint64_t i)
{
    return (uint8_t)(rank * 89 + round * 31 + i * 7 + (i >> 8));
}

#endif
