/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What gate.c (the owner's side) and gate_links.c (the thread's side) share. Not for others.
 */
#ifndef EMUNIC_TRANSPORT_GATE_INNER_H
#define EMUNIC_TRANSPORT_GATE_INNER_H

#include <pthread.h>
#include <stdatomic.h>
#include <sys/queue.h>
#include <sys/socket.h>

#include "emunic/transport/caller_rate.h"
#include "emunic/transport/gate.h"

#define EMU_GATE_CALLS_MAX  8u            /* connections to one address, being made or ready */
#define EMU_GATE_GUESTS_MAX 256u          /* admitted, and not yet taken by libfabric */
#define EMU_GATE_READY_NS   1000000000ull /* after that nobody wants a connection of ours any more, or its end */

enum emu_link_state {
    EMU_LINK_CONNECTING, /* ours: TCP has not answered */
    EMU_LINK_TALKING,    /* handshake */
    EMU_LINK_PROVEN,     /* a guest without a word for libfabric yet */
    EMU_LINK_READY,      /* ours, for libfabric */
    EMU_LINK_REFUSED,    /* ours: the other side has another key, version or the like; has no descriptor any more */
    EMU_LINK_DEAD,       /* to be freed */
};

TAILQ_HEAD(emu_links, emu_link);

struct emu_link {
    TAILQ_ENTRY(emu_link) entry;
    struct emu_links *list;
    int fd;
    enum emu_link_state state;
    int error;       /* of a refused one */
    bool has_spoken; /* any byte came */
    uint64_t begin_ns;
    struct sockaddr_storage peer; /* of ours: the address that was called */
    struct emu_admit admit;
};

/* Letters: [O] owner's thread, [T] gate's thread, [L] under `lock`, [C] constant after open. */
struct emu_gate {
    struct emu_gate_config config; /* [C] */
    pthread_t thread;              /* [C] */
    pthread_mutex_t lock;
    int epoll_fd;           /* [C] what the thread waits on */
    int wake_fd;            /* [C] eventfd: look at the time, or end */
    int listener;           /* [L] the real one; -1: not yet */
    int bell_fd;            /* [L] our end of what libfabric has in place of a listener */
    int libfabric_fd;       /* [O] libfabric's number of the other end */
    uint64_t deaf_until_ns; /* [T] the listener is left alone, for want of descriptors */
    uint64_t delays;        /* [O] */
    atomic_bool is_ending;
    _Atomic uint64_t news;
    struct emu_links strangers;        /* [L] that called us, oldest first */
    struct emu_links guests;           /* [L] of those, proven */
    struct emu_links calls;            /* [L] ours */
    struct emu_links dead;             /* [T] until the events in hand are through */
    uint32_t n_strangers;              /* [L] */
    uint32_t n_guests;                 /* [L] with those that are admitted */
    int admitted[EMU_GATE_GUESTS_MAX]; /* [L] descriptors in order, for accept() */
    uint32_t n_admitted;               /* [L] */
    struct emu_gate_counts counts;     /* [L] */
    struct emu_caller_rate rate;       /* [T] */
};

/* The thread; argument: the gate. */
void *emu_gate_run(void *gate);
/* Under the lock: ends a link of any list, and closes its descriptor. */
void emu_link_drop(struct emu_gate *gate, struct emu_link *link, int error);
/* Under the lock. Is the address, with its port, the same? */
bool emu_link_is_to(const struct emu_link *link, const struct sockaddr *address);

#endif
