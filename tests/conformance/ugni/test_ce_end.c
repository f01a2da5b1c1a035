/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Collective engine: what the others see when something of a tree is wrong or goes away. Specification: spec/ugni.md
 * 2.16, 4.12; spec/machines.md XC-35 and XC-36.
 */
#include "tests/conformance/ce.h"

/* ---- what is wrong ---- */

static void expect_failure_of_all(uint64_t status)
{
    for (unsigned i = 0; i < tree.n_leaves; i++)
        tree_expect_failure(tree.leaves[i].result, status);
}

static void test_different_operations_fail_one_reduction_for_all(void **state)
{
    (void)state;
    build_deep_tree();
    for (unsigned i = 0; i < SIDES; i++)
        tree_contribute(&tree.leaves[i], i == 17 ? GNI_FMA_CE_IADD_S : GNI_FMA_CE_IADD, 1, 0, 8);
    expect_failure_of_all(MISMATCH);
    tree_sum_up(&tree, 9);
}

static void test_different_reduction_ids_fail_one_reduction_for_all(void **state)
{
    (void)state;
    build_deep_tree();
    for (unsigned i = 0; i < SIDES; i++)
        tree_contribute(&tree.leaves[i], GNI_FMA_CE_IADD, 1, 0, i == 20 ? 9 : 8);
    expect_failure_of_all(MISMATCH);
    /* Each with the id that it named. */
    for (unsigned i = 0; i < SIDES; i++)
        assert_int_equal(GNI_CE_RES_GET_RED_ID(tree.leaves[i].result), i == 20 ? 9 : 8);
    tree_sum_up(&tree, 9);
}

static void mend(void)
{
    for (unsigned i = 0; i < tree.n_engines; i++)
        assert_int_equal(tree_configure(&tree.engines[i]), GNI_RC_SUCCESS);
}

static void test_wrong_child_id_breaks_the_tree_until_it_is_configured_anew(void **state)
{
    struct tree_leaf *wrong = &tree.leaves[SIDES - 1];
    uint32_t id;

    (void)state;
    build_deep_tree();
    id = tree.engines[wrong->engine].id;
    for (unsigned i = 0; i < SIDES - 1; i++)
        tree_contribute(&tree.leaves[i], GNI_FMA_CE_IADD, 1, 0, 8);
    /* Somebody else's place, then one that nobody has. */
    assert_int_equal(GNI_EpSetCeAttr(wrong->ep, id, 0, GNI_CE_CHILD_PE), GNI_RC_SUCCESS);
    wrong->d = tree_post(wrong, GNI_FMA_CE_IADD, 1, 0);
    assert_int_equal(tree_send(wrong), MISMATCH);
    expect_failure_of_all(MISMATCH);
    /* Later ones learn it at once. */
    tree.leaves[0].d = tree_post(&tree.leaves[0], GNI_FMA_CE_IADD, 1, 0);
    assert_int_equal(tree_send(&tree.leaves[0]), MISMATCH);
    tree_expect_failure(tree.leaves[0].result, MISMATCH);
    mend();
    assert_int_equal(GNI_EpSetCeAttr(wrong->ep, id, 31, GNI_CE_CHILD_PE), GNI_RC_SUCCESS);
    for (unsigned i = 0; i < SIDES - 1; i++)
        tree_contribute(&tree.leaves[i], GNI_FMA_CE_IADD, 1, 0, 8);
    assert_int_equal(tree_send(wrong), MISMATCH);
    expect_failure_of_all(MISMATCH);
    assert_int_equal(GNI_EpSetCeAttr(wrong->ep, id, wrong->child_id, GNI_CE_CHILD_PE), GNI_RC_SUCCESS);
    mend();
    tree_sum_up(&tree, 0);
}

