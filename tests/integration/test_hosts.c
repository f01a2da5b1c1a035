/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Transfers between two hosts. What a command does at its target the conformance tests show, which run across hosts as
 * well; here are parts of long transfers, and many at once. test_hosts_loss.c has hosts and processes that go.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "emunic/abi/host_message.h"
#include "tests/integration/two_hosts.h"

static void test_long_transfers_arrive_whole(void **state)
{
    static const uint64_t lengths[] = { EMU_HOST_PART_BYTES + 4, 65532,         65536, EMU_HOST_BULK_BYTES,
                                        EMU_HOST_BULK_BYTES + 4, LONG_BYTES - 8 };
    struct long_memory m;

    (void)state;
    for (enum kind local = ADOPTED; local < KINDS; local++) {
        for (enum kind remote = ADOPTED; remote < KINDS; remote++) {
            for (size_t i = 0; i < sizeof(lengths) / sizeof(lengths[0]); i++) {
                open_kinds(&m, local, remote);
                move_both_ways(&m, 4, lengths[i]);
                close_long(&m);
            }
        }
    }
}

/* More than a host may have under way of another, and than there is staging. */
static void test_many_long_transfers_at_once_arrive_whole(void **state)
{
    enum { N = 24 };
    static gni_post_descriptor_t d[N];
    gni_post_descriptor_t *done;
    struct long_memory m;

    (void)state;
    for (enum kind kind = ADOPTED; kind < KINDS; kind++) {
        open_kinds(&m, kind, kind);
        for (unsigned i = 0; i < N; i++) {
            uint64_t from = LONG_BYTES / N / 8 * 8 * i;

            d[i] = long_post(&m, i % 2 ? GNI_POST_RDMA_PUT : GNI_POST_RDMA_GET);
            d[i].local_addr += from;
            d[i].remote_addr += from;
            d[i].length = LONG_BYTES / N / 8 * 8;
            if (i % 2 == 0)
                memset(m.remote + from, (int)i + 1, d[i].length);
        }
        for (unsigned i = 0; i < N; i++)
            assert_int_equal(post(&a, &d[i], true), GNI_RC_SUCCESS);
        for (unsigned i = 0; i < N; i++)
            assert_int_equal(gx_complete(a.src_cq, &done), GNI_RC_SUCCESS);
        assert_memory_equal(m.local, m.remote, LONG_BYTES / N / 8 * 8 * N);
        for (unsigned i = 0; i < N; i += 2)
            assert_int_equal(m.local[LONG_BYTES / N / 8 * 8 * i], i + 1);
        close_long(&m);
    }
}

/* Whenever it comes: what was under way ends, with or without success, and what is written there afterwards stays. */
static void test_nothing_is_written_after_a_deregistration(void **state)
{
    enum { N = 4, ROUNDS = 40 };
    gni_post_descriptor_t d[N];
    gni_post_descriptor_t *done;
    struct long_memory m;

    (void)state;
    open_long(&m);
    for (unsigned round = 0; round < ROUNDS; round++) {
        for (unsigned i = 0; i < N; i++) {
            d[i] = long_post(&m, GNI_POST_RDMA_PUT);
            assert_int_equal(post(&a, &d[i], true), GNI_RC_SUCCESS);
        }
        for (unsigned i = 0; i < round % 8 * 40; i++)
            sched_yield();
        assert_int_equal(GNI_MemDeregister(b.nic, &m.remote_hndl), GNI_RC_SUCCESS);
        memset(m.remote, 0xee, LONG_BYTES);
        for (unsigned i = 0; i < N; i++) {
            gni_return_t rc = gx_complete(a.src_cq, &done);

            assert_true(rc == GNI_RC_SUCCESS || rc == GNI_RC_TRANSACTION_ERROR);
        }
        for (uint64_t i = 0; i < LONG_BYTES; i++) {
            if (m.remote[i] != 0xee)
                fail_msg("byte %llu was written in round %u", (unsigned long long)i, round);
        }
        assert_int_equal(GNI_MemRegister(b.nic, ADDR(m.remote), LONG_BYTES, b.dst_cq, GNI_MEM_READWRITE, (uint32_t)-1,
                                         &m.remote_hndl),
                         GNI_RC_SUCCESS);
    }
    move_both_ways(&m, 4, LONG_BYTES - 8);
    close_long(&m);
}

/* A host that stops in the middle keeps a deregistration waiting until it counts as lost, and writes nothing later. */
static void test_deregistration_outlasts_a_host_that_stops_in_the_middle(void **state)
{
    gni_post_descriptor_t d[4];
    gni_post_descriptor_t *done;
    struct long_memory m;

    (void)state;
    open_long(&m);
    for (unsigned i = 0; i < 4; i++) {
        d[i] = long_post(&m, GNI_POST_RDMA_PUT);
        assert_int_equal(post(&a, &d[i], true), GNI_RC_SUCCESS);
    }
    kill(fx.hosts[0].daemon, SIGSTOP);
    assert_int_equal(GNI_MemDeregister(b.nic, &m.remote_hndl), GNI_RC_SUCCESS);
    memset(m.remote, 0xee, LONG_BYTES);
    kill(fx.hosts[0].daemon, SIGCONT);
    for (unsigned i = 0; i < 4; i++)
        assert_true(gx_complete(a.src_cq, &done) != GNI_RC_NOT_DONE);
    fx_await_host(&fx, 0, 1, true);
    for (uint64_t i = 0; i < LONG_BYTES; i++)
        assert_int_equal(m.remote[i], 0xee);
    close_long(&m);
}

