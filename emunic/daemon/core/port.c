/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ports: one attached NIC context, its segment and its queues.
 *
 * Attach checks, in this order: the domain exists and belongs to the caller (or the caller is root); the node is
 * the caller's rank's, or one of the domain's; the member limit; that emunic can read the caller's memory (a value at
 * an address that the caller names), because a port whose memory cannot be reached would only produce errors.
 *
 * The segment is a memfd sealed against any change of size, so a client cannot make emunic fault. Queues are cut out
 * of its arena in pages; a destroyed queue's pages are punched out and come back as zeroes.
 *
 * Death of a port: no command of it is served any more, transfers of it end, its memory domains become invalid (so
 * transfers of others to it end with an error), its datagrams vanish, its counters are kept with the domain.
 */
#include "emunic/daemon/core/port.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include "emunic/daemon/ce/ce.h"
#include "emunic/daemon/core/channel.h"
#include "emunic/daemon/core/connection.h"
#include "emunic/daemon/datagrams/datagram.h"
#include "emunic/daemon/commands/datapath.h"
#include "emunic/daemon/core/domain.h"
#include "emunic/daemon/errors/error_stream.h"
#include "emunic/daemon/faults/fault_rules.h"
#include "emunic/daemon/jobs/presence.h"
#include "emunic/daemon/memory/memory_domain.h"
#include "emunic/daemon/msgq/msgq.h"
#include "emunic/daemon/portals/portals.h"
#include "emunic/daemon/core/quiesce.h"
#include "emunic/daemon/resources/resources.h"
#include "emunic/daemon/core/server.h"

#define ARENA_PAGE_BYTES 4096u
#define ARENA_PAGES      (EMU_CQ_ARENA_BYTES / ARENA_PAGE_BYTES)
#define CQ_CAPACITY_MAX  (1u << 20)

/* ---- views ---- */

struct emu_cq_producer *emu_port_end_queue(struct emu_port_end *port, uint32_t cq)
{
    return port && cq < EMU_CQS_MAX && port->cqs[cq].in_use ? &port->cqs[cq].producer : NULL;
}

static struct emu_cq_producer *view_source(void *ctx, uint32_t cq)
{
    return emu_port_end_queue(ctx, cq);
}

static struct emu_cq_producer *view_destination(void *ctx, const struct emu_table_md *md)
{
    struct emu_port_end *self = ctx;

    return emu_port_end_queue(self->domain->ports[md->port], md->cq);
}

static void view_failed(void *ctx, const struct emu_transaction *t, unsigned status)
{
    struct emu_port_end *self = ctx;
    bool lost_its_event = t->status == EMU_STATUS_OK;

    emu_error_tell_transaction(self, &t->cmd, status, lost_its_event ? EMU_ERROR_OVERRUN : self->fault.code,
                               self->fault.rule);
}

static const struct emu_view_ops view_ops = {
    .reach = emu_md_reach,
    .destination = view_destination,
    .source = view_source,
    .failed = view_failed,
    .local = emu_md_local,
};

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

        emu_log_limited(rate, EMU_LOG_WARN, "pid %d: its memory cannot be reached: %s", (int)pid, strerror(errno));
        return r;
    }
    return value == attach->probe_value ? 0 : -EFAULT;
}

static int find_slot(struct emu_domain *domain, uint32_t *slot_out)
{
    for (uint32_t i = 0; i < EMU_PORTS_MAX; i++) {
        uint32_t slot = (domain->next_port + i) % EMU_PORTS_MAX;

        if (!domain->ports[slot] && !domain->resting[slot]) {
            domain->next_port = (slot + 1) % EMU_PORTS_MAX;
            *slot_out = slot;
            return 0;
        }
    }
    return -ENOSPC;
}

