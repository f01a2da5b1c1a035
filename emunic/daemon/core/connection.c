/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Connections: requests in, replies out.
 *
 * A peer that breaks the protocol (no hello, other magic or version, unknown type, a reply it does not read) loses
 * its connection and with it its port; nobody else notices. A connection gets REQUESTS_PER_TURN requests and then
 * waits for its next turn. The admin socket answers only root and emunic's own user.
 */
#include "emunic/daemon/core/connection.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "emunic/daemon/ce/ce.h"
#include "emunic/daemon/core/channel.h"
#include "emunic/daemon/datagrams/datagram.h"
#include "emunic/daemon/core/domain.h"
#include "emunic/daemon/errors/error_stream.h"
#include "emunic/daemon/world/file.h"
#include "emunic/daemon/orders/orders.h"
#include "emunic/daemon/orders/order_request.h"
#include "emunic/daemon/ce/ce_hosts.h"
#include "emunic/daemon/reports/gather.h"
#include "emunic/daemon/jobs/host_domains.h"
#include "emunic/daemon/peers/sessions.h"
#include "emunic/daemon/injection/injection.h"
#include "emunic/daemon/memory/memory_domain.h"
#include "emunic/daemon/msgq/msgq.h"
#include "emunic/daemon/core/port.h"
#include "emunic/daemon/portals/portals.h"
#include "emunic/daemon/core/quiesce.h"
#include "emunic/daemon/reports/report.h"
#include "emunic/daemon/resources/resources.h"
#include "emunic/daemon/core/server.h"
#include "emunic/fabric/machine.h"

#define REQUESTS_PER_TURN 16
#define RANKS_MAX         (1u << 20)

struct emu_reply {
    struct emu_msg *msg;      /* request in, reply out */
    int fds[EMU_MSG_FDS_MAX]; /* passed with the reply */
    unsigned n_fds;
    bool closes_fds; /* made for this reply only */
};

/* ---- control requests ---- */

/* Of requests that several emunics answer one after the other: who was asked, the head, the others. */
static uint32_t answer_ms(const struct emu_server *server)
{
    return (uint32_t)(3 * emu_hosts_timeout_ns(server) / 1000000);
}

static int answer_hello(struct emu_connection *c, struct emu_msg *msg)
{
    uint32_t theirs = msg->hello.abi_version;

    msg->hello = (struct emu_msg_hello){ .abi_version = EMU_ABI_VERSION,
                                         .server_pid = (uint32_t)getpid(),
                                         .server_uid = (uint32_t)geteuid(),
                                         .answer_ms = answer_ms(c->server) };
    if (theirs != EMU_ABI_VERSION) {
        emu_log_limited(&c->server->rate, EMU_LOG_WARN, "pid %d speaks ABI %u, this server ABI %u", (int)c->peer.pid,
                        theirs, EMU_ABI_VERSION);
        return -EPROTONOSUPPORT;
    }
    c->said_hello = true;
    return 0;
}

static int join_rank(struct emu_connection *c, struct emu_msg_rank *rank)
{
    struct emu_domain *domain = emu_domain_find(c->server, rank->ptag, rank->cookie);
    struct emu_member *member;
    int r;

    if (!domain || !emu_domain_may_use(domain, &c->peer) || rank->rank >= domain->n_ranks)
        return -EACCES;
    r = emu_member_get(domain, c, &member);
    if (r < 0)
        return r;
    if (emu_table_nodes(domain->table)[emu_domain_node_of(domain, domain->rank_nids[rank->rank])].host !=
        EMU_NODE_HERE) {
        emu_log_limited(&c->server->rate, EMU_LOG_WARN, "pid %d: rank %u is on another host", (int)c->peer.pid,
                        rank->rank);
        return -EXDEV;
    }
    member->rank = rank->rank;
    rank->nid = domain->rank_nids[rank->rank];
    static_assert(sizeof(rank->cname) >= EMU_CNAME_MAX, "the name of any node has room in a message");
    r = emu_machine_cname(c->server->machine, rank->nid, rank->cname, sizeof(rank->cname));
    if (r < 0)
        return r;
    member->node_index = emu_domain_node_of(domain, rank->nid);
    rank->local_rank = 0;
    for (uint32_t i = 0; i < rank->rank; i++)
        rank->local_rank += domain->rank_nids[i] == rank->nid;
    return 0;
}

