/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Short messages. smsg_connect.c connects them.
 *
 * Each side owns a mailbox, registered memory that the peer's NIC writes:
 *
 *   aligned to 64                                           64                 64 + stride
 *   | returned | ~returned | hello | ~hello | answers | before | past | own | slot 0           | slot 1 ...
 *                                                                     | stamp | length, tag, flags, event | data |
 *
 * A send is one flagged put: length, tag, header and data, then the stamp. The stamp is (mark, message number) in one
 * word; a receiver takes a slot only when it shows exactly the stamp it waits for, so a message that comes before
 * GNI_SmsgInit is kept: it waits in the mailbox.
 *
 * Mailbox memory is used again without being cleared, perhaps by the same pair while one side has not noticed yet that
 * the other has closed. Therefore every connection has a mark of its own for each direction: a hash of both sides'
 * attributes and of a number that the sender chooses. The sender tells the number in `hello` when it connects and
 * again before its first message (a program may clear its mailbox in between). When a connection ends, its owner
 * keeps the peer's hello in `past`, does not listen to it again, and tells the peer which one that was (`answers`) in
 * its own next hello: whoever is still in that past connection knows then that the hello is not for it. Until it has
 * taken a message a receiver goes by the newest hello, unless messages of the one before wait; afterwards it stays
 * with its own. A sender keeps its last hello in `own` and names it in the next one (`before`): the receiver may not
 * have looked between the two.
 *
 * Credits: the receiver counts the slots it has released and writes the count (with the mark) into the first words of
 * the sender's own mailbox, silently when half of them are free; with an event, at once, when it releases a message
 * that took the sender's last credit. What the peer writes here comes with a complement or a hash: a reader takes it
 * only when it is whole.
 *
 * Early messages. Until a credit has come back a sender does not know whether its receiver has called GNI_SmsgInit:
 * such a message and its entry are marked as early, the entry with a tag of the connection. GNI_SmsgInit puts those
 * entries back that were taken too early, and no others: those are in the queue, or will be (early.c).
 *
 * Lost messages. With GNI_SMSG_TYPE_MBOX_AUTO_RETRANSMIT the NIC tries a message again (emu_cmd.attempts) before it
 * goes on to the next. When a send fails for good its slot stays empty and would stop the receiver, so the call that
 * takes the error entry fills it with a void (tag GNI_SMSG_ANY_TAG, which no message has), which the receiver passes
 * over. The program may send the message again: it becomes a new one.
 *
 * The program's buffers are free when a send returns. Messages of a pair stay in order because a port's commands do.
 * Sending needs room in the source queue (in_use), so the completion entry always finds some.
 * Source: spec/ugni.md 4.10, 7.13-7.15; the layout is our own.
 */
#include "libugni/src/smsg_mailbox.h"

#include "emunic/client/lane.h"
#include "libugni/src/device.h"
#include "libugni/src/smsg_now.h"
#include "libugni/src/stats.h"

#define STREAM_FROM 2u /* messages that were there without an empty look between them */

/* ---- the peer's mailbox ---- */

/* The lane to the peer's mailbox is empty. False: there is none, now. */
static bool find_lane(struct gnii_ep *ep)
{
    struct emu_lane_target target = gnii_handle_target(ep->remote_addr, &ep->smsg->out_handle);

    return emu_lane_look_for(&ep->nic->port, &target, &ep->smsg->out_lane);
}

/* A flagged put without a command: pieces in a row behind the flag word, and an event. False: nothing has happened. */
static inline bool put_by_lane(struct gnii_ep *ep, uint64_t addr, const struct emu_lane_message *message,
                               struct emu_lane_event event)
{
    struct emu_lane *lane = &ep->smsg->out_lane;
    const struct emu_lane_piece *pieces = message->pieces;

    return (lane->epoch != 0 || find_lane(ep)) &&
           emu_lane_put_message(lane, addr, message,
                                sizeof(message->flag) + pieces[0].len_bytes + pieces[1].len_bytes + pieces[2].len_bytes,
                                event);
}

/* For a command whose end nobody waits for. Who waits for room in the port waits for the ends of others. */
static uint16_t quiet_if_roomy(struct gnii_ep *ep)
{
    return ep->nic->port.times && emu_port_has_much_room(&ep->nic->port) ? EMU_EV_QUIET : 0;
}

