/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Event queues: making, taking, waiting, polling, handlers, overflow. Messages are the rank's own, to itself, where it
 * matters not.
 */
#include "tests/common/portals.h"

#include <pthread.h>
#include <time.h>

#define PT 9

static ptl_handle_md_t empty;

static int open_source(void **state)
{
    (void)state;
    empty = px_bind(px_md(NULL, 0, 0, PTL_MD_THRESH_INF, PTL_EQ_NONE), PTL_RETAIN);
    return 0;
}

static int close_source(void **state)
{
    (void)state;
    px_settle();
    assert_int_equal(PtlMDUnlink(empty), PTL_OK);
    return 0;
}

/* One event per message in that queue. */
static struct px_entry listen_at(ptl_pt_index_t pt, ptl_handle_eq_t eq)
{
    return px_entry(pt, 0, 0, PTL_RETAIN,
                    px_md(NULL, 0, PTL_MD_OP_PUT | PTL_MD_EVENT_START_DISABLE, PTL_MD_THRESH_INF, eq), PTL_RETAIN);
}

static void tell(ptl_process_id_t whom, ptl_pt_index_t pt, ptl_hdr_data_t number)
{
    assert_int_equal(PtlPut(empty, PX_NO_ACK, whom, pt, 0, 0, 0, number), PTL_OK);
}

static uint64_t now_ms(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static void test_making_queues(void **state)
{
    ptl_handle_eq_t eq = 3;

    (void)state;
    assert_int_equal(PtlEQAlloc(px_ni, 0, NULL, &eq), PTL_OK);
    assert_int_equal(eq, PTL_EQ_NONE);
    assert_int_equal(PtlEQAlloc(px_ni, 1, NULL, &eq), PTL_OK);
    assert_int_not_equal(eq, PTL_EQ_NONE);
    assert_int_equal(PtlEQFree(eq), PTL_OK);
    assert_int_equal(PtlEQFree(eq), PTL_EQ_INVALID);
    assert_int_equal(PtlEQFree(PTL_EQ_NONE), PTL_EQ_INVALID);
    assert_int_equal(PtlEQFree(PTL_INVALID_HANDLE), PTL_EQ_INVALID);
    assert_int_equal(PtlEQAlloc(PTL_INVALID_HANDLE, 1, NULL, &eq), PTL_NI_INVALID);
    assert_int_equal(PtlEQAlloc(px_ni, 1, NULL, NULL), PTL_SEGV);
    assert_int_equal(PtlEQAlloc(px_ni, ~0ull, NULL, &eq), PTL_NO_SPACE);
}

static void test_taking_events(void **state)
{
    ptl_handle_eq_t eq = px_eq(16);
    struct px_entry e = listen_at(PT, eq);
    ptl_event_t event;
    ptl_seq_t sequence = 0;

    (void)state;
    memset(&event, 0x77, sizeof(event));
    assert_int_equal(PtlEQGet(eq, &event), PTL_EQ_EMPTY);
    assert_int_equal(event.link, 0x77777777); /* untouched */
    for (ptl_hdr_data_t i = 0; i < 10; i++)
        tell(px_self, PT, i);
    for (ptl_hdr_data_t i = 0; i < 10; i++) {
        int rc;

        do {
            rc = PtlEQGet(eq, &event);
        } while (rc == PTL_EQ_EMPTY);
        assert_int_equal(rc, PTL_OK);
        assert_true(event.hdr_data == i);
        assert_true(i == 0 || event.sequence == sequence + 1);
        sequence = event.sequence;
    }
    /* covers: PtlEQGet: PTL_OK */
    tell(px_self, PT, 11);
    assert_int_equal(PtlEQWait(eq, &event), PTL_OK);
    assert_true(event.hdr_data == 11);
    assert_int_equal(PtlEQGet(eq, &event), PTL_EQ_EMPTY);
    assert_int_equal(PtlEQGet(eq, NULL), PTL_SEGV);
    assert_int_equal(PtlEQWait(eq, NULL), PTL_SEGV);
    assert_int_equal(PtlMEUnlink(e.me), PTL_OK);
    assert_int_equal(PtlEQFree(eq), PTL_OK);
    assert_int_equal(PtlEQGet(eq, &event), PTL_EQ_INVALID);
    assert_int_equal(PtlEQWait(eq, &event), PTL_EQ_INVALID);
    assert_int_equal(PtlEQWait(PTL_EQ_NONE, &event), PTL_EQ_INVALID);
}

#if PX_CRAY
static void test_peeking(void **state)
{
    ptl_handle_eq_t eq = px_eq(64);
    struct px_entry e = listen_at(PT, eq);
    ptl_event_t event;
    int rc;

    (void)state;
    assert_int_equal(PtlEQPeek(eq, &event), PTL_EQ_EMPTY);
    tell(px_self, PT, 5);
    do {
        rc = PtlEQPeek(eq, &event);
    } while (rc == PTL_EQ_EMPTY);
    assert_int_equal(rc, PTL_OK);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(PtlEQPeek(eq, &event), PTL_OK);
        assert_true(event.hdr_data == 5);
    }
    assert_true(px_take(eq).hdr_data == 5);
    assert_int_equal(PtlEQPeek(eq, &event), PTL_EQ_EMPTY);
    assert_int_equal(PtlEQPeek(eq, NULL), PTL_SEGV);

    /* Losses are told as often as one looks, and still by the taking. */
    for (ptl_hdr_data_t i = 0; i < 200; i++)
        tell(px_self, PT, i);
    px_settle();
    assert_int_equal(PtlEQPeek(eq, &event), PTL_EQ_DROPPED);
    assert_int_equal(PtlEQPeek(eq, &event), PTL_EQ_DROPPED);
    assert_int_equal(PtlEQGet(eq, &event), PTL_EQ_DROPPED);
    assert_int_equal(PtlEQPeek(eq, &event), PTL_OK);
    assert_int_equal(PtlMEUnlink(e.me), PTL_OK);
    assert_int_equal(PtlEQFree(eq), PTL_OK);
    assert_int_equal(PtlEQPeek(eq, &event), PTL_EQ_INVALID);
}
#endif

