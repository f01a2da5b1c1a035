/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The program's clock: what it shows, sleeps, and waits (played_emunic.h). No real time is looked at.
 */
#include <errno.h>
#include <fcntl.h>
#include <mqueue.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/timeb.h>
#include <sys/times.h>
#include <sys/wait.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/common/rows.h"
#include "tests/unit/mpi-shim/played_emunic.h"

#define NS_PER_S 1000000000ll

/* In a library of its own. */
int runtime_asks_for_the_time(struct timespec *now_out);

static int64_t ns_of(clockid_t clock)
{
    struct timespec t;

    assert_int_equal(clock_gettime(clock, &t), 0);
    return (int64_t)t.tv_sec * NS_PER_S + t.tv_nsec;
}

static int64_t host_ns(clockid_t clock)
{
    struct timespec t;

    syscall(SYS_clock_gettime, clock, &t);
    return (int64_t)t.tv_sec * NS_PER_S + t.tv_nsec;
}

static void test_each_clock_moves_by_the_cost_of_a_question(void **state)
{
    static const clockid_t clocks[] = {
        CLOCK_REALTIME, CLOCK_MONOTONIC,        CLOCK_MONOTONIC_RAW,      CLOCK_BOOTTIME,
        CLOCK_TAI,      CLOCK_MONOTONIC_COARSE, CLOCK_PROCESS_CPUTIME_ID, CLOCK_THREAD_CPUTIME_ID
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(clocks); i++) {
        int64_t before_ns = ns_of(clocks[i]);

        assert_int_equal(ns_of(clocks[i]) - before_ns, PLAYED_POLL_PS / 1000);
    }
}

/* libc declares it obsolete. */
static int ask_ftime(struct timeb *now)
{
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
    return ftime(now);
#pragma GCC diagnostic pop
}

static void test_calls_agree_about_the_date(void **state)
{
    struct timeval t;
    struct timespec c11;
    struct timeb old;

    (void)state;
    assert_int_equal(gettimeofday(&t, NULL), 0);
    assert_int_equal(t.tv_sec, ns_of(CLOCK_REALTIME) / NS_PER_S);
    assert_int_equal(time(NULL), t.tv_sec);
    assert_int_equal(timespec_get(&c11, TIME_UTC), TIME_UTC);
    assert_int_equal(c11.tv_sec, t.tv_sec);
    assert_int_equal(ask_ftime(&old), 0);
    assert_int_equal(old.time, t.tv_sec);
    assert_int_equal(old.millitm, c11.tv_nsec / 1000000);
}

static void test_processor_time_is_virtual_time(void **state)
{
    struct tms used, later;
    struct rusage before_usage, usage;
    clock_t before = clock();
    clock_t ticks = times(&used);

    (void)state;
    assert_int_equal(getrusage(RUSAGE_SELF, &before_usage), 0);
    assert_int_equal(sleep(10), 0);
    assert_int_equal(clock() - before, 10 * CLOCKS_PER_SEC);
    assert_int_equal(times(&later) - ticks, 10 * sysconf(_SC_CLK_TCK));
    assert_int_equal(later.tms_utime - used.tms_utime, 10 * sysconf(_SC_CLK_TCK));
    assert_int_equal(getrusage(RUSAGE_SELF, &usage), 0);
    assert_int_equal(usage.ru_utime.tv_sec - before_usage.ru_utime.tv_sec, 10);
}

static void test_loop_around_a_clock_gets_on(void **state)
{
    int64_t until_ns = ns_of(CLOCK_MONOTONIC) + 1000000;

    (void)state;
    while (ns_of(CLOCK_MONOTONIC) < until_ns)
        ;
}

/* ---- sleeps ---- */

static void test_sleep_lasts_as_long_as_asked(void **state)
{
    const struct timespec t = { .tv_sec = 3600, .tv_nsec = 7 };
    int64_t before_ns = played_now_ns();
    struct timespec at = { 0 };

    (void)state;
    assert_int_equal(nanosleep(&t, NULL), 0);
    assert_int_equal(played_now_ns() - before_ns, 3600 * NS_PER_S + 7);
    assert_int_equal(sleep(100), 0);
    assert_int_equal(usleep(5), 0);
    assert_int_equal(played_now_ns() - before_ns, 3700 * NS_PER_S + 5007);
    assert_int_equal(thrd_sleep(&(struct timespec){ .tv_nsec = 3 }, NULL), 0);
    assert_int_equal(played_now_ns() - before_ns, 3700 * NS_PER_S + 5010);
    assert_int_equal(clock_gettime(CLOCK_REALTIME, &at), 0);
    at.tv_sec += 9;
    assert_int_equal(clock_nanosleep(CLOCK_REALTIME, TIMER_ABSTIME, &at, NULL), 0);
    assert_int_equal(ns_of(CLOCK_REALTIME), at.tv_sec * NS_PER_S + at.tv_nsec);
}

