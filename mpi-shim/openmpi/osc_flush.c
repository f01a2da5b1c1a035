/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A window remembers that it was flushed, until there is an operation or an epoch begins or ends. So a flush outside of
 * an epoch is refused as before.
 */
#include "mpi-shim/openmpi/osc_flush.h"

#include <ompi_config.h>

#include <stdbool.h>

#include <ompi/mca/osc/osc.h>
#include <ompi/win/win.h>
#include <opal/runtime/opal_progress.h>

#define FLUSHED             0x8000 /* of w_flags: Open MPI has no such flag */
#define SPARED_PER_PROGRESS 16u    /* a look at nothing may give the core away */

static ompi_osc_base_module_t of_pt2pt; /* its functions, the same for all windows */

static void set_flushed(struct ompi_win_t *win, bool is_flushed)
{
    win->w_flags = (uint16_t)(is_flushed ? win->w_flags | FLUSHED : win->w_flags & ~FLUSHED);
}

static int osc_flush_all(struct ompi_win_t *win)
{
    static unsigned n_spared;
    int r;

    if (win->w_flags & FLUSHED) {
        /* Who calls this in a loop waits for others, which need our answers. */
        if (++n_spared % SPARED_PER_PROGRESS == 0)
            opal_progress();
        return OMPI_SUCCESS;
    }
    r = of_pt2pt.osc_flush_all(win);
    if (r == OMPI_SUCCESS)
        set_flushed(win, true);
    return r;
}

static int osc_put(const void *origin, int n, struct ompi_datatype_t *type, int target, ptrdiff_t disp, int target_n,
                   struct ompi_datatype_t *target_type, struct ompi_win_t *win)
{
    set_flushed(win, false);
    return of_pt2pt.osc_put(origin, n, type, target, disp, target_n, target_type, win);
}

static int osc_get(void *origin, int n, struct ompi_datatype_t *type, int target, ptrdiff_t disp, int target_n,
                   struct ompi_datatype_t *target_type, struct ompi_win_t *win)
{
    set_flushed(win, false);
    return of_pt2pt.osc_get(origin, n, type, target, disp, target_n, target_type, win);
}

static int osc_accumulate(const void *origin, int n, struct ompi_datatype_t *type, int target, ptrdiff_t disp,
                          int target_n, struct ompi_datatype_t *target_type, struct ompi_op_t *op,
                          struct ompi_win_t *win)
{
    set_flushed(win, false);
    return of_pt2pt.osc_accumulate(origin, n, type, target, disp, target_n, target_type, op, win);
}

static int osc_compare_and_swap(const void *origin, const void *compare, void *result, struct ompi_datatype_t *type,
                                int target, ptrdiff_t disp, struct ompi_win_t *win)
{
    set_flushed(win, false);
    return of_pt2pt.osc_compare_and_swap(origin, compare, result, type, target, disp, win);
}

static int osc_fetch_and_op(const void *origin, void *result, struct ompi_datatype_t *type, int target, ptrdiff_t disp,
                            struct ompi_op_t *op, struct ompi_win_t *win)
{
    set_flushed(win, false);
    return of_pt2pt.osc_fetch_and_op(origin, result, type, target, disp, op, win);
}

static int osc_get_accumulate(const void *origin, int n, struct ompi_datatype_t *type, void *result, int result_n,
                              struct ompi_datatype_t *result_type, int target, ptrdiff_t disp, int target_n,
                              struct ompi_datatype_t *target_type, struct ompi_op_t *op, struct ompi_win_t *win)
{
    set_flushed(win, false);
    return of_pt2pt.osc_get_accumulate(origin, n, type, result, result_n, result_type, target, disp, target_n,
                                       target_type, op, win);
}

static int osc_rput(const void *origin, int n, struct ompi_datatype_t *type, int target, ptrdiff_t disp, int target_n,
                    struct ompi_datatype_t *target_type, struct ompi_win_t *win, struct ompi_request_t **request)
{
    set_flushed(win, false);
    return of_pt2pt.osc_rput(origin, n, type, target, disp, target_n, target_type, win, request);
}

static int osc_rget(void *origin, int n, struct ompi_datatype_t *type, int target, ptrdiff_t disp, int target_n,
                    struct ompi_datatype_t *target_type, struct ompi_win_t *win, struct ompi_request_t **request)
{
    set_flushed(win, false);
    return of_pt2pt.osc_rget(origin, n, type, target, disp, target_n, target_type, win, request);
}

static int osc_raccumulate(const void *origin, int n, struct ompi_datatype_t *type, int target, ptrdiff_t disp,
                           int target_n, struct ompi_datatype_t *target_type, struct ompi_op_t *op,
                           struct ompi_win_t *win, struct ompi_request_t **request)
{
    set_flushed(win, false);
    return of_pt2pt.osc_raccumulate(origin, n, type, target, disp, target_n, target_type, op, win, request);
}

static int osc_rget_accumulate(const void *origin, int n, struct ompi_datatype_t *type, void *result, int result_n,
                               struct ompi_datatype_t *result_type, int target, ptrdiff_t disp, int target_n,
                               struct ompi_datatype_t *target_type, struct ompi_op_t *op, struct ompi_win_t *win,
                               struct ompi_request_t **request)
{
    set_flushed(win, false);
    return of_pt2pt.osc_rget_accumulate(origin, n, type, result, result_n, result_type, target, disp, target_n,
                                        target_type, op, win, request);
}

/* With the promise that nobody else locks osc/pt2pt sends no request, and each long put waits for its answer. */
static int osc_lock(int kind, int target, int assert, struct ompi_win_t *win)
{
    set_flushed(win, false);
    return of_pt2pt.osc_lock(kind, target, assert & ~MPI_MODE_NOCHECK, win);
}

static int osc_unlock(int target, struct ompi_win_t *win)
{
    set_flushed(win, false);
    return of_pt2pt.osc_unlock(target, win);
}

static int osc_lock_all(int assert, struct ompi_win_t *win)
{
    set_flushed(win, false);
    return of_pt2pt.osc_lock_all(assert & ~MPI_MODE_NOCHECK, win);
}

static int osc_unlock_all(struct ompi_win_t *win)
{
    set_flushed(win, false);
    return of_pt2pt.osc_unlock_all(win);
}

void mo_spare_flushes(struct ompi_win_t *win)
{
    ompi_osc_base_module_t *module = win->w_osc_module;

    of_pt2pt = *module;
    module->osc_flush_all = osc_flush_all;
    module->osc_put = osc_put;
    module->osc_get = osc_get;
    module->osc_accumulate = osc_accumulate;
    module->osc_compare_and_swap = osc_compare_and_swap;
    module->osc_fetch_and_op = osc_fetch_and_op;
    module->osc_get_accumulate = osc_get_accumulate;
    module->osc_rput = osc_rput;
    module->osc_rget = osc_rget;
    module->osc_raccumulate = osc_raccumulate;
    module->osc_rget_accumulate = osc_rget_accumulate;
    module->osc_lock = osc_lock;
    module->osc_unlock = osc_unlock;
    module->osc_lock_all = osc_lock_all;
    module->osc_unlock_all = osc_unlock_all;
}
