/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Hosts that match messages themselves (SeaStar's generic mode) in the NIC model: interrupts, the match before the
 * data, answers.
 */
#include "tests/unit/model/nic_fixture.h"

static struct emu_nic_setup generic_setup(void)
{
    struct emu_nic_setup setup = setup_of(machine);

    setup.host.is_generic = 1;
    setup.host.has_acks = 0;
    setup.host.inline_bytes = 12;
    setup.host.interrupt_ps = 2000 * NS;
    setup.host.end_interrupt_ps = 2500 * NS;
    setup.host.reply_ps = 1000 * NS;
    setup.host.interface_kbs = 0;
    setup.host.packet_gap_ps = 58000; /* 1 103 MB/s */
    return setup;
}

static void test_generic_host_is_interrupted_once_or_twice(void **state)
{
    struct emu_nic_setup setup = generic_setup();
    uint64_t empty = latency(&setup, EMU_NIC_PUT, 0);
    uint64_t inlined = latency(&setup, EMU_NIC_PUT, 12);
    uint64_t longer = latency(&setup, EMU_NIC_PUT, 13);
    struct emu_nic_setup accelerated = setup;

    (void)state;
    assert_in_range(inlined - empty, 2 * 58 * NS, 125 * NS); /* both NICs move a packet */
    assert_in_range(longer - inlined, 2400 * NS, 2600 * NS);
    accelerated.host.is_generic = 0;
    assert_in_range(empty - latency(&accelerated, EMU_NIC_PUT, 0), 1990 * NS, 2010 * NS);
}

static void test_generic_host_waits_for_the_match_before_data_move(void **state)
{
    struct emu_nic_setup setup = generic_setup();
    uint64_t empty = latency(&setup, EMU_NIC_PUT, 0);
    uint64_t bulk = latency(&setup, EMU_NIC_PUT, 102400);

    (void)state;
    assert_close((double)(bulk - empty), 2500.0 * NS + 1600 * 58000.0, 0.01);
}

static void test_generic_get_is_one_request_and_a_stream(void **state)
{
    struct emu_nic_setup setup = generic_setup();
    struct emu_nic_setup slower = setup;
    uint64_t empty = latency(&setup, EMU_NIC_GET, 0);
    uint64_t bulk = latency(&setup, EMU_NIC_GET, 102400);

    (void)state;
    slower.host.reply_ps += 500 * NS;
    assert_time(latency(&slower, EMU_NIC_GET, 0), empty + 500 * NS);
    assert_close((double)(bulk - empty), 2500.0 * NS + 1600 * 58000.0, 0.01);
}

static void test_interrupts_bound_a_stream_of_small_puts(void **state)
{
    struct emu_nic_setup setup = generic_setup();
    const struct emu_nic_pair pair = { .from = { 0, 0 }, .to = { 4, 0 } };
    struct emu_nic_stream s = { .kind = EMU_NIC_MESSAGE, .pairs = &pair, .n_pairs = 1, .bytes = 8, .operations = 200 };
    struct emu_nic_stream_result r;

    (void)state;
    setup.host.recv_ps = 0;
    r = stream(&setup, &s);
    assert_int_equal(r.interrupts, 200);
    assert_close(r.operations_per_s, 1 / 2e-6, 0.02);
    s.bytes = 64;
    r = stream(&setup, &s);
    assert_int_equal(r.interrupts, 400);
    assert_close(r.operations_per_s, 1 / 4.5e-6, 0.02);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_generic_host_is_interrupted_once_or_twice),
        cmocka_unit_test(test_generic_host_waits_for_the_match_before_data_move),
        cmocka_unit_test(test_generic_get_is_one_request_and_a_stream),
        cmocka_unit_test(test_interrupts_bound_a_stream_of_small_puts),
    };

    return cmocka_run_group_tests(tests, setup_group, teardown_group);
}
