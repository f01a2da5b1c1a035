/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Numbers from outside: what is one, and what is refused.
 */
#include "emunic/base/number.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static uint64_t value;

static void test_digits_are_a_number(void **state)
{
    (void)state;
    assert_true(emu_parse_number("0", 10, 0, 0, &value));
    assert_int_equal(value, 0);
    assert_true(emu_parse_number("18446744073709551615", 10, 0, UINT64_MAX, &value));
    assert_true(value == UINT64_MAX);
    assert_true(emu_parse_number("007", 10, 1, 9, &value));
    assert_int_equal(value, 7);
}

static void test_bounds_belong_to_the_range(void **state)
{
    (void)state;
    assert_true(emu_parse_number("3", 10, 3, 5, &value));
    assert_true(emu_parse_number("5", 10, 3, 5, &value));
    assert_false(emu_parse_number("2", 10, 3, 5, &value));
    assert_false(emu_parse_number("6", 10, 3, 5, &value));
}

static void test_anything_else_is_refused_and_writes_nothing(void **state)
{
    static const char *const wrong[] = { "",   " ",    "-1",  "+1",  " 1",   "1 ",
                                         "1x", "0x10", "1.5", "1e3", "many", "18446744073709551616" };

    (void)state;
    value = 42;
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        if (emu_parse_number(wrong[i], 10, 0, UINT64_MAX, &value) || value != 42)
            fail_msg("'%s' is taken", wrong[i]);
    }
}

static void test_base_zero_takes_hexadecimal_digits(void **state)
{
    (void)state;
    assert_true(emu_parse_number("0x10", 0, 0, 16, &value));
    assert_int_equal(value, 16);
    assert_true(emu_parse_number("10", 0, 0, 16, &value));
    assert_int_equal(value, 10);
    assert_false(emu_parse_number("0x", 0, 0, 16, &value));
    assert_false(emu_parse_number("x10", 0, 0, 16, &value));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_digits_are_a_number),
        cmocka_unit_test(test_bounds_belong_to_the_range),
        cmocka_unit_test(test_anything_else_is_refused_and_writes_nothing),
        cmocka_unit_test(test_base_zero_takes_hexadecimal_digits),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
