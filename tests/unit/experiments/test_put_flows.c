/* SPDX-License-Identifier: BSD-3-Clause */
/* Flows of puts over Gemini: what a NIC, a link and two nodes of one link get; order; quiesce; threads. */
#include <errno.h>

#include "emunic/experiments/put_flows.h"
#include "emunic/fabric/torus.h"
#include "tests/unit/fabric/fixture.h"

#define US  UINT64_C(1000000)
#define GAP 9005 /* ps: 7 107 MB/s */

static uint32_t nid_of(const struct emu_machine *m, uint32_t x, uint32_t y, uint32_t z, uint32_t node)
{
    return 2 * emu_torus_router(emu_torus_of(m), x, y, z) + node;
}

static struct emu_flows *started(const struct emu_machine *m, const struct emu_flow_spec *specs, size_t n,
                                 enum emu_route_mode mode, uint32_t n_threads)
{
    const struct emu_flows_options options = { .gap_ps = GAP, .mode = mode, .seed = 1, .n_threads = n_threads };
    struct emu_flows *f;

    assert_int_equal(emu_flows_create(m, NULL, specs, n, &options, &f), 0);
    assert_int_equal(emu_flows_run(f, 10 * US), 0);
    emu_flows_reset(f);
    return f;
}

static void assert_rate(struct emu_flows *f, size_t flow, double expected)
{
    assert_float_equal(emu_flows_rate(f, flow) / expected, 1, 0.01);
}

/* A cable along X: 8 tiles of 9.375 Gb/s, 64 of 96 bytes are data. */
static void test_one_nic_fills_all_tiles_of_a_cable(void **state)
{
    struct emu_machine *m = load("gemini");
    const struct emu_flow_spec spec = { nid_of(m, 0, 0, 0, 0), nid_of(m, 1, 0, 0, 0) };
    struct emu_flows *f = started(m, &spec, 1, EMU_MODE_ADAPTIVE_0, 1);

    (void)state;
    assert_int_equal(emu_flows_run(f, 20 * US), 0);
    assert_rate(f, 0, 9.375e9 * 64 / 96);
    emu_flows_destroy(f);
    emu_machine_destroy(m);
}

static void test_two_nics_share_a_cable_evenly(void **state)
{
    struct emu_machine *m = load("gemini");
    const struct emu_flow_spec specs[] = { { nid_of(m, 0, 0, 0, 0), nid_of(m, 1, 0, 0, 0) },
                                           { nid_of(m, 0, 0, 0, 1), nid_of(m, 1, 0, 0, 1) } };
    struct emu_flows *f = started(m, specs, 2, EMU_MODE_ADAPTIVE_0, 1);

    (void)state;
    assert_int_equal(emu_flows_run(f, 20 * US), 0);
    assert_rate(f, 0, 9.375e9 * 64 / 96 / 2);
    assert_rate(f, 1, 9.375e9 * 64 / 96 / 2);
    emu_flows_destroy(f);
    emu_machine_destroy(m);
}

/* Requests of one node and responses of the other meet on the mezzanine: 64 of 105 bytes are data. */
static void test_responses_take_their_share_of_a_link(void **state)
{
    struct emu_machine *m = load("gemini");
    const struct emu_flow_spec specs[] = { { nid_of(m, 0, 0, 0, 1), nid_of(m, 0, 1, 0, 0) },
                                           { nid_of(m, 0, 1, 0, 1), nid_of(m, 0, 0, 0, 0) } };
    struct emu_flows *f = started(m, specs, 2, EMU_MODE_ADAPTIVE_0, 1);

    (void)state;
    assert_int_equal(emu_flows_run(f, 20 * US), 0);
    assert_rate(f, 0, 9.375e9 * 64 / 105);
    assert_rate(f, 1, 9.375e9 * 64 / 105);
    emu_flows_destroy(f);
    emu_machine_destroy(m);
}

static void test_a_loop_inside_a_gemini_goes_at_the_nics_rate(void **state)
{
    struct emu_machine *m = load("gemini");
    const struct emu_flow_spec spec = { 0, 1 };
    struct emu_flows *f = started(m, &spec, 1, EMU_MODE_ADAPTIVE_0, 1);

    (void)state;
    assert_int_equal(emu_flows_run(f, 20 * US), 0);
    assert_rate(f, 0, 64e12 / GAP);
    emu_flows_destroy(f);
    emu_machine_destroy(m);
}

