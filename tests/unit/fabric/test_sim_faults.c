/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The packet simulator with links and routers that fail, and with bit errors.
 */
#include "tests/unit/fabric/sim_net.h"

static void test_dead_link_loses_what_is_on_it_and_tells_the_sender(void **state)
{
    struct sim_torus torus = plain(4, 1, 1);
    struct net *net = make(&torus);
    struct emu_fault_map *faults;
    uint32_t link = sim_torus_link(net->m, 0, 0, 1);

    (void)state;
    net->mode = EMU_MODE_DETERMINISTIC;
    for (uint32_t i = 0; i < 50; i++)
        add(net, 0, 1, 64, 0);
    build(net, 2);
    assert_int_equal(emu_sim_run(net->sim, 5000000), EMU_SIM_REACHED);
    assert_int_equal(emu_fault_map_create(net->m, &faults), 0);
    assert_int_equal(emu_fault_map_set_link(faults, link, false), 0);
    emu_sim_set_faults(net->sim, faults);
    assert_int_equal(emu_sim_run(net->sim, EVER), EMU_SIM_EMPTY);
    /*
     * Nothing goes round the fault here, so what had not crossed is lost: on the wire, and without a way at its source.
     */
    assert_int_equal(totals_of(net).in_network, 0);
    assert_int_equal(net->nodes[1].n_received + net->nodes[0].n_lost, 50);
    assert_in_range(net->nodes[1].n_received, 9, 10);
    assert_in_range(totals_of(net).lost, 0, 2);
    assert_int_equal(totals_of(net).lost + totals_of(net).unroutable, net->nodes[0].n_lost);

    /* Repaired: the link has all its room again. */
    net->nodes[0].n_list = 0;
    for (uint32_t i = 0; i < 50; i++)
        add(net, 0, 1, 64, 0);
    net->nodes[0].n_taken = 0;
    emu_sim_set_faults(net->sim, NULL);
    emu_sim_wake(net->sim, 0, EMU_TRAFFIC_REQUEST);
    net->nodes[1].n_received = 0;
    assert_int_equal(emu_sim_run(net->sim, EVER), EMU_SIM_EMPTY);
    assert_int_equal(net->nodes[1].n_received, 50);
    emu_fault_map_destroy(faults);
    destroy(net);
}

static void test_dead_router_loses_what_it_holds(void **state)
{
    struct sim_torus torus = sim_torus_default();
    struct net *net;
    struct emu_fault_map *faults;
    struct emu_sim_totals t;

    (void)state;
    memcpy(torus.size, (uint32_t[]){ 4, 4, 4 }, sizeof(torus.size));
    net = make(&torus);
    net->n_random = 40;
    build(net, 4);
    assert_int_equal(emu_sim_run(net->sim, 10000000), EMU_SIM_REACHED);
    assert_int_equal(emu_fault_map_create(net->m, &faults), 0);
    assert_int_equal(emu_fault_map_set_router(faults, 21, false), 0);
    emu_sim_set_faults(net->sim, faults);
    assert_int_equal(emu_sim_run(net->sim, EVER), EMU_SIM_EMPTY);
    t = totals_of(net);
    assert_int_equal(t.in_network, 0);
    assert_int_equal(t.entered, t.delivered + t.lost + t.unroutable);
    assert_int_equal(SUM(net, n_lost), t.lost + t.unroutable);
    assert_true(t.lost > 0);
    assert_true(net->nodes[21].n_received < 40);
    emu_sim_set_faults(net->sim, NULL); /* the dead node sends the rest */
    assert_int_equal(emu_sim_run(net->sim, EVER), EMU_SIM_EMPTY);
    t = totals_of(net);
    assert_int_equal(t.entered, 64 * 40);
    assert_int_equal(t.entered, t.delivered + t.lost + t.unroutable);
    emu_fault_map_destroy(faults);
    destroy(net);
}

static void test_broken_packets_are_sent_again_and_cost_the_link_their_time(void **state)
{
    struct sim_torus torus = plain(4, 1, 1);
    struct net *net = make(&torus);
    uint32_t link = sim_torus_link(net->m, 0, 0, 1);
    struct emu_sim_link_stats s;
    uint64_t ideal_ps;

    (void)state;
    for (uint32_t i = 0; i < 4000; i++)
        add(net, 0, 1, 64, 0);
    build(net, 1);
    emu_sim_set_bit_error_rate(net->sim, link, 1e-4);
    assert_int_equal(emu_sim_run(net->sim, EVER), EMU_SIM_EMPTY);
    assert_int_equal(net->nodes[1].n_received, 4000);
    assert_int_equal(net->nodes[1].n_corrupt, 0);
    s = stats_of(net, link);
    /* 512 bits: 1 - (1 - 1e-4)^512 = 0.0499 of all tries fail. */
    assert_in_range(s.crc_errors, 170, 250);
    assert_int_equal(s.retransmissions, s.crc_errors);
    ideal_ps = 4000 * UINT64_C(512000);
    assert_int_equal(net->nodes[1].last_ps, 1000 + 100000 + ideal_ps + s.retransmissions * (512000 + 100000 + 20000));
    destroy(net);
}

static void test_error_that_the_check_misses_arrives_marked(void **state)
{
    struct sim_torus torus = plain(4, 1, 1);
    struct net *net = make(&torus);
    uint32_t link = sim_torus_link(net->m, 0, 0, 1);

    (void)state;
    add(net, 0, 1, 64, 0);
    add(net, 0, 1, 64, 0);
    build(net, 1);
    emu_sim_corrupt_next(net->sim, link, false);
    assert_int_equal(emu_sim_run(net->sim, EVER), EMU_SIM_EMPTY);
    assert_int_equal(net->nodes[1].n_received, 2);
    assert_int_equal(net->nodes[1].n_corrupt, 1);
    assert_int_equal(stats_of(net, link).crc_errors, 0);
    destroy(net);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        PLAINLY(test_dead_link_loses_what_is_on_it_and_tells_the_sender),
        PLAINLY(test_dead_router_loses_what_it_holds),
        PLAINLY(test_broken_packets_are_sent_again_and_cost_the_link_their_time),
        PLAINLY(test_error_that_the_check_misses_arrives_marked),
        cmocka_unit_test(test_dead_link_loses_what_is_on_it_and_tells_the_sender),
        cmocka_unit_test(test_dead_router_loses_what_it_holds),
        cmocka_unit_test(test_broken_packets_are_sent_again_and_cost_the_link_their_time),
        cmocka_unit_test(test_error_that_the_check_misses_arrives_marked),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
