/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Blue Gene/L exchanging everything with everybody: BGL-6, BGL-10, BGL-11, BGL-14, BGL-15.
 *
 * An exchange is measured whole, from the first injection to the last delivery. Its shortest time is N x Lmax / 8 times
 * what a pair's packets take on the wire: the links along the longest dimension are busy all the time then. In each
 * round a node sends one packet to each other node in a random order of its own; injection FIFOs are filled as early as
 * possible unless the run is paced.
 * Source: spec/machines.md 0.6, 5.5 (BGL).
 */
#include "emunic/experiments/bgl_experiments.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "emunic/experiments/bgl_run.h"
#include "emunic/experiments/ledger.h"
#include "emunic/fabric/link.h"
#include "emunic/fabric/torus.h"

struct exchange {
    const char *spec;
    enum emu_route_mode mode;
    uint32_t rounds;
    uint32_t units;    /* 0: full packets */
    double gap_cycles; /* between two packets of a node; 0: as fast as the network takes them */
    bool is_hardware;  /* a processor makes the packets, nic.packet_start_ns apart, and FIFOs are finite */
};

struct outcome {
    double of_peak; /* shortest time to time, 0 .. 1 */
    struct bgl_figures figures;
    enum emu_sim_stop stop;
};

static int run_one(struct emu_exp *x, const struct exchange *e, double from, double to, struct outcome *out)
{
    struct emu_generator_options options = {
        .pattern = EMU_PATTERN_ALL_TO_ALL,
        .rounds = e->rounds,
        .units = (uint16_t)e->units,
        .mode = (uint8_t)e->mode,
        .is_regular = true,
    };
    struct bgl_run run;
    uint64_t packets;
    double cycles;
    int r = bgl_machine(x, &run, e->spec);

    if (r < 0)
        return r;
    options.gap_ps = e->is_hardware ? bgl_packet_start_ns(run.m) * 1000 : e->gap_cycles * run.cycle_ps;
    bgl_end(&run);
    r = bgl_start(x, &run, e->spec, &options, BGL_COUNT_OCCUPANCY | (e->is_hardware ? BGL_HAS_ENDS : 0));
    if (r < 0)
        return r;
    packets = (uint64_t)e->rounds * emu_machine_n_nodes(run.m) * (emu_machine_n_nodes(run.m) - 1);
    out->stop = bgl_finish(x, &run, packets, from, to);
    cycles = bgl_last_delivery(&run);
    bgl_figures(&run, cycles, &out->figures);
    if (out->figures.delivered != packets)
        emu_exp_detail(x, "%s: only %llu of %llu packets arrived", e->spec, (unsigned long long)out->figures.delivered,
                       (unsigned long long)packets);
    out->of_peak =
        e->rounds / cycles *
        bgl_exchange_cycles(run.size, (e->units != 0 ? e->units : run.full_units) + run.wire_units - run.full_units);
    bgl_end(&run);
    return 0;
}

static void tell_outcome(struct emu_exp *x, const char *name, const struct outcome *o)
{
    const struct bgl_figures *f = &o->figures;

    emu_exp_detail(x,
                   "%s: %.0f cycles, %.1f %% of peak, links %.1f %% (x %.1f, y %.1f, z %.1f), payload %.1f %%, "
                   "escape share %.2f %%, fill of dynamic channels %.1f %%, of escape channels %.1f %%%s",
                   name, f->cycles, 100 * o->of_peak, 100 * f->utilisation, 100 * f->utilisation_of[0],
                   100 * f->utilisation_of[1], 100 * f->utilisation_of[2], 100 * f->payload, 100 * f->escape_share,
                   100 * f->occupancy, 100 * f->escape_occupancy, o->stop == EMU_SIM_DEADLOCK ? ", DEADLOCK" : "");
}

/* ---- BGL-6 ---- */

