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

static inline uint8_t *emu_host_portals_head_put(uint8_t *message, uint32_t domain, enum emu_host_portals_op op,
                                                 uint8_t a, uint8_t b, uint32_t bytes)
{
    uint8_t *at = emu_host_head_put(message, EMU_HOST_PORTALS, domain);

    *at++ = (uint8_t)op;
    *at++ = a;
    *at++ = b;
    *at++ = 0;
    return emu_wire_put32(at, bytes);
}

/* The op of a message; 0: it is none. */
static inline unsigned emu_host_portals_op(const uint8_t *message, uint32_t length_bytes)
{
    if (length_bytes < EMU_HOST_PTL_HEAD_BYTES || message[8] >= EMU_HOST_PTL_OPS || message[11] != 0)
        return 0;
    return message[8];
}

static inline uint32_t emu_host_portals_bytes(const uint8_t *message)
{
    return emu_wire_get32(message + 12);
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

/* Without the data. */
static inline uint8_t *emu_host_portals_request_put(uint8_t message[EMU_HOST_PTL_REQUEST_BYTES],
                                                    const struct emu_host_portals_request *r)
{
    const uint32_t words[] = { r->from_nid, r->from_pid, r->from_uid, r->from_jid, r->to_nid, r->to_pid, r->pt, r->ac };
    const uint64_t longs[] = { r->bits, r->offset, r->length_bytes, r->hdr_data };
    uint8_t *at = emu_host_portals_head_put(message, r->domain, EMU_HOST_PTL_REQUEST, r->kind, r->flags, r->data_bytes);

    at = emu_wire_put64(at, r->id);
    for (unsigned i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        at = emu_wire_put32(at, words[i]);
    for (unsigned i = 0; i < sizeof(longs) / sizeof(longs[0]); i++)
        at = emu_wire_put64(at, longs[i]);
    return at;
}

/* False: no emunic sends that. Portal and access index are the engine's to judge. */
static inline bool emu_host_portals_request_parse(const uint8_t *message, uint32_t length_bytes,
                                                  struct emu_host_portals_request *request_out)
{
    struct emu_host_portals_request r = { 0 };
    uint32_t *const words[] = {
        &r.from_nid, &r.from_pid, &r.from_uid, &r.from_jid, &r.to_nid, &r.to_pid, &r.pt, &r.ac
    };
    uint64_t *const longs[] = { &r.bits, &r.offset, &r.length_bytes, &r.hdr_data };

    if (emu_host_portals_op(message, length_bytes) != EMU_HOST_PTL_REQUEST || length_bytes < EMU_HOST_PTL_REQUEST_BYTES)
        return false;
    r.domain = emu_wire_get32(message + 4);
    r.kind = message[9];
    r.flags = message[10];
    r.data_bytes = emu_host_portals_bytes(message);
    r.id = emu_wire_get64(message + 16);
    for (unsigned i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        *words[i] = emu_wire_get32(message + 24 + 4 * i);
    for (unsigned i = 0; i < sizeof(longs) / sizeof(longs[0]); i++)
        *longs[i] = emu_wire_get64(message + 56 + 8 * i);
    r.data = message + EMU_HOST_PTL_REQUEST_BYTES;
    if (r.kind >= EMU_HOST_PTL_KINDS || (r.flags & ~EMU_HOST_PTL_FLAGS) || r.from_pid > EMU_PTL_PID_LAST ||
        r.to_pid > EMU_PTL_PID_LAST || (r.kind == EMU_HOST_PTL_GETPUT && r.length_bytes > EMU_PTL_GETPUT_MAX) ||
        r.data_bytes != emu_host_portals_first_bytes(r.kind, r.length_bytes) ||
        length_bytes != EMU_HOST_PTL_REQUEST_BYTES + r.data_bytes)
        return false;
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

/* Without the data. */
static inline uint8_t *emu_host_portals_answer_put(uint8_t message[EMU_HOST_PTL_ANSWER_BYTES],
                                                   const struct emu_host_portals_answer *a)
{
    uint8_t *at = emu_host_portals_head_put(message, a->domain, EMU_HOST_PTL_ANSWER, a->flags, a->fail, a->data_bytes);

    at = emu_wire_put64(at, a->id);
    at = emu_wire_put64(at, a->number);
    at = emu_wire_put32(at, a->uid);
    at = emu_wire_put32(at, a->jid);
    return emu_wire_put64(at, a->mlength);
}

static inline bool emu_host_portals_answer_parse(const uint8_t *message, uint32_t length_bytes,
                                                 struct emu_host_portals_answer *answer_out)
{
    struct emu_host_portals_answer a = { 0 };

    if (emu_host_portals_op(message, length_bytes) != EMU_HOST_PTL_ANSWER || length_bytes < EMU_HOST_PTL_ANSWER_BYTES)
        return false;
    a.domain = emu_wire_get32(message + 4);
    a.flags = message[9];
    a.fail = message[10];
    a.data_bytes = emu_host_portals_bytes(message);
    a.id = emu_wire_get64(message + 16);
    a.number = emu_wire_get64(message + 24);
    a.uid = emu_wire_get32(message + 32);
    a.jid = emu_wire_get32(message + 36);
    a.mlength = emu_wire_get64(message + 40);
    a.data = message + EMU_HOST_PTL_ANSWER_BYTES;
    if ((a.flags & ~EMU_HOST_PTL_RESULTS) || a.fail > EMU_HOST_PTL_FAIL_MAX || a.data_bytes > EMU_HOST_PTL_PART_BYTES ||
        a.data_bytes > a.mlength || length_bytes != EMU_HOST_PTL_ANSWER_BYTES + a.data_bytes)
        return false;
    if (!(a.flags & EMU_HOST_PTL_TAKEN) && (a.flags != 0 || a.mlength != 0))
        return false;
    *answer_out = a;
    return true;
}

/* ---- WANT: a: EMU_HOST_PTL_AT_TARGET or 0; `bytes` without data. DATA: likewise; b: fail, with data if it is 0 --- */

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

static inline void emu_host_portals_want_put(uint8_t message[EMU_HOST_PTL_WANT_BYTES],
                                             const struct emu_host_portals_part *p)
{
    uint8_t *at = emu_host_portals_head_put(message, p->domain, EMU_HOST_PTL_WANT, p->is_at_target, 0, p->part_bytes);

    at = emu_wire_put64(at, p->to);
    at = emu_wire_put64(at, p->from);
    emu_wire_put64(at, p->offset);
}

/* Without the data. */
static inline void emu_host_portals_data_put(uint8_t message[EMU_HOST_PTL_DATA_BYTES],
                                             const struct emu_host_portals_part *p)
{
    uint8_t *at =
        emu_host_portals_head_put(message, p->domain, EMU_HOST_PTL_DATA, p->is_at_target, p->fail, p->part_bytes);

    at = emu_wire_put64(at, p->to);
    emu_wire_put64(at, p->offset);
}

/* Of both. */
static inline bool emu_host_portals_part_parse(const uint8_t *message, uint32_t length_bytes,
                                               struct emu_host_portals_part *part_out)
{
    unsigned op = emu_host_portals_op(message, length_bytes);
    bool is_want = op == EMU_HOST_PTL_WANT;
    struct emu_host_portals_part p = { 0 };

    if ((!is_want && op != EMU_HOST_PTL_DATA) ||
        length_bytes < (is_want ? EMU_HOST_PTL_WANT_BYTES : EMU_HOST_PTL_DATA_BYTES) ||
        message[9] > EMU_HOST_PTL_AT_TARGET || message[10] > (is_want ? 0 : EMU_HOST_PTL_FAIL_MAX))
        return false;
    p.domain = emu_wire_get32(message + 4);
    p.is_at_target = message[9] == EMU_HOST_PTL_AT_TARGET;
    p.fail = message[10];
    p.part_bytes = emu_host_portals_bytes(message);
    p.to = emu_wire_get64(message + 16);
    p.from = is_want ? emu_wire_get64(message + 24) : 0;
    p.offset = emu_wire_get64(message + (is_want ? 32 : 24));
    p.data = message + EMU_HOST_PTL_DATA_BYTES;
    if (p.part_bytes == 0 || p.part_bytes > EMU_HOST_PTL_PART_BYTES)
        return false;
    if (length_bytes != (is_want ? EMU_HOST_PTL_WANT_BYTES : EMU_HOST_PTL_DATA_BYTES + (p.fail ? 0 : p.part_bytes)))
        return false;
    *part_out = p;
    return true;
}

/* ---- DONE: b: fail ---- */

struct emu_host_portals_done {
    uint32_t domain;
    uint8_t fail;
    uint64_t to;
};

static inline void emu_host_portals_done_put(uint8_t message[EMU_HOST_PTL_DONE_BYTES],
                                             const struct emu_host_portals_done *d)
{
    emu_wire_put64(emu_host_portals_head_put(message, d->domain, EMU_HOST_PTL_DONE, 0, d->fail, 0), d->to);
}

static inline bool emu_host_portals_done_parse(const uint8_t *message, uint32_t length_bytes,
                                               struct emu_host_portals_done *done_out)
{
    if (emu_host_portals_op(message, length_bytes) != EMU_HOST_PTL_DONE || length_bytes != EMU_HOST_PTL_DONE_BYTES ||
        message[9] != 0 || message[10] > EMU_HOST_PTL_FAIL_MAX || emu_host_portals_bytes(message) != 0)
        return false;
    *done_out =
        (struct emu_host_portals_done){ emu_wire_get32(message + 4), message[10], emu_wire_get64(message + 16) };
    return true;
}

#endif
