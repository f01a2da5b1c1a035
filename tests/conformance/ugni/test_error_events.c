/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Error subscriptions: who may have one, what comes, in which category, what a filter lets through, how waiting ends.
 * Specification: spec/ugni.md 2.18, 3.8, 4.13; codes: gni_pub.h.
 */
#include <pthread.h>
#include <time.h>

#include "tests/conformance/pair.h"

#define ALL 0xff

/* error_code as gni_pub.h documents it, beside the statuses */
enum code {
    CODE_CORRUPT = 32,
    CODE_DELAYED = 33,
    CODE_RETRANSMITTED = 34,
    CODE_OVERRUN = 35,
    CODE_REGISTRATION = 36,
    CODE_DATAGRAM = 37,
    CODE_PORT_DIED = 48,
    CODE_NIC_GONE = 49,
    CODE_INJECTED = 64,
    CODE_RULES = 65,
};

static int close_faulty_pair(void **state)
{
    fx_clear_faults(&fx);
    return close_pair(state);
}

#define event_test(name) cmocka_unit_test_setup_teardown(name, open_pair, close_faulty_pair)

static gni_err_handle_t subscribe(gni_error_mask_t mask, uint32_t entries)
{
    gni_err_handle_t err = NULL;

    assert_int_equal(GNI_SubscribeErrors(a.nic, 0, mask, entries, &err), GNI_RC_SUCCESS);
    return err;
}

/*
 * The next event, within ten seconds: those of the direct path travel by emunic.
 * covers: GNI_GetErrorEvent: GNI_RC_SUCCESS
 */
static gni_error_event_t next_event(gni_err_handle_t err)
{
    uint64_t end_ns = emu_clock_ns() + PATIENCE_NS;
    gni_error_event_t event = { 0 };
    gni_return_t rc;

    while ((rc = GNI_GetErrorEvent(err, &event)) == GNI_RC_NOT_DONE && emu_clock_ns() < end_ns)
        ;
    assert_int_equal(rc, GNI_RC_SUCCESS);
    return event;
}

static void expect_no_event(gni_err_handle_t err)
{
    gni_error_event_t event = { .error_code = 77 };

    /* What was sent before this has been taken by emunic when it is complete. */
    fx_set_routed(&fx, true);
    wait_for_all_before(&a, &b);
    fx_set_routed(&fx, false);
    assert_int_equal(GNI_GetErrorEvent(err, &event), GNI_RC_NOT_DONE);
    assert_int_equal(event.error_code, 77);
}

/* A put beyond the registration. */
static void fail_a_put(void)
{
    gni_post_descriptor_t d = word_post(GNI_POST_FMA_PUT, 0);

    d.remote_addr += GX_BYTES;
    assert_int_equal(run(&d), STATUS_REMOTE_RANGE);
}

/* ---- subscribing ---- */

static void test_subscription_keeps_its_mask(void **state)
{
    gni_error_event_t event;
    gni_error_mask_t mask = 0;
    gni_err_handle_t err = subscribe(GNI_ERRMASK_CRITICAL, 0);

    (void)state;
    assert_int_equal(GNI_GetErrorMask(err, &mask), GNI_RC_SUCCESS);
    assert_int_equal(mask, GNI_ERRMASK_CRITICAL);
    assert_int_equal(GNI_SetErrorMask(err, GNI_ERRMASK_TRANSACTION, &mask), GNI_RC_SUCCESS);
    assert_int_equal(mask, GNI_ERRMASK_CRITICAL);
    assert_int_equal(GNI_GetErrorMask(err, &mask), GNI_RC_SUCCESS);
    assert_int_equal(mask, GNI_ERRMASK_TRANSACTION);
    assert_int_equal(GNI_GetErrorEvent(err, &event), GNI_RC_NOT_DONE);
    assert_int_equal(GNI_ReleaseErrors(err), GNI_RC_SUCCESS);
}

