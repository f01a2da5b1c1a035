/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Packets between the emunics of two hosts (emunic/transport).
 *
 *   byte 0        64                          length - 16
 *        | header | body                      | tag |
 *
 * In a session that both sides have begun as secure, the body of EMU_WIRE_DATA is encrypted (transport/envelope.h); the
 * rest of this page is about what it is before and after.
 *
 * Everything is in network byte order. A packet is EMU_WIRE_HELLO or EMU_WIRE_PROOF (body: struct emu_wire_hello, tag
 * zero: a proof carries its own MAC), EMU_WIRE_DATA (body: records) or EMU_WIRE_GOODBYE (no body). A record is 8
 * bytes of kind and length, then its body, then zeroes up to a multiple of 8. Bodies of all kinds but a message begin
 * with struct emu_wire_piece.
 *
 * Whoever receives trusts nothing: emu_wire_header_parse() and emu_wire_record_next() take a packet only if each
 * field is in its bounds and what is reserved is zero. They read each byte once into host-order structures. Who sent
 * it is shown by the tag only, which transport checks between the two.
 *
 * A change of anything here raises EMU_WIRE_VERSION. Magic, version and the numbers of the hosts stay where they are,
 * so that different versions can tell each other so.
 */
#ifndef EMUNIC_ABI_WIRE_H
#define EMUNIC_ABI_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "emunic/abi/fields.h"

#define EMU_WIRE_MAGIC   0x454d5750u /* "EMWP" */
#define EMU_WIRE_VERSION 3u

#define EMU_WIRE_HEADER_BYTES 64u
#define EMU_WIRE_TAG_BYTES    16u
#define EMU_WIRE_RECORD_BYTES 8u
#define EMU_WIRE_PIECE_BYTES  32u
#define EMU_WIRE_NONCE_BYTES  32u
#define EMU_WIRE_PROOF_BYTES  32u
#define EMU_WIRE_HELLO_BYTES  (32u + 2 * EMU_WIRE_NONCE_BYTES + EMU_WIRE_PROOF_BYTES)

/* A little less than the 16 KiB that layers of libfabric send without a rendezvous. */
#define EMU_WIRE_PACKET_MAX  16000u
#define EMU_WIRE_BODY_MAX    (EMU_WIRE_PACKET_MAX - EMU_WIRE_HEADER_BYTES - EMU_WIRE_TAG_BYTES)
#define EMU_WIRE_MESSAGE_MAX (EMU_WIRE_BODY_MAX - EMU_WIRE_RECORD_BYTES)
#define EMU_WIRE_PIECE_MAX   (EMU_WIRE_MESSAGE_MAX - EMU_WIRE_PIECE_BYTES) /* data of one piece */

#define EMU_WIRE_HOSTS_MAX   65536u
#define EMU_WIRE_CREDITS_MAX 1024u

enum emu_wire_type {
    EMU_WIRE_HELLO = 1, /* here is a number that nobody could foresee */
    EMU_WIRE_PROOF,     /* yours and mine, and a MAC of both with the job's key */
    EMU_WIRE_DATA,
    EMU_WIRE_GOODBYE,
    EMU_WIRE_TYPES,
};

enum emu_wire_kind {
    EMU_WIRE_MESSAGE = 1,
    EMU_WIRE_PUT,  /* a piece, and its data */
    EMU_WIRE_GET,  /* a piece that is wanted */
    EMU_WIRE_GOT,  /* a piece that was wanted, and its data */
    EMU_WIRE_DONE, /* end of a put, or of a get that failed; `length` is 0 or an errno */
    EMU_WIRE_KINDS,
};

/* Features in a hello. */
#define EMU_WIRE_HAS_RMA  1u /* remote memory access of the provider; used if both have it */
#define EMU_WIRE_SECURE   2u /* bodies are encrypted: of both sides or of none; nonces are public keys of X25519 then */
#define EMU_WIRE_HAS_AES  4u /* instructions for AES-GCM; used if both have them */
#define EMU_WIRE_FEATURES (EMU_WIRE_HAS_RMA | EMU_WIRE_SECURE | EMU_WIRE_HAS_AES)

struct emu_wire_header {
    uint32_t magic;
    uint16_t version;
    uint8_t type;
    uint8_t reserved;
    uint32_t length; /* bytes of the packet */
    uint32_t from;   /* host numbers */
    uint32_t to;
    uint32_t n_records; /* of EMU_WIRE_DATA */
    uint64_t session;   /* follows from both nonces and the key; 0 in hello and proof */
    uint64_t sequence;  /* of all packets of the session, from 1; 0 in hello and proof */
    uint64_t granted;   /* packets with records that the receiver of this one may have sent by now */
    uint64_t position;  /* which packet with records of the stream this is, from 1; 0 if it has none */
    uint64_t received;  /* packets with records that the sender of this one has of the receiver's stream */
};