static int run_symmetric(struct emu_exp *x, bool is_full)
{
    const char *size = is_full ? "bluegene-l:x=16,y=16,z=16" : "bluegene-l";
    const struct exchange dynamic = { .spec = size, .rounds = is_full ? 1 : 2 };
    struct exchange deterministic = { .spec = size, .rounds = 1 };
    struct exchange one = { .spec = size, .rounds = 1 };
    struct outcome o[3];
    char spec[100];
    int r;

    deterministic.mode = EMU_MODE_DETERMINISTIC;
    snprintf(spec, sizeof(spec), "%s%sdynamic_vcs=1", size, is_full ? "," : ":");
    one.spec = spec;
    r = run_one(x, &dynamic, 0, 0.15, &o[0]);
    if (r == 0)
        r = run_one(x, &deterministic, 0.15, 0.3, &o[1]);
    if (r == 0)
        r = run_one(x, &one, 0.3, 0.4, &o[2]);
    if (r < 0)
        return r;
    tell_outcome(x, "dynamic, 2 channels", &o[0]);
    tell_outcome(x, "deterministic", &o[1]);
    tell_outcome(x, "dynamic, 1 channel", &o[2]);
    emu_exp_figure(x, 'S', "utilisation", "%", emu_exp_points(98, 1.5), 100 * o[0].figures.utilisation);
    emu_exp_figure(x, 'S', "payload", "%", emu_exp_points(87, 1.5), 100 * o[0].figures.payload);
    emu_exp_below(x, 'S', "escape_share", "%", 5, 100 * o[0].figures.escape_share);
    emu_exp_below(x, 'S', "deterministic_to_dynamic", "ratio", 1, o[1].figures.utilisation / o[0].figures.utilisation);
    emu_exp_detail(x, "second dynamic channel: %.1f points",
                   100 * (o[0].figures.utilisation - o[2].figures.utilisation));
    return 0;
}

static int run_asymmetric(struct emu_exp *x, bool is_full)
{
    static const uint32_t full_machine[BGL_DIMS] = { 64, 32, 32 };
    const uint32_t small[BGL_DIMS] = { is_full ? 32 : 16, is_full ? 16 : 8, is_full ? 16 : 8 };
    /* Reduced: an eighth of the nodes exchange in a sixteenth of the time, so that the end, when links fall idle one
     * after another, weighs more; in two rounds about as much as in one of the larger machine. */
    struct exchange e = { .spec = is_full ? "bluegene-l:x=32,y=16,z=16" : "bluegene-l:x=16,y=8,z=8",
                          .rounds = is_full ? 1 : 2 };
    struct outcome flood, paced;
    double all, of[BGL_DIMS];
    double nodes = (double)small[0] * small[1] * small[2];
    int r;

    bgl_exchange_bound(full_machine, &all, of);
    emu_exp_class(x, EMU_CLASS_FORMULA);
    emu_exp_figure(x, 'A', "bound_utilisation", "%", emu_exp_rounded(66.7, 1), 100 * all);
    emu_exp_class(x, EMU_CLASS_FORMULA);
    emu_exp_figure(x, 'A', "bound_payload", "%", emu_exp_rounded(59, 0), 100 * all * 240 / 270);
    r = run_one(x, &e, 0.4, 0.7, &flood);
    if (r < 0)
        return r;
    /*
     * Injection control: no node sends faster than the ledger's pace of what the longest dimension can carry. At all
     * of it queues still grow; reduced, 75 % of peak then, and 94, 91, 83 at 1/1.05, 1/1.1, 1/1.2 of it.
     */
    e.gap_cycles = bgl_exchange_cycles(small, 270) / (nodes - 1) / emu_ledger_value("bluegene-l", "exchange.pace");
    r = run_one(x, &e, 0.7, 1, &paced);
    if (r < 0)
        return r;
    tell_outcome(x, "infinite FIFOs", &flood);
    tell_outcome(x, "injection paced just below the bound", &paced);
    emu_exp_figure(x, 'S', "utilisation", "%", emu_exp_points(49, 3), 100 * flood.figures.utilisation);
    emu_exp_why(x,
                "with FIFOs that are never full, packets that still need x fill the channels of y and z (half full, "
                "a fifth of the packets goes by the escape channel), and x links wait for them. That grows with the "
                "machine: x links are busy 73 %% of the time on 16 x 8 x 8, 65 %% on 32 x 16 x 16 (source: 74 %%), and "
                "95 %% there if nodes send 5 %% more slowly than x could carry");
    emu_exp_figure(x, 'S', "payload", "%", emu_exp_points(44, 3), 100 * flood.figures.payload);
    emu_exp_why(x, "follows from utilisation");
    emu_exp_detail(x, "of peak: %.1f %% (source 74 %%)", 100 * flood.of_peak);
    emu_exp_above(x, 'S', "injection_control_to_infinite", "ratio", 1,
                  paced.figures.utilisation / flood.figures.utilisation);
    return 0;
}

int bgl_run_exchange(struct emu_exp *x)
{
    bool is_full = emu_exp_context(x)->is_full;
    int r = run_symmetric(x, is_full);

    if (r < 0)
        return r;
    emu_exp_part(x, "b");
    return run_asymmetric(x, is_full);
}

