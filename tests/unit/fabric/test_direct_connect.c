/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The Cray XD1's direct connect: counts, cables, routes (spec/machines.md 7).
 */
#include <errno.h>
#include <stdbool.h>

#include "emunic/fabric/direct_connect.h"
#include "tests/unit/fabric/topology_checks.h"

static void test_machine_hangs_together(void **state)
{
    (void)state;
    check_machine("xd1");
    check_machine("xd1:fabrics=2");
    check_machine("xd1:flow_links=1");
    check_machine("xd1:chassis=1");
    check_machine("xd1:chassis=2,fabrics=2");
    check_machine("xd1:chassis=3");
    check_machine("xd1:chassis=8");
    check_machine("xd1:chassis=13");
}

/* XD1-8, the six chassis of the experiments */
static void test_six_chassis_have_36_cables(void **state)
{
    struct emu_machine *m = load("xd1");
    uint32_t n_external = 0;
    uint32_t n_node = 0;

    (void)state;
    for (uint32_t id = 0; id < emu_machine_n_links(m); id++) {
        n_external += link_of(m, id).link_class == EMU_LINK_EXTERNAL;
        n_node += link_of(m, id).link_class == EMU_LINK_NODE;
    }
    assert_int_equal(emu_machine_n_nodes(m), 36);
    assert_int_equal(n_external, 2 * 36);
    assert_int_equal(n_node, 2 * 36 * 2);
    assert_int_equal(emu_machine_n_routers(m), 36 + 6);
    emu_machine_destroy(m);
}

/* Two links between each two chassis, a third to the neighbours on the ring. */
static void test_neighbours_have_a_third_link(void **state)
{
    struct emu_machine *m = load("xd1");
    uint32_t n;

    (void)state;
    for (uint32_t a = 0; a < 6; a++) {
        for (uint32_t b = 0; b < 6; b++) {
            uint32_t apart = (b + 6 - a) % 6;

            assert_int_equal(emu_direct_pair_links(m, a, b, &n), 0);
            assert_int_equal(n, apart == 0 ? 0 : apart == 1 || apart == 5 ? 3 : 2);
        }
    }
    assert_int_equal(emu_direct_pair_links(m, 6, 0, &n), -ERANGE);
    emu_machine_destroy(m);
}

static void test_no_switch_has_more_external_links_than_ports(void **state)
{
    (void)state;
    for (uint32_t chassis = 2; chassis <= 13; chassis++) {
        char spec[40];
        struct emu_machine *m;
        uint32_t used[26] = { 0 };

        snprintf(spec, sizeof(spec), "xd1:chassis=%u,fabrics=2", chassis);
        m = load(spec);
        for (uint32_t id = 0; id < emu_machine_n_links(m); id++) {
            struct emu_link l = link_of(m, id);

            if (l.link_class == EMU_LINK_EXTERNAL)
                used[l.from.index - emu_machine_n_nodes(m)]++;
        }
        for (uint32_t i = 0; i < chassis * 2; i++) {
            assert_in_range(used[i], chassis - 1, 12);
            assert_int_equal(used[i], used[0]);
        }
        emu_machine_destroy(m);
    }
}

static void test_routes_never_pass_a_third_chassis(void **state)
{
    struct emu_machine *m = load("xd1:fabrics=2");

    (void)state;
    for (uint32_t src = 0; src < 36; src++) {
        for (uint32_t dst = 0; dst < 36; dst++) {
            struct emu_route route;

            assert_int_equal(emu_route_minimal(m, src, dst, 12345 + src, &route), 0);
            assert_int_equal(route.n_hops, src == dst ? 0 : src / 6 == dst / 6 ? 2 : 3);
        }
    }
    emu_machine_destroy(m);
}

/* Both ways of a pair in one fabric, neighbours in rank in different ones. */
static void test_flow_keeps_to_one_fabric(void **state)
{
    struct emu_machine *m = load("xd1:fabrics=2");

    (void)state;
    for (uint32_t src = 0; src < 6; src++) {
        for (uint64_t hash = 0; hash < 50; hash++) {
            struct emu_route there, back;

            assert_int_equal(emu_route_minimal(m, src, src + 12, hash, &there), 0);
            assert_int_equal(emu_route_minimal(m, src + 12, src, hash, &back), 0);
            for (uint32_t i = 1; i < 3; i++) {
                assert_int_equal((link_of(m, there.links[i]).to.index - 36) % 2, src % 2);
                assert_int_equal((link_of(m, back.links[i]).to.index - 36) % 2, src % 2);
            }
        }
    }
    emu_machine_destroy(m);
}

/* With flow_links = 2 a flow uses two of the external links, with 1 one. */
static void test_flow_spreads_over_flow_links(void **state)
{
    static const char *const specs[] = { "xd1:flow_links=1", "xd1:flow_links=2", "xd1:flow_links=3" };

    (void)state;
    for (uint32_t wanted = 1; wanted <= 3; wanted++) {
        struct emu_machine *m = load(specs[wanted - 1]);
        struct emu_link_load *loads = calloc(emu_machine_n_links(m), sizeof(*loads));
        const struct emu_flow flow = { .src_nid = 3, .dst_nid = 8, .packets = 60, .flits = 600 };
        uint32_t n_used = 0;

        assert_non_null(loads);
        assert_int_equal(emu_load_add(m, &flow, 1, EMU_LOAD_SPREAD, loads), 0);
        for (uint32_t id = 0; id < emu_machine_n_links(m); id++) {
            if (link_of(m, id).link_class != EMU_LINK_EXTERNAL || loads[id].packets == 0)
                continue;
            assert_int_equal(loads[id].packets, 60 / wanted);
            n_used++;
        }
        assert_int_equal(n_used, wanted);
        free(loads);
        emu_machine_destroy(m);
    }
}

static void test_bad_values_are_refused(void **state)
{
    (void)state;
    check_refused("xd1:chassis=14", "topology.external_ports");
    check_refused("xd1:nodes=7", "topology.switch_ports");
    check_refused("xd1:fabrics=3", "topology.fabrics");
    check_refused("xd1:links_per_node=0", "topology.links_per_node");
    check_refused("xd1:spines=6", "spines");
}

static void test_names_outside_are_refused(void **state)
{
    struct emu_machine *m = load("xd1");
    uint32_t nid;

    (void)state;
    assert_int_equal(emu_machine_nid_of_cname(m, "c0-0c6s0n0", &nid), -ERANGE);
    assert_int_equal(emu_machine_nid_of_cname(m, "c1-0c0s0n0", &nid), -ERANGE);
    assert_int_equal(emu_machine_nid_of_cname(m, "c0-0c0s6n0", &nid), -ERANGE);
    assert_int_equal(emu_machine_nid_of_cname(m, "c0-0c0s0n1", &nid), -ERANGE);
    assert_int_equal(emu_machine_nid_of_cname(m, "c0-0c5s5n0", &nid), 0);
    assert_int_equal(nid, 35);
    emu_machine_destroy(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_machine_hangs_together),
        cmocka_unit_test(test_six_chassis_have_36_cables),
        cmocka_unit_test(test_neighbours_have_a_third_link),
        cmocka_unit_test(test_no_switch_has_more_external_links_than_ports),
        cmocka_unit_test(test_routes_never_pass_a_third_chassis),
        cmocka_unit_test(test_flow_keeps_to_one_fabric),
        cmocka_unit_test(test_flow_spreads_over_flow_links),
        cmocka_unit_test(test_bad_values_are_refused),
        cmocka_unit_test(test_names_outside_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
