/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * NICs and hosts in virtual time: operations, and what they ask of cores. Packets are in nic_packet.c.
 *
 * Stages. An operation passes a chain of servers and delays; servers take one thing after another (core, interface,
 * NIC ...), delays overlap (pipelines, latencies of memory). The names are those of the host section:
 *
 *   core (put_gap, launch_gap, send + copy) -> issue -> [launch_node_gap] -> interface out -> packet gap -> tiles out
 *     -> out -> NETWORK -> tiles in -> in -> packet gap -> interface in -> write: visible
 *   answers: put: respond behind the target's interface; get: interface out and read at the target, then the same way
 *
 * Each request packet, and each answer, takes its way alone; an operation is complete when its last answer is, and has
 * arrived when its last packet is visible, in whatever order they come. So a small put costs
 * issue + out + H hops + in + write (spec/machines.md 2.3) plus the time of its bytes, and long transfers run at the
 * rate of their slowest server, or at window / round trip. The interface has a server each way; a transfer occupies the
 * other way for duplex_percent of its own time (read requests, acknowledgements of the bus), which is what makes both
 * ways together slower than twice one way. Operations shorter than duplex_bytes_min do not.
 *
 * A block transfer has a channel, whose packets are bte_mbs apart; several channels share the stages behind it.
 *
 * Messages are in nic_message.c. send_end is work of the core behind a send, hidden in a ping-pong, not in an exchange.
 *
 * Generic hosts (SeaStar). The first packet of a transfer is its header, which interrupts the target's core; data
 * wait in the NIC until the core has matched it, and their end interrupts again, unless they were so short that they
 * travelled in the header. A get is one request; the answer is a transfer of its own.
 *
 * State belongs to nodes and is made at a node's first use.
 * Source: spec/machines.md 2.3, 2.5, 3.3, 4.3, 4.5, 6.3, 7.3; parameters are fitted by the K rows of section 9 only.
 */
#include "emunic/model/nic_inner.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "emunic/fabric/random.h"

/* ---- posting ---- */

static bool is_block_transfer(enum packet_type type)
{
    return type == TYPE_BTE_PUT || type == TYPE_BTE_GET || type == TYPE_BULK_PUT || type == TYPE_BULK_GET;
}

/* Counts of packets and answers, from type and size. Those that name another node's operation are not answered. */
static void plan(const struct emu_nic_model *nm, struct op *op)
{
    uint32_t bytes = op->spec.bytes;

    op->n_packets = 1;
    op->is_counted = nm->host.has_acks && has_data_in_requests(op->type) && op->type != TYPE_REPLY_STREAM;
    if (is_get(op->type)) {
        op->n_packets = nm->host.is_generic ? 1 : packets_of(nm, bytes);
        op->is_counted = !nm->host.is_generic;
        op->n_answers = 1; /* of a generic host: one stream */
    } else if (op->type == TYPE_AMO_FETCH) {
        op->is_counted = true;
    } else if (has_data_in_requests(op->type)) {
        op->n_packets =
            is_assembled(nm, op->type, op->spec.is_told) ? packets_with_header(nm, bytes) : packets_of(nm, bytes);
    }
    if (op->is_counted)
        op->n_answers = op->n_packets;
    op->order_key = emu_random_mix((uint64_t)op->seq << 32 | op->spec.to.nid) >> 8;
}

uint64_t emu_nic_first_ready(const struct emu_nic_model *nm, const struct node *n)
{
    uint64_t first = NEVER;

    for (uint32_t i = 0; i < n->n_procs; i++) {
        const struct op *op = n->procs[i].queue.first;

        if (op && next_ready(op) < first)
            first = next_ready(op);
    }
    for (uint32_t i = 0; i < nm->nic.bte_channels; i++) {
        if (n->bte[i] && n->bte[i]->is_queued && next_ready(n->bte[i]) < first)
            first = next_ready(n->bte[i]);
    }
    return first;
}

/* A waiting block transfer takes a free channel, free since at_ps. */
static void fill_channels(struct emu_nic_model *nm, struct node *n, uint64_t at_ps)
{
    for (uint32_t i = 0; i < nm->nic.bte_channels && n->bte_waiting.first; i++) {
        struct op *op;

        if (n->bte[i])
            continue;
        op = dequeue(&n->bte_waiting);
        op->ready_ps = later(op->ready_ps, at_ps) + nm->host.bte_start_ps;
        op->step_ps = time_of(nm->format.payload_bytes_max, nm->host.bte_kbs);
        op->is_channel = true;
        n->bte[i] = op;
    }
}

