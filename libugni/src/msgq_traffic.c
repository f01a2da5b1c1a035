/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages of a shared message queue.
 *
 * Two nodes that are connected have a mailbox each, a ring of slots in the region of the receiving node. All
 * instances of the sending node use it together, under the connection's lock in their own region:
 *
 *   send      number = sent; note (who, to whom); sent = number + 1; put message and then its stamp into the slot
 *   receive   look at the numbers from head on; take what has come; head moves over what was taken; return credits
 *
 * A put names the receiver's own memory handle, so its NIC raises an event in the receiver's private queue, which
 * tells that there is something in this connection; what and how much the stamps tell. Events may be lost (overrun,
 * death of a sender between message and event), messages are not: each call also looks at one connection without
 * cause.
 *
 * Whoever looks takes its own messages and puts those for others into their pools in the region, so that an instance
 * that does not call GNI_MsgqProgress() does not use up the credits of all, until its pool is full too. The lock of
 * the connection is held meanwhile; the program's callback runs later, without locks, on a copy.
 *
 * Order. A NIC handle's puts arrive in order. Numbers that have not come are skipped, because another sender's put
 * may be late or may never come. But a message behind such a gap is taken only if the gap is still one when we look
 * again after we have seen the message; otherwise we start again: so nothing overtakes what its own sender sent
 * before. A message that must stay, because the pool of its receiver is full, keeps all later ones for that receiver
 * there. An owner looks into its pool before it takes from a mailbox, with the lock held: what is in the pool came
 * first.
 *
 * Death and loss. Single stores are the only steps, in this order, and each point in between makes sense:
 *   - a mover puts the message into the pool, then marks it taken. Dead in between: the next one moves it once more,
 *     and the receiver, who remembers the last stamp of each slot, drops the second copy.
 *   - a sender notes itself and the receiver before it takes the number. If either dies, perhaps nothing comes for
 *     that number. Every instance of the sending node that misses credits, or looks, finds such numbers and puts a
 *     void stamp into the slot, through a memory handle of an instance that lives. By then the message itself has
 *     come, or never will: the domain table says that a port is gone after emunic has dropped its commands, and a
 *     direct put to a dead receiver runs under the connection's lock. The receiver takes the message if it is there,
 *     else the void.
 *   - a message that failed on the way has nobody as its sender any more, once its entry was taken: the same holds for
 *     it.
 *   - an instance on a node of another host is taken to live until its host tells that it does not, or a message to it
 *     fails for want of its registration.
 *   - credits are counts, one word per returning instance (two instances' puts may arrive in any order); the largest
 *     one holds. What was returned by or through an instance that died since is returned again.
 *
 * Source: spec/ugni.md 4.11; the protocol is our own.
 */
#include <stdlib.h>
#include <string.h>

#include "libugni/src/handle_target.h"
#include "libugni/src/msgq.h"

#define SLOT_HEADER_BYTES sizeof(struct gnii_msgq_slot)

static uint32_t load32(const _Atomic uint32_t *word)
{
    return atomic_load_explicit(word, memory_order_relaxed);
}

static uint64_t load64(const _Atomic uint64_t *word)
{
    return atomic_load_explicit(word, memory_order_relaxed);
}

static void store64(_Atomic uint64_t *word, uint64_t value)
{
    atomic_store_explicit(word, value, memory_order_relaxed);
}

static struct gnii_msgq_connection *connection_of(struct gnii_msgq *m, uint32_t index)
{
    return gnii_msgq_connection(m->region, &m->geometry, index);
}

static uint64_t directory_entry(struct gnii_msgq *m, uint32_t index)
{
    return atomic_load_explicit(gnii_msgq_directory(m->region, &m->geometry, index), memory_order_acquire);
}

/* ---- peers ---- */

/* Where puts to one instance of the remote node go. */
struct target {
    uint32_t pe;
    uint32_t connection_off; /* in its region */
    struct gnii_handle_fields handle;
};

static uint32_t count_peers(const struct gnii_msgq_connection *c)
{
    uint32_t n = load32(&c->n_peers);

    return n < GNI_MSGQ_NODE_INSTS_MAX ? n : GNI_MSGQ_NODE_INSTS_MAX;
}

/* Only its own host knows what is registered on such a node. */
static bool is_elsewhere(const struct emu_table *table, uint32_t node)
{
    return emu_table_nodes(table)[node].host != EMU_NODE_HERE;
}

/* Is that instance's registration still there, as far as we know? False too for a peer that makes no sense. */
static bool find_target(struct gnii_msgq *m, const struct gnii_msgq_connection *c, uint32_t pe, uint32_t peer,
                        struct target *target_out)
{
    const struct emu_table *table = gnii_msgq_table(m);
    uint32_t node = emu_table_node_index(table, pe);
    const struct emu_table_md *md;
    gni_mem_handle_t handle;

    if (peer >= count_peers(c) || node == EMU_NID_NONE)
        return false;
    handle.qword1 = load64(&c->peers[peer].handle[0]);
    handle.qword2 = load64(&c->peers[peer].handle[1]);
    *target_out = (struct target){ .pe = pe, .connection_off = load32(&c->peers[peer].connection_off) };
    if (gnii_handle_decode(&handle, &target_out->handle) < 0 || target_out->handle.mdh >= EMU_MD_COUNT)
        return false;
    md = &emu_table_mds(table, node)[target_out->handle.mdh];
    if (is_elsewhere(table, node))
        return atomic_load_explicit(&md->ended, memory_order_relaxed) != target_out->handle.generation;
    return atomic_load_explicit(&md->state, memory_order_acquire) != 0 &&
           md->generation == target_out->handle.generation && md->base == target_out->handle.base_va;
}

static bool find_any_target(struct gnii_msgq *m, const struct gnii_msgq_connection *c, uint32_t pe,
                            struct target *target_out, uint32_t *peer_out)
{
    uint32_t n_peers = count_peers(c);

    for (uint32_t i = 0; i < n_peers; i++) {
        uint32_t peer = (m->slot + i) % n_peers;

        if (find_target(m, c, pe, peer, target_out)) {
            *peer_out = peer;
            return true;
        }
    }
    return false;
}

/* ---- puts ---- */

/* Data and the flag word that follows them, at offsets in the remote connection. */
struct put {
    uint64_t off;
    uint64_t length_bytes;
    uint64_t flag_off;
    uint64_t flag_value;
};

/* As gnii_cmd_put_flag(). */
static uint8_t *begin_put(struct gnii_msgq *m, const struct target *t, const struct put *put, struct emu_cmd **cmd_out)
{
    uint64_t base = t->handle.base_va + t->connection_off;
    uint8_t *data = gnii_cmd_put_flag(m->nic, put->length_bytes, base + put->flag_off, put->flag_value, cmd_out);

    if (data)
        gnii_cmd_set_handle(*cmd_out, t->pe, &t->handle, base + put->off);
    return data;
}

/* A pair at `off` of the remote connection. */
static void put_pair(struct gnii_msgq *m, const struct target *t, uint64_t off, uint64_t value)
{
    uint64_t complement = ~value;
    const struct put put = { .off = off + offsetof(struct gnii_msgq_pair, complement),
                             .length_bytes = sizeof(complement),
                             .flag_off = off,
                             .flag_value = value };
    struct emu_cmd *cmd;
    uint8_t *data = begin_put(m, t, &put, &cmd);

    if (!data)
        return;
    memcpy(data, &complement, sizeof(complement));
    emu_port_submit(&m->nic->port);
}

static bool read_pair(const struct gnii_msgq_pair *pair, uint32_t nonce, uint32_t *value_out)
{
    /* Pairs with the NIC's store of the flag, which is this word. */
    uint64_t value = atomic_load_explicit(&pair->value, memory_order_acquire);

    if (load64(&pair->complement) != ~value || value >> 32 != nonce)
        return false;
    *value_out = (uint32_t)value;
    return true;
}

void gnii_msgq_tell_release(struct gnii_msgq *m, uint32_t index, uint32_t pe)
{
    struct gnii_msgq_connection *c = connection_of(m, index);
    struct target t;
    uint32_t peer;

    if (find_any_target(m, c, pe, &t, &peer))
        put_pair(m, &t, offsetof(struct gnii_msgq_connection, closed), (uint64_t)load32(&c->peer_nonce) << 32 | 1);
}

/* ---- outgoing: credits and voids; connection lock held ---- */

static uint64_t slot_off(uint32_t peer_max_bytes, uint32_t peer_credits, uint64_t number)
{
    return sizeof(struct gnii_msgq_connection) + number % peer_credits * gnii_msgq_slot_bytes(peer_max_bytes);
}

/* Messages that may be on their way: both nodes keep a record of each. At least 1. */
static uint32_t window_of(const struct gnii_msgq *m, const struct gnii_msgq_connection *c)
{
    uint32_t theirs = load32(&c->peer_credits);

    if (theirs == 0)
        return 1; /* not connected, or nonsense */
    return theirs < m->geometry.credits ? theirs : m->geometry.credits;
}

static uint64_t in_flight(const struct gnii_msgq *m, const struct gnii_msgq_connection *c)
{
    uint64_t n = load64(&c->sent) - load64(&c->acknowledged);

    return n <= m->geometry.credits ? n : m->geometry.credits;
}

static void take_credits(struct gnii_msgq_connection *c)
{
    uint64_t acknowledged = load64(&c->acknowledged);
    uint64_t on_the_way = load64(&c->sent) - acknowledged;
    uint32_t nonce = load32(&c->nonce);
    uint32_t most = 0;

    for (uint32_t i = 0; i < GNI_MSGQ_NODE_INSTS_MAX; i++) {
        uint32_t value;

        if (!read_pair(&c->credits[i], nonce, &value))
            continue;
        value -= (uint32_t)acknowledged;
        if (value <= on_the_way && value > most) /* more than was sent cannot have been taken */
            most = value;
    }
    store64(&c->acknowledged, acknowledged + most);
}

/* Tells the receiver that the message of that number will not come. */
static void put_void(struct gnii_msgq *m, struct gnii_msgq_connection *c, uint32_t pe, uint64_t number)
{
    uint32_t peer_credits = load32(&c->peer_credits);
    struct emu_cmd *cmd;
    struct target t;
    struct put put;
    uint32_t peer;
    uint64_t off;

    if (peer_credits == 0 || !find_any_target(m, c, pe, &t, &peer))
        return;
    off = slot_off(load32(&c->peer_max_bytes), peer_credits, number) + offsetof(struct gnii_msgq_slot, void_stamp);
    put = (struct put){ .off = off, .flag_off = off, .flag_value = gnii_msgq_stamp(load32(&c->peer_nonce), number) };
    if (!begin_put(m, &t, &put, &cmd))
        return;
    cmd->events = EMU_EV_REMOTE;
    cmd->remote_event = gnii_cqe_remote(GNI_CQ_EVENT_TYPE_MSGQ, t.connection_off / GNII_MSGQ_LINE);
    emu_port_submit(&m->nic->port);
    atomic_store_explicit(&gnii_msgq_sent(c, &m->geometry, number)->voided_via, peer, memory_order_relaxed);
    store64(&gnii_msgq_sent(c, &m->geometry, number)->voided_by, m->me);
}

/* Numbers whose sender or receiver has died, or whose message got lost: their messages may never come. */
static void void_what_is_lost(struct gnii_msgq *m, struct gnii_msgq_connection *c, uint32_t pe)
{
    uint64_t first = load64(&c->acknowledged);
    uint64_t n = in_flight(m, c);

    for (uint64_t i = 0; i < n; i++) {
        struct gnii_msgq_sent *sent = gnii_msgq_sent(c, &m->geometry, first + i);
        struct target t;

        if (gnii_msgq_lives(gnii_msgq_table(m), load64(&sent->by)) && find_target(m, c, pe, load32(&sent->peer), &t))
            continue;
        /* Told by or through one that has died since, it may not have been heard. */
        if (!gnii_msgq_lives(gnii_msgq_table(m), load64(&sent->voided_by)) ||
            !find_target(m, c, pe, load32(&sent->voided_via), &t))
            put_void(m, c, pe, first + i);
    }
}

/* ---- sending ---- */

/* What a send needs, looked up once. */
struct send {
    struct gnii_msgq *m;
    struct gnii_msgq_connection *c;
    struct target target;
    uint32_t index;
    uint32_t peer;
    uint32_t peer_max_bytes;
    uint32_t peer_credits;
};

static gni_return_t find_receiver(struct send *s, const struct gnii_ep *ep)
{
    uint32_t n_peers = count_peers(s->c);
    uint32_t value;

    s->peer_max_bytes = load32(&s->c->peer_max_bytes);
    s->peer_credits = load32(&s->c->peer_credits);
    if (s->peer_max_bytes > GNI_MSGQ_MSG_SZ_MAX || s->peer_credits == 0)
        return GNI_RC_INVALID_STATE;
    for (s->peer = 0; s->peer < n_peers && load32(&s->c->peers[s->peer].id) != ep->remote_id; s->peer++)
        ;
    if (s->peer == n_peers)
        return GNI_RC_NO_MATCH;
    if (read_pair(&s->c->closed, load32(&s->c->nonce), &value) ||
        !find_target(s->m, s->c, ep->remote_addr, s->peer, &s->target))
        return GNI_RC_INVALID_STATE;
    return GNI_RC_SUCCESS;
}

static gni_return_t check_credits(struct send *s, const struct gnii_ep *ep)
{
    uint32_t window = window_of(s->m, s->c);

    if (in_flight(s->m, s->c) < window)
        return GNI_RC_SUCCESS;
    take_credits(s->c);
    if (in_flight(s->m, s->c) < window)
        return GNI_RC_SUCCESS;
    void_what_is_lost(s->m, s->c, ep->remote_addr);
    ep->nic->stats[GNI_STAT_SMSG_MBOX_CREDITS_STALL]++;
    return GNI_RC_NOT_DONE;
}

/* Room for the completion entry. */
static gni_return_t check_queue(struct gnii_cq *cq)
{
    if (cq->in_use >= cq->capacity)
        gnii_cq_reclaim(cq);
    if (cq->in_use >= cq->capacity)
        return GNI_RC_NOT_DONE;
    return gnii_cq_has_room_for_send(cq) ? GNI_RC_SUCCESS : GNI_RC_NOT_DONE;
}

/* One message, as the program gave it. */
struct parts {
    const void *hdr;
    const void *msg;
    uint32_t hdr_len;
    uint32_t msg_len;
    uint32_t msg_id;
    uint8_t tag;
};

/* Connection lock held; nothing fails any more but for a NIC that has gone. */
static gni_return_t put_message(struct send *s, struct gnii_ep *ep, const struct parts *p)
{
    struct gnii_msgq *m = s->m;
    uint64_t number = load64(&s->c->sent);
    struct gnii_msgq_sent *sent = gnii_msgq_sent(s->c, &m->geometry, number);
    uint64_t off = slot_off(s->peer_max_bytes, s->peer_credits, number);
    struct gnii_msgq_slot slot = { .src_id = m->nic->port.instance_id,
                                   .dst_id = ep->remote_id,
                                   .tag = p->tag,
                                   .length_bytes = (uint16_t)(p->hdr_len + p->msg_len) };
    const size_t behind_stamps = offsetof(struct gnii_msgq_slot, src_id);
    const struct put put = { .off = off + behind_stamps,
                             .length_bytes = SLOT_HEADER_BYTES - behind_stamps + slot.length_bytes,
                             .flag_off = off,
                             .flag_value = gnii_msgq_stamp(load32(&s->c->peer_nonce), number) };
    struct emu_cmd *cmd;
    uint8_t *out = begin_put(m, &s->target, &put, &cmd);

    if (!out)
        return GNI_RC_INVALID_STATE;
    memcpy(out, (const uint8_t *)&slot + behind_stamps, SLOT_HEADER_BYTES - behind_stamps);
    out += SLOT_HEADER_BYTES - behind_stamps;
    if (p->hdr_len > 0)
        memcpy(out, p->hdr, p->hdr_len);
    if (p->msg_len > 0)
        memcpy(out + p->hdr_len, p->msg, p->msg_len);
    cmd->events = EMU_EV_LOCAL | EMU_EV_REMOTE;
    cmd->source_cq = ep->cq->index;
    cmd->source_event =
        gnii_cqe_numbered(gnii_cqe_send(GNI_CQ_EVENT_TYPE_MSGQ, p->msg_id, GNII_CQE_OK), ep->cq->sends_tail);
    cmd->remote_event = gnii_cqe_remote(GNI_CQ_EVENT_TYPE_MSGQ, s->target.connection_off / GNII_MSGQ_LINE);
    store64(&sent->by, m->me);
    store64(&sent->voided_by, 0);
    atomic_store_explicit(&sent->peer, s->peer, memory_order_relaxed);
    /* The note before the number: whoever takes the lock over finds both or neither. */
    atomic_store_explicit(&s->c->sent, number + 1, memory_order_release);
    emu_port_submit(&m->nic->port);
    ep->outstanding++;
    ep->cq->in_use++;
    m->in_flight++;
    ep->cq->sends[ep->cq->sends_tail++ & ep->cq->sends_mask] = (struct gnii_send){
        .ep = ep, .msg_id = p->msg_id, .is_msgq = true, .msgq = m, .stamp = (uint64_t)s->index << 32 | (uint32_t)number
    };
    return GNI_RC_SUCCESS;
}

static gni_return_t send_message(struct gnii_msgq *m, struct gnii_ep *ep, const struct parts *p)
{
    enum gnii_msgq_state state;
    struct send s = { .m = m };
    gni_return_t rc;
    uint32_t index;

    if (gnii_nic_is_lost(m->nic)) {
        gnii_nic_tell_loss(m->nic);
        return GNI_RC_INVALID_STATE;
    }
    state = gnii_msgq_find_connection(m, ep->remote_addr, &index);
    if (state != GNII_MSGQ_CONNECTED)
        return state == GNII_MSGQ_FREE ? GNI_RC_NO_MATCH : GNI_RC_INVALID_STATE;
    s.c = connection_of(m, index);
    s.index = index;
    if (!gnii_msgq_lock(&s.c->lock, gnii_msgq_table(m), m->me))
        return GNI_RC_NOT_DONE;
    rc = GNI_RC_NO_MATCH; /* released since */
    if (directory_entry(m, index) == ((uint64_t)GNII_MSGQ_CONNECTED << 32 | ep->remote_addr))
        rc = find_receiver(&s, ep);
    if (rc == GNI_RC_SUCCESS && (uint64_t)p->hdr_len + p->msg_len > s.peer_max_bytes)
        rc = GNI_RC_SIZE_ERROR;
    if (rc == GNI_RC_SUCCESS)
        rc = check_queue(ep->cq);
    if (rc == GNI_RC_SUCCESS)
        rc = check_credits(&s, ep);
    if (rc == GNI_RC_SUCCESS)
        rc = put_message(&s, ep, p);
    gnii_msgq_unlock(&s.c->lock);
    return rc;
}

gni_return_t GNI_MsgqSend(gni_msgq_handle_t msgq_hndl, gni_ep_handle_t ep_hndl, void *hdr, uint32_t hdr_len, void *msg,
                          uint32_t msg_len, uint32_t msg_id, uint8_t msg_tag)
{
    struct gnii_msgq *m = gnii_object_find(GNII_KIND_MSGQ, msgq_hndl);
    struct gnii_ep *ep = gnii_ep_find(ep_hndl);
    struct parts parts = {
        .hdr = hdr, .msg = msg, .hdr_len = hdr_len, .msg_len = msg_len, .msg_id = msg_id, .tag = msg_tag
    };
    gni_return_t rc = GNI_RC_INVALID_PARAM;

    if (!m || !ep || ep->nic != m->nic || (!hdr && hdr_len > 0) || (!msg && msg_len > 0))
        return GNI_RC_INVALID_PARAM;
    emu_biased_lock(&m->nic->lock);
    if (ep->is_bound && ep->cq)
        rc = send_message(m, ep, &parts);
    emu_biased_unlock(&m->nic->lock);
    if (rc == GNI_RC_NOT_DONE)
        emu_port_relax_aside(&m->nic->port, (uintptr_t)m);
    return rc;
}

/* A put found no such registration, so its instance has gone: nothing goes there any more. */
static void forget_peer(struct gnii_msgq *m, uint32_t index, uint32_t peer)
{
    struct gnii_msgq_connection *c = connection_of(m, index);
    uint32_t node = emu_table_node_index(gnii_msgq_table(m), (uint32_t)directory_entry(m, index));

    if (peer >= count_peers(c) || node == EMU_NID_NONE || !is_elsewhere(gnii_msgq_table(m), node))
        return;
    store64(&c->peers[peer].handle[1], 0);
    store64(&c->peers[peer].handle[0], 0);
}

void gnii_msgq_note_lost(struct gnii_msgq *m, uint64_t place, unsigned status)
{
    struct gnii_msgq_connection *c;
    struct gnii_msgq_sent *sent;
    uint32_t ago;
    uint64_t n;

    if (!m || place >> 32 >= m->geometry.n_connections)
        return;
    c = connection_of(m, (uint32_t)(place >> 32));
    n = load64(&c->sent);
    ago = (uint32_t)(n - place);
    sent = gnii_msgq_sent(c, &m->geometry, n - ago);
    /* Nobody has acknowledged it, so the note is still ours, whoever holds the lock. */
    if (ago > n - load64(&c->acknowledged) || load64(&sent->by) != m->me)
        return;
    if (status == GNII_CQE_BAD_REMOTE_HANDLE || status == GNII_CQE_PEER_GONE)
        forget_peer(m, (uint32_t)(place >> 32), load32(&sent->peer));
    store64(&sent->by, 0);
}

/* ---- receiving: what leaves the region ---- */

/* True: it is new, and from now on it is not. */
static bool is_new(struct gnii_msgq *m, uint32_t index, uint64_t stamp)
{
    uint64_t *seen = &m->seen[(uint64_t)(index % m->geometry.n_connections) * m->geometry.credits +
                              ((uint32_t)stamp - 1) % m->geometry.credits];

    if (*seen == stamp)
        return false;
    *seen = stamp;
    return true;
}

/* Room in the batch is there. */
static void add_to_batch(struct gnii_msgq *m, uint32_t src_id, uint32_t pe, uint8_t tag, const uint8_t *bytes,
                         uint32_t length_bytes)
{
    struct gnii_msgq_message *message = &m->batch[m->batch_end++];

    message->src_id = src_id;
    message->pe = pe;
    message->tag = tag;
    memcpy(message->bytes, bytes, length_bytes);
}

static bool batch_is_full(const struct gnii_msgq *m)
{
    return m->batch_end == GNII_MSGQ_BATCH;
}

static struct gnii_msgq_pool *own_pool(struct gnii_msgq *m)
{
    return gnii_msgq_pool(m->region, &m->geometry, m->slot);
}

/* Messages in our pool. */
static uint64_t count_pooled(struct gnii_msgq *m)
{
    struct gnii_msgq_pool *pool = own_pool(m);
    /* Pairs with the release in put_into_pool(): the entries before their count. */
    uint64_t n = atomic_load_explicit(&pool->tail, memory_order_acquire) - load64(&pool->head);

    return n <= m->geometry.pooled ? n : 0; /* nonsense holds no messages */
}

void gnii_msgq_look_into_pool(struct gnii_msgq *m)
{
    struct gnii_msgq_pool *pool = own_pool(m);
    uint64_t n = count_pooled(m);
    uint64_t head = load64(&pool->head);

    for (; n > 0 && !batch_is_full(m); n--, head++) {
        const struct gnii_msgq_pooled *entry = gnii_msgq_pool_entry(pool, &m->geometry, head);
        struct gnii_msgq_pooled e;

        memcpy(&e, entry, sizeof(e));
        if (e.length_bytes <= m->geometry.max_bytes && is_new(m, e.connection, e.stamp))
            add_to_batch(m, e.src_id, e.pe, e.tag, entry->bytes, e.length_bytes);
        /* Pairs with the acquire in put_into_pool(): the place is free once we have read it. */
        atomic_store_explicit(&pool->head, head + 1, memory_order_release);
    }
}

bool gnii_msgq_has_message(struct gnii_msgq *m)
{
    return m->batch_first != m->batch_end || count_pooled(m) > 0;
}

/* ---- receiving: connections; their lock held ---- */

/* One walk over what has come. */
struct walk {
    struct gnii_msgq *m;
    struct gnii_msgq_connection *c;
    uint32_t index;
    uint32_t pe;
    uint32_t nonce;
    uint64_t head;
    bool has_gap;     /* a number since head that has not come */
    uint64_t blocked; /* bit per instance whose pool is full: its messages stay */
};

/* A live instance of this node by its id, or n_insts. */
static uint32_t find_inst(struct gnii_msgq *m, uint32_t id, uint64_t *owner_out)
{
    struct gnii_msgq_head *head = gnii_msgq_head(m->region);
    uint32_t i;

    for (i = 0; i < m->geometry.n_insts; i++) {
        uint64_t owner = atomic_load_explicit(&head->insts[i].owner, memory_order_acquire);

        if (gnii_msgq_lives(gnii_msgq_table(m), owner) &&
            emu_table_ports(gnii_msgq_table(m))[(uint32_t)owner - 1].instance_id == id) {
            *owner_out = owner;
            return i;
        }
    }
    return i;
}

static bool has_come(const struct walk *w, uint64_t number)
{
    const struct gnii_msgq_slot *slot = gnii_msgq_slot(w->c, &w->m->geometry, number);

    /* Pairs with the NIC's store of the flag: the message is there when its stamp is. */
    return atomic_load_explicit(&slot->stamp, memory_order_acquire) == gnii_msgq_stamp(w->nonce, number);
}

static bool is_void(const struct walk *w, uint64_t number)
{
    const struct gnii_msgq_slot *slot = gnii_msgq_slot(w->c, &w->m->geometry, number);

    return atomic_load_explicit(&slot->void_stamp, memory_order_acquire) == gnii_msgq_stamp(w->nonce, number);
}

static bool is_taken(const struct walk *w, uint64_t number)
{
    return load64(gnii_msgq_taken(w->c, &w->m->geometry, number)) == number + 1;
}

static void take(const struct walk *w, uint64_t number)
{
    atomic_store_explicit(gnii_msgq_taken(w->c, &w->m->geometry, number), number + 1, memory_order_release);
}

/* Has a number before this one come since we passed it? Then it may be of the same sender. */
static bool gap_was_filled(const struct walk *w, uint64_t number)
{
    for (uint64_t n = w->head; w->has_gap && n != number; n++) {
        const struct gnii_msgq_slot *slot = gnii_msgq_slot(w->c, &w->m->geometry, n);
        uint64_t bit;
        uint64_t owner;
        uint32_t inst;

        if (is_taken(w, n) || !has_come(w, n))
            continue;
        /* Here all the time, kept because its receiver's pool is full? */
        inst = find_inst(w->m, slot->dst_id, &owner);
        bit = inst < w->m->geometry.n_insts ? 1ull << inst : 0;
        if ((w->blocked & bit) == 0)
            return true;
    }
    return false;
}

/* False: no room, or somebody else is at it. */
static bool put_into_pool(const struct walk *w, uint32_t inst, uint64_t owner, uint64_t number,
                          const struct gnii_msgq_slot *header, const uint8_t *bytes)
{
    struct gnii_msgq *m = w->m;
    struct gnii_msgq_pool *pool = gnii_msgq_pool(m->region, &m->geometry, inst);
    struct gnii_msgq_pooled *entry;
    bool has_room = false;
    uint64_t tail;

    if (m->geometry.pooled == 0 || !gnii_msgq_lock(&pool->lock, gnii_msgq_table(m), m->me))
        return false;
    tail = load64(&pool->tail);
    /* Its owner may be a new one since, with a pool of its own time. */
    if (load64(&gnii_msgq_head(m->region)->insts[inst].owner) == owner)
        has_room = tail - atomic_load_explicit(&pool->head, memory_order_acquire) < m->geometry.pooled;
    if (has_room) {
        entry = gnii_msgq_pool_entry(pool, &m->geometry, tail);
        entry->stamp = gnii_msgq_stamp(w->nonce, number);
        entry->connection = w->index;
        entry->pe = w->pe;
        entry->src_id = header->src_id;
        entry->length_bytes = header->length_bytes;
        entry->tag = header->tag;
        memcpy(entry->bytes, bytes, header->length_bytes);
        atomic_store_explicit(&pool->tail, tail + 1, memory_order_release);
    }
    gnii_msgq_unlock(&pool->lock);
    return has_room;
}

/* A message that has come. False: our batch is full. */
static bool receive(struct walk *w, uint64_t number)
{
    struct gnii_msgq *m = w->m;
    const struct gnii_msgq_slot *slot = gnii_msgq_slot(w->c, &m->geometry, number);
    struct gnii_msgq_slot header;
    uint64_t owner;
    uint32_t inst;

    memcpy(&header.src_id, &slot->src_id, sizeof(header) - offsetof(struct gnii_msgq_slot, src_id));
    if (header.length_bytes > m->geometry.max_bytes) {
        take(w, number); /* nonsense */
        return true;
    }
    if (header.dst_id == m->nic->port.instance_id) {
        if (batch_is_full(m))
            return false;
        if (is_new(m, w->index, gnii_msgq_stamp(w->nonce, number)))
            add_to_batch(m, header.src_id, w->pe, header.tag, slot->bytes, header.length_bytes);
        take(w, number);
        return true;
    }
    inst = find_inst(m, header.dst_id, &owner);
    if (inst == m->geometry.n_insts) {
        take(w, number); /* for one that has gone */
    } else if ((w->blocked >> inst & 1) == 0) {
        if (put_into_pool(w, inst, owner, number, &header, slot->bytes))
            take(w, number);
        else
            w->blocked |= 1ull << inst;
    }
    return true;
}

/* False: start again, a gap was filled. */
static bool walk_once(struct walk *w)
{
    w->has_gap = false;
    w->blocked = 0;
    for (uint64_t n = w->head; n - w->head < w->m->geometry.credits; n++) {
        if (is_taken(w, n))
            continue;
        if (has_come(w, n)) {
            if (gap_was_filled(w, n))
                return false;
            if (!receive(w, n))
                return true;
        } else if (is_void(w, n) && !has_come(w, n)) {
            take(w, n);
        } else {
            w->has_gap = true;
        }
    }
    return true;
}

static void return_credits(struct gnii_msgq *m, struct walk *w)
{
    struct gnii_msgq_connection *c = w->c;
    uint64_t returned = load64(&c->returned);
    uint64_t window = window_of(m, c);
    bool is_due;
    bool is_lost;
    struct target t;
    uint32_t peer;

    is_lost = returned != 0 && (!gnii_msgq_lives(gnii_msgq_table(m), load64(&c->returned_by)) ||
                                !find_target(m, c, w->pe, load32(&c->returned_via), &t));
    is_due = w->head != returned && (2 * (w->head - returned) >= window || is_taken(w, returned + window - 1) ||
                                     has_come(w, returned + window - 1)); /* the sender has used its last one */
    if ((!is_due && !is_lost) || !find_any_target(m, c, w->pe, &t, &peer))
        return;
    put_pair(m, &t, offsetof(struct gnii_msgq_connection, credits) + m->slot * sizeof(struct gnii_msgq_pair),
             (uint64_t)load32(&c->peer_nonce) << 32 | (uint32_t)w->head);
    store64(&c->returned_by, m->me);
    atomic_store_explicit(&c->returned_via, peer, memory_order_relaxed);
    store64(&c->returned, w->head);
}

static struct walk begin_walk(struct gnii_msgq *m, uint32_t index, uint32_t pe)
{
    struct gnii_msgq_connection *c = connection_of(m, index);

    return (
        struct walk){ .m = m, .c = c, .index = index, .pe = pe, .nonce = load32(&c->nonce), .head = load64(&c->head) };
}

static void look(struct gnii_msgq *m, uint32_t index, uint32_t pe, bool is_connected)
{
    struct walk w = begin_walk(m, index, pe);
    uint64_t head = w.head;

    /* Each new start takes at least one message more. */
    for (uint32_t starts = 0; !batch_is_full(m) && starts <= m->geometry.credits && !walk_once(&w); starts++)
        ;
    while (head - w.head < m->geometry.credits && is_taken(&w, head))
        head++;
    w.head = head;
    atomic_store_explicit(&w.c->head, head, memory_order_relaxed);
    if (!is_connected)
        return;
    return_credits(m, &w);
    if (in_flight(m, w.c) > 0) {
        take_credits(w.c);
        void_what_is_lost(m, w.c, pe);
    }
}

bool gnii_msgq_look(struct gnii_msgq *m, uint32_t index)
{
    struct gnii_msgq_connection *c = connection_of(m, index);
    uint64_t entry = directory_entry(m, index);

    if (gnii_msgq_state_of(entry) == GNII_MSGQ_FREE)
        return true;
    if (!gnii_msgq_lock(&c->lock, gnii_msgq_table(m), m->me))
        return false;
    entry = directory_entry(m, index);
    gnii_msgq_look_into_pool(m);
    if (gnii_msgq_state_of(entry) != GNII_MSGQ_FREE)
        look(m, index, (uint32_t)entry, gnii_msgq_state_of(entry) == GNII_MSGQ_CONNECTED);
    gnii_msgq_unlock(&c->lock);
    return true;
}

bool gnii_msgq_connection_has_message(struct gnii_msgq *m, uint32_t index)
{
    struct walk w = begin_walk(m, index, (uint32_t)directory_entry(m, index));
    uint64_t owner;

    for (uint64_t n = w.head; n - w.head < m->geometry.credits; n++) {
        if (!is_taken(&w, n) && has_come(&w, n) &&
            find_inst(m, gnii_msgq_slot(w.c, &m->geometry, n)->dst_id, &owner) < m->geometry.n_insts)
            return true;
    }
    return false;
}
