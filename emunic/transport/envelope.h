/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sealed packets of one direction of a session: what is carried can be read and changed by nobody without its key.
 *
 *   byte 0        64                          length - 16
 *        | header | body, encrypted           | tag |        the tag covers both
 *
 * Nothing of the network, no clock. A nonce is the number of the packet; sealing counts, so none comes twice.
 */
#ifndef EMUNIC_TRANSPORT_ENVELOPE_H
#define EMUNIC_TRANSPORT_ENVELOPE_H

#include <stdalign.h>
#include <stdbool.h>
#include <stdint.h>

#include "emunic/abi/wire.h"
#include "emunic/transport/transport.h"

#define EMU_ENVELOPE_KEY_BYTES   32u
/*
 * Packets of one key. 2^24 of at most 2^10 blocks keep an attacker's advantage over AES-GCM below 2^-60, and are
 * below the limit that TLS 1.3 has for it, 2^24.5 full records (RFC 8446, 5.5).
 */
#define EMU_ENVELOPE_KEY_PACKETS (1u << 24)

struct emu_envelope {
    alignas(16) uint8_t schedule[512]; /* of AES */
    uint8_t key[EMU_ENVELOPE_KEY_BYTES];
    uint64_t number;      /* of the last packet; the first has 1 */
    uint64_t left;        /* packets of this key */
    uint64_t key_packets; /* of the keys that follow */
    enum emu_cipher cipher;
};

/* Has this processor what AES-GCM takes? Without, it would be slow and leak its key by its time. */
bool emu_envelope_has_aes(void);
void emu_envelope_init(struct emu_envelope *e, enum emu_cipher cipher, const uint8_t key[EMU_ENVELOPE_KEY_BYTES]);

/*
 * Seals the next packet, which has e->number + 1: `length_bytes` of header and body, to as many and the tag in
 * sealed_out. Both may be the same.
 */
void emu_envelope_seal(struct emu_envelope *e, const uint8_t *packet, uint32_t length_bytes, uint8_t *sealed_out);
/*
 * Opens a packet in its place; `length_bytes` of it with its tag. False: it was not sealed by the other side with
 * this number, or its number is not above that of the last one; then its body is undefined and `e` as it was.
 */
bool emu_envelope_open(struct emu_envelope *e, uint64_t number, uint8_t *packet, uint32_t length_bytes);

#endif
