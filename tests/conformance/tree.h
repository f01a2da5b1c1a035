/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Reduction trees for tests: engines and leaves on sides (tests/common/gni.h), all in one process. Each program
 * includes this once.
 */
#ifndef TESTS_CONFORMANCE_TREE_H
#define TESTS_CONFORMANCE_TREE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "emunic/base/clock.h"
#include "tests/common/gni.h"
#include "tests/common/rows.h"

#define TREE_ENGINES_MAX 16
#define TREE_LEAVES_MAX  64
#define TREE_MODES       (GNI_CE_MODE_ROUND_NEAR | GNI_CE_MODE_CQE_ONERR)
#define TREE_PATIENCE_NS 30000000000ull
#define NO_PARENT        (-1)

struct tree_engine {
    struct gx_side *side;
    int parent; /* another engine, or NO_PARENT */
    uint32_t modes;
    gni_ce_handle_t ce;
    uint32_t id;
    uint32_t child_id; /* at the parent */
    uint32_t n_children;
    gni_ep_handle_t child_eps[GNI_CE_MAX_CHILDREN];
    gni_ep_handle_t parent_ep;
    gni_cq_handle_t cq; /* for its own entries */
};

struct tree_leaf {
    struct gx_side *side;
    unsigned engine;
    uint32_t child_id;
    gni_ep_handle_t ep;
    gni_ce_result_t *result; /* in the side's memory, a place of its own */
    gni_post_descriptor_t d;
};

struct tree {
    struct tree_engine engines[TREE_ENGINES_MAX];
    struct tree_leaf leaves[TREE_LEAVES_MAX];
    unsigned n_engines;
    unsigned n_leaves;
    unsigned first_place; /* of results in the sides' memories; trees that live together need their own */
};

/* ---- building ---- */

static inline unsigned tree_add_engine(struct tree *t, struct gx_side *side, int parent)
{
    t->engines[t->n_engines] = (struct tree_engine){ .side = side, .parent = parent, .modes = TREE_MODES };
    return t->n_engines++;
}

static inline unsigned tree_add_leaf(struct tree *t, struct gx_side *side, unsigned engine)
{
    t->leaves[t->n_leaves] = (struct tree_leaf){ .side = side, .engine = engine };
    return t->n_leaves++;
}

static inline gni_ep_handle_t tree_ep(const struct gx_side *from, gni_cq_handle_t cq, const struct gx_side *to,
                                      uint32_t ce_id, uint32_t child_id, gni_ce_child_t type)
{
    gni_ep_handle_t ep;

    assert_int_equal(GNI_EpCreate(from->nic, cq, &ep), GNI_RC_SUCCESS);
    assert_int_equal(GNI_EpBind(ep, to->nic_addr, to->inst_id), GNI_RC_SUCCESS);
    assert_int_equal(GNI_EpSetCeAttr(ep, ce_id, child_id, type), GNI_RC_SUCCESS);
    return ep;
}

static inline void tree_add_child(struct tree_engine *e, const struct gx_side *child, uint32_t ce_id,
                                  gni_ce_child_t type)
{
    e->child_eps[e->n_children] = tree_ep(e->side, NULL, child, ce_id, e->n_children, type);
    e->n_children++;
}

/* answers: GNI_CeConfigure */
static inline gni_return_t tree_configure(struct tree_engine *e)
{
    return GNI_CeConfigure(e->ce, e->child_eps, e->n_children, e->parent_ep, e->cq, e->modes);
}

/* Creates what was added. Children have their ids in the order of the additions, leaves before engines. */
static inline void tree_create(struct tree *t)
{
    for (unsigned i = 0; i < t->n_engines; i++) {
        struct tree_engine *e = &t->engines[i];

        assert_int_equal(GNI_CeCreate(e->side->nic, &e->ce), GNI_RC_SUCCESS);
        assert_int_equal(GNI_CeGetId(e->ce, &e->id), GNI_RC_SUCCESS);
        assert_int_equal(GNI_CqCreate(e->side->nic, 64, 0, GNI_CQ_NOBLOCK, NULL, NULL, &e->cq), GNI_RC_SUCCESS);
    }
    for (unsigned i = 0; i < t->n_leaves; i++) {
        struct tree_leaf *l = &t->leaves[i];
        struct tree_engine *e = &t->engines[l->engine];

        l->child_id = e->n_children;
        tree_add_child(e, l->side, 0, GNI_CE_CHILD_PE);
        l->ep = tree_ep(l->side, l->side->src_cq, e->side, e->id, l->child_id, GNI_CE_CHILD_PE);
        l->result = (gni_ce_result_t *)(void *)(l->side->mem + 32 * (t->first_place + i));
    }
    for (unsigned i = 0; i < t->n_engines; i++) {
        struct tree_engine *e = &t->engines[i];
        struct tree_engine *parent = e->parent == NO_PARENT ? NULL : &t->engines[e->parent];

        if (!parent)
            continue;
        e->child_id = parent->n_children;
        tree_add_child(parent, e->side, e->id, GNI_CE_CHILD_VCE);
        e->parent_ep = tree_ep(e->side, NULL, parent->side, parent->id, e->child_id, GNI_CE_CHILD_VCE);
    }
}

