/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The bytes of each message between emunics, and of each packet. Each value is written, compared with bytes that were
 * recorded once, read, and written again. Whoever changes a vector here raises EMU_HOST_VERSION or EMU_WIRE_VERSION.
 */
#include "emunic/abi/host_admin.h"
#include "emunic/abi/host_ce.h"
#include "emunic/abi/host_datagram.h"
#include "emunic/abi/host_portals.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#define TEXT_MAX 1024u

/* Compares the bytes with their recorded form: hexadecimal, with blanks where the reader likes them. */
static void assert_bytes(const void *bytes, size_t len_bytes, const char *recorded)
{
    char have[TEXT_MAX] = "";
    char want[TEXT_MAX] = "";
    size_t n = 0;

    assert_true(len_bytes < TEXT_MAX / 2);
    for (size_t i = 0; i < len_bytes; i++)
        snprintf(have + 2 * i, 3, "%02x", ((const uint8_t *)bytes)[i]);
    for (const char *c = recorded; *c; c++) {
        if (*c != ' ')
            want[n++] = *c;
    }
    assert_string_equal(have, want);
}

/* Words are in the order of the host. */
static void assert_words(const uint64_t *words, unsigned n, const char *recorded)
{
    uint8_t bytes[TEXT_MAX];
    uint8_t *at = bytes;

    for (unsigned i = 0; i < n; i++)
        at = emu_wire_put64(at, words[i]);
    assert_bytes(bytes, 8 * n, recorded);
}

static struct emu_words taker(const uint64_t *words, uint32_t n)
{
    return (struct emu_words){ .at = words, .left = n };
}

static void assert_all_taken(const struct emu_words *w)
{
    assert_false(w->is_bad);
    assert_int_equal(w->left, 0);
}

/* ---- messages ---- */

static void test_head(void **state)
{
    uint8_t message[EMU_HOST_HEAD_BYTES];
    struct emu_host_head head = { 0 };

    (void)state;
    assert_ptr_equal(emu_host_head_put(message, EMU_HOST_MSGQ, 0x01020304), message + sizeof(message));
    assert_bytes(message, sizeof(message), "0007000601020304");
    assert_true(emu_host_head_parse(message, sizeof(message), &head));
    assert_true(head.kind == EMU_HOST_MSGQ && head.domain == 0x01020304);
}

static void test_hello(void **state)
{
    const struct emu_host_hello hello = { .n_hosts = 0x01020304, .n_nids = 0x05060708, .name = "titan" };
    uint8_t message[EMU_HOST_HELLO_BYTES];
    uint8_t again[EMU_HOST_HELLO_BYTES];
    struct emu_host_hello read = { 0 };

    (void)state;
    emu_host_hello_put(message, &hello);
    assert_bytes(message, sizeof(message),
                 "0001000600000000 0102030405060708 746974616e000000 0000000000000000 0000000000000000 "
                 "0000000000000000 0000000000000000 0000000000000000 0000000000000000 0000000000000000");
    assert_true(emu_host_hello_parse(message, sizeof(message), &read));
    emu_host_hello_put(again, &read);
    assert_memory_equal(again, message, sizeof(message));
}

static const struct emu_host_command command = {
    .domain = 0x01020304,
    .id = 0x0506070809101112ull,
    .from_nid = 0x13141516,
    .cmd = { .op = EMU_OP_PUT,
             .flags = 0xff,
             .events = 0xffff,
             .handle_flags = 0xff,
             .amo_op = 0x17,
             .amo_flags = 0x18,
             .remote_nid = 0x19202122,
             .remote_addr = 0x2324252627282930ull,
             .length_bytes = 0x3132333435363740ull,
             .remote_base = 0x3940414243444546ull,
             .mdh = 0x4748,
             .generation = 0x4950,
             .remote_event = 0x5152535455565758ull,
             .flag_addr = 0x5960616263646566ull,
             .flag_value = 0x6768697071727374ull },
    .offset = 0x3132333435363720ull,
    .part_bytes = 32,
};

