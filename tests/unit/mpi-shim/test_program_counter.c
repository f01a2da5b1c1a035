/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The time-stamp counter in virtual time (played_emunic.h). Not every machine traps it, so the instruction stands where
 * nothing can be executed, which is a fault at the same place.
 */
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/common/rows.h"
#include "tests/unit/mpi-shim/played_emunic.h"

#define PAGE 4096u

/* The value; rcx to *aux_out. */
typedef uint64_t (*counter_function)(uint32_t *aux_out);

static char *pages;

/* `instruction` at the end of a page without execution, and what makes a function of it behind. */
static counter_function place(const char *instruction, size_t length)
{
    static const unsigned char rest[] = { 0x48, 0xc1, 0xe2, 0x20, /* shl rdx, 32 */
                                          0x48, 0x09, 0xd0,       /* or rax, rdx */
                                          0x89, 0x0f,             /* mov [rdi], ecx */
                                          0xc3 };
    counter_function function;

    if (pages)
        munmap(pages, (size_t)2 * PAGE);
    pages = mmap(NULL, (size_t)2 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(pages != MAP_FAILED);
    memcpy(pages + PAGE - length, instruction, length);
    memcpy(pages + PAGE, rest, sizeof(rest));
    mprotect(pages, PAGE, PROT_READ);
    mprotect(pages + PAGE, PAGE, PROT_READ | PROT_EXEC);
    *(void **)&function = pages + PAGE - length;
    return function;
}

static counter_function rdtsc(void)
{
    return place("\x0f\x31", 2);
}

static void test_counter_counts_nanoseconds(void **state)
{
    counter_function read_counter = rdtsc();
    uint32_t aux;
    uint64_t before = read_counter(&aux);

    (void)state;
    assert_int_equal(read_counter(&aux) - before, PLAYED_POLL_PS / 1000);
    sleep(3);
    assert_int_equal(read_counter(&aux) - before, 3000000000u + 2 * PLAYED_POLL_PS / 1000);
}

static void test_counter_with_processor_tells_one(void **state)
{
    counter_function read_counter = place("\x0f\x01\xf9", 3);
    uint32_t aux = UINT32_MAX;
    uint64_t before = read_counter(&aux);

    (void)state;
    assert_true((aux & 0xfff) < (uint32_t)sysconf(_SC_NPROCESSORS_CONF));
    assert_int_equal(read_counter(&aux) - before, PLAYED_POLL_PS / 1000);
}

static void test_blocked_signals_do_not_matter(void **state)
{
    counter_function read_counter = rdtsc();
    sigset_t all, before;
    uint32_t aux;
    uint64_t first;

    (void)state;
    sigfillset(&all);
    assert_int_equal(sigprocmask(SIG_SETMASK, &all, &before), 0);
    first = read_counter(&aux);
    assert_int_equal(pthread_sigmask(SIG_BLOCK, &all, NULL), 0);
    assert_true(read_counter(&aux) > first);
    assert_int_equal(sigprocmask(SIG_SETMASK, &before, NULL), 0);
}

/* ---- the program's own handler ---- */

static sigjmp_buf back;
static void *volatile fault_at;
static volatile sig_atomic_t is_usr1_blocked;

static void handle(int number, siginfo_t *info, void *context)
{
    sigset_t mask;

    (void)number;
    (void)context;
    fault_at = info->si_addr;
    sigprocmask(SIG_SETMASK, NULL, &mask);
    is_usr1_blocked = sigismember(&mask, SIGUSR1);
    siglongjmp(back, 1);
}

static void test_other_faults_are_the_programs(void **state)
{
    struct sigaction action = { .sa_sigaction = handle, .sa_flags = SA_SIGINFO }, old;
    char *nowhere = mmap(NULL, PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    uint32_t aux;

    (void)state;
    sigaddset(&action.sa_mask, SIGUSR1);
    assert_int_equal(sigaction(SIGSEGV, &action, NULL), 0);
    assert_int_equal(sigaction(SIGSEGV, NULL, &old), 0);
    assert_ptr_equal(old.sa_sigaction, handle);
    for (int i = 0; i < 2; i++) {
        fault_at = NULL;
        if (sigsetjmp(back, 1) == 0)
            *(volatile char *)nowhere = 1;
        assert_ptr_equal(fault_at, nowhere);
        assert_true(is_usr1_blocked);
    }
    assert_true(rdtsc()(&aux) > 0);
    munmap(nowhere, PAGE);
}

static void test_jump_to_nowhere_is_the_programs(void **state)
{
    struct sigaction action = { .sa_sigaction = handle, .sa_flags = SA_SIGINFO };
    void *nowhere = mmap(NULL, PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    void (*function)(void);

    (void)state;
    *(void **)&function = nowhere;
    assert_int_equal(sigaction(SIGSEGV, &action, NULL), 0);
    fault_at = NULL;
    if (sigsetjmp(back, 1) == 0)
        function();
    assert_ptr_equal(fault_at, nowhere);
    munmap(nowhere, PAGE);
}

static void do_nothing(int number)
{
    (void)number;
}

static void test_signal_tells_the_handler_before(void **state)
{
    (void)state;
    signal(SIGSEGV, do_nothing);
    assert_ptr_equal(signal(SIGSEGV, SIG_DFL), do_nothing);
    assert_ptr_equal(signal(SIGSEGV, SIG_DFL), SIG_DFL);
}

static void test_sent_signal_reaches_the_program(void **state)
{
    struct sigaction action = { .sa_sigaction = handle, .sa_flags = SA_SIGINFO };

    (void)state;
    assert_int_equal(sigaction(SIGSEGV, &action, NULL), 0);
    fault_at = &action;
    if (sigsetjmp(back, 1) == 0)
        raise(SIGSEGV);
    assert_ptr_not_equal(fault_at, &action);
    signal(SIGSEGV, SIG_DFL);
}

/* ---- started programs ---- */

#define IS_FREE "is-free" /* argument: exits with 0 if the counter is not trapped */

static char self[4096];
static char *const self_words[] = { self, "x", IS_FREE, NULL };

static int status_of(pid_t child)
{
    int status = -1;

    waitpid(child, &status, 0);
    return status;
}

static int by_fork(void)
{
    pid_t child = fork();

    if (child == 0)
        _exit(execl(self, self, "x", IS_FREE, NULL) != 0);
    return status_of(child);
}

static int by_fork_alone(void)
{
    pid_t child = fork();
    int now = 0;

    if (child == 0)
        _exit(prctl(PR_GET_TSC, &now) < 0 || now != PR_TSC_ENABLE);
    return status_of(child);
}

static int by_spawn(void)
{
    pid_t child = -1;

    return posix_spawn(&child, self, NULL, NULL, self_words, environ) == 0 ? status_of(child) : -1;
}

static int by_vfork(void)
{
    pid_t child = vfork();

    if (child == 0) {
        execv(self, self_words);
        _exit(1);
    }
    return status_of(child);
}

static int by_system(void)
{
    char line[5000];

    snprintf(line, sizeof(line), "%s x %s", self, IS_FREE);
    return system(line);
}

static int by_popen(void)
{
    char line[5000];
    FILE *stream;

    snprintf(line, sizeof(line), "%s x %s", self, IS_FREE);
    stream = popen(line, "r");
    return stream ? pclose(stream) : -1;
}

static void test_started_programs_have_the_hosts_counter(void **state)
{
    static const struct {
        const char *name;
        int (*start)(void);
    } rows[] = {
        { "fork", by_fork_alone }, { "fork and execl", by_fork }, { "posix_spawn", by_spawn },
        { "vfork", by_vfork },     { "system", by_system },       { "popen", by_popen },
    };
    int now = 0;

    (void)state;
    assert_int_equal(prctl(PR_GET_TSC, &now), 0);
    assert_int_equal(now, PR_TSC_SIGSEGV);
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        assert_row_equal(rows[i].name, rows[i].start(), 0);
    assert_int_equal(prctl(PR_GET_TSC, &now), 0);
    assert_int_equal(now, PR_TSC_SIGSEGV);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_counter_counts_nanoseconds),
        cmocka_unit_test(test_counter_with_processor_tells_one),
        cmocka_unit_test(test_blocked_signals_do_not_matter),
        cmocka_unit_test(test_other_faults_are_the_programs),
        cmocka_unit_test(test_jump_to_nowhere_is_the_programs),
        cmocka_unit_test(test_signal_tells_the_handler_before),
        cmocka_unit_test(test_sent_signal_reaches_the_program),
        cmocka_unit_test(test_started_programs_have_the_hosts_counter),
    };
    int now = 0;

    if (argc == 3)
        return prctl(PR_GET_TSC, &now) < 0 || now != PR_TSC_ENABLE;
    if (argc == 2)
        return played_start_again(argv);
    if (readlink("/proc/self/exe", self, sizeof(self) - 1) < 0)
        return 1;
    return cmocka_run_group_tests(tests, played_attach, played_end);
}
