/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sealed packets: right ones are opened once; changed, repeated, reflected, cut and late ones are not; no number comes
 * twice; keys change in time. With either cipher.
 */
#include "emunic/transport/envelope.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "emunic/transport/crypt.h"

#define LENGTH (EMU_WIRE_HEADER_BYTES + 40u)
#define SEALED (LENGTH + EMU_WIRE_TAG_BYTES)
#define FEW    3u /* packets of a key */

static const uint8_t key[EMU_ENVELOPE_KEY_BYTES] = { 1, 2, 3 };
static const uint8_t other_key[EMU_ENVELOPE_KEY_BYTES] = { 1, 2, 4 };
static struct emu_envelope sender;
static struct emu_envelope receiver;
static uint8_t packet[SEALED];

static void begin(enum emu_cipher cipher)
{
    emu_envelope_init(&sender, cipher, key);
    emu_envelope_init(&receiver, cipher, key);
    for (unsigned i = 0; i < LENGTH; i++)
        packet[i] = (uint8_t)i;
}

static bool is_plain(const uint8_t *bytes)
{
    return memcmp(bytes, packet, LENGTH) == 0;
}

/* Runs the test with each cipher that this processor has. */
static void with_each(void (*test)(void))
{
    for (enum emu_cipher cipher = EMU_CIPHER_CHACHA20_POLY1305; cipher < EMU_CIPHERS; cipher++) {
        if (cipher == EMU_CIPHER_AES256_GCM && !emu_envelope_has_aes()) {
            print_message("# no instructions for AES-GCM here\n");
            continue;
        }
        begin(cipher);
        test();
    }
}

static void check_round_trip(void)
{
    uint8_t sealed[SEALED];

    for (uint64_t n = 1; n < 10; n++) {
        emu_envelope_seal(&sender, packet, LENGTH, sealed);
        assert_memory_equal(sealed, packet, EMU_WIRE_HEADER_BYTES);
        assert_memory_not_equal(sealed + EMU_WIRE_HEADER_BYTES, packet + EMU_WIRE_HEADER_BYTES, 8);
        assert_true(emu_envelope_open(&receiver, n, sealed, SEALED));
        assert_true(is_plain(sealed));
    }
}

static void test_what_is_sealed_is_opened_as_it_was(void **state)
{
    (void)state;
    with_each(check_round_trip);
}

static void check_sizes(void)
{
    static uint8_t plain[EMU_WIRE_PACKET_MAX];
    static uint8_t sealed[EMU_WIRE_PACKET_MAX];
    uint64_t n = 0;

    memset(plain, 0xa5, sizeof(plain));
    for (uint32_t length = EMU_WIRE_HEADER_BYTES; length <= sizeof(plain) - EMU_WIRE_TAG_BYTES; length += 8) {
        emu_envelope_seal(&sender, plain, length, sealed);
        assert_true(emu_envelope_open(&receiver, ++n, sealed, length + EMU_WIRE_TAG_BYTES));
        assert_memory_equal(sealed, plain, length);
    }
}

static void test_packets_of_each_size_are_opened_in_their_place(void **state)
{
    (void)state;
    with_each(check_sizes);
}

static void check_each_bit(void)
{
    uint8_t sealed[SEALED];
    uint8_t changed[SEALED];

    emu_envelope_seal(&sender, packet, LENGTH, sealed);
    for (unsigned bit = 0; bit < 8 * SEALED; bit++) {
        memcpy(changed, sealed, SEALED);
        changed[bit / 8] ^= (uint8_t)(1u << bit % 8);
        assert_false(emu_envelope_open(&receiver, 1, changed, SEALED));
    }
    assert_true(emu_envelope_open(&receiver, 1, sealed, SEALED));
}

static void test_any_changed_bit_of_a_sealed_packet_is_refused(void **state)
{
    (void)state;
    with_each(check_each_bit);
}

static void check_strange_packets(void)
{
    struct emu_envelope other;
    uint8_t first[SEALED];
    uint8_t copy[SEALED];

    emu_envelope_seal(&sender, packet, LENGTH, first);
    for (uint32_t length = 0; length < SEALED; length++) {
        memcpy(copy, first, SEALED);
        assert_false(emu_envelope_open(&receiver, 1, copy, length));
    }
    for (uint64_t number = 0; number < 5; number++) {
        memcpy(copy, first, SEALED);
        assert_true(emu_envelope_open(&receiver, number, copy, SEALED) == (number == 1));
    }
    /* Again, under its own number and the next. */
    for (uint64_t number = 1; number < 3; number++) {
        memcpy(copy, first, SEALED);
        assert_false(emu_envelope_open(&receiver, number, copy, SEALED));
    }
    emu_envelope_init(&other, sender.cipher, other_key);
    emu_envelope_seal(&other, packet, LENGTH, copy);
    assert_false(emu_envelope_open(&receiver, 2, copy, SEALED));
}