/* Tells the peer how many of its messages we have released. */
static void return_credits(struct gnii_ep *ep, bool wakes)
{
    struct gnii_smsg *s = ep->smsg;
    uint64_t event = gnii_cqe_remote(GNI_CQ_EVENT_TYPE_SMSG, ep->remote_event);
    uint64_t word = (uint64_t)s->in_mark << 32 | (uint32_t)s->taken;
    uint64_t complement = ~word;
    const struct emu_lane_piece pieces[EMU_LANE_PIECES] = { { &complement, sizeof(complement) } };
    const struct emu_lane_message message = { word, pieces };
    struct emu_cmd *cmd;

    if (!put_by_lane(ep, s->out_addr + WORD_RETURNED * sizeof(word), &message,
                     (struct emu_lane_event){ .event = wakes ? event : 0, .is_hint = true })) {
        cmd = begin_words(ep, WORD_RETURNED, word, NULL);
        if (!cmd)
            return;
        cmd->events = quiet_if_roomy(ep);
        if (wakes) {
            cmd->events |= EMU_EV_REMOTE | EMU_EV_HINT;
            cmd->remote_event = event;
        }
        emu_port_submit(&ep->nic->port);
    }
    s->returned = s->taken;
}

static void take_credits(struct gnii_smsg *s)
{
    uint64_t value;
    uint32_t more;

    if (!read_pair(s, WORD_RETURNED, &value) || value >> 32 != s->out_mark)
        return;
    more = (uint32_t)value - (uint32_t)s->acknowledged;
    if (more <= s->sent - s->acknowledged) /* more than was sent cannot have been released */
        s->acknowledged += more;
}

/* ---- settings ---- */

gni_return_t GNI_SmsgSetDeliveryMode(gni_nic_handle_t nic_handle, uint16_t dlvr_mode)
{
    struct gnii_nic *nic = gnii_nic_find(nic_handle);

    if (!nic || (dlvr_mode & ~0x01ffu) != 0 || (nic->is_gemini && (dlvr_mode & GNII_ARIES_DLVMODES) != 0))
        return GNI_RC_INVALID_PARAM;
    emu_biased_lock(&nic->lock);
    nic->smsg_dlvr_mode = dlvr_mode;
    emu_biased_unlock(&nic->lock);
    return GNI_RC_SUCCESS;
}

gni_return_t GNI_SmsgSetMaxRetrans(gni_nic_handle_t nic_handle, uint16_t max_retrans)
{
    struct gnii_nic *nic = gnii_nic_find(nic_handle);

    if (!nic)
        return GNI_RC_INVALID_PARAM;
    emu_biased_lock(&nic->lock);
    nic->smsg_max_retrans = max_retrans;
    emu_biased_unlock(&nic->lock);
    return GNI_RC_SUCCESS;
}

/* ---- sending ---- */

/* *stall_out: what NOT_DONE counts as. */
static inline gni_return_t check_room(struct gnii_ep *ep, uint64_t length_bytes, enum gnii_stat *stall_out)
{
    struct gnii_smsg *s = ep->smsg;
    struct gnii_cq *cq = ep->cq;

    if (length_bytes > s->out_stride_bytes - HEADER_BYTES || length_bytes > GNI_SMSG_MAX_SIZE)
        return GNI_RC_ERROR_RESOURCE;
    if (s->sent + 1 - s->acknowledged >= s->out_credits) /* this one would take the last credit, or has none */
        take_credits(s);
    if (s->sent - s->acknowledged >= s->out_credits) {
        *stall_out = GNII_STAT_SMSG_MBOX_CREDITS_STALL;
        return GNI_RC_NOT_DONE;
    }
    if (cq->in_use >= cq->capacity)
        gnii_cq_reclaim(cq);
    if (cq->in_use >= cq->capacity) {
        *stall_out = GNII_STAT_SMSG_REQ_STALL;
        return GNI_RC_NOT_DONE;
    }
    if (!gnii_cq_has_room_for_send(cq)) {
        *stall_out = GNII_STAT_SMSG_BUFF_CREDITS_STALL;
        return GNI_RC_NOT_DONE;
    }
    return GNI_RC_SUCCESS;
}

