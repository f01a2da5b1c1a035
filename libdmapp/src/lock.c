/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Locks: a queue of waiters, each of whom looks at memory of its own.
 *
 * The lock's word names the last one in the queue, 0: nobody. A waiter, or holder, is a node in the lock area of its
 * PE:
 *
 *   word --------------------------------+        `next`: who comes behind, written by that one
 *   node (holder) -next-> node -next-> node       `is_granted`: written by who was before
 *
 *   acquire  swaps its name into the word. 0 came out: it holds the lock. Else it tells that one and waits.
 *   release  nobody behind: the word, if it is still our name, becomes 0. Else it grants the lock to the next.
 *   try      the word becomes our name if it is 0.
 *
 * Order is that of the swaps. The lock's host takes no part. Waiting costs neither the host nor the network anything,
 * and the grant comes as a put into the waiter's memory, which wakes it where processes outnumber cores; a lock that is
 * polled from afar (a ticket, a compare-and-swap) would give each hand-over to whoever the scheduler happens to run.
 *
 * What is read from the area was written by other PEs: checked before use. A PE that dies in the queue breaks it, as on
 * the original; who then has to tell it something gets DMAPP_RC_TRANSACTION_ERROR.
 *
 * Locks: `mutex` guards the table; a node that is in use belongs to the thread that acquires or holds.
 * Source: spec/dmapp.md 4.13; the queue is Mellor-Crummey and Scott, ACM TOCS 9(1), 1991.
 */
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "emunic/abi/amo.h"
#include "libdmapp/src/parts.h"

#define NODES_MAX     1023u /* DMAPP_MAX_LOCKS; in all PEs, so that the area is the same everywhere */
#define NODES_DEFAULT 128u

/* A line of its own: its owner waits on it. */
struct node {
    _Alignas(64) _Atomic uint64_t next; /* name of who comes behind, 0: nobody yet */
    _Atomic uint64_t is_granted;
};

enum state { FREE, WAITING, HELD, ENDING };

struct dmapp_lock {
    enum state state; /* under the mutex */
    dmapp_lock_desc_t *addr;
    dmapp_seg_desc_t seg;
    dmapp_pe_t host;
};

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static struct dmapp_lock locks[NODES_MAX];
static struct node *nodes; /* in our area */
static unsigned n_locks_max;

static uint64_t name_of(dmapp_pe_t pe, unsigned index)
{
    return (uint64_t)(pe + 1) << 16 | index;
}

/* The node of a name that came from memory others write. NULL: no such. */
static const struct node *node_of(uint64_t name, dmapp_pe_t *pe_out)
{
    uint64_t index = name & 0xffff;
    uint64_t pe = (name >> 16) - 1;

    if (index >= NODES_MAX || pe >= (uint64_t)dmappi_job.npes)
        return NULL;
    *pe_out = (dmapp_pe_t)pe;
    return &nodes[index];
}

/* ---- the table ---- */

static struct dmapp_lock *take(dmapp_lock_desc_t *addr, const dmapp_seg_desc_t *seg, dmapp_pe_t host)
{
    struct dmapp_lock *lock = NULL;

    pthread_mutex_lock(&mutex);
    for (unsigned i = 0; i < n_locks_max && !lock; i++) {
        if (locks[i].state == FREE)
            lock = &locks[i];
    }
    if (lock)
        *lock = (struct dmapp_lock){ .state = WAITING, .addr = addr, .seg = *seg, .host = host };
    pthread_mutex_unlock(&mutex);
    return lock;
}

static void set_state(struct dmapp_lock *lock, enum state state)
{
    pthread_mutex_lock(&mutex);
    lock->state = state;
    pthread_mutex_unlock(&mutex);
}

static struct node *own_node(const struct dmapp_lock *lock)
{
    return &nodes[lock - locks];
}

static uint64_t own_name(const struct dmapp_lock *lock)
{
    return name_of(dmappi_job.pe, (unsigned)(lock - locks));
}

