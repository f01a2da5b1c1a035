/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The packet simulator on small tori, where latencies and bandwidths can be said exactly.
 */
#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "emunic/fabric/sim/state.h"
#include "tests/unit/fabric/sim_net.h"

static void test_time_of_an_empty_network_stands_however_often_it_runs(void **state)
{
    struct sim_torus torus = plain(4, 1, 1);
    struct net *net = make(&torus);
    uint64_t end_ps;

    (void)state;
    add(net, 0, 1, 64, 5000);
    build(net, 1);
    assert_int_equal(emu_sim_run(net->sim, EVER), EMU_SIM_EMPTY);
    end_ps = emu_sim_now(net->sim);
    assert_true(end_ps > 5000 && end_ps < 10000000);
    for (int i = 0; i < 5; i++)
        assert_int_equal(emu_sim_run(net->sim, EVER), EMU_SIM_EMPTY);
    assert_int_equal(emu_sim_now(net->sim), end_ps);
    destroy(net);
}

/* ---- one packet ---- */

static void test_lone_packet_takes_hops_and_one_serialisation(void **state)
{
    struct sim_torus torus = plain(8, 1, 1);

    (void)state;
    for (uint32_t hops = 1; hops <= 4; hops++) {
        struct net *net = make(&torus);

        add(net, 0, hops, 50, 1234567);
        build(net, 1);
        assert_int_equal(emu_sim_run(net->sim, EVER), EMU_SIM_EMPTY);
        assert_int_equal(net->nodes[hops].n_received, 1);
        /* The NIC's link has no wire; its head can be decided on in the slot after it starts. The links are the slowest
         * part: the tail follows the head by 50 x 8 ns. */
        assert_int_equal(totals_of(net).latency_sum_ps, 433 + hops * 100000 + 50 * 8000);
        assert_int_equal(totals_of(net).packet_hops, hops);
        destroy(net);
    }
}

static void test_packet_to_the_own_router_takes_the_nics_time_only(void **state)
{
    struct sim_torus torus = plain(4, 1, 1);
    struct net *net = make(&torus);

    (void)state;
    add(net, 2, 2, 64, 5000);
    build(net, 1);
    assert_int_equal(emu_sim_run(net->sim, EVER), EMU_SIM_EMPTY);
    assert_int_equal(totals_of(net).latency_sum_ps, 1000 + 64 * 800);
    destroy(net);
}

static void test_packet_waits_for_the_time_it_is_made(void **state)
{
    struct sim_torus torus = plain(4, 1, 1);
    struct net *net = make(&torus);

    (void)state;
    add(net, 0, 1, 64, UINT64_C(7000000000));
    build(net, 1);
    assert_int_equal(emu_sim_run(net->sim, UINT64_C(6000000000)), EMU_SIM_REACHED);
    assert_int_equal(emu_sim_now(net->sim), UINT64_C(6000000000));
    assert_int_equal(totals_of(net).entered, 0);
    assert_int_equal(emu_sim_run(net->sim, EVER), EMU_SIM_EMPTY);
    assert_int_equal(net->nodes[1].last_ps, UINT64_C(7000000000) + 1000 + 100000 + 64 * 8000);
    destroy(net);
}

/* ---- bandwidth ---- */

static void test_full_link_carries_exactly_its_bandwidth(void **state)
{
    struct sim_torus torus = plain(4, 1, 1);
    struct net *net;
    struct emu_sim_link_stats s;

    (void)state;
    torus.router.frame_flits = 10;
    torus.router.frame_overhead_flits = 1;
    torus.router.packet_overhead_flits = 6;
    net = make(&torus);
    for (uint32_t i = 0; i < 1000; i++)
        add(net, 0, 1, 64, 0);
    build(net, 1);
    assert_int_equal(emu_sim_run(net->sim, EVER), EMU_SIM_EMPTY);
    s = stats_of(net, sim_torus_link(net->m, 0, 0, 1));
    assert_int_equal(s.packets, 1000);
    assert_int_equal(s.units, 64000);
    /* (64 + 6) bytes of 8 ns, in frames of which nine tenths are payload; to the picosecond per packet. */
    assert_in_range(s.busy_ps, 1000 * UINT64_C(622222), 1000 * UINT64_C(622223));
    assert_in_range(net->nodes[1].last_ps, 1000 + 100000 + s.busy_ps - 500, 1000 + 100000 + s.busy_ps + 500);
    destroy(net);
}

