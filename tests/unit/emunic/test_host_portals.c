/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages of Portals between emunics: what is written is read back, each wrong field is refused, and no byte outside
 * of a message is touched: each lies at the very end of its own heap block, where the address sanitizer notices.
 */
#include "emunic/abi/host_portals.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "tests/common/seed.h"

#define DATA_BYTES 32u
#define ROUNDS     200000u

static const struct emu_host_portals_request put = {
    .domain = 0x11223344,
    .kind = EMU_HOST_PTL_PUT,
    .flags = EMU_HOST_PTL_WANTS_ACK,
    .id = 0x0102030405060708ull,
    .from_nid = 7,
    .from_pid = 70,
    .from_uid = 1000,
    .from_jid = 5,
    .to_nid = 9,
    .to_pid = 90,
    .pt = 4,
    .ac = 1,
    .bits = 0x1122334455667788ull,
    .offset = 0x100000000ull,
    .length_bytes = DATA_BYTES,
    .hdr_data = 0x8877665544332211ull,
    .data_bytes = DATA_BYTES,
};

/* In a heap block of its own. */
static uint8_t *copy_of(const uint8_t *message, uint32_t length)
{
    uint8_t *copy = malloc(length ? length : 1);

    memcpy(copy, message, length);
    return copy;
}

static bool request_is_good(const struct emu_host_portals_request *request, uint32_t length,
                            struct emu_host_portals_request *read)
{
    static uint8_t message[EMU_HOST_PTL_REQUEST_BYTES + 2 * EMU_HOST_PTL_PART_BYTES];
    uint8_t *copy;
    bool is_good;

    assert_ptr_equal(emu_host_portals_request_put(message, request), message + EMU_HOST_PTL_REQUEST_BYTES);
    copy = copy_of(message, length);
    is_good = emu_host_portals_request_parse(copy, length, read);
    if (is_good)
        assert_ptr_equal(read->data, copy + EMU_HOST_PTL_REQUEST_BYTES);
    free(copy);
    return is_good;
}

static void test_request_is_read_back(void **state)
{
    struct emu_host_portals_request read;
    uint8_t first[EMU_HOST_PTL_REQUEST_BYTES];
    uint8_t again[EMU_HOST_PTL_REQUEST_BYTES];

    (void)state;
    assert_true(request_is_good(&put, EMU_HOST_PTL_REQUEST_BYTES + DATA_BYTES, &read));
    emu_host_portals_request_put(first, &put);
    emu_host_portals_request_put(again, &read);
    assert_memory_equal(again, first, sizeof(first));
    assert_int_equal(read.domain, put.domain);
    assert_int_equal(read.data_bytes, put.data_bytes);
}

static void test_only_so_many_data_go_with_a_request(void **state)
{
    struct emu_host_portals_request r = put, read;

    (void)state;
    r.length_bytes = 1u << 30;
    r.data_bytes = EMU_HOST_PTL_PART_BYTES;
    assert_true(request_is_good(&r, EMU_HOST_PTL_REQUEST_BYTES + EMU_HOST_PTL_PART_BYTES, &read));
    r.kind = EMU_HOST_PTL_GET;
    assert_false(request_is_good(&r, EMU_HOST_PTL_REQUEST_BYTES + EMU_HOST_PTL_PART_BYTES, &read));
    r.data_bytes = 0;
    assert_true(request_is_good(&r, EMU_HOST_PTL_REQUEST_BYTES, &read));
    r.kind = EMU_HOST_PTL_GETPUT;
    r.length_bytes = r.data_bytes = EMU_PTL_GETPUT_MAX;
    assert_true(request_is_good(&r, EMU_HOST_PTL_REQUEST_BYTES + EMU_PTL_GETPUT_MAX, &read));
    r.length_bytes = r.data_bytes = EMU_PTL_GETPUT_MAX + 1;
    assert_false(request_is_good(&r, EMU_HOST_PTL_REQUEST_BYTES + EMU_PTL_GETPUT_MAX + 1, &read));
}

