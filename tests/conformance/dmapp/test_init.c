/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Start, end, attributes, identity, texts: what holds before dmapp_init(), while the library is up, and afterwards.
 * Has no fixture around it, because that starts the library.
 */
#include <pmi.h>
#include <pthread.h>

#include "tests/conformance/dmapp/cases.h"

static dmapp_rma_attrs_ext_t classic(uint32_t outstanding, uint32_t threshold, uint8_t routing, uint8_t ordering)
{
    return (dmapp_rma_attrs_ext_t){ .max_outstanding_nb = outstanding,
                                    .offload_threshold = threshold,
                                    .put_relaxed_ordering = routing,
                                    .get_relaxed_ordering = routing,
                                    .max_concurrency = 1,
                                    .PI_ordering = ordering };
}

static void start(void)
{
    assert_int_equal(dmapp_init(NULL, NULL), DMAPP_RC_SUCCESS);
    assert_int_equal(dmapp_get_jobinfo(&dx_job), DMAPP_RC_SUCCESS);
}

static void end(void)
{
    assert_int_equal(dmapp_finalize(), DMAPP_RC_SUCCESS);
}

static int is_up(void)
{
    int flag = 7;

    assert_int_equal(dmapp_initialized(&flag), DMAPP_RC_SUCCESS);
    assert_true(flag == 0 || flag == 1);
    return flag;
}

/* covers: dmapp_finalize, dmapp_get_jobinfo, dmapp_set_rma_attrs, dmapp_set_rma_attrs_ext: DMAPP_RC_INVALID_PARAM */
/* covers: dmapp_sheap_stats, dmapp_checkpoint, dmapp_restart, dmapp_progress: DMAPP_RC_INVALID_PARAM */
/*
 * covers: dmapp_gsync_wait, dmapp_gsync_test, dmapp_thread_gsync_wait, dmapp_thread_gsync_test: DMAPP_RC_INVALID_PARAM
 */
/* covers: dmapp_thread_register, dmapp_thread_unregister: DMAPP_RC_INVALID_PARAM */
static void expect_down(void)
{
    dmapp_rma_attrs_ext_t ext;
    dmapp_rma_attrs_t attrs = { 0 };
    dmapp_sheap_stats_t stats;
    dmapp_jobinfo_t info;
    dmapp_seg_desc_t desc = { 0 };
    uint64_t word = 0;
    int flag;

    memset(&ext, 0, sizeof(ext));
    assert_int_equal(is_up(), 0);
    assert_int_equal(dmapp_finalize(), DMAPP_RC_INVALID_PARAM);
    assert_int_equal(dmapp_get_jobinfo(&info), DMAPP_RC_INVALID_PARAM);
    assert_int_equal(dmapp_set_rma_attrs(&attrs, NULL), DMAPP_RC_INVALID_PARAM);
    assert_int_equal(dmapp_set_rma_attrs_ext(&ext, NULL), DMAPP_RC_INVALID_PARAM);
    assert_int_equal(dmapp_put(&word, &dx_job.sheap_seg, 0, &word, 1, DMAPP_QW), DMAPP_RC_INVALID_PARAM);
    assert_int_equal(dmapp_get(&word, &word, &dx_job.sheap_seg, 0, 0, DMAPP_QW), DMAPP_RC_INVALID_PARAM);
    assert_int_equal(dmapp_aadd_qw(&word, &dx_job.sheap_seg, 0, 1), DMAPP_RC_INVALID_PARAM);
    assert_int_equal(dmapp_mem_register(&word, 8, &desc), DMAPP_RC_INVALID_PARAM);
    assert_int_equal(dmapp_gsync_wait(), DMAPP_RC_INVALID_PARAM);
    assert_int_equal(dmapp_gsync_test(&flag), DMAPP_RC_INVALID_PARAM);
    assert_int_equal(dmapp_thread_gsync_wait(), DMAPP_RC_INVALID_PARAM);
    assert_int_equal(dmapp_thread_gsync_test(&flag), DMAPP_RC_INVALID_PARAM);
    assert_int_equal(dmapp_thread_register(), DMAPP_RC_INVALID_PARAM);
    assert_int_equal(dmapp_thread_unregister(), DMAPP_RC_INVALID_PARAM);
    assert_int_equal(dmapp_progress(), DMAPP_RC_INVALID_PARAM);
    assert_int_equal(dmapp_checkpoint(), DMAPP_RC_INVALID_PARAM);
    assert_int_equal(dmapp_restart(0), DMAPP_RC_INVALID_PARAM);
    assert_int_equal(dmapp_sheap_stats(&stats), DMAPP_RC_INVALID_PARAM);
    assert_null(dmapp_sheap_malloc(8));
    dmapp_sheap_free(&word);
}

