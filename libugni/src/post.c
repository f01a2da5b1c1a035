/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Posts: FMA, block transfers, queue writes, chains. The calls, and the two ways of a post.
 *
 *   by lane      an ordinary put, get or atomic on memory that has a lane (emunic/client/lane.h): data and events are
 *                in place when the call returns. The outcome of checks is kept, a remote handle's in its lane, a local
 *                handle's in `local`.
 *   by command   every other post, and each one that the lane refuses. It is checked as far as it can be without the
 *                target and built, each once (post_command.c); then it is run or handed to emunic
 *                (emunic/client/port.h).
 *
 * Either way the post gets a transfer slot (tid). The slots of a source queue are as many as its entries, half of that
 * with DUAL_EVENTS, so its entries always find room. On any error nothing was started and the descriptor is untouched.
 * Silent posts get an entry as well, which the library swallows: their slot comes back and a failure can be shown.
 *
 * A chain (chained.c) is several commands with one slot and one completion.
 * Source: spec/ugni.md 4.7, 4.8 and Appendix A.1.
 */
#include "libugni/src/post.h"

#include <stdlib.h>
#include <string.h>

#include "emunic/client/lane.h"
#include "emunic/engine/amo_arithmetic.h"
#include "libugni/src/handle_target.h"
#include "libugni/src/stats.h"

/* ---- room ---- */

static inline bool has_slot(const struct gnii_cq *cq)
{
    return cq->in_use < cq->posts_max;
}

/* Is there room for a post: in its source queue, for its entries, and among the transfer slots? */
static inline bool has_room(struct gnii_cq *cq)
{
    if (!has_slot(cq)) {
        gnii_cq_reclaim(cq);
        if (!has_slot(cq))
            return false;
    }
    return cq->nic->free_tx != UINT32_MAX || gnii_tx_grow(cq->nic) == 0;
}

/* Takes that room. The number by which its entries find it. */
static inline uint32_t take_room(struct gnii_ep *ep, struct gnii_cq *cq, gni_post_descriptor_t *descr, uint16_t cq_mode)
{
    struct gnii_nic *nic = ep->nic;
    uint8_t n_events = (cq_mode & GNI_CQMODE_DUAL_EVENTS) == GNI_CQMODE_DUAL_EVENTS ? 2 : 1;
    uint32_t tid = nic->free_tx;
    struct gnii_tx *tx = &nic->tx[tid];

    nic->free_tx = tx->next;
    *tx = (struct gnii_tx){ .descr = descr,
                            .ep = ep,
                            .cq = cq,
                            .events_left = n_events,
                            .events_due = n_events,
                            .local_event = ep->local_event,
                            .cq_mode = cq_mode,
                            .is_silent = (cq_mode & GNI_CQMODE_DUAL_EVENTS) == 0 };
    cq->in_use++;
    ep->outstanding++;
    ep->unresolved++;
    return tid;
}

bool gnii_post_take_room(struct gnii_ep *ep, struct gnii_cq *cq, gni_post_descriptor_t *descr, uint16_t cq_mode,
                         uint32_t *tid_out)
{
    if (!has_room(cq))
        return false;
    *tid_out = take_room(ep, cq, descr, cq_mode);
    return true;
}

/* ---- by lane: the lanes of a NIC ---- */

#define LANES 256u /* 80 KiB per NIC handle that posts */

/* The lane of a remote handle. */
struct gnii_post_lane {
    uint64_t qword1;
    uint64_t qword2;
    uint32_t nid;
    bool crc_is_good;
    struct emu_lane lane;
};

struct gnii_post_lanes {
    _Alignas(64) struct gnii_post_lane slots[LANES];
};

static struct gnii_post_lane *slot_of(struct gnii_post_lanes *lanes, uint32_t nid, const gni_mem_handle_t *handle)
{
    uint64_t hash = (handle->qword1 ^ handle->qword1 >> GNII_HNDL_MDH_SHIFT ^ nid) * 0x9e3779b97f4a7c15ull;

