/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Memory handle bits against spec/ugni.md Appendix B: field positions, both formats, the CRC, and the handle that
 * libfabric rebuilds from its key. The random round trip takes its seed from EMU_TEST_SEED and prints it.
 */
#include <gni_pub.h>

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "libugni/src/handle_bits.h"

static struct gnii_handle_fields ordinary_fields(void)
{
    return (struct gnii_handle_fields){
        .base_va = 0x7f1234567000,
        .n_pages = 0x123,
        .mdh = 5 << 12 | 0xabc,
        .generation = 0x345,
        .page_shift = 12,
        .flags = GNII_HNDL_READONLY,
    };
}

/* CRC-8 bit by bit, as the specification states it. */
static uint8_t slow_crc(const uint8_t *bytes, size_t len_bytes)
{
    uint8_t crc = 0;

    for (size_t i = 0; i < len_bytes; i++) {
        crc ^= bytes[i];
        for (int bit = 0; bit < 8; bit++)
            crc = (uint8_t)((crc & 1) != 0 ? crc >> 1 ^ 0x8c : crc >> 1);
    }
    return crc;
}

static void test_fields_stand_where_format_1_has_them(void **state)
{
    struct gnii_handle_fields f = ordinary_fields();
    gni_mem_handle_t h = { 0 };

    (void)state;
    assert_int_equal(gnii_handle_encode(&f, &h), 0);
    assert_int_equal(h.qword1 >> 52, 0xabc);
    assert_int_equal(h.qword1 & 0xfffffffffffff, 0x7f1234567);
    assert_int_equal(h.qword2 & 0xfffffff, 0x123);
    assert_int_equal(h.qword2 >> 28 & 0x3f, 12);
    assert_int_equal(h.qword2 >> 34 & 0xff, GNII_HNDL_READONLY);
    assert_int_equal(h.qword2 >> 42 & 0x7ff, 0x345);
    assert_int_equal(h.qword2 >> 53 & 7, 5);
}

static void test_decode_gives_back_what_encode_took(void **state)
{
    struct gnii_handle_fields f = ordinary_fields(), g = { 0 };
    gni_mem_handle_t h = { 0 };

    (void)state;
    assert_int_equal(gnii_handle_encode(&f, &h), 0);
    assert_int_equal(gnii_handle_decode(&h, &g), 0);
    assert_int_equal(g.base_va, f.base_va);
    assert_int_equal(g.n_pages, f.n_pages);
    assert_int_equal(g.mdh, f.mdh);
    assert_int_equal(g.generation, f.generation);
    assert_int_equal(g.page_shift, f.page_shift);
    assert_int_equal(g.flags, f.flags);
}

static uint64_t next_random(uint64_t *x)
{
    *x ^= *x << 13;
    *x ^= *x >> 7;
    *x ^= *x << 17;
    return *x;
}

static void test_random_handles_survive_the_round_trip(void **state)
{
    const char *env = getenv("EMU_TEST_SEED");
    uint64_t x = env != NULL ? strtoull(env, NULL, 0) : 20250101;

    (void)state;
    fprintf(stderr, "# seed %llu\n", (unsigned long long)x);
    x = x != 0 ? x : 1;
    for (int i = 0; i < 10000; i++) {
        struct gnii_handle_fields f = {
            .base_va = gnii_va_sign_extend(next_random(&x) & ~0xfffULL) | (1ULL << 12),
            .n_pages = (uint32_t)next_random(&x) & GNII_HNDL_PAGES_MASK,
            .mdh = (uint16_t)(next_random(&x) & 0x7fff),
            .generation = (uint16_t)(next_random(&x) & GNII_HNDL_GEN_MASK),
            .page_shift = (uint8_t)(next_random(&x) & GNII_HNDL_PSHIFT_MASK),
            .flags = (uint8_t)(next_random(&x) & 0x7f),
        };
        struct gnii_handle_fields g = { 0 };
        gni_mem_handle_t h = { 0 };

        assert_int_equal(gnii_handle_encode(&f, &h), 0);
        assert_true(gnii_handle_crc_is_good(&h));
        assert_int_equal(gnii_handle_decode(&h, &g), 0);
        assert_true(g.base_va == f.base_va && g.n_pages == f.n_pages && g.mdh == f.mdh &&
                    g.generation == f.generation && g.page_shift == f.page_shift && g.flags == f.flags);
    }
}

static void test_kernel_half_addresses_survive_by_sign_extension(void **state)
{
    struct gnii_handle_fields f = ordinary_fields(), g = { 0 };
    gni_mem_handle_t h = { 0 };

    (void)state;
    f.base_va = 0xffff800000001000;
    assert_int_equal(gnii_handle_encode(&f, &h), 0);
    assert_int_equal(gnii_handle_decode(&h, &g), 0);
    assert_int_equal(g.base_va, 0xffff800000001000);
}

