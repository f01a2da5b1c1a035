/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A program that makes each call of libc that has to do with time, and tells how long it lasted by its own clock:
 *
 *   time_calls FILE FIFO        FILE.RANK gets a line "name ns" for each call
 *
 * A wait for a condition variable goes on at the time that the other rank has reached, which may be a question for the
 * time later; so it is told to the microsecond.
 *
 * For two ranks. Rank 1 writes into the fifo while rank 0 waits for it.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/times.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

#include "examples/common.h"

#define NS_PER_S 1000000000ll
#define FOR_MS   3

static struct ex_job job;
static gni_cq_handle_t cq;
static int fifo, timer_fd, epoll;
static const char *fifo_name;
static volatile sig_atomic_t n_signals;

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t cond = PTHREAD_COND_INITIALIZER;
static pthread_rwlock_t lock = PTHREAD_RWLOCK_INITIALIZER;
static sem_t semaphore;
static mtx_t c11_mutex;
static cnd_t c11_cond;

static const struct timespec for_a_while = { .tv_nsec = FOR_MS * 1000000 };

static int64_t now_ns(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * NS_PER_S + t.tv_nsec;
}

static struct timespec in_a_while(clockid_t clock)
{
    struct timespec t;
    int64_t ns;

    clock_gettime(clock, &t);
    ns = (int64_t)t.tv_sec * NS_PER_S + t.tv_nsec + for_a_while.tv_nsec;
    return (struct timespec){ .tv_sec = ns / NS_PER_S, .tv_nsec = ns % NS_PER_S };
}

static void count_signal(int number)
{
    (void)number;
    n_signals++;
}

/* ---- questions ---- */

static void ask_dates(void)
{
    struct timeval t;
    struct timespec c11;

    gettimeofday(&t, NULL);
    time(NULL);
    timespec_get(&c11, TIME_UTC);
}

static void ask_processor_time(void)
{
    struct rusage usage;
    struct tms ticks;

    clock();
    times(&ticks);
    getrusage(RUSAGE_SELF, &usage);
}

/* ---- sleeps ---- */

static void call_nanosleep(void)
{
    nanosleep(&for_a_while, NULL);
}

static void call_usleep(void)
{
    usleep(FOR_MS * 1000);
}

static void call_sleep(void)
{
    sleep(FOR_MS);
}

static void call_clock_nanosleep(void)
{
    struct timespec t = in_a_while(CLOCK_MONOTONIC);

    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL);
}

static void call_thrd_sleep(void)
{
    thrd_sleep(&for_a_while, NULL);
}

/* ---- descriptors ---- */

static struct pollfd of_fifo(void)
{
    return (struct pollfd){ .fd = fifo, .events = POLLIN };
}

static void call_poll(void)
{
    struct pollfd p = of_fifo();

    poll(&p, 1, FOR_MS);
}

static void call_ppoll(void)
{
    struct pollfd p = of_fifo();

    ppoll(&p, 1, &for_a_while, NULL);
}

static void call_select(void)
{
    struct timeval t = { .tv_usec = FOR_MS * 1000 };
    fd_set set;

    FD_ZERO(&set);
    FD_SET(fifo, &set);
    select(fifo + 1, &set, NULL, NULL, &t);
}

static void call_pselect(void)
{
    fd_set set;

    FD_ZERO(&set);
    FD_SET(fifo, &set);
    pselect(fifo + 1, &set, NULL, NULL, &for_a_while, NULL);
}

static void call_epoll_wait(void)
{
    struct epoll_event event;

    epoll_wait(epoll, &event, 1, FOR_MS);
}

static void call_epoll_pwait(void)
{
    struct epoll_event event;

    epoll_pwait(epoll, &event, 1, FOR_MS, NULL);
}

/* ---- threads ---- */

static void call_cond_timedwait(void)
{
    struct timespec t = in_a_while(CLOCK_REALTIME);

    pthread_cond_timedwait(&cond, &mutex, &t);
}

static void call_cond_clockwait(void)
{
    struct timespec t = in_a_while(CLOCK_MONOTONIC);

    pthread_cond_clockwait(&cond, &mutex, CLOCK_MONOTONIC, &t);
}

/* Normal mutexes and locks: whoever has them waits for them in vain. */
static void call_mutex_timedlock(void)
{
    struct timespec t = in_a_while(CLOCK_REALTIME);

    pthread_mutex_timedlock(&mutex, &t);
}

static void call_rwlock_timedrdlock(void)
{
    struct timespec t = in_a_while(CLOCK_REALTIME);

    pthread_rwlock_timedrdlock(&lock, &t);
}

static void call_sem_timedwait(void)
{
    struct timespec t = in_a_while(CLOCK_REALTIME);

    sem_timedwait(&semaphore, &t);
}

static void call_sem_clockwait(void)
{
    struct timespec t = in_a_while(CLOCK_MONOTONIC);

    sem_clockwait(&semaphore, CLOCK_MONOTONIC, &t);
}

static void call_cnd_timedwait(void)
{
    struct timespec t = in_a_while(CLOCK_REALTIME);

    cnd_timedwait(&c11_cond, &c11_mutex, &t);
}