/* The domain that a process means: the one it names, is in, or may use first. */
static const struct emu_domain *domain_meant(struct emu_connection *c, const struct emu_msg_rank *rank)
{
    const struct emu_domain *first = NULL;
    struct emu_domain *domain;

    if (rank->cookie != 0)
        return emu_domain_find(c->server, 255, rank->cookie);
    LIST_FOREACH(domain, &c->server->domains, link) {
        if (emu_member_find(domain, c->peer.pid))
            return domain;
        if (!first && emu_domain_may_use(domain, &c->peer))
            first = domain;
    }
    return first;
}

/* The address of the node of a process, in its job. */
static int where_is(struct emu_connection *c, struct emu_msg_rank *rank)
{
    uint32_t nid = emu_place_of(c, rank->nid);
    const struct emu_domain *domain = domain_meant(c, rank);
    uint32_t node = domain ? emu_domain_node_of(domain, nid) : EMU_NID_NONE;

    rank->nid = node != EMU_NID_NONE && domain->addresses[node] != EMU_NID_NONE ? domain->addresses[node] : nid;
    return 0;
}

static int answer_machine(struct emu_connection *c, struct emu_reply *reply)
{
    struct emu_msg_machine *machine = &reply->msg->machine;

    machine->device = emu_machine_nic(c->server->machine)->device;
    if (machine->wants_places == 0)
        return 0;
    reply->fds[0] = c->server->places_fd;
    reply->n_fds = 1;
    return 0;
}

static int answer_attach(struct emu_connection *c, struct emu_reply *reply)
{
    int r;

    if (c->port)
        return -EALREADY;
    r = emu_port_end_create(c, &reply->msg->attach, reply->fds);
    if (r == 0)
        reply->n_fds = 3;
    return r;
}

/* Direct path: what a member needs of another one. A domain that is routed for good keeps its segments apart. */
static int answer_peer(struct emu_port_end *port, struct emu_reply *reply)
{
    struct emu_msg_peer *asked = &reply->msg->peer;
    struct emu_port_end *peer = asked->port < EMU_PORTS_MAX ? port->domain->ports[asked->port] : NULL;

    if (!peer)
        return -ENOENT;
    if (port->domain->is_routed_for_good)
        return -EPERM;
    asked->generation = emu_table_ports(port->domain->table)[asked->port].generation;
    if (reply->msg->type == EMU_MSG_PEER_SEGMENT) {
        reply->fds[0] = peer->segment_fd;
        asked->length_bytes = peer->segment_bytes;
    } else {
        reply->fds[0] = peer->member->space_fd;
        asked->length_bytes = EMU_SPACE_BYTES;
    }
    if (reply->fds[0] < 0)
        return -ENOENT;
    reply->n_fds = 1;
    return 0;
}

static int answer_peer_file(const struct emu_port_end *port, struct emu_reply *reply)
{
    int fd = port->domain->is_routed_for_good ? -EPERM : emu_file_of(port->domain, &reply->msg->file);

    if (fd < 0)
        return fd;
    reply->fds[0] = fd;
    reply->n_fds = 1;
    return 0;
}

