/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The shuffled order of PMI_Allgather's debug mode.
 *
 * Fisher-Yates over splitmix64, so that all ranks compute the same order from the seed without talking. The
 * modulo's bias does not matter here. With two or more ranks the identity is avoided by one swap: the mode is
 * there to show programs an order that is not rank order. Source: G. Steele, D. Lea, C. Flood, Fast Splittable
 * Pseudorandom Number Generators, 2014.
 */
#include "mpi-shim/pmi/src/permute.h"

#include <stdbool.h>

static uint64_t next_random(uint64_t *state)
{
    uint64_t z = (*state += UINT64_C(0x9e3779b97f4a7c15));

    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ (z >> 31);
}

static void swap(int *a, int *b)
{
    int t = *a;

    *a = *b;
    *b = t;
}

void pmii_permute(uint64_t seed, int n, int *order_out)
{
    bool is_identity = true;

    for (int i = 0; i < n; i++)
        order_out[i] = i;
    for (int i = n - 1; i > 0; i--)
        swap(&order_out[i], &order_out[next_random(&seed) % ((uint64_t)i + 1)]);
    for (int i = 0; i < n; i++)
        is_identity = is_identity && order_out[i] == i;
    if (is_identity && n > 1)
        swap(&order_out[0], &order_out[n - 1]);
}
