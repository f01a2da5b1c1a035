/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Packets between hosts: what is written is read back, anything else is refused, and no byte outside of a packet is
 * touched: each packet lies at the very end of its own heap block, where the address sanitizer notices.
 */
#include "emunic/abi/wire.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "emunic/base/clock.h"
#include "tests/common/seed.h"

#define FUZZ_NS 2000000000ull

static const struct emu_wire_header sample = { .type = EMU_WIRE_DATA,
                                               .length = 80,
                                               .from = 3,
                                               .to = 65535,
                                               .session = 0x1122334455667788ull,
                                               .sequence = 1ull << 40,
                                               .granted = 99,
                                               .received = 77 };

static void test_header_is_read_back(void **state)
{
    uint8_t packet[80] = { 0 };
    struct emu_wire_header h;

    (void)state;
    emu_wire_header_put(packet, &sample);
    assert_int_equal(emu_wire_header_parse(packet, sizeof(packet), &h), EMU_WIRE_OK);
    assert_int_equal(h.from, 3);
    assert_int_equal(h.to, 65535);
    assert_true(h.session == sample.session && h.sequence == sample.sequence && h.granted == 99 && h.received == 77);
    assert_memory_equal(packet, "EMWP\0\3\3\0\0\0\0\x50", 12);
}

static void test_each_wrong_field_of_a_header_is_refused(void **state)
{
    static const struct {
        unsigned at;
        uint8_t value;
        enum emu_wire_result result;
    } cases[] = {
        { 0, 0, EMU_WIRE_FOREIGN },
        { 3, 'Q', EMU_WIRE_FOREIGN },
        { 5, 1, EMU_WIRE_OTHER_VERSION },
        { 4, 1, EMU_WIRE_OTHER_VERSION },
        { 6, 0, EMU_WIRE_BAD_FIELD },
        { 6, EMU_WIRE_TYPES, EMU_WIRE_BAD_FIELD },
        { 6, EMU_WIRE_HELLO, EMU_WIRE_BAD_FIELD }, /* has a session */
        { 7, 1, EMU_WIRE_BAD_FIELD },
        { 11, 63, EMU_WIRE_BAD_LENGTH },
        { 8, 1, EMU_WIRE_BAD_LENGTH },
        { 13, 1, EMU_WIRE_BAD_FIELD }, /* host 65 539 */
        { 12, 0xff, EMU_WIRE_BAD_FIELD },
        { 55, 1, EMU_WIRE_BAD_FIELD }, /* a position, and no records */
    };
    uint8_t packet[80] = { 0 };
    struct emu_wire_header h;

    (void)state;
    for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        emu_wire_header_put(packet, &sample);
        packet[cases[i].at] = cases[i].value;
        assert_int_equal(emu_wire_header_parse(packet, sizeof(packet), &h), cases[i].result);
    }
    emu_wire_header_put(packet, &sample);
    for (size_t length = 0; length < sizeof(packet); length++)
        assert_int_equal(emu_wire_header_parse(packet, length, &h), EMU_WIRE_SHORT);
}

static void test_hello_is_read_back_and_checked(void **state)
{
    uint8_t body[EMU_WIRE_HELLO_BYTES];
    struct emu_wire_hello hello = { .incarnation = 7ull << 33, .features = EMU_WIRE_HAS_RMA, .credits = 32 };
    struct emu_wire_hello back;

    (void)state;
    memset(hello.nonce, 1, sizeof(hello.nonce));
    memset(hello.echo, 2, sizeof(hello.echo));
    memset(hello.proof, 3, sizeof(hello.proof));
    emu_wire_hello_put(body, &hello);
    assert_int_equal(emu_wire_hello_parse(body, &back), EMU_WIRE_OK);
    assert_memory_equal(&back, &hello, sizeof(hello));
    hello.credits = 0;
    emu_wire_hello_put(body, &hello);
    assert_int_equal(emu_wire_hello_parse(body, &back), EMU_WIRE_BAD_FIELD);
    hello.credits = EMU_WIRE_CREDITS_MAX + 1;
    emu_wire_hello_put(body, &hello);
    assert_int_equal(emu_wire_hello_parse(body, &back), EMU_WIRE_BAD_FIELD);
    hello.credits = 1;
    hello.features = EMU_WIRE_FEATURES + 1;
    emu_wire_hello_put(body, &hello);
    assert_int_equal(emu_wire_hello_parse(body, &back), EMU_WIRE_BAD_FIELD);
}

