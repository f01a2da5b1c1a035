/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One order of changes for all hosts.
 *
 * The head decides. A request that another host was asked goes to it (ASK); the head does what is wanted, or refuses,
 * and then tells the others in the same order (APPLY), which do the same and say so (DONE). When all that are up have,
 * who asked hears of it (RESULT), and of those that have not. So each host goes through the same states, one behind the
 * other by a message at most.
 *
 *   a host comes up       the head tells it what the changes so far have led to (STATE): the network, the translation
 *                         table, and with each domain its rules, limits and suspension. What is the same already stays
 *                         as it is, counts of rules included
 *   ... goes down         it is no longer waited for
 *   ... does not answer   within the peer timeout (of a suspension: and its own) its session is ended, so that it
 *                         is told the state anew when it is joined again
 *   the head is lost      requests elsewhere end with an error; whether they were done shows when it is back
 *
 * A suspension is complete when it is on all hosts, and taken back on all when it fails on one. Changes that wait for
 * their time wait on the head. Domains of one host alone are that host's business.
 */
#include "emunic/daemon/orders/orders.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/queue.h>
#include <unistd.h>

#include "emunic/base/clock.h"
#include "emunic/daemon/core/connection.h"
#include "emunic/daemon/core/domain.h"
#include "emunic/daemon/faults/fault_rules.h"
#include "emunic/daemon/peers/lists.h"
#include "emunic/daemon/orders/order_request.h"
#include "emunic/daemon/errors/error_hosts.h"
#include "emunic/daemon/faults/fault_hosts.h"
#include "emunic/daemon/reports/gather.h"
#include "emunic/daemon/peers/sessions.h"
#include "emunic/daemon/jobs/presence.h"
#include "emunic/daemon/jobs/job.h"
#include "emunic/daemon/network/network.h"
#include "emunic/daemon/core/server.h"

#define ORDERS_MAX   1024u        /* under way; more are refused */
#define OWN_ORDER    (1ull << 63) /* numbers of orders for this host alone */
#define NOT_ASKED    INT32_MIN    /* of a host: the order was not for it */
#define RESULT_WORDS 2u           /* then two for each host that has not done it */

/* A request that is being done: on the head, or for this host alone. */
struct order {
    LIST_ENTRY(order) link;
    uint64_t number;
    struct emu_admin_request *request; /* owned */
    struct emu_connection *connection; /* borrowed: who asked here; or NULL */
    struct emu_msg reply;
    uint32_t origin;  /* host that was asked */
    uint64_t token;   /* its number of the question */
    bool is_internal; /* nobody waits for it */
    bool has_gone;    /* who has asked */
    bool is_begun;    /* was not refused here */
    bool awaits_own;
    uint32_t n_left; /* hosts that are awaited, ours not counted */
    int result;
    uint32_t value;
    uint64_t deadline_ns;
    struct {
        bool is_awaited;
        int result; /* 0 done; NOT_ASKED */
    } hosts[];
};

/* A request that was sent to the head. */
struct question {
    LIST_ENTRY(question) link;
    uint64_t token;
    struct emu_connection *connection; /* borrowed; NULL: has gone */
    struct emu_msg reply;
    uint64_t deadline_ns;
};

struct emu_admin {
    uint64_t last_number;
    uint64_t last_token;
    uint32_t n_orders;
    LIST_HEAD(, order) orders;
    LIST_HEAD(, question) questions;
    struct emu_admin_incoming *incoming; /* owned, by host */
};

static void begin_order(struct emu_server *server, struct emu_admin_request *request, bool is_internal);

/* ---- life ---- */

int emu_admin_create(struct emu_server *server)
{
    struct emu_admin *admin = calloc(1, sizeof(*admin));

    if (!admin)
        return -ENOMEM;
    LIST_INIT(&admin->orders);
    LIST_INIT(&admin->questions);
    server->admin = admin;
    admin->incoming = calloc(emu_hosts_count(server), sizeof(*admin->incoming));
    return admin->incoming ? 0 : -ENOMEM;
}

static void forget_order(struct emu_admin *admin, struct order *order)
{
    LIST_REMOVE(order, link);
    admin->n_orders--;
    emu_admin_request_free(order->request);
    free(order);
}

