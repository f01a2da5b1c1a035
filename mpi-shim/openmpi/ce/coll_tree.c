/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Trees of collective engines.
 *
 * Engines form a heap: engine e has the engines e * CHILDREN' + 1 ... below it, where CHILDREN' is the number of its
 * children, and ranks fill the places that engines leave, in their order. The first rank of a node hosts an engine, as
 * long as engines are needed. A communicator fits if it has enough nodes and each of those has an engine left.
 *
 * Building takes one exchange and one agreement, both by the component before this one. The agreement also is the
 * barrier behind which all engines are configured.
 */
#include "mpi-shim/openmpi/ce/coll.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <ompi/mca/rte/rte.h>
#include <opal/runtime/opal_progress.h>

#define CHILDREN   GNI_CE_MAX_CHILDREN
#define INSTANCE   0x43000000u /* apart from those of btl/gni and of programs */
#define ENTRIES    64u
#define PAGE_BYTES 4096u

/* What each process tells about itself. */
struct place {
    uint32_t address;
    uint32_t instance;
};

/* The tree as all processes see it. */
struct shape {
    int n_ranks;
    int n_engines;
    int *hosts;           /* owned: rank of each engine */
    struct place *places; /* owned, by rank */
    uint32_t *ids;        /* owned, by engine */
};

static struct cce_nic nic;
static struct cce_tree *trees;
static opal_mutex_t mutex = OPAL_MUTEX_STATIC_INIT;

/* ---- NIC ---- */

static _Noreturn void fail(const char *what, gni_return_t rc)
{
    opal_output(0, "emunic: coll/ce: %s: %s", what, gni_err_str[rc]);
    ompi_rte_abort(1, NULL);
    abort();
}

static bool read_number(const char *name, uint32_t *value_out)
{
    const char *text = getenv(name);

    *value_out = text ? (uint32_t)strtoll(text, NULL, 10) : 0;
    return text && text[0];
}

static bool open_nic(void)
{
    uint32_t ptag;
    uint32_t cookie;

    if (nic.is_open || nic.has_failed)
        return nic.is_open;
    nic.has_failed = true;
    if (!read_number("PMI_GNI_PTAG", &ptag) || !read_number("PMI_GNI_COOKIE", &cookie))
        return false;
    if (GNI_CdmCreate(INSTANCE | OPAL_PROC_MY_NAME.vpid, (uint8_t)ptag, cookie,
                      GNI_CDM_MODE_ERR_NO_KILL | GNI_CDM_MODE_FMA_SHARED, &nic.cdm) != GNI_RC_SUCCESS)
        return false;
    if (GNI_CdmAttach(nic.cdm, 0, &nic.address, &nic.nic) != GNI_RC_SUCCESS ||
        GNI_CqCreate(nic.nic, ENTRIES, 0, GNI_CQ_NOBLOCK, NULL, NULL, &nic.engine_queue) != GNI_RC_SUCCESS) {
        GNI_CdmDestroy(nic.cdm);
        return false;
    }
    nic.is_open = true;
    return true;
}

void cce_close(void)
{
    if (nic.is_open)
        GNI_CdmDestroy(nic.cdm);
    nic.is_open = false;
    while (trees) {
        struct cce_tree *tree = trees;

        trees = tree->next;
        free(tree->result);
        free(tree);
    }
}

/* ---- shape ---- */

static int n_engines_below(const struct shape *shape, int engine)
{
    int left = shape->n_engines - (engine * CHILDREN + 1);

    return left <= 0 ? 0 : left < CHILDREN ? left : CHILDREN;
}

static void place_of(const struct shape *shape, int rank, int *engine_out, uint32_t *child_out)
{
    int engine = 0;

    while (rank >= CHILDREN - n_engines_below(shape, engine))
        rank -= CHILDREN - n_engines_below(shape, engine++);
    *engine_out = engine;
    *child_out = (uint32_t)(n_engines_below(shape, engine) + rank);
}

static bool is_first_of_node(const struct shape *shape, int rank)
{
    for (int i = 0; i < rank; i++)
        if (shape->places[i].address == shape->places[rank].address)
            return false;
    return true;
}

/* False: too few nodes. */
static bool choose_hosts(struct shape *shape)
{
    int n = 0;

    for (int rank = 0; rank < shape->n_ranks && n < shape->n_engines; rank++)
        if (is_first_of_node(shape, rank))
            shape->hosts[n++] = rank;
    return n == shape->n_engines;
}

static void free_shape(struct shape *shape)
{
    free(shape->hosts);
    free(shape->places);
    free(shape->ids);
}

