/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Commands of other hosts for nodes here. On the server's thread.
 */
#ifndef EMUNIC_DAEMON_COMMANDS_VISIT_H
#define EMUNIC_DAEMON_COMMANDS_VISIT_H

#include <stdbool.h>
#include <stdint.h>

struct emu_domain;
struct emu_server;

int emu_visit_create(struct emu_server *server);
/* When the transport is closed. */
void emu_visit_destroy(struct emu_server *server);

/* Does it, or begins to, and answers in the end. False: the message makes no sense. */
bool emu_visit_host_message(struct emu_server *server, uint32_t host, const uint8_t *bytes, uint32_t length_bytes);
/* The data of a part in bulk have been moved, or not. */
void emu_visit_transfer_done(struct emu_server *server, uint64_t cookie, int result);
void emu_visit_host_down(struct emu_server *server, uint32_t host);

/* Are data being moved right now from or to the memory of that memory domain? */
bool emu_visit_holds(const struct emu_server *server, const struct emu_domain *domain, uint32_t nid, uint16_t mdh);

#endif
