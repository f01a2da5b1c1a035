/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Injected faults as programs see them: each status on each kind of transaction, exactly one event, nothing else lost;
 * queues in overrun; dead peers; refused registrations and datagrams; and that a schedule can be repeated.
 * test_faults_smsg.c has short messages. Specification: spec/ugni.md 4.8.2, 4.9, 7.3; the rules:
 * docs/man/emunic-fault.1.
 */
#include "tests/conformance/faults.h"

static int close_faulty_pair(void **state)
{
    fx_clear_faults(&fx);
    return close_pair(state);
}

#define fault_test(name) cmocka_unit_test_setup_teardown(name, open_pair, close_faulty_pair)

/* ---- every status on every kind of transaction ---- */

static const struct outcome outcomes[] = {
    { "action=drop", STATUS_NETWORK, 1, "network" },
    { "action=corrupt", STATUS_NETWORK, 1, "network" },
    { "action=fail status=network", STATUS_NETWORK, 1, "network" },
    { "action=fail status=peer-gone", STATUS_PEER_GONE, 0, "peer gone" },
    { "action=fail status=bad-handle", STATUS_BAD_HANDLE, 0, "memory handle" },
    { "action=fail status=remote-range", STATUS_REMOTE_RANGE, 0, "remote range" },
    { "action=fail status=remote-permission", STATUS_REMOTE_PERMISSION, 0, "remote permission" },
    { "action=fail status=remote-cq-full", STATUS_REMOTE_CQ_FULL, 0, "queue full" },
    { "action=fail status=local-access", STATUS_LOCAL_ACCESS, 0, "local access" },
    { "action=fail status=retransmit-limit", STATUS_RETRANSMIT_LIMIT, 1, "retransmission limit" },
    { "action=fail status=cancelled", STATUS_CANCELLED, 0, "cancelled" },
    { "action=fail status=bad-command", STATUS_BAD_COMMAND, 0, "malformed" },
};

static const struct {
    const char *op_class;
    gni_post_type_t type;
} kinds[] = {
    { "fma-put", GNI_POST_FMA_PUT },  { "fma-get", GNI_POST_FMA_GET },  { "fma-amo", GNI_POST_AMO },
    { "bte-put", GNI_POST_RDMA_PUT }, { "bte-get", GNI_POST_RDMA_GET }, { "cq-write", GNI_POST_CQWRITE },
    { "any", GNI_POST_FMA_PUT },
};

static gni_post_descriptor_t operation(gni_post_type_t type, unsigned i)
{
    gni_post_descriptor_t d = word_post(type, 8 * i);

    d.cq_mode = GNI_CQMODE_GLOBAL_EVENT | GNI_CQMODE_REMOTE_EVENT;
    d.amo_cmd = GNI_FMA_ATOMIC_FADD;
    d.first_operand = 1;
    d.cqwrite_value = 1000 + i;
    return d;
}

/* The second of three is hit: its one event, its untouched target, and the other two as if nothing had been. */
static void hit_the_second(gni_post_type_t type, const struct outcome *o)
{
    gni_post_descriptor_t d[3];
    gni_cq_entry_t entry = 0;

    fill(a.mem, GX_BYTES, 1);
    fill(b.mem, GX_BYTES, 0x5555555);
    for (unsigned i = 0; i < 3; i++) {
        gni_post_descriptor_t *done = NULL;
        uint64_t before[2];
        uint64_t after[2];
        gni_return_t rc;

        d[i] = operation(type, i);
        memcpy(&before[0], a.mem + 8 * i, 8);
        memcpy(&before[1], b.mem + 8 * i, 8);
        assert_int_equal(post(&d[i]), GNI_RC_SUCCESS);
        rc = gx_next(a.src_cq, &entry);
        assert_int_equal(rc, i == 1 ? GNI_RC_TRANSACTION_ERROR : GNI_RC_SUCCESS);
        if (i == 1)
            expect_entry(entry, o);
        assert_int_equal(GNI_GetCompleted(a.src_cq, entry, &done), rc);
        assert_ptr_equal(done, &d[i]);
        assert_int_equal(d[i].status, i == 1 ? o->status : STATUS_OK);
        memcpy(&after[0], a.mem + 8 * i, 8);
        memcpy(&after[1], b.mem + 8 * i, 8);
        if (i == 1 || type == GNI_POST_CQWRITE)
            assert_memory_equal(before, after, sizeof(before));
        else
            assert_memory_not_equal(before, after, sizeof(before));
    }
    assert_int_equal(poll_once(a.src_cq), GNI_RC_NOT_DONE);
    /* Two remote events. */
    for (unsigned i = 0; i < 3; i += 2) {
        assert_int_equal(gx_next(b.dst_cq, &entry), GNI_RC_SUCCESS);
        if (type == GNI_POST_CQWRITE)
            assert_int_equal(GNI_CQ_GET_DATA(entry), 1000 + i);
    }
    assert_int_equal(poll_once(b.dst_cq), GNI_RC_NOT_DONE);
}