static bool make_shape(struct shape *shape, int n_ranks)
{
    shape->n_ranks = n_ranks;
    shape->n_engines = 1;
    while (shape->n_engines * CHILDREN - (shape->n_engines - 1) < n_ranks)
        shape->n_engines++;
    shape->hosts = calloc((size_t)shape->n_engines, sizeof(int));
    shape->places = calloc((size_t)n_ranks, sizeof(struct place));
    shape->ids = calloc((size_t)n_ranks, sizeof(uint32_t));
    return shape->hosts && shape->places && shape->ids;
}

/* ---- talking to the others, by the component before ---- */

static int gather(struct ompi_communicator_t *comm, const void *in, void *out, int bytes)
{
    return comm->c_coll->coll_allgather(in, bytes, MPI_BYTE, out, bytes, MPI_BYTE, comm,
                                        comm->c_coll->coll_allgather_module);
}

static bool agree(struct ompi_communicator_t *comm, cce_module_t *module, bool is_fine)
{
    int mine = is_fine;
    int all = 0;

    return module->allreduce(&mine, &all, 1, MPI_INT, MPI_MIN, comm, module->allreduce_module) == OMPI_SUCCESS && all;
}

/* ---- building ---- */

static bool is_well(gni_return_t rc)
{
    return rc == GNI_RC_SUCCESS;
}

/* An end point to this process in this role. */
static bool connect_as(gni_ep_handle_t *ep_out, const struct place *place, gni_cq_handle_t queue, uint32_t engine,
                       uint32_t child, gni_ce_child_t type)
{
    return is_well(GNI_EpCreate(nic.nic, queue, ep_out)) &&
           is_well(GNI_EpBind(*ep_out, place->address, place->instance)) &&
           is_well(GNI_EpSetCeAttr(*ep_out, engine, child, type));
}

static bool connect_engine(struct cce_tree *tree, const struct place *place, uint32_t engine, uint32_t child,
                           gni_ce_child_t type)
{
    return connect_as(&tree->engine_eps[tree->n_engine_eps++], place, NULL, engine, child, type);
}

static int engine_of(const struct shape *shape, int rank)
{
    for (int i = 0; i < shape->n_engines; i++)
        if (shape->hosts[i] == rank)
            return i;
    return -1;
}

static bool configure(struct cce_tree *tree, const struct shape *shape, int engine)
{
    gni_ep_handle_t parent = NULL;
    uint32_t n;
    bool is_fine = true;

    for (int i = 0; i < n_engines_below(shape, engine); i++) {
        int below = engine * CHILDREN + 1 + i;

        is_fine = is_fine && connect_engine(tree, &shape->places[shape->hosts[below]], shape->ids[below], (uint32_t)i,
                                            GNI_CE_CHILD_VCE);
    }
    for (int rank = 0; rank < shape->n_ranks; rank++) {
        uint32_t child;
        int at;

        place_of(shape, rank, &at, &child);
        if (at == engine)
            is_fine = is_fine && connect_engine(tree, &shape->places[rank], 0, child, GNI_CE_CHILD_PE);
    }
    n = tree->n_engine_eps;
    if (is_fine && engine > 0) {
        int above = (engine - 1) / CHILDREN;

        is_fine = connect_engine(tree, &shape->places[shape->hosts[above]], shape->ids[above],
                                 (uint32_t)((engine - 1) % CHILDREN), GNI_CE_CHILD_VCE);
        parent = tree->engine_eps[n];
    }
    return is_fine && is_well(GNI_CeConfigure(tree->engine, tree->engine_eps, n, parent, nic.engine_queue,
                                              GNI_CE_MODE_ROUND_NEAR | GNI_CE_MODE_CQE_ONERR));
}

static bool open_leaf(struct cce_tree *tree)
{
    tree->result = aligned_alloc(PAGE_BYTES, PAGE_BYTES);
    if (!tree->result)
        return false;
    memset(tree->result, 0, PAGE_BYTES);
    tree->is_registered = is_well(GNI_MemRegister(nic.nic, (uint64_t)(uintptr_t)tree->result, PAGE_BYTES, NULL,
                                                  GNI_MEM_READWRITE, (uint32_t)-1, &tree->memory));
    return tree->is_registered &&
           is_well(GNI_CqCreate(nic.nic, ENTRIES, 0, GNI_CQ_NOBLOCK, NULL, NULL, &tree->own_queue));
}

