/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages between the emunics of a machine (emunic/daemon/hosts.c); transport (abi/wire.h) carries them, each once, in
 * order, from a peer that has the job's key.
 *
 *   byte 0      2         4        8
 *        | kind | version | domain | what the kind says |
 *
 * Everything is in network byte order. `domain` is the number by which all hosts know a communication domain; 0: the
 * message is about none. Whoever receives checks each field all the same: a peer may be old or broken.
 *
 * A change of anything here raises EMU_HOST_VERSION; hosts of different versions refuse each other.
 */
#ifndef EMUNIC_ABI_HOST_H
#define EMUNIC_ABI_HOST_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "emunic/abi/wire.h"

#define EMU_HOST_VERSION     1u
#define EMU_HOST_HEAD_BYTES  8u
#define EMU_HOST_MESSAGE_MAX EMU_WIRE_MESSAGE_MAX
#define EMU_HOST_NAME_MAX    63u

#define EMU_HOST_HEAD 0u        /* number of the host that takes the administrator's requests */

enum emu_host_kind {
    EMU_HOST_HELLO = 1,         /* first of a session: is it the same machine? */
    EMU_HOST_DOMAIN,            /* the head makes or ends a domain, and the others' answer */
    EMU_HOST_COMMAND,           /* a command, or a part of it, for a node there */
    EMU_HOST_ANSWER,            /* its outcome */
    EMU_HOST_DATAGRAM,
    EMU_HOST_CE,
    EMU_HOST_MSGQ,
    EMU_HOST_PORTALS,
    EMU_HOST_STATUS,
    EMU_HOST_KINDS
};

struct emu_host_head {
    uint16_t kind;              /* enum emu_host_kind */
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
    uint32_t n_nids;            /* of the machine */
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

#endif
