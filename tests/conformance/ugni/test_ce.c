/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Collective engine: the codes of each call, all operations, trees over many nodes, order, entries of engines; what
 * goes wrong is in test_ce_end.c. Specification: spec/ugni.md 2.16, 3.6, 4.8, 4.12; spec/machines.md XC-35 and XC-36.
 */
#include "emunic/engine/bits.h"
#include "tests/conformance/ce.h"

/* ---- engines ---- */

static void test_four_engines_per_nic_shared_by_all_its_handles(void **state)
{
    gni_ce_handle_t ces[ENGINES_PER_NIC];
    gni_ce_handle_t more = NULL;
    struct gx_side second;
    uint32_t seen = 0;

    (void)state;
    gx_open(&second, &fx, 0, 500, 0);
    for (unsigned i = 0; i < ENGINES_PER_NIC; i++) {
        uint32_t id = 99;

        assert_int_equal(GNI_CeCreate((i % 2 ? &second : &sides[0])->nic, &ces[i]), GNI_RC_SUCCESS);
        assert_int_equal(GNI_CeGetId(ces[i], &id), GNI_RC_SUCCESS);
        assert_true(id < ENGINES_PER_NIC && (seen >> id & 1) == 0);
        seen |= 1u << id;
    }
    assert_int_equal(GNI_CeCreate(sides[0].nic, &more), GNI_RC_ERROR_RESOURCE);
    assert_int_equal(GNI_CeCreate(second.nic, &more), GNI_RC_ERROR_RESOURCE);
    assert_null(more);
    /* Another node has its own. */
    assert_int_equal(GNI_CeCreate(sides[1].nic, &more), GNI_RC_SUCCESS);
    assert_int_equal(GNI_CeDestroy(more), GNI_RC_SUCCESS);
    assert_int_equal(GNI_CeDestroy(ces[0]), GNI_RC_SUCCESS);
    assert_int_equal(GNI_CeCreate(second.nic, &more), GNI_RC_SUCCESS);
    assert_int_equal(GNI_CeDestroy(more), GNI_RC_SUCCESS);
    /* What a NIC handle leaves behind is free again. */
    gx_close(&second);
    assert_int_equal(GNI_CeDestroy(ces[1]), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_CeDestroy(ces[2]), GNI_RC_SUCCESS);
    for (unsigned i = 0; i < ENGINES_PER_NIC; i++)
        assert_int_equal(GNI_CeCreate(sides[0].nic, &ces[i]), GNI_RC_SUCCESS);
    for (unsigned i = 0; i < ENGINES_PER_NIC; i++)
        assert_int_equal(GNI_CeDestroy(ces[i]), GNI_RC_SUCCESS);
}

static void test_engines_in_use_are_told(void **state)
{
    gni_dev_res_desc_t desc = { 0, 0, 0, 0 };
    gni_ce_handle_t ce;

    (void)state;
    fx_set_node(sides[SIDES - 1].nic_addr); /* the figures are those of this process's node */
    assert_int_equal(GNI_CeCreate(sides[SIDES - 1].nic, &ce), GNI_RC_SUCCESS);
    assert_int_equal(GNI_GetDevResInfo(0, GNI_DEV_RES_CE, &desc), GNI_RC_SUCCESS);
    assert_int_equal(desc.total, ENGINES_PER_NIC);
    assert_int_equal(desc.held, 1);
    assert_int_equal(GNI_CeDestroy(ce), GNI_RC_SUCCESS);
    assert_int_equal(GNI_GetDevResInfo(0, GNI_DEV_RES_CE, &desc), GNI_RC_SUCCESS);
    assert_int_equal(desc.held, 0);
}

static void test_engine_calls_refuse_bad_arguments(void **state)
{
    gni_ce_handle_t ce;
    uint32_t id;

    (void)state;
    assert_int_equal(GNI_CeCreate(NULL, &ce), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_CeCreate((gni_nic_handle_t)(uintptr_t)sides[0].cdm, &ce), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_CeCreate(sides[0].nic, NULL), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_CeCreate(sides[0].nic, &ce), GNI_RC_SUCCESS);
    assert_int_equal(GNI_CeGetId(ce, NULL), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_CeGetId(NULL, &id), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_CeDestroy(NULL), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_CeDestroy(ce), GNI_RC_SUCCESS);
    assert_int_equal(GNI_CeDestroy(ce), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_CeGetId(ce, &id), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_CeCheckResult(NULL, 1), GNI_RC_INVALID_PARAM);
}

static void test_attributes_refuse_bad_arguments(void **state)
{
    gni_ep_handle_t ep;

    (void)state;
    assert_int_equal(GNI_EpCreate(sides[0].nic, NULL, &ep), GNI_RC_SUCCESS);
    assert_int_equal(GNI_EpSetCeAttr(NULL, 0, 0, GNI_CE_CHILD_PE), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_EpSetCeAttr(ep, 0, 32, GNI_CE_CHILD_PE), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_EpSetCeAttr(ep, 0, 0, GNI_CE_CHILD_UNUSED), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_EpSetCeAttr(ep, 0, 0, (gni_ce_child_t)3), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_EpSetCeAttr(ep, UINT32_MAX, 31, GNI_CE_CHILD_PE), GNI_RC_SUCCESS);
    assert_int_equal(GNI_EpSetCeAttr(ep, 3, 31, GNI_CE_CHILD_VCE), GNI_RC_SUCCESS);
    assert_int_equal(GNI_EpDestroy(ep), GNI_RC_SUCCESS);
    assert_int_equal(GNI_EpSetCeAttr(ep, 0, 0, GNI_CE_CHILD_PE), GNI_RC_INVALID_PARAM);
}

