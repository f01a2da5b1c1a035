/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The connections of a user behind one descriptor, so that all of them wait while their user rests (world/turns.h).
 */
#ifndef EMUNIC_DAEMON_CORE_USER_SOCKETS_H
#define EMUNIC_DAEMON_CORE_USER_SOCKETS_H

#include <stdint.h>

#include "emunic/daemon/world/server.h"
#include "emunic/daemon/world/users.h"

/* 0 or -ENOMEM. */
int emu_user_sockets_create(struct emu_server *server);
void emu_user_sockets_destroy(struct emu_server *server);
/* Watches a connection of the user. The memory at `watch` stays the caller's. 0 or negative errno. */
int emu_user_sockets_add(struct emu_server *server, struct emu_user *user, int fd, struct emu_watch *watch);
/* Stops watching, before fd is closed; the memory at `watch` is freed at the end of the round. */
void emu_user_sockets_bury(struct emu_server *server, struct emu_user *user, int fd, struct emu_watch *watch);
/* Looks again at those whose users rest no longer. */
void emu_user_sockets_resume(struct emu_server *server);
/* When the first of them does; UINT64_MAX: nobody rests. */
uint64_t emu_user_sockets_next_ns(const struct emu_server *server);

#endif
