/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Collective engine: what is left of it when the NIC goes in the middle of a reduction, and a machine that has none.
 * Each test has an emunic of its own. Specification: spec/ugni.md 1.5, 4.12.
 */
#include <signal.h>

#include "tests/conformance/tree.h"

#define NETWORK 1u

static struct fx fx;
static struct gx_side sides[2];
static struct tree tree;

static int start_with(const char *machine)
{
    struct fx_options options = { .machine = machine };

    fx_start(&fx, &options);
    for (unsigned i = 0; i < 2; i++)
        gx_open(&sides[i], &fx, i, 100 + i, 0);
    return 0;
}

static int start(void **state)
{
    (void)state;
    return start_with(NULL);
}

static int start_without_engines(void **state)
{
    (void)state;
    return start_with("aries:groups=1,ce_engines=0");
}

static int stop(void **state)
{
    (void)state;
    tree_drop(&tree);
    for (unsigned i = 0; i < 2; i++)
        gx_close(&sides[i]);
    fx_stop(&fx);
    return 0;
}

static void expect_all_lost(void)
{
    gni_ce_result_t *result = tree.leaves[0].result;
    gni_ce_handle_t ce = NULL;

    tree_expect_failure(result, NETWORK);
    /* And stays so. */
    assert_int_equal(GNI_CeCheckResult(result, 0), GNI_RC_TRANSACTION_ERROR);
    assert_int_equal(GNI_CeCreate(sides[0].nic, &ce), GNI_RC_ERROR_RESOURCE);
    assert_null(ce);
    assert_int_equal(tree_configure(&tree.engines[0]), GNI_RC_ERROR_RESOURCE);
}

static void test_results_that_are_due_fail_when_emunic_dies(void **state)
{
    (void)state;
    tree_build_flat(&tree, sides, 2);
    tree_sum_up(&tree, 1);
    tree_contribute(&tree.leaves[0], GNI_FMA_CE_IADD, 1, 0, 2);
    kill(fx.daemon, SIGKILL);
    expect_all_lost();
}

static void test_results_that_are_due_fail_when_the_domain_ends(void **state)
{
    struct emu_msg end = { .type = EMU_MSG_DOMAIN_END }; /* without a signal: we are a member */

    (void)state;
    tree_build_flat(&tree, sides, 2);
    tree_contribute(&tree.leaves[0], GNI_FMA_CE_IADD, 1, 0, 2);
    assert_int_equal(emu_session_request(&fx.admin, &end, NULL, 0, NULL), 0);
    tree_expect_failure(tree.leaves[0].result, NETWORK);
}

static void test_machine_without_engines_says_illegal_operation(void **state)
{
    gni_ce_handle_t ce = NULL;
    gni_dev_res_desc_t desc = { 1, 1, 1, 1 };

    (void)state;
    assert_int_equal(GNI_CeCreate(sides[0].nic, &ce), GNI_RC_ILLEGAL_OP);
    assert_null(ce);
    assert_int_equal(GNI_GetDevResInfo(0, GNI_DEV_RES_CE, &desc), GNI_RC_SUCCESS);
    assert_int_equal(desc.total, 0);
    assert_int_equal(desc.available, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_results_that_are_due_fail_when_emunic_dies, start, stop),
        cmocka_unit_test_setup_teardown(test_results_that_are_due_fail_when_the_domain_ends, start, stop),
        cmocka_unit_test_setup_teardown(test_machine_without_engines_says_illegal_operation, start_without_engines,
                                        stop),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