static void test_cut_repeated_and_foreign_packets_are_refused(void **state)
{
    (void)state;
    with_each(check_strange_packets);
}

static void check_numbers(void)
{
    enum { N = 8 * FEW };
    uint8_t sealed[N][SEALED];

    sender.key_packets = sender.left = FEW;
    for (unsigned i = 0; i < N; i++) {
        emu_envelope_seal(&sender, packet, LENGTH, sealed[i]);
        assert_int_equal(sender.number, i + 1);
        for (unsigned k = 0; k < i; k++)
            assert_memory_not_equal(sealed[i] + EMU_WIRE_HEADER_BYTES, sealed[k] + EMU_WIRE_HEADER_BYTES,
                                    LENGTH - EMU_WIRE_HEADER_BYTES);
    }
}

/* The same bytes under the same key and number would be the same bytes sealed. */
static void test_no_number_comes_twice_under_a_key(void **state)
{
    (void)state;
    with_each(check_numbers);
}

static void check_key_changes(void)
{
    uint8_t sealed[SEALED];
    uint8_t before[EMU_ENVELOPE_KEY_BYTES];

    sender.key_packets = sender.left = receiver.key_packets = receiver.left = FEW;
    for (uint64_t n = 1; n <= 4 * FEW + 1; n++) {
        memcpy(before, sender.key, sizeof(before));
        emu_envelope_seal(&sender, packet, LENGTH, sealed);
        assert_true((memcmp(before, sender.key, sizeof(before)) != 0) == (n > 1 && n % FEW == 1));
        assert_true(emu_envelope_open(&receiver, n, sealed, SEALED));
        assert_true(is_plain(sealed));
        assert_memory_equal(receiver.key, sender.key, sizeof(before));
    }
}

static void test_keys_change_on_both_sides_at_the_same_packet(void **state)
{
    (void)state;
    with_each(check_key_changes);
}

static void check_gaps(void)
{
    uint8_t sealed[5 * FEW + 1][SEALED];
    uint8_t changed[SEALED];
    struct emu_envelope as_it_was;

    sender.key_packets = sender.left = receiver.key_packets = receiver.left = FEW;
    for (unsigned n = 1; n <= 5 * FEW; n++)
        emu_envelope_seal(&sender, packet, LENGTH, sealed[n]);
    /* A forged one of the next key does not change ours. */
    as_it_was = receiver;
    memcpy(changed, sealed[FEW + 1], SEALED);
    changed[SEALED - 1] ^= 1;
    assert_false(emu_envelope_open(&receiver, FEW + 1, changed, SEALED));
    assert_memory_equal(&receiver, &as_it_was, sizeof(receiver));
    /* The last of the next key is opened, so that who misses packets knows; the first of the one after is not. */
    assert_false(emu_envelope_open(&receiver, 2 * FEW + 1, sealed[2 * FEW + 1], SEALED));
    assert_true(emu_envelope_open(&receiver, 2 * FEW, sealed[2 * FEW], SEALED));
    /* What was left out is too late now. */
    assert_false(emu_envelope_open(&receiver, 2, sealed[2], SEALED));
    assert_true(emu_envelope_open(&receiver, 2 * FEW + 2, sealed[2 * FEW + 2], SEALED));
    assert_int_equal(receiver.left, FEW - 2);
    assert_false(emu_envelope_open(&receiver, UINT64_MAX, sealed[2 * FEW + 3], SEALED));
}

static void test_packets_beyond_a_gap_are_opened_as_far_as_the_next_key(void **state)
{
    (void)state;
    with_each(check_gaps);
}

static void test_the_limit_of_a_key_is_below_that_of_its_cipher(void **state)
{
    (void)state;
    begin(EMU_CIPHER_CHACHA20_POLY1305);
    assert_int_equal(sender.left, EMU_ENVELOPE_KEY_PACKETS);
    /* RFC 8446, 5.5: 2^24.5 records of 2^14 bytes. */
    assert_true(EMU_ENVELOPE_KEY_PACKETS <= 1u << 24 && EMU_WIRE_PACKET_MAX <= 1u << 14);
}

/* ---- sessions ---- */

