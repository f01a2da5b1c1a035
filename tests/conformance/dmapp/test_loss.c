/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a PE is told when the network does not work: emunic stopped, every transaction failing, emunic dead. One PE on a
 * private emunic, talking to itself.
 */
#include <signal.h>

#include "tests/common/dmapp.h"
#include "tests/common/fixture.h"

#define OUTSTANDING DMAPP_MIN_OUTSTANDING_NB

static struct fx fx;
static uint64_t *words; /* on the heap, 64 */
static uint64_t local[64];
static dmapp_syncid_handle_t syncid;
static dmapp_pe_t pes[1];
static ptrdiff_t indices[2] = { 0, 1 };
static dmapp_amo_t amo = { .op = DMAPP_AMO_ADD, .type = DMAPP_QW };

/* ---- every transfer and atomic, all good ---- */

typedef dmapp_return_t (*call_t)(void);

#define CALL(name, ...)                                                                                                \
    static dmapp_return_t name(void)                                                                                   \
    {                                                                                                                  \
        return dmapp_##name(__VA_ARGS__);                                                                              \
    }

#define REMOTE words, &dx_job.sheap_seg, 0
#define LIST   words, &dx_job.sheap_seg, pes, 1, local, 2, DMAPP_QW
#define ID     &syncid
CALL(put, REMOTE, local, 2, DMAPP_QW)
CALL(put_nb, REMOTE, local, 2, DMAPP_QW, ID)
CALL(put_nbi, REMOTE, local, 2, DMAPP_QW)
CALL(get, local, REMOTE, 2, DMAPP_QW)
CALL(get_nb, local, REMOTE, 2, DMAPP_QW, ID)
CALL(get_nbi, local, REMOTE, 2, DMAPP_QW)
CALL(get_flag_nbi, local, REMOTE, 2, DMAPP_QW)
CALL(put_flag, REMOTE, local, 2, DMAPP_QW, words + 8, 1)
CALL(put_flag_nb, REMOTE, local, 2, DMAPP_QW, words + 8, 1, ID)
CALL(put_flag_nbi, REMOTE, local, 2, DMAPP_QW, words + 8, 1)
CALL(iput, REMOTE, local, 2, 1, 2, DMAPP_QW)
CALL(iput_nb, REMOTE, local, 2, 1, 2, DMAPP_QW, ID)
CALL(iput_nbi, REMOTE, local, 2, 1, 2, DMAPP_QW)
CALL(iget, local, REMOTE, 1, 2, 2, DMAPP_QW)
CALL(iget_nb, local, REMOTE, 1, 2, 2, DMAPP_QW, ID)
CALL(iget_nbi, local, REMOTE, 1, 2, 2, DMAPP_QW)
CALL(ixput, REMOTE, local, indices, 2, DMAPP_QW)
CALL(ixput_nb, REMOTE, local, indices, 2, DMAPP_QW, ID)
CALL(ixput_nbi, REMOTE, local, indices, 2, DMAPP_QW)
CALL(ixget, local, REMOTE, indices, 2, DMAPP_QW)
CALL(ixget_nb, local, REMOTE, indices, 2, DMAPP_QW, ID)
CALL(ixget_nbi, local, REMOTE, indices, 2, DMAPP_QW)
CALL(put_ixpe, LIST)
CALL(put_ixpe_nb, LIST, ID)
CALL(put_ixpe_nbi, LIST)
CALL(scatter_ixpe, LIST)
CALL(scatter_ixpe_nb, LIST, ID)
CALL(scatter_ixpe_nbi, LIST)
CALL(gather_ixpe, local, words, &dx_job.sheap_seg, pes, 1, 2, DMAPP_QW)
CALL(gather_ixpe_nb, local, words, &dx_job.sheap_seg, pes, 1, 2, DMAPP_QW, ID)
CALL(gather_ixpe_nbi, local, words, &dx_job.sheap_seg, pes, 1, 2, DMAPP_QW)
CALL(aadd_qw, REMOTE, 1)
CALL(aadd_qw_nb, REMOTE, 1, ID)
CALL(aadd_qw_nbi, REMOTE, 1)
CALL(aand_qw, REMOTE, 1)
CALL(aand_qw_nb, REMOTE, 1, ID)
CALL(aand_qw_nbi, REMOTE, 1)
CALL(aor_qw, REMOTE, 1)
CALL(aor_qw_nb, REMOTE, 1, ID)
CALL(aor_qw_nbi, REMOTE, 1)
CALL(axor_qw, REMOTE, 1)
CALL(axor_qw_nb, REMOTE, 1, ID)
CALL(axor_qw_nbi, REMOTE, 1)
CALL(afadd_qw, local, REMOTE, 1)
CALL(afadd_qw_nb, local, REMOTE, 1, ID)
CALL(afadd_qw_nbi, local, REMOTE, 1)
CALL(afand_qw, local, REMOTE, 1)
CALL(afand_qw_nb, local, REMOTE, 1, ID)
CALL(afand_qw_nbi, local, REMOTE, 1)
CALL(afor_qw, local, REMOTE, 1)
CALL(afor_qw_nb, local, REMOTE, 1, ID)
CALL(afor_qw_nbi, local, REMOTE, 1)
CALL(afxor_qw, local, REMOTE, 1)
CALL(afxor_qw_nb, local, REMOTE, 1, ID)
CALL(afxor_qw_nbi, local, REMOTE, 1)
CALL(afax_qw, local, REMOTE, 1, 1)
CALL(afax_qw_nb, local, REMOTE, 1, 1, ID)
CALL(afax_qw_nbi, local, REMOTE, 1, 1)
CALL(acswap_qw, local, REMOTE, 1, 1)
CALL(acswap_qw_nb, local, REMOTE, 1, 1, ID)
CALL(acswap_qw_nbi, local, REMOTE, 1, 1)
CALL(amo_put, REMOTE, &amo)
CALL(amo_put_nb, REMOTE, &amo, ID)
CALL(amo_put_nbi, REMOTE, &amo)
CALL(amo_get, local, REMOTE, &amo)
CALL(amo_get_nb, local, REMOTE, &amo, ID)
CALL(amo_get_nbi, local, REMOTE, &amo)

