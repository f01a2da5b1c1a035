/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Asking all hosts.
 *
 * A report comes in parts, and who wants it asks for each (REPORT, ROWS): so a host holds one list for each other host
 * that asks, made when the first part is asked for, and queues one message of it. Because of that one list, reports
 * that are wanted meanwhile are asked for one after the other. A host that does not go on with its answer for the peer
 * timeout, or is lost, is missing from the report, which says so. Its session ends then, as with any host that owes an
 * answer; but not for a status, which changes nothing of what it tells.
 */
#include "emunic/daemon/reports/gather.h"

#include <errno.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <unistd.h>

#include "emunic/base/clock.h"
#include "emunic/daemon/core/connection.h"
#include "emunic/daemon/errors/error_hosts.h"
#include "emunic/daemon/errors/error_stream.h"
#include "emunic/daemon/peers/lists.h"
#include "emunic/daemon/peers/sessions.h"
#include "emunic/daemon/reports/report.h"
#include "emunic/daemon/world/server.h"

#define GATHERS (1 << 30) /* what answers instead of a descriptor: it comes later */

/* One question, and what has come of the answers. The list has the newest first. */
struct gathering {
    LIST_ENTRY(gathering) link;
    uint64_t token;
    struct emu_connection *connection; /* borrowed: the gathering ends with it */
    struct emu_msg reply;
    int fd;        /* borrowed: passed with the reply; -1: a report is made */
    bool is_asked; /* else it waits for the report before it */
    uint32_t n_left;
    uint64_t deadline_ns;       /* moves with each part */
    bool *is_awaited;           /* owned, by host */
    bool *is_missing;           /* owned, by host */
    struct emu_word_list *rows; /* owned, by host */
};

/* What a host is asking us for. */
struct served {
    uint64_t token;
    uint16_t type;
    struct emu_word_list list;
};

struct emu_gather {
    uint64_t last_token;
    LIST_HEAD(, gathering) gatherings;
    struct served served[];
};

static struct emu_gather *gather_of(const struct emu_server *server)
{
    return server->slots[EMU_SERVER_GATHER];
}

static int create(struct emu_server *server, const struct emu_server_options *options, struct emu_complaint *why)
{
    struct emu_gather *gather = calloc(1, sizeof(*gather) + emu_hosts_count(server) * sizeof(gather->served[0]));

    (void)options;
    (void)why;
    if (!gather)
        return -ENOMEM;
    json_object_seed(0); /* from the kernel, while files can be opened */
    LIST_INIT(&gather->gatherings);
    server->slots[EMU_SERVER_GATHER] = gather;
    return 0;
}

static void forget(const struct emu_server *server, struct gathering *g)
{
    LIST_REMOVE(g, link);
    for (uint32_t i = 0; g->rows && i < emu_hosts_count(server); i++)
        emu_word_list_fini(&g->rows[i]);
    free(g->rows);
    free(g->is_awaited);
    free(g->is_missing);
    free(g);
}

static void destroy(struct emu_server *server)
{
    struct gathering *g;

    if (!gather_of(server))
        return;
    while ((g = LIST_FIRST(&gather_of(server)->gatherings)))
        forget(server, g);
    for (uint32_t i = 0; i < emu_hosts_count(server); i++)
        emu_word_list_fini(&gather_of(server)->served[i].list);
    free(gather_of(server));
    server->slots[EMU_SERVER_GATHER] = NULL;
}

/* ---- who asks ---- */

static struct gathering *begin(struct emu_connection *c, const struct emu_msg *msg, int fd)
{
    struct emu_server *server = c->server;
    uint32_t n = emu_hosts_count(server);
    struct gathering *g = calloc(1, sizeof(*g));

