/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Injected faults in reductions: a contribution that is hit fails its reduction for every leaf, and no other one.
 * Specification: spec/ugni.md 4.12; emunic-fault(1), class ce.
 */
#include <stdlib.h>

#include "tests/conformance/tree.h"

#define SIDES 6u

/* gni_cq_get_status() as gni_pub.h documents it */
#define NETWORK      1u
#define REMOTE_RANGE 4u

static struct fx fx;
static struct gx_side sides[SIDES];
static struct tree tree;

/* Two engines above each other, three leaves at each. */
static int open_tree(void **state)
{
    struct fx_options options = { .n_ranks = SIDES };
    unsigned root;
    unsigned below;

    (void)state;
    fx_start(&fx, &options);
    for (unsigned i = 0; i < SIDES; i++)
        gx_open(&sides[i], &fx, i, 100 + i, GNI_CDM_MODE_ERR_NO_KILL);
    root = tree_add_engine(&tree, &sides[0], NO_PARENT);
    below = tree_add_engine(&tree, &sides[3], (int)root);
    for (unsigned i = 0; i < SIDES; i++)
        tree_add_leaf(&tree, &sides[i], i < 3 ? root : below);
    tree_build(&tree);
    return 0;
}

static int close_tree(void **state)
{
    (void)state;
    tree_drop(&tree);
    for (unsigned i = 0; i < SIDES; i++)
        gx_close(&sides[i]);
    return fx_stop(&fx);
}

#define fault_test(name) cmocka_unit_test_setup_teardown(name, open_tree, close_tree)

/* One reduction; the status of each leaf's own entry. */
static void reduce(uint64_t red_id, uint64_t statuses_out[SIDES])
{
    for (unsigned i = 0; i < SIDES; i++) {
        tree.leaves[i].d = tree_post(&tree.leaves[i], GNI_FMA_CE_IADD, i, 0);
        tree.leaves[i].d.ce_red_id = red_id;
        statuses_out[i] = tree_send(&tree.leaves[i]);
    }
}

static void expect_failure_of_all(uint64_t status)
{
    for (unsigned i = 0; i < SIDES; i++)
        tree_expect_failure(tree.leaves[i].result, status);
}

static void test_lost_contribution_fails_its_reduction_for_all_leaves(void **state)
{
    uint64_t statuses[SIDES];

    (void)state;
    fx_add_fault(&fx, "class=ce action=drop nth=2 from=4");
    tree_sum_up(&tree, 1);
    reduce(2, statuses);
    for (unsigned i = 0; i < SIDES; i++)
        assert_int_equal(statuses[i], i == 4 ? NETWORK : 0); /* only its own leaf could know at once */
    expect_failure_of_all(NETWORK);
    tree_sum_up(&tree, 3); /* the tree is whole */
    assert_int_equal(fx_fault_hits(&fx), 1);
}

static void test_status_of_the_fault_is_that_of_the_result(void **state)
{
    uint64_t statuses[SIDES];

    (void)state;
    fx_add_fault(&fx, "class=ce action=fail status=remote-range nth=1 from=0");
    reduce(1, statuses);
    assert_int_equal(statuses[0], REMOTE_RANGE);
    expect_failure_of_all(REMOTE_RANGE);
    tree_sum_up(&tree, 2);
}

static void test_any_means_contributions_too(void **state)
{
    uint64_t statuses[SIDES];

    (void)state;
    fx_add_fault(&fx, "class=any action=corrupt nth=1 from=5");
    reduce(1, statuses);
    assert_int_equal(statuses[5], NETWORK);
    expect_failure_of_all(NETWORK);
    tree_sum_up(&tree, 2);
}

static void test_late_contribution_delays_and_changes_nothing_else(void **state)
{
    uint64_t start_ns = emu_clock_ns();

    (void)state;
    fx_add_fault(&fx, "class=ce action=delay delay_us=30000 nth=1 from=2");
    tree_sum_up(&tree, 1);
    assert_true(emu_clock_ns() - start_ns >= 30000000);
    assert_int_equal(fx_fault_hits(&fx), 1);
}

static void test_other_classes_leave_contributions_alone(void **state)
{
    (void)state;
    fx_add_fault(&fx, "class=fma,bte,smsg,msgq,cq-write action=drop");
    for (uint64_t id = 1; id < 20; id++)
        tree_sum_up(&tree, id);
    assert_int_equal(fx_fault_hits(&fx), 0);
}

static void test_same_seed_fails_the_same_reductions(void **state)
{
    uint64_t failed[2] = { 0, 0 };

    (void)state;
    for (unsigned round = 0; round < 2; round++) {
        fx_add_fault(&fx, "class=ce action=drop rate=0.05 seed=99");
        for (unsigned id = 0; id < 60; id++) {
            uint64_t statuses[SIDES];

            reduce(id, statuses);
            if (tree_wait(tree.leaves[0].result) != GNI_RC_SUCCESS)
                failed[round] |= 1ull << id;
            for (unsigned i = 1; i < SIDES; i++)
                assert_int_equal(tree_wait(tree.leaves[i].result) != GNI_RC_SUCCESS, failed[round] >> id & 1);
        }
        fx_clear_faults(&fx);
    }
    assert_true(failed[0] != 0 && failed[0] == failed[1]);
}

/* The engine's owner is the target. */
static int own_an_engine(struct fx_rank *rank)
{
    gni_ce_handle_t ce;
    struct gx_side side;
    uint32_t id;

    gx_open(&side, rank->fx, rank->fx->nids[1], 1, GNI_CDM_MODE_ERR_NO_KILL);
    FX_CHECK(GNI_CeCreate(side.nic, &ce) == GNI_RC_SUCCESS && GNI_CeGetId(ce, &id) == GNI_RC_SUCCESS);
    atomic_store((_Atomic uint32_t *)rank->shared, id + 1);
    for (;;)
        pause();
}

static void test_kill_hits_the_owner_of_the_engine(void **state)
{
    _Atomic uint32_t *engine;
    struct fx_ranks ranks;
    gni_ep_handle_t ep;
    gni_post_descriptor_t d = tree_post(&tree.leaves[0], GNI_FMA_CE_IADD, 1, 0);
    gni_cq_entry_t entry;

    (void)state;
    fx_spawn(&fx, 1, own_an_engine, NULL, &ranks);
    engine = ranks.shared;
    while (atomic_load(engine) == 0)
        sched_yield();
    ep = tree_ep(&sides[0], sides[0].src_cq, &sides[1], atomic_load(engine) - 1, 0, GNI_CE_CHILD_PE);
    fx_add_fault(&fx, "class=ce action=kill");
    assert_int_equal(GNI_PostFma(ep, &d), GNI_RC_SUCCESS);
    assert_int_equal(gx_next(sides[0].src_cq, &entry), GNI_RC_TRANSACTION_ERROR);
    assert_true(fx_join(&ranks) != 0);
    assert_int_equal(GNI_EpDestroy(ep), GNI_RC_SUCCESS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        fault_test(test_lost_contribution_fails_its_reduction_for_all_leaves),
        fault_test(test_status_of_the_fault_is_that_of_the_result),
        fault_test(test_any_means_contributions_too),
        fault_test(test_late_contribution_delays_and_changes_nothing_else),
        fault_test(test_other_classes_leave_contributions_alone),
        fault_test(test_same_seed_fails_the_same_reductions),
        fault_test(test_kill_hits_the_owner_of_the_engine),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
