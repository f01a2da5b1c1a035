/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What UCX's uct/ugni and foMPI depend on, each in the way that they do it.
 * docs/generated/ugni-programs.md lists the habits and their tests. Specification: spec/ugni.md 5.2, 5.5.
 */
#include "tests/conformance/programs.h"

/* ---- UCX ---- */

#define UCX_MODES                                                                                                      \
    (GNI_CDM_MODE_FORK_FULLCOPY | GNI_CDM_MODE_CACHED_AMO_ENABLED | GNI_CDM_MODE_ERR_NO_KILL |                         \
     GNI_CDM_MODE_FAST_DATAGRAM_POLL | GNI_CDM_MODE_FMA_SHARED)

/* shows: ucx-two-domains, ucx-instances */
static void test_ucx_registers_on_one_domain_and_posts_on_another(void **state)
{
    gni_cdm_handle_t cdms[2];
    gni_nic_handle_t nics[2];
    gni_mem_handle_t handles[2];
    uint8_t *mem[2];
    gni_cq_handle_t cq;
    gni_post_descriptor_t d = word_post(GNI_POST_RDMA_PUT, 0);
    uint32_t address;

    (void)state;
    for (uint32_t i = 0; i < 2; i++) {
        fx_set_node(i); /* a's, b's */
        assert_int_equal(GNI_CdmCreate(0x80000000u | i, (uint8_t)fx.ptag, fx.cookie, UCX_MODES, &cdms[i]),
                         GNI_RC_SUCCESS);
        assert_int_equal(GNI_CdmAttach(cdms[i], 0, &address, &nics[i]), GNI_RC_SUCCESS);
        mem[i] = pages(4096);
        assert_int_equal(GNI_MemRegister(nics[i], ADDR(mem[i]), 4096, NULL,
                                         GNI_MEM_RELAXED_PI_ORDERING | GNI_MEM_READWRITE, (uint32_t)-1, &handles[i]),
                         GNI_RC_SUCCESS);
    }
    assert_int_equal(GNI_CqCreate(nics[0], 8192, 0, GNI_CQ_NOBLOCK, NULL, NULL, &cq), GNI_RC_SUCCESS);
    assert_int_equal(GNI_CqDestroy(cq), GNI_RC_SUCCESS);
    fill(mem[0], 4096, 11);
    d.local_addr = ADDR(mem[0]);
    d.local_mem_hndl = handles[0];
    d.remote_addr = ADDR(mem[1]);
    d.remote_mem_hndl = handles[1];
    d.length = 4096;
    assert_int_equal(run(&d), STATUS_OK); /* on a's end point, towards b */
    assert_memory_equal(mem[1], mem[0], 4096);
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(GNI_MemDeregister(nics[i], &handles[i]), GNI_RC_SUCCESS);
        assert_int_equal(GNI_CdmDestroy(cdms[i]), GNI_RC_SUCCESS);
        munmap(mem[i], 4096);
    }
}

/* End points are told apart by the low 24 bits of their handles. shows: ucx-keys */
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

/* The receiver's key is what the sender's end point announces. shows: ucx-identity */
static void test_ucx_finds_its_end_point_by_the_entry(void **state)
{
    uint32_t key = (uint32_t)ADDR(b.ep) & 0xffffff;
    struct channel c;
    gni_cq_entry_t entry;

    (void)state;
    open_channel(&c, 8, 2048);
    assert_int_equal(GNI_EpSetEventData(c.ep[0], (uint32_t)ADDR(c.ep[0]) & 0xffffff, key), GNI_RC_SUCCESS);
    assert_int_equal(send_number(c.ep[0], 1), GNI_RC_SUCCESS);
    assert_int_equal(gx_next(b.dst_cq, &entry), GNI_RC_SUCCESS);
    assert_int_equal(GNI_CQ_GET_INST_ID(entry), key);
    expect_number(c.ep[1], 1);
    mb_drain(a.src_cq);
    close_channel(&c);
}

