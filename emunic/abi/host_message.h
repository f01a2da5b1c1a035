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
#include "emunic/abi/wire.h"

#define EMU_HOST_VERSION     5u
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

static inline uint8_t *emu_host_head_put(uint8_t *message, enum emu_host_kind kind, uint32_t domain)
{
    uint8_t *at = emu_wire_put16(message, (uint16_t)kind);

    at = emu_wire_put16(at, EMU_HOST_VERSION);
    return emu_wire_put32(at, domain);
}

/* False: no message of this version. */
static inline bool emu_host_head_parse(const uint8_t *message, uint32_t length_bytes, struct emu_host_head *head_out)
{
    struct emu_host_head head;

    if (length_bytes < EMU_HOST_HEAD_BYTES || (message[2] << 8 | message[3]) != (int)EMU_HOST_VERSION)
        return false;
    head.kind = (uint16_t)(message[0] << 8 | message[1]);
    head.domain = emu_wire_get32(message + 4);
    if (head.kind == 0 || head.kind >= EMU_HOST_KINDS)
        return false;
    *head_out = head;
    return true;
}

/* ---- EMU_HOST_HELLO: | head | n_hosts | n_nids | name, EMU_HOST_NAME_MAX + 1 bytes with zeroes behind | ---- */

#define EMU_HOST_HELLO_BYTES (EMU_HOST_HEAD_BYTES + 8u + EMU_HOST_NAME_MAX + 1u)

struct emu_host_hello {
    uint32_t n_hosts;
    uint32_t n_nids; /* of the machine */
    char name[EMU_HOST_NAME_MAX + 1];
};

static inline void emu_host_hello_put(uint8_t message[EMU_HOST_HELLO_BYTES], const struct emu_host_hello *hello)
{
    uint8_t *at = emu_host_head_put(message, EMU_HOST_HELLO, 0);

    at = emu_wire_put32(at, hello->n_hosts);
    at = emu_wire_put32(at, hello->n_nids);
    memcpy(at, hello->name, sizeof(hello->name));
}