void emu_nic_leave_channel(struct emu_nic_model *nm, struct node *n, struct op *op, uint64_t at_ps)
{
    for (uint32_t i = 0; op->is_channel && i < nm->nic.bte_channels; i++) {
        if (n->bte[i] == op)
            n->bte[i] = NULL;
    }
    op->is_channel = false;
    fill_channels(nm, n, at_ps);
    emu_nic_wake_at(nm, n, EMU_TRAFFIC_REQUEST, emu_nic_first_ready(nm, n));
}

/* The operation joins its queue; the network asks for its packets in time. */
static void submit(struct emu_nic_model *nm, struct node *n, struct op *op)
{
    plan(nm, op);
    if (is_block_transfer(op->type) && nm->nic.bte_channels > 0) {
        enqueue(&n->bte_waiting, op);
        fill_channels(nm, n, 0);
    } else {
        enqueue(&n->procs[op->proc].queue, op);
    }
    if (op->proc >= n->n_procs)
        n->n_procs = op->proc + 1u;
    if (atomic_load_explicit(&nm->is_started, memory_order_relaxed)) /* the first run asks every node */
        emu_nic_wake_at(nm, n, EMU_TRAFFIC_REQUEST, emu_nic_first_ready(nm, n));
}

static uint64_t api_time(const struct emu_nic_model *nm, enum emu_nic_api api)
{
    return api == EMU_NIC_API_SHMEM ? nm->host.shmem_ps : api == EMU_NIC_API_CAF ? nm->host.caf_ps : 0;
}

static enum packet_type type_of(const struct emu_nic_model *nm, const struct emu_nic_op *spec)
{
    if (spec->kind == EMU_NIC_MESSAGE)
        return emu_nic_message_type(nm, spec->bytes);
    return (enum packet_type)spec->kind;
}

/* The core's time for an operation, its stores apart. */
static uint64_t gap_of(const struct emu_node_params *host, const struct emu_nic_op *spec)
{
    if (spec->kind != EMU_NIC_LAUNCH && !spec->is_launched)
        return host->put_gap_ps;
    return (uint64_t)host->launch_gap_ps * (spec->changes_mdh ? host->launch_mdh_percent : 100) / 100;
}

/* An eager message that is longer than a buffer: the core's time for the parts behind the first. */
static uint64_t plan_parts(const struct emu_nic_model *nm, struct op *op)
{
    uint32_t part_bytes, rest, last;

    op->part_packets = emu_nic_part_packets(nm, op->spec.bytes);
    if (op->part_packets == 0)
        return 0;
    part_bytes = op->part_packets * nm->format.payload_bytes_max;
    op->part_ps = emu_nic_part_work(nm, part_bytes);
    rest = (op->spec.bytes - 1) / part_bytes;
    last = op->spec.bytes - rest * part_bytes;
    return (rest - 1) * op->part_ps + emu_nic_part_work(nm, last);
}

/* Occupies the core and sets when the first packet is at the NIC. */
static void issue(struct emu_nic_model *nm, struct node *n, struct op *op, uint64_t at_ps)
{
    const struct emu_node_params *host = &nm->host;
    struct proc *proc = &n->procs[op->proc];
    uint64_t start = later(at_ps, proc->core_ps);
    uint64_t before = api_time(nm, op->spec.api); /* the NIC sees nothing yet */
    uint64_t stores = 0;
    uint64_t gap = gap_of(host, &op->spec);
    uint64_t parts = 0;

    if (op->spec.is_answer) {
        op->ready_ps = at_ps;
        return;
    }
    if (op->spec.kind == EMU_NIC_MESSAGE)
        before += emu_nic_message_work(nm, op->spec.bytes);
    if (op->type == TYPE_PUT || op->type == TYPE_EAGER) {
        stores = time_of(op->spec.bytes, host->store_kbs);
        op->step_ps = time_of(nm->format.payload_bytes_max, host->store_kbs);
    }
    if (op->type == TYPE_EAGER)
        parts = plan_parts(nm, op);
    proc->core_ps = start + before + gap + stores + parts;
    op->ready_ps = start + before + host->issue_ps;
}

