/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Threads: one interface in many hands, blocking calls among them, and interfaces that threads open for themselves. One
 * process on a private emunic, and a child of it that takes messages and answers none. Built with ThreadSanitizer, too
 * (make check-threads).
 *
 * Threads note their first failure; the test asserts that there is none. Source: spec/portals3.md 1.11.
 */
#include "tests/common/portals.h"

#include <pthread.h>
#include <stdatomic.h>
#include <sys/wait.h>

#include "tests/common/fixture.h"

#define THREADS  4
#define ROUNDS   200
#define BYTES    4096u
#define PEER_PT  9
#define FIRST_PT 10
#define QUEUE_PT 20

static struct fx fx;
static ptl_process_id_t peer;
static pid_t peer_pid;
static int peer_ends[2]; /* the peer lives until we close it */

/* ---- threads ---- */

struct worker {
    pthread_t thread;
    unsigned number;
    int failed_line; /* 0: none */
    const char *failed;
};

#define TRY(condition)                                                                                                 \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            w->failed_line = __LINE__;                                                                                 \
            w->failed = #condition;                                                                                    \
            return NULL;                                                                                               \
        }                                                                                                              \
    } while (0)

static void start_workers(struct worker *workers, unsigned n, void *(*body)(void *))
{
    for (unsigned i = 0; i < n; i++) {
        workers[i] = (struct worker){ .number = i };
        assert_int_equal(pthread_create(&workers[i].thread, NULL, body, &workers[i]), 0);
    }
}

static void join_workers(struct worker *workers, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        assert_int_equal(pthread_join(workers[i].thread, NULL), 0);
    for (unsigned i = 0; i < n; i++) {
        if (workers[i].failed_line)
            print_error("thread %u, line %d: not true: %s\n", i, workers[i].failed_line, workers[i].failed);
        assert_int_equal(workers[i].failed_line, 0);
    }
}

static void run_workers(void *(*body)(void *))
{
    struct worker workers[THREADS];

    start_workers(workers, THREADS, body);
    join_workers(workers, THREADS);
}

/* ---- surroundings ---- */

/* Takes whatever comes into its memory. */
static void be_the_peer(int tell)
{
    static uint8_t memory[BYTES * THREADS];
    ptl_md_t md = { .start = memory,
                    .length = sizeof(memory),
                    .threshold = PTL_MD_THRESH_INF,
                    .eq_handle = PTL_EQ_NONE,
                    .options = PTL_MD_OP_PUT | PTL_MD_OP_GET | PTL_MD_MANAGE_REMOTE };
    ptl_process_id_t id;
    ptl_handle_any_t ni, me, mdh;
    char byte;
    int n;

    fx_forget(&fx);
    fx_set_node(fx.nids[1]);
    FX_CHECK(PtlInit(&n) == PTL_OK);
    FX_CHECK(PtlNIInit(PTL_IFACE_DEFAULT, PTL_PID_ANY, NULL, NULL, &ni) == PTL_OK);
    FX_CHECK(PtlGetId(ni, &id) == PTL_OK);
    FX_CHECK(PtlMEAttach(ni, PEER_PT, px_anybody, 0, 0, PTL_RETAIN, PTL_INS_AFTER, &me) == PTL_OK);
    FX_CHECK(PtlMDAttach(me, md, PTL_RETAIN, &mdh) == PTL_OK);
    FX_CHECK(write(tell, &id, sizeof(id)) == sizeof(id));
    FX_CHECK(read(peer_ends[0], &byte, 1) == 0);
    PtlFini();
    _exit(0);
}

static void start_peer(void)
{
    int tell[2];

    assert_int_equal(pipe(tell), 0);
    assert_int_equal(pipe(peer_ends), 0);
    peer_pid = fork();
    assert_true(peer_pid >= 0);
    if (peer_pid == 0) {
        close(peer_ends[1]);
        be_the_peer(tell[1]);
    }
    close(tell[1]);
    close(peer_ends[0]);
    assert_int_equal(read(tell[0], &peer, sizeof(peer)), sizeof(peer));
    close(tell[0]);
}

static int set_up(void **state)
{
    char text[16];
    int n;

    (void)state;
    fx_start(&fx, &(struct fx_options){ .n_ranks = 2 });
    fx_set_node(fx.nids[0]);
    snprintf(text, sizeof(text), "%u", fx.ptag);
    setenv("EMUNIC_PTAG", text, 1);
    snprintf(text, sizeof(text), "%u", fx.cookie);
    setenv("EMUNIC_COOKIE", text, 1);
    start_peer();
    fx_set_node(fx.nids[0]);
    assert_int_equal(PtlInit(&n), PTL_OK);
    assert_int_equal(PtlNIInit(PTL_IFACE_DEFAULT, PTL_PID_ANY, NULL, &px_limits, &px_ni), PTL_OK);
    return PtlGetId(px_ni, &px_self) == PTL_OK ? 0 : -1;
}

