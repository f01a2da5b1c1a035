/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The machine's places (emunic/abi/places.h) as others get them.
 */
#ifndef EMUNIC_DAEMON_PLACES_PLACES_H
#define EMUNIC_DAEMON_PLACES_PLACES_H

struct emu_machine;

/* Descriptor of the sealed memfd, the caller's; or negative errno. */
int emu_places_make(const struct emu_machine *machine);

#endif
