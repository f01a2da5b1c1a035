/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Pages that are missing: in a watched mapping the access goes on and leaves a mark, anywhere else the program's own
 * handler, or the default, does what it did before. Each test forks, because a process has one SIGBUS handler.
 */
#include "emunic/base/bus_error.h"

#include <errno.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/common/fixture.h"

#define PAGE 4096u

/* A mapping of four pages, of which the file has one. */
static uint8_t *short_mapping(int *fd_out)
{
    int fd = memfd_create("short", MFD_CLOEXEC);
    uint8_t *mem;

    FX_CHECK(fd >= 0 && ftruncate(fd, PAGE) == 0);
    mem = mmap(NULL, 4 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    FX_CHECK(mem != MAP_FAILED);
    memset(mem, 7, PAGE);
    *fd_out = fd;
    return mem;
}

static int status_of(void (*body)(void))
{
    int status = -1;
    pid_t pid = fork();

    assert_true(pid >= 0);
    if (pid == 0) {
        struct rlimit none = { 0, 0 };

        setrlimit(RLIMIT_CORE, &none);
        signal(SIGBUS, SIG_DFL); /* whatever a sanitizer has there */
        body();
        _exit(0);
    }
    waitpid(pid, &status, 0);
    return status;
}

static uint32_t mark_of(struct emu_bus_error_range *range)
{
    return atomic_load(emu_bus_error_mark(range));
}

/* ---- in a watched mapping ---- */

static void touch_missing_pages(void)
{
    int fd;
    volatile uint8_t *mem = short_mapping(&fd);
    struct emu_bus_error_range *range = emu_bus_error_watch((void *)(uintptr_t)mem, 4 * PAGE, PAGE);

    FX_CHECK(range && mark_of(range) == 0);
    FX_CHECK(mem[0] == 7 && mark_of(range) == 0);
    errno = 1234;
    mem[2 * PAGE + 5] = 1;
    FX_CHECK(errno == 1234);
    FX_CHECK(mark_of(range) == 1);
    FX_CHECK(mem[0] == 0); /* all of it is other memory now */
    mem[3 * PAGE] = 1;
    mem[0] = 9;
    {
        uint8_t first = 0;

        FX_CHECK(pread(fd, &first, 1, 0) == 1 && first == 7);
    }
}

static void test_access_to_a_missing_page_leaves_a_mark(void **state)
{
    (void)state;
    assert_int_equal(status_of(touch_missing_pages), 0);
}

static void touch_one_of_many(void)
{
    struct emu_bus_error_range *ranges[100];
    uint8_t *mems[100];
    int fd;

    for (int i = 0; i < 100; i++) {
        mems[i] = short_mapping(&fd);
        ranges[i] = emu_bus_error_watch(mems[i], 4 * PAGE, PAGE);
        FX_CHECK(ranges[i]);
    }
    emu_bus_error_unwatch(ranges[10]);
    munmap(mems[10], 4 * PAGE);
    *(volatile uint8_t *)(mems[73] + 4 * PAGE - 1) = 1;
    for (int i = 0; i < 100; i++)
        FX_CHECK(i == 10 || mark_of(ranges[i]) == (i == 73));
}

static void test_other_mappings_are_not_marked(void **state)
{
    (void)state;
    assert_int_equal(status_of(touch_one_of_many), 0);
}

static void watch_for_ever(void)
{
    int fd;
    uint8_t *mem = short_mapping(&fd);

    for (int i = 0; i < 100000; i++) {
        struct emu_bus_error_range *range = emu_bus_error_watch(mem, 4 * PAGE, PAGE);

        FX_CHECK(range && mark_of(range) == 0);
        if (i % 1000 == 0) {
            *(volatile uint8_t *)(mem + PAGE) = 1;
            FX_CHECK(mark_of(range) == 1);
            FX_CHECK(mmap(mem, 4 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) == mem);
        }
        emu_bus_error_unwatch(range);
    }
}

static void test_places_are_used_again(void **state)
{
    (void)state;
    assert_int_equal(status_of(watch_for_ever), 0);
}

static void watch_too_many(void)
{
    int fd;
    uint8_t *mem = short_mapping(&fd);
    struct emu_bus_error_range *last = NULL;
    struct emu_bus_error_range *range;
    int n = 0;

    while ((range = emu_bus_error_watch(mem, 4 * PAGE, PAGE))) {
        last = range;
        FX_CHECK(++n < 1000000);
    }
    FX_CHECK(n >= 4096);
    emu_bus_error_unwatch(last);
    FX_CHECK(emu_bus_error_watch(mem, 4 * PAGE, PAGE));
}

static void test_number_of_ranges_is_limited(void **state)
{
    (void)state;
    assert_int_equal(status_of(watch_too_many), 0);
}

/* ---- elsewhere ---- */

static void touch_unwatched(void)
{
    int fd;
    uint8_t *mem = short_mapping(&fd);
    uint8_t *own = short_mapping(&fd);

    FX_CHECK(emu_bus_error_watch(mem, 4 * PAGE, PAGE));
    *(volatile uint8_t *)(own + PAGE) = 1;
}

static void test_missing_page_of_the_program_ends_it_as_before(void **state)
{
    int status = status_of(touch_unwatched);

    (void)state;
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGBUS);
}

