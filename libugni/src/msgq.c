/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Shared message queues (MSGQ).
 *
 * The instances (NIC handles, usually one per process) of a node share a region of memory with a mailbox for each
 * remote node, so that memory grows with nodes and not with processes. The original takes the region from huge pages in
 * a file system that the program can see; here emunic makes it, one memfd per communication domain and node, when the
 * first instance asks, hands it to instances of that domain and node only, and frees it when the last one has gone,
 * however it went (emunic/daemon/msgq/msgq_members.c). Each instance registers its own mapping, with a private receive
 * queue of rcv_cq_sz entries; the attributes for the other node name these registrations. Layout and locks:
 * msgq_region.h; connections: msgq_connection.c; messages, order, credits, and what happens when an instance dies:
 * msgq_traffic.c.
 *
 *   GNI_MsgqInit -> in the region -> GNI_MsgqRelease -> out
 *
 * Once an instance has left in peace the region is closing: no instance joins and no connection is made any more
 * until all have left. A death, or a GNI_CdmDestroy() without release, closes nothing: another instance with the same
 * attributes may take the place.
 *
 * GNI_MsgqProgress() takes up to GNII_MSGQ_BATCH messages out of the region, under locks, and hands copies to the
 * callback, without locks: so the callback may call anything, also this. In blocking mode it sleeps on the private
 * queue, in slices of a quarter second at most, after which it looks at every connection: an event that a dying
 * sender owes delays a message by that.
 *
 * Completion entries of sends go to the end point's queue, as the specification says; snd_cq is checked and otherwise
 * not needed. One queue per NIC handle. In a forked child a queue can only be released (forgotten).
 * Source: spec/ugni.md 2.17, 3.11, 4.11.
 */
#include "libugni/src/msgq.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "emunic/base/clock.h"
#include "libugni/src/rc.h"

#define QUEUE_ENTRIES_MAX (1u << 20)
#define LOOKS_MAX         64u   /* directory entries per call that are looked at without cause */
#define MESSAGES_MAX      4096u /* per call: "more may be available" then */
#define MS_NS             1000000ull
#define LOOK_ALL_NS       250000000ull
#define PATIENCE_NS       5000000000ull /* with a live holder of a lock; it is stopped, or the lock is garbage */

static_assert(EMU_MSGQ_INSTS_MAX == GNI_MSGQ_NODE_INSTS_MAX, "instances of a node");

gni_return_t GNI_MsgqSize(gni_msgq_attr_t *attrs, uint32_t *size)
{
    struct gnii_msgq_geometry geometry;

    if (!attrs || !size || !gnii_msgq_geometry_init(&geometry, attrs))
        return GNI_RC_INVALID_PARAM;
    *size = (uint32_t)geometry.region_bytes;
    return GNI_RC_SUCCESS;
}

bool gnii_msgq_lock_patiently(struct gnii_msgq *m, _Atomic uint64_t *lock)
{
    uint64_t end_ns = emu_clock_ns() + PATIENCE_NS;

    while (!gnii_msgq_lock(lock, gnii_msgq_table(m), m->me)) {
        if (emu_port_is_lost(&m->nic->port) || emu_clock_ns() >= end_ns)
            return false;
    }
    return true;
}

/* ---- joining; NIC lock held ---- */

static struct emu_msgq_shape shape_of(const struct gnii_msgq *m)
{
    const struct gnii_msgq_geometry *g = &m->geometry;

    return (struct emu_msgq_shape){ .max_bytes = g->max_bytes,
                                    .credits = g->credits,
                                    .pooled = g->pooled,
                                    .n_connections = g->n_connections,
                                    .n_insts = g->n_insts,
                                    .modes = m->is_blocking ? GNI_MSGQ_MODE_BLOCKING : 0,
                                    .queue_entries = m->queue_entries,
                                    .region_bytes = g->region_bytes };
}