    if (!g)
        return NULL;
    g->token = ++gather_of(server)->last_token;
    g->connection = c;
    g->reply = *msg;
    g->fd = fd;
    g->deadline_ns = UINT64_MAX;
    g->is_awaited = calloc(n, sizeof(*g->is_awaited));
    g->is_missing = calloc(n, sizeof(*g->is_missing));
    g->rows = calloc(n, sizeof(*g->rows));
    LIST_INSERT_HEAD(&gather_of(server)->gatherings, g, link);
    if (!g->is_awaited || !g->is_missing || !g->rows) {
        forget(server, g);
        return NULL;
    }
    return g;
}

/* From now on answers are awaited. */
static void start(const struct emu_server *server, struct gathering *g)
{
    g->is_asked = true;
    g->deadline_ns = emu_hosts_now_ns(server) + emu_hosts_timeout_ns(server);
    for (uint32_t i = 0; i < emu_hosts_count(server); i++) {
        bool is_other = i != emu_hosts_own(server);

        g->is_awaited[i] = is_other && emu_hosts_is_up(server, i);
        g->is_missing[i] = is_other && !g->is_awaited[i];
        g->n_left += g->is_awaited[i];
    }
}

static struct emu_gathered gathered_of(const struct emu_server *server, const struct gathering *g)
{
    return (struct emu_gathered){ emu_hosts_count(server), g->rows, g->is_missing };
}

static void finish(struct emu_server *server, struct gathering *g)
{
    struct emu_gathered gathered = gathered_of(server, g);
    int fd = g->fd >= 0 ? g->fd : emu_report_make(server, g->reply.type, &gathered);

    emu_connection_answer_with(g->connection, &g->reply, fd < 0 ? fd : 0, fd);
    if (g->fd < 0 && fd >= 0)
        close(fd);
    forget(server, g);
}

/* The report that is to be asked for next, or NULL: none is wanted, or one is being asked for. */
static struct gathering *next_report(const struct emu_server *server)
{
    struct gathering *oldest = NULL;
    struct gathering *g;

    LIST_FOREACH(g, &gather_of(server)->gatherings, link) {
        if (g->fd >= 0)
            continue;
        if (g->is_asked)
            return NULL;
        oldest = g;
    }
    return oldest;
}

static void ask(struct emu_server *server, const struct gathering *g)
{
    for (uint32_t i = 0; i < emu_hosts_count(server); i++) {
        if (g->is_awaited[i])
            emu_list_send(server,
                          &(struct emu_list_head){
                              .host = i, .op = EMU_HOST_ADMIN_REPORT, .type = g->reply.type, .token = g->token },
                          NULL, 0);
    }
}

/* Only newer ones than what has ended can be over when this returns. */
static void ask_next(struct emu_server *server)
{
    struct gathering *g;

    while ((g = next_report(server))) {
        start(server, g);
        if (g->n_left > 0)
            ask(server, g);
        else
            finish(server, g);
    }
}

static int report(struct emu_connection *c, const struct emu_msg *msg)
{
    struct emu_server *server = c->server;
    struct emu_gathered gathered;
    struct gathering *g;
    int fd;

    if (!emu_hosts_are_several(server))
        return emu_report_make(server, msg->type, NULL);
    g = begin(c, msg, -1);
    if (!g)
        return -ENOMEM;
    if (next_report(server) != g)
        return GATHERS;
    start(server, g);
    if (g->n_left > 0) {
        ask(server, g);
        return GATHERS;
    }
    gathered = gathered_of(server, g);
    fd = emu_report_make(server, msg->type, &gathered);
    forget(server, g);
    return fd;
}

static int tell_listening(struct emu_connection *c, const struct emu_msg *msg, int fd)
{
    struct emu_server *server = c->server;
    struct gathering *g;

    if (!emu_hosts_are_several(server))
        return 0;
    g = begin(c, msg, fd);
    if (!g)
        return -ENOMEM;
    start(server, g);
    if (g->n_left == 0) {
        forget(server, g);
        return 0;
    }
    for (uint32_t i = 0; i < emu_hosts_count(server); i++) {
        if (g->is_awaited[i])
            emu_error_tell_listening(server, i, g->token, true);
    }
    return EMU_DEFERRED;
}

