/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A thread's clock in a fence: what it says of itself when it comes out, in time or before. Waits before and behind the
 * horizon. Requests, while which emunic must not take the thread for one that waits for others. Another thread is
 * emunic.
 */
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cmocka.h>

#include "emunic/abi/abi.h"
#include "emunic/base/socket.h"
#include "emunic/client/session.h"
#include "emunic/client/virtual_clock.h"

#define KEY 7u

static struct emu_vclock_page page = {
    .magic = EMU_VCLOCK_MAGIC, .abi_version = EMU_ABI_VERSION, .n_clocks = EMU_VCLOCKS, .n_taken = 1
};
static struct emu_vclock *const own = &page.clocks[0];

/* The clock is the test's already, and runs: nothing is asked for it. */
static int adopt(void **state)
{
    (void)state;
    page.server_pid = (uint32_t)getpid();
    atomic_store(&own->tid, (uint32_t)syscall(SYS_gettid));
    atomic_store(&own->state, EMU_VCLOCK_RUNS);
    return emu_vclock_adopt(&page, -1) ? 0 : -1;
}

/* The clock's thread, when it has asked for that. */
struct emunic {
    pthread_t thread;
    enum emu_vclock_state awaits;
    uint32_t seen_call;
};

static void *be_emunic(void *arg)
{
    struct emunic *emunic = arg;

    while (atomic_load(&own->state) != emunic->awaits)
        sched_yield();
    emunic->seen_call = atomic_load(&own->call);
    atomic_store(&own->state, EMU_VCLOCK_RUNS);
    syscall(SYS_futex, &own->state, FUTEX_WAKE, INT_MAX, NULL, NULL, 0);
    return NULL;
}

static void begin_fence(struct emunic *emunic, enum emu_vclock_state awaits)
{
    emu_vclock_fence_begin(KEY);
    assert_int_equal(atomic_load(&own->state), EMU_VCLOCK_FENCED);
    assert_int_equal(atomic_load(&own->fence_key), KEY);
    assert_int_equal(atomic_load(&own->call), EMU_VCLOCK_CALL_FENCE);
    *emunic = (struct emunic){ .awaits = awaits };
    assert_int_equal(pthread_create(&emunic->thread, NULL, be_emunic, emunic), 0);
}

static void expect_outside(void)
{
    assert_int_equal(atomic_load(&own->state), EMU_VCLOCK_RUNS);
    assert_int_equal(atomic_load(&own->call), EMU_VCLOCK_CALL_NONE);
}

static void test_who_comes_out_of_a_fence_is_in_none(void **state)
{
    struct emunic emunic;

    (void)state;
    begin_fence(&emunic, EMU_VCLOCK_UNFENCED);
    emu_vclock_fence_end();
    pthread_join(emunic.thread, NULL);
    assert_int_equal(emunic.seen_call, EMU_VCLOCK_CALL_FENCE);
    expect_outside();
}

/* Somebody else has come out before. */
static void test_who_comes_out_last_is_in_none(void **state)
{
    struct emunic emunic;

    (void)state;
    begin_fence(&emunic, EMU_VCLOCK_FENCED);
    pthread_join(emunic.thread, NULL);
    assert_int_equal(atomic_load(&own->call), EMU_VCLOCK_CALL_FENCE);
    /* What waits in the call has the host's time, as it would have while the fence lasts. */
    assert_false(emu_vclock_runs());
    emu_vclock_fence_end();
    expect_outside();
    assert_true(emu_vclock_runs());
}

/* As behind the limit of MPI_Finalize: emunic must not take it for one that is coming out. */
static void test_who_leaves_a_fence_before_its_end_is_in_none(void **state)
{
    struct emunic emunic;

    (void)state;
    begin_fence(&emunic, EMU_VCLOCK_RETURNS);
    emu_vclock_return();
    pthread_join(emunic.thread, NULL);
    assert_int_equal(emunic.seen_call, EMU_VCLOCK_CALL_FENCE);
    expect_outside();
}

/* Nobody is there to answer a request. */
static void test_a_wait_before_the_horizon_asks_for_nothing(void **state)
{
    uint64_t now_ps = atomic_load(&own->now_ps);

    (void)state;
    atomic_store(&own->horizon_ps, now_ps + 1000);
    assert_int_equal(emu_vclock_wait(EMU_VCLOCK_CALL_POLL, now_ps + 999, 10), EMU_VCLOCK_WENT_ON);
    assert_int_equal(atomic_load(&own->now_ps), now_ps + 999);
    assert_int_equal(atomic_load(&own->state), EMU_VCLOCK_RUNS);
    /* No clock goes back. */
    assert_int_equal(emu_vclock_wait(EMU_VCLOCK_CALL_SLEEP, now_ps, 0), EMU_VCLOCK_WENT_ON);
    assert_int_equal(atomic_load(&own->now_ps), now_ps + 999);
}

