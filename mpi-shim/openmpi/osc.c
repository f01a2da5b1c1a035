/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * osc/emunic: which component of Open MPI makes a window.
 *
 *                                    over Portals   over gni
 *   MPI_Win_allocate_shared          osc/sm         osc/sm      the memory of a node, for ranks of one node only
 *   MPI_Win_allocate within a node   osc/sm         osc/sm      likewise; not in virtual time (node_windows)
 *   MPI_Win_create_dynamic           osc/pt2pt      osc/pt2pt   their calls become messages
 *   all others                       osc/pt2pt      osc/rdma
 *
 * Calls to dynamic windows on another node never end in osc/rdma. So this component outbids the others and hands the
 * windows on. What osc/rdma accumulates is mended (osc_accumulate.h), osc/pt2pt is spared flushes of nothing
 * (osc_flush.h), and short puts and gets are done without either (osc_direct.h).
 */
#include "mpi-shim/openmpi/osc_accumulate.h"
#include "mpi-shim/openmpi/osc_direct.h"
#include "mpi-shim/openmpi/osc_flush.h"

#include <ompi_config.h>

#include <string.h>

#include <ompi/mca/osc/base/base.h>
#include <ompi/mca/osc/osc.h>
#include <opal/util/output.h>

#define PRIORITY 200 /* osc/sm bids 100, osc/rdma 101 */

static int register_variables(void);
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
        .mca_register_component_params = register_variables,
    },
    .osc_data = { MCA_BASE_METADATA_PARAM_NONE },
    .osc_init = init,
    .osc_query = osc_query,
    .osc_select = osc_select,
    .osc_finalize = finalize,
};

static bool has_node_windows;
static bool has_direct;
static bool has_threads; /* as osc/pt2pt takes it, which refuses windows then */

static void add_switch(const char *name, const char *meaning, bool *value)
{
    *value = true;
    (void)mca_base_component_var_register(&mca_osc_emunic_component.osc_version, name, meaning, MCA_BASE_VAR_TYPE_BOOL,
                                          NULL, 0, 0, OPAL_INFO_LVL_5, MCA_BASE_VAR_SCOPE_READONLY, value);
}

static int register_variables(void)
{
    add_switch("node_windows", "Windows of MPI_Win_allocate of ranks of one node are memory that they share",
               &has_node_windows);
    add_switch("direct", "Short puts and gets are done without Open MPI's component", &has_direct);
    return OMPI_SUCCESS;
}

static int init(bool enable_progress_threads, bool enable_mpi_threads)
{
    (void)enable_progress_threads;
    has_threads = enable_mpi_threads;
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

/* What a window is to be, as Open MPI asks a component. */
struct wish {
    struct ompi_win_t *win;
    void **base;
    size_t size;
    int disp_unit;
    struct ompi_communicator_t *comm;
    struct opal_info_t *info;
    int flavor;
};

static bool can_make(ompi_osc_base_component_t *component, const struct wish *wish)
{
    return component && component->osc_query(wish->win, wish->base, wish->size, wish->disp_unit, wish->comm, wish->info,
                                             wish->flavor) >= 0;
}

/* Who makes this window; NULL: Open MPI chooses. osc/rdma is there over gni only. osc/sm refuses ranks of two nodes. */
static ompi_osc_base_component_t *maker_of(const struct wish *wish)
{
    ompi_osc_base_component_t *rdma = find("rdma");
    ompi_osc_base_component_t *sm = find("sm");

    if (wish->flavor == MPI_WIN_FLAVOR_SHARED)
        return NULL;
    if (wish->flavor == MPI_WIN_FLAVOR_ALLOCATE && has_node_windows && can_make(sm, wish))
        return sm;
    return wish->flavor == MPI_WIN_FLAVOR_DYNAMIC || !rdma ? find("pt2pt") : rdma;
}

static int osc_query(struct ompi_win_t *win, void **base, size_t size, int disp_unit, struct ompi_communicator_t *comm,
                     struct opal_info_t *info, int flavor)
{
    struct wish wish = { win, base, size, disp_unit, comm, info, flavor };

    return can_make(maker_of(&wish), &wish) ? PRIORITY : -1;
}

/* mpirun -q hides what Open MPI says itself. Each rank says it: the first that aborts ends all others. */
static void say_refused(void)
{
    opal_output(0, "emunic: osc/pt2pt of Open MPI refuses windows with MPI_THREAD_MULTIPLE");
}

static int osc_select(struct ompi_win_t *win, void **base, size_t size, int disp_unit, struct ompi_communicator_t *comm,
                      struct opal_info_t *info, int flavor, int *model)
{
    struct wish wish = { win, base, size, disp_unit, comm, info, flavor };
    ompi_osc_base_component_t *component = maker_of(&wish);
    int r = component->osc_select(win, base, size, disp_unit, comm, info, flavor, model);

    if (r != OMPI_SUCCESS && has_threads && component == find("pt2pt"))
        say_refused();
    if (r != OMPI_SUCCESS || component == find("sm"))
        return r;
    if (component == find("rdma"))
        mo_mend_accumulate(win);
    else
        mo_spare_flushes(win);
    return has_direct && flavor != MPI_WIN_FLAVOR_DYNAMIC ? mo_make_direct(win, comm, *base, size, disp_unit) : r;
}
