/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two hosts, and processes and hosts that go, pause and come back in the middle of transfers.
 */
#include <errno.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "tests/integration/two_hosts.h"

#define LONGER_MS 5000u /* where hosts that work on a busy machine must not be lost */

static int start_with_longer_timeout(void **state)
{
    (void)state;
    return start_with(LONGER_MS);
}

/* ---- processes that die ---- */

/* A target on the other host; shared[1] and on: its address and its handle. */
static void be_a_target(void)
{
    struct gx_side side;

    gx_open(&side, &fx, 3, 30, 0);
    memcpy((void *)(uintptr_t)&shared[2], &side.mem_hndl, sizeof(side.mem_hndl));
    atomic_store(&shared[1], ADDR(side.mem));
    atomic_fetch_add(&shared[0], 1);
    pause();
}

static void test_death_of_the_target_fails_transactions_and_nothing_else(void **state)
{
    gni_post_descriptor_t good = gx_put(&a, &b, 0, 8, GNI_CQMODE_GLOBAL_EVENT);
    gni_post_descriptor_t d = gx_put(&a, &b, 0, 8, GNI_CQMODE_GLOBAL_EVENT);
    gni_ep_handle_t ep;
    pid_t pid = start_child(be_a_target);
    unsigned i = 0;

    (void)state;
    wait_for_child(1);
    assert_int_equal(GNI_EpCreate(a.nic, a.src_cq, &ep), GNI_RC_SUCCESS);
    assert_int_equal(GNI_EpBind(ep, 3, 30), GNI_RC_SUCCESS);
    d.remote_addr = atomic_load(&shared[1]);
    memcpy(&d.remote_mem_hndl, (void *)(uintptr_t)&shared[2], sizeof(d.remote_mem_hndl));
    assert_int_equal(GNI_PostFma(ep, &d), GNI_RC_SUCCESS);
    assert_int_equal(complete(&a, &d), GNI_RC_SUCCESS);
    kill_child(pid);
    /* Until that emunic has seen it. */
    for (;;) {
        assert_int_equal(GNI_PostFma(ep, &d), GNI_RC_SUCCESS);
        if (complete(&a, &d) == GNI_RC_TRANSACTION_ERROR)
            break;
        assert_true(i++ < 1000000);
    }
    assert_int_equal(post(&a, &good, false), GNI_RC_SUCCESS);
    assert_int_equal(complete(&a, &good), GNI_RC_SUCCESS);
    assert_int_equal(GNI_EpDestroy(ep), GNI_RC_SUCCESS);
}

/* An initiator on the head that is killed with long transfers under way: puts, or gets (shared[5]). */
static void move_for_ever(void)
{
    struct long_memory m = { .local = map_bytes(LONG_BYTES) };
    gni_post_descriptor_t d[8];
    struct gx_side side;

    gx_open(&side, &fx, 2, 40, 0);
    FX_CHECK(GNI_EpCreate(side.nic, side.src_cq, &side.ep) == GNI_RC_SUCCESS);
    FX_CHECK(GNI_EpBind(side.ep, b.nic_addr, b.inst_id) == GNI_RC_SUCCESS);
    FX_CHECK(GNI_MemRegister(side.nic, ADDR(m.local), LONG_BYTES, NULL, GNI_MEM_READWRITE, (uint32_t)-1,
                             &m.local_hndl) == GNI_RC_SUCCESS);
    for (unsigned i = 0;; i++) {
        gni_post_descriptor_t *done;

        if (i >= 8)
            FX_CHECK(gx_complete(side.src_cq, &done) == GNI_RC_SUCCESS);
        d[i % 8] = (gni_post_descriptor_t){ .type = shared[5] ? GNI_POST_RDMA_GET : GNI_POST_RDMA_PUT,
                                            .cq_mode = GNI_CQMODE_GLOBAL_EVENT,
                                            .local_addr = ADDR(m.local),
                                            .local_mem_hndl = m.local_hndl,
                                            .remote_addr = shared[1],
                                            .length = LONG_BYTES,
                                            .src_cq_hndl = side.src_cq };
        memcpy(&d[i % 8].remote_mem_hndl, (void *)(uintptr_t)&shared[2], sizeof(gni_mem_handle_t));
        FX_CHECK(GNI_PostRdma(side.ep, &d[i % 8]) == GNI_RC_SUCCESS);
        atomic_fetch_add(&shared[0], 1);
    }
}

