/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Arithmetic of reductions: all operations in both widths against a reference that works another way (floating-point
 * sums from the exact error of the rounded sum instead of the processor's modes; minima by sorting), special values
 * from tables, and that the shape of a tree and the order of its leaves do not matter where they must not.
 */
#include "emunic/engine/ce_arithmetic.h"

#include <fenv.h>
#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "emunic/abi/event.h"
#include "emunic/engine/bits.h"
#include "tests/common/seed.h"

#define COUNT_OF(a) (sizeof(a) / sizeof((a)[0]))
#define NAN64       0x7ff8000000000000ull
#define NAN32       0x7fc00000ull
#define SNAN64      0x7ff0000000000001ull
#define SNAN32      0x7f800001ull

static struct emu_random random_numbers;

static double double_of(uint64_t bits)
{
    double value;

    memcpy(&value, &bits, sizeof(value));
    return value;
}

static float float_of(uint64_t bits)
{
    uint32_t low = (uint32_t)bits;
    float value;

    memcpy(&value, &low, sizeof(value));
    return value;
}

static struct emu_ce_value leaf(uint8_t op, uint8_t flags, uint64_t first, uint64_t second)
{
    struct emu_ce_value v = { .op = op, .flags = flags, .operand1 = first, .operand2 = second, .red_id = 9 };

    assert_true(emu_ce_is_valid(&v));
    emu_ce_start(&v);
    return v;
}

static struct emu_ce_value pair_of(uint8_t op, uint8_t flags, uint64_t a, uint64_t b, enum emu_ce_rounding rounding)
{
    struct emu_ce_value sum = leaf(op, flags, a, 0);
    struct emu_ce_value v = leaf(op, flags, b, 0);

    emu_ce_combine(&sum, &v, rounding);
    assert_int_equal(sum.status, EMU_STATUS_OK);
    return sum;
}

/* ---- integers ---- */

static uint64_t reference_integer(uint8_t op, uint64_t a, uint64_t b)
{
    uint64_t result = 0;
    unsigned carry = 0;

    /* Bit by bit, so that it shares nothing with the processor's operations. */
    for (unsigned i = 0; i < 64; i++) {
        unsigned x = a >> i & 1;
        unsigned y = b >> i & 1;
        unsigned bit = op == EMU_CE_AND ? x * y : op == EMU_CE_OR ? x + y > 0 : (x + y) % 2;

        if (op == EMU_CE_IADD) {
            bit = (x + y + carry) % 2;
            carry = x + y + carry > 1;
        }
        result |= (uint64_t)bit << i;
    }
    return result;
}

static void test_logic_and_integer_sums_are_those_of_the_reference(void **state)
{
    static const uint8_t ops[] = { EMU_CE_AND, EMU_CE_OR, EMU_CE_XOR, EMU_CE_IADD };

    (void)state;
    for (unsigned n = 0; n < 4000; n++) {
        uint8_t op = ops[n % COUNT_OF(ops)];
        uint64_t a = emu_random_next(&random_numbers) >> emu_random_below(&random_numbers, 64);
        uint64_t b = emu_random_next(&random_numbers) << emu_random_below(&random_numbers, 64);

        assert_true(pair_of(op, 0, a, b, EMU_CE_ROUND_NEAR).operand1 == reference_integer(op, a, b));
        assert_true(pair_of(op, EMU_CE_32BIT, a, b, EMU_CE_ROUND_NEAR).operand1 ==
                    (uint32_t)reference_integer(op, a, b));
    }
}

static void test_sums_of_integers_wrap_without_an_exception(void **state)
{
    struct emu_ce_value sum = pair_of(EMU_CE_IADD, 0, UINT64_MAX, 2, EMU_CE_ROUND_NEAR);

    (void)state;
    assert_true(sum.operand1 == 1 && sum.fpe == 0);
    sum = pair_of(EMU_CE_IADD, EMU_CE_32BIT, 0xffffffff, 2, EMU_CE_ROUND_NEAR);
    assert_true(sum.operand1 == 1 && sum.fpe == 0);
}

static void test_second_operand_counts_with_two_op_only(void **state)
{
    struct emu_ce_value sum = leaf(EMU_CE_IADD, 0, 1, 10);
    struct emu_ce_value v = leaf(EMU_CE_IADD, 0, 2, 20);

    (void)state;
    emu_ce_combine(&sum, &v, EMU_CE_ROUND_NEAR);
    assert_true(sum.operand1 == 3 && sum.operand2 == 0);
    sum = leaf(EMU_CE_IADD, EMU_CE_TWO_OP, 1, 10);
    v = leaf(EMU_CE_IADD, EMU_CE_TWO_OP, 2, 20);
    emu_ce_combine(&sum, &v, EMU_CE_ROUND_NEAR);
    assert_true(sum.operand1 == 3 && sum.operand2 == 30);
    sum = leaf(EMU_CE_FPADD, EMU_CE_TWO_OP, emu_double_bits(1), emu_double_bits(0.5));
    v = leaf(EMU_CE_FPADD, EMU_CE_TWO_OP, emu_double_bits(2), emu_double_bits(0.25));
    emu_ce_combine(&sum, &v, EMU_CE_ROUND_NEAR);
    assert_true(sum.operand1 == emu_double_bits(3) && sum.operand2 == emu_double_bits(0.75));
}

static void test_upper_halves_of_short_operands_do_not_count(void **state)
{
    struct emu_ce_value best = leaf(EMU_CE_IMIN, EMU_CE_32BIT, 0xdead000000000005, 0xdead000000000001);
    struct emu_ce_value v = leaf(EMU_CE_IMIN, EMU_CE_32BIT, 0x00000000fffffff9, 7);

    (void)state;
    emu_ce_combine(&best, &v, EMU_CE_ROUND_NEAR);
    assert_true(best.operand1 == 0xfffffff9 && best.operand2 == 7); /* -7 */
    v = leaf(EMU_CE_IMIN, EMU_CE_32BIT, 0xfffffff9, 0xbeef000000000003);
    emu_ce_combine(&best, &v, EMU_CE_ROUND_NEAR);
    assert_true(best.operand2 == 3);
}

/* ---- minimum and maximum ---- */

struct candidate {
    long double value;
    bool is_nan;
    uint64_t bits;
    uint64_t index;
};

static bool sort_is_max;
static bool sort_is_greatest;

/* Best first. */
static int compare_candidates(const void *left, const void *right)
{
    const struct candidate *a = left;
    const struct candidate *b = right;

    if (a->is_nan != b->is_nan)
        return a->is_nan ? 1 : -1;
    if (!a->is_nan && a->value != b->value)
        return (a->value < b->value) == sort_is_max ? 1 : -1;
    if (a->index != b->index)
        return (a->index < b->index) == sort_is_greatest ? 1 : -1;
    return a->bits < b->bits ? -1 : a->bits > b->bits;
}

static struct candidate candidate_of(uint8_t op, bool is_narrow, uint64_t bits, uint64_t index)
{
    struct candidate c = { .bits = bits, .index = index };

    if (op == EMU_CE_IMIN || op == EMU_CE_IMAX) {
        c.value = is_narrow ? (long double)(int32_t)bits : (long double)(int64_t)bits;
    } else {
        double value = is_narrow ? (double)float_of(bits) : double_of(bits);

        c.is_nan = isnan(value);
        c.value = c.is_nan ? 0 : value;
        if (c.is_nan)
            c.bits = is_narrow ? NAN32 : NAN64;
    }
    return c;
}

/* Few different values and indices, so that there are ties. */
static uint64_t some_value(uint8_t op, bool is_narrow)
{
    static const double numbers[] = { 0.0, -0.0, 1.5, -1.5, INFINITY, -INFINITY, 1e-310, DBL_MAX };
    uint64_t n = emu_random_below(&random_numbers, 10);

    if (op == EMU_CE_IMIN || op == EMU_CE_IMAX)
        return n == 0 ? (is_narrow ? 0x80000000u : 1ull << 63) :
               n == 1 ? (uint64_t)(is_narrow ? INT32_MAX : INT64_MAX) :
               n < 6  ? n - 4 :
                        emu_random_next(&random_numbers);
    if (n >= COUNT_OF(numbers))
        return is_narrow ? NAN32 + (n == 8) : NAN64 + (n == 8);
    return is_narrow ? emu_float_bits((float)numbers[n]) : emu_double_bits(numbers[n]);
}

static void check_extremes(uint8_t op, uint8_t flags)
{
    bool is_narrow = (flags & EMU_CE_32BIT) != 0;
    struct candidate candidates[12];
    struct emu_ce_value leaves[12];
    struct emu_ce_value left;
    struct emu_ce_value right;
    size_t n = 2 + emu_random_below(&random_numbers, 11);
    size_t cut = 1 + emu_random_below(&random_numbers, n - 1);

    for (size_t i = 0; i < n; i++) {
        uint64_t bits = some_value(op, is_narrow);
        uint64_t index = emu_random_below(&random_numbers, 4);

        if (emu_random_below(&random_numbers, 8) == 0)
            index += 0xfffffffcu;
        leaves[i] = leaf(op, flags, bits, index);
        candidates[i] = candidate_of(op, is_narrow, is_narrow ? (uint32_t)bits : bits, index);
    }
    /* A tree of two halves, the right one taken backwards. */
    left = leaves[0];
    for (size_t i = 1; i < cut; i++)
        emu_ce_combine(&left, &leaves[i], EMU_CE_ROUND_NEAR);
    right = leaves[n - 1];
    for (size_t i = n - 1; i-- > cut;)
        emu_ce_combine(&right, &leaves[i], EMU_CE_ROUND_NEAR);
    emu_ce_combine(&right, &left, EMU_CE_ROUND_NEAR);
    sort_is_max = op == EMU_CE_IMAX || op == EMU_CE_FPMAX;
    sort_is_greatest = (flags & EMU_CE_GREATEST) != 0;
    qsort(candidates, n, sizeof(candidates[0]), compare_candidates);
    if (right.operand1 != candidates[0].bits || right.operand2 != candidates[0].index)
        fail_msg("op %u flags %u: 0x%llx index %llu, not 0x%llx index %llu", op, flags,
                 (unsigned long long)right.operand1, (unsigned long long)right.operand2,
                 (unsigned long long)candidates[0].bits, (unsigned long long)candidates[0].index);
}

static void test_extremes_and_their_indices_are_those_of_sorting(void **state)
{
    (void)state;
    for (unsigned n = 0; n < 8000; n++)
        check_extremes((uint8_t)(EMU_CE_IMIN + n % 4),
                       (uint8_t)((n / 4 % 2 ? EMU_CE_32BIT : 0) | (n / 8 % 2 ? EMU_CE_GREATEST : 0)));
}

static void test_signalling_nan_in_an_extreme_is_invalid_and_loses(void **state)
{
    (void)state;
    for (unsigned is_narrow = 0; is_narrow < 2; is_narrow++) {
        uint8_t flags = is_narrow ? EMU_CE_32BIT : 0;
        uint64_t one = is_narrow ? emu_float_bits(1) : emu_double_bits(1);
        struct emu_ce_value best = leaf(EMU_CE_FPMAX, flags, is_narrow ? SNAN32 : SNAN64, 1);
        struct emu_ce_value v = leaf(EMU_CE_FPMAX, flags, one, 2);

        emu_ce_combine(&best, &v, EMU_CE_ROUND_NEAR);
        assert_true(best.operand1 == one && best.operand2 == 2);
        assert_int_equal(best.fpe, EMU_CE_FPE_INVALID);
        best = leaf(EMU_CE_FPMAX, flags, is_narrow ? NAN32 : NAN64, 1);
        emu_ce_combine(&best, &v, EMU_CE_ROUND_NEAR);
        assert_true(best.operand1 == one && best.fpe == 0);
    }
}

/* ---- sums of floating point ---- */

struct rounded {
    uint64_t bits;
    uint8_t fpe;
};

/* The sum in the wanted direction from the nearest one and its exact error (Knuth's TwoSum). */
static struct rounded reference_double(double a, double b, enum emu_ce_rounding rounding)
{
    volatile double sum = a + b;
    volatile double b_part = sum - a;
    volatile double a_part = sum - b_part;
    volatile double error = (a - a_part) + (b - b_part);
    double result = sum;

    if (error == 0)
        return (struct rounded){ emu_double_bits(sum == 0 && a == -b && rounding == EMU_CE_ROUND_DOWN &&
                                                         emu_double_bits(a) != emu_double_bits(b) ?
                                                     -0.0 :
                                                     sum),
                                 0 };
    if (rounding == EMU_CE_ROUND_UP && error > 0)
        result = nextafter(sum, INFINITY);
    if (rounding == EMU_CE_ROUND_DOWN && error < 0)
        result = nextafter(sum, -INFINITY);
    if (rounding == EMU_CE_ROUND_ZERO && (error < 0) == (sum > 0))
        result = nextafter(sum, 0);
    return (struct rounded){ emu_double_bits(result), EMU_CE_FPE_INEXACT };
}

static struct rounded reference_float(float a, float b, enum emu_ce_rounding rounding)
{
    volatile float sum = a + b;
    volatile float b_part = sum - a;
    volatile float a_part = sum - b_part;
    volatile float error = (a - a_part) + (b - b_part);
    float result = sum;

    if (error == 0)
        return (struct rounded){ emu_float_bits(sum == 0 && a == -b && rounding == EMU_CE_ROUND_DOWN &&
                                                        emu_float_bits(a) != emu_float_bits(b) ?
                                                    -0.0f :
                                                    sum),
                                 0 };
    if (rounding == EMU_CE_ROUND_UP && error > 0)
        result = nextafterf(sum, INFINITY);
    if (rounding == EMU_CE_ROUND_DOWN && error < 0)
        result = nextafterf(sum, -INFINITY);
    if (rounding == EMU_CE_ROUND_ZERO && (error < 0) == (sum > 0))
        result = nextafterf(sum, 0);
    return (struct rounded){ emu_float_bits(result), EMU_CE_FPE_INEXACT };
}

/* Exponents near each other and far from the ends, small ones included now and then. */
static double some_double(void)
{
    double fraction = (double)(int64_t)emu_random_next(&random_numbers);
    int exponent = (int)emu_random_below(&random_numbers, 120) - 120;

    if (emu_random_below(&random_numbers, 8) == 0)
        exponent = -1074 + (int)emu_random_below(&random_numbers, 20) - 60;
    return ldexp(fraction, exponent);
}

static float some_float(void)
{
    float fraction = (float)(int32_t)emu_random_next(&random_numbers);
    int exponent = (int)emu_random_below(&random_numbers, 60) - 60;

    if (emu_random_below(&random_numbers, 8) == 0)
        exponent = -149 + (int)emu_random_below(&random_numbers, 20) - 30;
    return ldexpf(fraction, exponent);
}

static void test_sums_round_as_told_and_say_when_they_are_inexact(void **state)
{
    unsigned n_inexact = 0;

    (void)state;
    for (unsigned n = 0; n < 40000; n++) {
        enum emu_ce_rounding rounding = (enum emu_ce_rounding)(n % EMU_CE_ROUND_END);
        double a = some_double();
        double b = some_double();
        float c = some_float();
        float d = some_float();
        struct rounded expected = reference_double(a, b, rounding);
        struct emu_ce_value sum = pair_of(EMU_CE_FPADD, 0, emu_double_bits(a), emu_double_bits(b), rounding);

        if (sum.operand1 != expected.bits || sum.fpe != expected.fpe)
            fail_msg("%a + %a rounding %u: %a fpe %u, not %a fpe %u", a, b, rounding, double_of(sum.operand1), sum.fpe,
                     double_of(expected.bits), expected.fpe);
        n_inexact += expected.fpe != 0;
        expected = reference_float(c, d, rounding);
        sum = pair_of(EMU_CE_FPADD, EMU_CE_32BIT, emu_float_bits(c), emu_float_bits(d), rounding);
        if (sum.operand1 != expected.bits || sum.fpe != expected.fpe)
            fail_msg("%a + %a (float) rounding %u: %a fpe %u, not %a fpe %u", (double)c, (double)d, rounding,
                     (double)float_of(sum.operand1), sum.fpe, (double)float_of(expected.bits), expected.fpe);
    }
    assert_true(n_inexact > 1000 && n_inexact < 39000);
}

static void test_sums_of_special_values(void **state)
{
    static const uint64_t inf = 0x7ff0000000000000, neg_inf = 0xfff0000000000000, max = 0x7fefffffffffffff;
    static const uint64_t neg_max = 0xffefffffffffffff;
    const uint8_t over = EMU_CE_FPE_OVERFLOW | EMU_CE_FPE_INEXACT;
    const struct {
        uint64_t a, b;
        enum emu_ce_rounding rounding;
        uint64_t sum;
        uint8_t fpe;
    } samples[] = {
        { inf, emu_double_bits(1), EMU_CE_ROUND_NEAR, inf, 0 },
        { inf, inf, EMU_CE_ROUND_NEAR, inf, 0 },
        { inf, neg_inf, EMU_CE_ROUND_NEAR, NAN64, EMU_CE_FPE_INVALID },
        { neg_inf, inf, EMU_CE_ROUND_NEAR, NAN64, EMU_CE_FPE_INVALID },
        { NAN64 + 5, emu_double_bits(1), EMU_CE_ROUND_NEAR, NAN64, 0 },
        { emu_double_bits(1), NAN64 | 1ull << 63, EMU_CE_ROUND_NEAR, NAN64, 0 },
        { SNAN64, emu_double_bits(1), EMU_CE_ROUND_NEAR, NAN64, EMU_CE_FPE_INVALID },
        { max, max, EMU_CE_ROUND_NEAR, inf, over },
        { max, max, EMU_CE_ROUND_UP, inf, over },
        { max, max, EMU_CE_ROUND_DOWN, max, over },
        { max, max, EMU_CE_ROUND_ZERO, max, over },
        { neg_max, neg_max, EMU_CE_ROUND_NEAR, neg_inf, over },
        { neg_max, neg_max, EMU_CE_ROUND_UP, neg_max, over },
        { neg_max, neg_max, EMU_CE_ROUND_DOWN, neg_inf, over },
        { neg_max, neg_max, EMU_CE_ROUND_ZERO, neg_max, over },
        { emu_double_bits(1), emu_double_bits(-1), EMU_CE_ROUND_NEAR, emu_double_bits(0), 0 },
        { emu_double_bits(1), emu_double_bits(-1), EMU_CE_ROUND_DOWN, emu_double_bits(-0.0), 0 },
        { emu_double_bits(-0.0), emu_double_bits(-0.0), EMU_CE_ROUND_NEAR, emu_double_bits(-0.0), 0 },
        { 1, 1, EMU_CE_ROUND_NEAR, 2, 0 }, /* denormal and exact */
    };

    (void)state;
    for (size_t i = 0; i < COUNT_OF(samples); i++) {
        struct emu_ce_value sum = pair_of(EMU_CE_FPADD, 0, samples[i].a, samples[i].b, samples[i].rounding);

        if (sum.operand1 != samples[i].sum || sum.fpe != samples[i].fpe)
            fail_msg("sample %zu: 0x%llx fpe %u", i, (unsigned long long)sum.operand1, sum.fpe);
    }
    assert_true(pair_of(EMU_CE_FPADD, EMU_CE_32BIT, 0x7f7fffff, 0x7f7fffff, EMU_CE_ROUND_NEAR).operand1 == 0x7f800000);
    assert_true(pair_of(EMU_CE_FPADD, EMU_CE_32BIT, 0x7f7fffff, 0x7f7fffff, EMU_CE_ROUND_ZERO).operand1 == 0x7f7fffff);
    assert_true(pair_of(EMU_CE_FPADD, EMU_CE_32BIT, SNAN32, emu_float_bits(1), EMU_CE_ROUND_NEAR).operand1 == NAN32);
}

static void test_rounding_and_exceptions_of_the_caller_stay(void **state)
{
    (void)state;
    fesetround(FE_DOWNWARD);
    feclearexcept(FE_ALL_EXCEPT);
    feraiseexcept(FE_DIVBYZERO);
    pair_of(EMU_CE_FPADD, 0, emu_double_bits(0.1), emu_double_bits(0.2), EMU_CE_ROUND_UP);
    pair_of(EMU_CE_FPADD, 0, emu_double_bits(DBL_MAX), emu_double_bits(DBL_MAX), EMU_CE_ROUND_UP);
    pair_of(EMU_CE_FPMIN, 0, SNAN64, emu_double_bits(1), EMU_CE_ROUND_UP);
    assert_int_equal(fegetround(), FE_DOWNWARD);
    assert_int_equal(fetestexcept(FE_ALL_EXCEPT), FE_DIVBYZERO);
    fesetround(FE_TONEAREST);
    feclearexcept(FE_ALL_EXCEPT);
}

static void test_exceptions_of_contributions_stay_in_the_sum(void **state)
{
    struct emu_ce_value sum = leaf(EMU_CE_FPADD, 0, emu_double_bits(1), 0);
    struct emu_ce_value v = leaf(EMU_CE_FPADD, 0, emu_double_bits(2), 0);

    (void)state;
    sum.fpe = EMU_CE_FPE_UNDERFLOW;
    v.fpe = EMU_CE_FPE_OVERFLOW;
    emu_ce_combine(&sum, &v, EMU_CE_ROUND_NEAR);
    assert_int_equal(sum.fpe, EMU_CE_FPE_UNDERFLOW | EMU_CE_FPE_OVERFLOW);
    assert_true(sum.operand1 == emu_double_bits(3));
}

/* ---- what does not fit ---- */

static void test_values_that_disagree_fail_the_sum(void **state)
{
    const struct emu_ce_value first = leaf(EMU_CE_IADD, 0, 1, 0);
    struct emu_ce_value others[4] = { leaf(EMU_CE_XOR, 0, 1, 0), leaf(EMU_CE_IADD, EMU_CE_32BIT, 1, 0),
                                      leaf(EMU_CE_IADD, EMU_CE_TWO_OP, 1, 0), leaf(EMU_CE_IADD, 0, 1, 0) };

    (void)state;
    others[3].red_id = 10;
    for (size_t i = 0; i < COUNT_OF(others); i++) {
        struct emu_ce_value sum = first;

        emu_ce_combine(&sum, &others[i], EMU_CE_ROUND_NEAR);
        assert_int_equal(sum.status, EMU_STATUS_MISMATCH);
        assert_int_equal(sum.red_id, first.red_id);
        emu_ce_combine(&sum, &first, EMU_CE_ROUND_NEAR);
        assert_int_equal(sum.status, EMU_STATUS_MISMATCH);
    }
}

static void test_failed_part_fails_the_sum_with_its_status(void **state)
{
    struct emu_ce_value sum = leaf(EMU_CE_IADD, 0, 1, 0);
    struct emu_ce_value failed = { .status = EMU_STATUS_PEER_GONE, .red_id = 77 };
    struct emu_ce_value failed_too = { .status = EMU_STATUS_CANCELLED };

    (void)state;
    emu_ce_combine(&sum, &failed, EMU_CE_ROUND_NEAR);
    assert_int_equal(sum.status, EMU_STATUS_PEER_GONE);
    emu_ce_combine(&sum, &failed_too, EMU_CE_ROUND_NEAR);
    assert_int_equal(sum.status, EMU_STATUS_PEER_GONE);
}

static void test_nonsense_is_not_valid(void **state)
{
    (void)state;
    for (unsigned op = 0; op < 256; op++) {
        for (unsigned flags = 0; flags < 256; flags++) {
            struct emu_ce_value v = { .op = (uint8_t)op, .flags = (uint8_t)flags };
            bool has_index = op == EMU_CE_IMIN || op == EMU_CE_IMAX || op == EMU_CE_FPMIN || op == EMU_CE_FPMAX;
            bool is_known = op >= EMU_CE_AND && op <= EMU_CE_FPMAX;

            assert_int_equal(emu_ce_is_valid(&v), is_known && flags < 8 && (has_index || !(flags & EMU_CE_GREATEST)));
        }
    }
}

static void test_extremes_take_two_operands_with_and_without_two_op(void **state)
{
    struct emu_ce_value best = leaf(EMU_CE_IMAX, EMU_CE_TWO_OP, 4, 1);
    struct emu_ce_value v = leaf(EMU_CE_IMAX, 0, 5, 2);

    (void)state;
    emu_ce_combine(&best, &v, EMU_CE_ROUND_NEAR);
    assert_int_equal(best.status, EMU_STATUS_OK);
    assert_true(best.operand1 == 5 && best.operand2 == 2);
}

static void test_control_word_keeps_its_fields_apart(void **state)
{
    uint64_t control = emu_ce_control(0x7f, 0xf, UINT64_MAX);

    (void)state;
    assert_true(control == (1ull << 63 | 0x7full << 56 | 0xfull << 52 | ((1ull << 48) - 1)));
    assert_true(emu_ce_control(0, 0, 0) == 1ull << 63);
}

static int seed(void **state)
{
    (void)state;
    random_numbers = seeded(32);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_logic_and_integer_sums_are_those_of_the_reference),
        cmocka_unit_test(test_sums_of_integers_wrap_without_an_exception),
        cmocka_unit_test(test_second_operand_counts_with_two_op_only),
        cmocka_unit_test(test_upper_halves_of_short_operands_do_not_count),
        cmocka_unit_test(test_extremes_and_their_indices_are_those_of_sorting),
        cmocka_unit_test(test_signalling_nan_in_an_extreme_is_invalid_and_loses),
        cmocka_unit_test(test_sums_round_as_told_and_say_when_they_are_inexact),
        cmocka_unit_test(test_sums_of_special_values),
        cmocka_unit_test(test_rounding_and_exceptions_of_the_caller_stay),
        cmocka_unit_test(test_exceptions_of_contributions_stay_in_the_sum),
        cmocka_unit_test(test_values_that_disagree_fail_the_sum),
        cmocka_unit_test(test_failed_part_fails_the_sum_with_its_status),
        cmocka_unit_test(test_nonsense_is_not_valid),
        cmocka_unit_test(test_extremes_take_two_operands_with_and_without_two_op),
        cmocka_unit_test(test_control_word_keeps_its_fields_apart),
    };

    return cmocka_run_group_tests(tests, seed, NULL);
}
