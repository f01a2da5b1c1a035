/* SPDX-License-Identifier: BSD-3-Clause */
/* Devices, versions, resources, statistics. Specification: spec/ugni.md 4.3, 2.18, 2.19. */
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

static void test_tag_is_that_of_the_job_with_the_cookie(void **state)
{
    struct emu_session other;
    uint8_t ptag = 0;

    (void)state;
    assert_int_equal(GNI_GetPtag(0, fx.cookie, &ptag), GNI_RC_SUCCESS);
    assert_int_equal(ptag, fx.ptag);
    assert_int_equal(fx_add_domain(&fx, 91, 0x5555, geteuid(), 0, &other), 0);
    assert_int_equal(GNI_GetPtag(0, 0x5555, &ptag), GNI_RC_SUCCESS);
    assert_int_equal(ptag, 91);
    fx_end_domain(&other);
}

static void test_tag_of_an_unknown_cookie_gives_no_match(void **state)
{
    uint8_t ptag = 55;

    (void)state;
    assert_int_equal(GNI_GetPtag(0, fx.cookie + 1, &ptag), GNI_RC_NO_MATCH);
    assert_int_equal(GNI_GetPtag(0, 0, &ptag), GNI_RC_NO_MATCH);
    assert_int_equal(ptag, 55);
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
        bool is_there =
            type == GNI_DEV_RES_MDD || type == GNI_DEV_RES_CQ || type == GNI_DEV_RES_FMA || type == GNI_DEV_RES_CE;
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
                        type == GNI_JOB_RES_RMDA || type == GNI_JOB_RES_CE || type == GNI_JOB_RES_SFMA ||
                        type == GNI_JOB_RES_IOMMU;
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
    gni_mem_handle_t handle;
    gni_cq_handle_t cq;
    uint64_t mdds;
    uint64_t cqs;

    (void)state;
    fx_set_node(0); /* where a is */
    mdds = job_use(GNI_JOB_RES_MDD);
    cqs = job_use(GNI_JOB_RES_CQ);
    handle = register_on(&a, a.mem, 8, GNI_MEM_READWRITE);
    assert_int_equal(GNI_CqCreate(a.nic, 1, 0, GNI_CQ_NOBLOCK, NULL, NULL, &cq), GNI_RC_SUCCESS);
    assert_int_equal(job_use(GNI_JOB_RES_MDD), mdds + 1);
    assert_int_equal(job_use(GNI_JOB_RES_CQ), cqs + 1);
    GNI_MemDeregister(a.nic, &handle);
    GNI_CqDestroy(cq);
    assert_int_equal(job_use(GNI_JOB_RES_MDD), mdds);
    assert_int_equal(job_use(GNI_JOB_RES_CQ), cqs);
}

/* Each holds a queue more than the one before; all on one node. */
static int hold_resources(struct fx_rank *rank)
{
    gni_job_res_desc_t desc;
    struct gx_side side;
    gni_cq_handle_t cq;

    gx_open(&side, rank->fx, 2, rank->rank, rank->rank % 2 ? GNI_CDM_MODE_FMA_SHARED : GNI_CDM_MODE_FMA_DEDICATED);
    for (unsigned i = 0; i < rank->rank; i++)
        FX_CHECK(GNI_CqCreate(side.nic, 8, 0, GNI_CQ_NOBLOCK, NULL, NULL, &cq) == GNI_RC_SUCCESS);
    pthread_barrier_wait(rank->barrier);
    FX_CHECK(GNI_GetJobResInfo(0, (uint8_t)rank->fx->ptag, GNI_JOB_RES_CQ, &desc) == GNI_RC_SUCCESS);
    FX_CHECK(desc.used == 4 * 2 + 0 + 1 + 2 + 3);
    FX_CHECK(GNI_GetJobResInfo(0, (uint8_t)rank->fx->ptag, GNI_JOB_RES_MDD, &desc) == GNI_RC_SUCCESS && desc.used == 4);
    FX_CHECK(GNI_GetJobResInfo(0, (uint8_t)rank->fx->ptag, GNI_JOB_RES_SFMA, &desc) == GNI_RC_SUCCESS);
    FX_CHECK(desc.used == 2);
    FX_CHECK(GNI_GetJobResInfo(0, (uint8_t)rank->fx->ptag, GNI_JOB_RES_FMA, &desc) == GNI_RC_SUCCESS);
    FX_CHECK(desc.used == 2 + 1); /* the two that share hold one */
    FX_CHECK(GNI_GetJobResInfo(0, 200, GNI_JOB_RES_MDD, &desc) == GNI_RC_SUCCESS && desc.used == 0);
    fx_set_node(3);
    FX_CHECK(GNI_GetJobResInfo(0, (uint8_t)rank->fx->ptag, GNI_JOB_RES_CQ, &desc) == GNI_RC_SUCCESS && desc.used == 0);
    pthread_barrier_wait(rank->barrier);
    gx_close(&side);
    return 0;
}