static void test_engines_that_do_not_name_each_other_are_a_mismatch(void **state)
{
    (void)state;
    tree_add_engine(&tree, &sides[0], NO_PARENT);
    tree_add_engine(&tree, &sides[1], 0);
    tree_add_leaf(&tree, &sides[2], 0);
    tree_add_leaf(&tree, &sides[3], 1);
    tree_create(&tree);
    assert_int_equal(tree_configure(&tree.engines[0]), GNI_RC_SUCCESS);
    tree_contribute(&tree.leaves[0], GNI_FMA_CE_IADD, 1, 0, 0);
    /* The child says that it is another child. */
    assert_int_equal(GNI_EpSetCeAttr(tree.engines[1].parent_ep, tree.engines[0].id, 5, GNI_CE_CHILD_VCE),
                     GNI_RC_SUCCESS);
    assert_int_equal(tree_configure(&tree.engines[1]), GNI_RC_SUCCESS);
    tree_expect_failure(tree.leaves[0].result, MISMATCH);
    assert_int_equal(GNI_EpSetCeAttr(tree.engines[1].parent_ep, tree.engines[0].id, 1, GNI_CE_CHILD_VCE),
                     GNI_RC_SUCCESS);
    mend();
    tree_sum_up(&tree, 0);
    /* The child says that it is a root. */
    assert_int_equal(
        GNI_CeConfigure(tree.engines[1].ce, tree.engines[1].child_eps, 1, NULL, tree.engines[1].cq, TREE_MODES),
        GNI_RC_SUCCESS);
    tree.leaves[0].d = tree_post(&tree.leaves[0], GNI_FMA_CE_IADD, 1, 0);
    assert_true(tree_send(&tree.leaves[0]) != 0);
    mend();
    tree_sum_up(&tree, 0);
}

static void test_engine_that_is_its_own_parent_hurts_nobody(void **state)
{
    struct tree_engine *e = &tree.engines[0];

    (void)state;
    tree_add_engine(&tree, &sides[0], 0);
    tree_add_leaf(&tree, &sides[1], 0);
    tree_build(&tree);
    tree_contribute(&tree.leaves[0], GNI_FMA_CE_IADD, 1, 0, 0);
    assert_int_equal(GNI_CeCheckResult(tree.leaves[0].result, 1), GNI_RC_NOT_DONE);
    assert_int_equal(GNI_CeDestroy(e->ce), GNI_RC_SUCCESS);
    e->ce = NULL;
    tree_expect_failure(tree.leaves[0].result, CANCELLED);
}

static void test_destroying_an_engine_cancels_what_its_tree_is_doing(void **state)
{
    (void)state;
    for (unsigned victim = 0; victim < 3; victim++) {
        static const unsigned engines[] = { 0, 1, 3 }; /* the root, one in the middle, one at the bottom */
        struct tree_engine *e = &tree.engines[engines[victim]];

        build_deep_tree();
        tree_sum_up(&tree, 1);
        for (unsigned i = 0; i < SIDES - 1; i++)
            tree_contribute(&tree.leaves[i], GNI_FMA_CE_IADD, 1, 0, 2);
        assert_int_equal(GNI_CeDestroy(e->ce), GNI_RC_SUCCESS);
        e->ce = NULL;
        for (unsigned i = 0; i < SIDES - 1; i++)
            tree_expect_failure(tree.leaves[i].result, CANCELLED);
        /* The late one learns it from its entry. */
        tree.leaves[SIDES - 1].d = tree_post(&tree.leaves[SIDES - 1], GNI_FMA_CE_IADD, 1, 0);
        assert_int_equal(tree_send(&tree.leaves[SIDES - 1]),
                         tree.leaves[SIDES - 1].engine == engines[victim] ? BAD_HANDLE : CANCELLED);
        tree_drop(&tree);
    }
}

