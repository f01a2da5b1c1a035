/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * SEASTAR-15: a message interrupts the host that takes it once if its data fit the header packet (12 bytes), else
 * twice; never where the NIC matches.
 */
#include "tests/live/seastar_alone.h"

static const struct {
    ptl_size_t length;
    uint64_t generic;
} rows[] = { { 0, 1 }, { 1, 1 }, { 12, 1 }, { 13, 2 }, { 64, 2 }, { 4096, 2 }, { 4097, 2 }, { BYTES, 2 } };

static int start_generic(void **state)
{
    (void)state;
    start_seastar("seastar");
    return 0;
}

static int start_accelerated(void **state)
{
    (void)state;
    start_seastar("seastar:host.generic=0");
    return 0;
}

static void test_the_host_is_interrupted_once_or_twice(void **state)
{
    struct px_entry e = open_target(BYTES);

    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        assert_int_equal(cost_of(false, rows[i].length, false).interrupts, rows[i].generic);
        /* an acknowledgement, or the request of a get, is a message without data */
        assert_int_equal(cost_of(false, rows[i].length, true).interrupts, rows[i].generic + 1);
        assert_int_equal(cost_of(true, rows[i].length, false).interrupts, 1 + rows[i].generic);
    }
    assert_int_equal(PtlMEUnlink(e.me), PTL_OK);
    assert_int_equal(cost_of(false, 100, false).interrupts, 1); /* nobody takes it: the host has looked */
}

static void test_a_nic_that_matches_interrupts_nobody(void **state)
{
    struct px_entry e = open_target(BYTES);

    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        assert_int_equal(cost_of(false, rows[i].length, true).interrupts, 0);
        assert_int_equal(cost_of(true, rows[i].length, false).interrupts, 0);
    }
    assert_int_equal(PtlMEUnlink(e.me), PTL_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_the_host_is_interrupted_once_or_twice, start_generic, stop_seastar),
        cmocka_unit_test_setup_teardown(test_a_nic_that_matches_interrupts_nobody, start_accelerated, stop_seastar),
    };

    setvbuf(stdout, NULL, _IOLBF, 0);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
