/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Completion: accounts of threads, gsync, syncids, waiting, progress.
 *
 * An operation that went the short way is complete when its call returns and appears in no account. So gsync is a
 * look at two words while nothing is posted.
 *
 * Each thread has an account of implicit requests, made at its first call, and its own dynamic attributes in it,
 * which begin as those of dmapp_init(). The account lives until dmapp_finalize(), because requests point to it; a
 * thread that ends leaves it to the next one, once empty. While helper or registered threads exist a gsync covers
 * the caller's account, else all: so a gsync inside a queue callback never waits for what only the main thread can
 * bring about.
 *
 * A waiting thread collects completions, lets the parts of the library (message queue) and the program's progress
 * callbacks run, and is polite by way of GNI_CqGetEvent(), which yields or rests when it finds nothing. Parts and
 * callbacks are not entered again by a thread that is inside one.
 */
#include <stdlib.h>

#include "libdmapp/src/request.h"

_Thread_local struct dmappi_thread *dmappi_thread_self;
_Thread_local uint64_t dmappi_thread_epoch;
static _Thread_local bool is_inside_progress;

#define CALLBACKS_MAX 16

static struct {
    pthread_mutex_t lock;
    unsigned n;
    struct {
        int (*call)(void *);
        void *data;
    } list[CALLBACKS_MAX];
} callbacks = { .lock = PTHREAD_MUTEX_INITIALIZER };
static _Atomic unsigned n_callbacks;

/* ---- accounts ---- */

static pthread_key_t exit_key;
static pthread_once_t exit_once = PTHREAD_ONCE_INIT;

/* A thread ends. Its account may have gone with its job. */
static void leave_account(void *arg)
{
    struct dmappi_thread *account;

    pthread_mutex_lock(&dmappi_job.lock);
    for (account = dmappi_job.threads; account && account != arg; account = account->next)
        ;
    if (account) {
        account->has_left = true;
        if (account->is_registered) {
            account->is_registered = false;
            dmappi_job.n_registered--;
            atomic_fetch_sub(&dmappi_job.n_helpers, 1);
        }
    }
    pthread_mutex_unlock(&dmappi_job.lock);
}

static void make_key(void)
{
    pthread_key_create(&exit_key, leave_account);
}

/* Runs at the first call of a thread. */
struct dmappi_thread *dmappi_thread_make(void)
{
    struct dmappi_thread *account;

    pthread_once(&exit_once, make_key);
    pthread_mutex_lock(&dmappi_job.lock);
    for (account = dmappi_job.threads; account; account = account->next) {
        if (account->has_left && atomic_load(&account->n_implicit) == 0)
            break;
    }
    if (!account) {
        account = aligned_alloc(64, (sizeof(*account) + 63) & ~(size_t)63);
        if (account) {
            *account = (struct dmappi_thread){ .next = dmappi_job.threads };
            dmappi_job.threads = account;
        }
    }
    if (account) {
        account->has_left = false;
        account->is_registered = false;
        account->offload_threshold = dmappi_job.attrs.offload_threshold;
        account->put_relaxed_ordering = dmappi_job.attrs.put_relaxed_ordering;
        account->get_relaxed_ordering = dmappi_job.attrs.get_relaxed_ordering;
    }
    pthread_mutex_unlock(&dmappi_job.lock);
    if (account) {
        dmappi_thread_self = account;
        dmappi_thread_epoch = dmappi_job.epoch;
        pthread_setspecific(exit_key, account);
    }
    return account;
}

dmapp_return_t dmapp_thread_register(void)
{
    struct dmappi_thread *self;
    dmapp_return_t rc = DMAPP_RC_SUCCESS;
    uint32_t limit = dmappi_job.attrs.max_concurrency;

    if (!dmappi_is_up())
        return DMAPP_RC_INVALID_PARAM;
    self = dmappi_thread();
    pthread_mutex_lock(&dmappi_job.lock);
    if (!self || (!self->is_registered && limit != DMAPP_MAX_THREADS_UNLIMITED && dmappi_job.n_registered >= limit)) {
        rc = DMAPP_RC_NO_SPACE;
    } else if (!self->is_registered) {
        self->is_registered = true;
        dmappi_job.n_registered++;
        atomic_fetch_add(&dmappi_job.n_helpers, 1);
    }
    pthread_mutex_unlock(&dmappi_job.lock);
    return rc;
}

