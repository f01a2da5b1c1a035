/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A connection of a client or, on the admin socket, of a launcher: requests, and the replies that come later.
 */
#ifndef EMUNIC_DAEMON_CORE_CONNECTION_H
#define EMUNIC_DAEMON_CORE_CONNECTION_H

#include <stdbool.h>
#include <sys/queue.h>
#include <sys/socket.h>

#include "emunic/abi/control.h"
#include "emunic/daemon/core/part.h"
#include "emunic/daemon/world/server.h"

struct emu_domain;
struct emu_port_end;
struct emu_user;

extern const struct emu_part emu_connections_part;

struct emu_connection {
    struct emu_watch watch; /* first: the object is freed by this address */
    LIST_ENTRY(emu_connection) link;
    TAILQ_ENTRY(emu_connection) new_link; /* while it has not said hello */
    struct emu_server *server;
    int fd;
    bool is_admin;
    bool said_hello;
    bool awaits_answer;    /* a request of it is deferred */
    uint64_t hello_due_ns; /* then it is closed if it has not said hello */
    struct ucred peer;
    struct emu_user *user;     /* counted */
    struct emu_port_end *port; /* owned, or NULL */
    struct emu_domain *job;    /* admin: ends with this connection; or NULL */
    void *subscription;        /* of the part that it subscribes to; or NULL */
    bool hung_up;              /* ends without the farewell of an orderly end */
};

void emu_connection_accept(struct emu_server *server, int listener, bool is_admin);
/* Closes those that are due and have not said hello. */
void emu_connection_expire(struct emu_server *server);
void emu_connection_destroy(struct emu_connection *connection);
/* Sends the reply of a request that was answered with EMU_DEFERRED. fd: borrowed, passed with it; -1 none. */
void emu_connection_answer_with(struct emu_connection *connection, struct emu_msg *reply, int result, int fd);

#endif
