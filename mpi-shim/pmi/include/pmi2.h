/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * PMI-2: how the processes of one parallel job find each other and exchange short texts.
 *
 * In this library PMI-1 (pmi.h), PMI-2 and the Cray extensions (pmi_cray.h) are one object with one state: an
 * initialisation through either counts for both, and both see the same key-value space.
 *
 * For every call here: thread-safe; the caller keeps ownership of what it passes; texts are NUL-terminated and
 * may hold any byte but NUL. "Local" means: no message leaves the process. Lengths of buffers are bytes
 * including the NUL. PMI2_ERR_INVALID_ARG comes back for a NULL or negative argument; PMI2_ERR_NOMEM when memory ran
 * out; PMI2_FAIL when the launcher's server could not be reached or refused; PMI2_ERR_INIT when PMI is not
 * initialised, by the rules in pmi.h: MPI_Init initialises it too, and who only asks (PMI2_Job_GetId,
 * PMI2_Job_GetRank, PMI2_Info_GetSize, PMI2_Info_GetJobAttr...) need not.
 *
 * Source: the public PMI-2 interface as its clients use it (share/doc/emunic/spec/cray-runtime.md 2.2 and 2.3).
 */
#ifndef PMI2_H
#define PMI2_H

#ifdef __cplusplus
extern "C" {
#endif

#define PMI2_VERSION    2
#define PMI2_SUBVERSION 0

/* Result of every PMI2 call. Numbers are the classic ones; clients compare with PMI2_SUCCESS only. */
#define PMI2_SUCCESS                0
#define PMI2_FAIL                   (-1)
#define PMI2_ERR_INIT               1 /* PMI is not initialised */
#define PMI2_ERR_NOMEM              2
#define PMI2_ERR_INVALID_ARG        3
#define PMI2_ERR_INVALID_KEY        4 /* unknown key, or an empty one */
#define PMI2_ERR_INVALID_KEY_LENGTH 5
#define PMI2_ERR_INVALID_VAL        6
#define PMI2_ERR_INVALID_VAL_LENGTH 7
#define PMI2_ERR_INVALID_LENGTH     8 /* the caller's buffer is too short */
#define PMI2_ERR_INVALID_NUM_ARGS   9
#define PMI2_ERR_INVALID_ARGS       10
#define PMI2_ERR_INVALID_NUM_PARSED 11
#define PMI2_ERR_INVALID_KEYVALP    12
#define PMI2_ERR_INVALID_SIZE       13
#define PMI2_ERR_OTHER              14

/* Guaranteed sizes. This library accepts more: keys up to 255 and values up to 4095 characters. */
#define PMI2_MAX_KEYLEN    64
#define PMI2_MAX_VALLEN    1024
#define PMI2_MAX_ATTRVALUE 1024
#define PMI2_ID_NULL       (-1) /* source rank "anybody" for PMI2_KVS_Get */

/** One setting, as spawn and name service calls take them. Shared with PMI-1. */
typedef struct PMI_keyval_t {
    const char *key;
    char *val;
} PMI_keyval_t;
typedef PMI_keyval_t PMI2_keyval_t;

/** How two connected jobs talk; never filled in here, see PMI2_Job_Connect(). */
typedef struct PMI2_Connect_comm {
    int (*read)(void *buf, int maxlen, void *ctx);
    int (*write)(const void *buf, int len, void *ctx);
    void *ctx;
    int isMaster;
} PMI2_Connect_comm_t;

/**
 * Initialise PMI, or add a user to an initialised one. Local under Open MPI and Slurm (facts come from the
 * environment); under other launchers it asks the server. Without a launcher the job is this one process.
 *
 * @param[out] spawned  1 when a PMI spawn call started this job, else 0. Any output may be NULL.
 * @param[out] size     Ranks in the job.   @param[out] rank  My rank.   @param[out] appnum  My application.
 * @retval PMI2_SUCCESS  Each success needs its own PMI2_Finalize() or PMI_Finalize().
 * @note May follow PMI_Init() or another PMI2_Init(); the numbers are the same.
 */
int PMI2_Init(int *spawned, int *size, int *rank, int *appnum);

/** Non-zero while PMI is initialised (by PMI-1, PMI-2 or MPI_Init). No side effect. */
int PMI2_Initialized(void);

/**
 * Give back one initialisation; the last one leaves the server. Waits for a started PMI_Ibarrier().
 *
 * @retval PMI2_SUCCESS  Also when PMI was not initialised.
 */
int PMI2_Finalize(void);

/**
 * End the job (flag non-zero) or this process (0) with exit status 1. Does not return.
 *
 * @param flag  Non-zero: all ranks.   @param msg  Printed on stderr; may be NULL.
 */
int PMI2_Abort(int flag, const char msg[]);

/** Announce threads. Every call is thread-safe anyway: no effect. @retval PMI2_SUCCESS */
int PMI2_Set_threaded(int is_threaded);

/**
 * Name of this job and of its key-value space: "kvs_" and a decimal number below 2^31, a hash of the PMIx name.
 *
 * @retval PMI2_ERR_INVALID_LENGTH  jobid_size too short (16 is enough).
 */
int PMI2_Job_GetId(char jobid[], int jobid_size);

/** My rank, 0 .. size-1. Local. */
int PMI2_Job_GetRank(int *rank);

/**
 * Number of ranks in the job.
 * @note The public texts disagree (job or node); the job is meant here, as in Slurm's library. The node has
 *       PMI_Get_numpes_on_smp().
 */
int PMI2_Info_GetSize(int *size);

/**
 * Put a pair into the job's key-value space. Local: others see it after the next fence or barrier, oneself at once.
 * A second put of one key by the same rank replaces the value.
 *
 * @retval PMI2_ERR_INVALID_KEY, PMI2_ERR_INVALID_KEY_LENGTH  Key empty; above 255 characters.
 * @retval PMI2_ERR_INVALID_VAL_LENGTH                        Value above 4095 characters.
 */
int PMI2_KVS_Put(const char key[], const char value[]);

/** Collective: publish all puts, and a true barrier: nobody leaves before everybody has entered. */
int PMI2_KVS_Fence(void);

/**
 * Look a key up among the pairs of the last fence or barrier and my own. Local.
 *
 * @param jobid       NULL, "" or PMI2_Job_GetId()'s text: this job. Other jobs' spaces are never found.
 * @param src_pmi_id  Rank that put it, or PMI2_ID_NULL. A hint: preferred when several ranks put the key.
 * @param[out] value  Text with NUL.   @param maxvalue  Bytes in value.
 * @param[out] vallen Characters without NUL; minus the needed bytes when maxvalue is too small. May be NULL.
 * @retval PMI2_ERR_INVALID_KEY     Nobody put it (nothing is printed).
 * @retval PMI2_ERR_INVALID_LENGTH  Value too long for the buffer; value untouched.
 */
int PMI2_KVS_Get(const char *jobid, int src_pmi_id, const char key[], char value[], int maxvalue, int *vallen);

/**
 * Give the ranks of my node a pair; they see it without a fence. The first value of a name stays, later ones are
 * ignored. A node here is an emulated node (equal nid), which never spans hosts. Gone for others when I finalize.
 * Errors as PMI2_KVS_Put().
 *
 * @retval PMI2_FAIL  Also when this rank has put about 16 KiB of such pairs.
 */
int PMI2_Info_PutNodeAttr(const char name[], const char value[]);

/**
 * Read a pair of my node. When several ranks put it, the lowest one's value is taken (and kept by this process).
 *
 * @param[out] found     1 or 0; may be NULL, then "not found" is PMI2_ERR_INVALID_KEY.
 * @param waitfor  Non-zero: block until some rank of the node has put it (asks again every 1 to 16 ms).
 * @retval PMI2_ERR_INVALID_LENGTH  valuelen too small; value untouched, *found 1.
 */
int PMI2_Info_GetNodeAttr(const char name[], char value[], int valuelen, int *found, int waitfor);

/**
 * Read a pair of my node as integers: the text must be decimal numbers separated by commas. Never blocks.
 *
 * @param[out] outlen  Numbers in the text; the first arraylen of them are stored.
 * @param[out] found   0 when there is no such pair or it is not such a list.
 */
int PMI2_Info_GetNodeAttrIntArray(const char name[], int array[], int arraylen, int *outlen, int *found);

/**
 * Read a fact of the job. Known names: PMI_process_mapping, the text "(vector,(b,n,c),...)" (from node b on, n
 * nodes with the next c ranks each); universeSize, decimal.
 *
 * @param[out] found  1 or 0 (unknown name); may be NULL.
 * @retval PMI2_ERR_INVALID_LENGTH  valuelen too small; value untouched, *found 1.
 */
int PMI2_Info_GetJobAttr(const char name[], char value[], int valuelen, int *found);

/** As PMI2_Info_GetNodeAttrIntArray(), for facts of the job: universeSize. */
int PMI2_Info_GetJobAttrIntArray(const char name[], int array[], int arraylen, int *outlen, int *found);

/**
 * Publish a port text under a service name, for all jobs of this launcher; without a launcher for this process.
 *
 * @param info_ptr  Ignored; may be NULL.
 * @retval PMI2_FAIL  Name in use, or the launcher offers no name service.
 */
int PMI2_Nameserv_publish(const char service_name[], const PMI_keyval_t *info_ptr, const char port[]);

/** Find a port. @retval PMI2_ERR_INVALID_KEY not published. @retval PMI2_ERR_INVALID_LENGTH buffer too short. */
int PMI2_Nameserv_lookup(const char service_name[], const PMI_keyval_t *info_ptr, char port[], int port_len);

/** Take a name of mine back. @retval PMI2_FAIL not published by this process. */
int PMI2_Nameserv_unpublish(const char service_name[], const PMI_keyval_t *info_ptr);

/**
 * Start a new job of count commands through the launcher (PMIx_Spawn). Blocks until it is started.
 *
 * @param cmds, argcs, argvs, maxprocs  Per command: program, arguments without the program's name, ranks wanted.
 *        argvs or one of its entries may be NULL.
 * @param info_keyval_sizes, info_keyval_vectors  Per command; keys "wdir" and "host" are passed on, others ignored.
 * @param preput_keyval_size  Must be 0.
 * @param[out] jobid   The new job's name; may be NULL.   @param[out] errors  Per command; may be NULL.
 * @retval PMI2_FAIL  No launcher, launcher refused, or preput pairs given: PMIx cannot fill a key-value space of
 *         a job before it starts.
 * @note The vendor's prototype before 2023 has PMI_keyval_t, as here; MPICH had struct MPID_Info.
 */
int PMI2_Job_Spawn(int count, const char *cmds[], int argcs[], const char **argvs[], const int maxprocs[],
                   const int info_keyval_sizes[], const PMI_keyval_t *info_keyval_vectors[], int preput_keyval_size,
                   const PMI_keyval_t *preput_keyval_vector[], char jobid[], int jobid_size, int errors[]);

/** Not implemented: a job name cannot be turned back into a PMIx job. @retval PMI2_FAIL */
int PMI2_Job_Connect(const char jobid[], PMI2_Connect_comm_t *conn);

/** Not implemented, as PMI2_Job_Connect(). @retval PMI2_FAIL */
int PMI2_Job_Disconnect(const char jobid[]);

#ifdef __cplusplus
}
#endif

#endif
