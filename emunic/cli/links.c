/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * `emunic links`: what each link has carried, computed by the server from the flow counters when asked.
 */
#include <errno.h>
#include <getopt.h>

#include "emunic/cli/cli.h"
#include "emunic/cli/heat.h"
#include "emunic/cli/report.h"

static const char help[] =
    "usage: emunic links [--server NAME] [--paths] [--json] [--heat FOLDER]\n"
    "\n"
    "Show the load, lanes and faults of each link that has carried something or had a fault, the busiest first; of\n"
    "all hosts, if the machine has several.\n"
    "\n"
    "  -s, --server NAME  of this daemon (default: all of this user on this host)\n"
    "  -p, --paths        show the flows and the path of their messages as well\n"
    "      --heat FOLDER  draw a heat map of the links as well: links-SERVER.svg, .png and .tsv in that folder\n"
    "  -j, --json         one JSON object: {\"schema\": 1, \"servers\": [...]}, flows included\n"
    "  -h, --help         this text\n"
    "\n"
    "Example:\n"
    "  emunic links --paths --server user-1000\n";

enum { OPTION_HEAT = 256 };

static const struct option options[] = {
    { "heat", required_argument, NULL, OPTION_HEAT },
    { "server", required_argument, NULL, 's' },
    { "paths", no_argument, NULL, 'p' },
    { "json", no_argument, NULL, 'j' },
    { "help", no_argument, NULL, 'h' },
    { 0 },
};

/* What is wanted beside the table. */
struct view {
    bool with_paths;
    const char *heat; /* folder; NULL: none */
};

static int print_report(const json_t *report, const void *what)
{
    const struct view *view = what;
    int r = 0;

    printf("server %s\n", json_string_value(json_object_get(report, "server")));
    if (json_array_size(json_object_get(report, "flows")) == 0)
        printf("nothing has been sent\n");
    if (view->with_paths)
        r = emu_cli_print_paths(report, stdout);
    if (r == 0)
        r = emu_cli_print_links(report, stdout);
    if (r == 0 && view->heat && emu_heat_of_report(report, view->heat) != EMU_EXIT_DONE)
        r = -EIO;
    return r;
}

int emu_verb_links(int argc, char **argv)
{
    struct view view = { .heat = NULL };
    const char *server = NULL;
    bool is_json = false;
    int option;

    opterr = 0;
    while ((option = getopt_long(argc, argv, "+:s:pjh", options, NULL)) != -1) {
        switch (option) {
        case 's':
            server = optarg;
            break;
        case 'p':
            view.with_paths = true;
            break;
        case OPTION_HEAT:
            view.heat = optarg;
            break;
        case 'j':
            is_json = true;
            break;
        case 'h':
            fputs(help, stdout);
            return EMU_EXIT_DONE;
        default:
            return emu_cli_bad_option("links", option, argv, options);
        }
    }
    if (optind < argc)
        return emu_cli_usage("links", "'%s': takes options only", argv[optind]);
    if (is_json && view.heat)
        return emu_cli_usage("links", "--heat: is for the table, not for --json");
    return emu_cli_show("links", server, EMU_MSG_LINKS, is_json, print_report, &view);
}
