/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Registrations.
 */
#ifndef EMUNIC_DAEMON_MEMORY_MEMORY_DOMAIN_H
#define EMUNIC_DAEMON_MEMORY_MEMORY_DOMAIN_H

#include "emunic/daemon/core/part.h"

extern const struct emu_part emu_memory_part;

#endif
