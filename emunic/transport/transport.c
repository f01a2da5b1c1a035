/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Peers: handshake, life and death, credits, messages, waiting. transport.h has the model.
 *
 * Packets. A peer has EMU_TX_PACKETS of its own for what is sent: free, open (being filled), waiting (full, for
 * credits), or with the carrier. Number and tag are put in when the carrier takes a packet, so numbers follow the
 * order of sending. Heartbeats, credits and goodbyes have packets of their own and need no credit. Hellos and proofs
 * are never queued: what the carrier does not take now is said again later.
 *
 * Received packets are posted for all peers together, as many as all peers may have under way. A packet is held until
 * its last record was delivered, then it is posted again and its peer's credit grows.
 *
 * A round (progress) takes completions, then looks at the listed peers: those for which something changed. An end
 * (emu_peer_end) only marks and lists; callbacks about it come in the round, so that nothing disappears under a
 * caller's feet.
 */
#include "emunic/transport/transport.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "emunic/base/clock.h"
#include "emunic/transport/inner.h"

#define BLOB_MAGIC       0x454d5442u /* "EMTB" */
#define BLOB_HEAD_BYTES  (20u + EMU_TRANSPORT_NAME_MAX)
#define POLL_BATCH       32
#define POLL_ROUNDS      4
#define GATHER_FROM      2u          /* packets under way from which on records are gathered */
#define HELLO_SOON_NS    10000000ull
#define HELLO_LATER_NS   100000000ull
#define HELLO_SOON_UNTIL_NS 1000000000ull
#define RETRY_NS         2000000ull
#define SECOND_NS        1000000000ull

static_assert(BLOB_HEAD_BYTES + EMU_CARRIER_ADDRESS_MAX <= EMU_TRANSPORT_BLOB_MAX, "an address fits its blob");

static void say(struct emu_transport *t, enum emu_log_level level, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static void say(struct emu_transport *t, enum emu_log_level level, const char *format, ...)
{
    char line[256];
    va_list args;

    if (!t->events->log)
        return;
    va_start(args, format);
    vsnprintf(line, sizeof(line), format, args);
    va_end(args);
    t->events->log(t->owner, level, line);
}

/* ---- lists ---- */

static void push(struct emu_packet_list *list, struct emu_packet *packet)
{
    packet->next = NULL;
    if (list->first)
        list->last->next = packet;
    else
        list->first = packet;
    list->last = packet;
}

static struct emu_packet *pop(struct emu_packet_list *list)
{
    struct emu_packet *packet = list->first;

    if (packet)
        list->first = packet->next;
    return packet;
}

void emu_peer_list(struct emu_peer *p)
{
    if (p->is_listed)
        return;
    p->is_listed = true;
    p->next_listed = p->t->listed;
    p->t->listed = p;
}

static void give_back(struct emu_peer *p, struct emu_packet *packet)
{
    push(&p->free, packet);
    p->n_free++;
}

/* ---- ends ---- */

void emu_peer_end(struct emu_peer *p, int cause)
{
    if (p->state != EMU_PEER_JOINING && p->state != EMU_PEER_UP)
        return;
    p->state = EMU_PEER_ENDING;
    p->cause = cause;
    p->epoch++;
    p->ending_ns = p->t->now_ns;
    p->is_paused = false;
    p->wants_room = false;
    p->holds_open = false;
    p->n_answers = 0;
    p->in_flight = 0;
    if (p->open)
        give_back(p, p->open);
    p->open = NULL;
    for (struct emu_packet *packet; (packet = pop(&p->waiting));)
        give_back(p, packet);
    p->t->carrier->ops->remove(p->t->carrier, p->addr);
    emu_crypt_wipe(&p->session, sizeof(p->session));
    emu_peer_list(p);
}

static void post(struct emu_transport *t, struct emu_packet *packet)
{
    int r = t->carrier->ops->receive(t->carrier, &packet->op, packet->bytes, EMU_WIRE_PACKET_MAX, packet->desc);

    if (r < 0)
        push(&t->unposted, packet);
}

/* Once the carrier has given back what it had of the peer's transfers, or took too long. */
static void drop_early(struct emu_peer *p)
{
    for (struct emu_packet *packet; (packet = pop(&p->early));)
        post(p->t, packet);
    p->n_early = 0;
}

static void finish_ending(struct emu_peer *p)
{
    struct emu_transport *t = p->t;

    if (p->n_rma > 0 && t->now_ns - p->ending_ns < t->timeout_ns / 5) {
        emu_peer_list(p);
        return;
    }
    for (struct emu_packet *packet; (packet = pop(&p->held));)
        post(t, packet);
    drop_early(p);
    emu_transfer_end_all(p, p->cause);
    p->state = EMU_PEER_ABSENT;
    say(t, EMU_LOG_INFO, "host %u lost: %s", p->host, strerror(-p->cause));
    if (t->events->peer_down)
        t->events->peer_down(t->owner, p->host, p->cause);
}

/* A packet that is not taken: counted, and told once per peer and second. `p` NULL: of nobody that we have joined. */
static void refuse(struct emu_transport *t, struct emu_peer *p, const char *why)
{
    uint64_t *count = p ? &p->stats.refused : &t->refused;
    uint64_t *told_ns = p ? &p->refused_log_ns : &t->refused_log_ns;

    (*count)++;
    if (*told_ns != 0 && t->now_ns - *told_ns < SECOND_NS)
        return;
    *told_ns = t->now_ns;
    if (p)
        say(t, EMU_LOG_WARN, "packet refused: it says host %u, %s, %llu so far", p->host, why, (unsigned long long)*count);
    else
        say(t, EMU_LOG_WARN, "packet refused: of no host that was joined, %s, %llu so far", why, (unsigned long long)*count);
}

/* ---- sending ---- */

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

/* A packet without records. False: not now. */
static bool send_control(struct emu_peer *p, enum emu_wire_type type, const struct emu_wire_hello *hello)
{
    struct emu_packet *packet = pop(&p->control);
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
    push(&p->control, packet);
    if (r != -EAGAIN && p->state == EMU_PEER_UP)
        emu_peer_end(p, r);
    return false;
}

/* Full packets as long as there are credits; the open one if little is under way. */
static void flush(struct emu_peer *p)
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
            pop(&p->waiting);
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
        push(&p->waiting, packet);
        p->open = packet = NULL;
    }
    if (!packet) {
        packet = pop(&p->free);
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

static struct emu_peer *peer_of(struct emu_transport *t, uint32_t host)
{
    return host < t->n_hosts ? t->peers[host] : NULL;
}

/* Puts a message where the next packet is made. */
static int write_message(struct emu_transport *t, uint32_t host, const void *data, uint32_t length_bytes)
{
    struct emu_peer *p = peer_of(t, host);
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
        flush(p);
        return EMU_TRANSPORT_FULL;
    }
    memcpy(emu_wire_record_put(at, EMU_WIRE_MESSAGE, length_bytes), data, length_bytes);
    p->stats.messages_sent++;
    return 0;
}

