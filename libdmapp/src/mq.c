/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Message queues: a ring of slots in each PE, written by everybody, emptied by its owner.
 *
 *   sender   looks at the target's `tail` and `head` until there is room; takes the number `tail` (compare-and-swap),
 *            which makes the slot its own; puts the data and, behind them, the stamp
 *   owner    looks at the stamp of the next number; copies the data out, moves `head` on, runs the callback
 *
 * So the order is that of the numbers: FIFO per sender, and who waits for room holds nothing that others need. Between
 * number and stamp a sender runs no callback. A stamp tells lap, sender and length; the slot's old stamp has another
 * lap, so nothing needs to be wiped. A message that cannot be written (the network fails it) is replaced by a void
 * stamp, so that those behind it arrive.
 *
 * Callbacks run in one thread at a time, never beneath each other: in the helper thread (mq_progress.c), or in whoever
 * makes progress. The slot is free before the callback runs. A callback that waits for room elsewhere meanwhile takes
 * messages out of its own ring into private memory (the backlog), to be delivered when it has returned; else two PEs
 * whose callbacks flood each other, or one that floods itself, would wait for ever.
 *
 * The geometry is the job's (init.c: the largest that any PE asked for); above BYTES_MAX the depth is less.
 *
 * What is read from the ring was written by other PEs: checked before use. Source: spec/dmapp.md 4.14.
 */
#include "libdmapp/src/mq.h"

#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>

#include "emunic/abi/amo.h"

#define BYTES_MAX (64ull << 20)
#define RETRIES   16u /* of a void stamp */

#define LEN_BITS 20
#define PE_BITS  24
#define LEN_VOID ((1u << LEN_BITS) - 1)

struct mq_ring *dmappi_mq_ring;

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER; /* attach and detach */
static struct dmapp_queue queue;
static uint64_t depth;
static uint64_t slot_bytes;
static _Atomic bool is_open; /* attached: may deliver */
static _Atomic bool is_delivering;
static _Thread_local bool is_in_callback;
static _Thread_local bool holds_number; /* and has not stamped it: what is behind it waits for this thread */

/* A message that was taken out of the ring and not delivered yet. */
struct kept {
    STAILQ_ENTRY(kept) link;
    dmapp_pe_t pe;
    uint32_t len;
    _Alignas(16) uint8_t data[];
};
static STAILQ_HEAD(, kept) backlog = STAILQ_HEAD_INITIALIZER(backlog); /* of the delivering thread */

static uint64_t mq_stamp(uint64_t number, dmapp_pe_t pe, uint32_t len)
{
    return (number / depth + 1) << (LEN_BITS + PE_BITS) | (uint64_t)(uint32_t)pe << LEN_BITS | len;
}

static struct mq_slot *slot_of(uint64_t number)
{
    return (struct mq_slot *)((uint8_t *)(dmappi_mq_ring + 1) + number % depth * slot_bytes);
}

static uint64_t payload_max(void)
{
    return slot_bytes - sizeof(struct mq_slot);
}

/* ---- receiving ---- */

/* The next message's stamp, 0 if it has not come. */
static uint64_t next_stamp(uint64_t number)
{
    uint64_t stamp = atomic_load_explicit(&slot_of(number)->stamp, memory_order_acquire);

    return stamp >> (LEN_BITS + PE_BITS) == mq_stamp(number, 0, 0) >> (LEN_BITS + PE_BITS) ? stamp : 0;
}

bool dmappi_mq_has_news(void)
{
    return next_stamp(atomic_load_explicit(&dmappi_mq_ring->head, memory_order_relaxed)) != 0;
}

/* Takes one message out; the delivering thread. False: there is none. */
static bool take(uint8_t *data_out, uint32_t *len_out, dmapp_pe_t *pe_out)
{
    uint64_t head = atomic_load_explicit(&dmappi_mq_ring->head, memory_order_relaxed);
    uint64_t stamp = next_stamp(head);
    uint64_t len = stamp & LEN_VOID;

    if (stamp == 0)
        return false;
    *pe_out = (dmapp_pe_t)(stamp >> LEN_BITS & ((1u << PE_BITS) - 1));
    if (*pe_out >= dmappi_job.npes || len > payload_max())
        len = LEN_VOID;
    if (len != LEN_VOID)
        memcpy(data_out, slot_of(head)->data, len);
    *len_out = (uint32_t)len;
    atomic_store_explicit(&dmappi_mq_ring->head, head + 1, memory_order_release);
    return true;
}

