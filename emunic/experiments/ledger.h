/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The ledger: every parameter that was chosen by a result, and the result that it was chosen by (spec/machines.md 9).
 *
 * A row's parameter is a key of the machine file, or several that were chosen together, joined by '+'. A row with a
 * value is a parameter of an experiment that no machine file has, such as a time of computation; the experiment takes
 * it from here, so it cannot use one that is not in the ledger.
 */
#ifndef EMUNIC_EXPERIMENTS_LEDGER_H
#define EMUNIC_EXPERIMENTS_LEDGER_H

enum emu_ledger_sort {
    EMU_LEDGER_FITTED = 1, /* so that a figure of the source comes out, which then proves nothing (kind K) */
    EMU_LEDGER_TUNED,      /* by results of ours, or to what the source shows without a number */
    EMU_LEDGER_ASSUMED,    /* [OUR], of an experiment: the source is silent and no result decided */
};

struct emu_ledger_row {
    const char *machine;
    const char *parameter;
    enum emu_ledger_sort sort;
    const char *experiment; /* "X1-1" */
    const char *chosen_by;
    double value; /* of a parameter that is in no machine file; 0: the machine file has it */
};

/* Ended by a row without machine. */
extern const struct emu_ledger_row emu_ledger[];

/* NULL: no such row. */
const struct emu_ledger_row *emu_ledger_find(const char *machine, const char *parameter);

/* The value of a row that has one. Not a number: there is no such row, so that the figure fails. */
double emu_ledger_value(const char *machine, const char *parameter);

/* "fitted", "tuned", "assumed". */
const char *emu_ledger_sort_name(enum emu_ledger_sort sort);

#endif