/* One record of each kind; its bytes, and how many. */
static uint32_t write_records(uint8_t *body)
{
    const struct emu_wire_piece piece = { .id = 5, .key = ~0ull, .offset = 1ull << 50, .length = 11 };
    uint8_t *at = body;

    memcpy(emu_wire_record_put(at, EMU_WIRE_MESSAGE, 5), "hello", 5);
    at += emu_wire_record_space(5);
    for (enum emu_wire_kind kind = EMU_WIRE_PUT; kind < EMU_WIRE_KINDS; kind++) {
        uint32_t data = kind == EMU_WIRE_PUT || kind == EMU_WIRE_GOT ? 11 : 0;
        uint8_t *data_at = emu_wire_piece_put(emu_wire_record_put(at, kind, EMU_WIRE_PIECE_BYTES + data), &piece);

        memcpy(data_at, "eleven bytes", data);
        at += emu_wire_record_space(EMU_WIRE_PIECE_BYTES + data);
    }
    return (uint32_t)(at - body);
}

static void test_records_are_read_back(void **state)
{
    uint8_t body[400];
    struct emu_wire_record r = { 0 };
    uint32_t length = write_records(body);
    uint32_t at = 0;

    (void)state;
    assert_int_equal(emu_wire_record_next(body, length, &at, &r), EMU_WIRE_OK);
    assert_int_equal(r.length, 5);
    assert_memory_equal(r.data, "hello", 5);
    for (enum emu_wire_kind kind = EMU_WIRE_PUT; kind < EMU_WIRE_KINDS; kind++) {
        assert_int_equal(emu_wire_record_next(body, length, &at, &r), EMU_WIRE_OK);
        assert_int_equal(r.kind, kind);
        assert_true(r.piece.id == 5 && r.piece.key == ~0ull && r.piece.offset == 1ull << 50 && r.piece.length == 11);
        if (kind == EMU_WIRE_PUT || kind == EMU_WIRE_GOT)
            assert_memory_equal(r.data, "eleven byte", r.length);
        else
            assert_int_equal(r.length, 0);
    }
    assert_int_equal(at, length);
    assert_int_equal(emu_wire_record_next(body, length, &at, &r), EMU_WIRE_BAD_RECORD);
}

static void test_wrong_records_are_refused(void **state)
{
    uint8_t body[400];
    struct emu_wire_record r = { 0 };
    uint32_t length = write_records(body);
    uint32_t put = emu_wire_record_space(5);
    uint32_t get = put + emu_wire_record_space(EMU_WIRE_PIECE_BYTES + 11);
    const struct {
        uint32_t record;
        uint32_t at; /* of the record */
        uint8_t value;
    } cases[] = {
        { 0, 0, 0 },
        { 0, 0, EMU_WIRE_KINDS },
        { 0, 1, 1 },
        { 0, 3, 1 },
        { 0, 4, 1 },
        { 0, 7, 0 },
        { put, 7, EMU_WIRE_PIECE_BYTES - 1 },
        { put, 7, EMU_WIRE_PIECE_BYTES },
        { put, 39, 12 },
        { put, 24, 0xff }, /* offset + length still fits */
        { get, 7, EMU_WIRE_PIECE_BYTES + 1 },
        { get, 39, 0 },
        { get, 37, 1 },
    };

    (void)state;
    for (unsigned i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        uint32_t at = cases[i].record;
        bool is_fine = cases[i].at == 24;

        write_records(body);
        body[at + cases[i].at] = cases[i].value;
        assert_int_equal(emu_wire_record_next(body, length, &at, &r), is_fine ? EMU_WIRE_OK : EMU_WIRE_BAD_RECORD);
        if (!is_fine)
            assert_int_equal(at, cases[i].record);
    }
    write_records(body);
    memset(body + put + 24, 0xff, 8);
    length = put;
    assert_int_equal(emu_wire_record_next(body, 400, &length, &r), EMU_WIRE_BAD_RECORD); /* wraps */
}

