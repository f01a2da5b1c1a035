/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Portals interface, owner's side and direct path.
 *
 * A data movement call begins on the own interface (SEND_START), and is then carried out by us or by emunic:
 *
 *   direct   lock the target, match, commit and START, move the data, END, unlock; then SEND_END and ACK or REPLY at
 *            home. The order of requests to one target is the order of calls, because each is over before the next
 *            begins. Data above SHORT_BYTES are moved without the target's lock; a flight in the target's interface
 *            tells emunic how far we were if we die (engine/portals.h).
 *   routed   a command in the port's ring; emunic does the same (daemon/portals.c). The gate (client/lane.h) lets
 *            nothing go direct while commands of ours wait there, so switching loses and reorders nothing.
 *
 * Cache lines of a small put from a descriptor without a queue. It writes six of the target's interface: the lock's,
 * its flight's, the queue's, two of the event and, if its words change, the descriptor's; one or more of data; and
 * three of its own (the mark, flow counters, registers). All others (domain table, list, places) are only read and stay
 * in the cache. Where one process sends, those that come from another core are the event's two and the data's, and both
 * are asked for while the words of the request are still worked on; where several send, lock, queue and descriptor come
 * from the last one. One locked instruction, the target's lock. What was found out about a target (its window, segment,
 * port) is kept per peer.
 *
 * Never are two interfaces locked at a time. While we hold or wait for one our mark is up (emu_segment.inside): emunic
 * takes no memory away under us, and a lock whose named holder is outside, or waits for one itself, is nobody's. A lock
 * that does not come free is reported to emunic, which breaks it if it is nobody's; a holder that is merely stopped
 * stalls us.
 *
 * Left to emunic: whatever the domain's flags say, transfers above EMUNIC_DIRECT_LIMIT, targets whose memory we cannot
 * reach.
 */
#include "emunic/client/portals.h"

#include <emmintrin.h>
#include <errno.h>
#include <sched.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "emunic/base/clock.h"
#include "emunic/base/log.h"
#include "emunic/client/direct.h"
#include "emunic/client/lane.h"
#include "emunic/engine/pages.h"
#include "emunic/engine/transaction.h"
#include "emunic/engine/word.h"

#define SHORT_BYTES       8192u      /* moved under the target's lock */
#define SPINS_PER_YIELD   100u
#define YIELDS_PER_LOOK   64u
#define STUCK_NS          20000000u  /* a lock that is held so long is looked into */

/* A process that we send to: half a KiB in pages that are taken when it is met. */
struct emu_portals_peer {
    uint32_t generation;        /* of the port that this is about; 0: nothing yet */
    bool has_none;              /* emunic said no */
    struct emu_ptl_ni *ni;      /* mapped */
    struct emu_segment *segment; /* borrowed from the direct path: for waking its owner; NULL: not yet known */
    uint32_t mdh;               /* memory domain that `lane` leads to; 0: there is none */
    uint32_t mdh_generation;
    struct emu_lane lane;       /* to the memory of the descriptor that was hit last */
};

/* ---- life ---- */

static int map_part(const struct emu_fds *fds, uint64_t bytes, struct emu_ptl_ni **ni_out)
{
    struct stat st;
    void *addr;

    if (fds->n_fds != 1 || bytes != sizeof(struct emu_ptl_ni) || fstat(fds->fd[0], &st) < 0 ||
        (uint64_t)st.st_size < bytes)
        return -EPROTO;
    addr = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fds->fd[0], 0);
    if (addr == MAP_FAILED)
        return -errno;
    *ni_out = addr;
    return 0;
}

static int ask_for_part(struct emu_portals *p, const struct emu_portals_options *options)
{
    struct emu_msg msg = { .type = EMU_MSG_PORTALS_OPEN, .portals = { .pid = options->pid } };
    struct emu_fds fds;
    int r = emu_session_request(&p->port.session, &msg, NULL, 0, &fds);

    if (r == 0)
        r = msg.result;
    if (r == 0)
        r = map_part(&fds, msg.portals.length_bytes, &p->ni);
    emu_fds_close(&fds);
    if (r != 0)
        return r < 0 ? r : -EPROTO;
    if (p->ni->magic != EMU_PTL_MAGIC || p->ni->abi_version != EMU_ABI_VERSION)
        return -EPROTO;
    p->pid = msg.portals.pid;
    return 0;
}

/* Entries of the access control table admit everybody of our user. */
static void fill_access(struct emu_ptl_ni *ni)
{
    for (uint32_t i = 0; i < EMU_PTL_ACES; i++)
        ni->aces[i] = (struct emu_ptl_ace){ EMU_PTL_NID_ANY, EMU_PTL_PID_ANY, ni->uid, EMU_PTL_JID_ANY, EMU_PTL_PT_ANY,
                                            { 0 } };
}

