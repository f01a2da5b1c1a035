/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Job control: declaring, privilege, limits. Translation, suspending and checkpoints: test_job_control.c.
 * Specification: spec/ugni.md 3.9, 4.1, 4.2.
 */
#include "tests/conformance/job.h"

#define STRANGER 65534u

static gni_return_t set_limits(gni_job_limits_t limits)
{
    return GNI_ConfigureJob(0, JOB_ID, (uint8_t)fx.ptag, fx.cookie, &limits);
}

static void drop_limits(void)
{
    gni_job_limits_t limits = no_limits();

    limits.mdd_limit = limits.fma_limit = limits.bte_limit = limits.cq_limit = INT32_MAX;
    limits.a.m.iommu_limit = 60;
    limits.a.m.ce_limit = 100;
    assert_int_equal(set_limits(limits), GNI_RC_SUCCESS);
}

static int close_pair_and_drop_limits(void **state)
{
    drop_limits();
    return close_pair(state);
}

#define limited_test(name) cmocka_unit_test_setup_teardown(name, open_pair, close_pair_and_drop_limits)

/* ---- declaring ---- */

static int attach_to_the_declared_job(void)
{
    FX_CHECK(try_attach(PTAG, COOKIE, 1, 0) == GNI_RC_SUCCESS);
    return 0;
}

static void test_declared_job_can_be_attached_and_ends_with_its_last_process(void **state)
{
    uint8_t ptag = 0;

    (void)state;
    assert_int_equal(try_attach(PTAG, COOKIE, 1, 0), GNI_RC_PERMISSION_ERROR);
    assert_int_equal(GNI_ConfigureJob(0, JOB_ID, PTAG, COOKIE, NULL), GNI_RC_SUCCESS);
    assert_int_equal(GNI_GetPtag(0, COOKIE, &ptag), GNI_RC_SUCCESS);
    assert_int_equal(ptag, PTAG);
    assert_int_equal(GNI_ConfigureJob(0, JOB_ID, PTAG, COOKIE, NULL), GNI_RC_SUCCESS); /* known: nothing to do */
    assert_int_equal(in_child(attach_to_the_declared_job), 0);
    assert_true(eventually(job_is_gone, NULL, PATIENCE_NS));
    assert_int_equal(try_attach(PTAG, COOKIE, 1, 0), GNI_RC_PERMISSION_ERROR);
}

static int declare(void)
{
    FX_CHECK(GNI_ConfigureJob(0, JOB_ID, PTAG, COOKIE, NULL) == GNI_RC_SUCCESS);
    return 0;
}

/* A launcher may configure a job with a short-lived command. */
static void test_declared_job_waits_for_its_first_process_when_its_declarer_has_ended(void **state)
{
    (void)state;
    assert_int_equal(in_child(declare), 0);
    assert_int_equal(in_child(declare), 0); /* known: nothing to do */
    assert_int_equal(in_child(attach_to_the_declared_job), 0);
    assert_true(eventually(job_is_gone, NULL, PATIENCE_NS));
}

static void test_tag_of_another_job_is_an_invalid_state(void **state)
{
    (void)state;
    assert_int_equal(GNI_ConfigureJob(0, JOB_ID, PTAG, COOKIE, NULL), GNI_RC_SUCCESS);
    assert_int_equal(GNI_ConfigureJob(0, JOB_ID + 1, PTAG, COOKIE, NULL), GNI_RC_INVALID_STATE);
    assert_int_equal(GNI_ConfigureJob(0, JOB_ID, PTAG, COOKIE + 1, NULL), GNI_RC_INVALID_STATE);
    assert_int_equal(GNI_ConfigureJob(0, JOB_ID, PTAG + 1, COOKIE, NULL), GNI_RC_INVALID_STATE);
    assert_int_equal(GNI_ConfigureJob(0, JOB_ID, (uint8_t)fx.ptag, COOKIE, NULL), GNI_RC_INVALID_STATE);
    assert_int_equal(in_child(attach_to_the_declared_job), 0);
    assert_true(eventually(job_is_gone, NULL, PATIENCE_NS));
}

