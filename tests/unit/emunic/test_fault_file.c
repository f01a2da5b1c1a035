/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Fault schedules: what a file means, and where each mistake is told to be. emunic/cli/fault_file.c.
 */
#include "emunic/cli/fault_file.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "emunic/abi/error.h"
#include "emunic/abi/event.h"
#include "tests/common/seed.h"

#define COUNT_OF(a) (sizeof(a) / sizeof((a)[0]))

static char path[] = "/tmp/emunic-fault-file-XXXXXX";
static char err[256];
static struct emu_fault_schedule schedule;
static struct emu_fault_rule *rules; /* its rules */
static uint32_t n_rules;

static int make_file(void **state)
{
    int fd = mkstemp(path);

    (void)state;
    if (fd >= 0)
        close(fd);
    return fd < 0 ? -1 : 0;
}

static int remove_file(void **state)
{
    (void)state;
    return unlink(path);
}

static int read_bytes(const char *bytes, size_t len)
{
    FILE *file = fopen(path, "w");
    int r;

    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, len, file), len);
    assert_int_equal(fclose(file), 0);
    rules = NULL;
    r = emu_fault_file_read(path, &schedule, err, sizeof(err));
    if (r == 0) {
        rules = schedule.rules;
        n_rules = schedule.n_rules;
    }
    return r;
}

static void test_file_becomes_rules(void **state)
{
    static const char text[] = "schema: 1\n"
                               "seed: 42\n"
                               "rules:\n"
                               "  - class: smsg\n"
                               "    action: drop\n"
                               "    rate: 0.000000001\n"
                               "  - { class: [fma, bte-get], action: fail, status: remote-range, from: 0, to: 7, "
                               "nth: 100,\n"
                               "      from_instance: 0, seed: 7, after: 3, count: 2, start_ms: 5, end_ms: 10 }\n"
                               "  - class: registration\n"
                               "    action: fail\n"
                               "    live_min: 8\n"
                               "  - { class: datagram, action: delay, delay_us: 1500 }\n"
                               "  - { class: 'smsg,cq-write', action: report, category: diag-only, every: 10 }\n"
                               "  - { class: any, action: kill, victim: initiator, rate: 1 }\n";

    (void)state;
    if (read_bytes(text, sizeof(text) - 1) < 0)
        fail_msg("%s", err);
    assert_int_equal(n_rules, 6);
    assert_int_equal(rules[0].classes, EMU_FAULT_BIT(EMU_FAULT_SMSG));
    assert_int_equal(rules[0].action, EMU_FAULT_DROP);
    assert_int_equal(rules[0].rate_ppb, 1);
    assert_int_equal(rules[0].seed, 42);
    assert_int_equal(rules[0].from_nid, EMU_NID_NONE);
    assert_int_equal(rules[1].classes, EMU_FAULT_FMA_BITS | EMU_FAULT_BIT(EMU_FAULT_BTE_GET));
    assert_int_equal(rules[1].status, EMU_STATUS_REMOTE_RANGE);
    assert_int_equal(rules[1].from_nid, 0);
    assert_int_equal(rules[1].to_nid, 7);
    assert_int_equal(rules[1].nth, 100);
    assert_int_equal(rules[1].flags, EMU_FAULT_FROM_INSTANCE);
    assert_int_equal(rules[1].from_instance, 0);
    assert_int_equal(rules[1].seed, 7);
    assert_int_equal(rules[1].after, 3);
    assert_int_equal(rules[1].count, 2);
    assert_int_equal(rules[1].start_ns, 5000000);
    assert_int_equal(rules[1].end_ns, 10000000);
    assert_int_equal(rules[2].status, EMU_FAULT_NO_RESOURCE);
    assert_int_equal(rules[2].live_min, 8);
    assert_int_equal(rules[3].delay_ns, 1500000);
    assert_int_equal(rules[4].category, EMU_ERROR_DIAG_ONLY);
    assert_int_equal(rules[4].classes, EMU_FAULT_BIT(EMU_FAULT_SMSG) | EMU_FAULT_BIT(EMU_FAULT_CQ_WRITE));
    assert_int_equal(rules[5].rate_ppb, EMU_FAULT_RATE_ONE);
    assert_int_equal(rules[5].flags, EMU_FAULT_VICTIM_INITIATOR);
    emu_fault_schedule_free(&schedule);
}