/* covers: dmapp_get_rma_attrs, dmapp_get_rma_attrs_ext, dmapp_initialized: DMAPP_RC_SUCCESS, DMAPP_RC_INVALID_PARAM */
static void test_before_the_start_there_are_defaults(void **state)
{
    dmapp_rma_attrs_ext_t ext;
    dmapp_rma_attrs_t attrs;

    (void)state;
    expect_down();
    memset(&ext, 0xff, sizeof(ext));
    assert_int_equal(dmapp_get_rma_attrs_ext(&ext), DMAPP_RC_SUCCESS);
    assert_int_equal(ext.max_outstanding_nb, DMAPP_DEF_OUTSTANDING_NB);
    assert_int_equal(ext.offload_threshold, DMAPP_OFFLOAD_THRESHOLD);
    assert_int_equal(ext.put_relaxed_ordering, DMAPP_ROUTING_ADAPTIVE);
    assert_int_equal(ext.get_relaxed_ordering, DMAPP_ROUTING_ADAPTIVE);
    assert_int_equal(ext.max_concurrency, 1);
    assert_int_equal(ext.PI_ordering, DMAPP_PI_ORDERING_RELAXED);
    assert_int_equal(ext.queue_depth, DMAPP_QUEUE_DEFAULT_DEPTH);
    assert_int_equal(ext.queue_nelems, DMAPP_QUEUE_DEFAULT_NELEMS);
    assert_int_equal(ext.queue_flags, 0);
    assert_int_equal(dmapp_get_rma_attrs(&attrs), DMAPP_RC_SUCCESS);
    assert_int_equal(attrs.max_outstanding_nb, DMAPP_DEF_OUTSTANDING_NB);
    assert_int_equal(dmapp_get_rma_attrs_ext(NULL), DMAPP_RC_INVALID_PARAM);
    assert_int_equal(dmapp_get_rma_attrs(NULL), DMAPP_RC_INVALID_PARAM);
    assert_int_equal(dmapp_initialized(NULL), DMAPP_RC_INVALID_PARAM);
}

/* PMI is up behind dmapp_init(), and its rank is the PE. */
/* covers: dmapp_init, dmapp_finalize, dmapp_get_jobinfo: DMAPP_RC_SUCCESS */
static void test_job_is_what_pmi_says(void **state)
{
    int rank;
    int size;

    (void)state;
    start();
    assert_int_equal(is_up(), 1);
    assert_int_equal(PMI_Barrier(), PMI_SUCCESS);
    assert_int_equal(PMI_Get_rank(&rank), PMI_SUCCESS);
    assert_int_equal(PMI_Get_size(&size), PMI_SUCCESS);
    assert_int_equal(dx_job.pe, rank);
    assert_int_equal(dx_job.npes, size);
    assert_true(dx_job.version > 0);
    assert_true(dx_job.hw_version == 0 || dx_job.hw_version == 1);
    assert_true(static_area >= (uint8_t *)dx_job.data_seg.addr);
    assert_true(static_area + sizeof(static_area) <= (uint8_t *)dx_job.data_seg.addr + dx_job.data_seg.len);
    assert_non_null(dx_job.sheap_seg.addr);
    assert_int_equal(sizeof(dmapp_seg_desc_t), 48);
    assert_int_equal(sizeof(dmapp_lock_desc_t), 8);
    assert_int_equal(dmapp_get_jobinfo(NULL), DMAPP_RC_INVALID_PARAM);
    end();
    expect_down();
}