static void test_polling_looks_in_the_order_of_the_array(void **state)
{
    ptl_handle_eq_t eqs[3], copy[3];
    struct px_entry e[3];
    ptl_event_t event;
    int which = -1;

    (void)state;
    for (unsigned i = 0; i < 3; i++) {
        eqs[i] = px_eq(8);
        e[i] = listen_at(PT + i, eqs[i]);
    }
    memcpy(copy, eqs, sizeof(eqs));
    assert_int_equal(PtlEQPoll(eqs, 3, 0, &event, &which), PTL_EQ_EMPTY);
    for (unsigned i = 3; i-- > 0;) {
        tell(px_self, PT + i, i);
        tell(px_self, PT + i, i);
    }
    px_settle();
    for (int i = 0; i < 6; i++) {
        assert_int_equal(PtlEQPoll(eqs, 3, i % 2 ? 0 : PTL_TIME_FOREVER, &event, &which), PTL_OK);
        assert_int_equal(which, i / 2);
        assert_true(event.hdr_data == (ptl_hdr_data_t)(i / 2));
    }
    assert_int_equal(PtlEQPoll(eqs, 3, 0, &event, &which), PTL_EQ_EMPTY);
    assert_memory_equal(eqs, copy, sizeof(eqs)); /* never written */
    for (int i = 0; i < 3; i++) {
        assert_int_equal(PtlMEUnlink(e[i].me), PTL_OK);
        assert_int_equal(PtlEQFree(eqs[i]), PTL_OK);
    }
}

static void test_polling_waits_as_long_as_it_is_told(void **state)
{
    ptl_handle_eq_t eq = px_eq(8);
    ptl_event_t event;
    int which = -1;
    uint64_t begin = now_ms(), end;

    (void)state;
    assert_int_equal(PtlEQPoll(&eq, 1, 120, &event, &which), PTL_EQ_EMPTY);
    end = now_ms();
    assert_true(end - begin >= 119);
    assert_int_equal(PtlEQFree(eq), PTL_OK);
}

