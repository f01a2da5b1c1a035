/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * UNIX sockets of type SOCK_SEQPACKET with abstract names, and messages of abi/control.h over them.
 */
#ifndef EMUNIC_BASE_SOCKET_H
#define EMUNIC_BASE_SOCKET_H

#include <stdbool.h>
#include <sys/socket.h>
#include <sys/types.h>

#include "emunic/abi/control.h"

#define EMU_MSG_FDS_MAX 4

enum emu_socket_kind { EMU_SOCKET_CONTROL, EMU_SOCKET_ADMIN };

/* Descriptors that came with a message. Whoever takes one sets it to -1; emu_fds_close() closes the rest. */
struct emu_fds {
    int fd[EMU_MSG_FDS_MAX];
    unsigned n_fds;
};

/* Is this a name that a server may have? 1 to EMU_SERVER_NAME_MAX characters out of A-Z a-z 0-9 . _ - */
bool emu_server_name_is_valid(const char *name);

/* Non-blocking, close-on-exec listener. Descriptor, -EADDRINUSE when the name is taken, or another negative errno. */
int emu_socket_listen(const char *server, enum emu_socket_kind kind);

/*
 * Blocking, close-on-exec connection. Descriptor, -ECONNREFUSED when nobody listens, -EAGAIN when a listener has not
 * taken it for EMU_CONNECT_S seconds, or another negative errno.
 */
int emu_socket_connect(const char *server, enum emu_socket_kind kind);
#define EMU_CONNECT_S 10

/* Whose is the listener? Does not wait: -EAGAIN when too many others do. 0 or negative errno as above. */
int emu_socket_owner(const char *server, enum emu_socket_kind kind, uid_t *uid_out);

int emu_socket_peer(int fd, struct ucred *peer_out);
/* Is it a connection that the server of that name has accepted at its control socket? So it is called by the kernel. */
bool emu_socket_is_accepted(int fd, const char *server);

/* One message, with up to EMU_MSG_FDS_MAX descriptors (not closed). 0 or negative errno; -EAGAIN if not blocking. */
int emu_msg_send(int fd, const struct emu_msg *msg, const int *fds, unsigned n_fds);

/*
 * One message. 0, -ECONNRESET at the end of the connection, -EPROTO for anything that is not a message of our kind,
 * -EAGAIN. fds_out may be NULL: the kernel then drops descriptors that come along.
 */
int emu_msg_receive(int fd, struct emu_msg *msg_out, struct emu_fds *fds_out);
/* The same, but *fds_out is set, and the caller's to close, also after an error. */
int emu_msg_take(int fd, struct emu_msg *msg_out, struct emu_fds *fds_out);

void emu_fds_close(struct emu_fds *fds);

#endif