/* No child stands behind the first of `holes`; the second of `another` is of another NIC handle. */
static void configurations_are_refused(const struct tree_engine *e, gni_ep_handle_t *holes, gni_ep_handle_t *another)
{
    gni_ep_handle_t same[33];
    gni_ep_handle_t *children = (gni_ep_handle_t *)(uintptr_t)e->child_eps;
    const struct {
        const char *name;
        gni_ce_handle_t ce;
        gni_ep_handle_t *children;
        uint32_t n;
        gni_ep_handle_t parent;
        gni_cq_handle_t cq;
    } rows[] = {
        { "no engine", NULL, children, 2, NULL, e->cq },
        { "no table of children", e->ce, NULL, 2, NULL, e->cq },
        { "no child", e->ce, children, 0, NULL, e->cq },
        { "too many children", e->ce, same, 33, NULL, e->cq },
        { "the same child twice", e->ce, same, 2, NULL, e->cq },
        { "no queue", e->ce, children, 2, NULL, NULL },
        { "queue of another NIC", e->ce, children, 2, NULL, sides[1].src_cq },
        { "a child that is none", e->ce, holes, 2, NULL, e->cq },
        { "child of another NIC handle", e->ce, another, 2, NULL, e->cq },
        { "parent of another NIC handle", e->ce, children, 2, another[1], e->cq },
    };

    for (unsigned i = 0; i < 33; i++)
        same[i] = children[0];
    for (size_t i = 0; i < COUNT_OF(rows); i++)
        assert_row_equal(
            rows[i].name,
            GNI_CeConfigure(rows[i].ce, rows[i].children, rows[i].n, rows[i].parent, rows[i].cq, TREE_MODES),
            GNI_RC_INVALID_PARAM);
}

static void test_configuration_refuses_bad_arguments(void **state)
{
    gni_ep_handle_t eps[33];
    gni_ep_handle_t another[2];
    gni_ep_handle_t foreign;
    struct tree_engine *e;

    (void)state;
    tree_add_engine(&tree, &sides[0], NO_PARENT);
    tree_add_leaf(&tree, &sides[0], 0);
    tree_add_leaf(&tree, &sides[1], 0);
    tree_create(&tree);
    e = &tree.engines[0];
    for (unsigned i = 0; i < 33; i++)
        eps[i] = e->child_eps[0];
    eps[1] = NULL;
    foreign = tree_ep(&sides[2], NULL, &sides[1], 0, 1, GNI_CE_CHILD_PE);
    another[0] = eps[0];
    another[1] = foreign;
    configurations_are_refused(e, eps, another);
    GNI_EpDestroy(foreign);
    /* Without attributes, without a peer, to a node outside the domain. */
    assert_int_equal(GNI_EpCreate(sides[0].nic, NULL, &eps[1]), GNI_RC_SUCCESS);
    assert_int_equal(GNI_EpSetCeAttr(eps[1], 0, 1, GNI_CE_CHILD_PE), GNI_RC_SUCCESS);
    assert_int_equal(GNI_CeConfigure(e->ce, eps, 2, NULL, e->cq, TREE_MODES), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_EpBind(eps[1], 300, 1), GNI_RC_SUCCESS);
    assert_int_equal(GNI_CeConfigure(e->ce, eps, 2, NULL, e->cq, TREE_MODES), GNI_RC_INVALID_PARAM);
    GNI_EpDestroy(eps[1]);
    assert_int_equal(GNI_EpCreate(sides[0].nic, NULL, &eps[1]), GNI_RC_SUCCESS);
    assert_int_equal(GNI_EpBind(eps[1], 1, 101), GNI_RC_SUCCESS);
    assert_int_equal(GNI_CeConfigure(e->ce, eps, 2, NULL, e->cq, TREE_MODES), GNI_RC_INVALID_PARAM);
    GNI_EpDestroy(eps[1]);
    /* A parent is an engine, and a number that no engine can have is none. */
    assert_int_equal(GNI_CeConfigure(e->ce, e->child_eps, 1, e->child_eps[1], e->cq, TREE_MODES), GNI_RC_INVALID_PARAM);
    eps[1] = tree_ep(&sides[0], NULL, &sides[1], ENGINES_PER_NIC, 1, GNI_CE_CHILD_VCE);
    assert_int_equal(GNI_CeConfigure(e->ce, eps, 2, NULL, e->cq, TREE_MODES), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_CeConfigure(e->ce, e->child_eps, 2, eps[1], e->cq, TREE_MODES), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_EpSetCeAttr(eps[1], UINT32_MAX, 1, GNI_CE_CHILD_VCE), GNI_RC_SUCCESS);
    assert_int_equal(GNI_CeConfigure(e->ce, eps, 2, NULL, e->cq, TREE_MODES), GNI_RC_INVALID_PARAM);
    GNI_EpDestroy(eps[1]);
    assert_int_equal(tree_configure(e), GNI_RC_SUCCESS);
    tree_sum_up(&tree, 0);
}

static void test_configuration_takes_one_mode_of_each_kind(void **state)
{
    static const uint32_t roundings[] = { GNI_CE_MODE_ROUND_UP, GNI_CE_MODE_ROUND_DOWN, GNI_CE_MODE_ROUND_NEAR,
                                          GNI_CE_MODE_ROUND_ZERO };
    static const uint32_t entries[] = { GNI_CE_MODE_CQE_ONCOMP, GNI_CE_MODE_CQE_ONERR };
    static const uint32_t routes[] = { 0, GNI_CE_MODE_RC_NMIN_HASH, GNI_CE_MODE_RC_MIN_HASH, GNI_CE_MODE_RC_MNON_HASH,
                                       GNI_CE_MODE_RC_ADAPT };
    struct tree_engine *e = &tree.engines[0];

    (void)state;
    tree_build_flat(&tree, sides, 2);
    for (size_t r = 0; r < COUNT_OF(roundings); r++) {
        for (size_t n = 0; n < COUNT_OF(entries); n++) {
            for (size_t c = 0; c < COUNT_OF(routes); c++) {
                e->modes = roundings[r] | entries[n] | routes[c];
                assert_int_equal(tree_configure(e), GNI_RC_SUCCESS);
                tree_sum_up(&tree, c);
            }
        }
    }
    for (uint32_t bit = 1; bit != 0; bit <<= 1) {
        uint32_t others = TREE_MODES | GNI_CE_MODE_RC_ADAPT;

        e->modes = others ^ bit;
        assert_int_equal(tree_configure(e), bit == GNI_CE_MODE_RC_ADAPT ? GNI_RC_SUCCESS : GNI_RC_INVALID_PARAM);
    }
    e->modes = 0;
    assert_int_equal(tree_configure(e), GNI_RC_INVALID_PARAM);
}

/* ---- posts ---- */

