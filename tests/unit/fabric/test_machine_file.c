/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Each test writes a machine file with one fault (aries.yaml with one piece of text replaced) and expects the whole
 * message, position included.
 */
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "tests/unit/fabric/fixture.h"

static char path[] = "/tmp/emunic-test-machine-XXXXXX.yaml";
static char aries[16384];

static int setup(void **state)
{
    FILE *file = fopen(EMU_TEST_MACHINE_DIR "/aries.yaml", "re");
    size_t len;
    int fd;

    (void)state;
    if (!file)
        return -1;
    len = fread(aries, 1, sizeof(aries) - 1, file);
    fclose(file);
    fd = mkstemps(path, (int)strlen(".yaml"));
    if (fd < 0 || len == 0 || len == sizeof(aries) - 1)
        return -1;
    close(fd);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    return unlink(path);
}

static void write_file(const char *text, size_t len)
{
    FILE *file = fopen(path, "we");

    assert_non_null(file);
    assert_int_equal(fwrite(text, 1, len, file), len);
    assert_int_equal(fclose(file), 0);
}

/* Writes aries.yaml with the first `from` replaced and returns the line where that was. */
static unsigned write_patched(const char *from, const char *to)
{
    char text[sizeof(aries) + 256];
    char *at = strstr(aries, from);
    unsigned line = 1;
    int len;

    assert_non_null(at);
    for (const char *p = aries; p < at; p++)
        line += *p == '\n';
    len = snprintf(text, sizeof(text), "%.*s%s%s", (int)(at - aries), aries, to, at + strlen(from));
    assert_true(len > 0 && (size_t)len < sizeof(text));
    write_file(text, (size_t)len);
    return line;
}

/* Loads spec and expects -EINVAL and this message. */
static void expect_error(const char *spec, const char *message)
{
    struct emu_machine *m = NULL;
    char err[400] = "";

    assert_int_equal(emu_machine_load(spec, EMU_TEST_MACHINE_DIR, &m, err, sizeof(err)), -EINVAL);
    assert_string_equal(err, message);
    assert_null(m);
}

/* Expects a message at a place in the patched file. */
static void expect_error_at(unsigned line, unsigned column, const char *text)
{
    char message[400];

    snprintf(message, sizeof(message), "%s:%u:%u: %s", path, line, column, text);
    expect_error(path, message);
}

static void test_unknown_key_is_reported_with_the_nearest_one(void **state)
{
    unsigned line = write_patched("groups: 2", "grups: 2");

    (void)state;
    expect_error_at(line, 3, "unknown key 'topology.grups'; did you mean 'topology.groups'?");
}

static void test_unknown_section_is_reported(void **state)
{
    unsigned line = write_patched("router:\n", "lettuce:\n");

    (void)state;
    expect_error_at(line, 1, "unknown key 'lettuce'");
}

static void test_wrong_type_is_reported(void **state)
{
    (void)state;
    expect_error_at(write_patched("groups: 2", "groups: two"), 11, "topology.groups: 'two' is not a whole number");
    expect_error_at(write_patched("groups: 2", "groups: \"2\""), 11,
                    "topology.groups: expected a number, found a quoted text");
    expect_error_at(write_patched("groups: 2", "groups: [2]"), 11,
                    "topology.groups: expected a single value, found a list");
    expect_error_at(write_patched("groups: 2", "groups: 1.5"), 11, "topology.groups: '1.5' is not a whole number");
    expect_error_at(write_patched("groups: 2", "groups: 0x2"), 11, "topology.groups: '0x2' is not a whole number");
    expect_error_at(write_patched("groups: 2", "groups: 99999999999999999999"), 11,
                    "topology.groups: '99999999999999999999' is not a whole number");
    expect_error_at(write_patched("gbps_per_lane: 12.5", "gbps_per_lane: 12.5000"), 20,
                    "links.blue.gbps_per_lane: '12.5000' is not a number with at most three decimals");
    expect_error_at(write_patched("cables_per_bundle: auto", "cables_per_bundle: many"), 22,
                    "topology.cables_per_bundle: 'many' is not a whole number and not 'auto'");
    expect_error_at(write_patched("choice: credits", "choice: best"), 11,
                    "router.choice: 'best' is none of: first random credits tokens");
    expect_error_at(write_patched("name: aries", "name: Aries 2"), 7,
                    "name: 'Aries 2' is not a name of up to 31 lower case letters, digits, '-' and '_'");
}

