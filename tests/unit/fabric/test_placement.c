/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <string.h>

#include "emunic/fabric/placement.h"
#include "tests/unit/fabric/fixture.h"

static int setup(void **state)
{
    *state = load("aries:groups=5,chassis=3,blades=4"); /* 240 nodes */
    return 0;
}

static int teardown(void **state)
{
    emu_machine_destroy(*state);
    return 0;
}

static void assert_all_different(const uint32_t *nids, uint32_t n, uint32_t n_nodes)
{
    uint8_t seen[240] = { 0 };

    assert_true(n_nodes <= sizeof(seen));
    for (uint32_t i = 0; i < n; i++) {
        assert_in_range(nids[i], 0, n_nodes - 1);
        assert_int_equal(seen[nids[i]]++, 0);
    }
}

static void test_linear_takes_consecutive_nids(void **state)
{
    uint32_t nids[17];

    assert_int_equal(emu_machine_placement(*state, "linear", 17, nids), 0);
    for (uint32_t i = 0; i < 17; i++)
        assert_int_equal(nids[i], i);
}

static void test_every_policy_can_take_the_whole_machine(void **state)
{
    static const char *const policies[] = { "linear", "scatter", "random:7" };
    uint32_t nids[240];

    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(emu_machine_placement(*state, policies[i], 240, nids), 0);
        assert_all_different(nids, 240, 240);
    }
}

static void test_scatter_uses_groups_then_chassis_then_blades_then_nodes(void **state)
{
    const struct emu_machine *m = *state;
    uint32_t nids[240];

    assert_int_equal(emu_machine_placement(m, "scatter", 240, nids), 0);
    for (uint32_t i = 0; i < 240; i++) {
        struct emu_place p = place_of(m, nids[i]);

        assert_int_equal(p.group, i % 5);
        assert_int_equal(p.chassis, i / 5 % 3);
        assert_int_equal(p.blade, i / 15 % 4);
        assert_int_equal(p.node, i / 60);
    }
}

static void test_random_is_the_same_for_the_same_seed(void **state)
{
    uint32_t a[100], b[100], c[100];

    assert_int_equal(emu_machine_placement(*state, "random:42", 100, a), 0);
    assert_int_equal(emu_machine_placement(*state, "random:42", 100, b), 0);
    assert_int_equal(emu_machine_placement(*state, "random:43", 100, c), 0);
    assert_memory_equal(a, b, sizeof(a));
    assert_memory_not_equal(a, c, sizeof(a));
    assert_all_different(a, 100, 240);
}

static void test_smaller_random_job_is_the_start_of_a_larger_one(void **state)
{
    uint32_t large[240], small[10];

    assert_int_equal(emu_machine_placement(*state, "random:42", 240, large), 0);
    assert_int_equal(emu_machine_placement(*state, "random:42", 10, small), 0);
    assert_memory_equal(large, small, sizeof(small));
}

static void test_random_treats_all_nodes_alike(void **state)
{
    uint32_t counts[240] = { 0 };

    for (int seed = 0; seed < 2400; seed++) {
        char policy[40];
        uint32_t nids[10];

        snprintf(policy, sizeof(policy), "random:%d", seed);
        assert_int_equal(emu_machine_placement(*state, policy, 10, nids), 0);
        for (int i = 0; i < 10; i++)
            counts[nids[i]]++;
    }
    for (int nid = 0; nid < 240; nid++)
        assert_in_range(counts[nid], 50, 150); /* 100 expected, standard deviation 10 */
}

/* The generator is a named one: its first numbers from seed 1234567 are known. */
static void test_generator_is_splitmix64(void **state)
{
    struct emu_random random = { .state = 1234567 };

    (void)state;
    assert_true(emu_random_next(&random) == UINT64_C(6457827717110365317));
    assert_true(emu_random_next(&random) == UINT64_C(3203168211198807973));
}

static void test_listed_nodes_come_in_the_order_of_the_list(void **state)
{
    static const uint32_t expected[] = { 17, 3, 100, 101, 102 };
    uint32_t nids[5];

    assert_int_equal(emu_machine_placement(*state, "nids:17,3,100-102", 5, nids), 0);
    assert_memory_equal(nids, expected, sizeof(nids));
    assert_int_equal(emu_machine_placement(*state, "nids:17,3,100-239", 3, nids), 0);
    assert_memory_equal(nids, expected, 3 * sizeof(nids[0]));
}

static void test_a_list_that_is_too_short_or_leaves_the_machine_is_refused(void **state)
{
    uint32_t nids[5];

    assert_int_equal(emu_machine_placement(*state, "nids:1-4", 5, nids), -ENODATA);
    assert_int_equal(emu_machine_placement(*state, "nids:1,240", 1, nids), -ERANGE);
    assert_int_equal(emu_machine_placement(*state, "nids:0-18446744073709551615", 1, nids), -ERANGE);
}

static void test_no_nodes_is_a_placement(void **state)
{
    assert_int_equal(emu_machine_placement(*state, "scatter", 0, NULL), 0);
}

static void test_more_nodes_than_there_are_is_refused(void **state)
{
    uint32_t nids[241] = { 77 };

    assert_int_equal(emu_machine_placement(*state, "linear", 241, nids), -ERANGE);
    assert_int_equal(nids[0], 77);
}

static void test_unknown_policy_or_bad_seed_is_refused(void **state)
{
    static const char *const policies[] = {
        "",         "Linear",     "random",    "random:",
        "random:x", "random:-1",  "random:1 ", "random:18446744073709551616",
        "linear:1", "nids:",      "nids:,",    "nids:1,",
        "nids:a",   "nids:1-",    "nids:3-2",  "nids:1;2",
        "nids:1,1", "nids:1-4,3", "nids:-1",   "nids:1 ",
    };
    uint32_t nids[1] = { 77 };

    for (size_t i = 0; i < sizeof(policies) / sizeof(policies[0]); i++)
        assert_int_equal(emu_machine_placement(*state, policies[i], 1, nids), -EINVAL);
    assert_int_equal(nids[0], 77);
    assert_int_equal(emu_machine_placement(*state, "random:18446744073709551615", 1, nids), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_linear_takes_consecutive_nids),
        cmocka_unit_test(test_every_policy_can_take_the_whole_machine),
        cmocka_unit_test(test_scatter_uses_groups_then_chassis_then_blades_then_nodes),
        cmocka_unit_test(test_random_is_the_same_for_the_same_seed),
        cmocka_unit_test(test_smaller_random_job_is_the_start_of_a_larger_one),
        cmocka_unit_test(test_random_treats_all_nodes_alike),
        cmocka_unit_test(test_generator_is_splitmix64),
        cmocka_unit_test(test_listed_nodes_come_in_the_order_of_the_list),
        cmocka_unit_test(test_a_list_that_is_too_short_or_leaves_the_machine_is_refused),
        cmocka_unit_test(test_no_nodes_is_a_placement),
        cmocka_unit_test(test_more_nodes_than_there_are_is_refused),
        cmocka_unit_test(test_unknown_policy_or_bad_seed_is_refused),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