static void test_every_status_on_every_kind_is_one_event_and_nothing_else_is_lost(void **state)
{
    (void)state;
    for (size_t k = 0; k < COUNT_OF(kinds); k++) {
        for (size_t o = 0; o < COUNT_OF(outcomes); o++) {
            char words[128];

            snprintf(words, sizeof(words), "class=%s %s nth=2", kinds[k].op_class, outcomes[o].fault);
            fx_add_fault(&fx, words);
            hit_the_second(kinds[k].type, &outcomes[o]);
            assert_int_equal(fx_fault_hits(&fx), 1);
            fx_clear_faults(&fx);
        }
    }
}

static void test_rules_of_other_kinds_nodes_and_instances_hit_nothing(void **state)
{
    gni_post_descriptor_t d = word_post(GNI_POST_FMA_PUT, 0);

    (void)state;
    fx_add_fault(&fx, "class=fma-get,fma-amo,bte,smsg,cq-write,datagram action=drop");
    fx_add_fault(&fx, "class=any action=drop from=1");
    fx_add_fault(&fx, "class=any action=drop to=0");
    fx_add_fault(&fx, "class=any action=drop from=0 to=1 from_instance=11");
    fx_add_fault(&fx, "class=any action=drop from=0 to=1 to_instance=10");
    assert_int_equal(run(&d), STATUS_OK);
    assert_int_equal(fx_fault_hits(&fx), 0);
    fx_add_fault(&fx, "class=any action=drop from=0 to=1 from_instance=10 to_instance=11");
    assert_int_equal(run(&d), STATUS_NETWORK);
    assert_int_equal(fx_fault_hits(&fx), 1);
}

static void test_first_rule_that_hits_decides_and_all_of_them_count(void **state)
{
    gni_post_descriptor_t d = word_post(GNI_POST_FMA_PUT, 0);

    (void)state;
    fx_add_fault(&fx, "class=any action=fail status=cancelled nth=1");
    fx_add_fault(&fx, "class=any action=fail status=remote-range count=2");
    assert_int_equal(run(&d), STATUS_CANCELLED);
    assert_int_equal(run(&d), STATUS_REMOTE_RANGE);
    assert_int_equal(run(&d), STATUS_OK);
    assert_int_equal(fx_fault_hits(&fx), 3);
}

static void test_rules_that_go_leave_nothing_behind(void **state)
{
    gni_post_descriptor_t d = word_post(GNI_POST_FMA_PUT, 0);

    (void)state;
    for (unsigned i = 0; i < 20; i++) {
        fx_add_fault(&fx, "class=fma-put action=drop");
        assert_int_equal(run(&d), STATUS_NETWORK);
        fx_clear_faults(&fx);
        assert_int_equal(run(&d), STATUS_OK);
    }
}

/* A descriptor that failed with a recoverable status is good for another try, as Open MPI does it. */
static void test_same_descriptor_can_be_posted_again(void **state)
{
    gni_post_descriptor_t d = word_post(GNI_POST_RDMA_PUT, 0);
    unsigned tries = 1;

    (void)state;
    fx_add_fault(&fx, "class=bte action=drop count=5");
    memset(a.mem, 0x5a, 8);
    while (run(&d) != STATUS_OK && tries < 16)
        tries++;
    assert_int_equal(tries, 6);
    assert_true(all_bytes_are(b.mem, 0x5a, 8));
}

