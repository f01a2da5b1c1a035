/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Calls that wait for completion queues: time limits, wake-ups, masks, signals, cancelled threads, objects that go
 * away meanwhile. Datagram waits: test_datagram.c. Specification: ugni.md 1.6, 1.7, 4.9, 7.22, 7.28.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "emunic/base/clock.h"
#include "tests/common/gni.h"
#include "tests/common/proc.h"

#define FOR_EVER ((uint64_t)-1)
#define PATIENCE 10000u         /* ms */

static struct fx fx;
static struct gx_side a;
static struct gx_side b;

/* ---- fixture ---- */

static int open_sides(void **state)
{
    (void)state;
    gx_open(&a, &fx, 0, 10, 0);
    gx_open(&b, &fx, 1, 11, 0);
    gx_connect(&a, &b);
    return 0;
}

static int close_sides(void **state)
{
    (void)state;
    gx_close(&a);
    gx_close(&b);
    return 0;
}

/* A blocking call goes to sleep at its first chance instead of polling for a while. */
static int open_sleepers(void **state)
{
    setenv("EMUNIC_SPIN", "0", 1);
    open_sides(state);
    unsetenv("EMUNIC_SPIN");
    return 0;
}

/* ---- short hands ---- */

/* An entry with that value on a queue of `to` that has registered memory: a write to its queue. */
static void write_queue(const struct gx_side *from, const struct gx_side *to, uint64_t value)
{
    gni_post_descriptor_t d = { .type = GNI_POST_CQWRITE, .cq_mode = GNI_CQMODE_GLOBAL_EVENT, .cqwrite_value = value,
                                .dlvr_mode = GNI_DLVMODE_IN_ORDER, .remote_mem_hndl = to->mem_hndl };
    gni_post_descriptor_t *done;

    assert_int_equal(GNI_PostCqWrite(from->ep, &d), GNI_RC_SUCCESS);
    assert_int_equal(gx_complete(from->src_cq, &done), GNI_RC_SUCCESS);
}

/* A put into memory that is not registered: one failed entry on the source queue of a. */
static void post_failure(gni_post_descriptor_t *d)
{
    *d = gx_put(&a, &b, 0, 8, GNI_CQMODE_GLOBAL_EVENT);
    d->remote_addr += GX_BYTES;
    assert_int_equal(GNI_PostFma(a.ep, d), GNI_RC_SUCCESS);
}

enum call { WAIT_EVENT, VECTOR_WAIT, VECTOR_MONITOR, POST_DATA_WAIT, PROBE_WAIT, N_CALLS,
            POST_DATA_WAIT_PLAIN /* needs a datagram of its own kind */ };

/* A thread inside a blocking call. */
struct sleeper {
    pthread_t thread;
    pid_t tid;                  /* once it is there */
    enum call call;
    gni_nic_handle_t nic;
    gni_ep_handle_t ep;
    gni_cq_handle_t cqs[2];
    int cancel_type;
    _Atomic bool is_there;      /* about to call */
    _Atomic bool has_returned;
    gni_return_t rc;
    gni_cq_entry_t entry;
    uint32_t which;
    uint64_t id;
};

static gni_return_t call_and_wait(struct sleeper *s)
{
    gni_post_state_t post_state;

    switch (s->call) {
    case WAIT_EVENT:
        return GNI_CqWaitEvent(s->cqs[0], FOR_EVER, &s->entry);
    case VECTOR_WAIT:
        return GNI_CqVectorWaitEvent(s->cqs, 2, FOR_EVER, &s->entry, &s->which);
    case VECTOR_MONITOR:
        return GNI_CqVectorMonitor(s->cqs, 2, FOR_EVER, &s->which);
    case POST_DATA_WAIT:
        return GNI_EpPostDataWaitById(s->ep, 1, (uint32_t)-1, &post_state, NULL, NULL);
    case POST_DATA_WAIT_PLAIN:
        return GNI_EpPostDataWait(s->ep, (uint32_t)-1, &post_state, NULL, NULL);
    default:
        return GNI_PostdataProbeWaitById(s->nic, (uint32_t)-1, &s->id);
    }
}