static int make_segment(struct emu_port_end *port, int *fd_out)
{
    uint64_t slot_off = sizeof(struct emu_segment);
    uint64_t staging_off = slot_off + (uint64_t)EMU_RING_SLOTS * sizeof(struct emu_cmd);
    uint64_t flow_off = staging_off + EMU_STAGING_BYTES;
    uint64_t flows_end = flow_off + 2ull * port->domain->n_nodes * sizeof(struct emu_flow_counts);
    struct emu_segment *segment;
    int fd;
    int r;

    port->arena_off = (flows_end + ARENA_PAGE_BYTES - 1) & ~(uint64_t)(ARENA_PAGE_BYTES - 1);
    port->segment_bytes = port->arena_off + EMU_CQ_ARENA_BYTES;
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
    port->segment = segment;
    port->slots = (struct emu_cmd *)((char *)segment + slot_off);
    port->view = (struct emu_view){
        .table = port->domain->table,
        .ops = &view_ops,
        .ctx = port,
        .local = emu_memory_cma(port->member->pid),
        .staging = emu_memory_map((char *)segment + staging_off, 0, EMU_STAGING_BYTES),
        .flows = (struct emu_flow_counts *)((char *)segment + flow_off),
        .n_flows = port->domain->n_nodes,
        .chain_status = &port->chain_status,
        .bounce = port->server->bounce,
        .bounce_bytes = port->server->bounce_bytes,
    };
    *fd_out = fd;
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

    entry->generation++;
    entry->nid = port->nid;
    entry->instance_id = port->instance_id;
    entry->pid = (uint32_t)port->member->pid;
    entry->uid = (uint32_t)port->member->uid;
    atomic_store_explicit(&entry->ptl_id, 0, memory_order_relaxed);
    atomic_store_explicit(&entry->state, EMU_PORT_LIVE, memory_order_release);
    domain->ports[port->index] = port;
    domain->n_ports++;
    emu_presence_change(port->server, domain);
    LIST_INSERT_HEAD(&port->server->ports, port, link);
    LIST_INSERT_HEAD(&port->member->ports, port, member_link);
    if (port->member->n_ports++ == 0)
        atomic_store_explicit(&domain->table->live_processes, ++domain->n_attached, memory_order_relaxed);
}

static int create_port(struct emu_connection *connection, struct emu_domain *domain, struct emu_member *member,
                       const struct emu_msg_attach *attach, struct emu_port_end **port_out, int *segment_fd_out)
{
    struct emu_port_end *port = calloc(1, sizeof(*port));
    int r = -ENOMEM;

    if (!port)
        return r;
    *port = (struct emu_port_end){ .watch.ready = doorbell_ready,
                                   .server = connection->server,
                                   .domain = domain,
                                   .member = member,
                                   .connection = connection,
                                   .instance_id = attach->instance_id,
                                   .modes = attach->modes,
                                   .doorbell = -1,
                                   .alarm.ring = emu_channel_end_ring };
    LIST_INIT(&port->mds);
    TAILQ_INIT(&port->transfers);
    LIST_INIT(&port->remote.errands);
    LIST_INIT(&port->ce.posts);
    TAILQ_INIT(&port->portals_remote.errands);
    TAILQ_INIT(&port->portals_remote.ready);
    TAILQ_INIT(&port->datagrams);
    port->cqs = calloc(EMU_CQS_MAX, sizeof(*port->cqs));
    port->arena_map = calloc(ARENA_PAGES / 64, sizeof(*port->arena_map));
    if (!port->cqs || !port->arena_map)
        goto err_port;
    r = choose_node(domain, member, attach->nid_wanted, &port->node_index);
    if (r < 0)
        goto err_port;
    port->nid = emu_table_nodes(domain->table)[port->node_index].nid;
    r = find_slot(domain, &port->index);
    if (r < 0)
        goto err_port;
    r = emu_account_add_port(port);
    if (r < 0)
        goto err_port;
    r = make_segment(port, segment_fd_out);
    if (r < 0)
        goto err_account;
    port->doorbell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    r = port->doorbell < 0 ? -errno : emu_server_watch(port->server, port->doorbell, EPOLLIN | EPOLLET, &port->watch);
    if (r < 0)
        goto err_segment;
    *port_out = port;
    return 0;

err_segment:
    if (port->doorbell >= 0)
        close(port->doorbell);
    munmap(port->segment, port->segment_bytes);
    close(*segment_fd_out);
err_account:
    emu_account_drop_port(port);
err_port:
    free(port->cqs);
    free(port->arena_map);
    free(port);
    return r;
}

static bool limit_is_reached(const struct emu_domain *domain, const struct emu_member *member)
{
    return domain->member_limit != 0 && member->n_ports == 0 && domain->n_attached >= domain->member_limit;
}