static void test_large_transfers_are_hit_as_a_whole(void **state)
{
    size_t bytes = 4u << 20;
    uint8_t *from = pages(bytes);
    uint8_t *to = pages(bytes);
    gni_post_descriptor_t d = word_post(GNI_POST_RDMA_PUT, 0);

    (void)state;
    memset(from, 0x77, bytes);
    d.local_addr = ADDR(from);
    d.local_mem_hndl = register_on(&a, from, bytes, GNI_MEM_READWRITE);
    d.remote_addr = ADDR(to);
    d.remote_mem_hndl = register_on(&b, to, bytes, GNI_MEM_READWRITE);
    d.length = bytes;
    fx_add_fault(&fx, "class=bte-put action=corrupt nth=1");
    assert_int_equal(run(&d), STATUS_NETWORK);
    assert_true(all_bytes_are(to, 0, bytes));
    assert_int_equal(run(&d), STATUS_OK);
    assert_true(all_bytes_are(to, 0x77, bytes));
    assert_int_equal(GNI_MemDeregister(a.nic, &d.local_mem_hndl), GNI_RC_SUCCESS);
    assert_int_equal(GNI_MemDeregister(b.nic, &d.remote_mem_hndl), GNI_RC_SUCCESS);
    munmap(from, bytes);
    munmap(to, bytes);
}

static void test_failed_silent_post_shows_an_error_entry(void **state)
{
    gni_post_descriptor_t silent = word_post(GNI_POST_FMA_PUT, 0);
    gni_post_descriptor_t d = word_post(GNI_POST_FMA_PUT, 8);

    (void)state;
    silent.cq_mode = GNI_CQMODE_SILENT;
    fx_add_fault(&fx, "class=fma-put action=drop nth=1");
    assert_int_equal(post(&silent), GNI_RC_SUCCESS);
    assert_int_equal(finish(&silent), STATUS_NETWORK);
    assert_int_equal(run(&d), STATUS_OK);
}

/* ---- repeating a run ---- */

/* Bit n: the n-th of 64 puts failed. */
static uint64_t failures_of(const char *words)
{
    gni_post_descriptor_t d = word_post(GNI_POST_FMA_PUT, 0);
    uint64_t failures = 0;

    fx_add_fault(&fx, words);
    for (unsigned i = 0; i < 64; i++)
        failures |= (uint64_t)(run(&d) != STATUS_OK) << i;
    fx_clear_faults(&fx);
    return failures;
}

static void test_same_seed_hits_the_same_transactions(void **state)
{
    uint64_t first = failures_of("class=fma-put action=drop rate=0.3 seed=11");

    (void)state;
    assert_true(first != 0 && first != UINT64_MAX);
    assert_int_equal(failures_of("class=fma-put action=drop rate=0.3 seed=11"), first);
    assert_int_not_equal(failures_of("class=fma-put action=drop rate=0.3 seed=12"), first);
    /* A new NIC handle with the same name is the same port. */
    gx_close(&a);
    gx_close(&b);
    open_pair(NULL);
    assert_int_equal(failures_of("class=fma-put action=drop rate=0.3 seed=11"), first);
}

/* ---- delay ---- */

static void test_delayed_transaction_takes_its_time_and_keeps_the_order(void **state)
{
    gni_post_descriptor_t d[3];
    uint64_t start_ns = emu_clock_ns();

    (void)state;
    fx_add_fault(&fx, "class=fma-put action=delay delay_us=30000 nth=2");
    for (unsigned i = 0; i < 3; i++) {
        d[i] = word_post(GNI_POST_FMA_PUT, 0);
        d[i].local_addr += 8 * i;
        a.mem[8 * i] = (uint8_t)(i + 1);
        assert_int_equal(post(&d[i]), GNI_RC_SUCCESS);
    }
    for (unsigned i = 0; i < 3; i++) {
        assert_int_equal(finish(&d[i]), STATUS_OK);
        assert_true(i == 0 || emu_clock_ns() - start_ns >= 30000000);
    }
    assert_int_equal(b.mem[0], 3);
    /* Another port has not waited for it. */
    fx_clear_faults(&fx);
    fx_add_fault(&fx, "class=fma-put action=delay delay_us=3000000000 from=0 nth=1");
    assert_int_equal(post(&d[0]), GNI_RC_SUCCESS);
    d[1] = gx_put(&b, &a, 64, 8, GNI_CQMODE_GLOBAL_EVENT);
    assert_int_equal(post_on(b.ep, &d[1]), GNI_RC_SUCCESS);
    assert_int_equal(finish_on(b.src_cq, &d[1]), STATUS_OK);
    assert_int_equal(poll_once(a.src_cq), GNI_RC_NOT_DONE);
    /* Rules that go let it go on. */
    start_ns = emu_clock_ns();
    fx_clear_faults(&fx);
    assert_int_equal(finish(&d[0]), STATUS_OK);
    assert_int_equal(run(&d[0]), STATUS_OK);
    assert_true(emu_clock_ns() - start_ns < 60000000000);
}

