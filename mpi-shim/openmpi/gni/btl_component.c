/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The component btl/gni as Open MPI finds it: name, tuning variables, and the module that it offers in a job of emunic.
 * Outside of one it offers none, so that it can lie in a component path for ever.
 */
#include "mpi-shim/openmpi/gni/btl.h"

#include <stdlib.h>

#include <opal/mca/base/mca_base_var.h>

static int register_variables(void);
static int open_component(void);
static int close_component(void);
static mca_btl_base_module_t **init(int *n_modules, bool enable_progress_threads, bool enable_mpi_threads);

__attribute__((visibility("default"))) mca_btl_base_component_t mca_btl_gni_component = {
    .btl_version = {
        MCA_BTL_DEFAULT_VERSION("gni"),
        .mca_open_component = open_component,
        .mca_close_component = close_component,
        .mca_register_component_params = register_variables,
    },
    .btl_data = { MCA_BASE_METADATA_PARAM_NONE },
    .btl_init = init,
    .btl_progress = mg_progress,
};

static void add_variable(const char *name, const char *meaning, int *value)
{
    (void)mca_base_component_var_register(&mca_btl_gni_component.btl_version, name, meaning, MCA_BASE_VAR_TYPE_INT,
                                          NULL, 0, 0, OPAL_INFO_LVL_5, MCA_BASE_VAR_SCOPE_READONLY, value);
}

/* Limits that depend on the number of processes are set when the NIC is opened. */
static int register_variables(void)
{
    mca_btl_base_module_t *module = &mg.super;

    mg.message_bytes = 0;
    mg.credits = 0;
    mg.fma_limit = 4096;
    add_variable("message_bytes", "Bytes of the longest short message (0: by the number of processes)",
                 &mg.message_bytes);
    add_variable("credits", "Short messages under way to one process (0: by the number of processes)", &mg.credits);
    add_variable("fma_limit", "Bytes of the longest put or get by FMA; longer ones are block transfers", &mg.fma_limit);
    mg.polled_ranks = 16;
    add_variable("polled_ranks",
                 "Jobs of so many processes at most look into each mailbox instead of a queue of events",
                 &mg.polled_ranks);
    mg.connects_all = false;
    (void)mca_base_component_var_register(&mca_btl_gni_component.btl_version, "connect_all",
                                          "Mailboxes for all processes are made at the beginning, without datagrams",
                                          MCA_BASE_VAR_TYPE_BOOL, NULL, 0, 0, OPAL_INFO_LVL_5,
                                          MCA_BASE_VAR_SCOPE_READONLY, &mg.connects_all);
    module->btl_eager_limit = MG_INLINE;
    module->btl_rndv_eager_limit = module->btl_eager_limit;
    module->btl_max_send_size = module->btl_eager_limit;
    module->btl_rdma_pipeline_send_length = module->btl_eager_limit;
    module->btl_rdma_pipeline_frag_size = 4 << 20;
    module->btl_min_rdma_pipeline_size = 2 * module->btl_eager_limit;
    module->btl_get_limit = 1 << 30;
    module->btl_put_limit = 1 << 30;
    module->btl_exclusivity = MCA_BTL_EXCLUSIVITY_DEFAULT;
    module->btl_latency = 2;
    module->btl_bandwidth = 80000;
    module->btl_flags = MCA_BTL_FLAGS_SEND | MCA_BTL_FLAGS_SEND_INPLACE | MCA_BTL_FLAGS_RDMA |
                        MCA_BTL_FLAGS_ATOMIC_OPS | MCA_BTL_FLAGS_ATOMIC_FOPS | MCA_BTL_FLAGS_RDMA_FLUSH;
    module->btl_registration_handle_size = sizeof(mca_btl_base_registration_handle_t);
    return mca_btl_base_param_register(&mca_btl_gni_component.btl_version, module);
}

static int open_component(void)
{
    return OPAL_SUCCESS;
}

static int close_component(void)
{
    return OPAL_SUCCESS;
}

static mca_btl_base_module_t **init(int *n_modules, bool enable_progress_threads, bool enable_mpi_threads)
{
    mca_btl_base_module_t **modules;

    (void)enable_progress_threads;
    (void)enable_mpi_threads;
    *n_modules = 0;
    if (!getenv("EMUNIC_SERVER") || !getenv("EMUNIC_RANK"))
        return NULL;
    modules = malloc(sizeof(mca_btl_base_module_t *));
    if (!modules || mg_open() != 0) {
        free(modules);
        return NULL;
    }
    modules[0] = &mg.super;
    *n_modules = 1;
    return modules;
}
