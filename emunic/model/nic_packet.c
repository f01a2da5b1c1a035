/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * NICs in virtual time: packets out of a node and into it.
 *
 * Packets carry everything that the other side needs in their tag, because the two nodes may belong to different
 * threads. Next packets are chosen in turn among processes and block transfers. A node is asked for packets when it has
 * some that are at its door; a timer wakes it then. The stages that a packet passes are drawn in nic_model.c.
 */
#include "emunic/model/nic_inner.h"

#include <errno.h>
#include <stdlib.h>

#include "emunic/fabric/random.h"

/* Payload of packet `index` of a transfer. */
static uint32_t payload_at(const struct emu_nic_model *nm, uint32_t bytes, uint32_t index, uint32_t n_packets)
{
    uint32_t max = nm->format.payload_bytes_max;
    bool has_header = nm->host.is_generic && bytes > nm->host.inline_bytes;

    if (has_header && n_packets > 1 && index-- == 0)
        return 0;
    n_packets -= has_header && n_packets > 1;
    return index + 1 == n_packets ? bytes - index * max : max;
}

/* ---- packets out ---- */

static uint16_t request_units(const struct emu_nic_model *nm, uint32_t payload)
{
    return (uint16_t)(nm->format.request_header_flits + emu_data_flits(&nm->format, payload));
}

static bool is_sendable(const struct node *n, const struct op *op, uint64_t end_ps)
{
    return next_ready(op) < end_ps && (!op->is_counted || n->n_free > 0);
}

/* Takes the place in the window that has been free longest; returns since when. */
static uint64_t open_window(const struct emu_nic_model *nm, struct node *n)
{
    uint64_t at_ps = n->window[n->first_free];

    n->first_free = (n->first_free + 1) % nm->nic.outstanding_packets;
    n->n_free--;
    return at_ps;
}

static void close_window(const struct emu_nic_model *nm, struct node *n, uint64_t at_ps)
{
    n->window[((uint64_t)n->first_free + n->n_free++) % nm->nic.outstanding_packets] = at_ps;
}

/* The source whose turn it is: processes first, then channels. NULL: none may send now. */
static struct op *choose_source(const struct emu_nic_model *nm, struct node *n, uint64_t end_ps)
{
    uint32_t n_sources = n->n_procs + nm->nic.bte_channels;

    for (uint32_t i = 1; i <= n_sources; i++) {
        uint32_t source = (n->turn + i) % n_sources;
        struct op *op = source < n->n_procs ? n->procs[source].queue.first : n->bte[source - n->n_procs];

        if (op && op->is_queued && is_sendable(n, op, end_ps)) {
            n->turn = source;
            return op;
        }
    }
    return NULL;
}

static uint32_t interface_of(const struct emu_nic_model *nm, uint32_t proc)
{
    return nm->interface_per_core ? proc : 0;
}

/* Stages of a packet out of the node; returns when it may enter the network. */
static uint64_t send_stages(struct emu_nic_model *nm, struct node *n, const struct op *op, uint64_t at_ps,
                            uint32_t payload, uint32_t units)
{
    struct tiles *tiles = tiles_of(nm, n->nid);
    uint32_t i = interface_of(nm, op->proc);
    uint64_t t = cross_interface(nm, &n->out_ps[i], &n->in_ps[i], at_ps, payload, op->spec.bytes);

    if (payload > 0)
        t = serve(&n->packet_out_ps, t, nm->packet_gap_ps);
    if (tiles)
        t = pass_tiles(nm, &tiles->out_ps, t, units);
    return t + nm->host.out_ps;
}

/* The last packet began its stages at started_ps and may enter the network at entered_ps. A channel has moved it when
 * its time has passed. */
