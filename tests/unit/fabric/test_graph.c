/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Topologies of the literature: k-ary n-tree, HyperX, Slim Fly, Dragonfly+. Counts, routes, freedom from deadlock, also
 * with faults, and latency and throughput that follow from arithmetic.
 */
#include <errno.h>
#include <string.h>

#include "emunic/experiments/traffic.h"
#include "emunic/fabric/sim/audit.h"
#include "emunic/fabric/topology.h"
#include "tests/unit/fabric/topology_checks.h"

static const char *const small[] = {
    "k-ary-n-tree",
    "k-ary-n-tree:arity=2,levels=4",
    "k-ary-n-tree:arity=5,levels=1",
    "hyperx",
    "hyperx:x=3,y=2,z=4,parallel=2,nodes_per_router=1",
    "slim-fly:nodes_per_router=1",
    "slim-fly:q=3,nodes_per_router=2",
    "dragonfly-plus",
    "dragonfly-plus:groups=3,spines=2,global_links=3,leaves=3,nodes_per_leaf=2",
    "dragonfly-plus:groups=1,leaves=2",
};

static void test_names_links_and_routes_hold_together(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(small) / sizeof(small[0]); i++)
        check_machine(small[i]);
}

static uint32_t between_routers(const struct emu_machine *m)
{
    return emu_machine_n_links(m) - 2 * emu_machine_n_nodes(m);
}

/* The most hops between two nodes. */
static uint32_t diameter(const struct emu_machine *m)
{
    uint32_t most = 0;

    for (uint32_t src = 0; src < emu_machine_n_nodes(m); src++) {
        for (uint32_t dst = 0; dst < emu_machine_n_nodes(m); dst++) {
            struct emu_route route;

            assert_int_equal(emu_route_minimal(m, src, dst, 0, &route), 0);
            most = route.n_hops > most ? route.n_hops : most;
        }
    }
    return most;
}

static void test_counts_are_those_of_the_literature(void **state)
{
    static const struct {
        const char *spec;
        uint32_t nodes, routers, cables, diameter;
    } machines[] = {
        { "k-ary-n-tree", 64, 3 * 16, 2 * 64, 4 }, /* k^n, n k^(n-1), (n - 1) k^n, 2 (n - 1) */
        { "k-ary-n-tree:arity=2,levels=5", 32, 5 * 16, 4 * 32, 8 },
        { "hyperx", 64, 16, 16 * 6 / 2, 2 },
        { "hyperx:x=3,y=4,z=5,parallel=2,nodes_per_router=1", 60, 60, 60 * 9, 3 },
        { "slim-fly:q=3,nodes_per_router=1", 18, 18, 18 * 5 / 2, 2 }, /* 2 q^2, (3q - delta) / 2 each */
        { "slim-fly", 200, 50, 50 * 7 / 2, 2 },
        { "slim-fly:q=7,nodes_per_router=1", 98, 98, 98 * 11 / 2, 2 },
        { "slim-fly:q=11,nodes_per_router=1", 242, 242, 242 * 17 / 2, 2 },
        { "slim-fly:q=13,nodes_per_router=1", 338, 338, 338 * 19 / 2, 2 },
        { "dragonfly-plus", 80, 40, 20 * 4 + 5 * 16 / 2, 3 },
        { "dragonfly-plus:groups=9", 144, 72, 36 * 4 + 9 * 16 / 2, 3 },
    };

    (void)state;
    for (size_t i = 0; i < sizeof(machines) / sizeof(machines[0]); i++) {
        struct emu_machine *m = load(machines[i].spec);

        assert_int_equal(emu_machine_n_nodes(m), machines[i].nodes);
        assert_int_equal(emu_machine_n_routers(m), machines[i].routers);
        assert_int_equal(between_routers(m), 2 * machines[i].cables);
        assert_int_equal(diameter(m), machines[i].diameter);
        emu_machine_destroy(m);
    }
}