static void kill_an_initiator(const struct long_memory *m, bool gets)
{
    pid_t pid;

    memset((void *)(uintptr_t)shared, 0, SHARED_BYTES);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        fx_forget(&fx);
        atomic_store(&shared[1], ADDR(m->remote));
        atomic_store(&shared[5], gets);
        memcpy((void *)(uintptr_t)&shared[2], &m->remote_hndl, sizeof(m->remote_hndl));
        move_for_ever();
    }
    wait_for_child(20);
    kill_child(pid);
}

static void test_death_of_the_initiator_leaves_nothing(void **state)
{
    gni_post_descriptor_t good = gx_put(&a, &b, 0, 8, GNI_CQMODE_GLOBAL_EVENT);
    struct long_memory m;

    (void)state;
    open_long(&m);
    for (unsigned i = 0; i < 6; i++) {
        kill_an_initiator(&m, i % 2);
        assert_int_equal(post(&a, &good, false), GNI_RC_SUCCESS);
        assert_int_equal(complete(&a, &good), GNI_RC_SUCCESS);
    }
    move_both_ways(&m, 4, LONG_BYTES - 8);
    close_long(&m);
}

/* A target on the other host with long memory. */
static void be_a_long_target(void)
{
    struct gx_side side;
    uint8_t *memory = map_bytes(LONG_BYTES);
    gni_mem_handle_t hndl;

    gx_open(&side, &fx, 3, 30, 0);
    FX_CHECK(GNI_MemRegister(side.nic, ADDR(memory), LONG_BYTES, NULL, GNI_MEM_READWRITE, (uint32_t)-1, &hndl) ==
             GNI_RC_SUCCESS);
    memcpy((void *)(uintptr_t)&shared[2], &hndl, sizeof(hndl));
    atomic_store(&shared[1], ADDR(memory));
    atomic_fetch_add(&shared[0], 1);
    pause();
}

static void test_death_of_the_target_in_the_middle_of_long_transfers(void **state)
{
    enum { N = 8 };
    gni_post_descriptor_t d[N];
    gni_post_descriptor_t *done;
    struct long_memory m;
    gni_ep_handle_t ep;

    (void)state;
    open_long(&m);
    for (unsigned round = 0; round < 4; round++) {
        pid_t pid = start_child(be_a_long_target);

        wait_for_child(1);
        assert_int_equal(GNI_EpCreate(a.nic, a.src_cq, &ep), GNI_RC_SUCCESS);
        assert_int_equal(GNI_EpBind(ep, 3, 30), GNI_RC_SUCCESS);
        for (unsigned i = 0; i < N; i++) {
            d[i] = long_post(&m, (i + round) % 2 ? GNI_POST_RDMA_PUT : GNI_POST_RDMA_GET);
            d[i].remote_addr = atomic_load(&shared[1]);
            memcpy(&d[i].remote_mem_hndl, (void *)(uintptr_t)&shared[2], sizeof(d[i].remote_mem_hndl));
            assert_int_equal(GNI_PostRdma(ep, &d[i]), GNI_RC_SUCCESS);
        }
        kill_child(pid);
        for (unsigned i = 0; i < N; i++)
            assert_true(gx_complete(a.src_cq, &done) != GNI_RC_NOT_DONE);
        assert_int_equal(GNI_EpDestroy(ep), GNI_RC_SUCCESS);
    }
    move_both_ways(&m, 4, LONG_BYTES - 8);
    close_long(&m);
}

/* ---- hosts that go ---- */

static void test_lost_host_fails_what_is_under_way_and_what_comes(void **state)
{
    gni_post_descriptor_t small[16];
    gni_post_descriptor_t *done;
    gni_post_descriptor_t near = gx_put(&a, &a, 0, 8, GNI_CQMODE_GLOBAL_EVENT);
    gni_post_descriptor_t slow;
    struct emu_session admin;
    struct long_memory m;
    gni_ep_handle_t self;

    (void)state;
    open_long(&m);
    slow = long_post(&m, GNI_POST_RDMA_GET);
    kill(fx.hosts[1].daemon, SIGSTOP);
    assert_int_equal(post(&a, &slow, true), GNI_RC_SUCCESS);
    for (unsigned i = 0; i < 16; i++) {
        small[i] = gx_put(&a, &b, 8ull * i, 8, GNI_CQMODE_GLOBAL_EVENT);
        assert_int_equal(post(&a, &small[i], false), GNI_RC_SUCCESS);
    }
    fx_kill_host(&fx, 1);
    for (unsigned i = 0; i < 17; i++)
        assert_int_equal(gx_complete(a.src_cq, &done), GNI_RC_TRANSACTION_ERROR);
    fx_await_host(&fx, 0, 1, false);
    assert_int_equal(fx_add_domain(&fx, 78, 0x78, geteuid(), 0, &admin), -EHOSTUNREACH);
    assert_int_equal(post(&a, &small[0], false), GNI_RC_SUCCESS);
    assert_int_equal(complete(&a, &small[0]), GNI_RC_TRANSACTION_ERROR);
    /* The rest goes on. */
    self = ep_from_to(&a, &a);
    assert_int_equal(GNI_PostFma(self, &near), GNI_RC_SUCCESS);
    assert_int_equal(complete(&a, &near), GNI_RC_SUCCESS);
    assert_int_equal(GNI_EpDestroy(self), GNI_RC_SUCCESS);
    munmap(m.local, LONG_BYTES);
    munmap(m.remote, LONG_BYTES);
}

