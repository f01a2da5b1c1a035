/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Timers of a program in virtual time: what they do, and exactly when (played_emunic.h). No real time is looked at.
 */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/common/rows.h"
#include "tests/unit/mpi-shim/played_emunic.h"

#define NS_PER_S 1000000000ll

static volatile sig_atomic_t n_signals;
static volatile int value_of_signal;
static volatile int64_t signal_ns; /* when the last one came */

static void note_signal(int number, siginfo_t *info, void *context)
{
    (void)number;
    (void)context;
    n_signals++;
    value_of_signal = info->si_value.sival_int;
    signal_ns = played_now_ns();
}

static int prepare(void **state)
{
    struct sigaction action = { .sa_sigaction = note_signal, .sa_flags = SA_SIGINFO | SA_RESTART };

    (void)state;
    n_signals = 0;
    sigaction(SIGALRM, &action, NULL);
    sigaction(SIGUSR1, &action, NULL);
    return 0;
}

/* ---- alarm, setitimer ---- */

static void test_alarm_ends_a_sleep_at_its_time(void **state)
{
    int64_t before_ns = played_now_ns();
    struct timespec left = { 0 };

    (void)state;
    assert_int_equal(alarm(3), 0);
    assert_int_equal(nanosleep(&(struct timespec){ .tv_sec = 10 }, &left), -1);
    assert_int_equal(errno, EINTR);
    assert_int_equal(n_signals, 1);
    assert_int_equal(signal_ns - before_ns, 3 * NS_PER_S);
    assert_int_equal(left.tv_sec, 7);
    assert_int_equal(left.tv_nsec, 0);
}

static void test_alarm_that_is_taken_back_never_comes(void **state)
{
    (void)state;
    assert_int_equal(alarm(3), 0);
    assert_int_equal(alarm(0), 3);
    assert_int_equal(sleep(10), 0);
    assert_int_equal(n_signals, 0);
}

static void test_alarm_comes_in_a_loop_around_the_clock(void **state)
{
    int64_t before_ns = played_now_ns();
    struct timespec t;

    (void)state;
    assert_int_equal(ualarm(100, 0), 0);
    while (n_signals == 0)
        clock_gettime(CLOCK_MONOTONIC, &t);
    assert_int_equal(signal_ns - before_ns, 100000);
}

/* As the API libraries do: their code has the same clocks. */
static void test_alarm_comes_behind_a_request_to_emunic(void **state)
{
    int64_t before_ns = played_now_ns();

    (void)state;
    assert_int_equal(alarm(1), 0);
    emu_vclock_enter();
    while (n_signals == 0)
        assert_int_equal(emu_vclock_wait(EMU_VCLOCK_CALL_WAIT, EMU_VCLOCK_NEVER, 0), EMU_VCLOCK_WENT_ON);
    emu_vclock_leave();
    assert_int_equal(signal_ns - before_ns, NS_PER_S);
}

static void test_interval_goes_on_from_its_time(void **state)
{
    const struct itimerval none = { .it_value.tv_sec = 0 }, each = { .it_value.tv_sec = 2, .it_interval.tv_sec = 1 };
    int64_t before_ns = played_now_ns();
    struct itimerval left;

    (void)state;
    assert_int_equal(setitimer(ITIMER_REAL, &each, NULL), 0);
    for (int i = 0; i < 4; i++)
        assert_int_not_equal(sleep(10), 0);
    assert_int_equal(n_signals, 4);
    assert_int_equal(signal_ns - before_ns, 5 * NS_PER_S);
    assert_int_equal(getitimer(ITIMER_REAL, &left), 0);
    assert_int_equal(left.it_value.tv_sec, 1);
    assert_int_equal(setitimer(ITIMER_REAL, &none, &left), 0);
    assert_int_equal(left.it_interval.tv_sec, 1);
}

static void test_pause_ends_with_the_alarm(void **state)
{
    int64_t before_ns = played_now_ns();

    (void)state;
    assert_int_equal(ualarm(2000, 0), 0);
    assert_int_equal(pause(), -1);
    assert_int_equal(errno, EINTR);
    assert_int_equal(n_signals, 1);
    assert_int_equal(signal_ns - before_ns, 2000000);
}

static void test_poll_ends_with_the_alarm(void **state)
{
    int64_t before_ns = played_now_ns();
    int ends[2];

    (void)state;
    assert_int_equal(pipe(ends), 0);
    assert_int_equal(ualarm(2000, 0), 0);
    assert_int_equal(poll(&(struct pollfd){ .fd = ends[0], .events = POLLIN }, 1, -1), -1);
    assert_int_equal(errno, EINTR);
    assert_int_equal(signal_ns - before_ns, 2000000);
    close(ends[0]);
    close(ends[1]);
}

