/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Lists of hosts, and which ranks each gets.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "emunic/cli/host_list.h"

#define RANKS_MAX 16

static struct emu_cli_hosts hosts;
static uint32_t places[RANKS_MAX];
static char err[256];
static char folder[] = "/tmp/emunic-hosts.XXXXXX";
static char path[128];

static int forget(void **state)
{
    (void)state;
    emu_cli_hosts_free(&hosts);
    return 0;
}

static int read_hosts(const char *text)
{
    emu_cli_hosts_free(&hosts);
    return emu_cli_hosts_read(text, &hosts, err, sizeof(err));
}

static void write_file(const char *name, const char *text, mode_t mode)
{
    FILE *file;

    snprintf(path, sizeof(path), "%s/%s", folder, name);
    file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
    chmod(path, mode);
}

static void expect_host(uint32_t host, const char *name, uint32_t slots)
{
    assert_true(host < hosts.n);
    assert_string_equal(hosts.names[host], name);
    assert_int_equal(hosts.slots[host], slots);
}

static void expect_places(uint32_t n_ranks, uint32_t ppn, const char *expected)
{
    assert_int_equal(emu_cli_hosts_deal(&hosts, n_ranks, ppn, places, err, sizeof(err)), 0);
    for (uint32_t rank = 0; rank < n_ranks; rank++)
        assert_int_equal(places[rank], expected[rank] - '0');
}

static void test_list_has_names_and_slots(void **state)
{
    (void)state;
    assert_int_equal(read_hosts("localhost,b:8,c-1.d_2"), 0);
    assert_int_equal(hosts.n, 3);
    expect_host(0, "localhost", 0);
    expect_host(1, "b", 8);
    expect_host(2, "c-1.d_2", 0);
    assert_int_equal(emu_cli_hosts_slots(&hosts), 10);
}

static void test_own_name_and_address_are_this_host(void **state)
{
    char own[256];

    (void)state;
    assert_int_equal(gethostname(own, sizeof(own)), 0);
    assert_int_equal(read_hosts(own), 0);
    assert_int_equal(read_hosts("127.0.0.1,b"), 0);
    assert_int_not_equal(read_hosts("192.0.2.7,b"), 0);
    assert_non_null(strstr(err, "192.0.2.7, is not the one that this runs on"));
}

static void test_bad_lists_are_refused_with_the_reason(void **state)
{
    static const struct {
        const char *text;
        const char *reason;
    } bad[] = {
        { "", "'' is not the name" },
        { "localhost,", "'' is not the name" },
        { "localhost,-x", "'-x' is not the name" },
        { "localhost,a b", "'a b' is not the name" },
        { "localhost,a;b", "'a;b' is not the name" },
        { "localhost:0", "'0' is not a number" },
        { "localhost:", "'' is not a number" },
        { "localhost:1:2", "'1:2' is not a number" },
        { "localhost:999999", "'999999' is not a number" },
        { "localhost,b,b", "b is there twice" },
        { "@/nonexistent/hosts", "No such file" },
    };

    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        assert_true(read_hosts(bad[i].text) < 0);
        if (!strstr(err, bad[i].reason))
            fail_msg("%s: %s", bad[i].text, err);
    }
}

static void test_hostfiles_of_mpirun_and_of_pbs(void **state)
{
    char text[160];

    (void)state;
    write_file("mpirun", "# two racks\nlocalhost slots=2\n\nb   slots=4 # new\nc:3\nd\n", 0600);
    snprintf(text, sizeof(text), "@%s", path);
    assert_int_equal(read_hosts(text), 0);
    assert_int_equal(hosts.n, 4);
    expect_host(0, "localhost", 2);
    expect_host(1, "b", 4);
    expect_host(2, "c", 3);
    expect_host(3, "d", 0);
    write_file("pbs", "localhost\nlocalhost\nb\nb\nb\n", 0600);
    snprintf(text, sizeof(text), "@%s", path);
    assert_int_equal(read_hosts(text), 0);
    assert_int_equal(hosts.n, 2);
    expect_host(0, "localhost", 2);
    expect_host(1, "b", 3);
    write_file("bad", "localhost max_slots=3\n", 0600);
    snprintf(text, sizeof(text), "@%s", path);
    assert_true(read_hosts(text) < 0);
    assert_non_null(strstr(err, "only slots=N"));
    write_file("empty", "# nothing\n", 0600);
    snprintf(text, sizeof(text), "@%s", path);
    assert_true(read_hosts(text) < 0);
    assert_non_null(strstr(err, "no host is named"));
}

