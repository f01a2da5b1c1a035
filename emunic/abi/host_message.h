/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages between the emunics of a machine (emunic/daemon/peers/sessions.c); transport (abi/wire.h) carries them,
 * each once, in order, from a peer that has the job's key.
 *
 *   byte 0      2         4        8
 *        | kind | version | domain | what the kind says |
 *
 * Everything is in network byte order. `domain` is the number by which all hosts know a communication domain; 0: the
 * message is about none. Whoever receives checks each field all the same: a peer may be old or broken.
 *
 * A change of anything here raises EMU_HOST_VERSION; hosts of different versions refuse each other.
 */
#ifndef EMUNIC_ABI_HOST_MESSAGE_H
#define EMUNIC_ABI_HOST_MESSAGE_H

#include <assert.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "emunic/abi/abi.h"
#include "emunic/abi/amo.h"
#include "emunic/abi/command.h"
#include "emunic/abi/event.h"
#include "emunic/abi/fields.h"
#include "emunic/abi/wire.h"

#define EMU_HOST_VERSION     6u
#define EMU_HOST_HEAD_BYTES  8u
#define EMU_HOST_MESSAGE_MAX EMU_WIRE_MESSAGE_MAX
#define EMU_HOST_NAME_MAX    63u

#define EMU_HOST_HEAD 0u /* number of the host that takes the administrator's requests */

enum emu_host_kind {
    EMU_HOST_HELLO = 1, /* first of a session: is it the same machine? */
    EMU_HOST_DOMAIN,    /* the head makes or ends a domain, and the others' answer */
    EMU_HOST_COMMAND,   /* a command, or a part of it, for a node there */
    EMU_HOST_ANSWER,    /* its outcome */
    EMU_HOST_DATAGRAM,
    EMU_HOST_CE, /* host_ce.h */
    EMU_HOST_MSGQ,
    EMU_HOST_PORTALS,
    EMU_HOST_ADMIN, /* host_admin.h */
    EMU_HOST_KINDS
};

struct emu_host_head {
    uint16_t kind; /* enum emu_host_kind */
    uint32_t domain;
};

static const struct emu_field emu_host_head_fields[] = {
    EMU_FIELD_RANGE(struct emu_host_head, kind, 1, EMU_HOST_KINDS - 1),
    EMU_FIELD_VALUE(2, EMU_HOST_VERSION),
    EMU_FIELD(struct emu_host_head, domain),
};

static inline uint8_t *emu_host_head_put(uint8_t *message, enum emu_host_kind kind, uint32_t domain)
{
    struct emu_host_head head = { .kind = (uint16_t)kind, .domain = domain };

    return emu_fields_put(message, EMU_FIELDS(emu_host_head_fields), &head);
}

/* False: no message of this version. */
static inline bool emu_host_head_parse(const uint8_t *message, uint32_t length_bytes, struct emu_host_head *head_out)
{
    struct emu_host_head head;

    if (length_bytes < EMU_HOST_HEAD_BYTES || !emu_fields_parse(message, EMU_FIELDS(emu_host_head_fields), &head))
        return false;
    *head_out = head;
    return true;
}

/* Of a message of at least EMU_HOST_HEAD_BYTES. The functions below read what is behind the head. */
static inline uint32_t emu_host_domain_of(const uint8_t *message)
{
    return emu_wire_get32(message + 4);
}

/* ---- EMU_HOST_HELLO: | head | n_hosts | n_nids | name, EMU_HOST_NAME_MAX + 1 bytes with zeroes behind | ---- */

#define EMU_HOST_HELLO_BYTES (EMU_HOST_HEAD_BYTES + 8u + EMU_HOST_NAME_MAX + 1u)

struct emu_host_hello {
    uint32_t n_hosts;
    uint32_t n_nids; /* of the machine */
    char name[EMU_HOST_NAME_MAX + 1];
};

static const struct emu_field emu_host_hello_fields[] = {
    EMU_FIELD(struct emu_host_hello, n_hosts),
    EMU_FIELD(struct emu_host_hello, n_nids),
    EMU_FIELD_TEXT(struct emu_host_hello, name),
};

static inline void emu_host_hello_put(uint8_t message[EMU_HOST_HELLO_BYTES], const struct emu_host_hello *hello)
{
    uint8_t *at = emu_host_head_put(message, EMU_HOST_HELLO, 0);

    emu_fields_put(at, EMU_FIELDS(emu_host_hello_fields), hello);
}

