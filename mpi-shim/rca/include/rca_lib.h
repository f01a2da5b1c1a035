/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which node is this, and where is it: Cray's RCA library over the emulated machine.
 *
 * Places are those of the emulated machine, which emunic (EMUNIC_SERVER) tells once to a process; which node this is
 * comes from libpmi. Without an emunic: the XC numbering rule (share/doc/emunic/spec/cray-runtime.md 4.2), a
 * function of the nid and of the cabinets in one row (EMUNIC_CABINET_COLUMNS; 2 without), and the job's nodes.
 *
 * All calls: any thread; 0 is success, -1 failure; nothing is written on failure. Not provided: rca_get_meshtopology(),
 * whose prototype is not known, and events.
 * Source: use by public clients (spec/cray-runtime.md 4.1). The vendor headers were not seen.
 */
#ifndef RCA_LIB_H
#define RCA_LIB_H

#include <rs_id.h>
#include <rs_meshcoord.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * The node of this process. @retval -1 node is NULL, or libpmi does not know (outside `emunic run`, before PMI_Init).
 */
int rca_get_nodeid(rs_node_t *node);

/**
 * Coordinate of a node: see rs_meshcoord.h.
 *
 * @param nid  The original takes 16 bits; here nids up to 2^18 - 1 can have a coordinate.
 * @retval -1  No such nid, or xyz is NULL.
 */
int rca_get_meshcoord(uint32_t nid, rca_mesh_coord_t *xyz);

/**
 * Largest coordinate per axis of the machine. Without an emunic: of a full group in Y and Z, of the job's highest nid
 * in X. @retval -1 xyz is NULL; without an emunic also as rca_get_nodeid().
 */
int rca_get_max_dimension(rca_mesh_coord_t *xyz);

/**
 * The nodes of the machine, ascending, all ready; without an emunic those of this job.
 *
 * @param[out] nodes  na_ids is the caller's, to be released with free().
 * @retval -1  nodes is NULL, or out of memory; without an emunic also as rca_get_nodeid().
 */
int rca_get_sysnodes(rs_node_array_t *nodes);

#ifdef __cplusplus
}
#endif

#endif