static void chain_to(gni_ep_handle_t ep, const struct gx_side *to, gni_post_descriptor_t *head,
                     gni_ct_put_post_descriptor_t *more)
{
    *head = gx_put(&a, to, 0, 8, GNI_CQMODE_GLOBAL_EVENT);
    *more = (gni_ct_put_post_descriptor_t){ .ep_hndl = ep,
                                            .length = 8,
                                            .local_addr = head->local_addr,
                                            .remote_addr = head->remote_addr + 8,
                                            .remote_mem_hndl = head->remote_mem_hndl };
    head->next_descr = more;
    assert_int_equal(GNI_CtPostFma(ep, head), GNI_RC_SUCCESS);
}

static void test_chains_that_fail_with_their_host_leave_nothing_to_the_next(void **state)
{
    enum { N = 4 };
    gni_ct_put_post_descriptor_t more[N];
    gni_post_descriptor_t before[2 * N];
    gni_post_descriptor_t heads[N];
    gni_post_descriptor_t *done;
    gni_ep_handle_t self;

    (void)state;
    /* So many were under way before: the chains' places are no longer in the order of their elements. */
    for (unsigned i = 0; i < 2 * N; i++) {
        before[i] = gx_put(&a, &b, 8ull * i, 8, GNI_CQMODE_GLOBAL_EVENT);
        assert_int_equal(post(&a, &before[i], false), GNI_RC_SUCCESS);
    }
    for (unsigned i = 0; i < 2 * N; i++)
        assert_int_equal(gx_complete(a.src_cq, &done), GNI_RC_SUCCESS);
    self = ep_from_to(&a, &a);
    kill(fx.hosts[1].daemon, SIGSTOP);
    for (unsigned i = 0; i < N; i++)
        chain_to(a.ep, &b, &heads[i], &more[i]);
    fx_kill_host(&fx, 1);
    for (unsigned i = 0; i < N; i++)
        assert_int_equal(gx_complete(a.src_cq, &done), GNI_RC_TRANSACTION_ERROR);
    chain_to(self, &a, &heads[0], &more[0]);
    assert_int_equal(complete(&a, &heads[0]), GNI_RC_SUCCESS);
    assert_int_equal(GNI_EpDestroy(self), GNI_RC_SUCCESS);
}

static void test_host_that_comes_back_works_again(void **state)
{
    gni_post_descriptor_t d = gx_put(&a, &b, 0, 8, GNI_CQMODE_GLOBAL_EVENT);
    struct gx_side again;

    (void)state;
    fx_kill_host(&fx, 1);
    fx_await_host(&fx, 0, 1, false);
    fx_restart_host(&fx, 1);
    fx_await_host(&fx, 0, 1, true);
    fx_await_host(&fx, 1, 0, true);
    /* Its memory is gone with its processes' attachment... */
    assert_int_equal(post(&a, &d, false), GNI_RC_SUCCESS);
    assert_int_equal(complete(&a, &d), GNI_RC_TRANSACTION_ERROR);
    /* ...and new memory works. */
    gx_open(&again, &fx, 1, 12, 0);
    gx_connect(&a, &again);
    d = gx_put(&a, &again, 0, 8, GNI_CQMODE_GLOBAL_EVENT);
    memcpy(a.mem, "back now", 8);
    assert_int_equal(post(&a, &d, false), GNI_RC_SUCCESS);
    assert_int_equal(complete(&a, &d), GNI_RC_SUCCESS);
    assert_memory_equal(again.mem, "back now", 8);
    gx_close(&again);
}

