/* SPDX-License-Identifier: BSD-3-Clause */
#ifndef PMI_SRC_PERMUTE_H
#define PMI_SRC_PERMUTE_H

#include <stdint.h>

/** Fill order_out with 0 .. n-1 in an order that depends on seed and n alone. Any thread. See permute.c. */
void pmii_permute(uint64_t seed, int n, int *order_out);

#endif
