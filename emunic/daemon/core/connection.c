/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Connections: requests in, replies out.
 *
 * Who is neither root, nor emunic's own user, nor the owner of a domain here is refused when the connection is taken,
 * and so is a user who has as many as a user may have: the answer to the hello that has not come yet says why, and no
 * descriptor stays. A connection that does not say hello in time is closed. The admin socket answers only root and
 * emunic's own user.
 *
 * A peer that breaks the protocol (no hello, other magic or version, unknown type, a reply it does not read) loses
 * its connection and with it its port; nobody else notices. A connection gets REQUESTS_PER_TURN requests and then
 * waits for its next turn; fewer, and only when it is its user's turn, while several users want something
 * (world/turns.c). What is left stays in the socket, and epoll tells of it again.
 */
#include "emunic/daemon/core/connection.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "emunic/base/clock.h"
#include "emunic/base/closing.h"
#include "emunic/base/socket.h"
#include "emunic/daemon/core/user_sockets.h"
#include "emunic/daemon/core/watches.h"
#include "emunic/daemon/world/turns.h"
#include "emunic/daemon/world/users.h"

#define REQUESTS_PER_TURN 16
#define ACCEPTS_PER_TURN  16
#define SHARED_PER_TURN   4 /* of either, while several users want something */

TAILQ_HEAD(newcomers, emu_connection);

/* Those that have not said hello, oldest first. */
static struct newcomers *newcomers_of(const struct emu_server *server)
{
    return server->slots[EMU_SERVER_NEWCOMERS];
}

static int answer_hello(struct emu_connection *c, struct emu_msg *msg)
{
    uint32_t theirs = msg->hello.abi_version;

    msg->hello = (struct emu_msg_hello){ .abi_version = EMU_ABI_VERSION,
                                         .server_pid = (uint32_t)getpid(),
                                         .server_uid = (uint32_t)geteuid(),
                                         .answer_ms = c->server->answer_ms };
    if (theirs != EMU_ABI_VERSION) {
        emu_log_limited(&c->server->rate, EMU_LOG_WARN, "pid %d speaks ABI %u, this server ABI %u", (int)c->peer.pid,
                        theirs, EMU_ABI_VERSION);
        return -EPROTONOSUPPORT;
    }
    if (!c->said_hello)
        TAILQ_REMOVE(newcomers_of(c->server), c, new_link);
    c->said_hello = true;
    return 0;
}

/* Asks the part that has registered for it. */
static int answer(struct emu_request *request)
{
    const struct emu_connection *c = request->connection;
    uint16_t type = request->msg->type;
    const struct emu_request_row *row = type < EMU_MSG_TYPES ? c->server->parts->requests[type] : NULL;

    if (!row || (row->needs == EMU_NEEDS_ADMIN) != c->is_admin)
        return -EPROTO;
    if (row->needs == EMU_NEEDS_PORT && !c->port)
        return -ENOTCONN;
    return row->answer(request);
}

/* One request. -EPROTO and transport errors end the connection. */
static int serve_request(struct emu_connection *c, struct emu_msg *msg, struct emu_fds *fds)
{
    struct emu_request request = { .connection = c, .port = c->port, .msg = msg, .fds = fds };
    int r;

    if (c->awaits_answer)
        return -EPROTO; /* one request at a time */
    c->awaits_answer = true;
    if (msg->type == EMU_MSG_HELLO)
        r = answer_hello(c, msg);
    else if (!c->said_hello || msg->abi_version != EMU_ABI_VERSION)
        r = -EPROTO;
    else
        r = answer(&request);
    if (r == EMU_DEFERRED)
        return 0; /* the answer comes, or has been given */
    c->awaits_answer = false;
    if (r == -EPROTO)
        return r;
    msg->result = r;
    r = emu_msg_send(c->fd, msg, request.reply_fds, request.n_reply_fds);
    for (unsigned i = 0; request.closes_fds && i < request.n_reply_fds; i++)
        close(request.reply_fds[i]);
    /* Its socket is full of replies that it does not read. */
    return r == -EAGAIN ? -ENOBUFS : r;
}

/* An orderly end closes one direction and waits for us; a dead process has closed both. */
static bool has_hung_up(int fd)
{
    struct pollfd p = { .fd = fd };

    return poll(&p, 1, 0) > 0 && (p.revents & POLLHUP) != 0;
}

