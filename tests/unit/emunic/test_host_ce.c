/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages about reduction trees: what is written is read back, anything else is refused, and no byte outside of a
 * message is touched: each lies at the very end of its own heap block, where the address sanitizer notices.
 */
#include "emunic/abi/host_ce.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "emunic/base/clock.h"
#include "tests/common/seed.h"

#define FUZZ_NS  1000000000ull
#define LIST_MAX 4u
#define ROOM     (EMU_HOST_CE_BYTES + 8 * LIST_MAX)

/* Everything that the operation can have. */
static struct emu_host_ce full(unsigned op)
{
    unsigned fields = emu_host_ce_fields(op);
    struct emu_host_ce m = { .op = (uint8_t)op };

    if (fields & (EMU_CE_HAS_FROM | EMU_CE_HAS_FROM_NODE))
        m.from_nid = 7;
    if (fields & EMU_CE_HAS_FROM) {
        m.from_ce = 3;
        m.from_version = 1ull << 40 | 5;
    }
    if (fields & (EMU_CE_HAS_TO | EMU_CE_HAS_TO_ANY)) {
        m.to_nid = 8;
        m.to_ce = 2;
        m.to_version = op == EMU_HOST_CE_POST ? 0 : 1ull << 41 | 6;
    }
    if (fields & (EMU_CE_HAS_STATUS | EMU_CE_HAS_FAILURE))
        m.status = EMU_STATUS_MISMATCH;
    if (fields & (EMU_CE_HAS_NUMBER | EMU_CE_MAY_HAVE_NUMBER))
        m.number = 1ull << 42 | 7;
    if (fields & EMU_CE_HAS_POSTER)
        m.poster = 1ull << 43 | 8;
    if (fields & EMU_CE_HAS_CHILD)
        m.child = 31;
    if (fields & EMU_CE_HAS_VALUE)
        m.value = (struct emu_ce_value){ 0x123456789abcull, UINT64_MAX,         1ull << 63,        EMU_CE_FPMAX,
                                         EMU_CE_GREATEST,   EMU_CE_FPE_INEXACT, EMU_STATUS_NETWORK };
    if (fields & EMU_CE_HAS_RESULT)
        m.value = (struct emu_ce_value){ .operand1 = 4, .operand2 = 5, .fpe = EMU_CE_FPE_MASK };
    if (op == EMU_HOST_CE_STATE)
        m.flags = EMU_HOST_CE_CONFIGURED;
    if (op == EMU_HOST_CE_LEFT)
        m.flags = EMU_HOST_CE_HAS_TWIN;
    m.n = op == EMU_HOST_CE_STATE ? 3 : op == EMU_HOST_CE_POST || op == EMU_HOST_CE_LEFT;
    return m;
}

static uint32_t write_message(uint8_t message[ROOM], const struct emu_host_ce *m)
{
    uint8_t *at = emu_host_ce_put(message, 0x11223344, m);

    assert_ptr_equal(at, message + EMU_HOST_CE_BYTES);
    for (uint32_t i = 0; i < m->n && i < LIST_MAX; i++) {
        const struct emu_ce_link link = { .nid = 100 + i, .ce_id = (uint16_t)(i + 1), .child_id = (uint8_t)(i + 2) };

        if (m->op == EMU_HOST_CE_STATE)
            at = emu_host_ce_put_link(at, &link, i == 0);
        else if (m->op == EMU_HOST_CE_POST)
            at = emu_host_ce_put_leaf(at, 200 + i, 300 + i);
        else
            at = emu_host_ce_put_instance(at, 200 + i);
    }
    return (uint32_t)(at - message);
}

/* In a heap block of its own; m->list is not valid afterwards. */
static bool is_good(const uint8_t *message, uint32_t length, struct emu_host_ce *m)
{
    uint8_t *copy = malloc(length ? length : 1);
    bool good;

    memcpy(copy, message, length);
    good = emu_host_ce_parse(copy, length, m);
    if (good)
        assert_ptr_equal(m->list + 8 * m->n, copy + length);
    free(copy);
    return good;
}

