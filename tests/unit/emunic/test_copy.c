/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Long copies, wherever the two places lie, and short ones.
 */
#include "emunic/engine/copy.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define ROOM 32768

static uint8_t *fill(uint8_t bytes[ROOM])
{
    for (uint32_t i = 0; i < ROOM; i++)
        bytes[i] = (uint8_t)(i * 2654435761u >> 13);
    return bytes;
}

/* Lengths about a block, about the shortest long copy, and about pages. */
static const uint64_t lengths[] = { 0, 1, 63, 64, 65, 1023, 1024, 1025, 1087, 1088, 4095, 4096, 4097, 8192, 12345 };
#define N_LENGTHS (sizeof(lengths) / sizeof(lengths[0]))

static void test_copies_to_every_offset_of_a_page(void **state)
{
    static uint8_t from[ROOM];
    static uint8_t to[ROOM];
    static uint8_t expected[ROOM];

    (void)state;
    fill(from);
    for (uint32_t offset = 0; offset < 4096 + 80; offset += offset < 80 || offset > 4000 ? 1 : 61) {
        for (size_t i = 0; i < N_LENGTHS; i++) {
            memset(to, 0xa5, sizeof(to));
            memset(expected, 0xa5, sizeof(expected));
            memmove(expected + offset, from + 3, lengths[i]);
            emu_copy(to + offset, from + 3, lengths[i]);
            assert_memory_equal(to, expected, sizeof(to));
        }
    }
}

static void copies_within(uint32_t to, uint32_t from)
{
    static uint8_t bytes[ROOM];
    static uint8_t expected[ROOM];

    for (size_t i = 0; i < N_LENGTHS; i++) {
        memmove(fill(expected) + to, expected + from, lengths[i]);
        emu_copy(fill(bytes) + to, bytes + from, lengths[i]);
        assert_memory_equal(bytes, expected, sizeof(bytes));
    }
}

static void test_places_may_overlap(void **state)
{
    (void)state;
    for (uint32_t ahead = 0; ahead < 130; ahead++) {
        copies_within(5000 + ahead, 5000);        /* upwards would overwrite the rest of the source */
        copies_within(5000, 5000 + ahead);        /* downwards would */
        copies_within(5000, 5000 + 4096 - ahead); /* slow by the page, destination below */
        copies_within(5000 + 4096 + ahead, 5000);
    }
}

/* Exactly these bytes are read and written. */
static void test_few_bytes(void **state)
{
    static uint8_t from[ROOM];
    uint8_t to[128];
    uint8_t expected[128];

    (void)state;
    fill(from);
    for (uint32_t len_bytes = 0; len_bytes <= 80; len_bytes++) {
        for (uint32_t offset = 0; offset < 17; offset++) {
            uint8_t *source = malloc(len_bytes + 1); /* its end is known to a sanitizer */

            assert_non_null(source);
            memcpy(source + 1, from + offset, len_bytes);
            memset(to, 0xa5, sizeof(to));
            memset(expected, 0xa5, sizeof(expected));
            memcpy(expected + offset, from + offset, len_bytes);
            emu_copy_few(to + offset, source + 1, len_bytes);
            assert_memory_equal(to, expected, sizeof(to));
            free(source);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_copies_to_every_offset_of_a_page),
        cmocka_unit_test(test_places_may_overlap),
        cmocka_unit_test(test_few_bytes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
