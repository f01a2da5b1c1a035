/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Direct path.
 *
 * A view of the engine over our own mappings: the domain table (read-only), peers' segments and space files, mapped
 * when first met, files that peers have mapped shared (peer_files.c), the peer's private memory through process_vm_*,
 * our own memory as it is. What is mapped is remembered per port slot and its generation; a slot's next owner is met
 * anew.
 *
 * Around each run our segment's `inside` is odd (client/lane.h). emunic takes nothing away (memory, queues, ports) that
 * it made invisible in the table before it has seen us outside or dead (daemon/core/quiesce.c). Cost: two stores.
 *
 * Left to emunic: commands above EMUNIC_DIRECT_LIMIT, atomics on private memory (only one process may do them),
 * chains, contributions to reductions, peers whose memory we may not touch, and everything while the domain is routed.
 *
 * Cache lines of an 8-byte put with remote event to shared memory: the table's changing line and the memory domain's
 * line (both stay shared), our `inside` line (ours), the target's line, the peer queue's tail and entry lines, our own
 * queue's tail and entry lines. No system call.
 */
#include "emunic/client/direct.h"

#include <errno.h>
#include <linux/membarrier.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "emunic/abi/abi.h"
#include "emunic/base/window.h"
#include "emunic/client/lane.h"
#include "emunic/client/peer_files.h"
#include "emunic/client/port.h"
#include "emunic/engine/pages.h"
#include "emunic/engine/transaction.h"

#define KNOWN_QUEUES 64

/* What we know of a port slot of the domain. */
struct peer {
    struct emu_cq_alarm alarm; /* first: of its queues */
    struct emu_direct *direct; /* borrowed: the one it belongs to */
    uint32_t generation;       /* of the port that this is about; 0: nothing yet */
    bool has_no_segment;       /* emunic said no */
    bool has_no_space;         /* likewise */
    bool has_closed_memory;    /* the kernel said no */
    bool was_tried;            /* so that is known */
    uint8_t *segment;
    uint64_t segment_bytes;
    int space_fd;                    /* of its process; -1: not yet asked for */
    struct emu_windows windows;      /* into it */
    struct emu_windows read_windows; /* into it, for read-only registrations */
};

struct known_queue {
    uint32_t port;
    uint32_t generation;
    uint32_t cq_line;
    uint32_t cq_flags; /* with the serial */
    struct emu_cq_producer producer;
};

struct emu_direct {
    struct emu_gate gate;
    struct emu_port *port; /* borrowed: owns us */
    struct emu_view view;
    struct emu_cq_producer *own; /* owned, EMU_CQS_MAX */
    struct known_queue queues[KNOWN_QUEUES];
    struct peer *target;         /* whose memory the command at hand goes to */
    struct peer *reached;        /* the same, if it is private */
    struct peer *peers;          /* owned, one per port slot */
    struct emu_peer_files files; /* that peers have mapped themselves */
    unsigned chain_status;
    unsigned failure; /* enum emu_status of the command at hand */
};

/* ---- peers; what is met first takes slow ways, where a thread must not be cancelled: it is inside ---- */

static void forget(struct emu_direct *d, struct peer *peer)
{
    struct emu_cancel cancel;

    if (peer->generation == 0)
        return;
    d->gate.epoch++;
    emu_cancel_hold(&cancel);
    emu_windows_fini(&peer->windows);
    emu_windows_fini(&peer->read_windows);
    if (peer->space_fd >= 0 && !atomic_load(&d->port->session.is_stale))
        close(peer->space_fd);
    if (peer->segment)
        munmap(peer->segment, peer->segment_bytes);
    *peer = (struct peer){ .generation = 0 };
    emu_cancel_release(&cancel);
}

/* A queue of the peer's was armed, and is ours to tell of: emunic does that. We are inside. */
static void ring_peer(struct emu_cq_alarm *alarm, uint32_t queue)
{
    struct peer *peer = (struct peer *)alarm;
    struct emu_direct *d = peer->direct;
    uint32_t port = (uint32_t)(peer - d->peers);
    struct emu_segment *segment = (struct emu_segment *)peer->segment;

    atomic_fetch_or_explicit(&segment->fired[queue / 64], 1ull << (queue % 64), memory_order_relaxed);
    atomic_fetch_or_explicit(&d->port->segment->calls[port / 64], 1ull << (port % 64), memory_order_release);
    /* Pairs with the exchange in emunic: whoever sees this sees the call and what fired. */
    atomic_store_explicit(&d->port->segment->has_calls, 1, memory_order_release);
    emu_port_ring(d->port);
}

