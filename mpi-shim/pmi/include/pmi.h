/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * PMI-1: how the processes of one parallel job find each other and exchange short texts.
 *
 * Including this file gives PMI-1, PMI-2 (pmi2.h) and the Cray extensions (pmi_cray.h), as several clients
 * include nothing else.
 *
 * For every call here: thread-safe; the caller keeps ownership of what it passes; texts are NUL-terminated.
 * PMI_ERR_INVALID_ARG for a NULL or negative argument; PMI_ERR_NOMEM when memory ran out;
 * PMI_FAIL when the launcher's server could not be reached or refused.
 *
 * Initialised. On the original MPI_Init brings PMI up. So it does here, when MPI uses the same libpmix as this
 * library (a distribution's Open MPI): between MPI_Init and MPI_Finalize all calls work without PMI_Init. Questions
 * about the job, its ranks, applications and nodes, and about names and limits, are answered at any time, before
 * PMI_Init and after PMI_Finalize too, as far as the environment tells (always under `emunic run` and on one host).
 * Else they, and all other calls but PMI_Init, PMI_Initialized, PMI_Finalize and PMI_Abort, return PMI_ERR_INIT
 * when PMI is not initialised.
 *
 * Collective calls must be made by all ranks in the same order. Two threads of one rank are served one after
 * the other, so concurrent collectives need an order of the program's own.
 *
 * Source: the public PMI-1 interface as its clients use it (share/doc/emunic/spec/cray-runtime.md 2.2 and 2.3). On
 * the original systems the PMI-1 key-value calls failed under aprun; here they work and share one space with PMI-2.
 */
#ifndef PMI_H
#define PMI_H

#include <pmi2.h>

#ifdef __cplusplus
extern "C" {
#endif

#define PMI_VERSION    1
#define PMI_SUBVERSION 1

/* Result of every PMI call. Numbers are the classic ones; clients compare with PMI_SUCCESS only. */
#define PMI_SUCCESS                0
#define PMI_FAIL                   (-1)
#define PMI_ERR_INIT               1 /* PMI is not initialised */
#define PMI_ERR_NOMEM              2
#define PMI_ERR_INVALID_ARG        3
#define PMI_ERR_INVALID_KEY        4 /* unknown key, or an empty one */
#define PMI_ERR_INVALID_KEY_LENGTH 5
#define PMI_ERR_INVALID_VAL        6
#define PMI_ERR_INVALID_VAL_LENGTH 7
#define PMI_ERR_INVALID_LENGTH     8 /* the caller's buffer is too short */
#define PMI_ERR_INVALID_NUM_ARGS   9
#define PMI_ERR_INVALID_ARGS       10
#define PMI_ERR_INVALID_NUM_PARSED 11
#define PMI_ERR_INVALID_KEYVALP    12
#define PMI_ERR_INVALID_SIZE       13
#define PMI_ERR_INVALID_KVS        14 /* not a key-value space of this job */
#define PMI_ERR_RANK_FAIL_STOP     15 /* never returned here; original number unknown */

/* An int: clients pass PMI_BOOL* and int* for each other. */
typedef int PMI_BOOL;
#define PMI_TRUE  1
#define PMI_FALSE 0

/* ---- start and end ---- */

/**
 * Initialise PMI, or add a user to an initialised one. Reads the environment; contacts nobody. The connection to
 * the launcher is made by the first collective, node attribute or name service call, or fact that the environment
 * does not tell.
 *
 * @param[out] spawned  1 when a PMI spawn call started this job, else 0. May be NULL.
 * @retval PMI_SUCCESS  Each success needs its own PMI_Finalize() or PMI2_Finalize().
 */
int PMI_Init(int *spawned);

/** Whether PMI is initialised: by PMI-1, PMI-2 or MPI_Init (see above). No side effect. */
int PMI_Initialized(PMI_BOOL *initialized);

/**
 * Give back one initialisation; the last one leaves the server. Does not wait for other ranks. A rank that used the
 * connection and exits without this call counts as failed at the launcher, as under ALPS. PMI may be initialised
 * again; there is a small chance that collectives then fail (README.md, "Known limits").
 *
 * @retval PMI_SUCCESS  Also when PMI was not initialised.
 */
int PMI_Finalize(void);

/**
 * End all ranks of the job. Works uninitialised. Does not return; buffered stdio output is lost.
 *
 * @param exit_code  Exit status (low 8 bits; 1 when they are 0, so that an abort never looks like success).
 * @param error_msg  Printed on stderr; may be NULL.
 */
int PMI_Abort(int exit_code, const char error_msg[]);

/* ---- who am I ---- */

/** Ranks in the job. */
int PMI_Get_size(int *size);
/** My rank, 0 .. size-1. */
int PMI_Get_rank(int *rank);
/** Ranks the allocation could hold; never below the job size. */
int PMI_Get_universe_size(int *size);
/** Number of my application in an MPMD launch, from 0. */
int PMI_Get_appnum(int *appnum);
/** Number of ranks on my (emulated) node, all applications. */
int PMI_Get_clique_size(int *size);
/** Ranks on my node, ascending. @retval PMI_ERR_INVALID_LENGTH length below PMI_Get_clique_size(). */
int PMI_Get_clique_ranks(int ranks[], int length);
/** Name of the process group: the job's "kvs_<number>". @retval PMI_ERR_INVALID_LENGTH buffer too short. */
int PMI_Get_id(char id_str[], int length);
/** As PMI_Get_id(): all ranks of a job share one key-value domain. */
int PMI_Get_kvs_domain_id(char id_str[], int length);
/** Bytes enough for both. */
int PMI_Get_id_length_max(int *length);

/* ---- synchronisation ---- */

/** Collective: nobody leaves before everybody has entered. All earlier key-value puts are visible afterwards. */
int PMI_Barrier(void);

/* ---- key-value spaces ---- */

/** The job's own space, shared by all ranks and with PMI-2. @retval PMI_ERR_INVALID_LENGTH buffer too short. */
int PMI_KVS_Get_my_name(char kvsname[], int length);
/** Bytes for a space's name, for a key, for a value; each including the NUL (64, 256, 4096). */
int PMI_KVS_Get_name_length_max(int *length);
int PMI_KVS_Get_key_length_max(int *length);
int PMI_KVS_Get_value_length_max(int *length);

/** Make a further space with a name unique in the job; who learns the name may use it. Local. */
int PMI_KVS_Create(char kvsname[], int length);

/** Drop this process's view of a created space. @retval PMI_ERR_INVALID_KVS job's own space, or no such name. */
int PMI_KVS_Destroy(const char kvsname[]);

/**
 * Put a pair. Local; others see it after a later PMI_Barrier(), oneself at once.
 *
 * @retval PMI_ERR_INVALID_KVS                              Name is not a space of this job.
 * @retval PMI_ERR_INVALID_KEY, PMI_ERR_INVALID_KEY_LENGTH  Key empty; above 255 characters.
 * @retval PMI_ERR_INVALID_VAL_LENGTH                       Value above 4095 characters.
 */
int PMI_KVS_Put(const char kvsname[], const char key[], const char value[]);

/** Mark puts as complete. Has no further effect: PMI_Barrier() publishes all puts. */
int PMI_KVS_Commit(const char kvsname[]);

/**
 * Look a key up. When several ranks put it, the lowest rank's value is returned. The key PMI_process_mapping of
 * the job's space is answered as by PMI2_Info_GetJobAttr().
 *
 * @retval PMI_ERR_INVALID_KEY     Nobody put it (nothing is printed).
 * @retval PMI_ERR_INVALID_LENGTH  Value too long for the buffer; value untouched.
 */
int PMI_KVS_Get(const char kvsname[], const char key[], char value[], int length);

/**
 * Walk over a space: the first pair, then the next. The order is not defined; one walk at a time per process.
 * After the last pair the call succeeds with an empty key.
 *
 * @retval PMI_ERR_INVALID_LENGTH  A buffer is too short; the walk does not move.
 * @retval PMI_FAIL                PMI_KVS_Iter_next() without PMI_KVS_Iter_first() on the same space.
 */
int PMI_KVS_Iter_first(const char kvsname[], char key[], int key_len, char val[], int val_len);
int PMI_KVS_Iter_next(const char kvsname[], char key[], int key_len, char val[], int val_len);

/* ---- names and spawn ---- */

/** Publish a port (below 256 characters) for all jobs of this launcher. @retval PMI_FAIL in use, no service. */
int PMI_Publish_name(const char service_name[], const char port[]);
/** Take a name of mine back. @retval PMI_FAIL not published by this process. */
int PMI_Unpublish_name(const char service_name[]);
/** Find a port; the buffer has 256 bytes. @retval PMI_FAIL not published. */
int PMI_Lookup_name(const char service_name[], char port[]);

/** As PMI2_Job_Spawn(); each argvs[i] ends with NULL. @retval PMI_FAIL no launcher, refused, preput pairs given. */
int PMI_Spawn_multiple(int count, const char *cmds[], const char **argvs[], const int maxprocs[],
                       const int info_keyval_sizes[], const PMI_keyval_t *info_keyval_vectors[], int preput_keyval_size,
                       const PMI_keyval_t preput_keyval_vector[], int errors[]);

/** Not implemented, PMIx has no launcher options of this kind. @retval PMI_FAIL nothing is written. */
int PMI_Parse_option(int num_args, char *args[], int *num_parsed, PMI_keyval_t **keyvalp, int *size);
int PMI_Args_to_keyval(int *argcp, char *((*argvp)[]), PMI_keyval_t **keyvalp, int *size);
int PMI_Get_options(char *str, int *length);
/** @retval PMI_SUCCESS size is 0. @retval PMI_FAIL else: no such array was ever handed out. */
int PMI_Free_keyvals(PMI_keyval_t keyvalp[], int size);

#ifdef __cplusplus
}
#endif

#include <pmi_cray.h>

#endif
