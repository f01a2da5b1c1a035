/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Counts and wiring of the Aries Dragonfly, counted on the built machine (experiments of spec/machines.md 2.5).
 */
#include <errno.h>
#include <string.h>

#include "emunic/fabric/dragonfly.h"
#include "tests/unit/fabric/fixture.h"

static struct emu_dragonfly_shape shape_of(const struct emu_machine *m)
{
    struct emu_dragonfly_shape shape;

    assert_int_equal(emu_dragonfly_shape(m, &shape), 0);
    return shape;
}

/* XC-17 */
static void test_group_bisection_is_384_green_and_432_black_links(void **state)
{
    struct emu_machine *m = load("aries:groups=1");
    uint32_t green_across_slots = 0;
    uint32_t black_across_chassis = 0;
    uint64_t bytes_per_s = 0;

    (void)state;
    for (uint32_t id = 0; id < emu_machine_n_links(m); id++) {
        struct emu_link l = link_of(m, id);

        if (l.link_class == EMU_LINK_GREEN &&
            place_of_router(m, l.from.index).blade / 8 != place_of_router(m, l.to.index).blade / 8) {
            green_across_slots++;
            bytes_per_s += l.bytes_per_s;
        }
        if (l.link_class == EMU_LINK_BLACK)
            black_across_chassis +=
                place_of_router(m, l.from.index).chassis / 3 != place_of_router(m, l.to.index).chassis / 3;
    }
    assert_int_equal(green_across_slots / 2, 384);
    assert_int_equal(black_across_chassis / 2, 432);
    assert_int_equal(bytes_per_s, UINT64_C(4032) * 1000000000); /* both directions */
    emu_machine_destroy(m);
}

/* XC-18: three black links share a copper cable; an optical cable belongs to two groups. */
static void test_group_has_96_routers_240_copper_and_120_optical_cables(void **state)
{
    struct emu_machine *m = load("aries:groups=241");
    struct emu_dragonfly_shape shape = shape_of(m);
    uint32_t n_black = 0;

    (void)state;
    for (uint32_t id = 0; id < emu_machine_n_links(m); id++)
        n_black += link_of(m, id).link_class == EMU_LINK_BLACK;
    assert_int_equal(emu_machine_n_routers(m), 241 * 96);
    assert_int_equal(n_black / 2 / 3, 241 * 240);
    assert_int_equal(shape.n_cables, 241 * 120);
    assert_int_equal(4 * emu_machine_n_routers(m), emu_machine_n_nodes(m));
    assert_int_equal(n_black / 2 / 3 * 8, 5 * emu_machine_n_nodes(m)); /* 0.625 per node */
    assert_int_equal(shape.n_cables * 16, 5 * emu_machine_n_nodes(m)); /* 0.3125 per node */
    emu_machine_destroy(m);
}

/* XC-19 */
static void test_six_and_eight_groups_of_12_cables_need_180_and_336(void **state)
{
    struct emu_machine *six = load("aries:groups=6,cables_per_bundle=12");
    struct emu_machine *eight = load("aries:groups=8,cables_per_bundle=12");

    (void)state;
    assert_int_equal(shape_of(six).n_cables, 180);
    assert_int_equal(shape_of(eight).n_cables, 336);
    emu_machine_destroy(six);
    emu_machine_destroy(eight);
}

static void test_default_bundle_is_the_largest_that_the_rules_allow(void **state)
{
    static const struct {
        const char *spec;
        uint32_t cables;
    } examples[] = {
        { "aries:groups=1", 0 },
        { "aries:groups=2", 240 },
        { "aries:groups=6", 48 },
        { "aries:groups=8", 30 }, /* 34 fit, 16 cabinets need a multiple of 6 */
        { "aries:groups=20", 12 },
        { "aries:groups=241", 1 },
        { "aries:groups=2,chassis=1,blades=2", 5 },
        { "aries:groups=4,chassis=2,blades=2", 3 }, /* no multiple of 6 fits: what fits */
    };

    (void)state;
    for (size_t i = 0; i < sizeof(examples) / sizeof(examples[0]); i++) {
        struct emu_machine *m = load(examples[i].spec);

        assert_int_equal(shape_of(m).cables_per_bundle, examples[i].cables);
        emu_machine_destroy(m);
    }
}

