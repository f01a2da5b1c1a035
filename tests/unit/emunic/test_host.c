/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages between emunics: what is written is read back, anything else is refused, and no byte outside of a message is
 * touched: each lies at the very end of its own heap block, where the address sanitizer notices.
 */
#include "emunic/abi/host_admin.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#include "emunic/base/clock.h"
#include "tests/common/seed.h"

#define FUZZ_NS    1000000000ull
#define DATA_BYTES 32u

static const struct emu_host_command put = {
    .domain = 0x11223344,
    .id = 0x0102030405060708ull,
    .from_nid = 7,
    .cmd = { .op = EMU_OP_PUT,
             .flags = EMU_CMD_FLAG | EMU_CMD_BLOCK,
             .events = EMU_EV_REMOTE | EMU_EV_LOCAL,
             .handle_flags = EMU_HANDLE_OFFSET | EMU_HANDLE_LOCAL_SEGMENTS,
             .remote_nid = 9,
             .remote_addr = 0x7000,
             .length_bytes = 64 + DATA_BYTES,
             .remote_base = 0x6000,
             .mdh = 12,
             .generation = 3,
             .remote_event = 99,
             .flag_addr = 0x7100,
             .flag_value = 5 },
    .offset = 64,
    .part_bytes = DATA_BYTES,
};

/* In a heap block of its own. */
static uint8_t *copy_of(const uint8_t *message, uint32_t length)
{
    uint8_t *copy = malloc(length ? length : 1);

    memcpy(copy, message, length);
    return copy;
}

static bool command_is_good(const uint8_t *message, uint32_t length, struct emu_host_command *c)
{
    uint8_t *copy = copy_of(message, length);
    bool is_good = emu_host_command_parse(copy, length, c);

    free(copy);
    return is_good;
}

static void write_put(uint8_t message[EMU_HOST_COMMAND_BYTES + DATA_BYTES])
{
    uint8_t *at = emu_host_command_put(message, &put);

    assert_ptr_equal(at, message + EMU_HOST_COMMAND_BYTES);
    memset(at, 0xd5, DATA_BYTES);
}

static void test_command_is_read_back_without_what_is_the_initiators(void **state)
{
    uint8_t message[EMU_HOST_COMMAND_BYTES + DATA_BYTES];
    struct emu_host_head head;
    struct emu_host_command c = { 0 };

    (void)state;
    write_put(message);
    assert_true(emu_host_head_parse(message, sizeof(message), &head));
    assert_int_equal(head.kind, EMU_HOST_COMMAND);
    assert_int_equal(head.domain, put.domain);
    assert_true(command_is_good(message, sizeof(message), &c));
    assert_true(c.id == put.id && c.domain == put.domain && c.from_nid == 7 && c.offset == 64 &&
                c.part_bytes == DATA_BYTES);
    assert_int_equal(c.cmd.op, EMU_OP_PUT);
    assert_int_equal(c.cmd.flags, EMU_CMD_FLAG);
    assert_int_equal(c.cmd.events, EMU_EV_REMOTE);
    assert_int_equal(c.cmd.handle_flags, EMU_HANDLE_OFFSET);
    assert_true(c.cmd.remote_nid == 9 && c.cmd.remote_addr == 0x7000 && c.cmd.length_bytes == 64 + DATA_BYTES);
    assert_true(c.cmd.remote_base == 0x6000 && c.cmd.mdh == 12 && c.cmd.generation == 3 && c.cmd.remote_event == 99);
    assert_true(c.cmd.flag_addr == 0x7100 && c.cmd.flag_value == 5);
    assert_true(emu_host_is_last_part(&c));
    assert_int_equal(emu_host_result_bytes(&c), 0);
}

static struct emu_host_command bulk(void)
{
    struct emu_host_command c = put;

    c.is_bulk = true;
    c.key = 0x1112131415161718ull;
    c.base = 0x2122232425262728ull;
    c.part_bytes = EMU_HOST_BULK_BYTES;
    c.cmd.length_bytes = c.offset + c.part_bytes;
    return c;
}