static void forget_question(struct question *question)
{
    LIST_REMOVE(question, link);
    free(question);
}

void emu_admin_destroy(struct emu_server *server)
{
    struct emu_admin *admin = server->admin;
    struct question *question;
    struct order *order;

    if (!admin)
        return;
    while ((order = LIST_FIRST(&admin->orders)))
        forget_order(admin, order);
    while ((question = LIST_FIRST(&admin->questions)))
        forget_question(question);
    for (uint32_t i = 0; admin->incoming && i < emu_hosts_count(server); i++)
        emu_word_list_fini(&admin->incoming[i].list);
    free(admin->incoming);
    free(admin);
    server->admin = NULL;
}

static bool is_head(const struct emu_server *server)
{
    return emu_hosts_own(server) == EMU_HOST_HEAD;
}

static struct emu_admin_request *resume_of(const struct emu_admin_request *suspend)
{
    struct emu_admin_request *resume = calloc(1, sizeof(*resume));

    if (!resume)
        return NULL;
    resume->type = EMU_MSG_JOB_RESUME;
    resume->domain = suspend->domain;
    resume->domain_id = suspend->domain_id;
    resume->uid = suspend->uid;
    resume->job = suspend->job;
    return resume;
}

/* ---- answers ---- */

/* A line for each host that has not done it: pairs of its number and an errno. Descriptor or -1. */
static int describe_others(const struct emu_server *server, const uint64_t *pairs, uint32_t n)
{
    int fd = n > 0 ? memfd_create("emunic-hosts", MFD_CLOEXEC) : -1;

    for (uint32_t i = 0; fd >= 0 && i < n; i++) {
        const char *name = emu_hosts_name(server, (uint32_t)pairs[2 * i]);

        if (dprintf(fd, "%s: %s\n", name, strerror((int)pairs[2 * i + 1])) < 0)
            break;
    }
    if (fd >= 0)
        lseek(fd, 0, SEEK_SET);
    return fd;
}

static void answer(struct emu_server *server, struct emu_connection *connection, struct emu_msg *reply,
                   const uint64_t *words, uint32_t n)
{
    int fd = describe_others(server, words + RESULT_WORDS, (n - RESULT_WORDS) / 2);
    int result = (int32_t)(uint32_t)words[0];

    if (result == 0)
        emu_admin_request_reply((uint32_t)words[1], reply);
    emu_connection_answer_with(connection, reply, result, fd);
    if (fd >= 0)
        close(fd);
}

/* Result, value, and the hosts that have not done it. */
static void put_result(const struct emu_server *server, const struct order *order, struct emu_word_list *list)
{
    emu_word_list_add(list, (uint32_t)order->result);
    emu_word_list_add(list, order->value);
    for (uint32_t i = 0; order->result == 0 && i < emu_hosts_count(server); i++) {
        if (order->hosts[i].result == 0 || order->hosts[i].result == NOT_ASKED)
            continue;
        emu_word_list_add(list, i);
        emu_word_list_add(list, (uint64_t)abs(order->hosts[i].result));
    }
}

/* Who has asked for a suspension and is not there any more would never take it back. */
static bool must_take_back(const struct order *order)
{
    return order->request->type == EMU_MSG_JOB_SUSPEND && order->is_begun && (order->result < 0 || order->has_gone);
}

static void finish(struct emu_server *server, struct order *order)
{
    struct emu_admin_request *back = must_take_back(order) ? resume_of(order->request) : NULL;
    const uint64_t without_others[RESULT_WORDS] = { (uint32_t)order->result, order->value };
    struct emu_word_list list = { .words = NULL };
    const uint64_t *words;
    uint32_t n;

    if (emu_hosts_are_several(server))
        put_result(server, order, &list);
    /* Who asks is answered even if there is no memory to say more. */
    words = list.n < RESULT_WORDS || list.has_failed ? without_others : list.words;
    n = words == list.words ? list.n : RESULT_WORDS;
    if (order->connection)
        answer(server, order->connection, &order->reply, words, n);
    else if (order->origin != emu_hosts_own(server))
        emu_admin_send(server, order->origin, EMU_HOST_ADMIN_RESULT, 0, order->token, words, n);
    emu_word_list_fini(&list);
    forget_order(server->admin, order);
    if (back)
        begin_order(server, back, true);
}