/* Which has `data_bytes` behind it. */
static void check_command(const struct emu_host_command *c, uint32_t data_bytes, const char *recorded)
{
    uint8_t message[EMU_HOST_COMMAND_BYTES + 64] = { 0 };
    uint8_t again[EMU_HOST_COMMAND_BYTES];
    struct emu_host_command read = { 0 };

    assert_ptr_equal(emu_host_command_put(message, c), message + EMU_HOST_COMMAND_BYTES);
    if (c->is_bulk)
        emu_host_place_put(message + EMU_HOST_COMMAND_BYTES, c);
    assert_bytes(message, EMU_HOST_COMMAND_BYTES + (c->is_bulk ? data_bytes : 0), recorded);
    assert_true(emu_host_command_parse(message, EMU_HOST_COMMAND_BYTES + data_bytes, &read));
    assert_ptr_equal(emu_host_command_put(again, &read), again + sizeof(again));
    assert_memory_equal(again, message, sizeof(again));
    if (c->is_bulk)
        assert_true(!read.data && read.key == c->key && read.base == c->base);
    else
        assert_ptr_equal(read.data, message + EMU_HOST_COMMAND_BYTES);
}

static void test_command_with_data(void **state)
{
    (void)state;
    check_command(&command, 32,
                  "0003000601020304 0506070809101112 1314151601040317 1800003419202122 2324252627282930 "
                  "3132333435363740 3940414243444546 4748495000000020 5152535455565758 5960616263646566 "
                  "6768697071727374 0000000000000000 0000000000000000 3132333435363720");
}

static void test_command_in_bulk(void **state)
{
    struct emu_host_command c = command;

    (void)state;
    c.is_bulk = true;
    c.key = 0x8182838485868788ull;
    c.base = 0x9192939495969798ull;
    check_command(&c, EMU_HOST_PLACE_BYTES,
                  "0003000601020304 0506070809101112 1314151601040317 1801003419202122 2324252627282930 "
                  "3132333435363740 3940414243444546 4748495000000020 5152535455565758 5960616263646566 "
                  "6768697071727374 0000000000000000 0000000000000000 3132333435363720 8182838485868788 "
                  "9192939495969798");
}

static void test_command_with_operands(void **state)
{
    struct emu_host_command c = command;

    (void)state;
    c.cmd.op = EMU_OP_AMO;
    c.cmd.operand1 = 0x7576777879808182ull;
    c.cmd.operand2 = 0x8384858687888990ull;
    check_command(&c, 0,
                  "0003000601020304 0506070809101112 1314151603040317 1800003419202122 2324252627282930 "
                  "3132333435363740 3940414243444546 4748495000000020 5152535455565758 0000000000000000 "
                  "0000000000000000 7576777879808182 8384858687888990 3132333435363720");
}

static void test_answer(void **state)
{
    const struct emu_host_answer answer = { .domain = 0x01020304,
                                            .id = 0x0506070809101112ull,
                                            .status = EMU_STATUS_BAD_COMMAND,
                                            .flags = EMU_HOST_EVENT_LOST,
                                            .length_bytes = 0x0708 };
    uint8_t message[EMU_HOST_ANSWER_BYTES + 0x0708] = { 0 };
    uint8_t again[EMU_HOST_ANSWER_BYTES];
    struct emu_host_answer read = { 0 };

    (void)state;
    assert_ptr_equal(emu_host_answer_put(message, &answer), message + EMU_HOST_ANSWER_BYTES);
    assert_bytes(message, EMU_HOST_ANSWER_BYTES, "0004000601020304 0506070809101112 0a01000000000708");
    assert_true(emu_host_answer_parse(message, sizeof(message), &read));
    assert_ptr_equal(read.data, message + EMU_HOST_ANSWER_BYTES);
    emu_host_answer_put(again, &read);
    assert_memory_equal(again, message, sizeof(again));
}

static void test_domain(void **state)
{
    const struct emu_host_domain domain = { .domain = 0x01020304,
                                            .op = EMU_HOST_DOMAIN_CREATE,
                                            .first = 0x010203,
                                            .n = 2,
                                            .n_ranks = 0x090807,
                                            .ptag = 0x11121314,
                                            .cookie = 0x15161718,
                                            .owner_uid = 0x19202122,
                                            .member_limit = 0x23242526,
                                            .flags = 0x27282930,
                                            .value = 0x31323334 };
    uint8_t message[EMU_HOST_DOMAIN_BYTES + 16] = { 0 };
    uint8_t again[EMU_HOST_DOMAIN_BYTES];
    struct emu_host_domain read = { 0 };

    (void)state;
    assert_ptr_equal(emu_host_domain_put(message, &domain), message + EMU_HOST_DOMAIN_BYTES);
    assert_bytes(message, EMU_HOST_DOMAIN_BYTES,
                 "0002000601020304 0000000300010203 0000000200090807 1112131415161718 1920212223242526 "
                 "2728293031323334");
    assert_true(emu_host_domain_parse(message, sizeof(message), &read));
    assert_ptr_equal(read.ranks, message + EMU_HOST_DOMAIN_BYTES);
    emu_host_domain_put(again, &read);
    assert_memory_equal(again, message, sizeof(again));
}

