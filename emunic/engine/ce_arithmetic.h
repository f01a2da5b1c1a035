/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef EMUNIC_ENGINE_CE_ARITHMETIC_H
#define EMUNIC_ENGINE_CE_ARITHMETIC_H

#include <stdbool.h>
#include <stdint.h>

#include "emunic/abi/ce.h"

/* Is it an operation at all? Everything in `value` may come from a hostile client. Pure. */
bool emu_ce_is_valid(const struct emu_ce_value *value);

/*
 * A leaf's valid contribution in the form that emu_ce_combine() takes: operands cut to their width, what the operation
 * does not use as 0. Pure.
 */
void emu_ce_start(struct emu_ce_value *value);

/*
 * Adds another child's value to `sum`. Values of different operations, widths or reduction ids give
 * EMU_STATUS_MISMATCH; a failed one fails the sum, the first failure stays. Pure: the processor's rounding and
 * exception state is as before when it returns.
 */
void emu_ce_combine(struct emu_ce_value *sum, const struct emu_ce_value *value, enum emu_ce_rounding rounding);

#endif