static void *sleep_in_thread(void *arg)
{
    struct sleeper *s = arg;

    pthread_setcanceltype(s->cancel_type, NULL);
    s->tid = gettid();
    atomic_store(&s->is_there, true);
    s->rc = call_and_wait(s);
    atomic_store(&s->has_returned, true);
    return NULL;
}

static void start_sleeper(struct sleeper *s, const struct gx_side *side, enum call call)
{
    *s = (struct sleeper){ .call = call, .nic = side->nic, .ep = side->ep, .cqs = { side->dst_cq, side->src_cq },
                           .cancel_type = PTHREAD_CANCEL_DEFERRED, .rc = GNI_RC_ERROR_NOMEM };
    assert_int_equal(pthread_create(&s->thread, NULL, sleep_in_thread, s), 0);
    while (!atomic_load(&s->is_there))
        sched_yield();
}

static void join_sleeper(struct sleeper *s)
{
    assert_int_equal(pthread_join(s->thread, NULL), 0);
    assert_true(atomic_load(&s->has_returned));
}

/* ---- GNI_CqWaitEvent ---- */

static void test_wait_returns_an_event_that_is_there(void **state)
{
    gni_cq_entry_t entry = 0;

    (void)state;
    write_queue(&a, &b, 0x123456789abc);
    assert_int_equal(GNI_CqWaitEvent(b.dst_cq, FOR_EVER, &entry), GNI_RC_SUCCESS);
    assert_int_equal(GNI_CQ_GET_DATA(entry), 0x123456789abc);
    assert_int_equal(GNI_CqGetEvent(b.dst_cq, &entry), GNI_RC_NOT_DONE);    /* it was taken */
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

static void test_wait_reports_an_overrun_once_and_goes_on(void **state)
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
    assert_int_equal(GNI_CqWaitEvent(b.dst_cq, PATIENCE, &entry), GNI_RC_ERROR_RESOURCE);
    assert_true(GNI_CQ_OVERRUN(entry) != 0);
    assert_int_equal(GNI_CqWaitEvent(b.dst_cq, 0, &entry), GNI_RC_TIMEOUT);
    write_queue(&a, &b, 5);
    assert_int_equal(GNI_CqWaitEvent(b.dst_cq, PATIENCE, &entry), GNI_RC_SUCCESS);
    close_sides(state);
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

/* As libfabric and Open MPI end their progress thread. */
static void test_queue_write_to_oneself_wakes_the_monitor(void **state)
{
    gni_ep_handle_t self;
    gni_post_descriptor_t d = { .type = GNI_POST_CQWRITE, .cq_mode = GNI_CQMODE_GLOBAL_EVENT, .cqwrite_value = 0xdead,
                                .dlvr_mode = GNI_DLVMODE_IN_ORDER, .remote_mem_hndl = b.mem_hndl };

    (void)state;
    assert_int_equal(GNI_EpCreate(b.nic, a.src_cq, &self), GNI_RC_INVALID_PARAM);   /* another NIC's queue */
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

    (void)state;
    assert_int_equal(GNI_CqWaitEvent(NULL, 1, &entry), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_CqWaitEvent((gni_cq_handle_t)a.ep, 1, &entry), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_CqWaitEvent(b.dst_cq, 1, NULL), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_CqVectorWaitEvent(cqs, 2, 1, &entry, &which), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_CqVectorWaitEvent(cqs, 0, 1, &entry, &which), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_CqVectorWaitEvent(NULL, 1, 1, &entry, &which), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_CqVectorWaitEvent(cqs, 1, 1, NULL, &which), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_CqVectorWaitEvent(cqs, 1, 1, &entry, NULL), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_CqVectorMonitor(cqs, 2, 1, &which), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_CqVectorMonitor(cqs, 0, 1, &which), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_CqVectorMonitor(NULL, 1, 1, &which), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_CqVectorMonitor(cqs, 1, 1, NULL), GNI_RC_INVALID_PARAM);
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

        start_sleeper(&s, &b, WAIT_EVENT);      /* somebody else may sleep on the same queue */
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
        if (GNI_CqWaitEvent(b.dst_cq, 100, &entry) != GNI_RC_SUCCESS) {     /* so slow is the machine */
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
    assert_int_equal(GNI_CqWaitEvent(b.dst_cq, FOR_EVER, &entry), GNI_RC_SUCCESS);     /* something to do is done */
    assert_int_equal(GNI_CQ_GET_DATA(entry), 3);
    assert_int_equal(GNI_CqInterruptUnmask(b.dst_cq), GNI_RC_SUCCESS);
    assert_int_equal(GNI_CqWaitEvent(b.dst_cq, FOR_EVER, &entry), GNI_RC_NOT_DONE);    /* it counts */
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

/* ---- cancelled threads ---- */

/* Everything that a cancelled thread could have broken. */
static void expect_sound_nic(const struct gx_side *side, const struct gx_side *peer)
{
    gni_post_descriptor_t d = gx_put(side, peer, 0, 8, GNI_CQMODE_GLOBAL_EVENT | GNI_CQMODE_REMOTE_EVENT);
    gni_post_descriptor_t *done;
    gni_mem_handle_t handle;
    gni_cq_entry_t entry;
    gni_post_state_t post_state;
    char byte;

    assert_int_equal(GNI_PostFma(side->ep, &d), GNI_RC_SUCCESS);
    assert_int_equal(gx_complete(side->src_cq, &done), GNI_RC_SUCCESS);
    assert_int_equal(gx_next(peer->dst_cq, &entry), GNI_RC_SUCCESS);
    assert_int_equal(GNI_MemRegister(side->nic, (uint64_t)(uintptr_t)side->mem, 4096, NULL, GNI_MEM_READWRITE,
                                     (uint32_t)-1, &handle),
                     GNI_RC_SUCCESS);
    assert_int_equal(GNI_MemDeregister(side->nic, &handle), GNI_RC_SUCCESS);
    assert_int_equal(GNI_EpPostDataWId(side->ep, NULL, 0, &byte, 1, 1), GNI_RC_SUCCESS);
    assert_int_equal(GNI_EpPostDataCancel(side->ep), GNI_RC_SUCCESS);
    assert_int_equal(GNI_EpPostDataWaitById(side->ep, 1, PATIENCE, &post_state, NULL, NULL), GNI_RC_SUCCESS);
}

static void cancel_sleepers(enum call call, int cancel_type)
{
    for (unsigned i = 0; i < 100; i++) {
        void *result = NULL;
        struct sleeper s = { .call = call, .nic = b.nic, .ep = b.ep, .cqs = { b.dst_cq, b.src_cq },
                             .cancel_type = cancel_type };

        if (call == POST_DATA_WAIT)
            assert_int_equal(GNI_EpPostDataWId(b.ep, NULL, 0, NULL, 0, 1), GNI_RC_SUCCESS);
        assert_int_equal(pthread_create(&s.thread, NULL, sleep_in_thread, &s), 0);
        while (!atomic_load(&s.is_there))
            sched_yield();
        if (i % 3 == 0 && call != POST_DATA_WAIT)   /* some time for it to fall asleep; a datagram of ours would end it */
            expect_sound_nic(&a, &b);
        assert_int_equal(pthread_cancel(s.thread), 0);
        assert_int_equal(pthread_join(s.thread, &result), 0);
        if (call == POST_DATA_WAIT) {
            gni_post_state_t post_state;

            assert_int_equal(GNI_EpPostDataCancel(b.ep), GNI_RC_SUCCESS);
            assert_int_equal(GNI_EpPostDataWaitById(b.ep, 1, PATIENCE, &post_state, NULL, NULL), GNI_RC_SUCCESS);
        }
        if (result != PTHREAD_CANCELED)     /* the event of a test put was faster */
            assert_int_equal(s.rc, GNI_RC_SUCCESS);
        while (call != PROBE_WAIT && GNI_CqTestEvent(b.dst_cq) == GNI_RC_SUCCESS) {
            gni_cq_entry_t entry;

            GNI_CqGetEvent(b.dst_cq, &entry);
        }
        if (i % 3 == 1)
            expect_sound_nic(&b, &a);
    }
    expect_sound_nic(&a, &b);
    expect_sound_nic(&b, &a);
}

static void test_monitor_may_be_cancelled_asynchronously(void **state)
{
    (void)state;
    cancel_sleepers(VECTOR_MONITOR, PTHREAD_CANCEL_ASYNCHRONOUS);
}

static void test_monitor_may_be_cancelled(void **state)
{
    (void)state;
    cancel_sleepers(VECTOR_MONITOR, PTHREAD_CANCEL_DEFERRED);
}

static void test_probe_wait_may_be_cancelled_asynchronously(void **state)
{
    (void)state;
    cancel_sleepers(PROBE_WAIT, PTHREAD_CANCEL_ASYNCHRONOUS);
}

static void test_post_data_wait_may_be_cancelled_asynchronously(void **state)
{
    (void)state;
    cancel_sleepers(POST_DATA_WAIT, PTHREAD_CANCEL_ASYNCHRONOUS);
}

static void test_cdm_of_a_cancelled_thread_can_be_destroyed(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 20; i++) {
        struct sleeper s;

        open_sides(state);
        start_sleeper(&s, &b, i % 2 ? VECTOR_MONITOR : PROBE_WAIT);
        assert_int_equal(pthread_cancel(s.thread), 0);
        assert_int_equal(pthread_join(s.thread, NULL), 0);
        close_sides(state);
    }
}

struct worker {
    pthread_t thread;
    _Atomic unsigned rounds;
    gni_return_t rc;
};

/* Calls that take the NIC's lock and talk to emunic; the program lets itself be cancelled only between them. */
static void *work(void *arg)
{
    struct worker *w = arg;

    while (w->rc == GNI_RC_SUCCESS) {
        gni_post_descriptor_t d = gx_put(&a, &b, 64, 8, GNI_CQMODE_GLOBAL_EVENT);
        gni_post_descriptor_t *done;
        gni_mem_handle_t handle;

        w->rc = GNI_MemRegister(a.nic, (uint64_t)(uintptr_t)a.mem, 4096, NULL, GNI_MEM_READWRITE, (uint32_t)-1,
                                &handle);
        if (w->rc == GNI_RC_SUCCESS)
            w->rc = GNI_MemDeregister(a.nic, &handle);
        if (w->rc == GNI_RC_SUCCESS)
            w->rc = GNI_PostFma(a.ep, &d);
        if (w->rc == GNI_RC_SUCCESS)
            w->rc = gx_complete(a.src_cq, &done);
        atomic_fetch_add(&w->rounds, 1);
        pthread_testcancel();
    }
    return NULL;
}

static void test_no_other_call_ends_a_cancelled_thread(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 50; i++) {
        struct worker w = { .rc = GNI_RC_SUCCESS };
        void *result = NULL;

        assert_int_equal(pthread_create(&w.thread, NULL, work, &w), 0);
        while (atomic_load(&w.rounds) < i % 5)
            sched_yield();
        assert_int_equal(pthread_cancel(w.thread), 0);
        assert_int_equal(pthread_join(w.thread, &result), 0);
        assert_int_equal(w.rc, GNI_RC_SUCCESS);
        assert_ptr_equal(result, PTHREAD_CANCELED);
        expect_sound_nic(&a, &b);       /* no lock has gone with it, nothing is outstanding */
    }
}

static void test_blocking_calls_keep_the_threads_cancel_settings(void **state)
{
    gni_cq_entry_t entry;
    uint32_t which;
    uint64_t id;
    int old;

    (void)state;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, NULL);
    assert_int_equal(GNI_CqWaitEvent(b.dst_cq, 3, &entry), GNI_RC_TIMEOUT);
    pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &old);
    assert_int_equal(old, PTHREAD_CANCEL_DISABLE);
    assert_int_equal(GNI_CqVectorMonitor(&b.dst_cq, 1, 3, &which), GNI_RC_TIMEOUT);
    assert_int_equal(GNI_PostdataProbeWaitById(b.nic, 3, &id), GNI_RC_TIMEOUT);
    pthread_setcancelstate(PTHREAD_CANCEL_ENABLE, &old);
    assert_int_equal(old, PTHREAD_CANCEL_ENABLE);
    pthread_setcanceltype(PTHREAD_CANCEL_DEFERRED, &old);
    assert_int_equal(old, PTHREAD_CANCEL_DEFERRED);
    pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL);
    assert_int_equal(GNI_CqVectorMonitor(&b.dst_cq, 1, 3, &which), GNI_RC_TIMEOUT);
    pthread_setcanceltype(PTHREAD_CANCEL_DEFERRED, &old);
    assert_int_equal(old, PTHREAD_CANCEL_ASYNCHRONOUS);
}

