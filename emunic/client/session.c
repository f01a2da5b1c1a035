/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Session: one socket, one lock. The server answers requests of a connection in order, so a reply always belongs to
 * the request just sent. The end of the connection is the death notice of emunic: it is remembered in is_lost, which
 * poll and post paths read without a system call.
 */
#include "emunic/client/session.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "emunic/base/log.h"
#include "emunic/client/virtual_clock.h"

const char *emu_session_default_server(char *buf, size_t len)
{
    const char *name = getenv("EMUNIC_SERVER");

    if (name && name[0])
        return name;
    snprintf(buf, len, "user-%u", (unsigned)geteuid());
    return buf;
}

static bool is_trusted(uid_t uid)
{
    const char *also = getenv("EMUNIC_SERVER_UID");

    if (uid == 0 || uid == geteuid() || uid == getuid())
        return true;
    return also && also[0] && strtoul(also, NULL, 10) == uid;
}

/* emunic does not let this user in, or has enough of it, or has no memory. */
static bool is_refusal(const struct emu_msg *msg)
{
    return msg->type == EMU_MSG_HELLO && msg->result < 0 && msg->hello.abi_version == EMU_ABI_VERSION;
}

static int reason_of(const struct emu_msg *msg)
{
    return msg->result == -EACCES || msg->result == -ENOSPC || msg->result == -ENOMEM ? msg->result : -ENETDOWN;
}

/*
 * emunic has closed its side, perhaps before the hello was there; then its reason stands in the socket, behind the
 * error that tells of the unread hello. -EACCES, -ENOSPC, -ENOMEM; -ENETDOWN: it has given none.
 */
static int read_refusal(int fd)
{
    struct emu_msg msg;

    for (int i = 0; i < 2; i++) {
        struct pollfd p = { .fd = fd, .events = POLLIN };

        if (poll(&p, 1, 0) > 0 && emu_msg_receive(fd, &msg, NULL) == 0)
            return is_refusal(&msg) ? reason_of(&msg) : -ENETDOWN;
    }
    return -ENETDOWN;
}

static int say_hello(struct emu_session *session, const char *server)
{
    struct emu_msg msg = { .type = EMU_MSG_HELLO, .hello = { .abi_version = EMU_ABI_VERSION } };
    int r;

    r = emu_session_request(session, &msg, NULL, 0, NULL);
    if (r < 0)
        return read_refusal(session->fd);
    if (is_refusal(&msg))
        return reason_of(&msg);
    if (msg.result < 0 || msg.hello.abi_version != EMU_ABI_VERSION) {
        emu_log(EMU_LOG_ERROR, "server %s speaks ABI %u, this library ABI %u", server, msg.hello.abi_version,
                EMU_ABI_VERSION);
        return -EPROTONOSUPPORT;
    }
    session->server_pid = msg.hello.server_pid;
    session->answer_ms = msg.hello.answer_ms;
    return 0;
}

int emu_session_open(struct emu_session *session, const char *server, enum emu_socket_kind kind)
{
    struct ucred peer;
    int fd;
    int r;

    fd = emu_socket_connect(server, kind);
    if (fd < 0)
        return fd;
    r = emu_socket_peer(fd, &peer);
    if (r == 0 && !is_trusted(peer.uid)) {
        emu_log(EMU_LOG_ERROR, "server %s belongs to user %u, whom nobody trusts here", server, (unsigned)peer.uid);
        r = -EACCES;
    }
    if (r < 0) {
        close(fd);
        return r;
    }
    *session = (struct emu_session){ .fd = fd };
    pthread_mutex_init(&session->lock, NULL);
    r = say_hello(session, server);
    if (r < 0)
        emu_session_close(session);
    /* It hangs up on those that are not its user or root; on these only when it can take nobody, or ends. */
    if (r == -ENETDOWN && kind == EMU_SOCKET_ADMIN && geteuid() != 0 && geteuid() != peer.uid)
        r = -EPERM;
    return r;
}

/* A program may try for a long time, or in several ways. */
static bool is_first_time(void)
{
    static atomic_flag is_told = ATOMIC_FLAG_INIT;

    return !atomic_flag_test_and_set(&is_told);
}

