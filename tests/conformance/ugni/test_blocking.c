/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Calls that wait for completion queues: time limits, wake-ups, masks, signals. Threads and objects that go away
 * meanwhile: test_blocking_end.c. Datagram waits: test_datagram.c. Specification: spec/ugni.md 1.6, 1.7, 4.9, 7.22,
 * 7.28.
 */
#include "tests/conformance/blocking.h"

/* ---- GNI_CqWaitEvent ---- */

static void test_wait_returns_an_event_that_is_there(void **state)
{
    gni_cq_entry_t entry = 0;

    (void)state;
    write_queue(&a, &b, 0x123456789abc);
    assert_int_equal(GNI_CqWaitEvent(b.dst_cq, FOR_EVER, &entry), GNI_RC_SUCCESS);
    assert_int_equal(GNI_CQ_GET_DATA(entry), 0x123456789abc);
    assert_int_equal(GNI_CqGetEvent(b.dst_cq, &entry), GNI_RC_NOT_DONE); /* it was taken */
}

static void test_wait_times_out_when_its_time_is_over(void **state)
{
    uint64_t before_ns = emu_clock_ns();
    gni_cq_entry_t entry = 0;

    (void)state;
    assert_int_equal(GNI_CqWaitEvent(b.dst_cq, 30, &entry), GNI_RC_TIMEOUT);
    assert_true(emu_clock_ns() - before_ns >= 30000000);
    assert_true(emu_clock_ns() - before_ns < 5000000000);
}

static void test_wait_with_timeout_0_only_looks(void **state)
{
    gni_cq_entry_t entry = 0;

    (void)state;
    assert_int_equal(GNI_CqWaitEvent(b.dst_cq, 0, &entry), GNI_RC_TIMEOUT);
    write_queue(&a, &b, 5);
    assert_int_equal(GNI_CqWaitEvent(b.dst_cq, 0, &entry), GNI_RC_SUCCESS);
    assert_int_equal(GNI_CQ_GET_DATA(entry), 5);
}

static void test_wait_wakes_for_an_event(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 200; i++) {
        struct sleeper s;

        start_sleeper(&s, &b, i % 2 ? WAIT_EVENT : VECTOR_WAIT);
        write_queue(&a, &b, 1000 + i);
        join_sleeper(&s);
        assert_int_equal(s.rc, GNI_RC_SUCCESS);
        assert_int_equal(GNI_CQ_GET_DATA(s.entry), 1000 + i);
    }
}

static void test_wait_reports_a_failed_transaction_with_its_entry(void **state)
{
    gni_post_descriptor_t *done = NULL;
    gni_post_descriptor_t d;
    gni_cq_entry_t entry = 0;

    (void)state;
    post_failure(&d);
    assert_int_equal(GNI_CqWaitEvent(a.src_cq, PATIENCE, &entry), GNI_RC_TRANSACTION_ERROR);
    assert_true(entry != 0);
    assert_false(GNI_CQ_STATUS_OK(entry));
    assert_int_equal(GNI_GetCompleted(a.src_cq, entry, &done), GNI_RC_TRANSACTION_ERROR);
    assert_ptr_equal(done, &d);
}

static void test_wait_on_a_queue_that_does_not_block_is_refused_with_entry_0(void **state)
{
    gni_cq_handle_t cqs[2] = { b.dst_cq, NULL };
    gni_cq_entry_t entry = 77;
    uint32_t which = 99;

    (void)state;
    assert_int_equal(GNI_CqCreate(b.nic, 8, 0, GNI_CQ_NOBLOCK, NULL, NULL, &cqs[1]), GNI_RC_SUCCESS);
    assert_int_equal(GNI_CqWaitEvent(cqs[1], PATIENCE, &entry), GNI_RC_ERROR_RESOURCE);
    assert_int_equal(entry, 0);
    entry = 77;
    assert_int_equal(GNI_CqVectorWaitEvent(cqs, 2, PATIENCE, &entry, &which), GNI_RC_ERROR_RESOURCE);
    assert_int_equal(entry, 0);
    assert_int_equal(GNI_CqVectorMonitor(cqs, 2, PATIENCE, &which), GNI_RC_ERROR_RESOURCE);
    assert_int_equal(which, 99);
    assert_int_equal(GNI_CqDestroy(cqs[1]), GNI_RC_SUCCESS);
}