static void test_posts_refuse_what_cannot_be_a_contribution(void **state)
{
    struct tree_leaf *l = &tree.leaves[1];
    gni_post_descriptor_t good;
    gni_mem_handle_t read_only;
    gni_ep_handle_t ep;

    (void)state;
    tree_build_flat(&tree, sides, 2);
    good = tree_post(l, GNI_FMA_CE_IADD, 1, 0);
    l->d = good;
    l->d.local_addr += 16;
    assert_int_equal(GNI_PostFma(l->ep, &l->d), GNI_RC_ALIGNMENT_ERROR);
    l->d = good;
    l->d.local_mem_hndl = (gni_mem_handle_t){ 0, 0 };
    assert_int_equal(GNI_PostFma(l->ep, &l->d), GNI_RC_INVALID_PARAM);
    l->d = good;
    l->d.local_addr = (uint64_t)(uintptr_t)(l->side->mem + GX_BYTES);
    assert_int_equal(GNI_PostFma(l->ep, &l->d), GNI_RC_INVALID_PARAM);
    l->d = good;
    l->d.ce_mode = 1u << 5;
    assert_int_equal(GNI_PostFma(l->ep, &l->d), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_PostRdma(l->ep, &good), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_PostCqWrite(l->ep, &good), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_CtPostFma(l->ep, &good), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_MemRegister(l->side->nic, (uint64_t)(uintptr_t)l->side->mem, GX_BYTES, NULL, GNI_MEM_READ_ONLY,
                                     (uint32_t)-1, &read_only),
                     GNI_RC_SUCCESS);
    l->d = good;
    l->d.local_mem_hndl = read_only;
    assert_int_equal(GNI_PostFma(l->ep, &l->d), GNI_RC_PERMISSION_ERROR);
    GNI_MemDeregister(l->side->nic, &read_only);
    /* End points that are no leaf's, not bound, or without a source queue. */
    l->d = good;
    assert_int_equal(GNI_PostFma(tree.engines[0].child_eps[0], &l->d), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_EpCreate(l->side->nic, l->side->src_cq, &ep), GNI_RC_SUCCESS);
    assert_int_equal(GNI_EpSetCeAttr(ep, 0, 1, GNI_CE_CHILD_PE), GNI_RC_SUCCESS);
    assert_int_equal(GNI_PostFma(ep, &l->d), GNI_RC_INVALID_PARAM);
    assert_int_equal(GNI_EpBind(ep, 0, 100), GNI_RC_SUCCESS);
    assert_int_equal(GNI_EpSetCeAttr(ep, 0, 1, GNI_CE_CHILD_VCE), GNI_RC_SUCCESS);
    assert_int_equal(GNI_PostFma(ep, &l->d), GNI_RC_INVALID_PARAM);
    GNI_EpDestroy(ep);
    assert_int_equal(GNI_EpCreate(l->side->nic, l->side->src_cq, &ep), GNI_RC_SUCCESS);
    assert_int_equal(GNI_EpBind(ep, 0, 100), GNI_RC_SUCCESS);
    assert_int_equal(GNI_PostFma(ep, &l->d), GNI_RC_INVALID_PARAM);
    GNI_EpDestroy(ep);
    /* Nothing of this has reached the tree. */
    tree_sum_up(&tree, 0);
}

static void test_unknown_commands_are_refused(void **state)
{
    static const uint8_t known[] = { 0x00, 0x01, 0x02, 0x03, 0x04, 0x05, 0x10, 0x11, 0x12, 0x13, 0x14, 0x15, 0x18,
                                     0x19, 0x1a, 0x1b, 0x1c, 0x1d, 0x30, 0x31, 0x32, 0x33, 0x38, 0x39, 0x3a, 0x3b };
    struct tree_leaf *l = &tree.leaves[0];

    (void)state;
    tree_build_flat(&tree, sides, 1);
    for (unsigned cmd = 0; cmd < 0x180; cmd++) {
        bool is_known = cmd < 0x40 && memchr(known, (int)cmd, sizeof(known)) != NULL;

        l->d = tree_post(l, (gni_ce_cmd_type_t)cmd, 3, 4);
        if (!is_known) {
            assert_int_equal(GNI_PostFma(l->ep, &l->d), GNI_RC_INVALID_PARAM);
            continue;
        }
        assert_int_equal(tree_send(l), 0);
        tree_expect(l, 3);
    }
}

static void test_dual_events_need_their_mode_and_silent_posts_leave_no_entry(void **state)
{
    struct tree_leaf *l = &tree.leaves[0];
    gni_post_descriptor_t *done;
    gni_cq_entry_t entry;
    struct gx_side plain;

    (void)state;
    tree_build_flat(&tree, sides, 1);
    l->d = tree_post(l, GNI_FMA_CE_IADD, 5, 0);
    l->d.cq_mode = GNI_CQMODE_LOCAL_EVENT | GNI_CQMODE_GLOBAL_EVENT | GNI_CQMODE_REMOTE_EVENT;
    memset(l->result, 0, sizeof(*l->result));
    assert_int_equal(GNI_PostFma(l->ep, &l->d), GNI_RC_SUCCESS);
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(gx_next(l->side->src_cq, &entry), GNI_RC_SUCCESS);
        assert_int_equal(GNI_GetCompleted(l->side->src_cq, entry, &done), GNI_RC_SUCCESS);
        assert_ptr_equal(done, &l->d);
        assert_int_equal(l->d.cq_mode_complete & GNI_CQMODE_GLOBAL_EVENT, i == 0 ? 0 : GNI_CQMODE_GLOBAL_EVENT);
    }
    tree_expect(l, 5);
    l->d.cq_mode = GNI_CQMODE_SILENT;
    memset(l->result, 0, sizeof(*l->result));
    assert_int_equal(GNI_PostFma(l->ep, &l->d), GNI_RC_SUCCESS);
    tree_expect(l, 5);
    assert_int_equal(GNI_CqGetEvent(l->side->src_cq, &entry), GNI_RC_NOT_DONE);
    assert_int_equal(GNI_EpIdle(l->ep), GNI_RC_SUCCESS);

    gx_open(&plain, &fx, 1, 501, 0);
    plain.ep = tree_ep(&plain, plain.src_cq, &sides[0], 0, 0, GNI_CE_CHILD_PE);
    l->d.cq_mode = GNI_CQMODE_LOCAL_EVENT | GNI_CQMODE_GLOBAL_EVENT;
    assert_int_equal(GNI_PostFma(plain.ep, &l->d), GNI_RC_INVALID_PARAM);
    gx_close(&plain);
}