static void touch_what_was_watched(void)
{
    int fd;
    uint8_t *mem = short_mapping(&fd);

    emu_bus_error_unwatch(emu_bus_error_watch(mem, 4 * PAGE, PAGE));
    *(volatile uint8_t *)(mem + PAGE) = 1;
}

static void test_range_that_is_no_longer_watched_is_the_programs(void **state)
{
    int status = status_of(touch_what_was_watched);

    (void)state;
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGBUS);
}

static void get_a_signal(void)
{
    int fd;

    FX_CHECK(emu_bus_error_watch(short_mapping(&fd), 4 * PAGE, PAGE));
    raise(SIGBUS);
}

static void test_signal_that_somebody_sends_ends_the_program_as_before(void **state)
{
    int status = status_of(get_a_signal);

    (void)state;
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGBUS);
}

static sigjmp_buf back;
static void *volatile address_told;
static volatile int n_calls;

static void jump_back(int number, siginfo_t *info, void *context)
{
    (void)number;
    (void)context;
    address_told = info->si_addr;
    n_calls++;
    siglongjmp(back, 1);
}

static void count_calls(int number)
{
    FX_CHECK(number == SIGBUS);
    n_calls++;
}

static void handle_own(void)
{
    struct sigaction action = { .sa_sigaction = jump_back, .sa_flags = SA_SIGINFO };
    struct emu_bus_error_range *range;
    int fd;
    uint8_t *own = short_mapping(&fd);
    uint8_t *mem = short_mapping(&fd);

    FX_CHECK(sigaction(SIGBUS, &action, NULL) == 0);
    range = emu_bus_error_watch(mem, 4 * PAGE, PAGE);
    for (int i = 0; i < 3; i++) { /* it jumps out: the signal must not stay blocked */
        if (sigsetjmp(back, 1) == 0)
            *(volatile uint8_t *)(own + PAGE + i) = 1;
        FX_CHECK(address_told == own + PAGE + i && n_calls == i + 1);
    }
    *(volatile uint8_t *)(mem + PAGE) = 1;
    FX_CHECK(mark_of(range) == 1 && n_calls == 3);
}

static void test_handler_of_the_program_goes_on_working(void **state)
{
    (void)state;
    assert_int_equal(status_of(handle_own), 0);
}

static void handle_once(void)
{
    struct sigaction action = { .sa_handler = count_calls, .sa_flags = (int)SA_RESETHAND };
    int fd;

    FX_CHECK(sigaction(SIGBUS, &action, NULL) == 0);
    FX_CHECK(emu_bus_error_watch(short_mapping(&fd), 4 * PAGE, PAGE));
    raise(SIGBUS);
    FX_CHECK(n_calls == 1);
    raise(SIGBUS);
}

