/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Completion channels: a file descriptor that is readable while armed queues have news that nobody has taken.
 *
 * Thread rule: close, attach, detach and emu_channel_ring() under the port's lock; the others any thread. Only
 * emu_channel_wait() is a cancellation point.
 */
#ifndef EMUNIC_CLIENT_CHANNEL_H
#define EMUNIC_CLIENT_CHANNEL_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "emunic/abi/abi.h"
#include "emunic/client/port.h"

struct emu_channel {
    struct emu_port *port;          /* borrowed: outlives us */
    uint32_t index;                 /* emunic's number */
    int fd;                         /* for the program: an epoll of the next two */
    int calls_fd;                   /* a pipe from emunic: numbers of queues; its end is the port's */
    int own_fd;                     /* an eventfd: not 0 while `own` is not empty, or for good when closed */
    pthread_mutex_t lock;           /* of the rest; the innermost lock there is */
    uint64_t own[EMU_CQS_MAX / 64]; /* queues that this process itself has disarmed */
    bool is_closed;
};

/* 0, -ENETDOWN, -ENOSPC, -EMFILE, -ENOMEM ... */
int emu_channel_create(struct emu_port *port, struct emu_channel **channel_out);
/*
 * The first half of its end: no queue is attached any more; the descriptor is readable, and emu_channel_take() says
 * -ECANCELED, so that waiting threads leave.
 */
void emu_channel_close(struct emu_channel *channel);
/* The second half. No thread may be in a call on it. In a forked child it only closes the child's copies. */
void emu_channel_destroy(struct emu_channel *channel);

int emu_channel_attach(struct emu_channel *channel, uint32_t queue);

/* This process has disarmed one of its own queues, and has to tell. */
void emu_channel_ring(struct emu_cq_alarm *alarm, uint32_t queue);

/*
 * Takes the number of a queue that has been disarmed; a hint, as members of the domain can make one up. 0; -EAGAIN
 * there is none; -ENETDOWN nor will there be: emunic has gone, the descriptor stays readable; -ECANCELED. Never blocks.
 */
int emu_channel_take(struct emu_channel *channel, uint32_t *queue_out);

/* Has the program made the descriptor non-blocking? */
bool emu_channel_is_nonblocking(const struct emu_channel *channel);

/* Sleeps until the descriptor is readable. 0, -EINTR. A cancellation point, as emu_port_wait() is one. */
int emu_channel_wait(struct emu_channel *channel);

#endif