void emu_nic_complete(struct emu_nic_model *nm, struct node *n, struct op *op, uint64_t at_ps)
{
    const struct pending done = {
        .kind = PENDING_COMPLETED,
        .event = { .at = { n->nid, op->proc },
                   .peer = op->spec.to,
                   .kind = op->spec.kind,
                   .bytes = op->spec.bytes,
                   .user = op->spec.user },
    };

    if (op->is_told_done)
        return;
    op->is_told_done = true;
    emu_nic_await(nm, n, at_ps, &done);
}

/* Within a node: live, a put that would have several packets. */
static bool is_begun_first(const struct emu_nic_model *nm, const struct emu_nic_op *spec)
{
    return nm->is_live && spec->is_begun && spec->is_told && spec->bytes > nm->format.payload_bytes_max &&
           (spec->kind == EMU_NIC_PUT || spec->kind == EMU_NIC_BTE_PUT);
}

/* Between processes of one node: a copy by one of two engines, or by the only one. */
static int post_local(struct emu_nic_model *nm, struct node *n, uint32_t from, const struct emu_nic_op *spec,
                      uint64_t at_ps)
{
    const struct emu_node_params *host = &nm->host;
    struct proc *proc = &n->procs[from];
    bool is_message = spec->kind == EMU_NIC_MESSAGE;
    uint32_t way = host->local_is_shared ? 0 : from > spec->to.proc;
    uint64_t cost = time_of(spec->bytes, host->local_kbs);
    uint64_t start =
        later(at_ps, spec->is_answer ? 0 : proc->core_ps) + api_time(nm, spec->api) + (is_message ? host->send_ps : 0);
    struct pending p = {
        .kind = PENDING_COMPLETED,
        .event = { .at = { n->nid, from },
                   .peer = spec->to,
                   .kind = spec->kind,
                   .bytes = spec->bytes,
                   .user = spec->user },
    };
    uint64_t end;

    if (!spec->is_answer)
        proc->core_ps = start + (is_message ? 0 : gap_of(host, spec));
    /* What is under way cannot be told: this one pays for both. */
    if (!host->local_is_shared && n->copy_ps[!way] > start)
        cost += smaller(cost, n->copy_ps[!way] - start) * duplex_share_of(host, spec->bytes) / 100000;
    end = serve(&n->copy_ps[way], start, cost);
    emu_nic_await(nm, n, end + (is_message ? 0 : host->local_ps), &p);
    if (is_begun_first(nm, spec)) {
        p.kind = PENDING_BEGUN;
        p.event.at = spec->to;
        p.event.peer = (struct emu_nic_proc){ n->nid, from };
        emu_nic_await(nm, n, end - cost + host->local_ps, &p);
    }
    if (is_message || spec->is_told) {
        p.kind = is_message ? PENDING_RECEIVED : PENDING_ARRIVED;
        p.event.at = spec->to;
        p.event.peer = (struct emu_nic_proc){ n->nid, from };
        if (!nm->is_live)
            p.event.user = 0;
        emu_nic_await(nm, n, end + host->local_ps, &p);
    }
    return n->is_out_of_memory ? -ENOMEM : 0;
}

