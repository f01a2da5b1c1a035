/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sessions with peers: handshake, silence, ends. transport.h has the model.
 *
 * An end (emu_peer_end) only marks and lists; callbacks about it come in the round, so that nothing disappears under a
 * caller's feet.
 */
#include <errno.h>
#include <string.h>

#include "emunic/base/clock.h"
#include "emunic/transport/inner.h"

#define HELLO_SOON_NS    10000000ull
#define HELLO_LATER_NS   100000000ull
#define HELLO_SOON_UNTIL_NS 1000000000ull

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
        emu_stream_give_back(p, p->open);
    p->open = NULL;
    for (struct emu_packet *packet; (packet = emu_packet_pop(&p->waiting));)
        emu_stream_give_back(p, packet);
    p->t->carrier->ops->remove(p->t->carrier, p->addr);
    emu_crypt_wipe(&p->session, sizeof(p->session));
    emu_peer_list(p);
}

/* Once the carrier has given back what it had of the peer's transfers, or took too long. */
static void drop_early(struct emu_peer *p)
{
    for (struct emu_packet *packet; (packet = emu_packet_pop(&p->early));)
        emu_transport_post(p->t, packet);
    p->n_early = 0;
}

void emu_session_finish(struct emu_peer *p)
{
    struct emu_transport *t = p->t;

    if (p->n_rma > 0 && t->now_ns - p->ending_ns < t->timeout_ns / 5) {
        emu_peer_list(p);
        return;
    }
    for (struct emu_packet *packet; (packet = emu_packet_pop(&p->held));)
        emu_transport_post(t, packet);
    drop_early(p);
    emu_transfer_end_all(p, p->cause);
    p->state = EMU_PEER_ABSENT;
    emu_transport_say(t, EMU_LOG_INFO, "host %u lost: %s", p->host, strerror(-p->cause));
    if (t->events->peer_down)
        t->events->peer_down(t->owner, p->host, p->cause);
}

/* ---- handshake ---- */

void emu_session_offer(struct emu_peer *p)
{
    struct emu_transport *t = p->t;

    p->mine = (struct emu_crypt_side){ .host = t->host, .features = t->uses_rma ? EMU_WIRE_HAS_RMA : 0,
                                       .credits = t->credits, .incarnation = t->incarnation };
    emu_crypt_random(p->mine.nonce, sizeof(p->mine.nonce));
    memset(&p->theirs, 0, sizeof(p->theirs));
    p->epoch++;
    p->cause = 0;
    p->owes_heartbeat = false;
    p->must_retry = false;
    p->state = EMU_PEER_JOINING;
    p->joined_ns = p->next_hello_ns = t->now_ns = emu_clock_ns();
}

static void send_hello(struct emu_peer *p)
{
    struct emu_wire_hello hello = { .incarnation = p->mine.incarnation, .features = p->mine.features,
                                    .credits = p->mine.credits };

    memcpy(hello.nonce, p->mine.nonce, sizeof(hello.nonce));
    emu_stream_control(p, EMU_WIRE_HELLO, &hello);
}

static bool send_proof(struct emu_peer *p, const uint8_t nonce[EMU_WIRE_NONCE_BYTES])
{
    struct emu_wire_hello hello = { .incarnation = p->mine.incarnation, .features = p->mine.features,
                                    .credits = p->mine.credits };

    memcpy(hello.nonce, p->mine.nonce, sizeof(hello.nonce));
    memcpy(hello.echo, nonce, sizeof(hello.echo));
    emu_crypt_prove(p->t->key, &p->mine, nonce, p->host, hello.proof);
    return emu_stream_control(p, EMU_WIRE_PROOF, &hello);
}

static bool is_expected(const struct emu_peer *p, uint64_t incarnation)
{
    return p->incarnation != 0 ? incarnation == p->incarnation : incarnation >= p->last_incarnation;
}

