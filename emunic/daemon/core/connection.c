/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Connections: requests in, replies out.
 *
 * A peer that breaks the protocol (no hello, other magic or version, unknown type, a reply it does not read) loses
 * its connection and with it its port; nobody else notices. A connection gets REQUESTS_PER_TURN requests and then
 * waits for its next turn. The admin socket answers only root and emunic's own user.
 */
#include "emunic/daemon/core/connection.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "emunic/base/socket.h"
#include "emunic/daemon/core/watches.h"

#define REQUESTS_PER_TURN 16

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
    LIST_REMOVE(c, link);
    emu_parts_connection_end(c);
    emu_server_bury(c->server, c->fd, &c->watch);
    close(c->fd);
}
