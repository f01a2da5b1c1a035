/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Packet routing of X1 and XD1: free of deadlock, every pair arrives, in the order of the rules; and around faults.
 */
#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "emunic/fabric/sim/audit.h"
#include "emunic/fabric/topology.h"
#include "tests/unit/fabric/fixture.h"

static const enum emu_route_mode modes[] = { EMU_MODE_ADAPTIVE_0, EMU_MODE_MIN_HASH, EMU_MODE_IN_ORDER,
                                             EMU_MODE_MINIMAL };

static struct emu_route_view view_of(const struct emu_machine *m, const struct emu_fault_map *faults,
                                     struct emu_random *random)
{
    return (struct emu_route_view){
        .machine = m, .faults = faults, .random = random, .near_load = emu_route_no_load, .far_load = emu_route_no_load
    };
}

/* Audits the channels and walks between all pairs in every mode and class; says how many pairs have no route. */
static uint64_t audit(const struct emu_machine *m, const struct emu_fault_map *faults, uint32_t longest_hops)
{
    struct emu_audit *audit = NULL;
    uint64_t n_unroutable = 0;

    assert_int_equal(emu_audit_create(m, m->topology->routing, faults, &audit), 0);
    assert_true(emu_audit_result(audit)->is_acyclic);
    assert_true(emu_audit_result(audit)->is_free);
    assert_int_equal(emu_audit_result(audit)->n_stranded, 0);
    assert_int_equal(emu_audit_result(audit)->n_impossible, 0);
    for (size_t i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
        for (uint32_t k = 0; k < EMU_TRAFFIC_CLASSES; k++) {
            const struct emu_audit_walk_options options = {
                .mode = modes[i], .traffic_class = k, .seed = i + k, .walks_per_pair = 2, .max_hops = 20
            };
            struct emu_audit_walks walks;

            assert_int_equal(emu_audit_walk(audit, &options, NULL, NULL, &walks), 0);
            if (!walks.is_clean)
                fail_msg("pair %u %u", walks.bad_src_nid, walks.bad_dst_nid);
            assert_in_range(walks.longest_hops, 0, longest_hops);
            n_unroutable = walks.n_unroutable;
        }
    }
    emu_audit_destroy(audit);
    return n_unroutable;
}

static void test_whole_machines_are_free_of_deadlock_and_reach_everybody(void **state)
{
    static const struct {
        const char *spec;
        uint32_t longest_hops;
    } machines[] = {
        { "x1", 4 },
        { "x1:dimensions=0", 0 },
        { "x1:dimensions=3,nodes_per_vertex=2", 3 },
        { "xd1", 3 },
        { "xd1:fabrics=2", 3 },
        { "xd1:flow_links=1", 3 },
        { "xd1:chassis=2", 3 },
        { "xd1:chassis=3", 3 },
        { "xd1:chassis=4", 3 },
        { "xd1:chassis=5", 3 },
        { "xd1:chassis=1", 2 },
        { "xd1-fat-tree", 4 },
        { "xd1-fat-tree:fabrics=2", 4 },
    };

    (void)state;
    for (size_t i = 0; i < sizeof(machines) / sizeof(machines[0]); i++) {
        struct emu_machine *m = load(machines[i].spec);

        assert_int_equal(audit(m, NULL, machines[i].longest_hops), 0);
        emu_machine_destroy(m);
    }
}

/* Fails both directions of some links between routers. */
static struct emu_fault_map *without_links(const struct emu_machine *m, uint64_t seed, uint32_t n)
{
    struct emu_random random = { .state = seed };
    struct emu_fault_map *faults = NULL;

    assert_int_equal(emu_fault_map_create(m, &faults), 0);
    while (n > 0) {
        uint32_t link = (uint32_t)emu_random_below(&random, emu_machine_n_links(m));
        struct emu_link l = link_of(m, link);
        uint32_t reverse;

        if (l.from.kind == EMU_END_NIC || l.to.kind == EMU_END_NIC)
            continue;
        assert_int_equal(emu_link_reverse(m, link, &reverse), 0);
        assert_int_equal(emu_fault_map_set_link(faults, link, false), 0);
        assert_int_equal(emu_fault_map_set_link(faults, reverse, false), 0);
        n--;
    }
    return faults;
}

