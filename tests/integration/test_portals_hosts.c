/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Portals between two hosts, each an emunic, on this one. What a message does at its target the conformance tests show,
 * which run across hosts as well; here is what only the distance brings: data in parts, and processes and hosts that go
 * in the middle.
 *
 * The target (rank 1, the other host) has portal indices of which each is for one purpose; the initiator (rank 0, the
 * head) sends. Where somebody is to die the initiator is the test itself, and the target a child.
 */
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include <cmocka.h>

#include "tests/common/portals_job.h"
#include "tests/common/proc.h"

#define TIMEOUT_MS    1500u
#define LONG_BYTES    (3u * 1024 * 1024 + 12345) /* parts of unequal size */
#define SHORT_BYTES   (1u << 20)
#define TARGET_PID    40
#define INITIATOR_PID 41
#define PATIENCE_NS   20000000000ull

enum { PT_PUT = 4, PT_TRUNCATE, PT_SCATTERED, PT_GET, PT_SWAP, PT_NOTHING };

static struct fx fx;

/* Between all processes. */
static struct board {
    ptl_process_id_t target;
    _Atomic uint64_t steps; /* of a child */
    _Atomic bool is_over;
} * board;

static uint8_t byte_of(uint64_t i, uint8_t seed)
{
    return (uint8_t)(i * 7 + (i >> 12) + seed);
}

static void fill(uint8_t *memory, uint64_t bytes, uint8_t seed)
{
    for (uint64_t i = 0; i < bytes; i++)
        memory[i] = byte_of(i, seed);
}

/* The bytes from `first` on of what fill() made. */
static void same(const uint8_t *memory, uint64_t bytes, uint8_t seed, uint64_t first)
{
    for (uint64_t i = 0; i < bytes; i++)
        FX_CHECK(memory[i] == byte_of(first + i, seed));
}

static uint8_t *take_bytes(uint64_t bytes)
{
    uint8_t *memory = calloc(1, bytes);

    FX_CHECK(memory != NULL);
    return memory;
}

static ptl_handle_eq_t queue(ptl_handle_ni_t ni)
{
    ptl_handle_eq_t eq;

    PJ(PtlEQAlloc(ni, 4096, NULL, &eq));
    return eq;
}

static ptl_handle_md_t bind_md(ptl_handle_ni_t ni, void *start, ptl_size_t length, ptl_handle_eq_t eq)
{
    ptl_md_t md = { .start = start,
                    .length = length,
                    .threshold = PTL_MD_THRESH_INF,
                    .options = PTL_MD_EVENT_START_DISABLE,
                    .eq_handle = eq };
    ptl_handle_md_t mdh;

    PJ(PtlMDBind(ni, md, PTL_RETAIN, &mdh));
    return mdh;
}

static ptl_handle_md_t attach_md(ptl_handle_ni_t ni, ptl_pt_index_t pt, void *start, ptl_size_t length,
                                 unsigned options, ptl_handle_eq_t eq)
{
    ptl_md_t md = {
        .start = start, .length = length, .threshold = PTL_MD_THRESH_INF, .options = options, .eq_handle = eq
    };
    ptl_handle_me_t me;
    ptl_handle_md_t mdh;

    PJ(PtlMEAttach(ni, pt, pj_anybody(), 0, ~0ull, PTL_RETAIN, PTL_INS_AFTER, &me));
    PJ(PtlMDAttach(me, md, PTL_RETAIN, &mdh));
    return mdh;
}

static int start(void **state)
{
    struct fx_options options = { .n_hosts = 2, .n_ranks = 3, .timeout_ms = TIMEOUT_MS };

    (void)state;
    fx_start(&fx, &options);
    return 0;
}

static int stop(void **state)
{
    (void)state;
    return fx_stop(&fx);
}

/* ---- data in parts ---- */

#define MANAGED (PTL_MD_OP_PUT | PTL_MD_OP_GET | PTL_MD_MANAGE_REMOTE | PTL_MD_EVENT_START_DISABLE)
#define PIECES  3

static uint64_t swap_word = 5;

