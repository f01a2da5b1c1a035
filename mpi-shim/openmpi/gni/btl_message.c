/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages by SMSG.
 *
 * What has no connection, no credit or no room waits at its peer, in order; nothing overtakes it. A message that has
 * been handed to the NIC is over for its sender. One that has come is copied out of the mailbox, so that its place is
 * free before Open MPI looks at it, and Open MPI may come back from its callback for more.
 */
#include "mpi-shim/openmpi/gni/btl.h"

#include <string.h>

#include <opal/datatype/opal_convertor.h>

#include "emunic/client/message_cost.h"
#include "libugni/src/smsg_now.h"

#define AT_A_TIME 32 /* messages of one peer before it is another one's turn */

/* ---- what MPI costs in virtual time ---- */

static _Thread_local bool has_paid; /* for a message that mg_sendi() could not send, and that mg_send() will */

/* The first part of a message of MPI: pml/ob1's MATCH, RNDV and RGET are the first three of its tags. */
static bool begins_message(mca_btl_base_tag_t tag)
{
    return tag > MCA_BTL_TAG_PML && tag <= MCA_BTL_TAG_PML + 3;
}

static void pay(mca_btl_base_tag_t tag)
{
    if (!mg.costs_time || !begins_message(tag))
        return;
    if (!has_paid)
        gnii_message_spend(EMU_MESSAGE_SENT);
    has_paid = false;
}

/* ---- sending ---- */

/* False: it has to wait. */
static bool launch(struct mca_btl_base_endpoint_t *peer, struct iovec head, struct iovec tail, mca_btl_base_tag_t tag)
{
    bool is_over;
    const struct gnii_smsg_message message = { .header = head.iov_base,
                                               .data = tail.iov_base,
                                               .header_bytes = (uint32_t)head.iov_len,
                                               .data_bytes = (uint32_t)tail.iov_len,
                                               .msg_id = peer->rank,
                                               .tag = tag,
                                               .is_over = &is_over };
    gni_return_t rc = gnii_smsg_send_now(peer->ep, &message);

    if (rc == GNI_RC_NOT_DONE)
        return false;
    mg_must(rc, "gnii_smsg_send_now");
    mg.nic.n_own += is_over ? 0 : 1;
    return true;
}

static bool launch_frag(struct mg_frag *frag)
{
    struct iovec head = { frag->data, frag->segments[0].seg_len };
    struct iovec tail = { NULL, 0 };

    if (frag->base.des_segment_count > 1)
        tail = (struct iovec){ frag->segments[1].seg_addr.pval, frag->segments[1].seg_len };
    return launch(frag->peer, head, tail, frag->tag);
}

static void append(struct mg_frag *frag)
{
    struct mca_btl_base_endpoint_t *peer = frag->peer;

    frag->next = NULL;
    if (peer->waiting)
        peer->last_waiting->next = frag;
    else
        peer->waiting = frag;
    peer->last_waiting = frag;
    if (!peer->is_waiting) {
        peer->is_waiting = true;
        peer->next_waiting = mg.first_waiting;
        mg.first_waiting = peer;
    }
}

static bool is_free(const struct mca_btl_base_endpoint_t *peer)
{
    return peer->state == MG_CONNECTED && !peer->waiting;
}

/* The descriptor is Open MPI's, or goes. */
static void call_back(struct mg_frag *frag)
{
    bool is_ours = (frag->base.des_flags & MCA_BTL_DES_FLAGS_BTL_OWNERSHIP) != 0;

    if (frag->base.des_flags & MCA_BTL_DES_SEND_ALWAYS_CALLBACK)
        frag->base.des_cbfunc(&mg.super, frag->peer, &frag->base, OPAL_SUCCESS);
    if (is_ours)
        mg_free(&mg.super, &frag->base);
}

int mg_send(struct mca_btl_base_module_t *btl, struct mca_btl_base_endpoint_t *peer,
            mca_btl_base_descriptor_t *descriptor, mca_btl_base_tag_t tag)
{
    struct mg_frag *frag = (struct mg_frag *)descriptor;
    bool is_sent;

    (void)btl;
    frag->peer = peer;
    frag->tag = tag;
    pay(tag);
    mg_lock();
    is_sent = is_free(peer) && launch_frag(frag);
    if (!is_sent) {
        frag->base.des_flags |= MCA_BTL_DES_SEND_ALWAYS_CALLBACK;
        append(frag);
        mg_connect(peer);
    }
    mg_unlock();
    if (is_sent)
        call_back(frag);
    return is_sent ? 1 : OPAL_SUCCESS;
}

/* Sends it if that can be done at once. */
static bool try_send(struct mca_btl_base_endpoint_t *peer, struct opal_convertor_t *convertor, struct iovec head,
                     size_t payload_bytes, mca_btl_base_tag_t tag)
{
    uint8_t packed[MG_INLINE];
    struct iovec tail = { NULL, payload_bytes };
    uint32_t n = 1;
    size_t size = payload_bytes;
    bool is_packed = payload_bytes > 0 && opal_convertor_need_buffers(convertor);
    bool is_sent;

    if (!is_free(peer) || head.iov_len + payload_bytes > mg.super.btl_eager_limit)
        return false;
    if (payload_bytes > 0 && !is_packed)
        opal_convertor_get_current_pointer(convertor, &tail.iov_base);
    if (is_packed) {
        tail.iov_base = packed;
        if (opal_convertor_pack(convertor, &tail, &n, &size) < 0 || size != payload_bytes) {
            size = 0;
            opal_convertor_set_position(convertor, &size);
            return false;
        }
    }
    pay(tag);
    mg_lock();
    is_sent = is_free(peer) && launch(peer, head, tail, tag);
    mg_unlock();
    if (mg.costs_time)
        has_paid = !is_sent && begins_message(tag);
    if (!is_sent && is_packed) {
        size = 0;
        opal_convertor_set_position(convertor, &size);
    }
    return is_sent;
}