static int transport_send_later(struct emu_transport *t, uint32_t host, const void *data, uint32_t length_bytes)
{
    int r = write_message(t, host, data, length_bytes);

    if (r == 0)
        t->peers[host]->holds_open = true;
    return r;
}

static void transport_push(struct emu_transport *t, uint32_t host)
{
    struct emu_peer *p = peer_of(t, host);

    if (!p || p->state != EMU_PEER_UP)
        return;
    p->holds_open = false;
    flush(p);
}

static int transport_send(struct emu_transport *t, uint32_t host, const void *data, uint32_t length_bytes)
{
    int r = write_message(t, host, data, length_bytes);

    if (r == 0)
        transport_push(t, host);
    return r;
}

/* ---- handshake ---- */

static void send_hello(struct emu_peer *p)
{
    struct emu_wire_hello hello = { .incarnation = p->mine.incarnation, .features = p->mine.features,
                                    .credits = p->mine.credits };

    memcpy(hello.nonce, p->mine.nonce, sizeof(hello.nonce));
    send_control(p, EMU_WIRE_HELLO, &hello);
}

static bool send_proof(struct emu_peer *p, const uint8_t nonce[EMU_WIRE_NONCE_BYTES])
{
    struct emu_wire_hello hello = { .incarnation = p->mine.incarnation, .features = p->mine.features,
                                    .credits = p->mine.credits };

    memcpy(hello.nonce, p->mine.nonce, sizeof(hello.nonce));
    memcpy(hello.echo, nonce, sizeof(hello.echo));
    emu_crypt_prove(p->t->key, &p->mine, nonce, p->host, hello.proof);
    return send_control(p, EMU_WIRE_PROOF, &hello);
}

static bool is_expected(const struct emu_peer *p, uint64_t incarnation)
{
    return p->incarnation != 0 ? incarnation == p->incarnation : incarnation >= p->last_incarnation;
}

static void take_hello(struct emu_peer *p, const struct emu_wire_hello *hello)
{
    if (!is_expected(p, hello->incarnation))
        refuse(p->t, p, "of another incarnation");
    else if (p->state == EMU_PEER_UP && memcmp(hello->nonce, p->theirs.nonce, sizeof(hello->nonce)) != 0)
        refuse(p->t, p, "a hello within a session");
    else
        send_proof(p, hello->nonce);
}