static int long_target(struct fx_rank *rank)
{
    uint8_t *put = take_bytes(LONG_BYTES), *truncated = take_bytes(SHORT_BYTES), *get = take_bytes(LONG_BYTES);
    uint8_t *scattered = take_bytes(LONG_BYTES + 200);
    ptl_md_iovec_t pieces[PIECES] = { { scattered, 100001 },
                                      { scattered + 100101, 7 },
                                      { scattered + 100208, LONG_BYTES - 100008 } };
    ptl_handle_ni_t ni = pj_open(rank->fx, TARGET_PID, &board->target);
    ptl_handle_eq_t eq = queue(ni);
    ptl_event_t event;

    fill(get, LONG_BYTES, 9);
    attach_md(ni, PT_PUT, put, LONG_BYTES, MANAGED, eq);
    attach_md(ni, PT_TRUNCATE, truncated, SHORT_BYTES, MANAGED | PTL_MD_TRUNCATE, eq);
    attach_md(ni, PT_SCATTERED, pieces, PIECES, MANAGED | PTL_MD_IOVEC, eq);
    attach_md(ni, PT_GET, get, LONG_BYTES, MANAGED, eq);
    attach_md(ni, PT_SWAP, &swap_word, sizeof(swap_word), MANAGED, eq);
    pthread_barrier_wait(rank->barrier);
    /* In the order of the calls, each whole before the next. */
    event = pj_expect(eq, PTL_EVENT_PUT_END);
    FX_CHECK(event.mlength == LONG_BYTES && event.hdr_data == 1 && event.initiator.pid == INITIATOR_PID);
    same(put, LONG_BYTES, 1, 0);
    event = pj_expect(eq, PTL_EVENT_PUT_END);
    FX_CHECK(event.mlength == 1 && event.hdr_data == 2);
    event = pj_expect(eq, PTL_EVENT_PUT_END);
    FX_CHECK(event.rlength == LONG_BYTES && event.mlength == SHORT_BYTES && event.hdr_data == 3);
    same(truncated, SHORT_BYTES, 1, 0);
    event = pj_expect(eq, PTL_EVENT_PUT_END);
    FX_CHECK(event.mlength == LONG_BYTES && event.hdr_data == 4);
    event = pj_expect(eq, PTL_EVENT_GET_END);
    FX_CHECK(event.mlength == LONG_BYTES);
    event = pj_expect(eq, PTL_EVENT_GET_END);
    FX_CHECK(event.mlength == LONG_BYTES - 100);
    event = pj_expect(eq, PTL_EVENT_GETPUT_END);
    FX_CHECK(event.mlength == 8 && swap_word == 17);
    same(scattered, 100001, 1, 0);
    same(scattered + 100101, 7, 1, 100001);
    same(scattered + 100208, LONG_BYTES - 100008, 1, 100008);
    pthread_barrier_wait(rank->barrier);
    PtlFini();
    return 0;
}

