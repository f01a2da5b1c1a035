/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Puts and gets.
 *
 * What Open MPI asks for is a work: one or more posts. A put is one post. A get has to begin at a multiple of 4 of the
 * remote memory and to be as long; a Gemini wants the same of the local address. So it is cut:
 *
 *   remote   |..xx|xxxx|xxxx|xxxx|x...|      head and tail: the words around them, by a bounce buffer
 *   local      xx  xxxx xxxx xxxx x          body: one post into the user's memory
 *
 * Where the body's local address does not fit, or where the memory is not registered, all goes by bounce buffers. A
 * word around the end of a registered region is in the same page, so within the registration.
 *
 * Works wait in order until the NIC has descriptors and bounce buffers are free; nothing is refused. Their number is
 * that of Open MPI's requests. The posts are fixed.
 */
#include "mpi-shim/openmpi/gni/btl.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include <opal/runtime/opal_progress.h>

#include "libugni/src/poll_rounds.h"

OBJ_CLASS_INSTANCE(mg_work_t, opal_free_list_item_t, NULL, NULL);

/* ---- posts and works ---- */

int mg_make_posts(void)
{
    mg.posts = calloc(MG_POSTS, sizeof(*mg.posts));
    OBJ_CONSTRUCT(&mg.works, opal_free_list_t);
    if (!mg.posts || opal_free_list_init(&mg.works, sizeof(mg_work_t), 64, OBJ_CLASS(mg_work_t), 0, 0, 32, -1, 32, NULL,
                                         0, NULL, NULL, NULL) != OPAL_SUCCESS)
        return -1;
    for (uint32_t i = 0; i < MG_POSTS; i++) {
        mg.posts[i].next = mg.free_posts;
        mg.free_posts = &mg.posts[i];
    }
    return 0;
}

struct mg_work *mg_new_work(enum mg_kind kind, struct mca_btl_base_endpoint_t *peer)
{
    struct mg_work *work = (struct mg_work *)opal_free_list_get(&mg.works);

    if (!work)
        return NULL;
    work->next = NULL;
    work->kind = kind;
    work->peer = peer;
    work->n_posted = 0;
    work->is_registered = false;
    work->address = NULL;
    work->handle = NULL;
    return work;
}

static void finish(struct mg_work *work)
{
    work->next = NULL;
    *mg.done_end = work;
    mg.done_end = &work->next;
}

/* ---- cutting ---- */

struct piece {
    size_t bytes;        /* of the user's memory */
    uint32_t skip_bytes; /* before them in the bounce buffer */
    bool is_bounced;
};

/* May the rest of this get go into the user's memory itself? */
static bool fits(const struct mg_work *work, const uint8_t *local)
{
    return work->is_registered && (mg.nic.device != GNI_DEVICE_GEMINI || (uintptr_t)local % MG_WORD == 0);
}

static struct piece cut_get(const struct mg_work *work)
{
    uint32_t skip = (uint32_t)(work->remote % MG_WORD);
    size_t to_word = (MG_WORD - skip) % MG_WORD;
    size_t room = MG_SLOT_BYTES - 64;

    if (skip == 0 && work->left_bytes >= MG_WORD && fits(work, work->local))
        return (struct piece){ work->left_bytes - work->left_bytes % MG_WORD, 0, false };
    if (work->left_bytes > room && fits(work, work->local + to_word) && to_word > 0)
        return (struct piece){ to_word, skip, true };
    if (work->left_bytes <= room)
        room = work->left_bytes;
    else
        room -= skip; /* so that the next piece begins at a word */
    return (struct piece){ room, skip, true };
}

static struct piece cut(const struct mg_work *work)
{
    static const struct piece silent_atomic = { 0, 0, false };
    static const struct piece fetching_atomic = { 0, 0, true };

    if (work->kind == MG_GET)
        return cut_get(work);
    if (work->kind == MG_PUT)
        return (struct piece){ work->left_bytes, 0, false };
    return work->address ? fetching_atomic : silent_atomic;
}

/* ---- posting ---- */