static void test_value_in_the_place_of_a_section_is_reported(void **state)
{
    unsigned line = write_patched("router:\n", "router:\n  - 100\nrest:\n");

    (void)state;
    expect_error_at(line + 1, 3, "router: expected a mapping, found a list");
}

static void test_value_out_of_range_is_reported(void **state)
{
    (void)state;
    expect_error_at(write_patched("groups: 2", "groups: 242"), 11, "topology.groups: 242 is out of range (1 to 241)");
    expect_error_at(write_patched("nodes_per_blade: 4", "nodes_per_blade: 2"), 20,
                    "topology.nodes_per_blade: 2 is out of range (only 4)");
    expect_error_at(write_patched("gbps_per_lane: 12.5", "gbps_per_lane: 0"), 20,
                    "links.blue.gbps_per_lane: 0 is out of range (0.001 to 1000)");
}

static void test_missing_key_is_reported_at_its_section(void **state)
{
    unsigned line = write_patched("  hop_ns: 100", "  #");

    (void)state;
    expect_error_at(line + 1, 3, "missing key 'router.hop_ns'");
}

static void test_key_given_twice_is_reported(void **state)
{
    unsigned line = write_patched("groups: 2\n", "groups: 2\n  groups: 3\n");

    (void)state;
    expect_error_at(line + 1, 3, "topology.groups: given twice");
}

static void test_other_schema_is_refused_before_anything_else(void **state)
{
    unsigned line = write_patched("schema: 1\n", "schema: 2\nunheard-of: 1\n");

    (void)state;
    expect_error_at(line, 9, "schema '2' is not supported, only 1 is");
}

static void test_unknown_topology_is_refused(void **state)
{
    unsigned line = write_patched("kind: dragonfly", "kind: moebius");

    (void)state;
    expect_error_at(line, 9, "topology.kind: 'moebius' is not a known topology");
}

static void test_values_that_do_not_fit_together_are_reported_at_one_of_them(void **state)
{
    char spec[100], message[400];
    unsigned line;

    (void)state;
    expect_error_at(write_patched("frame_overhead_flits: 1", "frame_overhead_flits: 10"), 25,
                    "links.frame_overhead_flits: 10 leaves nothing of a frame of 10 flits");

    line = write_patched("cables_per_bundle: auto", "cables_per_bundle: 200");
    snprintf(spec, sizeof(spec), "%s:groups=3", path);
    snprintf(message, sizeof(message),
             "%s:%u:22: topology.cables_per_bundle: 200 cables between each two of 3 groups do not fit: a group of "
             "6 chassis x 16 blades takes 240, so at most 120",
             path, line);
    expect_error(spec, message);
}

static void test_yaml_fault_is_reported_with_its_position(void **state)
{
    unsigned line = write_patched("groups: 2", "groups: [2");
    char err[400] = "";
    char start[100];
    struct emu_machine *m = NULL;

    (void)state;
    assert_int_equal(emu_machine_load(path, NULL, &m, err, sizeof(err)), -EINVAL);
    snprintf(start, sizeof(start), "%s:%u:", path, line + 1); /* the parser trips over the next line */
    assert_memory_equal(err, start, strlen(start));
    assert_null(strchr(err, '\n'));
}

