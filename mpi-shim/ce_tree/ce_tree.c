/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The header has the tree's shape, which each member computes for itself from the places of all.
 *
 * Building takes three exchanges: whether all members have what they need, the numbers of the engines, and whether all
 * engines are configured.
 */
#include "mpi-shim/ce_tree/ce_tree.h"

#include <stdlib.h>
#include <string.h>

#define CHILDREN   GNI_CE_MAX_CHILDREN
#define ENTRIES    64u
#define PAGE_BYTES 4096u

struct cet_tree {
    gni_nic_handle_t nic;         /* borrowed */
    gni_cq_handle_t own_queue;    /* of this member's posts */
    gni_cq_handle_t engine_queue; /* errors of this member's engine, which show in the results, too */
    gni_ce_handle_t engine;       /* NULL: it has none here */
    gni_ep_handle_t leaf;
    gni_ep_handle_t engine_eps[GNI_CE_MAX_CHILDREN + 1];
    uint32_t n_engine_eps;
    bool is_registered;
    gni_mem_handle_t memory;
    gni_ce_result_t *result; /* owned, a page */
    uint64_t number;         /* of the next reduction */
    void (*progress)(void);
};

/* The tree as all members see it. */
struct shape {
    const struct cet_group *group;
    int n_engines;
    int *hosts;    /* owned: member of each engine */
    uint64_t *ids; /* owned: of each engine, plus 1; 0: its host has none left */
};

/* ---- shape ---- */

static int n_engines_below(const struct shape *shape, int engine)
{
    int left = shape->n_engines - (engine * CHILDREN + 1);

    return left <= 0 ? 0 : left < CHILDREN ? left : CHILDREN;
}

static void place_of(const struct shape *shape, int member, int *engine_out, uint32_t *child_out)
{
    int engine = 0;

    while (member >= CHILDREN - n_engines_below(shape, engine))
        member -= CHILDREN - n_engines_below(shape, engine++);
    *engine_out = engine;
    *child_out = (uint32_t)(n_engines_below(shape, engine) + member);
}

static bool is_first_of_node(const struct cet_group *group, int member)
{
    for (int i = 0; i < member; i++)
        if (group->places[i].address == group->places[member].address)
            return false;
    return true;
}

/* False: too few nodes. */
static bool choose_hosts(struct shape *shape)
{
    int n = 0;

    for (int member = 0; member < shape->group->n && n < shape->n_engines; member++)
        if (is_first_of_node(shape->group, member))
            shape->hosts[n++] = member;
    return n == shape->n_engines;
}

static int engine_of(const struct shape *shape, int member)
{
    for (int i = 0; i < shape->n_engines; i++)
        if (shape->hosts[i] == member)
            return i;
    return -1;
}

/* ---- building ---- */

static bool is_well(gni_return_t rc)
{
    return rc == GNI_RC_SUCCESS;
}

/* An end point to this member in this role. */
static bool connect_as(const struct cet_tree *tree, gni_ep_handle_t *ep_out, const struct cet_place *place,
                       uint32_t engine, uint32_t child, gni_ce_child_t type)
{
    return is_well(GNI_EpCreate(tree->nic, ep_out == &tree->leaf ? tree->own_queue : NULL, ep_out)) &&
           is_well(GNI_EpBind(*ep_out, place->address, place->instance)) &&
           is_well(GNI_EpSetCeAttr(*ep_out, engine, child, type));
}

static bool connect_engine(struct cet_tree *tree, const struct cet_place *place, uint32_t engine, uint32_t child,
                           gni_ce_child_t type)
{
    return connect_as(tree, &tree->engine_eps[tree->n_engine_eps++], place, engine, child, type);
}

static uint32_t id_of(const struct shape *shape, int engine)
{
    return (uint32_t)(shape->ids[engine] - 1);
}

static const struct cet_place *host_of(const struct shape *shape, int engine)
{
    return &shape->group->places[shape->hosts[engine]];
}

static bool configure(struct cet_tree *tree, const struct shape *shape, int engine)
{
    gni_ep_handle_t parent = NULL;
    uint32_t n;
    bool is_fine = true;

    for (int i = 0; i < n_engines_below(shape, engine); i++) {
        int below = engine * CHILDREN + 1 + i;

        is_fine =
            is_fine && connect_engine(tree, host_of(shape, below), id_of(shape, below), (uint32_t)i, GNI_CE_CHILD_VCE);
    }
    for (int member = 0; member < shape->group->n; member++) {
        uint32_t child;
        int at;

        place_of(shape, member, &at, &child);
        if (at == engine)
            is_fine = is_fine && connect_engine(tree, &shape->group->places[member], 0, child, GNI_CE_CHILD_PE);
    }
    n = tree->n_engine_eps;
    if (is_fine && engine > 0) {
        int above = (engine - 1) / CHILDREN;

        is_fine = connect_engine(tree, host_of(shape, above), id_of(shape, above), (uint32_t)((engine - 1) % CHILDREN),
                                 GNI_CE_CHILD_VCE);
        parent = tree->engine_eps[n];
    }
    return is_fine && is_well(GNI_CqCreate(tree->nic, ENTRIES, 0, GNI_CQ_NOBLOCK, NULL, NULL, &tree->engine_queue)) &&
           is_well(GNI_CeConfigure(tree->engine, tree->engine_eps, n, parent, tree->engine_queue,
                                   GNI_CE_MODE_ROUND_NEAR | GNI_CE_MODE_CQE_ONERR));
}

