/* SPDX-License-Identifier: BSD-3-Clause */
/* Which events a post makes, what they carry, in which order. Specification: spec/ugni.md 4.8.2, 4.4, 2.10, 7.1. */
#include "tests/conformance/pair.h"

#define LOCAL  GNI_CQMODE_LOCAL_EVENT
#define GLOBAL GNI_CQMODE_GLOBAL_EVENT
#define REMOTE GNI_CQMODE_REMOTE_EVENT

static const gni_post_type_t data_types[] = { GNI_POST_FMA_PUT, GNI_POST_FMA_PUT_W_SYNCFLAG, GNI_POST_FMA_GET,
                                              GNI_POST_AMO,     GNI_POST_RDMA_PUT,           GNI_POST_RDMA_GET };

/* One of each kind, on a word of its own. */
static gni_post_descriptor_t make(gni_post_type_t type, uint16_t cq_mode)
{
    gni_post_descriptor_t d = word_post(type, 64 * (unsigned)type);

    d.cq_mode = cq_mode;
    d.amo_cmd = GNI_FMA_ATOMIC_FADD;
    d.sync_flag_addr = d.remote_addr + 32;
    d.sync_flag_value = 1;
    return d;
}

static gni_cq_entry_t next_entry(gni_cq_handle_t cq)
{
    gni_cq_entry_t entry = 0;

    assert_int_equal(gx_next(cq, &entry), GNI_RC_SUCCESS);
    assert_true(GNI_CQ_STATUS_OK(entry));
    assert_false(GNI_CQ_OVERRUN(entry));
    assert_false(GNI_CQ_REM_OVERRUN(entry));
    return entry;
}

static void resolve(gni_cq_entry_t entry, const gni_post_descriptor_t *d)
{
    gni_post_descriptor_t *done = NULL;

    assert_int_equal(GNI_GetCompleted(a.src_cq, entry, &done), GNI_RC_SUCCESS);
    assert_ptr_equal(done, d);
}

static void expect_empty(gni_cq_handle_t cq)
{
    assert_int_equal(poll_once(cq), GNI_RC_NOT_DONE);
}

/* Posts one of each kind with that mode and checks the data of its entries. Events are in 32 bits, on sources in 24. */
static void expect_data(uint16_t cq_mode, uint32_t local, uint32_t remote)
{
    for (size_t i = 0; i < COUNT_OF(data_types); i++) {
        gni_post_descriptor_t d = make(data_types[i], cq_mode);
        gni_cq_entry_t entry;

        assert_int_equal(post(&d), GNI_RC_SUCCESS);
        if (cq_mode & (LOCAL | GLOBAL)) {
            entry = next_entry(a.src_cq);
            assert_int_equal(GNI_CQ_GET_INST_ID(entry), local & 0xffffff);
            resolve(entry, &d);
        }
        if (cq_mode & REMOTE) {
            entry = next_entry(b.dst_cq);
            assert_int_equal(GNI_CQ_GET_TYPE(entry), GNI_CQ_EVENT_TYPE_POST);
            assert_int_equal(GNI_CQ_GET_REM_INST_ID(entry), remote);
            assert_int_equal(GNI_CQ_GET_INST_ID(entry), remote & 0xffffff);
            assert_int_equal(GNI_CQ_GET_DATA(entry) & 0xffffffff, remote);
        }
    }
    expect_empty(a.src_cq);
    expect_empty(b.dst_cq);
}

/* ---- event data ---- */

static void test_source_entries_carry_the_bound_id_by_default(void **state)
{
    (void)state;
    expect_data(LOCAL, b.inst_id, 0);
    expect_data(GLOBAL, b.inst_id, 0);
}

static void test_destination_entries_carry_the_senders_id_by_default(void **state)
{
    (void)state;
    expect_data(GLOBAL | REMOTE, b.inst_id, a.inst_id);
    expect_data(LOCAL | REMOTE, b.inst_id, a.inst_id);
}