static void test_blocked_alarm_is_waited_for(void **state)
{
    int64_t before_ns = played_now_ns();
    sigset_t set, before;
    int number = 0;

    (void)state;
    sigemptyset(&set);
    sigaddset(&set, SIGALRM);
    pthread_sigmask(SIG_BLOCK, &set, &before);
    assert_int_equal(ualarm(2000, 0), 0);
    assert_int_equal(sigwait(&set, &number), 0);
    assert_int_equal(number, SIGALRM);
    assert_int_equal(played_now_ns() - before_ns, 2000000);
    assert_int_equal(ualarm(2000, 0), 0);
    sigdelset(&before, SIGALRM);
    assert_int_equal(sigsuspend(&before), -1);
    assert_int_equal(n_signals, 1);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

static void test_alarm_comes_to_a_thread_that_computes(void **state)
{
    (void)state;
    assert_int_equal(ualarm(20000, 0), 0);
    while (n_signals == 0)
        ;
    assert_int_equal(n_signals, 1);
}

/* ---- timers of POSIX ---- */

static void test_timer_sends_its_signal_and_value(void **state)
{
    struct sigevent event = { .sigev_notify = SIGEV_SIGNAL, .sigev_signo = SIGUSR1, .sigev_value.sival_int = 42 };
    struct itimerspec value = { .it_value.tv_sec = 5 }, left;
    int64_t before_ns = played_now_ns();
    timer_t timer;

    (void)state;
    assert_int_equal(timer_create(CLOCK_MONOTONIC, &event, &timer), 0);
    assert_int_equal(timer_settime(timer, 0, &value, NULL), 0);
    assert_int_equal(timer_gettime(timer, &left), 0);
    assert_int_equal(left.it_value.tv_sec, 5);
    assert_int_equal(sleep(10), 5);
    assert_int_equal(signal_ns - before_ns, 5 * NS_PER_S);
    assert_int_equal(value_of_signal, 42);
    assert_int_equal(timer_delete(timer), 0);
    assert_int_equal(timer_gettime(timer, &left), -1);
}

static void test_timer_of_a_date_comes_then(void **state)
{
    struct itimerspec value = { 0 };
    struct timespec now;
    timer_t timer;
    int64_t before_ns;

    (void)state;
    assert_int_equal(timer_create(CLOCK_REALTIME, NULL, &timer), 0);
    before_ns = played_now_ns();
    assert_int_equal(clock_gettime(CLOCK_REALTIME, &now), 0);
    value.it_value = now;
    value.it_value.tv_sec += 2;
    assert_int_equal(timer_settime(timer, TIMER_ABSTIME, &value, NULL), 0);
    assert_int_not_equal(sleep(10), 0);
    assert_int_equal(signal_ns - before_ns, 2 * NS_PER_S);
    assert_int_equal(timer_delete(timer), 0);
}

static void test_passed_expiries_are_the_overrun(void **state)
{
    const struct itimerspec value = { .it_value.tv_sec = 1, .it_interval.tv_sec = 1 };
    timer_t timer;

    (void)state;
    assert_int_equal(timer_create(CLOCK_MONOTONIC, NULL, &timer), 0);
    assert_int_equal(timer_settime(timer, 0, &value, NULL), 0);
    emu_vclock_enter();
    emu_vclock_spend(5500000000000ull);
    emu_vclock_leave();
    clock();
    assert_int_equal(n_signals, 1);
    assert_int_equal(timer_getoverrun(timer), 4);
    assert_int_equal(timer_delete(timer), 0);
}

static sem_t has_run;

static void run(union sigval value)
{
    value_of_signal = value.sival_int;
    sem_post(&has_run);
}

static void test_timer_runs_a_function_in_a_thread(void **state)
{
    struct sigevent event = { .sigev_notify = SIGEV_THREAD, .sigev_notify_function = run, .sigev_value.sival_int = 7 };
    const struct itimerspec value = { .it_value.tv_sec = 1 };
    timer_t timer;

    (void)state;
    sem_init(&has_run, 0, 0);
    assert_int_equal(timer_create(CLOCK_MONOTONIC, &event, &timer), 0);
    assert_int_equal(timer_settime(timer, 0, &value, NULL), 0);
    assert_int_equal(sleep(2), 0);
    sem_wait(&has_run);
    assert_int_equal(value_of_signal, 7);
    assert_int_equal(timer_delete(timer), 0);
}

/* ---- descriptors ---- */

/* _FORTIFY_SOURCE calls it. */
ssize_t __read_chk(int fd, void *buffer, size_t n_bytes, size_t room);

static void expect_expiries(int fd, uint64_t expected)
{
    uint64_t n = 0;

    assert_int_equal(read(fd, &n, sizeof(n)), sizeof(n));
    assert_int_equal(n, expected);
}

static void test_descriptor_becomes_readable_at_its_time(void **state)
{
    const struct itimerspec value = { .it_value.tv_nsec = 3000000 };
    int fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC), epoll = epoll_create1(0);
    struct epoll_event event = { .events = EPOLLIN };
    struct pollfd p = { .fd = fd, .events = POLLIN };
    uint64_t n;
    int64_t before_ns = played_now_ns();

    (void)state;
    epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event);
    assert_int_equal(timerfd_settime(fd, 0, &value, NULL), 0);
    assert_int_equal(poll(&p, 1, 0), 0);
    assert_int_equal(poll(&p, 1, 2), 0);
    assert_int_equal(epoll_wait(epoll, &event, 1, -1), 1);
    assert_int_equal(played_now_ns() - before_ns, 3000000);
    expect_expiries(fd, 1);
    assert_int_equal(timerfd_settime(fd, 0, &value, NULL), 0);
    expect_expiries(fd, 1);
    assert_int_equal(played_now_ns() - before_ns, 6000000);
    assert_int_equal(timerfd_settime(fd, 0, &value, NULL), 0);
    assert_int_equal(__read_chk(fd, &n, sizeof(n), sizeof(n)), sizeof(n));
    assert_int_equal(played_now_ns() - before_ns, 9000000);
    close(epoll);
    close(fd);
}

