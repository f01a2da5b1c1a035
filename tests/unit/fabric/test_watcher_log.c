/* SPDX-License-Identifier: BSD-3-Clause */
/* The network watcher's lines: the printed example, both ways; and what is no line. */
#include "emunic/fabric/watcher_log.h"

#include <errno.h>
#include <string.h>

#include "emunic/fabric/gemini.h"
#include "tests/unit/fabric/fixture.h"

static const char *const example[] = {
    "130325 15:51:00 c0-0c1s0g0l27 c0-0c1s1g0l17 1 Mode Exchanges",
    "130325 15:51:00 c0-0c1s0g0l27 c0-0c1s1g0l17 1 RX lanemask=3",
    "130325 15:51:00 c0-0c1s0g0l27 ***ERROR*** Gemini LCB lane(s) reinit failed",
    "130325 15:52:00 c0-0c1s1g0l17 c0-0c1s0g0l27 1 TX lanemask=3",
};

static void test_the_printed_lines_survive_reading_and_writing(void **state)
{
    static const enum emu_watcher_event events[] = { EMU_WATCHER_MODE_EXCHANGES, EMU_WATCHER_RX_LANEMASK,
                                                     EMU_WATCHER_ERROR, EMU_WATCHER_TX_LANEMASK };

    (void)state;
    for (size_t i = 0; i < 4; i++) {
        struct emu_watcher_line line;
        char text[EMU_WATCHER_LINE_MAX];

        assert_int_equal(emu_watcher_parse(example[i], &line), 0);
        assert_int_equal(line.event, events[i]);
        assert_int_equal(line.time_s, 417541860 + (i == 3 ? 60 : 0));
        assert_string_equal(line.link, i == 3 ? "c0-0c1s1g0l17" : "c0-0c1s0g0l27");
        if (events[i] == EMU_WATCHER_RX_LANEMASK || events[i] == EMU_WATCHER_TX_LANEMASK)
            assert_int_equal(line.lane_mask, 3);
        assert_int_equal(emu_watcher_format(&line, text, sizeof(text)), 0);
        assert_string_equal(text, example[i]);
    }
}

static void test_lost_lanes_write_the_printed_lines_in_their_order(void **state)
{
    struct emu_machine *m = load("gemini");
    struct emu_watcher_line lines[4], first;
    uint32_t link, reverse;

    (void)state;
    assert_int_equal(emu_watcher_parse(example[0], &first), 0);
    assert_int_equal(emu_gemini_link_of_tile(m, "c0-0c1s0g0l27", &link), 0);
    assert_int_equal(emu_link_reverse(m, link, &reverse), 0);
    assert_int_equal(emu_watcher_lanes_lost(m, reverse, 3, first.time_s, lines), 0);
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

/* Every mask and many times, the last day of a leap year among them. */
static void test_all_times_and_masks_come_back(void **state)
{
    struct emu_random random = seeded(5);

    (void)state;
    for (uint32_t i = 0; i < 20000; i++) {
        struct emu_watcher_line line = { .count = (uint32_t)emu_random_next(&random),
                                         .event = EMU_WATCHER_TX_LANEMASK };
        struct emu_watcher_line back;
        char text[EMU_WATCHER_LINE_MAX];

        line.time_s = emu_random_below(&random, UINT64_C(36525) * 86400);
        line.lane_mask = i % 8;
        strcpy(line.link, "c24-7c2s7g1l57");
        strcpy(line.peer, "c22-7c2s7g1l00");
        assert_int_equal(emu_watcher_format(&line, text, sizeof(text)), 0);
        assert_int_equal(emu_watcher_parse(text, &back), 0);
        assert_memory_equal(&back, &line, sizeof(line));
    }
}

static void test_what_is_no_line_is_refused(void **state)
{
    static const char *const wrong[] = {
        "",
        "130325 15:51:00",
        "130325 15:51:00 ",
        "130325 15:51:00 c0-0c1s0g0l27",
        "131325 15:51:00 c0-0c1s0g0l27 c0-0c1s1g0l17 1 Mode Exchanges",
        "130229 15:51:00 c0-0c1s0g0l27 c0-0c1s1g0l17 1 Mode Exchanges",
        "130325 24:00:00 c0-0c1s0g0l27 c0-0c1s1g0l17 1 Mode Exchanges",
        "130325 15:51:00 c0-0c1s0g0l27 c0-0c1s1g0l17 1 Mode Exchange",
        "130325 15:51:00 c0-0c1s0g0l27 c0-0c1s1g0l17 1 RX lanemask=8",
        "130325 15:51:00 c0-0c1s0g0l27 c0-0c1s1g0l17 1 RX lanemask=33",
        "130325 15:51:00 c0-0c1s0g0l27 c0-0c1s1g0l17 01 RX lanemask=3",
        "130325 15:51:00 c0-0c1s0g0l27 c0-0c1s1g0l17 4294967296 RX lanemask=3",
        "130325 15:51:00 c0-0c1s0g0l27 c0-0c1s1g0l17 -1 RX lanemask=3",
        "130325 15:51:00 c0-0c1s0g0l27 ***ERROR*** ",
        "130325 15:51:00 c0-0c1s0g0l27 ***ERROR*** bell\a",
        "130325 15:51:00 c0-0c1s0g0l27c0-0c1s0g0l27c0-0c1s0g0l27x c0-0c1s1g0l17 1 Mode Exchanges",
        "130325 15:51:00 c0-0c1s0g0l27 c0-0c1s1g0l17 1 Mode Exchanges\n\n",
    };
    struct emu_watcher_line line = { .count = 77 };

    (void)state;
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        if (emu_watcher_parse(wrong[i], &line) != -EINVAL)
            fail_msg("accepted: '%s'", wrong[i]);
    }
    assert_int_equal(line.count, 77);
    assert_int_equal(emu_watcher_parse("000229 00:00:00 a b 0 Mode Exchanges\n", &line), 0);
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
    line.time_s = UINT64_C(36525) * 86400;
    assert_int_equal(emu_watcher_format(&line, text, sizeof(text)), -EINVAL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_the_printed_lines_survive_reading_and_writing),
        cmocka_unit_test(test_lost_lanes_write_the_printed_lines_in_their_order),
        cmocka_unit_test(test_all_times_and_masks_come_back),
        cmocka_unit_test(test_what_is_no_line_is_refused),
        cmocka_unit_test(test_what_no_line_can_say_is_not_written),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
