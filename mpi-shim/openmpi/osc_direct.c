/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A target is
 *
 *   closed                   until an operation of the window's maker is flushed at it
 *   open                     until its lock is given back
 *
 * and dirty from an operation of the maker to the next flush. A flush at an open one that is not dirty has nothing to
 * wait for. An operation of one thread and a flush of another: the mark is set behind the operation, and taken away
 * before the flush, so it stays too long at most.
 */
#include "mpi-shim/openmpi/osc_direct.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "mpi-shim/openmpi/osc_transport.h"

#include <ompi/communicator/communicator.h>
#include <ompi/datatype/ompi_datatype.h>
#include <ompi/mca/coll/coll.h>
#include <ompi/mca/mtl/base/base.h>
#include <ompi/mca/mtl/mtl.h>
#include <ompi/mca/osc/osc.h>
#include <ompi/win/win.h>
#include <opal/mca/btl/base/base.h>

#define INDEX_SHIFT         5    /* in w_flags: Open MPI has the bits below */
#define WINDOWS_MAX         1023 /* at a time; others are their maker's alone, as are those of more processes than: */
#define RANKS_MAX           4096
#define SPARED_PER_PROGRESS 64u /* who flushes in a loop may wait for others, which need our answers */

struct target {
    void *reach; /* owned; NULL: only the maker */
    uint64_t base;
    size_t size;
    uint64_t unit;
    _Atomic bool is_open;
    _Atomic bool is_dirty;
    _Atomic bool is_being_flushed; /* and was dirty */
};

struct window {
    void *exposed; /* owned, or NULL */
    int n_targets;
    _Atomic bool is_all_locked;
    _Atomic bool is_dirty; /* some target, since the last flush of all */
    struct target targets[];
};

/* What each process tells the others. */
struct card {
    uint64_t words[MO_WORDS];
    uint64_t base;
    uint64_t size;
    uint64_t unit;
    uint64_t is_exposed;
};

static const struct mo_transport *transport;
static ompi_osc_base_module_t of_maker;                   /* its functions, the same for all windows of a job */
static _Atomic(struct window *) windows[WINDOWS_MAX + 1]; /* owned; index 0 is no window's */

static inline unsigned index_of(const struct ompi_win_t *win)
{
    return win->w_flags >> INDEX_SHIFT & WINDOWS_MAX;
}

static inline struct window *window_of(const struct ompi_win_t *win)
{
    return atomic_load_explicit(&windows[index_of(win)], memory_order_relaxed);
}

static void mark(struct ompi_win_t *win, int target)
{
    struct window *window = window_of(win);

    atomic_store_explicit(&window->targets[target].is_dirty, true, memory_order_release);
    atomic_store_explicit(&window->is_dirty, true, memory_order_release);
}

/* ---- puts and gets ---- */

/* 0: not plain. */
static inline size_t plain_bytes(const struct ompi_datatype_t *type, int n)
{
    if (!(type->super.flags & OMPI_DATATYPE_FLAG_PREDEFINED) ||
        type->super.size != (size_t)(type->super.ub - type->super.lb))
        return 0;
    return type->super.size * (size_t)n;
}

/* Where it goes. False: not in a window that can be reached so. */
static inline bool locate(const struct target *target, ptrdiff_t disp, size_t n_bytes, uint64_t *address_out)
{
    uint64_t offset;

    if (disp < 0 || __builtin_mul_overflow((uint64_t)disp, target->unit, &offset) || offset > target->size ||
        n_bytes > target->size - offset)
        return false;
    *address_out = target->base + offset;
    return true;
}

static inline bool is_open(const struct target *target)
{
    return atomic_load_explicit(&target->is_open, memory_order_acquire);
}

/* May the NIC do a put or get of so many plain bytes? Then *address_out is where. */
static inline bool is_direct(const struct target *target, size_t n_bytes, struct ompi_datatype_t *target_type,
                             int target_n, ptrdiff_t disp, uint64_t *address_out)
{
    return is_open(target) && n_bytes - 1 < transport->longest_bytes && plain_bytes(target_type, target_n) == n_bytes &&
           locate(target, disp, n_bytes, address_out);
}