/* ---- objects that go away ---- */

static void test_destroyed_cdm_ends_every_blocking_call_with_an_error(void **state)
{
    (void)state;
    gx_open(&a, &fx, 0, 10, 0);
    for (unsigned i = 0; i < 10; i++) {
        struct sleeper s[N_CALLS];

        gx_open(&b, &fx, 1, 11, 0);
        assert_int_equal(GNI_EpCreate(b.nic, b.src_cq, &b.ep), GNI_RC_SUCCESS);
        assert_int_equal(GNI_EpBind(b.ep, a.nic_addr, a.inst_id), GNI_RC_SUCCESS);
        assert_int_equal(GNI_EpPostDataWId(b.ep, NULL, 0, NULL, 0, 1), GNI_RC_SUCCESS);
        for (enum call call = 0; call < N_CALLS; call++)
            start_sleeper(&s[call], &b, call);
        assert_int_equal(GNI_CdmDestroy(b.cdm), GNI_RC_SUCCESS);
        for (enum call call = 0; call < N_CALLS; call++) {
            join_sleeper(&s[call]);
            assert_true(s[call].rc == GNI_RC_INVALID_STATE || s[call].rc == GNI_RC_INVALID_PARAM);
        }
        free(b.mem);
    }
    gx_close(&a);
}

