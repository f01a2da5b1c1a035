/* SPDX-License-Identifier: BSD-3-Clause */
/* Communication domains and NIC handles. Specification: spec/ugni.md 4.1. Who may attach: test_protection.c. */
#include <sys/resource.h>

#include "tests/conformance/pair.h"
#include "tests/unit/emunic/capture.h"

#define MODES GNI_CDM_MODE_ERR_NO_KILL

static gni_cdm_handle_t make_cdm(uint32_t inst_id)
{
    gni_cdm_handle_t cdm = NULL;

    assert_int_equal(GNI_CdmCreate(inst_id, (uint8_t)fx.ptag, fx.cookie, MODES, &cdm), GNI_RC_SUCCESS);
    assert_non_null(cdm);
    return cdm;
}

static gni_nic_handle_t attach(gni_cdm_handle_t cdm, uint32_t nid)
{
    gni_nic_handle_t nic = NULL;
    uint32_t addr = 0;

    fx_set_node(nid);
    assert_int_equal(GNI_CdmAttach(cdm, 0, &addr, &nic), GNI_RC_SUCCESS);
    assert_non_null(nic);
    return nic;
}

static uint64_t mdds_in_use(void)
{
    gni_job_res_desc_t mdds = { 0, 0 };

    assert_int_equal(GNI_GetJobResInfo(0, (uint8_t)fx.ptag, GNI_JOB_RES_MDD, &mdds), GNI_RC_SUCCESS);
    return mdds.used;
}

/* ---- create ---- */

static void test_create_takes_any_instance_id_tag_and_cookie(void **state)
{
    static const uint32_t ids[] = { 0, 1, 0x7fffffff, 0x80000000, 0xffffffff };
    static const uint8_t tags[] = { 0, 1, GNI_PTAG_USER_START, GNI_PTAG_USER_END, GNI_FIND_ALLOC_PTAG };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(ids); i++) {
        gni_cdm_handle_t cdm = NULL;

        assert_int_equal(GNI_CdmCreate(ids[i], tags[i], ids[i], 0, &cdm), GNI_RC_SUCCESS);
        assert_int_equal(GNI_CdmDestroy(cdm), GNI_RC_SUCCESS);
    }
}

static void test_create_ignores_unnamed_and_contradictory_modes(void **state)
{
    static const uint32_t modes[] = {
        0x400 | 0x800 | 0x2000,
        GNI_CDM_MODE_FORK_NOCOPY | GNI_CDM_MODE_FORK_FULLCOPY | GNI_CDM_MODE_FORK_PARTCOPY,
        GNI_CDM_MODE_FMA_DEDICATED | GNI_CDM_MODE_FMA_SHARED,
        GNI_CDM_MODE_MASK,
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(modes); i++) {
        gni_cdm_handle_t cdm = NULL;

        assert_int_equal(GNI_CdmCreate(1, (uint8_t)fx.ptag, fx.cookie, modes[i], &cdm), GNI_RC_SUCCESS);
        assert_int_equal(GNI_CdmDestroy(cdm), GNI_RC_SUCCESS);
    }
}

static void test_create_refuses_reserved_modes_and_leaves_output_alone(void **state)
{
    static const uint32_t modes[] = { GNI_CDM_MODE_PRIV_RESERVED_1, GNI_CDM_MODE_PRIV_RESERVED_2,
                                      GNI_CDM_MODE_PRIV_RESERVED_3, GNI_CDM_MODE_PRIV_RESERVED_4 };
    gni_cdm_handle_t cdm = (gni_cdm_handle_t)&fx;

    (void)state;
    for (size_t i = 0; i < COUNT_OF(modes); i++)
        assert_int_equal(GNI_CdmCreate(1, 3, 3, modes[i], &cdm), GNI_RC_INVALID_PARAM);
    assert_ptr_equal(cdm, &fx);
}

static void test_create_without_output_is_refused(void **state)
{
    (void)state;
    assert_int_equal(GNI_CdmCreate(1, 3, 3, 0, NULL), GNI_RC_INVALID_PARAM);
}

/* ---- attach ---- */