static bool bulk_is_good(const struct emu_host_command *c, uint32_t length, struct emu_host_command *read)
{
    uint8_t message[EMU_HOST_COMMAND_BYTES + EMU_HOST_PLACE_BYTES + 1] = { 0 };

    emu_host_command_put(message, c);
    emu_host_place_put(message + EMU_HOST_COMMAND_BYTES, c);
    return command_is_good(message, length, read);
}

static void test_part_in_bulk_names_its_place_and_has_no_data(void **state)
{
    const uint32_t length = EMU_HOST_COMMAND_BYTES + EMU_HOST_PLACE_BYTES;
    struct emu_host_command c = bulk();
    struct emu_host_command read = { 0 };

    (void)state;
    assert_true(bulk_is_good(&c, length, &read));
    assert_true(read.is_bulk && !read.data);
    assert_true(read.key == c.key && read.base == c.base && read.part_bytes == c.part_bytes);
    assert_false(bulk_is_good(&c, length - 1, &read));
    assert_false(bulk_is_good(&c, length + 1, &read));
    c.cmd.op = EMU_OP_GET;
    assert_true(bulk_is_good(&c, length, &read));
    assert_int_equal(emu_host_result_bytes(&read), 0);
    c.cmd.op = EMU_OP_AMO;
    assert_false(bulk_is_good(&c, length, &read));
    c = bulk();
    c.part_bytes++;
    c.cmd.length_bytes++;
    assert_false(bulk_is_good(&c, length, &read));
    c = bulk();
    c.part_bytes = 0;
    assert_false(bulk_is_good(&c, length, &read));
}

static void test_operands_of_an_atomic_are_read_back(void **state)
{
    uint8_t message[EMU_HOST_COMMAND_BYTES];
    struct emu_host_command c = { .cmd = { .op = EMU_OP_AMO,
                                           .amo_op = EMU_AMO_AX,
                                           .amo_flags = EMU_AMO_FETCH,
                                           .length_bytes = 8,
                                           .operand1 = 0x1234567890ull,
                                           .operand2 = UINT64_MAX },
                                  .part_bytes = 8 };
    struct emu_host_command read = { 0 };

    (void)state;
    emu_host_command_put(message, &c);
    assert_true(command_is_good(message, sizeof(message), &read));
    assert_true(read.cmd.operand1 == 0x1234567890ull && read.cmd.operand2 == UINT64_MAX);
    assert_int_equal(read.cmd.amo_op, EMU_AMO_AX);
    assert_int_equal(emu_host_result_bytes(&read), 8);
}

static void test_each_wrong_field_of_a_command_is_refused(void **state)
{
    static const struct {
        unsigned at;
        uint8_t value;
    } cases[] = {
        { 20, 0 }, /* operation */
        { 20, EMU_OP_CE },
        { 20, EMU_OP_PTL_PUT },
        { 20, EMU_OP_GET }, /* with data */
        { 20, EMU_OP_CQ_WRITE },
        { 21, EMU_CMD_INLINE },
        { 22, EMU_HANDLE_LOCAL_SEGMENTS },
        { 25, EMU_HOST_BULK }, /* with data */
        { 25, 2 },             /* reserved */
        { 26, 1 },             /* events */
        { 27, EMU_EV_LOCAL },
        { 47, 95 },             /* length of the whole */
        { 63, DATA_BYTES + 1 }, /* of the part */
        { 63, DATA_BYTES - 1 },
        { 62, 0x3c },
        { 104, 0xff }, /* offset */
        { 111, 65 },
    };
    uint8_t message[EMU_HOST_COMMAND_BYTES + DATA_BYTES];
    struct emu_host_command c = { 0 };

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        write_put(message);
        message[cases[i].at] = cases[i].value;
        assert_false(command_is_good(message, sizeof(message), &c));
    }
    write_put(message);
    for (uint32_t length = 0; length < sizeof(message); length++)
        assert_false(command_is_good(message, length, &c));
}

