/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Commands of other hosts for nodes here. On the server's thread.
 */
#ifndef EMUNIC_DAEMON_VISIT_H
#define EMUNIC_DAEMON_VISIT_H

#include <stdbool.h>
#include <stdint.h>

struct emu_server;

/* Does it and answers. False: the message makes no sense. */
bool emu_visit_host_message(struct emu_server *server, uint32_t host, const uint8_t *bytes, uint32_t length_bytes);

#endif