static const call_t blocking[] = {
    put,     get,    put_flag, iput,     iget,     ixput,   ixget,    put_ixpe, scatter_ixpe, gather_ixpe, aadd_qw,
    aand_qw, aor_qw, axor_qw,  afadd_qw, afand_qw, afor_qw, afxor_qw, afax_qw,  acswap_qw,    amo_put,     amo_get,
};
static const call_t nb[] = {
    put_nb,          get_nb,         put_flag_nb, iput_nb,      iget_nb,    ixput_nb,   ixget_nb,    put_ixpe_nb,
    scatter_ixpe_nb, gather_ixpe_nb, aadd_qw_nb,  aand_qw_nb,   aor_qw_nb,  axor_qw_nb, afadd_qw_nb, afand_qw_nb,
    afor_qw_nb,      afxor_qw_nb,    afax_qw_nb,  acswap_qw_nb, amo_put_nb, amo_get_nb,
};
static const call_t nbi[] = {
    put_nbi,      get_nbi,     get_flag_nbi,  put_flag_nbi,     iput_nbi,        iget_nbi,
    ixput_nbi,    ixget_nbi,   put_ixpe_nbi,  scatter_ixpe_nbi, gather_ixpe_nbi, aadd_qw_nbi,
    aand_qw_nbi,  aor_qw_nbi,  axor_qw_nbi,   afadd_qw_nbi,     afand_qw_nbi,    afor_qw_nbi,
    afxor_qw_nbi, afax_qw_nbi, acswap_qw_nbi, amo_put_nbi,      amo_get_nbi,
};

static void expect_all(const call_t *calls, size_t n, dmapp_return_t expected)
{
    for (size_t i = 0; i < n; i++) {
        dmapp_return_t rc = calls[i]();

        if (rc != expected)
            fail_msg("call %zu: %s", i, dmapp_err_str[rc]);
    }
}
#define EXPECT_ALL(calls, expected) expect_all(calls, sizeof(calls) / sizeof((calls)[0]), expected)

/* ---- one PE ---- */