/* 50 routers with seven neighbours and two hops at most are a Moore graph: one shortest way for each pair. */
static void test_slim_fly_of_five_is_the_hoffman_singleton_graph(void **state)
{
    struct emu_machine *m = load("slim-fly:nodes_per_router=1");
    uint32_t degree[50] = { 0 };

    (void)state;
    for (uint32_t id = 2 * emu_machine_n_nodes(m); id < emu_machine_n_links(m); id++)
        degree[link_of(m, id).from.index]++;
    for (uint32_t src = 0; src < 50; src++) {
        uint32_t near = 0;

        assert_int_equal(degree[src], 7);
        for (uint32_t dst = 0; dst < 50; dst++) {
            struct emu_route first, other;

            assert_int_equal(emu_route_minimal(m, src, dst, 0, &first), 0);
            near += first.n_hops == 1;
            for (uint64_t hash = 1; hash < 8; hash++) {
                assert_int_equal(emu_route_minimal(m, src, dst, hash, &other), 0);
                assert_memory_equal(first.links, other.links, first.n_links * sizeof(first.links[0]));
            }
        }
        assert_int_equal(near, 7);
    }
    emu_machine_destroy(m);
}

/* With j levels to climb, consecutive hashes step through k^j ways. */
static void test_tree_has_a_way_by_each_common_ancestor(void **state)
{
    struct emu_machine *m = load("k-ary-n-tree");
    static const struct {
        uint32_t dst, ways;
    } pairs[] = { { 1, 1 }, { 4, 4 }, { 63, 16 } };

    (void)state;
    for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
        uint8_t tops[48] = { 0 };
        uint32_t n = 0;

        for (uint64_t hash = 0; hash < 64; hash++) {
            struct emu_route route;
            uint32_t top;

            assert_int_equal(emu_route_minimal(m, 0, pairs[i].dst, hash, &route), 0);
            top = link_of(m, route.links[route.n_links / 2 - 1]).to.index;
            n += tops[top] == 0;
            tops[top] = 1;
        }
        assert_int_equal(n, pairs[i].ways);
    }
    emu_machine_destroy(m);
}

/* Links from the routers below `bound` to the others. */
static uint32_t cut(const struct emu_machine *m, bool (*is_left)(uint32_t router))
{
    uint32_t n = 0;

    for (uint32_t id = 2 * emu_machine_n_nodes(m); id < emu_machine_n_links(m); id++) {
        struct emu_link l = link_of(m, id);

        n += is_left(l.from.index) && !is_left(l.to.index);
    }
    return n;
}

static bool is_in_left_columns(uint32_t router)
{
    return router % 4 < 2;
}

static bool is_in_left_subtrees(uint32_t router)
{
    return router < 32 && router % 16 < 8;
}

static void test_bisections_are_known(void **state)
{
    struct emu_machine *tree = load("k-ary-n-tree");
    struct emu_machine *hyperx = load("hyperx");

    (void)state;
    assert_int_equal(cut(tree, is_in_left_subtrees), 32); /* a link for each node of a half: full bisection */
    assert_int_equal(cut(hyperx, is_in_left_columns), 4 * 2 * 2);
    emu_machine_destroy(tree);
    emu_machine_destroy(hyperx);
}

static void test_shapes_that_are_none_are_refused(void **state)
{
    (void)state;
    check_refused("slim-fly:q=9", "topology.q: 9 is not an odd prime");
    check_refused("slim-fly:q=4", "topology.q: 4 is not an odd prime");
    check_refused("dragonfly-plus:groups=4", "topology.global_links: 16 global cables");
    check_refused("k-ary-n-tree:arity=64,levels=8", "topology.levels");
    check_refused("hyperx:x=256,y=256,z=256", "topology.x");
}

/* ---- deadlock and faults ---- */

/* How many pairs have no way. */
static uint64_t audit(const struct emu_machine *m, const struct emu_fault_map *faults)
{
    struct emu_audit *audit = NULL;
    uint64_t n_unroutable = 0;

    assert_int_equal(emu_audit_create(m, m->topology->routing, faults, &audit), 0);
    assert_true(emu_audit_result(audit)->is_acyclic);
    assert_true(emu_audit_result(audit)->is_free);
    for (uint32_t mode = 0; mode < EMU_MODES; mode++) {
        const struct emu_audit_walk_options options = {
            .mode = mode, .traffic_class = mode % 2, .seed = mode, .n_pairs = 600, .max_hops = 20
        };
        struct emu_audit_walks walks;

        assert_int_equal(emu_audit_walk(audit, &options, NULL, NULL, &walks), 0);
        if (!walks.is_clean && walks.n_arrived + walks.n_unroutable != walks.n_walks)
            fail_msg("mode %u pair %u %u", mode, walks.bad_src_nid, walks.bad_dst_nid);
        assert_int_equal(walks.n_undeclared, 0);
        n_unroutable += walks.n_unroutable;
    }
    emu_audit_destroy(audit);
    return n_unroutable;
}