/* ---- BGL-10 ---- */

static const struct {
    const char *name;
    uint32_t units;
    uint32_t rounds; /* packets per pair */
} exchange_sizes[] = {
    { "a 32-byte packet", 32, 1 }, { "a 128-byte packet", 128, 1 }, { "a full packet", 0, 1 },
    { "a full packet", 0, 10 },    { "a full packet", 0, 40 },
};
enum { SIZES = sizeof(exchange_sizes) / sizeof(exchange_sizes[0]) };

/*
 * All sizes on one of two machines: per cent of the peak of each. Reduced: ten packets on a smaller cube, where the end
 * of an exchange weighs more; three packets for forty.
 */
static int measure_sizes(struct emu_exp *x, uint32_t machine, FILE *data, double peak_out[SIZES])
{
    static const char *const machines[] = { "bluegene-l", "bluegene-l:x=4,y=4,z=2" };
    bool is_reduced = machine == 0 && !emu_exp_context(x)->is_full;

    for (uint32_t i = 0; i < SIZES; i++) {
        struct exchange e = {
            .spec = machines[machine],
            .rounds = exchange_sizes[i].rounds,
            .units = exchange_sizes[i].units,
            .is_hardware = true,
        };
        double step = machine * SIZES + i;
        struct outcome o;
        int r;

        if (is_reduced && e.rounds == 10)
            e.spec = "bluegene-l:x=4,y=4,z=4";
        if (is_reduced && e.rounds == 40)
            e.rounds = 3;
        r = run_one(x, &e, step / (2.0 * SIZES), (step + 1) / (2.0 * SIZES), &o);
        if (r < 0)
            return r;
        peak_out[i] = 100 * o.of_peak;
        emu_exp_detail(x, "%s, %s per pair, %u times: %.0f cycles, %.1f %% of peak", e.spec, exchange_sizes[i].name,
                       e.rounds, o.figures.cycles, peak_out[i]);
        if (data)
            fprintf(data, "%s\t%u\t%g\n", machine == 0 ? "8 x 8 x 8" : "4 x 4 x 2",
                    e.rounds * ((e.units != 0 ? e.units : 256) - 16), peak_out[i]);
    }
    return 0;
}

int bgl_run_hardware_exchange(struct emu_exp *x)
{
    FILE *data = emu_exp_data(x, "peak", "All-to-all", "payload bytes per pair", "% of peak");
    double peak[2][SIZES];
    double packet_start_ns;
    struct bgl_run run;
    int r = bgl_machine(x, &run, "bluegene-l");

    if (r < 0)
        return r;
    packet_start_ns = bgl_packet_start_ns(run.m);
    bgl_end(&run);
    for (uint32_t machine = 0; r == 0 && machine < 2; machine++)
        r = measure_sizes(x, machine, data, peak[machine]);
    if (data)
        fclose(data);
    if (r < 0)
        return r;
    emu_exp_fitted(x, "one_packet_of_32_bytes", "%", 71, peak[0][0],
                   emu_exp_param("nic.packet_start_ns", packet_start_ns));
    emu_exp_figure(x, 'P', "ten_full_packets", "%", emu_exp_range(92, 98),
                   peak[0][3]); /* 94 - 96, 2 points either way */
    emu_exp_why(x,
                "the source does not give the order of a node's packets. Here each goes to another node than the "
                "one before, in an order drawn anew for each round, and a node begins its next round while others "
                "still send the last one, so that ten packets lose no more than long messages; one order for all "
                "rounds gives 98.1 %%. With several packets for the same node in a row it is less: 97.5 %% with two, "
                "95.0 with five, 92.0 with all ten; but 40 packets per pair then reach 97.8, 95.7 and, all in a row, "
                "81.6 %%, and the source has more than 98 %% for long messages. No order that the source supports "
                "gives both");
    emu_exp_figure(x, 'P', "long_messages", "%", emu_exp_points(98, 1.5), peak[0][4]);
    return 0;
}

/* ---- BGL-11 ---- */

struct spot_region {
    uint32_t edge;
    const struct emu_torus *torus;
};

static uint32_t pick_in_region(void *ctx, struct emu_random *random, uint32_t src_nid)
{
    const struct spot_region *region = ctx;

    (void)src_nid;
    return emu_torus_router(region->torus, (uint32_t)emu_random_below(random, region->edge),
                            (uint32_t)emu_random_below(random, region->edge),
                            (uint32_t)emu_random_below(random, region->edge));
}

