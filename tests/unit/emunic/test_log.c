/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Log lines: level, shape, one line per message, and the limit for what a client can provoke.
 */
#include "emunic/base/log.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "emunic/base/clock.h"
#include "tests/unit/emunic/capture.h"

static char text[65536];

/* What `emu_log(level, "hello")` says after EMUNIC_LOG=wanted and the given fallback. */
static const char *said(const char *wanted, enum emu_log_level fallback, enum emu_log_level level)
{
    struct capture c;

    if (wanted)
        setenv("EMUNIC_LOG", wanted, 1);
    else
        unsetenv("EMUNIC_LOG");
    emu_log_init("someone", fallback);
    assert_int_equal(capture_start(&c), 0);
    emu_log(level, "hello %d", 7);
    capture_end(&c, text, sizeof(text));
    return text;
}

static int quiet(void **state)
{
    (void)state;
    unsetenv("EMUNIC_LOG");
    return 0;
}

static void test_line_has_name_process_level_and_text(void **state)
{
    char expected[100];

    (void)state;
    snprintf(expected, sizeof(expected), "someone[%d]: warn: hello 7\n", (int)getpid());
    assert_string_equal(said(NULL, EMU_LOG_WARN, EMU_LOG_WARN), expected);
}

static void test_level_of_the_program_decides(void **state)
{
    (void)state;
    for (int fallback = EMU_LOG_NONE; fallback <= EMU_LOG_TRACE; fallback++) {
        for (int level = EMU_LOG_ERROR; level <= EMU_LOG_TRACE; level++)
            assert_int_equal(said(NULL, (enum emu_log_level)fallback, (enum emu_log_level)level)[0] != '\0',
                             level <= fallback);
    }
}

static void test_environment_beats_the_program(void **state)
{
    static const char *const names[] = { "none", "error", "warn", "info", "debug", "trace" };

    (void)state;
    for (int i = EMU_LOG_NONE; i <= EMU_LOG_TRACE; i++) {
        for (int level = EMU_LOG_ERROR; level <= EMU_LOG_TRACE; level++) {
            assert_int_equal(said(names[i], EMU_LOG_NONE, (enum emu_log_level)level)[0] != '\0', level <= i);
            assert_int_equal(said(names[i], EMU_LOG_TRACE, (enum emu_log_level)level)[0] != '\0', level <= i);
        }
    }
}

static void test_unknown_level_leaves_the_programs_own(void **state)
{
    (void)state;
    assert_int_not_equal(said("loud", EMU_LOG_INFO, EMU_LOG_INFO)[0], '\0');
    assert_int_equal(said("loud", EMU_LOG_INFO, EMU_LOG_DEBUG)[0], '\0');
}

static void test_long_message_is_cut_but_still_one_line(void **state)
{
    char message[5000];
    struct capture c;
    size_t len;

    (void)state;
    memset(message, 'x', sizeof(message) - 1);
    message[sizeof(message) - 1] = '\0';
    emu_log_init("someone", EMU_LOG_ERROR);
    assert_int_equal(capture_start(&c), 0);
    emu_log(EMU_LOG_ERROR, "%s", message);
    len = capture_end(&c, text, sizeof(text));
    assert_in_range(len, 900, 1024);
    assert_int_equal(count_lines(text), 1);
    assert_int_equal(text[len - 1], '\n');
}

#define THREADS 4
#define LINES   100

static void *talk(void *arg)
{
    for (int i = 0; i < LINES; i++)
        emu_log(EMU_LOG_ERROR, "%s", (const char *)arg);
    return NULL;
}

static void test_lines_of_several_threads_do_not_mix(void **state)
{
    static char words[THREADS][41];
    pthread_t threads[THREADS];
    struct capture c;
    unsigned n = 0;

    (void)state;
    emu_log_init("someone", EMU_LOG_ERROR);
    assert_int_equal(capture_start(&c), 0);
    for (int i = 0; i < THREADS; i++) {
        memset(words[i], 'a' + i, 40);
        pthread_create(&threads[i], NULL, talk, words[i]);
    }
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    capture_end(&c, text, sizeof(text));
    for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n"), n++) {
        const char *word = strstr(line, "error: ");

        assert_non_null(word);
        assert_in_range(word[7], 'a', 'a' + THREADS - 1);
        assert_string_equal(word + 7, words[word[7] - 'a']);
    }
    assert_int_equal(n, THREADS * LINES);
}

