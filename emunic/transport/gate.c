/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The owner's side of a gate: what libfabric's accept(), connect(), getsockname() and listen() do; README.md tells the
 * design, gate_links.c has the connections.
 *
 * listen(). The first listening socket becomes the gate's. libfabric keeps its number, behind which is from now on one
 * end of a pair of sockets: it has a byte to read for each admitted connection. Later listening sockets are those of
 * endpoints that only send: a filter in the kernel drops all that comes to them.
 *
 * accept() takes a byte and an admitted connection. getsockname() tells the real listener's address.
 *
 * connect() puts a connection that is ready, proven on both sides, behind libfabric's number. There is none at first:
 * then one is begun and libfabric is told EAGAIN, which it hands to its caller, who comes again (ofi.c).
 *
 * If libfabric calls the kernel by another way (another function, io_uring), it has a listener that never brings
 * anything: no stranger comes in, and no peer.
 */
#include "emunic/transport/gate.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "emunic/base/clock.h"
#include "emunic/transport/gate_inner.h"
#include "emunic/transport/sockets.h"

_Thread_local struct emu_gate *emu_gate_current;

static bool is_tcp(int fd)
{
    int domain = 0;
    int protocol = 0;
    socklen_t length = sizeof(int);

    if (getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &length) < 0 ||
        getsockopt(fd, SOL_SOCKET, SO_PROTOCOL, &protocol, &length) < 0)
        return false;
    return (domain == AF_INET || domain == AF_INET6) && protocol == IPPROTO_TCP;
}

/* ---- listening ---- */

/* Nothing that is sent to the socket reaches it. */
static int drop_all(int fd)
{
    struct sock_filter drop = BPF_STMT(BPF_RET | BPF_K, 0);
    struct sock_fprog program = { .len = 1, .filter = &drop };

    return setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program));
}

/* 0, or -1 with errno. The socket is bound. */
static int take_listener(struct emu_gate *g, int fd)
{
    struct epoll_event event = { .events = EPOLLIN, .data.ptr = &g->listener };
    int pair[2];
    int listener = fcntl(fd, F_DUPFD_CLOEXEC, 0);

    if (listener < 0)
        return -1;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair) < 0) {
        close(listener);
        return -1;
    }
    if (dup3(pair[0], fd, O_CLOEXEC) < 0 || listen(listener, SOMAXCONN) < 0 ||
        epoll_ctl(g->epoll_fd, EPOLL_CTL_ADD, listener, &event) < 0) {
        close(pair[0]);
        close(pair[1]);
        close(listener);
        return -1;
    }
    close(pair[0]);
    pthread_mutex_lock(&g->lock);
    g->listener = listener;
    g->bell_fd = pair[1];
    pthread_mutex_unlock(&g->lock);
    g->libfabric_fd = fd;
    return 0;
}

static int hook_listen(int fd, int backlog)
{
    struct emu_gate *g = emu_gate_current;
    int r;

    (void)backlog;
    if (!g || !is_tcp(fd))
        return EMU_SOCKET_NOT_OURS;
    if (g->libfabric_fd >= 0)
        return drop_all(fd) < 0 ? -1 : EMU_SOCKET_NOT_OURS;
    emu_gate_current = NULL; /* our own listen() is the kernel's */
    r = take_listener(g, fd);
    emu_gate_current = g;
    return r;
}

static int hook_getsockname(int fd, struct sockaddr *address, socklen_t *length)
{
    struct emu_gate *g = emu_gate_current;
    int r;

    if (!g || fd != g->libfabric_fd)
        return EMU_SOCKET_NOT_OURS;
    emu_gate_current = NULL;
    r = getsockname(g->listener, address, length);
    emu_gate_current = g;
    return r;
}

static int hook_accept(int fd, struct sockaddr *address, socklen_t *length)
{
    struct emu_gate *g = emu_gate_current;
    char byte;
    int guest = -1;

    if (!g || fd != g->libfabric_fd)
        return EMU_SOCKET_NOT_OURS;
    if (recv(fd, &byte, 1, MSG_DONTWAIT) != 1) {
        errno = EAGAIN;
        return -1;
    }
    pthread_mutex_lock(&g->lock);
    if (g->n_admitted > 0) {
        guest = g->admitted[0];
        g->n_admitted--;
        g->n_guests--;
        memmove(g->admitted, g->admitted + 1, g->n_admitted * sizeof(g->admitted[0]));
    }
    pthread_mutex_unlock(&g->lock);
    if (guest < 0)
        errno = EAGAIN;
    else if (address)
        getpeername(guest, address, length);
    return guest;
}

/* ---- calling ---- */

