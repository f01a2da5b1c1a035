/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * `emunic sim`: the word behind the verb tells which part of it; `list` is here, the others have files of their own.
 */
#include "emunic/cli/verb_sim.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "emunic/cli/cli.h"
#include "emunic/cli/options.h"
#include "emunic/cli/server_report.h"
#include "emunic/cli/sim_world.h"
#include "emunic/cli/text_table.h"
#include "emunic/experiments/experiment.h"
#include "emunic/experiments/ledger.h"

static const struct emu_option no_options[] = { { 0 } };

static const struct emu_command command = {
    .verb = "sim",
    .usage = "emunic sim list [--json]\n"
             "emunic sim run ID...|all [OPTION]...\n"
             "emunic sim explain MACHINE [--json]\n"
             "emunic sim traffic MACHINE [OPTION]...\n"
             "emunic sim messages MACHINE [OPTION]...\n"
             "emunic sim audit MACHINE [OPTION]...",
    .about =
        "Simulate the network of a machine by itself, packet by packet in virtual time: the experiments that hold\n"
        "the model against the published figures, and any other traffic. No program runs, no daemon is needed.\n"
        "\n"
        "  list     the experiments\n"
        "  run      run experiments, one EXP line per figure with a verdict; status 1 if one fails\n"
        "  explain  each parameter of a machine file with value, unit, source and mark; also `sim --explain MACHINE`\n"
        "  traffic  a traffic pattern at given loads: throughput, latency, link loads, plots\n"
        "  messages messages of MPI between two processes: latency and bandwidth over size, beside published points\n"
        "  audit    can the network deadlock? the graph of its channels, and packets walked through it\n"
        "\n"
        "`emunic sim WORD --help` tells the options of each.\n",
    .options = no_options,
    .after = "Example:\n"
             "  emunic sim run XC-24 --seed 7\n",
    .words = EMU_WORDS_LAST,
};

struct list_request {
    bool is_json;
};

static const struct emu_option list_options[] = {
    { "json", 'j', NULL, "one JSON object: {\"schema\": 1, \"experiments\": [...]}",
      EMU_OPTION_SET(struct list_request, is_json) },
    { 0 },
};

static const struct emu_command list_command = {
    .verb = "sim",
    .usage = "emunic sim list [--json]",
    .about =
        "List the experiments in the order of the machine specification. Kinds: A counted or computed, S simulated,\n"
        "K fitted, P predicted with fitted parameters, Q shape only, F shown by real processes. Those that need real\n"
        "processes are marked live and are not run by `emunic sim run`.\n",
    .options = list_options,
    .after = "Example:\n"
             "  emunic sim list | grep gemini\n",
    .words = EMU_WORDS_LAST,
};

static const char *needs_name(const struct emu_experiment *e)
{
    static const char *const names[] = { "analytic", "packets", "live" };

    return names[e->needs];
}

static const struct emu_cli_column list_columns[] = {
    { "ID", false }, { "MACHINE", false }, { "KIND", false }, { "NEEDS", false }, { "WHAT", false },
};

static int print_list(void)
{
    const struct emu_experiment *e;
    struct emu_cli_table table;
    int r;

    emu_cli_table_init(&table, list_columns, sizeof(list_columns) / sizeof(list_columns[0]));
    for (size_t i = 0; (e = emu_experiment_at(i)); i++) {
        emu_cli_table_text(&table, e->id);
        emu_cli_table_text(&table, e->machine);
        emu_cli_table_text(&table, e->kinds);
        emu_cli_table_text(&table, needs_name(e));
        emu_cli_table_text(&table, e->summary);
    }
    r = emu_cli_table_print(&table, 0, stdout);
    emu_cli_table_fini(&table);
    if (r == 0 && fflush(stdout) == EOF)
        r = -errno;
    return r < 0 ? emu_cli_fail("sim", "list: cannot print: %s", strerror(-r)) : EMU_EXIT_DONE;
}

