/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Watching mappings with userfaultfd.
 *
 * A range that is registered with a userfaultfd reports its unmapping and its moving (UFFD_FEATURE_EVENT_UNMAP,
 * _REMAP). The registration is for write protection, but nothing is ever protected: no access to the memory gets slower
 * or waits for us. munmap() waits until somebody has read the event. So a thread of ours reads, with all signals
 * blocked, and does nothing else:
 *
 *      munmap() ──event──> thread: { lock; read; note the range; unlock }     munmap() returns after the read
 *
 * Reading and noting happen under one lock, which udregi_watch_take() takes too: what was unmapped before a take is
 * noted or being noted then, and cannot be missed. The thread never takes the cache's lock, so callbacks may unmap.
 *
 * Source: userfaultfd(2), ioctl_userfaultfd(2).
 */
#include "mpi-shim/udreg/src/watch.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

struct udregi_watch {
    int fd;      /* owned */
    int stop_fd; /* owned; readable: the thread ends */
    pthread_t thread;
    pthread_mutex_t lock; /* of the following */
    uint32_t n_lost;
    bool all_lost;
    struct udregi_range lost[UDREGI_LOST_MAX];
};

/* ---- the thread ---- */

static void note(struct udregi_watch *w, uint64_t first, uint64_t end)
{
    if (w->n_lost == UDREGI_LOST_MAX)
        w->all_lost = true;
    else
        w->lost[w->n_lost++] = (struct udregi_range){ first, end };
}

static void take_event(struct udregi_watch *w)
{
    struct uffd_msg msg;
    ssize_t n;

    pthread_mutex_lock(&w->lock);
    n = read(w->fd, &msg, sizeof(msg));
    if (n == sizeof(msg) && msg.event == UFFD_EVENT_UNMAP)
        note(w, msg.arg.remove.start, msg.arg.remove.end);
    else if (n == sizeof(msg) && msg.event == UFFD_EVENT_REMAP)
        note(w, msg.arg.remap.from, msg.arg.remap.from + msg.arg.remap.len);
    pthread_mutex_unlock(&w->lock);
}

static void *listen(void *arg)
{
    struct udregi_watch *w = arg;
    struct pollfd fds[2] = { { .fd = w->fd, .events = POLLIN }, { .fd = w->stop_fd, .events = POLLIN } };

    while (fds[1].revents == 0) {
        if (poll(fds, 2, -1) > 0 && fds[0].revents & POLLIN)
            take_event(w);
    }
    return NULL;
}

/* Signals are the program's: none is delivered to our thread. */
static int start_thread(struct udregi_watch *w)
{
    sigset_t all, old;
    int r;

    sigfillset(&all);
    pthread_sigmask(SIG_BLOCK, &all, &old);
    r = pthread_create(&w->thread, NULL, listen, w);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    return -r;
}

/* ---- lifecycle ---- */

static int open_userfaultfd(void)
{
    struct uffdio_api api = { .api = UFFD_API, .features = UFFD_FEATURE_EVENT_UNMAP | UFFD_FEATURE_EVENT_REMAP };
    long fd = syscall(SYS_userfaultfd, O_CLOEXEC | O_NONBLOCK | UFFD_USER_MODE_ONLY);

    if (fd < 0)
        return -errno;
    if (ioctl((int)fd, UFFDIO_API, &api) < 0) {
        int r = -errno;

        close((int)fd);
        return r;
    }
    return (int)fd;
}

int udregi_watch_create(struct udregi_watch **watch_out)
{
    struct udregi_watch *w = calloc(1, sizeof(*w));
    int r;

    if (!w)
        return -ENOMEM;
    pthread_mutex_init(&w->lock, NULL);
    r = w->fd = open_userfaultfd();
    if (r < 0)
        goto err_free;
    w->stop_fd = eventfd(0, EFD_CLOEXEC);
    r = w->stop_fd < 0 ? -errno : start_thread(w);
    if (r < 0)
        goto err_close;
    *watch_out = w;
    return 0;

err_close:
    if (w->stop_fd >= 0)
        close(w->stop_fd);
    close(w->fd);
err_free:
    pthread_mutex_destroy(&w->lock);
    free(w);
    return r;
}

void udregi_watch_destroy(struct udregi_watch *w)
{
    if (!w)
        return;
    eventfd_write(w->stop_fd, 1);
    pthread_join(w->thread, NULL);
    close(w->fd);
    close(w->stop_fd);
    pthread_mutex_destroy(&w->lock);
    free(w);
}

/* ---- ranges ---- */

int udregi_watch_add(struct udregi_watch *w, uint64_t first, uint64_t end)
{
    struct uffdio_register range = { .range = { .start = first, .len = end - first }, .mode = UFFDIO_REGISTER_MODE_WP };

    return ioctl(w->fd, UFFDIO_REGISTER, &range) < 0 ? -errno : 0;
}

void udregi_watch_remove(struct udregi_watch *w, uint64_t first, uint64_t end)
{
    struct uffdio_range range = { .start = first, .len = end - first };

    /* Fails where something is mapped that cannot be watched: then ours is gone from there too, or tells too much. */
    ioctl(w->fd, UFFDIO_UNREGISTER, &range);
}

uint32_t udregi_watch_take(struct udregi_watch *w, struct udregi_range lost[static UDREGI_LOST_MAX], bool *all_lost_out)
{
    uint32_t n;

    pthread_mutex_lock(&w->lock);
    n = w->n_lost;
    for (uint32_t i = 0; i < n; i++)
        lost[i] = w->lost[i];
    *all_lost_out = w->all_lost;
    w->n_lost = 0;
    w->all_lost = false;
    pthread_mutex_unlock(&w->lock);
    return n;
}