static void take_proof(struct emu_peer *p, const struct emu_wire_hello *hello)
{
    struct emu_transport *t = p->t;
    struct emu_crypt_side theirs = { .host = p->host, .features = hello->features, .credits = hello->credits,
                                     .incarnation = hello->incarnation };

    memcpy(theirs.nonce, hello->nonce, sizeof(theirs.nonce));
    if (memcmp(hello->echo, p->mine.nonce, sizeof(hello->echo)) != 0 || !is_expected(p, hello->incarnation)) {
        refuse(t, p, "a proof of another handshake");
        return;
    }
    if (!emu_crypt_is_proof(t->key, &theirs, p->mine.nonce, t->host, hello->proof)) {
        p->cause = p->state == EMU_PEER_JOINING ? -EACCES : 0;
        refuse(t, p, "a proof with another key");
        return;
    }
    if (p->state == EMU_PEER_UP)
        return;
    /* The other side must have our proof before anything else of the session. */
    if (!send_proof(p, hello->nonce))
        return;
    p->theirs = theirs;
    p->incarnation = p->last_incarnation = theirs.incarnation;
    emu_crypt_session(t->key, &p->mine, &p->theirs, &p->session);
    p->state = EMU_PEER_UP;
    p->cause = 0;
    p->tx_sequence = p->rx_sequence = 0;
    p->tx_packets = p->rx_packets = p->rx_consumed = 0;
    p->tx_granted = theirs.credits;
    p->rx_told = t->credits;
    p->last_heard_ns = p->last_sent_ns = t->now_ns;
    p->stats.sessions++;
    say(t, EMU_LOG_INFO, "host %u joined, incarnation %llu", p->host, (unsigned long long)p->incarnation);
    if (t->events->peer_up)
        t->events->peer_up(t->owner, p->host);
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
                say(t, EMU_LOG_ERROR, "host %u breaks the protocol: record kind %u", p->host, body[packet->at_bytes]);
                emu_peer_end(p, -EPROTO);
                goto out;
            }
            packet->at_bytes = at_bytes;
            packet->n_records--;
        }
        if (packet->at_bytes != body_bytes) {
            say(t, EMU_LOG_ERROR, "host %u breaks the protocol: %u bytes behind its records", p->host,
                body_bytes - packet->at_bytes);
            emu_peer_end(p, -EPROTO);
            goto out;
        }
        pop(&p->held);
        p->rx_consumed++;
        post(t, packet);
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