static void test_attach_reports_the_address_of_the_node(void **state)
{
    (void)state;
    for (uint32_t nid = 0; nid < fx.n_ranks; nid++) {
        gni_cdm_handle_t cdm = make_cdm(nid);
        gni_nic_handle_t nic = NULL;
        uint32_t attached = 99;
        uint32_t asked = 98;
        uint32_t cpu = 97;

        fx_set_node(nid);
        assert_int_equal(GNI_CdmGetNicAddress(0, &asked, &cpu), GNI_RC_SUCCESS);
        assert_int_equal(GNI_CdmAttach(cdm, 0, &attached, &nic), GNI_RC_SUCCESS);
        assert_int_equal(attached, fx.nids[nid]);
        assert_int_equal(asked, attached);
        assert_int_equal(GNI_CdmDestroy(cdm), GNI_RC_SUCCESS);
    }
}

static void test_nic_address_is_known_without_a_launcher(void **state)
{
    gni_cdm_handle_t cdm;
    gni_nic_handle_t nic;
    uint32_t attached = 99;
    uint32_t asked = 98;
    uint32_t cpu;

    (void)state;
    fx_needs_emunic();
    cdm = make_cdm(1);
    unsetenv("EMUNIC_NID");
    assert_int_equal(GNI_CdmGetNicAddress(0, &asked, &cpu), GNI_RC_SUCCESS);
    assert_int_equal(GNI_CdmAttach(cdm, 0, &attached, &nic), GNI_RC_SUCCESS);
    assert_int_equal(asked, attached);
    GNI_CdmDestroy(cdm);
}

static void test_nic_address_of_another_device_gives_no_match(void **state)
{
    uint32_t address = 55;
    uint32_t cpu = 56;

    (void)state;
    assert_int_equal(GNI_CdmGetNicAddress(1, &address, &cpu), GNI_RC_NO_MATCH);
    assert_int_equal(address, 55);
    assert_int_equal(cpu, 56);
}

static void test_nic_address_without_outputs_is_refused(void **state)
{
    uint32_t word;

    (void)state;
    assert_int_equal(GNI_CdmGetNicAddress(0, NULL, &word), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_CdmGetNicAddress(0, &word, NULL), GNI_RC_INVALID_PARAM);
}

static void test_attach_to_the_nearest_device_finds_the_only_one(void **state)
{
    gni_cdm_handle_t cdm = make_cdm(1);
    gni_nic_handle_t nic = NULL;
    uint32_t addr = 99;

    (void)state;
    fx_set_node(2);
    assert_int_equal(GNI_CdmAttach(cdm, (uint32_t)-1, &addr, &nic), GNI_RC_SUCCESS);
    assert_int_equal(addr, fx.nids[2]);
    GNI_CdmDestroy(cdm);
}

static void test_attach_refuses_null_arguments(void **state)
{
    gni_cdm_handle_t cdm = make_cdm(1);
    gni_nic_handle_t nic;
    uint32_t addr;

    (void)state;
    assert_int_equal(GNI_CdmAttach(NULL, 0, &addr, &nic), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_CdmAttach(cdm, 0, NULL, &nic), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_CdmAttach(cdm, 0, &addr, NULL), GNI_RC_INVALID_PARAM);
    GNI_CdmDestroy(cdm);
    assert_int_equal(GNI_CdmAttach(cdm, 0, &addr, &nic), GNI_RC_INVALID_PARAM);
}

static void test_attach_to_a_missing_device_gives_no_match(void **state)
{
    gni_cdm_handle_t cdm = make_cdm(1);
    gni_nic_handle_t nic = (gni_nic_handle_t)&fx;
    uint32_t addr = 77;

    (void)state;
    assert_int_equal(GNI_CdmAttach(cdm, 1, &addr, &nic), GNI_RC_NO_MATCH);
    assert_int_equal(GNI_CdmAttach(cdm, 1000, &addr, &nic), GNI_RC_NO_MATCH);
    assert_ptr_equal(nic, &fx);
    assert_int_equal(addr, 77);
    GNI_CdmDestroy(cdm);
}

