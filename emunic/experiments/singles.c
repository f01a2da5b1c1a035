/* SPDX-License-Identifier: BSD-3-Clause */
#include "emunic/experiments/singles.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "emunic/experiments/probe.h"
#include "emunic/experiments/put_flows.h"
#include "emunic/experiments/traffic.h"
#include "emunic/fabric/link.h"
#include "emunic/fabric/route.h"
#include "emunic/fabric/sim/sim.h"
#include "emunic/model/nic_model.h"

#define DONE_PS UINT64_C(1000000000000) /* a second: all packets have arrived */

/* ---- packets to a list of nodes ---- */

/* Each node that sends has as many packets for each of its destinations, the nodes behind it in turn. */
struct round {
    uint32_t first_src, n_src, n_dst;
    uint32_t step; /* to the first destination */
    uint32_t *n_sent;
    uint32_t last_arrived_at;
    uint32_t units;
    uint32_t n_nodes;
    uint32_t repeat;
};

static bool next_of_round(void *ctx, struct emu_sim *sim, uint32_t nid, enum emu_traffic_class traffic_class,
                          uint64_t now_ps, struct emu_packet *packet)
{
    struct round *round = ctx;

    (void)sim;
    if (traffic_class != EMU_TRAFFIC_REQUEST || nid < round->first_src || nid >= round->first_src + round->n_src ||
        round->n_sent[nid] == round->n_dst * round->repeat)
        return false;
    packet->dst_nid = (nid + round->step + round->n_sent[nid] % round->n_dst) % round->n_nodes;
    packet->units = (uint16_t)round->units;
    packet->mode = EMU_MODE_ADAPTIVE_0;
    packet->order_key = 0;
    packet->tag = 0;
    packet->created_ps = now_ps;
    round->n_sent[nid]++;
    return true;
}

static void take_of_round(void *ctx, struct emu_sim *sim, uint32_t nid, const struct emu_packet *packet,
                          uint64_t now_ps)
{
    struct round *round = ctx;

    (void)sim;
    (void)packet;
    (void)now_ps;
    round->last_arrived_at = nid;
}

/* To its end. */
static int run_round(struct emu_exp *x, const struct emu_machine *m, struct round *round, struct emu_sim **sim_out)
{
    const struct emu_traffic traffic = { .ctx = round, .next = next_of_round, .delivered = take_of_round };
    const struct emu_sim_options options = { .seed = emu_exp_context(x)->seed };
    int r;

    round->n_nodes = emu_machine_n_nodes(m);
    round->units = emu_packet_units(m, emu_machine_nic(m)->format.payload_bytes_max);
    round->n_sent = calloc(round->n_nodes, sizeof(*round->n_sent));
    r = !round->n_sent ? -ENOMEM : emu_sim_create(m, NULL, &traffic, &options, sim_out);
    if (r == 0 && emu_sim_run(*sim_out, DONE_PS) != EMU_SIM_EMPTY) {
        emu_sim_destroy(*sim_out);
        r = -EIO;
    }
    free(round->n_sent);
    round->n_sent = NULL;
    return r;
}

/* ---- ports of a switch ---- */

#define PORTS_TRIED 64 /* more than a switch has */
#define ROUNDS      8  /* so that flows take all links that they may */

/* Links out of a router that carried packets; of the router with the most of them. */
static uint32_t most_links(const struct emu_machine *m, const struct emu_sim *sim)
{
    uint32_t *n = calloc(emu_machine_n_routers(m), sizeof(*n));
    uint32_t most = 0;

    for (uint32_t id = 0; n && id < emu_machine_n_links(m); id++) {
        struct emu_sim_link_stats stats;
        struct emu_link link;

        if (emu_link_get(m, id, &link) < 0 || link.from.kind != EMU_END_ROUTER)
            continue;
        emu_sim_link_stats(sim, id, &stats);
        n[link.from.index] += stats.packets > 0;
        if (n[link.from.index] > most)
            most = n[link.from.index];
    }
    free(n);
    return most;
}