/* ---- timers ---- */

static void call_alarm(void)
{
    alarm(1);
    sleep(10);
}

static void call_setitimer(void)
{
    const struct itimerval value = { .it_value.tv_usec = 500 };
    int before = n_signals;

    setitimer(ITIMER_REAL, &value, NULL);
    while (n_signals == before)
        now_ns();
}

/* Until it comes the queue is polled. */
static void call_alarm_and_poll_queue(void)
{
    int before = n_signals;
    gni_cq_entry_t entry;

    ualarm(200, 0);
    while (n_signals == before)
        GNI_CqGetEvent(cq, &entry);
}

static void call_timer(void)
{
    const struct itimerspec value = { .it_value = for_a_while };
    timer_t timer;

    timer_create(CLOCK_MONOTONIC, NULL, &timer);
    timer_settime(timer, 0, &value, NULL);
    pause();
    timer_delete(timer);
}

static void call_timerfd(void)
{
    const struct itimerspec value = { .it_value = for_a_while };
    uint64_t n;

    timerfd_settime(timer_fd, 0, &value, NULL);
    poll(&(struct pollfd){ .fd = timer_fd, .events = POLLIN }, 1, -1);
    if (read(timer_fd, &n, sizeof(n)) != sizeof(n))
        EX_FAIL("timerfd: %s", strerror(errno));
}

/* ---- from rank to rank ---- */

static void wait_for_the_other(void)
{
    struct pollfd p = of_fifo();
    char byte;

    if (job.rank == 1) {
        usleep(1000);
        EX_EXPECT(write(fifo, "x", 1) == 1, "fifo: %s", strerror(errno));
    } else {
        EX_EXPECT(poll(&p, 1, 100) == 1, "nothing came");
        EX_EXPECT(read(fifo, &byte, 1) == 1, "fifo: %s", strerror(errno));
    }
}

static const struct {
    const char *name;
    void (*call)(void);
    int64_t step_ns; /* 0: told exactly */
} rows[] = {
    { "dates", ask_dates },
    { "processor time", ask_processor_time },
    { "nanosleep", call_nanosleep },
    { "usleep", call_usleep },
    { "sleep", call_sleep },
    { "clock_nanosleep", call_clock_nanosleep },
    { "thrd_sleep", call_thrd_sleep },
    { "poll", call_poll },
    { "ppoll", call_ppoll },
    { "select", call_select },
    { "pselect", call_pselect },
    { "epoll_wait", call_epoll_wait },
    { "epoll_pwait", call_epoll_pwait },
    { "pthread_cond_timedwait", call_cond_timedwait, 1000 },
    { "pthread_cond_clockwait", call_cond_clockwait, 1000 },
    { "pthread_mutex_timedlock", call_mutex_timedlock },
    { "pthread_rwlock_timedrdlock", call_rwlock_timedrdlock },
    { "sem_timedwait", call_sem_timedwait },
    { "sem_clockwait", call_sem_clockwait },
    { "cnd_timedwait", call_cnd_timedwait, 1000 },
    { "alarm", call_alarm },
    { "setitimer", call_setitimer },
    { "ualarm and polls", call_alarm_and_poll_queue },
    { "timer_settime", call_timer },
    { "timerfd_settime", call_timerfd },
    { "the other rank", wait_for_the_other },
};

static void prepare(void)
{
    struct sigaction action = { .sa_handler = count_signal };
    struct epoll_event event = { .events = EPOLLIN };

    sigaction(SIGALRM, &action, NULL);
    pthread_mutex_lock(&mutex);
    pthread_rwlock_wrlock(&lock);
    sem_init(&semaphore, 0, 0);
    mtx_init(&c11_mutex, mtx_timed);
    mtx_lock(&c11_mutex);
    cnd_init(&c11_cond);
    fifo = open(fifo_name, O_RDWR | O_CLOEXEC);
    EX_EXPECT(fifo >= 0, "%s: %s", fifo_name, strerror(errno));
    epoll = epoll_create1(EPOLL_CLOEXEC);
    epoll_ctl(epoll, EPOLL_CTL_ADD, fifo, &event);
    timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
    EX_GNI(GNI_CqCreate(job.nic, 16, 0, GNI_CQ_NOBLOCK, NULL, NULL, &cq));
}

int main(int argc, char **argv)
{
    char name[4096];
    int64_t ns;
    FILE *out;

    EX_EXPECT(argc == 3, "usage: time_calls FILE FIFO");
    ex_start(&job, 0);
    fifo_name = argv[2];
    snprintf(name, sizeof(name), "%s.%d", argv[1], job.rank);
    out = fopen(name, "w");
    EX_EXPECT(out, "%s: %s", name, strerror(errno));
    prepare();
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        ex_barrier();
        ns = now_ns();
        rows[i].call();
        ns = now_ns() - ns;
        if (rows[i].step_ns > 0)
            ns = ns / rows[i].step_ns * rows[i].step_ns;
        fprintf(out, "%s %lld\n", rows[i].name, (long long)ns);
    }
    ex_barrier();
    fclose(out);
    EX_GNI(GNI_CqDestroy(cq));
    ex_stop(&job);
    return 0;
}