static inline bool emu_host_hello_parse(const uint8_t *message, uint32_t length_bytes, struct emu_host_hello *hello_out)
{
    struct emu_host_hello hello;

    if (length_bytes != EMU_HOST_HELLO_BYTES ||
        !emu_fields_parse(message + EMU_HOST_HEAD_BYTES, EMU_FIELDS(emu_host_hello_fields), &hello))
        return false;
    *hello_out = hello;
    return true;
}

/*
 * ---- EMU_HOST_COMMAND: | head | id | from nid | ... 112 bytes | data of a put | ----
 *
 * A command for a node there, or a part of a long one: bytes [offset, offset + part_bytes) of it. Each part is checked
 * there as the whole command, so nothing is moved of one that would end outside of the memory. Flag and remote event
 * come with the last part, which is sent when the others have succeeded. What concerns the initiator alone is left out.
 *
 * The data of a part in bulk (EMU_HOST_BULK) are in no message. The initiator's host has made its side of the part a
 * region of the transport, of part_bytes, and names it behind the command: | key | base |. The target's host, when it
 * has checked the part, reads a put's data from there, or writes a get's data there, and then answers. The region stays
 * until the answer.
 */
#define EMU_HOST_COMMAND_BYTES 112u
#define EMU_HOST_PLACE_BYTES   16u
#define EMU_HOST_BULK_BYTES    (1u << 20) /* the most that a part in bulk moves */
#define EMU_HOST_BULK_PARTS    8u         /* in bulk, that a host has under way to another */
#define EMU_HOST_PART_BYTES    15360u     /* the most that a put or a get moves */
#define EMU_HOST_AMO_BYTES     2048u      /* the most that a part of a vector of atomics covers */
static_assert(EMU_HOST_COMMAND_BYTES + EMU_HOST_PART_BYTES <= EMU_HOST_MESSAGE_MAX, "a part fits a message");

/* Flags, events and handle flags that mean something at the target. */
#define EMU_HOST_CMD_FLAGS    EMU_CMD_FLAG
#define EMU_HOST_BULK         (1u << 0) /* of the part */
#define EMU_HOST_EVENTS       (EMU_EV_REMOTE | EMU_EV_LOSE | EMU_EV_HINT)
#define EMU_HOST_HANDLE_FLAGS (EMU_HANDLE_OFFSET | EMU_HANDLE_VIRTUAL)

struct emu_host_command {
    uint32_t domain;
    uint64_t id;        /* the initiator's, comes back in the answer */
    uint32_t from_nid;  /* physical */
    struct emu_cmd cmd; /* the whole of it; remote_nid: physical */
    uint64_t offset;
    uint32_t part_bytes;
    const uint8_t *data; /* of a put that is not in bulk: part_bytes */
    bool is_bulk;
    uint64_t key; /* of the initiator's region, in bulk */
    uint64_t base;
};

/* Bytes that come back in the answer: of a get, or the old values of atomics. */
static inline uint32_t emu_host_result_bytes(const struct emu_host_command *c)
{
    bool has_result = c->cmd.op == EMU_OP_GET || (c->cmd.op == EMU_OP_AMO && (c->cmd.amo_flags & EMU_AMO_FETCH));

    return has_result && !c->is_bulk ? c->part_bytes : 0;
}

static inline bool emu_host_is_last_part(const struct emu_host_command *c)
{
    return c->offset + c->part_bytes == c->cmd.length_bytes;
}

static const struct emu_field emu_host_command_fields[] = {
    EMU_FIELD(struct emu_host_command, id),
    EMU_FIELD(struct emu_host_command, from_nid),
    EMU_FIELD(struct emu_host_command, cmd.op),
    EMU_FIELD_BITS_CUT(struct emu_host_command, cmd.flags, EMU_HOST_CMD_FLAGS),
    EMU_FIELD_BITS_CUT(struct emu_host_command, cmd.handle_flags, EMU_HOST_HANDLE_FLAGS),
    EMU_FIELD(struct emu_host_command, cmd.amo_op),
    EMU_FIELD(struct emu_host_command, cmd.amo_flags),
    EMU_FIELD_BITS(struct emu_host_command, is_bulk, EMU_HOST_BULK),
    EMU_FIELD_BITS_CUT(struct emu_host_command, cmd.events, EMU_HOST_EVENTS),
    EMU_FIELD(struct emu_host_command, cmd.remote_nid),
    EMU_FIELD(struct emu_host_command, cmd.remote_addr),
    EMU_FIELD(struct emu_host_command, cmd.length_bytes),
    EMU_FIELD(struct emu_host_command, cmd.remote_base),
    EMU_FIELD(struct emu_host_command, cmd.mdh),
    EMU_FIELD(struct emu_host_command, cmd.generation),
    EMU_FIELD(struct emu_host_command, part_bytes),
    EMU_FIELD(struct emu_host_command, cmd.remote_event),
};

