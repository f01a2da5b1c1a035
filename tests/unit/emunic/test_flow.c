/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Packets and flits of transactions: the formula of abi/flow.h with the format of aries.yaml, against the figures of
 * spec/machines.md 2.3 (put of 64 bytes 14 + 1 flits, get 3 + 12).
 */
#include "emunic/abi/flow.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "emunic/fabric/machine.h"

static struct emu_machine *machine;
static const struct emu_packet_format *format;
static struct emu_flow_counts flow;

static int load(void **state)
{
    char err[256];

    (void)state;
    if (emu_machine_load("aries", EMU_TEST_MACHINE_DIR, &machine, err, sizeof(err)) < 0)
        return -1;
    format = &emu_machine_nic(machine)->format;
    return 0;
}

static int unload(void **state)
{
    (void)state;
    emu_machine_destroy(machine);
    return 0;
}

static int clear(void **state)
{
    (void)state;
    flow = (struct emu_flow_counts){ 0 };
    return 0;
}

static void expect(uint64_t request_packets, uint64_t request_flits, uint64_t response_packets, uint64_t response_flits)
{
    assert_int_equal(flow.request_packets, request_packets);
    assert_int_equal(flow.request_flits, request_flits);
    assert_int_equal(flow.response_packets, response_packets);
    assert_int_equal(flow.response_flits, response_flits);
}

static void test_put_of_64_bytes_takes_the_published_flits(void **state)
{
    (void)state;
    emu_flow_add_put(&flow, format, 64);
    expect(1, 14, 1, 1);
    assert_int_equal(flow.operations, 1);
    assert_int_equal(flow.payload_bytes, 64);
}

static void test_get_of_64_bytes_takes_the_published_flits(void **state)
{
    (void)state;
    emu_flow_add_get(&flow, format, 64, 0);
    expect(1, 3, 1, 12);
}

static void test_transfer_of_no_bytes_sends_one_packet_each_way(void **state)
{
    (void)state;
    emu_flow_add_put(&flow, format, 0);
    expect(1, 3, 1, 1);
    clear(state);
    emu_flow_add_get(&flow, format, 0, 0);
    expect(1, 3, 1, 1);
}

static void test_data_flits_round_up(void **state)
{
    (void)state;
    assert_int_equal(emu_data_flits(format, 0), 0);
    assert_int_equal(emu_data_flits(format, 1), 1);
    assert_int_equal(emu_data_flits(format, 6), 1);
    assert_int_equal(emu_data_flits(format, 7), 2);
    assert_int_equal(emu_data_flits(format, 64), 11);
}

static void test_each_packet_rounds_its_own_payload(void **state)
{
    (void)state;
    emu_flow_add_put(&flow, format, 65);
    expect(2, 2 * 3 + 11 + 1, 2, 2);
    clear(state);
    emu_flow_add_put(&flow, format, 128);
    expect(2, 2 * 14, 2, 2);
    clear(state);
    emu_flow_add_get(&flow, format, 4096, 0);
    expect(64, 64 * 3, 64, 64 * 12);
}

static void test_operands_go_with_the_request(void **state)
{
    (void)state;
    emu_flow_add_get(&flow, format, 8, 16);
    expect(1, 3 + 3, 1, 1 + 2);
    clear(state);
    emu_flow_add_get(&flow, format, 8, 8);
    expect(1, 3 + 2, 1, 1 + 2);
}

static void test_counters_add_up(void **state)
{
    (void)state;
    emu_flow_add_put(&flow, format, 64);
    emu_flow_add_get(&flow, format, 64, 0);
    emu_flow_add_put(&flow, format, 0);
    expect(3, 14 + 3 + 3, 3, 1 + 12 + 1);
    assert_int_equal(flow.operations, 3);
    assert_int_equal(flow.payload_bytes, 128);
    assert_int_equal(flow.errors, 0);
}

static void test_largest_block_transfer_is_counted_exactly(void **state)
{
    uint64_t bytes = 1ull << 32;

    (void)state;
    emu_flow_add_put(&flow, format, bytes);
    expect(bytes / 64, bytes / 64 * 14, bytes / 64, bytes / 64);
}

#define UNIT(name) cmocka_unit_test_setup(name, clear)

int main(void)
{
    const struct CMUnitTest tests[] = {
        UNIT(test_put_of_64_bytes_takes_the_published_flits),
        UNIT(test_get_of_64_bytes_takes_the_published_flits),
        UNIT(test_transfer_of_no_bytes_sends_one_packet_each_way),
        UNIT(test_data_flits_round_up),
        UNIT(test_each_packet_rounds_its_own_payload),
        UNIT(test_operands_go_with_the_request),
        UNIT(test_counters_add_up),
        UNIT(test_largest_block_transfer_is_counted_exactly),
    };

    return cmocka_run_group_tests(tests, load, unload);
}