static int tear_down(void **state)
{
    int status = -1;

    (void)state;
    PtlFini();
    close(peer_ends[1]);
    waitpid(peer_pid, &status, 0);
    fx_stop(&fx);
    return status == 0 ? 0 : -1;
}

/* ---- one interface for all ---- */

static bool take(ptl_handle_eq_t eq, ptl_event_kind_t kind, bool blocks, ptl_event_t *event)
{
    int rc;

    if (blocks)
        rc = PtlEQWait(eq, event);
    else
        while ((rc = PtlEQGet(eq, event)) == PTL_EQ_EMPTY)
            ;
    return rc == PTL_OK && event->type == kind && event->ni_fail_type == PTL_NI_OK;
}

/* A descriptor of `bytes` at `start`. */
static bool bind_md(void *start, ptl_size_t bytes, ptl_handle_eq_t eq, ptl_handle_md_t *mdh)
{
    ptl_md_t md = { .start = start,
                    .length = bytes,
                    .threshold = PTL_MD_THRESH_INF,
                    .options = PTL_MD_EVENT_START_DISABLE,
                    .eq_handle = eq };

    return PtlMDBind(px_ni, md, PTL_RETAIN, mdh) == PTL_OK;
}

/*
 * Objects of its own, made and taken away in each round; puts and gets to ourselves and to the peer. Half of them
 * block.
 */
static void *live_on_own_objects(void *arg)
{
    struct worker *w = arg;
    ptl_pt_index_t pt = FIRST_PT + w->number;
    bool blocks = w->number % 2 == 0;
    uint8_t *memory = aligned_alloc(4096, (size_t)3 * BYTES);

    TRY(memory);
    for (unsigned round = 0; round < ROUNDS; round++) {
        ptl_size_t bytes = 1 + round * 37 % BYTES;
        ptl_size_t place = w->number * BYTES;
        ptl_handle_eq_t eq, target_eq;
        ptl_handle_md_t out, back, target;
        ptl_handle_me_t me;
        ptl_md_t md = { .start = memory,
                        .length = BYTES,
                        .threshold = PTL_MD_THRESH_INF,
                        .options = PTL_MD_OP_PUT | PTL_MD_EVENT_START_DISABLE };
        ptl_event_t event;

        memset(memory, 0, (size_t)3 * BYTES);
        memset(memory + BYTES, (int)(1 + (round + w->number) % 250), bytes);
        TRY(PtlEQAlloc(px_ni, 8, PTL_EQ_HANDLER_NONE, &eq) == PTL_OK);
        TRY(PtlEQAlloc(px_ni, 8, PTL_EQ_HANDLER_NONE, &target_eq) == PTL_OK);
        md.eq_handle = target_eq;
        TRY(PtlMEAttach(px_ni, pt, px_anybody, round, 0, PTL_UNLINK, PTL_INS_AFTER, &me) == PTL_OK);
        TRY(PtlMDAttach(me, md, PTL_UNLINK, &target) == PTL_OK);
        TRY(bind_md(memory + BYTES, bytes, eq, &out));
        TRY(bind_md(memory + 2 * BYTES, bytes, eq, &back));

        TRY(PtlPut(out, PTL_ACK_REQ, px_self, pt, 0, round, 0, round) == PTL_OK);
        TRY(take(eq, PTL_EVENT_SEND_END, blocks, &event));
        TRY(take(eq, PTL_EVENT_ACK, blocks, &event) && event.mlength == bytes);
        TRY(take(target_eq, PTL_EVENT_PUT_END, blocks, &event) && event.hdr_data == round);
        TRY(memcmp(memory, memory + BYTES, bytes) == 0);

        TRY(PtlPut(out, PTL_ACK_REQ, peer, PEER_PT, 0, 0, place, 0) == PTL_OK);
        TRY(take(eq, PTL_EVENT_SEND_END, blocks, &event));
        TRY(take(eq, PTL_EVENT_ACK, blocks, &event) && event.mlength == bytes);
        TRY(PtlGet(back, peer, PEER_PT, 0, 0, place) == PTL_OK);
        TRY(!PX_CRAY || take(eq, PTL_EVENT_SEND_END, blocks, &event));
        TRY(take(eq, PTL_EVENT_REPLY_END, blocks, &event) && event.mlength == bytes);
        TRY(memcmp(memory + 2 * BYTES, memory + BYTES, bytes) == 0);

        TRY(PtlMDUnlink(out) == PTL_OK && PtlMDUnlink(back) == PTL_OK);
        TRY(PtlMEUnlink(me) == PTL_OK);
        TRY(PtlEQFree(eq) == PTL_OK && PtlEQFree(target_eq) == PTL_OK);
    }
    free(memory);
    return NULL;
}

