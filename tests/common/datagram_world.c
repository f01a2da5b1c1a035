/* SPDX-License-Identifier: BSD-3-Clause */
#include "tests/common/datagram_world.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>

#include "emunic/abi/command.h"
#include "emunic/abi/segment.h"
#include "emunic/daemon/core/connection.h"
#include "emunic/daemon/datagrams/datagram_life.h"
#include "emunic/daemon/datagrams/datagram_hosts.h"
#include "emunic/daemon/datagrams/datagram_inner.h"
#include "emunic/daemon/datagrams/datagram_virtual.h"
#include "emunic/daemon/faults/fault_rules.h"
#include "emunic/daemon/peers/sessions.h"
#include "emunic/daemon/virtual/virtual.h"
#include "emunic/daemon/world/domain.h"
#include "emunic/daemon/world/lookups.h"
#include "emunic/daemon/world/port_end.h"
#include "emunic/daemon/world/users.h"
#include "emunic/daemon/world/ways.h"

#define PER_PORT    25000u /* a port may have 65536 */
#define CROWD_PORTS 4u
#define EP_CROWD    1000u /* the first end point of a crowd */
#define NODES       100u

enum { A, B, CROWD, PORTS = DATAGRAM_WORLD_PORTS };
static_assert(CROWD + CROWD_PORTS == PORTS, "all ports have a use");

struct datagram_trip {
    uint32_t from;
    uint32_t to;
    struct emu_virtual_op *op;
};

struct datagram_world {
    struct emu_server server;
    struct emu_domain domains[2];
    struct emu_member member; /* of all ports */
    struct emu_port_end ports[PORTS];
    struct emu_segment segments[PORTS];
    struct emu_connection connections[PORTS];
    bool is_down[NODES / 10];
    struct datagram_trip trips[DATAGRAM_WORLD_TRIPS]; /* under way, in the order of their posts */
    uint32_t n_trips;
};

static struct datagram_world *the_world; /* that asks whether a host is up */
static bool is_full;

/* ---- what the daemon's code calls and does not need on one host ---- */

bool emu_hosts_is_up(const struct emu_server *server, uint32_t host)
{
    (void)server;
    return !the_world->is_down[host];
}

uint32_t emu_hosts_of_node(const struct emu_domain *domain, uint32_t node_index)
{
    (void)domain;
    return node_index / 10;
}

int emu_hosts_answer(struct emu_server *server, uint32_t host, const void *message, uint32_t length_bytes)
{
    (void)message;
    (void)length_bytes;
    return emu_hosts_is_up(server, host) ? 0 : -ENOTCONN;
}

int emu_hosts_send(struct emu_server *server, uint32_t host, const void *message, uint32_t length_bytes)
{
    return is_full ? -ENOBUFS : emu_hosts_answer(server, host, message, length_bytes);
}

void emu_hosts_refuse(struct emu_server *server, uint32_t host, const char *what)
{
    (void)server;
    (void)host;
    (void)what;
}

uint32_t emu_domain_node_of(const struct emu_domain *domain, uint32_t nid)
{
    (void)domain;
    return nid < 10 * the_world->server.n_hosts ? nid : EMU_NID_NONE;
}

uint32_t emu_domain_nid_at(const struct emu_domain *domain, uint32_t address)
{
    (void)domain;
    return address;
}

int emu_user_take(struct emu_server *server, struct emu_user *user, enum emu_user_kind kind, uint64_t n)
{
    (void)server;
    (void)user;
    (void)kind;
    (void)n;
    return 0;
}

void emu_user_give(struct emu_user *user, enum emu_user_kind kind, uint64_t n)
{
    (void)user;
    (void)kind;
    (void)n;
}

struct emu_fault_datagram emu_fault_datagram(struct emu_port_end *port, const struct emu_msg_datagram *wanted)
{
    (void)port;
    (void)wanted;
    return (struct emu_fault_datagram){ .state = EMU_DATAGRAM_PENDING };
}

bool emu_network_reaches(struct emu_server *server, uint32_t src_nid, uint32_t dst_nid)
{
    (void)server;
    (void)src_nid;
    (void)dst_nid;
    return true;
}

