/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Connections of a shared message queue.
 *
 *   free -- GetConnAttrs --> assigned (may receive) -- Connect --> connected (may send too) -- ConnRelease --> free
 *
 * A connection belongs to the node: any instance of it makes the calls, usually one of them, and its death changes
 * nothing. The directory says which node has which connection and in what state; it changes under its lock, by one
 * store that makes the change, after all that the new state needs is in place.
 *
 * The attributes that the program carries to the other node tell where the mailbox lies and the memory handles of the
 * instances' views of it. `mdh_off` holds the place in its lower half and, in its upper half, a nonce of this use of
 * the mailbox. Whatever the other node writes carries the nonce, so what was meant for an earlier use is not taken
 * for anything; and ConnRelease tells the other node, whose sends are then refused. As on the original, both sides
 * should have stopped before a mailbox is released: a put that is under way then may fall onto a message of its next
 * user, which is why mailboxes are used again as late as possible.
 * Source: spec/ugni.md 3.11, 4.11.
 */
#include <string.h>
#include <unistd.h>

#include "emunic/base/clock.h"
#include "libugni/src/msgq.h"

#define ATTR_HEADER_BYTES 16u

static uint64_t entry_of(enum gnii_msgq_state state, uint32_t pe)
{
    return (uint64_t)state << 32 | pe;
}

static uint64_t load_entry(struct gnii_msgq *m, uint32_t index)
{
    return atomic_load_explicit(gnii_msgq_directory(m->region, &m->geometry, index), memory_order_acquire);
}

enum gnii_msgq_state gnii_msgq_find_connection(struct gnii_msgq *m, uint32_t pe, uint32_t *index_out)
{
    uint32_t *known = &m->known[pe % GNII_MSGQ_KNOWN];
    uint64_t entry = load_entry(m, *known);

    *index_out = *known;
    if ((uint32_t)entry == pe && gnii_msgq_state_of(entry) != GNII_MSGQ_FREE)
        return gnii_msgq_state_of(entry);
    for (uint32_t i = 0; i < m->geometry.n_connections; i++) {
        entry = load_entry(m, i);
        if ((uint32_t)entry != pe || gnii_msgq_state_of(entry) == GNII_MSGQ_FREE)
            continue;
        *known = *index_out = i;
        return gnii_msgq_state_of(entry);
    }
    return GNII_MSGQ_FREE;
}

/* ---- assigning ---- */

/* May connections be made now? */
static bool is_open(struct gnii_msgq *m)
{
    struct gnii_msgq_head *head = gnii_msgq_head(m->region);
    uint64_t all = (1ull << m->geometry.n_insts) - 1;

    return !gnii_nic_is_lost(m->nic) && atomic_load(&head->is_closing) == 0 && (atomic_load(&head->ready) & all) == all;
}

/* Never 0. */
static uint32_t make_nonce(const struct gnii_msgq *m)
{
    uint64_t x = emu_clock_ns() ^ m->me << 20 ^ (uint64_t)getpid() << 44;

    /* The finaliser of splitmix64 (Steele, Lea, Flood 2014). */
    x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9ull;
    x = (x ^ x >> 27) * 0x94d049bb133111ebull;
    return (uint32_t)(x ^ x >> 31) | 1;
}

/* Its lock and the directory's held. Messages count from 0 again; old stamps carry another nonce. */
static void reset(struct gnii_msgq *m, struct gnii_msgq_connection *c)
{
    atomic_store(&c->nonce, make_nonce(m));
    atomic_store(&c->n_peers, 0);
    atomic_store(&c->returned_by, 0);
    atomic_store(&c->head, 0);
    atomic_store(&c->returned, 0);
    atomic_store(&c->sent, 0);
    atomic_store(&c->acknowledged, 0);
    for (uint32_t i = 0; i < m->geometry.credits; i++)
        atomic_store_explicit(gnii_msgq_taken(c, &m->geometry, i), 0, memory_order_relaxed);
}

/* The instances of this node that live, as the other node needs them. */
static void describe(struct gnii_msgq *m, uint32_t index, gni_msgq_ep_attr_t *attrs)
{
    struct gnii_msgq_head *head = gnii_msgq_head(m->region);
    uint32_t nonce = atomic_load(&gnii_msgq_connection(m->region, &m->geometry, index)->nonce);

    memset(attrs, 0, sizeof(*attrs));
    attrs->pe_addr = m->nic->port.nid;
    attrs->max_msg_sz = m->geometry.max_bytes;
    attrs->smsg_q_sz = m->geometry.credits;
    for (uint32_t i = 0; i < m->geometry.n_insts; i++) {
        uint64_t owner = atomic_load_explicit(&head->insts[i].owner, memory_order_acquire);
        gni_msgq_rem_inst_t *inst = &attrs->insts[attrs->num_insts];

        if (!gnii_msgq_lives(gnii_msgq_table(m), owner))
            continue;
        inst->id = emu_table_ports(gnii_msgq_table(m))[(uint32_t)owner - 1].instance_id;
        inst->mdh.qword1 = atomic_load(&head->insts[i].handle[0]);
        inst->mdh.qword2 = atomic_load(&head->insts[i].handle[1]);
        inst->mdh_off = (uint64_t)nonce << 32 | gnii_msgq_connection_off(&m->geometry, index);
        attrs->num_insts++;
    }
}

