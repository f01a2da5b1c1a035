/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Cray's extensions of PMI: collectives on binary data, the job's shape, node numbers.
 *
 * For every call here: thread-safe; PMI_ERR_INVALID_ARG for a NULL or out-of-range argument, PMI_FAIL when the
 * launcher's server could not be reached. Collectives need an initialised PMI (else PMI_ERR_INIT), as pmi.h
 * says. Questions about the job and its nodes do not, because the vendor's library is initialised by its
 * constructor and clients (topology helpers in MPI programs) rely on that.
 *
 * A node is an emulated node: ranks with equal nid. Under our launcher the nids come from EMUNIC_NIDS; else
 * from host names of the form nidNNNNN; else from the launcher's node index.
 *
 * Source: use by public clients (share/doc/emunic/spec/cray-runtime.md 2.4). Prototypes of the vendor header were
 * not seen.
 */
#ifndef PMI_CRAY_H
#define PMI_CRAY_H

#include <pmi.h>
#include <pmi2.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef uint16_t pmi_nid_t;

/**
 * Place of a node's network chip, by machine: XC (Aries): group, chassis in the group, slot. XE (Gemini), XT (SeaStar),
 * Blue Gene/L: x, y, z of the torus or mesh. X1: vertex of the hypercube, node in it, 0. XD1: chassis, node in it, 0.
 */
typedef struct pmi_mesh_coord {
    unsigned int mesh_x;
    unsigned int mesh_y;
    unsigned int mesh_z;
} pmi_mesh_coord_t;

/** Version of the vendor's library that this one stands for (5.0.14). Each pointer may be NULL. Never fails. */
int PMI_Get_version_info(int *major, int *minor, int *revision);

/* ---- collectives ---- */

/**
 * Collective: every rank gets every rank's block.
 *
 * @param in        My block; may be its own place in out, must not overlap out otherwise.
 * @param[out] out  len * size bytes. All ranks see one order, the same in every call of the job. It is rank
 *                  order, unless EMUNIC_PMI_PERMUTE=SEED asks for a shuffled one (to find programs that count
 *                  on it).
 * @param len       Bytes; equal on all ranks, 0 allowed.
 * @retval PMI_FAIL  Some block did not arrive or had another length; out is undefined. May differ between ranks.
 * @note Large blocks move in pieces of 32 KiB, each with a fence of its own.
 */
int PMI_Allgather(void *in, void *out, int len);

/**
 * Collective: as PMI_Allgather() with a length per rank.
 *
 * @param len       Bytes in my block.
 * @param all_lens  Length of each block, indexed by rank, equal on all ranks; all_lens[my rank] == len.
 * @param[out] out  The blocks one after the other in PMI_Allgather()'s order, which need not be rank order.
 */
int PMI_Allgatherv(void *in, int len, void *out, int *all_lens);

/** Collective: copy rank 0's buffer to all. Returns when mine is filled. @retval PMI_FAIL as PMI_Allgather(). */
int PMI_Bcast(void *buf, int len);

/** Collective: enter a barrier and return. One at a time. @retval PMI_FAIL one is already open. */
int PMI_Ibarrier(void);
/** Wait until all ranks have entered the open barrier; then as after PMI_Barrier(). @retval PMI_FAIL none open. */
int PMI_Wait(void);
/** An ordinary PMI_Barrier(). The vendor's knows checkpoints; its arguments are not known. */
int PMI_CPR_Barrier(void);

/* ---- applications of an MPMD launch; with one program: 0, 0, job size, 1 ---- */

/** My rank among the ranks of my application. */
int PMI_Get_rank_in_app(int *rank);
/** Lowest rank of my application. */
int PMI_Get_base_rank_in_app(int *rank);
/** Ranks of an application. @retval PMI_ERR_INVALID_ARG no such application. */
int PMI_Get_app_size(int appnum, int *size);
/** Number of applications. */
int PMI_Get_num_apps(int *num_apps);
/** Number of ranks of my application on my node. */
int PMI_Get_numpes_in_app_on_smp(int *num);
/** These ranks (numbers in the job), ascending. @retval PMI_ERR_INVALID_LENGTH num too small. */
int PMI_Get_pes_in_app_on_smp(int *ranks, int num);

/* ---- nodes ---- */

/** Number of ranks on my node, all applications. */
int PMI_Get_numpes_on_smp(int *num);
/** These ranks, ascending. @retval PMI_ERR_INVALID_LENGTH num too small. */
int PMI_Get_pes_on_smp(int *ranks, int num);

/** Node id of a rank. */
int PMI_Get_nid(int rank, int *nid);

/**
 * Network coordinate of a node of the emulated machine. Four nodes of an Aries share one, two of a Gemini.
 *
 * @retval PMI_ERR_INVALID_ARG  The machine has no such node, or xyz is NULL.
 * @note The first call asks emunic (EMUNIC_SERVER); later ones and other processes of the host read what it has given.
 *       Without an emunic: the XC numbering rule, by which any nid has a coordinate, with EMUNIC_CABINET_COLUMNS (2)
 *       cabinets per row. nids above 65535 do not fit the type.
 */
int PMI_Get_meshcoord(pmi_nid_t nid, pmi_mesh_coord_t *xyz);

/**
 * Largest coordinate per axis of the machine. Without an emunic: of a full XC group in Y and Z, of the job's highest
 * nid in X.
 */
int PMI_Get_max_dimension(pmi_mesh_coord_t *xyz);

/* ---- aliases that the 5.0 library exports. Flux takes PMI_CRAY_Get_app_size as the sign of Cray's library ---- */

int PMI_CRAY_Get_base_rank_in_app(int *rank);
int PMI_CRAY_Get_app_size(int appnum, int *size);
int PMI_CRAY_Get_num_apps(int *num_apps);
int PMI_CRAY_Get_rank_in_app(int *rank);

struct hostent;
/** gethostbyname(3), with its rules. The vendor's prototype is not known. */
struct hostent *PMI_CRAY_gethostbyname(const char *name);

#ifdef __cplusplus
}
#endif

#include <pmi_cray_ext.h>

#endif
