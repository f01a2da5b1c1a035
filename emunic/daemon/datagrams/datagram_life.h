/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Datagrams of ports.
 */
#ifndef EMUNIC_DAEMON_DATAGRAMS_DATAGRAM_LIFE_H
#define EMUNIC_DAEMON_DATAGRAMS_DATAGRAM_LIFE_H

#include "emunic/daemon/core/part.h"

struct emu_port_end;

extern const struct emu_part emu_datagrams_part;

/* How many the port has that were not collected. */
uint32_t emu_datagrams_count(const struct emu_port_end *port);

#endif
