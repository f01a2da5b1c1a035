/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reduction trees over three hosts, each an emunic, on this one: what only the distance brings. Hosts that go in the
 * middle of a reduction, are cut off, and come back; processes that die far from the engine; answers that are late.
 * What a tree does otherwise the conformance tests show, which run across hosts as well.
 */
#include <signal.h>
#include <stdlib.h>

#include "tests/conformance/tree.h"
#include "tests/integration/children.h"

#define N_HOSTS     3u
#define SIDES       6u /* side i on node i, which is on host i % 3 */
#define TIMEOUT_MS  1500u
#define PATIENCE_MS 30000u /* where a host is stopped and shall not be taken for lost, however busy the machine is */

#define WAKE_AFTER_NS 1000000u /* far below the time-out, however busy the machine is */

#define NETWORK   1u
#define PEER_GONE 2u
#define CANCELLED 9u

static struct gx_side sides[SIDES];
static struct tree tree;

static int start_with(unsigned timeout_ms)
{
    struct fx_options options = { .n_hosts = N_HOSTS, .n_ranks = SIDES + N_HOSTS, .timeout_ms = timeout_ms };

    fx_start(&fx, &options);
    for (unsigned i = 0; i < SIDES; i++)
        gx_open(&sides[i], &fx, i, 100 + i, GNI_CDM_MODE_ERR_NO_KILL);
    return 0;
}

static int start(void **state)
{
    (void)state;
    return start_with(TIMEOUT_MS);
}

static int start_patient(void **state)
{
    (void)state;
    return start_with(PATIENCE_MS);
}

/* Emunics of some sides may have gone. One that a failed test has left stopped would never answer. */
static int stop(void **state)
{
    (void)state;
    for (unsigned i = 0; i < N_HOSTS; i++) {
        if (fx.hosts[i].daemon > 0)
            kill(fx.hosts[i].daemon, SIGCONT);
    }
    tree_drop(&tree);
    for (unsigned i = 0; i < SIDES; i++) {
        GNI_CdmDestroy(sides[i].cdm);
        free(sides[i].mem);
    }
    return fx_stop(&fx);
}

/* The root on the head, an engine on each other host below it; a leaf of each side at its host's engine. */
static void build_tree(void)
{
    unsigned root = tree_add_engine(&tree, &sides[0], NO_PARENT);

    tree_add_engine(&tree, &sides[1], (int)root);
    tree_add_engine(&tree, &sides[2], (int)root);
    for (unsigned i = 0; i < SIDES; i++)
        tree_add_leaf(&tree, &sides[i], i % N_HOSTS);
    tree_build(&tree);
}

static void mend(void)
{
    for (unsigned i = 0; i < tree.n_engines; i++)
        assert_int_equal(tree_configure(&tree.engines[i]), GNI_RC_SUCCESS);
}

/* All leaves but one. */
static void contribute_but(unsigned missing, uint64_t red_id)
{
    for (unsigned i = 0; i < SIDES; i++) {
        if (i != missing)
            tree_contribute(&tree.leaves[i], GNI_FMA_CE_IADD, 1, 0, red_id);
    }
}

static void test_lost_host_fails_the_reduction_and_others_go_on(void **state)
{
    static struct tree others;

    (void)state;
    build_tree();
    others = (struct tree){ .first_place = 64 };
    tree_add_engine(&others, &sides[3], NO_PARENT);
    for (unsigned i = 0; i < SIDES; i++) {
        if (i % N_HOSTS != 2)
            tree_add_leaf(&others, &sides[i], 0);
    }
    tree_build(&others);
    tree_sum_up(&tree, 1);
    contribute_but(5, 2);
    fx_kill_host(&fx, 2);
    for (unsigned i = 0; i < SIDES; i++) {
        if (i % N_HOSTS != 2)
            tree_expect_failure(tree.leaves[i].result, NETWORK);
    }
    /* In a broken tree posts fail at once. */
    tree.leaves[1].d = tree_post(&tree.leaves[1], GNI_FMA_CE_IADD, 1, 0);
    assert_int_equal(tree_send(&tree.leaves[1]), NETWORK);
    /* A tree that has nothing to do with that host. */
    for (uint64_t id = 0; id < 20; id++)
        tree_sum_up(&others, id);
    tree_drop(&others);
}

