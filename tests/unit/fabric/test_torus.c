/* SPDX-License-Identifier: BSD-3-Clause */
/* What holds for every torus or mesh: numbers without gaps, links that meet, routes that arrive. */
#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "emunic/fabric/load.h"
#include "emunic/fabric/route.h"
#include "emunic/fabric/torus.h"
#include "tests/unit/fabric/fixture.h"

/* One cabinet and floors; rings, meshes, both; sizes one and two; odd and even rings. */
static const char *const specs[] = {
    "gemini",
    "gemini:x=4,y=4,z=8",
    "gemini:x=5,y=6,z=16,tiles_x=3,tiles_y=1",
    "gemini:x=1,y=2,z=1",
    "seastar",
    "seastar:x=3,y=4,z=5,wrap_x=0,wrap_z=0",
    "seastar:x=2,y=2,z=2,wrap_y=1",
    "seastar:x=1,y=3,z=4,wrap_y=1",
    "seastar:x=6,y=8,z=1",
};

static void for_each_machine(void (*check)(const struct emu_machine *m))
{
    for (size_t i = 0; i < sizeof(specs) / sizeof(specs[0]); i++) {
        struct emu_machine *m = load(specs[i]);

        check(m);
        emu_machine_destroy(m);
    }
}

static void check_places(const struct emu_machine *m)
{
    const struct emu_torus *t = emu_torus_of(m);

    for (uint32_t nid = 0; nid < emu_machine_n_nodes(m); nid++) {
        struct emu_place p = place_of(m, nid);
        char name[EMU_CNAME_MAX];
        uint32_t back;

        assert_int_equal(p.router, nid / t->kind->nodes_per_router);
        assert_int_equal(emu_torus_router(t, p.mesh_x, p.mesh_y, p.mesh_z), p.router);
        assert_int_equal(emu_machine_nid_at(m, p.group, p.chassis, p.blade, p.node, &back), 0);
        assert_int_equal(back, nid);
        assert_int_equal(emu_machine_cname(m, nid, name, sizeof(name)), 0);
        assert_int_equal(emu_machine_nid_of_cname(m, name, &back), 0);
        assert_int_equal(back, nid);
    }
}

static void test_each_node_has_one_place_and_one_name(void **state)
{
    (void)state;
    for_each_machine(check_places)
        ;
}

static void check_links(const struct emu_machine *m)
{
    const struct emu_torus *t = emu_torus_of(m);
    uint32_t n_nodes = emu_machine_n_nodes(m);

    for (uint32_t id = 0; id < emu_machine_n_links(m); id++) {
        struct emu_link l = link_of(m, id);
        uint32_t reverse, router, direction, number, steps = 0;
        struct emu_link back;

        assert_int_equal(l.id, id);
        assert_int_equal(emu_link_reverse(m, id, &reverse), 0);
        back = link_of(m, reverse);
        assert_memory_equal(&back.from, &l.to, sizeof(l.to));
        assert_memory_equal(&back.to, &l.from, sizeof(l.from));
        assert_int_equal(back.number, l.number);
        if (id < 2 * n_nodes) {
            assert_int_equal(l.link_class, id < n_nodes ? EMU_LINK_PROCESSOR_IN : EMU_LINK_PROCESSOR_OUT);
            assert_int_equal(back.link_class, id < n_nodes ? EMU_LINK_PROCESSOR_OUT : EMU_LINK_PROCESSOR_IN);
            continue;
        }
        assert_int_equal(back.link_class, l.link_class);
        emu_torus_link_parts(t, id, &router, &direction, &number);
        assert_int_equal(router, l.from.index);
        assert_int_equal(emu_torus_neighbour(t, router, direction), l.to.index);
        assert_int_equal(emu_torus_link(t, router, direction, number), id);
        for (uint32_t dim = 0; dim < EMU_TORUS_DIMS; dim++) {
            uint32_t from = emu_torus_coord(t, l.from.index)[dim];
            uint32_t to = emu_torus_coord(t, l.to.index)[dim];

            if (dim != direction / 2)
                assert_int_equal(from, to);
            else
                steps = emu_torus_steps(t, dim, direction & 1, from, to);
        }
        assert_int_equal(steps, 1);
    }
}

static void test_a_link_joins_neighbours_and_has_a_way_back(void **state)
{
    (void)state;
    for_each_machine(check_links)
        ;
}

/* Sum over the dimensions of the cables, times two directions and the parallel links. */
static void check_link_count(const struct emu_machine *m)
{
    const struct emu_torus *t = emu_torus_of(m);
    uint32_t expected = 2 * emu_machine_n_nodes(m);

    for (uint32_t dim = 0; dim < EMU_TORUS_DIMS; dim++) {
        uint32_t lines = emu_machine_n_routers(m) / t->size[dim];
        uint32_t cables = t->size[dim] == 1 ? 0 : t->wraps[dim] ? t->size[dim] : t->size[dim] - 1;

        expected += 2 * lines * cables * t->parallel[dim];
    }
    assert_int_equal(emu_machine_n_links(m), expected);
}

