/* SPDX-License-Identifier: BSD-3-Clause */
/* Devices, versions, resources, statistics. Specification: ugni.md 4.3, 2.18, 2.19. */
#define CRAY_CONFIG_GHAL_ARIES /* the long list of statistics */

#include "tests/conformance/pair.h"

static uint64_t job_use(gni_job_res_t type)
{
    gni_job_res_desc_t desc = { 0, 0 };

    assert_int_equal(GNI_GetJobResInfo(0, (uint8_t)fx.ptag, type, &desc), GNI_RC_SUCCESS);
    return desc.used;
}

/* ---- devices and versions ---- */

static void test_there_is_one_device_with_number_0(void **state)
{
    int ids[3] = { 7, 8, 9 };
    int count = 77;

    (void)state;
    assert_int_equal(GNI_GetNumLocalDevices(&count), GNI_RC_SUCCESS);
    assert_int_equal(count, 1);
    assert_int_equal(GNI_GetLocalDeviceIds(3, ids), GNI_RC_SUCCESS);
    assert_int_equal(ids[0], 0);
    assert_int_equal(ids[1], 8); /* no more than there are */
    assert_int_equal(GNI_GetLocalDeviceIds(1, ids), GNI_RC_SUCCESS);
}

static void test_device_lists_refuse_bad_arguments(void **state)
{
    int ids[1];

    (void)state;
    assert_int_equal(GNI_GetNumLocalDevices(NULL), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_GetLocalDeviceIds(1, NULL), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_GetLocalDeviceIds(0, ids), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_GetLocalDeviceIds(-1, ids), GNI_RC_INVALID_PARAM);
}

static void test_device_is_an_aries(void **state)
{
    gni_nic_device_t type = GNI_DEVICE_LAST;

    (void)state;
    assert_int_equal(GNI_GetDeviceType(&type), GNI_RC_SUCCESS);
    assert_int_equal(type, GNI_DEVICE_ARIES);
    assert_int_equal(GNI_GetDeviceType(NULL), GNI_RC_INVALID_PARAM);
}

static void test_library_is_not_older_than_its_header(void **state)
{
    gni_version_info_t info;
    uint32_t version = 0;

    (void)state;
    assert_int_equal(GNI_GetVersion(&version), GNI_RC_SUCCESS);
    assert_true(version >= GNI_VERSION);
    assert_int_equal(GNI_GetVersionInformation(&info), GNI_RC_SUCCESS);
    assert_int_equal(info.ugni_version, version);
    assert_true(strnlen(info.ugni_build_string, MAX_BUILD_STRING_LENGTH) < MAX_BUILD_STRING_LENGTH);
    assert_true(strnlen(info.kgni_build_string, MAX_BUILD_STRING_LENGTH) < MAX_BUILD_STRING_LENGTH);
    assert_int_equal(GNI_GetVersion(NULL), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_GetVersionInformation(NULL), GNI_RC_INVALID_PARAM);
}

static void test_translation_table_has_a_granularity(void **state)
{
    uint32_t granularity = 0;

    (void)state;
    assert_int_equal(GNI_GetNttGran(0, &granularity), GNI_RC_SUCCESS);
    assert_int_not_equal(granularity, 0);
    assert_int_equal(GNI_GetNttGran(1, &granularity), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_GetNttGran(0, NULL), GNI_RC_INVALID_PARAM);
}

static void test_tag_of_a_cookie_is_a_user_tag_and_stays_the_same(void **state)
{
    (void)state;
    for (uint32_t cookie = 1; cookie < 5000; cookie += 7) {
        uint8_t first = 0;
        uint8_t second = 0;

        assert_int_equal(GNI_GetPtag(0, cookie, &first), GNI_RC_SUCCESS);
        assert_int_equal(GNI_GetPtag(0, cookie, &second), GNI_RC_SUCCESS);
        assert_in_range(first, GNI_PTAG_USER_START, GNI_PTAG_USER_END);
        assert_int_equal(first, second);
    }
}