/* ---- overrun ---- */

static void test_overrun_loses_the_event_and_not_the_data(void **state)
{
    gni_post_descriptor_t d = operation(GNI_POST_FMA_PUT, 0);
    gni_cq_entry_t entry = 0;

    (void)state;
    fx_add_fault(&fx, "class=fma-put action=overrun nth=2");
    for (unsigned i = 0; i < 3; i++) {
        a.mem[0] = (uint8_t)(i + 1);
        assert_int_equal(run(&d), STATUS_OK);
        assert_int_equal(b.mem[0], i + 1);
    }
    /* Two events and one report, then the queue works again. */
    assert_int_equal(gx_next(b.dst_cq, &entry), GNI_RC_SUCCESS);
    assert_int_equal(gx_next(b.dst_cq, &entry), GNI_RC_SUCCESS);
    assert_int_equal(GNI_CqGetEvent(b.dst_cq, &entry), GNI_RC_ERROR_RESOURCE);
    assert_true(GNI_CQ_OVERRUN(entry));
    assert_int_equal(poll_once(b.dst_cq), GNI_RC_NOT_DONE);
    assert_int_equal(run(&d), STATUS_OK);
    assert_int_equal(gx_next(b.dst_cq, &entry), GNI_RC_SUCCESS);
}

static void test_overrun_wakes_a_sleeper(void **state)
{
    gni_post_descriptor_t d = operation(GNI_POST_FMA_PUT, 0);
    gni_cq_entry_t entry = 0;

    (void)state;
    fx_add_fault(&fx, "class=fma-put action=overrun");
    assert_int_equal(post(&d), GNI_RC_SUCCESS);
    assert_int_equal(GNI_CqWaitEvent(b.dst_cq, 10000, &entry), GNI_RC_ERROR_RESOURCE);
    assert_true(GNI_CQ_OVERRUN(entry));
    assert_int_equal(finish(&d), STATUS_OK);
}

static void test_queue_write_into_an_overrun_fails_and_can_be_repeated(void **state)
{
    static const struct outcome full = { "overrun", STATUS_REMOTE_CQ_FULL, 0, "queue full" };
    gni_post_descriptor_t d = operation(GNI_POST_CQWRITE, 0);
    gni_post_descriptor_t *done;
    gni_cq_entry_t entry = 0;

    (void)state;
    fx_add_fault(&fx, "class=cq-write action=overrun nth=1");
    assert_int_equal(post(&d), GNI_RC_SUCCESS);
    assert_int_equal(gx_next(a.src_cq, &entry), GNI_RC_TRANSACTION_ERROR);
    expect_entry(entry, &full);
    assert_int_equal(GNI_GetCompleted(a.src_cq, entry, &done), GNI_RC_TRANSACTION_ERROR);
    assert_int_equal(gx_next(b.dst_cq, &entry), GNI_RC_ERROR_RESOURCE);
    assert_int_equal(run(&d), STATUS_OK);
    assert_int_equal(gx_next(b.dst_cq, &entry), GNI_RC_SUCCESS);
    assert_int_equal(GNI_CQ_GET_DATA(entry), 1000);
}

/* ---- chains ---- */

static void test_chain_carries_the_fault_of_any_element(void **state)
{
    (void)state;
    for (unsigned hit = 0; hit < 3; hit++) {
        gni_ct_put_post_descriptor_t more[2];
        gni_post_descriptor_t d = word_post(GNI_POST_FMA_PUT, 0);
        char words[80];

        memset(a.mem, 1, 64);
        memset(b.mem, 0, 64);
        for (unsigned i = 0; i < 2; i++)
            more[i] = (gni_ct_put_post_descriptor_t){ .ep_hndl = a.ep,
                                                      .remote_addr = ADDR(b.mem) + 8 * (i + 1),
                                                      .remote_mem_hndl = b.mem_hndl,
                                                      .local_addr = ADDR(a.mem) + 8 * (i + 1),
                                                      .length = 8,
                                                      .next_descr = i == 0 ? &more[1] : NULL };
        d.next_descr = &more[0];
        snprintf(words, sizeof(words), "class=fma-put action=fail status=remote-permission nth=%u", hit + 1);
        fx_add_fault(&fx, words);
        assert_int_equal(GNI_CtPostFma(a.ep, &d), GNI_RC_SUCCESS);
        assert_int_equal(finish(&d), STATUS_REMOTE_PERMISSION);
        assert_int_equal(poll_once(a.src_cq), GNI_RC_NOT_DONE);
        for (unsigned i = 0; i < 3; i++)
            assert_true(all_bytes_are(b.mem + 8 * i, i == hit ? 0 : 1, 8));
        fx_clear_faults(&fx);
    }
}

