/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Balanced injection.
 */
#ifndef EMUNIC_DAEMON_INJECTION_INJECTION_H
#define EMUNIC_DAEMON_INJECTION_INJECTION_H

#include <stdbool.h>
#include <stdint.h>

struct emu_connection;
struct emu_domain;
struct emu_msg_injection;
struct emu_server;

int emu_injection_get(struct emu_connection *connection, struct emu_msg_injection *injection);
int emu_injection_set(struct emu_connection *connection, struct emu_msg_injection *injection);
void emu_injection_done(struct emu_server *server, uint32_t nid, uint16_t seq);
/* A throttle event: the node goes on at its limit for the time after one, if that is the lower one. */
void emu_injection_throttle(struct emu_server *server, uint32_t nid);
/* For a new domain on nodes that are paced already. */
void emu_injection_mark(struct emu_server *server, struct emu_domain *domain);
/* May ports of the node inject now? */
bool emu_injection_is_open(struct emu_server *server, uint32_t nid);
void emu_injection_charge(struct emu_server *server, uint32_t nid, uint64_t bytes);

#endif
