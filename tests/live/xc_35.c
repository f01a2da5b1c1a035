/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * XC-35: four reductions at once on the same NICs, a tree of 33 children refused, the lowest value told with its place,
 * and no process needed once it has contributed: it is stopped while the reduction goes on.
 */
#include "tests/conformance/ce.h"

static void test_four_reductions_go_on_at_once(void **state)
{
    static struct tree trees[ENGINES_PER_NIC];

    (void)state;
    for (unsigned t = 0; t < ENGINES_PER_NIC; t++) {
        trees[t] = (struct tree){ .first_place = t * SIDES };
        tree_build_flat(&trees[t], sides, SIDES);
    }
    for (unsigned i = 0; i < SIDES; i++) { /* none is over before all have had nearly all */
        for (unsigned t = 0; t < ENGINES_PER_NIC; t++)
            tree_contribute(&trees[t].leaves[i], GNI_FMA_CE_IADD, (uint64_t)(t + 1) * (i + 1), 0, t + 1);
    }
    for (unsigned t = 0; t < ENGINES_PER_NIC; t++) {
        for (unsigned i = 0; i < SIDES; i++)
            tree_expect(&trees[t].leaves[i], (uint64_t)(t + 1) * SIDES * (SIDES + 1) / 2);
        tree_drop(&trees[t]);
    }
}

static void test_a_request_of_33_children_is_rejected(void **state)
{
    static gni_ep_handle_t eps[33];
    gni_ce_handle_t ce;

    (void)state;
    assert_int_equal(GNI_CeCreate(sides[0].nic, &ce), GNI_RC_SUCCESS);
    for (uint32_t i = 0; i < COUNT_OF(eps); i++)
        eps[i] = tree_ep(&sides[0], NULL, &sides[i % SIDES], 0, i % 32, GNI_CE_CHILD_PE);
    assert_int_equal(GNI_CeConfigure(ce, eps, 33, NULL, sides[0].src_cq, TREE_MODES), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_CeConfigure(ce, eps, 32, NULL, sides[0].src_cq, TREE_MODES), GNI_RC_SUCCESS);
    for (uint32_t i = 0; i < COUNT_OF(eps); i++)
        GNI_EpDestroy(eps[i]);
    assert_int_equal(GNI_CeDestroy(ce), GNI_RC_SUCCESS);
}

static void test_the_lowest_value_is_told_with_its_place(void **state)
{
    (void)state;
    build_deep_tree();
    for (unsigned lowest = 0; lowest < SIDES; lowest++) {
        for (unsigned i = 0; i < SIDES; i++)
            tree_contribute(&tree.leaves[i], GNI_FMA_CE_IMIN_LIDX, i == lowest ? 7 : 100 + i, i, lowest);
        for (unsigned i = 0; i < SIDES; i++) {
            tree_expect(&tree.leaves[i], 7);
            assert_int_equal(tree.leaves[i].result->result2, lowest);
        }
    }
}

#define LAST (SIDES - 1)

/* The other leaf, a process of its own: contributes, and stops itself. */
static int contribute_and_stop(struct fx_rank *rank)
{
    const struct tree_leaf *leaf = rank->arg;
    const uint32_t engine_address = sides[0].nic_addr;
    const uint32_t engine_id = tree.engines[0].id;
    gni_post_descriptor_t *done = NULL;
    gni_post_descriptor_t d;
    gni_ep_handle_t ep;
    struct gx_side side;

    gx_open(&side, rank->fx, LAST, 900, GNI_CDM_MODE_DUAL_EVENTS);
    d = (gni_post_descriptor_t){ .type = GNI_POST_CE,
                                 .cq_mode = GNI_CQMODE_GLOBAL_EVENT,
                                 .local_addr = (uint64_t)(uintptr_t)side.mem,
                                 .local_mem_hndl = side.mem_hndl,
                                 .ce_cmd = GNI_FMA_CE_IADD,
                                 .first_operand = 40,
                                 .ce_red_id = 5 };
    FX_CHECK(GNI_EpCreate(side.nic, side.src_cq, &ep) == GNI_RC_SUCCESS);
    FX_CHECK(GNI_EpBind(ep, engine_address, sides[0].inst_id) == GNI_RC_SUCCESS);
    FX_CHECK(GNI_EpSetCeAttr(ep, engine_id, leaf->child_id, GNI_CE_CHILD_PE) == GNI_RC_SUCCESS);
    FX_CHECK(GNI_PostFma(ep, &d) == GNI_RC_SUCCESS);
    FX_CHECK(gx_complete(side.src_cq, &done) == GNI_RC_SUCCESS && done == &d);
    raise(SIGSTOP);
    FX_CHECK(tree_wait((gni_ce_result_t *)(void *)side.mem) == GNI_RC_SUCCESS);
    FX_CHECK(((gni_ce_result_t *)(void *)side.mem)->result1 == 42);
    GNI_EpDestroy(ep);
    gx_close(&side);
    return 0;
}

static void test_a_stopped_process_delays_no_reduction(void **state)
{
    struct fx_ranks ranks;
    int status = 0;

    (void)state;
    tree_add_engine(&tree, &sides[0], NO_PARENT);
    tree_add_leaf(&tree, &sides[0], 0);
    tree_add_leaf(&tree, &sides[LAST], 0);
    tree_build(&tree);
    fx_spawn(&fx, 1, contribute_and_stop, &tree.leaves[1], &ranks);
    assert_int_equal(waitpid(ranks.pids[0], &status, WUNTRACED), ranks.pids[0]);
    assert_true(WIFSTOPPED(status));
    tree_contribute(&tree.leaves[0], GNI_FMA_CE_IADD, 2, 0, 5);
    tree_expect(&tree.leaves[0], 42);
    assert_int_equal(kill(ranks.pids[0], SIGCONT), 0);
    assert_int_equal(fx_join(&ranks), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ce_test(test_four_reductions_go_on_at_once),
        ce_test(test_a_request_of_33_children_is_rejected),
        ce_test(test_the_lowest_value_is_told_with_its_place),
        ce_test(test_a_stopped_process_delays_no_reduction),
    };

    return cmocka_run_group_tests(tests, start, stop);
}
