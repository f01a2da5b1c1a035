/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * `emunic fault`: rules of injected faults on running servers.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "emunic/base/number.h"
#include "emunic/cli/cli.h"
#include "emunic/cli/fault_file.h"
#include "emunic/cli/faults.h"
#include "emunic/cli/network_words.h"
#include "emunic/cli/options.h"
#include "emunic/cli/server_report.h"
#include "emunic/cli/text_table.h"

struct request {
    const char *server;
    char found[EMU_SERVER_NAME_MAX + 1];
    uint32_t domain; /* or EMU_FAULT_ALL_DOMAINS */
    bool is_json;
};

static const struct emu_option options[] = {
    { "server", 's', "NAME", "this daemon (default: list: all of this user on this host, else the only one)",
      EMU_OPTION_TEXT(struct request, server) },
    { "domain", 'd', "N", "this communication domain, a number of `emunic status` (default: all of the daemon)",
      EMU_OPTION_NUMBER(struct request, domain, 0, UINT32_MAX - 1) },
    { "json", 'j', NULL, "list: one JSON object: {\"schema\": 1, \"servers\": [...]}",
      EMU_OPTION_SET(struct request, is_json) },
    { 0 },
};

static const struct emu_command command = {
    .verb = "fault",
    .usage = "emunic fault [OPTION]... list\n"
             "emunic fault [OPTION]... add KEY=VALUE...\n"
             "emunic fault [OPTION]... load FILE\n"
             "emunic fault [OPTION]... clear [ID]\n"
             "emunic fault [OPTION]... fail|repair PART",
    .about =
        "Inject faults into the transactions of running jobs: show the rules and what they did, add one, replace all\n"
        "by those of a schedule file, clear one or all. Break and mend parts of the network: link FROM TO, lanes\n"
        "FROM TO MASK, router NAME, node NAME, all. Of a machine of several hosts any may be asked: all do the same.\n"
        "emunic-fault(1) tells the keys, the names and the file.\n"
        "\n"
        "  class   fma-put fma-get fma-amo (fma), bte-put bte-get (bte), smsg, msgq, cq-write, ce (reductions),\n"
        "          ptl-put ptl-get ptl-getput (ptl): all of these are any; datagram, registration\n"
        "  action  drop, corrupt, fail, delay, overrun, kill, report, throttle\n",
    .options = options,
    .after = "Example:\n"
             "  emunic fault add class=smsg action=drop rate=0.01 seed=7\n"
             "  emunic fault fail router c0-0c0s3a0\n",
    .words = EMU_WORDS_LAST,
};

/* ---- list ---- */

static const struct emu_cli_column columns[] = {
    { "DOMAIN", true }, { "ID", true },     { "CLASS", false }, { "ACTION", false }, { "FROM", false },
    { "TO", false },    { "WHICH", false }, { "SEEN", true },   { "HITS", true },
};

static uint64_t number_of(const json_t *object, const char *key)
{
    return (uint64_t)json_integer_value(json_object_get(object, key));
}

static const char *text_of(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));

    return text ? text : "";
}

static bool has_text(const json_t *object, const char *key)
{
    return *text_of(object, key) != '\0';
}

static bool has(const json_t *object, const char *key)
{
    return json_is_integer(json_object_get(object, key));
}

static void describe_classes(const json_t *rule, char *text, size_t len)
{
    const json_t *name;
    size_t used = 0;
    size_t i;

    text[0] = '\0';
    json_array_foreach(json_object_get(rule, "classes"), i, name) {
        int more = snprintf(text + used, len - used, "%s%s", i ? "," : "", json_string_value(name));

        used += more > 0 && (size_t)more < len - used ? (size_t)more : 0;
    }
}