static void test_declaring_checks_its_arguments(void **state)
{
    gni_job_limits_t limits = no_limits();

    (void)state;
    assert_int_equal(GNI_ConfigureJob(1, JOB_ID, PTAG, COOKIE, NULL), GNI_RC_NO_MATCH);
    assert_int_equal(GNI_ConfigureJob(0, JOB_ID, 0, COOKIE, NULL), GNI_RC_INVALID_PARAM);
    limits.mdd_limit = -2;
    assert_int_equal(set_limits(limits), GNI_RC_INVALID_PARAM);
    limits = no_limits();
    limits.b.dla_limit = -5;
    assert_int_equal(set_limits(limits), GNI_RC_INVALID_PARAM);
    limits = no_limits();
    limits.ntt_base = -1;
    limits.ntt_size = 4;
    assert_int_equal(set_limits(limits), GNI_RC_INVALID_PARAM);
    limits.ntt_base = 17; /* entries that nobody has filled */
    assert_int_equal(set_limits(limits), GNI_RC_NO_MATCH);
}

static int configure_as_a_stranger(void)
{
    gni_ntt_entry_t entry = { 0, 0, 0 };
    gni_ntt_descriptor_t ntt = { .group_size = 1, .u.table_v2 = &entry };
    uint32_t base = 77;

    FX_CHECK(setgroups(0, NULL) == 0 && setgid(STRANGER) == 0 && setuid(STRANGER) == 0);
    FX_CHECK(GNI_ConfigureJob(0, JOB_ID, PTAG, COOKIE, NULL) == GNI_RC_PERMISSION_ERROR);
    FX_CHECK(GNI_ConfigureNTT(0, &ntt, &base) == GNI_RC_PERMISSION_ERROR);
    FX_CHECK(GNI_ConfigureNTTandJob(0, JOB_ID, PTAG, COOKIE, NULL, &ntt, &base) == GNI_RC_PERMISSION_ERROR);
    FX_CHECK(GNI_SuspendJob(0, JOB_ID, (uint8_t)fx.ptag, fx.cookie, 10) == GNI_RC_PERMISSION_ERROR);
    FX_CHECK(GNI_ResumeJob(0, JOB_ID, (uint8_t)fx.ptag, fx.cookie) == GNI_RC_PERMISSION_ERROR);
    FX_CHECK(GNI_SetBIConfig(0, 50, 50, GNI_BI_FLAG_APPLY_NOW) == GNI_RC_PERMISSION_ERROR);
    FX_CHECK(base == 77);
    return 0;
}

static void test_stranger_has_no_privilege(void **state)
{
    (void)state;
    if (geteuid() != 0)
        return; /* nobody to become */
    assert_int_equal(in_child(configure_as_a_stranger), 0);
}

static void test_without_emunic_there_is_no_device(void **state)
{
    gni_ntt_entry_t entry = { 0, 0, 0 };
    gni_ntt_descriptor_t ntt = { .group_size = 1, .u.table_v2 = &entry };
    uint32_t base;

    (void)state;
    setenv("EMUNIC_SERVER", "test-nobody-is-here", 1);
    assert_int_equal(GNI_ConfigureJob(0, JOB_ID, PTAG, COOKIE, NULL), GNI_RC_NO_MATCH);
    assert_int_equal(GNI_ConfigureNTT(0, &ntt, &base), GNI_RC_NO_MATCH);
    assert_int_equal(GNI_ConfigureNTTandJob(0, JOB_ID, PTAG, COOKIE, NULL, &ntt, &base), GNI_RC_NO_MATCH);
    assert_int_equal(GNI_SuspendJob(0, JOB_ID, PTAG, COOKIE, 0), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_ResumeJob(0, JOB_ID, PTAG, COOKIE), GNI_RC_INVALID_PARAM);
    setenv("EMUNIC_SERVER", fx.server, 1);
}

