/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Completion queue entries: what the builders of cqe.h put in, the public accessors and macros must give back.
 * Then the accessors of collective engine results, with `control` words as drawn in ce.c.
 */
#include <gni_pub.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "libugni/src/cqe.h"

/* As emunic makes it when a CQ write arrives; bits above 47 of value do not travel. */
static gni_cq_entry_t cq_write_entry(uint64_t value)
{
    return gnii_cqe_make(GNI_CQ_EVENT_TYPE_POST, GNII_CQE_ENGINE_CQ_WRITE, GNII_CQE_OK, value);
}

/* As emunic makes it for a collective engine channel, on the CQ of GNI_CeConfigure(). */
static gni_cq_entry_t ce_channel_entry(uint32_t ce_id, uint32_t reduction_id)
{
    return gnii_cqe_make(GNI_CQ_EVENT_TYPE_POST, GNII_CQE_ENGINE_CE, GNII_CQE_OK,
                         (ce_id & GNII_CQE_CE_ID_MASK) << GNII_CQE_CE_ID_SHIFT | reduction_id);
}

static void test_post_entry_gives_back_tid_and_local_event(void **state)
{
    gni_cq_entry_t e = gnii_cqe_post(GNII_CQE_ENGINE_BTE, 0xabcdef, 0x123456, GNII_CQE_OK);

    (void)state;
    assert_int_equal(GNI_CQ_GET_TYPE(e), GNI_CQ_EVENT_TYPE_POST);
    assert_int_equal(GNI_CQ_GET_SOURCE(e), 2);
    assert_int_equal(GNI_CQ_GET_TID(e), 0xabcdef);
    assert_int_equal(GNI_CQ_GET_INST_ID(e), 0x123456);
    assert_int_equal(GNI_CQ_GET_DATA(e), 0xabcdef123456);
    assert_true(GNI_CQ_STATUS_OK(e));
}

static void test_local_event_of_a_post_entry_is_cut_to_24_bits(void **state)
{
    gni_cq_entry_t e = gnii_cqe_post(GNII_CQE_ENGINE_FMA, 1, 0xff123456, GNII_CQE_OK);

    (void)state;
    assert_int_equal(GNI_CQ_GET_INST_ID(e), 0x123456);
    assert_int_equal(GNI_CQ_GET_TID(e), 1);
}

static void test_send_entry_gives_back_all_of_msg_id(void **state)
{
    gni_cq_entry_t smsg = gnii_cqe_send(GNI_CQ_EVENT_TYPE_SMSG, 0xfedcba98, GNII_CQE_OK);
    gni_cq_entry_t msgq = gnii_cqe_send(GNI_CQ_EVENT_TYPE_MSGQ, 0xfedcba98, GNII_CQE_RETRANSMIT_LIMIT);

    (void)state;
    assert_int_equal(GNI_CQ_GET_TYPE(smsg), GNI_CQ_EVENT_TYPE_SMSG);
    assert_int_equal(GNI_CQ_GET_MSG_ID(smsg), 0xfedcba98);
    assert_int_equal(GNI_CQ_GET_TYPE(msgq), GNI_CQ_EVENT_TYPE_MSGQ);
    assert_int_equal(GNI_CQ_GET_STATUS(msgq), 8);
    assert_false(GNI_CQ_STATUS_OK(msgq));
}

static void test_number_of_a_send_comes_back_and_leaves_no_trace(void **state)
{
    gni_cq_entry_t plain = gnii_cqe_send(GNI_CQ_EVENT_TYPE_MSGQ, 0xfedcba98, GNII_CQE_RETRANSMIT_LIMIT);
    gni_cq_entry_t e = gnii_cqe_numbered(plain, 0x1fffe);

    (void)state;
    assert_int_equal(gnii_cqe_number(e), 0xfffe);
    assert_int_equal(gnii_cqe_status(e), GNII_CQE_RETRANSMIT_LIMIT);
    assert_int_equal(gnii_cqe_unnumbered(e), plain);
}

static void test_remote_entry_answers_both_instance_accessors(void **state)
{
    gni_cq_entry_t e = gnii_cqe_remote(GNI_CQ_EVENT_TYPE_SMSG, 0x89abcdef);

    (void)state;
    assert_int_equal(GNI_CQ_GET_REM_INST_ID(e), 0x89abcdef);
    assert_int_equal(GNI_CQ_GET_INST_ID(e), 0xabcdef);
    assert_int_equal(GNI_CQ_GET_SOURCE(e), 4);
    assert_int_equal(GNI_CQ_GET_DATA(e), 0x89abcdef);
}