static int set_up(void **state)
{
    dmapp_rma_attrs_ext_t attrs = { .max_outstanding_nb = OUTSTANDING, .queue_flags = DMAPP_QUEUE_ASYNC_PROGRESS };
    char text[16];

    (void)state;
    fx_start(&fx, &(struct fx_options){ .n_ranks = 1 });
    fx_set_node(fx.nids[0]);
    snprintf(text, sizeof(text), "%u", fx.ptag);
    setenv("PMI_GNI_PTAG", text, 1);
    snprintf(text, sizeof(text), "%u", fx.cookie);
    setenv("PMI_GNI_COOKIE", text, 1);
    setenv("XT_SYMMETRIC_HEAP_SIZE", "1M", 1);
    if (dmapp_init_ext(&attrs, NULL) != DMAPP_RC_SUCCESS || dmapp_get_jobinfo(&dx_job) != DMAPP_RC_SUCCESS)
        return -1;
    words = dmapp_sheap_malloc(64 * sizeof(*words));
    if (!words)
        return -1;
    memset(words, 0, 64 * sizeof(*words));
    memset(local, 0x11, sizeof(local));
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    if (dmapp_finalize() != DMAPP_RC_SUCCESS)
        return -1;
    fx_stop(&fx);
    return 0;
}

static int ignore(void *context, void *data, uint32_t len, dmapp_pe_t from)
{
    (void)context;
    (void)data;
    (void)len;
    (void)from;
    return 0;
}

static dmapp_c_pset_desc_t alone(void)
{
    return (dmapp_c_pset_desc_t){ .type = DMAPP_C_PSET_DELIMITER_STRIDED, .u.stride_type = { .n_pes = 1 } };
}

/* ---- emunic stopped: nothing completes ---- */

/*
 * covers: dmapp_put_nb, dmapp_get_nb, dmapp_put_flag_nb, dmapp_iput_nb, dmapp_iget_nb, dmapp_ixput_nb:
 * DMAPP_RC_NO_SPACE
 */
/* covers: dmapp_ixget_nb, dmapp_put_ixpe_nb, dmapp_scatter_ixpe_nb, dmapp_gather_ixpe_nb: DMAPP_RC_NO_SPACE */
/* covers: dmapp_aadd_qw_nb, dmapp_aand_qw_nb, dmapp_aor_qw_nb, dmapp_axor_qw_nb, dmapp_amo_put_nb: DMAPP_RC_NO_SPACE */
/*
 * covers: dmapp_afadd_qw_nb, dmapp_afand_qw_nb, dmapp_afor_qw_nb, dmapp_afxor_qw_nb, dmapp_amo_get_nb:
 * DMAPP_RC_NO_SPACE
 */
/* covers: dmapp_afax_qw_nb, dmapp_acswap_qw_nb: DMAPP_RC_NO_SPACE */
static void test_explicit_requests_are_limited(void **state)
{
    dmapp_syncid_handle_t ids[OUTSTANDING];
    int flag;

    (void)state;
    fx_set_routed(&fx, true);
    assert_int_equal(kill(fx.daemon, SIGSTOP), 0);
    for (int i = 0; i < OUTSTANDING; i++)
        assert_int_equal(dmapp_aadd_qw_nb(&words[i], &dx_job.sheap_seg, 0, 1, &ids[i]), DMAPP_RC_SUCCESS);
    EXPECT_ALL(nb, DMAPP_RC_NO_SPACE);
    assert_null(syncid);
    assert_int_equal(dmapp_checkpoint(), DMAPP_RC_NOT_DONE);
    assert_int_equal(dmapp_syncid_test(&ids[0], &flag), DMAPP_RC_SUCCESS);
    assert_int_equal(flag, 0);
    assert_int_equal(kill(fx.daemon, SIGCONT), 0);
    for (int i = 0; i < OUTSTANDING; i++)
        assert_int_equal(dmapp_syncid_wait(&ids[i]), DMAPP_RC_SUCCESS);
    for (int i = 0; i < OUTSTANDING; i++)
        assert_int_equal(words[i], 1);
    assert_int_equal(put_nb(), DMAPP_RC_SUCCESS);
    assert_int_equal(dmapp_syncid_wait(&syncid), DMAPP_RC_SUCCESS);
}

/* ---- every transaction fails ---- */