int emu_virtual_post(struct emu_port_end *port, struct emu_virtual_op *op, const struct emu_virtual_move *move)
{
    struct datagram_trip *trip = &the_world->trips[the_world->n_trips];

    if (the_world->n_trips == DATAGRAM_WORLD_TRIPS)
        return -ENOBUFS;
    op->to = move->to ? (struct emu_virtual_process *)(uintptr_t)1 : NULL;
    *trip = (struct datagram_trip){ .from = port->nid, .to = move->to_nid, .op = op };
    the_world->n_trips++;
    return 0;
}

void emu_connection_answer_with(struct emu_connection *connection, struct emu_msg *reply, int result, int fd)
{
    (void)reply;
    (void)result;
    (void)fd;
    connection->awaits_answer = false;
}

/* ---- virtual time ---- */

void datagram_world_set_virtual(struct datagram_world *world)
{
    static uint32_t some_time;

    world->server.slots[EMU_SERVER_VIRTUAL] = &some_time;
}

void datagram_world_send(struct datagram_world *world, uint32_t port, uint32_t ep)
{
    const struct emu_cmd cmd = { .op = EMU_OP_DATAGRAM, .operand1 = ep };

    emu_datagram_send(&world->ports[port], &cmd);
}

bool datagram_world_arrive(struct datagram_world *world, uint32_t from, uint32_t to)
{
    for (uint32_t i = 0; i < world->n_trips; i++) {
        struct emu_virtual_op *op = world->trips[i].op;

        if (world->trips[i].from != from || world->trips[i].to != to)
            continue;
        world->n_trips--;
        for (uint32_t j = i; j < world->n_trips; j++)
            world->trips[j] = world->trips[j + 1];
        op->arrived(op);
        op->completed(op);
        return true;
    }
    return false;
}

/* ---- the world ---- */

static int ask(struct emu_port_end *port, uint16_t type, struct emu_msg_datagram *datagram)
{
    struct emu_msg msg = { .type = type, .datagram = *datagram };
    struct emu_request request = { .port = port, .msg = &msg };
    int r = -EPROTO;

    for (uint32_t i = 0; i < emu_datagrams_part.n_requests; i++) {
        if (emu_datagrams_part.requests[i].first <= type && type <= emu_datagrams_part.requests[i].last)
            r = emu_datagrams_part.requests[i].answer(&request);
    }
    *datagram = msg.datagram;
    return r;
}

static int post(struct emu_port_end *port, uint32_t ep, uint32_t to)
{
    struct emu_msg_datagram wanted = { .ep = ep,
                                       .remote_nid = to,
                                       .flags = to == EMU_NID_NONE ? EMU_DATAGRAM_WILDCARD : 0,
                                       .length_bytes = 1,
                                       .room_bytes = EMU_DATAGRAM_MAX };

    return ask(port, EMU_MSG_DATAGRAM_POST, &wanted);
}

static struct emu_port_end *crowd_port(struct datagram_world *world, enum datagram_crowd crowd, uint32_t i)
{
    return crowd == CROWD_OF_THE_PORT && i < PER_PORT ? &world->ports[A] :
                                                        &world->ports[CROWD + i / PER_PORT % CROWD_PORTS];
}

struct datagram_world *datagram_world_create(enum datagram_crowd crowd, uint32_t n_pending)
{
    struct datagram_world *world = calloc(1, sizeof(*world));
    static uint32_t addresses[NODES];

    if (!world || emu_lookups_create(&world->server) < 0 || emu_datagrams_part.create(&world->server, NULL, NULL) < 0)
        abort();
    the_world = world;
    is_full = false;
    for (uint32_t i = 0; i < NODES; i++)
        addresses[i] = i;
    world->server.n_hosts = 1;
    LIST_INIT(&world->server.ports);
    LIST_INIT(&world->server.domains);
    for (uint32_t i = 0; i < 2; i++) {
        world->domains[i].id = i + 1;
        world->domains[i].common_number = i + 1;
        world->domains[i].cookie = i + 1;
        world->domains[i].addresses = addresses;
        LIST_INSERT_HEAD(&world->server.domains, &world->domains[i], link);
        if (emu_lookups_add_domain(&world->server, &world->domains[i]) < 0)
            abort();
    }
    for (uint32_t i = 0; i < PORTS; i++) {
        struct emu_port_end *port = &world->ports[i];

        *port = (struct emu_port_end){ .server = &world->server,
                                       .member = &world->member,
                                       .domain = &world->domains[i >= CROWD && crowd == CROWD_OF_ANOTHER_DOMAIN],
                                       .nid = i,
                                       .segment = &world->segments[i],
                                       .connection = &world->connections[i] };
        if (emu_datagrams_part.ports.begin(port) < 0)
            abort();
        LIST_INSERT_HEAD(&world->server.ports, port, link);
        emu_lookups_add_port(port);
    }
    for (uint32_t i = 0; i < n_pending && crowd != CROWD_NONE; i++) {
        if (post(crowd_port(world, crowd, i), EP_CROWD + i, EP_CROWD + i) != 0)
            abort();
    }
    return world;
}

