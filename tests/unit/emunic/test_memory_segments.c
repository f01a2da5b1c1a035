/* SPDX-License-Identifier: BSD-3-Clause */
/* One memory of several segments (engine/memory_segments.c): what is read and written where, and what is refused. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "emunic/abi/amo.h"
#include "emunic/engine/memory_segments.h"
#include "tests/common/seed.h"

#define PAGE  64u /* any size does: the list says where a part ends */
#define TOTAL (6 * PAGE)

static _Alignas(64) uint8_t pages[10 * PAGE];
static struct emu_segment_list *list;
static struct emu_memory memory;

/* Three parts of 1, 2 and 3 pages, backwards, of which the second has no window. */
static int make_list(void **state)
{
    static const struct {
        unsigned page;
        unsigned n;
    } parts[] = { { 8, 1 }, { 5, 2 }, { 1, 3 } };
    static struct emu_memory_ops no_window;

    (void)state;
    list = calloc(1, sizeof(*list) + 3 * sizeof(list->parts[0]));
    list->n = 3;
    for (unsigned i = 0; i < 3; i++) {
        list->parts[i] = (struct emu_segment_part){ .offset = list->total_bytes,
                                                    .addr = parts[i].page * PAGE,
                                                    .len_bytes = parts[i].n * PAGE,
                                                    .memory = emu_memory_map(pages, 0, sizeof(pages)) };
        list->total_bytes += parts[i].n * PAGE;
    }
    no_window = *list->parts[1].memory.ops;
    no_window.window = NULL;
    list->parts[1].memory.ops = &no_window;
    memory = emu_memory_segments(list);
    for (size_t i = 0; i < sizeof(pages); i++)
        pages[i] = (uint8_t)(i * 7 + 1);
    return 0;
}

static int drop_list(void **state)
{
    (void)state;
    free(list);
    return 0;
}

static uint8_t *place_of(size_t offset)
{
    if (offset < PAGE)
        return pages + 8 * PAGE + offset;
    return offset < 3 * PAGE ? pages + 5 * PAGE + (offset - PAGE) : pages + PAGE + (offset - 3 * PAGE);
}

static void test_any_range_is_read_and_written_where_it_is(void **state)
{
    uint8_t expected[sizeof(pages)];
    uint8_t bytes[TOTAL];

    (void)state;
    for (size_t offset = 0; offset <= TOTAL; offset += 5) {
        for (size_t len = 0; offset + len <= TOTAL; len += 3) {
            assert_int_equal(memory.ops->read(&memory, offset, bytes, len), 0);
            for (size_t i = 0; i < len; i++)
                assert_int_equal(bytes[i], *place_of(offset + i));
            memset(bytes, (int)(offset + len), sizeof(bytes));
            memcpy(expected, pages, sizeof(pages));
            for (size_t i = 0; i < len; i++)
                expected[place_of(offset + i) - pages] = (uint8_t)(offset + len);
            assert_int_equal(memory.ops->write(&memory, offset, bytes, len, NULL), 0);
            assert_memory_equal(pages, expected, sizeof(pages));
        }
    }
}

static void test_ranges_beyond_the_end_are_faults(void **state)
{
    static const struct {
        uint64_t offset;
        uint64_t len;
    } wrong[] = {
        { TOTAL, 1 }, { TOTAL - 1, 2 }, { TOTAL + 1, 0 }, { 0, TOTAL + 1 }, { UINT64_MAX, 1 }, { UINT64_MAX - 3, 8 },
    };
    struct emu_amo add = { .op = EMU_AMO_ADD, .operand1 = 1 };
    struct emu_flag flag = { TOTAL - 4, 1 };
    uint8_t before[sizeof(pages)];
    uint8_t bytes[2 * TOTAL] = { 0 };
    uint64_t old;

    (void)state;
    memcpy(before, pages, sizeof(pages));
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        assert_int_equal(memory.ops->read(&memory, wrong[i].offset, bytes, wrong[i].len), -EFAULT);
        assert_int_equal(memory.ops->write(&memory, wrong[i].offset, bytes, wrong[i].len, NULL), -EFAULT);
        assert_null(memory.ops->window(&memory, wrong[i].offset, wrong[i].len));
    }
    assert_int_equal(memory.ops->write(&memory, 0, NULL, 0, &flag), -EFAULT);
    assert_int_equal(memory.ops->atomic(&memory, TOTAL - 4, &add, &old), -EFAULT);
    assert_memory_equal(pages, before, sizeof(pages));
}

