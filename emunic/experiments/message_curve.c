/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Curves of messages over size, and published points. Nothing here is a parameter of a machine: counts of messages
 * follow from the size alone, so that a point takes about as long at any size.
 * Source of the points: spec/machines.md 2.5, 3.5, 4.5, 6.5, 7.5.
 */
#include "emunic/experiments/message_curve.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "emunic/fabric/route.h"
#include "emunic/model/nic_scenario.h"

enum {
    MB = 1000000,
    MIB = 1 << 20,
    ROUNDS = 4,
    STREAM_WINDOW = 8,
    STREAM_BYTES = 4 << 20,
    STREAM_MESSAGES_MIN = 6,
    STREAM_MESSAGES_MAX = 128,
};

/* "1 MB" is 10^6 bytes to CUG05 (spec/machines.md 0.4). TITAN-17's bandwidth has no size; ours is that of its row. */
static const struct emu_message_published published[] = {
    { "aries", 8, "latency_us", 1.3, "XC-3" },
    { "aries", MIB, "pingpong_mb_per_s", 8500, "XC-12" },
    { "aries", MIB, "stream_mb_per_s", 9700, "XC-12" },
    { "gemini", 8, "latency_us", 1.5, "TITAN-17" },
    { "gemini", 65536, "stream_mb_per_s", 5870, "TITAN-17" },
    { "xt3", 8, "latency_us", 29, "XT3-2" },
    { "xt3", MB, "pingpong_mb_per_s", 1111, "XT3-2" },
    { "xt3", MB, "swap_mb_per_s", 2150, "XT3-2" },
    { "x1", 8, "latency_us", 7.3, "X1-1" },
    { "x1", MB, "pingpong_mb_per_s", 9364, "X1-2" },
    { "x1", MB, "swap_mb_per_s", 16936, "X1-2" },
    { "xd1", 8, "latency_us", 1.7, "XD1-1" },
    { "xd1", MB, "pingpong_mb_per_s", 1342, "XD1-2" },
    { "xd1", MB, "swap_mb_per_s", 2173, "XD1-2" },
};

const struct emu_message_published *emu_message_published_at(size_t i)
{
    return i < sizeof(published) / sizeof(published[0]) ? &published[i] : NULL;
}

int emu_message_pair_of(const struct emu_machine *m, struct emu_message_pair *pair_out)
{
    for (uint32_t nid = 1; nid < emu_machine_n_nodes(m); nid++) {
        struct emu_route route;

        if (emu_route_minimal(m, 0, nid, 0, &route) == 0 && route.n_hops > 0) {
            *pair_out = (struct emu_message_pair){ .from = { 0, 0 }, .to = { nid, 0 } };
            return 0;
        }
    }
    return -ENOENT;
}

static int measure_stream(const struct emu_nic_setup *setup, const struct emu_message_pair *pair, uint32_t bytes,
                          bool is_both, double *rate_out)
{
    const struct emu_nic_pair pairs[] = { { pair->from, pair->to } };
    uint32_t fit = STREAM_BYTES / bytes;
    const struct emu_nic_stream s = {
        .kind = EMU_NIC_MESSAGE,
        .pairs = pairs,
        .n_pairs = 1,
        .is_bidirectional = is_both,
        .bytes = bytes,
        .window = STREAM_WINDOW,
        .operations = fit < STREAM_MESSAGES_MIN ? STREAM_MESSAGES_MIN :
                      fit > STREAM_MESSAGES_MAX ? STREAM_MESSAGES_MAX :
                                                  fit,
    };
    struct emu_nic_stream_result result;
    int r = emu_nic_stream(setup, &s, NULL, &result);

    if (r == 0) /* all of it, to the end of the slower direction */
        *rate_out = (double)s.operations * bytes * (is_both ? 2 : 1) * 1e6 / (double)result.elapsed_ps;
    return r;
}

int emu_message_point(const struct emu_nic_setup *setup, const struct emu_message_pair *pair, uint32_t bytes,
                      struct emu_message_point *point_out)
{
    const struct emu_nic_pingpong p = {
        .kind = EMU_NIC_MESSAGE, .a = pair->from, .b = pair->to, .bytes = bytes, .rounds = ROUNDS
    };
    struct emu_nic_pingpong_result pingpong;
    struct emu_nic_exchange_result swap;
    int r;

    if (bytes == 0 || bytes > EMU_MESSAGE_BYTES_MAX)
        return -EINVAL;
    *point_out = (struct emu_message_point){ .bytes = bytes, .is_rendezvous = !emu_node_is_eager(&setup->host, bytes) };
    r = emu_nic_pingpong(setup, &p, &pingpong);
    if (r == 0)
        r = emu_nic_exchange(setup, &p, &swap);
    if (r == 0)
        r = measure_stream(setup, pair, bytes, false, &point_out->stream_mb_per_s);
    if (r == 0)
        r = measure_stream(setup, pair, bytes, true, &point_out->both_mb_per_s);
    if (r < 0)
        return r;
    point_out->latency_us = (double)pingpong.latency_ps * 1e-6;
    point_out->pingpong_mb_per_s = pingpong.mbytes_per_s;
    point_out->swap_us = (double)swap.round_ps * 1e-6;
    point_out->swap_mb_per_s = swap.mbytes_per_s;
    return 0;
}

static int compare_sizes(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

    return (x > y) - (x < y);
}

size_t emu_message_sizes(const struct emu_machine *m, uint32_t min, uint32_t max,
                         uint32_t sizes_out[EMU_MESSAGE_SIZES_MAX])
{
    const struct emu_node_params *host = emu_machine_node_params(m);
    const struct emu_message_published *p;
    uint32_t all[EMU_MESSAGE_SIZES_MAX];
    size_t n_all = 0, n = 0;

    for (uint32_t bytes = 1; bytes <= EMU_MESSAGE_BYTES_MAX; bytes *= 2)
        all[n_all++] = bytes;
    for (size_t i = 0; (p = emu_message_published_at(i)) && n_all < EMU_MESSAGE_SIZES_MAX - 2; i++) {
        if (strcmp(p->machine, emu_machine_name(m)) == 0)
            all[n_all++] = p->bytes;
    }
    if (host && !emu_node_is_eager(host, EMU_MESSAGE_BYTES_MAX)) {
        all[n_all++] = host->eager_bytes_max;
        all[n_all++] = host->eager_bytes_max + 1;
    }
    qsort(all, n_all, sizeof(*all), compare_sizes);
    for (size_t i = 0; i < n_all; i++) {
        if (all[i] >= min && all[i] <= max && (n == 0 || sizes_out[n - 1] != all[i]))
            sizes_out[n++] = all[i];
    }
    return n;
}
