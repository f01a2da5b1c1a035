/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef PMI_SRC_SESSION_H
#define PMI_SRC_SESSION_H

/*
 * Who may be inside the library, and when. Every API function is pmii_enter() ... pmii_leave(), or, when it is
 * collective, pmii_collective_begin() ... pmii_collective_end(). See pmi_session.c.
 */

enum pmii_need {
    PMII_INITIALISED, /* only between init and finalize, of PMI or of an MPI that shares our PMIx */
    PMII_ANY_TIME,    /* also before init: a rank of a job is one from its start */
};

/** Take the library lock. @retval -ENXIO not initialised; the lock is not held. */
int pmii_enter(enum pmii_need need);

/** Release it. @return the API code for `result`. */
int pmii_leave(int result);

/**
 * Connect to the launcher's server. With the lock.
 * @retval -ENXIO     Not initialised: nobody would close the connection, and the launcher minds.
 * @retval -ENOTCONN  No server.
 */
int pmii_connect(void);

/** Take and release the lock, inside a collective. */
void pmii_lock(void);
void pmii_unlock(void);

/**
 * Become the one thread of this rank that talks to other ranks; wait for the others, complete a split barrier,
 * connect. Does not hold the lock afterwards.
 *
 * @retval -ENXIO not initialised.   @retval -ENOTCONN no server. After an error there is nothing to end.
 */
int pmii_collective_begin(void);

/** @return the API code for `result`. */
int pmii_collective_end(int result);

/** One initialisation more, one less. @return API code. */
int pmii_session_ref(void);
int pmii_session_unref(void);
int pmii_session_is_initialised(void);

/**
 * End job or process; does not return. Takes no lock that another thread could hold. Exported for libsma, whose
 * shmem_global_exit(0) is no failure; in no installed header.
 *
 * @param whole_job  0: this process alone.
 * @param status     Its low 8 bits are the status of job or process.
 * @param message    A line for stderr; may be NULL.
 */
__attribute__((visibility("default"))) _Noreturn void pmii_session_abort(int whole_job, int status,
                                                                         const char *message);

/** The one place where results become PMI codes; PMI-2 has the same numbers. */
int pmii_rc(int result);

#endif