/* shows: ucx-no-unbind */
static void test_ucx_destroys_end_points_that_are_bound_and_busy(void **state)
{
    gni_ep_handle_t ep;
    gni_cq_handle_t cq;
    struct channel c;
    char in[16];
    char out[16] = "hello";

    (void)state;
    assert_int_equal(GNI_CqCreate(a.nic, 64, 0, GNI_CQ_NOBLOCK, NULL, NULL, &cq), GNI_RC_SUCCESS);
    assert_int_equal(GNI_EpCreate(a.nic, cq, &ep), GNI_RC_SUCCESS);
    assert_int_equal(GNI_EpBind(ep, b.nic_addr, b.inst_id), GNI_RC_SUCCESS);
    assert_int_equal(GNI_EpPostDataWId(ep, out, sizeof(out), in, sizeof(in), 1), GNI_RC_SUCCESS);
    assert_int_equal(GNI_EpDestroy(ep), GNI_RC_SUCCESS);
    assert_int_equal(GNI_CqDestroy(cq), GNI_RC_SUCCESS);
    open_channel(&c, 8, 2048);
    for (uint32_t i = 0; i < 5; i++)
        assert_int_equal(send_number(c.ep[0], i), GNI_RC_SUCCESS);
    close_channel(&c); /* nothing was received, no completion taken */
    assert_int_equal(poll_once(a.src_cq), GNI_RC_NOT_DONE);
}

/* shows: ucx-retry, ucx-recycling, gasnet-patience, code-post */
static void test_ucx_retries_posts_for_which_there_is_no_room(void **state)
{
    gni_post_descriptor_t d[12];
    gni_post_descriptor_t *done;
    unsigned n_refused = 0;
    unsigned n_free = COUNT_OF(d);
    unsigned free_ones[COUNT_OF(d)];
    gni_cq_handle_t cq;
    gni_ep_handle_t ep;

    (void)state;
    assert_int_equal(GNI_CqCreate(a.nic, 8, 0, GNI_CQ_NOBLOCK, NULL, NULL, &cq), GNI_RC_SUCCESS);
    assert_int_equal(GNI_EpCreate(a.nic, cq, &ep), GNI_RC_SUCCESS);
    assert_int_equal(GNI_EpBind(ep, b.nic_addr, b.inst_id), GNI_RC_SUCCESS);
    for (unsigned i = 0; i < COUNT_OF(d); i++)
        free_ones[i] = i;
    for (unsigned n = 0; n < 2000;) {
        gni_return_t rc = GNI_RC_ERROR_RESOURCE;

        if (n_free > 0) {
            unsigned i = free_ones[n_free - 1];

            d[i] = word_post(n % 5 ? GNI_POST_FMA_PUT : GNI_POST_RDMA_PUT, 8 * i);
            rc = post_on(ep, &d[i]);
        }
        if (rc == GNI_RC_SUCCESS) {
            n_free--;
            n++;
            continue;
        }
        assert_int_equal(rc, GNI_RC_ERROR_RESOURCE);
        n_refused++;
        assert_int_equal(gx_complete(cq, &done), GNI_RC_SUCCESS);
        free_ones[n_free++] = (unsigned)(done - d);
    }
    assert_true(n_refused > 0);
    while (n_free < COUNT_OF(d)) {
        assert_int_equal(gx_complete(cq, &done), GNI_RC_SUCCESS);
        free_ones[n_free++] = (unsigned)(done - d);
    }
    assert_int_equal(GNI_EpDestroy(ep), GNI_RC_SUCCESS);
    assert_int_equal(GNI_CqDestroy(cq), GNI_RC_SUCCESS);
}

/* shows: ucx-event-test, code-event */
static void test_ucx_tells_events_from_errors(void **state)
{
    gni_post_descriptor_t d = word_post(GNI_POST_FMA_PUT, 0);
    gni_cq_entry_t entry = 5;
    gni_return_t rc = GNI_CqGetEvent(a.src_cq, &entry);

    (void)state;
    assert_true(rc == GNI_RC_NOT_DONE && entry == 0 && !GNI_CQ_OVERRUN(entry));
    assert_int_equal(post(&d), GNI_RC_SUCCESS);
    rc = gx_next(a.src_cq, &entry);
    assert_true(rc == GNI_RC_SUCCESS && entry != 0 && !GNI_CQ_OVERRUN(entry));
    d.remote_addr += 1 << 30;
    assert_int_equal(post(&d), GNI_RC_SUCCESS);
    rc = gx_next(a.src_cq, &entry);
    assert_true(rc == GNI_RC_TRANSACTION_ERROR && entry != 0);
}

