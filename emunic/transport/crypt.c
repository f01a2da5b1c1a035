/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Proofs, session keys and tags, all by libsodium.
 *
 * Proofs and keys are HMAC-SHA-512-256 (crypto_auth) of a label and what both sides have said, under the job's key.
 * Labels keep a proof from being anything else, and a host's number in it keeps it from being sent back to its maker.
 * A packet's tag is ChaCha20-Poly1305 (RFC 8439) with nothing to encrypt, the packet as additional data and its
 * sequence number as nonce; each direction of a session has a key of its own, so no nonce comes twice under one key.
 *
 * Between sides that are secure the text of the keys has the product of X25519, too: they need it and the job's key.
 * Their packets are sealed (envelope.c) and have no other tag.
 */
#include "emunic/transport/crypt.h"

#include <assert.h>
#include <errno.h>
#include <sodium.h>
#include <string.h>

static_assert(crypto_auth_BYTES == EMU_WIRE_PROOF_BYTES, "a proof is one MAC");
static_assert(crypto_auth_KEYBYTES == EMU_CRYPT_KEY_BYTES && crypto_auth_BYTES == EMU_CRYPT_KEY_BYTES,
              "a key is one MAC");
static_assert(crypto_aead_chacha20poly1305_IETF_KEYBYTES == EMU_CRYPT_KEY_BYTES, "one kind of key");
static_assert(crypto_aead_chacha20poly1305_IETF_ABYTES == EMU_WIRE_TAG_BYTES, "a tag is one MAC");

#define SIDE_BYTES (20u + EMU_WIRE_NONCE_BYTES)

static_assert(crypto_scalarmult_BYTES == EMU_WIRE_NONCE_BYTES && crypto_scalarmult_SCALARBYTES == EMU_CRYPT_KEY_BYTES,
              "a nonce may be a public key");

enum label { LABEL_PROOF = 1, LABEL_LOW_TO_HIGH, LABEL_HIGH_TO_LOW, LABEL_NUMBER };

int emu_crypt_init(void)
{
    return sodium_init() < 0 ? -ENOSYS : 0;
}

void emu_crypt_random(void *to, uint32_t length_bytes)
{
    randombytes_buf(to, length_bytes);
}

void emu_crypt_wipe(void *what, uint32_t length_bytes)
{
    sodium_memzero(what, length_bytes);
}

void emu_crypt_key(const void *key, uint32_t length_bytes, uint8_t key_out[EMU_CRYPT_KEY_BYTES])
{
    crypto_generichash(key_out, EMU_CRYPT_KEY_BYTES, key, length_bytes, (const uint8_t *)"emunic transport", 16);
}

void emu_crypt_admission_key(const void *key, uint32_t length_bytes, uint8_t key_out[EMU_CRYPT_KEY_BYTES])
{
    crypto_generichash(key_out, EMU_CRYPT_KEY_BYTES, key, length_bytes, (const uint8_t *)"emunic admission", 16);
}

void emu_crypt_mac(const uint8_t key[EMU_CRYPT_KEY_BYTES], const char *label, const uint8_t *text,
                   uint32_t length_bytes, uint8_t *mac_out)
{
    crypto_auth_hmacsha512256_state state;

    crypto_auth_hmacsha512256_init(&state, key, EMU_CRYPT_KEY_BYTES);
    crypto_auth_hmacsha512256_update(&state, (const uint8_t *)label, strlen(label));
    crypto_auth_hmacsha512256_update(&state, text, length_bytes);
    crypto_auth_hmacsha512256_final(&state, mac_out);
    sodium_memzero(&state, sizeof(state));
}

bool emu_crypt_is_same(const uint8_t *a, const uint8_t *b, uint32_t length_bytes)
{
    return sodium_memcmp(a, b, length_bytes) == 0;
}

static uint8_t *write_side(uint8_t *at, const struct emu_crypt_side *side)
{
    at = emu_wire_put32(at, side->host);
    at = emu_wire_put32(at, side->features);
    at = emu_wire_put32(at, side->credits);
    at = emu_wire_put64(at, side->incarnation);
    memcpy(at, side->nonce, EMU_WIRE_NONCE_BYTES);
    return at + EMU_WIRE_NONCE_BYTES;
}

void emu_crypt_prove(const uint8_t key[EMU_CRYPT_KEY_BYTES], const struct emu_crypt_side *from,
                     const uint8_t to_nonce[EMU_WIRE_NONCE_BYTES], uint32_t to_host,
                     uint8_t proof_out[EMU_WIRE_PROOF_BYTES])
{
    uint8_t text[2 + SIDE_BYTES + 16 + 4 + EMU_WIRE_NONCE_BYTES] = { LABEL_PROOF, EMU_WIRE_VERSION };
    uint8_t *at = write_side(text + 2, from);

    at = emu_wire_put64(at, from->stream);
    at = emu_wire_put64(at, from->received);
    at = emu_wire_put32(at, to_host);
    memcpy(at, to_nonce, EMU_WIRE_NONCE_BYTES);
    crypto_auth(proof_out, text, sizeof(text), key);
}

