/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A checked post on its way to becoming commands; shared by single posts and chains. NIC lock held throughout.
 */
#ifndef LIBUGNI_POST_H
#define LIBUGNI_POST_H

#include "emunic/abi/amo.h"
#include "libugni/src/ugni.h"

/* What a post wants, taken from its descriptor once: the program may rewrite it before the completion. */
struct gnii_post {
    struct gnii_ep *ep;
    struct gnii_cq *cq;           /* source queue */
    gni_post_descriptor_t *descr; /* what GNI_GetCompleted returns */
    struct gnii_handle_fields remote;
    uint64_t local_addr;
    uint64_t remote_addr;
    uint64_t length_bytes;
    uint64_t operand1;
    uint64_t operand2;
    uint64_t value; /* of the flag, or of the queue write */
    uint64_t flag_addr;
    uint16_t cq_mode;
    uint8_t op;    /* enum emu_op */
    uint8_t flags; /* EMU_CMD_* */
    uint8_t amo_op;
    uint8_t amo_flags;
    uint8_t chain;         /* enum emu_chain */
    bool is_local_special; /* local_addr is not simply an address of ours, but: */
    uint16_t local_mdh;    /* an offset in this segmented registration; 0: in nothing that is registered */
    uint16_t local_generation;
    enum gnii_cqe_engine engine;
};

#define GNII_SECOND_GENERATION 0x040u /* bit of an amo_cmd */

/* Type, command and modes that a Gemini does not have. */
bool gnii_post_came_with_aries(const gni_post_descriptor_t *d);

/* Has the NIC's device what the descriptor asks for? */
static inline bool gnii_post_is_of_device(const struct gnii_nic *nic, const gni_post_descriptor_t *d)
{
    return !nic->is_gemini || !gnii_post_came_with_aries(d);
}

/* End point, queue, events and delivery mode of a descriptor. */
gni_return_t gnii_post_set_common(struct gnii_post *p, struct gnii_ep *ep, gni_post_descriptor_t *descr,
                                  struct gnii_cq *cq);
/* The rest of an FMA descriptor. */
gni_return_t gnii_post_prepare_fma(struct gnii_post *p, const gni_post_descriptor_t *d);
/* The rest of a queue write. */
gni_return_t gnii_post_prepare_cqwrite(struct gnii_post *p, const gni_post_descriptor_t *d);

static inline bool gnii_post_has_slot(const struct gnii_cq *cq)
{
    return cq->in_use < ((cq->nic->modes & GNI_CDM_MODE_DUAL_EVENTS) ? cq->capacity / 2 : cq->capacity);
}

/* Is there room for a post: in its source queue, for its entries, and among the transfer slots? */
static inline bool gnii_post_has_room(struct gnii_cq *cq)
{
    if (!gnii_post_has_slot(cq)) {
        gnii_cq_reclaim(cq);
        if (!gnii_post_has_slot(cq))
            return false;
    }
    return cq->nic->free_tx != UINT32_MAX || gnii_tx_grow(cq->nic) == 0;
}

/* Takes that room. The number by which its entries find it. */
static inline uint32_t gnii_post_take_tx(struct gnii_ep *ep, struct gnii_cq *cq, gni_post_descriptor_t *descr,
                                         uint16_t cq_mode)
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

/* What an atomic command of the API is. False: nothing. */
bool gnii_post_amo_of(uint32_t command, uint8_t *op_out, uint8_t *flags_out);

/* Takes one slot for the first post's descriptor and sends all of them as one chain (n_posts 1: a plain post). */
gni_return_t gnii_post_start(const struct gnii_post *posts, uint32_t n_posts);

#endif