/* What programs assert: the classic fields come back as they were asked for. */
/* covers: dmapp_init_ext: DMAPP_RC_SUCCESS */
static void test_attributes_are_granted_as_requested(void **state)
{
    dmapp_rma_attrs_ext_t cases[] = {
        classic(1024, 2048, DMAPP_ROUTING_ADAPTIVE, DMAPP_PI_ORDERING_RELAXED),
        classic(DMAPP_MAX_OUTSTANDING_NB, 0, DMAPP_ROUTING_DETERMINISTIC, DMAPP_PI_ORDERING_STRICT),
        classic(DMAPP_MIN_OUTSTANDING_NB, UINT32_MAX, DMAPP_ROUTING_IN_ORDER, DMAPP_PI_ORDERING_DEFAULT),
        classic(DMAPP_DEF_OUTSTANDING_NB, 1 << 20, DMAPP_ROUTING_ADAPTIVE_3, DMAPP_PI_ORDERING_RELAXED),
    };

    (void)state;
    for (unsigned i = 0; i < COUNT_OF(cases); i++) {
        dmapp_rma_attrs_ext_t actual;
        dmapp_rma_attrs_ext_t now;

        cases[i].max_concurrency = i == 3 ? DMAPP_MAX_THREADS_UNLIMITED : 1;
        cases[i].queue_nelems = 1024;
        cases[i].queue_depth = 16;
        assert_int_equal(dmapp_init_ext(&cases[i], &actual), DMAPP_RC_SUCCESS);
        assert_int_equal(actual.max_outstanding_nb, cases[i].max_outstanding_nb);
        assert_int_equal(actual.offload_threshold, cases[i].offload_threshold);
        assert_int_equal(actual.put_relaxed_ordering, cases[i].put_relaxed_ordering);
        assert_int_equal(actual.get_relaxed_ordering, cases[i].get_relaxed_ordering);
        assert_int_equal(actual.max_concurrency, cases[i].max_concurrency);
        assert_int_equal(actual.PI_ordering, cases[i].PI_ordering);
        assert_int_equal(actual.queue_nelems, 1024);
        assert_int_equal(actual.queue_depth, 16);
        assert_int_equal(dmapp_get_rma_attrs_ext(&now), DMAPP_RC_SUCCESS);
        assert_memory_equal(&now, &actual, sizeof(now));
        end();
    }
}

/* Programs leave the tail uninitialised, each PE with other rubbish in it. */
static void test_rubbish_in_attributes_is_brought_into_range(void **state)
{
    dmapp_rma_attrs_ext_t wanted;
    dmapp_rma_attrs_ext_t actual;
    uint64_t word = 3;

    (void)state;
    memset(&wanted, 0x5a + atoi(getenv("EMUNIC_RANK")), sizeof(wanted));
    assert_int_equal(dmapp_init_ext(&wanted, &actual), DMAPP_RC_SUCCESS);
    assert_int_equal(actual.max_outstanding_nb, DMAPP_MAX_OUTSTANDING_NB);
    assert_int_equal(actual.put_relaxed_ordering, DMAPP_ROUTING_ADAPTIVE);
    assert_int_equal(actual.get_relaxed_ordering, DMAPP_ROUTING_ADAPTIVE);
    assert_int_equal(actual.PI_ordering, DMAPP_PI_ORDERING_RELAXED);
    assert_true(actual.queue_nelems <= DMAPP_QUEUE_MAX_NELEMS);
    assert_int_equal(dmapp_get_jobinfo(&dx_job), DMAPP_RC_SUCCESS);
    assert_int_equal(dmapp_put(dx_job.sheap_seg.addr, &dx_job.sheap_seg, next_pe(), &word, 1, DMAPP_QW),
                     DMAPP_RC_SUCCESS);
    end();

    memset(&wanted, 0, sizeof(wanted));
    assert_int_equal(dmapp_init_ext(&wanted, &wanted), DMAPP_RC_SUCCESS);
    assert_int_equal(wanted.max_outstanding_nb, DMAPP_DEF_OUTSTANDING_NB);
    assert_int_equal(wanted.max_concurrency, 1);
    end();
}

