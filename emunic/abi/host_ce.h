/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * EMU_HOST_CE: what emunics tell each other of reduction trees (emunic/daemon/ce/ce_hosts.c).
 *
 *   byte 0      8    9       10       11      12         16       20        22      24             32
 *        | head | op | flags | status | child | from_nid | to_nid | from_ce | to_ce | from_version | to_version |
 *        | number | poster | red_id | operand1 | operand2 | op | flags | fpe | status | n | list, n x 8 bytes |
 *   byte 40       48       56       64         72         80   81      82    83       84  88
 *
 * Network byte order, as all messages. `from` is an engine, or a node, of the sender's host, `to` an engine of the
 * receiver's. A version is that of an engine's configuration, never used twice by a host and never 0. From byte 56 to
 * 83 there is a struct emu_ce_value. What an operation does not use is 0.
 */
#ifndef EMUNIC_ABI_HOST_CE_H
#define EMUNIC_ABI_HOST_CE_H

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>

#include "emunic/abi/ce.h"
#include "emunic/abi/event.h"
#include "emunic/abi/host_message.h"

#define EMU_HOST_CE_BYTES    88u
#define EMU_HOST_CE_LIST_MAX (EMU_CE_CHILDREN_MAX + 1) /* STATE: children and parent */
#define EMU_HOST_CE_MAX      (EMU_HOST_CE_BYTES + 8u * EMU_HOST_CE_LIST_MAX)
static_assert(EMU_HOST_CE_MAX <= EMU_HOST_MESSAGE_MAX, "a list fits a message");

enum emu_host_ce_op {
    EMU_HOST_CE_BEGIN = 1, /* the sender knows nothing of the domain's trees */
    EMU_HOST_CE_STATE,     /* from: how it is now. list: its links to engines; number: to be acknowledged, or 0 */
    EMU_HOST_CE_GONE,      /* from: is no more. number: as above */
    EMU_HOST_CE_KNOWN,     /* number: of a STATE or GONE that was taken */
    EMU_HOST_CE_BROKEN,    /* from is broken (status), and so is to, if that is its version; 0: has no UP of it */
    EMU_HOST_CE_WANT,      /* from, the parent, waits for to */
    EMU_HOST_CE_UP,        /* partial result of from, for its parent */
    EMU_HOST_CE_DOWN,      /* result of from, for its child */
    EMU_HOST_CE_POST,      /* contribution of a leaf; list: its instance and process */
    EMU_HOST_CE_TAKEN,     /* number: of a POST. status: it was taken, or why not */
    EMU_HOST_CE_RESULT,    /* number: of a POST that was taken; its last message */
    EMU_HOST_CE_LEFT,      /* a port has gone. list: its instance */
    EMU_HOST_CE_OPS
};

/* flags */
#define EMU_HOST_CE_CONFIGURED (1u << 0) /* STATE */
#define EMU_HOST_CE_HAS_TWIN   (1u << 1) /* LEFT: another port there has the same node and instance */

struct emu_host_ce {
    uint8_t op; /* enum emu_host_ce_op */
    uint8_t flags;
    uint8_t status;    /* enum emu_status */
    uint8_t child;     /* POST: by which the engine knows the leaf */
    uint32_t from_nid; /* physical, as all of them */
    uint32_t to_nid;
    uint16_t from_ce;
    uint16_t to_ce;
    uint64_t from_version;
    uint64_t to_version;
    uint64_t number;
    uint64_t poster; /* POST, LEFT: tells ports of a host from each other, never 0 */
    struct emu_ce_value value;
    uint32_t n;
    const uint8_t *list; /* of the parser: in the message */
};

static const struct emu_field emu_host_ce_message_fields[] = {
    EMU_FIELD_RANGE(struct emu_host_ce, op, 1, EMU_HOST_CE_OPS - 1),
    EMU_FIELD(struct emu_host_ce, flags),
    EMU_FIELD_RANGE(struct emu_host_ce, status, 0, EMU_STATUS_MISMATCH),
    EMU_FIELD(struct emu_host_ce, child),
    EMU_FIELD(struct emu_host_ce, from_nid),
    EMU_FIELD(struct emu_host_ce, to_nid),
    EMU_FIELD(struct emu_host_ce, from_ce),
    EMU_FIELD(struct emu_host_ce, to_ce),
    EMU_FIELD(struct emu_host_ce, from_version),
    EMU_FIELD(struct emu_host_ce, to_version),
    EMU_FIELD(struct emu_host_ce, number),
    EMU_FIELD(struct emu_host_ce, poster),
    EMU_FIELD(struct emu_host_ce, value.red_id),
    EMU_FIELD(struct emu_host_ce, value.operand1),
    EMU_FIELD(struct emu_host_ce, value.operand2),
    EMU_FIELD(struct emu_host_ce, value.op),
    EMU_FIELD_BITS(struct emu_host_ce, value.flags, EMU_CE_FLAG_MASK),
    EMU_FIELD_BITS(struct emu_host_ce, value.fpe, EMU_CE_FPE_MASK),
    EMU_FIELD_RANGE(struct emu_host_ce, value.status, 0, EMU_STATUS_MISMATCH),
    EMU_FIELD_RANGE(struct emu_host_ce, n, 0, EMU_HOST_CE_LIST_MAX),
};

