/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The thread's side of a gate: connections from their first packet to the one that has passed.
 *
 *   stranger: talking --proof--> proven --a byte for libfabric--> admitted (accept())
 *   call:     connecting --TCP--> talking --proof--> ready (connect()), or refused: kept for a while as an answer
 *
 * The thread reads of a connection as many bytes as the handshake wants and not one more. A proven guest is handed over
 * when libfabric's own first words are there, so libfabric never has a connection on which nothing comes.
 *
 * Whoever is not through by the deadline is dropped. Strangers that are kept have a number, all and per address; the
 * oldest goes for a new one. So held connections keep nobody out, unless they come faster than a handshake takes.
 * Without descriptors the oldest stranger goes too; without strangers the listener waits a little.
 *
 * An address that begins more connections in a second than it may (caller_rate.h) is dropped by the kernel for the rest
 * of that second. Our own address is not: a host's own users are not held off its network.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "emunic/base/clock.h"
#include "emunic/transport/gate_inner.h"

#define EVENTS_MAX  64
#define ACCEPTS_MAX 64 /* at once; others have their turn then */
#define DEAF_NS     50000000ull
#define MS_NS       1000000ull

/* ---- addresses ---- */

static bool is_same_host(const struct sockaddr_storage *a, const struct sockaddr_storage *b)
{
    uint8_t bytes[2][EMU_ADMIT_ADDRESS_BYTES];

    return emu_admit_address(a, bytes[0]) && emu_admit_address(b, bytes[1]) && memcmp(bytes[0], bytes[1], 16) == 0;
}

bool emu_link_is_to(const struct emu_link *link, const struct sockaddr *address)
{
    uint8_t bytes[2][EMU_ADMIT_ADDRESS_BYTES];

    return emu_admit_address(&link->peer, bytes[0]) &&
           emu_admit_address((const struct sockaddr_storage *)address, bytes[1]) &&
           memcmp(bytes[0], bytes[1], EMU_ADMIT_ADDRESS_BYTES) == 0;
}

static void name_of(const struct sockaddr_storage *address, char *name, size_t room)
{
    uint8_t bytes[EMU_ADMIT_ADDRESS_BYTES];
    char text[INET6_ADDRSTRLEN] = "?";

    if (emu_admit_address(address, bytes))
        inet_ntop(address->ss_family, address->ss_family == AF_INET ? bytes + 12 : bytes, text, sizeof(text));
    snprintf(name, room, "%s", text);
}

/* ---- ends ---- */

/* From its list, and from the numbers of that. */
static void leave_list(struct emu_gate *g, struct emu_link *link)
{
    TAILQ_REMOVE(link->list, link, entry);
    if (link->list == &g->strangers)
        g->n_strangers--;
    else if (link->list == &g->guests)
        g->n_guests--;
}

/* It is freed when no event in hand can name it any more. */
static void bury(struct emu_gate *g, struct emu_link *link)
{
    leave_list(g, link);
    link->state = EMU_LINK_DEAD;
    link->list = &g->dead;
    TAILQ_INSERT_TAIL(&g->dead, link, entry);
}

void emu_link_drop(struct emu_gate *g, struct emu_link *link, int error)
{
    if (link->list == &g->strangers) {
        bool is_refused = link->has_spoken || error == -ETIMEDOUT || error == -ENOSPC;

        g->counts.silent += !is_refused;
        g->counts.refused += is_refused;
        if (is_refused) {
            g->counts.last_error = error;
            name_of(&link->peer, g->counts.last, sizeof(g->counts.last));
        }
    }
    if (link->fd >= 0)
        close(link->fd);
    link->fd = -1;
    bury(g, link);
}

/* A call that is of no use now, nor would be another. */
static void refuse_call(struct emu_link *link, int error)
{
    close(link->fd);
    link->fd = -1;
    link->error = error;
    link->state = EMU_LINK_REFUSED;
    link->begin_ns = emu_clock_ns();
}

/* The connection goes on without the link. Its descriptor. */
static int part_with(struct emu_gate *g, struct emu_link *link)
{
    int fd = link->fd;

    epoll_ctl(g->epoll_fd, EPOLL_CTL_DEL, fd, NULL);
    link->fd = -1;
    bury(g, link);
    return fd;
}

