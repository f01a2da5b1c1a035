/* SPDX-License-Identifier: BSD-3-Clause */
#include <errno.h>
#include <math.h>
#include <string.h>

#include "emunic/experiments/ledger.h"
#include "emunic/experiments/runner.h"
#include "emunic/model/nic_scenario.h"
#include "tests/unit/fabric/fixture.h"

/* What the experiment of a test does. */
static void (*act)(struct emu_exp *x);
static int act_result;

static int run_act(struct emu_exp *x)
{
    act(x);
    return act_result;
}

static const struct emu_experiment first_table[] = {
    { "XX-2", "aries", "AKPQS", "CKFF", EMU_EXP_PACKETS, "a test", run_act },
    { "XX-20", "aries", "A", "C", EMU_EXP_ANALYTIC, "another", run_act },
    { 0 },
};

static const struct emu_experiment second_table[] = {
    { "AUD-YY", "aries", "F", "-", EMU_EXP_LIVE, "shown elsewhere" },
    { 0 },
};

/* The registry of this program. */
const struct emu_experiment *const emu_experiment_tables[] = { first_table, second_table, NULL };

/* The ledger of this program. */
const struct emu_ledger_row emu_ledger[] = {
    { "aries", "t_issue_ns", EMU_LEDGER_FITTED, "XX-2", "put of 8 bytes", 512 },
    { "xx", "from_file", EMU_LEDGER_TUNED, "XX-2", "nothing", 0 },
    { NULL },
};

static json_t *report_of(void (*what)(struct emu_exp *x), int result)
{
    struct emu_exp_context context = { .seed = 7, .n_threads = 1, .machine_dir = EMU_TEST_MACHINE_DIR };
    json_t *report;

    act = what;
    act_result = result;
    report = emu_exp_run(&first_table[0], &context, NULL, NULL);
    assert_non_null(report);
    return report;
}

static void assert_prints(void (*what)(struct emu_exp *x), int result, const char *expected)
{
    json_t *report = report_of(what, result);
    char *text = NULL;
    size_t len = 0;
    FILE *out = open_memstream(&text, &len);

    assert_non_null(out);
    assert_int_equal(emu_exp_print(report, out), 0);
    fclose(out);
    assert_string_equal(text, expected);
    free(text);
    json_decref(report);
}

static void assert_counts(void (*what)(struct emu_exp *x), int passed, int failed)
{
    json_t *report = report_of(what, 0);

    assert_int_equal(json_integer_value(json_object_get(report, "passed")), passed);
    assert_int_equal(json_integer_value(json_object_get(report, "failed")), failed);
    json_decref(report);
}

/* ---- lines ---- */

static void report_of_each_sort(struct emu_exp *x)
{
    emu_exp_exact(x, 'A', "nodes", "nodes", 92544, 92544);
    emu_exp_figure(x, 'P', "hop", "ns", emu_exp_within(100, 0.01), 100.5);
    emu_exp_detail(x, "seen over %d hops", 5);
    emu_exp_part(x, "a");
    emu_exp_fitted(x, "put8_latency", "us", 0.8, 0.8125, emu_exp_param("t_issue_ns", 512));
    emu_exp_part(x, NULL);
    emu_exp_figure(x, 'P', "valiant", "GB/s", emu_exp_range(1.31, 1.5), 1.4);
    emu_exp_figure(x, 'A', "raw", "GB/s", emu_exp_rounded(11.7, 1), 11.72);
    emu_exp_figure(x, 'P', "utilisation", "%", emu_exp_points(98, 1.5), 96.9);
    emu_exp_at_most(x, 'P', "latency", "us", 2, 2.5);
    emu_exp_why(x, "the farthest pair has %d hops", 6);
    emu_exp_text(x, 'A', "class of min", "Z cable", "Z cable"); /* a name is one word */
    emu_exp_holds(x, 'Q', "order", false);
}