static void test_finished_reduction_survives_the_end_of_the_tree(void **state)
{
    (void)state;
    for (unsigned round = 0; round < 30; round++) {
        build_deep_tree();
        for (unsigned i = 0; i < SIDES; i++)
            tree_contribute(&tree.leaves[i], GNI_FMA_CE_IADD, 1, 0, round);
        tree_wait(tree.leaves[round % SIDES].result);
        for (unsigned i = 0; i < tree.n_engines; i++) {
            struct tree_engine *e = &tree.engines[(i + round) % tree.n_engines];

            assert_int_equal(GNI_CeDestroy(e->ce), GNI_RC_SUCCESS);
            e->ce = NULL;
        }
        for (unsigned i = 0; i < SIDES; i++)
            tree_expect(&tree.leaves[i], SIDES);
        tree_drop(&tree);
    }
}

/* Whatever happens to an engine, before, while or after its reduction is decided: no leaf sees another outcome. */
static void expect_one_outcome(unsigned seed, bool is_destroyed)
{
    struct emu_random random = seeded(seed);

    for (unsigned round = 0; round < 60; round++) {
        struct tree_leaf *last = &tree.leaves[emu_random_below(&random, SIDES)];
        struct tree_engine *victim;
        gni_post_descriptor_t *done;
        unsigned n_good = 0;

        build_deep_tree();
        do {
            victim = &tree.engines[emu_random_below(&random, tree.n_engines)];
        } while (!is_destroyed && victim == &tree.engines[last->engine]); /* else its new tree may get the last one */
        for (unsigned i = 0; i < SIDES; i++) {
            if (&tree.leaves[i] != last)
                tree_contribute(&tree.leaves[i], GNI_FMA_CE_IADD, 1, 0, round);
        }
        memset(last->result, 0, sizeof(*last->result));
        last->d = tree_post(last, GNI_FMA_CE_IADD, 1, 0);
        last->d.ce_red_id = round;
        assert_int_equal(GNI_PostFma(last->ep, &last->d), GNI_RC_SUCCESS);
        for (uint64_t n = emu_random_below(&random, 2) ? emu_random_below(&random, 100) : 0; n > 0; n--)
            sched_yield();
        if (is_destroyed) {
            assert_int_equal(GNI_CeDestroy(victim->ce), GNI_RC_SUCCESS);
            victim->ce = NULL;
        } else {
            assert_int_equal(tree_configure(victim), GNI_RC_SUCCESS);
        }
        gx_complete(last->side->src_cq, &done);
        assert_ptr_equal(done, &last->d);
        for (unsigned i = 0; i < SIDES; i++) {
            gni_return_t rc = tree_wait(tree.leaves[i].result);

            assert_true(rc == GNI_RC_SUCCESS || rc == GNI_RC_TRANSACTION_ERROR);
            n_good += rc == GNI_RC_SUCCESS;
        }
        assert_true(n_good == 0 || n_good == SIDES);
        tree_drop(&tree);
    }
}

static void test_end_of_an_engine_fails_a_reduction_for_all_or_for_nobody(void **state)
{
    (void)state;
    expect_one_outcome(36, true);
}

static void test_configuring_again_fails_a_reduction_for_all_or_for_nobody(void **state)
{
    (void)state;
    expect_one_outcome(37, false);
}

static void test_configuring_again_cancels_what_is_under_way(void **state)
{
    (void)state;
    tree_build_flat(&tree, sides, 3);
    tree_contribute(&tree.leaves[0], GNI_FMA_CE_IADD, 1, 0, 2);
    assert_int_equal(tree_configure(&tree.engines[0]), GNI_RC_SUCCESS);
    tree_expect_failure(tree.leaves[0].result, CANCELLED);
    tree_sum_up(&tree, 3);
}

static void test_refused_configuration_changes_nothing(void **state)
{
    struct tree_engine *e = &tree.engines[0];

    (void)state;
    tree_build_flat(&tree, sides, 2);
    tree_contribute(&tree.leaves[0], GNI_FMA_CE_IADD, 1, 0, 2);
    assert_int_equal(GNI_CeConfigure(e->ce, e->child_eps, 2, NULL, e->cq, 0), GNI_RC_INVALID_PARAM);
    tree_contribute(&tree.leaves[1], GNI_FMA_CE_IADD, 1, 0, 2);
    tree_expect(&tree.leaves[0], 2);
}