/* The lock if it is held, now ending; else NULL. */
static struct dmapp_lock *begin_release(struct dmapp_lock *lock)
{
    bool is_held = false;

    for (unsigned i = 0; i < n_locks_max && !is_held; i++)
        is_held = lock == &locks[i];
    if (!is_held)
        return NULL;
    pthread_mutex_lock(&mutex);
    is_held = lock->state == HELD;
    if (is_held)
        lock->state = ENDING;
    pthread_mutex_unlock(&mutex);
    return is_held ? lock : NULL;
}

static struct dmapp_lock *find(const dmapp_lock_desc_t *addr, dmapp_pe_t host)
{
    struct dmapp_lock *lock = NULL;

    pthread_mutex_lock(&mutex);
    for (unsigned i = 0; i < n_locks_max && !lock; i++) {
        if (locks[i].state == HELD && locks[i].addr == addr && locks[i].host == host)
            lock = &locks[i];
    }
    pthread_mutex_unlock(&mutex);
    return lock;
}

/* ---- the queue ---- */

static void prepare(struct node *node)
{
    atomic_store_explicit(&node->next, 0, memory_order_relaxed);
    atomic_store_explicit(&node->is_granted, 0, memory_order_release);
}

static dmapp_return_t enqueue(struct dmapp_lock *lock)
{
    struct node *node = own_node(lock);
    uint64_t name = own_name(lock);
    const struct node *before_node;
    dmapp_return_t rc;
    dmapp_pe_t pe;
    uint64_t before;

    rc = dmappi_amo(lock->addr, &lock->seg, lock->host, &(struct dmappi_atomic){ .op = EMU_AMO_SWAP, .operand1 = name },
                    &before);
    if (rc != DMAPP_RC_SUCCESS || before == 0)
        return rc;
    before_node = node_of(before, &pe);
    if (!before_node)
        return DMAPP_RC_INVALID_PARAM; /* the program has written over the word */
    rc = dmappi_area_put(pe, &before_node->next, &name, sizeof(name));
    while (rc == DMAPP_RC_SUCCESS && !atomic_load_explicit(&node->is_granted, memory_order_acquire)) {
        if (dmappi_is_lost())
            rc = DMAPP_RC_RESOURCE_ERROR;
        else
            dmappi_wait_step();
    }
    return rc;
}

static dmapp_return_t hand_over(struct dmapp_lock *lock)
{
    const uint64_t yes = 1;
    struct node *node = own_node(lock);
    uint64_t name = own_name(lock);
    const struct node *next_node;
    dmapp_return_t rc;
    dmapp_pe_t pe;
    uint64_t next, last;

    next = atomic_load_explicit(&node->next, memory_order_acquire);
    if (next == 0) {
        rc = dmappi_amo(lock->addr, &lock->seg, lock->host,
                        &(struct dmappi_atomic){ .op = EMU_AMO_CSWAP, .operand1 = name }, &last);
        if (rc != DMAPP_RC_SUCCESS || last == name)
            return rc;
        /* Somebody has swapped and is about to tell us. */
        while ((next = atomic_load_explicit(&node->next, memory_order_acquire)) == 0) {
            if (dmappi_is_lost())
                return DMAPP_RC_RESOURCE_ERROR;
            dmappi_wait_step();
        }
    }
    next_node = node_of(next, &pe);
    if (!next_node)
        return DMAPP_RC_TRANSACTION_ERROR;
    return dmappi_area_put(pe, &next_node->is_granted, &yes, sizeof(yes));
}

/* ---- calls ---- */

/* A lock of ours for this word, its node ready to be queued. */
static dmapp_return_t begin(dmapp_lock_desc_t *addr, dmapp_seg_desc_t *seg, dmapp_pe_t host,
                            const dmapp_lock_handle_t *handle, struct dmapp_lock **lock_out)
{
    if (!dmappi_is_up() || !addr || !seg || !handle)
        return DMAPP_RC_INVALID_PARAM;
    *lock_out = take(addr, seg, host);
    if (!*lock_out)
        return DMAPP_RC_NO_SPACE;
    prepare(own_node(*lock_out));
    return DMAPP_RC_SUCCESS;
}