static void finish_sending(struct emu_nic_model *nm, struct node *n, struct op *op, uint32_t payload,
                           uint64_t started_ps, uint64_t entered_ps)
{
    bool is_over = op->n_answers == 0 && op->type != TYPE_READY_TO_SEND; /* that one waits for its answer */

    op->is_queued = false;
    if (!op->is_channel)
        (void)dequeue(&n->procs[op->proc].queue); /* it was the first */
    else if (!is_get(op->type))
        emu_nic_leave_channel(nm, n, op, started_ps + time_of(payload, nm->host.bte_kbs));
    if (is_over || op->type == TYPE_EAGER)
        emu_nic_complete(nm, n, op, entered_ps);
    if (is_over)
        free_op(n, op);
}

static uint64_t launch_time(const struct emu_nic_model *nm, const struct op *op)
{
    return !is_launched(op) ?
               0 :
               (uint64_t)nm->host.launch_node_gap_ps * (op->spec.changes_mdh ? nm->host.launch_mdh_percent : 100) / 100;
}

/*
 * The network asks for the next packet when the one before is in, but the NIC has worked on it since: as long ago as
 * the stages take. What waited longer was held up by the network, and the NIC holds no more than its pipeline.
 */
static uint64_t start_of_stages(const struct emu_nic_model *nm, uint64_t ready_ps, uint64_t stages_ps, uint64_t now_ps)
{
    stages_ps += nm->host.out_ps;
    return later(ready_ps, now_ps > stages_ps ? now_ps - stages_ps : 0);
}

static bool next_request(struct emu_nic_model *nm, struct node *n, uint64_t now_ps, struct emu_packet *p)
{
    uint64_t end_ps = now_ps + nm->clock_ps;
    struct op *op = choose_source(nm, n, end_ps);
    uint32_t payload;
    uint64_t stages, started;
    struct tag tag;
    uint64_t t;

    if (!op) {
        uint64_t ready = emu_nic_first_ready(nm, n);

        if (ready != NEVER && ready >= end_ps) /* else the window is closed: an answer will wake us */
            emu_nic_wake_at(nm, n, EMU_TRAFFIC_REQUEST, ready);
        return false;
    }
    payload = has_data_in_requests(op->type) ? payload_at(nm, op->spec.bytes, op->n_sent, op->n_packets) : 0;
    p->units = request_units(nm, payload);
    stages = launch_time(nm, op) + interface_time(nm, payload) + (payload > 0 ? nm->packet_gap_ps : 0) +
             tile_time(nm, p->units);
    t = start_of_stages(nm, next_ready(op), stages, now_ps);
    if (op->is_counted)
        t = later(t, open_window(nm, n));
    started = t;
    if (is_launched(op))
        t = serve(&n->launch_ps, t, launch_time(nm, op));
    tag = (struct tag){
        .bytes = op->spec.bytes,
        .seq = op->tag_seq,
        .src_proc = op->proc,
        .dst_proc = (uint8_t)op->spec.to.proc,
        .type = op->type,
        .is_told = op->spec.is_told,
        .is_last = op->n_sent + 1 == op->n_packets,
    };
    p->dst_nid = op->spec.to.nid;
    p->mode = (uint8_t)(op->spec.has_mode ? op->spec.mode : nm->mode);
    p->order_key = op->order_key + op->n_sent;
    p->tag = pack(&tag);
    p->created_ps = send_stages(nm, n, op, t, payload, p->units);
    n->counters.request_packets++;
    n->counters.request_units += p->units;
    n->counters.payload_sent += payload;
    if (++op->n_sent == op->n_packets)
        finish_sending(nm, n, op, payload, started, p->created_ps);
    return true;
}

static void answer(struct emu_nic_model *nm, struct node *n, const struct answer *a)
{
    if (n->n_answers == n->answers_room) {
        uint32_t room = n->answers_room == 0 ? 64 : n->answers_room * 2;
        struct answer *bigger = malloc(room * sizeof(*bigger));

        if (!bigger) {
            n->is_out_of_memory = true;
            return;
        }
        for (uint32_t i = 0; i < n->n_answers; i++)
            bigger[i] = n->answers[(n->first_answer + i) % n->answers_room];
        free(n->answers);
        n->answers = bigger;
        n->answers_room = room;
        n->first_answer = 0;
    }
    n->answers[(n->first_answer + n->n_answers++) % n->answers_room] = *a;
    emu_nic_wake_at(nm, n, EMU_TRAFFIC_RESPONSE, n->answers[n->first_answer].ready_ps);
}

