/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Settings from the environment: defaults, values, refusals, and warnings about names that nobody reads.
 */
#include "emunic/base/settings.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "emunic/base/log.h"
#include "tests/unit/emunic/capture.h"

static struct emu_settings settings;
static char text[8192];

/* No EMUNIC_* variable is set. */
static int clear_environment(void **state)
{
    extern char **environ;
    char name[200];
    char **entry = environ;

    (void)state;
    while (*entry) {
        size_t len = strcspn(*entry, "=");

        if (strncmp(*entry, "EMUNIC_", 7) != 0 || len >= sizeof(name)) {
            entry++;
            continue;
        }
        memcpy(name, *entry, len);
        name[len] = '\0';
        unsetenv(name); /* moves the next one here */
    }
    emu_log_init("settings", EMU_LOG_WARN);
    memset(&settings, 0xee, sizeof(settings));
    return 0;
}

/* Reads the settings; what was said about them is in `text`. */
static void read_settings(void)
{
    struct capture c;

    assert_int_equal(capture_start(&c), 0);
    emu_settings_read(&settings);
    capture_end(&c, text, sizeof(text));
}

static void test_empty_environment_gives_every_default_in_silence(void **state)
{
    (void)state;
    read_settings();
#define IS_DEFAULT(field, variable, fallback, min, max, unit, meaning) assert_int_equal(settings.field, fallback);
    EMU_SETTINGS(IS_DEFAULT, EMU_SETTING_NO_TEXT)
    assert_string_equal(text, "");
}

static void test_every_setting_takes_its_smallest_and_largest_value(void **state)
{
    char number[32];

    (void)state;
#define TAKES(field, variable, fallback, min, max, unit, meaning)                                                      \
    snprintf(number, sizeof(number), "%llu", (unsigned long long)(min));                                               \
    setenv(variable, number, 1);                                                                                       \
    read_settings();                                                                                                   \
    assert_int_equal(settings.field, min);                                                                             \
    snprintf(number, sizeof(number), "%llu", (unsigned long long)(max));                                               \
    setenv(variable, number, 1);                                                                                       \
    read_settings();                                                                                                   \
    assert_int_equal(settings.field, max);                                                                             \
    assert_string_equal(text, "");
    EMU_SETTINGS(TAKES, EMU_SETTING_NO_TEXT)
}

static void test_every_default_lies_within_its_bounds(void **state)
{
    (void)state;
#define IS_WITHIN(field, variable, fallback, min, max, unit, meaning)                                                  \
    assert_true((uint64_t)(fallback) >= (uint64_t)(min) && (uint64_t)(fallback) <= (uint64_t)(max));
    EMU_SETTINGS(IS_WITHIN, EMU_SETTING_NO_TEXT)
}

static void test_value_out_of_bounds_is_refused_with_the_bounds(void **state)
{
    (void)state;
    setenv("EMUNIC_SLICE", "4095", 1);
    read_settings();
    assert_int_equal(settings.slice_bytes, 65536);
    assert_non_null(strstr(text, "EMUNIC_SLICE: '4095' is not a number from 4096 to 1073741824 bytes; using 65536"));
    setenv("EMUNIC_SLICE", "1073741825", 1);
    read_settings();
    assert_int_equal(settings.slice_bytes, 65536);
    assert_int_equal(count_lines(text), 1);
}

static void test_what_is_no_number_is_refused(void **state)
{
    static const char *const wrong[] = {
        "", " ", "many", "12x", "0x", "-1", "-18446744073709551615", "1e3", "1.5", "99999999999999999999999", "5 "
    };

    (void)state;
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        setenv("EMUNIC_SPIN", wrong[i], 1);
        read_settings();
        if (settings.spin_polls != 2000 || count_lines(text) != 1)
            fail_msg("'%s' gives %llu and '%s'", wrong[i], (unsigned long long)settings.spin_polls, text);
    }
}

static void test_minus_sign_behind_blanks_is_refused_too(void **state)
{
    (void)state;
    setenv("EMUNIC_SPIN", " -18446744073709551611", 1); /* would read as 5 */
    read_settings();
    assert_int_equal(settings.spin_polls, 2000);
    assert_int_equal(count_lines(text), 1);
}

static void test_hexadecimal_numbers_are_numbers(void **state)
{
    (void)state;
    setenv("EMUNIC_SPIN", "0x10", 1);
    read_settings();
    assert_int_equal(settings.spin_polls, 16);
    assert_string_equal(text, "");
}

