/* SPDX-License-Identifier: BSD-3-Clause */
/* End points: create, bind, unbind, destroy, with and without work under way. Specification: spec/ugni.md 4.4. */
#include "tests/conformance/pair.h"

#define BIG_BYTES (32u << 20)
#define MANY_EPS  5000

static int compare_keys(const void *left, const void *right)
{
    uint32_t x = *(const uint32_t *)left;
    uint32_t y = *(const uint32_t *)right;

    return (x > y) - (x < y);
}

/* Waits, without polling any queue, until the end point says that it is idle. */
static gni_return_t wait_until_idle(gni_ep_handle_t ep)
{
    uint64_t end_ns = emu_clock_ns() + PATIENCE_NS;
    gni_return_t rc;

    do {
        rc = GNI_EpIdle(ep);
    } while (rc == GNI_RC_NOT_DONE && emu_clock_ns() < end_ns);
    return rc;
}

/* ---- create ---- */

static void test_create_refuses_bad_handles(void **state)
{
    gni_ep_handle_t ep;
    gni_cq_handle_t dead;

    (void)state;
    assert_int_equal(GNI_CqCreate(a.nic, 1, 0, GNI_CQ_NOBLOCK, NULL, NULL, &dead), GNI_RC_SUCCESS);
    assert_int_equal(GNI_CqDestroy(dead), GNI_RC_SUCCESS);
    assert_int_equal(GNI_EpCreate(NULL, a.src_cq, &ep), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_EpCreate(a.nic, dead, &ep), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_EpCreate(a.nic, b.src_cq, &ep), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_EpCreate(a.nic, a.src_cq, NULL), GNI_RC_INVALID_PARAM);
}

static void test_handles_differ_in_their_low_24_bits(void **state)
{
    static gni_ep_handle_t eps[MANY_EPS];
    static uint32_t keys[MANY_EPS];

    (void)state;
    for (size_t i = 0; i < MANY_EPS; i++) {
        assert_int_equal(GNI_EpCreate(a.nic, NULL, &eps[i]), GNI_RC_SUCCESS);
        keys[i] = (uint32_t)(ADDR(eps[i]) & 0xffffff);
    }
    qsort(keys, MANY_EPS, sizeof(keys[0]), compare_keys);
    for (size_t i = 1; i < MANY_EPS; i++)
        assert_int_not_equal(keys[i - 1], keys[i]);
    for (size_t i = 0; i < MANY_EPS; i++)
        assert_int_equal(GNI_EpDestroy(eps[i]), GNI_RC_SUCCESS);
}

/* ---- bind ---- */

static void test_bind_twice_is_refused(void **state)
{
    (void)state;
    assert_int_equal(GNI_EpBind(a.ep, b.nic_addr, b.inst_id), GNI_RC_INVALID_PARAM);
}

static void test_rebound_end_point_reaches_the_new_peer(void **state)
{
    gni_post_descriptor_t d = gx_put(&a, &a, 0, 8, GNI_CQMODE_GLOBAL_EVENT);
    uint8_t target[8] = { 0 };
    gni_mem_handle_t handle = register_on(&a, target, sizeof(target), GNI_MEM_READWRITE);

    (void)state;
    assert_int_equal(GNI_EpUnbind(a.ep), GNI_RC_SUCCESS);
    assert_int_equal(GNI_EpBind(a.ep, a.nic_addr, a.inst_id), GNI_RC_SUCCESS);
    d.remote_addr = ADDR(target);
    d.remote_mem_hndl = handle;
    memcpy(a.mem, "to self", 8);
    assert_int_equal(run(&d), STATUS_OK);
    assert_memory_equal(target, "to self", 8);
    GNI_MemDeregister(a.nic, &handle);
}