    return &lanes->slots[hash >> 56];
}
_Static_assert(LANES == 256, "the hash has 8 bits");

static inline bool is_of(const struct gnii_post_lane *slot, const struct gnii_ep *ep, const gni_mem_handle_t *handle)
{
    return slot->qword1 == handle->qword1 && slot->qword2 == handle->qword2 && slot->nid == ep->remote_addr;
}

/* Makes the slot that of a handle. False: it has no lane, now. */
static bool find_lane(struct gnii_ep *ep, struct gnii_post_lane *slot, const gni_mem_handle_t *handle)
{
    struct gnii_handle_fields fields;
    struct emu_lane_target target;

    if (gnii_handle_decode(handle, &fields) < 0)
        return false;
    if (!is_of(slot, ep, handle))
        *slot = (struct gnii_post_lane){ .qword1 = handle->qword1,
                                         .qword2 = handle->qword2,
                                         .nid = ep->remote_addr,
                                         .crc_is_good = gnii_handle_crc_is_good(handle) };
    target = gnii_handle_target(slot->nid, &fields);
    return slot->lane.epoch != 0 || emu_lane_look_for(&ep->nic->port, &target, &slot->lane);
}

/* Another handle than the end point used last, or one without a lane. */
static struct gnii_post_lane *change_lane(struct gnii_ep *ep, const gni_mem_handle_t *handle)
{
    struct gnii_nic *nic = ep->nic;
    struct gnii_post_lane *slot;

    if (!nic->port.gate || !emu_gate_is_open(nic->port.gate))
        return NULL;
    if (!nic->lanes) {
        nic->lanes = aligned_alloc(64, sizeof(*nic->lanes));
        if (!nic->lanes)
            return NULL;
        memset(nic->lanes, 0, sizeof(*nic->lanes));
    }
    slot = slot_of(nic->lanes, ep->remote_addr, handle);
    if (!find_lane(ep, slot, handle))
        return NULL;
    ep->latest = slot;
    return slot;
}

/* The lane of a remote handle, or NULL. */
static inline struct gnii_post_lane *lane_of(struct gnii_ep *ep, const gni_mem_handle_t *handle)
{
    struct gnii_post_lane *latest = ep->latest;

    return latest && latest->lane.epoch != 0 && is_of(latest, ep, handle) ? latest : change_lane(ep, handle);
}

void gnii_post_lanes_free(struct gnii_nic *nic)
{
    free(nic->lanes);
    nic->lanes = NULL;
}

/* ---- by lane: the post ---- */

/* Is [addr, addr + len) memory that the local handle covers (and may be written)? */
static inline bool local_is_good(struct gnii_nic *nic, const gni_post_descriptor_t *d, uint64_t len_bytes,
                                 bool is_written, bool needs_crc)
{
    const gni_mem_handle_t *handle = &d->local_mem_hndl;
    struct gnii_local *l = &nic->local;

    /* Pairs with the release in mem.c: a registration that has gone is not believed any more. */
    if (l->changes != atomic_load_explicit(&nic->job->changes, memory_order_acquire) || l->qword1 != handle->qword1 ||
        l->qword2 != handle->qword2) {
        if (!gnii_local_find(nic, handle, l))
            return false;
    }
    return d->local_addr >= l->first && d->local_addr <= l->end && len_bytes <= l->end - d->local_addr &&
           !(is_written && l->is_read_only) && (!needs_crc || l->crc_is_good);
}

static inline struct emu_lane_event remote_event(const struct gnii_ep *ep, const gni_post_descriptor_t *d)
{
    if ((d->cq_mode & GNI_CQMODE_REMOTE_EVENT) == 0)
        return EMU_LANE_NO_EVENT;
    return (struct emu_lane_event){ .event = gnii_cqe_remote(GNI_CQ_EVENT_TYPE_POST, ep->remote_event) };
}

static inline __attribute__((always_inline)) bool put(struct gnii_ep *ep, struct emu_lane *lane,
                                                      const gni_post_descriptor_t *d)
{
    return emu_lane_put(lane, d->remote_addr, (const void *)(uintptr_t)d->local_addr, d->length, remote_event(ep, d));
}