dmapp_return_t dmapp_thread_unregister(void)
{
    struct dmappi_thread *self = dmappi_thread_self;

    if (!dmappi_is_up())
        return DMAPP_RC_INVALID_PARAM;
    if (dmappi_thread_epoch != dmappi_job.epoch || !self->is_registered)
        return DMAPP_RC_NOT_FOUND;
    while (atomic_load_explicit(&self->n_implicit, memory_order_acquire) > 0 && !dmappi_is_lost())
        dmappi_wait_step();
    pthread_mutex_lock(&dmappi_job.lock);
    self->is_registered = false;
    dmappi_job.n_registered--;
    atomic_fetch_sub(&dmappi_job.n_helpers, 1);
    pthread_mutex_unlock(&dmappi_job.lock);
    return DMAPP_RC_SUCCESS;
}

/* ---- progress ---- */

static void run_callbacks(void)
{
    for (unsigned i = 0; i < atomic_load_explicit(&n_callbacks, memory_order_acquire); i++) {
        int (*call)(void *) = NULL;
        void *data = NULL;

        pthread_mutex_lock(&callbacks.lock);
        if (i < callbacks.n) {
            call = callbacks.list[i].call;
            data = callbacks.list[i].data;
        }
        pthread_mutex_unlock(&callbacks.lock);
        if (call)
            call(data);
    }
}

static void run_parts(void)
{
    for (unsigned i = 0; i < dmappi_n_parts; i++) {
        if (dmappi_parts[i]->progress)
            dmappi_parts[i]->progress();
    }
}

void dmappi_wait_step(void)
{
    dmappi_collect();
    if (is_inside_progress)
        return;
    is_inside_progress = true;
    run_parts();
    run_callbacks();
    is_inside_progress = false;
}

dmapp_return_t dmapp_progress(void)
{
    if (!dmappi_is_up())
        return DMAPP_RC_INVALID_PARAM;
    dmappi_collect();
    if (!is_inside_progress) {
        is_inside_progress = true;
        run_parts();
        is_inside_progress = false;
    }
    return DMAPP_RC_SUCCESS;
}

dmapp_return_t dmapp_register_progress_cb(int (*progress_cb)(void *), void *data)
{
    dmapp_return_t rc = DMAPP_RC_SUCCESS;
    unsigned i;

    if (!dmappi_is_up() || !progress_cb)
        return DMAPP_RC_INVALID_PARAM;
    pthread_mutex_lock(&callbacks.lock);
    for (i = 0; i < callbacks.n && callbacks.list[i].call != progress_cb; i++)
        ;
    if (i == CALLBACKS_MAX) {
        rc = DMAPP_RC_NO_SPACE;
    } else {
        callbacks.list[i].call = progress_cb;
        callbacks.list[i].data = data;
        callbacks.n = i == callbacks.n ? i + 1 : callbacks.n;
        atomic_store(&n_callbacks, callbacks.n);
    }
    pthread_mutex_unlock(&callbacks.lock);
    return rc;
}

dmapp_return_t dmapp_deregister_progress_cb(int (*progress_cb)(void *))
{
    dmapp_return_t rc = DMAPP_RC_NOT_FOUND;

    if (!dmappi_is_up() || !progress_cb)
        return DMAPP_RC_INVALID_PARAM;
    pthread_mutex_lock(&callbacks.lock);
    for (unsigned i = 0; i < callbacks.n; i++) {
        if (callbacks.list[i].call != progress_cb)
            continue;
        callbacks.list[i] = callbacks.list[--callbacks.n];
        atomic_store(&n_callbacks, callbacks.n);
        rc = DMAPP_RC_SUCCESS;
        break;
    }
    pthread_mutex_unlock(&callbacks.lock);
    return rc;
}

/* Callbacks and accounts end with the job. */
static void forget(void)
{
    pthread_mutex_lock(&callbacks.lock);
    callbacks.n = 0;
    atomic_store(&n_callbacks, 0);
    pthread_mutex_unlock(&callbacks.lock);
    pthread_mutex_lock(&dmappi_job.lock);
    while (dmappi_job.threads) {
        struct dmappi_thread *next = dmappi_job.threads->next;

        free(dmappi_job.threads);
        dmappi_job.threads = next;
    }
    pthread_mutex_unlock(&dmappi_job.lock);
}

const struct dmappi_part dmappi_completion_part = {
    .name = "completion",
    .stop = forget,
};

/* ---- implicit requests ---- */

static bool is_everybodys(void)
{
    return atomic_load_explicit(&dmappi_job.n_helpers, memory_order_relaxed) == 0;
}

static const _Atomic uint64_t *count_of(const struct dmappi_thread *self, bool is_own)
{
    return is_own ? &self->n_implicit : &dmappi_job.n_implicit;
}