int emu_portals_open(struct emu_portals *p, const struct emu_portals_options *options)
{
    int r;

    memset(p, 0, sizeof(*p));
    r = emu_port_attach(&p->port, options->ptag, options->cookie, options->pid, 0);
    if (r < 0)
        return r;
    p->generation = emu_table_ports(p->port.table)[p->port.index].generation;
    p->holder = emu_ptl_holder(p->port.index, p->generation);
    p->peers = emu_pages_take(p->port.table->n_ports * sizeof(*p->peers));
    r = p->peers ? ask_for_part(p, options) : -ENOMEM;
    if (r == 0)
        r = emu_ptl_owner_init(&p->owner, p->ni, options->number, options->salt, &options->limits);
    if (r < 0) {
        emu_portals_close(p);
        return r;
    }
    p->gate = p->port.direct ? emu_direct_gate(p->port.direct) : NULL;
    emu_regions_init(&p->regions, &p->port);
    p->ni->behaviour = options->behaviour;
    p->ni->max_pt = options->max_pt;
    p->ni->max_ac = options->max_ac;
    p->ni->max_getput = options->max_getput;
    p->ni->nid = p->port.nid;
    p->ni->pid = p->pid;
    p->ni->uid = emu_table_ports(p->port.table)[p->port.index].uid;
    p->ni->jid = options->jid;
    fill_access(p->ni);
    emu_portals_hold(p);
    p->ni->is_up = 1;
    emu_portals_release(p);
    emu_log(EMU_LOG_INFO, "portals nid %u pid %u", p->port.nid, p->pid);
    return 0;
}

static void forget(struct emu_portals_peer *peer)
{
    if (peer->ni)
        munmap(peer->ni, sizeof(*peer->ni));
    *peer = (struct emu_portals_peer){ .generation = 0 };
}

void emu_portals_close(struct emu_portals *p)
{
    /* A forked child only gives its copies back. */
    if (p->ni && p->owner.ni && p->port.owner == getpid()) {
        emu_portals_hold(p);
        p->ni->is_up = 0;
        emu_portals_release(p);
    }
    /* emunic has let go of everything before it is unmapped. */
    if (p->port.table)
        emu_port_hang_up(&p->port);
    for (uint32_t i = 0; p->peers && i < p->port.table->n_ports; i++)
        forget(&p->peers[i]);
    emu_pages_give(p->peers, p->port.table ? p->port.table->n_ports * sizeof(*p->peers) : 0);
    emu_regions_fini(&p->regions);
    if (p->owner.ni)
        emu_ptl_owner_fini(&p->owner);
    if (p->ni)
        munmap(p->ni, sizeof(*p->ni));
    emu_port_detach(&p->port);
    memset(p, 0, sizeof(*p));
}

/* ---- locks ---- */

static bool is_live(const struct emu_portals *p, uint32_t port, uint32_t generation)
{
    const struct emu_table_port *entry = &emu_table_ports(p->port.table)[port];

    return atomic_load_explicit(&entry->state, memory_order_acquire) == EMU_PORT_LIVE &&
           entry->generation == generation;
}

/* Runs when the lock has been held for long. */
static void report_stuck(struct emu_portals *p, uint32_t port)
{
    struct emu_msg msg = { .type = EMU_MSG_PORTALS_STUCK, .portals = { .port = port } };

    emu_port_request(&p->port, &msg);
}

/* Runs when the lock is not free. False: the interface's owner has gone, or emunic. */
static bool wait_for_lock(struct emu_portals *p, struct emu_ptl_ni *ni, uint32_t port, uint32_t generation)
{
    uint64_t reported_ns = emu_clock_ns();
    uint32_t tries = 0;

    while (!emu_ptl_try_lock(ni, p->holder)) {
        uint64_t now_ns;

        if (++tries % SPINS_PER_YIELD != 0) {
            _mm_pause();
            continue;
        }
        sched_yield();
        if (tries % (SPINS_PER_YIELD * YIELDS_PER_LOOK) != 0)
            continue;
        if (!is_live(p, port, generation) || emu_port_is_lost(&p->port))
            return false;
        now_ns = emu_clock_ns();
        if (now_ns - reported_ns > STUCK_NS) {
            report_stuck(p, port);
            reported_ns = now_ns;
        }
    }
    return true;
}

static bool take_lock(struct emu_portals *p, struct emu_ptl_ni *ni, uint32_t port, uint32_t generation)
{
    return emu_ptl_try_lock(ni, p->holder) || wait_for_lock(p, ni, port, generation);
}