static void test_cq_write_gives_back_48_bits_and_no_more(void **state)
{
    gni_cq_entry_t e = cq_write_entry(0xffff89abcdef0123);

    (void)state;
    assert_int_equal(GNI_CQ_GET_DATA(e), 0x89abcdef0123);
    assert_int_equal(GNI_CQ_GET_REM_INST_ID(e), 0xcdef0123);
    assert_int_equal(GNI_CQ_GET_SOURCE(e), 5);
    assert_int_equal(GNI_CQ_GET_STATUS(e), 0);
}

static void test_ce_channel_entry_gives_back_channel_and_reduction(void **state)
{
    gni_cq_entry_t e = ce_channel_entry(0x1234, 0x89abcdef);

    (void)state;
    assert_int_equal(GNI_CQ_GET_CE_ID(e), 0x1234);
    assert_int_equal(GNI_CQ_GET_REDUCTN_ID(e), 0x89abcdef);
    assert_int_equal(GNI_CQ_GET_SOURCE(e), 6);
}

static void test_overrun_word_is_an_overrun_and_not_zero(void **state)
{
    gni_cq_entry_t e = gnii_cqe_overrun_word();

    (void)state;
    assert_int_not_equal(e, 0);
    assert_true(GNI_CQ_OVERRUN(e));
    assert_true(gnii_cqe_is_overrun(e));
    assert_false(GNI_CQ_REM_OVERRUN(e));
    assert_int_equal(GNI_CQ_GET_SOURCE(e), 15);
}

static void test_remote_overrun_is_told_apart_from_the_local_one(void **state)
{
    gni_cq_entry_t e = gnii_cqe_post(GNII_CQE_ENGINE_CQ_WRITE, 7, 0, GNII_CQE_REMOTE_CQ_FULL) | GNII_CQE_REM_OVERRUN;

    (void)state;
    assert_true(GNI_CQ_REM_OVERRUN(e));
    assert_false(GNI_CQ_OVERRUN(e));
    assert_int_equal(GNI_CQ_GET_TYPE(e), GNI_CQ_EVENT_TYPE_POST);
    assert_int_equal(GNI_CQ_GET_TID(e), 7);
}

static void test_no_entry_of_any_kind_is_zero(void **state)
{
    (void)state;
    assert_int_not_equal(gnii_cqe_post(GNII_CQE_ENGINE_FMA, 0, 0, GNII_CQE_OK), 0);
    assert_int_not_equal(gnii_cqe_send(GNI_CQ_EVENT_TYPE_SMSG, 0, GNII_CQE_OK), 0);
    assert_int_not_equal(gnii_cqe_remote(GNI_CQ_EVENT_TYPE_POST, 0), 0);
    assert_int_not_equal(cq_write_entry(0), 0);
    assert_int_not_equal(ce_channel_entry(0, 0), 0);
}

/* Each setter changes its field, cuts the value to it, and leaves every other bit alone. */

static void test_set_inst_id_replaces_24_bits(void **state)
{
    gni_cq_entry_t e = UINT64_MAX;

    (void)state;
    GNI_CQ_SET_INST_ID(e, 0xaa000001);
    assert_int_equal(e, 0xffffffffff000001);
}

static void test_set_rem_inst_id_replaces_32_bits(void **state)
{
    gni_cq_entry_t e = UINT64_MAX;

    (void)state;
    GNI_CQ_SET_REM_INST_ID(e, 0x5580000001);
    assert_int_equal(e, 0xffffffff80000001);
}

static void test_set_tid_replaces_bits_47_to_24(void **state)
{
    gni_cq_entry_t e = UINT64_MAX;

    (void)state;
    GNI_CQ_SET_TID(e, 0xff000002);
    assert_int_equal(e, 0xffff000002ffffff);
}

static void test_set_msg_id_replaces_32_bits(void **state)
{
    gni_cq_entry_t e = 0;

    (void)state;
    GNI_CQ_SET_MSG_ID(e, 0x1ffffffff);
    assert_int_equal(e, 0xffffffff);
}

static void test_set_type_replaces_two_bits(void **state)
{
    gni_cq_entry_t e = UINT64_MAX;

    (void)state;
    GNI_CQ_SET_TYPE(e, GNI_CQ_EVENT_TYPE_DMAPP);
    assert_int_equal(e, 0xefffffffffffffff);
    assert_int_equal(GNI_CQ_GET_TYPE(e), GNI_CQ_EVENT_TYPE_DMAPP);
}

static void test_clr_status_leaves_the_overrun_marks(void **state)
{
    gni_cq_entry_t e = UINT64_MAX;

    (void)state;
    GNI_CQ_CLR_STATUS(e);
    assert_int_equal(e, 0xff00ffffffffffff);
    assert_true(GNI_CQ_STATUS_OK(e));
}