/* What the parser takes lies inside of the packet, and it ends. */
static void check_packet(const uint8_t *packet, size_t length)
{
    struct emu_wire_header h;
    struct emu_wire_hello hello;
    struct emu_wire_record r = { 0 };
    uint32_t at = 0;
    uint32_t body_bytes;
    volatile uint8_t sum = 0;

    if (emu_wire_header_parse(packet, length, &h) != EMU_WIRE_OK)
        return;
    assert_true(h.length == length && h.from < EMU_WIRE_HOSTS_MAX && h.to < EMU_WIRE_HOSTS_MAX);
    if (h.type == EMU_WIRE_HELLO || h.type == EMU_WIRE_PROOF) {
        emu_wire_hello_parse(packet + EMU_WIRE_HEADER_BYTES, &hello);
        return;
    }
    body_bytes = h.length - EMU_WIRE_HEADER_BYTES - EMU_WIRE_TAG_BYTES;
    while (emu_wire_record_next(packet + EMU_WIRE_HEADER_BYTES, body_bytes, &at, &r) == EMU_WIRE_OK) {
        assert_true(at <= body_bytes && r.length <= EMU_WIRE_MESSAGE_MAX);
        assert_true(r.data >= packet + EMU_WIRE_HEADER_BYTES &&
                    r.data + r.length <= packet + EMU_WIRE_HEADER_BYTES + body_bytes);
        for (uint32_t i = 0; i < r.length; i++)
            sum ^= r.data[i];
    }
}

static void test_mutated_packets_stay_inside_their_bytes(void **state)
{
    struct emu_random random = seeded(3);
    uint64_t end_ns = emu_clock_ns() + FUZZ_NS;
    unsigned long n = 0;

    (void)state;
    for (; emu_clock_ns() < end_ns; n++) {
        uint8_t whole[600] = { 0 };
        struct emu_wire_header h = sample;
        uint32_t length;
        uint8_t *packet;

        h.type = (uint8_t)(1 + emu_random_below(&random, EMU_WIRE_TYPES - 1));
        length = EMU_WIRE_HEADER_BYTES + EMU_WIRE_TAG_BYTES;
        if (h.type == EMU_WIRE_DATA) {
            length += write_records(whole + EMU_WIRE_HEADER_BYTES);
            h.n_records = EMU_WIRE_KINDS - 1;
            h.position = 5;
        } else if (h.type != EMU_WIRE_GOODBYE) {
            length += EMU_WIRE_HELLO_BYTES;
            h.session = h.sequence = h.granted = h.received = 0;
        }
        if (emu_random_below(&random, 3) == 0)
            length = (uint32_t)emu_random_below(&random, length + 8);
        h.length = length;
        emu_wire_header_put(whole, &h);
        for (uint64_t k = emu_random_below(&random, 6); k > 0; k--) {
            uint32_t from = emu_random_below(&random, 3) ? EMU_WIRE_HEADER_BYTES : 0;

            whole[from + emu_random_below(&random, sizeof(whole) - from)] = (uint8_t)emu_random_next(&random);
            whole[from + emu_random_below(&random, 96)] ^= (uint8_t)(1u << emu_random_below(&random, 8));
        }
        packet = malloc(length ? length : 1);
        assert_non_null(packet);
        memcpy(packet, whole, length);
        check_packet(packet, length);
        free(packet);
    }
    printf("# %lu mutated packets\n", n);
    assert_true(n > 1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_header_is_read_back),
        cmocka_unit_test(test_each_wrong_field_of_a_header_is_refused),
        cmocka_unit_test(test_hello_is_read_back_and_checked),
        cmocka_unit_test(test_records_are_read_back),
        cmocka_unit_test(test_wrong_records_are_refused),
        cmocka_unit_test(test_mutated_packets_stay_inside_their_bytes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