/* ---- waits ---- */

/* _FORTIFY_SOURCE calls these. */
int __poll_chk(struct pollfd *fds, nfds_t n, int timeout_ms, size_t room);
int __ppoll_chk(struct pollfd *fds, nfds_t n, const struct timespec *timeout, const sigset_t *mask, size_t room);

/* A pipe in which nothing is, and an epoll of it. */
static int ends[2], epoll_of_pipe;
static const struct timespec five_ms = { .tv_nsec = 5000000 };

static int call_poll(void)
{
    return poll(&(struct pollfd){ .fd = ends[0], .events = POLLIN }, 1, 5);
}

static int call_ppoll(void)
{
    return ppoll(&(struct pollfd){ .fd = ends[0], .events = POLLIN }, 1, &five_ms, NULL);
}

static int call_poll_chk(void)
{
    return __poll_chk(&(struct pollfd){ .fd = ends[0], .events = POLLIN }, 1, 5, sizeof(struct pollfd));
}

static int call_ppoll_chk(void)
{
    return __ppoll_chk(&(struct pollfd){ .fd = ends[0], .events = POLLIN }, 1, &five_ms, NULL, sizeof(struct pollfd));
}

static int call_poll_without_descriptors(void)
{
    return poll(NULL, 0, 5);
}

static int call_select(void)
{
    struct timeval t = { .tv_usec = 5000 };
    fd_set set;
    int r;

    FD_ZERO(&set);
    FD_SET(ends[0], &set);
    r = select(ends[0] + 1, &set, NULL, NULL, &t);
    return FD_ISSET(ends[0], &set) || t.tv_sec > 0 || t.tv_usec > 0 ? -1 : r;
}

static int call_pselect(void)
{
    fd_set set;
    int r;

    FD_ZERO(&set);
    FD_SET(ends[0], &set);
    r = pselect(ends[0] + 1, &set, NULL, NULL, &five_ms, NULL);
    return FD_ISSET(ends[0], &set) ? -1 : r;
}

static int call_epoll_wait(void)
{
    return epoll_wait(epoll_of_pipe, &(struct epoll_event){ 0 }, 1, 5);
}

static int call_epoll_pwait(void)
{
    return epoll_pwait(epoll_of_pipe, &(struct epoll_event){ 0 }, 1, 5, NULL);
}

static int call_epoll_pwait2(void)
{
    return epoll_pwait2(epoll_of_pipe, &(struct epoll_event){ 0 }, 1, &five_ms, NULL);
}

static const struct {
    const char *name;
    int (*call)(void);
} descriptor_calls[] = {
    { "poll", call_poll },
    { "ppoll", call_ppoll },
    { "__poll_chk", call_poll_chk },
    { "__ppoll_chk", call_ppoll_chk },
    { "poll without descriptors", call_poll_without_descriptors },
    { "select", call_select },
    { "pselect", call_pselect },
    { "epoll_wait", call_epoll_wait },
    { "epoll_pwait", call_epoll_pwait },
    { "epoll_pwait2", call_epoll_pwait2 },
};

static void open_pipe(void)
{
    struct epoll_event event = { .events = EPOLLIN };

    assert_int_equal(pipe(ends), 0);
    epoll_of_pipe = epoll_create1(0);
    assert_int_equal(epoll_ctl(epoll_of_pipe, EPOLL_CTL_ADD, ends[0], &event), 0);
}

static void close_pipe(void)
{
    close(ends[0]);
    close(ends[1]);
    close(epoll_of_pipe);
}

static void test_time_outs_of_descriptors_are_virtual(void **state)
{
    (void)state;
    open_pipe();
    for (size_t i = 0; i < COUNT_OF(descriptor_calls); i++) {
        int64_t before_ns = played_now_ns();

        assert_row_equal(descriptor_calls[i].name, descriptor_calls[i].call(), 0);
        assert_row_equal(descriptor_calls[i].name, played_now_ns() - before_ns, 5000000);
    }
    close_pipe();
}

