/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Results as codes: each row of the table, and that no other result has a code of its own.
 */
#include "libugni/src/rc.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "emunic/abi/control.h"

struct expected {
    int result;
    gni_return_t rc;
};

#define N(array) (sizeof(array) / sizeof((array)[0]))

/* What calls answer that have no row of their own for a result. */
static const struct expected common[] = {
    { 0, GNI_RC_SUCCESS },
    { -EACCES, GNI_RC_PERMISSION_ERROR },
    { -EPERM, GNI_RC_PERMISSION_ERROR },
    { -ENODEV, GNI_RC_NO_MATCH },
    { -ENOENT, GNI_RC_NO_MATCH },
    { -ECONNREFUSED, GNI_RC_NO_MATCH },
    { EMU_OUTCOME_NO_MATCH, GNI_RC_NO_MATCH },
    { EMU_OUTCOME_BUSY, GNI_RC_ERROR_RESOURCE },
    { -ENOSPC, GNI_RC_ERROR_RESOURCE },
    { -EMFILE, GNI_RC_ERROR_RESOURCE },
    { -ENFILE, GNI_RC_ERROR_RESOURCE },
    { -ENOMEM, GNI_RC_ERROR_NOMEM },
    { EMU_OUTCOME_TOO_SMALL, GNI_RC_SIZE_ERROR },
    { -EMSGSIZE, GNI_RC_SIZE_ERROR },
    { -EALREADY, GNI_RC_INVALID_STATE },
    { -ENETDOWN, GNI_RC_INVALID_STATE },
    { -ETIMEDOUT, GNI_RC_TIMEOUT },
    { -EINTR, GNI_RC_NOT_DONE },
    { -EAGAIN, GNI_RC_NOT_DONE },
    { -EOPNOTSUPP, GNI_RC_ILLEGAL_OP },
};

static gni_return_t find(const struct expected *rows, size_t n, int result, gni_return_t otherwise)
{
    for (size_t i = 0; i < n; i++) {
        if (rows[i].result == result)
            return rows[i].rc;
    }
    return otherwise;
}

/* Every errno and outcome: the call's own rows, else the common ones. */
static void check_open(enum gnii_call call, const struct expected *own, size_t n)
{
    for (int result = -200; result <= EMU_OUTCOME_IN_USE; result++) {
        gni_return_t otherwise = find(common, N(common), result, GNI_RC_INVALID_PARAM);

        assert_int_equal(gnii_rc(call, result), find(own, n, result, otherwise));
    }
}

/* Every errno and outcome: the call's own rows, else one code. */
static void check_closed(enum gnii_call call, const struct expected *own, size_t n, gni_return_t otherwise)
{
    for (int result = -200; result <= EMU_OUTCOME_IN_USE; result++)
        assert_int_equal(gnii_rc(call, result), result == 0 ? GNI_RC_SUCCESS : find(own, n, result, otherwise));
}

static void test_calls_have_common_codes(void **state)
{
    (void)state;
    check_open(GNII_CALL_PLAIN, NULL, 0);
}

static void test_creating_without_nic_is_a_lack_of_resources(void **state)
{
    static const struct expected own[] = { { -ENETDOWN, GNI_RC_ERROR_RESOURCE } };

    (void)state;
    check_open(GNII_CALL_CREATE, own, N(own));
}

static void test_reserving_without_nic_is_a_lack_of_memory(void **state)
{
    static const struct expected own[] = { { -ENETDOWN, GNI_RC_ERROR_NOMEM } };

    (void)state;
    check_open(GNII_CALL_RESERVE_MDDS, own, N(own));
}

static void test_without_nic_there_is_no_datagram(void **state)
{
    static const struct expected own[] = { { -ENETDOWN, GNI_RC_NO_MATCH } };

    (void)state;
    check_open(GNII_CALL_FIND_DATAGRAM, own, N(own));
}

static void test_a_last_look_that_finds_nothing_is_a_timeout(void **state)
{
    static const struct expected own[] = { { EMU_OUTCOME_NO_MATCH, GNI_RC_TIMEOUT } };

    (void)state;
    check_open(GNII_CALL_LAST_LOOK, own, N(own));
}

static void test_message_queue_fails_by_state_or_for_lack_of_memory(void **state)
{
    static const struct expected own[] = {
        { -EALREADY, GNI_RC_INVALID_STATE },
        { -EDEADLK, GNI_RC_INVALID_STATE },
        { -ENETDOWN, GNI_RC_INVALID_STATE },
    };

    (void)state;
    check_closed(GNII_CALL_MSGQ_INIT, own, N(own), GNI_RC_ERROR_NOMEM);
}