static int osc_put(const void *origin, int n, struct ompi_datatype_t *type, int rank, ptrdiff_t disp, int target_n,
                   struct ompi_datatype_t *target_type, struct ompi_win_t *win)
{
    const struct target *target = &window_of(win)->targets[rank];
    size_t n_bytes = plain_bytes(type, n);
    uint64_t address;
    int r;

    if (is_direct(target, n_bytes, target_type, target_n, disp, &address) &&
        transport->put(target->reach, address, origin, n_bytes))
        return OMPI_SUCCESS;
    r = of_maker.osc_put(origin, n, type, rank, disp, target_n, target_type, win);
    mark(win, rank);
    return r;
}

static int osc_get(void *origin, int n, struct ompi_datatype_t *type, int rank, ptrdiff_t disp, int target_n,
                   struct ompi_datatype_t *target_type, struct ompi_win_t *win)
{
    const struct target *target = &window_of(win)->targets[rank];
    size_t n_bytes = plain_bytes(type, n);
    uint64_t address;
    int r;

    if (is_direct(target, n_bytes, target_type, target_n, disp, &address) &&
        transport->get(target->reach, address, origin, n_bytes))
        return OMPI_SUCCESS;
    r = of_maker.osc_get(origin, n, type, rank, disp, target_n, target_type, win);
    mark(win, rank);
    return r;
}

/* ---- operations that are the maker's ---- */

static int osc_accumulate(const void *origin, int n, struct ompi_datatype_t *type, int target, ptrdiff_t disp,
                          int target_n, struct ompi_datatype_t *target_type, struct ompi_op_t *op,
                          struct ompi_win_t *win)
{
    int r = of_maker.osc_accumulate(origin, n, type, target, disp, target_n, target_type, op, win);

    mark(win, target);
    return r;
}

static int osc_compare_and_swap(const void *origin, const void *compare, void *result, struct ompi_datatype_t *type,
                                int target, ptrdiff_t disp, struct ompi_win_t *win)
{
    int r = of_maker.osc_compare_and_swap(origin, compare, result, type, target, disp, win);

    mark(win, target);
    return r;
}

static int osc_fetch_and_op(const void *origin, void *result, struct ompi_datatype_t *type, int target, ptrdiff_t disp,
                            struct ompi_op_t *op, struct ompi_win_t *win)
{
    int r = of_maker.osc_fetch_and_op(origin, result, type, target, disp, op, win);

    mark(win, target);
    return r;
}

static int osc_get_accumulate(const void *origin, int n, struct ompi_datatype_t *type, void *result, int result_n,
                              struct ompi_datatype_t *result_type, int target, ptrdiff_t disp, int target_n,
                              struct ompi_datatype_t *target_type, struct ompi_op_t *op, struct ompi_win_t *win)
{
    int r = of_maker.osc_get_accumulate(origin, n, type, result, result_n, result_type, target, disp, target_n,
                                        target_type, op, win);

    mark(win, target);
    return r;
}

static int osc_rput(const void *origin, int n, struct ompi_datatype_t *type, int target, ptrdiff_t disp, int target_n,
                    struct ompi_datatype_t *target_type, struct ompi_win_t *win, struct ompi_request_t **request)
{
    int r = of_maker.osc_rput(origin, n, type, target, disp, target_n, target_type, win, request);

    mark(win, target);
    return r;
}

static int osc_rget(void *origin, int n, struct ompi_datatype_t *type, int target, ptrdiff_t disp, int target_n,
                    struct ompi_datatype_t *target_type, struct ompi_win_t *win, struct ompi_request_t **request)
{
    int r = of_maker.osc_rget(origin, n, type, target, disp, target_n, target_type, win, request);

    mark(win, target);
    return r;
}

static int osc_raccumulate(const void *origin, int n, struct ompi_datatype_t *type, int target, ptrdiff_t disp,
                           int target_n, struct ompi_datatype_t *target_type, struct ompi_op_t *op,
                           struct ompi_win_t *win, struct ompi_request_t **request)
{
    int r = of_maker.osc_raccumulate(origin, n, type, target, disp, target_n, target_type, op, win, request);

    mark(win, target);
    return r;
}

