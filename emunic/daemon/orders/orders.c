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
#include "emunic/daemon/orders/order_request.h"
#include "emunic/daemon/peers/lists.h"
#include "emunic/daemon/peers/sessions.h"
#include "emunic/daemon/world/domain.h"

#define ORDERS_MAX   1024u        /* under way; more are refused */
#define OWN_ORDER    (1ull << 63) /* numbers of orders for this host alone */
#define NOT_ASKED    INT32_MIN    /* of a host: the order was not for it */
#define RESULT_WORDS 2u           /* then two for each host that has not done it */

/* A request that is being done: on the head, or for this host alone. */
struct order {
    LIST_ENTRY(order) link;
    uint64_t number;
    struct emu_change *request;        /* owned */
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
};

static void begin_order(struct emu_server *server, struct emu_change *request, bool is_internal);

static struct emu_admin *admin_of(const struct emu_server *server)
{
    return server->slots[EMU_SERVER_ORDERS];
}

/* ---- life ---- */

static int create(struct emu_server *server, const struct emu_server_options *options, struct emu_complaint *why)
{
    struct emu_admin *admin = calloc(1, sizeof(*admin));

    (void)options;
    (void)why;
    if (!admin)
        return -ENOMEM;
    LIST_INIT(&admin->orders);
    LIST_INIT(&admin->questions);
    server->slots[EMU_SERVER_ORDERS] = admin;
    return 0;
}

static void forget_order(struct emu_admin *admin, struct order *order)
{
    LIST_REMOVE(order, link);
    admin->n_orders--;
    emu_change_free(order->request);
    free(order);
}

static void forget_question(struct question *question)
{
    LIST_REMOVE(question, link);
    free(question);
}

static void destroy(struct emu_server *server)
{
    struct emu_admin *admin = admin_of(server);
    struct question *question;
    struct order *order;

    if (!admin)
        return;
    while ((order = LIST_FIRST(&admin->orders)))
        forget_order(admin, order);
    while ((question = LIST_FIRST(&admin->questions)))
        forget_question(question);
    free(admin);
    server->slots[EMU_SERVER_ORDERS] = NULL;
}

static bool is_head(const struct emu_server *server)
{
    return emu_hosts_own(server) == EMU_HOST_HEAD;
}

static struct emu_change *resume_of(const struct emu_server *server, const struct emu_change *suspend)
{
    struct emu_change *resume = calloc(1, sizeof(*resume));

    if (!resume)
        return NULL;
    resume->row = emu_change_row_of(server, EMU_MSG_JOB_RESUME);
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
    const struct emu_change_row *row = emu_change_row_of(server, reply->type);
    int fd = describe_others(server, words + RESULT_WORDS, (n - RESULT_WORDS) / 2);
    int result = (int32_t)(uint32_t)words[0];

    if (result == 0 && row && row->reply)
        row->reply((uint32_t)words[1], reply);
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
    return order->request->row->type == EMU_MSG_JOB_SUSPEND && order->is_begun &&
           (order->result < 0 || order->has_gone);
}

static void finish(struct emu_server *server, struct order *order)
{
    struct emu_change *back = must_take_back(order) ? resume_of(server, order->request) : NULL;
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
        emu_list_send(
            server,
            &(struct emu_list_head){ .host = order->origin, .op = EMU_HOST_ADMIN_RESULT, .token = order->token }, words,
            n);
    emu_word_list_fini(&list);
    forget_order(admin_of(server), order);
    if (back)
        begin_order(server, back, true);
}

static void finish_if_over(struct emu_server *server, struct order *order)
{
    if (!order->awaits_own && order->n_left == 0)
        finish(server, order);
}

/* ---- orders ---- */

static struct order *make_order(struct emu_server *server, struct emu_change *request, bool is_own)
{
    struct emu_admin *admin = admin_of(server);
    uint32_t n_hosts = emu_hosts_count(server);
    struct order *order =
        admin->n_orders < ORDERS_MAX ? calloc(1, sizeof(*order) + n_hosts * sizeof(order->hosts[0])) : NULL;

