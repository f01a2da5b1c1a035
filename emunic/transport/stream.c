/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Packets of a session: records gathered, credits, sending, receiving, delivery. transport.h has the model.
 *
 * A peer has EMU_TX_PACKETS of its own for what is sent: free, open (being filled), waiting (full, for credits), or
 * with the carrier. Number and tag are put in when the carrier takes a packet, so numbers follow the order of sending.
 * Heartbeats, credits and goodbyes have packets of their own and need no credit. Hellos and proofs are never queued:
 * what the carrier does not take now is said again later.
 *
 * The packets with records of one direction are a stream: each has a position, and is kept until the peer has told that
 * it has received it. When the session goes on over another connection, what the peer does not have is sent again with
 * a new number and tag; what it has already is passed over by its position. So a stream loses nothing and repeats
 * nothing.
 *
 * In a secure session sealing gives a packet its number, and writes beside it: it may have to be sealed again in
 * another session. What the carrier has no room for then is p->unsent, and goes out before anything else is sealed, as
 * it is: an open packet takes no more records then. So no number comes twice, and none is left out.
 *
 * A received packet is held until its last record was delivered, then it is posted again and its peer's credit grows.
 */
#include <assert.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "emunic/transport/inner.h"

#define GATHER_FROM 2u /* packets under way from which on records are gathered */

/* ---- sending ---- */

void emu_stream_give_back(struct emu_peer *p, struct emu_packet *packet)
{
    emu_packet_push_first(&p->free, packet);
    p->n_free++;
}

/* The peer has the first `received` packets: they are kept no longer. */
static void acknowledge(struct emu_peer *p, uint64_t received)
{
    p->tx_received = received;
    while (p->kept.first && p->kept.first->position <= received) {
        struct emu_packet *packet = p->kept.first;

        if (p->again == packet)
            p->again = packet->next;
        emu_packet_pop(&p->kept);
        packet->is_done = true;
        if (!packet->is_with_carrier && packet != p->unsent)
            emu_stream_give_back(p, packet);
    }
}

/* It was sealed for a session that has ended. */
static void drop_unsent(struct emu_peer *p)
{
    struct emu_packet *packet = p->unsent;

    p->unsent = NULL;
    if (packet && packet->op.kind == EMU_OP_CONTROL)
        emu_packet_push(&p->control, packet);
    else if (packet && packet->is_done)
        emu_stream_give_back(p, packet);
}

void emu_stream_begin(struct emu_peer *p)
{
    p->tx_sequence = p->rx_sequence = 0;
    p->tx_packets = p->tx_received = 0;
    p->rx_packets = p->rx_received = p->rx_consumed = 0;
    p->tx_granted = p->theirs.credits;
    p->rx_told = p->t->credits;
}

/* Another packet with the same records, which the carrier does not have; or the packet itself, if there is no room. */
static struct emu_packet *copy_of(struct emu_peer *p, struct emu_packet *packet)
{
    struct emu_packet *copy = emu_packet_pop(&p->free);

    if (!copy)
        return packet;
    p->n_free--;
    memcpy(copy->bytes, packet->bytes, packet->length_bytes);
    copy->length_bytes = packet->length_bytes;
    copy->n_records = packet->n_records;
    copy->position = packet->position;
    copy->is_done = false;
    packet->is_done = true;
    return copy;
}

void emu_stream_go_on(struct emu_peer *p, uint64_t received)
{
    struct emu_packet_list kept;

    p->tx_sequence = p->rx_sequence = 0;
    drop_unsent(p);
    acknowledge(p, received);
    kept = p->kept;
    p->kept = (struct emu_packet_list){ 0 };
    for (struct emu_packet *packet; (packet = emu_packet_pop(&kept));)
        emu_packet_push(&p->kept, packet->is_with_carrier ? copy_of(p, packet) : packet);
    p->again = p->kept.first;
    p->owes_heartbeat = true; /* it tells what the peer may send, which may have got lost */
    emu_peer_list(p);
}

void emu_stream_end(struct emu_peer *p)
{
    p->is_paused = false;
    p->wants_room = false;
    p->holds_open = false;
    p->in_flight = 0;
    if (p->open)
        emu_stream_give_back(p, p->open);
    p->open = NULL;
    for (struct emu_packet *packet; (packet = emu_packet_pop(&p->waiting));)
        emu_stream_give_back(p, packet);
    acknowledge(p, UINT64_MAX);
    drop_unsent(p);
}