static void test_wait_reports_each_loss_once_and_goes_on(void **state)
{
    gni_cq_entry_t entry = 0;

    setenv("EMUNIC_CQ_FLOOR", "0", 1);
    gx_open(&b, &fx, 1, 11, 0);
    unsetenv("EMUNIC_CQ_FLOOR");
    gx_open(&a, &fx, 0, 10, 0);
    gx_connect(&a, &b);
    for (unsigned i = 0; i < 200; i++) {
        gni_post_descriptor_t d = gx_put(&a, &b, 0, 8, GNI_CQMODE_GLOBAL_EVENT | GNI_CQMODE_REMOTE_EVENT);
        gni_post_descriptor_t *done;

        assert_int_equal(GNI_PostFma(a.ep, &d), GNI_RC_SUCCESS);
        assert_int_equal(gx_complete(a.src_cq, &done), GNI_RC_SUCCESS);
    }
    for (unsigned i = 0; i < 128; i++)
        assert_int_equal(GNI_CqWaitEvent(b.dst_cq, PATIENCE, &entry), GNI_RC_SUCCESS);
    for (unsigned i = 128; i < 200; i++) {
        assert_int_equal(GNI_CqWaitEvent(b.dst_cq, PATIENCE, &entry), GNI_RC_ERROR_RESOURCE);
        assert_true(GNI_CQ_OVERRUN(entry) != 0);
    }
    assert_int_equal(GNI_CqWaitEvent(b.dst_cq, 0, &entry), GNI_RC_TIMEOUT);
    write_queue(&a, &b, 5);
    assert_int_equal(GNI_CqWaitEvent(b.dst_cq, PATIENCE, &entry), GNI_RC_SUCCESS);
    close_pair(state);
}

static void on_signal(int number)
{
    (void)number;
}

static void test_signal_ends_a_wait_with_not_done(void **state)
{
    struct sigaction action = { .sa_handler = on_signal };
    struct sleeper s;

    (void)state;
    sigaction(SIGUSR1, &action, NULL);
    for (enum call call = WAIT_EVENT; call <= VECTOR_MONITOR; call++) {
        start_sleeper(&s, &b, call);
        /* Again and again: the first may come before it sleeps. */
        while (!atomic_load(&s.has_returned)) {
            pthread_kill(s.thread, SIGUSR1);
            sched_yield();
        }
        join_sleeper(&s);
        assert_int_equal(s.rc, GNI_RC_NOT_DONE);
    }
    signal(SIGUSR1, SIG_DFL);
}

static void count_entry(gni_cq_entry_t *entry, void *context)
{
    gni_cq_entry_t *seen = context;

    *seen = *entry;
}

static void test_wait_calls_the_queues_handler_with_the_entry(void **state)
{
    gni_post_descriptor_t d = gx_put(&a, &b, 0, 8, GNI_CQMODE_GLOBAL_EVENT);
    gni_post_descriptor_t *done;
    gni_cq_entry_t seen = 0;
    gni_cq_entry_t entry = 0;
    gni_cq_handle_t cq;

    (void)state;
    assert_int_equal(GNI_CqCreate(a.nic, 8, 0, GNI_CQ_BLOCKING, count_entry, &seen, &cq), GNI_RC_SUCCESS);
    assert_int_equal(GNI_EpDestroy(a.ep), GNI_RC_SUCCESS);
    assert_int_equal(GNI_EpCreate(a.nic, cq, &a.ep), GNI_RC_SUCCESS);
    assert_int_equal(GNI_EpBind(a.ep, b.nic_addr, b.inst_id), GNI_RC_SUCCESS);
    assert_int_equal(GNI_PostFma(a.ep, &d), GNI_RC_SUCCESS);
    assert_int_equal(GNI_CqWaitEvent(cq, PATIENCE, &entry), GNI_RC_SUCCESS);
    assert_true(entry != 0);
    assert_true(seen == entry);
    assert_int_equal(GNI_GetCompleted(cq, entry, &done), GNI_RC_SUCCESS);
}