static bool next_answer(struct emu_nic_model *nm, struct node *n, uint64_t now_ps, struct emu_packet *p)
{
    struct tiles *tiles = tiles_of(nm, n->nid);
    const struct answer *a;
    uint64_t t;

    if (n->n_answers == 0)
        return false;
    a = &n->answers[n->first_answer];
    if (a->ready_ps >= now_ps + nm->clock_ps) {
        emu_nic_wake_at(nm, n, EMU_TRAFFIC_RESPONSE, a->ready_ps);
        return false;
    }
    t = start_of_stages(nm, a->ready_ps, tile_time(nm, a->units), now_ps);
    if (tiles)
        t = pass_tiles(nm, &tiles->out_ps, t, a->units);
    p->dst_nid = a->dst_nid;
    p->units = a->units;
    p->mode = (uint8_t)nm->mode;
    p->order_key = emu_random_mix(a->tag);
    p->tag = a->tag;
    p->created_ps = t + nm->host.out_ps;
    n->counters.response_packets++;
    n->counters.response_units += a->units;
    n->counters.payload_sent += a->payload;
    n->first_answer = (n->first_answer + 1) % n->answers_room;
    n->n_answers--;
    return true;
}

bool emu_nic_next_packet(void *ctx, struct emu_sim *sim, uint32_t nid, enum emu_traffic_class traffic_class,
                         uint64_t now_ps, struct emu_packet *packet_out)
{
    struct emu_nic_model *nm = ctx;
    struct node *n = nm->nodes[nid];

    (void)sim;
    atomic_store_explicit(&nm->is_started, true, memory_order_relaxed);
    if (!n)
        return false;
    n->now_ps = now_ps;
    return traffic_class == EMU_TRAFFIC_REQUEST ? next_request(nm, n, now_ps, packet_out) :
                                                  next_answer(nm, n, now_ps, packet_out);
}

/* ---- packets in ---- */

static uint32_t assembly_slot(const struct node *n, uint64_t key)
{
    uint32_t at = (uint32_t)emu_random_mix(key) & (n->assemblies_size - 1);

    while (n->assemblies[at].key != 0 && n->assemblies[at].key != key)
        at = (at + 1) & (n->assemblies_size - 1);
    return at;
}

static int grow_assemblies(struct node *n)
{
    struct assembly *old = n->assemblies;
    uint32_t old_size = n->assemblies_size;

    n->assemblies = calloc(old_size == 0 ? 16 : (size_t)old_size * 2, sizeof(*n->assemblies));
    if (!n->assemblies) {
        n->assemblies = old;
        return -ENOMEM;
    }
    n->assemblies_size = old_size == 0 ? 16 : old_size * 2;
    for (uint32_t i = 0; i < old_size; i++) {
        if (old[i].key != 0)
            n->assemblies[assembly_slot(n, old[i].key)] = old[i];
    }
    free(old);
    return 0;
}

/* The one that the packet belongs to, made with its first. NULL: out of memory. */
static struct assembly *find_assembly(struct node *n, const struct emu_packet *p, const struct tag *tag,
                                      uint32_t n_packets)
{
    uint64_t key = ((uint64_t)(tag->type == TYPE_REPLY_STREAM) << 48 | (uint64_t)p->src_nid << 16 | tag->seq) + 1;
    struct assembly *a;

    if (n->n_assemblies * 2 >= n->assemblies_size && grow_assemblies(n) < 0) {
        n->is_out_of_memory = true;
        return NULL;
    }
    a = &n->assemblies[assembly_slot(n, key)];
    if (a->key == 0) {
        *a = (struct assembly){ .key = key, .n_left = n_packets };
        n->n_assemblies++;
    }
    return a;
}