static void test_ordered_packets_stay_in_order_and_adaptive_ones_do_not(void **state)
{
    struct emu_machine *m = load("gemini:x=4,y=2,z=8,layout=floor");
    struct emu_flow_spec specs[16];
    struct emu_flows_counts counts;

    (void)state;
    for (uint32_t i = 0; i < 16; i++) /* two hops along X, in turns along Z: packets of a flow meet others */
        specs[i] =
            (struct emu_flow_spec){ nid_of(m, i % 4, 0, i / 4, 0), nid_of(m, (i + 2) % 4, 1, (i / 4 + 1) % 8, 1) };
    for (int is_ordered = 0; is_ordered < 2; is_ordered++) {
        struct emu_flows *f = started(m, specs, 16, is_ordered ? EMU_MODE_IN_ORDER : EMU_MODE_ADAPTIVE_0, 1);

        assert_int_equal(emu_flows_run(f, 10 * US), 0);
        emu_flows_counts(f, &counts);
        assert_true(counts.arrived > 1000);
        if (is_ordered)
            assert_int_equal(counts.reordered, 0);
        else
            assert_true(counts.reordered > 0);
        emu_flows_destroy(f);
    }
    emu_machine_destroy(m);
}

static void test_a_pause_drains_the_network_and_a_release_fills_it_again(void **state)
{
    struct emu_machine *m = load("gemini");
    const struct emu_flow_spec spec = { nid_of(m, 0, 0, 0, 0), nid_of(m, 2, 1, 3, 0) };
    struct emu_flows *f = started(m, &spec, 1, EMU_MODE_ADAPTIVE_0, 1);
    struct emu_flows_counts paused, later;

    (void)state;
    emu_flows_pause(f, true);
    assert_int_equal(emu_flows_run(f, 10 * US), 0);
    emu_flows_counts(f, &paused);
    assert_int_equal(paused.sent, paused.arrived);
    assert_int_equal(paused.sent, paused.answered);
    emu_flows_pause(f, false);
    assert_int_equal(emu_flows_run(f, 10 * US), 0);
    emu_flows_counts(f, &later);
    assert_true(later.arrived > paused.arrived + 500);
    emu_flows_destroy(f);
    emu_machine_destroy(m);
}

static void test_threads_do_not_change_what_arrives(void **state)
{
    struct emu_machine *m = load("gemini");
    struct emu_flow_spec specs[32];
    struct emu_sim_totals totals[2];

    (void)state;
    for (uint32_t i = 0; i < 32; i++)
        specs[i] = (struct emu_flow_spec){ 3 * i, (3 * i + 41) % emu_machine_n_nodes(m) };
    for (uint32_t threads = 1; threads <= 2; threads++) {
        struct emu_flows *f = started(m, specs, 32, EMU_MODE_ADAPTIVE_0, threads);

        assert_int_equal(emu_flows_run(f, 5 * US), 0);
        emu_sim_totals(emu_flows_sim(f), &totals[threads - 1]);
        emu_flows_destroy(f);
    }
    assert_memory_equal(&totals[0].trace_hash, &totals[1].trace_hash, sizeof(totals[0].trace_hash));
    assert_int_equal(totals[0].delivered, totals[1].delivered);
    emu_machine_destroy(m);
}

static void test_wrong_flows_are_refused(void **state)
{
    struct emu_machine *m = load("gemini");
    const struct emu_flows_options options = { .gap_ps = GAP, .seed = 1 };
    struct emu_flow_spec specs[EMU_FLOWS_PER_NODE + 1];
    struct emu_flows *f;

    (void)state;
    for (uint32_t i = 0; i <= EMU_FLOWS_PER_NODE; i++)
        specs[i] = (struct emu_flow_spec){ 0, i + 1 };
    assert_int_equal(emu_flows_create(m, NULL, specs, EMU_FLOWS_PER_NODE + 1, &options, &f), -EINVAL);
    specs[0].dst_nid = emu_machine_n_nodes(m);
    assert_int_equal(emu_flows_create(m, NULL, specs, 1, &options, &f), -EINVAL);
    emu_flows_destroy(NULL);
    emu_machine_destroy(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_nic_fills_all_tiles_of_a_cable),
        cmocka_unit_test(test_two_nics_share_a_cable_evenly),
        cmocka_unit_test(test_responses_take_their_share_of_a_link),
        cmocka_unit_test(test_a_loop_inside_a_gemini_goes_at_the_nics_rate),
        cmocka_unit_test(test_ordered_packets_stay_in_order_and_adaptive_ones_do_not),
        cmocka_unit_test(test_a_pause_drains_the_network_and_a_release_fills_it_again),
        cmocka_unit_test(test_threads_do_not_change_what_arrives),
        cmocka_unit_test(test_wrong_flows_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
