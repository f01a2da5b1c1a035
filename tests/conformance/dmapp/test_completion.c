/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Syncids, gsync, threads, progress callbacks, checkpoints.
 */
#include <pthread.h>

#include "tests/conformance/dmapp/cases.h"

/* Many syncids, completed in another order than they were begun, and once more. */
/* covers: dmapp_syncid_test, dmapp_syncid_wait: DMAPP_RC_SUCCESS */
static void test_syncids_complete_in_any_order_and_may_be_asked_again(void **state)
{
    enum { N = 500 };
    uint64_t *target = dx_alloc(N * 8);
    uint64_t *source = malloc(N * 8);
    dmapp_syncid_handle_t syncids[N];

    (void)state;
    for (uint64_t i = 0; i < N; i++) {
        source[i] = i * 7;
        assert_int_equal(dmapp_put_nb(&target[i], &dx_job.sheap_seg, next_pe(), &source[i], 1, DMAPP_QW, &syncids[i]),
                         DMAPP_RC_SUCCESS);
        assert_non_null(syncids[i]);
    }
    for (unsigned i = N; i-- > 0;) {
        int flag = 0;

        if (i % 2 == 0) {
            assert_int_equal(dmapp_syncid_wait(&syncids[i]), DMAPP_RC_SUCCESS);
        } else {
            while (!flag) {
                flag = 7;
                assert_int_equal(dmapp_syncid_test(&syncids[i], &flag), DMAPP_RC_SUCCESS);
                assert_true(flag == 0 || flag == 1);
            }
        }
        assert_null(syncids[i]);
        assert_int_equal(dmapp_syncid_test(&syncids[i], &flag), DMAPP_RC_SUCCESS);
        assert_int_equal(flag, 1);
        assert_int_equal(dmapp_syncid_wait(&syncids[i]), DMAPP_RC_SUCCESS);
    }
    dx_barrier();
    for (uint64_t i = 0; i < N; i++)
        assert_int_equal(target[i], i * 7);
    dx_free(target);
    free(source);
}

/* covers: dmapp_syncid_test, dmapp_syncid_wait, dmapp_gsync_test, dmapp_thread_gsync_test: DMAPP_RC_INVALID_PARAM */
static void test_what_is_no_syncid_is_refused(void **state)
{
    dmapp_syncid_handle_t rubbish = (dmapp_syncid_handle_t)(uintptr_t)0x123456789ull;
    dmapp_syncid_handle_t aligned = (dmapp_syncid_handle_t)(uintptr_t)&rubbish;
    int flag = 5;

    (void)state;
    assert_int_equal(dmapp_syncid_test(NULL, &flag), DMAPP_RC_INVALID_PARAM);
    assert_int_equal(dmapp_syncid_test(&rubbish, NULL), DMAPP_RC_INVALID_PARAM);
    assert_int_equal(dmapp_syncid_test(&rubbish, &flag), DMAPP_RC_INVALID_PARAM);
    assert_int_equal(dmapp_syncid_test(&aligned, &flag), DMAPP_RC_INVALID_PARAM);
    assert_int_equal(dmapp_syncid_wait(NULL), DMAPP_RC_INVALID_PARAM);
    assert_int_equal(dmapp_syncid_wait(&rubbish), DMAPP_RC_INVALID_PARAM);
    assert_int_equal(dmapp_gsync_test(NULL), DMAPP_RC_INVALID_PARAM);
    assert_int_equal(dmapp_thread_gsync_test(NULL), DMAPP_RC_INVALID_PARAM);
    assert_int_equal(flag, 5);
}

/* covers: dmapp_gsync_wait, dmapp_gsync_test, dmapp_thread_gsync_wait, dmapp_thread_gsync_test: DMAPP_RC_SUCCESS */
static void test_gsync_with_nothing_outstanding_is_complete(void **state)
{
    int flag = 0;

    (void)state;
    assert_int_equal(dmapp_gsync_wait(), DMAPP_RC_SUCCESS);
    assert_int_equal(dmapp_gsync_test(&flag), DMAPP_RC_SUCCESS);
    assert_int_equal(flag, 1);
    flag = 0;
    assert_int_equal(dmapp_thread_gsync_wait(), DMAPP_RC_SUCCESS);
    assert_int_equal(dmapp_thread_gsync_test(&flag), DMAPP_RC_SUCCESS);
    assert_int_equal(flag, 1);
}

