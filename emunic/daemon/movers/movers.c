/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Movers: which ports have one, and their life.
 *
 * A port has a mover if emunic is root's and the port's process is not. Ports of one user and group share a mover: it
 * starts with the first of them and is killed after the last. A port holds a slot of it, which stands for the memory
 * map that the process had when it attached.
 *
 *   started --> serves --no port left / lost--> killed --reaped--> nothing
 *
 * A killed mover may be in the kernel for long, if that waits for a file system; it is forgotten when it has gone, and
 * nobody waits for it.
 */
#include "emunic/daemon/movers/movers.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "emunic/base/clock.h"
#include "emunic/daemon/core/connection.h"
#include "emunic/daemon/core/watches.h"
#include "emunic/daemon/movers/mover.h"
#include "emunic/daemon/rights/broker.h"
#include "emunic/daemon/rights/rights.h"
#include "emunic/daemon/world/domain.h"
#include "emunic/daemon/world/port_end.h"

#define ENDING_MS 100 /* for a mover to go when emunic ends */

static struct emu_moved *moved_of(const struct emu_port_end *port)
{
    return port->slots[EMU_PORT_MOVED];
}

/* ---- life of a mover ---- */

static void bell_rings(struct emu_server *server, struct emu_watch *watch, uint32_t events)
{
    struct emu_mover *mover = (struct emu_mover *)watch;
    uint64_t count;

    (void)server;
    (void)events;
    /* The round that follows looks at who has waited. */
    if (read(mover->bell_fd, &count, sizeof(count)) < 0)
        return;
    emu_mover_settle(mover);
}

static void mover_ends(struct emu_server *server, struct emu_watch *watch, uint32_t events)
{
    struct emu_mover *mover = (struct emu_mover *)((char *)watch - offsetof(struct emu_mover, end_watch));

    (void)events;
    emu_mover_settle(mover);
    emu_mover_lose(mover, "has died");
    emu_server_unwatch(server, mover->pidfd);
    watch->is_dead = true;
    emu_movers_of(server)->some_are_gone = true;
}

static int watch_it(struct emu_server *server, struct emu_mover *mover)
{
    int r;

    mover->bell_watch.ready = bell_rings;
    mover->end_watch.ready = mover_ends;
    r = emu_server_watch(server, mover->bell_fd, EPOLLIN, &mover->bell_watch);
    return r == 0 ? emu_server_watch(server, mover->pidfd, EPOLLIN, &mover->end_watch) : r;
}

/* Of root's processes each has its own. */
static pid_t only_pid_of(const struct ucred *peer)
{
    return peer->uid == 0 ? peer->pid : 0;
}

static int start(struct emu_server *server, const struct emu_connection *connection, struct emu_mover **mover_out)
{
    struct emu_movers *movers = emu_movers_of(server);
    struct emu_mover *mover = calloc(1, sizeof(*mover));
    int r;

    if (!mover)
        return -ENOMEM;
    mover->server = server;
    mover->uid = connection->peer.uid;
    mover->gid = connection->peer.gid;
    mover->only_pid = only_pid_of(&connection->peer);
    LIST_INIT(&mover->ports);
    r = emu_mover_start(mover, connection->fd);
    if (r < 0) {
        free(mover);
        return r;
    }
    LIST_INSERT_HEAD(&movers->list, mover, link);
    r = watch_it(server, mover);
    if (r < 0)
        emu_mover_lose(mover, "cannot be watched");
    else
        emu_log(EMU_LOG_DEBUG, "uid %u: mover pid %d", (unsigned)mover->uid, (int)mover->pid);
    *mover_out = mover;
    return r;
}

static int get(struct emu_server *server, const struct emu_connection *connection, struct emu_mover **mover_out)
{
    const struct ucred *peer = &connection->peer;
    struct emu_mover *mover;

    LIST_FOREACH(mover, &emu_movers_of(server)->list, link) {
        if (!mover->has_ended && mover->uid == peer->uid && mover->gid == peer->gid &&
            mover->only_pid == only_pid_of(peer)) {
            *mover_out = mover;
            return 0;
        }
    }
    return start(server, connection, mover_out);
}

/* ---- ports ---- */

