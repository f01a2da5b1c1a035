/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Finding experiments in the tables.
 */
#include "emunic/experiments/experiment.h"

#include <string.h>
#include <strings.h>

const struct emu_experiment *emu_experiment_at(size_t index)
{
    for (const struct emu_experiment *const *table = emu_experiment_tables; *table; table++) {
        for (const struct emu_experiment *e = *table; e->id; e++) {
            if (index-- == 0)
                return e;
        }
    }
    return NULL;
}

/* The part of a row is one letter, or letters, behind the number. */
static bool is_part(const char *tail)
{
    return strspn(tail, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ") == strlen(tail);
}

const struct emu_experiment *emu_experiment_find(const char *id)
{
    const struct emu_experiment *whole = NULL;
    const struct emu_experiment *e;

    for (size_t i = 0; (e = emu_experiment_at(i)); i++) {
        size_t len = strlen(e->id);
        bool ends_in_digit = e->id[len - 1] >= '0' && e->id[len - 1] <= '9';

        if (strcasecmp(e->id, id) == 0)
            return e;
        if (ends_in_digit && strncasecmp(e->id, id, len) == 0 && is_part(id + len))
            whole = e;
    }
    return whole;
}