static void test_mistakes_are_told_with_their_place(void **state)
{
    static const struct {
        const char *text;
        const char *place;
        const char *what;
    } rows[] = {
        { "", "1:1", "empty" },
        { "- 1\n", "1:1", "mapping" },
        { "rules: []\n", "1:1", "schema" },
        { "schema: 2\nrules: []\n", "1:9", "schema" },
        { "schema: 1\n", "1:1", "'rules'" },
        { "schema: 1\nrules: []\n", "2:8", "empty" },
        { "schema: 1\nrules: 7\n", "2:8", "list" },
        { "schema: 1\nrule: []\n", "2:1", "unknown key" },
        { "schema: 1\nseed: x\nrules: []\n", "2:7", "seed" },
        { "schema: 1\nrules:\n  - 7\n", "3:5", "mapping" },
        { "schema: 1\nrules:\n  - class: smsg\n", "3:5", "'action'" },
        { "schema: 1\nrules:\n  - action: drop\n", "3:5", "'class'" },
        { "schema: 1\nrules:\n  - class: smsq\n    action: drop\n", "3:12", "class: 'smsq'" },
        { "schema: 1\nrules:\n  - class: smsg\n    action: lose\n", "4:13", "action: 'lose'" },
        { "schema: 1\nrules:\n  - class: smsg\n    actoin: drop\n", "4:5", "unknown key 'actoin'" },
        { "schema: 1\nrules:\n  - class: smsg\n    action: drop\n    action: drop\n", "5:13", "given twice" },
        { "schema: 1\nrules:\n  - class: smsg\n    action: drop\n    rate: 1.1\n", "5:11", "rate" },
        { "schema: 1\nrules:\n  - class: smsg\n    action: drop\n    rate: 0\n", "5:11", "rate" },
        { "schema: 1\nrules:\n  - class: smsg\n    action: drop\n    rate: -1\n", "5:11", "rate" },
        { "schema: 1\nrules:\n  - class: smsg\n    action: drop\n    nth: 0\n", "5:10", "nth" },
        { "schema: 1\nrules:\n  - class: smsg\n    action: drop\n    to: 262144\n", "5:9", "to" },
        { "schema: 1\nrules:\n  - class: smsg\n    action: drop\n    nth: [1]\n", "5:10", "single value" },
        { "schema: 1\nrules:\n  - class: smsg\n    action: drop\n    nth: 1\n    rate: 0.5\n", "3:5", "only one of" },
        { "schema: 1\nrules:\n  - class: smsg\n    action: fail\n    status: memory\n", "3:5", "status: 'memory'" },
        { "schema: 1\nrules:\n  - class: registration\n    action: drop\n", "3:5", "cannot be dropped" },
        { "schema: 1\nrules: [\n", "3:1", "" },
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        char place[128];

        snprintf(place, sizeof(place), "%s:%s: ", path, rows[i].place);
        assert_true(read_bytes(rows[i].text, strlen(rows[i].text)) < 0);
        if (strncmp(err, place, strlen(place)) != 0 || !strstr(err, rows[i].what))
            fail_msg("row %zu: '%s' is not at %s with '%s'", i, err, place, rows[i].what);
        assert_null(rules);
    }
    assert_true(emu_fault_file_read("/nonexistent/file", &schedule, err, sizeof(err)) < 0);
    assert_non_null(strstr(err, "/nonexistent/file: No such file"));
}

static void test_a_schedule_may_change_the_network(void **state)
{
    static const char text[] = "schema: 1\nnetwork:\n  - { at_ms: 7, fail: router c0-0c0s1a0 }\n  - { repair: all }\n";

    (void)state;
    assert_int_equal(read_bytes(text, strlen(text)), 0);
    assert_int_equal(schedule.n_rules, 0);
    assert_int_equal(schedule.n_events, 2);
    assert_int_equal(schedule.events[0].at_ns, 7000000);
    assert_false(schedule.events[0].is_repair);
    assert_string_equal(schedule.events[0].what, "router c0-0c0s1a0");
    assert_int_equal(schedule.events[1].at_ns, 0);
    assert_true(schedule.events[1].is_repair);
    emu_fault_schedule_free(&schedule);
}

static void test_words_are_the_same_keys(void **state)
{
    char *good[] = { "class=smsg,bte", "action=drop", "rate=0.25", "seed=9" };
    char *bad[] = { "class=smsg", "action" };
    struct emu_fault_rule rule;

    (void)state;
    assert_int_equal(emu_fault_words_read(good, 4, &rule, err, sizeof(err)), 0);
    assert_int_equal(rule.classes, EMU_FAULT_BIT(EMU_FAULT_SMSG) | EMU_FAULT_BTE_BITS);
    assert_int_equal(rule.rate_ppb, 250000000);
    assert_int_equal(rule.seed, 9);
    assert_true(emu_fault_words_read(bad, 2, &rule, err, sizeof(err)) < 0);
    assert_non_null(strstr(err, "KEY=VALUE"));
    assert_true(emu_fault_words_read(good, 0, &rule, err, sizeof(err)) < 0);
}

static void test_too_many_rules_are_refused(void **state)
{
    static const char row[] = "- { class: smsg, action: drop }\n";
    static char text[64 + (EMU_FAULT_RULES_MAX + 1) * sizeof(row)];
    size_t len = (size_t)sprintf(text, "schema: 1\nrules:\n");

    (void)state;
    for (unsigned i = 0; i < EMU_FAULT_RULES_MAX; i++)
        len += (size_t)sprintf(text + len, "%s", row);
    assert_int_equal(read_bytes(text, len), 0);
    assert_int_equal(n_rules, EMU_FAULT_RULES_MAX);
    emu_fault_schedule_free(&schedule);
    len += (size_t)sprintf(text + len, "%s", row);
    assert_true(read_bytes(text, len) < 0);
    assert_non_null(strstr(err, "too many rules"));
}

static void test_broken_files_are_refused_or_read(void **state)
{
    static const char text[] = "schema: 1\nrules:\n"
                               "  - { class: [fma, bte-get], action: fail, status: remote-range, from: 0 }\n";
    struct emu_random random = seeded(99);

    (void)state;
    for (unsigned i = 0; i < 3000; i++) {
        char copy[sizeof(text) - 1];

        memcpy(copy, text, sizeof(copy));
        for (uint64_t n = 1 + emu_random_below(&random, 5); n > 0; n--)
            copy[emu_random_below(&random, sizeof(copy))] = (char)emu_random_next(&random);
        if (read_bytes(copy, emu_random_below(&random, sizeof(copy) + 1)) == 0)
            emu_fault_schedule_free(&schedule);
        else
            assert_true(strlen(err) > 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_file_becomes_rules),
        cmocka_unit_test(test_mistakes_are_told_with_their_place),
        cmocka_unit_test(test_a_schedule_may_change_the_network),
        cmocka_unit_test(test_words_are_the_same_keys),
        cmocka_unit_test(test_too_many_rules_are_refused),
        cmocka_unit_test(test_broken_files_are_refused_or_read),
    };

    return cmocka_run_group_tests(tests, make_file, remove_file);
}
