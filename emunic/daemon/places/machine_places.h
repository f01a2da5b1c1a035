/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The machine's places (emunic/abi/places.h) as others get them, and what kind of machine it is.
 */
#ifndef EMUNIC_DAEMON_PLACES_MACHINE_PLACES_H
#define EMUNIC_DAEMON_PLACES_MACHINE_PLACES_H

#include "emunic/daemon/core/part.h"

extern const struct emu_part emu_places_part;

#endif