static void test_msgq(void **state)
{
    const struct emu_host_msgq msgq = { .domain = 0x01020304, .nid = 0x05060708, .mdh = 0x0910, .generation = 0x0112 };
    uint8_t message[EMU_HOST_MSGQ_BYTES];
    uint8_t again[EMU_HOST_MSGQ_BYTES];
    struct emu_host_msgq read = { 0 };

    (void)state;
    emu_host_msgq_put(message, &msgq);
    assert_bytes(message, sizeof(message), "0007000601020304 0506070809100112");
    assert_true(emu_host_msgq_parse(message, sizeof(message), &read));
    emu_host_msgq_put(again, &read);
    assert_memory_equal(again, message, sizeof(again));
}

static void test_datagram(void **state)
{
    static const uint8_t data[4] = { 0xd1, 0xd2, 0xd3, 0xd4 };
    const struct emu_host_datagram datagram = { .word = EMU_DATAGRAM_CLAIM,
                                                .bytes = sizeof(data),
                                                .number = 0x0102030405060708ull,
                                                .claimer = 0x0910111213141516ull,
                                                .nid = 0x17181920,
                                                .instance_id = 0x21222324,
                                                .to_nid = 0x25262728,
                                                .to_instance = 0x29303132,
                                                .data = data };
    uint8_t message[EMU_HOST_DATAGRAM_MAX];
    uint8_t again[EMU_HOST_DATAGRAM_MAX];
    struct emu_host_datagram read = { 0 };

    (void)state;
    assert_int_equal(emu_host_datagram_put(message, 0x01020304, &datagram), EMU_HOST_DATAGRAM_BYTES + sizeof(data));
    assert_bytes(message, EMU_HOST_DATAGRAM_BYTES + sizeof(data),
                 "0005000601020304 0000000400000004 0102030405060708 0910111213141516 1718192021222324 "
                 "2526272829303132 d1d2d3d4");
    assert_true(emu_host_datagram_parse(message, EMU_HOST_DATAGRAM_BYTES + sizeof(data), &read));
    emu_host_datagram_put(again, 0x01020304, &read);
    assert_memory_equal(again, message, EMU_HOST_DATAGRAM_BYTES + sizeof(data));
}

/* ---- reduction trees ---- */

static void check_ce(const struct emu_host_ce *ce, const uint8_t *list, const char *recorded)
{
    uint8_t message[EMU_HOST_CE_MAX] = { 0 };
    uint8_t again[EMU_HOST_CE_BYTES];
    struct emu_host_ce read = { 0 };

    assert_ptr_equal(emu_host_ce_put(message, 0x01020304, ce), message + EMU_HOST_CE_BYTES);
    if (ce->n > 0)
        memcpy(message + EMU_HOST_CE_BYTES, list, 8 * ce->n);
    assert_bytes(message, EMU_HOST_CE_BYTES, recorded);
    assert_true(emu_host_ce_parse(message, EMU_HOST_CE_BYTES + 8 * ce->n, &read));
    emu_host_ce_put(again, 0x01020304, &read);
    assert_memory_equal(again, message, sizeof(again));
}

static void test_ce_post(void **state)
{
    const struct emu_host_ce ce = { .op = EMU_HOST_CE_POST,
                                    .child = 0x03,
                                    .from_nid = 0x04050607,
                                    .to_nid = 0x08091011,
                                    .to_ce = 0x1213,
                                    .number = 0x1415161718192021ull,
                                    .poster = 0x2223242526272829ull,
                                    .value = { .red_id = 0x3031323334353637ull,
                                               .operand1 = 0x3839404142434445ull,
                                               .operand2 = 0x4647484950515253ull,
                                               .op = EMU_CE_OP_END - 1,
                                               .flags = EMU_CE_FLAG_MASK,
                                               .fpe = EMU_CE_FPE_MASK,
                                               .status = EMU_STATUS_MISMATCH },
                                    .n = 1 };
    uint8_t list[8];
    struct emu_host_ce read = { .list = list };

    (void)state;
    assert_ptr_equal(emu_host_ce_put_leaf(list, 0x54555657, 0x58596061), list + 8);
    assert_bytes(list, sizeof(list), "5455565758596061");
    assert_true(emu_host_ce_instance(&read) == 0x54555657 && emu_host_ce_pid(&read) == 0x58596061);
    check_ce(&ce, list,
             "0006000601020304 0900000304050607 0809101100001213 0000000000000000 0000000000000000 "
             "1415161718192021 2223242526272829 3031323334353637 3839404142434445 4647484950515253 "
             "09070f0b00000001");
    assert_ptr_equal(emu_host_ce_put_instance(list, 0x62636465), list + 8);
    assert_bytes(list, sizeof(list), "6263646500000000");
}

