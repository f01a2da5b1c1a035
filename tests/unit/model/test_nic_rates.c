/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The NIC model's rates against arithmetic: which server bounds which stream of operations, within a node as well, and
 * which cache the rate of atomics.
 */
#include "emunic/model/nic_rates.h"

#include "tests/unit/model/nic_fixture.h"

static void test_one_nic_puts_at_its_packet_rate(void **state)
{
    struct emu_nic_setup setup = setup_of(machine);
    const struct emu_nic_pair pair = { .from = { 0, 0 }, .to = { 1, 0 } };
    const struct emu_nic_stream s = {
        .kind = EMU_NIC_BTE_PUT, .pairs = &pair, .n_pairs = 1, .bytes = 8192, .window = 16
    };

    (void)state;
    assert_close(emu_nic_packet_mbytes_per_s(&setup), 10240, 1e-9);
    assert_close(stream(&setup, &s).mbytes_per_s, 10240, 0.005);
}

static void test_window_over_round_trip_bounds_the_rate(void **state)
{
    struct emu_nic_setup setup = setup_of(machine);
    const struct emu_nic_pair pair = { .from = { 0, 0 }, .to = { 4, 0 } };
    struct emu_nic_stream s = { .kind = EMU_NIC_BTE_PUT, .pairs = &pair, .n_pairs = 1, .bytes = 8192, .window = 16 };
    struct emu_machine *narrow = load("aries:groups=1,chassis=1,blades=2,links.processor.lanes=8,"
                                      "nic.outstanding_packets=64");
    uint64_t round_trip;

    (void)state;
    setup.machine = narrow;
    setup.host.out_ps = 900 * NS;
    setup.host.in_ps = 900 * NS;
    /* Out and in for the put and its answer; two hops of routers and their ways to the NICs. */
    round_trip = 2 * latency(&setup, EMU_NIC_PUT, 64) - 2 * ((uint64_t)setup.host.issue_ps + setup.host.write_ps);
    assert_close(stream(&setup, &s).mbytes_per_s, 64.0 * 64 / (double)round_trip * 1e6, 0.03);
    emu_machine_destroy(narrow);
}

static void test_interface_is_slower_when_both_ways_are_busy(void **state)
{
    struct emu_nic_setup setup = setup_of(machine);
    const struct emu_nic_pair pair = { .from = { 0, 0 }, .to = { 1, 0 } };
    struct emu_nic_stream s = { .kind = EMU_NIC_BTE_PUT, .pairs = &pair, .n_pairs = 1, .bytes = 8192, .window = 16 };

    (void)state;
    setup.host.packet_gap_ps = 1; /* out of the way */
    assert_close(emu_nic_interface_mbytes_per_s(&setup, 64, false), 16000.0 * 64 / 88, 1e-9);
    assert_close(stream(&setup, &s).mbytes_per_s, 16000.0 * 64 / 88, 0.005);
    s.is_bidirectional = true;
    assert_close(emu_nic_interface_mbytes_per_s(&setup, 64, true), 16000.0 * 64 / 88 / 1.55, 1e-9);
    assert_close(stream(&setup, &s).mbytes_per_s, 2 * 16000.0 * 64 / 88 / 1.55, 0.01);
}

/* Its packets are farther apart than the network takes, and the next transfer waits for the last of them. */
static void test_slow_channels_bound_block_transfers(void **state)
{
    struct emu_nic_setup setup = setup_of(machine);
    const struct emu_nic_pair pair = { .from = { 0, 0 }, .to = { 1, 0 } };
    struct emu_nic_stream s = { .kind = EMU_NIC_BTE_PUT, .pairs = &pair, .n_pairs = 1, .bytes = 256, .window = 16 };

    (void)state;
    setup.host.bte_kbs = 50000;
    assert_close(stream(&setup, &s).mbytes_per_s, 4 * 50, 0.005);
}

static void test_cores_and_the_nic_bound_launches(void **state)
{
    struct emu_nic_setup setup = setup_of(machine);
    struct emu_nic_pair pairs[20];
    struct emu_nic_stream s = { .kind = EMU_NIC_LAUNCH, .pairs = pairs, .bytes = 8 };

    (void)state;
    emu_nic_pairs_between(0, 1, 20, pairs);
    s.n_pairs = 1;
    assert_close(stream(&setup, &s).operations_per_s, 7.5e6, 0.005);
    s.n_pairs = 8;
    assert_close(stream(&setup, &s).operations_per_s, 60e6, 0.005);
    s.n_pairs = 20;
    assert_close(stream(&setup, &s).operations_per_s, 120e6, 0.005);
    s.changes_mdh = true;
    assert_close(stream(&setup, &s).operations_per_s, 80e6, 0.005);
}

