/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Balanced injection.
 */
#ifndef EMUNIC_DAEMON_INJECTION_INJECTION_H
#define EMUNIC_DAEMON_INJECTION_INJECTION_H

#include "emunic/daemon/core/part.h"

struct emu_server;

extern const struct emu_part emu_injection_part;

/* A throttle event: the node goes on at its limit for the time after one, if that is the lower one. */
void emu_injection_throttle(struct emu_server *server, uint32_t nid);
/* May ports of the node inject now? */
bool emu_injection_is_open(struct emu_server *server, uint32_t nid);
/* Virtual time: when it may again, ns. */
uint64_t emu_injection_open_ns(struct emu_server *server, uint32_t nid);
void emu_injection_charge(struct emu_server *server, uint32_t nid, uint64_t bytes);

#endif