static void test_contribution_to_a_lost_host_fails_in_entry_and_result(void **state)
{
    struct tree_leaf *leaf = &tree.leaves[1];
    gni_post_descriptor_t *done;

    (void)state;
    tree_add_engine(&tree, &sides[1], NO_PARENT);
    tree_add_leaf(&tree, &sides[1], 0);
    tree_add_leaf(&tree, &sides[0], 0);
    tree_add_leaf(&tree, &sides[3], 0);
    tree_build(&tree);
    /* One that was taken, one that is under way, one that comes later. */
    tree_contribute(&tree.leaves[2], GNI_FMA_CE_IADD, 1, 0, 1);
    kill(fx.hosts[1].daemon, SIGSTOP);
    memset(leaf->result, 0, sizeof(*leaf->result));
    leaf->d = tree_post(leaf, GNI_FMA_CE_IADD, 1, 0);
    assert_int_equal(GNI_PostFma(leaf->ep, &leaf->d), GNI_RC_SUCCESS);
    fx_kill_host(&fx, 1);
    assert_int_equal(gx_complete(leaf->side->src_cq, &done), GNI_RC_TRANSACTION_ERROR);
    assert_ptr_equal(done, &leaf->d);
    tree_expect_failure(leaf->result, NETWORK);
    tree_expect_failure(tree.leaves[2].result, NETWORK);
    fx_await_host(&fx, 0, 1, false);
    assert_int_equal(tree_send(leaf), NETWORK);
    tree_expect_failure(leaf->result, NETWORK);
}

static void test_cut_off_host_fails_it_on_both_sides_and_can_be_mended(void **state)
{
    (void)state;
    build_tree();
    contribute_but(0, 1);
    kill(fx.hosts[1].daemon, SIGSTOP);
    for (unsigned i = 0; i < SIDES; i++) {
        if (i % N_HOSTS != 1 && i != 0)
            tree_expect_failure(tree.leaves[i].result, NETWORK);
    }
    fx_await_host(&fx, 0, 1, false);
    kill(fx.hosts[1].daemon, SIGCONT);
    tree_expect_failure(tree.leaves[1].result, NETWORK);
    fx_await_all_hosts(&fx);
    mend();
    for (uint64_t id = 2; id < 20; id++)
        tree_sum_up(&tree, id);
}

/* The other side of the same: whoever is cut off has no root any more. */
static void test_lost_root_fails_the_reduction_below_it(void **state)
{
    (void)state;
    tree_add_engine(&tree, &sides[2], NO_PARENT);
    tree_add_engine(&tree, &sides[0], 0);
    tree_add_engine(&tree, &sides[1], 0);
    for (unsigned i = 0; i < SIDES; i++) {
        if (i % N_HOSTS != 2)
            tree_add_leaf(&tree, &sides[i], i % N_HOSTS == 0 ? 1 : 2);
    }
    tree_build(&tree);
    tree_sum_up(&tree, 1);
    /* One engine has handed its sum up, the other one has not. */
    for (unsigned i = 0; i < tree.n_leaves - 1; i++)
        tree_contribute(&tree.leaves[i], GNI_FMA_CE_IADD, 1, 0, 2);
    fx_kill_host(&fx, 2);
    for (unsigned i = 0; i < tree.n_leaves - 1; i++)
        tree_expect_failure(tree.leaves[i].result, NETWORK);
    tree.leaves[0].d = tree_post(&tree.leaves[0], GNI_FMA_CE_IADD, 1, 0);
    assert_int_equal(tree_send(&tree.leaves[0]), NETWORK);
}