/* covers: PtlEQPoll: PTL_SEGV */
static void test_polling_bad_arguments(void **state)
{
    ptl_handle_eq_t eqs[3] = { px_eq(8), PTL_INVALID_HANDLE, px_eq(8) };
    ptl_event_t event;
    int which = -1;
    const struct {
        const char *name;
        ptl_handle_eq_t *eqs;
        int n;
        ptl_event_t *event;
        int *which;
        int rc;
    } rows[] = {
        { "no queue", eqs, 0, &event, &which, PTL_EQ_INVALID },
        { "-1 queues", eqs, -1, &event, &which, PTL_EQ_INVALID },
        { "no table", NULL, 1, &event, &which, PTL_SEGV },
        { "no event", eqs, 1, NULL, &which, PTL_SEGV },
        { "no index", eqs, 1, &event, NULL, PTL_SEGV },
    };

    (void)state;
    assert_int_equal(PtlEQPoll(eqs, 3, 0, &event, &which), PTL_EQ_INVALID);
    assert_int_equal(which, 1);
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        assert_row_equal(rows[i].name, PtlEQPoll(rows[i].eqs, rows[i].n, 0, rows[i].event, rows[i].which), rows[i].rc);
    assert_int_equal(PtlEQFree(eqs[0]), PTL_OK);
    assert_int_equal(PtlEQFree(eqs[2]), PTL_OK);
    assert_int_equal(PtlEQPoll(eqs, 1, 0, &event, &which), PTL_EQ_INVALID);
}

/* Waiting for a neighbour's message, in every blocking way. */
static void test_blocking_calls_end_with_an_event(void **state)
{
    ptl_handle_eq_t eqs[2] = { px_eq(8), px_eq(8) };
    struct px_entry e = listen_at(PT, eqs[1]);
    ptl_event_t event;
    int which = -1;

    (void)state;
    for (int i = 0; i < 30; i++) {
        px_barrier();
        if (px_rank == i % px_size)
            tell(px_next, PT, (ptl_hdr_data_t)i);
        if (px_rank != (i + 1) % px_size)
            continue;
        if (i % 3 == 0)
            assert_int_equal(PtlEQWait(eqs[1], &event), PTL_OK);
        else
            assert_int_equal(PtlEQPoll(eqs, 2, i % 3 == 1 ? PTL_TIME_FOREVER : PX_PATIENCE_MS, &event, &which), PTL_OK);
        assert_true(event.hdr_data == (ptl_hdr_data_t)i);
    }
    px_settle();
    assert_int_equal(PtlMEUnlink(e.me), PTL_OK);
    assert_int_equal(PtlEQFree(eqs[0]), PTL_OK);
    assert_int_equal(PtlEQFree(eqs[1]), PTL_OK);
}

/* ---- overflow ---- */

