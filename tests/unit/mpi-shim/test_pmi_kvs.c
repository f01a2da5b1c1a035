/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The key-value table of PMI, and pairs as bytes.
 */
#include "mpi-shim/pmi/src/kvs.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static int make_table(void **state)
{
    static struct pmii_table table;

    memset(&table, 0, sizeof(table));
    *state = &table;
    return 0;
}

static int free_table(void **state)
{
    pmii_table_fini(*state);
    return 0;
}

static void test_empty_table_finds_nothing(void **state)
{
    assert_null(pmii_table_find(*state, "s", "k", PMII_ANY_RANK));
    assert_null(pmii_table_next(*state, "s", NULL));
    assert_int_equal(pmii_table_drop(*state, "s", NULL), 0);
}

static void test_second_put_of_a_rank_replaces(void **state)
{
    struct pmii_table *t = *state;

    assert_int_equal(pmii_table_put(t, "s", "k", 0, "old"), 0);
    assert_int_equal(pmii_table_put(t, "s", "k", 0, "newer"), 0);
    assert_string_equal(pmii_table_find(t, "s", "k", PMII_ANY_RANK)->value, "newer");
    assert_int_equal(t->n_pairs, 1);
}

static void test_spaces_are_separate(void **state)
{
    struct pmii_table *t = *state;

    assert_int_equal(pmii_table_put(t, "s", "k", 0, "1"), 0);
    assert_null(pmii_table_find(t, "t", "k", PMII_ANY_RANK));
}

static void test_any_rank_means_the_lowest(void **state)
{
    struct pmii_table *t = *state;

    assert_int_equal(pmii_table_put(t, "s", "k", 5, "five"), 0);
    assert_int_equal(pmii_table_put(t, "s", "k", 2, "two"), 0);
    assert_int_equal(pmii_table_put(t, "s", "k", 7, "seven"), 0);
    assert_string_equal(pmii_table_find(t, "s", "k", PMII_ANY_RANK)->value, "two");
}

static void test_preferred_rank_wins_if_it_has_the_key(void **state)
{
    struct pmii_table *t = *state;

    assert_int_equal(pmii_table_put(t, "s", "k", 2, "two"), 0);
    assert_int_equal(pmii_table_put(t, "s", "k", 7, "seven"), 0);
    assert_string_equal(pmii_table_find(t, "s", "k", 7)->value, "seven");
    assert_string_equal(pmii_table_find(t, "s", "k", 3)->value, "two");
}

static void test_thousands_of_pairs_are_found_and_walked_in_order(void **state)
{
    struct pmii_table *t = *state;
    const struct pmii_pair *pair = NULL;
    char key[16];

    for (int i = 0; i < 5000; i++) {
        snprintf(key, sizeof(key), "k%d", i);
        assert_int_equal(pmii_table_put(t, "s", key, i % 3, key), 0);
    }
    for (int i = 0; i < 5000; i++) {
        snprintf(key, sizeof(key), "k%d", i);
        assert_string_equal(pmii_table_find(t, "s", key, PMII_ANY_RANK)->value, key);
        pair = pmii_table_next(t, "s", pair);
        assert_string_equal(pair->key, key);
    }
    assert_null(pmii_table_next(t, "s", pair));
}

static void test_drop_forgets_one_key_or_all(void **state)
{
    struct pmii_table *t = *state;

    assert_int_equal(pmii_table_put(t, "s", "a", 0, "1"), 0);
    assert_int_equal(pmii_table_put(t, "s", "b", 0, "2"), 0);
    assert_int_equal(pmii_table_put(t, "t", "a", 0, "3"), 0);
    assert_int_equal(pmii_table_put(t, "s", "c", 0, "4"), 0);
    assert_int_equal(pmii_table_drop(t, "s", "c"), 1);
    assert_null(pmii_table_find(t, "s", "c", PMII_ANY_RANK));
    assert_int_equal(pmii_table_put(t, "s", "d", 0, "5"), 0); /* behind a dropped last pair */
    assert_int_equal(pmii_table_drop(t, "s", NULL), 3);
    assert_string_equal(pmii_table_find(t, "t", "a", PMII_ANY_RANK)->value, "3");
    assert_int_equal(t->n_pairs, 1);
    assert_ptr_equal(t->first, t->last);
}

static void test_parcel_reads_back(void **state)
{
    struct pmii_table *t = *state;
    struct pmii_parcel parcel = { 0 };

    assert_int_equal(pmii_parcel_add(&parcel, "s", "k", "v"), 0);
    assert_int_equal(pmii_parcel_add(&parcel, "s", "empty", ""), 0);
    assert_int_equal(pmii_parcel_add(&parcel, "t", "odd", "a=b;c/d\n\x7f\xe4"), 0);
    assert_int_equal(pmii_parcel_unpack(parcel.bytes, parcel.len_bytes, 4, t), 0);
    assert_string_equal(pmii_table_find(t, "s", "k", 4)->value, "v");
    assert_string_equal(pmii_table_find(t, "s", "empty", 4)->value, "");
    assert_string_equal(pmii_table_find(t, "t", "odd", 4)->value, "a=b;c/d\n\x7f\xe4");
    assert_int_equal(pmii_table_find(t, "s", "k", PMII_ANY_RANK)->rank, 4);
    pmii_parcel_fini(&parcel);
}

static void test_damaged_parcel_is_refused(void **state)
{
    struct pmii_table *t = *state;

    assert_int_equal(pmii_parcel_unpack("s\0k\0v", 5, 0, t), -EBADMSG); /* value without its NUL */
    assert_int_equal(pmii_parcel_unpack("s\0k", 4, 0, t), -EBADMSG);
    assert_int_equal(pmii_parcel_unpack("", 1, 0, t), -EBADMSG);
    assert_int_equal(t->n_pairs, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_empty_table_finds_nothing, make_table, free_table),
        cmocka_unit_test_setup_teardown(test_second_put_of_a_rank_replaces, make_table, free_table),
        cmocka_unit_test_setup_teardown(test_spaces_are_separate, make_table, free_table),
        cmocka_unit_test_setup_teardown(test_any_rank_means_the_lowest, make_table, free_table),
        cmocka_unit_test_setup_teardown(test_preferred_rank_wins_if_it_has_the_key, make_table, free_table),
        cmocka_unit_test_setup_teardown(test_thousands_of_pairs_are_found_and_walked_in_order, make_table, free_table),
        cmocka_unit_test_setup_teardown(test_drop_forgets_one_key_or_all, make_table, free_table),
        cmocka_unit_test_setup_teardown(test_parcel_reads_back, make_table, free_table),
        cmocka_unit_test_setup_teardown(test_damaged_parcel_is_refused, make_table, free_table),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