static int answer_portals(struct emu_port_end *port, struct emu_reply *reply)
{
    struct emu_msg_portals *asked = &reply->msg->portals;
    int r;

    switch (reply->msg->type) {
    case EMU_MSG_PORTALS_OPEN:
    case EMU_MSG_PORTALS_PEER:
        r = reply->msg->type == EMU_MSG_PORTALS_OPEN ? emu_portals_end_open(port, asked) :
                                                       emu_portals_end_peer(port, asked);
        if (r < 0)
            return r;
        reply->fds[0] = r;
        reply->n_fds = 1;
        return 0;
    case EMU_MSG_PORTALS_STUCK:
        emu_portals_end_stuck(port, asked->port);
        return 0;
    default:
        return emu_portals_end_distance(port, asked);
    }
}

static void tell_address(const struct emu_domain *domain, struct emu_msg_datagram *datagram)
{
    uint32_t node = emu_domain_node_of(domain, datagram->remote_nid);

    if (node != EMU_NID_NONE)
        datagram->remote_nid = domain->addresses[node];
}

/* Requests that need a port. */
static int answer_port(struct emu_port_end *port, struct emu_reply *reply, struct emu_fds *fds)
{
    struct emu_msg *msg = reply->msg;
    int r;

    switch (msg->type) {
    case EMU_MSG_CQ_CREATE:
        return emu_port_end_cq_create(port, &msg->cq);
    case EMU_MSG_CQ_DESTROY:
        r = emu_port_end_cq_destroy(port, msg->cq.index);
        return r < 0 ? r : emu_quiesce_queue(port->connection, port, msg->cq.index, msg);
    case EMU_MSG_CHANNEL_CREATE:
        r = emu_channel_end_create(port, &msg->channel);
        if (r < 0)
            return r;
        reply->fds[0] = r;
        reply->n_fds = 1;
        reply->closes_fds = true;
        return 0;
    case EMU_MSG_CHANNEL_DESTROY:
        return emu_channel_end_destroy(port, msg->channel.channel);
    case EMU_MSG_CHANNEL_ATTACH:
        return emu_channel_end_attach(port, &msg->channel);
    case EMU_MSG_MEM_REGISTER:
        return emu_md_register(port, &msg->memory, fds);
    case EMU_MSG_MEM_DEREGISTER:
        r = emu_md_deregister(port, msg->memory.mdh, msg->memory.generation);
        return r < 0 ? r : emu_quiesce_memory(port->connection, port, msg->memory.mdh, msg);
    case EMU_MSG_SPACE:
        r = emu_space_get(port->member);
        if (r < 0)
            return r;
        reply->fds[0] = r;
        reply->n_fds = 1;
        return 0;
    case EMU_MSG_PEER_SEGMENT:
    case EMU_MSG_PEER_SPACE:
        return answer_peer(port, reply);
    case EMU_MSG_MSGQ_JOIN:
        r = emu_msgq_join(port, &msg->msgq);
        if (r < 0)
            return r;
        reply->fds[0] = r;
        reply->n_fds = 1;
        return 0;
    case EMU_MSG_MSGQ_LEAVE:
        return emu_msgq_leave(port);
    case EMU_MSG_PEER_FILE:
        return answer_peer_file(port, reply);
    case EMU_MSG_VMDH_RESERVE:
        return emu_md_reserve_virtual(port, msg->memory.vmdh);
    case EMU_MSG_MEM_UPDATE:
        return emu_md_update(port, &msg->memory);
    case EMU_MSG_MEM_SEGMENTS:
        return emu_md_add_segments(port, &msg->segments);
    case EMU_MSG_DATAGRAM_POST:
        /* Programs know addresses, emunic nodes. An unknown one stays unknown. */
        msg->datagram.remote_nid = emu_domain_nid_at(port->domain, msg->datagram.remote_nid);
        return emu_datagram_post(port, &msg->datagram);
    case EMU_MSG_DATAGRAM_TEST:
        r = emu_datagram_test(port, &msg->datagram);
        tell_address(port->domain, &msg->datagram);
        return r;
    case EMU_MSG_DATAGRAM_PROBE:
        r = emu_datagram_probe(port, &msg->datagram);
        tell_address(port->domain, &msg->datagram);
        return r;
    case EMU_MSG_DATAGRAM_CANCEL:
        return emu_datagram_cancel(port, msg);
    default:
        emu_datagram_drop_ep(port, msg->datagram.ep);
        return 0;
    }
}

