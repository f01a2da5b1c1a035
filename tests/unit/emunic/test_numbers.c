/* SPDX-License-Identifier: BSD-3-Clause */
#include "emunic/daemon/world/numbers.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define MANY 1000u

static struct emu_numbers numbers;
static int things[MANY];

static int teardown(void **state)
{
    (void)state;
    emu_numbers_fini(&numbers);
    return 0;
}

static void test_each_number_finds_its_own(void **state)
{
    uint64_t given[MANY];

    (void)state;
    for (unsigned i = 0; i < MANY; i++) {
        assert_int_equal(emu_numbers_take(&numbers, &things[i], &given[i]), 0);
        assert_true(given[i] != 0);
    }
    for (unsigned i = 0; i < MANY; i++)
        assert_ptr_equal(emu_numbers_find(&numbers, given[i]), &things[i]);
}

static void test_number_that_was_given_back_finds_nothing(void **state)
{
    uint64_t first, second;

    (void)state;
    assert_int_equal(emu_numbers_take(&numbers, &things[0], &first), 0);
    emu_numbers_give(&numbers, first);
    assert_null(emu_numbers_find(&numbers, first));
    assert_int_equal(emu_numbers_take(&numbers, &things[1], &second), 0);
    assert_true((uint32_t)second == (uint32_t)first && second != first); /* the same place */
    assert_null(emu_numbers_find(&numbers, first));
    assert_ptr_equal(emu_numbers_find(&numbers, second), &things[1]);
}

static void test_number_that_never_was_finds_nothing(void **state)
{
    static const uint64_t none[] = { 0, 1, UINT32_MAX, 1ull << 32, UINT64_MAX };
    uint64_t number;

    (void)state;
    for (unsigned i = 0; i < sizeof(none) / sizeof(none[0]); i++)
        assert_null(emu_numbers_find(&numbers, none[i]));
    assert_int_equal(emu_numbers_take(&numbers, &things[0], &number), 0);
    assert_null(emu_numbers_find(&numbers, number + 1));
    assert_null(emu_numbers_find(&numbers, number - 1));
    assert_null(emu_numbers_find(&numbers, number | 1ull << 32));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_each_number_finds_its_own, teardown),
        cmocka_unit_test_teardown(test_number_that_was_given_back_finds_nothing, teardown),
        cmocka_unit_test_teardown(test_number_that_never_was_finds_nothing, teardown),
    };

    return cmocka_run_group_tests_name("numbers", tests, NULL, NULL);
}