static void test_one_dead_link_is_got_around(void **state)
{
    static const char *const specs[] = { "x1:nodes_per_vertex=2", "xd1", "xd1:fabrics=2", "xd1-fat-tree:chassis=4" };

    (void)state;
    for (size_t i = 0; i < sizeof(specs) / sizeof(specs[0]); i++) {
        struct emu_machine *m = load(specs[i]);

        for (uint64_t seed = 0; seed < 8; seed++) {
            struct emu_fault_map *faults = without_links(m, seed, 1);

            assert_int_equal(audit(m, faults, 6), 0);
            emu_fault_map_destroy(faults);
        }
        emu_machine_destroy(m);
    }
}

/* Whatever is broken: what is accepted arrives, and nothing can wait in a circle. */
static void test_many_dead_links_leave_no_dead_ends(void **state)
{
    static const char *const specs[] = { "x1:nodes_per_vertex=2", "xd1", "xd1:fabrics=2,chassis=4",
                                         "xd1-fat-tree:chassis=4" };

    (void)state;
    for (size_t i = 0; i < sizeof(specs) / sizeof(specs[0]); i++) {
        struct emu_machine *m = load(specs[i]);

        for (uint64_t seed = 0; seed < 6; seed++) {
            struct emu_fault_map *faults = without_links(m, seed, 4 + (uint32_t)seed * 6);

            (void)audit(m, faults, 8);
            emu_fault_map_destroy(faults);
        }
        emu_machine_destroy(m);
    }
}

static void test_dead_vertex_takes_its_own_nodes_only(void **state)
{
    struct emu_machine *m = load("x1:nodes_per_vertex=1");
    struct emu_fault_map *faults = NULL;

    (void)state;
    assert_int_equal(emu_fault_map_create(m, &faults), 0);
    assert_int_equal(emu_fault_map_set_router(faults, 5, false), 0);
    assert_int_equal(audit(m, faults, 6), 0); /* walks start and end at living nodes */
    emu_fault_map_destroy(faults);
    emu_machine_destroy(m);
}

/* All links between two chassis are dead: the flow goes by a third one, on the second channel behind it. */
static void test_direct_connect_goes_by_a_third_chassis(void **state)
{
    struct emu_machine *m = load("xd1");
    struct emu_fault_map *faults = NULL;
    struct emu_random random = { .state = 1 };
    struct emu_packet p = { .src_nid = 0, .dst_nid = 6 };
    struct emu_route_option options[EMU_ROUTE_OPTIONS_MAX];
    struct emu_route_view view;
    struct emu_link l;

    (void)state;
    assert_int_equal(emu_fault_map_create(m, &faults), 0);
    for (uint32_t id = 0; id < emu_machine_n_links(m); id++) {
        l = link_of(m, id);
        if (l.link_class == EMU_LINK_EXTERNAL && (l.from.index == 36 || l.to.index == 36) &&
            (l.from.index == 37 || l.to.index == 37))
            assert_int_equal(emu_fault_map_set_link(faults, id, false), 0);
    }
    assert_int_equal(audit(m, faults, 4), 0);
    view = view_of(m, faults, &random);
    assert_true(m->topology->routing->start(&view, &p, 0));
    assert_true(p.flags & EMU_PACKET_DETOUR);
    assert_int_equal(m->topology->routing->options(&view, &p, &(struct emu_route_at){ .router = 36 }, options), 4);
    l = link_of(m, options[0].link);
    assert_int_equal(l.to.index, 38);
    assert_int_equal(options[0].vc, 0);
    assert_true(m->topology->routing->options(
                    &view, &p, &(struct emu_route_at){ .router = 38, .in_link = options[0].link }, options) > 0);
    assert_int_equal(link_of(m, options[0].link).to.index, 37);
    assert_int_equal(options[0].vc, 2);
    emu_fault_map_destroy(faults);
    emu_machine_destroy(m);
}

/* A node without links into the main fabric uses the expansion fabric. */
static void test_other_fabric_is_used_when_one_is_cut_off(void **state)
{
    struct emu_machine *m = load("xd1:fabrics=2");
    struct emu_fault_map *faults = NULL;

    (void)state;
    assert_int_equal(emu_fault_map_create(m, &faults), 0);
    for (uint32_t id = 0; id < emu_machine_n_links(m); id++) {
        struct emu_link l = link_of(m, id);

        if (l.link_class == EMU_LINK_NODE && (l.from.index == 4 || l.to.index == 4) && l.number < 2)
            assert_int_equal(emu_fault_map_set_link(faults, id, false), 0);
    }
    assert_int_equal(audit(m, faults, 3), 0);
    emu_fault_map_destroy(faults);
    emu_machine_destroy(m);
}