static void enter(struct emu_portals *p)
{
    if (p->gate)
        emu_gate_enter(p->gate);
    else
        atomic_fetch_add_explicit(&p->port.segment->inside, 1, memory_order_seq_cst);
}

static void leave(struct emu_portals *p)
{
    if (p->gate)
        emu_gate_leave(p->gate);
    else
        atomic_fetch_add_explicit(&p->port.segment->inside, 1, memory_order_release);
}

/* Our own interface. Without emunic nobody else counts any more: then we go on without the lock. */
static void lock_own(struct emu_portals *p)
{
    if (!take_lock(p, p->ni, p->port.index, p->generation)) {
        p->is_broken = true;
        atomic_store(&p->ni->lock, p->holder);
    }
}

void emu_portals_hold(struct emu_portals *p)
{
    enter(p);
    lock_own(p);
    if (emu_ptl_has_dead(&p->owner))
        emu_ptl_reap(&p->owner);
}

void emu_portals_release(struct emu_portals *p)
{
    emu_ptl_unlock(p->ni);
    leave(p);
}

/* ---- targets ---- */

/* A target that is reached from here. */
struct target {
    uint32_t port;
    uint32_t generation;
    uint32_t node_index;
    struct emu_ptl_ni *ni;
    struct emu_portals_peer *peer;  /* NULL: ourselves */
};

static bool is_that(const struct emu_portals *p, uint32_t port, uint32_t nid, uint32_t pid)
{
    const struct emu_table_port *entry = &emu_table_ports(p->port.table)[port];

    return atomic_load_explicit(&entry->state, memory_order_acquire) == EMU_PORT_LIVE &&
           atomic_load_explicit(&entry->ptl_id, memory_order_acquire) == pid + 1 && entry->nid == nid;
}

/* Slot of the port with that address, or EMU_PTL_NONE. */
static uint32_t find_port(struct emu_portals *p, uint32_t address, uint32_t pid, uint32_t *node_index_out)
{
    struct emu_portals_known *known = &p->known[(address * 31 + pid) % EMU_PORTALS_KNOWN];
    uint32_t node = emu_table_node_index(p->port.table, address);
    uint32_t nid;

    if (node >= p->port.table->n_nodes)
        return EMU_PTL_NONE;
    *node_index_out = node;
    if (emu_table_nodes(p->port.table)[node].host != EMU_NODE_HERE)
        return EMU_PTL_NONE;
    nid = emu_table_nodes(p->port.table)[node].nid;
    if (known->generation != 0 && known->nid == address && known->pid == pid &&
        is_live(p, known->port, known->generation))
        return known->port;
    for (uint32_t i = 0; i < p->port.table->n_ports; i++) {
        if (is_that(p, i, nid, pid)) {
            *known = (struct emu_portals_known){ address, pid, i, emu_table_ports(p->port.table)[i].generation };
            return i;
        }
    }
    return EMU_PTL_NONE;
}

/* Runs once per peer. */
static void map_peer(struct emu_portals *p, struct emu_portals_peer *peer, uint32_t port)
{
    struct emu_msg msg = { .type = EMU_MSG_PORTALS_PEER, .portals = { .port = port } };
    struct emu_fds fds;

    peer->has_none = true;
    if (emu_session_request(&p->port.session, &msg, NULL, 0, &fds) < 0)
        return;
    if (msg.result == 0 && msg.portals.generation == peer->generation &&
        map_part(&fds, msg.portals.length_bytes, &peer->ni) == 0)
        peer->has_none = false;
    emu_fds_close(&fds);
}

enum found { IS_HERE, IS_NOWHERE, IS_NOT_REACHED };

static bool is_elsewhere(const struct emu_portals *p, uint32_t address)
{
    uint32_t node = emu_table_node_index(p->port.table, address);

    return node < p->port.table->n_nodes && emu_table_nodes(p->port.table)[node].host != EMU_NODE_HERE;
}

static enum found find_target(struct emu_portals *p, const struct emu_ptl_send *send, struct target *t)
{
    struct emu_portals_peer *peer;

    t->port = find_port(p, send->nid, send->pid, &t->node_index);
    if (t->port == EMU_PTL_NONE)
        return is_elsewhere(p, send->nid) ? IS_NOT_REACHED : IS_NOWHERE;
    t->generation = emu_table_ports(p->port.table)[t->port].generation;
    t->peer = NULL;
    if (t->port == p->port.index) {
        t->ni = p->ni;
        return IS_HERE;
    }
    t->peer = peer = &p->peers[t->port];
    if (peer->generation != t->generation) {
        forget(peer);
        peer->generation = t->generation;
    }
    if (!peer->ni && !peer->has_none)
        map_peer(p, peer, t->port);
    t->ni = peer->ni;
    return t->ni ? IS_HERE : IS_NOT_REACHED;
}

