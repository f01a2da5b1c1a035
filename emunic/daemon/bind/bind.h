/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The processors that emunic itself runs on, kept away from those of its ranks (emunic/place tells which).
 */
#ifndef EMUNIC_DAEMON_BIND_BIND_H
#define EMUNIC_DAEMON_BIND_BIND_H

#include <stdbool.h>
#include <stddef.h>

#include "emunic/daemon/core/part.h"

/* "auto", "none", or a list of processors as "0-3,8"? */
bool emu_bind_is_valid(const char *text);

/* Where emunic runs. It looks when the transport is open, because the device counts, and before there are members. */
extern const struct emu_part emu_bind_part;

#endif
