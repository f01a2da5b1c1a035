/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * `emunic status`: what running servers say about themselves and their machines, as tables or as their own JSON.
 */
#include <getopt.h>

#include "emunic/cli/cli.h"
#include "emunic/cli/report.h"

static const char help[] = "usage: emunic status [--server NAME] [--json]\n"
                           "\n"
                           "Show the nodes, domains, ports and counters of running daemons. One that is a host of\n"
                           "several tells of all of them.\n"
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

static int print_report(const json_t *report, const void *what)
{
    (void)what;
    return emu_cli_print_status(report, stdout);
}

int emu_verb_status(int argc, char **argv)
{
    const char *server = NULL;
    bool is_json = false;
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
            return emu_cli_bad_option("status", option, argv, options);
        }
    }
    if (optind < argc)
        return emu_cli_usage("status", "'%s': takes options only", argv[optind]);
    return emu_cli_show("status", server, EMU_MSG_STATUS, is_json, print_report, NULL);
}