static void finish_if_over(struct emu_server *server, struct order *order)
{
    if (!order->awaits_own && order->n_left == 0)
        finish(server, order);
}

/* ---- orders ---- */

static struct order *make_order(struct emu_server *server, struct emu_admin_request *request, bool is_own)
{
    struct emu_admin *admin = server->admin;
    uint32_t n_hosts = emu_hosts_count(server);
    struct order *order =
        admin->n_orders < ORDERS_MAX ? calloc(1, sizeof(*order) + n_hosts * sizeof(order->hosts[0])) : NULL;

    if (!order)
        return NULL;
    order->number = ++admin->last_number | (is_own ? OWN_ORDER : 0);
    order->request = request;
    order->origin = emu_hosts_own(server);
    order->deadline_ns = emu_hosts_now_ns(server) + emu_hosts_timeout_ns(server);
    if (request->type == EMU_MSG_JOB_SUSPEND)
        order->deadline_ns += request->job.timeout_ms * 1000000ull;
    for (uint32_t i = 0; i < n_hosts; i++)
        order->hosts[i].result = NOT_ASKED;
    LIST_INSERT_HEAD(&admin->orders, order, link);
    admin->n_orders++;
    return order;
}

static struct order *find_order(struct emu_server *server, uint64_t number)
{
    struct order *order;

    LIST_FOREACH(order, &server->admin->orders, link) {
        if (order->number == number)
            return order;
    }
    return NULL;
}

/* Is it something that the others do as well? */
static bool is_for_all(const struct emu_server *server, const struct order *order)
{
    const struct emu_admin_request *request = order->request;

    return emu_hosts_are_several(server) && (order->number & OWN_ORDER) == 0 &&
           !(request->type == EMU_MSG_NETWORK && request->network.after_ns > 0);
}

static void tell_others(struct emu_server *server, struct order *order)
{
    struct emu_word_list list = { .words = NULL };

    emu_admin_request_put(order->request, &list);
    for (uint32_t i = 0; i < emu_hosts_count(server); i++) {
        if (i == emu_hosts_own(server))
            continue;
        order->hosts[i].result = list.has_failed ? -ENOMEM : -EHOSTUNREACH;
        if (list.has_failed || !emu_hosts_is_up(server, i))
            continue;
        emu_admin_send(server, i, EMU_HOST_ADMIN_APPLY, order->request->type, order->number, list.words, list.n);
        order->hosts[i].is_awaited = true;
        order->n_left++;
    }
    emu_word_list_fini(&list);
}

/* Does it here and has the others do it. It may be over, and gone, when this returns. */
static void carry_out(struct emu_server *server, struct order *order)
{
    int r = emu_admin_request_do(server, order->request, order->is_internal, order->origin, order->number);

    order->awaits_own = r == EMU_DEFERRED;
    order->result = r == EMU_DEFERRED ? 0 : r;
    order->is_begun = order->result == 0;
    order->value = emu_admin_request_value(server, order->request);
    if (order->result == 0 && is_for_all(server, order))
        tell_others(server, order);
    finish_if_over(server, order);
}

/* Nobody waits for it. Takes the request over. */
static void begin_order(struct emu_server *server, struct emu_admin_request *request, bool is_internal)
{
    struct order *order = make_order(server, request, emu_admin_is_own(server, request));

    if (!order) {
        emu_log(EMU_LOG_ERROR, "no memory, or too many requests under way: one of type %u is left out", request->type);
        emu_admin_request_free(request);
        return;
    }
    order->is_internal = is_internal;
    carry_out(server, order);
}

static void hear(struct emu_server *server, struct order *order, uint32_t host, int result)
{
    if (!order->hosts[host].is_awaited)
        return;
    order->hosts[host].is_awaited = false;
    order->hosts[host].result = result;
    order->n_left--;
    /* Lost hosts are told when they are back; what a host refuses is a failure. */
    if (order->result == 0 && result != 0 && result != -EHOSTUNREACH && result != -ETIMEDOUT)
        order->result = result;
    if (order->result == 0 && result == -ETIMEDOUT && order->request->type == EMU_MSG_JOB_SUSPEND)
        order->result = result;
    finish_if_over(server, order);
}

