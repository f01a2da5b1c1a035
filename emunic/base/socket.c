/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Abstract names vanish with the last descriptor: a killed server leaves nothing behind. They carry no file
 * permissions, so whoever uses a connection checks the peer's credentials (emu_socket_peer).
 *
 * Messages go by bare system calls: libc's wrappers are cancellation points, and clients send requests under locks
 * (emu_cancel_hold in client/session.h).
 */
#include "emunic/base/socket.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

bool emu_server_name_is_valid(const char *name)
{
    size_t len = strlen(name);

    return len >= 1 && len <= EMU_SERVER_NAME_MAX &&
           strspn(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-") == len;
}

static int make_address(const char *server, enum emu_socket_kind kind, struct sockaddr_un *addr, socklen_t *len_out)
{
    int len;

    if (!emu_server_name_is_valid(server))
        return -EINVAL;
    *addr = (struct sockaddr_un){ .sun_family = AF_UNIX };
    len = snprintf(addr->sun_path + 1, sizeof(addr->sun_path) - 1, "emunic/%s/%s", server,
                   kind == EMU_SOCKET_ADMIN ? "admin" : "ctl");
    *len_out = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)len);
    return 0;
}

int emu_socket_listen(const char *server, enum emu_socket_kind kind)
{
    struct sockaddr_un addr;
    socklen_t len;
    int fd;
    int r;

    r = make_address(server, kind, &addr, &len);
    if (r < 0)
        return r;
    fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0)
        return -errno;
    if (bind(fd, (struct sockaddr *)&addr, len) < 0 || listen(fd, 1024) < 0) {
        r = -errno;
        close(fd);
        return r;
    }
    return fd;
}

static int connect_as(const char *server, enum emu_socket_kind kind, int flags)
{
    const struct timeval patience = { .tv_sec = EMU_CONNECT_S };
    const struct timeval none = { 0 };
    struct sockaddr_un addr;
    socklen_t len;
    int fd;
    int r;

    r = make_address(server, kind, &addr, &len);
    if (r < 0)
        return r;
    fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | flags, 0);
    if (fd < 0)
        return -errno;
    /* Whoever listens may never take it, and it need not be who we think. */
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
    if (connect(fd, (struct sockaddr *)&addr, len) < 0) {
        r = -errno;
        close(fd);
        return r;
    }
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &none, sizeof(none));
    return fd;
}

int emu_socket_connect(const char *server, enum emu_socket_kind kind)
{
    return connect_as(server, kind, 0);
}

int emu_socket_owner(const char *server, enum emu_socket_kind kind, uid_t *uid_out)
{
    int fd = connect_as(server, kind, SOCK_NONBLOCK);
    struct ucred peer = { 0 };
    int r;

    if (fd < 0)
        return fd;
    r = emu_socket_peer(fd, &peer);
    close(fd);
    if (r == 0)
        *uid_out = peer.uid;
    return r;
}

int emu_socket_peer(int fd, struct ucred *peer_out)
{
    struct ucred peer;
    socklen_t len = sizeof(peer);

    if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) < 0)
        return -errno;
    *peer_out = peer;
    return 0;
}

bool emu_socket_is_accepted(int fd, const char *server)
{
    struct sockaddr_un wanted;
    struct sockaddr_un own;
    struct sockaddr_un other;
    socklen_t wanted_len;
    socklen_t own_len = sizeof(own);
    socklen_t other_len = sizeof(other);

    /* The listener has the same name, but no other end. */
    return make_address(server, EMU_SOCKET_CONTROL, &wanted, &wanted_len) == 0 &&
           getsockname(fd, (struct sockaddr *)&own, &own_len) == 0 && own_len == wanted_len &&
           memcmp(&own, &wanted, wanted_len) == 0 && getpeername(fd, (struct sockaddr *)&other, &other_len) == 0;
}

int emu_msg_send(int fd, const struct emu_msg *msg, const int *fds, unsigned n_fds)
{
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(sizeof(int) * EMU_MSG_FDS_MAX)];
    } ancillary = { 0 };
    struct iovec part = { (void *)(uintptr_t)msg, sizeof(*msg) };
    struct msghdr header = { .msg_iov = &part, .msg_iovlen = 1 };
    ssize_t sent;

    if (n_fds > EMU_MSG_FDS_MAX)
        return -EINVAL;
    if (n_fds > 0) {
        header.msg_control = ancillary.bytes;
        header.msg_controllen = CMSG_SPACE(sizeof(int) * n_fds);
        ancillary.header.cmsg_level = SOL_SOCKET;
        ancillary.header.cmsg_type = SCM_RIGHTS;
        ancillary.header.cmsg_len = CMSG_LEN(sizeof(int) * n_fds);
        memcpy(CMSG_DATA(&ancillary.header), fds, sizeof(int) * n_fds);
    }
    do {
        sent = syscall(SYS_sendmsg, fd, &header, MSG_NOSIGNAL);
    } while (sent < 0 && errno == EINTR);
    if (sent < 0)
        return -errno;
    return sent == (ssize_t)sizeof(*msg) ? 0 : -EIO;
}

static void collect_fds(struct msghdr *header, struct emu_fds *fds)
{
    for (struct cmsghdr *c = CMSG_FIRSTHDR(header); c; c = CMSG_NXTHDR(header, c)) {
        size_t count;

        if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
            continue;
        count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        for (size_t i = 0; i < count && fds->n_fds < EMU_MSG_FDS_MAX; i++)
            memcpy(&fds->fd[fds->n_fds++], CMSG_DATA(c) + i * sizeof(int), sizeof(int));
    }
}

int emu_msg_take(int fd, struct emu_msg *msg_out, struct emu_fds *fds_out)
{
    union {
        struct cmsghdr header;
        char bytes[CMSG_SPACE(sizeof(int) * EMU_MSG_FDS_MAX)];
    } ancillary = { 0 };
    struct iovec part = { msg_out, sizeof(*msg_out) };
    struct msghdr header = { .msg_iov = &part, .msg_iovlen = 1 };
    ssize_t got;

    if (fds_out) {
        fds_out->n_fds = 0;
        header.msg_control = ancillary.bytes;
        header.msg_controllen = sizeof(ancillary.bytes);
    }
    do {
        got = syscall(SYS_recvmsg, fd, &header, MSG_CMSG_CLOEXEC);
    } while (got < 0 && errno == EINTR);
    if (got < 0)
        return -errno;
    /* The kernel drops what does not fit the ancillary buffer; what did fit is the caller's to close. */
    if (fds_out)
        collect_fds(&header, fds_out);
    if (got == 0)
        return -ECONNRESET;
    if (got != (ssize_t)sizeof(*msg_out) || (header.msg_flags & MSG_TRUNC) || msg_out->magic != EMU_MSG_MAGIC)
        return -EPROTO;
    return 0;
}

int emu_msg_receive(int fd, struct emu_msg *msg_out, struct emu_fds *fds_out)
{
    struct emu_fds fds = { .n_fds = 0 };
    int r = emu_msg_take(fd, msg_out, fds_out ? &fds : NULL);

    if (r < 0)
        emu_fds_close(&fds);
    else if (fds_out)
        *fds_out = fds;
    return r;
}

void emu_fds_close(struct emu_fds *fds)
{
    for (unsigned i = 0; i < fds->n_fds; i++) {
        if (fds->fd[i] >= 0)
            close(fds->fd[i]);
        fds->fd[i] = -1;
    }
    fds->n_fds = 0;
}