/* Makes room for a callback that waits. */
static void keep(void)
{
    struct kept *kept;

    while (dmappi_mq_has_news()) {
        kept = malloc(sizeof(*kept) + payload_max());
        if (!kept)
            return;
        if (!take(kept->data, &kept->len, &kept->pe)) {
            free(kept);
            return;
        }
        STAILQ_INSERT_TAIL(&backlog, kept, link);
    }
}

static void run_callback(void *data, uint32_t len, dmapp_pe_t pe)
{
    if (len == LEN_VOID)
        return;
    is_in_callback = true;
    queue.callback(queue.context, data, len, pe);
    is_in_callback = false;
}

static bool deliver_kept(void)
{
    struct kept *kept = STAILQ_FIRST(&backlog);

    if (!kept)
        return false;
    STAILQ_REMOVE_HEAD(&backlog, link);
    run_callback(kept->data, kept->len, kept->pe);
    free(kept);
    return true;
}

static unsigned deliver(void)
{
    void *data = malloc(payload_max()); /* the callback may use it as it likes */
    unsigned n = 0;
    dmapp_pe_t pe;
    uint32_t len;

    while (data && atomic_load_explicit(&is_open, memory_order_acquire)) {
        if (!deliver_kept()) {
            if (!take(data, &len, &pe))
                break;
            run_callback(data, len, pe);
        }
        n++;
    }
    free(data);
    return n;
}

unsigned dmappi_mq_deliver(void)
{
    bool idle = false;
    unsigned n;

    if (!atomic_load_explicit(&is_open, memory_order_acquire) || is_in_callback || !dmappi_mq_has_news() ||
        !atomic_compare_exchange_strong(&is_delivering, &idle, true))
        return 0;
    n = deliver();
    atomic_store(&is_delivering, false);
    return n;
}

static void progress(void)
{
    if (holds_number)
        return;
    if (is_in_callback)
        keep();
    else if (!queue.has_helper)
        dmappi_mq_deliver();
}

/* ---- sending ---- */

/* Takes a number whose slot is free. */
static dmapp_return_t take_number(dmapp_pe_t pe, uint64_t *number_out)
{
    for (;;) {
        struct dmappi_atomic take;
        struct mq_ring ring;
        uint64_t number, before;
        dmapp_return_t rc = dmappi_area_get(pe, dmappi_mq_ring, &ring, offsetof(struct mq_ring, is_asleep));

        if (rc != DMAPP_RC_SUCCESS)
            return rc;
        number = ring.tail;
        if (number - ring.head < depth) {
            holds_number = true;
            take = (struct dmappi_atomic){ .op = EMU_AMO_CSWAP, .operand1 = number, .operand2 = number + 1 };
            rc = dmappi_area_amo(pe, &dmappi_mq_ring->tail, &take, &before);
            *number_out = number;
            if (rc == DMAPP_RC_SUCCESS && before == number)
                return rc;
            holds_number = false;
            if (rc != DMAPP_RC_SUCCESS)
                return rc;
            continue;
        }
        if (is_in_callback)
            keep();
        dmappi_wait_step();
        if (dmappi_is_lost())
            return DMAPP_RC_RESOURCE_ERROR;
    }
}

/* So that the messages behind this number are not held up. */
static void put_void(dmapp_pe_t pe, uint64_t number)
{
    uint64_t stamp = mq_stamp(number, dmappi_job.pe, LEN_VOID);

    for (unsigned i = 0; i < RETRIES; i++) {
        if (dmappi_area_put(pe, &slot_of(number)->stamp, &stamp, sizeof(stamp)) == DMAPP_RC_SUCCESS)
            return;
    }
}

static dmapp_return_t send(dmapp_pe_t pe, const void *data, uint32_t len)
{
    dmapp_return_t rc;
    uint64_t number;

    rc = take_number(pe, &number);
    if (rc != DMAPP_RC_SUCCESS)
        return rc;
    rc = dmappi_area_put_flag(pe, slot_of(number)->data, data, len, &slot_of(number)->stamp,
                              mq_stamp(number, dmappi_job.pe, len));
    if (rc != DMAPP_RC_SUCCESS)
        put_void(pe, number);
    holds_number = false;
    if (rc == DMAPP_RC_SUCCESS)
        dmappi_mq_wake(pe);
    return rc;
}

static uint64_t size_of(dmapp_type_t type)
{
    switch (type) {
    case DMAPP_DQW:
        return 16;
    case DMAPP_QW:
        return 8;
    case DMAPP_DW:
        return 4;
    case DMAPP_BYTE:
        return 1;
    default:
        return 0;
    }
}

static bool is_attached(dmapp_queue_handle_t handle)
{
    return dmappi_is_up() && handle == &queue && atomic_load_explicit(&is_open, memory_order_acquire);
}

