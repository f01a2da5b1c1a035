/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A small torus with traffic, for tests of the packet simulator: what its nodes send, and what came back.
 */
#ifndef TESTS_UNIT_FABRIC_SIM_NET_H
#define TESTS_UNIT_FABRIC_SIM_NET_H

#include <stdbool.h>
#include <string.h>

#include "emunic/fabric/sim/sim.h"
#include "tests/common/sim_torus.h"
#include "tests/unit/fabric/fixture.h"

#define NODES_MAX 512
#define LIST_MAX  4096

/* A node's traffic: a list of packets, or random ones without end, and what came back. */
struct node {
    struct emu_random random;
    uint32_t n_list;
    uint32_t n_taken;
    uint32_t first; /* of the list, in struct net */
    uint64_t n_sent;
    uint64_t n_received;
    uint64_t n_lost;
    uint64_t last_ps;
    uint64_t next_tag[NODES_MAX];     /* per destination */
    uint64_t expected_tag[NODES_MAX]; /* per source */
    uint32_t n_disorder;
    uint32_t n_corrupt;
};

struct net {
    struct emu_machine *m;
    struct emu_sim *sim;
    struct emu_fault_map *faults;
    struct node nodes[NODES_MAX];
    struct emu_packet list[LIST_MAX];
    uint32_t n_list;
    uint64_t n_random; /* packets that each node makes */
    double mean_ps;    /* between them; 0: as fast as the network takes them */
    uint32_t units_min;
    uint32_t units_max;
    enum emu_route_mode mode;
    uint64_t timer_ps;
    uint64_t timer_cookie;
};

static inline bool next_packet(void *ctx, struct emu_sim *sim, uint32_t nid, enum emu_traffic_class traffic_class,
                               uint64_t now_ps, struct emu_packet *p)
{
    struct net *net = ctx;
    struct node *n = &net->nodes[nid];

    (void)sim;
    if (n->n_taken < n->n_list) {
        const struct emu_packet *next = &net->list[n->first + n->n_taken];

        if (next->traffic_class != traffic_class)
            return false;
        *p = *next;
        n->n_taken++;
        n->n_sent++;
        return true;
    }
    if (traffic_class != EMU_TRAFFIC_REQUEST || n->n_sent >= net->n_random)
        return false;
    p->dst_nid = (uint32_t)emu_random_below(&n->random, net->m->n_nodes - 1);
    p->dst_nid += p->dst_nid >= nid;
    p->units = (uint16_t)(net->units_min + emu_random_below(&n->random, net->units_max - net->units_min + 1));
    p->mode = (uint8_t)net->mode;
    p->created_ps = now_ps;
    if (net->mean_ps > 0) {
        n->last_ps += emu_random_below(&n->random, (uint64_t)(2 * net->mean_ps));
        p->created_ps = n->last_ps;
    }
    p->tag = n->next_tag[p->dst_nid]++;
    n->n_sent++;
    return true;
}

static inline void delivered(void *ctx, struct emu_sim *sim, uint32_t nid, const struct emu_packet *p, uint64_t now_ps)
{
    struct net *net = ctx;
    struct node *n = &net->nodes[nid];

    (void)sim;
    n->n_received++;
    if (net->mean_ps == 0)
        n->last_ps = now_ps;
    n->n_corrupt += (p->flags & EMU_PACKET_CORRUPT) != 0;
    if (p->tag != n->expected_tag[p->src_nid])
        n->n_disorder++;
    n->expected_tag[p->src_nid] = p->tag + 1;
    assert_true(p->dst_nid == nid || (p->flags & EMU_PACKET_BROADCAST) != 0);
}

static inline void lost(void *ctx, struct emu_sim *sim, uint32_t nid, const struct emu_packet *p, uint64_t now_ps)
{
    struct net *net = ctx;

    (void)sim;
    (void)now_ps;
    assert_int_equal(p->src_nid, nid);
    net->nodes[nid].n_lost++;
}

