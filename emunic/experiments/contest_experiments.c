/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Whom a router's output takes: rows of OWN-XC and OWN-BGL. As in probe_experiments.c, the arithmetic stands beside
 * each row and was there before the first run.
 */
#include "emunic/experiments/contest.h"

/* ---- Blue Gene/L: a midplane ---- */

#define AT(x, y, z) ((x) + 8 * ((y) + 8 * (z)))

/* Two of these on the way to (0,2,0), which leave (0,1,0) by the same output: straight on, and round a corner. */
#define STRAIGHT .src = AT(0, 0, 0), .dst = AT(0, 2, 0)
#define CORNER   .src = AT(1, 1, 0), .dst = AT(0, 2, 0)

/*
 * Packets of 256 bytes stream straight on; their channel is full. One that waits at the corner is asked for whenever
 * the output is free.
 *
 * Fullness decides in 75 of 100 cases and takes the stream, chance in the others and takes either: one in eight is the
 * chunk's. A response of up to 256 bytes has to wait for one packet, the one that it meets on the link.
 *
 * A request and a response stream round the corner together. Their receiver asks for one of them in a cycle, so against
 * a stream straight on, by chance alone, they get half; if it asked for both, two thirds.
 */
static const struct contest_row bgl[] = {
    { "passing_a_chunk",
      CONTEST_PASSING,
      NULL,
      40000,
      EMU_MODE_DETERMINISTIC,
      { { STRAIGHT, .units = 256 }, { CORNER, .units = 32, .most = 1, .is_passed = true } },
      .src = 1 / (0.25 / 2),
      .tol = 0.1 },
    { "passing_a_response",
      CONTEST_PASSING,
      NULL,
      2000,
      EMU_MODE_DETERMINISTIC,
      { { STRAIGHT, .units = 256 },
        { CORNER, .units = 256, .traffic_class = EMU_TRAFFIC_RESPONSE, .most = 1, .is_passed = true } },
      .src = 1,
      .tol = 0.02 },
    { "requests_of_a_receiver",
      CONTEST_PASSING,
      "router.response_first=0,router.fullest_percent=0",
      40000,
      EMU_MODE_DETERMINISTIC,
      { { STRAIGHT, .units = 256 },
        { CORNER, .units = 256, .is_passed = true },
        { CORNER, .units = 256, .traffic_class = EMU_TRAFFIC_RESPONSE, .is_passed = true } },
      .src = 1,
      .tol = 0.06 },
    { "injected_beside_a_stream",
      CONTEST_PASSED,
      NULL,
      2000,
      EMU_MODE_DETERMINISTIC,
      { { STRAIGHT, .units = 256 },
        { .src = AT(0, 1, 0), .dst = AT(0, 2, 0), .units = 32, .most = 1, .is_passed = true } },
      .src = 0 },
    /* Slow links along Y and Z, to which a receiver's request and response go: 270 bytes at 0.14 Gb/s. */
    { "transfers_of_a_receiver",
      CONTEST_AT_ONCE,
      "links.y.gbps_per_lane=0.14,links.z.gbps_per_lane=0.14",
      2000,
      EMU_MODE_DETERMINISTIC,
      { { .src = AT(1, 1, 0), .dst = AT(0, 2, 0), .units = 256 },
        { .src = AT(1, 1, 0), .dst = AT(0, 1, 1), .units = 256, .traffic_class = EMU_TRAFFIC_RESPONSE } },
      .packet_ns = 270 * 8 / 0.14,
      .src = 2,
      .tol = 0.02 },
    { 0 },
};

/* ---- Aries: puts of three NICs of a router to the next one, and the answers of the fourth ---- */

#define SLOW_GREEN "links.green.gbps_per_lane=1"

static const struct contest_row aries[] = {
    { "passing_a_response",
      CONTEST_PASSING,
      SLOW_GREEN,
      4000,
      EMU_MODE_IN_ORDER,
      { { .src = 0, .dst = 4, .units = 14 },
        { .src = 1, .dst = 5, .units = 14 },
        { .src = 2, .dst = 6, .units = 14 },
        { .src = 3, .dst = 7, .units = 1, .traffic_class = EMU_TRAFFIC_RESPONSE, .most = 1, .is_passed = true } },
      .src = 1,
      .tol = 0.02 },
    { 0 },
};

int contest_bgl(struct emu_exp *x)
{
    return contest_report(x, "bluegene-l", bgl);
}

int contest_xc(struct emu_exp *x)
{
    return contest_report(x, "aries", aries);
}