static int osc_rget_accumulate(const void *origin, int n, struct ompi_datatype_t *type, void *result, int result_n,
                               struct ompi_datatype_t *result_type, int target, ptrdiff_t disp, int target_n,
                               struct ompi_datatype_t *target_type, struct ompi_op_t *op, struct ompi_win_t *win,
                               struct ompi_request_t **request)
{
    int r = of_maker.osc_rget_accumulate(origin, n, type, result, result_n, result_type, target, disp, target_n,
                                         target_type, op, win, request);

    mark(win, target);
    return r;
}

/* ---- flushes ---- */

/* What went before is seen by all before what follows is read. */
static int spare(void)
{
    static _Thread_local unsigned n_spared;

    atomic_thread_fence(memory_order_seq_cst);
    if (++n_spared % SPARED_PER_PROGRESS == 0)
        transport->progress();
    return OMPI_SUCCESS;
}

static bool has_nothing(const struct target *target)
{
    return is_open(target) && !atomic_load_explicit(&target->is_dirty, memory_order_acquire);
}

static void begin_flush(struct target *target)
{
    if (atomic_exchange(&target->is_dirty, false))
        atomic_store(&target->is_being_flushed, true);
}

static void end_flush(struct target *target, bool is_done)
{
    if (!atomic_exchange(&target->is_being_flushed, false))
        return;
    if (!is_done)
        atomic_store(&target->is_dirty, true);
    else if (target->reach)
        atomic_store(&target->is_open, true);
}

static int osc_flush(int rank, struct ompi_win_t *win)
{
    struct target *target = &window_of(win)->targets[rank];
    int r;

    if (has_nothing(target))
        return spare();
    begin_flush(target);
    r = of_maker.osc_flush(rank, win);
    end_flush(target, r == OMPI_SUCCESS);
    return r;
}

static int osc_flush_local(int rank, struct ompi_win_t *win)
{
    return has_nothing(&window_of(win)->targets[rank]) ? spare() : of_maker.osc_flush_local(rank, win);
}

static bool have_all_nothing(const struct window *window)
{
    return atomic_load_explicit(&window->is_all_locked, memory_order_acquire) &&
           !atomic_load_explicit(&window->is_dirty, memory_order_acquire);
}

static int osc_flush_all(struct ompi_win_t *win)
{
    struct window *window = window_of(win);
    int r;

    if (have_all_nothing(window))
        return spare();
    atomic_store(&window->is_dirty, false);
    for (int i = 0; i < window->n_targets; i++)
        begin_flush(&window->targets[i]);
    r = of_maker.osc_flush_all(win);
    for (int i = 0; i < window->n_targets; i++)
        end_flush(&window->targets[i], r == OMPI_SUCCESS);
    if (r != OMPI_SUCCESS)
        atomic_store(&window->is_dirty, true);
    return r;
}

static int osc_flush_local_all(struct ompi_win_t *win)
{
    return have_all_nothing(window_of(win)) ? spare() : of_maker.osc_flush_local_all(win);
}

/* ---- epochs ---- */

/* No epoch with this target: nothing is under way. */
static void close_target(struct target *target)
{
    atomic_store_explicit(&target->is_open, false, memory_order_relaxed);
    atomic_store_explicit(&target->is_dirty, false, memory_order_relaxed);
}

static void close_all(struct window *window)
{
    atomic_store(&window->is_all_locked, false);
    for (int i = 0; i < window->n_targets; i++)
        close_target(&window->targets[i]);
}

static int osc_lock(int kind, int rank, int assert, struct ompi_win_t *win)
{
    struct target *target = &window_of(win)->targets[rank];
    int r = of_maker.osc_lock(kind, rank, assert, win);

    if (r == OMPI_SUCCESS)
        close_target(target);
    return r;
}

static int osc_unlock(int rank, struct ompi_win_t *win)
{
    close_target(&window_of(win)->targets[rank]);
    return of_maker.osc_unlock(rank, win);
}

static int osc_lock_all(int assert, struct ompi_win_t *win)
{
    struct window *window = window_of(win);
    int r = of_maker.osc_lock_all(assert, win);

    if (r != OMPI_SUCCESS)
        return r;
    close_all(window);
    atomic_store(&window->is_dirty, false);
    atomic_store(&window->is_all_locked, true);
    return r;
}