static void test_subscriptions_refuse_bad_arguments(void **state)
{
    gni_err_handle_t untouched = (gni_err_handle_t)0x77;
    gni_error_event_t event;
    gni_error_mask_t mask;
    gni_err_handle_t err;
    uint32_t count;

    (void)state;
    assert_int_equal(GNI_SubscribeErrors(a.nic, 0, 1, 0, NULL), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_SubscribeErrors((gni_nic_handle_t)(void *)a.ep, 0, 1, 0, &untouched), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_SubscribeErrors(NULL, 1, 1, 0, &untouched), GNI_RC_NO_MATCH);
    assert_int_equal(GNI_SubscribeErrors(a.nic, 0, 1, 65537, &untouched), GNI_RC_ERROR_RESOURCE);
    assert_ptr_equal(untouched, (void *)0x77);
    err = subscribe(1, 65536);
    assert_int_equal(GNI_GetErrorMask(err, NULL), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_SetErrorMask(err, 1, NULL), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_GetErrorEvent(err, NULL), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_WaitErrorEvents(err, NULL, 1, 0, &count), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_WaitErrorEvents(err, &event, 0, 0, &count), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_WaitErrorEvents(err, &event, 1, 0, NULL), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_ReleaseErrors(err), GNI_RC_SUCCESS);
    for (unsigned i = 0; i < 2; i++) { /* stale, then NULL */
        assert_int_equal(GNI_ReleaseErrors(err), GNI_RC_INVALID_PARAM);
        assert_int_equal(GNI_GetErrorMask(err, &mask), GNI_RC_INVALID_PARAM);
        assert_int_equal(GNI_SetErrorMask(err, 1, &mask), GNI_RC_INVALID_PARAM);
        assert_int_equal(GNI_GetErrorEvent(err, &event), GNI_RC_INVALID_PARAM);
        assert_int_equal(GNI_WaitErrorEvents(err, &event, 1, 0, &count), GNI_RC_INVALID_PARAM);
        assert_int_equal(GNI_SetErrorPtag(err, 0), GNI_RC_INVALID_PARAM);
        err = NULL;
    }
}

static void test_number_of_subscriptions_is_limited_and_comes_back(void **state)
{
    static gni_err_handle_t errs[300];
    unsigned n = 0;

    (void)state;
    while (n < COUNT_OF(errs) && GNI_SubscribeErrors(a.nic, 0, 1, 0, &errs[n]) == GNI_RC_SUCCESS)
        n++;
    assert_int_equal(n, 256);
    assert_int_equal(GNI_ReleaseErrors(errs[--n]), GNI_RC_SUCCESS);
    while (GNI_SubscribeErrors(a.nic, 0, 1, 0, &errs[n]) != GNI_RC_SUCCESS)
        ; /* emunic has not looked at the end of the other one yet */
    for (unsigned i = 0; i <= n; i++)
        assert_int_equal(GNI_ReleaseErrors(errs[i]), GNI_RC_SUCCESS);
}

static void test_subscription_outlives_its_nic_handle(void **state)
{
    gni_err_handle_t err;
    struct gx_side gone;

    (void)state;
    gx_open(&gone, &fx, 0, 20, 0);
    assert_int_equal(GNI_SubscribeErrors(gone.nic, 0, ALL, 16, &err), GNI_RC_SUCCESS);
    gx_close(&gone);
    fail_a_put();
    assert_int_equal(next_event(err).error_code, STATUS_REMOTE_RANGE);
    expect_no_event(err); /* the orderly end of a NIC handle is none */
    assert_int_equal(GNI_ReleaseErrors(err), GNI_RC_SUCCESS);
}

/* ---- what comes ---- */

static void test_failed_transaction_is_told_with_place_and_time(void **state)
{
    gni_err_handle_t err = subscribe(ALL, 0);
    gni_error_event_t event;
    struct timespec before;
    struct timespec after;

    (void)state;
    clock_gettime(CLOCK_REALTIME, &before);
    fail_a_put();
    event = next_event(err);
    clock_gettime(CLOCK_REALTIME, &after);
    assert_int_equal(event.error_code, STATUS_REMOTE_RANGE);
    assert_int_equal(event.error_category, GNI_ERRMASK_ADDRESS_TRANSLATION);
    assert_int_equal(event.ptag, fx.ptag);
    assert_int_equal(event.serial_number, 1);
    assert_in_range(event.timestamp, (uint64_t)before.tv_sec * 1000000000u + (uint64_t)before.tv_nsec,
                    (uint64_t)after.tv_sec * 1000000000u + (uint64_t)after.tv_nsec);
    assert_int_equal(event.info_mmrs[0], 0ull << 32 | 10);
    assert_int_equal(event.info_mmrs[1] >> 32, 1);
    assert_int_equal(event.info_mmrs[2], ADDR(b.mem) + GX_BYTES);
    assert_int_equal(event.info_mmrs[3] & 0xff, STATUS_REMOTE_RANGE);
    assert_int_equal(event.info_mmrs[3] >> 32, 0); /* no rule */
    fail_a_put();
    assert_int_equal(next_event(err).serial_number, 2);
    expect_no_event(err);
    assert_int_equal(GNI_ReleaseErrors(err), GNI_RC_SUCCESS);
}

