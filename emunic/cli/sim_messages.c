/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * `emunic sim messages`: what a benchmark of MPI between two processes would measure on a machine, over the sizes of
 * messages, beside the published points.
 */
#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <string.h>

#include "emunic/cli/cli.h"
#include "emunic/cli/options.h"
#include "emunic/cli/server_report.h"
#include "emunic/cli/sim_traffic.h"
#include "emunic/cli/text_table.h"
#include "emunic/cli/verb_sim.h"
#include "emunic/experiments/message_curve.h"

struct messages_request {
    uint64_t from, to; /* UINT64_MAX: chosen */
    uint64_t min, max;
    uint64_t seed;
    const char *mode;
    bool is_json;
};

static const struct emu_option options[] = {
    { "from", 0, "NID", "the node of one process (default: 0)",
      EMU_OPTION_NUMBER(struct messages_request, from, 0, UINT32_MAX) },
    { "to", 0, "NID", "of the other (default: the first node behind another router)",
      EMU_OPTION_NUMBER(struct messages_request, to, 0, UINT32_MAX) },
    { "min", 0, "BYTES", "smallest message (default: 1)",
      EMU_OPTION_NUMBER(struct messages_request, min, 1, EMU_MESSAGE_BYTES_MAX) },
    { "max", 0, "BYTES", "largest message (default: 4194304)",
      EMU_OPTION_NUMBER(struct messages_request, max, 1, EMU_MESSAGE_BYTES_MAX) },
    { "mode", 'm', "M", "routing, as of `sim traffic` (default: adaptive-0)",
      EMU_OPTION_TEXT(struct messages_request, mode) },
    { "seed", 's', "N", "of all random choices (default: 1)",
      EMU_OPTION_NUMBER(struct messages_request, seed, 0, UINT64_MAX) },
    { "json", 'j', NULL, "one JSON object: {\"schema\": 1, \"points\": [...], \"published\": [...]}",
      EMU_OPTION_SET(struct messages_request, is_json) },
    { 0 },
};

static const struct emu_command command = {
    .verb = "sim",
    .usage = "emunic sim messages MACHINE [OPTION]...",
    .about =
        "Send messages of MPI of rising size between two processes of a machine: ping-pong, streams one way and both\n"
        "ways, and swaps (both send at once). Rates are in 10^6 bytes/s, those of both ways with both directions.\n"
        "Published figures stand beside. MACHINE is a name, a path, or either with overrides; it needs a host\n"
        "section. Its keys eager_bytes_max, copy_mbs, rendezvous and registration are the protocol.\n",
    .options = options,
    .after = "Example:\n"
             "  emunic sim messages aries\n"
             "  emunic sim messages aries:registration=miss --min 4096\n",
    .words = EMU_WORDS_ANYWHERE,
};

struct curve {
    const struct emu_machine *machine;
    struct emu_message_pair pair;
    struct emu_message_point points[EMU_MESSAGE_SIZES_MAX];
    size_t n_points;
};

static bool is_shown(const struct curve *c, const struct emu_message_published *p)
{
    return strcmp(p->machine, emu_machine_name(c->machine)) == 0 && c->n_points > 0 && p->bytes >= c->points[0].bytes &&
           p->bytes <= c->points[c->n_points - 1].bytes;
}

/* ---- output ---- */

static const struct emu_cli_column columns[] = {
    { "BYTES", true },         { "PROTOCOL", false },      { "LATENCY_US", true },
    { "PINGPONG_MB/S", true }, { "STREAM_MB/S", true },    { "SWAP_US", true },
    { "SWAP_MB/S", true },     { "BOTH_WAYS_MB/S", true }, { "PUBLISHED", false },
};

static void add(struct emu_cli_table *table, const char *format, double value)
{
    char text[48];

    snprintf(text, sizeof(text), format, value);
    emu_cli_table_text(table, text);
}

static void add_published(struct emu_cli_table *table, const struct curve *c, uint32_t bytes)
{
    const struct emu_message_published *p;
    char text[200] = "";

    for (size_t i = 0; (p = emu_message_published_at(i)); i++) {
        size_t len = strlen(text);

        if (p->bytes == bytes && is_shown(c, p))
            snprintf(text + len, sizeof(text) - len, "%s%s %g (%s)", len > 0 ? ", " : "", p->what, p->value, p->source);
    }
    emu_cli_table_text(table, text[0] ? text : "-");
}

static int print_text(const struct curve *c)
{
    struct emu_cli_table table;
    int r;

    printf("machine %s: node %u and node %u\n", emu_machine_name(c->machine), c->pair.from.nid, c->pair.to.nid);
    emu_cli_table_init(&table, columns, sizeof(columns) / sizeof(columns[0]));
    for (size_t i = 0; i < c->n_points; i++) {
        const struct emu_message_point *p = &c->points[i];

        emu_cli_table_number(&table, p->bytes);
        emu_cli_table_text(&table, p->is_rendezvous ? "rendezvous" : "eager");
        add(&table, "%.3f", p->latency_us);
        add(&table, "%.1f", p->pingpong_mb_per_s);
        add(&table, "%.1f", p->stream_mb_per_s);
        add(&table, "%.3f", p->swap_us);
        add(&table, "%.1f", p->swap_mb_per_s);
        add(&table, "%.1f", p->both_mb_per_s);
        add_published(&table, c, p->bytes);
    }
    r = emu_cli_table_print(&table, 0, stdout);
    emu_cli_table_fini(&table);
    if (r == 0 && fflush(stdout) == EOF)
        r = -errno;
    return r < 0 ? emu_cli_fail("sim", "messages: cannot print: %s", strerror(-r)) : EMU_EXIT_DONE;
}