void datagram_world_destroy(struct datagram_world *world)
{
    for (uint32_t i = 0; i < PORTS; i++) {
        emu_datagrams_part.ports.end(&world->ports[i]);
        emu_lookups_remove_port(&world->ports[i]);
    }
    for (uint32_t i = 0; i < 2; i++) {
        emu_offers_end(&world->domains[i]);
        emu_lookups_remove_domain(&world->domains[i]);
    }
    emu_datagrams_part.destroy(&world->server);
    for (uint32_t i = 0; i < world->n_trips; i++)
        world->trips[i].op->drop(world->trips[i].op);
    emu_lookups_destroy(&world->server);
    free(world);
}

static bool collect(struct emu_port_end *port, uint32_t ep, uint32_t state)
{
    struct emu_msg_datagram asked = { .ep = 0 };

    if (ask(port, EMU_MSG_DATAGRAM_PROBE, &asked) != 0 || asked.ep != ep)
        return false;
    asked = (struct emu_msg_datagram){ .ep = ep };
    return ask(port, EMU_MSG_DATAGRAM_TEST, &asked) == 0 && asked.state == state;
}

bool datagram_world_exchange(struct datagram_world *world)
{
    struct emu_msg_datagram cancelled = { .ep = 2, .flags = EMU_DATAGRAM_ANY_ID };

    return post(&world->ports[A], 1, EMU_NID_NONE) == 0 && post(&world->ports[B], 1, A) == 0 &&
           collect(&world->ports[A], 1, EMU_DATAGRAM_COMPLETED) &&
           collect(&world->ports[B], 1, EMU_DATAGRAM_COMPLETED) && post(&world->ports[A], 2, B) == 0 &&
           ask(&world->ports[A], EMU_MSG_DATAGRAM_CANCEL, &cancelled) == 0 &&
           collect(&world->ports[A], 2, EMU_DATAGRAM_TERMINATED);
}

/* ---- by hand ---- */

void datagram_world_set_hosts(struct datagram_world *world, uint32_t n_hosts)
{
    world->server.n_hosts = n_hosts;
}

void datagram_world_set_full(bool full)
{
    is_full = full;
}

int datagram_world_ask(struct datagram_world *world, uint32_t port, uint16_t type, struct emu_msg_datagram *datagram)
{
    bool *awaits_answer = &world->connections[port].awaits_answer;
    int r = *awaits_answer ? -EPROTO : ask(&world->ports[port], type, datagram);

    *awaits_answer = *awaits_answer || r == EMU_DEFERRED;
    return r;
}

bool datagram_world_hear(struct datagram_world *world, uint32_t host, const uint8_t *message, uint32_t length_bytes)
{
    return emu_datagram_host_message(&world->server, host, message, length_bytes);
}

void datagram_world_set_host(struct datagram_world *world, uint32_t host, bool is_up)
{
    if (world->is_down[host] == !is_up)
        return;
    world->is_down[host] = !is_up;
    if (is_up)
        emu_datagram_host_up(&world->server, host);
    else
        emu_datagram_host_down(&world->server, host);
}

void datagram_world_turn(struct datagram_world *world)
{
    (void)emu_datagrams_part.loop.round(&world->server);
}

void datagram_world_renew_port(struct datagram_world *world, uint32_t port)
{
    emu_datagrams_part.ports.end(&world->ports[port]);
    world->connections[port].awaits_answer = false;
    if (emu_datagrams_part.ports.begin(&world->ports[port]) < 0)
        abort();
}