/* Whose port rests, perhaps, and is to be woken; or NULL. */
static struct emu_segment *segment_of(struct emu_portals *p, const struct target *t)
{
    if (!t->peer)
        return p->port.segment;
    if (!t->peer->segment)
        t->peer->segment = emu_direct_segment_of(p->port.direct, t->port);
    return t->peer->segment;
}

static bool is_good(const struct emu_portals *p, const struct emu_lane *lane)
{
    return lane->epoch == p->gate->epoch &&
           atomic_load_explicit(&p->port.table->files_gone, memory_order_relaxed) == p->gate->files_gone &&
           emu_lane_is_current(lane) && lane->md->file == lane->file && !emu_lane_is_broken(lane);
}

/* The memory domain of a peer's descriptor, remembered from the last time. False: it is not mapped here. */
static bool has_lane(struct emu_portals *p, const struct target *t, const struct emu_ptl_md *md)
{
    struct emu_portals_peer *peer = t->peer;

    if (peer->mdh == md->mdh && peer->mdh_generation == md->mdh_generation && is_good(p, &peer->lane))
        return true;
    peer->mdh = 0;
    if (md->mdh >= EMU_MD_COUNT || md->mdh_generation > EMU_MD_GENERATION_MAX ||
        !emu_direct_lane(p->port.direct, t->node_index, (uint16_t)md->mdh, (uint16_t)md->mdh_generation, &peer->lane) ||
        !peer->lane.window || peer->lane.is_read_only || peer->lane.port != &emu_table_ports(p->port.table)[t->port] ||
        !is_good(p, &peer->lane))
        return false;
    peer->mdh = md->mdh;
    peer->mdh_generation = md->mdh_generation;
    return true;
}

/* How to reach the memory of a descriptor of the target. An enum emu_status, or EMU_REACH_NOT_HERE. */
static int reach(struct emu_portals *p, const struct target *t, const struct emu_ptl_md *md, struct emu_memory *mem_out)
{
    if (!t->peer) {
        *mem_out = emu_memory_self();
        return EMU_STATUS_OK;
    }
    if (md->mdh != 0 && has_lane(p, t, md)) {
        const struct emu_lane *lane = &t->peer->lane;

        *mem_out = emu_memory_map(lane->window, lane->first, lane->end - lane->first);
        mem_out->broken = lane->broken;
        return EMU_STATUS_OK;
    }
    if (md->mdh != 0 && md->mdh < EMU_MD_COUNT) {
        const struct emu_table_md *entry = &emu_table_mds(p->port.table, t->node_index)[md->mdh];

        if (atomic_load_explicit(&entry->state, memory_order_acquire) != 0 && entry->port == t->port &&
            entry->generation == md->mdh_generation &&
            emu_direct_reach(p->port.direct, entry, mem_out) == EMU_STATUS_OK)
            return EMU_STATUS_OK;
    }
    return emu_direct_reach_private(p->port.direct, t->port, mem_out);
}

/* ---- carrying out ---- */

static struct emu_ptl_peer peer_id(const struct emu_portals *p, const struct target *t, const struct emu_ptl_send *send)
{
    return (struct emu_ptl_peer){ send->nid, send->pid, emu_table_ports(p->port.table)[t->port].uid, t->ni->jid };
}

static unsigned fail_of(int result)
{
    return result == 0 ? 0 : result == -ESRCH ? EMU_STATUS_PEER_GONE : EMU_STATUS_REMOTE_RANGE;
}

static void span_of_md(struct emu_portals *p, uint32_t md, struct emu_ptl_span *span)
{
    emu_ptl_span_of(p->ni, &p->ni->mds[md], span);
}

static void count(struct emu_portals *p, const struct target *t, const struct emu_ptl_send *send, uint64_t mlength)
{
    struct emu_flow_counts *flow = emu_direct_flow(p->port.direct, t->node_index);

    if (send->kind == EMU_PTL_PUT)
        emu_gate_count_put(p->gate, flow, mlength);
    else
        emu_flow_add_get(flow, &p->port.table->format, mlength, send->kind == EMU_PTL_GETPUT ? mlength : 0);
}

/* What a carried out request leaves to be done at home. */
struct outcome {
    bool is_taken;
    bool acks;
    uint64_t mlength;
    unsigned fail;
    struct emu_ptl_peer peer;
};

/* An operation at the target between begin and end. */
struct stay {
    struct emu_ptl_request request;
    struct emu_ptl_taker taker;
    bool is_brief;
    struct emu_ptl_flight *flight;
    struct emu_ptl_flight own;          /* at ourselves nobody has to be told */
    struct emu_ptl_span span;
    struct emu_memory memory;
    struct emu_ptl_iov iovs[EMU_PTL_IOVEC_MAX];
};

