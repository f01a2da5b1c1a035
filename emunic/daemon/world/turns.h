/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Turns of users at emunic's one thread.
 */
#ifndef EMUNIC_DAEMON_WORLD_TURNS_H
#define EMUNIC_DAEMON_WORLD_TURNS_H

#include <stdbool.h>
#include <stdint.h>

#include "emunic/daemon/world/users.h"

/* Does more than one user want emunic's time? If not nobody has to ask for a turn. */
static inline bool emu_users_compete(const struct emu_users *users)
{
    return users->n + users->has_strangers > 1;
}

/* Is it the user's turn? Those of its ports and connections that are not served now are served later. */
bool emu_user_may_work(const struct emu_user *user, uint64_t now_ns);
/* emunic has worked for the user. */
void emu_user_worked(struct emu_users *users, struct emu_user *user, uint64_t began_ns, uint64_t now_ns);

/* Before all ports are gone through: who has left some over goes on with those, the others begin anew. */
void emu_users_begin_round(struct emu_users *users);
/* Has a port of the user had its turn, or has the user? `*turn` is the port's. False: serve it. */
bool emu_user_must_wait(struct emu_user *user, uint32_t *turn, uint64_t now_ns);

/* Refused ones cost time, too. They are one user, who holds nothing and is forgotten after a while. */
void emu_users_meet_strangers(struct emu_users *users, uint64_t began_ns, uint64_t now_ns);
void emu_users_forget_strangers(struct emu_users *users, uint64_t now_ns);

#endif