static void test_full_source_queue_refuses_a_contribution(void **state)
{
    gni_post_descriptor_t *done;
    struct tree_leaf *l;
    struct gx_side small;
    gni_cq_entry_t entry;
    gni_cq_handle_t cq;

    (void)state;
    setenv("EMUNIC_CQ_FLOOR", "0", 1);
    gx_open(&small, &fx, 2, 502, 0);
    assert_int_equal(GNI_CqCreate(small.nic, 2, 0, GNI_CQ_NOBLOCK, NULL, NULL, &cq), GNI_RC_SUCCESS);
    unsetenv("EMUNIC_CQ_FLOOR");
    GNI_CqDestroy(small.src_cq);
    small.src_cq = cq;
    tree_build_flat(&tree, &small, 1);
    l = &tree.leaves[0];
    l->d = tree_post(l, GNI_FMA_CE_IADD, 5, 0);
    assert_int_equal(GNI_PostFma(l->ep, &l->d), GNI_RC_SUCCESS);
    assert_int_equal(GNI_PostFma(l->ep, &l->d), GNI_RC_SUCCESS);
    assert_int_equal(GNI_PostFma(l->ep, &l->d), GNI_RC_ERROR_RESOURCE);
    assert_int_equal(gx_next(cq, &entry), GNI_RC_SUCCESS);
    assert_int_equal(GNI_GetCompleted(cq, entry, &done), GNI_RC_SUCCESS);
    assert_int_equal(GNI_PostFma(l->ep, &l->d), GNI_RC_SUCCESS);
    tree_drop(&tree);
    gx_close(&small);
}

static void test_post_to_an_engine_that_is_not_there_fails_in_entry_and_result(void **state)
{
    struct tree_leaf l = { .side = &sides[1], .result = (gni_ce_result_t *)(void *)sides[1].mem };
    gni_ce_handle_t ce;
    uint32_t id;

    (void)state;
    assert_int_equal(GNI_CeCreate(sides[0].nic, &ce), GNI_RC_SUCCESS);
    assert_int_equal(GNI_CeGetId(ce, &id), GNI_RC_SUCCESS);
    l.ep = tree_ep(&sides[1], sides[1].src_cq, &sides[0], id, 0, GNI_CE_CHILD_PE);
    /* Not configured, not created, no such number, no such node. */
    for (unsigned i = 0; i < 4; i++) {
        l.d = tree_post(&l, GNI_FMA_CE_IADD, 1, 0);
        if (i == 1)
            assert_int_equal(GNI_CeDestroy(ce), GNI_RC_SUCCESS);
        if (i == 2)
            assert_int_equal(GNI_EpSetCeAttr(l.ep, UINT32_MAX, 0, GNI_CE_CHILD_PE), GNI_RC_SUCCESS);
        if (i == 3) {
            assert_int_equal(GNI_EpUnbind(l.ep), GNI_RC_SUCCESS);
            assert_int_equal(GNI_EpBind(l.ep, 300, 1), GNI_RC_SUCCESS);
        }
        assert_int_equal(tree_send(&l), i == 3 ? PEER_GONE : BAD_HANDLE);
        tree_expect_failure(l.result, i == 3 ? PEER_GONE : BAD_HANDLE);
    }
    GNI_EpDestroy(l.ep);
}

static void test_engine_of_another_domain_is_out_of_reach(void **state)
{
    struct tree_leaf l = { .engine = 0 };
    struct emu_session other_domain;
    struct gx_side stranger;
    struct fx other = fx;

    (void)state;
    tree_build_flat(&tree, sides, 2);
    other.ptag = 78;
    other.cookie = 0x777;
    assert_int_equal(fx_add_domain(&fx, other.ptag, other.cookie, geteuid(), 0, &other_domain), 0);
    gx_open(&stranger, &other, 1, sides[1].inst_id, 0);
    l.side = &stranger;
    l.result = (gni_ce_result_t *)(void *)stranger.mem;
    l.ep = tree_ep(&stranger, stranger.src_cq, &sides[0], tree.engines[0].id, 1, GNI_CE_CHILD_PE);
    l.d = tree_post(&l, GNI_FMA_CE_IADD, 1, 0);
    assert_int_equal(tree_send(&l), BAD_HANDLE);
    tree_expect_failure(l.result, BAD_HANDLE);
    /* Engines are the node's: the stranger finds one less. */
    for (unsigned i = 0; i < ENGINES_PER_NIC - 1; i++) {
        gni_ce_handle_t ce;

        assert_int_equal(GNI_CeCreate(stranger.nic, &ce), GNI_RC_SUCCESS);
    }
    tree_sum_up(&tree, 0);
    GNI_EpDestroy(l.ep);
    gx_close(&stranger);
    fx_end_domain(&other_domain);
}

/* ---- operations ---- */

struct operation {
    gni_ce_cmd_type_t cmd;
    bool is_narrow;
    uint64_t operands[3];
    uint64_t indices[3]; /* or second operands with TWO_OP */
    uint64_t result1;
    uint64_t result2;
    uint32_t mode;
};

static void check_operation(const struct operation *op)
{
    for (unsigned i = 0; i < 3; i++) {
        struct tree_leaf *l = &tree.leaves[i];

        l->d = tree_post(l, op->cmd, op->operands[i], op->indices[i]);
        l->d.ce_mode = op->mode;
        l->d.ce_red_id = 0x123456789abcull + op->cmd;
        assert_int_equal(tree_send(l), 0);
    }
    for (unsigned i = 0; i < 3; i++) {
        struct tree_leaf *l = &tree.leaves[i];

        tree_expect(l, op->result1);
        assert_true(l->result->result2 == op->result2);
        assert_int_equal(GNI_CE_RES_GET_FPE(l->result), 0);
        assert_true(GNI_CE_RES_STATUS_OK(l->result));
    }
}

