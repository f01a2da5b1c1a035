/* SPDX-License-Identifier: BSD-3-Clause */
/* What emunic-rank sets for the reference dialect of Portals: short enough, and never over what somebody has set. */
#include "mpi-shim/rank/portals_maps.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static int without(void **state)
{
    (void)state;
    unsetenv("PTL_MY_RID");
    unsetenv("PTL_NIDMAP");
    unsetenv("PTL_PIDMAP");
    unsetenv("EMUNIC_NIDS");
    return 0;
}

static void expect_none(void)
{
    assert_null(getenv("PTL_MY_RID"));
    assert_null(getenv("PTL_NIDMAP"));
    assert_null(getenv("PTL_PIDMAP"));
}

static void test_one_number_for_each_rank(void **state)
{
    (void)state;
    setenv("EMUNIC_NIDS", "5*2,768", 1);
    assert_int_equal(emu_rank_set_portals_maps(2), 0);
    assert_string_equal(getenv("PTL_MY_RID"), "2");
    assert_string_equal(getenv("PTL_NIDMAP"), "5:5:768");
    assert_string_equal(getenv("PTL_PIDMAP"), "0:1:2");
}

static void test_maps_that_are_there_stay(void **state)
{
    (void)state;
    setenv("EMUNIC_NIDS", "5*2,768", 1);
    setenv("PTL_NIDMAP", "1:2", 1);
    assert_int_equal(emu_rank_set_portals_maps(2), 0);
    assert_string_equal(getenv("PTL_NIDMAP"), "1:2");
    assert_null(getenv("PTL_MY_RID"));
    assert_null(getenv("PTL_PIDMAP"));
}

static void test_without_nodes_or_with_wrong_ones_there_are_none(void **state)
{
    (void)state;
    assert_int_equal(emu_rank_set_portals_maps(0), 0);
    expect_none();
    setenv("EMUNIC_NIDS", "5*2,", 1);
    assert_int_equal(emu_rank_set_portals_maps(0), 0);
    expect_none();
    setenv("EMUNIC_NIDS", "5*2", 1);
    assert_int_equal(emu_rank_set_portals_maps(2), 0);
    expect_none();
}

/* The kernel takes no variable of 128 KiB, and each rank has a copy. */
static void test_long_maps_are_not_set(void **state)
{
    (void)state;
    setenv("EMUNIC_NIDS", "5*6000", 1);
    assert_int_equal(emu_rank_set_portals_maps(5999), 0);
    assert_string_equal(getenv("PTL_MY_RID"), "5999");
    assert_true(strlen(getenv("PTL_PIDMAP")) < 32768);
    without(NULL);
    setenv("EMUNIC_NIDS", "5*7000", 1);
    assert_int_equal(emu_rank_set_portals_maps(5999), 0);
    expect_none();
    setenv("EMUNIC_NIDS", "100000*6000", 1); /* of these the map of nodes */
    assert_int_equal(emu_rank_set_portals_maps(5999), 0);
    expect_none();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_one_number_for_each_rank, without),
        cmocka_unit_test_setup(test_maps_that_are_there_stay, without),
        cmocka_unit_test_setup(test_without_nodes_or_with_wrong_ones_there_are_none, without),
        cmocka_unit_test_setup(test_long_maps_are_not_set, without),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