static void describe(struct mg_post *post, const struct mg_work *work, const struct piece *piece)
{
    gni_post_descriptor_t *d = &post->descriptor;
    uint32_t n_words = (uint32_t)((piece->skip_bytes + piece->bytes + MG_WORD - 1) / MG_WORD);

    memset(d, 0, sizeof(*d));
    d->cq_mode = GNI_CQMODE_GLOBAL_EVENT;
    d->dlvr_mode = GNI_DLVMODE_PERFORMANCE;
    d->remote_mem_hndl = work->remote_memory;
    d->remote_addr = work->remote - piece->skip_bytes;
    d->local_addr = (uint64_t)(uintptr_t)(post->slot ? post->slot : work->local);
    d->local_mem_hndl = post->slot ? mg.nic.slots_memory : work->local_memory;
    d->length = post->slot ? (uint64_t)n_words * MG_WORD : piece->bytes;
    d->amo_cmd = work->command;
    d->first_operand = work->operands[0];
    d->second_operand = work->operands[1];
    d->src_cq_hndl = mg.nic.own_queue;
    if (work->kind == MG_ATOMIC)
        d->length = work->left_bytes;
}

static gni_return_t hand_over(struct mg_post *post)
{
    const struct mg_work *work = post->work;
    gni_post_descriptor_t *d = &post->descriptor;
    gni_ep_handle_t ep = mg_end_point(work->peer);
    bool is_block = d->length > (uint64_t)mg.fma_limit && work->is_registered && !post->slot;

    if (work->kind == MG_ATOMIC) {
        d->type = GNI_POST_AMO;
        return GNI_PostFma(ep, d);
    }
    if (work->kind == MG_PUT)
        d->type = is_block ? GNI_POST_RDMA_PUT : GNI_POST_FMA_PUT;
    else
        d->type = is_block ? GNI_POST_RDMA_GET : GNI_POST_FMA_GET;
    return is_block ? GNI_PostRdma(ep, d) : GNI_PostFma(ep, d);
}

/* The next post of this work. False: something is used up. */
static bool post_next(struct mg_work *work)
{
    struct piece piece = cut(work);
    struct mg_post *post = mg.free_posts;
    gni_return_t rc;

    if (!post || (piece.is_bounced && mg.nic.n_free_slots == 0))
        return false;
    post->work = work;
    post->slot = piece.is_bounced ? mg.nic.free_slots[mg.nic.n_free_slots - 1] : NULL;
    post->target = work->kind == MG_ATOMIC ? work->address : work->local;
    post->skip_bytes = piece.skip_bytes;
    post->slot_bytes = work->kind == MG_ATOMIC ? (uint32_t)work->left_bytes : (uint32_t)piece.bytes;
    describe(post, work, &piece);
    rc = hand_over(post);
    if (rc == GNI_RC_ERROR_RESOURCE || rc == GNI_RC_ERROR_NOMEM)
        return false;
    mg_must(rc, "GNI_Post");
    mg.free_posts = post->next;
    if (post->slot)
        mg.nic.n_free_slots--;
    mg.nic.n_own++;
    mg.nic.n_posts++;
    work->n_posted++;
    if (work->kind == MG_ATOMIC)
        piece.bytes = work->left_bytes;
    work->local += piece.bytes;
    work->remote += piece.bytes;
    work->left_bytes -= piece.bytes;
    return true;
}

/* True: posted to its end. */
static bool post_all(struct mg_work *work)
{
    while (work->left_bytes > 0)
        if (!post_next(work))
            return false;
    return true;
}

void mg_post_queued(void)
{
    while (mg.queued) {
        struct mg_work *work = mg.queued;
        struct mg_work *next = work->next;

        if (!post_all(work))
            return;
        mg.queued = next;
        if (!next)
            mg.queued_end = &mg.queued;
    }
}

void mg_submit(struct mg_work *work)
{
    atomic_fetch_add_explicit(&mg.n_works, 1, memory_order_relaxed);
    mg_lock();
    if (work->left_bytes == 0) {
        finish(work);
    } else if (mg.queued || !post_all(work)) {
        work->next = NULL;
        *mg.queued_end = work;
        mg.queued_end = &work->next;
    }
    mg_unlock();
}