void emu_admin_suspended(struct emu_server *server, uint64_t number, int result)
{
    struct order *order = server->admin ? find_order(server, number) : NULL;
    uint64_t word = (uint32_t)result;

    if (order) {
        order->awaits_own = false;
        order->result = order->result ? order->result : result;
        finish_if_over(server, order);
    } else if (emu_hosts_are_several(server) && !is_head(server) && (number & OWN_ORDER) == 0) {
        emu_admin_send(server, EMU_HOST_HEAD, EMU_HOST_ADMIN_DONE, 0, number, &word, 1);
    }
}

/* ---- who asks ---- */

/* Takes the request over. The answer comes later. */
static int ask_head(struct emu_server *server, struct emu_admin_request *request, struct emu_connection *connection,
                    const struct emu_msg *msg)
{
    struct emu_admin *admin = server->admin;
    struct emu_word_list list = { .words = NULL };
    struct question *question = NULL;
    int r = -ENOMEM;

    if (!emu_hosts_is_up(server, EMU_HOST_HEAD)) {
        emu_admin_request_free(request);
        return -EHOSTUNREACH;
    }
    emu_admin_request_put(request, &list);
    if (!list.has_failed)
        question = calloc(1, sizeof(*question));
    if (question) {
        question->token = ++admin->last_token;
        question->connection = connection;
        if (msg)
            question->reply = *msg;
        question->deadline_ns = emu_hosts_now_ns(server) + 2 * emu_hosts_timeout_ns(server);
        if (request->type == EMU_MSG_JOB_SUSPEND)
            question->deadline_ns += request->job.timeout_ms * 1000000ull;
        LIST_INSERT_HEAD(&admin->questions, question, link);
        emu_admin_send(server, EMU_HOST_HEAD, EMU_HOST_ADMIN_ASK, request->type, question->token, list.words, list.n);
        r = EMU_DEFERRED;
    }
    emu_word_list_fini(&list);
    emu_admin_request_free(request);
    return r;
}

int emu_admin_answer(struct emu_connection *c, const struct emu_msg *msg, const struct emu_fds *fds)
{
    struct emu_server *server = c->server;
    struct emu_admin_request *request;
    struct order *order;
    bool is_own;
    int r;

    r = emu_admin_request_read(c, msg, fds, &request);
    if (r < 0)
        return r;
    is_own = emu_admin_is_own(server, request);
    if (!is_head(server) && !is_own)
        return ask_head(server, request, c, msg);
    order = make_order(server, request, is_own);
    if (!order) {
        emu_admin_request_free(request);
        return -ENOMEM;
    }
    order->connection = c;
    order->reply = *msg;
    c->awaits_answer = true; /* also when it is answered at once */
    carry_out(server, order);
    return EMU_DEFERRED;
}

/* Who has asked does not wait any more; a suspension that is not complete has come to nothing. */
static void lose_asker(struct emu_server *server, struct order *order)
{
    bool is_pending = order->request->type == EMU_MSG_JOB_SUSPEND && order->is_begun && !order->has_gone;
    struct emu_admin_request *back = is_pending ? resume_of(order->request) : NULL;

    order->connection = NULL;
    order->has_gone = true;
    if (back)
        begin_order(server, back, true);
}

void emu_admin_forget(struct emu_server *server, const struct emu_connection *connection)
{
    struct question *question;
    struct order *order;

    if (!server->admin)
        return;
    LIST_FOREACH(question, &server->admin->questions, link) {
        if (question->connection != connection)
            continue;
        question->connection = NULL;
        emu_admin_send(server, EMU_HOST_HEAD, EMU_HOST_ADMIN_FORGET, 0, question->token, NULL, 0);
    }
    LIST_FOREACH(order, &server->admin->orders, link) {
        if (order->connection == connection) {
            lose_asker(server, order);
            break; /* it has one request under way */
        }
    }
}

int emu_admin_change_network(struct emu_server *server, const struct emu_msg_network *change)
{
    struct emu_admin_request *request = calloc(1, sizeof(*request));

    if (!request)
        return -ENOMEM;
    request->type = EMU_MSG_NETWORK;
    request->network = *change;
    begin_order(server, request, true);
    return 0;
}