static void describe_end(const json_t *rule, const char *nid, const char *instance, char *text, size_t len)
{
    char node[24] = "any";

    if (has(rule, nid))
        snprintf(node, sizeof(node), "%llu", (unsigned long long)number_of(rule, nid));
    if (has(rule, instance))
        snprintf(text, len, "%s/%llu", node, (unsigned long long)number_of(rule, instance));
    else
        snprintf(text, len, "%s", node);
}

static void describe_choice(const json_t *rule, char *text, size_t len)
{
    static const char *const names[] = { "nth", "every", "live_min" };
    int used = 0;

    if (has(rule, "rate_ppb"))
        used = snprintf(text, len, "rate %g", (double)number_of(rule, "rate_ppb") / EMU_FAULT_RATE_ONE);
    else
        used = snprintf(text, len, "all");
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        if (has(rule, names[i]))
            used = snprintf(text, len, "%s %llu", names[i], (unsigned long long)number_of(rule, names[i]));
    }
    if (number_of(rule, "after") > 0 && used > 0 && (size_t)used < len)
        snprintf(text + used, len - (size_t)used, " after %llu", (unsigned long long)number_of(rule, "after"));
}

static void add_rule(struct emu_cli_table *table, uint64_t domain, const json_t *rule)
{
    const char *detail = has_text(rule, "status") ? text_of(rule, "status") : text_of(rule, "category");
    char text[256];

    emu_cli_table_number(table, domain);
    emu_cli_table_number(table, number_of(rule, "id"));
    describe_classes(rule, text, sizeof(text));
    emu_cli_table_text(table, text);
    snprintf(text, sizeof(text), "%s%s%s", text_of(rule, "action"), *detail ? " " : "", detail);
    emu_cli_table_text(table, text);
    describe_end(rule, "from_nid", "from_instance", text, sizeof(text));
    emu_cli_table_text(table, text);
    describe_end(rule, "to_nid", "to_instance", text, sizeof(text));
    emu_cli_table_text(table, text);
    describe_choice(rule, text, sizeof(text));
    emu_cli_table_text(table, text);
    emu_cli_table_number(table, number_of(rule, "seen"));
    emu_cli_table_number(table, number_of(rule, "hits"));
}

int emu_cli_print_faults(const json_t *report, uint32_t only_domain, unsigned indent, FILE *out)
{
    struct emu_cli_table table;
    const json_t *domain;
    const json_t *rule;
    size_t i;
    size_t k;
    int r = 0;

    emu_cli_table_init(&table, columns, sizeof(columns) / sizeof(columns[0]));
    json_array_foreach(json_object_get(report, "domains"), i, domain) {
        if (only_domain != EMU_FAULT_ALL_DOMAINS && number_of(domain, "domain") != only_domain)
            continue;
        json_array_foreach(json_object_get(domain, "rules"), k, rule)
            add_rule(&table, number_of(domain, "domain"), rule);
    }
    if (table.n_cells > 0)
        r = emu_cli_table_print(&table, indent, out);
    else
        fprintf(out, "%*sno rules\n", (int)indent, "");
    emu_cli_table_fini(&table);
    return r;
}

static const struct emu_cli_column broken_columns[] = {
    { "BROKEN", false },
    { "NUMBER", true },
    { "NAME", false },
    { "STATE", false },
};

static int print_broken(const json_t *report, FILE *out)
{
    const json_t *broken = json_object_get(json_object_get(report, "network"), "broken");
    struct emu_cli_table table;
    const json_t *thing;
    size_t i;
    int r;

    if (json_array_size(broken) == 0)
        return 0;
    emu_cli_table_init(&table, broken_columns, sizeof(broken_columns) / sizeof(broken_columns[0]));
    json_array_foreach(broken, i, thing) {
        emu_cli_table_text(&table, text_of(thing, "thing"));
        emu_cli_table_number(&table, number_of(thing, "index"));
        emu_cli_table_text(&table, text_of(thing, "name"));
        emu_cli_table_text(&table, text_of(thing, "state"));
    }
    r = emu_cli_table_print(&table, 2, out);
    emu_cli_table_fini(&table);
    return r;
}