    if (!order)
        return NULL;
    order->number = ++admin->last_number | (is_own ? OWN_ORDER : 0);
    order->request = request;
    order->origin = emu_hosts_own(server);
    order->deadline_ns = emu_hosts_now_ns(server) + emu_hosts_timeout_ns(server);
    if (request->row->type == EMU_MSG_JOB_SUSPEND)
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

    LIST_FOREACH(order, &admin_of(server)->orders, link) {
        if (order->number == number)
            return order;
    }
    return NULL;
}

/* Is it something that the others do as well? */
static bool is_for_all(const struct emu_server *server, const struct order *order)
{
    const struct emu_change *request = order->request;

    return emu_hosts_are_several(server) && (order->number & OWN_ORDER) == 0 &&
           !(request->row->type == EMU_MSG_NETWORK && request->network.after_ns > 0);
}

static void tell_others(struct emu_server *server, struct order *order)
{
    struct emu_word_list list = { .words = NULL };

    emu_change_put(order->request, &list);
    for (uint32_t i = 0; i < emu_hosts_count(server); i++) {
        if (i == emu_hosts_own(server))
            continue;
        order->hosts[i].result = list.has_failed ? -ENOMEM : -EHOSTUNREACH;
        if (list.has_failed || !emu_hosts_is_up(server, i))
            continue;
        emu_list_send(
            server,
            &(struct emu_list_head){
                .host = i, .op = EMU_HOST_ADMIN_APPLY, .type = order->request->row->type, .token = order->number },
            list.words, list.n);
        order->hosts[i].is_awaited = true;
        order->n_left++;
    }
    emu_word_list_fini(&list);
}

/* Does it here and has the others do it. It may be over, and gone, when this returns. */
static void carry_out(struct emu_server *server, struct order *order)
{
    const struct emu_change_order how = { order->is_internal, order->origin, order->number };
    const struct emu_change_row *row = order->request->row;
    int r = row->act(server, order->request, &how);

    order->awaits_own = r == EMU_DEFERRED;
    order->result = r == EMU_DEFERRED ? 0 : r;
    order->is_begun = order->result == 0;
    order->value = row->value ? row->value(server, order->request) : 0;
    if (order->result == 0 && is_for_all(server, order))
        tell_others(server, order);
    finish_if_over(server, order);
}