static void test_set_event_data_changes_both_queues(void **state)
{
    (void)state;
    assert_int_equal(GNI_EpSetEventData(a.ep, 0x123456, 0x89abcdef), GNI_RC_SUCCESS);
    expect_data(LOCAL, 0x123456, 0);
    expect_data(GLOBAL | REMOTE, 0x123456, 0x89abcdef);
}

static void test_source_entries_show_24_bits_and_destination_entries_32(void **state)
{
    (void)state;
    assert_int_equal(GNI_EpSetEventData(a.ep, 0xffeeddcc, 0xffffffff), GNI_RC_SUCCESS);
    expect_data(GLOBAL | REMOTE, 0xffeeddcc, 0xffffffff);
}

static void test_event_data_of_zero_are_delivered(void **state)
{
    (void)state;
    assert_int_equal(GNI_EpSetEventData(a.ep, 0, 0), GNI_RC_SUCCESS);
    expect_data(GLOBAL | REMOTE, 0, 0);
}

static void test_event_data_set_before_bind_are_used(void **state)
{
    (void)state;
    assert_int_equal(GNI_EpUnbind(a.ep), GNI_RC_SUCCESS);
    assert_int_equal(GNI_EpSetEventData(a.ep, 77, 88), GNI_RC_SUCCESS);
    assert_int_equal(GNI_EpBind(a.ep, b.nic_addr, b.inst_id), GNI_RC_SUCCESS);
    expect_data(GLOBAL | REMOTE, 77, 88);
}

static void test_posted_transactions_keep_their_event_data(void **state)
{
    gni_post_descriptor_t first = make(GNI_POST_FMA_PUT, GLOBAL | REMOTE);
    gni_post_descriptor_t second = make(GNI_POST_RDMA_GET, GLOBAL | REMOTE);

    (void)state;
    freeze_emunic();
    assert_int_equal(GNI_EpSetEventData(a.ep, 1, 2), GNI_RC_SUCCESS);
    assert_int_equal(post(&first), GNI_RC_SUCCESS);
    assert_int_equal(GNI_EpSetEventData(a.ep, 3, 4), GNI_RC_SUCCESS);
    assert_int_equal(post(&second), GNI_RC_SUCCESS);
    assert_int_equal(GNI_EpSetEventData(a.ep, 5, 6), GNI_RC_SUCCESS);
    thaw_emunic();
    assert_int_equal(GNI_CQ_GET_INST_ID(next_entry(a.src_cq)), 1);
    assert_int_equal(GNI_CQ_GET_INST_ID(next_entry(a.src_cq)), 3);
    assert_int_equal(GNI_CQ_GET_REM_INST_ID(next_entry(b.dst_cq)), 2);
    assert_int_equal(GNI_CQ_GET_REM_INST_ID(next_entry(b.dst_cq)), 4);
}

static void test_set_event_data_of_a_dead_end_point_is_refused(void **state)
{
    (void)state;
    assert_int_equal(GNI_EpSetEventData(NULL, 1, 2), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_EpDestroy(a.ep), GNI_RC_SUCCESS);
    assert_int_equal(GNI_EpSetEventData(a.ep, 1, 2), GNI_RC_INVALID_PARAM);
    a.ep = NULL;
}

/* ---- DUAL ---- */

static void test_dual_events_without_the_mode_are_refused(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(data_types); i++) {
        gni_post_descriptor_t d = make(data_types[i], GNI_CQMODE_DUAL_EVENTS);
        gni_post_descriptor_t before = d;

        assert_int_equal(post(&d), GNI_RC_INVALID_PARAM);
        assert_memory_equal(&d, &before, sizeof(d));
    }
}