static int osc_unlock_all(struct ompi_win_t *win)
{
    close_all(window_of(win));
    return of_maker.osc_unlock_all(win);
}

/* ---- making and freeing ---- */

static void free_window(struct window *window)
{
    for (int i = 0; window && i < window->n_targets; i++)
        if (window->targets[i].reach)
            transport->close(window->targets[i].reach);
    if (window && window->exposed)
        transport->hide(window->exposed);
    free(window);
}

/* False: there are too many. */
static bool give_index(struct ompi_win_t *win, struct window *window)
{
    for (unsigned i = 1; i <= WINDOWS_MAX; i++) {
        struct window *none = NULL;

        if (!atomic_compare_exchange_strong(&windows[i], &none, window))
            continue;
        win->w_flags = (uint16_t)(win->w_flags | i << INDEX_SHIFT);
        return true;
    }
    return false;
}

/* Others may still reach what is hidden here: the maker does then what they ask for. */
static int osc_free(struct ompi_win_t *win)
{
    free_window(atomic_exchange(&windows[index_of(win)], NULL));
    return of_maker.osc_free(win);
}

static const struct mo_transport *find_transport(void)
{
    mca_btl_base_selected_module_t *item;

    OPAL_LIST_FOREACH(item, &mca_btl_base_modules_initialized, mca_btl_base_selected_module_t)
    {
        if (strcmp(item->btl_component->btl_version.mca_component_name, "gni") == 0)
            return ((struct mo_module *)item->btl_module)->windows;
    }
    if (ompi_mtl && strcmp(ompi_mtl_base_selected_component->mtl_version.mca_component_name, "portals3") == 0)
        return ((struct mo_mtl_module *)ompi_mtl)->windows;
    return NULL;
}

static void take_over(ompi_osc_base_module_t *module)
{
    of_maker = *module;
    module->osc_free = osc_free;
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
    module->osc_flush = osc_flush;
    module->osc_flush_all = osc_flush_all;
    module->osc_flush_local = osc_flush_local;
    module->osc_flush_local_all = osc_flush_local_all;
}

/* Not of ourselves: the maker needs no NIC for that, and makes progress. */
static void open_targets(struct window *window, const struct card *cards, int own_rank)
{
    for (int i = 0; i < window->n_targets; i++) {
        struct target *target = &window->targets[i];

        target->base = cards[i].base;
        target->size = cards[i].size;
        target->unit = cards[i].unit;
        if (cards[i].is_exposed && i != own_rank)
            target->reach = transport->open(cards[i].words);
    }
}

/* Who has no memory takes part all the same: the others wait for it. */
static int tell_others(struct ompi_communicator_t *comm, const struct card *card, struct card *cards)
{
    if (!cards)
        return OMPI_ERR_OUT_OF_RESOURCE;
    return comm->c_coll->coll_allgather(card, sizeof(*card), &ompi_mpi_byte.dt, cards, sizeof(*card), &ompi_mpi_byte.dt,
                                        comm, comm->c_coll->coll_allgather_module);
}

int mo_make_direct(struct ompi_win_t *win, struct ompi_communicator_t *comm, void *base, size_t size, int disp_unit)
{
    int n = ompi_comm_size(comm);
    struct card card = { .base = (uintptr_t)base, .size = size, .unit = (uint64_t)disp_unit };
    struct window *window;
    struct card *cards;
    int r;

    transport = find_transport();
    if (!transport || n < 2 || n > RANKS_MAX)
        return OMPI_SUCCESS;
    window = calloc(1, sizeof(*window) + (size_t)n * sizeof(struct target));
    cards = calloc((size_t)n, sizeof(*cards));
    if (window && size > 0)
        window->exposed = transport->expose(base, size, card.words);
    card.is_exposed = window && window->exposed;
    r = tell_others(comm, &card, cards);
    if (r == OMPI_SUCCESS && window) {
        window->n_targets = n;
        open_targets(window, cards, ompi_comm_rank(comm));
    }
    if (r == OMPI_SUCCESS && window && give_index(win, window))
        take_over(win->w_osc_module);
    else
        free_window(window);
    free(cards);
    return r;
}
