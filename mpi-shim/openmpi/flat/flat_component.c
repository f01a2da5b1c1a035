/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The component coll/flat as Open MPI finds it. It does nothing unless `emunic run` has enabled it.
 */
#include "mpi-shim/openmpi/flat/flat.h"

#include <stdlib.h>

#include <opal/mca/base/mca_base_var.h>

static int register_variables(void);
static int open_component(void);
static int close_component(void);
static int init_query(bool enable_progress_threads, bool enable_mpi_threads);

extern mca_coll_base_component_t mca_coll_flat_component;

int cfl_is_enabled;
int cfl_after_calls;
int cfl_ranks;

__attribute__((visibility("default"))) mca_coll_base_component_t mca_coll_flat_component = {
    .collm_version = {
        MCA_COLL_BASE_VERSION_2_0_0,
        .mca_component_name = "flat",
        MCA_BASE_MAKE_VERSION(component, 1, 0, 0),
        .mca_open_component = open_component,
        .mca_close_component = close_component,
        .mca_register_component_params = register_variables,
    },
    .collm_data = { MCA_BASE_METADATA_PARAM_NONE },
    .collm_init_query = init_query,
    .collm_comm_query = cfl_query,
};

static void add_variable(const char *name, const char *meaning, int *value)
{
    (void)mca_base_component_var_register(&mca_coll_flat_component.collm_version, name, meaning, MCA_BASE_VAR_TYPE_INT,
                                          NULL, 0, 0, OPAL_INFO_LVL_5, MCA_BASE_VAR_SCOPE_READONLY, value);
}

static int register_variables(void)
{
    cfl_is_enabled = 0;
    cfl_after_calls = 3;
    cfl_ranks = CFL_RANKS;
    add_variable("enable", "In small collective calls each process tells each", &cfl_is_enabled);
    add_variable("after_calls", "Calls on a communicator before it does so", &cfl_after_calls);
    add_variable("ranks", "Processes of a communicator at most", &cfl_ranks);
    return OMPI_SUCCESS;
}

static int open_component(void)
{
    return OMPI_SUCCESS;
}

static int close_component(void)
{
    cfl_close_nic();
    return OMPI_SUCCESS;
}

static int init_query(bool enable_progress_threads, bool enable_mpi_threads)
{
    (void)enable_progress_threads;
    (void)enable_mpi_threads;
    if (!cfl_is_enabled || !getenv("EMUNIC_SERVER") || !getenv("EMUNIC_RANK"))
        return OMPI_ERR_NOT_AVAILABLE;
    cfl_look_around();
    return OMPI_SUCCESS;
}