static void test_ce_state(void **state)
{
    const struct emu_ce_link link = { .nid = 0x65666768, .ce_id = 0x6970, .child_id = 5 };
    const struct emu_host_ce ce = { .op = EMU_HOST_CE_STATE,
                                    .flags = EMU_HOST_CE_CONFIGURED,
                                    .status = EMU_STATUS_MISMATCH,
                                    .from_nid = 0x04050607,
                                    .from_ce = 0x7172,
                                    .from_version = 0x7374757677787980ull,
                                    .number = 0x1415161718192021ull,
                                    .n = 1 };
    uint8_t list[8];
    struct emu_host_ce read = { .list = list, .n = 1 };
    struct emu_ce_link back;
    bool is_parent;

    (void)state;
    assert_ptr_equal(emu_host_ce_put_link(list, &link, true), list + 8);
    assert_bytes(list, sizeof(list), "6566676869700501");
    back = emu_host_ce_link(&read, 0, &is_parent);
    assert_true(is_parent && back.nid == link.nid && back.ce_id == link.ce_id && back.child_id == 5 &&
                back.type == EMU_CE_LINK_ENGINE && back.instance_id == 0);
    check_ce(&ce, list,
             "0006000601020304 02010b0004050607 0000000071720000 7374757677787980 0000000000000000 "
             "1415161718192021 0000000000000000 0000000000000000 0000000000000000 0000000000000000 "
             "0000000000000001");
}

static void test_ce_up(void **state)
{
    const struct emu_host_ce ce = { .op = EMU_HOST_CE_UP,
                                    .from_nid = 0x04050607,
                                    .to_nid = 0x08091011,
                                    .from_ce = 0x1213,
                                    .to_ce = 0x1415,
                                    .from_version = 0x1617181920212223ull,
                                    .to_version = 0x2425262728293031ull,
                                    .value = { .op = 1 } };

    (void)state;
    check_ce(&ce, NULL,
             "0006000601020304 0700000004050607 0809101112131415 1617181920212223 2425262728293031 "
             "0000000000000000 0000000000000000 0000000000000000 0000000000000000 0000000000000000 "
             "0100000000000000");
}

/* ---- portals ---- */

static void test_portals_request(void **state)
{
    const struct emu_host_portals_request request = { .domain = 0x01020304,
                                                      .kind = EMU_HOST_PTL_GETPUT,
                                                      .flags = EMU_HOST_PTL_FLAGS,
                                                      .id = 0x0506070809101112ull,
                                                      .from_nid = 0x13141516,
                                                      .from_pid = 0x11,
                                                      .from_uid = 0x17181920,
                                                      .from_jid = 0x21222324,
                                                      .to_nid = 0x25262728,
                                                      .to_pid = 0x12,
                                                      .pt = 0x29303132,
                                                      .ac = 0x33343536,
                                                      .bits = 0x3738394041424344ull,
                                                      .offset = 0x4546474849505152ull,
                                                      .length_bytes = 8,
                                                      .hdr_data = 0x5354555657585960ull,
                                                      .data_bytes = 8 };
    uint8_t message[EMU_HOST_PTL_REQUEST_BYTES + 8] = { 0 };
    uint8_t again[EMU_HOST_PTL_REQUEST_BYTES];
    struct emu_host_portals_request read = { 0 };

    (void)state;
    assert_ptr_equal(emu_host_portals_request_put(message, &request), message + EMU_HOST_PTL_REQUEST_BYTES);
    assert_bytes(message, EMU_HOST_PTL_REQUEST_BYTES,
                 "0008000601020304 0102030000000008 0506070809101112 1314151600000011 1718192021222324 "
                 "2526272800000012 2930313233343536 3738394041424344 4546474849505152 0000000000000008 "
                 "5354555657585960");
    assert_true(emu_host_portals_request_parse(message, sizeof(message), &read));
    assert_ptr_equal(read.data, message + EMU_HOST_PTL_REQUEST_BYTES);
    emu_host_portals_request_put(again, &read);
    assert_memory_equal(again, message, sizeof(again));
}