/* ---- handshake ---- */

static void watch(struct emu_gate *g, struct emu_link *link, uint32_t events)
{
    struct epoll_event event = { .events = events, .data.ptr = link };

    epoll_ctl(g->epoll_fd, EPOLL_CTL_MOD, link->fd, &event);
}

/* The few bytes of a handshake always have room in a new connection; a peer whose has none is hostile. */
static int say(struct emu_link *link)
{
    uint32_t n = link->admit.n_out;

    link->admit.n_out = 0;
    if (n == 0 || send(link->fd, link->admit.out, n, MSG_DONTWAIT | MSG_NOSIGNAL) == (ssize_t)n)
        return 0;
    return -EPIPE;
}

static int begin(struct emu_gate *g, struct emu_link *link, bool is_caller)
{
    struct sockaddr_storage ours = { 0 };
    struct sockaddr_storage theirs = { 0 };
    socklen_t ours_length = sizeof(ours);
    socklen_t theirs_length = sizeof(theirs);
    uint8_t caller[EMU_ADMIT_ADDRESS_BYTES];
    uint8_t called[EMU_ADMIT_ADDRESS_BYTES];

    if (getsockname(link->fd, (struct sockaddr *)&ours, &ours_length) < 0 ||
        getpeername(link->fd, (struct sockaddr *)&theirs, &theirs_length) < 0)
        return -errno;
    if (!emu_admit_address(is_caller ? &ours : &theirs, caller) ||
        !emu_admit_address(is_caller ? &theirs : &ours, called))
        return -EPROTO;
    emu_admit_begin(&link->admit, &g->config.admit, is_caller, caller, called);
    link->state = EMU_LINK_TALKING;
    return say(link);
}

/* Both have proven themselves. */
static void pass(struct emu_gate *g, struct emu_link *link)
{
    uint8_t address[EMU_ADMIT_ADDRESS_BYTES];

    if (link->list == &g->calls) {
        epoll_ctl(g->epoll_fd, EPOLL_CTL_DEL, link->fd, NULL);
        link->state = EMU_LINK_READY;
        link->begin_ns = emu_clock_ns();
        atomic_fetch_add(&g->news, 1);
        return;
    }
    if (emu_admit_address(&link->peer, address))
        emu_caller_proves(&g->rate, address);
    leave_list(g, link);
    link->state = EMU_LINK_PROVEN;
    link->list = &g->guests;
    link->begin_ns = emu_clock_ns();
    TAILQ_INSERT_TAIL(&g->guests, link, entry);
    g->n_guests++;
}

static void talk(struct emu_gate *g, struct emu_link *link)
{
    uint8_t bytes[EMU_ADMIT_ANSWER_BYTES];
    ssize_t n = recv(link->fd, bytes, emu_admit_wants(&link->admit), MSG_DONTWAIT);
    int r;

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n <= 0) {
        emu_link_drop(g, link, -ECONNRESET);
        return;
    }
    link->has_spoken = true;
    r = emu_admit_take(&link->admit, bytes, (uint32_t)n);
    if (say(link) < 0 && r >= 0)
        r = -EPIPE;
    if (r < 0 && link->list == &g->calls)
        refuse_call(link, r);
    else if (r < 0)
        emu_link_drop(g, link, r);
    else if (r == EMU_ADMIT_DONE)
        pass(g, link);
}

static void connected(struct emu_gate *g, struct emu_link *link)
{
    int error = 0;
    socklen_t length = sizeof(error);
    int r = getsockopt(link->fd, SOL_SOCKET, SO_ERROR, &error, &length) < 0 ? -errno : -error;

    if (r == 0)
        r = begin(g, link, true);
    if (r < 0)
        emu_link_drop(g, link, r);
    else
        watch(g, link, EPOLLIN);
}

/* libfabric's first words are there, or it is gone. */
static void admit(struct emu_gate *g, struct emu_link *link)
{
    char byte;
    ssize_t n = recv(link->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);

    if (n < 0 && (errno == EAGAIN || errno == EINTR))
        return;
    if (n <= 0 || g->n_admitted == EMU_GATE_GUESTS_MAX || send(g->bell_fd, "", 1, MSG_DONTWAIT | MSG_NOSIGNAL) != 1) {
        emu_link_drop(g, link, -ECONNRESET);
        return;
    }
    g->admitted[g->n_admitted++] = part_with(g, link);
    g->n_guests++; /* until accept() */
    g->counts.admitted++;
    atomic_fetch_add(&g->news, 1);
}

