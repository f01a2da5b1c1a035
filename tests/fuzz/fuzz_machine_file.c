/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Machine files and overrides that nobody would write.
 *
 * For EMU_FUZZ_SECONDS (60) the project's machine files are changed at random and loaded: bytes, lines, values (the
 * numbers that break arithmetic), keys of other files, pieces moved and repeated, aliases, and overrides on top. A file
 * that is refused must be refused with one plain line. A machine that was built must hold together: links have two ends
 * and a way back, names lead back to their nodes, routes lead from end to end, and the simulator carries packets or
 * says why not.
 *
 * The file under test is EMU_FUZZ_FILE or one in /tmp; it stays there after a crash. EMU_TEST_SEED repeats a run.
 * With EMU_LIBFUZZER it is a target of libFuzzer (targets/), whose inputs are whole files.
 */
#include <dirent.h>
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "emunic/fabric/fault_map.h"
#include "emunic/fabric/link.h"
#include "emunic/fabric/machine.h"
#include "emunic/fabric/node_params.h"
#include "emunic/fabric/random.h"
#include "emunic/fabric/route.h"
#include "emunic/model/nic_scenario.h"
#include "tests/fuzz/duration.h"
#include "tests/fuzz/targets/target.h"

#define SEEDS_MAX     16
#define TEXT_MAX      65536
#define LINKS_ASKED   64
#define ROUTES_ASKED  16
#define NODES_MAX     200000 /* larger machines are only built */
#define SIMULATED_MAX 1000   /* smaller ones also carry packets */

static char path[128];
static uint64_t n_files, n_built, n_simulated;

/* ---- what must hold ---- */

static void require(bool is_so, const char *what, const char *detail)
{
    if (is_so)
        return;
    fprintf(stderr, "machine file %s: %s: %s\n", path, what, detail);
    abort();
}

static void check_links(const struct emu_machine *m, struct emu_random *random)
{
    char name[EMU_LINK_NAME_MAX];

    for (int i = 0; i < LINKS_ASKED; i++) {
        uint32_t id = (uint32_t)emu_random_below(random, emu_machine_n_links(m));
        struct emu_link l, back;
        uint32_t reverse, again;

        require(emu_link_get(m, id, &l) == 0 && l.id == id, "link", "not there");
        require(emu_link_reverse(m, id, &reverse) == 0 && reverse < emu_machine_n_links(m), "link", "no way back");
        require(emu_link_get(m, reverse, &back) == 0, "reverse link", "not there");
        require(back.from.kind == l.to.kind && back.from.index == l.to.index && back.to.index == l.from.index,
                "reverse link", "other ends");
        require(emu_link_reverse(m, reverse, &again) == 0 && again == id, "reverse link", "leads elsewhere");
        require(l.lanes > 0 && l.bytes_per_s > 0 && l.data_bytes_per_s <= l.bytes_per_s, "link", "no rate");
        require(emu_link_name(m, id, name, sizeof(name)) == 0, "link", "no name");
    }
}

static void check_nodes(const struct emu_machine *m, struct emu_random *random)
{
    for (int i = 0; i < ROUTES_ASKED; i++) {
        uint32_t src = (uint32_t)emu_random_below(random, emu_machine_n_nodes(m));
        uint32_t dst = (uint32_t)emu_random_below(random, emu_machine_n_nodes(m));
        struct emu_route route;
        char cname[EMU_CNAME_MAX];
        struct emu_link l = { 0 };
        uint32_t nid, at = 0;

        require(emu_machine_cname(m, src, cname, sizeof(cname)) == 0, "node", "no name");
        require(emu_machine_nid_of_cname(m, cname, &nid) == 0 && nid == src, "name of another node", cname);
        require(emu_route_minimal(m, src, dst, emu_random_next(random), &route) == 0, "route", "none");
        require(route.n_links >= 2 && route.n_hops + 2 == route.n_links, "route", "too short");
        for (uint32_t k = 0; k < route.n_links; k++) {
            require(emu_link_get(m, route.links[k], &l) == 0, "route", "link that is not there");
            require(k == 0 ? l.from.kind == EMU_END_NIC && l.from.index == src : l.from.index == at, "route", "torn");
            at = l.to.index;
        }
        require(l.to.kind == EMU_END_NIC && l.to.index == dst, "route", "ends elsewhere");
    }
}

