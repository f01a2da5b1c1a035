/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory domain descriptors: who has one alone, who shares, what is counted, what tells sharers apart. Specification:
 * spec/ugni.md 2.5, 2.7, 3.9, 4.6 and 7.26.
 */
#include "tests/conformance/pair.h"

#define PAGE     4096u
#define JOB_ID   4711ull
#define SHARERS  8u
#define MANY     6000u /* more than 12 bits can number */
#define MDH_MASK 0xfff0000000000000ull

static void limit_mdds(int32_t mdd_limit)
{
    gni_job_limits_t limits;

    memset(&limits, 0xff, sizeof(limits));
    limits.mdd_limit = mdd_limit;
    assert_int_equal(GNI_ConfigureJob(0, JOB_ID, (uint8_t)fx.ptag, fx.cookie, &limits), GNI_RC_SUCCESS);
}

/* Of node 1, where b is and holds one for its memory. */
static uint64_t mdds_used(void)
{
    gni_job_res_desc_t desc = { 0, 0 };

    fx_set_node(1);
    assert_int_equal(GNI_GetJobResInfo(0, (uint8_t)fx.ptag, GNI_JOB_RES_MDD, &desc), GNI_RC_SUCCESS);
    return desc.used;
}

static int close_pair_and_drop_limit(void **state)
{
    limit_mdds(INT32_MAX);
    return close_pair(state);
}

static int open_dedicated_pair(void **state)
{
    (void)state;
    return open_pair_in_mode(GNI_CDM_MODE_MDD_DEDICATED);
}

#define mdd_test(name) cmocka_unit_test_setup_teardown(name, open_pair, close_pair_and_drop_limit)

static gni_return_t try_register(uint8_t *mem, uint32_t flags, gni_mem_handle_t *handle_out)
{
    return GNI_MemRegister(b.nic, ADDR(mem), PAGE, b.dst_cq, flags, (uint32_t)-1, handle_out);
}

/* Page i of `mem` under handle i, until no more can be had or `max` are. How many. */
static unsigned register_all(uint8_t *mem, uint32_t flags, gni_mem_handle_t *handles, unsigned max)
{
    unsigned n = 0;

    while (n < max && try_register(mem + (size_t)n * PAGE, flags, &handles[n]) == GNI_RC_SUCCESS)
        n++;
    return n;
}

static void deregister_all(gni_mem_handle_t *handles, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        assert_int_equal(GNI_MemDeregister(b.nic, &handles[i]), GNI_RC_SUCCESS);
}

static enum status put_word(gni_mem_handle_t handle, const uint8_t *to, uint64_t word)
{
    gni_post_descriptor_t d = word_post(GNI_POST_FMA_PUT, 0);

    memcpy(a.mem, &word, sizeof(word));
    d.remote_addr = ADDR(to);
    d.remote_mem_hndl = handle;
    return run(&d);
}

static uint64_t word_at(const uint8_t *mem)
{
    uint64_t word;

    memcpy(&word, mem, sizeof(word));
    return word;
}

/* As libfabric rebuilds a handle from its key: number and page, nothing else. */
static gni_mem_handle_t rebuild(gni_mem_handle_t handle)
{
    return (gni_mem_handle_t){ handle.qword1, 0xfffffff | 12ull << 28 };
}

static void test_registrations_share_when_the_job_may_have_no_more(void **state)
{
    uint8_t *mem = pages(64 * PAGE);
    gni_mem_handle_t handles[64];
    unsigned n;

    (void)state;
    limit_mdds(4);
    n = register_all(mem, GNI_MEM_READWRITE, handles, COUNT_OF(handles));
    assert_int_equal(n, 4 * SHARERS - 1); /* b's memory shares as well */
    assert_int_equal(mdds_used(), 4);
    for (unsigned i = 0; i < n; i++)
        assert_int_equal(put_word(handles[i], mem + i * PAGE, 1000 + i), STATUS_OK);
    for (unsigned i = 0; i < n; i++)
        assert_int_equal(word_at(mem + i * PAGE), 1000 + i);
    deregister_all(handles, n);
    assert_int_equal(mdds_used(), 1);
    munmap(mem, 64 * PAGE);
}

static void test_each_has_its_own_while_there_are_some(void **state)
{
    uint8_t *mem = pages(8 * PAGE);
    gni_mem_handle_t handles[8];

    (void)state;
    assert_int_equal(register_all(mem, GNI_MEM_MDD_SHARED, handles, 8), 8);
    assert_int_equal(mdds_used(), 9);
    deregister_all(handles, 8);
    munmap(mem, 8 * PAGE);
}