/* covers: dmapp_put_ixpe, dmapp_scatter_ixpe, dmapp_gather_ixpe: DMAPP_RC_TRANSACTION_ERROR */
static void test_failed_transactions_are_told_and_change_nothing(void **state)
{
    dmapp_lock_desc_t *locks = (dmapp_lock_desc_t *)words + 16;
    dmapp_c_pset_desc_t desc = alone();
    dmapp_lock_handle_t held, by_place, none = NULL;
    dmapp_queue_handle_t queue;
    dmapp_c_pset_handle_t set;
    uint64_t before[64];
    int flag = 0;

    (void)state;
    assert_int_equal(dmapp_lock_acquire(&locks[0], &dx_job.sheap_seg, 0, 0, &held), DMAPP_RC_SUCCESS);
    assert_int_equal(dmapp_lock_acquire(&locks[1], &dx_job.sheap_seg, 0, 0, &by_place), DMAPP_RC_SUCCESS);
    assert_int_equal(dmapp_queue_attach(ignore, NULL, 0, &queue), DMAPP_RC_SUCCESS);
    assert_int_equal(dmapp_c_pset_create(&desc, 3, 0, NULL, &set), DMAPP_RC_SUCCESS);
    memcpy(before, words, sizeof(before));
    fx_add_fault(&fx, "class=any action=drop");

    EXPECT_ALL(blocking, DMAPP_RC_TRANSACTION_ERROR);
    for (size_t i = 0; i < sizeof(nb) / sizeof(nb[0]); i++) {
        assert_int_equal(nb[i](), DMAPP_RC_SUCCESS);
        assert_int_equal(dmapp_syncid_wait(&syncid), DMAPP_RC_TRANSACTION_ERROR);
        assert_null(syncid);
    }
    for (size_t i = 0; i < sizeof(nbi) / sizeof(nbi[0]); i++) {
        assert_int_equal(nbi[i](), DMAPP_RC_SUCCESS);
        if (i % 2) {
            assert_int_equal(dmapp_thread_gsync_wait(), DMAPP_RC_TRANSACTION_ERROR);
        } else {
            dmapp_return_t rc;

            for (flag = 0; flag == 0;)
                rc = dmapp_thread_gsync_test(&flag);
            /* covers: dmapp_thread_gsync_test: DMAPP_RC_TRANSACTION_ERROR */
            assert_int_equal(rc, DMAPP_RC_TRANSACTION_ERROR);
        }
        assert_int_equal(dmapp_gsync_wait(), DMAPP_RC_SUCCESS); /* told once */
    }
    assert_int_equal(dmapp_lock_acquire(&locks[2], &dx_job.sheap_seg, 0, 0, &none), DMAPP_RC_TRANSACTION_ERROR);
    assert_int_equal(dmapp_lock_try(&locks[2], &dx_job.sheap_seg, 0, 0, &none), DMAPP_RC_TRANSACTION_ERROR);
    assert_null(none);
    assert_int_equal(dmapp_lock_release(held, 0), DMAPP_RC_TRANSACTION_ERROR);
    assert_int_equal(dmapp_lock_release_addr(&locks[1], 0, 0), DMAPP_RC_TRANSACTION_ERROR);
    assert_int_equal(dmapp_queue_put(queue, local, 1, DMAPP_QW, 0, 0), DMAPP_RC_TRANSACTION_ERROR);
    assert_int_equal(dmapp_c_pset_export(set), DMAPP_RC_TRANSACTION_ERROR);
    assert_memory_equal(words, before, sizeof(before));

    fx_clear_faults(&fx);
    fx_set_routed(&fx, false);
    assert_int_equal(dmapp_c_pset_export(set), DMAPP_RC_SUCCESS);
    assert_int_equal(dmapp_queue_put(queue, local, 1, DMAPP_QW, 0, 0), DMAPP_RC_SUCCESS);
    assert_int_equal(dmapp_lock_acquire(&locks[2], &dx_job.sheap_seg, 0, 0, &none), DMAPP_RC_SUCCESS);
    assert_int_equal(dmapp_lock_release(none, 0), DMAPP_RC_SUCCESS);
    assert_int_equal(dmapp_c_pset_destroy(set), DMAPP_RC_SUCCESS);
    assert_int_equal(dmapp_queue_detach(queue, 0), DMAPP_RC_SUCCESS);
}

/* ---- emunic dead ---- */

/*
 * covers: dmapp_put*, dmapp_get*, dmapp_get_flag_nbi, dmapp_put_flag*, dmapp_iput*, dmapp_iget*:
 * DMAPP_RC_RESOURCE_ERROR
 */
/*
 * covers: dmapp_ixput*, dmapp_ixget*, dmapp_put_ixpe*, dmapp_scatter_ixpe*, dmapp_gather_ixpe*: DMAPP_RC_RESOURCE_ERROR
 */
/* covers: dmapp_aadd_qw*, dmapp_aand_qw*, dmapp_aor_qw*, dmapp_axor_qw*, dmapp_afadd_qw*: DMAPP_RC_RESOURCE_ERROR */
/*
 * covers: dmapp_afand_qw*, dmapp_afor_qw*, dmapp_afxor_qw*, dmapp_afax_qw*, dmapp_acswap_qw*: DMAPP_RC_RESOURCE_ERROR
 */
