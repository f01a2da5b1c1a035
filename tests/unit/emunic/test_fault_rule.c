/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Fault rules: which operations they hit, that a hit depends on nothing but seed, rule, port and number, and what makes
 * a rule valid. emunic/engine/fault_rule.c.
 */
#include "emunic/engine/fault_rule.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "emunic/abi/error.h"
#include "emunic/abi/event.h"
#include "tests/common/seed.h"

#define COUNT_OF(a) (sizeof(a) / sizeof((a)[0]))

static struct emu_fault_rule any_put(void)
{
    return (struct emu_fault_rule){ .id = 1,
                                    .classes = EMU_FAULT_BIT(EMU_FAULT_FMA_PUT),
                                    .action = EMU_FAULT_DROP,
                                    .from_nid = EMU_NID_NONE,
                                    .to_nid = EMU_NID_NONE };
}

static struct emu_fault_operation a_put(void)
{
    return (struct emu_fault_operation){ .op_class = EMU_FAULT_FMA_PUT,
                                         .from_nid = 3,
                                         .from_instance = 30,
                                         .to_nid = 4,
                                         .to_instance = 40,
                                         .has_to_instance = true,
                                         .port_key = 99 };
}

/* Bit n: operation n + 1 of that port was hit. */
static uint64_t hits_of(const struct emu_fault_rule *rule, uint64_t port_key)
{
    struct emu_fault_operation op = a_put();
    struct emu_fault_count count = { 0 };
    uint64_t hits = 0;

    op.port_key = port_key;
    for (unsigned i = 0; i < 64; i++)
        hits |= (uint64_t)emu_fault_hits(rule, &count, &op) << i;
    assert_int_equal(count.seen, 64);
    assert_int_equal(count.hits, __builtin_popcountll(hits));
    return hits;
}

static void test_nth_hits_one_and_every_hits_multiples(void **state)
{
    struct emu_fault_rule rule = any_put();

    (void)state;
    assert_int_equal(hits_of(&rule, 1), UINT64_MAX);
    rule.nth = 3;
    assert_int_equal(hits_of(&rule, 1), 1u << 2);
    rule.nth = 0;
    rule.every = 20;
    assert_int_equal(hits_of(&rule, 1), 1ull << 19 | 1ull << 39 | 1ull << 59);
    rule.after = 5;
    assert_int_equal(hits_of(&rule, 1), 1ull << 24 | 1ull << 44);
    rule.count = 1;
    assert_int_equal(hits_of(&rule, 1), 1ull << 24);
}

static void test_rate_hits_its_share_and_the_same_ones_each_time(void **state)
{
    struct emu_random random = seeded(4711);
    struct emu_fault_rule rule = any_put();
    struct emu_fault_operation op = a_put();
    struct emu_fault_count count = { 0 };

    (void)state;
    rule.rate_ppb = EMU_FAULT_RATE_ONE / 10;
    rule.seed = emu_random_next(&random);
    for (unsigned i = 0; i < 100000; i++)
        emu_fault_hits(&rule, &count, &op);
    assert_in_range(count.hits, 9500, 10500); /* five standard deviations are 475 */
    assert_int_equal(hits_of(&rule, 7), hits_of(&rule, 7));
    rule.rate_ppb = EMU_FAULT_RATE_ONE;
    assert_int_equal(hits_of(&rule, 7), UINT64_MAX);
}

static void test_seed_rule_and_port_each_change_the_choice(void **state)
{
    struct emu_fault_rule rule = any_put();
    uint64_t first;

    (void)state;
    rule.rate_ppb = EMU_FAULT_RATE_ONE / 2;
    rule.seed = 1;
    first = hits_of(&rule, 7);
    assert_true(first != hits_of(&rule, 8));
    rule.id = 2;
    assert_true(first != hits_of(&rule, 7));
    rule.id = 1;
    rule.seed = 2;
    assert_true(first != hits_of(&rule, 7));
    assert_true(emu_fault_key(true, 1, 2) != emu_fault_key(true, 2, 1));
    assert_true(emu_fault_key(true, 1, 2) != emu_fault_key(false, 1, 2));
}

