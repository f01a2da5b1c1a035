/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Portals between hosts: what EMU_HOST_PORTALS messages (abi/host_message.h) say.
 *
 *   initiator's emunic                    target's emunic
 *        REQUEST  --------------------->    matches, begins
 *        DATA     <--- WANT, if the data of a put do not fit the request
 *                 <---------------------  ANSWER: delivered, or not taken; of a get with the first of its data
 *        WANT     ---> DATA, if there are more data of a get than fit the answer
 *        DONE     --------------------->    such a get has ended
 *
 *   byte 0      8    9   10  11  12      16
 *        | head | op | a | b | 0 | bytes | what the op says | `bytes` of data, if it has any |
 *
 * Whoever is to have data asks for them, so nobody gets more than he has room for. Requests have a number of the
 * initiator's emunic, those with data to be asked for also one of the target's; a message names the receiver's number.
 */
#ifndef EMUNIC_ABI_HOST_PORTALS_H
#define EMUNIC_ABI_HOST_PORTALS_H

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "emunic/abi/host_message.h"
#include "emunic/abi/portals.h"

enum emu_host_portals_op {
    EMU_HOST_PTL_REQUEST = 1,
    EMU_HOST_PTL_ANSWER,
    EMU_HOST_PTL_WANT,
    EMU_HOST_PTL_DATA,
    EMU_HOST_PTL_DONE,
    EMU_HOST_PTL_OPS
};

#define EMU_HOST_PTL_HEAD_BYTES    16u
#define EMU_HOST_PTL_REQUEST_BYTES 88u
#define EMU_HOST_PTL_ANSWER_BYTES  48u
#define EMU_HOST_PTL_WANT_BYTES    40u
#define EMU_HOST_PTL_DATA_BYTES    32u
#define EMU_HOST_PTL_DONE_BYTES    24u
#define EMU_HOST_PTL_PART_BYTES    15360u /* data of one message */
static_assert(EMU_HOST_PTL_REQUEST_BYTES + EMU_HOST_PTL_PART_BYTES <= EMU_HOST_MESSAGE_MAX, "a part fits a message");
static_assert(EMU_HOST_PTL_PART_BYTES >= EMU_PTL_GETPUT_MAX, "so do the operands of a swap");

#define EMU_HOST_PTL_FAIL_MAX EMU_STATUS_BAD_COMMAND /* of `fail` */

/* The op of a message; 0: it is none. */
static inline unsigned emu_host_portals_op(const uint8_t *message, uint32_t length_bytes)
{
    if (length_bytes < EMU_HOST_PTL_HEAD_BYTES || message[8] >= EMU_HOST_PTL_OPS || message[11] != 0)
        return 0;
    return message[8];
}

/* ---- REQUEST: a: kind, b: flags ---- */

#define EMU_HOST_PTL_WANTS_ACK (1u << 0)
#define EMU_HOST_PTL_LOSES_END (1u << 1) /* its END event is to be lost: an injected fault */
#define EMU_HOST_PTL_FLAGS     3u

enum emu_host_portals_kind { EMU_HOST_PTL_PUT, EMU_HOST_PTL_GET, EMU_HOST_PTL_GETPUT, EMU_HOST_PTL_KINDS };

struct emu_host_portals_request {
    uint32_t domain;
    uint8_t kind;      /* enum emu_host_portals_kind */
    uint8_t flags;     /* EMU_HOST_PTL_* */
    uint64_t id;       /* the initiator's */
    uint32_t from_nid; /* physical, as to_nid */
    uint32_t from_pid;
    uint32_t from_uid;
    uint32_t from_jid;
    uint32_t to_nid;
    uint32_t to_pid;
    uint32_t pt;
    uint32_t ac;
    uint64_t bits;
    uint64_t offset;
    uint64_t length_bytes;
    uint64_t hdr_data;
    uint32_t data_bytes; /* the first of a put's, all of a getput's */
    const uint8_t *data; /* of the parser */
};