/* Directory lock held. */
static gni_return_t assign(struct gnii_msgq *m, uint32_t pe, gni_msgq_ep_attr_t *attrs)
{
    struct gnii_msgq_head *head = gnii_msgq_head(m->region);
    uint32_t first = atomic_load(&head->next);
    struct gnii_msgq_connection *c;
    uint32_t index;

    if (!is_open(m))
        return GNI_RC_PERMISSION_ERROR;
    if (gnii_msgq_find_connection(m, pe, &index) != GNII_MSGQ_FREE)
        return GNI_RC_INVALID_STATE;
    for (uint32_t i = 0; i < m->geometry.n_connections; i++) {
        index = (uint32_t)(((uint64_t)first + i) % m->geometry.n_connections);
        if (gnii_msgq_state_of(load_entry(m, index)) != GNII_MSGQ_FREE)
            continue;
        c = gnii_msgq_connection(m->region, &m->geometry, index);
        if (!gnii_msgq_lock_patiently(m, &c->lock))
            return GNI_RC_INVALID_STATE;
        reset(m, c);
        gnii_msgq_unlock(&c->lock);
        atomic_store(&head->next, index + 1);
        describe(m, index, attrs);
        atomic_store_explicit(gnii_msgq_directory(m->region, &m->geometry, index), entry_of(GNII_MSGQ_ASSIGNED, pe),
                              memory_order_release);
        return GNI_RC_SUCCESS;
    }
    return GNI_RC_ERROR_RESOURCE;
}

/* ---- connecting ---- */

static bool peers_are_sound(const struct gnii_msgq *m, const gni_msgq_ep_attr_t *attrs, uint32_t pe)
{
    struct gnii_handle_fields fields;

    if (attrs->pe_addr != pe || attrs->num_insts == 0 || attrs->num_insts > GNI_MSGQ_NODE_INSTS_MAX ||
        attrs->max_msg_sz == 0 || attrs->max_msg_sz > GNI_MSGQ_MSG_SZ_MAX || attrs->smsg_q_sz == 0 ||
        attrs->pe_addr == m->nic->port.nid)
        return false;
    for (uint32_t i = 0; i < attrs->num_insts; i++) {
        const gni_msgq_rem_inst_t *inst = &attrs->insts[i];

        if (gnii_handle_decode(&inst->mdh, &fields) < 0 || fields.mdh >= EMU_MD_COUNT ||
            (uint32_t)inst->mdh_off % GNII_MSGQ_LINE != 0 || inst->mdh_off >> 32 == 0 ||
            inst->mdh_off >> 32 != attrs->insts[0].mdh_off >> 32)
            return false;
    }
    return true;
}

/* Directory lock held. */
static gni_return_t complete(struct gnii_msgq *m, uint32_t pe, const gni_msgq_ep_attr_t *attrs)
{
    struct gnii_msgq_connection *c;
    enum gnii_msgq_state state;
    uint32_t index;

    if (!is_open(m))
        return GNI_RC_PERMISSION_ERROR;
    state = gnii_msgq_find_connection(m, pe, &index);
    if (state != GNII_MSGQ_ASSIGNED)
        return state == GNII_MSGQ_FREE ? GNI_RC_NO_MATCH : GNI_RC_INVALID_STATE;
    c = gnii_msgq_connection(m->region, &m->geometry, index);
    if (!gnii_msgq_lock_patiently(m, &c->lock))
        return GNI_RC_INVALID_STATE;
    for (uint32_t i = 0; i < attrs->num_insts; i++) {
        atomic_store(&c->peers[i].id, attrs->insts[i].id);
        atomic_store(&c->peers[i].connection_off, (uint32_t)attrs->insts[i].mdh_off);
        atomic_store(&c->peers[i].handle[0], attrs->insts[i].mdh.qword1);
        atomic_store(&c->peers[i].handle[1], attrs->insts[i].mdh.qword2);
    }
    atomic_store(&c->peer_nonce, (uint32_t)(attrs->insts[0].mdh_off >> 32));
    atomic_store(&c->peer_max_bytes, attrs->max_msg_sz);
    atomic_store(&c->peer_credits, attrs->smsg_q_sz);
    atomic_store(&c->n_peers, attrs->num_insts);
    atomic_store_explicit(gnii_msgq_directory(m->region, &m->geometry, index), entry_of(GNII_MSGQ_CONNECTED, pe),
                          memory_order_release);
    gnii_msgq_unlock(&c->lock);
    return GNI_RC_SUCCESS;
}

