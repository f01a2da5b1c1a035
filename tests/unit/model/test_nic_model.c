/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The NIC model against arithmetic: which parameter adds how much to what, which server bounds which rate. The machine
 * is a small Aries one; nodes 0 to 3 share a router, so that between them no link but the NICs' own is in the way.
 */
#include "emunic/model/nic_model.h"
#include "emunic/model/nic_rates.h"
#include "emunic/model/nic_scenario.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "tests/unit/fabric/fixture.h"

#define NS 1000u

static struct emu_machine *machine; /* wide links at the NICs: 42 GB/s */

static int setup_group(void **state)
{
    (void)state;
    machine = load("aries:groups=1,chassis=2,blades=4,links.processor.lanes=8");
    return 0;
}

static int teardown_group(void **state)
{
    (void)state;
    emu_machine_destroy(machine);
    return 0;
}

/* The file's values follow the calibration; what the arithmetic of the tests needs is set here. */
static struct emu_nic_setup setup_of(const struct emu_machine *m)
{
    struct emu_nic_setup setup = {
        .machine = m, .host = *emu_machine_node_params(m), .mode = EMU_MODE_MINIMAL, .seed = 1
    };
    struct emu_node_params *host = &setup.host;

    host->issue_ps = 250 * NS;
    host->write_ps = 250 * NS;
    host->out_ps = 100 * NS;
    host->in_ps = 100 * NS;
    host->put_gap_ps = 400 * NS;
    host->store_kbs = 0;
    host->launch_gap_ps = 133333;
    host->launch_node_gap_ps = 8333;
    host->launch_mdh_percent = 150;
    host->interface_kbs = 16000000;
    host->overhead_bytes = 24;
    host->duplex_share = 55000;
    host->packet_gap_ps = 0;
    host->tile_kbs = 0;
    host->bte_kbs = 0;
    host->amo_miss_ps = 8 * NS;
    host->pte_miss_ps = 12 * NS;
    host->pte_entries = 1024;
    host->send_ps = 250 * NS;
    host->recv_ps = 250 * NS;
    host->send_end_ps = 0;
    host->eager_bytes_max = 8192;
    host->copy_kbs = 0;
    host->registration = EMU_REGISTRATION_HIT;
    host->register_hit_ps = 100 * NS;
    host->register_ps = 1000 * NS;
    host->register_page_ps = 50 * NS;
    host->register_page_bytes = 4096;
    host->local_ps = 300 * NS;
    host->local_kbs = 5000000;
    host->local_is_shared = 0;
    return setup;
}

static uint64_t latency(const struct emu_nic_setup *setup, enum emu_nic_kind kind, uint32_t bytes)
{
    const struct emu_nic_pingpong p = { .kind = kind, .a = { 0, 0 }, .b = { 4, 0 }, .bytes = bytes };
    struct emu_nic_pingpong_result r;

    assert_int_equal(emu_nic_pingpong(setup, &p, &r), 0);
    return r.latency_ps;
}

static struct emu_nic_stream_result stream(const struct emu_nic_setup *setup, const struct emu_nic_stream *s)
{
    struct emu_nic_stream_result r;

    assert_int_equal(emu_nic_stream(setup, s, NULL, &r), 0);
    return r;
}

/* Times of the engine are cut to its clock in places: a few of them. */
static void assert_time(uint64_t got, uint64_t expected)
{
    uint64_t slack = 3 * emu_machine_router(machine)->clock_ps;

    assert_in_range(got, expected - slack, expected + slack);
}

static void assert_close(double got, double expected, double fraction)
{
    if (fabs(got - expected) > fraction * expected)
        fail_msg("%g is not within %g %% of %g", got, fraction * 100, expected);
}

/* ---- latencies ---- */

