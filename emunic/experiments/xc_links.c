/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Cray XC: what follows from the figures of links and NIC by arithmetic.
 */
#include <math.h>

#include "emunic/experiments/xc.h"
#include "emunic/fabric/link.h"
#include "emunic/model/nic_rates.h"

/* ---- XC-28: errors that the link's check does not see ---- */

/* Frames per second on all links that leave one router for another; and how many links that is. */
static double frames_per_router(const struct emu_machine *m, uint32_t router, double frame_bytes, uint32_t *links_out)
{
    double frames = 0;

    *links_out = 0;
    for (uint32_t id = 0; id < emu_machine_n_links(m); id++) {
        struct emu_link l;

        (void)emu_link_get(m, id, &l);
        if (l.from.kind != EMU_END_ROUTER || l.to.kind != EMU_END_ROUTER || l.from.index != router)
            continue;
        frames += (double)l.bytes_per_s / frame_bytes;
        (*links_out)++;
    }
    return frames;
}

static double binomial(double n, int k)
{
    double c = 1;

    for (int i = 0; i < k; i++)
        c = c * (n - i) / (i + 1);
    return c;
}

int emu_xc_undetected(struct emu_exp *x)
{
    const double nodes = 25000;
    const double ber = 1e-7;
    const double seconds_per_year = 365.25 * 86400;
    const struct emu_router_params *router;
    double frame_bits, missed, frames;
    struct emu_machine *m;
    uint32_t n_links;
    int r = emu_exp_machine(x, "aries:groups=241", &m); /* every port of a router has its cable */

    if (r < 0)
        return r;
    router = emu_machine_router(m);
    frame_bits = (double)router->frame_flits * emu_machine_nic(m)->format.flit_bits;
    frames =
        frames_per_router(m, 0, frame_bits / 8, &n_links) * nodes * emu_machine_n_routers(m) / emu_machine_n_nodes(m);
    missed = binomial(frame_bits, 4) * pow(ber, 4) * pow(2, -(double)router->crc_bits);
    emu_exp_exact(x, 'A', "links_per_router", "links", 40, n_links);
    emu_exp_figure(x, 'A', "years_to_an_undetected_error", "years", emu_exp_within(7250, 0.1),
                   1 / (missed * frames) / seconds_per_year);
    emu_exp_detail(x,
                   "ours: all errors of up to 3 bits in a frame of %.0f are caught, of those of 4 one in 2^%u is "
                   "not",
                   frame_bits, router->crc_bits);
    emu_machine_destroy(m);
    return 0;
}

/* ---- XC-7: NIC and host interface ---- */

int emu_xc_peaks(struct emu_exp *x)
{
    struct emu_nic_setup setup;
    struct emu_machine *m;
    int r = emu_exp_machine(x, "aries:groups=1", &m);

    if (r < 0)
        return r;
    setup = (struct emu_nic_setup){ .machine = m, .host = *emu_machine_node_params(m) };
    emu_exp_figure(x, 'A', "nic_peak", "GB/s", emu_exp_rounded(10.24, 2), emu_nic_packet_mbytes_per_s(&setup) / 1000);
    emu_exp_figure(x, 'A', "host_interface", "GB/s", emu_exp_rounded(16, 1), setup.host.interface_kbs / 1e6);
    emu_exp_figure(x, 'A', "host_interface_payload_of_64_bytes", "GB/s", emu_exp_rounded(11.6, 1),
                   emu_nic_interface_mbytes_per_s(&setup, 64, false) / 1000);
    emu_machine_destroy(m);
    return 0;
}