/* emunic has no descriptor left for another connection: that is said at once, and is no lack of a right. */
static void test_emunic_that_can_take_nobody_is_not_a_lack_of_privilege(void **state)
{
    gni_ntt_entry_t entry = { 0, 0, 0 };
    gni_ntt_descriptor_t ntt = { .group_size = 1, .u.table_v2 = &entry };
    struct emu_session others[32];
    struct rlimit full;
    struct rlimit old;
    uint32_t base = 0;
    unsigned n = 0;

    (void)state;
    fx_needs_emunic();
    assert_int_equal(prlimit(fx.daemon, RLIMIT_NOFILE, NULL, &old), 0);
    full = (struct rlimit){ (rlim_t)fx_count_fds(&fx), old.rlim_max };
    assert_int_equal(prlimit(fx.daemon, RLIMIT_NOFILE, &full, NULL), 0);
    while (n < COUNT_OF(others) && emu_session_open(&others[n], fx.server, EMU_SOCKET_CONTROL) == 0)
        n++; /* numbers that were free in between */
    assert_int_equal(GNI_ConfigureJob(0, JOB_ID, PTAG, COOKIE, NULL), GNI_RC_ERROR_RESOURCE);
    assert_int_equal(GNI_ConfigureNTT(0, &ntt, &base), GNI_RC_ERROR_RESOURCE);
    assert_int_equal(GNI_ConfigureNTTandJob(0, JOB_ID, PTAG, COOKIE, NULL, &ntt, &base), GNI_RC_ERROR_RESOURCE);
    assert_int_equal(GNI_SuspendJob(0, JOB_ID, (uint8_t)fx.ptag, fx.cookie, 10), GNI_RC_NOT_DONE);
    assert_int_equal(GNI_ResumeJob(0, JOB_ID, (uint8_t)fx.ptag, fx.cookie), GNI_RC_ERROR_RESOURCE);
    assert_int_equal(GNI_SetBIConfig(0, 50, 50, GNI_BI_FLAG_APPLY_NOW), GNI_RC_INVALID_PARAM);
    assert_int_equal(prlimit(fx.daemon, RLIMIT_NOFILE, &old, NULL), 0);
    while (n > 0)
        emu_session_close(&others[--n]);
    assert_int_equal(GNI_SetBIConfig(0, 100, 100, GNI_BI_FLAG_USE_DEFAULT_SETTINGS), GNI_RC_SUCCESS);
}

/* ---- limits ---- */

static gni_job_res_desc_t resource(gni_job_res_t type, uint32_t nid)
{
    gni_job_res_desc_t desc = { 0, 0 };

    fx_set_node(nid);
    assert_int_equal(GNI_GetJobResInfo(0, (uint8_t)fx.ptag, type, &desc), GNI_RC_SUCCESS);
    return desc;
}

static void test_limit_of_mdds_is_per_node_and_holds(void **state)
{
    gni_job_limits_t limits = no_limits();
    gni_mem_handle_t handles[4];

    (void)state;
    limits.mdd_limit = 3; /* one is taken on each node */
    assert_int_equal(set_limits(limits), GNI_RC_SUCCESS);
    assert_int_equal(resource(GNI_JOB_RES_MDD, 0).limit, 3);
    handles[0] = register_on(&a, a.mem, 64, 0);
    handles[1] = register_on(&a, a.mem, 64, 0);
    assert_int_equal(GNI_MemRegister(a.nic, ADDR(a.mem), 64, NULL, 0, (uint32_t)-1, &handles[2]),
                     GNI_RC_ERROR_RESOURCE);
    assert_int_equal(resource(GNI_JOB_RES_MDD, 0).used, 3);
    assert_int_equal(resource(GNI_JOB_RES_MDD, 1).used, 1);
    handles[2] = register_on(&b, b.mem, 64, 0); /* another node */
    assert_int_equal(GNI_MemDeregister(a.nic, &handles[0]), GNI_RC_SUCCESS);
    handles[0] = register_on(&a, a.mem, 64, 0); /* given back, taken again */
    limits = no_limits();
    assert_int_equal(set_limits(limits), GNI_RC_SUCCESS); /* changes nothing */
    assert_int_equal(resource(GNI_JOB_RES_MDD, 0).limit, 3);
    limits.mdd_limit = 1; /* below what is held: nothing is taken away */
    assert_int_equal(set_limits(limits), GNI_RC_SUCCESS);
    assert_int_equal(resource(GNI_JOB_RES_MDD, 0).used, 3);
    assert_int_equal(GNI_MemRegister(b.nic, ADDR(b.mem), 64, NULL, 0, (uint32_t)-1, &handles[3]),
                     GNI_RC_ERROR_RESOURCE);
    GNI_MemDeregister(a.nic, &handles[0]);
    GNI_MemDeregister(a.nic, &handles[1]);
    GNI_MemDeregister(b.nic, &handles[2]);
}

static void test_limit_of_queues_holds(void **state)
{
    gni_job_limits_t limits = no_limits();
    gni_cq_handle_t cq;
    gni_cq_handle_t more;

    (void)state;
    limits.cq_limit = 3; /* two are taken */
    assert_int_equal(set_limits(limits), GNI_RC_SUCCESS);
    assert_int_equal(GNI_CqCreate(a.nic, 10, 0, GNI_CQ_NOBLOCK, NULL, NULL, &cq), GNI_RC_SUCCESS);
    assert_int_equal(GNI_CqCreate(a.nic, 10, 0, GNI_CQ_NOBLOCK, NULL, NULL, &more), GNI_RC_ERROR_RESOURCE);
    assert_int_equal(resource(GNI_JOB_RES_CQ, 0).used, 3);
    assert_int_equal(resource(GNI_JOB_RES_CQ, 0).limit, 3);
    assert_int_equal(GNI_CqDestroy(cq), GNI_RC_SUCCESS);
    assert_int_equal(GNI_CqCreate(a.nic, 10, 0, GNI_CQ_NOBLOCK, NULL, NULL, &cq), GNI_RC_SUCCESS);
    GNI_CqDestroy(cq);
}

