/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * SEASTAR-16: for a message of 1 MiB a Linux host gives its NIC a command for each page of 4 KiB, 256 of them, a
 * Catamount host one, because there memory is contiguous.
 */
#include "tests/live/seastar_alone.h"

static int start_linux(void **state)
{
    (void)state;
    setenv("EMUNIC_COMMAND_PAGE", "4096", 1);
    start_seastar("seastar");
    return 0;
}

static int start_catamount(void **state)
{
    (void)state;
    setenv("EMUNIC_COMMAND_PAGE", "0", 1);
    start_seastar("seastar");
    return 0;
}

/* Sending alone: the target takes the header and cuts all the data off. */
static uint64_t commands_to_send(ptl_size_t length)
{
    struct px_entry e = open_target(0);
    uint64_t n = cost_of(false, length, false).commands;

    assert_int_equal(PtlMEUnlink(e.me), PTL_OK);
    return n;
}

/* Sending, and storing at the target. */
static uint64_t commands_of_both(ptl_size_t length)
{
    struct px_entry e = open_target(BYTES);
    uint64_t n = cost_of(false, length, false).commands;

    px_same(target, length, 15);
    assert_int_equal(PtlMEUnlink(e.me), PTL_OK);
    return n;
}

static void test_linux_needs_a_command_for_each_page(void **state)
{
    (void)state;
    assert_int_equal(commands_to_send(BYTES), 256);
    assert_int_equal(commands_of_both(BYTES), 512);
    assert_int_equal(commands_to_send(4096), 1);
    assert_int_equal(commands_to_send(4097), 2);
    assert_int_equal(commands_of_both(12), 1); /* the host itself stores what came with the header */
}

static void test_catamount_needs_one_for_a_message(void **state)
{
    (void)state;
    assert_int_equal(commands_to_send(BYTES), 1);
    assert_int_equal(commands_of_both(BYTES), 2);
    assert_int_equal(commands_of_both(12), 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_linux_needs_a_command_for_each_page, start_linux, stop_seastar),
        cmocka_unit_test_setup_teardown(test_catamount_needs_one_for_a_message, start_catamount, stop_seastar),
    };

    setvbuf(stdout, NULL, _IOLBF, 0);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
