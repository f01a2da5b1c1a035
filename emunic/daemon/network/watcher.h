/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The network watcher of Gemini machines: its log of what links did.
 */
#ifndef EMUNIC_DAEMON_NETWORK_WATCHER_H
#define EMUNIC_DAEMON_NETWORK_WATCHER_H

#include <jansson.h>
#include <stdint.h>

struct emu_server;
struct emu_watcher;

/* A link has lost lanes for good. On machines without such a log nothing happens. */
void emu_watcher_lose_lanes(struct emu_server *server, uint32_t link, uint32_t lane_mask);
/* Writes the lines that are due. */
void emu_watcher_round(struct emu_server *server);
/* When the next line is due; UINT64_MAX: none. */
uint64_t emu_watcher_next_ns(const struct emu_server *server);
/* The newest lines, oldest first: an array of texts. */
json_t *emu_watcher_lines(const struct emu_server *server);
void emu_watcher_destroy(struct emu_server *server);

#endif
