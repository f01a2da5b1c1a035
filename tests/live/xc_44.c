/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * XC-44: a transaction of many parts has one event at its source, and one at its target if that is wanted. The status
 * tells a failure of either end, and of the network between them.
 */
#include "tests/live/live.h"

#define N 64u

static gni_ct_put_post_descriptor_t elements[N];

/* Words 1 .. N of b, in an order that no address order is. */
static gni_post_descriptor_t chain(void)
{
    gni_post_descriptor_t d = word_post(GNI_POST_FMA_PUT, 0);

    for (unsigned i = 0; i < N; i++) {
        unsigned word = 1 + i * 29 % N;

        elements[i] = (gni_ct_put_post_descriptor_t){ .next_descr = i + 1 < N ? &elements[i + 1] : NULL,
                                                      .ep_hndl = a.ep,
                                                      .remote_addr = ADDR(b.mem) + (uint64_t)8 * word,
                                                      .remote_mem_hndl = b.mem_hndl,
                                                      .length = 8,
                                                      .local_addr = ADDR(a.mem) + (uint64_t)8 * word };
    }
    d.next_descr = &elements[0];
    return d;
}

/* One event, and not another one. */
static enum status run_chain(gni_post_descriptor_t *d)
{
    enum status status;

    assert_int_equal(GNI_CtPostFma(a.ep, d), GNI_RC_SUCCESS);
    status = finish(d);
    wait_for_all_before(&a, &b);
    assert_int_equal(poll_once(a.src_cq), GNI_RC_NOT_DONE);
    return status;
}

static void test_a_transaction_has_one_event(void **state)
{
    gni_post_descriptor_t d = chain();

    (void)state;
    fill(a.mem, 8 * (N + 1), 44);
    assert_int_equal(run_chain(&d), STATUS_OK);
    assert_memory_equal(b.mem, a.mem, 8 * (N + 1));
}

static void test_one_part_that_the_target_refuses_is_told_by_the_one_event(void **state)
{
    static const unsigned bad[] = { 0, 1, N / 2, N - 1 };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        gni_post_descriptor_t d = chain();

        elements[bad[i]].remote_addr = ADDR(b.mem) + GX_BYTES;
        assert_int_equal(run_chain(&d), STATUS_REMOTE_RANGE);
    }
}

static void test_a_failure_at_the_source_is_told(void **state)
{
    uint8_t *mem = pages(4096);
    gni_mem_handle_t handle = register_on(&a, mem, 4096, GNI_MEM_READWRITE);
    gni_post_descriptor_t d = word_post(GNI_POST_FMA_GET, 0);

    (void)state;
    d.local_addr = ADDR(mem);
    d.local_mem_hndl = handle;
    assert_int_equal(GNI_MemDeregister(a.nic, &handle), GNI_RC_SUCCESS);
    assert_int_equal(run(&d), STATUS_LOCAL_ACCESS);
    assert_int_equal(poll_once(a.src_cq), GNI_RC_NOT_DONE);
    munmap(mem, 4096);
}

static void test_a_failure_of_the_network_is_told(void **state)
{
    gni_post_descriptor_t d = word_post(GNI_POST_FMA_PUT, 0);

    (void)state;
    fx_add_fault(&fx, "class=fma-put action=drop nth=1");
    assert_int_equal(run(&d), STATUS_NETWORK);
    assert_int_equal(run(&d), STATUS_OK);
    assert_int_equal(poll_once(a.src_cq), GNI_RC_NOT_DONE);
    fx_clear_faults(&fx);
}

/* Long parts on their way beside short ones end in any order; each has one event at either end. */
static void test_each_transaction_under_way_has_its_own_events(void **state)
{
    enum { MANY = 40, LONG = 4 << 20 };
    uint8_t *source = pages(LONG);
    uint8_t *target = pages(LONG);
    gni_mem_handle_t source_handle = register_on(&a, source, LONG, GNI_MEM_READWRITE);
    gni_mem_handle_t target_handle = { 0, 0 };
    static gni_post_descriptor_t d[MANY];
    unsigned seen[MANY] = { 0 };

    (void)state;
    assert_int_equal(GNI_MemRegister(b.nic, ADDR(target), LONG, b.dst_cq, 0, (uint32_t)-1, &target_handle),
                     GNI_RC_SUCCESS);
    for (unsigned i = 0; i < MANY; i++) {
        d[i] = word_post(GNI_POST_RDMA_PUT, 0);
        d[i].cq_mode = GNI_CQMODE_GLOBAL_EVENT | GNI_CQMODE_REMOTE_EVENT;
        d[i].local_addr = ADDR(source);
        d[i].local_mem_hndl = source_handle;
        d[i].remote_addr = i == 17 ? ADDR(target) + LONG : ADDR(target); /* one is refused by the target */
        d[i].remote_mem_hndl = target_handle;
        d[i].length = i % 8 == 0 ? LONG : 64;
        assert_int_equal(post(&d[i]), GNI_RC_SUCCESS);
    }
    for (unsigned i = 0; i < MANY; i++) {
        gni_post_descriptor_t *done = NULL;
        gni_return_t rc = gx_complete(a.src_cq, &done);

        assert_in_range(done - d, 0, MANY - 1);
        assert_int_equal(rc, done == &d[17] ? GNI_RC_TRANSACTION_ERROR : GNI_RC_SUCCESS);
        assert_int_equal(done->status, done == &d[17] ? STATUS_REMOTE_RANGE : STATUS_OK);
        seen[done - d]++;
    }
    for (unsigned i = 0; i < MANY; i++)
        assert_int_equal(seen[i], 1);
    assert_int_equal(poll_once(a.src_cq), GNI_RC_NOT_DONE);
    for (unsigned i = 0; i < MANY - 1; i++) {
        gni_cq_entry_t entry;

        assert_int_equal(gx_next(b.dst_cq, &entry), GNI_RC_SUCCESS);
    }
    assert_int_equal(poll_once(b.dst_cq), GNI_RC_NOT_DONE); /* nothing of the one that was refused */
    GNI_MemDeregister(a.nic, &source_handle);
    GNI_MemDeregister(b.nic, &target_handle);
    munmap(source, LONG);
    munmap(target, LONG);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        pair_test(test_a_transaction_has_one_event),
        pair_test(test_one_part_that_the_target_refuses_is_told_by_the_one_event),
        pair_test(test_a_failure_at_the_source_is_told),
        pair_test(test_a_failure_of_the_network_is_told),
        pair_test(test_each_transaction_under_way_has_its_own_events),
    };

    return cmocka_run_group_tests(tests, start_emunic, stop_emunic);
}