static void test_a_mesh_has_no_cable_at_its_end(void **state)
{
    (void)state;
    for_each_machine(check_link_count)
        ;
}

static uint32_t distance(const struct emu_torus *t, uint32_t a, uint32_t b)
{
    uint32_t sum = 0;

    for (uint32_t dim = 0; dim < EMU_TORUS_DIMS; dim++) {
        uint32_t from = emu_torus_coord(t, a)[dim];
        uint32_t to = emu_torus_coord(t, b)[dim];
        uint32_t apart = from > to ? from - to : to - from;

        sum += t->wraps[dim] && t->size[dim] - apart < apart ? t->size[dim] - apart : apart;
    }
    return sum;
}

static void check_route(const struct emu_machine *m, uint32_t src, uint32_t dst, uint64_t hash)
{
    const struct emu_torus *t = emu_torus_of(m);
    struct emu_link_end at = { EMU_END_NIC, src };
    struct emu_route route;
    uint32_t dim = 0;

    assert_int_equal(emu_route_minimal(m, src, dst, hash, &route), 0);
    assert_int_equal(route.n_hops, route.n_links - 2);
    assert_int_equal(route.n_hops, distance(t, place_of(m, src).router, place_of(m, dst).router));
    for (uint32_t i = 0; i < route.n_links; i++) {
        struct emu_link l = link_of(m, route.links[i]);

        assert_memory_equal(&l.from, &at, sizeof(at));
        at = l.to;
        if (l.from.kind == EMU_END_ROUTER && l.to.kind == EMU_END_ROUTER) {
            uint32_t router, direction, number;

            emu_torus_link_parts(t, l.id, &router, &direction, &number);
            assert_true(direction / 2 >= dim);
            dim = direction / 2;
        }
    }
    assert_int_equal(at.kind, EMU_END_NIC);
    assert_int_equal(at.index, dst);
}

static void check_routes(const struct emu_machine *m)
{
    struct emu_random random = { .state = 7 };
    uint32_t n = emu_machine_n_nodes(m);

    for (uint32_t i = 0; i < 5000; i++)
        check_route(m, (uint32_t)emu_random_below(&random, n), (uint32_t)emu_random_below(&random, n),
                    emu_random_next(&random));
}

static void test_minimal_routes_are_shortest_and_in_dimension_order(void **state)
{
    (void)state;
    for_each_machine(check_routes)
        ;
}

/* The neighbour that the way from `x` to the opposite side of a ring of four goes by. */
static uint32_t first_step_across(const struct emu_machine *m, uint32_t x)
{
    const struct emu_torus *t = emu_torus_of(m);
    uint32_t per_router = t->kind->nodes_per_router;
    struct emu_route route;

    assert_int_equal(emu_route_minimal(m, per_router * emu_torus_router(t, x, 0, 0),
                                       per_router * emu_torus_router(t, (x + 2) % 4, 0, 0), 0, &route),
                     0);
    assert_int_equal(route.n_hops, 2);
    return emu_torus_coord(t, link_of(m, route.links[1]).to.index)[0];
}

static void test_opposite_side_of_a_ring_is_reached_by_rising_coordinates(void **state)
{
    struct emu_machine *m = load("gemini:x=4,y=2,z=2");

    (void)state;
    for (uint32_t x = 0; x < 4; x++)
        assert_int_equal(first_step_across(m, x), (x + 1) % 4);
    emu_machine_destroy(m);
}

static void test_seastar_reaches_it_by_falling_ones_from_odd_coordinates(void **state)
{
    struct emu_machine *m = load("seastar:x=4,y=1,z=1");

    (void)state;
    for (uint32_t x = 0; x < 4; x++)
        assert_int_equal(first_step_across(m, x), x % 2 == 0 ? x + 1 : x - 1);
    emu_machine_destroy(m);
}

static void test_a_spread_flow_loads_all_tiles_of_each_hop_evenly(void **state)
{
    struct emu_machine *m = load("gemini:x=4,y=4,z=8");
    const struct emu_torus *t = emu_torus_of(m);
    uint32_t src = 2 * emu_torus_router(t, 0, 0, 0);
    uint32_t dst = 2 * emu_torus_router(t, 2, 1, 3) + 1;
    struct emu_flow flow = { .src_nid = src, .dst_nid = dst, .packets = 800, .flits = 32000 };
    struct emu_link_load *loads = calloc(emu_machine_n_links(m), sizeof(*loads));
    uint64_t sum = 0;

    (void)state;
    assert_int_equal(emu_load_add(m, &flow, 1, EMU_LOAD_SPREAD, loads), 0);
    for (uint32_t id = 0; id < emu_machine_n_links(m); id++) {
        struct emu_link l = link_of(m, id);

        sum += loads[id].packets;
        if (loads[id].packets == 0)
            continue;
        assert_int_equal(loads[id].packets, id < 2 * emu_machine_n_nodes(m)    ? 800 :
                                            l.link_class == EMU_LINK_MEZZANINE ? 200 :
                                                                                 100);
        assert_int_equal(loads[id].flits, 40 * loads[id].packets);
    }
    assert_int_equal(sum, 800 * (2 + 2 + 1 + 3));
    free(loads);
    emu_machine_destroy(m);
}

