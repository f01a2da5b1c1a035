/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * End points.
 *
 *   created (unbound: datagrams only) -> bound -> unbound -> ... -> destroyed
 *
 * Binding is local and takes no resources: transfer slots belong to the source queue (spec/ugni.md 7.10). Unbinding is
 * refused while posts or sends of the end point have entries that nobody has taken; descriptors may be asked for later.
 * Destroying never refuses: it waits for the transfers on their way, which need nobody's help to end, so that no buffer
 * is touched any more; then they become nobody's, their entries are swallowed, and the library never touches the
 * program's descriptors or mailbox again. An active datagram is cancelled and stays visible to one probe.
 */
#include <stdlib.h>
#include <unistd.h>

#include "emunic/client/virtual_port.h"
#include "libugni/src/rc.h"
#include "libugni/src/ugni.h"

gni_return_t GNI_EpCreate(gni_nic_handle_t nic_hndl, gni_cq_handle_t src_cq_hndl, gni_ep_handle_t *ep_hndl)
{
    struct gnii_nic *nic = gnii_nic_find(nic_hndl);
    struct gnii_cq *cq = src_cq_hndl ? gnii_cq_find(src_cq_hndl) : NULL;
    struct gnii_ep *ep;
    void *handle;
    int r;

    if (!nic || !ep_hndl || (src_cq_hndl && (!cq || cq->nic != nic)))
        return GNI_RC_INVALID_PARAM;
    ep = calloc(1, sizeof(*ep));
    if (!ep)
        return GNI_RC_ERROR_NOMEM;
    ep->refs = 1;
    ep->nic = nic;
    ep->cq = cq;
    r = gnii_object_add(GNII_KIND_EP, ep, &handle);
    if (r < 0) {
        free(ep);
        return gnii_rc(GNII_CALL_PLAIN, r);
    }
    ep->handle = handle;
    ep->key = gnii_object_key(handle);
    atomic_fetch_add(&nic->refs, 1);
    emu_biased_lock(&nic->lock);
    LIST_INSERT_HEAD(&nic->eps, ep, link);
    if (cq)
        cq->n_eps++;
    emu_biased_unlock(&nic->lock);
    *ep_hndl = handle;
    return GNI_RC_SUCCESS;
}

gni_return_t GNI_EpSetEventData(gni_ep_handle_t ep_hndl, uint32_t local_event, uint32_t remote_event)
{
    struct gnii_ep *ep = gnii_ep_find(ep_hndl);

    if (!ep)
        return GNI_RC_INVALID_PARAM;
    emu_biased_lock(&ep->nic->lock);
    ep->has_event_data = true;
    ep->local_event = local_event;
    ep->remote_event = remote_event;
    emu_biased_unlock(&ep->nic->lock);
    return GNI_RC_SUCCESS;
}

gni_return_t GNI_EpBind(gni_ep_handle_t ep_hndl, uint32_t remote_addr, uint32_t remote_id)
{
    struct gnii_ep *ep = gnii_ep_find(ep_hndl);
    gni_return_t rc = GNI_RC_SUCCESS;

    if (!ep)
        return GNI_RC_INVALID_PARAM;
    emu_biased_lock(&ep->nic->lock);
    if (ep->is_bound) {
        rc = GNI_RC_INVALID_PARAM;
    } else {
        ep->is_bound = true;
        ep->remote_addr = remote_addr;
        ep->remote_id = remote_id;
        if (!ep->has_event_data) {
            ep->local_event = remote_id;
            ep->remote_event = ep->nic->port.instance_id;
        }
    }
    emu_biased_unlock(&ep->nic->lock);
    return rc;
}

static void cancel_datagram(struct gnii_ep *ep)
{
    struct emu_msg msg = { .type = EMU_MSG_DATAGRAM_DROP_EP, .datagram = { .ep = ep->key } };

    if (ep->has_datagram)
        emu_port_request(&ep->nic->port, &msg);
    ep->has_datagram = false;
}

/* Whether somebody else's has met it is known then, not the host's choice. No lock held. */
static void settle_datagram(const struct gnii_ep *ep)
{
    if (ep->has_datagram)
        emu_virtual_port_catch_up(&ep->nic->port);
}

/* Silent posts leave no entry for the program to take: done is done. */
static bool is_busy(struct gnii_ep *ep)
{
    if (ep->outstanding > 0)
        gnii_cq_reclaim_all(ep->nic);
    return ep->outstanding > 0;
}

gni_return_t GNI_EpUnbind(gni_ep_handle_t ep_hndl)
{
    struct gnii_ep *ep = gnii_ep_find(ep_hndl);
    gni_return_t rc = GNI_RC_SUCCESS;

    if (!ep)
        return GNI_RC_INVALID_PARAM;
    settle_datagram(ep);
    emu_biased_lock(&ep->nic->lock);
    if (is_busy(ep)) {
        rc = GNI_RC_NOT_DONE;
    } else if (ep->is_bound) {
        cancel_datagram(ep);
        gnii_smsg_free(ep);
        ep->is_bound = false;
        ep->has_event_data = false;
    }
    emu_biased_unlock(&ep->nic->lock);
    return rc;
}

gni_return_t GNI_EpIdle(gni_ep_handle_t ep_hndl)
{
    struct gnii_ep *ep = gnii_ep_find(ep_hndl);
    gni_return_t rc;

    if (!ep)
        return GNI_RC_INVALID_PARAM;
    emu_biased_lock(&ep->nic->lock);
    rc = is_busy(ep) ? GNI_RC_NOT_DONE : GNI_RC_SUCCESS;
    emu_biased_unlock(&ep->nic->lock);
    return rc;
}

void gnii_ep_free(struct gnii_ep *ep)
{
    struct gnii_nic *nic = ep->nic;

    gnii_object_remove(ep->handle);
    if (nic->port.owner == getpid()) {
        cancel_datagram(ep);
        gnii_tx_wait(nic, ep, NULL);
    }
    gnii_smsg_free(ep);
    gnii_tx_orphan(nic, ep);
    LIST_REMOVE(ep, link);
    if (ep->cq)
        ep->cq->n_eps--;
    gnii_ep_put(ep);
}

void gnii_ep_put(struct gnii_ep *ep)
{
    struct gnii_nic *nic = ep->nic;

    if (atomic_fetch_sub(&ep->refs, 1) > 1)
        return;
    free(ep);
    gnii_nic_put(nic);
}

gni_return_t GNI_EpDestroy(gni_ep_handle_t ep_hndl)
{
    struct gnii_ep *ep = gnii_ep_find(ep_hndl);
    struct gnii_nic *nic;

    if (!ep)
        return GNI_RC_INVALID_PARAM;
    nic = ep->nic;
    settle_datagram(ep);
    emu_biased_lock(&nic->lock);
    gnii_ep_free(ep);
    emu_biased_unlock(&nic->lock);
    return GNI_RC_SUCCESS;
}