static void test_each_stage_adds_itself_to_the_latencies_that_pass_it(void **state)
{
    static const struct {
        size_t parameter;
        uint32_t put, get, message; /* times that each passes the stage */
    } stages[] = {
        { offsetof(struct emu_node_params, issue_ps), 1, 1, 1 },
        { offsetof(struct emu_node_params, out_ps), 1, 2, 1 },
        { offsetof(struct emu_node_params, in_ps), 1, 2, 1 },
        { offsetof(struct emu_node_params, write_ps), 1, 1, 1 },
        { offsetof(struct emu_node_params, read_ps), 0, 1, 0 },
        { offsetof(struct emu_node_params, event_ps), 0, 1, 0 },
        { offsetof(struct emu_node_params, send_ps), 0, 0, 1 },
        { offsetof(struct emu_node_params, recv_ps), 0, 0, 1 },
    };
    struct emu_nic_setup setup = setup_of(machine);
    uint64_t put = latency(&setup, EMU_NIC_PUT, 8);
    uint64_t get = latency(&setup, EMU_NIC_GET, 8);
    uint64_t message = latency(&setup, EMU_NIC_MESSAGE, 8);

    (void)state;
    for (size_t i = 0; i < sizeof(stages) / sizeof(stages[0]); i++) {
        struct emu_nic_setup longer = setup;
        uint32_t *parameter = (uint32_t *)((char *)&longer.host + stages[i].parameter);

        *parameter += 1000 * NS;
        assert_time(latency(&longer, EMU_NIC_PUT, 8), put + stages[i].put * UINT64_C(1000) * NS);
        assert_time(latency(&longer, EMU_NIC_GET, 8), get + stages[i].get * UINT64_C(1000) * NS);
        assert_time(latency(&longer, EMU_NIC_MESSAGE, 8), message + stages[i].message * UINT64_C(1000) * NS);
    }
}

static void test_each_hop_adds_the_routers_time(void **state)
{
    struct emu_nic_setup setup = setup_of(machine);
    struct emu_nic_pingpong p = { .kind = EMU_NIC_PUT, .a = { 0, 0 }, .bytes = 8 };
    struct emu_nic_pingpong_result near, far, farther;

    (void)state;
    p.b.nid = 1;
    assert_int_equal(emu_nic_pingpong(&setup, &p, &near), 0);
    p.b.nid = 4; /* one green hop */
    assert_int_equal(emu_nic_pingpong(&setup, &p, &far), 0);
    p.b.nid = 20; /* a green and a black one */
    assert_int_equal(emu_nic_pingpong(&setup, &p, &farther), 0);
    assert_in_range(far.latency_ps - near.latency_ps, 100 * NS, 110 * NS); /* and the slower link */
    assert_time(farther.latency_ps, far.latency_ps + 100 * NS);
}

static void test_api_overhead_is_added_once(void **state)
{
    struct emu_nic_setup setup = setup_of(machine);
    struct emu_nic_pingpong p = { .kind = EMU_NIC_PUT, .a = { 0, 0 }, .b = { 4, 0 }, .bytes = 8 };
    struct emu_nic_pingpong_result plain, shmem, caf;

    (void)state;
    setup.host.shmem_ps = 3000 * NS;
    setup.host.caf_ps = 3100 * NS;
    assert_int_equal(emu_nic_pingpong(&setup, &p, &plain), 0);
    p.api = EMU_NIC_API_SHMEM;
    assert_int_equal(emu_nic_pingpong(&setup, &p, &shmem), 0);
    p.api = EMU_NIC_API_CAF;
    assert_int_equal(emu_nic_pingpong(&setup, &p, &caf), 0);
    assert_time(shmem.latency_ps, plain.latency_ps + 3000 * NS);
    assert_time(caf.latency_ps, plain.latency_ps + 3100 * NS);
}

static void test_eager_copies_cost_both_ends(void **state)
{
    struct emu_nic_setup setup = setup_of(machine);
    uint64_t before = latency(&setup, EMU_NIC_MESSAGE, 4096);

    (void)state;
    setup.host.copy_kbs = 4096000; /* 4 096 bytes in a microsecond */
    assert_time(latency(&setup, EMU_NIC_MESSAGE, 4096), before + 2000 * NS);
}

/* ---- rates ---- */

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

/* ---- exchange ---- */

static void test_work_behind_a_send_shows_in_an_exchange_only(void **state)
{
    struct emu_nic_setup setup = setup_of(machine);
    const struct emu_nic_pingpong p = { .kind = EMU_NIC_MESSAGE, .a = { 0, 0 }, .b = { 4, 0 }, .bytes = 8 };
    struct emu_nic_exchange_result before, after;
    uint64_t one_way = latency(&setup, EMU_NIC_MESSAGE, 8);

    (void)state;
    assert_int_equal(emu_nic_exchange(&setup, &p, &before), 0);
    assert_close((double)before.round_ps, (double)one_way, 0.05);
    setup.host.send_end_ps = 1500 * NS;
    setup.host.send_end_bytes_max = 100;
    assert_time(latency(&setup, EMU_NIC_MESSAGE, 8), one_way);
    assert_int_equal(emu_nic_exchange(&setup, &p, &after), 0);
    assert_true(after.round_ps > before.round_ps + 500 * NS);
    setup.host.send_end_bytes_min = 9; /* not for this size */
    assert_int_equal(emu_nic_exchange(&setup, &p, &after), 0);
    assert_time(after.round_ps, before.round_ps);
}