/* Record of the port that owns a slot now. NULL: nobody. */
static struct peer *peer_of(struct emu_direct *d, uint32_t port)
{
    const struct emu_table_port *entry;
    struct peer *peer;

    if (port >= d->port->table->n_ports)
        return NULL;
    entry = &emu_table_ports(d->port->table)[port];
    if (atomic_load_explicit(&entry->state, memory_order_acquire) != EMU_PORT_LIVE)
        return NULL;
    peer = &d->peers[port];
    if (peer->generation != entry->generation) {
        forget(d, peer);
        *peer = (struct peer){ .alarm.ring = ring_peer,
                               .direct = d,
                               .generation = entry->generation,
                               .space_fd = -1,
                               .read_windows.is_read_only = true };
    }
    return peer;
}

/* Asks emunic for a descriptor of a peer's. -1: not to be had. Runs once per peer and object. */
static int ask_for(struct emu_direct *d, const struct peer *peer, uint32_t port, uint16_t type, uint64_t *bytes_out)
{
    struct emu_msg msg = { .type = type, .peer = { .port = port } };
    struct emu_fds fds;
    struct stat st;
    int fd = -1;

    if (emu_session_request(&d->port->session, &msg, NULL, 0, &fds) < 0)
        return -1;
    if (msg.result == 0 && fds.n_fds == 1 && msg.peer.generation == peer->generation && fstat(fds.fd[0], &st) == 0 &&
        (uint64_t)st.st_size >= msg.peer.length_bytes) {
        fd = fds.fd[0];
        fds.fd[0] = -1;
        *bytes_out = msg.peer.length_bytes;
    }
    emu_fds_close(&fds);
    return fd;
}

/* Runs once per peer. */
static bool map_segment(struct emu_direct *d, struct peer *peer, uint32_t port)
{
    uint64_t bytes = 0;
    void *addr;
    int fd;

    peer->has_no_segment = true;
    fd = ask_for(d, peer, port, EMU_MSG_PEER_SEGMENT, &bytes);
    if (fd < 0)
        return false;
    addr = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
    close(fd);
    if (addr == MAP_FAILED)
        return false;
    peer->segment = addr;
    peer->segment_bytes = bytes;
    peer->has_no_segment = false;
    return true;
}

static bool has_segment(struct emu_direct *d, struct peer *peer, uint32_t port)
{
    struct emu_cancel cancel;
    bool is_mapped;

    if (peer->segment || port == d->port->index)
        return true;
    if (peer->has_no_segment)
        return false;
    emu_cancel_hold(&cancel);
    is_mapped = map_segment(d, peer, port);
    emu_cancel_release(&cancel);
    return is_mapped;
}

static const struct emu_window *window_of(struct emu_direct *d, struct peer *peer, const struct emu_table_md *md)
{
    uint64_t first = emu_page_down(md->base);
    struct emu_cancel cancel;
    uint64_t bytes;

    if (peer->space_fd < 0 && !peer->has_no_space) {
        emu_cancel_hold(&cancel);
        peer->space_fd = ask_for(d, peer, md->port, EMU_MSG_PEER_SPACE, &bytes);
        emu_cancel_release(&cancel);
        peer->has_no_space = peer->space_fd < 0;
    }
    if (peer->space_fd < 0)
        return NULL;
    return emu_windows_get(md->flags & EMU_MD_READ_ONLY ? &peer->read_windows : &peer->windows, peer->space_fd, first,
                           md->base + md->length_bytes - first);
}

/* ---- view ---- */

