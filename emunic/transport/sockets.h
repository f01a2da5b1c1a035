/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Calls of libfabric for sockets that the transport answers in the kernel's place; gate.h tells the purpose.
 *
 * sockets.c is linked into each program that may load the transport, which exports its functions: the dynamic linker
 * looks there first. Without a hook, and in each call that the hook does not want, they are the kernel's.
 */
#ifndef EMUNIC_TRANSPORT_SOCKETS_H
#define EMUNIC_TRANSPORT_SOCKETS_H

#include <limits.h>
#include <sys/socket.h>

#define EMU_SOCKET_NOT_OURS INT_MIN /* the kernel may answer */

/* Each as the call of its name, or EMU_SOCKET_NOT_OURS. On the caller's thread, whichever that is. */
struct emu_socket_hooks {
    int (*accept)(int fd, struct sockaddr *address, socklen_t *length);
    int (*connect)(int fd, const struct sockaddr *address, socklen_t length);
    int (*getsockname)(int fd, struct sockaddr *address, socklen_t *length);
    int (*listen)(int fd, int backlog);
};

/* From now on, for all threads. The hooks live as long as the process. */
void emu_sockets_hook(const struct emu_socket_hooks *hooks);

/* connect(), for a program that has a function of that name of its own. */
int emu_sockets_connect(int fd, const struct sockaddr *address, socklen_t length);

#endif