static void forget_connection(struct emu_connection *connection)
{
    struct emu_server *server = connection->server;
    struct gathering *g = LIST_FIRST(&gather_of(server)->gatherings);

    while (g) {
        struct gathering *next = LIST_NEXT(g, link);

        if (g->connection == connection)
            forget(server, g);
        g = next;
    }
    if (emu_hosts_are_several(server))
        ask_next(server);
}

/* Of what a host may tell for a report. */
static uint32_t words_max(uint16_t type)
{
    return type == EMU_MSG_STATUS ? EMU_HOST_STATUS_WORDS_MAX : EMU_HOST_ADMIN_WORDS_MAX;
}

static struct gathering *find(const struct emu_server *server, uint32_t host, uint64_t token)
{
    struct gathering *g;

    LIST_FOREACH(g, &gather_of(server)->gatherings, link) {
        if (g->token == token && g->is_awaited[host])
            return g;
    }
    return NULL;
}

/* The host has said all, or will not. */
static void hear(struct emu_server *server, struct gathering *g, uint32_t host, bool is_missing)
{
    if (!g->is_awaited[host])
        return;
    g->is_awaited[host] = false;
    g->is_missing[host] = is_missing;
    if (is_missing)
        emu_word_list_fini(&g->rows[host]);
    if (--g->n_left > 0)
        return;
    finish(server, g);
    ask_next(server);
}

static bool take_heard(struct emu_server *server, uint32_t host, struct emu_list *list)
{
    struct gathering *g = find(server, host, list->token);

    if (g && g->fd < 0)
        return false;
    if (g)
        hear(server, g, host, false);
    return true;
}

static bool take_rows(struct emu_server *server, uint32_t host, struct emu_list *m)
{
    struct gathering *g = find(server, host, m->token);
    struct emu_word_list *rows;
    uint64_t *at;

    if (!g)
        return true; /* nobody waits for it any more */
    rows = &g->rows[host];
    if (g->fd >= 0 || m->type != g->reply.type || m->first != rows->n || m->total > words_max(m->type))
        return false;
    at = m->n > 0 ? emu_word_list_extend(rows, m->n) : NULL;
    if (at)
        memcpy(at, m->all, m->n * sizeof(*at));
    if (rows->has_failed || rows->n == m->total) {
        hear(server, g, host, rows->has_failed);
        return true;
    }
    g->deadline_ns = emu_hosts_now_ns(server) + emu_hosts_timeout_ns(server);
    emu_list_send_part(
        server,
        &(struct emu_list_head){ .host = host, .op = EMU_HOST_ADMIN_REPORT, .type = g->reply.type, .token = g->token },
        NULL, rows->n, rows->n);
    return true;
}

/* ---- who is asked ---- */

static void make_rows(struct emu_server *server, struct served *served)
{
    served->list.n = 0;
    served->list.has_failed = false;
    emu_report_rows(server, served->type, &served->list);
    if (!served->list.has_failed && served->list.n <= words_max(served->type))
        return;
    emu_word_list_fini(&served->list);
    emu_word_list_add(&served->list, EMU_HOST_ROW_TOO_MANY);
}

static bool take_question(struct emu_server *server, uint32_t host, struct emu_list *m)
{
    struct served *served = &gather_of(server)->served[host];

    if (m->n != 0 || (m->type != EMU_MSG_STATUS && m->type != EMU_MSG_LINKS && m->type != EMU_MSG_FAULTS))
        return false;
    if (m->first == 0) {
        served->token = m->token;
        served->type = m->type;
        make_rows(server, served);
    } else if (m->token != served->token || m->type != served->type || m->first >= served->list.n) {
        return false;
    }
    emu_list_send_part(server,
                       &(struct emu_list_head){
                           .host = host, .op = EMU_HOST_ADMIN_ROWS, .type = served->type, .token = served->token },
                       served->list.words, served->list.n, m->first);
    if (served->list.n - m->first <= EMU_HOST_ADMIN_WORDS)
        emu_word_list_fini(&served->list);
    return true;
}