static void test_dual_events_come_local_first_and_both_give_the_descriptor(void **state)
{
    (void)state;
    assert_int_equal(GNI_EpSetEventData(a.ep, 0x424242, 9), GNI_RC_SUCCESS);
    for (size_t i = 0; i < COUNT_OF(data_types); i++) {
        gni_post_descriptor_t d = make(data_types[i], LOCAL | GLOBAL | REMOTE);
        gni_cq_entry_t entry;

        assert_int_equal(post(&d), GNI_RC_SUCCESS);
        entry = next_entry(a.src_cq);
        assert_int_equal(GNI_CQ_GET_INST_ID(entry), 0x424242);
        resolve(entry, &d);
        assert_int_equal(d.cq_mode_complete, LOCAL);
        entry = next_entry(a.src_cq);
        assert_int_equal(GNI_CQ_GET_INST_ID(entry), 0x424242);
        resolve(entry, &d);
        assert_int_equal(d.cq_mode_complete, LOCAL | GLOBAL | REMOTE);
        assert_int_equal(GNI_CQ_GET_REM_INST_ID(next_entry(b.dst_cq)), 9);
    }
    expect_empty(a.src_cq);
    expect_empty(b.dst_cq);
}

static void test_dual_mode_still_allows_single_events(void **state)
{
    (void)state;
    expect_data(LOCAL, b.inst_id, 0);
    expect_data(GLOBAL | REMOTE, b.inst_id, a.inst_id);
}

static void test_failed_dual_post_says_so_in_both_entries(void **state)
{
    gni_post_descriptor_t d = make(GNI_POST_FMA_PUT, GNI_CQMODE_DUAL_EVENTS);

    (void)state;
    d.remote_addr += GX_BYTES;
    assert_int_equal(post(&d), GNI_RC_SUCCESS);
    assert_int_equal(finish(&d), STATUS_REMOTE_RANGE);
    assert_int_equal(finish(&d), STATUS_REMOTE_RANGE);
    expect_empty(a.src_cq);
}

static void test_cq_mode_may_be_rewritten_between_dual_events(void **state)
{
    gni_post_descriptor_t d = make(GNI_POST_FMA_PUT, GNI_CQMODE_DUAL_EVENTS);

    (void)state;
    assert_int_equal(post(&d), GNI_RC_SUCCESS);
    d.cq_mode = GLOBAL;
    resolve(next_entry(a.src_cq), &d);
    d.cq_mode = GNI_CQMODE_SILENT;
    resolve(next_entry(a.src_cq), &d);
    expect_empty(a.src_cq);
    assert_int_equal(GNI_EpUnbind(a.ep), GNI_RC_SUCCESS);
}

/* ---- silent, remote only, no queue ---- */

static void test_silent_posts_make_no_entries(void **state)
{
    gni_post_descriptor_t d[COUNT_OF(data_types)];

    (void)state;
    memset(a.mem, 1, 1024);
    for (size_t i = 0; i < COUNT_OF(d); i++) {
        d[i] = make(data_types[i], GNI_CQMODE_SILENT);
        assert_int_equal(post(&d[i]), GNI_RC_SUCCESS);
    }
    wait_for_all_before(&a, &b);
    expect_empty(a.src_cq);
    expect_empty(a.dst_cq);
    expect_empty(b.dst_cq);
    assert_int_equal(b.mem[64 * GNI_POST_FMA_PUT], 1);
    assert_int_equal(b.mem[64 * GNI_POST_RDMA_PUT], 1);
}

static void test_failed_silent_post_makes_an_error_entry(void **state)
{
    gni_post_descriptor_t d = make(GNI_POST_FMA_PUT, GNI_CQMODE_SILENT);

    (void)state;
    d.remote_addr += GX_BYTES;
    assert_int_equal(run(&d), STATUS_REMOTE_RANGE);
    expect_empty(a.src_cq);
    assert_int_equal(GNI_EpUnbind(a.ep), GNI_RC_SUCCESS);
}

static void test_remote_event_alone_leaves_the_source_queue_empty(void **state)
{
    (void)state;
    expect_data(REMOTE, 0, a.inst_id);
}

