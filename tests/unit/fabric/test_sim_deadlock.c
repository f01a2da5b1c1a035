/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The packet simulator where packets wait for each other in a ring.
 */
#include "emunic/fabric/sim/state.h"
#include "tests/unit/fabric/sim_net.h"

static void test_ring_without_escape_deadlocks_and_is_seen(void **state)
{
    struct sim_torus torus = plain(6, 1, 1);
    struct net *net;

    (void)state;
    torus.rules = SIM_TORUS_RING;
    torus.router.vc_units = 64;
    net = make(&torus);
    for (uint32_t i = 0; i < 6; i++) {
        for (uint32_t j = 0; j < 20; j++)
            add(net, i, (i + 3) % 6, 64, 0);
    }
    build(net, 2);
    assert_int_equal(emu_sim_run(net->sim, EVER), EMU_SIM_DEADLOCK);
    assert_in_range(totals_of(net).in_network, 6, 120);
    destroy(net);
}

/* A packet that stands in the bubble channel towards a router, put there by hand. */
static void place(struct net *net, uint32_t router, uint32_t dst, uint32_t units)
{
    struct emu_sim *sim = net->sim;
    struct part *part = &sim->parts[0];
    uint32_t n = net->m->n_nodes;
    uint32_t link = sim_torus_link(net->m, (router + n - 1) % n, 0, 1);
    uint32_t cell = sim_cell_take(part);
    uint32_t charge;

    sim_make_outs(sim);
    charge = sim_charge(sim, &sim->kinds[sim->outs[link].kind], 0, units);
    part->cells[cell] = (struct cell){
        .packet = { .src_nid = router, .dst_nid = dst, .units = (uint16_t)units, .mode = EMU_MODE_DETERMINISTIC },
        .is_started = true,
        .next = link,
    };
    assert_in_range(sim->outs[link].tokens[0], charge, 32);
    sim->outs[link].tokens[0] -= (uint16_t)charge;
    part->totals.entered++;
    part->totals.in_network++;
    emu_wheel_put(&part->wheel, 0,
                  (struct emu_event){ .kind = EMU_EVENT_ARRIVE, .index = sim->outs[link].to, .payload = cell });
}

/*
 * The smallest case of spec/machines.md 5.2: all packets in a ring go straight on, one channel has room for one full
 * packet, the others for none, and the head before the room has one chunk only.
 */
static enum emu_sim_stop run_bubble_ring(uint32_t charge, uint32_t n_fill)
{
    struct sim_torus torus = sim_torus_default();
    struct net *net;
    enum emu_sim_stop stop;

    memcpy(torus.size, (uint32_t[]){ 6, 1, 1 }, sizeof(torus.size));
    torus.rules = SIM_TORUS_BUBBLE;
    torus.router.bubble_charge = charge;
    net = make(&torus);
    build(net, 1);
    for (uint32_t router = 0; router < 6; router++) {
        uint32_t n_full = router == 3 ? 3 : router == 2 ? n_fill : 4;

        if (router == 2)
            place(net, router, (router + 2) % 6, 32);
        for (uint32_t i = 0; i < n_full; i++)
            place(net, router, (router + 2) % 6, i == 0 && router == 2 && charge == EMU_CHARGE_TRUE ? 224 : 256);
    }
    stop = emu_sim_run(net->sim, EVER);
    if (stop == EMU_SIM_DEADLOCK)
        assert_int_equal(totals_of(net).packet_hops, 1); /* the small one went, and that was all */
    else
        assert_int_equal(totals_of(net).delivered, totals_of(net).entered);
    destroy(net);
    return stop;
}

static void test_bubble_ring_deadlocks_only_when_packets_are_charged_by_their_size(void **state)
{
    (void)state;
    assert_int_equal(run_bubble_ring(EMU_CHARGE_TRUE, 4), EMU_SIM_DEADLOCK);
    assert_int_equal(run_bubble_ring(EMU_CHARGE_FULL, 3), EMU_SIM_EMPTY);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        PLAINLY(test_ring_without_escape_deadlocks_and_is_seen),
        cmocka_unit_test(test_ring_without_escape_deadlocks_and_is_seen),
        cmocka_unit_test(test_bubble_ring_deadlocks_only_when_packets_are_charged_by_their_size),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
