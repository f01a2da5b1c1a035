/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What epoll watches.
 *
 * An event names its watch by address, so what an event of this round may still name is freed at the end of the round.
 */
#include "emunic/daemon/core/watches.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <unistd.h>

#define EVENTS_PER_LOOK 64

struct emu_watches {
    int epoll_fd;
    bool has_seen_some; /* in this look, not all */
    void **graveyard;   /* owned: freed at the end of the round */
    unsigned n_graves;
    unsigned graves_max;
};

int emu_server_watches_create(struct emu_server *server)
{
    struct emu_watches *watches = calloc(1, sizeof(*watches));

    if (!watches)
        return -ENOMEM;
    server->watches = watches;
    watches->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    return watches->epoll_fd < 0 ? -errno : 0;
}

int emu_server_watch(struct emu_server *server, int fd, uint32_t events, struct emu_watch *watch)
{
    struct epoll_event event = { .events = events, .data.ptr = watch };

    return epoll_ctl(server->watches->epoll_fd, EPOLL_CTL_ADD, fd, &event) < 0 ? -errno : 0;
}

int emu_server_rewatch(struct emu_server *server, int fd, uint32_t events, struct emu_watch *watch)
{
    struct epoll_event event = { .events = events, .data.ptr = watch };

    return epoll_ctl(server->watches->epoll_fd, EPOLL_CTL_MOD, fd, &event) < 0 ? -errno : 0;
}

void emu_server_unwatch(struct emu_server *server, int fd)
{
    epoll_ctl(server->watches->epoll_fd, EPOLL_CTL_DEL, fd, NULL);
}

void emu_server_bury(struct emu_server *server, int fd, struct emu_watch *watch)
{
    struct emu_watches *watches = server->watches;

    if (fd >= 0)
        emu_server_unwatch(server, fd);
    watch->is_dead = true;
    if (watches->n_graves == watches->graves_max) {
        unsigned more = watches->graves_max ? 2 * watches->graves_max : 64;
        void **graves = realloc(watches->graveyard, more * sizeof(*graves));

        if (!graves)
            return; /* out of memory: leak one object rather than free it under epoll's feet */
        watches->graveyard = graves;
        watches->graves_max = more;
    }
    watches->graveyard[watches->n_graves++] = watch;
}

static void clear_graveyard(struct emu_watches *watches)
{
    while (watches->n_graves > 0)
        free(watches->graveyard[--watches->n_graves]);
}

void emu_server_watches_destroy(struct emu_server *server)
{
    struct emu_watches *watches = server->watches;

    if (!watches)
        return;
    clear_graveyard(watches);
    free(watches->graveyard);
    if (watches->epoll_fd >= 0)
        close(watches->epoll_fd);
    free(watches);
    server->watches = NULL;
}

int emu_server_call_watches(struct emu_server *server, int wait_ms, void (*woken)(struct emu_server *),
                            bool *has_seen_all_out)
{
    struct epoll_event events[EVENTS_PER_LOOK];
    int n = epoll_wait(server->watches->epoll_fd, events, EVENTS_PER_LOOK, wait_ms);

    if (woken)
        woken(server);
    *has_seen_all_out = false;
    if (n < 0)
        return errno == EINTR ? 0 : -errno;
    server->watches->has_seen_some = n == EVENTS_PER_LOOK;
    for (int i = 0; i < n; i++) {
        struct emu_watch *watch = events[i].data.ptr;

        if (!watch->is_dead)
            watch->ready(server, watch, events[i].events);
    }
    *has_seen_all_out = !server->watches->has_seen_some;
    clear_graveyard(server->watches);
    return n;
}

void emu_server_has_seen_some(struct emu_server *server)
{
    server->watches->has_seen_some = true;
}
