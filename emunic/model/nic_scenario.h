/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Programs on the NIC model, each in one call: ping-pong, exchange, streams of many pairs.
 *
 *     struct emu_nic_setup setup = { .machine = m, .host = *emu_machine_node_params(m), .seed = 1 };
 *     const struct emu_nic_pingpong p = { .kind = EMU_NIC_PUT, .a = { 0, 0 }, .b = { 4, 0 }, .bytes = 8 };
 *     struct emu_nic_pingpong_result r;
 *
 *     emu_nic_pingpong(&setup, &p, &r);
 *
 * Every one returns 0; an error of emu_nic_model_create() or emu_nic_post(); or -EIO if the program did not come to its
 * end (packets lost, no route, deadlock).
 */
#ifndef EMUNIC_MODEL_NIC_SCENARIO_H
#define EMUNIC_MODEL_NIC_SCENARIO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "emunic/model/nic_model.h"

struct emu_nic_pingpong {
    enum emu_nic_kind kind; /* PUT, LAUNCH, AMO: told, and put back; GET, AMO_FETCH: a alone; MESSAGE */
    enum emu_nic_api api;
    struct emu_nic_proc a, b;
    uint32_t bytes;
    uint32_t rounds; /* 0: 8 */
};

struct emu_nic_pingpong_result {
    uint64_t latency_ps; /* half of a round trip (gets: post to data), mean of all rounds but the first */
    double mbytes_per_s; /* bytes / latency, 10^6 */
};

int emu_nic_pingpong(const struct emu_nic_setup *setup, const struct emu_nic_pingpong *p,
                     struct emu_nic_pingpong_result *result_out);

/* Both send at once, and go on when both their own is sent and the other's is here. */
struct emu_nic_exchange_result {
    uint64_t round_ps;   /* one exchange */
    double mbytes_per_s; /* both directions together */
};

int emu_nic_exchange(const struct emu_nic_setup *setup, const struct emu_nic_pingpong *p,
                     struct emu_nic_exchange_result *result_out);

struct emu_nic_pair {
    struct emu_nic_proc from, to;
};

struct emu_nic_stream {
    enum emu_nic_kind kind;
    enum emu_nic_api api;
    const struct emu_nic_pair *pairs;
    size_t n_pairs;
    bool is_bidirectional; /* each pair sends both ways */
    bool changes_mdh;      /* LAUNCH */
    uint32_t bytes;        /* of one operation */
    uint32_t window;       /* operations of one sender under way; 0: 64 */
    uint64_t warmup_ps;    /* 0: 20 us */
    uint64_t measure_ps;   /* 0: 100 us; what arrives in this time counts */
    uint64_t operations;   /* not 0: no times, each sender does so many and its rate is over its own run */
};

struct emu_nic_stream_result {
    double mbytes_per_s;          /* payload of all pairs and directions together, 10^6 */
    double pair_min_mbytes_per_s; /* of one pair, both directions if it has both */
    double pair_max_mbytes_per_s;
    double operations_per_s; /* all together */
    uint64_t elapsed_ps;     /* measure_ps, or to the end of the last sender */
    uint64_t interrupts;     /* of all hosts, in the whole run */
};

/* pair_mbytes_per_s: n_pairs entries, or NULL. */
int emu_nic_stream(const struct emu_nic_setup *setup, const struct emu_nic_stream *s, double *pair_mbytes_per_s,
                   struct emu_nic_stream_result *result_out);

/* Processes proc 0 .. n - 1 of one node, each with a peer of the same number on the other. Fills n pairs. */
void emu_nic_pairs_between(uint32_t from_nid, uint32_t to_nid, uint32_t n, struct emu_nic_pair *pairs_out);

#endif
