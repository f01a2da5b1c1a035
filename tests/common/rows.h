/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tables of cases: one loop tries all rows of a table, and a row that fails says its name. Include after cmocka.h.
 */
#ifndef TESTS_COMMON_ROWS_H
#define TESTS_COMMON_ROWS_H

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

static inline void row_equal(const char *row, long actual, long expected, const char *file, int line)
{
    if (actual != expected)
        print_error("row: %s\n", row);
    _assert_int_equal((LargestIntegralType)actual, (LargestIntegralType)expected, file, line);
}

/* assert_int_equal() for the row of that name. */
#define assert_row_equal(row, actual, expected) row_equal(row, (long)(actual), (long)(expected), __FILE__, __LINE__)

#endif