static void test_every_status_has_its_category(void **state)
{
    static const struct {
        const char *fault;
        unsigned code;
        unsigned category;
    } rows[] = {
        { "action=drop", STATUS_NETWORK, GNI_ERRMASK_TRANSIENT },
        { "action=corrupt", CODE_CORRUPT, GNI_ERRMASK_TRANSIENT },
        { "action=fail status=peer-gone", STATUS_PEER_GONE, GNI_ERRMASK_TRANSACTION },
        { "action=fail status=bad-handle", STATUS_BAD_HANDLE, GNI_ERRMASK_ADDRESS_TRANSLATION },
        { "action=fail status=remote-range", STATUS_REMOTE_RANGE, GNI_ERRMASK_ADDRESS_TRANSLATION },
        { "action=fail status=remote-permission", STATUS_REMOTE_PERMISSION, GNI_ERRMASK_ADDRESS_TRANSLATION },
        { "action=fail status=remote-cq-full", STATUS_REMOTE_CQ_FULL, GNI_ERRMASK_TRANSACTION },
        { "action=fail status=local-access", STATUS_LOCAL_ACCESS, GNI_ERRMASK_ADDRESS_TRANSLATION },
        { "action=fail status=retransmit-limit", STATUS_RETRANSMIT_LIMIT, GNI_ERRMASK_TRANSACTION },
        { "action=fail status=cancelled", STATUS_CANCELLED, GNI_ERRMASK_TRANSACTION },
        { "action=fail status=bad-command", STATUS_BAD_COMMAND, GNI_ERRMASK_UNKNOWN_TRANSACTION },
        { "action=overrun", CODE_OVERRUN, GNI_ERRMASK_TRANSACTION },
        { "action=delay delay_us=1", CODE_DELAYED, GNI_ERRMASK_DIAG_ONLY },
        { "action=report category=correctable-memory", CODE_INJECTED, GNI_ERRMASK_CORRECTABLE_MEMORY },
        { "action=report category=critical", CODE_INJECTED, GNI_ERRMASK_CRITICAL },
        { "action=report category=transaction", CODE_INJECTED, GNI_ERRMASK_TRANSACTION },
        { "action=report category=address-translation", CODE_INJECTED, GNI_ERRMASK_ADDRESS_TRANSLATION },
        { "action=report category=transient", CODE_INJECTED, GNI_ERRMASK_TRANSIENT },
        { "action=report category=informational", CODE_INJECTED, GNI_ERRMASK_INFORMATIONAL },
        { "action=report category=diag-only", CODE_INJECTED, GNI_ERRMASK_DIAG_ONLY },
        { "action=report category=unknown-transaction", CODE_INJECTED, GNI_ERRMASK_UNKNOWN_TRANSACTION },
    };
    gni_err_handle_t err = subscribe(ALL, 0);

    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        gni_post_descriptor_t d = word_post(GNI_POST_FMA_PUT, 0);
        gni_error_event_t event;
        gni_cq_entry_t entry;
        char words[128];

        snprintf(words, sizeof(words), "class=fma-put %s", rows[i].fault);
        fx_add_fault(&fx, words);
        event = next_event(err);
        assert_int_equal(event.error_code, CODE_RULES);
        assert_int_equal(event.error_category, GNI_ERRMASK_INFORMATIONAL);
        assert_int_equal(event.info_mmrs[2], 1);
        d.cq_mode |= GNI_CQMODE_REMOTE_EVENT;
        run(&d);
        event = next_event(err);
        assert_int_equal(event.error_code, rows[i].code);
        assert_int_equal(event.error_category, rows[i].category);
        assert_int_equal(event.info_mmrs[3] >> 32, rows[i].code == CODE_OVERRUN ? 0 : 1); /* the rule */
        fx_clear_faults(&fx);
        event = next_event(err);
        assert_int_equal(event.error_code, CODE_RULES);
        assert_int_equal(event.info_mmrs[2], 0);
        while (GNI_CqGetEvent(b.dst_cq, &entry) != GNI_RC_NOT_DONE)
            ;
    }
    expect_no_event(err);
    assert_int_equal(GNI_ReleaseErrors(err), GNI_RC_SUCCESS);
}

