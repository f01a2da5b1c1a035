/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The pure rules of the PMI substitute: nid lists, process mapping, host names, XC coordinates.
 */
#include "mpi-shim/pmi/src/nidmap.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define COUNT_OF(a) (sizeof(a) / sizeof((a)[0]))

static void expect_nids(const char *text, const int *expected, int n_expected)
{
    int *nids;
    int n;

    assert_int_equal(pmii_nids_parse(text, &nids, &n), 0);
    assert_int_equal(n, n_expected);
    assert_memory_equal(nids, expected, (size_t)n * sizeof(*nids));
    free(nids);
}

static void test_nid_list_gives_one_nid_per_item(void **state)
{
    (void)state;
    expect_nids("7", (const int[]){ 7 }, 1);
    expect_nids("3,1,2", (const int[]){ 3, 1, 2 }, 3);
}

static void test_nid_list_repeats_a_counted_item(void **state)
{
    (void)state;
    expect_nids("0*2,5*2,7", (const int[]){ 0, 0, 5, 5, 7 }, 5);
}

static void test_nid_list_allows_blanks_between_items(void **state)
{
    (void)state;
    expect_nids(" 1 * 2 , 4 ", (const int[]){ 1, 1, 4 }, 3);
}

static void test_nid_list_refuses_everything_else(void **state)
{
    static const char *const wrong[] = {
        "",    ",",    "1,", ",1",  "1,,2",  "a",    "1x",         "-1",         "1*",
        "1*0", "1*-2", "*2", "1 2", "1*2*3", "0x10", "2147483648", "1*16777217", "1*16777216,1",
    };
    int *nids = NULL;
    int n = -1;

    (void)state;
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        if (pmii_nids_parse(wrong[i], &nids, &n) != -EINVAL)
            fail_msg("'%s' was accepted", wrong[i]);
    }
    assert_null(nids);
    assert_int_equal(n, -1);
}

static void test_nid_list_holds_a_large_machine(void **state)
{
    int *nids;
    int n;

    (void)state;
    assert_int_equal(pmii_nids_parse("9*16777216", &nids, &n), 0);
    assert_int_equal(n, 16777216);
    assert_int_equal(nids[n - 1], 9);
    free(nids);
}

static void test_count_list_takes_blanks_or_commas(void **state)
{
    static const char *const texts[] = { "1 2 3", "1,2,3", " 1  2,3 " };
    int *counts;
    int n;

    (void)state;
    for (size_t i = 0; i < COUNT_OF(texts); i++) {
        assert_int_equal(pmii_counts_parse(texts[i], &counts, &n), 0);
        assert_int_equal(n, 3);
        assert_memory_equal(counts, ((const int[]){ 1, 2, 3 }), 3 * sizeof(int));
        free(counts);
    }
}

static void test_count_list_refuses_everything_else(void **state)
{
    static const char *const wrong[] = { "", " ", "1,", ",1", "1,,2", "x", "1x" };
    int *counts;
    int n;

    (void)state;
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        if (pmii_counts_parse(wrong[i], &counts, &n) != -EINVAL)
            fail_msg("'%s' was accepted", wrong[i]);
    }
}

static void test_node_numbers_follow_first_appearance(void **state)
{
    static const int nids[] = { 40, 7, 40, 9, 7, 1 };
    static const int expected[] = { 0, 1, 0, 2, 1, 3 };
    int nodes[COUNT_OF(nids)];

    (void)state;
    assert_int_equal(pmii_node_numbers(nids, COUNT_OF(nids), nodes), 0);
    assert_memory_equal(nodes, expected, sizeof(expected));
}

static void expect_mapping(const int *nids, int n_ranks, const char *expected)
{
    char *text;

    assert_int_equal(pmii_mapping_text(nids, n_ranks, &text), 0);
    assert_string_equal(text, expected);
    free(text);
}

static void test_mapping_of_one_node_is_one_block(void **state)
{
    (void)state;
    expect_mapping((const int[]){ 12, 12, 12 }, 3, "(vector,(0,1,3))");
    expect_mapping((const int[]){ 12 }, 1, "(vector,(0,1,1))");
}

static void test_mapping_joins_equal_neighbours(void **state)
{
    (void)state;
    expect_mapping((const int[]){ 0, 0, 5, 5, 7 }, 5, "(vector,(0,2,2),(2,1,1))");
}

static void test_mapping_of_round_robin_starts_again_at_the_first_node(void **state)
{
    (void)state;
    expect_mapping((const int[]){ 1, 2, 3, 1, 2, 3 }, 6, "(vector,(0,3,1),(0,3,1))");
}

/* The inverse of the mapping: what a client does with the text. */
static int expand_mapping(const char *text, int *nodes, int room)
{
    int n_ranks = 0, b, n, c, used;

    assert_int_equal(strncmp(text, "(vector", 7), 0);
    text += 7;
    while (sscanf(text, ",(%d,%d,%d)%n", &b, &n, &c, &used) == 3) {
        for (int node = b; node < b + n; node++) {
            for (int i = 0; i < c; i++) {
                assert_true(n_ranks < room);
                nodes[n_ranks++] = node;
            }
        }
        text += used;
    }
    assert_string_equal(text, ")");
    return n_ranks;
}