/* To the carrier. 0, or what that says. */
static int hand_over(struct emu_peer *p, struct emu_packet *packet, bool is_greeting)
{
    struct emu_transport *t = p->t;
    uint32_t length = packet->length_bytes + EMU_WIRE_TAG_BYTES;
    int r;

    packet->path = is_greeting ? p->path - 1 : p->path; /* a greeting that is lost is said again */
    r = t->carrier->ops->send(t->carrier, p->addr, &packet->op, is_greeting ? packet->bytes : packet->wire, length,
                              packet->desc);
    if (r < 0)
        return r;
    if (packet->op.kind == EMU_OP_PACKET) {
        packet->is_with_carrier = true;
        p->in_flight++;
        p->stats.packets_sent++;
    } else {
        p->stats.control_sent++;
    }
    if (!is_greeting)
        p->last_sent_ns = t->now_ns;
    p->stats.bytes_sent += length;
    return 0;
}

/* Nothing else is sealed before this has gone. 0, or what the carrier says. */
static int push_unsent(struct emu_peer *p)
{
    int r = hand_over(p, p->unsent, false);

    if (r == 0)
        p->unsent = NULL;
    return r;
}

/* Header and tag, for this session. What is sealed has its number for good. */
static void close_packet(struct emu_peer *p, struct emu_packet *packet, struct emu_wire_header *header)
{
    header->n_records = packet->n_records;
    header->session = p->session.id;
    header->sequence = p->tx_sequence + 1;
    header->granted = p->rx_consumed + p->t->credits;
    header->position = packet->n_records > 0 ? packet->position : 0;
    header->received = p->rx_packets;
    emu_wire_header_put(packet->bytes, header);
    if (!p->session.cipher) {
        emu_crypt_seal(p->session.tx, header->sequence, packet->bytes, header->length);
        return;
    }
    assert(header->sequence == p->session.sealing.number + 1);
    emu_envelope_seal(&p->session.sealing, packet->bytes, packet->length_bytes, packet->wire);
}

/* 0, or what the carrier says. */
static int submit(struct emu_peer *p, struct emu_packet *packet, enum emu_wire_type type)
{
    uint32_t length = packet->length_bytes + EMU_WIRE_TAG_BYTES;
    struct emu_wire_header header = { .type = (uint8_t)type, .length = length, .from = p->t->host, .to = p->host };
    int r;

    if (type == EMU_WIRE_HELLO || type == EMU_WIRE_PROOF) {
        emu_wire_header_put(packet->bytes, &header);
        memset(packet->bytes + packet->length_bytes, 0, EMU_WIRE_TAG_BYTES);
        return hand_over(p, packet, true);
    }
    if (p->unsent) {
        r = push_unsent(p);
        if (r < 0)
            return r;
    }
    close_packet(p, packet, &header);
    r = hand_over(p, packet, false);
    if (r < 0 && !p->session.cipher)
        return r;
    p->tx_sequence++;
    p->rx_told = header.granted;
    p->rx_received = header.received;
    if (r == -EAGAIN)
        p->unsent = packet;
    return r;
}

bool emu_stream_control(struct emu_peer *p, enum emu_wire_type type, const struct emu_wire_hello *hello)
{
    struct emu_packet *packet = emu_packet_pop(&p->control);
    int r;

    if (!packet)
        return false;
    packet->length_bytes = EMU_WIRE_HEADER_BYTES;
    packet->n_records = 0;
    if (hello) {
        emu_wire_hello_put(packet->bytes + EMU_WIRE_HEADER_BYTES, hello);
        packet->length_bytes += EMU_WIRE_HELLO_BYTES;
    }
    r = submit(p, packet, type);
    if (r == 0)
        return true;
    if (packet != p->unsent)
        emu_packet_push(&p->control, packet);
    if (r != -EAGAIN)
        emu_session_mend(p, strerror(-r));
    return false;
}

/* What the carrier has said. True: it has taken it. */
static bool is_taken(struct emu_peer *p, int r)
{
    if (r == -EAGAIN) {
        p->must_retry = true;
        emu_peer_list(p);
    } else if (r < 0) {
        emu_session_mend(p, strerror(-r));
    }
    return r == 0;
}

/* False: nothing more now. `packet` is out all the same if it is p->unsent then. */
static bool send_records(struct emu_peer *p, struct emu_packet *packet)
{
    return is_taken(p, submit(p, packet, EMU_WIRE_DATA));
}

/* False: not now. */
static bool send_again(struct emu_peer *p)
{
    while (p->again) {
        struct emu_packet *packet = p->again;
        bool is_sent = !packet->is_with_carrier && send_records(p, packet);

        if (is_sent || p->unsent == packet)
            p->again = packet->next;
        if (!is_sent)
            return false;
    }
    return true;
}