static __attribute__((noinline)) bool get(struct gnii_ep *ep, struct emu_lane *lane, const gni_post_descriptor_t *d,
                                          bool needs_crc)
{
    return d->remote_addr % 4 == 0 && d->length % 4 == 0 && local_is_good(ep->nic, d, d->length, true, needs_crc) &&
           emu_lane_get(lane, d->remote_addr, (void *)(uintptr_t)d->local_addr, d->length, remote_event(ep, d));
}

/* Lengths that the compiler knows: a copy of 4 or 8 bytes must not become a loop. */
static inline void store_word(void *to, uint64_t word, uint64_t width_bytes)
{
    if (width_bytes == 8)
        memcpy(to, &word, 8);
    else
        memcpy(to, &word, 4);
}

/* One word. */
static __attribute__((noinline)) bool amo(struct gnii_ep *ep, struct emu_lane *lane, const gni_post_descriptor_t *d)
{
    struct emu_amo a = { .operand1 = d->first_operand, .operand2 = d->second_operand };
    uint64_t width_bytes;
    uint64_t old = 0;

    if (!gnii_post_amo_of(d->amo_cmd, &a.op, &a.flags))
        return false;
    width_bytes = emu_amo_word_bytes(&a);
    if (d->length != width_bytes || (d->remote_addr & (width_bytes - 1)) != 0)
        return false;
    if ((a.flags & EMU_AMO_FETCH) == 0)
        return emu_lane_amo(lane, d->remote_addr, &a, NULL, remote_event(ep, d));
    if ((d->local_addr & (width_bytes - 1)) != 0 || !local_is_good(ep->nic, d, width_bytes, true, false) ||
        !emu_lane_amo(lane, d->remote_addr, &a, &old, remote_event(ep, d)))
        return false;
    store_word((void *)(uintptr_t)d->local_addr, old, width_bytes);
    return true;
}

/* A block transfer, or what is not a put. */
static __attribute__((noinline)) bool operate_other(struct gnii_ep *ep, struct emu_lane *lane,
                                                    const gni_post_descriptor_t *d)
{
    switch (d->type) {
    case GNI_POST_RDMA_PUT:
        return local_is_good(ep->nic, d, d->length, false, true) && put(ep, lane, d);
    case GNI_POST_FMA_GET:
        return get(ep, lane, d, false);
    case GNI_POST_RDMA_GET:
        return get(ep, lane, d, true);
    case GNI_POST_AMO:
        return amo(ep, lane, d);
    default:
        return false;
    }
}

static inline __attribute__((always_inline)) void push_source(struct gnii_cq *cq, uint32_t tid,
                                                              const struct gnii_ep *ep, const gni_post_descriptor_t *d,
                                                              bool is_block)
{
    struct emu_direct *direct = cq->nic->port.direct;
    uint64_t event =
        gnii_cqe_post(is_block ? GNII_CQE_ENGINE_BTE : GNII_CQE_ENGINE_FMA, tid, ep->local_event, GNII_CQE_OK);

    if (d->cq_mode & GNI_CQMODE_LOCAL_EVENT)
        emu_lane_complete(direct, cq->index, &cq->consumer, event);
    if (d->cq_mode & GNI_CQMODE_GLOBAL_EVENT)
        emu_lane_complete(direct, cq->index, &cq->consumer, event);
}

static inline bool is_ordered(const gni_post_descriptor_t *d, bool is_block)
{
    return (d->dlvr_mode & GNI_DLVMODE_IN_ORDER) == GNI_DLVMODE_IN_ORDER ||
           (is_block && (d->rdma_mode & GNI_RDMAMODE_FENCE) != 0);
}

/* A get to where a Gemini cannot put it. */
static bool is_get_off_words(const gni_post_descriptor_t *d)
{
    return (d->type == GNI_POST_FMA_GET || d->type == GNI_POST_RDMA_GET) && d->local_addr % 4 != 0;
}