/* A packet of a session. True: it is held. */
static bool take_packet(struct emu_peer *p, struct emu_packet *packet, const struct emu_wire_header *h)
{
    struct emu_transport *t = p->t;

    if (p->state != EMU_PEER_UP || h->session != p->session.id) {
        refuse(t, p, "not of this session");
        return false;
    }
    if (h->sequence <= p->rx_sequence) {
        refuse(t, p, "seen before");
        return false;
    }
    if (!emu_crypt_is_sealed(p->session.rx, h->sequence, packet->bytes, h->length)) {
        refuse(t, p, "with a wrong tag");
        return false;
    }
    if (violates(p, h)) {
        say(t, EMU_LOG_ERROR, "host %u breaks the protocol: sequence %llu after %llu, granted %llu after %llu", p->host,
            (unsigned long long)h->sequence, (unsigned long long)p->rx_sequence, (unsigned long long)h->granted,
            (unsigned long long)p->tx_granted);
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
    push(&p->held, packet);
    deliver(p);
    return true;
}

/*
 * A packet of a session that we do not know yet: a provider that connects both ways at once may bring it before the
 * proof that was sent first. True: it is held.
 */
static bool keep_early(struct emu_peer *p, struct emu_packet *packet)
{
    if (p->state != EMU_PEER_JOINING || p->n_early == EMU_EARLY_PACKETS)
        return false;
    push(&p->early, packet);
    p->n_early++;
    return true;
}

static const char *refusal_name(enum emu_wire_result r)
{
    switch (r) {
    case EMU_WIRE_SHORT:
        return "too short";
    case EMU_WIRE_FOREIGN:
        return "not emunic's";
    case EMU_WIRE_OTHER_VERSION:
        return "of another version";
    case EMU_WIRE_BAD_LENGTH:
        return "of a wrong length";
    default:
        return "with a bad field";
    }
}

/* The session has begun. */
static void take_early(struct emu_peer *p)
{
    struct emu_packet_list early = p->early;
    struct emu_wire_header h;

    p->early = (struct emu_packet_list){ 0 };
    p->n_early = 0;
    for (struct emu_packet *packet; (packet = pop(&early));) {
        /* Of the length that it says, or it would not have been kept. */
        if (emu_wire_header_parse(packet->bytes, emu_wire_get32(packet->bytes + 8), &h) != EMU_WIRE_OK ||
            !take_packet(p, packet, &h))
            post(p->t, packet);
    }
}

/* True: the packet is held. */
static bool take(struct emu_transport *t, struct emu_packet *packet, uint64_t length_bytes)
{
    struct emu_wire_header h = { .from = UINT32_MAX };
    struct emu_wire_hello hello;
    enum emu_wire_result r = emu_wire_header_parse(packet->bytes, length_bytes, &h);
    struct emu_peer *p = peer_of(t, h.from);

    if (p && p->state != EMU_PEER_JOINING && p->state != EMU_PEER_UP)
        p = NULL;
    if (r == EMU_WIRE_OTHER_VERSION && p && p->state == EMU_PEER_JOINING) {
        if (p->cause != -EPROTONOSUPPORT)
            say(t, EMU_LOG_ERROR, "host %u speaks version %u, we speak %u", p->host, h.version, EMU_WIRE_VERSION);
        p->cause = -EPROTONOSUPPORT;
    }
    if (r == EMU_WIRE_OK && h.to != t->host)
        r = EMU_WIRE_BAD_FIELD;
    if (r != EMU_WIRE_OK || !p) {
        refuse(t, p, r == EMU_WIRE_OK ? "not expected" : refusal_name(r));
        return false;
    }
    if (h.type == EMU_WIRE_DATA || h.type == EMU_WIRE_GOODBYE)
        return keep_early(p, packet) || take_packet(p, packet, &h);
    r = emu_wire_hello_parse(packet->bytes + EMU_WIRE_HEADER_BYTES, &hello);
    if (r != EMU_WIRE_OK) {
        refuse(t, p, refusal_name(r));
        return false;
    }
    p->stats.control_received++;
    if (h.type == EMU_WIRE_HELLO)
        take_hello(p, &hello);
    else
        take_proof(p, &hello);
    if (p->state == EMU_PEER_UP && p->n_early > 0)
        take_early(p);
    return false;
}

/* ---- rounds ---- */

static void take_sent(struct emu_packet *packet, int result)
{
    struct emu_peer *p = packet->peer;
    bool is_current = packet->epoch == p->epoch && p->state == EMU_PEER_UP;

    if (packet->op.kind == EMU_OP_CONTROL) {
        push(&p->control, packet);
    } else {
        give_back(p, packet);
        if (is_current)
            p->in_flight--;
    }
    if (is_current && result < 0) {
        say(p->t, EMU_LOG_DEBUG, "host %u: sending failed: %s", p->host, strerror(-result));
        emu_peer_end(p, -ECONNRESET);
    }
    emu_peer_list(p);
}

static void take_event(struct emu_transport *t, const struct emu_carrier_event *event)
{
    struct emu_packet *packet;

    switch (event->op->kind) {
    case EMU_OP_PACKET:
    case EMU_OP_CONTROL:
        take_sent((struct emu_packet *)event->op, event->result);
        break;
    case EMU_OP_RECEIVE:
        packet = (struct emu_packet *)event->op;
        if (event->result == -EMSGSIZE)
            refuse(t, NULL, "too long");
        if (event->result < 0 || !take(t, packet, event->length_bytes))
            post(t, packet);
        break;
    case EMU_OP_SLICE:
        emu_transfer_slice_done((struct emu_slice *)event->op, event->result);
        break;
    default:
        break;
    }
}

/* What there is to do for a peer that something happened to. */
static void serve(struct emu_peer *p)
{
    struct emu_transport *t = p->t;

    if (p->state == EMU_PEER_ENDING) {
        finish_ending(p);
        return;
    }
    if (p->state != EMU_PEER_UP)
        return;
    flush(p);
    emu_transfer_answer(p);
    emu_transfer_advance(p);
    if (p->state != EMU_PEER_UP)
        return;
    flush(p);
    if (p->state != EMU_PEER_UP)
        return;
    if (p->owes_heartbeat || p->rx_consumed + t->credits - p->rx_told >= t->credits / 2)
        p->owes_heartbeat = !send_control(p, EMU_WIRE_DATA, NULL);
    if (p->owes_heartbeat && p->state == EMU_PEER_UP) {
        p->must_retry = true;
        emu_peer_list(p);
    }
    if (p->wants_room && p->state == EMU_PEER_UP && p->n_free >= EMU_TX_PACKETS / 4) {
        p->wants_room = false;
        if (t->events->room)
            t->events->room(t->owner, p->host);
    }
}

static void tick_peer(struct emu_peer *p)
{
    struct emu_transport *t = p->t;
    uint64_t now_ns = t->now_ns;

    switch (p->state) {
    case EMU_PEER_JOINING:
        if (now_ns - p->joined_ns > t->join_timeout_ns) {
            emu_peer_end(p, p->cause ? p->cause : -ETIMEDOUT);
        } else if (now_ns >= p->next_hello_ns) {
            send_hello(p);
            p->next_hello_ns = now_ns + (now_ns - p->joined_ns < HELLO_SOON_UNTIL_NS ? HELLO_SOON_NS : HELLO_LATER_NS);
        }
        break;
    case EMU_PEER_UP:
        if (now_ns - p->last_heard_ns > t->timeout_ns) {
            say(t, EMU_LOG_DEBUG, "host %u: silent for %llu ms, %llu packets of %llu granted sent, %u and %u under way", p->host,
                (unsigned long long)((now_ns - p->last_heard_ns) / 1000000), (unsigned long long)p->tx_packets,
                (unsigned long long)p->tx_granted, p->in_flight, p->n_slices);
            emu_peer_end(p, -ETIMEDOUT);
        } else if (now_ns - p->last_sent_ns >= t->timeout_ns / 5) {
            p->owes_heartbeat = !send_control(p, EMU_WIRE_DATA, NULL);
        }
        break;
    default:
        break;
    }
}

static void arm_timer(struct emu_transport *t)
{
    struct itimerspec when = { .it_value = { .tv_sec = (time_t)(t->next_tick_ns / SECOND_NS),
                                             .tv_nsec = (long)(t->next_tick_ns % SECOND_NS) } };

    timerfd_settime(t->timer_fd, TFD_TIMER_ABSTIME, &when, NULL);
}

/* This process did not run for so long, which is nobody's silence. */
static void forgive(struct emu_transport *t, uint64_t pause_ns)
{
    for (uint32_t i = 0; i < t->n_hosts; i++) {
        struct emu_peer *p = t->peers[i];

        if (!p)
            continue;
        p->joined_ns += pause_ns;
        p->last_heard_ns += pause_ns;
        if (p->joined_ns > t->now_ns)
            p->joined_ns = t->now_ns;
        if (p->last_heard_ns > t->now_ns)
            p->last_heard_ns = t->now_ns;
    }
}

/* Time does its work: hellos, heartbeats, silence. */
static void tick(struct emu_transport *t)
{
    uint64_t step_ns = t->timeout_ns / 10;

    for (struct emu_packet *packet = t->unposted.first; packet;) {
        struct emu_packet *next = packet->next;

        pop(&t->unposted);
        post(t, packet);
        packet = next;
    }
    for (uint32_t i = 0; i < t->n_hosts; i++) {
        struct emu_peer *p = t->peers[i];

        if (!p)
            continue;
        tick_peer(p);
        if (p->state == EMU_PEER_JOINING && p->next_hello_ns - t->now_ns < step_ns)
            step_ns = p->next_hello_ns - t->now_ns;
        if ((p->is_listed || p->state == EMU_PEER_ENDING) && step_ns > RETRY_NS)
            step_ns = RETRY_NS;
    }
    t->next_tick_ns = t->now_ns + step_ns;
    arm_timer(t);
}

static int transport_progress(struct emu_transport *t)
{
    struct emu_carrier_event events[POLL_BATCH];
    uint64_t now_ns = emu_clock_ns();
    uint64_t gap_ns = now_ns - t->now_ns;
    struct emu_peer *p;
    int n_events = 0;

    t->now_ns = now_ns;
    if (gap_ns > t->timeout_ns / 5)
        forgive(t, gap_ns);
    for (int round = 0; round < POLL_ROUNDS; round++) {
        int n = t->carrier->ops->poll(t->carrier, events, POLL_BATCH);

        for (int i = 0; i < n; i++)
            take_event(t, &events[i]);
        if (n > 0)
            n_events += n;
        if (n < POLL_BATCH)
            break;
    }
    p = t->listed;
    t->listed = NULL;
    while (p) {
        struct emu_peer *next = p->next_listed;

        p->is_listed = false;
        serve(p);
        p = next;
    }
    if (now_ns >= t->next_tick_ns)
        tick(t);
    else if (t->listed && t->next_tick_ns > now_ns + RETRY_NS) {
        t->next_tick_ns = now_ns + RETRY_NS;
        arm_timer(t);
    }
    return n_events;
}

/* Is anybody listed who can go on at once? Who waits for room in the carrier, or for its last RMA, cannot. */
static bool has_work(const struct emu_transport *t)
{
    for (const struct emu_peer *p = t->listed; p; p = p->next_listed) {
        if (!p->must_retry && !(p->state == EMU_PEER_ENDING && p->n_rma > 0))
            return true;
    }
    return false;
}

static bool transport_may_sleep(struct emu_transport *t)
{
    return !has_work(t) && t->limits.fd >= 0 && t->carrier->ops->may_sleep(t->carrier);
}

static int transport_fd(struct emu_transport *t)
{
    return t->epoll_fd;
}

/* ---- joining and leaving ---- */

/* Its length. */
static uint32_t write_blob(const struct emu_transport *t, uint32_t host, uint64_t incarnation, const uint8_t *address,
                           uint32_t length, uint8_t *at)
{
    memset(at, 0, BLOB_HEAD_BYTES);
    at = emu_wire_put32(at, BLOB_MAGIC);
    at = emu_wire_put16(at, EMU_WIRE_VERSION);
    at = emu_wire_put16(at, (uint16_t)length);
    at = emu_wire_put32(at, host);
    at = emu_wire_put64(at, incarnation);
    strncpy((char *)at, t->limits.provider, EMU_TRANSPORT_NAME_MAX - 1);
    memcpy(at + EMU_TRANSPORT_NAME_MAX, address, length);
    return BLOB_HEAD_BYTES + length;
}

static int transport_address(struct emu_transport *t, void *blob_out, uint32_t *length_out)
{
    uint8_t address[EMU_CARRIER_ADDRESS_MAX];
    uint32_t length;
    int r = t->carrier->ops->address(t->carrier, address, &length);

    if (r < 0)
        return r;
    *length_out = write_blob(t, t->host, t->incarnation, address, length, blob_out);
    return 0;
}

static int transport_address_of(struct emu_transport *t, uint32_t host, const char *node, const char *service,
                                void *blob_out, uint32_t *length_out)
{
    uint8_t address[EMU_CARRIER_ADDRESS_MAX];
    uint32_t length;
    int r = t->carrier->ops->resolve ? t->carrier->ops->resolve(t->carrier, node, service, address, &length) : -ENOSYS;

    if (r < 0)
        return r;
    *length_out = write_blob(t, host, 0, address, length, blob_out);
    return 0;
}

/* 0, or -EINVAL. */
static int read_blob(struct emu_transport *t, uint32_t host, const uint8_t *blob, uint32_t length_bytes,
                     uint64_t *incarnation_out)
{
    char provider[EMU_TRANSPORT_NAME_MAX];

    if (length_bytes <= BLOB_HEAD_BYTES || length_bytes > EMU_TRANSPORT_BLOB_MAX || emu_wire_get32(blob) != BLOB_MAGIC ||
        (blob[4] << 8 | blob[5]) != (int)EMU_WIRE_VERSION || BLOB_HEAD_BYTES + (blob[6] << 8 | blob[7]) != length_bytes ||
        emu_wire_get32(blob + 8) != host) {
        say(t, EMU_LOG_ERROR, "host %u: its address is none, or of another version", host);
        return -EINVAL;
    }
    memcpy(provider, blob + 20, sizeof(provider));
    provider[sizeof(provider) - 1] = '\0';
    if (strcmp(provider, t->limits.provider) != 0) {
        say(t, EMU_LOG_ERROR, "host %u uses another provider than %s", host, t->limits.provider);
        return -EINVAL;
    }
    *incarnation_out = emu_wire_get64(blob + 12);
    return 0;
}

/* The peer's packets: to be sent, without records, and posted for all. */
static int make_packets(struct emu_peer *p)
{
    struct emu_transport *t = p->t;
    uint32_t n = EMU_TX_PACKETS + EMU_CONTROL_PACKETS + EMU_SPARE_PACKETS + t->credits;
    size_t bytes = (size_t)n * EMU_WIRE_PACKET_MAX;
    int r;

    p->packets = calloc(n, sizeof(*p->packets));
    if (!p->packets)
        return -ENOMEM;
    p->block = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p->block == MAP_FAILED) {
        free(p->packets);
        return -ENOMEM;
    }
    r = t->carrier->ops->map(t->carrier, p->block, bytes, 0, 0, &p->memory);
    if (r < 0) {
        munmap(p->block, bytes);
        free(p->packets);
        return r;
    }
    for (uint32_t i = 0; i < n; i++) {
        struct emu_packet *packet = &p->packets[i];

        packet->peer = p;
        packet->bytes = p->block + (size_t)i * EMU_WIRE_PACKET_MAX;
        packet->desc = p->memory.desc;
        if (i < EMU_TX_PACKETS) {
            packet->op.kind = EMU_OP_PACKET;
            give_back(p, packet);
        } else if (i < EMU_TX_PACKETS + EMU_CONTROL_PACKETS) {
            packet->op.kind = EMU_OP_CONTROL;
            push(&p->control, packet);
        } else {
            packet->op.kind = EMU_OP_RECEIVE;
            post(t, packet);
        }
    }
    return 0;
}

