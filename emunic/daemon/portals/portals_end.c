/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Portals, emunic's side.
 *
 * An interface is a port with a Portals part (abi/portals.h). Its process id is unique among the interfaces on a node
 * of the domain; wanted ids are given, or refused; others are the rank's number, or the next free one. Members find
 * interfaces in the domain table.
 *
 * Routed commands. The command at the head of a ring is worked off in steps, each of which wants one lock at most:
 *
 *   put      begin (target: match, START) -> move -> sent (initiator: SEND_END) -> end (target: END) -> home (ACK)
 *   get      begin (initiator: SEND_END; target) -> reply (initiator: REPLY_START) -> move -> end -> home (REPLY_END)
 *   getput   begin (with the swap) -> sent -> end -> reply -> move -> home
 *   none     begin (nobody takes it) -> home (SEND_END)
 *
 * SEND_END stands in the initiator's queue before END does in the target's, whatever it may cause there. Data of one
 * slice are moved in the first step, and where the initiator's lock is free then, "sent" and "end" are part of it.
 * A get's is posted first of all, if the initiator has not done it (EMU_PTL_CMD_SENT).
 *
 * A lock that is not free, or data longer than a slice, end the step; the next round goes on. The command stays at the
 * ring's head meanwhile, so the port's later requests wait for it: each is delivered before the next is matched. A
 * command that an injected fault or a broken network ends goes to "home" alone; it has left the ring then
 * (is_detached).
 *
 * emunic never waits for a lock. One that stays taken is looked into: a holder that has gone, or is not inside, holds
 * nothing. When a port ends, its flights in other interfaces are ended for it (engine/portals_engine.h), at once or as
 * soon as the lock is free.
 *
 * Everything in an interface is its domain's word against nobody: identities come from emunic's own records, memory is
 * reached only through the owner's registrations or its process.
 */
#include "emunic/daemon/portals/portals_end.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/queue.h>
#include <unistd.h>

#include "emunic/base/clock.h"
#include "emunic/daemon/portals/portals_end_inner.h"
#include "emunic/daemon/world/domain.h"
#include "emunic/daemon/world/port_end.h"
#include "emunic/daemon/world/reach.h"
#include "emunic/daemon/world/server.h"
#include "emunic/engine/portals_engine.h"
#include "emunic/engine/rest.h"
#include "emunic/fabric/detour.h"

#define LOCK_TRIES 64u
#define STUCK_NS   20000000u
#define LOOK_NS    500000u
#define FIRST_FREE 1024u /* of process ids that nobody has asked for */
#define KNOWN      16u

enum phase { IDLE, BEGIN, REPLY, MOVE, SENT, END, HOME };

struct known {
    uint32_t nid;
    uint32_t pid;
    uint32_t port;
    uint32_t generation;
};

/* A command that is being worked off. */
struct work {
    enum phase phase;
    bool is_detached; /* it has left the ring */
    struct emu_ptl_send send;
    struct emu_ptl_cmd cmd;
    uint64_t waits_since_ns; /* for a lock; 0: not */
    uint32_t target;         /* slot of the target's port */
    uint32_t target_generation;
    bool is_taken;
    bool is_sent; /* SEND_END is posted */
    bool has_reply;
    bool acks;
    unsigned fail;
    uint64_t mlength;
    uint64_t done_bytes;
    struct emu_ptl_peer peer;
    struct emu_ptl_taker taker;
    struct emu_ptl_reply reply;
    struct emu_memory near; /* the initiator's memory */
    struct emu_memory far;  /* the target's */
    struct emu_ptl_span near_span;
    struct emu_ptl_span far_span;
    struct emu_ptl_iov near_iovs[EMU_PTL_IOVEC_MAX];
    struct emu_ptl_iov far_iovs[EMU_PTL_IOVEC_MAX];
    uint8_t swapped[EMU_PTL_GETPUT_MAX];
};

struct emu_portals_end {
    struct emu_ptl_ni *ni; /* mapped */
    int fd;
    uint32_t pid;
    struct known known[KNOWN];
    struct work work;
};

/* A flight of a dead process, in an interface that is locked. */
struct emu_portals_repair {
    LIST_ENTRY(emu_portals_repair) link;
    struct emu_domain *domain; /* borrowed: outlives it */
    uint32_t port;
    uint32_t generation;
    struct emu_ptl_flight flight;
};

/* NULL while the port is no interface. */
static struct emu_portals_end *end_of(const struct emu_port_end *port)
{
    return port->slots[EMU_PORT_PORTALS];
}

/* ---- interfaces ---- */

static uint32_t generation_of(const struct emu_domain *domain, uint32_t port)
{
    return emu_table_ports(domain->table)[port].generation;
}

static bool is_taken(const struct emu_port_end *port, uint32_t pid)
{
    const struct emu_port_end *other;

    LIST_FOREACH(other, &port->server->ports, link) {
        if (other->domain == port->domain && end_of(other) && other->nid == port->nid && end_of(other)->pid == pid)
            return true;
    }
    return false;
}