static void test_every_operation_in_both_widths(void **state)
{
    const uint64_t m1 = (uint64_t)-1, d1 = emu_double_bits(1.5), d2 = emu_double_bits(-2.25), d3 = emu_double_bits(8),
                   f1 = emu_float_bits(1.5f), f2 = emu_float_bits(-2.25f), f3 = emu_float_bits(8);
    const struct operation operations[] = {
        { GNI_FMA_CE_AND, 0, { 0xff00ff00ff00ff0f, 0xf0f0f0f0f0f0f0ff, m1 }, { 7, 7, 7 }, 0xf000f000f000f00f, 0, 0 },
        { GNI_FMA_CE_OR, 0, { 1, 0x10, 1ull << 63 }, { 7, 7, 7 }, 1ull << 63 | 0x11, 0, 0 },
        { GNI_FMA_CE_XOR, 0, { 3, 5, m1 }, { 7, 7, 7 }, m1 ^ 6, 0, 0 },
        { GNI_FMA_CE_IADD, 0, { m1, 5, 1ull << 40 }, { 7, 7, 7 }, (1ull << 40) + 4, 0, 0 },
        { GNI_FMA_CE_IMIN_LIDX, 0, { 5, m1, 5 }, { 10, 11, 12 }, m1, 11, 0 },
        { GNI_FMA_CE_IMAX_LIDX, 0, { 5, m1, 5 }, { 12, 11, 10 }, 5, 10, 0 },
        { GNI_FMA_CE_IMIN_GIDX, 0, { m1, m1, 5 }, { 10, 11, 12 }, m1, 11, 0 },
        { GNI_FMA_CE_IMAX_GIDX, 0, { 5, m1, 5 }, { 12, 11, 10 }, 5, 12, 0 },
        { GNI_FMA_CE_FPMIN_LIDX, 0, { d1, d2, d2 }, { 1, 1ull << 40, 9 }, d2, 9, 0 },
        { GNI_FMA_CE_FPMAX_LIDX, 0, { d1, d3, d3 }, { 1, 2, 3 }, d3, 2, 0 },
        { GNI_FMA_CE_FPMIN_GIDX, 0, { d1, d2, d2 }, { 1, 1ull << 40, 9 }, d2, 1ull << 40, 0 },
        { GNI_FMA_CE_FPMAX_GIDX, 0, { d1, d3, d3 }, { 1, 2, 3 }, d3, 3, 0 },
        { GNI_FMA_CE_FPADD, 0, { d1, d2, d3 }, { 7, 7, 7 }, emu_double_bits(7.25), 0, 0 },
        /* Upper halves are no part of short operands. */
        { GNI_FMA_CE_AND_S, 1, { 0xff00000ff0, 0xff000000ff, 0xff00000fff }, { 7, 7, 7 }, 0xf0, 0, 0 },
        { GNI_FMA_CE_OR_S, 1, { 1ull << 32, 0x10, 1 }, { 7, 7, 7 }, 0x11, 0, 0 },
        { GNI_FMA_CE_XOR_S, 1, { 3, 5, m1 }, { 7, 7, 7 }, 0xfffffff9, 0, 0 },
        { GNI_FMA_CE_IADD_S, 1, { 0xffffffff, 5, 1ull << 40 }, { 7, 7, 7 }, 4, 0, 0 },
        { GNI_FMA_CE_IMIN_LIDX_S, 1, { 5, 0xffffffff, 0xffffffff }, { 10, 12, 11 }, 0xffffffff, 11, 0 },
        { GNI_FMA_CE_IMAX_LIDX_S, 1, { 5, 0xffffffff, 5 }, { 12, 11, 10 }, 5, 10, 0 },
        { GNI_FMA_CE_IMIN_GIDX_S, 1, { 5, 0xffffffff, 0xffffffff }, { 10, 12, 11 }, 0xffffffff, 12, 0 },
        { GNI_FMA_CE_IMAX_GIDX_S, 1, { 5, 0xffffffff, 5 }, { 12, 11, 10 }, 5, 12, 0 },
        { GNI_FMA_CE_FPMIN_LIDX_S, 1, { f1, f2, f2 }, { 1, 8, 9 }, f2, 8, 0 },
        { GNI_FMA_CE_FPMAX_LIDX_S, 1, { f1, f3, f3 }, { 1, 2, 3 }, f3, 2, 0 },
        { GNI_FMA_CE_FPMIN_GIDX_S, 1, { f1, f2, f2 }, { 1, 8, 9 }, f2, 9, 0 },
        { GNI_FMA_CE_FPMAX_GIDX_S, 1, { f1, f3, f3 }, { 1, 2, 3 }, f3, 3, 0 },
        { GNI_FMA_CE_FPADD_S, 1, { f1, f2, f3 }, { 7, 7, 7 }, emu_float_bits(7.25f), 0, 0 },
        /* Two operands at once. */
        { GNI_FMA_CE_IADD, 0, { 1, 2, 3 }, { 10, 20, m1 }, 6, 29, GNI_CEMODE_TWO_OP },
        { GNI_FMA_CE_IADD_S, 1, { 1, 2, 3 }, { 10, 20, m1 }, 6, 29, GNI_CEMODE_TWO_OP },
        { GNI_FMA_CE_AND, 0, { 7, 3, 6 }, { 12, 14, 13 }, 2, 12, GNI_CEMODE_TWO_OP },
        { GNI_FMA_CE_OR, 0, { 1, 2, 4 }, { 8, 16, 32 }, 7, 56, GNI_CEMODE_TWO_OP },
        { GNI_FMA_CE_XOR_S, 1, { 1, 3, 4 }, { 8, 16, 8 }, 6, 16, GNI_CEMODE_TWO_OP },
        { GNI_FMA_CE_FPADD,
          0,
          { d1, d2, d3 },
          { d3, d3, d3 },
          emu_double_bits(7.25),
          emu_double_bits(24),
          GNI_CEMODE_TWO_OP },
        { GNI_FMA_CE_FPADD_S,
          1,
          { f1, f2, f3 },
          { f3, f3, f3 },
          emu_float_bits(7.25f),
          emu_float_bits(24),
          GNI_CEMODE_TWO_OP },
        { GNI_FMA_CE_IMAX_LIDX, 0, { 5, m1, 5 }, { 12, 11, 10 }, 5, 10, GNI_CEMODE_TWO_OP },
    };

    (void)state;
    tree_build_flat(&tree, sides, 3);
    for (size_t i = 0; i < COUNT_OF(operations); i++)
        check_operation(&operations[i]);
}

static void add_doubles(uint32_t rounding, double a, double b, double expected, uint64_t fpe, uint32_t mode)
{
    const double operands[2] = { a, b };

    tree.engines[0].modes = rounding | GNI_CE_MODE_CQE_ONERR;
    assert_int_equal(tree_configure(&tree.engines[0]), GNI_RC_SUCCESS);
    for (unsigned i = 0; i < 2; i++) {
        struct tree_leaf *l = &tree.leaves[i];

        l->d = tree_post(l, GNI_FMA_CE_FPADD, emu_double_bits(operands[i]), 0);
        l->d.ce_mode = i == 0 ? mode : 0;
        assert_int_equal(tree_send(l), 0);
    }
    for (unsigned i = 0; i < 2; i++) {
        struct tree_leaf *l = &tree.leaves[i];

        assert_int_equal(tree_wait(l->result), fpe ? GNI_RC_TRANSACTION_ERROR : GNI_RC_SUCCESS);
        assert_true(GNI_CE_RES_STATUS_OK(l->result));
        assert_int_equal(GNI_CE_RES_GET_STATUS(l->result), 0);
        assert_int_equal(GNI_CE_RES_GET_FPE(l->result), fpe);
        assert_true(l->result->result1 == emu_double_bits(expected));
    }
}

