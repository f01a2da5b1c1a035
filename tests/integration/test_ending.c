/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How emunic and jobs end: shut down or signalled with clients connected and transfers on their way (status 0, no
 * leak), killed, out of descriptors, and launchers that vanish. Each test has an emunic of its own.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include <cmocka.h>

#include "tests/common/gni.h"
#include "tests/common/raw.h"
#include "tests/integration/children.h"

/* ---- the end of emunic ---- */

static void stay_until_emunic_goes(void)
{
    struct gx_side side;
    struct emu_port port;
    struct raw raw;

    fx_set_node(2);
    gx_open(&side, &fx, 0, 20, 0);
    FX_CHECK(emu_port_attach(&port, fx.ptag, fx.cookie, 21, 0) == 0);
    FX_CHECK(raw_connect(&raw, fx.server) == 0);
    atomic_store(&shared[0], 1);
    while (!emu_port_is_lost(&port))
        sched_yield();
    _exit(0);
}

static void test_shutdown_with_clients_connected_is_clean(void **state)
{
    pid_t pids[3];

    (void)state;
    fx_start(&fx, NULL);
    for (unsigned i = 0; i < 3; i++) {
        pids[i] = start_child(stay_until_emunic_goes);
        wait_for_child(1);
    }
    assert_int_equal(fx_stop(&fx), 0);
    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(end_of(pids[i]), 0);
}

static void test_shutdown_in_the_middle_of_transfers_is_clean(void **state)
{
    pid_t pid;

    (void)state;
    fx_start(&fx, NULL);
    pid = start_child(open_everything);
    wait_for_child(1);
    assert_int_equal(fx_stop(&fx), 0);
    kill_child(pid);
}

static void test_signals_shut_down_cleanly(void **state)
{
    static const int signals[] = { SIGTERM, SIGINT, SIGHUP };

    (void)state;
    for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++) {
        pid_t pid;

        fx_start(&fx, NULL);
        pid = start_child(stay_until_emunic_goes);
        wait_for_child(1);
        kill(fx.daemon, signals[i]);
        assert_int_equal(fx_stop(&fx), 0);
        assert_int_equal(end_of(pid), 0);
    }
}

static void test_killed_emunic_is_noticed(void **state)
{
    uint64_t begin_ns;
    pid_t pid;

    (void)state;
    fx_start(&fx, NULL);
    pid = start_child(stay_until_emunic_goes);
    wait_for_child(1);
    begin_ns = emu_clock_ns();
    kill(fx.daemon, SIGKILL);
    assert_int_equal(end_of(pid), 0);
    assert_true(emu_clock_ns() - begin_ns < 5000000000ull);
    assert_int_equal(fx_stop(&fx), SIGKILL);
}

/* ---- the end of a launcher ---- */

#define JOB_PTAG   88u
#define JOB_COOKIE 880u

static struct emu_session job_admin; /* its connection is the job's life */

static void join_and_wait(void)
{
    struct emu_msg msg = { .type = EMU_MSG_JOIN_RANK, .rank = { .ptag = JOB_PTAG, .cookie = JOB_COOKIE, .rank = 1 } };
    struct raw raw;

    close(job_admin.fd);
    FX_CHECK(raw_connect(&raw, fx.server) == 0);
    FX_CHECK(raw_request(&raw, &msg) == 0);
    raw_close(&raw); /* as a wrapper that then becomes the program */
    atomic_fetch_add(&shared[0], 1);
    for (;;)
        pause();
}

static void join_and_ignore(void)
{
    signal(SIGTERM, SIG_IGN);
    join_and_wait();
}

static void test_launcher_that_vanishes_takes_its_job_along(void **state)
{
    pid_t polite;
    pid_t stubborn;
    char *report;
    int status;

    (void)state;
    fx_start(&fx, NULL);
    assert_int_equal(fx_add_domain(&fx, JOB_PTAG, JOB_COOKIE, geteuid(), 0, &job_admin), 0);
    polite = start_child(join_and_wait);
    wait_for_child(1);
    stubborn = start_child(join_and_ignore);
    wait_for_child(1);
    emu_session_close(&job_admin);
    status = end_of(polite);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGTERM);
    status = end_of(stubborn);
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGKILL);
    report = fx_report(&fx, EMU_MSG_STATUS);
    assert_non_null(strstr(report, "\"cookie\":305441741")); /* the fixture's own domain is still there */
    free(report);
    assert_int_equal(fx_stop(&fx), 0);
}