void emu_session_tell_absence(const char *server, int error)
{
    if (error == -ECONNREFUSED && is_first_time())
        emu_log(EMU_LOG_ERROR,
                "no emunic of name %s answers: start the program with `emunic run`, or that emunic with "
                "`emunic serve --name %s`",
                server, server);
    if (error == -ENETDOWN && is_first_time())
        emu_log(EMU_LOG_ERROR, "the emunic of name %s ends, or takes no more connections", server);
}

void emu_session_tell_no_job(const char *variable)
{
    if (is_first_time())
        emu_log(EMU_LOG_ERROR, "%s is not set, so no job of an emunic is known: start the program with `emunic run`",
                variable);
}

void emu_session_close(struct emu_session *session)
{
    if (session->fd < 0)
        return;
    if (!atomic_load(&session->is_stale)) /* else the number may be somebody else's */
        close(session->fd);
    session->fd = -1;
    pthread_mutex_destroy(&session->lock);
}

static int exchange(struct emu_session *session, struct emu_msg *msg, const int *fds, unsigned n_fds,
                    struct emu_fds *fds_out)
{
    uint16_t type = msg->type;
    int r;

    if (atomic_load(&session->is_lost) || atomic_load(&session->is_stale))
        return -ENETDOWN;
    msg->magic = EMU_MSG_MAGIC;
    msg->abi_version = EMU_ABI_VERSION;
    msg->sequence = ++session->sequence;
    msg->result = 0;
    r = emu_msg_send(session->fd, msg, fds, n_fds);
    if (r == 0)
        r = emu_msg_receive(session->fd, msg, fds_out);
    if (r == 0 && (msg->type != type || msg->sequence != session->sequence)) {
        if (fds_out)
            emu_fds_close(fds_out);
        r = -EPROTO;
    }
    if (r < 0)
        atomic_store(&session->is_lost, true);
    return r < 0 ? -ENETDOWN : 0;
}

int emu_session_request(struct emu_session *session, struct emu_msg *msg, const int *fds, unsigned n_fds,
                        struct emu_fds *fds_out)
{
    enum emu_vclock_call before;
    struct emu_cancel cancel;
    int r;

    if (fds_out)
        fds_out->n_fds = 0;
    emu_cancel_hold(&cancel);
    pthread_mutex_lock(&session->lock);
    before = emu_vclock_note_call(EMU_VCLOCK_CALL_ASKED);
    r = exchange(session, msg, fds, n_fds, fds_out);
    emu_vclock_note_call(before);
    pthread_mutex_unlock(&session->lock);
    emu_cancel_release(&cancel);
    return r;
}

void emu_session_hang_up(struct emu_session *session)
{
    enum emu_vclock_call before;
    struct emu_msg msg;
    struct emu_fds fds;
    struct emu_cancel cancel;

    if (session->fd < 0 || atomic_load(&session->is_stale))
        return;
    emu_cancel_hold(&cancel);
    pthread_mutex_lock(&session->lock);
    atomic_store(&session->is_lost, true);
    /* emunic closes its side last of all; an unread reply, if a thread was killed over it, may come first. */
    before = emu_vclock_note_call(EMU_VCLOCK_CALL_ASKED);
    shutdown(session->fd, SHUT_WR);
    while (emu_msg_receive(session->fd, &msg, &fds) == 0)
        emu_fds_close(&fds);
    emu_vclock_note_call(before);
    pthread_mutex_unlock(&session->lock);
    emu_cancel_release(&cancel);
}

bool emu_session_check_lost(struct emu_session *session)
{
    struct pollfd p = { .fd = session->fd, .events = POLLRDHUP };
    struct timespec now = { 0 };

    if (atomic_load_explicit(&session->is_lost, memory_order_relaxed))
        return true;
    if (atomic_load(&session->is_stale))
        return false;
    if (syscall(SYS_ppoll, &p, 1, &now, NULL, 0) > 0 && (p.revents & (POLLHUP | POLLRDHUP | POLLERR | POLLNVAL)))
        atomic_store(&session->is_lost, true);
    return atomic_load(&session->is_lost);
}
