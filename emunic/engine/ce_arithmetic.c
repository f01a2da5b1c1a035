/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Arithmetic of the collective engine.
 *
 * Integers wrap; minimum and maximum of integers are signed. Additions of floating point round as the engine was told
 * and report invalid, overflow and inexact; a sum of two IEEE numbers that is small enough to underflow is exact, so
 * underflow can only come from a leaf that says so. A NaN sum is always the one quiet NaN, so that it does not depend
 * on which operand came first.
 *
 * Minimum and maximum follow IEEE 754-2008 minNum and maxNum: a number beats a NaN; a signalling NaN raises invalid and
 * is otherwise a NaN like others. -0 and +0 are equal. Equal values are decided by the index, unsigned and as wide as
 * the operands; with equal indices too the smaller bit pattern stays, so that the order of the children never matters.
 *
 * An engine adds in the order of child ids, so floating-point sums do not depend on who was late.
 * Source: spec/ugni.md 2.16, 4.12; NaN, index width and signedness are our reading (7.20).
 */
#include "emunic/engine/ce_arithmetic.h"

#include <fenv.h>
#include <math.h>
#include <string.h>

#include "emunic/abi/event.h"
#include "emunic/engine/bits.h"

#define QUIET_NAN_64 0x7ff8000000000000ull
#define QUIET_NAN_32 0x7fc00000ull
#define QUIET_BIT_64 (1ull << 51)
#define QUIET_BIT_32 (1ull << 22)

static bool is_32bit(const struct emu_ce_value *v)
{
    return (v->flags & EMU_CE_32BIT) != 0;
}

static bool has_index(const struct emu_ce_value *v)
{
    return v->op >= EMU_CE_IMIN;
}

/* From the bits: comparing or converting a signalling NaN would raise an exception here. */
static bool is_nan(uint64_t bits, bool is_narrow)
{
    return is_narrow ? (bits & 0x7fffffffull) > 0x7f800000ull : (bits & INT64_MAX) > 0x7ff0000000000000ull;
}

static bool is_signalling(uint64_t bits, bool is_narrow)
{
    return is_nan(bits, is_narrow) && (bits & (is_narrow ? QUIET_BIT_32 : QUIET_BIT_64)) == 0;
}

/* ---- contributions ---- */

bool emu_ce_is_valid(const struct emu_ce_value *v)
{
    if (v->op < EMU_CE_AND || v->op >= EMU_CE_OP_END || (v->flags & ~EMU_CE_FLAG_MASK) != 0 ||
        (v->fpe & ~EMU_CE_FPE_MASK) != 0)
        return false;
    return has_index(v) || (v->flags & EMU_CE_GREATEST) == 0;
}

void emu_ce_start(struct emu_ce_value *v)
{
    if (has_index(v))
        v->flags &= (uint8_t)~EMU_CE_TWO_OP; /* they take two operands anyway */
    else if ((v->flags & EMU_CE_TWO_OP) == 0)
        v->operand2 = 0;
    if (is_32bit(v)) {
        v->operand1 = (uint32_t)v->operand1;
        v->operand2 = (uint32_t)v->operand2;
    }
    if ((v->op == EMU_CE_FPMIN || v->op == EMU_CE_FPMAX) && is_nan(v->operand1, is_32bit(v))) {
        if (is_signalling(v->operand1, is_32bit(v)))
            v->fpe |= EMU_CE_FPE_INVALID;
        v->operand1 = is_32bit(v) ? QUIET_NAN_32 : QUIET_NAN_64;
    }
}

/* ---- sums ---- */

static int fenv_rounding(enum emu_ce_rounding rounding)
{
    switch (rounding) {
    case EMU_CE_ROUND_UP:
        return FE_UPWARD;
    case EMU_CE_ROUND_DOWN:
        return FE_DOWNWARD;
    case EMU_CE_ROUND_ZERO:
        return FE_TOWARDZERO;
    default:
        return FE_TONEAREST;
    }
}

static uint8_t exceptions(void)
{
    int raised = fetestexcept(FE_INVALID | FE_OVERFLOW | FE_UNDERFLOW | FE_INEXACT);

    return (uint8_t)(((raised & FE_INVALID) ? EMU_CE_FPE_INVALID : 0) |
                     ((raised & FE_OVERFLOW) ? EMU_CE_FPE_OVERFLOW : 0) |
                     ((raised & FE_UNDERFLOW) ? EMU_CE_FPE_UNDERFLOW : 0) |
                     ((raised & FE_INEXACT) ? EMU_CE_FPE_INEXACT : 0));
}

