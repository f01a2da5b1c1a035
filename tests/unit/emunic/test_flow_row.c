/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Rows of flow counters: what was counted is found again, and nothing is kept for nodes that got nothing.
 */
#include "emunic/daemon/world/flow_row.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

enum { N_NODES = 19201 };

static void test_an_empty_row_has_nothing(void **state)
{
    struct emu_flow_row row = { 0 };

    (void)state;
    for (uint32_t node = 0; node < N_NODES; node++) {
        assert_null(emu_flow_row_page(&row, node));
        assert_null(emu_flow_row_at(&row, N_NODES, node, false));
    }
    emu_flow_row_free(&row, N_NODES);
}

static void test_counters_are_found_and_their_neighbours_are_empty(void **state)
{
    static const uint32_t nodes[] = { 0, 63, 64, 12345, N_NODES - 1 };
    enum { N = sizeof(nodes) / sizeof(nodes[0]), PAGES_USED = 4 };
    struct emu_flow_row row = { 0 };
    uint32_t n_found = 0, n_pages = 0;

    (void)state;
    for (uint32_t i = 0; i < N; i++) {
        const struct emu_flow_counts flow = { .operations = 1, .errors = i };

        for (uint32_t k = 0; k < 2; k++)
            emu_flow_add(emu_flow_row_at(&row, N_NODES, nodes[i], true), &flow);
    }
    for (uint32_t node = 0; node < N_NODES; node++) {
        const struct emu_flow_counts *flow = emu_flow_row_page(&row, node);

        assert_ptr_equal(flow, emu_flow_row_at(&row, N_NODES, node, false));
        n_pages += node % EMU_FLOW_PAGE == 0 && flow;
        if (!flow || emu_flow_is_empty(flow))
            continue;
        assert_int_equal(node, nodes[n_found]);
        assert_int_equal(flow->operations, 2);
        assert_int_equal(flow->errors, 2 * n_found);
        n_found++;
    }
    assert_int_equal(n_found, N);
    assert_int_equal(n_pages, PAGES_USED);
    emu_flow_row_free(&row, N_NODES);
    assert_null(emu_flow_row_page(&row, 0));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_an_empty_row_has_nothing),
        cmocka_unit_test(test_counters_are_found_and_their_neighbours_are_empty),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