static void test_no_machine_can_deadlock(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(small) / sizeof(small[0]); i++) {
        struct emu_machine *m = load(small[i]);

        assert_int_equal(audit(m, NULL), 0);
        emu_machine_destroy(m);
    }
}

/* Both directions of some cables between routers. */
static struct emu_fault_map *without_cables(const struct emu_machine *m, uint64_t seed, uint32_t n)
{
    struct emu_random random = { .state = seed };
    struct emu_fault_map *faults = NULL;
    uint32_t first = 2 * emu_machine_n_nodes(m);

    assert_int_equal(emu_fault_map_create(m, &faults), 0);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t link = first + (uint32_t)emu_random_below(&random, emu_machine_n_links(m) - first);
        uint32_t reverse;

        assert_int_equal(emu_link_reverse(m, link, &reverse), 0);
        assert_int_equal(emu_fault_map_set_link(faults, link, false), 0);
        assert_int_equal(emu_fault_map_set_link(faults, reverse, false), 0);
    }
    return faults;
}

static void test_a_dead_cable_is_got_around(void **state)
{
    static const char *const specs[] = { "k-ary-n-tree", "hyperx", "slim-fly:nodes_per_router=1", "dragonfly-plus" };

    (void)state;
    for (size_t i = 0; i < sizeof(specs) / sizeof(specs[0]); i++) {
        struct emu_machine *m = load(specs[i]);

        for (uint64_t seed = 0; seed < 4; seed++) {
            struct emu_fault_map *faults = without_cables(m, seed, 1);

            assert_int_equal(audit(m, faults), 0);
            emu_fault_map_destroy(faults);
            faults = without_cables(m, seed, 20);
            (void)audit(m, faults); /* whatever is accepted arrives */
            emu_fault_map_destroy(faults);
        }
        emu_machine_destroy(m);
    }
}

/* ---- time ---- */

static struct emu_generator *generator(const struct emu_machine *m, const struct emu_generator_options *options,
                                       struct emu_sim **sim_out)
{
    const struct emu_sim_options sim_options = { .seed = 3 };
    struct emu_generator *gen = NULL;
    char err[200];

    assert_int_equal(emu_generator_create(m, options, &gen, err, sizeof(err)), 0);
    assert_int_equal(emu_sim_create(m, NULL, emu_generator_traffic(gen), &sim_options, sim_out), 0);
    return gen;
}

/* Of one full packet in a quiet network. */
static uint64_t latency_ps(const char *spec, uint32_t src, uint32_t dst)
{
    struct emu_machine *m = load(spec);
    struct emu_message message = { .src_nid = src, .dst_nid = dst, .bytes = 256 };
    const struct emu_generator_options options = { .pattern = EMU_PATTERN_MESSAGES,
                                                   .mode = EMU_MODE_MINIMAL,
                                                   .messages = { &message, 1 } };
    struct emu_sim *sim = NULL;
    struct emu_generator *gen = generator(m, &options, &sim);
    uint64_t done_ps;

    assert_int_equal(emu_sim_run(sim, UINT64_C(1000000000)), EMU_SIM_EMPTY);
    done_ps = emu_generator_message_done_ps(gen, 0);
    emu_sim_destroy(sim);
    emu_generator_destroy(gen);
    emu_machine_destroy(m);
    return done_ps;
}

/*
 * The first router decides at the clock of 1 ns after the head came. A hop's head takes hop_ns, 100 ns, and a global
 * one 90 ns more of wire; 17 flits of 128 bits at 100 Gb/s are behind it. All of a route's links have the same rate, so
 * the tail follows once.
 */
static void test_latency_without_load_is_hops_and_length(void **state)
{
    static const struct {
        const char *spec;
        uint32_t dst, hops, global;
    } pairs[] = {
        { "k-ary-n-tree", 1, 0, 0 }, { "k-ary-n-tree", 4, 2, 0 },    { "k-ary-n-tree", 63, 4, 0 },
        { "hyperx", 4, 1, 0 },       { "hyperx", 63, 2, 0 },         { "slim-fly", 4, 1, 0 },
        { "slim-fly", 8, 2, 0 },     { "dragonfly-plus", 15, 2, 0 }, { "dragonfly-plus", 79, 3, 1 },
    };

    (void)state;
    for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++)
        assert_int_equal(latency_ps(pairs[i].spec, 0, pairs[i].dst),
                         1000 + pairs[i].hops * 100000 + pairs[i].global * 90000 + 17 * 1280);
}