/* ---- limit ---- */

static void test_ten_lines_a_second_pass_and_the_rest_is_counted(void **state)
{
    struct emu_log_rate rate = { .window_start_ns = emu_clock_ns() };
    uint32_t held_back = 77;
    unsigned n_passed = 0;

    (void)state;
    for (unsigned i = 0; i < 25; i++) {
        rate.window_start_ns = emu_clock_ns(); /* however slow this machine is: one second */
        n_passed += emu_log_rate_allows(&rate, &held_back);
    }
    assert_int_equal(n_passed, 10);
    assert_int_equal(held_back, 0);
    rate.window_start_ns -= 1000000000ull;
    assert_true(emu_log_rate_allows(&rate, &held_back));
    assert_int_equal(held_back, 15);
}

static void test_count_of_held_back_lines_is_told_once(void **state)
{
    struct emu_log_rate rate = { .window_start_ns = emu_clock_ns(), .in_window = 10 };
    uint32_t held_back = 77;

    (void)state;
    rate.window_start_ns = emu_clock_ns();
    assert_false(emu_log_rate_allows(&rate, &held_back));
    assert_int_equal(held_back, 77);
    rate.window_start_ns -= 1000000000ull;
    assert_true(emu_log_rate_allows(&rate, &held_back));
    assert_int_equal(held_back, 1);
    rate.window_start_ns -= 1000000000ull;
    assert_true(emu_log_rate_allows(&rate, &held_back));
    assert_int_equal(held_back, 0);
}

static void test_fresh_limit_lets_the_first_line_pass(void **state)
{
    struct emu_log_rate rate = { 0 };
    uint32_t held_back = 77;

    (void)state;
    assert_true(emu_log_rate_allows(&rate, &held_back));
    assert_int_equal(held_back, 0);
}

static void test_limited_lines_tell_how_many_were_held_back(void **state)
{
    struct emu_log_rate rate = { .window_start_ns = emu_clock_ns(), .in_window = 9 };
    struct capture c;
    char expected[200];

    (void)state;
    emu_log_init("someone", EMU_LOG_WARN);
    assert_int_equal(capture_start(&c), 0);
    for (unsigned i = 0; i < 4; i++) {
        rate.window_start_ns = emu_clock_ns();
        emu_log_limited(&rate, EMU_LOG_WARN, "line %u", i);
    }
    rate.window_start_ns -= 1000000000ull;
    emu_log_limited(&rate, EMU_LOG_INFO, "not on, not counted");
    emu_log_limited(&rate, EMU_LOG_WARN, "line %u", 4u);
    capture_end(&c, text, sizeof(text));
    snprintf(expected, sizeof(expected),
             "someone[%d]: warn: line 0\nsomeone[%d]: warn: (3 such lines held back) line 4\n", (int)getpid(),
             (int)getpid());
    assert_string_equal(text, expected);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_line_has_name_process_level_and_text, quiet),
        cmocka_unit_test_setup(test_level_of_the_program_decides, quiet),
        cmocka_unit_test_setup(test_environment_beats_the_program, quiet),
        cmocka_unit_test_setup(test_unknown_level_leaves_the_programs_own, quiet),
        cmocka_unit_test_setup(test_long_message_is_cut_but_still_one_line, quiet),
        cmocka_unit_test_setup(test_lines_of_several_threads_do_not_mix, quiet),
        cmocka_unit_test_setup(test_ten_lines_a_second_pass_and_the_rest_is_counted, quiet),
        cmocka_unit_test_setup(test_count_of_held_back_lines_is_told_once, quiet),
        cmocka_unit_test_setup(test_fresh_limit_lets_the_first_line_pass, quiet),
        cmocka_unit_test_setup(test_limited_lines_tell_how_many_were_held_back, quiet),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
