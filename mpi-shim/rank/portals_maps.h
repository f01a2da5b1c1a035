/* SPDX-License-Identifier: BSD-3-Clause */
/* The environment of Portals' reference dialect. */
#ifndef RANK_PORTALS_MAPS_H
#define RANK_PORTALS_MAPS_H

#include <stdint.h>

/**
 * Set PTL_MY_RID, PTL_NIDMAP and PTL_PIDMAP from EMUNIC_NIDS, unless one of them is there or they would be too long.
 * @retval 0  Set, or left as they were.   @retval -ENOMEM
 */
int emu_rank_set_portals_maps(uint32_t rank);

#endif