/* covers: dmapp_set_rma_attrs, dmapp_set_rma_attrs_ext: DMAPP_RC_SUCCESS, DMAPP_RC_INVALID_PARAM */
static void test_dynamic_attributes_change_and_static_ones_stay(void **state)
{
    dmapp_rma_attrs_ext_t ext = classic(2000, 100, DMAPP_ROUTING_DETERMINISTIC, DMAPP_PI_ORDERING_STRICT);
    dmapp_rma_attrs_t attrs = { .max_outstanding_nb = 7,
                                .offload_threshold = 200,
                                .put_relaxed_ordering = 99,
                                .get_relaxed_ordering = DMAPP_ROUTING_IN_ORDER };
    dmapp_rma_attrs_t actual;

    (void)state;
    start();
    assert_int_equal(dmapp_set_rma_attrs_ext(&ext, &ext), DMAPP_RC_SUCCESS);
    assert_int_equal(ext.offload_threshold, 100);
    assert_int_equal(ext.put_relaxed_ordering, DMAPP_ROUTING_DETERMINISTIC);
    assert_int_equal(ext.max_outstanding_nb, DMAPP_DEF_OUTSTANDING_NB);
    assert_int_equal(ext.PI_ordering, DMAPP_PI_ORDERING_RELAXED);
    assert_int_equal(dmapp_set_rma_attrs(&attrs, &actual), DMAPP_RC_SUCCESS);
    assert_int_equal(actual.offload_threshold, 200);
    assert_int_equal(actual.put_relaxed_ordering, DMAPP_ROUTING_ADAPTIVE);
    assert_int_equal(actual.get_relaxed_ordering, DMAPP_ROUTING_IN_ORDER);
    assert_int_equal(actual.max_outstanding_nb, DMAPP_DEF_OUTSTANDING_NB);
    assert_int_equal(dmapp_set_rma_attrs(NULL, &actual), DMAPP_RC_INVALID_PARAM);
    assert_int_equal(dmapp_set_rma_attrs_ext(NULL, &ext), DMAPP_RC_INVALID_PARAM);
    assert_int_equal(dmapp_set_rma_attrs(&attrs, NULL), DMAPP_RC_SUCCESS);
    end();
}

static void *look_at_threshold(void *arg)
{
    dmapp_rma_attrs_t attrs;

    if (dmapp_get_rma_attrs(&attrs) == DMAPP_RC_SUCCESS) {
        *(uint32_t *)arg = attrs.offload_threshold;
        attrs.offload_threshold = 64;
        dmapp_set_rma_attrs(&attrs, NULL);
    }
    return NULL;
}

static void test_dynamic_attributes_belong_to_the_thread(void **state)
{
    dmapp_rma_attrs_t attrs;
    uint32_t seen = 0;
    pthread_t thread;

    (void)state;
    start();
    assert_int_equal(dmapp_get_rma_attrs(&attrs), DMAPP_RC_SUCCESS);
    attrs.offload_threshold = 128;
    assert_int_equal(dmapp_set_rma_attrs(&attrs, NULL), DMAPP_RC_SUCCESS);
    assert_int_equal(pthread_create(&thread, NULL, look_at_threshold, &seen), 0);
    pthread_join(thread, NULL);
    assert_int_equal(seen, DMAPP_OFFLOAD_THRESHOLD);
    assert_int_equal(dmapp_get_rma_attrs(&attrs), DMAPP_RC_SUCCESS);
    assert_int_equal(attrs.offload_threshold, 128);
    end();
}

