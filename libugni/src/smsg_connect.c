/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Connections of short messages: hellos and marks, and messages that came before their receiver. The layout and its
 * reasons are in smsg.c.
 */
#include <stdlib.h>
#include <unistd.h>

#include "emunic/base/clock.h"
#include "libugni/src/smsg_mailbox.h"

static uint64_t align_line(uint64_t value)
{
    return (value + LINE - 1) & ~(uint64_t)(LINE - 1);
}

static uint64_t stride_bytes(const gni_smsg_attr_t *attr)
{
    return align_line((uint64_t)attr->msg_maxsize + HEADER_BYTES);
}

static uint64_t mailbox_addr(const gni_smsg_attr_t *attr)
{
    return align_line((uint64_t)(uintptr_t)attr->msg_buffer + attr->mbox_offset);
}

static bool attr_is_sound(const gni_smsg_attr_t *attr)
{
    return (attr->msg_type == GNI_SMSG_TYPE_MBOX || attr->msg_type == GNI_SMSG_TYPE_MBOX_AUTO_RETRANSMIT) &&
           attr->mbox_maxcredit > 0 && attr->msg_maxsize > 0 && attr->msg_maxsize <= GNI_SMSG_MAX_SIZE;
}

gni_return_t GNI_SmsgBufferSizeNeeded(gni_smsg_attr_t *smsg_attr, unsigned int *size)
{
    uint64_t bytes;

    if (!smsg_attr || !size || !attr_is_sound(smsg_attr))
        return GNI_RC_INVALID_PARAM;
    /* One line more, because a mailbox may start anywhere. */
    bytes = LINE + CONTROL_BYTES + smsg_attr->mbox_maxcredit * stride_bytes(smsg_attr);
    if (bytes > UINT32_MAX)
        return GNI_RC_INVALID_PARAM;
    *size = (unsigned int)bytes;
    return GNI_RC_SUCCESS;
}

/* ---- hellos ---- */

static uint64_t mix(uint64_t hash, uint64_t value)
{
    /* The finaliser of splitmix64 (Steele, Lea, Flood 2014). */
    hash += value + 0x9e3779b97f4a7c15ull;
    hash = (hash ^ hash >> 30) * 0xbf58476d1ce4e5b9ull;
    hash = (hash ^ hash >> 27) * 0x94d049bb133111ebull;
    return hash ^ hash >> 31;
}

/* Hash of one direction's attributes: both sides compute the same value. */
static uint32_t direction_of(const gni_smsg_attr_t *sender, const gni_smsg_attr_t *receiver)
{
    uint64_t hash = 0;

    hash = mix(hash, mailbox_addr(sender));
    hash = mix(hash, sender->mem_hndl.qword1);
    hash = mix(hash, sender->mem_hndl.qword2);
    hash = mix(hash, mailbox_addr(receiver));
    hash = mix(hash, receiver->mem_hndl.qword1);
    hash = mix(hash, receiver->mem_hndl.qword2);
    return (uint32_t)hash;
}

/* What this process says of a new connection. Its number is never 0. */
static uint64_t make_hello(uint32_t direction)
{
    static _Atomic uint32_t connections;
    uint32_t number = (uint32_t)mix(emu_clock_ns(), (uint64_t)getpid() << 32 | atomic_fetch_add(&connections, 1));

    return (uint64_t)direction << 32 | (number ? number : 1);
}

/* The number of another hello, bound to this one. */
static uint64_t bind_number(uint64_t hello, uint32_t number)
{
    return (uint64_t)number << 32 | (uint32_t)mix(hello, number);
}

/* Never 0. */
static uint32_t mark_of(uint64_t hello)
{
    uint32_t mark = (uint32_t)mix(0, hello);

    return mark ? mark : 1;
}

/* A hello for this connection of ours. */
static bool read_hello(const struct gnii_smsg *s, uint64_t *hello_out)
{
    uint64_t hello;
    uint64_t answers;

    if (!read_pair(s, WORD_HELLO, &hello) || hello >> 32 != s->in_direction || hello == control_word(s, WORD_PAST))
        return false;
    answers = control_word(s, WORD_ANSWERS);
    if (answers != bind_number(hello, (uint32_t)(answers >> 32)) || answers >> 32 == (uint32_t)s->out_hello)
        return false;
    *hello_out = hello;
    return true;
}

static void go_by(struct gnii_smsg *s, uint64_t hello)
{
    s->in_hello = hello;
    s->in_mark = mark_of(hello);
}

/* The hello that the newest one has replaced. */
static bool read_before(const struct gnii_smsg *s, uint64_t *hello_out)
{
    uint64_t before;
    uint64_t hello;

    if (!read_pair(s, WORD_HELLO, &hello) || hello >> 32 != s->in_direction)
        return false;
    before = control_word(s, WORD_BEFORE);
    if (before != bind_number(hello, (uint32_t)(before >> 32)))
        return false;
    *hello_out = (uint64_t)s->in_direction << 32 | before >> 32;
    return *hello_out != control_word(s, WORD_PAST);
}