/* Each connector of each blade pair holds one cable end, and no cable end is anywhere else. */
static void check_connectors(const char *spec)
{
    struct emu_machine *m = load(spec);
    struct emu_dragonfly_shape shape = shape_of(m);

    for (uint32_t g = 0; g < shape.groups; g++) {
        uint8_t used[6][8][5] = { 0 };

        for (uint32_t h = 0; h < shape.groups; h++) {
            for (uint32_t cable = 0; h != g && cable < shape.cables_per_bundle; cable++) {
                struct emu_cable_end near, far, near_again, far_again;
                uint32_t connectors;

                assert_int_equal(emu_dragonfly_cable(m, g, h, cable, &near, &far), 0);
                assert_int_equal(near.group, g);
                assert_int_equal(far.group, h);
                assert_in_range(near.chassis, 0, shape.chassis - 1);
                assert_in_range(near.pair, 0, (shape.blades - 1) / 2);
                connectors = near.pair * 2 + 1 < shape.blades ? 5 : 2;
                assert_in_range(near.connector, 0, connectors - 1);
                assert_int_equal(used[near.chassis][near.pair][near.connector], 0);
                used[near.chassis][near.pair][near.connector] = 1;

                assert_int_equal(emu_dragonfly_cable(m, h, g, cable, &near_again, &far_again), 0);
                assert_memory_equal(&near_again, &far, sizeof(far));
                assert_memory_equal(&far_again, &near, sizeof(near));
            }
        }
    }
    emu_machine_destroy(m);
}

static void test_no_connector_holds_two_cables(void **state)
{
    (void)state;
    check_connectors("aries");
    check_connectors("aries:groups=6");
    check_connectors("aries:groups=8,cables_per_bundle=34");
    check_connectors("aries:groups=241");
    check_connectors("aries:groups=5,chassis=4,blades=7");
    check_connectors("aries:groups=13,chassis=6,blades=1");
    check_connectors("aries:groups=3,chassis=1,blades=1");
    check_connectors("aries:groups=3,last_chassis=1");
    check_connectors("aries:groups=7,last_chassis=5");
}

static void test_no_router_has_more_than_ten_blue_links(void **state)
{
    static const char *const specs[] = {
        "aries",
        "aries:groups=241",
        "aries:groups=8,cables_per_bundle=34",
        "aries:groups=5,chassis=4,blades=7",
    };

    (void)state;
    for (size_t i = 0; i < sizeof(specs) / sizeof(specs[0]); i++) {
        struct emu_machine *m = load(specs[i]);
        uint32_t *n_blue = calloc(emu_machine_n_routers(m), sizeof(*n_blue));

        assert_non_null(n_blue);
        for (uint32_t id = 0; id < emu_machine_n_links(m); id++) {
            struct emu_link l = link_of(m, id);

            if (l.link_class == EMU_LINK_BLUE)
                assert_in_range(++n_blue[l.from.index], 1, 10);
        }
        free(n_blue);
        emu_machine_destroy(m);
    }
}

/* XCWP: with 6 groups x 48 cables every Aries is connected to every other group. */
static void test_six_groups_of_48_cables_connect_each_router_to_each_group(void **state)
{
    struct emu_machine *m = load("aries:groups=6,cables_per_bundle=48");
    uint8_t seen[6 * 96][6] = { 0 };

    (void)state;
    for (uint32_t id = 0; id < emu_machine_n_links(m); id++) {
        struct emu_link l = link_of(m, id);

        if (l.link_class == EMU_LINK_BLUE)
            seen[l.from.index][place_of_router(m, l.to.index).group]++;
    }
    for (uint32_t router = 0; router < 6 * 96; router++) {
        for (uint32_t group = 0; group < 6; group++)
            assert_int_equal(seen[router][group], group == router / 96 ? 0 : 2);
    }
    emu_machine_destroy(m);
}