/* The message as a command. False: the NIC has gone. */
static bool put_message(struct gnii_ep *ep, uint64_t slot_addr, const struct emu_lane_piece *pieces,
                        uint64_t source_event, uint64_t remote_event, bool is_quiet)
{
    struct gnii_smsg *s = ep->smsg;
    uint64_t length_bytes = pieces[0].len_bytes + pieces[1].len_bytes + pieces[2].len_bytes;
    struct emu_cmd *cmd;
    uint8_t *out =
        begin_put(ep, slot_addr + sizeof(uint64_t), length_bytes, slot_addr, stamp_of(s->out_mark, s->sent), &cmd);

    if (!out)
        return false;
    for (unsigned i = 0; i < EMU_LANE_PIECES; i++) {
        if (pieces[i].len_bytes > 0)
            memcpy(out, pieces[i].data, pieces[i].len_bytes);
        out += pieces[i].len_bytes;
    }
    cmd->events = (uint16_t)(EMU_EV_LOCAL | EMU_EV_REMOTE | (is_quiet ? quiet_if_roomy(ep) : 0));
    cmd->source_cq = ep->cq->index;
    cmd->source_event = source_event;
    cmd->remote_event = remote_event;
    cmd->attempts = s->retransmits ? 1u + ep->nic->smsg_max_retrans : 0;
    emu_port_submit(&ep->nic->port);
    return true;
}

/* The next message of this end point is near: gets the lines that it goes to. */
static inline void expect_send(const struct gnii_smsg *s)
{
    if (s->out_lane.epoch != 0)
        emu_lane_expect(&s->out_lane, s->out_addr + CONTROL_BYTES + s->out_slot * s->out_stride_bytes, true);
}

/*
 * Of a stream of messages the one after next is known as well, and its line comes while the next one is written. That
 * next one's line stays where it is: a peer that answers each message polls it.
 */
static inline void expect_stream(const struct gnii_smsg *s)
{
    uint32_t slot = s->out_slot + 1 == s->out_credits ? 0 : s->out_slot + 1;

    if (s->out_lane.epoch != 0)
        emu_lane_expect(&s->out_lane, s->out_addr + CONTROL_BYTES + slot * s->out_stride_bytes, false);
}

/* What its completion entry needs, which is about to come or there. */
static inline void expect_entry(struct gnii_ep *ep, uint32_t msg_id)
{
    struct gnii_cq *cq = ep->cq;

    cq->sends[cq->sends_tail++ & cq->sends_mask] =
        (struct gnii_send){ .ep = ep, .msg_id = msg_id, .stamp = stamp_of(ep->smsg->out_mark, ep->smsg->sent) };
    ep->outstanding++;
    cq->in_use++;
}

static inline gni_return_t send_message(struct gnii_ep *ep, const struct gnii_smsg_message *m,
                                        enum gnii_stat *stall_out)
{
    struct gnii_smsg *s = ep->smsg;
    uint64_t length_bytes = (uint64_t)m->header_bytes + m->data_bytes;
    struct slot_header slot;
    uint64_t remote_event;
    uint64_t source_event =
        gnii_cqe_numbered(gnii_cqe_send(GNI_CQ_EVENT_TYPE_SMSG, m->msg_id, GNII_CQE_OK), ep->cq->sends_tail);
    const struct emu_lane_piece pieces[EMU_LANE_PIECES] = { { &slot, sizeof(slot) },
                                                            { m->header, m->header_bytes },
                                                            { m->data, m->data_bytes } };
    const struct emu_lane_message message = { stamp_of(s->out_mark, s->sent), pieces };
    /* Of a message without an entry, as its sender sees it: it is only room in the queue. */
    bool is_quiet = m->is_over && ep->cq->in_use < ep->cq->capacity / 2;
    uint64_t slot_addr;
    gni_return_t rc;

