/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A table keeps its cells as text until it is printed, because only then are the widths known. The last column is
 * not filled up, so that lines have no blanks at their end.
 */
#include "emunic/cli/text_table.h"

#include <assert.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

void emu_cli_table_init(struct emu_cli_table *table, const struct emu_cli_column *columns, size_t n_columns)
{
    assert(n_columns >= 1 && n_columns <= EMU_CLI_COLUMNS_MAX);
    *table = (struct emu_cli_table){ .columns = columns, .n_columns = n_columns };
}

void emu_cli_table_fini(struct emu_cli_table *table)
{
    for (size_t i = 0; i < table->n_cells; i++)
        free(table->cells[i]);
    free(table->cells);
    *table = (struct emu_cli_table){ 0 };
}

void emu_cli_table_text(struct emu_cli_table *table, const char *text)
{
    if (table->n_cells == table->cells_max) {
        size_t more = table->cells_max ? 2 * table->cells_max : 64;
        char **cells = realloc(table->cells, more * sizeof(*cells));

        if (!cells) {
            table->is_short_of_memory = true;
            return;
        }
        table->cells = cells;
        table->cells_max = more;
    }
    table->cells[table->n_cells] = strdup(text);
    if (table->cells[table->n_cells])
        table->n_cells++;
    else
        table->is_short_of_memory = true;
}

void emu_cli_table_number(struct emu_cli_table *table, uint64_t number)
{
    char text[24];

    snprintf(text, sizeof(text), "%" PRIu64, number);
    emu_cli_table_text(table, text);
}

static void print_cell(const struct emu_cli_table *table, size_t column, const char *text, size_t width, FILE *out)
{
    bool is_last = column == table->n_columns - 1;

    if (table->columns[column].is_number)
        fprintf(out, "%*s", (int)width, text);
    else
        fprintf(out, "%-*s", is_last ? 0 : (int)width, text);
    fputs(is_last ? "\n" : "  ", out);
}

int emu_cli_table_print(const struct emu_cli_table *table, unsigned indent, FILE *out)
{
    size_t widths[EMU_CLI_COLUMNS_MAX];
    size_t n_rows = table->n_cells / table->n_columns;

    if (table->is_short_of_memory)
        return -ENOMEM;
    for (size_t c = 0; c < table->n_columns; c++) {
        widths[c] = strlen(table->columns[c].title);
        for (size_t row = 0; row < n_rows; row++) {
            size_t len = strlen(table->cells[row * table->n_columns + c]);

            widths[c] = len > widths[c] ? len : widths[c];
        }
    }
    fprintf(out, "%*s", (int)indent, "");
    for (size_t c = 0; c < table->n_columns; c++)
        print_cell(table, c, table->columns[c].title, widths[c], out);
    for (size_t row = 0; row < n_rows; row++) {
        fprintf(out, "%*s", (int)indent, "");
        for (size_t c = 0; c < table->n_columns; c++)
            print_cell(table, c, table->cells[row * table->n_columns + c], widths[c], out);
    }
    return 0;
}
