/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * cnos: what the XT systems told an application about its job, and how its ranks found each other for Portals.
 *
 * Link with libpmi (cray-pmi), which has the map calls of PMI too (pmi_cray_ext.h). No call needs PMI_Init. Works with
 * both dialects of Portals: that of the header included before this one, else of the <portals/portals3.h> that is
 * found.
 *
 * The map. Entry r is the Portals address of rank r: the node of its rank, and the process id that PtlNIInit() gives
 * rank r for PTL_PID_ANY, which is r in every job of `emunic run`. So it is there before the first PtlNIInit() and
 * before any barrier. A rank that opens its interface with a process id of its own choice tells it with
 * cnos_register_ptlid(); the others see it after the next cnos_barrier(), PMI_Barrier() or other fence of all ranks.
 *
 * For every call here: thread-safe.
 * Source: use by public clients (share/doc/emunic/spec/portals3.md 2.11, spec/cray-runtime.md 1.2 and 2.7).
 * Prototypes of the vendor's header were not seen; cnos_get_nnodes(), cnos_shmem_size() and the values of
 * cnos_launcher() are not confirmed.
 */
#ifndef CNOS_MPI_OS_H
#define CNOS_MPI_OS_H

#ifndef PTL_NID_ANY
#include <portals/portals3.h>
#endif
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Address of a rank. Lies in memory as ptl_process_id_t does, in both dialects: clients use it as either. */
typedef struct cnos_nidpid_map {
    unsigned int nid;
    unsigned int pid;
} cnos_nidpid_map_t;

/** My rank in the job, 0 without one. */
int cnos_get_rank(void);
/** Ranks in the job. @return -1 when only the launcher's server knows and PMI is not initialised (pmi.h). */
int cnos_get_size(void);
/** Different nodes that the ranks are on. @return -1 as cnos_get_size(). */
int cnos_get_nnodes(void);

/**
 * The map: one entry per rank.
 *
 * @param[out] map  Library-owned, do not free; one array for the life of the process, brought up to date by each call.
 * @return Number of entries; -1 as cnos_get_size(), without memory, or for NULL.
 */
int cnos_get_nidpid_map(cnos_nidpid_map_t **map);

/**
 * Tell the map my address. Local; the others see it after the next barrier.
 * @return 0; -1 without memory.
 */
int cnos_register_ptlid(ptl_process_id_t id);

/** Nothing is to be prepared: barriers do not go through the interface. @return 0. */
int cnos_barrier_init(ptl_handle_ni_t ni);

/**
 * Wait for all ranks. The first one initialises PMI, for the rest of the process: exit() gives it back. Who leaves
 * with _exit() after it counts as failed at the launcher.
 * @return 0; -1 when the launcher's server cannot be reached.
 */
int cnos_barrier(void);

/* Who started the job. */
#define CNOS_LAUNCHER_YOD  1 /* Catamount's */
#define CNOS_LAUNCHER_ALPS 2 /* that of compute node Linux, which stands for ours */

/** @return CNOS_LAUNCHER_ALPS: programs then take the interface PTL_IFACE_SS behind the bridge PTL_BRIDGE_UK. */
int cnos_launcher(void);

/** Bytes of the symmetric heap that XT_SYMMETRIC_HEAP_SIZE asks for (a number, then K, M, G or nothing); else 0. */
size_t cnos_shmem_size(void);

#ifdef __cplusplus
}
#endif

#endif
