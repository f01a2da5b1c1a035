/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The watchdog.
 *
 * emunic has one thread that does everything, and it calls what is not ours: a provider of libfabric, a page of
 * another process's memory, a terminal. Any of them may hang. So this thread takes the signals that end emunic:
 *
 *   waiting -> told: the loop is woken -> stopped: the loop has ended and all is closed
 *                                      -> END_NS are over: the process ends here
 *                                      -> a second signal: the same, REPEAT_NS after the first
 *
 * REPEAT_NS is there for `timeout`, which signals the process and then its group: that is one signal.
 *
 * Nothing has to be cleaned up when the process ends here: socket names are abstract, shared memory is memfd, members
 * see the end of their connections, and a job's folder belongs to its keeper. The thread takes no lock and allocates
 * nothing after its start, because whoever hangs may hold any of them.
 */
#include "emunic/daemon/core/watchdog.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#include "emunic/base/clock.h"

#define END_NS    1500000000ull
#define REPEAT_NS 300000000ull

struct emu_watchdog {
    pthread_t thread;
    sigset_t signals;
    int fd;
    _Atomic int signal;
    _Atomic bool stands_down;
};

/* A terminal that takes nothing must not stop us. */
static void say(const char *text, size_t length)
{
    struct pollfd out = { .fd = STDERR_FILENO, .events = POLLOUT };

    if (poll(&out, 1, 0) > 0 && (out.revents & POLLOUT) != 0 && write(STDERR_FILENO, text, length) < 0)
        return; /* nobody to tell */
}

static _Noreturn void end_here(void)
{
    static const char text[] = "emunic: error: it does not end by itself: ended by its watchdog\n";

    say(text, sizeof(text) - 1);
    _exit(EXIT_FAILURE);
}

/* At least one nanosecond. */
static struct timespec time_until(uint64_t end_ns)
{
    uint64_t now_ns = emu_clock_ns();
    uint64_t left_ns = end_ns > now_ns ? end_ns - now_ns : 1;

    return (struct timespec){ .tv_sec = (time_t)(left_ns / 1000000000), .tv_nsec = (long)(left_ns % 1000000000) };
}

static void *watch(void *arg)
{
    struct emu_watchdog *w = arg;
    const uint64_t one = 1;
    uint64_t first_ns;
    uint64_t end_ns;
    int signal = 0;

    while (sigwait(&w->signals, &signal) != 0)
        ;
    if (atomic_load(&w->stands_down))
        return NULL;
    atomic_store(&w->signal, signal);
    if (write(w->fd, &one, sizeof(one)) < 0)
        end_here();
    first_ns = emu_clock_ns();
    end_ns = first_ns + END_NS;
    while (emu_clock_ns() < end_ns) {
        struct timespec left = time_until(end_ns);

        if (sigtimedwait(&w->signals, NULL, &left) < 0)
            continue;
        if (atomic_load(&w->stands_down))
            return NULL;
        end_ns = first_ns + REPEAT_NS;
    }
    end_here();
}

int emu_watchdog_start(struct emu_watchdog **watchdog_out)
{
    struct emu_watchdog *w = calloc(1, sizeof(*w));
    int r;

    if (!w)
        return -ENOMEM;
    sigemptyset(&w->signals);
    sigaddset(&w->signals, SIGINT);
    sigaddset(&w->signals, SIGTERM);
    sigaddset(&w->signals, SIGHUP);
    w->fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    r = w->fd < 0 ? -errno : -pthread_sigmask(SIG_BLOCK, &w->signals, NULL);
    if (r == 0)
        r = -pthread_create(&w->thread, NULL, watch, w);
    if (r < 0) {
        if (w->fd >= 0)
            close(w->fd);
        free(w);
        return r;
    }
    *watchdog_out = w;
    return 0;
}

int emu_watchdog_fd(const struct emu_watchdog *w)
{
    return w->fd;
}

int emu_watchdog_signal(struct emu_watchdog *w)
{
    uint64_t count;

    if (read(w->fd, &count, sizeof(count)) < 0)
        return 0;
    return atomic_load(&w->signal);
}

void emu_watchdog_stop(struct emu_watchdog *w)
{
    if (!w)
        return;
    atomic_store(&w->stands_down, true);
    pthread_kill(w->thread, SIGTERM);
    pthread_join(w->thread, NULL);
    close(w->fd);
    free(w);
}