static void test_sign_extension_copies_bit_48(void **state)
{
    (void)state;
    assert_int_equal(gnii_va_sign_extend(0x0000ffffffffffff), 0x0000ffffffffffff);
    assert_int_equal(gnii_va_sign_extend(0x0001000000000000), 0xffff000000000000);
    assert_int_equal(gnii_va_sign_extend(0xfffe7f0000001000), 0x00007f0000001000);
    assert_int_equal(gnii_va_sign_extend(0), 0);
}

static void test_format_2_keeps_the_mdh_in_the_second_word(void **state)
{
    const gni_mem_handle_t h = {
        .qword1 = 0x5a5ULL << 52 | 0x7f1234567, /* entropy where format 1 has the MDH */
        .qword2 = 0xabcULL << 42 | (uint64_t)(GNII_HNDL_NEW_FRMT | GNII_HNDL_READONLY) << 34 | 12ULL << 28 | 0x123,
    };
    struct gnii_handle_fields g = { 0 };

    (void)state;
    assert_int_equal(gnii_handle_decode(&h, &g), 0);
    assert_int_equal(g.mdh, 0xabc);
    assert_int_equal(g.base_va, 0x7f1234567000);
    assert_int_equal(g.n_pages, 0x123);
    assert_int_equal(g.page_shift, 12);
    assert_int_equal(g.flags, GNII_HNDL_READONLY);
    assert_int_equal(g.generation, 0);
}

static void test_rebuilt_ordinary_handle_tells_no_generation(void **state)
{
    /* As libfabric builds it from a key: format 1, page size 4 KiB, all pages, read-only, no CRC. */
    const gni_mem_handle_t h = {
        .qword1 = 0xabcULL << 52 | 0x7f1234567,
        .qword2 = 0x01ULL << 34 | 12ULL << 28 | 0xfffffff,
    };
    struct gnii_handle_fields g = { 0 };

    (void)state;
    assert_int_equal(gnii_handle_decode(&h, &g), 0);
    assert_int_equal(g.mdh, 0xabc);
    assert_int_equal(g.base_va, 0x7f1234567000);
    assert_int_equal(g.generation, 0);
    assert_int_equal(g.flags, GNII_HNDL_READONLY);
}

static void test_rebuilt_vmdh_handle_has_index_and_no_address(void **state)
{
    const gni_mem_handle_t h = { .qword1 = 3ULL << 52, .qword2 = 0x02ULL << 34 | 12ULL << 28 | 0xfffffff };
    struct gnii_handle_fields g = { 0 };

    (void)state;
    assert_int_equal(gnii_handle_decode(&h, &g), 0);
    assert_int_equal(g.mdh, 3);
    assert_int_equal(g.base_va, 0);
    assert_int_equal(g.flags, GNII_HNDL_VMDH);
}

static void test_null_handle_does_not_decode(void **state)
{
    const gni_mem_handle_t h = { 0 };
    struct gnii_handle_fields g = { .mdh = 77 };

    (void)state;
    assert_true(gnii_handle_is_null(&h));
    assert_int_equal(gnii_handle_decode(&h, &g), -EINVAL);
    assert_int_equal(g.mdh, 77);
}

static void test_crc_table_is_crc_8_with_polynomial_8c(void **state)
{
    const char check[] = "123456789";
    uint8_t crc = 0;

    (void)state;
    for (unsigned byte = 0; byte < 256; byte++) {
        uint8_t b = (uint8_t)byte;

        assert_int_equal(gnii_crc8_byte(0, b), slow_crc(&b, 1));
    }
    for (size_t i = 0; i < 9; i++)
        crc = gnii_crc8_byte(crc, (uint8_t)check[i]);
    assert_int_equal(crc, 0xa1); /* the catalogue's check value of CRC-8/MAXIM */
}

static void test_crc_of_a_handle_covers_its_15_low_bytes_in_order(void **state)
{
    gni_mem_handle_t h = { .qword1 = 0x0123456789abcdef, .qword2 = 0x55fedcba98765432 };
    uint8_t bytes[16];

    (void)state;
    memcpy(bytes, &h, sizeof(bytes)); /* x86-64 and the rest of our hosts: least significant byte first */
    assert_int_equal(gnii_handle_crc(&h), slow_crc(bytes, 15));
    h.qword2 ^= 0xffULL << 56;
    assert_int_equal(gnii_handle_crc(&h), slow_crc(bytes, 15));
}

