/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Atomic operations: every command in both widths against a table worked out by hand from spec/ugni.md 2.15, the
 * same on a word in memory, and several threads on one word.
 */
#include "emunic/engine/amo_arithmetic.h"

#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "emunic/engine/bits.h"
#include "tests/common/seed.h"

#define COUNT_OF(a) (sizeof(a) / sizeof((a)[0]))

struct sample {
    uint8_t op;
    uint64_t old;
    uint64_t a;
    uint64_t b;
    uint64_t expected;
};

static void check(const struct sample *samples, size_t n_samples, uint8_t flags)
{
    for (size_t i = 0; i < n_samples; i++) {
        const struct sample *s = &samples[i];
        struct emu_amo amo = { .op = s->op, .flags = flags, .operand1 = s->a, .operand2 = s->b };
        uint64_t actual = emu_amo_apply(&amo, s->old);

        if (actual != s->expected)
            fail_msg("op %u flags %u: old 0x%llx a 0x%llx b 0x%llx gives 0x%llx, not 0x%llx", s->op, flags,
                     (unsigned long long)s->old, (unsigned long long)s->a, (unsigned long long)s->b,
                     (unsigned long long)actual, (unsigned long long)s->expected);
    }
}

static void test_64_bit_integer_operations(void **state)
{
    static const struct sample samples[] = {
        { EMU_AMO_ADD, 40, 2, 99, 42 },
        { EMU_AMO_ADD, UINT64_MAX, 1, 0, 0 },
        { EMU_AMO_ADD, 0xffffffff, 1, 0, 0x100000000 },
        { EMU_AMO_ADD, 5, (uint64_t)-7, 0, (uint64_t)-2 },
        { EMU_AMO_AND, 0xff00ff00ff00ff00, 0x0ff00ff00ff00ff0, 0, 0x0f000f000f000f00 },
        { EMU_AMO_OR, 0xf000000000000001, 0x0f00000000000002, 0, 0xff00000000000003 },
        { EMU_AMO_XOR, 0xffff0000ffff0000, 0xff00ff00ff00ff00, 0, 0x00ffff0000ffff00 },
        { EMU_AMO_SWAP, 1, 0xfedcba9876543210, 9, 0xfedcba9876543210 },
        { EMU_AMO_AX, 0xff00ff00ff00ff00, 0xf0f0f0f0f0f0f0f0, 0xffffffffffffffff, 0x0fff0fff0fff0fff },
        { EMU_AMO_CSWAP, 7, 7, 8, 8 },
        { EMU_AMO_CSWAP, 7, 6, 8, 7 },
        { EMU_AMO_CSWAP, 0x100000007, 7, 8, 0x100000007 },
        { EMU_AMO_IMIN, 5, (uint64_t)-3, 0, (uint64_t)-3 },
        { EMU_AMO_IMIN, 0x8000000000000000, 0x7fffffffffffffff, 0, 0x8000000000000000 },
        { EMU_AMO_IMAX, 5, (uint64_t)-3, 0, 5 },
        { EMU_AMO_IMAX, 0x8000000000000000, 0x7fffffffffffffff, 0, 0x7fffffffffffffff },
    };

    (void)state;
    check(samples, COUNT_OF(samples), 0);
}

