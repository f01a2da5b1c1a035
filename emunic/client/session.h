/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A connection to emunic: requests and their replies. Any thread; requests of one session are serialised. None of
 * this is a cancellation point: callers hold locks.
 */
#ifndef EMUNIC_CLIENT_SESSION_H
#define EMUNIC_CLIENT_SESSION_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "emunic/abi/control.h"
#include "emunic/base/socket.h"

/*
 * Keeps the calling thread from being cancelled while it holds something. Type and state both: glibc's cancellation
 * signal may come late, and its handler then looks at the type alone. As libc's own cancellation points change the
 * type, a blocking call must not use them in between (socket.c, emu_session_check_lost).
 */
struct emu_cancel {
    int state; /* as the program has set them */
    int type;
};

static inline void emu_cancel_hold(struct emu_cancel *c)
{
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &c->state);
    pthread_setcanceltype(PTHREAD_CANCEL_DEFERRED, &c->type);
}

/* A cancellation that came meanwhile acts here if the program's settings are asynchronous. */
static inline void emu_cancel_release(const struct emu_cancel *c)
{
    pthread_setcanceltype(c->type, NULL);
    pthread_setcancelstate(c->state, NULL);
}

struct emu_session {
    int fd;
    uint32_t sequence;
    pthread_mutex_t lock;  /* one request and its reply */
    _Atomic bool is_lost;  /* emunic has gone; never becomes false again */
    _Atomic bool is_stale; /* the process may have been restarted elsewhere: the socket is not to be touched */
    uint32_t server_pid;
    uint32_t answer_ms; /* an answer of the admin socket may take that long, because other hosts are asked */
};

/* Server to talk to: EMUNIC_SERVER, else the user's default server. */
const char *emu_session_default_server(char *buf, size_t len);

/*
 * Connects, checks that the server runs as root, as this user or as EMUNIC_SERVER_UID, and compares ABI versions.
 * 0; -ECONNREFUSED nobody listens; -EACCES not a server to trust, or this user has no domain there; -ENOSPC the user
 * has all connections that a user may have; -ENOMEM the server has no memory; -EPROTONOSUPPORT other ABI (both numbers
 * are logged); -EPERM the admin socket is not for this user; -ENETDOWN the server can take no more connections, or has
 * gone.
 */
int emu_session_open(struct emu_session *session, const char *server, enum emu_socket_kind kind);

/* Says once per process that emu_session_open() found no emunic, and what to do. Other errors: nothing. */
void emu_session_tell_absence(const char *server, int error);

/* The same where the launcher's variable is not set that tells the job. */
void emu_session_tell_no_job(const char *variable);

void emu_session_close(struct emu_session *session);

/*
 * Ends the connection and returns when emunic has dropped everything that belonged to it. Requests fail from now on.
 * Not for a forked child, whose connection is its parent's.
 */
void emu_session_hang_up(struct emu_session *session);

/*
 * Sends *msg (type and body filled in) and waits for the reply, which replaces *msg. Returns the transport's outcome:
 * 0, or -ENETDOWN when emunic has gone. The request's own outcome is msg->result. fds_out may be NULL.
 */
int emu_session_request(struct emu_session *session, struct emu_msg *msg, const int *fds, unsigned n_fds,
                        struct emu_fds *fds_out);

/* Looks whether emunic is still there: one system call. True once it has gone. */
bool emu_session_check_lost(struct emu_session *session);

#endif