static void test_remote_event_on_a_region_without_queue_is_dropped(void **state)
{
    uint8_t *target = pages(4096);
    gni_mem_handle_t handle = register_on(&b, target, 4096, GNI_MEM_READWRITE);
    gni_post_descriptor_t d = make(GNI_POST_FMA_PUT, GLOBAL | REMOTE);

    (void)state;
    d.remote_addr = ADDR(target);
    d.remote_mem_hndl = handle;
    assert_int_equal(run(&d), STATUS_OK);
    expect_empty(b.dst_cq);
    expect_empty(b.src_cq);
    GNI_MemDeregister(b.nic, &handle);
    munmap(target, 4096);
}

static void test_failed_post_makes_no_remote_event(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(data_types); i++) {
        gni_post_descriptor_t d = make(data_types[i], GLOBAL | REMOTE);

        d.remote_addr += GX_BYTES;
        assert_int_equal(run(&d), STATUS_REMOTE_RANGE);
    }
    expect_empty(b.dst_cq);
}

/* ---- how many, and when ---- */

static void test_long_transfers_make_one_entry_each(void **state)
{
    static const gni_post_type_t types[] = { GNI_POST_FMA_PUT, GNI_POST_FMA_GET, GNI_POST_RDMA_PUT, GNI_POST_RDMA_GET,
                                             GNI_POST_FMA_PUT_W_SYNCFLAG };
    const size_t bytes = 3u << 20;
    uint8_t *source = pages(bytes);
    uint8_t *target = pages(bytes);
    gni_mem_handle_t source_handle = register_on(&a, source, bytes, GNI_MEM_READWRITE);
    gni_mem_handle_t target_handle;

    (void)state;
    assert_int_equal(
        GNI_MemRegister(b.nic, ADDR(target), bytes, b.dst_cq, GNI_MEM_READWRITE, (uint32_t)-1, &target_handle),
        GNI_RC_SUCCESS);
    for (size_t i = 0; i < COUNT_OF(types); i++) {
        gni_post_descriptor_t d = { .type = types[i],
                                    .cq_mode = GLOBAL | REMOTE,
                                    .local_addr = ADDR(source),
                                    .local_mem_hndl = source_handle,
                                    .remote_addr = ADDR(target),
                                    .remote_mem_hndl = target_handle,
                                    .length = bytes - 8,
                                    .sync_flag_addr = ADDR(target) + bytes - 8,
                                    .sync_flag_value = 1 };

        assert_int_equal(run(&d), STATUS_OK);
        next_entry(b.dst_cq);
        expect_empty(b.dst_cq);
        expect_empty(a.src_cq);
    }
    GNI_MemDeregister(a.nic, &source_handle);
    GNI_MemDeregister(b.nic, &target_handle);
    munmap(source, bytes);
    munmap(target, bytes);
}

static void test_remote_event_comes_after_the_data(void **state)
{
    static const uint64_t sizes[] = { 8, 64, 1000, 5000, 40000 };

    (void)state;
    for (unsigned round = 1; round <= 200; round++) {
        gni_post_descriptor_t d = gx_put(&a, &b, 0, sizes[round % COUNT_OF(sizes)], REMOTE);

        memset(a.mem, (int)(round & 0xff), d.length);
        assert_int_equal(post(&d), GNI_RC_SUCCESS);
        next_entry(b.dst_cq);
        assert_true(all_bytes_are(b.mem, (uint8_t)round, d.length));
    }
}

static void test_global_event_of_a_get_comes_after_the_data(void **state)
{
    static const uint64_t sizes[] = { 8, 64, 1000, 5000, 40000 };

    (void)state;
    for (unsigned round = 1; round <= 200; round++) {
        gni_post_descriptor_t d = gx_put(&a, &b, 0, sizes[round % COUNT_OF(sizes)], GLOBAL);

        d.type = GNI_POST_FMA_GET;
        memset(b.mem, (int)(round & 0xff), d.length);
        assert_int_equal(run(&d), STATUS_OK);
        assert_true(all_bytes_are(a.mem, (uint8_t)round, d.length));
    }
}