static void test_starts_and_ends_are_counted(void **state)
{
    dmapp_rma_attrs_ext_t ext = classic(8, 512, DMAPP_ROUTING_ADAPTIVE, DMAPP_PI_ORDERING_STRICT);
    dmapp_rma_attrs_ext_t actual;
    void *block;

    (void)state;
    start();
    block = dmapp_sheap_malloc(64);
    assert_int_equal(dmapp_init_ext(&ext, &actual), DMAPP_RC_SUCCESS);
    assert_int_equal(actual.offload_threshold, 512);
    assert_int_equal(actual.max_outstanding_nb, DMAPP_DEF_OUTSTANDING_NB);
    end();
    assert_int_equal(is_up(), 1);
    assert_non_null(dmapp_sheap_realloc(block, 128));
    end();
    expect_down();
}

/* What the last job had is gone; the next one works, with the heap where it was. */
static void test_library_starts_again_after_its_end(void **state)
{
    void *heap = NULL;

    (void)state;
    for (unsigned i = 0; i < 3; i++) {
        uint64_t word = i + 1;
        uint64_t *block;

        start();
        assert_true(!heap || heap == dx_job.sheap_seg.addr);
        heap = dx_job.sheap_seg.addr;
        block = dx_alloc(64);
        static_area[0] = 0;
        dx_barrier();
        dx_put_word(block, &dx_job.sheap_seg, next_pe(), word);
        assert_int_equal(dmapp_put(static_area, &dx_job.data_seg, next_pe(), &word, 1, DMAPP_BYTE), DMAPP_RC_SUCCESS);
        dx_barrier();
        assert_int_equal(*block, word);
        assert_int_equal(static_area[0], word);
        end();
    }
}

/* ---- heap sizes ---- */

static void expect_heap(const char *variable, const char *value, uint64_t bytes)
{
    setenv(variable, value, 1);
    start();
    assert_true(dx_job.sheap_seg.len >= bytes && dx_job.sheap_seg.len < bytes + 4096 + 65536);
    assert_non_null(dmapp_sheap_malloc(bytes / 2));
    end();
    unsetenv(variable);
}

static void test_heap_has_the_size_of_the_environment(void **state)
{
    (void)state;
    expect_heap("XT_SYMMETRIC_HEAP_SIZE", "300M", 300ull << 20);
    expect_heap("XT_SYMMETRIC_HEAP_SIZE", "1.5m", 3ull << 19);
    expect_heap("XT_SYMMETRIC_HEAP_SIZE", "512k", 512ull << 10);
    expect_heap("XT_SYMMETRIC_HEAP_SIZE", "1048576", 1ull << 20);
    setenv("XT_SYMMETRIC_HEAP_SIZE", "1M", 1);
    expect_heap("SHMEM_SYMMETRIC_SIZE", "8M", 8ull << 20);
    unsetenv("XT_SYMMETRIC_HEAP_SIZE");
    start();
    assert_true(dx_job.sheap_seg.len == 2ull << 30);
    end();
}

/* covers: dmapp_init, dmapp_init_ext: DMAPP_RC_RESOURCE_ERROR */
static void test_heap_that_cannot_be_had_stops_every_pe(void **state)
{
    static const char *const values[] = { "much", "1T", "-5", "", "12Mx", "90000G", "0" };

    (void)state;
    for (unsigned i = 0; i < COUNT_OF(values); i++) {
        /* One PE alone has the bad value: the others hear of it. */
        if (strcmp(getenv("EMUNIC_RANK"), "1") == 0)
            setenv("XT_SYMMETRIC_HEAP_SIZE", values[i], 1);
        assert_int_equal(dmapp_init(NULL, NULL), DMAPP_RC_RESOURCE_ERROR);
        assert_int_equal(dmapp_init_ext(NULL, NULL), DMAPP_RC_RESOURCE_ERROR);
        expect_down();
    }
    unsetenv("XT_SYMMETRIC_HEAP_SIZE");
    start();
    end();
}