/* The oldest are lost, nothing else: messages were kept, thresholds counted, acknowledgements sent. */
static void test_a_full_queue_loses_its_oldest_events(void **state)
{
    enum { N = 1000 };
    static uint8_t kept[N];
    ptl_handle_eq_t eq = px_eq(64), acks = px_eq(2 * N);
    struct px_entry e =
        px_entry(PT, 0, 0, PTL_RETAIN, px_md(kept, N, PTL_MD_OP_PUT | PTL_MD_EVENT_START_DISABLE, N, eq), PTL_RETAIN);
    uint8_t byte = 0x5a;
    ptl_handle_md_t mdh =
        px_bind(px_md(&byte, 1, PTL_MD_EVENT_START_DISABLE | PTL_MD_EVENT_END_DISABLE, -1, acks), PTL_RETAIN);
    ptl_event_t event;
    ptl_seq_t sequence;
    unsigned n = 1;

    (void)state;
    px_barrier();
    for (ptl_hdr_data_t i = 0; i < N; i++)
        assert_int_equal(PtlPut(mdh, PTL_ACK_REQ, px_next, PT, 0, 0, 0, i), PTL_OK);
    for (int i = 0; i < N; i++)
        px_take_kind(acks, PTL_EVENT_ACK);
    px_settle();
    px_all(kept, N, 0x5a);

    assert_int_equal(PtlEQGet(eq, &event), PTL_EQ_DROPPED);
    assert_true(event.hdr_data > 0);
    sequence = event.sequence;
    while (PtlEQGet(eq, &event) == PTL_OK) { /* the loss is told once */
        assert_int_equal(event.sequence, ++sequence);
        n++;
    }
    assert_true(n >= 64 && n < N);
    assert_true(event.hdr_data == N - 1); /* the newest is there */
    assert_int_equal(event.md.threshold, PX_CRAY ? 1 : 0);
    assert_int_equal(PtlEQGet(eq, &event), PTL_EQ_EMPTY);

    /* Again, by the other calls. */
    e.md.threshold = PTL_MD_THRESH_INF;
    for (int i = 0; i < 2; i++) {
        int which = -1;

        assert_int_equal(PtlMDUpdate(e.mdh, NULL, &e.md, PTL_EQ_NONE), PTL_OK);
        px_settle();
        for (ptl_hdr_data_t k = 0; k < 300; k++)
            assert_int_equal(PtlPut(mdh, PX_NO_ACK, px_next, PT, 0, 0, 0, k), PTL_OK);
        px_settle();
        if (i == 0)
            assert_int_equal(PtlEQWait(eq, &event), PTL_EQ_DROPPED);
        else
            assert_int_equal(PtlEQPoll(&eq, 1, PTL_TIME_FOREVER, &event, &which), PTL_EQ_DROPPED);
        for (n = 1; PtlEQGet(eq, &event) == PTL_OK; n++)
            ;
        assert_true(n >= 64);
    }
    px_settle();
    assert_int_equal(PtlMDUnlink(mdh), PTL_OK);
    assert_int_equal(PtlMEUnlink(e.me), PTL_OK);
    assert_int_equal(PtlEQFree(eq), PTL_OK);
    assert_int_equal(PtlEQFree(acks), PTL_OK);
}

/* As many as asked for fit, whatever the number. */
static void test_what_was_asked_for_fits(void **state)
{
    static const ptl_size_t counts[] = { 1, 3, 64, 65, 1000, 5000 };

    (void)state;
    for (size_t c = 0; c < COUNT_OF(counts); c++) {
        ptl_handle_eq_t eq = px_eq(counts[c]);
        struct px_entry e = listen_at(PT, eq);

        px_barrier();
        for (ptl_size_t i = 0; i < counts[c]; i++)
            tell(px_next, PT, i);
        px_settle();
        for (ptl_size_t i = 0; i < counts[c]; i++)
            assert_true(px_take(eq).hdr_data == i);
        px_nothing(eq);
        assert_int_equal(PtlMEUnlink(e.me), PTL_OK);
        assert_int_equal(PtlEQFree(eq), PTL_OK);
    }
}

/* Who asks for few events has room for a burst. */
static void test_a_small_queue_takes_a_burst(void **state)
{
    static const ptl_size_t counts[] = { 1, 8, 63 };

    (void)state;
    for (size_t c = 0; c < COUNT_OF(counts); c++) {
        ptl_handle_eq_t eq = px_eq(counts[c]);
        struct px_entry e = listen_at(PT, eq);

        px_barrier();
        for (ptl_size_t i = 0; i < 500; i++)
            tell(px_next, PT, i);
        px_settle();
        for (ptl_size_t i = 0; i < 500; i++)
            assert_true(px_take(eq).hdr_data == i);
        px_nothing(eq);
        assert_int_equal(PtlMEUnlink(e.me), PTL_OK);
        assert_int_equal(PtlEQFree(eq), PTL_OK);
    }
}

/* Its events vanish; the descriptor goes on. */
static void test_descriptors_outlive_their_queue(void **state)
{
    ptl_handle_eq_t eq = px_eq(8), other;
    struct px_entry e = listen_at(PT, eq);
    ptl_md_t now = { 0 };

    (void)state;
    assert_int_equal(PtlEQFree(eq), PTL_OK);
    other = px_eq(8); /* the slot may be used again: not for its events */
    px_barrier();
    tell(px_next, PT, 0);
    px_settle();
    px_nothing(other);
    assert_int_equal(PtlMDUpdate(e.mdh, &now, NULL, PTL_EQ_NONE), PTL_OK);
    assert_int_equal(PtlMEUnlink(e.me), PTL_OK);
    assert_int_equal(PtlEQFree(other), PTL_OK);
}