/* covers: dmapp_amo_put*, dmapp_amo_get*: DMAPP_RC_RESOURCE_ERROR */
static void test_without_emunic_nothing_is_issued(void **state)
{
    dmapp_lock_desc_t *locks = (dmapp_lock_desc_t *)words + 32;
    static uint8_t pages[3 * 4096];
    uint8_t *page = (uint8_t *)(((uintptr_t)pages + 4095) & ~(uintptr_t)4095);
    dmapp_c_pset_desc_t desc = alone();
    dmapp_lock_handle_t held, by_place, none = NULL;
    dmapp_seg_desc_t seg, reserved;
    dmapp_c_pset_handle_t set, other = NULL;
    dmapp_queue_handle_t queue;
    uint64_t before[64];

    (void)state;
    assert_int_equal(dmapp_lock_acquire(&locks[0], &dx_job.sheap_seg, 0, 0, &held), DMAPP_RC_SUCCESS);
    assert_int_equal(dmapp_lock_acquire(&locks[1], &dx_job.sheap_seg, 0, 0, &by_place), DMAPP_RC_SUCCESS);
    assert_int_equal(dmapp_queue_attach(ignore, NULL, 0, &queue), DMAPP_RC_SUCCESS);
    assert_int_equal(dmapp_c_pset_create(&desc, 3, 0, NULL, &set), DMAPP_RC_SUCCESS);
    assert_int_equal(dmapp_mem_reserve(page, 4096, 0, &reserved), DMAPP_RC_SUCCESS);
    assert_int_equal(kill(fx.daemon, SIGKILL), 0);
    /* What is mapped can still be reached until the library has noticed. */
    while (put() != DMAPP_RC_RESOURCE_ERROR)
        assert_int_equal(dmapp_progress(), DMAPP_RC_SUCCESS);
    memcpy(before, words, sizeof(before));

    EXPECT_ALL(blocking, DMAPP_RC_RESOURCE_ERROR);
    EXPECT_ALL(nb, DMAPP_RC_RESOURCE_ERROR);
    assert_null(syncid);
    EXPECT_ALL(nbi, DMAPP_RC_RESOURCE_ERROR);
    assert_int_equal(dmapp_gsync_wait(), DMAPP_RC_SUCCESS);
    assert_int_equal(dmapp_lock_acquire(&locks[2], &dx_job.sheap_seg, 0, 0, &none), DMAPP_RC_RESOURCE_ERROR);
    assert_int_equal(dmapp_lock_try(&locks[2], &dx_job.sheap_seg, 0, 0, &none), DMAPP_RC_RESOURCE_ERROR);
    assert_int_equal(dmapp_lock_release(held, 0), DMAPP_RC_RESOURCE_ERROR);
    assert_int_equal(dmapp_lock_release_addr(&locks[1], 0, 0), DMAPP_RC_RESOURCE_ERROR);
    assert_int_equal(dmapp_queue_put(queue, local, 1, DMAPP_QW, 0, 0), DMAPP_RC_RESOURCE_ERROR);
    assert_int_equal(dmapp_queue_detach(queue, 0), DMAPP_RC_SUCCESS);
    assert_int_equal(dmapp_queue_attach(ignore, NULL, 0, &queue), DMAPP_RC_RESOURCE_ERROR);
    assert_int_equal(dmapp_c_pset_export(set), DMAPP_RC_RESOURCE_ERROR);
    assert_int_equal(dmapp_c_pset_create(&desc, 4, 0, NULL, &other), DMAPP_RC_RESOURCE_ERROR);
    assert_null(other);
    assert_int_equal(dmapp_c_pset_destroy(set), DMAPP_RC_SUCCESS);
    assert_int_equal(dmapp_mem_register(page, 4096, &seg), DMAPP_RC_RESOURCE_ERROR);
    assert_int_equal(dmapp_mem_reserve(page, 4096, 0, &seg), DMAPP_RC_RESOURCE_ERROR);
    assert_int_equal(dmapp_mem_update(page, 4096, 0, &reserved), DMAPP_RC_RESOURCE_ERROR);
    assert_memory_equal(words, before, sizeof(before));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_explicit_requests_are_limited, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_failed_transactions_are_told_and_change_nothing, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_without_emunic_nothing_is_issued, set_up, tear_down),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