/* ---- generic hosts ---- */

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

/* ---- within a node ---- */

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

static void test_local_message_has_both_overheads_and_no_network(void **state)
{
    struct emu_nic_setup setup = setup_of(machine);
    const struct emu_nic_pingpong p = { .kind = EMU_NIC_MESSAGE, .a = { 0, 0 }, .b = { 0, 1 }, .bytes = 0 };
    struct emu_nic_pingpong_result r;

    (void)state;
    assert_int_equal(emu_nic_pingpong(&setup, &p, &r), 0);
    assert_time(r.latency_ps, (uint64_t)setup.host.send_ps + setup.host.local_ps + setup.host.recv_ps);
}

/* ---- packets ---- */

/* A program that counts what it is told. */
struct tally {
    uint32_t n_completed;
    uint32_t n_arrived;
    struct emu_nic_event last;
    uint64_t completed_ps, arrived_ps;
};

static void tally_completed(void *ctx, struct emu_nic_model *nm, const struct emu_nic_event *e)
{
    struct tally *t = ctx;

    (void)nm;
    t->n_completed++;
    t->completed_ps = e->at_ps;
    t->last = *e;
}

static void tally_arrived(void *ctx, struct emu_nic_model *nm, const struct emu_nic_event *e)
{
    struct tally *t = ctx;

    (void)nm;
    t->n_arrived++;
    t->arrived_ps = e->at_ps;
    t->last = *e;
}

static struct emu_nic_counters counters_of(struct emu_nic_model *nm, uint32_t nid)
{
    struct emu_nic_counters c;

    emu_nic_counters(nm, nid, &c);
    return c;
}

static struct emu_nic_model *model_of(const struct emu_nic_setup *setup, struct tally *t)
{
    const struct emu_nic_program program = { t, tally_completed, tally_arrived };
    struct emu_nic_model *nm;

    assert_int_equal(emu_nic_model_create(setup, &program, &nm), 0);
    return nm;
}

static void test_packets_have_the_sizes_of_the_source(void **state)
{
    struct emu_nic_setup setup = setup_of(machine);
    struct tally t = { 0 };
    struct emu_nic_model *nm = model_of(&setup, &t);
    struct emu_nic_op op = { .kind = EMU_NIC_PUT, .to = { 5, 0 }, .bytes = 640 };
    struct emu_nic_counters near, far;

    (void)state;
    assert_int_equal(emu_nic_post(nm, (struct emu_nic_proc){ 0, 0 }, &op, 0), 0);
    assert_int_equal(emu_sim_run(emu_nic_model_sim(nm), UINT64_MAX), EMU_SIM_EMPTY);
    near = counters_of(nm, 0);
    far = counters_of(nm, 5);
    assert_int_equal(near.request_packets, 10);
    assert_int_equal(near.request_units, 10 * 14);
    assert_int_equal(far.response_packets, 10);
    assert_int_equal(far.response_units, 10 * 1);
    assert_int_equal(far.payload_received, 640);
    emu_nic_model_destroy(nm);

    nm = model_of(&setup, &t);
    op.kind = EMU_NIC_GET;
    assert_int_equal(emu_nic_post(nm, (struct emu_nic_proc){ 0, 0 }, &op, 0), 0);
    assert_int_equal(emu_sim_run(emu_nic_model_sim(nm), UINT64_MAX), EMU_SIM_EMPTY);
    near = counters_of(nm, 0);
    far = counters_of(nm, 5);
    assert_int_equal(near.request_units, 10 * 3);
    assert_int_equal(far.response_units, 10 * 12);
    assert_int_equal(near.payload_received, 640);
    assert_int_equal(t.n_completed, 2);
    assert_int_equal(t.n_arrived, 0); /* nobody was to be told */
    emu_nic_model_destroy(nm);
}

