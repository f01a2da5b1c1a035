/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The short way of a post: data and events are in place when the call returns, without a command. NIC lock held.
 */
#ifndef LIBUGNI_SHORT_H
#define LIBUGNI_SHORT_H

#include "emunic/client/direct.h"
#include "emunic/client/lane.h"
#include "libugni/src/ugni.h"

/*
 * Does the post if it is an ordinary put, get or atomic to memory that is mapped here and nothing can go wrong. False:
 * nothing has happened, take the long way, which also says what is wrong. The first is for descriptors of FMA, the
 * second for those of block transfers, which may name a source queue.
 */
bool gnii_post_short_fma(struct gnii_ep *ep, gni_post_descriptor_t *descr);
bool gnii_post_short_rdma(struct gnii_ep *ep, struct gnii_cq *cq, gni_post_descriptor_t *descr);

/* A completion of the library's own making. */
static inline void gnii_cq_push_own(struct gnii_cq *cq, uint64_t event)
{
    if (!emu_cq_push_own(&cq->consumer, event))
        emu_cq_push_all(emu_direct_own_queue(cq->nic->port.direct, cq->index), event);
}

void gnii_lanes_free(struct gnii_nic *nic);

#endif
