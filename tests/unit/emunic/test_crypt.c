/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Proofs, sessions and tags: right ones are taken; with any bit of key, host, nonce or packet changed they are not.
 */
#include "emunic/transport/crypt.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static uint8_t key[EMU_CRYPT_KEY_BYTES];
static struct emu_crypt_side a = { .host = 1, .features = 1, .credits = 32, .incarnation = 5 };
static struct emu_crypt_side b = { .host = 2, .features = 0, .credits = 16, .incarnation = 6 };

static int setup(void **state)
{
    (void)state;
    emu_crypt_key("sixteen bytes or", 16, key);
    memset(a.nonce, 0xa, sizeof(a.nonce));
    memset(b.nonce, 0xb, sizeof(b.nonce));
    return emu_crypt_init();
}

static void test_proof_is_of_one_key_host_and_handshake(void **state)
{
    uint8_t proof[EMU_WIRE_PROOF_BYTES];
    uint8_t other_key[EMU_CRYPT_KEY_BYTES];
    struct emu_crypt_side other;

    (void)state;
    emu_crypt_prove(key, &a, b.nonce, b.host, proof);
    assert_true(emu_crypt_is_proof(key, &a, b.nonce, b.host, proof));
    assert_false(emu_crypt_is_proof(key, &a, b.nonce, 3, proof));
    assert_false(emu_crypt_is_proof(key, &a, a.nonce, b.host, proof));
    assert_false(emu_crypt_is_proof(key, &b, a.nonce, a.host, proof)); /* sent back */
    emu_crypt_key("sixteen bytes of", 16, other_key);
    assert_false(emu_crypt_is_proof(other_key, &a, b.nonce, b.host, proof));
    for (unsigned i = 0; i < 5; i++) {
        other = a;
        other.host += i == 0;
        other.features ^= i == 1;
        other.credits += i == 2;
        other.incarnation += i == 3;
        other.nonce[31] ^= i == 4;
        assert_false(emu_crypt_is_proof(key, &other, b.nonce, b.host, proof));
    }
    proof[0] ^= 1;
    assert_false(emu_crypt_is_proof(key, &a, b.nonce, b.host, proof));
}

static void test_both_sides_get_the_same_session(void **state)
{
    struct emu_crypt_session of_a;
    struct emu_crypt_session of_b;
    struct emu_crypt_session later;

    (void)state;
    emu_crypt_session(key, &a, &b, &of_a);
    emu_crypt_session(key, &b, &a, &of_b);
    assert_true(of_a.id == of_b.id && of_a.id != 0);
    assert_memory_equal(of_a.tx, of_b.rx, sizeof(of_a.tx));
    assert_memory_equal(of_a.rx, of_b.tx, sizeof(of_a.tx));
    assert_memory_not_equal(of_a.rx, of_a.tx, sizeof(of_a.tx));
    a.nonce[0]++;
    emu_crypt_session(key, &a, &b, &later);
    assert_true(later.id != of_a.id);
    assert_memory_not_equal(later.tx, of_a.tx, sizeof(of_a.tx));
}

static void test_tag_covers_every_bit_and_the_number(void **state)
{
    uint8_t packet[100] = "a packet";

    (void)state;
    emu_crypt_seal(key, 7, packet, sizeof(packet));
    assert_true(emu_crypt_is_sealed(key, 7, packet, sizeof(packet)));
    assert_false(emu_crypt_is_sealed(key, 8, packet, sizeof(packet)));
    for (unsigned bit = 0; bit < 8 * sizeof(packet); bit++) {
        packet[bit / 8] ^= (uint8_t)(1u << bit % 8);
        assert_false(emu_crypt_is_sealed(key, 7, packet, sizeof(packet)));
        packet[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_proof_is_of_one_key_host_and_handshake, setup),
        cmocka_unit_test_setup(test_both_sides_get_the_same_session, setup),
        cmocka_unit_test_setup(test_tag_covers_every_bit_and_the_number, setup),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