    slot_addr = s->out_addr + CONTROL_BYTES + s->out_slot * s->out_stride_bytes;
    expect_send(s);
    if (gnii_nic_is_lost(ep->nic)) {
        gnii_nic_tell_loss(ep->nic);
        return GNI_RC_ERROR_RESOURCE; /* NOT_DONE would have the program try for ever */
    }
    rc = check_room(ep, length_bytes, stall_out);
    if (rc != GNI_RC_SUCCESS)
        return rc;
    slot = (struct slot_header){ .length_bytes = (uint16_t)length_bytes,
                                 .tag = m->tag,
                                 .event = ep->remote_event,
                                 .flags = s->sent + 1 - s->acknowledged >= s->out_credits ? SLOT_STARVES : 0 };
    remote_event = gnii_cqe_remote(GNI_CQ_EVENT_TYPE_SMSG, ep->remote_event);
    if (s->acknowledged == 0) {
        slot.flags |= SLOT_EARLY;
        remote_event = gnii_cqe_numbered(remote_event, gnii_early_tag(s->out_mark));
    }
    if (s->sent == 0)
        gnii_smsg_say_hello(ep);
    if (put_by_lane(ep, slot_addr, &message, (struct emu_lane_event){ .event = remote_event })) {
        if (m->is_over)
            *m->is_over = true;
        else
            emu_lane_complete(ep->nic->port.direct, ep->cq->index, &ep->cq->consumer, source_event);
    } else if (!put_message(ep, slot_addr, pieces, source_event, remote_event, is_quiet)) {
        *stall_out = GNII_STAT_SMSG_BUFF_CREDITS_STALL;
        return GNI_RC_NOT_DONE;
    }
    if (!m->is_over || !*m->is_over)
        expect_entry(ep, m->msg_id);
    s->sent++;
    if (++s->out_slot == s->out_credits)
        s->out_slot = 0;
    expect_stream(s);
    return GNI_RC_SUCCESS;
}

/* Runs when the entry of a failed send is taken. A failure of this put as well means that the peer is out of reach. */
void gnii_smsg_fill_hole(struct gnii_ep *ep, uint64_t stamp)
{
    struct gnii_smsg *s = ep->smsg;
    struct slot_header slot = { .tag = GNI_SMSG_ANY_TAG };
    struct emu_cmd *cmd;
    uint64_t slot_addr;
    uint64_t number;
    uint8_t *out;

    if (!s || stamp >> 32 != s->out_mark || gnii_nic_is_lost(ep->nic))
        return; /* of an earlier connection */
    number = s->sent - (uint32_t)(s->sent + 1 - (uint32_t)stamp);
    if (number < s->acknowledged || number >= s->sent)
        return;
    slot.event = ep->remote_event;
    slot.flags = s->sent - s->acknowledged >= s->out_credits ? SLOT_STARVES : 0;
    slot_addr = s->out_addr + CONTROL_BYTES + number % s->out_credits * s->out_stride_bytes;
    out = begin_put(ep, slot_addr + sizeof(uint64_t), sizeof(slot), slot_addr, stamp, &cmd);
    if (!out)
        return;
    memcpy(out, &slot, sizeof(slot));
    /* The messages behind the hole may have been announced already. */
    cmd->events = EMU_EV_REMOTE | EMU_EV_HINT;
    cmd->remote_event = gnii_cqe_remote(GNI_CQ_EVENT_TYPE_SMSG, ep->remote_event);
    emu_port_submit(&ep->nic->port);
}

static inline gni_return_t send_or_relax(struct gnii_ep *ep, const struct gnii_smsg_message *m)
{
    gni_return_t rc = GNI_RC_INVALID_PARAM;
    enum gnii_stat stall = GNII_STAT_SMSG_REQ_STALL;
    bool is_again = false;

    do {
        emu_biased_lock(&ep->nic->lock);
        if (ep->smsg && ep->cq)
            rc = send_message(ep, m, &stall);
        emu_biased_unlock(&ep->nic->lock);
        if (rc != GNI_RC_NOT_DONE)
            return rc;
        /* A message layer keeps what has to wait, and does something else. */
        is_again = !is_again && !m->is_over && emu_port_relax_aside(&ep->nic->port, (uintptr_t)ep);
    } while (is_again);
    emu_biased_lock(&ep->nic->lock);
    gnii_stat_count(ep->nic, stall);
    emu_biased_unlock(&ep->nic->lock);
    return rc;
}

gni_return_t GNI_SmsgSendWTag(gni_ep_handle_t ep_hndl, void *header, uint32_t header_length, void *data,
                              uint32_t data_length, uint32_t msg_id, uint8_t tag)
{
    const struct gnii_smsg_message m = { header, data, header_length, data_length, msg_id, tag, NULL };
    struct gnii_ep *ep = gnii_ep_find(ep_hndl);

    if (!ep || tag == GNI_SMSG_ANY_TAG || (!header && header_length > 0) || (!data && data_length > 0))
        return GNI_RC_INVALID_PARAM;
    return send_or_relax(ep, &m);
}