static void test_limit_of_address_space_holds(void **state)
{
    gni_job_limits_t limits = no_limits();
    uint8_t *mem = pages(3 << 20);
    gni_mem_handle_t handle;

    (void)state;
    limits.a.m.iommu_limit = 1; /* 2^1 MiB */
    assert_int_equal(set_limits(limits), GNI_RC_SUCCESS);
    assert_int_equal(resource(GNI_JOB_RES_IOMMU, 0).limit, 2);
    assert_int_equal(GNI_MemRegister(a.nic, ADDR(mem), 3 << 20, NULL, 0, (uint32_t)-1, &handle), GNI_RC_ERROR_RESOURCE);
    handle = register_on(&a, mem, 1 << 20, 0);
    assert_int_equal(resource(GNI_JOB_RES_IOMMU, 0).used, 2); /* 1 MiB and the 64 KiB of the pair, rounded up */
    GNI_MemDeregister(a.nic, &handle);
    munmap(mem, 3 << 20);
}

static void test_limit_of_fma_descriptors_holds_for_dedicated_handles(void **state)
{
    gni_job_limits_t limits = no_limits();
    struct gx_side side;

    (void)state;
    limits.fma_limit = 2; /* the pair has one on each node */
    assert_int_equal(set_limits(limits), GNI_RC_SUCCESS);
    gx_open(&side, &fx, 0, 20, GNI_CDM_MODE_FMA_DEDICATED);
    assert_int_equal(resource(GNI_JOB_RES_FMA, 0).used, 2);
    assert_int_equal(try_attach((uint8_t)fx.ptag, fx.cookie, 0, GNI_CDM_MODE_FMA_DEDICATED), GNI_RC_ERROR_RESOURCE);
    assert_int_equal(try_attach((uint8_t)fx.ptag, fx.cookie, 0, GNI_CDM_MODE_FMA_DEDICATED | GNI_CDM_MODE_FMA_SHARED),
                     GNI_RC_ERROR_RESOURCE); /* of both the stricter */
    assert_int_equal(try_attach((uint8_t)fx.ptag, fx.cookie, 0, GNI_CDM_MODE_FMA_SHARED), GNI_RC_ERROR_RESOURCE);
    assert_int_equal(try_attach((uint8_t)fx.ptag, fx.cookie, 1, GNI_CDM_MODE_FMA_DEDICATED), GNI_RC_SUCCESS);
    gx_close(&side);
    gx_open(&side, &fx, 0, 20, GNI_CDM_MODE_FMA_SHARED);
    assert_int_equal(try_attach((uint8_t)fx.ptag, fx.cookie, 0, GNI_CDM_MODE_FMA_SHARED), GNI_RC_SUCCESS);
    assert_int_equal(resource(GNI_JOB_RES_SFMA, 0).used, 1);
    gx_close(&side);
}

static void test_device_has_127_fma_descriptors(void **state)
{
    static gni_cdm_handle_t cdms[130];
    gni_dev_res_desc_t device;
    gni_return_t rc = GNI_RC_SUCCESS;
    gni_nic_handle_t nic;
    uint32_t address;
    unsigned n = 0;

    (void)state;
    fx_set_node(3);
    while (n < COUNT_OF(cdms) && rc == GNI_RC_SUCCESS) {
        assert_int_equal(GNI_CdmCreate(n, (uint8_t)fx.ptag, fx.cookie,
                                       GNI_CDM_MODE_FMA_DEDICATED | GNI_CDM_MODE_ERR_NO_KILL, &cdms[n]),
                         GNI_RC_SUCCESS);
        rc = GNI_CdmAttach(cdms[n], 0, &address, &nic);
        n++;
    }
    assert_int_equal(rc, GNI_RC_ERROR_RESOURCE);
    assert_int_equal(n, 128);
    assert_int_equal(GNI_GetDevResInfo(0, GNI_DEV_RES_FMA, &device), GNI_RC_SUCCESS);
    assert_int_equal(device.total, 127);
    assert_int_equal(device.held, 127);
    assert_int_equal(device.available, 0);
    assert_int_equal(try_attach((uint8_t)fx.ptag, fx.cookie, 3, 0), GNI_RC_SUCCESS); /* says neither: shares */
    while (n > 0)
        GNI_CdmDestroy(cdms[--n]);
}

