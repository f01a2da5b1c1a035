/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Results as codes of the core: each row of the table, and that no other errno has a code of its own.
 */
#include "libportals/src/code.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

struct expected {
    int result;
    enum p3_code code;
};

#define N(array) (sizeof(array) / sizeof((array)[0]))

static void check(enum p3_call call, const struct expected *rows, size_t n, enum p3_code otherwise)
{
    assert_int_equal(p3_code_of(call, 0), P3_OK);
    for (int result = -200; result < 0; result++) {
        enum p3_code code = otherwise;

        for (size_t i = 0; i < n; i++)
            code = rows[i].result == result ? rows[i].code : code;
        assert_int_equal(p3_code_of(call, result), code);
    }
}

static void test_opening_tells_bad_addresses_and_lack_of_space(void **state)
{
    static const struct expected rows[] = {
        { -EADDRINUSE, P3_PID_INVALID }, { -EADDRNOTAVAIL, P3_PID_INVALID }, { -ENOMEM, P3_NO_SPACE },
        { -ENOSPC, P3_NO_SPACE },        { -EMFILE, P3_NO_SPACE },           { -ENFILE, P3_NO_SPACE },
    };

    (void)state;
    check(P3_CALL_OPEN, rows, N(rows), P3_FAIL);
}

static void test_creating_tells_long_lists_and_entries_in_use(void **state)
{
    static const struct expected rows[] = {
        { -E2BIG, P3_ME_LIST_TOO_LONG },
        { -EEXIST, P3_ME_IN_USE },
        { -EBUSY, P3_ME_IN_USE },
    };

    (void)state;
    check(P3_CALL_CREATE, rows, N(rows), P3_NO_SPACE);
}

static void test_an_update_may_have_to_be_tried_again(void **state)
{
    static const struct expected rows[] = {
        { -EAGAIN, P3_MD_NO_UPDATE },
        { -E2BIG, P3_ME_LIST_TOO_LONG },
        { -EEXIST, P3_ME_IN_USE },
        { -EBUSY, P3_ME_IN_USE },
    };

    (void)state;
    check(P3_CALL_UPDATE, rows, N(rows), P3_NO_SPACE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_opening_tells_bad_addresses_and_lack_of_space),
        cmocka_unit_test(test_creating_tells_long_lists_and_entries_in_use),
        cmocka_unit_test(test_an_update_may_have_to_be_tried_again),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