/* scontrol is a script here. */
static void test_allocation_of_slurm(void **state)
{
    char search[256];

    (void)state;
    unsetenv("SLURM_JOB_NODELIST");
    assert_true(read_hosts("slurm") < 0);
    assert_non_null(strstr(err, "no allocation of Slurm"));
    write_file("scontrol",
               "#!/bin/sh\n"
               "[ \"$*\" = 'show hostnames' ] && [ \"$SLURM_JOB_NODELIST\" = 'n[1-3]' ] || exit 4\n"
               "printf 'localhost\\nn2\\nn3\\n'\n",
               0700);
    snprintf(search, sizeof(search), "%s:%s", folder, getenv("PATH"));
    setenv("PATH", search, 1);
    setenv("SLURM_JOB_NODELIST", "n[1-3]", 1);
    setenv("SLURM_TASKS_PER_NODE", "2(x2),1", 1);
    assert_int_equal(read_hosts("slurm"), 0);
    assert_int_equal(hosts.n, 3);
    expect_host(0, "localhost", 2);
    expect_host(1, "n2", 2);
    expect_host(2, "n3", 1);
    setenv("SLURM_TASKS_PER_NODE", "2(x2", 1);
    assert_true(read_hosts("slurm") < 0);
    setenv("SLURM_TASKS_PER_NODE", "2(x4)", 1);
    assert_true(read_hosts("slurm") < 0);
    assert_non_null(strstr(err, "does not fit 3 hosts"));
    unsetenv("SLURM_TASKS_PER_NODE");
    assert_int_equal(read_hosts("slurm"), 0);
    expect_host(1, "n2", 0);
    setenv("SLURM_JOB_NODELIST", "other", 1);
    assert_true(read_hosts("slurm") < 0);
    assert_non_null(strstr(err, "failed with status 4"));
}

static void test_without_slots_nodes_are_dealt_evenly(void **state)
{
    (void)state;
    assert_int_equal(read_hosts("localhost,b,c"), 0);
    expect_places(8, 1, "00011122");
    assert_int_equal(hosts.n, 3);
    expect_places(8, 2, "00001122");
    expect_places(2, 1, "01");
    assert_int_equal(hosts.n, 2);
    expect_places(3, 4, "000");
    assert_int_equal(hosts.n, 1);
}

static void test_with_slots_hosts_are_filled_in_order(void **state)
{
    (void)state;
    assert_int_equal(read_hosts("localhost:2,b,c:3"), 0);
    expect_places(6, 1, "001222");
    expect_places(4, 1, "0012");
    assert_int_equal(hosts.n, 3);
    expect_places(3, 1, "001");
    assert_int_equal(hosts.n, 2);
}

static void test_too_many_ranks_and_split_nodes_are_refused(void **state)
{
    (void)state;
    assert_int_equal(read_hosts("localhost:3,b:3"), 0);
    assert_true(emu_cli_hosts_deal(&hosts, 7, 1, places, err, sizeof(err)) < 0);
    assert_non_null(strstr(err, "7 ranks, but the hosts have slots for 6"));
    assert_true(emu_cli_hosts_deal(&hosts, 6, 2, places, err, sizeof(err)) < 0);
    assert_non_null(strstr(err, "ranks 2 and 3 share a node"));
    expect_places(6, 3, "000111");
}

static void test_refusals_are_plain_lines(void **state)
{
    (void)state;
    assert_int_equal(read_hosts("a\033[2J\rb"), -EINVAL);
    assert_non_null(strstr(err, "a?[2J?b"));
    for (const char *c = err; *c; c++)
        assert_true((unsigned char)*c >= ' ' && *c != 127);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_list_has_names_and_slots, forget),
        cmocka_unit_test_teardown(test_own_name_and_address_are_this_host, forget),
        cmocka_unit_test_teardown(test_bad_lists_are_refused_with_the_reason, forget),
        cmocka_unit_test_teardown(test_hostfiles_of_mpirun_and_of_pbs, forget),
        cmocka_unit_test_teardown(test_allocation_of_slurm, forget),
        cmocka_unit_test_teardown(test_refusals_are_plain_lines, forget),
        cmocka_unit_test_teardown(test_without_slots_nodes_are_dealt_evenly, forget),
        cmocka_unit_test_teardown(test_with_slots_hosts_are_filled_in_order, forget),
        cmocka_unit_test_teardown(test_too_many_ranks_and_split_nodes_are_refused, forget),
    };
    static const char *const names[] = { "mpirun", "pbs", "bad", "empty", "scontrol" };
    int status;

    if (!mkdtemp(folder))
        return 1;
    status = cmocka_run_group_tests(tests, NULL, NULL);
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        snprintf(path, sizeof(path), "%s/%s", folder, names[i]);
        unlink(path);
    }
    rmdir(folder);
    return status;
}
