/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sessions with peers: handshake, silence, other connections, ends. transport.h has the model.
 *
 * A side that is up has a nonce ready for the next handshake. One whose connection is broken or silent mends it: it
 * says hello with that nonce over a new connection, and tries yet another every tenth of the timeout. Proofs tell then
 * which streams the side can go on with, and how much of the peer's it has. Whoever holds a proof that echoes its own
 * nonce and names the same streams changes over to the new session, with new keys and numbers, and sends again what is
 * missing (stream.c). A proof without streams comes from a side that has lost them: that ends the session. So does the
 * timeout, which no hello or proof puts off.
 *
 * A peer that was killed does not answer, nor does one behind a cut, but its host does: it refuses connections to an
 * address at which nobody listens. While it mends, a side asks for that every twentieth of the timeout. REFUSALS in a
 * row, without another answer or none between them, mean that the peer is gone. A single one might be somebody's on
 * the way.
 *
 * An end (emu_peer_end) only marks and lists; callbacks about it come in the round, so that nothing disappears under a
 * caller's feet.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "emunic/base/clock.h"
#include "emunic/transport/inner.h"

#define HELLO_SOON_NS       10000000ull
#define HELLO_LATER_NS      100000000ull
#define HELLO_AGAIN_NS      1000000ull /* the carrier is about to connect */
#define HELLO_SOON_UNTIL_NS 1000000000ull
#define MEND_AFTER(t)       ((t)->timeout_ns / 5 * 2) /* of silence; each side says something every tenth of it */
#define MEND_EVERY(t)       ((t)->timeout_ns / 10)
#define ASK_EVERY(t)        ((t)->timeout_ns / 20)
#define REFUSALS            3u

/* ---- ends ---- */

void emu_peer_end(struct emu_peer *p, int cause)
{
    if (p->state != EMU_PEER_JOINING && p->state != EMU_PEER_UP)
        return;
    p->state = EMU_PEER_ENDING;
    p->cause = cause;
    p->epoch++;
    p->path++;
    p->is_mending = false;
    p->ending_ns = p->t->now_ns;
    p->n_answers = 0;
    emu_stream_end(p);
    p->t->carrier->ops->remove(p->t->carrier, p->addr);
    emu_crypt_wipe(&p->session, sizeof(p->session));
    emu_crypt_wipe(&p->mine, sizeof(p->mine));
    emu_crypt_wipe(&p->next, sizeof(p->next));
    emu_peer_list(p);
}

static void drop_early(struct emu_peer *p)
{
    for (struct emu_packet *packet; (packet = emu_packet_pop(&p->early));)
        emu_transport_post(p->t, packet);
    p->n_early = 0;
}

/* Once the carrier has given back what it had of the peer's transfers, or took too long. */
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

static uint32_t features_of(const struct emu_transport *t)
{
    uint32_t features = t->uses_rma ? EMU_WIRE_HAS_RMA : 0;

    if (t->is_secure)
        features |= EMU_WIRE_SECURE | (t->has_aes ? EMU_WIRE_HAS_AES : 0);
    return features;
}

static void draw_side(const struct emu_transport *t, struct emu_crypt_side *side_out)
{
    *side_out = (struct emu_crypt_side){
        .host = t->host, .features = features_of(t), .credits = t->credits, .incarnation = t->incarnation
    };
    emu_crypt_draw(side_out);
}

void emu_session_offer(struct emu_peer *p)
{
    struct emu_transport *t = p->t;

    draw_side(t, &p->mine);
    memset(&p->theirs, 0, sizeof(p->theirs));
    p->epoch++;
    p->path++;
    p->previous = p->stream = 0;
    p->cause = 0;
    p->owes_heartbeat = false;
    p->must_retry = false;
    p->state = EMU_PEER_JOINING;
    p->joined_ns = p->next_hello_ns = t->now_ns = emu_clock_ns();
}

static bool send_hello(struct emu_peer *p, const struct emu_crypt_side *mine)
{
    struct emu_wire_hello hello = { .incarnation = mine->incarnation,
                                    .features = mine->features,
                                    .credits = mine->credits };

    memcpy(hello.nonce, mine->nonce, sizeof(hello.nonce));
    return emu_stream_control(p, EMU_WIRE_HELLO, &hello);
}