void emu_admin_release_ntt(struct emu_server *server, uint32_t entry)
{
    struct emu_admin_request *request;

    if (!emu_hosts_are_several(server) || !is_head(server) || !server->admin)
        return;
    request = calloc(1, sizeof(*request));
    if (!request)
        return;
    request->type = EMU_MSG_NTT_CLEAR;
    request->job.ntt_base = (int32_t)entry;
    request->job.group_size = 1;
    begin_order(server, request, true);
}

/* ---- messages ---- */

/* A host has been asked; the head answers when it is done. */
static bool take_ask(struct emu_server *server, uint32_t host, uint16_t type, uint64_t token, struct emu_words *words)
{
    struct emu_admin_request *request = is_head(server) ? emu_admin_request_parse(server, type, words) : NULL;
    struct order *order = request ? make_order(server, request, false) : NULL;
    const uint64_t refused[RESULT_WORDS] = { (uint32_t)-EAGAIN, 0 };

    if (!request)
        return false;
    if (!order) {
        emu_admin_request_free(request);
        emu_admin_send(server, host, EMU_HOST_ADMIN_RESULT, 0, token, refused, RESULT_WORDS);
        return true;
    }
    order->origin = host;
    order->token = token;
    carry_out(server, order);
    return true;
}

static bool take_apply(struct emu_server *server, uint32_t host, uint16_t type, uint64_t number,
                       struct emu_words *words)
{
    struct emu_admin_request *request = host == EMU_HOST_HEAD ? emu_admin_request_parse(server, type, words) : NULL;
    uint64_t result;
    int r;

    if (!request || (number & OWN_ORDER) != 0) {
        emu_admin_request_free(request);
        return false;
    }
    r = emu_admin_request_do(server, request, true, EMU_HOST_HEAD, number);
    emu_admin_request_free(request);
    result = (uint32_t)r;
    if (r != EMU_DEFERRED)
        emu_admin_send(server, host, EMU_HOST_ADMIN_DONE, 0, number, &result, 1);
    return true;
}

static bool take_done(struct emu_server *server, uint32_t host, uint64_t number, struct emu_words *words)
{
    int result = (int32_t)(uint32_t)emu_words_take(words, UINT32_MAX);
    struct order *order = find_order(server, number);

    /* -4095 to 0, and positive outcomes. */
    if (words->is_bad || words->left != 0 || !is_head(server) || (number & OWN_ORDER) != 0 || result < -4095 ||
        result > 4095)
        return false;
    if (order)
        hear(server, order, host, result);
    return true;
}

static bool result_is_sound(const struct emu_server *server, const uint64_t *words, uint32_t n)
{
    int32_t result = n >= RESULT_WORDS && words[0] <= UINT32_MAX ? (int32_t)(uint32_t)words[0] : INT32_MIN;

    if (result < -4095 || result > 4095 || words[1] > UINT32_MAX || (n - RESULT_WORDS) % 2 != 0)
        return false;
    for (uint32_t i = RESULT_WORDS; i < n; i += 2) {
        if (words[i] >= emu_hosts_count(server) || words[i + 1] > 4095)
            return false;
    }
    return true;
}

/* Who asked for this suspension has gone. */
static void take_back(struct emu_server *server, const struct emu_msg *asked)
{
    struct emu_admin_request *resume = calloc(1, sizeof(*resume));

    if (!resume)
        return;
    resume->type = EMU_MSG_JOB_RESUME;
    resume->uid = geteuid();
    resume->job = asked->job;
    ask_head(server, resume, NULL, NULL);
}

static bool take_result(struct emu_server *server, uint32_t host, uint64_t token, const struct emu_word_list *list)
{
    struct question *question;

    if (host != EMU_HOST_HEAD || !result_is_sound(server, list->words, list->n))
        return false;
    LIST_FOREACH(question, &server->admin->questions, link) {
        if (question->token != token)
            continue;
        if (question->connection)
            answer(server, question->connection, &question->reply, list->words, list->n);
        else if (question->reply.type == EMU_MSG_JOB_SUSPEND && list->words[0] == 0)
            take_back(server, &question->reply);
        forget_question(question);
        return true;
    }
    return true; /* it was given up */
}

static bool take_forget(struct emu_server *server, uint32_t host, uint64_t token)
{
    struct order *order;

    LIST_FOREACH(order, &server->admin->orders, link) {
        if (order->origin == host && order->token == token) {
            lose_asker(server, order);
            break;
        }
    }
    return is_head(server);
}