void gnii_smsg_learn_peer(struct gnii_smsg *s)
{
    uint64_t hello;

    if (s->in_mark != 0 && slot_shows(s, s->in_mark))
        return;
    if (s->in_mark == 0 && read_before(s, &hello) && slot_shows(s, mark_of(hello)))
        go_by(s, hello);
    else if (read_hello(s, &hello))
        go_by(s, hello);
}

void gnii_smsg_say_hello(struct gnii_ep *ep)
{
    const struct gnii_smsg *s = ep->smsg;
    const uint64_t more[2] = { bind_number(s->out_hello, s->past_number), bind_number(s->out_hello, s->before_number) };

    if (begin_words(ep, WORD_HELLO, s->out_hello, more))
        emu_port_publish(&ep->nic->port);
}

/* ---- messages that came before us ---- */

/* Puts the entry of a message into our queue again. */
static void raise_entry(struct gnii_ep *ep, const gni_smsg_attr_t *local, uint32_t event, uint16_t tag)
{
    struct emu_port *port = &ep->nic->port;
    struct emu_cmd *cmd = emu_port_command(port, 0, NULL);

    if (!cmd)
        return;
    cmd->op = EMU_OP_PUT;
    cmd->flags = EMU_CMD_INLINE;
    cmd->events = EMU_EV_REMOTE | EMU_EV_HINT;
    cmd->source_cq = EMU_CQ_NONE;
    cmd->remote_event = gnii_cqe_numbered(gnii_cqe_remote(GNI_CQ_EVENT_TYPE_SMSG, event), tag);
    gnii_cmd_set_target(cmd, port->nid, &local->mem_hndl, ep->smsg->in_addr);
    emu_port_submit(port);
}

/* The queue of our mailbox if it has lost entries; NULL: it has not, or is another NIC handle's. */
static struct gnii_cq *queue_with_losses(struct gnii_ep *ep, const struct gnii_md *md)
{
    struct gnii_cq *cq;

    LIST_FOREACH(cq, &ep->nic->cqs, link) {
        if (md->nic == ep->nic && cq->index == md->dst_cq)
            return cq->has_lost || emu_cq_has_lost(&cq->consumer) ? cq : NULL;
    }
    return NULL;
}

/* Entries of our early messages that are in the queue. */
static uint32_t count_entries(const struct gnii_cq *cq, uint16_t tag)
{
    uint32_t n = 0;
    uint64_t event;

    for (uint64_t i = 0; emu_cq_peek(&cq->consumer, i, &event) == EMU_CQ_OK; i++) {
        n += gnii_cqe_engine(event) == GNII_CQE_ENGINE_REMOTE && gnii_cqe_type(event) == GNI_CQ_EVENT_TYPE_SMSG &&
             gnii_cqe_number(event) == tag;
    }
    return n;
}

/* Was its entry taken? Then it is about to be put back. */
static bool take_back(struct gnii_ep *ep, uint32_t event, uint16_t tag)
{
    struct gnii_job *job = ep->nic->job;
    bool is_taken;

    pthread_mutex_lock(&job->lock);
    is_taken = gnii_early_is_taken(&job->early, event, tag);
    if (is_taken)
        gnii_early_put_back(&job->early, event, tag);
    pthread_mutex_unlock(&job->lock);
    return is_taken;
}

/*
 * Messages that wait already: those whose entries were taken when nobody could fetch them get them back. Where the
 * queue has lost entries, so do those that have none in it.
 */
static void repeat_entries(struct gnii_ep *ep, const gni_smsg_attr_t *local, const struct gnii_md *md)
{
    const struct gnii_smsg *s = ep->smsg;
    struct gnii_cq *cq = queue_with_losses(ep, md);
    uint16_t tag = gnii_early_tag(s->in_mark);
    uint32_t n_there = cq ? count_entries(cq, tag) : 0;

    for (uint32_t i = 0; i < s->in_credits; i++) {
        const uint8_t *slot = in_slot(s) + i * s->in_stride_bytes;
        struct slot_header header;

        /* Pairs with the NIC's store of the flag. */
        if (atomic_load_explicit((const _Atomic uint64_t *)(const void *)slot, memory_order_acquire) !=
            stamp_of(s->in_mark, i))
            break;
        memcpy(&header, slot + sizeof(uint64_t), sizeof(header));
        if ((header.flags & SLOT_EARLY) == 0)
            continue;
        if (take_back(ep, header.event, tag))
            raise_entry(ep, local, header.event, tag);
        else if (cq && n_there > 0)
            n_there--;
        else if (cq)
            raise_entry(ep, local, header.event, tag);
    }
}

