/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <string.h>

#include "emunic/fabric/load.h"
#include "emunic/fabric/route.h"
#include "tests/unit/fabric/fixture.h"

static struct emu_link_load *new_loads(const struct emu_machine *m)
{
    struct emu_link_load *loads = calloc(emu_machine_n_links(m), sizeof(*loads));

    assert_non_null(loads);
    return loads;
}

static void add_one(const struct emu_machine *m, const struct emu_flow *flow, enum emu_load_mode mode,
                    struct emu_link_load *loads)
{
    assert_int_equal(emu_load_add(m, flow, 1, mode, loads), 0);
}

/* Sum over all links of a class. */
static struct emu_link_load sum_of(const struct emu_machine *m, const struct emu_link_load *loads,
                                   enum emu_link_class link_class)
{
    struct emu_link_load sum = { 0 };

    for (uint32_t id = 0; id < emu_machine_n_links(m); id++) {
        if (link_of(m, id).link_class == link_class) {
            sum.packets += loads[id].packets;
            sum.flits += loads[id].flits;
        }
    }
    return sum;
}

static struct emu_flow random_flow(const struct emu_machine *m, struct emu_random *random)
{
    struct emu_flow flow = {
        .src_nid = (uint32_t)emu_random_below(random, emu_machine_n_nodes(m)),
        .dst_nid = (uint32_t)emu_random_below(random, emu_machine_n_nodes(m)),
        .flow_class = (enum emu_flow_class)emu_random_below(random, 2),
        .packets = emu_random_below(random, 1000),
    };

    flow.flits = flow.packets == 0 ? 0 : flow.packets * emu_random_below(random, 14) + emu_random_below(random, 1000);
    return flow;
}

/* What a group sends out over blue links is what its nodes send to other groups, and likewise what comes in. */
static void check_cuts(const char *spec, enum emu_load_mode mode, struct emu_random *random)
{
    enum { GROUPS = 6, FLOWS = 500 };
    struct emu_machine *m = load(spec);
    struct emu_link_load *loads = new_loads(m);
    struct emu_link_load sent[GROUPS][GROUPS] = { 0 };
    struct emu_link_load total = { 0 };
    struct emu_flow flows[FLOWS];
    struct emu_link_load sum;

    for (int i = 0; i < FLOWS; i++) {
        struct emu_link_load *cell;

        flows[i] = random_flow(m, random);
        cell = &sent[place_of(m, flows[i].src_nid).group][place_of(m, flows[i].dst_nid).group];
        cell->packets += flows[i].packets;
        cell->flits += flows[i].flits;
        total.packets += flows[i].packets;
        total.flits += flows[i].flits;
    }
    assert_int_equal(emu_load_add(m, flows, FLOWS, mode, loads), 0);

    sum = sum_of(m, loads, EMU_LINK_PROCESSOR_IN);
    assert_memory_equal(&sum, &total, sizeof(sum));
    sum = sum_of(m, loads, EMU_LINK_PROCESSOR_OUT);
    assert_memory_equal(&sum, &total, sizeof(sum));
    for (uint32_t id = 0; id < emu_machine_n_links(m); id++) {
        struct emu_link l = link_of(m, id);

        if (l.link_class == EMU_LINK_BLUE) {
            struct emu_link_load *cell =
                &sent[place_of_router(m, l.from.index).group][place_of_router(m, l.to.index).group];

            cell->packets -= loads[id].packets;
            cell->flits -= loads[id].flits;
        }
    }
    for (int g = 0; g < GROUPS; g++) {
        for (int h = 0; h < GROUPS; h++) {
            if (g != h) {
                assert_int_equal(sent[g][h].packets, 0);
                assert_int_equal(sent[g][h].flits, 0);
            }
        }
    }
    free(loads);
    emu_machine_destroy(m);
}

static void test_load_over_every_cut_is_what_was_sent(void **state)
{
    struct emu_random random = seeded(4);

    (void)state;
    check_cuts("aries:groups=6", EMU_LOAD_SPREAD, &random);
    check_cuts("aries:groups=6", EMU_LOAD_HASHED, &random);
    check_cuts("aries:groups=6,chassis=5,blades=3", EMU_LOAD_SPREAD, &random);
    check_cuts("aries:groups=1,chassis=6,blades=16", EMU_LOAD_SPREAD, &random);
}