static void test_sums_round_as_configured_and_tell_exceptions(void **state)
{
    const double tiny = ldexp(1, -80), above = nextafter(1, 2), below = nextafter(1, 0);
    const uint64_t over = GNI_CE_FPE_OFLOW | GNI_CE_FPE_PRECISION;

    (void)state;
    tree_build_flat(&tree, sides, 2);
    add_doubles(GNI_CE_MODE_ROUND_UP, 1, tiny, above, GNI_CE_FPE_PRECISION, 0);
    add_doubles(GNI_CE_MODE_ROUND_DOWN, 1, tiny, 1, GNI_CE_FPE_PRECISION, 0);
    add_doubles(GNI_CE_MODE_ROUND_NEAR, 1, tiny, 1, GNI_CE_FPE_PRECISION, 0);
    add_doubles(GNI_CE_MODE_ROUND_ZERO, 1, tiny, 1, GNI_CE_FPE_PRECISION, 0);
    add_doubles(GNI_CE_MODE_ROUND_UP, 1, -tiny, 1, GNI_CE_FPE_PRECISION, 0);
    add_doubles(GNI_CE_MODE_ROUND_DOWN, 1, -tiny, below, GNI_CE_FPE_PRECISION, 0);
    add_doubles(GNI_CE_MODE_ROUND_ZERO, 1, -tiny, below, GNI_CE_FPE_PRECISION, 0);
    add_doubles(GNI_CE_MODE_ROUND_ZERO, -1, tiny, -below, GNI_CE_FPE_PRECISION, 0);
    add_doubles(GNI_CE_MODE_ROUND_NEAR, DBL_MAX, DBL_MAX, INFINITY, over, 0);
    add_doubles(GNI_CE_MODE_ROUND_ZERO, DBL_MAX, DBL_MAX, DBL_MAX, over, 0);
    add_doubles(GNI_CE_MODE_ROUND_NEAR, 1, 2, 3, 0, 0);
    add_doubles(GNI_CE_MODE_ROUND_NEAR, 1, 2, 3, GNI_CE_FPE_UFLOW, GNI_CEMODE_FPE_UFLOW);
    add_doubles(GNI_CE_MODE_ROUND_NEAR, 1, 2, 3, GNI_CE_FPE_OP_INVAL | GNI_CE_FPE_OFLOW | GNI_CE_FPE_PRECISION,
                GNI_CEMODE_FPE_OP_INVAL | GNI_CEMODE_FPE_OFLOW | GNI_CEMODE_FPE_PRECISION);
}

static void test_infinities_that_cancel_are_invalid(void **state)
{
    (void)state;
    tree_build_flat(&tree, sides, 2);
    for (unsigned i = 0; i < 2; i++)
        tree_contribute(&tree.leaves[i], GNI_FMA_CE_FPADD, emu_double_bits(i ? INFINITY : -INFINITY), 0, 0);
    for (unsigned i = 0; i < 2; i++) {
        double sum;

        assert_int_equal(tree_wait(tree.leaves[i].result), GNI_RC_TRANSACTION_ERROR);
        assert_int_equal(GNI_CE_RES_GET_FPE(tree.leaves[i].result), GNI_CE_FPE_OP_INVAL);
        memcpy(&sum, &tree.leaves[i].result->result1, sizeof(sum));
        assert_true(isnan(sum));
    }
}

/* ---- trees ---- */

static void test_tree_of_depth_three_over_many_nodes(void **state)
{
    struct emu_random random = seeded(35);

    (void)state;
    build_deep_tree();
    assert_int_equal(tree.n_engines, 10);
    for (unsigned round = 0; round < 100; round++) {
        uint64_t min = INT64_MAX, sum = 0, where = 0, all = 0;
        uint64_t values[SIDES];
        unsigned kind = round % 3;
        unsigned first = (unsigned)emu_random_below(&random, SIDES);

        for (unsigned i = 0; i < SIDES; i++) {
            values[i] = emu_random_below(&random, 1000);
            sum += values[i];
            all |= values[i];
            if (values[i] < min) {
                min = values[i];
                where = i;
            }
        }
        for (unsigned i = 0; i < SIDES; i++) {
            unsigned who = (first + i) % SIDES;
            gni_ce_cmd_type_t cmd = kind == 0 ? GNI_FMA_CE_IADD : kind == 1 ? GNI_FMA_CE_IMIN_LIDX : GNI_FMA_CE_OR_S;

            tree_contribute(&tree.leaves[who], cmd, values[who], who, round);
        }
        for (unsigned i = 0; i < SIDES; i++) {
            tree_expect(&tree.leaves[i], kind == 0 ? sum : kind == 1 ? min : all);
            if (kind == 1)
                assert_true(tree.leaves[i].result->result2 == where);
        }
    }
}

static void test_engine_with_32_children(void **state)
{
    (void)state;
    tree_add_engine(&tree, &sides[0], NO_PARENT);
    for (unsigned i = 0; i < GNI_CE_MAX_CHILDREN - 1; i++)
        tree_add_leaf(&tree, &sides[i % SIDES], 0);
    tree_add_engine(&tree, &sides[1], 0);
    tree_add_leaf(&tree, &sides[2], 1);
    tree_build(&tree);
    for (unsigned round = 0; round < 5; round++)
        tree_sum_up(&tree, round);
}

static void test_four_trees_at_once_on_the_same_nics(void **state)
{
    static struct tree trees[ENGINES_PER_NIC];

    (void)state;
    for (unsigned i = 0; i < ENGINES_PER_NIC; i++) {
        trees[i] = (struct tree){ .first_place = 100 * i };
        tree_build_flat(&trees[i], sides, 6);
    }
    for (unsigned round = 0; round < 10; round++) {
        for (unsigned l = 0; l < 6; l++) {
            for (unsigned i = 0; i < ENGINES_PER_NIC; i++)
                tree_contribute(&trees[i].leaves[(l + i) % 6], GNI_FMA_CE_IADD, 1ull << (8 * i), 0, i);
        }
        for (unsigned l = 0; l < 6; l++) {
            for (unsigned i = 0; i < ENGINES_PER_NIC; i++)
                tree_expect(&trees[i].leaves[l], 6ull << (8 * i));
        }
    }
    for (unsigned i = 0; i < ENGINES_PER_NIC; i++)
        tree_drop(&trees[i]);
}

