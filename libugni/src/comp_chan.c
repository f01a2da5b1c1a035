/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Completion channels: queues for programs that sleep in poll(), select() or epoll_wait().
 *
 *                 GNI_CqArmCompChan            news                      GNI_CompChanGetEvent
 *   a queue:  idle ---------------> armed ---------------> fired, in line --------------------> idle
 *                \______________________________________________^
 *                      armed while it has something in it
 *
 * The channel's descriptor is readable while queues are in line (emunic/client/channel.c). Who has news for an armed
 * queue takes its mark in shared memory away (emunic/engine/completion_queue.h), one of all, and so each arming puts it
 * in line once. The number of the queue then comes through the channel. Members of the domain can write such marks and
 * make up such numbers; a number counts only for a queue that is armed here, and whose mark has gone or which has
 * something in it. The worst they can do is to make the descriptor readable for nothing, or to have a queue reported
 * that is empty.
 *
 * No wake-up is lost: arming looks at the queue after the mark is up, a producer looks at the mark after its event is
 * published, both behind fences. A number that is thrown away belongs to a queue that is not armed, or whose mark is
 * still up, so that the next news will ring again.
 *
 * The NIC's loss ends the channel's pipe: each armed queue is then reported once, because GNI_CqGetEvent() has
 * something to say about it, and then GNI_RC_INVALID_STATE; the descriptor stays readable.
 *
 * Channels live as queues do (ugni.h). gnii_chan.lock guards who is attached and armed; it is taken inside the NIC's
 * lock. Codes of the original are unconfirmed. Source: spec/ugni.md A.2.
 */
#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "emunic/client/channel.h"
#include "libugni/src/rc.h"
#include "libugni/src/ugni.h"

struct gnii_chan {
    _Atomic uint32_t refs; /* first: object.h */
    void *handle;
    LIST_ENTRY(gnii_chan) link;  /* in the NIC's list */
    struct gnii_nic *nic;        /* counted */
    struct emu_channel *channel; /* owned */
    pthread_mutex_t lock;
    struct gnii_cq *cqs[EMU_CQS_MAX]; /* borrowed: what is attached, by the queue's index in the port */
};

static struct gnii_chan *find_chan(gni_comp_chan_handle_t handle)
{
    return gnii_object_find(GNII_KIND_CHAN, handle);
}

/* ---- life ---- */

gni_return_t GNI_CompChanCreate(gni_nic_handle_t nic_hndl, gni_comp_chan_handle_t *chan_hndl)
{
    struct gnii_nic *nic = gnii_nic_find(nic_hndl);
    struct gnii_chan *chan;
    int r;

    if (!nic || !chan_hndl)
        return GNI_RC_INVALID_PARAM;
    chan = calloc(1, sizeof(*chan));
    if (!chan)
        return GNI_RC_ERROR_NOMEM;
    chan->refs = 1;
    chan->nic = nic;
    pthread_mutex_init(&chan->lock, NULL);
    r = emu_channel_create(&nic->port, &chan->channel);
    if (r < 0)
        goto err_chan;
    r = gnii_object_add(GNII_KIND_CHAN, chan, &chan->handle);
    if (r < 0)
        goto err_channel;
    atomic_fetch_add(&nic->refs, 1);
    emu_biased_lock(&nic->lock);
    LIST_INSERT_HEAD(&nic->chans, chan, link);
    emu_biased_unlock(&nic->lock);
    *chan_hndl = chan->handle;
    return GNI_RC_SUCCESS;

err_channel:
    emu_channel_destroy(chan->channel);
err_chan:
    pthread_mutex_destroy(&chan->lock);
    free(chan);
    return gnii_rc(GNII_CALL_CREATE, r);
}

/* The last one closes the descriptor. */
static void put_chan(struct gnii_chan *chan)
{
    struct gnii_nic *nic = chan->nic;

    if (atomic_fetch_sub(&chan->refs, 1) > 1)
        return;
    emu_channel_destroy(chan->channel);
    pthread_mutex_destroy(&chan->lock);
    free(chan);
    gnii_nic_put(nic);
}

/* The channel's lock is held. A forked child leaves its parent's mark alone. */
static void drop_queue(struct gnii_chan *chan, struct gnii_cq *cq)
{
    chan->cqs[cq->index] = NULL;
    cq->chan = NULL;
    cq->is_armed = false;
    if (chan->nic->port.owner == getpid())
        emu_cq_disarm(&cq->consumer);
}