static void test_misspelt_name_draws_a_warning_with_the_nearest(void **state)
{
    (void)state;
    setenv("EMUNIC_SPINN", "1", 1);
    read_settings();
    assert_non_null(strstr(text, "unknown variable EMUNIC_SPINN; did you mean EMUNIC_SPIN?\n"));
    assert_int_equal(count_lines(text), 1);
    assert_int_equal(settings.spin_polls, 2000);
}

static void test_misspelt_text_setting_is_noticed_too(void **state)
{
    (void)state;
    setenv("EMUNIC_SEVRER", "x", 1);
    read_settings();
    assert_non_null(strstr(text, "did you mean EMUNIC_SERVER?"));
}

static void test_name_like_no_other_draws_a_warning_without_a_guess(void **state)
{
    (void)state;
    setenv("EMUNIC_SOMETHING_QUITE_DIFFERENT", "1", 1);
    read_settings();
    assert_non_null(strstr(text, "unknown variable EMUNIC_SOMETHING_QUITE_DIFFERENT\n"));
    assert_int_equal(count_lines(text), 1);
}

static void test_name_of_any_length_is_noticed(void **state)
{
    char name[300] = "EMUNIC_";

    (void)state;
    memset(name + 7, 'X', sizeof(name) - 8);
    setenv(name, "1", 1);
    read_settings();
    unsetenv(name);
    assert_non_null(strstr(text, "unknown variable EMUNIC_XXXXXXXX"));
    assert_int_equal(count_lines(text), 1);
}

static void test_every_known_name_is_silent(void **state)
{
    (void)state;
#define SET_TEXT(variable, setter, fallback, meaning) setenv(variable, "1", 1);
    EMU_SETTINGS(EMU_SETTING_NO_NUMBER, SET_TEXT)
    read_settings();
    assert_string_equal(text, "");
}

static void test_the_table_has_every_variable_once(void **state)
{
    const struct emu_setting *row;

    (void)state;
    for (size_t i = 0; (row = emu_setting_at(i)); i++) {
        assert_true(row->is_number ? row->unit && !row->text : row->text && !row->unit);
        for (size_t k = 0; k < i; k++)
            assert_string_not_equal(row->variable, emu_setting_at(k)->variable);
    }
}

static void test_a_number_is_the_environments_only_if_it_is_one(void **state)
{
    const struct emu_setting *row = emu_setting_at(0);
    uint64_t number = 42;

    (void)state;
    assert_false(emu_setting_number(row, &number));
    setenv(row->variable, "many", 1);
    assert_false(emu_setting_number(row, &number));
    assert_int_equal(number, 42);
    setenv(row->variable, "7", 1);
    assert_true(emu_setting_number(row, &number));
    assert_int_equal(number, 7);
}

static void test_names_of_others_are_none_of_our_business(void **state)
{
    (void)state;
    setenv("EMUNICX", "1", 1);
    setenv("MY_EMUNIC_SPIN", "1", 1);
    read_settings();
    unsetenv("EMUNICX");
    unsetenv("MY_EMUNIC_SPIN");
    assert_string_equal(text, "");
}

#define UNIT(name) cmocka_unit_test_setup(name, clear_environment)

int main(void)
{
    const struct CMUnitTest tests[] = {
        UNIT(test_empty_environment_gives_every_default_in_silence),
        UNIT(test_every_setting_takes_its_smallest_and_largest_value),
        UNIT(test_every_default_lies_within_its_bounds),
        UNIT(test_value_out_of_bounds_is_refused_with_the_bounds),
        UNIT(test_what_is_no_number_is_refused),
        UNIT(test_minus_sign_behind_blanks_is_refused_too),
        UNIT(test_hexadecimal_numbers_are_numbers),
        UNIT(test_misspelt_name_draws_a_warning_with_the_nearest),
        UNIT(test_misspelt_text_setting_is_noticed_too),
        UNIT(test_name_like_no_other_draws_a_warning_without_a_guess),
        UNIT(test_name_of_any_length_is_noticed),
        UNIT(test_every_known_name_is_silent),
        UNIT(test_the_table_has_every_variable_once),
        UNIT(test_a_number_is_the_environments_only_if_it_is_one),
        UNIT(test_names_of_others_are_none_of_our_business),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
