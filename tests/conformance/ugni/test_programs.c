/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What known programs depend on, each in the way that the program does it. Specification: ugni.md section 5; the tests of
 * single objects hold many more of these habits.
 */
#include "tests/conformance/pair.h"

/* An event id of 26 bits set right before a put from the stack; the target sleeps, and finds the data behind the entry. */
static void test_chapel_active_message(void **state)
{
    const uint32_t id = 0x2abcdef;
    uint64_t request[4] = { 1, 2, 3, 4 };
    gni_post_descriptor_t d = gx_put(&a, &b, 64, sizeof(request), GNI_CQMODE_GLOBAL_EVENT | GNI_CQMODE_REMOTE_EVENT);
    gni_cq_entry_t entry;

    (void)state;
    d.local_addr = ADDR(request);
    memset(&d.local_mem_hndl, 0, sizeof(d.local_mem_hndl));
    assert_int_equal(GNI_EpSetEventData(a.ep, 0, id), GNI_RC_SUCCESS);
    assert_int_equal(GNI_PostFma(a.ep, &d), GNI_RC_SUCCESS);
    assert_int_equal(GNI_CqWaitEvent(b.dst_cq, 10000, &entry), GNI_RC_SUCCESS);
    assert_int_equal(GNI_CQ_GET_REM_INST_ID(entry), id);
    assert_memory_equal(b.mem + 64, request, sizeof(request));
    assert_int_equal(finish(&d), STATUS_OK);
}

/* 64 small puts as one chain with one completion. */
static void test_chapel_chain_of_64(void **state)
{
    gni_ct_put_post_descriptor_t more[63];
    gni_post_descriptor_t d = word_post(GNI_POST_FMA_PUT, 0);

    (void)state;
    fill(a.mem, 64 * 8, 9);
    for (size_t i = 0; i < COUNT_OF(more); i++)
        more[i] = (gni_ct_put_post_descriptor_t){
            .next_descr = i + 1 < COUNT_OF(more) ? &more[i + 1] : NULL,
            .ep_hndl = a.ep,
            .remote_addr = ADDR(b.mem) + 8 * (i + 1),
            .remote_mem_hndl = b.mem_hndl,
            .length = 8,
            .local_addr = ADDR(a.mem) + 8 * (i + 1),
        };
    d.next_descr = more;
    assert_int_equal(GNI_CtPostFma(a.ep, &d), GNI_RC_SUCCESS);
    assert_int_equal(finish(&d), STATUS_OK);
    assert_memory_equal(b.mem, a.mem, 64 * 8);
    assert_int_equal(poll_once(a.src_cq), GNI_RC_NOT_DONE);
}

/* A queue write that tells nobody of its end and carries a pointer of 48 bits. */
static void test_charm_silent_write_of_a_pointer(void **state)
{
    const uint64_t pointer = 0x7fffdeadbee0;
    gni_post_descriptor_t d = { .type = GNI_POST_CQWRITE, .cq_mode = 0, .dlvr_mode = GNI_DLVMODE_IN_ORDER,
                                .cqwrite_value = pointer, .remote_mem_hndl = b.mem_hndl };
    gni_cq_entry_t entry;

    (void)state;
    assert_int_equal(GNI_PostCqWrite(a.ep, &d), GNI_RC_SUCCESS);
    assert_int_equal(gx_next(b.dst_cq, &entry), GNI_RC_SUCCESS);
    assert_int_equal(GNI_CQ_GET_DATA(entry), pointer);
    assert_int_equal(poll_once(a.src_cq), GNI_RC_NOT_DONE);
}

/* Two queues, ten milliseconds. */
static void test_cci_waits_for_two_queues(void **state)
{
    gni_cq_handle_t cqs[2] = { b.src_cq, b.dst_cq };
    gni_post_descriptor_t d = gx_put(&a, &b, 0, 8, GNI_CQMODE_GLOBAL_EVENT | GNI_CQMODE_REMOTE_EVENT);
    gni_cq_entry_t entry;
    uint32_t which = 9;

    (void)state;
    assert_int_equal(GNI_CqVectorWaitEvent(cqs, 2, 10, &entry, &which), GNI_RC_TIMEOUT);
    assert_int_equal(run(&d), STATUS_OK);
    assert_int_equal(GNI_CqVectorWaitEvent(cqs, 2, 10, &entry, &which), GNI_RC_SUCCESS);
    assert_int_equal(which, 1);
}