/* `mine` is the handshake's, with the streams that it goes on with. */
static bool send_proof(struct emu_peer *p, struct emu_crypt_side *mine, const uint8_t nonce[EMU_WIRE_NONCE_BYTES])
{
    struct emu_wire_hello hello = { .incarnation = mine->incarnation,
                                    .features = mine->features,
                                    .credits = mine->credits };

    mine->received = mine->stream ? p->rx_packets : 0;
    hello.stream = mine->stream;
    hello.received = mine->received;
    memcpy(hello.nonce, mine->nonce, sizeof(hello.nonce));
    memcpy(hello.echo, nonce, sizeof(hello.echo));
    emu_crypt_prove(p->t->key, mine, nonce, p->host, hello.proof);
    return emu_stream_control(p, EMU_WIRE_PROOF, &hello);
}

static bool is_expected(const struct emu_peer *p, uint64_t incarnation)
{
    return p->incarnation != 0 ? incarnation == p->incarnation : incarnation >= p->last_incarnation;
}

/* One of us is secure and the other is not: told once per join. */
static void part_ways(struct emu_peer *p)
{
    struct emu_transport *t = p->t;

    if (p->state == EMU_PEER_JOINING && p->cause != -EOPNOTSUPP && t->events->secure_differs)
        t->events->secure_differs(t->owner, p->host);
    if (p->state == EMU_PEER_JOINING)
        p->cause = -EOPNOTSUPP;
}

static bool is_as_secure(struct emu_peer *p, const struct emu_wire_hello *hello)
{
    if (!(hello->features & EMU_WIRE_SECURE) == !p->t->is_secure)
        return true;
    emu_transport_refuse(p->t, p, p->t->is_secure ? "without --secure" : "with --secure");
    part_ways(p);
    return false;
}

static void take_hello(struct emu_peer *p, const struct emu_wire_hello *hello)
{
    if (!is_as_secure(p, hello))
        return;
    if (!is_expected(p, hello->incarnation))
        emu_transport_refuse(p->t, p, "of another incarnation");
    else if (p->state == EMU_PEER_UP && memcmp(hello->nonce, p->theirs.nonce, sizeof(hello->nonce)) != 0)
        send_proof(p, &p->next, hello->nonce);
    else
        send_proof(p, &p->mine, hello->nonce);
}

static void ask(struct emu_peer *p, bool is_wanted)
{
    const struct emu_carrier *c = p->t->carrier;

    if (c->ops->ask)
        c->ops->ask(p->t->carrier, p->addr, is_wanted);
    p->is_asked = c->ops->ask && is_wanted;
}

/* Both sides have what makes the session of `mine` and p->theirs. False: they have not. */
static bool begin_session(struct emu_peer *p, const struct emu_crypt_side *mine)
{
    if (!emu_crypt_session(p->t->key, mine, &p->theirs, &p->session)) {
        emu_transport_refuse(p->t, p, "a proof without a public key");
        emu_peer_end(p, -EPROTO);
        return false;
    }
    p->mine = *mine;
    emu_crypt_wipe(p->mine.secret, sizeof(p->mine.secret));
    draw_side(p->t, &p->next);
    if (p->is_mending)
        ask(p, false);
    p->is_mending = false;
    p->last_heard_ns = p->last_sent_ns = p->t->now_ns;
    p->stats.sessions++;
    return true;
}

/* The peer has proved itself once more, in answer to our next nonce. */
static void go_on(struct emu_peer *p, const struct emu_crypt_side *theirs)
{
    struct emu_transport *t = p->t;

    if (theirs->stream != p->stream || theirs->incarnation != p->theirs.incarnation ||
        theirs->received < p->tx_received || theirs->received > p->tx_packets) {
        emu_transport_say(t, EMU_LOG_DEBUG, "host %u has lost the session", p->host);
        emu_peer_end(p, -ECONNRESET);
        return;
    }
    /* A peer that we did not say hello to has got that nonce by our proof. */
    if (p->is_mending && !send_proof(p, &p->next, theirs->nonce))
        return;
    p->theirs = *theirs;
    p->previous = p->session.id;
    if (!begin_session(p, &p->next))
        return;
    p->next.stream = p->stream;
    emu_transport_say(t, EMU_LOG_INFO, "host %u: goes on over another connection", p->host);
    emu_stream_go_on(p, theirs->received);
    if (t->events->peer_moved)
        t->events->peer_moved(t->owner, p->host);
}