static void test_use_is_that_of_all_processes_of_the_job_on_the_node(void **state)
{
    (void)state;
    assert_int_equal(fx_run(&fx, 4, hold_resources, NULL), 0);
}

static void test_resources_refuse_bad_arguments(void **state)
{
    gni_dev_res_desc_t dev;
    gni_job_res_desc_t job;
    const struct {
        const char *name;
        uint32_t device;
        uint8_t ptag;
        gni_job_res_t resource;
        gni_job_res_desc_t *out;
    } rows[] = {
        { "device 1", 1, 77, GNI_JOB_RES_MDD, &job },
        { "before the first resource", 0, 77, GNI_JOB_RES_FIRST, &job },
        { "behind the last resource", 0, 77, GNI_JOB_RES_LAST, &job },
        { "no result", 0, 77, GNI_JOB_RES_MDD, NULL },
        { "ptag 0", 0, 0, GNI_JOB_RES_MDD, &job },
    };

    (void)state;
    assert_int_equal(GNI_GetDevResInfo(1, GNI_DEV_RES_MDD, &dev), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_GetDevResInfo(0, GNI_DEV_RES_FIRST, &dev), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_GetDevResInfo(0, GNI_DEV_RES_LAST, &dev), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_GetDevResInfo(0, GNI_DEV_RES_MDD, NULL), GNI_RC_INVALID_PARAM);
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        assert_row_equal(rows[i].name, GNI_GetJobResInfo(rows[i].device, rows[i].ptag, rows[i].resource, rows[i].out),
                         GNI_RC_INVALID_PARAM);
}

