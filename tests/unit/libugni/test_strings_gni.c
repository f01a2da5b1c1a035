/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Names and texts of libugni. Compiled without CRAY_CONFIG_GHAL_ARIES: a program with the short list of
 * statistics must still find all 19 names.
 */
#include <gni_pub.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "libugni/src/cqe.h"

static gni_cq_entry_t entry_with(unsigned status)
{
    return gnii_cqe_post(GNII_CQE_ENGINE_FMA, 0xffffff, 0xffffff, status);
}

static void test_return_codes_are_named_after_their_enumerators(void **state)
{
    (void)state;
    assert_string_equal(gni_err_str[GNI_RC_SUCCESS], "GNI_RC_SUCCESS");
    assert_string_equal(gni_err_str[GNI_RC_NOT_DONE], "GNI_RC_NOT_DONE");
    assert_string_equal(gni_err_str[GNI_RC_INVALID_PARAM], "GNI_RC_INVALID_PARAM");
    assert_string_equal(gni_err_str[GNI_RC_ERROR_RESOURCE], "GNI_RC_ERROR_RESOURCE");
    assert_string_equal(gni_err_str[GNI_RC_TIMEOUT], "GNI_RC_TIMEOUT");
    assert_string_equal(gni_err_str[GNI_RC_PERMISSION_ERROR], "GNI_RC_PERMISSION_ERROR");
    assert_string_equal(gni_err_str[GNI_RC_DESCRIPTOR_ERROR], "GNI_RC_DESCRIPTOR_ERROR");
    assert_string_equal(gni_err_str[GNI_RC_ALIGNMENT_ERROR], "GNI_RC_ALIGNMENT_ERROR");
    assert_string_equal(gni_err_str[GNI_RC_INVALID_STATE], "GNI_RC_INVALID_STATE");
    assert_string_equal(gni_err_str[GNI_RC_NO_MATCH], "GNI_RC_NO_MATCH");
    assert_string_equal(gni_err_str[GNI_RC_SIZE_ERROR], "GNI_RC_SIZE_ERROR");
    assert_string_equal(gni_err_str[GNI_RC_TRANSACTION_ERROR], "GNI_RC_TRANSACTION_ERROR");
    assert_string_equal(gni_err_str[GNI_RC_ILLEGAL_OP], "GNI_RC_ILLEGAL_OP");
    assert_string_equal(gni_err_str[GNI_RC_ERROR_NOMEM], "GNI_RC_ERROR_NOMEM");
}

static void test_a_program_without_the_aries_macro_sees_7_statistics(void **state)
{
    (void)state;
    assert_int_equal(GNI_NUM_STATS, 7);
    assert_string_equal(gni_statistic_str[GNI_STAT_SMSG_BUFF_CREDITS_STALL], "GNI_STAT_SMSG_BUFF_CREDITS_STALL");
    assert_string_equal(gni_statistic_str[GNI_STAT_SMSG_RETRANS_STALL], "GNI_STAT_SMSG_RETRANS_STALL");
}

static void test_all_19_statistics_have_different_names(void **state)
{
    (void)state;
    for (int i = 0; i < 19; i++) {
        assert_int_equal(strncmp(gni_statistic_str[i], "GNI_STAT_", 9), 0);
        for (int j = 0; j < i; j++)
            assert_string_not_equal(gni_statistic_str[i], gni_statistic_str[j]);
    }
    assert_string_equal(gni_statistic_str[7], "GNI_STAT_DLA_ALLOC_STATUS_STALL");
    assert_string_equal(gni_statistic_str[18], "GNI_STAT_FLBTE_TXD_NONE");
}

static void test_every_resource_has_its_own_short_name(void **state)
{
    (void)state;
    for (int i = GNI_JOB_RES_FIRST + 1; i < GNI_JOB_RES_LAST; i++) {
        assert_in_range(strlen(gni_job_res_to_str((gni_job_res_t)i)), 2, 9);
        for (int j = GNI_JOB_RES_FIRST; j < i; j++)
            assert_string_not_equal(gni_job_res_to_str((gni_job_res_t)i), gni_job_res_to_str((gni_job_res_t)j));
    }
    for (int i = GNI_DEV_RES_FIRST + 1; i < GNI_DEV_RES_LAST; i++) {
        for (int j = GNI_DEV_RES_FIRST; j < i; j++)
            assert_string_not_equal(gni_dev_res_to_str((gni_dev_res_t)i), gni_dev_res_to_str((gni_dev_res_t)j));
    }
    assert_string_equal(gni_dev_res_to_str(GNI_DEV_RES_FMA), "FMA");
    assert_string_equal(gni_job_res_to_str(GNI_JOB_RES_FMA), "FMA");
}

static void test_what_is_no_resource_is_unknown(void **state)
{
    (void)state;
    assert_string_equal(gni_dev_res_to_str(GNI_DEV_RES_FIRST), "UNKNOWN");
    assert_string_equal(gni_dev_res_to_str(GNI_DEV_RES_LAST), "UNKNOWN");
    assert_string_equal(gni_job_res_to_str(GNI_JOB_RES_FIRST), "UNKNOWN");
    assert_string_equal(gni_job_res_to_str((gni_job_res_t)-1), "UNKNOWN");
}