static void test_flag_is_stored_in_its_segment(void **state)
{
    struct emu_flag flag = { 4 * PAGE, 0x1122334455667788 };
    uint8_t bytes[2 * PAGE];
    uint64_t word;

    (void)state;
    memset(bytes, 0x33, sizeof(bytes));
    assert_int_equal(memory.ops->write(&memory, PAGE / 2, bytes, sizeof(bytes), &flag), 0);
    memcpy(&word, place_of(4 * PAGE), 8);
    assert_int_equal(word, flag.value);
    assert_int_equal(*place_of(PAGE / 2), 0x33);
    assert_int_equal(*place_of(PAGE / 2 + sizeof(bytes) - 1), 0x33);
}

static void test_atomic_works_on_the_word_of_its_segment(void **state)
{
    struct emu_amo add = { .op = EMU_AMO_ADD, .operand1 = 5 };
    uint64_t old;
    uint64_t word = 37;

    (void)state;
    memcpy(place_of(3 * PAGE - 8), &word, 8);
    assert_int_equal(memory.ops->atomic(&memory, 3 * PAGE - 8, &add, &old), 0);
    memcpy(&word, place_of(3 * PAGE - 8), 8);
    assert_int_equal(old, 37);
    assert_int_equal(word, 42);
}

static void test_window_is_within_one_segment_that_has_one(void **state)
{
    (void)state;
    assert_ptr_equal(memory.ops->window(&memory, 8, PAGE - 8), place_of(8));
    assert_ptr_equal(memory.ops->window(&memory, 3 * PAGE, 3 * PAGE), place_of(3 * PAGE));
    assert_null(memory.ops->window(&memory, 8, PAGE));     /* crosses a border */
    assert_null(memory.ops->window(&memory, PAGE + 8, 8)); /* the second segment is out of reach */
}

static void test_copies_between_two_segmented_memories(void **state)
{
    struct emu_random random = seeded(4711);
    uint8_t bounce[37];
    int fault;

    for (unsigned n = 0; n < 300; n++) {
        uint64_t from = emu_random_below(&random, TOTAL / 2);
        uint64_t to = TOTAL / 2 + emu_random_below(&random, TOTAL / 4);
        uint64_t len = emu_random_below(&random, TOTAL / 4);
        uint8_t expected[TOTAL];

        make_list(state);
        if (from + len > to) /* no overlap */
            len = to - from;
        for (uint64_t i = 0; i < len; i++)
            expected[i] = *place_of(from + i);
        assert_int_equal(emu_memory_copy((struct emu_memory_at){ &memory, to }, (struct emu_memory_at){ &memory, from },
                                         len, NULL, (struct emu_bounce){ bounce, sizeof(bounce) }, &fault),
                         0);
        for (uint64_t i = 0; i < len; i++)
            assert_int_equal(*place_of(to + i), expected[i]);
        if (n < 299)
            drop_list(state);
    }
}

#define UNIT(name) cmocka_unit_test_setup_teardown(name, make_list, drop_list)

int main(void)
{
    const struct CMUnitTest tests[] = {
        UNIT(test_any_range_is_read_and_written_where_it_is),
        UNIT(test_ranges_beyond_the_end_are_faults),
        UNIT(test_flag_is_stored_in_its_segment),
        UNIT(test_atomic_works_on_the_word_of_its_segment),
        UNIT(test_window_is_within_one_segment_that_has_one),
        cmocka_unit_test_teardown(test_copies_between_two_segmented_memories, drop_list),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