/* ---- texts ---- */

/* covers: dmapp_explain_error, dmapp_get_version: DMAPP_RC_SUCCESS, DMAPP_RC_INVALID_PARAM */
static void test_every_code_has_a_name_and_a_sentence(void **state)
{
    static const char *const names[] = {
        "SUCCESS",  "INVALID_PARAM", "ALIGNMENT_ERROR", "TRANSACTION_ERROR", "RESOURCE_ERROR", "PERMISSION_ERROR",
        "NO_SPACE", "NOT_DONE",      "NOT_SUPPORTED",   "NOT_FOUND",         "BUSY",           "NOT_USED",
    };
    const char *text = NULL;
    int major = 0;
    int minor = -1;

    (void)state;
    for (int rc = DMAPP_RC_SUCCESS; rc <= DMAPP_RC_NOT_USED; rc++) {
        assert_string_equal(dmapp_err_str[rc] + strlen("DMAPP_RC_"), names[rc]);
        text = NULL;
        assert_int_equal(dmapp_explain_error((dmapp_return_t)rc, &text), DMAPP_RC_SUCCESS);
        assert_true(text && strlen(text) > 10);
    }
    text = NULL;
    assert_int_equal(dmapp_explain_error((dmapp_return_t)12, &text), DMAPP_RC_INVALID_PARAM);
    assert_true(text && strlen(text) > 10);
    assert_int_equal(dmapp_explain_error((dmapp_return_t)-1, &text), DMAPP_RC_INVALID_PARAM);
    assert_int_equal(dmapp_explain_error(DMAPP_RC_BUSY, NULL), DMAPP_RC_INVALID_PARAM);
    assert_int_equal(dmapp_get_version(&major, &minor), DMAPP_RC_SUCCESS);
    assert_true(major > 0 && minor >= 0);
    assert_int_equal(dmapp_get_version(NULL, &minor), DMAPP_RC_INVALID_PARAM);
    assert_int_equal(dmapp_get_version(&major, NULL), DMAPP_RC_INVALID_PARAM);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_before_the_start_there_are_defaults),
        cmocka_unit_test(test_job_is_what_pmi_says),
        cmocka_unit_test(test_attributes_are_granted_as_requested),
        cmocka_unit_test(test_rubbish_in_attributes_is_brought_into_range),
        cmocka_unit_test(test_dynamic_attributes_change_and_static_ones_stay),
        cmocka_unit_test(test_dynamic_attributes_belong_to_the_thread),
        cmocka_unit_test(test_starts_and_ends_are_counted),
        cmocka_unit_test(test_library_starts_again_after_its_end),
        cmocka_unit_test(test_heap_has_the_size_of_the_environment),
        cmocka_unit_test(test_heap_that_cannot_be_had_stops_every_pe),
        cmocka_unit_test(test_every_code_has_a_name_and_a_sentence),
    };
    int spawned;
    int failed;

    setvbuf(stdout, NULL, _IOLBF, 0);
    if (strcmp(getenv("EMUNIC_RANK"), "0") != 0 && !freopen("/dev/null", "w", stdout))
        return 1;
    setenv("CMOCKA_TEST_ABORT", "1", 1);
    /* PMI stays up throughout: many implementations cannot start it twice. */
    if (PMI_Init(&spawned) != PMI_SUCCESS)
        return 1;
    failed = cmocka_run_group_tests(tests, NULL, NULL);
    PMI_Finalize();
    return failed != 0;
}