static inline void tree_build(struct tree *t)
{
    tree_create(t);
    for (unsigned i = 0; i < t->n_engines; i++)
        assert_int_equal(tree_configure(&t->engines[i]), GNI_RC_SUCCESS);
}

/* One engine on the first side and a leaf on each. */
static inline void tree_build_flat(struct tree *t, struct gx_side *sides, unsigned n_sides)
{
    tree_add_engine(t, &sides[0], NO_PARENT);
    for (unsigned i = 0; i < n_sides; i++)
        tree_add_leaf(t, &sides[i], 0);
    tree_build(t);
}

static inline void tree_drop(struct tree *t)
{
    for (unsigned i = 0; i < t->n_leaves; i++)
        GNI_EpDestroy(t->leaves[i].ep);
    for (unsigned i = 0; i < t->n_engines; i++) {
        struct tree_engine *e = &t->engines[i];

        if (e->ce)
            assert_int_equal(GNI_CeDestroy(e->ce), GNI_RC_SUCCESS);
        for (uint32_t c = 0; c < e->n_children; c++)
            GNI_EpDestroy(e->child_eps[c]);
        if (e->parent_ep)
            GNI_EpDestroy(e->parent_ep);
        GNI_CqDestroy(e->cq);
    }
    *t = (struct tree){ 0 };
}

/* ---- reducing ---- */

static inline gni_post_descriptor_t tree_post(const struct tree_leaf *l, gni_ce_cmd_type_t cmd, uint64_t first,
                                              uint64_t second)
{
    return (gni_post_descriptor_t){ .type = GNI_POST_CE,
                                    .cq_mode = GNI_CQMODE_GLOBAL_EVENT,
                                    .dlvr_mode = GNI_DLVMODE_PERFORMANCE,
                                    .local_addr = (uint64_t)(uintptr_t)l->result,
                                    .local_mem_hndl = l->side->mem_hndl,
                                    .ce_cmd = cmd,
                                    .first_operand = first,
                                    .second_operand = second };
}

/* Posts what the leaf's descriptor says and waits for the entry. Its status. */
static inline uint64_t tree_send(struct tree_leaf *l)
{
    gni_post_descriptor_t *done = NULL;
    gni_cq_entry_t entry = 0;
    gni_return_t rc;

    memset((void *)(uintptr_t)l->d.local_addr, 0, sizeof(*l->result));
    assert_int_equal(GNI_PostFma(l->ep, &l->d), GNI_RC_SUCCESS);
    rc = gx_next(l->side->src_cq, &entry);
    assert_int_equal(rc, GNI_CQ_STATUS_OK(entry) ? GNI_RC_SUCCESS : GNI_RC_TRANSACTION_ERROR);
    assert_int_equal(GNI_CQ_GET_TYPE(entry), GNI_CQ_EVENT_TYPE_POST);
    assert_int_equal(GNI_GetCompleted(l->side->src_cq, entry, &done), rc);
    assert_ptr_equal(done, &l->d);
    return GNI_CQ_GET_STATUS(entry);
}

static inline void tree_contribute(struct tree_leaf *l, gni_ce_cmd_type_t cmd, uint64_t first, uint64_t second,
                                   uint64_t red_id)
{
    l->d = tree_post(l, cmd, first, second);
    l->d.ce_red_id = red_id;
    assert_int_equal(tree_send(l), 0);
}

/* answers: GNI_CeCheckResult */
static inline gni_return_t tree_wait(gni_ce_result_t *result)
{
    uint64_t end_ns = emu_clock_ns() + TREE_PATIENCE_NS;
    gni_return_t rc;

    do {
        rc = GNI_CeCheckResult(result, 1);
    } while (rc == GNI_RC_NOT_DONE && emu_clock_ns() < end_ns);
    return rc;
}

static inline void tree_expect(const struct tree_leaf *l, uint64_t result1)
{
    assert_int_equal(tree_wait(l->result), GNI_RC_SUCCESS);
    assert_true(l->result->result1 == result1);
    assert_int_equal(GNI_CE_RES_GET_RED_ID(l->result), l->d.ce_red_id);
}

static inline void tree_expect_failure(gni_ce_result_t *result, uint64_t status)
{
    assert_int_equal(tree_wait(result), GNI_RC_TRANSACTION_ERROR);
    assert_false(GNI_CE_RES_STATUS_OK(result));
    assert_int_equal(GNI_CE_RES_GET_STATUS(result), status);
}

/* A sum of 1, 2, 3 ... over all leaves, everybody's result checked. */
static inline void tree_sum_up(struct tree *t, uint64_t red_id)
{
    for (unsigned i = 0; i < t->n_leaves; i++)
        tree_contribute(&t->leaves[i], GNI_FMA_CE_IADD, i + 1, 0, red_id);
    for (unsigned i = 0; i < t->n_leaves; i++)
        tree_expect(&t->leaves[i], (uint64_t)t->n_leaves * (t->n_leaves + 1) / 2);
}

#endif
