/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Inside the NIC model: the state of nodes, operations on their way, what a packet's tag says, the times of servers.
 * nic_node.c keeps the state; nic_model.c is what happens to operations, nic_packet.c to their packets, nic_message.c
 * to messages.
 */
#ifndef EMUNIC_MODEL_NIC_INNER_H
#define EMUNIC_MODEL_NIC_INNER_H

#include <stdatomic.h>

#include "emunic/model/nic_model.h"

#define NEVER    UINT64_MAX
#define PS_PER_S UINT64_C(1000000000000)

/* What a packet means to its receiver. */
enum packet_type {
    TYPE_PUT = 0, /* the first eight: requests of the operation of that kind */
    TYPE_GET,
    TYPE_AMO,
    TYPE_AMO_FETCH,
    TYPE_LAUNCH,
    TYPE_BTE_PUT,
    TYPE_BTE_GET,
    TYPE_EAGER,
    TYPE_READY_TO_SEND, /* rendezvous */
    TYPE_READY_TO_RECV,
    TYPE_BULK_PUT, /* the data of a rendezvous */
    TYPE_BULK_GET,
    TYPE_END, /* the receiver has it all */
    TYPE_ACK, /* answers */
    TYPE_REPLY,
    TYPE_REPLY_STREAM, /* a generic host's answer to a get, sent as a transfer */
};

/* A packet's tag: 32 bits of size, 16 of sequence number, 5 + 5 of processes, 4 of type, told, last. */
struct tag {
    uint32_t bytes; /* of the operation */
    uint16_t seq;   /* of the initiator's operation */
    uint8_t src_proc;
    uint8_t dst_proc;
    enum packet_type type;
    bool is_told;
    bool is_last; /* has the remainder of the payload */
};

/* An operation at the node that sends its packets. */
struct op {
    struct op *next; /* in its queue, or free */
    struct emu_nic_op spec;
    enum packet_type type;
    uint16_t seq;
    uint16_t tag_seq; /* what its packets name; another one in answers */
    uint8_t proc;
    bool is_queued;     /* still has packets to send */
    bool is_told_done;  /* completed() was called, or nobody will */
    bool is_channel;    /* holds a block transfer channel */
    bool is_counted;    /* its packets are answered one by one: they count in the window */
    bool is_kept;       /* live: it is named when its arrival is told, so it stays until then */
    bool is_over;       /* nothing but that keeps it */
    uint32_t n_packets; /* to send */
    uint32_t n_sent;
    uint32_t n_answers; /* to come */
    uint32_t n_answered;
    uint64_t ready_ps; /* first packet at the NIC's door */
    uint64_t step_ps;  /* between packets there */
    uint64_t part_ps;  /* and between parts of so many packets */
    uint32_t part_packets;
    uint64_t last_ps; /* latest end of an answer's stages */
    uint64_t order_key;
};

/* By FMA launch: of another price, for the core and for the NIC. */
static inline bool is_launched(const struct op *op)
{
    return op->type == TYPE_LAUNCH || op->spec.is_launched;
}

struct queue {
    struct op *first;
    struct op *last;
};

struct proc {
    uint64_t core_ps; /* busy until */
    struct queue queue;
};

/* An answer that waits to enter the network. */
struct answer {
    uint64_t ready_ps;
    uint64_t tag;
    uint32_t dst_nid;
    uint32_t payload;
    uint16_t units;
};

/* A transfer that has not arrived completely. */
struct assembly {
    uint64_t key; /* sender, its sequence number, what it is; plus 1. 0: free */
    uint32_t n_left;
    uint64_t match_ps; /* generic: when the host had matched it */
    uint64_t last_ps;  /* latest visible packet */
};

/* What happens to a core, later. */
enum pending_kind {
    PENDING_FREE = 0,
    PENDING_COMPLETED,
    PENDING_BEGUN,
    PENDING_ARRIVED,
    PENDING_DATA,     /* a transfer is in memory; a generic host is interrupted */
    PENDING_PART,     /* a part of an eager message is in memory, the last one apart */
    PENDING_RECEIVED, /* a message is in memory */
    PENDING_ASKED,    /* a request to send is in memory */
    PENDING_INVITED,  /* its answer is */
    PENDING_ENDED,    /* the sender of a rendezvous learns that it is over */
};

