/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ports: one attached NIC context, its segment and its queues.
 *
 * Attach checks, in this order: the domain exists and belongs to the caller (or the caller is root); the node is
 * the caller's rank's, or one of the domain's; the member limit; that emunic can read the caller's memory (a value at
 * an address that the caller names), because a port whose memory cannot be reached would only produce errors. Where a
 * mover touches the memory (daemon/movers), it has to be able to open it instead.
 *
 * The segment is a memfd sealed against any change of size, so a client cannot make emunic fault. Queues are cut out
 * of its arena in pages; a destroyed queue's pages are punched out and come back as zeroes.
 *
 * Death of a port: no command of it is served any more, transfers of it end, its memory domains become invalid (so
 * transfers of others to it end with an error), its datagrams vanish, its counters are kept with the domain.
 */
#include "emunic/daemon/core/port_life.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include "emunic/abi/event.h"
#include "emunic/daemon/core/channel_end.h"
#include "emunic/daemon/core/connection.h"
#include "emunic/daemon/core/domain_life.h"
#include "emunic/daemon/core/port_queues.h"
#include "emunic/daemon/core/quiesce.h"
#include "emunic/daemon/core/status_row.h"
#include "emunic/daemon/core/watches.h"
#include "emunic/daemon/world/accounts.h"
#include "emunic/daemon/world/domain.h"
#include "emunic/daemon/world/flow_row.h"
#include "emunic/daemon/world/lookups.h"
#include "emunic/daemon/world/port_end.h"
#include "emunic/daemon/world/reach.h"
#include "emunic/daemon/world/users.h"
#include "emunic/engine/rest.h"

#define ARENA_PAGE_BYTES 4096u

/* ---- attach ---- */

static int choose_node(const struct emu_domain *domain, const struct emu_member *member, uint32_t nid_wanted,
                       uint32_t *node_out)
{
    uint32_t node;

    if (member->node_index != EMU_NID_NONE)
        node = member->node_index;
    else if (nid_wanted != EMU_NID_NONE)
        node = emu_domain_node_of(domain, nid_wanted);
    else
        node = emu_domain_first_here(domain);
    if (node == EMU_NID_NONE || domain->addresses[node] == EMU_NID_NONE)
        return -ENODEV;
    if (emu_table_nodes(domain->table)[node].host != EMU_NODE_HERE)
        return -EXDEV;
    *node_out = node;
    return 0;
}

/* Does the caller's memory read as it says? Also shows that the process number is right. */
static int try_memory(pid_t pid, const struct emu_msg_attach *attach, struct emu_log_rate *rate)
{
    uint64_t value = 0;
    struct iovec local = { &value, sizeof(value) };
    struct iovec remote = { (void *)(uintptr_t)attach->probe_addr, sizeof(value) };

    if (process_vm_readv(pid, &local, 1, &remote, 1, 0) != (ssize_t)sizeof(value)) {
        int r = errno == EPERM ? -EPERM : -EFAULT;
        bool has_ended = errno == ESRCH && pid > 0; /* while it attached: nobody has to do anything about that */

        emu_log_limited(rate, has_ended ? EMU_LOG_INFO : EMU_LOG_WARN, "pid %d: its memory cannot be reached: %s",
                        (int)pid, strerror(errno));
        return r;
    }
    return value == attach->probe_value ? 0 : -EFAULT;
}

static int find_slot(struct emu_domain *domain, uint32_t *slot_out)
{
    for (uint32_t i = 0; i < EMU_PORTS_MAX; i++) {
        uint32_t slot = (domain->port_slots.next + i) % EMU_PORTS_MAX;

        if (!domain->ports[slot] && !domain->port_slots.resting[slot]) {
            domain->port_slots.next = (slot + 1) % EMU_PORTS_MAX;
            *slot_out = slot;
            return 0;
        }
    }
    return -ENOSPC;
}