static void free_assembly(struct node *n, struct assembly *a)
{
    uint32_t at = (uint32_t)(a - n->assemblies);

    a->key = 0;
    n->n_assemblies--;
    for (;;) { /* those behind it that probed past this place move up */
        struct assembly moved;

        at = (at + 1) & (n->assemblies_size - 1);
        if (n->assemblies[at].key == 0)
            return;
        moved = n->assemblies[at];
        n->assemblies[at].key = 0;
        n->assemblies[assembly_slot(n, moved.key)] = moved;
    }
}

/* Stages of a payload into host memory; returns when the interface has it. */
static uint64_t receive_stages(struct emu_nic_model *nm, struct node *n, uint32_t proc, uint64_t at_ps,
                               uint32_t payload, uint32_t bytes)
{
    uint32_t i = interface_of(nm, proc);

    if (payload == 0)
        return at_ps;
    n->counters.payload_received += payload;
    at_ps = serve(&n->packet_in_ps, at_ps, nm->packet_gap_ps);
    return cross_interface(nm, &n->in_ps[i], &n->out_ps[i], at_ps, payload, bytes);
}

/* The interrupt for a header: the core matches it. */
static uint64_t interrupt(struct node *n, uint32_t proc, uint64_t at_ps, uint64_t duration_ps)
{
    n->counters.interrupts++;
    return serve(&n->procs[proc].core_ps, at_ps, duration_ps);
}

static void send_ack(struct emu_nic_model *nm, struct node *n, const struct emu_packet *p, struct tag tag,
                     uint64_t at_ps)
{
    struct answer a = { .ready_ps = at_ps + nm->host.respond_ps, .dst_nid = p->src_nid };

    if (!nm->host.has_acks || tag.type == TYPE_REPLY_STREAM)
        return;
    tag.type = TYPE_ACK;
    a.tag = pack(&tag);
    a.units = (uint16_t)nm->format.response_header_flits;
    answer(nm, n, &a);
}

/* Data that were asked for leave the node. */
static void send_reply(struct emu_nic_model *nm, struct node *n, const struct emu_packet *p, struct tag tag,
                       uint32_t payload, uint64_t at_ps)
{
    struct answer a = { .dst_nid = p->src_nid, .payload = payload };
    uint32_t i = interface_of(nm, tag.dst_proc);

    tag.type = TYPE_REPLY;
    a.tag = pack(&tag);
    a.units = (uint16_t)(nm->format.response_header_flits + emu_data_flits(&nm->format, payload));
    if (a.units == 0)
        a.units = 1;
    a.ready_ps = cross_interface(nm, &n->out_ps[i], &n->in_ps[i], at_ps, payload, tag.bytes);
    if (payload > 0)
        a.ready_ps = serve(&n->packet_out_ps, a.ready_ps, nm->packet_gap_ps);
    a.ready_ps += nm->host.read_ps;
    answer(nm, n, &a);
}

/* The last answer of an operation is in. */
static void answers_complete(struct emu_nic_model *nm, struct node *n, struct op *op, uint64_t at_ps)
{
    if (op->is_channel)
        emu_nic_leave_channel(nm, n, op, at_ps);
    if (op->type == TYPE_BULK_GET) {
        const struct pending what = {
            .kind = PENDING_RECEIVED,
            .event = { .at = { n->nid, op->proc },
                       .peer = op->spec.to,
                       .kind = EMU_NIC_MESSAGE,
                       .bytes = op->spec.bytes },
            .seq = (uint16_t)op->spec.user,
            .is_fetched = true,
        };

        emu_nic_await(nm, n, at_ps, &what);
    }
    emu_nic_complete(nm, n, op, at_ps);
    free_op(n, op);
}