/* What follows them: of an atomic its operands, of any other the flag; then `offset`. */
static const struct emu_field emu_host_flag_fields[] = {
    EMU_FIELD(struct emu_host_command, cmd.flag_addr),
    EMU_FIELD(struct emu_host_command, cmd.flag_value),
    EMU_FIELD_SKIP(8),
    EMU_FIELD_SKIP(8),
    EMU_FIELD(struct emu_host_command, offset),
};

static const struct emu_field emu_host_operand_fields[] = {
    EMU_FIELD_SKIP(8),
    EMU_FIELD_SKIP(8),
    EMU_FIELD(struct emu_host_command, cmd.operand1),
    EMU_FIELD(struct emu_host_command, cmd.operand2),
    EMU_FIELD(struct emu_host_command, offset),
};
#define EMU_HOST_FLAG_AT (EMU_HOST_COMMAND_BYTES - 40u)

static const struct emu_field emu_host_place_fields[] = {
    EMU_FIELD(struct emu_host_command, key),
    EMU_FIELD(struct emu_host_command, base),
};

/* Without the data or, in bulk, the place (emu_host_place_put), which the caller puts behind it. */
static inline uint8_t *emu_host_command_put(uint8_t message[EMU_HOST_COMMAND_BYTES], const struct emu_host_command *c)
{
    uint8_t *at = emu_host_head_put(message, EMU_HOST_COMMAND, c->domain);

    at = emu_fields_put(at, EMU_FIELDS(emu_host_command_fields), c);
    if (c->cmd.op == EMU_OP_AMO)
        return emu_fields_put(at, EMU_FIELDS(emu_host_operand_fields), c);
    return emu_fields_put(at, EMU_FIELDS(emu_host_flag_fields), c);
}

/* Behind a command in bulk. */
static inline uint8_t *emu_host_place_put(uint8_t place[EMU_HOST_PLACE_BYTES], const struct emu_host_command *c)
{
    return emu_fields_put(place, EMU_FIELDS(emu_host_place_fields), c);
}

/* Is it an operation for another host, and does the part lie in it? */
static inline bool emu_host_part_is_sound(const struct emu_host_command *c)
{
    const struct emu_cmd *cmd = &c->cmd;
    uint32_t most = cmd->op == EMU_OP_AMO ? EMU_HOST_AMO_BYTES : EMU_HOST_PART_BYTES;

    if (cmd->op != EMU_OP_PUT && cmd->op != EMU_OP_GET && cmd->op != EMU_OP_AMO && cmd->op != EMU_OP_CQ_WRITE)
        return false;
    if (cmd->op == EMU_OP_CQ_WRITE && cmd->length_bytes != 0)
        return false;
    if (c->is_bulk) {
        if ((cmd->op != EMU_OP_PUT && cmd->op != EMU_OP_GET) || c->part_bytes == 0)
            return false;
        most = EMU_HOST_BULK_BYTES;
    }
    return c->part_bytes <= most && c->offset <= cmd->length_bytes && c->part_bytes <= cmd->length_bytes - c->offset &&
           (c->part_bytes != 0 || cmd->length_bytes == 0) && c->offset % 16 == 0;
}

/*
 * False: no initiator's emunic sends that. What the engine checks is not checked here. `data` points into the
 * message.
 */
static inline bool emu_host_command_parse(const uint8_t *message, uint32_t length_bytes,
                                          struct emu_host_command *command_out)
{
    const uint8_t *behind = message + EMU_HOST_COMMAND_BYTES;
    struct emu_host_command c = { 0 };
    uint32_t bytes_behind;