/* ---- several queues ---- */

static void test_vector_wait_tells_which_queue_and_takes_its_event(void **state)
{
    gni_cq_handle_t cqs[3] = { NULL, b.dst_cq, b.src_cq };
    gni_cq_entry_t entry = 0;
    uint32_t which = 99;

    (void)state;
    assert_int_equal(GNI_CqCreate(b.nic, 8, 0, GNI_CQ_BLOCKING, NULL, NULL, &cqs[0]), GNI_RC_SUCCESS);
    write_queue(&a, &b, 8);
    assert_int_equal(GNI_CqVectorWaitEvent(cqs, 3, PATIENCE, &entry, &which), GNI_RC_SUCCESS);
    assert_int_equal(which, 1);
    assert_int_equal(GNI_CQ_GET_DATA(entry), 8);
    assert_int_equal(GNI_CqVectorWaitEvent(cqs, 3, 10, &entry, &which), GNI_RC_TIMEOUT);
    assert_int_equal(GNI_CqDestroy(cqs[0]), GNI_RC_SUCCESS);
}

static void test_vector_wait_reports_a_failed_transaction(void **state)
{
    gni_cq_handle_t cqs[2] = { a.dst_cq, a.src_cq };
    gni_post_descriptor_t *done = NULL;
    gni_post_descriptor_t d;
    gni_cq_entry_t entry = 0;
    uint32_t which = 99;

    (void)state;
    post_failure(&d);
    assert_int_equal(GNI_CqVectorWaitEvent(cqs, 2, PATIENCE, &entry, &which), GNI_RC_TRANSACTION_ERROR);
    assert_int_equal(which, 1);
    assert_int_equal(GNI_GetCompleted(a.src_cq, entry, &done), GNI_RC_TRANSACTION_ERROR);
    assert_ptr_equal(done, &d);
}

static void test_monitor_takes_nothing_and_reports_as_long_as_there_is_something(void **state)
{
    gni_cq_handle_t cqs[2] = { b.src_cq, b.dst_cq };
    gni_cq_entry_t entry = 0;
    uint32_t which = 99;

    (void)state;
    assert_int_equal(GNI_CqVectorMonitor(cqs, 2, 10, &which), GNI_RC_TIMEOUT);
    assert_int_equal(which, 99);
    write_queue(&a, &b, 6);
    for (unsigned i = 0; i < 5; i++) {
        which = 99;
        assert_int_equal(GNI_CqVectorMonitor(cqs, 2, PATIENCE, &which), GNI_RC_SUCCESS);
        assert_int_equal(which, 1);
    }
    assert_int_equal(GNI_CqGetEvent(b.dst_cq, &entry), GNI_RC_SUCCESS);
    assert_int_equal(GNI_CQ_GET_DATA(entry), 6);
    assert_int_equal(GNI_CqVectorMonitor(cqs, 2, 10, &which), GNI_RC_TIMEOUT);
}