static void test_what_is_ready_is_found_at_once(void **state)
{
    struct pollfd p = { .events = POLLIN };
    int64_t before_ns = played_now_ns();
    struct epoll_event event;
    fd_set set;

    (void)state;
    open_pipe();
    p.fd = ends[0];
    FD_ZERO(&set);
    FD_SET(ends[0], &set);
    assert_int_equal(write(ends[1], "x", 1), 1);
    assert_int_equal(poll(&p, 1, -1), 1);
    assert_int_equal(poll(&p, 1, 1000), 1);
    assert_int_equal(epoll_wait(epoll_of_pipe, &event, 1, 1000), 1);
    assert_int_equal(pselect(ends[0] + 1, &set, NULL, NULL, &five_ms, NULL), 1);
    assert_true(FD_ISSET(ends[0], &set));
    assert_int_equal(played_now_ns(), before_ns);
    close_pipe();
}

/* ---- waits for threads ---- */

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER, taken = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER, monotonic_cond;
static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER, read_lock = PTHREAD_RWLOCK_INITIALIZER;
static sem_t semaphore;
static mtx_t c11_mutex, c11_taken;
static cnd_t c11_cond;
static mqd_t queue;
static char message[64];

static int wait_cond(const struct timespec *t)
{
    return pthread_cond_timedwait(&cond, &mutex, t);
}

static int wait_cond_clock(const struct timespec *t)
{
    return pthread_cond_clockwait(&cond, &mutex, CLOCK_MONOTONIC, t);
}

static int wait_monotonic_cond(const struct timespec *t)
{
    return pthread_cond_timedwait(&monotonic_cond, &mutex, t);
}

static int wait_mutex(const struct timespec *t)
{
    return pthread_mutex_timedlock(&taken, t);
}

static int wait_mutex_clock(const struct timespec *t)
{
    return pthread_mutex_clocklock(&taken, CLOCK_MONOTONIC, t);
}

static int wait_read(const struct timespec *t)
{
    return pthread_rwlock_timedrdlock(&lock, t);
}

static int wait_read_clock(const struct timespec *t)
{
    return pthread_rwlock_clockrdlock(&lock, CLOCK_MONOTONIC, t);
}

static int wait_write(const struct timespec *t)
{
    return pthread_rwlock_timedwrlock(&read_lock, t);
}

static int wait_write_clock(const struct timespec *t)
{
    return pthread_rwlock_clockwrlock(&read_lock, CLOCK_MONOTONIC, t);
}

static int wait_semaphore(const struct timespec *t)
{
    return sem_timedwait(&semaphore, t) < 0 ? errno : 0;
}

static int wait_semaphore_clock(const struct timespec *t)
{
    return sem_clockwait(&semaphore, CLOCK_MONOTONIC, t) < 0 ? errno : 0;
}

static int wait_c11_cond(const struct timespec *t)
{
    return cnd_timedwait(&c11_cond, &c11_mutex, t) == thrd_timedout ? ETIMEDOUT : 0;
}

static int wait_c11_mutex(const struct timespec *t)
{
    return mtx_timedlock(&c11_taken, t) == thrd_timedout ? ETIMEDOUT : 0;
}

static int wait_message(const struct timespec *t)
{
    return mq_timedreceive(queue, message, sizeof(message), NULL, t) < 0 ? errno : 0;
}

static const struct {
    const char *name;
    int (*call)(const struct timespec *t);
    clockid_t clock;
} thread_calls[] = {
    { "pthread_cond_timedwait", wait_cond, CLOCK_REALTIME },
    { "pthread_cond_clockwait", wait_cond_clock, CLOCK_MONOTONIC },
    { "pthread_cond_timedwait, monotonic", wait_monotonic_cond, CLOCK_MONOTONIC },
    { "pthread_mutex_timedlock", wait_mutex, CLOCK_REALTIME },
    { "pthread_mutex_clocklock", wait_mutex_clock, CLOCK_MONOTONIC },
    { "pthread_rwlock_timedrdlock", wait_read, CLOCK_REALTIME },
    { "pthread_rwlock_clockrdlock", wait_read_clock, CLOCK_MONOTONIC },
    { "pthread_rwlock_timedwrlock", wait_write, CLOCK_REALTIME },
    { "pthread_rwlock_clockwrlock", wait_write_clock, CLOCK_MONOTONIC },
    { "sem_timedwait", wait_semaphore, CLOCK_REALTIME },
    { "sem_clockwait", wait_semaphore_clock, CLOCK_MONOTONIC },
    { "cnd_timedwait", wait_c11_cond, CLOCK_REALTIME },
    { "mtx_timedlock", wait_c11_mutex, CLOCK_REALTIME },
    { "mq_timedreceive", wait_message, CLOCK_REALTIME },
};