static void test_lines_have_the_form_of_the_specification(void **state)
{
    (void)state;
    assert_prints(
        report_of_each_sort, 0,
        "EXP XX-2 nodes src=92544 got=92544 unit=nodes tol=exact kind=A seed=7 verdict=PASS class=counted\n"
        "EXP XX-2 hop src=100 got=100.5 unit=ns tol=1% kind=P seed=7 verdict=PASS class=formula\n"
        "# seen over 5 hops\n"
        "EXP XX-2a put8_latency src=0.8 got=0.8125 unit=us tol=2% kind=K seed=7 verdict=PASS class=fitted "
        "param=t_issue_ns:512\n"
        "EXP XX-2 valiant src=1.31..1.5 got=1.4 unit=GB/s tol=range kind=P seed=7 verdict=PASS class=formula\n"
        "EXP XX-2 raw src=11.7 got=11.72 unit=GB/s tol=rounded:1 kind=A seed=7 verdict=PASS class=counted\n"
        "EXP XX-2 utilisation src=98 got=96.9 unit=% tol=+-1.5 kind=P seed=7 verdict=PASS class=formula\n"
        "EXP XX-2 latency src=2 got=2.5 unit=us tol=<= kind=P seed=7 verdict=FAIL class=formula\n"
        "# why: the farthest pair has 6 hops\n"
        "EXP XX-2 class_of_min src=Z_cable got=Z_cable unit=1 tol=exact kind=A seed=7 verdict=FAIL class=counted\n"
        "# class of min: not a valid metric: its name is not one of letters, digits and _.-/+\n"
        "EXP XX-2 order src=yes got=no unit=1 tol=exact kind=Q seed=7 verdict=FAIL class=formula\n");
}

static void explain_a_success(struct emu_exp *x)
{
    emu_exp_exact(x, 'A', "nodes", NULL, 4, 4);
    emu_exp_why(x, "nobody wants to know");
}

static void test_a_reason_is_dropped_when_the_metric_passed(void **state)
{
    (void)state;
    assert_prints(explain_a_success, 0,
                  "EXP XX-2 nodes src=4 got=4 unit=1 tol=exact kind=A seed=7 verdict=PASS class=counted\n");
}

static void break_the_line(struct emu_exp *x)
{
    emu_exp_text(x, 'A', "name", "a\nEXP b", "c d");
    emu_exp_detail(x, "two\nlines");
}

static void test_no_value_breaks_a_line_or_a_field(void **state)
{
    (void)state;
    assert_prints(
        break_the_line, 0,
        "EXP XX-2 name src=a_EXP_b got=c_d unit=1 tol=exact kind=A seed=7 verdict=FAIL class=counted\n# two lines\n");
}

/* ---- verdicts ---- */

static void report_the_edges(struct emu_exp *x)
{
    emu_exp_figure(x, 'P', "up", NULL, emu_exp_within(100, 0.02), 102);
    emu_exp_figure(x, 'P', "down", NULL, emu_exp_within(-100, 0.02), -102);
    emu_exp_figure(x, 'P', "points", NULL, emu_exp_points(0.3, 0.1), 0.1 + 0.2 + 0.1);
    emu_exp_figure(x, 'A', "half", NULL, emu_exp_rounded(11.7, 1), 11.75);
    emu_exp_exact(x, 'A', "arithmetic", NULL, 0.3, 0.1 + 0.2);
    emu_exp_at_least(x, 'P', "least", NULL, 3, 3);
    emu_exp_at_most(x, 'P', "most", NULL, 3, 3);
    emu_exp_figure(x, 'P', "low", NULL, emu_exp_range(1, 2), 1);
    emu_exp_figure(x, 'P', "high", NULL, emu_exp_range(1, 2), 2);
}

static void test_the_edge_of_a_tolerance_passes(void **state)
{
    (void)state;
    assert_counts(report_the_edges, 9, 0);
}

static void report_beyond_the_edges(struct emu_exp *x)
{
    emu_exp_figure(x, 'P', "up", NULL, emu_exp_within(100, 0.02), 102.01);
    emu_exp_figure(x, 'P', "down", NULL, emu_exp_within(100, 0.02), 97.99);
    emu_exp_figure(x, 'P', "points", NULL, emu_exp_points(98, 1.5), 96.49);
    emu_exp_figure(x, 'A', "half", NULL, emu_exp_rounded(11.7, 1), 11.76);
    emu_exp_exact(x, 'A', "count", NULL, 92544, 92543);
    emu_exp_above(x, 'P', "above", NULL, 3, 3);
    emu_exp_below(x, 'P', "below", NULL, 3, 3);
    emu_exp_figure(x, 'P', "low", NULL, emu_exp_range(1, 2), 0.99);
    emu_exp_fitted(x, "fitted", NULL, 1, 1.03, emu_exp_param("t_issue_ns", 1));
}

static void test_what_lies_beyond_a_tolerance_fails(void **state)
{
    (void)state;
    assert_counts(report_beyond_the_edges, 0, 9);
}

static void report_what_is_no_number(struct emu_exp *x)
{
    emu_exp_at_most(x, 'P', "nan", NULL, 3, NAN);
    emu_exp_at_least(x, 'P', "infinite", NULL, 3, INFINITY);
    emu_exp_figure(x, 'P', "both", NULL, emu_exp_within(NAN, 1), NAN);
    emu_exp_text(x, 'A', "nothing", "yes", NULL);
}