/* ---- admin requests ---- */

/* Node of each rank and, with EMU_DOMAIN_HAS_HOSTS, behind them the host of each. */
static int read_ranks(int fd, uint32_t n_ranks, bool has_hosts, uint32_t **nids_out)
{
    uint32_t *nids;
    size_t bytes = (size_t)n_ranks * sizeof(*nids) * (has_hosts ? 2 : 1);

    if (n_ranks == 0 || n_ranks > RANKS_MAX)
        return -EINVAL;
    nids = malloc(bytes);
    if (!nids)
        return -ENOMEM;
    if (pread(fd, nids, bytes, 0) != (ssize_t)bytes) {
        free(nids);
        return -EINVAL;
    }
    *nids_out = nids;
    return 0;
}

static int answer_domain_create(struct emu_connection *c, struct emu_msg *msg, const struct emu_fds *fds)
{
    struct emu_msg_domain *d = &msg->domain;
    bool has_hosts = (d->flags & EMU_DOMAIN_HAS_HOSTS) != 0;
    struct emu_domain_spec spec = { .ptag = d->ptag,
                                    .cookie = d->cookie,
                                    .owner_uid = d->owner_uid,
                                    .member_limit = d->member_limit,
                                    .n_ranks = d->n_ranks,
                                    .flags = d->flags & ~EMU_DOMAIN_HAS_HOSTS };
    struct emu_domain *domain;
    uint32_t *nids;
    int r;

    if (c->job || fds->n_fds != 1 || (d->flags & ~(EMU_TABLE_ROUTED | EMU_DOMAIN_HAS_HOSTS)) != 0)
        return -EINVAL;
    r = read_ranks(fds->fd[0], d->n_ranks, has_hosts, &nids);
    if (r < 0)
        return r;
    spec.rank_nids = nids;
    if (has_hosts) {
        spec.rank_hosts = nids + d->n_ranks;
        r = emu_host_domains_make(c->server, &spec, true, &domain);
    } else {
        r = emu_domain_create(c->server, &spec, &domain);
    }
    free(nids);
    if (r < 0)
        return r;
    c->job = domain;
    d->domain_id = domain->id;
    return has_hosts ? emu_host_domains_await(c, domain, msg) : 0;
}

static int answer_domain_end(struct emu_connection *c, const struct emu_msg_domain *d)
{
    struct emu_domain *domain = c->job;

    if (!domain)
        return -ENOENT;
    if (d->signal > 64)
        return -EINVAL;
    c->job = NULL;
    emu_domain_end(c->server, domain, (int)d->signal);
    return 0;
}

static int answer_report(struct emu_connection *c, struct emu_reply *reply)
{
    int fd = emu_gather_report(c, reply->msg);

    if (fd == EMU_GATHERS)
        return EMU_DEFERRED;
    if (fd < 0)
        return fd;
    reply->fds[0] = fd;
    reply->n_fds = 1;
    reply->closes_fds = true;
    return 0;
}

static int answer_admin(struct emu_connection *c, struct emu_reply *reply, const struct emu_fds *fds)
{
    switch (reply->msg->type) {
    case EMU_MSG_DOMAIN_CREATE:
        return answer_domain_create(c, reply->msg, fds);
    case EMU_MSG_DOMAIN_END:
        return answer_domain_end(c, &reply->msg->domain);
    case EMU_MSG_STATUS:
    case EMU_MSG_LINKS:
    case EMU_MSG_FAULTS:
        return answer_report(c, reply);
    case EMU_MSG_SHUTDOWN:
        c->server->stops = true;
        return 0;
    case EMU_MSG_INJECTION_SET:
        return emu_injection_set(c, &reply->msg->injection);
    default:
        return emu_admin_is_change(reply->msg->type) ? emu_admin_answer(c, reply->msg, fds) : -EPROTO;
    }
}