static void test_fields_without_meaning_here_read_as_zero(void **state)
{
    gni_cq_entry_t e = UINT64_MAX;

    (void)state;
    assert_int_equal(GNI_CQ_GET_INFO(e), 0);
    assert_int_equal(GNI_CQ_GET_TRANS_TYPE(e), 0);
    assert_int_equal(GNI_CQ_GET_BLOCK_ID(e), 0);
    assert_int_equal(GNI_CQ_GET_UNSUCCESSFUL_CNT(e), 0);
    assert_int_equal(GNI_CQ_GET_MARKER_ID(e), 0);
    assert_int_equal(GNI_CQ_GET_FAILED_ENQUEUE_CNT(e), 0);
    assert_int_equal(GNI_CQ_STATUS_DLA_OVERFLOW(e), 0);
    assert_int_equal(GNI_CQ_BTE_ENQ_STATUS(e), 0);
}

/* Collective engine results */

static void test_zeroed_ce_result_is_not_done(void **state)
{
    gni_ce_result_t result = { 0 };

    (void)state;
    assert_int_equal(GNI_CeCheckResult(&result, 1), GNI_RC_NOT_DONE);
    assert_false(GNI_CE_RES_STATUS_OK(&result));
}

static void test_delivered_ce_result_is_success(void **state)
{
    gni_ce_result_t result = { .control = 1ULL << 63 | 0x123456789abc };

    (void)state;
    assert_int_equal(GNI_CeCheckResult(&result, 0), GNI_RC_SUCCESS);
    assert_true(GNI_CE_RES_STATUS_OK(&result));
    assert_int_equal(GNI_CE_RES_GET_STATUS(&result), 0);
    assert_int_equal(GNI_CE_RES_GET_RED_ID(&result), 0x123456789abc);
}

static void test_ce_result_with_exceptions_is_delivered_but_an_error(void **state)
{
    gni_ce_result_t result = { .control = 1ULL << 63 | (uint64_t)(GNI_CE_FPE_OFLOW | GNI_CE_FPE_PRECISION) << 52 };

    (void)state;
    assert_int_equal(GNI_CeCheckResult(&result, 1), GNI_RC_TRANSACTION_ERROR);
    assert_true(GNI_CE_RES_STATUS_OK(&result));
    assert_int_equal(GNI_CE_RES_GET_FPE(&result), GNI_CE_FPE_OFLOW | GNI_CE_FPE_PRECISION);
}

static void test_failed_ce_result_is_an_error_and_not_delivered(void **state)
{
    gni_ce_result_t result = { .control = 1ULL << 63 | (uint64_t)GNII_CQE_PEER_GONE << 56 };

    (void)state;
    assert_int_equal(GNI_CeCheckResult(&result, 1), GNI_RC_TRANSACTION_ERROR);
    assert_false(GNI_CE_RES_STATUS_OK(&result));
    assert_int_equal(GNI_CE_RES_GET_STATUS(&result), GNII_CQE_PEER_GONE);
    assert_int_equal(GNI_CE_RES_GET_FPE(&result), 0);
}

static void test_missing_ce_result_is_an_invalid_parameter(void **state)
{
    (void)state;
    assert_int_equal(GNI_CeCheckResult(NULL, 1), GNI_RC_INVALID_PARAM);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_post_entry_gives_back_tid_and_local_event),
        cmocka_unit_test(test_local_event_of_a_post_entry_is_cut_to_24_bits),
        cmocka_unit_test(test_send_entry_gives_back_all_of_msg_id),
        cmocka_unit_test(test_number_of_a_send_comes_back_and_leaves_no_trace),
        cmocka_unit_test(test_remote_entry_answers_both_instance_accessors),
        cmocka_unit_test(test_cq_write_gives_back_48_bits_and_no_more),
        cmocka_unit_test(test_ce_channel_entry_gives_back_channel_and_reduction),
        cmocka_unit_test(test_overrun_word_is_an_overrun_and_not_zero),
        cmocka_unit_test(test_remote_overrun_is_told_apart_from_the_local_one),
        cmocka_unit_test(test_no_entry_of_any_kind_is_zero),
        cmocka_unit_test(test_set_inst_id_replaces_24_bits),
        cmocka_unit_test(test_set_rem_inst_id_replaces_32_bits),
        cmocka_unit_test(test_set_tid_replaces_bits_47_to_24),
        cmocka_unit_test(test_set_msg_id_replaces_32_bits),
        cmocka_unit_test(test_set_type_replaces_two_bits),
        cmocka_unit_test(test_clr_status_leaves_the_overrun_marks),
        cmocka_unit_test(test_fields_without_meaning_here_read_as_zero),
        cmocka_unit_test(test_zeroed_ce_result_is_not_done),
        cmocka_unit_test(test_delivered_ce_result_is_success),
        cmocka_unit_test(test_ce_result_with_exceptions_is_delivered_but_an_error),
        cmocka_unit_test(test_failed_ce_result_is_an_error_and_not_delivered),
        cmocka_unit_test(test_missing_ce_result_is_an_invalid_parameter),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