/* ---- hosts and time ---- */

static void host_down(struct emu_server *server, uint32_t host)
{
    struct gathering *g = LIST_FIRST(&gather_of(server)->gatherings);

    emu_word_list_fini(&gather_of(server)->served[host].list);
    while (g) {
        struct gathering *next = LIST_NEXT(g, link);

        hear(server, g, host, true);
        g = next;
    }
}

/* What is still awaited does not come; the gathering may be over, and gone, when this returns. */
static void give_up(struct emu_server *server, struct gathering *g)
{
    uint32_t n_left = g->n_left;

    for (uint32_t i = 0; n_left > 0; i++) {
        if (!g->is_awaited[i])
            continue;
        n_left--;
        if (g->reply.type == EMU_MSG_STATUS)
            hear(server, g, i, true);
        else
            emu_hosts_drop(server, i, "has not answered a question");
    }
}

static unsigned look(struct emu_server *server)
{
    struct gathering *g = LIST_FIRST(&gather_of(server)->gatherings);
    uint64_t now_ns;

    if (!g)
        return 0;
    now_ns = emu_hosts_now_ns(server);
    while (g) {
        struct gathering *next = LIST_NEXT(g, link);

        if (now_ns >= g->deadline_ns)
            give_up(server, g);
        g = next;
    }
    return 0;
}

static uint64_t next_ns(const struct emu_server *server)
{
    const struct gathering *g;
    uint64_t first_ns = UINT64_MAX;

    LIST_FOREACH(g, &gather_of(server)->gatherings, link) {
        if (g->deadline_ns < first_ns)
            first_ns = g->deadline_ns;
    }
    return first_ns == UINT64_MAX ? first_ns : first_ns + (emu_clock_ns() - emu_hosts_now_ns(server));
}

/* ---- the part ---- */

static int answer_report(struct emu_request *request)
{
    int fd = report(request->connection, request->msg);

    return fd == GATHERS ? EMU_DEFERRED : emu_request_pass(request, fd, true);
}

static int answer_errors_open(struct emu_request *request)
{
    struct emu_connection *c = request->connection;
    int fd = emu_error_open(c, &request->msg->errors);
    int r;

    if (fd < 0)
        return fd;
    /* No error on another host from now on goes by. */
    r = tell_listening(c, request->msg, fd);
    if (r < 0)
        emu_error_close(c);
    return r != 0 ? r : emu_request_pass(request, fd, false);
}

static const struct emu_request_row requests[] = {
    { EMU_MSG_STATUS, EMU_MSG_LINKS, EMU_NEEDS_ADMIN, answer_report },
    { EMU_MSG_FAULTS, EMU_MSG_FAULTS, EMU_NEEDS_ADMIN, answer_report },
    { EMU_MSG_ERRORS_OPEN, EMU_MSG_ERRORS_OPEN, EMU_NEEDS_CONTROL, answer_errors_open },
};
static const struct emu_list_row lists[] = {
    { EMU_HOST_ADMIN_REPORT, take_question },
    { EMU_HOST_ADMIN_ROWS, take_rows },
    { EMU_HOST_ADMIN_HEARS, take_heard },
};

const struct emu_part emu_reports_part = {
    .name = "reports",
    .create = create,
    .destroy = destroy,
    .requests = requests,
    .n_requests = EMU_ROWS(requests),
    .loop = { .round = look, .next_ns = next_ns },
    .hosts = { .lists = lists, .n_lists = EMU_ROWS(lists), .down = host_down },
    .connection_end = forget_connection,
};
