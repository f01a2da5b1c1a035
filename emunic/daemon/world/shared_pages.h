/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Pages of memory that emunic shares with its members: they may fill them, and make emunic fill them.
 */
#ifndef EMUNIC_DAEMON_WORLD_SHARED_PAGES_H
#define EMUNIC_DAEMON_WORLD_SHARED_PAGES_H

#include <stdbool.h>
#include <stdint.h>

struct emu_member;
struct emu_server;

/* Counts what is there now. */
void emu_pages_count(struct emu_member *member);
void emu_pages_count_all(struct emu_server *server);
/* Its memory goes. */
void emu_pages_forget(struct emu_member *member);
/*
 * Promises the pages of that range of the space file that are not there yet, and adds their number to *n_promised.
 * False: that would be too many. After emu_pages_count().
 */
bool emu_pages_promise(const struct emu_server *server, struct emu_member *member, uint64_t addr, uint64_t length_bytes,
                       uint64_t *n_promised);

#endif