static void test_head_of_another_version_or_kind_is_refused(void **state)
{
    uint8_t message[EMU_HOST_HEAD_BYTES];
    struct emu_host_head head;

    (void)state;
    emu_host_head_put(message, EMU_HOST_ADMIN, 1);
    assert_true(emu_host_head_parse(message, sizeof(message), &head));
    assert_false(emu_host_head_parse(message, sizeof(message) - 1, &head));
    message[3]++;
    assert_false(emu_host_head_parse(message, sizeof(message), &head));
    emu_host_head_put(message, EMU_HOST_KINDS, 1);
    assert_false(emu_host_head_parse(message, sizeof(message), &head));
    emu_host_head_put(message, 0, 1);
    assert_false(emu_host_head_parse(message, sizeof(message), &head));
}

static void test_answer_is_read_back_and_checked(void **state)
{
    uint8_t message[EMU_HOST_ANSWER_BYTES + 8];
    struct emu_host_answer answer = { .domain = 3,
                                      .id = 77ull << 32 | 5,
                                      .status = EMU_STATUS_REMOTE_RANGE,
                                      .flags = EMU_HOST_EVENT_LOST,
                                      .length_bytes = 8 };
    struct emu_host_answer read = { 0 };

    (void)state;
    memset(message, 0, sizeof(message));
    emu_host_answer_put(message, &answer);
    assert_true(emu_host_answer_parse(message, sizeof(message), &read));
    assert_true(read.id == answer.id && read.status == answer.status && read.flags == answer.flags);
    assert_ptr_equal(read.data, message + EMU_HOST_ANSWER_BYTES);
    assert_false(emu_host_answer_parse(message, sizeof(message) - 1, &read));
    assert_false(emu_host_answer_parse(message, EMU_HOST_ANSWER_BYTES - 1, &read));
    message[16] = EMU_STATUS_BAD_COMMAND + 1;
    assert_false(emu_host_answer_parse(message, sizeof(message), &read));
    emu_host_answer_put(message, &answer);
    message[17] = 2;
    assert_false(emu_host_answer_parse(message, sizeof(message), &read));
    emu_host_answer_put(message, &answer);
    message[19] = 1;
    assert_false(emu_host_answer_parse(message, sizeof(message), &read));
}

static void test_domain_is_read_back_and_checked(void **state)
{
    uint8_t message[EMU_HOST_DOMAIN_BYTES + 16] = { 0 };
    struct emu_host_domain d = { .domain = 5,
                                 .op = EMU_HOST_DOMAIN_CREATE,
                                 .first = 3,
                                 .n = 2,
                                 .n_ranks = 5,
                                 .ptag = 77,
                                 .cookie = 0x1234,
                                 .owner_uid = 1000,
                                 .member_limit = 4,
                                 .flags = 1,
                                 .value = 0 };
    struct emu_host_domain read = { 0 };

    (void)state;
    emu_host_domain_put(message, &d);
    assert_true(emu_host_domain_parse(message, sizeof(message), &read));
    assert_true(read.domain == 5 && read.first == 3 && read.n == 2 && read.n_ranks == 5 && read.ptag == 77 &&
                read.cookie == 0x1234 && read.owner_uid == 1000 && read.member_limit == 4 && read.flags == 1);
    assert_false(emu_host_domain_parse(message, sizeof(message) - 1, &read));
    for (unsigned i = 0; i < 5; i++) {
        struct emu_host_domain wrong = d;

        if (i == 0)
            wrong.first = 4;
        else if (i == 1)
            wrong.n_ranks = EMU_HOST_JOB_RANKS_MAX + 1;
        else if (i == 2)
            wrong.op = EMU_HOST_DOMAIN_OPS;
        else if (i == 3)
            wrong.op = EMU_HOST_DOMAIN_END;
        else
            wrong.domain = 0;
        emu_host_domain_put(message, &wrong);
        assert_false(emu_host_domain_parse(message, sizeof(message), &read));
    }
}

