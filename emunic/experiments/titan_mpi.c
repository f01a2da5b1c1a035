/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Titan: MPI between neighbours and across the machine (TITAN-17).
 *
 * The source gives one figure per dimension and does not say which neighbours they are. A dimension is as slow as its
 * slowest cable, so bandwidth is taken over the cables: between cabinets along X and Y, between cages along Z [OUR].
 */
#include <errno.h>
#include <math.h>

#include "emunic/experiments/titan.h"
#include "emunic/fabric/torus.h"
#include "emunic/model/nic_scenario.h"

static uint32_t nid_at(const struct emu_machine *m, uint32_t x, uint32_t y, uint32_t z)
{
    return emu_torus_first_nid(m, emu_torus_router(emu_torus_of(m), x, y, z));
}

static double latency_us(const struct emu_nic_setup *setup, uint32_t from, uint32_t to)
{
    const struct emu_nic_pingpong p = {
        .kind = EMU_NIC_MESSAGE,
        .a = { .nid = from },
        .b = { .nid = to },
        .bytes = 8,
        .rounds = 4,
    };
    struct emu_nic_pingpong_result result;

    return emu_nic_pingpong(setup, &p, &result) == 0 ? (double)result.latency_ps * 1e-6 : NAN;
}

static double bandwidth_gbs(const struct emu_nic_setup *setup, uint32_t from, uint32_t to)
{
    const struct emu_nic_pair pair = { { .nid = from }, { .nid = to } };
    const struct emu_nic_stream s = {
        .kind = EMU_NIC_MESSAGE,
        .pairs = &pair,
        .n_pairs = 1,
        .bytes = 65536,
        .window = 8,
        .warmup_ps = UINT64_C(50000000),
        .measure_ps = UINT64_C(200000000),
    };
    struct emu_nic_stream_result result;

    return emu_nic_stream(setup, &s, NULL, &result) == 0 ? result.mbytes_per_s * 1e-3 : NAN;
}

int emu_titan_mpi(struct emu_exp *x)
{
    static const char *const names[] = { "x", "y", "z" };
    static const double latencies[] = { 1.5, 1.7, 1.55 };
    static const double bandwidths[] = { 5.87, 3.47, 6.09 };
    double got[3] = { 0 };
    struct emu_nic_setup setup = { .seed = emu_exp_context(x)->seed };
    uint32_t from[3], to[3];
    const struct emu_torus *t;
    struct emu_machine *m;
    char name[32];
    int r = emu_exp_machine(x, EMU_TITAN_SPEC, &m);

    if (r < 0)
        return r;
    t = emu_torus_of(m);
    setup.machine = m;
    setup.host = *emu_machine_node_params(m);
    from[0] = nid_at(m, 0, 0, 0);
    to[0] = nid_at(m, 1, 0, 0);
    from[1] = nid_at(m, 0, 1, 0);
    to[1] = nid_at(m, 0, 2, 0);
    from[2] = nid_at(m, 0, 0, 7);
    to[2] = nid_at(m, 0, 0, 8);
    for (uint32_t dim = 0; dim < 3; dim++) {
        got[dim] = latency_us(&setup, from[dim], to[dim]);
        emu_exp_progress(x, (dim + 1) / 8.0);
    }
    emu_exp_fitted(x, "neighbour_latency_mean", "us", (latencies[0] + latencies[1] + latencies[2]) / 3,
                   (got[0] + got[1] + got[2]) / 3,
                   emu_exp_param("host.send_ns+host.recv_ns", (setup.host.send_ps + setup.host.recv_ps) * 1e-3));
    for (uint32_t dim = 0; dim < 3; dim++) {
        snprintf(name, sizeof(name), "%s_neighbour_latency", names[dim]);
        /* Of the three the mean is fitted, and the model has one time for all neighbours. */
        emu_exp_report(x, &(struct emu_metric){ .kind = 'K',
                                                .name = name,
                                                .unit = "us",
                                                .tolerance = EMU_TOL_RELATIVE,
                                                .src = latencies[dim],
                                                .got = got[dim],
                                                .tol = 0.1,
                                                .param_name = "host.send_ns+host.recv_ns",
                                                .param_value = (setup.host.send_ps + setup.host.recv_ps) * 1e-3 });
    }
    emu_exp_figure(x, 'P', "latency_across", "us", emu_exp_within(3.96, 0.1),
                   latency_us(&setup, from[0], nid_at(m, t->size[0] / 2, t->size[1] / 2, t->size[2] / 2)));
    for (uint32_t dim = 0; dim < 3; dim++) {
        snprintf(name, sizeof(name), "%s_bandwidth", names[dim]);
        emu_exp_figure(x, 'P', name, "GB/s", emu_exp_within(bandwidths[dim], 0.1),
                       bandwidth_gbs(&setup, from[dim], to[dim]));
        emu_exp_why(
            x, "second-hand figures without geometry: 6.25 GB/s is 64 of 96 bytes of a cable's 9.375 GB/s, 3.125 of "
               "the Y cable's 4.6875; a mezzanine neighbour along Y gets 6.25");
        emu_exp_progress(x, (dim + 5) / 8.0);
    }
    emu_machine_destroy(m);
    return 0;
}
