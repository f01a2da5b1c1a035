/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tables of options: what each kind of row takes and refuses, and the help that is made from them.
 */
#include "emunic/cli/options.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "emunic/cli/cli.h"
#include "tests/unit/emunic/capture.h"

enum { ARGS_MAX = 8 };

struct target {
    bool is_set;
    bool is_unset;
    const char *text;
    const char *checked;
    uint16_t small;
    uint32_t number;
    uint64_t large;
    bool word_of_two;
    uint32_t word_of_three;
    char called_text[16];
};

static const char *const two[] = { "slow", "fast", NULL };
static const char *const three[] = { "red", "green", "blue", NULL };

static bool is_good(const char *text)
{
    return strcmp(text, "good") == 0;
}

static int take(void *target, const char *name, const char *text)
{
    struct target *t = target;

    if (strcmp(text, "wrong") == 0)
        return emu_cli_usage("test", "%s: '%s' is wrong", name, text);
    snprintf(t->called_text, sizeof(t->called_text), "%s %s", name, text);
    return EMU_EXIT_DONE;
}

static const struct emu_option options[] = {
    { "set", 's', NULL, "sets", EMU_OPTION_SET(struct target, is_set) },
    { "unset", 0, NULL, "unsets", EMU_OPTION_UNSET(struct target, is_unset) },
    { "text", 't', "TEXT", "a text", EMU_OPTION_TEXT(struct target, text) },
    { "checked", 0, "TEXT", "one text", EMU_OPTION_TEXT(struct target, checked), .is_valid = is_good,
      .refusal = "not good" },
    { "small", 0, "N", "16 bits", EMU_OPTION_NUMBER(struct target, small, 0, UINT16_MAX) },
    { "number", 'n', "N", "32 bits", EMU_OPTION_NUMBER(struct target, number, 3, 7), .unit = "things" },
    { "same", 0, "N", NULL, EMU_OPTION_NUMBER(struct target, number, 3, 7) },
    { "large", 0, "N", "64 bits", EMU_OPTION_NUMBER(struct target, large, 0, UINT64_MAX) },
    { "two", 0, "WORD", "one of two", EMU_OPTION_WORD(struct target, word_of_two, two) },
    { "three", 0, "WORD", "one of three", EMU_OPTION_WORD(struct target, word_of_three, three) },
    { NULL, 'x', "VALUE[:AND[:A[:LONG[:LABEL]]]]",
      "a call with a sentence that goes on and on until it reaches the end of the line, where it is broken between two "
      "words and not within one",
      EMU_OPTION_CALL(take) },
    { 0 },
};

static struct emu_command command = {
    .verb = "test",
    .usage = "emunic test [OPTION]...\nemunic test again",
    .about = "Tests.\n",
    .options = options,
    .after = "Example:\n  emunic test\n",
};

static struct target target;
static char said[1024];
static int first;

/* Parses the words; what was said is in `said`. */
static int parse(enum emu_word_place words, char **argv)
{
    struct capture c;
    int argc = 0;
    int answer;

    while (argv[argc])
        argc++;
    target = (struct target){ .is_unset = true };
    command.words = words;
    optind = 0; /* getopt() starts again */
    assert_int_equal(capture_start(&c), 0);
    answer = emu_options_parse(&command, argc, argv, &target, &first);
    capture_end(&c, said, sizeof(said));
    return answer;
}

#define PARSE(words, ...) parse(words, (char *[ARGS_MAX]){ "test", __VA_ARGS__ })

static void refused(char *name, char *value, const char *why)
{
    char line[256];

    assert_int_equal(PARSE(EMU_WORDS_NONE, name, value), EMU_EXIT_USAGE);
    snprintf(line, sizeof(line), "emunic test: %s: '%s' is %s; try --help\n", name, value, why);
    assert_string_equal(said, line);
}

static void test_no_option_leaves_the_defaults(void **state)
{
    (void)state;
    assert_int_equal(PARSE(EMU_WORDS_NONE, NULL), EMU_PROCEED);
    assert_false(target.is_set);
    assert_true(target.is_unset);
    assert_null(target.text);
    assert_string_equal(said, "");
}

static void test_each_kind_takes_its_value(void **state)
{
    (void)state;
    assert_int_equal(PARSE(EMU_WORDS_NONE, "--set", "--unset", "--text", "a b", "--small=65535"), EMU_PROCEED);
    assert_true(target.is_set);
    assert_false(target.is_unset);
    assert_string_equal(target.text, "a b");
    assert_int_equal(target.small, 65535);
    assert_int_equal(PARSE(EMU_WORDS_NONE, "-n3", "--large", "18446744073709551615", "--checked=good"), EMU_PROCEED);
    assert_int_equal(target.number, 3);
    assert_true(target.large == UINT64_MAX);
    assert_string_equal(target.checked, "good");
    assert_int_equal(PARSE(EMU_WORDS_NONE, "--same", "7", "--two", "fast", "--three", "blue"), EMU_PROCEED);
    assert_int_equal(target.number, 7);
    assert_true(target.word_of_two);
    assert_int_equal(target.word_of_three, 2);
}