static void test_mapping_of_any_placement_reads_back(void **state)
{
    const char *seed_text = getenv("EMU_TEST_SEED");
    unsigned seed = seed_text != NULL ? (unsigned)strtoul(seed_text, NULL, 0) : 20u;
    enum { MAX = 200 };
    int nids[MAX], nodes[MAX], read_back[MAX];

    (void)state;
    print_message("# EMU_TEST_SEED=%u\n", seed);
    for (int run = 0; run < 200; run++) {
        int n = 1 + rand_r(&seed) % MAX;
        int n_nids = 1 + rand_r(&seed) % 9;
        char *text;

        for (int i = 0; i < n; i++)
            nids[i] = i > 0 && rand_r(&seed) % 2 ? nids[i - 1] : rand_r(&seed) % n_nids * 17;
        assert_int_equal(pmii_node_numbers(nids, n, nodes), 0);
        assert_int_equal(pmii_mapping_text(nids, n, &text), 0);
        assert_int_equal(expand_mapping(text, read_back, MAX), n);
        assert_memory_equal(read_back, nodes, (size_t)n * sizeof(int));
        free(text);
    }
}

static void test_host_name_gives_its_nid(void **state)
{
    int nid = -1;

    (void)state;
    assert_int_equal(pmii_host_nid("nid00042", &nid), 0);
    assert_int_equal(nid, 42);
    assert_int_equal(pmii_host_nid("nid12345.local", &nid), 0);
    assert_int_equal(nid, 12345);
}

static void test_other_host_names_have_no_nid(void **state)
{
    static const char *const names[] = { "", "nid", "node7", "nidx", "nid7x", "nid-1", "nid99999999999" };
    int nid = -1;

    (void)state;
    for (size_t i = 0; i < COUNT_OF(names); i++)
        assert_int_equal(pmii_host_nid(names[i], &nid), -EINVAL);
    assert_int_equal(nid, -1);
}

/* Published examples of a 12-column system. */
static void test_xc_coordinates_agree_with_known_nodes(void **state)
{
    unsigned xyz[3];

    (void)state;
    pmii_xc_coordinate(2305, 12, xyz); /* c0-1c0s0n1 */
    assert_memory_equal(xyz, ((const unsigned[]){ 6, 0, 0 }), sizeof(xyz));
    pmii_xc_coordinate(2313, 12, xyz); /* c0-1c0s2n1 */
    assert_memory_equal(xyz, ((const unsigned[]){ 6, 0, 2 }), sizeof(xyz));
    pmii_xc_coordinate(13055, 12, xyz); /* c7-5c2s15n3 */
    assert_memory_equal(xyz, ((const unsigned[]){ 33, 5, 15 }), sizeof(xyz));
}

static void test_four_nids_share_a_coordinate(void **state)
{
    unsigned first[3], last[3], next[3];

    (void)state;
    pmii_xc_coordinate(384, 2, first);
    pmii_xc_coordinate(387, 2, last);
    pmii_xc_coordinate(388, 2, next);
    assert_memory_equal(first, last, sizeof(first));
    assert_memory_not_equal(first, next, sizeof(first));
    assert_int_equal(first[0], 1); /* 384 nodes per group */
}

static void test_one_column_keeps_rows_apart(void **state)
{
    unsigned xyz[3];

    (void)state;
    pmii_xc_coordinate(192, 1, xyz);
    assert_memory_equal(xyz, ((const unsigned[]){ 1, 0, 0 }), sizeof(xyz));
}

static void test_number_is_decimal_and_nothing_else(void **state)
{
    int value = -1;

    (void)state;
    assert_true(pmii_parse_int("2147483647", &value));
    assert_int_equal(value, 2147483647);
    assert_false(pmii_parse_int(NULL, &value));
    assert_false(pmii_parse_int("", &value));
    assert_false(pmii_parse_int("1 ", &value));
    assert_false(pmii_parse_int("-1", &value));
    assert_false(pmii_parse_int("2147483648", &value));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nid_list_gives_one_nid_per_item),
        cmocka_unit_test(test_nid_list_repeats_a_counted_item),
        cmocka_unit_test(test_nid_list_allows_blanks_between_items),
        cmocka_unit_test(test_nid_list_refuses_everything_else),
        cmocka_unit_test(test_nid_list_holds_a_large_machine),
        cmocka_unit_test(test_count_list_takes_blanks_or_commas),
        cmocka_unit_test(test_count_list_refuses_everything_else),
        cmocka_unit_test(test_node_numbers_follow_first_appearance),
        cmocka_unit_test(test_mapping_of_one_node_is_one_block),
        cmocka_unit_test(test_mapping_joins_equal_neighbours),
        cmocka_unit_test(test_mapping_of_round_robin_starts_again_at_the_first_node),
        cmocka_unit_test(test_mapping_of_any_placement_reads_back),
        cmocka_unit_test(test_host_name_gives_its_nid),
        cmocka_unit_test(test_other_host_names_have_no_nid),
        cmocka_unit_test(test_xc_coordinates_agree_with_known_nodes),
        cmocka_unit_test(test_four_nids_share_a_coordinate),
        cmocka_unit_test(test_one_column_keeps_rows_apart),
        cmocka_unit_test(test_number_is_decimal_and_nothing_else),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