static void test_every_status_has_its_own_text_of_less_than_256_bytes(void **state)
{
    char text[GNII_CQE_STATUS_COUNT][256];

    (void)state;
    for (unsigned s = 0; s < GNII_CQE_STATUS_COUNT; s++) {
        assert_int_equal(GNI_CqErrorStr(entry_with(s), text[s], sizeof(text[s])), GNI_RC_SUCCESS);
        assert_int_not_equal(strlen(text[s]), 0);
        for (unsigned t = 0; t < s; t++)
            assert_string_not_equal(text[s], text[t]);
    }
}

static void test_ok_entry_says_no_error(void **state)
{
    char text[256];

    (void)state;
    assert_int_equal(GNI_CqErrorStr(entry_with(0), text, sizeof(text)), GNI_RC_SUCCESS);
    assert_string_equal(text, "no error");
}

static void test_overrun_word_has_its_own_text(void **state)
{
    char text[256];

    (void)state;
    assert_int_equal(GNI_CqErrorStr(gnii_cqe_overrun_word(), text, sizeof(text)), GNI_RC_SUCCESS);
    assert_string_equal(text, "completion queue overrun: entries were lost");
}

static void test_unknown_status_text_gives_the_number(void **state)
{
    char text[256];

    (void)state;
    assert_int_equal(GNI_CqErrorStr(entry_with(255), text, sizeof(text)), GNI_RC_SUCCESS);
    assert_string_equal(text, "unknown status 255");
    assert_int_equal(GNI_CqErrorStr(entry_with(99), text, sizeof(text)), GNI_RC_SUCCESS);
    assert_string_equal(text, "unknown status 99");
    assert_int_equal(GNI_CqErrorStr(entry_with(100), text, sizeof(text)), GNI_RC_SUCCESS);
    assert_string_equal(text, "unknown status 100");
}

static void test_text_that_just_fits_is_written(void **state)
{
    char text[] = "#########|";

    (void)state;
    assert_int_equal(GNI_CqErrorStr(entry_with(0), text, sizeof("no error")), GNI_RC_SUCCESS);
    assert_memory_equal(text, "no error\0|", 10);
}

static void test_buffer_one_byte_short_is_a_size_error_and_untouched(void **state)
{
    char text[] = "########";

    (void)state;
    assert_int_equal(GNI_CqErrorStr(entry_with(0), text, sizeof("no error") - 1), GNI_RC_SIZE_ERROR);
    assert_string_equal(text, "########");
    assert_int_equal(GNI_CqErrorStr(entry_with(0), text, 0), GNI_RC_SIZE_ERROR);
}

static void test_missing_buffer_is_an_invalid_parameter(void **state)
{
    (void)state;
    assert_int_equal(GNI_CqErrorStr(entry_with(1), NULL, 256), GNI_RC_INVALID_PARAM);
}

static void test_only_failures_of_the_network_are_recoverable(void **state)
{
    (void)state;
    for (unsigned s = 0; s < GNII_CQE_STATUS_COUNT; s++) {
        uint32_t expected = s == GNII_CQE_OK || s == GNII_CQE_NETWORK || s == GNII_CQE_RETRANSMIT_LIMIT;
        uint32_t recoverable = 77;

        assert_int_equal(GNI_CqErrorRecoverable(entry_with(s), &recoverable), GNI_RC_SUCCESS);
        assert_int_equal(recoverable, expected);
    }
}

static void test_overrun_word_is_not_recoverable(void **state)
{
    uint32_t recoverable = 77;

    (void)state;
    assert_int_equal(GNI_CqErrorRecoverable(gnii_cqe_overrun_word(), &recoverable), GNI_RC_SUCCESS);
    assert_int_equal(recoverable, 0);
}

static void test_unknown_status_is_an_invalid_state(void **state)
{
    uint32_t recoverable = 77;

    (void)state;
    assert_int_equal(GNI_CqErrorRecoverable(entry_with(GNII_CQE_STATUS_COUNT), &recoverable), GNI_RC_INVALID_STATE);
    assert_int_equal(recoverable, 77);
}

static void test_missing_answer_is_an_invalid_parameter(void **state)
{
    (void)state;
    assert_int_equal(GNI_CqErrorRecoverable(entry_with(1), NULL), GNI_RC_INVALID_PARAM);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_return_codes_are_named_after_their_enumerators),
        cmocka_unit_test(test_a_program_without_the_aries_macro_sees_7_statistics),
        cmocka_unit_test(test_all_19_statistics_have_different_names),
        cmocka_unit_test(test_every_resource_has_its_own_short_name),
        cmocka_unit_test(test_what_is_no_resource_is_unknown),
        cmocka_unit_test(test_every_status_has_its_own_text_of_less_than_256_bytes),
        cmocka_unit_test(test_ok_entry_says_no_error),
        cmocka_unit_test(test_overrun_word_has_its_own_text),
        cmocka_unit_test(test_unknown_status_text_gives_the_number),
        cmocka_unit_test(test_text_that_just_fits_is_written),
        cmocka_unit_test(test_buffer_one_byte_short_is_a_size_error_and_untouched),
        cmocka_unit_test(test_missing_buffer_is_an_invalid_parameter),
        cmocka_unit_test(test_only_failures_of_the_network_are_recoverable),
        cmocka_unit_test(test_overrun_word_is_not_recoverable),
        cmocka_unit_test(test_unknown_status_is_an_invalid_state),
        cmocka_unit_test(test_missing_answer_is_an_invalid_parameter),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