static void check_faults(const struct emu_machine *m, struct emu_random *random)
{
    struct emu_fault_map *map;
    uint32_t router = (uint32_t)emu_random_below(random, emu_machine_n_routers(m));

    require(emu_fault_map_create(m, &map) == 0, "fault map", "none");
    require(emu_fault_map_set_router(map, router, false) == 0 && !emu_fault_map_is_clean(map), "fault map", "clean");
    emu_fault_map_destroy(map);
}

/* Packets may find no way, but the simulator must survive what the loader accepts. */
static void check_packets(const struct emu_machine *m, struct emu_random *random)
{
    struct emu_nic_setup setup = { .machine = m, .mode = emu_random_below(random, EMU_MODES), .seed = 1 };
    const uint32_t n_nodes = emu_machine_n_nodes(m);
    const struct emu_nic_pingpong p = {
        .kind = emu_random_below(random, EMU_NIC_KINDS),
        .a = { (uint32_t)emu_random_below(random, n_nodes), 0 },
        .b = { (uint32_t)emu_random_below(random, n_nodes), 1 },
        .bytes = (uint32_t)emu_random_below(random, 300),
        .rounds = 3,
    };
    struct emu_nic_pingpong_result result;
    int r;

    if (emu_machine_node_params(m) == NULL)
        return;
    setup.host = *emu_machine_node_params(m);
    r = emu_nic_pingpong(&setup, &p, &result);
    require(r == 0 || r == -EIO || r == -EINVAL || r == -ENOTSUP, "packets", "another result");
    n_simulated += r == 0;
}

static void load(const char *spec, struct emu_random *random)
{
    struct emu_machine *m = NULL;
    char err[400];
    int r;

    memset(err, 'x', sizeof(err));
    r = emu_machine_load(spec, NULL, &m, err, sizeof(err));
    n_files++;
    if (r < 0) {
        require(memchr(err, '\0', sizeof(err)) != NULL, "message", "without an end");
        require(r == -EINVAL && err[0] != '\0', "message", err);
        for (const char *c = err; *c != '\0'; c++)
            require((unsigned char)*c >= ' ' && *c != 127, "message", "not one plain line");
        return;
    }
    n_built++;
    require(emu_machine_n_nodes(m) > 0 && emu_machine_n_routers(m) > 0, "machine", "empty");
    (void)emu_machine_node_params(m);
    (void)emu_machine_check_rules(m, NULL, NULL);
    if (emu_machine_n_nodes(m) <= NODES_MAX) {
        check_links(m, random);
        check_nodes(m, random);
        check_faults(m, random);
    }
    if (emu_machine_n_nodes(m) <= SIMULATED_MAX)
        check_packets(m, random);
    emu_machine_destroy(m);
}

static void write_file(const char *text, size_t len)
{
    FILE *file = fopen(path, "we");

    require(file != NULL, "test", "cannot write");
    require(fwrite(text, 1, len, file) == len, "test", "cannot write");
    fclose(file);
}

#ifdef EMU_LIBFUZZER

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct emu_random random = { .state = size };
    uint64_t built = n_built;

    if (path[0] == '\0')
        snprintf(path, sizeof(path), "/tmp/emunic-fuzz-machine-%d.yaml", (int)getpid());
    write_file((const char *)data, size);
    load(path, &random);
    fuzz_count(n_built > built);
    return 0;
}

#else

/* ---- mutations ---- */

struct text {
    char bytes[TEXT_MAX];
    size_t len;
};

static struct text seeds[SEEDS_MAX];
static uint32_t n_seeds;