/* ---- handlers ---- */

static struct {
    ptl_event_t seen[8];
    unsigned n;
    ptl_handle_md_t mdh; /* what the handler sends on */
    ptl_handle_me_t me;  /* what it has made */
} handled;

static void handle(ptl_event_t *event)
{
    handled.seen[handled.n++ % 8] = *event;
}

static void forward(ptl_event_t *event)
{
    handled.n++;
    if (event->hdr_data == 0)
        return;
    assert_int_equal(PtlPut(handled.mdh, PX_NO_ACK, px_self, PT, 0, 0, 0, event->hdr_data - 1), PTL_OK);
    assert_int_equal(PtlMEAttach(px_ni, PT + 1, px_anybody, 0, 0, PTL_RETAIN, PTL_INS_AFTER, &handled.me), PTL_OK);
    assert_int_equal(PtlMEUnlink(handled.me), PTL_OK);
}

/* Once for each event, which the caller gets as well. */
static void test_handlers_see_each_event_before_its_taker(void **state)
{
    ptl_handle_eq_t eq;
    struct px_entry e;
    ptl_event_t event;
    int which = -1;

    (void)state;
    memset(&handled, 0, sizeof(handled));
    assert_int_equal(PtlEQAlloc(px_ni, 8, handle, &eq), PTL_OK);
    e = listen_at(PT, eq);
    for (ptl_hdr_data_t i = 0; i < 3; i++)
        tell(px_self, PT, i);
    px_settle();
    for (unsigned i = 0; i < 3; i++) {
        if (i == 0)
            assert_int_equal(PtlEQGet(eq, &event), PTL_OK);
        else if (i == 1)
            assert_int_equal(PtlEQWait(eq, &event), PTL_OK);
        else
            assert_int_equal(PtlEQPoll(&eq, 1, 0, &event, &which), PTL_OK);
        assert_int_equal(handled.n, i + 1);
        assert_true(handled.seen[i].hdr_data == i && event.hdr_data == i);
        assert_int_equal(handled.seen[i].md_handle, e.mdh);
    }
    assert_int_equal(PtlEQGet(eq, &event), PTL_EQ_EMPTY);
    assert_int_equal(handled.n, 3);
    assert_int_equal(PtlMEUnlink(e.me), PTL_OK);
    assert_int_equal(PtlEQFree(eq), PTL_OK);
}

static void test_handlers_may_make_calls(void **state)
{
    ptl_handle_eq_t eq;
    struct px_entry e;
    ptl_event_t event;

    (void)state;
    memset(&handled, 0, sizeof(handled));
    handled.mdh = empty;
    assert_int_equal(PtlEQAlloc(px_ni, 8, forward, &eq), PTL_OK);
    e = listen_at(PT, eq);
    tell(px_self, PT, 5);
    for (int i = 0; i < 6; i++)
        assert_int_equal(PtlEQWait(eq, &event), PTL_OK);
    assert_int_equal(handled.n, 6);
    assert_int_equal(PtlMEUnlink(e.me), PTL_OK);
    assert_int_equal(PtlEQFree(eq), PTL_OK);
}

/* ---- threads ---- */

enum { THREADS = 4, EVENTS = 400 };

static struct {
    ptl_handle_eq_t eq;
    _Atomic unsigned n_taken;
    _Atomic uint64_t sum;
    _Atomic unsigned n_wrong;
} shared;

static void *take_share(void *arg)
{
    (void)arg;
    for (unsigned i = 0; i < EVENTS / THREADS; i++) {
        ptl_event_t event;

        if (PtlEQWait(shared.eq, &event) != PTL_OK)
            shared.n_wrong++;
        shared.sum += event.hdr_data;
        shared.n_taken++;
    }
    return NULL;
}

