/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Packets of a session: records gathered, credits, sending, receiving, delivery. transport.h has the model.
 *
 * A peer has EMU_TX_PACKETS of its own for what is sent: free, open (being filled), waiting (full, for credits), or
 * with the carrier. Number and tag are put in when the carrier takes a packet, so numbers follow the order of sending.
 * Heartbeats, credits and goodbyes have packets of their own and need no credit. Hellos and proofs are never queued:
 * what the carrier does not take now is said again later.
 *
 * A received packet is held until its last record was delivered, then it is posted again and its peer's credit grows.
 */
#include <errno.h>
#include <string.h>

#include "emunic/transport/inner.h"

#define GATHER_FROM 2u          /* packets under way from which on records are gathered */

/* ---- sending ---- */

void emu_stream_give_back(struct emu_peer *p, struct emu_packet *packet)
{
    emu_packet_push(&p->free, packet);
    p->n_free++;
}

/* 0, or what the carrier says. */
static int submit(struct emu_peer *p, struct emu_packet *packet, enum emu_wire_type type)
{
    struct emu_transport *t = p->t;
    uint32_t length = packet->length_bytes + EMU_WIRE_TAG_BYTES;
    bool is_greeting = type == EMU_WIRE_HELLO || type == EMU_WIRE_PROOF;
    struct emu_wire_header header = { .type = (uint8_t)type, .length = length, .from = t->host, .to = p->host };
    int r;

    if (!is_greeting) {
        header.n_records = packet->n_records;
        header.session = p->session.id;
        header.sequence = p->tx_sequence + 1;
        header.granted = p->rx_consumed + t->credits;
    }
    emu_wire_header_put(packet->bytes, &header);
    if (is_greeting)
        memset(packet->bytes + packet->length_bytes, 0, EMU_WIRE_TAG_BYTES);
    else
        emu_crypt_seal(p->session.tx, header.sequence, packet->bytes, length);
    packet->epoch = type == EMU_WIRE_HELLO ? p->epoch - 1 : p->epoch; /* a hello that is lost is said again */
    r = t->carrier->ops->send(t->carrier, p->addr, &packet->op, packet->bytes, length, packet->desc);
    if (r < 0)
        return r;
    if (!is_greeting) {
        p->tx_sequence++;
        p->rx_told = header.granted;
        p->last_sent_ns = t->now_ns;
    }
    p->stats.bytes_sent += length;
    return 0;
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
    if (r == 0) {
        p->stats.control_sent++;
        return true;
    }
    emu_packet_push(&p->control, packet);
    if (r != -EAGAIN && p->state == EMU_PEER_UP)
        emu_peer_end(p, r);
    return false;
}

void emu_stream_flush(struct emu_peer *p)
{
    p->must_retry = false;
    while (p->state == EMU_PEER_UP && p->tx_packets < p->tx_granted) {
        bool is_open = !p->waiting.first;
        struct emu_packet *packet = is_open ? p->open : p->waiting.first;
        int r;

        if (!packet || (is_open && (p->in_flight >= GATHER_FROM || p->holds_open)))
            return;
        r = submit(p, packet, EMU_WIRE_DATA);
        if (r == -EAGAIN) {
            p->must_retry = true;
            emu_peer_list(p);
            return;
        }
        if (r < 0) {
            emu_peer_end(p, r);
            return;
        }
        if (is_open)
            p->open = NULL;
        else
            emu_packet_pop(&p->waiting);
        p->in_flight++;
        p->tx_packets++;
        p->stats.packets_sent++;
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
    bool is_current = packet->epoch == p->epoch && p->state == EMU_PEER_UP;

    if (packet->op.kind == EMU_OP_CONTROL) {
        emu_packet_push(&p->control, packet);
    } else {
        emu_stream_give_back(p, packet);
        if (is_current)
            p->in_flight--;
    }
    if (is_current && result < 0) {
        emu_transport_say(p->t, EMU_LOG_DEBUG, "host %u: sending failed: %s", p->host, strerror(-result));
        emu_peer_end(p, -ECONNRESET);
    }
    emu_peer_list(p);
}

/* ---- receiving ---- */

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
                emu_transport_say(t, EMU_LOG_ERROR, "host %u breaks the protocol: record kind %u", p->host,
                                  body[packet->at_bytes]);
                emu_peer_end(p, -EPROTO);
                goto out;
            }
            packet->at_bytes = at_bytes;
            packet->n_records--;
        }
        if (packet->at_bytes != body_bytes) {
            emu_transport_say(t, EMU_LOG_ERROR, "host %u breaks the protocol: %u bytes behind its records", p->host,
                              body_bytes - packet->at_bytes);
            emu_peer_end(p, -EPROTO);
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
    if (h->sequence != p->rx_sequence + 1)
        return true;
    if (h->granted < p->tx_granted || h->granted > p->tx_packets + p->theirs.credits)
        return true;
    return h->n_records > 0 && p->rx_packets >= p->rx_told;
}

bool emu_stream_take(struct emu_peer *p, struct emu_packet *packet, const struct emu_wire_header *h)
{
    struct emu_transport *t = p->t;

    if (p->state != EMU_PEER_UP || h->session != p->session.id) {
        emu_transport_refuse(t, p, "not of this session");
        return false;
    }
    if (h->sequence <= p->rx_sequence) {
        emu_transport_refuse(t, p, "seen before");
        return false;
    }
    if (!emu_crypt_is_sealed(p->session.rx, h->sequence, packet->bytes, h->length)) {
        emu_transport_refuse(t, p, "with a wrong tag");
        return false;
    }
    if (violates(p, h)) {
        emu_transport_say(t, EMU_LOG_ERROR,
                          "host %u breaks the protocol: sequence %llu after %llu, granted %llu after %llu", p->host,
                          (unsigned long long)h->sequence, (unsigned long long)p->rx_sequence,
                          (unsigned long long)h->granted, (unsigned long long)p->tx_granted);
        emu_peer_end(p, -EPROTO);
        return false;
    }
    p->rx_sequence = h->sequence;
    p->last_heard_ns = t->now_ns;
    p->stats.bytes_received += h->length;
    if (h->granted != p->tx_granted) {
        p->tx_granted = h->granted;
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
