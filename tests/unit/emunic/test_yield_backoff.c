/* SPDX-License-Identifier: BSD-3-Clause */
/* After a yield that took long others are left away, as many as it cost. */
#include "emunic/base/yield_cost.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static unsigned count_skips(struct emu_yield_backoff *backoff)
{
    unsigned n = 0;

    while (emu_yield_is_skipped(backoff))
        n++;
    return n;
}

static void test_short_yields_leave_none_away(void **state)
{
    struct emu_yield_backoff backoff = { 0 };

    (void)state;
    assert_int_equal(count_skips(&backoff), 0);
    emu_yield_took(&backoff, 1);
    emu_yield_took(&backoff, EMU_YIELD_LONG_NS);
    assert_int_equal(count_skips(&backoff), 0);
}

static void test_a_long_yield_leaves_away_what_it_cost(void **state)
{
    struct emu_yield_backoff backoff = { 0 };

    (void)state;
    emu_yield_took(&backoff, 300 * EMU_YIELD_SLEEP_NS);
    assert_int_equal(count_skips(&backoff), 300);
    assert_int_equal(count_skips(&backoff), 0);
}

/* One between two processes that only hand on messages says nothing about those that compute. */
static void test_a_short_yield_behind_a_long_one_changes_nothing(void **state)
{
    struct emu_yield_backoff backoff = { 0 };

    (void)state;
    emu_yield_took(&backoff, 300 * EMU_YIELD_SLEEP_NS);
    emu_yield_took(&backoff, 1);
    assert_int_equal(count_skips(&backoff), 300);
}

static void test_it_tries_again_however_long_one_took(void **state)
{
    struct emu_yield_backoff backoff = { 0 };

    (void)state;
    emu_yield_took(&backoff, UINT64_MAX);
    assert_int_equal(count_skips(&backoff), EMU_YIELD_SKIPS_MAX);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_short_yields_leave_none_away),
        cmocka_unit_test(test_a_long_yield_leaves_away_what_it_cost),
        cmocka_unit_test(test_a_short_yield_behind_a_long_one_changes_nothing),
        cmocka_unit_test(test_it_tries_again_however_long_one_took),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