static void test_a_post_draws_the_horizon_in(void **state)
{
    uint64_t now_ps = atomic_load(&own->now_ps);

    (void)state;
    atomic_store(&own->horizon_ps, now_ps + 1000);
    emu_vclock_draw_in_horizon(now_ps + 300);
    emu_vclock_draw_in_horizon(now_ps + 700);
    assert_int_equal(atomic_load(&own->horizon_ps), now_ps + 300);
    emu_vclock_draw_in_horizon(0);
    assert_false(emu_vclock_is_before_horizon());
}

/* What it posts may come back to the others. */
static void test_a_thread_that_comes_leaves_no_horizon(void **state)
{
    uint64_t now_ps = atomic_load(&own->now_ps);
    struct emu_vclock *clock;

    (void)state;
    atomic_store(&own->horizon_ps, now_ps + 1000);
    clock = emu_vclock_reserve();
    assert_non_null(clock);
    assert_false(emu_vclock_is_before_horizon());
    emu_vclock_give_back(clock);
}

static void expect_request(enum emu_vclock_call call, uint64_t until_ps)
{
    struct emunic emunic = { .awaits = EMU_VCLOCK_WAITS };

    assert_int_equal(pthread_create(&emunic.thread, NULL, be_emunic, &emunic), 0);
    assert_int_equal(emu_vclock_wait(call, until_ps, 0), EMU_VCLOCK_WENT_ON);
    pthread_join(emunic.thread, NULL);
    assert_int_equal(emunic.seen_call, call);
    assert_int_equal(atomic_load(&own->until_ps), until_ps);
}

static void test_other_waits_ask_emunic(void **state)
{
    uint64_t now_ps = atomic_load(&own->now_ps);

    (void)state;
    atomic_store(&own->horizon_ps, now_ps + 1000);
    emu_vclock_before_look();
    expect_request(EMU_VCLOCK_CALL_POLL, now_ps + 1000);
    expect_request(EMU_VCLOCK_CALL_WAIT, now_ps + 999); /* a thread of the process may end it */
}

/* ---- requests ---- */

struct answerer {
    pthread_t thread;
    int fd;
    uint32_t call_of_request;
    uint32_t call_of_end;
};

/* Answers one request, and then closes when the other side has. */
static void *answer(void *arg)
{
    struct answerer *a = arg;
    struct emu_msg msg;
    struct emu_fds fds;

    if (emu_msg_receive(a->fd, &msg, &fds) == 0) {
        a->call_of_request = atomic_load(&own->call);
        emu_msg_send(a->fd, &msg, NULL, 0);
    }
    emu_msg_receive(a->fd, &msg, &fds);
    a->call_of_end = atomic_load(&own->call);
    close(a->fd);
    return NULL;
}

static void test_who_has_asked_emunic_says_so(void **state)
{
    struct emu_session session = { .lock = PTHREAD_MUTEX_INITIALIZER };
    struct emu_msg msg = { .type = EMU_MSG_VIRTUAL_CLOCK };
    struct answerer a = { .fd = -1 };
    int pair[2];

    (void)state;
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair), 0);
    session.fd = pair[0];
    a.fd = pair[1];
    emu_vclock_note_call(EMU_VCLOCK_CALL_POLL);
    assert_int_equal(pthread_create(&a.thread, NULL, answer, &a), 0);
    assert_int_equal(emu_session_request(&session, &msg, NULL, 0, NULL), 0);
    assert_int_equal(atomic_load(&own->call), EMU_VCLOCK_CALL_POLL);
    emu_session_hang_up(&session);
    pthread_join(a.thread, NULL);
    assert_int_equal(a.call_of_request, EMU_VCLOCK_CALL_ASKED);
    assert_int_equal(a.call_of_end, EMU_VCLOCK_CALL_ASKED);
    assert_int_equal(atomic_load(&own->call), EMU_VCLOCK_CALL_POLL);
    emu_session_close(&session);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        /* Before any return: the first wait behind one is a look. */
        cmocka_unit_test(test_a_wait_before_the_horizon_asks_for_nothing),
        cmocka_unit_test(test_a_post_draws_the_horizon_in),
        cmocka_unit_test(test_a_thread_that_comes_leaves_no_horizon),
        cmocka_unit_test(test_other_waits_ask_emunic),
        cmocka_unit_test(test_who_comes_out_of_a_fence_is_in_none),
        cmocka_unit_test(test_who_comes_out_last_is_in_none),
        cmocka_unit_test(test_who_leaves_a_fence_before_its_end_is_in_none),
        cmocka_unit_test(test_who_has_asked_emunic_says_so),
    };

    return cmocka_run_group_tests_name("virtual clock", tests, adopt, NULL) != 0;
}