static const char *const values[] = {
    "0",
    "1",
    "2",
    "3",
    "7",
    "8",
    "15",
    "16",
    "17",
    "63",
    "64",
    "65",
    "127",
    "128",
    "240",
    "241",
    "255",
    "256",
    "1000",
    "65535",
    "65536",
    "4294967295",
    "4294967296",
    "18446744073709551615",
    "18446744073709551616",
    "-1",
    "0.001",
    "0.0001",
    "999.999",
    "1000000",
    ".nan",
    ".inf",
    "~",
    "true",
    "auto",
    "full",
    "bubble",
    "dateline",
    "direction",
    "''",
    "\"1\"",
    "[1]",
    "{a: 1}",
    "*a",
    "&a 1",
    "!!int 3",
    "0x10",
    "010",
    "1e3",
    "+1",
    "1_000",
    "|\n    1",
    "> 1",
    "-",
    "?",
    "",
};

static const char *const overrides[] = {
    "groups=",
    "chassis=",
    "blades=",
    "last_chassis=",
    "cables_per_bundle=",
    "x=",
    "y=",
    "z=",
    "wrap_x=",
    "wrap_y=",
    "wrap_z=",
    "layout=",
    "tiles_x=",
    "tiles_y=",
    "dimensions=",
    "nodes_per_vertex=",
    "nodes=",
    "fabrics=",
    "spines=",
    "links_per_node=",
    "external_ports=",
    "switch_ports=",
    "flow_links=",
    "cabinet_columns=",
    "vc_units=",
    "token_units=",
    "packet_units_max=",
    "dynamic_vcs=",
    "escape=",
    "order=",
    "hop_ns=",
    "clock_ps=",
    "lanes=",
    "kind=",
    "payload_bytes_max=",
    "flit_bits=",
    "host.out_ns=",
    "fifo_bytes=",
    "=",
    "schema=",
};

static const char *pick(struct emu_random *random, const char *const *words, size_t n)
{
    return words[emu_random_below(random, n)];
}

#define PICK(random, words) pick(random, words, sizeof(words) / sizeof((words)[0]))

static void splice(struct text *t, size_t at, size_t removed, const char *added, size_t n_added)
{
    if (at > t->len)
        at = t->len;
    if (removed > t->len - at)
        removed = t->len - at;
    if (t->len - removed + n_added > sizeof(t->bytes))
        return;
    memmove(t->bytes + at + n_added, t->bytes + at + removed, t->len - at - removed);
    memcpy(t->bytes + at, added, n_added);
    t->len += n_added - removed;
}

/* Start of a random line, and its length with the newline. */
static size_t random_line(const struct text *t, struct emu_random *random, size_t *len_out)
{
    size_t start = t->len == 0 ? 0 : emu_random_below(random, t->len);
    const char *end;

    while (start > 0 && t->bytes[start - 1] != '\n')
        start--;
    end = memchr(t->bytes + start, '\n', t->len - start);
    *len_out = end == NULL ? t->len - start : (size_t)(end - (t->bytes + start)) + 1;
    return start;
}

/* Another value for a random key. */
static void change_value(struct text *t, struct emu_random *random)
{
    for (int tries = 0; tries < 20; tries++) {
        size_t len;
        size_t start = random_line(t, random, &len);
        const char *colon = memchr(t->bytes + start, ':', len);
        const char *value = PICK(random, values);
        const char *comment = memchr(t->bytes + start, '#', len);
        size_t at;

        if (colon == NULL || colon[1] != ' ' || (comment != NULL && comment < colon))
            continue;
        at = (size_t)(colon - t->bytes) + 2;
        splice(t, at, strcspn(t->bytes + at, " #\n"), value, strlen(value));
        return;
    }
}

static void mutate(struct text *t, struct emu_random *random)
{
    const struct text *other = &seeds[emu_random_below(random, n_seeds)];
    char piece[512];
    size_t len, start, at;

    switch (emu_random_below(random, 12)) {
    case 0: /* a byte */
        piece[0] = (char)emu_random_next(random);
        splice(t, emu_random_below(random, t->len + 1), emu_random_below(random, 2), piece, 1);
        return;
    case 1: /* a character that YAML knows */
        splice(t, emu_random_below(random, t->len + 1), emu_random_below(random, 2),
               &"-:?,[]{}#&*!|>'\"%@` \t\n\r"[emu_random_below(random, 23)], 1);
        return;
    case 2: /* a line less */
        start = random_line(t, random, &len);
        splice(t, start, len, "", 0);
        return;
    case 3: /* a line of another file, or of this one */
        start = random_line(other, random, &len);
        if (len > sizeof(piece))
            return;
        memcpy(piece, other->bytes + start, len);
        at = random_line(t, random, &start);
        splice(t, at, 0, piece, len);
        return;
    case 4: /* a piece cut out */
        splice(t, emu_random_below(random, t->len + 1), emu_random_below(random, 300), "", 0);
        return;
    case 5: /* a piece repeated */
        len = emu_random_below(random, sizeof(piece));
        start = emu_random_below(random, other->len - sizeof(piece));
        memcpy(piece, other->bytes + start, len);
        splice(t, emu_random_below(random, t->len + 1), 0, piece, len);
        return;
    default:
        change_value(t, random);
        return;
    }
}