static void test_events_say_what_happened(void **state)
{
    struct emu_nic_setup setup = setup_of(machine);
    struct tally t = { 0 };
    struct emu_nic_model *nm = model_of(&setup, &t);
    struct emu_nic_op op = { .kind = EMU_NIC_AMO, .to = { 5, 3 }, .bytes = 8, .is_told = true, .user = 77 };

    (void)state;
    assert_int_equal(emu_nic_post(nm, (struct emu_nic_proc){ 0, 2 }, &op, 5000 * NS), 0);
    (void)emu_sim_run(emu_nic_model_sim(nm), UINT64_MAX);
    assert_int_equal(t.n_completed, 1);
    assert_int_equal(t.n_arrived, 1);
    /* Written there before its answer is here: arrived() may be the later one by the write's latency. */
    if (t.last.at.nid == 0) {
        assert_int_equal(t.last.user, 77);
        assert_int_equal(t.last.at.proc, 2);
        assert_int_equal(t.last.peer.nid, 5);
        assert_int_equal(t.last.peer.proc, 3);
    } else {
        assert_int_equal(t.last.at.proc, 3);
        assert_int_equal(t.last.peer.nid, 0);
        assert_int_equal(t.last.peer.proc, 2);
    }
    assert_int_equal(t.last.kind, EMU_NIC_AMO);
    assert_int_equal(t.last.bytes, 8);
    assert_true(t.last.at_ps > 5000 * NS);
    emu_nic_model_destroy(nm);
}

static void test_protocol_follows_size(void **state)
{
    struct emu_nic_setup setup = setup_of(machine);

    (void)state;
    for (uint32_t who = EMU_RENDEZVOUS_GET; who <= EMU_RENDEZVOUS_PUT; who++) {
        struct tally t = { 0 };
        struct emu_nic_model *nm;
        struct emu_nic_op op = { .kind = EMU_NIC_MESSAGE, .to = { 5, 0 }, .user = 1 };

        setup.host.rendezvous = who;
        nm = model_of(&setup, &t);
        op.bytes = setup.host.eager_bytes_max;
        assert_int_equal(emu_nic_post(nm, (struct emu_nic_proc){ 0, 0 }, &op, 0), 0);
        op.bytes++;
        assert_int_equal(emu_nic_post(nm, (struct emu_nic_proc){ 0, 0 }, &op, 0), 0);
        (void)emu_sim_run(emu_nic_model_sim(nm), UINT64_MAX);
        assert_int_equal(counters_of(nm, 0).eager_messages, 1);
        assert_int_equal(counters_of(nm, 0).rendezvous_messages, 1);
        assert_int_equal(counters_of(nm, 5).payload_received, 2 * setup.host.eager_bytes_max + 1);
        assert_int_equal(t.n_arrived, 2);
        assert_int_equal(t.n_completed, 2);
        emu_nic_model_destroy(nm);
    }
}

/* When a message that nobody else disturbs is complete: [0] received, [1] told to the sender. */
static void time_message(const struct emu_nic_setup *setup, uint32_t bytes, uint64_t times_out[2])
{
    struct tally t = { 0 };
    struct emu_nic_model *nm = model_of(setup, &t);
    const struct emu_nic_op op = { .kind = EMU_NIC_MESSAGE, .to = { 4, 0 }, .bytes = bytes };

    assert_int_equal(emu_nic_post(nm, (struct emu_nic_proc){ 0, 0 }, &op, 0), 0);
    (void)emu_sim_run(emu_nic_model_sim(nm), UINT64_MAX);
    assert_int_equal(t.n_arrived, 1);
    assert_int_equal(t.n_completed, 1);
    times_out[0] = t.arrived_ps;
    times_out[1] = t.completed_ps;
    emu_nic_model_destroy(nm);
}

