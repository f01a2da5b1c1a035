/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The check at the end of MPI_Init: the job ends with a message unless messages go over the emulated machine.
 *
 * The variable hook_emunic_layer is set by `emunic run --mpi`: the component that has to carry them. It is the mtl of
 * pml/cm or, but for self, the only btl of pml/ob1. Open MPI selects its message layer by settings that users, files
 * and programs change; whoever asked for the emulated machine shall not measure TCP or shared memory without knowing.
 *
 * It is also the first of our parts that MPI_Init loads, so it registers the process for the kernel's barriers.
 */
#include <ompi_config.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <ompi/mca/hook/hook.h>
#include <ompi/mca/mtl/base/base.h>
#include <ompi/mca/pml/base/base.h>
#include <ompi/mca/rte/rte.h>
#include <opal/mca/base/mca_base_var.h>
#include <opal/mca/btl/base/base.h>

#include "emunic/base/barriers.h"

static int register_variables(void);
static int open_component(void);
static int close_component(void);
static void refuse_strangers(int argc, char **argv, int requested, int *provided);
static void check(int argc, char **argv, int requested, int *provided);

extern ompi_hook_base_component_t mca_hook_emunic_component;

__attribute__((visibility("default"))) ompi_hook_base_component_t mca_hook_emunic_component = {
    .hookm_version = {
        OMPI_HOOK_BASE_VERSION_1_0_0,
        .mca_component_name = "emunic",
        MCA_BASE_MAKE_VERSION(component, 1, 0, 0),
        .mca_open_component = open_component,
        .mca_close_component = close_component,
        .mca_register_component_params = register_variables,
    },
    .hookm_data = { MCA_BASE_METADATA_PARAM_CHECKPOINT },
    .hookm_mpi_init_top_post_opal = refuse_strangers,
    .hookm_mpi_init_bottom = check,
};

static char *wanted;

static int register_variables(void)
{
    (void)mca_base_component_var_register(&mca_hook_emunic_component.hookm_version, "layer",
                                          "The component for messages that MPI_Init has to select (default: any)",
                                          MCA_BASE_VAR_TYPE_STRING, NULL, 0, 0, OPAL_INFO_LVL_5,
                                          MCA_BASE_VAR_SCOPE_READONLY, &wanted);
    return OMPI_SUCCESS;
}

/* Open MPI opens hooks before it starts its threads. */
static int open_component(void)
{
    emu_barriers_register_early();
    return OMPI_SUCCESS;
}

static int close_component(void)
{
    return OMPI_SUCCESS;
}

/* Processes that `emunic run` has not started have no node, so no interface. */
static void refuse_strangers(int argc, char **argv, int requested, int *provided)
{
    (void)argc;
    (void)argv;
    (void)requested;
    (void)provided;
    if (!wanted || !wanted[0] || getenv("EMUNIC_RANK"))
        return;
    fprintf(stderr, "emunic: processes that MPI_Comm_spawn() starts have no node on the emulated machine: `emunic run "
                    "--mpi` does not support it\n");
    _exit(1);
}

/* The names of the transports that pml/ob1 may use, as "gni,self". */
static void list_transports(char *list, size_t size)
{
    mca_btl_base_selected_module_t *selected;

    list[0] = '\0';
    OPAL_LIST_FOREACH(selected, &mca_btl_base_modules_initialized, mca_btl_base_selected_module_t)
    {
        size_t length = strlen(list);

        snprintf(list + length, size - length, "%s%s", length > 0 ? "," : "",
                 selected->btl_component->btl_version.mca_component_name);
    }
}

/* Is the wanted one in the list, and besides only self, which is for messages of a process to itself? */
static bool is_alone(const char *list)
{
    char copy[128];
    char *rest = copy;
    char *name;
    bool is_there = false;

    snprintf(copy, sizeof(copy), "%s", list);
    while ((name = strsep(&rest, ","))) {
        if (strcmp(name, wanted) == 0)
            is_there = true;
        else if (strcmp(name, "self") != 0)
            return false;
    }
    return is_there;
}

static void check(int argc, char **argv, int requested, int *provided)
{
    const char *pml = mca_pml_base_selected_component.pmlm_version.mca_component_name;
    const char *layer = "none";
    char transports[128];

    (void)argc;
    (void)argv;
    (void)requested;
    (void)provided;
    if (!wanted || !wanted[0])
        return;
    if (strcmp(pml, "cm") == 0 && ompi_mtl_base_selected_component)
        layer = ompi_mtl_base_selected_component->mtl_version.mca_component_name;
    if (strcmp(layer, wanted) == 0)
        return;
    if (strcmp(pml, "ob1") == 0) {
        list_transports(transports, sizeof(transports));
        layer = transports;
        if (is_alone(layer))
            return;
    }
    opal_output(0,
                "emunic: Open MPI has selected pml %s with %s instead of %s: its messages would not go over the "
                "emulated machine",
                pml, layer, wanted);
    ompi_rte_abort(1, NULL);
}
