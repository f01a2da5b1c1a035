/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * `emunic sim audit`: can the network of a machine deadlock?
 *
 * The audit of the fabric judges the graph of channels, then packets are walked through the routing in each mode and
 * class of traffic (fabric/sim/audit.h). It holds for a machine of the user's as for ours, broken or whole.
 */
#include "emunic/cli/verb_sim.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "emunic/cli/cli.h"
#include "emunic/cli/options.h"
#include "emunic/cli/server_report.h"
#include "emunic/cli/sim_faults.h"
#include "emunic/cli/sim_traffic.h"
#include "emunic/cli/text_table.h"
#include "emunic/fabric/link.h"
#include "emunic/fabric/sim/audit.h"
#include "emunic/fabric/topology.h"

#define PAIRS 2000 /* of each mode and class: a whole XC takes seconds */

struct audit_request {
    const char *faults_path;
    uint64_t n_pairs;
    uint64_t n_channels; /* of a cycle, shown */
    uint64_t seed;
    bool is_json;
};

static const struct emu_option options[] = {
    { "faults", 'f', "FILE", "what is broken (emunic-sim(1))", EMU_OPTION_TEXT(struct audit_request, faults_path) },
    { "pairs", 'p', "N", "random pairs of nodes for each mode and class; 0: every pair (default: 2000)",
      EMU_OPTION_NUMBER(struct audit_request, n_pairs, 0, 1000000000) },
    { "channels", 'c', "N", "channels of a cycle that are shown (default: 20)",
      EMU_OPTION_NUMBER(struct audit_request, n_channels, 0, 1000000) },
    { "seed", 's', "N", "of all random choices (default: 1)",
      EMU_OPTION_NUMBER(struct audit_request, seed, 0, UINT64_MAX) },
    { "json", 'j', NULL, "one JSON object: {\"schema\": 1, \"graph\": {...}, \"cycle\": [...], \"walks\": [...]}",
      EMU_OPTION_SET(struct audit_request, is_json) },
    { 0 },
};

static const struct emu_command command = {
    .verb = "sim",
    .usage = "emunic sim audit MACHINE [OPTION]...",
    .about =
        "Audit the routing of a machine for deadlock. MACHINE is a name, a path, or either with overrides. The graph\n"
        "of channels (a virtual channel of a link) tells which may wait for which: the escape channels must have no\n"
        "cycle but bubble rings, and each other channel must lead on to one. Then packets walk through the routing in\n"
        "each mode and class: each step must be one that the graph has, with an escape beside it, and each pair must\n"
        "arrive. Status 1 if something is found.\n",
    .options = options,
    .after = "Example:\n"
             "  emunic sim audit aries:groups=4,cables_per_bundle=2\n",
    .words = EMU_WORDS_ANYWHERE,
};

/* ---- findings ---- */

static const char *const class_names[EMU_TRAFFIC_CLASSES] = { "request", "response" };

struct walk_row {
    enum emu_route_mode mode;
    enum emu_traffic_class traffic_class;
    struct emu_audit_walks walks;
};

struct findings {
    const struct emu_machine *machine;
    const struct emu_audit *audit;
    struct walk_row rows[EMU_MODES * EMU_TRAFFIC_CLASSES];
    size_t n_rows;
};

static int walk_all(struct emu_audit *audit, const struct audit_request *q, struct findings *f)
{
    for (int mode = 0; mode < EMU_MODES; mode++) {
        for (int class = 0; class < EMU_TRAFFIC_CLASSES; class ++) {
            struct walk_row *row = &f->rows[f->n_rows++];
            struct emu_audit_walk_options walk = {
                .mode = (enum emu_route_mode)mode,
                .traffic_class = (enum emu_traffic_class) class,
                .n_pairs = q->n_pairs,
                .packet_units_max = emu_packet_units(f->machine, emu_machine_nic(f->machine)->format.payload_bytes_max),
                .seed = q->seed,
            };
            int r;

            row->mode = walk.mode;
            row->traffic_class = walk.traffic_class;
            r = emu_audit_walk(audit, &walk, NULL, NULL, &row->walks);
            if (r < 0)
                return r;
        }
    }
    return 0;
}

