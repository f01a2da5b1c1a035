/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * EMU_HOST_DATAGRAM: what emunics tell each other of datagrams (emunic/daemon/datagrams/datagram_hosts.h).
 *
 *   byte 0      8      12      16       24        32    36         40       44            48
 *        | head | word | bytes | number | claimer | nid | instance | to_nid | to_instance | data, `bytes` of them |
 *
 * Network byte order, as all messages. `number` is that of the offered datagram at its host, `claimer` that of the
 * datagram that claims it, at the other one; 0 where there is none. `nid` and `instance` are the port of the sender's
 * datagram, `to_*` that of the receiver's. Only offers and claims have data.
 */
#ifndef EMUNIC_ABI_HOST_DATAGRAM_H
#define EMUNIC_ABI_HOST_DATAGRAM_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "emunic/abi/abi.h"
#include "emunic/abi/host_message.h"

#define EMU_HOST_DATAGRAM_BYTES 48u
#define EMU_HOST_DATAGRAM_MAX   (EMU_HOST_DATAGRAM_BYTES + EMU_DATAGRAM_MAX)

enum emu_host_datagram_word {
    EMU_DATAGRAM_BEGIN = 1, /* the sender knows nothing of datagrams of the domain; all numbers are 0 */
    EMU_DATAGRAM_OFFER,
    EMU_DATAGRAM_WITHDRAW,
    EMU_DATAGRAM_CLAIM,
    EMU_DATAGRAM_ACCEPT,
    EMU_DATAGRAM_REFUSE,
    EMU_DATAGRAM_WORDS
};

struct emu_host_datagram {
    uint32_t word;  /* enum emu_host_datagram_word */
    uint32_t bytes; /* at most EMU_DATAGRAM_MAX */
    uint64_t number;
    uint64_t claimer;
    uint32_t nid;
    uint32_t instance_id;
    uint32_t to_nid;
    uint32_t to_instance;
    const uint8_t *data; /* of a parsed one: in the message */
};

static const struct emu_field emu_host_datagram_fields[] = {
    EMU_FIELD_RANGE(struct emu_host_datagram, word, 1, EMU_DATAGRAM_WORDS - 1),
    EMU_FIELD_RANGE(struct emu_host_datagram, bytes, 0, EMU_DATAGRAM_MAX),
    EMU_FIELD(struct emu_host_datagram, number),
    EMU_FIELD(struct emu_host_datagram, claimer),
    EMU_FIELD(struct emu_host_datagram, nid),
    EMU_FIELD(struct emu_host_datagram, instance_id),
    EMU_FIELD(struct emu_host_datagram, to_nid),
    EMU_FIELD(struct emu_host_datagram, to_instance),
};

/* Bytes of the message. */
static inline uint32_t emu_host_datagram_put(uint8_t message[EMU_HOST_DATAGRAM_MAX], uint32_t domain,
                                             const struct emu_host_datagram *d)
{
    uint8_t *at = emu_host_head_put(message, EMU_HOST_DATAGRAM, domain);

    at = emu_fields_put(at, EMU_FIELDS(emu_host_datagram_fields), d);
    if (d->bytes > 0)
        memcpy(at, d->data, d->bytes);
    return EMU_HOST_DATAGRAM_BYTES + d->bytes;
}

/* Of a message whose head was taken. False: no correct sender writes that. */
static inline bool emu_host_datagram_parse(const uint8_t *message, uint32_t length_bytes,
                                           struct emu_host_datagram *datagram_out)
{
    struct emu_host_datagram d;
    bool has_data;
    bool has_number;
    bool has_claimer;

    if (length_bytes < EMU_HOST_DATAGRAM_BYTES ||
        !emu_fields_parse(message + EMU_HOST_HEAD_BYTES, EMU_FIELDS(emu_host_datagram_fields), &d) ||
        length_bytes != EMU_HOST_DATAGRAM_BYTES + d.bytes)
        return false;
    d.data = message + EMU_HOST_DATAGRAM_BYTES;
    has_data = d.word == EMU_DATAGRAM_OFFER || d.word == EMU_DATAGRAM_CLAIM;
    has_number = d.word != EMU_DATAGRAM_BEGIN;
    has_claimer = has_number && d.word != EMU_DATAGRAM_OFFER && d.word != EMU_DATAGRAM_WITHDRAW;
    if ((d.bytes > 0 && !has_data) || (d.number != 0) != has_number || (d.claimer != 0) != has_claimer)
        return false;
    *datagram_out = d;
    return true;
}

#endif