int emu_port_end_create(struct emu_connection *connection, struct emu_msg_attach *attach, int fds_out[3])
{
    struct emu_domain *domain = emu_domain_find(connection->server, attach->ptag, attach->cookie);
    struct emu_member *member;
    struct emu_port_end *port;
    int segment_fd = -1;
    int r;

    if (!domain || (connection->peer.uid != domain->owner_uid && connection->peer.uid != 0)) {
        emu_log_limited(&connection->server->rate, EMU_LOG_WARN, "pid %d uid %u: credentials refused (ptag %u)",
                        (int)connection->peer.pid, (unsigned)connection->peer.uid, attach->ptag);
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
    r = try_memory(connection->peer.pid, attach, &connection->server->rate);
    if (r == 0)
        r = create_port(connection, domain, member, attach, &port, &segment_fd);
    if (r < 0)
        return r;
    publish_port(port);
    emu_fault_start_port(port);
    member->n_ports_ever++;
    connection->port = port;
    attach->ptag = domain->ptag;
    attach->nid = domain->addresses[port->node_index];
    attach->port = port->index;
    attach->table_bytes = domain->table_bytes;
    attach->segment_bytes = port->segment_bytes;
    fds_out[0] = domain->table_fd;
    fds_out[1] = segment_fd;
    fds_out[2] = port->doorbell;
    port->segment_fd = segment_fd;
    emu_log(EMU_LOG_DEBUG, "port %u: nid %u inst 0x%x pid %d", port->index, port->nid, port->instance_id,
            (int)member->pid);
    return 0;
}

void emu_port_end_add_flow(const struct emu_port_end *port, uint32_t node, struct emu_flow_counts *sum)
{
    /* What emunic did for the port, and what the port did itself. */
    for (uint32_t half = 0; half < 2; half++) {
        const struct emu_flow_counts *flow = &port->view.flows[half * port->domain->n_nodes + node];

        sum->operations += flow->operations;
        sum->payload_bytes += flow->payload_bytes;
        sum->request_packets += flow->request_packets;
        sum->request_flits += flow->request_flits;
        sum->response_packets += flow->response_packets;
        sum->response_flits += flow->response_flits;
        sum->errors += flow->errors;
    }
}

/* The counters of a port that goes stay with its domain. */
static void keep_flows(struct emu_port_end *port)
{
    struct emu_domain *domain = port->domain;
    struct emu_flow_counts **row = &domain->past_flows[port->node_index];

    if (!*row)
        *row = calloc(domain->n_nodes, sizeof(**row));
    if (!*row)
        return;
    for (uint32_t i = 0; i < domain->n_nodes; i++) {
        emu_port_end_add_flow(port, i, &(*row)[i]);
    }
}

void emu_port_end_destroy(struct emu_port_end *port)
{
    struct emu_domain *domain = port->domain;
    struct emu_table_port *entry = &emu_table_ports(domain->table)[port->index];
    uint16_t *mdhs;
    uint32_t n_mdhs;

    atomic_store_explicit(&entry->state, EMU_PORT_DEAD, memory_order_release);
    if (port->connection->hung_up)
        emu_error_tell_port(port, EMU_ERROR_PORT_DIED, EMU_ERROR_CRITICAL, (uint64_t)port->member->pid, 0);
    emu_datapath_drop_port(port);
    emu_portals_drop_port(port);
    /* Its last calls: nobody will look at its doorbell. */
    emu_channel_end_serve_calls(port);
    emu_channel_end_drop_all(port);
    mdhs = emu_md_drop_all(port, &n_mdhs);
    emu_account_drop_port(port);
    emu_datagram_drop_all(port);
    emu_msgq_drop_port(port);
    emu_ce_drop_port(port);
    keep_flows(port);
    domain->ports[port->index] = NULL;
    domain->n_ports--;
    emu_presence_change(port->server, domain);
    LIST_REMOVE(port, link);
    LIST_REMOVE(port, member_link);
    if (--port->member->n_ports == 0)
        atomic_store_explicit(&domain->table->live_processes, --domain->n_attached, memory_order_relaxed);
    atomic_store_explicit(&entry->state, EMU_PORT_FREE, memory_order_release);
    emu_quiesce_forget(port->server, port->connection, port);
    emu_quiesce_port(port, mdhs, n_mdhs, (atomic_load(&port->segment->inside) & 1) != 0);
    munmap(port->segment, port->segment_bytes);
    close(port->segment_fd);
    free(port->cqs);
    free(port->arena_map);
    free(port->pending);
    emu_server_bury(port->server, port->doorbell, &port->watch);
    close(port->doorbell);
}

/* ---- queues ---- */

static bool arena_bit(const struct emu_port_end *port, uint32_t page)
{
    return port->arena_map[page / 64] >> (page % 64) & 1;
}

static void arena_set(struct emu_port_end *port, uint32_t first, uint32_t count, bool is_used)
{
    for (uint32_t page = first; page < first + count; page++) {
        if (is_used)
            port->arena_map[page / 64] |= 1ull << (page % 64);
        else
            port->arena_map[page / 64] &= ~(1ull << (page % 64));
    }
}

/* First fit. */
static int arena_alloc(struct emu_port_end *port, uint32_t count, uint32_t *first_out)
{
    uint32_t run = 0;

    for (uint32_t page = 0; page < ARENA_PAGES; page++) {
        run = arena_bit(port, page) ? 0 : run + 1;
        if (run == count) {
            *first_out = page + 1 - count;
            arena_set(port, *first_out, count, true);
            return 0;
        }
    }
    return -ENOSPC;
}

int emu_port_end_cq_create(struct emu_port_end *port, struct emu_msg_cq *cq)
{
    struct emu_cq_end *end = NULL;
    struct emu_cq_shm *shm;
    uint64_t entries = 64;
    uint64_t bytes;
    int r;

    if (cq->capacity == 0 || cq->capacity > CQ_CAPACITY_MAX || cq->ring_entries > CQ_CAPACITY_MAX)
        return -EINVAL;
    r = emu_account_may_add_cq(port);
    if (r < 0)
        return r;
    for (uint32_t i = 0; i < EMU_CQS_MAX && !end; i++) {
        if (!port->cqs[i].in_use && port->cqs[i].n_pages == 0) {
            end = &port->cqs[i];
            cq->index = i;
        }
    }
    if (!end)
        return -ENOSPC;
    while (entries < cq->capacity || entries < cq->ring_entries)
        entries *= 2;
    bytes = sizeof(struct emu_cq_shm) + entries * sizeof(uint64_t);
    end->n_pages = (uint32_t)((bytes + ARENA_PAGE_BYTES - 1) / ARENA_PAGE_BYTES);
    r = arena_alloc(port, end->n_pages, &end->first_page);
    if (r < 0) {
        end->n_pages = 0;
        return r;
    }
    end->in_use = true;
    end->serial = ++port->server->queues_made;
    end->offset = port->arena_off + (uint64_t)end->first_page * ARENA_PAGE_BYTES;
    shm = (struct emu_cq_shm *)((char *)port->segment + end->offset);
    emu_cq_format(shm, entries, cq->capacity);
    end->flags = cq->flags & EMU_CQ_WAKES;
    end->channel = EMU_CHANNEL_NONE;
    emu_cq_producer_init(&end->producer, shm, entries, cq->capacity, (end->flags & EMU_CQ_WAKES) != 0, &port->alarm);
    port->n_cqs++;
    port->domain->accounts[port->node_index].n_cqs++;
    cq->offset = end->offset;
    cq->ring_entries = entries;
    return 0;
}

int emu_port_end_cq_destroy(struct emu_port_end *port, uint32_t index)
{
    if (index >= EMU_CQS_MAX || !port->cqs[index].in_use)
        return -EINVAL;
    emu_md_drop_cq(port, index);
    emu_ce_drop_cq(port, index);
    port->cqs[index].in_use = false;
    port->n_cqs--;
    port->domain->accounts[port->node_index].n_cqs--;
    return 0;
}

void emu_port_end_cq_release(struct emu_port_end *port, uint32_t index)
{
    struct emu_cq_end *end = &port->cqs[index];

    /* The next queue on these pages must find zeroes, whatever the owner still writes until then. */
    if (fallocate(port->segment_fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)end->offset,
                  (off_t)end->n_pages * ARENA_PAGE_BYTES) < 0)
        memset((char *)port->segment + end->offset, 0, (size_t)end->n_pages * ARENA_PAGE_BYTES);
    arena_set(port, end->first_page, end->n_pages, false);
    *end = (struct emu_cq_end){ .in_use = false };
}
