/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The component mtl/portals3 as Open MPI finds it: name, tuning variables, and the module that it offers in a job of
 * emunic. Outside of one it offers none, so that it can lie in a component path for ever.
 */
#include "mpi-shim/openmpi/mtl.h"

#include <stdlib.h>

#include <opal/mca/base/mca_base_var.h>

#define PRIORITY 70

static int register_variables(void);
static int open_component(void);
static int close_component(void);
static int query(mca_base_module_t **module, int *priority);
static struct mca_mtl_base_module_t *init(bool enable_progress_threads, bool enable_mpi_threads);

extern mca_mtl_base_component_t mca_mtl_portals3_component;

__attribute__((visibility("default"))) mca_mtl_base_component_t mca_mtl_portals3_component = {
    .mtl_version = {
        MCA_MTL_BASE_VERSION_2_0_0,
        .mca_component_name = "portals3",
        MCA_BASE_MAKE_VERSION(component, 1, 0, 0),
        .mca_open_component = open_component,
        .mca_close_component = close_component,
        .mca_query_component = query,
        .mca_register_component_params = register_variables,
    },
    .mtl_data = { MCA_BASE_METADATA_PARAM_NONE },
    .mtl_init = init,
};

static void add_variable(const char *name, const char *meaning, int *value)
{
    (void)mca_base_component_var_register(&mca_mtl_portals3_component.mtl_version, name, meaning, MCA_BASE_VAR_TYPE_INT,
                                          NULL, 0, 0, OPAL_INFO_LVL_5, MCA_BASE_VAR_SCOPE_READONLY, value);
}

static int register_variables(void)
{
    mp3.eager_limit = 16384;
    mp3.landing_limit = 4096;
    mp3.overflow_bytes = 8 << 20;
    mp3.window = 0;
    add_variable("eager_limit", "Bytes of the longest message that lands in an overflow entry", &mp3.eager_limit);
    add_variable("landing_limit", "Bytes of the longest receive that lands in memory of the component",
                 &mp3.landing_limit);
    add_variable("overflow_bytes", "Bytes that may wait in a process's overflow entries", &mp3.overflow_bytes);
    add_variable("window", "Messages under way to one process (0: by the number of processes)", &mp3.window);
    return OMPI_SUCCESS;
}

static int open_component(void)
{
    return OMPI_SUCCESS;
}

static int close_component(void)
{
    return OMPI_SUCCESS;
}

static int query(mca_base_module_t **module, int *priority)
{
    *priority = PRIORITY;
    *module = (mca_base_module_t *)&mp3.super;
    return OMPI_SUCCESS;
}

static struct mca_mtl_base_module_t *init(bool enable_progress_threads, bool enable_mpi_threads)
{
    (void)enable_progress_threads;
    (void)enable_mpi_threads;
    if (!getenv("EMUNIC_SERVER"))
        return NULL;
    if (!getenv("EMUNIC_RANK")) {
        opal_output(0,
                    "emunic: this process was not started by `emunic run` but by MPI_Comm_spawn() or the like, which "
                    "has no place on the emulated machine");
        return NULL;
    }
    return mp3_open() == 0 ? &mp3.super : NULL;
}