static void test_core_issues_puts_at_its_own_pace(void **state)
{
    struct emu_nic_setup setup = setup_of(machine);
    struct emu_nic_pair pairs[2];
    struct emu_nic_stream s = { .kind = EMU_NIC_PUT, .pairs = pairs, .n_pairs = 2, .bytes = 128 };

    (void)state;
    emu_nic_pairs_between(0, 1, 2, pairs);
    assert_close(stream(&setup, &s).operations_per_s, 2 / 400e-9, 0.005);
    setup.host.store_kbs = 640000; /* 200 ns for 128 bytes */
    assert_close(stream(&setup, &s).operations_per_s, 2 / 600e-9, 0.005);
    setup.host.send_end_ps = 5000 * NS; /* of messages */
    setup.host.send_end_bytes_max = 128;
    assert_close(stream(&setup, &s).operations_per_s, 2 / 600e-9, 0.005);
}

static void test_nics_on_one_set_of_tiles_share_it(void **state)
{
    struct emu_nic_setup setup = setup_of(machine);
    const struct emu_nic_pair pairs[] = { { { 0, 0 }, { 4, 0 } }, { { 1, 0 }, { 8, 0 } } };
    struct emu_nic_stream s = { .kind = EMU_NIC_BTE_PUT, .pairs = pairs, .bytes = 65536, .window = 4 };
    double alone, both;

    (void)state;
    setup.host.tile_nics = 2;
    setup.host.tile_kbs = 4200000; /* 84 bytes per packet: 3.2 GB/s of payload */
    s.n_pairs = 1;
    alone = stream(&setup, &s).mbytes_per_s;
    s.n_pairs = 2;
    both = stream(&setup, &s).mbytes_per_s;
    assert_close(alone, 4200.0 * 64 / 84, 0.005);
    assert_close(both, alone, 0.005);
}

static void test_messages_are_bounded_by_the_slower_core(void **state)
{
    struct emu_nic_setup setup = setup_of(machine);
    const struct emu_nic_pair pair = { .from = { 0, 0 }, .to = { 1, 0 } };
    const struct emu_nic_stream s = { .kind = EMU_NIC_MESSAGE, .pairs = &pair, .n_pairs = 1, .bytes = 8, .window = 2 };

    (void)state;
    setup.host.put_gap_ps = 100 * NS;
    setup.host.send_ps = 300 * NS;
    setup.host.recv_ps = 1000 * NS;
    assert_close(stream(&setup, &s).operations_per_s, 1e6, 0.005);
    setup.host.recv_ps = 100 * NS;
    assert_close(stream(&setup, &s).operations_per_s, 2.5e6, 0.005);
    setup.host.send_end_ps = 600 * NS;
    setup.host.send_end_bytes_max = 8;
    assert_close(stream(&setup, &s).operations_per_s, 1e6, 0.005);
}

static void test_copies_within_a_node_share_the_engine_or_do_not(void **state)
{
    struct emu_nic_setup setup = setup_of(machine);
    const struct emu_nic_pair pair = { .from = { 0, 0 }, .to = { 0, 1 } };
    struct emu_nic_stream s = { .kind = EMU_NIC_MESSAGE, .pairs = &pair, .n_pairs = 1, .bytes = 1u << 20, .window = 2 };
    double one_way;

    (void)state;
    setup.host.duplex_share = 0;
    one_way = stream(&setup, &s).mbytes_per_s;
    assert_close(one_way, 5000, 0.01);
    s.is_bidirectional = true;
    assert_close(stream(&setup, &s).mbytes_per_s, 2 * one_way, 0.01);
    setup.host.local_is_shared = 1;
    assert_close(stream(&setup, &s).mbytes_per_s, one_way, 0.01);
}

/* Answers with data fill the link of both directions. Requests take turns with them, or one side gets nothing. */
static void test_gets_both_ways_do_not_starve_each_other(void **state)
{
    struct emu_nic_setup setup = setup_of(machine);
    const struct emu_nic_pair pairs[] = { { { 0, 0 }, { 20, 0 } }, { { 20, 0 }, { 0, 0 } } };
    const struct emu_nic_stream s = {
        .kind = EMU_NIC_BTE_GET, .pairs = pairs, .n_pairs = 2, .bytes = 65536, .window = 4, .operations = 24
    };
    struct emu_nic_stream_result r;
    double rates[2];

    (void)state;
    setup.mode = EMU_MODE_ADAPTIVE_0;
    assert_int_equal(emu_nic_stream(&setup, &s, rates, &r), 0);
    assert_close(rates[0], rates[1], 0.1);
}

