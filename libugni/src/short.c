/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The short way of a post.
 *
 * post.c checks a descriptor, makes a command of it and has the engine run that: some 1500 instructions whose outcome
 * is the same each time for a program that puts, gets and adds to the same few regions. Here the outcome of those
 * checks is kept: a remote handle's in a lane (emunic/client/lane.h), a local handle's in `local`. What is left for an
 * 8-byte operation is some 150 instructions and, beside the operation's own cache lines, no locked instruction but
 * those that reserve places in completion queues.
 *
 * Only what cannot fail is done here; anything else (errors, flags, chains, fences behind transfers under way, memory
 * that is not mapped, a full source queue) returns false before anything has happened. Files of programs can lose their
 * pages in the middle: then the engine does the operation once more, and nobody was told of the first try.
 *
 * A small put with a remote event reserves the event's place first and stores the data then (EMU_LANE_EARLY_MAX).
 */
#include "libugni/src/short.h"

#include <stdlib.h>
#include <string.h>

#include "emunic/client/direct.h"
#include "emunic/engine/amo.h"
#include "emunic/engine/word.h"
#include "libugni/src/post.h"

#define LANES       256u /* 80 KiB per NIC handle that posts */
#define RETRY_AFTER 64u  /* posts, until a handle without a lane is looked at again */

struct gnii_short {
    uint64_t qword1;
    uint64_t qword2;
    uint32_t nid;
    uint32_t retry; /* > 0: no lane, and not to be looked for before so many more posts */
    bool crc_is_good;
    struct emu_lane lane;
};

struct gnii_lanes {
    _Alignas(64) struct gnii_short slots[LANES];
};

/* ---- handles ---- */

static struct gnii_short *slot_of(struct gnii_lanes *lanes, uint32_t nid, const gni_mem_handle_t *handle)
{
    uint64_t hash = (handle->qword1 ^ handle->qword1 >> GNII_HNDL_MDH_SHIFT ^ nid) * 0x9e3779b97f4a7c15ull;

    return &lanes->slots[hash >> 56];
}
_Static_assert(LANES == 256, "the hash has 8 bits");

static bool find_lane(struct gnii_nic *nic, struct gnii_short *slot, uint32_t nid, const gni_mem_handle_t *handle)
{
    struct gnii_handle_fields fields;
    struct emu_lane_target target;

    if (slot->retry > 0 && slot->qword1 == handle->qword1 && slot->qword2 == handle->qword2 && slot->nid == nid) {
        slot->retry--;
        return false;
    }
    *slot = (struct gnii_short){ .qword1 = handle->qword1, .qword2 = handle->qword2, .nid = nid, .retry = RETRY_AFTER };
    if (gnii_handle_decode(handle, &fields) < 0)
        return false;
    slot->crc_is_good = gnii_handle_crc_is_good(handle);
    target = gnii_handle_target(nid, &fields);
    if (!emu_lane_find(nic->port.direct, &target, &slot->lane))
        return false;
    slot->retry = 0;
    return true;
}

static bool is_of(const struct gnii_short *slot, const struct gnii_ep *ep, const gni_mem_handle_t *handle)
{
    return slot->lane.epoch != 0 && slot->qword1 == handle->qword1 && slot->qword2 == handle->qword2 &&
           slot->nid == ep->remote_addr;
}

/* Another handle than the end point used last. */
static struct gnii_short *change_lane(struct gnii_ep *ep, const gni_mem_handle_t *handle)
{
    struct gnii_nic *nic = ep->nic;
    struct gnii_short *slot;

    /* Finding a lane may ask emunic and wait for it: not while the path is closed anyway. */
    if (!nic->port.direct || !emu_direct_is_open(nic->port.direct))
        return NULL;
    if (!nic->lanes) {
        nic->lanes = aligned_alloc(64, sizeof(*nic->lanes));
        if (!nic->lanes)
            return NULL;
        memset(nic->lanes, 0, sizeof(*nic->lanes));
    }
    slot = slot_of(nic->lanes, ep->remote_addr, handle);
    if (!is_of(slot, ep, handle) && !find_lane(nic, slot, ep->remote_addr, handle))
        return NULL;
    ep->latest = slot;
    return slot;
}

/* The lane of a remote handle, or NULL. */
static inline struct gnii_short *lane_of(struct gnii_ep *ep, const gni_mem_handle_t *handle)
{
    return ep->latest && is_of(ep->latest, ep, handle) ? ep->latest : change_lane(ep, handle);
}

void gnii_lanes_free(struct gnii_nic *nic)
{
    free(nic->lanes);
    nic->lanes = NULL;
}

