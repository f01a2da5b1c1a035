/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Error subscriptions of a device that makes no asynchronous reports.
 *
 * Whatever goes wrong in the emulated NIC is told with the transaction it happened to, so the queue of a
 * subscription stays empty. The subscription itself is real: it can be made, asked for its mask, waited on and
 * released.
 *
 *   free --GNI_SubscribeErrors--> live, 0 waiters --GNI_WaitErrorEvents--> live, n waiters
 *     ^                             |    ^                                     |
 *     +------GNI_ReleaseErrors------+    +------cancelled (pthread_cancel)-----+
 *
 * GNI_WaitErrorEvents() blocks for ever. That is the documented behaviour with nothing to report, and an error
 * instead would make the known user spin: it calls again at once, whatever the code. The only way out is
 * cancellation of the thread; a cleanup handler then takes it off the count and gives the lock back. A waiting
 * thread makes GNI_ReleaseErrors() answer GNI_RC_NOT_DONE, so a subscription never goes away under a waiter.
 *
 * Live subscriptions stand in one list under one lock, which makes a stale handle GNI_RC_INVALID_PARAM instead of
 * a crash; none of this is on a fast path. The NIC handle must be live but is not kept. The privileged
 * forms, a NULL NIC handle and GNI_SetErrorPtag(), are refused to everybody; job.c says why. Source: uGNI spec
 * 2.18, 3.8, 4.13.
 */
#include <pthread.h>
#include <stdlib.h>

#include "libugni/src/ugni.h"

struct gni_err {
    struct gni_err *next;  /* in live_list */
    gni_error_mask_t mask;
    unsigned n_waiters;    /* threads inside GNI_WaitErrorEvents() */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t report_came = PTHREAD_COND_INITIALIZER; /* never signalled: no reports are made */
static struct gni_err *live_list;                             /* owned; guarded by lock, as all of its elements */

/* The link that leads to err, or NULL if it is not live. Call with the lock held. */
static struct gni_err **find_live(gni_err_handle_t err)
{
    for (struct gni_err **link = &live_list; *link != NULL; link = &(*link)->next) {
        if (*link == err)
            return link;
    }
    return NULL;
}

gni_return_t GNI_SubscribeErrors(gni_nic_handle_t nic_handle, uint32_t device_id, gni_error_mask_t mask,
                                 uint32_t EEQ_size, gni_err_handle_t *err_handle)
{
    struct gni_err *err;

    (void)device_id; /* names the device of the privileged form */
    (void)EEQ_size;  /* an empty queue fits any size */
    if (gnii_nic_find(nic_handle) == NULL || err_handle == NULL)
        return GNI_RC_INVALID_PARAM;

    err = calloc(1, sizeof(*err));
    if (err == NULL)
        return GNI_RC_ERROR_NOMEM;
    err->mask = mask;

    pthread_mutex_lock(&lock);
    err->next = live_list;
    live_list = err;
    pthread_mutex_unlock(&lock);

    *err_handle = err;
    return GNI_RC_SUCCESS;
}

gni_return_t GNI_ReleaseErrors(gni_err_handle_t err_handle)
{
    gni_return_t rc = GNI_RC_SUCCESS;
    struct gni_err **link;

    pthread_mutex_lock(&lock);
    link = find_live(err_handle);
    if (link == NULL) {
        rc = GNI_RC_INVALID_PARAM;
    } else if (err_handle->n_waiters > 0) {
        rc = GNI_RC_NOT_DONE;
    } else {
        *link = err_handle->next;
        free(err_handle);
    }
    pthread_mutex_unlock(&lock);
    return rc;
}

gni_return_t GNI_GetErrorMask(gni_err_handle_t err_handle, gni_error_mask_t *mask)
{
    gni_return_t rc = GNI_RC_INVALID_PARAM;

    if (mask == NULL)
        return GNI_RC_INVALID_PARAM;

    pthread_mutex_lock(&lock);
    if (find_live(err_handle) != NULL) {
        *mask = err_handle->mask;
        rc = GNI_RC_SUCCESS;
    }
    pthread_mutex_unlock(&lock);
    return rc;
}

gni_return_t GNI_SetErrorMask(gni_err_handle_t err_handle, gni_error_mask_t mask_in, gni_error_mask_t *mask_out)
{
    gni_return_t rc = GNI_RC_INVALID_PARAM;

    if (mask_out == NULL)
        return GNI_RC_INVALID_PARAM;

    pthread_mutex_lock(&lock);
    if (find_live(err_handle) != NULL) {
        *mask_out = err_handle->mask;
        err_handle->mask = mask_in;
        rc = GNI_RC_SUCCESS;
    }
    pthread_mutex_unlock(&lock);
    return rc;
}

gni_return_t GNI_GetErrorEvent(gni_err_handle_t err_handle, gni_error_event_t *event)
{
    gni_return_t rc;

    if (event == NULL)
        return GNI_RC_INVALID_PARAM;

    pthread_mutex_lock(&lock);
    rc = find_live(err_handle) != NULL ? GNI_RC_NOT_DONE : GNI_RC_INVALID_PARAM;
    pthread_mutex_unlock(&lock);
    return rc;
}

/* Runs when a waiting thread is cancelled; pthread_cond_wait() has taken the lock again by then. */
static void leave_wait(void *arg)
{
    struct gni_err *err = arg;

    err->n_waiters--;
    pthread_mutex_unlock(&lock);
}

gni_return_t GNI_WaitErrorEvents(gni_err_handle_t err_handle, gni_error_event_t *events, uint32_t events_size,
                                 uint32_t timeout, uint32_t *num_events)
{
    int old_type;

    (void)timeout; /* time to collect more after a first report */
    if (events == NULL || events_size == 0 || num_events == NULL)
        return GNI_RC_INVALID_PARAM;

    /* A program may use asynchronous cancellation: it must not strike between lock and wait. */
    pthread_setcanceltype(PTHREAD_CANCEL_DEFERRED, &old_type);
    pthread_mutex_lock(&lock);
    if (find_live(err_handle) == NULL) {
        pthread_mutex_unlock(&lock);
        pthread_setcanceltype(old_type, NULL);
        return GNI_RC_INVALID_PARAM;
    }

    err_handle->n_waiters++;
    pthread_cleanup_push(leave_wait, err_handle);
    for (;;)
        pthread_cond_wait(&report_came, &lock);
    pthread_cleanup_pop(1);
}

gni_return_t GNI_SetErrorPtag(gni_err_handle_t err_handle, uint8_t ptag)
{
    gni_return_t rc;

    (void)ptag;
    pthread_mutex_lock(&lock);
    rc = find_live(err_handle) != NULL ? GNI_RC_PERMISSION_ERROR : GNI_RC_INVALID_PARAM;
    pthread_mutex_unlock(&lock);
    return rc;
}