/* ---- datagrams ---- */

static gni_post_state_t datagram_state(gni_ep_handle_t ep)
{
    gni_post_state_t post_state = GNI_POST_PENDING;
    uint32_t words[2];

    assert_int_equal(GNI_EpPostDataTest(ep, &post_state, &words[0], &words[1]), GNI_RC_SUCCESS);
    return post_state;
}

/* Waits for it: between hosts both sides do not know at once. */
static gni_post_state_t datagram_end(gni_ep_handle_t ep)
{
    gni_post_state_t post_state = GNI_POST_PENDING;
    uint32_t words[2];

    assert_int_equal(GNI_EpPostDataWait(ep, 10000, &post_state, &words[0], &words[1]), GNI_RC_SUCCESS);
    return post_state;
}

static void test_datagrams_end_as_the_rule_says(void **state)
{
    static const struct {
        const char *words;
        gni_post_state_t end;
    } rows[] = {
        { "class=datagram action=corrupt", GNI_POST_ERROR },
        { "class=datagram action=fail", GNI_POST_ERROR },
        { "class=datagram action=fail status=timeout", GNI_POST_TIMEOUT },
    };
    char in[8] = "payload";
    char out[8];

    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        fx_add_fault(&fx, rows[i].words);
        assert_int_equal(GNI_EpPostData(a.ep, in, sizeof(in), out, sizeof(out)), GNI_RC_SUCCESS);
        assert_int_equal(datagram_state(a.ep), rows[i].end);
        fx_clear_faults(&fx);
    }
    fx_add_fault(&fx, "class=datagram action=fail status=busy");
    assert_int_equal(GNI_EpPostData(a.ep, in, sizeof(in), out, sizeof(out)), GNI_RC_ERROR_RESOURCE);
    fx_clear_faults(&fx);
    assert_int_equal(GNI_EpPostData(a.ep, in, sizeof(in), out, sizeof(out)), GNI_RC_SUCCESS);
    assert_int_equal(GNI_EpPostData(b.ep, in, sizeof(in), out, sizeof(out)), GNI_RC_SUCCESS);
    assert_int_equal(datagram_end(a.ep), GNI_POST_COMPLETED);
    assert_int_equal(datagram_end(b.ep), GNI_POST_COMPLETED);
}

static void test_lost_datagram_waits_until_it_is_cancelled(void **state)
{
    char in[8] = "payload";
    char out[8];

    (void)state;
    fx_add_fault(&fx, "class=datagram action=drop from=0");
    assert_int_equal(GNI_EpPostData(a.ep, in, sizeof(in), out, sizeof(out)), GNI_RC_SUCCESS);
    assert_int_equal(GNI_EpPostData(b.ep, in, sizeof(in), out, sizeof(out)), GNI_RC_SUCCESS);
    assert_int_equal(datagram_state(a.ep), GNI_POST_PENDING);
    assert_int_equal(datagram_state(b.ep), GNI_POST_PENDING);
    assert_int_equal(GNI_EpPostDataCancel(a.ep), GNI_RC_SUCCESS);
    assert_int_equal(datagram_state(a.ep), GNI_POST_TERMINATED);
    fx_clear_faults(&fx);
    /* The next one finds the peer's. */
    assert_int_equal(GNI_EpPostData(a.ep, in, sizeof(in), out, sizeof(out)), GNI_RC_SUCCESS);
    assert_int_equal(datagram_end(a.ep), GNI_POST_COMPLETED);
    assert_int_equal(datagram_end(b.ep), GNI_POST_COMPLETED);
}

