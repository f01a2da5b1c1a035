/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * TITAN-8: a lost lane of a link of a Gemini writes the four printed lines, in their order and with the mask of the
 * lanes that are left; the peer's line comes with the watcher's next look.
 */
#include <jansson.h>

#include "emunic/fabric/gemini.h"
#include "emunic/fabric/link.h"
#include "emunic/fabric/machine.h"
#include "tests/live/live.h"

#define LINES 4u

static struct emu_machine *machine;

static int start_gemini(void **state)
{
    const struct fx_options options = { .machine = "gemini", .n_ranks = 1 };

    char why[300];

    (void)state;
    setenv("EMUNIC_WATCHER", "50000000", 1); /* ns instead of a minute */
    fx_start(&fx, &options);
    return emu_machine_load("gemini", FX_MACHINE_DIR, &machine, why, sizeof(why));
}

static int stop_gemini(void **state)
{
    emu_machine_destroy(machine);
    return stop_emunic(state);
}

/* The watcher's lines so far, without their times; how many there are. */
static size_t read_log(char lines_out[][160], size_t n_max)
{
    char *text = fx_report(&fx, EMU_MSG_FAULTS);
    json_t *report;
    json_t *log;
    size_t n;

    assert_non_null(text);
    report = json_loads(text, 0, NULL);
    log = json_object_get(json_object_get(report, "network"), "watcher_log");
    assert_true(json_is_array(log));
    n = json_array_size(log);
    for (size_t i = 0; i < n && i < n_max; i++) {
        unsigned day;
        unsigned clock[3];
        int used = 0;

        assert_int_equal(sscanf(json_string_value(json_array_get(log, i)), "%6u %2u:%2u:%2u %n", &day, &clock[0],
                                &clock[1], &clock[2], &used),
                         4);
        snprintf(lines_out[i], sizeof(lines_out[i]), "%s", json_string_value(json_array_get(log, i)) + used);
    }
    json_decref(report);
    free(text);
    return n;
}

static void lose_lanes(const char *tile, uint32_t mask)
{
    uint32_t link;
    uint32_t reverse;

    assert_int_equal(emu_gemini_link_of_tile(machine, tile, &link), 0);
    assert_int_equal(emu_link_reverse(machine, link, &reverse), 0);
    assert_int_equal(
        fx_change_network(&fx,
                          (struct emu_msg_network){ .thing = EMU_NETWORK_LANES, .index = reverse, .lane_mask = mask }),
        0);
}

static void test_a_lost_lane_writes_the_four_lines_with_its_mask(void **state)
{
    char lines[6 * LINES][160];
    uint64_t end_ns;
    size_t n;

    (void)state;
    for (uint32_t mask = 1; mask <= 6; mask++) {
        size_t first = (mask - 1) * LINES;
        char wanted[LINES][160];

        lose_lanes("c0-0c1s0g0l27", mask);
        n = read_log(lines, COUNT_OF(lines));
        assert_in_range(n, first + 3, first + 4); /* the other end's line waits for the next look */
        end_ns = emu_clock_ns() + PATIENCE_NS;
        while (n < first + 4 && emu_clock_ns() < end_ns)
            n = read_log(lines, COUNT_OF(lines));
        assert_int_equal(n, first + 4);
        snprintf(wanted[0], sizeof(wanted[0]), "c0-0c1s0g0l27 c0-0c1s1g0l17 1 Mode Exchanges");
        snprintf(wanted[1], sizeof(wanted[1]), "c0-0c1s0g0l27 c0-0c1s1g0l17 1 RX lanemask=%u", mask);
        snprintf(wanted[2], sizeof(wanted[2]), "c0-0c1s0g0l27 ***ERROR*** Gemini LCB lane(s) reinit failed");
        snprintf(wanted[3], sizeof(wanted[3]), "c0-0c1s1g0l17 c0-0c1s0g0l27 1 TX lanemask=%u", mask);
        for (unsigned i = 0; i < LINES; i++)
            assert_string_equal(lines[first + i], wanted[i]);
        assert_int_equal(
            fx_change_network(&fx, (struct emu_msg_network){ .thing = EMU_NETWORK_ALL, .flags = EMU_NETWORK_REPAIR }),
            0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = { cmocka_unit_test(test_a_lost_lane_writes_the_four_lines_with_its_mask) };

    return cmocka_run_group_tests(tests, start_gemini, stop_gemini);
}
