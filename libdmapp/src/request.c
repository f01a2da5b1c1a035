/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Requests.
 *
 *   idle ── taken ── posted ── completed ── idle
 *             │ post refused ─────────────────┘
 *
 * A request is a post descriptor with what its completion has to do: copy data from its bounce memory to the
 * program's, count down its syncid, its blocking call or the account of its thread. Requests lie in one registered
 * mapping, as many as max_outstanding_nb, with 128 bytes of bounce memory each, where results of atomics and small
 * gets arrive; behind them lie slots of 32 KiB for larger gets to memory that is not registered. A get whose remote
 * end is not made of 4-byte words fetches the words around it; it stays inside the segment's pages.
 *
 * Which engine: from offload_threshold on a block transfer if the local memory is registered, else FMA, which needs no
 * registration for puts. Where there is no room (requests, slots, the NIC's ring), the caller collects completions
 * until there is: they come from emunic and need nobody's help, so this ends.
 *
 * When emunic has gone, the source queue reports each outstanding post as failed, then an entry of no post: then we
 * know.
 */
#include "libdmapp/src/request.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "emunic/abi/abi.h"
#include "emunic/abi/amo.h"

#define POST_BYTES_MAX (1ull << 30)
#define SLOT_BYTES     (32u << 10)
#define SLOTS          32u
#define NO_SLOT        UINT32_MAX
#define NONE           UINT32_MAX
#define FLAG_BYTES_MAX (64u << 10) /* of a put with flag in one post */
#define COLLECT_MAX    64u

#define AMO_NOT_FETCHING 0x100u /* in a command that fetches otherwise */

struct dmappi_request {
    gni_post_descriptor_t d;      /* first: what GNI_GetCompleted() gives back */
    struct dmappi_sync *sync;     /* counted; NULL: implicit */
    struct dmappi_thread *thread; /* counted if implicit */
    void *copy_to;                /* the program's; NULL: nothing to copy */
    const uint8_t *copy_from;
    uint32_t copy_bytes;
    uint32_t slot;
    uint32_t next;
    _Alignas(64) uint8_t small[DMAPPI_SMALL_BYTES + 8];
};

static struct {
    struct dmappi_request *requests; /* owned mapping, registered; slots behind it */
    uint8_t *slots;
    uint64_t bytes;
    gni_mem_handle_t handle;
    uint32_t n_requests;
    uint32_t free_request;     /* job lock, as the next */
    uint32_t free_slots;       /* a bit for each */
    struct dmappi_sync *syncs; /* owned */
    uint32_t n_syncs;
    uint32_t free_sync; /* job lock */
} pool;
_Static_assert(SLOTS == 32, "bits of free_slots");

/* ---- pool ---- */

int dmappi_requests_start(void)
{
    uint64_t request_bytes;

    pool.n_requests = dmappi_job.attrs.max_outstanding_nb;
    pool.n_syncs = pool.n_requests;
    request_bytes = emu_page_up(pool.n_requests * sizeof(struct dmappi_request));
    pool.bytes = request_bytes + (uint64_t)SLOTS * SLOT_BYTES;
    pool.requests = mmap(NULL, pool.bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pool.requests == MAP_FAILED) {
        pool.requests = NULL;
        return -ENOMEM;
    }
    pool.syncs = calloc(pool.n_syncs, sizeof(*pool.syncs));
    if (!pool.syncs)
        return -ENOMEM;
    if (GNI_MemRegister(dmappi_job.nic, (uint64_t)(uintptr_t)pool.requests, pool.bytes, NULL, GNI_MEM_READWRITE,
                        (uint32_t)-1, &pool.handle) != GNI_RC_SUCCESS)
        return -EIO;
    pool.slots = (uint8_t *)pool.requests + request_bytes;
    for (uint32_t i = 0; i < pool.n_requests; i++)
        pool.requests[i].next = i + 1 < pool.n_requests ? i + 1 : NONE;
    for (uint32_t i = 0; i < pool.n_syncs; i++)
        pool.syncs[i].next = i + 1 < pool.n_syncs ? i + 1 : NONE;
    pool.free_request = 0;
    pool.free_sync = 0;
    pool.free_slots = UINT32_MAX;
    return 0;
}

void dmappi_requests_stop(void)
{
    if (pool.requests)
        munmap(pool.requests, pool.bytes);
    free(pool.syncs);
    memset(&pool, 0, sizeof(pool));
}

static struct dmappi_request *try_take(bool wants_slot)
{
    struct dmappi_request *r = NULL;

    pthread_mutex_lock(&dmappi_job.lock);
    if (pool.free_request != NONE && (!wants_slot || pool.free_slots != 0)) {
        r = &pool.requests[pool.free_request];
        pool.free_request = r->next;
        r->slot = NO_SLOT;
        if (wants_slot) {
            r->slot = (uint32_t)__builtin_ctz(pool.free_slots);
            pool.free_slots &= pool.free_slots - 1;
        }
    }
    pthread_mutex_unlock(&dmappi_job.lock);
    return r;
}

/* Waits until there is one. NULL: emunic has gone. */
static struct dmappi_request *take(bool wants_slot)
{
    struct dmappi_request *r;

    while (!(r = try_take(wants_slot))) {
        if (dmappi_is_lost())
            return NULL;
        dmappi_wait_step();
    }
    r->copy_to = NULL;
    memset(&r->d, 0, sizeof(r->d));
    return r;
}

/* Job lock held. */
static void give(struct dmappi_request *r)
{
    if (r->slot != NO_SLOT)
        pool.free_slots |= 1u << r->slot;
    r->next = pool.free_request;
    pool.free_request = (uint32_t)(r - pool.requests);
}

/* ---- completion ---- */

/* Job lock held. */
static void count_down(struct dmappi_request *r, bool has_failed)
{
    if (r->sync) {
        if (has_failed)
            atomic_store_explicit(&r->sync->has_failed, true, memory_order_relaxed);
        /* Pairs with the acquire of who waits: the data before the count. */
        atomic_fetch_sub_explicit(&r->sync->pending, 1, memory_order_release);
    } else {
        if (has_failed) {
            atomic_store_explicit(&r->thread->has_failed, true, memory_order_relaxed);
            atomic_store_explicit(&dmappi_job.has_failed, true, memory_order_relaxed);
        }
        atomic_fetch_sub_explicit(&r->thread->n_implicit, 1, memory_order_release);
        atomic_fetch_sub_explicit(&dmappi_job.n_implicit, 1, memory_order_release);
    }
    atomic_fetch_sub_explicit(&dmappi_job.n_posts, 1, memory_order_release);
    give(r);
}

static void finish(struct dmappi_request *r, bool has_failed)
{
    if (!has_failed && r->copy_to)
        memcpy(r->copy_to, r->copy_from, r->copy_bytes);
    pthread_mutex_lock(&dmappi_job.lock);
    count_down(r, has_failed);
    pthread_mutex_unlock(&dmappi_job.lock);
}

/* One entry. False: the queue is empty, or emunic has gone. */
static bool collect_one(void)
{
    gni_post_descriptor_t *d = NULL;
    gni_cq_entry_t entry;
    gni_return_t rc = GNI_CqGetEvent(dmappi_job.cq, &entry);
    gni_return_t completed;

    if (rc != GNI_RC_SUCCESS && rc != GNI_RC_TRANSACTION_ERROR)
        return false;
    completed = GNI_GetCompleted(dmappi_job.cq, entry, &d);
    if ((completed != GNI_RC_SUCCESS && completed != GNI_RC_TRANSACTION_ERROR) || !d) {
        if (rc == GNI_RC_TRANSACTION_ERROR)
            atomic_store(&dmappi_job.is_lost, true);
        return false;
    }
    finish((struct dmappi_request *)d, rc != GNI_RC_SUCCESS || completed != GNI_RC_SUCCESS);
    return true;
}

unsigned dmappi_collect(void)
{
    unsigned n = 0;

    while (n < COLLECT_MAX && collect_one())
        n++;
    return n;
}

/* ---- calls ---- */

static dmapp_syncid_handle_t syncid_of(const struct dmappi_sync *sync)
{
    uint64_t index = (uint64_t)(sync - pool.syncs);

    return (dmapp_syncid_handle_t)(uintptr_t)((uint64_t)sync->generation << 20 | index << 4 | 5);
}

/* Job lock held. */
static struct dmappi_sync *sync_of(dmapp_syncid_handle_t syncid)
{
    uint64_t bits = (uint64_t)(uintptr_t)syncid;
    uint64_t index = bits >> 4 & 0xffff;

    if ((bits & 15) != 5 || index >= pool.n_syncs || !pool.syncs[index].is_live ||
        pool.syncs[index].generation != bits >> 20)
        return NULL;
    return &pool.syncs[index];
}

static struct dmappi_sync *take_sync(void)
{
    struct dmappi_sync *sync = NULL;

    pthread_mutex_lock(&dmappi_job.lock);
    if (pool.free_sync != NONE) {
        sync = &pool.syncs[pool.free_sync];
        pool.free_sync = sync->next;
        sync->is_live = true;
        sync->generation++;
        atomic_store_explicit(&sync->pending, 1, memory_order_relaxed);
        atomic_store_explicit(&sync->has_failed, false, memory_order_relaxed);
    }
    pthread_mutex_unlock(&dmappi_job.lock);
    return sync;
}

/* Job lock held. */
static void give_sync(struct dmappi_sync *sync)
{
    sync->is_live = false;
    sync->next = pool.free_sync;
    pool.free_sync = (uint32_t)(sync - pool.syncs);
}

int dmappi_sync_settle(dmapp_syncid_handle_t syncid)
{
    struct dmappi_sync *sync;
    int outcome = -1;

    pthread_mutex_lock(&dmappi_job.lock);
    sync = sync_of(syncid);
    if (sync) {
        outcome = 0;
        if (atomic_load_explicit(&sync->pending, memory_order_acquire) == 0) {
            outcome = atomic_load_explicit(&sync->has_failed, memory_order_relaxed) ? 2 : 1;
            give_sync(sync);
        }
    }
    pthread_mutex_unlock(&dmappi_job.lock);
    return outcome;
}

dmapp_return_t dmappi_call_begin(struct dmappi_call *call, enum dmappi_flavour flavour)
{
    call->flavour = flavour;
    call->sync = NULL;
    call->thread = dmappi_thread();
    if (!call->thread)
        return DMAPP_RC_RESOURCE_ERROR;
    if (flavour == DMAPPI_BLOCKING) {
        atomic_init(&call->own.pending, 1);
        atomic_init(&call->own.has_failed, false);
        call->sync = &call->own;
    } else if (flavour == DMAPPI_NB) {
        call->sync = take_sync();
        if (!call->sync)
            return DMAPP_RC_NO_SPACE;
    }
    return DMAPP_RC_SUCCESS;
}

/* Until only the call's own count is left. */
static void wait_for_posts(struct dmappi_sync *sync)
{
    while (atomic_load_explicit(&sync->pending, memory_order_acquire) > 1)
        dmappi_wait_step();
}

dmapp_return_t dmappi_call_end(struct dmappi_call *call, dmapp_return_t rc, dmapp_syncid_handle_t *syncid)
{
    struct dmappi_sync *sync = call->sync;
    bool is_done;

    if (!sync)
        return rc;
    if (call->flavour == DMAPPI_BLOCKING || rc != DMAPP_RC_SUCCESS)
        wait_for_posts(sync);
    if (call->flavour == DMAPPI_BLOCKING)
        return rc == DMAPP_RC_SUCCESS && atomic_load_explicit(&sync->has_failed, memory_order_relaxed) ?
                   DMAPP_RC_TRANSACTION_ERROR :
                   rc;
    pthread_mutex_lock(&dmappi_job.lock);
    is_done = atomic_fetch_sub_explicit(&sync->pending, 1, memory_order_acq_rel) == 1 &&
              !atomic_load_explicit(&sync->has_failed, memory_order_relaxed);
    if (rc == DMAPP_RC_SUCCESS)
        *syncid = is_done ? DMAPPI_SYNCID_DONE : syncid_of(sync);
    if (is_done || rc != DMAPP_RC_SUCCESS)
        give_sync(sync);
    pthread_mutex_unlock(&dmappi_job.lock);
    return rc;
}

/* ---- posting ---- */

/* A Gemini has one deterministic way and one adaptive one. */
static uint16_t delivery_mode(uint8_t routing)
{
    static const uint16_t mode_on_gemini[] = {
        [DMAPP_ROUTING_IN_ORDER] = GNI_DLVMODE_IN_ORDER,      [DMAPP_ROUTING_DETERMINISTIC] = GNI_DLVMODE_NO_ADAPT,
        [DMAPP_ROUTING_ADAPTIVE] = GNI_DLVMODE_PERFORMANCE,   [DMAPP_ROUTING_DETERMINISTIC_1] = GNI_DLVMODE_NO_ADAPT,
        [DMAPP_ROUTING_ADAPTIVE_1] = GNI_DLVMODE_PERFORMANCE, [DMAPP_ROUTING_ADAPTIVE_2] = GNI_DLVMODE_PERFORMANCE,
        [DMAPP_ROUTING_ADAPTIVE_3] = GNI_DLVMODE_PERFORMANCE,
    };
    static const uint16_t mode_of[] = {
        [DMAPP_ROUTING_IN_ORDER] = GNI_DLVMODE_IN_ORDER,    [DMAPP_ROUTING_DETERMINISTIC] = GNI_DLVMODE_NMIN_HASH,
        [DMAPP_ROUTING_ADAPTIVE] = GNI_DLVMODE_ADAPTIVE0,   [DMAPP_ROUTING_DETERMINISTIC_1] = GNI_DLVMODE_MIN_HASH,
        [DMAPP_ROUTING_ADAPTIVE_1] = GNI_DLVMODE_ADAPTIVE1, [DMAPP_ROUTING_ADAPTIVE_2] = GNI_DLVMODE_ADAPTIVE2,
        [DMAPP_ROUTING_ADAPTIVE_3] = GNI_DLVMODE_ADAPTIVE3,
    };

    return dmappi_is_gemini() ? mode_on_gemini[routing] : mode_of[routing];
}

static gni_ep_handle_t make_ep(struct dmappi_peer *peer)
{
    gni_ep_handle_t ep;

    pthread_mutex_lock(&dmappi_job.lock);
    ep = atomic_load(&peer->ep);
    if (!ep && GNI_EpCreate(dmappi_job.nic, dmappi_job.cq, &ep) == GNI_RC_SUCCESS) {
        if (GNI_EpBind(ep, peer->nic_addr, peer->instance_id) == GNI_RC_SUCCESS) {
            atomic_store(&peer->ep, ep);
        } else {
            GNI_EpDestroy(ep);
            ep = NULL;
        }
    }
    pthread_mutex_unlock(&dmappi_job.lock);
    return ep;
}

static gni_ep_handle_t ep_of(struct dmappi_peer *peer)
{
    gni_ep_handle_t ep = atomic_load_explicit(&peer->ep, memory_order_acquire);

    return ep ? ep : make_ep(peer);
}

static bool is_block(const gni_post_descriptor_t *d)
{
    return d->type == GNI_POST_RDMA_PUT || d->type == GNI_POST_RDMA_GET;
}

static void count_up(struct dmappi_request *r, int n)
{
    atomic_fetch_add(&dmappi_job.n_posts, (uint64_t)(int64_t)n);
    if (r->sync) {
        atomic_fetch_add(&r->sync->pending, (uint32_t)n);
        return;
    }
    atomic_fetch_add(&r->thread->n_implicit, (uint64_t)(int64_t)n);
    atomic_fetch_add(&dmappi_job.n_implicit, (uint64_t)(int64_t)n);
}

/* Posts a filled request; waits while the NIC has no room. */
static dmapp_return_t submit(struct dmappi_call *call, struct dmappi_request *r, const struct dmappi_place *place,
                             uint8_t routing)
{
    gni_ep_handle_t ep = ep_of(place->peer);
    gni_return_t rc = GNI_RC_ERROR_RESOURCE;

    r->sync = call->sync;
    r->thread = call->thread;
    r->d.cq_mode = GNI_CQMODE_GLOBAL_EVENT;
    r->d.dlvr_mode = delivery_mode(routing);
    r->d.remote_mem_hndl = *place->handle;
    count_up(r, 1);
    while (ep && (rc = is_block(&r->d) ? GNI_PostRdma(ep, &r->d) : GNI_PostFma(ep, &r->d)) == GNI_RC_ERROR_RESOURCE &&
           !dmappi_is_lost())
        dmappi_wait_step();
    if (rc == GNI_RC_SUCCESS)
        return DMAPP_RC_SUCCESS;
    count_up(r, -1);
    pthread_mutex_lock(&dmappi_job.lock);
    give(r);
    pthread_mutex_unlock(&dmappi_job.lock);
    return dmappi_rc(rc);
}

/* Registered local memory of a transfer that is large enough for the block transfer engine. */
static bool is_for_offload(const struct dmappi_call *call, const void *local, uint64_t len_bytes,
                           gni_mem_handle_t *handle_out)
{
    return len_bytes >= call->thread->offload_threshold &&
           dmappi_local_handle((uint64_t)(uintptr_t)local, len_bytes, handle_out);
}

static dmapp_return_t put_piece(struct dmappi_call *call, const struct dmappi_place *to, uint64_t offset,
                                const void *from, uint64_t len_bytes)
{
    struct dmappi_request *r = take(false);

    if (!r)
        return DMAPP_RC_RESOURCE_ERROR;
    r->d.type = is_for_offload(call, from, len_bytes, &r->d.local_mem_hndl) ? GNI_POST_RDMA_PUT : GNI_POST_FMA_PUT;
    r->d.local_addr = (uint64_t)(uintptr_t)from;
    r->d.remote_addr = to->addr + offset;
    r->d.length = len_bytes;
    return submit(call, r, to, call->thread->put_relaxed_ordering);
}

dmapp_return_t dmappi_post_put(struct dmappi_call *call, const struct dmappi_place *to, const void *from,
                               uint64_t len_bytes)
{
    dmapp_return_t rc = DMAPP_RC_SUCCESS;

    for (uint64_t done = 0; rc == DMAPP_RC_SUCCESS && done < len_bytes; done += POST_BYTES_MAX) {
        uint64_t n = len_bytes - done < POST_BYTES_MAX ? len_bytes - done : POST_BYTES_MAX;

        rc = put_piece(call, to, done, (const uint8_t *)from + done, n);
    }
    return rc;
}

dmapp_return_t dmappi_post_put_copy(struct dmappi_call *call, const struct dmappi_place *to, const void *from,
                                    uint64_t len_bytes)
{
    struct dmappi_request *r = take(false);

    if (!r)
        return DMAPP_RC_RESOURCE_ERROR;
    memcpy(r->small, from, len_bytes);
    r->d.type = GNI_POST_FMA_PUT;
    r->d.local_addr = (uint64_t)(uintptr_t)r->small;
    r->d.remote_addr = to->addr;
    r->d.length = len_bytes;
    return submit(call, r, to, call->thread->put_relaxed_ordering);
}

/*
 * In one post the NIC writes the flag behind the data. Without data the flag is a put; long data have to be complete
 * first.
 */
dmapp_return_t dmappi_post_put_flag(struct dmappi_call *call, const struct dmappi_place *to, const void *from,
                                    uint64_t len_bytes, uint64_t flag, uint64_t value)
{
    struct dmappi_place word = *to;
    struct dmappi_request *r;
    struct dmappi_call data;
    dmapp_return_t rc;

    if (len_bytes > FLAG_BYTES_MAX) {
        rc = dmappi_call_begin(&data, DMAPPI_BLOCKING);
        if (rc == DMAPP_RC_SUCCESS)
            rc = dmappi_call_end(&data, dmappi_post_put(&data, to, from, len_bytes), NULL);
        if (rc != DMAPP_RC_SUCCESS)
            return rc;
        len_bytes = 0;
    }
    if (len_bytes == 0) {
        word.addr = flag;
        return dmappi_post_put_copy(call, &word, &value, sizeof(value));
    }
    r = take(false);
    if (!r)
        return DMAPP_RC_RESOURCE_ERROR;
    r->d.type = GNI_POST_FMA_PUT_W_SYNCFLAG;
    r->d.local_addr = (uint64_t)(uintptr_t)from;
    r->d.remote_addr = to->addr;
    r->d.length = len_bytes;
    r->d.sync_flag_addr = flag;
    r->d.sync_flag_value = value;
    return submit(call, r, to, call->thread->put_relaxed_ordering);
}

/* Without a copy: both ends suit the NIC. */
static dmapp_return_t get_plainly(struct dmappi_call *call, void *to, const struct dmappi_place *from,
                                  uint64_t len_bytes, const gni_mem_handle_t *handle)
{
    dmapp_return_t rc = DMAPP_RC_SUCCESS;

    for (uint64_t done = 0; rc == DMAPP_RC_SUCCESS && done < len_bytes; done += POST_BYTES_MAX) {
        struct dmappi_request *r = take(false);

        if (!r)
            return DMAPP_RC_RESOURCE_ERROR;
        r->d.type = len_bytes >= call->thread->offload_threshold ? GNI_POST_RDMA_GET : GNI_POST_FMA_GET;
        r->d.local_addr = (uint64_t)(uintptr_t)to + done;
        r->d.local_mem_hndl = *handle;
        r->d.remote_addr = from->addr + done;
        r->d.length = len_bytes - done < POST_BYTES_MAX ? len_bytes - done : POST_BYTES_MAX;
        rc = submit(call, r, from, call->thread->get_relaxed_ordering);
    }
    return rc;
}

/* By way of a request's own memory. The words around [addr, addr + len) fit into it. */
static dmapp_return_t get_by_bounce(struct dmappi_call *call, void *to, const struct dmappi_place *from,
                                    uint64_t offset, uint64_t len_bytes)
{
    uint64_t addr = from->addr + offset;
    uint64_t first = addr & ~3ull;
    uint64_t window_bytes = ((addr + len_bytes + 3) & ~3ull) - first;
    struct dmappi_request *r = take(window_bytes > sizeof(r->small));
    uint8_t *bounce;

    if (!r)
        return DMAPP_RC_RESOURCE_ERROR;
    bounce = r->slot == NO_SLOT ? r->small : pool.slots + (uint64_t)r->slot * SLOT_BYTES;
    r->d.type = GNI_POST_FMA_GET;
    r->d.local_addr = (uint64_t)(uintptr_t)bounce;
    r->d.local_mem_hndl = pool.handle;
    r->d.remote_addr = first;
    r->d.length = window_bytes;
    r->copy_to = (uint8_t *)to + offset;
    r->copy_from = bounce + (addr - first);
    r->copy_bytes = (uint32_t)len_bytes;
    return submit(call, r, from, call->thread->get_relaxed_ordering);
}

dmapp_return_t dmappi_post_get(struct dmappi_call *call, void *to, const struct dmappi_place *from, uint64_t len_bytes)
{
    const uint64_t piece_max = SLOT_BYTES - 8;
    dmapp_return_t rc = DMAPP_RC_SUCCESS;
    gni_mem_handle_t handle;

    if (from->addr % 4 == 0 && len_bytes % 4 == 0 && len_bytes > DMAPPI_SMALL_BYTES &&
        (!dmappi_is_gemini() || (uintptr_t)to % 4 == 0) &&
        dmappi_local_handle((uint64_t)(uintptr_t)to, len_bytes, &handle))
        return get_plainly(call, to, from, len_bytes, &handle);
    for (uint64_t done = 0; rc == DMAPP_RC_SUCCESS && done < len_bytes; done += piece_max)
        rc = get_by_bounce(call, to, from, done, len_bytes - done < piece_max ? len_bytes - done : piece_max);
    return rc;
}

/* Fetching, 64 bits. What has no command here never comes: dmappi_has_amo(). */
static gni_fma_cmd_type_t command_on_gemini(unsigned op)
{
    switch (op) {
    case EMU_AMO_ADD:
        return GNI_FMA_ATOMIC_FADD;
    case EMU_AMO_AND:
        return GNI_FMA_ATOMIC_FAND;
    case EMU_AMO_OR:
        return GNI_FMA_ATOMIC_FOR;
    case EMU_AMO_XOR:
        return GNI_FMA_ATOMIC_FXOR;
    case EMU_AMO_CSWAP:
        return GNI_FMA_ATOMIC_CSWAP;
    default: /* also a swap: (m & 0) ^ value */
        return GNI_FMA_ATOMIC_FAX;
    }
}

/* A command that fetches needs a place for the old value, wanted or not. */
static void fetch_to(struct dmappi_request *r, void *old, uint32_t width_bytes)
{
    r->d.local_addr = (uint64_t)(uintptr_t)r->small;
    r->d.local_mem_hndl = pool.handle;
    r->copy_to = old;
    r->copy_from = r->small;
    r->copy_bytes = old ? width_bytes : 0;
}

bool dmappi_has_amo(const struct dmappi_atomic *atomic)
{
    return !dmappi_is_gemini() || (!atomic->is_32bit && atomic->op != EMU_AMO_IMIN && atomic->op != EMU_AMO_IMAX &&
                                   atomic->op < EMU_AMO_FPMIN);
}

/* With the bit for "not fetching", if nobody wants the old value and there is such a command. */
static gni_fma_cmd_type_t command_of(const struct dmappi_atomic *atomic, bool fetches)
{
    /* Fetching, 64 bits. */
    static const uint16_t command_on_aries[EMU_AMO_OP_END] = {
        [EMU_AMO_ADD] = GNI_FMA_ATOMIC2_FIADD,    [EMU_AMO_AND] = GNI_FMA_ATOMIC2_FAND,
        [EMU_AMO_OR] = GNI_FMA_ATOMIC2_FOR,       [EMU_AMO_XOR] = GNI_FMA_ATOMIC2_FXOR,
        [EMU_AMO_SWAP] = GNI_FMA_ATOMIC2_FSWAP,   [EMU_AMO_AX] = GNI_FMA_ATOMIC2_FAX,
        [EMU_AMO_CSWAP] = GNI_FMA_ATOMIC2_FCSWAP, [EMU_AMO_IMIN] = GNI_FMA_ATOMIC2_FIMIN,
        [EMU_AMO_IMAX] = GNI_FMA_ATOMIC2_FIMAX,   [EMU_AMO_FPMIN] = GNI_FMA_ATOMIC2_FFPMIN,
        [EMU_AMO_FPMAX] = GNI_FMA_ATOMIC2_FFPMAX, [EMU_AMO_FPADD] = GNI_FMA_ATOMIC2_FFPADD,
    };
    uint32_t command = command_on_aries[atomic->op];

    if (dmappi_is_gemini())
        return command_on_gemini(atomic->op) | (fetches || atomic->op == EMU_AMO_CSWAP ? 0 : AMO_NOT_FETCHING);
    /* 32 bits: bit 0 off, bit 9 on. */
    if (atomic->is_32bit)
        command = (command & ~1u) | 0x200u;
    return (gni_fma_cmd_type_t)(command | (fetches ? 0 : AMO_NOT_FETCHING));
}

dmapp_return_t dmappi_post_amo(struct dmappi_call *call, const struct dmappi_place *at,
                               const struct dmappi_atomic *atomic, void *old)
{
    uint32_t width_bytes = atomic->is_32bit ? 4 : 8;
    struct dmappi_request *r = take(false);

    if (!r)
        return DMAPP_RC_RESOURCE_ERROR;
    r->d.type = GNI_POST_AMO;
    r->d.amo_cmd = command_of(atomic, old);
    r->d.first_operand = atomic->operand1;
    r->d.second_operand = atomic->operand2;
    if (dmappi_is_gemini() && atomic->op == EMU_AMO_SWAP) { /* done as AND and XOR */
        r->d.first_operand = 0;
        r->d.second_operand = atomic->operand1;
    }
    r->d.remote_addr = at->addr;
    r->d.length = width_bytes;
    if ((r->d.amo_cmd & AMO_NOT_FETCHING) == 0)
        fetch_to(r, old, width_bytes);
    return submit(call, r, at, call->thread->put_relaxed_ordering);
}