static void test_each_wrong_field_of_a_request_is_refused(void **state)
{
    const uint32_t length = EMU_HOST_PTL_REQUEST_BYTES + DATA_BYTES;
    struct emu_host_portals_request read;

    (void)state;
    for (unsigned i = 0; i < 6; i++) {
        struct emu_host_portals_request wrong = put;

        switch (i) {
        case 0:
            wrong.kind = EMU_HOST_PTL_KINDS;
            break;
        case 1:
            wrong.flags = EMU_HOST_PTL_FLAGS + 1;
            break;
        case 2:
            wrong.from_pid = EMU_PTL_PID_LAST + 1;
            break;
        case 3:
            wrong.to_pid = EMU_PTL_PID_ANY;
            break;
        case 4:
            wrong.data_bytes = DATA_BYTES - 1;
            break;
        default:
            wrong.length_bytes = DATA_BYTES + 1;
        }
        assert_false(request_is_good(&wrong, length, &read));
    }
    assert_false(request_is_good(&put, length - 1, &read));
    assert_false(request_is_good(&put, length + 1, &read));
    assert_false(request_is_good(&put, EMU_HOST_PTL_REQUEST_BYTES - 1, &read));
}

static void test_answer_is_read_back_and_checked(void **state)
{
    const struct emu_host_portals_answer good = { .domain = 3,
                                                  .flags = EMU_HOST_PTL_TAKEN | EMU_HOST_PTL_GOES_ON,
                                                  .id = 5,
                                                  .number = 6,
                                                  .uid = 7,
                                                  .jid = 8,
                                                  .mlength = 1u << 20,
                                                  .data_bytes = DATA_BYTES };
    uint8_t message[EMU_HOST_PTL_ANSWER_BYTES + DATA_BYTES] = { 0 };
    struct emu_host_portals_answer read;

    (void)state;
    emu_host_portals_answer_put(message, &good);
    assert_true(emu_host_portals_answer_parse(message, sizeof(message), &read));
    assert_ptr_equal(read.data, message + EMU_HOST_PTL_ANSWER_BYTES);
    read.data = NULL;
    assert_memory_equal(&read, &good, offsetof(struct emu_host_portals_answer, data_bytes));
    assert_int_equal(read.data_bytes, good.data_bytes);
    assert_false(emu_host_portals_answer_parse(message, sizeof(message) - 1, &read));
    assert_false(emu_host_portals_answer_parse(message, EMU_HOST_PTL_ANSWER_BYTES - 1, &read));
    for (unsigned i = 0; i < 4; i++) {
        struct emu_host_portals_answer wrong = good;

        if (i == 0)
            wrong.flags = EMU_HOST_PTL_RESULTS + 1;
        else if (i == 1)
            wrong.fail = EMU_HOST_PTL_FAIL_MAX + 1;
        else if (i == 2)
            wrong.mlength = DATA_BYTES - 1; /* less than there are data */
        else
            wrong.flags = EMU_HOST_PTL_GOES_ON; /* of what was not taken */
        emu_host_portals_answer_put(message, &wrong);
        assert_false(emu_host_portals_answer_parse(message, sizeof(message), &read));
    }
}

static void test_parts_are_read_back_and_checked(void **state)
{
    const struct emu_host_portals_part want = {
        .domain = 3, .is_at_target = true, .to = 5, .from = 6, .offset = 1u << 20, .part_bytes = EMU_HOST_PTL_PART_BYTES
    };
    struct emu_host_portals_part data = { .domain = 3, .to = 6, .offset = 1u << 20, .part_bytes = DATA_BYTES };
    uint8_t message[EMU_HOST_PTL_DATA_BYTES + DATA_BYTES] = { 0 };
    struct emu_host_portals_part read;

    (void)state;
    emu_host_portals_want_put(message, &want);
    assert_true(emu_host_portals_part_parse(message, EMU_HOST_PTL_WANT_BYTES, &read));
    assert_true(read.is_at_target && read.to == 5 && read.from == 6 && read.offset == 1u << 20 &&
                read.part_bytes == EMU_HOST_PTL_PART_BYTES);
    assert_false(emu_host_portals_part_parse(message, EMU_HOST_PTL_WANT_BYTES - 1, &read));
    assert_false(emu_host_portals_part_parse(message, EMU_HOST_PTL_WANT_BYTES + 1, &read));
    message[9] = 2;
    assert_false(emu_host_portals_part_parse(message, EMU_HOST_PTL_WANT_BYTES, &read));
    emu_host_portals_data_put(message, &data);
    assert_true(emu_host_portals_part_parse(message, sizeof(message), &read));
    assert_true(!read.is_at_target && read.to == 6 && read.fail == 0 && read.data == message + EMU_HOST_PTL_DATA_BYTES);
    assert_false(emu_host_portals_part_parse(message, sizeof(message) - 1, &read));
    data.fail = EMU_STATUS_PEER_GONE;
    emu_host_portals_data_put(message, &data);
    assert_false(emu_host_portals_part_parse(message, sizeof(message), &read)); /* without data */
    assert_true(emu_host_portals_part_parse(message, EMU_HOST_PTL_DATA_BYTES, &read));
    data.part_bytes = 0;
    emu_host_portals_data_put(message, &data);
    assert_false(emu_host_portals_part_parse(message, EMU_HOST_PTL_DATA_BYTES, &read));
}

