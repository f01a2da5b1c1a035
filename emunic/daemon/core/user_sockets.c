/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An epoll descriptor for each user, in that of the server.
 *
 * A user who rests may have many connections with requests in them. Were they in the server's descriptor, each look of
 * the loop would be told of all of them in vain, and the loop would never sleep: a processor less for everybody else.
 * So the server looks away from the user's descriptor until the rest is over: two system calls for a rest.
 */
#include "emunic/daemon/core/user_sockets.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/queue.h>
#include <unistd.h>

#include "emunic/base/clock.h"
#include "emunic/daemon/core/watches.h"
#include "emunic/daemon/world/turns.h"

#define EVENTS_PER_LOOK 64

struct emu_user_sockets {
    struct emu_watch watch; /* first: the object is freed by this address */
    LIST_ENTRY(emu_user_sockets) link;
    struct emu_user *user; /* has connections, so it is there */
    int epoll_fd;
    uint32_t n_connections;
    bool is_paused; /* then in the list */
};

LIST_HEAD(paused, emu_user_sockets);

static struct paused *paused_of(const struct emu_server *server)
{
    return server->slots[EMU_SERVER_USER_SOCKETS];
}

int emu_user_sockets_create(struct emu_server *server)
{
    struct paused *paused = calloc(1, sizeof(*paused));

    if (!paused)
        return -ENOMEM;
    LIST_INIT(paused);
    server->slots[EMU_SERVER_USER_SOCKETS] = paused;
    return 0;
}

void emu_user_sockets_destroy(struct emu_server *server)
{
    free(paused_of(server));
    server->slots[EMU_SERVER_USER_SOCKETS] = NULL;
}

/* ---- looking ---- */

static bool must_rest(const struct emu_server *server, const struct emu_user *user)
{
    return emu_users_compete(emu_users_of(server)) && !emu_user_may_work(user, emu_clock_ns());
}

/* True: the user rests, and the server looks away. */
static bool has_paused(struct emu_server *server, struct emu_user_sockets *sockets)
{
    if (!must_rest(server, sockets->user) || emu_server_rewatch(server, sockets->epoll_fd, 0, &sockets->watch) < 0)
        return false;
    sockets->is_paused = true;
    LIST_INSERT_HEAD(paused_of(server), sockets, link);
    return true;
}

/* Level-triggered events go to the end of the kernel's list once told, so each connection has its turn. */
static void sockets_ready(struct emu_server *server, struct emu_watch *watch, uint32_t events)
{
    struct emu_user_sockets *sockets = (struct emu_user_sockets *)watch;
    struct epoll_event ready[EVENTS_PER_LOOK];
    int n;

    (void)events;
    if (has_paused(server, sockets))
        return;
    n = epoll_wait(sockets->epoll_fd, ready, EVENTS_PER_LOOK, 0);
    if (n == EVENTS_PER_LOOK)
        emu_server_has_seen_some(server);
    for (int i = 0; i < n; i++) {
        struct emu_watch *of_connection = ready[i].data.ptr;

        if (!of_connection->is_dead)
            of_connection->ready(server, of_connection, ready[i].events);
        if (sockets->watch.is_dead || has_paused(server, sockets))
            return; /* dead: that was the last connection, and maybe the user */
    }
}

void emu_user_sockets_resume(struct emu_server *server)
{
    struct emu_user_sockets *sockets = LIST_FIRST(paused_of(server));

    while (sockets) {
        struct emu_user_sockets *next = LIST_NEXT(sockets, link);

        if (!must_rest(server, sockets->user) &&
            emu_server_rewatch(server, sockets->epoll_fd, EPOLLIN, &sockets->watch) == 0) {
            sockets->is_paused = false;
            LIST_REMOVE(sockets, link);
        }
        sockets = next;
    }
}

uint64_t emu_user_sockets_next_ns(const struct emu_server *server)
{
    const struct emu_user_sockets *sockets;
    uint64_t first_ns = UINT64_MAX;

    LIST_FOREACH(sockets, paused_of(server), link) {
        if (sockets->user->rests_until_ns < first_ns)
            first_ns = sockets->user->rests_until_ns;
    }
    return first_ns;
}

/* ---- connections ---- */

static struct emu_user_sockets *open_sockets(struct emu_server *server, struct emu_user *user)
{
    struct emu_user_sockets *sockets = calloc(1, sizeof(*sockets));

    if (!sockets)
        return NULL;
    *sockets = (struct emu_user_sockets){ .watch.ready = sockets_ready,
                                          .user = user,
                                          .epoll_fd = epoll_create1(EPOLL_CLOEXEC) };
    if (sockets->epoll_fd >= 0 && emu_server_watch(server, sockets->epoll_fd, EPOLLIN, &sockets->watch) == 0)
        return sockets;
    if (sockets->epoll_fd >= 0)
        close(sockets->epoll_fd);
    free(sockets);
    return NULL;
}

static void close_sockets(struct emu_server *server, struct emu_user_sockets *sockets)
{
    if (sockets->is_paused)
        LIST_REMOVE(sockets, link);
    sockets->user->sockets = NULL;
    emu_server_bury(server, sockets->epoll_fd, &sockets->watch);
    close(sockets->epoll_fd);
}

int emu_user_sockets_add(struct emu_server *server, struct emu_user *user, int fd, struct emu_watch *watch)
{
    struct epoll_event event = { .events = EPOLLIN | EPOLLRDHUP, .data.ptr = watch };
    int r;

    if (!user->sockets)
        user->sockets = open_sockets(server, user);
    if (!user->sockets)
        return -ENOMEM;
    if (epoll_ctl(user->sockets->epoll_fd, EPOLL_CTL_ADD, fd, &event) == 0) {
        user->sockets->n_connections++;
        return 0;
    }
    r = -errno;
    if (user->sockets->n_connections == 0)
        close_sockets(server, user->sockets);
    return r;
}

void emu_user_sockets_bury(struct emu_server *server, struct emu_user *user, int fd, struct emu_watch *watch)
{
    epoll_ctl(user->sockets->epoll_fd, EPOLL_CTL_DEL, fd, NULL);
    emu_server_bury(server, -1, watch);
    if (--user->sockets->n_connections == 0)
        close_sockets(server, user->sockets);
}