/* shows: ucx-get */
static void test_ucx_gets_any_range_through_a_bounce_buffer(void **state)
{
    (void)state;
    fill(b.mem, 512, 9);
    for (uint64_t offset = 0; offset < 8; offset++) {
        for (uint64_t length = 1; length < 70; length += 7) {
            uint64_t first = offset & ~3ull;
            gni_post_descriptor_t d =
                gx_put(&a, &b, 0, ((offset + length + 3) & ~3ull) - first, GNI_CQMODE_GLOBAL_EVENT);

            d.type = GNI_POST_FMA_GET;
            d.remote_addr = ADDR(b.mem) + first;
            assert_int_equal(run(&d), STATUS_OK);
            assert_memory_equal(a.mem + (offset - first), b.mem + offset, length);
        }
    }
}

/* Credits of 8 messages of 2048 bytes; only the source queue is polled. shows: ucx-messages, ucx-credits */
static void test_ucx_gets_credits_back_by_polling_its_source_queue(void **state)
{
    uint8_t data[2044];
    struct channel c;
    uint32_t next = 0;

    (void)state;
    open_channel(&c, 8, 2048);
    fill(data, sizeof(data), 1);
    for (uint32_t i = 0; i < 200; i++) {
        uint32_t msg_id = 0xfffffff0u + i;
        uint8_t tag = GNI_SMSG_ANY_TAG;
        uint64_t end_ns = emu_clock_ns() + PATIENCE_NS;
        gni_cq_entry_t entry;
        gni_return_t rc;
        void *message;

        while ((rc = GNI_SmsgSendWTag(c.ep[0], &i, sizeof(i), data, sizeof(data), msg_id, 1)) == GNI_RC_NOT_DONE &&
               emu_clock_ns() < end_ns) {
            /* The receiver frees a slot; the sender does nothing but poll. */
            if (GNI_SmsgGetNextWTag(c.ep[1], &message, &tag) == GNI_RC_SUCCESS) {
                assert_memory_equal(message, &next, sizeof(next));
                next++;
                assert_int_equal(GNI_SmsgRelease(c.ep[1]), GNI_RC_SUCCESS);
            }
            poll_once(a.src_cq);
            tag = GNI_SMSG_ANY_TAG;
        }
        assert_int_equal(rc, GNI_RC_SUCCESS);
        assert_int_equal(gx_next(a.src_cq, &entry), GNI_RC_SUCCESS);
        assert_int_equal(GNI_CQ_GET_TYPE(entry), GNI_CQ_EVENT_TYPE_SMSG);
        assert_int_equal(GNI_CQ_GET_MSG_ID(entry), msg_id);
    }
    close_channel(&c);
}

/* shows: ucx-mailboxes */
static void test_ucx_uses_mailbox_memory_again_without_clearing_it(void **state)
{
    struct channel c;
    uint8_t tag = GNI_SMSG_ANY_TAG;
    void *message;

    (void)state;
    open_channel(&c, 8, 256);
    for (uint32_t round = 0; round < 30; round++) {
        if (round > 0) {
            for (unsigned s = 0; s < 2; s++) {
                mb_register(&c.mb[s], s ? b.dst_cq : a.dst_cq);
                assert_int_equal(GNI_EpCreate(s ? b.nic : a.nic, s ? b.src_cq : a.src_cq, &c.ep[s]), GNI_RC_SUCCESS);
                assert_int_equal(GNI_EpBind(c.ep[s], s ? a.nic_addr : b.nic_addr, s ? a.inst_id : b.inst_id),
                                 GNI_RC_SUCCESS);
            }
            assert_int_equal(GNI_SmsgInit(c.ep[0], &c.mb[0].attr, &c.mb[1].attr), GNI_RC_SUCCESS);
            assert_int_equal(GNI_SmsgInit(c.ep[1], &c.mb[1].attr, &c.mb[0].attr), GNI_RC_SUCCESS);
        }
        assert_int_equal(GNI_SmsgGetNextWTag(c.ep[1], &message, &tag), GNI_RC_NOT_DONE);
        for (uint32_t i = 0; i < 5; i++)
            assert_int_equal(send_number(c.ep[0], 1000 * round + i), GNI_RC_SUCCESS);
        for (uint32_t i = 0; i < 3; i++) /* and leaves two behind */
            expect_number(c.ep[1], 1000 * round + i);
        for (unsigned s = 0; s < 2; s++) {
            assert_int_equal(GNI_EpDestroy(c.ep[s]), GNI_RC_SUCCESS);
            assert_int_equal(GNI_MemDeregister(c.mb[s].nic, &c.mb[s].attr.mem_hndl), GNI_RC_SUCCESS);
        }
        mb_drain(b.dst_cq);
    }
    free(c.mb[0].mem);
    free(c.mb[1].mem);
}

