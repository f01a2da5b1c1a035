/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Pairs of processes on X1, XD1 and XT3, and the experiments on these machines that must pass: counts, audits and what
 * the hosts were fitted to.
 */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "emunic/experiments/cmp_program.h"
#include "emunic/experiments/cug.h"
#include "emunic/experiments/runner.h"
#include "emunic/experiments/tables.h"
#include "tests/unit/fabric/fixture.h"

/* The test of the running experiment. */
static void (*act)(struct emu_exp *x);

static int run_act(struct emu_exp *x)
{
    act(x);
    return 0;
}

static const struct emu_experiment act_experiment = { "XX-1", "x1", "AKPQ", "-", EMU_EXP_PACKETS, "a test", run_act };

static json_t *run(const struct emu_experiment *experiment, uint64_t seed)
{
    const struct emu_exp_context context = { .seed = seed, .n_threads = 1, .machine_dir = EMU_TEST_MACHINE_DIR };
    json_t *report = emu_exp_run(experiment, &context, NULL, NULL);

    assert_non_null(report);
    return report;
}

/* Inside an experiment, because machines are opened by it. */
static void inside(void (*what)(struct emu_exp *x))
{
    act = what;
    json_decref(run(&act_experiment, 1));
}

static void open_machine(struct emu_exp *x, const char *spec, struct cug *c)
{
    assert_int_equal(cug_open(x, spec, c), 0);
}

/* ---- pairs ---- */

static void test_ranks_fill_nodes_one_after_another(void **state)
{
    struct emu_nic_pair pairs[3];

    (void)state;
    assert_int_equal(cug_proc(5, 2).nid, 2);
    assert_int_equal(cug_proc(5, 2).proc, 1);
    cug_pairs(3, 7, 1, pairs);
    assert_int_equal(pairs[2].from.nid, 2);
    assert_int_equal(pairs[2].to.nid, 9);
    assert_int_equal(pairs[2].to.proc, 0);
}

static void check_one_pair(struct emu_exp *x)
{
    const struct emu_nic_pair pair = { { 0, 0 }, { 9, 0 } };
    static const uint32_t sizes[] = { 8, 2048, 65536 };
    struct cug c;

    open_machine(x, "xd1", &c);
    for (size_t i = 0; i < 3; i++) {
        struct cug_rates rates = cug_swaps(&c, &pair, 1, sizes[i], NULL);
        double alone = cug_bi(&c, pair.from, pair.to, sizes[i]);

        assert_float_equal(rates.min / alone, 1.0, 0.01);
        assert_float_equal(rates.min, rates.sum, 1e-9);
    }
    assert_int_equal(c.error, 0);
    cug_close(&c);
}

static void test_swaps_of_one_pair_are_an_exchange(void **state)
{
    (void)state;
    inside(check_one_pair);
}

static void check_sharing(struct emu_exp *x)
{
    const struct emu_nic_pair apart[] = { { { 0, 0 }, { 6, 0 } }, { { 12, 0 }, { 18, 0 } } };
    const struct emu_nic_pair together[] = { { { 0, 0 }, { 6, 0 } }, { { 0, 1 }, { 6, 1 } } };
    const uint32_t bytes = 262144;
    double alone, rates[2];
    struct cug c;

    open_machine(x, "xd1", &c);
    alone = cug_bi(&c, apart[0].from, apart[0].to, bytes);
    (void)cug_swaps(&c, apart, 2, bytes, rates);
    assert_float_equal(rates[0] / alone, 1.0, 0.01);
    assert_float_equal(rates[1] / alone, 1.0, 0.01);
    (void)cug_swaps(&c, together, 2, bytes, rates); /* the node's interface is shared */
    assert_float_equal(rates[0] / alone, 0.5, 0.03);
    assert_float_equal(rates[1] / alone, 0.5, 0.03);
    c.setup.interface_per_core = true; /* now the links are what is shared */
    (void)cug_swaps(&c, together, 2, bytes, rates);
    assert_true(rates[0] / alone > 0.6);
    assert_int_equal(c.error, 0);
    cug_close(&c);
}

