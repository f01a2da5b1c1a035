/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The table of parts: in which order the loop calls them. The order of rounds decides what goes between hosts in one
 * packet (core/part.c), the order of ends who may still ask whom.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "emunic/daemon/core/part.h"
#include "emunic/daemon/world/server.h"

static char called[16]; /* one letter for each call */

static void note(char letter)
{
    size_t n = strlen(called);

    assert_true(n + 1 < sizeof(called));
    called[n] = letter;
}

static int create_a(struct emu_server *server, const struct emu_server_options *options, struct emu_complaint *why)
{
    (void)server;
    (void)options;
    (void)why;
    note('a');
    return 0;
}

static int create_b(struct emu_server *server, const struct emu_server_options *options, struct emu_complaint *why)
{
    (void)server;
    (void)options;
    (void)why;
    note('b');
    return 0;
}

static void destroy_a(struct emu_server *server)
{
    (void)server;
    note('A');
}

static void destroy_b(struct emu_server *server)
{
    (void)server;
    note('B');
}

static unsigned round_a(struct emu_server *server)
{
    (void)server;
    note('1');
    return 1;
}

static unsigned round_b(struct emu_server *server)
{
    (void)server;
    note('2');
    return 0;
}

static const struct emu_part first = {
    .name = "first",
    .create = create_a,
    .destroy = destroy_a,
    .loop = { .round = round_a },
};
static const struct emu_part silent = { .name = "silent" };
static const struct emu_part last = {
    .name = "last",
    .create = create_b,
    .destroy = destroy_b,
    .loop = { .round = round_b },
};
static const struct emu_part *const parts[] = { &first, &silent, &last };

static int begin(void **state)
{
    struct emu_server *server = calloc(1, sizeof(*server));

    memset(called, 0, sizeof(called));
    if (!server)
        return -1;
    server->parts = emu_part_table_make(parts, 3);
    *state = server;
    return server->parts ? 0 : -1;
}

static int end(void **state)
{
    struct emu_server *server = *state;

    free((void *)(uintptr_t)server->parts);
    free(server);
    return 0;
}

static void test_parts_begin_from_first_to_last_and_end_from_last_to_first(void **state)
{
    assert_int_equal(emu_parts_create(*state, NULL, NULL), 0);
    emu_parts_destroy(*state);
    assert_string_equal(called, "abBA");
}

static void test_rounds_go_from_first_to_last_and_leave_out_parts_without(void **state)
{
    struct emu_server *server = *state;

    assert_int_equal(server->parts->n_rounds, 2);
    for (uint32_t i = 0; i < server->parts->n_rounds; i++)
        server->parts->rounds[i](server);
    assert_string_equal(called, "12");
}

static void test_more_parts_than_there_is_room_for_make_no_table(void **state)
{
    const struct emu_part *many[EMU_PARTS_MAX + 1];

    (void)state;
    for (uint32_t i = 0; i <= EMU_PARTS_MAX; i++)
        many[i] = &silent;
    assert_null(emu_part_table_make(many, EMU_PARTS_MAX + 1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_parts_begin_from_first_to_last_and_end_from_last_to_first, begin, end),
        cmocka_unit_test_setup_teardown(test_rounds_go_from_first_to_last_and_leave_out_parts_without, begin, end),
        cmocka_unit_test(test_more_parts_than_there_is_room_for_make_no_table),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