/* ---- foMPI ---- */

/* shows: fompi-dual, fompi-polling, fompi-notification, fompi-types */
static void test_fompi_puts_with_notification(void **state)
{
    struct channel c;
    gni_post_descriptor_t *done;
    gni_cq_entry_t entry;

    (void)state;
    open_channel(&c, 8, 64);
    for (uint32_t i = 0; i < 100; i++) {
        gni_post_descriptor_t d =
            gx_put(&a, &b, 0, 64, GNI_CQMODE_LOCAL_EVENT | GNI_CQMODE_GLOBAL_EVENT | GNI_CQMODE_REMOTE_EVENT);

        assert_int_equal(GNI_EpSetEventData(a.ep, 0, 0xabc00000u + i), GNI_RC_SUCCESS);
        assert_int_equal(GNI_PostFma(a.ep, &d), GNI_RC_SUCCESS);
        for (unsigned n = 0; n < 2; n++) { /* a blocking queue, polled */
            assert_int_equal(gx_next(a.src_cq, &entry), GNI_RC_SUCCESS);
            assert_int_equal(GNI_CQ_GET_TYPE(entry), GNI_CQ_EVENT_TYPE_POST);
            assert_int_equal(GNI_GetCompleted(a.src_cq, entry, &done), GNI_RC_SUCCESS);
            assert_ptr_equal(done, &d);
        }
        assert_int_equal(gx_next(b.dst_cq, &entry), GNI_RC_SUCCESS);
        assert_int_equal(GNI_CQ_GET_REM_INST_ID(entry), 0xabc00000u + i);
        assert_int_not_equal(GNI_CQ_GET_TYPE(entry), GNI_CQ_EVENT_TYPE_SMSG);
    }
    assert_int_equal(send_number(c.ep[0], 1), GNI_RC_SUCCESS);
    assert_int_equal(gx_next(a.src_cq, &entry), GNI_RC_SUCCESS);
    assert_int_equal(GNI_CQ_GET_TYPE(entry), GNI_CQ_EVENT_TYPE_SMSG);
    assert_int_equal(gx_next(b.dst_cq, &entry), GNI_RC_SUCCESS);
    assert_int_equal(GNI_CQ_GET_TYPE(entry), GNI_CQ_EVENT_TYPE_SMSG);
    close_channel(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        pair_test(test_ucx_registers_on_one_domain_and_posts_on_another),
        pair_test(test_ucx_keys_of_end_points_differ),
        pair_test(test_ucx_finds_its_end_point_by_the_entry),
        pair_test(test_ucx_destroys_end_points_that_are_bound_and_busy),
        exact_pair_test(test_ucx_retries_posts_for_which_there_is_no_room),
        pair_test(test_ucx_tells_events_from_errors),
        pair_test(test_ucx_gets_any_range_through_a_bounce_buffer),
        pair_test(test_ucx_gets_credits_back_by_polling_its_source_queue),
        pair_test(test_ucx_uses_mailbox_memory_again_without_clearing_it),
        dual_pair_test(test_fompi_puts_with_notification),
    };

    return cmocka_run_group_tests(tests, start_emunic, stop_emunic);
}
