/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One reading of numbers for the whole tree: what strtoull() would forgive (blanks, signs, words behind the number,
 * numbers too large) is refused here.
 */
#include "emunic/base/number.h"

#include <errno.h>
#include <stdlib.h>

bool emu_parse_number(const char *text, int base, uint64_t min, uint64_t max, uint64_t *value_out)
{
    unsigned long long value;
    char *end;

    if (*text < '0' || *text > '9')
        return false;
    errno = 0;
    value = strtoull(text, &end, base);
    if (errno != 0 || *end != '\0' || value < min || value > max)
        return false;
    *value_out = value;
    return true;
}
