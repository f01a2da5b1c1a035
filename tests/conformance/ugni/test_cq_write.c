/* SPDX-License-Identifier: BSD-3-Clause */
/* Queue writes: 48 bits into a peer's destination queue. Specification: spec/ugni.md 4.8.7, 4.8.2, 7.25. */
#include "tests/conformance/pair.h"

static gni_post_descriptor_t cq_write(uint64_t value)
{
    return (gni_post_descriptor_t){ .type = GNI_POST_CQWRITE,
                                    .cq_mode = GNI_CQMODE_GLOBAL_EVENT,
                                    .dlvr_mode = GNI_DLVMODE_IN_ORDER,
                                    .remote_mem_hndl = b.mem_hndl,
                                    .cqwrite_value = value };
}

static gni_cq_entry_t next_entry(gni_cq_handle_t cq)
{
    gni_cq_entry_t entry = 0;

    assert_int_equal(gx_next(cq, &entry), GNI_RC_SUCCESS);
    return entry;
}

static void test_value_arrives_in_48_bits(void **state)
{
    static const uint64_t values[] = { 0, 1, 0xdead, 0x123456789abc, 0xffffffffffff, 0xffff123456789abc, UINT64_MAX };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(values); i++) {
        gni_post_descriptor_t d = cq_write(values[i]);
        gni_cq_entry_t entry;

        assert_int_equal(run(&d), STATUS_OK);
        entry = next_entry(b.dst_cq);
        assert_true(GNI_CQ_GET_DATA(entry) == (values[i] & 0xffffffffffff));
        assert_true(GNI_CQ_GET_REM_INST_ID(entry) == (values[i] & 0xffffffff));
        assert_int_not_equal(entry, 0);
        assert_true(GNI_CQ_STATUS_OK(entry));
        assert_true(d.cqwrite_value == values[i]);
    }
}

static void test_event_data_of_the_end_point_do_not_change_the_value(void **state)
{
    gni_post_descriptor_t d = cq_write(77);
    gni_cq_entry_t entry;

    (void)state;
    assert_int_equal(GNI_EpSetEventData(a.ep, 5, 6), GNI_RC_SUCCESS);
    assert_int_equal(post(&d), GNI_RC_SUCCESS);
    assert_int_equal(GNI_CQ_GET_DATA(next_entry(b.dst_cq)), 77);
    entry = next_entry(a.src_cq);
    assert_int_equal(GNI_CQ_GET_INST_ID(entry), 5);
}

static void test_remote_bit_adds_no_second_entry(void **state)
{
    static const uint16_t modes[] = { GNI_CQMODE_GLOBAL_EVENT, GNI_CQMODE_GLOBAL_EVENT | GNI_CQMODE_REMOTE_EVENT,
                                      GNI_CQMODE_LOCAL_EVENT | GNI_CQMODE_REMOTE_EVENT };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(modes); i++) {
        gni_post_descriptor_t d = cq_write(i);

        d.cq_mode = modes[i];
        assert_int_equal(run(&d), STATUS_OK);
        assert_int_equal(GNI_CQ_GET_DATA(next_entry(b.dst_cq)), i);
        assert_int_equal(poll_once(b.dst_cq), GNI_RC_NOT_DONE);
        assert_int_equal(poll_once(a.src_cq), GNI_RC_NOT_DONE);
    }
}

/* The remote entry may be there before we know that it is: from another host, word of it has to come back first. */
static gni_return_t unbind(gni_ep_handle_t ep)
{
    uint64_t end_ns = emu_clock_ns() + PATIENCE_NS;
    gni_return_t rc;

    while ((rc = GNI_EpUnbind(ep)) == GNI_RC_NOT_DONE && emu_clock_ns() < end_ns)
        ;
    return rc;
}

static void test_silent_write_makes_the_remote_entry_only(void **state)
{
    gni_post_descriptor_t d = cq_write(9);

    (void)state;
    d.cq_mode = GNI_CQMODE_SILENT;
    assert_int_equal(post(&d), GNI_RC_SUCCESS);
    assert_int_equal(GNI_CQ_GET_DATA(next_entry(b.dst_cq)), 9);
    assert_int_equal(poll_once(a.src_cq), GNI_RC_NOT_DONE);
    assert_int_equal(unbind(a.ep), GNI_RC_SUCCESS);
}

