/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Atomic operations: the arithmetic, once for a value and once for a word in shared memory.
 *
 * Integer arithmetic wraps; minimum and maximum of integers are signed; floating point follows IEEE 754 minNum and
 * maxNum and rounds to nearest even. On a shared word every operation is one compare-and-swap loop except those that
 * the processor has as one instruction. Source: spec/ugni.md 2.15 and 7.20.
 */
#include "emunic/engine/amo_arithmetic.h"

#include <math.h>
#include <stdatomic.h>
#include <string.h>

#include "emunic/engine/bits.h"

static uint64_t apply_float(unsigned op, float m, float a)
{
    switch (op) {
    case EMU_AMO_FPMIN:
        return emu_float_bits(fminf(m, a));
    case EMU_AMO_FPMAX:
        return emu_float_bits(fmaxf(m, a));
    default:
        return emu_float_bits(m + a);
    }
}

static uint64_t apply_double(unsigned op, double m, double a)
{
    switch (op) {
    case EMU_AMO_FPMIN:
        return emu_double_bits(fmin(m, a));
    case EMU_AMO_FPMAX:
        return emu_double_bits(fmax(m, a));
    default:
        return emu_double_bits(m + a);
    }
}

/* Operands of either width, sign-extended to 64 bits; the caller cuts the result. */
static uint64_t apply_integer(unsigned op, int64_t m, int64_t a, int64_t b)
{
    switch (op) {
    case EMU_AMO_ADD:
        return (uint64_t)m + (uint64_t)a;
    case EMU_AMO_AND:
        return (uint64_t)(m & a);
    case EMU_AMO_OR:
        return (uint64_t)(m | a);
    case EMU_AMO_XOR:
        return (uint64_t)(m ^ a);
    case EMU_AMO_SWAP:
        return (uint64_t)a;
    case EMU_AMO_AX:
        return (uint64_t)((m & a) ^ b);
    case EMU_AMO_CSWAP:
        return (uint64_t)(m == a ? b : m);
    case EMU_AMO_IMIN:
        return (uint64_t)(a < m ? a : m);
    case EMU_AMO_IMAX:
        return (uint64_t)(a > m ? a : m);
    default:
        return (uint64_t)m;
    }
}

uint64_t emu_amo_apply(const struct emu_amo *amo, uint64_t old)
{
    bool is_32bit = (amo->flags & EMU_AMO_32BIT) != 0;

    if (amo->op >= EMU_AMO_FPMIN)
        return is_32bit ? apply_float(amo->op, emu_as_float(old), emu_as_float(amo->operand1)) :
                          apply_double(amo->op, emu_as_double(old), emu_as_double(amo->operand1));
    if (!is_32bit)
        return apply_integer(amo->op, (int64_t)old, (int64_t)amo->operand1, (int64_t)amo->operand2);
    return (uint32_t)apply_integer(amo->op, (int32_t)old, (int32_t)amo->operand1, (int32_t)amo->operand2);
}

static uint64_t apply_shared32(const struct emu_amo *amo, _Atomic uint32_t *word)
{
    uint32_t old;

    switch (amo->op) {
    case EMU_AMO_ADD:
        return atomic_fetch_add(word, (uint32_t)amo->operand1);
    case EMU_AMO_SWAP:
        return atomic_exchange(word, (uint32_t)amo->operand1);
    default:
        old = atomic_load(word);
        while (!atomic_compare_exchange_weak(word, &old, (uint32_t)emu_amo_apply(amo, old)))
            ;
        return old;
    }
}

static uint64_t apply_shared64(const struct emu_amo *amo, _Atomic uint64_t *word)
{
    uint64_t old;

    switch (amo->op) {
    case EMU_AMO_ADD:
        return atomic_fetch_add(word, amo->operand1);
    case EMU_AMO_SWAP:
        return atomic_exchange(word, amo->operand1);
    default:
        old = atomic_load(word);
        while (!atomic_compare_exchange_weak(word, &old, emu_amo_apply(amo, old)))
            ;
        return old;
    }
}

uint64_t emu_amo_apply_shared(const struct emu_amo *amo, void *word)
{
    return (amo->flags & EMU_AMO_32BIT) ? apply_shared32(amo, word) : apply_shared64(amo, word);
}
