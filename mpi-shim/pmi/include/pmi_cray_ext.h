/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Further Cray extensions of PMI: the list of node ids, and maps of the XT systems.
 * General rules as in pmi_cray.h, which includes this file.
 * Source: cray-runtime.md, 2.4 and 2.7.
 */
#ifndef PMI_CRAY_EXT_H
#define PMI_CRAY_EXT_H

#include <pmi_cray.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * The node id of every rank.
 *
 * @param[out] nidlist  Library-owned array of int, one per rank; do not free. Valid as long as the process (the
 *                      original: until finalize).
 */
int PMI_Get_nidlist_ptr(void **nidlist);

/**
 * Not implemented: this library does not know Portals process ids. ARMCI builds the map by a reduction then.
 * @retval PMI_FAIL  Always; nothing is written.
 */
int PMI_CNOS_Get_nidpid_map(void **map);
int PMI_Portals_get_nidpid_map(void **map);
int PMI_Portals_get_nid(int rank, int *nid);

#ifdef __cplusplus
}
#endif

#endif