static void test_several_end_points_reach_one_peer(void **state)
{
    gni_post_descriptor_t d[4];
    gni_ep_handle_t eps[4];

    (void)state;
    for (unsigned i = 0; i < 4; i++) {
        assert_int_equal(GNI_EpCreate(a.nic, a.src_cq, &eps[i]), GNI_RC_SUCCESS);
        assert_int_equal(GNI_EpBind(eps[i], b.nic_addr, b.inst_id), GNI_RC_SUCCESS);
        a.mem[8 * i] = (uint8_t)(i + 1);
        d[i] = word_post(GNI_POST_FMA_PUT, 8 * i);
        assert_int_equal(post_on(eps[i], &d[i]), GNI_RC_SUCCESS);
    }
    for (unsigned i = 0; i < 4; i++)
        assert_int_equal(finish(&d[i]), STATUS_OK);
    for (unsigned i = 0; i < 4; i++) {
        assert_int_equal(b.mem[8 * i], i + 1);
        assert_int_equal(GNI_EpDestroy(eps[i]), GNI_RC_SUCCESS);
    }
}

static void test_bind_needs_no_peer_and_posts_then_fail(void **state)
{
    static const uint32_t nowhere[] = { 60, 0x3ffff, 0xffffffff };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(nowhere); i++) {
        gni_post_descriptor_t d = word_post(GNI_POST_FMA_PUT, 0);
        gni_ep_handle_t ep;

        assert_int_equal(GNI_EpCreate(a.nic, a.src_cq, &ep), GNI_RC_SUCCESS);
        assert_int_equal(GNI_EpBind(ep, nowhere[i], 1), GNI_RC_SUCCESS);
        assert_int_equal(post_on(ep, &d), GNI_RC_SUCCESS);
        assert_int_equal(finish(&d), STATUS_PEER_GONE);
        assert_int_equal(GNI_EpDestroy(ep), GNI_RC_SUCCESS);
    }
}

static void test_posts_on_an_unbound_end_point_are_refused(void **state)
{
    static const gni_post_type_t types[] = { GNI_POST_FMA_PUT,  GNI_POST_FMA_GET,  GNI_POST_AMO,
                                             GNI_POST_RDMA_PUT, GNI_POST_RDMA_GET, GNI_POST_CQWRITE };

    (void)state;
    assert_int_equal(GNI_EpUnbind(a.ep), GNI_RC_SUCCESS);
    for (size_t i = 0; i < COUNT_OF(types); i++) {
        gni_post_descriptor_t d = word_post(types[i], 0);

        assert_int_equal(post(&d), GNI_RC_INVALID_PARAM);
    }
}

static void test_posts_on_an_end_point_without_queue_are_refused(void **state)
{
    gni_post_descriptor_t d = word_post(GNI_POST_FMA_PUT, 0);
    gni_ep_handle_t ep;

    (void)state;
    assert_int_equal(GNI_EpCreate(a.nic, NULL, &ep), GNI_RC_SUCCESS);
    assert_int_equal(GNI_EpBind(ep, b.nic_addr, b.inst_id), GNI_RC_SUCCESS);
    assert_int_equal(post_on(ep, &d), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_EpDestroy(ep), GNI_RC_SUCCESS);
}

/* ---- unbind, idle ---- */

static void test_unbind_waits_for_the_transaction(void **state)
{
    gni_post_descriptor_t d = word_post(GNI_POST_FMA_PUT, 0);

    (void)state;
    freeze_emunic();
    assert_int_equal(post(&d), GNI_RC_SUCCESS);
    assert_int_equal(GNI_EpIdle(a.ep), GNI_RC_NOT_DONE);
    assert_int_equal(GNI_EpUnbind(a.ep), GNI_RC_NOT_DONE);
    thaw_emunic();
    assert_int_equal(finish(&d), STATUS_OK);
    assert_int_equal(GNI_EpIdle(a.ep), GNI_RC_SUCCESS);
    assert_int_equal(GNI_EpUnbind(a.ep), GNI_RC_SUCCESS);
}

