/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Curves of MPI messages over size, as benchmarks between two processes measure them on the model, and the published
 * points beside them.
 *
 *     struct emu_nic_setup setup = { .machine = m, .host = *emu_machine_node_params(m), .seed = 1 };
 *     struct emu_message_pair pair;
 *     struct emu_message_point point;
 *
 *     emu_message_pair_of(m, &pair);
 *     emu_message_point(&setup, &pair, 65536, &point);
 */
#ifndef EMUNIC_EXPERIMENTS_MESSAGE_CURVE_H
#define EMUNIC_EXPERIMENTS_MESSAGE_CURVE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "emunic/model/nic_model.h"

#define EMU_MESSAGE_BYTES_MAX (4u << 20)
#define EMU_MESSAGE_SIZES_MAX 40

struct emu_message_pair {
    struct emu_nic_proc from, to;
};

/* Process 0 of node 0 and of the first node behind another router. -ENOENT: there is none. */
int emu_message_pair_of(const struct emu_machine *m, struct emu_message_pair *pair_out);

struct emu_message_point {
    uint32_t bytes;
    bool is_rendezvous;
    double latency_us;        /* half of a ping-pong */
    double pingpong_mb_per_s; /* bytes / latency, 10^6 as all rates */
    double stream_mb_per_s;   /* many messages one way, several under way */
    double swap_us;           /* both send at once and go on when both messages are there */
    double swap_mb_per_s;     /* both directions together */
    double both_mb_per_s;     /* streams in both directions, together */
};

/* Simulates one size: about 30 messages of it. Errors are those of nic_scenario.h. */
int emu_message_point(const struct emu_nic_setup *setup, const struct emu_message_pair *pair, uint32_t bytes,
                      struct emu_message_point *point_out);

/*
 * Sizes of a curve, rising: powers of two from 1, those of published points, the last eager size and the first that is
 * not. Those that are not from `min` to `max` are left out. Returns their number.
 */
size_t emu_message_sizes(const struct emu_machine *m, uint32_t min, uint32_t max,
                         uint32_t sizes_out[EMU_MESSAGE_SIZES_MAX]);

/* A figure of spec/machines.md. */
struct emu_message_published {
    const char *machine; /* emu_machine_name() */
    uint32_t bytes;
    const char *what; /* a member of struct emu_message_point: "latency_us" */
    double value;
    const char *source; /* the row that has it */
};

/* The i-th of all machines; NULL behind the last. */
const struct emu_message_published *emu_message_published_at(size_t i);

#endif