static void test_small_buffer_limits_a_link_to_its_round_trip(void **state)
{
    struct sim_torus torus = plain(4, 1, 1);
    struct net *net;
    struct emu_sim_link_stats s;
    uint64_t round_trip;

    (void)state;
    torus.rules = SIM_TORUS_RING; /* one channel */
    torus.router.vc_units = 64;
    net = make(&torus);
    for (uint32_t i = 0; i < 1000; i++)
        add(net, 0, 1, 64, 0);
    build(net, 1);
    assert_int_equal(emu_sim_run(net->sim, EVER), EMU_SIM_EMPTY);
    /*
     * One packet in the buffer: head there after a hop, tail out when it is in (the NIC's link is faster), token back.
     */
    round_trip = 100000 + 64 * 8000 + 20000;
    assert_in_range(net->nodes[1].last_ps / 1000, round_trip - 20, round_trip + 1000);
    s = stats_of(net, sim_torus_link(net->m, 0, 0, 1));
    assert_in_range(s.stall_ps / 1000, 119000, 121000);
    assert_in_range(s.vc_occupancy[0] / 1000 / 64, 0, 1000); /* what passes through fills nothing */
    destroy(net);
}

/* Nodes 0 and 1 send to node 2, over one link, for a while. */
static struct net *let_two_share_a_link(uint32_t gap_clocks, uint32_t network_first_percent, uint64_t end_ps)
{
    struct sim_torus torus = plain(4, 1, 1);
    struct net *net;

    torus.rules = SIM_TORUS_RING;
    torus.router.vc_units = 128;
    torus.router.arb_gap_clocks = gap_clocks;
    torus.router.network_first_percent = network_first_percent;
    net = make(&torus);
    for (uint32_t src = 0; src < 2; src++) {
        for (uint32_t i = 0; i < 1000; i++)
            add(net, src, 2, 64, 0);
    }
    build(net, 1);
    assert_int_equal(emu_sim_run(net->sim, end_ps), EMU_SIM_REACHED);
    return net;
}

static void test_packets_that_wait_fill_the_buffer(void **state)
{
    const uint64_t end_ps = 500 * 64 * UINT64_C(8000);
    struct net *net = let_two_share_a_link(0, 0, end_ps);

    (void)state;
    /* Two packets, of which one goes out for half of the time and one comes in for as long behind it. */
    assert_in_range(stats_of(net, sim_torus_link(net->m, 0, 0, 1)).vc_occupancy[0] / end_ps, 80, 128);
    destroy(net);
}

static void test_gap_in_a_ports_requests_lets_injections_in(void **state)
{
    const uint64_t end_ps = 500 * 64 * UINT64_C(8000);
    struct net *without = let_two_share_a_link(0, 100, end_ps);
    struct net *with = let_two_share_a_link(1, 100, end_ps);

    (void)state;
    assert_in_range(without->nodes[2].expected_tag[1], 0, 10);
    assert_in_range(with->nodes[2].expected_tag[1], 200, 500);
    destroy(without);
    destroy(with);
}

static void test_shared_buffer_lends_a_lone_channel_all_it_needs(void **state)
{
    struct sim_torus torus = plain(4, 1, 1);
    struct net *net;

    (void)state;
    torus.router.vc_units = 64;
    torus.router.shared_units = 128;
    net = make(&torus);
    net->mode = EMU_MODE_DETERMINISTIC;
    for (uint32_t i = 0; i < 1000; i++)
        add(net, 0, 1, 64, 0);
    build(net, 1);
    assert_int_equal(emu_sim_run(net->sim, EVER), EMU_SIM_EMPTY);
    assert_int_equal(net->nodes[1].last_ps, 1000 + 100000 + 1000 * 64 * 8000ull);
    destroy(net);
}