static void test_hello_is_read_back_and_its_name_ends(void **state)
{
    uint8_t message[EMU_HOST_HELLO_BYTES];
    struct emu_host_hello hello = { .n_hosts = 4, .n_nids = 768, .name = "a-host" };
    struct emu_host_hello read = { 0 };

    (void)state;
    emu_host_hello_put(message, &hello);
    assert_true(emu_host_hello_parse(message, sizeof(message), &read));
    assert_true(read.n_hosts == 4 && read.n_nids == 768);
    assert_string_equal(read.name, "a-host");
    assert_false(emu_host_hello_parse(message, sizeof(message) - 1, &read));
    message[EMU_HOST_HELLO_BYTES - 1] = 'x';
    assert_false(emu_host_hello_parse(message, sizeof(message), &read));
}

static void test_end_of_a_region_is_read_back_and_checked(void **state)
{
    const struct emu_host_msgq ended = { .domain = 3, .nid = 77, .mdh = EMU_MD_COUNT - 1, .generation = 5 };
    struct emu_host_msgq wrong = ended;
    struct emu_host_msgq read;
    uint8_t message[EMU_HOST_MSGQ_BYTES];

    (void)state;
    emu_host_msgq_put(message, &ended);
    assert_true(emu_host_msgq_parse(message, sizeof(message), &read));
    assert_true(read.domain == 3 && read.nid == 77 && read.mdh == EMU_MD_COUNT - 1 && read.generation == 5);
    assert_false(emu_host_msgq_parse(message, sizeof(message) - 1, &read));
    wrong.mdh = EMU_MD_COUNT;
    emu_host_msgq_put(message, &wrong);
    assert_false(emu_host_msgq_parse(message, sizeof(message), &read));
    wrong = ended;
    wrong.generation = EMU_MD_GENERATION_MAX + 1;
    emu_host_msgq_put(message, &wrong);
    assert_false(emu_host_msgq_parse(message, sizeof(message), &read));
}

/* ---- administration ---- */

#define LIST_WORDS 1600u

/* A list that does not fit one message. */
static void test_parts_of_a_list_are_read_back_and_checked(void **state)
{
    static uint8_t message[EMU_HOST_ADMIN_BYTES_MAX];
    static uint64_t list[LIST_WORDS];
    struct emu_host_admin m = {
        .op = EMU_HOST_ADMIN_STATE, .type = EMU_MSG_NETWORK, .token = 7ull << 40, .total = LIST_WORDS
    };
    struct emu_host_admin read;
    uint32_t length;

    (void)state;
    for (uint32_t i = 0; i < LIST_WORDS; i++)
        list[i] = (uint64_t)i << 33;
    for (m.first = 0; m.first < LIST_WORDS; m.first += m.n) {
        m.n = LIST_WORDS - m.first < EMU_HOST_ADMIN_WORDS ? LIST_WORDS - m.first : EMU_HOST_ADMIN_WORDS;
        length = emu_host_admin_put(message, &m, list);
        assert_true(emu_host_admin_parse(message, length, &read));
        assert_int_equal(read.op, m.op);
        assert_int_equal(read.type, m.type);
        assert_int_equal(read.token, m.token);
        assert_int_equal(read.first, m.first);
        assert_int_equal(read.n, m.n);
        assert_int_equal(emu_host_admin_word(&read, m.n - 1), list[m.first + m.n - 1]);
        for (uint32_t shorter = 0; shorter < length; shorter += shorter < 64 ? 1 : 8)
            assert_true(!emu_host_admin_parse(message, shorter, &read) || read.n < m.n);
    }
}

