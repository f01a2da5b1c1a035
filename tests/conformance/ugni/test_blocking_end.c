/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What ends a waiting call before its time: its thread is cancelled, or the domain or the queue goes away.
 * Specification: spec/ugni.md 1.6, 1.7, 4.9, 7.22, 7.28.
 */
#include "tests/conformance/blocking.h"

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
        struct sleeper s = {
            .call = call, .nic = b.nic, .ep = b.ep, .cqs = { b.dst_cq, b.src_cq }, .cancel_type = cancel_type
        };

        if (call == POST_DATA_WAIT)
            assert_int_equal(GNI_EpPostDataWId(b.ep, NULL, 0, NULL, 0, 1), GNI_RC_SUCCESS);
        assert_int_equal(pthread_create(&s.thread, NULL, sleep_in_thread, &s), 0);
        while (!atomic_load(&s.is_there))
            sched_yield();
        /* Some time for it to fall asleep; a datagram of ours would end it. */
        if (i % 3 == 0 && call != POST_DATA_WAIT)
            expect_sound_nic(&a, &b);
        assert_int_equal(pthread_cancel(s.thread), 0);
        assert_int_equal(pthread_join(s.thread, &result), 0);
        if (call == POST_DATA_WAIT) {
            gni_post_state_t post_state;

            assert_int_equal(GNI_EpPostDataCancel(b.ep), GNI_RC_SUCCESS);
            assert_int_equal(GNI_EpPostDataWaitById(b.ep, 1, PATIENCE, &post_state, NULL, NULL), GNI_RC_SUCCESS);
        }
        if (result != PTHREAD_CANCELED) /* the event of a test put was faster */
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

        open_pair(state);
        start_sleeper(&s, &b, i % 2 ? VECTOR_MONITOR : PROBE_WAIT);
        assert_int_equal(pthread_cancel(s.thread), 0);
        assert_int_equal(pthread_join(s.thread, NULL), 0);
        close_pair(state);
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

        w->rc =
            GNI_MemRegister(a.nic, (uint64_t)(uintptr_t)a.mem, 4096, NULL, GNI_MEM_READWRITE, (uint32_t)-1, &handle);
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
        expect_sound_nic(&a, &b); /* no lock has gone with it, nothing is outstanding */
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

int main(void)
{
    const struct CMUnitTest tests[] = {
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
    };

    return cmocka_run_group_tests(tests, start_emunic, stop_emunic);
}