static void test_delayed_datagram_pairs_later(void **state)
{
    gni_post_state_t post_state = GNI_POST_PENDING;
    uint64_t start_ns = emu_clock_ns();
    char in[8] = "payload";
    char out[8] = "";
    uint32_t words[2];

    (void)state;
    fx_add_fault(&fx, "class=datagram action=delay delay_us=30000 from=0");
    assert_int_equal(GNI_EpPostData(b.ep, in, sizeof(in), out, sizeof(out)), GNI_RC_SUCCESS);
    assert_int_equal(GNI_EpPostData(a.ep, in, sizeof(in), out, sizeof(out)), GNI_RC_SUCCESS);
    assert_int_equal(GNI_EpPostDataWait(a.ep, 10000, &post_state, &words[0], &words[1]), GNI_RC_SUCCESS);
    assert_int_equal(post_state, GNI_POST_COMPLETED);
    assert_true(emu_clock_ns() - start_ns >= 30000000);
    assert_string_equal(out, "payload");
    assert_int_equal(datagram_end(b.ep), GNI_POST_COMPLETED);
    /* One that goes with its end point while it is delayed. */
    assert_int_equal(GNI_EpPostData(a.ep, in, sizeof(in), out, sizeof(out)), GNI_RC_SUCCESS);
    assert_int_equal(GNI_EpDestroy(a.ep), GNI_RC_SUCCESS);
    a.ep = NULL;
}

/* ---- registrations ---- */

static gni_return_t try_to_register(void *mem, gni_mem_handle_t *handle)
{
    return GNI_MemRegister(a.nic, ADDR(mem), 4096, NULL, GNI_MEM_READWRITE, (uint32_t)-1, handle);
}

static void test_registrations_fail_as_the_rule_says(void **state)
{
    static const struct {
        const char *words;
        gni_return_t rc;
    } rows[] = {
        { "class=registration action=fail nth=2", GNI_RC_ERROR_RESOURCE },
        { "class=registration action=corrupt nth=2", GNI_RC_ERROR_RESOURCE },
        { "class=registration action=fail status=memory nth=2", GNI_RC_ERROR_NOMEM },
        { "class=registration action=fail status=permission nth=2", GNI_RC_PERMISSION_ERROR },
    };
    uint8_t *mem = pages(4096);
    gni_mem_handle_t handles[2];

    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        fx_add_fault(&fx, rows[i].words);
        assert_int_equal(try_to_register(mem, &handles[0]), GNI_RC_SUCCESS);
        assert_int_equal(try_to_register(mem, &handles[1]), rows[i].rc);
        assert_int_equal(try_to_register(mem, &handles[1]), GNI_RC_SUCCESS);
        assert_int_equal(GNI_MemDeregister(a.nic, &handles[0]), GNI_RC_SUCCESS);
        assert_int_equal(GNI_MemDeregister(a.nic, &handles[1]), GNI_RC_SUCCESS);
        fx_clear_faults(&fx);
    }
    munmap(mem, 4096);
}

static void test_small_limit_of_registrations_is_cured_by_eviction(void **state)
{
    uint8_t *mem = pages(4096);
    gni_mem_handle_t handles[4];

    (void)state;
    fx_add_fault(&fx, "class=registration action=fail live_min=4"); /* one is the pair's */
    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(try_to_register(mem, &handles[i]), GNI_RC_SUCCESS);
    assert_int_equal(try_to_register(mem, &handles[3]), GNI_RC_ERROR_RESOURCE);
    assert_int_equal(try_to_register(mem, &handles[3]), GNI_RC_ERROR_RESOURCE);
    assert_int_equal(GNI_MemDeregister(a.nic, &handles[0]), GNI_RC_SUCCESS);
    assert_int_equal(try_to_register(mem, &handles[0]), GNI_RC_SUCCESS);
    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(GNI_MemDeregister(a.nic, &handles[i]), GNI_RC_SUCCESS);
    munmap(mem, 4096);
}

/* ---- peer death ---- */

struct card {
    gni_mem_handle_t handle;
    uint64_t mem;
    uint32_t addr;
};