/* ---- releasing ---- */

/* Directory lock held. */
static gni_return_t give_back(struct gnii_msgq *m, uint32_t pe)
{
    struct gnii_msgq_connection *c;
    enum gnii_msgq_state state;
    uint32_t index;

    state = gnii_msgq_find_connection(m, pe, &index);
    if (state == GNII_MSGQ_FREE)
        return GNI_RC_NO_MATCH;
    /* What waits for others goes into their pools, if there is room. */
    if (!gnii_msgq_look(m, index))
        return GNI_RC_NOT_DONE;
    c = gnii_msgq_connection(m->region, &m->geometry, index);
    if (!gnii_msgq_lock(&c->lock, gnii_msgq_table(m), m->me))
        return GNI_RC_NOT_DONE;
    if (gnii_msgq_connection_has_message(m, index)) {
        gnii_msgq_unlock(&c->lock);
        return GNI_RC_NOT_DONE;
    }
    if (state == GNII_MSGQ_CONNECTED)
        gnii_msgq_tell_release(m, index, pe);
    atomic_store_explicit(gnii_msgq_directory(m->region, &m->geometry, index), entry_of(GNII_MSGQ_FREE, 0),
                          memory_order_release);
    gnii_msgq_unlock(&c->lock);
    return GNI_RC_SUCCESS;
}

/* ---- calls ---- */

/* The queue, its NIC and the directory locked; or NULL and the answer. if_busy: when somebody keeps the directory. */
static struct gnii_msgq *enter(gni_msgq_handle_t handle, gni_return_t if_busy, gni_return_t *rc_out)
{
    struct gnii_msgq *m = gnii_object_find(GNII_KIND_MSGQ, handle);

    *rc_out = GNI_RC_INVALID_PARAM;
    if (!m)
        return NULL;
    emu_biased_lock(&m->nic->lock);
    if (m->nic->port.owner == getpid()) {
        *rc_out = if_busy;
        if (gnii_msgq_lock_patiently(m, &gnii_msgq_head(m->region)->lock))
            return m;
    }
    if (gnii_nic_is_lost(m->nic)) {
        gnii_nic_tell_loss(m->nic);
        *rc_out = GNI_RC_PERMISSION_ERROR;
    }
    emu_biased_unlock(&m->nic->lock);
    return NULL;
}

static void leave(struct gnii_msgq *m)
{
    gnii_msgq_unlock(&gnii_msgq_head(m->region)->lock);
    emu_biased_unlock(&m->nic->lock);
}

gni_return_t GNI_MsgqGetConnAttrs(gni_msgq_handle_t msgq_hndl, uint32_t pe_addr, gni_msgq_ep_attr_t *attrs,
                                  uint32_t *attrs_size)
{
    gni_return_t rc = GNI_RC_INVALID_PARAM;
    struct gnii_msgq *m = attrs ? enter(msgq_hndl, GNI_RC_INVALID_STATE, &rc) : NULL;

    if (!m)
        return rc;
    rc = GNI_RC_INVALID_PARAM;
    if (pe_addr != m->nic->port.nid && emu_table_node_index(gnii_msgq_table(m), pe_addr) != EMU_NID_NONE)
        rc = assign(m, pe_addr, attrs);
    leave(m);
    if (rc == GNI_RC_SUCCESS && attrs_size)
        *attrs_size = ATTR_HEADER_BYTES + attrs->num_insts * (uint32_t)sizeof(attrs->insts[0]);
    return rc;
}

gni_return_t GNI_MsgqConnect(gni_msgq_handle_t msgq_hndl, uint32_t pe_addr, gni_msgq_ep_attr_t *attrs)
{
    gni_return_t rc = GNI_RC_INVALID_PARAM;
    struct gnii_msgq *m = attrs ? enter(msgq_hndl, GNI_RC_INVALID_STATE, &rc) : NULL;

    if (!m)
        return rc;
    rc = peers_are_sound(m, attrs, pe_addr) ? complete(m, pe_addr, attrs) : GNI_RC_INVALID_PARAM;
    leave(m);
    return rc;
}

gni_return_t GNI_MsgqConnRelease(gni_msgq_handle_t msgq_hndl, uint32_t pe_addr)
{
    gni_return_t rc;
    struct gnii_msgq *m = enter(msgq_hndl, GNI_RC_NOT_DONE, &rc);

    if (!m)
        return rc;
    rc = give_back(m, pe_addr);
    leave(m);
    return rc;
}
