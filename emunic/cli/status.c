/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * `emunic status`: what running servers say about themselves, as tables or as their own JSON.
 */
#include <getopt.h>
#include <string.h>

#include "emunic/cli/cli.h"
#include "emunic/cli/report.h"

static const char help[] =
    "usage: emunic status [--server NAME] [--json]\n"
    "\n"
    "Show the nodes, domains, ports and counters of running daemons.\n"
    "\n"
    "  -s, --server NAME  this one (default: all of this user on this host)\n"
    "  -j, --json         one JSON object: {\"schema\": 1, \"servers\": [...]}\n"
    "  -h, --help         this text\n"
    "\n"
    "Example:\n"
    "  emunic status --json | jq '.servers[].domains[].ports'\n";

static const struct option options[] = {
    { "server", required_argument, NULL, 's' },
    { "json", no_argument, NULL, 'j' },
    { "help", no_argument, NULL, 'h' },
    { 0 },
};

static int print_tables(const json_t *answers)
{
    const json_t *servers = json_object_get(answers, "servers");
    const json_t *report;
    size_t i;
    int r = 0;

    if (json_array_size(servers) == 0)
        fprintf(stderr, "emunic status: no server of this user runs here\n");
    json_array_foreach(servers, i, report) {
        if (r == 0)
            r = emu_cli_print_status(report, stdout);
    }
    return r < 0 || fflush(stdout) == EOF ? emu_cli_fail("status", "cannot print: %s", strerror(-r)) : EMU_EXIT_DONE;
}

int emu_verb_status(int argc, char **argv)
{
    const char *server = NULL;
    bool is_json = false;
    json_t *answers;
    int status;
    int option;

    opterr = 0;
    while ((option = getopt_long(argc, argv, "+:s:jh", options, NULL)) != -1) {
        switch (option) {
        case 's':
            server = optarg;
            break;
        case 'j':
            is_json = true;
            break;
        case 'h':
            fputs(help, stdout);
            return EMU_EXIT_DONE;
        default:
            return emu_cli_bad_option("status", option, argv);
        }
    }
    if (optind < argc)
        return emu_cli_usage("status", "'%s': takes options only", argv[optind]);
    status = emu_cli_collect("status", server, EMU_MSG_STATUS, &answers);
    if (status != EMU_EXIT_DONE)
        return status;
    status = is_json ? emu_cli_print_json("status", answers, stdout) : print_tables(answers);
    json_decref(answers);
    return status;
}