static void test_pairs_share_what_they_have_in_common_only(void **state)
{
    (void)state;
    inside(check_sharing);
}

static void check_duplex(struct emu_exp *x)
{
    const struct emu_nic_proc a = { 0, 0 };
    const struct emu_nic_proc b = { 3, 0 };
    struct cug c;

    open_machine(x, "xd1", &c);
    c.setup.host.duplex_bytes_min = 65536;
    assert_float_equal(cug_uni(&c, a, b, 65535) / cug_bi(&c, a, b, 65535), 0.5, 0.005);
    assert_true(cug_uni(&c, a, b, 65536) / cug_bi(&c, a, b, 65536) > 0.55);
    cug_close(&c);
}

static void test_short_messages_do_not_pay_for_the_other_way(void **state)
{
    (void)state;
    inside(check_duplex);
}

static void check_failures(struct emu_exp *x)
{
    const struct emu_nic_pair nowhere = { { 0, 0 }, { 4000, 0 } };
    struct cug c;

    assert_int_equal(cug_open(x, "nosuch", &c), -ENOENT);
    cug_close(&c);
    open_machine(x, "xd1", &c);
    assert_true(isnan(cug_one_way_us(&c, CUG_MPI, nowhere.from, nowhere.to, 8)));
    assert_true(c.error < 0);
    assert_true(isnan(cug_swaps(&c, &nowhere, 1, 8, NULL).min)); /* nothing runs after a failure */
    cug_close(&c);
}

static void test_failed_run_is_not_a_figure(void **state)
{
    (void)state;
    inside(check_failures);
}

static void check_repeats(struct emu_exp *x)
{
    struct emu_nic_pair pairs[8];
    double first[8], again[8];
    struct cug c;

    open_machine(x, "xd1:fabrics=2", &c);
    cug_pairs(8, 8, 1, pairs);
    (void)cug_swaps(&c, pairs, 8, 32768, first);
    (void)cug_swaps(&c, pairs, 8, 32768, again);
    assert_memory_equal(first, again, sizeof(first));
    c.setup.n_threads = 2;
    (void)cug_swaps(&c, pairs, 8, 32768, again);
    assert_memory_equal(first, again, sizeof(first));
    cug_close(&c);
}

static void test_same_seed_gives_same_rates_with_any_threads(void **state)
{
    (void)state;
    inside(check_repeats);
}

/* ---- experiments ---- */

static void test_experiments_that_must_pass_do(void **state)
{
    static const char *const ids[] = { "X1-1",  "X1-2",  "X1-6",    "AUD-X1", "XD1-1",
                                       "XD1-2", "XD1-8", "AUD-XD1", "XT3-2",  "CMP-1" };

    (void)state;
    for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++) {
        const struct emu_experiment *experiment = emu_experiment_find(ids[i]);
        json_t *report;

        assert_non_null(experiment);
        report = run(experiment, 1);
        if (json_integer_value(json_object_get(report, "failed")) != 0)
            fail_msg("%s fails", ids[i]);
        assert_true(json_integer_value(json_object_get(report, "passed")) > 0);
        json_decref(report);
    }
}

static void test_every_row_of_the_specification_is_there(void **state)
{
    static const struct {
        const char *format;
        int first, last;
    } rows[] = { { "X1-%d", 1, 6 }, { "XD1-%d", 1, 8 }, { "XT3-%d", 2, 7 }, { "CMP-%d", 1, 7 }, { "LOAD-%d", 1, 8 } };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        for (int n = rows[i].first; n <= rows[i].last; n++) {
            char id[16];
            const struct emu_experiment *experiment;

            snprintf(id, sizeof(id), rows[i].format, n);
            experiment = emu_experiment_find(id);
            assert_non_null(experiment);
            assert_non_null(experiment->run);
            assert_in_range(strlen(experiment->summary), 1, 80);
        }
    }
}