static json_t *ledger_json(void)
{
    json_t *rows = json_array();

    for (const struct emu_ledger_row *row = emu_ledger; row->machine; row++) {
        json_t *json =
            json_pack("{s:s, s:s, s:s, s:s, s:s}", "machine", row->machine, "parameter", row->parameter, "sort",
                      emu_ledger_sort_name(row->sort), "experiment", row->experiment, "chosen_by", row->chosen_by);

        if (row->value != 0)
            json_object_set_new(json, "value", json_real(row->value));
        json_array_append_new(rows, json);
    }
    return rows;
}

static int print_json_list(void)
{
    json_t *rows = json_array();
    const struct emu_experiment *e;
    json_t *answer;
    int status;

    for (size_t i = 0; (e = emu_experiment_at(i)); i++)
        json_array_append_new(rows, json_pack("{s:s, s:s, s:s, s:s, s:s, s:s}", "id", e->id, "machine", e->machine,
                                              "kinds", e->kinds, "classes", e->classes, "needs", needs_name(e),
                                              "summary", e->summary));
    answer = json_pack("{s:i, s:o, s:o}", "schema", 1, "experiments", rows, "ledger", ledger_json());
    status = answer ? emu_cli_print_json("sim", answer, stdout) : emu_cli_fail("sim", "list: out of memory");
    json_decref(answer);
    return status;
}

int emu_cli_sim_list(int argc, char **argv)
{
    struct list_request request = { 0 };
    int first;
    int status = emu_options_parse(&list_command, argc, argv, &request, &first);

    if (status != EMU_PROCEED)
        return status;
    if (first < argc)
        return emu_cli_usage("sim", "list: '%s': takes options only", argv[first]);
    return request.is_json ? print_json_list() : print_list();
}

/* Of the processes of a job the first speaks, as far as their launchers tell which that is. */
static bool speaks(void)
{
    static const char *const names[] = { "PMIX_RANK", "PMI_RANK", "OMPI_COMM_WORLD_RANK" };

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        const char *rank = getenv(names[i]);

        if (rank)
            return strcmp(rank, "0") == 0;
    }
    return true;
}

int emu_cli_sim_become_mpi(int argc, char **argv)
{
    char path[PATH_MAX];
    bool is_asked = false;
    int r;

    for (int i = 1; i < argc; i++)
        is_asked |= strcmp(argv[i], "--mpi") == 0;
    if (!is_asked)
        return EMU_PROCEED;
    r = emu_cli_sim_mpi(path);
    if (r == 0) {
        execv(path, argv);
        r = -errno;
    }
    if (speaks())
        (void)emu_cli_fail("sim", "--mpi: %s: %s", path,
                           r == -ENOENT ? "this emunic was built without MPI" : strerror(-r));
    return EMU_EXIT_FAILED;
}

int emu_verb_sim(int argc, char **argv)
{
    const char *word = argc > 1 ? argv[1] : NULL;

    if (!word)
        return emu_cli_usage("sim", "one of list, run, explain, traffic, messages, audit is missing");
    if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0) {
        emu_options_print_help(&command, stdout);
        return EMU_EXIT_DONE;
    }
    if (strcmp(word, "list") == 0)
        return emu_cli_sim_list(argc - 1, argv + 1);
    if (strcmp(word, "run") == 0)
        return emu_cli_sim_run(argc - 1, argv + 1);
    if (strcmp(word, "explain") == 0 || strcmp(word, "--explain") == 0)
        return emu_cli_sim_explain(argc - 1, argv + 1);
    if (strcmp(word, "traffic") == 0) {
        int status = emu_cli_sim_become_mpi(argc - 1, argv + 1);

        return status != EMU_PROCEED ? status : emu_cli_sim_traffic(argc - 1, argv + 1);
    }
    if (strcmp(word, "messages") == 0)
        return emu_cli_sim_messages(argc - 1, argv + 1);
    if (strcmp(word, "audit") == 0)
        return emu_cli_sim_audit(argc - 1, argv + 1);
    if (word[0] == '-')
        return emu_cli_usage("sim", "%s: no such option", word);
    return emu_cli_usage("sim", "'%s' is none of list, run, explain, traffic, messages, audit", word);
}