int single_ports(struct emu_exp *x, const char *machine, const char *key)
{
    struct emu_machine *m = NULL;
    struct emu_sim *sim;
    uint32_t n = PORTS_TRIED;
    struct round round;
    double got = NAN;
    char spec[80];
    int r;

    do {
        (void)snprintf(spec, sizeof(spec), "%s:%s=%u", machine, key, n);
        r = emu_machine_load(spec, emu_exp_context(x)->machine_dir, &m, NULL, 0);
    } while (r < 0 && --n > 0);
    if (r < 0)
        return r;
    round = (struct round){
        .n_src = emu_machine_n_nodes(m), .n_dst = emu_machine_n_nodes(m) - 1, .step = 1, .repeat = ROUNDS
    };
    r = run_round(x, m, &round, &sim);
    if (r == 0) {
        got = most_links(m, sim);
        emu_sim_destroy(sim);
        emu_exp_detail(x, "the largest: %s", spec);
        emu_exp_exact(x, 'S', "ports_of_a_switch", "links", 24, got); /* 7.1 */
    }
    emu_machine_destroy(m);
    return r;
}

/* ---- a published name ---- */

int single_named_node(struct emu_exp *x)
{
    static const char name[] = "c7-5c2s15n3"; /* at Cori nid 13055 [I] spec/cray-runtime.md 4.2 */
    struct emu_machine *m;
    struct round round = { .n_src = 1, .n_dst = 1, .repeat = 1, .last_arrived_at = UINT32_MAX };
    struct emu_sim *sim;
    double got = NAN;
    int r = emu_exp_machine(x, "aries:groups=34", &m);

    if (r < 0)
        return r;
    if (emu_machine_nid_of_cname(m, name, &round.step) == 0 && run_round(x, m, &round, &sim) == 0) {
        got = round.last_arrived_at;
        emu_sim_destroy(sim);
    }
    emu_machine_destroy(m);
    emu_exp_exact(x, 'S', "a_packet_to_c7-5c2s15n3_arrives_at", "nid", 13055, got);
    return 0;
}

/* ---- loads of neighbours ---- */

/*
 * A node sends a packet each clock to another group. Every way there leaves its group behind one hop; at some moment
 * the nodes at those outputs fill them. The sender's router goes on until it hears of that, and then sends packets by
 * third groups. It hears at the end of a period. So the moments of the change, clock by clock, lead to moments of the
 * answer that are whole periods apart.
 */
#define NEWS_GROUP_NODES 24
#define NEWS_CLOCKS      64 /* of which each is the moment of a change */
#define NEWS_PACKETS     256
#define NEWS_BURST       3 /* packets of a node */
/* Whole clocks between all that matters. Routers behind the first keep to the way; ways by other groups look free. */
static const char news_machine[] =
    "aries:groups=16,chassis=1,blades=6,links.blue.gbps_per_lane=1,router.clock_ps=20000,"
    "routing.threshold_flits=0,routing.adaptive_0.add_flits_per_hop=10000";

struct news {
    uint32_t dst;
    uint64_t clock_ps, change_ps;
    uint32_t n_sent[NEWS_GROUP_NODES];
    uint64_t heard_ps; /* when the first packet was made that takes another way */
};

static bool next_of_news(void *ctx, struct emu_sim *sim, uint32_t nid, enum emu_traffic_class traffic_class,
                         uint64_t now_ps, struct emu_packet *packet)
{
    struct news *news = ctx;
    bool is_first = nid == 0;

    (void)sim;
    (void)now_ps;
    if (traffic_class != EMU_TRAFFIC_REQUEST || nid >= NEWS_GROUP_NODES || (nid > 0 && nid < 4) ||
        news->n_sent[nid] == (is_first ? NEWS_PACKETS : NEWS_BURST))
        return false;
    packet->dst_nid = news->dst;
    packet->units = is_first ? 1 : 14;
    packet->mode = is_first ? EMU_MODE_ADAPTIVE_0 : EMU_MODE_MINIMAL;
    packet->order_key = 0;
    packet->tag = nid;
    packet->created_ps = news->change_ps + (is_first ? news->n_sent[nid] * news->clock_ps : 0);
    news->n_sent[nid]++;
    return true;
}

