/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Where the processes of an application are.
 * Source: use by public clients (share/doc/emunic/spec/cray-runtime.md 3.3). The vendor header was not seen.
 */
#ifndef ALPS_LIBALPSUTIL_H
#define ALPS_LIBALPSUTIL_H

#include <alps/alps_toolAssist.h>
#include <netinet/in.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Placement of the caller's application. Any thread. Does not block and connects to nobody: under `emunic run` the
 * environment tells everything; elsewhere libpmi's facts are used, which may need PMI_Init() first.
 *
 * @param apid                Ignored: there is one application.
 * @param[out] layout         May be NULL, as any of the following.
 * @param[out] placementList  nid of each PE, layout->numPes entries.
 * @param[out] startPe        First PE of each program, layout->numCmds entries.
 * @param[out] totalPes       Number of PEs of each program.
 * @param[out] nodePes        Number of PEs on the node of each PE, numPes entries.
 * @param[out] peCpus         Processors of each PE, numPes entries: ALPS_APP_DEPTH, else 1.
 * @param[out] targetNids, targetPes, targetLen, targetIps  The launcher's tree, which does not exist: NULL.
 *
 * Arrays are the caller's, to be released with free().
 *
 * @retval 1  Done. (As on the original, success is 1.)
 * @retval 0  Not in a job, or not known yet; nothing is written.
 */
int alps_get_placement_info(uint64_t apid, alpsAppLayout_t *layout, int **placementList, int **targetNids,
                            int **targetPes, int **targetLen, struct in_addr **targetIps, int **startPe, int **totalPes,
                            int **nodePes, int **peCpus);

#ifdef __cplusplus
}
#endif

#endif