int emu_nic_post(struct emu_nic_model *nm, struct emu_nic_proc from, const struct emu_nic_op *spec, uint64_t at_ps)
{
    uint32_t n_nodes = emu_machine_n_nodes(nm->machine);
    bool is_word = spec->kind == EMU_NIC_AMO || spec->kind == EMU_NIC_AMO_FETCH || spec->kind == EMU_NIC_LAUNCH;
    struct node *n;
    struct op *op;
    int r;

    if ((unsigned)spec->kind >= EMU_NIC_KINDS || from.nid >= n_nodes || spec->to.nid >= n_nodes ||
        from.proc >= EMU_NIC_PROCS_MAX || spec->to.proc >= EMU_NIC_PROCS_MAX ||
        (spec->has_mode && (unsigned)spec->mode >= EMU_MODES) ||
        (is_word && spec->bytes > nm->format.payload_bytes_max))
        return -EINVAL;
    n = emu_nic_node_of(nm, from.nid);
    if (!n)
        return -ENOMEM;
    nm->tells_begun = nm->tells_begun || (nm->is_live && spec->is_begun);
    if (spec->to.nid == from.nid)
        return post_local(nm, n, from.proc, spec, at_ps);
    r = emu_nic_take_op(n, &op);
    if (r < 0)
        return r;
    op->spec = *spec;
    op->type = type_of(nm, spec);
    op->proc = (uint8_t)from.proc;
    op->is_kept = nm->is_live && spec->is_told && spec->kind != EMU_NIC_MESSAGE;
    n->counters.eager_messages += op->type == TYPE_EAGER;
    n->counters.rendezvous_messages += op->type == TYPE_READY_TO_SEND;
    issue(nm, n, op, at_ps);
    submit(nm, n, op);
    return n->is_out_of_memory ? -ENOMEM : 0;
}

struct op *emu_nic_send_own(struct emu_nic_model *nm, struct node *n, const struct own_op *own)
{
    struct op *op;

    if (emu_nic_take_op(n, &op) < 0) {
        n->is_out_of_memory = true;
        return NULL;
    }
    op->spec = (struct emu_nic_op){ .kind = EMU_NIC_MESSAGE, .to = own->to, .bytes = own->bytes };
    op->type = own->type;
    op->proc = (uint8_t)own->proc;
    op->is_told_done = true;
    op->ready_ps = own->ready_ps;
    submit(nm, n, op);
    return op;
}

/* ---- what happens to cores ---- */

static void tell_completed(struct emu_nic_model *nm, struct node *n, struct emu_nic_event *e, uint64_t now_ps)
{
    const struct emu_node_params *host = &nm->host;

    e->at_ps = event_time(n, e->at.proc, now_ps);
    if (e->kind == EMU_NIC_MESSAGE && e->bytes >= host->send_end_bytes_min && e->bytes <= host->send_end_bytes_max)
        (void)serve(&n->procs[e->at.proc].core_ps, e->at_ps, host->send_end_ps);
    nm->program.completed(nm->program.ctx, nm, e);
}

static void tell_arrived(struct emu_nic_model *nm, struct node *n, struct emu_nic_event *e, uint64_t now_ps)
{
    e->at_ps = event_time(n, e->at.proc, now_ps);
    nm->program.arrived(nm->program.ctx, nm, e);
}

/* Live, the program hears of it behind the run: its operation may be one of another thread's node. */
static void happen(struct emu_nic_model *nm, struct node *n, struct pending *what, uint64_t now_ps)
{
    if (nm->is_live) {
        what->event.at_ps = event_time(n, what->event.at.proc, now_ps);
        emu_nic_note_due(nm, n, what);
    } else if (what->kind == PENDING_COMPLETED) {
        tell_completed(nm, n, &what->event, now_ps);
    } else {
        tell_arrived(nm, n, &what->event, now_ps);
    }
}

static void timer_due(void *ctx, struct emu_sim *sim, uint32_t nid, uint64_t cookie, uint64_t now_ps)
{
    struct emu_nic_model *nm = ctx;
    struct node *n = nm->nodes[nid];
    struct pending what;
    uint32_t index;

    if (cookie < EMU_TRAFFIC_CLASSES) {
        n->wake_ps[cookie] = NEVER;
        emu_sim_wake(sim, nid, (enum emu_traffic_class)cookie);
        return;
    }
    n->now_ps = now_ps;
    index = (uint32_t)(cookie - EMU_TRAFFIC_CLASSES);
    what = n->pending[index];
    n->pending[index].kind = PENDING_FREE;
    n->pending[index].next_free = n->free_pending;
    n->free_pending = index;
    switch (what.kind) {
    case PENDING_COMPLETED:
    case PENDING_BEGUN:
    case PENDING_ARRIVED:
        happen(nm, n, &what, now_ps);
        return;
    case PENDING_DATA:
        emu_nic_data_ended(nm, n, &what, now_ps);
        return;
    case PENDING_PART:
    case PENDING_RECEIVED:
    case PENDING_ASKED:
    case PENDING_INVITED:
    case PENDING_ENDED:
        emu_nic_message_step(nm, n, &what, now_ps);
        return;
    case PENDING_FREE:
        break;
    }
    assert(!"a timer has a purpose");
}