struct emu_wire_hello {
    uint64_t incarnation; /* of the sender */
    uint32_t features;
    uint32_t credits;  /* packets with records that it takes before it has granted any */
    uint64_t stream;   /* in a proof: session whose streams it can go on with; 0: none, or a hello */
    uint64_t received; /* of that stream */
    uint8_t nonce[EMU_WIRE_NONCE_BYTES];
    uint8_t echo[EMU_WIRE_NONCE_BYTES];  /* the receiver's nonce; zero in a hello */
    uint8_t proof[EMU_WIRE_PROOF_BYTES]; /* zero in a hello */
};

struct emu_wire_piece {
    uint64_t id;     /* chosen by the initiator, unique among its pieces under way */
    uint64_t key;    /* of the target's region */
    uint64_t offset; /* in it */
    uint64_t length; /* bytes of data: of those that follow, or that are wanted */
};

struct emu_wire_record {
    uint8_t kind;
    uint32_t length;     /* of what follows the record's head, without padding */
    const uint8_t *data; /* a message's bytes, or a piece's */
    struct emu_wire_piece piece;
};

/* Why a packet was refused. */
enum emu_wire_result {
    EMU_WIRE_OK = 0,
    EMU_WIRE_SHORT,   /* no room for a header */
    EMU_WIRE_FOREIGN, /* not our magic */
    EMU_WIRE_OTHER_VERSION,
    EMU_WIRE_BAD_LENGTH,
    EMU_WIRE_BAD_FIELD,
    EMU_WIRE_BAD_RECORD,
};

static const struct emu_field emu_wire_header_fields[] = {
    EMU_FIELD(struct emu_wire_header, magic),    EMU_FIELD(struct emu_wire_header, version),
    EMU_FIELD(struct emu_wire_header, type),     EMU_FIELD(struct emu_wire_header, reserved),
    EMU_FIELD(struct emu_wire_header, length),   EMU_FIELD(struct emu_wire_header, from),
    EMU_FIELD(struct emu_wire_header, to),       EMU_FIELD(struct emu_wire_header, n_records),
    EMU_FIELD(struct emu_wire_header, session),  EMU_FIELD(struct emu_wire_header, sequence),
    EMU_FIELD(struct emu_wire_header, granted),  EMU_FIELD(struct emu_wire_header, position),
    EMU_FIELD(struct emu_wire_header, received),
};

/* Magic and version are put in. */
static inline void emu_wire_header_put(uint8_t *packet, const struct emu_wire_header *h)
{
    struct emu_wire_header header = *h;

    header.magic = EMU_WIRE_MAGIC;
    header.version = EMU_WIRE_VERSION;
    header.reserved = 0;
    emu_fields_put(packet, EMU_FIELDS(emu_wire_header_fields), &header);
}

/*
 * Header of a packet of which `length` bytes have arrived. With EMU_WIRE_OTHER_VERSION, EMU_WIRE_BAD_LENGTH and
 * EMU_WIRE_BAD_FIELD the output shows what the packet says of version and hosts; with the others it is untouched.
 */
static inline enum emu_wire_result emu_wire_header_parse(const uint8_t *packet, size_t length,
                                                         struct emu_wire_header *header_out)
{
    struct emu_wire_header h;
    bool is_greeting;

    if (length < EMU_WIRE_HEADER_BYTES + EMU_WIRE_TAG_BYTES)
        return EMU_WIRE_SHORT;
    emu_fields_parse(packet, EMU_FIELDS(emu_wire_header_fields), &h);
    if (h.magic != EMU_WIRE_MAGIC)
        return EMU_WIRE_FOREIGN;
    *header_out = h;
    if (h.version != EMU_WIRE_VERSION)
        return EMU_WIRE_OTHER_VERSION;
    if (h.length != length || length > EMU_WIRE_PACKET_MAX)
        return EMU_WIRE_BAD_LENGTH;
    if (h.reserved != 0 || h.type == 0 || h.type >= EMU_WIRE_TYPES || h.from >= EMU_WIRE_HOSTS_MAX ||
        h.to >= EMU_WIRE_HOSTS_MAX || h.from == h.to)
        return EMU_WIRE_BAD_FIELD;
    is_greeting = h.type == EMU_WIRE_HELLO || h.type == EMU_WIRE_PROOF;
    if (is_greeting && (h.n_records || h.session || h.sequence || h.granted || h.received))
        return EMU_WIRE_BAD_FIELD;
    if ((h.n_records == 0) != (h.position == 0))
        return EMU_WIRE_BAD_FIELD;
    if (!is_greeting && (h.session == 0 || h.sequence == 0))
        return EMU_WIRE_BAD_FIELD;
    if (is_greeting && length != EMU_WIRE_HEADER_BYTES + EMU_WIRE_HELLO_BYTES + EMU_WIRE_TAG_BYTES)
        return EMU_WIRE_BAD_LENGTH;
    if (h.type != EMU_WIRE_DATA && h.n_records != 0)
        return EMU_WIRE_BAD_FIELD;
    if (!is_greeting && h.n_records == 0 && length != EMU_WIRE_HEADER_BYTES + EMU_WIRE_TAG_BYTES)
        return EMU_WIRE_BAD_LENGTH;
    return EMU_WIRE_OK;
}