static void test_files_that_are_no_machine_are_refused(void **state)
{
    static const char binary[] = "schema: \"1\\0\"\n";
    char message[200];

    (void)state;
    write_file("", 0);
    snprintf(message, sizeof(message), "%s:1:1: the file is empty", path);
    expect_error(path, message);
    write_file("- 1\n", 4);
    expect_error_at(1, 1, "machine file: expected a mapping, found a list");
    write_file(binary, strlen(binary));
    expect_error_at(1, 9, "schema: expected a single value, found binary data");
}

static void test_byte_that_is_no_text_is_reported_where_it_stands(void **state)
{
    unsigned line = write_patched("groups: 2", "groups: \xff");

    (void)state;
    expect_error_at(line, 11, "invalid leading UTF-8 octet");
}

static void test_message_stays_on_one_line(void **state)
{
    unsigned line = write_patched("name: aries", "name: \"a\\nb\\e[1m\"");

    (void)state;
    expect_error_at(line, 7, "name: 'a?b?[1m' is not a name of up to 31 lower case letters, digits, '-' and '_'");
}

static void test_second_document_is_refused(void **state)
{
    unsigned line = write_patched("amo_cycles: 2", "amo_cycles: 2\n---\nschema: 1\n#");

    (void)state;
    expect_error_at(line + 2, 1, "a machine file has one document only");
}

static void test_alias_that_contains_itself_is_refused(void **state)
{
    unsigned line = write_patched("router:\n  hop_ns: 100", "router: &r\n  hop_ns: *r");

    (void)state;
    expect_error_at(line, 9, "router.hop_ns: expected a single value, found a mapping");
}

static void test_file_that_cannot_be_opened_is_named(void **state)
{
    struct emu_machine *m = NULL;
    char err[300] = "";

    (void)state;
    assert_int_equal(emu_machine_load("bries", "/nonexistent", &m, err, sizeof(err)), -ENOENT);
    assert_string_equal(err, "/nonexistent/bries.yaml: No such file or directory");
    assert_int_equal(emu_machine_load("bries", "/nonexistent", &m, NULL, 0), -ENOENT);
}

static void test_unknown_machine_names_those_that_there_are(void **state)
{
    struct emu_machine *m = NULL;
    char folder[] = "/tmp/emunic-machines-XXXXXX";
    char file[80];
    char err[300] = "";

    (void)state;
    assert_non_null(mkdtemp(folder));
    assert_int_equal(emu_machine_load("aries", folder, &m, err, sizeof(err)), -ENOENT);
    assert_non_null(strstr(err, "/aries.yaml: No such file or directory"));
    for (const char *const *name = (const char *const[]){ "xt3.yaml", "aries.yaml", "notes.txt", ".yaml", NULL }; *name;
         name++) {
        snprintf(file, sizeof(file), "%s/%s", folder, *name);
        fclose(fopen(file, "w"));
    }
    assert_int_equal(emu_machine_load("titan:groups=2", folder, &m, err, sizeof(err)), -ENOENT);
    assert_string_equal(err, "no machine 'titan'; there are aries, xt3");
    assert_int_equal(emu_machine_load("areis", folder, &m, err, sizeof(err)), -ENOENT);
    assert_string_equal(err, "no machine 'areis'; did you mean 'aries'? There are aries, xt3");
    for (const char *const *name = (const char *const[]){ "xt3.yaml", "aries.yaml", "notes.txt", ".yaml", NULL }; *name;
         name++) {
        snprintf(file, sizeof(file), "%s/%s", folder, *name);
        unlink(file);
    }
    rmdir(folder);
}

static void test_spec_that_names_nothing_is_refused(void **state)
{
    struct emu_machine *m = NULL;
    char err[300] = "";

    (void)state;
    expect_error("", "'' is neither the name of a machine nor a path with a '/' or '.yaml'");
    expect_error("Aries", "'Aries' is neither the name of a machine nor a path with a '/' or '.yaml'");
    assert_int_equal(emu_machine_load("aries", NULL, &m, err, sizeof(err)), -EINVAL);
    assert_string_equal(err, "machine 'aries': no directory of machine files is set");
}

