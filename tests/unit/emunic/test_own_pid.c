/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The number of this process, also in children and their children, with and without the help of libc.
 */
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "emunic/base/own_pid.h"

static bool is_right(void)
{
    return emu_own_pid() == getpid() && emu_own_pid() == getpid();
}

static bool ends_well(pid_t child)
{
    int status;

    return child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/* Asks in a child and in a child of that. */
static void ask_in_child(pid_t child)
{
    pid_t grandchild;

    if (child > 0)
        return;
    if (!is_right())
        _exit(1);
    grandchild = fork();
    if (grandchild == 0)
        _exit(is_right() ? 0 : 1);
    _exit(ends_well(grandchild) && is_right() ? 0 : 1);
}

static void test_own_number(void **state)
{
    (void)state;
    assert_int_equal(emu_own_pid(), getpid());
    assert_int_equal(emu_own_pid(), getpid());
}

static void test_forked_children_have_theirs(void **state)
{
    pid_t child;

    (void)state;
    assert_true(is_right());
    child = fork();
    ask_in_child(child);
    assert_true(ends_well(child));
    assert_true(is_right());
}

/* Handlers of fork() do not run then. */
static void test_children_that_libc_does_not_know_have_theirs(void **state)
{
    pid_t child;

    (void)state;
    assert_true(is_right());
    child = (pid_t)syscall(SYS_clone, SIGCHLD, NULL, NULL, NULL, NULL);
    ask_in_child(child);
    assert_true(ends_well(child));
    assert_true(is_right());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_own_number),
        cmocka_unit_test(test_forked_children_have_theirs),
        cmocka_unit_test(test_children_that_libc_does_not_know_have_theirs),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