static void test_one_wrong_bit_makes_the_crc_bad(void **state)
{
    struct gnii_handle_fields f = ordinary_fields();
    gni_mem_handle_t h = { 0 }, bad;

    (void)state;
    assert_int_equal(gnii_handle_encode(&f, &h), 0);
    assert_true(gnii_handle_crc_is_good(&h));
    for (int bit = 0; bit < 128; bit++) {
        bad = h;
        if (bit < 64)
            bad.qword1 ^= 1ULL << bit;
        else
            bad.qword2 ^= 1ULL << (bit - 64);
        assert_false(gnii_handle_crc_is_good(&bad));
    }
}

static void test_attributes_read_their_flag(void **state)
{
    struct gnii_handle_fields f = ordinary_fields();
    gni_mem_handle_t h = { 0 };

    (void)state;
    for (int attr = GNI_MEMHNDL_ATTR_READONLY; attr <= GNI_MEMHNDL_ATTR_CLONE; attr++) {
        f.flags = (uint8_t)(1u << (attr - 1));
        assert_int_equal(gnii_handle_encode(&f, &h), 0);
        for (int other = GNI_MEMHNDL_ATTR_READONLY; other <= GNI_MEMHNDL_ATTR_CLONE; other++)
            assert_int_equal(gnii_handle_has_attr(&h, (gni_mem_handle_attr_t)other), attr == other);
    }
}

static void test_page_count_saturates(void **state)
{
    struct gnii_handle_fields f = ordinary_fields(), g = { 0 };
    gni_mem_handle_t h = { 0 };

    (void)state;
    f.n_pages = UINT32_MAX;
    assert_int_equal(gnii_handle_encode(&f, &h), 0);
    assert_int_equal(gnii_handle_decode(&h, &g), 0);
    assert_int_equal(g.n_pages, 0xfffffff);
    assert_int_equal(g.page_shift, 12);
}

static void assert_refused(const struct gnii_handle_fields *f)
{
    gni_mem_handle_t h = { .qword1 = 1, .qword2 = 2 };

    assert_int_equal(gnii_handle_encode(f, &h), -EINVAL);
    assert_true(h.qword1 == 1 && h.qword2 == 2);
}

static void test_encode_refuses_an_address_off_the_page(void **state)
{
    struct gnii_handle_fields f = ordinary_fields();

    (void)state;
    f.base_va += 8;
    assert_refused(&f);
}

static void test_encode_refuses_an_address_beyond_49_bits(void **state)
{
    struct gnii_handle_fields f = ordinary_fields();

    (void)state;
    f.base_va = 1ULL << 48;
    assert_refused(&f);
}

static void test_encode_refuses_fields_that_do_not_fit(void **state)
{
    struct gnii_handle_fields f = ordinary_fields();

    (void)state;
    f.mdh = 0x8000;
    assert_refused(&f);
    f = ordinary_fields();
    f.generation = 0x800;
    assert_refused(&f);
    f = ordinary_fields();
    f.page_shift = 64;
    assert_refused(&f);
    f = ordinary_fields();
    f.flags = GNII_HNDL_NEW_FRMT;
    assert_refused(&f);
}

static void test_encode_refuses_mdh_0_at_address_0_unless_vmdh(void **state)
{
    struct gnii_handle_fields f = { .page_shift = 12, .n_pages = 1, .generation = 1 };
    gni_mem_handle_t h = { 0 };

    (void)state;
    assert_refused(&f);
    f.flags = GNII_HNDL_VMDH;
    assert_int_equal(gnii_handle_encode(&f, &h), 0);
    assert_false(gnii_handle_is_null(&h));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fields_stand_where_format_1_has_them),
        cmocka_unit_test(test_decode_gives_back_what_encode_took),
        cmocka_unit_test(test_random_handles_survive_the_round_trip),
        cmocka_unit_test(test_kernel_half_addresses_survive_by_sign_extension),
        cmocka_unit_test(test_sign_extension_copies_bit_48),
        cmocka_unit_test(test_format_2_keeps_the_mdh_in_the_second_word),
        cmocka_unit_test(test_rebuilt_ordinary_handle_tells_no_generation),
        cmocka_unit_test(test_rebuilt_vmdh_handle_has_index_and_no_address),
        cmocka_unit_test(test_null_handle_does_not_decode),
        cmocka_unit_test(test_crc_table_is_crc_8_with_polynomial_8c),
        cmocka_unit_test(test_crc_of_a_handle_covers_its_15_low_bytes_in_order),
        cmocka_unit_test(test_one_wrong_bit_makes_the_crc_bad),
        cmocka_unit_test(test_attributes_read_their_flag),
        cmocka_unit_test(test_page_count_saturates),
        cmocka_unit_test(test_encode_refuses_an_address_off_the_page),
        cmocka_unit_test(test_encode_refuses_an_address_beyond_49_bits),
        cmocka_unit_test(test_encode_refuses_fields_that_do_not_fit),
        cmocka_unit_test(test_encode_refuses_mdh_0_at_address_0_unless_vmdh),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