/* A silent post that went well, and a post of a destroyed end point, have entries inside the library only. */
static void test_monitor_and_test_do_not_report_what_nobody_can_take(void **state)
{
    gni_post_descriptor_t silent[3];
    gni_post_descriptor_t orphan;
    gni_post_descriptor_t seen = gx_put(&b, &a, 64, 8, GNI_CQMODE_GLOBAL_EVENT);
    gni_post_descriptor_t *done = NULL;
    gni_ep_handle_t ep;
    uint32_t which = 99;

    (void)state;
    for (unsigned i = 0; i < 3; i++) {
        silent[i] = gx_put(&b, &a, 8 * i, 8, GNI_CQMODE_SILENT);
        assert_int_equal(GNI_PostFma(b.ep, &silent[i]), GNI_RC_SUCCESS);
    }
    assert_int_equal(GNI_CqVectorMonitor(&b.src_cq, 1, 50, &which), GNI_RC_TIMEOUT);
    assert_int_equal(GNI_CqTestEvent(b.src_cq), GNI_RC_NOT_DONE);
    assert_int_equal(GNI_EpCreate(b.nic, b.src_cq, &ep), GNI_RC_SUCCESS);
    assert_int_equal(GNI_EpBind(ep, a.nic_addr, a.inst_id), GNI_RC_SUCCESS);
    orphan = gx_put(&b, &a, 32, 8, GNI_CQMODE_GLOBAL_EVENT);
    assert_int_equal(GNI_PostFma(ep, &orphan), GNI_RC_SUCCESS);
    assert_int_equal(GNI_EpDestroy(ep), GNI_RC_SUCCESS);
    assert_int_equal(GNI_CqVectorMonitor(&b.src_cq, 1, 50, &which), GNI_RC_TIMEOUT);
    assert_int_equal(GNI_CqTestEvent(b.src_cq), GNI_RC_NOT_DONE);
    assert_int_equal(which, 99);
    silent[0] = gx_put(&b, &a, 0, 8, GNI_CQMODE_SILENT);
    assert_int_equal(GNI_PostFma(b.ep, &silent[0]), GNI_RC_SUCCESS);
    assert_int_equal(GNI_PostFma(b.ep, &seen), GNI_RC_SUCCESS);
    assert_int_equal(GNI_CqVectorMonitor(&b.src_cq, 1, PATIENCE, &which), GNI_RC_SUCCESS);
    assert_int_equal(GNI_CqTestEvent(b.src_cq), GNI_RC_SUCCESS);
    assert_int_equal(gx_complete(b.src_cq, &done), GNI_RC_SUCCESS);
    assert_ptr_equal(done, &seen);
    assert_int_equal(GNI_CqTestEvent(b.src_cq), GNI_RC_NOT_DONE);
}

/* As libfabric and Open MPI end their progress thread. */
static void test_queue_write_to_oneself_wakes_the_monitor(void **state)
{
    gni_ep_handle_t self;
    gni_post_descriptor_t d = { .type = GNI_POST_CQWRITE,
                                .cq_mode = GNI_CQMODE_GLOBAL_EVENT,
                                .cqwrite_value = 0xdead,
                                .dlvr_mode = GNI_DLVMODE_IN_ORDER,
                                .remote_mem_hndl = b.mem_hndl };

    (void)state;
    assert_int_equal(GNI_EpCreate(b.nic, a.src_cq, &self), GNI_RC_INVALID_PARAM); /* another NIC's queue */
    assert_int_equal(GNI_EpCreate(b.nic, b.src_cq, &self), GNI_RC_SUCCESS);
    assert_int_equal(GNI_EpBind(self, b.nic_addr, b.inst_id), GNI_RC_SUCCESS);
    for (unsigned i = 0; i < 200; i++) {
        gni_post_descriptor_t *done;
        gni_cq_entry_t entry = 0;
        struct sleeper s;

        start_sleeper(&s, &b, VECTOR_MONITOR);
        assert_int_equal(GNI_PostCqWrite(self, &d), GNI_RC_SUCCESS);
        join_sleeper(&s);
        assert_int_equal(s.rc, GNI_RC_SUCCESS);
        assert_int_equal(gx_next(b.dst_cq, &entry), GNI_RC_SUCCESS);
        assert_int_equal(GNI_CQ_GET_DATA(entry), 0xdead);
        assert_int_equal(gx_complete(b.src_cq, &done), GNI_RC_SUCCESS);
    }
    assert_int_equal(GNI_EpDestroy(self), GNI_RC_SUCCESS);
}