static void free_peer(struct emu_peer *p)
{
    uint32_t n = EMU_TX_PACKETS + EMU_CONTROL_PACKETS + EMU_SPARE_PACKETS + p->t->credits;

    munmap(p->block, (size_t)n * EMU_WIRE_PACKET_MAX);
    free(p->packets);
    emu_crypt_wipe(p, sizeof(*p));
    free(p);
}

static int make_peer(struct emu_transport *t, uint32_t host, struct emu_peer **peer_out)
{
    struct emu_peer *p = calloc(1, sizeof(*p));
    int r;

    if (!p)
        return -ENOMEM;
    p->t = t;
    p->host = host;
    for (uint32_t i = 0; i < EMU_SLICES; i++) {
        p->slices[i].op.kind = EMU_OP_SLICE;
        p->slices[i].peer = p;
    }
    r = make_packets(p);
    if (r < 0) {
        free(p);
        return r;
    }
    t->peers[host] = p;
    *peer_out = p;
    return 0;
}

static int transport_join(struct emu_transport *t, uint32_t host, const void *blob, uint32_t length_bytes)
{
    struct emu_peer *p = peer_of(t, host);
    uint64_t incarnation;
    int r;

    if (host >= t->n_hosts || host == t->host)
        return -EINVAL;
    r = read_blob(t, host, blob, length_bytes, &incarnation);
    if (r < 0)
        return r;
    if (p && p->state != EMU_PEER_ABSENT)
        return -EBUSY;
    if (p && incarnation != 0 && incarnation < p->last_incarnation)
        return -ESTALE;
    if (!p)
        r = make_peer(t, host, &p);
    if (r == 0)
        r = t->carrier->ops->add(t->carrier, (const uint8_t *)blob + BLOB_HEAD_BYTES, length_bytes - BLOB_HEAD_BYTES, &p->addr);
    if (r < 0)
        return r;
    p->incarnation = incarnation;
    if (incarnation != 0)
        p->last_incarnation = incarnation;
    p->mine = (struct emu_crypt_side){ .host = t->host, .features = t->uses_rma ? EMU_WIRE_HAS_RMA : 0, .credits = t->credits,
                                       .incarnation = t->incarnation };
    emu_crypt_random(p->mine.nonce, sizeof(p->mine.nonce));
    memset(&p->theirs, 0, sizeof(p->theirs));
    p->epoch++;
    p->cause = 0;
    p->owes_heartbeat = false;
    p->must_retry = false;
    p->state = EMU_PEER_JOINING;
    p->joined_ns = p->next_hello_ns = t->now_ns = emu_clock_ns();
    t->next_tick_ns = t->now_ns;
    arm_timer(t);
    return 0;
}