static void test_late_child_keeps_everybody_waiting(void **state)
{
    (void)state;
    build_deep_tree();
    for (unsigned i = 0; i < SIDES - 1; i++)
        tree_contribute(&tree.leaves[i], GNI_FMA_CE_IADD, 1, 0, 4);
    /* All contributions were taken, so whatever the engines can do they do while we look. */
    for (unsigned n = 0; n < 50; n++) {
        for (unsigned i = 0; i < SIDES - 1; i++)
            assert_int_equal(GNI_CeCheckResult(tree.leaves[i].result, 1), GNI_RC_NOT_DONE);
    }
    tree_contribute(&tree.leaves[SIDES - 1], GNI_FMA_CE_IADD, 1, 0, 4);
    for (unsigned i = 0; i < SIDES; i++)
        tree_expect(&tree.leaves[i], SIDES);
}

static void test_parent_may_be_configured_after_the_first_contributions(void **state)
{
    (void)state;
    tree_add_engine(&tree, &sides[0], NO_PARENT);
    tree_add_engine(&tree, &sides[1], 0);
    tree_add_leaf(&tree, &sides[2], 1);
    tree_add_leaf(&tree, &sides[3], 1);
    tree_create(&tree);
    assert_int_equal(tree_configure(&tree.engines[1]), GNI_RC_SUCCESS);
    for (unsigned i = 0; i < 2; i++)
        tree_contribute(&tree.leaves[i], GNI_FMA_CE_IADD, 2, 0, 0);
    assert_int_equal(GNI_CeCheckResult(tree.leaves[0].result, 1), GNI_RC_NOT_DONE);
    assert_int_equal(tree_configure(&tree.engines[0]), GNI_RC_SUCCESS);
    for (unsigned i = 0; i < 2; i++)
        tree_expect(&tree.leaves[i], 4);
}

/* A leaf runs ahead: its n-th contribution belongs to the n-th reduction. */
static void test_reductions_on_one_tree_keep_their_order(void **state)
{
    struct tree_leaf *fast = &tree.leaves[2];
    gni_ce_result_t *results[17];

    (void)state;
    tree_build_flat(&tree, sides, 3);
    for (unsigned n = 0; n < 17; n++) {
        results[n] = (gni_ce_result_t *)(void *)(fast->side->mem + 4096 + 32 * n);
        fast->d = tree_post(fast, GNI_FMA_CE_IADD, n, 0);
        fast->d.local_addr = (uint64_t)(uintptr_t)results[n];
        fast->d.ce_red_id = n;
        /* One more than an engine keeps for a leaf is refused, and is no part of the order. */
        assert_int_equal(tree_send(fast), n < 16 ? 0 : RETRANSMIT_LIMIT);
    }
    tree_expect_failure(results[16], RETRANSMIT_LIMIT);
    for (unsigned n = 0; n < 16; n++) {
        assert_int_equal(GNI_CeCheckResult(results[n], 0), GNI_RC_NOT_DONE);
        tree_contribute(&tree.leaves[1], GNI_FMA_CE_IADD, 100, 0, n);
        tree_contribute(&tree.leaves[0], GNI_FMA_CE_IADD, 1000, 0, n);
        assert_int_equal(tree_wait(results[n]), GNI_RC_SUCCESS);
        assert_true(results[n]->result1 == 1100 + n);
        assert_int_equal(GNI_CE_RES_GET_RED_ID(results[n]), n);
        tree_expect(&tree.leaves[0], 1100 + n);
        tree_expect(&tree.leaves[1], 1100 + n);
    }
}

static void test_attributes_are_copied_and_end_points_stay_usable(void **state)
{
    struct tree_leaf *l = &tree.leaves[1];
    gni_post_descriptor_t *done;
    gni_post_descriptor_t d;

    (void)state;
    tree_build_flat(&tree, sides, 2);
    for (unsigned i = 0; i < 2; i++)
        assert_int_equal(GNI_EpSetCeAttr(tree.engines[0].child_eps[i], 3, 9, GNI_CE_CHILD_VCE), GNI_RC_SUCCESS);
    tree_sum_up(&tree, 1);
    d = gx_put(l->side, &sides[0], 8192, 64, GNI_CQMODE_GLOBAL_EVENT);
    memset(l->side->mem + 8192, 0x5a, 64);
    assert_int_equal(GNI_PostFma(l->ep, &d), GNI_RC_SUCCESS);
    assert_int_equal(gx_complete(l->side->src_cq, &done), GNI_RC_SUCCESS);
    assert_memory_equal(sides[0].mem + 8192, l->side->mem + 8192, 64);
    tree_sum_up(&tree, 2);
}

static void test_leaf_may_end_its_end_point_while_the_reduction_goes_on(void **state)
{
    struct tree_leaf *l = &tree.leaves[1];

    (void)state;
    tree_build_flat(&tree, sides, 2);
    tree_contribute(l, GNI_FMA_CE_IADD, 7, 0, 0);
    assert_int_equal(GNI_EpUnbind(l->ep), GNI_RC_SUCCESS);
    assert_int_equal(GNI_EpDestroy(l->ep), GNI_RC_SUCCESS);
    tree_contribute(&tree.leaves[0], GNI_FMA_CE_IADD, 1, 0, 0);
    tree_expect(&tree.leaves[0], 8);
    tree_expect(l, 8);
}