/* A ready connection to the address, or -1. */
static int take_ready(struct emu_gate *g, const struct sockaddr *address)
{
    struct emu_link *link, *next;
    int fd = -1;

    pthread_mutex_lock(&g->lock);
    for (link = TAILQ_FIRST(&g->calls); link && fd < 0; link = next) {
        char byte;

        next = TAILQ_NEXT(link, entry);
        if (link->state != EMU_LINK_READY || !emu_link_is_to(link, address))
            continue;
        /* A peer says nothing before libfabric does; if it does now, it is gone. */
        if (recv(link->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) < 0 && errno == EAGAIN) {
            fd = link->fd;
            link->fd = -1;
        }
        TAILQ_REMOVE(&g->calls, link, entry);
        if (link->fd >= 0)
            close(link->fd);
        free(link); /* the thread has forgotten ready ones */
    }
    pthread_mutex_unlock(&g->lock);
    return fd;
}

/* Under the lock. Is it time for a connection, or another beside those that are being made? */
static bool makes_room(struct emu_gate *g, const struct sockaddr *address, uint64_t now_ns)
{
    struct emu_link *oldest = NULL;
    uint64_t latest_ns = 0;
    uint32_t n = 0;

    for (struct emu_link *link = TAILQ_FIRST(&g->calls); link; link = TAILQ_NEXT(link, entry)) {
        if (!emu_link_is_to(link, address))
            continue;
        oldest = oldest ? oldest : link;
        latest_ns = link->begin_ns;
        n++;
    }
    if (n > 0 && now_ns - latest_ns < g->config.again_ns)
        return false;
    if (n >= EMU_GATE_CALLS_MAX)
        emu_link_drop(g, oldest, -ETIMEDOUT);
    return true;
}

/* A connection from where libfabric's socket is bound. */
static int call_from(int like, const struct sockaddr *address, socklen_t length)
{
    struct sockaddr_storage from = { 0 };
    socklen_t from_length = sizeof(from);
    int one = 1;
    int fd = socket(address->sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

    if (fd < 0)
        return -1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    setsockopt(fd, IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, &one, sizeof(one));
    if (getsockname(like, (struct sockaddr *)&from, &from_length) == 0) {
        ((struct sockaddr_in *)&from)->sin_port = 0; /* at the same place in either kind of address */
        (void)bind(fd, (struct sockaddr *)&from, from_length);
    }
    if (connect(fd, address, length) < 0 && errno != EINPROGRESS) {
        close(fd);
        return -1;
    }
    return fd;
}

/* Begins a connection, unless one was just begun. */
static void call(struct emu_gate *g, int like, const struct sockaddr *address, socklen_t length)
{
    struct emu_link *link = NULL;
    uint64_t now_ns = emu_clock_ns();
    uint64_t one = 1;

    pthread_mutex_lock(&g->lock);
    if (makes_room(g, address, now_ns))
        link = calloc(1, sizeof(*link));
    if (link) {
        struct epoll_event event = { .events = EPOLLOUT, .data.ptr = link };

        memcpy(&link->peer, address, length);
        link->begin_ns = now_ns;
        link->list = &g->calls;
        link->fd = call_from(like, address, length);
        if (link->fd < 0 || epoll_ctl(g->epoll_fd, EPOLL_CTL_ADD, link->fd, &event) < 0) {
            if (link->fd >= 0)
                close(link->fd);
            free(link);
        } else {
            TAILQ_INSERT_TAIL(&g->calls, link, entry);
        }
    }
    pthread_mutex_unlock(&g->lock);
    (void)!write(g->wake_fd, &one, sizeof(one)); /* there is a deadline now */
}

/* What libfabric has asked of its socket. */
static void copy_options(int from, int to)
{
    static const int options[][2] = { { IPPROTO_TCP, TCP_NODELAY },
                                      { SOL_SOCKET, SO_ZEROCOPY },
                                      { SOL_SOCKET, SO_KEEPALIVE } };

    for (unsigned i = 0; i < sizeof(options) / sizeof(options[0]); i++) {
        int value;
        socklen_t length = sizeof(value);

        if (getsockopt(from, options[i][0], options[i][1], &value, &length) == 0)
            setsockopt(to, options[i][0], options[i][1], &value, length);
    }
}

static int connect_through(struct emu_gate *g, int fd, const struct sockaddr *address, socklen_t length)
{
    int ready = take_ready(g, address);
    int r;

    if (ready < 0) {
        call(g, fd, address, length);
        g->delays++;
        errno = EAGAIN;
        return -1;
    }
    copy_options(fd, ready);
    r = dup3(ready, fd, fcntl(fd, F_GETFD) & FD_CLOEXEC ? O_CLOEXEC : 0);
    close(ready);
    return r < 0 ? -1 : 0;
}

static int hook_connect(int fd, const struct sockaddr *address, socklen_t length)
{
    struct emu_gate *g = emu_gate_current;
    int r;

    if (!g || !is_tcp(fd))
        return EMU_SOCKET_NOT_OURS;
    if (length < (address->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in)) ||
        length > sizeof(struct sockaddr_storage)) {
        errno = EINVAL;
        return -1;
    }
    emu_gate_current = NULL;
    r = connect_through(g, fd, address, length);
    emu_gate_current = g;
    return r;
}

