/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * osc/emunic: which component of Open MPI makes a window.
 *
 *                             over Portals   over gni
 *   MPI_Win_allocate_shared   osc/sm         osc/sm      the memory of a node, for ranks of one node only
 *   MPI_Win_create_dynamic    osc/pt2pt      osc/pt2pt   their calls become messages
 *   all others                osc/pt2pt      osc/rdma
 *
 * Left to itself, Open MPI would also give osc/sm the windows of MPI_Win_allocate on one node, and their calls would
 * pass the machine by. Calls to dynamic windows on another node never end in osc/rdma. So this component outbids the
 * others and hands the windows on. What osc/rdma accumulates is mended (osc_accumulate.h), and osc/pt2pt is spared
 * flushes of nothing (osc_flush.h).
 */
#include "mpi-shim/openmpi/osc_accumulate.h"
#include "mpi-shim/openmpi/osc_flush.h"

#include <ompi_config.h>

#include <string.h>

#include <ompi/mca/osc/base/base.h>
#include <ompi/mca/osc/osc.h>

#define PRIORITY 200 /* osc/sm bids 100, osc/rdma 101 */

static int init(bool enable_progress_threads, bool enable_mpi_threads);
static int osc_query(struct ompi_win_t *win, void **base, size_t size, int disp_unit, struct ompi_communicator_t *comm,
                     struct opal_info_t *info, int flavor);
static int osc_select(struct ompi_win_t *win, void **base, size_t size, int disp_unit, struct ompi_communicator_t *comm,
                      struct opal_info_t *info, int flavor, int *model);
static int finalize(void);

extern ompi_osc_base_component_t mca_osc_emunic_component;

__attribute__((visibility("default"))) ompi_osc_base_component_t mca_osc_emunic_component = {
    .osc_version = {
        OMPI_OSC_BASE_VERSION_3_0_0,
        .mca_component_name = "emunic",
        MCA_BASE_MAKE_VERSION(component, 1, 0, 0),
    },
    .osc_data = { MCA_BASE_METADATA_PARAM_NONE },
    .osc_init = init,
    .osc_query = osc_query,
    .osc_select = osc_select,
    .osc_finalize = finalize,
};

static int init(bool enable_progress_threads, bool enable_mpi_threads)
{
    (void)enable_progress_threads;
    (void)enable_mpi_threads;
    return OMPI_SUCCESS;
}

static int finalize(void)
{
    return OMPI_SUCCESS;
}

static ompi_osc_base_component_t *find(const char *name)
{
    mca_base_component_list_item_t *item;

    OPAL_LIST_FOREACH(item, &ompi_osc_base_framework.framework_components, mca_base_component_list_item_t)
    {
        if (strcmp(item->cli_component->mca_component_name, name) == 0)
            return (ompi_osc_base_component_t *)item->cli_component;
    }
    return NULL;
}

/* Who makes windows of this flavor; NULL: Open MPI chooses. osc/rdma is there over gni only. */
static ompi_osc_base_component_t *maker_of(int flavor)
{
    ompi_osc_base_component_t *rdma = find("rdma");

    if (flavor == MPI_WIN_FLAVOR_SHARED)
        return NULL;
    return flavor == MPI_WIN_FLAVOR_DYNAMIC || !rdma ? find("pt2pt") : rdma;
}

static int osc_query(struct ompi_win_t *win, void **base, size_t size, int disp_unit, struct ompi_communicator_t *comm,
                     struct opal_info_t *info, int flavor)
{
    ompi_osc_base_component_t *component = maker_of(flavor);

    if (!component || component->osc_query(win, base, size, disp_unit, comm, info, flavor) < 0)
        return -1;
    return PRIORITY;
}

static int osc_select(struct ompi_win_t *win, void **base, size_t size, int disp_unit, struct ompi_communicator_t *comm,
                      struct opal_info_t *info, int flavor, int *model)
{
    ompi_osc_base_component_t *component = maker_of(flavor);
    int r = component->osc_select(win, base, size, disp_unit, comm, info, flavor, model);

    if (r == OMPI_SUCCESS && component == find("rdma"))
        mo_mend_accumulate(win);
    if (r == OMPI_SUCCESS && component == find("pt2pt"))
        mo_spare_flushes(win);
    return r;
}
