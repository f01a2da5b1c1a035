/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Machine files with one fault each: a file of the project with one piece of text replaced. Each must be refused with
 * its path, the line of the fault, and a reason; none may crash, hang or eat memory. Faults of all kinds of topology
 * and of YAML itself.
 */
#include <errno.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "tests/unit/fabric/fixture.h"

#define AT_FAULT 0    /* the line of the replaced text */
#define ANYWHERE (-1) /* a line that the test does not know: another key is to blame, or nothing is there */

struct fault {
    const char *machine;
    const char *from; /* first occurrence; "": the whole file is `to` */
    const char *to;
    int line;           /* of the message: lines below the fault, or ANYWHERE */
    const char *reason; /* a part of the message */
    const char *from2;  /* another replacement; NULL: none */
    const char *to2;
};

#define DEEP_10(text)  text text text text text text text text text text
#define DEEP_100(text) DEEP_10(DEEP_10(text))

static const struct fault faults[] = {
    /* Types. */
    { "aries", "groups: 2", "groups: two", AT_FAULT, "topology.groups: 'two' is not a whole number" },
    { "aries", "groups: 2", "groups: 2.5", AT_FAULT, "'2.5' is not a whole number" },
    { "aries", "groups: 2", "groups: 0x2", AT_FAULT, "'0x2' is not a whole number" },
    { "aries", "groups: 2", "groups: 1e1", AT_FAULT, "'1e1' is not a whole number" },
    { "aries", "groups: 2", "groups: +2", AT_FAULT, "'+2' is not a whole number" },
    { "aries", "groups: 2", "groups: '2'", AT_FAULT, "expected a number, found a quoted text" },
    { "aries", "groups: 2", "groups: [2]", AT_FAULT, "expected a single value, found a list" },
    { "aries", "groups: 2", "groups: {n: 2}", AT_FAULT, "expected a single value, found a mapping" },
    { "aries", "groups: 2", "groups: true", AT_FAULT, "'true' is not a whole number" },
    { "aries", "groups: 2", "groups:", AT_FAULT, "'' is not a whole number" },
    { "aries", "groups: 2", "groups: ~", AT_FAULT, "'~' is not a whole number" },
    { "gemini", "order_retry: 0", "order_retry: off", AT_FAULT, "'off' is not a whole number" },
    { "gemini", "hop_ns: 80", "hop_ns: .nan", AT_FAULT, "'.nan' is not a number" },
    { "gemini", "hop_ns: 80", "hop_ns: .inf", AT_FAULT, "'.inf' is not a number" },
    { "gemini", "hop_ns: 80", "hop_ns: 80.1234", AT_FAULT, "not a number with at most three decimals" },
    { "seastar", "arbitration: age", "arbitration: oldest", AT_FAULT, "'oldest' is none of:" },
    { "seastar", "arbitration: age", "arbitration: 2", AT_FAULT, "'2' is none of:" },
    { "bluegene-l", "escape: bubble", "escape: [bubble]", AT_FAULT, "expected a single value, found a list" },
    { "x1", "name: x1", "name: Cray X1", AT_FAULT, "is not a name" },
    { "x1", "name: x1", "name: ''", AT_FAULT, "is not a name" },

    /* Signs, zeros, sizes. */
    { "aries", "groups: 2", "groups: -2", AT_FAULT, "'-2' is not a whole number" },
    { "aries", "groups: 2", "groups: 0", AT_FAULT, "0 is out of range" },
    { "aries", "groups: 2", "groups: 4294967298", AT_FAULT, "out of range" },                 /* 2^32 + 2 */
    { "aries", "groups: 2", "groups: 18446744073709551618", AT_FAULT, "not a whole number" }, /* 2^64 + 2 */
    { "x1", "packet_gap_ns: none", "packet_gap_ns: auto", AT_FAULT, "and not 'none'" },
    { "gemini", "x: 3 ", "x: 65 ", AT_FAULT, "topology.x: 65 is out of range" },
    { "gemini", "tiles_y: 4", "tiles_y: 0", AT_FAULT, "topology.tiles_y: 0 is out of range" },
    { "bluegene-l", "z: 8", "z: 0", AT_FAULT, "topology.z: 0 is out of range" },
    { "x1", "dimensions: 4", "dimensions: 33", AT_FAULT, "topology.dimensions: 33 is out of range" },
    { "xd1", "nodes: 6", "nodes: 0", AT_FAULT, "topology.nodes: 0 is out of range" },
    { "xd1-fat-tree", "spines: 6", "spines: 0", AT_FAULT, "topology.spines: 0 is out of range" },

    /* Links without lanes or rate, routers without time or room. */
    { "aries", "lanes: 3", "lanes: 0", AT_FAULT, "lanes: 0 is out of range" },
    { "x1", "lanes: 16", "lanes: 0", AT_FAULT, "lanes: 0 is out of range" },
    { "xd1", "lanes: 1 ", "lanes: 0 ", AT_FAULT, "lanes: 0 is out of range" },
    { "seastar", "gbps_per_lane: 7.6", "gbps_per_lane: 0", AT_FAULT, "gbps_per_lane: 0 is out of range" },
    { "aries", "frame_overhead_flits: 1", "frame_overhead_flits: 10", AT_FAULT, "leaves nothing of a frame" },
    { "aries", "clock_ps: 1143", "clock_ps: 0", AT_FAULT, "router.clock_ps: 0 is out of range" },
    { "aries", "clock_mhz: 800", "clock_mhz: 0", AT_FAULT, "nic.clock_mhz: 0 is out of range" },
    { "aries", "hop_wire_ns: 50", "hop_wire_ns: 100.001", AT_FAULT, "more than the whole hop" },
    { "aries", "packet_units_max: 14", "packet_units_max: 13", AT_FAULT, "less than a request with 64 bytes" },
    { "gemini", "payload_bytes_max: 64", "payload_bytes_max: 128", ANYWHERE, "less than a request with 128 bytes" },
    { "aries", "vc_units: ", "vc_units: 13 #", AT_FAULT, "no room for a packet" },
    { "aries", "token_units: 1 ", "token_units: 1000 ", AT_FAULT, "a packet takes 1" },
    { "bluegene-l", "vc_units: 1024", "vc_units: 511", AT_FAULT, "less than the two packets" },
    { "seastar", "outstanding_packets: 256", "outstanding_packets: 0", AT_FAULT, "out of range" },

    /* Cabling that cannot be, ports that are too few, parts that nothing connects. */
    { "aries", "groups: 2", "groups: 242", AT_FAULT, "242 is out of range" },
    { "aries", "nodes_per_blade: 4", "nodes_per_blade: 3", AT_FAULT, "out of range (only 4)" },
    { "aries", "cables_per_bundle: auto", "cables_per_bundle: 241", AT_FAULT, "out of range" },
    { "aries", "groups: 2", "groups: 200", AT_FAULT, "200 groups cannot be connected", "chassis: 6", "chassis: 1" },
    { "aries", "cables_per_bundle: auto", "cables_per_bundle: 61", AT_FAULT, "61 cables between each two of 5 groups",
      "groups: 2", "groups: 5" },
    { "aries", "last_chassis: auto", "last_chassis: 6", AT_FAULT, "more than the other groups have", "  chassis: 6",
      "  chassis: 4" },
    { "aries", "cabinet_columns: 12", "cabinet_columns: 7", AT_FAULT, "7 is odd" },
    { "gemini", "y: 2 ", "y: 3 ", AT_FAULT, "odd" },
    { "gemini", "layout: auto", "layout: attic", AT_FAULT, "none of auto, cabinet, floor" },
    { "gemini", "layout: auto", "layout: cabinet", AT_FAULT, "do not fit into one cabinet", "x: 3 ", "x: 5 " },
    { "gemini", "z: 8", "z: 12", AT_FAULT, "not a whole number of cages", "layout: auto", "layout: floor" },
    { "seastar", "wrap_y: 0", "wrap_y: 2", AT_FAULT, "topology.wrap_y: 2 is out of range" },
    { "seastar", "y: 16", "y: 6", AT_FAULT, "not a whole number of modules" },
    { "bluegene-l", "x: 8", "x: 12", AT_FAULT, "not a whole number of midplanes" },
    { "xd1", "external_ports: 12", "external_ports: 4", AT_FAULT, "do not reach 5 other chassis" },
    { "xd1", "switch_ports: 24", "switch_ports: 23", AT_FAULT, "23 ports do not suffice" },
    { "xd1-fat-tree", "spines: 6", "spines: 5", AT_FAULT, "external links of a switch are not" },
    { "xd1-fat-tree", "chassis: 12", "chassis: 13", AT_FAULT, "does not reach 13 chassis" },
    { "xd1-fat-tree", "external_ports: 12", "external_ports: 0", ANYWHERE, "external links of a switch are not" },

    /* Host. */
    { "aries", "launch_mdh_percent: 150", "launch_mdh_percent: 1001", AT_FAULT, "out of range" },
    { "aries", "response_header_flits: 1", "response_header_flits: 0", ANYWHERE, "host.acks: answers of no flits" },
    { "aries", "rendezvous: put", "rendezvous: push", AT_FAULT, "'push' is none of: get put" },
    { "aries", "registration: hit", "registration: get", AT_FAULT, "'get' is none of: hit miss" },
    { "aries", "register_page_bytes: 4096", "register_page_bytes: 2000000000", AT_FAULT, "out of range" },

    /* Keys. */
    { "aries", "groups: 2", "gruops: 2", AT_FAULT, "unknown key 'topology.gruops'; did you mean 'topology.groups'?" },
    { "aries", "groups: 2", "groups: 2\n  dimensions: 4", 1, "unknown key 'topology.dimensions'" }, /* the X1's */
    { "aries", "groups: 2", "groups: 2\n  groups: 2", 1, "given twice" },
    { "aries", "router:\n", "router:\n  router:\n", 1, "unknown key 'router.router'" },
    { "aries", "schema: 1", "schema: 1\nextra: 1", 1, "unknown key 'extra'" },
    { "aries", "schema: 1", "schema: 2", AT_FAULT, "schema '2' is not supported" },
    { "aries", "schema: 1\n", "", ANYWHERE, "missing key 'schema'" },
    { "aries", "  groups: 2\n", "\n", ANYWHERE, "missing key 'topology.groups'" },
    { "aries", "kind: dragonfly", "kind: torus", AT_FAULT, "'torus' is not a known topology" },
    { "aries", "kind: dragonfly", "kind: [dragonfly]", AT_FAULT, "expected a single value, found a list" },
    { "gemini", "kind: gemini-torus", "kind: dragonfly", ANYWHERE, "unknown key" },
    { "aries", "groups: 2", "? [groups]\n  : 2", AT_FAULT, "a key must be a plain word" },
    { "aries", "groups: 2", "\"gro\\0ups\": 2", AT_FAULT, "a key must be a plain word" },
    { "aries", "groups: 2", "groups: \"2\\0\"", AT_FAULT, "found binary data" },
    { "aries", "packet:\n", "packet: 3\nfrom:\n", AT_FAULT, "packet: expected a mapping" },

    /* YAML. */
    { "aries", "", "", ANYWHERE, "the file is empty" },
    { "aries", "", "# nothing but a comment\n", ANYWHERE, "the file is empty" },
    { "aries", "", "- a\n- b\n", ANYWHERE, "machine file: expected a mapping, found a list" },
    { "aries", "", "text", ANYWHERE, "machine file: expected a mapping" },
    { "aries", "", "schema: 1\n\tname: aries\n", ANYWHERE, "" },
    { "aries", "", "schema: 1\nname: aries\xff\n", ANYWHERE, "invalid" },
    { "aries", "  local_shared: 0", "  local_shared: 0\n---\nschema: 1\n#", 2, "one document only" },
    { "aries", "groups: 2", "groups: *two", AT_FAULT, "undefined alias" },
    { "aries", "groups: 2", "groups: \"2", ANYWHERE, "" },
    { "aries", "groups: 2", "groups: 2: 3", AT_FAULT, "" },
    { "aries", "groups: 2", "groups: {", ANYWHERE, "" },
    { "aries", "topology:\n", "topology: &t\n  more: *t\n", 1, "unknown key 'topology.more'" }, /* refers to itself */
    { "aries", "groups: 2", "groups: &n [*n, *n]", AT_FAULT, "expected a single value" },
    /* Nine lists of nine references each: 9^9 nodes, if aliases were copies. */
    { "aries", "",
      "a: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\nc: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b]\n"
      "d: &d [*c,*c,*c,*c,*c,*c,*c,*c,*c]\ne: &e [*d,*d,*d,*d,*d,*d,*d,*d,*d]\nf: &f [*e,*e,*e,*e,*e,*e,*e,*e,*e]\n"
      "g: &g [*f,*f,*f,*f,*f,*f,*f,*f,*f]\nh: &h [*g,*g,*g,*g,*g,*g,*g,*g,*g]\ni: &i [*h,*h,*h,*h,*h,*h,*h,*h,*h]\n"
      "schema: 1\ntopology:\n  kind: dragonfly\n",
      ANYWHERE, "unknown key 'a'" },
    { "aries", "groups: 2", "groups: " DEEP_100("[") DEEP_100("]"), AT_FAULT, "nested too deeply" },
    { "aries", "groups: 2", DEEP_100("a") ": 2", AT_FAULT, "unknown key" },
    { "aries", "groups: 2", "groups: " DEEP_100("9"), AT_FAULT, "is not a whole number" },
};

