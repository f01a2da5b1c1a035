/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Users: what the processes of one uid hold of emunic together, against what they may, and their turns at its time.
 */
#ifndef EMUNIC_DAEMON_WORLD_USERS_H
#define EMUNIC_DAEMON_WORLD_USERS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>
#include <sys/types.h>

struct emu_closing;
struct emu_server;

/* What is counted of a user. */
enum emu_user_kind {
    EMU_USER_CONNECTIONS,   /* to the control and the admin socket */
    EMU_USER_PORTS,         /* attached NIC contexts */
    EMU_USER_REGISTRATIONS, /* memory domains */
    EMU_USER_PAGES,         /* of what is shared with its processes, and of registered files of programs */
    EMU_USER_DATAGRAMS,     /* posted and not collected */
    EMU_USER_REGIONS,       /* of shared message queues */
    EMU_USER_TRANSFERS,     /* commands that take more than one round */
    EMU_USER_KINDS,
};

struct emu_user {
    LIST_ENTRY(emu_user) link;
    uid_t uid;
    uint32_t n_holders; /* connections and members */
    uint64_t used[EMU_USER_KINDS];
    uint64_t refused[EMU_USER_KINDS];
    uint64_t n_promised;              /* pages that emunic may have to make for it */
    uint64_t requests;                /* served so far */
    struct emu_user_sockets *sockets; /* of its connections (core/user_sockets.h); NULL: none */
    struct emu_closing *closing;      /* owned: descriptors that it has sent; NULL: none so far */

    /* Its turns (world/turns.c). */
    uint64_t busy_ns;       /* of emunic's time, so far; as far as there were others */
    uint64_t share_ns;      /* the same, but not far behind the others' */
    uint64_t worked_ns;     /* when last; 0: never */
    uint64_t since_rest_ns; /* worked since its last rest */
    uint64_t rests_until_ns;
    uint32_t turn;      /* of its ports */
    bool has_left_over; /* ports that have not had this turn */
};

/* NULL: no memory. Each call of it needs one emu_user_put(). */
struct emu_user *emu_user_get(struct emu_server *server, uid_t uid);
static inline void emu_user_hold(struct emu_user *user)
{
    user->n_holders++;
}
void emu_user_put(struct emu_server *server, struct emu_user *user);

/* What each user may have of that kind. */
uint64_t emu_user_limit(const struct emu_server *server, enum emu_user_kind kind);
/* 0, or -ENOSPC after a line in the log. */
int emu_user_take(struct emu_server *server, struct emu_user *user, enum emu_user_kind kind, uint64_t n);
void emu_user_give(struct emu_user *user, enum emu_user_kind kind, uint64_t n);
/* For what waits while there is no room: look first, then add. */
bool emu_user_has_room(const struct emu_server *server, const struct emu_user *user, enum emu_user_kind kind);
void emu_user_add(struct emu_user *user, enum emu_user_kind kind, uint64_t n);

/* May a process of that user talk to emunic at all? Root, emunic's own user, and whoever owns a domain here. */
bool emu_user_is_admitted(const struct emu_server *server, uid_t uid);

/* ---- the list of all ---- */

struct emu_users {
    LIST_HEAD(, emu_user) list;
    uint32_t n;
    bool has_strangers;        /* some were refused just now */
    struct emu_user strangers; /* not in the list */
    uint64_t most_ns;          /* that a user has had of emunic's time */
    uint64_t limits[EMU_USER_KINDS];
};

/* wanted: per kind, 0: as the settings say; NULL: all of them. 0 or -ENOMEM. */
int emu_users_create(struct emu_server *server, const uint64_t *wanted);
void emu_users_destroy(struct emu_server *server);
struct emu_users *emu_users_of(const struct emu_server *server);

/* "connections", "ports" ...: in status, options and messages. */
extern const char *const emu_user_words[EMU_USER_KINDS + 1];

#endif