/* The volatiles keep the additions between the calls that set the mode and read the exceptions. */
static uint64_t add_float(uint64_t a, uint64_t b, bool is_narrow)
{
    if (is_narrow) {
        volatile float x = emu_as_float(a);
        volatile float y = emu_as_float(b);
        volatile float sum = x + y;

        return emu_float_bits(sum);
    } else {
        volatile double x = emu_as_double(a);
        volatile double y = emu_as_double(b);
        volatile double sum = x + y;

        return emu_double_bits(sum);
    }
}

static uint64_t rounded_sum(struct emu_ce_value *sum, uint64_t a, uint64_t b, enum emu_ce_rounding rounding)
{
    bool is_narrow = is_32bit(sum);
    uint64_t bits;
    fenv_t before;

    feholdexcept(&before);
    fesetround(fenv_rounding(rounding));
    bits = add_float(a, b, is_narrow);
    sum->fpe |= exceptions();
    fesetenv(&before);
    if (is_nan(bits, is_narrow))
        bits = is_narrow ? QUIET_NAN_32 : QUIET_NAN_64;
    return bits;
}

static uint64_t joined(struct emu_ce_value *sum, uint64_t a, uint64_t b, enum emu_ce_rounding rounding)
{
    switch (sum->op) {
    case EMU_CE_AND:
        return a & b;
    case EMU_CE_OR:
        return a | b;
    case EMU_CE_XOR:
        return a ^ b;
    case EMU_CE_IADD:
        return is_32bit(sum) ? (uint32_t)(a + b) : a + b;
    default:
        return rounded_sum(sum, a, b, rounding);
    }
}

/* ---- minimum and maximum ---- */

static int order_of_floats(uint64_t a, uint64_t b, bool is_narrow)
{
    double x = is_narrow ? (double)emu_as_float(a) : emu_as_double(a);
    double y = is_narrow ? (double)emu_as_float(b) : emu_as_double(b);

    return (x > y) - (x < y);
}

static int order_of_integers(uint64_t a, uint64_t b, bool is_narrow)
{
    int64_t x = is_narrow ? (int32_t)a : (int64_t)a;
    int64_t y = is_narrow ? (int32_t)b : (int64_t)b;

    return (x > y) - (x < y);
}

/* Does the value of `v` win over that of `best`? 1 yes, -1 no, 0 they are equal. */
static int win_by_value(const struct emu_ce_value *best, const struct emu_ce_value *v)
{
    bool is_narrow = is_32bit(best);
    int order;

    if (best->op == EMU_CE_IMIN || best->op == EMU_CE_IMAX) {
        order = order_of_integers(v->operand1, best->operand1, is_narrow);
    } else {
        bool best_is_nan = is_nan(best->operand1, is_narrow);
        bool v_is_nan = is_nan(v->operand1, is_narrow);

        if (best_is_nan || v_is_nan)
            return best_is_nan - v_is_nan;
        order = order_of_floats(v->operand1, best->operand1, is_narrow);
    }
    return best->op == EMU_CE_IMIN || best->op == EMU_CE_FPMIN ? -order : order;
}

static bool wins(const struct emu_ce_value *best, const struct emu_ce_value *v)
{
    int by_value = win_by_value(best, v);

    if (by_value != 0)
        return by_value > 0;
    if (v->operand2 != best->operand2)
        return (best->flags & EMU_CE_GREATEST) ? v->operand2 > best->operand2 : v->operand2 < best->operand2;
    return v->operand1 < best->operand1;
}

void emu_ce_combine(struct emu_ce_value *sum, const struct emu_ce_value *v, enum emu_ce_rounding rounding)
{
    if (sum->status == EMU_STATUS_OK)
        sum->status = v->status;
    if (sum->status == EMU_STATUS_OK && (sum->op != v->op || sum->flags != v->flags || sum->red_id != v->red_id))
        sum->status = EMU_STATUS_MISMATCH;
    if (sum->status != EMU_STATUS_OK)
        return;
    sum->fpe |= v->fpe;
    if (has_index(sum)) {
        if (wins(sum, v)) {
            sum->operand1 = v->operand1;
            sum->operand2 = v->operand2;
        }
        return;
    }
    sum->operand1 = joined(sum, sum->operand1, v->operand1, rounding);
    if (sum->flags & EMU_CE_TWO_OP)
        sum->operand2 = joined(sum, sum->operand2, v->operand2, rounding);
}