static void test_operations_that_a_rule_does_not_look_at_change_nothing(void **state)
{
    struct emu_fault_rule rule = any_put();
    struct emu_fault_operation op = a_put();
    struct emu_fault_operation other = a_put();
    struct emu_fault_count count = { 0 };
    uint64_t hits = 0;

    (void)state;
    rule.rate_ppb = EMU_FAULT_RATE_ONE / 3;
    other.op_class = EMU_FAULT_SMSG;
    for (unsigned i = 0; i < 64; i++) {
        for (unsigned k = 0; k < i % 3; k++)
            assert_false(emu_fault_hits(&rule, &count, &other));
        hits |= (uint64_t)emu_fault_hits(&rule, &count, &op) << i;
    }
    assert_int_equal(hits, hits_of(&rule, op.port_key));
}

static void test_rules_look_at_their_nodes_and_instances_only(void **state)
{
    static const struct {
        uint32_t from, to, flags, from_instance, to_instance;
        bool hits;
    } rows[] = {
        { EMU_NID_NONE, EMU_NID_NONE, 0, 0, 0, true },
        { 3, EMU_NID_NONE, 0, 0, 0, true },
        { 4, EMU_NID_NONE, 0, 0, 0, false },
        { 3, 4, 0, 0, 0, true },
        { 3, 3, 0, 0, 0, false },
        { 3, 4, EMU_FAULT_FROM_INSTANCE, 30, 0, true },
        { 3, 4, EMU_FAULT_FROM_INSTANCE, 31, 0, false },
        { 3, 4, EMU_FAULT_TO_INSTANCE, 0, 40, true },
        { 3, 4, EMU_FAULT_TO_INSTANCE, 0, 41, false },
        { EMU_NID_NONE, EMU_NID_NONE, EMU_FAULT_FROM_INSTANCE | EMU_FAULT_TO_INSTANCE, 30, 40, true },
    };
    struct emu_fault_operation op = a_put();
    struct emu_fault_rule rule;

    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct emu_fault_count count = { 0 };

        rule = any_put();
        rule.from_nid = rows[i].from;
        rule.to_nid = rows[i].to;
        rule.flags = rows[i].flags;
        rule.from_instance = rows[i].from_instance;
        rule.to_instance = rows[i].to_instance;
        assert_null(emu_fault_rule_check(&rule));
        assert_int_equal(emu_fault_hits(&rule, &count, &op), rows[i].hits);
        assert_int_equal(count.seen, rows[i].hits);
    }
    rule.flags = EMU_FAULT_TO_INSTANCE;
    op.has_to_instance = false;
    assert_false(emu_fault_hits(&rule, &(struct emu_fault_count){ 0 }, &op));
}

static void test_window_of_time_selects_and_numbers_go_on_outside(void **state)
{
    struct emu_fault_rule rule = any_put();
    struct emu_fault_operation op = a_put();
    struct emu_fault_count count = { 0 };

    (void)state;
    rule.start_ns = 100;
    rule.end_ns = 200;
    op.age_ns = 99;
    assert_false(emu_fault_hits(&rule, &count, &op));
    op.age_ns = 100;
    assert_true(emu_fault_hits(&rule, &count, &op));
    op.age_ns = 199;
    assert_true(emu_fault_hits(&rule, &count, &op));
    op.age_ns = 200;
    assert_false(emu_fault_hits(&rule, &count, &op));
    assert_int_equal(count.seen, 4);
    assert_int_equal(count.hits, 2);
}

static void test_limit_of_registrations_is_a_function_of_how_many_live(void **state)
{
    struct emu_fault_rule rule = any_put();
    struct emu_fault_operation op = a_put();
    struct emu_fault_count count = { 0 };

    (void)state;
    rule.classes = EMU_FAULT_BIT(EMU_FAULT_REGISTRATION);
    rule.action = EMU_FAULT_FAIL;
    rule.status = EMU_FAULT_NO_RESOURCE;
    rule.live_min = 4;
    assert_null(emu_fault_rule_check(&rule));
    op.op_class = EMU_FAULT_REGISTRATION;
    for (op.live = 0; op.live < 8; op.live++)
        assert_int_equal(emu_fault_hits(&rule, &count, &op), op.live >= 4);
}

