/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Up to when a process needs no turn: what others may do, what is under way, who is outside of time. No emunic and no
 * model: processes as a scan leaves them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "emunic/daemon/virtual/inner.h"

#define NOW    1000000u
#define REMOTE 400u
#define OWN    300u
#define LOCAL  100u
#define FAR    (NOW + 16 * REMOTE)

static struct emu_virtual v;
static struct emu_domain domain;
static struct emu_member member;
static struct emu_virtual_job job, other_job;
static struct emu_virtual_process p, other;

/* Alone in virtual time with one that waits for ever. */
static int set_up(void **state)
{
    static const struct process_scan waits = { .run_ps = NEVER, .look_ps = NEVER, .until_ps = NEVER, .n_waiting = 1 };

    (void)state;
    v = (struct emu_virtual){ .lookahead = { .local_ps = LOCAL, .remote_ps = REMOTE, .own_ps = OWN },
                              .reach_ps = NEVER,
                              .command_ps = NEVER };
    v.time.now_ps = NOW;
    LIST_INIT(&v.processes);
    STAILQ_INIT(&v.due);
    domain = (struct emu_domain){ 0 };
    member = (struct emu_member){ .domain = &domain };
    p = (struct emu_virtual_process){ .member = &member, .job = &job, .n_used = 1, .is_alone = true };
    p.sum = waits;
    p.reach_ps = NEVER;
    other = p;
    LIST_INSERT_HEAD(&v.processes, &other, link);
    LIST_INSERT_HEAD(&v.processes, &p, link);
    return 0;
}

static void expect_horizon(uint64_t at_ps)
{
    assert_int_equal(emu_virtual_horizon_ps(&v, &p), at_ps);
}

static void test_who_waits_for_ever_posts_nothing(void **state)
{
    (void)state;
    expect_horizon(FAR);
}

static void test_others_post_from_their_time_on(void **state)
{
    (void)state;
    other.sum.run_ps = NOW;
    expect_horizon(NOW + REMOTE);
    other.sum.run_ps = NOW - 1; /* behind the present slot's effects */
    expect_horizon(NOW + REMOTE);
    other.sum.run_ps = NOW + 50;
    expect_horizon(NOW + 50 + REMOTE);
    other.sum.look_ps = NOW + 40;
    expect_horizon(NOW + 40 + REMOTE);
    other.sum.until_ps = NOW + 30;
    expect_horizon(NOW + 30 + REMOTE);
}

/* Its own time does not bound it: what it posts draws the horizon in. */
static void test_own_clock_is_no_others(void **state)
{
    (void)state;
    p.sum.run_ps = NOW;
    p.sum.look_ps = NOW;
    expect_horizon(FAR);
}

static void test_commands_that_wait_are_posted_already(void **state)
{
    (void)state;
    v.command_ps = NOW + 20;
    expect_horizon(NOW + 20 + REMOTE);
    v.command_ps = 0; /* not looked for */
    expect_horizon(NOW + REMOTE);
}

static void test_what_is_under_way_stirs_who_waits(void **state)
{
    (void)state;
    other.reach_ps = NOW + 250;
    expect_horizon(NOW + 250 + REMOTE);
    p.reach_ps = NOW + 350;
    expect_horizon(NOW + 350);
    v.reach_ps = NOW + 150;
    expect_horizon(NOW + 150);
}

static void test_effects_that_are_due_leave_no_horizon(void **state)
{
    struct emu_virtual_effect effect = { .at_ps = NOW };

    (void)state;
    STAILQ_INSERT_TAIL(&v.due, &effect, link);
    p.reach_ps = NOW;
    expect_horizon(0);
    p.reach_ps = NEVER;
    other.reach_ps = NOW;
    expect_horizon(NOW + REMOTE);
}

static void test_who_is_outside_may_come_back_now(void **state)
{
    (void)state;
    other.sum.n_outside = 1;
    expect_horizon(NOW + REMOTE);
    other.sum.n_outside = 0;
    v.n_clockless = 1;
    expect_horizon(NOW + REMOTE);
    v.n_clockless = 0;
    v.jobs.n_missing = 1;
    expect_horizon(NOW + REMOTE);
    v.jobs.n_missing = 0;
    other.sum.n_waiting = 0; /* no clock is in use */
    expect_horizon(NOW + REMOTE);
}

static void test_fences_of_other_jobs_may_end_now(void **state)
{
    (void)state;
    other.sum.n_waiting = 0;
    other.sum.is_fenced = true;
    expect_horizon(FAR);
    other.job = &other_job;
    expect_horizon(NOW + REMOTE);
}

static void test_neighbours_and_own_threads_are_near(void **state)
{
    (void)state;
    p.n_used = 2;
    expect_horizon(NOW + LOCAL);
    p.n_used = 1;
    p.is_alone = false;
    expect_horizon(NOW + LOCAL);
    p.is_alone = true;
    v.n_rankless = 1;
    expect_horizon(NOW + LOCAL);
}

static void test_commands_that_may_fail_at_once_leave_no_horizon(void **state)
{
    (void)state;
    domain.paths.has_faults = true;
    expect_horizon(0);
    domain.paths.has_faults = false;
    domain.paths.is_routed_around = true;
    expect_horizon(0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_who_waits_for_ever_posts_nothing, set_up),
        cmocka_unit_test_setup(test_others_post_from_their_time_on, set_up),
        cmocka_unit_test_setup(test_own_clock_is_no_others, set_up),
        cmocka_unit_test_setup(test_commands_that_wait_are_posted_already, set_up),
        cmocka_unit_test_setup(test_what_is_under_way_stirs_who_waits, set_up),
        cmocka_unit_test_setup(test_effects_that_are_due_leave_no_horizon, set_up),
        cmocka_unit_test_setup(test_who_is_outside_may_come_back_now, set_up),
        cmocka_unit_test_setup(test_fences_of_other_jobs_may_end_now, set_up),
        cmocka_unit_test_setup(test_neighbours_and_own_threads_are_near, set_up),
        cmocka_unit_test_setup(test_commands_that_may_fail_at_once_leave_no_horizon, set_up),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