static void take_of_news(void *ctx, struct emu_sim *sim, uint32_t nid, const struct emu_packet *packet, uint64_t now_ps)
{
    struct news *news = ctx;

    (void)sim;
    (void)nid;
    (void)now_ps;
    if (packet->tag == 0 && (packet->flags & EMU_PACKET_NONMINIMAL) != 0 && packet->created_ps < news->heard_ps)
        news->heard_ps = packet->created_ps;
}

static uint64_t hear(struct emu_exp *x, const struct emu_machine *m, uint32_t dst, uint64_t change_ps)
{
    struct news news = {
        .dst = dst, .clock_ps = emu_machine_router(m)->clock_ps, .change_ps = change_ps, .heard_ps = UINT64_MAX
    };
    const struct emu_traffic traffic = { .ctx = &news, .next = next_of_news, .delivered = take_of_news };
    const struct emu_sim_options options = { .seed = emu_exp_context(x)->seed };
    struct emu_sim *sim;

    if (emu_sim_create(m, NULL, &traffic, &options, &sim) < 0)
        return UINT64_MAX;
    (void)emu_sim_run(sim, DONE_PS);
    emu_sim_destroy(sim);
    return news.heard_ps;
}

int single_load_period(struct emu_exp *x)
{
    struct emu_machine *m;
    struct emu_route route;
    uint64_t first_ps = 0, last_ps = 0;
    uint32_t dst, n = 0;
    double got = NAN;
    int r = emu_exp_machine(x, news_machine, &m);

    if (r < 0)
        return r;
    r = probe_find_peer(m, "green blue", true, &dst, &route);
    for (uint32_t i = 0; i < NEWS_CLOCKS && r == 0; i++) {
        uint64_t heard_ps = hear(x, m, dst, (NEWS_CLOCKS + i) * (uint64_t)emu_machine_router(m)->clock_ps);

        if (n > 0 && heard_ps <= last_ps)
            continue;
        first_ps = n++ == 0 ? heard_ps : first_ps;
        last_ps = heard_ps;
    }
    if (n > 1 && last_ps != UINT64_MAX)
        got = (double)(last_ps - first_ps) / (n - 1) / emu_machine_router(m)->clock_ps;
    emu_machine_destroy(m);
    emu_exp_exact(x, 'S', "period_of_loads", "clocks", 10, got); /* 2.2 */
    return 0;
}

/* ---- reductions ---- */

/*
 * A tree of two nodes: the root's engine waits for the other one and tells it. Each engine has one operation; with its
 * result the next one begins. So as many are under way as there are engines, if NICs have time for all: rate times the
 * duration of one that is alone. An engine is a process of the model without a host. They begin 100 ns after one
 * another, of some 600 that a reduction takes. With eight children it is 3.36: their packets take the root's NIC 50 ns
 * for each engine, in turns.
 */
#define TREE_CHILDREN 1
#define TREE_PS       UINT64_C(200000000)
#define TREE_APART_PS UINT64_C(100000)
#define CHILD(i)      (4 * ((i) + 1)) /* a node of each router */

struct tree {
    uint32_t n_missing[EMU_NIC_PROCS_MAX]; /* children that the root has not heard of, for each engine */
    uint32_t n_done;
};

static void tell(struct emu_nic_model *nm, struct emu_nic_proc from, uint32_t to, uint64_t at_ps)
{
    const struct emu_nic_op op = { .kind = EMU_NIC_PUT, .to = { to, from.proc }, .bytes = 8, .is_told = true };

    (void)emu_nic_post(nm, from, &op, at_ps);
}