static int transport_leave(struct emu_transport *t, uint32_t host)
{
    struct emu_peer *p = peer_of(t, host);

    if (!p || (p->state != EMU_PEER_JOINING && p->state != EMU_PEER_UP))
        return -ENOTCONN;
    if (p->state == EMU_PEER_UP)
        send_control(p, EMU_WIRE_GOODBYE, NULL);
    emu_peer_end(p, -ECANCELED);
    return 0;
}

static int transport_resume(struct emu_transport *t, uint32_t host)
{
    struct emu_peer *p = peer_of(t, host);

    if (!p || p->state != EMU_PEER_UP)
        return -ENOTCONN;
    p->is_paused = false;
    deliver(p);
    return 0;
}

/* ---- opening and closing ---- */

static int check_config(const struct emu_transport_config *config)
{
    if (config->n_hosts == 0 || config->n_hosts > EMU_WIRE_HOSTS_MAX || config->host >= config->n_hosts || !config->key ||
        config->key_bytes < EMU_TRANSPORT_KEY_MIN || !config->events || !config->events->message ||
        config->credits > EMU_WIRE_CREDITS_MAX || config->credits == 1)
        return -EINVAL;
    return 0;
}

static int open_waiting(struct emu_transport *t)
{
    struct epoll_event event = { .events = EPOLLIN };

    t->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    if (t->epoll_fd < 0)
        return -errno;
    t->timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);
    if (t->timer_fd < 0)
        return -errno;
    if (epoll_ctl(t->epoll_fd, EPOLL_CTL_ADD, t->timer_fd, &event) < 0)
        return -errno;
    if (t->limits.fd >= 0 && epoll_ctl(t->epoll_fd, EPOLL_CTL_ADD, t->limits.fd, &event) < 0)
        return -errno;
    return 0;
}