static void test_limit_of_collective_engines_holds(void **state)
{
    gni_job_limits_t limits = no_limits();
    gni_ce_handle_t ce;
    gni_ce_handle_t more;

    (void)state;
    limits.a.m.ce_limit = 1;
    assert_int_equal(set_limits(limits), GNI_RC_SUCCESS);
    assert_int_equal(GNI_CeCreate(a.nic, &ce), GNI_RC_SUCCESS);
    assert_int_equal(GNI_CeCreate(a.nic, &more), GNI_RC_ERROR_RESOURCE);
    assert_int_equal(resource(GNI_JOB_RES_CE, 0).used, 1);
    assert_int_equal(resource(GNI_JOB_RES_CE, 0).limit, 1);
    assert_int_equal(GNI_CeCreate(b.nic, &more), GNI_RC_SUCCESS); /* another node */
    GNI_CeDestroy(ce);
    GNI_CeDestroy(more);
}

static gni_post_descriptor_t block_put(void)
{
    gni_post_descriptor_t d = word_post(GNI_POST_RDMA_PUT, 0);

    d.length = 4096;
    return d;
}

static void test_limit_of_block_transfers_refuses_posts_until_some_have_ended(void **state)
{
    gni_post_descriptor_t posts[4] = { block_put(), block_put(), block_put(), block_put() };
    gni_job_limits_t limits = no_limits();
    uint32_t refused = 0;

    (void)state;
    limits.bte_limit = 2;
    assert_int_equal(set_limits(limits), GNI_RC_SUCCESS);
    assert_int_equal(resource(GNI_JOB_RES_RMDA, 0).limit, 2);
    assert_int_equal(GNI_SuspendJob(0, JOB_ID, (uint8_t)fx.ptag, fx.cookie, 1000), GNI_RC_SUCCESS);
    assert_int_equal(post(&posts[0]), GNI_RC_SUCCESS);
    assert_int_equal(post(&posts[1]), GNI_RC_SUCCESS);
    assert_int_equal(post(&posts[2]), GNI_RC_ERROR_RESOURCE);
    posts[3].type = GNI_POST_FMA_PUT; /* no block transfer */
    assert_int_equal(post(&posts[3]), GNI_RC_SUCCESS);
    assert_int_equal(GNI_GetNicStat(a.nic, GNI_STAT_FLBTE_TXD_NONE, &refused), GNI_RC_SUCCESS);
    assert_int_equal(refused, 1);
    assert_int_equal(GNI_ResumeJob(0, JOB_ID, (uint8_t)fx.ptag, fx.cookie), GNI_RC_SUCCESS);
    assert_int_equal(finish(&posts[0]), STATUS_OK);
    assert_int_equal(finish(&posts[1]), STATUS_OK);
    assert_int_equal(finish(&posts[3]), STATUS_OK);
    assert_int_equal(run(&posts[2]), STATUS_OK);
    assert_int_equal(GNI_ResetNicStat(a.nic, GNI_STAT_FLBTE_TXD_NONE), GNI_RC_SUCCESS);
    assert_int_equal(GNI_GetNicStat(a.nic, GNI_STAT_FLBTE_TXD_NONE, &refused), GNI_RC_SUCCESS);
    assert_int_equal(refused, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_declared_job_can_be_attached_and_ends_with_its_last_process),
        cmocka_unit_test(test_declared_job_waits_for_its_first_process_when_its_declarer_has_ended),
        cmocka_unit_test(test_tag_of_another_job_is_an_invalid_state),
        cmocka_unit_test(test_declaring_checks_its_arguments),
        cmocka_unit_test(test_stranger_has_no_privilege),
        cmocka_unit_test(test_without_emunic_there_is_no_device),
        cmocka_unit_test(test_emunic_that_can_take_nobody_is_not_a_lack_of_privilege),
        limited_test(test_limit_of_mdds_is_per_node_and_holds),
        limited_test(test_limit_of_queues_holds),
        limited_test(test_limit_of_address_space_holds),
        limited_test(test_limit_of_fma_descriptors_holds_for_dedicated_handles),
        cmocka_unit_test(test_device_has_127_fma_descriptors),
        limited_test(test_limit_of_collective_engines_holds),
        limited_test(test_limit_of_block_transfers_refuses_posts_until_some_have_ended),
    };

    return cmocka_run_group_tests(tests, start_emunic, stop_emunic);
}