/* ---- descriptor and entry ---- */

static void test_descriptor_comes_back_as_the_program_wrote_it(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(data_types); i++) {
        gni_post_descriptor_t d = make(data_types[i], GLOBAL | REMOTE);
        gni_post_descriptor_t before;

        d.post_id = 0xfeedface12345678;
        d.cqwrite_value = 42;
        d.first_operand = 3;
        before = d;
        assert_int_equal(run(&d), STATUS_OK);
        /* The library's own fields may differ. */
        before.next_descr = d.next_descr;
        before.prev_descr = d.prev_descr;
        before.status = d.status;
        before.cq_mode_complete = d.cq_mode_complete;
        assert_memory_equal(&d, &before, sizeof(d));
    }
}

static void test_completed_modes_are_told_in_the_descriptor(void **state)
{
    static const uint16_t modes[] = { LOCAL, GLOBAL, LOCAL | REMOTE, GLOBAL | REMOTE };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(modes); i++) {
        gni_post_descriptor_t d = make(GNI_POST_FMA_PUT, modes[i]);

        assert_int_equal(run(&d), STATUS_OK);
        assert_int_equal(d.cq_mode_complete, modes[i]);
        assert_int_equal(d.status, 0);
    }
}

static void test_failed_descriptor_can_be_posted_again(void **state)
{
    gni_post_descriptor_t d = make(GNI_POST_FMA_PUT, GLOBAL);

    (void)state;
    d.remote_addr += GX_BYTES;
    assert_int_equal(run(&d), STATUS_REMOTE_RANGE);
    assert_int_equal(d.status, STATUS_REMOTE_RANGE);
    d.remote_addr -= GX_BYTES;
    assert_int_equal(run(&d), STATUS_OK);
    assert_int_equal(d.status, STATUS_OK);
}

static void test_entries_tell_the_engine_that_made_them(void **state)
{
    gni_post_descriptor_t fma = make(GNI_POST_FMA_PUT, GLOBAL | REMOTE);
    gni_post_descriptor_t bte = make(GNI_POST_RDMA_PUT, GLOBAL);
    gni_post_descriptor_t write = make(GNI_POST_CQWRITE, GLOBAL);

    (void)state;
    assert_int_equal(post(&fma), GNI_RC_SUCCESS);
    assert_int_equal(GNI_CQ_GET_SOURCE(next_entry(a.src_cq)), 1);
    assert_int_equal(GNI_CQ_GET_SOURCE(next_entry(b.dst_cq)), 4);
    assert_int_equal(post(&bte), GNI_RC_SUCCESS);
    assert_int_equal(GNI_CQ_GET_SOURCE(next_entry(a.src_cq)), 2);
    assert_int_equal(post(&write), GNI_RC_SUCCESS);
    assert_int_equal(GNI_CQ_GET_SOURCE(next_entry(b.dst_cq)), 5);
}

static void test_setters_replace_one_field_of_an_entry(void **state)
{
    gni_cq_entry_t entry;

    (void)state;
    entry = 0;
    GNI_CQ_SET_INST_ID(entry, 0xff123456);
    assert_int_equal(GNI_CQ_GET_INST_ID(entry), 0x123456);
    GNI_CQ_SET_TID(entry, 0xffabcdef);
    assert_int_equal(GNI_CQ_GET_TID(entry), 0xabcdef);
    assert_int_equal(GNI_CQ_GET_INST_ID(entry), 0x123456);
    GNI_CQ_SET_TYPE(entry, GNI_CQ_EVENT_TYPE_MSGQ);
    assert_int_equal(GNI_CQ_GET_TYPE(entry), GNI_CQ_EVENT_TYPE_MSGQ);
    GNI_CQ_SET_TYPE(entry, GNI_CQ_EVENT_TYPE_SMSG);
    assert_int_equal(GNI_CQ_GET_TYPE(entry), GNI_CQ_EVENT_TYPE_SMSG);
    GNI_CQ_SET_REM_INST_ID(entry, 0x187654321);
    assert_int_equal(GNI_CQ_GET_REM_INST_ID(entry), 0x87654321);
    GNI_CQ_SET_MSG_ID(entry, 0xcafe0001);
    assert_int_equal(GNI_CQ_GET_MSG_ID(entry), 0xcafe0001);
}