    if (length_bytes < EMU_HOST_COMMAND_BYTES ||
        !emu_fields_parse(message + EMU_HOST_HEAD_BYTES, EMU_FIELDS(emu_host_command_fields), &c))
        return false;
    c.domain = emu_host_domain_of(message);
    if (c.cmd.op == EMU_OP_AMO)
        emu_fields_parse(message + EMU_HOST_FLAG_AT, EMU_FIELDS(emu_host_operand_fields), &c);
    else
        emu_fields_parse(message + EMU_HOST_FLAG_AT, EMU_FIELDS(emu_host_flag_fields), &c);
    bytes_behind = c.is_bulk ? EMU_HOST_PLACE_BYTES : c.cmd.op == EMU_OP_PUT ? c.part_bytes : 0;
    if (!emu_host_part_is_sound(&c) || length_bytes - EMU_HOST_COMMAND_BYTES != bytes_behind)
        return false;
    if (c.is_bulk)
        emu_fields_parse(behind, EMU_FIELDS(emu_host_place_fields), &c);
    else
        c.data = behind;
    *command_out = c;
    return true;
}

/* ---- EMU_HOST_ANSWER: | head | id | status | flags | 0 | length | data of a get, old values of atomics | ---- */

#define EMU_HOST_ANSWER_BYTES 24u
#define EMU_HOST_EVENT_LOST   (1u << 0) /* flags: done, but its remote event found no room */

struct emu_host_answer {
    uint32_t domain;
    uint64_t id;
    uint8_t status;        /* enum emu_status */
    uint8_t flags;         /* EMU_HOST_EVENT_LOST */
    uint32_t length_bytes; /* 0 unless the status is EMU_STATUS_OK */
    const uint8_t *data;
};

static const struct emu_field emu_host_answer_fields[] = {
    EMU_FIELD(struct emu_host_answer, id),
    EMU_FIELD_RANGE(struct emu_host_answer, status, 0, EMU_STATUS_BAD_COMMAND),
    EMU_FIELD_BITS(struct emu_host_answer, flags, EMU_HOST_EVENT_LOST),
    EMU_FIELD_ZERO(2),
    EMU_FIELD_RANGE(struct emu_host_answer, length_bytes, 0, EMU_HOST_PART_BYTES),
};

static inline uint8_t *emu_host_answer_put(uint8_t message[EMU_HOST_ANSWER_BYTES], const struct emu_host_answer *a)
{
    uint8_t *at = emu_host_head_put(message, EMU_HOST_ANSWER, a->domain);

    return emu_fields_put(at, EMU_FIELDS(emu_host_answer_fields), a);
}

static inline bool emu_host_answer_parse(const uint8_t *message, uint32_t length_bytes,
                                         struct emu_host_answer *answer_out)
{
    struct emu_host_answer a;

    if (length_bytes < EMU_HOST_ANSWER_BYTES ||
        !emu_fields_parse(message + EMU_HOST_HEAD_BYTES, EMU_FIELDS(emu_host_answer_fields), &a) ||
        length_bytes - EMU_HOST_ANSWER_BYTES != a.length_bytes)
        return false;
    a.domain = emu_host_domain_of(message);
    a.data = message + EMU_HOST_ANSWER_BYTES;
    *answer_out = a;
    return true;
}

/*
 * ---- EMU_HOST_DOMAIN ----
 *
 *   | head | op | first | n | n_ranks | ptag | cookie | uid | limit | flags | value | n x (nid, host) |
 *
 * From the head. When a host comes up: BEGIN, a CREATE for each domain there is, COMPLETE; what the host had before
 * and is not among them ends. CREATE is answered with RESULT, then REACHES, which comes again when it changes: a
 * launcher is told that its domain is made when all hosts that have nodes of it reach each other.
 */
enum emu_host_domain_op {
    EMU_HOST_DOMAIN_BEGIN = 1,
    EMU_HOST_DOMAIN_COMPLETE,
    EMU_HOST_DOMAIN_CREATE,  /* ranks from `first` on; the domain is made with the last of them */
    EMU_HOST_DOMAIN_END,     /* value: signal for its processes, or 0 */
    EMU_HOST_DOMAIN_RESULT,  /* value: 0 or a positive errno */
    EMU_HOST_DOMAIN_REACHES, /* value: 1 and the first host with nodes of it that it has no session with, or 0 */
    EMU_HOST_DOMAIN_OPS
};

#define EMU_HOST_DOMAIN_BYTES  48u
#define EMU_HOST_RANKS_MAX     1024u /* of one message */
#define EMU_HOST_JOB_RANKS_MAX (1u << 20)
static_assert(EMU_HOST_DOMAIN_BYTES + 8 * EMU_HOST_RANKS_MAX <= EMU_HOST_MESSAGE_MAX, "ranks fit a message");

