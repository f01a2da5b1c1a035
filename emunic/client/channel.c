/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Completion channels, owner's side.
 *
 *   program's fd = epoll of --+-- pipe from emunic    queues disarmed by peers or by emunic
 *                             `-- eventfd             queues disarmed by this process (own transactions, arming)
 *
 * An epoll descriptor can itself be polled, and is readable while one of its two is. Both hold exactly one token per
 * queue that was disarmed, so that emu_channel_take() takes one and leaves the descriptor readable if there are more.
 * The pipe ends with emunic or the port: the descriptor then stays readable, and the caller looks at the queues.
 *
 * While the port is stale (emu_port_set_stale) the descriptors' numbers may be somebody else's: none is used.
 *
 * Everything that comes through the pipe is checked; what it says of a queue is a hint (daemon/channel.c).
 */
#include "emunic/client/channel.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "emunic/base/log.h"

/* ---- life ---- */

static int request_pipe(struct emu_channel *channel)
{
    struct emu_msg msg = { .type = EMU_MSG_CHANNEL_CREATE };
    struct emu_fds fds;
    int r = emu_session_request(&channel->port->session, &msg, NULL, 0, &fds);

    if (r < 0)
        return r;
    if (msg.result == 0 && fds.n_fds == 1) {
        channel->index = msg.channel.channel;
        channel->calls_fd = fds.fd[0];
        fds.fd[0] = -1;
    }
    emu_fds_close(&fds);
    if (msg.result != 0)
        return msg.result < 0 ? msg.result : -EPROTO;
    return channel->calls_fd < 0 ? -EPROTO : 0;
}

static int watch(const struct emu_channel *channel, int fd)
{
    struct epoll_event event = { .events = EPOLLIN };

    return epoll_ctl(channel->fd, EPOLL_CTL_ADD, fd, &event) < 0 ? -errno : 0;
}

static int open_descriptors(struct emu_channel *channel)
{
    int r;

    channel->own_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    channel->fd = epoll_create1(EPOLL_CLOEXEC);
    if (channel->own_fd < 0 || channel->fd < 0)
        return -errno;
    r = request_pipe(channel);
    if (r == 0)
        r = watch(channel, channel->calls_fd);
    if (r == 0)
        r = watch(channel, channel->own_fd);
    return r;
}

int emu_channel_create(struct emu_port *port, struct emu_channel **channel_out)
{
    struct emu_channel *channel = calloc(1, sizeof(*channel));
    int r;

    if (!channel)
        return -ENOMEM;
    *channel = (struct emu_channel){ .port = port, .index = EMU_CHANNEL_NONE, .fd = -1, .calls_fd = -1, .own_fd = -1 };
    pthread_mutex_init(&channel->lock, NULL);
    r = open_descriptors(channel);
    if (r < 0) {
        emu_channel_destroy(channel);
        return r;
    }
    *channel_out = channel;
    return 0;
}

/* close() is a cancellation point, and the callers hold locks. */
static void close_fd(int fd)
{
    if (fd >= 0)
        syscall(SYS_close, fd);
}

void emu_channel_destroy(struct emu_channel *channel)
{
    struct emu_msg msg = { .type = EMU_MSG_CHANNEL_DESTROY, .channel = { .channel = channel->index } };

    if (channel->index != EMU_CHANNEL_NONE && channel->port->owner == getpid())
        emu_port_request(channel->port, &msg);
    if (!atomic_load(&channel->port->session.is_stale)) {
        close_fd(channel->fd);
        close_fd(channel->own_fd);
        close_fd(channel->calls_fd);
    }
    pthread_mutex_destroy(&channel->lock);
    free(channel);
}

/* The lock is held. */
static void set_readable(struct emu_channel *channel)
{
    uint64_t one = 1;

    if (atomic_load(&channel->port->session.is_stale))
        return;
    /* Not write(), which is a cancellation point. */
    if (syscall(SYS_write, channel->own_fd, &one, sizeof(one)) < 0)
        emu_log(EMU_LOG_ERROR, "channel refused: %d", errno);
}

void emu_channel_close(struct emu_channel *channel)
{
    for (uint32_t queue = 0; queue < EMU_CQS_MAX; queue++) {
        if (channel->port->channels[queue] == channel)
            channel->port->channels[queue] = NULL;
    }
    if (channel->port->owner != getpid())
        return;
    pthread_mutex_lock(&channel->lock);
    channel->is_closed = true;
    set_readable(channel);
    pthread_mutex_unlock(&channel->lock);
}

/* ---- queues ---- */

int emu_channel_attach(struct emu_channel *channel, uint32_t queue)
{
    struct emu_msg msg = { .type = EMU_MSG_CHANNEL_ATTACH, .channel = { .channel = channel->index, .cq = queue } };
    int r = emu_port_request(channel->port, &msg);

    if (r != 0)
        return r < 0 ? r : -EPROTO;
    channel->port->channels[queue] = channel;
    return 0;
}

void emu_channel_ring(struct emu_cq_alarm *alarm, uint32_t queue)
{
    struct emu_port *port = (struct emu_port *)((char *)alarm - offsetof(struct emu_port, alarm));
    struct emu_channel *channel = port->channels[queue];

    if (!channel)
        return;
    pthread_mutex_lock(&channel->lock);
    if ((channel->own[queue / 64] >> (queue % 64) & 1) == 0) {
        channel->own[queue / 64] |= 1ull << (queue % 64);
        set_readable(channel);
    }
    pthread_mutex_unlock(&channel->lock);
}

/* ---- taking ---- */

/* Lowest queue in `own`; it is taken out. False: there is none. The lock is held. */
static bool take_own(struct emu_channel *channel, uint32_t *queue_out)
{
    uint64_t count;
    bool has_more = false;
    bool is_found = false;

    for (uint32_t i = 0; i < EMU_CQS_MAX / 64; i++) {
        if (channel->own[i] == 0)
            continue;
        if (!is_found) {
            *queue_out = i * 64 + (uint32_t)__builtin_ctzll(channel->own[i]);
            channel->own[i] &= channel->own[i] - 1;
            is_found = true;
        }
        has_more = has_more || channel->own[i] != 0;
    }
    if (is_found && !has_more && syscall(SYS_read, channel->own_fd, &count, sizeof(count)) < 0)
        emu_log(EMU_LOG_ERROR, "channel refused: %d", errno);
    return is_found;
}

static int take_call(struct emu_channel *channel, uint32_t *queue_out)
{
    uint16_t number;
    long n = syscall(SYS_read, channel->calls_fd, &number, sizeof(number));

    if (n < 0)
        return errno == EINTR ? -EAGAIN : -errno;
    if (n == 0) {
        atomic_store(&channel->port->session.is_lost, true);
        return -ENETDOWN;
    }
    if (n != (long)sizeof(number) || number >= EMU_CQS_MAX)
        return -EPROTO;
    *queue_out = number;
    return 0;
}

int emu_channel_take(struct emu_channel *channel, uint32_t *queue_out)
{
    int r;

    pthread_mutex_lock(&channel->lock);
    if (channel->is_closed)
        r = -ECANCELED;
    else if (atomic_load(&channel->port->session.is_stale))
        r = -ENETDOWN;
    else if (take_own(channel, queue_out))
        r = 0;
    else
        r = take_call(channel, queue_out);
    pthread_mutex_unlock(&channel->lock);
    return r;
}

bool emu_channel_is_nonblocking(const struct emu_channel *channel)
{
    long flags = syscall(SYS_fcntl, channel->fd, F_GETFL);

    return flags < 0 || (flags & O_NONBLOCK) != 0;
}

/* Not instrumented: AddressSanitizer would keep the marks around its locals when a thread is cancelled in here. */
__attribute__((no_sanitize_address)) int emu_channel_wait(struct emu_channel *channel)
{
    struct pollfd p = { .fd = channel->fd, .events = POLLIN };
    struct emu_cancel cancel;
    struct emu_cancel open;
    long r;
    int error;

    emu_cancel_hold(&cancel);
    open = (struct emu_cancel){ .state = cancel.state, .type = PTHREAD_CANCEL_ASYNCHRONOUS };
    emu_cancel_release(&open);
    r = syscall(SYS_ppoll, &p, 1, NULL, NULL, 0);
    error = errno;
    emu_cancel_hold(&open);
    emu_cancel_release(&cancel);
    return r < 0 ? -error : 0;
}