dmapp_return_t dmapp_queue_put(dmapp_queue_handle_t queue_hndl, void *source, uint64_t nelems, dmapp_type_t type,
                               dmapp_pe_t target_pe, uint64_t flags)
{
    uint64_t size = size_of(type);

    (void)flags;
    if (!is_attached(queue_hndl) || size == 0 || target_pe < 0 || target_pe >= dmappi_job.npes ||
        nelems > payload_max() / size || (!source && nelems > 0))
        return DMAPP_RC_INVALID_PARAM;
    return send(target_pe, source, (uint32_t)(nelems * size));
}

/* ---- attaching ---- */

static dmapp_return_t attach(int (*callback)(void *, void *, uint32_t, dmapp_pe_t), void *context)
{
    int r = 0;

    if (queue.is_attached)
        return DMAPP_RC_BUSY;
    queue.callback = callback;
    queue.context = context;
    queue.has_helper = (dmappi_job.attrs.queue_flags & DMAPP_QUEUE_ASYNC_PROGRESS) != 0;
    atomic_store_explicit(&is_open, true, memory_order_release);
    if (queue.has_helper)
        r = dmappi_mq_helper_start(&queue.helper);
    if (r < 0) {
        atomic_store_explicit(&is_open, false, memory_order_release);
        return DMAPP_RC_RESOURCE_ERROR;
    }
    queue.is_attached = true;
    return DMAPP_RC_SUCCESS;
}

dmapp_return_t dmapp_queue_attach(int (*queue_cb)(void *context, void *data, uint32_t len, dmapp_pe_t rank),
                                  void *context, uint64_t flags, dmapp_queue_handle_t *queue_hndl)
{
    dmapp_return_t rc;

    (void)flags;
    if (!dmappi_is_up() || !queue_cb || !queue_hndl)
        return DMAPP_RC_INVALID_PARAM;
    pthread_mutex_lock(&mutex);
    rc = attach(queue_cb, context);
    pthread_mutex_unlock(&mutex);
    if (rc == DMAPP_RC_SUCCESS)
        *queue_hndl = &queue;
    return rc;
}

static void detach(void)
{
    uint8_t *data = malloc(payload_max());
    struct kept *kept;
    bool idle;
    dmapp_pe_t pe;
    uint32_t len;

    atomic_store_explicit(&is_open, false, memory_order_release);
    if (queue.has_helper)
        dmappi_mq_helper_stop(&queue.helper);
    /* A callback in another thread. */
    for (idle = false; !atomic_compare_exchange_weak(&is_delivering, &idle, true); idle = false)
        dmappi_wait_step();
    while (data && take(data, &len, &pe))
        ;
    while ((kept = STAILQ_FIRST(&backlog))) {
        STAILQ_REMOVE_HEAD(&backlog, link);
        free(kept);
    }
    atomic_store(&is_delivering, false);
    free(data);
    queue.is_attached = false;
    queue.has_helper = false;
}

dmapp_return_t dmapp_queue_detach(dmapp_queue_handle_t queue_hndl, uint64_t flags)
{
    dmapp_return_t rc = DMAPP_RC_INVALID_PARAM;

    (void)flags;
    if (is_in_callback)
        return rc;
    pthread_mutex_lock(&mutex);
    if (is_attached(queue_hndl)) {
        detach();
        rc = DMAPP_RC_SUCCESS;
    }
    pthread_mutex_unlock(&mutex);
    return rc;
}

/* ---- part ---- */

static uint64_t area_bytes(void)
{
    const dmapp_rma_attrs_ext_t *attrs = &dmappi_job.attrs;

    slot_bytes = sizeof(struct mq_slot) + (attrs->queue_nelems > 1 ? attrs->queue_nelems - 1 : 1) * 8ull;
    depth = attrs->queue_depth > 0 ? attrs->queue_depth : 1;
    if (depth * slot_bytes > BYTES_MAX)
        depth = BYTES_MAX / slot_bytes;
    return sizeof(struct mq_ring) + depth * slot_bytes;
}

static int start(void *area)
{
    dmappi_mq_ring = area;
    return 0;
}

/* No callback runs any more when the job ends. */
static void drain(void)
{
    pthread_mutex_lock(&mutex);
    if (queue.is_attached)
        detach();
    pthread_mutex_unlock(&mutex);
}

static void stop(void)
{
    dmappi_mq_wake_fini();
    dmappi_mq_ring = NULL;
}

const struct dmappi_part dmappi_mq_part = {
    .name = "message queue",
    .area_bytes = area_bytes,
    .start = start,
    .progress = progress,
    .drain = drain,
    .stop = stop,
};