/* Nobody waits for it. Takes the request over. */
static void begin_order(struct emu_server *server, struct emu_change *request, bool is_internal)
{
    struct order *order = make_order(server, request, emu_change_is_own(server, request));

    if (!order) {
        emu_log(EMU_LOG_ERROR, "no memory, or too many requests under way: one of type %u is left out",
                request->row->type);
        emu_change_free(request);
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
    if (order->result == 0 && result == -ETIMEDOUT && order->request->row->type == EMU_MSG_JOB_SUSPEND)
        order->result = result;
    finish_if_over(server, order);
}

void emu_order_ended(struct emu_server *server, uint64_t number, int result)
{
    struct order *order = find_order(server, number);
    uint64_t word = (uint32_t)result;

    if (order) {
        order->awaits_own = false;
        order->result = order->result ? order->result : result;
        finish_if_over(server, order);
    } else if (emu_hosts_are_several(server) && !is_head(server) && (number & OWN_ORDER) == 0) {
        emu_list_send(server,
                      &(struct emu_list_head){ .host = EMU_HOST_HEAD, .op = EMU_HOST_ADMIN_DONE, .token = number },
                      &word, 1);
    }
}

/* ---- who asks ---- */

/* Takes the request over. The answer comes later. */
static int ask_head(struct emu_server *server, struct emu_change *request, struct emu_connection *connection,
                    const struct emu_msg *msg)
{
    struct emu_admin *admin = admin_of(server);
    struct emu_word_list list = { .words = NULL };
    struct question *question = NULL;
    int r = -ENOMEM;

    if (!emu_hosts_is_up(server, EMU_HOST_HEAD)) {
        emu_change_free(request);
        return -EHOSTUNREACH;
    }
    emu_change_put(request, &list);
    if (!list.has_failed)
        question = calloc(1, sizeof(*question));
    if (question) {
        question->token = ++admin->last_token;
        question->connection = connection;
        if (msg)
            question->reply = *msg;
        question->deadline_ns = emu_hosts_now_ns(server) + 2 * emu_hosts_timeout_ns(server);
        if (request->row->type == EMU_MSG_JOB_SUSPEND)
            question->deadline_ns += request->job.timeout_ms * 1000000ull;
        LIST_INSERT_HEAD(&admin->questions, question, link);
        emu_list_send(
            server,
            &(struct emu_list_head){
                .host = EMU_HOST_HEAD, .op = EMU_HOST_ADMIN_ASK, .type = request->row->type, .token = question->token },
            list.words, list.n);
        r = EMU_DEFERRED;
    }
    emu_word_list_fini(&list);
    emu_change_free(request);
    return r;
}

static int answer_change(struct emu_request *asked)
{
    struct emu_connection *c = asked->connection;
    struct emu_server *server = c->server;
    struct emu_change *request;
    struct order *order;
    bool is_own;
    int r;

    if (!emu_change_row_of(server, asked->msg->type))
        return -EPROTO;
    r = emu_change_read(c, asked->msg, asked->fds, &request);
    if (r < 0)
        return r;
    is_own = emu_change_is_own(server, request);
    if (!is_head(server) && !is_own)
        return ask_head(server, request, c, asked->msg);
    order = make_order(server, request, is_own);
    if (!order) {
        emu_change_free(request);
        return -ENOMEM;
    }
    order->connection = c;
    order->reply = *asked->msg;
    c->awaits_answer = true; /* also when it is answered at once */
    carry_out(server, order);
    return EMU_DEFERRED;
}

/* Who has asked does not wait any more; a suspension that is not complete has come to nothing. */
static void lose_asker(struct emu_server *server, struct order *order)
{
    bool is_pending = order->request->row->type == EMU_MSG_JOB_SUSPEND && order->is_begun && !order->has_gone;
    struct emu_change *back = is_pending ? resume_of(server, order->request) : NULL;

    order->connection = NULL;
    order->has_gone = true;
    if (back)
        begin_order(server, back, true);
}

/* The connection waits no longer. A suspension that it has asked for ends. */
static void forget_connection(struct emu_connection *connection)
{
    struct emu_server *server = connection->server;
    struct question *question;
    struct order *order;

    LIST_FOREACH(question, &admin_of(server)->questions, link) {
        if (question->connection != connection)
            continue;
        question->connection = NULL;
        emu_list_send(
            server,
            &(struct emu_list_head){ .host = EMU_HOST_HEAD, .op = EMU_HOST_ADMIN_FORGET, .token = question->token },
            NULL, 0);
    }
    LIST_FOREACH(order, &admin_of(server)->orders, link) {
        if (order->connection == connection) {
            lose_asker(server, order);
            break; /* it has one request under way */
        }
    }
}

int emu_order_begin(struct emu_server *server, uint16_t type, struct emu_change *change)
{
    if (!change)
        return -ENOMEM;
    change->row = emu_change_row_of(server, type);
    begin_order(server, change, true);
    return 0;
}

/* ---- messages ---- */

/* A host has been asked; the head answers when it is done. */
static bool take_ask(struct emu_server *server, uint32_t host, struct emu_list *list)
{
    struct emu_change *request = is_head(server) ? emu_change_parse(server, list->type, &list->words) : NULL;
    struct order *order = request ? make_order(server, request, false) : NULL;
    const uint64_t refused[RESULT_WORDS] = { (uint32_t)-EAGAIN, 0 };

    if (!request)
        return false;
    if (!order) {
        emu_change_free(request);
        emu_list_send(server,
                      &(struct emu_list_head){ .host = host, .op = EMU_HOST_ADMIN_RESULT, .token = list->token },
                      refused, RESULT_WORDS);
        return true;
    }
    order->origin = host;
    order->token = list->token;
    carry_out(server, order);
    return true;
}

static bool take_apply(struct emu_server *server, uint32_t host, struct emu_list *list)
{
    const struct emu_change_order how = { .is_ordered = true, .origin = EMU_HOST_HEAD, .number = list->token };
    struct emu_change *request = host == EMU_HOST_HEAD ? emu_change_parse(server, list->type, &list->words) : NULL;
    uint64_t result;
    int r;

    if (!request || (list->token & OWN_ORDER) != 0) {
        emu_change_free(request);
        return false;
    }
    r = request->row->act(server, request, &how);
    emu_change_free(request);
    result = (uint32_t)r;
    if (r != EMU_DEFERRED)
        emu_list_send(server, &(struct emu_list_head){ .host = host, .op = EMU_HOST_ADMIN_DONE, .token = list->token },
                      &result, 1);
    return true;
}

static bool take_done(struct emu_server *server, uint32_t host, struct emu_list *list)
{
    struct emu_words *words = &list->words;
    uint64_t number = list->token;
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
    struct emu_change *resume = calloc(1, sizeof(*resume));

    if (!resume)
        return;
    resume->row = emu_change_row_of(server, EMU_MSG_JOB_RESUME);
    resume->uid = geteuid();
    resume->job = asked->job;
    ask_head(server, resume, NULL, NULL);
}

static bool take_result(struct emu_server *server, uint32_t host, struct emu_list *list)
{
    struct question *question;

    if (host != EMU_HOST_HEAD || !result_is_sound(server, list->all, list->n))
        return false;
    LIST_FOREACH(question, &admin_of(server)->questions, link) {
        if (question->token != list->token)
            continue;
        if (question->connection)
            answer(server, question->connection, &question->reply, list->all, list->n);
        else if (question->reply.type == EMU_MSG_JOB_SUSPEND && list->all[0] == 0)
            take_back(server, &question->reply);
        forget_question(question);
        return true;
    }
    return true; /* it was given up */
}

static bool take_forget(struct emu_server *server, uint32_t host, struct emu_list *list)
{
    struct order *order;

    LIST_FOREACH(order, &admin_of(server)->orders, link) {
        if (order->origin == host && order->token == list->token) {
            lose_asker(server, order);
            break;
        }
    }
    return is_head(server);
}

static const struct emu_state_row *state_row_of(const struct emu_server *server, uint16_t type)
{
    for (uint32_t i = 0; i < server->parts->n; i++) {
        const struct emu_part *part = server->parts->all[i];

        for (uint32_t k = 0; k < part->n_states; k++) {
            if (part->states[k].type == type)
                return &part->states[k];
        }
    }
    return NULL;
}

/* Absolute: what the changes so far have led to. */
static bool take_state(struct emu_server *server, uint32_t host, struct emu_list *list)
{
    const struct emu_state_row *row = state_row_of(server, list->type);
    struct emu_domain *domain = NULL;

    if (host != EMU_HOST_HEAD || !row)
        return false;
    if (row->is_of_domain) {
        domain = emu_hosts_find_domain(server, (uint32_t)emu_words_take(&list->words, UINT32_MAX));
        if (!domain || domain->is_ending)
            return true; /* it could not be made here */
    }
    return row->take(server, domain, &list->words);
}

/* ---- hosts that come and go ---- */

/* domain NULL: what is of none. */
static void tell_states(struct emu_server *server, uint32_t host, const struct emu_domain *domain)
{
    struct emu_word_list list = { .words = NULL };

    for (uint32_t i = 0; i < server->parts->n; i++) {
        const struct emu_part *part = server->parts->all[i];

        for (uint32_t k = 0; k < part->n_states; k++) {
            const struct emu_state_row *row = &part->states[k];

            if (row->is_of_domain != (bool)domain)
                continue;
            list.n = 0;
            if (domain)
                emu_word_list_add(&list, domain->common_number);
            row->put(server, domain, &list);
            emu_list_send(server,
                          &(struct emu_list_head){ .host = host, .op = EMU_HOST_ADMIN_STATE, .type = row->type },
                          list.words, list.n);
        }
    }
    emu_word_list_fini(&list);
}

void emu_orders_tell_domain(struct emu_server *server, uint32_t host, const struct emu_domain *domain)
{
    tell_states(server, host, domain);
}

/* Before the head tells it of domains. */
static void host_up(struct emu_server *server, uint32_t host)
{
    if (is_head(server))
        tell_states(server, host, NULL);
}

static void lose_head(struct emu_server *server)
{
    const uint64_t words[RESULT_WORDS] = { (uint32_t)-EHOSTUNREACH, 0 };
    struct question *question;

    while ((question = LIST_FIRST(&admin_of(server)->questions))) {
        if (question->connection)
            answer(server, question->connection, &question->reply, words, RESULT_WORDS);
        forget_question(question);
    }
}

static void host_down(struct emu_server *server, uint32_t host)
{
    struct emu_admin *admin = admin_of(server);
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
}

/* ---- time ---- */

static uint64_t next_ns(const struct emu_server *server)
{
    const struct question *question;
    const struct order *order;
    uint64_t first_ns = UINT64_MAX;

    LIST_FOREACH(order, &admin_of(server)->orders, link) {
        if (order->n_left > 0 && order->deadline_ns < first_ns)
            first_ns = order->deadline_ns;
    }
    LIST_FOREACH(question, &admin_of(server)->questions, link) {
        if (question->deadline_ns < first_ns)
            first_ns = question->deadline_ns;
    }
    return first_ns == UINT64_MAX ? first_ns : first_ns + (emu_clock_ns() - emu_hosts_now_ns(server));
}

static void drop_silent(struct emu_server *server, struct order *order)
{
    for (uint32_t i = 0; i < emu_hosts_count(server); i++) {
        if (order->hosts[i].is_awaited)
            emu_hosts_drop(server, i, "has not answered a request");
    }
}

static unsigned look(struct emu_server *server)
{
    struct emu_admin *admin = admin_of(server);
    uint64_t now_ns;
    struct order *order;

    if (!emu_hosts_are_several(server) || (LIST_EMPTY(&admin->orders) && LIST_EMPTY(&admin->questions)))
        return 0;
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
    return 0;
}

/* ---- the part ---- */

static const struct emu_request_row requests[] = {
    { EMU_MSG_DATAPATH, EMU_MSG_FAULT_CLEAR, EMU_NEEDS_ADMIN, answer_change },
    { EMU_MSG_NETWORK, EMU_MSG_NETWORK, EMU_NEEDS_ADMIN, answer_change },
    { EMU_MSG_JOB_CONFIGURE, EMU_MSG_NTT_CLEAR, EMU_NEEDS_ADMIN, answer_change },
};
static const struct emu_list_row lists[] = {
    { EMU_HOST_ADMIN_ASK, take_ask },       { EMU_HOST_ADMIN_RESULT, take_result },
    { EMU_HOST_ADMIN_FORGET, take_forget }, { EMU_HOST_ADMIN_APPLY, take_apply },
    { EMU_HOST_ADMIN_DONE, take_done },     { EMU_HOST_ADMIN_STATE, take_state },
};

const struct emu_part emu_orders_part = {
    .name = "orders",
    .create = create,
    .destroy = destroy,
    .requests = requests,
    .n_requests = EMU_ROWS(requests),
    .loop = { .round = look, .next_ns = next_ns },
    .hosts = { .lists = lists, .n_lists = EMU_ROWS(lists), .up = host_up, .down = host_down },
    .connection_end = forget_connection,
};