static bool is_asleep(void *arg)
{
    return proc_is_asleep(((struct sleeper *)arg)->tid);
}

/*
 * Who slept already sees the end of the domain, and not a handle that has gone before the call.
 * covers: GNI_CqWaitEvent: GNI_RC_INVALID_STATE; covers: GNI_CqVectorWaitEvent: GNI_RC_INVALID_STATE;
 * covers: GNI_CqVectorMonitor: GNI_RC_INVALID_STATE; covers: GNI_EpPostDataWaitById: GNI_RC_INVALID_STATE;
 * covers: GNI_EpPostDataWait: GNI_RC_INVALID_STATE; covers: GNI_PostdataProbeWaitById: GNI_RC_INVALID_STATE
 */
static void test_destroyed_cdm_gives_invalid_state_to_a_sleeper(void **state)
{
    (void)state;
    gx_open(&a, &fx, 0, 10, 0);
    for (enum call call = 0; call <= POST_DATA_WAIT_PLAIN; call++) {
        struct sleeper s;

        if (call == N_CALLS)
            continue;
        gx_open(&b, &fx, 1, 11, 0);
        assert_int_equal(GNI_EpCreate(b.nic, b.src_cq, &b.ep), GNI_RC_SUCCESS);
        assert_int_equal(GNI_EpBind(b.ep, a.nic_addr, a.inst_id), GNI_RC_SUCCESS);
        if (call == POST_DATA_WAIT_PLAIN)
            assert_int_equal(GNI_EpPostData(b.ep, NULL, 0, NULL, 0), GNI_RC_SUCCESS);
        else
            assert_int_equal(GNI_EpPostDataWId(b.ep, NULL, 0, NULL, 0, 1), GNI_RC_SUCCESS);
        start_sleeper(&s, &b, call);
        assert_true(eventually(is_asleep, &s, PATIENCE * 1000000ull));
        assert_int_equal(GNI_CdmDestroy(b.cdm), GNI_RC_SUCCESS);
        join_sleeper(&s);
        assert_int_equal(s.rc, GNI_RC_INVALID_STATE);
        free(b.mem);
    }
    gx_close(&a);
}