static void take_event(struct emu_gate *g, struct emu_link *link)
{
    if (link->state == EMU_LINK_CONNECTING)
        connected(g, link);
    else if (link->state == EMU_LINK_TALKING)
        talk(g, link);
    else if (link->state == EMU_LINK_PROVEN)
        admit(g, link);
}

/* ---- strangers ---- */

/* Packets of those who are shut out; connections inherit the filter, and are freed of it. */
static void set_filter(struct emu_gate *g)
{
    struct sock_filter filter[EMU_CALLER_FILTER];
    struct sock_fprog program = { .filter = filter };
    int none = 0;

    if (g->rate.n_shut == 0) {
        setsockopt(g->listener, SOL_SOCKET, SO_DETACH_FILTER, &none, sizeof(none));
        return;
    }
    program.len = emu_caller_filter(&g->rate, filter);
    setsockopt(g->listener, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof(program));
}

/* May another one of the address come? */
static bool is_within_rate(struct emu_gate *g, int fd, const struct sockaddr_storage *peer)
{
    struct sockaddr_storage ours = { 0 };
    socklen_t length = sizeof(ours);
    uint8_t address[EMU_ADMIT_ADDRESS_BYTES];
    enum emu_caller_verdict verdict;

    if (getsockname(fd, (struct sockaddr *)&ours, &length) < 0 || !emu_admit_address(peer, address))
        return false;
    if (is_same_host(&ours, peer))
        return true;
    verdict = emu_caller_begins(&g->rate, address, emu_clock_ns());
    if (verdict == EMU_CALLER_SHUT)
        set_filter(g);
    return verdict == EMU_CALLER_WELCOME;
}

/* Of the limits per address and of all. */
static void push_out(struct emu_gate *g, const struct sockaddr_storage *peer)
{
    struct emu_link *oldest = NULL;
    uint32_t n = 0;

    for (struct emu_link *link = TAILQ_FIRST(&g->strangers); link; link = TAILQ_NEXT(link, entry)) {
        if (!is_same_host(&link->peer, peer))
            continue;
        oldest = oldest ? oldest : link;
        n++;
    }
    if (n >= g->config.n_per_address)
        emu_link_drop(g, oldest, -ENOSPC);
    if (g->n_strangers >= g->config.n_strangers)
        emu_link_drop(g, TAILQ_FIRST(&g->strangers), -ENOSPC);
}

static void welcome(struct emu_gate *g, int fd, const struct sockaddr_storage *peer)
{
    struct epoll_event event = { .events = EPOLLIN };
    struct emu_link *link = g->n_guests < EMU_GATE_GUESTS_MAX ? calloc(1, sizeof(*link)) : NULL;
    int one = 1;

    if (!link || !is_within_rate(g, fd, peer)) {
        if (link)
            g->counts.silent++;
        free(link);
        close(fd);
        return;
    }
    setsockopt(fd, SOL_SOCKET, SO_DETACH_FILTER, &one, sizeof(one));
    push_out(g, peer);
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
    link->fd = fd;
    link->peer = *peer;
    link->begin_ns = emu_clock_ns();
    link->list = &g->strangers;
    TAILQ_INSERT_TAIL(&g->strangers, link, entry);
    g->n_strangers++;
    event.data.ptr = link;
    if (begin(g, link, false) < 0 || epoll_ctl(g->epoll_fd, EPOLL_CTL_ADD, fd, &event) < 0)
        emu_link_drop(g, link, -ECONNRESET);
}

static void hear(struct emu_gate *g, bool is_wanted)
{
    struct epoll_event event = { .events = is_wanted ? EPOLLIN : 0, .data.ptr = &g->listener };

    epoll_ctl(g->epoll_fd, EPOLL_CTL_MOD, g->listener, &event);
    g->deaf_until_ns = is_wanted ? 0 : emu_clock_ns() + DEAF_NS;
}