static void test_portals_answer(void **state)
{
    const struct emu_host_portals_answer answer = { .domain = 0x01020304,
                                                    .flags = EMU_HOST_PTL_RESULTS,
                                                    .fail = EMU_HOST_PTL_FAIL_MAX,
                                                    .id = 0x0506070809101112ull,
                                                    .number = 0x1314151617181920ull,
                                                    .uid = 0x21222324,
                                                    .jid = 0x25262728,
                                                    .mlength = 0x2930313233343536ull,
                                                    .data_bytes = 8 };
    uint8_t message[EMU_HOST_PTL_ANSWER_BYTES + 8] = { 0 };
    uint8_t again[EMU_HOST_PTL_ANSWER_BYTES];
    struct emu_host_portals_answer read = { 0 };

    (void)state;
    assert_ptr_equal(emu_host_portals_answer_put(message, &answer), message + EMU_HOST_PTL_ANSWER_BYTES);
    assert_bytes(message, EMU_HOST_PTL_ANSWER_BYTES,
                 "0008000601020304 02070a0000000008 0506070809101112 1314151617181920 2122232425262728 "
                 "2930313233343536");
    assert_true(emu_host_portals_answer_parse(message, sizeof(message), &read));
    assert_ptr_equal(read.data, message + EMU_HOST_PTL_ANSWER_BYTES);
    emu_host_portals_answer_put(again, &read);
    assert_memory_equal(again, message, sizeof(again));
}

static void test_portals_parts(void **state)
{
    const struct emu_host_portals_part part = { .domain = 0x01020304,
                                                .is_at_target = true,
                                                .fail = EMU_HOST_PTL_FAIL_MAX,
                                                .to = 0x0506070809101112ull,
                                                .from = 0x1314151617181920ull,
                                                .offset = 0x2122232425262728ull,
                                                .part_bytes = 0x0708 };
    uint8_t want[EMU_HOST_PTL_WANT_BYTES];
    uint8_t data[EMU_HOST_PTL_DATA_BYTES];
    struct emu_host_portals_part read = { 0 };

    (void)state;
    emu_host_portals_want_put(want, &part);
    assert_bytes(want, sizeof(want),
                 "0008000601020304 0301000000000708 0506070809101112 1314151617181920 2122232425262728");
    assert_true(emu_host_portals_part_parse(want, sizeof(want), &read));
    assert_true(read.domain == part.domain && read.is_at_target && read.fail == 0 && read.to == part.to &&
                read.from == part.from && read.offset == part.offset && read.part_bytes == part.part_bytes);
    emu_host_portals_data_put(data, &part);
    assert_bytes(data, sizeof(data), "0008000601020304 04010a0000000708 0506070809101112 2122232425262728");
    assert_true(emu_host_portals_part_parse(data, sizeof(data), &read));
    assert_true(read.domain == part.domain && read.is_at_target && read.fail == part.fail && read.to == part.to &&
                read.from == 0 && read.offset == part.offset && read.part_bytes == part.part_bytes);
}

static void test_portals_done(void **state)
{
    const struct emu_host_portals_done done = { 0x01020304, EMU_HOST_PTL_FAIL_MAX, 0x0506070809101112ull };
    uint8_t message[EMU_HOST_PTL_DONE_BYTES];
    struct emu_host_portals_done read = { 0 };

    (void)state;
    emu_host_portals_done_put(message, &done);
    assert_bytes(message, sizeof(message), "0008000601020304 05000a0000000000 0506070809101112");
    assert_true(emu_host_portals_done_parse(message, sizeof(message), &read));
    assert_true(read.domain == done.domain && read.fail == done.fail && read.to == done.to);
}

/* ---- administration ---- */

static void test_admin(void **state)
{
    const uint64_t list[] = { 0, 0x0102030405060708ull, 0x0910111213141516ull };
    const struct emu_host_admin admin = {
        .op = EMU_HOST_ADMIN_ROWS, .type = 0x1718, .token = 0x1920212223242526ull, .first = 1, .total = 0x010000, .n = 2
    };
    uint8_t message[EMU_HOST_ADMIN_BYTES_MAX];
    struct emu_host_admin read = { 0 };

    (void)state;
    assert_int_equal(emu_host_admin_put(message, &admin, list), EMU_HOST_ADMIN_HEAD_BYTES + 16);
    assert_bytes(message, EMU_HOST_ADMIN_HEAD_BYTES + 16,
                 "0009000600000000 0008171800000000 1920212223242526 0000000100010000 0102030405060708 "
                 "0910111213141516");
    assert_true(emu_host_admin_parse(message, EMU_HOST_ADMIN_HEAD_BYTES + 16, &read));
    assert_true(read.op == admin.op && read.type == admin.type && read.token == admin.token && read.first == 1 &&
                read.total == admin.total && read.n == 2);
    assert_true(emu_host_admin_word(&read, 0) == list[1] && emu_host_admin_word(&read, 1) == list[2]);
}