static void transport_close(struct emu_transport *t)
{
    if (!t)
        return;
    for (uint32_t i = 0; t->peers && i < t->n_hosts; i++) {
        if (t->peers[i] && t->peers[i]->state == EMU_PEER_UP)
            send_control(t->peers[i], EMU_WIRE_GOODBYE, NULL);
        if (t->peers[i])
            t->carrier->ops->unmap(t->carrier, &t->peers[i]->memory);
    }
    emu_regions_free(t);
    t->carrier->ops->close(t->carrier);
    for (uint32_t i = 0; t->peers && i < t->n_hosts; i++) {
        if (t->peers[i])
            free_peer(t->peers[i]);
    }
    if (t->epoll_fd >= 0)
        close(t->epoll_fd);
    if (t->timer_fd >= 0)
        close(t->timer_fd);
    for (uint32_t i = 0; t->transfers && i < t->n_transfers; i++)
        free(t->transfers[i].notice);
    free(t->transfers);
    free(t->peers);
    emu_crypt_wipe(t, sizeof(*t));
    free(t);
}

int emu_transport_open_over(const struct emu_transport_config *config, struct emu_carrier *carrier,
                            struct emu_transport **transport_out)
{
    struct emu_transport *t = calloc(1, sizeof(*t));
    int r;