static bool is_domain_gone(void *arg)
{
    struct emu_session admin;

    (void)arg;
    if (fx_add_domain(&fx, JOB_PTAG, JOB_COOKIE, geteuid(), 0, &admin) < 0)
        return false;
    emu_session_close(&admin);
    return true;
}

static void test_cookie_of_an_ended_job_can_be_used_again(void **state)
{
    struct emu_session admin;

    (void)state;
    fx_start(&fx, NULL);
    for (unsigned i = 0; i < 50; i++) {
        assert_true(eventually(is_domain_gone, NULL, PATIENCE_NS));
        if (fx_add_domain(&fx, JOB_PTAG, JOB_COOKIE, geteuid(), 0, &admin) == 0)
            emu_session_close(&admin);
    }
    assert_int_equal(fx_stop(&fx), 0);
}

/* ---- descriptors ---- */

#define PORTS_PER_PROCESS 100u

static int body_open_many_ports(struct fx_rank *rank)
{
    static struct raw raws[PORTS_PER_PROCESS];

    alarm(30); /* one that fails would leave the others at the barrier */
    for (unsigned i = 0; i < PORTS_PER_PROCESS; i++)
        FX_CHECK(raw_open(&raws[i], rank->fx->server, rank->fx->ptag, rank->fx->cookie, i, EMU_NID_NONE) == 0);
    pthread_barrier_wait(rank->barrier); /* all are open at one time */
    for (unsigned i = 0; i < PORTS_PER_PROCESS; i++) {
        struct emu_msg msg = { .type = EMU_MSG_CQ_CREATE, .cq = { .capacity = 64 } };

        FX_CHECK(raw_request(&raws[i], &msg) == 0);
    }
    pthread_barrier_wait(rank->barrier);
    return 0;
}

static void test_many_ports_fit_where_the_shell_allows_1024_descriptors(void **state)
{
    struct rlimit old;
    struct rlimit usual;

    (void)state;
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
    if (old.rlim_max < 4096)
        return; /* nobody could */
    usual = (struct rlimit){ .rlim_cur = 1024, .rlim_max = old.rlim_max };
    setrlimit(RLIMIT_NOFILE, &usual);
    fx_start(&fx, NULL);
    assert_int_equal(fx_run(&fx, 4, body_open_many_ports, NULL), 0);
    assert_int_equal(fx_stop(&fx), 0);
    setrlimit(RLIMIT_NOFILE, &old);
}

static void test_running_out_of_descriptors_hurts_only_newcomers(void **state)
{
    struct raw raws[64];
    struct emu_port port;
    struct rlimit few;
    struct rlimit old;

    unsigned n = 0;

    (void)state;
    fx_start(&fx, NULL);
    assert_int_equal(emu_port_attach(&port, fx.ptag, fx.cookie, 1, 0), 0);
    few.rlim_cur = few.rlim_max = (rlim_t)fx_count_fds(&fx) + 20;
    assert_int_equal(prlimit(fx.daemon, RLIMIT_NOFILE, &few, &old), 0);
    while (n < 64 && raw_open(&raws[n], fx.server, fx.ptag, fx.cookie, n, EMU_NID_NONE) == 0)
        n++;
    assert_in_range(n, 3, 20);
    for (unsigned i = 0; i < 50; i++) { /* answers, though with a refusal, and does not hang */
        struct raw more;

        assert_true(raw_open(&more, fx.server, fx.ptag, fx.cookie, i, EMU_NID_NONE) < 0);
    }
    assert_int_equal(emu_port_request(&port, &(struct emu_msg){ .type = EMU_MSG_WHERE }), 0);
    while (n > 0)
        raw_close(&raws[--n]);
    assert_int_equal(raw_open(&raws[0], fx.server, fx.ptag, fx.cookie, 1, EMU_NID_NONE), 0);
    raw_close(&raws[0]);
    emu_port_detach(&port);
    assert_int_equal(fx_stop(&fx), 0);
}

static int start(void **state)
{
    (void)state;
    return children_init();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shutdown_with_clients_connected_is_clean),
        cmocka_unit_test(test_shutdown_in_the_middle_of_transfers_is_clean),
        cmocka_unit_test(test_signals_shut_down_cleanly),
        cmocka_unit_test(test_killed_emunic_is_noticed),
        cmocka_unit_test(test_launcher_that_vanishes_takes_its_job_along),
        cmocka_unit_test(test_cookie_of_an_ended_job_can_be_used_again),
        cmocka_unit_test(test_many_ports_fit_where_the_shell_allows_1024_descriptors),
        cmocka_unit_test(test_running_out_of_descriptors_hurts_only_newcomers),
    };

    return cmocka_run_group_tests(tests, start, NULL);
}
