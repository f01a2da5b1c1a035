/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Portals between hosts: what both sides have in common, and data that are longer than a message.
 *
 * Who is to have data asks for parts of them: PARTS_PER_PULL are under way for one operation, and ASKED_MAX_BYTES from
 * one host to another. So a long message fills no queue: others find a few packets before theirs. Operations that find
 * the host's share used up take turns.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "emunic/daemon/peers/sessions.h"
#include "emunic/daemon/portals/portals_end.h"
#include "emunic/daemon/portals/portals_end_inner.h"
#include "emunic/daemon/world/domain.h"
#include "emunic/daemon/world/port_end.h"
#include "emunic/daemon/world/server.h"

#define PARTS_PER_PULL  16u
#define ASKED_MAX_BYTES (32u * EMU_HOST_PTL_PART_BYTES)

/* ---- life ---- */

int emu_portals_hosts_create(struct emu_server *server)
{
    uint32_t n = emu_hosts_count(server);
    struct emu_portals_hosts *hosts = calloc(1, sizeof(*hosts) + n * sizeof(hosts->hosts[0]));

    if (!hosts)
        return -ENOMEM;
    TAILQ_INIT(&hosts->waiting);
    for (uint32_t i = 0; i < EMU_PORTALS_PAIRS; i++)
        TAILQ_INIT(&hosts->pairs[i]);
    for (uint32_t i = 0; i < n; i++)
        TAILQ_INIT(&hosts->hosts[i].pulls);
    server->slots[EMU_SERVER_PORTALS_HOSTS] = hosts;
    return 0;
}

void emu_portals_hosts_destroy(struct emu_server *server)
{
    if (!emu_portals_hosts_of(server))
        return;
    emu_portals_remote_destroy(server);
    emu_numbers_fini(&emu_portals_hosts_of(server)->errands);
    emu_numbers_fini(&emu_portals_hosts_of(server)->visits);
    free(emu_portals_hosts_of(server));
    server->slots[EMU_SERVER_PORTALS_HOSTS] = NULL;
}

/* ---- memory ---- */

int emu_portals_place_open(struct emu_portals_place *place, struct emu_ptl_ni *ni, const struct emu_ptl_md *md)
{
    size_t bytes;

    place->md = *md;
    place->iovs = NULL;
    emu_ptl_span_of(ni, md, &place->span);
    if (!place->span.iovs)
        return 0;
    bytes = place->span.n * sizeof(*place->iovs);
    place->iovs = malloc(bytes ? bytes : 1);
    if (!place->iovs)
        return -ENOMEM;
    /* The owner may change its segments meanwhile. */
    memcpy(place->iovs, place->span.iovs, bytes);
    place->span.iovs = place->iovs;
    return 0;
}

void emu_portals_place_close(struct emu_portals_place *place)
{
    free(place->iovs);
    place->iovs = NULL;
}

/* Reads to `buffer`, or writes from it. */
static unsigned move(struct emu_port_end *owner, const struct emu_portals_place *place, uint64_t offset,
                     const void *buffer, uint64_t length_bytes, bool is_write)
{
    struct emu_memory self = emu_memory_self();
    struct emu_memory memory = emu_portals_end_reach(owner, &place->md);
    struct emu_ptl_span here = { .n = 1, .one = { (uint64_t)(uintptr_t)buffer, length_bytes } };
    struct emu_server *server = owner->server;
    int fault;
    int r;

    if (is_write)
        r = emu_ptl_move((struct emu_ptl_at){ &memory, &place->span, offset }, (struct emu_ptl_at){ &self, &here, 0 },
                         length_bytes, server->bounce, &fault);
    else
        r = emu_ptl_move((struct emu_ptl_at){ &self, &here, 0 }, (struct emu_ptl_at){ &memory, &place->span, offset },
                         length_bytes, server->bounce, &fault);
    return emu_portals_fail_of(r);
}

unsigned emu_portals_place_read(struct emu_port_end *owner, const struct emu_portals_place *place, uint64_t offset,
                                void *to, uint64_t length_bytes)
{
    return move(owner, place, offset, to, length_bytes, false);
}

unsigned emu_portals_place_write(struct emu_port_end *owner, const struct emu_portals_place *place, uint64_t offset,
                                 const void *from, uint64_t length_bytes)
{
    return move(owner, place, offset, from, length_bytes, true);
}

/* ---- pulls ---- */

static void ask(struct emu_server *server, struct emu_portals_pull *pull)
{
    struct emu_portals_host *host = &emu_portals_hosts_of(server)->hosts[pull->host];
    uint64_t left = pull->total_bytes - pull->asked_bytes;
    struct emu_host_portals_part part = {
        .domain = pull->domain,
        .is_at_target = pull->is_at_target,
        .to = pull->to,
        .from = pull->from,
        .offset = pull->asked_bytes,
        .part_bytes = left < EMU_HOST_PTL_PART_BYTES ? (uint32_t)left : EMU_HOST_PTL_PART_BYTES,
    };
    uint8_t message[EMU_HOST_PTL_WANT_BYTES];

    emu_host_portals_want_put(message, &part);
    /* If the host is gone, whoever pulls is about to hear of it. */
    emu_hosts_answer(server, pull->host, message, sizeof(message));
    pull->asked_bytes += part.part_bytes;
    host->asked_bytes += part.part_bytes;
}

