/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Error events for subscribers.
 *
 * A subscription is a control connection of its own, so it outlives the NIC handle it was made with and goes with its
 * process. It keeps the newest events that it had room for: when its queue is full, further events are lost, and the
 * serial number, which counts every event that passed the subscription's filter, shows how many. The first event of a
 * burst is marked (EMU_ERROR_FIRST) and never among the lost ones: the queue is empty then. Its eventfd is
 * readable exactly while events wait; emunic alone writes and reads it for good (what the owner does to it fools only
 * the owner).
 *
 * Filter: a category mask; and the domain whose credentials the subscriber has shown, or, for root and emunic's own
 * user, a protection tag or everything.
 *
 *   sources   the engine's failed transactions on the routed path (view op `failed`)
 *             EMU_OP_REPORT commands: those of the direct path, sent while a domain is EMU_TABLE_WATCHED
 *             injected faults, refused registrations, ports that died, changes of rules
 *
 * Events of other hosts come through error_hosts.c, to which those of this one go as well.
 *
 * Nobody subscribed: one look at an empty list.
 * Source: spec/ugni.md 4.13.
 */
#include "emunic/daemon/errors/error_stream.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "emunic/abi/command.h"
#include "emunic/abi/event.h"
#include "emunic/abi/host_admin.h"
#include "emunic/daemon/core/connection.h"
#include "emunic/daemon/errors/error_hosts.h"
#include "emunic/daemon/peers/sessions.h"
#include "emunic/daemon/world/domain.h"
#include "emunic/daemon/world/port_end.h"

#define SUBSCRIPTIONS_MAX 256u /* of one user */
#define RING_FIRST        16u

struct emu_error_sub {
    LIST_ENTRY(emu_error_sub) link;
    uid_t uid;
    uint32_t mask;
    bool sees_all;      /* every domain with that ptag, or with any */
    uint32_t ptag;      /* 0 any */
    uint32_t domain_id; /* else this one */
    int event_fd;
    uint32_t room;                 /* events to keep at most */
    uint32_t ring_size;            /* grows up to room */
    struct emu_error_record *ring; /* owned */
    uint32_t head;
    uint32_t n;
    uint32_t serial;
};

LIST_HEAD(subs, emu_error_sub);

static struct subs *subs_of(const struct emu_server *server)
{
    return server->slots[EMU_SERVER_ERRORS];
}

bool emu_error_is_heard_here(const struct emu_server *server)
{
    return !LIST_EMPTY(subs_of(server));
}

/* ---- events ---- */

static bool is_watched(const struct emu_server *server)
{
    return !LIST_EMPTY(subs_of(server)) || emu_error_others_listen(server);
}

static uint8_t category_of(unsigned status)
{
    switch (status) {
    case EMU_STATUS_NETWORK:
        return EMU_ERROR_TRANSIENT;
    case EMU_STATUS_BAD_HANDLE:
    case EMU_STATUS_REMOTE_RANGE:
    case EMU_STATUS_REMOTE_PERMISSION:
    case EMU_STATUS_LOCAL_ACCESS:
        return EMU_ERROR_ADDRESS_TRANSLATION;
    case EMU_STATUS_BAD_COMMAND:
        return EMU_ERROR_UNKNOWN_TRANSACTION;
    default:
        return EMU_ERROR_TRANSACTION;
    }
}

static uint64_t now_since_1970_ns(void)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * 1000000000ull + (uint64_t)now.tv_nsec;
}

static bool grow(struct emu_error_sub *sub)
{
    uint32_t size = sub->ring_size ? 2 * sub->ring_size : RING_FIRST;
    struct emu_error_record *ring;

    if (size > sub->room)
        size = sub->room;
    ring = malloc(size * sizeof(*ring));
    if (!ring)
        return false;
    for (uint32_t i = 0; i < sub->n; i++)
        ring[i] = sub->ring[(sub->head + i) % sub->ring_size];
    free(sub->ring);
    sub->ring = ring;
    sub->ring_size = size;
    sub->head = 0;
    return true;
}

static void put(struct emu_error_sub *sub, const struct emu_error_record *record)
{
    uint64_t one = 1;

    sub->serial++;
    if (sub->n == sub->room || (sub->n == sub->ring_size && !grow(sub)))
        return; /* lost; the next serial number tells */
    sub->ring[(sub->head + sub->n) % sub->ring_size] = *record;
    sub->ring[(sub->head + sub->n) % sub->ring_size].serial = sub->serial;
    if (sub->n == 0)
        sub->ring[sub->head].info[3] |= EMU_ERROR_FIRST;
    if (sub->n++ == 0 && write(sub->event_fd, &one, sizeof(one)) < 0)
        return; /* its owner has filled it: readable */
}

