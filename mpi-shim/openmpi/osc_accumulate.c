/* SPDX-License-Identifier: BSD-3-Clause */
#include "mpi-shim/openmpi/osc_accumulate.h"

#include <ompi_config.h>

#include <stdbool.h>

#include <ompi/communicator/communicator.h>
#include <ompi/datatype/ompi_datatype.h>
#include <ompi/mca/osc/osc.h>
#include <ompi/win/win.h>
#include <opal/util/output.h>

#define MIXED_OPERATIONS (OMPI_WIN_ACCUMULATE_OPS_SAME_OP + 1) /* more than any promise that Open MPI knows */

static ompi_osc_base_module_t of_rdma; /* its functions, the same for all windows */

/* Says it once in a process. */
static bool is_refused(const struct ompi_win_t *win, int target, const struct ompi_datatype_t *type)
{
    static bool has_said;

    if (target == win->w_group->grp_my_rank || !ompi_datatype_is_predefined(type) ||
        type->super.size == (size_t)(type->super.ub - type->super.lb))
        return false;
    if (!has_said)
        opal_output(0, "emunic: osc/rdma of Open MPI cannot accumulate %s, whose members have a gap between them",
                    type->name);
    has_said = true;
    return true;
}

static int osc_accumulate(const void *origin, int n, struct ompi_datatype_t *type, int target, ptrdiff_t disp,
                          int target_n, struct ompi_datatype_t *target_type, struct ompi_op_t *op,
                          struct ompi_win_t *win)
{
    if (is_refused(win, target, target_type))
        return MPI_ERR_TYPE;
    return of_rdma.osc_accumulate(origin, n, type, target, disp, target_n, target_type, op, win);
}

static int osc_get_accumulate(const void *origin, int n, struct ompi_datatype_t *type, void *result, int result_n,
                              struct ompi_datatype_t *result_type, int target, ptrdiff_t disp, int target_n,
                              struct ompi_datatype_t *target_type, struct ompi_op_t *op, struct ompi_win_t *win)
{
    if (is_refused(win, target, target_type))
        return MPI_ERR_TYPE;
    return of_rdma.osc_get_accumulate(origin, n, type, result, result_n, result_type, target, disp, target_n,
                                      target_type, op, win);
}

static int osc_fetch_and_op(const void *origin, void *result, struct ompi_datatype_t *type, int target, ptrdiff_t disp,
                            struct ompi_op_t *op, struct ompi_win_t *win)
{
    if (is_refused(win, target, type))
        return MPI_ERR_TYPE;
    return of_rdma.osc_fetch_and_op(origin, result, type, target, disp, op, win);
}

static int osc_raccumulate(const void *origin, int n, struct ompi_datatype_t *type, int target, ptrdiff_t disp,
                           int target_n, struct ompi_datatype_t *target_type, struct ompi_op_t *op,
                           struct ompi_win_t *win, struct ompi_request_t **request)
{
    if (is_refused(win, target, target_type))
        return MPI_ERR_TYPE;
    return of_rdma.osc_raccumulate(origin, n, type, target, disp, target_n, target_type, op, win, request);
}

static int osc_rget_accumulate(const void *origin, int n, struct ompi_datatype_t *type, void *result, int result_n,
                               struct ompi_datatype_t *result_type, int target, ptrdiff_t disp, int target_n,
                               struct ompi_datatype_t *target_type, struct ompi_op_t *op, struct ompi_win_t *win,
                               struct ompi_request_t **request)
{
    if (is_refused(win, target, target_type))
        return MPI_ERR_TYPE;
    return of_rdma.osc_rget_accumulate(origin, n, type, result, result_n, result_type, target, disp, target_n,
                                       target_type, op, win, request);
}

void mo_mend_accumulate(struct ompi_win_t *win)
{
    ompi_osc_base_module_t *module = win->w_osc_module;

    win->w_acc_ops = (ompi_win_accumulate_ops_t)MIXED_OPERATIONS;
    of_rdma = *module;
    module->osc_accumulate = osc_accumulate;
    module->osc_get_accumulate = osc_get_accumulate;
    module->osc_fetch_and_op = osc_fetch_and_op;
    module->osc_raccumulate = osc_raccumulate;
    module->osc_rget_accumulate = osc_rget_accumulate;
}
