/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What programs ask about the resources of a node's NIC.
 */
#ifndef EMUNIC_DAEMON_RESOURCES_RESOURCES_H
#define EMUNIC_DAEMON_RESOURCES_RESOURCES_H

#include "emunic/daemon/core/part.h"

extern const struct emu_part emu_resources_part;

#endif
