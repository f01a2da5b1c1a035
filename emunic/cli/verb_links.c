/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * `emunic links`: what each link has carried, computed by the server from the flow counters when asked. With --every
 * the server tells it for each window of virtual time, through a pipe, until it ends.
 */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "emunic/cli/cli.h"
#include "emunic/cli/heat.h"
#include "emunic/cli/options.h"
#include "emunic/cli/server_report.h"
#include "emunic/cli/time_words.h"
#include "emunic/client/session.h"

struct request {
    const char *server; /* NULL: all */
    bool is_json;
    bool with_paths;
    const char *heat;  /* folder; NULL: none */
    const char *every; /* NULL: the sum */
};

static const struct emu_option options[] = {
    { "server", 's', "NAME", "of this daemon (default: all of this user on this host)",
      EMU_OPTION_TEXT(struct request, server) },
    { "paths", 'p', NULL,
      "show the flows and the path of their messages as well; in virtual time, the paths that packets took",
      EMU_OPTION_SET(struct request, with_paths) },
    { "heat", 0, "FOLDER", "draw a heat map of the links as well: links-SERVER.svg, .png and .tsv in that folder",
      EMU_OPTION_TEXT(struct request, heat) },
    { "every", 0, "LENGTH",
      "in virtual time: lines as of `run --link-trace` for each window of that length (10us) from now on, until the "
      "daemon ends",
      EMU_OPTION_TEXT(struct request, every), .is_valid = emu_time_length_is_valid, .refusal = EMU_CLI_LENGTH_REFUSAL },
    { "json", 'j', NULL, "one JSON object: {\"schema\": 1, \"servers\": [...]}, flows included",
      EMU_OPTION_SET(struct request, is_json) },
    { 0 },
};

static const struct emu_command command = {
    .verb = "links",
    .usage = "emunic links [--server NAME] [--paths] [--json] [--heat FOLDER]\n"
             "       emunic links [--server NAME] --every LENGTH",
    .about =
        "Show the load, lanes and faults of each link that has carried something or had a fault, the busiest first;\n"
        "of all hosts, if the machine has several.\n",
    .options = options,
    .after = "Example:\n"
             "  emunic links --paths --server user-1000\n"
             "  emunic links --every 10us >windows.csv\n",
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

/* The only one of this user, if none is named. Its name is the report's in *answers_out. NULL: after a message. */
static const char *find_server(const char *wanted, json_t **answers_out)
{
    const json_t *servers;

    *answers_out = NULL;
    if (emu_cli_collect("links", wanted, EMU_MSG_STATUS, answers_out) != EMU_EXIT_DONE)
        return NULL;
    servers = json_object_get(*answers_out, "servers");
    if (json_array_size(servers) == 1)
        return json_string_value(json_object_get(json_array_get(servers, 0), "server"));
    if (json_array_size(servers) == 0)
        (void)emu_cli_fail("links", "no server of this user runs here");
    else
        (void)emu_cli_usage("links", "%zu servers run here: --server tells which", json_array_size(servers));
    return NULL;
}

/* The pipe of the lines, or a negative errno. */
static int ask_for_windows(const char *server, uint64_t every_ps)
{
    struct emu_msg msg = { .type = EMU_MSG_LINKS_READ, .windows.every_ps = every_ps };
    struct emu_session session;
    struct emu_fds fds;
    int fd = -EPROTO;
    int r = emu_session_open(&session, server, EMU_SOCKET_ADMIN);

    if (r < 0)
        return r;
    emu_cli_limit_answers(&session);
    r = emu_session_request(&session, &msg, NULL, 0, &fds);
    if (r == 0 && msg.result == 0 && fds.n_fds == 1)
        fd = dup(fds.fd[0]);
    if (r == 0)
        emu_fds_close(&fds);
    emu_session_close(&session);
    return r < 0 ? r : msg.result < 0 ? msg.result : fd;
}

/* Until the server closes its end: it has ended, or this is too slow for it. */
static int print_windows(int fd)
{
    struct pollfd news = { .fd = fd, .events = POLLIN };
    char text[65536];
    ssize_t n;

    while ((n = read(fd, text, sizeof(text))) != 0) {
        if (n < 0 && errno == EAGAIN)
            poll(&news, 1, -1);
        else if (n < 0 && errno != EINTR)
            return -errno;
        if (n > 0 && (fwrite(text, 1, (size_t)n, stdout) != (size_t)n || fflush(stdout) != 0))
            return -errno;
    }
    return 0;
}

static int follow(const struct request *request)
{
    json_t *answers;
    const char *server = find_server(request->server, &answers);
    int status = EMU_EXIT_FAILED;
    int fd, r;

    if (server) {
        fd = ask_for_windows(server, emu_time_length_ps(request->every));
        r = fd < 0 ? fd : print_windows(fd);
        if (fd >= 0)
            close(fd);
        if (r == -EOPNOTSUPP)
            status = emu_cli_usage("links", "--every: server '%s' does not run in virtual time", server);
        else
            status = r < 0 ? emu_cli_fail("links", "server '%s': %s", server, strerror(-r)) : EMU_EXIT_DONE;
    }
    json_decref(answers);
    return status;
}

int emu_verb_links(int argc, char **argv)
{
    struct request request = { 0 };
    int status = emu_options_parse(&command, argc, argv, &request, NULL);

    if (status != EMU_PROCEED)
        return status;
    if (request.is_json && request.heat)
        return emu_cli_usage("links", "--heat: is for the table, not for --json");
    if (request.every && (request.is_json || request.heat || request.with_paths))
        return emu_cli_usage("links", "--every prints lines of its own: not with --paths, --json or --heat");
    if (request.every)
        return follow(&request);
    return emu_cli_show("links", request.server, EMU_MSG_LINKS, request.is_json, print_report, &request);
}