static int long_initiator(struct fx_rank *rank)
{
    uint8_t *from = take_bytes(LONG_BYTES), *to = take_bytes(LONG_BYTES), *parts = take_bytes(LONG_BYTES);
    uint64_t mine = 17, old = 0;
    ptl_md_iovec_t pieces[2] = { { parts, 20000 }, { parts + 20100, LONG_BYTES - 20100 } };
    ptl_md_t md = { .start = pieces,
                    .length = 2,
                    .threshold = PTL_MD_THRESH_INF,
                    .options = PTL_MD_EVENT_START_DISABLE | PTL_MD_IOVEC };
    ptl_process_id_t self;
    ptl_handle_ni_t ni = pj_open(rank->fx, INITIATOR_PID, &self);
    ptl_handle_eq_t eq = md.eq_handle = queue(ni);
    ptl_handle_md_t source, scattered;
    unsigned long distance = 0;

    fill(from, LONG_BYTES, 1);
    source = bind_md(ni, from, LONG_BYTES, eq);
    PJ(PtlMDBind(ni, md, PTL_RETAIN, &scattered));
    pthread_barrier_wait(rank->barrier);
    PJ(PtlNIDist(ni, board->target, &distance));
    FX_CHECK(distance > 0);
    PJ(PtlPut(source, PTL_ACK_REQ, board->target, PT_PUT, 0, 0, 0, 1));
    PJ(PtlPutRegion(source, 0, 1, PTL_NOACK_REQ, board->target, PT_PUT, 0, 0, 0, 2));
    PJ(PtlPut(source, PTL_ACK_REQ, board->target, PT_TRUNCATE, 0, 0, 0, 3));
    PJ(PtlPut(source, PTL_NOACK_REQ, board->target, PT_SCATTERED, 0, 0, 0, 4));
    pj_expect(eq, PTL_EVENT_SEND_END);
    FX_CHECK(pj_expect(eq, PTL_EVENT_ACK).mlength == LONG_BYTES);
    pj_expect(eq, PTL_EVENT_SEND_END);
    pj_expect(eq, PTL_EVENT_SEND_END);
    FX_CHECK(pj_expect(eq, PTL_EVENT_ACK).mlength == SHORT_BYTES);
    pj_expect(eq, PTL_EVENT_SEND_END);
    PJ(PtlGet(bind_md(ni, to, LONG_BYTES, eq), board->target, PT_GET, 0, 0, 0));
    pj_expect(eq, PTL_EVENT_SEND_END);
    FX_CHECK(pj_expect(eq, PTL_EVENT_REPLY_END).mlength == LONG_BYTES);
    same(to, LONG_BYTES, 9, 0);
    PJ(PtlGet(scattered, board->target, PT_GET, 0, 0, 0));
    pj_expect(eq, PTL_EVENT_SEND_END);
    FX_CHECK(pj_expect(eq, PTL_EVENT_REPLY_END).mlength == LONG_BYTES - 100);
    same(parts, 20000, 9, 0);
    same(parts + 20100, LONG_BYTES - 20100, 9, 20000);
    PJ(PtlGetPut(bind_md(ni, &old, 8, eq), bind_md(ni, &mine, 8, eq), board->target, PT_SWAP, 0, 0, 0, 0));
    pj_expect(eq, PTL_EVENT_SEND_END);
    pj_expect(eq, PTL_EVENT_REPLY_END);
    FX_CHECK(old == 5);
    pthread_barrier_wait(rank->barrier);
    PtlFini();
    return 0;
}

static int long_messages(struct fx_rank *rank)
{
    return rank->rank == 0 ? long_initiator(rank) : long_target(rank);
}

static void test_long_messages_arrive_whole_and_in_order(void **state)
{
    (void)state;
    assert_int_equal(fx_run(&fx, 2, long_messages, NULL), 0);
}

/* ---- somebody dies ---- */

static pid_t start_child(uint32_t nid, void (*body)(void))
{
    pid_t pid;

    memset(board, 0, sizeof(*board));
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        fx_forget(&fx);
        fx_set_node(nid);
        body();
        _exit(0);
    }
    return pid;
}

static bool has_come(void *arg)
{
    return atomic_load(&board->steps) >= *(const uint64_t *)arg;
}

static void wait_for_child(uint64_t n)
{
    assert_true(eventually(has_come, &n, PATIENCE_NS));
}

static void kill_child(pid_t pid)
{
    int status = -1;

    kill(pid, SIGKILL);
    waitpid(pid, &status, 0);
    assert_true(WIFSIGNALED(status));
}

static void be_a_target(void)
{
    ptl_handle_ni_t ni = pj_open(&fx, TARGET_PID, &board->target);

    attach_md(ni, PT_PUT, take_bytes(LONG_BYTES), LONG_BYTES, MANAGED, PTL_EQ_NONE);
    attach_md(ni, PT_GET, take_bytes(LONG_BYTES), LONG_BYTES, MANAGED, PTL_EQ_NONE);
    atomic_store(&board->steps, 1);
    pause();
}

/* Own side of the tests below. */
static ptl_handle_ni_t own_ni;
static ptl_handle_eq_t own_eq;
static ptl_handle_md_t own_md;
static uint8_t own_memory[LONG_BYTES];
static uint8_t target_memory[LONG_BYTES];

static void open_own(void)
{
    ptl_process_id_t self;

    fx_set_node(fx.nids[0]);
    own_ni = pj_open(&fx, INITIATOR_PID, &self);
    own_eq = queue(own_ni);
    own_md = bind_md(own_ni, own_memory, LONG_BYTES, own_eq);
}