struct caller {
    pthread_t thread;
    gni_nic_handle_t nic;
    gni_cq_handle_t cq;
    _Atomic unsigned calls;
};

/* Short blocking calls until the handles die. */
static void *call_until_it_dies(void *arg)
{
    struct caller *c = arg;
    gni_cq_entry_t entry;
    gni_return_t rc;
    uint64_t id;

    do {
        rc = GNI_CqWaitEvent(c->cq, 1, &entry);
        if (rc == GNI_RC_TIMEOUT)
            rc = GNI_PostdataProbeWaitById(c->nic, 1, &id);
        atomic_fetch_add(&c->calls, 1);
    } while (rc == GNI_RC_TIMEOUT);
    return NULL;
}

static void test_handles_may_die_at_any_moment_of_a_blocking_call(void **state)
{
    (void)state;
    gx_open(&a, &fx, 0, 10, 0);
    for (unsigned i = 0; i < 40; i++) {
        struct caller c = { .calls = 0 };

        gx_open(&b, &fx, 1, 11, 0);
        c.nic = b.nic;
        c.cq = b.dst_cq;
        assert_int_equal(pthread_create(&c.thread, NULL, call_until_it_dies, &c), 0);
        while (atomic_load(&c.calls) < i % 4)
            sched_yield();
        gx_close(&b);
        assert_int_equal(pthread_join(c.thread, NULL), 0);
    }
    gx_close(&a);
}