/* Silent for longer than the timeout, as behind a link that is cut: its processes and their memory are still there. */
static void test_host_that_was_cut_off_goes_on_with_what_it_had(void **state)
{
    gni_post_descriptor_t d = gx_put(&a, &b, 0, 8, GNI_CQMODE_GLOBAL_EVENT);
    gni_post_descriptor_t back = gx_put(&b, &a, 64, 8, GNI_CQMODE_GLOBAL_EVENT);

    (void)state;
    kill(fx.hosts[1].daemon, SIGSTOP);
    assert_int_equal(post(&a, &d, false), GNI_RC_SUCCESS);
    assert_int_equal(complete(&a, &d), GNI_RC_TRANSACTION_ERROR);
    fx_await_host(&fx, 0, 1, false);
    kill(fx.hosts[1].daemon, SIGCONT);
    fx_await_host(&fx, 0, 1, true);
    fx_await_host(&fx, 1, 0, true);
    memcpy(a.mem, "here i am", 9);
    assert_int_equal(post(&a, &d, false), GNI_RC_SUCCESS);
    assert_int_equal(complete(&a, &d), GNI_RC_SUCCESS);
    assert_memory_equal(b.mem, "here i a", 8);
    assert_int_equal(post(&b, &back, false), GNI_RC_SUCCESS);
    assert_int_equal(complete(&b, &back), GNI_RC_SUCCESS);
}

/* Silent for less than the timeout: nothing is lost. */
static void test_host_that_pauses_delays_its_own_commands_only(void **state)
{
    gni_post_descriptor_t far = gx_put(&a, &b, 0, 8, GNI_CQMODE_GLOBAL_EVENT);
    gni_post_descriptor_t near = gx_put(&a, &a, 64, 8, GNI_CQMODE_GLOBAL_EVENT);
    gni_post_descriptor_t *done;
    gni_ep_handle_t self;

    (void)state;
    self = ep_from_to(&a, &a);
    kill(fx.hosts[1].daemon, SIGSTOP);
    assert_int_equal(post(&a, &far, false), GNI_RC_SUCCESS);
    assert_int_equal(GNI_PostFma(self, &near), GNI_RC_SUCCESS);
    assert_int_equal(gx_complete(a.src_cq, &done), GNI_RC_SUCCESS);
    assert_ptr_equal(done, &near);
    kill(fx.hosts[1].daemon, SIGCONT);
    assert_int_equal(complete(&a, &far), GNI_RC_SUCCESS);
    assert_int_equal(GNI_EpDestroy(self), GNI_RC_SUCCESS);
}

/*
 * Rounds of the emunic of `side`, whose domain is routed: every 64th, or before a sleep, it looks at what it waits for.
 * False: something else has ended.
 */
static bool make_rounds(const struct gx_side *side, gni_ep_handle_t self)
{
    gni_post_descriptor_t near = gx_put(side, side, 64, 8, GNI_CQMODE_GLOBAL_EVENT);
    gni_post_descriptor_t *done;

    for (unsigned i = 0; i < 70; i++) {
        if (GNI_PostFma(self, &near) != GNI_RC_SUCCESS || gx_complete(side->src_cq, &done) != GNI_RC_SUCCESS ||
            done != &near)
            return false;
    }
    return true;
}

/* As when a whole machine is suspended: time in which nobody could answer is nobody's silence. */
static void test_machine_that_stands_still_for_longer_than_the_timeout_loses_nothing(void **state)
{
    gni_post_descriptor_t far = gx_put(&a, &b, 0, 8, GNI_CQMODE_GLOBAL_EVENT);
    gni_ep_handle_t self;
    uint64_t until_ns;
    bool is_quiet;

    (void)state;
    fx_set_routed(&fx, true);
    self = ep_from_to(&a, &a);
    kill(fx.hosts[1].daemon, SIGSTOP);
    assert_int_equal(post(&a, &far, false), GNI_RC_SUCCESS);
    is_quiet = make_rounds(&a, self);
    kill(fx.hosts[0].daemon, SIGSTOP);
    until_ns = emu_clock_ns() + (LONGER_MS + TIMEOUT_MS) * 1000000ull;
    while (emu_clock_ns() < until_ns)
        sched_yield();
    kill(fx.hosts[0].daemon, SIGCONT);
    is_quiet = make_rounds(&a, self) && is_quiet;
    kill(fx.hosts[1].daemon, SIGCONT);
    assert_true(is_quiet);
    assert_int_equal(complete(&a, &far), GNI_RC_SUCCESS);
    assert_int_equal(GNI_EpDestroy(self), GNI_RC_SUCCESS);
}

static struct gx_side c; /* node 2, on a third host */