static char path[] = "/tmp/emunic-bad-machine-XXXXXX.yaml";
static char original[65536];
static char text[sizeof(original) + 4096];

static int setup_group(void **state)
{
    int fd = mkstemps(path, (int)strlen(".yaml"));

    (void)state;
    if (fd < 0)
        return -1;
    close(fd);
    return 0;
}

static int teardown_group(void **state)
{
    (void)state;
    return unlink(path);
}

static void read_original(const char *machine)
{
    char name[300];
    FILE *file;
    size_t len;

    snprintf(name, sizeof(name), "%s/%s.yaml", EMU_TEST_MACHINE_DIR, machine);
    file = fopen(name, "re");
    if (!file)
        fail_msg("%s: cannot be opened", name);
    len = fread(original, 1, sizeof(original) - 1, file);
    fclose(file);
    assert_in_range(len, 1, sizeof(original) - 2);
    original[len] = '\0';
}

static void write_text(void)
{
    FILE *file = fopen(path, "we");

    assert_non_null(file);
    assert_int_equal(fwrite(text, 1, strlen(text), file), strlen(text));
    assert_int_equal(fclose(file), 0);
}

/* Replaces the first `from` in `text`; returns its line. */
static unsigned replace(const char *machine, const char *from, const char *to)
{
    static char before[sizeof(text)];
    const char *at;
    unsigned line = 1;

    memcpy(before, text, sizeof(text));
    at = strstr(before, from);
    if (!at)
        fail_msg("%s.yaml has no '%s' any more", machine, from);
    for (const char *c = before; c < at; c++)
        line += *c == '\n';
    snprintf(text, sizeof(text), "%.*s%s%s", (int)(at - before), before, to, at + strlen(from));
    return line;
}

