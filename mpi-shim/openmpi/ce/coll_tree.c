/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The tree of a communicator (../../ce_tree/ce_tree.h), built over the component before this one.
 */
#include "mpi-shim/openmpi/ce/coll.h"

#include <stdlib.h>

#include <ompi/mca/rte/rte.h>
#include <opal/runtime/opal_progress.h>

#define INSTANCE 0x43000000u /* apart from those of btl/gni and of programs */

static struct cce_nic nic;
static struct kept {
    struct kept *next;
    struct cet_tree *tree; /* owned */
} * trees;
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
    if (GNI_CdmAttach(nic.cdm, 0, &nic.address, &nic.nic) != GNI_RC_SUCCESS) {
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
        struct kept *kept = trees;

        trees = kept->next;
        cet_forget(kept->tree);
        free(kept);
    }
}

/* ---- building, by the component before ---- */

struct talk {
    struct ompi_communicator_t *comm;
    cce_module_t *module;
};

static bool share(void *arg, uint64_t *words, size_t n)
{
    const struct talk *talk = arg;

    return talk->module->allreduce(MPI_IN_PLACE, words, (int)n, MPI_UINT64_T, MPI_BOR, talk->comm,
                                   talk->module->allreduce_module) == OMPI_SUCCESS;
}

static bool gather(struct ompi_communicator_t *comm, const struct cet_place *own, struct cet_place *places)
{
    return comm->c_coll->coll_allgather(own, sizeof(*own), MPI_BYTE, places, sizeof(*own), MPI_BYTE, comm,
                                        comm->c_coll->coll_allgather_module) == OMPI_SUCCESS;
}

static bool open_nic_for_all(struct talk *talk)
{
    uint64_t has_failed;

    OPAL_THREAD_LOCK(&mutex);
    has_failed = !open_nic();
    OPAL_THREAD_UNLOCK(&mutex);
    return share(talk, &has_failed, 1) && !has_failed;
}

static struct cet_tree *keep(struct cet_tree *tree)
{
    struct kept *kept = malloc(sizeof(*kept));

    if (!kept)
        fail("memory", GNI_RC_ERROR_NOMEM);
    kept->tree = tree;
    OPAL_THREAD_LOCK(&mutex);
    kept->next = trees;
    trees = kept;
    OPAL_THREAD_UNLOCK(&mutex);
    return tree;
}

struct cet_tree *cce_build(struct ompi_communicator_t *comm, cce_module_t *module)
{
    struct talk talk = { comm, module };
    struct cet_tree *tree = NULL;
    struct cet_place *places = calloc((size_t)ompi_comm_size(comm), sizeof(*places));
    struct cet_place own = { 0, INSTANCE | OPAL_PROC_MY_NAME.vpid };
    struct cet_group group = { .n = ompi_comm_size(comm),
                               .me = ompi_comm_rank(comm),
                               .places = places,
                               .share = share,
                               .progress = opal_progress,
                               .arg = &talk };

    if (!places)
        fail("memory", GNI_RC_ERROR_NOMEM);
    if (open_nic_for_all(&talk)) {
        own.address = nic.address;
        if (gather(comm, &own, places))
            tree = cet_build(nic.nic, &group);
    }
    free(places);
    return tree ? keep(tree) : NULL;
}

/* ---- running ---- */

void cce_run(struct cet_tree *tree, const struct cet_operands *operands, uint64_t results_out[2])
{
    gni_return_t rc = cet_reduce(tree, operands, results_out);

    if (rc != GNI_RC_SUCCESS)
        fail("a process of the tree cannot be reached", rc);
}