int mg_sendi(struct mca_btl_base_module_t *btl, struct mca_btl_base_endpoint_t *peer,
             struct opal_convertor_t *convertor, void *header, size_t header_bytes, size_t payload_bytes, uint8_t order,
             uint32_t flags, mca_btl_base_tag_t tag, mca_btl_base_descriptor_t **descriptor)
{
    struct iovec head = { header, header_bytes };

    if (try_send(peer, convertor, head, payload_bytes, tag))
        return OPAL_SUCCESS;
    if (descriptor)
        *descriptor = mg_alloc(btl, peer, order, header_bytes + payload_bytes, flags);
    return OPAL_ERR_RESOURCE_BUSY;
}

/* ---- what waits ---- */

/* True: nothing waits there any more. */
static bool send_waiting_of(struct mca_btl_base_endpoint_t *peer)
{
    if (peer->state == MG_IDLE)
        mg_connect(peer);
    while (peer->waiting && peer->state == MG_CONNECTED) {
        struct mg_frag *frag = peer->waiting;

        if (!launch_frag(frag))
            break;
        peer->waiting = frag->next;
        frag->next = NULL;
        *mg.sent_end = frag;
        mg.sent_end = &frag->next;
    }
    return !peer->waiting;
}

void mg_send_waiting(void)
{
    struct mca_btl_base_endpoint_t **link = &mg.first_waiting;

    while (*link) {
        struct mca_btl_base_endpoint_t *peer = *link;

        if (send_waiting_of(peer)) {
            peer->is_waiting = false;
            *link = peer->next_waiting;
        } else {
            link = &peer->next_waiting;
        }
    }
}

static struct mg_frag *take_sent(void)
{
    struct mg_frag *frag;

    mg_lock();
    frag = mg.sent;
    if (frag) {
        mg.sent = frag->next;
        if (!mg.sent)
            mg.sent_end = &mg.sent;
    }
    mg_unlock();
    return frag;
}

int mg_call_back_sends(void)
{
    struct mg_frag *frag;
    int n = 0;

    for (; mg.sent && (frag = take_sent()); n++)
        call_back(frag);
    return n;
}

/* ---- receiving ---- */

void mg_readable(struct mca_btl_base_endpoint_t *peer)
{
    if (peer->is_readable || peer->state != MG_CONNECTED)
        return;
    peer->is_readable = true;
    peer->next_readable = NULL;
    *mg.readable_end = peer;
    mg.readable_end = &peer->next_readable;
}

static struct mca_btl_base_endpoint_t *take_readable(void)
{
    struct mca_btl_base_endpoint_t *peer = mg.first_readable;

    if (!peer)
        return NULL;
    peer->is_readable = false;
    mg.first_readable = peer->next_readable;
    if (!mg.first_readable)
        mg.readable_end = &mg.first_readable;
    return peer;
}

struct arrived {
    uint32_t data_bytes;
    mca_btl_base_tag_t tag;
    _Alignas(64) uint8_t data[MG_INLINE];
};

/* The next message of this peer. False: there is none. */
static bool take(struct mca_btl_base_endpoint_t *peer, struct arrived *arrived)
{
    gni_return_t rc =
        gnii_smsg_take(peer->ep, arrived->data, sizeof(arrived->data), &arrived->data_bytes, &arrived->tag);

    if (rc == GNI_RC_NOT_DONE)
        return false;
    mg_must(rc, "gnii_smsg_take");
    return true;
}

static void deliver(struct arrived *arrived)
{
    mca_btl_active_message_callback_t *receiver = &mca_btl_base_active_message_trigger[arrived->tag];
    mca_btl_base_segment_t segment = { .seg_addr.pval = arrived->data, .seg_len = arrived->data_bytes };
    mca_btl_base_descriptor_t descriptor;

    if (mg.costs_time && begins_message(arrived->tag))
        gnii_message_spend(EMU_MESSAGE_RECEIVED);
    /* Receivers look at the segments alone. Clearing the rest takes longer than all other work here. */
    descriptor.des_segments = &segment;
    descriptor.des_segment_count = 1;
    descriptor.des_flags = 0;
    receiver->cbfunc(&mg.super, arrived->tag, &descriptor, receiver->cbdata);
}

/* Behind a message there is mostly none: a look costs less than an attempt. In virtual time each attempt is a poll. */
static bool may_have_more(const struct mca_btl_base_endpoint_t *peer)
{
    return mg.costs_time || gnii_smsg_waits(peer->ep);
}

int mg_read_messages(void)
{
    struct mca_btl_base_endpoint_t *peer;
    struct arrived arrived;
    int n = 0;

    if (!mg.first_readable)
        return 0;
    mg_lock();
    while (n < AT_A_TIME && (peer = take_readable())) {
        int i = 0;

        for (; i < AT_A_TIME && (i == 0 || may_have_more(peer)) && take(peer, &arrived); i++) {
            mg_unlock();
            deliver(&arrived);
            mg_lock();
        }
        if (i == AT_A_TIME)
            mg_readable(peer);
        n += i;
    }
    mg_unlock();
    return n;
}