static void test_each_operation_is_read_back(void **state)
{
    (void)state;
    for (unsigned op = 1; op < EMU_HOST_CE_OPS; op++) {
        const struct emu_host_ce m = full(op);
        struct emu_host_ce read = { 0 };
        uint8_t message[ROOM];
        uint32_t length = write_message(message, &m);

        assert_true(is_good(message, length, &read));
        assert_true(read.op == m.op && read.flags == m.flags && read.status == m.status && read.child == m.child);
        assert_true(read.from_nid == m.from_nid && read.from_ce == m.from_ce && read.from_version == m.from_version);
        assert_true(read.to_nid == m.to_nid && read.to_ce == m.to_ce && read.to_version == m.to_version);
        assert_true(read.number == m.number && read.poster == m.poster && read.n == m.n);
        assert_memory_equal(&read.value, &m.value, offsetof(struct emu_ce_value, status) + 1);
    }
}

static void test_lists_are_read_back(void **state)
{
    struct emu_host_ce m = full(EMU_HOST_CE_STATE);
    uint8_t message[ROOM];
    struct emu_ce_link link;
    bool is_parent;

    (void)state;
    assert_true(emu_host_ce_parse(message, write_message(message, &m), &m));
    link = emu_host_ce_link(&m, 0, &is_parent);
    assert_true(is_parent && link.nid == 100 && link.ce_id == 1 && link.child_id == 2);
    link = emu_host_ce_link(&m, 2, &is_parent);
    assert_true(!is_parent && link.nid == 102 && link.ce_id == 3 && link.child_id == 4);
    assert_int_equal(link.type, EMU_CE_LINK_ENGINE);
    m = full(EMU_HOST_CE_POST);
    assert_true(emu_host_ce_parse(message, write_message(message, &m), &m));
    assert_int_equal(emu_host_ce_instance(&m), 200);
    assert_int_equal(emu_host_ce_pid(&m), 300);
    m = full(EMU_HOST_CE_LEFT);
    assert_true(emu_host_ce_parse(message, write_message(message, &m), &m));
    assert_int_equal(emu_host_ce_instance(&m), 200);
}

/* Byte by byte: whatever an operation does not use must be 0, and what it needs must be there. */
static void test_no_field_is_where_it_does_not_belong(void **state)
{
    static const struct {
        unsigned at;
        unsigned fields; /* of operations that have it */
    } places[] = {
        { 9, 0 }, /* flags: one too many */
        { 11, EMU_CE_HAS_CHILD },
        { 12, EMU_CE_HAS_FROM | EMU_CE_HAS_FROM_NODE },
        { 16, EMU_CE_HAS_TO | EMU_CE_HAS_TO_ANY },
        { 20, EMU_CE_HAS_FROM },
        { 22, EMU_CE_HAS_TO | EMU_CE_HAS_TO_ANY },
        { 24, EMU_CE_HAS_FROM },
        { 40, EMU_CE_HAS_NUMBER | EMU_CE_MAY_HAVE_NUMBER },
        { 48, EMU_CE_HAS_POSTER },
        { 56, EMU_CE_HAS_VALUE },
        { 64, EMU_CE_HAS_VALUE | EMU_CE_HAS_RESULT },
        { 72, EMU_CE_HAS_VALUE | EMU_CE_HAS_RESULT },
    };

    (void)state;
    for (unsigned op = 1; op < EMU_HOST_CE_OPS; op++) {
        for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
            const struct emu_host_ce m = full(op);
            uint8_t message[ROOM];
            uint32_t length = write_message(message, &m);
            struct emu_host_ce read;

            message[places[i].at] |= 0x10;
            assert_int_equal(is_good(message, length, &read), (emu_host_ce_fields(op) & places[i].fields) != 0);
        }
    }
}

static void test_what_an_operation_needs_must_be_there(void **state)
{
    (void)state;
    for (unsigned op = 1; op < EMU_HOST_CE_OPS; op++) {
        unsigned fields = emu_host_ce_fields(op);
        struct emu_host_ce wrong[8];
        unsigned n = 0;

        for (unsigned i = 0; i < 8; i++)
            wrong[i] = full(op);
        if (fields & EMU_CE_HAS_FROM)
            wrong[n++].from_version = 0;
        if (fields & EMU_CE_HAS_TO)
            wrong[n++].to_version = 0;
        if (fields & EMU_CE_HAS_FAILURE)
            wrong[n++].status = 0;
        if (fields & EMU_CE_HAS_NUMBER)
            wrong[n++].number = 0;
        if (fields & EMU_CE_HAS_POSTER)
            wrong[n++].poster = 0;
        if (fields & EMU_CE_HAS_VALUE)
            wrong[n++].value.op = 0;
        if (fields & (EMU_CE_HAS_STATUS | EMU_CE_HAS_FAILURE))
            wrong[n++].status = EMU_STATUS_MISMATCH + 1;
        wrong[n++].op = EMU_HOST_CE_OPS;
        for (unsigned i = 0; i < n; i++) {
            uint8_t message[ROOM];
            uint32_t length = write_message(message, &wrong[i]);
            struct emu_host_ce read;

            assert_false(is_good(message, length, &read));
        }
    }
}

