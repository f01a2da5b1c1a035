/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef EMUNIC_ENGINE_AMO_ARITHMETIC_H
#define EMUNIC_ENGINE_AMO_ARITHMETIC_H

#include <stdbool.h>
#include <stdint.h>

#include "emunic/abi/amo.h"

/*
 * One atomic operation without its address. 32-bit operations use the low halves of the operands.
 */
struct emu_amo {
    uint8_t op;        /* enum emu_amo_op */
    uint8_t flags;     /* EMU_AMO_* */
    uint64_t operand1; /* a */
    uint64_t operand2; /* b */
};

/* New value of a word that holds `old`. Pure. For 32-bit operations the upper half of the result is 0. */
uint64_t emu_amo_apply(const struct emu_amo *amo, uint64_t old);

/*
 * Applies the operation to a word in memory with the processor's atomics and returns the old value.
 * `word` is aligned to its size. Any thread, any process that maps it.
 */
uint64_t emu_amo_apply_shared(const struct emu_amo *amo, void *word);

static inline bool emu_amo_is_valid(const struct emu_amo *amo)
{
    return amo->op >= EMU_AMO_ADD && amo->op < EMU_AMO_OP_END;
}

static inline uint32_t emu_amo_word_bytes(const struct emu_amo *amo)
{
    return (amo->flags & EMU_AMO_32BIT) ? 4 : 8;
}

/* What a request carries: two operations take two operands. */
static inline uint32_t emu_amo_operand_bytes(const struct emu_amo *amo)
{
    bool takes_two = amo->op == EMU_AMO_AX || amo->op == EMU_AMO_CSWAP;

    return (takes_two ? 2 : 1) * emu_amo_word_bytes(amo);
}

#endif