static int run_spot(struct emu_exp *x, uint32_t edge, uint64_t packets_per_node, double *percent_out)
{
    struct spot_region region = { .edge = edge };
    bool senders[512];
    struct emu_generator_options options = {
        .pattern = EMU_PATTERN_CUSTOM,
        .pick = pick_in_region,
        .pick_ctx = &region,
        .packets_per_node = packets_per_node,
        .senders = senders,
        .is_regular = true,
    };
    uint64_t packets = 0;
    struct bgl_run run, shape;
    int r = bgl_machine(x, &shape, "bluegene-l");

    if (r < 0)
        return r;
    for (uint32_t nid = 0; nid < 512; nid++) {
        const uint8_t *at = emu_torus_coord(emu_torus_of(shape.m), nid);

        senders[nid] = at[0] >= edge || at[1] >= edge || at[2] >= edge;
        packets += senders[nid] ? packets_per_node : 0;
    }
    options.gap_ps = bgl_packet_start_ns(shape.m) * 1000;
    region.torus = emu_torus_of(shape.m); /* the same numbers on the machine that runs */
    r = bgl_start(x, &run, "bluegene-l", &options, BGL_HAS_ENDS);
    if (r == 0) {
        bgl_finish(x, &run, packets, 0, 1);
        *percent_out = 100 * (double)packets * run.wire_units / (6.0 * edge * edge) / bgl_last_delivery(&run);
        emu_exp_detail(x, "%u x %u x %u: %llu packets in %.0f cycles, %.1f %% of the links into the region", edge, edge,
                       edge, (unsigned long long)packets, bgl_last_delivery(&run), *percent_out);
        bgl_end(&run);
    }
    bgl_end(&shape);
    return r;
}

/*
 * The source's figures are from hardware, where processors empty a node's reception FIFOs. Six links bring one node a
 * packet every 257 ns; nic.drain_cycles is fitted to its 92 %. Nodes of the cubes receive on three links from outside.
 */
int bgl_run_hot_spot(struct emu_exp *x)
{
    bool is_full = emu_exp_context(x)->is_full;
    double percent[3] = { 0 };
    double drain_cycles = 0;
    struct bgl_run shape;
    int r = bgl_machine(x, &shape, "bluegene-l");

    if (r == 0) {
        drain_cycles = shape.m->params.ends.drain_cycles;
        bgl_end(&shape);
        r = run_spot(x, 1, is_full ? 200 : 50, &percent[0]);
    }
    if (r == 0)
        r = run_spot(x, 2, is_full ? 800 : 100, &percent[1]);
    if (r == 0)
        r = run_spot(x, 4, is_full ? 2000 : 300, &percent[2]);
    if (r < 0)
        return r;
    emu_exp_fitted(x, "one_node", "%", 92, percent[0], emu_exp_param("nic.drain_cycles", drain_cycles));
    emu_exp_figure(x, 'P', "cube_of_2", "%", emu_exp_points(95, 2), percent[1]);
    emu_exp_why(
        x, "what is lost is the end, when some nodes have sent all and links into the cube fall idle. It weighs the "
           "less the more each node sends: 95.2 to 95.5 %% with 100 packets, 96.5 to 97.2 with 800. The source does "
           "not say how many it sent, and 800 were chosen before the run");
    emu_exp_figure(x, 'P', "cube_of_4", "%", emu_exp_points(95, 2), percent[2]);
    return 0;
}

/* ---- BGL-14 ---- */

/*
 * The source does not say where the gap sat, only what it did: fuller channels, the same utilisation. Here a receiver
 * rests for a cycle behind each transfer that it begins or ends (bluegene-l.yaml). Between a packet's tail and the
 * request of the one behind it in the same channel, it fills 4 x 4 x 4 by 8 % and 8 x 8 x 1 by 21 %; before each
 * request of the network for a link that became free, three to four times, but injection always wins then and 30 to 48
 * points of utilisation are lost, with ports taking turns at it 16 to 22.
 */