static void test_handler_for_one_signal_gets_one(void **state)
{
    int status = status_of(handle_once);

    (void)state;
    assert_true(WIFSIGNALED(status));
    assert_int_equal(WTERMSIG(status), SIGBUS);
}

static struct sigaction replaced;

static void call_who_was_before(int number, siginfo_t *info, void *context)
{
    FX_CHECK(++n_calls < 100);
    replaced.sa_sigaction(number, info, context);
}

static void install_later(void)
{
    struct sigaction first = { .sa_sigaction = jump_back, .sa_flags = SA_SIGINFO };
    struct sigaction later = { .sa_sigaction = call_who_was_before, .sa_flags = SA_SIGINFO };
    struct emu_bus_error_range *range;
    int fd;
    uint8_t *mem = short_mapping(&fd);
    uint8_t *own = short_mapping(&fd);

    FX_CHECK(sigaction(SIGBUS, &first, NULL) == 0);
    FX_CHECK(emu_bus_error_watch(short_mapping(&fd), 4 * PAGE, PAGE));
    FX_CHECK(sigaction(SIGBUS, &later, &replaced) == 0);
    range = emu_bus_error_watch(mem, 4 * PAGE, PAGE);
    *(volatile uint8_t *)(mem + PAGE) = 1;
    FX_CHECK(mark_of(range) == 1 && n_calls == 0);
    /* We, the later one, we, the first one. */
    if (sigsetjmp(back, 1) == 0)
        *(volatile uint8_t *)(own + PAGE) = 1;
    FX_CHECK(address_told == own + PAGE && n_calls == 2);
}

static void test_handler_that_comes_later_works_and_does_not_go_round_in_circles(void **state)
{
    (void)state;
    assert_int_equal(status_of(install_later), 0);
}

static void install_again_and_again(void)
{
    struct sigaction theirs = { .sa_handler = count_calls };
    struct sigaction old;
    int fd;

    for (int i = 0; i < 100; i++) {
        uint8_t *mem = short_mapping(&fd);
        struct emu_bus_error_range *range;

        FX_CHECK(sigaction(SIGBUS, &theirs, &old) == 0);
        range = emu_bus_error_watch(mem, 4 * PAGE, PAGE);
        *(volatile uint8_t *)(mem + PAGE) = 1;
        FX_CHECK(mark_of(range) == 1 && n_calls == i);
        raise(SIGBUS);
        FX_CHECK(n_calls == i + 1);
        FX_CHECK(sigaction(SIGBUS, &old, NULL) == 0);
    }
}

static void test_handler_that_comes_and_goes_works(void **state)
{
    (void)state;
    assert_int_equal(status_of(install_again_and_again), 0);
}

static void ignore(void)
{
    int fd;

    signal(SIGBUS, SIG_IGN);
    FX_CHECK(emu_bus_error_watch(short_mapping(&fd), 4 * PAGE, PAGE));
    raise(SIGBUS);
}

static void test_signal_that_the_program_ignores_stays_ignored(void **state)
{
    (void)state;
    assert_int_equal(status_of(ignore), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_access_to_a_missing_page_leaves_a_mark),
        cmocka_unit_test(test_other_mappings_are_not_marked),
        cmocka_unit_test(test_places_are_used_again),
        cmocka_unit_test(test_number_of_ranges_is_limited),
        cmocka_unit_test(test_missing_page_of_the_program_ends_it_as_before),
        cmocka_unit_test(test_range_that_is_no_longer_watched_is_the_programs),
        cmocka_unit_test(test_signal_that_somebody_sends_ends_the_program_as_before),
        cmocka_unit_test(test_handler_of_the_program_goes_on_working),
        cmocka_unit_test(test_handler_for_one_signal_gets_one),
        cmocka_unit_test(test_handler_that_comes_later_works_and_does_not_go_round_in_circles),
        cmocka_unit_test(test_handler_that_comes_and_goes_works),
        cmocka_unit_test(test_signal_that_the_program_ignores_stays_ignored),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