/* Another thread has what the calls want. */
static void *take_locks(void *barrier)
{
    pthread_mutex_lock(&taken);
    mtx_lock(&c11_taken);
    pthread_rwlock_wrlock(&lock);
    pthread_rwlock_rdlock(&read_lock);
    pthread_barrier_wait(barrier);
    pthread_barrier_wait(barrier);
    pthread_rwlock_unlock(&read_lock);
    pthread_rwlock_unlock(&lock);
    mtx_unlock(&c11_taken);
    pthread_mutex_unlock(&taken);
    return NULL;
}

static void open_objects(void)
{
    struct mq_attr attributes = { .mq_maxmsg = 1, .mq_msgsize = sizeof(message) };
    pthread_condattr_t monotonic;
    char name[32];

    snprintf(name, sizeof(name), "/emunic-clock-%d", (int)getpid());
    queue = mq_open(name, O_CREAT | O_EXCL | O_RDWR, 0600, &attributes);
    assert_true(queue != (mqd_t)-1);
    mq_unlink(name);
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&monotonic_cond, &monotonic);
    sem_init(&semaphore, 0, 0);
    mtx_init(&c11_mutex, mtx_plain);
    mtx_init(&c11_taken, mtx_timed);
    cnd_init(&c11_cond);
    pthread_mutex_lock(&mutex);
    mtx_lock(&c11_mutex);
}

static struct timespec in_five_ms(clockid_t clock)
{
    struct timespec t;

    assert_int_equal(clock_gettime(clock, &t), 0);
    t.tv_nsec += 5000000;
    if (t.tv_nsec >= NS_PER_S) {
        t.tv_nsec -= NS_PER_S;
        t.tv_sec++;
    }
    return t;
}

static void test_time_outs_of_threads_are_virtual(void **state)
{
    pthread_barrier_t barrier;
    pthread_t thread;

    (void)state;
    open_objects();
    pthread_barrier_init(&barrier, NULL, 2);
    assert_int_equal(pthread_create(&thread, NULL, take_locks, &barrier), 0);
    pthread_barrier_wait(&barrier);
    for (size_t i = 0; i < COUNT_OF(thread_calls); i++) {
        int64_t before_ns = played_now_ns();
        struct timespec t = in_five_ms(thread_calls[i].clock);

        assert_row_equal(thread_calls[i].name, thread_calls[i].call(&t), ETIMEDOUT);
        assert_row_equal(thread_calls[i].name, played_now_ns() - before_ns, 5000000);
        assert_row_equal(thread_calls[i].name, thread_calls[i].call(&t), ETIMEDOUT);
    }
    pthread_barrier_wait(&barrier);
    assert_int_equal(pthread_join(thread, NULL), 0);
    pthread_mutex_unlock(&mutex);
    assert_int_equal(wait_mutex(&five_ms), 0);
    mq_close(queue);
}

static void test_message_that_is_there_is_received(void **state)
{
    struct timespec t = in_five_ms(CLOCK_REALTIME);

    (void)state;
    open_objects();
    assert_int_equal(mq_timedsend(queue, "hello", 6, 0, &t), 0);
    assert_int_equal(mq_timedreceive(queue, message, sizeof(message), NULL, &t), 6);
    assert_string_equal(message, "hello");
    mq_close(queue);
    pthread_mutex_unlock(&mutex);
}

static void *write_when_away(void *fd)
{
    while (played_times_away() == 0)
        sched_yield();
    return write(*(int *)fd, "x", 1) == 1 ? NULL : fd;
}

static void test_wait_without_time_out_is_away(void **state)
{
    struct pollfd p = { .events = POLLIN };
    pthread_t writer;
    void *failed;

    (void)state;
    open_pipe();
    p.fd = ends[0];
    played_forget_away();
    assert_int_equal(pthread_create(&writer, NULL, write_when_away, &ends[1]), 0);
    assert_int_equal(poll(&p, 1, -1), 1);
    assert_int_equal(pthread_join(writer, &failed), 0);
    assert_null(failed);
    close_pipe();
}

/* ---- whose time it is ---- */

/* NULL: no. */
static void *is_host_time(void *yes)
{
    int64_t before_ns = host_ns(CLOCK_MONOTONIC);
    int64_t shown_ns = ns_of(CLOCK_MONOTONIC);

    return before_ns <= shown_ns && shown_ns <= host_ns(CLOCK_MONOTONIC) ? yes : NULL;
}

static void *has_its_creators_time(void *began_ns)
{
    return ns_of(CLOCK_MONOTONIC) - *(const int64_t *)began_ns < 1000000 ? began_ns : NULL;
}

