/* SPDX-License-Identifier: BSD-3-Clause */
#include "emunic/fabric/node_params.h"

#include <errno.h>
#include <math.h>
#include <string.h>
#include <unistd.h>

#include "tests/unit/fabric/fixture.h"

/* Whatever the calibration has put into the file. */
#define SPEC                                                                                                           \
    "aries:host.issue_ns=250,launch_gap_ns=133.333,launch_node_gap_ns=8.333,interface_mbs=16000,overhead_bytes=24,"    \
    "duplex_percent=55,rendezvous=get,local_shared=0,host.in_ns=100"

static void test_values_of_the_file_arrive_in_their_units(void **state)
{
    struct emu_machine *m = load(SPEC);
    const struct emu_node_params *host = emu_machine_node_params(m);

    (void)state;
    assert_non_null(host);
    assert_int_equal(host->launch_gap_ps, 133333);   /* 133.333 ns */
    assert_int_equal(host->interface_kbs, 16000000); /* 16 GB/s */
    assert_int_equal(host->duplex_share, 55000);
    assert_int_equal(host->overhead_bytes, 24);
    assert_int_equal(host->rendezvous, EMU_RENDEZVOUS_GET);
    emu_machine_destroy(m);
}

static void test_override_changes_one_value(void **state)
{
    struct emu_machine *m =
        load("aries:host.out_ns=1100.5,eager_bytes_max=0,rendezvous=put,registration=miss,host.in_ns=100");
    const struct emu_node_params *host = emu_machine_node_params(m);

    (void)state;
    assert_int_equal(host->out_ps, 1100500);
    assert_int_equal(host->eager_bytes_max, 0);
    assert_int_equal(host->rendezvous, EMU_RENDEZVOUS_PUT);
    assert_int_equal(host->registration, EMU_REGISTRATION_MISS);
    assert_int_equal(host->in_ps, 100000);
    emu_machine_destroy(m);
}

static void test_parameter_is_found_by_its_key(void **state)
{
    struct emu_machine *m = load(SPEC);
    const struct emu_node_params *host = emu_machine_node_params(m);

    (void)state;
    assert_float_equal(emu_node_param_value(host, "launch_gap_ns"), 133.333, 1e-9);
    assert_float_equal(emu_node_param_value(host, "overhead_bytes"), 24, 1e-9);
    assert_true(isnan(emu_node_param_value(host, "launch_gap")));
    emu_machine_destroy(m);
}

/* Copies aries.yaml up to a line that starts with `end`, without any line that starts with `without`. */
static void copy_aries(const char *path, const char *end, const char *without)
{
    FILE *in = fopen(EMU_TEST_MACHINE_DIR "/aries.yaml", "re");
    FILE *out = fopen(path, "we");
    char line[512];

    assert_non_null(in);
    assert_non_null(out);
    while (fgets(line, sizeof(line), in) && (!end || strncmp(line, end, strlen(end)) != 0)) {
        if (!without || strncmp(line, without, strlen(without)) != 0)
            fputs(line, out);
    }
    fclose(in);
    assert_int_equal(fclose(out), 0);
}

static void test_machine_without_host_section_has_no_host(void **state)
{
    char path[] = "/tmp/emunic-test-host-XXXXXX.yaml";
    struct emu_machine *m;

    (void)state;
    close(mkstemps(path, 5));
    copy_aries(path, "host:", NULL);
    m = load(path);
    assert_null(emu_machine_node_params(m));
    emu_machine_destroy(m);
    unlink(path);
}

static void test_host_section_must_be_whole(void **state)
{
    char path[] = "/tmp/emunic-test-host-XXXXXX.yaml";
    struct emu_machine *m;
    char err[300];

    (void)state;
    close(mkstemps(path, 5));
    copy_aries(path, NULL, "  recv_ns:");
    assert_int_equal(emu_machine_load(path, NULL, &m, err, sizeof(err)), -EINVAL);
    assert_non_null(strstr(err, "missing key 'host.recv_ns'"));
    unlink(path);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values_of_the_file_arrive_in_their_units),
        cmocka_unit_test(test_override_changes_one_value),
        cmocka_unit_test(test_parameter_is_found_by_its_key),
        cmocka_unit_test(test_machine_without_host_section_has_no_host),
        cmocka_unit_test(test_host_section_must_be_whole),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
