/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Collective engines as a part of the server: what is kept of the server, of domains and of ports, and the requests.
 */
#include <errno.h>
#include <stdlib.h>

#include "emunic/daemon/ce/ce_hosts.h"
#include "emunic/daemon/ce/ce_inner.h"

static int create(struct emu_server *server, const struct emu_server_options *options, struct emu_complaint *why)
{
    struct emu_ce_engines *engines = calloc(1, sizeof(*engines));

    (void)options;
    (void)why;
    if (!engines)
        return -ENOMEM;
    TAILQ_INIT(&engines->work);
    LIST_INIT(&engines->trips);
    server->slots[EMU_SERVER_CE] = engines;
    return emu_hosts_are_several(server) ? emu_ce_hosts_create(server) : 0;
}

static void destroy(struct emu_server *server)
{
    struct emu_ce_engines *engines = emu_ce_engines_of(server);

    emu_ce_hosts_destroy(server);
    if (engines) {
        emu_ce_trips_end(server);
        free(engines->at);
    }
    free(engines);
    server->slots[EMU_SERVER_CE] = NULL;
}

static int begin_domain(struct emu_server *server, struct emu_domain *domain)
{
    (void)server;
    domain->slots[EMU_DOMAIN_CE] = calloc(1, sizeof(struct emu_ce_domain)); /* an empty list */
    return domain->slots[EMU_DOMAIN_CE] ? 0 : -ENOMEM;
}

static void end_domain(struct emu_server *server, struct emu_domain *domain)
{
    if (!emu_ce_domain_of(domain))
        return;
    emu_ce_drop_domain(server, domain);
    free(emu_ce_domain_of(domain));
    domain->slots[EMU_DOMAIN_CE] = NULL;
}

static int begin_port(struct emu_port_end *port)
{
    port->slots[EMU_PORT_CE] = calloc(1, sizeof(struct emu_ce_port)); /* an empty list */
    return port->slots[EMU_PORT_CE] ? 0 : -ENOMEM;
}

static void end_port(struct emu_port_end *port)
{
    emu_ce_drop_port(port);
    free(port->slots[EMU_PORT_CE]);
    port->slots[EMU_PORT_CE] = NULL;
}

static const struct emu_request_row requests[] = {
    { EMU_MSG_CE_CREATE, EMU_MSG_CE_DESTROY, EMU_NEEDS_PORT, emu_ce_answer },
};
static const struct emu_message_row messages[] = { { EMU_HOST_CE, emu_ce_host_message } };

const struct emu_part emu_ce_part = {
    .name = "collective engines",
    .create = create,
    .destroy = destroy,
    .requests = requests,
    .n_requests = EMU_ROWS(requests),
    .loop = { .round = emu_ce_round, .has_work = emu_ce_has_work, .looked = emu_ce_looked },
    .hosts = { .messages = messages, .n_messages = EMU_ROWS(messages), .up = emu_ce_host_up, .down = emu_ce_host_down },
    .domains = { .begin = begin_domain, .spread = emu_ce_domain_begins, .end = end_domain },
    .ports = { .begin = begin_port, .end = end_port, .queue_end = emu_ce_drop_cq },
    .connection_end = emu_ce_forget,
};