/* Live: a request for data is at the target; the last one tells it. */
static void tell_asked(struct emu_nic_model *nm, struct node *n, const struct emu_packet *p, const struct tag *tag,
                       uint64_t at_ps)
{
    bool is_alone = nm->host.is_generic || !is_get(tag->type);
    uint32_t n_packets = is_alone ? 1 : packets_of(nm, tag->bytes);
    const struct pending what = {
        .kind = PENDING_ARRIVED,
        .event = { .at = { n->nid, tag->dst_proc },
                   .peer = { p->src_nid, tag->src_proc },
                   .bytes = tag->bytes,
                   .kind = (enum emu_nic_kind)tag->type },
        .seq = tag->seq,
    };
    struct assembly *a;

    if (!nm->is_live || !tag->is_told)
        return;
    if (n_packets > 1) {
        a = find_assembly(n, p, tag, n_packets);
        if (!a || --a->n_left > 0)
            return;
        free_assembly(n, a);
    }
    emu_nic_await(nm, n, at_ps, &what);
}

/* All packets of a transfer are visible, and the host knows. */
static void transfer_arrived(struct emu_nic_model *nm, struct node *n, struct emu_nic_proc from, const struct tag *tag,
                             uint64_t at_ps)
{
    bool is_message = tag->type == TYPE_EAGER || tag->type == TYPE_BULK_PUT;
    const struct pending what = {
        .kind = is_message ? PENDING_RECEIVED : PENDING_ARRIVED,
        .event = { .at = { n->nid, tag->dst_proc },
                   .peer = from,
                   .bytes = tag->bytes,
                   .kind = is_message ? EMU_NIC_MESSAGE : (enum emu_nic_kind)tag->type },
        .seq = tag->seq,
    };
    struct op *op;

    if (tag->type == TYPE_REPLY_STREAM) {
        op = find_op(n, tag->seq);
        if (op)
            answers_complete(nm, n, op, at_ps + nm->host.event_ps);
        emu_sim_wake(nm->sim, n->nid, EMU_TRAFFIC_REQUEST);
    } else if (is_message || tag->is_told) {
        emu_nic_await(nm, n, at_ps, &what);
    }
}

/* A generic host is interrupted behind the last data; not before, or other work could not go first. */
static void transfer_visible(struct emu_nic_model *nm, struct node *n, const struct emu_packet *p,
                             const struct tag *tag, uint64_t at_ps)
{
    const struct emu_nic_proc from = { p->src_nid, tag->src_proc };
    const struct pending what = { .kind = PENDING_DATA, .event = { .peer = from }, .tag = p->tag };

    if (nm->host.is_generic && tag->bytes > nm->host.inline_bytes && nm->host.end_interrupt_ps > 0)
        emu_nic_await(nm, n, at_ps, &what);
    else
        transfer_arrived(nm, n, from, tag, at_ps);
}

void emu_nic_data_ended(struct emu_nic_model *nm, struct node *n, const struct pending *what, uint64_t now_ps)
{
    struct tag tag = unpack(what->tag);

    transfer_arrived(nm, n, what->event.peer, &tag, interrupt(n, tag.dst_proc, now_ps, nm->host.end_interrupt_ps));
}

/*
 * Live: the first packet of a put, which the NIC may match. Its data are there later, and data of others, even of a
 * later put without any, before. So requests of one process to another one begin in their order, and end in any.
 */
static void tell_first(struct emu_nic_model *nm, struct node *n, const struct emu_packet *p, const struct tag *tag,
                       uint64_t at_ps)
{
    const struct pending what = {
        .kind = PENDING_BEGUN,
        .event = { .at = { n->nid, tag->dst_proc },
                   .peer = { p->src_nid, tag->src_proc },
                   .bytes = tag->bytes,
                   .kind = (enum emu_nic_kind)tag->type },
        .seq = tag->seq,
    };

    if (tag->type == TYPE_PUT || tag->type == TYPE_BTE_PUT)
        emu_nic_await(nm, n, at_ps, &what);
}