static bool is_good(const struct findings *f)
{
    bool is_clean = emu_audit_result(f->audit)->is_free;

    for (size_t i = 0; i < f->n_rows; i++)
        is_clean = is_clean && f->rows[i].walks.is_clean;
    return is_clean;
}

/* ---- output ---- */

static const struct emu_cli_column columns[] = {
    { "MODE", false },     { "CLASS", false },    { "WALKS", true },   { "ARRIVED", true },
    { "NO WAY", true },    { "DEAD ENDS", true }, { "LOST", true },    { "UNDECLARED", true },
    { "NO ESCAPE", true }, { "RING RULE", true }, { "LONGEST", true }, { "TROUBLE", false },
};

static void add_row(struct emu_cli_table *table, const struct walk_row *row)
{
    const struct emu_audit_walks *w = &row->walks;
    char trouble[64] = "-";

    if (!w->is_clean)
        snprintf(trouble, sizeof(trouble), "nid %u to %u", w->bad_src_nid, w->bad_dst_nid);
    emu_cli_table_text(table, emu_cli_mode_name(row->mode));
    emu_cli_table_text(table, class_names[row->traffic_class]);
    emu_cli_table_number(table, w->n_walks);
    emu_cli_table_number(table, w->n_arrived);
    emu_cli_table_number(table, w->n_unroutable);
    emu_cli_table_number(table, w->n_dead_ends);
    emu_cli_table_number(table, w->n_lost);
    emu_cli_table_number(table, w->n_undeclared);
    emu_cli_table_number(table, w->n_no_escape);
    emu_cli_table_number(table, w->n_unguarded + w->n_ring_too_small);
    emu_cli_table_number(table, w->longest_hops);
    emu_cli_table_text(table, trouble);
}

static void print_line(void *ctx, const char *text)
{
    (void)ctx;
    puts(text);
}

static int print_text(const struct findings *f, const struct audit_request *q)
{
    struct emu_cli_table table;
    int r;

    printf("machine %s: %u nodes, %u routers, %u links\n", emu_machine_name(f->machine),
           emu_machine_n_nodes(f->machine), emu_machine_n_routers(f->machine), emu_machine_n_links(f->machine));
    emu_audit_print(f->audit, q->n_channels, print_line, NULL);
    emu_cli_table_init(&table, columns, sizeof(columns) / sizeof(columns[0]));
    for (size_t i = 0; i < f->n_rows; i++)
        add_row(&table, &f->rows[i]);
    r = emu_cli_table_print(&table, 0, stdout);
    emu_cli_table_fini(&table);
    puts(is_good(f) ? "nothing found" : "FOUND: see above");
    if (r == 0 && fflush(stdout) == EOF)
        r = -errno;
    return r < 0 ? emu_cli_fail("sim", "audit: cannot print: %s", strerror(-r)) : EMU_EXIT_DONE;
}

static json_t *graph_json(const struct emu_audit_result *r)
{
    return json_pack("{s:I, s:I, s:I, s:I, s:i, s:i, s:I, s:I, s:b, s:b}", "channels", (json_int_t)r->n_channels,
                     "escape_channels", (json_int_t)r->n_escape_channels, "dependencies", (json_int_t)r->n_dependencies,
                     "escape_dependencies", (json_int_t)r->n_escape_dependencies, "rings", (int)r->n_rings,
                     "other_cycles", (int)r->n_other_cycles, "stranded", (json_int_t)r->n_stranded, "impossible",
                     (json_int_t)r->n_impossible, "acyclic", r->is_acyclic, "free", r->is_free);
}

