/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The NIC model's operations: how much each stage adds to them, the packets that they become, the events that tell of
 * them, and what is refused. Elsewhere: rates (test_nic_rates.c), messages (test_nic_message.c), hosts that match
 * messages themselves (test_nic_generic.c).
 */
#include <errno.h>

#include "tests/unit/model/nic_fixture.h"

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

/* ---- packets and events ---- */

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_stage_adds_itself_to_the_latencies_that_pass_it),
        cmocka_unit_test(test_each_hop_adds_the_routers_time),
        cmocka_unit_test(test_api_overhead_is_added_once),
        cmocka_unit_test(test_packets_have_the_sizes_of_the_source),
        cmocka_unit_test(test_events_say_what_happened),
        cmocka_unit_test(test_sequence_numbers_come_round),
        cmocka_unit_test(test_threads_change_nothing),
        cmocka_unit_test(test_lost_packets_end_a_scenario_with_an_error),
        cmocka_unit_test(test_what_cannot_be_is_refused),
    };

    return cmocka_run_group_tests(tests, setup_group, teardown_group);
}