static void test_every_sleeper_wakes_for_one_event(void **state)
{
    struct sleeper s[4];

    (void)state;
    for (unsigned round = 0; round < 50; round++) {
        gni_cq_entry_t entry;

        for (unsigned i = 0; i < 4; i++)
            start_sleeper(&s[i], &b, VECTOR_MONITOR);
        write_queue(&a, &b, 1);
        for (unsigned i = 0; i < 4; i++) {
            join_sleeper(&s[i]);
            assert_int_equal(s[i].rc, GNI_RC_SUCCESS);
        }
        assert_int_equal(GNI_CqGetEvent(b.dst_cq, &entry), GNI_RC_SUCCESS);
    }
}

static void test_each_event_goes_to_one_of_the_waiting_threads(void **state)
{
    struct sleeper s[4];
    unsigned sum = 0;

    (void)state;
    for (unsigned round = 0; round < 50; round++) {
        for (unsigned i = 0; i < 4; i++)
            start_sleeper(&s[i], &b, i % 2 ? WAIT_EVENT : VECTOR_WAIT);
        for (unsigned i = 0; i < 4; i++)
            write_queue(&a, &b, 1u << (8 * i));
        for (unsigned i = 0; i < 4; i++) {
            join_sleeper(&s[i]);
            assert_int_equal(s[i].rc, GNI_RC_SUCCESS);
            sum += (unsigned)GNI_CQ_GET_DATA(s[i].entry);
        }
        assert_int_equal(sum, 0x01010101);
        sum = 0;
    }
}

static void test_wrong_arguments_are_refused(void **state)
{
    gni_cq_handle_t cqs[2] = { b.dst_cq, NULL };
    gni_cq_handle_t stale;
    gni_cq_entry_t entry;
    uint32_t which;
    const struct {
        const char *name;
        gni_cq_handle_t *cqs;
        uint32_t n;
        gni_cq_entry_t *entry;
        uint32_t *which;
    } rows[] = {
        { "a queue that is none", cqs, 2, &entry, &which },
        { "no queue", cqs, 0, &entry, &which },
        { "no vector", NULL, 1, &entry, &which },
        { "no entry", cqs, 1, NULL, &which },
        { "no index", cqs, 1, &entry, NULL },
    };

    (void)state;
    assert_int_equal(GNI_CqWaitEvent(NULL, 1, &entry), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_CqWaitEvent((gni_cq_handle_t)a.ep, 1, &entry), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_CqWaitEvent(b.dst_cq, 1, NULL), GNI_RC_INVALID_PARAM);
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        assert_row_equal(rows[i].name, GNI_CqVectorWaitEvent(rows[i].cqs, rows[i].n, 1, rows[i].entry, rows[i].which),
                         GNI_RC_INVALID_PARAM);
        if (rows[i].entry)
            assert_row_equal(rows[i].name, GNI_CqVectorMonitor(rows[i].cqs, rows[i].n, 1, rows[i].which),
                             GNI_RC_INVALID_PARAM);
    }
    assert_int_equal(GNI_CqCreate(b.nic, 8, 0, GNI_CQ_BLOCKING, NULL, NULL, &stale), GNI_RC_SUCCESS);
    assert_int_equal(GNI_CqDestroy(stale), GNI_RC_SUCCESS);
    assert_int_equal(GNI_CqWaitEvent(stale, 1, &entry), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_CqVectorMonitor(&stale, 1, 1, &which), GNI_RC_INVALID_PARAM);
}

#define MANY 300u

