/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The functions of the daemon that datagrams call are here, instead of its hosts, domains and connections.
 */
#include "tests/unit/emunic/datagram_world.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "emunic/daemon/datagrams/datagram_life.h"
#include "emunic/daemon/datagrams/datagram_inner.h"
#include "emunic/daemon/faults/fault_rules.h"
#include "emunic/daemon/peers/sessions.h"
#include "emunic/daemon/virtual/virtual.h"
#include "emunic/daemon/world/lookups.h"
#include "emunic/daemon/world/ways.h"
#include "emunic/daemon/world/users.h"

struct world *world;

/* ---- what the daemon's code calls ---- */

bool emu_hosts_is_up(const struct emu_server *server, uint32_t host)
{
    return !world->is_cut[emu_hosts_own(server)][host];
}

uint32_t emu_hosts_of_node(const struct emu_domain *domain, uint32_t node_index)
{
    (void)domain;
    return node_index / 10;
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

int emu_hosts_answer(struct emu_server *server, uint32_t host, const void *message, uint32_t length_bytes)
{
    struct queue *q = &world->queues[emu_hosts_own(server)][host];
    struct message *m = &q->messages[(q->first + q->n) % QUEUE_MAX];

    if (!emu_hosts_is_up(server, host))
        return -ENOTCONN;
    assert_true(q->n < QUEUE_MAX);
    q->n++;
    m->length = length_bytes;
    memcpy(m->bytes, message, length_bytes);
    return 0;
}

int emu_hosts_send(struct emu_server *server, uint32_t host, const void *message, uint32_t length_bytes)
{
    return world->is_full ? -ENOBUFS : emu_hosts_answer(server, host, message, length_bytes);
}

void emu_hosts_refuse(struct emu_server *server, uint32_t host, const char *what)
{
    (void)server;
    (void)host;
    (void)what;
    world->n_refused++;
}

uint32_t emu_domain_node_of(const struct emu_domain *domain, uint32_t nid)
{
    (void)domain;
    return nid < HOSTS * 10 && nid % 10 < PORTS_PER_HOST ? nid : EMU_NID_NONE;
}

uint32_t emu_domain_nid_at(const struct emu_domain *domain, uint32_t address)
{
    (void)domain;
    return address;
}

struct emu_fault_datagram emu_fault_datagram(struct emu_port_end *port, const struct emu_msg_datagram *wanted)
{
    (void)port;
    (void)wanted;
    return (struct emu_fault_datagram){ .state = EMU_DATAGRAM_PENDING };
}

/* Split, hosts do not reach each other's nodes. */
bool emu_network_reaches(struct emu_server *server, uint32_t src_nid, uint32_t dst_nid)
{
    (void)server;
    return !world->is_split || src_nid / 10 == dst_nid / 10;
}

/* Several hosts are in the hosts' time. */
int emu_virtual_post(struct emu_port_end *port, struct emu_virtual_op *op, const struct emu_virtual_move *move)
{
    (void)port;
    (void)op;
    (void)move;
    fail();
    return -EINVAL;
}

void emu_connection_answer_with(struct emu_connection *connection, struct emu_msg *reply, int result, int fd)
{
    char *start = (char *)connection - offsetof(struct world_port, connection);
    struct world_port *port = (struct world_port *)(void *)start;

    assert_int_equal(fd, -1);
    assert_true(port->awaits_cancel);
    assert_int_equal(reply->type, EMU_MSG_DATAGRAM_CANCEL);
    assert_true(result == 0 || result == EMU_OUTCOME_NO_MATCH);
    port->awaits_cancel = false;
    if (result == 0)
        world->posts[port->cancelled].fate = CANCELLED;
}

/* ---- the world ---- */

/* What the port asks for, by whoever answers such requests. */
static int ask(struct world_port *port, uint16_t type, struct emu_msg *msg)
{
    struct emu_request request = { .connection = &port->connection, .port = &port->end, .msg = msg };

    msg->type = type;
    for (uint32_t i = 0; i < emu_datagrams_part.n_requests; i++) {
        if (emu_datagrams_part.requests[i].first <= type && type <= emu_datagrams_part.requests[i].last)
            return emu_datagrams_part.requests[i].answer(&request);
    }
    return -EPROTO;
}

int ask_datagram(struct world_port *port, uint16_t type, struct emu_msg_datagram *datagram)
{
    struct emu_msg msg = { .datagram = *datagram };
    int r = ask(port, type, &msg);

    *datagram = msg.datagram;
    return r;
}

static void drop_all(struct world_port *port)
{
    emu_datagrams_part.ports.end(&port->end);
    assert_int_equal(emu_datagrams_part.ports.begin(&port->end), 0);
}

struct world_port *port_at(uint32_t nid)
{
    return &world->ports[nid / 10][nid % 10];
}

void make_world(void)
{
    static uint32_t addresses[HOSTS * 10];

    world = calloc(1, sizeof(*world));
    for (uint32_t i = 0; i < HOSTS * 10; i++)
        addresses[i] = i;
    for (uint32_t h = 0; h < HOSTS; h++) {
        struct emu_server *server = &world->servers[h];

        server->n_hosts = HOSTS;
        server->own_host = h;
        emu_datagrams_part.create(server, NULL, NULL);
        world->domains[h].addresses = addresses;
        LIST_INIT(&server->ports);
        LIST_INIT(&server->domains);
        LIST_INSERT_HEAD(&server->domains, &world->domains[h], link);
        world->domains[h].common_number = 1;
        world->domains[h].own_host = h;
        assert_int_equal(emu_lookups_create(server), 0);
        assert_int_equal(emu_lookups_add_domain(server, &world->domains[h]), 0);
        for (uint32_t p = 0; p < PORTS_PER_HOST; p++) {
            struct world_port *port = &world->ports[h][p];

            port->end = (struct emu_port_end){ .server = server,
                                               .domain = &world->domains[h],
                                               .member = &port->member,
                                               .nid = PORT(h, p),
                                               .instance_id = 7,
                                               .segment = &port->segment,
                                               .connection = &port->connection };
            emu_datagrams_part.ports.begin(&port->end);
            LIST_INSERT_HEAD(&server->ports, &port->end, link);
            emu_lookups_add_port(&port->end);
        }
    }
}

void end_world(void)
{
    for (uint32_t h = 0; h < HOSTS; h++) {
        for (uint32_t p = 0; p < PORTS_PER_HOST; p++) {
            emu_datagrams_part.ports.end(&world->ports[h][p].end);
            emu_lookups_remove_port(&world->ports[h][p].end);
        }
        emu_offers_end(&world->domains[h]);
        emu_lookups_remove_domain(&world->domains[h]);
        emu_lookups_destroy(&world->servers[h]);
        emu_datagrams_part.destroy(&world->servers[h]);
    }
    free(world);
}

struct post *post_of(uint32_t port, uint32_t ep)
{
    struct post *found = NULL;

    for (unsigned i = 0; i < world->n_posts; i++) {
        if (world->posts[i].port == port && world->posts[i].ep == ep)
            found = &world->posts[i];
    }
    return found;
}

static void do_post(const struct step *step)
{
    struct post *post = &world->posts[world->n_posts];
    struct emu_msg_datagram wanted = { .ep = step->ep,
                                       .remote_nid = step->to,
                                       .remote_instance = 7,
                                       .length_bytes = 1,
                                       .room_bytes = EMU_DATAGRAM_MAX,
                                       .data = { (uint8_t)world->n_posts } };
    int r;

    assert_true(world->n_posts < POSTS_MAX);
    if (step->to == WILDCARD)
        wanted.flags = EMU_DATAGRAM_WILDCARD;
    *post = (struct post){ .port = step->port, .ep = step->ep, .to = step->to, .partner = UINT32_MAX };
    world->n_posts++;
    r = ask_datagram(port_at(step->port), EMU_MSG_DATAGRAM_POST, &wanted);
    assert_true(r == 0 || r == EMU_OUTCOME_BUSY);
    post->fate = r == 0 ? LIVES : REFUSED;
}

void do_cancel(const struct step *step)
{
    struct emu_msg request = { .type = EMU_MSG_DATAGRAM_CANCEL,
                               .datagram = { .ep = step->ep, .flags = EMU_DATAGRAM_ANY_ID } };
    struct world_port *port = port_at(step->port);
    struct post *post = post_of(step->port, step->ep);
    int r = ask(port, EMU_MSG_DATAGRAM_CANCEL, &request);

    if (r == 0)
        post->fate = CANCELLED;
    else if (r == EMU_DEFERRED) {
        port->awaits_cancel = true;
        port->cancelled = (uint32_t)(post - world->posts);
    } else {
        assert_int_equal(r, EMU_OUTCOME_NO_MATCH);
    }
}

void cut_hosts(uint32_t a, uint32_t b)
{
    world->is_cut[a][b] = true;
    world->is_cut[b][a] = true;
    world->queues[a][b].n = 0;
    world->queues[b][a].n = 0;
    emu_datagram_host_down(&world->servers[a], b);
    emu_datagram_host_down(&world->servers[b], a);
}

void join_hosts(uint32_t a, uint32_t b)
{
    world->is_cut[a][b] = false;
    world->is_cut[b][a] = false;
    emu_datagram_host_up(&world->servers[a], b);
    emu_datagram_host_up(&world->servers[b], a);
}

static void split(bool is_split)
{
    world->is_split = is_split;
    for (uint32_t h = 0; h < HOSTS; h++)
        world->domains[h].paths.is_routed_around = is_split;
    for (uint32_t h = 0; h < HOSTS && !is_split; h++)
        emu_datagram_look_at_all(&world->servers[h]);
}

static void close_port(struct world_port *port)
{
    for (unsigned i = 0; i < world->n_posts; i++) {
        if (world->posts[i].port == port->end.nid)
            world->posts[i].fate = GONE;
    }
    port->awaits_cancel = false;
    drop_all(port);
}

void do_step(const struct step *step)
{
    switch (step->deed) {
    case POST:
        do_post(step);
        break;
    case CANCEL:
        do_cancel(step);
        break;
    case DROP:
        ask_datagram(port_at(step->port), EMU_MSG_DATAGRAM_DROP_EP, &(struct emu_msg_datagram){ .ep = step->ep });
        post_of(step->port, step->ep)->fate = GONE;
        break;
    case CLOSE:
        close_port(port_at(step->port));
        break;
    case CUT:
        cut_hosts(step->port, step->ep);
        break;
    case JOIN:
        join_hosts(step->port, step->ep);
        break;
    case RENUMBER: /* as if it had no domain before, or knew it by another number */
        emu_lookups_renumber(&world->domains[step->port], step->ep);
        if (step->ep != 0)
            emu_datagram_domain_begins(&world->servers[step->port], &world->domains[step->port]);
        break;
    default:
        split(step->deed == SPLIT);
    }
}

void deliver(uint32_t from, uint32_t to)
{
    struct queue *q = &world->queues[from][to];
    struct message m = q->messages[q->first];

    q->first = (q->first + 1) % QUEUE_MAX;
    q->n--;
    assert_true(emu_datagram_host_message(&world->servers[to], from, m.bytes, m.length));
}

void deliver_all(void)
{
    bool goes_on = true;

    while (goes_on) {
        goes_on = false;
        for (uint32_t from = 0; from < HOSTS; from++) {
            for (uint32_t to = 0; to < HOSTS; to++) {
                while (world->queues[from][to].n > 0) {
                    deliver(from, to);
                    goes_on = true;
                }
            }
        }
    }
}
