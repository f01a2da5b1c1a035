/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Portals as a part of the server: requests, rounds, and the ends of ports and domains.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/queue.h>

#include "emunic/base/clock.h"
#include "emunic/daemon/portals/portals_end_inner.h"
#include "emunic/daemon/world/domain.h"
#include "emunic/daemon/world/port_end.h"
#include "emunic/daemon/world/server.h"

#define LOOK_NS 500000u

static unsigned look_at_waits(struct emu_server *server)
{
    if (emu_portals_of(server)->n_waits == 0)
        return 0;
    emu_portals_repair_round(server);
    emu_portals_command_round(server);
    if (emu_portals_hosts_of(server)) {
        emu_portals_remote_round(server);
        emu_portals_visit_round(server);
    }
    return 0;
}

/* Nobody rings when he unlocks. */
static uint64_t next_ns(const struct emu_server *server)
{
    return emu_portals_of(server)->n_waits > 0 ? emu_clock_ns() + LOOK_NS : UINT64_MAX;
}

static void end_domain(struct emu_server *server, struct emu_domain *domain)
{
    if (emu_portals_hosts_of(server))
        emu_portals_visit_drop_domain(server, domain);
    emu_portals_repair_drop_domain(server, domain);
}

static int answer_open(struct emu_request *request)
{
    int r;

    r = emu_portals_command_open(request->port);
    if (r == 0 && emu_server_is_virtual(request->port->server))
        r = emu_portals_virtual_open(request->port);
    return r < 0 ? r : emu_request_pass(request, emu_portals_end_open(request->port, &request->msg->portals), false);
}

static int answer_peer(struct emu_request *request)
{
    return emu_request_pass(request, emu_portals_end_peer(request->port, &request->msg->portals), false);
}

static int answer_stuck(struct emu_request *request)
{
    emu_portals_end_look_at(request->port, request->msg->portals.port);
    return 0;
}

static int answer_distance(struct emu_request *request)
{
    return emu_portals_end_distance(request->port, &request->msg->portals);
}

static int create(struct emu_server *server, const struct emu_server_options *options, struct emu_complaint *why)
{
    struct emu_portals *portals = calloc(1, sizeof(*portals)); /* an empty list */

    (void)options;
    (void)why;
    if (!portals)
        return -ENOMEM;
    server->slots[EMU_SERVER_PORTALS] = portals;
    return emu_hosts_are_several(server) ? emu_portals_hosts_create(server) : 0;
}

static void destroy(struct emu_server *server)
{
    emu_portals_hosts_destroy(server);
    if (emu_portals_of(server))
        emu_index_fini(&emu_portals_of(server)->ends);
    free(emu_portals_of(server));
    server->slots[EMU_SERVER_PORTALS] = NULL;
}

static int begin_port(struct emu_port_end *port)
{
    struct emu_portals_remote_port *remote = calloc(1, sizeof(*remote));

    if (!remote)
        return -ENOMEM;
    TAILQ_INIT(&remote->errands);
    TAILQ_INIT(&remote->ready);
    port->slots[EMU_PORT_PORTALS_REMOTE] = remote;
    return 0;
}

static void end_port(struct emu_port_end *port)
{
    emu_portals_end_hide(port);
    if (emu_portals_end_is_open(port)) {
        emu_portals_remote_drop_port(port);
        emu_portals_repair_port(port);
        emu_portals_end_close(port);
    }
    emu_portals_command_close(port);
    emu_portals_virtual_close(port);
    free(port->slots[EMU_PORT_PORTALS_REMOTE]);
    port->slots[EMU_PORT_PORTALS_REMOTE] = NULL;
}

static const struct emu_request_row requests[] = {
    { EMU_MSG_PORTALS_OPEN, EMU_MSG_PORTALS_OPEN, EMU_NEEDS_PORT, answer_open },
    { EMU_MSG_PORTALS_PEER, EMU_MSG_PORTALS_PEER, EMU_NEEDS_PORT, answer_peer },
    { EMU_MSG_PORTALS_STUCK, EMU_MSG_PORTALS_STUCK, EMU_NEEDS_PORT, answer_stuck },
    { EMU_MSG_PORTALS_DISTANCE, EMU_MSG_PORTALS_DISTANCE, EMU_NEEDS_PORT, answer_distance },
};
static const struct emu_message_row messages[] = { { EMU_HOST_PORTALS, emu_portals_host_message } };

const struct emu_part emu_portals_part = {
    .name = "portals",
    .create = create,
    .destroy = destroy,
    .requests = requests,
    .n_requests = EMU_ROWS(requests),
    .loop = { .round = look_at_waits, .next_ns = next_ns },
    .hosts = { .messages = messages, .n_messages = EMU_ROWS(messages), .down = emu_portals_host_down },
    .domains = { .end = end_domain },
    .ports = { .begin = begin_port, .end = end_port },
};
