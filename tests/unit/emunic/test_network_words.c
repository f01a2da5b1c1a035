/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Parts of the network by their names.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "emunic/cli/network_words.h"
#include "emunic/fabric/link.h"

static struct emu_machine *machine;
static struct emu_msg_network change;
static char err[256];

static int load(void **state)
{
    (void)state;
    return emu_machine_load("aries:groups=2", EMU_TEST_MACHINE_DIR, &machine, err, sizeof(err));
}

static int unload(void **state)
{
    (void)state;
    emu_machine_destroy(machine);
    return 0;
}

static void read_good(const char *text, bool is_repair)
{
    if (emu_network_words_read(machine, text, is_repair, &change, err, sizeof(err)) != 0)
        fail_msg("'%s': %s", text, err);
}

static void test_every_link_is_found_by_its_whole_name(void **state)
{
    char name[EMU_LINK_NAME_MAX];
    char text[EMU_LINK_NAME_MAX + 8];

    (void)state;
    for (uint32_t link = 0; link < emu_machine_n_links(machine); link += 311) {
        assert_int_equal(emu_link_name(machine, link, name, sizeof(name)), 0);
        snprintf(text, sizeof(text), "link %s", name);
        read_good(text, false);
        assert_int_equal(change.thing, EMU_NETWORK_LINK);
        assert_int_equal(change.index, link);
        assert_int_equal(change.flags, 0);
    }
}

static void test_parts_have_names_and_numbers(void **state)
{
    (void)state;
    read_good("router c0-0c0s3a0", false);
    assert_int_equal(change.thing, EMU_NETWORK_ROUTER);
    assert_int_equal(change.index, 3);
    read_good("router 3", true);
    assert_int_equal(change.flags, EMU_NETWORK_REPAIR);
    read_good("node c0-0c0s1n2", false);
    assert_int_equal(change.thing, EMU_NETWORK_NODE);
    assert_int_equal(change.index, 6);
    read_good("  node   6 ", false);
    assert_int_equal(change.index, 6);
    read_good("link c0-0c0s0a0 c0-0c0s3a0 one-way", false);
    assert_int_equal(change.flags, EMU_NETWORK_ONE_WAY);
    read_good("lanes c0-0c0s0a0 c0-0c0s3a0 5", false);
    assert_int_equal(change.thing, EMU_NETWORK_LANES);
    assert_int_equal(change.lane_mask, 5);
    read_good("lanes c0-0c0s0a0 c0-0c0s3a0", true);
    read_good("all", true);
    assert_int_equal(change.thing, EMU_NETWORK_ALL);
}

static void test_what_is_no_part_is_told_in_one_line(void **state)
{
    static const struct {
        const char *text;
        bool is_repair;
        const char *what;
    } rows[] = {
        { "", false, "one of link, lanes, router, node is missing" },
        { "   ", true, "all is missing" },
        { "cable 3", false, "is none of link" },
        { "all", false, "is none of link" },
        { "all 3", true, "is none of link" },
        { "router", false, "is none of link" },
        { "router c0-0c0s3a0 x", false, "is none of link" },
        { "router c9-0c0s3a0", false, "neither the name of a router nor a number from 0 to 191" },
        { "node 768", false, "nor a number from 0 to 767" },
        { "node -1", false, "neither the name" },
        { "link", false, "are missing" },
        { "link 99999999999", false, "not a number" },
        { "link c0-0c0s0a0 c0-0c0s0a0", false, "no link leads" },
        { "link c0-0c0s0a0 c0-0c1s0a0", false, "3 links lead" },
        { "link c0-0c0s0a0 c0-0c1s0a0 black 3", false, "of that class and number" },
        { "lanes 2000", false, "a mask" },
        { "lanes 2000 0", false, "a mask from 1 to 7" },
        { "lanes 2000 8", false, "a mask from 1 to 7" },
        { "a b c d e f g h i j", false, "is missing" },
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        assert_true(emu_network_words_read(machine, rows[i].text, rows[i].is_repair, &change, err, sizeof(err)) < 0);
        if (!strstr(err, rows[i].what) || strchr(err, '\n'))
            fail_msg("'%s': '%s' without '%s'", rows[i].text, err, rows[i].what);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_link_is_found_by_its_whole_name),
        cmocka_unit_test(test_parts_have_names_and_numbers),
        cmocka_unit_test(test_what_is_no_part_is_told_in_one_line),
    };

    return cmocka_run_group_tests(tests, load, unload);
}
