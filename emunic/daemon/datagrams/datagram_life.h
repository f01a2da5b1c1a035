/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Datagrams of ports.
 */
#ifndef EMUNIC_DAEMON_DATAGRAMS_DATAGRAM_LIFE_H
#define EMUNIC_DAEMON_DATAGRAMS_DATAGRAM_LIFE_H

#include "emunic/daemon/core/part.h"

extern const struct emu_part emu_datagrams_part;

#endif