/* Implicit requests of every kind at once, until gsync_test says so. */
static void test_gsync_test_ends_and_then_all_is_there(void **state)
{
    enum { N = 300 };
    uint64_t *target = dx_alloc(N * 8);
    uint64_t *source = malloc(N * 8);
    uint64_t *back = calloc(N, 8);
    dmapp_seg_desc_t *heap = &dx_job.sheap_seg;
    int flag = 0;

    (void)state;
    for (uint64_t i = 0; i < N; i++) {
        source[i] = i + 1;
        assert_int_equal(dmapp_put_nbi(&target[i], heap, next_pe(), &source[i], 1, DMAPP_QW), DMAPP_RC_SUCCESS);
    }
    while (!flag)
        assert_int_equal(dmapp_gsync_test(&flag), DMAPP_RC_SUCCESS);
    for (uint64_t i = 0; i < N; i++) {
        if (i % 2 == 0)
            assert_int_equal(dmapp_get_nbi(&back[i], &target[i], heap, next_pe(), 1, DMAPP_QW), DMAPP_RC_SUCCESS);
        else
            assert_int_equal(dmapp_afadd_qw_nbi(&back[i], &target[i], heap, next_pe(), 1), DMAPP_RC_SUCCESS);
    }
    assert_int_equal(dmapp_gsync_wait(), DMAPP_RC_SUCCESS);
    for (uint64_t i = 0; i < N; i++)
        assert_int_equal(back[i], i + 1);
    dx_free(target);
    free(source);
    free(back);
}

/* ---- threads ---- */

enum { THREADS = 4, ADDS = 3000 };
static uint64_t *counters;

static void *add_much(void *arg)
{
    bool is_registered = *(const bool *)arg;
    int64_t old;

    if (is_registered && dmapp_thread_register() != DMAPP_RC_SUCCESS)
        return arg;
    for (unsigned i = 0; i < ADDS; i++) {
        if (dmapp_aadd_qw_nbi(&counters[i % 8], &dx_job.sheap_seg, next_pe(), 1) != DMAPP_RC_SUCCESS ||
            (i % 64 == 0 && dmapp_afadd_qw(&old, &counters[8], &dx_job.sheap_seg, next_pe(), 1) != DMAPP_RC_SUCCESS) ||
            (i % 512 == 0 && dmapp_thread_gsync_wait() != DMAPP_RC_SUCCESS))
            return arg;
    }
    if (dmapp_gsync_wait() != DMAPP_RC_SUCCESS || (is_registered && dmapp_thread_unregister() != DMAPP_RC_SUCCESS))
        return arg;
    return NULL;
}

/* covers: dmapp_thread_register, dmapp_thread_unregister: DMAPP_RC_SUCCESS */
static void test_threads_work_side_by_side(void **state)
{
    bool is_registered[2] = { true, false };
    pthread_t threads[THREADS];
    uint64_t sum = 0;

    (void)state;
    counters = dx_alloc(9 * 8);
    for (unsigned i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, add_much, &is_registered[i % 2]), 0);
    for (unsigned i = 0; i < THREADS; i++) {
        void *failed = NULL;

        pthread_join(threads[i], &failed);
        assert_null(failed);
    }
    dx_barrier();
    for (unsigned i = 0; i < 8; i++)
        sum += counters[i];
    assert_int_equal(sum, THREADS * ADDS);
    assert_int_equal(counters[8], THREADS * ((ADDS + 63) / 64));
    dx_free(counters);
}

static void *register_once(void *arg)
{
    *(dmapp_return_t *)arg = dmapp_thread_register();
    return NULL;
}

/* As many as max_concurrency says, which is 3 here; a thread that ends gives its place back. */
/* covers: dmapp_thread_register: DMAPP_RC_NO_SPACE */
/* covers: dmapp_thread_unregister: DMAPP_RC_NOT_FOUND */
static void test_registered_threads_are_counted(void **state)
{
    dmapp_return_t rc = DMAPP_RC_NOT_USED;
    pthread_t thread;

    (void)state;
    assert_int_equal(dmapp_thread_unregister(), DMAPP_RC_NOT_FOUND);
    assert_int_equal(dmapp_thread_register(), DMAPP_RC_SUCCESS);
    assert_int_equal(dmapp_thread_register(), DMAPP_RC_SUCCESS);
    for (unsigned i = 0; i < 5; i++) {
        assert_int_equal(pthread_create(&thread, NULL, register_once, &rc), 0);
        pthread_join(thread, NULL);
        assert_int_equal(rc, DMAPP_RC_SUCCESS);
    }
    assert_int_equal(dmapp_thread_unregister(), DMAPP_RC_SUCCESS);
    assert_int_equal(dmapp_thread_unregister(), DMAPP_RC_NOT_FOUND);
}