static int choose_pid(const struct emu_port_end *port, const struct emu_msg_portals *asked, uint32_t *pid_out)
{
    uint32_t pid = asked->pid;

    if (pid != EMU_PTL_PID_ANY) {
        if (pid > EMU_PTL_PID_LAST || is_taken(port, pid))
            return -EADDRINUSE;
        *pid_out = pid;
        return 0;
    }
    pid = port->member->rank; /* libpmi's map counts on that */
    if (pid > EMU_PTL_PID_LAST || is_taken(port, pid))
        pid = port->domain->n_ranks > FIRST_FREE ? port->domain->n_ranks : FIRST_FREE;
    while (pid <= EMU_PTL_PID_LAST && is_taken(port, pid))
        pid++;
    *pid_out = pid;
    return pid <= EMU_PTL_PID_LAST ? 0 : -EADDRNOTAVAIL;
}

static int make_part(struct emu_portals_end *end, uint32_t port)
{
    int fd = memfd_create("emunic-portals", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    struct emu_ptl_ni *ni;
    int r;

    if (fd < 0)
        return -errno;
    if (ftruncate(fd, (off_t)sizeof(*ni)) < 0 || fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0)
        goto err_fd;
    ni = mmap(NULL, sizeof(*ni), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
    if (ni == MAP_FAILED)
        goto err_fd;
    ni->magic = EMU_PTL_MAGIC;
    ni->abi_version = EMU_ABI_VERSION;
    ni->port = port;
    ni->bytes = sizeof(*ni);
    end->ni = ni;
    end->fd = fd;
    return 0;

err_fd:
    r = -errno;
    close(fd);
    return r;
}

static int open_interface(struct emu_port_end *port, struct emu_msg_portals *asked)
{
    struct emu_table_port *entry = &emu_table_ports(port->domain->table)[port->index];
    struct emu_portals_end *end;
    uint32_t pid;
    int r;

    if (end_of(port))
        return -EALREADY;
    r = choose_pid(port, asked, &pid);
    if (r < 0)
        return r;
    end = calloc(1, sizeof(*end));
    if (!end)
        return -ENOMEM;
    end->pid = pid;
    r = make_part(end, port->index);
    if (r < 0) {
        free(end);
        return r;
    }
    port->slots[EMU_PORT_PORTALS] = end;
    port->instance_id = pid;
    entry->instance_id = pid;
    /* Pairs with the acquire of whoever looks for the interface. */
    atomic_store_explicit(&entry->ptl_id, pid + 1, memory_order_release);
    asked->pid = pid;
    asked->port = port->index;
    asked->nid = port->domain->addresses[port->node_index];
    asked->generation = entry->generation;
    asked->length_bytes = sizeof(*end->ni);
    return end->fd;
}

static int find_peer(const struct emu_port_end *port, struct emu_msg_portals *asked)
{
    const struct emu_port_end *peer = asked->port < EMU_PORTS_MAX ? port->domain->ports[asked->port] : NULL;

    if (!peer || !end_of(peer))
        return -ENOENT;
    if (port->domain->paths.is_routed_for_good)
        return -EPERM;
    asked->generation = generation_of(port->domain, asked->port);
    asked->length_bytes = sizeof(*end_of(peer)->ni);
    return end_of(peer)->fd;
}

static int answer_distance(struct emu_request *request)
{
    const struct emu_port_end *port = request->port;
    struct emu_msg_portals *asked = &request->msg->portals;
    uint32_t nid = emu_domain_nid_at(port->domain, asked->nid);
    struct emu_route route;

    if (nid == EMU_NID_NONE)
        return -EHOSTUNREACH;
    asked->distance = 0;
    if (nid == port->nid)
        return 0;
    /* Static: over the whole machine, whatever is broken now. */
    if (emu_route_minimal(port->server->machine, port->nid, nid, 0, &route) < 0)
        return -EHOSTUNREACH;
    asked->distance = route.n_hops + 1;
    return 0;
}

/* ---- for the other files of Portals ---- */

struct emu_ptl_ni *emu_portals_end_ni(const struct emu_port_end *port)
{
    return end_of(port)->ni;
}

uint32_t emu_portals_end_pid(const struct emu_port_end *port)
{
    return end_of(port)->pid;
}

/* ---- locks ---- */

static bool try_lock(struct emu_ptl_ni *ni)
{
    for (unsigned i = 0; i < LOCK_TRIES; i++) {
        if (emu_ptl_try_lock(ni, EMU_PTL_HOLDER_EMUNIC))
            return true;
    }
    return false;
}

void emu_portals_end_unlock(struct emu_port_end *owner)
{
    emu_ptl_unlock(end_of(owner)->ni);
    emu_rest_disturb(owner->segment);
}

/* `seen` is nobody's name. */
static void break_lock(struct emu_port_end *owner, uint64_t seen)
{
    if (!atomic_compare_exchange_strong(&end_of(owner)->ni->lock, &seen, EMU_PTL_HOLDER_EMUNIC))
        return;
    emu_log_limited(&owner->server->rate, EMU_LOG_WARN, "portals nid %u pid %u: broke a lock that nobody holds",
                    owner->nid, end_of(owner)->pid);
    emu_portals_end_unlock(owner);
}

/* Breaks the lock of that port's interface if it is nobody's. */
static void look(struct emu_domain *domain, uint32_t port)
{
    struct emu_port_end *owner = port < EMU_PORTS_MAX ? domain->ports[port] : NULL;
    const struct emu_port_end *holder;
    uint64_t inside = 0;
    uint64_t seen;
    uint32_t slot;

    if (!owner || !end_of(owner))
        return;
    seen = atomic_load_explicit(&end_of(owner)->ni->lock, memory_order_acquire);
    if (seen == 0)
        return;
    slot = (uint32_t)seen - 1;
    holder = slot < EMU_PORTS_MAX && seen >> 32 == generation_of(domain, slot) ? domain->ports[slot] : NULL;
    if (holder) {
        inside = atomic_load_explicit(&holder->segment->inside, memory_order_seq_cst);
        /* Who holds it has been inside since before it took it. */
        if ((inside & 1) != 0 || atomic_load_explicit(&end_of(owner)->ni->lock, memory_order_seq_cst) != seen ||
            atomic_load_explicit(&holder->segment->inside, memory_order_seq_cst) != inside)
            return;
    }
    break_lock(owner, seen);
}

static int answer_stuck(struct emu_request *request)
{
    struct emu_port_end *port = request->port;
    uint32_t locked = request->msg->portals.port;
    uint64_t own = emu_ptl_holder(port->index, generation_of(port->domain, port->index));
    struct emu_port_end *owner;

    /* Who waits for a lock holds none, whatever name stands where, and is inside while he waits. */
    LIST_FOREACH(owner, &port->server->ports, link) {
        if (owner->domain == port->domain && end_of(owner) &&
            atomic_load_explicit(&end_of(owner)->ni->lock, memory_order_relaxed) == own)
            break_lock(owner, own);
    }
    look(port->domain, locked);
    return 0;
}

bool emu_portals_end_lock(struct emu_port_end *owner, uint64_t *waits_since_ns)
{
    if (try_lock(end_of(owner)->ni)) {
        *waits_since_ns = 0;
        return true;
    }
    if (*waits_since_ns == 0) {
        *waits_since_ns = emu_clock_ns();
    } else if (emu_clock_ns() - *waits_since_ns > STUCK_NS) {
        *waits_since_ns = emu_clock_ns();
        look(owner->domain, owner->index);
    }
    return false;
}

/* ---- looking up ---- */

bool emu_portals_end_is_that(const struct emu_port_end *port, uint32_t nid, uint32_t pid)
{
    return port && end_of(port) && port->nid == nid && end_of(port)->pid == pid;
}

static struct emu_port_end *find_target(struct emu_port_end *port, uint32_t address, uint32_t pid)
{
    struct known *known = &end_of(port)->known[(address * 31 + pid) % KNOWN];
    uint32_t nid = emu_domain_nid_at(port->domain, address);

    if (nid == EMU_NID_NONE)
        return NULL;
    if (known->generation != 0 && known->nid == nid && known->pid == pid &&
        generation_of(port->domain, known->port) == known->generation &&
        emu_portals_end_is_that(port->domain->ports[known->port], nid, pid))
        return port->domain->ports[known->port];
    for (uint32_t i = 0; i < EMU_PORTS_MAX; i++) {
        if (emu_portals_end_is_that(port->domain->ports[i], nid, pid)) {
            *known = (struct known){ nid, pid, i, generation_of(port->domain, i) };
            return port->domain->ports[i];
        }
    }
    return NULL;
}

struct emu_port_end *emu_portals_end_target(const struct emu_port_end *port, const struct emu_cmd *cmd)
{
    struct emu_ptl_cmd ptl;

    memcpy(&ptl, cmd, sizeof(ptl));
    return end_of(port) ? find_target((struct emu_port_end *)(uintptr_t)port, ptl.nid, ptl.pid) : NULL;
}

/* The target, if it is still the one that the command was begun at. */
static struct emu_port_end *target_of(const struct emu_port_end *port, const struct work *work)
{
    struct emu_port_end *target = port->domain->ports[work->target];

    return target && end_of(target) && generation_of(port->domain, work->target) == work->target_generation ? target :
                                                                                                              NULL;
}

struct emu_memory emu_portals_end_reach(struct emu_port_end *owner, const struct emu_ptl_md *md)
{
    struct emu_memory memory;

    if (md->mdh != 0 && md->mdh < EMU_MD_COUNT) {
        const struct emu_table_md *entry = &emu_table_mds(owner->domain->table, owner->node_index)[md->mdh];

        if (atomic_load_explicit(&entry->state, memory_order_acquire) != 0 && entry->port == owner->index &&
            entry->generation == md->mdh_generation && emu_md_reach(owner, entry, EMU_OP_PUT, &memory) == EMU_STATUS_OK)
            return memory;
    }
    return emu_memory_cma(owner->member->pid);
}

/* A copy: the owner may change its segments meanwhile. */
static void keep_span(struct emu_ptl_ni *ni, const struct emu_ptl_md *md, struct emu_ptl_span *span,
                      struct emu_ptl_iov *iovs)
{
    emu_ptl_span_of(ni, md, span);
    if (!span->iovs)
        return;
    memcpy(iovs, span->iovs, span->n * sizeof(*iovs));
    span->iovs = iovs;
}

/* ---- steps ---- */

struct emu_ptl_send emu_portals_send_of(const struct emu_ptl_cmd *c)
{
    return (struct emu_ptl_send){
        .kind = (enum emu_ptl_request_kind)(c->op - EMU_OP_PTL_PUT),
        .wants_ack = (c->ptl_flags & EMU_PTL_CMD_ACK) != 0,
        .md = c->md,
        .md_generation = c->md_generation,
        .put_md = c->put_md,
        .put_md_generation = c->put_md_generation,
        .local_offset = c->local_offset,
        .put_offset = c->put_offset,
        .nid = c->nid,
        .pid = c->pid,
        .pt = c->pt,
        .ac = c->ac,
        .bits = c->bits,
        .offset = c->remote_offset,
        .length_bytes = c->length_bytes,
        .hdr_data = c->hdr_data,
        .link = c->link,
        .threshold = c->threshold,
        .eq = c->eq,
        .eq_generation = c->eq_generation,
    };
}

static void note_send(struct work *work, const struct emu_cmd *cmd)
{
    memcpy(&work->cmd, cmd, sizeof(work->cmd));
    work->send = emu_portals_send_of(&work->cmd);
}

/* Where the data of a put or getput come from. */
static void open_source(struct emu_port_end *port, struct work *work)
{
    struct emu_ptl_ni *ni = end_of(port)->ni;
    struct emu_ptl_md md = { .length_bytes = 0 };

    if (work->cmd.flags & EMU_CMD_STAGED) {
        work->near = port->view.staging;
        work->near_span = (struct emu_ptl_span){ .n = 1, .one = { work->cmd.staging_off, work->cmd.length_bytes } };
        work->send.put_offset = work->send.kind == EMU_PTL_GETPUT ? work->send.put_offset : 0;
        return;
    }
    if (work->send.put_md < EMU_PTL_MDS)
        md = ni->mds[work->send.put_md];
    if (md.generation != work->send.put_md_generation)
        md = (struct emu_ptl_md){ .length_bytes = 0 };
    work->near = emu_portals_end_reach(port, &md);
    keep_span(ni, &md, &work->near_span, work->near_iovs);
}

unsigned emu_portals_fail_of(int result)
{
    return result == 0 ? 0 : result == -ESRCH ? EMU_STATUS_PEER_GONE : EMU_STATUS_REMOTE_RANGE;
}

/* From which offset of the source a put's data are: what was staged begins at 0. */
static uint64_t source_off(const struct work *work)
{
    if (work->cmd.flags & EMU_CMD_STAGED)
        return 0;
    return work->send.kind == EMU_PTL_GETPUT ? work->send.put_offset : work->send.local_offset;
}

static unsigned swap(struct emu_port_end *port, struct work *work)
{
    struct emu_memory self = emu_memory_self();
    struct emu_ptl_span buffer = { .n = 1, .one = { (uint64_t)(uintptr_t)work->swapped, sizeof(work->swapped) } };
    int fault;
    int r;

    if (work->mlength > sizeof(work->swapped))
        return EMU_STATUS_BAD_COMMAND;
    r = emu_ptl_move((struct emu_ptl_at){ &self, &buffer, 0 },
                     (struct emu_ptl_at){ &work->far, &work->far_span, work->taker.offset }, work->mlength,
                     (struct emu_bounce){ port->view.bounce, port->view.bounce_bytes }, &fault);
    if (r == 0)
        r = emu_ptl_move((struct emu_ptl_at){ &work->far, &work->far_span, work->taker.offset },
                         (struct emu_ptl_at){ &work->near, &work->near_span, source_off(work) }, work->mlength,
                         (struct emu_bounce){ port->view.bounce, port->view.bounce_bytes }, &fault);
    return emu_portals_fail_of(r);
}

/* Moves a slice. True: there is more. */
static bool move(struct emu_port_end *port, struct work *work)
{
    uint64_t length = work->send.kind == EMU_PTL_PUT ? work->mlength : work->reply.mlength;
    uint64_t left = length - work->done_bytes;
    uint64_t part = left < port->server->settings.slice_bytes ? left : port->server->settings.slice_bytes;
    struct emu_memory self = emu_memory_self();
    struct emu_ptl_span swapped = { .n = 1, .one = { (uint64_t)(uintptr_t)work->swapped, sizeof(work->swapped) } };
    bool is_put = work->send.kind == EMU_PTL_PUT;
    bool is_swap = work->send.kind == EMU_PTL_GETPUT;
    uint64_t near_off = (is_put ? source_off(work) : work->send.local_offset) + work->done_bytes;
    uint64_t far_off = (is_swap ? 0 : work->taker.offset) + work->done_bytes;
    const struct emu_memory *far = is_swap ? &self : &work->far;
    const struct emu_ptl_span *far_span = is_swap ? &swapped : &work->far_span;
    int fault;
    int r;

    if (is_put)
        r = emu_ptl_move((struct emu_ptl_at){ far, far_span, far_off },
                         (struct emu_ptl_at){ &work->near, &work->near_span, near_off }, part,
                         (struct emu_bounce){ port->view.bounce, port->view.bounce_bytes }, &fault);
    else
        r = emu_ptl_move((struct emu_ptl_at){ &work->near, &work->near_span, near_off },
                         (struct emu_ptl_at){ far, far_span, far_off }, part,
                         (struct emu_bounce){ port->view.bounce, port->view.bounce_bytes }, &fault);
    work->done_bytes += part;
    if (r < 0)
        work->fail = emu_portals_fail_of(r);
    return r == 0 && work->done_bytes < length;
}

static void count(struct emu_port_end *port, const struct work *work, const struct emu_port_end *target)
{
    struct emu_flow_counts *flow = &port->view.flows[target->node_index];
    const struct emu_packet_format *format = &port->domain->table->format;

    if (work->send.kind == EMU_PTL_PUT)
        emu_flow_add_put(flow, format, work->mlength);
    else
        emu_flow_add_get(flow, format, work->mlength, work->send.kind == EMU_PTL_GETPUT ? work->mlength : 0);
}

/* SEND_END; a getput's says nothing of what comes after. The initiator is locked. */
static void post_sent(struct emu_ptl_ni *ni, struct work *work)
{
    if (!work->is_sent)
        emu_ptl_send_end(ni, &work->send, work->send.kind == EMU_PTL_PUT || !work->is_taken ? work->fail : 0);
    work->is_sent = true;
}

/* The data have been moved and the target is locked. True: SEND_END is posted, its END may be. */
static bool try_sent(struct emu_port_end *port, struct work *work, const struct emu_port_end *target)
{
    if (port != target && !emu_portals_end_lock(port, &work->waits_since_ns))
        return false;
    post_sent(end_of(port)->ni, work);
    if (port != target)
        emu_portals_end_unlock(port);
    return true;
}

/* The target is locked. */
static enum phase begin_at(struct emu_port_end *port, struct work *work, struct emu_port_end *target)
{
    struct emu_ptl_ni *ni = end_of(target)->ni;
    struct emu_ptl_peer self = { port->domain->addresses[port->node_index], end_of(port)->pid,
                                 (uint32_t)port->member->uid, end_of(port)->ni->jid };
    struct emu_ptl_request request = emu_ptl_request_of(&work->send, self);
    struct emu_ptl_flight *flight = &ni->flights[port->index];

    work->is_taken = emu_ptl_match(ni, &request, &work->taker) == EMU_PTL_TAKEN;
    if (!work->is_taken)
        return HOME;
    work->target = target->index;
    work->target_generation = generation_of(port->domain, target->index);
    work->peer = (struct emu_ptl_peer){ work->send.nid, work->send.pid, (uint32_t)target->member->uid, ni->jid };
    work->mlength = work->taker.mlength;
    work->acks = work->taker.acks;
    work->far = emu_portals_end_reach(target, &work->taker.md);
    keep_span(ni, &work->taker.md, &work->far_span, work->far_iovs);
    if (work->send.kind != EMU_PTL_GET)
        open_source(port, work);
    emu_ptl_begin(ni, &request, &work->taker, generation_of(port->domain, port->index), flight);
    if (work->cmd.events & EMU_EV_LOSE)
        emu_ptl_lose(flight);
    count(port, work, target);
    if (work->send.kind == EMU_PTL_GETPUT)
        work->fail = swap(port, work);
    else if (work->send.kind == EMU_PTL_PUT && move(port, work))
        return MOVE;
    if (work->send.kind == EMU_PTL_GET)
        return REPLY;
    if (!try_sent(port, work, target))
        return SENT;
    emu_ptl_end(ni, flight, work->fail);
    return work->send.kind == EMU_PTL_GETPUT ? REPLY : HOME;
}

/* With nothing locked. False: the initiator's lock is not free. */
static bool tell_sent(struct emu_port_end *port, struct work *work)
{
    if (!emu_portals_end_lock(port, &work->waits_since_ns))
        return false;
    post_sent(end_of(port)->ni, work);
    emu_portals_end_unlock(port);
    return true;
}

static bool step_begin(struct emu_port_end *port, struct work *work)
{
    struct emu_port_end *target = find_target(port, work->send.nid, work->send.pid);

    if (end_of(port)->ni->n_fails > 0) { /* a look without the lock: what it says matters to this domain only */
        if (!emu_portals_end_lock(port, &work->waits_since_ns))
            return false;
        if (emu_ptl_is_cut_off(end_of(port)->ni, work->send.nid))
            target = NULL;
        emu_portals_end_unlock(port);
    }
    if (work->send.kind == EMU_PTL_GET && !work->is_sent && !tell_sent(port, work))
        return false;
    if (!target) {
        work->phase = HOME;
        return true;
    }
    if (!emu_portals_end_lock(target, &work->waits_since_ns))
        return false;
    work->phase = begin_at(port, work, target);
    emu_portals_end_unlock(target);
    return true;
}

/* The reply comes home: REPLY_START. */
static bool step_reply(struct emu_port_end *port, struct work *work)
{
    struct emu_ptl_ni *ni = end_of(port)->ni;

    if (!emu_portals_end_lock(port, &work->waits_since_ns))
        return false;
    post_sent(ni, work);
    work->has_reply = emu_ptl_reply_begin(ni, &work->send, &work->peer, work->mlength, &work->reply);
    if (work->has_reply) {
        work->near = emu_portals_end_reach(port, &work->reply.md);
        keep_span(ni, &work->reply.md, &work->near_span, work->near_iovs);
    }
    emu_portals_end_unlock(port);
    work->phase = work->has_reply && work->fail == 0               ? MOVE :
                  work->send.kind == EMU_PTL_GET && work->is_taken ? END :
                                                                     HOME;
    return true;
}

static bool step_move(struct emu_port_end *port, struct work *work)
{
    if (work->send.kind != EMU_PTL_GETPUT && !target_of(port, work)) {
        work->fail = EMU_STATUS_PEER_GONE;
        work->phase = HOME;
        return true;
    }
    if (move(port, work))
        return false; /* the others first */
    work->phase = work->send.kind == EMU_PTL_GETPUT ? HOME : work->send.kind == EMU_PTL_PUT ? SENT : END;
    return true;
}

static bool step_sent(struct emu_port_end *port, struct work *work)
{
    if (!tell_sent(port, work))
        return false;
    work->phase = END;
    return true;
}

static bool step_end(struct emu_port_end *port, struct work *work)
{
    struct emu_port_end *target = target_of(port, work);

    if (!target) {
        work->fail = EMU_STATUS_PEER_GONE;
    } else {
        if (!emu_portals_end_lock(target, &work->waits_since_ns))
            return false;
        emu_ptl_end(end_of(target)->ni, &end_of(target)->ni->flights[port->index], work->fail);
        emu_portals_end_unlock(target);
    }
    work->phase = work->send.kind == EMU_PTL_GETPUT ? REPLY : HOME;
    return true;
}

/* Who waits for an ACK alone, because END is disabled, has to hear of a failure by it. */
static bool needs_failed_ack(const struct emu_ptl_ni *ni, const struct emu_ptl_send *send)
{
    return send->wants_ack && send->md < EMU_PTL_MDS && (ni->mds[send->md].options & EMU_PTL_MD_END_DISABLE) != 0;
}

void emu_portals_end_ack(struct emu_ptl_ni *ni, const struct emu_ptl_send *send, const struct emu_ptl_peer *peer,
                         bool acks, uint64_t mlength, unsigned fail)
{
    if (acks && fail == 0)
        emu_ptl_ack(ni, send, peer, mlength, 0);
    else if (fail != 0 && needs_failed_ack(ni, send))
        emu_ptl_ack(ni, send, peer, 0, fail);
}

static bool step_home(struct emu_port_end *port, struct work *work)
{
    struct emu_ptl_ni *ni = end_of(port)->ni;

    if (!emu_portals_end_lock(port, &work->waits_since_ns))
        return false;
    if (work->has_reply) {
        emu_ptl_reply_end(ni, &work->send, &work->reply, work->fail);
    } else {
        post_sent(ni, work);
        emu_portals_end_ack(ni, &work->send, &work->peer, work->acks, work->mlength, work->fail);
    }
    emu_portals_end_unlock(port);
    work->phase = IDLE;
    return true;
}

/* True: the command is over. */
static bool go_on(struct emu_port_end *port, struct work *work)
{
    static bool (*const steps[])(struct emu_port_end *, struct work *) = {
        [BEGIN] = step_begin, [REPLY] = step_reply, [MOVE] = step_move,
        [SENT] = step_sent,   [END] = step_end,     [HOME] = step_home,
    };

    while (work->phase != IDLE) {
        if (!steps[work->phase](port, work))
            return false;
    }
    return true;
}

static void start(struct work *work, const struct emu_cmd *cmd, enum phase phase)
{
    work->phase = phase;
    work->is_detached = work->is_taken = work->has_reply = work->acks = false;
    work->fail = 0;
    work->mlength = work->done_bytes = work->waits_since_ns = 0;
    note_send(work, cmd);
    work->is_sent = (work->cmd.ptl_flags & EMU_PTL_CMD_SENT) != 0;
    work->peer = (struct emu_ptl_peer){ work->send.nid, work->send.pid, 0, 0 };
}

/* ---- commands ---- */

static bool finish_detached(struct emu_port_end *port, struct work *work)
{
    if (!go_on(port, work))
        return false;
    work->is_detached = false;
    emu_portals_of(port->server)->n_waits--;
    return true;
}

bool emu_portals_end_is_busy(struct emu_port_end *port)
{
    struct work *work = &end_of(port)->work;

    if (work->phase != IDLE && work->is_detached)
        finish_detached(port, work);
    return work->phase != IDLE;
}

bool emu_portals_end_serve(struct emu_port_end *port, const struct emu_cmd *cmd)
{
    struct work *work;

    if (!end_of(port))
        return true; /* a client that has no interface */
    work = &end_of(port)->work;
    if (work->phase != IDLE && work->is_detached)
        return false;
    if (work->phase == IDLE)
        start(work, cmd, BEGIN);
    return go_on(port, work);
}

/* A reply for the initiator that says that there is none. */
void emu_portals_end_fail(struct emu_port_end *port, const struct emu_cmd *cmd, unsigned status)
{
    struct work *work;

    if (!end_of(port))
        return;
    work = &end_of(port)->work;
    if (work->phase != IDLE)
        return; /* cannot be: it is asked about before it begins */
    start(work, cmd, HOME);
    work->phase = work->send.kind == EMU_PTL_PUT ? HOME : REPLY;
    work->fail = status;
    work->is_detached = true;
    emu_portals_of(port->server)->n_waits++;
    finish_detached(port, work);
}

/* ---- ends ---- */

static void repair_later(struct emu_port_end *owner, const struct emu_ptl_flight *flight)
{
    struct emu_portals_repair *repair = malloc(sizeof(*repair));

    if (!repair) {
        emu_log(EMU_LOG_ERROR, "out of memory: a dead process's message never ends");
        return;
    }
    repair->domain = owner->domain;
    repair->port = owner->index;
    repair->generation = generation_of(owner->domain, owner->index);
    memcpy(&repair->flight, flight, sizeof(*flight));
    LIST_INSERT_HEAD(&emu_portals_of(owner->server)->repairs, repair, link);
    emu_portals_of(owner->server)->n_waits++;
}

/* What the dead port was doing at this interface. */
static void repair(struct emu_port_end *owner, uint64_t dead, uint32_t dead_port)
{
    struct emu_ptl_ni *ni = end_of(owner)->ni;
    struct emu_ptl_flight *flight = &ni->flights[dead_port];
    bool held = atomic_load_explicit(&ni->lock, memory_order_acquire) == dead;
    bool is_open = atomic_load_explicit(&flight->stage, memory_order_acquire) != EMU_PTL_IDLE &&
                   flight->generation == (uint32_t)(dead >> 32);

    if (!held && !is_open)
        return;
    if (held)
        atomic_store_explicit(&ni->lock, EMU_PTL_HOLDER_EMUNIC, memory_order_release);
    if (held || try_lock(ni)) {
        if (is_open)
            emu_ptl_repair(ni, flight, held);
        emu_portals_end_unlock(owner);
    } else {
        repair_later(owner, flight);
    }
    if (is_open)
        atomic_store_explicit(&flight->stage, EMU_PTL_IDLE, memory_order_relaxed);
    emu_log(EMU_LOG_INFO, "portals nid %u pid %u: ended what a dead process was doing there", owner->nid,
            end_of(owner)->pid);
}

static void drop_interface(struct emu_port_end *port)
{
    uint64_t dead = emu_ptl_holder(port->index, generation_of(port->domain, port->index));
    struct emu_port_end *other;

    atomic_store_explicit(&emu_table_ports(port->domain->table)[port->index].ptl_id, 0, memory_order_release);
    if (!end_of(port))
        return;
    emu_portals_remote_drop_port(port);
    if (end_of(port)->work.phase != IDLE && end_of(port)->work.is_detached)
        emu_portals_of(port->server)->n_waits--;
    LIST_FOREACH(other, &port->server->ports, link) {
        if (other != port && other->domain == port->domain && end_of(other))
            repair(other, dead, port->index);
    }
    munmap(end_of(port)->ni, sizeof(*end_of(port)->ni));
    close(end_of(port)->fd);
    free(end_of(port));
    port->slots[EMU_PORT_PORTALS] = NULL;
}

/* True: it is over. */
static bool try_repair(struct emu_portals_repair *repair)
{
    struct emu_port_end *owner = repair->domain->ports[repair->port];

    if (!owner || !end_of(owner) || generation_of(repair->domain, repair->port) != repair->generation)
        return true;
    if (!try_lock(end_of(owner)->ni))
        return false;
    emu_ptl_repair(end_of(owner)->ni, &repair->flight, false);
    emu_portals_end_unlock(owner);
    return true;
}

static void drop_repair(struct emu_server *server, struct emu_portals_repair *repair)
{
    LIST_REMOVE(repair, link);
    free(repair);
    emu_portals_of(server)->n_waits--;
}

static unsigned look_at_waits(struct emu_server *server)
{
    struct emu_portals_repair *repair = LIST_FIRST(&emu_portals_of(server)->repairs);
    struct emu_port_end *port;

    if (emu_portals_of(server)->n_waits == 0)
        return 0;
    while (repair) {
        struct emu_portals_repair *next = LIST_NEXT(repair, link);

        if (try_repair(repair))
            drop_repair(server, repair);
        repair = next;
    }
    LIST_FOREACH(port, &server->ports, link) {
        if (end_of(port) && end_of(port)->work.phase != IDLE && end_of(port)->work.is_detached)
            finish_detached(port, &end_of(port)->work);
    }
    if (emu_portals_hosts_of(server)) {
        emu_portals_remote_round(server);
        emu_portals_visit_round(server);
    }
    return 0;
}

/* Nobody rings when he unlocks. */
static uint64_t next_ns(const struct emu_server *server)
{
    return emu_portals_of(server)->n_waits > 0 ? emu_clock_ns() + LOOK_NS : UINT64_MAX;
}

static void end_domain(struct emu_server *server, struct emu_domain *domain)
{
    struct emu_portals_repair *repair = LIST_FIRST(&emu_portals_of(server)->repairs);

    if (emu_portals_hosts_of(server))
        emu_portals_visit_drop_domain(server, domain);
    while (repair) {
        struct emu_portals_repair *next = LIST_NEXT(repair, link);

        if (repair->domain == domain)
            drop_repair(server, repair);
        repair = next;
    }
}

/* ---- the part ---- */

static int answer_open(struct emu_request *request)
{
    return emu_request_pass(request, open_interface(request->port, &request->msg->portals), false);
}

static int answer_peer(struct emu_request *request)
{
    return emu_request_pass(request, find_peer(request->port, &request->msg->portals), false);
}

static int create(struct emu_server *server, const struct emu_server_options *options, struct emu_complaint *why)
{
    struct emu_portals *portals = calloc(1, sizeof(*portals)); /* an empty list */

    (void)options;
    (void)why;
    if (!portals)
        return -ENOMEM;
    server->slots[EMU_SERVER_PORTALS] = portals;
    return emu_hosts_are_several(server) ? emu_portals_hosts_create(server) : 0;
}

static void destroy(struct emu_server *server)
{
    emu_portals_hosts_destroy(server);
    free(emu_portals_of(server));
    server->slots[EMU_SERVER_PORTALS] = NULL;
}

static int begin_port(struct emu_port_end *port)
{
    struct emu_portals_remote_port *remote = calloc(1, sizeof(*remote));

    if (!remote)
        return -ENOMEM;
    TAILQ_INIT(&remote->errands);
    TAILQ_INIT(&remote->ready);
    port->slots[EMU_PORT_PORTALS_REMOTE] = remote;
    return 0;
}

static void end_port(struct emu_port_end *port)
{
    drop_interface(port);
    free(port->slots[EMU_PORT_PORTALS_REMOTE]);
    port->slots[EMU_PORT_PORTALS_REMOTE] = NULL;
}

static const struct emu_request_row requests[] = {
    { EMU_MSG_PORTALS_OPEN, EMU_MSG_PORTALS_OPEN, EMU_NEEDS_PORT, answer_open },
    { EMU_MSG_PORTALS_PEER, EMU_MSG_PORTALS_PEER, EMU_NEEDS_PORT, answer_peer },
    { EMU_MSG_PORTALS_STUCK, EMU_MSG_PORTALS_STUCK, EMU_NEEDS_PORT, answer_stuck },
    { EMU_MSG_PORTALS_DISTANCE, EMU_MSG_PORTALS_DISTANCE, EMU_NEEDS_PORT, answer_distance },
};
static const struct emu_message_row messages[] = { { EMU_HOST_PORTALS, emu_portals_host_message } };

const struct emu_part emu_portals_part = {
    .name = "portals",
    .create = create,
    .destroy = destroy,
    .requests = requests,
    .n_requests = EMU_ROWS(requests),
    .loop = { .round = look_at_waits, .next_ns = next_ns },
    .hosts = { .messages = messages, .n_messages = EMU_ROWS(messages), .down = emu_portals_host_down },
    .domains = { .end = end_domain },
    .ports = { .begin = begin_port, .end = end_port },
};