static void test_unbind_waits_until_the_entry_is_taken(void **state)
{
    gni_post_descriptor_t d = gx_put(&a, &b, 0, 8, GNI_CQMODE_GLOBAL_EVENT | GNI_CQMODE_REMOTE_EVENT);
    gni_cq_entry_t entry;

    (void)state;
    assert_int_equal(post(&d), GNI_RC_SUCCESS);
    assert_int_equal(gx_next(b.dst_cq, &entry), GNI_RC_SUCCESS); /* so it has completed */
    assert_int_equal(GNI_EpUnbind(a.ep), GNI_RC_NOT_DONE);
    assert_int_equal(finish(&d), STATUS_OK);
    assert_int_equal(GNI_EpUnbind(a.ep), GNI_RC_SUCCESS);
}

static void test_unbind_waits_for_both_entries_of_a_dual_post(void **state)
{
    gni_post_descriptor_t d = gx_put(&a, &b, 0, 8, GNI_CQMODE_DUAL_EVENTS);

    (void)state;
    assert_int_equal(post(&d), GNI_RC_SUCCESS);
    assert_int_equal(finish(&d), STATUS_OK);
    assert_int_equal(GNI_EpUnbind(a.ep), GNI_RC_NOT_DONE);
    assert_int_equal(finish(&d), STATUS_OK);
    assert_int_equal(GNI_EpUnbind(a.ep), GNI_RC_SUCCESS);
}

static void test_descriptor_is_found_after_unbind_and_rebind(void **state)
{
    gni_post_descriptor_t d = word_post(GNI_POST_FMA_PUT, 0);
    gni_post_descriptor_t *done = NULL;
    gni_cq_entry_t entry;

    (void)state;
    assert_int_equal(post(&d), GNI_RC_SUCCESS);
    assert_int_equal(gx_next(a.src_cq, &entry), GNI_RC_SUCCESS);
    assert_int_equal(GNI_EpUnbind(a.ep), GNI_RC_SUCCESS);
    assert_int_equal(GNI_EpBind(a.ep, a.nic_addr, a.inst_id), GNI_RC_SUCCESS);
    assert_int_equal(GNI_GetCompleted(a.src_cq, entry, &done), GNI_RC_SUCCESS);
    assert_ptr_equal(done, &d);
    assert_int_equal(GNI_EpUnbind(a.ep), GNI_RC_SUCCESS);
}

static void test_silent_posts_do_not_hinder_unbind_once_done(void **state)
{
    gni_post_descriptor_t d[10];

    (void)state;
    for (size_t i = 0; i < COUNT_OF(d); i++) {
        d[i] = gx_put(&a, &b, 8 * i, 8, GNI_CQMODE_SILENT);
        assert_int_equal(post(&d[i]), GNI_RC_SUCCESS);
    }
    assert_int_equal(wait_until_idle(a.ep), GNI_RC_SUCCESS);
    assert_int_equal(GNI_EpUnbind(a.ep), GNI_RC_SUCCESS);
}

static void test_unbind_of_an_unbound_end_point_works(void **state)
{
    (void)state;
    assert_int_equal(GNI_EpUnbind(a.ep), GNI_RC_SUCCESS);
    assert_int_equal(GNI_EpUnbind(a.ep), GNI_RC_SUCCESS);
    assert_int_equal(GNI_EpIdle(a.ep), GNI_RC_SUCCESS);
}

/* ---- destroy ---- */

static void test_destroy_twice_is_refused(void **state)
{
    (void)state;
    assert_int_equal(GNI_EpDestroy(a.ep), GNI_RC_SUCCESS);
    assert_int_equal(GNI_EpDestroy(a.ep), GNI_RC_INVALID_PARAM);
    a.ep = NULL;
}

