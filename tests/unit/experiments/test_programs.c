/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages that wait for others, in the packet simulator.
 */
#include <errno.h>
#include <string.h>

#include "emunic/experiments/traffic.h"
#include "tests/unit/fabric/fixture.h"

/* Runs a program to its end; -EINVAL: it was refused. */
static int play(const struct emu_machine *m, struct emu_messages program, uint32_t n_threads, uint64_t *done_ps,
                uint64_t *left_out)
{
    const struct emu_generator_options options = { .pattern = EMU_PATTERN_MESSAGES, .messages = program };
    const struct emu_sim_options sim_options = { .seed = 1, .n_threads = n_threads };
    struct emu_generator *gen;
    struct emu_sim *sim;
    int r = emu_generator_create(m, &options, &gen, NULL, 0);

    if (r < 0)
        return r;
    assert_int_equal(emu_sim_create(m, NULL, emu_generator_traffic(gen), &sim_options, &sim), 0);
    assert_int_equal(emu_sim_run(sim, UINT64_C(1) << 60), EMU_SIM_EMPTY);
    for (size_t i = 0; i < program.n; i++)
        done_ps[i] = emu_generator_message_done_ps(gen, i);
    *left_out = emu_generator_messages_left(gen);
    emu_sim_destroy(sim);
    emu_generator_destroy(gen);
    return 0;
}

/* Two rounds between nodes of two groups, each answer 50 ns behind its question; node 9 waits for both. */
static void test_messages_wait_for_those_before(void **state)
{
    struct emu_message list[] = {
        { .src_nid = 0, .dst_nid = 16, .bytes = 1000 },
        { .start_ps = 50000, .src_nid = 16, .dst_nid = 0, .bytes = 1000, .first_after = 0, .n_after = 1 },
        { .start_ps = 50000, .src_nid = 0, .dst_nid = 16, .bytes = 1000, .first_after = 1, .n_after = 1 },
        { .start_ps = 50000, .src_nid = 16, .dst_nid = 9, .bytes = 8, .first_after = 2, .n_after = 1 },
        { .src_nid = 3, .dst_nid = 9, .bytes = 8 },
        { .src_nid = 9, .dst_nid = 0, .bytes = 8, .first_after = 3, .n_after = 2 },
    };
    uint32_t after[] = { 0, 1, 2, 3, 4 };
    struct emu_messages program = { list, 6, after, 5, true };
    struct emu_machine *m = load("aries:groups=2,chassis=1,blades=4,cables_per_bundle=2");
    uint64_t done_ps[6], again_ps[6], left;

    (void)state;
    assert_int_equal(play(m, program, 1, done_ps, &left), 0);
    assert_int_equal(left, 0);
    for (size_t i = 1; i < 4; i++) {
        uint64_t one_way_ps = i < 3 ? done_ps[0] : 0;

        /* The way back is as long, but links differ in their wires; decisions are made clock by clock. */
        assert_true(done_ps[i] >= done_ps[i - 1] + 50000 + one_way_ps / 2);
        assert_true(i == 3 || done_ps[i] <= done_ps[i - 1] + 50000 + 2 * one_way_ps);
    }
    assert_true(done_ps[4] < done_ps[0]); /* nobody held it up */
    assert_true(done_ps[5] > done_ps[3]); /* the last one that it waits for */
    assert_int_equal(play(m, program, 3, again_ps, &left), 0);
    assert_memory_equal(done_ps, again_ps, sizeof(done_ps));
    emu_machine_destroy(m);
}

static void test_messages_that_could_wait_for_ever_are_refused(void **state)
{
    struct emu_message list[] = {
        { .src_nid = 0, .dst_nid = 1, .bytes = 8 },
        { .src_nid = 1, .dst_nid = 0, .bytes = 8, .n_after = 1 },
    };
    uint32_t after[] = { 0 };
    struct emu_messages program = { list, 2, after, 1, true };
    struct emu_machine *m = load("aries:groups=1,chassis=1,blades=4");
    uint64_t done_ps[2], left;

    (void)state;
    assert_int_equal(play(m, program, 1, done_ps, &left), 0);
    after[0] = 1; /* itself */
    assert_int_equal(play(m, program, 1, done_ps, &left), -EINVAL);
    after[0] = 0;
    list[0].dst_nid = 2; /* arrives elsewhere */
    assert_int_equal(play(m, program, 1, done_ps, &left), -EINVAL);
    list[0].dst_nid = 1;
    list[1].n_after = 2; /* more than there is */
    assert_int_equal(play(m, program, 1, done_ps, &left), -EINVAL);
    list[1].n_after = 1;
    program.is_program = false; /* the order of starts is another one */
    assert_int_equal(play(m, program, 1, done_ps, &left), -EINVAL);
    emu_machine_destroy(m);
}

/* A packet is lost on the way, so its message never arrives and nobody who waits for it leaves. */
static void test_who_waits_for_a_lost_message_is_left(void **state)
{
    struct emu_message list[] = {
        { .src_nid = 0, .dst_nid = 4, .bytes = 8 },
        { .src_nid = 4, .dst_nid = 0, .bytes = 8, .n_after = 1 },
        { .src_nid = 4, .dst_nid = 8, .bytes = 8 },
    };
    uint32_t after[] = { 0 };
    struct emu_machine *m = load("aries:groups=1,chassis=1,blades=4");
    const struct emu_generator_options options = { .pattern = EMU_PATTERN_MESSAGES,
                                                   .messages = { list, 3, after, 1, true } };
    const struct emu_sim_options sim_options = { .seed = 1 };
    struct emu_fault_map *faults;
    struct emu_generator *gen;
    struct emu_sim *sim;

    (void)state;
    assert_int_equal(emu_fault_map_create(m, &faults), 0);
    assert_int_equal(emu_fault_map_set_link(faults, emu_machine_n_nodes(m) + 4, false), 0); /* to node 4 */
    assert_int_equal(emu_generator_create(m, &options, &gen, NULL, 0), 0);
    assert_int_equal(emu_sim_create(m, faults, emu_generator_traffic(gen), &sim_options, &sim), 0);
    assert_int_equal(emu_sim_run(sim, UINT64_C(1) << 60), EMU_SIM_EMPTY);
    assert_int_equal(emu_generator_message_done_ps(gen, 0), 0);
    assert_int_equal(emu_generator_messages_left(gen), 2);
    emu_sim_destroy(sim);
    emu_generator_destroy(gen);
    emu_fault_map_destroy(faults);
    emu_machine_destroy(m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_messages_wait_for_those_before),
        cmocka_unit_test(test_messages_that_could_wait_for_ever_are_refused),
        cmocka_unit_test(test_who_waits_for_a_lost_message_is_left),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