void emu_stream_flush(struct emu_peer *p)
{
    p->must_retry = false;
    if (p->state != EMU_PEER_UP || p->is_mending)
        return;
    if ((p->unsent && !is_taken(p, push_unsent(p))) || !send_again(p))
        return;
    while (p->tx_packets < p->tx_granted) {
        bool is_open = !p->waiting.first;
        struct emu_packet *packet = is_open ? p->open : p->waiting.first;
        bool is_sent;

        if (!packet || (is_open && (p->in_flight >= GATHER_FROM || p->holds_open)))
            return;
        packet->position = p->tx_packets + 1;
        packet->is_done = false;
        is_sent = send_records(p, packet);
        if (!is_sent && p->unsent != packet)
            return;
        if (is_open)
            p->open = NULL;
        else
            emu_packet_pop(&p->waiting);
        emu_packet_push(&p->kept, packet);
        p->tx_packets++;
        if (!is_sent)
            return;
    }
}

uint8_t *emu_peer_record_room(struct emu_peer *p, uint32_t space)
{
    struct emu_packet *packet = p->open;
    uint8_t *at;

    if (packet && packet->length_bytes + space > EMU_WIRE_PACKET_MAX - EMU_WIRE_TAG_BYTES) {
        emu_packet_push(&p->waiting, packet);
        p->open = packet = NULL;
    }
    if (!packet) {
        packet = emu_packet_pop(&p->free);
        if (!packet)
            return NULL;
        p->n_free--;
        packet->length_bytes = EMU_WIRE_HEADER_BYTES;
        packet->n_records = 0;
        p->open = packet;
    }
    at = packet->bytes + packet->length_bytes;
    packet->length_bytes += space;
    packet->n_records++;
    return at;
}

/* Puts a message where the next packet is made. */
static int write_message(struct emu_transport *t, uint32_t host, const void *data, uint32_t length_bytes)
{
    struct emu_peer *p = emu_peer_of(t, host);
    uint8_t *at;

    if (length_bytes == 0 || length_bytes > EMU_WIRE_MESSAGE_MAX)
        return -EINVAL;
    if (!p || p->state != EMU_PEER_UP)
        return -ENOTCONN;
    at = emu_peer_record_room(p, emu_wire_record_space(length_bytes));
    if (!at) {
        p->stats.full++;
        p->wants_room = true;
        p->holds_open = false;
        emu_stream_flush(p);
        return EMU_TRANSPORT_FULL;
    }
    memcpy(emu_wire_record_put(at, EMU_WIRE_MESSAGE, length_bytes), data, length_bytes);
    p->stats.messages_sent++;
    return 0;
}

int emu_transport_send_later(struct emu_transport *t, uint32_t host, const void *data, uint32_t length_bytes)
{
    int r = write_message(t, host, data, length_bytes);

    if (r == 0)
        t->peers[host]->holds_open = true;
    return r;
}

void emu_transport_push(struct emu_transport *t, uint32_t host)
{
    struct emu_peer *p = emu_peer_of(t, host);

    if (!p || p->state != EMU_PEER_UP)
        return;
    p->holds_open = false;
    emu_stream_flush(p);
}

int emu_transport_send(struct emu_transport *t, uint32_t host, const void *data, uint32_t length_bytes)
{
    int r = write_message(t, host, data, length_bytes);

    if (r == 0)
        emu_transport_push(t, host);
    return r;
}

void emu_stream_sent(struct emu_packet *packet, int result)
{
    struct emu_peer *p = packet->peer;
    bool is_current = packet->path == p->path && p->state == EMU_PEER_UP;

    packet->is_with_carrier = false;
    if (packet->op.kind == EMU_OP_CONTROL) {
        emu_packet_push(&p->control, packet);
    } else {
        if (packet->is_done)
            emu_stream_give_back(p, packet);
        if (is_current)
            p->in_flight--;
    }
    if (is_current && result < 0)
        emu_session_mend(p, strerror(-result));
    emu_peer_list(p);
}

/* ---- receiving ---- */

/* The peer has the key, and says what is against the protocol: its session ends. */
__attribute__((format(printf, 2, 3))) static void break_off(struct emu_peer *p, const char *format, ...)
{
    char why[160] = "which breaks the protocol: ";
    size_t used = strlen(why);
    va_list args;

    va_start(args, format);
    vsnprintf(why + used, sizeof(why) - used, format, args);
    va_end(args);
    emu_transport_refuse(p->t, p, why);
    emu_peer_end(p, -EPROTO);
}