/* What enters a router leaves it, packet for packet. */
static void test_load_into_a_router_leaves_it(void **state)
{
    struct emu_machine *m = load("aries:groups=4,chassis=3,blades=5");
    struct emu_link_load *loads = new_loads(m);
    int64_t *balance = calloc(emu_machine_n_routers(m) * 2, sizeof(*balance)); /* packets, flits */
    struct emu_random random = seeded(5);

    (void)state;
    assert_non_null(balance);
    for (int i = 0; i < 500; i++) {
        struct emu_flow flow = random_flow(m, &random);

        add_one(m, &flow, EMU_LOAD_SPREAD, loads);
    }
    for (uint32_t id = 0; id < emu_machine_n_links(m); id++) {
        struct emu_link l = link_of(m, id);

        if (l.from.kind == EMU_END_ROUTER) {
            balance[l.from.index * 2] -= (int64_t)loads[id].packets;
            balance[l.from.index * 2 + 1] -= (int64_t)loads[id].flits;
        }
        if (l.to.kind == EMU_END_ROUTER) {
            balance[l.to.index * 2] += (int64_t)loads[id].packets;
            balance[l.to.index * 2 + 1] += (int64_t)loads[id].flits;
        }
    }
    for (uint32_t i = 0; i < emu_machine_n_routers(m) * 2; i++)
        assert_int_equal(balance[i], 0);
    free(balance);
    free(loads);
    emu_machine_destroy(m);
}

static void test_hashed_flow_stays_on_one_route(void **state)
{
    struct emu_machine *m = load("aries:groups=6");
    struct emu_link_load *loads = new_loads(m);
    const struct emu_flow flow = { .src_nid = 3, .dst_nid = 1999, .packets = 1000, .flits = 14000 };
    struct emu_route route;
    uint32_t n_loaded = 0;

    (void)state;
    add_one(m, &flow, EMU_LOAD_HASHED, loads);
    assert_int_equal(emu_route_minimal(m, 3, 1999, emu_route_hash(3, 1999, EMU_FLOW_REQUEST), &route), 0);
    for (uint32_t i = 0; i < route.n_links; i++) {
        assert_int_equal(loads[route.links[i]].packets, 1000);
        assert_int_equal(loads[route.links[i]].flits, 14000);
    }
    for (uint32_t id = 0; id < emu_machine_n_links(m); id++)
        n_loaded += loads[id].packets > 0;
    assert_int_equal(n_loaded, route.n_links);
    free(loads);
    emu_machine_destroy(m);
}

/*
 * Other group, slot and chassis: a green and a black hop, before or behind the blue one. So two blue links at each of
 * four routers are equivalent. They differ by a packet at most, and packets of 14 flits keep them.
 */
static void test_spread_flow_is_even_over_the_equivalent_blue_links(void **state)
{
    struct emu_machine *m = load("aries:groups=6,cables_per_bundle=48");
    struct emu_link_load *loads = new_loads(m);
    const struct emu_flow flow = { .src_nid = 0, .dst_nid = 384 + 70, .packets = 1001, .flits = 14014 };
    uint64_t n_blue = 0;

    (void)state;
    add_one(m, &flow, EMU_LOAD_SPREAD, loads);
    for (uint32_t id = 0; id < emu_machine_n_links(m); id++) {
        assert_int_equal(loads[id].flits, 14 * loads[id].packets);
        if (loads[id].packets > 0 && link_of(m, id).link_class == EMU_LINK_BLUE) {
            assert_in_range(loads[id].packets, 125, 126);
            n_blue++;
        }
    }
    assert_int_equal(n_blue, 8);
    free(loads);
    emu_machine_destroy(m);
}

static void test_spread_flow_is_even_over_the_three_black_links(void **state)
{
    struct emu_machine *m = load("aries:groups=1");
    struct emu_link_load *loads = new_loads(m);
    const struct emu_flow flow = { .src_nid = 0, .dst_nid = 64, .packets = 1000, .flits = 3000 };
    uint32_t n_black = 0;

    (void)state;
    add_one(m, &flow, EMU_LOAD_SPREAD, loads);
    for (uint32_t id = 0; id < emu_machine_n_links(m); id++) {
        if (loads[id].packets > 0 && link_of(m, id).link_class == EMU_LINK_BLACK) {
            assert_in_range(loads[id].packets, 333, 334);
            n_black++;
        }
    }
    assert_int_equal(n_black, 3);
    free(loads);
    emu_machine_destroy(m);
}