/* XC-33, rule 7 */
static void test_upgrade_from_12_to_16_cabinets_moves_no_cable_and_adds_156(void **state)
{
    struct emu_machine *before = load("aries:groups=6,cables_per_bundle=12");
    struct emu_machine *after = load("aries:groups=8,cables_per_bundle=12");

    (void)state;
    for (uint32_t g = 0; g < 6; g++) {
        for (uint32_t h = 0; h < g; h++) {
            for (uint32_t cable = 0; cable < 12; cable++) {
                struct emu_cable_end near[2], far[2];

                assert_int_equal(emu_dragonfly_cable(before, g, h, cable, &near[0], &far[0]), 0);
                assert_int_equal(emu_dragonfly_cable(after, g, h, cable, &near[1], &far[1]), 0);
                assert_memory_equal(&near[0], &near[1], sizeof(near[0]));
                assert_memory_equal(&far[0], &far[1], sizeof(far[0]));
            }
        }
    }
    assert_int_equal(shape_of(after).n_cables - shape_of(before).n_cables, 156);
    emu_machine_destroy(before);
    emu_machine_destroy(after);
}

/* Rule 6: 13 cabinets are six full groups and a cabinet. */
static void test_last_group_may_be_smaller(void **state)
{
    struct emu_machine *m = load("aries:groups=7,last_chassis=3,cables_per_bundle=18");
    uint32_t n_black[7 * 96] = { 0 };
    struct emu_place last;
    uint32_t nid;

    (void)state;
    assert_int_equal(emu_machine_n_nodes(m), 6 * 384 + 192);
    assert_int_equal(emu_machine_n_routers(m), 6 * 96 + 48);
    assert_int_equal(shape_of(m).last_chassis, 3);
    assert_int_equal(emu_machine_check_rules(m, NULL, NULL), 0);
    last = place_of(m, emu_machine_n_nodes(m) - 1);
    assert_int_equal(last.group, 6);
    assert_int_equal(last.chassis, 2);
    assert_int_equal(emu_machine_nid_at(m, 5, 5, 0, 0, &nid), 0);
    assert_int_equal(emu_machine_nid_at(m, 6, 3, 0, 0, &nid), -ERANGE);
    for (uint32_t id = 0; id < emu_machine_n_links(m); id++) {
        struct emu_link l = link_of(m, id);

        if (l.link_class == EMU_LINK_BLACK)
            n_black[l.from.index]++;
    }
    for (uint32_t router = 0; router < emu_machine_n_routers(m); router++)
        assert_int_equal(n_black[router], router < 6 * 96 ? 15 : 6);
    emu_machine_destroy(m);
}

static void test_last_group_must_not_be_the_largest(void **state)
{
    struct emu_machine *m;
    char err[300];

    (void)state;
    assert_int_equal(
        emu_machine_load("aries:groups=3,chassis=2,last_chassis=3", EMU_TEST_MACHINE_DIR, &m, err, sizeof(err)),
        -EINVAL);
    assert_non_null(strstr(err, "topology.last_chassis: 3 chassis are more than the other groups have, 2"));
}

static void test_cable_outside_the_machine_is_refused(void **state)
{
    struct emu_machine *m = load("aries");
    struct emu_cable_end near, far;

    (void)state;
    assert_int_equal(emu_dragonfly_cable(m, 0, 0, 0, &near, &far), -ERANGE);
    assert_int_equal(emu_dragonfly_cable(m, 0, 2, 0, &near, &far), -ERANGE);
    assert_int_equal(emu_dragonfly_cable(m, 2, 0, 0, &near, &far), -ERANGE);
    assert_int_equal(emu_dragonfly_cable(m, 0, 1, 240, &near, &far), -ERANGE);
    emu_machine_destroy(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_group_bisection_is_384_green_and_432_black_links),
        cmocka_unit_test(test_group_has_96_routers_240_copper_and_120_optical_cables),
        cmocka_unit_test(test_six_and_eight_groups_of_12_cables_need_180_and_336),
        cmocka_unit_test(test_default_bundle_is_the_largest_that_the_rules_allow),
        cmocka_unit_test(test_no_connector_holds_two_cables),
        cmocka_unit_test(test_no_router_has_more_than_ten_blue_links),
        cmocka_unit_test(test_six_groups_of_48_cables_connect_each_router_to_each_group),
        cmocka_unit_test(test_upgrade_from_12_to_16_cabinets_moves_no_cable_and_adds_156),
        cmocka_unit_test(test_last_group_may_be_smaller),
        cmocka_unit_test(test_last_group_must_not_be_the_largest),
        cmocka_unit_test(test_cable_outside_the_machine_is_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