void gnii_chan_forget(struct gnii_cq *cq)
{
    struct gnii_chan *chan = cq->chan;

    if (!chan)
        return;
    pthread_mutex_lock(&chan->lock);
    drop_queue(chan, cq);
    cq->nic->port.channels[cq->index] = NULL;
    pthread_mutex_unlock(&chan->lock);
}

static void free_chan(struct gnii_chan *chan)
{
    gnii_object_remove(chan->handle);
    LIST_REMOVE(chan, link);
    pthread_mutex_lock(&chan->lock);
    for (uint32_t i = 0; i < EMU_CQS_MAX; i++) {
        if (chan->cqs[i])
            drop_queue(chan, chan->cqs[i]);
    }
    emu_channel_close(chan->channel);
    pthread_mutex_unlock(&chan->lock);
    put_chan(chan);
}

void gnii_chan_free_all(struct gnii_nic *nic)
{
    while (!LIST_EMPTY(&nic->chans))
        free_chan(LIST_FIRST(&nic->chans));
}

gni_return_t GNI_CompChanDestroy(gni_comp_chan_handle_t chan_hndl)
{
    struct gnii_chan *chan = find_chan(chan_hndl);
    struct gnii_nic *nic;

    if (!chan)
        return GNI_RC_INVALID_PARAM;
    nic = chan->nic;
    emu_biased_lock(&nic->lock);
    free_chan(chan);
    emu_biased_unlock(&nic->lock);
    return GNI_RC_SUCCESS;
}

gni_return_t GNI_CompChanFd(gni_comp_chan_handle_t chan_hndl, int *comp_chan_fd)
{
    const struct gnii_chan *chan = find_chan(chan_hndl);

    if (!chan || !comp_chan_fd)
        return GNI_RC_INVALID_PARAM;
    *comp_chan_fd = chan->channel->fd;
    return GNI_RC_SUCCESS;
}

/* ---- queues ---- */

static gni_return_t attach(struct gnii_cq *cq, struct gnii_chan *chan)
{
    int r;

    if (!GNI_CQ_IS_BLOCKING(cq->mode))
        return GNI_RC_ERROR_RESOURCE;
    if (cq->chan)
        return GNI_RC_INVALID_STATE;
    r = emu_channel_attach(chan->channel, cq->index);
    if (r < 0)
        return gnii_rc(GNII_CALL_CREATE, r);
    pthread_mutex_lock(&chan->lock);
    chan->cqs[cq->index] = cq;
    cq->chan = chan;
    pthread_mutex_unlock(&chan->lock);
    return GNI_RC_SUCCESS;
}

gni_return_t GNI_CqAttachCompChan(gni_cq_handle_t cq_hndl, gni_comp_chan_handle_t chan_hndl)
{
    struct gnii_cq *cq = gnii_cq_find(cq_hndl);
    struct gnii_chan *chan = find_chan(chan_hndl);
    gni_return_t rc;

    if (!cq || !chan || cq->nic != chan->nic)
        return GNI_RC_INVALID_PARAM;
    emu_biased_lock(&cq->nic->lock);
    rc = attach(cq, chan);
    emu_biased_unlock(&cq->nic->lock);
    return rc;
}

static gni_return_t check_armable(gni_cq_handle_t handle)
{
    struct gnii_cq *cq = gnii_cq_find(handle);
    bool is_attached;

    if (!cq)
        return GNI_RC_INVALID_PARAM;
    if (!GNI_CQ_IS_BLOCKING(cq->mode))
        return GNI_RC_ERROR_RESOURCE;
    emu_biased_lock(&cq->nic->lock);
    is_attached = cq->chan;
    emu_biased_unlock(&cq->nic->lock);
    return is_attached ? GNI_RC_SUCCESS : GNI_RC_INVALID_STATE;
}

/* NIC lock held. */
static void arm(struct gnii_cq *cq)
{
    struct gnii_chan *chan = cq->chan;

    if (!chan)
        return;
    /* Completions that nobody shall see are no news. */
    gnii_cq_reclaim(cq);
    pthread_mutex_lock(&chan->lock);
    if (!cq->is_armed) {
        cq->is_armed = true;
        emu_cq_arm(&cq->consumer, cq->index);
        if (gnii_cq_has_news(cq) && emu_cq_disarm(&cq->consumer))
            emu_channel_ring(&cq->nic->port.alarm, cq->index);
    }
    pthread_mutex_unlock(&chan->lock);
}