/* How much of its data goes with a request. */
static inline uint32_t emu_host_portals_first_bytes(unsigned kind, uint64_t length_bytes)
{
    if (kind == EMU_HOST_PTL_GET)
        return 0;
    return length_bytes < EMU_HOST_PTL_PART_BYTES ? (uint32_t)length_bytes : EMU_HOST_PTL_PART_BYTES;
}

static const struct emu_field emu_host_portals_request_fields[] = {
    EMU_FIELD_VALUE(1, EMU_HOST_PTL_REQUEST),
    EMU_FIELD_RANGE(struct emu_host_portals_request, kind, 0, EMU_HOST_PTL_KINDS - 1),
    EMU_FIELD_BITS(struct emu_host_portals_request, flags, EMU_HOST_PTL_FLAGS),
    EMU_FIELD_ZERO(1),
    EMU_FIELD(struct emu_host_portals_request, data_bytes),
    EMU_FIELD(struct emu_host_portals_request, id),
    EMU_FIELD(struct emu_host_portals_request, from_nid),
    EMU_FIELD_RANGE(struct emu_host_portals_request, from_pid, 0, EMU_PTL_PID_LAST),
    EMU_FIELD(struct emu_host_portals_request, from_uid),
    EMU_FIELD(struct emu_host_portals_request, from_jid),
    EMU_FIELD(struct emu_host_portals_request, to_nid),
    EMU_FIELD_RANGE(struct emu_host_portals_request, to_pid, 0, EMU_PTL_PID_LAST),
    EMU_FIELD(struct emu_host_portals_request, pt),
    EMU_FIELD(struct emu_host_portals_request, ac),
    EMU_FIELD(struct emu_host_portals_request, bits),
    EMU_FIELD(struct emu_host_portals_request, offset),
    EMU_FIELD(struct emu_host_portals_request, length_bytes),
    EMU_FIELD(struct emu_host_portals_request, hdr_data),
};

/* Without the data. */
static inline uint8_t *emu_host_portals_request_put(uint8_t message[EMU_HOST_PTL_REQUEST_BYTES],
                                                    const struct emu_host_portals_request *r)
{
    uint8_t *at = emu_host_head_put(message, EMU_HOST_PORTALS, r->domain);

    return emu_fields_put(at, EMU_FIELDS(emu_host_portals_request_fields), r);
}

/* False: no emunic sends that. Portal and access index are the engine's to judge. */
static inline bool emu_host_portals_request_parse(const uint8_t *message, uint32_t length_bytes,
                                                  struct emu_host_portals_request *request_out)
{
    struct emu_host_portals_request r;

    if (length_bytes < EMU_HOST_PTL_REQUEST_BYTES ||
        !emu_fields_parse(message + EMU_HOST_HEAD_BYTES, EMU_FIELDS(emu_host_portals_request_fields), &r) ||
        (r.kind == EMU_HOST_PTL_GETPUT && r.length_bytes > EMU_PTL_GETPUT_MAX) ||
        r.data_bytes != emu_host_portals_first_bytes(r.kind, r.length_bytes) ||
        length_bytes != EMU_HOST_PTL_REQUEST_BYTES + r.data_bytes)
        return false;
    r.domain = emu_host_domain_of(message);
    r.data = message + EMU_HOST_PTL_REQUEST_BYTES;
    *request_out = r;
    return true;
}

/* ---- ANSWER: a: flags, b: fail ---- */

#define EMU_HOST_PTL_TAKEN   (1u << 0)
#define EMU_HOST_PTL_ACKS    (1u << 1) /* there is to be an ACK event */
#define EMU_HOST_PTL_GOES_ON (1u << 2) /* a get: more is to be asked for at `number`, until DONE */
#define EMU_HOST_PTL_RESULTS 7u

struct emu_host_portals_answer {
    uint32_t domain;
    uint8_t flags;   /* EMU_HOST_PTL_* */
    uint8_t fail;    /* enum emu_status */
    uint64_t id;     /* the initiator's */
    uint64_t number; /* the target's */
    uint32_t uid;    /* who has answered */
    uint32_t jid;
    uint64_t mlength;
    uint32_t data_bytes;
    const uint8_t *data; /* of the parser */
};