/* 0: nothing more is there, or the turn is over; negative: the connection has ended, or ends. */
static int serve_requests(struct emu_connection *c, int most)
{
    struct emu_fds fds = { .n_fds = 0 };
    struct emu_msg msg;
    int r = 0;

    for (int i = 0; i < most && r == 0 && !c->watch.is_dead; i++) {
        /* A user has some sets of descriptors at a time that may not want to end; more do not come in. */
        r = emu_msg_take(c->fd, &msg, emu_closing_has_room(c->user->closing) ? &fds : NULL);
        if (r == 0) {
            c->user->requests++;
            r = serve_request(c, &msg, &fds);
        }
        if (fds.n_fds > 0)
            emu_closing_begin(&c->user->closing, &fds);
    }
    return r == -EAGAIN ? 0 : r;
}

/* A process that dies may leave us a request to answer: no fault of its protocol. */
static void end(struct emu_connection *c, int why)
{
    if (why != -ECONNRESET && why != -EPIPE)
        emu_log_limited(&c->server->rate, EMU_LOG_WARN, "pid %d uid %u: %s, connection closed", (int)c->peer.pid,
                        (unsigned)c->peer.uid, why == -EPROTO ? "not our protocol" : strerror(-why));
    c->hung_up = why != -ECONNRESET || has_hung_up(c->fd);
    emu_connection_destroy(c);
}

static void connection_ready(struct emu_server *server, struct emu_watch *watch, uint32_t events)
{
    struct emu_connection *c = (struct emu_connection *)watch;
    struct emu_users *users = emu_users_of(server);
    struct emu_user *user = c->user;
    uint64_t began_ns = 0;
    int r;

    (void)events;
    if (emu_users_compete(users)) {
        began_ns = emu_clock_ns();
        if (!emu_user_may_work(user, began_ns))
            return;
    }
    emu_user_hold(user); /* the connection may end */
    r = serve_requests(c, began_ns ? SHARED_PER_TURN : REQUESTS_PER_TURN);
    if (r < 0)
        end(c, r);
    if (began_ns)
        emu_user_worked(users, user, began_ns, emu_clock_ns());
    emu_user_put(server, user);
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
    /* A copy, because nothing can be opened any more. */
    server->spare_fd = fcntl(listener, F_DUPFD_CLOEXEC, 0);
}

/* Is answered to the hello that has not come yet: nothing of it is waited for or kept. */
static void refuse(int fd, int why)
{
    const struct emu_msg msg = { .magic = EMU_MSG_MAGIC,
                                 .abi_version = EMU_ABI_VERSION,
                                 .type = EMU_MSG_HELLO,
                                 .sequence = 1,
                                 .result = why,
                                 .hello = { .abi_version = EMU_ABI_VERSION } };

    emu_msg_send(fd, &msg, NULL, 0);
    close(fd);
}

/* 0, or why this peer is not let in, after a line in the log. */
static int check_admission(struct emu_server *server, const struct ucred *peer, bool is_admin)
{
    if (is_admin && peer->uid != 0 && peer->uid != geteuid()) {
        emu_log_limited(&server->rate, EMU_LOG_WARN, "pid %d uid %u: not allowed on the admin socket", (int)peer->pid,
                        (unsigned)peer->uid);
        return -EPERM;
    }
    if (!emu_user_is_admitted(server, peer->uid)) {
        emu_log_limited(&server->rate, EMU_LOG_WARN, "pid %d uid %u refused: it has no domain here", (int)peer->pid,
                        (unsigned)peer->uid);
        return -EACCES;
    }
    return 0;
}

/* 0, or negative errno: then the descriptor is still the caller's. */
static int admit(struct emu_server *server, int fd, const struct ucred *peer, bool is_admin)
{
    struct emu_connection *c = calloc(1, sizeof(*c));
    int r = -ENOMEM;

    if (!c)
        return r;
    *c = (struct emu_connection){ .watch.ready = connection_ready,
                                  .server = server,
                                  .fd = fd,
                                  .is_admin = is_admin,
                                  .hello_due_ns = emu_clock_ns() + server->settings.hello_ns,
                                  .peer = *peer,
                                  .user = emu_user_get(server, peer->uid) };
    if (!c->user)
        goto err_free;
    r = emu_user_take(server, c->user, EMU_USER_CONNECTIONS, 1);
    if (r < 0)
        goto err_user;
    r = emu_user_sockets_add(server, c->user, fd, &c->watch);
    if (r < 0)
        goto err_count;
    LIST_INSERT_HEAD(&server->connections, c, link);
    TAILQ_INSERT_TAIL(newcomers_of(server), c, new_link);
    return 0;

err_count:
    emu_user_give(c->user, EMU_USER_CONNECTIONS, 1);
err_user:
    emu_user_put(server, c->user);
err_free:
    free(c);
    return r;
}

