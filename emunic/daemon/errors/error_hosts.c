/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Error events between hosts.
 *
 * A host says when somebody on it begins to listen (LISTEN), and the others send their events there until he does not
 * any more. A host that has more to tell than another takes leaves events out and says how many with the next one: the
 * serial numbers of all subscriptions there skip as many. What all hosts tell their own subscribers, because they all
 * do the same (changes of rules and of the network), is not sent.
 */
#include "emunic/daemon/errors/error_hosts.h"

#include <errno.h>
#include <stdlib.h>

#include "emunic/abi/error.h"
#include "emunic/daemon/errors/error_stream.h"
#include "emunic/daemon/peers/lists.h"
#include "emunic/daemon/peers/sessions.h"
#include "emunic/daemon/world/domain.h"

struct listener {
    bool listens;
    uint32_t n_lost; /* since the last event that it was told of */
};

struct emu_error_hosts {
    uint32_t n_listening;
    struct listener hosts[];
};

static struct emu_error_hosts *others_of(const struct emu_server *server)
{
    return server->slots[EMU_SERVER_ERROR_HOSTS];
}

int emu_error_hosts_create(struct emu_server *server)
{
    struct emu_error_hosts *hosts = calloc(1, sizeof(*hosts) + emu_hosts_count(server) * sizeof(hosts->hosts[0]));

    server->slots[EMU_SERVER_ERROR_HOSTS] = hosts;
    return hosts ? 0 : -ENOMEM;
}

void emu_error_hosts_destroy(struct emu_server *server)
{
    free(others_of(server));
    server->slots[EMU_SERVER_ERROR_HOSTS] = NULL;
}

bool emu_error_others_listen(const struct emu_server *server)
{
    return others_of(server)->n_listening > 0;
}

void emu_error_tell_others(struct emu_server *server, const struct emu_domain *domain,
                           const struct emu_error_record *record)
{
    struct emu_host_error error = { .domain = domain->common_number, .record = *record };
    struct emu_host_admin m = { .op = EMU_HOST_ADMIN_ERROR, .total = EMU_HOST_ERROR_WORDS, .n = EMU_HOST_ERROR_WORDS };
    uint8_t message[EMU_HOST_ADMIN_BYTES_MAX];
    uint64_t words[EMU_HOST_ERROR_WORDS];

    if (!emu_error_others_listen(server) || domain->common_number == 0)
        return;
    for (uint32_t i = 0; i < emu_hosts_count(server); i++) {
        struct listener *listener = &others_of(server)->hosts[i];

        if (!listener->listens)
            continue;
        error.n_lost = listener->n_lost;
        emu_host_error_put(words, &error);
        if (emu_hosts_send(server, i, message, emu_host_admin_put(message, &m, words)) == 0)
            listener->n_lost = 0;
        else if (listener->n_lost < UINT32_MAX)
            listener->n_lost++;
    }
}

void emu_error_tell_listening(struct emu_server *server, uint32_t host, uint64_t token, bool listens)
{
    const uint64_t word = listens;

    emu_list_send(server, &(struct emu_list_head){ .host = host, .op = EMU_HOST_ADMIN_LISTEN, .token = token }, &word,
                  1);
}

static void set_listening(struct emu_server *server, uint32_t host, bool listens)
{
    struct listener *listener = &others_of(server)->hosts[host];

    if (listener->listens == listens)
        return;
    *listener = (struct listener){ .listens = listens };
    if (listens)
        others_of(server)->n_listening++;
    else
        others_of(server)->n_listening--;
    emu_error_watch_all(server);
}

bool emu_error_host_listens(struct emu_server *server, uint32_t host, struct emu_list *list)
{
    struct emu_words *words = &list->words;
    bool listens = emu_words_take(words, 1) != 0;

    if (words->is_bad || words->left != 0)
        return false;
    set_listening(server, host, listens);
    if (list->token != 0)
        emu_list_send(server, &(struct emu_list_head){ .host = host, .op = EMU_HOST_ADMIN_HEARS, .token = list->token },
                      NULL, 0);
    return true;
}

/* A host speaks of its own nodes. */
bool emu_error_take_event(struct emu_server *server, uint32_t host, struct emu_list *list)
{
    struct emu_host_error error;
    const struct emu_domain *domain;
    uint32_t node;

    if (!emu_host_error_take(&list->words, &error))
        return false;
    domain = emu_hosts_find_domain(server, error.domain);
    if (!domain)
        return true;
    node = emu_domain_node_of(domain, (uint32_t)(error.record.info[0] >> 32));
    if (node == EMU_NID_NONE || emu_hosts_of_node(domain, node) != host)
        return false;
    emu_error_lose(server, error.n_lost);
    emu_error_tell_here(server, domain, error.record);
    return true;
}

void emu_error_host_up(struct emu_server *server, uint32_t host)
{
    if (emu_error_is_heard_here(server))
        emu_error_tell_listening(server, host, 0, true);
}

void emu_error_host_down(struct emu_server *server, uint32_t host)
{
    set_listening(server, host, false);
}