static void test_destroyed_queue_ends_the_wait_for_it(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 20; i++) {
        struct sleeper s[2];

        start_sleeper(&s[0], &b, WAIT_EVENT);
        start_sleeper(&s[1], &b, VECTOR_MONITOR);
        assert_int_equal(GNI_CqDestroy(b.dst_cq), GNI_RC_SUCCESS);
        for (unsigned j = 0; j < 2; j++) {
            join_sleeper(&s[j]);
            assert_int_equal(s[j].rc, GNI_RC_INVALID_PARAM);
        }
        assert_int_equal(GNI_CqCreate(b.nic, 128, 0, GNI_CQ_BLOCKING, NULL, NULL, &b.dst_cq), GNI_RC_SUCCESS);
    }
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

/* ---- */

static int start(void **state)
{
    (void)state;
    fx_start(&fx, NULL);
    return 0;
}

static int stop(void **state)
{
    (void)state;
    return fx_stop(&fx);
}

#define POLLING(test) cmocka_unit_test_setup_teardown(test, open_sides, close_sides)
#define SLEEPING(test) cmocka_unit_test_setup_teardown(test, open_sleepers, close_sides)

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
        cmocka_unit_test(test_wait_reports_an_overrun_once_and_goes_on),
        SLEEPING(test_signal_ends_a_wait_with_not_done),
        POLLING(test_wait_calls_the_queues_handler_with_the_entry),
        POLLING(test_vector_wait_tells_which_queue_and_takes_its_event),
        POLLING(test_vector_wait_reports_a_failed_transaction),
        POLLING(test_monitor_takes_nothing_and_reports_as_long_as_there_is_something),
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
        SLEEPING(test_monitor_may_be_cancelled_asynchronously),
        SLEEPING(test_monitor_may_be_cancelled),
        POLLING(test_probe_wait_may_be_cancelled_asynchronously),
        POLLING(test_post_data_wait_may_be_cancelled_asynchronously),
        cmocka_unit_test(test_cdm_of_a_cancelled_thread_can_be_destroyed),
        POLLING(test_no_other_call_ends_a_cancelled_thread),
        SLEEPING(test_blocking_calls_keep_the_threads_cancel_settings),
        cmocka_unit_test(test_destroyed_cdm_ends_every_blocking_call_with_an_error),
        cmocka_unit_test(test_destroyed_cdm_gives_invalid_state_to_a_sleeper),
        cmocka_unit_test(test_handles_may_die_at_any_moment_of_a_blocking_call),
        SLEEPING(test_destroyed_queue_ends_the_wait_for_it),
        cmocka_unit_test(test_event_of_another_process_wakes_a_wait),
        cmocka_unit_test(test_event_of_another_process_wakes_a_monitor),
    };

    return cmocka_run_group_tests(tests, start, stop);
}