/* More than the kernel lets a thread sleep on at one time. */
static void test_vector_may_hold_hundreds_of_queues(void **state)
{
    static gni_cq_handle_t cqs[MANY + 1];
    gni_cq_entry_t entry = 0;
    uint32_t which = 99;

    (void)state;
    for (unsigned i = 0; i < MANY; i++)
        assert_int_equal(GNI_CqCreate(b.nic, 8, 0, GNI_CQ_BLOCKING, NULL, NULL, &cqs[i]), GNI_RC_SUCCESS);
    cqs[MANY] = b.dst_cq;
    assert_int_equal(GNI_CqVectorMonitor(cqs, MANY + 1, 5, &which), GNI_RC_TIMEOUT);
    for (unsigned i = 0; i < 20; i++) {
        struct sleeper s;

        start_sleeper(&s, &b, WAIT_EVENT); /* somebody else may sleep on the same queue */
        write_queue(&a, &b, i);
        join_sleeper(&s);
        write_queue(&a, &b, 1000 + i);
        assert_int_equal(GNI_CqVectorMonitor(cqs, MANY + 1, PATIENCE, &which), GNI_RC_SUCCESS);
        assert_int_equal(which, MANY);
        assert_int_equal(GNI_CqVectorWaitEvent(cqs, MANY + 1, PATIENCE, &entry, &which), GNI_RC_SUCCESS);
        assert_int_equal(GNI_CQ_GET_DATA(entry), 1000 + i);
    }
    assert_int_equal(GNI_CqDestroy(cqs[7]), GNI_RC_SUCCESS);
    assert_int_equal(GNI_CqVectorMonitor(cqs, MANY + 1, 5, &which), GNI_RC_INVALID_PARAM);
    for (unsigned i = 0; i < MANY; i++)
        GNI_CqDestroy(cqs[i]);
}

/* ---- delay_count ---- */

/* b's destination queue wakes sleepers for eight events at a time. */
static gni_mem_handle_t delay_queue(void)
{
    gni_mem_handle_t handle;

    assert_int_equal(GNI_MemDeregister(b.nic, &b.mem_hndl), GNI_RC_SUCCESS);
    assert_int_equal(GNI_CqDestroy(b.dst_cq), GNI_RC_SUCCESS);
    assert_int_equal(GNI_CqCreate(b.nic, 64, 8, GNI_CQ_BLOCKING, NULL, NULL, &b.dst_cq), GNI_RC_SUCCESS);
    assert_int_equal(GNI_MemRegister(b.nic, (uint64_t)(uintptr_t)b.mem, GX_BYTES, b.dst_cq, GNI_MEM_READWRITE,
                                     (uint32_t)-1, &handle),
                     GNI_RC_SUCCESS);
    return handle;
}

static void test_delayed_queue_wakes_for_as_many_events_as_it_was_told(void **state)
{
    (void)state;
    b.mem_hndl = delay_queue();
    for (unsigned round = 0; round < 20; round++) {
        struct sleeper s;
        gni_cq_entry_t entry;

        start_sleeper(&s, &b, round % 2 ? WAIT_EVENT : VECTOR_WAIT);
        for (uint64_t i = 0; i < 8; i++)
            write_queue(&a, &b, i);
        join_sleeper(&s);
        assert_int_equal(s.rc, GNI_RC_SUCCESS);
        assert_int_equal(GNI_CQ_GET_DATA(s.entry), 0);
        for (uint64_t i = 1; i < 8; i++) {
            assert_int_equal(gx_next(b.dst_cq, &entry), GNI_RC_SUCCESS);
            assert_int_equal(GNI_CQ_GET_DATA(entry), i);
        }
    }
}

static void test_too_few_events_of_a_delayed_queue_are_found_all_the_same(void **state)
{
    struct sleeper s;

    (void)state;
    b.mem_hndl = delay_queue();
    start_sleeper(&s, &b, WAIT_EVENT);
    write_queue(&a, &b, 5);
    join_sleeper(&s);
    assert_int_equal(s.rc, GNI_RC_SUCCESS);
    assert_int_equal(GNI_CQ_GET_DATA(s.entry), 5);
}

/* The time limit is no reason to leave an event behind. */
static void *write_one(void *arg)
{
    (void)arg;
    write_queue(&a, &b, 6);
    return NULL;
}

static void test_wait_that_times_out_looks_once_more(void **state)
{
    (void)state;
    b.mem_hndl = delay_queue();
    for (unsigned round = 0; round < 5; round++) {
        gni_cq_entry_t entry = 0;
        pthread_t thread;

        assert_int_equal(pthread_create(&thread, NULL, write_one, NULL), 0);
        if (GNI_CqWaitEvent(b.dst_cq, 100, &entry) != GNI_RC_SUCCESS) { /* so slow is the machine */
            assert_int_equal(pthread_join(thread, NULL), 0);
            assert_int_equal(gx_next(b.dst_cq, &entry), GNI_RC_SUCCESS);
            continue;
        }
        assert_int_equal(pthread_join(thread, NULL), 0);
        assert_int_equal(GNI_CQ_GET_DATA(entry), 6);
        return;
    }
    fail_msg("five times in a row there was an event and the wait did not look");
}

