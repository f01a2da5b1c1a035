/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages in the NIC model, eager and by rendezvous: which protocol one takes, and what each part of it costs at
 * either end.
 */
#include "tests/unit/model/nic_fixture.h"

static void test_eager_copies_cost_both_ends(void **state)
{
    struct emu_nic_setup setup = setup_of(machine);
    uint64_t before = latency(&setup, EMU_NIC_MESSAGE, 4096);

    (void)state;
    setup.host.copy_kbs = 4096000; /* 4 096 bytes in a microsecond */
    assert_time(latency(&setup, EMU_NIC_MESSAGE, 4096), before + 2000 * NS);
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

static void test_local_message_has_both_overheads_and_no_network(void **state)
{
    struct emu_nic_setup setup = setup_of(machine);
    const struct emu_nic_pingpong p = { .kind = EMU_NIC_MESSAGE, .a = { 0, 0 }, .b = { 0, 1 }, .bytes = 0 };
    struct emu_nic_pingpong_result r;

    (void)state;
    assert_int_equal(emu_nic_pingpong(&setup, &p, &r), 0);
    assert_time(r.latency_ps, (uint64_t)setup.host.send_ps + setup.host.local_ps + setup.host.recv_ps);
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_eager_copies_cost_both_ends),
        cmocka_unit_test(test_parts_of_a_rendezvous_cost_their_times),
        cmocka_unit_test(test_registration_costs_by_pages_and_cache),
        cmocka_unit_test(test_sender_hears_of_a_fetched_message),
        cmocka_unit_test(test_work_behind_a_send_shows_in_an_exchange_only),
        cmocka_unit_test(test_local_message_has_both_overheads_and_no_network),
        cmocka_unit_test(test_protocol_follows_size),
        cmocka_unit_test(test_parts_of_an_eager_message_overlap),
        cmocka_unit_test(test_a_message_that_fits_a_buffer_goes_whole),
        cmocka_unit_test(test_scattered_packets_make_whole_messages),
    };

    return cmocka_run_group_tests(tests, setup_group, teardown_group);
}