static bool wants_more(const struct emu_portals_pull *pull)
{
    return pull->fail == 0 && pull->asked_bytes < pull->total_bytes &&
           pull->asked_bytes - pull->came_bytes < PARTS_PER_PULL * EMU_HOST_PTL_PART_BYTES;
}

static void wait_for_room(struct emu_portals_host *host, struct emu_portals_pull *pull)
{
    TAILQ_INSERT_TAIL(&host->pulls, pull, link);
    pull->waits = true;
}

static void ask_for_more(struct emu_server *server, struct emu_portals_pull *pull)
{
    struct emu_portals_host *host = &emu_portals_hosts_of(server)->hosts[pull->host];

    while (!pull->waits && wants_more(pull)) {
        if (host->asked_bytes >= ASKED_MAX_BYTES || !TAILQ_EMPTY(&host->pulls))
            wait_for_room(host, pull);
        else
            ask(server, pull);
    }
}

static void stop_waiting(struct emu_server *server, struct emu_portals_pull *pull)
{
    if (pull->waits)
        TAILQ_REMOVE(&emu_portals_hosts_of(server)->hosts[pull->host].pulls, pull, link);
    pull->waits = false;
}

void emu_portals_pull_start(struct emu_server *server, struct emu_portals_pull *pull)
{
    pull->waits = false;
    pull->fail = 0;
    ask_for_more(server, pull);
}

bool emu_portals_pull_take(struct emu_portals_pull *pull, const struct emu_host_portals_part *part)
{
    if (part->offset != pull->came_bytes || part->part_bytes > pull->asked_bytes - pull->came_bytes)
        return false;
    pull->came_bytes += part->part_bytes;
    if (part->fail != 0 && pull->fail == 0)
        pull->fail = part->fail;
    return true;
}

bool emu_portals_pull_go_on(struct emu_server *server, struct emu_portals_pull *pull)
{
    ask_for_more(server, pull);
    if (pull->fail != 0)
        stop_waiting(server, pull);
    return pull->came_bytes == pull->asked_bytes && (pull->fail != 0 || pull->came_bytes == pull->total_bytes);
}

void emu_portals_pull_stop(struct emu_server *server, struct emu_portals_pull *pull)
{
    stop_waiting(server, pull);
}

/* Parts have come from that host: it is the turn of who has waited longest. */
static void serve_pulls(struct emu_server *server, uint32_t host)
{
    struct emu_portals_host *h = &emu_portals_hosts_of(server)->hosts[host];
    struct emu_portals_pull *pull;

    while (h->asked_bytes < ASKED_MAX_BYTES && (pull = TAILQ_FIRST(&h->pulls))) {
        stop_waiting(server, pull);
        ask(server, pull);
        if (wants_more(pull))
            wait_for_room(h, pull);
    }
}

/* ---- messages ---- */

static bool take_part(struct emu_server *server, uint32_t host, unsigned op, const uint8_t *bytes,
                      uint32_t length_bytes)
{
    struct emu_portals_host *h = &emu_portals_hosts_of(server)->hosts[host];
    struct emu_host_portals_part part;
    bool is_good;

    if (!emu_host_portals_part_parse(bytes, length_bytes, &part))
        return false;
    if (op == EMU_HOST_PTL_WANT) {
        if (part.is_at_target)
            emu_portals_visit_want(server, host, &part);
        else
            emu_portals_remote_want(server, host, &part);
        return true;
    }
    if (part.part_bytes > h->asked_bytes)
        return false;
    h->asked_bytes -= part.part_bytes;
    is_good =
        part.is_at_target ? emu_portals_visit_data(server, host, &part) : emu_portals_remote_data(server, host, &part);
    serve_pulls(server, host);
    return is_good;
}

bool emu_portals_host_message(struct emu_server *server, uint32_t host, const uint8_t *bytes, uint32_t length_bytes)
{
    unsigned op = emu_host_portals_op(bytes, length_bytes);

    switch (op) {
    case EMU_HOST_PTL_REQUEST:
        return emu_portals_visit_request(server, host, bytes, length_bytes);
    case EMU_HOST_PTL_ANSWER:
        return emu_portals_remote_message(server, host, bytes, length_bytes);
    case EMU_HOST_PTL_WANT:
    case EMU_HOST_PTL_DATA:
        return take_part(server, host, op, bytes, length_bytes);
    case EMU_HOST_PTL_DONE:
        return emu_portals_visit_done(server, host, bytes, length_bytes);
    default:
        return false;
    }
}

void emu_portals_host_down(struct emu_server *server, uint32_t host)
{
    emu_portals_remote_down(server, host);
    emu_portals_visit_down(server, host);
    emu_portals_hosts_of(server)->hosts[host].asked_bytes = 0;
}
