/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Packets that contend. The first packets are not counted: buffers fill, and who streams gets into step.
 */
#include "emunic/experiments/contest.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>

#include "emunic/fabric/sim/sim.h"

#define STEP_PS   UINT64_C(100000000) /* 100 us */
#define WARM_PS   (10 * STEP_PS)
#define STEPS_MAX 10000

struct runner {
    const struct contest_row *row;
    uint32_t under_way[CONTEST_FLOWS];
    uint64_t arrived[CONTEST_FLOWS];
};

static bool next_packet(void *ctx, struct emu_sim *sim, uint32_t nid, enum emu_traffic_class traffic_class,
                        uint64_t now_ps, struct emu_packet *packet)
{
    struct runner *run = ctx;

    (void)sim;
    for (uint32_t i = 0; i < CONTEST_FLOWS; i++) {
        const struct contest_flow *f = &run->row->flows[i];

        if (f->units == 0 || f->src != nid || f->traffic_class != traffic_class)
            continue;
        if (f->most > 0 && run->under_way[i] == f->most)
            return false;
        packet->dst_nid = f->dst;
        packet->units = (uint16_t)f->units;
        packet->mode = (uint8_t)run->row->mode;
        packet->order_key = 0;
        packet->tag = i;
        packet->created_ps = now_ps;
        run->under_way[i]++;
        return true;
    }
    return false;
}

static void take_packet(void *ctx, struct emu_sim *sim, uint32_t nid, const struct emu_packet *packet, uint64_t now_ps)
{
    struct runner *run = ctx;

    (void)nid;
    (void)now_ps;
    run->under_way[packet->tag]--;
    run->arrived[packet->tag]++;
    emu_sim_wake(sim, packet->src_nid, (enum emu_traffic_class)packet->traffic_class);
}

/* Of flows that are passed, or of the others. */
static double arrived(const struct runner *run, bool is_passed)
{
    uint64_t sum = 0;

    for (uint32_t i = 0; i < CONTEST_FLOWS; i++)
        sum += run->row->flows[i].is_passed == is_passed ? run->arrived[i] : 0;
    return (double)sum;
}

static double measure(struct emu_exp *x, const struct emu_machine *m, const struct contest_row *row)
{
    struct runner run = { .row = row };
    const struct emu_traffic traffic = { .ctx = &run, .next = next_packet, .delivered = take_packet };
    const struct emu_sim_options options = { .seed = emu_exp_context(x)->seed };
    uint64_t at_ps = WARM_PS;
    struct emu_sim *sim;

    if (emu_sim_create(m, NULL, &traffic, &options, &sim) < 0)
        return NAN;
    (void)emu_sim_run(sim, at_ps);
    for (uint32_t i = 0; i < CONTEST_FLOWS; i++)
        run.arrived[i] = 0;
    for (uint32_t i = 0; i < STEPS_MAX && arrived(&run, false) + arrived(&run, true) < row->n; i++) {
        at_ps += STEP_PS;
        (void)emu_sim_run(sim, at_ps);
    }
    emu_sim_destroy(sim);
    if (arrived(&run, false) + arrived(&run, true) < row->n)
        return NAN;
    if (row->figure == CONTEST_PASSED)
        return arrived(&run, true);
    if (row->figure == CONTEST_AT_ONCE)
        return (arrived(&run, false) + arrived(&run, true)) * row->packet_ns * 1e3 / (double)(at_ps - WARM_PS);
    return arrived(&run, false) / arrived(&run, true);
}

int contest_report(struct emu_exp *x, const char *machine, const struct contest_row *rows)
{
    for (const struct contest_row *row = rows; row->name; row++) {
        struct emu_exp_source source = emu_exp_within(row->src, row->tol);
        struct emu_machine *m;
        char text[200];
        double got;
        int r;

        (void)snprintf(text, sizeof(text), "%s%s%s", machine, row->with ? ":" : "", row->with ? row->with : "");
        r = emu_exp_machine(x, text, &m);
        if (r < 0)
            return r;
        got = measure(x, m, row);
        emu_machine_destroy(m);
        if (row->tol == 0)
            source = (struct emu_exp_source){ .tolerance = EMU_TOL_EXACT, .src = row->src };
        emu_exp_figure(x, 'S', row->name, row->figure == CONTEST_AT_ONCE ? "links" : "packets", source, got);
    }
    return 0;
}