/* The target may change its descriptor while we work on the memory: a copy of the segments. */
static void keep_span(struct stay *stay, const struct target *t)
{
    emu_ptl_span_of(t->ni, &stay->taker.md, &stay->span);
    if (!stay->span.iovs)
        return;
    memcpy(stay->iovs, stay->span.iovs, stay->span.n * sizeof(stay->iovs[0]));
    stay->span.iovs = stay->iovs;
}

enum begun { HAS_BEGUN, IS_DROPPED, IS_LEFT };

/* What will be written at once is got on its way: the event's place, and the first of the data's. */
static void expect(const struct target *t, const struct stay *stay)
{
    emu_ptl_expect(t->ni, &stay->taker);
    if (stay->taker.mlength > 0 && stay->memory.ops->window && !stay->span.iovs)
        emu_prefetch_for_write(stay->memory.ops->window(&stay->memory, stay->span.one.addr + stay->taker.offset, 0));
}

/* The target is locked; afterwards it is so only with HAS_BEGUN. */
static enum begun begin_at(struct emu_portals *p, const struct target *t, const struct emu_ptl_send *send,
                           struct stay *stay)
{
    stay->request = emu_ptl_request_of(send, (struct emu_ptl_peer){ p->port.nid, p->pid, p->ni->uid, p->ni->jid });
    if (emu_ptl_match(t->ni, &stay->request, &stay->taker) != EMU_PTL_TAKEN) {
        emu_ptl_unlock(t->ni);
        return IS_DROPPED;
    }
    if (stay->taker.mlength > 0 && reach(p, t, &stay->taker.md, &stay->memory) != EMU_STATUS_OK) {
        emu_ptl_unlock(t->ni);
        return IS_LEFT;
    }
    keep_span(stay, t);
    expect(t, stay);
    stay->flight = t->peer ? &t->ni->flights[p->port.index] : &stay->own;
    /* A get lets go of the lock in between, a long put too. */
    stay->is_brief = send->kind != EMU_PTL_GET && stay->taker.mlength <= SHORT_BYTES;
    if (stay->is_brief)
        emu_ptl_begin_brief(t->ni, &stay->taker, p->generation, stay->flight);
    else
        emu_ptl_begin(t->ni, &stay->request, &stay->taker, p->generation, stay->flight);
    return HAS_BEGUN;
}

/* The target is locked, and is not afterwards. */
static void end_at(const struct target *t, struct stay *stay, unsigned fail)
{
    if (stay->is_brief)
        emu_ptl_end_brief(t->ni, &stay->request, &stay->taker, stay->flight, fail);
    else
        emu_ptl_end(t->ni, stay->flight, fail);
    emu_ptl_unlock(t->ni);
}

/* The owner may have gone while we did not hold it; then nobody wants to know. */
static bool lock_again(struct emu_portals *p, const struct target *t)
{
    return take_lock(p, t->ni, t->port, t->generation);
}

static int move_put(struct emu_portals *p, const struct emu_ptl_send *send, struct stay *stay)
{
    struct emu_memory self = emu_memory_self();
    struct emu_ptl_span from;
    void *to = NULL;
    int fault;

    if (stay->taker.mlength == 0)
        return 0;
    span_of_md(p, send->md, &from);
    if (stay->is_brief && !from.iovs && !stay->span.iovs && stay->memory.ops->window)
        to = stay->memory.ops->window(&stay->memory, stay->span.one.addr + stay->taker.offset, stay->taker.mlength);
    if (to) {
        emu_word_store(to, (const void *)(uintptr_t)(from.one.addr + send->local_offset), stay->taker.mlength);
        return emu_memory_is_broken(&stay->memory) ? -EFAULT : 0;
    }
    return emu_ptl_move(&stay->memory, &stay->span, stay->taker.offset, &self, &from, send->local_offset,
                        stay->taker.mlength, p, 1, &fault);
}

static enum begun run_put(struct emu_portals *p, const struct target *t, const struct emu_ptl_send *send,
                          struct stay *stay, struct outcome *out)
{
    enum begun begun = begin_at(p, t, send, stay);
    bool is_held = true;

    if (begun != HAS_BEGUN)
        return begun;
    if (stay->taker.mlength > SHORT_BYTES) {
        emu_ptl_unlock(t->ni);
        out->fail = fail_of(move_put(p, send, stay));
        is_held = lock_again(p, t);
    } else {
        out->fail = fail_of(move_put(p, send, stay));
    }
    if (is_held)
        end_at(t, stay, out->fail);
    else
        out->fail = EMU_STATUS_PEER_GONE;
    out->acks = stay->taker.acks && out->fail == 0;
    out->mlength = stay->taker.mlength;
    return HAS_BEGUN;
}

