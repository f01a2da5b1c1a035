/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Speed of the packet simulator: uniform random traffic on a torus, at a share of what its links can carry.
 *
 *     sim_speed [--size 8x8x8] [--load 60] [--threads 1] [--us 2000] [--rules RULES] [--machine SPEC --machines DIR]
 *
 * Without --machine it is the test's own torus (Blue Gene/L's figures). Its rules: "adaptive" (minimal adaptive on two
 * channels above dimension order with a dateline on two, round robin), "order" (the latter alone, what BookSim2 does on
 * its torus; full at 60 % of the links), "bgl" (two adaptive channels, bubble escape, fullest queue first, two paths
 * out of an input). With --machine each node offers `load` per cent of what its NIC link carries. The first tenth of
 * the time fills the network and is not counted.
 */
#include <getopt.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "emunic/fabric/random.h"
#include "emunic/fabric/sim/sim.h"
#include "tests/common/sim_torus.h"

#define QUANTILES 1024

struct source {
    struct emu_random random;
    uint64_t next_ps;
    uint64_t pad[6]; /* nodes of different threads */
};

struct load {
    struct source *sources;
    uint32_t n_nodes;
    uint32_t units;
    double mean_ps; /* between two packets of a node */
    enum emu_route_mode mode;
    double gaps_ps[QUANTILES]; /* quantiles of that */
};

/* Exponential: between two quantiles by a straight line, beyond the last one as it is. The traffic shall not cost what
 * the network does. */
static uint64_t gap_ps(const struct load *load, struct emu_random *random)
{
    uint64_t bits = emu_random_next(random);
    uint64_t i = bits >> 54;
    double part = (double)(bits << 10 >> 11) * 0x1p-53;

    if (i == QUANTILES - 1)
        return (uint64_t)(load->gaps_ps[i] - log1p(-part) * load->mean_ps);
    return (uint64_t)(load->gaps_ps[i] + part * (load->gaps_ps[i + 1] - load->gaps_ps[i]));
}

static bool next_packet(void *ctx, struct emu_sim *sim, uint32_t nid, enum emu_traffic_class traffic_class,
                        uint64_t now_ps, struct emu_packet *p)
{
    struct load *load = ctx;
    struct source *s = &load->sources[nid];

    (void)sim;
    (void)now_ps;
    if (traffic_class != EMU_TRAFFIC_REQUEST)
        return false;
    s->next_ps += gap_ps(load, &s->random);
    p->created_ps = s->next_ps;
    p->dst_nid = (uint32_t)((emu_random_next(&s->random) >> 32) * (load->n_nodes - 1) >> 32);
    p->dst_nid += p->dst_nid >= nid;
    p->units = (uint16_t)load->units;
    p->mode = (uint8_t)load->mode;
    return true;
}

static void delivered(void *ctx, struct emu_sim *sim, uint32_t nid, const struct emu_packet *p, uint64_t now_ps)
{
    (void)ctx;
    (void)sim;
    (void)nid;
    (void)p;
    (void)now_ps;
}

