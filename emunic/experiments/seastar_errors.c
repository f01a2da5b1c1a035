/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * SeaStar: checks of links and of messages (SEASTAR-11).
 *
 * Two parts. Real packets of 64 bytes with a real CRC-16 (CCITT, as HDLC) and, over their message, a real CRC-32 (IEEE
 * 802.3) have bits turned at random: how many do the checks miss? The polynomials are [OUR] choice, the source names
 * the widths only. And a simulated run over bad links: everything arrives once, in order, and only time is lost.
 */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "emunic/experiments/put_flows.h"
#include "emunic/experiments/seastar_experiments.h"
#include "emunic/fabric/random.h"
#include "emunic/fabric/torus.h"

enum { PACKET_BYTES = 64, BURST_BYTES = 8 /* a flit's data */ };

struct tables {
    uint16_t crc16[256];
    uint32_t crc32[256];
};

static void make_tables(struct tables *t)
{
    for (uint32_t byte = 0; byte < 256; byte++) {
        uint32_t crc16 = byte;
        uint32_t crc32 = byte;

        for (int bit = 0; bit < 8; bit++) {
            crc16 = crc16 & 1 ? crc16 >> 1 ^ 0x8408u : crc16 >> 1;
            crc32 = crc32 & 1 ? crc32 >> 1 ^ 0xedb88320u : crc32 >> 1;
        }
        t->crc16[byte] = (uint16_t)crc16;
        t->crc32[byte] = crc32;
    }
}

/* Both checks are linear: what an error pattern turns in the check is its own check, whatever the data are. */
static void check_pattern(const struct tables *t, const uint8_t *pattern, size_t len, uint16_t *crc16_out,
                          uint32_t *crc32_out)
{
    uint16_t crc16 = 0;
    uint32_t crc32 = 0;

    for (size_t i = 0; i < len; i++) {
        crc16 = (uint16_t)(crc16 >> 8 ^ t->crc16[(crc16 ^ pattern[i]) & 0xff]);
        crc32 = crc32 >> 8 ^ t->crc32[(crc32 ^ pattern[i]) & 0xff];
    }
    *crc16_out = crc16;
    *crc32_out = crc32;
}

static void corrupt_packets(struct emu_exp *x, uint64_t n)
{
    struct emu_random random = { .state = emu_exp_context(x)->seed };
    uint64_t escapes = 0;
    uint64_t silent = 0;
    struct tables t;

    make_tables(&t);
    for (uint64_t i = 0; i < n; i++) {
        uint8_t pattern[PACKET_BYTES] = { 0 };
        uint64_t errors;
        uint16_t crc16;
        uint32_t crc32;

        do
            errors = emu_random_next(&random);
        while (errors == 0);
        memcpy(pattern, &errors, sizeof(errors)); /* a flit: 64 bits, each turned or not; where it is does not matter */
        check_pattern(&t, pattern, BURST_BYTES, &crc16, &crc32);
        escapes += crc16 == 0;
        silent += crc16 == 0 && crc32 == 0;
        if (i % 100000 == 0)
            emu_exp_progress(x, (double)i / (double)n * 0.8);
    }
    emu_exp_class(x, EMU_CLASS_FORMULA); /* of the check alone: no packet, no machine */
    emu_exp_exact(x, 'S', "silent_corruption", "flits", 0, (double)silent);
    emu_exp_class(x, EMU_CLASS_FORMULA);
    emu_exp_figure(
        x, 'S', "escapes_of_crc16", "flits",
        emu_exp_range((double)n / 65536 - 4 * sqrt((double)n / 65536), (double)n / 65536 + 4 * sqrt((double)n / 65536)),
        (double)escapes);
    emu_exp_detail(x, "%llu corrupted flits, %llu escaped the CRC-16, the CRC-32 caught all but %llu",
                   (unsigned long long)n, (unsigned long long)escapes, (unsigned long long)silent);
}

static int run_over_bad_links(struct emu_exp *x)
{
    struct emu_flow_spec specs[8];
    struct emu_flows_options options = { .gap_ps = 60000, .mode = EMU_MODE_IN_ORDER, .seed = emu_exp_context(x)->seed };
    uint64_t errors = 0;
    double rates[2] = { 0, 0 };
    struct emu_machine *m;
    int r = emu_exp_machine(x, "seastar:x=4,y=4,z=4", &m);

    if (r < 0)
        return r;
    for (uint32_t i = 0; i < 8; i++)
        specs[i] = (struct emu_flow_spec){ i, (i + 27) % emu_machine_n_nodes(m) };
    for (uint32_t is_bad = 0; is_bad < 2 && r == 0; is_bad++) {
        struct emu_flows_counts counts;
        struct emu_flows *f;

        r = emu_flows_create(m, NULL, specs, 8, &options, &f);
        if (r < 0)
            break;
        if (is_bad)
            emu_sim_set_bit_error_rate(emu_flows_sim(f), EMU_SIM_ALL_LINKS, 1e-5);
        r = emu_flows_run(f, UINT64_C(200000000));
        rates[is_bad] = emu_flows_total_rate(f);
        emu_flows_pause(f, true);
        for (int i = 0; i < 100 && r == 0; i++)
            r = emu_flows_run(f, 1000000);
        emu_flows_counts(f, &counts);
        for (uint32_t id = 0; id < emu_machine_n_links(m) && is_bad; id++) {
            struct emu_sim_link_stats stats;

            emu_sim_link_stats(emu_flows_sim(f), id, &stats);
            errors += stats.crc_errors;
        }
        if (is_bad && r == 0) {
            emu_exp_above(x, 'S', "link_errors_met", "packets", 0, (double)errors);
            emu_exp_exact(x, 'S', "arrived_over_bad_links", "packets", (double)counts.sent, (double)counts.arrived);
            emu_exp_exact(x, 'S', "lost_or_reordered", "packets", 0, (double)(counts.lost + counts.reordered));
            emu_exp_detail(x, "%llu packets, %llu repeated by links; rate %.3f of that over good links",
                           (unsigned long long)counts.sent, (unsigned long long)errors, rates[1] / rates[0]);
        }
        emu_flows_destroy(f);
    }
    emu_machine_destroy(m);
    return r;
}

int emu_seastar_errors(struct emu_exp *x)
{
    corrupt_packets(x, 10000000);
    return run_over_bad_links(x);
}