static const struct emu_field emu_host_portals_answer_fields[] = {
    EMU_FIELD_VALUE(1, EMU_HOST_PTL_ANSWER),
    EMU_FIELD_BITS(struct emu_host_portals_answer, flags, EMU_HOST_PTL_RESULTS),
    EMU_FIELD_RANGE(struct emu_host_portals_answer, fail, 0, EMU_HOST_PTL_FAIL_MAX),
    EMU_FIELD_ZERO(1),
    EMU_FIELD_RANGE(struct emu_host_portals_answer, data_bytes, 0, EMU_HOST_PTL_PART_BYTES),
    EMU_FIELD(struct emu_host_portals_answer, id),
    EMU_FIELD(struct emu_host_portals_answer, number),
    EMU_FIELD(struct emu_host_portals_answer, uid),
    EMU_FIELD(struct emu_host_portals_answer, jid),
    EMU_FIELD(struct emu_host_portals_answer, mlength),
};

/* Without the data. */
static inline uint8_t *emu_host_portals_answer_put(uint8_t message[EMU_HOST_PTL_ANSWER_BYTES],
                                                   const struct emu_host_portals_answer *a)
{
    uint8_t *at = emu_host_head_put(message, EMU_HOST_PORTALS, a->domain);

    return emu_fields_put(at, EMU_FIELDS(emu_host_portals_answer_fields), a);
}

static inline bool emu_host_portals_answer_parse(const uint8_t *message, uint32_t length_bytes,
                                                 struct emu_host_portals_answer *answer_out)
{
    struct emu_host_portals_answer a;

    if (length_bytes < EMU_HOST_PTL_ANSWER_BYTES ||
        !emu_fields_parse(message + EMU_HOST_HEAD_BYTES, EMU_FIELDS(emu_host_portals_answer_fields), &a) ||
        a.data_bytes > a.mlength || length_bytes != EMU_HOST_PTL_ANSWER_BYTES + a.data_bytes)
        return false;
    if (!(a.flags & EMU_HOST_PTL_TAKEN) && (a.flags != 0 || a.mlength != 0))
        return false;
    a.domain = emu_host_domain_of(message);
    a.data = message + EMU_HOST_PTL_ANSWER_BYTES;
    *answer_out = a;
    return true;
}

/*
 * ---- WANT and DATA ----
 *
 * Both: a is EMU_HOST_PTL_AT_TARGET or 0. WANT: `bytes` are wanted, no data. DATA: b is fail, data follow if it is 0.
 */

#define EMU_HOST_PTL_AT_TARGET 1u /* the number is one of the target's emunic, not of the initiator's */

struct emu_host_portals_part {
    uint32_t domain;
    bool is_at_target;
    uint8_t fail;    /* DATA */
    uint64_t to;     /* the receiver's number */
    uint64_t from;   /* WANT: the sender's, for DATA */
    uint64_t offset; /* from the first byte of the operation on */
    uint32_t part_bytes;
    const uint8_t *data; /* DATA, of the parser */
};

static const struct emu_field emu_host_portals_want_fields[] = {
    EMU_FIELD_VALUE(1, EMU_HOST_PTL_WANT),
    EMU_FIELD_BITS(struct emu_host_portals_part, is_at_target, EMU_HOST_PTL_AT_TARGET),
    EMU_FIELD_ZERO(1),
    EMU_FIELD_ZERO(1),
    EMU_FIELD_RANGE(struct emu_host_portals_part, part_bytes, 1, EMU_HOST_PTL_PART_BYTES),
    EMU_FIELD(struct emu_host_portals_part, to),
    EMU_FIELD(struct emu_host_portals_part, from),
    EMU_FIELD(struct emu_host_portals_part, offset),
};