static double seconds(clockid_t clock)
{
    struct timespec t;

    clock_gettime(clock, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* Of this process, in memory. */
static double resident_bytes(void)
{
    FILE *f = fopen("/proc/self/statm", "r");
    long pages = 0;

    if (!f)
        return 0;
    if (fscanf(f, "%*d %ld", &pages) != 1)
        pages = 0;
    fclose(f);
    return (double)pages * (double)sysconf(_SC_PAGESIZE);
}

static double mean_hops(const struct emu_machine *m)
{
    double sum = 0;

    for (uint32_t i = 1; i < m->n_nodes; i++)
        sum += sim_torus_hops(m, 0, i);
    return sum / (m->n_nodes - 1);
}

struct arguments {
    struct sim_torus torus;
    struct emu_sim_options options;
    enum emu_route_mode mode;
    bool is_bgl;
    const char *spec; /* of a machine, instead of the torus */
    const char *dir;
    double percent; /* of what the links carry */
    double us;
};

static bool take_rules(struct arguments *a, const char *rules)
{
    a->is_bgl = strcmp(rules, "bgl") == 0;
    a->mode = strcmp(rules, "order") == 0 ? EMU_MODE_DETERMINISTIC : EMU_MODE_ADAPTIVE_0;
    return a->is_bgl || a->mode == EMU_MODE_DETERMINISTIC || strcmp(rules, "adaptive") == 0;
}

static bool read_arguments(int argc, char **argv, struct arguments *a)
{
    static const struct option long_options[] = {
        { "size", required_argument, NULL, 's' },    { "load", required_argument, NULL, 'l' },
        { "threads", required_argument, NULL, 't' }, { "us", required_argument, NULL, 'u' },
        { "machine", required_argument, NULL, 'm' }, { "machines", required_argument, NULL, 'd' },
        { "rules", required_argument, NULL, 'r' },   { NULL, 0, NULL, 0 },
    };
    uint32_t *size = a->torus.size;
    bool is_good = true;
    int c;

    while (is_good && (c = getopt_long(argc, argv, "", long_options, NULL)) != -1) {
        if (c == 's')
            is_good = sscanf(optarg, "%ux%ux%u", &size[0], &size[1], &size[2]) == 3;
        else if (c == 'l')
            a->percent = strtod(optarg, NULL);
        else if (c == 't')
            a->options.n_threads = (uint32_t)strtoul(optarg, NULL, 10);
        else if (c == 'u')
            a->us = strtod(optarg, NULL);
        else if (c == 'm')
            a->spec = optarg;
        else if (c == 'd')
            a->dir = optarg;
        else
            is_good = c == 'r' && take_rules(a, optarg);
    }
    return is_good;
}

/* The test's own torus; each node offers its share of what six links carry. */
static struct emu_machine *make_torus(struct arguments *a, struct load *load)
{
    struct sim_torus *torus = &a->torus;
    struct emu_machine *m;

    if (a->is_bgl) {
        torus->rules = SIM_TORUS_BUBBLE;
    } else {
        torus->router.choice = EMU_CHOICE_CREDITS;
        torus->router.arbitration = EMU_ARBITRATE_ROUND_ROBIN;
        torus->router.network_first_percent = 0;
        torus->router.response_first = 0;
        torus->router.paths = 0;
        torus->router.requests = 0;
    }
    m = sim_torus_create(torus);
    load->units = torus->router.packet_units_max;
    load->mean_ps = (load->units + torus->router.packet_overhead_flits) * (8e6 / torus->link_mbps) * mean_hops(m) / 6 /
                    (a->percent / 100);
    return m;
}

static struct emu_machine *load_machine(const struct arguments *a, struct load *load)
{
    const struct emu_link_params *link;
    struct emu_machine *m;
    char err[300] = "";

    if (emu_machine_load(a->spec, a->dir, &m, err, sizeof(err)) < 0) {
        fprintf(stderr, "sim_speed: %s\n", err);
        return NULL;
    }
    link = &m->params.link[EMU_LINK_PROCESSOR_IN];
    load->units = m->params.router.packet_units_max;
    load->mean_ps = load->units * (m->params.nic.format.flit_bits * 1e6 / ((double)link->lanes * link->mbps_per_lane)) /
                    (a->percent / 100);
    return m;
}

static void start_load(struct load *load, const struct emu_machine *m)
{
    for (uint32_t i = 0; i < QUANTILES; i++)
        load->gaps_ps[i] = -log1p(-(double)i / QUANTILES) * load->mean_ps;
    load->n_nodes = m->n_nodes;
    load->sources = calloc(m->n_nodes, sizeof(*load->sources));
    for (uint32_t i = 0; i < m->n_nodes; i++)
        load->sources[i].random.state = emu_random_mix(i + 1);
}

static void run_and_report(struct emu_sim *sim, double us, double bytes_per_node)
{
    struct emu_sim_totals t;
    double begin, run_s, cpu_s;

    emu_sim_run(sim, (uint64_t)(us * 1e5));
    emu_sim_reset_stats(sim);
    cpu_s = seconds(CLOCK_PROCESS_CPUTIME_ID);
    begin = seconds(CLOCK_MONOTONIC);
    emu_sim_run(sim, (uint64_t)(us * 1e6));
    cpu_s = seconds(CLOCK_PROCESS_CPUTIME_ID) - cpu_s;
    run_s = seconds(CLOCK_MONOTONIC) - begin;
    emu_sim_totals(sim, &t);
    printf("wall_s %.3f cpu_s %.3f packet_hops %llu events %llu delivered %llu in_network %llu hash %016llx\n", run_s,
           cpu_s, (unsigned long long)t.packet_hops, (unsigned long long)t.events, (unsigned long long)t.delivered,
           (unsigned long long)t.in_network, (unsigned long long)t.trace_hash);
    printf("hops_per_s %.2fM events_per_s %.2fM ns_per_hop %.1f ns_per_packet %.1f mean_latency_us %.3f bytes_per_node "
           "%.0f\n",
           (double)t.packet_hops / run_s * 1e-6, (double)t.events / run_s * 1e-6, run_s * 1e9 / (double)t.packet_hops,
           run_s * 1e9 / (double)t.delivered, (double)t.latency_sum_ps / (double)t.delivered * 1e-6, bytes_per_node);
}

int main(int argc, char **argv)
{
    struct arguments a = { .torus = sim_torus_default(),
                           .options = { .seed = 1, .n_threads = 1 },
                           .mode = EMU_MODE_ADAPTIVE_0,
                           .dir = "emunic/machines",
                           .percent = 60,
                           .us = 2000 };
    struct load load = { 0 };
    struct emu_traffic traffic = { .ctx = &load, .next = next_packet, .delivered = delivered };
    struct emu_machine *m;
    struct emu_sim *sim;
    double begin, bytes_per_node, resident;
    int r;

    if (!read_arguments(argc, argv, &a))
        return 2;
    begin = seconds(CLOCK_MONOTONIC);
    load.mode = a.mode;
    m = a.spec ? load_machine(&a, &load) : make_torus(&a, &load);
    if (!m)
        return 1;
    start_load(&load, m);
    resident = resident_bytes();
    r = emu_sim_create(m, NULL, &traffic, &a.options, &sim);
    if (r < 0) {
        fprintf(stderr, "sim_speed: %s\n", strerror(-r));
        return 1;
    }
    bytes_per_node = (double)emu_sim_memory(sim) / m->n_nodes;
    resident = resident_bytes() - resident;
    printf("nodes %u routers %u links %u threads %u\n", m->n_nodes, m->n_routers, m->n_links, a.options.n_threads);
    printf("build_s %.3f bytes_per_node %.0f resident_per_node %.0f\n", seconds(CLOCK_MONOTONIC) - begin,
           bytes_per_node, resident / m->n_nodes);
    run_and_report(sim, a.us, bytes_per_node);
    emu_sim_destroy(sim);
    if (a.spec)
        emu_machine_destroy(m);
    else
        sim_torus_destroy(m);
    free(load.sources);
    return 0;
}
