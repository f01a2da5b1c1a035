/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The Cray X1's hypercube: counts, edges, routes (spec/machines.md 6).
 */
#include <errno.h>
#include <stdbool.h>

#include "emunic/fabric/hypercube.h"
#include "tests/unit/fabric/topology_checks.h"

static void test_machine_hangs_together(void **state)
{
    (void)state;
    check_machine("x1");
    check_machine("x1:dimensions=0");
    check_machine("x1:dimensions=1,nodes_per_vertex=1");
    check_machine("x1:dimensions=6,nodes_per_vertex=3");
}

/* X1-6 */
static void test_phoenix_has_16_vertices_32_edges_128_nodes(void **state)
{
    struct emu_machine *m = load("x1");
    uint32_t n_edges = 0;

    (void)state;
    for (uint32_t id = 0; id < emu_machine_n_links(m); id++)
        n_edges += link_of(m, id).link_class == EMU_LINK_EDGE;
    assert_int_equal(n_edges, 2 * 32); /* each both ways */
    assert_int_equal(emu_machine_n_routers(m), 16);
    assert_int_equal(emu_machine_n_nodes(m), 128);
    assert_int_equal(emu_machine_n_nodes(m) * EMU_X1_MSPS_PER_NODE, 512);
    assert_int_equal(emu_machine_n_links(m), 2 * 128 + 2 * 32);
    assert_string_equal(emu_machine_topology(m), "hypercube");
    emu_machine_destroy(m);
}

static void test_each_vertex_has_an_edge_for_each_bit(void **state)
{
    struct emu_machine *m = load("x1");

    (void)state;
    for (uint32_t vertex = 0; vertex < 16; vertex++) {
        for (uint32_t d = 0; d < 4; d++)
            assert_int_equal(link_of(m, edge_of(m, vertex, d)).bytes_per_s, UINT64_C(102400000000));
    }
    emu_machine_destroy(m);
}

static void test_node_injects_half_of_its_51_gigabytes(void **state)
{
    struct emu_machine *m = load("x1");

    (void)state;
    assert_int_equal(link_of(m, 0).bytes_per_s, UINT64_C(25600000000));
    emu_machine_destroy(m);
}

/* As many hops as bits differ, and the lowest bit first. */
static void test_route_is_e_cube(void **state)
{
    struct emu_machine *m = load("x1");

    (void)state;
    for (uint32_t src = 0; src < 128; src += 5) {
        for (uint32_t dst = 0; dst < 128; dst++) {
            struct emu_route route;
            uint32_t last = 0;

            assert_int_equal(emu_route_minimal(m, src, dst, src * dst, &route), 0);
            assert_int_equal(route.n_hops, __builtin_popcount(src / 8 ^ dst / 8));
            for (uint32_t i = 1; i + 1 < route.n_links; i++) {
                struct emu_link l = link_of(m, route.links[i]);
                uint32_t bit = l.from.index ^ l.to.index;

                assert_true(bit > last);
                last = bit;
            }
        }
    }
    emu_machine_destroy(m);
}

static void note_rule(void *ctx, uint32_t rule, const char *text)
{
    *(uint32_t *)ctx = rule;
    assert_true(strlen(text) > 0);
}

static void test_more_than_four_dimensions_could_not_be_bought(void **state)
{
    struct emu_machine *four = load("x1");
    struct emu_machine *five = load("x1:dimensions=5");
    uint32_t rule = 0;

    (void)state;
    assert_int_equal(emu_machine_check_rules(four, note_rule, &rule), 0);
    assert_int_equal(rule, 0);
    assert_int_equal(emu_machine_check_rules(five, note_rule, &rule), 1);
    assert_int_equal(rule, 1);
    assert_int_equal(emu_machine_check_rules(five, NULL, NULL), 1);
    emu_machine_destroy(four);
    emu_machine_destroy(five);
}

static void test_bad_values_are_refused(void **state)
{
    (void)state;
    check_refused("x1:dimensions=11", "topology.dimensions");
    check_refused("x1:nodes_per_vertex=0", "topology.nodes_per_vertex");
    check_refused("x1:links.edge.lanes=0", "links.edge.lanes");
    check_refused("x1:groups=2", "groups");
}

static void test_names_outside_are_refused(void **state)
{
    struct emu_machine *m = load("x1");
    uint32_t nid;

    (void)state;
    assert_int_equal(emu_machine_nid_of_cname(m, "c8-0c0s0n0", &nid), -ERANGE);
    assert_int_equal(emu_machine_nid_of_cname(m, "c0-1c0s0n0", &nid), -ERANGE);
    assert_int_equal(emu_machine_nid_of_cname(m, "c0-0c2s0n0", &nid), -ERANGE);
    assert_int_equal(emu_machine_nid_of_cname(m, "c0-0c0s8n0", &nid), -ERANGE);
    assert_int_equal(emu_machine_nid_of_cname(m, "c0-0c0s0n1", &nid), -ERANGE);
    assert_int_equal(emu_machine_nid_at(m, 16, 0, 0, 0, &nid), -ERANGE);
    emu_machine_destroy(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_machine_hangs_together),
        cmocka_unit_test(test_phoenix_has_16_vertices_32_edges_128_nodes),
        cmocka_unit_test(test_each_vertex_has_an_edge_for_each_bit),
        cmocka_unit_test(test_node_injects_half_of_its_51_gigabytes),
        cmocka_unit_test(test_route_is_e_cube),
        cmocka_unit_test(test_more_than_four_dimensions_could_not_be_bought),
        cmocka_unit_test(test_bad_values_are_refused),
        cmocka_unit_test(test_names_outside_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