static void reach(void *ctx, struct emu_nic_model *nm, const struct emu_nic_event *e)
{
    struct tree *tree = ctx;

    if (e->at.nid != 0) {
        tell(nm, e->at, 0, e->at_ps);
        return;
    }
    if (--tree->n_missing[e->at.proc] > 0)
        return;
    tree->n_missing[e->at.proc] = TREE_CHILDREN;
    tree->n_done++;
    for (uint32_t i = 0; i < TREE_CHILDREN; i++)
        tell(nm, e->at, CHILD(i), e->at_ps);
}

static void complete(void *ctx, struct emu_nic_model *nm, const struct emu_nic_event *e)
{
    (void)ctx;
    (void)nm;
    (void)e;
}

/* Of reductions in a run. */
static double count_reductions(struct emu_exp *x, const struct emu_machine *m, uint32_t n_engines)
{
    struct emu_nic_setup setup = {
        .machine = m, .host = *emu_machine_node_params(m), .mode = EMU_MODE_ADAPTIVE_0, .seed = emu_exp_context(x)->seed
    };
    struct tree tree = { .n_done = 0 };
    const struct emu_nic_program program = { .ctx = &tree, .completed = complete, .arrived = reach };
    struct emu_nic_model *nm;

    setup.host.issue_ps = 0; /* engines have no host */
    setup.host.write_ps = 0;
    setup.host.put_gap_ps = 0;
    if (n_engines > EMU_NIC_PROCS_MAX || emu_nic_model_create(&setup, &program, &nm) < 0)
        return NAN;
    for (uint32_t e = 0; e < n_engines; e++) {
        tree.n_missing[e] = TREE_CHILDREN;
        for (uint32_t i = 0; i < TREE_CHILDREN; i++)
            tell(nm, (struct emu_nic_proc){ CHILD(i), e }, 0, e * TREE_APART_PS);
    }
    (void)emu_sim_run(emu_nic_model_sim(nm), TREE_PS);
    emu_nic_model_destroy(nm);
    return tree.n_done;
}

int single_reductions(struct emu_exp *x)
{
    struct emu_machine *m;
    double alone, all;
    int r = emu_exp_machine(x, "aries:groups=2", &m);

    if (r < 0)
        return r;
    alone = count_reductions(x, m, 1);
    all = count_reductions(x, m, emu_machine_nic(m)->ce_engines);
    emu_exp_detail(x, "%g reductions alone, %g by all engines, in 200 us", alone, all);
    emu_machine_destroy(m);
    emu_exp_figure(x, 'S', "reductions_at_once", "1", emu_exp_within(4, 0.02), all / alone); /* 2.3 */
    return 0;
}

/* ---- packets without answer ---- */

/* 16 hops of 200 us, each with a channel of 127 packets, hold 2 032; the first answer is back behind that. */
#define LONG_WAY    "bluegene-l:x=32,router.vc_units=32767,router.hop_ns=200000"
#define LONG_HOPS   16
#define LONG_BEFORE UINT64_C(3200000000) /* ps: nothing has arrived */
#define LONG_GAP_PS 1

int single_under_way(struct emu_exp *x)
{
    const struct emu_flow_spec spec = { .src_nid = 0, .dst_nid = LONG_HOPS };
    const struct emu_flows_options options = { .gap_ps = LONG_GAP_PS,
                                               .mode = EMU_MODE_DETERMINISTIC,
                                               .seed = emu_exp_context(x)->seed };
    struct emu_flows_counts counts = { 0 };
    struct emu_flows *flows;
    struct emu_machine *m;
    double got = NAN;
    int r = emu_exp_machine(x, LONG_WAY, &m);

    if (r < 0)
        return r;
    if (emu_flows_create(m, NULL, &spec, 1, &options, &flows) == 0) {
        if (emu_flows_run(flows, LONG_BEFORE) == 0) {
            emu_flows_counts(flows, &counts);
            got = (double)(counts.sent - counts.answered);
        }
        emu_flows_destroy(flows);
    }
    emu_machine_destroy(m);
    emu_exp_exact(x, 'S', "packets_without_answer", "packets", 1024, got);
    return 0;
}