static void test_tag_of_another_device_gives_no_match(void **state)
{
    uint8_t ptag = 55;

    (void)state;
    assert_int_equal(GNI_GetPtag(1, fx.cookie, &ptag), GNI_RC_NO_MATCH);
    assert_int_equal(ptag, 55);
    assert_int_equal(GNI_GetPtag(0, fx.cookie, NULL), GNI_RC_INVALID_PARAM);
}

/* ---- resources ---- */

static void test_resources_of_an_aries_have_limits_and_others_are_missing(void **state)
{
    (void)state;
    for (gni_dev_res_t type = GNI_DEV_RES_FIRST + 1; type < GNI_DEV_RES_LAST; type++) {
        bool is_there = type == GNI_DEV_RES_MDD || type == GNI_DEV_RES_CQ || type == GNI_DEV_RES_FMA ||
                        type == GNI_DEV_RES_CE;
        gni_dev_res_desc_t desc = { 1, 2, 3, 4 };

        assert_int_equal(GNI_GetDevResInfo(0, type, &desc), is_there ? GNI_RC_SUCCESS : GNI_RC_ERROR_RESOURCE);
        if (!is_there)
            continue;
        assert_true(desc.total > 0);
        assert_true(desc.available <= desc.total);
        assert_true(desc.held + desc.available <= desc.total);
    }
}

static void test_resources_of_a_job_have_limits_and_others_are_missing(void **state)
{
    (void)state;
    for (gni_job_res_t type = GNI_JOB_RES_FIRST + 1; type < GNI_JOB_RES_LAST; type++) {
        bool is_there = type == GNI_JOB_RES_MDD || type == GNI_JOB_RES_CQ || type == GNI_JOB_RES_FMA ||
                        type == GNI_JOB_RES_RMDA || type == GNI_JOB_RES_CE || type == GNI_JOB_RES_SFMA;
        gni_job_res_desc_t desc = { 1, 2 };

        assert_int_equal(GNI_GetJobResInfo(0, (uint8_t)fx.ptag, type, &desc),
                         is_there ? GNI_RC_SUCCESS : GNI_RC_ERROR_RESOURCE);
        if (!is_there)
            continue;
        assert_true(desc.limit > 0);
        assert_true(desc.used <= desc.limit);
    }
}

static void test_registrations_and_queues_count_as_used(void **state)
{
    uint64_t mdds = job_use(GNI_JOB_RES_MDD);
    uint64_t cqs = job_use(GNI_JOB_RES_CQ);
    gni_mem_handle_t handle = register_on(&a, a.mem, 8, GNI_MEM_READWRITE);
    gni_cq_handle_t cq;

    (void)state;
    assert_int_equal(GNI_CqCreate(a.nic, 1, 0, GNI_CQ_NOBLOCK, NULL, NULL, &cq), GNI_RC_SUCCESS);
    assert_int_equal(job_use(GNI_JOB_RES_MDD), mdds + 1);
    assert_int_equal(job_use(GNI_JOB_RES_CQ), cqs + 1);
    GNI_MemDeregister(a.nic, &handle);
    GNI_CqDestroy(cq);
    assert_int_equal(job_use(GNI_JOB_RES_MDD), mdds);
    assert_int_equal(job_use(GNI_JOB_RES_CQ), cqs);
}

static void test_resources_refuse_bad_arguments(void **state)
{
    gni_dev_res_desc_t dev;
    gni_job_res_desc_t job;

    (void)state;
    assert_int_equal(GNI_GetDevResInfo(1, GNI_DEV_RES_MDD, &dev), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_GetDevResInfo(0, GNI_DEV_RES_FIRST, &dev), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_GetDevResInfo(0, GNI_DEV_RES_LAST, &dev), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_GetDevResInfo(0, GNI_DEV_RES_MDD, NULL), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_GetJobResInfo(1, 77, GNI_JOB_RES_MDD, &job), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_GetJobResInfo(0, 77, GNI_JOB_RES_FIRST, &job), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_GetJobResInfo(0, 77, GNI_JOB_RES_LAST, &job), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_GetJobResInfo(0, 77, GNI_JOB_RES_MDD, NULL), GNI_RC_INVALID_PARAM);
}

