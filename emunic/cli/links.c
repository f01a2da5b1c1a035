/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * `emunic links`: what each link has carried, computed by the server from the flow counters when asked.
 */
#include <getopt.h>
#include <string.h>

#include "emunic/cli/cli.h"
#include "emunic/cli/report.h"

static const char help[] =
    "usage: emunic links [--server NAME] [--paths] [--json]\n"
    "\n"
    "Show the load of each link that has carried something, the busiest first.\n"
    "\n"
    "  -s, --server NAME  of this daemon (default: all of this user on this host)\n"
    "  -p, --paths        show the flows and the path of their messages as well\n"
    "  -j, --json         one JSON object: {\"schema\": 1, \"servers\": [...]}, flows included\n"
    "  -h, --help         this text\n"
    "\n"
    "Example:\n"
    "  emunic links --paths --server user-1000\n";

static const struct option options[] = {
    { "server", required_argument, NULL, 's' },
    { "paths", no_argument, NULL, 'p' },
    { "json", no_argument, NULL, 'j' },
    { "help", no_argument, NULL, 'h' },
    { 0 },
};

static int print_report(const json_t *report, bool with_paths)
{
    int r = 0;

    printf("server %s\n", json_string_value(json_object_get(report, "server")));
    if (json_array_size(json_object_get(report, "flows")) == 0)
        printf("nothing has been sent\n");
    if (with_paths)
        r = emu_cli_print_paths(report, stdout);
    return r < 0 ? r : emu_cli_print_links(report, stdout);
}

static int print_tables(const json_t *answers, bool with_paths)
{
    const json_t *servers = json_object_get(answers, "servers");
    const json_t *report;
    size_t i;
    int r = 0;

    if (json_array_size(servers) == 0)
        fprintf(stderr, "emunic links: no server of this user runs here\n");
    json_array_foreach(servers, i, report) {
        if (r == 0)
            r = print_report(report, with_paths);
    }
    return r < 0 || fflush(stdout) == EOF ? emu_cli_fail("links", "cannot print: %s", strerror(-r)) : EMU_EXIT_DONE;
}

int emu_verb_links(int argc, char **argv)
{
    const char *server = NULL;
    bool is_json = false;
    bool with_paths = false;
    json_t *answers;
    int status;
    int option;

    opterr = 0;
    while ((option = getopt_long(argc, argv, "+:s:pjh", options, NULL)) != -1) {
        switch (option) {
        case 's':
            server = optarg;
            break;
        case 'p':
            with_paths = true;
            break;
        case 'j':
            is_json = true;
            break;
        case 'h':
            fputs(help, stdout);
            return EMU_EXIT_DONE;
        default:
            return emu_cli_bad_option("links", option, argv);
        }
    }
    if (optind < argc)
        return emu_cli_usage("links", "'%s': takes options only", argv[optind]);
    status = emu_cli_collect("links", server, EMU_MSG_LINKS, &answers);
    if (status != EMU_EXIT_DONE)
        return status;
    status = is_json ? emu_cli_print_json("links", answers, stdout) : print_tables(answers, with_paths);
    json_decref(answers);
    return status;
}
