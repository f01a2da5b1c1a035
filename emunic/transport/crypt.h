/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Who may talk: proofs that a host has the job's key, and tags on packets of a session.
 */
#ifndef EMUNIC_TRANSPORT_CRYPT_H
#define EMUNIC_TRANSPORT_CRYPT_H

#include <stdbool.h>
#include <stdint.h>

#include "emunic/abi/wire.h"
#include "emunic/transport/envelope.h"

#define EMU_CRYPT_KEY_BYTES 32u

/*
 * What one side says in its hello or proof, and its number. Stream and what was received are no part of what keys are
 * made from; the secret is never said.
 */
struct emu_crypt_side {
    uint32_t host;
    uint32_t features;
    uint32_t credits;
    uint64_t incarnation;
    uint8_t nonce[EMU_WIRE_NONCE_BYTES];
    uint64_t stream;
    uint64_t received;
    uint8_t secret[EMU_CRYPT_KEY_BYTES]; /* of ours, if secure: what the nonce is the public key of */
};

struct emu_crypt_session {
    uint64_t id; /* never 0 */
    uint8_t tx[EMU_CRYPT_KEY_BYTES];
    uint8_t rx[EMU_CRYPT_KEY_BYTES];
    enum emu_cipher cipher; /* EMU_CIPHER_NONE: tx and rx are keys of tags; else of envelopes */
    struct emu_envelope sealing;
    struct emu_envelope opening;
};

/* -ENOSYS: the library does not start. */
int emu_crypt_init(void);
/* Fills the memory with bytes that nobody can foresee. */
void emu_crypt_random(void *to, uint32_t length_bytes);
/* Overwrites what is secret, also where a compiler would leave that out. */
void emu_crypt_wipe(void *what, uint32_t length_bytes);

/* The job's key, of any length, as one of ours. */
void emu_crypt_key(const void *key, uint32_t length_bytes, uint8_t key_out[EMU_CRYPT_KEY_BYTES]);

/* The job's key for the handshake of connections (admit.h), which is none of the others. */
void emu_crypt_admission_key(const void *key, uint32_t length_bytes, uint8_t key_out[EMU_CRYPT_KEY_BYTES]);
/* MAC of a label and a text, of EMU_WIRE_PROOF_BYTES. */
void emu_crypt_mac(const uint8_t key[EMU_CRYPT_KEY_BYTES], const char *label, const uint8_t *text,
                   uint32_t length_bytes, uint8_t *mac_out);
/* Takes as long whether they are the same or not. */
bool emu_crypt_is_same(const uint8_t *a, const uint8_t *b, uint32_t length_bytes);

/* The proof that `from` shows to `to`. */
void emu_crypt_prove(const uint8_t key[EMU_CRYPT_KEY_BYTES], const struct emu_crypt_side *from,
                     const uint8_t to_nonce[EMU_WIRE_NONCE_BYTES], uint32_t to_host,
                     uint8_t proof_out[EMU_WIRE_PROOF_BYTES]);
/* Is this the proof that `from` shows to `to`? */
bool emu_crypt_is_proof(const uint8_t key[EMU_CRYPT_KEY_BYTES], const struct emu_crypt_side *from,
                        const uint8_t to_nonce[EMU_WIRE_NONCE_BYTES], uint32_t to_host,
                        const uint8_t proof[EMU_WIRE_PROOF_BYTES]);

/* The nonce, and its secret if the side's features say that it is secure. */
void emu_crypt_draw(struct emu_crypt_side *side);
/*
 * Both sides get the same number, and each other's keys. False: only one of them is secure, or the other's nonce is no
 * public key.
 */
bool emu_crypt_session(const uint8_t key[EMU_CRYPT_KEY_BYTES], const struct emu_crypt_side *mine,
                       const struct emu_crypt_side *theirs, struct emu_crypt_session *session_out);

/* Without encryption. Puts the tag of a packet into its last EMU_WIRE_TAG_BYTES. */
void emu_crypt_seal(const uint8_t key[EMU_CRYPT_KEY_BYTES], uint64_t sequence, uint8_t *packet, uint32_t length_bytes);
/* Has the packet the right tag? */
bool emu_crypt_is_sealed(const uint8_t key[EMU_CRYPT_KEY_BYTES], uint64_t sequence, const uint8_t *packet,
                         uint32_t length_bytes);

#endif