static void test_shared_buffer_leaves_each_channel_its_own(void **state)
{
    struct out_link out = { .tokens = { 64, 64 }, .shared_tokens = 100 };

    (void)state;
    sim_take_tokens(&out, 0, 40);
    assert_int_equal(sim_free_tokens(&out, 0), 24 + 100);
    sim_take_tokens(&out, 0, 124); /* all that it can have */
    assert_int_equal(sim_free_tokens(&out, 0), 0);
    assert_int_equal(sim_free_tokens(&out, 1), 64);
    sim_take_tokens(&out, 1, 64);
    assert_int_equal(sim_free_tokens(&out, 1), 0);
    sim_return_tokens(&out, 0, 60); /* what was borrowed comes back first */
    assert_int_equal(sim_free_tokens(&out, 0), 60);
    assert_int_equal(sim_free_tokens(&out, 1), 60);
    sim_return_tokens(&out, 0, 104);
    sim_return_tokens(&out, 1, 64);
    assert_int_equal(out.tokens[0], 64);
    assert_int_equal(out.tokens[1], 64);
    assert_int_equal(out.shared_tokens, 100);
}

static void test_lost_lanes_slow_the_link(void **state)
{
    struct sim_torus torus = plain(4, 1, 1);
    struct net *net;

    (void)state;
    torus.lanes = 4;
    torus.link_mbps = 250;
    net = make(&torus);
    for (uint32_t i = 0; i < 100; i++)
        add(net, 0, 1, 64, 0);
    assert_int_equal(emu_fault_map_create(net->m, &net->faults), 0);
    assert_int_equal(emu_fault_map_set_lanes(net->faults, sim_torus_link(net->m, 0, 0, 1), 0x5), 0);
    build(net, 1);
    assert_int_equal(emu_sim_run(net->sim, EVER), EMU_SIM_EMPTY);
    assert_int_equal(net->nodes[1].last_ps, 1000 + 100000 + 100 * 64 * 16000);
    assert_int_equal(stats_of(net, sim_torus_link(net->m, 0, 0, 1)).lanes_up, 2);
    destroy(net);
}

/* ---- many packets ---- */

static void check_all_arrive(struct net *net)
{
    struct emu_sim_totals t = totals_of(net);
    uint64_t units = 0;

    assert_int_equal(t.entered, SUM(net, n_sent));
    assert_int_equal(t.delivered, t.entered);
    assert_int_equal(SUM(net, n_received), t.entered);
    assert_int_equal(t.in_network, 0);
    assert_int_equal(t.lost + t.unroutable, 0);
    for (uint32_t link = 0; link < net->m->n_links; link++) {
        struct emu_sim_link_stats s = stats_of(net, link);

        if (link >= net->m->n_nodes && link < 2 * net->m->n_nodes)
            units += s.units;
        for (uint32_t vc = 0; vc < EMU_VCS_MAX; vc++) /* never more in a buffer than there is room */
            assert_true(s.vc_occupancy[vc] <=
                        emu_sim_now(net->sim) * (net->m->params.router.vc_units + net->m->params.router.shared_units));
    }
    assert_int_equal(units, t.delivered_units);
}

/* What paths say of each link is what the link has counted; each begins and ends where its packets did. */
static void test_paths_are_those_that_packets_have_taken(void **state)
{
    struct sim_torus torus = sim_torus_default();
    struct net *net;
    struct emu_sim_path path;
    uint64_t *packets, *units;
    uint64_t n_ways = 0, n_hops = 0;
    uint32_t place = 0;

    (void)state;
    memcpy(torus.size, (uint32_t[]){ 4, 4, 3 }, sizeof(torus.size));
    net = make(&torus);
    net->n_random = 100;
    net->units_min = 8;
    build(net, 1);
    assert_false(emu_sim_keeps_paths(net->sim));
    assert_false(emu_sim_next_path(net->sim, &place, &path));
    assert_int_equal(emu_sim_keep_paths(net->sim), 0);
    assert_true(emu_sim_keeps_paths(net->sim));
    assert_int_equal(emu_sim_run(net->sim, EVER), EMU_SIM_EMPTY);
    packets = calloc(net->m->n_links, sizeof(*packets));
    units = calloc(net->m->n_links, sizeof(*units));
    assert_non_null(packets);
    assert_non_null(units);
    while (emu_sim_next_path(net->sim, &place, &path)) {
        assert_int_not_equal(path.src_nid, path.dst_nid);
        assert_int_equal(path.traffic_class, EMU_TRAFFIC_REQUEST);
        n_ways++;
        n_hops += path.packets * (path.n_links - 2);
        for (uint32_t i = 0; i < path.n_links; i++) {
            packets[path.links[i]] += path.packets;
            units[path.links[i]] += path.units;
        }
        assert_int_equal(path.links[0], net->sim->nics[path.src_nid].link);
        assert_int_equal(net->sim->outs[path.links[path.n_links - 1]].to, path.dst_nid);
    }
    assert_true(n_ways >= 48 * 40);
    assert_int_equal(n_hops, totals_of(net).packet_hops);
    for (uint32_t link = 0; link < net->m->n_links; link++) {
        assert_int_equal(packets[link], stats_of(net, link).packets);
        assert_int_equal(units[link], stats_of(net, link).units);
    }
    assert_int_equal(emu_sim_untold_packets(net->sim), 0);
    free(packets);
    free(units);
    destroy(net);
}