static bool wants(const struct emu_error_sub *sub, const struct emu_domain *domain, uint8_t category)
{
    if ((sub->mask & category) == 0)
        return false;
    if (sub->sees_all)
        return sub->ptag == 0 || sub->ptag == domain->ptag;
    return sub->domain_id == domain->id;
}

void emu_error_tell(struct emu_server *server, const struct emu_domain *domain, struct emu_error_record record)
{
    if (!is_watched(server))
        return;
    record.timestamp_ns = now_since_1970_ns();
    emu_error_tell_here(server, domain, record);
    emu_error_tell_others(server, domain, &record);
}

void emu_error_lose(struct emu_server *server, uint32_t n_lost)
{
    struct emu_error_sub *sub;

    LIST_FOREACH(sub, subs_of(server), link)
        sub->serial += n_lost;
}

void emu_error_tell_here(struct emu_server *server, const struct emu_domain *domain, struct emu_error_record record)
{
    struct emu_error_sub *sub;

    if (LIST_EMPTY(subs_of(server)))
        return;
    record.ptag = (uint8_t)domain->ptag;
    if (record.timestamp_ns == 0)
        record.timestamp_ns = now_since_1970_ns();
    LIST_FOREACH(sub, subs_of(server), link) {
        if (wants(sub, domain, record.category))
            put(sub, &record);
    }
}

static uint64_t pair_of(uint32_t high, uint32_t low)
{
    return (uint64_t)high << 32 | low;
}

void emu_error_tell_transaction(const struct emu_port_end *port, const struct emu_cmd *cmd, unsigned status,
                                uint16_t code, uint32_t rule)
{
    struct emu_error_record record = {
        .code = code ? code : (uint16_t)status,
        .category = category_of(status),
        .info = { pair_of(port->nid, port->instance_id),
                  pair_of(emu_domain_nid_at(port->domain, cmd->remote_nid), cmd->mdh), cmd->remote_addr,
                  pair_of(rule, (uint32_t)cmd->op << 8 | status) },
    };

    emu_error_tell(port->server, port->domain, record);
}

void emu_error_tell_port(const struct emu_port_end *port, uint16_t code, uint8_t category, uint64_t count,
                         uint32_t rule)
{
    struct emu_error_record record = {
        .code = code,
        .category = category,
        .info = { pair_of(port->nid, port->instance_id), 0, count, pair_of(rule, 0) },
    };

    emu_error_tell(port->server, port->domain, record);
}

void emu_error_take_report(const struct emu_port_end *port, const struct emu_cmd *cmd)
{
    struct emu_cmd about = *cmd;
    bool is_known = cmd->operand1 > EMU_STATUS_OK && cmd->operand1 <= EMU_STATUS_BAD_COMMAND;

    /* A client can lie about its own transactions only. */
    about.op = (uint8_t)cmd->operand2;
    emu_error_tell_transaction(port, &about, is_known ? (unsigned)cmd->operand1 : EMU_STATUS_BAD_COMMAND, 0, 0);
}

/* ---- subscriptions ---- */

/* The direct path reports failures while anybody listens. */
static int watch_domain(struct emu_server *server, struct emu_domain *domain)
{
    if (!domain->table)
        return 0;
    if (!is_watched(server))
        atomic_fetch_and(&domain->table->flags, ~EMU_TABLE_WATCHED);
    else
        atomic_fetch_or(&domain->table->flags, EMU_TABLE_WATCHED);
    return 0;
}

void emu_error_watch_all(struct emu_server *server)
{
    struct emu_domain *domain;

    LIST_FOREACH(domain, &server->domains, link)
        watch_domain(server, domain);
}

static bool is_privileged(const struct emu_connection *c)
{
    return c->peer.uid == 0 || c->peer.uid == geteuid();
}

static uint32_t count_of(const struct emu_server *server, uid_t uid)
{
    const struct emu_error_sub *sub;
    uint32_t n = 0;

    LIST_FOREACH(sub, subs_of(server), link)
        n += sub->uid == uid;
    return n;
}

