/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Further Cray extensions of PMI: the list of node ids, and maps of the XT systems.
 * General rules as in pmi_cray.h, which includes this file.
 * Source: share/doc/emunic/spec/cray-runtime.md 2.4 and 2.7.
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
 * The Portals address of every rank; two names of one call.
 *
 * @param[out] map  Library-owned array, one entry per rank, to be used as ptl_process_id_t or cnos_nidpid_map_t (two
 *                  32-bit numbers, nid and pid). Do not free; valid as long as the process, brought up to date by
 *                  each call. What is in it tells cnos_mpi_os.h: rank r has process id r, unless it registered
 *                  another one.
 */
int PMI_CNOS_Get_nidpid_map(void **map);
int PMI_Portals_get_nidpid_map(void **map);
/** Node id in that map. */
int PMI_Portals_get_nid(int rank, int *nid);

#ifdef __cplusplus
}
#endif

#endif