static void test_attach_outside_the_nodes_of_the_job_gives_no_match(void **state)
{
    gni_cdm_handle_t cdm;
    gni_nic_handle_t nic;
    uint32_t addr;

    (void)state;
    fx_needs_emunic();
    cdm = make_cdm(1);
    fx_set_node(fx.n_ranks + 20);
    assert_int_equal(GNI_CdmAttach(cdm, 0, &addr, &nic), GNI_RC_NO_MATCH);
    GNI_CdmDestroy(cdm);
}

static void test_attach_without_emunic_gives_no_match(void **state)
{
    gni_cdm_handle_t cdm;
    gni_nic_handle_t nic;
    uint32_t addr;

    (void)state;
    fx_needs_emunic();
    cdm = make_cdm(1);
    setenv("EMUNIC_SERVER", "test-nobody-is-here", 1);
    assert_int_equal(GNI_CdmAttach(cdm, 0, &addr, &nic), GNI_RC_NO_MATCH);
    fx_use(&fx);
    GNI_CdmDestroy(cdm);
}

/* In a child: it is told once per process, and another test may have made it happen. */
static void attach_to_nobody_twice(void)
{
    gni_cdm_handle_t cdm = make_cdm(1);
    struct capture stderr_of_it;
    gni_nic_handle_t nic;
    char text[512];
    uint32_t addr;
    gni_return_t rc[2];

    setenv("EMUNIC_SERVER", "test-nobody-is-here", 1);
    if (capture_start(&stderr_of_it) < 0)
        _exit(2);
    for (int i = 0; i < 2; i++)
        rc[i] = GNI_CdmAttach(cdm, 0, &addr, &nic);
    capture_end(&stderr_of_it, text, sizeof(text));
    if (rc[0] != GNI_RC_NO_MATCH || rc[1] != GNI_RC_NO_MATCH)
        _exit(3);
    if (count_lines(text) != 1 || !strstr(text, "no emunic of name test-nobody-is-here answers") ||
        !strstr(text, "`emunic run`"))
        _exit(4);
    _exit(0);
}