/* The reply's data: from the target's memory, or from `swapped`. */
static int move_reply(struct emu_portals *p, const struct emu_ptl_send *send, const struct emu_ptl_reply *reply,
                      struct stay *stay, void *swapped)
{
    struct emu_memory self = emu_memory_self();
    struct emu_ptl_span to;
    struct emu_ptl_span swap = { .n = 1, .one = { (uint64_t)(uintptr_t)swapped, EMU_PTL_GETPUT_MAX } };
    int fault;

    emu_ptl_span_of(p->ni, &reply->md, &to);
    if (swapped)
        return emu_ptl_move(&self, &to, send->local_offset, &self, &swap, 0, reply->mlength, p, 1, &fault);
    return emu_ptl_move(&self, &to, send->local_offset, &stay->memory, &stay->span, stay->taker.offset, reply->mlength,
                        p, 1, &fault);
}

/* SEND_END and REPLY at home. True: the data shall be stored, then finish_reply(). */
static bool begin_reply(struct emu_portals *p, const struct emu_ptl_send *send, const struct emu_ptl_peer *peer,
                        uint64_t mlength, struct emu_ptl_reply *reply)
{
    bool is_taken;

    lock_own(p);
    emu_ptl_send_end(p->ni, send, 0);
    is_taken = emu_ptl_reply_begin(p->ni, send, peer, mlength, reply);
    emu_ptl_unlock(p->ni);
    return is_taken;
}

static void finish_reply(struct emu_portals *p, const struct emu_ptl_send *send, struct emu_ptl_reply *reply,
                         unsigned fail)
{
    lock_own(p);
    emu_ptl_reply_end(p->ni, send, reply, fail);
    emu_ptl_unlock(p->ni);
}

static enum begun run_get(struct emu_portals *p, const struct target *t, const struct emu_ptl_send *send,
                          struct stay *stay, struct outcome *out)
{
    enum begun begun = begin_at(p, t, send, stay);
    struct emu_ptl_reply reply;
    struct emu_ptl_peer peer;
    bool is_taken;

    if (begun != HAS_BEGUN)
        return begun;
    peer = peer_id(p, t, send);
    emu_ptl_unlock(t->ni);
    is_taken = begin_reply(p, send, &peer, stay->taker.mlength, &reply);
    if (is_taken)
        out->fail = fail_of(move_reply(p, send, &reply, stay, NULL));
    if (lock_again(p, t))
        end_at(t, stay, out->fail);
    if (is_taken)
        finish_reply(p, send, &reply, out->fail);
    out->mlength = stay->taker.mlength;
    return HAS_BEGUN;
}

/* Under the target's lock, which is what makes it atomic towards other swaps. */
static unsigned swap(struct emu_portals *p, const struct emu_ptl_send *send, struct stay *stay, uint8_t *old)
{
    struct emu_memory self = emu_memory_self();
    struct emu_ptl_span from;
    struct emu_ptl_span to = { .n = 1, .one = { (uint64_t)(uintptr_t)old, EMU_PTL_GETPUT_MAX } };
    int fault;
    int r;

    span_of_md(p, send->put_md, &from);
    r = emu_ptl_move(&self, &to, 0, &stay->memory, &stay->span, stay->taker.offset, stay->taker.mlength, p, 1, &fault);
    if (r == 0)
        r = emu_ptl_move(&stay->memory, &stay->span, stay->taker.offset, &self, &from, send->put_offset,
                         stay->taker.mlength, p, 1, &fault);
    return fail_of(r);
}

static enum begun run_getput(struct emu_portals *p, const struct target *t, const struct emu_ptl_send *send,
                             struct stay *stay, struct outcome *out)
{
    uint8_t old[EMU_PTL_GETPUT_MAX] = { 0 };
    enum begun begun = begin_at(p, t, send, stay);
    struct emu_ptl_reply reply;
    struct emu_ptl_peer peer;

    if (begun != HAS_BEGUN)
        return begun;
    peer = peer_id(p, t, send);
    out->mlength = stay->taker.mlength;
    out->fail = out->mlength <= sizeof(old) ? swap(p, send, stay, old) : EMU_STATUS_BAD_COMMAND;
    end_at(t, stay, out->fail);
    if (begin_reply(p, send, &peer, out->mlength, &reply)) {
        if (out->fail == 0)
            out->fail = fail_of(move_reply(p, send, &reply, stay, old));
        finish_reply(p, send, &reply, out->fail);
    }
    return HAS_BEGUN;
}