static void test_refused_registrations_and_datagrams_are_told(void **state)
{
    gni_err_handle_t err = subscribe(ALL & ~GNI_ERRMASK_INFORMATIONAL, 0);
    gni_mem_handle_t handle;
    gni_error_event_t event;
    uint8_t *mem = pages(4096);

    (void)state;
    fx_add_fault(&fx, "class=registration action=fail live_min=1");
    fx_add_fault(&fx, "class=datagram action=fail");
    assert_int_equal(GNI_MemRegister(a.nic, ADDR(mem), 4096, NULL, GNI_MEM_READWRITE, (uint32_t)-1, &handle),
                     GNI_RC_ERROR_RESOURCE);
    event = next_event(err);
    assert_int_equal(event.error_code, CODE_REGISTRATION);
    assert_int_equal(event.error_category, GNI_ERRMASK_ADDRESS_TRANSLATION);
    assert_int_equal(event.info_mmrs[2], 1); /* it had that many */
    assert_int_equal(GNI_EpPostData(a.ep, NULL, 0, NULL, 0), GNI_RC_SUCCESS);
    assert_int_equal(next_event(err).error_code, CODE_DATAGRAM);
    assert_int_equal(GNI_ReleaseErrors(err), GNI_RC_SUCCESS);
    munmap(mem, 4096);
}

/* ---- filters ---- */

static void test_mask_lets_its_categories_through(void **state)
{
    gni_err_handle_t err = subscribe(GNI_ERRMASK_TRANSIENT, 0);
    gni_post_descriptor_t d = word_post(GNI_POST_FMA_PUT, 0);
    gni_error_mask_t mask;
    gni_error_event_t event;

    (void)state;
    fail_a_put();
    expect_no_event(err);
    fx_add_fault(&fx, "class=fma-put action=drop nth=1");
    assert_int_equal(run(&d), STATUS_NETWORK);
    event = next_event(err);
    assert_int_equal(event.error_code, STATUS_NETWORK);
    assert_int_equal(event.serial_number, 1); /* what the mask kept away does not count */
    fx_clear_faults(&fx);
    assert_int_equal(GNI_SetErrorMask(err, GNI_ERRMASK_ADDRESS_TRANSLATION, &mask), GNI_RC_SUCCESS);
    fail_a_put();
    assert_int_equal(next_event(err).error_code, STATUS_REMOTE_RANGE);
    assert_int_equal(GNI_ReleaseErrors(err), GNI_RC_SUCCESS);
}