static void test_attach_without_emunic_says_once_what_is_missing(void **state)
{
    const char *log = getenv("EMUNIC_LOG");
    int status = -1;
    pid_t child;

    (void)state;
    if (log && strcmp(log, "none") == 0)
        return;
    child = fork();
    if (child == 0)
        attach_to_nobody_twice();
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

static void test_failed_attach_can_be_repeated(void **state)
{
    gni_cdm_handle_t cdm = make_cdm(1);
    gni_nic_handle_t nic;
    uint32_t addr;

    (void)state;
    assert_int_equal(GNI_CdmAttach(cdm, 1, &addr, &nic), GNI_RC_NO_MATCH);
    fx_set_node(0);
    assert_int_equal(GNI_CdmAttach(cdm, 0, &addr, &nic), GNI_RC_SUCCESS);
    GNI_CdmDestroy(cdm);
}

static void test_second_attach_gives_invalid_state(void **state)
{
    gni_cdm_handle_t cdm = make_cdm(1);
    gni_nic_handle_t nic = attach(cdm, 0);
    gni_nic_handle_t other = nic;
    uint32_t addr;

    (void)state;
    assert_int_equal(GNI_CdmAttach(cdm, 0, &addr, &other), GNI_RC_INVALID_STATE);
    assert_int_equal(GNI_CdmAttach(cdm, (uint32_t)-1, &addr, &other), GNI_RC_INVALID_STATE);
    assert_ptr_equal(other, nic);
    GNI_CdmDestroy(cdm);
}

static void test_attach_finds_the_tag_of_the_cookie(void **state)
{
    gni_cdm_handle_t cdm;

    (void)state;
    assert_int_equal(GNI_CdmCreate(1, GNI_FIND_ALLOC_PTAG, fx.cookie, MODES, &cdm), GNI_RC_SUCCESS);
    attach(cdm, 0);
    GNI_CdmDestroy(cdm);
}

static int attach_without_descriptors(struct fx_rank *rank)
{
    struct rlimit none = { 3, 3 };
    gni_cdm_handle_t cdm;
    gni_nic_handle_t nic;
    uint32_t addr;

    FX_CHECK(GNI_CdmCreate(1, (uint8_t)rank->fx->ptag, rank->fx->cookie, MODES, &cdm) == GNI_RC_SUCCESS);
    FX_CHECK(setrlimit(RLIMIT_NOFILE, &none) == 0);
    FX_CHECK(GNI_CdmAttach(cdm, 0, &addr, &nic) == GNI_RC_ERROR_RESOURCE);
    return 0;
}

static void test_attach_without_file_descriptors_gives_error_resource(void **state)
{
    (void)state;
    assert_int_equal(fx_run(&fx, 1, attach_without_descriptors, NULL), 0);
}

static void test_domains_of_one_process_are_independent(void **state)
{
    struct gx_side other;
    gni_post_descriptor_t d;

    (void)state;
    open_pair(state);
    gx_open(&other, &fx, 0, a.inst_id, 0); /* the ids of a again: allowed */
    gx_close(&other);
    d = word_post(GNI_POST_FMA_PUT, 0);
    a.mem[0] = 7;
    assert_int_equal(run(&d), STATUS_OK);
    assert_int_equal(b.mem[0], 7);
    close_pair(state);
}

/* ---- destroy ---- */

static void test_destroy_of_an_unattached_domain_works(void **state)
{
    (void)state;
    assert_int_equal(GNI_CdmDestroy(make_cdm(1)), GNI_RC_SUCCESS);
}

static void test_destroy_twice_or_of_nothing_is_refused(void **state)
{
    gni_cdm_handle_t cdm = make_cdm(1);

    (void)state;
    attach(cdm, 0);
    assert_int_equal(GNI_CdmDestroy(NULL), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_CdmDestroy(cdm), GNI_RC_SUCCESS);
    assert_int_equal(GNI_CdmDestroy(cdm), GNI_RC_INVALID_PARAM);
}

static void test_destroy_with_live_children_makes_them_invalid(void **state)
{
    gni_post_descriptor_t d;
    gni_cq_entry_t entry;
    uint32_t word;

    (void)state;
    open_pair(state);
    d = word_post(GNI_POST_FMA_PUT, 0);
    assert_int_equal(GNI_CdmDestroy(a.cdm), GNI_RC_SUCCESS);
    assert_int_equal(GNI_PostFma(a.ep, &d), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_EpDestroy(a.ep), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_CqGetEvent(a.src_cq, &entry), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_CqDestroy(a.dst_cq), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_MemDeregister(a.nic, &a.mem_hndl), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_GetNicStat(a.nic, GNI_STAT_SMSG_DLA_STALL, &word), GNI_RC_INVALID_PARAM);
    free(a.mem);
    gx_close(&b);
}

static void test_destroy_with_posts_under_way_works(void **state)
{
    gni_post_descriptor_t d[20];

    (void)state;
    fx_needs_emunic(); /* freezes it */
    open_pair(state);
    freeze_emunic();
    for (size_t i = 0; i < COUNT_OF(d); i++) {
        d[i] = word_post(i % 2 ? GNI_POST_FMA_PUT : GNI_POST_FMA_GET, 8 * i);
        assert_int_equal(post(&d[i]), GNI_RC_SUCCESS);
    }
    thaw_emunic();
    assert_int_equal(GNI_CdmDestroy(a.cdm), GNI_RC_SUCCESS);
    free(a.mem);
    gx_close(&b);
}

static void test_destroy_gives_registrations_back(void **state)
{
    uint64_t before = mdds_in_use();

    (void)state;
    open_pair(state);
    /* Figures are those of one node: b's. */
    assert_int_equal(mdds_in_use(), before + (fx.nids[0] == fx.nids[1] ? 2 : 1));
    assert_int_equal(GNI_CdmDestroy(a.cdm), GNI_RC_SUCCESS);
    assert_int_equal(GNI_CdmDestroy(b.cdm), GNI_RC_SUCCESS);
    for (uint64_t end_ns = emu_clock_ns() + PATIENCE_NS; mdds_in_use() != before && emu_clock_ns() < end_ns;)
        ;
    assert_int_equal(mdds_in_use(), before);
    free(a.mem);
    free(b.mem);
}

static int leave_everything_open(struct fx_rank *rank)
{
    struct gx_side side;

    gx_open(&side, rank->fx, 0, 5, 0);
    return 0;
}

static void test_exit_without_teardown_gives_registrations_back(void **state)
{
    uint64_t before = mdds_in_use();

    (void)state;
    assert_int_equal(fx_run(&fx, 3, leave_everything_open, NULL), 0);
    for (uint64_t end_ns = emu_clock_ns() + PATIENCE_NS; mdds_in_use() != before && emu_clock_ns() < end_ns;)
        ;
    assert_int_equal(mdds_in_use(), before);
}

/* ---- checkpoint ---- */

static void test_checkpointed_domain_can_be_resumed_and_used(void **state)
{
    gni_post_descriptor_t d;

    (void)state;
    open_pair(state);
    d = word_post(GNI_POST_FMA_PUT, 0);
    assert_int_equal(GNI_CdmCheckpoint(a.cdm), GNI_RC_SUCCESS);
    assert_int_equal(GNI_CdmResume(a.cdm), GNI_RC_SUCCESS);
    assert_int_equal(run(&d), STATUS_OK);
    close_pair(state);
}

static void test_checkpointed_domain_can_be_destroyed(void **state)
{
    (void)state;
    open_pair(state);
    assert_int_equal(GNI_CdmCheckpoint(a.cdm), GNI_RC_SUCCESS);
    assert_int_equal(GNI_CqDestroy(a.dst_cq), GNI_RC_SUCCESS);
    close_pair(state);
}

static void test_checkpoint_and_resume_of_dead_domains_are_refused(void **state)
{
    gni_cdm_handle_t cdm = make_cdm(1);

    (void)state;
    GNI_CdmDestroy(cdm);
    assert_int_equal(GNI_CdmCheckpoint(cdm), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_CdmCheckpoint(NULL), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_CdmResume(cdm), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_CdmResume(NULL), GNI_RC_INVALID_PARAM);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_create_takes_any_instance_id_tag_and_cookie),
        cmocka_unit_test(test_create_ignores_unnamed_and_contradictory_modes),
        cmocka_unit_test(test_create_refuses_reserved_modes_and_leaves_output_alone),
        cmocka_unit_test(test_create_without_output_is_refused),
        cmocka_unit_test(test_attach_reports_the_address_of_the_node),
        cmocka_unit_test(test_nic_address_is_known_without_a_launcher),
        cmocka_unit_test(test_nic_address_of_another_device_gives_no_match),
        cmocka_unit_test(test_nic_address_without_outputs_is_refused),
        cmocka_unit_test(test_attach_to_the_nearest_device_finds_the_only_one),
        cmocka_unit_test(test_attach_refuses_null_arguments),
        cmocka_unit_test(test_attach_to_a_missing_device_gives_no_match),
        cmocka_unit_test(test_attach_outside_the_nodes_of_the_job_gives_no_match),
        cmocka_unit_test(test_attach_without_emunic_says_once_what_is_missing),
        cmocka_unit_test(test_attach_without_emunic_gives_no_match),
        cmocka_unit_test(test_failed_attach_can_be_repeated),
        cmocka_unit_test(test_second_attach_gives_invalid_state),
        cmocka_unit_test(test_attach_finds_the_tag_of_the_cookie),
        cmocka_unit_test(test_attach_without_file_descriptors_gives_error_resource),
        cmocka_unit_test(test_domains_of_one_process_are_independent),
        cmocka_unit_test(test_destroy_of_an_unattached_domain_works),
        cmocka_unit_test(test_destroy_twice_or_of_nothing_is_refused),
        cmocka_unit_test(test_destroy_with_live_children_makes_them_invalid),
        cmocka_unit_test(test_destroy_with_posts_under_way_works),
        cmocka_unit_test(test_destroy_gives_registrations_back),
        cmocka_unit_test(test_exit_without_teardown_gives_registrations_back),
        cmocka_unit_test(test_checkpointed_domain_can_be_resumed_and_used),
        cmocka_unit_test(test_checkpointed_domain_can_be_destroyed),
        cmocka_unit_test(test_checkpoint_and_resume_of_dead_domains_are_refused),
    };

    return cmocka_run_group_tests(tests, start_emunic, stop_emunic);
}