static void test_done_is_read_back_and_checked(void **state)
{
    const struct emu_host_portals_done good = { 3, EMU_STATUS_PEER_GONE, 9 };
    uint8_t message[EMU_HOST_PTL_DONE_BYTES];
    struct emu_host_portals_done read;

    (void)state;
    emu_host_portals_done_put(message, &good);
    assert_true(emu_host_portals_done_parse(message, sizeof(message), &read));
    assert_true(read.domain == 3 && read.fail == EMU_STATUS_PEER_GONE && read.to == 9);
    assert_false(emu_host_portals_done_parse(message, sizeof(message) - 1, &read));
    message[15] = 1;
    assert_false(emu_host_portals_done_parse(message, sizeof(message), &read));
}

static void test_mutated_messages_are_read_within_their_bounds(void **state)
{
    struct emu_random random = seeded(13);
    uint8_t message[EMU_HOST_PTL_REQUEST_BYTES + DATA_BYTES];
    uint64_t n_good = 0;

    (void)state;
    for (unsigned round = 0; round < ROUNDS; round++) {
        uint32_t length = emu_random_below(&random, 2) ? (uint32_t)sizeof(message) :
                                                         (uint32_t)emu_random_below(&random, sizeof(message) + 1);
        struct emu_host_portals_request request;
        struct emu_host_portals_answer answer;
        struct emu_host_portals_part part;
        struct emu_host_portals_done done;
        uint8_t *copy;

        memset(message, 0, sizeof(message));
        emu_host_portals_request_put(message, &put);
        message[8] = (uint8_t)emu_random_below(&random, EMU_HOST_PTL_OPS + 1);
        for (uint64_t n = emu_random_below(&random, 4); n > 0; n--)
            message[8 + emu_random_below(&random, sizeof(message) - 8)] = (uint8_t)emu_random_below(&random, 256);
        copy = copy_of(message, length);
        if (emu_host_portals_request_parse(copy, length, &request)) {
            n_good++;
            assert_ptr_equal(request.data + request.data_bytes, copy + length);
        }
        if (emu_host_portals_answer_parse(copy, length, &answer))
            assert_ptr_equal(answer.data + answer.data_bytes, copy + length);
        if (emu_host_portals_part_parse(copy, length, &part) &&
            emu_host_portals_op(copy, length) == EMU_HOST_PTL_DATA && part.fail == 0)
            assert_ptr_equal(part.data + part.part_bytes, copy + length);
        emu_host_portals_done_parse(copy, length, &done);
        free(copy);
    }
    assert_true(n_good > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_request_is_read_back),
        cmocka_unit_test(test_only_so_many_data_go_with_a_request),
        cmocka_unit_test(test_each_wrong_field_of_a_request_is_refused),
        cmocka_unit_test(test_answer_is_read_back_and_checked),
        cmocka_unit_test(test_parts_are_read_back_and_checked),
        cmocka_unit_test(test_done_is_read_back_and_checked),
        cmocka_unit_test(test_mutated_messages_are_read_within_their_bounds),
    };

    return cmocka_run_group_tests_name("messages of portals between emunics", tests, NULL, NULL);
}
