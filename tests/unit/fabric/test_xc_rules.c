/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Every rule of spec/machines.md 2.1 has a configuration that keeps it and one that breaks it (XC-51).
 */
#include <string.h>

#include "emunic/fabric/xc_rules.h"
#include "tests/unit/fabric/fixture.h"

static void note_rule(void *ctx, uint32_t rule, const char *text)
{
    uint32_t *rules = ctx;

    assert_in_range(rule, 1, 8);
    assert_true(strlen(text) > 0);
    *rules |= 1u << rule;
}

/* Broken rules as bits. */
static uint32_t broken(struct emu_xc_config config)
{
    uint32_t rules = 0;
    int n = emu_xc_check(&config, note_rule, &rules);

    assert_int_equal(n, __builtin_popcount(rules));
    assert_int_equal(emu_xc_check(&config, NULL, NULL), n);
    return rules;
}

/* Full groups, the last one perhaps not. */
static struct emu_xc_config full(uint32_t groups, uint32_t last_chassis, uint32_t cables)
{
    return (struct emu_xc_config){
        .groups = groups,
        .chassis = 6,
        .last_chassis = last_chassis,
        .blades = 16,
        .cables_per_bundle = cables,
    };
}

#define RULE(n) (1u << (n))

static void test_bundle_must_fit_its_groups(void **state)
{
    (void)state;
    assert_int_equal(broken(full(6, 6, 48)), 0);
    assert_int_equal(broken(full(6, 6, 54)), RULE(1));
    assert_int_equal(broken(full(7, 3, 18)), 0);
    assert_int_equal(broken(full(7, 3, 24)), RULE(1)); /* half a group has half the connectors */
}

static void test_quarter_of_the_optical_ports_must_be_used(void **state)
{
    (void)state;
    assert_int_equal(broken(full(6, 6, 12)), 0); /* 60 of 240: the seed's smallest 12-cabinet system */
    assert_int_equal(broken(full(6, 6, 6)), RULE(2));
}

static void test_up_to_26_cabinets_bundles_are_multiples_of_six(void **state)
{
    (void)state;
    assert_int_equal(broken(full(8, 6, 30)), 0);
    assert_int_equal(broken(full(8, 6, 34)), RULE(3)); /* XCWP's own Table 3 */
    assert_int_equal(broken(full(13, 6, 14)), RULE(3));
    assert_int_equal(broken(full(13, 5, 12)), 0); /* one chassis is the step of an upgrade */
}

static void test_chassis_must_be_full(void **state)
{
    (void)state;
    assert_int_equal(broken((struct emu_xc_config){
                         .groups = 2, .chassis = 6, .last_chassis = 6, .blades = 15, .cables_per_bundle = 180 }),
                     RULE(3));
}

static void test_up_to_64_cabinets_bundles_are_even_and_cabinets_whole(void **state)
{
    (void)state;
    assert_int_equal(broken(full(14, 6, 14)), 0);
    assert_int_equal(broken(full(14, 6, 15)), RULE(4));
    assert_int_equal(broken(full(14, 3, 8)), 0);
    assert_int_equal(broken(full(14, 4, 8)), RULE(4));
    assert_int_equal(broken(full(32, 6, 6)), 0);
}

static void test_above_64_cabinets_groups_are_whole(void **state)
{
    (void)state;
    assert_int_equal(broken(full(33, 6, 5)), 0);
    assert_int_equal(broken(full(33, 3, 3)), RULE(5));
    assert_int_equal(broken(full(241, 6, 1)), 0);
}

static void test_every_group_but_the_last_is_full(void **state)
{
    (void)state;
    assert_int_equal(broken(full(1, 3, 0)), 0);
    assert_int_equal(broken((struct emu_xc_config){
                         .groups = 4, .chassis = 3, .last_chassis = 3, .blades = 16, .cables_per_bundle = 36 }),
                     RULE(6));
}

static void test_air_cooled_systems_have_their_own_rule(void **state)
{
    struct emu_xc_config air = { .groups = 8, .chassis = 1, .last_chassis = 1, .blades = 16, .cables_per_bundle = 5 };

    (void)state;
    assert_int_equal(emu_xc_cabinets(&air), 8);
    assert_int_equal(broken(air), 0); /* fully populated */
    air.cables_per_bundle = 2;
    assert_int_equal(broken(air), 0); /* half */
    air.cables_per_bundle = 3;
    assert_int_equal(broken(air), RULE(8));
    air.groups = 9; /* no longer air-cooled: nine cabinets with one chassis each */
    assert_int_equal(broken(air), RULE(3) | RULE(6));
    assert_int_equal(broken((struct emu_xc_config){ .groups = 1, .chassis = 1, .last_chassis = 1, .blades = 15 }),
                     RULE(8)); /* 60 nodes */
}

static void test_full_systems_obey_the_rules_at_every_size(void **state)
{
    (void)state;
    for (uint32_t groups = 1; groups <= 241; groups++) {
        struct emu_xc_config config = full(groups, 6, 0);

        config.cables_per_bundle = emu_xc_bundle_max(&config);
        assert_int_equal(broken(config), 0);
        assert_int_equal(emu_xc_cabinets(&config), 2 * groups);
        config.cables_per_bundle = 240 / groups + 1 + (groups == 1 ? 0 : 240 / (groups - 1));
        if (groups > 1)
            assert_true(broken(config) & RULE(1));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bundle_must_fit_its_groups),
        cmocka_unit_test(test_quarter_of_the_optical_ports_must_be_used),
        cmocka_unit_test(test_up_to_26_cabinets_bundles_are_multiples_of_six),
        cmocka_unit_test(test_chassis_must_be_full),
        cmocka_unit_test(test_up_to_64_cabinets_bundles_are_even_and_cabinets_whole),
        cmocka_unit_test(test_above_64_cabinets_groups_are_whole),
        cmocka_unit_test(test_every_group_but_the_last_is_full),
        cmocka_unit_test(test_air_cooled_systems_have_their_own_rule),
        cmocka_unit_test(test_full_systems_obey_the_rules_at_every_size),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