    if (!t) {
        carrier->ops->close(carrier);
        return -ENOMEM;
    }
    t->carrier = carrier;
    carrier->ops->limits(carrier, &t->limits);
    t->events = config->events;
    t->owner = config->owner;
    t->host = config->host;
    t->n_hosts = config->n_hosts;
    t->incarnation = config->incarnation;
    t->credits = config->credits ? config->credits : 32;
    t->n_transfers = config->n_transfers ? config->n_transfers : 1024;
    t->timeout_ns = config->timeout_ns ? config->timeout_ns : 5 * SECOND_NS;
    t->join_timeout_ns = config->join_timeout_ns ? config->join_timeout_ns : 30 * SECOND_NS;
    t->uses_rma = t->limits.has_rma && !config->is_rma_off;
    t->epoll_fd = t->timer_fd = -1;
    t->now_ns = emu_clock_ns();
    r = check_config(config);
    if (r == 0)
        r = emu_crypt_init();
    if (r == 0) {
        emu_crypt_key(config->key, config->key_bytes, t->key);
        t->peers = calloc(t->n_hosts, sizeof(t->peers[0]));
        t->transfers = calloc(t->n_transfers, sizeof(*t->transfers));
        r = t->peers && t->transfers ? open_waiting(t) : -ENOMEM;
    }
    if (r < 0) {
        transport_close(t);
        return r;
    }
    for (uint32_t i = 0; i < t->n_transfers; i++) {
        t->transfers[i].next = t->free_transfers;
        t->free_transfers = &t->transfers[i];
    }
    *transport_out = t;
    return 0;
}

static int transport_open(const struct emu_transport_config *config, struct emu_transport **transport_out)
{
    struct emu_carrier *carrier;
    const char *text;
    char line[128];
    int r = check_config(config);

    if (r == 0)
        r = emu_ofi_open(config, &carrier, &text);
    else
        return r;
    if (r < 0) {
        if (config->events->log) {
            snprintf(line, sizeof(line), "no transport: %s: %s", text, strerror(-r));
            config->events->log(config->owner, EMU_LOG_ERROR, line);
        }
        return r;
    }
    return emu_transport_open_over(config, carrier, transport_out);
}

/* ---- looking ---- */

static int transport_stats(struct emu_transport *t, uint32_t host, struct emu_transport_stats *stats_out)
{
    struct emu_peer *p = peer_of(t, host);

    if (host >= t->n_hosts)
        return -EINVAL;
    *stats_out = p ? p->stats : (struct emu_transport_stats){ 0 };
    stats_out->state = p ? p->state : EMU_PEER_ABSENT;
    return 0;
}

static void transport_info(struct emu_transport *t, struct emu_transport_info *info_out)
{
    *info_out = (struct emu_transport_info){ .has_rma = t->uses_rma, .can_sleep = t->limits.fd >= 0, .refused = t->refused };
    snprintf(info_out->provider, sizeof(info_out->provider), "%s", t->limits.provider);
    snprintf(info_out->domain, sizeof(info_out->domain), "%s", t->limits.domain);
}

__attribute__((visibility("default"))) const struct emu_transport_ops emu_transport_ops = {
    .version = EMU_TRANSPORT_OPS_VERSION,
    .open = transport_open,
    .close = transport_close,
    .address = transport_address,
    .address_of = transport_address_of,
    .join = transport_join,
    .leave = transport_leave,
    .send = transport_send,
    .send_later = transport_send_later,
    .push = transport_push,
    .resume = transport_resume,
    .region_create = emu_region_create,
    .region_destroy = emu_region_destroy,
    .region_remote = emu_region_remote,
    .put = emu_transfer_put,
    .get = emu_transfer_get,
    .progress = transport_progress,
    .fd = transport_fd,
    .may_sleep = transport_may_sleep,
    .stats = transport_stats,
    .info = transport_info,
};