static void test_questions_are_answered_without_emunic(void **state)
{
    gni_dev_res_desc_t desc = { 0, 0, 0, 0 };
    gni_nic_device_t type;
    uint8_t ptag;
    int count;

    (void)state;
    setenv("EMUNIC_SERVER", "test-nobody-is-here", 1);
    assert_int_equal(GNI_GetNumLocalDevices(&count), GNI_RC_SUCCESS);
    assert_int_equal(GNI_GetDeviceType(&type), GNI_RC_SUCCESS);
    assert_int_equal(GNI_GetPtag(0, 1, &ptag), GNI_RC_SUCCESS);
    assert_int_equal(GNI_GetDevResInfo(0, GNI_DEV_RES_MDD, &desc), GNI_RC_SUCCESS);
    setenv("EMUNIC_SERVER", fx.server, 1);
    assert_true(desc.total > 0);
    assert_int_equal(desc.held, 0);
}

/* ---- statistics ---- */

static void test_all_19_statistics_start_at_zero_and_can_be_reset(void **state)
{
    (void)state;
    assert_int_equal(GNI_NUM_STATS, 19);
    for (unsigned stat = 0; stat < GNI_NUM_STATS; stat++) {
        uint32_t value = 99;

        assert_int_equal(GNI_GetNicStat(a.nic, (gni_statistic_t)stat, &value), GNI_RC_SUCCESS);
        assert_int_equal(value, 0);
        assert_int_equal(GNI_ResetNicStat(a.nic, (gni_statistic_t)stat), GNI_RC_SUCCESS);
        assert_non_null(gni_statistic_str[stat]);
    }
}

static void test_statistics_refuse_bad_arguments(void **state)
{
    uint32_t value = 99;

    (void)state;
    assert_int_equal(GNI_GetNicStat(a.nic, (gni_statistic_t)19, &value), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_GetNicStat(a.nic, (gni_statistic_t)-1, &value), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_GetNicStat(a.nic, GNI_STAT_SMSG_DLA_STALL, NULL), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_GetNicStat(NULL, GNI_STAT_SMSG_DLA_STALL, &value), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_ResetNicStat(a.nic, (gni_statistic_t)19), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_ResetNicStat(NULL, GNI_STAT_SMSG_DLA_STALL), GNI_RC_INVALID_PARAM);
    assert_int_equal(value, 99);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_there_is_one_device_with_number_0),
        cmocka_unit_test(test_device_lists_refuse_bad_arguments),
        cmocka_unit_test(test_device_is_an_aries),
        cmocka_unit_test(test_library_is_not_older_than_its_header),
        cmocka_unit_test(test_translation_table_has_a_granularity),
        cmocka_unit_test(test_tag_of_a_cookie_is_a_user_tag_and_stays_the_same),
        cmocka_unit_test(test_tag_of_another_device_gives_no_match),
        cmocka_unit_test(test_resources_of_an_aries_have_limits_and_others_are_missing),
        cmocka_unit_test(test_resources_of_a_job_have_limits_and_others_are_missing),
        pair_test(test_registrations_and_queues_count_as_used),
        cmocka_unit_test(test_resources_refuse_bad_arguments),
        cmocka_unit_test(test_questions_are_answered_without_emunic),
        pair_test(test_all_19_statistics_start_at_zero_and_can_be_reset),
        pair_test(test_statistics_refuse_bad_arguments),
    };

    return cmocka_run_group_tests(tests, start_emunic, stop_emunic);
}