static void test_rule(void **state)
{
    const struct emu_fault_rule rule = { .id = 0x01020304,
                                         .classes = 0x05060708,
                                         .action = 0x09,
                                         .status = 0x10,
                                         .category = 0x11,
                                         .flags = 0x12131415,
                                         .seed = 0x1617181920212223ull,
                                         .from_nid = 0x24252627,
                                         .to_nid = 0x28293031,
                                         .from_instance = 0x32333435,
                                         .to_instance = 0x36373839,
                                         .rate_ppb = 0x40414243,
                                         .live_min = 0x44454647,
                                         .nth = 0x4849505152535455ull,
                                         .every = 0x5657585960616263ull,
                                         .after = 0x6465666768697071ull,
                                         .count = 0x7273747576777879ull,
                                         .start_ns = 0x8081828384858687ull,
                                         .end_ns = 0x8889909192939495ull,
                                         .delay_ns = 0x9697989900010203ull };
    uint64_t words[EMU_HOST_RULE_WORDS] = { 0 };
    struct emu_words w = taker(words, EMU_HOST_RULE_WORDS);
    struct emu_fault_rule read = { 0 };
    uint64_t age_ns = 0;

    (void)state;
    emu_host_rule_put(words, &rule, 0x0405060708091011ull);
    assert_words(words, EMU_HOST_RULE_WORDS,
                 "0000000001020304 0000000005060708 0000000000000009 0000000000000010 0000000000000011 "
                 "0000000012131415 1617181920212223 0000000024252627 0000000028293031 0000000032333435 "
                 "0000000036373839 0000000040414243 0000000044454647 4849505152535455 5657585960616263 "
                 "6465666768697071 7273747576777879 8081828384858687 8889909192939495 9697989900010203 "
                 "0405060708091011");
    emu_host_rule_take(&w, &read, &age_ns);
    assert_all_taken(&w);
    assert_memory_equal(&read, &rule, sizeof(rule));
    assert_true(age_ns == 0x0405060708091011ull);
}

static void test_network(void **state)
{
    const struct emu_msg_network network = { .thing = 0x01020304,
                                             .index = 0x05060708,
                                             .lane_mask = 0x09101112,
                                             .flags = 0x13141516,
                                             .after_ns = 0x1718192021222324ull };
    uint64_t words[EMU_HOST_NETWORK_WORDS] = { 0 };
    struct emu_words w = taker(words, EMU_HOST_NETWORK_WORDS);
    struct emu_msg_network read = { 0 };

    (void)state;
    emu_host_network_put(words, &network);
    assert_words(words, EMU_HOST_NETWORK_WORDS,
                 "0000000001020304 0000000005060708 0000000009101112 0000000013141516 1718192021222324");
    emu_host_network_take(&w, &read);
    assert_all_taken(&w);
    assert_memory_equal(&read, &network, sizeof(network));
}

static void test_job(void **state)
{
    const struct emu_msg_job job = { .job_id = 0x0102030405060708ull,
                                     .ptag = 0x09101112,
                                     .cookie = 0x13141516,
                                     .flags = 0x17181920,
                                     .timeout_ms = 0x21222324,
                                     .mdd_limit = -1,
                                     .cq_limit = 0x25262728,
                                     .fma_limit = -2,
                                     .bte_limit = 0x29303132,
                                     .ce_limit = -3,
                                     .iommu_limit = 0x33343536,
                                     .mrt_limit = -4,
                                     .gart_limit = 0x37383940,
                                     .ntt_base = -5,
                                     .ntt_size = 0x41424344,
                                     .group_size = 0x85868788,
                                     .granularity = 0x89909192,
                                     .nid_wanted = 0x93949596 };
    uint64_t words[EMU_HOST_JOB_WORDS] = { 0 };
    struct emu_words w = taker(words, EMU_HOST_JOB_WORDS);
    struct emu_msg_job read = { 0 };

    (void)state;
    emu_host_job_put(words, &job);
    assert_words(words, EMU_HOST_JOB_WORDS,
                 "0102030405060708 0000000009101112 0000000013141516 0000000017181920 0000000021222324 "
                 "00000000ffffffff 0000000025262728 00000000fffffffe 0000000029303132 00000000fffffffd "
                 "0000000033343536 00000000fffffffb 0000000041424344 0000000085868788 0000000089909192 "
                 "0000000093949596 00000000fffffffc 0000000037383940");
    emu_host_job_take(&w, &read);
    assert_all_taken(&w);
    assert_memory_equal(&read, &job, sizeof(job));
}