/* ---- masks ---- */

static void test_masked_queue_is_not_waited_for(void **state)
{
    gni_cq_entry_t entry = 0;
    uint32_t which = 99;

    (void)state;
    assert_int_equal(GNI_CqInterruptMask(b.dst_cq), GNI_RC_SUCCESS);
    assert_int_equal(GNI_CqInterruptMask(b.dst_cq), GNI_RC_SUCCESS);
    assert_int_equal(GNI_CqWaitEvent(b.dst_cq, FOR_EVER, &entry), GNI_RC_NOT_DONE);
    assert_int_equal(GNI_CqVectorMonitor(&b.dst_cq, 1, FOR_EVER, &which), GNI_RC_NOT_DONE);
    assert_int_equal(GNI_CqVectorWaitEvent(&b.dst_cq, 1, FOR_EVER, &entry, &which), GNI_RC_NOT_DONE);
    write_queue(&a, &b, 3);
    assert_int_equal(GNI_CqWaitEvent(b.dst_cq, FOR_EVER, &entry), GNI_RC_SUCCESS); /* something to do is done */
    assert_int_equal(GNI_CQ_GET_DATA(entry), 3);
    assert_int_equal(GNI_CqInterruptUnmask(b.dst_cq), GNI_RC_SUCCESS);
    assert_int_equal(GNI_CqWaitEvent(b.dst_cq, FOR_EVER, &entry), GNI_RC_NOT_DONE); /* it counts */
    assert_int_equal(GNI_CqInterruptUnmask(b.dst_cq), GNI_RC_SUCCESS);
    assert_int_equal(GNI_CqInterruptUnmask(b.dst_cq), GNI_RC_NOT_DONE);
    assert_int_equal(GNI_CqWaitEvent(b.dst_cq, 5, &entry), GNI_RC_TIMEOUT);
}

static void test_mask_wakes_who_sleeps_already(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 20; i++) {
        struct sleeper s;

        start_sleeper(&s, &b, i % 2 ? WAIT_EVENT : VECTOR_MONITOR);
        assert_int_equal(GNI_CqInterruptMask(b.dst_cq), GNI_RC_SUCCESS);
        join_sleeper(&s);
        assert_int_equal(s.rc, GNI_RC_NOT_DONE);
        assert_int_equal(GNI_CqInterruptUnmask(b.dst_cq), GNI_RC_SUCCESS);
    }
}

static void test_mask_needs_a_blocking_queue(void **state)
{
    gni_cq_handle_t cq;

    (void)state;
    assert_int_equal(GNI_CqCreate(b.nic, 8, 0, GNI_CQ_NOBLOCK, NULL, NULL, &cq), GNI_RC_SUCCESS);
    assert_int_equal(GNI_CqInterruptMask(cq), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_CqInterruptUnmask(cq), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_CqInterruptMask(NULL), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_CqInterruptUnmask(NULL), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_CqDestroy(cq), GNI_RC_SUCCESS);
}

/* ---- between processes ---- */

#define PINGS 400

