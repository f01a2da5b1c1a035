/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <string.h>

#include "emunic/fabric/dragonfly.h"
#include "emunic/fabric/route.h"
#include "tests/unit/fabric/fixture.h"

static struct emu_route route_between(const struct emu_machine *m, uint32_t src, uint32_t dst, uint64_t hash)
{
    struct emu_route route;

    assert_int_equal(emu_route_minimal(m, src, dst, hash, &route), 0);
    return route;
}

/* Connected from NIC to NIC, and by the order of classes that minimal routing has. */
static void check_route(const struct emu_machine *m, uint32_t src, uint32_t dst, const struct emu_route *route)
{
    uint32_t n_blue = 0;
    uint32_t n_green = 0; /* since the start or the blue link */
    uint32_t n_black = 0;
    struct emu_link_end at = { EMU_END_NIC, src };

    assert_in_range(route->n_links, 2, 7);
    assert_int_equal(route->n_hops, route->n_links - 2);
    for (uint32_t i = 0; i < route->n_links; i++) {
        struct emu_link l = link_of(m, route->links[i]);

        assert_memory_equal(&l.from, &at, sizeof(at));
        at = l.to;
        switch (l.link_class) {
        case EMU_LINK_PROCESSOR_IN:
            assert_int_equal(i, 0);
            break;
        case EMU_LINK_PROCESSOR_OUT:
            assert_int_equal(i, route->n_links - 1);
            break;
        case EMU_LINK_GREEN:
            assert_int_equal(n_green++, 0);
            assert_int_equal(n_black, 0);
            break;
        case EMU_LINK_BLACK:
            assert_int_equal(n_black++, 0);
            break;
        case EMU_LINK_BLUE:
            n_blue++;
            n_green = 0;
            n_black = 0;
            break;
        default:
            fail();
        }
    }
    assert_int_equal(at.kind, EMU_END_NIC);
    assert_int_equal(at.index, dst);
    assert_int_equal(n_blue, place_of(m, src).group != place_of(m, dst).group);
}

static void test_routes_are_connected_and_obey_the_order_of_classes(void **state)
{
    static const char *const specs[] = {
        "aries",
        "aries:groups=6",
        "aries:groups=8,cables_per_bundle=34",
        "aries:groups=241",
        "aries:groups=5,chassis=4,blades=7",
        "aries:groups=4,chassis=5,blades=6,last_chassis=2",
        "aries:groups=1,chassis=1,blades=1",
        "aries:groups=3,chassis=1,blades=1",
    };
    struct emu_random random = seeded(1);

    (void)state;
    for (size_t i = 0; i < sizeof(specs) / sizeof(specs[0]); i++) {
        struct emu_machine *m = load(specs[i]);

        for (int n = 0; n < 3000; n++) {
            uint32_t src = (uint32_t)emu_random_below(&random, emu_machine_n_nodes(m));
            uint32_t dst = (uint32_t)emu_random_below(&random, emu_machine_n_nodes(m));
            struct emu_route route = route_between(m, src, dst, emu_random_next(&random));

            check_route(m, src, dst, &route);
        }
        emu_machine_destroy(m);
    }
}

static void test_node_reaches_itself_through_its_router(void **state)
{
    struct emu_machine *m = load("aries");
    struct emu_route route = route_between(m, 5, 5, 9);

    (void)state;
    assert_int_equal(route.n_hops, 0);
    check_route(m, 5, 5, &route);
    emu_machine_destroy(m);
}

static void test_hops_in_a_group_are_the_differing_coordinates(void **state)
{
    struct emu_machine *m = load("aries:groups=1");

    (void)state;
    for (uint32_t dst = 0; dst < 384; dst++) {
        struct emu_route route = route_between(m, 70, dst, 0);
        struct emu_place a = place_of(m, 70);
        struct emu_place b = place_of(m, dst);

        assert_int_equal(route.n_hops, (a.blade != b.blade) + (a.chassis != b.chassis));
        check_route(m, 70, dst, &route);
    }
    emu_machine_destroy(m);
}

/* Longest minimal route and sum of hops between all routers of two groups. */
struct hops {
    uint32_t max;
    uint64_t sum;
    uint64_t n;
};

static void add_group_pair(const struct emu_machine *m, uint32_t g, uint32_t h, struct hops *hops)
{
    for (uint32_t i = 0; i < 96; i++) {
        for (uint32_t j = 0; j < 96; j++) {
            struct emu_route route = route_between(m, (g * 96 + i) * 4, (h * 96 + j) * 4, 0);

            hops->max = route.n_hops > hops->max ? route.n_hops : hops->max;
            hops->sum += route.n_hops;
            hops->n++;
        }
    }
}