static void test_questions_are_answered_without_emunic(void **state)
{
    gni_dev_res_desc_t desc = { 0, 0, 0, 0 };
    gni_nic_device_t type;
    uint8_t ptag;
    int count;

    (void)state;
    fx_needs_emunic();
    setenv("EMUNIC_SERVER", "test-nobody-is-here", 1);
    assert_int_equal(GNI_GetNumLocalDevices(&count), GNI_RC_SUCCESS);
    assert_int_equal(GNI_GetDeviceType(&type), GNI_RC_SUCCESS);
    assert_int_equal(GNI_GetPtag(0, fx.cookie, &ptag), GNI_RC_NO_MATCH); /* nobody knows a cookie */
    assert_int_equal(GNI_GetDevResInfo(0, GNI_DEV_RES_MDD, &desc), GNI_RC_SUCCESS);
    fx_use(&fx);
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

static uint32_t stat_of(const struct gx_side *side, gni_statistic_t stat)
{
    uint32_t value = 99;

    assert_int_equal(GNI_GetNicStat(side->nic, stat, &value), GNI_RC_SUCCESS);
    return value;
}

/* A mailbox of two credits at the start of each side's memory. */
static void connect_mailboxes(void)
{
    gni_smsg_attr_t of_a = { .msg_type = GNI_SMSG_TYPE_MBOX,
                             .msg_buffer = a.mem,
                             .buff_size = 4096,
                             .mem_hndl = a.mem_hndl,
                             .mbox_maxcredit = 2,
                             .msg_maxsize = 64 };
    gni_smsg_attr_t of_b = of_a;

    of_b.msg_buffer = b.mem;
    of_b.mem_hndl = b.mem_hndl;
    assert_int_equal(GNI_SmsgInit(a.ep, &of_a, &of_b), GNI_RC_SUCCESS);
    assert_int_equal(GNI_SmsgInit(b.ep, &of_b, &of_a), GNI_RC_SUCCESS);
}

static void test_sends_without_credit_are_counted_and_others_are_not(void **state)
{
    (void)state;
    connect_mailboxes();
    assert_int_equal(GNI_SmsgSend(a.ep, "1", 1, NULL, 0, 1), GNI_RC_SUCCESS);
    assert_int_equal(GNI_SmsgSend(a.ep, "2", 1, NULL, 0, 2), GNI_RC_SUCCESS);
    assert_int_equal(stat_of(&a, GNI_STAT_SMSG_MBOX_CREDITS_STALL), 0);
    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(GNI_SmsgSend(a.ep, "3", 1, NULL, 0, 3), GNI_RC_NOT_DONE);
    assert_int_equal(stat_of(&a, GNI_STAT_SMSG_MBOX_CREDITS_STALL), 3);
    assert_int_equal(stat_of(&b, GNI_STAT_SMSG_MBOX_CREDITS_STALL), 0); /* each NIC handle has its own */
    assert_int_equal(stat_of(&a, GNI_STAT_SMSG_REQ_STALL), 0);
    assert_int_equal(GNI_ResetNicStat(a.nic, GNI_STAT_SMSG_MBOX_CREDITS_STALL), GNI_RC_SUCCESS);
    assert_int_equal(stat_of(&a, GNI_STAT_SMSG_MBOX_CREDITS_STALL), 0);
}

/* The source queue has one entry, exactly. */
static void test_sends_without_room_for_their_completion_are_counted(void **state)
{
    gni_cq_handle_t tiny;
    gni_ep_handle_t ep;
    gni_smsg_attr_t of_a = { .msg_type = GNI_SMSG_TYPE_MBOX,
                             .msg_buffer = a.mem,
                             .buff_size = 4096,
                             .mem_hndl = a.mem_hndl,
                             .mbox_maxcredit = 2,
                             .msg_maxsize = 64 };
    gni_smsg_attr_t of_b = of_a;
    gni_cq_entry_t entry;

    (void)state;
    of_b.msg_buffer = b.mem;
    of_b.mem_hndl = b.mem_hndl;
    assert_int_equal(GNI_CqCreate(a.nic, 1, 0, GNI_CQ_NOBLOCK, NULL, NULL, &tiny), GNI_RC_SUCCESS);
    assert_int_equal(GNI_EpCreate(a.nic, tiny, &ep), GNI_RC_SUCCESS);
    assert_int_equal(GNI_EpBind(ep, b.nic_addr, b.inst_id), GNI_RC_SUCCESS);
    assert_int_equal(GNI_SmsgInit(ep, &of_a, &of_b), GNI_RC_SUCCESS);
    assert_int_equal(GNI_SmsgSend(ep, "1", 1, NULL, 0, 1), GNI_RC_SUCCESS);
    assert_int_equal(GNI_SmsgSend(ep, "2", 1, NULL, 0, 2), GNI_RC_NOT_DONE);
    assert_int_equal(stat_of(&a, GNI_STAT_SMSG_REQ_STALL), 1);
    assert_int_equal(stat_of(&a, GNI_STAT_SMSG_MBOX_CREDITS_STALL), 0);
    assert_int_equal(gx_next(tiny, &entry), GNI_RC_SUCCESS);
    assert_int_equal(GNI_SmsgSend(ep, "2", 1, NULL, 0, 2), GNI_RC_SUCCESS);
    assert_int_equal(gx_next(tiny, &entry), GNI_RC_SUCCESS);
    GNI_EpDestroy(ep);
    GNI_CqDestroy(tiny);
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
        cmocka_unit_test(test_tag_is_that_of_the_job_with_the_cookie),
        cmocka_unit_test(test_tag_of_an_unknown_cookie_gives_no_match),
        cmocka_unit_test(test_tag_of_another_device_gives_no_match),
        cmocka_unit_test(test_resources_of_an_aries_have_limits_and_others_are_missing),
        cmocka_unit_test(test_resources_of_a_job_have_limits_and_others_are_missing),
        pair_test(test_registrations_and_queues_count_as_used),
        cmocka_unit_test(test_use_is_that_of_all_processes_of_the_job_on_the_node),
        cmocka_unit_test(test_resources_refuse_bad_arguments),
        cmocka_unit_test(test_questions_are_answered_without_emunic),
        pair_test(test_all_19_statistics_start_at_zero_and_can_be_reset),
        pair_test(test_sends_without_credit_are_counted_and_others_are_not),
        exact_pair_test(test_sends_without_room_for_their_completion_are_counted),
        pair_test(test_statistics_refuse_bad_arguments),
    };

    return cmocka_run_group_tests(tests, start_emunic, stop_emunic);
}