static void take_proof(struct emu_peer *p, const struct emu_wire_hello *hello)
{
    struct emu_transport *t = p->t;
    struct emu_crypt_side theirs = { .host = p->host,
                                     .features = hello->features,
                                     .credits = hello->credits,
                                     .incarnation = hello->incarnation,
                                     .stream = hello->stream,
                                     .received = hello->received };
    bool is_mine = memcmp(hello->echo, p->mine.nonce, sizeof(hello->echo)) == 0;
    bool is_next = p->state == EMU_PEER_UP && memcmp(hello->echo, p->next.nonce, sizeof(hello->echo)) == 0;

    if (!is_as_secure(p, hello))
        return;
    memcpy(theirs.nonce, hello->nonce, sizeof(theirs.nonce));
    if ((!is_mine && !is_next) || !is_expected(p, hello->incarnation)) {
        emu_transport_refuse(t, p, "a proof of another handshake");
        return;
    }
    if (!emu_crypt_is_proof(t->key, &theirs, hello->echo, t->host, hello->proof)) {
        p->cause = p->state == EMU_PEER_JOINING ? -EACCES : 0;
        emu_transport_refuse(t, p, "a proof with another key");
        return;
    }
    if (is_next)
        go_on(p, &theirs);
    if (p->state != EMU_PEER_JOINING)
        return;
    /* The other side must have our proof before anything else of the session, or to see that its session is over. */
    if (!send_proof(p, &p->mine, hello->nonce) || theirs.stream != 0)
        return;
    p->theirs = theirs;
    p->last_incarnation = theirs.incarnation;
    p->state = EMU_PEER_UP;
    p->cause = 0;
    if (!begin_session(p, &p->mine))
        return;
    p->stream = p->next.stream = p->session.id;
    emu_stream_begin(p);
    emu_transport_say(t, EMU_LOG_INFO, "host %u joined, incarnation %llu", p->host,
                      (unsigned long long)theirs.incarnation);
    if (t->events->peer_up)
        t->events->peer_up(t->owner, p->host);
}

/* ---- packets ---- */

/*
 * A packet of a session that we do not know yet: a provider that connects both ways at once may bring it before the
 * proof that was sent first. True: it is held.
 */
static bool keep_early(struct emu_peer *p, struct emu_packet *packet, uint64_t session)
{
    bool is_known = p->state == EMU_PEER_UP && (!p->is_mending || session == p->session.id || session == p->previous);

    if (is_known || p->n_early == EMU_EARLY_PACKETS)
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
    if (r == EMU_WIRE_OTHER_VERSION && p && p->state == EMU_PEER_JOINING)
        p->cause = -EPROTONOSUPPORT;
    if (r == EMU_WIRE_OK && h.to != t->host)
        r = EMU_WIRE_BAD_FIELD;
    if (r == EMU_WIRE_OTHER_VERSION) {
        char why[64];

        snprintf(why, sizeof(why), "of version %u, we speak %u", h.version, EMU_WIRE_VERSION);
        emu_transport_refuse(t, p, why);
        return false;
    }
    if (r != EMU_WIRE_OK || !p) {
        emu_transport_refuse(t, p, r == EMU_WIRE_OK ? "not expected" : refusal_name(r));
        return false;
    }
    if (h.type == EMU_WIRE_DATA || h.type == EMU_WIRE_GOODBYE)
        return keep_early(p, packet, h.session) || emu_stream_take(p, packet, &h);
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
    if (p->state == EMU_PEER_UP && !p->is_mending && p->n_early > 0)
        take_early(p);
    return false;
}

/* ---- silence ---- */

void emu_session_mend(struct emu_peer *p, const char *why)
{
    struct emu_transport *t = p->t;

    if (p->state != EMU_PEER_UP || p->is_mending)
        return;
    emu_transport_say(
        t, EMU_LOG_DEBUG, "host %u: %s: another connection; %llu packets of %llu granted sent, %u and %u under way",
        p->host, why, (unsigned long long)p->tx_packets, (unsigned long long)p->tx_granted, p->in_flight, p->n_slices);
    p->is_mending = true;
    p->has_path = false;
    p->path++;
    p->in_flight = 0;
    p->must_retry = false;
    p->next_hello_ns = t->now_ns;
    p->next_path_ns = t->now_ns + MEND_EVERY(t);
    p->asked_path_ns = 0;
    p->next_ask_ns = t->now_ns;
    p->n_refusals = 0;
    p->is_asked = false;
    emu_transport_hurry(t);
}

/* Of a peer that does not answer: does nobody listen at its address any more? */
static bool is_gone(struct emu_peer *p)
{
    struct emu_transport *t = p->t;
    int r = p->is_asked ? t->carrier->ops->answer(t->carrier, p->addr) : -EAGAIN;

    if (r != -EAGAIN) {
        p->n_refusals = r == -ECONNREFUSED ? p->n_refusals + 1 : 0;
        p->is_asked = false;
    }
    if (p->n_refusals >= REFUSALS)
        return true;
    if (t->now_ns >= p->next_ask_ns) {
        if (p->is_asked)
            p->n_refusals = 0;
        ask(p, true);
        p->next_ask_ns = t->now_ns + ASK_EVERY(t);
    }
    return false;
}