static int view_reach(void *ctx, const struct emu_table_md *md, uint8_t op, struct emu_memory *mem_out)
{
    struct emu_direct *d = ctx;
    struct peer *peer = peer_of(d, md->port);
    const struct emu_window *window;

    if (!peer)
        return EMU_STATUS_PEER_GONE;
    if (md->flags & EMU_MD_SEGMENTED) /* emunic alone has the list of segments */
        return EMU_REACH_NOT_HERE;
    d->target = peer;
    /*
     * Events go into the peer's segment: without it emunic has to deliver them. Without events it serves to wake the
     * peer.
     */
    if (!has_segment(d, peer, md->port) && md->cq != EMU_CQ_NONE)
        return EMU_REACH_NOT_HERE;
    if (md->method == EMU_MEMORY_MAP) {
        window = window_of(d, peer, md);
        if (!window)
            return EMU_REACH_NOT_HERE;
        *mem_out = emu_memory_map(window->base, window->owner_addr, window->len_bytes);
        return EMU_STATUS_OK;
    }
    if (md->method == EMU_MEMORY_FILE)
        return emu_peer_files_reach(&d->files, md, mem_out) ? EMU_STATUS_OK : EMU_REACH_NOT_HERE;
    if (op == EMU_OP_AMO || peer->has_closed_memory)
        return EMU_REACH_NOT_HERE;
    d->reached = peer;
    *mem_out = emu_memory_cma((pid_t)emu_table_ports(d->port->table)[md->port].pid);
    return EMU_STATUS_OK;
}

/* Queues of peers that we have put events into lately: spares the look at the consumer's line. */
static struct known_queue *known_queue_of(struct emu_direct *d, const struct emu_table_md *md, uint32_t generation)
{
    struct known_queue *q = &d->queues[(md->port * 31 + md->cq_line) % KNOWN_QUEUES];

    /* The serial, too: a queue made anew in the same place is another one. */
    if (q->port != md->port || q->generation != generation || q->cq_line != md->cq_line || q->cq_flags != md->cq_flags)
        *q = (struct known_queue){
            .port = md->port, .generation = generation, .cq_line = md->cq_line, .cq_flags = md->cq_flags
        };
    return q;
}

static struct emu_cq_producer *view_destination(void *ctx, const struct emu_table_md *md)
{
    struct emu_direct *d = ctx;
    struct peer *peer = &d->peers[md->port];
    bool is_own = md->port == d->port->index;
    uint8_t *segment = is_own ? (uint8_t *)d->port->segment : peer->segment;
    uint64_t segment_bytes = is_own ? d->port->segment_bytes : peer->segment_bytes;
    uint64_t offset = (uint64_t)md->cq_line * EMU_CACHE_LINE;
    struct known_queue *q = known_queue_of(d, md, peer->generation);

    if (q->producer.shm)
        return &q->producer;
    /* The table is emunic's word; a bound that does not hold would be its mistake. */
    if (!segment || offset + sizeof(struct emu_cq_shm) + (uint64_t)md->cq_ring_entries * 8 > segment_bytes)
        return NULL;
    emu_cq_producer_init(&q->producer, (struct emu_cq_shm *)(segment + offset), md->cq_ring_entries, md->cq_capacity,
                         (md->cq_flags & EMU_CQ_WAKES) != 0, is_own ? &d->port->alarm : &peer->alarm);
    return &q->producer;
}

static struct emu_cq_producer *view_source(void *ctx, uint32_t cq)
{
    struct emu_direct *d = ctx;

    return cq < EMU_CQS_MAX && d->own[cq].shm ? &d->own[cq] : NULL;
}

/* The first failure of the command at hand. */
static void view_failed(void *ctx, const struct emu_transaction *t, unsigned status)
{
    struct emu_direct *d = ctx;

    (void)t;
    if (d->failure == EMU_STATUS_OK)
        d->failure = status;
}

static const struct emu_segment *view_segment(void *ctx, uint32_t port)
{
    return emu_direct_segment_of(ctx, port);
}

static const struct emu_view_ops view_ops = {
    .segment = view_segment,
    .reach = view_reach,
    .destination = view_destination,
    .source = view_source,
    .failed = view_failed,
};

/* ---- life ---- */

static void count_small(struct emu_small_counts *small, const struct emu_packet_format *format)
{
    for (uint32_t bytes = 0; bytes <= EMU_GATE_SMALL_MAX; bytes++) {
        emu_flow_add_put(&small->puts[bytes], format, bytes);
        emu_flow_add_get(&small->gets[bytes], format, bytes, 0);
        small->operand_flits[bytes] = (uint16_t)emu_data_flits(format, bytes);
    }
}