static void test_tile_numbers_of_a_hash_step_through_all_tiles(void **state)
{
    struct emu_machine *m = load("gemini:x=4,y=4,z=8");
    const struct emu_torus *t = emu_torus_of(m);
    uint32_t src = 2 * emu_torus_router(t, 0, 0, 0);
    uint32_t dst = 2 * emu_torus_router(t, 1, 1, 1);
    bool seen[8][4][8] = { { { false } } };
    struct emu_route route;

    (void)state;
    for (uint64_t hash = 0; hash < 256; hash++) {
        bool *tiles;

        assert_int_equal(emu_route_minimal(m, src, dst, hash, &route), 0);
        assert_int_equal(route.n_links, 5);
        tiles = &seen[link_of(m, route.links[1]).number][link_of(m, route.links[2]).number]
                     [link_of(m, route.links[3]).number];
        assert_false(*tiles);
        *tiles = true;
    }
    emu_machine_destroy(m);
}

static void test_impossible_sizes_are_refused_with_a_reason(void **state)
{
    static const char *const wrong[][2] = {
        { "gemini:y=3", "odd" },
        { "gemini:x=4,layout=cabinet", "do not fit into one cabinet" },
        { "gemini:layout=attic", "none of auto, cabinet, floor" },
        { "gemini:x=4,z=12", "not a whole number of cages" },
        { "gemini:x=0", "out of range" },
        { "gemini:tiles_y=5", "out of range" },
        { "seastar:y=6", "not a whole number of modules" },
        { "seastar:z=20", "not a whole number of cages" },
        { "seastar:wrap_x=2", "out of range" },
    };

    (void)state;
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        struct emu_machine *m;
        char err[300] = "";

        assert_int_equal(emu_machine_load(wrong[i][0], EMU_TEST_MACHINE_DIR, &m, err, sizeof(err)), -EINVAL);
        if (!strstr(err, wrong[i][1]))
            fail_msg("%s: '%s' lacks '%s'", wrong[i][0], err, wrong[i][1]);
    }
}

/* No machine file's limits go that far; a kind with larger ones would be told. */
static void test_a_diameter_beyond_what_a_route_holds_is_refused(void **state)
{
    const struct emu_torus_params p = { .size = { 250, 20, 10 }, .parallel = { 1, 1, 1 } };
    const char *key = NULL;
    char text[256] = "";

    (void)state;
    assert_int_equal(emu_torus_check(&p, &key, text, sizeof(text)), -EINVAL);
    assert_string_equal(key, "topology.x");
    assert_non_null(strstr(text, "277 hops apart"));
}

static void test_folded_rings_have_no_neighbour_beyond_two_places(void **state)
{
    (void)state;
    for (uint32_t n = 2; n < 40; n++) {
        for (uint32_t position = 0; position < n; position++) {
            int32_t here = (int32_t)emu_torus_folded_place(position, n);
            int32_t next = (int32_t)emu_torus_folded_place((position + 1) % n, n);

            assert_int_equal(emu_torus_folded_position((uint32_t)here, n), position);
            assert_in_range(abs(here - next), 1, 2);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_node_has_one_place_and_one_name),
        cmocka_unit_test(test_a_link_joins_neighbours_and_has_a_way_back),
        cmocka_unit_test(test_a_mesh_has_no_cable_at_its_end),
        cmocka_unit_test(test_minimal_routes_are_shortest_and_in_dimension_order),
        cmocka_unit_test(test_opposite_side_of_a_ring_is_reached_by_rising_coordinates),
        cmocka_unit_test(test_seastar_reaches_it_by_falling_ones_from_odd_coordinates),
        cmocka_unit_test(test_a_spread_flow_loads_all_tiles_of_each_hop_evenly),
        cmocka_unit_test(test_tile_numbers_of_a_hash_step_through_all_tiles),
        cmocka_unit_test(test_impossible_sizes_are_refused_with_a_reason),
        cmocka_unit_test(test_a_diameter_beyond_what_a_route_holds_is_refused),
        cmocka_unit_test(test_folded_rings_have_no_neighbour_beyond_two_places),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