static int answer_errors_open(struct emu_connection *c, struct emu_reply *reply)
{
    int fd = emu_error_open(c, &reply->msg->errors);
    int r;

    if (fd < 0)
        return fd;
    /* No error on another host from now on goes by. */
    r = emu_gather_listening(c, reply->msg, fd);
    if (r < 0)
        emu_error_close(c);
    if (r != 0)
        return r;
    reply->fds[0] = fd;
    reply->n_fds = 1;
    return 0;
}

/* ---- dispatch ---- */

static int answer_control(struct emu_connection *c, struct emu_reply *reply, struct emu_fds *fds)
{
    struct emu_msg *msg = reply->msg;

    switch (msg->type) {
    case EMU_MSG_JOIN_RANK:
        return join_rank(c, &msg->rank);
    case EMU_MSG_WHERE:
        return where_is(c, &msg->rank);
    case EMU_MSG_RESOURCES:
        return emu_resources_answer(c, &msg->resources);
    case EMU_MSG_PTAG:
        return emu_resources_ptag(c, &msg->ptag);
    case EMU_MSG_MACHINE:
        return answer_machine(c, reply);
    case EMU_MSG_INJECTION:
        return emu_injection_get(c, &msg->injection);
    case EMU_MSG_ATTACH:
        return answer_attach(c, reply);
    case EMU_MSG_ERRORS_OPEN:
        return answer_errors_open(c, reply);
    case EMU_MSG_ERRORS_MASK ... EMU_MSG_ERRORS_FETCH:
        return emu_error_request(c, msg->type, &msg->errors);
    case EMU_MSG_CQ_CREATE ... EMU_MSG_DATAGRAM_DROP_EP:
    case EMU_MSG_MSGQ_JOIN:
    case EMU_MSG_MSGQ_LEAVE:
    case EMU_MSG_VMDH_RESERVE:
    case EMU_MSG_MEM_UPDATE:
    case EMU_MSG_MEM_SEGMENTS:
        return c->port ? answer_port(c->port, reply, fds) : -ENOTCONN;
    case EMU_MSG_PORTALS_OPEN ... EMU_MSG_PORTALS_DISTANCE:
        return c->port ? answer_portals(c->port, reply) : -ENOTCONN;
    case EMU_MSG_CE_CREATE ... EMU_MSG_CE_DESTROY:
        return c->port ? emu_ce_answer(c->port, msg) : -ENOTCONN;
    default:
        return -EPROTO;
    }
}

/* One request. -EPROTO and transport errors end the connection. */
static int serve_request(struct emu_connection *c, struct emu_msg *msg, struct emu_fds *fds)
{
    struct emu_reply reply = { .msg = msg };
    int r;

    if (c->awaits_answer)
        return -EPROTO; /* one request at a time */
    c->awaits_answer = true;
    if (msg->type == EMU_MSG_HELLO)
        r = answer_hello(c, msg);
    else if (!c->said_hello || msg->abi_version != EMU_ABI_VERSION)
        r = -EPROTO;
    else if (c->is_admin)
        r = answer_admin(c, &reply, fds);
    else
        r = answer_control(c, &reply, fds);
    if (r == EMU_DEFERRED)
        return 0; /* the answer comes, or has been given */
    c->awaits_answer = false;
    if (r == -EPROTO)
        return r;
    msg->result = r;
    r = emu_msg_send(c->fd, msg, reply.fds, reply.n_fds);
    for (unsigned i = 0; reply.closes_fds && i < reply.n_fds; i++)
        close(reply.fds[i]);
    /* Its socket is full of replies that it does not read. */
    return r == -EAGAIN ? -ENOBUFS : r;
}

/* An orderly end closes one direction and waits for us; a dead process has closed both. */
static bool has_hung_up(int fd)
{
    struct pollfd p = { .fd = fd };

    return poll(&p, 1, 0) > 0 && (p.revents & POLLHUP) != 0;
}