static void test_descriptor_without_time_is_not_readable(void **state)
{
    const struct itimerspec value = { .it_value.tv_sec = 1, .it_interval.tv_sec = 4 }, none = { .it_value.tv_sec = 0 };
    int fd = timerfd_create(CLOCK_REALTIME, TFD_NONBLOCK);
    struct itimerspec left;
    uint64_t n;

    (void)state;
    assert_int_equal(timerfd_settime(fd, 0, &value, NULL), 0);
    assert_int_equal(timerfd_gettime(fd, &left), 0);
    assert_int_equal(left.it_value.tv_sec, 1);
    assert_int_equal(read(fd, &n, sizeof(n)), -1);
    assert_int_equal(errno, EAGAIN);
    assert_int_equal(timerfd_settime(fd, 0, &none, &left), 0);
    assert_int_equal(left.it_interval.tv_sec, 4);
    assert_int_equal(sleep(10), 0);
    assert_int_equal(read(fd, &n, sizeof(n)), -1);
    close(fd);
}

/* ---- refusals ---- */

static void test_refused_arguments_are_refused(void **state)
{
    const struct itimerspec long_ns = { .it_value.tv_nsec = NS_PER_S };
    const struct itimerval long_us = { .it_value.tv_usec = 1000000 };
    struct sigevent strange = { .sigev_notify = 99 };
    sigset_t empty;
    timer_t timer;

    (void)state;
    sigemptyset(&empty);
    assert_int_equal(timer_create(CLOCK_MONOTONIC, NULL, &timer), 0);
    const struct {
        const char *name;
        int error;
        int expected;
    } rows[] = {
        { "setitimer", setitimer(ITIMER_REAL, &long_us, NULL) < 0 ? errno : 0, EINVAL },
        { "setitimer of none", setitimer(99, &long_us, NULL) < 0 ? errno : 0, EINVAL },
        { "timer_settime", timer_settime(timer, 0, &long_ns, NULL) < 0 ? errno : 0, EINVAL },
        { "timer_create", timer_create(CLOCK_MONOTONIC, &strange, &timer) < 0 ? errno : 0, EINVAL },
        { "timerfd_settime", timerfd_settime(-1, 0, &long_ns, NULL) < 0 ? errno : 0, EINVAL },
        { "sigtimedwait", sigtimedwait(&empty, NULL, &long_ns.it_value) < 0 ? errno : 0, EINVAL },
        { "timer_delete", timer_delete(timer), 0 },
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        assert_row_equal(rows[i].name, rows[i].error, rows[i].expected);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_alarm_ends_a_sleep_at_its_time, prepare),
        cmocka_unit_test_setup(test_alarm_that_is_taken_back_never_comes, prepare),
        cmocka_unit_test_setup(test_alarm_comes_in_a_loop_around_the_clock, prepare),
        cmocka_unit_test_setup(test_alarm_comes_behind_a_request_to_emunic, prepare),
        cmocka_unit_test_setup(test_interval_goes_on_from_its_time, prepare),
        cmocka_unit_test_setup(test_pause_ends_with_the_alarm, prepare),
        cmocka_unit_test_setup(test_poll_ends_with_the_alarm, prepare),
        cmocka_unit_test_setup(test_blocked_alarm_is_waited_for, prepare),
        cmocka_unit_test_setup(test_alarm_comes_to_a_thread_that_computes, prepare),
        cmocka_unit_test_setup(test_timer_sends_its_signal_and_value, prepare),
        cmocka_unit_test_setup(test_timer_of_a_date_comes_then, prepare),
        cmocka_unit_test_setup(test_passed_expiries_are_the_overrun, prepare),
        cmocka_unit_test_setup(test_timer_runs_a_function_in_a_thread, prepare),
        cmocka_unit_test_setup(test_descriptor_becomes_readable_at_its_time, prepare),
        cmocka_unit_test_setup(test_descriptor_without_time_is_not_readable, prepare),
        cmocka_unit_test_setup(test_refused_arguments_are_refused, prepare),
    };

    if (argc == 2)
        return played_start_again(argv);
    return cmocka_run_group_tests(tests, played_attach, played_end);
}