/* May this descriptor go by lane, as far as it tells itself? */
static inline bool is_ordinary(const struct gnii_ep *ep, const struct gnii_cq *cq, const gni_post_descriptor_t *d,
                               bool is_block)
{
    const struct gnii_nic *nic = ep->nic;
    uint16_t dual = d->cq_mode & GNI_CQMODE_DUAL_EVENTS;

    if (!ep->is_bound || !cq || cq->nic != nic || dual == 0 || d->length - 1 >= nic->port.settings.direct_limit_bytes)
        return false;
    if (nic->is_gemini && (gnii_post_came_with_aries(d) || is_get_off_words(d)))
        return false;
    if (dual == GNI_CQMODE_DUAL_EVENTS && (nic->modes & GNI_CDM_MODE_DUAL_EVENTS) == 0)
        return false;
    /* A first look; the gate looks again (emu_gate_is_open). */
    return !is_ordered(d, is_block) || atomic_load_explicit(&nic->port.segment->unfinished, memory_order_relaxed) == 0;
}

/* False: nothing has happened, take the other way, which also says what is wrong. */
static inline __attribute__((always_inline)) bool post_by_lane(struct gnii_ep *ep, struct gnii_cq *cq,
                                                               gni_post_descriptor_t *d, bool is_block)
{
    struct gnii_post_lane *slot = lane_of(ep, &d->remote_mem_hndl);
    bool must_keep_order = is_ordered(d, is_block);
    bool is_done;

    if (!slot)
        return false;
    if (!is_block && d->type == GNI_POST_FMA_PUT && (d->cq_mode & GNI_CQMODE_REMOTE_EVENT) != 0)
        emu_lane_expect(&slot->lane, d->remote_addr, true);
    if (!is_ordinary(ep, cq, d, is_block) || !has_room(cq))
        return false;
    if (is_block && (!slot->crc_is_good || (d->rdma_mode & GNI_RDMAMODE_PHYS_ADDR)))
        return false;
    if (must_keep_order)
        slot->lane.gate->is_for_ordered = true;
    is_done = !is_block && d->type == GNI_POST_FMA_PUT ? put(ep, &slot->lane, d) : operate_other(ep, &slot->lane, d);
    if (must_keep_order)
        slot->lane.gate->is_for_ordered = false;
    if (!is_done)
        return false;
    /* The peer has it all; the rest is our own. */
    push_source(cq, take_room(ep, cq, d, d->cq_mode), ep, d, is_block);
    return true;
}

/* ---- by command ---- */

/* Runs the post at once, straight from the program's buffer; else gives it to emunic. */
static gni_return_t send_command(const struct gnii_post *p, uint32_t tid)
{
    struct emu_port *port = &p->ep->nic->port;
    uint64_t staging_off = 0;
    struct emu_cmd *cmd = gnii_post_build(p, tid, &staging_off);

    if (!cmd)
        return GNI_RC_ERROR_RESOURCE;
    if (emu_port_run(port))
        return GNI_RC_SUCCESS;
    gnii_post_hand_over_data(p, cmd, staging_off);
    emu_port_publish(port);
    return GNI_RC_SUCCESS;
}

gni_return_t gnii_post_start(const struct gnii_post *posts, uint32_t n_posts)
{
    gni_return_t rc = GNI_RC_SUCCESS;
    uint32_t tid;

    if (!gnii_post_take_room(posts[0].ep, posts[0].cq, posts[0].descr, posts[0].cq_mode, &tid))
        return GNI_RC_ERROR_RESOURCE;
    posts[0].ep->nic->tx[tid].is_chain = posts[0].chain != EMU_CHAIN_NONE;
    for (uint32_t i = 0; i < n_posts && rc == GNI_RC_SUCCESS; i++)
        rc = send_command(&posts[i], tid);
    /* Fails only when the NIC has gone: the first command then, or never mind which. */
    if (rc != GNI_RC_SUCCESS)
        gnii_tx_give(posts[0].ep->nic, tid);
    return rc;
}