static const struct emu_field emu_wire_hello_fields[] = {
    EMU_FIELD(struct emu_wire_hello, incarnation),
    EMU_FIELD_BITS(struct emu_wire_hello, features, EMU_WIRE_FEATURES),
    EMU_FIELD_RANGE(struct emu_wire_hello, credits, 1, EMU_WIRE_CREDITS_MAX),
    EMU_FIELD(struct emu_wire_hello, stream),
    EMU_FIELD(struct emu_wire_hello, received),
    EMU_FIELD_BYTES(struct emu_wire_hello, nonce),
    EMU_FIELD_BYTES(struct emu_wire_hello, echo),
    EMU_FIELD_BYTES(struct emu_wire_hello, proof),
};

static inline void emu_wire_hello_put(uint8_t *body, const struct emu_wire_hello *hello)
{
    emu_fields_put(body, EMU_FIELDS(emu_wire_hello_fields), hello);
}

/* Of a packet whose header was taken. Bounds only: a proof is checked by whoever has the key. */
static inline enum emu_wire_result emu_wire_hello_parse(const uint8_t *body, struct emu_wire_hello *hello_out)
{
    struct emu_wire_hello hello;

    if (!emu_fields_parse(body, EMU_FIELDS(emu_wire_hello_fields), &hello))
        return EMU_WIRE_BAD_FIELD;
    *hello_out = hello;
    return EMU_WIRE_OK;
}

static const struct emu_field emu_wire_piece_fields[] = {
    EMU_FIELD(struct emu_wire_piece, id),
    EMU_FIELD(struct emu_wire_piece, key),
    EMU_FIELD(struct emu_wire_piece, offset),
    EMU_FIELD(struct emu_wire_piece, length),
};

static const struct emu_field emu_wire_record_fields[] = {
    EMU_FIELD_RANGE(struct emu_wire_record, kind, 1, EMU_WIRE_KINDS - 1),
    EMU_FIELD_ZERO(1),
    EMU_FIELD_ZERO(2),
    EMU_FIELD_RANGE(struct emu_wire_record, length, 1, EMU_WIRE_MESSAGE_MAX),
};

/* Bytes that a record with a body of `length` takes. */
static inline uint32_t emu_wire_record_space(uint32_t length)
{
    return EMU_WIRE_RECORD_BYTES + ((length + 7) & ~7u);
}

/* Writes a record's head and its padding; returns where its body goes. */
static inline uint8_t *emu_wire_record_put(uint8_t *at, enum emu_wire_kind kind, uint32_t length)
{
    struct emu_wire_record record = { .kind = (uint8_t)kind, .length = length };

    emu_fields_put(at, EMU_FIELDS(emu_wire_record_fields), &record);
    if (length % 8)
        memset(at + EMU_WIRE_RECORD_BYTES + length, 0, 8 - length % 8);
    return at + EMU_WIRE_RECORD_BYTES;
}

static inline uint8_t *emu_wire_piece_put(uint8_t *at, const struct emu_wire_piece *piece)
{
    return emu_fields_put(at, EMU_FIELDS(emu_wire_piece_fields), piece);
}

/*
 * Takes the record at *at_bytes of a body of `body_bytes` and moves *at_bytes behind it. Anything that a correct sender
 * would not write is EMU_WIRE_BAD_RECORD. `data` points into the body.
 */
static inline enum emu_wire_result emu_wire_record_next(const uint8_t *body, uint32_t body_bytes, uint32_t *at_bytes,
                                                        struct emu_wire_record *record_out)
{
    const uint8_t *head = body + *at_bytes;
    struct emu_wire_record r = { 0 };
    uint32_t left = body_bytes - *at_bytes;
    uint32_t space;
    bool has_data;

    if (left < EMU_WIRE_RECORD_BYTES || !emu_fields_parse(head, EMU_FIELDS(emu_wire_record_fields), &r) ||
        emu_wire_record_space(r.length) > left)
        return EMU_WIRE_BAD_RECORD;
    r.data = head + EMU_WIRE_RECORD_BYTES;
    space = emu_wire_record_space(r.length);
    if (r.kind == EMU_WIRE_MESSAGE) {
        *at_bytes += space;
        *record_out = r;
        return EMU_WIRE_OK;
    }
    if (r.length < EMU_WIRE_PIECE_BYTES)
        return EMU_WIRE_BAD_RECORD;
    emu_fields_parse(r.data, EMU_FIELDS(emu_wire_piece_fields), &r.piece);
    r.data += EMU_WIRE_PIECE_BYTES;
    r.length -= EMU_WIRE_PIECE_BYTES;
    has_data = r.kind == EMU_WIRE_PUT || r.kind == EMU_WIRE_GOT;
    if (has_data ? r.length == 0 || r.piece.length != r.length : r.length != 0)
        return EMU_WIRE_BAD_RECORD;
    if (r.kind == EMU_WIRE_GET && (r.piece.length == 0 || r.piece.length > EMU_WIRE_PIECE_MAX))
        return EMU_WIRE_BAD_RECORD;
    if (r.piece.offset + r.piece.length < r.piece.offset)
        return EMU_WIRE_BAD_RECORD;
    *at_bytes += space;
    *record_out = r;
    return EMU_WIRE_OK;
}

#endif
