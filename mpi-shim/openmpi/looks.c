/* SPDX-License-Identifier: BSD-3-Clause */
#include "mpi-shim/openmpi/looks.h"

#include <ompi_config.h>

#include <string.h>

#include <ompi/mca/osc/base/base.h>
#include <ompi/mca/osc/osc.h>
#include <ompi/mca/pml/pml.h>
#include <ompi/request/request.h>
#include <ompi/win/win.h>

/* Open MPI's own are those that are not ours. */
static void (*stir_rounds)(void);
static ompi_request_fns_t tests;
static mca_pml_base_module_iprobe_fn_t iprobe;
static mca_pml_base_module_improbe_fn_t improbe;
static ompi_osc_base_component_select_fn_t make_window;
static ompi_osc_base_module_t windows; /* its functions, the same for all windows of osc/pt2pt */

/* ---- messages ---- */

static int test(ompi_request_t **request, int *completed, ompi_status_public_t *status)
{
    int r = tests.req_test(request, completed, status);

    if (!*completed)
        stir_rounds();
    return r;
}

static int test_any(size_t n, ompi_request_t **requests, int *index, int *completed, ompi_status_public_t *status)
{
    int r = tests.req_test_any(n, requests, index, completed, status);

    if (!*completed)
        stir_rounds();
    return r;
}

static int test_all(size_t n, ompi_request_t **requests, int *completed, ompi_status_public_t *statuses)
{
    int r = tests.req_test_all(n, requests, completed, statuses);

    if (!*completed)
        stir_rounds();
    return r;
}

static int test_some(size_t n, ompi_request_t **requests, int *n_completed, int *indices,
                     ompi_status_public_t *statuses)
{
    int r = tests.req_test_some(n, requests, n_completed, indices, statuses);

    if (*n_completed == 0)
        stir_rounds();
    return r;
}

static int pml_iprobe(int src, int tag, struct ompi_communicator_t *comm, int *matched, ompi_status_public_t *status)
{
    int r = iprobe(src, tag, comm, matched, status);

    if (!*matched)
        stir_rounds();
    return r;
}

static int pml_improbe(int src, int tag, struct ompi_communicator_t *comm, int *matched,
                       struct ompi_message_t **message, ompi_status_public_t *status)
{
    int r = improbe(src, tag, comm, matched, message, status);

    if (!*matched)
        stir_rounds();
    return r;
}

/*
 * ---- windows of osc/pt2pt ----
 *
 * These calls make a round each, also where they wait for nothing. MPI_Win_sync does, too, but who calls that in a loop
 * waits for what others write.
 */

static int osc_unlock(int target, struct ompi_win_t *win)
{
    int r = windows.osc_unlock(target, win);

    stir_rounds();
    return r;
}

static int osc_unlock_all(struct ompi_win_t *win)
{
    int r = windows.osc_unlock_all(win);

    stir_rounds();
    return r;
}

static int osc_flush(int target, struct ompi_win_t *win)
{
    int r = windows.osc_flush(target, win);

    stir_rounds();
    return r;
}

static int osc_flush_local(int target, struct ompi_win_t *win)
{
    int r = windows.osc_flush_local(target, win);

    stir_rounds();
    return r;
}

static int osc_flush_local_all(struct ompi_win_t *win)
{
    int r = windows.osc_flush_local_all(win);

    stir_rounds();
    return r;
}

static int osc_test(struct ompi_win_t *win, int *flag)
{
    int r = windows.osc_test(win, flag);

    stir_rounds();
    return r;
}

static int osc_select(struct ompi_win_t *win, void **base, size_t size, int disp_unit, struct ompi_communicator_t *comm,
                      struct opal_info_t *info, int flavor, int *model)
{
    int r = make_window(win, base, size, disp_unit, comm, info, flavor, model);

    if (r != OMPI_SUCCESS)
        return r;
    windows = *win->w_osc_module;
    win->w_osc_module->osc_unlock = osc_unlock;
    win->w_osc_module->osc_unlock_all = osc_unlock_all;
    win->w_osc_module->osc_flush = osc_flush;
    win->w_osc_module->osc_flush_local = osc_flush_local;
    win->w_osc_module->osc_flush_local_all = osc_flush_local_all;
    win->w_osc_module->osc_test = osc_test;
    return r;
}

static void look_at_windows(void)
{
    mca_base_component_list_item_t *item;

    OPAL_LIST_FOREACH(item, &ompi_osc_base_framework.framework_components, mca_base_component_list_item_t)
    {
        ompi_osc_base_component_t *component = (ompi_osc_base_component_t *)item->cli_component;

        if (strcmp(component->osc_version.mca_component_name, "pt2pt") != 0)
            continue;
        make_window = component->osc_select;
        component->osc_select = osc_select;
    }
}

void looks_begin(void (*stir)(void))
{
    if (stir_rounds)
        return;
    stir_rounds = stir;
    tests = ompi_request_functions;
    ompi_request_functions.req_test = test;
    ompi_request_functions.req_test_any = test_any;
    ompi_request_functions.req_test_all = test_all;
    ompi_request_functions.req_test_some = test_some;
    iprobe = mca_pml.pml_iprobe;
    improbe = mca_pml.pml_improbe;
    mca_pml.pml_iprobe = pml_iprobe;
    mca_pml.pml_improbe = pml_improbe;
    look_at_windows();
}
