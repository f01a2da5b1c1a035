/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Transfer slots of posts.
 *
 * A post on its way has a slot; its number (tid) stands in the completion entry. The slots of a NIC handle grow with
 * the number of posts under way, up to the number of tids that an entry can hold. NIC lock held throughout.
 */
#include <errno.h>
#include <stdlib.h>

#include "libugni/src/ugni.h"

#define TX_FIRST 256u
#define TX_MAX   (1u << 24)

int gnii_tx_grow(struct gnii_nic *nic)
{
    uint32_t more = nic->n_tx ? 2 * nic->n_tx : TX_FIRST;
    struct gnii_tx *tx;

    if (more > (nic->is_gemini ? GNII_CQE_WIDE_TIDS : TX_MAX))
        return -ENOSPC;
    tx = realloc(nic->tx, more * sizeof(*tx));
    if (!tx)
        return -ENOMEM;
    for (uint32_t i = nic->n_tx; i < more; i++)
        tx[i] = (struct gnii_tx){ .next = i + 1 < more ? i + 1 : UINT32_MAX };
    nic->free_tx = nic->n_tx;
    nic->tx = tx;
    nic->n_tx = more;
    return 0;
}

void gnii_tx_orphan(struct gnii_nic *nic, struct gnii_ep *ep)
{
    struct gnii_cq *cq;

    if (ep->outstanding == 0 && ep->unresolved == 0)
        return;
    for (uint32_t tid = 0; tid < nic->n_tx; tid++) {
        struct gnii_tx *tx = &nic->tx[tid];

        if (tx->ep != ep)
            continue;
        /* Entries that the program holds already will find nothing; the others are swallowed when they come. */
        tx->ep = NULL;
        tx->events_left = tx->events_due;
        if (tx->events_due == 0)
            gnii_tx_give(nic, tid);
    }
    LIST_FOREACH(cq, &nic->cqs, link) {
        for (uint64_t i = cq->sends_head; i != cq->sends_tail; i++) {
            if (cq->sends[i & cq->sends_mask].ep == ep)
                cq->sends[i & cq->sends_mask].ep = NULL;
        }
    }
    ep->outstanding = 0;
    ep->unresolved = 0;
}

/* A post that gnii_tx_wait() waits for. An element of any chain may belong to the end point. */
static bool is_waited_for(const struct gnii_tx *tx, const struct gnii_ep *ep, const struct gnii_cq *cq)
{
    return cq ? tx->cq == cq : tx->ep == ep || tx->is_chain;
}

/* Is this one of the entries that gnii_tx_wait() waits for? */
static bool is_owed(const struct gnii_nic *nic, const struct gnii_ep *ep, const struct gnii_cq *cq, uint64_t event)
{
    uint32_t tid = gnii_cqe_tid(event);

    switch (gnii_cqe_engine(event)) {
    case GNII_CQE_ENGINE_REMOTE:
    case GNII_CQE_ENGINE_CQ_WRITE:
    case GNII_CQE_ENGINE_CE:
        return false;
    case GNII_CQE_ENGINE_SMSG:
        return cq;
    default:
        return tid < nic->n_tx && is_waited_for(&nic->tx[tid], ep, cq);
    }
}

static bool all_owed_are_here(struct gnii_nic *nic, const struct gnii_ep *ep, const struct gnii_cq *only_cq)
{
    uint64_t owed = only_cq ? only_cq->sends_tail - only_cq->sends_head - only_cq->sends_settled : 0;
    const struct gnii_cq *cq;
    uint64_t event;

    for (uint32_t tid = 0; tid < nic->n_tx; tid++) {
        if (is_waited_for(&nic->tx[tid], ep, only_cq))
            owed += nic->tx[tid].events_due;
    }
    LIST_FOREACH(cq, &nic->cqs, link) {
        if (only_cq && cq != only_cq)
            continue;
        for (uint64_t ahead = 0; owed > 0 && emu_cq_peek(&cq->consumer, ahead, &event) == EMU_CQ_OK; ahead++)
            owed -= is_owed(nic, ep, only_cq, event);
    }
    return owed == 0;
}

void gnii_tx_wait(struct gnii_nic *nic, const struct gnii_ep *ep, const struct gnii_cq *cq)
{
    while (!all_owed_are_here(nic, ep, cq) && !emu_port_is_lost(&nic->port))
        emu_port_relax(&nic->port, (uintptr_t)nic);
}