static void test_ntt(void **state)
{
    const struct emu_ntt_entry entry = { .blck_addr = 0x81020304, .rplc_addr = 0x05060708, .rplc_size = 0x09101112 };
    uint64_t words[EMU_HOST_NTT_WORDS] = { 0 };
    struct emu_words w = taker(words, EMU_HOST_NTT_WORDS);
    struct emu_ntt_entry read = { 0 };

    (void)state;
    emu_host_ntt_put(words, &entry);
    assert_words(words, EMU_HOST_NTT_WORDS, "0000000081020304 0000000005060708 0000000009101112");
    emu_host_ntt_take(&w, &read);
    assert_all_taken(&w);
    assert_memory_equal(&read, &entry, sizeof(entry));
}

static void test_error(void **state)
{
    const struct emu_host_error error = {
        .domain = 0x81020304,
        .n_lost = 0x05060708,
        .record = { .code = EMU_ERROR_ROUTES,
                    .category = 0x80,
                    .timestamp_ns = 0x0910111213141516ull,
                    .info = { 0x1718192021222324ull, 0x2526272829303132ull, 0x3334353637383940ull,
                              0x8142434445464748ull } },
    };
    uint64_t words[EMU_HOST_ERROR_WORDS] = { 0 };
    struct emu_words w = taker(words, EMU_HOST_ERROR_WORDS);
    struct emu_host_error read = { 0 };

    (void)state;
    emu_host_error_put(words, &error);
    assert_words(words, EMU_HOST_ERROR_WORDS,
                 "0000000081020304 0000000005060708 0000000000000043 0000000000000080 0910111213141516 "
                 "1718192021222324 2526272829303132 3334353637383940 8142434445464748");
    assert_true(emu_host_error_take(&w, &read));
    assert_all_taken(&w);
    assert_memory_equal(&read, &error, sizeof(error));
}

static void test_target(void **state)
{
    const struct emu_host_target target = { .domain = 0x81020304,
                                            .rule = 0x05060708,
                                            .from_nid = EMU_NID_MAX,
                                            .nid = EMU_NID_MAX - 1,
                                            .pid = UINT32_MAX,
                                            .base = 0x0910111213141516ull,
                                            .mdh = 0x1718,
                                            .generation = 0x1920,
                                            .handle_flags = EMU_HOST_HANDLE_FLAGS };
    uint64_t words[EMU_HOST_TARGET_WORDS] = { 0 };
    uint64_t again[EMU_HOST_TARGET_WORDS];
    struct emu_words w = taker(words, EMU_HOST_TARGET_WORDS);
    struct emu_host_target read = { 0 };

    (void)state;
    emu_host_target_put(words, &target);
    assert_words(words, EMU_HOST_TARGET_WORDS,
                 "0000000081020304 0000000005060708 000000000003ffff 000000000003fffe 00000000ffffffff "
                 "0910111213141516 0000000017181920 0000000000000003");
    assert_true(emu_host_target_take(&w, &read));
    assert_all_taken(&w);
    emu_host_target_put(again, &read);
    assert_memory_equal(again, words, sizeof(words));
}

/* ---- packets ---- */

static void test_packet_header(void **state)
{
    const struct emu_wire_header header = { .type = EMU_WIRE_DATA,
                                            .reserved = 0xff,
                                            .length = 0x0102,
                                            .from = 0x0304,
                                            .to = 0x0506,
                                            .n_records = 0x07080910,
                                            .session = 0x1112131415161718ull,
                                            .sequence = 0x1920212223242526ull,
                                            .granted = 0x2728293031323334ull,
                                            .position = 0x3536373839404142ull,
                                            .received = 0x4344454647484950ull };
    uint8_t packet[0x0102];
    uint8_t again[EMU_WIRE_HEADER_BYTES];
    struct emu_wire_header read = { 0 };

    (void)state;
    emu_wire_header_put(packet, &header);
    assert_bytes(packet, EMU_WIRE_HEADER_BYTES,
                 "454d575000030300 0000010200000304 0000050607080910 1112131415161718 1920212223242526 "
                 "2728293031323334 3536373839404142 4344454647484950");
    assert_int_equal(emu_wire_header_parse(packet, sizeof(packet), &read), EMU_WIRE_OK);
    emu_wire_header_put(again, &read);
    assert_memory_equal(again, packet, sizeof(again));
}

