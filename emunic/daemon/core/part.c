/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The table of parts: who is called when. Beginnings and rounds go through it from first to last, ends from last to
 * first.
 *
 * The order of rounds is one of speed. The links come last, so that the commands come right behind a pause of the loop:
 * a process that has just run has often answered what came from another host, and the answer that emunic holds for that
 * host then goes out in one packet with the command. With the links first it goes out alone, and half a round trip
 * between two hosts took 1.4 times as long.
 */
#include "emunic/daemon/core/part.h"

#include <stdlib.h>

#include "emunic/daemon/core/connection.h"
#include "emunic/daemon/world/port_end.h"
#include "emunic/daemon/world/server.h"

struct emu_part_table *emu_part_table_make(const struct emu_part *const *parts, uint32_t n)
{
    struct emu_part_table *table = n <= EMU_PARTS_MAX ? calloc(1, sizeof(*table)) : NULL;

    if (!table)
        return NULL;
    table->all = parts;
    table->n = n;
    for (uint32_t i = 0; i < n; i++) {
        if (parts[i]->loop.round)
            table->rounds[table->n_rounds++] = parts[i]->loop.round;
        for (uint32_t k = 0; k < parts[i]->n_requests; k++) {
            for (uint32_t type = parts[i]->requests[k].first; type <= parts[i]->requests[k].last; type++)
                table->requests[type] = &parts[i]->requests[k];
        }
        for (uint32_t k = 0; k < parts[i]->hosts.n_messages; k++)
            table->messages[parts[i]->hosts.messages[k].kind] = &parts[i]->hosts.messages[k];
    }
    return table;
}

const struct emu_list_row *emu_parts_list(const struct emu_server *server, uint16_t op)
{
    for (uint32_t i = 0; i < server->parts->n; i++) {
        const struct emu_part_hosts *hosts = &server->parts->all[i]->hosts;

        for (uint32_t k = 0; k < hosts->n_lists; k++) {
            if (hosts->lists[k].op == op)
                return &hosts->lists[k];
        }
    }
    return NULL;
}

/* ---- life of the server ---- */

int emu_parts_create(struct emu_server *server, const struct emu_server_options *options, struct emu_complaint *why)
{
    for (uint32_t i = 0; i < server->parts->n; i++) {
        const struct emu_part *part = server->parts->all[i];
        int r = part->create ? part->create(server, options, why) : 0;

        if (r < 0)
            return r;
    }
    return 0;
}

void emu_parts_destroy(struct emu_server *server)
{
    for (uint32_t i = server->parts->n; i-- > 0;) {
        if (server->parts->all[i]->destroy)
            server->parts->all[i]->destroy(server);
    }
}

/* ---- the loop ---- */

uint64_t emu_parts_next_ns(const struct emu_server *server)
{
    uint64_t first_ns = UINT64_MAX;

    for (uint32_t i = 0; i < server->parts->n; i++) {
        const struct emu_part *part = server->parts->all[i];
        uint64_t next_ns = part->loop.next_ns ? part->loop.next_ns(server) : UINT64_MAX;

        if (next_ns < first_ns)
            first_ns = next_ns;
    }
    return first_ns;
}

bool emu_parts_stay_awake(const struct emu_server *server)
{
    for (uint32_t i = 0; i < server->parts->n; i++) {
        const struct emu_part *part = server->parts->all[i];

        if (part->loop.stays_awake && part->loop.stays_awake(server))
            return true;
    }
    return false;
}

bool emu_parts_have_work(struct emu_server *server)
{
    for (uint32_t i = server->parts->n; i-- > 0;) {
        const struct emu_part *part = server->parts->all[i];

        if (part->loop.has_work && part->loop.has_work(server))
            return true;
    }
    return false;
}

void emu_parts_looked(struct emu_server *server)
{
    for (uint32_t i = 0; i < server->parts->n; i++) {
        if (server->parts->all[i]->loop.looked)
            server->parts->all[i]->loop.looked(server);
    }
}

void emu_parts_served(struct emu_server *server)
{
    for (uint32_t i = 0; i < server->parts->n; i++) {
        if (server->parts->all[i]->loop.served)
            server->parts->all[i]->loop.served(server);
    }
}

/* ---- other hosts ---- */

void emu_parts_host_up(struct emu_server *server, uint32_t host)
{
    for (uint32_t i = 0; i < server->parts->n; i++) {
        if (server->parts->all[i]->hosts.up)
            server->parts->all[i]->hosts.up(server, host);
    }
}

void emu_parts_host_down(struct emu_server *server, uint32_t host)
{
    for (uint32_t i = server->parts->n; i-- > 0;) {
        if (server->parts->all[i]->hosts.down)
            server->parts->all[i]->hosts.down(server, host);
    }
}

void emu_parts_host_moved(struct emu_server *server, uint32_t host)
{
    for (uint32_t i = 0; i < server->parts->n; i++) {
        if (server->parts->all[i]->hosts.moved)
            server->parts->all[i]->hosts.moved(server, host);
    }
}

void emu_parts_transfer_done(struct emu_server *server, uint64_t cookie, int result)
{
    for (uint32_t i = 0; i < server->parts->n; i++) {
        if (server->parts->all[i]->hosts.transfer_done)
            server->parts->all[i]->hosts.transfer_done(server, cookie, result);
    }
}