static void test_paths_are_kept_by_one_thread_only(void **state)
{
    struct sim_torus torus = plain(4, 1, 1);
    struct net *net = make(&torus);

    (void)state;
    build(net, 2);
    assert_int_equal(emu_sim_keep_paths(net->sim), -EINVAL);
    assert_false(emu_sim_keeps_paths(net->sim));
    destroy(net);
}

static void test_everything_sent_arrives_once_under_every_policy(void **state)
{
    (void)state;
    for (uint32_t policy = 0; policy < 24; policy++) {
        struct sim_torus torus = sim_torus_default();
        struct net *net;

        memcpy(torus.size, (uint32_t[]){ 4, 4, 3 }, sizeof(torus.size));
        torus.rules = policy % 2 == 0 ? SIM_TORUS_DATELINE : SIM_TORUS_BUBBLE;
        torus.router.arbitration = policy / 2 % 5;
        torus.router.choice = (policy + policy / 4) % 4;
        torus.router.paths = policy % 3;
        torus.router.requests = policy / 8;
        torus.router.arb_gap_clocks = policy % 5 == 4;
        torus.router.load_period_clocks = 10;
        if (torus.rules == SIM_TORUS_DATELINE && policy / 4 % 2 == 0) {
            torus.router.vc_units = 256;
            torus.router.shared_units = 512;
        }
        net = make(&torus);
        net->n_random = 60;
        net->units_min = 1;
        net->units_max = 256;
        build(net, 1);
        assert_int_equal(emu_sim_run(net->sim, EVER), EMU_SIM_EMPTY);
        check_all_arrive(net);
        destroy(net);
    }
}

static void test_one_channel_keeps_order(void **state)
{
    struct sim_torus torus = plain(4, 4, 1);
    struct net *net = make(&torus);
    uint32_t n_disorder = 0;

    (void)state;
    net->mode = EMU_MODE_DETERMINISTIC;
    net->n_random = 400;
    net->units_min = 1;
    build(net, 1);
    assert_int_equal(emu_sim_run(net->sim, EVER), EMU_SIM_EMPTY);
    check_all_arrive(net);
    for (uint32_t i = 0; i < net->m->n_nodes; i++)
        n_disorder += net->nodes[i].n_disorder;
    assert_int_equal(n_disorder, 0);
    destroy(net);
}

static void check_threads(enum sim_torus_rules rules, uint32_t column_buffers)
{
    struct emu_sim_totals first = { 0 };

    for (uint32_t n_threads = 1; n_threads <= 8; n_threads *= 2) {
        struct sim_torus torus = sim_torus_default();
        struct emu_sim_totals t;
        struct net *net;

        memcpy(torus.size, (uint32_t[]){ 5, 4, 4 }, sizeof(torus.size));
        torus.rules = rules;
        torus.router.column_buffers = column_buffers;
        if (rules == SIM_TORUS_DATELINE) { /* plain */
            torus.router.paths = 0;
            torus.router.requests = 0;
            torus.router.choice = EMU_CHOICE_CREDITS;
        }
        net = make(&torus);
        net->n_random = 15;
        net->units_min = 1;
        net->units_max = 256;
        build(net, n_threads);
        for (uint64_t ps = 50000000; emu_sim_run(net->sim, ps) == EMU_SIM_REACHED; ps += 50000000)
            ;
        check_all_arrive(net);
        t = totals_of(net);
        if (n_threads == 1)
            first = t;
        assert_memory_equal(&t, &first, sizeof(t));
        destroy(net);
    }
}

