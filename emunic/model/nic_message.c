/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * NICs in virtual time: messages between nodes, as a message layer over puts and gets makes them.
 *
 * Eager, up to host.eager_bytes_max. The sender's core works for send_ns and copies the data to where the NIC takes
 * them; they travel as a put into a buffer that the receiver has given before. There the core works for recv_ns and
 * copies them out. Buffers have eager_buffer_bytes: a longer message goes in parts, each a message of the protocol, and
 * one part is copied while another one is on its way.
 *
 * Rendezvous, above. Both ends register their buffers with the NIC, and no core touches the data:
 *
 *   get   sender: send, registration, request to send -> receiver: recv, registration, block transfer get
 *         -> its end: recv; the receiver has the message, and sends the end -> sender: recv; the buffer is free again
 *   put   sender: send, registration, request to send -> receiver: recv, registration, send, ready to receive
 *         -> sender: recv, block transfer put; its answers tell the sender, the NIC tells the receiver, who pays recv
 *
 * The messages of the protocol are messages: each goes through core, NIC and network, takes send_ns and recv_ns, and
 * the core is busy for put_gap_ns behind each that it hands to the NIC. So no constant stands for the protocol.
 *
 * Registration. A cache of registrations is asked first (register_hit_ns). If it does not have the buffer
 * (registration: miss), the system registers it: register_ns, and register_page_ns for each page. One parameter says
 * which of both happens to all messages; a program that uses the same buffers again, as benchmarks do, is a hit.
 * Source: spec/machines.md 2.3, XC-50. The sources have no figure for any of these times: [OUR] in the machine files.
 */
#include "emunic/model/nic_inner.h"

uint64_t emu_nic_registration_ps(const struct emu_node_params *host, uint64_t bytes)
{
    uint64_t page = host->register_page_bytes;
    uint64_t pages = page == 0 ? 0 : (bytes + page - 1) / page;

    if (host->registration == EMU_REGISTRATION_HIT)
        return host->register_hit_ps;
    return (uint64_t)host->register_hit_ps + host->register_ps + pages * host->register_page_ps;
}

enum packet_type emu_nic_message_type(const struct emu_nic_model *nm, uint32_t bytes)
{
    return emu_node_is_eager(&nm->host, bytes) ? TYPE_EAGER : TYPE_READY_TO_SEND;
}

uint64_t emu_nic_message_work(const struct emu_nic_model *nm, uint32_t bytes)
{
    uint32_t part = emu_nic_part_packets(nm, bytes);

    if (part > 0)
        bytes = part * nm->format.payload_bytes_max;
    return nm->host.send_ps + (emu_nic_message_type(nm, bytes) == TYPE_EAGER ?
                                   time_of(bytes, nm->host.copy_kbs) :
                                   emu_nic_registration_ps(&nm->host, bytes));
}

uint32_t emu_nic_part_packets(const struct emu_nic_model *nm, uint32_t bytes)
{
    uint32_t packets = packets_of(nm, nm->host.eager_buffer_bytes);

    if (nm->host.eager_buffer_bytes == 0 || nm->host.is_generic || !emu_node_is_eager(&nm->host, bytes))
        return 0;
    return bytes > packets * nm->format.payload_bytes_max ? packets : 0;
}

uint64_t emu_nic_part_work(const struct emu_nic_model *nm, uint32_t part_bytes)
{
    return (uint64_t)nm->host.send_ps + nm->host.put_gap_ps + time_of(part_bytes, nm->host.copy_kbs);
}

/* The core works, then hands an operation to the NIC, of which it is free put_gap later. NULL: out of memory. */
static struct op *work_and_send(struct emu_nic_model *nm, struct node *n, const struct pending *what, uint64_t now_ps,
                                enum packet_type type, uint64_t work_ps)
{
    const struct emu_nic_event *e = &what->event;
    uint64_t *core_ps = &n->procs[e->at.proc].core_ps;
    const struct own_op own = { type, e->at.proc, e->peer, e->bytes,
                                .ready_ps = serve(core_ps, now_ps, work_ps) + nm->host.issue_ps };