static void test_wrong_values_are_refused(void **state)
{
    static const struct emu_ce_value wrong[] = {
        { .op = EMU_CE_OP_END },
        { .op = EMU_CE_IADD, .flags = EMU_CE_FLAG_MASK + 1 },
        { .op = EMU_CE_IADD, .fpe = EMU_CE_FPE_MASK + 1 },
        { .op = EMU_CE_IADD, .status = EMU_STATUS_MISMATCH + 1 },
    };

    (void)state;
    for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
        struct emu_host_ce m = full(EMU_HOST_CE_UP);
        uint8_t message[ROOM];
        uint32_t length;

        m.value = wrong[i];
        length = write_message(message, &m);
        assert_false(is_good(message, length, &m));
    }
}

static void test_wrong_lists_are_refused(void **state)
{
    struct emu_host_ce read;
    uint8_t message[ROOM];
    struct emu_host_ce m;
    uint32_t length;

    (void)state;
    for (unsigned op = 1; op < EMU_HOST_CE_OPS; op++) {
        m = full(op);
        length = write_message(message, &m);
        assert_false(is_good(message, length - 1, &read));
        assert_false(is_good(message, EMU_HOST_CE_BYTES - 1, &read));
        m.n++;
        write_message(message, &m);
        assert_false(is_good(message, length, &read));
    }
    /* Two parents; a child id that is none; links of an engine that is not configured; neither parent nor child. */
    for (unsigned i = 0; i < 4; i++) {
        m = full(EMU_HOST_CE_STATE);
        m.flags = i == 2 ? 0 : m.flags;
        length = write_message(message, &m);
        message[EMU_HOST_CE_BYTES + 15] = i == 0 ? 1 : i == 3 ? 2 : 0;
        message[EMU_HOST_CE_BYTES + 14] = i == 1 ? EMU_CE_CHILDREN_MAX : 1;
        assert_false(is_good(message, length, &read));
    }
    /* More behind an instance. */
    m = full(EMU_HOST_CE_LEFT);
    length = write_message(message, &m);
    message[EMU_HOST_CE_BYTES + 7] = 1;
    assert_false(is_good(message, length, &read));
    /* A leaf of no process. */
    m = full(EMU_HOST_CE_POST);
    length = write_message(message, &m);
    memset(message + EMU_HOST_CE_BYTES + 4, 0, 4);
    assert_false(is_good(message, length, &read));
}

static void test_mutated_messages_are_read_within_their_bounds(void **state)
{
    struct emu_random random = seeded(12);
    uint64_t end_ns = emu_clock_ns() + FUZZ_NS;
    uint64_t n_good = 0;

    (void)state;
    while (emu_clock_ns() < end_ns) {
        const struct emu_host_ce m = full(1 + (unsigned)emu_random_below(&random, EMU_HOST_CE_OPS - 1));
        uint8_t message[ROOM] = { 0 };
        uint32_t length = write_message(message, &m);
        struct emu_host_ce read;

        for (uint64_t n = emu_random_below(&random, 4); n > 0; n--)
            message[emu_random_below(&random, ROOM)] = (uint8_t)emu_random_below(&random, 256);
        if (emu_random_below(&random, 4) == 0)
            length = (uint32_t)emu_random_below(&random, ROOM + 1);
        n_good += is_good(message, length, &read);
    }
    assert_true(n_good > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_operation_is_read_back),
        cmocka_unit_test(test_lists_are_read_back),
        cmocka_unit_test(test_no_field_is_where_it_does_not_belong),
        cmocka_unit_test(test_what_an_operation_needs_must_be_there),
        cmocka_unit_test(test_wrong_values_are_refused),
        cmocka_unit_test(test_wrong_lists_are_refused),
        cmocka_unit_test(test_mutated_messages_are_read_within_their_bounds),
    };

    return cmocka_run_group_tests_name("messages about reduction trees", tests, NULL, NULL);
}