static void test_host_that_pauses_delays_and_changes_nothing(void **state)
{
    (void)state;
    build_tree();
    contribute_but(0, 1);
    kill(fx.hosts[2].daemon, SIGSTOP);
    tree_contribute(&tree.leaves[0], GNI_FMA_CE_IADD, 1, 0, 1);
    /* The head and the second host have all that they need: theirs are there. */
    for (unsigned i = 0; i < SIDES; i++) {
        if (i % N_HOSTS != 2)
            tree_expect(&tree.leaves[i], SIDES);
    }
    assert_int_equal(GNI_CeCheckResult(tree.leaves[2].result, 1), GNI_RC_NOT_DONE);
    kill(fx.hosts[2].daemon, SIGCONT);
    tree_expect(&tree.leaves[2], SIDES);
    tree_expect(&tree.leaves[5], SIDES);
    tree_sum_up(&tree, 2);
}

/* The result is on its way while the engine below is destroyed: its leaves get it, and then it is gone. */
static void test_decided_result_reaches_the_leaves_of_an_engine_that_is_destroyed(void **state)
{
    pid_t pid;
    int status = -1;

    (void)state;
    build_tree();
    contribute_but(0, 1);
    kill(fx.hosts[0].daemon, SIGSTOP);
    /* Our own library waits for the answer, so a child wakes the head meanwhile. */
    memset(tree.leaves[0].result, 0, sizeof(*tree.leaves[0].result));
    tree.leaves[0].d = tree_post(&tree.leaves[0], GNI_FMA_CE_IADD, 1, 0);
    tree.leaves[0].d.ce_red_id = 1;
    assert_int_equal(GNI_PostFma(tree.leaves[0].ep, &tree.leaves[0].d), GNI_RC_SUCCESS);
    pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        uint64_t end_ns = emu_clock_ns() + WAKE_AFTER_NS;

        while (emu_clock_ns() < end_ns)
            sched_yield();
        kill(fx.hosts[0].daemon, SIGCONT);
        _exit(0);
    }
    assert_int_equal(GNI_CeDestroy(tree.engines[1].ce), GNI_RC_SUCCESS);
    tree.engines[1].ce = NULL;
    waitpid(pid, &status, 0);
    assert_int_equal(status, 0);
    for (unsigned i = 1; i < SIDES; i++) {
        gni_return_t rc = tree_wait(tree.leaves[i].result);

        assert_int_equal(rc, tree_wait(tree.leaves[0].result));
        if (rc == GNI_RC_SUCCESS)
            tree_expect(&tree.leaves[i], SIDES);
        else
            tree_expect_failure(tree.leaves[i].result, CANCELLED);
    }
}

/* ---- processes ---- */

/* A leaf on the second host, at an engine of the head; shared[1]: the engine. Contributes once, then stays. */
static void be_a_leaf(void)
{
    struct tree_leaf leaf = { 0 };
    struct gx_side side;

    gx_open(&side, &fx, SIDES + 1, 200, GNI_CDM_MODE_ERR_NO_KILL);
    leaf.side = &side;
    leaf.result = (gni_ce_result_t *)(void *)side.mem;
    atomic_store(&shared[0], 1);
    while (atomic_load(&shared[1]) == 0)
        sched_yield();
    FX_CHECK(GNI_EpCreate(side.nic, side.src_cq, &leaf.ep) == GNI_RC_SUCCESS);
    FX_CHECK(GNI_EpBind(leaf.ep, 0, 100) == GNI_RC_SUCCESS);
    FX_CHECK(GNI_EpSetCeAttr(leaf.ep, (uint32_t)shared[1] - 1, 1, GNI_CE_CHILD_PE) == GNI_RC_SUCCESS);
    for (unsigned i = 0; i < 3; i++) {
        gni_post_descriptor_t *done;

        leaf.d = tree_post(&leaf, GNI_FMA_CE_IADD, 10, 0);
        leaf.d.ce_red_id = i;
        FX_CHECK(GNI_PostFma(leaf.ep, &leaf.d) == GNI_RC_SUCCESS);
        FX_CHECK(gx_complete(side.src_cq, &done) == GNI_RC_SUCCESS);
    }
    atomic_store(&shared[0], 2);
    for (;;)
        pause();
}

