/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * `emunic status`: what running servers say about themselves and their machines, as tables or as their own JSON.
 */
#include "emunic/cli/cli.h"
#include "emunic/cli/options.h"
#include "emunic/cli/server_report.h"

struct request {
    const char *server; /* NULL: all */
    bool is_json;
};

static const struct emu_option options[] = {
    { "server", 's', "NAME", "this one (default: all of this user on this host)",
      EMU_OPTION_TEXT(struct request, server) },
    { "json", 'j', NULL, "one JSON object: {\"schema\": 1, \"servers\": [...]}",
      EMU_OPTION_SET(struct request, is_json) },
    { 0 },
};

static const struct emu_command command = {
    .verb = "status",
    .usage = "emunic status [--server NAME] [--json]",
    .about = "Show the nodes, domains, ports and counters of running daemons. One that is a host of\n"
             "several tells of all of them.\n",
    .options = options,
    .after = "Example:\n"
             "  emunic status --json | jq '.servers[].domains[].ports'\n",
};

static int print_report(const json_t *report, const void *what)
{
    (void)what;
    return emu_cli_print_status(report, stdout);
}

int emu_verb_status(int argc, char **argv)
{
    struct request request = { 0 };
    int status = emu_options_parse(&command, argc, argv, &request, NULL);

    if (status != EMU_PROCEED)
        return status;
    return emu_cli_show("status", request.server, EMU_MSG_STATUS, request.is_json, print_report, NULL);
}
