/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tables for people: columns as wide as their widest cell.
 */
#ifndef EMUNIC_CLI_TEXT_TABLE_H
#define EMUNIC_CLI_TEXT_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#define EMU_CLI_COLUMNS_MAX 16

struct emu_cli_column {
    const char *title;
    bool is_number; /* on the right side of its column */
};

struct emu_cli_table {
    const struct emu_cli_column *columns; /* borrowed */
    size_t n_columns;
    char **cells; /* owned, row by row */
    size_t n_cells;
    size_t cells_max;
    bool is_short_of_memory; /* a cell is missing: nothing will be printed */
};

/* Columns stay the caller's; at most EMU_CLI_COLUMNS_MAX. */
void emu_cli_table_init(struct emu_cli_table *table, const struct emu_cli_column *columns, size_t n_columns);

/* Frees the cells. */
void emu_cli_table_fini(struct emu_cli_table *table);

/* The next cell, left to right, row by row. */
void emu_cli_table_text(struct emu_cli_table *table, const char *text);
void emu_cli_table_number(struct emu_cli_table *table, uint64_t number);

/* Prints the titles and whole rows, each line after `indent` blanks. 0 or -ENOMEM. */
int emu_cli_table_print(const struct emu_cli_table *table, unsigned indent, FILE *out);

#endif