static void close_own(void)
{
    PtlFini();
}

/* What an operation ends with at home: SEND_END of a put, REPLY_END of a get. */
static bool ends_well(ptl_event_kind_t type)
{
    ptl_event_t event;

    do
        pj_must(pj_next(own_eq, &event), "PtlEQGet");
    while (event.type != type);
    return event.ni_fail_type == PTL_NI_OK;
}

static bool put_is_acknowledged(void)
{
    ptl_event_t event;

    PJ(PtlPutRegion(own_md, 0, 8, PTL_ACK_REQ, board->target, PT_PUT, 0, 0, 0, 0));
    if (!ends_well(PTL_EVENT_SEND_END))
        return false;
    return pj_next(own_eq, &event) == PTL_OK && event.type == PTL_EVENT_ACK;
}

static void test_target_that_dies_ends_what_is_sent_to_it(void **state)
{
    (void)state;
    open_own();
    for (unsigned round = 0; round < 10; round++) {
        pid_t pid = start_child(fx.nids[1], be_a_target);
        unsigned n_gets = 0;

        wait_for_child(1);
        assert_true(put_is_acknowledged());
        for (unsigned i = 0; i < 8; i++)
            PJ(PtlPut(own_md, PTL_NOACK_REQ, board->target, PT_PUT, 0, 0, 0, i));
        for (unsigned i = 0; i < 4 && round % 2; i++, n_gets++)
            PJ(PtlGet(own_md, board->target, PT_GET, 0, 0, 0));
        if (round > 2)
            ends_well(PTL_EVENT_SEND_END);
        kill_child(pid);
        /* Each put ends, well or not. A get that finds nobody has no reply. */
        for (unsigned i = round > 2; i < 8 + n_gets; i++)
            ends_well(PTL_EVENT_SEND_END);
        while (PtlMDUnlink(own_md) == PTL_MD_IN_USE)
            sched_yield();
        own_md = bind_md(own_ni, own_memory, LONG_BYTES, own_eq);
    }
    close_own();
}

static void send_for_ever(void)
{
    ptl_process_id_t self;
    ptl_handle_ni_t ni = pj_open(&fx, TARGET_PID, &self);
    ptl_handle_md_t mdh = bind_md(ni, take_bytes(LONG_BYTES), LONG_BYTES, PTL_EQ_NONE);

    for (uint64_t i = 0;; i++) {
        PJ(PtlPut(mdh, PTL_NOACK_REQ, board->target, PT_PUT, 0, 0, 0, i));
        PJ(PtlGet(mdh, board->target, PT_GET, 0, 0, 0));
        atomic_fetch_add(&board->steps, 1);
    }
}

static pid_t start_sender(ptl_process_id_t target)
{
    pid_t pid;

    memset(board, 0, sizeof(*board));
    board->target = target;
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        fx_forget(&fx);
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        fx_set_node(fx.nids[1]);
        send_for_ever();
    }
    return pid;
}

static int n_begun; /* STARTs that have no END */

static bool is_idle(void *arg)
{
    ptl_handle_md_t *mdh = arg;
    int rc = PtlMDUnlink(*mdh);
    ptl_event_t event;

    while (PtlEQGet(own_eq, &event) == PTL_OK)
        n_begun += event.type == PTL_EVENT_PUT_START || event.type == PTL_EVENT_GET_START ? 1 : -1;
    return rc == PTL_OK;
}

static void test_initiator_that_dies_leaves_nothing_pending(void **state)
{
    ptl_process_id_t self;
    ptl_handle_md_t put, get;

    (void)state;
    open_own();
    PJ(PtlGetId(own_ni, &self));
    for (unsigned round = 0; round < 6; round++) {
        pid_t pid;

        put = attach_md(own_ni, PT_PUT, target_memory, LONG_BYTES, MANAGED & ~PTL_MD_EVENT_START_DISABLE, own_eq);
        get = attach_md(own_ni, PT_GET, target_memory, LONG_BYTES, MANAGED & ~PTL_MD_EVENT_START_DISABLE, own_eq);
        pid = start_sender(self);
        wait_for_child(1 + round);
        kill_child(pid);
        assert_true(eventually(is_idle, &put, PATIENCE_NS));
        assert_true(eventually(is_idle, &get, PATIENCE_NS));
        assert_int_equal(n_begun, 0);
    }
    close_own();
}

