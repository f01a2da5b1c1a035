/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Where the machine's nodes are, for libraries beside the NIC.
 */
#ifndef EMUNIC_CLIENT_PLACES_MAP_H
#define EMUNIC_CLIENT_PLACES_MAP_H

#include "emunic/abi/places.h"

/*
 * The map of the emunic that the environment names (EMUNIC_SERVER, as emunic-rank sets it), mapped once per process;
 * the first call opens a connection for it. NULL: no such emunic, or the process belongs to none. Any thread.
 */
const struct emu_places *emu_places_map(void);

#endif
