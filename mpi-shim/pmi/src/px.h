/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef PMI_SRC_PX_H
#define PMI_SRC_PX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What a caller of pmii_px_*() handles itself; faults are negative errno. See px.c. */
enum pmii_px_result {
    PMII_PX_OK = 0,
    PMII_PX_MISSING, /* the key, fact or name is not there */
};

enum pmii_px_scope {
    PMII_PX_JOB,  /* every rank may read it after a collecting fence */
    PMII_PX_HOST, /* ranks of this host may read it after the commit */
};

/**
 * Connect to the launcher's server if not yet done. Under the library lock. Others call pmii_connect() (pmi_session.h).
 * @retval -ENOTCONN  No server.
 */
int pmii_px_connect(void);

/**
 * Use the connection that another library of this process (MPI) holds, as long as it holds it; nothing when there is
 * one already. Under the library lock.
 * @retval -ENXIO     There is none.
 * @retval -ENOTCONN  It is not of this job.
 */
int pmii_px_borrow(void);

/** Whether another library of this process holds a connection, or we do. Any thread. */
bool pmii_px_is_held(void);

/** Leave the server; nothing when not connected. Under the library lock, with no collective under way. */
void pmii_px_disconnect(void);

bool pmii_px_is_connected(void);

/**
 * Whether a second put of a key, of equal length, shows to ranks that have read the first. The same on all ranks.
 * With a connection.
 */
bool pmii_px_keys_are_reused(void);

/* The following need a connection. Any thread. */

int pmii_px_put(enum pmii_px_scope scope, const char *key, const void *data, size_t len_bytes);
int pmii_px_commit(void);

/** To be called before the puts of each collective; see px.c on connecting again. With the turn. Blocks. */
int pmii_px_begin_collective(void);

/** Barrier of the job; collecting: all committed data of PMII_PX_JOB is readable afterwards. Blocks. */
int pmii_px_fence(bool is_collecting);

/** The same barrier in two halves; at most one at a time, finish exactly once. */
int pmii_px_fence_start(void);
/** @retval -ENOTCONN the connection in which it was started has ended. */
int pmii_px_fence_finish(void);

/** Data that a rank put. @param[out] data_out malloc-ed, caller frees. @retval PMII_PX_MISSING no such key. */
int pmii_px_get(int rank, const char *key, void **data_out, size_t *len_bytes_out);

/** Facts of the job (rank -1) or of one rank. @retval PMII_PX_MISSING the launcher does not tell. */
int pmii_px_fact_int(int rank, const char *key, int *value_out);
int pmii_px_fact_text(int rank, const char *key, char *text_out, size_t room_bytes);

/** Name service. @param[out] port_out malloc-ed, caller frees. @retval PMII_PX_MISSING not published. */
int pmii_px_publish(const char *name, const char *port);
int pmii_px_lookup(const char *name, char **port_out);
int pmii_px_unpublish(const char *name);

/** One command of a spawn request. */
struct pmii_px_app {
    const char *program;
    const char *const *args; /* borrowed; without the program's name */
    int n_args;
    int n_procs;
    const char *work_dir; /* NULL: the launcher's choice */
    const char *host;     /* NULL: the launcher's choice */
};

/** Start a job. @param[out] name_out its PMIx namespace. */
int pmii_px_spawn(const struct pmii_px_app *apps, int n_apps, char *name_out, size_t room_bytes);

/** Ask the server to end the job. Returns when the request is made. */
void pmii_px_abort(int status, const char *message);

/** Name and version of the PMIx client library; static storage. Under the library lock. Needs no connection. */
const char *pmii_px_version(void);

#endif