static void test_a_call_is_told_the_option_as_it_was_written(void **state)
{
    (void)state;
    assert_int_equal(PARSE(EMU_WORDS_NONE, "-x", "value"), EMU_PROCEED);
    assert_string_equal(target.called_text, "-x value");
    assert_int_equal(PARSE(EMU_WORDS_NONE, "-x", "wrong"), EMU_EXIT_USAGE);
    assert_string_equal(said, "emunic test: -x: 'wrong' is wrong; try --help\n");
}

static void test_a_wrong_value_gets_one_line_that_tells_the_right_ones(void **state)
{
    (void)state;
    refused("--number", "2", "not a number of things from 3 to 7");
    refused("-n", "8", "not a number of things from 3 to 7");
    refused("--same", "x", "not a number from 3 to 7");
    refused("--small", "65536", "not a number from 0 to 65535");
    refused("--large", "-1", "not a number from 0 to 18446744073709551615");
    refused("--checked", "bad", "not good");
    refused("--two", "medium", "neither slow nor fast");
    refused("--three", "grey", "none of red, green, blue");
    refused("--three", "", "none of red, green, blue");
}

static void test_a_wrong_option_is_named(void **state)
{
    char nmber[] = "--nmber";

    (void)state;
    assert_int_equal(PARSE(EMU_WORDS_NONE, nmber, "3"), EMU_EXIT_USAGE);
    assert_string_equal(said, "emunic test: --nmber: no such option (did you mean --number?); try --help\n");
    assert_int_equal(PARSE(EMU_WORDS_NONE, "-sz"), EMU_EXIT_USAGE);
    assert_string_equal(said, "emunic test: -z: no such option; try --help\n");
    assert_int_equal(PARSE(EMU_WORDS_NONE, "--number"), EMU_EXIT_USAGE);
    assert_string_equal(said, "emunic test: --number: needs a value; try --help\n");
    assert_int_equal(PARSE(EMU_WORDS_NONE, "--set=1"), EMU_EXIT_USAGE);
    assert_string_equal(said, "emunic test: --set=1: takes no value; try --help\n");
}

static void test_words_stand_where_the_command_says(void **state)
{
    (void)state;
    assert_int_equal(PARSE(EMU_WORDS_NONE, "-s", "word"), EMU_EXIT_USAGE);
    assert_string_equal(said, "emunic test: 'word': takes options only; try --help\n");
    assert_int_equal(PARSE(EMU_WORDS_LAST, "-s", "word", "--unset"), EMU_PROCEED);
    assert_int_equal(first, 2);
    assert_true(target.is_unset);
    assert_int_equal(PARSE(EMU_WORDS_ANYWHERE, "-s", "word", "--unset"), EMU_PROCEED);
    assert_int_equal(first, 3);
    assert_false(target.is_unset);
}

static void test_help_has_a_line_for_each_row(void **state)
{
    char *text = NULL;
    size_t len = 0;
    FILE *out = open_memstream(&text, &len);

    (void)state;
    assert_non_null(out);
    emu_options_print_help(&command, out);
    fclose(out);
    assert_string_equal(text,
                        "usage: emunic test [OPTION]...\n"
                        "       emunic test again\n"
                        "\n"
                        "Tests.\n"
                        "\n"
                        "  -s, --set           sets\n"
                        "      --unset         unsets\n"
                        "  -t, --text TEXT     a text\n"
                        "      --checked TEXT  one text\n"
                        "      --small N       16 bits\n"
                        "  -n, --number N      32 bits\n"
                        "      --large N       64 bits\n"
                        "      --two WORD      one of two\n"
                        "      --three WORD    one of three\n"
                        "  -x VALUE[:AND[:A[:LONG[:LABEL]]]]\n"
                        "                      a call with a sentence that goes on and on until it reaches the end "
                        "of the line, where it\n"
                        "                      is broken between two words and not within one\n"
                        "  -h, --help          this text\n"
                        "\n"
                        "Example:\n"
                        "  emunic test\n");
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_no_option_leaves_the_defaults),
        cmocka_unit_test(test_each_kind_takes_its_value),
        cmocka_unit_test(test_a_call_is_told_the_option_as_it_was_written),
        cmocka_unit_test(test_a_wrong_value_gets_one_line_that_tells_the_right_ones),
        cmocka_unit_test(test_a_wrong_option_is_named),
        cmocka_unit_test(test_words_stand_where_the_command_says),
        cmocka_unit_test(test_help_has_a_line_for_each_row),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