/* Is [addr, addr + len) memory that the local handle covers (and may be written)? */
static inline bool local_is_good(struct gnii_nic *nic, const gni_mem_handle_t *handle, uint64_t addr,
                                 uint64_t len_bytes, bool is_written, bool needs_crc)
{
    struct gnii_local *l = &nic->local;

    /* Pairs with the release in mem.c: a registration that has gone is not believed any more. */
    if (l->changes != atomic_load_explicit(&nic->job->changes, memory_order_acquire) || l->qword1 != handle->qword1 ||
        l->qword2 != handle->qword2) {
        if (!gnii_local_find(nic, handle, l))
            return false;
    }
    return addr >= l->first && addr <= l->end && len_bytes <= l->end - addr && !(is_written && l->is_read_only) &&
           (!needs_crc || l->crc_is_good);
}

/* ---- operations ---- */

static bool is_ordered(const gni_post_descriptor_t *d, bool is_block)
{
    return (d->dlvr_mode & GNI_DLVMODE_IN_ORDER) == GNI_DLVMODE_IN_ORDER ||
           (is_block && (d->rdma_mode & GNI_RDMAMODE_FENCE) != 0);
}

/* The remote event of an operation whose data is in place; a full queue counts its loss. */
static void push_remote(struct emu_lane *lane, const struct gnii_ep *ep, uint16_t cq_mode)
{
    if ((cq_mode & GNI_CQMODE_REMOTE_EVENT) && lane->has_destination)
        emu_cq_push(&lane->destination, gnii_cqe_remote(GNI_CQ_EVENT_TYPE_POST, ep->remote_event));
}

/* To and from memory that is not mapped here: the same with a system call. */
static bool put_far(struct gnii_ep *ep, struct emu_lane *lane, const gni_post_descriptor_t *d)
{
    if (!emu_lane_write(lane, d->remote_addr, (const void *)(uintptr_t)d->local_addr, d->length))
        return false;
    push_remote(lane, ep, d->cq_mode);
    emu_lane_count_put(lane, d->length);
    emu_lane_leave(lane);
    return true;
}

static bool get_far(struct gnii_ep *ep, struct emu_lane *lane, const gni_post_descriptor_t *d)
{
    if (!emu_lane_read(lane, d->remote_addr, (void *)(uintptr_t)d->local_addr, d->length))
        return false;
    push_remote(lane, ep, d->cq_mode);
    emu_lane_count_get(lane, d->length, 0);
    emu_lane_leave(lane);
    return true;
}

/*
 * What was moved counts. If not the mark is down again, and the engine has to do it all: nobody was told of anything.
 */
static inline bool has_moved(struct emu_lane *lane)
{
    if (!emu_lane_is_broken(lane))
        return true;
    emu_lane_leave(lane);
    return false;
}

static inline bool put(struct gnii_ep *ep, struct emu_lane *lane, const gni_post_descriptor_t *d)
{
    const void *data = (const void *)(uintptr_t)d->local_addr;
    uint8_t *to = emu_lane_enter(lane, d->remote_addr, d->length, true);
    uint64_t place;

    if (!to)
        return put_far(ep, lane, d);
    if ((d->cq_mode & GNI_CQMODE_REMOTE_EVENT) && lane->has_destination && d->length <= EMU_LANE_EARLY_MAX &&
        !lane->broken) {
        bool has_place = emu_cq_reserve(&lane->destination, &place) == EMU_CQ_OK;

        emu_word_store(to, data, d->length);
        if (has_place)
            emu_cq_publish(&lane->destination, place, gnii_cqe_remote(GNI_CQ_EVENT_TYPE_POST, ep->remote_event));
    } else {
        emu_word_store(to, data, d->length);
        if (!has_moved(lane))
            return false;
        push_remote(lane, ep, d->cq_mode);
    }
    emu_lane_count_put(lane, d->length);
    emu_lane_leave(lane);
    return true;
}