static inline void timer(void *ctx, struct emu_sim *sim, uint32_t nid, uint64_t cookie, uint64_t now_ps)
{
    struct net *net = ctx;

    (void)nid;
    net->timer_ps = now_ps;
    net->timer_cookie = cookie;
    emu_sim_wake(sim, nid, EMU_TRAFFIC_REQUEST);
}

/* Bytes at 1 Gb/s: 8 ns each; no overheads, 100 ns per hop of which 20 are wire, a NIC ten times as fast. */
static inline struct sim_torus plain(uint32_t x, uint32_t y, uint32_t z)
{
    struct sim_torus torus = sim_torus_default();

    torus.size[0] = x;
    torus.size[1] = y;
    torus.size[2] = z;
    torus.link_mbps = 1000;
    torus.nic_mbps = 10000;
    torus.wire_ps = 20000;
    torus.router = (struct emu_router_params){
        .hop_ps = 100000,
        .hop_wire_ps = 20000,
        .frame_flits = 1,
        .crc_bits = 24,
        .clock_ps = 1000,
        .vc_units = 256,
        .token_units = 1,
        .packet_units_max = 64,
        .choice = EMU_CHOICE_CREDITS,
    };
    return torus;
}

static inline struct net *make(const struct sim_torus *torus)
{
    struct net *net = calloc(1, sizeof(*net));

    assert_non_null(net);
    net->m = sim_torus_create(torus);
    assert_true(net->m->n_nodes <= NODES_MAX);
    net->units_min = 64;
    net->units_max = 64;
    for (uint32_t i = 0; i < net->m->n_nodes; i++)
        net->nodes[i].random.state = emu_random_mix(i + 77);
    return net;
}

static inline void add(struct net *net, uint32_t src, uint32_t dst, uint32_t units, uint64_t created_ps)
{
    struct node *n = &net->nodes[src];

    if (n->n_list == 0)
        n->first = net->n_list;
    assert_int_equal(n->first + n->n_list, net->n_list); /* one node after the other */
    net->list[net->n_list++] = (struct emu_packet){
        .src_nid = src,
        .dst_nid = dst,
        .units = (uint16_t)units,
        .mode = (uint8_t)net->mode,
        .created_ps = created_ps,
        .tag = n->next_tag[dst]++,
    };
    n->n_list++;
}

/* Counts of occupancy are what a plain machine decides without (plain.c). Tests of both ways run twice: PLAINLY(). */
static bool counts_occupancy = true;

static inline int decide_plainly(void **state)
{
    (void)state;
    counts_occupancy = false;
    return 0;
}

static inline int decide_by_router(void **state)
{
    (void)state;
    counts_occupancy = true;
    return 0;
}

static inline void build(struct net *net, uint32_t n_threads)
{
    const struct emu_traffic traffic = {
        .ctx = net,
        .next = next_packet,
        .delivered = delivered,
        .lost = lost,
        .timer = timer,
    };
    const struct emu_sim_options options = { .seed = 5, .n_threads = n_threads, .count_occupancy = counts_occupancy };

    assert_int_equal(emu_sim_create(net->m, net->faults, &traffic, &options, &net->sim), 0);
}

static inline void destroy(struct net *net)
{
    emu_sim_destroy(net->sim);
    emu_fault_map_destroy(net->faults);
    sim_torus_destroy(net->m);
    free(net);
}

static inline struct emu_sim_totals totals_of(const struct net *net)
{
    struct emu_sim_totals t;

    emu_sim_totals(net->sim, &t);
    return t;
}

static inline struct emu_sim_link_stats stats_of(const struct net *net, uint32_t link)
{
    struct emu_sim_link_stats s;

    emu_sim_link_stats(net->sim, link, &s);
    return s;
}

static inline uint64_t sum_of(const struct net *net, size_t field)
{
    uint64_t sum = 0;

    for (uint32_t i = 0; i < net->m->n_nodes; i++)
        sum += *(const uint64_t *)(const void *)((const char *)&net->nodes[i] + field);
    return sum;
}

#define SUM(net, field) sum_of(net, offsetof(struct node, field))
#define EVER            (UINT64_C(1) << 60)
#define PLAINLY(test)   cmocka_unit_test_setup_teardown(test, decide_plainly, decide_by_router)

#endif