static void print_watcher_log(const json_t *report, FILE *out)
{
    const json_t *lines = json_object_get(json_object_get(report, "network"), "watcher_log");
    const json_t *line;
    size_t i;

    if (json_array_size(lines) > 0)
        fprintf(out, "  watcher log\n");
    json_array_foreach(lines, i, line)
        fprintf(out, "  %s\n", json_string_value(line));
}

static int print_report(const json_t *report, const void *what)
{
    const struct request *request = what;
    int r;

    printf("server %s\n", text_of(report, "server"));
    r = emu_cli_print_faults(report, request->domain, 2, stdout);
    if (r == 0)
        r = print_broken(report, stdout);
    print_watcher_log(report, stdout);
    return r;
}

static int list(const struct request *request)
{
    return emu_cli_show("fault", request->server, EMU_MSG_FAULTS, request->is_json, print_report, request);
}

/* ---- changes ---- */

/* The answer's text: a line for each host that has not done it. */
static void tell_others(struct emu_fds *fds)
{
    FILE *text = fds->n_fds > 0 ? fdopen(fds->fd[0], "r") : NULL;
    char line[512];

    if (text)
        fds->fd[0] = -1;
    while (text && fgets(line, sizeof(line), text))
        fprintf(stderr, "emunic: not on host %s", line);
    if (text)
        fclose(text);
    emu_fds_close(fds);
}

static int request_change(struct emu_session *session, struct emu_msg *msg, int *fd)
{
    struct emu_fds fds;
    int r = emu_session_request(session, msg, fd, fd ? 1 : 0, &fds);

    if (r < 0)
        return r;
    tell_others(&fds);
    return msg->result;
}

int emu_cli_set_faults(struct emu_session *session, uint32_t domain, const struct emu_fault_rule *rules,
                       uint32_t n_rules, bool appends)
{
    struct emu_msg msg = { .type = EMU_MSG_FAULT_SET,
                           .fault = {
                               .domain_id = domain, .n_rules = n_rules, .flags = appends ? EMU_FAULT_APPEND : 0 } };
    size_t bytes = n_rules * sizeof(*rules);
    int fd = memfd_create("emunic-faults", MFD_CLOEXEC);
    int r;

    if (fd < 0)
        return -errno;
    r = write(fd, rules, bytes) == (ssize_t)bytes ? request_change(session, &msg, &fd) : -EIO;
    close(fd);
    return r;
}

int emu_cli_clear_faults(struct emu_session *session, uint32_t domain, uint32_t id)
{
    struct emu_msg msg = { .type = EMU_MSG_FAULT_CLEAR, .fault = { .domain_id = domain, .id = id } };

    return request_change(session, &msg, NULL);
}

int emu_cli_change_network(struct emu_session *session, const struct emu_msg_network *change)
{
    struct emu_msg msg = { .type = EMU_MSG_NETWORK, .network = *change };

    return request_change(session, &msg, NULL);
}

/* Changes are for one server: the one that was named, else the only one. */
static int choose_server(struct request *request)
{
    const json_t *servers;
    json_t *answers;
    size_t n;
    int status;

    if (request->server)
        return EMU_EXIT_DONE;
    status = emu_cli_collect("fault", NULL, EMU_MSG_FAULTS, &answers);
    if (status != EMU_EXIT_DONE)
        return status;
    servers = json_object_get(answers, "servers");
    n = json_array_size(servers);
    if (n == 1) {
        snprintf(request->found, sizeof(request->found), "%s", text_of(json_array_get(servers, 0), "server"));
        request->server = request->found;
    }
    json_decref(answers);
    if (n == 0)
        return emu_cli_fail("fault", "no server of this user runs here");
    return n == 1 ? EMU_EXIT_DONE : emu_cli_usage("fault", "%zu servers run here: --server tells which", n);
}