static void test_threads_change_nothing(void **state)
{
    (void)state;
    check_threads(SIM_TORUS_BUBBLE, 0);
    check_threads(SIM_TORUS_BUBBLE, 1);
    check_threads(SIM_TORUS_DATELINE, 0);
}

/* Some links, for the second third of the time. */
static void break_for_a_time(struct net *net, uint64_t end_ps)
{
    struct emu_fault_map *faults;

    assert_int_equal(emu_sim_run(net->sim, end_ps / 3), EMU_SIM_REACHED);
    assert_int_equal(emu_fault_map_create(net->m, &faults), 0);
    for (uint32_t router = 0; router < net->m->n_routers; router += 7)
        assert_int_equal(emu_fault_map_set_link(faults, sim_torus_link(net->m, router, 0, 1), false), 0);
    emu_sim_set_faults(net->sim, faults);
    emu_fault_map_destroy(faults);
    assert_int_equal(emu_sim_run(net->sim, end_ps / 3 * 2), EMU_SIM_REACHED);
    emu_sim_set_faults(net->sim, NULL);
}

/* The two ways to decide draw random numbers differently, so this is about packets that need none. */
static void test_plain_machines_decide_like_others(void **state)
{
    (void)state;
    for (uint32_t kind = 0; kind < 16; kind++) {
        struct emu_sim_totals totals[2];
        enum emu_sim_stop stops[2];
        uint64_t stall_ps[2] = { 0 };

        for (uint32_t i = 0; i < 2; i++) {
            struct sim_torus torus = plain(4, 4, 3);
            struct net *net;

            torus.router.arbitration = kind % 2 == 0 ? EMU_ARBITRATE_ROUND_ROBIN : EMU_ARBITRATE_AGE;
            torus.router.network_first_percent = kind / 2 % 2 * 100;
            torus.router.room = kind / 4 % 2 == 0 ? EMU_CHARGE_FULL : EMU_CHARGE_TRUE;
            torus.router.vc_units = kind % 3 == 0 ? 64 : 160;
            net = make(&torus);
            net->mode = EMU_MODE_DETERMINISTIC;
            net->n_random = 200;
            net->units_min = 1;
            counts_occupancy = i == 0;
            build(net, 1 + kind % 3);
            if (kind / 8 == 1)
                break_for_a_time(net, 40000000);
            stops[i] = emu_sim_run(net->sim, EVER); /* packets that a fault led astray may block each other */
            if (kind / 8 == 0)
                check_all_arrive(net);
            totals[i] = totals_of(net);
            totals[i].events = 0; /* some heads are looked at in vain */
            for (uint32_t link = 0; link < net->m->n_links; link++)
                stall_ps[i] += stats_of(net, link).stall_ps;
            assert_true(totals[i].delivered > 1000);
            destroy(net);
        }
        assert_memory_equal(&totals[0], &totals[1], sizeof(totals[0]));
        assert_int_equal(stops[0], stops[1]);
        assert_int_equal(stall_ps[0], stall_ps[1]);
        counts_occupancy = true;
    }
}

static void test_seed_changes_the_trace_and_nothing_else_does(void **state)
{
    uint64_t hashes[3];

    (void)state;
    for (uint32_t i = 0; i < 3; i++) {
        struct sim_torus torus = sim_torus_default();
        const struct emu_sim_options options = { .seed = i == 2 };
        struct emu_traffic traffic = { .next = next_packet, .delivered = delivered };
        struct net *net;

        memcpy(torus.size, (uint32_t[]){ 4, 4, 4 }, sizeof(torus.size));
        net = make(&torus);
        net->n_random = 100;
        traffic.ctx = net;
        assert_int_equal(emu_sim_create(net->m, NULL, &traffic, &options, &net->sim), 0);
        assert_int_equal(emu_sim_run(net->sim, EVER), EMU_SIM_EMPTY);
        hashes[i] = totals_of(net).trace_hash;
        destroy(net);
    }
    assert_int_equal(hashes[0], hashes[1]);
    assert_int_not_equal(hashes[0], hashes[2]);
}

/* ---- the rest ---- */