static __attribute__((noinline)) gni_return_t post_fma(struct gnii_ep *ep, gni_post_descriptor_t *descr)
{
    struct gnii_post p;
    gni_return_t rc = gnii_post_set_common(&p, ep, descr, ep->cq);

    if (rc == GNI_RC_SUCCESS)
        rc = gnii_post_prepare_fma(&p, descr);
    return rc == GNI_RC_SUCCESS ? gnii_post_start(&p, 1) : rc;
}

static __attribute__((noinline)) gni_return_t post_rdma(struct gnii_ep *ep, struct gnii_cq *cq,
                                                        gni_post_descriptor_t *descr)
{
    struct gnii_post p;
    gni_return_t rc = gnii_post_set_common(&p, ep, descr, cq);

    if (rc == GNI_RC_SUCCESS)
        rc = gnii_post_prepare_rdma(&p, descr);
    if (rc == GNI_RC_SUCCESS && emu_port_blocks_are_used_up(&ep->nic->port)) {
        gnii_stat_count(ep->nic, GNII_STAT_FLBTE_TXD_NONE);
        rc = GNI_RC_ERROR_RESOURCE;
    }
    return rc == GNI_RC_SUCCESS ? gnii_post_start(&p, 1) : rc;
}

/* ---- calls ---- */

static bool is_fma(const gni_post_descriptor_t *d)
{
    return d->type == GNI_POST_FMA_PUT || d->type == GNI_POST_FMA_GET || d->type == GNI_POST_AMO;
}

static bool is_rdma(const gni_post_descriptor_t *d)
{
    return d->type == GNI_POST_RDMA_PUT || d->type == GNI_POST_RDMA_GET;
}

gni_return_t GNI_PostFma(gni_ep_handle_t ep_hndl, gni_post_descriptor_t *post_descr)
{
    struct gnii_ep *ep = gnii_ep_find(ep_hndl);
    gni_return_t rc;

    if (!ep || !post_descr)
        return GNI_RC_INVALID_PARAM;
    if (post_descr->type == GNI_POST_CE)
        return gnii_ce_post(ep, post_descr);
    emu_biased_lock(&ep->nic->lock);
    rc = is_fma(post_descr) && post_by_lane(ep, ep->cq, post_descr, false) ? GNI_RC_SUCCESS : post_fma(ep, post_descr);
    emu_biased_unlock(&ep->nic->lock);
    return rc;
}

gni_return_t GNI_PostRdma(gni_ep_handle_t ep_hndl, gni_post_descriptor_t *post_descr)
{
    struct gnii_ep *ep = gnii_ep_find(ep_hndl);
    struct gnii_cq *cq;
    gni_return_t rc;

    if (!ep || !post_descr)
        return GNI_RC_INVALID_PARAM;
    emu_biased_lock(&ep->nic->lock);
    cq = post_descr->src_cq_hndl ? gnii_cq_find(post_descr->src_cq_hndl) : ep->cq;
    rc = is_rdma(post_descr) && post_by_lane(ep, cq, post_descr, true) ? GNI_RC_SUCCESS : post_rdma(ep, cq, post_descr);
    emu_biased_unlock(&ep->nic->lock);
    return rc;
}

gni_return_t GNI_PostCqWrite(gni_ep_handle_t ep_hndl, gni_post_descriptor_t *post_descr)
{
    struct gnii_ep *ep = gnii_ep_find(ep_hndl);
    struct gnii_post p;
    gni_return_t rc;

    if (!ep || !post_descr || post_descr->type != GNI_POST_CQWRITE)
        return GNI_RC_INVALID_PARAM;
    emu_biased_lock(&ep->nic->lock);
    rc = gnii_post_set_common(&p, ep, post_descr, ep->cq);
    if (rc == GNI_RC_SUCCESS)
        rc = gnii_post_prepare_cqwrite(&p, post_descr);
    if (rc == GNI_RC_SUCCESS)
        rc = gnii_post_start(&p, 1);
    emu_biased_unlock(&ep->nic->lock);
    return rc;
}