static void test_32_bit_integer_operations(void **state)
{
    static const struct sample samples[] = {
        { EMU_AMO_ADD, 40, 2, 99, 42 },
        { EMU_AMO_ADD, 0xffffffff, 1, 0, 0 },
        { EMU_AMO_AND, 0xff00ff00, 0x0ff00ff0, 0, 0x0f000f00 },
        { EMU_AMO_OR, 0xf0000001, 0x0f000002, 0, 0xff000003 },
        { EMU_AMO_XOR, 0xffff0000, 0xff00ff00, 0, 0x00ffff00 },
        { EMU_AMO_SWAP, 1, 0x76543210, 9, 0x76543210 },
        { EMU_AMO_AX, 0xff00ff00, 0xf0f0f0f0, 0xffffffff, 0x0fff0fff },
        { EMU_AMO_CSWAP, 7, 7, 8, 8 },
        { EMU_AMO_CSWAP, 7, 6, 8, 7 },
        { EMU_AMO_CSWAP, 0xfffffff9, 0xfffffff9, 8, 8 },
        { EMU_AMO_IMIN, 5, 0xfffffffd, 0, 0xfffffffd },
        { EMU_AMO_IMIN, 0x80000000, 0x7fffffff, 0, 0x80000000 },
        { EMU_AMO_IMAX, 5, 0xfffffffd, 0, 5 },
        { EMU_AMO_IMAX, 0x80000000, 0x7fffffff, 0, 0x7fffffff },
    };

    (void)state;
    check(samples, COUNT_OF(samples), EMU_AMO_32BIT);
}

static void test_64_bit_floating_point_operations(void **state)
{
    const struct sample samples[] = {
        { EMU_AMO_FPADD, emu_double_bits(1.5), emu_double_bits(0.25), 0, emu_double_bits(1.75) },
        { EMU_AMO_FPADD, emu_double_bits(9007199254740992.0), emu_double_bits(1.0), 0,
          emu_double_bits(9007199254740992.0) }, /* to even */
        { EMU_AMO_FPADD, emu_double_bits(INFINITY), emu_double_bits(-1.0), 0, emu_double_bits(INFINITY) },
        { EMU_AMO_FPMIN, emu_double_bits(1.5), emu_double_bits(-2.5), 0, emu_double_bits(-2.5) },
        { EMU_AMO_FPMIN, emu_double_bits(-INFINITY), emu_double_bits(3.0), 0, emu_double_bits(-INFINITY) },
        { EMU_AMO_FPMIN, emu_double_bits(NAN), emu_double_bits(3.0), 0, emu_double_bits(3.0) },
        { EMU_AMO_FPMIN, emu_double_bits(3.0), emu_double_bits(NAN), 0, emu_double_bits(3.0) },
        { EMU_AMO_FPMAX, emu_double_bits(1.5), emu_double_bits(-2.5), 0, emu_double_bits(1.5) },
        { EMU_AMO_FPMAX, emu_double_bits(NAN), emu_double_bits(3.0), 0, emu_double_bits(3.0) },
        { EMU_AMO_FPMAX, emu_double_bits(-1e300), emu_double_bits(1e-300), 0, emu_double_bits(1e-300) },
    };

    (void)state;
    check(samples, COUNT_OF(samples), 0);
}

static void test_32_bit_floating_point_operations(void **state)
{
    const struct sample samples[] = {
        { EMU_AMO_FPADD, emu_float_bits(1.5f), emu_float_bits(0.25f), 0, emu_float_bits(1.75f) },
        { EMU_AMO_FPADD, emu_float_bits(16777216.0f), emu_float_bits(1.0f), 0, emu_float_bits(16777216.0f) },
        { EMU_AMO_FPMIN, emu_float_bits(1.5f), emu_float_bits(-2.5f), 0, emu_float_bits(-2.5f) },
        { EMU_AMO_FPMIN, emu_float_bits(NAN), emu_float_bits(3.0f), 0, emu_float_bits(3.0f) },
        { EMU_AMO_FPMAX, emu_float_bits(1.5f), emu_float_bits(-2.5f), 0, emu_float_bits(1.5f) },
        { EMU_AMO_FPMAX, emu_float_bits(3.0f), emu_float_bits(NAN), 0, emu_float_bits(3.0f) },
    };

    (void)state;
    check(samples, COUNT_OF(samples), EMU_AMO_32BIT);
}

