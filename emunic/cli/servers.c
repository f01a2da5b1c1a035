/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Finding servers and asking them.
 *
 * A server is a listening socket with the abstract name "emunic/<server>/admin"; the kernel lists those of this
 * network namespace in /proc/net/unix. Only servers of the caller's own user are asked: others would refuse, and
 * root who wants another user's server names it. A server that ends between the two steps is left out.
 *
 * Anybody can listen under any name. So the kernel is asked who does, and nobody is waited for who does not take
 * connections: a server of ours that is busy has FULL_MS for all of them together.
 */
#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#include "emunic/cli/cli.h"
#include "emunic/cli/server_report.h"

#define SCHEMA      1
#define NAME_BEFORE "@emunic/"
#define NAME_AFTER  "/admin"
#define ANSWER_S    5
#define FULL_MS     500
#define AGAIN_MS    5

struct names {
    char **items; /* owned */
    size_t n;
};

static void names_fini(struct names *names)
{
    for (size_t i = 0; i < names->n; i++)
        free(names->items[i]);
    free(names->items);
}

static int names_add(struct names *names, const char *name)
{
    char **items = realloc(names->items, (names->n + 1) * sizeof(*items));

    if (!items)
        return -ENOMEM;
    names->items = items;
    items[names->n] = strdup(name);
    if (!items[names->n])
        return -ENOMEM;
    names->n++;
    return 0;
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

static bool is_own(const char *server, int *patience_ms)
{
    uid_t uid = (uid_t)-1;
    int r = emu_socket_owner(server, EMU_SOCKET_ADMIN, &uid);

    while (r == -EAGAIN && *patience_ms > 0) {
        poll(NULL, 0, AGAIN_MS);
        *patience_ms -= AGAIN_MS;
        r = emu_socket_owner(server, EMU_SOCKET_ADMIN, &uid);
    }
    return r == 0 && uid == geteuid();
}

/* The server's name in a line of /proc/net/unix that describes a listening admin socket, else NULL. Cuts the line. */
static char *listener_in(char *line)
{
    unsigned long flags;
    char *name = strstr(line, NAME_BEFORE);
    char *end;

    /* Num: RefCount Protocol Flags Type St Inode Path; __SO_ACCEPTCON is 1 << 16 */
    if (!name || sscanf(line, "%*s %*s %*s %lx", &flags) != 1 || !(flags & 0x10000))
        return NULL;
    name += strlen(NAME_BEFORE);
    end = strstr(name, NAME_AFTER);
    if (!end || strcmp(end + strlen(NAME_AFTER), "\n") != 0)
        return NULL;
    *end = '\0';
    return name;
}

static int find_servers(struct names *names)
{
    FILE *file = fopen("/proc/net/unix", "re");
    char *line = NULL;
    size_t room = 0;
    int patience_ms = FULL_MS;
    int r = 0;

    if (!file)
        return -errno;
    while (r == 0 && getline(&line, &room, file) > 0) {
        char *name = listener_in(line);

        if (name && is_own(name, &patience_ms))
            r = names_add(names, name);
    }
    free(line);
    fclose(file);
    if (names->n > 0)
        qsort(names->items, names->n, sizeof(*names->items), compare_names);
    return r;
}

void emu_cli_limit_answers(struct emu_session *session)
{
    const struct timeval limit = { .tv_sec = ANSWER_S + session->answer_ms / 1000 };

    setsockopt(session->fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
}

int emu_cli_ask(struct emu_session *session, uint16_t type, json_t **report_out)
{
    struct emu_msg msg = { .type = type };
    struct emu_fds fds;
    json_t *report;
    int r;

    r = emu_session_request(session, &msg, NULL, 0, &fds);
    if (r == 0)
        r = msg.result;
    if (r < 0)
        return r;
    if (fds.n_fds != 1) {
        emu_fds_close(&fds);
        return -EPROTO;
    }
    report = json_loadfd(fds.fd[0], 0, NULL);
    emu_fds_close(&fds);
    if (!report)
        return -EBADMSG;
    *report_out = report;
    return 0;
}

void emu_cli_tell_missing(const char *verb, const json_t *report)
{
    const json_t *name;
    size_t i;

    json_array_foreach(json_object_get(report, "missing_hosts"), i, name)
        fprintf(stderr, "emunic %s: host %s has not answered: what it knows is missing\n", verb,
                json_is_string(name) ? json_string_value(name) : "");
}

static int ask_server(const char *verb, const char *server, uint16_t type, json_t *answers)
{
    struct emu_session session;
    json_t *report = NULL;
    int r;

    r = emu_session_open(&session, server, EMU_SOCKET_ADMIN);
    if (r < 0)
        return r;
    emu_cli_limit_answers(&session);
    r = emu_cli_ask(&session, type, &report);
    emu_session_close(&session);
    if (r < 0)
        return r;
    emu_cli_tell_missing(verb, report);
    return json_array_append_new(answers, report) < 0 ? -ENOMEM : 0;
}

static int complain(const char *verb, const char *server, int error)
{
    switch (error) {
    case -ECONNREFUSED:
        return emu_cli_fail(verb, "no server named '%s' runs here", server);
    case -EINVAL:
        return emu_cli_usage(verb, "--server: '%s' is not a server name", server);
    case -EPERM:
        return emu_cli_fail(verb, "server '%s' does not answer; its admin socket is for root and its own user", server);
    case -ENETDOWN:
        return emu_cli_fail(verb, "server '%s' does not answer", server);
    default:
        return emu_cli_fail(verb, "server '%s': %s", server, strerror(-error));
    }
}

int emu_cli_collect(const char *verb, const char *server, uint16_t type, json_t **answers_out)
{
    json_t *answers = json_array();
    struct names names = { 0 };
    int status = EMU_EXIT_DONE;
    int r;

    r = server ? names_add(&names, server) : find_servers(&names);
    if (r < 0)
        status = emu_cli_fail(verb, "cannot look for servers: %s", strerror(-r));
    for (size_t i = 0; i < names.n && status == EMU_EXIT_DONE; i++) {
        r = ask_server(verb, names.items[i], type, answers);
        /*
         * Of all that run here, one may end meanwhile, and one may be of another version, which has said so on stderr.
         */
        if (r < 0 && (server || (r != -ECONNREFUSED && r != -ENETDOWN && r != -EPROTONOSUPPORT)))
            status = complain(verb, names.items[i], r);
    }
    names_fini(&names);
    if (status != EMU_EXIT_DONE) {
        json_decref(answers);
        return status;
    }
    *answers_out = json_pack("{si so}", "schema", SCHEMA, "servers", answers);
    return *answers_out ? EMU_EXIT_DONE : emu_cli_fail(verb, "out of memory");
}

int emu_cli_print_json(const char *verb, const json_t *object, FILE *out)
{
    if (json_dumpf(object, out, 0) < 0 || fputc('\n', out) == EOF || fflush(out) == EOF)
        return emu_cli_fail(verb, "cannot write: %s", strerror(errno));
    return EMU_EXIT_DONE;
}

static int print_tables(const char *verb, const json_t *answers, int (*print)(const json_t *report, const void *what),
                        const void *what)
{
    const json_t *servers = json_object_get(answers, "servers");
    const json_t *report;
    size_t i;
    int r = 0;

    json_array_foreach(servers, i, report) {
        if (r == 0)
            r = print(report, what);
    }
    if (r == 0 && fflush(stdout) == EOF)
        r = -errno;
    return r < 0 ? emu_cli_fail(verb, "cannot print: %s", strerror(-r)) : EMU_EXIT_DONE;
}

int emu_cli_show(const char *verb, const char *server, uint16_t type, bool is_json,
                 int (*print)(const json_t *report, const void *what), const void *what)
{
    json_t *answers;
    int status = emu_cli_collect(verb, server, type, &answers);

    if (status != EMU_EXIT_DONE)
        return status;
    status = is_json ? emu_cli_print_json(verb, answers, stdout) : print_tables(verb, answers, print, what);
    if (status == EMU_EXIT_DONE && json_array_size(json_object_get(answers, "servers")) == 0)
        status = emu_cli_fail(verb, "no server of this user runs here");
    json_decref(answers);
    return status;
}