static void assert_mean(const struct hops *hops, double low, double high)
{
    double mean = (double)hops->sum / (double)hops->n;

    if (mean < low || mean > high)
        fail_msg("mean %.4f is not within %.3f and %.3f", mean, low, high);
}

/* XC-23 */
static void test_six_groups_of_48_cables_are_three_hops_across(void **state)
{
    struct emu_machine *m = load("aries:groups=6,cables_per_bundle=48");
    struct hops hops = { 0 };

    (void)state;
    for (uint32_t g = 0; g < 6; g++) {
        for (uint32_t h = 0; h < 6; h++) {
            if (g != h)
                add_group_pair(m, g, h, &hops);
        }
    }
    assert_int_equal(hops.max, 3);
    assert_mean(&hops, 2.765, 2.775);
    emu_machine_destroy(m);
}

/* XC-23: means between groups, with the canonical wiring. */
static void test_mean_hops_between_groups_are_the_expected_ones(void **state)
{
    static const struct {
        const char *spec;
        uint32_t groups;
        double low, high;
    } examples[] = {
        { "aries:groups=8,cables_per_bundle=12", 8, 3.375, 3.385 },
        { "aries:groups=30,cables_per_bundle=8", 30, 3.385, 3.41 },
        { "aries:groups=241", 241, 4.415, 4.43 },
    };
    struct emu_random random = seeded(2);

    (void)state;
    for (size_t i = 0; i < sizeof(examples) / sizeof(examples[0]); i++) {
        struct emu_machine *m = load(examples[i].spec);
        struct hops hops = { 0 };

        for (int n = 0; n < 60; n++) {
            uint32_t g = (uint32_t)emu_random_below(&random, examples[i].groups);
            uint32_t h = (uint32_t)emu_random_below(&random, examples[i].groups - 1);

            add_group_pair(m, g, h < g ? h : h + 1, &hops);
        }
        assert_mean(&hops, examples[i].low, examples[i].high);
        emu_machine_destroy(m);
    }
}

/* XC-20 */
static void test_largest_machine_is_five_hops_across(void **state)
{
    struct emu_machine *m = load("aries:groups=241");
    struct hops hops = { 0 };

    (void)state;
    add_group_pair(m, 0, 1, &hops);
    add_group_pair(m, 0, 240, &hops);
    add_group_pair(m, 240, 7, &hops);
    assert_int_equal(hops.max, 5);
    emu_machine_destroy(m);
}

/* Nothing shorter exists: compare with a breadth-first search, which may take one blue link at most. */
static void test_no_path_with_one_blue_link_is_shorter(void **state)
{
    struct emu_machine *m = load("aries:groups=5,chassis=3,blades=4,cables_per_bundle=2");
    uint32_t n_routers = emu_machine_n_routers(m);
    uint32_t *distance = calloc(n_routers * 2, sizeof(*distance)); /* state: router, blue link used or not */
    uint32_t *queue = calloc(n_routers * 2, sizeof(*queue));

    (void)state;
    assert_non_null(distance);
    assert_non_null(queue);
    for (uint32_t src = 0; src < n_routers; src++) {
        uint32_t head = 0;
        uint32_t tail = 0;

        memset(distance, 0xff, n_routers * 2 * sizeof(*distance));
        distance[src * 2] = 0;
        queue[tail++] = src * 2;
        while (head < tail) {
            uint32_t at = queue[head++];

            for (uint32_t id = 2 * emu_machine_n_nodes(m); id < emu_machine_n_links(m); id++) {
                struct emu_link l = link_of(m, id);
                uint32_t next = l.to.index * 2 + (at % 2 | (l.link_class == EMU_LINK_BLUE));

                if (l.from.index != at / 2 || (at % 2 == 1 && l.link_class == EMU_LINK_BLUE) ||
                    distance[next] != UINT32_MAX)
                    continue;
                distance[next] = distance[at] + 1;
                queue[tail++] = next;
            }
        }
        for (uint32_t dst = 0; dst < n_routers; dst++) {
            uint32_t uses_blue = place_of_router(m, src).group != place_of_router(m, dst).group;

            assert_int_equal(route_between(m, src * 4, dst * 4, 1).n_hops, distance[dst * 2 + uses_blue]);
        }
    }
    free(queue);
    free(distance);
    emu_machine_destroy(m);
}