/* SEND_END, and ACK if there is one. */
static void finish_at_home(struct emu_portals *p, const struct emu_ptl_send *send, const struct outcome *out)
{
    lock_own(p);
    emu_ptl_send_end(p->ni, send, out->fail);
    if (out->acks)
        emu_ptl_ack(p->ni, send, &out->peer, out->mlength, 0);
    emu_ptl_unlock(p->ni);
}

/* True: it is over. False: emunic has to do it. We are inside, nothing is locked. */
static bool run_direct(struct emu_portals *p, const struct emu_ptl_send *send)
{
    struct outcome out = { .is_taken = false };
    enum begun begun = IS_DROPPED;
    struct emu_segment *segment;
    struct target t;
    struct stay stay;

    switch (find_target(p, send, &t)) {
    case IS_NOT_REACHED:
        return false;
    case IS_NOWHERE:
        break;
    case IS_HERE:
        segment = segment_of(p, &t);
        if (!take_lock(p, t.ni, t.port, t.generation))
            break;
        if (send->kind == EMU_PTL_PUT)
            begun = run_put(p, &t, send, &stay, &out);
        else if (send->kind == EMU_PTL_GET)
            begun = run_get(p, &t, send, &stay, &out);
        else
            begun = run_getput(p, &t, send, &stay, &out);
        if (begun == IS_LEFT)
            return false;
        count(p, &t, send, out.mlength);
        if (segment)
            emu_rest_disturb(segment);
    }
    if (begun == HAS_BEGUN && send->kind != EMU_PTL_PUT)
        return true;            /* done with the reply */
    if (begun == HAS_BEGUN)
        out.peer = peer_id(p, &t, send);
    finish_at_home(p, send, &out);
    return true;
}

/* ---- routed ---- */

static void fill_command(struct emu_ptl_cmd *cmd, const struct emu_ptl_send *send)
{
    static const uint8_t ops[] = { EMU_OP_PTL_PUT, EMU_OP_PTL_GET, EMU_OP_PTL_GETPUT };

    *cmd = (struct emu_ptl_cmd){
        .op = ops[send->kind],
        .nid = send->nid,
        .remote_offset = send->offset,
        .length_bytes = send->length_bytes,
        .bits = send->bits,
        .hdr_data = send->hdr_data,
        .pid = send->pid,
        .pt = send->pt,
        .ac = send->ac,
        .ptl_flags = send->wants_ack ? EMU_PTL_CMD_ACK : 0,
        .md = send->md,
        .md_generation = send->md_generation,
        .local_offset = send->local_offset,
        .put_md = send->put_md,
        .put_md_generation = send->put_md_generation,
        .put_offset = send->put_offset,
        .link = send->link,
        .threshold = send->threshold,
        .eq = send->eq,
        .eq_generation = send->eq_generation,
    };
}

/* Small data are read now: emunic finds them in the staging area without a system call. */
static bool stage(struct emu_portals *p, const struct emu_ptl_send *send, uint64_t staging_off)
{
    struct emu_memory self = emu_memory_self();
    struct emu_ptl_span from;
    struct emu_ptl_span to = { .n = 1,
                               .one = { (uint64_t)(uintptr_t)(p->port.staging + staging_off), send->length_bytes } };
    int fault;

    span_of_md(p, send->put_md, &from);
    return emu_ptl_move(&self, &to, 0, &self, &from, send->kind == EMU_PTL_PUT ? send->local_offset : send->put_offset,
                        send->length_bytes, p, 1, &fault) == 0;
}

static void run_routed(struct emu_portals *p, const struct emu_ptl_send *send)
{
    bool may_stage = send->kind != EMU_PTL_GET && send->length_bytes > 0 && send->length_bytes <= EMU_PTL_STAGED_MAX;
    struct outcome out = { .fail = EMU_STATUS_NETWORK };
    uint64_t staging_off = 0;
    struct emu_ptl_cmd cmd;
    struct emu_cmd *slot = emu_port_command(&p->port, may_stage ? send->length_bytes : 0, &staging_off);

    if (!slot) {                /* emunic has gone */
        p->is_broken = true;
        enter(p);
        finish_at_home(p, send, &out);
        leave(p);
        return;
    }
    fill_command(&cmd, send);
    if (may_stage && stage(p, send, staging_off)) {
        cmd.flags = EMU_CMD_STAGED;
        cmd.staging_off = staging_off;
    }
    memcpy(slot, &cmd, sizeof(cmd));
    emu_port_publish(&p->port);
}

/* ---- the short way ---- */

/*
 * A small put from a descriptor that requests cannot hit: nobody else changes its words, so everything at home,
 * SEND_START included, waits until the data are delivered, and one lock does for all of it; or none, where nobody is to
 * be told.
 */