static void test_what_is_no_number_fails(void **state)
{
    (void)state;
    assert_counts(report_what_is_no_number, 0, 4);
}

static void report_invalid(struct emu_exp *x)
{
    emu_exp_exact(x, 'S', "kind", NULL, 1, 1); /* not in the row */
    emu_exp_exact(x, 'X', "kind", NULL, 1, 1);
    emu_exp_report(x, &(struct emu_metric){ .kind = 'K', .name = "no_param", .src = 1, .got = 1 });
    emu_exp_fitted(x, "param", NULL, 1, 1, emu_exp_param("t_issue_ns", NAN));
}

static void test_an_invalid_metric_never_passes(void **state)
{
    (void)state;
    assert_counts(report_invalid, 0, 4);
}

/* ---- classes ---- */

static void claim_too_much(struct emu_exp *x)
{
    emu_exp_exact(x, 'S', "no_class", NULL, 1, 1);
    emu_exp_class(x, EMU_CLASS_MEASURED);
    emu_exp_exact(x, 'P', "no_packet", NULL, 1, 1);
    emu_exp_fitted(x, "no_row", NULL, 1, 1, emu_exp_param("in_no_ledger", 1));
    emu_exp_fitted(x, "other_machine", NULL, 1, 1, emu_exp_param("xx:t_issue_ns", 1));
    emu_exp_class(x, EMU_CLASS_COUNTED);
    emu_exp_fitted(x, "fitted_that_says_counted", NULL, 1, 1, emu_exp_param("t_issue_ns", 1));
    emu_exp_class(x, EMU_CLASS_FITTED);
    emu_exp_exact(x, 'P', "predicted_that_is_fitted", NULL, 1, 1);
}

static void test_a_figure_whose_class_is_not_true_fails(void **state)
{
    (void)state;
    assert_counts(claim_too_much, 0, 6);
}

static void simulate_and_measure(struct emu_exp *x)
{
    const struct emu_nic_pingpong p = { .kind = EMU_NIC_PUT, .a = { 0, 0 }, .b = { 4, 0 }, .bytes = 8 };
    struct emu_nic_pingpong_result result;
    struct emu_machine *m = NULL;

    assert_int_equal(emu_exp_machine(x, "aries:groups=1,chassis=1", &m), 0);
    assert_int_equal(
        emu_nic_pingpong(&(struct emu_nic_setup){ .machine = m, .host = *emu_machine_node_params(m) }, &p, &result), 0);
    emu_machine_destroy(m);
    emu_exp_class(x, EMU_CLASS_MEASURED);
    emu_exp_above(x, 'P', "latency", "us", 0, (double)result.latency_ps);
    emu_exp_fitted(x, "of_another_machine", NULL, 1, 1, emu_exp_param("xx:from_file", 1));
    emu_exp_exact(x, 'P', "the_row_again", NULL, 1, 1);
}

static void test_packets_prove_that_a_figure_is_measured(void **state)
{
    const json_t *lines, *first;
    json_t *report;

    (void)state;
    report = report_of(simulate_and_measure, 0);
    lines = json_object_get(report, "lines");
    first = json_array_get(lines, 0);
    assert_int_equal(json_integer_value(json_object_get(report, "passed")), 3);
    assert_string_equal(json_string_value(json_object_get(first, "class")), "measured");
    assert_true(json_integer_value(json_object_get(first, "packets")) > 0);
    assert_string_equal(json_string_value(json_object_get(json_array_get(lines, 2), "class")), "formula");
    json_decref(report);
}

static void revise(struct emu_exp *x)
{
    emu_exp_at_most(x, 'P', "ratio", NULL, 3.2, 3.1);
    emu_exp_before(x, &(struct emu_exp_before){
                          .source = { .tolerance = EMU_TOL_AT_MOST, .src = 2 }, .got = NAN, .text = "bound of ours" });
}

static void test_a_verdict_before_stays_visible(void **state)
{
    (void)state;
    assert_prints(revise, 0,
                  "EXP XX-2 ratio src=3.2 got=3.1 unit=1 tol=<= kind=P seed=7 verdict=PASS class=formula\n"
                  "# before: src=2 got=3.1 tol=<= verdict=FAIL; bound of ours\n");
}

static void test_only_parameters_outside_machine_files_have_values_in_the_ledger(void **state)
{
    (void)state;
    assert_true(emu_ledger_value("aries", "t_issue_ns") == 512);
    assert_true(isnan(emu_ledger_value("xx", "from_file")));
    assert_true(isnan(emu_ledger_value("xx", "t_issue_ns")));
}