static void test_commands_have_the_class_of_their_engine(void **state)
{
    static const struct {
        uint8_t op;
        unsigned type, source;
        int op_class; /* -1: none */
    } rows[] = {
        { EMU_OP_PUT, 0, EMU_SOURCE_FMA, EMU_FAULT_FMA_PUT },
        { EMU_OP_GET, 0, EMU_SOURCE_FMA, EMU_FAULT_FMA_GET },
        { EMU_OP_AMO, 0, EMU_SOURCE_FMA, EMU_FAULT_FMA_AMO },
        { EMU_OP_PUT, 0, EMU_SOURCE_BTE, EMU_FAULT_BTE_PUT },
        { EMU_OP_GET, 0, EMU_SOURCE_BTE, EMU_FAULT_BTE_GET },
        { EMU_OP_PUT, 1, EMU_SOURCE_SMSG, EMU_FAULT_SMSG },
        { EMU_OP_PUT, 3, EMU_SOURCE_SMSG, EMU_FAULT_MSGQ },
        { EMU_OP_CQ_WRITE, 0, EMU_SOURCE_FMA, EMU_FAULT_CQ_WRITE },
        { EMU_OP_CQ_WRITE, 0, EMU_SOURCE_CQ_WRITE, EMU_FAULT_CQ_WRITE },
        { EMU_OP_CE, 0, EMU_SOURCE_FMA, EMU_FAULT_CE },
        { EMU_OP_PTL_PUT, 0, 0, EMU_FAULT_PTL_PUT },
        { EMU_OP_PTL_GET, 1, 3, EMU_FAULT_PTL_GET },
        { EMU_OP_PTL_GETPUT, 0, 0, EMU_FAULT_PTL_GETPUT },
        { EMU_OP_PUT, 0, 0, -1 },
        { EMU_OP_PUT, 1, EMU_SOURCE_LIBRARY, -1 },
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        struct emu_cmd cmd = { .op = rows[i].op, .source_event = emu_event_make(rows[i].type, rows[i].source, 0) };
        enum emu_fault_class op_class;
        bool has_one = emu_fault_class_of(&cmd, &op_class);

        assert_int_equal(has_one ? (int)op_class : -1, rows[i].op_class);
    }
}

static void test_names_and_numbers_agree(void **state)
{
    struct emu_fault_rule rule = { .action = EMU_FAULT_FAIL };
    uint32_t bits;
    uint8_t number;

    (void)state;
    for (unsigned c = 0; c < EMU_FAULT_CLASSES; c++) {
        assert_true(emu_fault_parse_classes(emu_fault_class_name(c), &bits));
        assert_int_equal(bits, 1u << c);
        rule.classes = bits;
        for (rule.status = 1; emu_fault_status_name(&rule)[0]; rule.status++) {
            assert_true(emu_fault_parse_status(emu_fault_status_name(&rule), bits, &number));
            assert_int_equal(number, rule.status);
        }
        assert_true(rule.status >= 4);
    }
    for (unsigned a = 1; a < EMU_FAULT_ACTIONS; a++) {
        assert_true(emu_fault_parse_action(emu_fault_action_name(a), &number));
        assert_int_equal(number, a);
    }
    for (unsigned bit = 0; bit < 8; bit++) {
        assert_true(emu_error_parse_category(emu_error_category_name(1u << bit), &number));
        assert_int_equal(number, 1u << bit);
    }
    assert_true(emu_fault_parse_classes("any", &bits));
    assert_int_equal(bits & EMU_FAULT_BIT(EMU_FAULT_DATAGRAM), 0);
    assert_int_equal(bits & EMU_FAULT_BIT(EMU_FAULT_REGISTRATION), 0);
    assert_int_equal(bits & (EMU_FAULT_BIT(EMU_FAULT_MSGQ) | EMU_FAULT_BIT(EMU_FAULT_CE)),
                     EMU_FAULT_BIT(EMU_FAULT_MSGQ) | EMU_FAULT_BIT(EMU_FAULT_CE));
    assert_false(emu_fault_parse_classes("", &bits));
    assert_false(emu_fault_parse_action("", &number));
    assert_null(emu_fault_class_name(EMU_FAULT_CLASSES));
    assert_null(emu_fault_action_name(0));
    assert_null(emu_error_category_name(3));
}