/* Absolute: what the changes so far have led to. */
static bool take_state(struct emu_server *server, uint32_t host, uint16_t type, struct emu_words *words)
{
    struct emu_domain *domain;

    if (host != EMU_HOST_HEAD)
        return false;
    if (type == EMU_MSG_NETWORK)
        return emu_network_take_state(server, words);
    if (type == EMU_MSG_NTT_CLEAR)
        return emu_job_take_ntt(server, words);
    if (type != EMU_MSG_FAULT_SET && type != EMU_MSG_JOB_CONFIGURE)
        return false;
    domain = emu_hosts_find_domain(server, (uint32_t)emu_words_take(words, UINT32_MAX));
    if (!domain || domain->is_ending)
        return true; /* it could not be made here */
    return type == EMU_MSG_FAULT_SET ? emu_fault_take_state(server, domain, words) :
                                       emu_job_take_state(server, domain, words);
}

static bool take_list(struct emu_server *server, uint32_t host, const struct emu_admin_incoming *incoming)
{
    struct emu_words words = { .at = incoming->list.words, .left = incoming->list.n };

    switch (incoming->op) {
    case EMU_HOST_ADMIN_ASK:
        return take_ask(server, host, incoming->type, incoming->token, &words);
    case EMU_HOST_ADMIN_RESULT:
        return take_result(server, host, incoming->token, &incoming->list);
    case EMU_HOST_ADMIN_FORGET:
        return take_forget(server, host, incoming->token);
    case EMU_HOST_ADMIN_APPLY:
        return take_apply(server, host, incoming->type, incoming->token, &words);
    case EMU_HOST_ADMIN_DONE:
        return take_done(server, host, incoming->token, &words);
    case EMU_HOST_ADMIN_STATE:
        return take_state(server, host, incoming->type, &words);
    case EMU_HOST_ADMIN_LISTEN:
        return emu_error_host_listens(server, host, incoming->token, &words);
    case EMU_HOST_ADMIN_HEARS:
        return emu_gather_heard(server, host, incoming->token);
    case EMU_HOST_ADMIN_ERROR:
        return emu_error_take_event(server, host, &words);
    case EMU_HOST_ADMIN_WHO:
        return emu_fault_who(server, host, incoming->token, &words);
    case EMU_HOST_ADMIN_OWNER:
        return emu_fault_owner(server, host, incoming->token, &words);
    case EMU_HOST_ADMIN_KILL:
        return emu_fault_kill(server, host, &words);
    case EMU_HOST_ADMIN_PRESENCE:
        return emu_presence_hear(server, host, &words);
    case EMU_HOST_ADMIN_PING:
        emu_admin_send(server, host, EMU_HOST_ADMIN_PONG, 0, incoming->token, NULL, 0);
        return true;
    case EMU_HOST_ADMIN_PONG:
        emu_hosts_hear_pong(server, host);
        return true;
    default:
        return false;
    }
}

bool emu_admin_host_message(struct emu_server *server, uint32_t host, const uint8_t *bytes, uint32_t length_bytes)
{
    struct emu_admin_incoming *incoming = &server->admin->incoming[host];
    struct emu_host_admin m;
    bool is_good;

    if (!emu_host_admin_parse(bytes, length_bytes, &m))
        return false;
    if (m.op == EMU_HOST_ADMIN_REPORT)
        return emu_gather_asked(server, host, &m);
    if (m.op == EMU_HOST_ADMIN_ROWS)
        return emu_gather_rows(server, host, &m);
    is_good = emu_admin_incoming_add(incoming, &m);
    if (is_good && !emu_admin_incoming_is_whole(incoming))
        return true;
    is_good = is_good && take_list(server, host, incoming);
    emu_word_list_fini(&incoming->list);
    *incoming = (struct emu_admin_incoming){ .op = 0 };
    return is_good;
}

/* ---- hosts that come and go ---- */

