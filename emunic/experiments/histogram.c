/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Latency histograms with buckets 1/16 of a power of two wide: any value of 64 bits within 6 %, in 7.6 KiB.
 */
#include "emunic/experiments/traffic.h"

#define BITS 4 /* of the mantissa */

uint32_t emu_histogram_bucket(uint64_t value_ps)
{
    uint32_t exponent;

    if (value_ps < (1u << BITS))
        return (uint32_t)value_ps;
    exponent = 63 - (uint32_t)__builtin_clzll(value_ps);
    return ((exponent - BITS + 1) << BITS) + (uint32_t)((value_ps >> (exponent - BITS)) & ((1u << BITS) - 1));
}

uint64_t emu_histogram_low_ps(uint32_t bucket)
{
    uint32_t exponent = bucket >> BITS;
    uint64_t mantissa = bucket & ((1u << BITS) - 1);

    if (exponent == 0)
        return mantissa;
    if (exponent > 64 - BITS)
        return UINT64_MAX; /* the end of the last bucket */
    return (mantissa | (1u << BITS)) << (exponent - 1);
}

double emu_histogram_mean_ps(const struct emu_histogram *h)
{
    return h->count == 0 ? 0 : (double)h->sum_ps / (double)h->count;
}

double emu_histogram_quantile_ps(const struct emu_histogram *h, double quantile)
{
    double wanted = quantile * (double)h->count;
    double seen = 0;

    for (uint32_t i = 0; i < EMU_HISTOGRAM_BUCKETS; i++) {
        double low;
        double width;

        if (h->buckets[i] == 0)
            continue;
        low = (double)emu_histogram_low_ps(i);
        width = (double)emu_histogram_low_ps(i + 1) - low;
        if (seen + (double)h->buckets[i] >= wanted)
            return low + width * (wanted > seen ? (wanted - seen) / (double)h->buckets[i] : 0);
        seen += (double)h->buckets[i];
    }
    return 0;
}