struct emu_direct *emu_direct_create(struct emu_port *port)
{
    const struct emu_segment *s = port->segment;
    struct emu_direct *d;

    /* Another process number space: process_vm_* from here would reach the wrong process. */
    if (emu_table_ports(port->table)[port->index].pid != (uint32_t)getpid())
        return NULL;
    d = calloc(1, sizeof(*d));
    if (!d)
        return NULL;
    d->port = port;
    emu_peer_files_init(&d->files, &port->session, port->table);
    d->own = emu_pages_take(EMU_CQS_MAX * sizeof(*d->own));
    d->peers = emu_pages_take(port->table->n_ports * sizeof(*d->peers));
    d->gate.small = emu_pages_take(sizeof(*d->gate.small));
    if (!d->own || !d->peers || !d->gate.small) {
        emu_direct_destroy(d);
        return NULL;
    }
    d->gate = (struct emu_gate){
        .table = port->table,
        .segment = port->segment,
        .tail = &port->tail,
        .is_lost = &port->session.is_lost,
        .epoch = 1,
        .small = d->gate.small,
        .files_gone = d->files.seen_gone,
        .fences = (atomic_load(&port->table->flags) & EMU_TABLE_FENCED) != 0 ||
                  syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED, 0, 0) != 0,
    };
    count_small(d->gate.small, &port->table->format);
    d->view = (struct emu_view){
        .table = port->table,
        .ops = &view_ops,
        .ctx = d,
        .local = emu_memory_self(),
        .staging = emu_memory_map(port->staging, 0, EMU_STAGING_BYTES),
        .flows = (struct emu_flow_counts *)((char *)port->segment + s->flow_off) + s->n_flows,
        .n_flows = s->n_flows,
        .chain_status = &d->chain_status,
        .bounce = d, /* never used: our own memory is its own window */
        .bounce_bytes = 1,
        .declines = true,
    };
    return d;
}

void emu_direct_destroy(struct emu_direct *d)
{
    if (!d)
        return;
    for (uint32_t i = 0; d->peers && i < d->port->table->n_ports; i++)
        forget(d, &d->peers[i]);
    emu_peer_files_fini(&d->files);
    emu_pages_give(d->peers, d->port->table->n_ports * sizeof(*d->peers));
    emu_pages_give(d->own, EMU_CQS_MAX * sizeof(*d->own));
    emu_pages_give(d->gate.small, sizeof(*d->gate.small));
    free(d);
}

void emu_direct_add_queue(struct emu_direct *d, uint32_t index, struct emu_cq_shm *shm, uint64_t ring_entries,
                          uint64_t capacity, bool wakes)
{
    if (index < EMU_CQS_MAX)
        emu_cq_producer_init(&d->own[index], shm, ring_entries, capacity, wakes, &d->port->alarm);
}

struct emu_cq_producer *emu_direct_own_queue(struct emu_direct *d, uint32_t index)
{
    return &d->own[index];
}

/* ---- for lanes and for Portals ---- */

struct emu_gate *emu_direct_gate(struct emu_direct *d)
{
    return &d->gate;
}

int emu_direct_reach(struct emu_direct *d, const struct emu_table_md *md, struct emu_memory *mem_out)
{
    return view_reach(d, md, EMU_OP_PUT, mem_out);
}

struct emu_cq_producer *emu_direct_destination(struct emu_direct *d, const struct emu_table_md *md)
{
    return view_destination(d, md);
}

/*
 * May we reach into that process? Address 0 is mapped nowhere, so an answer other than "bad address" tells. Once per
 * peer.
 */
static bool is_closed(pid_t pid)
{
    uint8_t byte;
    struct iovec local = { &byte, 1 };
    struct iovec remote = { NULL, 1 };

    return process_vm_readv(pid, &local, 1, &remote, 1, 0) < 0 && errno != EFAULT;
}