static void test_death_of_a_leaf_far_from_its_engine_breaks_the_tree(void **state)
{
    struct tree_engine *e = &tree.engines[0];
    struct gx_side far = { .nic_addr = SIDES + 1, .inst_id = 200 };
    pid_t pid = start_child(be_a_leaf);
    uint64_t red_id = 1;

    (void)state;
    wait_for_child(1);
    tree_add_engine(&tree, &sides[0], NO_PARENT);
    tree_add_leaf(&tree, &sides[2], 0);
    tree_create(&tree);
    tree_add_child(e, &far, 0, GNI_CE_CHILD_PE);
    assert_int_equal(tree_configure(e), GNI_RC_SUCCESS);
    atomic_store(&shared[1], e->id + 1);
    tree_contribute(&tree.leaves[0], GNI_FMA_CE_IADD, 1, 0, 0);
    tree_expect(&tree.leaves[0], 11);
    wait_for_child(2);
    /* Two of its contributions wait. They go with it, and so does the tree, as soon as emunic has seen it. */
    kill_child(pid);
    do {
        tree.leaves[0].d = tree_post(&tree.leaves[0], GNI_FMA_CE_IADD, 1, 0);
        tree.leaves[0].d.ce_red_id = red_id++;
    } while (tree_send(&tree.leaves[0]) == 0 && tree_wait(tree.leaves[0].result) == GNI_RC_SUCCESS);
    tree_expect_failure(tree.leaves[0].result, PEER_GONE);
}

/* ---- results ---- */

static uint64_t bits_of(double value)
{
    uint64_t bits;

    memcpy(&bits, &value, sizeof(bits));
    return bits;
}

/* Sums that depend on their order: the same bits whatever order the contributions come in, as computed here. */
static void test_sums_are_the_same_bits_in_any_order_of_arrival(void **state)
{
    static const double values[SIDES] = { 1e16, 1, -1e16, 3.14159, 1e-9, 2.0 / 3 };
    double sums[N_HOSTS];
    double sum;

    (void)state;
    build_tree();
    for (unsigned host = 0; host < N_HOSTS; host++)
        sums[host] = values[host] + values[host + N_HOSTS];
    sum = sums[0] + sums[1] + sums[2]; /* the root's own leaves are its first children */
    for (unsigned round = 0; round < 30; round++) {
        for (unsigned i = 0; i < SIDES; i++) {
            unsigned who = (i * (1 + 4 * (round % 2)) + round) % SIDES;

            tree_contribute(&tree.leaves[who], GNI_FMA_CE_FPADD, bits_of(values[who]), 0, round);
        }
        for (unsigned i = 0; i < SIDES; i++) {
            tree_wait(tree.leaves[i].result);
            assert_true(GNI_CE_RES_STATUS_OK(tree.leaves[i].result));
            assert_true(tree.leaves[i].result->result1 == bits_of(sum));
            assert_int_equal(GNI_CE_RES_GET_FPE(tree.leaves[i].result), GNI_CE_FPE_PRECISION);
        }
    }
}

#define ce_test(name)         cmocka_unit_test_setup_teardown(name, start, stop)
#define ce_patient_test(name) cmocka_unit_test_setup_teardown(name, start_patient, stop)

int main(void)
{
    const struct CMUnitTest tests[] = {
        ce_test(test_lost_host_fails_the_reduction_and_others_go_on),
        ce_test(test_contribution_to_a_lost_host_fails_in_entry_and_result),
        ce_test(test_cut_off_host_fails_it_on_both_sides_and_can_be_mended),
        ce_test(test_lost_root_fails_the_reduction_below_it),
        ce_patient_test(test_host_that_pauses_delays_and_changes_nothing),
        ce_patient_test(test_decided_result_reaches_the_leaves_of_an_engine_that_is_destroyed),
        ce_test(test_death_of_a_leaf_far_from_its_engine_breaks_the_tree),
        ce_test(test_sums_are_the_same_bits_in_any_order_of_arrival),
    };

    if (!getenv("EMU_TEST_TRANSPORT")) {
        printf("1..0 # SKIP EMU_TEST_TRANSPORT does not name the transport's module\n");
        return 0;
    }
    if (children_init() < 0)
        return 1;
    return cmocka_run_group_tests_name("reduction trees over hosts", tests, NULL, NULL);
}