static void test_each_wrong_field_of_a_list_is_refused(void **state)
{
    static const struct {
        unsigned at;
        uint8_t value;
    } cases[] = {
        { 7, 1 }, /* domain */
        { 9, 0 }, /* op */
        { 9, EMU_HOST_ADMIN_OPS },
        { 15, 1 }, /* reserved */
        { 27, 2 }, /* first: more words than the list has */
        { 27, 4 },
        { 31, 1 }, /* total */
        { 28, 0xff },
    };
    uint8_t message[EMU_HOST_ADMIN_BYTES_MAX];
    const uint64_t words[3] = { 1, 2, 3 };
    struct emu_host_admin m = { .op = EMU_HOST_ADMIN_DONE, .total = 3, .n = 3 };
    struct emu_host_admin read;
    uint32_t length;

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        length = emu_host_admin_put(message, &m, words);
        assert_true(emu_host_admin_parse(message, length, &read));
        message[cases[i].at] = cases[i].value;
        assert_false(emu_host_admin_parse(message, length, &read));
    }
}

static void test_rule_is_the_same_as_words_and_no_word_is_too_large(void **state)
{
    const struct emu_fault_rule rule = { .id = 9,
                                         .classes = 3,
                                         .action = 4,
                                         .status = 5,
                                         .category = 6,
                                         .flags = 7,
                                         .seed = UINT64_MAX,
                                         .from_nid = EMU_NID_NONE,
                                         .to_nid = 10,
                                         .from_instance = 11,
                                         .to_instance = 12,
                                         .rate_ppb = 13,
                                         .live_min = 14,
                                         .nth = 15,
                                         .every = 16,
                                         .after = 17,
                                         .count = 18,
                                         .start_ns = 19,
                                         .end_ns = 20,
                                         .delay_ns = 21 };
    uint64_t words[EMU_HOST_RULE_WORDS];
    struct emu_words taken = { words, EMU_HOST_RULE_WORDS, false };
    struct emu_fault_rule read;
    uint64_t age_ns = 0;

    (void)state;
    emu_host_rule_put(words, &rule, 99);
    emu_host_rule_take(&taken, &read, &age_ns);
    assert_false(taken.is_bad);
    assert_int_equal(taken.left, 0);
    assert_int_equal(age_ns, 99);
    assert_memory_equal(&read, &rule, sizeof(rule));
    words[2] = 256; /* an action of one byte */
    taken = (struct emu_words){ words, EMU_HOST_RULE_WORDS, false };
    emu_host_rule_take(&taken, &read, &age_ns);
    assert_true(taken.is_bad);
    taken = (struct emu_words){ words, 5, false };
    emu_host_rule_take(&taken, &read, &age_ns);
    assert_true(taken.is_bad);
}

static void test_job_is_the_same_as_words(void **state)
{
    const struct emu_msg_job job = { .job_id = 1ull << 63,
                                     .ptag = 2,
                                     .cookie = UINT32_MAX,
                                     .flags = 4,
                                     .timeout_ms = 5,
                                     .mdd_limit = -1,
                                     .cq_limit = 7,
                                     .fma_limit = -1,
                                     .bte_limit = 9,
                                     .ce_limit = -1,
                                     .iommu_limit = 11,
                                     .ntt_base = -1,
                                     .ntt_size = 13,
                                     .group_size = UINT32_MAX,
                                     .granularity = 15,
                                     .nid_wanted = 16,
                                     .mrt_limit = -1,
                                     .gart_limit = 18 };
    uint64_t words[EMU_HOST_JOB_WORDS];
    struct emu_words taken = { words, EMU_HOST_JOB_WORDS, false };
    struct emu_msg_job read;

    (void)state;
    emu_host_job_put(words, &job);
    emu_host_job_take(&taken, &read);
    assert_false(taken.is_bad);
    assert_int_equal(taken.left, 0);
    assert_memory_equal(&read, &job, sizeof(job));
}