/* ---- a host goes ---- */

static void test_lost_host_fails_what_is_under_way_and_what_comes(void **state)
{
    pid_t pid = start_child(fx.nids[1], be_a_target);

    (void)state;
    wait_for_child(1);
    open_own();
    assert_true(put_is_acknowledged());
    kill(fx.hosts[1].daemon, SIGSTOP);
    for (unsigned i = 0; i < 4; i++) {
        PJ(PtlPutRegion(own_md, 0, i % 2 ? 8 : LONG_BYTES, PTL_ACK_REQ, board->target, PT_PUT, 0, 0, 0, i));
        PJ(PtlGet(own_md, board->target, PT_GET, 0, 0, 0));
    }
    fx_kill_host(&fx, 1);
    /* SEND_END of each, and REPLY_END of the gets. */
    for (unsigned i = 0; i < 12; i++) {
        ptl_event_t event;

        assert_int_equal(pj_next(own_eq, &event), PTL_OK);
        assert_true(event.type == PTL_EVENT_SEND_END || event.type == PTL_EVENT_REPLY_END);
        assert_int_not_equal(event.ni_fail_type, PTL_NI_OK);
    }
    fx_await_host(&fx, 0, 1, false);
    PJ(PtlPutRegion(own_md, 0, 8, PTL_NOACK_REQ, board->target, PT_PUT, 0, 0, 0, 0));
    assert_false(ends_well(PTL_EVENT_SEND_END));
    /* The rest goes on, and the host when it is back. */
    kill_child(pid);
    pid = start_child(fx.nids[2], be_a_target);
    wait_for_child(1);
    assert_true(put_is_acknowledged());
    kill_child(pid);
    fx_restart_host(&fx, 1);
    fx_await_host(&fx, 0, 1, true);
    fx_await_host(&fx, 1, 0, true);
    pid = start_child(fx.nids[1], be_a_target);
    wait_for_child(1);
    assert_true(put_is_acknowledged());
    kill_child(pid);
    close_own();
}

static void test_lost_host_leaves_nothing_pending_at_its_targets(void **state)
{
    ptl_process_id_t self;
    ptl_handle_md_t put, get;
    pid_t pid;

    (void)state;
    open_own();
    PJ(PtlGetId(own_ni, &self));
    put = attach_md(own_ni, PT_PUT, target_memory, LONG_BYTES, MANAGED & ~PTL_MD_EVENT_START_DISABLE, own_eq);
    get = attach_md(own_ni, PT_GET, target_memory, LONG_BYTES, MANAGED & ~PTL_MD_EVENT_START_DISABLE, own_eq);
    pid = start_sender(self);
    wait_for_child(2);
    fx_kill_host(&fx, 1);
    assert_true(eventually(is_idle, &put, PATIENCE_NS));
    assert_true(eventually(is_idle, &get, PATIENCE_NS));
    assert_int_equal(n_begun, 0);
    kill_child(pid);
    close_own();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_long_messages_arrive_whole_and_in_order, start, stop),
        cmocka_unit_test_setup_teardown(test_target_that_dies_ends_what_is_sent_to_it, start, stop),
        cmocka_unit_test_setup_teardown(test_initiator_that_dies_leaves_nothing_pending, start, stop),
        cmocka_unit_test_setup_teardown(test_lost_host_fails_what_is_under_way_and_what_comes, start, stop),
        cmocka_unit_test_setup_teardown(test_lost_host_leaves_nothing_pending_at_its_targets, start, stop),
    };

    if (!getenv("EMU_TEST_TRANSPORT")) {
        printf("1..0 # SKIP EMU_TEST_TRANSPORT does not name the transport's module\n");
        return 0;
    }
    board = mmap(NULL, sizeof(*board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (board == MAP_FAILED)
        return 1;
    return cmocka_run_group_tests_name("portals between hosts", tests, NULL, NULL);
}