static void test_events_of_other_domains_need_the_privileged_form(void **state)
{
    gni_err_handle_t own = subscribe(ALL, 0);
    gni_err_handle_t all = NULL;
    gni_err_handle_t other_ptag = NULL;
    struct emu_msg end = { .type = EMU_MSG_DOMAIN_END }; /* without a signal: we are a member of it */
    struct emu_session admin;
    struct gx_side foreign;
    struct fx other = fx;
    gni_post_descriptor_t d;

    (void)state;
    assert_int_equal(fx_add_domain(&fx, 88, 0x8888, geteuid(), 0, &admin), 0);
    /* This process is emunic's own user. */
    fx_use(&fx);
    assert_int_equal(GNI_SubscribeErrors(NULL, 0, ALL, 0, &all), GNI_RC_SUCCESS);
    assert_int_equal(GNI_SubscribeErrors(a.nic, 0, ALL, 0, &other_ptag), GNI_RC_SUCCESS);
    assert_int_equal(GNI_SetErrorPtag(other_ptag, 88), GNI_RC_SUCCESS);
    other.ptag = 88;
    other.cookie = 0x8888;
    gx_open(&foreign, &other, 0, 5, 0);
    assert_int_equal(GNI_EpCreate(foreign.nic, foreign.src_cq, &foreign.ep), GNI_RC_SUCCESS);
    assert_int_equal(GNI_EpBind(foreign.ep, foreign.nic_addr, 5), GNI_RC_SUCCESS);
    d = gx_put(&foreign, &foreign, 0, 8, GNI_CQMODE_GLOBAL_EVENT);
    d.remote_addr += GX_BYTES;
    assert_int_equal(post_on(foreign.ep, &d), GNI_RC_SUCCESS);
    assert_int_equal(finish_on(foreign.src_cq, &d), STATUS_REMOTE_RANGE);
    assert_int_equal(next_event(all).ptag, 88);
    assert_int_equal(next_event(other_ptag).ptag, 88);
    expect_no_event(own);
    fail_a_put();
    assert_int_equal(next_event(all).ptag, fx.ptag);
    assert_int_equal(next_event(own).ptag, fx.ptag);
    expect_no_event(other_ptag);
    assert_int_equal(GNI_SetErrorPtag(other_ptag, 0), GNI_RC_SUCCESS);
    fail_a_put();
    assert_int_equal(next_event(other_ptag).ptag, fx.ptag);
    gx_close(&foreign);
    assert_int_equal(emu_session_request(&admin, &end, NULL, 0, NULL), 0);
    emu_session_close(&admin);
    assert_int_equal(GNI_ReleaseErrors(own), GNI_RC_SUCCESS);
    assert_int_equal(GNI_ReleaseErrors(all), GNI_RC_SUCCESS);
    assert_int_equal(GNI_ReleaseErrors(other_ptag), GNI_RC_SUCCESS);
}

/* ---- overflow ---- */

static void test_full_queue_loses_the_newest_and_the_serial_number_tells(void **state)
{
    gni_err_handle_t err = subscribe(ALL, 4);
    gni_err_handle_t wide = subscribe(ALL, 100);

    (void)state;
    for (unsigned i = 0; i < 40; i++)
        fail_a_put();
    for (uint32_t i = 1; i <= 40; i++)
        assert_int_equal(next_event(wide).serial_number, i);
    for (uint32_t i = 1; i <= 4; i++)
        assert_int_equal(next_event(err).serial_number, i);
    expect_no_event(err);
    fail_a_put();
    assert_int_equal(next_event(err).serial_number, 41);
    assert_int_equal(GNI_ReleaseErrors(err), GNI_RC_SUCCESS);
    assert_int_equal(GNI_ReleaseErrors(wide), GNI_RC_SUCCESS);
}

/* ---- waiting ---- */

struct waiter {
    gni_err_handle_t err;
    gni_error_event_t events[8];
    uint32_t size;
    uint32_t timeout;
    uint32_t n;
    gni_return_t rc;
};

static void *wait_for_events(void *arg)
{
    struct waiter *w = arg;

    pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL);
    w->rc = GNI_WaitErrorEvents(w->err, w->events, w->size, w->timeout, &w->n);
    return NULL;
}

/* Returns when the thread is inside the call: a release is refused then. covers: GNI_ReleaseErrors: GNI_RC_NOT_DONE */
static pthread_t start_waiter(struct waiter *w)
{
    pthread_t thread;

    for (unsigned n_yields = 1;; n_yields *= 2) {
        w->err = subscribe(ALL, 0);
        assert_int_equal(pthread_create(&thread, NULL, wait_for_events, w), 0);
        for (unsigned i = 0; i < n_yields; i++)
            sched_yield();
        if (GNI_ReleaseErrors(w->err) == GNI_RC_NOT_DONE)
            return thread;
        pthread_join(thread, NULL);
    }
}

