/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Packets of a secure session. The input is a series of steps for a sender and a receiver whose keys change after a few
 * packets: a step seals some bytes as a body, and then says what arrives of them.
 */
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "emunic/transport/envelope.h"
#include "tests/fuzz/targets/target.h"

#define BODY_MAX 256u
#define FEW      5u

static struct emu_envelope sender;
static struct emu_envelope receiver;

static void begin(enum emu_cipher cipher)
{
    static const uint8_t key[EMU_ENVELOPE_KEY_BYTES] = { 7 };

    if (cipher == EMU_CIPHER_AES256_GCM && !emu_envelope_has_aes())
        cipher = EMU_CIPHER_CHACHA20_POLY1305;
    emu_envelope_init(&sender, cipher, key);
    emu_envelope_init(&receiver, cipher, key);
    sender.left = sender.key_packets = receiver.left = receiver.key_packets = FEW;
}

/* Opens a copy of exactly so many bytes, so that a sanitizer sees those that are not there. */
static bool is_opened(const uint8_t *bytes, uint32_t length, uint64_t number, const uint8_t *plain)
{
    struct emu_envelope before = receiver;
    uint8_t *copy = malloc(length ? length : 1);
    struct emu_wire_header header;
    struct emu_wire_record record;
    uint32_t at = 0;
    bool is_open;

    memcpy(copy, bytes, length);
    is_open = emu_envelope_open(&receiver, number, copy, length);
    if (!is_open)
        fuzz_require(memcmp(&before, &receiver, sizeof(before)) == 0, "what is refused changes nothing");
    else
        fuzz_require(receiver.number == number && memcmp(copy, plain, length - EMU_WIRE_TAG_BYTES) == 0,
                     "what is opened is what was sealed");
    if (is_open && emu_wire_header_parse(copy, length, &header) == EMU_WIRE_OK) {
        uint32_t body_bytes = length - EMU_WIRE_HEADER_BYTES - EMU_WIRE_TAG_BYTES;

        while (at < body_bytes &&
               emu_wire_record_next(copy + EMU_WIRE_HEADER_BYTES, body_bytes, &at, &record) == EMU_WIRE_OK)
            fuzz_read(record.data, record.length);
    }
    free(copy);
    fuzz_count(is_open);
    return is_open;
}

static void step(struct fuzz_bytes *in)
{
    uint8_t plain[EMU_WIRE_HEADER_BYTES + BODY_MAX];
    uint8_t sealed[sizeof(plain) + EMU_WIRE_TAG_BYTES];
    uint8_t what = fuzz_u8(in);
    uint32_t length = EMU_WIRE_HEADER_BYTES + fuzz_u8(in);
    uint32_t whole = length + EMU_WIRE_TAG_BYTES;
    uint64_t number;
    uint16_t at;

    fuzz_take(in, plain, length);
    emu_envelope_seal(&sender, plain, length, sealed);
    number = sender.number;
    switch (what % 8) {
    case 0: /* lost */
        break;
    case 1: /* changed */
        at = fuzz_u16(in);
        sealed[at % whole] ^= (uint8_t)(1 + fuzz_u8(in) % 255);
        fuzz_require(!is_opened(sealed, whole, number, plain), "what was changed is not opened");
        break;
    case 2: /* cut */
        fuzz_require(!is_opened(sealed, fuzz_u16(in) % whole, number, plain), "what was cut is not opened");
        break;
    case 3: /* under another number */
        at = fuzz_u16(in);
        fuzz_require(!is_opened(sealed, whole, number + 1 + at, plain), "another number opens nothing");
        break;
    case 4: /* of somebody without the key */
        fuzz_require(!is_opened(plain, length, fuzz_u64(in), plain), "what was not sealed is not opened");
        break;
    case 5: /* twice */
        if (is_opened(sealed, whole, number, plain))
            fuzz_require(!is_opened(sealed, whole, number, plain), "nothing is opened twice");
        break;
    default:
        is_opened(sealed, whole, number, plain);
    }
    /* Who has missed more than a key lasts is joined again. */
    if (sender.number - receiver.number >= FEW)
        begin(sender.cipher);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz_bytes in = { .at = data, .left = size };

    if (sodium_init() < 0)
        abort();
    begin(fuzz_u8(&in) % 2 ? EMU_CIPHER_AES256_GCM : EMU_CIPHER_CHACHA20_POLY1305);
    while (in.left > 0)
        step(&in);
    return 0;
}