static void test_dual_events_of_a_write_come_local_first(void **state)
{
    gni_post_descriptor_t d = cq_write(9);

    (void)state;
    d.cq_mode = GNI_CQMODE_DUAL_EVENTS;
    assert_int_equal(run(&d), STATUS_OK);
    assert_int_equal(d.cq_mode_complete, GNI_CQMODE_LOCAL_EVENT);
    assert_int_equal(finish(&d), STATUS_OK);
    assert_int_equal(poll_once(a.src_cq), GNI_RC_NOT_DONE);
}

static void test_dual_events_of_a_write_need_the_mode(void **state)
{
    gni_post_descriptor_t d = cq_write(9);

    (void)state;
    d.cq_mode = GNI_CQMODE_DUAL_EVENTS;
    assert_int_equal(post(&d), GNI_RC_INVALID_PARAM);
}

static void test_write_does_not_look_at_addresses_and_length(void **state)
{
    gni_post_descriptor_t d = cq_write(4);

    (void)state;
    d.local_addr = d.remote_addr = 3;
    d.length = UINT64_MAX;
    memset(&d.local_mem_hndl, 0xff, sizeof(d.local_mem_hndl));
    d.src_cq_hndl = a.src_cq;
    assert_int_equal(run(&d), STATUS_OK);
    assert_int_equal(GNI_CQ_GET_DATA(next_entry(b.dst_cq)), 4);
}

static void test_write_to_read_only_memory_is_delivered(void **state)
{
    gni_post_descriptor_t d = cq_write(12);
    uint8_t *mem = pages(4096);

    (void)state;
    assert_int_equal(
        GNI_MemRegister(b.nic, ADDR(mem), 4096, b.dst_cq, GNI_MEM_READ_ONLY, (uint32_t)-1, &d.remote_mem_hndl),
        GNI_RC_SUCCESS);
    assert_int_equal(run(&d), STATUS_OK);
    assert_int_equal(GNI_CQ_GET_DATA(next_entry(b.dst_cq)), 12);
    GNI_MemDeregister(b.nic, &d.remote_mem_hndl);
    munmap(mem, 4096);
}

static void test_write_to_a_region_without_queue_is_dropped(void **state)
{
    gni_post_descriptor_t d = cq_write(12);
    uint8_t *mem = pages(4096);

    (void)state;
    d.remote_mem_hndl = register_on(&b, mem, 4096, GNI_MEM_READWRITE);
    assert_int_equal(run(&d), STATUS_OK);
    assert_int_equal(poll_once(b.dst_cq), GNI_RC_NOT_DONE);
    GNI_MemDeregister(b.nic, &d.remote_mem_hndl);
    munmap(mem, 4096);
}

static void test_write_to_oneself_works(void **state)
{
    gni_post_descriptor_t d = cq_write(31);

    (void)state;
    assert_int_equal(GNI_EpUnbind(a.ep), GNI_RC_SUCCESS);
    assert_int_equal(GNI_EpBind(a.ep, a.nic_addr, a.inst_id), GNI_RC_SUCCESS);
    d.remote_mem_hndl = a.mem_hndl;
    assert_int_equal(run(&d), STATUS_OK);
    assert_int_equal(GNI_CQ_GET_DATA(next_entry(a.dst_cq)), 31);
}

static void test_writes_and_puts_in_order_arrive_in_order(void **state)
{
    static gni_post_descriptor_t d[100];

    (void)state;
    for (uint32_t i = 0; i < COUNT_OF(d); i++) {
        if (i % 2) {
            d[i] = cq_write(i);
        } else {
            d[i] = gx_put(&a, &b, 0, i % 4 ? 4 : 60000, GNI_CQMODE_SILENT);
            d[i].dlvr_mode = GNI_DLVMODE_IN_ORDER;
            memcpy(a.mem, &i, 4);
        }
        d[i].cq_mode = GNI_CQMODE_SILENT;
        assert_int_equal(post(&d[i]), GNI_RC_SUCCESS);
    }
    for (uint32_t i = 1; i < COUNT_OF(d); i += 2) {
        uint32_t put;

        assert_int_equal(GNI_CQ_GET_DATA(next_entry(b.dst_cq)), i);
        memcpy(&put, b.mem, 4);
        assert_true(put >= i - 1); /* the put before it is there, later ones may be too */
    }
}

