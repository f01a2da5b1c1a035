/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Collective engine: who a leaf is. Endpoints are bound with instance ids that nobody has, as known programs do;
 * several processes of a node are leaves; what emunic logs of those that do not agree. Specification: spec/ugni.md
 * 4.12.
 */
#include <sys/mman.h>

#include "tests/conformance/ce.h"

static int log_fd;

/* What emunic logs can be read. */
static int start_with_log(void **state)
{
    int own_stderr = dup(STDERR_FILENO);

    setenv("EMUNIC_LOG", "warn", 1);
    log_fd = memfd_create("log", MFD_CLOEXEC);
    if (log_fd < 0 || own_stderr < 0 || dup2(log_fd, STDERR_FILENO) < 0)
        return -1;
    start(state);
    dup2(own_stderr, STDERR_FILENO);
    close(own_stderr);
    return 0;
}

static int stop_with_log(void **state)
{
    int status = stop(state);

    close(log_fd);
    return status;
}

/* One line has all of it. What emunic says of a contribution it says before it answers that. */
static void expect_line(const char *const *words, unsigned n_words)
{
    static char text[1 << 16];
    ssize_t n = pread(log_fd, text, sizeof(text) - 1, 0);
    bool is_there = false;
    char *rest = text;
    char *line;

    assert_true(n >= 0);
    text[n] = '\0';
    while ((line = strsep(&rest, "\n")) && !is_there) {
        is_there = true;
        for (unsigned i = 0; i < n_words; i++)
            is_there = is_there && strstr(line, words[i]);
    }
    assert_true(is_there);
}

/* ---- ids that nobody has ---- */

static void bind_strangely(gni_ep_handle_t ep, const struct gx_side *to, uint32_t id)
{
    assert_int_equal(GNI_EpUnbind(ep), GNI_RC_SUCCESS);
    assert_int_equal(GNI_EpBind(ep, to->nic_addr, id), GNI_RC_SUCCESS);
}

/* Two engines above each other, one leaf on every node. Instances are 100 + i; endpoints name 7000, 7001 ... */
static void build_strange_tree(void)
{
    uint32_t id = 7000;

    tree_add_engine(&tree, &sides[0], NO_PARENT);
    tree_add_engine(&tree, &sides[1], 0);
    for (unsigned i = 0; i < SIDES; i++)
        tree_add_leaf(&tree, &sides[i], i % 2);
    tree_create(&tree);
    for (unsigned i = 0; i < tree.n_leaves; i++) {
        struct tree_leaf *l = &tree.leaves[i];

        bind_strangely(l->ep, tree.engines[l->engine].side, id++);
        bind_strangely(tree.engines[l->engine].child_eps[l->child_id], l->side, id++);
    }
    bind_strangely(tree.engines[1].parent_ep, tree.engines[0].side, id++);
    bind_strangely(tree.engines[0].child_eps[tree.engines[1].child_id], tree.engines[1].side, id++);
    for (unsigned i = 0; i < tree.n_engines; i++)
        assert_int_equal(tree_configure(&tree.engines[i]), GNI_RC_SUCCESS);
}

static void test_instances_of_end_points_play_no_part(void **state)
{
    (void)state;
    build_strange_tree();
    for (uint64_t id = 0; id < 5; id++)
        tree_sum_up(&tree, id);
}

/* The instance that an endpoint of the engine is bound to is that of another leaf. */
static void test_exchanged_instances_play_no_part(void **state)
{
    struct tree_engine *e = &tree.engines[0];

    (void)state;
    tree_add_engine(&tree, &sides[0], NO_PARENT);
    for (unsigned i = 0; i < 4; i++)
        tree_add_leaf(&tree, &sides[i], 0);
    tree_create(&tree);
    for (unsigned i = 0; i < 4; i++)
        bind_strangely(e->child_eps[i], &sides[i], sides[3 - i].inst_id);
    assert_int_equal(tree_configure(e), GNI_RC_SUCCESS);
    tree_sum_up(&tree, 1);
    tree_sum_up(&tree, 2);
}

static void test_end_of_a_leaf_that_has_posted_breaks_the_tree_whatever_its_end_point_names(void **state)
{
    struct gx_side leaving;

    (void)state;
    gx_open(&leaving, &fx, 5, 600, 0);
    tree_add_engine(&tree, &sides[0], NO_PARENT);
    tree_add_leaf(&tree, &sides[2], 0);
    tree_add_leaf(&tree, &leaving, 0);
    tree_create(&tree);
    bind_strangely(tree.engines[0].child_eps[1], &leaving, 7000);
    assert_int_equal(tree_configure(&tree.engines[0]), GNI_RC_SUCCESS);
    tree_sum_up(&tree, 0);
    tree_contribute(&tree.leaves[0], GNI_FMA_CE_IADD, 1, 0, 1);
    gx_close(&leaving);
    tree_expect_failure(tree.leaves[0].result, PEER_GONE);
}