static void test_threads_work_side_by_side_on_one_interface(void **state)
{
    (void)state;
    run_workers(live_on_own_objects);
}

/* ---- one queue for all ---- */

#define MESSAGES 400

static ptl_handle_eq_t shared_eq;
static _Atomic unsigned n_taken[MESSAGES];
static _Atomic unsigned n_all;

/* Until it gets an event that tells it to stop. */
static void *take_in_turn(void *arg)
{
    struct worker *w = arg;

    for (;;) {
        ptl_event_t event;
        int which = -1;

        if (w->number % 2)
            TRY(PtlEQPoll(&shared_eq, 1, PTL_TIME_FOREVER, &event, &which) == PTL_OK && which == 0);
        else
            TRY(PtlEQWait(shared_eq, &event) == PTL_OK);
        TRY(event.type == PTL_EVENT_PUT_END);
        if (event.hdr_data >= MESSAGES)
            return NULL;
        atomic_fetch_add(&n_taken[event.hdr_data], 1);
        atomic_fetch_add(&n_all, 1);
    }
}

/* covers: PtlEQWait: PTL_OK */
static void test_an_event_wakes_one_of_those_who_wait(void **state)
{
    struct worker workers[THREADS];
    ptl_handle_md_t out;
    struct px_entry entry;
    uint8_t byte = 0;

    (void)state;
    shared_eq = px_eq(MESSAGES + THREADS);
    entry = px_entry(
        QUEUE_PT, 0, 0, PTL_RETAIN,
        px_md(NULL, 0, PTL_MD_OP_PUT | PTL_MD_TRUNCATE | PTL_MD_EVENT_START_DISABLE, PTL_MD_THRESH_INF, shared_eq),
        PTL_RETAIN);
    assert_true(bind_md(&byte, 0, PTL_EQ_NONE, &out));
    start_workers(workers, THREADS, take_in_turn);
    for (unsigned i = 0; i < MESSAGES; i++) {
        assert_int_equal(PtlPut(out, PX_NO_ACK, px_self, QUEUE_PT, 0, 0, 0, i), PTL_OK);
        /* Now and then they all sleep before the next one comes. */
        if (i % 16 == 0) {
            while (atomic_load(&n_all) <= i)
                ;
        }
    }
    for (unsigned i = 0; i < THREADS; i++)
        assert_int_equal(PtlPut(out, PX_NO_ACK, px_self, QUEUE_PT, 0, 0, 0, MESSAGES), PTL_OK);
    join_workers(workers, THREADS);
    for (unsigned i = 0; i < MESSAGES; i++)
        assert_int_equal(n_taken[i], 1);
    px_nothing(shared_eq);
    assert_int_equal(PtlMDUnlink(out), PTL_OK);
    assert_int_equal(PtlMEUnlink(entry.me), PTL_OK);
    assert_int_equal(PtlEQFree(shared_eq), PTL_OK);
}

/* ---- an interface each ---- */

#if !PX_CRAY
static void *open_and_close(void *arg)
{
    static const ptl_interface_t ifaces[] = { PTL_IFACE_UTCP1, PTL_IFACE_UTCP2, PTL_IFACE_UTCP3 };
    struct worker *w = arg;

    for (unsigned round = 0; round < ROUNDS / 10; round++) {
        ptl_md_t md = { .start = &round, .length = sizeof(round), .threshold = 1, .options = 0 };
        ptl_handle_ni_t ni;
        ptl_handle_eq_t eq;
        ptl_handle_md_t mdh;
        ptl_event_t event;

        TRY(PtlNIInit(ifaces[w->number], PTL_PID_ANY, NULL, NULL, &ni) == PTL_OK);
        TRY(PtlEQAlloc(ni, 4, PTL_EQ_HANDLER_NONE, &eq) == PTL_OK);
        md.eq_handle = eq;
        TRY(PtlMDBind(ni, md, PTL_RETAIN, &mdh) == PTL_OK);
        TRY(PtlPut(mdh, PTL_NO_ACK_REQ, peer, PEER_PT, 0, 0, w->number * BYTES, 0) == PTL_OK);
        TRY(take(eq, PTL_EVENT_SEND_START, true, &event) && take(eq, PTL_EVENT_SEND_END, true, &event));
        TRY(PtlNIFini(ni) == PTL_OK);
    }
    return NULL;
}

static void test_threads_open_and_close_interfaces_at_the_same_time(void **state)
{
    struct worker workers[3];

    (void)state;
    start_workers(workers, 3, open_and_close);
    join_workers(workers, 3);
}
#endif

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_threads_work_side_by_side_on_one_interface),
        cmocka_unit_test(test_an_event_wakes_one_of_those_who_wait),
#if !PX_CRAY
        cmocka_unit_test(test_threads_open_and_close_interfaces_at_the_same_time),
#endif
    };

    setvbuf(stdout, NULL, _IOLBF, 0);
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