static void take_hello(struct emu_peer *p, const struct emu_wire_hello *hello)
{
    if (!is_expected(p, hello->incarnation))
        emu_transport_refuse(p->t, p, "of another incarnation");
    else if (p->state == EMU_PEER_UP && memcmp(hello->nonce, p->theirs.nonce, sizeof(hello->nonce)) != 0)
        emu_transport_refuse(p->t, p, "a hello within a session");
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
        emu_transport_refuse(t, p, "a proof of another handshake");
        return;
    }
    if (!emu_crypt_is_proof(t->key, &theirs, p->mine.nonce, t->host, hello->proof)) {
        p->cause = p->state == EMU_PEER_JOINING ? -EACCES : 0;
        emu_transport_refuse(t, p, "a proof with another key");
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
    emu_transport_say(t, EMU_LOG_INFO, "host %u joined, incarnation %llu", p->host, (unsigned long long)p->incarnation);
    if (t->events->peer_up)
        t->events->peer_up(t->owner, p->host);
}

/* ---- packets ---- */

/*
 * A packet of a session that we do not know yet: a provider that connects both ways at once may bring it before the
 * proof that was sent first. True: it is held.
 */
static bool keep_early(struct emu_peer *p, struct emu_packet *packet)
{
    if (p->state != EMU_PEER_JOINING || p->n_early == EMU_EARLY_PACKETS)
        return false;
    emu_packet_push(&p->early, packet);
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
    for (struct emu_packet *packet; (packet = emu_packet_pop(&early));) {
        /* Of the length that it says, or it would not have been kept. */
        if (emu_wire_header_parse(packet->bytes, emu_wire_get32(packet->bytes + 8), &h) != EMU_WIRE_OK ||
            !emu_stream_take(p, packet, &h))
            emu_transport_post(p->t, packet);
    }
}

bool emu_session_take(struct emu_transport *t, struct emu_packet *packet, uint64_t length_bytes)
{
    struct emu_wire_header h = { .from = UINT32_MAX };
    struct emu_wire_hello hello;
    enum emu_wire_result r = emu_wire_header_parse(packet->bytes, length_bytes, &h);
    struct emu_peer *p = emu_peer_of(t, h.from);

    if (p && p->state != EMU_PEER_JOINING && p->state != EMU_PEER_UP)
        p = NULL;
    if (r == EMU_WIRE_OTHER_VERSION && p && p->state == EMU_PEER_JOINING) {
        if (p->cause != -EPROTONOSUPPORT)
            emu_transport_say(t, EMU_LOG_ERROR, "host %u speaks version %u, we speak %u", p->host, h.version,
                              EMU_WIRE_VERSION);
        p->cause = -EPROTONOSUPPORT;
    }
    if (r == EMU_WIRE_OK && h.to != t->host)
        r = EMU_WIRE_BAD_FIELD;
    if (r != EMU_WIRE_OK || !p) {
        emu_transport_refuse(t, p, r == EMU_WIRE_OK ? "not expected" : refusal_name(r));
        return false;
    }
    if (h.type == EMU_WIRE_DATA || h.type == EMU_WIRE_GOODBYE)
        return keep_early(p, packet) || emu_stream_take(p, packet, &h);
    r = emu_wire_hello_parse(packet->bytes + EMU_WIRE_HEADER_BYTES, &hello);
    if (r != EMU_WIRE_OK) {
        emu_transport_refuse(t, p, refusal_name(r));
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

/* ---- silence ---- */

void emu_session_tick(struct emu_peer *p)
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
            emu_transport_say(t, EMU_LOG_DEBUG,
                              "host %u: silent for %llu ms, %llu packets of %llu granted sent, %u and %u under way",
                              p->host, (unsigned long long)((now_ns - p->last_heard_ns) / 1000000),
                              (unsigned long long)p->tx_packets, (unsigned long long)p->tx_granted, p->in_flight,
                              p->n_slices);
            emu_peer_end(p, -ETIMEDOUT);
        } else if (now_ns - p->last_sent_ns >= t->timeout_ns / 5) {
            p->owes_heartbeat = !emu_stream_control(p, EMU_WIRE_DATA, NULL);
        }
        break;
    default:
        break;
    }
}
