/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * XC-43: block transfers. Four at a time where the job has four; the fifth waits for its turn. They end in any order
 * unless they are fenced. One has 4 GiB at most. A send finds its receive, waits for it, or gives up, as it was asked.
 */
#include "tests/conformance/job.h"

#define BIG   (8u << 20)
#define TRIES 20u

static uint8_t *from;
static uint8_t *to;
static gni_mem_handle_t from_handle;
static gni_mem_handle_t to_handle;

static int open_blocks(void **state)
{
    open_pair(state);
    from = pages(BIG);
    to = pages(BIG);
    memset(from, 0x33, BIG);
    from_handle = register_on(&a, from, BIG, GNI_MEM_READWRITE);
    to_handle = register_on(&b, to, BIG, GNI_MEM_READWRITE);
    return 0;
}

static int close_blocks(void **state)
{
    gni_job_limits_t limits = no_limits();

    limits.bte_limit = INT32_MAX;
    GNI_ConfigureJob(0, JOB_ID, (uint8_t)fx.ptag, fx.cookie, &limits);
    GNI_MemDeregister(a.nic, &from_handle);
    GNI_MemDeregister(b.nic, &to_handle);
    munmap(from, BIG);
    munmap(to, BIG);
    return close_pair(state);
}

#define block_test(name) cmocka_unit_test_setup_teardown(name, open_blocks, close_blocks)

static gni_post_descriptor_t block(uint64_t length)
{
    gni_post_descriptor_t d = word_post(GNI_POST_RDMA_PUT, 0);

    d.local_addr = ADDR(from);
    d.local_mem_hndl = from_handle;
    d.remote_addr = ADDR(to);
    d.remote_mem_hndl = to_handle;
    d.length = length;
    return d;
}

/* How often a small transfer that was posted behind a large one is over first. */
static unsigned overtakings(uint16_t rdma_mode)
{
    unsigned n = 0;

    for (unsigned i = 0; i < TRIES; i++) {
        gni_post_descriptor_t d[2] = { block(BIG), block(64) };
        gni_post_descriptor_t *done = NULL;

        d[1].rdma_mode = rdma_mode;
        assert_int_equal(post(&d[0]), GNI_RC_SUCCESS);
        assert_int_equal(post(&d[1]), GNI_RC_SUCCESS);
        assert_int_equal(gx_complete(a.src_cq, &done), GNI_RC_SUCCESS);
        n += done == &d[1];
        assert_int_equal(gx_complete(a.src_cq, &done), GNI_RC_SUCCESS);
    }
    return n;
}

static void test_only_a_fence_keeps_transfers_in_order(void **state)
{
    (void)state;
    assert_true(overtakings(0) > 0);
    assert_int_equal(overtakings(GNI_RDMAMODE_FENCE), 0);
}

static void test_the_fifth_transfer_waits_for_one_of_four(void **state)
{
    gni_post_descriptor_t d[5];
    gni_job_limits_t limits = no_limits();

    (void)state;
    limits.bte_limit = 4;
    assert_int_equal(GNI_ConfigureJob(0, JOB_ID, (uint8_t)fx.ptag, fx.cookie, &limits), GNI_RC_SUCCESS);
    assert_int_equal(GNI_SuspendJob(0, JOB_ID, (uint8_t)fx.ptag, fx.cookie, 1000), GNI_RC_SUCCESS);
    for (unsigned i = 0; i < 4; i++) {
        d[i] = block(BIG);
        assert_int_equal(post(&d[i]), GNI_RC_SUCCESS);
    }
    d[4] = block(BIG);
    assert_int_equal(post(&d[4]), GNI_RC_ERROR_RESOURCE);
    assert_int_equal(poll_once(a.src_cq), GNI_RC_NOT_DONE);
    assert_int_equal(GNI_ResumeJob(0, JOB_ID, (uint8_t)fx.ptag, fx.cookie), GNI_RC_SUCCESS);
    for (unsigned i = 0; i < 4; i++) {
        gni_post_descriptor_t *done = NULL;

        assert_int_equal(gx_complete(a.src_cq, &done), GNI_RC_SUCCESS);
        if (i == 0)
            assert_int_equal(post(&d[4]), GNI_RC_SUCCESS); /* a place is free */
    }
    assert_int_equal(finish(&d[4]), STATUS_OK);
    assert_true(all_bytes_are(to, 0x33, BIG));
}

static void test_a_transfer_has_4_gib_at_most(void **state)
{
    gni_post_descriptor_t d = block((4ull << 30) + 8);

    (void)state;
    assert_int_not_equal(post(&d) == GNI_RC_SUCCESS ? (int)finish(&d) : -1, STATUS_OK);
}

static void test_a_send_waits_for_its_receive_or_gives_up(void **state)
{
    char out[8] = "send";
    char in[8] = "";
    char taken[8] = "";
    gni_post_state_t post_state = GNI_POST_COMPLETED;
    gni_ep_handle_t any;
    uint32_t address;
    uint32_t instance;

    (void)state;
    assert_int_equal(GNI_EpPostData(a.ep, out, sizeof(out), in, sizeof(in)), GNI_RC_SUCCESS);
    assert_int_equal(GNI_EpPostDataWait(a.ep, 1, &post_state, &address, &instance), GNI_RC_TIMEOUT); /* gives up */
    assert_int_equal(GNI_EpPostDataTest(a.ep, &post_state, &address, &instance), GNI_RC_SUCCESS);
    assert_int_equal(post_state, GNI_POST_PENDING); /* and the send waits */
    assert_int_equal(GNI_EpCreate(b.nic, NULL, &any), GNI_RC_SUCCESS);
    assert_int_equal(GNI_EpPostData(any, out, sizeof(out), taken, sizeof(taken)), GNI_RC_SUCCESS);
    assert_int_equal(GNI_EpPostDataWait(any, (uint32_t)-1, &post_state, &address, &instance), GNI_RC_SUCCESS);
    assert_int_equal(post_state, GNI_POST_COMPLETED);
    assert_string_equal(taken, "send");
    assert_int_equal(GNI_EpPostDataWait(a.ep, (uint32_t)-1, &post_state, &address, &instance), GNI_RC_SUCCESS);
    assert_int_equal(post_state, GNI_POST_COMPLETED);
    assert_int_equal(GNI_EpDestroy(any), GNI_RC_SUCCESS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        block_test(test_only_a_fence_keeps_transfers_in_order),
        block_test(test_the_fifth_transfer_waits_for_one_of_four),
        block_test(test_a_transfer_has_4_gib_at_most),
        block_test(test_a_send_waits_for_its_receive_or_gives_up),
    };

    return cmocka_run_group_tests(tests, start_emunic, stop_emunic);
}