static void test_32_bit_operations_see_low_halves_only(void **state)
{
    struct emu_random random = seeded(21);

    (void)state;
    for (unsigned i = 0; i < 20000; i++) {
        uint64_t old = emu_random_next(&random);
        uint64_t high = emu_random_next(&random) << 32;
        struct emu_amo amo = { .op = (uint8_t)(EMU_AMO_ADD + i % (EMU_AMO_OP_END - 1)),
                               .flags = EMU_AMO_32BIT,
                               .operand1 = emu_random_next(&random),
                               .operand2 = emu_random_next(&random) };
        uint64_t expected = emu_amo_apply(&amo, old);

        assert_int_equal(expected >> 32, 0);
        amo.operand1 ^= high;
        amo.operand2 ^= high;
        assert_int_equal(emu_amo_apply(&amo, old ^ high), expected);
    }
}

static void test_flags_for_other_layers_do_not_change_the_value(void **state)
{
    (void)state;
    for (uint8_t op = EMU_AMO_ADD; op < EMU_AMO_OP_END; op++) {
        struct emu_amo amo = { .op = op, .operand1 = emu_double_bits(2.0), .operand2 = 5 };
        uint64_t expected = emu_amo_apply(&amo, emu_double_bits(3.0));

        amo.flags = EMU_AMO_FETCH | EMU_AMO_PAIRS;
        assert_int_equal(emu_amo_apply(&amo, emu_double_bits(3.0)), expected);
    }
}

/* ---- on a word in memory ---- */

static void test_shared_word_gets_the_pure_value_and_gives_back_the_old(void **state)
{
    struct emu_random random = seeded(22);
    _Alignas(8) uint64_t words[3];

    (void)state;
    for (unsigned i = 0; i < 20000; i++) {
        struct emu_amo amo = { .op = (uint8_t)(EMU_AMO_ADD + i % (EMU_AMO_OP_END - 1)),
                               .operand1 = emu_random_next(&random),
                               .operand2 = emu_random_next(&random) };
        uint64_t old = emu_random_next(&random);

        words[0] = words[2] = 0x5a5a5a5a5a5a5a5a;
        words[1] = old;
        if (i % 4 == 0)
            amo.operand1 = old; /* so that compare and swap sometimes swaps */
        assert_int_equal(emu_amo_apply_shared(&amo, &words[1]), old);
        assert_int_equal(words[1], emu_amo_apply(&amo, old));
        assert_int_equal(words[0], 0x5a5a5a5a5a5a5a5a);
        assert_int_equal(words[2], 0x5a5a5a5a5a5a5a5a);
    }
}

static void test_shared_32_bit_word_leaves_its_neighbours_alone(void **state)
{
    struct emu_random random = seeded(23);
    _Alignas(8) uint32_t words[3];

    (void)state;
    for (unsigned i = 0; i < 20000; i++) {
        struct emu_amo amo = { .op = (uint8_t)(EMU_AMO_ADD + i % (EMU_AMO_OP_END - 1)),
                               .flags = EMU_AMO_32BIT,
                               .operand1 = emu_random_next(&random),
                               .operand2 = emu_random_next(&random) };
        uint32_t old = (uint32_t)emu_random_next(&random);

        words[0] = words[2] = 0x5a5a5a5a;
        words[1] = old;
        if (i % 4 == 0)
            amo.operand1 = old;
        assert_int_equal(emu_amo_apply_shared(&amo, &words[1]), old);
        assert_int_equal(words[1], emu_amo_apply(&amo, old));
        assert_int_equal(words[0], 0x5a5a5a5a);
        assert_int_equal(words[2], 0x5a5a5a5a);
    }
}

#define THREADS 3
#define ROUNDS  20000u

struct hammer {
    struct emu_amo amo;
    void *word;
};

static void *hit(void *arg)
{
    const struct hammer *hammer = arg;

    for (unsigned i = 0; i < ROUNDS; i++)
        emu_amo_apply_shared(&hammer->amo, hammer->word);
    return NULL;
}