static json_t *points_json(const struct curve *c)
{
    json_t *list = json_array();

    for (size_t i = 0; i < c->n_points; i++) {
        const struct emu_message_point *p = &c->points[i];

        json_array_append_new(list, json_pack("{s:I, s:s, s:f, s:f, s:f, s:f, s:f, s:f}", "bytes", (json_int_t)p->bytes,
                                              "protocol", p->is_rendezvous ? "rendezvous" : "eager", "latency_us",
                                              p->latency_us, "pingpong_mb_per_s", p->pingpong_mb_per_s,
                                              "stream_mb_per_s", p->stream_mb_per_s, "swap_us", p->swap_us,
                                              "swap_mb_per_s", p->swap_mb_per_s, "both_mb_per_s", p->both_mb_per_s));
    }
    return list;
}

static json_t *published_json(const struct curve *c)
{
    json_t *list = json_array();
    const struct emu_message_published *p;

    for (size_t i = 0; (p = emu_message_published_at(i)); i++) {
        if (is_shown(c, p))
            json_array_append_new(list, json_pack("{s:I, s:s, s:f, s:s}", "bytes", (json_int_t)p->bytes, "what",
                                                  p->what, "value", p->value, "source", p->source));
    }
    return list;
}

static int print_json(const struct curve *c)
{
    json_t *answer = json_pack("{s:i, s:s, s:I, s:I, s:o, s:o}", "schema", 1, "machine", emu_machine_name(c->machine),
                               "from", (json_int_t)c->pair.from.nid, "to", (json_int_t)c->pair.to.nid, "points",
                               points_json(c), "published", published_json(c));
    int status = answer ? emu_cli_print_json("sim", answer, stdout) : emu_cli_fail("sim", "messages: out of memory");

    json_decref(answer);
    return status;
}

/* ---- the verb ---- */

static int choose_pair(const struct messages_request *q, struct curve *c)
{
    uint32_t n_nodes = emu_machine_n_nodes(c->machine);
    int r = emu_message_pair_of(c->machine, &c->pair);

    if ((q->from != UINT64_MAX && q->from >= n_nodes) || (q->to != UINT64_MAX && q->to >= n_nodes))
        return emu_cli_fail("sim", "messages: %s has nodes 0 to %u", emu_machine_name(c->machine), n_nodes - 1);
    if (q->from != UINT64_MAX)
        c->pair.from = (struct emu_nic_proc){ .nid = (uint32_t)q->from };
    if (q->to != UINT64_MAX)
        c->pair.to = (struct emu_nic_proc){ .nid = (uint32_t)q->to };
    if (r < 0 && q->to == UINT64_MAX)
        return emu_cli_fail("sim", "messages: %s has one router; --to is needed", emu_machine_name(c->machine));
    if (c->pair.from.nid == c->pair.to.nid)
        c->pair.to.proc = 1;
    return EMU_EXIT_DONE;
}

static int measure(const struct messages_request *q, enum emu_route_mode mode, struct curve *c)
{
    const struct emu_nic_setup setup = {
        .machine = c->machine, .host = *emu_machine_node_params(c->machine), .mode = mode, .seed = q->seed
    };
    uint32_t sizes[EMU_MESSAGE_SIZES_MAX];
    size_t n = emu_message_sizes(c->machine, (uint32_t)q->min, (uint32_t)q->max, sizes);

    for (size_t i = 0; i < n; i++) {
        int r = emu_message_point(&setup, &c->pair, sizes[i], &c->points[c->n_points++]);

        if (r < 0)
            return emu_cli_fail("sim", "messages: %u bytes: %s", sizes[i], strerror(-r));
    }
    return EMU_EXIT_DONE;
}

static int run_machine(const struct emu_machine *m, const struct messages_request *q, enum emu_route_mode mode)
{
    struct curve c = { .machine = m };
    int status;

    if (!emu_machine_node_params(m))
        return emu_cli_fail("sim", "messages: %s has no host section", emu_machine_name(m));
    status = choose_pair(q, &c);
    if (status == EMU_EXIT_DONE)
        status = measure(q, mode, &c);
    if (status == EMU_EXIT_DONE)
        status = q->is_json ? print_json(&c) : print_text(&c);
    return status;
}

int emu_cli_sim_messages(int argc, char **argv)
{
    struct messages_request q = {
        .from = UINT64_MAX, .to = UINT64_MAX, .min = 1, .max = EMU_MESSAGE_BYTES_MAX, .seed = 1, .mode = "adaptive-0"
    };
    enum emu_route_mode mode;
    struct emu_machine *m;
    int first;
    int status = emu_options_parse(&command, argc, argv, &q, &first);

    if (status != EMU_PROCEED)
        return status;
    if (first == argc)
        return emu_cli_usage("sim", "messages: the machine is missing");
    if (first + 1 < argc)
        return emu_cli_usage("sim", "messages: '%s': takes one machine", argv[first + 1]);
    if (q.min > q.max)
        return emu_cli_usage("sim", "messages: --min is above --max");
    if (!emu_cli_parse_mode(q.mode, &mode))
        return emu_cli_usage("sim", "messages: --mode: no mode '%s'", q.mode);
    status = emu_cli_load_machine("sim", "messages", argv[first], &m);
    if (status != EMU_EXIT_DONE)
        return status;
    status = run_machine(m, &q, mode);
    emu_machine_destroy(m);
    return status;
}