static void test_parts_of_a_rendezvous_cost_their_times(void **state)
{
    /* Get: request to send; request of the get, its answer. Put: request, its answer, the data. */
    static const struct {
        size_t parameter;
        uint32_t times[2]; /* of a get, of a put */
    } parts[] = {
        { offsetof(struct emu_node_params, send_ps), { 1, 2 } },
        { offsetof(struct emu_node_params, recv_ps), { 2, 3 } },
        { offsetof(struct emu_node_params, issue_ps), { 2, 3 } },
        { offsetof(struct emu_node_params, out_ps), { 3, 3 } },
        { offsetof(struct emu_node_params, in_ps), { 3, 3 } },
        { offsetof(struct emu_node_params, write_ps), { 2, 3 } },
        { offsetof(struct emu_node_params, read_ps), { 1, 0 } },
        { offsetof(struct emu_node_params, register_hit_ps), { 2, 2 } },
        { offsetof(struct emu_node_params, bte_start_ps), { 1, 1 } },
    };
    struct emu_nic_setup setup = setup_of(machine);

    (void)state;
    for (uint32_t who = EMU_RENDEZVOUS_GET; who <= EMU_RENDEZVOUS_PUT; who++) {
        uint64_t before[2], after[2];

        setup.host.rendezvous = who;
        time_message(&setup, 16384, before);
        for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++) {
            struct emu_nic_setup longer = setup;

            *(uint32_t *)((char *)&longer.host + parts[i].parameter) += 1000 * NS;
            time_message(&longer, 16384, after);
            assert_time(after[0], before[0] + parts[i].times[who] * UINT64_C(1000) * NS);
        }
    }
}

/* Two parts: the first one is on its way and copied out while the second is copied, which takes longest here. */
static void test_parts_of_an_eager_message_overlap(void **state)
{
    const uint64_t copy_ps = UINT64_C(8192) * 1000000 / 2000; /* of a part, at 2 GB/s */
    struct emu_nic_setup setup = setup_of(machine);
    uint64_t one[2], whole[2], parts[2], longer[2];

    (void)state;
    setup.host.eager_bytes_max = 65536;
    setup.host.eager_buffer_bytes = 0;
    time_message(&setup, 8192, one); /* without copies */
    setup.host.copy_kbs = 2000000;
    time_message(&setup, 16384, whole);
    setup.host.eager_buffer_bytes = 8192;
    time_message(&setup, 16384, parts);
    assert_time(parts[0], one[0] + 3 * copy_ps + setup.host.send_ps + setup.host.put_gap_ps);
    assert_true(parts[0] < whole[0]);
    setup.host.send_ps += 100 * NS;
    time_message(&setup, 16384, longer);
    assert_time(longer[0], parts[0] + 200 * NS); /* each part is sent */
    setup.host.send_ps -= 100 * NS;
    setup.host.recv_ps += 100 * NS;
    time_message(&setup, 16384, longer);
    assert_time(longer[0], parts[0] + 100 * NS); /* the first is received while the second comes */
}

static void test_a_message_that_fits_a_buffer_goes_whole(void **state)
{
    struct emu_nic_setup setup = setup_of(machine);
    uint64_t whole[2], fits[2];

    (void)state;
    setup.host.copy_kbs = 10000000;
    setup.host.eager_buffer_bytes = 0;
    time_message(&setup, 8192, whole);
    setup.host.eager_buffer_bytes = 8192;
    time_message(&setup, 8192, fits);
    assert_int_equal(fits[0], whole[0]);
    assert_int_equal(fits[1], whole[1]);
}

static void test_registration_costs_by_pages_and_cache(void **state)
{
    struct emu_nic_setup setup = setup_of(machine);

    (void)state;
    for (uint32_t who = EMU_RENDEZVOUS_GET; who <= EMU_RENDEZVOUS_PUT; who++) {
        uint64_t hit[2], miss[2], eager[2];

        setup.host.rendezvous = who;
        setup.host.registration = EMU_REGISTRATION_HIT;
        time_message(&setup, 3 * 4096 + 1, hit);
        time_message(&setup, 8192, eager);
        setup.host.registration = EMU_REGISTRATION_MISS;
        time_message(&setup, 3 * 4096 + 1, miss);
        assert_time(miss[0], hit[0] + UINT64_C(2) * (1000 + 4 * 50) * NS); /* at both ends */
        time_message(&setup, 8192, miss);
        assert_int_equal(miss[0], eager[0]); /* eager data go through buffers that are registered */
    }
}

