/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Registering for the kernel's barriers: done in a process of one thread, left alone in one of several.
 */
#include <linux/membarrier.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "emunic/base/barriers.h"

/* The kernel refuses the barrier to whoever has not registered. */
static bool is_registered(void)
{
    return syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0) == 0;
}

static void *nothing(void *arg)
{
    return arg;
}

static bool is_registered_alone(void)
{
    emu_barriers_register_early();
    return is_registered();
}

static bool is_registered_beside_a_thread(void)
{
    pthread_t other;

    if (pthread_create(&other, NULL, nothing, NULL) != 0)
        return true;
    emu_barriers_register_early();
    pthread_join(other, NULL);
    return is_registered();
}

/* In a child, because nothing takes a registration back. */
static bool in_child(bool (*question)(void))
{
    pid_t child = fork();
    int status;

    assert_true(child >= 0);
    if (child == 0)
        _exit(question() ? 1 : 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status) == 1;
}

static void test_a_process_of_one_thread_is_registered(void **state)
{
    (void)state;
    assert_false(is_registered());
    assert_true(in_child(is_registered_alone));
}

static void test_a_process_of_several_threads_does_not_wait(void **state)
{
    (void)state;
    assert_false(is_registered());
    assert_false(in_child(is_registered_beside_a_thread));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_process_of_one_thread_is_registered),
        cmocka_unit_test(test_a_process_of_several_threads_does_not_wait),
    };
    long known = syscall(SYS_membarrier, MEMBARRIER_CMD_QUERY, 0, 0);

    if (known < 0 || (known & MEMBARRIER_CMD_PRIVATE_EXPEDITED) == 0) {
        printf("1..0 # SKIP no membarrier\n");
        return 0;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