/* Engines' ids, their configuration, and this process's leaf. */
static bool build(struct cce_tree *tree, struct shape *shape, struct ompi_communicator_t *comm)
{
    int rank = ompi_comm_rank(comm);
    int engine = engine_of(shape, rank);
    uint32_t id = UINT32_MAX;
    uint32_t *ids = calloc((size_t)shape->n_ranks, sizeof(*ids));
    bool is_fine = true;
    uint32_t child;
    int at;

    if (engine >= 0 && is_well(GNI_CeCreate(nic.nic, &tree->engine)) && !is_well(GNI_CeGetId(tree->engine, &id)))
        id = UINT32_MAX;
    if (!ids || gather(comm, &id, ids, sizeof(id)) != OMPI_SUCCESS) {
        free(ids);
        return false;
    }
    for (int i = 0; i < shape->n_engines; i++) {
        shape->ids[i] = ids[shape->hosts[i]];
        is_fine = is_fine && shape->ids[i] != UINT32_MAX;
    }
    free(ids);
    if (!is_fine || (engine >= 0 && !configure(tree, shape, engine)))
        return false;
    place_of(shape, rank, &at, &child);
    return connect_as(&tree->leaf, &shape->places[shape->hosts[at]], tree->own_queue, shape->ids[at], child,
                      GNI_CE_CHILD_PE);
}

/* Nobody has posted to it. */
static void give_up(struct cce_tree *tree)
{
    if (tree->engine)
        GNI_CeDestroy(tree->engine);
    for (uint32_t i = 0; i < tree->n_engine_eps; i++)
        if (tree->engine_eps[i])
            GNI_EpDestroy(tree->engine_eps[i]);
    if (tree->leaf)
        GNI_EpDestroy(tree->leaf);
    if (tree->own_queue)
        GNI_CqDestroy(tree->own_queue);
    if (tree->is_registered)
        GNI_MemDeregister(nic.nic, &tree->memory);
    free(tree->result);
    free(tree);
}

static void keep(struct cce_tree *tree)
{
    OPAL_THREAD_LOCK(&mutex);
    tree->next = trees;
    trees = tree;
    OPAL_THREAD_UNLOCK(&mutex);
}

static bool open_tree(struct cce_tree *tree)
{
    bool is_fine;

    OPAL_THREAD_LOCK(&mutex);
    is_fine = open_nic();
    OPAL_THREAD_UNLOCK(&mutex);
    return is_fine && open_leaf(tree);
}

struct cce_tree *cce_build(struct ompi_communicator_t *comm, cce_module_t *module)
{
    struct cce_tree *tree = calloc(1, sizeof(*tree));
    struct shape shape = { 0 };
    struct place own = { 0, INSTANCE | OPAL_PROC_MY_NAME.vpid };
    bool is_fine;

    if (!tree || !make_shape(&shape, ompi_comm_size(comm)))
        fail("memory", GNI_RC_ERROR_NOMEM);
    is_fine = agree(comm, module, open_tree(tree));
    own.address = nic.address;
    is_fine = is_fine && gather(comm, &own, shape.places, sizeof(own)) == OMPI_SUCCESS && choose_hosts(&shape) &&
              agree(comm, module, build(tree, &shape, comm));
    free_shape(&shape);
    if (is_fine) {
        keep(tree);
        return tree;
    }
    give_up(tree);
    return NULL;
}

/* ---- running ---- */

static void wait_until_taken(struct cce_tree *tree)
{
    gni_post_descriptor_t *descriptor;
    gni_cq_entry_t entry;
    gni_return_t rc;

    while ((rc = GNI_CqGetEvent(tree->own_queue, &entry)) == GNI_RC_NOT_DONE)
        opal_progress();
    if (rc != GNI_RC_SUCCESS)
        fail("a process of the tree cannot be reached", rc);
    rc = GNI_GetCompleted(tree->own_queue, entry, &descriptor);
    if (rc != GNI_RC_SUCCESS)
        fail("GNI_GetCompleted", rc);
}

void cce_run(struct cce_tree *tree, const struct cce_operands *operands, uint64_t results_out[2])
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
    if (rc != GNI_RC_SUCCESS)
        fail("GNI_PostFma", rc);
    wait_until_taken(tree);
    while ((rc = GNI_CeCheckResult(tree->result, 1)) == GNI_RC_NOT_DONE)
        opal_progress();
    /* Exceptions of floating point are no failure: sums are seldom exact. */
    if (rc != GNI_RC_SUCCESS && !GNI_CE_RES_STATUS_OK(tree->result))
        fail("a process of the tree cannot be reached", rc);
    results_out[0] = tree->result->result1;
    results_out[1] = tree->result->result2;
}