static void test_clearing_the_status_makes_an_entry_ok(void **state)
{
    gni_post_descriptor_t d = make(GNI_POST_FMA_PUT, GLOBAL);
    gni_cq_entry_t entry;

    (void)state;
    d.remote_addr += GX_BYTES;
    assert_int_equal(post(&d), GNI_RC_SUCCESS);
    assert_int_equal(gx_next(a.src_cq, &entry), GNI_RC_TRANSACTION_ERROR);
    assert_false(GNI_CQ_STATUS_OK(entry));
    GNI_CQ_CLR_STATUS(entry);
    assert_true(GNI_CQ_STATUS_OK(entry));
}

static void test_fields_without_a_meaning_here_read_as_zero(void **state)
{
    const gni_cq_entry_t entry = ~0ull;

    (void)state;
    assert_int_equal(GNI_CQ_GET_INFO(entry), 0);
    assert_int_equal(GNI_CQ_GET_BLOCK_ID(entry), 0);
    assert_int_equal(GNI_CQ_GET_UNSUCCESSFUL_CNT(entry), 0);
    assert_int_equal(GNI_CQ_GET_MARKER_ID(entry), 0);
    assert_int_equal(GNI_CQ_GET_FAILED_ENQUEUE_CNT(entry), 0);
    assert_int_equal(GNI_CQ_GET_TRANS_TYPE(entry), 0);
    assert_int_equal(GNI_CQ_STATUS_DLA_OVERFLOW(entry), 0);
    assert_int_equal(GNI_CQ_BTE_ENQ_STATUS(entry), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        pair_test(test_source_entries_carry_the_bound_id_by_default),
        pair_test(test_destination_entries_carry_the_senders_id_by_default),
        pair_test(test_set_event_data_changes_both_queues),
        pair_test(test_source_entries_show_24_bits_and_destination_entries_32),
        pair_test(test_event_data_of_zero_are_delivered),
        pair_test(test_event_data_set_before_bind_are_used),
        pair_test(test_posted_transactions_keep_their_event_data),
        pair_test(test_set_event_data_of_a_dead_end_point_is_refused),
        pair_test(test_dual_events_without_the_mode_are_refused),
        dual_pair_test(test_dual_events_come_local_first_and_both_give_the_descriptor),
        dual_pair_test(test_dual_mode_still_allows_single_events),
        dual_pair_test(test_failed_dual_post_says_so_in_both_entries),
        dual_pair_test(test_cq_mode_may_be_rewritten_between_dual_events),
        pair_test(test_silent_posts_make_no_entries),
        pair_test(test_failed_silent_post_makes_an_error_entry),
        pair_test(test_remote_event_alone_leaves_the_source_queue_empty),
        pair_test(test_remote_event_on_a_region_without_queue_is_dropped),
        pair_test(test_failed_post_makes_no_remote_event),
        pair_test(test_long_transfers_make_one_entry_each),
        pair_test(test_remote_event_comes_after_the_data),
        pair_test(test_global_event_of_a_get_comes_after_the_data),
        pair_test(test_descriptor_comes_back_as_the_program_wrote_it),
        pair_test(test_completed_modes_are_told_in_the_descriptor),
        pair_test(test_failed_descriptor_can_be_posted_again),
        pair_test(test_entries_tell_the_engine_that_made_them),
        cmocka_unit_test(test_setters_replace_one_field_of_an_entry),
        pair_test(test_clearing_the_status_makes_an_entry_ok),
        cmocka_unit_test(test_fields_without_a_meaning_here_read_as_zero),
    };

    return cmocka_run_group_tests(tests, start_emunic, stop_emunic);
}