static dmapp_return_t end(struct dmapp_lock *lock, dmapp_return_t rc, dmapp_lock_handle_t *handle)
{
    set_state(lock, rc == DMAPP_RC_SUCCESS ? HELD : FREE);
    if (rc == DMAPP_RC_SUCCESS)
        *handle = lock;
    return rc;
}

dmapp_return_t dmapp_lock_acquire(dmapp_lock_desc_t *lock_addr, dmapp_seg_desc_t *lock_seg, dmapp_pe_t lock_host,
                                  uint64_t flags, dmapp_lock_handle_t *handle)
{
    struct dmapp_lock *lock;
    dmapp_return_t rc = begin(lock_addr, lock_seg, lock_host, handle, &lock);

    (void)flags;
    return rc == DMAPP_RC_SUCCESS ? end(lock, enqueue(lock), handle) : rc;
}

dmapp_return_t dmapp_lock_try(dmapp_lock_desc_t *lock_addr, dmapp_seg_desc_t *lock_seg, dmapp_pe_t lock_host,
                              uint64_t flags, dmapp_lock_handle_t *handle)
{
    struct dmapp_lock *lock;
    dmapp_return_t rc = begin(lock_addr, lock_seg, lock_host, handle, &lock);
    uint64_t last;

    (void)flags;
    if (rc != DMAPP_RC_SUCCESS)
        return rc;
    rc = dmappi_amo(lock_addr, lock_seg, lock_host,
                    &(struct dmappi_atomic){ .op = EMU_AMO_CSWAP, .operand2 = own_name(lock) }, &last);
    if (rc == DMAPP_RC_SUCCESS && last != 0)
        rc = DMAPP_RC_BUSY;
    return end(lock, rc, handle);
}

static dmapp_return_t release(struct dmapp_lock *lock)
{
    dmapp_return_t rc = hand_over(lock);

    set_state(lock, FREE);
    return rc;
}

dmapp_return_t dmapp_lock_release(dmapp_lock_handle_t handle, uint64_t flags)
{
    struct dmapp_lock *lock;

    (void)flags;
    if (!dmappi_is_up() || !handle)
        return DMAPP_RC_INVALID_PARAM;
    lock = begin_release(handle);
    return lock ? release(lock) : DMAPP_RC_INVALID_PARAM;
}

dmapp_return_t dmapp_lock_release_addr(dmapp_lock_desc_t *lock_addr, dmapp_pe_t lock_host, uint64_t flags)
{
    struct dmapp_lock *lock;

    (void)flags;
    if (!dmappi_is_up() || !lock_addr || lock_host < 0 || lock_host >= dmappi_job.npes)
        return DMAPP_RC_INVALID_PARAM;
    lock = begin_release(find(lock_addr, lock_host));
    return lock ? release(lock) : DMAPP_RC_NOT_FOUND;
}

/* ---- part ---- */

static uint64_t area_bytes(void)
{
    return NODES_MAX * sizeof(struct node);
}

/* A value that is no number, or out of bounds: as near as possible. */
static unsigned read_limit(void)
{
    const char *text = getenv("DMAPP_MAX_LOCKS");
    long n = text ? strtol(text, NULL, 10) : 0;

    if (n <= 0)
        return NODES_DEFAULT;
    return n > (long)NODES_MAX ? NODES_MAX : (unsigned)n;
}

static int start(void *area)
{
    nodes = area;
    n_locks_max = read_limit();
    return 0;
}

static void stop(void)
{
    memset(locks, 0, sizeof(locks));
    n_locks_max = 0;
    nodes = NULL;
}

const struct dmappi_part dmappi_lock_part = {
    .name = "locks",
    .area_bytes = area_bytes,
    .start = start,
    .stop = stop,
};