static void test_waiting_blocks_until_cancelled(void **state)
{
    struct waiter w = { .size = 1 };
    pthread_t thread = start_waiter(&w);
    void *result;

    (void)state;
    pthread_cancel(thread);
    assert_int_equal(pthread_join(thread, &result), 0);
    assert_ptr_equal(result, PTHREAD_CANCELED);
    /* It is as good as before. */
    fail_a_put();
    assert_int_equal(next_event(w.err).serial_number, 1);
    assert_int_equal(GNI_ReleaseErrors(w.err), GNI_RC_SUCCESS);
}

static void do_nothing(int number)
{
    (void)number;
}

/* covers: GNI_WaitErrorEvents: GNI_RC_NOT_DONE */
static void test_signal_ends_the_wait_for_the_first_event(void **state)
{
    struct sigaction action = { .sa_handler = do_nothing }, before;
    struct waiter w = { .size = 1 };
    pthread_t thread;

    (void)state;
    assert_int_equal(sigaction(SIGUSR1, &action, &before), 0);
    thread = start_waiter(&w);
    /* A signal may hit it before it sleeps: then the next one. */
    while (pthread_tryjoin_np(thread, NULL) != 0) {
        pthread_kill(thread, SIGUSR1);
        sched_yield();
    }
    assert_int_equal(w.rc, GNI_RC_NOT_DONE);
    assert_int_equal(sigaction(SIGUSR1, &before, NULL), 0);
    assert_int_equal(GNI_ReleaseErrors(w.err), GNI_RC_SUCCESS);
}

static void test_subscription_to_a_domain_that_has_ended_is_refused(void **state)
{
    struct emu_session admin;
    struct fx ended = fx;
    struct gx_side side;
    gni_err_handle_t err = NULL;

    (void)state;
    ended.ptag = 89;
    ended.cookie = 0x8989;
    assert_int_equal(fx_add_domain(&fx, ended.ptag, ended.cookie, geteuid(), 0, &admin), 0);
    gx_open(&side, &ended, 0, 1, 0);
    assert_int_equal(fx_end_domain(&admin), 0);
    assert_int_equal(GNI_SubscribeErrors(side.nic, 0, ALL, 0, &err), GNI_RC_PERMISSION_ERROR);
    assert_null(err);
    gx_close(&side);
}

static void test_event_wakes_who_waits(void **state)
{
    struct waiter w = { .size = 1 };
    pthread_t thread = start_waiter(&w);

    (void)state;
    fail_a_put();
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_int_equal(w.rc, GNI_RC_SUCCESS);
    assert_int_equal(w.n, 1);
    assert_int_equal(w.events[0].error_code, STATUS_REMOTE_RANGE);
    assert_int_equal(GNI_ReleaseErrors(w.err), GNI_RC_SUCCESS);
}

/* covers: GNI_WaitErrorEvents: GNI_RC_TIMEOUT */
static void test_waiting_collects_until_full_or_out_of_time(void **state)
{
    struct waiter w = { .size = 8, .timeout = 20 };

    (void)state;
    w.err = subscribe(ALL, 0);
    for (unsigned i = 0; i < 6; i++)
        fail_a_put();
    wait_for_events(&w);
    assert_int_equal(w.rc, GNI_RC_TIMEOUT);
    assert_int_equal(w.n, 6);
    for (unsigned i = 0; i < 6; i++)
        assert_int_equal(w.events[i].serial_number, i + 1);
    for (unsigned i = 0; i < 7; i++)
        fail_a_put();
    w.size = 5;
    wait_for_events(&w);
    assert_int_equal(w.rc, GNI_RC_SUCCESS);
    assert_int_equal(w.n, 5);
    w.size = 8;
    w.timeout = 0;
    w.n = 0;
    while (w.n < 2) { /* no time to collect: what is there, and no TIMEOUT */
        uint32_t before = w.n;

        assert_int_equal(GNI_WaitErrorEvents(w.err, w.events + before, 8 - before, 0, &w.n), GNI_RC_SUCCESS);
        w.n += before;
    }
    assert_int_equal(w.n, 2);
    assert_int_equal(w.events[1].serial_number, 13);
    assert_int_equal(GNI_ReleaseErrors(w.err), GNI_RC_SUCCESS);
}

/* ---- deaths ---- */