/* An eager message fills one buffer after another, in whatever order its packets come; the core empties each. */
static void fill_buffer(struct emu_nic_model *nm, struct node *n, const struct emu_packet *p, const struct tag *tag,
                        const struct assembly *a)
{
    uint32_t part = emu_nic_part_packets(nm, tag->bytes);
    const struct pending what = {
        .kind = PENDING_PART,
        .event = { .at = { n->nid, tag->dst_proc },
                   .peer = { p->src_nid, tag->src_proc },
                   .bytes = part * nm->format.payload_bytes_max },
    };

    if (part > 0 && (packets_of(nm, tag->bytes) - a->n_left) % part == 0)
        emu_nic_await(nm, n, a->last_ps, &what);
}

/* A packet with data of a put, a message or a stream of answers. */
static void take_data(struct emu_nic_model *nm, struct node *n, const struct emu_packet *p, const struct tag *tag,
                      uint64_t at_ps)
{
    bool is_whole = is_assembled(nm, tag->type, tag->is_told);
    uint32_t n_packets = is_whole ? packets_with_header(nm, tag->bytes) : packets_of(nm, tag->bytes);
    bool is_header = !tag->is_last && p->units == nm->format.request_header_flits;
    uint32_t payload = is_header ? 0 : payload_at(nm, tag->bytes, n_packets - 1 - !tag->is_last, n_packets);
    struct assembly *a = NULL;
    uint64_t t;

    if (is_whole) {
        a = find_assembly(n, p, tag, n_packets);
        if (!a)
            return;
        if (nm->host.is_generic && a->match_ps == 0 && tag->type != TYPE_REPLY_STREAM)
            a->match_ps = interrupt(n, tag->dst_proc, at_ps, nm->host.interrupt_ps);
        at_ps = later(at_ps, a->match_ps);
    }
    t = receive_stages(nm, n, tag->dst_proc, at_ps, payload, tag->bytes);
    if (tag->type == TYPE_AMO)
        t = serve(&n->amo_ps, t, nm->amo_ps);
    send_ack(nm, n, p, *tag, t);
    if (!a)
        return;
    if (nm->tells_begun && tag->is_told && a->n_left == n_packets)
        tell_first(nm, n, p, tag, at_ps);
    a->last_ps = later(a->last_ps, t + nm->host.write_ps);
    if (--a->n_left > 0) {
        if (tag->type == TYPE_EAGER)
            fill_buffer(nm, n, p, tag, a);
        return;
    }
    t = a->last_ps;
    free_assembly(n, a);
    transfer_visible(nm, n, p, tag, t);
}

/* Payload of an answer, one per request packet. */
static uint32_t reply_payload(const struct emu_nic_model *nm, const struct tag *tag)
{
    uint32_t n = packets_of(nm, tag->bytes);

    return tag->is_last ? tag->bytes - (n - 1) * nm->format.payload_bytes_max : nm->format.payload_bytes_max;
}

static void take_get(struct emu_nic_model *nm, struct node *n, const struct emu_packet *p, const struct tag *tag,
                     uint64_t at_ps)
{
    struct op *stream;
    uint64_t t;

    if (!nm->host.is_generic) {
        tell_asked(nm, n, p, tag, at_ps);
        send_reply(nm, n, p, *tag, reply_payload(nm, tag), at_ps);
        return;
    }
    t = interrupt(n, tag->dst_proc, at_ps, nm->host.interrupt_ps) + nm->host.reply_ps;
    tell_asked(nm, n, p, tag, t);
    stream = emu_nic_send_own(nm, n,
                              &(struct own_op){ .type = TYPE_REPLY_STREAM,
                                                .proc = tag->dst_proc,
                                                .to = { p->src_nid, tag->src_proc },
                                                .bytes = tag->bytes,
                                                .ready_ps = t });
    if (stream)
        stream->tag_seq = tag->seq;
}