/* ---- completing ---- */

void mg_completed(gni_post_descriptor_t *descriptor)
{
    struct mg_post *post = (struct mg_post *)descriptor;
    struct mg_work *work = post->work;

    if (post->slot) {
        memcpy(post->target, post->slot + post->skip_bytes, post->slot_bytes);
        mg.nic.free_slots[mg.nic.n_free_slots++] = post->slot;
    }
    post->next = mg.free_posts;
    mg.free_posts = post;
    if (--work->n_posted == 0 && work->left_bytes == 0)
        finish(work);
}

static struct mg_work *take_done(void)
{
    struct mg_work *work;

    mg_lock();
    work = mg.done;
    if (work) {
        mg.done = work->next;
        if (!mg.done)
            mg.done_end = &mg.done;
    }
    mg_unlock();
    return work;
}

int mg_call_back_works(void)
{
    struct mg_work *work;
    int n = 0;

    for (; mg.done && (work = take_done()); n++) {
        struct mg_work copy = *work;

        opal_free_list_return(&mg.works, &work->super);
        if (copy.callback)
            copy.callback(&mg.super, copy.peer, copy.address, copy.handle, copy.context, copy.data, OPAL_SUCCESS);
        atomic_fetch_sub_explicit(&mg.n_works, 1, memory_order_release);
    }
    return n;
}

/*
 * A program that flushes again and again works with its own memory, or that of its node, in between: it does not wait,
 * so its rounds must not rest as if it did.
 */
int mg_flush(struct mca_btl_base_module_t *btl, struct mca_btl_base_endpoint_t *peer)
{
    (void)btl;
    (void)peer;
    gnii_rounds_stir(mg.nic.nic);
    do {
        opal_progress();
    } while (atomic_load_explicit(&mg.n_works, memory_order_acquire) > 0);
    return OPAL_SUCCESS;
}

/* ---- calls ---- */

static void locate(struct mg_work *work, void *local, uint64_t remote, size_t size,
                   mca_btl_base_registration_handle_t *local_handle, mca_btl_base_registration_handle_t *remote_handle)
{
    work->address = local;
    work->handle = local_handle;
    work->local = local;
    work->remote = remote;
    work->left_bytes = size;
    work->remote_memory = remote_handle->memory;
    work->is_registered = local_handle ? true : false;
    if (local_handle)
        work->local_memory = local_handle->memory;
}

int mg_put(struct mca_btl_base_module_t *btl, struct mca_btl_base_endpoint_t *peer, void *local, uint64_t remote,
           mca_btl_base_registration_handle_t *local_handle, mca_btl_base_registration_handle_t *remote_handle,
           size_t size, int flags, int order, mca_btl_base_rdma_completion_fn_t callback, void *context, void *data)
{
    struct mg_work *work = mg_new_work(MG_PUT, peer);

    (void)btl;
    (void)flags;
    (void)order;
    if (!work)
        return OPAL_ERR_OUT_OF_RESOURCE;
    locate(work, local, remote, size, local_handle, remote_handle);
    work->callback = callback;
    work->context = context;
    work->data = data;
    mg_submit(work);
    return OPAL_SUCCESS;
}

int mg_get(struct mca_btl_base_module_t *btl, struct mca_btl_base_endpoint_t *peer, void *local, uint64_t remote,
           mca_btl_base_registration_handle_t *local_handle, mca_btl_base_registration_handle_t *remote_handle,
           size_t size, int flags, int order, mca_btl_base_rdma_completion_fn_t callback, void *context, void *data)
{
    struct mg_work *work = mg_new_work(MG_GET, peer);

    (void)btl;
    (void)flags;
    (void)order;
    if (!work)
        return OPAL_ERR_OUT_OF_RESOURCE;
    locate(work, local, remote, size, local_handle, remote_handle);
    work->callback = callback;
    work->context = context;
    work->data = data;
    mg_submit(work);
    return OPAL_SUCCESS;
}
