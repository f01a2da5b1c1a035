/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What epoll watches for the server.
 */
#ifndef EMUNIC_DAEMON_CORE_WATCHES_H
#define EMUNIC_DAEMON_CORE_WATCHES_H

#include <stdint.h>

#include "emunic/daemon/world/server.h"

/* Makes what the next calls need. 0 or negative errno. */
int emu_server_watches_create(struct emu_server *server);
void emu_server_watches_destroy(struct emu_server *server);
int emu_server_watch(struct emu_server *server, int fd, uint32_t events, struct emu_watch *watch);
/* Other events of one that is watched; 0: none. 0 or negative errno. */
int emu_server_rewatch(struct emu_server *server, int fd, uint32_t events, struct emu_watch *watch);
/* Watches it no longer. The memory at `watch` stays. */
void emu_server_unwatch(struct emu_server *server, int fd);
/* Stops watching; the memory at `watch` is freed at the end of the round. fd -1: nothing watches any more. */
void emu_server_bury(struct emu_server *server, int fd, struct emu_watch *watch);
/*
 * Calls those to whom something has happened; waits for that wait_ms at most, -1: for ever. Number of them or negative
 * errno; *has_seen_all_out: nobody is left to be called.
 */
int emu_server_call_watches(struct emu_server *server, int wait_ms, void (*woken)(struct emu_server *),
                            bool *has_seen_all_out);
/* For a watch that stands for several: more of them are ready than it has called in this look. */
void emu_server_has_seen_some(struct emu_server *server);

#endif