static void connection_ready(struct emu_server *server, struct emu_watch *watch, uint32_t events)
{
    struct emu_connection *c = (struct emu_connection *)watch;
    struct emu_fds fds = { .n_fds = 0 };
    struct emu_msg msg;
    int r = 0;

    (void)events;
    for (int i = 0; i < REQUESTS_PER_TURN && !watch->is_dead; i++) {
        r = emu_msg_receive(c->fd, &msg, &fds);
        if (r < 0)
            break;
        r = serve_request(c, &msg, &fds);
        emu_fds_close(&fds);
        if (r < 0)
            break;
    }
    if (r == 0 || r == -EAGAIN)
        return;
    if (r != -ECONNRESET)
        emu_log_limited(&server->rate, EMU_LOG_WARN, "pid %d uid %u: %s, connection closed", (int)c->peer.pid,
                        (unsigned)c->peer.uid, r == -EPROTO ? "not our protocol" : strerror(-r));
    c->hung_up = r != -ECONNRESET || has_hung_up(c->fd);
    emu_connection_destroy(c);
}

/* ---- life ---- */

void emu_connection_answer_with(struct emu_connection *c, struct emu_msg *reply, int result, int fd)
{
    c->awaits_answer = false;
    reply->result = result;
    if (emu_msg_send(c->fd, reply, &fd, fd >= 0) < 0)
        shutdown(c->fd, SHUT_RDWR); /* epoll tells us to clean up */
}

/* Out of descriptors: whoever waits is told by the end of the connection, and epoll does not wake us for it again. */
static void turn_away(struct emu_server *server, int listener)
{
    int fd;

    emu_log_limited(&server->rate, EMU_LOG_ERROR, "cannot accept a connection: %s", strerror(errno));
    if (server->spare_fd >= 0)
        close(server->spare_fd);
    fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
    if (fd >= 0)
        close(fd);
    server->spare_fd = open("/dev/null", O_RDONLY | O_CLOEXEC);
}

void emu_connection_accept(struct emu_server *server, int listener, bool is_admin)
{
    struct emu_connection *c;
    int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

    if (fd < 0) {
        if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED)
            turn_away(server, listener);
        return;
    }
    c = calloc(1, sizeof(*c));
    if (!c)
        goto err_fd;
    *c = (struct emu_connection){ .watch.ready = connection_ready, .server = server, .fd = fd, .is_admin = is_admin };
    if (emu_socket_peer(fd, &c->peer) < 0)
        goto err_free;
    if (is_admin && c->peer.uid != 0 && c->peer.uid != geteuid()) {
        emu_log_limited(&server->rate, EMU_LOG_WARN, "pid %d uid %u: not allowed on the admin socket", (int)c->peer.pid,
                        (unsigned)c->peer.uid);
        goto err_free;
    }
    if (emu_server_watch(server, fd, EPOLLIN | EPOLLRDHUP, &c->watch) < 0)
        goto err_free;
    LIST_INSERT_HEAD(&server->connections, c, link);
    return;

err_free:
    free(c);
err_fd:
    close(fd);
}

void emu_connection_destroy(struct emu_connection *c)
{
    struct emu_domain *job = c->job;

    LIST_REMOVE(c, link);
    if (c->port)
        emu_port_end_destroy(c->port);
    else
        emu_quiesce_forget(c->server, c, NULL);
    emu_host_domains_forget(c->server, c);
    emu_ce_forget(c->server, c);
    emu_admin_forget(c->server, c);
    emu_gather_forget(c->server, c);
    c->port = NULL;
    emu_error_close(c);
    c->job = NULL;
    emu_server_bury(c->server, c->fd, &c->watch);
    close(c->fd);
    if (job) {
        emu_log(EMU_LOG_WARN, "launcher pid %d has gone: ending its job", (int)c->peer.pid);
        emu_domain_end(c->server, job, SIGTERM);
    }
}