/* The thread that watches the queues is woken by a queue write to oneself. */
static void test_open_mpi_wakes_its_progress_thread(void **state)
{
    gni_post_descriptor_t d = { .type = GNI_POST_CQWRITE, .cq_mode = GNI_CQMODE_GLOBAL_EVENT,
                                .dlvr_mode = GNI_DLVMODE_IN_ORDER, .cqwrite_value = 0xdead, .remote_mem_hndl = a.mem_hndl };
    gni_cq_handle_t cqs[2] = { a.dst_cq, b.dst_cq };
    gni_cq_entry_t entry;
    gni_ep_handle_t self;
    uint32_t which = 9;

    (void)state;
    assert_int_equal(GNI_EpCreate(a.nic, a.src_cq, &self), GNI_RC_SUCCESS);
    assert_int_equal(GNI_EpBind(self, a.nic_addr, a.inst_id), GNI_RC_SUCCESS);
    assert_int_equal(GNI_PostCqWrite(self, &d), GNI_RC_SUCCESS);
    assert_int_equal(GNI_CqVectorMonitor(cqs, 2, (uint64_t)-1, &which), GNI_RC_SUCCESS);
    assert_int_equal(which, 0);
    assert_int_equal(gx_next(a.dst_cq, &entry), GNI_RC_SUCCESS);
    assert_int_equal(GNI_CQ_GET_DATA(entry), 0xdead);
    assert_int_equal(finish(&d), STATUS_OK);
    assert_int_equal(GNI_EpDestroy(self), GNI_RC_SUCCESS);
}

/* End points of a pool: bound before a post, unbound right after its completion. */
static void test_open_mpi_binds_for_one_post(void **state)
{
    (void)state;
    for (int i = 0; i < 100; i++) {
        gni_post_descriptor_t d = word_post(i % 2 ? GNI_POST_FMA_PUT : GNI_POST_FMA_GET, 8);

        assert_int_equal(run(&d), STATUS_OK);
        assert_int_equal(GNI_EpUnbind(a.ep), GNI_RC_SUCCESS);
        assert_int_equal(GNI_EpBind(a.ep, b.nic_addr, b.inst_id), GNI_RC_SUCCESS);
    }
}

/* End points are told apart by the low 24 bits of their handles. */
static void test_ucx_keys_of_end_points_differ(void **state)
{
    gni_ep_handle_t eps[200];

    (void)state;
    for (size_t i = 0; i < COUNT_OF(eps); i++) {
        assert_int_equal(GNI_EpCreate(a.nic, a.src_cq, &eps[i]), GNI_RC_SUCCESS);
        for (size_t k = 0; k < i; k++)
            assert_int_not_equal(ADDR(eps[i]) & 0xffffff, ADDR(eps[k]) & 0xffffff);
    }
    for (size_t i = 0; i < COUNT_OF(eps); i++)
        assert_int_equal(GNI_EpDestroy(eps[i]), GNI_RC_SUCCESS);
}

/* A handle is packed into 64 bits and built anew: MDH and address, no generation, no CRC, all ones as size. */
static void test_libfabric_rebuilds_a_handle(void **state)
{
    gni_post_descriptor_t d = word_post(GNI_POST_FMA_PUT, 16);

    (void)state;
    fill(a.mem + 16, 8, 5);
    d.remote_mem_hndl.qword2 = 12ull << 28 | 0xfffffff;
    assert_int_equal(run(&d), STATUS_OK);
    assert_memory_equal(b.mem + 16, a.mem + 16, 8);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        pair_test(test_chapel_active_message),
        pair_test(test_chapel_chain_of_64),
        pair_test(test_charm_silent_write_of_a_pointer),
        pair_test(test_cci_waits_for_two_queues),
        pair_test(test_open_mpi_wakes_its_progress_thread),
        pair_test(test_open_mpi_binds_for_one_post),
        pair_test(test_ucx_keys_of_end_points_differ),
        pair_test(test_libfabric_rebuilds_a_handle),
    };

    return cmocka_run_group_tests(tests, start_emunic, stop_emunic);
}