static void test_remote_event_of_a_long_put_comes_once_and_after_its_data(void **state)
{
    struct long_memory m;
    gni_post_descriptor_t d;
    gni_cq_entry_t entry;

    (void)state;
    open_long(&m);
    d = long_post(&m, GNI_POST_RDMA_PUT);
    d.cq_mode = GNI_CQMODE_GLOBAL_EVENT | GNI_CQMODE_REMOTE_EVENT;
    assert_int_equal(post(&a, &d, true), GNI_RC_SUCCESS);
    assert_int_equal(gx_next(b.dst_cq, &entry), GNI_RC_SUCCESS);
    assert_memory_equal(m.local, m.remote, LONG_BYTES);
    assert_int_equal(complete(&a, &d), GNI_RC_SUCCESS);
    assert_int_equal(GNI_CqGetEvent(b.dst_cq, &entry), GNI_RC_NOT_DONE);
    close_long(&m);
}

static void test_flag_of_a_long_put_comes_after_its_data(void **state)
{
    gni_post_descriptor_t d;
    volatile uint64_t *flag;
    struct long_memory m;

    (void)state;
    for (enum kind kind = ADOPTED; kind < KINDS; kind++) {
        open_kinds(&m, ADOPTED, kind);
        flag = (volatile uint64_t *)(void *)(m.remote + LONG_BYTES / 8 * 8 - 8);
        d = long_post(&m, GNI_POST_FMA_PUT_W_SYNCFLAG);
        d.length = LONG_BYTES - 16;
        d.sync_flag_value = 77;
        d.sync_flag_addr = ADDR(flag);
        assert_int_equal(post(&a, &d, false), GNI_RC_SUCCESS);
        while (*flag != 77)
            sched_yield();
        assert_memory_equal(m.local, m.remote, LONG_BYTES - 16);
        assert_int_equal(complete(&a, &d), GNI_RC_SUCCESS);
        close_long(&m);
    }
}

static void test_long_put_beyond_the_memory_touches_nothing(void **state)
{
    struct long_memory m;
    gni_post_descriptor_t d;

    (void)state;
    open_long(&m);
    d = long_post(&m, GNI_POST_RDMA_PUT);
    d.remote_addr += 8192;
    d.cq_mode |= GNI_CQMODE_REMOTE_EVENT;
    assert_int_equal(post(&a, &d, true), GNI_RC_SUCCESS);
    assert_int_equal(complete(&a, &d), GNI_RC_TRANSACTION_ERROR);
    for (uint64_t i = 0; i < LONG_BYTES; i++)
        assert_int_equal(m.remote[i], 0);
    assert_int_equal(GNI_CqGetEvent(b.dst_cq, &(gni_cq_entry_t){ 0 }), GNI_RC_NOT_DONE);
    close_long(&m);
}

static void test_stale_handle_fails(void **state)
{
    struct long_memory m;
    gni_post_descriptor_t d;
    gni_mem_handle_t handle;

    (void)state;
    open_long(&m);
    handle = m.remote_hndl;
    d = long_post(&m, GNI_POST_RDMA_PUT);
    assert_int_equal(GNI_MemDeregister(b.nic, &m.remote_hndl), GNI_RC_SUCCESS);
    d.remote_mem_hndl = handle;
    d.length = 64;
    assert_int_equal(post(&a, &d, true), GNI_RC_SUCCESS);
    assert_int_equal(complete(&a, &d), GNI_RC_TRANSACTION_ERROR);
    close_long(&m);
}

static void test_local_memory_that_is_not_there_fails_the_transfer_alone(void **state)
{
    gni_post_descriptor_t good = gx_put(&a, &b, 0, 8, GNI_CQMODE_GLOBAL_EVENT);
    struct long_memory m;
    gni_post_descriptor_t d;

    (void)state;
    open_long(&m);
    d = long_post(&m, GNI_POST_RDMA_PUT);
    munmap(m.local + (1u << 20), 4096);
    assert_int_equal(post(&a, &d, true), GNI_RC_SUCCESS);
    assert_int_equal(complete(&a, &d), GNI_RC_TRANSACTION_ERROR);
    assert_int_equal(post(&a, &good, false), GNI_RC_SUCCESS);
    assert_int_equal(complete(&a, &good), GNI_RC_SUCCESS);
    close_long(&m);
}