gni_return_t gnii_smsg_send_now(gni_ep_handle_t ep_hndl, const struct gnii_smsg_message *message)
{
    struct gnii_ep *ep = gnii_ep_find(ep_hndl);

    *message->is_over = false;
    return ep ? send_or_relax(ep, message) : GNI_RC_INVALID_PARAM;
}

gni_return_t GNI_SmsgSend(gni_ep_handle_t ep_hndl, void *header, uint32_t header_length, void *data,
                          uint32_t data_length, uint32_t msg_id)
{
    return GNI_SmsgSendWTag(ep_hndl, header, header_length, data, data_length, msg_id, 0);
}

/* ---- receiving ---- */

/*
 * The line of the next message comes while the program works on this one. Where messages come faster than they are
 * taken, that of the one behind it does, too, because a line takes longer from the sender's cache than the work.
 */
static inline void expect_messages(struct gnii_ep *ep)
{
    struct gnii_smsg *s = ep->smsg;
    uint32_t slot = s->in_slot + 1 == s->in_credits ? 0 : s->in_slot + 1;

    atomic_store_explicit(&ep->nic->next_slot, in_slot(s), memory_order_relaxed);
    __builtin_prefetch(in_slot(s));
    if (++s->in_a_row > STREAM_FROM)
        __builtin_prefetch((const uint8_t *)(uintptr_t)(s->in_addr + CONTROL_BYTES + slot * s->in_stride_bytes));
}

static inline void release_slot(struct gnii_ep *ep)
{
    struct gnii_smsg *s = ep->smsg;
    bool peer_starves = (s->current_flags & SLOT_STARVES) != 0;

    if (s->current_flags & SLOT_EARLY)
        gnii_smsg_note_early_release(ep);
    s->has_current = false;
    s->taken++;
    if (++s->in_slot == s->in_credits)
        s->in_slot = 0;
    expect_messages(ep);
    if (peer_starves || 2 * (s->taken - s->returned) >= s->in_credits)
        return_credits(ep, peer_starves);
}

/* Runs at the slot of a message that got lost. True: *slot is that of a message behind it. */
static bool pass_over(struct gnii_ep *ep, struct slot_header *slot)
{
    struct gnii_smsg *s = ep->smsg;

    do {
        s->current_flags = slot->flags & SLOT_STARVES;
        release_slot(ep);
        if (!message_waits(s))
            return false;
        memcpy(slot, in_slot(s) + sizeof(uint64_t), sizeof(*slot));
    } while (slot->tag == GNI_SMSG_ANY_TAG);
    return true;
}

static inline gni_return_t get_next(struct gnii_ep *ep, void **header, uint8_t *tag)
{
    struct gnii_smsg *s = ep->smsg;
    struct slot_header slot;
    uint8_t *at;

    if (!s->has_current && !message_waits(s)) {
        s->empty_looks++;
        s->in_a_row = 0;
        if (!gnii_nic_is_lost(ep->nic))
            return GNI_RC_NOT_DONE;
        gnii_nic_tell_loss(ep->nic);
        return GNI_RC_INVALID_STATE;
    }
    s->empty_looks = 0;
    at = in_slot(s);
    memcpy(&slot, at + sizeof(uint64_t), sizeof(slot));
    if (slot.tag == GNI_SMSG_ANY_TAG) {
        if (!pass_over(ep, &slot))
            return GNI_RC_NOT_DONE;
        at = in_slot(s);
    }
    if (*tag != GNI_SMSG_ANY_TAG && *tag != slot.tag)
        return GNI_RC_NO_MATCH;
    expect_send(s);
    s->has_current = true;
    s->current_flags = slot.flags;
    *tag = slot.tag;
    *header = at + HEADER_BYTES;
    return GNI_RC_SUCCESS;
}

/* Where a message goes that is copied out. */
struct room {
    void *to;
    uint32_t bytes;
    uint32_t *length_out;
};

/* Of the message that get_next() has found: what its slot says, if a slot can hold it. The peer writes there. */
static inline uint32_t current_bytes(const struct gnii_smsg *s)
{
    struct slot_header slot;
    uint32_t most = s->in_stride_bytes - HEADER_BYTES;

    memcpy(&slot, in_slot(s) + sizeof(uint64_t), sizeof(slot));
    return slot.length_bytes < most ? slot.length_bytes : most;
}