static void add_overrides(char *spec, size_t size, struct emu_random *random)
{
    size_t len = strlen(spec);
    char separator = ':';

    for (uint32_t n = (uint32_t)emu_random_below(random, 4); n > 0 && len < size; n--) {
        const char *value = PICK(random, values);

        if (strchr(value, ':') != NULL) /* there the overrides would begin */
            continue;
        len += (size_t)snprintf(spec + len, size - len, "%c%s%s", separator, PICK(random, overrides), value);
        separator = ',';
    }
}

static void run_one(struct emu_random *random)
{
    static struct text t;
    char spec[512];
    uint32_t n = emu_random_below(random, 4) == 0 ? 0 : 1 + (uint32_t)emu_random_below(random, 6);

    t = seeds[emu_random_below(random, n_seeds)];
    for (uint32_t i = 0; i < n; i++)
        mutate(&t, random);
    write_file(t.bytes, t.len);
    snprintf(spec, sizeof(spec), "%s", path);
    if (n == 0 || emu_random_below(random, 4) == 0)
        add_overrides(spec, sizeof(spec), random);
    load(spec, random);
}

/* ---- the run ---- */

static int is_yaml(const struct dirent *entry)
{
    size_t len = strlen(entry->d_name);

    return len > 5 && strcmp(entry->d_name + len - 5, ".yaml") == 0;
}

static int setup(void **state)
{
    struct dirent **names;
    int n = scandir(EMU_TEST_MACHINE_DIR, &names, is_yaml, alphasort);
    const char *given = getenv("EMU_FUZZ_FILE");

    (void)state;
    if (n <= 0)
        return -1;
    for (int i = 0; i < n; i++) {
        char name[512];
        FILE *file;

        snprintf(name, sizeof(name), "%s/%s", EMU_TEST_MACHINE_DIR, names[i]->d_name);
        file = n_seeds < SEEDS_MAX ? fopen(name, "re") : NULL;
        if (file != NULL) {
            seeds[n_seeds].len = fread(seeds[n_seeds].bytes, 1, TEXT_MAX / 2, file);
            fclose(file);
            n_seeds += seeds[n_seeds].len > 1024;
        }
        free(names[i]);
    }
    free(names);
    snprintf(path, sizeof(path), "/tmp/emunic-fuzz-machine-%d.yaml", (int)getpid());
    if (given != NULL)
        snprintf(path, sizeof(path), "%s", given);
    return n_seeds == 0 ? -1 : 0;
}

static int teardown(void **state)
{
    (void)state;
    return unlink(path);
}

static double seconds_now(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void test_changed_machine_files_are_refused_or_hold_together(void **state)
{
    const char *seed = getenv("EMU_TEST_SEED");
    struct emu_random random = { .state = seed != NULL ? strtoull(seed, NULL, 10) : (uint64_t)time(NULL) };
    double end = seconds_now() + (double)fuzz_duration_ns() * 1e-9;

    (void)state;
    print_message("# EMU_TEST_SEED=%llu\n", (unsigned long long)random.state);
    while (seconds_now() < end) {
        for (int i = 0; i < 50; i++)
            run_one(&random);
    }
    print_message("# %llu files, %llu machines built, %llu carried packets\n", (unsigned long long)n_files,
                  (unsigned long long)n_built, (unsigned long long)n_simulated);
    assert_true(n_built > 0);
    assert_true(n_built < n_files);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_changed_machine_files_are_refused_or_hold_together, setup, teardown),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}

#endif