static void test_end_of_a_nic_handle_takes_its_leaf_and_engines_away(void **state)
{
    struct gx_side leaving;

    (void)state;
    for (unsigned owns_engine = 0; owns_engine < 2; owns_engine++) {
        gx_open(&leaving, &fx, 5, 600, 0);
        tree_add_engine(&tree, &sides[0], NO_PARENT);
        tree_add_engine(&tree, owns_engine ? &leaving : &sides[1], 0);
        tree_add_leaf(&tree, &sides[2], 0);
        tree_add_leaf(&tree, owns_engine ? &sides[3] : &leaving, 1);
        tree_build(&tree);
        tree_sum_up(&tree, 0);
        tree_contribute(&tree.leaves[0], GNI_FMA_CE_IADD, 1, 0, 1);
        gx_close(&leaving);
        tree_expect_failure(tree.leaves[0].result, PEER_GONE);
        expect_entry(&tree.engines[0], 1, PEER_GONE);
        if (owns_engine)
            tree.engines[1].ce = NULL;
        tree_drop(&tree);
    }
}

/* ---- processes ---- */

struct board { /* what ranks tell each other */
    _Atomic uint32_t posted;
    _Atomic int pids[8];
    uint32_t ce_id;
    uint32_t owner_addr;
};

/* A leaf in a process of its own, rank r as child r of rank 0's engine. */
struct member {
    struct gx_side side;
    struct board *board;
    gni_ce_handle_t ce;
    gni_ep_handle_t eps[8];
    gni_ep_handle_t ep;
    gni_post_descriptor_t d;
};

static void join_tree(struct member *m, struct fx_rank *rank, unsigned n_leaves)
{
    *m = (struct member){ .board = rank->shared };
    gx_open(&m->side, rank->fx, rank->fx->nids[rank->rank], 200 + rank->rank, 0);
    m->board->pids[rank->rank] = getpid();
    if (rank->rank == 0) {
        FX_CHECK(GNI_CeCreate(m->side.nic, &m->ce) == GNI_RC_SUCCESS);
        FX_CHECK(GNI_CeGetId(m->ce, &m->board->ce_id) == GNI_RC_SUCCESS);
        m->board->owner_addr = m->side.nic_addr;
        for (uint32_t i = 0; i < n_leaves; i++) {
            FX_CHECK(GNI_EpCreate(m->side.nic, NULL, &m->eps[i]) == GNI_RC_SUCCESS);
            FX_CHECK(GNI_EpBind(m->eps[i], rank->fx->nids[i], 200 + i) == GNI_RC_SUCCESS);
            FX_CHECK(GNI_EpSetCeAttr(m->eps[i], 0, i, GNI_CE_CHILD_PE) == GNI_RC_SUCCESS);
        }
        FX_CHECK(GNI_CeConfigure(m->ce, m->eps, n_leaves, NULL, m->side.dst_cq, TREE_MODES) == GNI_RC_SUCCESS);
    }
    pthread_barrier_wait(rank->barrier);
    FX_CHECK(GNI_EpCreate(m->side.nic, m->side.src_cq, &m->ep) == GNI_RC_SUCCESS);
    FX_CHECK(GNI_EpBind(m->ep, m->board->owner_addr, 200) == GNI_RC_SUCCESS);
    FX_CHECK(GNI_EpSetCeAttr(m->ep, m->board->ce_id, rank->rank, GNI_CE_CHILD_PE) == GNI_RC_SUCCESS);
    pthread_barrier_wait(rank->barrier);
}

static gni_ce_result_t *member_result(const struct member *m)
{
    return (gni_ce_result_t *)(void *)m->side.mem;
}