static const struct emu_field emu_host_portals_data_fields[] = {
    EMU_FIELD_VALUE(1, EMU_HOST_PTL_DATA),
    EMU_FIELD_BITS(struct emu_host_portals_part, is_at_target, EMU_HOST_PTL_AT_TARGET),
    EMU_FIELD_RANGE(struct emu_host_portals_part, fail, 0, EMU_HOST_PTL_FAIL_MAX),
    EMU_FIELD_ZERO(1),
    EMU_FIELD_RANGE(struct emu_host_portals_part, part_bytes, 1, EMU_HOST_PTL_PART_BYTES),
    EMU_FIELD(struct emu_host_portals_part, to),
    EMU_FIELD(struct emu_host_portals_part, offset),
};

static inline void emu_host_portals_want_put(uint8_t message[EMU_HOST_PTL_WANT_BYTES],
                                             const struct emu_host_portals_part *p)
{
    uint8_t *at = emu_host_head_put(message, EMU_HOST_PORTALS, p->domain);

    emu_fields_put(at, EMU_FIELDS(emu_host_portals_want_fields), p);
}

/* Without the data. */
static inline void emu_host_portals_data_put(uint8_t message[EMU_HOST_PTL_DATA_BYTES],
                                             const struct emu_host_portals_part *p)
{
    uint8_t *at = emu_host_head_put(message, EMU_HOST_PORTALS, p->domain);

    emu_fields_put(at, EMU_FIELDS(emu_host_portals_data_fields), p);
}

/* Of both. */
static inline bool emu_host_portals_part_parse(const uint8_t *message, uint32_t length_bytes,
                                               struct emu_host_portals_part *part_out)
{
    const uint8_t *fields = message + EMU_HOST_HEAD_BYTES;
    struct emu_host_portals_part p = { 0 };
    uint32_t bytes;

    if (emu_host_portals_op(message, length_bytes) == EMU_HOST_PTL_WANT) {
        if (length_bytes < EMU_HOST_PTL_WANT_BYTES ||
            !emu_fields_parse(fields, EMU_FIELDS(emu_host_portals_want_fields), &p))
            return false;
        bytes = EMU_HOST_PTL_WANT_BYTES;
    } else {
        if (length_bytes < EMU_HOST_PTL_DATA_BYTES ||
            !emu_fields_parse(fields, EMU_FIELDS(emu_host_portals_data_fields), &p))
            return false;
        bytes = EMU_HOST_PTL_DATA_BYTES + (p.fail ? 0 : p.part_bytes);
    }
    if (length_bytes != bytes)
        return false;
    p.domain = emu_host_domain_of(message);
    p.data = message + EMU_HOST_PTL_DATA_BYTES;
    *part_out = p;
    return true;
}

/* ---- DONE: b: fail ---- */

struct emu_host_portals_done {
    uint32_t domain;
    uint8_t fail;
    uint64_t to;
};

static const struct emu_field emu_host_portals_done_fields[] = {
    EMU_FIELD_VALUE(1, EMU_HOST_PTL_DONE),
    EMU_FIELD_ZERO(1),
    EMU_FIELD_RANGE(struct emu_host_portals_done, fail, 0, EMU_HOST_PTL_FAIL_MAX),
    EMU_FIELD_ZERO(1),
    EMU_FIELD_ZERO(4),
    EMU_FIELD(struct emu_host_portals_done, to),
};

static inline void emu_host_portals_done_put(uint8_t message[EMU_HOST_PTL_DONE_BYTES],
                                             const struct emu_host_portals_done *d)
{
    uint8_t *at = emu_host_head_put(message, EMU_HOST_PORTALS, d->domain);

    emu_fields_put(at, EMU_FIELDS(emu_host_portals_done_fields), d);
}

static inline bool emu_host_portals_done_parse(const uint8_t *message, uint32_t length_bytes,
                                               struct emu_host_portals_done *done_out)
{
    struct emu_host_portals_done d;

    if (length_bytes != EMU_HOST_PTL_DONE_BYTES ||
        !emu_fields_parse(message + EMU_HOST_HEAD_BYTES, EMU_FIELDS(emu_host_portals_done_fields), &d))
        return false;
    d.domain = emu_host_domain_of(message);
    *done_out = d;
    return true;
}

#endif
