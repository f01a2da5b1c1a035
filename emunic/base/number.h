/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Numbers in texts from outside: options, files, the environment. Any thread.
 */
#ifndef EMUNIC_BASE_NUMBER_H
#define EMUNIC_BASE_NUMBER_H

#include <stdbool.h>
#include <stdint.h>

/*
 * A whole number from min to max, with no sign, no blank and nothing behind it. Base 10 takes decimal digits only;
 * base 0 takes 0x... and 0... as well, as C does.
 */
bool emu_parse_number(const char *text, int base, uint64_t min, uint64_t max, uint64_t *value_out);

#endif