int emu_direct_reach_private(struct emu_direct *d, uint32_t port, struct emu_memory *mem_out)
{
    struct peer *peer = peer_of(d, port);
    pid_t pid;

    if (!peer)
        return EMU_STATUS_PEER_GONE;
    if (port == d->port->index) {
        *mem_out = emu_memory_self();
        return EMU_STATUS_OK;
    }
    pid = (pid_t)emu_table_ports(d->port->table)[port].pid;
    if (!peer->was_tried) {
        peer->was_tried = true;
        peer->has_closed_memory = peer->has_closed_memory || is_closed(pid);
    }
    if (peer->has_closed_memory)
        return EMU_REACH_NOT_HERE;
    *mem_out = emu_memory_cma(pid);
    return EMU_STATUS_OK;
}

struct emu_segment *emu_direct_segment_of(struct emu_direct *d, uint32_t port)
{
    struct peer *peer = peer_of(d, port);

    if (!peer)
        return NULL;
    if (port == d->port->index)
        return d->port->segment;
    return has_segment(d, peer, port) ? (struct emu_segment *)peer->segment : NULL;
}

struct emu_flow_counts *emu_direct_flow(struct emu_direct *d, uint32_t node_index)
{
    return &d->view.flows[node_index % d->view.n_flows];
}

void emu_direct_trim(struct emu_direct *d)
{
    if (!emu_peer_files_trim(&d->files))
        return;
    d->gate.epoch++;
    d->gate.files_gone = d->files.seen_gone;
}

/* ---- commands ---- */

/* Subscribers to errors hear of our failures from emunic. The ring is empty, so there is room for a command. */
static void report_failure(struct emu_direct *d, const struct emu_cmd *failed)
{
    const struct emu_cmd about = *failed; /* it lies in the slot that comes next */
    struct emu_cmd *cmd;

    /* Whatever it had staged has been moved. */
    d->port->staging_tail = d->port->staging_head;
    cmd = emu_port_command(d->port, 0, NULL);
    if (!cmd)
        return;
    cmd->op = EMU_OP_REPORT;
    cmd->remote_nid = about.remote_nid;
    cmd->mdh = about.mdh;
    cmd->remote_addr = about.remote_addr;
    cmd->operand1 = d->failure;
    cmd->operand2 = about.op;
    emu_port_publish(d->port);
}

bool emu_direct_run(struct emu_direct *d, const struct emu_cmd *cmd)
{
    bool is_done;

    if (cmd->length_bytes > d->port->settings.direct_limit_bytes || cmd->chain != EMU_CHAIN_NONE ||
        cmd->op == EMU_OP_CE || atomic_load_explicit(&d->port->session.is_lost, memory_order_relaxed))
        return false;
    emu_direct_trim(d);
    /* Behind transfers that emunic is still moving it does the waiting. */
    d->gate.is_for_ordered = (cmd->flags & (EMU_CMD_FENCE | EMU_CMD_IN_ORDER)) != 0;
    emu_gate_enter(&d->gate);
    d->target = NULL;
    d->reached = NULL;
    d->failure = EMU_STATUS_OK;
    /* Once more: who suspends or paces a job waits only for those whose mark was up. */
    is_done = emu_gate_is_open(&d->gate) && emu_transaction_run(&d->view, cmd);
    d->gate.is_for_ordered = false;
    if (!is_done && d->reached)
        d->reached->has_closed_memory = true;
    emu_gate_leave(&d->gate);
    if (d->target && d->target->segment)
        emu_rest_disturb((struct emu_segment *)d->target->segment);
    if (is_done && d->failure != EMU_STATUS_OK &&
        (atomic_load_explicit(&d->port->table->flags, memory_order_relaxed) & EMU_TABLE_WATCHED))
        report_failure(d, cmd);
    return is_done;
}

bool emu_direct_move(struct emu_direct *d, const struct emu_cmd *cmd)
{
    struct emu_transaction t;
    bool is_moved = false;

    emu_direct_trim(d);
    emu_gate_enter(&d->gate);
    d->target = NULL;
    d->reached = NULL;
    if (emu_gate_is_open(&d->gate) && emu_transaction_begin(&d->view, cmd, &t)) {
        while (emu_transaction_step(&d->view, &t, UINT64_MAX))
            ;
        is_moved = t.status == EMU_STATUS_OK;
    }
    emu_gate_leave(&d->gate);
    return is_moved;
}