static void test_entries_of_a_destroyed_end_point_are_swallowed(void **state)
{
    gni_post_descriptor_t d[6];
    gni_cq_entry_t entry;

    (void)state;
    for (size_t i = 0; i < COUNT_OF(d); i++) {
        d[i] = gx_put(&a, &b, 8 * i, 8, GNI_CQMODE_GLOBAL_EVENT | GNI_CQMODE_REMOTE_EVENT);
        assert_int_equal(post(&d[i]), GNI_RC_SUCCESS);
    }
    assert_int_equal(GNI_EpDestroy(a.ep), GNI_RC_SUCCESS);
    a.ep = NULL;
    for (size_t i = 0; i < COUNT_OF(d); i++)
        assert_int_equal(gx_next(b.dst_cq, &entry), GNI_RC_SUCCESS);
    for (unsigned i = 0; i < 100; i++)
        assert_int_equal(poll_once(a.src_cq), GNI_RC_NOT_DONE);
    assert_int_equal(GNI_CqDestroy(a.src_cq), GNI_RC_SUCCESS);
}

static void test_failures_of_a_destroyed_end_point_are_swallowed(void **state)
{
    gni_post_descriptor_t bad = word_post(GNI_POST_FMA_PUT, 0);
    gni_post_descriptor_t good = word_post(GNI_POST_FMA_PUT, 0);
    gni_ep_handle_t ep;

    (void)state;
    assert_int_equal(GNI_EpCreate(a.nic, a.src_cq, &ep), GNI_RC_SUCCESS);
    assert_int_equal(GNI_EpBind(ep, b.nic_addr, b.inst_id), GNI_RC_SUCCESS);
    bad.remote_addr += GX_BYTES;
    assert_int_equal(post_on(ep, &bad), GNI_RC_SUCCESS);
    assert_int_equal(GNI_EpDestroy(ep), GNI_RC_SUCCESS);
    assert_int_equal(run(&good), STATUS_OK);
}

static void test_slots_of_a_destroyed_end_point_come_back(void **state)
{
    gni_post_descriptor_t d[128];
    gni_cq_entry_t entry;

    (void)state; /* 128 entries exactly */
    for (unsigned round = 0; round < 3; round++) {
        for (size_t i = 0; i < COUNT_OF(d); i++) {
            d[i] = gx_put(&a, &b, 8 * i, 8, i % 2 ? GNI_CQMODE_GLOBAL_EVENT : GNI_CQMODE_SILENT);
            if (i + 1 == COUNT_OF(d))
                d[i].cq_mode |= GNI_CQMODE_REMOTE_EVENT;
            assert_int_equal(post(&d[i]), GNI_RC_SUCCESS);
        }
        assert_int_equal(gx_next(b.dst_cq, &entry), GNI_RC_SUCCESS); /* the last one is done */
        assert_int_equal(GNI_EpDestroy(a.ep), GNI_RC_SUCCESS);
        while (GNI_CqGetEvent(a.src_cq, &entry) != GNI_RC_NOT_DONE)
            fail_msg("an entry of a destroyed end point");
        assert_int_equal(GNI_EpCreate(a.nic, a.src_cq, &a.ep), GNI_RC_SUCCESS);
        assert_int_equal(GNI_EpBind(a.ep, b.nic_addr, b.inst_id), GNI_RC_SUCCESS);
    }
}

static void test_entry_taken_before_destroy_finds_no_descriptor(void **state)
{
    gni_post_descriptor_t d = word_post(GNI_POST_FMA_PUT, 0);
    gni_post_descriptor_t *done = &d;
    gni_cq_entry_t entry;

    (void)state;
    assert_int_equal(post(&d), GNI_RC_SUCCESS);
    assert_int_equal(gx_next(a.src_cq, &entry), GNI_RC_SUCCESS);
    assert_int_equal(GNI_EpDestroy(a.ep), GNI_RC_SUCCESS);
    a.ep = NULL;
    assert_int_equal(GNI_GetCompleted(a.src_cq, entry, &done), GNI_RC_DESCRIPTOR_ERROR);
    assert_null(done);
}