/* Writes the file with the fault; returns the line where it starts. */
static unsigned write_fault(const struct fault *f)
{
    unsigned line = 1;

    read_original(f->machine);
    snprintf(text, sizeof(text), "%s", f->from[0] == '\0' ? f->to : original);
    if (f->from2)
        (void)replace(f->machine, f->from2, f->to2);
    if (f->from[0] != '\0')
        line = replace(f->machine, f->from, f->to);
    write_text();
    return line;
}

/* "path:line:column: reason" with all parts there. Returns what is wrong with the message, or NULL. */
static const char *check_message(const struct fault *f, const char *err, unsigned fault_line)
{
    size_t path_len = strlen(path);
    unsigned line, column;
    int end = 0;

    if (strncmp(err, path, path_len) != 0 || sscanf(err + path_len, ":%u:%u: %n", &line, &column, &end) != 2 ||
        end == 0 || err[path_len + (size_t)end] == '\0')
        return "no place or no reason";
    if (f->line >= 0 && line != fault_line + (unsigned)f->line)
        return "another line";
    if (!strstr(err, f->reason))
        return "another reason";
    return strpbrk(err, "\n\r\t\x1b") ? "more than one plain line" : NULL;
}

static void test_each_fault_is_refused_with_line_and_reason(void **state)
{
    size_t n_wrong = 0;
    size_t n = sizeof(faults) / sizeof(faults[0]);

    (void)state;
    for (size_t i = 0; i < n; i++) {
        const struct fault *f = &faults[i];
        struct emu_machine *m = NULL;
        char err[400] = "";
        unsigned line = write_fault(f);
        int r = emu_machine_load(path, NULL, &m, err, sizeof(err));
        const char *wrong = r == -EINVAL ? check_message(f, err, line) : "not refused";

        if (wrong) {
            print_message("# %s, '%.60s' in line %u: %s: %d '%s'\n", f->machine, f->to, line, wrong, r, err);
            n_wrong++;
        }
        emu_machine_destroy(m);
    }
    print_message("# %zu faults\n", n);
    assert_int_equal(n_wrong, 0);
}

/* Or the table would prove nothing. */
static void test_harmless_change_is_accepted(void **state)
{
    const struct fault none = { .machine = "aries", .from = "chassis: 6", .to = "chassis: 5" };
    struct emu_machine *m = NULL;
    char err[400] = "";

    (void)state;
    (void)write_fault(&none);
    assert_int_equal(emu_machine_load(path, NULL, &m, err, sizeof(err)), 0);
    emu_machine_destroy(m);
}

static void test_refusals_cost_little_memory(void **state)
{
    struct rusage usage;

    (void)state;
    assert_int_equal(getrusage(RUSAGE_SELF, &usage), 0);
    assert_in_range(usage.ru_maxrss, 0, 512 * 1024); /* KiB, sanitizers included; none of the bombs went off */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_fault_is_refused_with_line_and_reason),
        cmocka_unit_test(test_harmless_change_is_accepted),
        cmocka_unit_test(test_refusals_cost_little_memory),
    };

    return cmocka_run_group_tests(tests, setup_group, teardown_group);
}