static int start_three(void **state)
{
    struct fx_options options = { .n_hosts = 3, .timeout_ms = 30000 }; /* the third pauses for less */

    (void)state;
    fx_start(&fx, &options);
    gx_open(&a, &fx, 0, 10, 0);
    gx_open(&b, &fx, 1, 11, 0);
    gx_open(&c, &fx, 2, 12, 0);
    gx_connect(&a, &b);
    return 0;
}

static int stop_three(void **state)
{
    gx_close(&c);
    return stop(state);
}

/* Staging is of each host, too. */
static void test_long_transfers_to_a_host_that_pauses_delay_those_to_no_other(void **state)
{
    enum { N = 12 };
    static gni_post_descriptor_t stuck[N];
    gni_post_descriptor_t *done;
    struct long_memory m;
    gni_ep_handle_t ep;
    gni_mem_handle_t hndl;
    uint8_t *memory = map_kind(PRIVATE_FILE);

    (void)state;
    open_kinds(&m, PRIVATE_FILE, PRIVATE_FILE);
    assert_int_equal(GNI_MemRegister(c.nic, ADDR(memory), LONG_BYTES, NULL, GNI_MEM_READWRITE, (uint32_t)-1, &hndl),
                     GNI_RC_SUCCESS);
    ep = ep_from_to(&a, &c);
    kill(fx.hosts[2].daemon, SIGSTOP);
    for (unsigned i = 0; i < N; i++) {
        stuck[i] = long_post(&m, GNI_POST_RDMA_PUT);
        stuck[i].remote_addr = ADDR(memory);
        stuck[i].remote_mem_hndl = hndl;
        assert_int_equal(GNI_PostRdma(ep, &stuck[i]), GNI_RC_SUCCESS);
    }
    for (unsigned i = 0; i < 3; i++) {
        gni_post_descriptor_t d = long_post(&m, GNI_POST_RDMA_PUT);

        assert_int_equal(post(&a, &d, true), GNI_RC_SUCCESS);
        assert_int_equal(gx_complete(a.src_cq, &done), GNI_RC_SUCCESS);
        assert_ptr_equal(done, &d);
    }
    kill(fx.hosts[2].daemon, SIGCONT);
    for (unsigned i = 0; i < N; i++)
        assert_int_equal(gx_complete(a.src_cq, &done), GNI_RC_SUCCESS);
    assert_int_equal(GNI_EpDestroy(ep), GNI_RC_SUCCESS);
    assert_int_equal(GNI_MemDeregister(c.nic, &hndl), GNI_RC_SUCCESS);
    close_long(&m);
    munmap(memory, LONG_BYTES);
}

/* The sides' emunics may have gone. */
static int stop_hosts(void **state)
{
    (void)state;
    GNI_EpDestroy(a.ep);
    GNI_CdmDestroy(a.cdm);
    GNI_CdmDestroy(b.cdm);
    free(a.mem);
    free(b.mem);
    return fx_stop(&fx);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_death_of_the_target_fails_transactions_and_nothing_else, start, stop),
        cmocka_unit_test_setup_teardown(test_death_of_the_initiator_leaves_nothing, start, stop),
        cmocka_unit_test_setup_teardown(test_death_of_the_target_in_the_middle_of_long_transfers, start, stop),
        cmocka_unit_test_setup_teardown(test_lost_host_fails_what_is_under_way_and_what_comes, start, stop_hosts),
        cmocka_unit_test_setup_teardown(test_chains_that_fail_with_their_host_leave_nothing_to_the_next, start,
                                        stop_hosts),
        cmocka_unit_test_setup_teardown(test_host_that_comes_back_works_again, start, stop_hosts),
        cmocka_unit_test_setup_teardown(test_host_that_was_cut_off_goes_on_with_what_it_had, start, stop),
        cmocka_unit_test_setup_teardown(test_host_that_pauses_delays_its_own_commands_only, start, stop),
        cmocka_unit_test_setup_teardown(test_machine_that_stands_still_for_longer_than_the_timeout_loses_nothing,
                                        start_with_longer_timeout, stop),
        cmocka_unit_test_setup_teardown(test_long_transfers_to_a_host_that_pauses_delay_those_to_no_other, start_three,
                                        stop_three),
    };

    if (!getenv("EMU_TEST_TRANSPORT")) {
        printf("1..0 # SKIP EMU_TEST_TRANSPORT does not name the transport's module\n");
        return 0;
    }
    if (children_init() < 0)
        return 1;
    return cmocka_run_group_tests_name("hosts_loss", tests, NULL, NULL);
}
