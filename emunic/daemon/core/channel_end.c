/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Completion channels, emunic's side.
 *
 * A channel is a pipe to a port's owner, who sleeps in poll() on its other end. A number in it, of a queue that is
 * attached to the channel, says that the queue was armed and got news. Its end says that there will be none: emunic has
 * died, or the port or its domain has ended.
 *
 * Who disarms a queue (engine/completion_queue.c) must tell. When that is emunic, it writes at once. On the direct path
 * it is a peer, which may not have the pipe: it could read from it what is meant for the owner. So it marks the queue
 * in the owner's segment and the owner in its own one (abi/segment.h), and rings its doorbell:
 *
 *   producer   armed := 0    fired |= queue    calls |= port    write(doorbell)
 *   emunic                                                        `-> calls := 0    fired := 0    write(pipe)
 *
 * The doorbell is rung whether emunic sleeps or not; that is one system call for each time that a queue was armed, and
 * emunic reads no line for channels in between. A producer that is killed on the way leaves its mark "inside" behind:
 * emunic then looks at the queues themselves (quiesce.c).
 *
 * Nothing here is trusted. Whatever members write into `fired` and `calls` makes emunic write numbers of attached
 * queues into their pipes, each at most once a turn; the owner takes a number for a hint. A pipe is written to through
 * a description that its reader does not share, so the reader cannot make the write block. A full pipe loses the
 * number, but holds those of thousands that wait, more than there are queues.
 */
#include "emunic/daemon/core/channel_end.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdlib.h>
#include <unistd.h>

#include "emunic/abi/abi.h"
#include "emunic/abi/control.h"
#include "emunic/abi/segment.h"
#include "emunic/base/log.h"
#include "emunic/daemon/world/domain.h"
#include "emunic/daemon/world/port_end.h"
#include "emunic/engine/completion_queue.h"

static int make_list(struct emu_port_end *port)
{
    if (port->queues.channels)
        return 0;
    port->queues.channels = malloc(EMU_CHANNELS_MAX * sizeof(*port->queues.channels));
    if (!port->queues.channels)
        return -ENOMEM;
    for (uint32_t i = 0; i < EMU_CHANNELS_MAX; i++)
        port->queues.channels[i] = -1;
    return 0;
}

static bool is_live(const struct emu_port_end *port, uint32_t channel)
{
    return port->queues.channels && channel < EMU_CHANNELS_MAX && port->queues.channels[channel] >= 0;
}

int emu_channel_end_create(struct emu_port_end *port, struct emu_msg_channel *channel)
{
    int ends[2];
    int r = make_list(port);

    if (r < 0)
        return r;
    if (port->domain->is_ending)
        return -ENETDOWN;
    for (uint32_t i = 0; i < EMU_CHANNELS_MAX; i++) {
        if (port->queues.channels[i] >= 0)
            continue;
        if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) < 0)
            return -errno;
        port->queues.channels[i] = ends[1];
        channel->channel = i;
        return ends[0];
    }
    return -ENOSPC;
}

static void detach_queues(struct emu_port_end *port, uint32_t channel)
{
    for (uint32_t i = 0; i < EMU_CQS_MAX; i++) {
        if (port->queues.cqs[i].channel == channel)
            port->queues.cqs[i].channel = EMU_CHANNEL_NONE;
    }
}

int emu_channel_end_destroy(struct emu_port_end *port, uint32_t channel)
{
    if (!is_live(port, channel))
        return -EINVAL;
    detach_queues(port, channel);
    close(port->queues.channels[channel]);
    port->queues.channels[channel] = -1;
    return 0;
}

int emu_channel_end_attach(struct emu_port_end *port, const struct emu_msg_channel *channel)
{
    if (channel->cq >= EMU_CQS_MAX || !port->queues.cqs[channel->cq].in_use || !is_live(port, channel->channel))
        return -EINVAL;
    port->queues.cqs[channel->cq].channel = channel->channel;
    return 0;
}

void emu_channel_end_drop_all(struct emu_port_end *port)
{
    for (uint32_t i = 0; port->queues.channels && i < EMU_CHANNELS_MAX; i++) {
        if (port->queues.channels[i] >= 0)
            close(port->queues.channels[i]);
    }
    free(port->queues.channels);
    port->queues.channels = NULL;
}

/* ---- calls ---- */

static void write_number(struct emu_port_end *port, uint32_t queue)
{
    const struct emu_cq_end *end = &port->queues.cqs[queue];
    uint16_t number = (uint16_t)queue;

    if (!end->in_use || !is_live(port, end->channel))
        return;
    /* EPIPE: the owner has closed it. EAGAIN: it has not read for ages. */
    if (write(port->queues.channels[end->channel], &number, sizeof(number)) < 0)
        emu_log_limited(&port->server->rate, EMU_LOG_DEBUG, "nid %u inst 0x%x: channel %u does not take queue %u: %d",
                        port->nid, port->instance_id, end->channel, queue, errno);
}

void emu_channel_end_ring(struct emu_cq_alarm *alarm, uint32_t queue)
{
    write_number((struct emu_port_end *)((char *)alarm - offsetof(struct emu_port_end, queues.alarm)), queue);
}

/* Takes the lowest bit that is set. */
static uint32_t take_bit(uint64_t *bits)
{
    uint32_t bit = (uint32_t)__builtin_ctzll(*bits);

    *bits &= *bits - 1;
    return bit;
}

static void serve_fired(struct emu_port_end *port)
{
    for (uint32_t i = 0; i < EMU_CQS_MAX / 64; i++) {
        _Atomic uint64_t *fired = &port->segment->fired[i];
        uint64_t bits = 0;

        if (atomic_load_explicit(fired, memory_order_relaxed) != 0)
            bits = atomic_exchange_explicit(fired, 0, memory_order_relaxed);
        while (bits)
            write_number(port, i * 64 + take_bit(&bits));
    }
}

void emu_channel_end_serve_calls(struct emu_port_end *port)
{
    /* Pairs with the release in ring_peer() (client/direct.c). */
    if (atomic_load_explicit(&port->segment->has_calls, memory_order_relaxed) == 0 ||
        atomic_exchange_explicit(&port->segment->has_calls, 0, memory_order_acquire) == 0)
        return;
    for (uint32_t i = 0; i < EMU_PORTS_MAX / 64; i++) {
        _Atomic uint64_t *calls = &port->segment->calls[i];
        uint64_t bits = 0;

        if (atomic_load_explicit(calls, memory_order_relaxed) != 0)
            bits = atomic_exchange_explicit(calls, 0, memory_order_acquire);
        while (bits) {
            struct emu_port_end *called = port->domain->ports[i * 64 + take_bit(&bits)];

            if (called)
                serve_fired(called);
        }
    }
}

void emu_channel_end_tell_again(struct emu_port_end *port, uint32_t queue)
{
    struct emu_cq_shm *shm = port->queues.cqs[queue].producer.shm;

    if (port->queues.cqs[queue].channel == EMU_CHANNEL_NONE)
        return;
    /* Armed, and nothing has come. Not armed: it may be the dead one who has seen to that. */
    if (atomic_load(&shm->armed) != 0 && atomic_load(&shm->tail) == atomic_load(&shm->head) &&
        atomic_load(&shm->overrun) == 0)
        return;
    atomic_store(&shm->armed, 0);
    write_number(port, queue);
}