static int body_that_is_killed(struct fx_rank *rank)
{
    struct gx_side side;

    gx_open(&side, rank->fx, 2, 7, 0);
    kill(getpid(), SIGKILL);
    return 0;
}

static int body_that_ends_well(struct fx_rank *rank)
{
    struct gx_side side;

    gx_open(&side, rank->fx, 2, 8, 0);
    gx_close(&side);
    return 0;
}

static void test_death_of_a_process_is_critical_and_an_orderly_end_is_nothing(void **state)
{
    gni_err_handle_t err = subscribe(GNI_ERRMASK_CRITICAL, 0);
    gni_error_event_t event;

    (void)state;
    assert_int_equal(fx_run(&fx, 1, body_that_ends_well, NULL), 0);
    assert_int_equal(fx_run(&fx, 1, body_that_is_killed, NULL), 1);
    event = next_event(err);
    assert_int_equal(event.error_code, CODE_PORT_DIED);
    assert_int_equal(event.error_category, GNI_ERRMASK_CRITICAL);
    assert_int_equal(event.serial_number, 1);
    assert_int_equal(event.info_mmrs[0], 2ull << 32 | 7);
    expect_no_event(err);
    assert_int_equal(GNI_ReleaseErrors(err), GNI_RC_SUCCESS);
}

static void test_end_of_emunic_is_the_last_event(void **state)
{
    gni_error_event_t event = { 0 };
    gni_err_handle_t critical;
    gni_err_handle_t other;
    struct gx_side side;
    struct fx doomed;
    uint32_t n = 0;

    (void)state;
    fx_start(&doomed, NULL);
    gx_open(&side, &doomed, 0, 1, 0);
    assert_int_equal(GNI_SubscribeErrors(side.nic, 0, ALL, 0, &critical), GNI_RC_SUCCESS);
    assert_int_equal(GNI_SubscribeErrors(side.nic, 0, GNI_ERRMASK_TRANSIENT, 0, &other), GNI_RC_SUCCESS);
    kill(doomed.daemon, SIGKILL);
    assert_int_equal(GNI_WaitErrorEvents(critical, &event, 1, 0, &n), GNI_RC_SUCCESS);
    assert_int_equal(n, 1);
    assert_int_equal(event.error_code, CODE_NIC_GONE);
    assert_int_equal(event.error_category, GNI_ERRMASK_CRITICAL);
    assert_int_equal(event.ptag, doomed.ptag);
    assert_int_equal(GNI_GetErrorEvent(critical, &event), GNI_RC_NOT_DONE);
    assert_int_equal(GNI_GetErrorEvent(other, &event), GNI_RC_NOT_DONE);
    assert_int_equal(GNI_SetErrorPtag(other, 0), GNI_RC_PERMISSION_ERROR);
    assert_int_equal(GNI_ReleaseErrors(critical), GNI_RC_SUCCESS);
    assert_int_equal(GNI_ReleaseErrors(other), GNI_RC_SUCCESS);
    gx_close(&side);
    fx_stop(&doomed);
    fx_use(&fx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        event_test(test_subscription_keeps_its_mask),
        event_test(test_subscriptions_refuse_bad_arguments),
        event_test(test_number_of_subscriptions_is_limited_and_comes_back),
        event_test(test_subscription_outlives_its_nic_handle),
        event_test(test_failed_transaction_is_told_with_place_and_time),
        event_test(test_every_status_has_its_category),
        event_test(test_refused_registrations_and_datagrams_are_told),
        event_test(test_mask_lets_its_categories_through),
        event_test(test_events_of_other_domains_need_the_privileged_form),
        event_test(test_full_queue_loses_the_newest_and_the_serial_number_tells),
        event_test(test_waiting_blocks_until_cancelled),
        event_test(test_signal_ends_the_wait_for_the_first_event),
        event_test(test_subscription_to_a_domain_that_has_ended_is_refused),
        event_test(test_event_wakes_who_waits),
        event_test(test_waiting_collects_until_full_or_out_of_time),
        event_test(test_death_of_a_process_is_critical_and_an_orderly_end_is_nothing),
        event_test(test_end_of_emunic_is_the_last_event),
    };

    return cmocka_run_group_tests(tests, start_emunic, stop_emunic);
}