struct pending {
    enum pending_kind kind;
    uint32_t next_free;
    struct emu_nic_event event;
    uint16_t seq;    /* of the peer's operation, or of one that is told */
    bool is_fetched; /* RECEIVED: the peer waits to hear of it */
    uint64_t tag;    /* DATA */
};

struct node {
    uint32_t nid;
    struct proc procs[EMU_NIC_PROCS_MAX];
    uint32_t n_procs; /* highest used + 1 */
    uint32_t turn;    /* source that was served last */
    struct queue bte_waiting;
    struct op **bte;                                              /* owned; [bte_channels]; NULL: free */
    uint64_t out_ps[EMU_NIC_PROCS_MAX], in_ps[EMU_NIC_PROCS_MAX]; /* interface: busy until; [0] if it is shared */
    uint64_t packet_out_ps, packet_in_ps;
    uint64_t launch_ps, amo_ps;
    uint64_t copy_ps[2];
    uint64_t *window; /* owned; ring of the times at which places in the window became free */
    uint32_t n_free, first_free;
    uint64_t wake_ps[EMU_TRAFFIC_CLASSES]; /* a timer is set for; NEVER */
    struct answer *answers;                /* owned; ring */
    uint32_t n_answers, answers_room, first_answer;
    struct op **ops; /* owned; by seq modulo size */
    uint32_t ops_size;
    uint16_t next_seq;
    struct op *free_ops;
    struct assembly *assemblies; /* owned; open addressing */
    uint32_t n_assemblies, assemblies_size;
    struct pending *pending; /* owned */
    uint32_t n_pending, free_pending;
    struct pending *due; /* owned; live: what the program is told behind the run */
    uint32_t n_due, due_room;
    struct node *next_due;
    uint64_t last_event_ps[EMU_NIC_PROCS_MAX];
    uint64_t now_ps; /* of the last call from the simulator */
    struct emu_nic_counters counters;
    bool is_out_of_memory;
};

/* Tiles that NICs share. */
struct tiles {
    uint64_t out_ps, in_ps;
};

struct emu_nic_model {
    const struct emu_machine *machine; /* borrowed */
    struct emu_node_params host;
    struct emu_packet_format format;
    struct emu_nic_params nic;
    struct emu_nic_program program;
    enum emu_route_mode mode;
    bool interface_per_core;
    bool is_live;
    bool tells_begun; /* live: some operation so far has wanted it */
    bool is_stopped;  /* live: the program wants no more of the run */
    uint64_t packet_gap_ps;
    uint64_t amo_ps;
    uint64_t clock_ps;
    struct node **nodes;              /* owned; by nid; NULL: never used */
    struct tiles *tiles;              /* owned; by nid / tile_nics; NULL: no limit */
    struct emu_sim *sim;              /* owned */
    _Atomic(struct node *) due_nodes; /* with something to tell, in any order */
    struct pending *told;             /* owned; what is told now */
    uint32_t n_told, told_room;
    atomic_bool is_started;
};

/* ---- tags ---- */

static inline uint64_t pack(const struct tag *t)
{
    return (uint64_t)t->bytes << 32 | (uint64_t)t->seq << 16 | (uint64_t)t->src_proc << 11 |
           (uint64_t)t->dst_proc << 6 | (uint64_t)t->type << 2 | (uint64_t)t->is_told << 1 | (uint64_t)t->is_last;
}

static inline struct tag unpack(uint64_t v)
{
    return (struct tag){
        .bytes = (uint32_t)(v >> 32),
        .seq = (uint16_t)(v >> 16),
        .src_proc = v >> 11 & 31,
        .dst_proc = v >> 6 & 31,
        .type = (enum packet_type)(v >> 2 & 15),
        .is_told = (v >> 1 & 1) != 0,
        .is_last = (v & 1) != 0,
    };
}

/* ---- times ---- */

