/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Student's t is a table of its 97.5 % quantile: the next lower number of degrees of freedom is taken, so that an
 * interval is never too narrow. Source: any table of the distribution, e.g. NIST/SEMATECH e-Handbook 1.3.6.7.2.
 */
#include "emunic/experiments/statistics.h"

#include <math.h>

static double t_quantile(size_t degrees)
{
    static const double small[] = { 12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228,
                                    2.201,  2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086,
                                    2.080,  2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042 };

    if (degrees <= sizeof(small) / sizeof(small[0]))
        return small[degrees - 1];
    return degrees < 60 ? 2.042 : degrees < 120 ? 2.000 : 1.980;
}

struct emu_sample emu_sample_of(const double *values, size_t n)
{
    struct emu_sample s = { .n = n };
    double squares = 0;

    if (n == 0)
        return s;
    s.min = s.max = values[0];
    for (size_t i = 0; i < n; i++) {
        s.mean += values[i] / (double)n;
        s.min = fmin(s.min, values[i]);
        s.max = fmax(s.max, values[i]);
    }
    if (n < 2)
        return s;
    for (size_t i = 0; i < n; i++)
        squares += (values[i] - s.mean) * (values[i] - s.mean);
    s.half_95 = t_quantile(n - 1) * sqrt(squares / (double)(n - 1) / (double)n);
    return s;
}

double emu_jain_index(const double *values, size_t n)
{
    double sum = 0;
    double squares = 0;

    for (size_t i = 0; i < n; i++) {
        sum += values[i];
        squares += values[i] * values[i];
    }
    return squares > 0 ? sum * sum / ((double)n * squares) : 1;
}

bool emu_saturation_next(const struct emu_saturation *s, double *load_out)
{
    if (s->n_loads == 0)
        *load_out = 1;
    else if (s->refused <= 0 && s->followed < EMU_SATURATION_MAX)
        *load_out = 2 * s->followed;
    else if (s->followed <= 0 && s->refused >= 2 * EMU_SATURATION_MIN)
        *load_out = s->refused / 2;
    else if (s->followed > 0 && s->refused - s->followed > EMU_SATURATION_WIDTH * s->refused)
        *load_out = (s->followed + s->refused) / 2;
    else
        return false;
    return true;
}

void emu_saturation_tell(struct emu_saturation *s, double load, double accepted_share)
{
    s->n_loads++;
    if (accepted_share >= EMU_SATURATION_SHARE)
        s->followed = load;
    else
        s->refused = load;
}