static int body_with_a_victim(struct fx_rank *rank)
{
    struct card *card = rank->shared;
    struct gx_side side;

    alarm(30);
    gx_open(&side, rank->fx, rank->fx->nids[rank->rank], rank->rank, 0);
    if (rank->rank == 1)
        *card = (struct card){ side.mem_hndl, ADDR(side.mem), side.nic_addr };
    pthread_barrier_wait(rank->barrier);
    if (rank->rank == 1) {
        for (;;)
            pause(); /* until it is killed */
    }
    FX_CHECK(GNI_EpCreate(side.nic, side.src_cq, &side.ep) == GNI_RC_SUCCESS);
    FX_CHECK(GNI_EpBind(side.ep, card->addr, 1) == GNI_RC_SUCCESS);
    for (unsigned i = 1; i <= 5; i++) {
        gni_post_descriptor_t d = { .type = GNI_POST_FMA_PUT,
                                    .cq_mode = GNI_CQMODE_GLOBAL_EVENT,
                                    .local_addr = ADDR(side.mem),
                                    .local_mem_hndl = side.mem_hndl,
                                    .remote_addr = card->mem,
                                    .remote_mem_hndl = card->handle,
                                    .length = 8 };
        gni_post_descriptor_t *done = NULL;

        FX_CHECK(GNI_PostFma(side.ep, &d) == GNI_RC_SUCCESS);
        FX_CHECK(gx_complete(side.src_cq, &done) == (i < 5 ? GNI_RC_SUCCESS : GNI_RC_TRANSACTION_ERROR));
        FX_CHECK(done == &d && d.status == (i < 5 ? STATUS_OK : STATUS_PEER_GONE));
    }
    gx_close(&side);
    return 0;
}

static void test_killed_peer_ends_the_transaction_that_killed_it(void **state)
{
    (void)state;
    fx_add_fault(&fx, "class=fma-put action=kill nth=5 from=0 to=1");
    assert_int_equal(fx_run(&fx, 2, body_with_a_victim, NULL), 1);
    assert_int_equal(fx_fault_hits(&fx), 1);
    fx_clear_faults(&fx);
}

static int body_that_dies(struct fx_rank *rank)
{
    struct gx_side side;
    gni_post_descriptor_t d;
    gni_cq_entry_t entry;

    alarm(30);
    gx_open(&side, rank->fx, 0, 5, 0);
    FX_CHECK(GNI_EpCreate(side.nic, side.src_cq, &side.ep) == GNI_RC_SUCCESS);
    FX_CHECK(GNI_EpBind(side.ep, side.nic_addr, 5) == GNI_RC_SUCCESS);
    d = gx_put(&side, &side, 0, 8, GNI_CQMODE_GLOBAL_EVENT);
    FX_CHECK(GNI_PostFma(side.ep, &d) == GNI_RC_SUCCESS);
    gx_next(side.src_cq, &entry);
    pause();
    return 0;
}

static void test_initiator_can_be_the_victim(void **state)
{
    (void)state;
    fx_add_fault(&fx, "class=fma-put action=kill victim=initiator");
    assert_int_equal(fx_run(&fx, 1, body_that_dies, NULL), 1);
    fx_clear_faults(&fx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        fault_test(test_every_status_on_every_kind_is_one_event_and_nothing_else_is_lost),
        fault_test(test_rules_of_other_kinds_nodes_and_instances_hit_nothing),
        fault_test(test_first_rule_that_hits_decides_and_all_of_them_count),
        fault_test(test_rules_that_go_leave_nothing_behind),
        fault_test(test_same_descriptor_can_be_posted_again),
        fault_test(test_large_transfers_are_hit_as_a_whole),
        fault_test(test_failed_silent_post_shows_an_error_entry),
        fault_test(test_same_seed_hits_the_same_transactions),
        fault_test(test_delayed_transaction_takes_its_time_and_keeps_the_order),
        fault_test(test_overrun_loses_the_event_and_not_the_data),
        fault_test(test_overrun_wakes_a_sleeper),
        fault_test(test_queue_write_into_an_overrun_fails_and_can_be_repeated),
        fault_test(test_chain_carries_the_fault_of_any_element),
        fault_test(test_datagrams_end_as_the_rule_says),
        fault_test(test_lost_datagram_waits_until_it_is_cancelled),
        fault_test(test_delayed_datagram_pairs_later),
        fault_test(test_registrations_fail_as_the_rule_says),
        fault_test(test_small_limit_of_registrations_is_cured_by_eviction),
        cmocka_unit_test(test_killed_peer_ends_the_transaction_that_killed_it),
        cmocka_unit_test(test_initiator_can_be_the_victim),
    };

    return cmocka_run_group_tests(tests, start_emunic, stop_emunic);
}