bool emu_parts_are_moving(const struct emu_server *server)
{
    for (uint32_t i = 0; i < server->parts->n; i++) {
        const struct emu_part *part = server->parts->all[i];

        if (part->hosts.is_moving && part->hosts.is_moving(server))
            return true;
    }
    return false;
}

/* ---- domains ---- */

int emu_parts_domain_begin(struct emu_server *server, struct emu_domain *domain)
{
    for (uint32_t i = 0; i < server->parts->n; i++) {
        const struct emu_part *part = server->parts->all[i];
        int r = part->domains.begin ? part->domains.begin(server, domain) : 0;

        if (r < 0)
            return r;
    }
    return 0;
}

void emu_parts_domain_spread(struct emu_server *server, struct emu_domain *domain)
{
    for (uint32_t i = 0; i < server->parts->n; i++) {
        if (server->parts->all[i]->domains.spread)
            server->parts->all[i]->domains.spread(server, domain);
    }
}

void emu_parts_domain_ending(struct emu_server *server, struct emu_domain *domain, int signal)
{
    for (uint32_t i = server->parts->n; i-- > 0;) {
        if (server->parts->all[i]->domains.ending)
            server->parts->all[i]->domains.ending(server, domain, signal);
    }
}

void emu_parts_domain_end(struct emu_server *server, struct emu_domain *domain)
{
    for (uint32_t i = server->parts->n; i-- > 0;) {
        if (server->parts->all[i]->domains.end)
            server->parts->all[i]->domains.end(server, domain);
    }
}

void emu_parts_domain_changed(struct emu_server *server, struct emu_domain *domain)
{
    for (uint32_t i = 0; i < server->parts->n; i++) {
        if (server->parts->all[i]->domains.changed)
            server->parts->all[i]->domains.changed(server, domain);
    }
}

/* ---- members, ports, connections ---- */

void emu_parts_member_seen(struct emu_server *server, struct emu_member *member)
{
    for (uint32_t i = 0; i < server->parts->n; i++) {
        if (server->parts->all[i]->members.seen)
            server->parts->all[i]->members.seen(server, member);
    }
}

void emu_parts_member_end(struct emu_server *server, struct emu_member *member)
{
    for (uint32_t i = server->parts->n; i-- > 0;) {
        if (server->parts->all[i]->members.end)
            server->parts->all[i]->members.end(server, member);
    }
}

int emu_parts_port_begin(struct emu_port_end *port)
{
    for (uint32_t i = 0; i < port->server->parts->n; i++) {
        const struct emu_part *part = port->server->parts->all[i];
        int r = part->ports.begin ? part->ports.begin(port) : 0;

        if (r < 0)
            return r;
    }
    return 0;
}

void emu_parts_port_live(struct emu_port_end *port)
{
    for (uint32_t i = 0; i < port->server->parts->n; i++) {
        if (port->server->parts->all[i]->ports.live)
            port->server->parts->all[i]->ports.live(port);
    }
}

void emu_parts_port_end(struct emu_port_end *port)
{
    for (uint32_t i = port->server->parts->n; i-- > 0;) {
        if (port->server->parts->all[i]->ports.end)
            port->server->parts->all[i]->ports.end(port);
    }
}

void emu_parts_queue_end(struct emu_port_end *port, uint32_t queue)
{
    for (uint32_t i = port->server->parts->n; i-- > 0;) {
        if (port->server->parts->all[i]->ports.queue_end)
            port->server->parts->all[i]->ports.queue_end(port, queue);
    }
}

void emu_parts_connection_end(struct emu_connection *connection)
{
    const struct emu_part_table *parts = connection->server->parts;

    for (uint32_t i = parts->n; i-- > 0;) {
        if (parts->all[i]->connection_end)
            parts->all[i]->connection_end(connection);
    }
}

void emu_parts_released(struct emu_server *server)
{
    for (uint32_t i = server->parts->n; i-- > 0;) {
        if (server->parts->all[i]->released)
            server->parts->all[i]->released(server);
    }
}

/* ---- status ---- */

void emu_parts_status_host(const struct emu_server *server, struct emu_status_host *row)
{
    for (uint32_t i = 0; i < server->parts->n; i++) {
        if (server->parts->all[i]->status.host)
            server->parts->all[i]->status.host(server, row);
    }
}

void emu_parts_status_session(const struct emu_server *server, uint32_t host, uint64_t *row)
{
    for (uint32_t i = 0; i < server->parts->n; i++) {
        if (server->parts->all[i]->status.session)
            server->parts->all[i]->status.session(server, host, row);
    }
}

void emu_parts_status_domain(const struct emu_server *server, const struct emu_domain *domain, uint64_t *row)
{
    for (uint32_t i = 0; i < server->parts->n; i++) {
        if (server->parts->all[i]->status.domain)
            server->parts->all[i]->status.domain(domain, row);
    }
}

void emu_parts_status_node(const struct emu_server *server, uint32_t nid, uint64_t *row)
{
    for (uint32_t i = 0; i < server->parts->n; i++) {
        if (server->parts->all[i]->status.node)
            server->parts->all[i]->status.node(server, nid, row);
    }
}

void emu_parts_status_port(const struct emu_port_end *port, uint64_t *row)
{
    for (uint32_t i = 0; i < port->server->parts->n; i++) {
        if (port->server->parts->all[i]->status.port)
            port->server->parts->all[i]->status.port(port, row);
    }
}