/* False: nobody waits. */
static bool accept_one(struct emu_server *server, int listener, bool is_admin, bool *met_stranger_out)
{
    int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    struct ucred peer;
    int r;

    if (fd < 0) {
        if (errno != EAGAIN && errno != EINTR && errno != ECONNABORTED)
            turn_away(server, listener);
        return false;
    }
    r = emu_socket_peer(fd, &peer);
    if (r == 0)
        r = check_admission(server, &peer, is_admin);
    *met_stranger_out = *met_stranger_out || r < 0;
    if (r == 0)
        r = admit(server, fd, &peer, is_admin);
    if (r < 0)
        refuse(fd, r);
    return true;
}

void emu_connection_accept(struct emu_server *server, int listener, bool is_admin)
{
    struct emu_users *users = emu_users_of(server);
    uint64_t began_ns = emu_clock_ns();
    bool is_shared = emu_users_compete(users);
    unsigned most = is_shared ? SHARED_PER_TURN : ACCEPTS_PER_TURN;
    bool met_strangers = false;

    if (is_shared && !emu_user_may_work(&users->strangers, began_ns))
        return;
    for (unsigned i = 0; i < most && accept_one(server, listener, is_admin, &met_strangers); i++)
        ;
    if (met_strangers)
        emu_users_meet_strangers(users, began_ns, emu_clock_ns());
}

void emu_connection_destroy(struct emu_connection *c)
{
    LIST_REMOVE(c, link);
    if (!c->said_hello)
        TAILQ_REMOVE(newcomers_of(c->server), c, new_link);
    emu_parts_connection_end(c);
    emu_user_give(c->user, EMU_USER_CONNECTIONS, 1);
    emu_user_sockets_bury(c->server, c->user, c->fd, &c->watch);
    emu_user_put(c->server, c->user);
    close(c->fd);
}

/* ---- those that do not say hello ---- */

void emu_connection_expire(struct emu_server *server)
{
    struct emu_connection *c = TAILQ_FIRST(newcomers_of(server));
    struct emu_users *users = emu_users_of(server);
    uint64_t now_ns = c || users->has_strangers ? emu_clock_ns() : 0;

    emu_users_forget_strangers(users, now_ns);
    emu_user_sockets_resume(server);
    for (; c && c->hello_due_ns <= now_ns; c = TAILQ_FIRST(newcomers_of(server))) {
        emu_log_limited(&server->rate, EMU_LOG_WARN, "pid %d uid %u: no hello in %llu ms, connection closed",
                        (int)c->peer.pid, (unsigned)c->peer.uid,
                        (unsigned long long)server->settings.hello_ns / 1000000);
        emu_connection_destroy(c);
    }
}

static uint64_t next_ns(const struct emu_server *server)
{
    const struct emu_connection *first = TAILQ_FIRST(newcomers_of(server));
    uint64_t due_ns = first ? first->hello_due_ns : UINT64_MAX;
    uint64_t resume_ns = emu_user_sockets_next_ns(server);

    return resume_ns < due_ns ? resume_ns : due_ns;
}

/* ---- the part ---- */

static int create(struct emu_server *server, const struct emu_server_options *options, struct emu_complaint *why)
{
    struct newcomers *newcomers = calloc(1, sizeof(*newcomers));
    int r;

    (void)why;
    if (!newcomers)
        return -ENOMEM;
    TAILQ_INIT(newcomers);
    server->slots[EMU_SERVER_NEWCOMERS] = newcomers;
    r = emu_user_sockets_create(server);
    return r == 0 ? emu_users_create(server, options->user_limits) : r;
}

static void destroy(struct emu_server *server)
{
    emu_users_destroy(server);
    emu_user_sockets_destroy(server);
    free(newcomers_of(server));
    server->slots[EMU_SERVER_NEWCOMERS] = NULL;
}

const struct emu_part emu_connections_part = {
    .name = "connections",
    .create = create,
    .destroy = destroy,
    .loop = { .next_ns = next_ns },
};