static void take_strangers(struct emu_gate *g)
{
    for (int i = 0; i < ACCEPTS_MAX; i++) {
        struct sockaddr_storage peer = { 0 };
        socklen_t length = sizeof(peer);
        int fd = accept4(g->listener, (struct sockaddr *)&peer, &length, SOCK_NONBLOCK | SOCK_CLOEXEC);

        if (fd >= 0) {
            welcome(g, fd, &peer);
        } else if (errno == EAGAIN) {
            return;
        } else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
            if (g->n_strangers == 0) {
                hear(g, false);
                return;
            }
            emu_link_drop(g, TAILQ_FIRST(&g->strangers), -ENOSPC);
        }
    }
}

/* ---- the thread ---- */

/* Drops what is too old; lists are in the order of age. When the next one is, or UINT64_MAX. */
static uint64_t expire(struct emu_gate *g, struct emu_links *list, uint64_t now_ns)
{
    uint64_t next_ns = UINT64_MAX;
    struct emu_link *link, *next;

    for (link = TAILQ_FIRST(list); link; link = next) {
        bool is_over = link->state == EMU_LINK_READY || link->state == EMU_LINK_REFUSED;
        uint64_t end_ns = link->begin_ns + (is_over ? EMU_GATE_READY_NS : g->config.deadline_ns);

        next = TAILQ_NEXT(link, entry);
        if (now_ns >= end_ns)
            emu_link_drop(g, link, -ETIMEDOUT);
        else if (end_ns < next_ns)
            next_ns = end_ns;
        /* Those of others are as patient as they are old. */
        if (now_ns < end_ns && list != &g->calls)
            break;
    }
    return next_ns;
}

/* Milliseconds until there is something to do without an event; -1: nothing. */
static int look_at_time(struct emu_gate *g)
{
    uint64_t now_ns = emu_clock_ns();
    uint64_t next_ns = expire(g, &g->strangers, now_ns);
    uint64_t guests_ns = expire(g, &g->guests, now_ns);
    uint64_t calls_ns = expire(g, &g->calls, now_ns);
    uint64_t shut_ns = emu_caller_next_ns(&g->rate);

    if (now_ns >= shut_ns && emu_caller_second_is_over(&g->rate, now_ns)) {
        set_filter(g);
        shut_ns = UINT64_MAX;
    }
    next_ns = shut_ns < next_ns ? shut_ns : next_ns;
    next_ns = guests_ns < next_ns ? guests_ns : next_ns;
    next_ns = calls_ns < next_ns ? calls_ns : next_ns;
    if (g->deaf_until_ns != 0 && now_ns >= g->deaf_until_ns)
        hear(g, true);
    if (g->deaf_until_ns != 0 && g->deaf_until_ns < next_ns)
        next_ns = g->deaf_until_ns;
    if (next_ns == UINT64_MAX)
        return -1;
    return next_ns > now_ns ? (int)((next_ns - now_ns) / MS_NS) + 1 : 0;
}

static void free_dead(struct emu_gate *g)
{
    for (struct emu_link *link; (link = TAILQ_FIRST(&g->dead));) {
        TAILQ_REMOVE(&g->dead, link, entry);
        emu_crypt_wipe(&link->admit, sizeof(link->admit));
        free(link);
    }
}

void *emu_gate_run(void *argument)
{
    struct epoll_event events[EVENTS_MAX];
    struct emu_gate *g = argument;
    int wait_ms = -1;

    while (!atomic_load(&g->is_ending)) {
        int n = epoll_wait(g->epoll_fd, events, EVENTS_MAX, wait_ms);
        uint64_t count;

        for (int i = 0; i < n; i++) {
            pthread_mutex_lock(&g->lock); /* for one event: the owner waits for no more */
            if (events[i].data.ptr == &g->listener)
                take_strangers(g);
            else if (events[i].data.ptr == &g->wake_fd)
                (void)!read(g->wake_fd, &count, sizeof(count));
            else
                take_event(g, events[i].data.ptr);
            pthread_mutex_unlock(&g->lock);
        }
        pthread_mutex_lock(&g->lock);
        wait_ms = look_at_time(g);
        free_dead(g);
        pthread_mutex_unlock(&g->lock);
    }
    return NULL;
}