static void hammer_on(void *word, struct emu_amo (*amo_of_thread)(unsigned thread))
{
    struct hammer hammers[THREADS];
    pthread_t threads[THREADS];

    for (unsigned i = 0; i < THREADS; i++) {
        hammers[i] = (struct hammer){ .amo = amo_of_thread(i), .word = word };
        assert_int_equal(pthread_create(&threads[i], NULL, hit, &hammers[i]), 0);
    }
    for (unsigned i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
}

static struct emu_amo add_one(unsigned thread)
{
    (void)thread;
    return (struct emu_amo){ .op = EMU_AMO_ADD, .operand1 = 1 };
}

static struct emu_amo add_one_32(unsigned thread)
{
    (void)thread;
    return (struct emu_amo){ .op = EMU_AMO_ADD, .flags = EMU_AMO_32BIT, .operand1 = 1 };
}

static struct emu_amo add_one_and_a_half(unsigned thread)
{
    (void)thread;
    return (struct emu_amo){ .op = EMU_AMO_FPADD, .operand1 = emu_double_bits(1.5) };
}

static struct emu_amo flip_own_bit(unsigned thread)
{
    return (struct emu_amo){ .op = EMU_AMO_XOR, .operand1 = 1ull << thread };
}

static void test_concurrent_adds_lose_nothing(void **state)
{
    _Alignas(8) uint64_t word = 0;
    _Alignas(8) uint32_t half[2] = { 0, 0x5a5a5a5a };

    (void)state;
    hammer_on(&word, add_one);
    assert_int_equal(word, THREADS * ROUNDS);
    hammer_on(half, add_one_32);
    assert_int_equal(half[0], THREADS * ROUNDS);
    assert_int_equal(half[1], 0x5a5a5a5a);
}

static void test_concurrent_loops_of_compare_and_swap_lose_nothing(void **state)
{
    _Alignas(8) uint64_t word = emu_double_bits(0.0);

    (void)state;
    hammer_on(&word, add_one_and_a_half);
    assert_int_equal(word, emu_double_bits(1.5 * THREADS * ROUNDS));
    word = 0;
    hammer_on(&word, flip_own_bit);
    assert_int_equal(word, 0); /* an even number of flips each */
}

/* ---- checks ---- */

static void test_only_the_listed_operations_are_valid(void **state)
{
    (void)state;
    for (unsigned op = 0; op < 256; op++) {
        struct emu_amo amo = { .op = (uint8_t)op };

        assert_int_equal(emu_amo_is_valid(&amo), op >= EMU_AMO_ADD && op <= EMU_AMO_FPADD);
    }
}

static void test_width_follows_the_flag(void **state)
{
    struct emu_amo amo = { .op = EMU_AMO_ADD };

    (void)state;
    assert_int_equal(emu_amo_word_bytes(&amo), 8);
    amo.flags = EMU_AMO_32BIT | EMU_AMO_FETCH;
    assert_int_equal(emu_amo_word_bytes(&amo), 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_64_bit_integer_operations),
        cmocka_unit_test(test_32_bit_integer_operations),
        cmocka_unit_test(test_64_bit_floating_point_operations),
        cmocka_unit_test(test_32_bit_floating_point_operations),
        cmocka_unit_test(test_32_bit_operations_see_low_halves_only),
        cmocka_unit_test(test_flags_for_other_layers_do_not_change_the_value),
        cmocka_unit_test(test_shared_word_gets_the_pure_value_and_gives_back_the_old),
        cmocka_unit_test(test_shared_32_bit_word_leaves_its_neighbours_alone),
        cmocka_unit_test(test_concurrent_adds_lose_nothing),
        cmocka_unit_test(test_concurrent_loops_of_compare_and_swap_lose_nothing),
        cmocka_unit_test(test_only_the_listed_operations_are_valid),
        cmocka_unit_test(test_width_follows_the_flag),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
