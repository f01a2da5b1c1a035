/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Lists of words between hosts. The parts of a list follow each other, because nothing else of its kind is sent in
 * between; so the receiver has one list at a time of each host, and a part that does not fit makes it forget it.
 *
 * A report is asked for part by part (reports/gather.c): its messages are handed on as they come.
 */
#include "emunic/daemon/peers/lists.h"

#include <errno.h>
#include <stdlib.h>

#include "emunic/daemon/peers/sessions.h"
#include "emunic/daemon/world/server.h"

/* What has come of a list of one host. */
struct incoming {
    uint16_t op;
    uint16_t type;
    uint64_t token;
    uint32_t total;
    struct emu_word_list list;
};

static struct incoming *incoming_of(const struct emu_server *server)
{
    return server->slots[EMU_SERVER_LISTS];
}

/* ---- sending ---- */

void emu_list_send_part(struct emu_server *server, const struct emu_list_head *head, const uint64_t *words, uint32_t n,
                        uint32_t first)
{
    struct emu_host_admin m = {
        .op = (uint16_t)head->op, .type = head->type, .token = head->token, .first = first, .total = n
    };
    uint8_t message[EMU_HOST_ADMIN_BYTES_MAX];

    m.n = n - first < EMU_HOST_ADMIN_WORDS ? n - first : EMU_HOST_ADMIN_WORDS;
    emu_hosts_answer(server, head->host, message, emu_host_admin_put(message, &m, words));
}

void emu_list_send(struct emu_server *server, const struct emu_list_head *head, const uint64_t *words, uint32_t n)
{
    uint32_t first = 0;

    do {
        emu_list_send_part(server, head, words, n, first);
        first += EMU_HOST_ADMIN_WORDS;
    } while (first < n);
}

/* ---- receiving ---- */

/* Adds a part. False: it is not the next one. */
static bool add(struct incoming *incoming, const struct emu_host_admin *part)
{
    uint64_t *at;

    if (part->first == 0) {
        incoming->list.n = 0;
        incoming->op = part->op;
        incoming->type = part->type;
        incoming->token = part->token;
        incoming->total = part->total;
    }
    if (part->op != incoming->op || part->type != incoming->type || part->token != incoming->token ||
        part->total != incoming->total || part->first != incoming->list.n)
        return false;
    at = part->n > 0 ? emu_word_list_extend(&incoming->list, part->n) : NULL;
    for (uint32_t i = 0; at && i < part->n; i++)
        at[i] = emu_host_admin_word(part, i);
    return !incoming->list.has_failed;
}

static bool hand_on(struct emu_server *server, uint32_t host, uint16_t op, struct emu_list *list)
{
    const struct emu_list_row *row = emu_parts_list(server, op);

    list->words = (struct emu_words){ .at = list->all, .left = list->n };
    return row && row->take(server, host, list);
}

/* A part of a report, or the question for it. */
static bool take_part(struct emu_server *server, uint32_t host, const struct emu_host_admin *m)
{
    uint64_t words[EMU_HOST_ADMIN_WORDS];
    struct emu_list list = {
        .type = m->type, .token = m->token, .all = words, .n = m->n, .first = m->first, .total = m->total
    };

    for (uint32_t i = 0; i < m->n; i++)
        words[i] = emu_host_admin_word(m, i);
    return hand_on(server, host, m->op, &list);
}

static bool take(struct emu_server *server, uint32_t host, const uint8_t *bytes, uint32_t length_bytes)
{
    struct incoming *incoming = &incoming_of(server)[host];
    struct emu_host_admin m;
    struct emu_list list;
    bool is_good;

    if (!emu_host_admin_parse(bytes, length_bytes, &m))
        return false;
    if (m.op == EMU_HOST_ADMIN_REPORT || m.op == EMU_HOST_ADMIN_ROWS)
        return take_part(server, host, &m);
    is_good = add(incoming, &m);
    if (is_good && incoming->list.n < incoming->total)
        return true;
    list = (struct emu_list){ .type = incoming->type,
                              .token = incoming->token,
                              .all = incoming->list.words,
                              .n = incoming->list.n,
                              .total = incoming->total };
    is_good = is_good && hand_on(server, host, incoming->op, &list);
    emu_word_list_fini(&incoming->list);
    *incoming = (struct incoming){ .op = 0 };
    return is_good;
}

/* ---- is anybody there ---- */

static bool take_ping(struct emu_server *server, uint32_t host, struct emu_list *list)
{
    const struct emu_list_head answer = { .host = host, .op = EMU_HOST_ADMIN_PONG, .token = list->token };

    emu_list_send(server, &answer, NULL, 0);
    return true;
}

static bool take_pong(struct emu_server *server, uint32_t host, struct emu_list *list)
{
    (void)list;
    emu_hosts_hear_pong(server, host);
    return true;
}

/* ---- life ---- */

static int create(struct emu_server *server, const struct emu_server_options *options, struct emu_complaint *why)
{
    (void)options;
    (void)why;
    server->slots[EMU_SERVER_LISTS] = calloc(emu_hosts_count(server), sizeof(struct incoming));
    return server->slots[EMU_SERVER_LISTS] ? 0 : -ENOMEM;
}

static void destroy(struct emu_server *server)
{
    struct incoming *incoming = incoming_of(server);

    for (uint32_t i = 0; incoming && i < emu_hosts_count(server); i++)
        emu_word_list_fini(&incoming[i].list);
    free(incoming);
    server->slots[EMU_SERVER_LISTS] = NULL;
}

static void host_down(struct emu_server *server, uint32_t host)
{
    struct incoming *incoming = &incoming_of(server)[host];

    emu_word_list_fini(&incoming->list);
    *incoming = (struct incoming){ .op = 0 };
}

static const struct emu_message_row messages[] = { { EMU_HOST_ADMIN, take } };
static const struct emu_list_row lists[] = {
    { EMU_HOST_ADMIN_PING, take_ping },
    { EMU_HOST_ADMIN_PONG, take_pong },
};

const struct emu_part emu_lists_part = {
    .name = "lists",
    .create = create,
    .destroy = destroy,
    .hosts = { .messages = messages,
               .n_messages = EMU_ROWS(messages),
               .lists = lists,
               .n_lists = EMU_ROWS(lists),
               .down = host_down },
};
