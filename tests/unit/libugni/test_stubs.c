/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The calls that this library does not implement: each answers the code that gni_pub.h documents for it, and
 * leaves its outputs alone. Then the parts of these families that are real: error subscriptions, and what chained
 * posts refuse.
 */
#include <gni_pub.h>

#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "libugni/src/object.h"

/* Handles that are not NULL; the calls must not read through them. */
static gni_nic_handle_t some_nic = (gni_nic_handle_t)0x10;
static gni_ep_handle_t some_ep = (gni_ep_handle_t)0x10;
static gni_cq_handle_t some_cq = (gni_cq_handle_t)0x10;

/* Chained posts are real (libugni/src/chained.c); without a NIC only their refusals can be seen. */
static void test_chained_posts_check_their_arguments(void **state)
{
    static const gni_post_type_t not_fma[] = { GNI_POST_RDMA_PUT, GNI_POST_RDMA_GET, GNI_POST_CQWRITE };
    gni_post_descriptor_t put = { .type = GNI_POST_FMA_PUT }, cqw = { .type = GNI_POST_CQWRITE };

    (void)state;
    assert_int_equal(GNI_CtPostFma(some_ep, &put), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_CtPostFma(NULL, &put), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_CtPostFma(some_ep, NULL), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_CtPostCqWrite(some_ep, &cqw), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_CtPostCqWrite(NULL, &cqw), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_CtPostCqWrite(some_ep, NULL), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_CtPostCqWrite(some_ep, &put), GNI_RC_INVALID_PARAM);
    for (size_t i = 0; i < sizeof(not_fma) / sizeof(not_fma[0]); i++) {
        gni_post_descriptor_t d = { .type = not_fma[i] };

        assert_int_equal(GNI_CtPostFma(some_ep, &d), GNI_RC_INVALID_PARAM);
    }
}

static void test_completion_channels_do_not_exist(void **state)
{
    gni_comp_chan_handle_t chan = (gni_comp_chan_handle_t)0x77;
    gni_cq_handle_t cq;
    int fd = 77;

    (void)state;
    assert_int_equal(GNI_CompChanCreate(some_nic, &chan), GNI_RC_ILLEGAL_OP);
    assert_ptr_equal(chan, (void *)0x77);
    assert_int_equal(GNI_CompChanCreate(NULL, &chan), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_CompChanCreate(some_nic, NULL), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_CompChanDestroy(chan), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_CompChanFd(chan, &fd), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_CompChanGetEvent(chan, &cq), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_CqAttachCompChan(some_cq, chan), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_CqArmCompChan(&some_cq, 1), GNI_RC_INVALID_PARAM);
    assert_int_equal(fd, 77);
}

/* Error subscriptions: they want a live NIC, and look at nothing in it. */

static gni_nic_handle_t live_nic;

static int make_live_nic(void **state)
{
    static int nic;
    void *handle;

    (void)state;
    if (gnii_object_add(GNII_KIND_NIC, &nic, &handle) < 0)
        return -1;
    live_nic = handle;
    return 0;
}

static int remove_live_nic(void **state)
{
    (void)state;
    gnii_object_remove(live_nic);
    return 0;
}

static void test_subscription_needs_a_live_nic(void **state)
{
    gni_err_handle_t err = (gni_err_handle_t)0x77;

    (void)state;
    assert_int_equal(GNI_SubscribeErrors(NULL, 0, 0xff, 0, &err), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_SubscribeErrors(some_nic, 0, 0xff, 0, &err), GNI_RC_INVALID_PARAM);
    gnii_object_remove(live_nic);
    assert_int_equal(GNI_SubscribeErrors(live_nic, 0, 0xff, 0, &err), GNI_RC_INVALID_PARAM);
    assert_ptr_equal(err, (void *)0x77);
    assert_int_equal(make_live_nic(state), 0);      /* for the teardown */
}