/* All have ended: takes the news of failures. */
static __attribute__((noinline)) dmapp_return_t take_failures(struct dmappi_thread *self, bool is_own)
{
    bool has_failed = false;
    bool is_left = false;

    pthread_mutex_lock(&dmappi_job.lock);
    for (struct dmappi_thread *t = dmappi_job.threads; t; t = t->next) {
        if (!is_own || t == self)
            has_failed |= atomic_exchange(&t->has_failed, false);
        else
            is_left |= atomic_load(&t->has_failed);
    }
    atomic_store(&dmappi_job.has_failed, is_left);
    pthread_mutex_unlock(&dmappi_job.lock);
    return has_failed ? DMAPP_RC_TRANSACTION_ERROR : DMAPP_RC_SUCCESS;
}

static inline dmapp_return_t outcome(struct dmappi_thread *self, bool is_own)
{
    return DMAPPI_UNLIKELY(atomic_load_explicit(&dmappi_job.has_failed, memory_order_relaxed)) ?
               take_failures(self, is_own) :
               DMAPP_RC_SUCCESS;
}

static inline dmapp_return_t gsync_wait(bool is_own)
{
    struct dmappi_thread *self;

    if (!dmappi_is_up())
        return DMAPP_RC_INVALID_PARAM;
    self = dmappi_thread();
    if (!self)
        return DMAPP_RC_RESOURCE_ERROR;
    while (DMAPPI_UNLIKELY(atomic_load_explicit(count_of(self, is_own), memory_order_acquire) > 0))
        dmappi_wait_step();
    return outcome(self, is_own);
}

static inline dmapp_return_t gsync_test(bool is_own, int *flag)
{
    struct dmappi_thread *self;

    if (!dmappi_is_up() || !flag)
        return DMAPP_RC_INVALID_PARAM;
    self = dmappi_thread();
    if (!self)
        return DMAPP_RC_RESOURCE_ERROR;
    if (atomic_load_explicit(count_of(self, is_own), memory_order_acquire) > 0)
        dmappi_wait_step();
    *flag = atomic_load_explicit(count_of(self, is_own), memory_order_acquire) == 0;
    return *flag ? outcome(self, is_own) : DMAPP_RC_SUCCESS;
}

dmapp_return_t dmapp_gsync_wait(void)
{
    return gsync_wait(!is_everybodys());
}

dmapp_return_t dmapp_gsync_test(int *flag)
{
    return gsync_test(!is_everybodys(), flag);
}

dmapp_return_t dmapp_thread_gsync_wait(void)
{
    return gsync_wait(true);
}

dmapp_return_t dmapp_thread_gsync_test(int *flag)
{
    return gsync_test(true, flag);
}

/* ---- explicit requests ---- */

dmapp_return_t dmapp_syncid_test(dmapp_syncid_handle_t *syncid, int *flag)
{
    int settled;

    if (!dmappi_is_up() || !syncid || !flag)
        return DMAPP_RC_INVALID_PARAM;
    if (!*syncid || *syncid == DMAPPI_SYNCID_DONE) {
        *syncid = NULL;
        *flag = 1;
        return DMAPP_RC_SUCCESS;
    }
    settled = dmappi_sync_settle(*syncid);
    if (settled == 0) {
        dmappi_wait_step();
        settled = dmappi_sync_settle(*syncid);
    }
    if (settled < 0)
        return DMAPP_RC_INVALID_PARAM;
    *flag = settled > 0;
    if (settled > 0)
        *syncid = NULL;
    return settled == 2 ? DMAPP_RC_TRANSACTION_ERROR : DMAPP_RC_SUCCESS;
}

dmapp_return_t dmapp_syncid_wait(dmapp_syncid_handle_t *syncid)
{
    dmapp_return_t rc;
    int flag = 0;

    do {
        rc = dmapp_syncid_test(syncid, &flag);
    } while (rc == DMAPP_RC_SUCCESS && !flag);
    return rc;
}

/* ---- checkpoints ---- */

dmapp_return_t dmapp_checkpoint(void)
{
    if (!dmappi_is_up())
        return DMAPP_RC_INVALID_PARAM;
    dmappi_collect();
    return atomic_load(&dmappi_job.n_posts) > 0 ? DMAPP_RC_NOT_DONE : DMAPP_RC_NOT_SUPPORTED;
}

dmapp_return_t dmapp_restart(uint32_t restart_modes)
{
    (void)restart_modes;
    return dmappi_is_up() ? DMAPP_RC_NOT_SUPPORTED : DMAPP_RC_INVALID_PARAM;
}
