/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A watch over the pages that emunic makes.
 *
 * A page of a sparse file that a command touches comes into being, also where no process has mapped it: then it is
 * charged to no process but emunic, which the kernel would take for the culprit when memory runs out. Missing pages of
 * a space file are promised at the registration (world/shared_pages.c). That leaves files of programs, and pages that
 * were there at the registration and have been taken out of the file since. So emunic looks again:
 *
 *   a user's pages    where they are more than EMUNIC_USER_PAGES, the member with the most is ended as if its process
 *                     had: ports, windows and space file go, and with them all pages that no process has mapped.
 *   emunic's share    where emunic has mapped more than a quarter of that, it lets go of all pages. They stay in their
 *                     files, and those that are needed come back by a fault each.
 *
 * emunic looks every LOOK_NS while it works, and only if its own mapped pages have grown: one read of /proc.
 */
#include "emunic/daemon/memory/page_watch.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "emunic/base/clock.h"
#include "emunic/base/window.h"
#include "emunic/daemon/core/connection.h"
#include "emunic/daemon/core/domain_life.h"
#include "emunic/daemon/world/domain.h"
#include "emunic/daemon/world/file.h"
#include "emunic/daemon/world/port_end.h"
#include "emunic/daemon/world/server.h"
#include "emunic/daemon/world/shared_pages.h"
#include "emunic/daemon/world/users.h"

#define ROUNDS_PER_CLOCK 16u
#define LOOK_NS          10000000u
#define GROWTH_PART      64u   /* of the limit: growth that is worth a look at all files, */
#define GROWTH_PAGES     1024u /* and at least so much: ports and their queues grow as well */
#define OWN_PART         4u    /* of the limit: what emunic maps itself */

struct emu_page_watch {
    int statm_fd; /* -1: unknown, then it looks each time */
    uint32_t rounds;
    uint64_t looked_ns;
    uint64_t n_seen; /* mapped by emunic at the last look at all files */
};

static struct emu_page_watch *watch_of(const struct emu_server *server)
{
    return server->slots[EMU_SERVER_PAGE_WATCH];
}

/* Of files that emunic has mapped, as far as it has touched them. */
static uint64_t mapped_pages(const struct emu_page_watch *watch)
{
    unsigned long long shared = 0;
    char text[128] = "";

    if (watch->statm_fd < 0 || pread(watch->statm_fd, text, sizeof(text) - 1, 0) <= 0 ||
        sscanf(text, "%*u %*u %llu", &shared) != 1)
        return UINT64_MAX;
    return shared;
}

/* ---- users ---- */

static struct emu_member *largest_member(const struct emu_server *server, const struct emu_user *user)
{
    struct emu_member *largest = NULL;
    const struct emu_domain *domain;
    struct emu_member *member;

    LIST_FOREACH(domain, &server->domains, link) {
        LIST_FOREACH(member, &domain->members, link) {
            if (member->user == user && member->n_pages > (largest ? largest->n_pages : 0))
                largest = member;
        }
    }
    return largest;
}

static void end_member(struct emu_server *server, struct emu_member *member)
{
    struct emu_port_end *port;

    emu_log_limited(&server->rate, EMU_LOG_WARN,
                    "pid %d uid %u: its user has %llu of %llu pages that a user may have: its ports are closed",
                    (int)member->pid, (unsigned)member->uid, (unsigned long long)member->user->used[EMU_USER_PAGES],
                    (unsigned long long)emu_user_limit(server, EMU_USER_PAGES));
    LIST_FOREACH(port, &member->ports, member_link)
        port->connection->hung_up = true;
    emu_member_destroy(server, member);
}

/* Until the user has no more than it may. */
static unsigned end_members(struct emu_server *server, struct emu_user *user)
{
    uint64_t limit = emu_user_limit(server, EMU_USER_PAGES);
    struct emu_member *member;
    unsigned n = 0;

    while (user->used[EMU_USER_PAGES] > limit && (member = largest_member(server, user))) {
        end_member(server, member);
        n++;
    }
    user->refused[EMU_USER_PAGES] += n;
    return n;
}

static unsigned end_excess(struct emu_server *server)
{
    struct emu_user *user = LIST_FIRST(&emu_users_of(server)->list);
    unsigned n = 0;

    emu_pages_count_all(server);
    while (user) {
        struct emu_user *next = LIST_NEXT(user, link);

        emu_user_hold(user); /* its last member may end */
        n += end_members(server, user);
        emu_user_put(server, user);
        user = next;
    }
    return n;
}

/* ---- emunic's share ---- */

static void let_go_of_all(struct emu_server *server)
{
    struct emu_domain *domain;
    struct emu_member *member;

    LIST_FOREACH(domain, &server->domains, link) {
        LIST_FOREACH(member, &domain->members, link) {
            emu_windows_let_go(&member->windows);
            emu_files_let_go(member);
        }
    }
}

static unsigned look(struct emu_server *server, struct emu_page_watch *watch)
{
    uint64_t limit = emu_user_limit(server, EMU_USER_PAGES);
    uint64_t growth = limit / GROWTH_PART > GROWTH_PAGES ? limit / GROWTH_PART : GROWTH_PAGES;
    uint64_t n_now = mapped_pages(watch);
    unsigned n;

    if (n_now < watch->n_seen)
        watch->n_seen = n_now;
    if (n_now != UINT64_MAX && n_now - watch->n_seen < growth)
        return 0;
    n = end_excess(server);
    /* A file that several members hold counts for one of them: the next look finds the others. */
    watch->n_seen = n > 0 ? 0 : n_now;
    if (n_now != UINT64_MAX && n_now > limit / OWN_PART) {
        let_go_of_all(server);
        /* What comes back has grown, also where the same pages come back before the next look. */
        watch->n_seen = mapped_pages(watch);
    }
    return n;
}

unsigned emu_page_watch_round(struct emu_server *server)
{
    struct emu_page_watch *watch = watch_of(server);
    uint64_t now_ns;

    if (++watch->rounds % ROUNDS_PER_CLOCK != 0)
        return 0;
    now_ns = emu_clock_ns();
    if (now_ns - watch->looked_ns < LOOK_NS)
        return 0;
    watch->looked_ns = now_ns;
    return look(server, watch);
}

/* ---- life ---- */

int emu_page_watch_create(struct emu_server *server)
{
    struct emu_page_watch *watch = calloc(1, sizeof(*watch));

    if (!watch)
        return -ENOMEM;
    watch->statm_fd = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
    watch->n_seen = mapped_pages(watch);
    server->slots[EMU_SERVER_PAGE_WATCH] = watch;
    return 0;
}

void emu_page_watch_destroy(struct emu_server *server)
{
    struct emu_page_watch *watch = watch_of(server);

    if (!watch)
        return;
    if (watch->statm_fd >= 0)
        close(watch->statm_fd);
    free(watch);
    server->slots[EMU_SERVER_PAGE_WATCH] = NULL;
}