bool emu_crypt_is_proof(const uint8_t key[EMU_CRYPT_KEY_BYTES], const struct emu_crypt_side *from,
                        const uint8_t to_nonce[EMU_WIRE_NONCE_BYTES], uint32_t to_host,
                        const uint8_t proof[EMU_WIRE_PROOF_BYTES])
{
    uint8_t expected[EMU_WIRE_PROOF_BYTES];

    emu_crypt_prove(key, from, to_nonce, to_host, expected);
    return sodium_memcmp(expected, proof, sizeof(expected)) == 0;
}

void emu_crypt_draw(struct emu_crypt_side *side)
{
    if (!(side->features & EMU_WIRE_SECURE)) {
        emu_crypt_random(side->nonce, sizeof(side->nonce));
        return;
    }
    emu_crypt_random(side->secret, sizeof(side->secret));
    crypto_scalarmult_base(side->nonce, side->secret);
}

static enum emu_cipher cipher_of(const struct emu_crypt_side *mine, const struct emu_crypt_side *theirs)
{
    uint32_t common = mine->features & theirs->features;

    if (!(common & EMU_WIRE_SECURE))
        return EMU_CIPHER_NONE;
    return common & EMU_WIRE_HAS_AES ? EMU_CIPHER_AES256_GCM : EMU_CIPHER_CHACHA20_POLY1305;
}

/* Keys become those of envelopes. */
static void fill_envelopes(struct emu_crypt_session *session)
{
    emu_envelope_init(&session->sealing, session->cipher, session->tx);
    emu_envelope_init(&session->opening, session->cipher, session->rx);
    sodium_memzero(session->tx, sizeof(session->tx));
    sodium_memzero(session->rx, sizeof(session->rx));
}

bool emu_crypt_session(const uint8_t key[EMU_CRYPT_KEY_BYTES], const struct emu_crypt_side *mine,
                       const struct emu_crypt_side *theirs, struct emu_crypt_session *session_out)
{
    bool is_low = mine->host < theirs->host;
    uint8_t text[2 + 2 * SIDE_BYTES + crypto_scalarmult_BYTES] = { 0, EMU_WIRE_VERSION };
    uint8_t number[crypto_auth_BYTES];
    uint8_t *at = write_side(text + 2, is_low ? mine : theirs);

    at = write_side(at, is_low ? theirs : mine);
    session_out->cipher = cipher_of(mine, theirs);
    if (((mine->features ^ theirs->features) & EMU_WIRE_SECURE) ||
        (session_out->cipher && crypto_scalarmult(at, mine->secret, theirs->nonce) != 0))
        return false;
    text[0] = LABEL_LOW_TO_HIGH;
    crypto_auth(is_low ? session_out->tx : session_out->rx, text, sizeof(text), key);
    text[0] = LABEL_HIGH_TO_LOW;
    crypto_auth(is_low ? session_out->rx : session_out->tx, text, sizeof(text), key);
    text[0] = LABEL_NUMBER;
    crypto_auth(number, text, sizeof(text), key);
    session_out->id = emu_wire_get64(number) | 1;
    if (session_out->cipher)
        fill_envelopes(session_out);
    sodium_memzero(text, sizeof(text));
    return true;
}

static void nonce_of(uint64_t sequence, uint8_t nonce_out[crypto_aead_chacha20poly1305_IETF_NPUBBYTES])
{
    memset(nonce_out, 0, crypto_aead_chacha20poly1305_IETF_NPUBBYTES);
    emu_wire_put64(nonce_out, sequence);
}

void emu_crypt_seal(const uint8_t key[EMU_CRYPT_KEY_BYTES], uint64_t sequence, uint8_t *packet, uint32_t length_bytes)
{
    uint8_t nonce[crypto_aead_chacha20poly1305_IETF_NPUBBYTES];
    uint32_t covered = length_bytes - EMU_WIRE_TAG_BYTES;

    nonce_of(sequence, nonce);
    crypto_aead_chacha20poly1305_ietf_encrypt(packet + covered, NULL, NULL, 0, packet, covered, NULL, nonce, key);
}

bool emu_crypt_is_sealed(const uint8_t key[EMU_CRYPT_KEY_BYTES], uint64_t sequence, const uint8_t *packet,
                         uint32_t length_bytes)
{
    uint8_t nonce[crypto_aead_chacha20poly1305_IETF_NPUBBYTES];
    uint32_t covered = length_bytes - EMU_WIRE_TAG_BYTES;

    nonce_of(sequence, nonce);
    return crypto_aead_chacha20poly1305_ietf_decrypt(NULL, NULL, NULL, packet + covered, EMU_WIRE_TAG_BYTES, packet,
                                                     covered, nonce, key) == 0;
}