static void test_ordered_modes_offer_one_way(void **state)
{
    static const char *const specs[] = { "x1", "xd1", "xd1-fat-tree" };

    (void)state;
    for (size_t i = 0; i < sizeof(specs) / sizeof(specs[0]); i++) {
        struct emu_machine *m = load(specs[i]);
        struct emu_random random = { .state = 1 };
        const struct emu_route_view view = view_of(m, NULL, &random);
        struct emu_route_option first[EMU_ROUTE_OPTIONS_MAX], again[EMU_ROUTE_OPTIONS_MAX];

        for (uint32_t dst = 1; dst < emu_machine_n_nodes(m); dst++) {
            struct emu_packet p = { .src_nid = 0, .dst_nid = dst, .mode = EMU_MODE_IN_ORDER };
            const struct emu_route_at at = { .router = place_of(m, 0).router, .is_entering = true };

            assert_true(m->topology->routing->start(&view, &p, at.router));
            assert_int_equal(m->topology->routing->options(&view, &p, &at, first), 1);
            assert_int_equal(m->topology->routing->options(&view, &p, &at, again), 1);
            assert_int_equal(first[0].link, again[0].link);
        }
        emu_machine_destroy(m);
    }
}

/* A pair keeps to a fabric; hashed modes go by their order key. */
static void test_fabric_is_chosen_by_pair_or_order_key(void **state)
{
    struct emu_machine *m = load("xd1:fabrics=2");
    struct emu_random random = { .state = 1 };
    const struct emu_route_view view = view_of(m, NULL, &random);

    (void)state;
    for (uint32_t src = 0; src < 6; src++) {
        for (uint32_t key = 1; key < 7; key++) {
            struct emu_packet p = { .src_nid = src, .dst_nid = 20, .order_key = key };
            const struct emu_route_at at = { .router = src, .is_entering = true };
            struct emu_route_option options[EMU_ROUTE_OPTIONS_MAX];

            assert_true(m->topology->routing->start(&view, &p, src));
            assert_true(m->topology->routing->options(&view, &p, &at, options) > 1);
            assert_int_equal((link_of(m, options[0].link).to.index - 36) % 2, src % 2);
            p.mode = EMU_MODE_MIN_HASH;
            assert_true(m->topology->routing->start(&view, &p, src));
            assert_int_equal(m->topology->routing->options(&view, &p, &at, options), 1);
            assert_int_equal((link_of(m, options[0].link).to.index - 36) % 2, key % 2);
        }
    }
    emu_machine_destroy(m);
}

/* The edge ahead dies while the packet is on its way: it turns to rising dimensions and a vertex beyond. */
static void test_packet_on_its_way_gets_around_a_new_fault(void **state)
{
    struct emu_machine *m = load("x1");
    struct emu_fault_map *faults = NULL;
    struct emu_random random = { .state = 1 };
    struct emu_packet p = { .src_nid = 0, .dst_nid = 3 * 8 };
    struct emu_route_option options[EMU_ROUTE_OPTIONS_MAX];
    struct emu_route_view view = view_of(m, NULL, &random);
    uint32_t first = edge_of(m, 0, 0);

    (void)state;
    assert_int_equal(emu_fault_map_create(m, &faults), 0);
    assert_true(m->topology->routing->start(&view, &p, 0));
    assert_int_equal(emu_fault_map_set_link(faults, edge_of(m, 1, 1), false), 0);
    view.faults = faults;
    assert_true(
        m->topology->routing->options(&view, &p, &(struct emu_route_at){ .router = 1, .in_link = first }, options) > 0);
    assert_true(options[0].flags & EMU_PACKET_DETOUR);
    assert_true(link_of(m, options[0].link).to.index == (1 | 4) || link_of(m, options[0].link).to.index == (1 | 8));
    assert_int_equal(options[0].vc, 0);
    emu_fault_map_destroy(faults);
    emu_machine_destroy(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_whole_machines_are_free_of_deadlock_and_reach_everybody),
        cmocka_unit_test(test_one_dead_link_is_got_around),
        cmocka_unit_test(test_many_dead_links_leave_no_dead_ends),
        cmocka_unit_test(test_dead_vertex_takes_its_own_nodes_only),
        cmocka_unit_test(test_direct_connect_goes_by_a_third_chassis),
        cmocka_unit_test(test_other_fabric_is_used_when_one_is_cut_off),
        cmocka_unit_test(test_ordered_modes_offer_one_way),
        cmocka_unit_test(test_fabric_is_chosen_by_pair_or_order_key),
        cmocka_unit_test(test_packet_on_its_way_gets_around_a_new_fault),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