static void test_sender_hears_of_a_fetched_message(void **state)
{
    struct emu_nic_setup setup = setup_of(machine);
    uint64_t times[2], later[2];

    (void)state;
    setup.host.rendezvous = EMU_RENDEZVOUS_GET;
    time_message(&setup, 16384, times);
    assert_true(times[1] > times[0] + (250 + 250 + 100 + 100 + 250 + 250) * NS); /* a message of its own */
    setup.host.send_ps += 1000 * NS;
    time_message(&setup, 16384, later);
    assert_time(later[1], times[1] + UINT64_C(2000) * NS); /* the request to send and the end */
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

static void test_sequence_numbers_come_round(void **state)
{
    struct emu_nic_setup setup = setup_of(machine);
    struct emu_nic_pair pairs[16];
    const struct emu_nic_stream s = {
        .kind = EMU_NIC_LAUNCH, .pairs = pairs, .n_pairs = 16, .bytes = 8, .operations = 4200
    };
    struct emu_nic_stream_result r;

    (void)state;
    setup.host.launch_gap_ps = 1;
    setup.host.launch_node_gap_ps = 0;
    emu_nic_pairs_between(0, 1, 16, pairs);
    r = stream(&setup, &s); /* 67 200 operations of one node */
    assert_close(r.operations_per_s, 160e6, 0.05);
}

static void test_scattered_packets_make_whole_messages(void **state)
{
    struct emu_nic_setup setup = setup_of(machine);
    struct emu_nic_pair pairs[24];
    struct emu_nic_stream s = {
        .kind = EMU_NIC_MESSAGE, .pairs = pairs, .n_pairs = 24, .is_bidirectional = true, .operations = 5
    };

    (void)state;
    setup.mode = EMU_MODE_ADAPTIVE_0;
    for (uint32_t i = 0; i < 24; i++) /* everybody to somebody, by ways that cross */
        pairs[i] = (struct emu_nic_pair){ { i, 0 }, { (i * 7 + 11) % 32, 1 } };
    s.bytes = 3000;
    assert_true(stream(&setup, &s).mbytes_per_s > 0);
    s.bytes = 12000;
    assert_true(stream(&setup, &s).mbytes_per_s > 0);
    setup.host.rendezvous = EMU_RENDEZVOUS_PUT;
    assert_true(stream(&setup, &s).mbytes_per_s > 0);
}

static void test_threads_change_nothing(void **state)
{
    struct emu_nic_setup setup = setup_of(machine);
    struct emu_nic_pair pairs[16];
    double rates[2][16];
    const struct emu_nic_stream s = { .kind = EMU_NIC_MESSAGE,
                                      .pairs = pairs,
                                      .n_pairs = 16,
                                      .bytes = 9000,
                                      .is_bidirectional = true,
                                      .operations = 10 };
    struct emu_nic_stream_result r;

    (void)state;
    setup.mode = EMU_MODE_ADAPTIVE_0;
    for (uint32_t i = 0; i < 16; i++)
        pairs[i] = (struct emu_nic_pair){ { i, 0 }, { 31 - i, 0 } };
    for (uint32_t i = 0; i < 2; i++) {
        setup.n_threads = i + 1;
        assert_int_equal(emu_nic_stream(&setup, &s, rates[i], &r), 0);
    }
    assert_memory_equal(rates[0], rates[1], sizeof(rates[0]));
}

static void test_lost_packets_end_a_scenario_with_an_error(void **state)
{
    struct emu_nic_setup setup = setup_of(machine);
    const struct emu_nic_pingpong p = { .kind = EMU_NIC_PUT, .a = { 0, 0 }, .b = { 4, 0 }, .bytes = 8 };
    struct emu_nic_pingpong_result r;
    struct emu_fault_map *faults;

    (void)state;
    assert_int_equal(emu_fault_map_create(machine, &faults), 0);
    assert_int_equal(emu_fault_map_set_node(faults, 4, false), 0);
    setup.faults = faults;
    assert_int_equal(emu_nic_pingpong(&setup, &p, &r), -EIO);
    emu_fault_map_destroy(faults);
}

static void test_what_cannot_be_is_refused(void **state)
{
    struct emu_nic_setup setup = setup_of(machine);
    struct tally t = { 0 };
    struct emu_nic_model *nm = model_of(&setup, &t);
    const struct emu_nic_proc from = { 0, 0 };
    struct emu_nic_op op = { .kind = EMU_NIC_PUT, .to = { 32, 0 } };
    const struct emu_nic_stream nothing = { .kind = EMU_NIC_PUT };
    struct emu_nic_stream_result r;

    (void)state;
    assert_int_equal(emu_nic_post(nm, from, &op, 0), -EINVAL); /* no such node */
    op.to.nid = 4;
    assert_int_equal(emu_nic_post(nm, (struct emu_nic_proc){ 32, 0 }, &op, 0), -EINVAL);
    assert_int_equal(emu_nic_post(nm, (struct emu_nic_proc){ 0, EMU_NIC_PROCS_MAX }, &op, 0), -EINVAL);
    op.to.proc = EMU_NIC_PROCS_MAX;
    assert_int_equal(emu_nic_post(nm, from, &op, 0), -EINVAL);
    op.to.proc = 0;
    op.kind = EMU_NIC_KINDS;
    assert_int_equal(emu_nic_post(nm, from, &op, 0), -EINVAL);
    op.kind = EMU_NIC_AMO;
    op.bytes = 65;
    assert_int_equal(emu_nic_post(nm, from, &op, 0), -EINVAL); /* more than a packet */
    emu_nic_model_destroy(nm);
    emu_nic_model_destroy(NULL);
    assert_int_equal(emu_nic_stream(&setup, &nothing, NULL, &r), -EINVAL);
    setup.host.tile_nics = 0;
    assert_int_equal(emu_nic_stream(&setup, &nothing, NULL, &r), -EINVAL);
    assert_int_equal(emu_nic_model_create(&setup, &(struct emu_nic_program){ 0 }, &nm), -EINVAL);
}

/* ---- without packets ---- */

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
        cmocka_unit_test(test_each_stage_adds_itself_to_the_latencies_that_pass_it),
        cmocka_unit_test(test_each_hop_adds_the_routers_time),
        cmocka_unit_test(test_api_overhead_is_added_once),
        cmocka_unit_test(test_eager_copies_cost_both_ends),
        cmocka_unit_test(test_parts_of_a_rendezvous_cost_their_times),
        cmocka_unit_test(test_registration_costs_by_pages_and_cache),
        cmocka_unit_test(test_sender_hears_of_a_fetched_message),
        cmocka_unit_test(test_gets_both_ways_do_not_starve_each_other),
        cmocka_unit_test(test_one_nic_puts_at_its_packet_rate),
        cmocka_unit_test(test_window_over_round_trip_bounds_the_rate),
        cmocka_unit_test(test_interface_is_slower_when_both_ways_are_busy),
        cmocka_unit_test(test_slow_channels_bound_block_transfers),
        cmocka_unit_test(test_cores_and_the_nic_bound_launches),
        cmocka_unit_test(test_core_issues_puts_at_its_own_pace),
        cmocka_unit_test(test_nics_on_one_set_of_tiles_share_it),
        cmocka_unit_test(test_messages_are_bounded_by_the_slower_core),
        cmocka_unit_test(test_work_behind_a_send_shows_in_an_exchange_only),
        cmocka_unit_test(test_generic_host_is_interrupted_once_or_twice),
        cmocka_unit_test(test_generic_host_waits_for_the_match_before_data_move),
        cmocka_unit_test(test_generic_get_is_one_request_and_a_stream),
        cmocka_unit_test(test_interrupts_bound_a_stream_of_small_puts),
        cmocka_unit_test(test_copies_within_a_node_share_the_engine_or_do_not),
        cmocka_unit_test(test_local_message_has_both_overheads_and_no_network),
        cmocka_unit_test(test_packets_have_the_sizes_of_the_source),
        cmocka_unit_test(test_events_say_what_happened),
        cmocka_unit_test(test_protocol_follows_size),
        cmocka_unit_test(test_parts_of_an_eager_message_overlap),
        cmocka_unit_test(test_a_message_that_fits_a_buffer_goes_whole),
        cmocka_unit_test(test_block_transfers_wait_for_a_channel),
        cmocka_unit_test(test_block_transfers_have_a_rate_each),
        cmocka_unit_test(test_sequence_numbers_come_round),
        cmocka_unit_test(test_scattered_packets_make_whole_messages),
        cmocka_unit_test(test_threads_change_nothing),
        cmocka_unit_test(test_lost_packets_end_a_scenario_with_an_error),
        cmocka_unit_test(test_what_cannot_be_is_refused),
        cmocka_unit_test(test_amo_cache_has_its_knee),
        cmocka_unit_test(test_random_words_hit_as_often_as_they_fit),
    };

    return cmocka_run_group_tests(tests, setup_group, teardown_group);
}