int emu_error_open(struct emu_connection *c, const struct emu_msg_errors *asked)
{
    bool wants_all = (asked->flags & EMU_ERRORS_ALL) != 0;
    const struct emu_domain *domain = wants_all ? NULL : emu_domain_find(c->server, asked->ptag, asked->cookie);
    struct emu_error_sub *sub;
    int r;

    if (c->subscription)
        return -EALREADY;
    if ((asked->flags & ~EMU_ERRORS_ALL) != 0 || asked->mask > 0xff)
        return -EINVAL;
    if (wants_all ? !is_privileged(c) : !domain || (c->peer.uid != domain->owner_uid && c->peer.uid != 0))
        return -EACCES;
    if (asked->room > EMU_ERRORS_MAX || count_of(c->server, c->peer.uid) >= SUBSCRIPTIONS_MAX)
        return -ENOSPC;
    sub = calloc(1, sizeof(*sub));
    if (!sub)
        return -ENOMEM;
    *sub = (struct emu_error_sub){ .uid = c->peer.uid,
                                   .mask = asked->mask,
                                   .sees_all = wants_all,
                                   .domain_id = domain ? domain->id : 0,
                                   .room = asked->room ? asked->room : EMU_ERRORS_DEFAULT };
    sub->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (sub->event_fd < 0) {
        r = -errno;
        free(sub);
        return r;
    }
    LIST_INSERT_HEAD(subs_of(c->server), sub, link);
    c->subscription = sub;
    emu_error_watch_all(c->server);
    return sub->event_fd;
}

void emu_error_close(struct emu_connection *c)
{
    struct emu_error_sub *sub = c->subscription;

    if (!sub)
        return;
    c->subscription = NULL;
    LIST_REMOVE(sub, link);
    close(sub->event_fd);
    free(sub->ring);
    free(sub);
    emu_error_watch_all(c->server);
    for (uint32_t i = 0; LIST_EMPTY(subs_of(c->server)) && i < emu_hosts_count(c->server); i++) {
        if (i != emu_hosts_own(c->server) && emu_hosts_is_up(c->server, i))
            emu_error_tell_listening(c->server, i, 0, false);
    }
}

static void fetch(struct emu_error_sub *sub, struct emu_msg_errors *asked)
{
    uint32_t wanted = asked->room < EMU_ERRORS_PER_REPLY ? asked->room : EMU_ERRORS_PER_REPLY;
    bool had_some = sub->n > 0;
    uint64_t counter;

    for (asked->n_records = 0; asked->n_records < wanted && sub->n > 0; asked->n_records++) {
        asked->records[asked->n_records] = sub->ring[sub->head];
        sub->head = (sub->head + 1) % sub->ring_size;
        sub->n--;
    }
    if (had_some && sub->n == 0 && read(sub->event_fd, &counter, sizeof(counter)) < 0)
        return; /* its owner has read it already */
}

static int answer(struct emu_request *request)
{
    const struct emu_connection *c = request->connection;
    struct emu_msg_errors *asked = &request->msg->errors;
    struct emu_error_sub *sub = c->subscription;
    uint32_t old;

    if (!sub)
        return -ENOTCONN;
    switch (request->msg->type) {
    case EMU_MSG_ERRORS_MASK:
        if (asked->mask > 0xff)
            return -EINVAL;
        old = sub->mask;
        sub->mask = asked->mask;
        asked->mask = old;
        return 0;
    case EMU_MSG_ERRORS_PTAG:
        if (!is_privileged(c))
            return -EPERM;
        if (asked->ptag > 255)
            return -EINVAL;
        sub->sees_all = true;
        sub->ptag = asked->ptag;
        return 0;
    default:
        fetch(sub, asked);
        return 0;
    }
}

/* ---- the part ---- */

static int create(struct emu_server *server, const struct emu_server_options *options, struct emu_complaint *why)
{
    struct subs *subs = malloc(sizeof(*subs));

    (void)options;
    (void)why;
    if (!subs)
        return -ENOMEM;
    LIST_INIT(subs);
    server->slots[EMU_SERVER_ERRORS] = subs;
    return emu_error_hosts_create(server);
}

/* The subscriptions have gone with their connections. */
static void destroy(struct emu_server *server)
{
    emu_error_hosts_destroy(server);
    free(subs_of(server));
    server->slots[EMU_SERVER_ERRORS] = NULL;
}

static void port_end(struct emu_port_end *port)
{
    if (port->connection->hung_up)
        emu_error_tell_port(port, EMU_ERROR_PORT_DIED, EMU_ERROR_CRITICAL, (uint64_t)port->member->pid, 0);
}

static const struct emu_request_row requests[] = {
    { EMU_MSG_ERRORS_MASK, EMU_MSG_ERRORS_FETCH, EMU_NEEDS_CONTROL, answer },
};
static const struct emu_list_row lists[] = {
    { EMU_HOST_ADMIN_LISTEN, emu_error_host_listens },
    { EMU_HOST_ADMIN_ERROR, emu_error_take_event },
};

const struct emu_part emu_errors_part = {
    .name = "errors",
    .create = create,
    .destroy = destroy,
    .requests = requests,
    .n_requests = EMU_ROWS(requests),
    .hosts = { .lists = lists, .n_lists = EMU_ROWS(lists), .up = emu_error_host_up, .down = emu_error_host_down },
    .domains = { .begin = watch_domain },
    .ports = { .end = port_end },
    .connection_end = emu_error_close,
};