void gnii_smsg_note_early_release(struct gnii_ep *ep)
{
    struct gnii_smsg *s = ep->smsg;
    struct gnii_job *job = ep->nic->job;
    struct slot_header header;

    memcpy(&header, in_slot(s) + sizeof(uint64_t), sizeof(header));
    s->early_event = header.event;
    s->has_early = true;
    pthread_mutex_lock(&job->lock);
    gnii_early_released(&job->early, header.event, gnii_early_tag(s->in_mark));
    pthread_mutex_unlock(&job->lock);
}

/* Of a hello that a connection between these two mailboxes has left; 0: none has. */
static uint32_t number_in(const struct gnii_smsg *s, unsigned word, uint32_t direction)
{
    uint64_t hello = control_word(s, word);

    return hello >> 32 == direction ? (uint32_t)hello : 0;
}

/* ---- calls ---- */

static void forget_early(struct gnii_ep *ep)
{
    struct gnii_smsg *s = ep->smsg;
    struct gnii_job *job = ep->nic->job;

    if (!s->has_early || !job)
        return;
    pthread_mutex_lock(&job->lock);
    gnii_early_forget(&job->early, s->early_event, gnii_early_tag(s->in_mark));
    pthread_mutex_unlock(&job->lock);
}

void gnii_smsg_free(struct gnii_ep *ep)
{
    struct gnii_smsg *s = ep->smsg;

    if (!s)
        return;
    forget_early(ep);
    /*
     * A mailbox that is no longer registered may have been freed or handed to somebody else. With the NIC its handle
     * goes, and what comes later is told from this by another one.
     */
    if (!atomic_load(&ep->nic->is_closing) && gnii_md_is_live(ep->nic, s->in_mdh, s->in_generation) && knows_peer(s))
        atomic_store_explicit(&control_words(s)[WORD_PAST], s->in_hello, memory_order_relaxed);
    free(s);
    ep->smsg = NULL;
    ep->nic->n_mailboxes--;
}

static gni_return_t connect_smsg(struct gnii_ep *ep, const gni_smsg_attr_t *local, const gni_smsg_attr_t *remote)
{
    uint64_t stride = stride_bytes(local);
    uint64_t span = mailbox_addr(local) + CONTROL_BYTES + local->mbox_maxcredit * stride;
    uint64_t start = (uint64_t)(uintptr_t)local->msg_buffer + local->mbox_offset;
    const struct gnii_md *md = gnii_md_find(ep->nic, &local->mem_hndl, start, span - start);
    struct gnii_handle_fields out_handle;
    uint64_t hello = make_hello(direction_of(local, remote));
    struct gnii_smsg *s;

    if (!ep->is_bound)
        return GNI_RC_INVALID_STATE;
    if (!md || md->is_read_only || gnii_handle_decode(&remote->mem_hndl, &out_handle) < 0)
        return GNI_RC_INVALID_PARAM;
    s = calloc(1, sizeof(*s));
    if (!s)
        return GNI_RC_ERROR_NOMEM;
    ep->nic->n_mailboxes += !ep->smsg;
    free(ep->smsg); /* initialised twice: still the same connection of the end point */
    *s = (struct gnii_smsg){
        .in_addr = mailbox_addr(local),
        .in_stride_bytes = stride,
        .in_credits = local->mbox_maxcredit,
        .in_direction = direction_of(remote, local),
        .in_mdh = md->mdh,
        .in_generation = md->generation,
        .out_addr = mailbox_addr(remote),
        .out_stride_bytes = stride_bytes(remote),
        .out_credits = remote->mbox_maxcredit,
        .out_hello = hello,
        .out_mark = mark_of(hello),
        .out_handle = out_handle,
        .retransmits = local->msg_type == GNI_SMSG_TYPE_MBOX_AUTO_RETRANSMIT,
    };
    s->past_number = number_in(s, WORD_PAST, s->in_direction);
    s->before_number = number_in(s, WORD_OWN, (uint32_t)(hello >> 32));
    atomic_store_explicit(&control_words(s)[WORD_OWN], hello, memory_order_relaxed);
    ep->smsg = s;
    gnii_smsg_say_hello(ep);
    if (read_hello(s, &hello))
        go_by(s, hello);
    if (message_waits(s))
        repeat_entries(ep, local, md);
    return GNI_RC_SUCCESS;
}

gni_return_t GNI_SmsgInit(gni_ep_handle_t ep_hndl, gni_smsg_attr_t *local_smsg_attr, gni_smsg_attr_t *remote_smsg_attr)
{
    struct gnii_ep *ep = gnii_ep_find(ep_hndl);
    gni_return_t rc;

    if (!ep || !local_smsg_attr || !remote_smsg_attr || !attr_is_sound(local_smsg_attr) ||
        !attr_is_sound(remote_smsg_attr))
        return GNI_RC_INVALID_PARAM;
    emu_biased_lock(&ep->nic->lock);
    rc = connect_smsg(ep, local_smsg_attr, remote_smsg_attr);
    emu_biased_unlock(&ep->nic->lock);
    return rc;
}