static int complain(const struct request *request, int error)
{
    switch (error) {
    case -ECONNREFUSED:
        return emu_cli_fail("fault", "no server named '%s' runs here", request->server);
    case -EINVAL:
        return emu_cli_fail("fault", "server '%s' refuses the rules", request->server);
    case -EPERM:
        return emu_cli_fail("fault", "server '%s' does not answer; its admin socket is for root and its own user",
                            request->server);
    case -ENETDOWN:
        return emu_cli_fail("fault", "server '%s' does not answer", request->server);
    case -EHOSTUNREACH:
        return emu_cli_fail("fault",
                            "server '%s': the first host of the machine does not answer, which orders its "
                            "changes",
                            request->server);
    case -ENODEV:
        return emu_cli_fail("fault", "server '%s' has no such domain", request->server);
    case -ENOENT:
        return emu_cli_fail("fault", "server '%s' has no such rule", request->server);
    case -ENOSPC:
        return emu_cli_fail("fault", "a domain takes %u rules", EMU_FAULT_RULES_MAX);
    default:
        return emu_cli_fail("fault", "server '%s': %s", request->server, strerror(-error));
    }
}

static int change(struct request *request, const struct emu_fault_rule *rules, uint32_t n_rules, bool appends,
                  uint32_t id)
{
    struct emu_session session;
    int status = choose_server(request);
    int r;

    if (status != EMU_EXIT_DONE)
        return status;
    r = emu_session_open(&session, request->server, EMU_SOCKET_ADMIN);
    if (r < 0)
        return complain(request, r);
    r = n_rules > 0 ? emu_cli_set_faults(&session, request->domain, rules, n_rules, appends) :
                      emu_cli_clear_faults(&session, request->domain, id);
    emu_session_close(&session);
    return r < 0 ? complain(request, r) : EMU_EXIT_DONE;
}

static int add(struct request *request, char **words, int n_words)
{
    struct emu_fault_rule rule;
    char err[512];

    if (emu_fault_words_read(words, (unsigned)n_words, &rule, err, sizeof(err)) < 0)
        return emu_cli_usage("fault", "add: %s", err);
    return change(request, &rule, 1, true, 0);
}

/* ---- the network ---- */

/* The machine that the server emulates, for the names of its parts. */
static int load_machine(const struct request *request, struct emu_machine **machine_out)
{
    json_t *answers;
    const char *spec;
    char err[512];
    int status;
    int r;

    status = emu_cli_collect("fault", request->server, EMU_MSG_FAULTS, &answers);
    if (status != EMU_EXIT_DONE)
        return status;
    spec = text_of(json_array_get(json_object_get(answers, "servers"), 0), "machine_spec");
    r = emu_machine_load(spec, emu_cli_machine_dir(), machine_out, err, sizeof(err));
    json_decref(answers);
    return r < 0 ? emu_cli_fail("fault", "the server's machine: %s", err) : EMU_EXIT_DONE;
}

static int send_changes(const struct request *request, const struct emu_msg_network *changes, uint32_t n)
{
    struct emu_session session;
    int r = emu_session_open(&session, request->server, EMU_SOCKET_ADMIN);

    if (r < 0)
        return complain(request, r);
    for (uint32_t i = 0; i < n && r == 0; i++)
        r = emu_cli_change_network(&session, &changes[i]);
    emu_session_close(&session);
    if (r == -ENOSPC)
        return emu_cli_fail("fault", "%u changes of the network can wait for their time", EMU_NETWORK_PENDING_MAX);
    return r < 0 ? complain(request, r) : EMU_EXIT_DONE;
}