static bool open_leaf(struct cet_tree *tree)
{
    tree->result = aligned_alloc(PAGE_BYTES, PAGE_BYTES);
    if (!tree->result)
        return false;
    memset(tree->result, 0, PAGE_BYTES);
    tree->is_registered = is_well(GNI_MemRegister(tree->nic, (uint64_t)(uintptr_t)tree->result, PAGE_BYTES, NULL,
                                                  GNI_MEM_READWRITE, (uint32_t)-1, &tree->memory));
    return tree->is_registered &&
           is_well(GNI_CqCreate(tree->nic, ENTRIES, 0, GNI_CQ_NOBLOCK, NULL, NULL, &tree->own_queue));
}

static bool agree(const struct cet_group *group, bool is_fine)
{
    uint64_t has_failed = !is_fine;

    return group->share(group->arg, &has_failed, 1) && !has_failed;
}

/* The numbers of all engines, of which this member may host one. */
static bool share_engines(struct cet_tree *tree, const struct shape *shape, int engine)
{
    uint32_t id;

    if (engine >= 0 && is_well(GNI_CeCreate(tree->nic, &tree->engine)) && is_well(GNI_CeGetId(tree->engine, &id)))
        shape->ids[engine] = (uint64_t)id + 1;
    if (!shape->group->share(shape->group->arg, shape->ids, (size_t)shape->n_engines))
        return false;
    for (int i = 0; i < shape->n_engines; i++)
        if (shape->ids[i] == 0)
            return false;
    return true;
}

static bool join_engine(struct cet_tree *tree, const struct shape *shape)
{
    uint32_t child;
    int at;

    place_of(shape, shape->group->me, &at, &child);
    return connect_as(tree, &tree->leaf, host_of(shape, at), id_of(shape, at), child, GNI_CE_CHILD_PE);
}

static bool build(struct cet_tree *tree, const struct shape *shape)
{
    int engine = engine_of(shape, shape->group->me);

    return share_engines(tree, shape, engine) &&
           agree(shape->group, (engine < 0 || configure(tree, shape, engine)) && join_engine(tree, shape));
}

struct cet_tree *cet_build(gni_nic_handle_t nic, const struct cet_group *group)
{
    struct cet_tree *tree = calloc(1, sizeof(*tree));
    struct shape shape = { .group = group, .n_engines = 1 };
    bool is_fine;

    while (shape.n_engines * CHILDREN - (shape.n_engines - 1) < group->n)
        shape.n_engines++;
    shape.hosts = calloc((size_t)shape.n_engines, sizeof(*shape.hosts));
    shape.ids = calloc((size_t)shape.n_engines, sizeof(*shape.ids));
    if (tree) {
        tree->nic = nic;
        tree->progress = group->progress;
    }
    is_fine = tree && shape.hosts && shape.ids && choose_hosts(&shape) && open_leaf(tree);
    is_fine = agree(group, is_fine) && build(tree, &shape);
    free(shape.hosts);
    free(shape.ids);
    if (is_fine)
        return tree;
    cet_destroy(tree);
    return NULL;
}

void cet_forget(struct cet_tree *tree)
{
    free(tree->result);
    free(tree);
}

void cet_destroy(struct cet_tree *tree)
{
    if (!tree)
        return;
    if (tree->engine)
        GNI_CeDestroy(tree->engine);
    for (uint32_t i = 0; i < tree->n_engine_eps; i++)
        if (tree->engine_eps[i])
            GNI_EpDestroy(tree->engine_eps[i]);
    if (tree->leaf)
        GNI_EpDestroy(tree->leaf);
    if (tree->engine_queue)
        GNI_CqDestroy(tree->engine_queue);
    if (tree->own_queue)
        GNI_CqDestroy(tree->own_queue);
    if (tree->is_registered)
        GNI_MemDeregister(tree->nic, &tree->memory);
    cet_forget(tree);
}

/* ---- reducing ---- */

static gni_return_t wait_until_taken(const struct cet_tree *tree)
{
    gni_post_descriptor_t *descriptor;
    gni_cq_entry_t entry;
    gni_return_t rc;

    while ((rc = GNI_CqGetEvent(tree->own_queue, &entry)) == GNI_RC_NOT_DONE)
        tree->progress();
    return rc == GNI_RC_SUCCESS ? GNI_GetCompleted(tree->own_queue, entry, &descriptor) : rc;
}

gni_return_t cet_reduce(struct cet_tree *tree, const struct cet_operands *operands, uint64_t results_out[2])
{
    gni_post_descriptor_t post = { .type = GNI_POST_CE,
                                   .cq_mode = GNI_CQMODE_GLOBAL_EVENT,
                                   .local_addr = (uint64_t)(uintptr_t)tree->result,
                                   .local_mem_hndl = tree->memory,
                                   .ce_cmd = operands->command,
                                   .ce_mode = operands->mode,
                                   .ce_red_id = tree->number++,
                                   .first_operand = operands->values[0],
                                   .second_operand = operands->values[1] };
    gni_return_t rc;

    memset(tree->result, 0, sizeof(*tree->result));
    rc = GNI_PostFma(tree->leaf, &post);
    if (rc == GNI_RC_SUCCESS)
        rc = wait_until_taken(tree);
    if (rc != GNI_RC_SUCCESS)
        return rc;
    while ((rc = GNI_CeCheckResult(tree->result, 1)) == GNI_RC_NOT_DONE)
        tree->progress();
    if (rc != GNI_RC_SUCCESS && !GNI_CE_RES_STATUS_OK(tree->result))
        return rc;
    results_out[0] = tree->result->result1;
    results_out[1] = tree->result->result2;
    return GNI_RC_SUCCESS;
}