static void test_timer_comes_at_its_time(void **state)
{
    struct sim_torus torus = plain(4, 1, 1);
    struct net *net = make(&torus);

    (void)state;
    build(net, 2);
    emu_sim_call_at(net->sim, 3, 123456789, 42);
    assert_int_equal(emu_sim_run(net->sim, EVER), EMU_SIM_EMPTY);
    assert_int_equal(net->timer_ps, 123456789);
    assert_int_equal(net->timer_cookie, 42);
    destroy(net);
}

/* Of a program that posts between two runs, behind what the simulation has done. */
static void test_timer_of_the_past_comes_now(void **state)
{
    struct sim_torus torus = plain(4, 1, 1);
    struct net *net = make(&torus);

    (void)state;
    build(net, 1);
    emu_sim_call_at(net->sim, 3, 50000000, 1);
    emu_sim_call_at(net->sim, 2, 20000000, 2);
    assert_int_equal(emu_sim_run(net->sim, 30000000), EMU_SIM_REACHED);
    assert_int_equal(net->timer_cookie, 2);
    emu_sim_call_at(net->sim, 1, 10000000, 3);
    assert_int_equal(emu_sim_run(net->sim, 30000000 + 100000), EMU_SIM_REACHED);
    assert_int_equal(net->timer_cookie, 3);
    assert_in_range(net->timer_ps, 29900000, 30100000);
    assert_int_equal(emu_sim_run(net->sim, EVER), EMU_SIM_EMPTY);
    assert_int_equal(net->timer_cookie, 1);
    destroy(net);
}

static void test_broadcast_is_deposited_at_each_node_on_its_line(void **state)
{
    struct sim_torus torus = plain(8, 1, 1);
    struct net *net = make(&torus);

    (void)state;
    add(net, 0, 4, 64, 0);
    net->list[0].flags = EMU_PACKET_BROADCAST;
    build(net, 2);
    assert_int_equal(emu_sim_run(net->sim, EVER), EMU_SIM_EMPTY);
    for (uint32_t i = 0; i < 8; i++)
        assert_int_equal(net->nodes[i].n_received, i >= 1 && i <= 4);
    assert_int_equal(totals_of(net).delivered, 1);
    assert_int_equal(totals_of(net).deposited, 3);
    destroy(net);
}

static void test_reset_forgets_counts_but_not_packets(void **state)
{
    struct sim_torus torus = sim_torus_default();
    struct net *net;
    struct emu_sim_totals t;

    (void)state;
    memcpy(torus.size, (uint32_t[]){ 4, 4, 4 }, sizeof(torus.size));
    net = make(&torus);
    net->n_random = 50;
    build(net, 1);
    assert_int_equal(emu_sim_run(net->sim, 20000000), EMU_SIM_REACHED);
    t = totals_of(net);
    assert_true(t.in_network > 0);
    emu_sim_reset_stats(net->sim);
    assert_int_equal(totals_of(net).entered, 0);
    assert_int_equal(totals_of(net).in_network, t.in_network);
    assert_int_equal(emu_sim_run(net->sim, EVER), EMU_SIM_EMPTY);
    assert_int_equal(totals_of(net).delivered, 64 * 50 - t.delivered);
    destroy(net);
}

