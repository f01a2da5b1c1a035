/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * coll/ce: Open MPI's small collective calls on the collective engines of an Aries. ../README.md has the protocol.
 *
 * Thread rule: any thread; calls on one communicator come one after the other, as MPI promises.
 */
#ifndef MPI_SHIM_OPENMPI_CE_COLL_H
#define MPI_SHIM_OPENMPI_CE_COLL_H

#include <ompi_config.h>

#include <mpi.h>

#include <ompi/communicator/communicator.h>
#include <ompi/datatype/ompi_datatype.h>
#include <ompi/mca/coll/base/base.h>
#include <ompi/mca/coll/coll.h>
#include <opal/threads/mutex.h>

#include <gni_pub.h>

#include "mpi-shim/ce_tree/ce_tree.h"

/* The NIC handle of this component, opened with the first tree. */
struct cce_nic {
    bool is_open;
    bool has_failed; /* to open */
    uint32_t address;
    gni_cdm_handle_t cdm;
    gni_nic_handle_t nic;
};

enum cce_state { CCE_NEW, CCE_READY, CCE_REFUSED };

/* The module of a communicator: what it does itself, and what it leaves to the component before. */
typedef struct cce_module {
    mca_coll_base_module_t super;
    enum cce_state state;
    uint32_t n_calls;      /* that a tree would have done */
    struct cet_tree *tree; /* borrowed */
    mca_coll_base_module_allreduce_fn_t allreduce;
    mca_coll_base_module_t *allreduce_module;
    mca_coll_base_module_barrier_fn_t barrier;
    mca_coll_base_module_t *barrier_module;
    mca_coll_base_module_bcast_fn_t bcast;
    mca_coll_base_module_t *bcast_module;
    mca_coll_base_module_reduce_fn_t reduce;
    mca_coll_base_module_t *reduce_module;
} cce_module_t;
OBJ_CLASS_DECLARATION(cce_module_t);

extern int cce_is_enabled;
extern int cce_after_calls;

/* ---- coll_module.c ---- */

mca_coll_base_module_t *cce_query(struct ompi_communicator_t *comm, int *priority);

/* ---- coll_tree.c ---- */

/*
 * All processes of the communicator call it. NULL on all of them: there is no tree for it. A tree stays until
 * cce_close(): others may still wait in it.
 */
struct cet_tree *cce_build(struct ompi_communicator_t *comm, cce_module_t *module);

/* All processes of the tree call it. The results, as the NIC gives them. */
void cce_run(struct cet_tree *tree, const struct cet_operands *operands, uint64_t results_out[2]);

/* Once, at the end of the job. */
void cce_close(void);

#endif
