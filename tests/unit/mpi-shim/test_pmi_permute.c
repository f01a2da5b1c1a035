/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The shuffled gather order of PMI's debug mode.
 */
#include "mpi-shim/pmi/src/permute.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

enum { MAX = 64 };

static void test_order_holds_every_rank_once(void **state)
{
    int order[MAX];

    (void)state;
    for (int n = 1; n <= MAX; n++) {
        bool is_seen[MAX] = { false };

        pmii_permute(7, n, order);
        for (int i = 0; i < n; i++) {
            assert_in_range(order[i], 0, n - 1);
            assert_false(is_seen[order[i]]);
            is_seen[order[i]] = true;
        }
    }
}

static void test_same_seed_gives_the_same_order(void **state)
{
    int a[MAX], b[MAX];

    (void)state;
    pmii_permute(99, MAX, a);
    pmii_permute(99, MAX, b);
    assert_memory_equal(a, b, sizeof(a));
}

static void test_other_seed_gives_another_order(void **state)
{
    int a[MAX], b[MAX];

    (void)state;
    pmii_permute(1, MAX, a);
    pmii_permute(2, MAX, b);
    assert_memory_not_equal(a, b, sizeof(a));
}

static void test_order_is_never_rank_order(void **state)
{
    int order[MAX], ranks[MAX];

    (void)state;
    for (int i = 0; i < MAX; i++)
        ranks[i] = i;
    for (int n = 2; n <= 4; n++) {
        for (uint64_t seed = 0; seed < 1000; seed++) {
            pmii_permute(seed, n, order);
            assert_memory_not_equal(order, ranks, (size_t)n * sizeof(int));
        }
    }
}

static void test_one_rank_stays_where_it_is(void **state)
{
    int order[1] = { -1 };

    (void)state;
    pmii_permute(5, 1, order);
    assert_int_equal(order[0], 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_order_holds_every_rank_once),    cmocka_unit_test(test_same_seed_gives_the_same_order),
        cmocka_unit_test(test_other_seed_gives_another_order), cmocka_unit_test(test_order_is_never_rank_order),
        cmocka_unit_test(test_one_rank_stays_where_it_is),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