gni_return_t GNI_CqArmCompChan(gni_cq_handle_t *cq_hndls, uint32_t num_cqs)
{
    if (!cq_hndls || num_cqs == 0)
        return GNI_RC_INVALID_PARAM;
    for (uint32_t i = 0; i < num_cqs; i++) {
        gni_return_t rc = check_armable(cq_hndls[i]);

        if (rc != GNI_RC_SUCCESS)
            return rc;
    }
    for (uint32_t i = 0; i < num_cqs; i++) {
        struct gnii_cq *cq = gnii_cq_find(cq_hndls[i]);

        if (!cq)
            return GNI_RC_INVALID_PARAM;
        emu_biased_lock(&cq->nic->lock);
        arm(cq);
        emu_biased_unlock(&cq->nic->lock);
    }
    return GNI_RC_SUCCESS;
}

/* ---- events ---- */

/* One GNI_CompChanGetEvent(). */
struct taking {
    struct gnii_wait wait;
    struct gnii_chan *chan; /* counted */
    gni_cq_handle_t *cq_out;
};

/* The channel's lock is held. */
static void report(struct gnii_cq *cq, gni_cq_handle_t *cq_out)
{
    cq->is_armed = false;
    emu_cq_disarm(&cq->consumer);
    *cq_out = cq->handle;
}

static bool has_fired(struct gnii_cq *cq)
{
    return cq->is_armed && (!emu_cq_is_armed(&cq->consumer) || gnii_cq_has_news(cq));
}

/* The NIC has gone: its queues say so. */
static gni_return_t report_lost(struct gnii_chan *chan, gni_cq_handle_t *cq_out)
{
    for (uint32_t i = 0; i < EMU_CQS_MAX; i++) {
        if (chan->cqs[i] && chan->cqs[i]->is_armed) {
            report(chan->cqs[i], cq_out);
            return GNI_RC_SUCCESS;
        }
    }
    return GNI_RC_INVALID_STATE;
}

/* NOT_DONE: nothing was in line. *was_readable_out: but the descriptor was readable. The channel's lock is held. */
static gni_return_t take_next(struct gnii_chan *chan, gni_cq_handle_t *cq_out, bool *was_readable_out)
{
    uint32_t queue;
    int r;

    while ((r = emu_channel_take(chan->channel, &queue)) != -EAGAIN) {
        if (r == -ECANCELED)
            return atomic_load(&chan->nic->is_closing) ? GNI_RC_INVALID_STATE : GNI_RC_INVALID_PARAM;
        if (r == -ENETDOWN)
            return report_lost(chan, cq_out);
        if (r < 0)
            return gnii_rc(GNII_CALL_PLAIN, r);
        *was_readable_out = true;
        if (chan->cqs[queue] && has_fired(chan->cqs[queue])) {
            report(chan->cqs[queue], cq_out);
            return GNI_RC_SUCCESS;
        }
    }
    return GNI_RC_NOT_DONE;
}

static void leave(void *arg)
{
    struct taking *t = arg;

    if (t->chan)
        put_chan(t->chan);
}

/*
 * Not instrumented, as gnii_wait_sleep(); nor are those below it: a cancelled thread does not come back to clear their
 * marks.
 */
__attribute__((no_sanitize_address)) static int sleep_on(struct taking *t)
{
    struct emu_cancel open = t->wait.cancel;
    int r;

    pthread_cleanup_push(t->wait.leave, t->wait.arg);
    emu_cancel_release(&open);
    r = emu_channel_wait(t->chan->channel);
    emu_cancel_hold(&open);
    pthread_cleanup_pop(0);
    return r;
}

__attribute__((no_sanitize_address)) static gni_return_t wait_and_take(struct taking *t)
{
    for (;;) {
        bool was_readable = false;
        gni_return_t rc;
        int r;

        pthread_mutex_lock(&t->chan->lock);
        rc = take_next(t->chan, t->cq_out, &was_readable);
        pthread_mutex_unlock(&t->chan->lock);
        /* Whoever was told that the descriptor is readable must not be made to wait. */
        if (rc != GNI_RC_NOT_DONE || was_readable || emu_channel_is_nonblocking(t->chan->channel))
            return rc;
        r = sleep_on(t);
        if (r < 0)
            return gnii_rc(GNII_CALL_PLAIN, r);
    }
}

__attribute__((no_sanitize_address)) gni_return_t GNI_CompChanGetEvent(gni_comp_chan_handle_t chan_hndl,
                                                                       gni_cq_handle_t *cq_hndl)
{
    struct taking t = { .cq_out = cq_hndl };
    gni_return_t rc = GNI_RC_INVALID_PARAM;

    if (!cq_hndl)
        return rc;
    gnii_wait_begin(&t.wait, leave, &t);
    t.chan = gnii_object_get(GNII_KIND_CHAN, chan_hndl);
    if (t.chan)
        rc = wait_and_take(&t);
    gnii_wait_end(&t.wait);
    return rc;
}