static void test_block_transfers_wait_for_a_channel(void **state)
{
    struct emu_nic_setup setup = setup_of(machine);
    struct tally t = { 0 };
    struct emu_nic_model *nm;
    uint64_t end[2];

    (void)state;
    setup.host.put_gap_ps = 0;
    setup.host.bte_start_ps = 10000 * NS;
    for (uint32_t n = 4; n <= 5; n++) {
        const struct emu_nic_op op = { .kind = EMU_NIC_BTE_GET, .to = { 5, 0 }, .bytes = 64 };

        nm = model_of(&setup, &t);
        for (uint32_t i = 0; i < n; i++)
            assert_int_equal(emu_nic_post(nm, (struct emu_nic_proc){ 0, i }, &op, 0), 0);
        (void)emu_sim_run(emu_nic_model_sim(nm), UINT64_MAX);
        end[n - 4] = t.last.at_ps;
        emu_nic_model_destroy(nm);
    }
    assert_int_equal(t.n_completed, 9);
    assert_in_range(end[0], 10000 * NS, 13000 * NS); /* four at once */
    assert_in_range(end[1], 20000 * NS, 26000 * NS); /* the fifth starts when one is over */
}

/* Both over in the time of one: the rate is that of a channel, and the NIC is faster. */
static void test_block_transfers_have_a_rate_each(void **state)
{
    const uint64_t data_ps = UINT64_C(1048576) * 1000000 / 1500; /* at 1.5 GB/s; a link has 3.6 */
    struct emu_nic_setup setup = setup_of(machine);

    (void)state;
    setup.host.put_gap_ps = 0;
    setup.host.bte_kbs = 1500000;
    for (uint32_t n = 1; n <= 2; n++) {
        const struct emu_nic_op op = { .kind = EMU_NIC_BTE_PUT, .to = { 5, 0 }, .bytes = 1048576 };
        struct tally t = { 0 };
        struct emu_nic_model *nm = model_of(&setup, &t);

        for (uint32_t i = 0; i < n; i++)
            assert_int_equal(emu_nic_post(nm, (struct emu_nic_proc){ 0, i }, &op, 0), 0);
        (void)emu_sim_run(emu_nic_model_sim(nm), UINT64_MAX);
        assert_int_equal(t.n_completed, n);
        assert_in_range(t.last.at_ps, data_ps, data_ps + 3000 * NS);
        emu_nic_model_destroy(nm);
    }
}

/* ---- atomics, without packets ---- */

static void test_amo_cache_has_its_knee(void **state)
{
    struct emu_nic_setup setup = setup_of(machine);
    double hot, full, over, small_pages, huge_pages;

    (void)state;
    setup.host.amo_miss_ps = 8 * NS;
    setup.host.pte_miss_ps = 12 * NS;
    hot = emu_nic_amo_rate(&setup, 1, 4096, false, 20000);
    full = emu_nic_amo_rate(&setup, 64, 4096, false, 20000);
    over = emu_nic_amo_rate(&setup, 65, 4096, false, 20000);
    assert_close(hot, 400e6, 1e-6); /* 2 cycles of 800 MHz */
    assert_close(full, 400e6, 1e-6);
    assert_close(over, 125e6, 1e-6); /* 8 ns: one after another, each word has just left */
    small_pages = emu_nic_amo_rate(&setup, UINT64_C(1) << 27, 4096, true, 20000);
    huge_pages = emu_nic_amo_rate(&setup, UINT64_C(1) << 27, 2 << 20, true, 20000);
    assert_close(small_pages, 50e6, 0.01); /* 1 GiB is far beyond 1 024 pages of 4 KiB: 8 + 12 ns */
    assert_close(huge_pages, 125e6, 0.01);
    assert_true(isnan(emu_nic_amo_rate(&setup, 0, 4096, true, 10)));
}

static void test_random_words_hit_as_often_as_they_fit(void **state)
{
    struct emu_nic_setup setup = setup_of(machine);
    double rate;

    (void)state;
    setup.host.amo_miss_ps = 8 * NS;
    rate = emu_nic_amo_rate(&setup, 128, 4096, true, 400000);
    assert_close(rate, 1e9 / (0.5 * 2.5 + 0.5 * 8), 0.01); /* 64 of 128 words are there */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_gets_both_ways_do_not_starve_each_other),
        cmocka_unit_test(test_one_nic_puts_at_its_packet_rate),
        cmocka_unit_test(test_window_over_round_trip_bounds_the_rate),
        cmocka_unit_test(test_interface_is_slower_when_both_ways_are_busy),
        cmocka_unit_test(test_slow_channels_bound_block_transfers),
        cmocka_unit_test(test_cores_and_the_nic_bound_launches),
        cmocka_unit_test(test_core_issues_puts_at_its_own_pace),
        cmocka_unit_test(test_nics_on_one_set_of_tiles_share_it),
        cmocka_unit_test(test_messages_are_bounded_by_the_slower_core),
        cmocka_unit_test(test_copies_within_a_node_share_the_engine_or_do_not),
        cmocka_unit_test(test_block_transfers_wait_for_a_channel),
        cmocka_unit_test(test_block_transfers_have_a_rate_each),
        cmocka_unit_test(test_amo_cache_has_its_knee),
        cmocka_unit_test(test_random_words_hit_as_often_as_they_fit),
    };

    return cmocka_run_group_tests(tests, setup_group, teardown_group);
}