static bool may_be_short(const struct emu_portals *p, const struct emu_ptl_send *send)
{
    const struct emu_ptl_md *md = &p->ni->mds[send->md];

    return send->kind == EMU_PTL_PUT && send->length_bytes <= SHORT_BYTES && md->me == EMU_PTL_NONE &&
           md->threshold != 0 && (md->flags & EMU_PTL_MD_INACTIVE) == 0 && p->ni->n_fails == 0 && p->gate &&
           emu_gate_is_open(p->gate) && !atomic_load_explicit(&p->port.session.is_lost, memory_order_relaxed) &&
           md->generation == send->md_generation && send->length_bytes <= p->port.settings.direct_limit_bytes;
}

/* Nothing at home changes but counters of our own. */
static bool is_silent(const struct emu_portals *p, const struct emu_ptl_send *send, const struct outcome *out)
{
    const struct emu_ptl_md *md = &p->ni->mds[send->md];

    return !out->acks && md->threshold < 0 &&
           (md->eq == EMU_PTL_NONE ||
            (~md->options & (EMU_PTL_MD_START_DISABLE | EMU_PTL_MD_END_DISABLE)) == 0);
}

static void account_short(struct emu_portals *p, struct emu_ptl_send *send, const struct outcome *out)
{
    if (is_silent(p, send, out)) {
        p->ni->registers[EMU_PTL_SR_SEND_COUNT]++;
        p->ni->registers[EMU_PTL_SR_SEND_LENGTH] += send->length_bytes;
        return;
    }
    lock_own(p);
    if (emu_ptl_send_begin(p->ni, send) == 0) {
        emu_ptl_send_end(p->ni, send, out->fail);
        if (out->acks)
            emu_ptl_ack(p->ni, send, &out->peer, out->mlength, 0);
    }
    emu_ptl_unlock(p->ni);
}

/* True: it is over. False: nothing has happened. We are inside. */
static bool run_short(struct emu_portals *p, struct emu_ptl_send *send)
{
    struct outcome out = { .is_taken = false };
    struct emu_segment *segment;
    struct target t;
    struct stay stay;

    if (find_target(p, send, &t) != IS_HERE || !t.peer)
        return false;
    emu_prefetch_for_write(&t.ni->lock);
    segment = segment_of(p, &t);
    if (!take_lock(p, t.ni, t.port, t.generation) || run_put(p, &t, send, &stay, &out) == IS_LEFT)
        return false;
    count(p, &t, send, out.mlength);
    if (segment)
        emu_rest_disturb(segment);
    if (out.acks)
        out.peer = peer_id(p, &t, send);
    account_short(p, send, &out);
    return true;
}

/* ---- calls ---- */

int emu_portals_send(struct emu_portals *p, struct emu_ptl_send *send)
{
    struct outcome lost = { .fail = 0 };
    bool is_cut_off;
    bool is_done = false;
    int r;

    if (p->port.direct)
        emu_direct_trim(p->port.direct);
    enter(p);
    if (may_be_short(p, send) && run_short(p, send)) {
        leave(p);
        return 0;
    }
    lock_own(p);
    r = emu_ptl_send_begin(p->ni, send);
    is_cut_off = r == 0 && p->ni->n_fails > 0 && emu_ptl_is_cut_off(p->ni, send->nid);
    emu_ptl_unlock(p->ni);
    if (r < 0) {
        leave(p);
        return r;
    }
    if (is_cut_off) {
        finish_at_home(p, send, &lost);
        is_done = true;
    } else if (p->gate && send->length_bytes <= p->port.settings.direct_limit_bytes && emu_gate_is_open(p->gate) &&
               !atomic_load_explicit(&p->port.session.is_lost, memory_order_relaxed)) {
        is_done = run_direct(p, send);
    }
    leave(p);
    if (!is_done)
        run_routed(p, send);
    return 0;
}

int emu_portals_wait(struct emu_portals *p, uint64_t deadline_ns)
{
    _Atomic uint32_t *const words[] = { &p->ni->waiting };
    const uint32_t seen[] = { EMU_PTL_SLEEPS };

    return emu_port_wait(&p->port, words, seen, 1, deadline_ns);
}

int emu_portals_distance(struct emu_portals *p, uint32_t nid, uint32_t *distance_out)
{
    struct emu_msg msg = { .type = EMU_MSG_PORTALS_DISTANCE, .portals = { .nid = nid } };
    int r;

    if (emu_table_node_index(p->port.table, nid) >= p->port.table->n_nodes)
        return -EHOSTUNREACH;
    r = emu_port_request(&p->port, &msg);
    if (r == 0)
        *distance_out = msg.portals.distance;
    return r;
}