/* A small packet of the message layer: its core will look at it. */
static void take_control(struct emu_nic_model *nm, struct node *n, const struct emu_packet *p, const struct tag *tag,
                         enum pending_kind kind, uint64_t at_ps)
{
    const struct pending what = {
        .kind = kind,
        .event = { .at = { n->nid, tag->dst_proc },
                   .peer = { p->src_nid, tag->src_proc },
                   .kind = EMU_NIC_MESSAGE,
                   .bytes = tag->bytes },
        .seq = tag->seq,
    };

    if (nm->host.is_generic)
        at_ps = interrupt(n, tag->dst_proc, at_ps, nm->host.interrupt_ps);
    emu_nic_await(nm, n, at_ps + nm->host.write_ps, &what);
}

static void take_answer(struct emu_nic_model *nm, struct node *n, const struct tag *tag, uint64_t at_ps)
{
    struct op *op = find_op(n, tag->seq);
    uint64_t t = at_ps;

    if (!op)
        return; /* cannot be: answers name operations of this node */
    if (tag->type == TYPE_REPLY) {
        uint32_t payload = op->type == TYPE_AMO_FETCH ? tag->bytes : reply_payload(nm, tag);

        t = receive_stages(nm, n, op->proc, at_ps, payload, op->spec.bytes);
    }
    close_window(nm, n, t);
    if (tag->type == TYPE_REPLY)
        t += nm->host.write_ps;
    op->last_ps = later(op->last_ps, t + nm->host.event_ps);
    if (++op->n_answered == op->n_answers)
        answers_complete(nm, n, op, op->last_ps);
    emu_sim_wake(nm->sim, n->nid, EMU_TRAFFIC_REQUEST);
}

static void take_amo_fetch(struct emu_nic_model *nm, struct node *n, const struct emu_packet *p, const struct tag *tag,
                           uint64_t at_ps)
{
    uint64_t t = serve(&n->amo_ps, at_ps, nm->amo_ps);

    tell_asked(nm, n, p, tag, t);
    send_reply(nm, n, p, *tag, tag->bytes, t);
}

void emu_nic_packet_delivered(void *ctx, struct emu_sim *sim, uint32_t nid, const struct emu_packet *p, uint64_t now_ps)
{
    struct emu_nic_model *nm = ctx;
    struct node *n = emu_nic_node_of(nm, nid);
    struct tiles *tiles = tiles_of(nm, nid);
    struct tag tag = unpack(p->tag);
    uint64_t t = now_ps;

    (void)sim;
    if (!n)
        return;
    n->now_ps = now_ps;
    if (tiles)
        t = pass_tiles(nm, &tiles->in_ps, t, p->units);
    t += nm->host.in_ps;
    switch (tag.type) {
    case TYPE_PUT:
    case TYPE_AMO:
    case TYPE_LAUNCH:
    case TYPE_BTE_PUT:
    case TYPE_EAGER:
    case TYPE_BULK_PUT:
    case TYPE_REPLY_STREAM:
        take_data(nm, n, p, &tag, t);
        return;
    case TYPE_GET:
    case TYPE_BTE_GET:
    case TYPE_BULK_GET:
        take_get(nm, n, p, &tag, t);
        return;
    case TYPE_AMO_FETCH:
        take_amo_fetch(nm, n, p, &tag, t);
        return;
    case TYPE_READY_TO_SEND:
        take_control(nm, n, p, &tag, PENDING_ASKED, t);
        return;
    case TYPE_READY_TO_RECV:
        take_control(nm, n, p, &tag, PENDING_INVITED, t);
        return;
    case TYPE_END:
        take_control(nm, n, p, &tag, PENDING_ENDED, t);
        return;
    case TYPE_ACK:
    case TYPE_REPLY:
        take_answer(nm, n, &tag, t);
        return;
    }
}

void emu_nic_packet_lost(void *ctx, struct emu_sim *sim, uint32_t nid, const struct emu_packet *p, uint64_t now_ps)
{
    struct emu_nic_model *nm = ctx;

    (void)sim;
    (void)p;
    (void)now_ps;
    if (nm->nodes[nid])
        nm->nodes[nid]->counters.lost_packets++;
}
