/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A poll that finds nothing may give the core to others for a while. What they have sent meanwhile it does not miss:
 * PtlEQGet and PtlEQPoll look again before they say that there is nothing. They also say when nothing can come any
 * more.
 *
 * The moment is made: this program's own sched_yield(), which the library calls, has the peer send and comes back when
 * the message is there.
 */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdbool.h>
#include <sys/syscall.h>

#include <cmocka.h>

#include "tests/common/portals_job.h"

#define PT    4u
#define POLLS 200000u

/* In the memory that both share. */
struct board {
    ptl_process_id_t target;
    _Atomic uint32_t asked; /* messages */
    _Atomic uint32_t sent;  /* of them, that are in the target's queue */
};

static struct fx fx;
static struct board *armed; /* the next yield is the moment */

__attribute__((visibility("default"))) int sched_yield(void)
{
    struct board *board = armed;

    armed = NULL;
    if (board) {
        uint32_t n = atomic_fetch_add(&board->asked, 1) + 1;
        uint64_t end_ns = emu_clock_ns() + PJ_PATIENCE_NS;

        while (atomic_load(&board->sent) != n && emu_clock_ns() < end_ns)
            syscall(SYS_sched_yield);
        return 0;
    }
    return (int)syscall(SYS_sched_yield);
}

static int poll_once(bool is_poll, ptl_handle_eq_t eq, ptl_event_t *event)
{
    int which;

    return is_poll ? PtlEQPoll(&eq, 1, 0, event, &which) : PtlEQGet(eq, event);
}

/* The poll in which the message comes has to return it. */
static void expect_in_the_same_poll(struct board *board, ptl_handle_eq_t eq, bool is_poll)
{
    ptl_event_t event;
    unsigned n = 0;
    int rc;

    armed = board;
    do {
        rc = poll_once(is_poll, eq, &event);
    } while (armed && rc == PTL_EQ_EMPTY && ++n < POLLS);
    pj_must(rc, "poll");
    if (event.type != PTL_EVENT_PUT_END)
        pj_must(PTL_FAIL, "another event");
}

static void receive(struct board *board, ptl_handle_ni_t ni, ptl_process_id_t self)
{
    static uint8_t memory[8];
    ptl_md_t md = { .start = memory,
                    .length = 8,
                    .threshold = PTL_MD_THRESH_INF,
                    .options = PTL_MD_OP_PUT | PTL_MD_MANAGE_REMOTE | PTL_MD_EVENT_START_DISABLE };
    ptl_handle_md_t mdh;
    ptl_handle_me_t me;

    PJ(PtlEQAlloc(ni, 64, NULL, &md.eq_handle));
    PJ(PtlMEAttach(ni, PT, pj_anybody(), 0, 0, PTL_RETAIN, PTL_INS_AFTER, &me));
    PJ(PtlMDAttach(me, md, PTL_RETAIN, &mdh));
    board->target = self;
    for (unsigned i = 0; i < 10; i++)
        expect_in_the_same_poll(board, md.eq_handle, i % 2);
}

static void send_when_asked(struct board *board, ptl_handle_ni_t ni)
{
    static uint8_t memory[8];
    ptl_md_t md = { .start = memory,
                    .length = 8,
                    .threshold = PTL_MD_THRESH_INF,
                    .options = PTL_MD_EVENT_START_DISABLE | PTL_MD_EVENT_END_DISABLE };
    ptl_handle_md_t mdh;

    PJ(PtlEQAlloc(ni, 64, NULL, &md.eq_handle));
    PJ(PtlMDBind(ni, md, PTL_RETAIN, &mdh));
    for (uint32_t n = 1; n <= 10; n++) {
        uint64_t end_ns = emu_clock_ns() + PJ_PATIENCE_NS;

        while (atomic_load(&board->asked) < n) {
            pj_must(emu_clock_ns() < end_ns ? PTL_OK : PTL_FAIL, "nobody asks");
            syscall(SYS_sched_yield);
        }
        PJ(PtlPut(mdh, PTL_ACK_REQ, board->target, PT, 0, 0, 0, 0));
        (void)pj_expect(md.eq_handle, PTL_EVENT_ACK);
        atomic_store(&board->sent, n);
    }
}

static int body(struct fx_rank *rank)
{
    ptl_process_id_t self;
    ptl_handle_ni_t ni = pj_open(rank->fx, (ptl_pid_t)(200 + rank->rank), &self);

    if (rank->rank == 0)
        receive(rank->shared, ni, self);
    else
        send_when_asked(rank->shared, ni);
    PtlFini();
    return 0;
}

static void test_what_comes_while_a_poll_rests_is_returned_by_it(void **state)
{
    (void)state;
    assert_int_equal(fx_run(&fx, 2, body, NULL), 0);
}

/* ---- emunic goes ---- */

/* Polls until something else comes than nothing. */
static int poll_on(struct fx_rank *rank)
{
    bool is_poll = *(const bool *)rank->arg;
    struct board *board = rank->shared;
    uint64_t end_ns = emu_clock_ns() + PJ_PATIENCE_NS;
    ptl_process_id_t self;
    ptl_handle_ni_t ni = pj_open(rank->fx, 200, &self);
    ptl_handle_eq_t eq;
    ptl_event_t event;
    int rc;

    PJ(PtlEQAlloc(ni, 64, NULL, &eq));
    pj_must(poll_once(is_poll, eq, &event) == PTL_EQ_EMPTY ? PTL_OK : PTL_FAIL, "a poll while emunic is there");
    atomic_store(&board->asked, 1);
    while ((rc = poll_once(is_poll, eq, &event)) == PTL_EQ_EMPTY && emu_clock_ns() < end_ns)
        ;
    FX_CHECK(rc == PTL_EQ_INVALID);
    FX_CHECK(poll_once(is_poll, eq, &event) == PTL_EQ_INVALID);
    return 0;
}

static void expect_to_hear_of_the_end(bool is_poll)
{
    uint64_t end_ns = emu_clock_ns() + PJ_PATIENCE_NS;
    struct fx_ranks ranks;
    struct board *board;

    fx_spawn(&fx, 1, poll_on, &is_poll, &ranks);
    board = ranks.shared;
    while (atomic_load(&board->asked) == 0 && emu_clock_ns() < end_ns && !fx_is_over(&ranks))
        syscall(SYS_sched_yield);
    kill(fx.daemon, SIGKILL);
    assert_int_equal(fx_join(&ranks), 0);
}

static void test_PtlEQGet_says_that_emunic_has_gone(void **state)
{
    (void)state;
    expect_to_hear_of_the_end(false);
}

static void test_PtlEQPoll_that_just_looks_says_that_emunic_has_gone(void **state)
{
    (void)state;
    expect_to_hear_of_the_end(true);
}

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

/* A test has killed it. */
static int stop_killed(void **state)
{
    (void)state;
    fx_stop(&fx);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_what_comes_while_a_poll_rests_is_returned_by_it, start, stop),
        cmocka_unit_test_setup_teardown(test_PtlEQGet_says_that_emunic_has_gone, start, stop_killed),
        cmocka_unit_test_setup_teardown(test_PtlEQPoll_that_just_looks_says_that_emunic_has_gone, start, stop_killed),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
