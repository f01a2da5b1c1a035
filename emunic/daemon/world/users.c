/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Users.
 *
 * A user is a uid with a process here: it comes with the first connection and goes with the last connection and the
 * last member. All domains and processes of the uid count together. The limits are there so that no user takes what
 * others need; a job of ordinary size does not come near them. emunic's own user has the same ones.
 *
 * Connections are bounded by descriptors as well, because a port needs two more: one user gets a quarter of them.
 */
#include "emunic/daemon/world/users.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "emunic/base/closing.h"
#include "emunic/daemon/world/domain.h"
#include "emunic/daemon/world/server.h"

#define DESCRIPTOR_SHARE 4u

const char *const emu_user_words[EMU_USER_KINDS + 1] = {
    "connections", "ports", "registrations", "pages", "datagrams", "regions", "transfers", NULL,
};

struct emu_users *emu_users_of(const struct emu_server *server)
{
    return server->slots[EMU_SERVER_USERS];
}

/* ---- limits ---- */

/* Seven eighths of the memory of this host. */
static uint64_t default_pages(void)
{
    long pages = sysconf(_SC_PHYS_PAGES);

    return pages > 0 ? (uint64_t)pages - (uint64_t)pages / 8 : UINT64_MAX;
}

int emu_users_create(struct emu_server *server, const uint64_t *wanted)
{
    const struct emu_settings *s = &server->settings;
    const uint64_t from_settings[EMU_USER_KINDS] = {
        [EMU_USER_CONNECTIONS] = s->user_connections,
        [EMU_USER_PORTS] = s->user_ports,
        [EMU_USER_REGISTRATIONS] = s->user_registrations,
        [EMU_USER_PAGES] = s->user_pages ? s->user_pages : default_pages(),
        [EMU_USER_DATAGRAMS] = s->user_datagrams,
        [EMU_USER_REGIONS] = s->user_regions,
        [EMU_USER_TRANSFERS] = s->user_transfers,
    };
    struct emu_users *users = calloc(1, sizeof(*users));
    struct rlimit files;

    if (!users)
        return -ENOMEM;
    LIST_INIT(&users->list);
    for (unsigned i = 0; i < EMU_USER_KINDS; i++)
        users->limits[i] = wanted && wanted[i] ? wanted[i] : from_settings[i];
    if (getrlimit(RLIMIT_NOFILE, &files) == 0 &&
        users->limits[EMU_USER_CONNECTIONS] > files.rlim_cur / DESCRIPTOR_SHARE)
        users->limits[EMU_USER_CONNECTIONS] = files.rlim_cur / DESCRIPTOR_SHARE;
    server->slots[EMU_SERVER_USERS] = users;
    return 0;
}

void emu_users_destroy(struct emu_server *server)
{
    struct emu_users *users = emu_users_of(server);
    struct emu_user *user;

    while (users && (user = LIST_FIRST(&users->list))) {
        LIST_REMOVE(user, link);
        emu_closing_leave(user->closing);
        free(user);
    }
    free(users);
    server->slots[EMU_SERVER_USERS] = NULL;
}

uint64_t emu_user_limit(const struct emu_server *server, enum emu_user_kind kind)
{
    return emu_users_of(server)->limits[kind];
}

/* ---- users ---- */

struct emu_user *emu_user_get(struct emu_server *server, uid_t uid)
{
    struct emu_users *users = emu_users_of(server);
    struct emu_user *user;

    LIST_FOREACH(user, &users->list, link) {
        if (user->uid == uid)
            break;
    }
    if (!user) {
        user = calloc(1, sizeof(*user));
        if (!user)
            return NULL;
        user->uid = uid;
        LIST_INSERT_HEAD(&users->list, user, link);
        users->n++;
    }
    user->n_holders++;
    return user;
}

void emu_user_put(struct emu_server *server, struct emu_user *user)
{
    if (--user->n_holders > 0)
        return;
    emu_users_of(server)->n--;
    LIST_REMOVE(user, link);
    emu_closing_leave(user->closing);
    free(user);
}

int emu_user_take(struct emu_server *server, struct emu_user *user, enum emu_user_kind kind, uint64_t n)
{
    uint64_t limit = emu_user_limit(server, kind);

    if (n > limit || user->used[kind] > limit - n) {
        user->refused[kind]++;
        emu_log_limited(&server->rate, EMU_LOG_WARN, "uid %u refused: it has %llu of %llu %s that a user may have",
                        (unsigned)user->uid, (unsigned long long)user->used[kind], (unsigned long long)limit,
                        emu_user_words[kind]);
        return -ENOSPC;
    }
    user->used[kind] += n;
    return 0;
}

void emu_user_give(struct emu_user *user, enum emu_user_kind kind, uint64_t n)
{
    user->used[kind] -= n;
}

bool emu_user_has_room(const struct emu_server *server, const struct emu_user *user, enum emu_user_kind kind)
{
    return user->used[kind] < emu_user_limit(server, kind);
}

void emu_user_add(struct emu_user *user, enum emu_user_kind kind, uint64_t n)
{
    user->used[kind] += n;
}

bool emu_user_is_admitted(const struct emu_server *server, uid_t uid)
{
    const struct emu_domain *domain;

    if (uid == 0 || uid == geteuid())
        return true;
    LIST_FOREACH(domain, &server->domains, link) {
        if (domain->owner_uid == uid)
            return true;
    }
    return false;
}