static json_t *cycle_json(const struct findings *f, const struct audit_request *q)
{
    const struct emu_audit_channel *cycle;
    size_t len = emu_audit_cycle(f->audit, &cycle);
    json_t *list = json_array();

    for (size_t i = 0; i < len && i < q->n_channels; i++) {
        char name[EMU_LINK_NAME_MAX];

        if (emu_link_name(f->machine, cycle[i].link, name, sizeof(name)) < 0)
            snprintf(name, sizeof(name), "link %u", cycle[i].link);
        json_array_append_new(
            list, json_pack("{s:s, s:i, s:i}", "link", name, "id", (int)cycle[i].link, "vc", (int)cycle[i].vc));
    }
    return list;
}

static json_t *walks_json(const struct findings *f)
{
    json_t *list = json_array();

    for (size_t i = 0; i < f->n_rows; i++) {
        const struct walk_row *row = &f->rows[i];
        const struct emu_audit_walks *w = &row->walks;

        json_array_append_new(list, json_pack("{s:s, s:s, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:I, s:i, s:b}", "mode",
                                              emu_cli_mode_name(row->mode), "class", class_names[row->traffic_class],
                                              "walks", (json_int_t)w->n_walks, "arrived", (json_int_t)w->n_arrived,
                                              "unroutable", (json_int_t)w->n_unroutable, "dead_ends",
                                              (json_int_t)w->n_dead_ends, "lost", (json_int_t)w->n_lost, "undeclared",
                                              (json_int_t)w->n_undeclared, "no_escape", (json_int_t)w->n_no_escape,
                                              "ring_rule", (json_int_t)(w->n_unguarded + w->n_ring_too_small),
                                              "longest_hops", (int)w->longest_hops, "clean", w->is_clean));
    }
    return list;
}

static int print_json(const struct findings *f, const struct audit_request *q)
{
    json_t *answer = json_pack("{s:i, s:s, s:b, s:o, s:o, s:o}", "schema", 1, "machine", emu_machine_name(f->machine),
                               "good", is_good(f), "graph", graph_json(emu_audit_result(f->audit)), "cycle",
                               cycle_json(f, q), "walks", walks_json(f));
    int status = answer ? emu_cli_print_json("sim", answer, stdout) : emu_cli_fail("sim", "audit: out of memory");

    json_decref(answer);
    return status;
}

/* ---- the verb ---- */

static int audit_machine(const struct emu_machine *m, const struct emu_fault_map *faults, const struct audit_request *q)
{
    struct findings f = { .machine = m };
    struct emu_audit *audit;
    int status;
    int r;

    if (!m->topology->routing)
        return emu_cli_fail("sim", "audit: %s has no routing of packets", emu_machine_name(m));
    r = emu_audit_create(m, m->topology->routing, faults, &audit);
    if (r < 0)
        return emu_cli_fail("sim", "audit: %s", strerror(-r));
    f.audit = audit;
    r = walk_all(audit, q, &f);
    if (r < 0)
        status = emu_cli_fail("sim", "audit: %s", strerror(-r));
    else
        status = q->is_json ? print_json(&f, q) : print_text(&f, q);
    if (status == EMU_EXIT_DONE && !is_good(&f))
        status = EMU_EXIT_FAILED;
    emu_audit_destroy(audit);
    return status;
}

int emu_cli_sim_audit(int argc, char **argv)
{
    struct audit_request q = { .n_pairs = PAIRS, .n_channels = 20, .seed = 1 };
    struct emu_fault_map *faults = NULL;
    struct emu_machine *m;
    char err[512];
    int first;
    int status = emu_options_parse(&command, argc, argv, &q, &first);

    if (status != EMU_PROCEED)
        return status;
    if (first == argc)
        return emu_cli_usage("sim", "audit: the machine is missing");
    if (first + 1 < argc)
        return emu_cli_usage("sim", "audit: '%s': takes one machine", argv[first + 1]);
    status = emu_cli_load_machine("sim", "audit", argv[first], &m);
    if (status != EMU_EXIT_DONE)
        return status;
    if (q.faults_path && emu_cli_read_faults(q.faults_path, m, &faults, err, sizeof(err)) < 0)
        status = emu_cli_fail("sim", "%s", err);
    else
        status = audit_machine(m, faults, &q);
    emu_fault_map_destroy(faults);
    emu_machine_destroy(m);
    return status;
}