/* ---- processes ---- */

struct board {
    uint32_t ce_id;
    uint32_t owner_addr;
    int pids[FX_RANKS_MAX];
};

struct member {
    struct gx_side side;
    struct board *board;
    gni_ce_handle_t ce;
    gni_ep_handle_t eps[8];
    gni_ep_handle_t ep;
    gni_post_descriptor_t d;
};

/* Two ranks a node. Each posts as that child of rank 0's engine, which knows child i to be on rank i's node. */
static void join_tree(struct member *m, struct fx_rank *rank, uint32_t child_id)
{
    *m = (struct member){ .board = rank->shared };
    gx_open(&m->side, rank->fx, rank->fx->nids[rank->rank / 2], 1000 * rank->rank, 0);
    m->board->pids[rank->rank] = getpid();
    if (rank->rank == 0) {
        FX_CHECK(GNI_CeCreate(m->side.nic, &m->ce) == GNI_RC_SUCCESS);
        FX_CHECK(GNI_CeGetId(m->ce, &m->board->ce_id) == GNI_RC_SUCCESS);
        m->board->owner_addr = m->side.nic_addr;
        for (uint32_t i = 0; i < rank->n_ranks; i++) {
            FX_CHECK(GNI_EpCreate(m->side.nic, NULL, &m->eps[i]) == GNI_RC_SUCCESS);
            FX_CHECK(GNI_EpBind(m->eps[i], rank->fx->nids[i / 2], 100 * rank->rank + i + 1) == GNI_RC_SUCCESS);
            FX_CHECK(GNI_EpSetCeAttr(m->eps[i], 0, i, GNI_CE_CHILD_PE) == GNI_RC_SUCCESS);
        }
        FX_CHECK(GNI_CeConfigure(m->ce, m->eps, rank->n_ranks, NULL, m->side.dst_cq, TREE_MODES) == GNI_RC_SUCCESS);
    }
    pthread_barrier_wait(rank->barrier);
    FX_CHECK(GNI_EpCreate(m->side.nic, m->side.src_cq, &m->ep) == GNI_RC_SUCCESS);
    FX_CHECK(GNI_EpBind(m->ep, m->board->owner_addr, 100 * rank->rank) == GNI_RC_SUCCESS);
    FX_CHECK(GNI_EpSetCeAttr(m->ep, m->board->ce_id, child_id, GNI_CE_CHILD_PE) == GNI_RC_SUCCESS);
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
                                    .ce_cmd = GNI_FMA_CE_IADD,
                                    .first_operand = value };
    FX_CHECK(GNI_PostFma(m->ep, &m->d) == GNI_RC_SUCCESS);
    gx_next(m->side.src_cq, &entry);
    FX_CHECK(entry != 0);
    return GNI_CQ_GET_STATUS(entry);
}

static int body_of_leaves(struct fx_rank *rank)
{
    struct member m;

    alarm(40);
    join_tree(&m, rank, rank->rank);
    for (unsigned round = 1; round <= 3; round++) {
        FX_CHECK(member_post(&m, round * (1u << rank->rank)) == 0);
        FX_CHECK(tree_wait(member_result(&m)) == GNI_RC_SUCCESS);
        FX_CHECK(member_result(&m)->result1 == round * ((1u << rank->n_ranks) - 1));
    }
    pthread_barrier_wait(rank->barrier);
    return 0;
}

static void test_processes_of_a_node_are_told_apart_by_their_child_ids(void **state)
{
    (void)state;
    assert_int_equal(fx_run(&fx, 6, body_of_leaves, NULL), 0);
}

/* Ranks 2 and 3, both of the second node, post as child 2. */
static int body_with_an_intruder(struct fx_rank *rank)
{
    struct member m;

    alarm(40);
    join_tree(&m, rank, rank->rank == 3 ? 2 : rank->rank);
    if (rank->rank != 3)
        FX_CHECK(member_post(&m, 1) == 0);
    pthread_barrier_wait(rank->barrier);
    if (rank->rank == 3)
        FX_CHECK(member_post(&m, 1) == MISMATCH);
    FX_CHECK(tree_wait(member_result(&m)) == GNI_RC_TRANSACTION_ERROR);
    FX_CHECK(GNI_CE_RES_GET_STATUS(member_result(&m)) == MISMATCH);
    pthread_barrier_wait(rank->barrier);
    return 0;
}