/* ---- the model ---- */

/* Can the machine's packets carry this? */
static bool is_possible(const struct emu_nic_model *nm)
{
    uint32_t data = (uint32_t)emu_data_flits(&nm->format, nm->format.payload_bytes_max);
    uint32_t max = emu_machine_router(nm->machine)->packet_units_max;

    return nm->format.request_header_flits + data <= max && nm->format.response_header_flits + data <= max &&
           (!nm->host.has_acks || nm->format.response_header_flits > 0) && nm->host.tile_nics > 0 &&
           nm->nic.outstanding_packets > 0;
}

static int prepare(struct emu_nic_model *nm, const struct emu_nic_setup *setup)
{
    uint32_t n_nodes = emu_machine_n_nodes(setup->machine);

    nm->machine = setup->machine;
    nm->host = setup->host;
    nm->nic = *emu_machine_nic(setup->machine);
    nm->format = nm->nic.format;
    nm->mode = setup->mode;
    nm->interface_per_core = setup->interface_per_core;
    nm->is_live = setup->is_live;
    nm->clock_ps = emu_machine_router(setup->machine)->clock_ps;
    nm->packet_gap_ps =
        emu_node_packet_gap_ps(&nm->host, (uint64_t)nm->nic.access_cycles * 1000000 / nm->nic.clock_mhz);
    nm->amo_ps = (uint64_t)nm->nic.amo_cycles * 1000000 / nm->nic.clock_mhz;
    if (!is_possible(nm) || (unsigned)nm->mode >= EMU_MODES)
        return -EINVAL;
    nm->nodes = calloc((size_t)n_nodes + 1, sizeof(*nm->nodes));
    if (!nm->nodes)
        return -ENOMEM;
    if (nm->host.tile_kbs > 0) {
        nm->tiles = calloc((size_t)n_nodes / nm->host.tile_nics + 1, sizeof(*nm->tiles));
        if (!nm->tiles)
            return -ENOMEM;
    }
    return 0;
}

/*
 * Live: so long before an event that is told its packet is known to the node. Without answers an operation is complete
 * when it is sent, which may be now.
 */
static uint64_t told_ahead_ps(const struct emu_node_params *host)
{
    uint64_t ahead_ps = host->has_acks ? host->in_ps : 0;

    return host->is_generic && host->end_interrupt_ps > 0 ? smaller(ahead_ps, host->end_interrupt_ps) : ahead_ps;
}

int emu_nic_model_create(const struct emu_nic_setup *setup, const struct emu_nic_program *program,
                         struct emu_nic_model **nm_out)
{
    struct emu_sim_options options = { .seed = setup->seed, .n_threads = setup->n_threads };
    struct emu_nic_model *nm = calloc(1, sizeof(*nm));
    const struct emu_traffic traffic = {
        .ctx = nm,
        .next = emu_nic_next_packet,
        .delivered = emu_nic_packet_delivered,
        .lost = emu_nic_packet_lost,
        .timer = timer_due,
    };
    int r;

    if (!nm)
        return -ENOMEM;
    nm->program = *program;
    r = prepare(nm, setup);
    if (nm->is_live) {
        options.end_ahead_ps = later(told_ahead_ps(&nm->host), 1);
        options.shared_events = setup->shared_events;
    }
    if (r == 0)
        r = emu_sim_create(setup->machine, setup->faults, &traffic, &options, &nm->sim);
    if (r < 0) {
        emu_nic_model_destroy(nm);
        return r;
    }
    *nm_out = nm;
    return 0;
}

void emu_nic_model_destroy(struct emu_nic_model *nm)
{
    if (!nm)
        return;
    if (nm->sim)
        emu_sim_destroy(nm->sim);
    for (uint32_t nid = 0; nm->nodes && nid < emu_machine_n_nodes(nm->machine); nid++)
        emu_nic_node_destroy(nm->nodes[nid]);
    free(nm->nodes);
    free(nm->tiles);
    free(nm->told);
    free(nm);
}

/* ---- live ---- */