/* The message that get_next() has found. SIZE_ERROR: it stays. */
static inline gni_return_t copy_out(struct gnii_ep *ep, const void *message, const struct room *room)
{
    uint32_t length_bytes = current_bytes(ep->smsg);

    if (length_bytes > room->bytes)
        return GNI_RC_SIZE_ERROR;
    emu_copy_few(room->to, message, length_bytes);
    *room->length_out = length_bytes;
    release_slot(ep);
    return GNI_RC_SUCCESS;
}

/*
 * room: where the message goes; NULL: it stays in its slot until it is released. polled_out: so many mailboxes are
 * polled in vain, 0: this is no poll.
 */
static inline gni_return_t poll_mailbox(struct gnii_ep *ep, void **header, uint8_t *tag, const struct room *room,
                                        uint32_t *polled_out)
{
    gni_return_t rc = GNI_RC_INVALID_PARAM;

    emu_biased_lock(&ep->nic->lock);
    if (ep->smsg) {
        rc = get_next(ep, header, tag);
        if (rc == GNI_RC_SUCCESS && room)
            rc = copy_out(ep, *header, room);
        /* The one empty look that ends a fetch loop is no reason to yield. */
        else if (rc == GNI_RC_NOT_DONE && ep->smsg->empty_looks > 1)
            *polled_out = ep->nic->n_mailboxes;
    }
    emu_biased_unlock(&ep->nic->lock);
    return rc;
}

static inline gni_return_t next_message(struct gnii_ep *ep, void **header, uint8_t *tag, const struct room *room)
{
    uint32_t polled = 0;
    gni_return_t rc = poll_mailbox(ep, header, tag, room, &polled);

    if (polled > 0 && emu_port_relax_among(&ep->nic->port, (uintptr_t)ep->smsg, polled))
        rc = poll_mailbox(ep, header, tag, room, &polled);
    if (rc == GNI_RC_SUCCESS)
        emu_port_found(&ep->nic->port);
    return rc;
}

gni_return_t GNI_SmsgGetNextWTag(gni_ep_handle_t ep_hndl, void **header, uint8_t *tag)
{
    struct gnii_ep *ep = gnii_ep_find(ep_hndl);

    return ep && header && tag ? next_message(ep, header, tag, NULL) : GNI_RC_INVALID_PARAM;
}

gni_return_t gnii_smsg_take(gni_ep_handle_t ep_hndl, void *to, uint32_t room_bytes, uint32_t *length_bytes_out,
                            uint8_t *tag_out)
{
    const struct room room = { to, room_bytes, length_bytes_out };
    struct gnii_ep *ep = gnii_ep_find(ep_hndl);
    void *message;

    *tag_out = GNI_SMSG_ANY_TAG;
    return ep ? next_message(ep, &message, tag_out, &room) : GNI_RC_INVALID_PARAM;
}

bool gnii_smsg_waits(gni_ep_handle_t ep_hndl)
{
    struct gnii_ep *ep = gnii_ep_find(ep_hndl);

    if (!ep || !ep->smsg)
        return false;
    if (ep->smsg->has_current || message_waits(ep->smsg))
        return true;
    ep->smsg->in_a_row = 0;
    return false;
}

gni_return_t GNI_SmsgGetNext(gni_ep_handle_t ep_hndl, void **header)
{
    uint8_t tag = GNI_SMSG_ANY_TAG;

    return GNI_SmsgGetNextWTag(ep_hndl, header, &tag);
}

gni_return_t GNI_SmsgRelease(gni_ep_handle_t ep_hndl)
{
    struct gnii_ep *ep = gnii_ep_find(ep_hndl);
    gni_return_t rc = GNI_RC_SUCCESS;
    struct gnii_smsg *s;

    if (!ep)
        return GNI_RC_INVALID_PARAM;
    emu_biased_lock(&ep->nic->lock);
    s = ep->smsg;
    if (!s) {
        rc = GNI_RC_INVALID_PARAM;
    } else if (!s->has_current) {
        rc = GNI_RC_NOT_DONE;
    } else {
        release_slot(ep);
    }
    emu_biased_unlock(&ep->nic->lock);
    return rc;
}
