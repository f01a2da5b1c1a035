/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Where a call is killed: places among its instructions, drawn by a seed, so that a test ends in bounded time however
 * long the call is.
 *
 * The instructions are divided into equal parts and a place is drawn in each, so places are everywhere. With as many
 * parts as instructions that is each of them. EMU_DEATH_POINTS says how many; EMU_DEATH_ALL=1 means 250. The places
 * of a call depend on the seed (seed.h) and the call's number alone, and are printed: the same seed gives the same
 * places, whatever other calls do.
 */
#ifndef TESTS_COMMON_KILL_POINTS_H
#define TESTS_COMMON_KILL_POINTS_H

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>

#include "emunic/fabric/random.h"

#define KILL_POINTS_OF_ALL 250u

struct kill_points {
    struct emu_random random;
    unsigned n_steps; /* of the call */
    unsigned n_parts;
    unsigned n_drawn;
};

/* `usual`: without a variable. */
static inline unsigned kill_points_wanted(unsigned usual)
{
    const char *points = getenv("EMU_DEATH_POINTS");

    if (points)
        return (unsigned)strtoul(points, NULL, 10);
    return getenv("EMU_DEATH_ALL") ? KILL_POINTS_OF_ALL : usual;
}

static inline struct kill_points kill_points_of(uint64_t seed, unsigned call, unsigned n_steps, unsigned n_points)
{
    struct kill_points points = { .random = { .state = emu_random_mix(seed + 1000003u * call) },
                                  .n_steps = n_steps,
                                  .n_parts = n_points < n_steps ? n_points : n_steps };

    printf("# call %u: %u instructions, seed %" PRIu64 ", killed before instruction:", call, n_steps, seed);
    fflush(stdout);
    return points;
}

/* The next place in *steps_out, printed; false when there are no more. */
static inline bool kill_points_next(struct kill_points *points, unsigned *steps_out)
{
    uint64_t begin = (uint64_t)points->n_drawn * points->n_steps;
    uint64_t end = begin + points->n_steps;

    if (points->n_drawn == points->n_parts) {
        printf("\n");
        return false;
    }
    begin /= points->n_parts;
    end /= points->n_parts;
    *steps_out = (unsigned)(begin + emu_random_below(&points->random, end - begin));
    points->n_drawn++;
    printf(" %u", *steps_out);
    fflush(stdout);
    return true;
}

#endif