static void test_second_process_under_a_child_id_breaks_the_tree_and_the_log_names_both(void **state)
{
    struct fx_ranks ranks;
    char first[64];
    char second[64];
    const char *words[] = { "its child 2 is nid 1 inst 0x7d0 ", first, ", but nid 1 inst 0xbb8 ", second };

    (void)state;
    fx_spawn(&fx, 4, body_with_an_intruder, NULL, &ranks);
    snprintf(first, sizeof(first), "pid %d,", (int)ranks.pids[2]);
    snprintf(second, sizeof(second), "pid %d posts", (int)ranks.pids[3]);
    assert_int_equal(fx_join(&ranks), 0);
    expect_line(words, 4);
}

/* ---- what is said of others that do not agree ---- */

static void test_log_names_who_is_configured_and_who_came(void **state)
{
    static const char *const other_node[] = { "its child 0 is a leaf on nid 3", "but nid 4 inst 0x68 " };
    static const char *const nobody[] = { "its child 31 is nobody", "but nid 4 inst 0x68 " };
    struct tree_leaf *wrong = &tree.leaves[1];
    uint32_t id;

    (void)state;
    tree_add_engine(&tree, &sides[2], NO_PARENT);
    tree_add_leaf(&tree, &sides[3], 0);
    tree_add_leaf(&tree, &sides[4], 0);
    tree_build(&tree);
    id = tree.engines[0].id;
    wrong->d = tree_post(wrong, GNI_FMA_CE_IADD, 1, 0);
    assert_int_equal(GNI_EpSetCeAttr(wrong->ep, id, 0, GNI_CE_CHILD_PE), GNI_RC_SUCCESS);
    assert_int_equal(tree_send(wrong), MISMATCH);
    expect_line(other_node, 2);
    assert_int_equal(tree_configure(&tree.engines[0]), GNI_RC_SUCCESS);
    assert_int_equal(GNI_EpSetCeAttr(wrong->ep, id, 31, GNI_CE_CHILD_PE), GNI_RC_SUCCESS);
    assert_int_equal(tree_send(wrong), MISMATCH);
    expect_line(nobody, 2);
}

static void test_log_names_both_of_different_operations(void **state)
{
    static const char *const words[] = { "child 0, nid 3 inst 0x67 ", "posts iadd, id 8;", "child 1, nid 4 inst 0x68 ",
                                         "posts iadd_s, id 9" };

    (void)state;
    tree_add_engine(&tree, &sides[2], NO_PARENT);
    tree_add_leaf(&tree, &sides[3], 0);
    tree_add_leaf(&tree, &sides[4], 0);
    tree_build(&tree);
    tree_contribute(&tree.leaves[0], GNI_FMA_CE_IADD, 1, 0, 8);
    tree_contribute(&tree.leaves[1], GNI_FMA_CE_IADD_S, 1, 0, 9);
    tree_expect_failure(tree.leaves[0].result, MISMATCH);
    tree_expect_failure(tree.leaves[1].result, MISMATCH);
    expect_line(words, 4);
}

static void test_log_names_engines_that_do_not_name_each_other(void **state)
{
    static const char *const words[] = { "its child 1 is engine ", " of nid 1, which is configured otherwise" };

    (void)state;
    tree_add_engine(&tree, &sides[0], NO_PARENT);
    tree_add_engine(&tree, &sides[1], 0);
    tree_add_leaf(&tree, &sides[2], 0);
    tree_add_leaf(&tree, &sides[3], 1);
    tree_create(&tree);
    assert_int_equal(GNI_EpSetCeAttr(tree.engines[1].parent_ep, tree.engines[0].id, 5, GNI_CE_CHILD_VCE),
                     GNI_RC_SUCCESS);
    assert_int_equal(tree_configure(&tree.engines[1]), GNI_RC_SUCCESS);
    assert_int_equal(tree_configure(&tree.engines[0]), GNI_RC_SUCCESS);
    tree_contribute(&tree.leaves[0], GNI_FMA_CE_IADD, 1, 0, 0);
    tree_expect_failure(tree.leaves[0].result, MISMATCH);
    expect_line(words, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ce_test(test_instances_of_end_points_play_no_part),
        ce_test(test_exchanged_instances_play_no_part),
        ce_test(test_end_of_a_leaf_that_has_posted_breaks_the_tree_whatever_its_end_point_names),
        ce_test(test_processes_of_a_node_are_told_apart_by_their_child_ids),
        ce_test(test_second_process_under_a_child_id_breaks_the_tree_and_the_log_names_both),
        ce_test(test_log_names_who_is_configured_and_who_came),
        ce_test(test_log_names_both_of_different_operations),
        ce_test(test_log_names_engines_that_do_not_name_each_other),
    };

    return cmocka_run_group_tests(tests, start_with_log, stop_with_log);
}
