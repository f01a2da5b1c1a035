/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * p3rt.h: runtime calls of the REF dialect: rank, group, and where the ranks of the group are. The functions are in
 * libp3api; libp3rt holds nothing.
 *
 * Values set with PTL_INVALID_HANDLE, before PtlNIInit(), are for the next interface that is opened; where they
 * disagree with it, PtlNIInit() gives PTL_FAIL (nid) or PTL_PID_INVALID (pid). PTL_MY_RID, PTL_NIDMAP, PTL_PIDMAP and
 * PTL_MY_JID of the environment are what PtlSetRank(ni, -1, -1) reads, and PtlNIInit() where PTL_MY_RID is set and
 * nothing else was. (spec/portals3.md 4.11, installed as share/doc/emunic/spec/portals3.md)
 *
 * `emunic run` sets the first three, unless one of them is there already or a map has more than 32 KiB (some thousand
 * ranks): node and process id that PTL_PID_ANY gives each rank. Those bind nobody: another process id and further
 * interfaces are given, and PtlSetRank() replaces them; a map that is wrong for the own rank then is not told.
 */
#ifndef P3RT_H
#define P3RT_H

#include <portals3.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#pragma GCC visibility push(default)
#endif

/*
 * Runtime
 */

/**
 * Set the job id of interfaces that are opened from now on.
 *
 * @param[in] jid  Job id.
 * @retval PTL_OK       Set.
 * @retval PTL_NO_INIT  The library is not initialised.
 * @note Threads: any. REF only.
 * @note Source: spec/portals3.md 4.11.
 */
int PtlSetJID(ptl_jid_t jid);

/**
 * Set rank and size of the group. With -1 and -1 all comes from the environment: PTL_MY_RID (missing: rank -1, size
 * 0), PTL_NIDMAP and PTL_PIDMAP (one entry per rank, separated by colons), PTL_MY_JID (missing: the process's own
 * pid).
 *
 * @param[in] ni          Interface, or PTL_INVALID_HANDLE.
 * @param[in] rank        Rank.
 * @param[in] group_size  Ranks.
 * @retval PTL_OK           Set.
 * @retval PTL_NO_INIT      The library is not initialised.
 * @retval PTL_NI_INVALID   ni is neither an interface nor PTL_INVALID_HANDLE.
 * @retval PTL_FAIL         The map's nid of that rank is not the interface's; or map or rank are set already (not by
 *                          `emunic run`).
 * @retval PTL_PID_INVALID  The map's pid of that rank is not the interface's.
 * @note Threads: any. REF only.
 * @note Source: spec/portals3.md 4.11.
 */
int PtlSetRank(ptl_handle_ni_t ni, unsigned rank, unsigned group_size);

/**
 * Set the node ids of all ranks. The rank has to be set before.
 *
 * @param[in] ni    Interface, or PTL_INVALID_HANDLE.
 * @param[in] map   One entry per rank; copied.
 * @param[in] size  Entries.
 * @retval PTL_OK          Set.
 * @retval PTL_NO_INIT     The library is not initialised, or the rank is not set.
 * @retval PTL_NI_INVALID  ni is neither an interface nor PTL_INVALID_HANDLE.
 * @retval PTL_FAIL        The entry of the own rank is not the interface's nid.
 * @retval PTL_SEGV        map is NULL and size is not 0.
 * @note Threads: any. REF only.
 * @note Source: spec/portals3.md 4.11.
 */
int PtlSetNIDMap(ptl_handle_ni_t ni, ptl_nid_t *map, unsigned size);

/**
 * Set the process ids of all ranks. The rank has to be set before.
 *
 * @param[in] ni    Interface, or PTL_INVALID_HANDLE.
 * @param[in] map   One entry per rank; copied.
 * @param[in] size  Entries.
 * @retval PTL_OK           Set.
 * @retval PTL_NO_INIT      The library is not initialised, or the rank is not set.
 * @retval PTL_NI_INVALID   ni is neither an interface nor PTL_INVALID_HANDLE.
 * @retval PTL_PID_INVALID  The entry of the own rank is not the interface's pid.
 * @retval PTL_SEGV         map is NULL and size is not 0.
 * @note Threads: any. REF only.
 * @note Source: spec/portals3.md 4.11.
 */
int PtlSetPIDMap(ptl_handle_ni_t ni, ptl_pid_t *map, unsigned size);

/**
 * Rank and size of the group.
 *
 * @param[in]  ni          Interface.
 * @param[out] rank        Rank.
 * @param[out] group_size  Ranks.
 * @retval PTL_OK          Stored.
 * @retval PTL_NO_INIT     The library is not initialised, or the rank was never set.
 * @retval PTL_NI_INVALID  ni is no interface.
 * @retval PTL_SEGV        rank or group_size is NULL.
 * @note Threads: any. REF only.
 * @note Source: spec/portals3.md 4.11.
 */
int PtlGetRank(ptl_handle_ni_t ni, unsigned *rank, unsigned *group_size);

/**
 * Address of a rank.
 *
 * @param[in]  ni    Interface.
 * @param[in]  rank  Rank.
 * @param[out] id    Its address.
 * @retval PTL_OK          Stored.
 * @retval PTL_NO_INIT     The library is not initialised, or the maps have no such rank.
 * @retval PTL_NI_INVALID  ni is no interface.
 * @retval PTL_SEGV        id is NULL.
 * @note Threads: any. REF only.
 * @note Source: spec/portals3.md 4.11.
 */
int PtlGetRankId(ptl_handle_ni_t ni, unsigned rank, ptl_process_id_t *id);

/**
 * Copies of the maps: PtlGetNIDMap() of node ids, PtlGetPIDMap() of process ids.
 *
 * @param[in]  ni    Interface.
 * @param[out] map   Gets the first `size` entries, or as many as there are.
 * @param[in]  size  Room, entries.
 * @retval PTL_OK          Stored.
 * @retval PTL_NO_INIT     The library is not initialised, or there is no map.
 * @retval PTL_NI_INVALID  ni is no interface.
 * @retval PTL_SEGV        map is NULL.
 * @note Threads: any. REF only.
 * @note Source: spec/portals3.md 4.11; codes by analogy with PtlGetRank().
 */
int PtlGetNIDMap(ptl_handle_ni_t ni, ptl_nid_t *map, unsigned size);
int PtlGetPIDMap(ptl_handle_ni_t ni, ptl_pid_t *map, unsigned size);

#if defined(__GNUC__)
#pragma GCC visibility pop
#endif

#ifdef __cplusplus
}
#endif

#endif /* P3RT_H */
