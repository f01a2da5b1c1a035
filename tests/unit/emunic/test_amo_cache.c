/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The cache of atomics: when host memory is written, what the processor sees meanwhile, and that whatever goes through
 * the NIC sees one memory. The window is memory of this process under addresses of its owner.
 */
#include "emunic/engine/amo_cache.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "tests/common/seed.h"

#define ENTRIES 64u
#define WORDS   256u
#define FIRST   0x10000u /* owner's address of the first word */

static _Alignas(64) uint64_t host[WORDS];

static struct emu_amo_cache *cache;
static struct emu_memory mem;

static int make(bool is_lazy)
{
    struct emu_memory window = emu_memory_map(host, FIRST, sizeof(host));

    memset(host, 0, sizeof(host));
    cache = emu_amo_cache_create(is_lazy, ENTRIES);
    if (!cache)
        return -1;
    mem = emu_memory_cached(cache, &window, getpid());
    return 0;
}

static int make_eager(void **state)
{
    (void)state;
    return make(false);
}

static int make_lazy(void **state)
{
    (void)state;
    return make(true);
}

static int destroy(void **state)
{
    (void)state;
    emu_amo_cache_destroy(cache);
    return 0;
}

#define eager_test(name) cmocka_unit_test_setup_teardown(name, make_eager, destroy)
#define lazy_test(name)  cmocka_unit_test_setup_teardown(name, make_lazy, destroy)

static uint64_t at(unsigned word)
{
    return FIRST + 8ull * word;
}

static uint64_t atomic(const struct emu_memory *memory, uint64_t addr, struct emu_amo amo)
{
    uint64_t old = 0;

    assert_int_equal(memory->ops->atomic(memory, addr, &amo, &old), 0);
    return old;
}

static uint64_t add(unsigned word, uint64_t value)
{
    return atomic(&mem, at(word), (struct emu_amo){ .op = EMU_AMO_ADD, .flags = EMU_AMO_CACHED, .operand1 = value });
}

static uint64_t get(unsigned word)
{
    uint64_t value = 0;

    assert_int_equal(mem.ops->read(&mem, at(word), &value, sizeof(value)), 0);
    return value;
}

static void put(unsigned word, uint64_t value)
{
    assert_int_equal(mem.ops->write(&mem, at(word), &value, sizeof(value), NULL), 0);
}

static const struct emu_amo_cache_counts *counts(void)
{
    return emu_amo_cache_counts(cache);
}

static void test_eager_writes_at_each_update(void **state)
{
    (void)state;
    for (uint64_t i = 0; i < 100; i++) {
        assert_int_equal(add(0, 1), i);
        assert_int_equal(host[0], i + 1);
        assert_int_equal(counts()->host_writes, i + 1);
    }
    assert_int_equal(counts()->commands, 100);
    assert_int_equal(counts()->host_reads, 1);
    assert_int_equal(counts()->hits, 99);
}

static void test_lazy_writes_when_somebody_reads(void **state)
{
    (void)state;
    for (uint64_t i = 0; i < 100; i++)
        assert_int_equal(add(0, 1), i);
    assert_int_equal(host[0], 0);
    assert_int_equal(counts()->host_writes, 0);
    assert_int_equal(get(1), 0); /* a neighbour changes nothing */
    assert_int_equal(counts()->host_writes, 0);
    assert_int_equal(get(0), 100);
    assert_int_equal(host[0], 100);
    assert_int_equal(get(0), 100);
    assert_int_equal(counts()->host_writes, 1);
    assert_int_equal(add(0, 1), 100); /* and it is still here */
    assert_int_equal(counts()->host_reads, 1);
}

static void test_a_read_that_touches_one_byte_of_a_word_writes_it(void **state)
{
    uint8_t bytes[2];

    (void)state;
    add(0, 0xa500000000000000);
    add(1, 0x5a);
    assert_int_equal(mem.ops->read(&mem, at(1) - 1, bytes, 2), 0);
    assert_int_equal(bytes[0], 0xa5);
    assert_int_equal(bytes[1], 0x5a);
}

static void test_the_least_recently_used_word_gives_way(void **state)
{
    (void)state;
    for (unsigned i = 0; i < ENTRIES; i++)
        add(i, i + 1);
    assert_int_equal(counts()->host_writes, 0);
    add(0, 1); /* 1 is the oldest now */
    add(ENTRIES, 7);
    assert_int_equal(counts()->host_writes, 1);
    assert_int_equal(host[1], 2);
    assert_int_equal(host[0], 0);
    assert_int_equal(add(1, 0), 2); /* evicts 2 */
    assert_int_equal(host[2], 3);
    assert_int_equal(counts()->hits, 1);
}

static void test_a_put_replaces_what_is_cached(void **state)
{
    const struct emu_flag flag = { at(3), 33 };
    uint64_t value = 5;

    (void)state;
    add(2, 1);
    add(3, 1);
    put(2, 40);
    assert_int_equal(add(2, 1), 40);
    assert_int_equal(mem.ops->write(&mem, at(2), &value, 4, &flag), 0); /* half of it, and a flag */
    assert_int_equal(add(2, 1), 5);
    assert_int_equal(add(3, 1), 33);
}

static void test_other_atomics_go_to_memory(void **state)
{
    (void)state;
    add(0, 5);
    assert_int_equal(atomic(&mem, at(0), (struct emu_amo){ .op = EMU_AMO_ADD, .operand1 = 2 }), 5);
    assert_int_equal(host[0], 7);
    assert_int_equal(add(0, 1), 7);
    assert_int_equal(counts()->host_writes, 1);
}