static bool is_banned(struct emu_movers *movers, uid_t uid)
{
    struct emu_mover_ban *ban = LIST_FIRST(&movers->bans);
    uint64_t now_ns = ban ? emu_clock_ns() : 0;
    bool is_it = false;

    while (ban) {
        struct emu_mover_ban *next = LIST_NEXT(ban, link);

        if (ban->until_ns <= now_ns) {
            LIST_REMOVE(ban, link);
            free(ban);
        } else {
            is_it |= ban->uid == uid;
        }
        ban = next;
    }
    return is_it;
}

static bool slot_is_free(const struct emu_mover *mover, uint32_t slot)
{
    const struct emu_moved *moved;

    LIST_FOREACH(moved, &mover->ports, link) {
        if (moved->slot == slot)
            return false;
    }
    return true;
}

static int take_slot(struct emu_mover *mover, uint32_t *slot_out)
{
    for (uint32_t i = 0; i < EMU_MOVER_SLOTS; i++) {
        uint32_t slot = (mover->next_slot + i) % EMU_MOVER_SLOTS;

        if (!slot_is_free(mover, slot))
            continue;
        mover->next_slot = slot + 1;
        *slot_out = slot;
        return 0;
    }
    return -EMFILE;
}

/* Its process may have executed another program since its last port. */
static int open_maps(struct emu_port_end *port)
{
    struct emu_member *member = port->member;
    int fd = emu_broker_open_maps(emu_rights_of(port->server)->broker, port->connection->fd);

    if (fd < 0)
        return fd;
    if (member->maps_fd >= 0)
        close(member->maps_fd);
    member->maps_fd = fd;
    return 0;
}

/* The mover takes the memory of the port's process. */
static int open_memory(struct emu_port_end *port, struct emu_moved *moved)
{
    const struct ucred *peer = &port->connection->peer;
    struct emu_mover_request request = { .op = EMU_MOVER_OPEN, .pid = (uint32_t)peer->pid };
    int r = get(port->server, port->connection, &moved->mover);

    if (r == 0)
        r = open_maps(port);
    if (r == 0)
        r = take_slot(moved->mover, &moved->slot);
    if (r < 0)
        return r;
    moved->port = port;
    LIST_INSERT_HEAD(&moved->mover->ports, moved, link);
    r = emu_moved_request(moved, &request);
    if (r < 0)
        LIST_REMOVE(moved, link);
    return r;
}

static int begin_port(struct emu_port_end *port)
{
    struct emu_movers *movers = emu_movers_of(port->server);
    struct emu_moved *moved;
    int r;

    if (!port->member->is_moved)
        return 0;
    moved = calloc(1, sizeof(*moved));
    if (!moved)
        return -ENOMEM;
    r = is_banned(movers, port->member->uid) ? -EBUSY : open_memory(port, moved);
    if (r < 0) {
        emu_log_limited(&port->server->rate, EMU_LOG_WARN, "pid %d uid %u: %s: %s", (int)port->member->pid,
                        (unsigned)port->member->uid,
                        r == -EBUSY  ? "refused, its user has held up this emunic" :
                        r == -ENOENT ? "refused, there is no emunic-mover" :
                                       "its memory cannot be reached",
                        strerror(-r));
        free(moved);
        return r == -EBUSY ? -EAGAIN : r == -ENOMEM ? r : -EPERM;
    }
    port->slots[EMU_PORT_MOVED] = moved;
    port->view.local = emu_moved_memory(moved);
    port->domain->memory.is_moved = true;
    return 0;
}

static void end_port(struct emu_port_end *port)
{
    struct emu_moved *moved = moved_of(port);

    if (!moved)
        return;
    if (moved->mover->errand.moved == moved)
        moved->mover->errand.moved = NULL;
    if (moved->mover->errand.from == moved)
        moved->mover->errand.from = NULL;
    LIST_REMOVE(moved, link);
    if (LIST_EMPTY(&moved->mover->ports))
        emu_movers_of(port->server)->some_are_gone = true; /* the mover itself */
    port->slots[EMU_PORT_MOVED] = NULL;
    free(moved);
}

int emu_movers_check(struct emu_port_end *port)
{
    struct emu_mover_request request = { .op = EMU_MOVER_CHECK };

    return moved_of(port) ? emu_moved_request(moved_of(port), &request) : 0;
}

bool emu_movers_touch(const struct emu_server *server, const struct emu_domain *domain)
{
    struct emu_mover *mover;

    LIST_FOREACH(mover, &emu_movers_of(server)->list, link) {
        emu_mover_settle(mover);
        if (mover->errand.is_open && mover->errand.domain == domain)
            return true;
    }
    return false;
}

