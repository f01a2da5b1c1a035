/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Initialisation count, lock, and the turn of collectives.
 *
 * One mutex guards all state of the library. It is never held while waiting for another rank: a thread that
 * asks for its rank must not wait for a barrier that another thread is in. Instead a collective takes the
 * "turn" (is_busy) under the mutex, lets the mutex go, and gives the turn back at the end. State that only
 * collectives use (rounds.c) is guarded by the turn. PMIx callbacks take neither.
 *
 *   uninitialised --ref--> initialised (count 1) <--ref/unref--> count n
 *        ^                      |
 *        +------- last unref: take the turn, complete a split barrier, leave the server
 *
 * The count is shared by PMI-1 and PMI-2. On the original MPI_Init brings PMI up. Here an MPI that uses the same
 * libpmix as this library does so too: while the count is zero and MPI is up, all calls work over MPI's connection
 * (px.c), and MPI_Finalize ends that. Questions about the job need neither.
 *
 * What this process has learnt and put stays when the count reaches zero; a later initialisation goes on where
 * this one stopped.
 */
#include "mpi-shim/pmi/src/pmi_session.h"

#include "mpi-shim/pmi/include/pmi_version.h"
#include "mpi-shim/pmi/src/facts.h"
#include "mpi-shim/pmi/src/pmi_log.h"
#include "mpi-shim/pmi/src/px.h"
#include "mpi-shim/pmi/src/rounds.h"

#include <assert.h>
#include <errno.h>
#include <pmi.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static_assert(PMI_SUCCESS == PMI2_SUCCESS && PMI_FAIL == PMI2_FAIL, "one numbering");
static_assert(PMI_ERR_INIT == PMI2_ERR_INIT && PMI_ERR_INVALID_KEY == PMI2_ERR_INVALID_KEY, "one numbering");
static_assert(PMI_ERR_INVALID_SIZE == PMI2_ERR_INVALID_SIZE, "one numbering");

static struct {
    pthread_mutex_t lock;
    pthread_cond_t turn_free;
    bool is_busy;    /* [lock] a collective has the turn */
    atomic_int refs; /* changed under the lock; PMI_Initialized reads it without */
} session = { .lock = PTHREAD_MUTEX_INITIALIZER, .turn_free = PTHREAD_COND_INITIALIZER };

int pmii_rc(int result)
{
    switch (result) {
    case 0:
        return PMI_SUCCESS;
    case -ENXIO:
        return PMI_ERR_INIT;
    case -ENOMEM:
        return PMI_ERR_NOMEM;
    case -EINVAL:
        return PMI_ERR_INVALID_ARG;
    case -ENOENT:
        return PMI_ERR_INVALID_KEY;
    case -EMSGSIZE:
        return PMI_ERR_INVALID_LENGTH;
    default:
        return PMI_FAIL;
    }
}

void pmii_lock(void)
{
    pthread_mutex_lock(&session.lock);
}

void pmii_unlock(void)
{
    pthread_mutex_unlock(&session.lock);
}

int pmii_session_is_initialised(void)
{
    return session.refs > 0 || pmii_px_is_held();
}

int pmii_enter(enum pmii_need need)
{
    pmii_lock();
    if (need == PMII_INITIALISED && !pmii_session_is_initialised()) {
        pmii_unlock();
        return -ENXIO;
    }
    pmii_facts_load();
    return 0;
}

int pmii_leave(int result)
{
    pmii_unlock();
    return pmii_rc(result);
}

int pmii_connect(void)
{
    return session.refs > 0 ? pmii_px_connect() : pmii_px_borrow();
}

/* ---- the turn ---- */

/* Lock held before and after. */
static void take_turn(void)
{
    while (session.is_busy)
        pthread_cond_wait(&session.turn_free, &session.lock);
    session.is_busy = true;
}

static void give_turn(void)
{
    session.is_busy = false;
    pthread_cond_broadcast(&session.turn_free);
}

static int end_turn(int r)
{
    pmii_lock();
    give_turn();
    pmii_unlock();
    return r;
}

int pmii_collective_begin(void)
{
    int size;
    int r;

    r = pmii_enter(PMII_INITIALISED);
    if (r < 0)
        return r;
    take_turn();
    r = pmii_facts_size(&size);
    if (r == 0 && size > 1)
        r = pmii_connect();
    pmii_unlock();
    if (r < 0)
        return end_turn(r);
    pmii_split_barrier_complete();
    if (pmii_px_is_connected())
        r = pmii_px_begin_collective();
    return r < 0 ? end_turn(r) : 0;
}

int pmii_collective_end(int result)
{
    return pmii_rc(end_turn(result));
}

/* ---- init, finalize, abort ---- */

static void display_version(void)
{
    const char *wish = getenv("PMI_VERSION_DISPLAY");

    if (!wish || strcmp(wish, "") == 0 || strcmp(wish, "0") == 0 || pmii_facts_rank() != 0)
        return;
    fprintf(stderr, "PMI version %d.%d.%d (emunic on %s)\n", PMI_CRAY_VERSION_MAJOR, PMI_CRAY_VERSION_MINOR,
            PMI_CRAY_VERSION_REVISION, pmii_px_version());
}

int pmii_session_ref(void)
{
    static bool was_displayed;

    pmii_lock();
    pmii_facts_load();
    session.refs++;
    if (!was_displayed) {
        was_displayed = true;
        display_version();
    }
    pmii_unlock();
    return PMI_SUCCESS;
}

/* In a later connection the launcher's answers can be wrong (px.c). */
static void learn_while_connected(void)
{
    const int *list;
    int n;

    if (pmii_px_is_connected()) {
        pmii_facts_nids(&list);
        pmii_facts_apps(&list, &n);
    }
}

int pmii_session_unref(void)
{
    pmii_lock();
    if (session.refs == 1)
        learn_while_connected();
    if (session.refs > 0 && --session.refs == 0) {
        take_turn();
        pmii_unlock();
        pmii_split_barrier_complete();
        pmii_lock();
        if (session.refs == 0) /* else another thread has initialised meanwhile */
            pmii_px_disconnect();
        give_turn();
    }
    pmii_unlock();
    return PMI_SUCCESS;
}

_Noreturn void pmii_session_abort(int whole_job, int status, const char *message)
{
    int exit_status = status & 0xff;

    if (message && *message != '\0')
        fprintf(stderr, "%s%s", message, message[strlen(message) - 1] == '\n' ? "" : "\n");
    if (whole_job && pthread_mutex_trylock(&session.lock) == 0) {
        pmii_facts_load();
        if (!pmii_facts_is_alone())
            pmii_px_connect();
        pthread_mutex_unlock(&session.lock);
    }
    if (whole_job && pmii_px_is_connected())
        pmii_px_abort(exit_status, message ? message : "");
    _exit(exit_status);
}