static void draw_two(struct emu_crypt_side *a, struct emu_crypt_side *b, uint32_t features_of_b)
{
    *a = (struct emu_crypt_side){ .host = 1, .features = EMU_WIRE_SECURE | EMU_WIRE_HAS_AES, .credits = 32 };
    *b = (struct emu_crypt_side){ .host = 2, .features = features_of_b, .credits = 32 };
    emu_crypt_draw(a);
    emu_crypt_draw(b);
}

static void test_both_sides_of_a_secure_session_have_the_same_keys(void **state)
{
    struct emu_crypt_session of_a, of_b;
    struct emu_crypt_side a, b;
    uint8_t bytes[SEALED];

    (void)state;
    if (!emu_envelope_has_aes())
        print_message("# no instructions for AES-GCM here\n");
    for (unsigned with_aes = 0; with_aes < (emu_envelope_has_aes() ? 2 : 1); with_aes++) {
        begin(EMU_CIPHER_CHACHA20_POLY1305);
        draw_two(&a, &b, EMU_WIRE_SECURE | (with_aes ? EMU_WIRE_HAS_AES : 0));
        assert_true(emu_crypt_session(key, &a, &b, &of_a) && emu_crypt_session(key, &b, &a, &of_b));
        assert_int_equal(of_a.cipher, with_aes ? EMU_CIPHER_AES256_GCM : EMU_CIPHER_CHACHA20_POLY1305);
        assert_true(of_a.id == of_b.id && of_a.cipher == of_b.cipher);
        emu_envelope_seal(&of_a.sealing, packet, LENGTH, bytes);
        assert_true(emu_envelope_open(&of_b.opening, 1, bytes, SEALED));
        /* Sent back. */
        emu_envelope_seal(&of_a.sealing, packet, LENGTH, bytes);
        assert_false(emu_envelope_open(&of_a.opening, 1, bytes, SEALED));
    }
}

static void test_jobs_key_and_words_do_not_give_the_keys(void **state)
{
    struct emu_crypt_session of_a, guessed;
    struct emu_crypt_side a, b;
    uint8_t bytes[SEALED];

    (void)state;
    begin(EMU_CIPHER_CHACHA20_POLY1305);
    draw_two(&a, &b, EMU_WIRE_SECURE);
    assert_true(emu_crypt_session(key, &a, &b, &of_a));
    emu_envelope_seal(&of_a.sealing, packet, LENGTH, bytes);
    b.secret[3] ^= 1; /* all else is on the wire */
    assert_true(emu_crypt_session(key, &b, &a, &guessed));
    assert_false(emu_envelope_open(&guessed.opening, 1, bytes, SEALED));
    b.secret[3] ^= 1;
    assert_true(emu_crypt_session(other_key, &b, &a, &guessed));
    assert_false(emu_envelope_open(&guessed.opening, 1, bytes, SEALED));
}

static void test_a_side_that_is_not_secure_and_a_nonce_that_is_no_key_give_no_session(void **state)
{
    struct emu_crypt_session session;
    struct emu_crypt_side a, b;

    (void)state;
    draw_two(&a, &b, 0);
    assert_false(emu_crypt_session(key, &a, &b, &session));
    assert_false(emu_crypt_session(key, &b, &a, &session));
    draw_two(&a, &b, EMU_WIRE_SECURE);
    memset(b.nonce, 0, sizeof(b.nonce));
    assert_false(emu_crypt_session(key, &a, &b, &session));
    b.nonce[0] = 1;
    assert_false(emu_crypt_session(key, &a, &b, &session));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_what_is_sealed_is_opened_as_it_was),
        cmocka_unit_test(test_packets_of_each_size_are_opened_in_their_place),
        cmocka_unit_test(test_any_changed_bit_of_a_sealed_packet_is_refused),
        cmocka_unit_test(test_cut_repeated_and_foreign_packets_are_refused),
        cmocka_unit_test(test_no_number_comes_twice_under_a_key),
        cmocka_unit_test(test_keys_change_on_both_sides_at_the_same_packet),
        cmocka_unit_test(test_packets_beyond_a_gap_are_opened_as_far_as_the_next_key),
        cmocka_unit_test(test_the_limit_of_a_key_is_below_that_of_its_cipher),
        cmocka_unit_test(test_both_sides_of_a_secure_session_have_the_same_keys),
        cmocka_unit_test(test_jobs_key_and_words_do_not_give_the_keys),
        cmocka_unit_test(test_a_side_that_is_not_secure_and_a_nonce_that_is_no_key_give_no_session),
    };

    return emu_crypt_init() < 0 ? 1 : cmocka_run_group_tests(tests, NULL, NULL);
}