static void test_bad_override_is_reported_with_its_key(void **state)
{
    (void)state;
    expect_error("aries:", "override '': expected key=value");
    expect_error("aries:groups", "override 'groups': expected key=value");
    expect_error("aries:groups=2,", "override '': expected key=value");
    expect_error("aries:grups=2", "override 'grups=2': unknown key 'grups'; did you mean 'topology.groups'?");
    expect_error("aries:roups=2", "override 'roups=2': unknown key 'roups'; did you mean 'topology.groups'?");
    expect_error("aries:groups=", "override 'groups=': topology.groups: '' is not a whole number");
    expect_error("aries:groups=0", "override 'groups=0': topology.groups: 0 is out of range (1 to 241)");
    expect_error("aries:lanes=1",
                 "override 'lanes=1': 'lanes' may mean 'links.processor.lanes' or 'links.green.lanes'");
    expect_error("aries:kind=torus",
                 "override 'kind=torus': topology.kind belongs to the file and cannot be overridden");
    expect_error("aries:cabinet_columns=7", "override 'cabinet_columns=7': topology.cabinet_columns: 7 is odd, but a "
                                            "group stands in two neighbouring cabinets of a row");
    expect_error("aries:groups=42,chassis=1",
                 "override 'groups=42': topology.groups: 42 groups cannot be connected: a group of 1 chassis x 16 "
                 "blades takes 40 global cables, enough for 41 groups");
}

static void test_overrides_change_the_machine(void **state)
{
    struct emu_machine *m = load("aries:groups=3,topology.chassis=2,blades=5,blue.lanes=2,hop_ns=80,name=small");

    (void)state;
    assert_string_equal(emu_machine_name(m), "small");
    assert_int_equal(emu_machine_n_nodes(m), 3 * 2 * 5 * 4);
    assert_int_equal(emu_machine_router(m)->hop_ps, 80000);
    assert_int_equal(link_of(m, emu_machine_n_links(m) - 1).lanes, 2);
    emu_machine_destroy(m);
}

static void test_path_takes_overrides_as_a_name_does(void **state)
{
    struct emu_machine *m = load(EMU_TEST_MACHINE_DIR "/aries.yaml:groups=1");

    (void)state;
    assert_int_equal(emu_machine_n_nodes(m), 384);
    emu_machine_destroy(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_unknown_key_is_reported_with_the_nearest_one),
        cmocka_unit_test(test_unknown_section_is_reported),
        cmocka_unit_test(test_wrong_type_is_reported),
        cmocka_unit_test(test_value_in_the_place_of_a_section_is_reported),
        cmocka_unit_test(test_value_out_of_range_is_reported),
        cmocka_unit_test(test_missing_key_is_reported_at_its_section),
        cmocka_unit_test(test_key_given_twice_is_reported),
        cmocka_unit_test(test_other_schema_is_refused_before_anything_else),
        cmocka_unit_test(test_unknown_topology_is_refused),
        cmocka_unit_test(test_values_that_do_not_fit_together_are_reported_at_one_of_them),
        cmocka_unit_test(test_yaml_fault_is_reported_with_its_position),
        cmocka_unit_test(test_files_that_are_no_machine_are_refused),
        cmocka_unit_test(test_byte_that_is_no_text_is_reported_where_it_stands),
        cmocka_unit_test(test_message_stays_on_one_line),
        cmocka_unit_test(test_second_document_is_refused),
        cmocka_unit_test(test_alias_that_contains_itself_is_refused),
        cmocka_unit_test(test_file_that_cannot_be_opened_is_named),
        cmocka_unit_test(test_unknown_machine_names_those_that_there_are),
        cmocka_unit_test(test_spec_that_names_nothing_is_refused),
        cmocka_unit_test(test_bad_override_is_reported_with_its_key),
        cmocka_unit_test(test_overrides_change_the_machine),
        cmocka_unit_test(test_path_takes_overrides_as_a_name_does),
    };

    return cmocka_run_group_tests(tests, setup, teardown);
}