static int change_network(struct request *request, bool is_repair, char **words, int n_words)
{
    struct emu_msg_network change;
    struct emu_machine *machine;
    char text[256] = "";
    char err[512];
    size_t used = 0;
    int status;
    int r;

    for (int i = 0; i < n_words && used < sizeof(text); i++)
        used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%s", i ? " " : "", words[i]);
    if (used >= sizeof(text))
        return emu_cli_usage("fault", "that is no part of a network");
    status = choose_server(request);
    if (status != EMU_EXIT_DONE)
        return status;
    status = load_machine(request, &machine);
    if (status != EMU_EXIT_DONE)
        return status;
    r = emu_network_words_read(machine, text, is_repair, &change, err, sizeof(err));
    emu_machine_destroy(machine);
    return r < 0 ? emu_cli_usage("fault", "%s", err) : send_changes(request, &change, 1);
}

static int load_events(struct request *request, const char *path, const struct emu_fault_schedule *schedule)
{
    struct emu_msg_network *changes;
    struct emu_machine *machine;
    char err[512];
    int status;
    int r;

    status = choose_server(request);
    if (status != EMU_EXIT_DONE)
        return status;
    status = load_machine(request, &machine);
    if (status != EMU_EXIT_DONE)
        return status;
    r = emu_network_events_read(machine, schedule, &changes, err, sizeof(err));
    emu_machine_destroy(machine);
    if (r < 0)
        return emu_cli_fail("fault", "%s: %s", path, err);
    status = send_changes(request, changes, schedule->n_events);
    free(changes);
    return status;
}

static int load(struct request *request, const char *path)
{
    struct emu_fault_schedule schedule;
    int status = EMU_EXIT_DONE;
    char err[512];

    if (emu_fault_file_read(path, &schedule, err, sizeof(err)) < 0)
        return emu_cli_fail("fault", "%s", err);
    if (schedule.n_rules > 0)
        status = change(request, schedule.rules, schedule.n_rules, false, 0);
    if (status == EMU_EXIT_DONE && schedule.n_events > 0)
        status = load_events(request, path, &schedule);
    emu_fault_schedule_free(&schedule);
    return status;
}

static int clear(struct request *request, const char *id_text)
{
    uint64_t id = 0;

    if (id_text && !emu_parse_number(id_text, 10, 1, UINT32_MAX, &id))
        return emu_cli_usage("fault", "clear: '%s' is not the number of a rule", id_text);
    return change(request, NULL, 0, false, (uint32_t)id);
}

/* ---- command line ---- */

int emu_verb_fault(int argc, char **argv)
{
    struct request request = { .domain = EMU_FAULT_ALL_DOMAINS };
    const char *word;
    int n_words;
    int first;
    int status;

    status = emu_options_parse(&command, argc, argv, &request, &first);
    if (status != EMU_PROCEED)
        return status;
    if (first == argc)
        return emu_cli_usage("fault", "one of list, add, load, clear, fail, repair is missing");
    word = argv[first];
    n_words = argc - first - 1;
    if (request.is_json && strcmp(word, "list") != 0)
        return emu_cli_usage("fault", "--json: is for list");
    if (strcmp(word, "list") == 0)
        return n_words == 0 ? list(&request) : emu_cli_usage("fault", "list: takes nothing behind it");
    if (strcmp(word, "add") == 0)
        return n_words > 0 ? add(&request, argv + first + 1, n_words) :
                             emu_cli_usage("fault", "add: the keys are missing");
    if (strcmp(word, "load") == 0)
        return n_words == 1 ? load(&request, argv[first + 1]) : emu_cli_usage("fault", "load: takes one file");
    if (strcmp(word, "clear") == 0)
        return n_words <= 1 ? clear(&request, n_words ? argv[first + 1] : NULL) :
                              emu_cli_usage("fault", "clear: takes one rule at a time");
    if (strcmp(word, "fail") == 0 || strcmp(word, "repair") == 0)
        return n_words > 0 ? change_network(&request, word[0] == 'r', argv + first + 1, n_words) :
                             emu_cli_usage("fault", "%s: what is missing: a link, lanes, a router or a node", word);
    return emu_cli_usage("fault", "'%s' is none of list, add, load, clear, fail, repair", word);
}