/* A link of the list of a STATE; what kind of end it leads to is the last byte. */
static const struct emu_field emu_host_ce_link_fields[] = {
    EMU_FIELD(struct emu_ce_link, nid),
    EMU_FIELD(struct emu_ce_link, ce_id),
    EMU_FIELD(struct emu_ce_link, child_id),
};

/* Without the list. */
static inline uint8_t *emu_host_ce_put(uint8_t message[EMU_HOST_CE_BYTES], uint32_t domain, const struct emu_host_ce *m)
{
    uint8_t *at = emu_host_head_put(message, EMU_HOST_CE, domain);

    return emu_fields_put(at, EMU_FIELDS(emu_host_ce_message_fields), m);
}

static inline uint8_t *emu_host_ce_put_link(uint8_t *at, const struct emu_ce_link *link, bool is_parent)
{
    at = emu_fields_put(at, EMU_FIELDS(emu_host_ce_link_fields), link);
    *at++ = is_parent;
    return at;
}

/* Of a LEFT. */
static inline uint8_t *emu_host_ce_put_instance(uint8_t *at, uint32_t instance_id)
{
    return emu_wire_put32(emu_wire_put32(at, instance_id), 0);
}

/* Of a POST. pid is never 0. */
static inline uint8_t *emu_host_ce_put_leaf(uint8_t *at, uint32_t instance_id, uint32_t pid)
{
    return emu_wire_put32(emu_wire_put32(at, instance_id), pid);
}

/* Of a STATE. *is_parent_out: to the parent, else to a child. */
static inline struct emu_ce_link emu_host_ce_link(const struct emu_host_ce *m, uint32_t i, bool *is_parent_out)
{
    const uint8_t *at = m->list + 8 * i;
    struct emu_ce_link link = { .type = EMU_CE_LINK_ENGINE };

    emu_fields_parse(at, EMU_FIELDS(emu_host_ce_link_fields), &link);
    *is_parent_out = at[7] != 0;
    return link;
}

/* Of a POST or LEFT. */
static inline uint32_t emu_host_ce_instance(const struct emu_host_ce *m)
{
    return emu_wire_get32(m->list);
}

/* Of a POST. */
static inline uint32_t emu_host_ce_pid(const struct emu_host_ce *m)
{
    return emu_wire_get32(m->list + 4);
}

/* What an operation has: of those that must be there, and those that may be. */
enum emu_host_ce_field {
    EMU_CE_HAS_FROM = 1 << 0, /* an engine */
    EMU_CE_HAS_FROM_NODE = 1 << 1,
    EMU_CE_HAS_TO = 1 << 2,     /* an engine, and the version that is meant */
    EMU_CE_HAS_TO_ANY = 1 << 3, /* an engine, of whatever version */
    EMU_CE_HAS_STATUS = 1 << 4,
    EMU_CE_HAS_FAILURE = 1 << 5, /* a status that is not OK */
    EMU_CE_HAS_NUMBER = 1 << 6,
    EMU_CE_MAY_HAVE_NUMBER = 1 << 7,
    EMU_CE_HAS_POSTER = 1 << 8,
    EMU_CE_HAS_VALUE = 1 << 9,
    EMU_CE_HAS_RESULT = 1 << 10, /* of the value: operands and exceptions */
    EMU_CE_HAS_CHILD = 1 << 11,
};

static inline unsigned emu_host_ce_fields(unsigned op)
{
    static const uint16_t fields[EMU_HOST_CE_OPS] = {
        [EMU_HOST_CE_STATE] = EMU_CE_HAS_FROM | EMU_CE_HAS_STATUS | EMU_CE_MAY_HAVE_NUMBER,
        [EMU_HOST_CE_GONE] = EMU_CE_HAS_FROM | EMU_CE_MAY_HAVE_NUMBER,
        [EMU_HOST_CE_KNOWN] = EMU_CE_HAS_NUMBER,
        [EMU_HOST_CE_BROKEN] = EMU_CE_HAS_FROM | EMU_CE_HAS_TO_ANY | EMU_CE_HAS_FAILURE,
        [EMU_HOST_CE_WANT] = EMU_CE_HAS_FROM | EMU_CE_HAS_TO,
        [EMU_HOST_CE_UP] = EMU_CE_HAS_FROM | EMU_CE_HAS_TO | EMU_CE_HAS_VALUE,
        [EMU_HOST_CE_DOWN] = EMU_CE_HAS_FROM | EMU_CE_HAS_TO | EMU_CE_HAS_VALUE,
        [EMU_HOST_CE_POST] = EMU_CE_HAS_FROM_NODE | EMU_CE_HAS_TO_ANY | EMU_CE_HAS_NUMBER | EMU_CE_HAS_POSTER |
                             EMU_CE_HAS_VALUE | EMU_CE_HAS_CHILD,
        [EMU_HOST_CE_TAKEN] = EMU_CE_HAS_NUMBER | EMU_CE_HAS_STATUS,
        [EMU_HOST_CE_RESULT] = EMU_CE_HAS_NUMBER | EMU_CE_HAS_STATUS | EMU_CE_HAS_RESULT,
        [EMU_HOST_CE_LEFT] = EMU_CE_HAS_FROM_NODE | EMU_CE_HAS_POSTER,
    };

    return fields[op];
}