static inline uint64_t later(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

static inline uint64_t smaller(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

/* One after another: returns when this one is done. */
static inline uint64_t serve(uint64_t *free_ps, uint64_t at_ps, uint64_t duration_ps)
{
    *free_ps = later(*free_ps, at_ps) + duration_ps;
    return *free_ps;
}

/* 0 kB/s is no limit. */
static inline uint64_t time_of(uint64_t bytes, uint32_t kbs)
{
    return kbs == 0 ? 0 : bytes * (PS_PER_S / 1000) / kbs;
}

static inline uint64_t interface_time(const struct emu_nic_model *nm, uint32_t payload)
{
    return payload == 0 ? 0 : time_of((uint64_t)payload + nm->host.overhead_bytes, nm->host.interface_kbs);
}

static inline uint64_t tile_time(const struct emu_nic_model *nm, uint32_t units)
{
    return time_of(((uint64_t)units * nm->format.flit_bits + 7) / 8, nm->host.tile_kbs);
}

/* Part of a transfer's time, in 1/100000, that one the other way pays: none if the operation is a short one. */
static inline uint32_t duplex_share_of(const struct emu_node_params *host, uint32_t bytes)
{
    return bytes < host->duplex_bytes_min ? 0 : host->duplex_share;
}

/*
 * A packet of an operation of so many bytes through the interface, one way. Its load on the other way only counts while
 * that is busy.
 */
static inline uint64_t cross_interface(const struct emu_nic_model *nm, uint64_t *way_ps, uint64_t *other_ps,
                                       uint64_t at_ps, uint32_t payload, uint32_t bytes)
{
    uint64_t cost = interface_time(nm, payload);

    *other_ps += cost * duplex_share_of(&nm->host, bytes) / 100000;
    return cost == 0 ? at_ps : serve(way_ps, at_ps, cost);
}

/*
 * A set of tiles, one way. Requests and answers of several NICs come here with times that run ahead of each other by up
 * to their pipelines, so time that nobody used may still be taken so much later.
 */
static inline uint64_t pass_tiles(const struct emu_nic_model *nm, uint64_t *free_ps, uint64_t at_ps, uint32_t units)
{
    uint64_t pipeline_ps = (uint64_t)nm->host.out_ps + nm->host.in_ps;
    uint64_t duration_ps = tile_time(nm, units);

    *free_ps = later(*free_ps, at_ps > pipeline_ps ? at_ps - pipeline_ps : 0) + duration_ps;
    return later(*free_ps, at_ps + duration_ps);
}

static inline struct tiles *tiles_of(const struct emu_nic_model *nm, uint32_t nid)
{
    return !nm->tiles ? NULL : &nm->tiles[nid / nm->host.tile_nics];
}

/* ---- nodes ---- */

/* The state of a node, made at its first use. NULL: out of memory. */
struct node *emu_nic_node_of(struct emu_nic_model *nm, uint32_t nid);

void emu_nic_node_destroy(struct node *n);

/* ---- operations ---- */

static inline struct op *find_op(const struct node *n, uint16_t seq)
{
    struct op *op = n->ops_size == 0 ? NULL : n->ops[seq & (n->ops_size - 1)];

    return op && op->seq == seq ? op : NULL;
}

static inline void free_op(struct node *n, struct op *op)
{
    op->is_over = true;
    if (op->is_kept)
        return;
    n->ops[op->seq & (n->ops_size - 1)] = NULL;
    op->next = n->free_ops;
    n->free_ops = op;
}

static inline void enqueue(struct queue *q, struct op *op)
{
    op->next = NULL;
    if (!q->first)
        q->first = op;
    else
        q->last->next = op;
    q->last = op;
    op->is_queued = true;
}

static inline struct op *dequeue(struct queue *q)
{
    struct op *op = q->first;

    q->first = op->next;
    op->next = NULL;
    return op;
}

/* When the next packet is at the NIC's door. */
static inline uint64_t next_ready(const struct op *op)
{
    return op->ready_ps + op->n_sent * op->step_ps +
           (op->part_packets == 0 ? 0 : op->n_sent / op->part_packets * op->part_ps);
}

static inline uint32_t packets_of(const struct emu_nic_model *nm, uint64_t bytes)
{
    return (uint32_t)emu_packets(&nm->format, bytes);
}

/* A generic host's transfer has a header packet, which carries short data. */
static inline uint32_t packets_with_header(const struct emu_nic_model *nm, uint64_t bytes)
{
    return !nm->host.is_generic           ? packets_of(nm, bytes) :
           bytes <= nm->host.inline_bytes ? 1 :
                                            1 + packets_of(nm, bytes);
}

static inline bool has_data_in_requests(enum packet_type type)
{
    switch (type) {
    case TYPE_PUT:
    case TYPE_AMO:
    case TYPE_AMO_FETCH:
    case TYPE_LAUNCH:
    case TYPE_BTE_PUT:
    case TYPE_EAGER:
    case TYPE_BULK_PUT:
    case TYPE_REPLY_STREAM:
        return true;
    default:
        return false;
    }
}

static inline bool is_get(enum packet_type type)
{
    return type == TYPE_GET || type == TYPE_BTE_GET || type == TYPE_BULK_GET;
}

/* Does the target put the data together, because somebody wants to know when it has them all? */
static inline bool is_assembled(const struct emu_nic_model *nm, enum packet_type type, bool is_told)
{
    return nm->host.is_generic || is_told || type == TYPE_EAGER || type == TYPE_BULK_PUT || type == TYPE_REPLY_STREAM;
}

/* A cleared one, with a sequence number that no other operation of the node has. -ENOMEM; -ENOBUFS: all are in use. */
int emu_nic_take_op(struct node *n, struct op **op_out);

/* An operation of the model itself: a control packet, bulk data, the answer of a generic host. */
struct own_op {
    enum packet_type type;
    uint32_t proc; /* the sender */
    struct emu_nic_proc to;
    uint32_t bytes;
    uint64_t ready_ps;
};

/* NULL: out of memory, which the node notes. */
struct op *emu_nic_send_own(struct emu_nic_model *nm, struct node *n, const struct own_op *own);
/* When the first of the sources has a packet. */
uint64_t emu_nic_first_ready(const struct emu_nic_model *nm, const struct node *n);
/* A block transfer that has a channel gives it to the next one. */
void emu_nic_leave_channel(struct emu_nic_model *nm, struct node *n, struct op *op, uint64_t at_ps);
/* The program will be told, once. */
void emu_nic_complete(struct emu_nic_model *nm, struct node *n, struct op *op, uint64_t at_ps);

/* ---- messages ---- */

/* Time of a core to make a buffer known to the NIC, by the state of the cache of registrations. */
uint64_t emu_nic_registration_ps(const struct emu_node_params *host, uint64_t bytes);
/* The first packets of a message of this size: its data, or a request to send. */
enum packet_type emu_nic_message_type(const struct emu_nic_model *nm, uint32_t bytes);
/* The sender's core, before those are at the NIC. */
uint64_t emu_nic_message_work(const struct emu_nic_model *nm, uint32_t bytes);
/* Packets of a part of an eager message that is longer than a buffer; 0: it goes whole. */
uint32_t emu_nic_part_packets(const struct emu_nic_model *nm, uint32_t bytes);
/* The sender's core, for each part behind the first; the last one's copy is shorter. */
uint64_t emu_nic_part_work(const struct emu_nic_model *nm, uint32_t part_bytes);
/* PENDING_PART, _RECEIVED, _ASKED, _INVITED and _ENDED: the core's part. */
void emu_nic_message_step(struct emu_nic_model *nm, struct node *n, const struct pending *what, uint64_t now_ps);

/* ---- packets ---- */

/* What the simulator calls, see struct emu_traffic. */
bool emu_nic_next_packet(void *ctx, struct emu_sim *sim, uint32_t nid, enum emu_traffic_class traffic_class,
                         uint64_t now_ps, struct emu_packet *packet_out);
void emu_nic_packet_delivered(void *ctx, struct emu_sim *sim, uint32_t nid, const struct emu_packet *p,
                              uint64_t now_ps);
void emu_nic_packet_lost(void *ctx, struct emu_sim *sim, uint32_t nid, const struct emu_packet *p, uint64_t now_ps);

/* PENDING_DATA: the interrupt behind a transfer's last data. */
void emu_nic_data_ended(struct emu_nic_model *nm, struct node *n, const struct pending *what, uint64_t now_ps);

/* ---- things to come ---- */

/* Live: an event that is told behind the run. */
void emu_nic_note_due(struct emu_nic_model *nm, struct node *n, const struct pending *what);
/* Has something happen to a core. Cookies of timers: the class to wake, or a pending number behind the classes. */
void emu_nic_await(struct emu_nic_model *nm, struct node *n, uint64_t at_ps, const struct pending *what);
/* Asks the simulator to ask for packets: now, or when there are some. */
void emu_nic_wake_at(struct emu_nic_model *nm, struct node *n, enum emu_traffic_class c, uint64_t at_ps);

/* Events of a process keep their order. */
static inline uint64_t event_time(struct node *n, uint32_t proc, uint64_t at_ps)
{
    n->last_event_ps[proc] = later(at_ps, n->last_event_ps[proc]);
    return n->last_event_ps[proc];
}

#endif