/* Several wait in one queue while another sends: an event goes to one of them. */
static void test_threads_share_a_queue(void **state)
{
    pthread_t threads[THREADS];
    struct px_entry e;

    (void)state;
    memset(&shared, 0, sizeof(shared));
    shared.eq = px_eq(EVENTS);
    e = listen_at(PT, shared.eq);
    px_barrier();
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, take_share, NULL), 0);
    for (ptl_hdr_data_t i = 1; i <= EVENTS; i++)
        tell(px_next, PT, i);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    assert_int_equal(shared.n_wrong, 0);
    assert_int_equal(shared.n_taken, EVENTS);
    assert_true(shared.sum == (uint64_t)EVENTS * (EVENTS + 1) / 2);
    px_settle();
    px_nothing(shared.eq);
    assert_int_equal(PtlMEUnlink(e.me), PTL_OK);
    assert_int_equal(PtlEQFree(shared.eq), PTL_OK);
}

static void *churn(void *arg)
{
    uint8_t mine[16] = { 0 };
    ptl_pt_index_t pt = PT + 2 + (ptl_pt_index_t)(uintptr_t)arg;

    for (int i = 0; i < 100; i++) {
        ptl_handle_eq_t eq;
        ptl_handle_me_t me;
        ptl_handle_md_t mdh, from;
        ptl_event_t event;
        ptl_md_t md = {
            .start = mine, .length = 8, .threshold = 1, .options = PTL_MD_OP_PUT | PTL_MD_EVENT_START_DISABLE
        };

        if (PtlEQAlloc(px_ni, 4, NULL, &eq) != PTL_OK)
            shared.n_wrong++;
        md.eq_handle = eq;
        if (PtlMEAttach(px_ni, pt, px_anybody, 0, 0, PTL_RETAIN, PTL_INS_BEFORE, &me) != PTL_OK ||
            PtlMDAttach(me, md, PTL_RETAIN, &mdh) != PTL_OK)
            shared.n_wrong++;
        md = (ptl_md_t){ .start = mine + 8, .length = 8, .threshold = 1, .eq_handle = PTL_EQ_NONE };
        if (PtlMDBind(px_ni, md, PTL_RETAIN, &from) != PTL_OK ||
            PtlPut(from, PX_NO_ACK, px_self, pt, 0, 0, 0, 1) != PTL_OK || PtlEQWait(eq, &event) != PTL_OK)
            shared.n_wrong++;
        while (PtlMDUnlink(from) == PTL_MD_IN_USE)
            ;
        while (PtlMEUnlink(me) == PTL_ME_IN_USE)
            ;
        if (PtlEQFree(eq) != PTL_OK)
            shared.n_wrong++;
    }
    return NULL;
}

/* Each thread with objects of its own: no call disturbs another's. */
static void test_threads_use_everything_at_once(void **state)
{
    pthread_t threads[THREADS];
    ptl_sr_value_t mes = px_register(PTL_SR_MES_CUR), mds = px_register(PTL_SR_MDS_CUR),
                   eqs = px_register(PTL_SR_EQS_CUR);

    (void)state;
    shared.n_wrong = 0;
    for (uintptr_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, churn, (void *)i), 0);
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    assert_int_equal(shared.n_wrong, 0);
    assert_true(px_register(PTL_SR_MES_CUR) == mes);
    assert_true(px_register(PTL_SR_MDS_CUR) == mds);
    assert_true(px_register(PTL_SR_EQS_CUR) == eqs);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
#define eq_test(name) cmocka_unit_test_setup_teardown(name, open_source, close_source)
        eq_test(test_making_queues),
        eq_test(test_taking_events),
#if PX_CRAY
        eq_test(test_peeking),
#endif
        eq_test(test_polling_looks_in_the_order_of_the_array),
        eq_test(test_polling_waits_as_long_as_it_is_told),
        eq_test(test_polling_bad_arguments),
        eq_test(test_blocking_calls_end_with_an_event),
        eq_test(test_a_full_queue_loses_its_oldest_events),
        eq_test(test_what_was_asked_for_fits),
        eq_test(test_a_small_queue_takes_a_burst),
        eq_test(test_descriptors_outlive_their_queue),
        eq_test(test_handlers_see_each_event_before_its_taker),
        eq_test(test_handlers_may_make_calls),
        eq_test(test_threads_share_a_queue),
        eq_test(test_threads_use_everything_at_once),
    };

    return px_run(tests, NULL);
}