static inline bool emu_host_ce_list_is_sound(const struct emu_host_ce *m)
{
    bool has_parent = false;

    for (uint32_t i = 0; i < m->n; i++) {
        const uint8_t *at = m->list + 8 * i;

        if (m->op != EMU_HOST_CE_STATE && (m->op == EMU_HOST_CE_POST) != (emu_wire_get32(at + 4) != 0))
            return false;
        if (m->op == EMU_HOST_CE_STATE && (at[6] >= EMU_CE_CHILDREN_MAX || at[7] > 1 || (at[7] && has_parent)))
            return false;
        has_parent = has_parent || at[7];
    }
    switch (m->op) {
    case EMU_HOST_CE_STATE:
        return m->n <= EMU_CE_CHILDREN_MAX + has_parent && (m->n == 0 || (m->flags & EMU_HOST_CE_CONFIGURED));
    case EMU_HOST_CE_POST:
    case EMU_HOST_CE_LEFT:
        return m->n == 1;
    default:
        return m->n == 0;
    }
}

static inline bool emu_host_ce_value_is_sound(const struct emu_ce_value *v, unsigned fields)
{
    if (fields & EMU_CE_HAS_VALUE)
        return v->op != 0 && v->op < EMU_CE_OP_END;
    if (v->red_id || v->op || v->flags || v->status)
        return false;
    return (fields & EMU_CE_HAS_RESULT) || (!v->operand1 && !v->operand2 && !v->fpe);
}

static inline bool emu_host_ce_names_are_sound(const struct emu_host_ce *m, unsigned fields)
{
    bool has_from = (fields & EMU_CE_HAS_FROM) != 0;
    bool has_to = (fields & (EMU_CE_HAS_TO | EMU_CE_HAS_TO_ANY)) != 0;

    if ((m->from_version != 0) != has_from || (!has_from && m->from_ce) ||
        (!has_from && !(fields & EMU_CE_HAS_FROM_NODE) && m->from_nid))
        return false;
    if ((!has_to && (m->to_nid || m->to_ce)) || (m->to_version && (!has_to || m->op == EMU_HOST_CE_POST)))
        return false;
    return !(fields & EMU_CE_HAS_TO) || m->to_version != 0;
}

/* Has the operation the flags, the status and the numbers that it must have, and no others? */
static inline bool emu_host_ce_numbers_are_sound(const struct emu_host_ce *m, unsigned fields)
{
    unsigned flags = m->op == EMU_HOST_CE_STATE ? EMU_HOST_CE_CONFIGURED :
                     m->op == EMU_HOST_CE_LEFT  ? EMU_HOST_CE_HAS_TWIN :
                                                  0;

    if ((m->flags & ~flags) || (m->status != 0 && !(fields & (EMU_CE_HAS_STATUS | EMU_CE_HAS_FAILURE))) ||
        (m->status == 0 && (fields & EMU_CE_HAS_FAILURE)))
        return false;
    if ((m->number != 0 && !(fields & (EMU_CE_HAS_NUMBER | EMU_CE_MAY_HAVE_NUMBER))) ||
        (m->number == 0 && (fields & EMU_CE_HAS_NUMBER)))
        return false;
    return (m->poster != 0) == ((fields & EMU_CE_HAS_POSTER) != 0) && (m->child == 0 || (fields & EMU_CE_HAS_CHILD));
}

/* Of a message whose head was taken. False: no correct sender writes that. `list` points into the message. */
static inline bool emu_host_ce_parse(const uint8_t *message, uint32_t length_bytes, struct emu_host_ce *ce_out)
{
    struct emu_host_ce m;
    unsigned fields;

    if (length_bytes < EMU_HOST_CE_BYTES ||
        !emu_fields_parse(message + EMU_HOST_HEAD_BYTES, EMU_FIELDS(emu_host_ce_message_fields), &m) ||
        length_bytes != EMU_HOST_CE_BYTES + 8 * m.n)
        return false;
    m.list = message + EMU_HOST_CE_BYTES;
    fields = emu_host_ce_fields(m.op);
    if (!emu_host_ce_numbers_are_sound(&m, fields) || !emu_host_ce_names_are_sound(&m, fields) ||
        !emu_host_ce_value_is_sound(&m.value, fields) || !emu_host_ce_list_is_sound(&m))
        return false;
    *ce_out = m;
    return true;
}

#endif
