/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Finding experiments in the tables, and rows of the ledger.
 */
#include "emunic/experiments/experiment.h"

#include <math.h>
#include <string.h>
#include <strings.h>

#include "emunic/experiments/ledger.h"

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

const struct emu_ledger_row *emu_ledger_find(const char *machine, const char *parameter)
{
    for (const struct emu_ledger_row *row = emu_ledger; row->machine; row++) {
        if (strcmp(row->machine, machine) == 0 && strcmp(row->parameter, parameter) == 0)
            return row;
    }
    return NULL;
}

double emu_ledger_value(const char *machine, const char *parameter)
{
    const struct emu_ledger_row *row = emu_ledger_find(machine, parameter);

    return row && row->value != 0 ? row->value : NAN;
}

const char *emu_ledger_sort_name(enum emu_ledger_sort sort)
{
    static const char *const names[] = { "none", "fitted", "tuned", "assumed" };

    return names[sort];
}
