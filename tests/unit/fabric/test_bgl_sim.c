/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The packet simulator with Blue Gene/L's router: what goes on at the same time, and how long it takes (machines.md 5.1 - 5.3).
 */
#include <string.h>

#include "emunic/fabric/bgl_routing.h"
#include "emunic/fabric/sim/sim.h"
#include "emunic/fabric/torus.h"
#include "tests/unit/fabric/fixture.h"

#define CYCLES(ps) ((double)(ps) / (40000.0 / 7))

#define PACKETS_MAX 64

/* Packets that exist from the start, and what became of them. */
struct script {
    struct emu_packet packets[PACKETS_MAX];
    uint32_t n;
    bool sent[PACKETS_MAX];     /* all nodes look from the start each time: scripts are short */
    uint64_t delivered_ps[PACKETS_MAX];
    uint32_t copies[512];       /* by nid: deliveries there */
};

static bool next_of_script(void *ctx, struct emu_sim *sim, uint32_t nid, enum emu_traffic_class traffic_class, uint64_t now_ps,
                           struct emu_packet *packet_out)
{
    struct script *s = ctx;

    (void)sim;
    (void)now_ps;
    for (uint32_t i = 0; i < s->n; i++) {
        if (s->sent[i] || s->packets[i].src_nid != nid || s->packets[i].traffic_class != traffic_class)
            continue;
        s->sent[i] = true;
        *packet_out = s->packets[i];
        packet_out->tag = i;
        return true;
    }
    return false;
}

static void delivered_of_script(void *ctx, struct emu_sim *sim, uint32_t nid, const struct emu_packet *packet, uint64_t now_ps)
{
    struct script *s = ctx;

    (void)sim;
    s->copies[nid]++;
    if (nid == packet->dst_nid)
        s->delivered_ps[packet->tag] = now_ps;
}

static struct emu_packet *add(struct script *s, uint32_t src, uint32_t dst, uint32_t units)
{
    struct emu_packet *p = &s->packets[s->n++];

    *p = (struct emu_packet){ .src_nid = src, .dst_nid = dst, .units = (uint16_t)units };
    return p;
}

static void run(const struct emu_machine *m, struct script *s)
{
    const struct emu_traffic traffic = { .ctx = s, .next = next_of_script, .delivered = delivered_of_script };
    const struct emu_sim_options options = { .seed = 1 };
    struct emu_sim *sim;

    assert_int_equal(emu_sim_create(m, NULL, &traffic, &options, &sim), 0);
    assert_int_equal(emu_sim_run(sim, UINT64_C(1) << 50), EMU_SIM_EMPTY);
    emu_sim_destroy(sim);
}

static uint32_t neighbour(const struct emu_machine *m, uint32_t nid, uint32_t direction)
{
    return emu_torus_neighbour(emu_torus_of(m), nid, direction);
}

static void test_node_sends_in_six_directions_at_once(void **state)
{
    struct emu_machine *m = load("bluegene-l");
    struct script s = { 0 };

    (void)state;
    for (uint32_t d = 0; d < 6; d++)
        add(&s, 0, neighbour(m, 0, d), 256);
    run(m, &s);
    for (uint32_t d = 0; d < 6; d++) {
        assert_true(CYCLES(s.delivered_ps[d]) > 270);
        assert_true(CYCLES(s.delivered_ps[d]) < 2 * 270); /* one after another would take six times 270 */
    }
    emu_machine_destroy(m);
}

static void test_node_receives_from_six_directions_at_once(void **state)
{
    struct emu_machine *m = load("bluegene-l");
    struct script s = { 0 };

    (void)state;
    for (uint32_t d = 0; d < 6; d++)
        add(&s, neighbour(m, 0, d), 0, 256);
    run(m, &s);
    for (uint32_t d = 0; d < 6; d++)
        assert_true(CYCLES(s.delivered_ps[d]) < 2 * 270);
    emu_machine_destroy(m);
}

/* One hop is 17 cycles, and 27 from one midplane to the next. */
static void test_hops_cost_17_cycles_and_27_between_midplanes(void **state)
{
    struct emu_machine *m = load("bluegene-l:x=16,y=8,z=8");
    struct script s = { 0 };
    double hop, far;

    (void)state;
    add(&s, 0, 1, 256);
    run(m, &s);
    hop = CYCLES(s.delivered_ps[0]);
    s = (struct script){ 0 };
    add(&s, 0, 2, 256);
    run(m, &s);
    assert_true(CYCLES(s.delivered_ps[0]) - hop > 16.9 && CYCLES(s.delivered_ps[0]) - hop < 17.1);
    s = (struct script){ 0 };
    add(&s, 7, 8, 256);
    run(m, &s);
    far = CYCLES(s.delivered_ps[0]);
    assert_true(far - hop > 9.9 && far - hop < 10.1);
    emu_machine_destroy(m);
}

static void test_streams_use_every_cycle_of_a_link(void **state)
{
    struct emu_machine *m = load("bluegene-l");
    struct script s = { 0 };

    (void)state;
    for (uint32_t i = 0; i < 40; i++)
        add(&s, 0, 1, 256);
    run(m, &s);
    {
        double first = 1e18;
        double last = 0;

        for (uint32_t i = 0; i < 40; i++) {
            first = CYCLES(s.delivered_ps[i]) < first ? CYCLES(s.delivered_ps[i]) : first;
            last = CYCLES(s.delivered_ps[i]) > last ? CYCLES(s.delivered_ps[i]) : last;
        }
        assert_true(last - first > 39 * 270 - 1 && last - first < 39 * 270 * 1.005);
    }
    emu_machine_destroy(m);
}

static void test_broadcast_leaves_a_copy_at_every_node_of_the_line(void **state)
{
    struct emu_machine *m = load("bluegene-l");
    struct script s = { 0 };
    struct emu_packet *p = add(&s, 3, 2, 256);

    (void)state;
    assert_int_equal(emu_bgl_give_broadcast(m, p, EMU_BGL_X_PLUS), 0);
    run(m, &s);
    for (uint32_t nid = 0; nid < 512; nid++)
        assert_int_equal(s.copies[nid], nid < 8 && nid != 3);
    emu_machine_destroy(m);
}

/* While node 1 has a long queue for its link in x+, a high-priority packet from node 0 passes it. */
static void test_high_priority_passes_a_queue(void **state)
{
    struct emu_machine *m = load("bluegene-l");
    struct script s = { 0 };
    struct emu_packet *p;

    (void)state;
    for (uint32_t i = 0; i < 30; i++) {
        p = add(&s, 1, 2, 256);
        p->mode = EMU_MODE_DETERMINISTIC;
    }
    p = add(&s, 0, 2, 256);
    p->traffic_class = EMU_TRAFFIC_RESPONSE;
    run(m, &s);
    assert_true(CYCLES(s.delivered_ps[30]) < 3 * 270);
    emu_machine_destroy(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_node_sends_in_six_directions_at_once),
        cmocka_unit_test(test_node_receives_from_six_directions_at_once),
        cmocka_unit_test(test_hops_cost_17_cycles_and_27_between_midplanes),
        cmocka_unit_test(test_streams_use_every_cycle_of_a_link),
        cmocka_unit_test(test_broadcast_leaves_a_copy_at_every_node_of_the_line),
        cmocka_unit_test(test_high_priority_passes_a_queue),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
