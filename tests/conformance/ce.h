/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the tests of collective engines share: many sides and a tree over them. Each program includes this once.
 */
#ifndef TESTS_CONFORMANCE_CE_H
#define TESTS_CONFORMANCE_CE_H

#include <float.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>

#include "tests/conformance/tree.h"
#include "tests/common/proc.h"
#include "tests/common/seed.h"

#define SIDES           24u
#define ENGINES_PER_NIC 4u

/* gni_cq_get_status() as gni_pub.h documents it */
#define PEER_GONE        2u
#define BAD_HANDLE       3u
#define RETRANSMIT_LIMIT 8u
#define CANCELLED        9u
#define MISMATCH         11u

static struct fx fx;
static struct gx_side sides[SIDES];
static struct tree tree;

/* ---- fixture ---- */

static inline int start(void **state)
{
    struct fx_options options = { .n_ranks = SIDES };

    (void)state;
    fx_start(&fx, &options);
    for (unsigned i = 0; i < SIDES; i++)
        gx_open(&sides[i], &fx, i, 100 + i, GNI_CDM_MODE_DUAL_EVENTS);
    return 0;
}

static inline int stop(void **state)
{
    (void)state;
    for (unsigned i = 0; i < SIDES; i++)
        gx_close(&sides[i]);
    return fx_stop(&fx);
}

static inline int drop_tree(void **state)
{
    gni_cq_entry_t entry;

    (void)state;
    tree_drop(&tree);
    for (unsigned i = 0; i < SIDES; i++) {
        while (GNI_CqGetEvent(sides[i].src_cq, &entry) != GNI_RC_NOT_DONE)
            ;
    }
    return 0;
}

#define ce_test(name) cmocka_unit_test_teardown(name, drop_tree)

/* ---- trees ---- */

/* Depth 3 over all sides: root - 3 engines - 2 each; one leaf on every node, hanging from every level. */
static inline void build_deep_tree(void)
{
    unsigned root = tree_add_engine(&tree, &sides[0], NO_PARENT);
    unsigned next = 1;

    for (unsigned i = 0; i < 3; i++) {
        unsigned middle = tree_add_engine(&tree, &sides[next++], (int)root);

        for (unsigned k = 0; k < 2; k++)
            tree_add_engine(&tree, &sides[next++], (int)middle);
    }
    for (unsigned i = 0; i < SIDES; i++)
        tree_add_leaf(&tree, &sides[i], i % tree.n_engines);
    tree_build(&tree);
}

/* ---- entries of engines ---- */

static inline void expect_entry(struct tree_engine *e, uint64_t red_id, uint64_t status)
{
    gni_post_descriptor_t *done;
    gni_cq_entry_t entry = 0;

    assert_int_equal(gx_next(e->cq, &entry), status ? GNI_RC_TRANSACTION_ERROR : GNI_RC_SUCCESS);
    assert_int_equal(GNI_CQ_GET_SOURCE(entry), 6);
    assert_int_equal(GNI_CQ_GET_STATUS(entry), status);
    assert_int_equal(GNI_CQ_GET_CE_ID(entry), e->id);
    assert_int_equal(GNI_CQ_GET_REDUCTN_ID(entry), red_id);
    assert_int_equal(GNI_GetCompleted(e->cq, entry, &done), GNI_RC_DESCRIPTOR_ERROR);
}

#endif