static void test_half_a_word_is_written_alone(void **state)
{
    const struct emu_amo amo = { .op = EMU_AMO_ADD, .flags = EMU_AMO_CACHED | EMU_AMO_32BIT, .operand1 = 1 };

    (void)state;
    host[0] = 0xffffffff00000000;
    assert_int_equal(atomic(&mem, at(0) + 4, amo), 0xffffffff); /* wraps within its half */
    host[0] |= 0x1234;                                          /* the processor has the other one */
    assert_int_equal(get(0), 0x1234);
    assert_int_equal(atomic(&mem, at(0), amo), 0);
    assert_int_equal(get(0), 1);
    assert_int_equal(counts()->host_writes, 2);
}

static void test_stores_of_the_processor_are_not_seen(void **state)
{
    (void)state;
    add(0, 1);
    host[0] = 1000;
    assert_int_equal(add(0, 1), 1);
    assert_int_equal(get(0), 2);
}

static void test_other_ways_to_the_same_memory_see_it(void **state)
{
    struct emu_memory calls = emu_memory_cma(getpid());
    struct emu_memory window = emu_memory_map(host, (uint64_t)(uintptr_t)host, sizeof(host));
    const struct emu_amo amo = { .op = EMU_AMO_ADD, .flags = EMU_AMO_CACHED, .operand1 = 3 };
    uint64_t value = 0;

    (void)state;
    calls = emu_memory_cached(cache, &calls, getpid());
    window = emu_memory_cached(cache, &window, getpid());
    atomic(&window, (uint64_t)(uintptr_t)&host[9], amo);
    assert_int_equal(host[9], 0);
    assert_int_equal(calls.ops->read(&calls, (uint64_t)(uintptr_t)&host[9], &value, 8), 0);
    assert_int_equal(value, 3);
    atomic(&window, (uint64_t)(uintptr_t)&host[9], amo);
    assert_int_equal(atomic(&calls, (uint64_t)(uintptr_t)&host[9], amo), 6); /* not kept: there is no window */
    assert_int_equal(host[9], 9);
}

static void test_a_process_is_forgotten_alone(void **state)
{
    struct emu_memory window = emu_memory_map(host + 128, FIRST, sizeof(host) / 2);
    struct emu_memory other = emu_memory_cached(cache, &window, getpid() + 1);
    const struct emu_amo amo = { .op = EMU_AMO_ADD, .flags = EMU_AMO_CACHED, .operand1 = 4 };

    (void)state;
    add(0, 1);
    atomic(&other, at(0), amo);
    emu_amo_cache_forget(cache, getpid());
    assert_int_equal(host[0], 1);
    assert_int_equal(host[128], 0);
    assert_int_equal(add(0, 1), 1);
    assert_int_equal(counts()->host_reads, 3);
    emu_amo_cache_forget(cache, getpid() + 1);
    assert_int_equal(host[128], 4);
}

static void test_beyond_the_window_is_a_fault(void **state)
{
    const struct emu_amo amo = { .op = EMU_AMO_ADD, .flags = EMU_AMO_CACHED };
    uint64_t old;

    (void)state;
    assert_true(mem.ops->atomic(&mem, at(WORDS), &amo, &old) < 0);
    assert_true(mem.ops->window == NULL);
}

/* One operation of a random mix, done to both. */
static void do_both(struct emu_random *random, uint64_t *model)
{
    unsigned word = emu_random_below(random, 2 * ENTRIES);
    bool is_narrow = emu_random_below(random, 2);
    bool is_high = is_narrow && emu_random_below(random, 2);
    uint64_t value = emu_random_below(random, 1u << 30);
    struct emu_amo amo = { .op = (uint8_t)(EMU_AMO_ADD + emu_random_below(random, EMU_AMO_IMAX)),
                           .flags = is_narrow ? EMU_AMO_32BIT : 0,
                           .operand1 = value,
                           .operand2 = value >> 7 };
    struct emu_memory plain = emu_memory_map(model, FIRST, sizeof(host));
    uint64_t addr = at(word) + (is_high ? 4 : 0);
    uint64_t expected;

    switch (emu_random_below(random, 8)) {
    case 0:
        assert_int_equal(get(word), model[word]);
        return;
    case 1:
        put(word, value);
        model[word] = value;
        return;
    default:
        expected = atomic(&plain, addr, amo);
        amo.flags |= emu_random_below(random, 4) ? EMU_AMO_CACHED : 0;
        assert_int_equal(atomic(&mem, addr, amo), expected);
    }
}

static void test_no_update_is_lost(void **state)
{
    static _Alignas(64) uint64_t model[WORDS];
    struct emu_random random = seeded(42);

    (void)state;
    memset(model, 0, sizeof(model));
    for (unsigned i = 0; i < 200000; i++)
        do_both(&random, model);
    emu_amo_cache_forget(cache, getpid());
    assert_memory_equal(host, model, sizeof(host));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        eager_test(test_eager_writes_at_each_update),
        lazy_test(test_lazy_writes_when_somebody_reads),
        lazy_test(test_a_read_that_touches_one_byte_of_a_word_writes_it),
        lazy_test(test_the_least_recently_used_word_gives_way),
        lazy_test(test_a_put_replaces_what_is_cached),
        lazy_test(test_other_atomics_go_to_memory),
        lazy_test(test_half_a_word_is_written_alone),
        lazy_test(test_stores_of_the_processor_are_not_seen),
        eager_test(test_stores_of_the_processor_are_not_seen),
        lazy_test(test_other_ways_to_the_same_memory_see_it),
        lazy_test(test_a_process_is_forgotten_alone),
        lazy_test(test_beyond_the_window_is_a_fault),
        lazy_test(test_no_update_is_lost),
        eager_test(test_no_update_is_lost),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
