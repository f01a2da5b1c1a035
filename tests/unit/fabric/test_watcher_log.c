/* SPDX-License-Identifier: BSD-3-Clause */
/* The network watcher's lines: the printed example, all times, and what is no line. */
#include "emunic/fabric/watcher_log.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "emunic/fabric/gemini.h"
#include "tests/unit/fabric/fixture.h"

static const char *const example[] = {
    "130325 15:51:00 c0-0c1s0g0l27 c0-0c1s1g0l17 1 Mode Exchanges",
    "130325 15:51:00 c0-0c1s0g0l27 c0-0c1s1g0l17 1 RX lanemask=3",
    "130325 15:51:00 c0-0c1s0g0l27 ***ERROR*** Gemini LCB lane(s) reinit failed",
    "130325 15:52:00 c0-0c1s1g0l17 c0-0c1s0g0l27 1 TX lanemask=3",
};

#define YEAR_2000      946684800 /* 1 January, 0 h, since 1970 */
#define EXAMPLE_TIME_S 417541860

static void test_lost_lanes_write_the_printed_lines_in_their_order(void **state)
{
    struct emu_machine *m = load("gemini");
    struct emu_watcher_line lines[4];
    uint32_t link, reverse;

    (void)state;
    assert_int_equal(emu_gemini_link_of_tile(m, "c0-0c1s0g0l27", &link), 0);
    assert_int_equal(emu_link_reverse(m, link, &reverse), 0);
    assert_int_equal(emu_watcher_lanes_lost(m, reverse, 3, EXAMPLE_TIME_S, lines), 0);
    for (size_t i = 0; i < 4; i++) {
        char text[EMU_WATCHER_LINE_MAX];

        assert_int_equal(emu_watcher_format(&lines[i], text, sizeof(text)), 0);
        assert_string_equal(text, example[i]);
    }
    assert_int_equal(emu_watcher_lanes_lost(m, reverse, 0, 0, lines), -EINVAL);
    assert_int_equal(emu_watcher_lanes_lost(m, reverse, 8, 0, lines), -EINVAL);
    assert_int_equal(emu_watcher_lanes_lost(m, 0, 3, 0, lines), -EINVAL);
    assert_int_equal(emu_watcher_lanes_lost(m, emu_machine_n_links(m), 3, 0, lines), -ERANGE);
    emu_machine_destroy(m);
}

/* Every mask and many times; the C library reads them. */
static void test_all_times_and_masks_are_written(void **state)
{
    struct emu_random random = seeded(5);

    (void)state;
    for (uint32_t i = 0; i < 20000; i++) {
        struct emu_watcher_line line = { .count = (uint32_t)emu_random_next(&random),
                                         .event = EMU_WATCHER_TX_LANEMASK };
        struct tm time = { 0 };
        char text[EMU_WATCHER_LINE_MAX], rest[EMU_WATCHER_LINE_MAX];
        const char *end;

        line.time_s = emu_random_below(&random, UINT64_C(36525) * 86400);
        line.lane_mask = i % 8;
        strcpy(line.link, "c24-7c2s7g1l57");
        strcpy(line.peer, "c22-7c2s7g1l00");
        assert_int_equal(emu_watcher_format(&line, text, sizeof(text)), 0);
        memmove(text + 2, text, strlen(text) + 1); /* two digits of a year are of this century */
        memcpy(text, "20", 2);
        end = strptime(text, "%Y%m%d %H:%M:%S", &time);
        assert_non_null(end);
        assert_int_equal(timegm(&time) - YEAR_2000, line.time_s);
        snprintf(rest, sizeof(rest), " %s %s %u TX lanemask=%u", line.link, line.peer, line.count, line.lane_mask);
        assert_string_equal(end, rest);
    }
}

static void test_what_no_line_can_say_is_not_written(void **state)
{
    struct emu_watcher_line line = { .event = EMU_WATCHER_RX_LANEMASK, .lane_mask = 3, .link = "a", .peer = "b" };
    char text[EMU_WATCHER_LINE_MAX];

    (void)state;
    assert_int_equal(emu_watcher_format(&line, text, 10), -ENOSPC);
    line.lane_mask = 8;
    assert_int_equal(emu_watcher_format(&line, text, sizeof(text)), -EINVAL);
    line.lane_mask = 0;
    line.peer[0] = '\0';
    assert_int_equal(emu_watcher_format(&line, text, sizeof(text)), -EINVAL);
    line.event = EMU_WATCHER_ERROR;
    assert_int_equal(emu_watcher_format(&line, text, sizeof(text)), -EINVAL);
    strcpy(line.text, "fine");
    assert_int_equal(emu_watcher_format(&line, text, sizeof(text)), 0);
    strcpy(line.text, "bell\a");
    assert_int_equal(emu_watcher_format(&line, text, sizeof(text)), -EINVAL);
    strcpy(line.text, "fine");
    line.time_s = UINT64_C(36525) * 86400;
    assert_int_equal(emu_watcher_format(&line, text, sizeof(text)), -EINVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lost_lanes_write_the_printed_lines_in_their_order),
        cmocka_unit_test(test_all_times_and_masks_are_written),
        cmocka_unit_test(test_what_no_line_can_say_is_not_written),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