/* ---- progress ---- */

static int count_call(void *data)
{
    (*(unsigned *)data)++;
    return 0;
}

#define CALLBACK(n)                                                                                                    \
    static int callback##n(void *data)                                                                                 \
    {                                                                                                                  \
        return count_call(data);                                                                                       \
    }
/* clang-format off */
CALLBACK(0)
CALLBACK(1)
CALLBACK(2)
CALLBACK(3)
CALLBACK(4)
CALLBACK(5)
CALLBACK(6)
CALLBACK(7)
CALLBACK(8)
CALLBACK(9)
CALLBACK(10)
CALLBACK(11)
CALLBACK(12)
CALLBACK(13)
CALLBACK(14)
CALLBACK(15)
CALLBACK(16)
/* clang-format on */

/* covers: dmapp_register_progress_cb, dmapp_deregister_progress_cb: DMAPP_RC_SUCCESS, DMAPP_RC_INVALID_PARAM */
/* covers: dmapp_register_progress_cb: DMAPP_RC_NO_SPACE */
/* covers: dmapp_deregister_progress_cb: DMAPP_RC_NOT_FOUND */
/* covers: dmapp_progress: DMAPP_RC_SUCCESS */
static void test_callbacks_fill_their_table(void **state)
{
    static int (*const all[])(void *) = { callback0,  callback1,  callback2,  callback3,  callback4,  callback5,
                                          callback6,  callback7,  callback8,  callback9,  callback10, callback11,
                                          callback12, callback13, callback14, callback15, callback16 };
    unsigned calls = 0;

    (void)state;
    for (unsigned i = 0; i < 16; i++)
        assert_int_equal(dmapp_register_progress_cb(all[i], &calls), DMAPP_RC_SUCCESS);
    assert_int_equal(dmapp_register_progress_cb(all[3], &calls), DMAPP_RC_SUCCESS);
    assert_int_equal(dmapp_register_progress_cb(all[16], &calls), DMAPP_RC_NO_SPACE);
    assert_int_equal(dmapp_register_progress_cb(NULL, &calls), DMAPP_RC_INVALID_PARAM);
    assert_int_equal(dmapp_deregister_progress_cb(NULL), DMAPP_RC_INVALID_PARAM);
    assert_int_equal(dmapp_deregister_progress_cb(all[16]), DMAPP_RC_NOT_FOUND);
    for (unsigned i = 0; i < 16; i++)
        assert_int_equal(dmapp_deregister_progress_cb(all[i]), DMAPP_RC_SUCCESS);
    assert_int_equal(dmapp_deregister_progress_cb(all[0]), DMAPP_RC_NOT_FOUND);
    assert_int_equal(dmapp_progress(), DMAPP_RC_SUCCESS);
}

/* covers: dmapp_checkpoint, dmapp_restart: DMAPP_RC_NOT_SUPPORTED */
static void test_checkpoints_are_not_available(void **state)
{
    (void)state;
    assert_int_equal(dmapp_checkpoint(), DMAPP_RC_NOT_SUPPORTED);
    assert_int_equal(dmapp_restart(0), DMAPP_RC_NOT_SUPPORTED);
}

int main(void)
{
    dmapp_rma_attrs_ext_t attrs = { .max_outstanding_nb = DMAPP_DEF_OUTSTANDING_NB,
                                    .put_relaxed_ordering = DMAPP_ROUTING_ADAPTIVE,
                                    .get_relaxed_ordering = DMAPP_ROUTING_ADAPTIVE,
                                    .max_concurrency = 3 };
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_syncids_complete_in_any_order_and_may_be_asked_again),
        cmocka_unit_test(test_what_is_no_syncid_is_refused),
        cmocka_unit_test(test_gsync_with_nothing_outstanding_is_complete),
        cmocka_unit_test(test_gsync_test_ends_and_then_all_is_there),
        cmocka_unit_test(test_threads_work_side_by_side),
        cmocka_unit_test(test_registered_threads_are_counted),
        cmocka_unit_test(test_callbacks_fill_their_table),
        cmocka_unit_test(test_checkpoints_are_not_available),
    };

    return dx_run(tests, &attrs);
}