static void test_packet_hello(void **state)
{
    struct emu_wire_hello hello = { .incarnation = 0x0102030405060708ull,
                                    .features = EMU_WIRE_HAS_RMA,
                                    .credits = 0x0201,
                                    .stream = 0x1112131415161718ull,
                                    .received = 0x1920212223242526ull };
    uint8_t body[EMU_WIRE_HELLO_BYTES];
    uint8_t again[EMU_WIRE_HELLO_BYTES];
    struct emu_wire_hello read = { 0 };

    (void)state;
    memset(hello.nonce, 0x31, sizeof(hello.nonce));
    memset(hello.echo, 0x32, sizeof(hello.echo));
    memset(hello.proof, 0x33, sizeof(hello.proof));
    emu_wire_hello_put(body, &hello);
    assert_bytes(body, sizeof(body),
                 "0102030405060708 0000000100000201 1112131415161718 1920212223242526 3131313131313131 "
                 "3131313131313131 3131313131313131 3131313131313131 3232323232323232 3232323232323232 "
                 "3232323232323232 3232323232323232 3333333333333333 3333333333333333 3333333333333333 "
                 "3333333333333333");
    assert_int_equal(emu_wire_hello_parse(body, &read), EMU_WIRE_OK);
    emu_wire_hello_put(again, &read);
    assert_memory_equal(again, body, sizeof(again));
}

static void test_record_with_a_piece(void **state)
{
    const struct emu_wire_piece piece = {
        .id = 0x0102030405060708ull, .key = 0x0910111213141516ull, .offset = 0x1718192021222324ull, .length = 5
    };
    uint8_t body[EMU_WIRE_RECORD_BYTES + EMU_WIRE_PIECE_BYTES + 8];
    struct emu_wire_record read = { 0 };
    uint32_t at_bytes = 0;
    uint8_t *at;

    (void)state;
    memset(body, 0xee, sizeof(body));
    at = emu_wire_record_put(body, EMU_WIRE_PUT, EMU_WIRE_PIECE_BYTES + 5);
    assert_ptr_equal(at, body + EMU_WIRE_RECORD_BYTES);
    assert_ptr_equal(emu_wire_piece_put(at, &piece), at + EMU_WIRE_PIECE_BYTES);
    assert_bytes(body, sizeof(body),
                 "0200000000000025 0102030405060708 0910111213141516 1718192021222324 0000000000000005 "
                 "eeeeeeeeee000000");
    assert_int_equal(emu_wire_record_next(body, sizeof(body), &at_bytes, &read), EMU_WIRE_OK);
    assert_int_equal(at_bytes, sizeof(body));
    assert_true(read.kind == EMU_WIRE_PUT && read.length == 5 && read.data == at + EMU_WIRE_PIECE_BYTES);
    assert_memory_equal(&read.piece, &piece, sizeof(piece));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_head),
        cmocka_unit_test(test_hello),
        cmocka_unit_test(test_command_with_data),
        cmocka_unit_test(test_command_in_bulk),
        cmocka_unit_test(test_command_with_operands),
        cmocka_unit_test(test_answer),
        cmocka_unit_test(test_domain),
        cmocka_unit_test(test_msgq),
        cmocka_unit_test(test_datagram),
        cmocka_unit_test(test_ce_post),
        cmocka_unit_test(test_ce_state),
        cmocka_unit_test(test_ce_up),
        cmocka_unit_test(test_portals_request),
        cmocka_unit_test(test_portals_answer),
        cmocka_unit_test(test_portals_parts),
        cmocka_unit_test(test_portals_done),
        cmocka_unit_test(test_admin),
        cmocka_unit_test(test_rule),
        cmocka_unit_test(test_network),
        cmocka_unit_test(test_job),
        cmocka_unit_test(test_ntt),
        cmocka_unit_test(test_error),
        cmocka_unit_test(test_target),
        cmocka_unit_test(test_packet_header),
        cmocka_unit_test(test_packet_hello),
        cmocka_unit_test(test_record_with_a_piece),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
