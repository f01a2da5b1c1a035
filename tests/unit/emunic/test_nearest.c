/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The word that was meant.
 */
#include "emunic/base/nearest.h"

#include <limits.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static const char *find(const char *word, unsigned distance_max)
{
    static const char *const words[] = { "ranks", "ppn", "machine", "place", "paths", "links", "peer-timeout" };
    struct emu_nearest nearest = emu_nearest_to(word, distance_max);

    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        emu_nearest_offer(&nearest, words[i], words[i]);
    return nearest.answer ? nearest.answer : "";
}

static void test_distance_counts_letters_changed_added_and_dropped(void **state)
{
    (void)state;
    assert_int_equal(emu_word_distance("", ""), 0);
    assert_int_equal(emu_word_distance("", "abc"), 3);
    assert_int_equal(emu_word_distance("abc", ""), 3);
    assert_int_equal(emu_word_distance("kitten", "sitting"), 3);
    assert_int_equal(emu_word_distance("sitting", "kitten"), 3);
    assert_int_equal(emu_word_distance("flaw", "lawn"), 2);
    assert_int_equal(emu_word_distance("status", "status"), 0);
}

static void test_a_very_long_word_is_far_from_all(void **state)
{
    char word[4096];

    (void)state;
    memset(word, 'a', sizeof(word) - 1);
    word[sizeof(word) - 1] = '\0';
    assert_int_equal(emu_word_distance(word, "a"), UINT_MAX);
    assert_int_equal(emu_word_distance("a", word), UINT_MAX);
    assert_string_equal(find(word, 2), "");
}

static void test_a_typo_finds_its_word(void **state)
{
    (void)state;
    assert_string_equal(find("mahcine", 2), "machine");
    assert_string_equal(find("rank", 2), "ranks");
    assert_string_equal(find("linkss", 2), "links");
    assert_string_equal(find("pnn", 2), "ppn");
}

static void test_a_beginning_finds_its_word(void **state)
{
    (void)state;
    assert_string_equal(find("peer", 2), "peer-timeout");
    assert_string_equal(find("mach", 2), "machine");
    assert_string_equal(find("pe", 2), "");
}

static void test_what_is_like_nothing_finds_nothing(void **state)
{
    (void)state;
    assert_string_equal(find("", 2), "");
    assert_string_equal(find("x", 2), "");
    assert_string_equal(find("nid", 2), "");
    assert_string_equal(find("colour", 2), "");
    assert_string_equal(find("mahcinery", 2), "");
}

static void test_the_nearest_of_several_wins_and_the_first_of_equals(void **state)
{
    (void)state;
    assert_string_equal(find("pathe", 3), "paths");
    assert_string_equal(find("lanks", 3), "ranks");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_distance_counts_letters_changed_added_and_dropped),
        cmocka_unit_test(test_a_very_long_word_is_far_from_all),
        cmocka_unit_test(test_a_typo_finds_its_word),
        cmocka_unit_test(test_a_beginning_finds_its_word),
        cmocka_unit_test(test_what_is_like_nothing_finds_nothing),
        cmocka_unit_test(test_the_nearest_of_several_wins_and_the_first_of_equals),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