/* Posts and waits for the entry. Its status. */
static uint64_t member_post(struct member *m, uint64_t value)
{
    gni_cq_entry_t entry = 0;

    memset(member_result(m), 0, sizeof(gni_ce_result_t));
    m->d = (gni_post_descriptor_t){ .type = GNI_POST_CE,
                                    .cq_mode = GNI_CQMODE_GLOBAL_EVENT,
                                    .local_addr = (uint64_t)(uintptr_t)m->side.mem,
                                    .local_mem_hndl = m->side.mem_hndl,
                                    .ce_cmd = GNI_FMA_CE_IMIN_LIDX,
                                    .first_operand = value,
                                    .second_operand = 1000 + value };
    FX_CHECK(GNI_PostFma(m->ep, &m->d) == GNI_RC_SUCCESS);
    gx_next(m->side.src_cq, &entry);
    FX_CHECK(entry != 0);
    atomic_fetch_add(&m->board->posted, 1);
    return GNI_CQ_GET_STATUS(entry);
}

static bool is_stopped(void *arg)
{
    char path[64];
    char state = 0;
    FILE *file;

    snprintf(path, sizeof(path), "/proc/%d/stat", *(int *)arg);
    file = fopen(path, "re");
    if (file && fscanf(file, "%*d (%*[^)]) %c", &state) != 1)
        state = 0;
    if (file)
        fclose(file);
    return state == 'T';
}

/* Three processes, the engine's owner among them, are stopped once their contribution was taken. */
static int body_without_host(struct fx_rank *rank)
{
    struct member m;

    alarm(40);
    join_tree(&m, rank, rank->n_ranks);
    if (rank->rank != rank->n_ranks - 1) {
        FX_CHECK(member_post(&m, 50 - rank->rank) == 0);
        raise(SIGSTOP);
    } else {
        for (unsigned i = 0; i < rank->n_ranks - 1; i++) {
            int pid = m.board->pids[i];

            FX_CHECK(eventually(is_stopped, &pid, TREE_PATIENCE_NS));
        }
        FX_CHECK(member_post(&m, 60) == 0);
        FX_CHECK(tree_wait(member_result(&m)) == GNI_RC_SUCCESS);
        for (unsigned i = 0; i < rank->n_ranks - 1; i++)
            kill(m.board->pids[i], SIGCONT);
    }
    FX_CHECK(tree_wait(member_result(&m)) == GNI_RC_SUCCESS);
    FX_CHECK(member_result(&m)->result1 == 48);
    FX_CHECK(member_result(&m)->result2 == 1048);
    pthread_barrier_wait(rank->barrier);
    return 0;
}

static void test_reduction_ends_while_its_other_members_are_stopped(void **state)
{
    (void)state;
    assert_int_equal(fx_run(&fx, 4, body_without_host, NULL), 0);
}

static bool all_but_one_have_posted(void *arg)
{
    struct board *board = arg;

    return atomic_load(&board->posted) == 3;
}

/* Twice: for whoever leaves takes its leaf, rank 0 the engine, away from the others. */
static bool all_but_one_are_done(void *arg)
{
    struct board *board = arg;

    return atomic_load(&board->posted) == 6;
}