int bgl_run_gap(struct emu_exp *x)
{
    static const char *const names[] = { "4x4x4", "8x8x1" };
    static const char *const sizes[] = { "x=4,y=4,z=4", "x=8,y=8,z=1" };

    for (uint32_t i = 0; i < 2; i++) {
        struct outcome o[2];
        char name[40];

        for (uint32_t gap = 0; gap < 2; gap++) {
            struct exchange e = { .rounds = emu_exp_context(x)->is_full ? 100 : 50 };
            char spec[80];
            int r;

            snprintf(spec, sizeof(spec), "bluegene-l:%s,arb_gap_clocks=%u", sizes[i], gap);
            e.spec = spec;
            r = run_one(x, &e, (i * 2 + gap) / 4.0, (i * 2 + gap + 1) / 4.0, &o[gap]);
            if (r < 0)
                return r;
            tell_outcome(x, spec, &o[gap]);
        }
        snprintf(name, sizeof(name), "utilisation_change_%s", names[i]);
        emu_exp_at_most(x, 'S', name, "points", 2, 100 * fabs(o[1].figures.utilisation - o[0].figures.utilisation));
        snprintf(name, sizeof(name), "fill_with_gap_%s", names[i]);
        emu_exp_at_least(x, 'Q', name, "ratio", 1.3, o[1].figures.occupancy / o[0].figures.occupancy);
    }
    return 0;
}

/* ---- BGL-15 ---- */

/* One message of so many packets to each other node of the same plane (dims 2) or line (dims 1), in random order. */
static struct emu_message *subset_messages(const struct emu_machine *m, uint32_t dims, uint32_t packets, uint64_t seed,
                                           size_t *n_out)
{
    const struct emu_torus *t = emu_torus_of(m);
    uint32_t others = dims == 2 ? t->size[0] * t->size[1] - 1 : t->size[0] - 1;
    struct emu_message *messages = calloc((size_t)emu_machine_n_nodes(m) * others * packets, sizeof(*messages));
    struct emu_random random = { .state = seed };
    size_t n = 0;

    for (uint32_t nid = 0; messages && nid < emu_machine_n_nodes(m); nid++) {
        const uint8_t *at = emu_torus_coord(t, nid);

        for (uint32_t round = 0; round < packets; round++) {
            size_t first = n;

            for (uint32_t y = 0; y < t->size[1]; y++) {
                for (uint32_t x = 0; x < t->size[0]; x++) {
                    uint32_t dst = emu_torus_router(t, x, dims == 2 ? y : at[1], at[2]);

                    if (dst == nid || (dims == 1 && y > 0))
                        continue;
                    messages[n++] = (struct emu_message){ .src_nid = nid,
                                                          .dst_nid = dst,
                                                          .bytes = emu_machine_nic(m)->format.payload_bytes_max };
                }
            }
            for (size_t i = n - 1; i > first; i--) {
                size_t j = first + emu_random_below(&random, i - first + 1);
                struct emu_message swapped = messages[i];

                messages[i] = messages[j];
                messages[j] = swapped;
            }
        }
    }
    *n_out = n;
    return messages;
}

static int run_subset(struct emu_exp *x, const char *name, uint32_t dims, uint32_t packets)
{
    struct emu_generator_options options = { .pattern = EMU_PATTERN_MESSAGES };
    struct emu_message *messages;
    struct bgl_run run;
    struct bgl_figures f;
    double cycles, shortest;
    int r = bgl_machine(x, &run, "bluegene-l");

    if (r < 0)
        return r;
    messages = subset_messages(run.m, dims, packets, emu_exp_context(x)->seed, &options.messages.n);
    options.messages.list = messages;
    bgl_end(&run);
    if (!messages)
        return -ENOMEM;
    r = bgl_start(x, &run, "bluegene-l", &options, BGL_COUNT_NOTHING);
    free(messages);
    if (r < 0)
        return r;
    bgl_finish(x, &run, options.messages.n, 0, 1);
    cycles = bgl_last_delivery(&run);
    bgl_figures(&run, cycles, &f);
    shortest = (dims == 2 ? 64 : 8) * 8 / 8.0 * packets * run.wire_units;
    emu_exp_detail(x, "%s, %u packets per pair: %.0f cycles, bound %.0f; links x %.1f %%, y %.1f %%, z %.1f %%", name,
                   packets, cycles, shortest, 100 * f.utilisation_of[0], 100 * f.utilisation_of[1],
                   100 * f.utilisation_of[2]);
    emu_exp_at_least(x, 'S', name, "%", 95, 100 * shortest / cycles);
    bgl_end(&run);
    return 0;
}

int bgl_run_subsets(struct emu_exp *x)
{
    bool is_full = emu_exp_context(x)->is_full;
    int r = run_subset(x, "planes", 2, is_full ? 40 : 10);

    return r < 0 ? r : run_subset(x, "lines", 1, is_full ? 400 : 100);
}