    *core_ps += nm->host.put_gap_ps;
    return emu_nic_send_own(nm, n, &own);
}

/* A request to send: fetch the data, or invite the sender. */
static void answer_request(struct emu_nic_model *nm, struct node *n, const struct pending *what, uint64_t now_ps)
{
    bool fetches = nm->host.rendezvous == EMU_RENDEZVOUS_GET;
    uint64_t work = nm->host.recv_ps + emu_nic_registration_ps(&nm->host, what->event.bytes);
    struct op *op = fetches ? work_and_send(nm, n, what, now_ps, TYPE_BULK_GET, work) :
                              work_and_send(nm, n, what, now_ps, TYPE_READY_TO_RECV, work + nm->host.send_ps);

    if (!op)
        return;
    if (fetches)
        op->spec.user = what->seq; /* TYPE_END will name it */
    else
        op->tag_seq = what->seq;
}

static void send_bulk(struct emu_nic_model *nm, struct node *n, const struct pending *what, uint64_t now_ps)
{
    struct op *asked = find_op(n, what->seq);
    struct op *op;

    if (!asked)
        return;
    op = work_and_send(nm, n, what, now_ps, TYPE_BULK_PUT, nm->host.recv_ps);
    if (op) {
        op->is_told_done = false; /* its end is the message's */
        op->spec.user = asked->spec.user;
    }
    free_op(n, asked);
}

/* What is left to copy of an eager message when all of it is there: its last part. */
static uint32_t last_part(const struct emu_nic_model *nm, uint32_t bytes)
{
    uint32_t part_bytes = emu_nic_part_packets(nm, bytes) * nm->format.payload_bytes_max;

    return part_bytes == 0 ? bytes : (bytes - 1) % part_bytes + 1;
}

static void receive_part(struct emu_nic_model *nm, struct node *n, const struct pending *what, uint64_t now_ps)
{
    (void)serve(&n->procs[what->event.at.proc].core_ps, now_ps,
                nm->host.recv_ps + time_of(what->event.bytes, nm->host.copy_kbs));
}

/* The receiver's overhead; an eager message is copied out. The sender of one that was fetched waits to hear of it. */
static void receive(struct emu_nic_model *nm, struct node *n, const struct pending *what, uint64_t now_ps)
{
    struct emu_nic_event e = what->event;
    bool is_copied = emu_node_is_eager(&nm->host, e.bytes) && e.peer.nid != n->nid;
    uint64_t work = nm->host.recv_ps + (is_copied ? time_of(last_part(nm, e.bytes), nm->host.copy_kbs) : 0);
    uint64_t t = serve(&n->procs[e.at.proc].core_ps, now_ps, work);

    if (what->is_fetched) {
        struct op *op = work_and_send(nm, n, what, t, TYPE_END, nm->host.send_ps);

        if (op)
            op->tag_seq = what->seq;
    }
    e.at_ps = event_time(n, e.at.proc, t);
    nm->program.arrived(nm->program.ctx, nm, &e);
}

/* The sender hears that the receiver has it all. */
static void end_send(struct emu_nic_model *nm, struct node *n, const struct pending *what, uint64_t now_ps)
{
    struct op *op = find_op(n, what->seq);

    if (!op)
        return;
    emu_nic_complete(nm, n, op, serve(&n->procs[op->proc].core_ps, now_ps, nm->host.recv_ps));
    free_op(n, op);
}

void emu_nic_message_step(struct emu_nic_model *nm, struct node *n, const struct pending *what, uint64_t now_ps)
{
    switch (what->kind) {
    case PENDING_PART:
        receive_part(nm, n, what, now_ps);
        return;
    case PENDING_RECEIVED:
        receive(nm, n, what, now_ps);
        return;
    case PENDING_ASKED:
        answer_request(nm, n, what, now_ps);
        return;
    case PENDING_INVITED:
        send_bulk(nm, n, what, now_ps);
        return;
    default:
        end_send(nm, n, what, now_ps);
    }
}
