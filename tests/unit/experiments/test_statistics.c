/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Means, fairness, and the search for saturation, against figures worked out by hand.
 */
#include <math.h>

#include "emunic/experiments/statistics.h"
#include "tests/unit/fabric/fixture.h"

static void test_the_interval_is_students(void **state)
{
    const double values[] = { 1, 2, 3, 4, 5 };
    struct emu_sample s = emu_sample_of(values, 5);

    (void)state;
    /* s = sqrt(2.5), t(4) = 2.776: 2.776 x 1.5811 / sqrt(5) = 1.963 */
    assert_float_equal(s.mean, 3, 1e-12);
    assert_float_equal(s.half_95, 1.963, 1e-3);
    assert_float_equal(s.min, 1, 0);
    assert_float_equal(s.max, 5, 0);
}

static void test_one_value_has_no_interval(void **state)
{
    const double value = 7;

    (void)state;
    assert_float_equal(emu_sample_of(&value, 1).half_95, 0, 0);
    assert_float_equal(emu_sample_of(&value, 1).mean, 7, 0);
    assert_int_equal(emu_sample_of(NULL, 0).n, 0);
}

static void test_fairness_runs_from_one_node_to_all(void **state)
{
    const double equal[] = { 2, 2, 2, 2 };
    const double greedy[] = { 8, 0, 0, 0 };
    const double halves[] = { 1, 1, 0, 0 };
    const double nothing[] = { 0, 0 };

    (void)state;
    assert_float_equal(emu_jain_index(equal, 4), 1, 1e-12);
    assert_float_equal(emu_jain_index(greedy, 4), 0.25, 1e-12);
    assert_float_equal(emu_jain_index(halves, 4), 0.5, 1e-12);
    assert_float_equal(emu_jain_index(nothing, 2), 1, 0);
}

/* A network that takes everything up to `bound` and no more beyond. */
static struct emu_saturation search(double bound)
{
    struct emu_saturation s = { 0 };
    double load;

    while (emu_saturation_next(&s, &load)) {
        assert_true(s.n_loads < 40);
        emu_saturation_tell(&s, load, fmin(1, bound / load));
    }
    return s;
}

static void test_bisection_finds_the_load_within_a_percent(void **state)
{
    const double bounds[] = { 0.003, 0.11, 0.5, 0.77, 0.95, 1.3, 3.1 };

    (void)state;
    for (size_t i = 0; i < sizeof(bounds) / sizeof(bounds[0]); i++) {
        struct emu_saturation s = search(bounds[i]);
        double expected = bounds[i] / EMU_SATURATION_SHARE;

        assert_true(s.followed <= expected && expected <= s.refused);
        assert_true(s.refused - s.followed <= EMU_SATURATION_WIDTH * s.refused);
    }
}

static void test_bisection_ends_without_a_bound(void **state)
{
    struct emu_saturation never = search(100);
    struct emu_saturation at_once = search(0);

    (void)state;
    assert_float_equal(never.followed, EMU_SATURATION_MAX, 0);
    assert_float_equal(never.refused, 0, 0);
    assert_float_equal(at_once.followed, 0, 0);
    assert_true(at_once.refused < 2 * EMU_SATURATION_MIN);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_interval_is_students),
        cmocka_unit_test(test_one_value_has_no_interval),
        cmocka_unit_test(test_fairness_runs_from_one_node_to_all),
        cmocka_unit_test(test_bisection_finds_the_load_within_a_percent),
        cmocka_unit_test(test_bisection_ends_without_a_bound),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
