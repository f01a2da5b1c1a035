/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A host that is there and answers nothing: its transport lives, it has said its hello, takes every domain and tells
 * its status, but no command, request or question of another host gets an answer. Two hosts are emunics, this third
 * one is a process of the test. Whatever waits for it ends with an error in the peer timeout; the others go on.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "tests/common/fake_host.h"
#include "tests/common/gni.h"

#define SILENT_HOST 2u
#define SILENT_NID  2u
#define TIMEOUT_MS  1000u

static struct fx fx;
static struct fake_host *silent;

static int start(void **state)
{
    struct fx_options options = { .n_hosts = 3, .n_absent = 1, .n_ranks = 3, .timeout_ms = TIMEOUT_MS };

    (void)state;
    fx_start(&fx, &options);
    silent = fake_host_start(&fx, SILENT_HOST, NULL);
    fx_await_host(&fx, 0, SILENT_HOST, true);
    fx_await_host(&fx, 1, SILENT_HOST, true);
    fx_start_domain(&fx);
    return 0;
}

static int stop(void **state)
{
    (void)state;
    assert_int_equal(fake_host_stop(silent), 0);
    return fx_stop(&fx);
}

/* ---- commands ---- */

static gni_return_t put(const struct gx_side *from, const gni_post_descriptor_t *descriptor, uint32_t nid,
                        uint32_t inst_id)
{
    gni_post_descriptor_t d = *descriptor;
    gni_post_descriptor_t *done = NULL;
    gni_ep_handle_t ep;
    gni_return_t rc;

    assert_int_equal(GNI_EpCreate(from->nic, from->src_cq, &ep), GNI_RC_SUCCESS);
    assert_int_equal(GNI_EpBind(ep, nid, inst_id), GNI_RC_SUCCESS);
    assert_int_equal(GNI_PostFma(ep, &d), GNI_RC_SUCCESS);
    rc = gx_complete(from->src_cq, &done);
    GNI_EpDestroy(ep);
    return rc;
}

static void test_commands_to_it_end_with_an_error_in_time_and_others_go_on(void **state)
{
    gni_post_descriptor_t d;
    struct gx_side a;
    struct gx_side b;

    (void)state;
    gx_open(&a, &fx, 0, 10, 0);
    gx_open(&b, &fx, 1, 11, 0);
    d = gx_put(&a, &b, 0, 8, GNI_CQMODE_GLOBAL_EVENT);
    for (unsigned i = 0; i < 3; i++) {
        assert_int_equal(put(&a, &d, SILENT_NID, 1), GNI_RC_TRANSACTION_ERROR);
        assert_int_equal(put(&a, &d, 1, 11), GNI_RC_SUCCESS);
        fx_await_host(&fx, 0, SILENT_HOST, true); /* it is joined again */
    }
    gx_close(&a);
    gx_close(&b);
}

static void test_rules_that_ask_it_for_an_instance_keep_nobody_waiting(void **state)
{
    gni_post_descriptor_t d;
    struct gx_side a;

    (void)state;
    gx_open(&a, &fx, 0, 10, 0);
    d = gx_put(&a, &a, 0, 8, GNI_CQMODE_GLOBAL_EVENT);
    fx_add_fault(&fx, "class=fma-put action=drop to=2 to_instance=1");
    assert_int_equal(put(&a, &d, SILENT_NID, 1), GNI_RC_TRANSACTION_ERROR);
    assert_int_equal(put(&a, &d, 0, 10), GNI_RC_SUCCESS);
    gx_close(&a);
}

/* What may have to wait at its target. */
static void test_datagrams_for_it_end_with_an_error(void **state)
{
    gni_post_state_t post_state = GNI_POST_PENDING;
    gni_ep_handle_t ep;
    struct gx_side a;
    char bytes[8] = "";
    uint32_t words[2];

    (void)state;
    gx_open(&a, &fx, 0, 10, 0);
    assert_int_equal(GNI_EpCreate(a.nic, a.src_cq, &ep), GNI_RC_SUCCESS);
    assert_int_equal(GNI_EpBind(ep, SILENT_NID, 1), GNI_RC_SUCCESS);
    assert_int_equal(GNI_EpPostData(ep, bytes, sizeof(bytes), bytes, sizeof(bytes)), GNI_RC_SUCCESS);
    assert_int_equal(GNI_EpPostDataWait(ep, 20000, &post_state, &words[0], &words[1]), GNI_RC_SUCCESS);
    assert_int_equal(post_state, GNI_POST_ERROR);
    assert_int_equal(GNI_EpDestroy(ep), GNI_RC_SUCCESS);
    gx_close(&a);
}

/* ---- requests ---- */

static void test_changes_name_it_and_hold_on_the_others(void **state)
{
    struct emu_msg msg = { .type = EMU_MSG_NETWORK, .network = { .thing = EMU_NETWORK_NODE, .index = 5 } };
    struct emu_fds fds;
    char text[128] = "";

    (void)state;
    assert_int_equal(emu_session_request(&fx.hosts[1].admin, &msg, NULL, 0, &fds), 0);
    assert_int_equal(msg.result, 0);
    assert_int_equal(fds.n_fds, 1);
    assert_true(read(fds.fd[0], text, sizeof(text) - 1) > 0);
    assert_string_equal(text, "host2: No route to host\n");
    emu_fds_close(&fds);
}

static void test_reports_come_without_it(void **state)
{
    char *text = fx_report(&fx, EMU_MSG_LINKS);

    (void)state;
    assert_non_null(text);
    assert_non_null(strstr(text, "\"missing_hosts\":[\"host2\"]"));
    free(text);
}

static void test_subscribing_does_not_wait_for_it(void **state)
{
    gni_err_handle_t err;
    struct gx_side a;

    (void)state;
    gx_open(&a, &fx, 0, 10, 0);
    assert_int_equal(GNI_SubscribeErrors(a.nic, 0, 0xff, 4, &err), GNI_RC_SUCCESS);
    assert_int_equal(GNI_ReleaseErrors(err), GNI_RC_SUCCESS);
    gx_close(&a);
}

#define silent_test(test) cmocka_unit_test_setup_teardown(test, start, stop)

int main(void)
{
    const struct CMUnitTest tests[] = {
        silent_test(test_commands_to_it_end_with_an_error_in_time_and_others_go_on),
        silent_test(test_rules_that_ask_it_for_an_instance_keep_nobody_waiting),
        silent_test(test_datagrams_for_it_end_with_an_error),
        silent_test(test_changes_name_it_and_hold_on_the_others),
        silent_test(test_reports_come_without_it),
        silent_test(test_subscribing_does_not_wait_for_it),
    };

    if (!getenv("EMU_TEST_TRANSPORT")) {
        printf("1..0 # SKIP EMU_TEST_TRANSPORT does not name the transport's module\n");
        return 0;
    }
    return cmocka_run_group_tests_name("hosts_silent", tests, NULL, NULL);
}
