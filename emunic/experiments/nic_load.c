/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * NICs of Gemini and Aries under load: LOAD-9 and LOAD-10. The sources have the rate of a NIC (spec/machines.md 2.3,
 * 3.3) and no such measurement; the figures are that rate. The tolerance is that of LOAD-1 to LOAD-8 for what is under
 * way at both ends of the span, and was written down before the first run.
 *
 * Links between router and NIC carry more than a NIC sends or takes. Rates are of payload.
 */
#include "emunic/experiments/loaded.h"

static const struct loaded_spec ends = { .has_ends = true, .warm_ns = 5000, .measure_ns = 20000 };

/* Nodes 0 and 1 share a router; n - 1 nodes send to node 0. rate_gbs is what a NIC sends, and what it takes. */
static int report_nics(struct emu_exp *x, const char *machine, uint32_t n, double rate_gbs)
{
    struct loaded l;
    char name[32];
    int r = loaded_open(x, machine, &l);

    if (r < 0)
        return r;
    loaded_send(&l, 1, 0);
    loaded_run(&l, &ends);
    emu_exp_figure(x, 'S', "one_nic", "GB/s", emu_exp_within(rate_gbs, 0.02), loaded_payload(&l, 0, 1));
    loaded_send(&l, 0, 1);
    loaded_run(&l, &ends);
    emu_exp_figure(x, 'S', "two_nics_both_ways", "GB/s", emu_exp_within(2 * rate_gbs, 0.02), loaded_payload(&l, 0, 2));
    loaded_silence(&l);
    for (uint32_t nid = 1; nid < n; nid++)
        loaded_send(&l, nid, 0);
    loaded_run(&l, &ends);
    snprintf(name, sizeof(name), "incast_of_%u", n - 1);
    emu_exp_figure(x, 'S', name, "GB/s", emu_exp_within(rate_gbs, 0.02), loaded_payload(&l, 0, 1));
    loaded_close(&l);
    return l.error;
}

/* 64 bytes in 5 cycles of 650 MHz (3.3). Nodes 2 and 3 are at the next Gemini along Z; its backplane is no limit. */
int emu_gemini_nics(struct emu_exp *x)
{
    return report_nics(x, "gemini", 4, 8.32);
}

/* 64 bytes in 5 cycles of 800 MHz (2.3). Nodes 0 to 3 share a router. */
int emu_aries_nics(struct emu_exp *x)
{
    return report_nics(x, "aries:groups=1", 4, 10.24);
}