/* The rank in `arg` is killed in the middle of a reduction that it has not posted to. */
static int body_with_a_death(struct fx_rank *rank)
{
    unsigned victim = *(const unsigned *)rank->arg;
    struct member m;

    alarm(40);
    join_tree(&m, rank, rank->n_ranks);
    if (rank->rank == victim) {
        FX_CHECK(eventually(all_but_one_have_posted, m.board, TREE_PATIENCE_NS));
        kill(getpid(), SIGKILL);
    }
    FX_CHECK(member_post(&m, 1) == 0);
    FX_CHECK(tree_wait(member_result(&m)) == GNI_RC_TRANSACTION_ERROR);
    FX_CHECK(!GNI_CE_RES_STATUS_OK(member_result(&m)));
    FX_CHECK(GNI_CE_RES_GET_STATUS(member_result(&m)) == PEER_GONE);
    /* Later contributions fail at once: with the leaf's end, or with the engine's. */
    FX_CHECK(member_post(&m, 1) == (victim == 0 ? BAD_HANDLE : PEER_GONE));
    FX_CHECK(tree_wait(member_result(&m)) == GNI_RC_TRANSACTION_ERROR);
    if (rank->rank == 0) {
        gni_cq_entry_t entry;

        FX_CHECK(gx_next(m.side.dst_cq, &entry) == GNI_RC_TRANSACTION_ERROR);
        FX_CHECK(GNI_CQ_GET_STATUS(entry) == PEER_GONE);
    }
    FX_CHECK(eventually(all_but_one_are_done, m.board, TREE_PATIENCE_NS));
    return 0;
}

static void test_death_of_a_child_fails_the_reduction_of_the_others(void **state)
{
    unsigned victim = 2;

    (void)state;
    assert_int_equal(fx_run(&fx, 4, body_with_a_death, &victim), 1);
}

static void test_death_of_an_engines_owner_fails_the_reduction_of_its_leaves(void **state)
{
    unsigned victim = 0;
    gni_ce_handle_t ces[ENGINES_PER_NIC];

    (void)state;
    assert_int_equal(fx_run(&fx, 4, body_with_a_death, &victim), 1);
    /* The dead one's engine is free again. */
    for (unsigned i = 0; i < ENGINES_PER_NIC; i++)
        assert_int_equal(GNI_CeCreate(sides[0].nic, &ces[i]), GNI_RC_SUCCESS);
    for (unsigned i = 0; i < ENGINES_PER_NIC; i++)
        GNI_CeDestroy(ces[i]);
}

/* Everybody leaves as soon as it has its own result: nobody's may get lost. */
static int body_that_leaves_at_once(struct fx_rank *rank)
{
    struct member m;

    alarm(40);
    join_tree(&m, rank, rank->n_ranks);
    FX_CHECK(member_post(&m, 10 + rank->rank) == 0);
    FX_CHECK(tree_wait(member_result(&m)) == GNI_RC_SUCCESS);
    FX_CHECK(member_result(&m)->result1 == 10);
    return 0;
}

static void test_members_may_leave_when_they_have_their_result(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 5; i++)
        assert_int_equal(fx_run(&fx, 4, body_that_leaves_at_once, NULL), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ce_test(test_different_operations_fail_one_reduction_for_all),
        ce_test(test_different_reduction_ids_fail_one_reduction_for_all),
        ce_test(test_wrong_child_id_breaks_the_tree_until_it_is_configured_anew),
        ce_test(test_engines_that_do_not_name_each_other_are_a_mismatch),
        ce_test(test_engine_that_is_its_own_parent_hurts_nobody),
        ce_test(test_destroying_an_engine_cancels_what_its_tree_is_doing),
        ce_test(test_finished_reduction_survives_the_end_of_the_tree),
        ce_test(test_end_of_an_engine_fails_a_reduction_for_all_or_for_nobody),
        ce_test(test_configuring_again_fails_a_reduction_for_all_or_for_nobody),
        ce_test(test_configuring_again_cancels_what_is_under_way),
        ce_test(test_refused_configuration_changes_nothing),
        ce_test(test_end_of_a_nic_handle_takes_its_leaf_and_engines_away),
        ce_test(test_reduction_ends_while_its_other_members_are_stopped),
        ce_test(test_death_of_a_child_fails_the_reduction_of_the_others),
        ce_test(test_death_of_an_engines_owner_fails_the_reduction_of_its_leaves),
        ce_test(test_members_may_leave_when_they_have_their_result),
    };

    return cmocka_run_group_tests(tests, start, stop);
}