/* ---- rounds ---- */

static bool end_one_port(struct emu_mover *mover)
{
    struct emu_moved *moved;

    LIST_FOREACH(moved, &mover->ports, link) {
        struct emu_port_end *port = moved->port;

        if (!moved->is_gone)
            continue;
        if (!mover->has_ended)
            emu_log_limited(&mover->server->rate, EMU_LOG_WARN,
                            "nid %u inst 0x%x pid %d: its memory is not what it was when it attached: port closed",
                            port->nid, port->instance_id, (int)port->member->pid);
        port->connection->hung_up = true;
        emu_connection_destroy(port->connection);
        return true;
    }
    return false;
}

static void bury(struct emu_server *server, struct emu_mover *mover)
{
    LIST_REMOVE(mover, link);
    emu_server_bury(server, -1, &mover->bell_watch);
}

/* Ends what has to. It may be freed. */
static void tidy(struct emu_server *server, struct emu_mover *mover)
{
    while (end_one_port(mover))
        ;
    if (!LIST_EMPTY(&mover->ports))
        return;
    if (!mover->has_ended && !mover->errand.is_open) {
        mover->has_ended = true;
        emu_mover_kill(mover);
    }
    if (mover->has_ended && mover->end_watch.is_dead) {
        emu_server_unwatch(server, mover->bell_fd);
        emu_mover_forget(mover);
        bury(server, mover);
    }
}

static unsigned serve_movers(struct emu_server *server)
{
    struct emu_movers *movers = emu_movers_of(server);
    struct emu_mover *mover;

    LIST_FOREACH(mover, &movers->list, link) {
        emu_mover_settle(mover);
        if (mover->errand.is_open && emu_mover_is_late(mover))
            emu_mover_lose(mover, "got no answer of the kernel");
    }
    if (!movers->some_are_gone)
        return 0;
    movers->some_are_gone = false;
    mover = LIST_FIRST(&movers->list);
    while (mover) {
        struct emu_mover *next = LIST_NEXT(mover, link);

        tidy(server, mover);
        mover = next;
    }
    return 1;
}

static uint64_t next_ns(const struct emu_server *server)
{
    uint64_t first_ns = UINT64_MAX;
    const struct emu_mover *mover;
    uint64_t late_ns;

    LIST_FOREACH(mover, &emu_movers_of(server)->list, link) {
        late_ns = mover->errand.posted_ns + server->settings.mover_limit_ns + 1;
        if (mover->errand.is_open && late_ns < first_ns)
            first_ns = late_ns;
    }
    return first_ns;
}

static bool has_work(struct emu_server *server)
{
    return emu_movers_of(server)->some_are_gone;
}

/* ---- the part ---- */

static int create(struct emu_server *server, const struct emu_server_options *options, struct emu_complaint *why)
{
    struct emu_movers *movers = calloc(1, sizeof(*movers));

    (void)options;
    (void)why;
    if (!movers)
        return -ENOMEM;
    LIST_INIT(&movers->list);
    LIST_INIT(&movers->bans);
    server->slots[EMU_SERVER_MOVERS] = movers;
    return 0;
}

static void destroy(struct emu_server *server)
{
    struct emu_movers *movers = emu_movers_of(server);
    struct emu_mover_ban *ban;
    struct emu_mover *mover;

    if (!movers)
        return;
    while ((mover = LIST_FIRST(&movers->list))) {
        struct pollfd p = { .fd = mover->pidfd, .events = POLLIN };

        emu_mover_kill(mover);
        if (poll(&p, 1, ENDING_MS) <= 0)
            emu_log(EMU_LOG_WARN, "mover pid %d does not end: the kernel waits for memory of uid %u", (int)mover->pid,
                    (unsigned)mover->uid);
        emu_mover_forget(mover);
        LIST_REMOVE(mover, link);
        free(mover);
    }
    while ((ban = LIST_FIRST(&movers->bans))) {
        LIST_REMOVE(ban, link);
        free(ban);
    }
    free(movers);
    server->slots[EMU_SERVER_MOVERS] = NULL;
}

const struct emu_part emu_movers_part = {
    .name = "movers",
    .create = create,
    .destroy = destroy,
    .loop = { .round = serve_movers, .next_ns = next_ns, .has_work = has_work },
    .ports = { .begin = begin_port, .end = end_port },
};