static void test_subscription_keeps_its_mask(void **state)
{
    gni_error_mask_t mask = 0;
    gni_err_handle_t err;

    (void)state;
    assert_int_equal(GNI_SubscribeErrors(live_nic, 0, GNI_ERRMASK_CRITICAL, 0, &err), GNI_RC_SUCCESS);
    assert_int_equal(GNI_GetErrorMask(err, &mask), GNI_RC_SUCCESS);
    assert_int_equal(mask, GNI_ERRMASK_CRITICAL);
    assert_int_equal(GNI_SetErrorMask(err, 0xff, &mask), GNI_RC_SUCCESS);
    assert_int_equal(mask, GNI_ERRMASK_CRITICAL);
    assert_int_equal(GNI_GetErrorMask(err, &mask), GNI_RC_SUCCESS);
    assert_int_equal(mask, 0xff);
    assert_int_equal(GNI_ReleaseErrors(err), GNI_RC_SUCCESS);
}

static void test_subscription_has_no_event_and_no_privilege(void **state)
{
    gni_error_event_t event;
    gni_err_handle_t err;

    (void)state;
    assert_int_equal(GNI_SubscribeErrors(live_nic, 0, 0xff, 0, NULL), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_SubscribeErrors(live_nic, 0, 0xff, 0, &err), GNI_RC_SUCCESS);
    assert_int_equal(GNI_GetErrorEvent(err, &event), GNI_RC_NOT_DONE);
    assert_int_equal(GNI_SetErrorPtag(err, 0), GNI_RC_PERMISSION_ERROR);
    assert_int_equal(GNI_ReleaseErrors(err), GNI_RC_SUCCESS);
}

static void test_released_subscription_is_an_invalid_parameter(void **state)
{
    gni_err_handle_t other, err;
    gni_error_event_t event;
    gni_error_mask_t mask;
    uint32_t n;

    (void)state;
    assert_int_equal(GNI_SubscribeErrors(live_nic, 0, 0xff, 0, &err), GNI_RC_SUCCESS);
    assert_int_equal(GNI_SubscribeErrors(live_nic, 0, 0xff, 0, &other), GNI_RC_SUCCESS);
    assert_int_equal(GNI_ReleaseErrors(err), GNI_RC_SUCCESS);
    assert_int_equal(GNI_ReleaseErrors(err), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_ReleaseErrors(NULL), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_GetErrorMask(err, &mask), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_SetErrorMask(err, 0, &mask), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_GetErrorEvent(err, &event), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_SetErrorPtag(err, 1), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_WaitErrorEvents(err, &event, 1, 0, &n), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_WaitErrorEvents(other, &event, 0, 0, &n), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_WaitErrorEvents(other, NULL, 1, 0, &n), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_WaitErrorEvents(other, &event, 1, 0, NULL), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_ReleaseErrors(other), GNI_RC_SUCCESS);
}

static void *wait_for_errors(void *arg)
{
    gni_error_event_t event;
    uint32_t n;

    pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL);
    GNI_WaitErrorEvents(arg, &event, 1, 0, &n);
    return NULL;
}

static void test_waiting_for_errors_blocks_until_cancelled(void **state)
{
    gni_err_handle_t err;
    pthread_t thread;
    void *result;
    int n_yields = 0;

    /* A refused release proves that the thread waits. A release that comes too early succeeds: start again, slower. */
    (void)state;
    for (;;) {
        assert_int_equal(GNI_SubscribeErrors(live_nic, 0, 0xff, 0, &err), GNI_RC_SUCCESS);
        assert_int_equal(pthread_create(&thread, NULL, wait_for_errors, err), 0);
        for (int i = 0; i < n_yields; i++)
            sched_yield();
        if (GNI_ReleaseErrors(err) == GNI_RC_NOT_DONE)
            break;
        pthread_join(thread, NULL);
        n_yields = 2 * n_yields + 1;
    }
    pthread_cancel(thread);
    assert_int_equal(pthread_join(thread, &result), 0);
    assert_ptr_equal(result, PTHREAD_CANCELED);
    assert_int_equal(GNI_ReleaseErrors(err), GNI_RC_SUCCESS);
}

#define WITH_NIC(name) cmocka_unit_test_setup_teardown(name, make_live_nic, remove_live_nic)

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_chained_posts_check_their_arguments),
        cmocka_unit_test(test_completion_channels_do_not_exist),
        WITH_NIC(test_subscription_needs_a_live_nic),
        WITH_NIC(test_subscription_keeps_its_mask),
        WITH_NIC(test_subscription_has_no_event_and_no_privilege),
        WITH_NIC(test_released_subscription_is_an_invalid_parameter),
        WITH_NIC(test_waiting_for_errors_blocks_until_cancelled),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