static void test_same_hash_gives_the_same_route(void **state)
{
    struct emu_machine *one = load("aries:groups=6");
    struct emu_machine *other = load("aries:groups=6");
    struct emu_random random = seeded(3);

    (void)state;
    for (int n = 0; n < 1000; n++) {
        uint32_t src = (uint32_t)emu_random_below(&random, emu_machine_n_nodes(one));
        uint32_t dst = (uint32_t)emu_random_below(&random, emu_machine_n_nodes(one));
        uint64_t hash = emu_random_next(&random);
        struct emu_route a = route_between(one, src, dst, hash);
        struct emu_route b = route_between(other, src, dst, hash);

        assert_int_equal(a.n_links, b.n_links);
        assert_memory_equal(a.links, b.links, a.n_links * sizeof(a.links[0]));
    }
    emu_machine_destroy(one);
    emu_machine_destroy(other);
}

/*
 * Same slot, other chassis, other group: blue then black or black then blue, with two blue links at each place and
 * three black links. The hash has digits for 4 blue links and twice 3 black links, one of which each route leaves
 * unused.
 */
static void test_consecutive_hashes_step_through_all_minimal_routes(void **state)
{
    struct emu_machine *m = load("aries:groups=6,cables_per_bundle=48");
    struct emu_route found[12];
    uint32_t times[12] = { 0 };
    uint32_t n_found = 0;
    uint32_t src, dst;

    (void)state;
    assert_int_equal(emu_machine_nid_at(m, 0, 0, 0, 0, &src), 0);
    assert_int_equal(emu_machine_nid_at(m, 1, 1, 0, 0, &dst), 0);
    for (uint32_t hash = 0; hash < 4 * 3 * 3; hash++) {
        struct emu_route route = route_between(m, src, dst, 1000 * 36 + hash);
        uint32_t i = 0;

        check_route(m, src, dst, &route);
        assert_int_equal(route.n_links, 4);
        while (i < n_found && memcmp(found[i].links, route.links, 4 * sizeof(route.links[0])) != 0)
            i++;
        if (i == n_found) {
            assert_in_range(n_found, 0, 11);
            found[n_found++] = route;
        }
        times[i]++;
    }
    assert_int_equal(n_found, 12);
    for (uint32_t i = 0; i < 12; i++)
        assert_int_equal(times[i], 3);
    emu_machine_destroy(m);
}

static void test_hash_is_spread_over_small_moduli(void **state)
{
    uint32_t counts[3][3] = { 0 };

    (void)state;
    for (uint32_t src = 0; src < 100; src++) {
        for (uint32_t dst = 0; dst < 90; dst++) {
            uint64_t hash = emu_route_hash(src, dst, 0);

            counts[hash % 3][hash / 3 % 3]++;
        }
    }
    for (int i = 0; i < 9; i++)
        assert_in_range(counts[i / 3][i % 3], 850, 1150); /* 1000 each; standard deviation 30 */
    assert_int_not_equal(emu_route_hash(1, 2, 0), emu_route_hash(2, 1, 0));
    assert_int_not_equal(emu_route_hash(1, 2, 0), emu_route_hash(1, 2, 1));
}

static void test_nid_outside_the_machine_is_refused(void **state)
{
    struct emu_machine *m = load("aries");
    struct emu_route route = { .n_links = 77 };

    (void)state;
    assert_int_equal(emu_route_minimal(m, 768, 0, 0, &route), -ERANGE);
    assert_int_equal(emu_route_minimal(m, 0, 768, 0, &route), -ERANGE);
    assert_int_equal(route.n_links, 77);
    emu_machine_destroy(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_routes_are_connected_and_obey_the_order_of_classes),
        cmocka_unit_test(test_node_reaches_itself_through_its_router),
        cmocka_unit_test(test_hops_in_a_group_are_the_differing_coordinates),
        cmocka_unit_test(test_six_groups_of_48_cables_are_three_hops_across),
        cmocka_unit_test(test_mean_hops_between_groups_are_the_expected_ones),
        cmocka_unit_test(test_largest_machine_is_five_hops_across),
        cmocka_unit_test(test_no_path_with_one_blue_link_is_shorter),
        cmocka_unit_test(test_same_hash_gives_the_same_route),
        cmocka_unit_test(test_consecutive_hashes_step_through_all_minimal_routes),
        cmocka_unit_test(test_hash_is_spread_over_small_moduli),
        cmocka_unit_test(test_nid_outside_the_machine_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
