/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * `emunic links`: what each link has carried, computed by the server from the flow counters when asked.
 */
#include <errno.h>

#include "emunic/cli/cli.h"
#include "emunic/cli/heat.h"
#include "emunic/cli/options.h"
#include "emunic/cli/server_report.h"

struct request {
    const char *server; /* NULL: all */
    bool is_json;
    bool with_paths;
    const char *heat; /* folder; NULL: none */
};

static const struct emu_option options[] = {
    { "server", 's', "NAME", "of this daemon (default: all of this user on this host)",
      EMU_OPTION_TEXT(struct request, server) },
    { "paths", 'p', NULL, "show the flows and the path of their messages as well",
      EMU_OPTION_SET(struct request, with_paths) },
    { "heat", 0, "FOLDER", "draw a heat map of the links as well: links-SERVER.svg, .png and .tsv in that folder",
      EMU_OPTION_TEXT(struct request, heat) },
    { "json", 'j', NULL, "one JSON object: {\"schema\": 1, \"servers\": [...]}, flows included",
      EMU_OPTION_SET(struct request, is_json) },
    { 0 },
};

static const struct emu_command command = {
    .verb = "links",
    .usage = "emunic links [--server NAME] [--paths] [--json] [--heat FOLDER]",
    .about =
        "Show the load, lanes and faults of each link that has carried something or had a fault, the busiest first;\n"
        "of all hosts, if the machine has several.\n",
    .options = options,
    .after = "Example:\n"
             "  emunic links --paths --server user-1000\n",
};

static int print_report(const json_t *report, const void *wanted)
{
    const struct request *request = wanted;
    int r = 0;

    printf("server %s\n", json_string_value(json_object_get(report, "server")));
    if (json_array_size(json_object_get(report, "flows")) == 0)
        printf("nothing has been sent\n");
    if (request->with_paths)
        r = emu_cli_print_paths(report, stdout);
    if (r == 0)
        r = emu_cli_print_links(report, stdout);
    if (r == 0 && request->heat && emu_heat_of_report(report, request->heat) != EMU_EXIT_DONE)
        r = -EIO;
    return r;
}

int emu_verb_links(int argc, char **argv)
{
    struct request request = { 0 };
    int status = emu_options_parse(&command, argc, argv, &request, NULL);

    if (status != EMU_PROCEED)
        return status;
    if (request.is_json && request.heat)
        return emu_cli_usage("links", "--heat: is for the table, not for --json");
    return emu_cli_show("links", request.server, EMU_MSG_LINKS, request.is_json, print_report, &request);
}