static void test_rules_that_make_no_sense_are_refused(void **state)
{
    static const struct {
        size_t offset;
        uint64_t value;
        size_t bytes;
    } strokes[] = {
#define STROKE(field, value)                                                                                           \
    { offsetof(struct emu_fault_rule, field), value, sizeof(((struct emu_fault_rule *)0)->field) }
        STROKE(classes, 0),
        STROKE(classes, 1u << EMU_FAULT_CLASSES),
        STROKE(action, 0),
        STROKE(action, EMU_FAULT_ACTIONS),
        STROKE(status, 1),
        STROKE(category, 1),
        STROKE(flags, 8),
        STROKE(flags, EMU_FAULT_VICTIM_INITIATOR),
        STROKE(rate_ppb, EMU_FAULT_RATE_ONE + 1),
        STROKE(live_min, 1),
        STROKE(delay_ns, 1),
        STROKE(from_nid, EMU_NID_MAX + 1),
        STROKE(to_nid, EMU_NID_MAX + 1),
        STROKE(reserved, 1),
        STROKE(reserved2, 1),
        STROKE(action, EMU_FAULT_FAIL),
        STROKE(action, EMU_FAULT_DELAY),
        STROKE(action, EMU_FAULT_REPORT),
        STROKE(classes, EMU_FAULT_BIT(EMU_FAULT_REGISTRATION)), /* a dropped registration */
    };
    struct emu_fault_rule rule = any_put();

    (void)state;
    assert_null(emu_fault_rule_check(&rule));
    for (size_t i = 0; i < COUNT_OF(strokes); i++) {
        rule = any_put();
        memcpy((char *)&rule + strokes[i].offset, &strokes[i].value, strokes[i].bytes);
        assert_non_null(emu_fault_rule_check(&rule));
    }
    rule = any_put();
    rule.nth = rule.every = 2;
    assert_non_null(emu_fault_rule_check(&rule));
    rule = any_put();
    rule.start_ns = rule.end_ns = 2;
    assert_non_null(emu_fault_rule_check(&rule));
    rule = any_put();
    rule.action = EMU_FAULT_FAIL;
    rule.status = EMU_STATUS_NETWORK;
    assert_null(emu_fault_rule_check(&rule));
    rule.classes |= EMU_FAULT_BIT(EMU_FAULT_DATAGRAM);
    assert_non_null(emu_fault_rule_check(&rule));
}

static void test_any_bytes_can_be_checked_and_valid_ones_be_used(void **state)
{
    struct emu_random random = seeded(815);
    struct emu_fault_operation op = a_put();
    unsigned n_valid = 0;

    (void)state;
    for (unsigned i = 0; i < 200000; i++) {
        struct emu_fault_rule rule = any_put();
        uint8_t *bytes = (uint8_t *)&rule;
        struct emu_fault_count count = { 0 };

        for (uint64_t n = emu_random_below(&random, 4); n > 0; n--)
            bytes[emu_random_below(&random, sizeof(rule))] = (uint8_t)emu_random_next(&random);
        if (emu_fault_rule_check(&rule))
            continue;
        n_valid++;
        emu_fault_status_name(&rule);
        emu_fault_hits(&rule, &count, &op);
    }
    assert_true(n_valid > 1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nth_hits_one_and_every_hits_multiples),
        cmocka_unit_test(test_rate_hits_its_share_and_the_same_ones_each_time),
        cmocka_unit_test(test_seed_rule_and_port_each_change_the_choice),
        cmocka_unit_test(test_operations_that_a_rule_does_not_look_at_change_nothing),
        cmocka_unit_test(test_rules_look_at_their_nodes_and_instances_only),
        cmocka_unit_test(test_window_of_time_selects_and_numbers_go_on_outside),
        cmocka_unit_test(test_limit_of_registrations_is_a_function_of_how_many_live),
        cmocka_unit_test(test_commands_have_the_class_of_their_engine),
        cmocka_unit_test(test_names_and_numbers_agree),
        cmocka_unit_test(test_rules_that_make_no_sense_are_refused),
        cmocka_unit_test(test_any_bytes_can_be_checked_and_valid_ones_be_used),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