static void take_another_path(struct emu_peer *p)
{
    struct emu_transport *t = p->t;
    int r = t->carrier->ops->renew(t->carrier, p->addr);
    uint64_t cost_ns;

    if (p->asked_path_ns == 0)
        p->asked_path_ns = t->now_ns;
    t->now_ns = emu_clock_ns(); /* if it took our time, that is no excuse for the peer's silence */
    if (r == -EAGAIN) {
        p->next_path_ns = t->now_ns + HELLO_SOON_NS;
        return;
    }
    /* What takes long to make is given long. */
    cost_ns = t->now_ns - p->asked_path_ns;
    p->asked_path_ns = 0;
    if (r < 0 && r != -ENOSYS)
        emu_transport_say(t, EMU_LOG_DEBUG, "host %u: no other connection: %s", p->host, strerror(-r));
    p->path++;
    p->has_path = false;
    p->next_path_ns = t->now_ns + (4 * cost_ns > MEND_EVERY(t) ? 4 * cost_ns : MEND_EVERY(t));
}

/* A peer whose carrier does not let us in, nor we its: told once per reason. */
static void hear_verdict(struct emu_peer *p)
{
    struct emu_carrier *carrier = p->t->carrier;
    const char *reason;
    int verdict = carrier->ops->verdict ? carrier->ops->verdict(carrier, p->addr, &reason) : 0;

    if (verdict == 0)
        return;
    p->stats.refused++;
    if (verdict == -EOPNOTSUPP) {
        part_ways(p);
        return;
    }
    if (verdict != p->cause)
        emu_transport_say(p->t, EMU_LOG_WARN, "host %u: no connection: %s", p->host, reason);
    p->cause = verdict;
}

static void tick_joining(struct emu_peer *p)
{
    struct emu_transport *t = p->t;
    bool is_soon = t->now_ns - p->joined_ns < HELLO_SOON_UNTIL_NS;

    if (t->now_ns - p->joined_ns > t->join_timeout_ns) {
        emu_peer_end(p, p->cause ? p->cause : -ETIMEDOUT);
    } else if (t->now_ns >= p->next_hello_ns) {
        bool is_sent = send_hello(p, &p->mine);

        if (!is_sent)
            hear_verdict(p);
        p->next_hello_ns = t->now_ns + (!is_soon ? HELLO_LATER_NS : is_sent ? HELLO_SOON_NS : HELLO_AGAIN_NS);
    }
}

static void tick_up(struct emu_peer *p)
{
    struct emu_transport *t = p->t;
    uint64_t silence_ns = t->now_ns - p->last_heard_ns;

    if (p->is_mending && is_gone(p)) {
        emu_transport_say(t, EMU_LOG_DEBUG, "host %u: nobody listens there any more", p->host);
        emu_peer_end(p, -ECONNREFUSED);
        return;
    }
    if (silence_ns > t->timeout_ns) {
        emu_transport_say(t, EMU_LOG_DEBUG, "host %u: silent for %llu ms", p->host,
                          (unsigned long long)(silence_ns / 1000000));
        emu_peer_end(p, -ETIMEDOUT);
        return;
    }
    if (silence_ns > MEND_AFTER(t) && !p->is_mending) {
        emu_session_mend(p, "silent");
        /* Another path takes long to make: first the answer whether anybody listens there. */
        p->next_path_ns = t->now_ns + ASK_EVERY(t);
    }
    if (!p->is_mending) {
        if (t->now_ns - p->last_sent_ns >= t->timeout_ns / 10)
            p->owes_heartbeat = !emu_stream_control(p, EMU_WIRE_DATA, NULL);
        return;
    }
    if (t->now_ns >= p->next_path_ns && p->n_refusals == 0)
        take_another_path(p);
    if (t->now_ns >= p->next_hello_ns) {
        bool is_sent = send_hello(p, &p->next);

        p->next_hello_ns = t->now_ns + (is_sent ? HELLO_SOON_NS : HELLO_AGAIN_NS);
        if (is_sent && !p->has_path) /* it is connected: the answer may take longer */
            p->next_path_ns += MEND_EVERY(t);
        p->has_path = p->has_path || is_sent;
    }
}

void emu_session_tick(struct emu_peer *p)
{
    if (p->state == EMU_PEER_JOINING)
        tick_joining(p);
    else if (p->state == EMU_PEER_UP)
        tick_up(p);
}