static inline bool emu_host_hello_parse(const uint8_t *message, uint32_t length_bytes, struct emu_host_hello *hello_out)
{
    const uint8_t *name = message + EMU_HOST_HEAD_BYTES + 8;

    if (length_bytes != EMU_HOST_HELLO_BYTES || name[EMU_HOST_NAME_MAX] != 0)
        return false;
    hello_out->n_hosts = emu_wire_get32(message + EMU_HOST_HEAD_BYTES);
    hello_out->n_nids = emu_wire_get32(message + EMU_HOST_HEAD_BYTES + 4);
    memcpy(hello_out->name, name, sizeof(hello_out->name));
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

/* Without the data or, in bulk, the place (emu_host_place_put), which the caller puts behind it. */
static inline uint8_t *emu_host_command_put(uint8_t message[EMU_HOST_COMMAND_BYTES], const struct emu_host_command *c)
{
    const struct emu_cmd *cmd = &c->cmd;
    uint8_t *at = emu_host_head_put(message, EMU_HOST_COMMAND, c->domain);

    at = emu_wire_put64(at, c->id);
    at = emu_wire_put32(at, c->from_nid);
    *at++ = cmd->op;
    *at++ = cmd->flags & EMU_HOST_CMD_FLAGS;
    *at++ = cmd->handle_flags & EMU_HOST_HANDLE_FLAGS;
    *at++ = cmd->amo_op;
    *at++ = cmd->amo_flags;
    *at++ = c->is_bulk ? EMU_HOST_BULK : 0;
    at = emu_wire_put16(at, cmd->events & EMU_HOST_EVENTS);
    at = emu_wire_put32(at, cmd->remote_nid);
    at = emu_wire_put64(at, cmd->remote_addr);
    at = emu_wire_put64(at, cmd->length_bytes);
    at = emu_wire_put64(at, cmd->remote_base);
    at = emu_wire_put16(at, cmd->mdh);
    at = emu_wire_put16(at, cmd->generation);
    at = emu_wire_put32(at, c->part_bytes);
    at = emu_wire_put64(at, cmd->remote_event);
    at = emu_wire_put64(at, cmd->op == EMU_OP_AMO ? 0 : cmd->flag_addr);
    at = emu_wire_put64(at, cmd->op == EMU_OP_AMO ? 0 : cmd->flag_value);
    at = emu_wire_put64(at, cmd->op == EMU_OP_AMO ? cmd->operand1 : 0);
    at = emu_wire_put64(at, cmd->op == EMU_OP_AMO ? cmd->operand2 : 0);
    return emu_wire_put64(at, c->offset);
}

/* Behind a command in bulk. */
static inline uint8_t *emu_host_place_put(uint8_t place[EMU_HOST_PLACE_BYTES], const struct emu_host_command *c)
{
    uint8_t *at = emu_wire_put64(place, c->key);

    return emu_wire_put64(at, c->base);
}

/*
 * False: no initiator's emunic sends that. What the engine checks is not checked here. `data` points into the
 * message.
 */
static inline bool emu_host_command_parse(const uint8_t *message, uint32_t length_bytes,
                                          struct emu_host_command *command_out)
{
    struct emu_host_command c = { 0 };
    struct emu_cmd *cmd = &c.cmd;
    uint32_t most = EMU_HOST_PART_BYTES;

    if (length_bytes < EMU_HOST_COMMAND_BYTES)
        return false;
    c.domain = emu_wire_get32(message + 4);
    c.id = emu_wire_get64(message + 8);
    c.from_nid = emu_wire_get32(message + 16);
    cmd->op = message[20];
    cmd->flags = message[21];
    cmd->handle_flags = message[22];
    cmd->amo_op = message[23];
    cmd->amo_flags = message[24];
    cmd->events = (uint16_t)(message[26] << 8 | message[27]);
    cmd->remote_nid = emu_wire_get32(message + 28);
    cmd->remote_addr = emu_wire_get64(message + 32);
    cmd->length_bytes = emu_wire_get64(message + 40);
    cmd->remote_base = emu_wire_get64(message + 48);
    cmd->mdh = (uint16_t)(message[56] << 8 | message[57]);
    cmd->generation = (uint16_t)(message[58] << 8 | message[59]);
    c.part_bytes = emu_wire_get32(message + 60);
    cmd->remote_event = emu_wire_get64(message + 64);
    c.offset = emu_wire_get64(message + 104);
    if (cmd->op == EMU_OP_AMO) {
        cmd->operand1 = emu_wire_get64(message + 88);
        cmd->operand2 = emu_wire_get64(message + 96);
        most = EMU_HOST_AMO_BYTES;
    } else {
        cmd->flag_addr = emu_wire_get64(message + 72);
        cmd->flag_value = emu_wire_get64(message + 80);
    }
    c.is_bulk = message[25] == EMU_HOST_BULK;
    if ((message[25] & ~EMU_HOST_BULK) || (cmd->flags & ~EMU_HOST_CMD_FLAGS) || (cmd->events & ~EMU_HOST_EVENTS) ||
        (cmd->handle_flags & ~EMU_HOST_HANDLE_FLAGS))
        return false;
    if (cmd->op != EMU_OP_PUT && cmd->op != EMU_OP_GET && cmd->op != EMU_OP_AMO && cmd->op != EMU_OP_CQ_WRITE)
        return false;
    if (cmd->op == EMU_OP_CQ_WRITE && cmd->length_bytes != 0)
        return false;
    if (c.is_bulk) {
        if ((cmd->op != EMU_OP_PUT && cmd->op != EMU_OP_GET) || c.part_bytes == 0)
            return false;
        most = EMU_HOST_BULK_BYTES;
    }
    if (c.part_bytes > most || c.offset > cmd->length_bytes || c.part_bytes > cmd->length_bytes - c.offset ||
        (c.part_bytes == 0 && cmd->length_bytes != 0) || c.offset % 16 != 0)
        return false;
    if (c.is_bulk) {
        if (length_bytes != EMU_HOST_COMMAND_BYTES + EMU_HOST_PLACE_BYTES)
            return false;
        c.key = emu_wire_get64(message + EMU_HOST_COMMAND_BYTES);
        c.base = emu_wire_get64(message + EMU_HOST_COMMAND_BYTES + 8);
    } else {
        if (length_bytes - EMU_HOST_COMMAND_BYTES != (cmd->op == EMU_OP_PUT ? c.part_bytes : 0))
            return false;
        c.data = message + EMU_HOST_COMMAND_BYTES;
    }
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

static inline uint8_t *emu_host_answer_put(uint8_t message[EMU_HOST_ANSWER_BYTES], const struct emu_host_answer *a)
{
    uint8_t *at = emu_host_head_put(message, EMU_HOST_ANSWER, a->domain);

    at = emu_wire_put64(at, a->id);
    *at++ = a->status;
    *at++ = a->flags;
    at = emu_wire_put16(at, 0);
    return emu_wire_put32(at, a->length_bytes);
}

static inline bool emu_host_answer_parse(const uint8_t *message, uint32_t length_bytes,
                                         struct emu_host_answer *answer_out)
{
    struct emu_host_answer a = { 0 };

    if (length_bytes < EMU_HOST_ANSWER_BYTES)
        return false;
    a.domain = emu_wire_get32(message + 4);
    a.id = emu_wire_get64(message + 8);
    a.status = message[16];
    a.flags = message[17];
    a.length_bytes = emu_wire_get32(message + 20);
    a.data = message + EMU_HOST_ANSWER_BYTES;
    if (a.status > EMU_STATUS_BAD_COMMAND || (a.flags & ~EMU_HOST_EVENT_LOST) || message[18] || message[19] ||
        a.length_bytes > EMU_HOST_PART_BYTES || length_bytes - EMU_HOST_ANSWER_BYTES != a.length_bytes)
        return false;
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

/* Without the ranks. */
static inline uint8_t *emu_host_domain_put(uint8_t message[EMU_HOST_DOMAIN_BYTES], const struct emu_host_domain *d)
{
    const uint32_t words[] = { d->op,        d->first,        d->n,     d->n_ranks, d->ptag, d->cookie,
                               d->owner_uid, d->member_limit, d->flags, d->value };
    uint8_t *at = emu_host_head_put(message, EMU_HOST_DOMAIN, d->domain);

    for (unsigned i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        at = emu_wire_put32(at, words[i]);
    return at;
}

static inline bool emu_host_domain_parse(const uint8_t *message, uint32_t length_bytes,
                                         struct emu_host_domain *domain_out)
{
    struct emu_host_domain d = { 0 };
    uint32_t *const words[] = { &d.op,        &d.first,        &d.n,     &d.n_ranks, &d.ptag, &d.cookie,
                                &d.owner_uid, &d.member_limit, &d.flags, &d.value };

    if (length_bytes < EMU_HOST_DOMAIN_BYTES)
        return false;
    d.domain = emu_wire_get32(message + 4);
    for (unsigned i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        *words[i] = emu_wire_get32(message + EMU_HOST_HEAD_BYTES + 4 * i);
    d.ranks = message + EMU_HOST_DOMAIN_BYTES;
    if (d.op == 0 || d.op >= EMU_HOST_DOMAIN_OPS || d.n > EMU_HOST_RANKS_MAX ||
        length_bytes != EMU_HOST_DOMAIN_BYTES + 8 * d.n)
        return false;
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

static inline void emu_host_msgq_put(uint8_t message[EMU_HOST_MSGQ_BYTES], const struct emu_host_msgq *m)
{
    uint8_t *at = emu_host_head_put(message, EMU_HOST_MSGQ, m->domain);

    at = emu_wire_put32(at, m->nid);
    at = emu_wire_put16(at, m->mdh);
    emu_wire_put16(at, m->generation);
}

static inline bool emu_host_msgq_parse(const uint8_t *message, uint32_t length_bytes, struct emu_host_msgq *msgq_out)
{
    struct emu_host_msgq m;

    if (length_bytes != EMU_HOST_MSGQ_BYTES)
        return false;
    m.domain = emu_wire_get32(message + 4);
    m.nid = emu_wire_get32(message + 8);
    m.mdh = (uint16_t)(message[12] << 8 | message[13]);
    m.generation = (uint16_t)(message[14] << 8 | message[15]);
    if (m.mdh >= EMU_MD_COUNT || m.generation == 0 || m.generation > EMU_MD_GENERATION_MAX)
        return false;
    *msgq_out = m;
    return true;
}

#endif
