/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A watch over the pages that emunic makes in its users' names (page_watch.c).
 */
#ifndef EMUNIC_DAEMON_MEMORY_PAGE_WATCH_H
#define EMUNIC_DAEMON_MEMORY_PAGE_WATCH_H

struct emu_server;

/* In each round. Ends members of users that have too much. Number of them. */
unsigned emu_page_watch_round(struct emu_server *server);
/* 0 or -ENOMEM. */
int emu_page_watch_create(struct emu_server *server);
void emu_page_watch_destroy(struct emu_server *server);

#endif