static void test_event_has_one_category_and_a_known_code(void **state)
{
    const struct emu_host_error error = { .domain = 3,
                                          .n_lost = 4,
                                          .record = { .code = EMU_ERROR_CORRUPT,
                                                      .category = EMU_ERROR_TRANSIENT,
                                                      .timestamp_ns = 5,
                                                      .info = { 6, 7, 8, 9 } } };
    static const struct {
        unsigned at;
        uint64_t value;
    } cases[] = {
        { 0, 1ull << 32 }, { 1, 1ull << 32 }, { 2, 0 }, { 2, EMU_ERROR_ROUTES + 1 }, { 3, 0 }, { 3, 3 }, { 3, 256 },
    };
    uint64_t words[EMU_HOST_ERROR_WORDS];
    struct emu_words taken = { words, EMU_HOST_ERROR_WORDS, false };
    struct emu_host_error read;

    (void)state;
    emu_host_error_put(words, &error);
    assert_true(emu_host_error_take(&taken, &read));
    assert_memory_equal(&read, &error, sizeof(error));
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        emu_host_error_put(words, &error);
        words[cases[i].at] = cases[i].value;
        taken = (struct emu_words){ words, EMU_HOST_ERROR_WORDS, false };
        assert_false(emu_host_error_take(&taken, &read));
    }
}

static void test_mutated_messages_are_read_within_their_bounds(void **state)
{
    struct emu_random random = seeded(11);
    uint64_t end_ns = emu_clock_ns() + FUZZ_NS;
    uint8_t message[EMU_HOST_COMMAND_BYTES + DATA_BYTES];
    uint64_t n_good = 0;

    (void)state;
    while (emu_clock_ns() < end_ns) {
        struct emu_host_command c = { 0 };
        struct emu_host_answer answer;
        struct emu_host_domain domain;
        struct emu_host_hello hello;
        struct emu_host_head head;
        uint32_t length = (uint32_t)emu_random_below(&random, sizeof(message) + 1);
        uint8_t *copy;

        write_put(message);
        for (uint64_t n = emu_random_below(&random, 4); n > 0; n--)
            message[emu_random_below(&random, sizeof(message))] = (uint8_t)emu_random_below(&random, 256);
        if (emu_random_below(&random, 2))
            length = sizeof(message);
        copy = copy_of(message, length);
        if (emu_host_command_parse(copy, length, &c)) {
            n_good++;
            assert_true(c.part_bytes <= (c.is_bulk ? EMU_HOST_BULK_BYTES : EMU_HOST_PART_BYTES));
            assert_true(c.offset + c.part_bytes <= c.cmd.length_bytes);
            assert_true(c.cmd.op != EMU_OP_PUT || c.is_bulk || c.data + c.part_bytes == copy + length);
        }
        if (emu_host_answer_parse(copy, length, &answer))
            assert_true(answer.data + answer.length_bytes == copy + length);
        emu_host_domain_parse(copy, length, &domain);
        emu_host_hello_parse(copy, length, &hello);
        emu_host_head_parse(copy, length, &head);
        free(copy);
    }
    assert_true(n_good > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_command_is_read_back_without_what_is_the_initiators),
        cmocka_unit_test(test_part_in_bulk_names_its_place_and_has_no_data),
        cmocka_unit_test(test_operands_of_an_atomic_are_read_back),
        cmocka_unit_test(test_each_wrong_field_of_a_command_is_refused),
        cmocka_unit_test(test_head_of_another_version_or_kind_is_refused),
        cmocka_unit_test(test_answer_is_read_back_and_checked),
        cmocka_unit_test(test_domain_is_read_back_and_checked),
        cmocka_unit_test(test_hello_is_read_back_and_its_name_ends),
        cmocka_unit_test(test_end_of_a_region_is_read_back_and_checked),
        cmocka_unit_test(test_parts_of_a_list_are_read_back_and_checked),
        cmocka_unit_test(test_each_wrong_field_of_a_list_is_refused),
        cmocka_unit_test(test_rule_is_the_same_as_words_and_no_word_is_too_large),
        cmocka_unit_test(test_job_is_the_same_as_words),
        cmocka_unit_test(test_event_has_one_category_and_a_known_code),
        cmocka_unit_test(test_mutated_messages_are_read_within_their_bounds),
    };

    return cmocka_run_group_tests_name("messages between emunics", tests, NULL, NULL);
}