/* By node: of one node in their order. */
static void take_due(struct emu_nic_model *nm)
{
    struct node *n = atomic_exchange_explicit(&nm->due_nodes, NULL, memory_order_relaxed);

    for (; n; n = n->next_due) {
        if (nm->n_told + n->n_due > nm->told_room) {
            uint32_t room = (nm->n_told + n->n_due) * 2;
            struct pending *bigger = realloc(nm->told, room * sizeof(*bigger));

            if (!bigger)
                abort(); /* as in the simulator: an operation that never ends is worse */
            nm->told = bigger;
            nm->told_room = room;
        }
        memcpy(&nm->told[nm->n_told], n->due, n->n_due * sizeof(*n->due));
        nm->n_told += n->n_due;
        n->n_due = 0;
    }
}

static bool is_before(const struct emu_nic_event *a, const struct emu_nic_event *b)
{
    return a->at_ps != b->at_ps ? a->at_ps < b->at_ps : a->at.nid < b->at.nid;
}

/* A handful, so by insertion; it keeps the order of a node. */
static void sort_told(struct pending *told, uint32_t n)
{
    for (uint32_t i = 1; i < n; i++) {
        struct pending what = told[i];
        uint32_t at = i;

        for (; at > 0 && is_before(&what.event, &told[at - 1].event); at--)
            told[at] = told[at - 1];
        told[at] = what;
    }
}

/* Names the operation of another node; once it has arrived, that need not keep it any longer. False: nobody asked. */
static bool name_operation(struct emu_nic_model *nm, struct pending *what)
{
    struct node *initiator = nm->nodes[what->event.peer.nid];
    struct op *op = initiator ? find_op(initiator, what->seq) : NULL;

    if (!op || (what->kind == PENDING_BEGUN && !op->spec.is_begun))
        return false;
    what->event.user = op->spec.user;
    if (what->kind == PENDING_ARRIVED) {
        op->is_kept = false;
        if (op->is_over)
            free_op(initiator, op);
    }
    return true;
}

static void tell(struct emu_nic_model *nm, struct pending *what)
{
    bool is_own = what->kind == PENDING_COMPLETED || what->event.at.nid == what->event.peer.nid;

    if (!is_own && !name_operation(nm, what))
        return;
    if (what->kind == PENDING_COMPLETED)
        nm->program.completed(nm->program.ctx, nm, &what->event);
    else if (what->kind == PENDING_BEGUN)
        nm->program.begun(nm->program.ctx, nm, &what->event);
    else
        nm->program.arrived(nm->program.ctx, nm, &what->event);
}

enum emu_sim_stop emu_nic_run(struct emu_nic_model *nm, uint64_t until_ps)
{
    enum emu_sim_stop stop;
    uint32_t n;

    nm->is_stopped = false;
    do {
        stop = emu_sim_run(nm->sim, until_ps);
        take_due(nm);
        sort_told(nm->told, nm->n_told);
        n = nm->n_told;
        nm->n_told = 0; /* what the program posts now happens later */
        for (uint32_t i = 0; i < n; i++)
            tell(nm, &nm->told[i]);
    } while (n > 0 && !nm->is_stopped && stop == EMU_SIM_REACHED && emu_sim_now(nm->sim) < until_ps);
    return stop;
}

void emu_nic_stop(struct emu_nic_model *nm)
{
    nm->is_stopped = true;
}

/* What each packet passes on its way; the network itself, and what depends on the kind of the operation, left out. */
struct emu_nic_lookahead emu_nic_lookahead(const struct emu_nic_model *nm)
{
    const struct emu_node_params *host = &nm->host;
    uint64_t entered_ps = (uint64_t)host->issue_ps + host->out_ps;

    return (struct emu_nic_lookahead){
        .local_ps = host->local_ps,
        .remote_ps = entered_ps + host->in_ps,
        /* Without answers it is complete when it is sent. */
        .own_ps = host->has_acks ? entered_ps + host->in_ps : entered_ps,
    };
}

struct emu_sim *emu_nic_model_sim(struct emu_nic_model *nm)
{
    return nm->sim;
}

void emu_nic_counters(const struct emu_nic_model *nm, uint32_t nid, struct emu_nic_counters *counters_out)
{
    *counters_out = !nm->nodes[nid] ? (struct emu_nic_counters){ 0 } : nm->nodes[nid]->counters;
}