/* ---- runs ---- */

static void report_one(struct emu_exp *x)
{
    emu_exp_exact(x, 'A', "one", NULL, 1, 1);
}

static void report_nothing(struct emu_exp *x)
{
    (void)x;
}

static void test_an_experiment_that_gives_up_has_failed(void **state)
{
    (void)state;
    assert_prints(report_one, -ENOMEM,
                  "EXP XX-2 one src=1 got=1 unit=1 tol=exact kind=A seed=7 verdict=PASS class=counted\n"
                  "EXP XX-2 completed src=yes got=no unit=1 tol=exact kind=A seed=7 verdict=FAIL class=counted\n"
                  "# not completed: Cannot allocate memory\n");
    assert_prints(report_nothing, 0,
                  "EXP XX-2 completed src=yes got=no unit=1 tol=exact kind=A seed=7 verdict=FAIL class=counted\n"
                  "# not completed: it reported nothing\n");
}

static void load_a_bad_machine(struct emu_exp *x)
{
    struct emu_machine *m;

    assert_int_equal(emu_exp_machine(x, "aries:groups=none", &m), -EINVAL);
}

static void test_a_bad_machine_is_told(void **state)
{
    json_t *report = report_of(load_a_bad_machine, 0);
    const json_t *line = json_array_get(json_object_get(report, "lines"), 0);

    (void)state;
    assert_non_null(strstr(json_string_value(json_object_get(line, "detail")), "override 'groups=none'"));
    json_decref(report);
}

static void test_an_aborted_run_is_one_failed_line(void **state)
{
    json_t *report = emu_exp_aborted(&first_table[1], 3, "killed");

    (void)state;
    assert_int_equal(json_integer_value(json_object_get(report, "failed")), 1);
    assert_int_equal(json_integer_value(json_object_get(report, "seed")), 3);
    assert_int_equal(json_array_size(json_object_get(report, "lines")), 2);
    json_decref(report);
}

static void write_data(struct emu_exp *x)
{
    assert_null(emu_exp_data(x, "curve", "t", "x", "y"));
    report_one(x);
}

static void test_no_data_are_written_unless_somebody_wants_them(void **state)
{
    (void)state;
    assert_counts(write_data, 1, 0);
}

/* ---- registry ---- */

static void test_experiments_are_found_by_id_and_part(void **state)
{
    (void)state;
    assert_ptr_equal(emu_experiment_find("XX-2"), &first_table[0]);
    assert_ptr_equal(emu_experiment_find("xx-20"), &first_table[1]);
    assert_ptr_equal(emu_experiment_find("XX-2a"), &first_table[0]);
    assert_ptr_equal(emu_experiment_find("XX-20b"), &first_table[1]);
    assert_ptr_equal(emu_experiment_find("aud-yy"), &second_table[0]);
    assert_null(emu_experiment_find("XX-21"));
    assert_null(emu_experiment_find("XX-2-"));
    assert_null(emu_experiment_find("AUD-YYZ"));
    assert_null(emu_experiment_find(""));
}

static void test_experiments_are_counted_through_all_tables(void **state)
{
    (void)state;
    assert_ptr_equal(emu_experiment_at(0), &first_table[0]);
    assert_ptr_equal(emu_experiment_at(2), &second_table[0]);
    assert_null(emu_experiment_at(3));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lines_have_the_form_of_the_specification),
        cmocka_unit_test(test_a_reason_is_dropped_when_the_metric_passed),
        cmocka_unit_test(test_no_value_breaks_a_line_or_a_field),
        cmocka_unit_test(test_the_edge_of_a_tolerance_passes),
        cmocka_unit_test(test_what_lies_beyond_a_tolerance_fails),
        cmocka_unit_test(test_what_is_no_number_fails),
        cmocka_unit_test(test_an_invalid_metric_never_passes),
        cmocka_unit_test(test_an_experiment_that_gives_up_has_failed),
        cmocka_unit_test(test_a_bad_machine_is_told),
        cmocka_unit_test(test_a_figure_whose_class_is_not_true_fails),
        cmocka_unit_test(test_packets_prove_that_a_figure_is_measured),
        cmocka_unit_test(test_a_verdict_before_stays_visible),
        cmocka_unit_test(test_only_parameters_outside_machine_files_have_values_in_the_ledger),
        cmocka_unit_test(test_an_aborted_run_is_one_failed_line),
        cmocka_unit_test(test_no_data_are_written_unless_somebody_wants_them),
        cmocka_unit_test(test_experiments_are_found_by_id_and_part),
        cmocka_unit_test(test_experiments_are_counted_through_all_tables),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