/* ---- programs ---- */

static void act_pair_program(struct emu_exp *x)
{
    struct cmp_program p = { .px = 2, .py = 1, .ppn = 1, .n_iterations = 4 };
    struct cug c;
    double swap_us;

    open_machine(x, "xt3", &c);
    swap_us = 2.0 * 65536 / cug_bi(&c, cug_proc(0, 1), cug_proc(1, 1), 65536);
    cmp_add(&p, &(struct cmp_step){ .compute_us = 1000, .partners = CMP_ACROSS, .mask = 1, .bytes = 65536 });
    cmp_add(&p, &(struct cmp_step){ .partners = CMP_ACROSS, .mask = 1, .bytes = 65536 });
    assert_true(fabs(cmp_run(&c, &p) - (1000 + 2 * swap_us)) < 0.01 * swap_us);
    cug_close(&c);
}

static void test_program_of_a_pair_takes_its_computation_and_its_swaps(void **state)
{
    (void)state;
    inside(act_pair_program);
}

/* Two processes of an XD1 node share its interface: no formula over one pair tells that. */
static void act_shared_program(struct emu_exp *x)
{
    struct cmp_program p = { .px = 2, .py = 1, .ppn = 1, .n_iterations = 3 };
    struct cug c;
    double alone;

    open_machine(x, "xd1", &c);
    cmp_add(&p, &(struct cmp_step){ .partners = CMP_ACROSS, .mask = 1, .bytes = 262144 });
    alone = cmp_run(&c, &p);
    p.px = 4;
    p.ppn = 2;
    p.steps[0].mask = 2; /* both processes of the first node with those of the second */
    assert_true(cmp_run(&c, &p) > 1.8 * alone);
    cug_close(&c);
}

static void test_programs_share_hosts(void **state)
{
    (void)state;
    inside(act_shared_program);
}

static void act_words_to_all(struct emu_exp *x)
{
    struct cmp_program p = { .px = 8, .py = 8, .ppn = 4, .gap_us = 0.05, .n_iterations = 3 };
    struct cug c;
    double mpi;

    open_machine(x, "x1", &c);
    cmp_add_allreduce(&p);
    assert_int_equal(p.n_steps, 6);
    mpi = cmp_run(&c, &p);
    assert_true(mpi > 6 * 7.2 && mpi < 6 * 8); /* six latencies of MPI (X1-1) */
    p.n_steps = 0;
    p.is_caf = true;
    cmp_add_allreduce(&p);
    assert_true(fabs(cmp_run(&c, &p) - (3.9 + 62 * 0.05)) < 0.7); /* one of CAF, and gaps */
    p.px = CMP_PROCS_MAX + 1;
    p.py = 1;
    assert_true(isnan(cmp_run(&c, &p)));
    assert_int_equal(c.error, -EINVAL);
    cug_close(&c);
}

static void test_allreduce_takes_its_messages(void **state)
{
    (void)state;
    inside(act_words_to_all);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_program_of_a_pair_takes_its_computation_and_its_swaps),
        cmocka_unit_test(test_programs_share_hosts),
        cmocka_unit_test(test_allreduce_takes_its_messages),
        cmocka_unit_test(test_ranks_fill_nodes_one_after_another),
        cmocka_unit_test(test_swaps_of_one_pair_are_an_exchange),
        cmocka_unit_test(test_pairs_share_what_they_have_in_common_only),
        cmocka_unit_test(test_short_messages_do_not_pay_for_the_other_way),
        cmocka_unit_test(test_failed_run_is_not_a_figure),
        cmocka_unit_test(test_same_seed_gives_same_rates_with_any_threads),
        cmocka_unit_test(test_experiments_that_must_pass_do),
        cmocka_unit_test(test_every_row_of_the_specification_is_there),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