void emu_admin_tell_domain(struct emu_server *server, uint32_t host, const struct emu_domain *domain)
{
    struct emu_word_list list = { .words = NULL };

    emu_word_list_add(&list, domain->common_number);
    emu_fault_put_state(domain, &list);
    emu_admin_send(server, host, EMU_HOST_ADMIN_STATE, EMU_MSG_FAULT_SET, 0, list.words, list.n);
    list.n = 0;
    emu_word_list_add(&list, domain->common_number);
    emu_job_put_state(domain, &list);
    emu_admin_send(server, host, EMU_HOST_ADMIN_STATE, EMU_MSG_JOB_CONFIGURE, 0, list.words, list.n);
    emu_word_list_fini(&list);
}

void emu_admin_host_up(struct emu_server *server, uint32_t host)
{
    struct emu_word_list list = { .words = NULL };

    emu_error_host_up(server, host);
    if (!is_head(server))
        return;
    emu_network_put_state(server, &list);
    emu_admin_send(server, host, EMU_HOST_ADMIN_STATE, EMU_MSG_NETWORK, 0, list.words, list.n);
    list.n = 0;
    emu_job_put_ntt(server, &list);
    emu_admin_send(server, host, EMU_HOST_ADMIN_STATE, EMU_MSG_NTT_CLEAR, 0, list.words, list.n);
    emu_word_list_fini(&list);
}

static void lose_head(struct emu_server *server)
{
    const uint64_t words[RESULT_WORDS] = { (uint32_t)-EHOSTUNREACH, 0 };
    struct question *question;

    while ((question = LIST_FIRST(&server->admin->questions))) {
        if (question->connection)
            answer(server, question->connection, &question->reply, words, RESULT_WORDS);
        forget_question(question);
    }
}

void emu_admin_host_down(struct emu_server *server, uint32_t host)
{
    struct emu_admin *admin = server->admin;
    struct order *order = LIST_FIRST(&admin->orders);

    while (order) {
        struct order *next = LIST_NEXT(order, link);

        if (order->origin == host)
            lose_asker(server, order);
        hear(server, order, host, -EHOSTUNREACH);
        order = next;
    }
    if (host == EMU_HOST_HEAD)
        lose_head(server);
    emu_word_list_fini(&admin->incoming[host].list);
    admin->incoming[host] = (struct emu_admin_incoming){ .op = 0 };
    emu_gather_host_down(server, host);
    emu_error_host_down(server, host);
    emu_fault_host_down(server, host);
    emu_presence_host_down(server, host);
}

/* ---- time ---- */

uint64_t emu_admin_next_ns(const struct emu_server *server)
{
    const struct question *question;
    const struct order *order;
    uint64_t next_ns = emu_gather_next_ns(server);

    LIST_FOREACH(order, &server->admin->orders, link) {
        if (order->n_left > 0 && order->deadline_ns < next_ns)
            next_ns = order->deadline_ns;
    }
    LIST_FOREACH(question, &server->admin->questions, link) {
        if (question->deadline_ns < next_ns)
            next_ns = question->deadline_ns;
    }
    return next_ns == UINT64_MAX ? next_ns : next_ns + (emu_clock_ns() - emu_hosts_now_ns(server));
}

static void drop_silent(struct emu_server *server, struct order *order)
{
    for (uint32_t i = 0; i < emu_hosts_count(server); i++) {
        if (order->hosts[i].is_awaited)
            emu_hosts_drop(server, i, "has not answered a request");
    }
}

void emu_admin_round(struct emu_server *server)
{
    struct emu_admin *admin = server->admin;
    uint64_t now_ns;
    struct order *order;

    if (!emu_hosts_are_several(server) ||
        (LIST_EMPTY(&admin->orders) && LIST_EMPTY(&admin->questions) && !emu_gather_is_busy(server)))
        return;
    now_ns = emu_hosts_now_ns(server);
    LIST_FOREACH(order, &admin->orders, link) {
        if (order->n_left == 0 || now_ns < order->deadline_ns)
            continue;
        drop_silent(server, order); /* its end is heard of as of any host that is lost */
        order->deadline_ns = now_ns + emu_hosts_timeout_ns(server);
    }
    if (!LIST_EMPTY(&admin->questions)) {
        const struct question *question;

        LIST_FOREACH(question, &admin->questions, link) {
            if (now_ns >= question->deadline_ns) {
                emu_hosts_drop(server, EMU_HOST_HEAD, "has not answered a request");
                lose_head(server);
                break;
            }
        }
    }
    emu_gather_round(server, now_ns);
}