static void test_dedicated_ones_are_not_shared(void **state)
{
    uint8_t *mem = pages(8 * PAGE);
    gni_mem_handle_t handles[8];

    (void)state;
    limit_mdds(3);
    assert_int_equal(register_all(mem, GNI_MEM_MDD_DEDICATED, handles, 8), 2);
    assert_int_equal(try_register(mem + 2 * PAGE, GNI_MEM_MDD_DEDICATED | GNI_MEM_MDD_SHARED, &handles[2]),
                     GNI_RC_ERROR_RESOURCE); /* of both the stricter one */
    /* Others may share, but with b's memory only. */
    assert_int_equal(register_all(mem + 2 * PAGE, GNI_MEM_MDD_SHARED, handles + 2, 1), 1);
    assert_true((handles[2].qword1 & MDH_MASK) == (b.mem_hndl.qword1 & MDH_MASK));
    deregister_all(handles, 3);
    munmap(mem, 8 * PAGE);
}

static void test_mode_of_the_domain_decides_unless_the_call_does(void **state)
{
    uint8_t *mem = pages(8 * PAGE);
    gni_mem_handle_t handles[8];

    (void)state;
    limit_mdds(2);
    assert_int_equal(register_all(mem, 0, handles, 8), 1);
    /* With nobody. */
    assert_int_equal(try_register(mem + PAGE, GNI_MEM_MDD_SHARED, &handles[1]), GNI_RC_ERROR_RESOURCE);
    deregister_all(handles, 1);
    assert_int_equal(register_all(mem, GNI_MEM_MDD_SHARED, handles, 8), 8);
    assert_int_equal(mdds_used(), 2);
    deregister_all(handles, 8);
    munmap(mem, 8 * PAGE);
}

static void test_rebuilt_handle_finds_its_own_among_sharers(void **state)
{
    uint8_t *mem = pages(SHARERS * PAGE);
    gni_mem_handle_t handles[SHARERS];
    unsigned n;

    (void)state;
    limit_mdds(1);
    n = register_all(mem, GNI_MEM_READWRITE, handles, COUNT_OF(handles));
    assert_int_equal(n, SHARERS - 1);
    for (unsigned i = 0; i < n; i++) {
        assert_true((handles[i].qword1 & MDH_MASK) == (b.mem_hndl.qword1 & MDH_MASK));
        assert_int_equal(put_word(rebuild(handles[i]), mem + i * PAGE, 77 + i), STATUS_OK);
        assert_int_equal(word_at(mem + i * PAGE), 77 + i);
        /* Its neighbour's memory is not its own, though number and job are. */
        assert_int_equal(put_word(rebuild(handles[i]), mem + (i + 1) % n * PAGE, 1), STATUS_REMOTE_RANGE);
        assert_int_equal(put_word(handles[i], mem + (i + 1) % n * PAGE, 1), STATUS_REMOTE_RANGE);
    }
    deregister_all(handles, n);
    munmap(mem, SHARERS * PAGE);
}

static void test_rebuilt_local_handle_finds_its_own_among_sharers(void **state)
{
    uint8_t *mem = pages(2 * PAGE);
    gni_mem_handle_t handles[2];
    gni_post_descriptor_t d;

    (void)state;
    limit_mdds(1);
    assert_int_equal(register_all(mem, GNI_MEM_READWRITE, handles, 2), 2);
    for (unsigned i = 0; i < 2; i++) {
        d = gx_put(&b, &a, 0, 8, GNI_CQMODE_GLOBAL_EVENT);
        d.type = GNI_POST_FMA_GET;
        d.local_addr = ADDR(mem + i * PAGE);
        d.local_mem_hndl = rebuild(handles[i]);
        a.mem[0] = (uint8_t)(5 + i);
        assert_int_equal(post_on(b.ep, &d), GNI_RC_SUCCESS);
        assert_int_equal(finish_on(b.src_cq, &d), STATUS_OK);
        assert_int_equal(mem[i * PAGE], 5 + i);
    }
    deregister_all(handles, 2);
    munmap(mem, 2 * PAGE);
}

static void test_same_page_is_never_shared(void **state)
{
    uint8_t *mem = pages(PAGE);
    gni_mem_handle_t handles[4];

    (void)state;
    limit_mdds(2);
    assert_int_equal(try_register(mem, 0, &handles[0]), GNI_RC_SUCCESS);
    assert_int_equal(try_register(mem, 0, &handles[1]), GNI_RC_SUCCESS); /* with b's memory */
    assert_true((handles[0].qword1 & MDH_MASK) != (handles[1].qword1 & MDH_MASK));
    assert_int_equal(try_register(mem, 0, &handles[2]), GNI_RC_ERROR_RESOURCE);
    deregister_all(handles, 2);
    munmap(mem, PAGE);
}