/* Delivers what is held until the owner says no. */
static void deliver(struct emu_peer *p)
{
    struct emu_transport *t = p->t;
    uint32_t epoch = p->epoch;
    struct emu_packet *packet;

    if (p->is_delivering)
        return;
    p->is_delivering = true;
    while (!p->is_paused && (packet = p->held.first)) {
        uint32_t body_bytes = packet->length_bytes - EMU_WIRE_HEADER_BYTES - EMU_WIRE_TAG_BYTES;
        const uint8_t *body = packet->bytes + EMU_WIRE_HEADER_BYTES;

        while (packet->n_records > 0) {
            struct emu_wire_record record;
            uint32_t at_bytes = packet->at_bytes;
            bool is_good = emu_wire_record_next(body, body_bytes, &at_bytes, &record) == EMU_WIRE_OK;

            if (is_good && record.kind == EMU_WIRE_MESSAGE) {
                p->is_paused = !t->events->message(t->owner, p->host, record.data, record.length);
                if (p->epoch != epoch || p->is_paused)
                    goto out;
                p->stats.messages_received++;
            } else if (is_good) {
                is_good = emu_transfer_record(p, &record);
            }
            if (!is_good) {
                break_off(p, "record kind %u", body[packet->at_bytes]);
                goto out;
            }
            packet->at_bytes = at_bytes;
            packet->n_records--;
        }
        if (packet->at_bytes != body_bytes) {
            break_off(p, "%u bytes behind its records", body_bytes - packet->at_bytes);
            goto out;
        }
        emu_packet_pop(&p->held);
        p->rx_consumed++;
        emu_transport_post(t, packet);
    }
out:
    p->is_delivering = false;
    emu_peer_list(p);
}

static bool violates(struct emu_peer *p, const struct emu_wire_header *h)
{
    if (h->granted < p->tx_granted || h->granted > p->tx_packets + p->theirs.credits)
        return true;
    if (h->received < p->tx_received || h->received > p->tx_packets)
        return true;
    return h->position > p->rx_packets + 1 || h->position > p->rx_told;
}

/* The packet is open then. */
static bool is_of_session(struct emu_crypt_session *session, const struct emu_packet *packet,
                          const struct emu_wire_header *h)
{
    if (session->cipher)
        return emu_envelope_open(&session->opening, h->sequence, packet->bytes, h->length);
    return emu_crypt_is_sealed(session->rx, h->sequence, packet->bytes, h->length);
}

bool emu_stream_take(struct emu_peer *p, struct emu_packet *packet, const struct emu_wire_header *h)
{
    struct emu_transport *t = p->t;

    if (p->state == EMU_PEER_UP && h->session == p->previous)
        return false; /* it has gone on, and its sender did not know yet: comes again */
    if (p->state != EMU_PEER_UP || h->session != p->session.id) {
        emu_transport_refuse(t, p, "not of this session");
        return false;
    }
    if (h->sequence <= p->rx_sequence) {
        emu_transport_refuse(t, p, "seen before");
        return false;
    }
    if (!is_of_session(&p->session, packet, h)) {
        emu_transport_refuse(t, p, "with a wrong tag");
        return false;
    }
    if (h->sequence != p->rx_sequence + 1) {
        emu_session_mend(p, "packets got lost");
        return false;
    }
    if (violates(p, h)) {
        break_off(p, "position %llu after %llu, granted %llu after %llu", (unsigned long long)h->position,
                  (unsigned long long)p->rx_packets, (unsigned long long)h->granted, (unsigned long long)p->tx_granted);
        return false;
    }
    p->rx_sequence = h->sequence;
    p->last_heard_ns = t->now_ns;
    p->stats.bytes_received += h->length;
    if (h->granted != p->tx_granted || h->received != p->tx_received) {
        p->tx_granted = h->granted;
        acknowledge(p, h->received);
        emu_peer_list(p);
    }
    if (h->type == EMU_WIRE_GOODBYE) {
        p->stats.control_received++;
        emu_peer_end(p, -ESHUTDOWN);
        return false;
    }
    if (h->n_records == 0) {
        p->stats.control_received++;
        return false;
    }
    if (h->position <= p->rx_packets)
        return false; /* the acknowledgement got lost */
    p->rx_packets++;
    p->stats.packets_received++;
    packet->n_records = h->n_records;
    packet->at_bytes = 0;
    packet->length_bytes = h->length;
    emu_packet_push(&p->held, packet);
    deliver(p);
    return true;
}

int emu_transport_resume(struct emu_transport *t, uint32_t host)
{
    struct emu_peer *p = emu_peer_of(t, host);

    if (!p || p->state != EMU_PEER_UP)
        return -ENOTCONN;
    p->is_paused = false;
    deliver(p);
    return 0;
}