static void test_subscribing_with_a_handle_needs_resources(void **state)
{
    static const struct expected own[] = {
        { -ENETDOWN, GNI_RC_ERROR_RESOURCE },
        { -ECONNREFUSED, GNI_RC_ERROR_RESOURCE },
    };

    (void)state;
    check_open(GNII_CALL_SUBSCRIBE, own, N(own));
}

static void test_subscribing_without_a_handle_needs_privilege_and_a_device(void **state)
{
    static const struct expected own[] = {
        { -EACCES, GNI_RC_INVALID_PARAM },
        { -ENETDOWN, GNI_RC_NO_MATCH },
    };

    (void)state;
    check_open(GNII_CALL_SUBSCRIBE_ALL, own, N(own));
}

static void test_limiting_injection_needs_privilege(void **state)
{
    static const struct expected own[] = { { -EACCES, GNI_RC_PERMISSION_ERROR } };

    (void)state;
    check_closed(GNII_CALL_INJECTION, own, N(own), GNI_RC_INVALID_PARAM);
}

/* Those of all calls about jobs behind those of one. */
#define JOB_ROWS                                                                                                       \
    { -EACCES, GNI_RC_PERMISSION_ERROR }, { -EPERM, GNI_RC_PERMISSION_ERROR }, { -ENOENT, GNI_RC_NO_MATCH },           \
        { -ENOSPC, GNI_RC_ERROR_RESOURCE }, { -ENETDOWN, GNI_RC_ERROR_RESOURCE },                                      \
        { -EHOSTUNREACH, GNI_RC_ERROR_RESOURCE }, { -EAGAIN, GNI_RC_ERROR_RESOURCE },                                  \
        { -EMFILE, GNI_RC_ERROR_RESOURCE }, { -ENOMEM, GNI_RC_ERROR_NOMEM }, { -EEXIST, GNI_RC_INVALID_STATE },        \
        { EMU_OUTCOME_IN_USE, GNI_RC_INVALID_STATE },                                                                  \
    {                                                                                                                  \
        EMU_OUTCOME_RESIZE, GNI_RC_ILLEGAL_OP                                                                          \
    }

static void test_configuring_without_emunic_finds_no_device(void **state)
{
    static const struct expected own[] = { { -ECONNREFUSED, GNI_RC_NO_MATCH }, JOB_ROWS };

    (void)state;
    check_closed(GNII_CALL_CONFIGURE, own, N(own), GNI_RC_INVALID_PARAM);
}

static void test_suspending_waits_or_says_not_done(void **state)
{
    static const struct expected patient[] = { { -ETIMEDOUT, GNI_RC_TIMEOUT },
                                               { -ENETDOWN, GNI_RC_NOT_DONE },
                                               JOB_ROWS };
    static const struct expected hasty[] = { { -ETIMEDOUT, GNI_RC_NOT_DONE },
                                             { -ENETDOWN, GNI_RC_NOT_DONE },
                                             JOB_ROWS };

    (void)state;
    check_closed(GNII_CALL_SUSPEND, patient, N(patient), GNI_RC_INVALID_PARAM);
    check_closed(GNII_CALL_SUSPEND_NOW, hasty, N(hasty), GNI_RC_INVALID_PARAM);
}

static void test_resuming_does_not_wait(void **state)
{
    static const struct expected own[] = { { -ETIMEDOUT, GNI_RC_NOT_DONE }, JOB_ROWS };

    (void)state;
    check_closed(GNII_CALL_RESUME, own, N(own), GNI_RC_INVALID_PARAM);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_calls_have_common_codes),
        cmocka_unit_test(test_creating_without_nic_is_a_lack_of_resources),
        cmocka_unit_test(test_reserving_without_nic_is_a_lack_of_memory),
        cmocka_unit_test(test_without_nic_there_is_no_datagram),
        cmocka_unit_test(test_a_last_look_that_finds_nothing_is_a_timeout),
        cmocka_unit_test(test_message_queue_fails_by_state_or_for_lack_of_memory),
        cmocka_unit_test(test_subscribing_with_a_handle_needs_resources),
        cmocka_unit_test(test_subscribing_without_a_handle_needs_privilege_and_a_device),
        cmocka_unit_test(test_limiting_injection_needs_privilege),
        cmocka_unit_test(test_configuring_without_emunic_finds_no_device),
        cmocka_unit_test(test_suspending_waits_or_says_not_done),
        cmocka_unit_test(test_resuming_does_not_wait),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