/* ---- life ---- */

static const struct emu_socket_hooks hooks = {
    .accept = hook_accept,
    .connect = hook_connect,
    .getsockname = hook_getsockname,
    .listen = hook_listen,
};

static void free_gate(struct emu_gate *g)
{
    struct emu_links *lists[] = { &g->strangers, &g->guests, &g->calls, &g->dead };
    int fds[] = { g->epoll_fd, g->wake_fd, g->listener, g->bell_fd };

    for (unsigned i = 0; i < sizeof(lists) / sizeof(lists[0]); i++) {
        for (struct emu_link *link; (link = TAILQ_FIRST(lists[i]));) {
            TAILQ_REMOVE(lists[i], link, entry);
            if (link->fd >= 0)
                close(link->fd);
            free(link);
        }
    }
    for (uint32_t i = 0; i < g->n_admitted; i++)
        close(g->admitted[i]);
    for (unsigned i = 0; i < sizeof(fds) / sizeof(fds[0]); i++) {
        if (fds[i] >= 0)
            close(fds[i]);
    }
    pthread_mutex_destroy(&g->lock);
    emu_crypt_wipe(g, sizeof(*g));
    free(g);
}

/* Signals are for the owner's thread. */
static int start_thread(struct emu_gate *g)
{
    sigset_t all, before;
    int r;

    sigfillset(&all);
    sigdelset(&all, SIGSYS); /* of a call that emunic's filter refuses: the kernel ends who blocks it */
    pthread_sigmask(SIG_SETMASK, &all, &before);
    r = pthread_create(&g->thread, NULL, emu_gate_run, g);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return -r;
}

int emu_gate_open(const struct emu_gate_config *config, struct emu_gate **gate_out)
{
    struct emu_gate *g = calloc(1, sizeof(*g));
    struct epoll_event event = { .events = EPOLLIN };
    int r = 0;

    if (!g)
        return -ENOMEM;
    g->config = *config;
    g->rate.per_second = config->per_second;
    g->listener = g->bell_fd = g->libfabric_fd = -1;
    TAILQ_INIT(&g->strangers);
    TAILQ_INIT(&g->guests);
    TAILQ_INIT(&g->calls);
    TAILQ_INIT(&g->dead);
    pthread_mutex_init(&g->lock, NULL);
    g->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    g->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    event.data.ptr = &g->wake_fd;
    if (g->epoll_fd < 0 || g->wake_fd < 0 || epoll_ctl(g->epoll_fd, EPOLL_CTL_ADD, g->wake_fd, &event) < 0)
        r = -errno;
    if (r == 0)
        r = start_thread(g);
    if (r < 0) {
        free_gate(g);
        return r;
    }
    emu_sockets_hook(&hooks);
    *gate_out = g;
    return 0;
}

void emu_gate_close(struct emu_gate *g)
{
    uint64_t one = 1;

    if (!g)
        return;
    atomic_store(&g->is_ending, true);
    (void)!write(g->wake_fd, &one, sizeof(one));
    pthread_join(g->thread, NULL);
    free_gate(g);
}

bool emu_gate_is_listening(const struct emu_gate *g)
{
    return g->libfabric_fd >= 0;
}

uint64_t emu_gate_news(const struct emu_gate *g)
{
    return atomic_load_explicit(&g->news, memory_order_acquire);
}

uint64_t emu_gate_delays(const struct emu_gate *g)
{
    return g->delays;
}

int emu_gate_verdict(struct emu_gate *g, const struct sockaddr *address)
{
    int verdict = 0;

    pthread_mutex_lock(&g->lock);
    for (struct emu_link *link = TAILQ_FIRST(&g->calls); link; link = TAILQ_NEXT(link, entry)) {
        if (emu_link_is_to(link, address) && link->state == EMU_LINK_REFUSED)
            verdict = link->error;
        else if (emu_link_is_to(link, address) && link->state == EMU_LINK_READY)
            verdict = 0;
    }
    pthread_mutex_unlock(&g->lock);
    return verdict;
}

void emu_gate_counts(struct emu_gate *g, struct emu_gate_counts *counts_out)
{
    pthread_mutex_lock(&g->lock);
    *counts_out = g->counts;
    pthread_mutex_unlock(&g->lock);
}