static void test_thread_begins_at_its_creators_time(void **state)
{
    void *has_time = NULL;
    pthread_t thread;
    int64_t began_ns;

    (void)state;
    assert_int_equal(sleep(1000), 0);
    began_ns = ns_of(CLOCK_MONOTONIC);
    assert_int_equal(pthread_create(&thread, NULL, has_its_creators_time, &began_ns), 0);
    assert_int_equal(pthread_join(thread, &has_time), 0);
    assert_non_null(has_time);
    assert_null(is_host_time(&began_ns));
}

static void test_yields_take_virtual_time(void **state)
{
    int64_t began_ns = ns_of(CLOCK_MONOTONIC);

    (void)state;
    for (int i = 0; i < 100; i++)
        assert_int_equal(sched_yield(), 0);
    assert_true(ns_of(CLOCK_MONOTONIC) - began_ns > 1000);
}

static void test_library_of_the_runtime_has_the_hosts_clock(void **state)
{
    int64_t before_ns = host_ns(CLOCK_MONOTONIC);
    struct timespec t;
    int64_t shown_ns;

    (void)state;
    assert_int_equal(sleep(1000), 0);
    assert_int_equal(runtime_asks_for_the_time(&t), 0);
    shown_ns = (int64_t)t.tv_sec * NS_PER_S + t.tv_nsec;
    assert_true(before_ns <= shown_ns && shown_ns <= host_ns(CLOCK_MONOTONIC));
}

static void test_child_has_the_hosts_clock(void **state)
{
    pid_t child;
    int status;

    (void)state;
    assert_int_equal(sleep(1000), 0);
    child = fork();
    if (child == 0)
        _exit(!is_host_time(&child));
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

static void test_refused_arguments_are_refused(void **state)
{
    const struct timespec negative = { .tv_sec = -1 }, long_ns = { .tv_nsec = 1000000000 };
    struct timespec t = { 0 };
    struct timeval before = { .tv_sec = -1 };
    const struct {
        const char *name;
        int error;
        int expected;
    } rows[] = {
        { "clock", clock_gettime(999, &t) < 0 ? errno : 0, EINVAL },
        { "negative sleep", nanosleep(&negative, NULL) < 0 ? errno : 0, EINVAL },
        { "too many ns", nanosleep(&long_ns, NULL) < 0 ? errno : 0, EINVAL },
        { "sleep of a raw clock", clock_nanosleep(CLOCK_MONOTONIC_RAW, 0, &t, NULL), ENOTSUP },
        { "ppoll", ppoll(NULL, 0, &negative, NULL) < 0 ? errno : 0, EINVAL },
        { "pselect", pselect(0, NULL, NULL, NULL, &long_ns, NULL) < 0 ? errno : 0, EINVAL },
        { "epoll_pwait2", epoll_pwait2(-1, (void *)&t, 1, &negative, NULL) < 0 ? errno : 0, EINVAL },
        { "thrd_sleep", thrd_sleep(&long_ns, NULL), -2 },
        { "sem_timedwait", sem_timedwait(&semaphore, &long_ns) < 0 ? errno : 0, EINVAL },
        { "select", select(0, NULL, NULL, NULL, &before) < 0 ? errno : 0, EINVAL },
        { "epoll", epoll_wait(-1, (void *)&t, 1, 1000) < 0 ? errno : 0, EBADF },
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        assert_row_equal(rows[i].name, rows[i].error, rows[i].expected);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_clock_moves_by_the_cost_of_a_question),
        cmocka_unit_test(test_calls_agree_about_the_date),
        cmocka_unit_test(test_processor_time_is_virtual_time),
        cmocka_unit_test(test_loop_around_a_clock_gets_on),
        cmocka_unit_test(test_sleep_lasts_as_long_as_asked),
        cmocka_unit_test(test_time_outs_of_descriptors_are_virtual),
        cmocka_unit_test(test_what_is_ready_is_found_at_once),
        cmocka_unit_test(test_time_outs_of_threads_are_virtual),
        cmocka_unit_test(test_message_that_is_there_is_received),
        cmocka_unit_test(test_wait_without_time_out_is_away),
        cmocka_unit_test(test_thread_begins_at_its_creators_time),
        cmocka_unit_test(test_yields_take_virtual_time),
        cmocka_unit_test(test_library_of_the_runtime_has_the_hosts_clock),
        cmocka_unit_test(test_child_has_the_hosts_clock),
        cmocka_unit_test(test_refused_arguments_are_refused),
    };

    if (argc == 2)
        return played_start_again(argv);
    return cmocka_run_group_tests(tests, played_attach, played_end);
}
