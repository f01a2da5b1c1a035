/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The life of ports and of their queues. They also answer what is asked of them (emu_ports_part).
 */
#ifndef EMUNIC_DAEMON_CORE_PORT_LIFE_H
#define EMUNIC_DAEMON_CORE_PORT_LIFE_H

#include "emunic/daemon/core/part.h"

extern const struct emu_part emu_ports_part;

#endif