static int map_region(struct gnii_msgq *m, int fd)
{
    struct stat st;
    void *addr;

    if (fstat(fd, &st) < 0 || (uint64_t)st.st_size < m->geometry.region_bytes)
        return -EPROTO;
    addr = mmap(NULL, m->geometry.region_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
    if (addr == MAP_FAILED)
        return -ENOMEM;
    m->region = addr;
    return 0;
}

static int join(struct gnii_msgq *m)
{
    struct emu_msg msg = { .type = EMU_MSG_MSGQ_JOIN, .msgq = { .shape = shape_of(m) } };
    struct emu_fds fds;
    int r;

    r = emu_session_request(&m->nic->port.session, &msg, NULL, 0, &fds);
    if (r == 0)
        r = msg.result;
    if (r == 0)
        r = fds.n_fds == 1 && msg.msgq.slot < m->geometry.n_insts ? map_region(m, fds.fd[0]) : -EPROTO;
    emu_fds_close(&fds);
    m->slot = msg.msgq.slot;
    return r;
}

static void leave(struct gnii_msgq *m)
{
    struct emu_msg msg = { .type = EMU_MSG_MSGQ_LEAVE };

    emu_port_request(&m->nic->port, &msg);
}

static int register_region(struct gnii_msgq *m, gni_mem_handle_t *handle_out)
{
    struct gnii_handle_fields fields = { .base_va = (uint64_t)(uintptr_t)m->region,
                                         .n_pages = (uint32_t)(m->geometry.region_bytes / EMU_PAGE_BYTES),
                                         .page_shift = 12 };
    struct emu_port *port = &m->nic->port;
    int r;

    /* Not among the pages that peers map: they reach it by system calls. */
    r = emu_port_mem_register(port,
                              &(struct emu_port_memory){ fields.base_va, m->geometry.region_bytes, 0, m->queue_index },
                              &m->mdh, &m->generation);
    if (r < 0)
        return r;
    fields.mdh = m->mdh;
    fields.generation = m->generation;
    r = gnii_handle_encode(&fields, handle_out);
    if (r < 0)
        emu_port_mem_deregister(port, m->mdh, m->generation);
    return r;
}

/* From now on others find us. Its pool begins empty, whatever a predecessor left. False: could not lock it. */
static bool appear(struct gnii_msgq *m, const gni_mem_handle_t *handle)
{
    struct gnii_msgq_head *head = gnii_msgq_head(m->region);
    struct gnii_msgq_pool *pool = gnii_msgq_pool(m->region, &m->geometry, m->slot);
    struct gnii_msgq_inst *inst = &head->insts[m->slot];

    if (!gnii_msgq_lock_patiently(m, &pool->lock))
        return false;
    atomic_store(&pool->head, atomic_load(&pool->tail));
    atomic_store(&inst->handle[0], handle->qword1);
    atomic_store(&inst->handle[1], handle->qword2);
    atomic_store_explicit(&inst->owner, m->me, memory_order_release);
    gnii_msgq_unlock(&pool->lock);
    atomic_fetch_or(&head->ready, 1ull << m->slot);
    return true;
}

static void free_msgq(struct gnii_msgq *m)
{
    if (m->region)
        munmap(m->region, m->geometry.region_bytes);
    free(m->news);
    free(m->seen);
    free(m);
}

static int enter_region(struct gnii_msgq *m)
{
    struct emu_port *port = &m->nic->port;
    gni_mem_handle_t handle;
    int r;

    r = join(m);
    if (r < 0)
        return r;
    r = emu_port_cq_create(port, m->queue_entries, m->is_blocking, &m->queue_index, &m->queue);
    if (r < 0)
        goto err_leave;
    r = register_region(m, &handle);
    if (r < 0)
        goto err_queue;
    r = gnii_object_add(GNII_KIND_MSGQ, m, &m->handle);
    if (r < 0)
        goto err_region;
    if (appear(m, &handle))
        return 0;
    r = -EDEADLK;
    gnii_object_remove(m->handle);
err_region:
    emu_port_mem_deregister(port, m->mdh, m->generation);
err_queue:
    emu_port_cq_destroy(port, m->queue_index);
err_leave:
    leave(m);
    return r;
}

static gni_return_t make_msgq(struct gnii_nic *nic, const struct gnii_msgq *wanted, struct gnii_msgq **m_out)
{
    const struct gnii_msgq_geometry *g = &wanted->geometry;
    struct gnii_msgq *m = malloc(sizeof(*m));
    int r = -ENOMEM;

    if (!m)
        return GNI_RC_ERROR_NOMEM;
    *m = *wanted;
    m->refs = 1;
    m->nic = nic;
    m->me = gnii_msgq_identity(nic->port.index, emu_table_ports(nic->port.table)[nic->port.index].generation);
    m->news = calloc((g->n_connections + 63) / 64, sizeof(*m->news));
    m->seen = calloc((size_t)g->n_connections * g->credits, sizeof(*m->seen));
    if (m->news && m->seen)
        r = enter_region(m);
    if (r < 0) {
        free_msgq(m);
        return gnii_rc(GNII_CALL_MSGQ_INIT, r);
    }
    atomic_fetch_add(&nic->refs, 1);
    *m_out = m;
    return GNI_RC_SUCCESS;
}

gni_return_t GNI_MsgqInit(gni_nic_handle_t nic_hndl, gni_msgq_rcv_cb_func *rcv_cb, void *cb_data,
                          gni_cq_handle_t snd_cq, gni_msgq_attr_t *attrs, gni_msgq_handle_t *msgq_hndl)
{
    struct gnii_nic *nic = gnii_nic_find(nic_hndl);
    struct gnii_cq *cq = gnii_cq_find(snd_cq);
    struct gnii_msgq wanted = { .rcv_cb = rcv_cb, .cb_data = cb_data };
    gni_return_t rc = GNI_RC_INVALID_STATE;
    struct emu_cancel cancel;

    if (!nic || !rcv_cb || !cq || cq->nic != nic || !attrs || !msgq_hndl)
        return GNI_RC_INVALID_PARAM;
    if (!gnii_msgq_geometry_init(&wanted.geometry, attrs) || attrs->rcv_cq_sz == 0 ||
        attrs->rcv_cq_sz > QUEUE_ENTRIES_MAX || (attrs->modes & ~GNI_MSGQ_MODE_BLOCKING) != 0)
        return GNI_RC_INVALID_PARAM;
    wanted.is_blocking = (attrs->modes & GNI_MSGQ_MODE_BLOCKING) != 0;
    wanted.queue_entries = attrs->rcv_cq_sz;
    emu_cancel_hold(&cancel);
    emu_biased_lock(&nic->lock);
    if (!nic->msgq)
        rc = make_msgq(nic, &wanted, &nic->msgq);
    if (rc == GNI_RC_SUCCESS)
        *msgq_hndl = nic->msgq->handle;
    emu_biased_unlock(&nic->lock);
    emu_cancel_release(&cancel);
    return rc;
}

/* ---- leaving; NIC lock held ---- */

static void put_msgq(void *arg)
{
    struct gnii_msgq *m = arg;
    struct gnii_nic *nic = m->nic;

    if (atomic_fetch_sub(&m->refs, 1) > 1)
        return;
    free_msgq(m);
    gnii_nic_put(nic);
}

void gnii_msgq_wake(struct gnii_msgq *m)
{
    atomic_store(&m->queue.shm->sleepers, 0);
    emu_port_wake(&m->queue.shm->sleepers);
}

/* Sends whose entries are still to come are nobody's now. */
static void orphan_sends(struct gnii_msgq *m)
{
    struct gnii_cq *cq;

    LIST_FOREACH(cq, &m->nic->cqs, link) {
        for (uint64_t i = cq->sends_head; i != cq->sends_tail; i++) {
            if (cq->sends[i & cq->sends_mask].msgq == m)
                cq->sends[i & cq->sends_mask].msgq = NULL;
        }
    }
}

void gnii_msgq_free(struct gnii_msgq *m, bool is_in_peace)
{
    struct gnii_nic *nic = m->nic;

    gnii_object_remove(m->handle);
    nic->msgq = NULL;
    orphan_sends(m);
    atomic_store(&m->is_dead, true);
    if (nic->port.owner == getpid()) {
        gnii_msgq_wake(m);
        atomic_store(&gnii_msgq_head(m->region)->insts[m->slot].owner, 0);
        if (is_in_peace)
            atomic_store(&gnii_msgq_head(m->region)->is_closing, 1);
        /* When the reply is here nobody writes into our mapping any more. */
        emu_port_mem_deregister(&nic->port, m->mdh, m->generation);
        emu_port_cq_destroy(&nic->port, m->queue_index);
        if (is_in_peace)
            leave(m);
    }
    put_msgq(m);
}

void gnii_msgq_settle(struct gnii_msgq *m)
{
    if (m)
        m->in_flight--;
}

/* Nothing of ours is on its way to the program: completion entries, messages. */
static gni_return_t check_idle(struct gnii_msgq *m)
{
    for (uint32_t i = 0; i < m->geometry.n_connections && !gnii_msgq_has_message(m); i++) {
        if (!gnii_msgq_look(m, i))
            return GNI_RC_NOT_DONE;
    }
    return m->in_flight > 0 || gnii_msgq_has_message(m) ? GNI_RC_NOT_DONE : GNI_RC_SUCCESS;
}

gni_return_t GNI_MsgqRelease(gni_msgq_handle_t msgq_hndl)
{
    struct gnii_msgq *m = gnii_object_find(GNII_KIND_MSGQ, msgq_hndl);
    gni_return_t rc = GNI_RC_SUCCESS;
    struct emu_cancel cancel;
    struct gnii_nic *nic;

    if (!m)
        return GNI_RC_INVALID_PARAM;
    nic = m->nic;
    emu_cancel_hold(&cancel);
    emu_biased_lock(&nic->lock);
    if (nic->port.owner == getpid() && !gnii_nic_is_lost(nic))
        rc = check_idle(m);
    if (rc == GNI_RC_SUCCESS)
        gnii_msgq_free(m, true);
    emu_biased_unlock(&nic->lock);
    emu_cancel_release(&cancel);
    return rc;
}

gni_return_t GNI_MsgqIdle(gni_msgq_handle_t msgq_hndl)
{
    struct gnii_msgq *m = gnii_object_find(GNII_KIND_MSGQ, msgq_hndl);
    gni_return_t rc;

    if (!m)
        return GNI_RC_INVALID_PARAM;
    emu_biased_lock(&m->nic->lock);
    rc = check_idle(m);
    emu_biased_unlock(&m->nic->lock);
    return rc;
}

/* ---- progress ---- */

static void look_everywhere(struct gnii_msgq *m)
{
    memset(m->news, 0xff, (m->geometry.n_connections + 63) / 64 * sizeof(*m->news));
}

/* Takes the arrival events: which connections must be looked at. */
static void take_events(struct gnii_msgq *m)
{
    uint64_t event;

    for (uint64_t i = 0; i < m->queue.ring_entries && emu_cq_pop(&m->queue, &event) == EMU_CQ_OK; i++) {
        uint64_t off = (uint64_t)gnii_cqe_event(event) * GNII_MSGQ_LINE - m->geometry.connection_off;
        uint64_t index = off / m->geometry.connection_stride;

        if (gnii_cqe_type(event) == GNI_CQ_EVENT_TYPE_MSGQ && gnii_cqe_engine(event) == GNII_CQE_ENGINE_REMOTE &&
            gnii_cqe_status(event) == GNII_CQE_OK && index < m->geometry.n_connections) {
            m->news[index / 64] |= 1ull << index % 64;
            continue;
        }
        /* An event that emunic made up for a dead producer stands for any; another one does not belong here. */
        if (gnii_cqe_status(event) == GNII_CQE_OK)
            m->got_foreign_event = true;
        look_everywhere(m);
    }
    if (emu_cq_take_overrun(&m->queue) > 0)
        look_everywhere(m);
}

/* The connections with news. False: at least one has to be looked at again. */
static bool look_at_news(struct gnii_msgq *m)
{
    bool is_done = true;

    for (uint32_t word = 0; word < (m->geometry.n_connections + 63) / 64; word++) {
        for (uint64_t left = m->news[word]; left != 0; left &= left - 1) {
            uint32_t index = word * 64 + (uint32_t)__builtin_ctzll(left);

            if (m->batch_end == GNII_MSGQ_BATCH)
                return true; /* more than enough; the marks stay */
            if (index < m->geometry.n_connections && !gnii_msgq_look(m, index))
                is_done = false;
            else if (m->batch_end < GNII_MSGQ_BATCH)
                m->news[word] &= ~(1ull << index % 64);
        }
    }
    return is_done;
}

/* One connection in turn: for messages to others, and for events that were lost. */
static void look_without_cause(struct gnii_msgq *m)
{
    uint32_t n = m->geometry.n_connections < LOOKS_MAX ? m->geometry.n_connections : LOOKS_MAX;

    for (uint32_t i = 0; i < n; i++) {
        uint32_t index = m->next_look;

        m->next_look = (m->next_look + 1) % m->geometry.n_connections;
        if (gnii_msgq_state_of(atomic_load(gnii_msgq_directory(m->region, &m->geometry, index))) == GNII_MSGQ_FREE)
            continue;
        gnii_msgq_look(m, index);
        return;
    }
}

/* Fills the empty batch with what there is. False: come again, a lock was held. */
static bool collect(struct gnii_msgq *m)
{
    bool is_done;

    m->batch_first = 0;
    m->batch_end = 0;
    gnii_msgq_look_into_pool(m);
    take_events(m);
    is_done = look_at_news(m);
    if (m->batch_end == 0)
        look_without_cause(m);
    return is_done;
}

/* What one look at the queue came to. */
enum found { MESSAGE, NOTHING, TRY_AGAIN, FOREIGN_EVENT, GONE };

static enum found take_message(struct gnii_msgq *m, struct gnii_msgq_message *message_out)
{
    bool is_done = true;

    if (atomic_load(&m->is_dead))
        return GONE;
    if (m->batch_first == m->batch_end)
        is_done = collect(m);
    if (m->batch_first != m->batch_end) {
        *message_out = m->batch[m->batch_first++];
        return MESSAGE;
    }
    if (m->got_foreign_event) {
        m->got_foreign_event = false;
        return FOREIGN_EVENT;
    }
    if (gnii_nic_is_lost(m->nic)) {
        gnii_nic_tell_loss(m->nic);
        return GONE;
    }
    return is_done ? NOTHING : TRY_AGAIN;
}

/* Sleeps until an event comes, or a part of the time is over. */
static int sleep_on(struct gnii_msgq *m, const struct gnii_wait *wait, uint64_t deadline_ns)
{
    _Atomic uint32_t *word = &m->queue.shm->sleepers;
    uint64_t look_ns = emu_clock_ns() + LOOK_ALL_NS;
    uint32_t seen = 1;
    int r;

    atomic_store_explicit(word, 1, memory_order_relaxed);
    /* Pairs with the fence in emu_cq_push() and with gnii_msgq_wake(): we see the news, or our mark is seen. */
    atomic_thread_fence(memory_order_seq_cst);
    if (!emu_cq_is_empty(&m->queue) || emu_cq_has_overrun(&m->queue) || atomic_load(&m->is_dead))
        return 0;
    r = gnii_wait_sleep(wait, m->nic, &word, &seen, 1, look_ns < deadline_ns ? look_ns : deadline_ns);
    return r == -ETIMEDOUT && look_ns < deadline_ns ? 1 : r;
}

/* Waits for something to look at. False: the time is over. */
static bool wait_for_news(struct gnii_msgq *m, const struct gnii_wait *wait, uint64_t deadline_ns, uint64_t *polls)
{
    int r;

    if (*polls < m->nic->port.settings.spin_polls) {
        *polls += emu_port_spin(&m->nic->port);
        return *polls % 64 != 0 || emu_clock_ns() < deadline_ns;
    }
    r = sleep_on(m, wait, deadline_ns);
    if (r == 1) {
        emu_biased_lock(&m->nic->lock);
        look_everywhere(m);
        emu_biased_unlock(&m->nic->lock);
    }
    return r != -ETIMEDOUT;
}

static gni_return_t progress(struct gnii_msgq *m, const struct gnii_wait *wait, uint32_t timeout_ms)
{
    bool waits = timeout_ms != (uint32_t)-1;
    uint64_t deadline_ns = waits ? emu_clock_ns() + timeout_ms * MS_NS : 0;
    struct gnii_msgq_message message;
    uint32_t n_messages = 0;
    uint64_t polls = 0;
    bool is_again = false;

    for (;;) {
        enum found found;

        emu_biased_lock(&m->nic->lock);
        found = take_message(m, &message);
        emu_biased_unlock(&m->nic->lock);
        switch (found) {
        case MESSAGE:
            if (m->rcv_cb(message.src_id, message.pe, message.bytes, message.tag, m->cb_data) == 0 ||
                ++n_messages == MESSAGES_MAX)
                return GNI_RC_NOT_DONE;
            polls = 0;
            if (waits)
                deadline_ns = emu_clock_ns() + timeout_ms * MS_NS;
            continue;
        case FOREIGN_EVENT:
        case GONE:
            return GNI_RC_INVALID_STATE;
        case TRY_AGAIN:
        case NOTHING:
            break;
        }
        if (!waits) {
            is_again = !is_again && emu_port_relax(&m->nic->port, (uintptr_t)m);
            if (is_again)
                continue;
            return found == NOTHING ? GNI_RC_SUCCESS : GNI_RC_NOT_DONE;
        }
        if (found == TRY_AGAIN) {
            emu_port_spin(&m->nic->port);
            if (emu_clock_ns() >= deadline_ns)
                return GNI_RC_NOT_DONE;
        } else if (!wait_for_news(m, wait, deadline_ns, &polls)) {
            return GNI_RC_SUCCESS;
        }
    }
}

gni_return_t GNI_MsgqProgress(gni_msgq_handle_t msgq_hndl, uint32_t timeout)
{
    struct gnii_msgq *m = gnii_object_get(GNII_KIND_MSGQ, msgq_hndl);
    gni_return_t rc = GNI_RC_INVALID_PARAM;
    struct gnii_wait wait;

    if (!m)
        return GNI_RC_INVALID_PARAM;
    gnii_wait_begin(&wait, put_msgq, m);
    if ((m->is_blocking || timeout == (uint32_t)-1) && m->nic->port.owner == getpid())
        rc = progress(m, &wait, timeout);
    gnii_wait_end(&wait);
    return rc;
}
