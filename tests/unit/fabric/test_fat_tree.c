/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The Cray XD1's fat tree: counts, spines, routes (spec/machines.md 7).
 */
#include <errno.h>
#include <stdbool.h>

#include "emunic/fabric/fat_tree.h"
#include "tests/unit/fabric/topology_checks.h"

static void test_machine_hangs_together(void **state)
{
    (void)state;
    check_machine("xd1-fat-tree");
    check_machine("xd1-fat-tree:fabrics=2");
    check_machine("xd1-fat-tree:chassis=1");
    check_machine("xd1-fat-tree:chassis=24,spines=12");
    check_machine("xd1-fat-tree:chassis=2,spines=1");
}

/* XD1-8, the merged machine */
static void test_12_chassis_have_144_processors_and_six_full_spines(void **state)
{
    struct emu_machine *m = load("xd1-fat-tree");
    struct emu_fat_tree_shape shape;
    uint32_t into_spine[6] = { 0 };

    (void)state;
    assert_int_equal(emu_fat_tree_shape(m, &shape), 0);
    assert_int_equal(shape.spines, 6);
    assert_int_equal(shape.spine_links, 2);
    assert_int_equal(emu_machine_n_nodes(m) * 2, 144);
    for (uint32_t id = 0; id < emu_machine_n_links(m); id++) {
        struct emu_link l = link_of(m, id);

        if (l.link_class == EMU_LINK_SPINE && l.to.index >= 72 + 12)
            into_spine[l.to.index - 72 - 12]++;
    }
    for (uint32_t i = 0; i < 6; i++)
        assert_int_equal(into_spine[i], 24);
    emu_machine_destroy(m);
}

static void test_route_goes_by_the_spine_of_its_destination(void **state)
{
    struct emu_machine *m = load("xd1-fat-tree");

    (void)state;
    for (uint32_t src = 0; src < 72; src += 7) {
        for (uint32_t dst = 0; dst < 72; dst++) {
            struct emu_route route;

            assert_int_equal(emu_route_minimal(m, src, dst, src ^ dst, &route), 0);
            assert_int_equal(route.n_hops, src == dst ? 0 : src / 6 == dst / 6 ? 2 : 4);
            if (route.n_hops == 4)
                assert_int_equal(link_of(m, route.links[2]).to.index, 72 + 12 + dst % 6);
        }
    }
    emu_machine_destroy(m);
}

/* All nodes of a chassis send to those of another: no link between switches carries more than one node sends. */
static void test_chassis_to_chassis_is_not_blocked(void **state)
{
    struct emu_machine *m = load("xd1-fat-tree");
    struct emu_link_load *loads = calloc(emu_machine_n_links(m), sizeof(*loads));

    (void)state;
    assert_non_null(loads);
    for (uint32_t i = 0; i < 6; i++) {
        const struct emu_flow flow = { .src_nid = i, .dst_nid = 30 + i, .packets = 100, .flits = 100 };

        assert_int_equal(emu_load_add(m, &flow, 1, EMU_LOAD_SPREAD, loads), 0);
    }
    for (uint32_t id = 0; id < emu_machine_n_links(m); id++) {
        if (link_of(m, id).link_class == EMU_LINK_SPINE)
            assert_in_range(loads[id].packets, 0, 50);
    }
    free(loads);
    emu_machine_destroy(m);
}

static void test_bad_values_are_refused(void **state)
{
    (void)state;
    check_refused("xd1-fat-tree:spines=5", "topology.spines");
    check_refused("xd1-fat-tree:chassis=13", "topology.chassis");
    check_refused("xd1-fat-tree:nodes=7", "topology.switch_ports");
    check_refused("xd1-fat-tree:external_ports=0", "topology.spines");
    check_refused("xd1-fat-tree:flow_links=2", "flow_links");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_machine_hangs_together),
        cmocka_unit_test(test_12_chassis_have_144_processors_and_six_full_spines),
        cmocka_unit_test(test_route_goes_by_the_spine_of_its_destination),
        cmocka_unit_test(test_chassis_to_chassis_is_not_blocked),
        cmocka_unit_test(test_bad_values_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
