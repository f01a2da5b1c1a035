/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Requests about collective engines that wait until all other hosts know what they have changed, and what is owed to
 * those of other hosts.
 *
 *   made -> (held: nothing to announce yet) -> announced to each host (STATE, GONE) -> heard of all (KNOWN) -> answered
 *
 * A host that is lost knows enough. The other side acknowledges after a look at its clients: so whoever of them had
 * gone before is known to have gone (LEFT) before the acknowledgement comes.
 */
#include "emunic/daemon/ce/ce_hosts.h"

#include <stdlib.h>

#include "emunic/daemon/ce/ce_inner.h"
#include "emunic/daemon/core/connection.h"
#include "emunic/daemon/peers/sessions.h"

/* A request, until all hosts know what it has changed. */
struct emu_ce_wait {
    LIST_ENTRY(emu_ce_wait) link;
    struct emu_server *server;         /* borrowed */
    struct emu_connection *connection; /* borrowed; NULL: it has gone */
    struct emu_msg reply;
    uint64_t number; /* 0: not announced yet */
    uint32_t n_left;
    bool is_held;     /* there is nothing to announce yet */
    bool is_deferred; /* the connection was told to wait */
    bool awaits[];    /* by host */
};

struct emu_ce_owed {
    uint32_t host;
    uint32_t domain;
    uint64_t number;
};

static void free_wait(struct emu_ce_wait *wait)
{
    if (wait->number != 0)
        emu_numbers_give(&emu_ce_hosts_of(wait->server)->waits_by_number, wait->number);
    LIST_REMOVE(wait, link);
    free(wait);
}

struct emu_ce_wait *emu_ce_wait_create(struct emu_connection *connection)
{
    struct emu_server *server = connection->server;
    struct emu_ce_wait *wait = calloc(1, sizeof(*wait) + emu_hosts_count(server) * sizeof(wait->awaits[0]));

    if (!wait)
        return NULL;
    wait->server = server;
    wait->connection = connection;
    LIST_INSERT_HEAD(&emu_ce_hosts_of(server)->waits, wait, link);
    return wait;
}

void emu_ce_wait_hold(struct emu_ce_wait *wait)
{
    if (wait)
        wait->is_held = true;
}

uint64_t emu_ce_wait_announce(struct emu_ce_wait *wait)
{
    if (wait && emu_numbers_take(&emu_ce_hosts_of(wait->server)->waits_by_number, wait, &wait->number) < 0)
        wait->number = 0; /* nobody will be waited for */
    return wait ? wait->number : 0;
}

void emu_ce_wait_for(struct emu_ce_wait *wait, uint32_t host)
{
    wait->awaits[host] = true;
    wait->n_left++;
}

static bool is_over(const struct emu_ce_wait *wait)
{
    return wait->n_left == 0 && !wait->is_held;
}

static void answer_if_over(struct emu_ce_wait *wait)
{
    if (!is_over(wait) || !wait->is_deferred)
        return;
    if (wait->connection)
        emu_connection_answer_with(wait->connection, &wait->reply, 0, -1);
    free_wait(wait);
}

int emu_ce_wait_begin(struct emu_ce_wait *wait, const struct emu_msg *reply, int result)
{
    if (result < 0 || is_over(wait)) {
        free_wait(wait);
        return result;
    }
    wait->reply = *reply;
    wait->is_deferred = true;
    return EMU_DEFERRED;
}

void emu_ce_wait_check(struct emu_ce_wait *wait)
{
    if (!wait)
        return;
    wait->is_held = false;
    answer_if_over(wait);
}

/* The host knows, or will not know any more. */
static void hear(struct emu_ce_wait *wait, uint32_t host)
{
    if (!wait->awaits[host])
        return;
    wait->awaits[host] = false;
    wait->n_left--;
    answer_if_over(wait);
}

void emu_ce_forget(struct emu_connection *connection)
{
    const struct emu_server *server = connection->server;
    struct emu_ce_wait *wait;

    if (!emu_ce_hosts_of(server))
        return;
    LIST_FOREACH(wait, &emu_ce_hosts_of(server)->waits, link) {
        if (wait->connection == connection)
            wait->connection = NULL;
    }
}

bool emu_ce_wait_known(struct emu_server *server, uint32_t host, uint64_t number)
{
    struct emu_ce_wait *wait = emu_numbers_find(&emu_ce_hosts_of(server)->waits_by_number, number);

    if (!wait || !wait->awaits[host])
        return false;
    hear(wait, host);
    return true;
}

bool emu_ce_is_known_at(const struct emu_ce_end *e, uint32_t host)
{
    const struct emu_ce_wait *wait = emu_numbers_find(&emu_ce_hosts_of(e->server)->waits_by_number, e->told.announced);

    return !wait || !wait->awaits[host];
}

/* ---- acknowledgements ---- */

static void send_known(struct emu_server *server, const struct emu_ce_owed *owed)
{
    const struct emu_host_ce known = { .op = EMU_HOST_CE_KNOWN, .number = owed->number };

    emu_ce_send(server, owed->host, owed->domain, &known);
}

void emu_ce_owe(struct emu_server *server, uint32_t host, uint32_t domain_number, uint64_t number)
{
    struct emu_ce_hosts *hosts = emu_ce_hosts_of(server);
    const struct emu_ce_owed owed = { host, domain_number, number };

    if (number == 0)
        return;
    if (hosts->n_owed == hosts->owed_room) {
        uint32_t room = 2 * hosts->owed_room + 16;
        struct emu_ce_owed *more = realloc(hosts->owed, room * sizeof(*more));

        if (!more) {
            send_known(server, &owed);
            return;
        }
        hosts->owed = more;
        hosts->owed_room = room;
    }
    hosts->owed[hosts->n_owed++] = owed;
    server->counts.looks_wanted++;
}

void emu_ce_looked(struct emu_server *server)
{
    struct emu_ce_hosts *hosts = emu_ce_hosts_of(server);

    if (!hosts)
        return;
    for (uint32_t i = 0; i < hosts->n_owed; i++)
        send_known(server, &hosts->owed[i]);
    server->counts.looks_wanted -= hosts->n_owed;
    hosts->n_owed = 0;
}

static void forget_owed(struct emu_server *server, uint32_t host)
{
    struct emu_ce_hosts *hosts = emu_ce_hosts_of(server);
    uint32_t n = 0;

    for (uint32_t i = 0; i < hosts->n_owed; i++) {
        if (hosts->owed[i].host != host)
            hosts->owed[n++] = hosts->owed[i];
    }
    server->counts.looks_wanted -= hosts->n_owed - n;
    hosts->n_owed = n;
}

/* ---- the end ---- */

void emu_ce_waits_host_down(struct emu_server *server, uint32_t host)
{
    struct emu_ce_wait *wait = LIST_FIRST(&emu_ce_hosts_of(server)->waits);

    forget_owed(server, host);
    while (wait) {
        struct emu_ce_wait *next = LIST_NEXT(wait, link);

        hear(wait, host);
        wait = next;
    }
}

void emu_ce_waits_fini(struct emu_ce_hosts *hosts)
{
    struct emu_ce_wait *wait;

    while ((wait = LIST_FIRST(&hosts->waits)))
        free_wait(wait);
    emu_numbers_fini(&hosts->waits_by_number);
    free(hosts->owed);
}