static void test_write_to_a_full_queue_fails_and_can_be_repeated(void **state)
{
    gni_post_descriptor_t d[5];
    gni_cq_entry_t entry;
    gni_cq_handle_t cq;
    gni_mem_handle_t handle;

    (void)state;
    assert_int_equal(GNI_CqCreate(b.nic, 4, 0, GNI_CQ_NOBLOCK, NULL, NULL, &cq), GNI_RC_SUCCESS);
    assert_int_equal(GNI_MemRegister(b.nic, ADDR(b.mem), 4096, cq, GNI_MEM_READWRITE, (uint32_t)-1, &handle),
                     GNI_RC_SUCCESS);
    for (unsigned i = 0; i < 5; i++) {
        d[i] = cq_write(i);
        d[i].remote_mem_hndl = handle;
        assert_int_equal(post(&d[i]), GNI_RC_SUCCESS);
        assert_int_equal(gx_next(a.src_cq, &entry), i < 4 ? GNI_RC_SUCCESS : GNI_RC_TRANSACTION_ERROR);
        assert_int_equal(GNI_CQ_GET_STATUS(entry), i < 4 ? STATUS_OK : STATUS_REMOTE_CQ_FULL);
        assert_int_equal(GNI_CQ_REM_OVERRUN(entry) != 0, i == 4);
        assert_int_equal(GNI_CQ_OVERRUN(entry), 0);
    }
    for (unsigned i = 0; i < 4; i++)
        assert_int_equal(GNI_CQ_GET_DATA(next_entry(cq)), i);
    assert_int_equal(poll_once(cq), GNI_RC_ERROR_RESOURCE);
    assert_int_equal(poll_once(cq), GNI_RC_NOT_DONE);
    {
        gni_post_descriptor_t again = d[4];

        assert_int_equal(run(&again), STATUS_OK);
    }
    assert_int_equal(GNI_CQ_GET_DATA(next_entry(cq)), 4);
    GNI_MemDeregister(b.nic, &handle);
    GNI_CqDestroy(cq);
}

static void test_write_with_a_bad_handle_is_refused_or_fails(void **state)
{
    gni_post_descriptor_t d = cq_write(1);
    uint8_t *mem = pages(4096);

    (void)state;
    d.remote_mem_hndl = (gni_mem_handle_t){ 0, 0 };
    assert_int_equal(post(&d), GNI_RC_INVALID_PARAM);
    assert_int_equal(
        GNI_MemRegister(b.nic, ADDR(mem), 4096, b.dst_cq, GNI_MEM_READWRITE, (uint32_t)-1, &d.remote_mem_hndl),
        GNI_RC_SUCCESS);
    assert_int_equal(GNI_MemDeregister(b.nic, &d.remote_mem_hndl), GNI_RC_SUCCESS);
    assert_int_equal(run(&d), STATUS_BAD_HANDLE);
    assert_int_equal(poll_once(b.dst_cq), GNI_RC_NOT_DONE);
    munmap(mem, 4096);
}

static void test_write_to_a_destroyed_queue_is_dropped(void **state)
{
    gni_post_descriptor_t d = cq_write(1);

    (void)state;
    assert_int_equal(GNI_CqDestroy(b.dst_cq), GNI_RC_SUCCESS);
    assert_int_equal(run(&d), STATUS_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        pair_test(test_value_arrives_in_48_bits),
        pair_test(test_event_data_of_the_end_point_do_not_change_the_value),
        pair_test(test_remote_bit_adds_no_second_entry),
        pair_test(test_silent_write_makes_the_remote_entry_only),
        dual_pair_test(test_dual_events_of_a_write_come_local_first),
        pair_test(test_dual_events_of_a_write_need_the_mode),
        pair_test(test_write_does_not_look_at_addresses_and_length),
        pair_test(test_write_to_read_only_memory_is_delivered),
        pair_test(test_write_to_a_region_without_queue_is_dropped),
        pair_test(test_write_to_oneself_works),
        pair_test(test_writes_and_puts_in_order_arrive_in_order),
        exact_pair_test(test_write_to_a_full_queue_fails_and_can_be_repeated),
        pair_test(test_write_with_a_bad_handle_is_refused_or_fails),
        pair_test(test_write_to_a_destroyed_queue_is_dropped),
    };

    return cmocka_run_group_tests(tests, start_emunic, stop_emunic);
}