/* Remainders must not all fall on the first link: single packets from many pairs use all three. */
static void test_odd_packets_do_not_gather_on_one_link(void **state)
{
    struct emu_machine *m = load("aries:groups=1");
    struct emu_link_load *loads = new_loads(m);
    uint64_t by_number[3] = { 0 };

    (void)state;
    for (uint32_t src = 0; src < 64; src++) {
        for (uint32_t chassis = 1; chassis < 6; chassis++) {
            const struct emu_flow flow = { .src_nid = src, .dst_nid = chassis * 64 + src, .packets = 1, .flits = 14 };

            add_one(m, &flow, EMU_LOAD_SPREAD, loads);
        }
    }
    for (uint32_t id = 0; id < emu_machine_n_links(m); id++) {
        if (link_of(m, id).link_class == EMU_LINK_BLACK)
            by_number[link_of(m, id).number] += loads[id].packets;
    }
    for (int i = 0; i < 3; i++)
        assert_in_range(by_number[i], 75, 140); /* 107 expected, standard deviation 8 */
    free(loads);
    emu_machine_destroy(m);
}

static void test_hugest_counts_are_conserved(void **state)
{
    struct emu_machine *m = load("aries");
    struct emu_link_load *loads = new_loads(m);
    const struct emu_flow flow = {
        .src_nid = 0,
        .dst_nid = 767,
        .packets = UINT64_MAX / 3,
        .flits = UINT64_MAX,
    };
    struct emu_link_load sum;

    (void)state;
    add_one(m, &flow, EMU_LOAD_SPREAD, loads);
    sum = sum_of(m, loads, EMU_LINK_BLUE);
    assert_true(sum.packets == flow.packets && sum.flits == flow.flits);
    free(loads);
    emu_machine_destroy(m);
}

static void test_same_flows_give_the_same_load(void **state)
{
    struct emu_machine *m = load("aries:groups=6");
    struct emu_link_load *once = new_loads(m);
    struct emu_link_load *again = new_loads(m);
    struct emu_random random = seeded(6);
    struct emu_flow flows[100];

    (void)state;
    for (int i = 0; i < 100; i++)
        flows[i] = random_flow(m, &random);
    assert_int_equal(emu_load_add(m, flows, 100, EMU_LOAD_SPREAD, once), 0);
    for (int i = 99; i >= 0; i--) /* the order of the flows does not matter */
        add_one(m, &flows[i], EMU_LOAD_SPREAD, again);
    assert_memory_equal(once, again, emu_machine_n_links(m) * sizeof(*once));
    free(again);
    free(once);
    emu_machine_destroy(m);
}

static void test_bad_flow_adds_nothing(void **state)
{
    struct emu_machine *m = load("aries");
    struct emu_link_load *loads = new_loads(m);
    struct emu_link_load *zeros = new_loads(m);
    struct emu_flow flows[2] = { { .src_nid = 0, .dst_nid = 1, .packets = 1, .flits = 1 }, { 0 } };

    (void)state;
    flows[1] = (struct emu_flow){ .src_nid = 768, .dst_nid = 0, .packets = 1 };
    assert_int_equal(emu_load_add(m, flows, 2, EMU_LOAD_SPREAD, loads), -ERANGE);
    flows[1] = (struct emu_flow){ .src_nid = 0, .dst_nid = 768, .packets = 1 };
    assert_int_equal(emu_load_add(m, flows, 2, EMU_LOAD_SPREAD, loads), -ERANGE);
    flows[1] = (struct emu_flow){ .flits = 1 };
    assert_int_equal(emu_load_add(m, flows, 2, EMU_LOAD_SPREAD, loads), -EINVAL);
    flows[1] = (struct emu_flow){ .flow_class = (enum emu_flow_class)7 };
    assert_int_equal(emu_load_add(m, flows, 2, EMU_LOAD_SPREAD, loads), -EINVAL);
    assert_int_equal(emu_load_add(m, flows, 1, (enum emu_load_mode)7, loads), -EINVAL);
    assert_memory_equal(loads, zeros, emu_machine_n_links(m) * sizeof(*loads));
    free(zeros);
    free(loads);
    emu_machine_destroy(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_load_over_every_cut_is_what_was_sent),
        cmocka_unit_test(test_load_into_a_router_leaves_it),
        cmocka_unit_test(test_hashed_flow_stays_on_one_route),
        cmocka_unit_test(test_spread_flow_is_even_over_the_equivalent_blue_links),
        cmocka_unit_test(test_spread_flow_is_even_over_the_three_black_links),
        cmocka_unit_test(test_odd_packets_do_not_gather_on_one_link),
        cmocka_unit_test(test_hugest_counts_are_conserved),
        cmocka_unit_test(test_same_flows_give_the_same_load),
        cmocka_unit_test(test_bad_flow_adds_nothing),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
