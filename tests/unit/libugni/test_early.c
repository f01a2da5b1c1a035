/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Balances of early entries (early.c) against a plain table, at random; and what does not come to an end.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "libugni/src/early.h"
#include "tests/common/seed.h"

#define EVENTS 40u
#define TAGS   9u

static struct gnii_early early;

static int stop(void **state)
{
    (void)state;
    gnii_early_fini(&early);
    return 0;
}

static void test_tag_is_never_0(void **state)
{
    (void)state;
    for (uint32_t mark = 1; mark < 1u << 20; mark++)
        assert_int_not_equal(gnii_early_tag(mark * 2654435761u), 0);
    assert_int_not_equal(gnii_early_tag(0x00010001), 0);
}

static void test_balance_tells_entries_that_were_taken_and_whose_messages_wait(void **state)
{
    (void)state;
    assert_false(gnii_early_is_taken(&early, 7, 1));
    gnii_early_taken(&early, 7, 1);
    gnii_early_taken(&early, 7, 1);
    assert_true(gnii_early_is_taken(&early, 7, 1));
    assert_false(gnii_early_is_taken(&early, 7, 2));
    assert_false(gnii_early_is_taken(&early, 8, 1));
    gnii_early_put_back(&early, 7, 1);
    assert_true(gnii_early_is_taken(&early, 7, 1));
    gnii_early_released(&early, 7, 1);
    assert_false(gnii_early_is_taken(&early, 7, 1));
    assert_int_equal(early.n_rows, 0);
    /* Released before its entry was taken. */
    gnii_early_released(&early, 7, 1);
    gnii_early_taken(&early, 7, 1);
    assert_int_equal(early.n_rows, 0);
}

static void test_random_changes_are_those_of_a_plain_table(void **state)
{
    struct emu_random random = seeded(15);
    static int table[EVENTS][TAGS];
    uint32_t n_rows = 0;

    (void)state;
    for (unsigned i = 0; i < 200000; i++) {
        uint32_t event = (uint32_t)emu_random_below(&random, EVENTS);
        uint16_t tag = (uint16_t)(1 + emu_random_below(&random, TAGS));
        int *balance = &table[event][tag - 1];

        switch (emu_random_below(&random, 5)) {
        case 0:
        case 1:
            gnii_early_taken(&early, event * 0x01000000, tag);
            ++*balance;
            break;
        case 2:
            gnii_early_put_back(&early, event * 0x01000000, tag);
            --*balance;
            break;
        case 3:
            gnii_early_released(&early, event * 0x01000000, tag);
            --*balance;
            break;
        default:
            gnii_early_forget(&early, event * 0x01000000, tag);
            *balance = 0;
            break;
        }
        event = (uint32_t)emu_random_below(&random, EVENTS);
        assert_int_equal(gnii_early_is_taken(&early, event * 0x01000000, tag), table[event][tag - 1] > 0);
    }
    for (unsigned event = 0; event < EVENTS; event++) {
        for (unsigned tag = 0; tag < TAGS; tag++)
            n_rows += table[event][tag] != 0;
    }
    assert_int_equal(early.n_rows, n_rows);
}

static void test_what_never_ends_does_not_grow_without_end(void **state)
{
    (void)state;
    for (uint32_t event = 0; event < 1u << 20; event++) {
        gnii_early_taken(&early, event, 5);
        assert_true(gnii_early_is_taken(&early, event, 5));
        assert_true(early.room <= 1u << 17);
    }
}

#define early_test(name) cmocka_unit_test_teardown(name, stop)

int main(void)
{
    const struct CMUnitTest tests[] = {
        early_test(test_tag_is_never_0),
        early_test(test_balance_tells_entries_that_were_taken_and_whose_messages_wait),
        early_test(test_random_changes_are_those_of_a_plain_table),
        early_test(test_what_never_ends_does_not_grow_without_end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