/* Accepted when nodes send as fast as they can, as a part of the rate of a node's link, 12.5 GB/s. */
static double accepted(const char *spec, enum emu_pattern pattern, enum emu_route_mode mode)
{
    struct emu_machine *m = load(spec);
    const struct emu_generator_options options = { .pattern = pattern, .mode = (uint8_t)mode, .seed = 1 };
    const struct emu_steady_options steady = { .window_ps = UINT64_C(4000000), .windows = 2, .warmup_max = 6 };
    struct emu_steady_result result;
    struct emu_sim *sim = NULL;
    struct emu_generator *gen = generator(m, &options, &sim);
    double share;

    emu_generator_steady(gen, sim, &steady, &result);
    assert_false(result.is_deadlock);
    share = result.units_per_ns * 16 / 12.5 / emu_machine_n_nodes(m);
    emu_sim_destroy(sim);
    emu_generator_destroy(gen);
    emu_machine_destroy(m);
    return share;
}

/* A tree has a link up for each node: a permutation over its top, well spread, and uniform traffic lose little. */
static void test_tree_has_full_bisection(void **state)
{
    double permutation = accepted("k-ary-n-tree", EMU_PATTERN_COMPLEMENT, EMU_MODE_ADAPTIVE_0);
    double uniform = accepted("k-ary-n-tree", EMU_PATTERN_UNIFORM, EMU_MODE_ADAPTIVE_0);

    (void)state;
    print_message("# complement %.3f uniform %.3f\n", permutation, uniform);
    assert_true(permutation > 0.97 && permutation <= 1.001);
    assert_true(uniform > 0.8 && uniform <= 1.001);
}

/*
 * All nodes of a router or group send to the next one. Minimally they share what joins the two: of the HyperX one cable
 * for four nodes, of the Dragonfly+ four cables for 16, a quarter each. By a random leaf each packet takes two ways, so
 * half of the rate is the bound of all non-minimal traffic; adaptive routing has both.
 */
static void test_shift_takes_a_quarter_and_a_half(void **state)
{
    static const char *const specs[] = { "hyperx", "dragonfly-plus" };

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        double minimal = accepted(specs[i], EMU_PATTERN_SHIFT, EMU_MODE_MINIMAL);
        double valiant = accepted(specs[i], EMU_PATTERN_SHIFT, EMU_MODE_VALIANT);
        double adaptive = accepted(specs[i], EMU_PATTERN_SHIFT, EMU_MODE_ADAPTIVE_0);

        print_message("# %s: minimal %.3f valiant %.3f adaptive %.3f\n", specs[i], minimal, valiant, adaptive);
        assert_float_equal(minimal, 0.25, 0.005);
        assert_true(valiant > 0.36 && valiant <= 0.53);
        assert_true(adaptive >= 0.95 * valiant);
    }
}

/* 7 links of a router carry 200 nodes' packets over (7 x 1 + 42 x 2) / 49.75 hops of other routers: 0.957 of a node's
 * rate is the bound; two ways each, half of it. */
static void test_slim_fly_stays_below_its_bounds(void **state)
{
    double minimal = accepted("slim-fly", EMU_PATTERN_UNIFORM, EMU_MODE_MINIMAL);
    double valiant = accepted("slim-fly", EMU_PATTERN_UNIFORM, EMU_MODE_VALIANT);
    double bound = 7.0 / (4 * (7 + 42 * 2) / 49.75);

    (void)state;
    print_message("# minimal %.3f valiant %.3f bound %.3f\n", minimal, valiant, bound);
    assert_true(minimal > 0.7 * bound && minimal <= bound);
    assert_true(valiant > 0.7 * bound / 2 && valiant <= bound / 2 * 1.02);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names_links_and_routes_hold_together),
        cmocka_unit_test(test_counts_are_those_of_the_literature),
        cmocka_unit_test(test_slim_fly_of_five_is_the_hoffman_singleton_graph),
        cmocka_unit_test(test_tree_has_a_way_by_each_common_ancestor),
        cmocka_unit_test(test_bisections_are_known),
        cmocka_unit_test(test_shapes_that_are_none_are_refused),
        cmocka_unit_test(test_no_machine_can_deadlock),
        cmocka_unit_test(test_a_dead_cable_is_got_around),
        cmocka_unit_test(test_latency_without_load_is_hops_and_length),
        cmocka_unit_test(test_tree_has_full_bisection),
        cmocka_unit_test(test_shift_takes_a_quarter_and_a_half),
        cmocka_unit_test(test_slim_fly_stays_below_its_bounds),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
