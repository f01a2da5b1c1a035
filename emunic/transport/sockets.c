/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * accept(), connect(), getsockname() and listen() of the whole program, so that the transport can answer libfabric's.
 *
 * They must come first in the order of the dynamic linker, before those of libc. So they are in the program itself and
 * exported (meson.build); in the module they would come behind libc, which the program has loaded. A program that does
 * not export emu_sockets_hook() cannot load the module.
 *
 * They are weak: a program may have a connect() of its own, which then calls emu_sockets_connect().
 */
#include "emunic/transport/sockets.h"

#include <stdatomic.h>
#include <sys/syscall.h>
#include <unistd.h>

#define EXPORTED __attribute__((visibility("default")))
#define REPLACES __attribute__((visibility("default"), weak))

static _Atomic(const struct emu_socket_hooks *) hooks;

EXPORTED void emu_sockets_hook(const struct emu_socket_hooks *hooks_wanted)
{
    atomic_store_explicit(&hooks, hooks_wanted, memory_order_release);
}

static const struct emu_socket_hooks *hooks_now(void)
{
    return atomic_load_explicit(&hooks, memory_order_acquire);
}

REPLACES int accept(int fd, __SOCKADDR_ARG address, socklen_t *restrict length)
{
    const struct emu_socket_hooks *h = hooks_now();
    int r = h ? h->accept(fd, address.__sockaddr__, length) : EMU_SOCKET_NOT_OURS;

    return r != EMU_SOCKET_NOT_OURS ? r : (int)syscall(SYS_accept4, fd, address.__sockaddr__, length, 0);
}

int emu_sockets_connect(int fd, const struct sockaddr *address, socklen_t length)
{
    const struct emu_socket_hooks *h = hooks_now();
    int r = h ? h->connect(fd, address, length) : EMU_SOCKET_NOT_OURS;

    return r != EMU_SOCKET_NOT_OURS ? r : (int)syscall(SYS_connect, fd, address, length);
}

REPLACES int connect(int fd, __CONST_SOCKADDR_ARG address, socklen_t length)
{
    return emu_sockets_connect(fd, address.__sockaddr__, length);
}

REPLACES int getsockname(int fd, __SOCKADDR_ARG address, socklen_t *restrict length)
{
    const struct emu_socket_hooks *h = hooks_now();
    int r = h ? h->getsockname(fd, address.__sockaddr__, length) : EMU_SOCKET_NOT_OURS;

    return r != EMU_SOCKET_NOT_OURS ? r : (int)syscall(SYS_getsockname, fd, address.__sockaddr__, length);
}

REPLACES int listen(int fd, int backlog)
{
    const struct emu_socket_hooks *h = hooks_now();
    int r = h ? h->listen(fd, backlog) : EMU_SOCKET_NOT_OURS;

    return r != EMU_SOCKET_NOT_OURS ? r : (int)syscall(SYS_listen, fd, backlog);
}