static void test_result_memory_that_was_deregistered_stays_untouched(void **state)
{
    struct tree_leaf *l = &tree.leaves[1];
    gni_mem_handle_t handle;
    uint8_t *mem = aligned_alloc(4096, 4096);

    (void)state;
    assert_non_null(mem);
    tree_build_flat(&tree, sides, 2);
    assert_int_equal(
        GNI_MemRegister(l->side->nic, (uint64_t)(uintptr_t)mem, 4096, NULL, GNI_MEM_READWRITE, (uint32_t)-1, &handle),
        GNI_RC_SUCCESS);
    l->d = tree_post(l, GNI_FMA_CE_IADD, 1, 0);
    l->d.local_addr = (uint64_t)(uintptr_t)mem;
    l->d.local_mem_hndl = handle;
    assert_int_equal(tree_send(l), 0);
    assert_int_equal(GNI_MemDeregister(l->side->nic, &handle), GNI_RC_SUCCESS);
    memset(mem, 0x77, 4096);
    tree_contribute(&tree.leaves[0], GNI_FMA_CE_IADD, 1, 0, 0);
    tree_expect(&tree.leaves[0], 2);
    /* The first leaf's result was written; the next reduction's comes after the other one's would have. */
    tree_sum_up(&tree, 0);
    for (unsigned i = 0; i < 4096; i++)
        assert_int_equal(mem[i], 0x77);
    free(mem);
}

/* ---- entries of engines ---- */

static void expect_no_entry(const struct tree_engine *e)
{
    gni_cq_entry_t entry;

    assert_int_equal(GNI_CqGetEvent(e->cq, &entry), GNI_RC_NOT_DONE);
}

static void test_each_engine_has_an_entry_per_reduction_if_it_wants(void **state)
{
    (void)state;
    tree_add_engine(&tree, &sides[0], NO_PARENT);
    tree_add_engine(&tree, &sides[1], 0);
    tree_add_leaf(&tree, &sides[0], 0);
    tree_add_leaf(&tree, &sides[1], 1);
    for (unsigned i = 0; i < 2; i++)
        tree.engines[i].modes = GNI_CE_MODE_ROUND_NEAR | GNI_CE_MODE_CQE_ONCOMP;
    tree_build(&tree);
    for (unsigned round = 0; round < 3; round++) {
        tree_sum_up(&tree, 70 + round);
        expect_entry(&tree.engines[0], 70 + round, 0);
        expect_entry(&tree.engines[1], 70 + round, 0);
    }
    expect_no_entry(&tree.engines[0]);
}

static void test_engine_that_tells_errors_only_is_silent_on_success(void **state)
{
    (void)state;
    tree_build_flat(&tree, sides, 2);
    tree_sum_up(&tree, 3);
    expect_no_entry(&tree.engines[0]);
    tree_contribute(&tree.leaves[0], GNI_FMA_CE_IADD, 1, 0, 5);
    tree_contribute(&tree.leaves[1], GNI_FMA_CE_XOR, 1, 0, 5);
    tree_expect_failure(tree.leaves[0].result, MISMATCH);
    expect_entry(&tree.engines[0], 5, MISMATCH);
    expect_no_entry(&tree.engines[0]);
}

static void test_engine_may_use_a_source_queue(void **state)
{
    struct tree_engine *e = &tree.engines[0];
    gni_cq_handle_t own;

    (void)state;
    tree_build_flat(&tree, sides, 2);
    own = e->cq;
    e->cq = sides[0].src_cq;
    e->modes = GNI_CE_MODE_ROUND_NEAR | GNI_CE_MODE_CQE_ONCOMP;
    assert_int_equal(tree_configure(e), GNI_RC_SUCCESS);
    tree_contribute(&tree.leaves[0], GNI_FMA_CE_IADD, 1, 0, UINT64_MAX);
    tree_contribute(&tree.leaves[1], GNI_FMA_CE_IADD, 1, 0, UINT64_MAX);
    assert_int_equal(tree_wait(tree.leaves[0].result), GNI_RC_SUCCESS);
    expect_entry(e, UINT32_MAX, 0);
    e->cq = own;
}

static void test_queue_of_an_engine_may_go_first(void **state)
{
    struct tree_engine *e = &tree.engines[0];
    gni_cq_entry_t entry;
    gni_cq_handle_t next;

    (void)state;
    tree_build_flat(&tree, sides, 2);
    e->modes = GNI_CE_MODE_ROUND_NEAR | GNI_CE_MODE_CQE_ONCOMP;
    assert_int_equal(tree_configure(e), GNI_RC_SUCCESS);
    assert_int_equal(GNI_CqDestroy(e->cq), GNI_RC_SUCCESS);
    /* It may get the old one's place, but not its entries. */
    assert_int_equal(GNI_CqCreate(sides[0].nic, 64, 0, GNI_CQ_NOBLOCK, NULL, NULL, &next), GNI_RC_SUCCESS);
    tree_sum_up(&tree, 1);
    assert_int_equal(GNI_CqGetEvent(next, &entry), GNI_RC_NOT_DONE);
    e->cq = next;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        ce_test(test_four_engines_per_nic_shared_by_all_its_handles),
        ce_test(test_engines_in_use_are_told),
        ce_test(test_engine_calls_refuse_bad_arguments),
        ce_test(test_attributes_refuse_bad_arguments),
        ce_test(test_configuration_refuses_bad_arguments),
        ce_test(test_configuration_takes_one_mode_of_each_kind),
        ce_test(test_posts_refuse_what_cannot_be_a_contribution),
        ce_test(test_unknown_commands_are_refused),
        ce_test(test_dual_events_need_their_mode_and_silent_posts_leave_no_entry),
        ce_test(test_full_source_queue_refuses_a_contribution),
        ce_test(test_post_to_an_engine_that_is_not_there_fails_in_entry_and_result),
        ce_test(test_engine_of_another_domain_is_out_of_reach),
        ce_test(test_every_operation_in_both_widths),
        ce_test(test_sums_round_as_configured_and_tell_exceptions),
        ce_test(test_infinities_that_cancel_are_invalid),
        ce_test(test_tree_of_depth_three_over_many_nodes),
        ce_test(test_engine_with_32_children),
        ce_test(test_four_trees_at_once_on_the_same_nics),
        ce_test(test_late_child_keeps_everybody_waiting),
        ce_test(test_parent_may_be_configured_after_the_first_contributions),
        ce_test(test_reductions_on_one_tree_keep_their_order),
        ce_test(test_attributes_are_copied_and_end_points_stay_usable),
        ce_test(test_leaf_may_end_its_end_point_while_the_reduction_goes_on),
        ce_test(test_result_memory_that_was_deregistered_stays_untouched),
        ce_test(test_each_engine_has_an_entry_per_reduction_if_it_wants),
        ce_test(test_engine_that_tells_errors_only_is_silent_on_success),
        ce_test(test_engine_may_use_a_source_queue),
        ce_test(test_queue_of_an_engine_may_go_first),
    };

    return cmocka_run_group_tests(tests, start, stop);
}