static void test_deregistering_one_leaves_its_sharers(void **state)
{
    uint8_t *mem = pages(3 * PAGE);
    gni_mem_handle_t handles[3];
    gni_mem_handle_t again;

    (void)state;
    limit_mdds(1);
    assert_int_equal(register_all(mem, GNI_MEM_READWRITE, handles, 3), 3);
    deregister_all(&handles[1], 1);
    assert_int_equal(put_word(handles[1], mem + PAGE, 9), STATUS_BAD_HANDLE);
    assert_int_equal(put_word(rebuild(handles[1]), mem + PAGE, 9), STATUS_BAD_HANDLE);
    assert_int_equal(put_word(handles[0], mem, 10), STATUS_OK);
    assert_int_equal(put_word(handles[2], mem + 2 * PAGE, 11), STATUS_OK);
    assert_int_equal(try_register(mem + PAGE, 0, &again), GNI_RC_SUCCESS); /* in its place */
    assert_true(again.qword1 == handles[1].qword1 && again.qword2 != handles[1].qword2);
    assert_int_equal(put_word(handles[1], mem + PAGE, 9), STATUS_BAD_HANDLE);
    assert_int_equal(put_word(again, mem + PAGE, 12), STATUS_OK);
    assert_int_equal(word_at(mem), 10);
    assert_int_equal(word_at(mem + PAGE), 12);
    handles[1] = again;
    deregister_all(handles, 3);
    munmap(mem, 3 * PAGE);
}

static void test_events_go_to_the_queue_of_the_registration(void **state)
{
    uint8_t *mem = pages(PAGE);
    gni_mem_handle_t handle;
    gni_post_descriptor_t d = gx_put(&a, &b, 0, 8, GNI_CQMODE_GLOBAL_EVENT | GNI_CQMODE_REMOTE_EVENT);
    gni_cq_handle_t other;
    gni_cq_entry_t entry;

    (void)state;
    limit_mdds(1);
    assert_int_equal(GNI_CqCreate(b.nic, 16, 0, GNI_CQ_NOBLOCK, NULL, NULL, &other), GNI_RC_SUCCESS);
    assert_int_equal(GNI_MemRegister(b.nic, ADDR(mem), PAGE, other, 0, (uint32_t)-1, &handle), GNI_RC_SUCCESS);
    d.remote_addr = ADDR(mem);
    d.remote_mem_hndl = handle;
    assert_int_equal(run(&d), STATUS_OK);
    assert_int_equal(gx_next(other, &entry), GNI_RC_SUCCESS);
    assert_int_equal(poll_once(b.dst_cq), GNI_RC_NOT_DONE);
    deregister_all(&handle, 1);
    assert_int_equal(GNI_CqDestroy(other), GNI_RC_SUCCESS);
    munmap(mem, PAGE);
}

/* Chapel counts on 16384 regions; here are more than handles have numbers. shows: chapel-regions */
static void test_more_registrations_than_handle_numbers(void **state)
{
    uint8_t *mem = pages((size_t)MANY * PAGE);
    gni_mem_handle_t *handles = calloc(MANY, sizeof(*handles));

    (void)state;
    assert_non_null(handles);
    assert_int_equal(register_all(mem, GNI_MEM_READWRITE | GNI_MEM_RELAXED_PI_ORDERING, handles, MANY), MANY);
    assert_true(mdds_used() <= 4095);
    for (unsigned i = 0; i < MANY; i += 7)
        assert_int_equal(put_word(i % 2 ? handles[i] : rebuild(handles[i]), mem + (size_t)i * PAGE, i + 1), STATUS_OK);
    for (unsigned i = 0; i < MANY; i++)
        assert_int_equal(word_at(mem + (size_t)i * PAGE), i % 7 == 0 ? i + 1 : 0);
    deregister_all(handles, MANY);
    free(handles);
    munmap(mem, (size_t)MANY * PAGE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        mdd_test(test_registrations_share_when_the_job_may_have_no_more),
        mdd_test(test_each_has_its_own_while_there_are_some),
        mdd_test(test_dedicated_ones_are_not_shared),
        cmocka_unit_test_setup_teardown(test_mode_of_the_domain_decides_unless_the_call_does, open_dedicated_pair,
                                        close_pair_and_drop_limit),
        mdd_test(test_rebuilt_handle_finds_its_own_among_sharers),
        mdd_test(test_rebuilt_local_handle_finds_its_own_among_sharers),
        mdd_test(test_same_page_is_never_shared),
        mdd_test(test_deregistering_one_leaves_its_sharers),
        mdd_test(test_events_go_to_the_queue_of_the_registration),
        mdd_test(test_more_registrations_than_handle_numbers),
    };

    return cmocka_run_group_tests(tests, start_emunic, stop_emunic);
}