static void test_queue_can_go_while_a_destroyed_end_points_posts_run(void **state)
{
    gni_post_descriptor_t d[6];

    (void)state;
    freeze_emunic();
    for (size_t i = 0; i < COUNT_OF(d); i++) {
        d[i] = word_post(GNI_POST_FMA_PUT, 8 * i);
        assert_int_equal(post(&d[i]), GNI_RC_SUCCESS);
    }
    thaw_emunic();
    assert_int_equal(GNI_EpDestroy(a.ep), GNI_RC_SUCCESS);
    a.ep = NULL;
    assert_int_equal(GNI_CqDestroy(a.src_cq), GNI_RC_SUCCESS);
}

static void test_get_writes_nothing_after_destroy(void **state)
{
    uint8_t *source = pages(BIG_BYTES);
    uint8_t *sink = pages(BIG_BYTES);
    gni_mem_handle_t source_handle = register_on(&b, source, BIG_BYTES, GNI_MEM_READWRITE);
    gni_mem_handle_t sink_handle = register_on(&a, sink, BIG_BYTES, GNI_MEM_READWRITE);
    gni_post_descriptor_t d = { .type = GNI_POST_RDMA_GET,
                                .cq_mode = GNI_CQMODE_GLOBAL_EVENT,
                                .local_addr = ADDR(sink),
                                .local_mem_hndl = sink_handle,
                                .remote_addr = ADDR(source),
                                .remote_mem_hndl = source_handle,
                                .length = BIG_BYTES };

    (void)state;
    assert_int_equal(post(&d), GNI_RC_SUCCESS);
    assert_int_equal(GNI_EpDestroy(a.ep), GNI_RC_SUCCESS);
    memset(sink, 0xee, BIG_BYTES);
    assert_int_equal(GNI_EpCreate(a.nic, a.src_cq, &a.ep), GNI_RC_SUCCESS);
    assert_int_equal(GNI_EpBind(a.ep, b.nic_addr, b.inst_id), GNI_RC_SUCCESS);
    wait_for_all_before(&a, &b);
    assert_true(all_bytes_are(sink, 0xee, BIG_BYTES));
    GNI_MemDeregister(a.nic, &sink_handle);
    GNI_MemDeregister(b.nic, &source_handle);
    munmap(source, BIG_BYTES);
    munmap(sink, BIG_BYTES);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        pair_test(test_create_refuses_bad_handles),
        pair_test(test_handles_differ_in_their_low_24_bits),
        pair_test(test_bind_twice_is_refused),
        pair_test(test_rebound_end_point_reaches_the_new_peer),
        pair_test(test_several_end_points_reach_one_peer),
        pair_test(test_bind_needs_no_peer_and_posts_then_fail),
        pair_test(test_posts_on_an_unbound_end_point_are_refused),
        pair_test(test_posts_on_an_end_point_without_queue_are_refused),
        pair_test(test_unbind_waits_for_the_transaction),
        pair_test(test_unbind_waits_until_the_entry_is_taken),
        dual_pair_test(test_unbind_waits_for_both_entries_of_a_dual_post),
        pair_test(test_descriptor_is_found_after_unbind_and_rebind),
        pair_test(test_silent_posts_do_not_hinder_unbind_once_done),
        pair_test(test_unbind_of_an_unbound_end_point_works),
        pair_test(test_destroy_twice_is_refused),
        pair_test(test_entries_of_a_destroyed_end_point_are_swallowed),
        pair_test(test_failures_of_a_destroyed_end_point_are_swallowed),
        exact_pair_test(test_slots_of_a_destroyed_end_point_come_back),
        pair_test(test_entry_taken_before_destroy_finds_no_descriptor),
        pair_test(test_queue_can_go_while_a_destroyed_end_points_posts_run),
        pair_test(test_get_writes_nothing_after_destroy),
    };

    return cmocka_run_group_tests(tests, start_emunic, stop_emunic);
}