/* Both sleep in turn; a wake-up that gets lost shows as a time-out. */
static int play(struct fx_rank *r)
{
    gni_mem_handle_t *handles = r->shared;
    enum call call = *(enum call *)r->arg;
    uint32_t peer = 1 - r->rank;
    gni_post_descriptor_t d = { .type = GNI_POST_CQWRITE, .cq_mode = GNI_CQMODE_SILENT };
    struct gx_side side;

    setenv("EMUNIC_SPIN", "0", 1);
    gx_open(&side, r->fx, r->fx->nids[r->rank], 60 + r->rank, 0);
    FX_CHECK(GNI_EpCreate(side.nic, side.src_cq, &side.ep) == GNI_RC_SUCCESS);
    FX_CHECK(GNI_EpBind(side.ep, r->fx->nids[peer], 60 + peer) == GNI_RC_SUCCESS);
    handles[r->rank] = side.mem_hndl;
    pthread_barrier_wait(r->barrier);
    d.remote_mem_hndl = handles[peer];
    for (uint64_t n = 0; n < PINGS; n++) {
        gni_cq_entry_t entry = 0;
        uint32_t which;

        d.cqwrite_value = n;
        if (r->rank == n % 2) {
            FX_CHECK(GNI_PostCqWrite(side.ep, &d) == GNI_RC_SUCCESS);
            continue;
        }
        if (call == WAIT_EVENT) {
            FX_CHECK(GNI_CqWaitEvent(side.dst_cq, PATIENCE, &entry) == GNI_RC_SUCCESS);
        } else {
            FX_CHECK(GNI_CqVectorMonitor(&side.dst_cq, 1, PATIENCE, &which) == GNI_RC_SUCCESS);
            FX_CHECK(GNI_CqGetEvent(side.dst_cq, &entry) == GNI_RC_SUCCESS);
        }
        FX_CHECK(GNI_CQ_GET_DATA(entry) == n);
    }
    pthread_barrier_wait(r->barrier);
    gx_close(&side);
    return 0;
}

static void test_event_of_another_process_wakes_a_wait(void **state)
{
    enum call call = WAIT_EVENT;

    (void)state;
    assert_int_equal(fx_run(&fx, 2, play, &call), 0);
}

static void test_event_of_another_process_wakes_a_monitor(void **state)
{
    enum call call = VECTOR_MONITOR;

    (void)state;
    assert_int_equal(fx_run(&fx, 2, play, &call), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        POLLING(test_wait_returns_an_event_that_is_there),
        POLLING(test_wait_times_out_when_its_time_is_over),
        SLEEPING(test_wait_times_out_when_its_time_is_over),
        POLLING(test_wait_with_timeout_0_only_looks),
        SLEEPING(test_wait_with_timeout_0_only_looks),
        POLLING(test_wait_wakes_for_an_event),
        SLEEPING(test_wait_wakes_for_an_event),
        POLLING(test_wait_reports_a_failed_transaction_with_its_entry),
        POLLING(test_wait_on_a_queue_that_does_not_block_is_refused_with_entry_0),
        cmocka_unit_test(test_wait_reports_each_loss_once_and_goes_on),
        SLEEPING(test_signal_ends_a_wait_with_not_done),
        POLLING(test_wait_calls_the_queues_handler_with_the_entry),
        POLLING(test_vector_wait_tells_which_queue_and_takes_its_event),
        POLLING(test_vector_wait_reports_a_failed_transaction),
        POLLING(test_monitor_takes_nothing_and_reports_as_long_as_there_is_something),
        POLLING(test_monitor_and_test_do_not_report_what_nobody_can_take),
        SLEEPING(test_queue_write_to_oneself_wakes_the_monitor),
        SLEEPING(test_every_sleeper_wakes_for_one_event),
        SLEEPING(test_each_event_goes_to_one_of_the_waiting_threads),
        POLLING(test_wrong_arguments_are_refused),
        SLEEPING(test_vector_may_hold_hundreds_of_queues),
        SLEEPING(test_delayed_queue_wakes_for_as_many_events_as_it_was_told),
        SLEEPING(test_too_few_events_of_a_delayed_queue_are_found_all_the_same),
        SLEEPING(test_wait_that_times_out_looks_once_more),
        POLLING(test_masked_queue_is_not_waited_for),
        SLEEPING(test_mask_wakes_who_sleeps_already),
        POLLING(test_mask_needs_a_blocking_queue),
        cmocka_unit_test(test_event_of_another_process_wakes_a_wait),
        cmocka_unit_test(test_event_of_another_process_wakes_a_monitor),
    };

    return cmocka_run_group_tests(tests, start_emunic, stop_emunic);
}