struct emu_host_domain {
    uint32_t domain;
    uint32_t op; /* enum emu_host_domain_op */
    uint32_t first;
    uint32_t n;       /* ranks of this message */
    uint32_t n_ranks; /* of the domain */
    uint32_t ptag;
    uint32_t cookie;
    uint32_t owner_uid;
    uint32_t member_limit;
    uint32_t flags;
    uint32_t value;
    const uint8_t *ranks; /* of the parser: n x (nid, host) */
};

static const struct emu_field emu_host_domain_fields[] = {
    EMU_FIELD_RANGE(struct emu_host_domain, op, 1, EMU_HOST_DOMAIN_OPS - 1),
    EMU_FIELD(struct emu_host_domain, first),
    EMU_FIELD_RANGE(struct emu_host_domain, n, 0, EMU_HOST_RANKS_MAX),
    EMU_FIELD(struct emu_host_domain, n_ranks),
    EMU_FIELD(struct emu_host_domain, ptag),
    EMU_FIELD(struct emu_host_domain, cookie),
    EMU_FIELD(struct emu_host_domain, owner_uid),
    EMU_FIELD(struct emu_host_domain, member_limit),
    EMU_FIELD(struct emu_host_domain, flags),
    EMU_FIELD(struct emu_host_domain, value),
};

/* Without the ranks. */
static inline uint8_t *emu_host_domain_put(uint8_t message[EMU_HOST_DOMAIN_BYTES], const struct emu_host_domain *d)
{
    uint8_t *at = emu_host_head_put(message, EMU_HOST_DOMAIN, d->domain);

    return emu_fields_put(at, EMU_FIELDS(emu_host_domain_fields), d);
}

static inline bool emu_host_domain_parse(const uint8_t *message, uint32_t length_bytes,
                                         struct emu_host_domain *domain_out)
{
    struct emu_host_domain d;

    if (length_bytes < EMU_HOST_DOMAIN_BYTES ||
        !emu_fields_parse(message + EMU_HOST_HEAD_BYTES, EMU_FIELDS(emu_host_domain_fields), &d) ||
        length_bytes != EMU_HOST_DOMAIN_BYTES + 8 * d.n)
        return false;
    d.domain = emu_host_domain_of(message);
    d.ranks = message + EMU_HOST_DOMAIN_BYTES;
    if (d.op != EMU_HOST_DOMAIN_CREATE ? d.n != 0 :
                                         d.n == 0 || d.n_ranks > EMU_HOST_JOB_RANKS_MAX || d.first > d.n_ranks ||
                                             d.n > d.n_ranks - d.first || d.domain == 0)
        return false;
    *domain_out = d;
    return true;
}

/* ---- EMU_HOST_MSGQ: | head | nid | mdh | generation | a region of a shared message queue has ended there ---- */

#define EMU_HOST_MSGQ_BYTES (EMU_HOST_HEAD_BYTES + 8u)

struct emu_host_msgq {
    uint32_t domain;
    uint32_t nid; /* physical */
    uint16_t mdh; /* number of the memory domain, below EMU_MD_COUNT */
    uint16_t generation;
};

static const struct emu_field emu_host_msgq_fields[] = {
    EMU_FIELD(struct emu_host_msgq, nid),
    EMU_FIELD_RANGE(struct emu_host_msgq, mdh, 0, EMU_MD_COUNT - 1),
    EMU_FIELD_RANGE(struct emu_host_msgq, generation, 1, EMU_MD_GENERATION_MAX),
};

static inline void emu_host_msgq_put(uint8_t message[EMU_HOST_MSGQ_BYTES], const struct emu_host_msgq *m)
{
    uint8_t *at = emu_host_head_put(message, EMU_HOST_MSGQ, m->domain);

    emu_fields_put(at, EMU_FIELDS(emu_host_msgq_fields), m);
}

static inline bool emu_host_msgq_parse(const uint8_t *message, uint32_t length_bytes, struct emu_host_msgq *msgq_out)
{
    struct emu_host_msgq m;

    if (length_bytes != EMU_HOST_MSGQ_BYTES ||
        !emu_fields_parse(message + EMU_HOST_HEAD_BYTES, EMU_FIELDS(emu_host_msgq_fields), &m))
        return false;
    m.domain = emu_host_domain_of(message);
    *msgq_out = m;
    return true;
}

#endif