/* More than any queue holds. */
static void test_thousands_of_puts_in_flight_all_complete(void **state)
{
    enum { N = 5000 };
    static gni_post_descriptor_t d[64];
    unsigned posted = 0;
    unsigned done = 0;

    (void)state;
    while (done < N) {
        gni_post_descriptor_t *which;

        while (posted < N && posted - done < 64) {
            unsigned i = posted % 64;

            d[i] = gx_put(&a, &b, 8ull * i, 8, GNI_CQMODE_GLOBAL_EVENT);
            ((uint64_t *)(void *)a.mem)[i] = posted;
            if (post(&a, &d[i], false) != GNI_RC_SUCCESS)
                break;
            posted++;
        }
        assert_int_equal(gx_complete(a.src_cq, &which), GNI_RC_SUCCESS);
        assert_ptr_equal(which, &d[done % 64]); /* small ones, in their order */
        done++;
    }
    for (unsigned i = 0; i < 64; i++)
        assert_int_equal(((uint64_t *)(void *)b.mem)[i] % 64, i);
}

static void test_two_hosts_add_to_one_word(void **state)
{
    enum { N = 500 };

    (void)state;
    memset(a.mem, 0, 64);
    memset(b.mem, 0, 64);
    for (unsigned i = 0; i < N; i++) {
        gni_post_descriptor_t far = gx_put(&a, &b, 0, 8, GNI_CQMODE_GLOBAL_EVENT);
        gni_post_descriptor_t near = gx_put(&b, &b, 0, 8, GNI_CQMODE_GLOBAL_EVENT);
        gni_ep_handle_t self;

        far.type = near.type = GNI_POST_AMO;
        far.amo_cmd = near.amo_cmd = GNI_FMA_ATOMIC_ADD;
        far.first_operand = near.first_operand = 1;
        assert_int_equal(GNI_EpCreate(b.nic, b.src_cq, &self), GNI_RC_SUCCESS);
        assert_int_equal(GNI_EpBind(self, b.nic_addr, b.inst_id), GNI_RC_SUCCESS);
        assert_int_equal(GNI_PostFma(a.ep, &far), GNI_RC_SUCCESS);
        assert_int_equal(GNI_PostFma(self, &near), GNI_RC_SUCCESS);
        assert_int_equal(complete(&a, &far), GNI_RC_SUCCESS);
        assert_int_equal(complete(&b, &near), GNI_RC_SUCCESS);
        assert_int_equal(GNI_EpDestroy(self), GNI_RC_SUCCESS);
    }
    assert_int_equal(*(uint64_t *)(void *)b.mem, 2 * N);
}

static void test_attaching_to_a_node_of_another_host_is_refused(void **state)
{
    gni_cdm_handle_t cdm;
    gni_nic_handle_t nic;
    uint32_t address;

    (void)state;
    fx_set_node(0);
    setenv("EMUNIC_NID", "1", 1); /* a node, but not of that emunic */
    assert_int_equal(GNI_CdmCreate(77, (uint8_t)fx.ptag, fx.cookie, GNI_CDM_MODE_ERR_NO_KILL, &cdm), GNI_RC_SUCCESS);
    assert_int_not_equal(GNI_CdmAttach(cdm, 0, &address, &nic), GNI_RC_SUCCESS);
    assert_int_equal(GNI_CdmDestroy(cdm), GNI_RC_SUCCESS);
    fx_set_node(0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_long_transfers_arrive_whole, start, stop),
        cmocka_unit_test_setup_teardown(test_many_long_transfers_at_once_arrive_whole, start, stop),
        cmocka_unit_test_setup_teardown(test_nothing_is_written_after_a_deregistration, start, stop),
        cmocka_unit_test_setup_teardown(test_deregistration_outlasts_a_host_that_stops_in_the_middle, start, stop),
        cmocka_unit_test_setup_teardown(test_remote_event_of_a_long_put_comes_once_and_after_its_data, start, stop),
        cmocka_unit_test_setup_teardown(test_flag_of_a_long_put_comes_after_its_data, start, stop),
        cmocka_unit_test_setup_teardown(test_long_put_beyond_the_memory_touches_nothing, start, stop),
        cmocka_unit_test_setup_teardown(test_stale_handle_fails, start, stop),
        cmocka_unit_test_setup_teardown(test_local_memory_that_is_not_there_fails_the_transfer_alone, start, stop),
        cmocka_unit_test_setup_teardown(test_thousands_of_puts_in_flight_all_complete, start, stop),
        cmocka_unit_test_setup_teardown(test_two_hosts_add_to_one_word, start, stop),
        cmocka_unit_test_setup_teardown(test_attaching_to_a_node_of_another_host_is_refused, start, stop),
    };

    if (!getenv("EMU_TEST_TRANSPORT")) {
        printf("1..0 # SKIP EMU_TEST_TRANSPORT does not name the transport's module\n");
        return 0;
    }
    if (children_init() < 0)
        return 1;
    return cmocka_run_group_tests_name("hosts", tests, NULL, NULL);
}