static void test_bad_arguments_are_refused(void **state)
{
    struct sim_torus torus = plain(4, 1, 1);
    struct net *net = make(&torus);
    struct emu_traffic traffic = { .ctx = net, .next = next_packet, .delivered = delivered };
    struct emu_sim_options options = { .n_threads = 5 };
    struct emu_machine *aries;
    struct emu_topology silent;

    (void)state;
    assert_int_equal(emu_sim_create(net->m, NULL, &traffic, &options, &net->sim), -EINVAL);
    options.n_threads = 1;
    traffic.next = NULL;
    assert_int_equal(emu_sim_create(net->m, NULL, &traffic, &options, &net->sim), -EINVAL);
    traffic.next = next_packet;
    net->m->params.router.vc_units = 63;
    assert_int_equal(emu_sim_create(net->m, NULL, &traffic, &options, &net->sim), -EINVAL);
    aries = load("aries");
    silent = *aries->topology;
    silent.routing = NULL;
    aries->topology = &silent;
    assert_int_equal(emu_sim_create(aries, NULL, &traffic, &options, &net->sim), -ENOTSUP);
    emu_machine_destroy(aries);
    net->sim = NULL;
    destroy(net);
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define HAS_SHADOW 1 /* of memory: what is in memory is not what a program wrote */
#else
#define HAS_SHADOW 0
#endif

/* Of this process, in memory. */
static size_t resident_bytes(void)
{
    FILE *f = fopen("/proc/self/statm", "r");
    size_t pages;

    assert_non_null(f);
    assert_int_equal(fscanf(f, "%*d %zu", &pages), 1);
    fclose(f);
    return pages * (size_t)sysconf(_SC_PAGESIZE);
}

/* Before packets come. */
static void test_largest_machines_keep_less_than_a_kilobyte_per_node_in_memory(void **state)
{
    static const char *const specs[] = { "aries:groups=241", "gemini:x=25,y=16,z=24", "bluegene-l:x=64,y=32,z=32" };
    const struct emu_traffic traffic = { .next = next_packet, .delivered = delivered };
    const struct emu_sim_options options = { .n_threads = 2 };

    (void)state;
    for (size_t i = 0; i < sizeof(specs) / sizeof(specs[0]); i++) {
        struct emu_machine *m = load(specs[i]);
        size_t before = resident_bytes();
        struct emu_sim *sim;
        size_t resident;

        assert_int_equal(emu_sim_create(m, NULL, &traffic, &options, &sim), 0);
        resident = resident_bytes() - before;
        assert_in_range(emu_sim_memory(sim) / emu_machine_n_nodes(m), 500, 4095);
        assert_true(HAS_SHADOW || resident / emu_machine_n_nodes(m) < 1024);
        emu_sim_destroy(sim);
        emu_machine_destroy(m);
    }
}

/* A sim of two routers with a green link from the first one to the second one. */
static struct emu_sim *two_routers(struct emu_machine **m_out, uint32_t *green_out)
{
    const struct emu_traffic traffic = { .next = next_packet, .delivered = delivered };
    const struct emu_sim_options options = { .n_threads = 1 };
    struct emu_sim *sim;

    *m_out = load("aries:groups=1,chassis=1,blades=2");
    assert_int_equal(emu_sim_create(*m_out, NULL, &traffic, &options, &sim), 0);
    *green_out = 2 * emu_machine_n_nodes(*m_out);
    return sim;
}

static void test_near_load_is_of_one_class(void **state)
{
    const struct emu_route_view *view;
    struct emu_machine *m;
    struct emu_sim *sim;
    uint32_t green;

    (void)state;
    sim = two_routers(&m, &green);
    sim_make_outs(sim);
    view = &sim->parts[0].view;
    sim_load_add(&sim->parts[0], green, EMU_TRAFFIC_REQUEST, 40);
    sim_load_add(&sim->parts[0], green, EMU_TRAFFIC_RESPONSE, 2);
    assert_int_equal(view->near_load(view, green, EMU_TRAFFIC_REQUEST), 40);
    assert_int_equal(view->near_load(view, green, EMU_TRAFFIC_RESPONSE), 2);
    assert_int_equal(view->near_load(view, green + 1, EMU_TRAFFIC_REQUEST), 0);
    sim_load_credited(&sim->parts[0], green, 3, 14); /* channels 0 to 3 are the requests', 4 to 7 the responses' */
    sim_load_credited(&sim->parts[0], green, 4, 2);
    assert_int_equal(view->near_load(view, green, EMU_TRAFFIC_REQUEST), 26);
    assert_int_equal(view->near_load(view, green, EMU_TRAFFIC_RESPONSE), 0);
    emu_sim_destroy(sim);
    emu_machine_destroy(m);
}

/* At so many periods from the start. */
static void move_to(struct emu_sim *sim, uint64_t ps)
{
    sim->parts[0].slot = ps / sim->clock_ps;
    sim->parts[0].slot_ps = sim->parts[0].slot * sim->clock_ps;
}

static void test_neighbours_know_the_load_of_a_period_ago(void **state)
{
    const struct emu_route_view *view;
    struct emu_machine *m;
    struct emu_sim *sim;
    uint64_t period_ps;
    uint32_t green;

    (void)state;
    sim = two_routers(&m, &green);
    view = &sim->parts[0].view;
    period_ps = sim->load_period_ps;
    assert_int_equal(period_ps, 10 * sim->clock_ps);
    /* In period k there are k units; in period 1000 the first change since 20. */
    for (uint64_t k = 1; k <= 20; k++) {
        move_to(sim, k * period_ps + period_ps / 2);
        sim_load_add(&sim->parts[0], green, EMU_TRAFFIC_REQUEST, 8);
        sim_load_add(&sim->parts[0], green, EMU_TRAFFIC_REQUEST, -7); /* within a period the last value counts */
    }
    for (uint64_t k = 12; k <= 40; k++) {
        move_to(sim, (k + 1) * period_ps + sim->far_ps + sim->clock_ps); /* just known */
        assert_int_equal(view->far_load(view, green, EMU_TRAFFIC_REQUEST), k < 20 ? k : 20);
        move_to(sim, (k + 1) * period_ps + sim->far_ps - sim->clock_ps); /* not yet */
        assert_int_equal(view->far_load(view, green, EMU_TRAFFIC_REQUEST), k - 1 < 20 ? k - 1 : 20);
        assert_int_equal(view->far_load(view, green, EMU_TRAFFIC_RESPONSE), 0);
    }
    move_to(sim, 1000 * period_ps + period_ps / 2);
    sim_load_add(&sim->parts[0], green, EMU_TRAFFIC_REQUEST, 80);
    assert_int_equal(view->far_load(view, green, EMU_TRAFFIC_REQUEST), 20);
    move_to(sim, 1001 * period_ps + sim->far_ps + sim->clock_ps);
    assert_int_equal(view->far_load(view, green, EMU_TRAFFIC_REQUEST), 100);
    emu_sim_destroy(sim);
    emu_machine_destroy(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_time_of_an_empty_network_stands_however_often_it_runs),
        cmocka_unit_test(test_lone_packet_takes_hops_and_one_serialisation),
        cmocka_unit_test(test_packet_to_the_own_router_takes_the_nics_time_only),
        cmocka_unit_test(test_packet_waits_for_the_time_it_is_made),
        cmocka_unit_test(test_full_link_carries_exactly_its_bandwidth),
        cmocka_unit_test(test_small_buffer_limits_a_link_to_its_round_trip),
        cmocka_unit_test(test_packets_that_wait_fill_the_buffer),
        cmocka_unit_test(test_gap_in_a_ports_requests_lets_injections_in),
        cmocka_unit_test(test_shared_buffer_lends_a_lone_channel_all_it_needs),
        cmocka_unit_test(test_shared_buffer_leaves_each_channel_its_own),
        cmocka_unit_test(test_lost_lanes_slow_the_link),
        cmocka_unit_test(test_everything_sent_arrives_once_under_every_policy),
        cmocka_unit_test(test_paths_are_those_that_packets_have_taken),
        PLAINLY(test_paths_are_those_that_packets_have_taken),
        cmocka_unit_test(test_paths_are_kept_by_one_thread_only),
        cmocka_unit_test(test_one_channel_keeps_order),
        cmocka_unit_test(test_threads_change_nothing),
        cmocka_unit_test(test_plain_machines_decide_like_others),
        PLAINLY(test_lone_packet_takes_hops_and_one_serialisation),
        PLAINLY(test_full_link_carries_exactly_its_bandwidth),
        PLAINLY(test_lost_lanes_slow_the_link),
        PLAINLY(test_everything_sent_arrives_once_under_every_policy),
        PLAINLY(test_one_channel_keeps_order),
        PLAINLY(test_threads_change_nothing),
        PLAINLY(test_reset_forgets_counts_but_not_packets),
        cmocka_unit_test(test_seed_changes_the_trace_and_nothing_else_does),
        cmocka_unit_test(test_timer_comes_at_its_time),
        cmocka_unit_test(test_broadcast_is_deposited_at_each_node_on_its_line),
        cmocka_unit_test(test_timer_of_the_past_comes_now),
        cmocka_unit_test(test_reset_forgets_counts_but_not_packets),
        cmocka_unit_test(test_bad_arguments_are_refused),
        cmocka_unit_test(test_near_load_is_of_one_class),
        cmocka_unit_test(test_neighbours_know_the_load_of_a_period_ago),
        cmocka_unit_test(test_largest_machines_keep_less_than_a_kilobyte_per_node_in_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