static inline bool get(struct gnii_ep *ep, struct emu_lane *lane, const gni_post_descriptor_t *d, bool needs_crc)
{
    uint8_t *from;

    if (d->remote_addr % 4 != 0 || d->length % 4 != 0 ||
        !local_is_good(ep->nic, &d->local_mem_hndl, d->local_addr, d->length, true, needs_crc))
        return false;
    from = emu_lane_enter(lane, d->remote_addr, d->length, false);
    if (!from)
        return get_far(ep, lane, d);
    emu_word_load((void *)(uintptr_t)d->local_addr, from, d->length);
    if (!has_moved(lane))
        return false;
    push_remote(lane, ep, d->cq_mode);
    emu_lane_count_get(lane, d->length, 0);
    emu_lane_leave(lane);
    return true;
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
static bool amo(struct gnii_ep *ep, struct emu_lane *lane, const gni_post_descriptor_t *d)
{
    struct emu_amo a = { .operand1 = d->first_operand, .operand2 = d->second_operand };
    uint64_t width_bytes;
    uint64_t old;
    uint8_t *word;

    if (!gnii_post_amo_of(d->amo_cmd, &a.op, &a.flags))
        return false;
    width_bytes = emu_amo_word_bytes(&a);
    if (d->length != width_bytes || (d->remote_addr & (width_bytes - 1)) != 0)
        return false;
    if ((a.flags & EMU_AMO_FETCH) &&
        ((d->local_addr & (width_bytes - 1)) != 0 ||
         !local_is_good(ep->nic, &d->local_mem_hndl, d->local_addr, width_bytes, true, false)))
        return false;
    word = emu_lane_enter(lane, d->remote_addr, width_bytes, true);
    if (!word)
        return false;
    old = emu_amo_apply_shared(&a, word);
    if (!has_moved(lane))
        return false;
    if (a.flags & EMU_AMO_FETCH) {
        store_word((void *)(uintptr_t)d->local_addr, old, width_bytes);
        emu_lane_count_get(lane, width_bytes, emu_amo_operand_bytes(&a));
    } else {
        emu_lane_count_put(lane, width_bytes);
    }
    push_remote(lane, ep, d->cq_mode);
    emu_lane_leave(lane);
    return true;
}

static inline bool operate(struct gnii_ep *ep, struct emu_lane *lane, const gni_post_descriptor_t *d)
{
    switch (d->type) {
    case GNI_POST_FMA_PUT:
        return put(ep, lane, d);
    case GNI_POST_RDMA_PUT:
        return local_is_good(ep->nic, &d->local_mem_hndl, d->local_addr, d->length, false, true) && put(ep, lane, d);
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

static inline void push_source(struct gnii_cq *cq, uint32_t tid, const struct gnii_ep *ep,
                               const gni_post_descriptor_t *d, bool is_block)
{
    uint64_t event =
        gnii_cqe_post(is_block ? GNII_CQE_ENGINE_BTE : GNII_CQE_ENGINE_FMA, tid, ep->local_event, GNII_CQE_OK);

    if (d->cq_mode & GNI_CQMODE_LOCAL_EVENT)
        gnii_cq_push_own(cq, event);
    if (d->cq_mode & GNI_CQMODE_GLOBAL_EVENT)
        gnii_cq_push_own(cq, event);
}

/* A get to where a Gemini cannot put it. */
static bool is_get_off_words(const gni_post_descriptor_t *d)
{
    return (d->type == GNI_POST_FMA_GET || d->type == GNI_POST_RDMA_GET) && d->local_addr % 4 != 0;
}

/* May this descriptor be served here, as far as it tells itself? */
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

static inline bool post_short(struct gnii_ep *ep, struct gnii_cq *cq, gni_post_descriptor_t *d, bool is_block)
{
    struct gnii_nic *nic = ep->nic;
    struct gnii_short *slot;
    bool is_done;

    slot = lane_of(ep, &d->remote_mem_hndl);
    if (!slot)
        return false;
    if (d->type == GNI_POST_FMA_PUT)
        emu_lane_expect(&slot->lane, d->remote_addr, (d->cq_mode & GNI_CQMODE_REMOTE_EVENT) != 0);
    if (!is_ordinary(ep, cq, d, is_block) || !gnii_post_has_room(cq))
        return false;
    if (is_block && (!slot->crc_is_good || (d->rdma_mode & GNI_RDMAMODE_PHYS_ADDR)))
        return false;
    slot->lane.gate->is_for_ordered = is_ordered(d, is_block);
    is_done = operate(ep, &slot->lane, d);
    slot->lane.gate->is_for_ordered = false;
    if (!is_done) {
        /* Whatever it was, look anew next time; unless it was only emunic's turn. */
        if (emu_direct_is_open(nic->port.direct))
            slot->lane.epoch = 0;
        return false;
    }
    /* The peer has it all; the rest is our own. */
    push_source(cq, gnii_post_take_tx(ep, cq, d, d->cq_mode), ep, d, is_block);
    return true;
}

bool gnii_post_short_fma(struct gnii_ep *ep, gni_post_descriptor_t *d)
{
    return post_short(ep, ep->cq, d, false);
}

bool gnii_post_short_rdma(struct gnii_ep *ep, struct gnii_cq *cq, gni_post_descriptor_t *d)
{
    return post_short(ep, cq, d, true);
}