static int make_segment(struct emu_port_end *port)
{
    uint64_t slot_off = sizeof(struct emu_segment);
    uint64_t staging_off = slot_off + (uint64_t)EMU_RING_SLOTS * sizeof(struct emu_cmd);
    uint64_t time_off = staging_off + EMU_STAGING_BYTES;
    uint64_t flow_off = time_off + EMU_RING_SLOTS * sizeof(uint64_t);
    uint64_t flows_end = flow_off + 2ull * port->domain->n_nodes * sizeof(struct emu_flow_counts);
    struct emu_segment *segment;
    int fd;
    int r;

    port->queues.arena_off = (flows_end + ARENA_PAGE_BYTES - 1) & ~(uint64_t)(ARENA_PAGE_BYTES - 1);
    port->segment_bytes = port->queues.arena_off + EMU_CQ_ARENA_BYTES;
    fd = memfd_create("emunic-port", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (fd < 0)
        return -errno;
    if (ftruncate(fd, (off_t)port->segment_bytes) < 0 ||
        fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) < 0)
        goto err_fd;
    segment = mmap(NULL, port->segment_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
    if (segment == MAP_FAILED)
        goto err_fd;
    segment->magic = EMU_SEGMENT_MAGIC;
    segment->abi_version = EMU_ABI_VERSION;
    segment->port = port->index;
    segment->segment_bytes = port->segment_bytes;
    segment->ring_slots = EMU_RING_SLOTS;
    segment->n_flows = port->domain->n_nodes;
    segment->slot_off = slot_off;
    segment->staging_off = staging_off;
    segment->staging_bytes = EMU_STAGING_BYTES;
    segment->flow_off = flow_off;
    port->ring.times_off = time_off;
    port->segment = segment;
    port->segment_fd = fd;
    port->ring.slots = (struct emu_cmd *)((char *)segment + slot_off);
    port->view = (struct emu_view){
        .table = port->domain->table,
        .ctx = port,
        .local = emu_memory_cma(port->member->pid),
        .staging = emu_memory_map((char *)segment + staging_off, 0, EMU_STAGING_BYTES),
        .flows = (struct emu_flow_counts *)((char *)segment + flow_off),
        .n_flows = port->domain->n_nodes,
        .chain_status = &port->chain_status,
        .bounce = port->server->bounce.bytes,
        .bounce_bytes = port->server->bounce.len_bytes,
    };
    return 0;

err_fd:
    r = -errno;
    close(fd);
    return r;
}

static void doorbell_ready(struct emu_server *server, struct emu_watch *watch, uint32_t events)
{
    /* The next round serves the ring. Edge-triggered, so nobody reads the counter. */
    (void)server;
    (void)events;
    emu_channel_end_serve_calls((struct emu_port_end *)watch);
}

static void publish_port(struct emu_port_end *port)
{
    struct emu_domain *domain = port->domain;
    struct emu_table_port *entry = &emu_table_ports(domain->table)[port->index];

    if (port->index >= atomic_load_explicit(&domain->table->ports_end, memory_order_relaxed))
        atomic_store_explicit(&domain->table->ports_end, port->index + 1, memory_order_relaxed);
    entry->generation++;
    entry->nid = port->nid;
    entry->instance_id = port->instance_id;
    entry->pid = (uint32_t)port->member->pid;
    entry->uid = (uint32_t)port->member->uid;
    atomic_store_explicit(&entry->ptl_id, 0, memory_order_relaxed);
    atomic_store_explicit(&entry->state, EMU_PORT_LIVE, memory_order_release);
    domain->ports[port->index] = port;
    domain->port_slots.n_used++;
    emu_parts_domain_changed(port->server, domain);
    LIST_INSERT_HEAD(&port->server->ports, port, link);
    emu_lookups_add_port(port);
    LIST_INSERT_HEAD(&port->member->ports, port, member_link);
    if (port->member->n_ports++ == 0)
        atomic_store_explicit(&domain->table->live_processes, ++domain->port_slots.n_attached, memory_order_relaxed);
}

static struct emu_port_end *allocate(struct emu_connection *connection, struct emu_member *member,
                                     const struct emu_msg_attach *attach)
{
    struct emu_port_end *port = calloc(1, sizeof(*port));

    if (!port)
        return NULL;
    *port = (struct emu_port_end){ .watch.ready = doorbell_ready,
                                   .server = connection->server,
                                   .domain = member->domain,
                                   .member = member,
                                   .connection = connection,
                                   .instance_id = attach->instance_id,
                                   .modes = attach->modes,
                                   .doorbell = -1,
                                   .segment_fd = -1 };
    LIST_INIT(&port->memory.mds);
    TAILQ_INIT(&port->transfers.list);
    LIST_INIT(&port->transfers.virtual_list);
    return port;
}

static void free_port(struct emu_port_end *port)
{
    if (port->segment)
        munmap(port->segment, port->segment_bytes);
    if (port->segment_fd >= 0)
        close(port->segment_fd);
    emu_queues_fini(port);
    free(port->memory.pending);
}

static int create_port(struct emu_connection *connection, struct emu_member *member,
                       const struct emu_msg_attach *attach, struct emu_port_end **port_out)
{
    struct emu_port_end *port = allocate(connection, member, attach);
    int r;

    if (!port)
        return -ENOMEM;
    r = emu_user_take(port->server, member->user, EMU_USER_PORTS, 1);
    if (r < 0) {
        free(port);
        return r;
    }
    r = emu_queues_init(port);
    if (r == 0)
        r = choose_node(member->domain, member, attach->nid_wanted, &port->node_index);
    if (r < 0)
        goto err_port;
    port->nid = emu_table_nodes(member->domain->table)[port->node_index].nid;
    r = find_slot(member->domain, &port->index);
    if (r == 0)
        r = emu_account_add_port(port);
    if (r < 0)
        goto err_port;
    r = make_segment(port);
    if (r == 0)
        r = emu_parts_port_begin(port);
    if (r < 0)
        goto err_parts;
    port->doorbell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    r = port->doorbell < 0 ? -errno : emu_server_watch(port->server, port->doorbell, EPOLLIN | EPOLLET, &port->watch);
    if (r < 0)
        goto err_parts;
    *port_out = port;
    return 0;

err_parts:
    emu_parts_port_end(port);
    if (port->doorbell >= 0)
        close(port->doorbell);
    emu_account_drop_port(port);
err_port:
    emu_user_give(member->user, EMU_USER_PORTS, 1);
    free_port(port);
    free(port);
    return r;
}

static bool limit_is_reached(const struct emu_domain *domain, const struct emu_member *member)
{
    return domain->member_limit != 0 && member->n_ports == 0 && domain->port_slots.n_attached >= domain->member_limit;
}

static int attach(struct emu_connection *connection, struct emu_msg_attach *asked, struct emu_port_end **port_out)
{
    struct emu_domain *domain = emu_domain_find(connection->server, asked->ptag, asked->cookie);
    struct emu_member *member;
    int r;

    if (!domain || !emu_domain_may_use(domain, &connection->peer)) {
        emu_log_limited(&connection->server->rate, EMU_LOG_WARN, "pid %d uid %u: credentials refused (ptag %u)",
                        (int)connection->peer.pid, (unsigned)connection->peer.uid, asked->ptag);
        return -EACCES;
    }
    r = emu_member_get(domain, connection, &member);
    if (r < 0)
        return r;
    if (limit_is_reached(domain, member)) {
        emu_log_limited(&connection->server->rate, EMU_LOG_WARN,
                        "pid %d refused: domain %u has its %u members, and --members of emunic run admits more",
                        (int)connection->peer.pid, domain->id, domain->member_limit);
        return -EACCES;
    }
    /* The memory of others is the movers' affair. */
    r = member->is_moved ? 0 : try_memory(connection->peer.pid, asked, &connection->server->rate);
    if (r == 0)
        r = create_port(connection, member, asked, port_out);
    if (r < 0)
        return r;
    publish_port(*port_out);
    emu_parts_port_live(*port_out);
    member->n_ports_ever++;
    connection->port = *port_out;
    return 0;
}

static int answer_attach(struct emu_request *request)
{
    struct emu_msg_attach *asked = &request->msg->attach;
    struct emu_port_end *port;
    int r = request->port ? -EALREADY : attach(request->connection, asked, &port);

    if (r < 0)
        return r;
    asked->ptag = port->domain->ptag;
    asked->nid = port->domain->addresses[port->node_index];
    asked->port = port->index;
    asked->table_bytes = port->domain->table_file.bytes;
    asked->segment_bytes = port->segment_bytes;
    request->reply_fds[0] = port->domain->table_file.fd;
    request->reply_fds[1] = port->segment_fd;
    request->reply_fds[2] = port->doorbell;
    request->n_reply_fds = 3;
    emu_log(EMU_LOG_DEBUG, "port %u: nid %u inst 0x%x pid %d", port->index, port->nid, port->instance_id,
            (int)port->member->pid);
    return 0;
}

/* The counters of a port that goes stay with its domain. */
static void keep_flows(struct emu_port_end *port)
{
    struct emu_domain *domain = port->domain;
    struct emu_flow_row *row = &domain->flows.past[port->node_index];

    for (uint32_t i = 0; i < domain->n_nodes; i++) {
        struct emu_flow_counts flow = { 0 };
        struct emu_flow_counts *sum;

        emu_port_end_add_flow(port, i, &flow);
        if (emu_flow_is_empty(&flow))
            continue;
        sum = emu_flow_row_at(row, domain->n_nodes, i, true);
        if (sum)
            emu_flow_add(sum, &flow);
    }
}

/* ---- gaps that a dead process has left ---- */

/* A queue that a dead port may have left a gap in: places before `tail` were reserved when it died. */
struct gap {
    uint32_t port;
    uint32_t generation;
    uint32_t cq;
    uint64_t serial;
    uint64_t tail;
};

struct gaps {
    uint32_t n;
    struct gap at[];
};

static uint32_t generation_of(const struct emu_domain *domain, uint32_t port)
{
    return emu_table_ports(domain->table)[port].generation;
}

static uint32_t count_queues(const struct emu_domain *domain)
{
    const struct emu_member *member;
    const struct emu_port_end *port;
    uint32_t n = 0;

    LIST_FOREACH(member, &domain->members, link) {
        LIST_FOREACH(port, &member->ports, member_link)
            n += port->queues.n_cqs;
    }
    return n;
}

/* All queues of the domain. NULL: no memory. */
static struct gaps *collect_gaps(struct emu_domain *domain)
{
    struct gaps *gaps = malloc(sizeof(*gaps) + count_queues(domain) * sizeof(gaps->at[0]));
    struct emu_member *member;
    struct emu_port_end *port;

    if (!gaps)
        return NULL;
    gaps->n = 0;
    LIST_FOREACH(member, &domain->members, link) {
        LIST_FOREACH(port, &member->ports, member_link) {
            for (uint32_t cq = 0; cq < EMU_CQS_MAX; cq++) {
                const struct emu_cq_end *end = &port->queues.cqs[cq];

                if (end->in_use)
                    gaps->at[gaps->n++] = (struct gap){ port->index, generation_of(domain, port->index), cq,
                                                        end->serial, atomic_load(&end->producer.shm->tail) };
            }
        }
    }
    return gaps;
}

static void fill_gap(struct emu_domain *domain, const struct gap *gap)
{
    uint64_t event = emu_event_with_status(emu_event_make(0, EMU_SOURCE_REMOTE, 0), EMU_STATUS_PEER_GONE);
    struct emu_port_end *port = domain->ports[gap->port];
    unsigned n_filled;

    if (!port || generation_of(domain, gap->port) != gap->generation || !port->queues.cqs[gap->cq].in_use ||
        port->queues.cqs[gap->cq].serial != gap->serial)
        return;
    n_filled = emu_cq_fill_gaps(&port->queues.cqs[gap->cq].producer, gap->tail, event);
    emu_channel_end_tell_again(port, gap->cq);
    if (n_filled == 0)
        return;
    emu_port_end_disturb(port);
    emu_log(EMU_LOG_INFO, "nid %u inst 0x%x: filled a gap that a dead process left in queue %u", port->nid,
            port->instance_id, gap->cq);
}

/* Nobody is inside any more who was when the port ended: its slot is free, and gaps there are are its own. */
static void slot_is_left(struct emu_server *server, struct emu_quiesce *q)
{
    const struct gaps *gaps = q->ctx;

    (void)server;
    for (uint32_t i = 0; gaps && i < gaps->n; i++)
        fill_gap(q->domain, &gaps->at[i]);
    q->domain->port_slots.resting[q->number] = false;
}

static void rest_slot(struct emu_port_end *port, bool died_inside)
{
    static const struct emu_quiesce_ops ops = { .left = slot_is_left };
    struct gaps *gaps = died_inside ? collect_gaps(port->domain) : NULL;
    struct emu_quiesce *q = emu_quiesce_create(port->domain, &ops, gaps);

    if (died_inside && !gaps)
        emu_log(EMU_LOG_ERROR, "out of memory: gaps of a dead process may stay in queues");
    port->domain->port_slots.resting[port->index] = true;
    if (!q) {
        emu_log(EMU_LOG_ERROR, "out of memory: the slot of a dead port stays in use");
        return;
    }
    q->number = port->index;
    emu_quiesce_start(port->server, q);
}

/* ---- the end ---- */

static void destroy(struct emu_port_end *port)
{
    struct emu_domain *domain = port->domain;
    struct emu_table_port *entry = &emu_table_ports(domain->table)[port->index];

    atomic_store_explicit(&entry->state, EMU_PORT_DEAD, memory_order_release);
    emu_parts_port_end(port);
    /* Its last calls: nobody will look at its doorbell. */
    emu_channel_end_serve_calls(port);
    emu_channel_end_drop_all(port);
    emu_account_drop_port(port);
    keep_flows(port);
    domain->ports[port->index] = NULL;
    domain->port_slots.n_used--;
    emu_parts_domain_changed(port->server, domain);
    LIST_REMOVE(port, link);
    emu_lookups_remove_port(port);
    LIST_REMOVE(port, member_link);
    if (--port->member->n_ports == 0)
        atomic_store_explicit(&domain->table->live_processes, --domain->port_slots.n_attached, memory_order_relaxed);
    atomic_store_explicit(&entry->state, EMU_PORT_FREE, memory_order_release);
    emu_quiesce_forget(port->server, port->connection, port);
    rest_slot(port, (atomic_load(&port->segment->inside) & 1) != 0);
    emu_user_give(port->member->user, EMU_USER_PORTS, 1);
    free_port(port);
    emu_server_bury(port->server, port->doorbell, &port->watch);
    close(port->doorbell);
}

static void connection_ended(struct emu_connection *c)
{
    if (c->port)
        destroy(c->port);
    else
        emu_quiesce_forget(c->server, c, NULL);
    c->port = NULL;
}

/* ---- requests ---- */

static int answer_cq_create(struct emu_request *request)
{
    return emu_queue_create(request->port, &request->msg->cq);
}

static void queue_is_left(struct emu_server *server, struct emu_quiesce *q)
{
    (void)server;
    if (q->port)
        emu_queue_release(q->port, q->number);
}

static int answer_cq_destroy(struct emu_request *request)
{
    static const struct emu_quiesce_ops ops = { .left = queue_is_left };
    struct emu_port_end *port = request->port;
    uint32_t queue = request->msg->cq.index;
    struct emu_quiesce *q;
    int r = emu_queue_destroy(port, queue);

    if (r < 0)
        return r;
    q = emu_quiesce_create(port->domain, &ops, NULL);
    if (!q)
        return -ENOMEM;
    q->port = port;
    q->number = queue;
    return emu_quiesce_answer(request->connection, q, request->msg);
}

static int answer_channel_create(struct emu_request *request)
{
    return emu_request_pass(request, emu_channel_end_create(request->port, &request->msg->channel), true);
}

static int answer_channel_destroy(struct emu_request *request)
{
    return emu_channel_end_destroy(request->port, request->msg->channel.channel);
}

static int answer_channel_attach(struct emu_request *request)
{
    return emu_channel_end_attach(request->port, &request->msg->channel);
}

/* ---- status ---- */

static void put_queues(const struct emu_port_end *port, uint64_t *row)
{
    row[EMU_STATUS_PORT_QUEUES] = port->queues.n_cqs;
    for (uint32_t i = 0; i < EMU_CQS_MAX; i++) {
        const struct emu_cq_end *cq = &port->queues.cqs[i];

        if (cq->in_use && atomic_load_explicit(&cq->producer.shm->overrun, memory_order_relaxed) != 0)
            row[EMU_STATUS_PORT_QUEUES_IN_OVERRUN]++;
    }
}

static void put_memory(const struct emu_port_end *port, uint64_t *row)
{
    const struct emu_table_md *entries = emu_table_mds(port->domain->table, port->node_index);
    const struct emu_md_end *md;

    row[EMU_STATUS_PORT_MEMORY_DOMAINS] = port->memory.n_mds;
    LIST_FOREACH(md, &port->memory.mds, link) {
        uint64_t *method = &row[EMU_STATUS_PORT_METHODS + 2 * entries[md->mdh].method];

        method[0]++;
        method[1] += entries[md->mdh].length_bytes;
    }
}

static void put_status(const struct emu_port_end *port, uint64_t *row)
{
    struct emu_flow_counts sum = { 0 };

    for (uint32_t i = 0; i < port->domain->n_nodes; i++)
        emu_port_end_add_flow(port, i, &sum);
    row[EMU_STATUS_PORT_INDEX] = port->index;
    row[EMU_STATUS_PORT_NID] = port->nid;
    row[EMU_STATUS_PORT_INSTANCE_ID] = port->instance_id;
    row[EMU_STATUS_PORT_PID] = (uint64_t)port->member->pid;
    row[EMU_STATUS_PORT_TX_OPERATIONS] = sum.operations;
    row[EMU_STATUS_PORT_TX_BYTES] = sum.payload_bytes;
    row[EMU_STATUS_PORT_TX_PACKETS] = sum.request_packets;
    row[EMU_STATUS_PORT_ERRORS] = sum.errors;
    put_queues(port, row);
    put_memory(port, row);
}

/* ---- the part ---- */

static const struct emu_request_row requests[] = {
    { EMU_MSG_ATTACH, EMU_MSG_ATTACH, EMU_NEEDS_CONTROL, answer_attach },
    { EMU_MSG_CQ_CREATE, EMU_MSG_CQ_CREATE, EMU_NEEDS_PORT, answer_cq_create },
    { EMU_MSG_CQ_DESTROY, EMU_MSG_CQ_DESTROY, EMU_NEEDS_PORT, answer_cq_destroy },
    { EMU_MSG_CHANNEL_CREATE, EMU_MSG_CHANNEL_CREATE, EMU_NEEDS_PORT, answer_channel_create },
    { EMU_MSG_CHANNEL_DESTROY, EMU_MSG_CHANNEL_DESTROY, EMU_NEEDS_PORT, answer_channel_destroy },
    { EMU_MSG_CHANNEL_ATTACH, EMU_MSG_CHANNEL_ATTACH, EMU_NEEDS_PORT, answer_channel_attach },
};

const struct emu_part emu_ports_part = {
    .name = "ports",
    .requests = requests,
    .n_requests = EMU_ROWS(requests),
    .connection_end = connection_ended,
    .status = { .port = put_status },
};
